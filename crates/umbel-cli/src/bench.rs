//! `umbel bench`: speed and rate on the user's own keys.

use crate::amount::{show_bytes, show_count, show_rate};
use crate::build::distinct;
use crate::cli::{Bench, FamilyChoice, Form};
use crate::output::print;
use crate::outputs::{Output, are_apart, stdout_is_apart};
use crate::progress::Progress;
use crate::reading::{Batch, Reader, read};
use anyhow::{Result, bail};
use clap::ValueEnum;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;
use umbel::any::{AnyFilter, AnyHasher};
use umbel::frozen;
use umbel::hash::{Digest, Digester};

/// How many keys that are in the filter are looked up, and how many that are not: enough to measure a rate with some confidence.
const LOOK_UPS: usize = 1 << 22;
/// Keys that are handed over together.
const BATCH: usize = 4096;
/// The bytes of keys that are kept to measure how long hashing takes.
const KEPT: usize = 8 << 20;
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

/// What is measured with.
struct Keys {
    different: u64,
    /// In another order than their own, and as many as are looked up.
    present: Vec<Digest>,
    absent: Vec<Digest>,
    /// Nanoseconds to hash one, and how many bytes one has.
    hashing: f64,
    length: f64,
}

/// Whether all rates were right.
pub(crate) fn run(args: Bench) -> Result<bool> {
    crate::input::look_for(&args.files)?;
    let bad = [Output::of("--bad", args.records.bad.as_ref())];
    are_apart(bad, &args.files, "name another file")?;
    stdout_is_apart(bad, &args.files)?;
    let hasher = args.hash.hasher(0);
    let progress = Progress::alone();
    let mut all = All { hasher, digests: Vec::new(), kept: Vec::new(), ends: Vec::new() };
    let counts = read(args.files.clone(), &args.records, &progress, &mut all)?;
    if all.digests.is_empty() {
        bail!(
            "there are no keys to measure with: name a file of keys, or write them to standard input"
        );
    }
    let (hashing, length) = all.hashing();
    let mut digests = distinct(all.digests);
    let families =
        if args.family.is_empty() { FamilyChoice::value_variants() } else { &args.family };
    // Other digests: the halves of the hash are independent, so that any others will do.
    let absent: Vec<Digest> = (0..)
        .map(|number: u64| Digest::mixed(number ^ 0x5bd1_e995_9e37_79b9))
        .filter(|digest| digests.binary_search(digest).is_err())
        .take(LOOK_UPS)
        .collect();
    // Keys in the order of their digests would be looked up faster than others are.
    digests.sort_unstable_by_key(|digest| Digest::mixed(digest.bits()));
    let present = digests.iter().copied().cycle().take(LOOK_UPS).collect();
    let keys = Keys { different: digests.len() as u64, present, absent, hashing, length };
    let mut rows = Vec::new();
    for (number, family) in families.iter().enumerate() {
        let of = format!("{} ({} of {})", family.name(), number + 1, families.len());
        progress.work("measuring", None, &of);
        rows.push(measure(*family, args.rate, hasher, &digests, &keys)?);
    }
    progress.done();
    if args.report == Form::Json {
        let rows: Vec<Value> = rows.iter().map(json_of).collect();
        let report = json!({
            "keys": keys.different,
            "skipped": counts.skipped,
            "key_bytes": keys.length,
            "look_ups": LOOK_UPS,
            "hashing_nanoseconds": keys.hashing,
            "asked_rate": args.rate,
            "families": rows,
        });
        print(format!("{report:#}\n"))?;
    } else {
        print(table(&rows, args.rate, &keys)?)?;
    }
    Ok(rows.iter().all(|row| row.good))
}

/// All digests, and the first keys.
struct All {
    hasher: AnyHasher,
    digests: Vec<Digest>,
    kept: Vec<u8>,
    ends: Vec<usize>,
}

impl Reader for All {
    fn batch(&mut self, batch: &Batch<'_>) -> Result<bool> {
        if self.digests.try_reserve(batch.len()).is_err() {
            bail!(
                "there is not enough memory for more than {} keys",
                show_count(self.digests.len() as u64)
            );
        }
        batch.add_digests(&self.hasher, &mut self.digests);
        if self.kept.len() < KEPT {
            batch.for_keys(|key| {
                self.kept.extend_from_slice(key);
                self.ends.push(self.kept.len());
            });
        }
        Ok(true)
    }
}

impl All {
    /// Nanoseconds to hash one of the first keys, and how many bytes they have.
    fn hashing(&self) -> (f64, f64) {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let ranges: Vec<Range<usize>> =
            starts.zip(&self.ends).map(|(start, end)| start..*end).collect();
        let start = Instant::now();
        for range in ranges.iter().cycle().take(LOOK_UPS) {
            black_box(self.hasher.digest(&self.kept[range.clone()]));
        }
        (nanos(start, LOOK_UPS), self.kept.len() as f64 / ranges.len() as f64)
    }
}

fn measure(
    family: FamilyChoice,
    rate: f64,
    hasher: AnyHasher,
    digests: &[Digest],
    keys: &Keys,
) -> Result<Row> {
    let start = Instant::now();
    let filter = if family.is_static() {
        family.of_set(frozen::Build::with_hasher(rate, hasher), digests.iter().copied())?
    } else {
        let mut filter = family.empty(digests.len() as u64, rate, hasher)?;
        let mut fresh = vec![false; BATCH];
        for some in digests.chunks(fresh.len()) {
            filter.insert_digests(some, &mut fresh[..some.len()])?;
        }
        filter
    };
    let build = nanos(start, digests.len());
    let (_, found) = ask(&filter, digests);
    if found != digests.len() {
        let lost = show_count((digests.len() - found) as u64);
        bail!(
            "the {} filter does not find {lost} of its keys: please report this error",
            filter.family()
        );
    }
    // After this the filter is as much in the cache for the ones as for the others.
    let (present, _) = ask(&filter, &keys.present);
    let (absent, wrong) = ask(&filter, &keys.absent);
    let (count, expected) = (keys.absent.len() as f64, filter.expected_rate());
    let measured = wrong as f64 / count;
    let outline = family.outline(digests.len() as u64, rate)?;
    let planned = outline.expected_rate(digests.len() as u64).unwrap_or(1.0);
    Ok(Row {
        family: filter.family(),
        bytes: filter.bytes(),
        build,
        present,
        absent,
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
    let (mut found, mut answers, start) = (0, [false; BATCH], Instant::now());
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

fn table(rows: &[Row], rate: f64, keys: &Keys) -> Result<String> {
    let mut output = String::new();
    let sizes = rows.iter().map(|row| {
        (format!("{:.2}", row.bytes as f64 * 8.0 / keys.different as f64), show_bytes(row.bytes))
    });
    let mut cells: Vec<Vec<String>> = vec![
        [
            "family",
            "bits/key",
            "size",
            "build",
            "present",
            "absent",
            "expected",
            "measured",
            "95 % confidence",
            "",
        ]
        .map(str::to_owned)
        .into(),
    ];
    for (row, (bits, size)) in rows.iter().zip(sizes) {
        let time = |nanos: f64| format!("{nanos:.1}");
        let off = if row.good { "" } else { "OFF" };
        cells.push(vec![
            row.family.to_owned(),
            bits,
            size,
            time(row.build),
            time(row.present),
            time(row.absent),
            show_rate(row.expected),
            show_rate(row.measured),
            format!("{} to {}", show_rate(row.interval[0]), show_rate(row.interval[1])),
            off.to_owned(),
        ]);
    }
    writeln!(
        output,
        "{} different keys of {:.1} bytes, planned for a false positive rate of {}",
        show_count(keys.different),
        keys.length,
        show_rate(rate)
    )?;
    writeln!(
        output,
        "hashing: {:.1} ns per key; build, present, absent: ns per key without hashing, in batches of {}",
        keys.hashing,
        show_count(BATCH as u64)
    )?;
    writeln!(
        output,
        "look-ups: {} of keys that are in the filter, and as many of absent keys\n",
        show_count(LOOK_UPS as u64)
    )?;
    let widths: Vec<usize> = (0..cells[0].len())
        .map(|column| cells.iter().map(|row| row[column].len()).max().unwrap_or(0))
        .collect();
    for row in &cells {
        let mut line = format!("{:<1$}", row[0], widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            write!(line, "  {cell:>width$}")?;
        }
        writeln!(output, "{}", line.trim_end())?;
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
