//! Special operations of our quotient filter, compared with itself: merging against inserting again, copies of
//! one key, and their effect on neighbours. All results are ratios, so below 1 is faster.

use crate::{
    Failure,
    args::QuotientArgs,
    clock,
    keys::{Queries, Workload},
    machine::Machine,
    report,
    stats::Quartiles,
};
use std::{hint::black_box, time::Instant};
use umbel::{QuotientFilter, quotient::MAX_COPIES};

const RATE: f64 = 0.01;

/// How often one key is inserted.
const COPIES: usize = 100_000;

/// `umbel-bench quotient`.
pub(crate) fn run(args: QuotientArgs) -> Result<(), Failure> {
    report::line(&Machine::new(args.output.date).summary())?;
    let work = Workload::<u64>::new(args.items, Queries::FEW);
    merging(&work.keys, args.rounds, args.threads)?;
    copies(&work.keys[..work.keys.len().min(1_000_000)], args.rounds)
}

fn filled(keys: &[u64], capacity: usize) -> QuotientFilter<u64> {
    let mut filter = QuotientFilter::new(capacity as u64, RATE);
    for key in keys {
        filter.insert(key).expect("room for every key");
    }
    filter
}

/// Merging two filters with half of the keys each, against inserting all keys one by one.
fn merging(keys: &[u64], rounds: usize, threads: usize) -> Result<(), Failure> {
    let (left, right) = keys.split_at(keys.len() / 2);
    let (left, right) = (filled(left, keys.len()), filled(right, keys.len()));
    let (mut ratios, mut by_threads) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (insert, again) = clock::time(|| filled(keys, keys.len()));
        drop(again);
        let mut one = left.clone();
        let (merge, merged) = clock::time(|| one.merge_with(&right));
        merged?;
        let mut many = left.clone();
        let start = Instant::now();
        many.merge_with_threads(&right, threads)?;
        let wall = start.elapsed().as_nanos() as f64;
        assert!(keys.iter().take(100_000).all(|key| one.contains(key) && many.contains(key)));
        ratios.push(merge / insert);
        by_threads.push(wall / insert);
    }
    print("merging two halves / inserting all keys", &ratios)?;
    print(&format!("the same by {threads} threads, wall time"), &by_threads)
}

/// Inserting one key many times, and look-ups of its neighbours before and after.
fn copies(keys: &[u64], rounds: usize) -> Result<(), Failure> {
    let (mut millis, mut ratios) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let mut filter = filled(keys, keys.len() * 11 / 10);
        let hot = keys[round * 7919 % keys.len()];
        let prefix = |filter: &QuotientFilter<u64>, key: &u64| {
            filter.prefix(umbel::Edge::digest(filter, key)) >> filter.shape().remainder_bits()
        };
        let home = prefix(&filter, &hot);
        // The keys whose slots the copies displace.
        let near = home..home + 4 * MAX_COPIES;
        let neighbours: Vec<u64> =
            keys.iter().filter(|key| near.contains(&prefix(&filter, key))).copied().collect();
        let look = |filter: &QuotientFilter<u64>| {
            let pass = || neighbours.iter().filter(|key| filter.contains(*key)).count();
            let (nanos, found) =
                clock::time(|| (0..2_000).map(|_| black_box(pass())).sum::<usize>());
            assert_eq!(found, neighbours.len() * 2_000, "no neighbour is lost");
            nanos
        };
        let before = look(&filter);
        let (nanos, taken) =
            clock::time(|| (0..COPIES).filter(|_| filter.insert(&hot).is_ok()).count());
        assert!(taken as u64 <= MAX_COPIES);
        millis.push(nanos / 1e6);
        ratios.push(look(&filter) / before);
    }
    print("one key 1e5 times, refused when there are 64: milliseconds", &millis)?;
    print("its neighbours' look-ups after / before", &ratios)
}

fn print(what: &str, sample: &[f64]) -> Result<(), Failure> {
    let quartiles = Quartiles::of(sample);
    let around = report::quartiles(&quartiles);
    report::line(&format!("{what:<60} {:.3}  {around}", quartiles.median))
}
