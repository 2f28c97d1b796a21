//! The shape of a blocked Bloom filter: how many lines, one or two of them per key, how many
//! probes.

use crate::error::InvalidShape;
use crate::layout::{for_arrays, probing, words_for};
use crate::parts::math::{ceil, ln};
use crate::simd::MAX_LANES;
use crate::sizing::{
    MAX_BITS, Rate, bisect, check_bits, check_memory, gallop, getters, ok, rate_for, shape,
};

/// The bits of a line.
pub(super) const LINE: u64 = 512;
/// The maximum number of lines of a filter.
const MAX_LINES: u64 = MAX_BITS / LINE;
/// A key gets two lines where one would cost more than this, in percent of space.
const WORTH: u128 = 3;
/// The shape of a blocked Bloom filter, computed before memory is allocated.
///
/// ```
/// use umbel::blocked::Shape;
///
/// let one = Shape::for_rate(1_000_000, 0.01)?;
/// assert_eq!((one.lines_per_key(), one.probes()), (1, 6));
/// let two = Shape::for_rate(1_000_000, 0.001)?;
/// assert_eq!((two.lines_per_key(), two.probes()), (2, 10));
/// assert!(two.expected_rate(1_000_000) <= 0.001);
/// assert!(two.expected_rate(2_000_000) > 0.02); // twice as many items as planned
/// # Ok::<(), umbel::InvalidShape>(())
/// ```
///
/// All functions work at compile time too, with the same results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    items: u64,
    lines: u64,
    lines_per_key: u32,
    probes_per_line: u32,
}

impl Shape {
    /// The smallest filter that holds `items` items at an error rate of at most `rate`, with one
    /// line per key, or two if that saves more than 3 % of space.
    ///
    /// Exact from one item up, see [`expected_rate`](Self::expected_rate). If several numbers of
    /// probes reach the rate with the same memory, the smallest is used. Zero items is valid and
    /// gives a filter of one line.
    ///
    /// # Errors
    ///
    /// If `rate` is not valid ([`Rate::new`]), is too small for digests of 64 bits, or the filter
    /// would have more than [`MAX_BITS`].
    pub const fn for_rate(items: u64, rate: f64) -> Result<Self, InvalidShape> {
        let one = Self::for_rate_in_lines(items, rate, 1);
        let two = Self::for_rate_in_lines(items, rate, 2);
        match (one, two) {
            (Ok(one), Ok(two)) => {
                let worth = one.lines as u128 * 100 > two.lines as u128 * (100 + WORTH);
                Ok(if worth { two } else { one })
            }
            (Err(_), Ok(two)) => Ok(two),
            (one, _) => one,
        }
    }

    /// As [`for_rate`](Self::for_rate), with the given number of lines per key (1 or 2), even if
    /// the other number would take less space.
    ///
    /// # Errors
    ///
    /// As [`for_rate`](Self::for_rate), or if `lines_per_key` is neither 1 nor 2.
    pub const fn for_rate_in_lines(
        items: u64,
        rate: f64,
        lines_per_key: u32,
    ) -> Result<Self, InvalidShape> {
        let rate = ok!(rate_for(items, rate));
        ok!(check_lines_per_key(lines_per_key));
        // Every Bloom filter needs at least log2(1/rate) / ln 2 bits per item.
        let least = items as f64 * -ln(rate) / (LN_2_SQUARED * LINE as f64);
        if least >= MAX_LINES as f64 {
            let bits = ceil(least).saturating_mul(LINE);
            return Err(InvalidShape::TooLarge { bits, max: MAX_BITS });
        }
        match Self::smallest(items, rate, lines_per_key, ceil(least)) {
            Some(shape) => Ok(shape),
            None => Err(InvalidShape::TooLarge { bits: u64::MAX, max: MAX_BITS }),
        }
    }

    /// The smallest filter with this many lines per key, if there is one. The search starts at
    /// `least` lines, except for small filters.
    const fn smallest(items: u64, rate: f64, lines_per_key: u32, least: u64) -> Option<Self> {
        let mut best: Option<Self> = None;
        let mut probes_per_line = 1;
        while probes_per_line <= MAX_LANES {
            let mut shape = Self { items, lines: 1, lines_per_key, probes_per_line };
            // More probes are used only if they save a line.
            let most = match best {
                Some(best) if best.lines == 1 => break,
                Some(best) => best.lines - 1,
                None => MAX_LINES,
            };
            shape.lines = most;
            if shape.expected_rate(items) <= rate {
                let fails = (least - least / 8).saturating_sub(1);
                shape.lines = gallop!(fails, most, 1 + least / 16, |lines| {
                    shape.lines = lines;
                    shape.expected_rate(items) <= rate
                });
                best = Some(shape);
            }
            probes_per_line += 1;
        }
        best
    }

    /// The best filter for `items` items in at most `bytes` bytes: the one with the smallest rate.
    /// A key has one line, unless two lower the rate by as much as 3 % more space would.
    ///
    /// # Errors
    ///
    /// If there is not enough memory for one line, or more than [`MAX_BITS`].
    pub const fn for_memory(items: u64, bytes: u64) -> Result<Self, InvalidShape> {
        ok!(check_memory(bytes, LINE / 8));
        Ok(Self::best(items, bytes / (LINE / 8)))
    }

    const fn best(items: u64, lines: u64) -> Self {
        let one = Self::best_probes(items, lines, 1);
        let two = Self::best_probes(items, lines, 2);
        // Would one line with this much more space still be worse?
        let more = Self { lines: lines + (lines as u128 * WORTH / 100) as u64, ..one };
        let worth = more.expected_rate(items) > two.expected_rate(items);
        if worth { two } else { one }
    }

    /// The number of probes with the smallest rate, but no more than needed to fall below the
    /// smallest rate that a filter may promise.
    const fn best_probes(items: u64, lines: u64, lines_per_key: u32) -> Self {
        let mut best = Self { items, lines, lines_per_key, probes_per_line: 1 };
        let mut rate = best.expected_rate(items);
        while best.probes_per_line < MAX_LANES && rate >= Rate::MIN.get() {
            let more = Self { probes_per_line: best.probes_per_line + 1, ..best };
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
        let lines = ok!(Self::for_memory(0, bytes)).lines;
        let mut most = ceil((lines * LINE) as f64 * LN_2_SQUARED / -ln(rate)) + 1;
        // Small filters may hold more than the formula for large ones says.
        if most < 1 << 20 {
            most *= 8;
        }
        let too_many =
            bisect!(0, most, |items| Self::best(items, lines).expected_rate(items) > rate);
        Ok(Self::best(too_many - 1, lines))
    }

    /// A shape with exactly these numbers.
    ///
    /// # Errors
    ///
    /// Unless there are 1 to 2^39 lines, one or two of them per key, and 1 to 8 probes in each.
    pub const fn with(
        items: u64,
        lines: u64,
        lines_per_key: u32,
        probes_per_line: u32,
    ) -> Result<Self, InvalidShape> {
        if lines == 0 {
            return Err(InvalidShape::TooSmall { bytes: 0, min: LINE / 8 });
        }
        ok!(check_bits(lines.saturating_mul(LINE)));
        ok!(check_lines_per_key(lines_per_key));
        ok!(InvalidShape::check_range("probes", probes_per_line as u64, 1, MAX_LANES as u64));
        Ok(Self { items, lines, lines_per_key, probes_per_line })
    }

    getters! {
        /// The planned number of items.
        items: u64;
        /// The number of lines of 512 bits.
        lines: u64;
        /// The number of lines in which a key has bits: 1 or 2.
        #[inline(always)]
        lines_per_key: u32;
        /// The number of bits of a key in each of its lines.
        #[inline(always)]
        probes_per_line: u32;
    }

    /// The number of bits of a key.
    #[must_use]
    pub const fn probes(&self) -> u32 {
        self.lines_per_key * self.probes_per_line
    }

    /// The number of bits.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.lines * LINE
    }

    /// The number of 64-bit words.
    #[must_use]
    pub const fn words(&self) -> u64 {
        self.lines * 8
    }

    /// An estimate of how many different keys were inserted if `set` bits are set.
    ///
    /// `u64::MAX` if all bits are set, since any larger number of keys is then possible.
    #[must_use]
    pub const fn estimate_items(&self, set: u64) -> u64 {
        if set >= self.bits() {
            return u64::MAX;
        }
        // The expected number of set bits grows with the number of items.
        let least = set as f64 - 0.5 * self.probes() as f64;
        if self.expected_ones(0) >= least {
            return 0;
        }
        bisect!(0, 1 << 62, |items| self.expected_ones(items) >= least)
    }
}

for_arrays!(Shape, WORDS => WORDS > 0 && WORDS.is_multiple_of(8), "a line has eight words");

shape!(Shape, "BlockedBloomFilter");

probing!(
    Shape,
    places: bits,
    fn lines_per_key(&self) -> u32 {
        self.lines_per_key
    }
);

words_for! {
    /// The number of words for `items` items at this rate: the `WORDS` of an
    /// [`ArrayBlockedBloomFilter`](super::ArrayBlockedBloomFilter).
    Shape
}

const LN_2_SQUARED: f64 = core::f64::consts::LN_2 * core::f64::consts::LN_2;

const fn check_lines_per_key(lines: u32) -> Result<(), InvalidShape> {
    InvalidShape::check_range("lines per key", lines as u64, 1, 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;
    const RATES: [f64; 8] =
        [0.9, 0.5, 0.1, 0.01, 0.001, 1.0 / 65_536.0, 1e-9, 1.0 / 4_294_967_296.0];

    #[test]
    fn the_rate_asked_for_is_reached_with_the_fewest_lines() {
        for items in [1, 2, 3, 5, 10, 30, 100, 1_000, 10_000, 1_000_000, 1_000_000_000] {
            for rate in RATES {
                let shape = Shape::for_rate(items, rate).unwrap();
                assert_eq!(shape.items(), items);
                assert!(shape.expected_rate(items) <= rate, "{items} {rate} {shape:?}");
                // All smaller filters, if there are not too many.
                let fewest = if shape.lines < 300 { 1 } else { shape.lines - 1 };
                for lines in fewest..shape.lines {
                    for probes in 1..=MAX_LANES {
                        let smaller = Shape::with(0, lines, shape.lines_per_key, probes).unwrap();
                        assert!(smaller.expected_rate(items) > rate, "{items} {rate} {smaller:?}");
                    }
                }
                for fewer in 1..shape.probes_per_line {
                    let fewer = Shape { probes_per_line: fewer, ..shape };
                    assert!(fewer.expected_rate(items) > rate, "{items} {rate} {fewer:?}");
                }
            }
        }
    }

    #[test]
    fn a_key_has_one_line_unless_two_save_more_than_3_percent() {
        let mut taken = [0; 3];
        // The two meet between 1 % and 0.1 %: search there, in steps of 3 %.
        let meet = (0..80).map(|step| 0.01 * 0.97_f64.powi(step));
        let rates: Vec<f64> = RATES.into_iter().chain(meet).collect();
        for items in [1, 10, 100, 1_000, 10_000, 1_000_000] {
            for &rate in &rates {
                let shape = Shape::for_rate(items, rate).unwrap();
                let one = Shape::smallest(items, rate, 1, 0).unwrap();
                let two = Shape::smallest(items, rate, 2, 0).unwrap();
                let saves = one.lines as f64 > 1.03 * two.lines as f64;
                assert_eq!(shape, if saves { two } else { one }, "{items} {rate}");
                taken[shape.lines_per_key as usize] += 1;
            }
        }
        assert!(taken[1] > 10 && taken[2] > 10, "{taken:?}");
    }

    #[test]
    fn a_million_items_take_9_95_bits_each_at_1_percent_and_24_6_at_one_in_65_536() {
        for (rate, bar) in [(0.01, 9.95), (0.001, 14.70), (1.0 / 65_536.0, 24.6)] {
            let shape = Shape::for_rate(1_000_000, rate).unwrap();
            let bits = shape.bits() as f64 / 1e6;
            assert!(bits <= bar, "{rate}: {bits}");
        }
    }

    #[test]
    fn memory_gives_the_best_number_of_probes() {
        for (items, bytes) in [
            (1, 64),
            (10, 64),
            (100, 64),
            (100, 200),
            (1_000, 1_200),
            (1_000, 1_900),
            (50, 4_000),
            (1_000_000, 1_300_000),
            (1_000_000, 1_900_000),
        ] {
            let best = Shape::for_memory(items, bytes).unwrap();
            assert_eq!(best.lines, bytes / 64);
            let rate = best.expected_rate(items).max(Rate::MIN.get());
            for probes in 1..=MAX_LANES {
                let other = Shape { probes_per_line: probes, ..best };
                assert!(rate <= other.expected_rate(items).max(1e-15), "{best:?} {other:?}");
                // With one line, even 3 % more of them would not suffice; with two, not even two.
                let lines =
                    best.lines + if best.lines_per_key == 2 { best.lines * 3 / 100 } else { 0 };
                let other = Shape { lines, lines_per_key: 1, ..other };
                let better = best.lines_per_key == 2 && other.expected_rate(items) <= rate;
                assert!(!better, "{best:?} {other:?}");
            }
        }
        assert_eq!(Shape::for_memory(5, 63), Err(InvalidShape::TooSmall { bytes: 63, min: 64 }));
        for bytes in [MAX_BITS / 8 + 1, u64::MAX] {
            let error = Shape::for_memory(5, bytes).unwrap_err();
            assert!(matches!(error, InvalidShape::TooLarge { max: MAX_BITS, .. }), "{error}");
        }
        assert_eq!(Shape::for_memory(5, MAX_BITS / 8).map(|shape| shape.lines), Ok(MAX_LINES));
    }

    #[test]
    fn a_budget_holds_its_items_and_not_one_more() {
        for (bytes, rate) in [
            (64, 0.9),
            (64, 0.01),
            (64, 1e-9),
            (100, 0.1),
            (1_000, 0.01),
            (1_000, 1e-15),
            (10_000, 1e-5),
            (1_800_000, 0.001),
            (1 << 40, 0.01),
        ] {
            let shape = Shape::for_budget(bytes, rate).unwrap();
            let items = shape.items();
            assert!(shape.bytes() <= bytes);
            assert!(shape.expected_rate(items) <= rate, "{shape:?}");
            let more = Shape::for_memory(items + 1, bytes).unwrap();
            assert!(more.expected_rate(items + 1) > rate, "{bytes} {rate}: {more:?}");
        }
        let bytes = Shape::for_rate(1_000_000, 0.001).unwrap().bytes();
        assert!(Shape::for_budget(bytes, 0.001).unwrap().items() >= 1_000_000);
        assert!(Shape::for_budget(63, 0.01).is_err());
    }

    #[test]
    fn hostile_parameters_get_an_error_at_once() {
        for items in [u64::MAX, u64::MAX / 2, 1 << 60, 1 << 50] {
            for rate in [0.5, 0.01, 1e-9] {
                let error = Shape::for_rate(items, rate).unwrap_err();
                let too_small = matches!(error, InvalidShape::RateTooSmall { .. });
                assert!(too_small || matches!(error, InvalidShape::TooLarge { .. }), "{error}");
            }
        }
        let floor = Shape::for_rate(1_000_000_000, 1e-12).unwrap_err();
        assert!(matches!(floor, InvalidShape::RateTooSmall { min, .. } if min > 1e-10), "{floor}");
        for rate in [0.0, -0.0, 1.0, f64::NAN, -1.0, f64::INFINITY] {
            for result in [Shape::for_rate(10, rate), Shape::for_budget(100, rate)] {
                let error = result.unwrap_err();
                assert!(matches!(error, InvalidShape::RateOutOfRange { .. }), "{rate}: {error}");
            }
        }
        assert_eq!(Shape::with(1, 0, 1, 1), Err(InvalidShape::TooSmall { bytes: 0, min: 64 }));
        for (lines, bits) in [(MAX_LINES + 1, MAX_BITS + 512), (u64::MAX, u64::MAX)] {
            let error = InvalidShape::TooLarge { bits, max: MAX_BITS };
            assert_eq!(Shape::with(1, lines, 1, 1), Err(error));
        }
        for lines in [0, 3, u32::MAX] {
            let (what, got) = ("lines per key", u64::from(lines));
            let error = InvalidShape::OutOfRange { what, got, min: 1, max: 2 };
            assert_eq!(Shape::with(1, 1, lines, 1), Err(error));
        }
        for probes in [0, 9, u32::MAX] {
            let (what, got) = ("probes", u64::from(probes));
            let error = InvalidShape::OutOfRange { what, got, min: 1, max: 8 };
            assert_eq!(Shape::with(1, 1, 2, probes), Err(error));
        }
    }

    /// Every valid rate gives, for every number of items, a shape that keeps the rate, or an error.
    #[test]
    fn planning_ends_for_every_size_and_rate() {
        for exponent in 0..64 {
            for items in [1 << exponent, (1_u64 << exponent) + (1 << exponent) / 3] {
                for rate in [0.999_999, 0.5, 0.01, 1e-4, 1e-6, 1e-10, 1e-15] {
                    match Shape::for_rate(items, rate) {
                        Ok(shape) => assert!(shape.expected_rate(items) <= rate, "{shape:?}"),
                        Err(InvalidShape::TooLarge { bits, max }) => assert!(bits > max),
                        Err(InvalidShape::RateTooSmall { rate, min }) => assert!(min > rate),
                        Err(error) => panic!("{items} {rate}: {error}"),
                    }
                }
            }
        }
    }

    #[test]
    fn sizes_above_32_bits_are_exact() {
        for lines in [1 << 23, (1 << 23) + 1, 1 << 32, MAX_LINES] {
            let shape = Shape::with(1, lines, 2, 5).unwrap();
            assert_eq!((shape.bits(), shape.words()), (lines * 512, lines * 8));
            assert_eq!((shape.bytes(), shape.probes()), (lines * 64, 10));
        }
    }

    #[test]
    fn no_items_is_a_plan() {
        let shape = Shape::for_rate(0, 0.01).unwrap();
        assert_eq!((shape.lines, shape.probes(), shape.lines_per_key), (1, 1, 1));
        assert_eq!((shape.words(), shape.expected_rate(0)), (8, 0.0));
        let two = Shape::with(0, 7, 2, 8).unwrap();
        assert_eq!((two.expected_rate(0), two.estimate_items(0)), (0.0, 0));
    }

    #[test]
    fn the_compiler_plans_as_the_program_does() {
        const AT_COMPILE_TIME: Result<Shape, InvalidShape> = Shape::for_rate(1_000, 0.01);
        assert_eq!(AT_COMPILE_TIME, Shape::for_rate(std::hint::black_box(1_000), 0.01));
        const SMALL: Result<Shape, InvalidShape> = Shape::for_rate(13, 1e-4);
        assert_eq!(SMALL, Shape::for_rate(std::hint::black_box(13), 1e-4));
        const WORDS: usize = words_for(1_000, 0.01);
        assert_eq!(WORDS as u64, AT_COMPILE_TIME.unwrap().words());
    }

    #[test]
    fn estimates_invert_the_expected_fill() {
        for lines in [1, 2, 100, 1 << 16] {
            for (lines_per_key, probes) in [(1, 1), (1, 5), (1, 8), (2, 1), (2, 3), (2, 8)] {
                let shape = Shape::with(0, lines, lines_per_key, probes).unwrap();
                let (more, fewer) = (probes.div_ceil(2), probes / 2);
                // The share of a bit's probability to be empty that one item leaves, in either half
                // of a line.
                let leaves = |probes: u32| {
                    1.0 - (1.0 - (255.0_f64 / 256.0).powi(probes as i32)) / lines as f64
                };
                let left = if lines_per_key == 1 {
                    [leaves(more), leaves(fewer)]
                } else {
                    [leaves(more) * leaves(fewer); 2]
                };
                for items in [0, 1, lines, lines * 20, lines * 40] {
                    let empty = left.map(|left| left.powf(items as f64)).iter().sum::<f64>() / 2.0;
                    let set = shape.bits() as f64 * (1.0 - empty);
                    let estimate = shape.estimate_items(set.round() as u64);
                    // To the nearest item, while an item sets most of its bits.
                    let blur = 1 + (0.5 / empty) as u64 + items / 1_000;
                    assert!(estimate.abs_diff(items) <= blur, "{shape:?} {items}: {estimate}");
                }
                assert_eq!(shape.estimate_items(shape.bits()), u64::MAX);
                assert_eq!(shape.estimate_items(u64::from(shape.probes())), 1);
            }
        }
    }
}
