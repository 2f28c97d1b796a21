//! The plan of a blocked counting filter: how many lines, and how many cells of one a key has.
//!
//! ```text
//! P(k probes find cells that are not zero | t balls in B cells) = sum_i c(k, i) (1 - i/B)^t
//! ```
//!
//! by inclusion and exclusion, and t is k times the number of items that come to the line: a binomial
//! number, of which the mean of a power is known. So the rate is a sum of k + 1 terms, and exact.

use super::layout::{CellPlan, same_width};
use super::shape::Width;
use crate::error::{Incompatible, InvalidShape};
use crate::layout::Plan;
use crate::parts::math::{ceil, exp, ln, ln_1p_wide, powi};
use crate::parts::occupancy::{all_full, hit_coefficients};
use crate::sizing::{MAX_BITS, Rate, digest_collisions};

/// The bits of a line.
const LINE: u64 = 512;
/// The most lines a filter may have.
const MAX_LINES: u64 = MAX_BITS / LINE;
/// The most cells a key may have: as many digits as a digest has.
const MAX_PROBES: u32 = 8;
/// Sums below this are taken again in a way that loses no digits.
const CANCELLATION: f64 = 1e-7;

/// The plan of a [`BlockedCountingBloomFilter`](super::BlockedCountingBloomFilter), before any memory
/// exists.
///
/// ```
/// use umbel::counting::{LineShape, Shape, Width};
///
/// let blocked = LineShape::for_rate(1_000_000, 0.01)?;
/// assert_eq!((blocked.probes(), blocked.width()), (6, Width::Four));
/// assert!(blocked.expected_rate(1_000_000) <= 0.01);
/// let classic = Shape::for_rate(1_000_000, 0.01)?;
/// assert!(blocked.bytes() * 100 < classic.bytes() * 113); // what one line a key costs
/// # Ok::<(), umbel::InvalidShape>(())
/// ```
///
/// All of it works at compile time too, and gives the same answers there.
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
    /// Exact from one item up, see [`expected_rate`](Self::expected_rate). Of several numbers of
    /// probes that reach the rate with the same memory it takes the smallest. No items is a valid
    /// plan: a filter of one line.
    ///
    /// # Errors
    ///
    /// If `rate` is not one ([`Rate::new`]), is too small for digests of 64 bits, or the filter
    /// would have more than [`MAX_BITS`].
    pub const fn for_rate(items: u64, rate: f64) -> Result<Self, InvalidShape> {
        Self::for_rate_and_width(items, rate, Width::Four)
    }

    /// As [`for_rate`](Self::for_rate), of other cells: wider ones are fewer in a line, and crowd
    /// more.
    ///
    /// # Errors
    ///
    /// As [`for_rate`](Self::for_rate).
    pub const fn for_rate_and_width(
        items: u64,
        rate: f64,
        width: Width,
    ) -> Result<Self, InvalidShape> {
        let rate = match Rate::new(rate) {
            Ok(rate) => rate.get(),
            Err(error) => return Err(error),
        };
        let collisions = digest_collisions(items);
        if collisions > rate / 2.0 {
            return Err(InvalidShape::RateTooSmall { rate, min: 2.0 * collisions });
        }
        // No Bloom filter takes less than log2(1/rate) / ln 2 cells an item.
        let in_line = Self::cells_per_line(width);
        let least = items as f64 * -ln(rate) / (LN_2_SQUARED * in_line as f64);
        if least >= MAX_LINES as f64 {
            let bits = ceil(least).saturating_mul(LINE);
            return Err(InvalidShape::TooLarge { bits, max: MAX_BITS });
        }
        let mut best: Option<Self> = None;
        let mut probes = 1;
        while probes <= MAX_PROBES {
            // More probes are taken only if they save a line.
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

    /// The same with as few lines as keep the rate, which these do, but not with `fails` or fewer.
    const fn fewest_lines(self, rate: f64, mut fails: u64) -> Self {
        let (mut shape, mut works) = (self, self.lines);
        let mut step = 1 + fails / 16;
        while works > fails + 1 {
            let half = (works - fails) / 2;
            shape.lines = fails + if step < half { step } else { half };
            if shape.expected_rate(self.items) <= rate {
                works = shape.lines;
            } else {
                fails = shape.lines;
                step = step.saturating_mul(2);
            }
        }
        shape.lines = works;
        shape
    }

    /// A plan with exactly these numbers.
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
        if lines > MAX_LINES {
            let bits = lines.saturating_mul(LINE);
            return Err(InvalidShape::TooLarge { bits, max: MAX_BITS });
        }
        if probes == 0 || probes > MAX_PROBES {
            return Err(InvalidShape::ProbesOutOfRange { probes, max: MAX_PROBES });
        }
        Ok(Self { items, lines, probes, width })
    }

    /// The number of items planned for.
    #[must_use]
    pub const fn items(&self) -> u64 {
        self.items
    }

    /// The number of lines of 512 bits.
    #[must_use]
    pub const fn lines(&self) -> u64 {
        self.lines
    }

    /// The number of cells a key has, all in one line.
    #[must_use]
    #[inline(always)]
    pub const fn probes(&self) -> u32 {
        self.probes
    }

    /// How many bits a cell has.
    #[must_use]
    #[inline(always)]
    pub const fn width(&self) -> Width {
        self.width
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

    /// The number of 64-bit words.
    #[must_use]
    pub const fn words(&self) -> u64 {
        self.lines * 8
    }

    /// The memory of the words, in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.lines * (LINE / 8)
    }

    /// The error rate while `items` different keys are in the filter, if no cell is saturated.
    ///
    /// Not an approximation: the mean over all ways keys can fall into lines and cells of a line, for
    /// a few lines as for many. Includes the keys whose digest equals another one's.
    #[must_use]
    pub const fn expected_rate(&self, items: u64) -> f64 {
        let coefficients = &self.coefficients()[self.probes as usize];
        let (mut sum, mut i) = (0.0, 0);
        while i <= self.probes {
            sum += coefficients[i as usize] * exp(items as f64 * self.ln_missed(i));
            i += 1;
        }
        if sum < CANCELLATION {
            sum = self.small_rate(items);
        }
        let rate = sum + digest_collisions(items);
        if rate < 1.0 { rate } else { 1.0 }
    }

    /// The logarithm of the chance that an item has none of so many given cells of one line.
    const fn ln_missed(&self, cells: u32) -> f64 {
        let in_line = Self::cells_per_line(self.width);
        let missed = powi((in_line - cells as u64) as f64 / in_line as f64, self.probes);
        ln_1p_wide((missed - 1.0) / self.lines as f64)
    }

    /// The rate as a sum over how many items come to a line, all of whose terms are positive. For
    /// small rates, so that those numbers are small too.
    const fn small_rate(&self, items: u64) -> f64 {
        if self.lines == 1 {
            return self.rate_after(items as f64);
        }
        let (visits, lines) = (items as f64, self.lines as f64);
        let mut chance = exp(visits * ln_1p_wide(-1.0 / lines));
        let (mut sum, mut came) = (0.0, 0.0);
        while came < visits {
            chance *= (visits - came) / (came + 1.0) / (lines - 1.0);
            came += 1.0;
            let term = chance * self.rate_after(came);
            sum += term;
            if came > visits / lines && term <= 1e-6 * sum {
                break;
            }
        }
        sum
    }

    /// The chance that the cells of an absent key are not zero in a line that has so many items.
    const fn rate_after(&self, items: f64) -> f64 {
        let in_line = Self::cells_per_line(self.width);
        all_full(in_line, ceil(items * self.probes as f64), self.probes)
    }

    const fn coefficients(&self) -> &'static [[f64; 9]; 9] {
        match self.width {
            Width::Two => &COEFFICIENTS[0],
            Width::Four => &COEFFICIENTS[1],
            Width::Eight => &COEFFICIENTS[2],
        }
    }

    /// The share of absent keys that are found in a line with so many cells that are not zero.
    pub(super) const fn rate_of_line(&self, nonzero: u64) -> f64 {
        powi(nonzero as f64 / Self::cells_per_line(self.width) as f64, self.probes)
    }

    /// How many different keys are probably in the filter when so many cells are not zero.
    ///
    /// `u64::MAX` when all are not, which any number of keys may have done.
    #[must_use]
    pub const fn estimate_items(&self, nonzero: u64) -> u64 {
        if nonzero >= self.cells() {
            return u64::MAX;
        }
        let items = ln_1p_wide(-(nonzero as f64) / self.cells() as f64) / self.ln_missed(1);
        (items + 0.5) as u64
    }
}

/// What a classic filter takes: -ln(rate) / (ln 2)^2 bits an item.
const LN_2_SQUARED: f64 = core::f64::consts::LN_2 * core::f64::consts::LN_2;

/// `COEFFICIENTS[width][k][i]` is c(k, i).
const COEFFICIENTS: [[[f64; 9]; 9]; 3] =
    [hit_coefficients(256), hit_coefficients(128), hit_coefficients(64)];

impl Plan for LineShape {
    const NAME: &'static str = "BlockedCountingBloomFilter";

    fn for_rate(items: u64, rate: f64) -> Result<Self, InvalidShape> {
        Self::for_rate(items, rate)
    }

    fn items(&self) -> u64 {
        self.items()
    }

    fn bits(&self) -> u64 {
        self.cells()
    }

    fn probes(&self) -> u32 {
        self.probes()
    }

    fn words(&self) -> u64 {
        self.words()
    }

    fn estimate_items(&self, set: u64) -> u64 {
        self.estimate_items(set)
    }

    fn same_places(&self, other: &Self) -> Result<(), Incompatible> {
        same_width(self.width, other.width)
    }
}

impl CellPlan for LineShape {
    fn width(&self) -> Width {
        self.width
    }
}
