//! Traits of filters over digests, for code that is generic over families.
//!
//! Everyday use needs none of these traits: a [`Filter`](crate::Filter) has methods of the same
//! names. The cores in [`raw`](crate::raw) are used through these traits only. They serve engines
//! that hash a key once and look it up in many filters with that digest.
//!
//! # Batches that do not fit
//!
//! In every family, inserting a batch is the same as inserting its keys one by one and stopping at
//! the first that is [`Full`]. [`BatchFull`] holds the number of keys that were inserted. The
//! filter contains those keys and none of the others, whose answers in `fresh` are `false`. A batch
//! is not all or nothing, because a filter without removal cannot undo an insertion.

use crate::error::{BatchFull, Full, Incompatible};
use crate::hash::Digest;

/// Look-ups by digest.
pub trait Contains {
    /// `false` proves that the digest was never inserted. `true` may be a false positive.
    fn contains_digest(&self, digest: Digest) -> bool;

    /// As [`contains_digest`](Self::contains_digest), for many digests: `found[i]` is the answer
    /// for `digests[i]`. A batch is faster if the filter is larger than the cache.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    fn contains_digests(&self, digests: &[Digest], found: &mut [bool]) {
        assert_eq!(digests.len(), found.len(), "one answer for each key");
        for (digest, found) in digests.iter().zip(found) {
            *found = self.contains_digest(*digest);
        }
    }
}

/// A filter that can hash its keys to digests.
#[doc(hidden)]
pub trait Edge: Contains {
    /// The type of the keys.
    type Key: ?Sized;

    /// The digest of this key in this filter.
    fn digest(&self, key: &Self::Key) -> Digest;
}

/// Insertion by digest, single and in batches.
pub trait Insert: Contains {
    /// Inserts a digest. `Ok(true)` proves that it is new. `Ok(false)` means that the filter
    /// already answered `true` for it.
    ///
    /// # Errors
    ///
    /// [`Full`] if there is no room. The filter is then unchanged.
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full>;

    /// Inserts many digests in order: `fresh[i]` is the answer for `digests[i]`.
    ///
    /// # Errors
    ///
    /// [`BatchFull`] if there is no room for one of them. The digests before it are inserted. It
    /// and those after it are not inserted, and their answers are `false`. See the [module](self).
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    fn insert_digests(&mut self, digests: &[Digest], fresh: &mut [bool]) -> Result<(), BatchFull> {
        assert_eq!(digests.len(), fresh.len(), "one answer for each key");
        fresh.fill(false);
        for (inserted, digest) in digests.iter().enumerate() {
            fresh[inserted] = self.insert_digest(*digest).map_err(|Full| BatchFull { inserted })?;
        }
        Ok(())
    }
}

/// Insertion by digest from many threads at once: an atomic filter.
pub trait InsertShared: Contains {
    /// Inserts a digest. `true` means that it is new. If several threads insert a new digest at the
    /// same time, at least one of them gets `true`, and possibly several.
    fn insert_digest(&self, digest: Digest) -> bool;
}

/// Removal by digest.
pub trait Remove: Contains {
    /// Removes one insertion of a digest. Returns `false` and changes nothing if the digest cannot
    /// have been inserted.
    fn remove_digest(&mut self, digest: Digest) -> bool;
}

/// Comparison with another core: equal digests set equal bits in both.
#[doc(hidden)]
pub trait Compatible<Other = Self> {
    /// Succeeds if the two cores are compatible.
    ///
    /// # Errors
    ///
    /// [`Incompatible`] says what differs.
    fn compatible(&self, other: &Other) -> Result<(), Incompatible>;
}

/// Union with another filter of the same type.
pub trait Union: Contains {
    /// Whether the two can be united.
    ///
    /// # Errors
    ///
    /// As [`union_with`](Self::union_with).
    fn fits(&self, other: &Self) -> Result<(), Incompatible>;

    /// Adds all contents of the other filter: this filter then answers `true` for every digest that
    /// either of the two did.
    ///
    /// # Errors
    ///
    /// [`Incompatible`] if the two differ in more than their contents. Both are then unchanged.
    fn union_with(&mut self, other: &Self) -> Result<(), Incompatible>;
}
