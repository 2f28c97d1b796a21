//! `umbel plan`: all families side by side.

use crate::amount::{show_bytes, show_count};
use crate::cli::{Plan, RATE};
use crate::making::least_rate;
use crate::output::{may_write, print, write_file};
use anyhow::{Context, Result, bail};
use serde_json::json;
use std::fmt::Write as _;
use std::io::Write as _;
use umbel::plan::{Abilities, FAMILIES, Outline};

/// How many times the planned keys the rates are told for.
const LOADS: [f64; 6] = [0.5, 1.0, 1.25, 1.5, 2.0, 4.0];

pub(crate) fn run(args: Plan) -> Result<()> {
    if let Some(path) = &args.svg {
        may_write(path, args.force)?;
    }
    let Some(items) = args.size.capacity else {
        bail!("how many keys? -n 1e6");
    };
    let outlines = match (args.size.memory, args.size.rate) {
        (Some(memory), None) => in_memory(items, memory),
        (memory, rate) => {
            let mut all = Outline::all(items, rate.unwrap_or(RATE));
            all.retain(|outline| memory.is_none_or(|memory| outline.bytes() <= memory));
            all
        }
    };
    if outlines.is_empty() {
        bail!("no family can do that: more memory, fewer keys, or a larger rate");
    }
    if let Some(path) = &args.svg {
        let drawing = svg(items, &outlines);
        write_file(path, false, |file| {
            file.write_all(drawing.as_bytes()).with_context(|| path.display().to_string())
        })?;
    }
    print(if args.json { json_of(items, &outlines) } else { table(items, &outlines)? })
}

/// Each family at the smallest rate that fits.
fn in_memory(items: u64, memory: u64) -> Vec<Outline> {
    let best = |family: &&str| least_rate(family, items, memory);
    FAMILIES.iter().filter_map(best).map(|(_, outline)| outline).collect()
}

fn can(abilities: Abilities) -> String {
    let Abilities { insert, remove, grow, merge } = abilities;
    let all = [(insert, "insert"), (remove, "remove"), (grow, "grow"), (merge, "merge")];
    let can: Vec<&str> = all.into_iter().filter(|(can, _)| *can).map(|(_, name)| name).collect();
    if can.is_empty() { "-".into() } else { can.join(" ") }
}

/// A rate in a column.
fn short_rate(rate: f64) -> String {
    match rate {
        0.0 => "0".into(),
        rate if rate >= 0.001 => format!("{:.2}%", rate * 100.0),
        rate => format!("{rate:.1e}"),
    }
}

fn at(items: u64, load: f64) -> u64 {
    (items as f64 * load).round() as u64
}

fn table(items: u64, outlines: &[Outline]) -> Result<String> {
    let mut output = String::new();
    writeln!(output, "{} keys, and the rates with so many times as many", show_count(items))?;
    write!(output, "{:<17}{:>9}{:>12}{:>7}  {:<25}", "family", "bits/key", "size", "lines", "can")?;
    for load in LOADS {
        write!(output, "{:>8}", format!("{load}x"))?;
    }
    writeln!(output)?;
    for outline in outlines {
        let bits = outline.bytes() as f64 * 8.0 / items.max(1) as f64;
        let (family, size) = (outline.family(), show_bytes(outline.bytes()));
        let (lines, can) = (outline.lines(), can(outline.abilities()));
        write!(output, "{family:<17}{bits:>9.2}{size:>12}{lines:>7}  {can:<25}")?;
        for load in LOADS {
            let rate = outline.expected_rate(at(items, load));
            write!(output, "{:>8}", rate.map_or("full".into(), short_rate))?;
        }
        writeln!(output)?;
    }
    Ok(output)
}

fn json_of(items: u64, outlines: &[Outline]) -> String {
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
    format!("{:#}\n", json!({ "keys": items, "families": families }))
}

/// The rates from half of the planned keys to four times as many, by the logarithm.
fn svg(items: u64, outlines: &[Outline]) -> String {
    let (width, height) = (720.0, 420.0);
    let (left, top, right, bottom) = (70.0, 40.0, 550.0, 370.0);
    let loads: Vec<f64> = (0..=70).map(|step| 0.5 + f64::from(step) / 20.0).collect();
    let rates = |outline: &Outline| -> Vec<(f64, f64)> {
        let rate = |load: &f64| Some((*load, outline.expected_rate(at(items, *load))?));
        loads.iter().filter_map(rate).filter(|(_, rate)| *rate > 0.0).collect()
    };
    let least = outlines.iter().flat_map(&rates).map(|(_, rate)| rate).fold(1.0, f64::min);
    let floor = least.log10().floor();
    let x = |load: f64| left + (load - 0.5) / 3.5 * (right - left);
    let y = |rate: f64| top + rate.log10() / floor * (bottom - top);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{left}\" y=\"20\" font-size=\"14\">Error rate with {} keys times</text>\n",
        show_count(items)
    );
    let mut line = |text: String| _ = writeln!(out, "{text}");
    for load in [0.5, 1.0, 2.0, 3.0, 4.0] {
        let x = x(load);
        line(format!(
            "<line x1=\"{x:.1}\" y1=\"{top}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"#ddd\"/>"
        ));
        line(format!(
            "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{load}</text>",
            bottom + 20.0
        ));
    }
    for power in (floor as i32)..=0 {
        let y = y(10_f64.powi(power));
        line(format!(
            "<line x1=\"{left}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>"
        ));
        line(format!(
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">1e{power}</text>",
            left - 8.0,
            y + 4.0
        ));
    }
    for (number, outline) in outlines.iter().enumerate() {
        let hue = number * 360 / outlines.len();
        let points = rates(outline);
        let path: Vec<String> =
            points.iter().map(|(load, rate)| format!("{:.1},{:.1}", x(*load), y(*rate))).collect();
        line(format!(
            "<polyline fill=\"none\" stroke=\"hsl({hue} 70% 40%)\" stroke-width=\"2\" points=\"{}\"/>",
            path.join(" ")
        ));
        let (x, y) = (right + 12.0, top + 12.0 + number as f64 * 20.0);
        line(format!(
            "<text x=\"{x}\" y=\"{y}\" fill=\"hsl({hue} 70% 40%)\">{}</text>",
            outline.family()
        ));
    }
    out.push_str("</svg>\n");
    out
}
