//! Two contenders, round by round: ours, the peer, ours, the peer.
//!
//! A shared machine changes speed from one second to the next, so rows that are measured one after the other
//! cannot be compared. Here each operation of each round runs on both sides back to back, the side that goes
//! first alternates, and the result is the median of the per-round ratios.

use crate::{
    Failure,
    args::{KeyKind, VersusArgs},
    contender::{Abilities, Lane, Pass},
    keys::{Queries, Workload},
    machine::Machine,
    number::short,
    registry::{Entry, Kind, Registry},
    report::{self, Columns},
    stats::Quartiles,
};
use serde::Serialize;
use std::fmt;

/// The timed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Operation {
    /// From nothing to a full filter, including allocation. Used when a side cannot clear.
    Build,
    /// Filling a cleared filter whose memory was touched before.
    Insert,
    /// The same through `insert_batch`.
    BatchInsert,
    /// The same through `Extend`, which gives no answers.
    Extend,
    /// Look-ups of keys that are not in the set.
    Absent,
    /// Look-ups of keys in the set.
    Present,
    /// Look-ups of absent keys through `contains_batch`.
    BatchAbsent,
    /// Look-ups of present keys through `contains_batch`.
    BatchPresent,
    /// Removing half of the keys in the set.
    Remove,
    /// Filling a cleared atomic filter from several threads, wall time.
    ThreadsInsert,
    /// Look-ups of absent keys in batches by several threads, wall time.
    ThreadsAbsent,
    /// Look-ups of present keys in batches by several threads, wall time.
    ThreadsPresent,
    /// From nothing to a full filter by several threads, wall time.
    ThreadsBuild,
    /// No operation: the size of the filter, in bits per key.
    Bits,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Build => "build",
            Self::Insert => "insert",
            Self::BatchInsert => "batch insert",
            Self::Extend => "extend",
            Self::Absent => "absent",
            Self::Present => "present",
            Self::BatchAbsent => "batch absent",
            Self::BatchPresent => "batch present",
            Self::Remove => "remove",
            Self::ThreadsInsert => "threads insert",
            Self::ThreadsAbsent => "threads absent",
            Self::ThreadsPresent => "threads present",
            Self::ThreadsBuild => "threads build",
            Self::Bits => "bits",
        })
    }
}

/// Both sides of one operation.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Comparison {
    pub(crate) operation: Operation,
    /// Our nanoseconds per key, median; for [`Operation::Bits`], our bits.
    pub(crate) ours: f64,
    /// The same for the peer.
    pub(crate) peer: f64,
    /// Our value divided by the peer's, by rounds.
    pub(crate) ratio: Quartiles,
}

impl Comparison {
    /// Compares the results of the same rounds.
    pub(crate) fn new(operation: Operation, ours: &[f64], peer: &[f64]) -> Self {
        Self {
            operation,
            ours: Quartiles::of(ours).median,
            peer: Quartiles::of(peer).median,
            ratio: Quartiles::of_ratios(ours, peer),
        }
    }
}

/// One side: the filter, its size, and its measured rate.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Side {
    pub(crate) name: &'static str,
    pub(crate) bits_per_key: f64,
    pub(crate) measured_rate: f64,
}

/// Two contenders, compared in every operation that both support.
#[derive(Debug, Serialize)]
pub(crate) struct Duel {
    pub(crate) ours: Side,
    pub(crate) peer: Side,
    pub(crate) comparisons: Vec<Comparison>,
}

impl Duel {
    /// The sizes of both.
    pub(crate) fn bits(&self) -> Comparison {
        Comparison::new(Operation::Bits, &[self.ours.bits_per_key], &[self.peer.bits_per_key])
    }
}

/// One pass of one operation on one side.
type Step<K> = fn(&mut dyn Lane<K>, &Workload<K>, usize) -> Pass;

/// The operations that both sides support. A side without a batch interface answers a batch with its plain
/// loop, as its users have to.
fn steps<K: Kind>(sides: [Abilities; 2]) -> Vec<(Operation, Step<K>)> {
    let any = |ability: fn(&Abilities) -> bool| sides.iter().any(ability);
    let mut steps: Vec<(Operation, Step<K>)> = Vec::new();
    if sides.iter().all(|side| side.clears) {
        steps.push((Operation::Insert, |lane, work, _| lane.refill(&work.keys)));
        if any(|side| side.batches_inserts) {
            let refill: Step<K> = |lane, work, batch| lane.refill_batch(&work.keys, batch);
            steps.push((Operation::BatchInsert, refill));
            steps.push((Operation::Extend, |lane, work, _| lane.refill_by_extending(&work.keys)));
        }
    } else {
        steps.push((Operation::Build, |lane, work, _| lane.build(&work.keys)));
    }
    steps.push((Operation::Absent, |lane, work, _| lane.look_up(&work.absent)));
    steps.push((Operation::Present, |lane, work, _| lane.look_up(&work.present)));
    if any(|side| side.batches) {
        let absent: Step<K> = |lane, work, batch| lane.look_up_batch(&work.absent, batch);
        let present: Step<K> = |lane, work, batch| lane.look_up_batch(&work.present, batch);
        steps.extend([(Operation::BatchAbsent, absent), (Operation::BatchPresent, present)]);
    }
    if sides.iter().all(|side| side.removes && side.clears) {
        steps.push((Operation::Remove, |lane, work, _| {
            let pass = lane.remove(&work.present[..work.distinct / 2]);
            // The other operations need all keys.
            lane.refill(&work.keys);
            pass
        }));
    }
    steps
}

/// Runs `rounds` rounds of ours against the peer at `rate`, with batches of `batch` keys, in every operation
/// that `wanted` selects.
pub(crate) fn duel<K: Kind>(
    entries: [&Entry; 2],
    work: &Workload<K>,
    rate: f64,
    rounds: usize,
    batch: usize,
    wanted: impl Fn(Operation) -> bool,
) -> Duel {
    let mut lanes = entries.map(|entry| K::lane(entry, rate));
    // The first build touches the memory and is not counted.
    for lane in &mut lanes {
        lane.build(&work.keys);
    }
    let mut steps = steps::<K>([lanes[0].can(), lanes[1].can()]);
    steps.retain(|(operation, _)| wanted(*operation));
    let mut samples = vec![[Vec::new(), Vec::new()]; steps.len()];
    for round in 0..rounds {
        for ((_, step), samples) in steps.iter().zip(&mut samples) {
            for side in in_turn(round) {
                samples[side].push(step(lanes[side].as_mut(), work, batch).nanos);
            }
        }
    }
    let compare = |((operation, _), [ours, peer]): (&(Operation, Step<K>), &[Vec<f64>; 2])| {
        Comparison::new(*operation, ours, peer)
    };
    let side = |index: usize| Side {
        name: entries[index].name,
        bits_per_key: lanes[index].heap() as f64 * 8.0 / work.keys.len() as f64,
        measured_rate: lanes[index].look_up(&work.absent).hits as f64 / work.absent.len() as f64,
    };
    Duel {
        ours: side(0),
        peer: side(1),
        comparisons: steps.iter().zip(&samples).map(compare).collect(),
    }
}

/// Both sides, in alternating order.
pub(crate) fn in_turn(round: usize) -> [usize; 2] {
    if round.is_multiple_of(2) { [0, 1] } else { [1, 0] }
}

/// The report of one duel.
#[derive(Serialize)]
struct Report<'a> {
    mode: &'static str,
    machine: &'a Machine,
    keys: &'static str,
    items: u64,
    rate: f64,
    rounds: usize,
    batch: usize,
    #[serde(flatten)]
    duel: Duel,
}

/// `umbel-bench versus`.
pub(crate) fn run(args: VersusArgs) -> Result<(), Failure> {
    match args.keys {
        KeyKind::U64 => run_with::<u64>(args),
        KeyKind::Bytes32 => run_with::<[u8; 32]>(args),
    }
}

fn run_with<K: Kind>(args: VersusArgs) -> Result<(), Failure> {
    let registry = Registry::all();
    let entries = [registry.find(&args.ours)?, registry.find(&args.peer)?];
    let VersusArgs { items, rate, rounds, batch, .. } = args;
    let machine = Machine::new(args.output.date);
    let work = Workload::<K>::new(items, Queries::USUAL);
    let duel = duel(entries, &work, rate, rounds, batch, |_| true);
    if args.output.json {
        let keys = K::NAME;
        let machine = &machine;
        let mode = "versus";
        return report::json(&Report { mode, machine, keys, items, rate, rounds, batch, duel });
    }
    report::line(&machine.summary())?;
    let items = short(items);
    report::line(&format!("{items} keys of {}, rate {rate}, {rounds} rounds", K::NAME))?;
    for side in [duel.ours, duel.peer] {
        let Side { name, bits_per_key, measured_rate } = side;
        let rate = report::rate(measured_rate);
        report::line(&format!("  {name}: {bits_per_key:.2} bits a key, rate {rate}"))?;
    }
    print(&duel.comparisons)
}

/// Prints comparisons as an aligned table.
pub(crate) fn print(comparisons: &[Comparison]) -> Result<(), Failure> {
    let columns = Columns::new(&["operation", "ours ns", "peer ns", "ratio", "quartiles"])
        .left(1)
        .widths(&[15, 8, 8, 6, 12]);
    report::line(&columns.header())?;
    for Comparison { operation, ours, peer, ratio } in comparisons {
        report::line(&columns.row(&[
            operation.to_string(),
            format!("{ours:.2}"),
            format!("{peer:.2}"),
            format!("{:.3}", ratio.median),
            report::quartiles(ratio),
        ]))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORK: Queries = Queries { least: 5_000, most: 5_000 };

    #[test]
    fn a_duel_of_clearing_filters_compares_inserts() {
        let registry = Registry::all();
        let folded = registry.find("fastbloom + foldhash").unwrap();
        let work = Workload::<u64>::new(1_000, WORK);
        let duel = duel([folded, folded], &work, 0.01, 3, 100, |_| true);
        let operations: Vec<_> = duel.comparisons.iter().map(|c| c.operation).collect();
        assert_eq!(operations, [Operation::Insert, Operation::Absent, Operation::Present]);
        assert!(duel.comparisons.iter().all(|c| c.ratio.low > 0.0 && c.ours > 0.0));
        assert!(duel.ours.measured_rate > 0.0 && duel.peer.measured_rate < 0.05);
    }

    #[test]
    fn a_batch_interface_meets_the_plain_loop_of_a_side_without() {
        let registry = Registry::all();
        let ours = registry.find("umbel bloom").unwrap();
        let fuse = registry.find("xorf BinaryFuse8").unwrap();
        let work = Workload::<[u8; 32]>::new(1_000, WORK);
        let duel = duel([ours, fuse], &work, 0.01, 2, 100, |_| true);
        let operations: Vec<_> = duel.comparisons.iter().map(|c| c.operation).collect();
        use Operation::*;
        assert_eq!(operations, [Build, Absent, Present, BatchAbsent, BatchPresent]);
    }

    #[test]
    fn sides_that_remove_are_held_to_it_and_are_full_again_afterwards() {
        let registry = Registry::all();
        let ours = registry.find("umbel counting").unwrap();
        let peer = registry.find("fastbloom-rs counting").unwrap();
        let work = Workload::<u64>::new(1_000, WORK);
        let duel = duel([ours, peer], &work, 0.01, 2, 100, |_| true);
        assert!(duel.comparisons.iter().any(|c| c.operation == Operation::Remove));
        // A half-full filter would be below a tenth of this.
        assert!(duel.ours.measured_rate > 0.005, "{}", duel.ours.measured_rate);
    }

    #[test]
    fn only_what_is_wanted_is_measured() {
        let registry = Registry::all();
        let ours = registry.find("umbel blocked").unwrap();
        let work = Workload::<u64>::new(1_000, WORK);
        let wanted = |operation| operation == Operation::BatchPresent;
        let duel = duel([ours, ours], &work, 0.01, 1, 100, wanted);
        let operations: Vec<_> = duel.comparisons.iter().map(|c| c.operation).collect();
        assert_eq!(operations, [Operation::BatchPresent]);
    }

    #[test]
    fn sides_take_turns_in_going_first() {
        assert_eq!([0, 1, 2].map(in_turn), [[0, 1], [1, 0], [0, 1]]);
    }
}
