//! The promised false positive rate, measured.

use crate::{Pattern, Subject};

/// The parameters of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// The number of keys inserted into each filter: its capacity.
    pub items: u64,
    /// The requested rate.
    pub rate: f64,
    /// The pattern of the keys.
    pub pattern: Pattern,
    /// The number of runs, each with a different seed.
    pub seeds: u64,
    /// The number of absent keys that are looked up in each run, over all its filters.
    pub queries: u64,
}

/// The result of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct RateReport {
    /// The mean of the measured rate over all runs, divided by the requested rate.
    pub ratio: f64,
    /// One standard deviation of the ratio, from the limited number of queries.
    pub sigma: f64,
    /// The mean of the rates that the fill of the filters predicts, divided by the requested rate.
    pub predicted: f64,
    /// One standard deviation of that mean, estimated from the differences between filters: some are fuller
    /// than others by chance.
    pub luck: f64,
    /// The number of filters.
    pub filters: u64,
    /// The largest distance of a run from its prediction, in [standard deviations](sigmas).
    pub worst_sigmas: f64,
}

/// The distance, in standard deviations, of `found` false positives among `trials` absent keys from the expected
/// number `mean`.
///
/// By Chernoff's bound the probability of such a distance is at most exp(-trials D) on each side, where D is
/// the relative entropy of the two rates. For many of them, this is exp(-s^2 / 2) for a distance of s standard
/// deviations; for few, the bound still holds. So s is the root of 2 trials D.
#[must_use]
pub fn sigmas(found: u64, trials: u64, mean: f64) -> f64 {
    let (n, p, q) = (trials as f64, mean / trials as f64, found as f64 / trials as f64);
    // x ln (x / y), of which the limit at x = 0 is 0.
    let part = |x: f64, y: f64| if x > 0.0 { x * (x / y).ln() } else { 0.0 };
    let entropy = part(q, p) + part(1.0 - q, 1.0 - p);
    (2.0 * n * entropy.max(0.0)).sqrt()
}

impl Trial {
    /// Measures without a verdict.
    ///
    /// A filter for a few keys may by chance be fuller or emptier than the average one. So a run uses many
    /// small filters with different keys, until it has inserted enough keys.
    #[must_use]
    pub fn measure<S: Subject>(&self) -> RateReport {
        let filters = (KEYS_PER_RUN / self.items).clamp(1, self.queries / 64);
        let queries = self.queries / filters;
        let (mut found, mut worst, mut rates) = (0, 0.0_f64, Vec::new());
        for seed in 0..self.seeds {
            let (mut found_here, mut mean) = (0_u64, 0.0);
            for filter in 0..filters {
                // Different keys for every filter, because not every hasher has a seed.
                let first = (seed * filters + filter) * (self.items + queries);
                let mut subject = S::make(self.items, self.rate, seed);
                for index in first..first + self.items {
                    subject.insert(self.pattern.key(index));
                }
                let absent = first + self.items;
                for index in absent..absent + queries {
                    found_here += u64::from(subject.contains(self.pattern.key(index)));
                }
                let rate = subject.rate_now();
                mean += rate * queries as f64;
                rates.push(rate / self.rate);
            }
            worst = worst.max(sigmas(found_here, filters * queries, mean));
            found += found_here;
        }
        let expected = self.rate * (filters * queries * self.seeds) as f64;
        let count = rates.len() as f64;
        let predicted = rates.iter().sum::<f64>() / count;
        let squares = rates.iter().map(|rate| (rate - predicted).powi(2)).sum::<f64>();
        RateReport {
            ratio: found as f64 / expected,
            sigma: (found as f64).sqrt() / expected,
            predicted,
            luck: (squares / (count * (count - 1.0).max(1.0))).sqrt(),
            filters: rates.len() as u64,
            worst_sigmas: worst,
        }
    }
}

/// A run creates small filters until it has inserted this number of keys.
const KEYS_PER_RUN: u64 = 10_000;

/// The false positive rate is the promised one. The mean over all filters is at most the requested rate, within
/// five sigma of sampling and chance. Every single run is within five sigma of the rate that the set bits of
/// its filters predict, on both sides.
pub fn rate_within<S: Subject>(trial: Trial) {
    let report = trial.measure::<S>();
    let RateReport { ratio, sigma, predicted, luck, filters, worst_sigmas } = report;
    assert!(filters >= 10, "too few filters to tell how they differ: {trial:?} {report:?}");
    assert!(worst_sigmas <= 5.0, "a run is off its prediction: {trial:?} {report:?}");
    assert!(predicted <= 1.0 + 5.0 * luck, "the filters are too full: {trial:?} {report:?}");
    assert!(
        ratio <= 1.0 + 5.0 * sigma.hypot(luck),
        "absent keys are found too often: {trial:?} {report:?}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sigmas_are_those_of_the_binomial_distribution() {
        // 10,000 coins: one standard deviation is 50.
        for off in [0_u32, 50, 100, 250] {
            let expected = f64::from(off) / 50.0;
            for found in [5_000 + off, 5_000 - off] {
                let got = sigmas(found.into(), 10_000, 5_000.0);
                assert!((got - expected).abs() < 0.01, "{found}: {got}");
            }
        }
        // Where a single hit is already unlikely: exp(-s^2 / 2) is the bound on its probability.
        let one = sigmas(1, 1_000, 0.001);
        assert!((one * one / 2.0 - (1_000_f64.ln() - 1.0)).abs() < 0.01, "{one}");
        assert_eq!(sigmas(0, 1_000, 0.0), 0.0);
        assert_eq!(sigmas(1_000, 1_000, 1_000.0), 0.0);
        assert_eq!(sigmas(1, 1_000, 0.0), f64::INFINITY);
    }
}
