//! The shape of a blocked counting filter: how many lines, and how many cells of one a key has.
//!
//! ```text
//! P(k cells in k given words, one in each, are not zero) = sum over sets S of those words of
//!     (-1)^|S| P(no item has any of the cells in S)
//! P(an item of this line has none of them) = mean over its first word of (1 - 1/w)^c
//! ```
//!
//! by inclusion and exclusion, where w is the number of cells in a word and c the number of words
//! that the item and S have in common. The number of items in a line is binomial, and the mean of a
//! power of it is known. So the rate is an exact sum, many of whose terms are equal.

use super::shape::Width;
use crate::error::InvalidShape;
use crate::layout::probing;
use crate::parts::math::{ceil, exp, ln, ln_1p_wide};
use crate::sizing::{
    MAX_BITS, Rate, check_bits, check_memory, digest_collisions, gallop, getters, ok, shape,
};

/// The bits of a line.
const LINE: u64 = 512;
/// The maximum number of lines of a filter.
const MAX_LINES: u64 = MAX_BITS / LINE;
/// The words of a line, in each of which a key has at most one cell.
const WORDS: u32 = 8;
/// Rates below this are lost in the rounding of the sum, and are reported as this value.
const LEAST_RATE: f64 = 1e-11;

/// The shape of a [`BlockedCountingBloomFilter`](super::BlockedCountingBloomFilter), computed
/// before memory is allocated.
///
/// ```
/// use umbel::counting::{LineShape, Shape, Width};
///
/// let blocked = LineShape::for_rate(1_000_000, 0.01)?;
/// assert_eq!((blocked.probes(), blocked.width()), (6, Width::Four));
/// assert!(blocked.expected_rate(1_000_000) <= 0.01);
/// let classic = Shape::for_rate(1_000_000, 0.01)?;
/// assert!(blocked.bytes() * 100 < classic.bytes() * 114); // what one line a key costs
/// # Ok::<(), umbel::InvalidShape>(())
/// ```
///
/// All functions work at compile time too, with the same results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LineShape {
    items: u64,
    lines: u64,
    probes: u32,
    width: Width,
}

impl LineShape {
    /// The smallest filter of 4-bit cells that holds `items` items at an error rate of at most
    /// `rate`.
    ///
    /// Exact from one item up, see [`expected_rate`](Self::expected_rate). If several numbers of
    /// probes reach the rate with the same memory, the smallest is used. Zero items is valid and
    /// gives a filter of one line.
    ///
    /// # Errors
    ///
    /// If `rate` is not valid ([`Rate::new`]), is below 2 · 10^-11 or too small for digests of 64
    /// bits, or the filter would have more than [`MAX_BITS`].
    pub const fn for_rate(items: u64, rate: f64) -> Result<Self, InvalidShape> {
        Self::for_rate_and_width(items, rate, Width::Four)
    }

    /// As [`for_rate`](Self::for_rate), with cells of another width. A line has fewer wide cells,
    /// which makes crowding worse.
    ///
    /// # Errors
    ///
    /// As [`for_rate`](Self::for_rate).
    pub const fn for_rate_and_width(
        items: u64,
        rate: f64,
        width: Width,
    ) -> Result<Self, InvalidShape> {
        let rate = ok!(Rate::new(rate)).get();
        let min = 2.0 * (digest_collisions(items) + LEAST_RATE);
        if rate < min {
            return Err(InvalidShape::RateTooSmall { rate, min });
        }
        // Every Bloom filter needs at least log2(1/rate) / ln 2 cells per item.
        let in_line = Self::cells_per_line(width);
        let least = items as f64 * -ln(rate) / (LN_2_SQUARED * in_line as f64);
        if least >= MAX_LINES as f64 {
            let bits = ceil(least).saturating_mul(LINE);
            return Err(InvalidShape::TooLarge { bits, max: MAX_BITS });
        }
        let mut best: Option<Self> = None;
        let mut probes = 1;
        while probes <= WORDS {
            // More probes are used only if they save a line.
            let most = match best {
                Some(best) => best.lines - 1,
                None => MAX_LINES,
            };
            let shape = Self { items, lines: most, probes, width };
            if most > 0 && shape.expected_rate(items) <= rate {
                best = Some(shape.fewest_lines(rate, ceil(least) / 2));
            }
            probes += 1;
        }
        match best {
            Some(shape) => Ok(shape),
            None => Err(InvalidShape::TooLarge { bits: u64::MAX, max: MAX_BITS }),
        }
    }

    /// The same shape with the fewest lines that keep the rate. The current number of lines keeps
    /// it, and `fails` or fewer do not.
    const fn fewest_lines(self, rate: f64, fails: u64) -> Self {
        let lines = gallop!(fails, self.lines, 1 + fails / 16, |lines| {
            Self { lines, ..self }.expected_rate(self.items) <= rate
        });
        Self { lines, ..self }
    }

    /// The best filter of 4-bit cells for `items` items in at most `bytes` bytes: the number of
    /// probes that gives the smallest rate.
    ///
    /// # Errors
    ///
    /// If there is not enough memory for one line, or more than [`MAX_BITS`].
    pub const fn for_memory(items: u64, bytes: u64) -> Result<Self, InvalidShape> {
        ok!(check_memory(bytes, LINE / 8));
        let (lines, width) = (bytes / (LINE / 8), Width::Four);
        let mut best = Self { items, lines, probes: 1, width };
        let mut probes = 2;
        while probes <= WORDS {
            let more = Self { probes, ..best };
            if more.expected_rate(items) < best.expected_rate(items) {
                best = more;
            }
            probes += 1;
        }
        Ok(best)
    }

    /// A shape with exactly these numbers.
    ///
    /// # Errors
    ///
    /// Unless there are 1 to 2^39 lines, and 1 to 8 probes.
    pub const fn with(
        items: u64,
        lines: u64,
        probes: u32,
        width: Width,
    ) -> Result<Self, InvalidShape> {
        if lines == 0 {
            return Err(InvalidShape::TooSmall { bytes: 0, min: LINE / 8 });
        }
        ok!(check_bits(lines.saturating_mul(LINE)));
        ok!(InvalidShape::check_range("probes", probes as u64, 1, WORDS as u64));
        Ok(Self { items, lines, probes, width })
    }

    getters! {
        /// The planned number of items.
        items: u64;
        /// The number of lines of 512 bits.
        lines: u64;
        /// The number of cells of a key, all in one line.
        #[inline(always)]
        probes: u32;
        /// The number of bits of a cell.
        #[inline(always)]
        width: Width;
    }

    /// The number of cells in a line, of this width.
    #[must_use]
    pub const fn cells_per_line(width: Width) -> u64 {
        LINE / width.bits() as u64
    }

    /// The number of cells.
    #[must_use]
    pub const fn cells(&self) -> u64 {
        self.lines * Self::cells_per_line(self.width)
    }

    /// The number of bits of all cells.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.lines * LINE
    }

    /// The number of 64-bit words.
    #[must_use]
    pub const fn words(&self) -> u64 {
        self.lines * 8
    }

    /// The error rate while `items` different keys are in the filter, if no cell is saturated.
    ///
    /// Exact for few lines and for many: the mean over all distributions of keys over lines and
    /// over the cells of a line. Values below 10^-11 are reported as 10^-11. It includes the keys
    /// whose digest equals that of another key.
    #[must_use]
    pub const fn expected_rate(&self, items: u64) -> f64 {
        if items == 0 {
            return 0.0;
        }
        let terms = &TERMS[self.probes as usize];
        let (mut sum, mut i) = (0.0, 0);
        while i < terms.len {
            let missed = self.missed(&terms.common[i]);
            sum +=
                terms.times[i] * exp(items as f64 * ln_1p_wide((missed - 1.0) / self.lines as f64));
            i += 1;
        }
        let rate = if sum > LEAST_RATE { sum } else { LEAST_RATE } + digest_collisions(items);
        if rate < 1.0 { rate } else { 1.0 }
    }

    /// The probability that an item of a line has none of some cells in different words. `common`
    /// counts its eight possible first words by how many words they have in common with those
    /// cells.
    const fn missed(&self, common: &[u8; 9]) -> f64 {
        let in_word = self.cells_per_word() as f64;
        let (mut sum, mut power, mut words) = (0.0, 1.0, 0);
        while words < common.len() {
            sum += common[words] as f64 * power;
            power *= (in_word - 1.0) / in_word;
            words += 1;
        }
        sum / WORDS as f64
    }

    const fn cells_per_word(&self) -> u64 {
        Self::cells_per_line(self.width) / WORDS as u64
    }

    /// The share of absent keys that are found in a line whose words have this many nonzero cells.
    pub(super) const fn rate_of_line(&self, nonzero: [u64; 8]) -> f64 {
        let (mut sum, mut first) = (0.0, 0);
        while first < 8 {
            let (mut all, mut probe) = (1.0, 0);
            while probe < self.probes as usize {
                all *= nonzero[(first + probe) % 8] as f64 / self.cells_per_word() as f64;
                probe += 1;
            }
            sum += all;
            first += 1;
        }
        sum / WORDS as f64
    }

    /// An estimate of how many different keys are in the filter if this many cells are not zero.
    ///
    /// `u64::MAX` if no cell is zero, since any larger number of keys is then possible.
    #[must_use]
    pub const fn estimate_items(&self, nonzero: u64) -> u64 {
        let cells = self.cells() as f64;
        if nonzero >= self.cells() {
            return u64::MAX;
        }
        // The probability that an item has a given cell.
        let items =
            ln_1p_wide(-(nonzero as f64) / cells) / ln_1p_wide(-(self.probes as f64) / cells);
        (items + 0.5) as u64
    }
}

/// The terms of the sum, with equal terms combined.
struct Terms {
    /// The number of terms.
    len: usize,
    /// The value of a term, times how often it occurs.
    times: [f64; MOST_TERMS],
    /// How many of the eight possible first words of an item have 0, 1, ... 8 words in common with
    /// the cells of the term.
    common: [[u8; 9]; MOST_TERMS],
}

/// The maximum number of different terms for any number of probes.
const MOST_TERMS: usize = 13;

/// Indexed by the number of probes.
const TERMS: [Terms; 9] =
    [terms(0), terms(1), terms(2), terms(3), terms(4), terms(5), terms(6), terms(7), terms(8)];

/// The terms for keys with cells in this many words.
const fn terms(probes: u32) -> Terms {
    let (mut len, mut times, mut common) = (0, [0.0; MOST_TERMS], [[0; 9]; MOST_TERMS]);
    let window = (1_u32 << probes) - 1;
    let mut set = 0_u32;
    while set <= window {
        let (mut here, mut first) = ([0; 9], 0);
        while first < WORDS {
            let words = (window << first | window << first >> WORDS) & 0xff;
            here[(set & words).count_ones() as usize] += 1;
            first += 1;
        }
        let mut place = 0;
        while place < len && !same(&common[place], &here) {
            place += 1;
        }
        if place == len {
            (common[place], len) = (here, len + 1);
        }
        times[place] += if set.count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
        set += 1;
    }
    Terms { len, times, common }
}

const fn same(one: &[u8; 9], other: &[u8; 9]) -> bool {
    let mut place = 0;
    while place < one.len() {
        if one[place] != other[place] {
            return false;
        }
        place += 1;
    }
    true
}

/// The cost of a classic filter: -ln(rate) / (ln 2)^2 bits per item.
const LN_2_SQUARED: f64 = core::f64::consts::LN_2 * core::f64::consts::LN_2;

shape!(LineShape, "BlockedCountingBloomFilter");

probing!(
    LineShape,
    places: cells,
    fn cell_bits(&self) -> u32 {
        self.width.bits()
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTHS: [Width; 3] = [Width::Two, Width::Four, Width::Eight];

    /// The probability that a key is found in a line of this many other items, by enumeration of
    /// all their first words.
    fn found_among(items: u32, probes: usize, in_word: f64) -> f64 {
        let mut sum = 0.0;
        for firsts in 0..8_usize.pow(items) {
            let mut balls = [0; 8];
            for item in 0..items {
                let first = firsts / 8_usize.pow(item) % 8;
                (0..probes).for_each(|probe| balls[(first + probe) % 8] += 1);
            }
            let hit = |word: usize| 1.0 - (1.0 - 1.0 / in_word).powi(balls[word]);
            sum += (0..probes).map(hit).product::<f64>();
        }
        sum / 8_f64.powi(items as i32)
    }

    #[test]
    fn rates_agree_with_going_through_all_ways_to_fall() {
        for width in WIDTHS {
            for probes in 1..=8 {
                for (items, lines) in [(1, 1), (2, 1), (4, 1), (3, 2), (4, 2), (4, 7)] {
                    let shape = LineShape::with(0, lines, probes, width).unwrap();
                    let share = 1.0 / lines as f64;
                    let mut expected = 0.0;
                    let mut ways = 1.0;
                    for here in 0..=items {
                        let elsewhere = (items - here) as i32;
                        let chance = ways * share.powi(here as i32) * (1.0 - share).powi(elsewhere);
                        let in_word = shape.cells_per_word() as f64;
                        expected += chance * found_among(here, probes as usize, in_word);
                        ways *= f64::from(items - here) / f64::from(here + 1);
                    }
                    let got = shape.expected_rate(u64::from(items));
                    let expected = expected.max(LEAST_RATE);
                    assert!(
                        (got / expected - 1.0).abs() < 1e-2 * LEAST_RATE / expected + 1e-9,
                        "{shape:?} {items}: {got}, not {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn plans_keep_their_rate_and_would_not_with_a_line_less() {
        for width in WIDTHS {
            for items in [1, 2, 10, 100, 1_000, 1_000_000] {
                for rate in [0.5, 0.1, 0.01, 0.001, 1e-6] {
                    let shape = LineShape::for_rate_and_width(items, rate, width).unwrap();
                    assert!(shape.expected_rate(items) <= rate, "{shape:?}");
                    for probes in (1..=8).filter(|_| shape.lines > 1) {
                        let smaller = LineShape { lines: shape.lines - 1, probes, ..shape };
                        assert!(smaller.expected_rate(items) > rate, "{shape:?}, {probes}");
                    }
                }
            }
        }
        let none = LineShape::for_rate(0, 0.01).unwrap();
        assert_eq!((none.lines(), none.probes(), none.expected_rate(0)), (1, 1, 0.0));
        const AT_COMPILE_TIME: Result<LineShape, InvalidShape> = LineShape::for_rate(1_000, 0.01);
        assert_eq!(AT_COMPILE_TIME, LineShape::for_rate(std::hint::black_box(1_000), 0.01));
    }

    #[test]
    fn any_number_of_items_has_a_rate_from_0_to_1() {
        for lines in [1, 2, 1_000, 1 << 39] {
            for probes in 1..=8 {
                let shape = LineShape::with(0, lines, probes, Width::Four).unwrap();
                let mut before = 0.0;
                for items in (0..64).map(|exponent| 1 << exponent).chain([u64::MAX]) {
                    let rate = shape.expected_rate(items);
                    let rises = rate >= before * (1.0 - 1e-2) && rate <= 1.0;
                    assert!(rises, "{shape:?} {items}: {rate}");
                    before = rate;
                }
                assert!(before > 1.0 - 1e-9);
            }
        }
    }

    #[test]
    fn estimates_invert_the_expected_fill() {
        for lines in [1, 10, 10_000] {
            let shape = LineShape::with(0, lines, 6, Width::Four).unwrap();
            for items in [0, 1, lines, lines * 12, lines * 24] {
                let full = 1.0 - (1.0 - 6.0 / shape.cells() as f64).powf(items as f64);
                let nonzero = (full * shape.cells() as f64).round() as u64;
                let blur = 1 + items / 1_000;
                assert!(shape.estimate_items(nonzero).abs_diff(items) <= blur, "{shape:?}");
            }
            assert_eq!(shape.estimate_items(shape.cells()), u64::MAX);
        }
    }
}
