//! What filters can do with digests, for code that is generic over families.
//!
//! Everyday use needs none of these traits: a [`Filter`](crate::Filter) has methods of the same names.
//! The cores in [`raw`](crate::raw) have no other way in, and that is what they are for: an engine that
//! has hashed a key already asks many of them with one digest.
//!
//! # Batches that do not fit
//!
//! In every family, inserting a batch is the same as inserting its keys one by one and stopping at the
//! first that is [`Full`]. [`BatchFull`] then tells how many were inserted. The filter contains those, and
//! nothing of the others. Their answers in `fresh` are `false`. It is not all or nothing, because a filter
//! without removal cannot take keys back.

use crate::error::{BatchFull, Full, Incompatible};
use crate::hash::Digest;

/// Answers "have I seen this digest?".
pub trait Contains {
    /// `false` is proof that the digest was never inserted; `true` is evidence that it was.
    fn contains_digest(&self, digest: Digest) -> bool;

    /// As [`contains_digest`](Self::contains_digest), for many digests: `found[i]` is the answer for
    /// `digests[i]`. Filters that are larger than the cache are faster this way.
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

/// Knows how its keys become digests.
#[doc(hidden)]
pub trait Edge: Contains {
    /// What users insert and ask for.
    type Key: ?Sized;

    /// The digest that stands for this key here.
    fn digest(&self, key: &Self::Key) -> Digest;
}

/// Takes digests, one at a time or many.
pub trait Insert: Contains {
    /// Inserts a digest. `Ok(true)` is proof that it is new; `Ok(false)` says that the filter
    /// would have answered `true` for it already.
    ///
    /// # Errors
    ///
    /// [`Full`] if there is no room. The filter is then unchanged.
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full>;

    /// Inserts many digests in their order: `fresh[i]` is the answer for `digests[i]`.
    ///
    /// # Errors
    ///
    /// [`BatchFull`] if there is no room for one of them. The digests before it are inserted; it and
    /// those after it are not, and their answers are `false`. See the [module](self).
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

/// Takes digests from many threads at once: an atomic filter.
pub trait InsertShared: Contains {
    /// Inserts a digest. `true` says that it is new, and is said at least once, but maybe to several
    /// threads that insert it at the same time.
    fn insert_digest(&self, digest: Digest) -> bool;
}

/// Forgets digests on request.
pub trait Remove: Contains {
    /// Takes back one insertion of a digest. `false` if it cannot have been inserted, and then
    /// nothing is changed.
    fn remove_digest(&mut self, digest: Digest) -> bool;
}

/// Knows whether its bits mean the same as those of another core, if their digests do.
#[doc(hidden)]
pub trait Compatible<Other = Self> {
    /// What differs, if anything does.
    ///
    /// # Errors
    ///
    /// [`Incompatible`] tells it.
    fn compatible(&self, other: &Other) -> Result<(), Incompatible>;
}

/// Can be united with another of its kind.
pub trait Union: Contains {
    /// Whether the two can be united.
    ///
    /// # Errors
    ///
    /// As [`union_with`](Self::union_with).
    fn fits(&self, other: &Self) -> Result<(), Incompatible>;

    /// Makes this filter answer `true` for everything that either of the two did.
    ///
    /// # Errors
    ///
    /// [`Incompatible`] if the other one differs in more than what was inserted. Neither is
    /// changed then.
    fn union_with(&mut self, other: &Self) -> Result<(), Incompatible>;
}
