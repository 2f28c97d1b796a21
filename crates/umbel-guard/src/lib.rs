//! A filter between clients and a data set: look-ups of keys that do not exist never reach it.
//!
//! ```text
//!     clients  --->  guard  -- maybe, or cannot tell -->  data set
//!                     |
//!                     `-- absent: answered here, for certain
//! ```
//!
//! The guard answers look-ups of absent keys from a filter. A key that can be read in the data set is never
//! reported absent. This holds when processes are killed, state is lost, futures are cancelled, servers are
//! slow, or backups are restored. When the guard is in doubt, it queries the data set.
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
//! 1. [`guard`]: the two orders of steps that correctness rests on. [`answer`]: answers, and the states of a
//!    guard.
//! 2. [`data_set`]: the trait for a data set, and how to implement it. [`set`]: the ready-made ones.
//! 3. [`kind`]: which filter to use.
//! 4. [`rebuild`]: rebuilding a filter online. [`tend`]: when the guard rebuilds by itself.
//! 5. [`keep`]: what survives the process. [`doubts`](Builder::doubts): writes with an unknown outcome.
//! 6. [`options`]: all settings. [`stats`] and [`event`]: monitoring. [`error`]: all errors.
//!
//! `docs/guard.md` lists the guarantees and their limits.

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

/// The examples of README are tested here, because this crate can depend on all crates that they use.
#[cfg(all(doctest, feature = "postgres", feature = "shared"))]
#[doc = include_str!("../../../README.md")]
struct Readme;
