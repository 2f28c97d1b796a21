//! The classic layout: the bits of a key can be anywhere in the table. It works with any kernels.

use super::batch::{contains_batch, extend, insert_batch};
use super::probe::{contains, insert};
use super::shape::Shape;
use super::table::BitTable;
use crate::error::InvalidShape;
use crate::kernels::{Digits, Kernels};
use crate::layout::{Layout, StoredLayout, probing};
use crate::parts::bits::{self, SetBit, Word};

impl<K: Kernels> Layout for K {
    type Digest = K::Digest;
    type Shape = Shape;

    fn admit(&mut self, shape: &Shape) -> Result<(), InvalidShape> {
        self.accept(shape)
    }

    fn tag(&self) -> u64 {
        self.check()
    }

    #[inline(always)]
    fn contains<W: Word>(&self, shape: &Shape, words: &[W], digest: K::Digest) -> bool {
        contains(BitTable::new(words, shape.bits()), shape.probes(), self, digest)
    }

    #[inline(always)]
    fn contains_batch<W: Word, A>(
        &self,
        shape: &Shape,
        words: &[W],
        keys: &[A],
        digest: impl Fn(&A) -> K::Digest,
        found: &mut [bool],
    ) {
        let table = BitTable::new(words, shape.bits());
        contains_batch(table, shape.probes(), self, keys, digest, found);
    }

    #[inline(always)]
    fn insert<V: SetBit>(&self, shape: &Shape, words: V, digest: K::Digest) -> bool {
        insert(&mut BitTable::to_change(words, shape.bits()), shape.probes(), self, digest)
    }

    #[inline(always)]
    fn insert_batch<V: SetBit, A>(
        &self,
        shape: &Shape,
        words: V,
        keys: &[A],
        digest: impl Fn(&A) -> K::Digest,
        fresh: &mut [bool],
    ) {
        let table = BitTable::to_change(words, shape.bits());
        insert_batch(table, shape.probes(), self, keys, digest, fresh);
    }

    #[inline(always)]
    fn extend<V: SetBit>(&self, shape: &Shape, words: V, digests: impl Iterator<Item = K::Digest>) {
        extend(BitTable::to_change(words, shape.bits()), shape.probes(), self, digests);
    }

    fn rate<W: Word>(&self, shape: &Shape, words: &[W]) -> f64 {
        shape.rate_at(bits::count(words))
    }
}

probing!(Shape);

/// Only for the native kernels, since foreign kernels have no number that a header could store.
impl StoredLayout for Digits {
    const FAMILY: u16 = 1;

    fn kernels(_: &Shape) -> u16 {
        1
    }

    fn restore(
        kernels: u16,
        items: u64,
        bits: u64,
        probes: u32,
    ) -> Option<Result<Shape, InvalidShape>> {
        (kernels == 1).then(|| Shape::with(items, bits, probes))
    }

    fn has_stray_bits<W: Word>(shape: &Shape, words: &[W]) -> bool {
        let used = shape.bits() % 64;
        used != 0 && words.last().is_some_and(|last| last.load() >> used != 0)
    }
}
