//! The positions of the cells of a key: a common interface for all counting filters.

use super::Width;
use crate::error::InvalidShape;
use crate::hash::Digest;
use crate::kernels::{Digits, Kernels};
use crate::layout::Probing;
use crate::layout::cells::CellTable;
use crate::parts::cells::Cells;

/// How a counting filter assigns cells in words to a key.
///
/// | layout | the cells of a key are | filter |
/// |---|---|---|
/// | [`Anywhere`] | anywhere | [`CountingBloomFilter`](super::CountingBloomFilter) |
/// | [`InLine`](super::InLine) | in one cache line | [`BlockedCountingBloomFilter`](super::BlockedCountingBloomFilter) |
///
/// Every method takes the shape of the filter and all its words. Sealed, because the guarantees of
/// a filter depend on it.
#[doc(hidden)]
pub trait CellLayout: Copy + Default + sealed::Sealed + 'static {
    /// The shape of such a filter.
    type Shape: Probing;

    /// Checks whether a filter of this shape can be created.
    ///
    /// # Errors
    ///
    /// If the shape is invalid.
    fn admit(shape: &Self::Shape) -> Result<(), InvalidShape>;

    /// The number, in a header, of the function from a digest to cells.
    const KERNELS: u8;

    /// The shape that a header describes.
    ///
    /// # Errors
    ///
    /// If the shape is invalid.
    fn restore(
        width: Width,
        items: u64,
        cells: u64,
        probes: u32,
    ) -> Result<Self::Shape, InvalidShape>;

    /// The smallest number in any cell of the digest.
    fn count(&self, shape: &Self::Shape, words: &[u64], digest: Digest) -> u64;

    /// Whether all cells of the digest are above zero.
    fn contains(&self, shape: &Self::Shape, words: &[u64], digest: Digest) -> bool;

    /// As [`contains`](Self::contains), for each key.
    fn contains_batch<A>(
        &self,
        shape: &Self::Shape,
        words: &[u64],
        keys: &[A],
        digest: impl Fn(&A) -> Digest,
        found: &mut [bool],
    );

    /// Adds one to every cell of the digest. Returns whether one of them was zero. A cell that the
    /// digest has twice gets two.
    fn insert(&self, shape: &Self::Shape, words: &mut [u64], digest: Digest) -> bool;

    /// As [`insert`](Self::insert), for each key in order.
    fn insert_batch<A>(
        &self,
        shape: &Self::Shape,
        words: &mut [u64],
        keys: &[A],
        digest: impl Fn(&A) -> Digest,
        fresh: &mut [bool],
    );

    /// As [`insert`](Self::insert), for each digest, without a result.
    fn extend(&self, shape: &Self::Shape, words: &mut [u64], digests: impl Iterator<Item = Digest>);

    /// Subtracts what [`insert`](Self::insert) added, unless a cell is zero. Returns whether it
    /// did.
    fn remove(&self, shape: &Self::Shape, words: &mut [u64], digest: Digest) -> bool;

    /// As [`remove`](Self::remove), for each key in order.
    fn remove_batch<A>(
        &self,
        shape: &Self::Shape,
        words: &mut [u64],
        keys: &[A],
        digest: impl Fn(&A) -> Digest,
        removed: &mut [bool],
    );

    /// The error rate of a filter with these words.
    fn rate(&self, shape: &Self::Shape, words: &[u64]) -> f64;
}

pub(super) mod sealed {
    /// Seals the trait: only layouts of this crate implement it.
    #[expect(unnameable_types, reason = "sealed: only this module implements it")]
    pub trait Sealed {}
}

/// The layout of the classic counting filter: the cells of a key are at the bit positions of a
/// classic Bloom filter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Anywhere;

impl sealed::Sealed for Anywhere {}

#[inline(always)]
fn table<V>(shape: &super::Shape, words: V) -> CellTable<V> {
    let cells = Cells::new(words, shape.width().bits());
    CellTable { cells, len: shape.cells(), probes: shape.probes() }
}

impl CellLayout for Anywhere {
    type Shape = super::Shape;

    const KERNELS: u8 = 1;

    fn admit(shape: &super::Shape) -> Result<(), InvalidShape> {
        Digits.accept(shape.positions())
    }

    fn restore(
        width: Width,
        items: u64,
        cells: u64,
        probes: u32,
    ) -> Result<super::Shape, InvalidShape> {
        super::Shape::of(crate::bloom::Shape::with(items, cells, probes)?, width)
    }

    #[inline(always)]
    fn count(&self, shape: &super::Shape, words: &[u64], digest: Digest) -> u64 {
        table(shape, words).min(digest)
    }

    #[inline(always)]
    fn contains(&self, shape: &super::Shape, words: &[u64], digest: Digest) -> bool {
        table(shape, words).contains(digest)
    }

    #[inline(always)]
    fn contains_batch<A>(
        &self,
        shape: &super::Shape,
        words: &[u64],
        keys: &[A],
        digest: impl Fn(&A) -> Digest,
        found: &mut [bool],
    ) {
        table(shape, words).contains_batch(keys, digest, found);
    }

    #[inline(always)]
    fn insert(&self, shape: &super::Shape, words: &mut [u64], digest: Digest) -> bool {
        table(shape, words).insert(digest)
    }

    #[inline(always)]
    fn insert_batch<A>(
        &self,
        shape: &super::Shape,
        words: &mut [u64],
        keys: &[A],
        digest: impl Fn(&A) -> Digest,
        fresh: &mut [bool],
    ) {
        let digests = keys.iter().map(digest);
        table(shape, words).change_each(digests, fresh, |table, digest| table.insert(digest));
    }

    #[inline(always)]
    fn extend(
        &self,
        shape: &super::Shape,
        words: &mut [u64],
        digests: impl Iterator<Item = Digest>,
    ) {
        table(shape, words).fetch_ahead(digests, |table, digest| _ = table.insert(digest));
    }

    #[inline(always)]
    fn remove(&self, shape: &super::Shape, words: &mut [u64], digest: Digest) -> bool {
        table(shape, words).remove(digest)
    }

    #[inline(always)]
    fn remove_batch<A>(
        &self,
        shape: &super::Shape,
        words: &mut [u64],
        keys: &[A],
        digest: impl Fn(&A) -> Digest,
        removed: &mut [bool],
    ) {
        let digests = keys.iter().map(digest);
        table(shape, words).change_each(digests, removed, |table, digest| table.remove(digest));
    }

    fn rate(&self, shape: &super::Shape, words: &[u64]) -> f64 {
        let nonzero = table(shape, words).cells.count_nonzero(shape.cells());
        shape.positions().rate_at(nonzero)
    }
}
