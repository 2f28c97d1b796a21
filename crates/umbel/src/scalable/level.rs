//! One level: a blocked filter with a limit on its number of keys.

use super::shape::Shape;
use crate::blocked::{self, Lines};
use crate::bloom::RawBloom;
use crate::error::InvalidShape;
use crate::hash::Digest;
use crate::layout::ring::{Touch, fetch};
use crate::raw::{Clear, Probe};
use crate::simd::{Isa, Line, Places, half, line_number};
use crate::storage::{Allocate, Heap, StorageMut};
use core::fmt;

/// A view of one level of a [`ScalableBloomFilter`](super::ScalableBloomFilter).
#[derive(Clone)]
pub struct Level {
    filter: RawBloom<Heap, Lines>,
    /// The multiplier that gives keys other positions than in other levels.
    odd: u64,
    fresh: u64,
    capacity: u64,
    rate: f64,
}

impl Level {
    /// Level `number` of a filter of this shape, without keys.
    pub(super) fn new(shape: &Shape, number: u32) -> Result<Self, InvalidShape> {
        let plan = shape.level(number)?;
        Self::of_parts(shape, number, plan, 0, Heap::zeroed(plan.words())?)
    }

    /// A level from a known shape and existing words, with this number of keys.
    pub(super) fn of_parts(
        shape: &Shape,
        number: u32,
        plan: blocked::Shape,
        fresh: u64,
        storage: Heap,
    ) -> Result<Self, InvalidShape> {
        Ok(Self {
            filter: RawBloom::of_parts(plan, Lines::default(), storage)?,
            odd: odd(number),
            fresh,
            capacity: shape.level_capacity(number),
            rate: shape.level_rate(number),
        })
    }

    /// How many new keys the level accepts.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// How many new keys were inserted into the level.
    #[must_use]
    pub const fn fresh(&self) -> u64 {
        self.fresh
    }

    /// The error rate of the level when it is full.
    #[must_use]
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// The current error rate, from the number of set bits. Reads the whole level.
    #[must_use]
    pub fn expected_rate(&self) -> f64 {
        self.filter.rate()
    }

    /// The shape of the level, for a few more items than it accepts: [`Shape::level`].
    #[must_use]
    pub const fn shape(&self) -> &blocked::Shape {
        &self.filter.shape
    }

    /// The memory of the words, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.filter.bytes()
    }

    /// The words, in the format of a blocked filter.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        self.filter.words()
    }

    /// How many further new keys the level accepts.
    pub(super) const fn room(&self) -> u64 {
        self.capacity - self.fresh
    }

    pub(super) fn clear(&mut self) {
        self.filter.clear();
        self.fresh = 0;
    }

    /// Whether the two give the same answers, if their hashers do.
    pub(super) fn same(&self, other: &Self) -> bool {
        self.fresh == other.fresh
            && self.shape() == other.shape()
            && self.odd == other.odd
            && self.words() == other.words()
    }

    /// The positions of the probes of a key in its lines.
    #[inline(always)]
    pub(super) const fn places(&self) -> &'static Places {
        self.filter.layout.places()
    }

    #[inline(always)]
    fn lines(&self) -> &[Line<u64>] {
        self.filter.words().as_chunks().0
    }

    /// The number of a key's first (0) or second (1) line.
    #[inline(always)]
    fn number(&self, digest: Digest, line: usize) -> usize {
        line_number(digest.bits().wrapping_mul(self.odd), line, self.lines().len())
    }

    /// Whether the level has a key with these patterns in its lines.
    #[inline(always)]
    fn has<I: Isa>(&self, isa: I, digest: Digest, patterns: &[I::Pattern; 2], two: bool) -> bool {
        let has = |line: usize| {
            let number = self.number(digest, line);
            isa.line_has_pattern(&self.lines()[number], &patterns[line])
        };
        // Both lines are fetched before the first one is tested.
        if two { has(0) & has(1) } else { has(0) }
    }

    /// Inserts a key, for which there must be room. Returns whether it is new.
    #[inline(always)]
    fn insert<I: Isa>(&mut self, isa: I, digest: Digest) -> bool {
        let (places, numbers) = (self.places(), [0, 1].map(|line| self.number(digest, line)));
        let (lines, _) = self.filter.storage.words_mut().as_chunks_mut();
        let mut set = |line: usize| {
            let (x, lanes) = (half(digest.bits(), line), &places.lanes[line]);
            isa.line_set(&mut lines[numbers[line]], x, lanes)
        };
        let fresh = if places.two { set(0) | set(1) } else { set(0) };
        self.fresh += u64::from(fresh);
        fresh
    }

    /// Prefetches the lines of a key.
    #[inline(always)]
    fn fetch<const AHEAD: usize>(&self, digest: Digest) {
        fetch::<_, AHEAD>(self.lines(), self.number(digest, 0));
        if self.places().two {
            fetch::<_, AHEAD>(self.lines(), self.number(digest, 1));
        }
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

/// The odd number of a level, `docs/hashing.md`: the output of SplitMix64 with seed 0 (Steele, Lea
/// and Flood 2014, figure 16), with its lowest bit set.
const fn odd(level: u32) -> u64 {
    let x = (level as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) | 1
}

/// Whether a level has a key, searched from the newest level.
///
/// Inside its line a key has the same bits in all levels with the same number of probes, which are
/// usually adjacent. So the test pattern is computed once for a run of such levels. There is no
/// branch within a run, because which level has a key is unpredictable.
#[inline(always)]
fn any_has<I: Isa>(mut levels: &[Level], isa: I, digest: Digest) -> bool {
    while let Some(newest) = levels.last() {
        let places = newest.places();
        let pattern = |line: usize| isa.pattern(half(digest.bits(), line), &places.lanes[line]);
        let first = pattern(0);
        let patterns = [first, if places.two { pattern(1) } else { first }];
        let mut found = false;
        while let Some((level, older)) = levels.split_last()
            && core::ptr::eq(level.places(), places)
        {
            found |= level.has(isa, digest, &patterns, places.two);
            levels = older;
        }
        if found {
            return true;
        }
    }
    false
}

/// Looks keys up in all levels.
pub(super) struct LevelsLookUp<'a> {
    pub(super) levels: &'a [Level],
}

impl Touch for LevelsLookUp<'_> {
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

/// Inserts keys that no older level contains into the newest level, which must have room for all of
/// them.
pub(super) struct LevelsInsert<'a> {
    pub(super) older: &'a [Level],
    pub(super) newest: &'a mut Level,
}

impl Touch for LevelsInsert<'_> {
    #[inline(always)]
    fn bytes(&self) -> usize {
        LevelsLookUp { levels: self.older }.bytes() + size_of_val(self.newest.words())
    }

    #[inline(always)]
    fn fetch<const AHEAD: usize>(&self, digest: Digest) {
        LevelsLookUp { levels: self.older }.fetch::<AHEAD>(digest);
        self.newest.fetch::<AHEAD>(digest);
    }

    #[inline(always)]
    fn answer<I: Isa>(&mut self, isa: I, digest: Digest) -> bool {
        !any_has(self.older, isa, digest) && self.newest.insert(isa, digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of `docs/hashing.md`.
    #[test]
    fn a_key_has_the_documented_lines_in_the_levels() {
        let shape = Shape::for_rate(10, 0.01).unwrap();
        let key = Digest::new(0xfb06_4eaa_cb46_2982);
        for (number, (multiplier, product)) in [
            (0xe220_a839_7b1d_cdaf, 0xe16e_d65e_4ded_79de_u64),
            (0x6e78_9e6a_a1b9_65f5, 0xc6f2_1d49_f978_036a),
            (0x06c4_5d18_8009_454f, 0xb2fa_a7e7_1968_d91e),
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(odd(number as u32), multiplier);
            let level = Level::new(&shape, number as u32).unwrap();
            let lines = level.lines().len();
            assert_eq!(level.number(key, 0), line_number(product, 0, lines));
        }
    }
}
