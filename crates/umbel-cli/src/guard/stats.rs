//! `umbel guard stats`: how a table and its filter are.

use super::cli::Stats;
use crate::amount::{show_bytes, show_count, show_rate};
use crate::output::print;
use anyhow::Result;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use umbel_guard::{DataSet, State};

/// Whether the saved filter can be used.
pub(super) async fn run<D: DataSet>(set: D, args: &Stats) -> Result<bool> {
    let guard = args.filter.reading(set).await?;
    let set = guard.data_set();
    let mut scan = set.scan(None).await?;
    let keys = set.count(&mut scan).await?;
    let usable = guard.state() == State::Active;
    let mut audited = 0;
    let mut missed = 0;
    while usable && audited < args.audit && missed == 0 {
        let some = args.audit.min(audited + 1_000) - audited;
        missed += guard.audit(usize::try_from(some)?).await?;
        let all = guard.stats().audited;
        if all == audited {
            break;
        }
        audited = all;
        if all >= keys {
            break;
        }
    }
    if usable && missed == 0 {
        // Measures the filter.
        guard.tend().await;
    }
    let stats = guard.stats();
    let mut facts = Map::new();
    let mut add = |name: &str, fact: Value| _ = facts.insert(name.into(), fact);
    add("table", json!(args.target.table));
    add("keys", json!(keys));
    add("filter", json!(if usable { "can be used" } else { "must be built" }));
    if let Some(filter) = stats.filter.filter(|_| usable) {
        add("bytes", json!(filter.bytes));
        add("keys_planned", json!(filter.capacity));
        add("keys_estimated", json!(filter.items));
        add("fill", json!(filter.fill));
        add("rate_now", json!(filter.rate));
        add("rate_wanted", json!(stats.target));
    }
    if usable {
        add("audited", json!(audited));
        add("missed", json!(missed));
    }
    guard.close().await?;
    if args.json {
        print(format!("{}\n", Value::Object(facts)))?;
    } else {
        print(page(&facts)?)?;
    }
    Ok(usable && missed == 0)
}

fn page(facts: &Map<String, Value>) -> Result<String> {
    let mut page = String::new();
    for (name, fact) in facts {
        let text = match (&**name, fact) {
            ("bytes", fact) => show_bytes(fact.as_u64().unwrap_or_default()),
            ("fill", fact) => format!("{:.1}%", fact.as_f64().unwrap_or_default() * 100.0),
            ("rate_now" | "rate_wanted", fact) => show_rate(fact.as_f64().unwrap_or_default()),
            (_, Value::String(text)) => crate::output::shown(text.as_bytes()),
            (_, fact) => show_count(fact.as_u64().unwrap_or_default()),
        };
        writeln!(page, "{:<17} {text}", name.replace('_', " "))?;
    }
    Ok(page)
}
