//! `umbel plan`: all families side by side.

mod chart;
mod svg;

use crate::amount::{show_bytes, show_rate, show_things};
use crate::build::family_for;
use crate::cli::{Form, Plan, RATE};
use crate::input::is_standard;
use crate::making::least_rate;
use crate::output::{Existing, may_write, print, write_file};
use anyhow::{Context, Result, bail};
use serde_json::json;
use std::fmt::Write as _;
use std::io::Write as _;
use umbel::plan::{Abilities, AnyShape, FAMILIES};

/// How many times the planned keys the rates are told for.
const LOADS: [f64; 6] = [0.5, 1.0, 1.25, 1.5, 2.0, 4.0];

/// What the outlines below a heading were chosen by.
#[derive(Clone, Copy, Debug)]
enum By {
    Rate { rate: f64, is_default: bool },
    Memory { memory: u64 },
}

pub(crate) fn run(args: &Plan) -> Result<()> {
    let form = args.report.form();
    if args.force && args.svg.is_none() {
        bail!("--force has no effect without --svg: leave it out");
    }
    if args.chart && form == Form::Json {
        bail!("--chart has no effect with --report json: leave one of them out");
    }
    let to_stdout = args.svg.as_deref().is_some_and(is_standard);
    if to_stdout && (args.chart || form == Form::Json) {
        bail!(
            "--svg - prints only the drawing: leave --chart and --report json out, or name a file"
        );
    }
    if let Some(path) = args.svg.as_deref().filter(|_| !to_stdout) {
        may_write(path, args.force)?;
    }
    let Some(items) = args.size.capacity else {
        bail!("a plan needs the number of keys, such as -n 1000000, -n 1e6 or -n 1M");
    };
    let (by, outlines) = match (args.size.memory, args.size.rate) {
        (Some(memory), None) => (By::Memory { memory }, in_memory(items, memory)),
        (memory, rate) => {
            let by = By::Rate { rate: rate.unwrap_or(RATE), is_default: rate.is_none() };
            let mut all = AnyShape::all(items, rate.unwrap_or(RATE));
            all.retain(|outline| memory.is_none_or(|memory| outline.bytes() <= memory));
            (by, all)
        }
    };
    if outlines.is_empty() {
        bail!("no family fits: allow more memory or a larger rate, or plan fewer keys");
    }
    if to_stdout {
        return print(svg::drawn(items, &outlines));
    }
    if let Some(path) = &args.svg {
        let drawing = svg::drawn(items, &outlines);
        write_file(path, false, Existing::of(args.force), |file| {
            file.write_all(drawing.as_bytes()).with_context(|| path.display().to_string())
        })?;
    }
    if form == Form::Json {
        return print(json_of(items, by, args.size.memory, &outlines));
    }
    let mut page = table(items, by, &outlines)?;
    if args.chart {
        page += &chart::drawn(items, &outlines);
    }
    print(page)
}

/// Each family at the smallest rate that fits.
fn in_memory(items: u64, memory: u64) -> Vec<AnyShape> {
    let best = |family: &&str| least_rate(family, items, memory);
    FAMILIES.iter().filter_map(best).map(|(_, outline)| outline).collect()
}

fn can(abilities: Abilities) -> String {
    let Abilities { insert, remove, grow, merge } = abilities;
    let all = [(insert, "insert"), (remove, "remove"), (grow, "grow"), (merge, "merge")];
    let can: Vec<&str> = all.into_iter().filter(|(can, _)| *can).map(|(_, name)| name).collect();
    if can.is_empty() { "-".into() } else { can.join(" ") }
}

fn at(items: u64, load: f64) -> u64 {
    (items as f64 * load).round() as u64
}

fn table(items: u64, by: By, outlines: &[AnyShape]) -> Result<String> {
    let mut output = String::new();
    let keys = show_things(items, "key");
    match by {
        By::Rate { rate, is_default } => {
            let default = if is_default { ", the default of -p" } else { "" };
            writeln!(output, "{keys} at a false positive rate of {}{default}", show_rate(rate))?;
        }
        By::Memory { memory } => {
            writeln!(
                output,
                "{keys} in {}, each family at its lowest false positive rate",
                show_bytes(memory)
            )?;
        }
    }
    writeln!(
        output,
        "columns 0.5x to 4x: the rate when the filter holds 0.5 to 4 times as many keys as planned\n"
    )?;
    let column = |load: f64| {
        let shown: Vec<_> = outlines
            .iter()
            .map(|outline| outline.expected_rate(at(items, load)))
            .map(|rate| rate.map_or_else(|| "full".to_owned(), show_rate))
            .collect();
        let width = shown.iter().map(String::len).max().unwrap_or(0).max(5);
        (format!("{load}x"), shown, width + 2)
    };
    let columns = LOADS.map(column);
    write!(output, "{:<17}{:>9}{:>12}{:>7}  {:<24}", "family", "bits/key", "size", "lines", "can")?;
    for (load, _, width) in &columns {
        write!(output, "{load:>width$}")?;
    }
    writeln!(output)?;
    for (number, outline) in outlines.iter().enumerate() {
        let bits = outline.bytes() as f64 * 8.0 / items.max(1) as f64;
        let (family, size) = (outline.family(), show_bytes(outline.bytes()));
        let (lines, can) = (outline.lines(), can(outline.abilities()));
        write!(output, "{family:<17}{bits:>9.2}{size:>12}{lines:>7}  {can:<24}")?;
        for (_, rates, width) in &columns {
            write!(output, "{:>width$}", rates[number])?;
        }
        writeln!(output)?;
    }
    output += "\nlines  cache lines that a look-up touches\n\
               grow   takes more keys than planned at the planned rate: scalable by itself, quotient when a program calls grow()\n\
               full   takes no more keys\n\
               -      static: built once from all keys\n\n";
    let missing = missing(outlines);
    if !missing.is_empty() {
        writeln!(output, "do not fit: {}", missing.join(", "))?;
    }
    writeln!(output, "umbel build takes: {}", taken(&missing))?;
    Ok(output)
}

/// The families without an outline: they take more memory, or there is no such rate.
fn missing(outlines: &[AnyShape]) -> Vec<&'static str> {
    let fits = |family: &str| outlines.iter().any(|outline| outline.family() == family);
    FAMILIES.into_iter().filter(|family| !fits(family)).collect()
}

/// Which families `umbel build` takes by its options.
fn taken(missing: &[&str]) -> String {
    let ways = [("by default", false, false), ("with --static", true, false)];
    ways.into_iter()
        .chain([("with --deletable", false, true)])
        .map(|(how, immutable, deletable)| {
            let family = family_for(immutable, deletable).name();
            let fits = if missing.contains(&family) { " (does not fit)" } else { "" };
            format!("{family} {how}{fits}")
        })
        .collect::<Vec<_>>()
        .join(", ")
}

fn json_of(items: u64, by: By, memory: Option<u64>, outlines: &[AnyShape]) -> String {
    let rate = match by {
        By::Rate { rate, .. } => Some(rate),
        By::Memory { .. } => None,
    };
    let families: Vec<_> = outlines
        .iter()
        .map(|outline| {
            let Abilities { insert, remove, grow, merge } = outline.abilities();
            let rates: Vec<_> = LOADS
                .iter()
                .map(
                    |load| json!({ "load": load, "rate": outline.expected_rate(at(items, *load)) }),
                )
                .collect();
            json!({
                "family": outline.family(),
                "bytes": outline.bytes(),
                "bits_per_key": outline.bytes() as f64 * 8.0 / items.max(1) as f64,
                "cache_lines": outline.lines(),
                "insert": insert,
                "remove": remove,
                "grow": grow,
                "merge": merge,
                "rates": rates,
            })
        })
        .collect();
    format!(
        "{:#}\n",
        json!({
            "keys": items,
            "rate": rate,
            "memory": memory,
            "families": families,
            "do_not_fit": missing(outlines),
        })
    )
}
