//! `umbel guard stats`: how a table and its filter are.

use super::Task;
use super::audit::{Audit, End, audit, audit_part};
use super::built;
use super::cli::Stats;
use crate::amount::{show_bytes, show_count, show_rate, show_things};
use crate::cli::Form;
use crate::output::print;
use anyhow::Result;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use umbel_guard::{DataSet, State};

/// Keys that are looked up unless `--audit` says how many: all of a table that is not larger.
const KEYS: u64 = 1_000_000;

/// Whether the saved filter can be used.
pub(super) async fn run<D: DataSet>(set: D, task: &Task<'_>, args: &Stats) -> Result<bool> {
    let guard = task.reading(set).await?;
    let usable = guard.state() == State::Active;
    let set = guard.data_set();
    let built = if usable { built::read(task.folder, set).await? } else { None };
    let mut scan = set.scan(None).await?;
    let keys = set.count(&mut scan).await?;
    let limit = args.audit.unwrap_or(KEYS);
    let audit = match usable {
        true if limit < keys => audit_part(&guard, &mut scan, limit).await?,
        true => audit(&guard, &mut scan, End::After(limit)).await?,
        false => Audit::default(),
    };
    drop(scan);
    let measure = guard.measure().await.filter(|_| usable);
    let target = guard.stats().target;
    guard.close().await?;
    let mut facts = Map::new();
    let mut add = |name: &str, fact: Value| _ = facts.insert(name.into(), fact);
    add("data_set", json!(task.attached.place.to_string()));
    add("table", json!(task.attached.table));
    add("family", json!(task.attached.family.name()));
    add("keys", json!(keys));
    if let Some(built) = built {
        add("keys_built", json!(built));
    }
    let (good, verdict) = if usable {
        verdict(&Found { keys, built, audit }, &task.name())
    } else {
        (false, format!("must be built with `umbel guard attach -o {}`", task.name()))
    };
    add("filter", json!(verdict));
    if let Some(filter) = measure {
        add("bytes", json!(filter.bytes));
        add("keys_planned", json!(filter.capacity));
        add("keys_estimated", json!(filter.items));
        add("fill", json!(filter.fill));
        add("rate_now", json!(filter.rate));
        add("rate_wanted", json!(target));
    }
    if usable {
        add("audited", json!(audit.keys));
        add("missed", json!(audit.missed));
    }
    if args.json || args.report == Form::Json {
        print(format!("{}\n", Value::Object(facts)))?;
    } else {
        print(page(&facts)?)?;
    }
    Ok(good)
}

/// What is known of the keys of a table and of its filter.
struct Found {
    /// Keys of the table now.
    keys: u64,
    /// Keys that the filter was built from.
    built: Option<u64>,
    audit: Audit,
}

/// Whether nothing speaks against the saved filter, and what is said about it.
fn verdict(found: &Found, folder: &str) -> (bool, String) {
    let Found { keys, built, audit } = *found;
    let again = format!("must be built again with `umbel guard attach -o {folder}`");
    let looked = format!("{} of {} looked up", show_count(audit.keys), show_things(keys, "row"));
    if audit.missed > 0 {
        let missed = show_things(audit.missed, "row");
        return (false, format!("{again}: it lacks {missed} ({looked})"));
    }
    match built {
        Some(built) if keys > built => {
            let built = show_things(built, "key");
            let why = format!("the table has {}", show_things(keys, "row"));
            (false, format!("{again}: {why}, the filter was built from {built} ({looked})"))
        }
        _ if audit.keys < keys => (true, format!("lacks none of {looked}")),
        _ => (true, format!("can be used ({looked})")),
    }
}

fn page(facts: &Map<String, Value>) -> Result<String> {
    let mut page = String::new();
    for (name, fact) in facts {
        let text = match (&**name, fact) {
            ("bytes", fact) => show_bytes(fact.as_u64().unwrap_or_default()),
            ("fill" | "rate_now" | "rate_wanted", fact) => {
                show_rate(fact.as_f64().unwrap_or_default())
            }
            (_, Value::String(text)) => crate::output::shown(text.as_bytes()),
            (_, fact) => show_count(fact.as_u64().unwrap_or_default()),
        };
        writeln!(page, "{:<17} {text}", name.replace('_', " "))?;
    }
    Ok(page)
}
