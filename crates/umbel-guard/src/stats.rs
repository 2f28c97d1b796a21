//! Counters of the guard, and their Prometheus format.

use crate::answer::State;
use crate::kind::Measure;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// The number of copies of each counter. Threads that count at the same time use different cache lines.
const LANES: usize = 8;

#[derive(Debug, Default)]
#[repr(align(128))]
struct Lane(AtomicU64);

/// A counter that many threads increment.
#[derive(Debug, Default)]
pub(crate) struct Counter([Lane; LANES]);

thread_local! {
    static LANE: usize = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Relaxed) % LANES
    };
}

impl Counter {
    #[inline]
    pub(crate) fn one(&self) {
        self.add(1);
    }

    #[inline]
    pub(crate) fn add(&self, number: u64) {
        LANE.with(|lane| self.0[*lane].0.fetch_add(number, Relaxed));
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.iter().map(|lane| lane.0.load(Relaxed)).sum()
    }
}

/// All counters.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) absent: Counter,
    pub(crate) maybe: Counter,
    pub(crate) unknown: Counter,
    pub(crate) false_positives: Counter,
    pub(crate) remembered: Counter,
    pub(crate) joined: Counter,
    pub(crate) refused: Counter,
    pub(crate) asked: Counter,
    pub(crate) puts: Counter,
    pub(crate) deletes: Counter,
    pub(crate) failed_writes: Counter,
    pub(crate) timed_out: Counter,
    pub(crate) audited: Counter,
    pub(crate) audit_misses: Counter,
    pub(crate) rebuilds: Counter,
    pub(crate) failed_rebuilds: Counter,
    pub(crate) checkpoints: Counter,
    pub(crate) trips: Counter,
}

/// The counters and the state of a guard at one moment.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// The state.
    pub state: State,
    /// Whether another filter is being built.
    pub rebuilding: bool,
    /// The number of filters that were put to use, including this one.
    pub generation: u64,
    /// Look-ups that were answered: the sum of `saved`, `maybe` and `unknown`.
    pub queries: u64,
    /// Look-ups that did not reach the data set: the filter proved the key absent, or the guard remembered its
    /// absence.
    pub saved: u64,
    /// Look-ups of keys that the filter reported as possibly present.
    pub maybe: u64,
    /// Look-ups that the filter could not answer.
    pub unknown: u64,
    /// False positives: keys that the filter reported present and the data set did not have.
    pub false_positives: u64,
    /// The part of `saved` that was answered from remembered absences.
    pub remembered: u64,
    /// Look-ups that shared the query of another look-up of the same key.
    pub joined: u64,
    /// Look-ups that were refused because too many queries were in progress.
    pub refused: u64,
    /// Queries that were sent to the data set.
    pub asked: u64,
    /// Values that were put.
    pub puts: u64,
    /// Keys that were deleted.
    pub deletes: u64,
    /// Writes that failed, or whose outcome is unknown.
    pub failed_writes: u64,
    /// Calls of the data set or of the filter that timed out.
    pub timed_out: u64,
    /// Writes with an unknown outcome that the guard remembers now.
    pub doubts: u64,
    /// Keys in the filter that were deleted from the data set, as an upper bound.
    pub ghosts: u64,
    /// The measured false positive rate of the filter in use.
    pub measured: Share,
    /// The target false positive rate.
    pub target: f64,
    /// The filter at its last measurement.
    pub filter: Option<Measure>,
    /// Keys of the data set that the audit looked up in the filter.
    pub audited: u64,
    /// Audited keys that the filter lacked.
    pub audit_misses: u64,
    /// Filters that were built and put to use.
    pub rebuilds: u64,
    /// Rebuilds that failed or were given up.
    pub failed_rebuilds: u64,
    /// How often the filter was saved.
    pub checkpoints: u64,
    /// How often the trust in the filter ended.
    pub trips: u64,
    /// Whether a restart would find an up-to-date saved filter.
    pub kept: bool,
    /// The time since the last successful look at the data set began. When it exceeds
    /// [`trust_for`](crate::Builder::trust_for), the filter proves no absences.
    pub unwatched: Duration,
    /// How long the guard has been running.
    pub uptime: Duration,
}

/// A measured share, with its confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// The number of hits.
    pub hits: u64,
    /// The number of trials.
    pub trials: u64,
    /// The lower bound at five sigma.
    pub low: f64,
    /// The upper bound at five sigma.
    pub high: f64,
}

impl Share {
    /// The Wilson interval at five sigma.
    pub(crate) fn of(hits: u64, trials: u64) -> Self {
        if trials == 0 {
            return Self { hits, trials, low: 0.0, high: 1.0 };
        }
        let (n, z) = (trials as f64, 5.0_f64);
        let share = hits as f64 / n;
        let centre = share + z * z / (2.0 * n);
        let spread = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
        let scale = 1.0 + z * z / n;
        let low = ((centre - spread) / scale).max(0.0);
        Self { hits, trials, low, high: ((centre + spread) / scale).min(1.0) }
    }

    /// The share itself; 0 if there were no trials.
    #[must_use]
    pub fn value(&self) -> f64 {
        if self.trials == 0 { 0.0 } else { self.hits as f64 / self.trials as f64 }
    }
}

impl Stats {
    /// The text in the format of Prometheus.
    #[must_use]
    pub fn to_prometheus(&self) -> String {
        let mut text = String::new();
        let mut add = |name: &str, kind: &str, help: &str, value: f64| {
            let _ = writeln!(text, "# HELP umbel_guard_{name} {help}");
            let _ = writeln!(text, "# TYPE umbel_guard_{name} {kind}");
            let _ = writeln!(text, "umbel_guard_{name} {value}");
        };
        let counters = [
            ("queries_total", "Questions answered.", self.queries),
            ("saved_total", "Questions that never reached the data set.", self.saved),
            ("maybe_total", "Questions for keys that may be there.", self.maybe),
            ("unknown_total", "Questions the filter could not answer.", self.unknown),
            ("false_positives_total", "Keys wrongly taken for present.", self.false_positives),
            ("remembered_total", "Saved by a remembered absence.", self.remembered),
            ("joined_total", "Questions that waited for an equal one.", self.joined),
            ("refused_total", "Questions refused: too many at the data set.", self.refused),
            ("asked_total", "Questions the data set was asked.", self.asked),
            ("puts_total", "Values put.", self.puts),
            ("deletes_total", "Keys deleted.", self.deletes),
            ("failed_writes_total", "Writes failed or of unknown outcome.", self.failed_writes),
            ("timed_out_total", "Calls that took too long.", self.timed_out),
            ("audited_total", "Keys of the data set asked of the filter.", self.audited),
            ("audit_misses_total", "Audited keys the filter did not have.", self.audit_misses),
            ("rebuilds_total", "Filters built and put to use.", self.rebuilds),
            ("failed_rebuilds_total", "Filters given up.", self.failed_rebuilds),
            ("checkpoints_total", "Times the filter was saved.", self.checkpoints),
            ("trips_total", "Times the filter was found untrusted.", self.trips),
        ];
        for (name, help, value) in counters {
            add(name, "counter", help, value as f64);
        }
        let state = self.state as u8;
        add(
            "state",
            "gauge",
            "0 empty, 1 building, 2 active, 3 suspect, 4 rebuilding.",
            f64::from(state),
        );
        add(
            "rebuilding",
            "gauge",
            "Whether a filter is being built.",
            f64::from(u8::from(self.rebuilding)),
        );
        add("generation", "gauge", "Filters put to use so far.", self.generation as f64);
        add("doubts", "gauge", "Writes of unknown outcome remembered.", self.doubts as f64);
        add("ghosts", "gauge", "Keys in the filter that left the data set.", self.ghosts as f64);
        add(
            "measured_rate",
            "gauge",
            "Share of absent keys taken for present.",
            self.measured.value(),
        );
        add("measured_rate_low", "gauge", "Lower end at five sigma.", self.measured.low);
        add("measured_rate_high", "gauge", "Upper end at five sigma.", self.measured.high);
        add("target_rate", "gauge", "The rate aimed at.", self.target);
        add("kept", "gauge", "Whether a restart finds the filter.", f64::from(u8::from(self.kept)));
        add(
            "unwatched_seconds",
            "gauge",
            "Time since the data set was reached.",
            self.unwatched.as_secs_f64(),
        );
        add("uptime_seconds", "gauge", "Time since the start.", self.uptime.as_secs_f64());
        if let Some(filter) = &self.filter {
            add("filter_bytes", "gauge", "Memory of the filter.", filter.bytes as f64);
            add("filter_capacity", "gauge", "Keys it is planned for.", filter.capacity as f64);
            add("filter_items", "gauge", "Keys it has.", filter.items as f64);
            add("filter_fill", "gauge", "Share of bits or slots taken.", filter.fill);
            add("filter_rate", "gauge", "Expected share of absent keys found.", filter.rate);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_many_threads_add_up() {
        let counter = Counter::default();
        std::thread::scope(|scope| {
            for _ in 0..11 {
                scope.spawn(|| (0..1_000).for_each(|_| counter.one()));
            }
        });
        assert_eq!(counter.get(), 11_000);
    }

    #[test]
    fn an_interval_holds_the_share_and_narrows() {
        let nothing = Share::of(0, 0);
        assert_eq!((nothing.low, nothing.high, nothing.value()), (0.0, 1.0, 0.0));
        let (few, many) = (Share::of(1, 100), Share::of(10_000, 1_000_000));
        for share in [few, many] {
            assert!(share.low < 0.01 && 0.01 < share.high);
        }
        // Five sigma of a share of 0.01 in a million: 0.0005.
        assert!(many.high - 0.01 < 0.000_52 && 0.01 - many.low < 0.000_52, "{many:?}");
        assert!(few.high > many.high && few.low < many.low);
        assert_eq!(Share::of(0, 10).low, 0.0);
        assert!(Share::of(10, 10).high <= 1.0);
    }
}
