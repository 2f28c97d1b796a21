//! Filters behind the interface of the guard: generations, one after another, that are read and changed through
//! `&self`.
//!
//! ```text
//!     Kind  -- begin -->  Generation  -- add, seal -->  asked, added to, removed from  -->  dropped
//!           -- load  -->
//! ```
//!
//! | kind | for | remove | where |
//! |---|---|---|---|
//! | [`Local::blocked`], [`Local::classic`] | sets that grow: planned for more keys, rebuilt when full | no | memory |
//! | [`Local::scalable`] | sets that grow without a limit | no | memory |
//! | [`Local::cuckoo`], [`Local::quotient`], [`Local::counting`] | keys that are deleted | yes | memory |
//! | [`Local::ribbon`], [`Local::fuse`], [`Local::xor`] | static sets | no | memory |
//! | `Shared` (feature `shared`) | fleets: one filter for all | no | Redis or Valkey |
//!
//! A generation may be slow and may fail, so it can live in another process. One in memory answers at once, and
//! pays nothing for this interface.

mod local;
#[cfg(feature = "shared")]
mod shared;

pub use local::{Family, Local, LocalGeneration};
#[cfg(feature = "shared")]
pub use shared::{Shared, SharedGeneration};

use crate::error::Trouble;
use std::future::{Future, ready};
use std::io;
use std::path::Path;
use std::time::Duration;
use umbel::Digest;
use umbel::format::OpenError;

/// Creates the filters of a guard, one generation after another.
pub trait Kind: Send + Sync + 'static {
    /// The filters of this kind.
    type Generation: Generation;

    /// Whether several guards use the same filter. A key that cannot be added to it must not be put, because
    /// the other guards would report it absent.
    const SHARED: bool = false;

    /// The target false positive rate.
    fn target(&self) -> f64;

    /// Whether keys can be added to a filter that is in use.
    fn takes(&self) -> bool {
        true
    }

    /// Whether keys can be removed.
    fn removes(&self) -> bool {
        false
    }

    /// An empty filter for about `items` keys. It accepts keys, but is not used for look-ups yet.
    ///
    /// # Errors
    ///
    /// If the filter cannot be created.
    fn begin(&self, items: u64) -> impl Future<Output = Result<Self::Generation, Trouble>> + Send;

    /// How long writes of other guards may continue without adding to a filter that has just begun. Zero,
    /// unless the filter is [shared](Self::SHARED).
    fn grace(&self) -> Duration {
        Duration::ZERO
    }

    /// Deletes a filter for all guards that share it, unless it was already replaced.
    ///
    /// # Errors
    ///
    /// If the filter may still exist.
    fn discard(
        &self,
        generation: &Self::Generation,
    ) -> impl Future<Output = Result<(), Trouble>> + Send {
        let _ = generation;
        ready(Ok(()))
    }

    /// The filter that [`Generation::save`] wrote to `path`.
    ///
    /// # Errors
    ///
    /// If the file is missing or damaged, or has a filter of another kind.
    fn load(&self, path: &Path) -> Result<Self::Generation, OpenError>;
}

/// One filter.
pub trait Generation: Send + Sync + 'static {
    /// The digest of a key in this filter. Generations may have different secrets.
    fn digest(&self, key: &[u8]) -> Digest;

    /// A number that differs between secrets without revealing them.
    fn check(&self) -> u64;

    /// `Ok(false)` proves that the digest was never added, or was removed as often as it was added.
    ///
    /// # Errors
    ///
    /// If the filter cannot tell.
    fn contains(&self, digest: Digest) -> impl Future<Output = Result<bool, Trouble>> + Send;

    /// Adds a digest, even if the filter has it already. Filters with deletion count additions and removals.
    ///
    /// # Errors
    ///
    /// If the filter may not report the digest as present from now on.
    fn add(&self, digest: Digest) -> impl Future<Output = Result<(), Trouble>> + Send;

    /// Adds many digests.
    ///
    /// # Errors
    ///
    /// If one of them could not be added.
    fn add_all(&self, digests: &[Digest]) -> impl Future<Output = Result<(), Trouble>> + Send {
        async move {
            for digest in digests {
                self.add(*digest).await?;
            }
            Ok(())
        }
    }

    /// The number of these digests that the filter does not contain.
    ///
    /// # Errors
    ///
    /// If the filter cannot tell.
    fn missing(&self, digests: &[Digest]) -> impl Future<Output = Result<u64, Trouble>> + Send {
        async move {
            let mut missing = 0;
            for digest in digests {
                missing += u64::from(!self.contains(*digest).await?);
            }
            Ok(missing)
        }
    }

    /// Reverses one [`add`](Self::add). Only called after the guard has proof of such an `add`.
    fn remove(&self, digest: Digest) -> impl Future<Output = ()> + Send {
        let _ = digest;
        ready(())
    }

    /// Whether another guard that shares this filter has added all keys of the data set, so that no scan is
    /// needed.
    ///
    /// # Errors
    ///
    /// If the filter cannot tell.
    fn is_complete(&self) -> impl Future<Output = Result<bool, Trouble>> + Send {
        ready(Ok(false))
    }

    /// Called when all keys of the scan were added.
    ///
    /// # Errors
    ///
    /// If the filter could not be built from them.
    fn seal(&self) -> impl Future<Output = Result<(), Trouble>> + Send {
        ready(Ok(()))
    }

    /// Called after every check has passed, before the filter is used.
    ///
    /// # Errors
    ///
    /// If the filter cannot be put to use.
    fn activate(&self) -> impl Future<Output = Result<(), Trouble>> + Send {
        ready(Ok(()))
    }

    /// Size, fill and false positive rate. This may read the whole filter.
    fn measure(&self) -> Measure;

    /// Saves the filter at `path`, whole or not at all, with every digest whose [`add`](Self::add) had
    /// returned.
    ///
    /// # Errors
    ///
    /// An error of the file system, or [`io::ErrorKind::Unsupported`] if the filter is not in this process.
    fn save(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The size, the fill and the false positive rate of a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// The memory of its words.
    pub bytes: u64,
    /// The number of keys it is planned for.
    pub capacity: u64,
    /// The number of keys it has, as far as it can tell.
    pub items: u64,
    /// The share of its bits, cells or slots that are in use.
    pub fill: f64,
    /// The expected false positive rate.
    pub rate: f64,
}
