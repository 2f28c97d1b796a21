//! How far past its plan a filter may be filled: up to ten times its false positive rate, unless `--overfull` is given.

use crate::amount::{show_count, show_rate, show_things};
use crate::making::outline_of;
use anyhow::{Result, bail};
use std::fmt;
use umbel::any::AnyFilter;
use umbel::plan::AnyShape;
use umbel::raw::Any;

/// How many times the planned rate is too much.
const TIMES: f64 = 10.0;
/// The rate that a filter without planned keys is taken to be planned for.
const EMPTY: f64 = crate::cli::RATE;

/// What happens past the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overfull {
    Refused,
    Allowed,
}

impl Overfull {
    /// As `--overfull` is given or not.
    pub(crate) fn of(given: bool) -> Self {
        if given { Self::Allowed } else { Self::Refused }
    }

    /// The same for a filter that is there already, if the option can have an effect on it.
    pub(crate) fn of_filter(given: bool, filter: &AnyFilter) -> Result<Self, NeverOverfull> {
        match NeverOverfull::of(filter.family()) {
            Some(error) if given => Err(error),
            _ => Ok(Self::of(given)),
        }
    }
}

/// `--overfull` was given for a filter that keeps its false positive rate, however many keys come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NeverOverfull {
    family: &'static str,
    why: &'static str,
}

impl NeverOverfull {
    /// Whether filters of this family are such.
    pub(crate) fn of(family: &'static str) -> Option<Self> {
        let why = match family {
            "cuckoo" | "quotient" => "takes no more keys when it is full",
            "scalable" => "grows with its keys",
            _ => return None,
        };
        Some(Self { family, why })
    }
}

impl fmt::Display for NeverOverfull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { family, why } = self;
        write!(
            f,
            "--overfull has no effect on a {family} filter, which {why} and so keeps its false positive rate: leave it out"
        )
    }
}

impl std::error::Error for NeverOverfull {}

/// What a filter was planned for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planned {
    pub(crate) keys: u64,
    pub(crate) rate: f64,
    /// Whether the rate is the one that was asked for, and not the one that follows from the size of the filter.
    pub(crate) asked: bool,
}

impl Planned {
    /// The plan of a filter, if its family knows one.
    pub(crate) fn of(filter: &AnyFilter) -> Option<Self> {
        Self::of_outline(&outline_of(filter)?)
    }

    pub(crate) fn of_outline(outline: &AnyShape) -> Option<Self> {
        let keys = match outline {
            AnyShape::Bloom(shape) => shape.items(),
            AnyShape::Blocked(shape) => shape.items(),
            AnyShape::Split(shape) => shape.items(),
            AnyShape::Counting(shape) => shape.items(),
            AnyShape::BlockedCounting(shape) => shape.items(),
            AnyShape::Cuckoo(shape) => shape.items(),
            AnyShape::Quotient(shape) => shape.items(),
            // These grow, forget, or are built whole.
            _ => return None,
        };
        // A file has no rate. Small filters and those of whole blocks are better than what was asked for, so this is the rate that
        // `plan` prints and never more than the one that was asked for.
        let rate = if keys == 0 { EMPTY } else { outline.expected_rate(keys).unwrap_or(EMPTY) };
        Some(Self { keys, rate, asked: keys == 0 })
    }

    /// Whether it has so many keys that none are added without `--overfull`.
    pub(crate) fn is_overfull(self, rate: f64) -> bool {
        rate > self.most()
    }

    /// The largest rate that is not refused. Of a filter that was planned to be wrong often, half of what is right must be left.
    fn most(self) -> f64 {
        (TIMES * self.rate).min(f64::midpoint(1.0, self.rate))
    }

    /// Whether more keys are in it than planned: for certain, since so many were new in this run, or because their number, if it is judged by
    /// set bits, is off by more than five standard deviations.
    fn is_passed(self, fresh: u64, fill: Fill) -> bool {
        fresh > self.keys || fill.held as f64 > self.keys as f64 + self.margin(fill)
    }

    /// Of a Bloom filter of n keys whose bits are half ones, the estimate has the variance n (1 - ln 2) / (k ln 2), where k, the number
    /// of probes, is log2(1 / rate). The other terms are for the lines of blocked filters, which are not equally full: with them, the
    /// deviation is at least the one that 30 seeds show in each family, at rates from one half to one in a million.
    fn margin(self, fill: Fill) -> f64 {
        if fill.exact {
            return 0.0;
        }
        let probes = -self.rate.log2().min(-1.0);
        5.0 * (self.keys as f64 * (0.45 / probes + 0.2 / probes.powi(2) + probes / 1_500.0)).sqrt()
    }

    fn shown(self) -> String {
        let (keys, rate) = (show_things(self.keys, "key"), show_rate(self.rate));
        match self.asked {
            true => format!("planned for {keys} at a false positive rate of {rate}"),
            false => format!("planned for {keys}, with which its false positive rate is {rate}"),
        }
    }
}

/// How full a filter is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fill {
    /// How many keys it holds.
    pub(crate) held: u64,
    /// Whether they were counted. Otherwise they are judged by the bits that are set, and copies count once.
    pub(crate) exact: bool,
    pub(crate) rate: f64,
}

impl Fill {
    pub(crate) fn of(filter: &AnyFilter) -> Self {
        let held = match filter.raw() {
            Any::Bloom(filter) => filter.estimated_len(),
            Any::Blocked(filter) => filter.estimated_len(),
            Any::Split(filter) => filter.estimated_len(),
            Any::Counting(filter) => filter.estimated_len(),
            Any::BlockedCounting(filter) => filter.estimated_len(),
            Any::Cuckoo(filter) => filter.len(),
            Any::Quotient(filter) => filter.len(),
            Any::Scalable(filter) => filter.estimated_len(),
            _ => 0,
        };
        let exact = matches!(filter.raw(), Any::Cuckoo(_) | Any::Quotient(_));
        Self { held, exact, rate: filter.expected_rate() }
    }

    /// The keys for people: bits that are all set tell nothing.
    pub(crate) fn shown(self) -> String {
        match self {
            Self { held: u64::MAX, .. } => "far more".into(),
            Self { held, exact: true, .. } => show_count(held),
            Self { held, .. } => format!("about {}", show_count(held)),
        }
    }
}

/// The limit of a filter that keys are added to.
pub(crate) struct Limit {
    planned: Option<Planned>,
    overfull: Overfull,
    /// How many keys it held before.
    before: u64,
    /// How many new keys there are between two looks at the whole filter.
    step: u64,
    next: u64,
}

impl Limit {
    pub(crate) fn new(
        planned: Option<Planned>,
        bytes: u64,
        before: u64,
        overfull: Overfull,
    ) -> Self {
        let step = planned.map_or(u64::MAX, |planned| (planned.keys / 16).max(bytes / 64));
        Self { planned, overfull, before, step, next: step }
    }

    /// How many keys the filter held before.
    pub(crate) fn before(&self) -> u64 {
        self.before
    }

    pub(crate) fn of(filter: &AnyFilter, overfull: Overfull) -> Self {
        Self::new(Planned::of(filter), filter.bytes(), Fill::of(filter).held, overfull)
    }

    /// The limit of a filter that is built now, whose rate is known as it was asked for.
    pub(crate) fn of_rate(filter: &AnyFilter, rate: f64, overfull: Overfull) -> Self {
        let planned = Planned::of(filter).map(|planned| Planned { rate, asked: true, ..planned });
        Self::new(planned, filter.bytes(), Fill::of(filter).held, overfull)
    }

    /// Refuses once too many keys are in the filter, of which `fresh` were new of `offered`. Looks only now and then.
    pub(crate) fn watch(
        &mut self,
        fresh: u64,
        offered: u64,
        fill: impl FnOnce() -> Result<Fill>,
    ) -> Result<()> {
        if fresh <= self.next || self.overfull == Overfull::Allowed {
            return Ok(());
        }
        self.next = fresh.saturating_add(self.step);
        self.check(fresh, offered, fill()?).map(drop)
    }

    /// Refuses a filter that holds too many keys. If it holds more than planned, returns the warning.
    pub(crate) fn check(&self, fresh: u64, offered: u64, fill: Fill) -> Result<Option<String>> {
        let Some(planned) = self.planned else { return Ok(None) };
        let fill = self.known(fresh, offered, fill);
        let (plan, now) = (planned.shown(), show_rate(fill.rate));
        if planned.is_overfull(fill.rate) {
            let held = fill.shown();
            if self.overfull == Overfull::Refused {
                // Families that count exactly keep their rate, and take no --overfull.
                let accept = if fill.exact { "" } else { ", or accept this rate with --overfull" };
                bail!(
                    "{plan}, and {held} would make it {now}: nothing is saved. Build a filter with a larger -n{accept}"
                );
            }
        }
        // A filter that is larger than its rate asks for keeps its promise a little longer. One that was planned for nothing has none.
        let passed = planned.is_passed(fresh, fill) && fill.rate > planned.rate;
        let passed = passed || planned.is_overfull(fill.rate) || planned.keys == 0 && fill.held > 0;
        let held = fill.shown();
        Ok(passed.then(|| format!("{plan}, holds {held}; the false positive rate is {now} now")))
    }

    /// How full the filter is, as far as the keys that were counted do not say more: each of `fresh` was certainly new, of `offered`.
    pub(crate) fn known(&self, fresh: u64, offered: u64, fill: Fill) -> Fill {
        let most = self.before.saturating_add(offered);
        Fill { held: fill.held.min(most).max(fresh), ..fill }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(family: &str, keys: u64, rate: f64) -> Planned {
        let outline = AnyShape::for_rate(family, keys, rate).unwrap().unwrap();
        Planned::of_outline(&outline).unwrap()
    }

    #[test]
    fn the_planned_rate_of_a_file_is_never_above_the_one_that_was_asked_for() {
        for family in ["bloom", "blocked", "split", "counting", "blocked-counting"] {
            for keys in [1, 100, 1_000, 100_000, 10_000_000] {
                for rate in [0.1, 0.01, 1e-4, 1e-6] {
                    let outline = AnyShape::for_rate(family, keys, rate).unwrap().unwrap();
                    let got = planned(family, keys, rate).rate;
                    assert_eq!(Some(got), outline.expected_rate(keys), "{family} {keys} {rate}");
                    assert!(got <= 1.001 * rate, "{family} {keys} {rate}: {got}");
                }
            }
        }
    }

    #[test]
    fn ten_times_the_rate_is_refused_and_less_is_a_warning() {
        let planned = planned("blocked", 100_000, 0.01);
        let limit = |overfull| Limit::new(Some(planned), 1 << 17, 0, overfull);
        let fill = |held, rate| Fill { held, rate, exact: false };
        let check = |held, rate| limit(Overfull::Refused).check(0, u64::MAX, fill(held, rate));
        assert_eq!(check(100_400, 0.0101).unwrap(), None);
        assert!(
            check(150_000, 0.05)
                .unwrap()
                .is_some_and(|text| text.ends_with("the false positive rate is 5.00 % now"))
        );
        let refused = check(300_000, 0.2).unwrap_err().to_string();
        assert!(refused.starts_with("planned for 100,000 keys, with which its false positive rate is 1.00 %, and about 300,000 would make it 20.0 %"), "{refused}");
        let allowed = limit(Overfull::Allowed).check(0, u64::MAX, fill(300_000, 0.2)).unwrap();
        assert!(allowed.is_some_and(|text| {
            text.ends_with("holds about 300,000; the false positive rate is 20.0 % now")
        }));
        // A number that was counted has no margin.
        let counted = Fill { exact: true, ..fill(100_001, 0.01) };
        assert!(limit(Overfull::Refused).check(0, u64::MAX, counted).unwrap().is_some());
        // A lower bound on the number of keys has none either, and the estimate has a small one.
        let new = limit(Overfull::Refused).check(100_001, 100_500, fill(100_001, 0.0101)).unwrap();
        assert!(new.is_some());
        assert!(
            check(100_400, 0.0101).unwrap().is_none() && check(100_600, 0.0102).unwrap().is_some()
        );
        // No more than there were lines.
        let refused = limit(Overfull::Refused).check(0, 2_048, fill(u64::MAX, 1.0)).unwrap_err();
        assert!(refused.to_string().contains("about 2,048 would"), "{refused}");
    }

    #[test]
    fn a_filter_that_was_planned_to_be_wrong_often_has_a_limit_too() {
        for rate in [0.1, 0.3, 0.5, 0.9] {
            let most = Planned { keys: 1, rate, asked: true }.most();
            assert!(most > rate && most < 1.0, "{rate}: {most}");
        }
    }
}
