//! The shape of a stable Bloom filter: the number of cells, their width, the cells of a key, and
//! the cells that an insertion decrements.

use super::rate::Cell;
use crate::error::InvalidShape;
use crate::kernels::MAX_PROBES;
use crate::parts::math::{ceil, exp, ln};
use crate::sizing::{Rate, bisect, check_bits, check_memory, getters, least_rate, ok, shape};
use core::f64::consts::LN_2;

/// The maximum number of bits of a cell.
pub const MAX_WIDTH: u32 = 8;

/// The default number of bits of a cell: at 0.1 %, 1 % and 10 % it keeps the most keys in the same
/// memory, if nine of ten are to be kept.
const WIDTH: u32 = 4;

/// The guarantee of `new`: this share of the keys that were inserted up to `capacity` insertions
/// ago is found.
const KEPT: f64 = 0.9;

/// The number of probes that keeps keys longest, divided by log2(1/rate), for cells of 1 to 8 bits.
/// It is between half of what a classic filter uses and nearly all of it, since wide cells forget
/// all keys at about the same age, like a window.
const PROBES: [f64; 8] = [0.46, 0.64, 0.75, 0.82, 0.88, 0.92, 0.93, 0.96];

/// The shape of a stable Bloom filter, computed before memory is allocated.
///
/// ```
/// use umbel::stable::Shape;
///
/// let shape = Shape::for_cells(730, 3, 0.03)?; // cells, bits of a cell, error rate
/// assert_eq!((shape.cells(), shape.probes(), shape.decrements()), (731, 4, 51));
/// assert!(shape.stable_rate() <= 0.03);
/// assert!(shape.found_after(40) > 0.9 && shape.found_after(400) < 0.03);
/// # Ok::<(), umbel::InvalidShape>(())
/// ```
///
/// All functions work at compile time too, with the same results. The exception is the stable rate
/// of cells of 8 bits, which exceeds the compiler's step limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    cells: u64,
    width: u32,
    probes: u32,
    decrements: u64,
}

impl Shape {
    /// A filter of `cells` cells, or one more to make their number odd, of `width` bits, whose
    /// stable rate is at most `rate`. It has the number of probes that keeps keys longest, and the
    /// smallest number of decrements that reaches the rate.
    ///
    /// # Errors
    ///
    /// If `rate` is not valid, if `width` is not 1 to 8, if there are too many cells, or if there
    /// are so few that decrementing all of them at every insertion would not be enough.
    pub const fn for_cells(cells: u64, width: u32, rate: f64) -> Result<Self, InvalidShape> {
        let rate = ok!(Rate::new(rate)).get();
        ok!(check(cells, width));
        let cells = cells | 1;
        let probes = (PROBES[width as usize - 1] * -ln(rate) / LN_2 + 0.5) as u32;
        let probes = if probes > 0 { probes } else { 1 };
        let mut shape = Self { cells, width, probes, decrements: 1 };
        if cells == 1 {
            // The cell is never zero.
            return Err(InvalidShape::OutOfRange { what: "decrements", got: 2, min: 1, max: 1 });
        }
        let full = exp(ln(rate) / probes as f64);
        let spread = shape.most_spread(full);
        shape.decrements = ceil(shape.cell().decrements_for(full));
        while shape.decrements <= cells && shape.cell().stable_rate(spread) > rate {
            shape.decrements += 1;
        }
        shape.checked()
    }

    /// The smallest filter of 4-bit cells with a stable rate of at most `rate` that finds a key
    /// with a probability of at least 0.9 if it was inserted `capacity` insertions ago.
    ///
    /// # Errors
    ///
    /// As [`for_cells`](Self::for_cells).
    pub const fn for_rate(capacity: u64, rate: f64) -> Result<Self, InvalidShape> {
        ok!(Rate::new(rate));
        // Doubles the number until it is enough, then bisects.
        let (mut low, mut high) = (0, capacity | 1);
        let mut best = loop {
            match Self::for_cells(high, WIDTH, rate) {
                Ok(shape) if shape.found_after(capacity) >= KEPT => break shape,
                Err(error @ InvalidShape::TooLarge { .. }) => return Err(error),
                _ => (low, high) = (high, high.saturating_mul(2)),
            }
        };
        while low + 1 < high {
            let cells = low + (high - low) / 2;
            match Self::for_cells(cells, WIDTH, rate) {
                Ok(shape) if shape.found_after(capacity) >= KEPT => (best, high) = (shape, cells),
                _ => low = cells,
            }
        }
        Ok(best)
    }

    /// The filter of 4-bit cells in at most `bytes` bytes with a stable rate of at most `rate`.
    /// [`remembers`](Self::remembers) returns how long it keeps keys.
    ///
    /// # Errors
    ///
    /// As [`for_cells`](Self::for_cells), and if there is not enough memory for one word.
    pub const fn for_budget(bytes: u64, rate: f64) -> Result<Self, InvalidShape> {
        ok!(check_memory(bytes, 8));
        Self::for_cells(bytes / 8 * (64 / WIDTH as u64) - 1, WIDTH, rate)
    }

    /// The filter of 4-bit cells in at most `bytes` bytes with the smallest stable rate that finds
    /// a key with a probability of at least 0.9 if it was inserted `items` insertions ago.
    ///
    /// # Errors
    ///
    /// If there is no room for them at any rate, or more than
    /// [`MAX_BITS`](crate::sizing::MAX_BITS).
    pub fn for_memory(items: u64, bytes: u64) -> Result<Self, InvalidShape> {
        least_rate(bytes, |rate| Self::for_rate(items, rate))
    }

    /// A filter of `cells` cells of `width` bits, where a key has `probes` cells and an insertion
    /// decrements `decrements` cells.
    ///
    /// # Errors
    ///
    /// If the number of cells is even or too large, `width` is not 1 to 8, `probes` is not 1 to 64,
    /// or `decrements` is 0 or more than the number of cells.
    pub const fn with(
        cells: u64,
        width: u32,
        probes: u32,
        decrements: u64,
    ) -> Result<Self, InvalidShape> {
        ok!(check(cells, width));
        if cells.is_multiple_of(2) {
            return Err(InvalidShape::EvenBits { bits: cells });
        }
        ok!(InvalidShape::check_range("probes", probes as u64, 1, MAX_PROBES as u64));
        Self { cells, width, probes, decrements }.checked()
    }

    const fn checked(self) -> Result<Self, InvalidShape> {
        ok!(InvalidShape::check_range("decrements", self.decrements, 1, self.cells));
        Ok(self)
    }

    const fn cell(&self) -> Cell {
        Cell::new(self.cells, self.width, self.probes, self.decrements)
    }

    /// An upper bound on the variance of a filter with a share of nonzero cells of about `full`.
    /// Wide cells vary less than narrow ones and take longer to compute, so the bound uses narrow
    /// ones.
    const fn most_spread(&self, full: f64) -> f64 {
        let width = if self.width < WIDTH { self.width } else { WIDTH };
        let mut narrow = Self { width, decrements: 1, ..*self };
        narrow.decrements = ceil(narrow.cell().decrements_for(full));
        if narrow.decrements > self.cells {
            narrow.decrements = self.cells;
        }
        narrow.cell().spread() * 1.1
    }

    getters! {
        /// The number of cells.
        cells: u64;
        /// The number of bits of a cell.
        width: u32;
    }

    /// The largest number in a cell. An insertion sets the cells of its key to it.
    #[must_use]
    pub const fn max(&self) -> u64 {
        (1 << self.width) - 1
    }

    getters! {
        /// The number of cells of a key: the paper's K.
        probes: u32;
        /// The number of cells that an insertion decrements: the paper's P.
        decrements: u64;
    }

    /// The largest number of insertions after which a key is still found with a probability of at
    /// least 0.9.
    #[must_use]
    pub const fn items(&self) -> u64 {
        self.remembers(KEPT)
    }

    /// The number of bits of all cells.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.cells * self.width as u64
    }

    /// The number of 64-bit words.
    #[must_use]
    pub const fn words(&self) -> u64 {
        self.bits().div_ceil(64)
    }

    /// The stable point: the mean share of zero cells once decrements and sets are in balance. With
    /// the P and K of the paper, m cells and s = 1 - (1 - 1/m)^K, it is (1 / (1 + m s / (P (1 -
    /// s))))^Max. The value is exact, since each cell is decremented with probability P/m and then
    /// set with probability s.
    #[must_use]
    pub const fn stable_point(&self) -> f64 {
        if self.cells == 1 { 0.0 } else { 1.0 - self.cell().stable() }
    }

    /// The error rate at the stable point. The error rate never exceeds it.
    ///
    /// The textbook's (1 - stable point)^K is the rate of the average filter. This is the mean rate
    /// of filters, which vary: 1 % more for 730 cells, and 5 % for a hundred. The variance is
    /// computed exactly from the joint distribution of two cells, except that the sum over their
    /// distances uses three points. It takes a millisecond for cells of 8 bits.
    #[must_use]
    pub const fn stable_rate(&self) -> f64 {
        if self.cells == 1 {
            return 1.0;
        }
        let cell = self.cell();
        cell.stable_rate(cell.spread())
    }

    /// The error rate after this many insertions of different keys into an empty filter.
    #[must_use]
    pub const fn expected_rate(&self, insertions: u64) -> f64 {
        if insertions == 0 || self.cells == 1 {
            return if insertions == 0 { 0.0 } else { 1.0 };
        }
        let cell = self.cell();
        let (full, _) = cell.after(insertions);
        // The fill of a stable filter has the largest variance.
        cell.rate(full, cell.spread())
    }

    /// The probability that a key is found after this many insertions of other keys. It is 1 at
    /// first and approaches the stable rate. One minus this is the false negative rate for that
    /// gap.
    ///
    /// Computed as if the cells of a key aged independently.
    #[must_use]
    pub const fn found_after(&self, insertions: u64) -> f64 {
        if self.cells == 1 {
            return 1.0;
        }
        let cell = self.cell();
        let (_, full) = cell.after(insertions);
        cell.rate(full, 0.0)
    }

    /// The number of insertions of other keys after which a key is still found with at least this
    /// probability; `u64::MAX` if there is no limit, as below the stable rate.
    #[must_use]
    pub const fn remembers(&self, probability: f64) -> u64 {
        let mut high = 1;
        while self.found_after(high) >= probability {
            if high > u64::MAX / 2 {
                return u64::MAX;
            }
            high *= 2;
        }
        bisect!(high / 2, high, |insertions| self.found_after(insertions) < probability) - 1
    }

    /// The number of insertions into an empty filter after which the mean share of nonzero cells is
    /// within `part` of its value at the stable point: 0.01 for within 1 %. The share approaches it
    /// exponentially.
    #[must_use]
    pub const fn settles_after(&self, part: f64) -> u64 {
        if self.cells == 1 {
            return 1;
        }
        let cell = self.cell();
        let least = cell.stable() * (1.0 - part);
        let mut high = 1;
        while cell.after(high).0 < least && high < 1 << 62 {
            high *= 2;
        }
        bisect!(high / 2, high, |insertions| cell.after(insertions).0 >= least)
    }
}

/// Checks that there can be this many cells of this width.
const fn check(cells: u64, width: u32) -> Result<(), InvalidShape> {
    ok!(InvalidShape::check_range("bits of a cell", width as u64, 1, MAX_WIDTH as u64));
    check_bits((cells | 1).saturating_mul(width as u64))
}

shape!(Shape, "StableBloomFilter");

/// The number of words for `cells` cells of `width` bits, or one more to make their number odd: the
/// `WORDS` of an [`ArrayStableBloomFilter`](super::ArrayStableBloomFilter).
///
/// # Panics
///
/// If `width` is not 1 to 8, or there are too many cells. In a `const` context, this fails to
/// compile.
#[must_use]
pub const fn words_for(cells: u64, width: u32) -> usize {
    match check(cells, width) {
        Ok(()) => crate::bloom::words_for_cells(cells as usize | 1, width),
        Err(_) => panic!("a cell has from 1 to 8 bits, and the filter must not be too large"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    /// Step by step, from a zero cell and from a full one.
    #[test]
    fn the_stable_point_is_the_limit_of_a_cell_s_chain() {
        for (cells, width, probes, decrements) in
            [(731, 3, 4, 52), (101, 1, 3, 7), (15, 2, 5, 15), (3, 1, 1, 1), (1_001, 8, 2, 700)]
        {
            let shape = Shape::with(cells, width, probes, decrements).unwrap();
            let (a, max) = (decrements as f64 / cells as f64, shape.max() as usize);
            let s = 1.0 - (1.0 - 1.0 / cells as f64).powi(probes as i32);
            // From the probability of each number to the probabilities after one more insertion.
            let step = |numbers: &[f64]| {
                let mut next = vec![0.0; max + 1];
                for (number, p) in numbers.iter().enumerate() {
                    next[number.saturating_sub(1)] += p * a * (1.0 - s);
                    next[number] += p * (1.0 - a) * (1.0 - s);
                    next[max] += p * s;
                }
                next
            };
            let (mut empty, mut full) = (vec![0.0; max + 1], vec![0.0; max + 1]);
            (empty[0], full[max]) = (1.0, 1.0);
            for n in 0..4_000 {
                let (from_zero, from_max) = if n == 0 { (0.0, 1.0) } else { shape.cell().after(n) };
                assert!((1.0 - empty[0] - from_zero).abs() < 1e-12, "{shape:?} {n}");
                assert!((1.0 - full[0] - from_max).abs() < 1e-12, "{shape:?} {n}");
                (empty, full) = (step(&empty), step(&full));
            }
            if shape.settles_after(1e-9) < 4_000 {
                assert!((empty[0] - shape.stable_point()).abs() < 1e-8, "{shape:?}");
            }
        }
    }

    #[test]
    fn plans_keep_their_rate_with_as_few_decrements_as_that_takes() {
        for cells in [15, 101, 731, 10_000, 1 << 20, 1 << 40] {
            for width in 1..=7 {
                for rate in [0.5, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-6, 1e-15] {
                    let Ok(shape) = Shape::for_cells(cells, width, rate) else { continue };
                    let stable = shape.stable_rate();
                    assert!(stable <= rate, "{shape:?}: {stable} for {rate}");
                    assert!(
                        stable > rate * (1.0 - wasted(&shape)),
                        "{shape:?}: {stable} for {rate}"
                    );
                }
            }
        }
    }

    /// The share of the rate that the last decrement may cost, and the tenth by which the spread is
    /// overestimated.
    fn wasted(shape: &Shape) -> f64 {
        let (probes, one_less) = (f64::from(shape.probes()), shape.decrements() - 1);
        let Shape { cells, width, .. } = *shape;
        let Ok(fewer) = Shape::with(cells, width, shape.probes(), one_less) else { return 1.0 };
        1.0 - shape.stable_rate() / fewer.stable_rate() + 2.0 * probes * probes / cells as f64
    }

    #[test]
    fn no_number_of_probes_keeps_keys_much_longer_than_the_planned_one() {
        for width in 1..=4 {
            for rate in [0.1, 0.03, 0.01, 0.001, 1e-6] {
                let planned = Shape::for_cells(1_000_001, width, rate).unwrap();
                let kept = planned.remembers(0.5);
                for probes in planned.probes().saturating_sub(3).max(1)..planned.probes() + 4 {
                    let mut other = Shape { probes, ..planned };
                    other.decrements = 1;
                    let full = exp(ln(rate) / f64::from(probes));
                    other.decrements = ceil(other.cell().decrements_for(full));
                    let longer = other.remembers(0.5) as f64 / kept as f64;
                    assert!(longer < 1.03, "{planned:?}: {probes} probes keep keys {longer} times");
                }
            }
        }
    }

    #[test]
    fn four_bits_keep_nine_of_ten_keys_longest_and_two_bits_half_of_them() {
        let longest = |rate, probability| {
            let kept = |width: &u32| {
                let shape = Shape::for_cells(12_000_000 / u64::from(*width), *width, rate);
                shape.unwrap().remembers(probability)
            };
            (1..=MAX_WIDTH).max_by_key(kept).unwrap()
        };
        for rate in [0.1, 0.01, 0.001] {
            assert_eq!(longest(rate, KEPT), WIDTH, "at {rate}");
        }
        assert_eq!(longest(0.01, 0.5), 2);
    }

    #[test]
    fn capacities_are_kept_by_the_smallest_filter() {
        for (capacity, rate) in [(0, 0.5), (1, 0.01), (10, 0.1), (1_000, 0.01), (1 << 30, 1e-6)] {
            let shape = Shape::for_rate(capacity, rate).unwrap();
            assert!(shape.found_after(capacity) >= 0.9 && shape.remembers(0.9) >= capacity);
            assert!(shape.stable_rate() <= rate);
            let less = Shape::for_cells(shape.cells() * 99 / 100 - 2, 4, rate);
            assert!(less.is_err() || less.unwrap().found_after(capacity) < 0.9, "{shape:?}");
        }
        let bytes = Shape::for_budget(1_000, 0.01).unwrap();
        assert_eq!((bytes.bytes(), bytes.cells()), (1_000, 1_999));
    }

    #[test]
    fn words_are_those_of_an_odd_number_of_cells() {
        assert_eq!((words_for(730, 3), words_for(64, 1), words_for(63, 1)), (35, 2, 1));
        for cells in [1, 2, 63, 64, 730, 1_000] {
            for width in 1..=8 {
                if let Ok(shape) = Shape::for_cells(cells, width, 0.3) {
                    assert_eq!(shape.words(), words_for(cells, width) as u64);
                }
            }
        }
    }

    #[test]
    fn the_compiler_plans_as_the_program_does() {
        const SHAPE: Result<Shape, InvalidShape> = Shape::for_cells(730, 3, 0.03);
        assert_eq!(SHAPE, Shape::for_cells(std::hint::black_box(730), 3, 0.03));
        const KEPT: Result<Shape, InvalidShape> = Shape::for_rate(100, 0.03);
        assert_eq!(KEPT, Shape::for_rate(std::hint::black_box(100), 0.03));
    }
}
