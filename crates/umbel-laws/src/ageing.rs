//! Laws of filters that forget old keys to stay at their rate.

use crate::rate::sigmas;
use crate::{Pattern, Subject};

/// A subject that forgets old keys and settles at a false positive rate.
pub trait Ages: Subject {
    /// The rate at which it settles, by its formula.
    fn stable_rate(&self) -> f64;

    /// The number of insertions of different keys after which it has nearly settled.
    fn settles_after(&self) -> u64;
}

/// A key that was just inserted is found until another key is inserted, and `insert` returns `true` for exactly
/// the keys that were not found before. Not vacuous: after any number of insertions, the false positive rate is
/// at most the one that the filter reports, within seven sigma, and below 1.
pub fn finds_what_just_came<S: Ages>(items: u64, rate: f64) {
    for pattern in Pattern::ALL {
        let mut filter = S::make(items, rate, items);
        let rounds = (2 * filter.settles_after()).max(1_000);
        let (mut mistakes, mut mean) = (0, 0.0);
        for index in 0..rounds {
            mean += 2.0 * filter.rate_now();
            let (key, other) = (pattern.key(index), pattern.key(index + rounds));
            let (found, absent) = (filter.contains(key), filter.contains(other));
            let fresh = filter.insert(key);
            assert_eq!(fresh, !found, "{pattern:?}: insertion {index} of {rounds}");
            assert!(filter.contains(key), "{pattern:?}: key {index} of {rounds} lost at once");
            mistakes += u64::from(found) + u64::from(absent);
        }
        let asked = 2 * rounds;
        assert!(
            mistakes < asked && (mistakes as f64 <= mean || sigmas(mistakes, asked, mean) <= 7.0),
            "{pattern:?}: {mistakes} absent keys found of {asked}, and {mean} should be"
        );
    }
}

/// The parameters of a measurement of a filter that settles.
#[derive(Clone, Copy, Debug)]
pub struct AgeingTrial {
    /// The planned number of keys.
    pub items: u64,
    /// The requested rate.
    pub rate: f64,
    /// The pattern of the keys.
    pub pattern: Pattern,
    /// The number of keys inserted after it has settled. After each, a few absent keys are looked up.
    pub rounds: u64,
}

/// The measured false positive rate of a settled filter.
#[derive(Clone, Copy, Debug)]
pub struct AgeingReport {
    /// The measured rate divided by that of the formula.
    pub ratio: f64,
    /// One standard deviation of the ratio, estimated from the differences between parts of the stream.
    pub sigma: f64,
    /// The rate of the formula divided by the requested rate.
    pub planned: f64,
}

/// The number of parts of a stream: enough to estimate the standard deviation of their mean from their
/// differences.
const PARTS: u64 = 50;
/// The number of absent keys looked up after each insertion.
const ASKED: u64 = 4;

impl AgeingTrial {
    /// Measures without a verdict.
    ///
    /// # Panics
    ///
    /// If the rounds are too few for the parts of the stream to be independent of each other.
    #[must_use]
    pub fn measure<S: Ages>(&self) -> AgeingReport {
        let mut filter = S::make(self.items, self.rate, self.items);
        let (formula, settled) = (filter.stable_rate(), filter.settles_after());
        let part = self.rounds / PARTS;
        assert!(part >= 4 * settled, "parts of {part} rounds, yet it takes {settled} to settle");
        let mut keys = (0..).map(|index| self.pattern.key(index));
        let mut key = || keys.next().expect("there are enough keys");
        (0..settled).for_each(|_| _ = filter.insert(key()));
        let rates: Vec<f64> = (0..PARTS)
            .map(|_| {
                let mut found = 0;
                for _ in 0..part {
                    filter.insert(key());
                    found += (0..ASKED).filter(|_| filter.contains(key())).count();
                }
                found as f64 / (part * ASKED) as f64 / formula
            })
            .collect();
        let ratio = rates.iter().sum::<f64>() / PARTS as f64;
        let squares = rates.iter().map(|rate| (rate - ratio).powi(2)).sum::<f64>();
        let sigma = (squares / ((PARTS - 1) * PARTS) as f64).sqrt();
        AgeingReport { ratio, sigma, planned: formula / self.rate }
    }
}

/// A settled filter has the false positive rate of its formula, within five sigma on both sides, and that rate
/// is no more than the requested one. Not vacuous: sigma is small enough to detect a tenth.
pub fn settles_at_its_rate<S: Ages>(trial: AgeingTrial) {
    let report = trial.measure::<S>();
    assert!(report.planned <= 1.0, "it settles above what was asked for: {trial:?} {report:?}");
    assert!(report.sigma <= 0.02, "too few rounds to tell: {trial:?} {report:?}");
    let off = (report.ratio - 1.0) / report.sigma;
    assert!(off.abs() <= 5.0, "{off:.1} sigma off its formula: {trial:?} {report:?}");
}
