//! `umbel info` and `umbel verify`: what a file holds, and whether it is whole.

use crate::amount::{show_bytes, show_count, show_rate};
use crate::change::load;
use crate::cli::{Info, Verify};
use crate::output::{note, print, shown, told};
use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::path::Path;
use umbel::any::AnyFilter;
use umbel::format::{Header, OpenError};
use umbel::hash::Kind;
use umbel::layout::Plan;
use umbel::window::Window;

/// Whether all files could be read.
pub(crate) fn run(args: Info) -> Result<bool> {
    let (mut all, mut between) = (true, "");
    for path in &args.files {
        let facts = match facts(path) {
            Ok(facts) => facts,
            Err(error) => {
                all = false;
                note(&told(&error));
                continue;
            }
        };
        if args.json {
            print(format!("{}\n", Value::Object(facts)))?;
            continue;
        }
        let mut page = String::from(between);
        for (name, fact) in &facts {
            writeln!(page, "{:<17} {}", name.replace('_', " "), text(name, fact))?;
        }
        print(page)?;
        between = "\n";
    }
    Ok(all)
}

/// A fact for people.
fn text(name: &str, fact: &Value) -> String {
    match (name, fact) {
        ("rate_now" | "rate_planned", Value::Number(rate)) => {
            show_rate(rate.as_f64().unwrap_or_default())
        }
        ("bytes", Value::Number(bytes)) => show_bytes(bytes.as_u64().unwrap_or_default()),
        (_, Value::Number(number)) if number.is_u64() => {
            show_count(number.as_u64().unwrap_or_default())
        }
        ("fill" | "load", Value::Number(share)) => {
            format!("{:.1}%", share.as_f64().unwrap_or_default() * 100.0)
        }
        (_, Value::String(text)) => shown(text.as_bytes()),
        (_, Value::Bool(yes)) => if *yes { "yes" } else { "no" }.to_owned(),
        (_, other) => other.to_string(),
    }
}

/// All that can be said of a file. Loading it has checked every checksum.
fn facts(path: &Path) -> Result<Map<String, Value>> {
    #[cfg(feature = "redis")]
    if crate::remote::is_remote(path) {
        return facts_of_server(&crate::remote::Address::of(path)?);
    }
    let header = Header::read(path).with_context(|| path.display().to_string())?;
    let filter = load(path)?;
    let keys = match filter.hasher().keys() {
        Kind::Words => "integers of up to 64 bits",
        Kind::Wide => "integers of 128 bits",
        Kind::Plain4 | Kind::Plain8 => "Parquet's numbers",
        _ => "bytes",
    };
    let mut facts = Map::new();
    let mut add = |name: &str, fact: Value| _ = facts.insert(name.into(), fact);
    add("file", json!(path.display().to_string()));
    add("family", json!(filter.family()));
    add("format", json!(1));
    add("hash", json!(filter.hasher().name()));
    add("secret_in_file", json!(header.has_secret()));
    add("keys", json!(keys));
    add("bytes", json!(filter.bytes()));
    if let Some(insertions) = header.insertions() {
        add("insertions", json!(insertions));
    }
    add_shape(&filter, &mut add);
    add("rate_now", json!(filter.expected_rate()));
    add("checksums", json!("match"));
    Ok(facts)
}

/// The same of a filter on a server, which is copied to see what is in it.
#[cfg(feature = "redis")]
fn facts_of_server(address: &crate::remote::Address) -> Result<Map<String, Value>> {
    let remote = crate::remote::Remote::open(address)?;
    let filter = remote.download()?;
    let mut facts = Map::new();
    let mut add = |name: &str, fact: Value| _ = facts.insert(name.into(), fact);
    add("server", json!(remote.address().to_string()));
    add("family", json!(filter.family()));
    add("hash", json!(remote.hash()));
    add("shards", json!(remote.shared().shards()));
    add("generation", json!(remote.shared().generation()));
    add("bytes", json!(filter.bytes()));
    add_shape(&filter, &mut add);
    add("rate_now", json!(filter.expected_rate()));
    Ok(facts)
}

/// What only filters of this family have.
fn add_shape(filter: &AnyFilter, add: &mut impl FnMut(&str, Value)) {
    match filter {
        AnyFilter::Bloom(filter) => {
            bloom(filter.shape(), filter.count_ones(), filter.estimated_len(), add)
        }
        AnyFilter::Blocked(filter) => {
            bloom(filter.shape(), filter.count_ones(), filter.estimated_len(), add);
            add("lines_per_key", json!(filter.shape().lines_per_key()));
        }
        AnyFilter::Split(filter) => {
            bloom(filter.shape(), filter.count_ones(), filter.estimated_len(), add)
        }
        AnyFilter::Counting(filter) => {
            let shape = filter.shape();
            planned(shape.items(), filter.estimated_len(), add);
            add("cells", json!(shape.cells()));
            add("bits_per_cell", json!(shape.width().bits()));
            add("probes", json!(shape.probes()));
        }
        AnyFilter::BlockedCounting(filter) => {
            let shape = filter.shape();
            planned(shape.items(), filter.estimated_len(), add);
            add("cells", json!(shape.bits()));
            add("probes", json!(shape.probes()));
        }
        AnyFilter::Scalable(filter) => {
            add("levels", json!(filter.levels().len()));
            add("keys_estimated", json!(filter.estimated_len()));
            add("rate_planned", json!(filter.shape().rate()));
        }
        AnyFilter::Stable(filter) => {
            add("cells", json!(filter.shape().cells()));
            add("bits_per_cell", json!(filter.shape().width()));
            add("probes", json!(filter.shape().probes()));
            add("decrements", json!(filter.shape().decrements()));
        }
        AnyFilter::Window(filter) => {
            match filter.shape().window() {
                Window::Insertions(number) => add("window_insertions", json!(number)),
                Window::Time(time) => add("window_seconds", json!(time.as_secs_f64())),
            }
            add("epochs", json!(filter.shape().epochs()));
            add("probes", json!(filter.shape().probes()));
        }
        AnyFilter::Cuckoo(filter) => {
            planned(filter.shape().items(), filter.len(), add);
            add("capacity_left", json!(filter.shape().room().saturating_sub(filter.len())));
            add("load", json!(filter.load()));
            add("fingerprint_bits", json!(filter.shape().fingerprint_bits()));
        }
        AnyFilter::Quotient(filter) => {
            planned(filter.shape().items(), filter.len(), add);
            add("capacity_left", json!(filter.capacity().saturating_sub(filter.len())));
            add("load", json!(filter.load()));
            add("remainder_bits", json!(filter.shape().remainder_bits()));
        }
        AnyFilter::Xor(filter) => frozen(filter.len(), filter.shape().bits(), add),
        AnyFilter::Fuse(filter) => frozen(filter.len(), filter.shape().bits(), add),
        AnyFilter::Fuse4(filter) => frozen(filter.len(), filter.shape().bits(), add),
        AnyFilter::Ribbon(filter) => {
            frozen(filter.len(), umbel::frozen::Drawing::bits(filter.shape()), add);
        }
        _ => {}
    }
}

fn planned(items: u64, now: u64, add: &mut impl FnMut(&str, Value)) {
    add("keys_planned", json!(items));
    add("keys_estimated", json!(now));
}

fn bloom(shape: &impl Plan, ones: u64, now: u64, add: &mut impl FnMut(&str, Value)) {
    planned(shape.items(), now, add);
    add("capacity_left", json!(shape.items().saturating_sub(now)));
    add("bits", json!(shape.bits()));
    add("probes", json!(shape.probes()));
    add("fill", json!(ones as f64 / shape.bits() as f64));
}

fn frozen(keys: u64, bits: u32, add: &mut impl FnMut(&str, Value)) {
    add("keys_in_it", json!(keys));
    add("bits_per_entry", json!(bits));
}

/// The exit status: 0 if all files are whole, 1 if one is damaged, 2 if one cannot be read.
pub(crate) fn verify(args: Verify) -> Result<u8> {
    let mut status = 0;
    for path in &args.files {
        match load(path) {
            Ok(filter) if !args.quiet => {
                let (family, bytes) = (filter.family(), show_bytes(filter.bytes()));
                let name = path.display().to_string();
                print(format!("{}: whole, {family}, {bytes}\n", shown(name.as_bytes())))?;
            }
            Ok(_) => {}
            Err(error) => {
                let damaged = matches!(error.downcast_ref(), Some(OpenError::Invalid(_)));
                status = status.max(if damaged { 1 } else { 2 });
                note(&told(&error));
            }
        }
    }
    Ok(status)
}
