//! The shape of a quotient filter: how many quotients, and how many further bits of a digest.

use crate::error::InvalidShape;
use crate::parts::math::{ceil, exp_m1, ln_1p, ln_1p_wide};
use crate::parts::packed;
use crate::sizing::{MAX_BITS, Rate, bisect, check_bits, check_memory, getters, ok, shape};

/// The fewest bits a remainder has.
pub const MIN_REMAINDER: u32 = 2;
/// The most bits a remainder has.
pub const MAX_REMAINDER: u32 = 32;

/// Slots come in blocks of this many.
pub(super) const BLOCK: u64 = 64;

/// The load factor that a filter is planned for, in percent. The filter accepts keys up to
/// [`FULL`].
const PLANNED: u64 = 94;
/// The load factor at which a filter is full, in percent.
const FULL: u64 = 95;

/// Slots behind the last quotient, for remainders that are pushed past it. At a load factor of 0.95
/// the number of keys pushed past a place is above k with a probability of at most `e^(-0.1 k)`
/// (the queue of a server with 95 % utilization), so 256 slots fail one filter in 10^11.
const SPILL: u64 = 256;

/// The maximum number of different prefixes of a digest in a filter.
const MAX_PREFIXES: u64 = 1 << 63;

/// The shape of a quotient filter, computed before memory is allocated.
///
/// ```
/// use umbel::quotient::Shape;
///
/// let shape = Shape::for_rate(1_000_000, 0.01)?;
/// assert_eq!(shape.remainder_bits(), 7);
/// assert!(shape.bytes() * 8 < 9_750_000 && shape.expected_rate(1_000_000) < 0.0075);
///
/// // Room for a 64th of the keys to begin with, and the same rate when all of them have come.
/// let growing = Shape::for_rate_growing(1_000_000, 0.01, 6)?;
/// assert_eq!((growing.remainder_bits(), growing.doublings()), (13, 6));
/// # Ok::<(), umbel::InvalidShape>(())
/// ```
///
/// All functions work at compile time too, with the same results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    items: u64,
    quotients: u64,
    remainder: u32,
}

impl Shape {
    /// The smallest filter that holds `items` items at an error rate of at most `rate`. Its load
    /// factor is then 0.94, or less if more quotients take less space than longer remainders.
    ///
    /// # Errors
    ///
    /// [`InvalidShape`] if `rate` is not above 0 and below 1, or smaller than remainders of
    /// [`MAX_REMAINDER`] bits and digests of 64 bits can give, or if the filter would have more
    /// than [`MAX_BITS`].
    pub const fn for_rate(items: u64, rate: f64) -> Result<Self, InvalidShape> {
        Self::for_rate_growing(items, rate, 0)
    }

    /// As [`for_rate`](Self::for_rate), for a filter that begins with room for one in `2^doublings`
    /// of the items, and grows by itself until it has room for all of them. Every doubling takes
    /// one bit from the remainders, so they begin with `doublings` more bits.
    ///
    /// # Errors
    ///
    /// As [`for_rate`](Self::for_rate), and if remainders would begin with more than
    /// [`MAX_REMAINDER`] bits or end with fewer than [`MIN_REMAINDER`].
    pub const fn for_rate_growing(
        items: u64,
        rate: f64,
        doublings: u32,
    ) -> Result<Self, InvalidShape> {
        let rate = ok!(Rate::new(rate)).get();
        let too_many = remainder_out_of_range(MIN_REMAINDER as u64 + doublings as u64);
        if doublings > MAX_REMAINDER - MIN_REMAINDER {
            return Err(too_many);
        }
        if items > MAX_BITS {
            return Err(InvalidShape::TooLarge { bits: u64::MAX, max: MAX_BITS });
        }
        // At most 2^48 items.
        let held = if items == 0 { 1 } else { items };
        let fewest = (held * 100).div_ceil(PLANNED);
        // 1 - (1 - 1/prefixes)^items is at most the rate.
        let prefixes = -1.0 / exp_m1(ln_1p_wide(-rate) / held as f64);
        let mut best: Option<Self> = None;
        let mut remainder = MIN_REMAINDER;
        while remainder + doublings <= MAX_REMAINDER {
            let least = ceil(prefixes / (1_u64 << remainder) as f64);
            let quotients = if least > fewest { least } else { fewest };
            // A table at half its load factor is larger than one with longer remainders.
            let sparse = quotients > 2 * fewest;
            let shape = Self::rounded(items, quotients, remainder, doublings, rate);
            if let (Some(shape), false) = (shape, sparse) {
                match best {
                    Some(best) if best.words() <= shape.words() => {}
                    _ => best = Some(shape),
                }
            }
            remainder += 1;
        }
        match best {
            Some(shape) => Ok(shape),
            None => Err(Self::refusal(fewest, rate, doublings, held)),
        }
    }

    /// With at least this many quotients after growing, if that keeps the rate and is not too
    /// large.
    const fn rounded(
        items: u64,
        quotients: u64,
        remainder: u32,
        doublings: u32,
        rate: f64,
    ) -> Option<Self> {
        if quotients > MAX_BITS {
            return None;
        }
        // A multiple of a power of two can be halved again. It costs at most a 2048th more.
        let halvings = quotients.ilog2().saturating_sub(11);
        let step = 1 << (if halvings > doublings { halvings } else { doublings });
        let mut quotients = quotients.next_multiple_of(step);
        loop {
            let first = quotients >> doublings;
            let Ok(shape) = Self::with(items, first, remainder + doublings) else { return None };
            if shape.expected_rate(items) <= rate {
                return Some(shape);
            }
            // Compensates the rounding of the logarithms: one repetition is enough.
            quotients += step;
        }
    }

    /// The error for a shape that does not exist.
    const fn refusal(fewest: u64, rate: f64, doublings: u32, items: u64) -> InvalidShape {
        let bits = fewest.saturating_mul(MIN_REMAINDER as u64 + 3);
        if bits > MAX_BITS {
            return InvalidShape::TooLarge { bits, max: MAX_BITS };
        }
        let mut prefixes = fewest as f64;
        let mut bits = MAX_REMAINDER - doublings;
        while bits > 0 && prefixes * 2.0 <= MAX_PREFIXES as f64 {
            prefixes *= 2.0;
            bits -= 1;
        }
        InvalidShape::RateTooSmall { rate, min: items as f64 / prefixes }
    }

    /// A filter with this many quotients and remainders of this many bits, that grows by itself
    /// until it has room for `items` items.
    ///
    /// # Errors
    ///
    /// [`InvalidShape::OutOfRange`] if remainders have fewer than [`MIN_REMAINDER`] or more than
    /// [`MAX_REMAINDER`] bits, or would have too few when there is room for all items.
    /// [`InvalidShape::TooSmall`] without quotients. [`InvalidShape::TooLarge`] with more than
    /// [`MAX_BITS`], or if quotient and remainder together have more than 63 bits.
    pub const fn with(items: u64, quotients: u64, remainder: u32) -> Result<Self, InvalidShape> {
        let shape = Self { items, quotients, remainder };
        if remainder < MIN_REMAINDER || remainder > MAX_REMAINDER {
            return Err(remainder_out_of_range(remainder as u64));
        }
        if quotients == 0 {
            return Err(InvalidShape::TooSmall { bytes: 0, min: 8 * (2 + 1 + 2 + 1) });
        }
        if quotients > MAX_PREFIXES >> remainder || quotients > MAX_BITS {
            return Err(InvalidShape::TooLarge { bits: u64::MAX, max: MAX_BITS });
        }
        if shape.doublings() > shape.possible_doublings() {
            let bits = MIN_REMAINDER as u64 + shape.doublings() as u64;
            return Err(remainder_out_of_range(bits));
        }
        // At most 2^48 slots, and a few more, of 35 bits.
        ok!(check_bits(shape.bits()));
        Ok(shape)
    }

    /// The best filter for `items` items in at most `bytes` bytes: the longest remainders for which
    /// there is room, and the largest number of quotients.
    ///
    /// # Errors
    ///
    /// If there is no room for the items even with the shortest remainders, or more than
    /// [`MAX_BITS`].
    pub const fn for_memory(items: u64, bytes: u64) -> Result<Self, InvalidShape> {
        ok!(check_memory(bytes, 0));
        ok!(check_bits(items));
        let fewest = if items == 0 { 2 } else { (items * 100).div_ceil(PLANNED) };
        let mut remainder = MAX_REMAINDER;
        while remainder >= MIN_REMAINDER {
            if Self::fits(fewest, remainder, bytes) {
                let too_many = bisect!(fewest, bytes * 8, |quotients| {
                    !Self::fits(quotients, remainder, bytes)
                });
                // A slightly smaller number can be halved again.
                let most = too_many - 1;
                let even = most - most % (1 << most.ilog2().saturating_sub(11));
                return Self::with(items, if even >= fewest { even } else { most }, remainder);
            }
            remainder -= 1;
        }
        let shape = ok!(Self::with(items, fewest, MIN_REMAINDER));
        Err(InvalidShape::TooSmall { bytes, min: shape.bytes() })
    }

    const fn fits(quotients: u64, remainder: u32, bytes: u64) -> bool {
        match Self::with(0, quotients, remainder) {
            Ok(shape) => shape.bytes() <= bytes,
            Err(_) => false,
        }
    }

    /// Twice the quotients, with remainders that are one bit shorter: the shape of a filter after
    /// it has grown once. The rate for the same keys does not change.
    ///
    /// # Errors
    ///
    /// As [`with`](Self::with).
    pub const fn doubled(&self) -> Result<Self, InvalidShape> {
        Self::with(self.items, self.quotients * 2, self.remainder - 1)
    }

    /// Half the quotients, with remainders that are one bit longer. `None` if the number of
    /// quotients is odd or remainders already have the maximum length.
    #[must_use]
    pub const fn halved(&self) -> Option<Self> {
        if self.quotients % 2 == 1 {
            return None;
        }
        let half = Self::with(self.items, self.quotients / 2, self.remainder + 1);
        if let Ok(shape) = half { Some(shape) } else { None }
    }

    getters! {
        /// The planned number of items. There is room for them after
        /// [`doublings`](Self::doublings).
        items: u64;
        /// The number of quotients: the preferred slots of keys.
        quotients: u64;
    }

    /// The bits of a remainder.
    #[must_use]
    pub const fn remainder_bits(&self) -> u32 {
        self.remainder
    }

    /// How many keys fit without growing: a load factor of 0.95.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        // At most 2^48.
        self.quotients * FULL / 100
    }

    /// How many times the filter doubles by itself until there is room for all items.
    #[must_use]
    pub const fn doublings(&self) -> u32 {
        let (all, full) = (self.quotients as u128, FULL as u128);
        let mut doublings = 0;
        while doublings < MAX_REMAINDER && (all << doublings) * full / 100 < self.items as u128 {
            doublings += 1;
        }
        doublings
    }

    /// How many times the filter can be doubled until remainders have the minimum length. Beyond
    /// [`doublings`](Self::doublings) there is room for more keys than planned, at a higher rate.
    #[must_use]
    pub const fn possible_doublings(&self) -> u32 {
        self.remainder - MIN_REMAINDER
    }

    /// How many different keys the filter can distinguish: the number of pairs of a quotient and a
    /// remainder. Growing does not change it.
    #[must_use]
    pub const fn prefixes(&self) -> u64 {
        self.quotients << self.remainder
    }

    /// The load factor with `items` keys.
    #[must_use]
    pub const fn load(&self, items: u64) -> f64 {
        items as f64 / self.quotients as f64
    }

    /// The number of blocks of 64 slots.
    pub(super) const fn blocks(&self) -> u64 {
        // One slot stays free, so that every search for a free slot ends.
        let most = self.capacity() + 1;
        (self.quotients + if most < SPILL { most } else { SPILL }).div_ceil(BLOCK)
    }

    /// The number of words of each part of the table: marks, offsets, remainders.
    pub(super) const fn parts(&self) -> [u64; 3] {
        let blocks = self.blocks();
        [2 * blocks, blocks.div_ceil(8), packed::words_for(blocks * BLOCK, self.remainder)]
    }

    /// The number of bits of all parts of the table.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.words() * 64
    }

    /// The number of 64-bit words.
    #[must_use]
    pub const fn words(&self) -> u64 {
        let [marks, offsets, remainders] = self.parts();
        marks + offsets + remainders
    }

    /// The error rate with `items` different keys: the exact share of absent keys whose quotient and
    /// remainder are those of a key in the filter.
    #[must_use]
    pub const fn expected_rate(&self, items: u64) -> f64 {
        -exp_m1(items as f64 * ln_1p(-1.0 / self.prefixes() as f64))
    }

    /// An estimate of the number of different keys from the number of their different prefixes.
    pub(super) const fn estimate_items(&self, prefixes: u64) -> u64 {
        if prefixes >= self.prefixes() {
            return u64::MAX;
        }
        let all = self.prefixes() as f64;
        (ln_1p_wide(-(prefixes as f64 / all)) / ln_1p(-1.0 / all) + 0.5) as u64
    }
}

shape!(Shape, "QuotientFilter");

const fn remainder_out_of_range(bits: u64) -> InvalidShape {
    let (min, max) = (MIN_REMAINDER as u64, MAX_REMAINDER as u64);
    InvalidShape::OutOfRange { what: "bits of a remainder", got: bits, min, max }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_hold_their_items_at_their_rate_and_are_not_wasteful() {
        for items in [0, 1, 2, 3, 10, 63, 64, 1_000, 12_345, 100_000, 1_300_000, 100_000_000] {
            for rate in [0.9, 0.3, 0.05, 0.01, 0.001, 1.0 / 65_536.0, 1e-8] {
                for doublings in [0, 1, 6] {
                    let shape = Shape::for_rate_growing(items, rate, doublings).unwrap();
                    assert!(shape.expected_rate(items) <= rate);
                    let mut last = shape;
                    for left in (0..shape.doublings()).rev() {
                        last = last.doubled().unwrap();
                        assert_eq!(last.doublings(), left);
                    }
                    assert!(last.capacity() >= items, "{items} at {rate}: {last:?}");
                    assert!(shape.doublings() <= doublings);
                    assert_eq!(last.expected_rate(items), shape.expected_rate(items));
                    if items > 1_000_000 {
                        assert_eq!(shape.doublings(), doublings);
                        // One remainder bit less, or a load factor above the planned one, would not
                        // suffice.
                        let fewer = last.expected_rate(items) * 2.0 > rate;
                        assert!(last.load(items) > 0.9399 && fewer || last.load(items) < 0.94);
                    }
                }
            }
        }
    }

    #[test]
    fn a_percent_takes_less_than_9_75_bits_and_a_thousandth_12_95() {
        let mut items = 100_000;
        while items < 200_000_000 {
            for (rate, bits) in [(0.01, 9.75), (0.001, 12.95)] {
                let shape = Shape::for_rate(items, rate).unwrap();
                let got = shape.bytes() as f64 * 8.0 / items as f64;
                assert!(got <= bits, "{items} at {rate}: {got}");
            }
            items = items * 1_013 / 1_000;
        }
    }

    #[test]
    fn a_planned_filter_can_be_halved_down_to_some_thousand_quotients() {
        for items in [5_000, 100_000, 1_000_000, 123_456_789] {
            let mut shape = Shape::for_rate(items, 0.01).unwrap();
            while let Some(half) = shape.halved() {
                assert_eq!((half.doubled().unwrap(), half.prefixes()), (shape, shape.prefixes()));
                shape = half;
            }
            assert!(shape.quotients() < 8_192, "{shape:?}");
        }
    }

    #[test]
    fn impossible_shapes_are_refused() {
        use InvalidShape::{OutOfRange, RateTooSmall, TooLarge, TooSmall};
        assert!(matches!(Shape::for_rate(1 << 46, 0.01), Err(TooLarge { .. })));
        assert!(matches!(Shape::for_rate(u64::MAX, 0.01), Err(TooLarge { .. })));
        assert!(matches!(Shape::for_rate(1_000, 1e-12), Err(RateTooSmall { .. })));
        assert!(matches!(Shape::for_rate(1 << 40, 1e-9), Err(RateTooSmall { .. })));
        assert!(matches!(
            Shape::for_rate_growing(1_000, 0.01, 31),
            Err(OutOfRange { got: 33, .. })
        ));
        assert!(matches!(Shape::for_rate_growing(1_000, 1e-6, 20), Err(RateTooSmall { .. })));
        for bits in [0, 1, 33, u32::MAX] {
            let error = Shape::with(1, 10, bits);
            assert_eq!(error, Err(remainder_out_of_range(u64::from(bits))));
        }
        assert!(matches!(Shape::with(1, 0, 8), Err(TooSmall { .. })));
        assert!(matches!(Shape::with(1, 1 << 40, 32), Err(TooLarge { .. })));
        assert!(matches!(Shape::with(1, u64::MAX, 2), Err(TooLarge { .. })));
        for quotients in [1, 1_000, 1 << 48] {
            assert!(Shape::with(u64::MAX, quotients, 8).is_err());
        }
        // Twice the room would take one bit more than is available.
        assert!(matches!(Shape::with(1_000, 600, 2), Err(OutOfRange { got: 3, .. })));
        assert!(Shape::with(1_000, 600, 3).is_ok());
        for min in [1_000_u64, 1 << 40] {
            let Err(RateTooSmall { min: rate, .. }) = Shape::for_rate(min, 1e-14) else { panic!() };
            assert!(Shape::for_rate(min, rate).is_ok(), "{rate}");
        }
    }
}
