//! A blocking interface for programs without an asynchronous runtime.
//!
//! ```no_run
//! use umbel_redis::{Answer, Blocking, Options, Server, SharedBloom};
//!
//! let seen = Blocking::open(async {
//!     let server = Server::connect("redis://127.0.0.1:6379/0").await?;
//!     SharedBloom::<str>::open(&server, "seen", Default::default(), &Options::default()).await
//! })?;
//! seen.insert("https://example.org/")?;
//! assert_ne!(seen.contains("https://example.org/"), Answer::Absent);
//! # Ok::<(), umbel_redis::Error>(())
//! ```
//!
//! The connection makes progress only while a thread waits in a call. Threads may share it; each waits for the
//! answer to its call. Do not use it inside an asynchronous program, where the calls panic.

use crate::answer::{Answer, Error, Reason, RemoteFilter};
use std::borrow::Borrow;
use std::future::Future;
use tokio::runtime::{Builder, Runtime};

/// A filter, and the runtime that waits for it.
#[derive(Debug)]
pub struct Blocking<F> {
    runtime: Runtime,
    filter: F,
}

impl<F> Blocking<F> {
    /// Waits for `opening`, and wraps its filter.
    ///
    /// # Errors
    ///
    /// Those of `opening`, or [`Error::Unknown`] if the system cannot start a runtime.
    pub fn open(opening: impl Future<Output = Result<F, Error>>) -> Result<Self, Error> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|_| Error::Unknown(Reason::Refused))?;
        let filter = runtime.block_on(opening)?;
        Ok(Self { runtime, filter })
    }

    /// The filter itself.
    pub const fn filter(&self) -> &F {
        &self.filter
    }

    /// Waits for any other future.
    pub fn wait<R>(&self, work: impl Future<Output = R>) -> R {
        self.runtime.block_on(work)
    }
}

impl<F: RemoteFilter> Blocking<F> {
    /// As [`RemoteFilter::contains`].
    pub fn contains(&self, key: &F::Key) -> Answer {
        self.wait(self.filter.contains(key))
    }

    /// As [`RemoteFilter::insert`].
    ///
    /// # Errors
    ///
    /// As [`RemoteFilter::insert`].
    pub fn insert(&self, key: &F::Key) -> Result<Answer, Error> {
        self.wait(self.filter.insert(key))
    }

    /// As [`RemoteFilter::contains_batch`].
    pub fn contains_batch<A: Borrow<F::Key> + Sync>(&self, keys: &[A]) -> Vec<Answer> {
        self.wait(self.filter.contains_batch(keys))
    }

    /// As [`RemoteFilter::insert_batch`].
    ///
    /// # Errors
    ///
    /// As [`RemoteFilter::insert_batch`].
    pub fn insert_batch<A: Borrow<F::Key> + Sync>(&self, keys: &[A]) -> Result<Vec<Answer>, Error> {
        self.wait(self.filter.insert_batch(keys))
    }
}
