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
    /// Not an approximation for one line a key: the mean over all ways keys can fall into lines and
    /// bits into halves, for a few lines as for many. For two, exact but for taking two lines as
    /// independent of each other: never low, and too high by less than a tenth for a few lines, by
    /// nothing that counts for a hundred. Includes the keys whose whole digest, or the part of it
    /// that counts inside a line, equals another one's.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;
    use std::{array, vec};

    /// Rates by another road: the number of visits to a line and of full bits in its halves, item by
    /// item and ball by ball.
    struct StepByStep {
        /// `full[balls][probes]`: the chance that probes find only full bits in half a line.
        full: Vec<[f64; 9]>,
        /// Probes of a first line in its halves; in a second line it is the other way round.
        more: usize,
        fewer: usize,
    }

    impl StepByStep {
        /// For up to so many visits to a line.
        fn new(visits: usize, probes_per_line: u32) -> Self {
            let mut bits = [0.0; 257];
            bits[0] = 1.0;
            let mut after_ball = || {
                let row = array::from_fn(|probes| {
                    (0..=256).map(|x| bits[x] * (x as f64 / 256.0).powi(probes as i32)).sum()
                });
                for x in (0..=256).rev() {
                    let come = if x == 0 { 0.0 } else { bits[x - 1] * (257 - x) as f64 / 256.0 };
                    bits[x] = bits[x] * x as f64 / 256.0 + come;
                }
                row
            };
            let (more, fewer) =
                (probes_per_line.div_ceil(2) as usize, probes_per_line as usize / 2);
            let full = (0..=visits * more).map(|_| after_ball()).collect();
            Self { full, more, fewer }
        }

        /// The chance that so many probes in the halves of a line find full bits only, after some
        /// keys had it as their first line and others as their second.
        fn found(&self, (firsts, seconds): (usize, usize), probes: (usize, usize)) -> f64 {
            self.full[firsts * self.more + seconds * self.fewer][probes.0]
                * self.full[firsts * self.fewer + seconds * self.more][probes.1]
        }

        /// `chances[a][b]`: of `items` items, a come to one line and b to another one.
        fn visits(items: usize, lines: f64) -> Vec<Vec<f64>> {
            let mut chances = vec![vec![0.0; items + 1]; items + 1];
            chances[0][0] = 1.0;
            for came in 1..=items {
                for a in (0..=came).rev() {
                    for b in (0..=came - a).rev() {
                        let from_a = if a == 0 { 0.0 } else { chances[a - 1][b] };
                        let from_b = if b == 0 { 0.0 } else { chances[a][b - 1] };
                        chances[a][b] =
                            chances[a][b] * (1.0 - 2.0 / lines) + (from_a + from_b) / lines;
                    }
                }
            }
            chances
        }

        /// The chance of each number of visits to one line.
        fn visits_of_one(items: usize, lines: f64) -> Vec<f64> {
            let mut chances = vec![0.0; items + 1];
            chances[0] = 1.0;
            for _ in 0..items {
                for came in (0..=items).rev() {
                    let come = if came == 0 { 0.0 } else { chances[came - 1] / lines };
                    chances[came] = chances[came] * (1.0 - 1.0 / lines) + come;
                }
            }
            chances
        }

        /// For keys of one line.
        fn one_line(&self, items: usize, lines: f64) -> f64 {
            let chances = Self::visits_of_one(items, lines);
            let probes = (self.more, self.fewer);
            (0..=items).map(|came| chances[came] * self.found((came, 0), probes)).sum()
        }

        /// For keys of two lines that are one and the same, or for the first of two, by `probes`.
        fn same_line(&self, items: usize, lines: f64, probes: (usize, usize)) -> f64 {
            let chances = Self::visits_of_one(items, lines);
            let pairs = (0..=items).flat_map(|a| (0..=items).map(move |b| (a, b)));
            pairs.map(|(a, b)| chances[a] * chances[b] * self.found((a, b), probes)).sum()
        }

        /// For keys of two different lines.
        fn two_lines(&self, items: usize, lines: f64) -> f64 {
            let chances = Self::visits(items, lines);
            let likely = |a: &usize, b: &usize| chances[*a][*b] > 1e-14;
            let pairs: Vec<(usize, usize)> = (0..=items)
                .flat_map(|a| (0..=items - a).map(move |b| (a, b)))
                .filter(|(a, b)| likely(a, b))
                .collect();
            let mut rate = 0.0;
            for &(first_here, first_there) in &pairs {
                for &(second_here, second_there) in &pairs {
                    rate += chances[first_here][first_there]
                        * chances[second_here][second_there]
                        * self.found((first_here, second_here), (self.more, self.fewer))
                        * self.found((first_there, second_there), (self.fewer, self.more));
                }
            }
            rate
        }
    }

    fn assert_close(got: f64, expected: f64, digits: f64, what: (u32, u64, usize)) {
        assert!((got / expected - 1.0).abs() < digits, "{what:?}: {got} {expected}");
    }

    #[test]
    fn rates_of_one_line_agree_with_counting_step_by_step() {
        for probes in 1..=MAX_LANES {
            for items in [1, 2, 3, 10, 30, 150] {
                let steps = StepByStep::new(items, probes);
                for lines in [1, 2, 3, 5, 20, 1_000] {
                    let shape = Shape::with(0, lines, 1, probes).unwrap();
                    let expected = steps.one_line(items, lines as f64);
                    let twins = items as f64 / lines as f64 / 2_f64.powi(32);
                    let rate = expected + twins + digest_collisions(items as u64);
                    let what = (probes, lines, items);
                    assert_close(shape.expected_rate(items as u64), rate, 1e-6, what);
                    let found = shape.rate_in_line(items as u64, shape.split(0));
                    assert_close(found, expected, 1e-6, what);
                }
            }
        }
    }

    #[test]
    fn each_of_two_lines_agrees_with_counting_step_by_step() {
        for probes in 1..=MAX_LANES {
            for items in [3, 10, 30, 150] {
                let steps = StepByStep::new(2 * items, probes);
                let all = (probes as usize, probes as usize);
                for lines in [1, 2, 3, 5, 20] {
                    let shape = Shape::with(0, lines, 2, probes).unwrap();
                    for (probes, counted) in
                        [(shape.split(0), (steps.more, steps.fewer)), ((probes, probes), all)]
                    {
                        let expected = steps.same_line(items, lines as f64, counted);
                        let found = shape.rate_in_line(items as u64, probes);
                        // Below, every other visit counts as a first one.
                        if expected > CANCELLATION || shape.probes_per_line.is_multiple_of(2) {
                            let digits = if expected > 1e-15 { 1e-6 } else { 1e-5 };
                            assert_close(found, expected, digits, (probes.0, lines, items));
                        }
                    }
                }
            }
        }
    }

    /// Whoever fills one line does not fill another, so that two crowded lines are rarer than by
    /// chance. The formula leaves that out: to first order it is high by the covariance of the
    /// logarithms of both rates, and the next order takes some of that back.
    ///
    /// ```text
    /// v = 2n/L visits, p probes each in 512 bits:     rate f^p with f = 1 - exp(-pv/512)
    /// d ln rate / dv = p^2/512 (1 - f)/f              covariance of the visits: -v/L
    /// ```
    #[test]
    fn two_lines_are_never_taken_for_better_and_hardly_for_worse_than_they_are() {
        let mut compared = 0;
        for probes in 1..=MAX_LANES {
            for items in [3, 10, 30, 60, 100] {
                let steps = StepByStep::new(2 * items, probes);
                let all = (probes as usize, probes as usize);
                for lines in [2_u64, 3, 5, 10, 20] {
                    let (l, p) = (lines as f64, f64::from(probes));
                    let same = steps.same_line(items, l, all);
                    let exact = steps.two_lines(items, l) * (1.0 - 1.0 / l) + same / l;
                    if exact < 1e-6 {
                        continue;
                    }
                    let shape = Shape::with(0, lines, 2, probes).unwrap();
                    let high = shape.expected_rate(items as u64) / exact - 1.0;
                    let visits = 2.0 * items as f64 / l;
                    let empty = (-p * visits / 512.0).exp();
                    let slope = p * p / 512.0 * empty / (1.0 - empty);
                    let bound = slope * slope * visits / l;
                    let what = (probes, lines, items);
                    assert!((-1e-6..=bound).contains(&high), "{what:?}: {high} {bound}");
                    compared += 1;
                }
            }
        }
        assert!(compared > 60, "{compared}");
    }

    #[test]
    fn the_sum_that_cancels_and_the_one_that_does_not_agree_where_they_meet() {
        for lines in [2, 3, 5, 100, 1_000_000] {
            for (lines_per_key, probes) in
                (1..=8).map(|p| (1, p)).chain([2, 4, 6, 8].map(|p| (2, p)))
            {
                let shape = Shape::with(0, lines, lines_per_key, probes).unwrap();
                let cancels = |items| shape.rate_in_line(items, shape.split(0));
                let (mut below, mut items) = (0, lines * 512);
                while items - below > 1 {
                    let half = middle(below, items);
                    *(if cancels(half) > CANCELLATION { &mut items } else { &mut below }) = half;
                }
                for items in items..items + 3 {
                    let positive = shape.small_rate_in_line(items, shape.split(0));
                    let ratio = cancels(items) / positive;
                    assert!((ratio - 1.0).abs() < 1e-5, "{shape:?} {items}: {ratio}");
                }
            }
        }
    }

    const RATES: [f64; 7] = [0.9, 0.5, 0.1, 0.01, 0.001, 1.0 / 65_536.0, 1e-9];

    #[test]
    fn the_rate_asked_for_is_reached_with_the_fewest_lines() {
        for items in [1, 2, 3, 5, 10, 30, 100, 1_000, 10_000, 1_000_000, 1_000_000_000] {
            for rate in RATES {
                let shape = Shape::for_rate(items, rate).unwrap();
                assert_eq!(shape.items(), items);
                assert!(shape.expected_rate(items) <= rate, "{items} {rate} {shape:?}");
                // All smaller filters, if they are not too many.
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
        // The two meet between 1 % and 0.1 %: there, in steps of 3 %.
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
                // With one line, even 3 % more of them would not do; with two, not even two.
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
            let error = InvalidShape::LinesOutOfRange { lines, max: 2 };
            assert_eq!(Shape::with(1, 1, lines, 1), Err(error));
        }
        for probes in [0, 9, u32::MAX] {
            let error = InvalidShape::ProbesOutOfRange { probes, max: 8 };
            assert_eq!(Shape::with(1, 1, 2, probes), Err(error));
        }
    }

    /// Every rate that is one for every number of items gives a plan that keeps it, or an error.
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
    fn any_number_of_items_has_a_rate_from_0_to_1() {
        for lines in [1, 2, 1_000, MAX_LINES] {
            for (lines_per_key, probes) in [(1, 1), (1, 8), (2, 1), (2, 5), (2, 8)] {
                let shape = Shape::with(0, lines, lines_per_key, probes).unwrap();
                let mut before = 0.0;
                for items in (0..64).map(|exponent| 1 << exponent).chain([u64::MAX]) {
                    let rate = shape.expected_rate(items);
                    let rises = rate >= before * (1.0 - 1e-5) && rate <= 1.0;
                    assert!(rises, "{shape:?} {items}: {rate}");
                    before = rate;
                }
                assert_eq!(before, 1.0);
            }
        }
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
                // What one item leaves of a bit's chance to be empty, in either half of a line.
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
                    // To the nearest item, as long as an item sets most of its bits.
                    let blur = 1 + (0.5 / empty) as u64 + items / 1_000;
                    assert!(estimate.abs_diff(items) <= blur, "{shape:?} {items}: {estimate}");
                }
                assert_eq!(shape.estimate_items(shape.bits()), u64::MAX);
                assert_eq!(shape.estimate_items(u64::from(shape.probes())), 1);
            }
        }
    }
}
