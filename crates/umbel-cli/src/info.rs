//! `umbel info` and `umbel verify`: what a file holds, and whether it is whole.

use crate::amount::{show_bytes, show_count, show_rate};
use crate::change::{load, open};
use crate::cli::{Form, Info, Verify};
use crate::dedup::is_marked;
use crate::exact::{self, Saved};
use crate::input::{is_standard, not_on_a_server};
use crate::limit::Planned;
use crate::output::{print, shown, told, warn};
use crate::outputs::stdout_is_apart;
use crate::progress::Progress;
use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::path::Path;
use umbel::any::AnyFilter;
use umbel::format::OpenError;
use umbel::hash::Kind;
use umbel::raw::Any;
use umbel::window::Window;

/// Whether all files could be read.
pub(crate) fn run(args: &Info) -> Result<bool> {
    stdout_is_apart([], &args.files)?;
    let (mut all, mut between) = (true, "");
    for path in &args.files {
        let progress = Progress::alone();
        progress.work("reading", None, &path.display().to_string());
        let facts = facts(path);
        progress.done();
        let facts = match facts {
            Ok(facts) => facts,
            Err(error) => {
                all = false;
                warn(&told(&error));
                continue;
            }
        };
        if args.report.form() == Form::Json {
            print(format!("{}\n", Value::Object(facts)))?;
            continue;
        }
        let mut page = String::from(between);
        for (name, fact) in &facts {
            writeln!(page, "{:<17} {}", label(name), text(name, fact))?;
        }
        print(page)?;
        between = "\n";
    }
    Ok(all)
}

/// The name of a fact for people.
fn label(name: &str) -> String {
    match name {
        "keys" => "key type".to_owned(),
        "bytes" => "size".to_owned(),
        "lines_per_key" => "cache lines per look-up".to_owned(),
        _ => name.replace('_', " "),
    }
}

/// A fact for people.
fn text(name: &str, fact: &Value) -> String {
    match (name, fact) {
        ("rate_now" | "rate_planned" | "fill" | "load", Value::Number(rate)) => {
            show_rate(rate.as_f64().unwrap_or_default())
        }
        ("bytes", Value::Number(bytes)) => show_bytes(bytes.as_u64().unwrap_or_default()),
        (_, Value::Number(number)) if number.is_u64() => {
            show_count(number.as_u64().unwrap_or_default())
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
    if is_state(path)? {
        return facts_of_state(path);
    }
    let (header, filter) = open(path)?;
    let keys = match filter.hasher().keys() {
        Kind::Words => "integers of up to 64 bits",
        Kind::Wide => "integers of 128 bits",
        Kind::Plain4 | Kind::Plain8 => "Parquet's numbers",
        Kind::Parts => "several parts, such as a tuple",
        Kind::Fields => "several fields of a record",
        _ => "bytes",
    };
    let mut facts = Map::new();
    let mut add = |name: &str, fact: Value| _ = facts.insert(name.into(), fact);
    add("file", json!(path.display().to_string()));
    if is_marked(&header, &filter) {
        add("kind", json!("state of dedup"));
    }
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
    add_rates(&filter, &mut add);
    add("checksums", json!("match"));
    Ok(facts)
}

/// Whether a file is an exact state of `dedup`. Standard input is not read for that.
fn is_state(path: &Path) -> Result<bool> {
    if is_standard(path) { Ok(false) } else { exact::is_in(path) }
}

/// The same of an exact state of `dedup`.
fn facts_of_state(path: &Path) -> Result<Map<String, Value>> {
    let metadata = path.metadata().with_context(|| path.display().to_string())?;
    let saved = Saved::open(path)?;
    let (version, keys) = (saved.version(), saved.count());
    saved.verify().with_context(|| path.display().to_string())?;
    let mut facts = Map::new();
    let mut add = |name: &str, fact: Value| _ = facts.insert(name.into(), fact);
    add("file", json!(path.display().to_string()));
    add("kind", json!("exact state of dedup"));
    add("format", json!(version));
    add("secret_in_file", json!(true));
    #[cfg(unix)]
    add(
        "private",
        json!(std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o077 == 0),
    );
    add("bytes", json!(metadata.len()));
    add("keys_in_it", json!(keys));
    add("rate_now", json!(0.0));
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
    add_rates(&filter, &mut add);
    Ok(facts)
}

/// The false positive rate now, and if the filter was planned for a number of keys the rate with these.
fn add_rates(filter: &AnyFilter, add: &mut impl FnMut(&str, Value)) {
    let now = filter.expected_rate();
    let planned = Planned::of(filter).filter(|planned| planned.keys > 0);
    if let Some(planned) = planned {
        add("rate_planned", json!(planned.rate));
    }
    add("rate_now", json!(now));
    if let Some(planned) = planned {
        add("overfull", json!(planned.is_overfull(now)));
    }
}

/// What the three families of Bloom filters have, whose shapes have no type in common.
macro_rules! bloom {
    ($filter:expr, $add:expr) => {{
        let (shape, now) = ($filter.shape(), $filter.estimated_len());
        planned(shape.items(), now, $add);
        $add("capacity_left", json!(shape.items().saturating_sub(now)));
        $add("bits", json!(shape.bits()));
        $add("probes", json!(shape.probes()));
        $add("fill", json!($filter.count_ones() as f64 / shape.bits() as f64));
    }};
}

/// What only filters of this family have.
fn add_shape(filter: &AnyFilter, add: &mut impl FnMut(&str, Value)) {
    match filter.raw() {
        Any::Bloom(filter) => bloom!(filter, add),
        Any::Blocked(filter) => {
            bloom!(filter, add);
            add("lines_per_key", json!(filter.shape().lines_per_key()));
        }
        Any::Split(filter) => bloom!(filter, add),
        Any::Counting(filter) => {
            let shape = filter.shape();
            planned(shape.items(), filter.estimated_len(), add);
            add("cells", json!(shape.cells()));
            add("bits_per_cell", json!(shape.width().bits()));
            add("probes", json!(shape.probes()));
        }
        Any::BlockedCounting(filter) => {
            let shape = filter.shape();
            planned(shape.items(), filter.estimated_len(), add);
            add("cells", json!(shape.cells()));
            add("bits_per_cell", json!(shape.width().bits()));
            add("probes", json!(shape.probes()));
        }
        Any::Scalable(filter) => {
            add("levels", json!(filter.levels().len()));
            add("keys_estimated", json!(filter.estimated_len()));
            add("rate_planned", json!(filter.shape().rate()));
        }
        Any::Stable(filter) => {
            add("cells", json!(filter.shape().cells()));
            add("bits_per_cell", json!(filter.shape().width()));
            add("probes", json!(filter.shape().probes()));
            add("decrements", json!(filter.shape().decrements()));
        }
        Any::Window(filter) => {
            match filter.shape().window() {
                Window::Insertions(number) => add("window_insertions", json!(number)),
                Window::Time(time) => add("window_seconds", json!(time.as_secs_f64())),
            }
            add("epochs", json!(filter.shape().epochs()));
            add("probes", json!(filter.shape().probes()));
        }
        Any::Cuckoo(filter) => {
            planned(filter.shape().items(), filter.len(), add);
            add("capacity_left", json!(filter.shape().room().saturating_sub(filter.len())));
            add("load", json!(filter.load()));
            add("fingerprint_bits", json!(filter.shape().fingerprint_bits()));
        }
        Any::Quotient(filter) => {
            planned(filter.shape().items(), filter.len(), add);
            add("capacity_left", json!(filter.capacity().saturating_sub(filter.len())));
            add("load", json!(filter.load()));
            add("remainder_bits", json!(filter.shape().remainder_bits()));
        }
        Any::Xor(filter) => frozen(filter.len(), filter.shape().fingerprint_bits(), add),
        Any::Fuse(filter) => frozen(filter.len(), filter.shape().fingerprint_bits(), add),
        Any::Fuse4(filter) => frozen(filter.len(), filter.shape().fingerprint_bits(), add),
        Any::Ribbon(filter) => frozen(filter.len(), filter.shape().fingerprint_bits(), add),
        _ => {}
    }
}

fn planned(items: u64, now: u64, add: &mut impl FnMut(&str, Value)) {
    add("keys_planned", json!(items));
    add("keys_estimated", json!(now));
}

fn frozen(keys: u64, bits: u32, add: &mut impl FnMut(&str, Value)) {
    add("keys_in_it", json!(keys));
    add("bits_per_entry", json!(bits));
}

/// What `verify` finds in a whole file.
struct Whole {
    what: &'static str,
    bytes: u64,
}

/// The exit status: 0 if all files are whole, 1 if one is damaged, 2 if one cannot be read.
pub(crate) fn verify(args: &Verify, quiet: bool) -> Result<u8> {
    if !quiet {
        stdout_is_apart([], &args.files)?;
    }
    let mut status = 0;
    for path in &args.files {
        let progress = Progress::alone();
        progress.work("verifying", None, &path.display().to_string());
        let found = whole(path);
        progress.done();
        let name = path.display().to_string();
        let whole = match &found {
            Ok(_) => Some(true),
            Err(error) => is_damage(error).then_some(false),
        };
        status = status.max(match whole {
            Some(true) => 0,
            Some(false) => 1,
            None => 2,
        });
        if let Err(error) = &found {
            warn(&told(error));
        }
        match (&found, args.report.form()) {
            _ if quiet => {}
            (Ok(Whole { what, bytes }), Form::Text) => {
                print(format!(
                    "{}: whole, {what}, {}\n",
                    shown(name.as_bytes()),
                    show_bytes(*bytes)
                ))?;
            }
            (Err(_), Form::Text) => {}
            (Ok(Whole { what, bytes }), Form::Json) => {
                print(format!(
                    "{}\n",
                    json!({ "file": name, "whole": whole, "kind": what, "bytes": bytes })
                ))?;
            }
            (Err(error), Form::Json) => {
                print(format!(
                    "{}\n",
                    json!({ "file": name, "whole": whole, "error": told(error) })
                ))?;
            }
        }
    }
    Ok(status)
}

fn whole(path: &Path) -> Result<Whole> {
    not_on_a_server(path)?;
    if is_state(path)? {
        let bytes = path.metadata().with_context(|| path.display().to_string())?.len();
        Saved::open(path)?.verify().with_context(|| path.display().to_string())?;
        return Ok(Whole { what: "exact state of dedup", bytes });
    }
    let filter = load(path)?;
    Ok(Whole { what: filter.family(), bytes: filter.bytes() })
}

/// Whether a file was read and is not what was written. Otherwise it could not be read.
fn is_damage(error: &anyhow::Error) -> bool {
    match error.downcast_ref() {
        Some(OpenError::Invalid(_)) => true,
        Some(_) => false,
        // An exact state of `dedup`, or more than a filter.
        None => !error.is::<std::io::Error>(),
    }
}
