//! Balls into bins: how full the bins are, and how often a random probe sequence hits only full
//! ones.
//!
//! `balls` balls fall independently into `bins` bins; X is the number of bins that are not empty.
//! The probability that `probes` further balls all fall into such bins is `E[(X / bins)^probes]`.
//! The usual formula takes the power of the mean of X. It is too low, since X varies and a power is
//! convex: the right value is 66 % higher for one key in ten bits, 0.7 % higher at a hundred keys
//! (Bose et al. 2008, "On the false-positive rate of Bloom filters", section 2).

use super::math::{exp_m1, ln_1p, ln_1p_wide, powi};

/// Up to this many balls the distribution of X is computed ball by ball. Beyond it, the normal
/// approximation is within 1 % and on the high side.
const EXACT_BALLS: u64 = 96;

/// The probability that `probes` random probes find only full bins, after `balls` balls in `bins`
/// bins.
pub(crate) const fn all_full(bins: u64, balls: u64, probes: u32) -> f64 {
    if probes == 0 {
        1.0
    } else if balls == 0 {
        0.0
    } else if balls <= EXACT_BALLS {
        all_full_exact(bins, balls, probes)
    } else {
        all_full_normal(bins, balls, probes)
    }
}

/// The expected share of full bins.
pub(crate) const fn mean_full(bins: u64, balls: u64) -> f64 {
    if bins <= 1 {
        return if balls == 0 { 0.0 } else { 1.0 };
    }
    -exp_m1(balls as f64 * ln_empty(bins as f64))
}

/// `ln(1 - 1/bins)`: the change of the logarithm of the share of empty bins by one ball.
const fn ln_empty(bins: f64) -> f64 {
    ln_1p_wide(-1.0 / bins)
}

/// P_(t+1)(x) = P_t(x) x/bins + P_t(x-1) (bins-x+1)/bins, then the mean of (x/bins)^probes.
const fn all_full_exact(bins: u64, balls: u64, probes: u32) -> f64 {
    let mut chance = [0.0; EXACT_BALLS as usize + 1];
    chance[0] = 1.0;
    let bins = bins as f64;
    let mut ball = 1;
    while ball <= balls as usize {
        let mut x = ball;
        while x >= 1 {
            let grow = if x as f64 > bins { 0.0 } else { (bins - x as f64 + 1.0) / bins };
            chance[x] = chance[x] * (x as f64 / bins) + chance[x - 1] * grow;
            x -= 1;
        }
        chance[0] = 0.0;
        ball += 1;
    }
    let mut mean = 0.0;
    let mut x = 1;
    while x <= balls as usize {
        mean += chance[x] * powi(x as f64 / bins, probes);
        x += 1;
    }
    mean
}

/// The even moments of a normal X: p^k (1 + C(k,2) v + 3 C(k,4) v^2 + 15 C(k,6) v^3 + ...), where
/// v is the variance of X over the square of its mean.
const fn all_full_normal(bins: u64, balls: u64, probes: u32) -> f64 {
    let full = mean_full(bins, balls);
    if bins < 4 {
        return powi(full, probes);
    }
    let (bins, balls, empty) = (bins as f64, balls as f64, 1.0 - full);
    // The covariance of two bins being empty: (1 - 2/bins)^balls - (1 - 1/bins)^(2 balls).
    let pair = empty * empty * exp_m1(balls * ln_1p(-1.0 / ((bins - 1.0) * (bins - 1.0))));
    let variance = bins * (empty * full + (bins - 1.0) * pair);
    let relative = if variance > 0.0 { variance / (bins * full * bins * full) } else { 0.0 };
    let (mut sum, mut term, mut left) = (1.0, 1.0, probes);
    let mut pairs = 1.0;
    while left >= 2 {
        // C(k, 2j) (2j-1)!! = C(k, 2j-2) (2j-3)!! (k-2j+2)(k-2j+1) / 2j
        term *= left as f64 * (left - 1) as f64 / (2.0 * pairs) * relative;
        sum += term;
        if term < 1e-12 * sum {
            break;
        }
        left -= 2;
        pairs += 1.0;
    }
    let rate = powi(full, probes) * sum;
    if rate < 1.0 { rate } else { 1.0 }
}

/// The numbers c(k, i), for k and i up to 8, in
///
/// ```text
/// P(k probes find only full bins | t balls in m bins) = sum_i c(k, i) (1 - i/m)^t
/// ```
///
/// k probes hit d different bins with probability D(k, d), and d given bins are all hit with
/// probability sum_i (-1)^i C(d, i) (1 - i/m)^t, by inclusion and exclusion.
pub(crate) const fn hit_coefficients(bins: u64) -> [[f64; 9]; 9] {
    let mut all = [[0.0; 9]; 9];
    let mut distinct = [0.0; 9];
    distinct[0] = 1.0;
    let mut k = 0;
    loop {
        let mut d = 0;
        while d <= k {
            // C(d, i) (-1)^i, from one i to the next.
            let (mut i, mut choose) = (0, 1.0);
            while i <= d {
                all[k][i] += distinct[d] * choose;
                choose *= -((d - i) as f64) / (i + 1) as f64;
                i += 1;
            }
            d += 1;
        }
        if k == 8 {
            return all;
        }
        k += 1;
        let mut d = k;
        while d >= 1 {
            let (stay, come) = (d as f64 / bins as f64, (bins - d as u64 + 1) as f64 / bins as f64);
            distinct[d] = distinct[d] * stay + distinct[d - 1] * come;
            d -= 1;
        }
        distinct[0] = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    /// P(every one of `targets` given bins is hit), summed over the number of bins that the probes
    /// hit: an independent computation of the same value.
    fn all_full_by_targets(bins: u64, balls: u64, probes: u32) -> f64 {
        let (m, k) = (bins as f64, probes as usize);
        let mut distinct = vec![0.0; k + 1];
        distinct[0] = 1.0;
        for _ in 0..k {
            for d in (1..=k).rev() {
                distinct[d] =
                    distinct[d] * d as f64 / m + distinct[d - 1] * (m - d as f64 + 1.0) / m;
            }
            distinct[0] = 0.0;
        }
        (1..=k.min(bins as usize))
            .map(|targets| {
                let mut hit = vec![0.0; targets + 1];
                hit[0] = 1.0;
                for _ in 0..balls {
                    for h in (0..=targets).rev() {
                        let stay = hit[h] * (1.0 - (targets - h) as f64 / m);
                        let come =
                            if h == 0 { 0.0 } else { hit[h - 1] * (targets - h + 1) as f64 / m };
                        hit[h] = stay + come;
                    }
                }
                distinct[targets] * hit[targets]
            })
            .sum()
    }

    #[test]
    fn exact_rate_agrees_with_inclusion_by_targets() {
        for (bins, balls, probes) in [
            (1, 3, 2),
            (2, 1, 1),
            (10, 7, 7),
            (63, 4, 4),
            (63, 28, 7),
            (127, 50, 10),
            (255, 96, 12),
        ] {
            let got = all_full(bins, balls, probes);
            let expected = all_full_by_targets(bins, balls, probes);
            assert!(
                (got / expected - 1.0).abs() < 1e-9,
                "{bins} {balls} {probes}: {got} {expected}"
            );
        }
    }

    #[test]
    fn the_sum_of_powers_agrees_with_following_ball_by_ball() {
        for bins in [8, 9, 64, 256] {
            let coefficients = hit_coefficients(bins);
            for balls in [0, 1, 2, 5, 20, 50, EXACT_BALLS] {
                for probes in 0..=8_u32 {
                    let sum: f64 = (0..=probes as usize)
                        .map(|i| {
                            let share = (bins - i as u64) as f64 / bins as f64;
                            coefficients[probes as usize][i] * share.powi(balls as i32)
                        })
                        .sum();
                    // The terms are up to C(8, 4) = 70 and cancel.
                    let expected = all_full(bins, balls, probes);
                    let error = (sum - expected).abs();
                    assert!(error < 1e-13, "{bins} {balls} {probes}: {sum} {expected}");
                }
                // At most `probes` of them exist.
                assert!(
                    (0..8)
                        .all(|probes| coefficients[probes][probes + 1..] == [0.0; 9][probes + 1..])
                );
            }
        }
    }

    #[test]
    fn normal_rate_is_within_one_percent_and_never_low() {
        for (bins, balls, probes) in [
            (191, 100, 18),
            (255, 100, 10),
            (319, 147, 21),
            (895, 440, 22),
            (703, 390, 13),
            (959, 700, 7),
            (9_599, 7_000, 7),
            (2_175, 1_300, 26),
            (100, 2_000, 7),
            (1_000_000, 200, 7),
        ] {
            let ratio = all_full(bins, balls, probes) / all_full_by_targets(bins, balls, probes);
            assert!((0.999_99..1.01).contains(&ratio), "{bins} {balls} {probes}: {ratio}");
        }
    }

    #[test]
    fn small_filters_find_more_than_the_textbook_says() {
        for (bins, items, percent) in [(10, 1, 66.0), (959, 100, 0.7)] {
            let textbook = powi(mean_full(bins, items * 7), 7);
            let more = (all_full(bins, items * 7, 7) / textbook - 1.0) * 100.0;
            assert!((more - percent).abs() < 1.0, "{bins} bins: {more} % more");
        }
    }

    #[test]
    fn extremes_stay_inside_zero_and_one() {
        assert_eq!(all_full(63, 0, 7), 0.0);
        assert_eq!(all_full(1, 1, 1), 1.0);
        assert_eq!(all_full(2, u64::MAX, 3), 1.0);
        assert_eq!(all_full(63, u64::MAX, 64), 1.0);
        let sparse = all_full(1 << 48, 97, 64);
        assert!((0.0..1e-300).contains(&sparse), "{sparse}");
    }
}
