//! The placeholder for a joint filter.

use crate::error::{BatchFull, Full, Incompatible};
use crate::filter::{Contains, Insert, Remove, Union};
use crate::hash::Digest;

/// A filter that answers `true` for every key and takes no memory. As a joint filter it has no
/// effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Everything;

impl Contains for Everything {
    /// Always `true`.
    #[inline]
    fn contains_digest(&self, _: Digest) -> bool {
        true
    }
}

impl Insert for Everything {
    /// No key is new, and there is always room.
    #[inline]
    fn insert_digest(&mut self, _: Digest) -> Result<bool, Full> {
        Ok(false)
    }

    #[inline]
    fn insert_digests(&mut self, digests: &[Digest], fresh: &mut [bool]) -> Result<(), BatchFull> {
        assert_eq!(digests.len(), fresh.len(), "one answer for each key");
        fresh.fill(false);
        Ok(())
    }
}

impl Remove for Everything {
    /// Always `true`, and without effect.
    #[inline]
    fn remove_digest(&mut self, _: Digest) -> bool {
        true
    }
}

impl Union for Everything {
    fn fits(&self, _: &Self) -> Result<(), Incompatible> {
        Ok(())
    }

    fn union_with(&mut self, _: &Self) -> Result<(), Incompatible> {
        Ok(())
    }
}
