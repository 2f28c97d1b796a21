//! What every family can do, for code that is generic over families. Everyday use needs none of it:
//! the filters have methods of the same names that take keys.

use crate::error::{Full, Incompatible};
use crate::hash::Digest;

/// Answers "have I seen this digest?".
pub trait Filter {
    /// `false` is proof that the digest was never inserted; `true` is evidence that it was.
    fn contains_digest(&self, digest: Digest) -> bool;
}

/// Knows how its keys become digests.
pub trait Edge: Filter {
    /// What users insert and ask for.
    type Key: ?Sized;

    /// The digest that stands for this key here.
    fn digest(&self, key: &Self::Key) -> Digest;
}

/// Takes digests one at a time.
pub trait Insert: Filter {
    /// Inserts a digest. `Ok(true)` is proof that it is new; `Ok(false)` says that the filter
    /// would have answered `true` for it already.
    ///
    /// # Errors
    ///
    /// [`Full`] if there is no room. The filter is then unchanged.
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full>;
}

/// Forgets digests on request.
pub trait Remove: Filter {
    /// Takes back one insertion of a digest. `false` if it cannot have been inserted, and then
    /// nothing is changed.
    fn remove_digest(&mut self, digest: Digest) -> bool;
}

/// Can be united with another of its kind.
pub trait Union: Filter {
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
