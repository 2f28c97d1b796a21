//! Several threads and one filter, in wall time: they fill it, look keys up in it, or build it together.

use crate::{
    Failure,
    args::ThreadsArgs,
    contender::{Contender, count_batches},
    floor,
    keys::{Queries, Workload},
    machine::Machine,
    number::short,
    peers::FoldedAtomicFastbloom,
    registry::{NoSuchContender, pick},
    report,
    versus::{self, Comparison, Operation, in_turn},
};
use serde::Serialize;
use std::{hint::black_box, marker::PhantomData, sync::Barrier, thread, time::Instant};
use umbel::{
    AtomicBlockedBloomFilter, AtomicBloomFilter, BlockedBloomFilter, BloomFilter, Portable,
    frozen::{Arrangement, Build, Frozen, Peeled},
    fuse::Fused,
    ribbon::Ribbon,
};

/// Keys of a batch of look-ups.
const BATCH: usize = 1024;

/// A filter that inserts keys through a shared reference.
pub(crate) trait Shared: Sync + Sized + 'static {
    /// A filter without keys, with room for `items` of them.
    fn empty(items: usize, rate: f64) -> Self;
    /// Adds `key`. The answer of the filter is not used.
    fn insert(&self, key: &u64);
    /// Whether `key` may be in the set.
    fn contains(&self, key: &u64) -> bool;
    /// Forgets every key and keeps the memory.
    fn clear(&mut self);
}

/// A shared filter with its type hidden.
trait Fillable {
    /// Clears the filter, then inserts `keys` from `threads` threads, each with its part; returns the
    /// nanoseconds per key.
    fn refill(&mut self, keys: &[u64], threads: usize) -> f64;
    /// The number of `keys` that are found.
    fn count(&self, keys: &[u64]) -> usize;
}

impl<F: Shared> Fillable for F {
    fn refill(&mut self, keys: &[u64], threads: usize) -> f64 {
        self.clear();
        let filter = black_box(&*self);
        crew(keys, threads, |part| part.iter().for_each(|key| filter.insert(key)))
    }

    fn count(&self, keys: &[u64]) -> usize {
        keys.iter().filter(|key| self.contains(key)).count()
    }
}

/// A full filter in which many threads may look up keys, with its type hidden.
pub(crate) trait Readable: Sync {
    /// Looks up every key, in one thread; returns a number that depends on all answers.
    fn look_up(&self, keys: &[u64]) -> u64;
}

/// A filter that is queried in batches. Each thread has a separate buffer for answers.
struct InBatches<F>(F);

impl<F: Contender<u64> + Sync> Readable for InBatches<F> {
    fn look_up(&self, keys: &[u64]) -> u64 {
        count_batches(&self.0, keys, BATCH) as u64
    }
}

/// A static filter, with its type hidden.
trait Buildable: Sync {
    /// Builds it, with all threads of the current pool or with one; returns the nanoseconds per key.
    fn build(&self, keys: &[u64], rate: f64) -> f64;
}

/// A filter of this arrangement, built by many threads or by one.
struct AtOnce<A, const MANY: bool>(PhantomData<fn(A)>);

impl<A: Arrangement, const MANY: bool> Buildable for AtOnce<A, MANY> {
    fn build(&self, keys: &[u64], rate: f64) -> f64 {
        let how = Build::new(rate);
        let how = if MANY { how.parallel() } else { how };
        let start = Instant::now();
        let filter = Frozen::<u64, Portable, A>::build_with(how, keys);
        let nanos = start.elapsed().as_nanos() as f64 / keys.len() as f64;
        black_box(filter.expect("well-mixed keys can be built"));
        nanos
    }
}

/// Runs `work` in `threads` threads at the same time, each with its part of `keys`; returns the nanoseconds per
/// key, for all of them together.
pub(crate) fn crew<R>(keys: &[u64], threads: usize, work: impl Fn(&[u64]) -> R + Sync) -> f64 {
    let parts = keys.chunks(keys.len().div_ceil(threads));
    let together = Barrier::new(parts.len());
    // Each thread measures its own time: the waiting thread may be woken late.
    let timed = |part: &[u64]| {
        together.wait();
        let start = Instant::now();
        black_box(work(part));
        [start, Instant::now()]
    };
    let times: Vec<[Instant; 2]> = thread::scope(|scope| {
        let workers: Vec<_> = parts.map(|part| scope.spawn(|| timed(part))).collect();
        workers.into_iter().map(|worker| worker.join().expect("no panic")).collect()
    });
    let first = times.iter().map(|[start, _]| *start).min().expect("a thread");
    let last = times.iter().map(|[_, end]| *end).max().expect("a thread");
    (last - first).as_nanos() as f64 / keys.len() as f64
}

/// One side of a comparison, by name; it is created for the keys and the rate.
struct Entry<T: ?Sized> {
    name: &'static str,
    new: fn(&[u64], f64) -> Box<T>,
}

impl Entry<dyn Fillable> {
    fn fill<F: Shared>(name: &'static str) -> Self {
        Self { name, new: |keys, rate| Box::new(F::empty(keys.len(), rate)) }
    }
}

impl Entry<dyn Readable> {
    fn read<F: Contender<u64> + Sync>(name: &'static str) -> Self {
        Self { name, new: |keys, rate| Box::new(InBatches(F::build(keys, rate))) }
    }

    /// The floor for all filters.
    fn floor() -> Self {
        let new = |keys: &[u64], rate| -> Box<dyn Readable> {
            let lines = floor::Lines::of_filter(keys.len() as u64, rate);
            Box::new(lines.expect("there is such a filter"))
        };
        Self { name: floor::NAME, new }
    }
}

impl Entry<dyn Buildable> {
    fn build<A: Arrangement, const MANY: bool>(name: &'static str) -> Self {
        Self { name, new: |_, _| Box::new(AtOnce::<A, MANY>(PhantomData)) }
    }
}

/// The static filters.
fn buildable() -> [Entry<dyn Buildable>; 6] {
    [
        Entry::build::<Peeled<Fused<3>>, true>("umbel fuse, many threads"),
        Entry::build::<Peeled<Fused<3>>, false>("umbel fuse, one thread"),
        Entry::build::<Peeled<Fused<4>>, true>("umbel fuse, 4, many threads"),
        Entry::build::<Peeled<Fused<4>>, false>("umbel fuse, 4, one thread"),
        Entry::build::<Ribbon, true>("umbel ribbon, many threads"),
        Entry::build::<Ribbon, false>("umbel ribbon, one thread"),
    ]
}

/// The filters that threads can fill.
fn fillable() -> [Entry<dyn Fillable>; 3] {
    [
        Entry::fill::<AtomicBloomFilter<u64>>("umbel atomic bloom"),
        Entry::fill::<AtomicBlockedBloomFilter<u64>>("umbel atomic blocked"),
        Entry::fill::<FoldedAtomicFastbloom>("fastbloom Atomic + foldhash"),
    ]
}

/// The filters in which threads can look up keys.
fn readable() -> [Entry<dyn Readable>; 3] {
    [
        Entry::read::<BloomFilter<u64>>("umbel bloom"),
        Entry::read::<BlockedBloomFilter<u64>>("umbel blocked"),
        Entry::floor(),
    ]
}

/// The task of the threads in a duel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) items: u64,
    pub(crate) rate: f64,
    pub(crate) rounds: usize,
    pub(crate) threads: usize,
}

impl Task {
    /// Fills the filters called `names`, ours first, in interleaved rounds.
    pub(crate) fn fill(self, names: [&str; 2]) -> Result<Vec<Comparison>, NoSuchContender> {
        let queries = Queries { least: 1, most: 100_000 };
        let (work, mut sides) = self.prepare(&fillable(), names, queries)?;
        // The first round touches the memory and is not counted.
        for side in &mut sides {
            side.refill(&work.keys, self.threads);
            assert_eq!(side.count(&work.present), work.present.len(), "a thread lost a key");
        }
        let pass = |side: usize| sides[side].refill(&work.keys, self.threads);
        Ok(vec![self.compare(Operation::ThreadsInsert, pass)])
    }

    /// Looks keys up in the filters called `names`, ours first, in interleaved rounds: absent ones,
    /// then present ones.
    pub(crate) fn look_up(self, names: [&str; 2]) -> Result<Vec<Comparison>, NoSuchContender> {
        let (work, sides) = self.prepare(&readable(), names, Queries::USUAL)?;
        let operations =
            [(Operation::ThreadsAbsent, &work.absent), (Operation::ThreadsPresent, &work.present)];
        Ok(operations
            .map(|(operation, keys)| {
                self.compare(operation, |side| {
                    let side = black_box(&*sides[side]);
                    crew(keys, self.threads, |part| side.look_up(part))
                })
            })
            .into())
    }

    /// Builds the filters called `names`, ours first, in interleaved rounds.
    pub(crate) fn build(self, names: [&str; 2]) -> Result<Vec<Comparison>, Failure> {
        let queries = Queries { least: 1, most: 1 };
        let (work, sides) = self.prepare(&buildable(), names, queries)?;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads).build()?;
        let pass = |side: usize| pool.install(|| sides[side].build(&work.keys, self.rate));
        Ok(vec![self.compare(Operation::ThreadsBuild, pass)])
    }

    /// The keys, and both sides.
    fn prepare<T: ?Sized>(
        self,
        all: &[Entry<T>],
        [ours, peer]: [&str; 2],
        queries: Queries,
    ) -> Result<(Workload<u64>, [Box<T>; 2]), NoSuchContender> {
        let entries = [pick(all, |e| e.name, ours)?, pick(all, |e| e.name, peer)?];
        let work = Workload::new(self.items, queries);
        let sides = entries.map(|entry| (entry.new)(&work.keys, self.rate));
        Ok((work, sides))
    }

    /// Compares the nanoseconds of passes by either side; ours is side 0.
    fn compare(self, operation: Operation, mut pass: impl FnMut(usize) -> f64) -> Comparison {
        let mut samples = [Vec::new(), Vec::new()];
        for round in 0..self.rounds {
            for side in in_turn(round) {
                samples[side].push(pass(side));
            }
        }
        Comparison::new(operation, &samples[0], &samples[1])
    }
}

#[derive(Serialize)]
struct Report<'a> {
    mode: &'static str,
    /// Not the clock of the machine facts: CPU time would be the sum over the threads.
    clock: &'static str,
    machine: &'a Machine,
    ours: &'a str,
    peer: &'a str,
    threads: usize,
    items: u64,
    rate: f64,
    rounds: usize,
    comparisons: &'a [Comparison],
}

/// `umbel-bench threads`.
pub(crate) fn run(args: ThreadsArgs) -> Result<(), Failure> {
    let ThreadsArgs { items, rate, rounds, threads, look_up, build, output, .. } = args;
    let task = Task { items, rate, rounds, threads };
    let (ours, peer) = if look_up {
        ("umbel blocked", floor::NAME)
    } else if build {
        ("umbel fuse, many threads", "umbel fuse, one thread")
    } else {
        ("umbel atomic bloom", "fastbloom Atomic + foldhash")
    };
    let ours = args.ours.as_deref().unwrap_or(ours);
    let peer = args.peer.as_deref().unwrap_or(peer);
    let names = [ours, peer];
    let comparisons = &match (look_up, build) {
        (true, _) => task.look_up(names)?,
        (_, true) => task.build(names)?,
        _ => task.fill(names)?,
    };
    let machine = &Machine::new(output.date);
    if output.json {
        let (mode, clock) = ("threads", "wall time");
        let report =
            Report { mode, clock, machine, ours, peer, threads, items, rate, rounds, comparisons };
        return report::json(&report);
    }
    report::line(&machine.summary())?;
    let items = short(items);
    report::line(&format!("{ours} against {peer}"))?;
    report::line(&format!(
        "{items} keys, rate {rate}, {threads} threads, {rounds} rounds, wall time"
    ))?;
    versus::print(comparisons)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(items: u64, threads: usize) -> Task {
        Task { items, rate: 0.01, rounds: 2, threads }
    }

    #[test]
    fn threads_lose_no_keys_however_many_there_are() {
        for ours in ["umbel atomic bloom", "umbel atomic blocked"] {
            for threads in [1, 2, 7] {
                let comparisons = task(1_000, threads).fill([ours, "fastbloom"]).unwrap();
                assert!(comparisons[0].ratio.median > 0.0);
            }
            assert!(task(3, 5).fill([ours, "fastbloom"]).is_ok());
        }
    }

    #[test]
    fn every_key_is_given_to_one_thread() {
        use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
        let keys: Vec<u64> = (1..=1_000).collect();
        for threads in [1, 2, 7, 2_000] {
            let sum = AtomicU64::new(0);
            crew(&keys, threads, |part| sum.fetch_add(part.iter().sum(), Relaxed));
            assert_eq!(sum.into_inner(), 500_500, "{threads} threads");
        }
    }

    #[test]
    fn filters_to_look_into_are_full_and_keep_their_rate() {
        let work = Workload::<u64>::new(5_000, Queries { least: 5_000, most: 5_000 });
        for entry in readable().into_iter().filter(|entry| entry.name != floor::NAME) {
            let side = (entry.new)(&work.keys, 0.01);
            assert_eq!(side.look_up(&work.present), 5_000, "{}", entry.name);
            // 1 % of them is 50; five sigma are 35 more.
            assert!(side.look_up(&work.absent) <= 85, "{}", entry.name);
        }
    }

    #[test]
    fn look_ups_are_held_against_the_floor_or_another_filter() {
        for peer in [floor::NAME, "umbel bloom"] {
            for threads in [1, 2] {
                let comparisons = task(1_000, threads).look_up(["umbel blocked", peer]).unwrap();
                let operations: Vec<_> = comparisons.iter().map(|c| c.operation).collect();
                assert_eq!(operations, [Operation::ThreadsAbsent, Operation::ThreadsPresent]);
                assert!(comparisons.iter().all(|c| c.ratio.low > 0.0));
            }
        }
    }

    #[test]
    fn filters_are_built_by_any_number_of_threads() {
        for threads in [1, 2] {
            let names = ["umbel fuse, many threads", "umbel fuse, one thread"];
            let comparisons = task(1_000, threads).build(names).unwrap();
            assert!(comparisons[0].ratio.median > 0.0);
        }
    }

    #[test]
    fn an_unknown_name_is_refused() {
        assert!(task(10, 1).fill(["umbel atomic bloom", "nobody"]).is_err());
        // Threads cannot fill this filter.
        assert!(task(10, 1).fill(["umbel blocked", "fastbloom"]).is_err());
        assert!(task(10, 1).look_up(["umbel blocked", "nobody"]).is_err());
    }
}
