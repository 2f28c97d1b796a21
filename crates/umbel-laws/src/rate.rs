//! The promised rate, measured.

use crate::{Pattern, Subject};

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// Keys inserted into each filter: its capacity.
    pub items: u64,
    /// The rate asked for.
    pub rate: f64,
    /// How keys are made.
    pub pattern: Pattern,
    /// How many runs, each with a seed of its own.
    pub seeds: u64,
    /// How many absent keys are asked for in each run, over all its filters.
    pub queries: u64,
}

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub struct RateReport {
    /// The mean of the measured rate over all runs, divided by the rate asked for.
    pub ratio: f64,
    /// One standard deviation of that, as far as it comes from the limited number of queries.
    pub sigma: f64,
    /// The mean of what the fill of the filters predicted, divided by the rate asked for.
    pub predicted: f64,
    /// The largest distance of a run from its prediction, in standard deviations.
    pub worst_sigmas: f64,
}

impl Trial {
    /// Measures, and judges nothing.
    ///
    /// A filter for a few keys may by luck be fuller or emptier than the average one, so a run
    /// takes many small filters, with keys of their own, until it has seen a good number of keys.
    #[must_use]
    pub fn measure<S: Subject>(&self) -> RateReport {
        let filters = (KEYS_PER_RUN / self.items).clamp(1, self.queries / 64);
        let queries = self.queries / filters;
        let (mut found, mut predicted, mut worst) = (0, 0.0, 0.0_f64);
        for seed in 0..self.seeds {
            let (mut found_here, mut mean, mut variance) = (0_u64, 0.0, 0.0);
            for filter in 0..filters {
                // Other keys for every filter: not every hasher has a seed to be different by.
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
                variance += rate * (1.0 - rate) * queries as f64;
            }
            worst = worst.max((found_here as f64 - mean).abs() / variance.sqrt().max(1.0));
            found += found_here;
            predicted += mean;
        }
        let expected = self.rate * (filters * queries * self.seeds) as f64;
        RateReport {
            ratio: found as f64 / expected,
            sigma: (found as f64).sqrt() / expected,
            predicted: predicted / expected,
            worst_sigmas: worst,
        }
    }
}

/// Small filters are made until a run has inserted this many keys.
const KEYS_PER_RUN: u64 = 10_000;

/// Absent keys are found at the rate promised: the mean over all runs is at most 1.02 times the
/// rate asked for, as far as five sigma of sampling can tell, and every single run is within five
/// sigma of what the bits set in its filters predict, on both sides.
pub fn rate_within<S: Subject>(trial: Trial) {
    let report = trial.measure::<S>();
    assert!(report.worst_sigmas <= 5.0, "a run is off its prediction: {trial:?} {report:?}");
    assert!(report.predicted <= 1.02, "the filters are too full: {trial:?} {report:?}");
    assert!(
        report.ratio - 5.0 * report.sigma <= 1.02,
        "absent keys are found too often: {trial:?} {report:?}"
    );
}
