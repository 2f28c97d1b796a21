//! The performance goals (bars): speed and size relative to a peer, and whether they are met.

use crate::{
    Failure,
    args::{BarsArgs, KeyKind},
    floor,
    keys::{Queries, Workload},
    machine::Machine,
    number::short,
    path,
    registry::{Kind, Registry},
    report::{self, Columns},
    stats::Quartiles,
    threads::Task,
    versus::{self, Comparison, Operation},
};
use Operation::{
    Absent, BatchAbsent, BatchInsert, BatchPresent, Bits, Build, Extend, Insert, Present, Remove,
    ThreadsAbsent, ThreadsBuild, ThreadsInsert, ThreadsPresent,
};
use serde::Serialize;
use umbel::simd::Path;

/// One bar. Bars that share everything but the operation are measured in one duel.
#[derive(Clone, Copy, Debug, Serialize)]
struct Bar {
    ours: &'static str,
    peer: &'static str,
    keys: KeyKind,
    items: u64,
    rate: f64,
    /// The code path that our side is forced to use; `None` is its own choice.
    #[serde(serialize_with = "path::serialize")]
    path: Option<Path>,
    operation: Operation,
    /// The largest ratio, ours over the peer's, that meets the bar.
    at_most: f64,
}

/// The number of threads of the concurrent bars.
const THREADS: usize = 2;
/// The number of keys per batch.
const BATCH: usize = 1024;
/// Filters of more keys than this get few queries.
const LARGE: u64 = 10_000_000;

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
        ..bloom(KeyKind::U64, 10_000_000, ThreadsInsert, 1.0)
    },
    blocked(1_000_000, Absent, 1.03),
    blocked(1_000_000, Present, 1.03),
    blocked(1_000_000, Insert, 1.4),
    blocked(10_000_000, Insert, 1.4),
    blocked(10_000_000, BatchInsert, 0.4),
    blocked(10_000_000, Extend, 0.4),
    blocked(10_000_000, BatchAbsent, 0.35),
    blocked(10_000_000, BatchPresent, 0.35),
    portable(blocked(10_000_000, BatchAbsent, 0.6)),
    portable(blocked(10_000_000, BatchPresent, 0.6)),
    blocked(100_000_000, BatchAbsent, 0.46),
    blocked(100_000_000, BatchPresent, 0.46),
    rarely_wrong(BatchAbsent, 0.25),
    rarely_wrong(BatchPresent, 0.25),
    rarely_wrong(Bits, 1.03),
    above_floor(ThreadsAbsent, 1.3),
    above_floor(ThreadsPresent, 1.3),
    scalable(Absent, 0.25),
    scalable(Present, 0.25),
    scalable(BatchAbsent, 0.25),
    scalable(BatchPresent, 0.25),
    portable(scalable(Absent, 0.25)),
    portable(scalable(Present, 0.25)),
    portable(scalable(BatchAbsent, 0.25)),
    portable(scalable(BatchPresent, 0.25)),
    counting(1_000_000, Insert, 0.8),
    counting(1_000_000, Absent, 0.8),
    counting(1_000_000, Present, 0.8),
    counting(1_000_000, Remove, 0.8),
    counting(10_000_000, Insert, 0.8),
    counting(10_000_000, Absent, 0.8),
    counting(10_000_000, Present, 0.8),
    counting(10_000_000, Remove, 0.8),
    window(Absent, 8.0),
    window(Present, 8.0),
    window(BatchAbsent, 4.0),
    window(BatchPresent, 4.0),
    // 17.5 bits per key over the 9.92 of the blocked filter.
    window(Bits, 1.764),
    in_line(counting(1_000_000, Insert, 0.8)),
    in_line(counting(1_000_000, Absent, 0.8)),
    in_line(counting(1_000_000, Present, 0.8)),
    in_line(counting(1_000_000, Remove, 0.8)),
    in_line(counting(10_000_000, Insert, 0.8)),
    in_line(counting(10_000_000, Absent, 0.8)),
    in_line(counting(10_000_000, Present, 0.8)),
    in_line(counting(10_000_000, Remove, 0.8)),
    stable(Insert, 0.3),
    stable(Absent, 0.8),
    stable(Present, 0.8),
    cuckoo(AUTOSCALE, 1_000_000, Absent, 0.25),
    cuckoo(AUTOSCALE, 1_000_000, Present, 0.42),
    cuckoo(AUTOSCALE, 1_000_000, Insert, 0.4),
    cuckoo(AUTOSCALE, 1_000_000, Remove, 0.6),
    cuckoo(AUTOSCALE, 1_300_000, Absent, 0.25),
    cuckoo(AUTOSCALE, 1_300_000, Present, 0.42),
    cuckoo(AUTOSCALE, 1_300_000, Insert, 0.85),
    cuckoo(AUTOSCALE, 1_300_000, Remove, 0.6),
    cuckoo(AUTOSCALE, 10_000_000, Absent, 0.25),
    cuckoo(AUTOSCALE, 10_000_000, Present, 0.42),
    cuckoo(AUTOSCALE, 10_000_000, Insert, 1.1),
    cuckoo(AUTOSCALE, 10_000_000, Remove, 1.0),
    cuckoo(AUTOSCALE, 10_000_000, BatchInsert, 0.7),
    cuckoo(ONE_BY_ONE, 10_000_000, BatchAbsent, 0.2),
    cuckoo(ONE_BY_ONE, 10_000_000, BatchPresent, 0.2),
    cuckoo(EIGHT_BITS, 1_000_000, Absent, 0.3),
    cuckoo(EIGHT_BITS, 1_000_000, Present, 0.3),
    cuckoo(EIGHT_BITS, 1_000_000, Insert, 0.4),
    cuckoo(EIGHT_BITS, 1_000_000, Remove, 0.6),
    cuckoo(EIGHT_BITS, 1_300_000, Absent, 0.3),
    cuckoo(EIGHT_BITS, 1_300_000, Present, 0.3),
    cuckoo(EIGHT_BITS, 1_300_000, Insert, 0.85),
    cuckoo(EIGHT_BITS, 1_300_000, Remove, 0.6),
    cuckoo(EIGHT_BITS, 10_000_000, Absent, 0.3),
    cuckoo(EIGHT_BITS, 10_000_000, Present, 0.3),
    cuckoo(EIGHT_BITS, 10_000_000, Insert, 1.1),
    cuckoo(EIGHT_BITS, 10_000_000, Remove, 1.0),
    cuckoo(EIGHT_BITS, 10_000_000, BatchInsert, 0.7),
    sparse(1_000_000, Absent, 0.88),
    sparse(1_000_000, Present, 0.8),
    sparse(1_000_000, Insert, 0.88),
    sparse(1_000_000, Remove, 0.95),
    sparse(1_300_000, Absent, 0.88),
    sparse(1_300_000, Present, 0.8),
    sparse(1_300_000, Insert, 0.88),
    sparse(1_300_000, Remove, 0.95),
    sparse(10_000_000, Absent, 0.88),
    sparse(10_000_000, Present, 0.8),
    sparse(10_000_000, Insert, 0.88),
    sparse(10_000_000, Remove, 1.1),
    quotient(1_000_000, Absent, 1.1),
    quotient(1_000_000, Present, 0.85),
    quotient(1_300_000, Absent, 1.1),
    quotient(1_300_000, Present, 0.85),
    quotient(10_000_000, Absent, 1.1),
    quotient(10_000_000, Present, 0.85),
    quotient(10_000_000, BatchAbsent, 0.6),
    quotient(10_000_000, BatchPresent, 0.6),
    Bar {
        ours: "umbel quotient, 64x",
        peer: "qfilter resizeable + foldhash, 64x",
        ..quotient(1_000_000, Build, 1.0)
    },
    fuse(1_000_000, Build, 0.8),
    fuse(1_000_000, Absent, 0.95),
    fuse(1_000_000, Present, 0.95),
    fuse(1_000_000, Bits, 9.05 / 9.04),
    fuse(10_000_000, Build, 0.7),
    fuse(10_000_000, Absent, 1.0),
    fuse(10_000_000, Present, 1.0),
    fuse(10_000_000, BatchAbsent, 0.62),
    fuse(10_000_000, BatchPresent, 0.62),
    fuse(10_000_000, Bits, 1.0),
    fuse(100_000_000, BatchAbsent, 0.72),
    fuse(100_000_000, BatchPresent, 0.72),
    fuse_of_four(1_000_000, Absent, 1.1),
    fuse_of_four(1_000_000, Present, 1.1),
    fuse_of_four(1_000_000, Bits, 8.63 / 9.04),
    fuse_of_four(10_000_000, Absent, 1.1),
    fuse_of_four(10_000_000, Present, 1.1),
    fuse_of_four(10_000_000, Bits, 8.62 / 9.02),
    xor(1_000_000, Build, 0.5),
    xor(1_000_000, Absent, 1.0),
    xor(1_000_000, Present, 1.0),
    xor(10_000_000, Build, 0.5),
    xor(10_000_000, Absent, 1.0),
    xor(10_000_000, Present, 1.0),
    repeated("umbel fuse, 1 % twice", "umbel fuse", 2.5),
    repeated("umbel fuse, one key a million times", "umbel fuse", 5.0),
    Bar {
        ours: "umbel fuse, many threads",
        peer: "umbel fuse, one thread",
        ..fuse(10_000_000, ThreadsBuild, 0.6)
    },
    ribbon(1_000_000, Bits, 0.888),
    ribbon(10_000_000, Build, 1.1),
    ribbon(10_000_000, Absent, 1.45),
    ribbon(10_000_000, Present, 1.45),
    ribbon(10_000_000, BatchAbsent, 0.85),
    ribbon(10_000_000, BatchPresent, 0.85),
    repeated("umbel ribbon, 1 % twice", "umbel ribbon", 2.5),
    repeated("umbel ribbon, one key a million times", "umbel ribbon", 5.0),
    Bar {
        ours: "umbel ribbon, many threads",
        peer: "umbel ribbon, one thread",
        ..ribbon(10_000_000, ThreadsBuild, 0.6)
    },
];

/// The classic filter at 1 %.
const fn bloom(keys: KeyKind, items: u64, operation: Operation, at_most: f64) -> Bar {
    let (ours, peer) = ("umbel bloom", "fastbloom + foldhash");
    Bar { ours, peer, keys, items, rate: 0.01, path: None, operation, at_most }
}

/// The blocked filter at 1 %.
const fn blocked(items: u64, operation: Operation, at_most: f64) -> Bar {
    let (ours, peer) = ("umbel blocked", "sbbf-rs-safe + foldhash");
    Bar { ours, peer, ..bloom(KeyKind::U64, items, operation, at_most) }
}

/// The same without vector instructions on our side.
const fn portable(bar: Bar) -> Bar {
    Bar { path: Some(Path::Portable), ..bar }
}

/// The blocked filter at 0.1 %, where it uses two lines per key, against a classic one.
const fn rarely_wrong(operation: Operation, at_most: f64) -> Bar {
    let peer = "fastbloom + foldhash";
    Bar { peer, rate: 0.001, ..blocked(10_000_000, operation, at_most) }
}

/// The blocked filter against the floor of random cache lines.
const fn above_floor(operation: Operation, at_most: f64) -> Bar {
    Bar { peer: floor::NAME, ..blocked(100_000_000, operation, at_most) }
}

/// The scalable filter at 1 %; both sides start with room for a 64th of the keys.
const fn scalable(operation: Operation, at_most: f64) -> Bar {
    let (ours, peer) = ("umbel scalable, 64x", "growable-bloom-filter (xxh3), 64x");
    Bar { ours, peer, ..bloom(KeyKind::U64, 1_000_000, operation, at_most) }
}

/// The counting filter at 1 %.
const fn counting(items: u64, operation: Operation, at_most: f64) -> Bar {
    let (ours, peer) = ("umbel counting", "fastbloom-rs counting (xxh3)");
    Bar { ours, peer, ..bloom(KeyKind::U64, items, operation, at_most) }
}

/// The filter of the last million keys at 1 %, against one that forgets nothing.
const fn window(operation: Operation, at_most: f64) -> Bar {
    let (ours, peer) = ("umbel window", "umbel blocked");
    Bar { ours, peer, ..bloom(KeyKind::U64, 1_000_000, operation, at_most) }
}

/// The counting filter with all cells of a key in one line.
const fn in_line(bar: Bar) -> Bar {
    Bar { ours: "umbel blocked counting", ..bar }
}

/// The stable filter at 1 %, with ten cells of two bits per key on both sides.
const fn stable(operation: Operation, at_most: f64) -> Bar {
    let (ours, peer) = ("umbel stable", "stable-bloom-filter (FNV)");
    Bar { ours, peer, ..bloom(KeyKind::U64, 1_000_000, operation, at_most) }
}

/// The peers of the cuckoo filter. The first one has the fingerprint bits that the rate requires, in tables of
/// a power of two. Our batches are compared with its loop, although it has batches too. The last one has 8 bits
/// at any rate, and its own hash, which is its default.
const AUTOSCALE: &str = "autoscale_cuckoo_filter + foldhash";
const ONE_BY_ONE: &str = "autoscale_cuckoo_filter + foldhash, one by one";
const EIGHT_BITS: &str = "cuckoofilter (SipHash)";

/// The cuckoo filter at 1 %.
const fn cuckoo(peer: &'static str, items: u64, operation: Operation, at_most: f64) -> Bar {
    let ours = "umbel cuckoo";
    Bar { ours, peer, ..bloom(KeyKind::U64, items, operation, at_most) }
}

/// The quotient filter at 1 % and a load of 0.94, with two thirds of the peer's bits or less.
const fn quotient(items: u64, operation: Operation, at_most: f64) -> Bar {
    let (ours, peer) = ("umbel quotient", "qfilter + foldhash");
    Bar { ours, peer, ..bloom(KeyKind::U64, items, operation, at_most) }
}

/// The same at the load of the peer, which has a power of two of slots.
const fn sparse(items: u64, operation: Operation, at_most: f64) -> Bar {
    Bar { ours: "umbel quotient, peer's load", ..quotient(items, operation, at_most) }
}

/// The binary fuse filter at one byte per key.
const fn fuse(items: u64, operation: Operation, at_most: f64) -> Bar {
    let (ours, peer) = ("umbel fuse", "xorf BinaryFuse8");
    Bar { ours, peer, rate: 1.0 / 256.0, ..bloom(KeyKind::U64, items, operation, at_most) }
}

/// The same with four entries per key.
const fn fuse_of_four(items: u64, operation: Operation, at_most: f64) -> Bar {
    Bar { ours: "umbel fuse, 4", ..fuse(items, operation, at_most) }
}

/// The xor filter.
const fn xor(items: u64, operation: Operation, at_most: f64) -> Bar {
    Bar { ours: "umbel xor", peer: "xorf Xor8", ..fuse(items, operation, at_most) }
}

/// A set with repeated keys against the same set without them.
const fn repeated(ours: &'static str, peer: &'static str, at_most: f64) -> Bar {
    Bar { ours, peer, ..fuse(1_000_000, Build, at_most) }
}

/// The ribbon filter of eight bits.
const fn ribbon(items: u64, operation: Operation, at_most: f64) -> Bar {
    let (ours, peer) = ("umbel ribbon", "xorf BinaryFuse8");
    Bar { ours, peer, rate: 1.0 / 256.0, ..bloom(KeyKind::U64, items, operation, at_most) }
}

/// The kind of duel that measures an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    OneThread,
    ThreadsFill,
    ThreadsLookUp,
    ThreadsBuild,
}

impl Bar {
    /// Whether both bars are measured in the same duel.
    fn shares_duel(&self, other: &Self) -> bool {
        let terms = |bar: &Self| (bar.ours, bar.peer, bar.keys, bar.items, bar.path, bar.place());
        terms(self) == terms(other) && self.rate == other.rate
    }

    fn place(&self) -> Place {
        match self.operation {
            ThreadsInsert => Place::ThreadsFill,
            ThreadsAbsent | ThreadsPresent => Place::ThreadsLookUp,
            ThreadsBuild => Place::ThreadsBuild,
            _ => Place::OneThread,
        }
    }

    /// The name of the bar, which `--only` searches.
    fn name(&self) -> String {
        let Self { ours, peer, keys, items, rate, operation, .. } = self;
        let path = self.path.map(|path| format!(", {}", path::name(path))).unwrap_or_default();
        format!("{ours} / {peer}, {} {keys} at {rate}{path}: {operation}", short(*items))
    }

    /// Whether the name contains all these parts.
    fn is_called(&self, parts: &[String]) -> bool {
        let name = self.name();
        parts.iter().all(|part| name.contains(part.as_str()))
    }

    /// Measures these operations in this bar's duel, or all operations that are measured together.
    fn measure(&self, operations: &[Operation], rounds: usize) -> Result<Vec<Comparison>, Failure> {
        let Self { ours, peer, items, rate, .. } = *self;
        let task = Task { items, rate, rounds, threads: THREADS };
        path::taking(self.path, || match (self.place(), self.keys) {
            (Place::ThreadsFill, _) => Ok(task.fill([ours, peer])?),
            (Place::ThreadsLookUp, _) => Ok(task.look_up([ours, peer])?),
            (Place::ThreadsBuild, _) => task.build([ours, peer]),
            (Place::OneThread, KeyKind::U64) => self.duel::<u64>(operations, rounds),
            (Place::OneThread, KeyKind::Bytes32) => self.duel::<[u8; 32]>(operations, rounds),
        })?
    }

    fn duel<K: Kind>(
        &self,
        operations: &[Operation],
        rounds: usize,
    ) -> Result<Vec<Comparison>, Failure> {
        let registry = Registry::all();
        let entries = [registry.find(self.ours)?, registry.find(self.peer)?];
        let queries = if self.items > LARGE { Queries::FEW } else { Queries::USUAL };
        let work = Workload::<K>::new(self.items, queries);
        let wanted = |operation| operations.contains(&operation);
        let duel = versus::duel(entries, &work, self.rate, rounds, BATCH, wanted);
        let bits = duel.bits();
        Ok(duel.comparisons.into_iter().chain([bits]).collect())
    }
}

/// A bar and its result.
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
    rounds: usize,
    bars: Vec<Outcome>,
}

/// `umbel-bench bars`. Returns whether every bar was met.
pub(crate) fn run(args: BarsArgs) -> Result<bool, Failure> {
    let machine = &Machine::new(args.output.date);
    let rounds = args.rounds;
    let bars: Vec<&Bar> = BARS.iter().filter(|bar| bar.is_called(&args.only)).collect();
    let width = bars.iter().map(|bar| bar.name().len()).max().unwrap_or_default();
    let columns = Columns::new(&["bar", "at most", "reached", "quartiles", "met"])
        .left(1)
        .widths(&[width, 7, 7, 12, 3]);
    if !args.output.json {
        report::line(&machine.summary())?;
        report::line(&format!("{rounds} rounds, ratios ours / peer"))?;
        report::line(&columns.header())?;
    }
    let mut outcomes = Vec::new();
    for group in bars.chunk_by(|a, b| a.shares_duel(b)) {
        let operations: Vec<Operation> = group.iter().map(|bar| bar.operation).collect();
        let comparisons = group[0].measure(&operations, rounds)?;
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
        report::json(&Report { mode: "bars", machine, rounds, bars: outcomes })?;
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
            let comparisons = small.measure(&[bar.operation], 1).expect("both sides exist");
            assert!(comparisons.iter().any(|c| c.operation == bar.operation), "{}", bar.name());
        }
    }

    #[test]
    fn the_name_of_a_bar_selects_that_bar_alone() {
        for bar in BARS {
            // Split as the command line splits `--only`.
            let parts: Vec<String> = bar.name().split(',').map(Into::into).collect();
            let called = BARS.iter().filter(|other| other.is_called(&parts)).count();
            assert_eq!(called, 1, "{}", bar.name());
        }
    }

    #[test]
    fn bars_of_one_duel_stand_side_by_side() {
        let duels: Vec<&Bar> = BARS.chunk_by(Bar::shares_duel).map(|group| &group[0]).collect();
        for (place, bar) in duels.iter().enumerate() {
            assert!(duels[..place].iter().all(|other| !other.shares_duel(bar)), "{}", bar.name());
        }
    }
}
