//! The shape of a split-block Bloom filter: the number of blocks.

use crate::error::InvalidShape;
use crate::layout::probing;
use crate::parts::math::{exp, ln_1p, ln_1p_wide, powi};
use crate::sizing::{
    MAX_BITS, Rate, bisect, digest_collisions, gallop, getters, ok, rate_for, shape,
};

/// The bits of a block.
const BLOCK: u64 = 256;
pub(super) const BLOCK_BYTES: u64 = BLOCK / 8;
/// The number of bits of a key: one in each eighth of its block.
const PROBES: u32 = 8;
/// The bits of an eighth of a block.
const EIGHTH: f64 = 32.0;
/// The maximum number of blocks: a Parquet header stores their bytes as a signed number of 32 bits.
const MAX_BLOCKS: u64 = i32::MAX as u64 / BLOCK_BYTES;
/// The largest power of two among them.
const MAX_POWER: u64 = 1 << MAX_BLOCKS.ilog2();
/// Sums below this are computed again by a method without cancellation.
const CANCELLATION: f64 = 1e-7;

/// The shape of a split-block Bloom filter, computed before memory is allocated.
///
/// ```
/// use umbel::split::Shape;
///
/// let shape = Shape::for_rate(1_000_000, 0.01)?;
/// assert_eq!((shape.blocks(), shape.bytes()), (1 << 16, 2 << 20)); // a power of two
/// assert!(shape.expected_rate(1_000_000) <= 0.01);
/// let tight = Shape::for_rate_tight(1_000_000, 0.01)?;
/// assert_eq!((tight.blocks(), tight.bytes()), (41_130, 1_316_160)); // 10.5 bits an item
/// # Ok::<(), umbel::InvalidShape>(())
/// ```
///
/// All functions work at compile time too, with the same results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    items: u64,
    blocks: u64,
}

impl Shape {
    /// The smallest filter that holds `items` items at an error rate of at most `rate`. The number
    /// of blocks is a power of two, which every reader of Parquet accepts.
    ///
    /// Exact from one item up, see [`expected_rate`](Self::expected_rate). Some readers accept at
    /// most 128 MiB, which are 2^22 blocks. Zero items is valid and gives a filter of one block.
    ///
    /// # Errors
    ///
    /// If `rate` is not valid ([`Rate::new`]), is too small for digests of 64 bits, or the filter
    /// would have more than 2^25 blocks.
    pub const fn for_rate(items: u64, rate: f64) -> Result<Self, InvalidShape> {
        match Self::smallest_power(items, rate) {
            Ok(shape) if shape.blocks > MAX_POWER => {
                Err(InvalidShape::TooLarge { bits: shape.bits(), max: MAX_POWER * BLOCK })
            }
            result => result,
        }
    }

    /// As [`for_rate`](Self::for_rate), with any number of blocks, which can be up to half of them
    /// fewer. The specification allows that, but many readers refuse such a filter.
    ///
    /// # Errors
    ///
    /// As [`for_rate`](Self::for_rate), but up to 2^26 - 1 blocks.
    pub const fn for_rate_tight(items: u64, rate: f64) -> Result<Self, InvalidShape> {
        let power = ok!(Self::smallest_power(items, rate)).blocks;
        let blocks = bisect!(power / 2, power, |blocks| {
            Self { items, blocks }.expected_rate(items) <= rate
        });
        Self::with(items, blocks)
    }

    /// The smallest power of two of blocks, which may exceed the maximum of a filter.
    const fn smallest_power(items: u64, rate: f64) -> Result<Self, InvalidShape> {
        let rate = ok!(rate_for(items, rate));
        let mut shape = Self { items, blocks: 1 };
        while shape.expected_rate(items) > rate {
            if shape.blocks >= MAX_BITS / BLOCK {
                let max = MAX_BLOCKS * BLOCK;
                return Err(InvalidShape::TooLarge { bits: u64::MAX, max });
            }
            shape.blocks *= 2;
        }
        Ok(shape)
    }

    /// The best filter for `items` items in at most `bytes` bytes: the largest power of two of
    /// blocks. [`with`](Self::with) can use all of the memory.
    ///
    /// # Errors
    ///
    /// If there is not enough memory for one block, or enough for 2^26 blocks.
    pub const fn for_memory(items: u64, bytes: u64) -> Result<Self, InvalidShape> {
        match Self::with(items, bytes / BLOCK_BYTES) {
            Ok(shape) => Ok(Self { items, blocks: 1 << shape.blocks.ilog2() }),
            Err(InvalidShape::TooSmall { min, .. }) => Err(InvalidShape::TooSmall { bytes, min }),
            Err(error) => Err(error),
        }
    }

    /// The filter for the largest number of items that fits into `bytes` bytes at an error rate of
    /// at most `rate`. The number of blocks is a power of two. [`items`](Self::items) returns the
    /// number of items.
    ///
    /// # Errors
    ///
    /// As [`for_rate`](Self::for_rate) and [`for_memory`](Self::for_memory).
    pub const fn for_budget(bytes: u64, rate: f64) -> Result<Self, InvalidShape> {
        let rate = ok!(Rate::new(rate)).get();
        let shape = ok!(Self::for_memory(0, bytes));
        let too_many = gallop!(0, 1 << 62, 1, |items| shape.expected_rate(items) > rate);
        Ok(Self { items: too_many - 1, ..shape })
    }

    /// A shape with exactly these numbers.
    ///
    /// # Errors
    ///
    /// Unless there are 1 to 2^26 - 1 blocks, just under 2 GiB.
    pub const fn with(items: u64, blocks: u64) -> Result<Self, InvalidShape> {
        if blocks == 0 {
            return Err(InvalidShape::TooSmall { bytes: 0, min: BLOCK_BYTES });
        }
        if blocks > MAX_BLOCKS {
            let bits = blocks.saturating_mul(BLOCK);
            return Err(InvalidShape::TooLarge { bits, max: MAX_BLOCKS * BLOCK });
        }
        Ok(Self { items, blocks })
    }

    /// The shape with this many bits and probes, which come from a header.
    pub(super) const fn with_bits(
        items: u64,
        bits: u64,
        probes: u32,
    ) -> Result<Self, InvalidShape> {
        ok!(InvalidShape::check_range("probes", probes as u64, PROBES as u64, PROBES as u64));
        if !bits.is_multiple_of(BLOCK) {
            return Err(InvalidShape::NotAMultiple { what: "bits", got: bits, of: BLOCK });
        }
        Self::with(items, bits / BLOCK)
    }

    /// The shape of a filter that has one block for every 2^`times` of this one. For the planned
    /// items divided by 2^`times` it has the same rate.
    #[cfg(feature = "alloc")]
    pub(super) const fn folded(&self, times: u32) -> Result<Self, InvalidShape> {
        if times > self.blocks.trailing_zeros() {
            return Err(InvalidShape::NotAMultiple {
                what: "blocks",
                got: self.blocks,
                of: 1 << times,
            });
        }
        Ok(Self { items: self.items >> times, blocks: self.blocks >> times })
    }

    getters! {
        /// The planned number of items.
        items: u64;
        /// The number of blocks of 256 bits.
        #[inline(always)]
        blocks: u64;
    }

    /// The number of bits of a key: always 8.
    #[must_use]
    pub const fn probes(&self) -> u32 {
        PROBES
    }

    /// The number of bits.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.blocks * BLOCK
    }

    /// The number of 64-bit words.
    #[must_use]
    pub const fn words(&self) -> u64 {
        self.blocks * (BLOCK / 64)
    }

    /// The error rate after `items` different keys were inserted, whether planned or not.
    ///
    /// Exact for one block and for many: the mean over all distributions of keys over blocks and
    /// bits over eighths. It includes the keys whose whole digest, or the half of it that counts
    /// inside a block, equals that of another key.
    #[must_use]
    pub const fn expected_rate(&self, items: u64) -> f64 {
        let twins = items as f64 / self.blocks as f64 / (1_u64 << 32) as f64;
        let rate = self.rate_in_block(items) + twins + digest_collisions(items);
        if rate < 1.0 { rate } else { 1.0 }
    }

    /// The probability that a bit in each eighth of a random block is set.
    ///
    /// ```text
    /// n items, z blocks, V ~ Binomial(n, 1/z) of them in this one, q = 31/32
    /// E[(1 - q^V)^8] = sum_i (-1)^i C(8, i) E[q^(iV)] = sum_i (-1)^i C(8, i) (1 - (1 - q^i) / z)^n
    /// ```
    const fn rate_in_block(&self, items: u64) -> f64 {
        let (mut sum, mut choose, mut i) = (0.0, 1.0, 0);
        while i <= PROBES {
            let log = ln_1p((left_empty(i) - 1.0) / self.blocks as f64);
            sum += choose * exp(items as f64 * log);
            choose *= -((PROBES - i) as f64) / (i + 1) as f64;
            i += 1;
        }
        if sum < CANCELLATION { self.small_rate_in_block(items) } else { sum }
    }

    /// As [`rate_in_block`](Self::rate_in_block), as a sum over the number of items in the block,
    /// all of whose terms are positive. For small rates, where those numbers are small too.
    const fn small_rate_in_block(&self, items: u64) -> f64 {
        let (items, blocks) = (items as f64, self.blocks as f64);
        if self.blocks == 1 {
            return rate_after(items as u32);
        }
        let stay = ln_1p_wide(-1.0 / blocks);
        // The probability of the next number of items from that of the previous one.
        let mut chance = exp(items * stay);
        let (mut sum, mut came) = (0.0, 0);
        while (came as f64) < items {
            chance *= (items - came as f64) / (came + 1) as f64 / (blocks - 1.0);
            came += 1;
            let term = chance * rate_after(came);
            sum += term;
            // Terms rise, then fall ever faster.
            if term <= 1e-12 * sum {
                break;
            }
        }
        sum
    }

    /// An estimate of how many different keys were inserted if `set` bits are set.
    ///
    /// `u64::MAX` if all bits are set, since any larger number of keys is then possible.
    #[must_use]
    pub const fn estimate_items(&self, set: u64) -> u64 {
        if set >= self.bits() {
            return u64::MAX;
        }
        // A key leaves a bit empty with probability 1 - 1 / 32z: set / bits = 1 - (1 - 1 /
        // 32z)^items.
        let fill = set as f64 / self.bits() as f64;
        let empty = ln_1p_wide(-fill);
        (empty / ln_1p(-1.0 / (EIGHTH * self.blocks as f64)) + 0.5) as u64
    }
}

shape!(Shape, "SplitBlockBloomFilter");

probing!(Shape);

/// The mean share of an eighth of a block that this many items leave empty.
const fn left_empty(items: u32) -> f64 {
    powi((EIGHTH - 1.0) / EIGHTH, items)
}

/// The mean share of absent keys that are found in a block after this many items.
const fn rate_after(items: u32) -> f64 {
    powi(1.0 - left_empty(items), PROBES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    /// An independent computation of the rate in a block: the probability of every number of items
    /// in it, item by item, and of every number of set bits in an eighth, item by item.
    fn rate_step_by_step(items: usize, blocks: f64) -> f64 {
        let mut came = vec![0.0; items + 1];
        came[0] = 1.0;
        for _ in 0..items {
            for number in (0..=items).rev() {
                let come = if number == 0 { 0.0 } else { came[number - 1] / blocks };
                came[number] = came[number] * (1.0 - 1.0 / blocks) + come;
            }
        }
        let mut set = [0.0; 33];
        set[0] = 1.0;
        let mut rate = 0.0;
        for chance in &came {
            let fill: f64 = (0..=32).map(|bits| set[bits] * bits as f64 / 32.0).sum();
            rate += chance * fill.powi(8);
            for bits in (0..=32).rev() {
                let come = if bits == 0 { 0.0 } else { set[bits - 1] * (33 - bits) as f64 / 32.0 };
                set[bits] = set[bits] * bits as f64 / 32.0 + come;
            }
        }
        rate
    }

    #[test]
    fn rates_small_and_large_agree_with_counting_step_by_step() {
        for blocks in [1, 2, 3, 4, 7, 64, 1_000, 1 << 25] {
            for items in [0, 1, 2, 3, 5, 10, 40, 200, 600] {
                let shape = Shape::with(items, blocks).unwrap();
                let twins = items as f64 / blocks as f64 / 2_f64.powi(32);
                let rate = shape.expected_rate(items) - twins - digest_collisions(items);
                let expected = rate_step_by_step(items as usize, blocks as f64);
                let digits = if expected < CANCELLATION { 1e-3 * twins } else { 0.0 };
                assert!(
                    (rate - expected).abs() <= 1e-5 * expected + digits,
                    "{blocks} {items}: {rate} {expected}"
                );
            }
        }
    }

    #[test]
    fn the_sum_that_cancels_and_the_one_that_does_not_agree_where_they_meet() {
        for blocks in [2, 3, 5, 100, 1_000_000] {
            let shape = Shape::with(0, blocks).unwrap();
            let items = (1..).find(|items| shape.rate_in_block(*items) > CANCELLATION).unwrap();
            for items in items..items + 3 {
                let ratio = shape.rate_in_block(items) / shape.small_rate_in_block(items);
                assert!((ratio - 1.0).abs() < 1e-5, "{blocks} {items}: {ratio}");
            }
        }
    }

    #[test]
    fn the_rate_asked_for_is_reached_with_the_fewest_blocks() {
        for items in [1, 2, 3, 5, 10, 100, 1_000, 10_000, 1_000_000] {
            for rate in [0.9, 0.5, 0.1, 0.01, 0.001, 1.0 / 65_536.0, 1e-9] {
                let power = Shape::for_rate(items, rate).unwrap();
                let tight = Shape::for_rate_tight(items, rate).unwrap();
                assert!(power.blocks().is_power_of_two());
                assert_eq!(tight.blocks().next_power_of_two(), power.blocks());
                for (shape, fewer) in [(power, power.blocks() / 2), (tight, tight.blocks() - 1)] {
                    assert_eq!(shape.items(), items);
                    assert!(shape.expected_rate(items) <= rate, "{items} {rate} {shape:?}");
                    if let Ok(smaller) = Shape::with(items, fewer) {
                        assert!(smaller.expected_rate(items) > rate, "{items} {rate} {smaller:?}");
                    }
                }
            }
        }
    }

    /// The table in the Parquet specification.
    #[test]
    fn large_filters_take_the_bits_an_item_that_the_specification_names() {
        for (rate, bits) in
            [(0.1, 6.0), (0.01, 10.5), (0.001, 16.9), (0.0001, 26.4), (0.00001, 41.0)]
        {
            let shape = Shape::for_rate_tight(1_000_000, rate).unwrap();
            let got = shape.bits() as f64 / 1_000_000.0;
            assert!((got / bits - 1.0).abs() < 0.01, "{rate}: {got}");
        }
    }

    #[test]
    fn memory_gives_the_largest_power_of_two_of_blocks() {
        for (bytes, blocks) in [(32, 1), (63, 1), (64, 2), (1_000, 16), (i32::MAX as u64, 1 << 25)]
        {
            assert_eq!(Shape::for_memory(5, bytes), Shape::with(5, blocks));
        }
        assert_eq!(Shape::for_memory(5, 31), Err(InvalidShape::TooSmall { bytes: 31, min: 32 }));
        let max = ((1 << 26) - 1) * 256;
        for bytes in [1 << 31, 1 << 40] {
            let error = InvalidShape::TooLarge { bits: bytes * 8, max };
            assert_eq!(Shape::for_memory(5, bytes), Err(error));
        }
        assert!(Shape::for_memory(5, u64::MAX).is_err());
    }

    #[test]
    fn a_budget_holds_its_items_and_not_one_more() {
        for (bytes, rate) in [(32, 0.01), (32, 1e-9), (100, 0.1), (1_000, 0.01), (1 << 31, 0.001)] {
            let Ok(shape) = Shape::for_budget(bytes, rate) else {
                assert_eq!(bytes, 1 << 31);
                continue;
            };
            let items = shape.items();
            assert!(shape.bytes() <= bytes && shape.blocks().is_power_of_two());
            assert!(shape.expected_rate(items) <= rate, "{shape:?}");
            assert!(shape.expected_rate(items + 1) > rate, "{shape:?}");
        }
        assert!(Shape::for_budget(2 << 20, 0.01).unwrap().items() >= 1_500_000);
    }

    #[cfg(feature = "alloc")]
    #[test]
    fn folding_halves_items_and_blocks_and_keeps_the_rate() {
        for (items, blocks) in [(1_000, 64), (100_000, 4_100), (7, 2)] {
            let shape = Shape::with(items, blocks).unwrap();
            let half = shape.folded(1).unwrap();
            assert_eq!((half.items(), half.blocks()), (items / 2, blocks / 2));
            assert!(half.expected_rate(half.items()) <= shape.expected_rate(items));
        }
        let shape = Shape::with(1, 12).unwrap();
        assert_eq!(shape.folded(2).map(|shape| shape.blocks()), Ok(3));
        assert_eq!(
            shape.folded(3),
            Err(InvalidShape::NotAMultiple { what: "blocks", got: 12, of: 8 })
        );
    }

    #[test]
    fn hostile_parameters_get_an_error_at_once() {
        let max = ((1 << 26) - 1) * 256;
        for items in [u64::MAX, u64::MAX / 2, 1 << 60, 1 << 40] {
            for rate in [0.5, 0.01, 1e-9] {
                for error in [
                    Shape::for_rate(items, rate).unwrap_err(),
                    Shape::for_rate_tight(items, rate).unwrap_err(),
                ] {
                    let too_small = matches!(error, InvalidShape::RateTooSmall { .. });
                    assert!(too_small || matches!(error, InvalidShape::TooLarge { .. }), "{error}");
                }
            }
        }
        // A number that fits into 2^26 - 1 blocks and not into 2^25, and numbers that need just
        // more than either.
        let between = Shape::for_rate_tight(1_500_000_000, 0.01).unwrap();
        assert!((1 << 25..1 << 26).contains(&between.blocks()));
        let (bits, power) = (256 << 26, 256 << 25);
        let error = InvalidShape::TooLarge { bits, max: power };
        assert_eq!(Shape::for_rate(1_500_000_000, 0.01), Err(error));
        let error = Shape::for_rate_tight(1_700_000_000, 0.01).unwrap_err();
        assert!(
            matches!(error, InvalidShape::TooLarge { bits, max: most } if bits > max && most == max)
        );
        for rate in [0.0, 1.0, f64::NAN, -1.0] {
            let error = Shape::for_rate(10, rate).unwrap_err();
            assert!(matches!(error, InvalidShape::RateOutOfRange { .. }));
            assert!(Shape::for_rate_tight(10, rate).is_err());
            assert!(Shape::for_budget(100, rate).is_err());
        }
        let floor = Shape::for_rate(1_000_000_000, 1e-12).unwrap_err();
        assert!(matches!(floor, InvalidShape::RateTooSmall { min, .. } if min > 1e-10), "{floor}");
        assert_eq!(Shape::with(1, 0), Err(InvalidShape::TooSmall { bytes: 0, min: 32 }));
        assert_eq!(Shape::with(1, (1 << 26) - 1).map(|shape| shape.bytes()), Ok((1 << 31) - 32));
        assert_eq!(Shape::with(1, 1 << 26), Err(InvalidShape::TooLarge { bits: 256 << 26, max }));
        let error = InvalidShape::NotAMultiple { what: "bits", got: 255, of: 256 };
        assert_eq!(Shape::with_bits(1, 255, 8), Err(error));
        for probes in [7, 9] {
            let got = u64::from(probes);
            let error = InvalidShape::OutOfRange { what: "probes", got, min: 8, max: 8 };
            assert_eq!(Shape::with_bits(1, 256, probes), Err(error));
        }
    }

    #[test]
    fn no_items_is_a_plan() {
        let shape = Shape::for_rate(0, 0.01).unwrap();
        assert_eq!((shape.blocks(), shape.words(), shape.expected_rate(0)), (1, 4, 0.0));
    }

    #[test]
    fn the_compiler_plans_as_the_program_does() {
        const AT_COMPILE_TIME: Result<Shape, InvalidShape> = Shape::for_rate_tight(1_000, 0.01);
        assert_eq!(AT_COMPILE_TIME, Shape::for_rate_tight(std::hint::black_box(1_000), 0.01));
        const SMALL: Result<Shape, InvalidShape> = Shape::for_rate(13, 1e-9);
        assert_eq!(SMALL, Shape::for_rate(std::hint::black_box(13), 1e-9));
    }

    #[test]
    fn estimates_invert_the_expected_fill() {
        for blocks in [1, 2, 100, 1 << 16] {
            let shape = Shape::with(0, blocks).unwrap();
            let eighths = 32.0 * blocks as f64;
            for items in [0, 1, blocks, blocks * 20] {
                let set = eighths * 8.0 * (1.0 - (1.0 - 1.0 / eighths).powf(items as f64));
                let estimate = shape.estimate_items(set.round() as u64);
                assert!(estimate.abs_diff(items) <= 1 + items / 1_000, "{items}: {estimate}");
            }
            assert_eq!(shape.estimate_items(shape.bits()), u64::MAX);
        }
        for blocks in [1, 5, 1 << 20] {
            assert_eq!(Shape::with(0, blocks).unwrap().estimate_items(8), 1);
        }
    }
}
