//! `umbel guard replay`: what a filter would have saved of the look-ups in a log.

use super::cli::Replay;
use super::{LACKS, Task};
use crate::amount::{show_bytes, show_count, show_rate};
use crate::cli::Form;
use crate::output::{note, print};
use crate::progress::Progress;
use crate::reading::{Batch, Reader, read};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::fmt::Write as _;
use tokio::runtime::Handle;
use tokio::task::block_in_place;
use umbel::plan::AnyShape;
use umbel_guard::{DataSet, Guard, Local, State, Stats};

/// The rates that are compared with the one that was measured.
const RATES: [f64; 4] = [0.1, 0.01, 0.001, 0.0001];

pub(super) async fn run<D: DataSet>(set: D, task: &Task<'_>, args: &Replay) -> Result<bool> {
    let guard = task.guard(set).await?;
    // Compares all keys with the filter, so that the count of absent ones is exact, and builds another one if it lacks some.
    guard.tend().await;
    if guard.stats().audit_misses > 0 {
        note(LACKS);
    }
    if guard.state() != State::Active {
        bail!("{}: the filter could not be built; run guard attach", task.name());
    }
    guard.measure().await;
    let mut replayer = Replayer { guard };
    let progress = Progress::new(args.report == Form::Text);
    let counts =
        block_in_place(|| read(args.files.clone(), &args.records, &progress, &mut replayer))?;
    let set = replayer.guard.data_set();
    let mut scan = set.scan(None).await?;
    let keys = set.count(&mut scan).await?;
    drop(scan);
    let stats = replayer.guard.stats();
    replayer.guard.close().await.context("the filter")?;
    print(match args.report {
        Form::Json => format!("{}\n", object(&stats, keys, counts.skipped)),
        Form::Text => page(&stats, keys)?,
    })?;
    Ok(true)
}

struct Replayer<D: DataSet> {
    guard: Guard<D, Local>,
}

impl<D: DataSet> Reader for Replayer<D> {
    fn batch(&mut self, batch: &Batch<'_>) -> Result<bool> {
        let mut keys = Vec::new();
        batch.for_keys(|key| keys.push(key.to_vec()));
        for key in &keys {
            Handle::current().block_on(self.guard.get(key))?;
        }
        Ok(true)
    }
}

/// Look-ups of keys that are not there.
fn absent(stats: &Stats) -> u64 {
    stats.saved + stats.false_positives
}

/// What filters of other rates would take and save.
fn others(stats: &Stats, keys: u64) -> Vec<(f64, u64, u64)> {
    let outline = |rate: f64| {
        let outline = AnyShape::for_rate("blocked", keys.max(1), rate)?.ok()?;
        Some((rate, outline.bytes(), (absent(stats) as f64 * (1.0 - rate)).round() as u64))
    };
    RATES.into_iter().filter_map(outline).collect()
}

fn object(stats: &Stats, keys: u64, skipped: u64) -> Value {
    let others: Vec<Value> = others(stats, keys)
        .into_iter()
        .map(|(rate, bytes, saved)| json!({"rate": rate, "bytes": bytes, "saved": saved}))
        .collect();
    json!({
        "look_ups": stats.queries,
        "skipped": skipped,
        "absent": absent(stats),
        "saved": stats.saved,
        "false_positives": stats.false_positives,
        "rate": stats.measured.value(),
        "rate_low": stats.measured.low,
        "rate_high": stats.measured.high,
        "bytes": stats.filter.map(|filter| filter.bytes),
        "keys": keys,
        "others": others,
    })
}

fn page(stats: &Stats, keys: u64) -> Result<String> {
    let share = |number: u64| {
        let share = show_rate(number as f64 / stats.queries.max(1) as f64);
        format!("{} ({share})", show_count(number))
    };
    let mut page = String::new();
    let mut line = |name: &str, text: String| writeln!(page, "{name:<17} {text}");
    line("look-ups", show_count(stats.queries))?;
    line("of absent keys", share(absent(stats)))?;
    line("saved", share(stats.saved))?;
    line("false positives", show_count(stats.false_positives))?;
    let measured = &stats.measured;
    line(
        "rate",
        format!(
            "{} (between {} and {})",
            show_rate(measured.value()),
            show_rate(measured.low),
            show_rate(measured.high)
        ),
    )?;
    if let Some(filter) = stats.filter {
        line("memory", show_bytes(filter.bytes))?;
    }
    line("keys in the table", show_count(keys))?;
    writeln!(page, "\nfilters for as many keys:\n{:>10} {:>12} {:>14}", "rate", "memory", "saved")?;
    for (rate, bytes, saved) in others(stats, keys) {
        writeln!(
            page,
            "{:>10} {:>12} {:>14}",
            show_rate(rate),
            show_bytes(bytes),
            show_count(saved)
        )?;
    }
    Ok(page)
}
