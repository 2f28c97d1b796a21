//! Two contenders, round by round: ours, the peer, ours, the peer.
//!
//! A shared machine changes speed from one second to the next, so rows measured one after the other
//! cannot be compared. Here each operation of each round runs on both sides back to back, the side
//! that goes first alternates, and the median of the per-round ratios is what counts.

use crate::{
    Failure,
    args::VersusArgs,
    contender::{Lane, Pass},
    keys::{Queries, Workload},
    machine::Machine,
    number::short,
    registry::{Entry, Kind, Registry},
    report,
    stats::Quartiles,
};
use serde::Serialize;
use std::fmt::{self, Write};

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Operation {
    /// From nothing to a full filter, allocation included; when a side cannot clear.
    Build,
    /// Filling a cleared filter whose memory was touched before.
    Insert,
    /// The same through `insert_batch`.
    BatchInsert,
    /// Look-ups of keys that are not in the set.
    Absent,
    /// Look-ups of keys that are.
    Present,
    /// Look-ups of absent keys through `contains_batch`.
    BatchAbsent,
    /// Look-ups of present keys through `contains_batch`.
    BatchPresent,
    /// Filling a cleared atomic filter from several threads, wall time.
    ThreadsInsert,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Build => "build",
            Self::Insert => "insert",
            Self::BatchInsert => "batch insert",
            Self::Absent => "absent",
            Self::Present => "present",
            Self::BatchAbsent => "batch absent",
            Self::BatchPresent => "batch present",
            Self::ThreadsInsert => "threads insert",
        })
    }
}

/// Both sides of one operation.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Comparison {
    pub(crate) operation: Operation,
    /// Our nanoseconds a key, median.
    pub(crate) ours: f64,
    /// The peer's nanoseconds a key, median.
    pub(crate) peer: f64,
    /// Ours over the peer's, by rounds.
    pub(crate) ratio: Quartiles,
}

impl Comparison {
    /// Compares nanoseconds a key measured in the same rounds.
    pub(crate) fn new(operation: Operation, ours: &[f64], peer: &[f64]) -> Self {
        Self {
            operation,
            ours: Quartiles::of(ours).median,
            peer: Quartiles::of(peer).median,
            ratio: Quartiles::of_ratios(ours, peer),
        }
    }
}

/// Runs `rounds` rounds of `ours` against `peer` at `rate`, in batches of `batch` keys.
pub(crate) fn compare<K: Kind>(
    (ours, peer): (&Entry, &Entry),
    work: &Workload<K>,
    rate: f64,
    rounds: usize,
    batch: usize,
) -> Vec<Comparison> {
    let mut lanes = [K::lane(ours, rate), K::lane(peer, rate)];
    let builds: Vec<[f64; 2]> = (0..rounds).map(|r| each(&mut lanes, r, |l| l.build(&work.keys))).collect();
    let mut comparisons = Vec::new();
    let _ = (builds, batch, &mut comparisons);
    comparisons
}
fn each<K>(_l: &mut [Box<dyn Lane<K>>; 2], _r: usize, _f: impl Fn(&mut dyn Lane<K>) -> Pass) -> [f64; 2] { [0.0; 2] }
