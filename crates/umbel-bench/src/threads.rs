//! Inserting from several threads into one filter, against the wall clock.

use crate::{
    Failure,
    args::ThreadsArgs,
    keys::{Queries, Workload},
    machine::Machine,
    number::short,
    peers::FoldedAtomicFastbloom,
    registry::{NoSuchContender, pick},
    report,
    versus::{self, Comparison, Operation, in_turn},
};
use serde::Serialize;
use std::{hint::black_box, sync::Barrier, thread, time::Instant};
use umbel::AtomicBloomFilter;

/// A filter that takes keys through a shared reference.
pub(crate) trait Shared: Sync + Sized + 'static {
    /// A filter without keys, with room for `items` of them.
    fn empty(items: usize, rate: f64) -> Self;
    /// Adds `key`. What the filter answers is not used.
    fn insert(&self, key: &u64);
    /// Whether `key` may be in the set.
    fn contains(&self, key: &u64) -> bool;
    /// Forgets every key and keeps the memory.
    fn clear(&mut self);
}

/// A shared filter with its type hidden.
trait Crew {
    /// Clears the filter, then inserts `keys` from `threads` threads, each with its part; the
    /// nanoseconds a key.
    fn refill(&mut self, keys: &[u64], threads: usize) -> f64;
    /// How many of `keys` are found.
    fn count(&self, keys: &[u64]) -> usize;
}

impl<F: Shared> Crew for F {
    fn refill(&mut self, keys: &[u64], threads: usize) -> f64 {
        self.clear();
        let filter = black_box(&*self);
        let parts = keys.chunks(keys.len().div_ceil(threads));
        let together = &Barrier::new(parts.len());
        // Threads keep their own time: the one that waits for them may be woken late.
        let times: Vec<[Instant; 2]> = thread::scope(|scope| {
            let insert = |part: &[u64]| {
                together.wait();
                let start = Instant::now();
                for key in part {
                    filter.insert(key);
                }
                [start, Instant::now()]
            };
            let workers: Vec<_> = parts.map(|part| scope.spawn(move || insert(part))).collect();
            workers.into_iter().map(|worker| worker.join().expect("no panic")).collect()
        });
        let first = times.iter().map(|[start, _]| *start).min().expect("a thread");
        let last = times.iter().map(|[_, end]| *end).max().expect("a thread");
        (last - first).as_nanos() as f64 / keys.len() as f64
    }

    fn count(&self, keys: &[u64]) -> usize {
        keys.iter().filter(|key| self.contains(key)).count()
    }
}

/// One filter for the threads, by name.
struct Entry {
    name: &'static str,
    new: fn(usize, f64) -> Box<dyn Crew>,
}

impl Entry {
    fn new<F: Shared>(name: &'static str) -> Self {
        Self { name, new: |items, rate| Box::new(F::empty(items, rate)) }
    }
}

fn all() -> Vec<Entry> {
    vec![
        Entry::new::<AtomicBloomFilter<u64>>("umbel atomic bloom"),
        Entry::new::<FoldedAtomicFastbloom>("fastbloom Atomic + foldhash"),
    ]
}

/// Runs `rounds` rounds of the filters called `names`, ours first.
pub(crate) fn duel(
    names: [&str; 2],
    items: u64,
    rate: f64,
    rounds: usize,
    threads: usize,
) -> Result<Comparison, NoSuchContender> {
    let all = all();
    let entries = [pick(&all, |e| e.name, names[0])?, pick(&all, |e| e.name, names[1])?];
    let work = Workload::<u64>::new(items, Queries { least: 1, most: 100_000 });
    let mut crews = entries.map(|entry| (entry.new)(work.keys.len(), rate));
    let mut samples = [Vec::new(), Vec::new()];
    // The first round touches the memory and is not counted.
    for crew in &mut crews {
        crew.refill(&work.keys, threads);
        assert_eq!(crew.count(&work.present), work.present.len(), "a thread lost a key");
    }
    for round in 0..rounds {
        for side in in_turn(round) {
            samples[side].push(crews[side].refill(&work.keys, threads));
        }
    }
    Ok(Comparison::new(Operation::ThreadsInsert, &samples[0], &samples[1]))
}

#[derive(Serialize)]
struct Report<'a> {
    mode: &'static str,
    /// Not the clock of the machine facts: CPU time would add the threads up.
    clock: &'static str,
    machine: &'a Machine,
    ours: &'a str,
    peer: &'a str,
    threads: usize,
    items: u64,
    rate: f64,
    rounds: usize,
    comparison: Comparison,
}

/// `umbel-bench threads`.
pub(crate) fn run(args: ThreadsArgs) -> Result<(), Failure> {
    let ThreadsArgs { ref ours, ref peer, items, rate, rounds, threads, output } = args;
    let comparison = duel([ours, peer], items, rate, rounds, threads)?;
    let machine = &Machine::new(output.date);
    if output.json {
        let (mode, clock) = ("threads", "wall time");
        let report =
            Report { mode, clock, machine, ours, peer, threads, items, rate, rounds, comparison };
        return report::json(&report);
    }
    report::line(&machine.summary())?;
    let items = short(items);
    report::line(&format!("{ours} against {peer}"))?;
    report::line(&format!(
        "{items} keys, rate {rate}, {threads} threads, {rounds} rounds, wall time"
    ))?;
    versus::print(&[comparison])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_lose_no_keys_however_many_there_are() {
        for threads in [1, 2, 7] {
            let comparison = duel(["umbel", "fastbloom"], 1_000, 0.01, 2, threads).unwrap();
            assert!(comparison.ratio.median > 0.0);
        }
        assert!(duel(["umbel", "fastbloom"], 3, 0.01, 1, 5).is_ok());
    }

    #[test]
    fn an_unknown_name_is_refused() {
        assert!(duel(["umbel", "nobody"], 10, 0.01, 1, 1).is_err());
    }
}
