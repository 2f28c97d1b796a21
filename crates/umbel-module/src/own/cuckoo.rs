//! A cuckoo filter whose fingerprint length follows from its rate. It does not grow.

use super::{Loading, has_a_secret, hasher};
use crate::error::{Invalid, Refused};
use umbel::any::AnyHasher;
use umbel::cuckoo::Shape;
use umbel::hash::Digester;
use umbel::{CuckooFilter, Digest};

/// A cuckoo filter beyond RedisBloom's.
#[derive(Debug)]
pub enum OwnCuckoo {
    /// The filter, and the number of keys that were removed.
    Filter(CuckooFilter<[u8], AnyHasher>, u64),
    /// A filter whose chunks are still being loaded.
    Loading(Loading),
}

impl OwnCuckoo {
    /// An empty filter.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if the shape is invalid, or there is not enough memory.
    pub fn new(capacity: u64, err_rate: f64) -> Result<Self, Invalid> {
        let shape =
            Shape::for_rate(capacity, err_rate).map_err(|_| Invalid::Field("error rate"))?;
        let filter = CuckooFilter::with(shape, hasher(None)).map_err(|_| Invalid::NoMemory)?;
        Ok(Self::Filter(filter, 0))
    }

    /// Whether its stream may contain a secret. While it is being loaded, only its bytes are known.
    #[must_use]
    pub fn may_have_a_secret(&self) -> bool {
        self.filter().is_none_or(|filter| has_a_secret(filter.hasher()))
    }

    /// The filter, unless its chunks are still being loaded.
    #[must_use]
    pub const fn filter(&self) -> Option<&CuckooFilter<[u8], AnyHasher>> {
        if let Self::Filter(filter, _) = self { Some(filter) } else { None }
    }

    /// The digest of a key.
    #[must_use]
    pub fn digest(&self, key: &[u8]) -> Digest {
        self.filter().map_or(Digest::new(0), |filter| filter.hasher().digest(key))
    }

    /// Adds a key, even if it is already present.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`] if there is no room. The filter is then unchanged.
    pub fn add(&mut self, digest: Digest) -> Result<(), Refused> {
        let Self::Filter(filter, _) = self else { return Err(Refused::Full) };
        filter.insert_digest(digest).map(|_| ()).map_err(|_| Refused::Full)
    }

    /// Removes one copy of a key; `false` if there is none.
    pub fn remove(&mut self, digest: Digest) -> bool {
        let Self::Filter(filter, deletes) = self else { return false };
        let removed = filter.remove_digest(digest);
        *deletes = deletes.saturating_add(u64::from(removed));
        removed
    }

    /// The number of bytes of its table.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Filter(filter, _) => filter.bytes(),
            Self::Loading(loading) => loading.bytes().len() as u64,
        }
    }

    /// A copy, or `None` if there is not enough memory.
    #[must_use]
    pub fn try_clone(&self) -> Option<Self> {
        Some(match self {
            Self::Filter(filter, deletes) => Self::Filter(filter.try_clone().ok()?, *deletes),
            Self::Loading(loading) => Self::Loading(loading.try_clone()?),
        })
    }
}
