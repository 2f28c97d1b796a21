//! A filter between clients and a data set: look-ups of keys that do not exist never reach it.
//!
//! ```text
//!     clients  --->  guard  -- maybe, or cannot tell -->  data set
//!                     |
//!                     `-- absent: answered here, for certain
//! ```
//!
//! The oldest use of filters, done so that it can be trusted: whenever a key can be read in the data set, the filter
//! does not say that it is absent, whatever is killed, lost, cancelled, slow or restored from a backup. When in doubt
//! the data set is asked.
//!
//! ```
//! use umbel_guard::{Answer, Guard, Local};
//! # #[cfg(feature = "redb")] {
//! use umbel_guard::set::Redb;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let place = tempfile::tempdir()?;
//! # let (file, folder) = (place.path().join("users.redb"), place.path().join("users.guard"));
//! let guard = Guard::builder(Redb::create(&file, "users")?, Local::blocked(0.01))
//!     .folder(&folder) // the filter is kept beside the data, so that a restart is fast
//!     .start()
//!     .await?;
//! guard.active().await?; // until then everything goes through
//!
//! guard.put(b"ada", b"1815").await?;
//! assert_eq!(guard.contains(b"ada").await, Answer::Maybe);
//! assert_eq!(guard.contains(b"nobody").await, Answer::Absent);
//! guard.close().await?;
//! # Ok(())
//! # }
//! # main().unwrap();
//! # }
//! ```
//!
//! # Reading order
//!
//! 1. [`guard`]: the two orders on which everything rests. [`answer`]: answers, and the states of a guard.
//! 2. [`data_set`]: what is guarded, and how to bring your own; [`set`]: those that are ready.
//! 3. [`kind`]: which filter.
//! 4. [`rebuild`]: building a filter while everybody goes on. [`tend`]: when that happens by itself.
//! 5. [`keep`]: what outlives the process. [`doubts`](Builder::doubts): writes whose outcome nobody knows.
//! 6. [`options`]: all that can be chosen. [`stats`] and [`event`]: what can be watched. [`error`]: every way to fail.
//!
//! `docs/guard.md` tells what is promised, and what is not.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod answer;
pub mod data_set;
pub mod error;
pub mod event;
pub mod guard;
pub mod keep;
pub mod kind;
pub mod options;
pub mod rebuild;
pub mod set;
pub mod stats;
pub mod tend;

mod absences;
mod ask;
mod doubts;
mod epoch;
mod flight;
mod watch;
mod within;
mod write;

pub use answer::{Answer, Reason, State, Suspicion};
pub use data_set::{Claim, DataSet, Outcome, Page, Put, Refusal, Stamp};
pub use error::{GuardError, RebuildError, StartError, Trouble};
pub use event::{Event, Renewal};
pub use guard::Guard;
pub use keep::Durability;
pub use kind::{Family, Generation, Kind, Local, Measure};
pub use options::Builder;
pub use stats::{Share, Stats};

/// The examples of README are tests here, because this crate can use all crates that they use.
#[cfg(all(doctest, feature = "postgres", feature = "shared"))]
#[doc = include_str!("../../../README.md")]
struct Readme;
