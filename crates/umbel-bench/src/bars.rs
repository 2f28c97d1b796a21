//! The bars: how fast we mean to be, as ratios to a peer, and whether we are.

use crate::{
    Failure,
    args::{BarsArgs, KeyKind},
    keys::{Queries, Workload},
    machine::Machine,
    number::short,
    registry::{Kind, Registry},
    report::{self, Columns},
    stats::Quartiles,
    threads,
    versus::{self, Comparison, Operation},
};
use Operation::{Absent, BatchAbsent, BatchPresent, Insert, Present, ThreadsInsert};
use serde::Serialize;

/// One bar. Bars that share everything but the operation are measured in one duel.
#[derive(Clone, Copy, Debug, Serialize)]
struct Bar {
    ours: &'static str,
    peer: &'static str,
    keys: KeyKind,
    items: u64,
    operation: Operation,
    /// The largest ratio, ours over the peer's, that meets the bar.
    at_most: f64,
}

/// The rate at which the bars are measured.
const RATE: f64 = 0.01;
/// Threads of the concurrent bars.
const THREADS: usize = 2;
/// Keys of a batch.
const BATCH: usize = 1024;

const BARS: &[Bar] = &[
    bloom(KeyKind::U64, 1_000_000, Absent, 0.62),
    bloom(KeyKind::U64, 1_000_000, Present, 0.92),
    bloom(KeyKind::U64, 1_000_000, Insert, 0.90),
    bloom(KeyKind::U64, 10_000_000, Absent, 1.0),
    bloom(KeyKind::U64, 10_000_000, Present, 0.9),
    bloom(KeyKind::U64, 10_000_000, Insert, 0.85),
    bloom(KeyKind::U64, 10_000_000, BatchAbsent, 0.5),
    bloom(KeyKind::U64, 10_000_000, BatchPresent, 0.62),
    bloom(KeyKind::Bytes32, 1_000_000, Absent, 0.55),
    bloom(KeyKind::Bytes32, 1_000_000, Present, 0.8),
    bloom(KeyKind::Bytes32, 1_000_000, Insert, 0.85),
    Bar {
        ours: "umbel atomic bloom",
        peer: "fastbloom Atomic + foldhash",
        keys: KeyKind::U64,
        items: 10_000_000,
        operation: ThreadsInsert,
        at_most: 1.0,
    },
];

const fn bloom(keys: KeyKind, items: u64, operation: Operation, at_most: f64) -> Bar {
    Bar { ours: "umbel bloom", peer: "fastbloom + foldhash", keys, items, operation, at_most }
}

impl Bar {
    /// Whether both bars come out of one duel.
    fn shares_duel(&self, other: &Self) -> bool {
        (self.ours, self.peer, self.keys, self.items, self.is_threaded())
            == (other.ours, other.peer, other.keys, other.items, other.is_threaded())
    }

    fn is_threaded(&self) -> bool {
        self.operation == ThreadsInsert
    }

    /// The name of the bar, which `--only` looks into.
    fn name(&self) -> String {
        let Self { ours, peer, keys, items, operation, .. } = self;
        format!("{ours} / {peer}, {} {keys}, {operation}", short(*items))
    }

    /// Measures everything this bar's duel offers.
    fn measure(&self, rounds: usize) -> Result<Vec<Comparison>, Failure> {
        if self.is_threaded() {
            let names = [self.ours, self.peer];
            return Ok(vec![threads::duel(names, self.items, RATE, rounds, THREADS)?]);
        }
        match self.keys {
            KeyKind::U64 => self.duel::<u64>(rounds),
            KeyKind::Bytes32 => self.duel::<[u8; 32]>(rounds),
        }
    }

    fn duel<K: Kind>(&self, rounds: usize) -> Result<Vec<Comparison>, Failure> {
        let registry = Registry::all();
        let entries = [registry.find(self.ours)?, registry.find(self.peer)?];
        let work = Workload::<K>::new(self.items, Queries::USUAL);
        Ok(versus::duel(entries, &work, RATE, rounds, BATCH).comparisons)
    }
}

/// A bar and what was reached.
#[derive(Serialize)]
struct Outcome {
    #[serde(flatten)]
    bar: Bar,
    reached: Quartiles,
    met: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    mode: &'static str,
    machine: &'a Machine,
    rate: f64,
    rounds: usize,
    bars: Vec<Outcome>,
}

/// `umbel-bench bars`. Whether every bar was met.
pub(crate) fn run(args: BarsArgs) -> Result<bool, Failure> {
    let machine = &Machine::new(args.output.date);
    let rounds = args.rounds;
    let wanted = |bar: &&Bar| args.only.iter().all(|part| bar.name().contains(part.as_str()));
    let bars: Vec<&Bar> = BARS.iter().filter(wanted).collect();
    let width = bars.iter().map(|bar| bar.name().len()).max().unwrap_or_default();
    let columns = Columns::new(&["bar", "at most", "reached", "quartiles", "met"])
        .left(1)
        .widths(&[width, 7, 7, 12, 3]);
    if !args.output.json {
        report::line(&machine.summary())?;
        report::line(&format!("rate {RATE}, {rounds} rounds, ratios ours / peer"))?;
        report::line(&columns.header())?;
    }
    let mut outcomes = Vec::new();
    for group in bars.chunk_by(|a, b| a.shares_duel(b)) {
        let comparisons = group[0].measure(rounds)?;
        for bar in group {
            let Some(found) = comparisons.iter().find(|c| c.operation == bar.operation) else {
                return Err(format!("{}: one side cannot do this", bar.name()).into());
            };
            let reached = found.ratio;
            let met = reached.median <= bar.at_most;
            if !args.output.json {
                report::line(&columns.row(&[
                    bar.name(),
                    format!("{:.2}", bar.at_most),
                    format!("{:.3}", reached.median),
                    report::quartiles(&reached),
                    if met { "yes" } else { "NO" }.into(),
                ]))?;
            }
            outcomes.push(Outcome { bar: **bar, reached, met });
        }
    }
    let all = outcomes.iter().all(|outcome| outcome.met);
    if args.output.json {
        report::json(&Report { mode: "bars", machine, rate: RATE, rounds, bars: outcomes })?;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bar_can_be_measured() {
        for bar in BARS {
            let small = Bar { items: 1_000, ..*bar };
            let comparisons = small.measure(1).expect("both sides exist");
            assert!(comparisons.iter().any(|c| c.operation == bar.operation), "{}", bar.name());
        }
    }

    #[test]
    fn names_tell_bars_apart() {
        let mut names: Vec<String> = BARS.iter().map(Bar::name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), BARS.len());
    }
}
