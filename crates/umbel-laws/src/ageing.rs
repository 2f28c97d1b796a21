//! Laws of filters that forget old keys to stay at their rate.

use crate::rate::sigmas;
use crate::{Pattern, Subject};

/// A subject that forgets old keys and settles at a rate.
pub trait Ages: Subject {
    /// The rate it settles at, by its formula.
    fn stable_rate(&self) -> f64;

    /// After how many insertions of different keys it is as good as there.
    fn settles_after(&self) -> u64;
}

/// A key that was just inserted is found, as long as no other one is; and `insert` says `true` for
/// exactly those keys that were not found before. Not vacuous: however many were inserted, absent keys are
/// found no more often than the filter says, within seven sigma, and that is less than always.
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

/// What to measure of a filter that settles.
#[derive(Clone, Copy, Debug)]
pub struct AgeingTrial {
    /// What the filter is made for.
    pub items: u64,
    /// The rate asked for.
    pub rate: f64,
    /// How keys are made.
    pub pattern: Pattern,
    /// How many keys are inserted once it has settled; a few absent ones are asked for after each.
    pub rounds: u64,
}

/// How often absent keys of a settled filter were found.
#[derive(Clone, Copy, Debug)]
pub struct AgeingReport {
    /// What was measured over the formula.
    pub ratio: f64,
    /// One standard deviation of that, judged by how much parts of the stream differ.
    pub sigma: f64,
    /// The formula over the rate asked for.
    pub planned: f64,
}

/// Parts of a stream: enough to judge from how they differ what their mean is worth.
const PARTS: u64 = 50;
/// Absent keys asked for after each insertion.
const ASKED: u64 = 4;

impl AgeingTrial {
    /// Measures, and judges nothing.
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

/// A filter that has settled finds absent keys at the rate its formula tells, within five sigma on both
/// sides, and that is no more than was asked for. Not vacuous: sigma is small enough to notice a tenth.
pub fn settles_at_its_rate<S: Ages>(trial: AgeingTrial) {
    let report = trial.measure::<S>();
    assert!(report.planned <= 1.0, "it settles above what was asked for: {trial:?} {report:?}");
    assert!(report.sigma <= 0.02, "too few rounds to tell: {trial:?} {report:?}");
    let off = (report.ratio - 1.0) / report.sigma;
    assert!(off.abs() <= 5.0, "{off:.1} sigma off its formula: {trial:?} {report:?}");
}
