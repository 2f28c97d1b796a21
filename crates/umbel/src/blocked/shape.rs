//! The plan of a blocked Bloom filter: how many lines, one or two of them a key, how many probes.

use crate::error::{Incompatible, InvalidShape};
use crate::layout::plan;
use crate::parts::math::{ceil, exp, ln, ln_1p, powi};
use crate::parts::occupancy::{all_full, hit_coefficients};
use crate::simd::{MAX_LANES, split};
use crate::sizing::{MAX_BITS, Rate, digest_collisions};

/// The bits of a line.
const LINE: u64 = 512;
/// The bits of half a line: probes of a key are dealt out to both halves.
const HALF: u64 = LINE / 2;
/// The most lines a filter may have.
const MAX_LINES: u64 = MAX_BITS / LINE;
/// Two lines a key are taken where one would cost more than this, in percent of space.
const WORTH: u128 = 3;
/// Sums below this are taken again in a way that loses no digits.
const CANCELLATION: f64 = 1e-7;

/// The plan of a blocked Bloom filter, before any memory exists.
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
/// All of it works at compile time too, and gives the same answers there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    items: u64,
    lines: u64,
    lines_per_key: u32,
    probes_per_line: u32,
}

impl Shape {
    /// The smallest filter that holds `items` items at an error rate of at most `rate`, with one
    /// line a key, or two where that saves more than 3 % of space.
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

    /// As [`for_rate`](Self::for_rate) with one line a key, or two, whatever the other would take.
    ///
    /// # Errors
    ///
    /// As [`for_rate`](Self::for_rate), or if `lines_per_key` is neither 1 nor 2.
    pub const fn for_rate_in_lines(
        items: u64,
        rate: f64,
        lines_per_key: u32,
    ) -> Result<Self, InvalidShape> {
        let rate = match Rate::new(rate) {
            Ok(rate) => rate.get(),
            Err(error) => return Err(error),
        };
        if lines_per_key == 0 || lines_per_key > 2 {
            return Err(InvalidShape::LinesOutOfRange { lines: lines_per_key, max: 2 });
        }
        let collisions = digest_collisions(items);
        if collisions > rate / 2.0 {
            return Err(InvalidShape::RateTooSmall { rate, min: 2.0 * collisions });
        }
        // No Bloom filter takes less than log2(1/rate) / ln 2 bits an item.
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

    /// The smallest filter with so many lines a key, if there is one. No filter of fewer than `least`
    /// lines is looked for, but for a few.
    const fn smallest(items: u64, rate: f64, lines_per_key: u32, least: u64) -> Option<Self> {
        let mut best: Option<Self> = None;
        let mut probes_per_line = 1;
        while probes_per_line <= MAX_LANES {
            let mut shape = Self { items, lines: 1, lines_per_key, probes_per_line };
            // More probes are taken only if they save a line.
            let most = match best {
                Some(best) if best.lines == 1 => break,
                Some(best) => best.lines - 1,
                None => MAX_LINES,
            };
            let mut fails = (least - least / 8).saturating_sub(1);
            let mut step = 1 + least / 16;
            shape.lines = most;
            if shape.expected_rate(items) > rate {
                probes_per_line += 1;
                continue;
            }
            // Between a number of lines that fails and one that does not.
            let mut works = most;
            while works - fails > 1 {
                shape.lines =
                    if works - fails > 2 * step { fails + step } else { middle(fails, works) };
                if shape.expected_rate(items) <= rate {
                    works = shape.lines;
                } else {
                    fails = shape.lines;
                    step = step.saturating_mul(2);
                }
            }
            shape.lines = works;
            best = Some(shape);
            probes_per_line += 1;
        }
        best
    }

    /// The best filter for `items` items in at most `bytes` bytes: the smallest rate, with one line
    /// a key unless two make the rate better by as much as 3 % of space would.
    ///
    /// # Errors
    ///
    /// If there is no room for one line, or more than [`MAX_BITS`].
    pub const fn for_memory(items: u64, bytes: u64) -> Result<Self, InvalidShape> {
        if bytes < LINE / 8 {
            return Err(InvalidShape::TooSmall { bytes, min: LINE / 8 });
        }
        if bytes > MAX_BITS / 8 {
            let bits = bytes.saturating_mul(8);
            return Err(InvalidShape::TooLarge { bits, max: MAX_BITS });
        }
        let lines = bytes / (LINE / 8);
        let one = Self::best_probes(items, lines, 1);
        let two = Self::best_probes(items, lines, 2);
        // Would one line with so much more space still be worse?
        let more = Self { lines: lines + (lines as u128 * WORTH / 100) as u64, ..one };
        let worth = more.expected_rate(items) > two.expected_rate(items);
        Ok(if worth { two } else { one })
    }

    /// The number of probes with the smallest rate; fewer where it is below what any filter promises.
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

    /// The filter for as many items as fit into `bytes` bytes at an error rate of at most `rate`.
    /// How many those are is [`items`](Self::items).
    ///
    /// # Errors
    ///
    /// As [`for_rate`](Self::for_rate) and [`for_memory`](Self::for_memory).
    pub const fn for_budget(bytes: u64, rate: f64) -> Result<Self, InvalidShape> {
        let rate = match Rate::new(rate) {
            Ok(rate) => rate.get(),
            Err(error) => return Err(error),
        };
        // Bisect between a number of items that fits and one that does not.
        let (mut fits, mut low) = match Self::for_memory(0, bytes) {
            Ok(shape) => (shape, 0),
            Err(error) => return Err(error),
        };
        let mut high = ceil(fits.bits() as f64 * LN_2_SQUARED / -ln(rate)) + 1;
        // Small filters may be better than the formula for large ones.
        if high < 1 << 20 {
            high *= 8;
        }
        while low + 1 < high {
            let items = low + (high - low) / 2;
            let Ok(shape) = Self::for_memory(items, bytes) else { break };
            if shape.expected_rate(items) <= rate {
                (fits, low) = (shape, items);
            } else {
                high = items;
            }
        }
        Ok(fits)
    }

    /// A plan with exactly these numbers.
    ///
    /// # Errors
    ///
    /// Unless there are 1 to 2^39 lines, one or two of them a key, and 1 to 8 probes in each.
    pub const fn with(
        items: u64,
        lines: u64,
        lines_per_key: u32,
        probes_per_line: u32,
    ) -> Result<Self, InvalidShape> {
        if lines == 0 {
            return Err(InvalidShape::TooSmall { bytes: 0, min: LINE / 8 });
        }
        if lines > MAX_LINES {
            let bits = lines.saturating_mul(LINE);
            return Err(InvalidShape::TooLarge { bits, max: MAX_BITS });
        }
        if lines_per_key == 0 || lines_per_key > 2 {
            return Err(InvalidShape::LinesOutOfRange { lines: lines_per_key, max: 2 });
        }
        if probes_per_line == 0 || probes_per_line > MAX_LANES {
            return Err(InvalidShape::ProbesOutOfRange { probes: probes_per_line, max: MAX_LANES });
        }
        Ok(Self { items, lines, lines_per_key, probes_per_line })
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

    /// In how many lines a key has bits: 1 or 2.
    #[must_use]
    #[inline(always)]
    pub const fn lines_per_key(&self) -> u32 {
        self.lines_per_key
    }

    /// How many bits a key has in each of its lines.
    #[must_use]
    #[inline(always)]
    pub const fn probes_per_line(&self) -> u32 {
        self.probes_per_line
    }

    /// How many bits a key has.
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

    /// The memory of the words, in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.lines * (LINE / 8)
    }

    /// The error rate after `items` different keys were inserted, whether planned or not.
    ///
    /// Not an approximation: the mean over all ways keys can fall into lines and bits into halves,
    /// for a few lines as for many. Includes the keys whose whole digest, or the part of it that
    /// counts inside a line, equals another one's.
    #[must_use]
    pub const fn expected_rate(&self, items: u64) -> f64 {
        // L lines, n items. A line knows n/L items; half a digest tells them apart.
        let line = self.rate_in_line(items, self.split(0));
        let twins = items as f64 / self.lines as f64 / (1_u64 << 32) as f64;
        let rate = if self.lines_per_key == 1 {
            line + twins
        } else {
            // Both lines of a key are one and the same once in L. How full two different lines are
            // goes together less than by chance, so the product is a little high, if anything.
            let (first, second) = (self.split(0), self.split(1));
            let both = self.rate_in_line(items, (first.0 + second.0, first.1 + second.1));
            let same = 1.0 / self.lines as f64;
            (line + twins) * (line + twins) * (1.0 - same) + both * same
        };
        let rate = rate + digest_collisions(items);
        if rate < 1.0 { rate } else { 1.0 }
    }

    /// The chance that so many probes in the halves of a random line all find bits set.
    ///
    /// ```text
    /// P(k probes find set bits | t balls in a half) = sum_i c(k, i) (1 - i/256)^t
    /// ```
    ///
    /// by inclusion and exclusion, and t is a multiple of how many items come to the line, a binomial
    /// number, of which the mean of a power is known: (1 - (1 - power) / L)^n.
    const fn rate_in_line(&self, items: u64, (first, second): (u32, u32)) -> f64 {
        let (mut sum, mut i) = (0.0, 0);
        while i <= first {
            let mut j = 0;
            while j <= second {
                let coefficient = COEFFICIENTS[first as usize][i as usize]
                    * COEFFICIENTS[second as usize][j as usize];
                sum += coefficient * self.mean_power(items, share_without(i), share_without(j));
                j += 1;
            }
            i += 1;
        }
        if sum < CANCELLATION { self.small_rate_in_line(items, (first, second)) } else { sum }
    }

    /// The mean of `a^t b^u`, where t and u balls are in the halves of a line.
    const fn mean_power(&self, items: u64, a: f64, b: f64) -> f64 {
        let (first, second) = self.split(0);
        let mut log = ln_of_mean(powi(a, first) * powi(b, second), self.lines);
        if self.lines_per_key == 2 {
            let (first, second) = self.split(1);
            log += ln_of_mean(powi(a, first) * powi(b, second), self.lines);
        }
        exp(items as f64 * log)
    }

    /// As [`rate_in_line`](Self::rate_in_line), as a sum over how often items come to the line, all of
    /// whose terms are positive. For small rates, so that those numbers are small too.
    const fn small_rate_in_line(&self, items: u64, probes: (u32, u32)) -> f64 {
        let visits = items as f64 * self.lines_per_key as f64;
        if self.lines == 1 {
            return self.rate_after(visits, probes);
        }
        let mean = visits / self.lines as f64;
        let odds = 1.0 / (self.lines - 1) as f64;
        let mut chance = exp(visits * ln_1p_wide(-1.0 / self.lines as f64));
        let (mut sum, mut came) = (0.0, 0.0);
        while came < visits {
            chance *= (visits - came) / (came + 1.0) * odds;
            came += 1.0;
            let term = chance * self.rate_after(came, probes);
            sum += term;
            if came > mean && term <= 1e-6 * sum {
                break;
            }
        }
        sum
    }

    /// The chance that so many probes in the halves of a line find bits set, after so many visits. Of
    /// two lines a key, every other visit is a first one.
    const fn rate_after(&self, visits: f64, (first, second): (u32, u32)) -> f64 {
        let (mut balls, mut others) = self.split(0);
        if self.lines_per_key == 2 {
            (balls, others) = (balls + others, balls + others);
        } else {
            (balls, others) = (2 * balls, 2 * others);
        }
        half_full(ceil(visits * balls as f64 / 2.0), first)
            * half_full(ceil(visits * others as f64 / 2.0), second)
    }

    /// How many of a key's probes in its first (0) or second (1) line are in which half.
    const fn split(&self, line: usize) -> (u32, u32) {
        split(line, self.probes_per_line)
    }

    /// The share of absent keys that find their bits set in their first (0) or second (1) line, if
    /// that is a line whose halves are so full.
    pub(super) const fn rate_of_line(&self, line: usize, first: f64, second: f64) -> f64 {
        let (one, other) = self.split(line);
        powi(first, one) * powi(second, other)
    }

    /// How many different keys have probably been inserted when `set` bits are set.
    ///
    /// `u64::MAX` when all are, which any number of keys may have done.
    #[must_use]
    pub const fn estimate_items(&self, set: u64) -> u64 {
        if set >= self.bits() {
            return u64::MAX;
        }
        // The expected number of set bits grows with the number of items.
        let (mut low, mut high) = (0_u64, 1_u64 << 62);
        while low < high {
            let items = low + (high - low) / 2;
            if self.expected_ones(items) < set as f64 - 0.5 * self.probes() as f64 {
                low = items + 1;
            } else {
                high = items;
            }
        }
        low
    }

    /// How many bits are set after so many items, on average.
    const fn expected_ones(&self, items: u64) -> f64 {
        let empty = self.mean_power(items, share_without(1), 1.0)
            + self.mean_power(items, 1.0, share_without(1));
        (2.0 - empty) * (HALF * self.lines) as f64
    }
}

impl Shape {
    /// The shape of exactly `WORDS` words: that of [`for_rate`](Self::for_rate) if this is the
    /// number it takes, else the best one.
    pub(super) const fn for_words<const WORDS: usize>(
        items: u64,
        rate: f64,
    ) -> Result<Self, InvalidShape> {
        const { assert!(WORDS > 0 && WORDS.is_multiple_of(8), "a line has eight words") }
        let bytes = WORDS as u64 * 8;
        match Self::for_rate(items, rate) {
            Ok(shape) if shape.bytes() == bytes => Ok(shape),
            Ok(shape) if shape.bytes() < bytes => Self::for_memory(items, bytes),
            Ok(shape) => Err(InvalidShape::TooSmall { bytes, min: shape.bytes() }),
            Err(error) => Err(error),
        }
    }

    /// As [`for_words`](Self::for_words).
    ///
    /// # Panics
    ///
    /// Where that gives an error.
    pub(super) const fn for_array<const WORDS: usize>(items: u64, rate: f64) -> Self {
        match Self::for_words::<WORDS>(items, rate) {
            Ok(shape) => shape,
            Err(_) => panic!("the rate must be above 0 and below 1, and the words enough for it"),
        }
    }
}

plan!(
    Shape,
    "BlockedBloomFilter",
    fn same_places(&self, other: &Self) -> Result<(), Incompatible> {
        if self.lines_per_key == other.lines_per_key { Ok(()) } else { Err(Incompatible::Kernels) }
    }
);

/// The number of words for `items` items at this rate: the `WORDS` of an
/// [`ArrayBlockedBloomFilter`](super::ArrayBlockedBloomFilter).
///
/// # Panics
///
/// If there is no such [`Shape`]; in a constant, that is an error of the compiler's.
#[must_use]
pub const fn words_for(items: u64, rate: f64) -> usize {
    match Shape::for_rate(items, rate) {
        Ok(shape) if shape.words() <= usize::MAX as u64 => shape.words() as usize,
        Ok(_) => panic!("so many words do not fit into this machine's memory"),
        Err(_) => panic!("the rate must be above 0 and below 1, and the filter not too large"),
    }
}

const LN_2_SQUARED: f64 = core::f64::consts::LN_2 * core::f64::consts::LN_2;

/// `COEFFICIENTS[k][i]` is c(k, i) of [`Shape::rate_in_line`].
const COEFFICIENTS: [[f64; 9]; 9] = hit_coefficients(HALF);

/// The share of half a line that is left without so many bits.
const fn share_without(bits: u32) -> f64 {
    (HALF - bits as u64) as f64 / HALF as f64
}

/// `ln(1 - (1 - power) / lines)`: the logarithm of the mean of `power` to the number of times, 0 or
/// 1, that one item comes to one of so many lines.
const fn ln_of_mean(power: f64, lines: u64) -> f64 {
    ln_1p_wide((power - 1.0) / lines as f64)
}

/// `ln(1 + x)` for any `x` from above -1 to 0.
const fn ln_1p_wide(x: f64) -> f64 {
    if x > -0.25 { ln_1p(x) } else { ln(1.0 + x) }
}

/// The chance that so many probes find bits set in half a line, after so many balls.
const fn half_full(balls: u64, probes: u32) -> f64 {
    let (mut sum, mut i) = (0.0, 0);
    while i <= probes && balls < u32::MAX as u64 {
        sum += COEFFICIENTS[probes as usize][i as usize] * powi(share_without(i), balls as u32);
        i += 1;
    }
    // So small a sum has lost its digits, and balls are few.
    if sum < 1e-9 { all_full(HALF, balls, probes) } else { sum }
}

const fn middle(low: u64, high: u64) -> u64 {
    low + (high - low) / 2
}
