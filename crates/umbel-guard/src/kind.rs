//! Filters as the guard uses them: generations, one after another, that are asked and changed through `&self`.
//!
//! ```text
//!     Kind  -- begin -->  Generation  -- add, seal -->  asked, added to, removed from  -->  dropped
//!           -- load  -->
//! ```
//!
//! | kind | for | remove | where |
//! |---|---|---|---|
//! | [`Local::blocked`], [`Local::classic`] | sets that grow: planned for more keys, built anew when full | no | memory |
//! | [`Local::scalable`] | sets that grow without end | no | memory |
//! | [`Local::cuckoo`], [`Local::quotient`], [`Local::counting`] | keys that leave again | yes | memory |
//! | [`Local::ribbon`], [`Local::fuse`], [`Local::xor`] | sets that do not change | no | memory |
//! | `Shared` (feature `shared`) | fleets: one filter for all | no | Redis or Valkey |
//!
//! A generation may be slow and may fail, so that it can be in another process; one in memory is ready when
//! it is asked, and costs nothing for that.

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

/// Makes the filters of a guard, one generation after another.
pub trait Kind: Send + Sync + 'static {
    /// Its filters.
    type Generation: Generation;

    /// Whether others use the same filter. Then a key that cannot be added must not be put: they would
    /// take it for absent.
    const SHARED: bool = false;

    /// The rate that is aimed at.
    fn target(&self) -> f64;

    /// Whether keys can be added once a filter is in use.
    fn takes(&self) -> bool {
        true
    }

    /// Whether keys can be removed.
    fn removes(&self) -> bool {
        false
    }

    /// An empty filter for about so many keys, which takes keys and is not asked yet.
    ///
    /// # Errors
    ///
    /// If there can be no such filter.
    fn begin(&self, items: u64) -> impl Future<Output = Result<Self::Generation, Trouble>> + Send;

    /// How long writes of others may go on that know nothing of a filter that has just begun. Nothing, unless it is
    /// [shared](Self::SHARED).
    fn grace(&self) -> Duration {
        Duration::ZERO
    }

    /// Takes a filter away from all who share it, unless another one is in its place already.
    ///
    /// # Errors
    ///
    /// If it may be there still.
    fn discard(
        &self,
        generation: &Self::Generation,
    ) -> impl Future<Output = Result<(), Trouble>> + Send {
        let _ = generation;
        ready(Ok(()))
    }

    /// The filter that [`Generation::save`] left at `path`.
    ///
    /// # Errors
    ///
    /// If it is not there, is damaged, or is of another kind.
    fn load(&self, path: &Path) -> Result<Self::Generation, OpenError>;
}

/// One filter.
pub trait Generation: Send + Sync + 'static {
    /// The digest of a key here. Generations may have different secrets.
    fn digest(&self, key: &[u8]) -> Digest;

    /// A number that tells secrets apart without giving them away.
    fn check(&self) -> u64;

    /// `Ok(false)` is proof that the digest was never added, or was removed as often.
    ///
    /// # Errors
    ///
    /// If it cannot tell.
    fn contains(&self, digest: Digest) -> impl Future<Output = Result<bool, Trouble>> + Send;

    /// Adds a digest, once more if it is there: what is added and removed is counted where keys can be
    /// removed.
    ///
    /// # Errors
    ///
    /// If the filter may not answer `true` for it from now on.
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

    /// How many of these digests it does not hold.
    ///
    /// # Errors
    ///
    /// If it cannot tell.
    fn missing(&self, digests: &[Digest]) -> impl Future<Output = Result<u64, Trouble>> + Send {
        async move {
            let mut missing = 0;
            for digest in digests {
                missing += u64::from(!self.contains(*digest).await?);
            }
            Ok(missing)
        }
    }

    /// Takes back one [`add`](Self::add). Only called with proof that there was one to take back.
    fn remove(&self, digest: Digest) -> impl Future<Output = ()> + Send {
        let _ = digest;
        ready(())
    }

    /// Whether another one who shares it has added all keys of the data set, so that no scan is needed.
    ///
    /// # Errors
    ///
    /// If it cannot tell.
    fn is_complete(&self) -> impl Future<Output = Result<bool, Trouble>> + Send {
        ready(Ok(false))
    }

    /// All keys of the scan were added.
    ///
    /// # Errors
    ///
    /// If the filter could not be built from them.
    fn seal(&self) -> impl Future<Output = Result<(), Trouble>> + Send {
        ready(Ok(()))
    }

    /// It is about to be asked: every check has been passed.
    ///
    /// # Errors
    ///
    /// If it cannot be put to use.
    fn activate(&self) -> impl Future<Output = Result<(), Trouble>> + Send {
        ready(Ok(()))
    }

    /// How large, how full, how often wrong. May read the whole filter.
    fn measure(&self) -> Measure;

    /// Saves it at `path`, whole or not at all: every digest whose [`add`](Self::add) had returned.
    ///
    /// # Errors
    ///
    /// What the file system says; [`io::ErrorKind::Unsupported`] if it is kept elsewhere.
    fn save(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// How large a filter is, how full, and how often it is wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// The memory of its words.
    pub bytes: u64,
    /// How many keys it is planned for.
    pub capacity: u64,
    /// How many it has, as far as it can tell.
    pub items: u64,
    /// The share of its bits, cells or slots that are taken.
    pub fill: f64,
    /// The share of absent keys it takes for present.
    pub rate: f64,
}
