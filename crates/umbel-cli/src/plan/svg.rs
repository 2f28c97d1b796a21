//! The rates of all families at other loads as a drawing: SVG with plain attributes only, which every viewer and converter reads.

use super::at;
use crate::amount::show_things;
use std::fmt::Write as _;
use umbel::plan::{AnyShape, FAMILIES};

/// One colour per family, in the order of [`FAMILIES`]: dark enough on white, and neighbours differ.
const COLOURS: [&str; 13] = [
    "#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#e07b00", "#17707a", "#8c564b", "#c2188f",
    "#5f6b00", "#003f8a", "#7f7f7f", "#00897b", "#a3001e",
];
const WIDTH: f64 = 820.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 80.0;
const TOP: f64 = 50.0;
const RIGHT: f64 = 680.0;
const BOTTOM: f64 = 390.0;
/// The least distance of two labels.
const APART: f64 = 14.0;

/// A line and where its name stands.
struct Line {
    family: &'static str,
    colour: &'static str,
    points: Vec<(f64, f64)>,
    label: (f64, f64),
}

/// The rates from half of the planned keys to four times as many, by the logarithm.
pub(super) fn drawn(items: u64, outlines: &[AnyShape]) -> String {
    let rates = |outline: &AnyShape| -> Vec<(f64, f64)> {
        let loads = (0..=70).map(|step| 0.5 + f64::from(step) / 20.0);
        let rate = |load| Some((load, outline.expected_rate(at(items, load))?));
        loads.filter_map(rate).filter(|(_, rate)| *rate > 0.0).collect()
    };
    let least = outlines.iter().flat_map(&rates).map(|(_, rate)| rate).fold(0.1, f64::min);
    let floor = least.log10().floor();
    let x = |load: f64| LEFT + (load - 0.5) / 3.5 * (RIGHT - LEFT);
    let y = |rate: f64| TOP + rate.log10() / floor * (BOTTOM - TOP);
    let mut lines: Vec<Line> = outlines
        .iter()
        .filter_map(|outline| {
            let points: Vec<_> =
                rates(outline).into_iter().map(|(load, rate)| (x(load), y(rate))).collect();
            let family = outline.family();
            let number = FAMILIES.iter().position(|name| *name == family)?;
            let end = *points.last()?;
            Some(Line { family, colour: COLOURS[number], points, label: (end.0 + 12.0, end.1) })
        })
        .collect();
    spread(&mut lines);
    let mut out = String::new();
    frame(&mut out, items, floor as i32, x, y);
    for line in &lines {
        let points: Vec<String> =
            line.points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let colour = line.colour;
        add(
            &mut out,
            &format!(
                "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>",
                points.join(" ")
            ),
        );
    }
    // Above all lines.
    for Line { family, colour, points, label: (x, y) } in &lines {
        let (from_x, from_y) = points.last().copied().unwrap_or((*x, *y));
        add(
            &mut out,
            &format!(
                "<line x1=\"{from_x:.1}\" y1=\"{from_y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"{colour}\" stroke-width=\"0.7\"/>",
                x - 2.0
            ),
        );
        let y = y + 4.0;
        // A white rim, so that a line behind the name does not cross it.
        add(
            &mut out,
            &format!(
                "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"#ffffff\" stroke=\"#ffffff\" stroke-width=\"4\">{family}</text>"
            ),
        );
        add(
            &mut out,
            &format!("<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{colour}\">{family}</text>"),
        );
    }
    out + "</svg>\n"
}

/// Moves names apart that would stand on each other: those at the right border, and those of lines that end before it.
fn spread(lines: &mut [Line]) {
    let (mut right, mut inside): (Vec<_>, Vec<_>) =
        lines.iter_mut().partition(|line| line.label.0 > RIGHT);
    for group in [&mut right, &mut inside] {
        group.sort_by(|one, next| one.label.1.total_cmp(&next.label.1));
        // One column, right of the last end.
        let x = group.iter().map(|line| line.label.0).fold(0.0, f64::max);
        let mut next = TOP;
        for line in group.iter_mut() {
            line.label = (x, line.label.1.max(next));
            next = line.label.1 + APART;
        }
        // What went too far down goes up again.
        let mut most = BOTTOM - 4.0;
        for line in group.iter_mut().rev() {
            line.label.1 = line.label.1.min(most);
            most = line.label.1 - APART;
        }
    }
}

/// The grid, its numbers and what they mean.
fn frame(out: &mut String, items: u64, floor: i32, x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) {
    add(
        out,
        &format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">"
        ),
    );
    add(
        out,
        &format!("<rect x=\"0\" y=\"0\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>"),
    );
    add(
        out,
        &format!(
            "<text x=\"{LEFT}\" y=\"28\" font-size=\"15\" fill=\"#222222\">False positive rate of filters planned for {}</text>",
            show_things(items, "key")
        ),
    );
    for load in [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0] {
        let x = x(load);
        let colour = if load == 1.0 { "#888888" } else { "#dddddd" };
        add(
            out,
            &format!(
                "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{BOTTOM}\" stroke=\"{colour}\" stroke-width=\"1\"/>"
            ),
        );
        add(
            out,
            &format!(
                "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#444444\">{load}x</text>",
                BOTTOM + 18.0
            ),
        );
    }
    for power in floor..=0 {
        let y = y(10_f64.powi(power));
        add(
            out,
            &format!(
                "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{RIGHT}\" y2=\"{y:.1}\" stroke=\"#dddddd\" stroke-width=\"1\"/>"
            ),
        );
        let rate = match power {
            0 => "100 %".to_owned(),
            -1 => "10 %".to_owned(),
            -2 => "1 %".to_owned(),
            -3 => "0.1 %".to_owned(),
            -4 => "0.01 %".to_owned(),
            power => format!("1e{power}"),
        };
        add(
            out,
            &format!(
                "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#444444\">{rate}</text>",
                LEFT - 8.0,
                y + 4.0
            ),
        );
    }
    let middle = f64::midpoint(LEFT, RIGHT);
    add(
        out,
        &format!(
            "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\" fill=\"#222222\">keys in the filter, as a multiple of the planned number; a line ends where the filter is full</text>",
            BOTTOM + 42.0
        ),
    );
}

fn add(out: &mut String, line: &str) {
    let _ = writeln!(out, "{line}");
}
