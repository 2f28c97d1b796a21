//! Checks the false positive rate of static filters: 2 to minus their bits, within five standard deviations,
//! for any number of keys.
//!
//! Tests do the same for few keys. This command uses many keys, in the release build.

use crate::{
    Failure,
    args::RatesArgs,
    keys::{Queries, Workload},
    machine::Machine,
    number::short,
    registry::{Kind, Registry},
    report::{self, Columns},
};
use serde::Serialize;

/// The filters.
const NAMES: [&str; 4] = ["umbel xor", "umbel fuse", "umbel fuse, 4", "umbel ribbon"];

/// A larger distance from the expected rate, in standard deviations, is a failure. Chance causes one in two
/// million runs.
const SIGMAS: f64 = 5.0;

/// Keys of a batch.
const BATCH: usize = 1024;

/// The measured false positive rate of a filter.
#[derive(Debug, Serialize)]
struct Outcome {
    name: &'static str,
    items: u64,
    bits: u32,
    queries: usize,
    hits: usize,
    /// The distance from the expected rate, in standard deviations.
    sigmas: f64,
}

impl Outcome {
    fn is_as_expected(&self) -> bool {
        self.sigmas.abs() <= SIGMAS
    }
}

#[derive(Serialize)]
struct Report<'a> {
    mode: &'static str,
    machine: &'a Machine,
    rates: Vec<Outcome>,
}

/// `umbel-bench rates`. Returns whether all rates are as expected.
pub(crate) fn run(args: RatesArgs) -> Result<bool, Failure> {
    let machine = &Machine::new(args.output.date);
    let columns = Columns::new(&["filter", "keys", "bits", "queries", "hits", "sigmas", "met"])
        .left(1)
        .widths(&[13, 5, 4, 8, 8, 6, 3]);
    if !args.output.json {
        report::line(&machine.summary())?;
        report::line(&columns.header())?;
    }
    let mut outcomes = Vec::new();
    for items in args.items {
        let work = Workload::<u64>::new(items, Queries { least: args.queries, most: args.queries });
        for &bits in &args.bits {
            for name in NAMES {
                let outcome = measure(name, &work, bits)?;
                if !args.output.json {
                    report::line(&columns.row(&cells(&outcome)))?;
                }
                outcomes.push(outcome);
            }
        }
    }
    let all = outcomes.iter().all(Outcome::is_as_expected);
    if args.output.json {
        report::json(&Report { mode: "rates", machine, rates: outcomes })?;
    }
    Ok(all)
}

fn cells(outcome: &Outcome) -> [String; 7] {
    let Outcome { name, items, bits, queries, hits, sigmas } = *outcome;
    [
        name.into(),
        short(items),
        bits.to_string(),
        short(queries as u64),
        hits.to_string(),
        format!("{sigmas:+.2}"),
        if outcome.is_as_expected() { "yes" } else { "NO" }.into(),
    ]
}

/// Builds a filter with `bits` bits per key, finds all its keys, and counts the false positives among absent
/// keys.
fn measure(name: &'static str, work: &Workload<u64>, bits: u32) -> Result<Outcome, Failure> {
    let rate = 1.0 / (1_u64 << bits) as f64;
    let mut lane = u64::lane(Registry::all().find(name)?, rate);
    lane.build(&work.keys);
    let found = lane.look_up_batch(&work.keys, BATCH).hits;
    if found != work.keys.len() {
        return Err(format!("{name} has lost {} keys", work.keys.len() - found).into());
    }
    let (queries, hits) = (work.absent.len(), lane.look_up_batch(&work.absent, BATCH).hits);
    Ok(Outcome {
        name,
        items: work.keys.len() as u64,
        bits,
        queries,
        hits,
        sigmas: sigmas(hits, queries, rate),
    })
}

/// The distance of `hits` from the mean of a binomial distribution, in standard deviations.
fn sigmas(hits: usize, queries: usize, rate: f64) -> f64 {
    let mean = queries as f64 * rate;
    (hits as f64 - mean) / (mean * (1.0 - rate)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_are_those_of_a_binomial_distribution() {
        assert_eq!(sigmas(100, 200, 0.5), 0.0);
        // 10,000 coins: the mean is 5,000, the deviation 50.
        assert_eq!(sigmas(5_250, 10_000, 0.5), 5.0);
        assert_eq!(sigmas(4_700, 10_000, 0.5), -6.0);
    }

    #[test]
    fn all_filters_are_as_often_wrong_as_they_say() {
        let work = Workload::<u64>::new(3_000, Queries { least: 500_000, most: 500_000 });
        for name in NAMES {
            for bits in [1, 8] {
                let outcome = measure(name, &work, bits).unwrap();
                assert!(outcome.is_as_expected(), "{outcome:?}");
                assert_eq!((outcome.items, outcome.queries), (3_000, 500_000));
            }
        }
        let wrong = Outcome {
            name: NAMES[0],
            items: 1,
            bits: 1,
            queries: 10_000,
            hits: 4_700,
            sigmas: sigmas(4_700, 10_000, 0.5),
        };
        assert!(!wrong.is_as_expected());
    }
}
