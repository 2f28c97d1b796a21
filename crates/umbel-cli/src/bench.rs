//! `umbel bench`: speed and rate on the user's own keys.

use crate::amount::{show_bytes, show_count, show_rate};
use crate::build::{digests_of, distinct};
use crate::cli::{Bench, FamilyChoice, Form};
use crate::output::print;
use crate::progress::Progress;
use anyhow::{Result, bail};
use clap::ValueEnum;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;
use umbel::any::{AnyFilter, AnyHasher};
use umbel::frozen;
use umbel::hash::Digest;

/// Keys that are not there, at least, so that a rate is measured with some confidence.
const ABSENT: u64 = 1 << 22;
/// How many standard deviations a measured rate may be off.
const SIGMAS: f64 = 5.0;

/// One family on these keys.
struct Row {
    family: &'static str,
    bytes: u64,
    build: f64,
    present: f64,
    absent: f64,
    expected: f64,
    measured: f64,
    /// The interval that holds the true rate 95 times in 100.
    interval: [f64; 2],
    good: bool,
}

/// Whether all rates were right.
pub(crate) fn run(args: Bench) -> Result<bool> {
    let hasher = args.hash.hasher(0);
    let progress = Progress::new(true);
    let mut digests = distinct(digests_of(&args.files, &args.records, hasher, &progress)?);
    if digests.is_empty() {
        bail!("there are no keys to measure with");
    }
    let families =
        if args.family.is_empty() { FamilyChoice::value_variants() } else { &args.family };
    // Digests of nobody's: the halves of the hash are independent, so any others will do.
    let absent: Vec<Digest> = (0..ABSENT)
        .map(|number| Digest::mixed(number ^ 0x5bd1_e995_9e37_79b9))
        .filter(|digest| digests.binary_search(digest).is_err())
        .collect();
    // The order of the keys is theirs no more, so give them another.
    digests.sort_unstable_by_key(|digest| Digest::mixed(digest.bits()));
    let mut rows = Vec::new();
    for family in families {
        rows.push(measure(*family, args.rate, hasher, &digests, &absent)?);
    }
    if args.report == Form::Json {
        let rows: Vec<Value> = rows.iter().map(json_of).collect();
        let report = json!({ "keys": digests.len(), "asked_rate": args.rate, "families": rows });
        print(format!("{report:#}\n"))?;
    } else {
        print(table(&rows, digests.len() as u64)?)?;
    }
    Ok(rows.iter().all(|row| row.good))
}

fn measure(
    family: FamilyChoice,
    rate: f64,
    hasher: AnyHasher,
    digests: &[Digest],
    absent: &[Digest],
) -> Result<Row> {
    let start = Instant::now();
    let filter = if family.is_static() {
        family.of_set(frozen::Build::with_hasher(rate, hasher), digests.iter().copied())?
    } else {
        let mut filter = family.empty(digests.len() as u64, rate, hasher)?;
        let mut fresh = vec![false; 4096];
        for some in digests.chunks(fresh.len()) {
            filter.insert_digests(some, &mut fresh[..some.len()])?;
        }
        filter
    };
    let build = nanos(start, digests.len());
    let (present, found) = ask(&filter, digests);
    if found != digests.len() {
        bail!("{}: {} keys are not found", filter.family(), digests.len() - found);
    }
    let (absent_nanos, wrong) = ask(&filter, absent);
    let (count, expected) = (absent.len() as f64, filter.expected_rate());
    let measured = wrong as f64 / count;
    let outline = family.outline(digests.len() as u64, rate)?;
    let planned = outline.expected_rate(digests.len() as u64).unwrap_or(1.0);
    Ok(Row {
        family: filter.family(),
        bytes: filter.bytes(),
        build,
        present,
        absent: absent_nanos,
        expected,
        measured,
        interval: wilson(measured, count),
        // What was asked for must be what was planned, and what the filter says of itself must hold.
        good: planned <= rate * 1.000_001 && holds(expected, measured, count),
    })
}

/// Whether so many absent keys can have shown this rate.
fn holds(expected: f64, measured: f64, count: f64) -> bool {
    let sigma = (expected * (1.0 - expected) / count).sqrt();
    (measured - expected).abs() <= SIGMAS * sigma + 1.0 / count
}

/// The interval of Wilson (1927) for 95 %.
fn wilson(share: f64, count: f64) -> [f64; 2] {
    const Z: f64 = 1.96;
    let middle = share + Z * Z / (2.0 * count);
    let half = Z * (share * (1.0 - share) / count + Z * Z / (4.0 * count * count)).sqrt();
    let scale = 1.0 + Z * Z / count;
    [((middle - half) / scale).max(0.0), (middle + half) / scale]
}

/// Nanoseconds a key, and how many were found.
fn ask(filter: &AnyFilter, digests: &[Digest]) -> (f64, usize) {
    let (mut found, mut answers, start) = (0, [false; 4096], Instant::now());
    for some in digests.chunks(answers.len()) {
        let answers = &mut answers[..some.len()];
        filter.contains_digests(some, answers);
        found += black_box(&*answers).iter().filter(|found| **found).count();
    }
    (nanos(start, digests.len()), found)
}

fn nanos(start: Instant, keys: usize) -> f64 {
    start.elapsed().as_secs_f64() * 1e9 / keys as f64
}

fn json_of(row: &Row) -> Value {
    json!({
        "family": row.family,
        "bytes": row.bytes,
        "build_nanoseconds": row.build,
        "present_nanoseconds": row.present,
        "absent_nanoseconds": row.absent,
        "expected_rate": row.expected,
        "measured_rate": row.measured,
        "interval": row.interval,
        "good": row.good,
    })
}

fn table(rows: &[Row], keys: u64) -> Result<String> {
    let mut output = String::new();
    writeln!(output, "{} different keys; nanoseconds a key, in batches", show_count(keys))?;
    writeln!(
        output,
        "{:<17}{:>9}{:>12}{:>8}{:>9}{:>8}{:>18}{:>18}  95 % sure",
        "family", "bits/key", "size", "build", "present", "absent", "rate", "measured"
    )?;
    for row in rows {
        let [low, high] = row.interval.map(show_rate);
        writeln!(
            output,
            "{:<17}{:>9.2}{:>12}{:>8.1}{:>9.1}{:>8.1}{:>18}{:>18}  {low} to {high}{}",
            row.family,
            row.bytes as f64 * 8.0 / keys as f64,
            show_bytes(row.bytes),
            row.build,
            row.present,
            row.absent,
            show_rate(row.expected),
            show_rate(row.measured),
            if row.good { "" } else { "  OFF" },
        )?;
    }
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_that_are_off_are_noticed_in_both_directions() {
        // Ten thousand of a million at 1 %, with a standard deviation of 99.5.
        for (wrong, good) in
            [(10_000, true), (10_490, true), (9_510, true), (10_510, false), (9_490, false)]
        {
            assert_eq!(holds(0.01, f64::from(wrong) / 1e6, 1e6), good, "{wrong}");
        }
        assert!(holds(0.0, 0.0, 1e6) && holds(1e-9, 1e-6, 1e6) && !holds(1e-9, 3e-6, 1e6));
    }

    #[test]
    fn the_interval_is_wilsons() {
        // Of 10 in 100: Newcombe (1998), method 3.
        let [low, high] = wilson(0.1, 100.0);
        assert!((low - 0.0552).abs() < 5e-5 && (high - 0.1744).abs() < 5e-5, "{low} {high}");
        assert_eq!(wilson(0.0, 100.0)[0], 0.0);
    }
}
