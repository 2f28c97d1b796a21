//! A layer that bumps: it is cut into shards, and each thread bands four of them in turn.
//!
//! ```text
//!     buckets   [ shard 0 . . . . . s][ shard 1 . . . . . s][ shard 2 . . . . . ]
//!                                   ^ sealed: no equation reaches over a cut
//! ```
//!
//! Each equation depends on the row that the previous step led to, so a single shard leaves a
//! processor mostly idle. Four shards in turn keep it busy. The number of buckets alone determines
//! the cuts, and no shard depends on another, so the bits are the same for any number of threads.

use super::band::{Band, Moving, Total, total_bytes};
use super::lane::{Lane, Outcome, Shard};
use super::parts::{Parts, SlabFull, part_buckets, threads};
use super::row::{Gatherable, mask};
use super::shape::{BUCKET, BUCKETS_PER_WORD, Tier};
use crate::frozen::{Stage, Work};
use crate::parts::alloc_zeroed::alloc_zeroed_words;
use crate::simd::{Choice, Isa, Job, dispatch_words};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The shards that a thread bands in turn.
const LANES: usize = 4;

/// The maximum number of shards that all threads together band at once.
const MOST_LANES: u64 = 256;

/// The approximate number of buckets per shard. Each cut costs some 70 rows.
const SHARD: u64 = 2048;

/// From this many buckets on there are at least two shards.
const TWO_SHARDS: u64 = 600;

/// A layer that has been built.
#[derive(Debug)]
pub(super) struct Built<E> {
    pub(super) words: Box<[u64]>,
    pub(super) thresholds: Vec<u64>,
    pub(super) outcomes: Vec<Outcome<E>>,
}

/// The number of buckets of every shard except the last: whole parts, and whole words of
/// thresholds.
const fn shard_buckets(tier: &Tier, part: u64) -> u64 {
    let buckets = tier.buckets();
    let mut shards = (buckets + SHARD / 2) / SHARD;
    if buckets >= LANES as u64 / 2 * SHARD {
        shards = shards.next_multiple_of(LANES as u64);
    } else if buckets >= TWO_SHARDS {
        shards = 2;
    } else {
        shards = 1;
    }
    // A part is at least as large as a word of thresholds.
    buckets.div_ceil(shards).next_multiple_of(part)
}

/// The maximum number of entries that may be bumped. Expected are one in 13, and a bucket at each
/// cut.
const fn most_bumped(entries: usize) -> usize {
    entries / 8 + 2 * BUCKET as usize
}

/// The maximum number of bytes that are needed to build a layer from this many entries of this
/// size, which are in their parts, with the maximum number of shards at once.
pub(super) const fn peak_bytes(tier: &Tier, items: u64, entry: u64, bits: u32) -> u64 {
    let part = part_buckets(tier);
    let buckets = shard_buckets(tier, part);
    let shards = tier.buckets().div_ceil(buckets);
    let lanes = if shards < MOST_LANES { shards } else { MOST_LANES };
    let band = lanes * (buckets * BUCKET + 64) * (8 + total_bytes(bits));
    let bumped = items / 8 + shards * 2 * BUCKET;
    // The entries of a part, with a margin above the average, and their sorted copy.
    let sorted = lanes * (part * BUCKET) * (entry + entry / 2 + 4);
    let words = (tier.grid.words(bits) + tier.threshold_words()) as u64 * 8;
    band + bumped * entry + sorted + words
}

/// Builds the layer of these entries, which are some of the entries of all layers, with this many
/// bits each.
pub(super) fn build<E: Gatherable, T: Total>(
    source: &Parts<E>,
    bits: u32,
    total: u64,
    work: &Work<'_>,
) -> Result<Built<E>, SlabFull> {
    let tier = source.tier();
    let len = tier.grid.words(bits);
    let mut words = alloc_zeroed_words(len).ok_or(SlabFull::of::<u64>(len))?;
    let mut thresholds = alloc::vec![u64::MAX; tier.threshold_words()];
    let buckets = shard_buckets(tier, source.buckets());
    let mut outcomes = Vec::new();
    outcomes.resize_with(tier.buckets().div_ceil(buckets) as usize, Outcome::default);
    let mut shards = cut(tier, buckets, bits, &mut words, &mut thresholds, &mut outcomes);
    for shard in &mut shards {
        let parts =
            shard.buckets.start / source.buckets()..shard.buckets.end.div_ceil(source.buckets());
        let most = most_bumped(source.len(parts.start as usize..parts.end as usize));
        shard.outcome.bumped.try_reserve_exact(most).map_err(|_| SlabFull::of::<E>(most))?;
    }
    let rows = (buckets * BUCKET + 64) as usize;
    let task = Task { source, bits, total, work, rows, done: 0.into() };
    task.run::<T>(shards)?;
    Ok(Built { words, thresholds, outcomes })
}

/// Cuts the layer into shards, each with the slices that it writes to.
fn cut<'a, E>(
    tier: &Tier,
    buckets: u64,
    bits: u32,
    mut words: &'a mut [u64],
    mut thresholds: &'a mut [u64],
    outcomes: &'a mut [Outcome<E>],
) -> Vec<Shard<'a, E>> {
    let mut begin = 0;
    let mut shards = Vec::with_capacity(outcomes.len());
    for outcome in outcomes {
        let end = (begin + buckets).min(tier.buckets());
        let blocks = ((end - begin) * BUCKET / 64) as usize;
        let last = end == tier.buckets();
        let own = if last { words.len() } else { blocks * bits as usize };
        let of_thresholds = (end - begin).div_ceil(BUCKETS_PER_WORD) as usize;
        shards.push(Shard {
            buckets: begin..end,
            sealed: (!last).then_some(end - 1),
            words: words.split_off_mut(..own).expect("words for every shard"),
            thresholds: thresholds.split_off_mut(..of_thresholds).expect("one for every bucket"),
            outcome,
        });
        begin = end;
    }
    shards
}

/// The state that all threads share.
struct Task<'a, E> {
    source: &'a Parts<E>,
    bits: u32,
    /// The number of keys of all layers.
    total: u64,
    work: &'a Work<'a>,
    /// The rows of a lane in the band.
    rows: usize,
    /// The number of finished buckets.
    done: AtomicUsize,
}

impl<E: Gatherable> Task<'_, E> {
    fn run<T: Total>(&self, shards: Vec<Shard<'_, E>>) -> Result<(), SlabFull> {
        let workers = threads(self.work).min(shards.len()).min(MOST_LANES as usize / LANES);
        let lanes = LANES.min(shards.len().div_ceil(workers.max(1)));
        #[cfg(feature = "rayon")]
        if workers > 1 {
            use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
            use std::sync::{Mutex, PoisonError};
            let queue = Mutex::new(shards.into_iter());
            let take = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let worker = |_| self.run_here::<T>(lanes, take);
            return (0..workers).into_par_iter().with_max_len(1).map(worker).collect();
        }
        let mut shards = shards.into_iter();
        self.run_here::<T>(lanes, || shards.next())
    }

    /// Bands shards until no more are left.
    fn run_here<'s, T: Total>(
        &self,
        lanes: usize,
        mut take: impl FnMut() -> Option<Shard<'s, E>>,
    ) -> Result<(), SlabFull>
    where
        E: 's,
    {
        let rows = lanes * self.rows;
        let mut band = Band::<T>::free(rows).ok_or(SlabFull::of::<(u64, T)>(rows))?;
        let mut running: Vec<Lane<'_, E>> = Vec::with_capacity(LANES);
        let lane = |shard, base| Lane::new(shard, base, mask(self.bits), self.source);
        for number in 0..lanes {
            running.extend(take().map(|shard| lane(shard, number * self.rows)));
        }
        let mut counts = Vec::new();
        while !running.is_empty() {
            let mut finished = None;
            dispatch_words(
                Choice::now(),
                Turn {
                    lanes: &mut running,
                    band: &mut band,
                    task: self,
                    counts: &mut counts,
                    finished: &mut finished,
                },
            );
            let Some(number) = finished else { break };
            let done = running.swap_remove(number);
            band.clear(done.rows());
            let buckets = (done.shard.buckets.end - done.shard.buckets.start) as usize;
            let sum = self.done.fetch_add(buckets, Relaxed) + buckets;
            self.tell(sum);
            running.extend(take().map(|shard| lane(shard, done.base)));
        }
        Ok(())
    }

    /// Reports progress: the keys of finished layers, and the share of this layer's keys that
    /// corresponds to its finished buckets.
    fn tell(&self, done: usize) {
        let buckets = self.source.tier().buckets();
        let left = self.source.len(0..self.source.count()) as u64;
        let here = (done as u128 * u128::from(left) / u128::from(buckets)) as u64;
        self.work.tell(Stage::Solving, self.total - left + here, Some(self.total));
    }
}

/// Advances lanes in turn until one is finished, and solves that one.
struct Turn<'t, 'l, 's, E, T> {
    lanes: &'l mut [Lane<'s, E>],
    band: &'l mut Band<T>,
    task: &'l Task<'t, E>,
    counts: &'l mut Vec<u32>,
    finished: &'l mut Option<usize>,
}

impl<E: Gatherable, T: Total> Job for Turn<'_, '_, '_, E, T> {
    #[inline(always)]
    fn run<I: Isa>(mut self, _: I) {
        let finished = match self.lanes.len() {
            1 => self.in_turn::<1>(),
            2 => self.in_turn::<2>(),
            3 => self.in_turn::<3>(),
            _ => self.in_turn::<LANES>(),
        };
        if let Some(number) = finished {
            self.lanes[number].finish(self.band, self.task.bits);
        }
        *self.finished = finished;
    }
}

impl<E: Gatherable, T: Total> Turn<'_, '_, '_, E, T> {
    /// Takes one step of each lane in turn until one has no equation left. Returns its number.
    #[inline(always)]
    fn in_turn<const N: usize>(&mut self) -> Option<usize> {
        let source = self.task.source;
        let lanes = self.lanes.first_chunk_mut::<N>()?;
        let mut band = self.band.rows();
        // Separate arrays, so that they stay in registers.
        let (mut rows, mut coefficients, mut totals) = ([0; N], [0; N], [T::default(); N]);
        for number in 0..N {
            let Some(first) = lanes[number].advance(source, self.counts) else {
                lanes[..number].iter_mut().for_each(Lane::go_back);
                return Some(number);
            };
            (rows[number], coefficients[number], totals[number]) = first.apart();
        }
        loop {
            for number in 0..N {
                let row = rows[number];
                let left = band.step(row, coefficients[number]);
                if left.goes_on() {
                    totals[number] ^= band.totals[row];
                    rows[number] = row + left.zeros as usize;
                    coefficients[number] = left.coefficients;
                    continue;
                }
                let (coefficient, total) = (coefficients[number], totals[number]);
                let moving = Moving { row, coefficients: coefficient, total };
                let lane = &mut lanes[number];
                let free = left.was_free();
                let Some(next) = lane.settle(free, moving, band.lent(), source, self.counts) else {
                    let others = lanes.iter_mut().enumerate().filter(|(other, _)| *other != number);
                    others.for_each(|(_, lane)| lane.go_back());
                    return Some(number);
                };
                (rows[number], coefficients[number], totals[number]) = next.apart();
            }
        }
    }
}
