//! One level: a blocked filter that knows how many keys it may take.

use super::shape::Shape;
use crate::blocked::{self, Lines};
use crate::bloom::Bloom;
use crate::error::InvalidShape;
use crate::hash::Digest;
use crate::layout::ring::Touch;
use crate::simd::Isa;
use crate::storage::Heap;
use core::fmt;

/// One level of a [`ScalableBloomFilter`](super::ScalableBloomFilter), to look at.
#[derive(Clone)]
pub struct Level {
    filter: Bloom<(), (), Heap, Lines>,
    /// What makes the places of a key other ones than in other levels.
    odd: u64,
    fresh: u64,
    capacity: u64,
    rate: f64,
}

impl Level {
    /// Level `number` of a filter of this shape, without keys.
    pub(super) fn new(shape: &Shape, number: u32) -> Result<Self, InvalidShape> {
        Ok(Self {
            filter: Bloom::with(shape.level(number)?, ())?,
            odd: odd(number),
            fresh: 0,
            capacity: shape.level_capacity(number),
            rate: shape.level_rate(number),
        })
    }

    /// How many fresh keys it takes.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// How many fresh keys it was given.
    #[must_use]
    pub const fn fresh(&self) -> u64 {
        self.fresh
    }

    /// The error rate that it has when it is full.
    #[must_use]
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// The error rate now, judged by the bits that are set. Reads the whole level.
    #[must_use]
    pub fn expected_rate(&self) -> f64 {
        self.filter.expected_rate()
    }

    /// The plan it was made by, for a few more items than it takes: [`Shape::level`].
    #[must_use]
    pub const fn shape(&self) -> &blocked::Shape {
        self.filter.shape()
    }

    /// The memory of the words, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.filter.bytes()
    }

    /// The words, as those of a blocked filter.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        self.filter.words()
    }

    /// How many fresh keys it still takes.
    pub(super) const fn room(&self) -> u64 {
        self.capacity - self.fresh
    }

    pub(super) fn clear(&mut self) {
        self.filter.clear();
        self.fresh = 0;
    }

    /// Whether the two answer everything alike, if their hashers do.
    pub(super) fn same(&self, other: &Self) -> bool {
        self.fresh == other.fresh
            && self.shape() == other.shape()
            && self.odd == other.odd
            && self.words() == other.words()
    }

    /// What the bits of a key are found by in this level.
    #[inline(always)]
    const fn own(&self, digest: Digest) -> Digest {
        Digest::new(digest.bits().wrapping_mul(self.odd))
    }

    #[inline(always)]
    pub(super) fn contains(&self, digest: Digest) -> bool {
        self.filter.contains_digest(self.own(digest))
    }

    /// Inserts a key for which there must be room; whether it is fresh.
    #[inline(always)]
    pub(super) fn insert(&mut self, digest: Digest) -> bool {
        let fresh = self.filter.insert_digest(self.own(digest));
        self.fresh += u64::from(fresh);
        fresh
    }

    /// Starts to load the lines of a key.
    #[inline(always)]
    pub(super) fn fetch<const AHEAD: usize>(&self, digest: Digest) {
        self.filter.layout.fetch::<AHEAD>(self.filter.words(), self.own(digest));
    }
}

impl fmt::Debug for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Level")
            .field("capacity", &self.capacity)
            .field("fresh", &self.fresh)
            .field("rate", &self.rate)
            .field("bits", &self.shape().bits())
            .field("probes", &self.shape().probes())
            .finish()
    }
}

/// The odd number of a level, `docs/hashing.md`: what SplitMix64 with seed 0 puts out (Steele, Lea and
/// Flood 2014, figure 16), with its lowest bit set.
const fn odd(level: u32) -> u64 {
    let x = (level as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) | 1
}

/// Whether a level has a key, the newest asked first.
#[inline(always)]
fn any_has<I: Isa>(levels: &[Level], isa: I, digest: Digest) -> bool {
    levels.iter().rev().any(|level| {
        let filter = &level.filter;
        filter.layout.has(isa, filter.words(), level.own(digest))
    })
}

/// Looks keys up in all levels.
pub(super) struct LookUp<'a> {
    pub(super) levels: &'a [Level],
}

impl Touch for LookUp<'_> {
    #[inline(always)]
    fn bytes(&self) -> usize {
        self.levels.iter().map(|level| size_of_val(level.words())).sum()
    }

    #[inline(always)]
    fn fetch<const AHEAD: usize>(&self, digest: Digest) {
        for level in self.levels {
            level.fetch::<AHEAD>(digest);
        }
    }

    #[inline(always)]
    fn answer<I: Isa>(&mut self, isa: I, digest: Digest) -> bool {
        any_has(self.levels, isa, digest)
    }
}

/// Inserts keys that no older level has into the newest one, which must have room for all of them.
pub(super) struct Insert<'a> {
    pub(super) older: &'a [Level],
    pub(super) newest: &'a mut Level,
}

impl Touch for Insert<'_> {
    #[inline(always)]
    fn bytes(&self) -> usize {
        LookUp { levels: self.older }.bytes() + size_of_val(self.newest.words())
    }

    #[inline(always)]
    fn fetch<const AHEAD: usize>(&self, digest: Digest) {
        LookUp { levels: self.older }.fetch::<AHEAD>(digest);
        self.newest.fetch::<AHEAD>(digest);
    }

    #[inline(always)]
    fn answer<I: Isa>(&mut self, isa: I, digest: Digest) -> bool {
        !any_has(self.older, isa, digest) && self.newest.insert(digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of `docs/hashing.md`.
    #[test]
    fn a_key_has_the_documented_digests_in_the_levels() {
        let shape = Shape::for_rate(10, 0.01).unwrap();
        let key = Digest::new(0xfb06_4eaa_cb46_2982);
        for (number, (multiplier, expected)) in [
            (0xe220_a839_7b1d_cdaf, 0xe16e_d65e_4ded_79de),
            (0x6e78_9e6a_a1b9_65f5, 0xc6f2_1d49_f978_036a),
            (0x06c4_5d18_8009_454f, 0xb2fa_a7e7_1968_d91e),
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(odd(number as u32), multiplier);
            let level = Level::new(&shape, number as u32).unwrap();
            assert_eq!(level.own(key), Digest::new(expected));
        }
    }
}
