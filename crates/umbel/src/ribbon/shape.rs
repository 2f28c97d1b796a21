//! The shape of a ribbon filter: its layers, their positions among the words, and the number of
//! rows for a number of keys.

use super::parity::{GROUP, Way};
use super::row::{Equation, fraction_of, remixed};
use crate::error::InvalidShape;
use crate::frozen::{bits_for_rate, check_fingerprint, longest};
use crate::sizing::{self, getters, shape};

/// How many adjacent rows a key selects from: the width of the ribbon, w.
pub(super) const WIDTH: u64 = 64;

/// The number of starts of a bucket, which share a threshold: BuRR, section 4, for w = 64.
pub(super) const BUCKET: u64 = 128;

/// The maximum number of layers that bump keys. The layer below them bumps none.
pub(super) const MAX_TIERS: usize = 4;

/// The thresholds of 2 bits: a key at this place of its bucket or further is bumped. BuRR, table 1,
/// for w = 64. The last threshold bumps no key.
const THRESHOLDS: [u8; 4] = [0, 88, 110, 128];

/// The number of thresholds in a word.
pub(super) const BUCKETS_PER_WORD: u64 = 32;

/// How much smaller a layer is than its number of keys, in thousandths: BuRR, section 5, −2w/3(4B +
/// w).
const OVERLOAD: u64 = 74;

/// The share of keys that a layer bumps, in thousandths: measured.
const BUMPED: u64 = 76;

/// Up to this many keys, a plain ribbon is no larger than a bumped one.
pub(super) const MAX_PLAIN: u64 = 3_000;

/// The positions of the columns of some rows: blocks of 64 rows with a word for each column, and
/// then the remaining `rest` rows, one column after another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Grid {
    /// The first word.
    pub(super) base: usize,
    pub(super) blocks: usize,
    pub(super) rest: u32,
}

impl Grid {
    pub(super) const fn new(base: usize, rows: u64) -> Self {
        Self { base, blocks: (rows / 64) as usize, rest: (rows % 64) as u32 }
    }

    pub(super) const fn rows(&self) -> u64 {
        self.blocks as u64 * 64 + self.rest as u64
    }

    /// The number of words of this many columns.
    pub(super) const fn words(&self, bits: u32) -> usize {
        self.blocks * bits as usize + (self.rest as usize * bits as usize).div_ceil(64)
    }
}

/// A layer that bumps keys to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tier {
    /// A multiple of [`BUCKET`].
    pub(super) starts: u64,
    pub(super) grid: Grid,
    /// The first word of the thresholds.
    pub(super) thresholds: usize,
}

impl Tier {
    /// A layer for this many keys, more than [`MAX_PLAIN`].
    pub(super) const fn for_items(items: u64) -> Self {
        let rows = items - items / 1000 * OVERLOAD - items % 1000 * OVERLOAD / 1000;
        let buckets = (rows - WIDTH + BUCKET / 2) / BUCKET;
        Self::with_starts(buckets * BUCKET)
    }

    /// A layer in which keys begin in this many rows.
    pub(super) const fn with_starts(starts: u64) -> Self {
        Self { starts, grid: Grid::new(0, starts + WIDTH), thresholds: 0 }
    }

    /// Whether a layer can have this many starts.
    pub(super) const fn can_have(starts: u64) -> bool {
        starts > 0 && starts <= sizing::MAX_BITS && starts.is_multiple_of(BUCKET)
    }

    pub(super) const fn buckets(&self) -> u64 {
        self.starts / BUCKET
    }

    pub(super) const fn threshold_words(&self) -> usize {
        self.buckets().div_ceil(BUCKETS_PER_WORD) as usize
    }

    /// The place of a key: its bucket, and its position there in the order of insertion.
    #[inline(always)]
    pub(super) const fn place(&self, hash: u64) -> BucketPlace {
        BucketPlace(fraction_of(self.starts, hash))
    }
}

/// The place of a key in a layer that bumps.
///
/// The keys of a bucket are inserted from its last row to its first. Keys in its first rows compete
/// with keys that overflowed from the previous bucket, so they are the ones that are bumped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BucketPlace(pub(super) u64);

impl BucketPlace {
    #[inline(always)]
    pub(super) const fn bucket(self) -> u64 {
        self.0 / BUCKET
    }

    /// Its position in the bucket.
    #[inline(always)]
    const fn number(self) -> u8 {
        (self.0 % BUCKET) as u8
    }

    /// Its first row.
    #[inline(always)]
    pub(super) const fn row(self) -> u64 {
        self.0 ^ (BUCKET - 1)
    }

    /// The lowest threshold that bumps this key and no earlier key of another class.
    #[inline(always)]
    pub(super) const fn class(self) -> u8 {
        (self.number() >= THRESHOLDS[1]) as u8 + (self.number() >= THRESHOLDS[2]) as u8
    }

    #[inline(always)]
    pub(super) const fn is_bumped_by(self, threshold: u8) -> bool {
        const ALL: u32 = u32::from_le_bytes(THRESHOLDS);
        self.number() >= (ALL >> (8 * threshold)) as u8
    }
}

#[inline(always)]
pub(super) const fn threshold(word: u64, bucket: u64) -> u8 {
    (word >> (bucket % BUCKETS_PER_WORD * 2)) as u8 & 3
}

/// The layer that bumps no keys: it holds keys that other layers bumped, or a small set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LastLayer {
    /// 0 if there are no keys.
    pub(super) starts: u64,
    pub(super) grid: Grid,
    pub(super) seed: u64,
    /// How many of the 64 bits the coefficients do not use.
    narrow: u32,
}

impl LastLayer {
    /// With this many rows, unless that is 0, and a seed.
    pub(super) const fn with_rows(rows: u64, seed: u64) -> Self {
        let width = if rows < WIDTH { rows } else { WIDTH };
        let starts = if rows == 0 { 0 } else { rows - width + 1 };
        let narrow = if rows == 0 { 0 } else { (WIDTH - width) as u32 };
        Self { starts, grid: Grid::new(0, rows), seed, narrow }
    }

    /// How many rows the layer has for this many keys in the `attempt`-th attempt, from 0 on.
    pub(super) const fn rows(items: u64, attempt: u32) -> u64 {
        if items == 0 {
            return 0;
        }
        let slack = if items <= 80 { 1 } else { items / 50 + items.ilog2() as u64 / 12 };
        let more = (attempt / 4) as u64 * (1 + items / 200);
        items + slack + more
    }

    #[inline(always)]
    pub(super) const fn hash(&self, hash: u64) -> u64 {
        remixed(hash, self.seed)
    }

    /// The first row of a key with this hash, in this layer.
    #[inline(always)]
    pub(super) const fn row(&self, hash: u64) -> u64 {
        fraction_of(self.starts, hash)
    }

    /// The coefficients of a key: any of a few rows, or else the first one of 64 and any others.
    #[inline(always)]
    pub(super) const fn coefficients(&self, equation: Equation) -> u64 {
        let first = (self.narrow == 0) as u64;
        equation.coefficients >> self.narrow | first
    }
}

/// The shape of a ribbon filter or map: its layers, and how its keys are mixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub(super) items: u64,
    pub(super) bits: u32,
    /// How often digests are mixed first: nearly always zero times.
    pub(super) rounds: u32,
    pub(super) seed: u64,
    pub(super) words: u64,
    /// The number of layers in `tiers`.
    pub(super) depth: u32,
    /// Whether there are tiers, few bits and no rounds, as in most filters.
    pub(super) usual: bool,
    pub(super) tiers: [Tier; MAX_TIERS],
    pub(super) plain: LastLayer,
    pub(super) way: Way,
}

impl Shape {
    /// With these layers, whose words are adjacent: the columns of all, then the thresholds of all.
    /// The keys are mixed in this many rounds, with a seed.
    pub(super) fn of_layers(
        items: u64,
        bits: u32,
        (rounds, seed): (u32, u64),
        layers: &[Tier],
        mut plain: LastLayer,
    ) -> Self {
        let mut tiers = [Tier { starts: 0, grid: Grid::new(0, 0), thresholds: 0 }; MAX_TIERS];
        let (mut number, mut at) = (0, 0);
        while number < layers.len() {
            tiers[number] = layers[number];
            tiers[number].grid.base = at;
            at += layers[number].grid.words(bits);
            number += 1;
        }
        plain.grid.base = at;
        at += plain.grid.words(bits);
        number = 0;
        while number < layers.len() {
            tiers[number].thresholds = at;
            at += layers[number].threshold_words();
            number += 1;
        }
        let depth = layers.len() as u32;
        let usual = depth > 0 && rounds == 0 && bits as usize <= GROUP;
        let way = Way::now();
        Self { items, bits, rounds, seed, words: at as u64, depth, usual, tiers, plain, way }
    }

    /// The layers that bump keys to the next. There is one more layer below them.
    #[inline(always)]
    pub(super) fn tiers(&self) -> &[Tier] {
        &self.tiers[..self.depth as usize]
    }

    /// Whether the short path finds most keys: in a layer that bumps, by their digests, in one
    /// group of columns.
    #[inline(always)]
    pub(super) const fn is_usual(&self) -> bool {
        self.usual
    }

    /// The hash of a key in the first layer.
    #[inline(always)]
    pub(super) const fn first_hash(&self, digest: u64) -> u64 {
        if self.rounds == 0 { digest } else { self.mixed(digest) }
    }

    #[cold]
    const fn mixed(&self, digest: u64) -> u64 {
        let (mut hash, mut round) = (digest, 0);
        while round < self.rounds {
            hash = remixed(hash, self.seed);
            round += 1;
        }
        hash
    }

    /// The number of layers.
    #[must_use]
    pub const fn layers(&self) -> u32 {
        self.depth + (self.plain.starts > 0) as u32
    }
}

/// Estimates before a filter is built. The exact size of a filter depends on its keys.
impl Shape {
    /// For `items` different keys at this error rate.
    ///
    /// # Errors
    ///
    /// If the rate is not valid, is below 2<sup>−32</sup>, or the filter would be too large.
    pub fn for_rate(items: u64, rate: f64) -> Result<Self, InvalidShape> {
        Self::for_bits(items, bits_for_rate(rate)?)
    }

    /// The filter with the longest fingerprints for `items` different keys in at most `bytes` bytes.
    ///
    /// # Errors
    ///
    /// If there is not enough memory for fingerprints of one bit.
    pub fn for_memory(items: u64, bytes: u64) -> Result<Self, InvalidShape> {
        longest(bytes, |bits| Self::for_bits(items, bits))
    }

    /// For `items` different keys with fingerprints, or values, of `bits` bits.
    ///
    /// # Errors
    ///
    /// If `bits` is not from 1 to [`MAX_BITS`](crate::frozen::MAX_BITS), or the filter would be too
    /// large.
    pub fn for_bits(items: u64, bits: u32) -> Result<Self, InvalidShape> {
        check_fingerprint(bits)?;
        sizing::check_bits(items.saturating_mul(bits.into()))?;
        let (mut tiers, mut depth, mut left) = ([Tier::default(); MAX_TIERS], 0, items);
        while depth < MAX_TIERS && left > MAX_PLAIN {
            tiers[depth] = Tier::for_items(left);
            (depth, left) = (depth + 1, left * BUMPED / 1000);
        }
        let plain = LastLayer::with_rows(LastLayer::rows(left, 0), 0);
        Ok(Self::of_layers(items, bits, (0, 0), &tiers[..depth], plain))
    }

    getters! {
        /// The number of different keys.
        items: u64;
    }

    /// The bits of a fingerprint, or of a value, r: the rate is 2<sup>−r</sup>.
    #[must_use]
    pub const fn fingerprint_bits(&self) -> u32 {
        self.bits
    }

    /// The number of bits of all rows and thresholds.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.words * 64
    }

    getters! {
        /// The number of 64-bit words.
        words: u64;
    }

    /// The error rate of a filter of `items` keys, planned or not: the share of absent keys that
    /// are found. 0 if there are no keys.
    #[must_use]
    pub const fn expected_rate(&self, items: u64) -> f64 {
        if items == 0 { 0.0 } else { 1.0 / (1_u64 << self.bits) as f64 }
    }
}

shape!(Shape, "RibbonFilter");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_bumped_by_the_threshold_of_its_class_and_those_below() {
        for number in 0..2 * BUCKET {
            let place = BucketPlace(number);
            assert_eq!(place.bucket(), number / BUCKET);
            for threshold in 0..4 {
                assert_eq!(place.is_bumped_by(threshold), place.class() >= threshold, "{number}");
            }
        }
        assert_eq!(
            (BucketPlace(87).class(), BucketPlace(88).class(), BucketPlace(110).class()),
            (0, 1, 2)
        );
        assert_eq!(
            (BucketPlace(0).row(), BucketPlace(127).row(), BucketPlace(128).row()),
            (127, 0, 255)
        );
    }

    #[test]
    fn rows_of_a_plain_layer_reach_to_its_end() {
        for items in (1..300).chain([1_000, 3_000, 100_000]) {
            let rows = LastLayer::rows(items, 0);
            let plain = LastLayer::with_rows(rows, 0);
            assert!(rows > items && (items < 81 || rows as f64 <= items as f64 * 1.04));
            let width = 64 - u64::from(plain.narrow);
            assert_eq!(plain.row(u64::MAX) + width, rows);
            assert!(LastLayer::rows(items, 99) > rows + 20);
        }
        assert_eq!((LastLayer::rows(0, 0), LastLayer::with_rows(0, 1).starts), (0, 0));
    }

    #[test]
    fn a_layer_is_a_little_smaller_than_its_keys() {
        for items in [MAX_PLAIN + 1, 10_000, 1_000_000, 1 << 40] {
            let tier = Tier::for_items(items);
            let rows = (tier.starts + WIDTH) as f64 / items as f64;
            assert!((rows - 0.926).abs() < 65.0 / items as f64, "{rows}");
            assert_eq!((tier.grid.rest, tier.starts % BUCKET), (0, 0));
        }
    }
}
