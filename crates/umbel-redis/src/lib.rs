//! Filters shared through a stock Redis or Valkey.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod answer;
mod connect;
mod health;
mod history;
pub mod shared;

pub use answer::{Answer, Error, Reason, RemoteFilter};
pub use connect::{Limits, Server};
pub use health::{Hazard, Policy};
pub use shared::{Found, Options, SharedBloom};
