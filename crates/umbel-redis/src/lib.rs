//! Filters shared through a stock Redis or Valkey: one filter for a fleet, on servers where no module may be loaded.
//!
//! ```no_run
//! # async fn example() -> Result<(), umbel_redis::Error> {
//! use umbel::Portable;
//! use umbel_redis::{Answer, Options, Server, SharedBloom};
//!
//! let server = Server::connect("redis://127.0.0.1:6379/0").await?;
//! let seen = SharedBloom::<str>::open(&server, "seen", Portable::default(), &Options::default()).await?;
//! seen.insert("https://example.org/").await?;
//! match seen.contains("https://example.org/other").await {
//!     Answer::Absent => println!("certainly new"),
//!     Answer::Maybe => println!("probably seen"),
//!     Answer::Unknown(why) => println!("the filter cannot tell: {why}"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # A missing answer is never "absent"
//!
//! A stock server returns zeros for a key that it has evicted, and a promoted replica may lack inserts that
//! were acknowledged a moment before. Both read as "certainly not seen". So an [`Answer`] has three values, and
//! [`Absent`](Answer::Absent) comes with proof, read in the same atomic step as the bits: see
//! [`shared`](shared#what-is-proven).
//!
//! # Open, create, complete
//!
//! [`open`](SharedBloom::open) fails if the filter is missing. [`create`](SharedBloom::create) fails if it
//! exists. It creates an empty filter that answers [`Unknown`](Answer::Unknown) until the caller has inserted
//! all keys and called [`complete`](SharedBloom::complete). [`open_or_create`](SharedBloom::open_or_create)
//! does either and returns which. So a filter that was lost and created again never answers `Absent` for a key
//! of the lost one.
//!
//! # Which filter?
//!
//! | you have | type | microseconds of a server per look-up, in a batch |
//! |---|---|---|
//! | a stock server | [`SharedBloom`] | 0.6 |
//! | services in Go that use go-zero | [`GoZeroBloom`] | 2 to 5 |
//! | services in Java that use Redisson | [`RedissonBloom`] | not measured |
//! | a server with RedisBloom, valkey-bloom or umbel's module | [`ModuleBloom`], [`ModuleCuckoo`] | not measured; `docs/measurements.md` has those of the module itself |
//!
//! All are [`RemoteFilter`]s. [`Blocking`] is for programs without an asynchronous runtime.
//!
//! # Reading order
//!
//! 1. [`Answer`], [`Reason`] and [`RemoteFilter`]: the operations and their answers.
//! 2. [`Server`] and [`Limits`]: a single server, a primary with replicas, a cluster.
//! 3. [`shared`]: our own layout, and what it proves. `docs/redis.md` specifies every byte.
//! 4. [`gozero`], [`redisson`], [`module`]: the layouts of other projects, and what can be proven there.
//! 5. [`Policy`] and [`Hazard`]: servers whose configuration may lose filters.
//!
//! # Features
//!
//! `tls` enables `rediss://`. Passwords and users (ACL) are parts of a URL. A user needs the commands
//! `GETRANGE`, `STRLEN`, `SETRANGE`, `BITFIELD`, `BITFIELD_RO`, `EVAL`, `EVALSHA`, `UNLINK`, `PTTL`, `TYPE`,
//! `WATCH`, `MULTI`, `EXEC` and `INFO`. `docs/redis.md` lists the additional commands for [`GoZeroBloom`] and
//! [`RedissonBloom`].

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod answer;
mod bitmap;
mod blocking;
mod connect;
pub mod gozero;
mod health;
mod history;
pub mod module;
pub mod redisson;
mod script;
pub mod shared;

pub use answer::{Answer, Error, Opening, Reason, RemoteFilter};
pub use blocking::Blocking;
pub use connect::{Limits, Server};
pub use gozero::GoZeroBloom;
pub use health::{Hazard, Policy};
pub use module::{ModuleBloom, ModuleCuckoo};
pub use redisson::RedissonBloom;
pub use shared::{Found, Options, SharedBloom};
