//! The words of a filter and its number of bits. An island of `unsafe`: the arithmetic of the
//! native kernels guarantees that positions are below that number, so they are not checked again.
//! Positions from foreign kernels are checked.

use crate::kernels::{Digits, Kernels};
use crate::parts::bits::{self, SetBit, Word};
use core::any::TypeId;

/// `bits` bits, all of them inside the words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BitTable<V> {
    words: V,
    bits: u64,
}

impl<V> BitTable<V> {
    /// The memory of the bits, in bytes.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> u64 {
        self.bits / 8
    }
}

/// Whether every position of these kernels is guaranteed to be below `bits`.
#[inline(always)]
fn in_range<K: Kernels>() -> bool {
    // `Digits::step` gives the upper half of a product of `bits` with a number below 2^64.
    TypeId::of::<K>() == TypeId::of::<Digits>()
}

impl<'a, W: Word> BitTable<&'a [W]> {
    /// # Panics
    ///
    /// If there are more bits than the words have.
    #[inline(always)]
    pub(crate) fn new(words: &'a [W], bits: u64) -> Self {
        assert!(bits <= words.len() as u64 * 64);
        Self { words, bits }
    }

    /// The next bit of a digest as the lowest of the result, with arbitrary bits above it.
    #[inline(always)]
    #[allow(unsafe_code, reason = "native positions need no check")]
    pub(crate) fn peek<K: Kernels>(&self, kernels: &K, digest: &mut K::Digest) -> u64 {
        let bit = kernels.step(digest, self.bits);
        if in_range::<K>() {
            // SAFETY: `bit` is below `bits`, which is at most 64 times the number of words.
            unsafe { bits::peek_unchecked(self.words, bit) }
        } else {
            bits::peek(self.words, bit)
        }
    }

    /// Prefetches the word of the next bit of a digest, into the first-level or the second-level
    /// cache.
    #[inline(always)]
    pub(crate) fn fetch<K: Kernels, const FAR: bool>(&self, kernels: &K, digest: &mut K::Digest) {
        bits::fetch::<_, FAR>(self.words, kernels.step(digest, self.bits));
    }
}

impl<V: SetBit> BitTable<V> {
    /// # Panics
    ///
    /// If there are more bits than the words have.
    #[inline(always)]
    pub(crate) fn to_change(words: V, bits: u64) -> Self {
        assert!(bits <= words.words().len() as u64 * 64);
        Self { words, bits }
    }

    /// The same bits, read-only.
    #[inline(always)]
    pub(crate) fn reader(&self) -> BitTable<&[V::Word]> {
        BitTable { words: self.words.words(), bits: self.bits }
    }

    /// Sets the next bit of a digest. Returns whether it was set before.
    #[inline(always)]
    #[allow(unsafe_code, reason = "native positions need no check")]
    pub(crate) fn set<K: Kernels>(&mut self, kernels: &K, digest: &mut K::Digest) -> bool {
        let bit = kernels.step(digest, self.bits);
        if in_range::<K>() {
            // SAFETY: `bit` is below `bits`, which is at most 64 times the number of words.
            unsafe { self.words.set_unchecked(bit) }
        } else {
            self.words.set(bit)
        }
    }

    /// Prefetches the words of a digest's first `probes` bits, which will be set.
    #[inline(always)]
    pub(crate) fn fetch_to_set<K: Kernels, const FAR: bool>(
        &self,
        probes: u32,
        kernels: &K,
        digest: K::Digest,
    ) {
        let mut digest = kernels.start(digest);
        for _ in 0..probes {
            self.words.fetch::<FAR>(kernels.step(&mut digest, self.bits));
        }
    }
}
