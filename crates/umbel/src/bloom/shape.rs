//! The shape of a classic Bloom filter: how many bits and probes, for how many items.

use crate::error::InvalidShape;
use crate::kernels::MAX_PROBES;
use crate::layout::{for_arrays, words_for};
use crate::parts::math::{ceil, exp, ln, ln_1p, ln_1p_wide, powi};
use crate::parts::occupancy::{all_full, mean_full};
use crate::sizing::{
    MAX_BITS, Rate, bisect, check_bits, check_memory, digest_collisions, getters, ok, rate_for,
    shape,
};

/// The shape of a classic Bloom filter, computed before memory is allocated.
///
/// ```
/// use umbel::bloom::Shape;
///
/// let shape = Shape::for_rate(1_000_000, 0.001)?;
/// assert_eq!((shape.bytes(), shape.probes()), (1_797_208, 10)); // 1.71 MiB
/// assert!(shape.expected_rate(1_000_000) <= 0.001);
/// assert!(shape.expected_rate(2_000_000) > 0.02); // twice as many items as planned
/// # Ok::<(), umbel::InvalidShape>(())
/// ```
///
/// All functions work at compile time too, with the same results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    items: u64,
    bits: u64,
    probes: u32,
}

impl Shape {
    /// The smallest filter that holds `items` items at an error rate of at most `rate`.
    ///
    /// Exact from one item up, see [`expected_rate`](Self::expected_rate). If several numbers of
    /// probes reach the rate with the same memory, the smallest is used. Zero items is valid and
    /// gives a filter of one word.
    ///
    /// # Errors
    ///
    /// If `rate` is not valid ([`Rate::new`]), is too small for digests of 64 bits, or the filter
    /// would have more than [`MAX_BITS`].
    pub const fn for_rate(items: u64, rate: f64) -> Result<Self, InvalidShape> {
        let rate = ok!(rate_for(items, rate));
        // The asymptotic formula is a little too low, never too high: the search starts there and
        // goes up.
        let bits = items as f64 * bits_per_item(rate - digest_collisions(items));
        if bits >= MAX_BITS as f64 {
            return Err(InvalidShape::TooLarge { bits: ceil(bits), max: MAX_BITS });
        }
        let mut words = words_for_bits(ceil(bits));
        loop {
            let bits = usable_bits(words);
            let mut probes = 1;
            while probes <= MAX_PROBES {
                // The simple formula is a fast lower bound; the exact rate decides.
                if powi(mean_full(bits, items * probes as u64), probes) <= rate {
                    let shape = Self { items, bits, probes };
                    if shape.expected_rate(items) <= rate {
                        return Ok(shape);
                    }
                } else if probes as f64 > 2.0 + bits as f64 / items as f64 {
                    break;
                }
                probes += 1;
            }
            words += 1;
        }
    }

    /// The best filter for `items` items in at most `bytes` bytes: the number of probes that gives
    /// the smallest rate.
    ///
    /// # Errors
    ///
    /// If there is not enough memory for one word, or more than [`MAX_BITS`].
    pub const fn for_memory(items: u64, bytes: u64) -> Result<Self, InvalidShape> {
        ok!(check_memory(bytes, 8));
        Ok(Self::best_probes(items, usable_bits(bytes / 8)))
    }

    /// With the number of probes that gives the smallest rate, but no more probes than needed to
    /// fall below the smallest rate that a filter may promise.
    pub(crate) const fn best_probes(items: u64, bits: u64) -> Self {
        let mut best = Self { items, bits, probes: 1 };
        let mut rate = best.expected_rate(items);
        // The rate falls up to the best number of probes and rises after it.
        while best.probes < MAX_PROBES && rate >= Rate::MIN.get() {
            let more = Self { items, bits, probes: best.probes + 1 };
            let next = more.expected_rate(items);
            if next >= rate {
                break;
            }
            (best, rate) = (more, next);
        }
        best
    }

    /// The filter for the largest number of items that fits into `bytes` bytes at an error rate of
    /// at most `rate`. [`items`](Self::items) returns that number.
    ///
    /// # Errors
    ///
    /// As [`for_rate`](Self::for_rate) and [`for_memory`](Self::for_memory).
    pub const fn for_budget(bytes: u64, rate: f64) -> Result<Self, InvalidShape> {
        let rate = ok!(Rate::new(rate)).get();
        let bits = ok!(Self::for_memory(0, bytes)).bits;
        let most = ceil(bits as f64 / bits_per_item(rate)) + 1;
        let too_many = bisect!(0, most, |items| {
            Self::best_probes(items, bits).expected_rate(items) > rate
        });
        Ok(Self::best_probes(too_many - 1, bits))
    }

    /// A shape with exactly these numbers, for custom kernels.
    ///
    /// # Errors
    ///
    /// Unless there are 1 to [`MAX_BITS`] bits and 1 to [`MAX_PROBES`] probes.
    pub const fn with(items: u64, bits: u64, probes: u32) -> Result<Self, InvalidShape> {
        Self::bounded(items, bits, probes, MAX_PROBES)
    }

    /// The shape of a filter that another program created. Some programs use more probes than is
    /// optimal.
    ///
    /// # Errors
    ///
    /// Unless there are 1 to [`MAX_BITS`] bits and 1 to 4,096 probes.
    pub const fn foreign(items: u64, bits: u64, probes: u32) -> Result<Self, InvalidShape> {
        Self::bounded(items, bits, probes, 4_096)
    }

    const fn bounded(items: u64, bits: u64, probes: u32, max: u32) -> Result<Self, InvalidShape> {
        if bits == 0 {
            return Err(InvalidShape::TooSmall { bytes: 0, min: 8 });
        }
        ok!(check_bits(bits));
        ok!(InvalidShape::check_range("probes", probes as u64, 1, max as u64));
        Ok(Self { items, bits, probes })
    }

    getters! {
        /// The planned number of items.
        items: u64;
        /// The number of positions. One less than a multiple of 64 in a native shape.
        bits: u64;
        /// The number of positions per key.
        probes: u32;
    }

    /// The number of 64-bit words.
    #[must_use]
    pub const fn words(&self) -> u64 {
        words_for_bits(self.bits)
    }

    /// The error rate after `items` different keys were inserted, whether planned or not.
    ///
    /// Exact for a few items; for more, within 1 % and never too low. It is the mean over all
    /// distributions of the bits, not the textbook formula, which is too low for small filters. It
    /// includes the keys whose whole digest equals that of another key.
    #[must_use]
    pub const fn expected_rate(&self, items: u64) -> f64 {
        let balls = items.saturating_mul(self.probes as u64);
        let rate = all_full(self.bits, balls, self.probes) + digest_collisions(items);
        if rate < 1.0 { rate } else { 1.0 }
    }

    /// The error rate of a filter of this shape in which `set` bits are set.
    #[must_use]
    pub const fn rate_at(&self, set: u64) -> f64 {
        powi(set as f64 / self.bits as f64, self.probes)
    }

    /// An estimate of how many different keys were inserted if `set` bits are set.
    ///
    /// `u64::MAX` if all bits are set, since any larger number of keys is then possible.
    #[must_use]
    pub const fn estimate_items(&self, set: u64) -> u64 {
        if set == 0 {
            return 0;
        }
        if set >= self.bits {
            return u64::MAX;
        }
        // set / bits = 1 - (1 - 1/bits)^(items · probes), solved for items (Swamidass and Baldi
        // 2007, equation 2).
        let bits = self.bits as f64;
        let empty = if set as f64 / bits < 0.25 {
            ln_1p(-(set as f64 / bits))
        } else {
            ln((bits - set as f64) / bits)
        };
        let one = ln_1p_wide(-1.0 / bits);
        (empty / one / self.probes as f64 + 0.5) as u64
    }
}

shape!(Shape, "BloomFilter");

for_arrays!(Shape, WORDS => WORDS > 0, "a filter has at least one word");

words_for! {
    /// The number of words for `items` items at this rate: the `WORDS` of an
    /// [`ArrayBloomFilter`](crate::ArrayBloomFilter).
    Shape
}

/// The number of words for `cells` cells of `bits_per_cell` bits, packed.
///
/// # Panics
///
/// If a cell has no bits or more than 64, or there are too many cells. In a `const` context, this
/// fails to compile.
#[must_use]
pub(crate) const fn words_for_cells(cells: usize, bits_per_cell: u32) -> usize {
    assert!(bits_per_cell >= 1 && bits_per_cell <= 64, "a cell has from 1 to 64 bits");
    let bits = cells as u128 * bits_per_cell as u128;
    assert!(bits <= MAX_BITS as u128, "so many cells are too many");
    (bits as u64).div_ceil(64) as usize
}

const fn words_for_bits(bits: u64) -> u64 {
    if bits == 0 { 1 } else { bits.div_ceil(64) }
}

/// All bits of the words except the last one, which makes the number odd.
const fn usable_bits(words: u64) -> u64 {
    words * 64 - 1
}

/// Bits per item at the best whole number of probes, for many items: the smallest over k of
/// -k / ln(1 - rate^(1/k)).
const fn bits_per_item(rate: f64) -> f64 {
    let (mut best, mut probes) = (f64::INFINITY, 1);
    while probes <= MAX_PROBES {
        let root = exp(ln(rate) / probes as f64);
        let empty = ln_1p_wide(-root);
        let bits = -(probes as f64) / empty;
        if bits < best {
            best = bits;
        }
        probes += 1;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_asked_for_is_reached_with_the_fewest_words() {
        for items in [1, 2, 3, 5, 10, 100, 1_000, 10_000, 1_000_000, 1_000_000_000] {
            for rate in [0.9, 0.5, 0.1, 0.01, 0.001, 1.0 / 65_536.0, 1e-9] {
                let shape = Shape::for_rate(items, rate).unwrap();
                assert!(shape.expected_rate(items) <= rate, "{items} {rate} {shape:?}");
                let words = shape.words();
                if words > 1 {
                    let smaller = Shape::for_memory(items, words * 8 - 8).unwrap();
                    assert!(smaller.expected_rate(items) > rate, "{items} {rate} {smaller:?}");
                }
            }
        }
    }

    #[test]
    fn large_filters_take_9_6_bits_an_item_at_one_percent_and_14_4_at_a_tenth_of_it() {
        for items in [100_000, 1_000_000, 1_000_000_000] {
            for (rate, bar) in [(0.01, 9.60), (0.001, 14.40)] {
                let bits = Shape::for_rate(items, rate).unwrap().bytes() as f64 * 8.0;
                assert!(bits / items as f64 <= bar, "{items} {rate}: {}", bits / items as f64);
            }
        }
    }

    #[test]
    fn memory_gives_the_best_number_of_probes() {
        for (items, bytes) in [(1, 8), (10, 8), (10, 80), (1_000, 1_200), (1_000, 100), (50, 4_000)]
        {
            let best = Shape::for_memory(items, bytes).unwrap();
            let rate = best.expected_rate(items).max(Rate::MIN.get());
            for probes in 1..=MAX_PROBES {
                let other = Shape::with(items, best.bits(), probes).unwrap();
                assert!(rate <= other.expected_rate(items).max(1e-15), "{best:?} {other:?}");
            }
        }
        assert_eq!(Shape::for_memory(5, 7), Err(InvalidShape::TooSmall { bytes: 7, min: 8 }));
        assert!(Shape::for_memory(5, u64::MAX).is_err());
    }

    #[test]
    fn a_budget_holds_its_items_and_not_one_more() {
        for (bytes, rate) in [(8, 0.01), (8, 1e-9), (100, 0.1), (1_000, 0.01), (1_797_208, 0.001)] {
            let shape = Shape::for_budget(bytes, rate).unwrap();
            let items = shape.items();
            assert!(shape.bytes() <= bytes);
            assert!(shape.expected_rate(items) <= rate, "{shape:?}");
            let more = Shape::for_memory(items + 1, bytes).unwrap();
            assert!(more.expected_rate(items + 1) > rate, "{bytes} {rate}: {more:?}");
        }
        assert!(Shape::for_budget(1_797_208, 0.001).unwrap().items() >= 1_000_000);
    }

    #[test]
    fn hostile_parameters_get_an_error_at_once() {
        assert!(matches!(
            Shape::for_rate(u64::MAX, 0.01),
            Err(InvalidShape::RateTooSmall { .. } | InvalidShape::TooLarge { .. })
        ));
        for items in [u64::MAX, u64::MAX / 2, 1 << 60] {
            assert!(Shape::for_rate(items, 1e-9).is_err());
            assert!(Shape::for_rate(items, 0.5).is_err());
        }
        let floor = Shape::for_rate(1_000_000_000, 1e-12).unwrap_err();
        assert!(matches!(floor, InvalidShape::RateTooSmall { min, .. } if min > 1e-10), "{floor}");
        for rate in [0.0, 1.0, f64::NAN, -1.0] {
            assert!(Shape::for_rate(10, rate).is_err());
            assert!(Shape::for_budget(10, rate).is_err());
        }
        assert!(Shape::with(1, 0, 1).is_err());
        assert!(Shape::with(1, MAX_BITS + 1, 1).is_err());
        assert!(Shape::with(1, 64, 0).is_err());
        assert!(Shape::with(1, 64, 65).is_err());
        // Other programs use more probes.
        assert_eq!(Shape::foreign(1, 64, 4_096).map(|shape| shape.probes()), Ok(4_096));
        assert!(Shape::foreign(1, 64, 4_097).is_err() && Shape::foreign(1, 64, 0).is_err());
    }

    #[test]
    fn sizes_above_32_bits_are_exact() {
        for bits in [1_u64 << 32, (1 << 32) + 1, 1 << 35, MAX_BITS] {
            let shape = Shape::with(1, bits, 7).unwrap();
            assert_eq!((shape.bits(), shape.words()), (bits, bits.div_ceil(64)));
        }
    }

    #[test]
    fn no_items_is_a_plan() {
        let shape = Shape::for_rate(0, 0.01).unwrap();
        assert_eq!((shape.words(), shape.probes(), shape.expected_rate(0)), (1, 1, 0.0));
    }

    #[test]
    fn one_item_takes_few_probes() {
        for rate in [0.1, 0.001, 1e-9] {
            assert!(Shape::for_rate(1, rate).unwrap().probes() <= 16);
        }
    }

    #[test]
    fn the_compiler_plans_as_the_program_does() {
        const AT_COMPILE_TIME: Result<Shape, InvalidShape> = Shape::for_rate(1_000, 0.01);
        assert_eq!(AT_COMPILE_TIME, Shape::for_rate(std::hint::black_box(1_000), 0.01));
        const SMALL: Result<Shape, InvalidShape> = Shape::for_rate(13, 1e-9);
        assert_eq!(SMALL, Shape::for_rate(std::hint::black_box(13), 1e-9));
    }

    #[test]
    fn cells_are_packed() {
        assert_eq!(words_for_cells(730, 3), 35);
        assert_eq!(words_for_cells(64, 1), 1);
        assert_eq!(words_for_cells(0, 8), 0);
        assert_eq!(words_for(1_000, 0.01), Shape::for_rate(1_000, 0.01).unwrap().words() as usize);
    }

    #[test]
    fn estimates_invert_the_expected_fill() {
        let shape = Shape::for_rate(10_000, 0.01).unwrap();
        for items in [0, 1, 100, 5_000, 10_000, 50_000] {
            let balls = items * u64::from(shape.probes());
            let set = mean_full(shape.bits(), balls) * shape.bits() as f64;
            let estimate = shape.estimate_items(set.round() as u64);
            assert!(estimate.abs_diff(items) <= 1 + items / 10_000, "{items}: {estimate}");
        }
        assert_eq!(shape.estimate_items(shape.bits()), u64::MAX);
    }
}
