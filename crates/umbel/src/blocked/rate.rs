//! The false positive rate of a blocked Bloom filter, from the distribution of keys over lines and
//! of bits over the halves of a line.
//!
//! ```text
//! P(k probes find set bits | t balls in a half) = sum_i c(k, i) (1 - i/256)^t
//! ```
//!
//! by inclusion and exclusion. t is a multiple of the number of items in the line, which is
//! binomial, and the mean of a power of a binomial number is known: (1 - (1 - power) / L)^n. So
//! there is no sum over numbers of items, and no limit is assumed that would be wrong for a few
//! lines.

use super::shape::{LINE, Shape};
use crate::parts::math::{ceil, exp, ln_1p_wide, powi};
use crate::parts::occupancy::{all_full, hit_coefficients};
use crate::simd::split;
use crate::sizing::digest_collisions;

/// The bits of half a line. The probes of a key are distributed over both halves.
const HALF: u64 = LINE / 2;
/// Sums below this are computed again by a method without cancellation.
const CANCELLATION: f64 = 1e-7;

impl Shape {
    /// The error rate after `items` different keys were inserted, whether planned or not.
    ///
    /// For one line per key this is exact: the mean over all distributions of keys over lines and
    /// bits over halves, for a few lines as for many. For two lines per key it treats the two lines
    /// as independent. It is then never too low, and too high by less than a tenth for a few lines
    /// and by a negligible amount for a hundred. It includes the keys whose whole digest, or the
    /// part of it that counts inside a line, equals that of another key.
    #[must_use]
    pub const fn expected_rate(&self, items: u64) -> f64 {
        // L lines, n items. A line has n/L items, which half a digest distinguishes.
        let line = self.rate_in_line(items, self.split(0));
        let twins = items as f64 / self.lines() as f64 / (1_u64 << 32) as f64;
        let rate = if self.lines_per_key() == 1 {
            line + twins
        } else {
            // With probability 1/L both lines of a key are the same line. The fill of two different
            // lines is negatively correlated, so the product is, if anything, a little high.
            let (first, second) = (self.split(0), self.split(1));
            let both = self.rate_in_line(items, (first.0 + second.0, first.1 + second.1));
            let same = 1.0 / self.lines() as f64;
            (line + twins) * (line + twins) * (1.0 - same) + both * same
        };
        let rate = rate + digest_collisions(items);
        if rate < 1.0 { rate } else { 1.0 }
    }

    /// The probability that the given probes in the halves of a random line all find set bits.
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

    /// The mean of `a^t b^u`, where t and u are the numbers of balls in the two halves of a line.
    const fn mean_power(&self, items: u64, a: f64, b: f64) -> f64 {
        let (first, second) = self.split(0);
        let mut log = ln_of_mean(powi(a, first) * powi(b, second), self.lines());
        if self.lines_per_key() == 2 {
            let (first, second) = self.split(1);
            log += ln_of_mean(powi(a, first) * powi(b, second), self.lines());
        }
        exp(items as f64 * log)
    }

    /// As [`rate_in_line`](Self::rate_in_line), as a sum over the number of items in the line, all
    /// of whose terms are positive. For small rates, where those numbers are small too.
    const fn small_rate_in_line(&self, items: u64, probes: (u32, u32)) -> f64 {
        let visits = items as f64 * self.lines_per_key() as f64;
        if self.lines() == 1 {
            return self.rate_after(visits, probes);
        }
        let mean = visits / self.lines() as f64;
        let odds = 1.0 / (self.lines() - 1) as f64;
        let mut chance = exp(visits * ln_1p_wide(-1.0 / self.lines() as f64));
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

    /// The probability that the given probes in the halves of a line find set bits, after this many
    /// visits. With two lines per key, every other visit is one as a first line.
    const fn rate_after(&self, visits: f64, (first, second): (u32, u32)) -> f64 {
        let (mut balls, mut others) = self.split(0);
        if self.lines_per_key() == 2 {
            (balls, others) = (balls + others, balls + others);
        } else {
            (balls, others) = (2 * balls, 2 * others);
        }
        half_full(ceil(visits * balls as f64 / 2.0), first)
            * half_full(ceil(visits * others as f64 / 2.0), second)
    }

    /// How many of a key's probes in its first (0) or second (1) line are in each half.
    const fn split(&self, line: usize) -> (u32, u32) {
        split(line, self.probes_per_line())
    }

    /// The share of absent keys that find all their bits set in their first (0) or second (1) line,
    /// if the halves of that line have this fill.
    pub(crate) const fn rate_of_line(&self, line: usize, first: f64, second: f64) -> f64 {
        let (one, other) = self.split(line);
        powi(first, one) * powi(second, other)
    }

    /// The mean number of set bits after this many items.
    pub(super) const fn expected_ones(&self, items: u64) -> f64 {
        let empty = self.mean_power(items, share_without(1), 1.0)
            + self.mean_power(items, 1.0, share_without(1));
        (2.0 - empty) * (HALF * self.lines()) as f64
    }
}

/// `COEFFICIENTS[k][i]` is c(k, i).
const COEFFICIENTS: [[f64; 9]; 9] = hit_coefficients(HALF);

/// The share of half a line that remains if this many bits are excluded.
const fn share_without(bits: u32) -> f64 {
    (HALF - bits as u64) as f64 / HALF as f64
}

/// `ln(1 - (1 - power) / lines)`: the logarithm of the mean of `power` to the number of times, 0 or
/// 1, that one item falls into one of `lines` lines.
const fn ln_of_mean(power: f64, lines: u64) -> f64 {
    ln_1p_wide((power - 1.0) / lines as f64)
}

/// The probability that the given number of probes find set bits in half a line, after the given
/// number of balls.
const fn half_full(balls: u64, probes: u32) -> f64 {
    let (mut sum, mut i) = (0.0, 0);
    while i <= probes && balls < u32::MAX as u64 {
        sum += COEFFICIENTS[probes as usize][i as usize] * powi(share_without(i), balls as u32);
        i += 1;
    }
    // A sum this small has lost its digits; the number of balls is then small.
    if sum < 1e-9 { all_full(HALF, balls, probes) } else { sum }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::MAX_LANES;
    use std::vec::Vec;
    use std::{array, vec};

    /// An independent computation of the rates: the number of visits to a line and of full bits in
    /// its halves, item by item and ball by ball.
    struct StepByStep {
        /// `full[balls][probes]`: the probability that all probes find full bits in half a line.
        full: Vec<[f64; 9]>,
        /// The probes of a first line in its halves; in a second line the two are swapped.
        more: usize,
        fewer: usize,
    }

    impl StepByStep {
        /// For up to `visits` visits to a line.
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

        /// The probability that the given probes in the halves of a line find only full bits, after
        /// some keys had it as their first line and others as their second.
        fn found(&self, (firsts, seconds): (usize, usize), probes: (usize, usize)) -> f64 {
            self.full[firsts * self.more + seconds * self.fewer][probes.0]
                * self.full[firsts * self.fewer + seconds * self.more][probes.1]
        }

        /// `chances[a][b]`: the probability that of `items` items, a fall into one line and b into
        /// another.
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

        /// The probability of each number of visits to one line.
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

        /// For keys whose two lines are the same line, or for the first of two, by `probes`.
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
                        // The computation below counts every other visit as one as a first line.
                        if expected > CANCELLATION || shape.probes_per_line().is_multiple_of(2) {
                            let digits = if expected > 1e-15 { 1e-6 } else { 1e-5 };
                            assert_close(found, expected, digits, (probes.0, lines, items));
                        }
                    }
                }
            }
        }
    }

    /// A key that falls into one line does not fall into another, so two crowded lines are rarer
    /// than under independence. The formula ignores that. To first order it is high by the
    /// covariance of the logarithms of both rates; the next order takes some of that back.
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
                    let half = below + (items - below) / 2;
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

    #[test]
    fn any_number_of_items_has_a_rate_from_0_to_1() {
        for lines in [1, 2, 1_000, 1 << 39] {
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
}
