//! How many new lines a filter has probably taken for repeated ones, and when it is overfull.
//!
//! A new line is lost with the false positive rate q that the filter has when the line comes, and else it is printed. So for
//! every line that is printed, q / (1 - q) lines are lost on average, whatever other lines come between. That is a good estimate while
//! q is below one half. Above, a few printed lines would stand for many lost ones, and the count says nothing any more: then
//! nothing is estimated, and every line that counted as repeated may be a lost one.

use super::known::Known;

/// How much a filter is meant to hold, and at which rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Planned {
    pub(super) rate: f64,
    /// The number of different lines; `None` if it grows, or forgets.
    pub(super) items: Option<u64>,
    /// Whether lines that were seen before change the filter, too.
    pub(super) forgets: bool,
}

impl Planned {
    /// For what is exact, or has never been asked.
    pub(super) const EXACT: Self = Self { rate: 0.0, items: None, forgets: false };
}

/// How many new lines were probably taken for repeated ones.
#[derive(Clone, Debug)]
pub(super) struct Risk {
    planned: Planned,
    /// How many keys were in the filter when it was opened, or a little less.
    held: u64,
    /// Lines that were looked up, and those of them that were new as far as the filter knows.
    asked: u64,
    fresh: u64,
    /// The same when they were last counted, and the rate then.
    counted: (u64, u64),
    rate: f64,
    /// The lines, new ones if only those change the filter, after which they are counted again.
    next: u64,
    likely: f64,
    upper: f64,
    unknown: u64,
}

/// A rate from which on nothing is estimated.
const HALF: f64 = 0.5;
/// So many times the planned rate makes a filter overfull.
const OVERFULL: f64 = 10.0;

impl Risk {
    /// Of a filter with so many keys.
    pub(super) fn new(planned: Planned, held: u64, known: &Known) -> Self {
        let mut risk = Self {
            planned,
            held,
            asked: 0,
            fresh: 0,
            counted: (0, 0),
            rate: 0.0,
            next: 0,
            likely: 0.0,
            upper: 0.0,
            unknown: 0,
        };
        risk.count(known);
        risk
    }

    /// After how many more lines, which may all be new, the filter must be looked at: at least one.
    pub(super) fn room(&self) -> usize {
        usize::try_from(self.next.saturating_sub(self.steps())).unwrap_or(usize::MAX).max(1)
    }

    /// Adds look-ups. To know the rate, the filter must be read, which may cost a line of it for every record that changes it; so that is done
    /// when it has become a twelfth fuller.
    pub(super) fn add(&mut self, asked: u64, fresh: u64, known: &Known) {
        self.asked += asked;
        self.fresh += fresh;
        if self.steps() >= self.next {
            self.count(known);
        }
    }

    const fn steps(&self) -> u64 {
        if self.planned.forgets { self.asked } else { self.fresh }
    }

    pub(super) fn count(&mut self, known: &Known) {
        if matches!(known, Known::Exact(_)) {
            self.next = u64::MAX;
            return;
        }
        let rate = known.rate();
        let (asked, fresh) = (self.asked - self.counted.0, self.fresh - self.counted.1);
        let highest = self.rate.max(rate);
        if highest < HALF {
            let odds = |rate: f64| fresh as f64 * rate / (1.0 - rate);
            self.likely += odds(mean(self.rate, rate));
            // The rate rises ever faster, so that the mean of both ends is above the mean on the way.
            self.upper +=
                odds(if self.planned.forgets { highest } else { self.rate.midpoint(rate) });
        } else {
            self.unknown += asked - fresh;
        }
        (self.counted, self.rate) = ((self.asked, self.fresh), rate);
        let more = known.bytes() / 64 + if self.planned.forgets { 0 } else { self.fresh / 12 };
        // Between the planned rate and ten times that there are a sixth more keys.
        let more = if self.has_more() && !self.is_overfull() { more / 8 } else { more };
        // A filter is looked at when it holds what it is planned for, however far the next look would be.
        let left = self.planned.items.map(|items| items.saturating_sub(self.holds()));
        let more = left.filter(|left| *left > 0).map_or(more, |left| more.min(left + 1));
        self.next = self.steps() + more.max(1);
    }

    /// The rate when the filter was last looked at.
    pub(super) const fn rate(&self) -> f64 {
        self.rate
    }

    /// The rate that the filter is planned for.
    pub(super) const fn planned(&self) -> &Planned {
        &self.planned
    }

    /// How many different lines are in the filter, at least.
    pub(super) const fn holds(&self) -> u64 {
        self.held + self.fresh
    }

    /// Whether there are more different lines than were planned for.
    fn has_more(&self) -> bool {
        self.planned.items.is_some_and(|items| self.holds() > items)
    }

    /// Whether there are more different lines than were planned for, and the rate is above the planned one.
    pub(super) fn is_past_plan(&self) -> bool {
        match self.planned.items {
            Some(_) => self.has_more() && self.rate > self.planned.rate,
            None => self.planned.forgets && self.rate > 1.5 * self.planned.rate,
        }
    }

    /// Whether so many are lost that the output is worth little.
    pub(super) fn is_overfull(&self) -> bool {
        self.rate > OVERFULL * self.planned.rate
    }

    /// Lines that counted as repeated.
    const fn repeated(&self) -> u64 {
        self.asked - self.fresh
    }

    /// How many new lines were lost, on average over all secrets; `None` if the rate was too high to tell.
    pub(super) fn lost(&self) -> Option<f64> {
        (self.unknown == 0).then(|| self.likely.min(self.repeated() as f64))
    }

    /// No more than so many were lost. It is wrong less often than once in a million runs, and never above what counted as repeated.
    pub(super) fn lost_at_most(&self) -> u64 {
        let mean = self.upper;
        // Six standard deviations of a Poisson number, and what such a number lacks to a normal one if it is small.
        let by_chance = if mean > 0.0 { (mean + 6.0 * mean.sqrt() + 9.0).ceil() as u64 } else { 0 };
        by_chance.saturating_add(self.unknown).min(self.repeated())
    }
}

/// The mean of a rate while it rose from one to another as a power of the number of keys, which on
/// so short a way is nearly an exponential.
fn mean(from: f64, to: f64) -> f64 {
    if from > 0.0 && to > from * 1.001 { (to - from) / (to / from).ln() } else { from.midpoint(to) }
}
