//! Records of several attributes in stable filters: created, filled and queried, as one measurement.
//!
//! Ours is a [`MultiBloomFilter`] of arrays that the compiler planned. The peer's is one `bloom-filters` filter
//! per attribute, side by side. Both sides have 730 cells of 3 bits per attribute, insert the same records, and
//! look up each of them and the same number of other records.

use crate::{
    Failure,
    args::MultiArgs,
    clock,
    keys::splitmix64,
    machine::Machine,
    report::{self, Columns},
    stats::{Quartiles, median},
};
use bloom_filters::{BloomFilter, DefaultBuildHashKernels, StableBloomFilter};
use foldhash::fast::RandomState;
use serde::Serialize;
use std::{array, hint::black_box};
use umbel::{
    MultiBloomFilter,
    multi::Multi,
    stable::{ArrayStableBloomFilter, Shape, words_for},
};

const CELLS: u64 = 730;
const CELL_BITS: u32 = 3;

type Axis = ArrayStableBloomFilter<u64, { words_for(CELLS, CELL_BITS) }>;
type Peer = StableBloomFilter<DefaultBuildHashKernels<RandomState>>;

/// A rate, and the shape that the compiler made for it.
#[derive(Clone, Copy)]
struct Plan {
    rate: f64,
    shape: Shape,
}

const fn plan(rate: f64) -> Plan {
    match Shape::for_cells(CELLS, CELL_BITS, rate) {
        Ok(shape) => Plan { rate, shape },
        Err(_) => panic!("there is no such filter"),
    }
}

const PLANS: [Plan; 4] = [const { plan(0.3) }, const { plan(0.1) }, BAR, const { plan(0.003) }];

/// The bar: seven records of three attributes at this rate, at most this much of the peer's time.
const BAR: Plan = const { plan(0.03) };
const BAR_RECORDS: usize = 7;
const AT_MOST: f64 = 0.1;

/// The numbers of records.
const SIZES: [usize; 3] = [10, 100, 200];

/// One line of the table.
#[derive(Debug, Serialize)]
struct Row {
    attributes: usize,
    records: usize,
    rate: f64,
    /// Our nanoseconds from nothing to the last answer, median.
    ours: f64,
    /// The peer's.
    peer: f64,
    /// Our time divided by the peer's, by rounds.
    ratio: Quartiles,
}

#[derive(Serialize)]
struct Report<'a> {
    mode: &'static str,
    machine: &'a Machine,
    rounds: usize,
    at_most: f64,
    met: bool,
    bar: &'a Row,
    table: &'a [Row],
}

/// Records to insert, and the same number of other records.
struct Records<const N: usize> {
    inserted: Vec<[u64; N]>,
    others: Vec<[u64; N]>,
}

impl<const N: usize> Records<N> {
    fn new(records: usize) -> Self {
        let record = |index: usize| array::from_fn(|at| splitmix64((index * N + at) as u64));
        let inserted = (0..records).map(record).collect();
        Self { inserted, others: (records..2 * records).map(record).collect() }
    }

    fn asked(&self) -> impl Iterator<Item = &[u64; N]> {
        self.inserted.iter().chain(&self.others)
    }

    /// Our side; returns the number of records that were found.
    fn ours(&self, shape: Shape) -> usize {
        let mut filter: MultiBloomFilter<Axis, N> = Multi::of([(); N].map(|()| Axis::of(shape)));
        for record in &self.inserted {
            filter.insert(record.each_ref()).expect("a stable filter is never full");
        }
        self.asked().filter(|record| filter.contains(record.each_ref())).count()
    }

    /// The peer's side; returns the number of records that were found.
    fn peer(&self, rate: f64) -> usize {
        let mut filters: [Peer; N] = array::from_fn(|at| {
            let kernels = DefaultBuildHashKernels::new(at, RandomState::default());
            Peer::new(CELLS as usize, CELL_BITS as u8, rate, kernels)
        });
        for record in &self.inserted {
            filters.iter_mut().zip(record).for_each(|(filter, key)| filter.insert(key));
        }
        let found = |record: &&[u64; N]| {
            filters.iter().zip(*record).all(|(filter, key)| filter.contains(key))
        };
        self.asked().filter(found).count()
    }
}

/// Both sides, round by round; the side that goes first alternates.
fn measure<const N: usize>(plan: Plan, records: usize, rounds: usize) -> Row {
    let work = Records::<N>::new(records);
    // A few microseconds are too short for the clock.
    let repeats = 4_000 / records;
    let ours = || {
        clock::time(|| (0..repeats).for_each(|_| _ = black_box(work.ours(black_box(plan.shape)))))
    };
    let peer = || {
        clock::time(|| (0..repeats).for_each(|_| _ = black_box(work.peer(black_box(plan.rate)))))
    };
    let (mut our_times, mut peer_times) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let (our_time, peer_time) = if round % 2 == 0 {
            let first = ours().0;
            (first, peer().0)
        } else {
            let first = peer().0;
            (ours().0, first)
        };
        our_times.push(our_time / repeats as f64);
        peer_times.push(peer_time / repeats as f64);
    }
    Row {
        attributes: N,
        records,
        rate: plan.rate,
        ours: median(&our_times).expect("there were rounds"),
        peer: median(&peer_times).expect("there were rounds"),
        ratio: Quartiles::of_ratios(&our_times, &peer_times),
    }
}

/// `umbel-bench multi`. Returns whether the bar was met.
pub(crate) fn run(args: MultiArgs) -> Result<bool, Failure> {
    let machine = &Machine::new(args.output.date);
    let rounds = args.rounds;
    let columns = Columns::new(&[
        "attributes",
        "records",
        "rate",
        "ours ns",
        "peer ns",
        "ratio",
        "quartiles",
    ])
    .widths(&[10, 7, 5, 8, 9, 6, 13]);
    let print = |row: &Row| {
        if args.output.json {
            return Ok(());
        }
        report::line(&columns.row(&[
            row.attributes.to_string(),
            row.records.to_string(),
            row.rate.to_string(),
            format!("{:.0}", row.ours),
            format!("{:.0}", row.peer),
            format!("{:.3}", row.ratio.median),
            report::quartiles(&row.ratio),
        ]))
    };
    let bar = measure::<3>(BAR, BAR_RECORDS, rounds);
    let met = bar.ratio.median <= AT_MOST;
    if !args.output.json {
        report::line(&machine.summary())?;
        report::line(&format!(
            "{rounds} rounds, made, filled and asked; ratios ours / bloom-filters stable"
        ))?;
        report::line(&columns.header())?;
        print(&bar)?;
        report::line(&format!("at most {AT_MOST}: {}", if met { "yes" } else { "NO" }))?;
    }
    let mut table = Vec::new();
    if !args.bar {
        for measure in [measure::<3>, measure::<5>, measure::<7>] {
            for (records, plan) in SIZES.iter().flat_map(|size| PLANS.map(|plan| (*size, plan))) {
                table.push(measure(plan, records, rounds));
                print(&table[table.len() - 1])?;
            }
        }
    }
    if args.output.json {
        report::json(&Report {
            mode: "multi",
            machine,
            rounds,
            at_most: AT_MOST,
            met,
            bar: &bar,
            table: &table,
        })?;
    }
    Ok(met)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_find_what_they_were_given_and_little_else() {
        for plan in PLANS {
            let work = Records::<3>::new(BAR_RECORDS);
            let few = BAR_RECORDS..=BAR_RECORDS + 2;
            assert!(few.contains(&work.ours(plan.shape)) && few.contains(&work.peer(plan.rate)));
            assert!(plan.shape.stable_rate() <= plan.rate);
        }
    }

    #[test]
    fn every_line_has_its_times() {
        let row = measure::<5>(BAR, 10, 3);
        assert!(row.ours > 0.0 && row.peer > 0.0 && row.ratio.median > 0.0);
    }
}
