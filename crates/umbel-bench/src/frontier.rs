//! Bits against nanoseconds, all filters in one chart: the Pareto frontier.

use crate::{
    Failure,
    args::FrontierArgs,
    keys::{Queries, Workload},
    machine::Machine,
    number::short,
    registry::Registry,
    report,
    table::{Row, measure},
};
use std::fmt::Write;

/// Parts of the names of entries that exist only for a bar: another shape or other keys for a filter that is
/// already in the chart.
const VARIANTS: &[&str] = &[" twice", " times", "peer's load", "one line", "two lines", ", 64x"];

/// One filter in the chart.
#[derive(Clone, Debug, PartialEq)]
struct Point {
    name: String,
    ours: bool,
    bits: f64,
    nanos: f64,
}

/// `umbel-bench frontier`.
pub(crate) fn run(args: FrontierArgs) -> Result<(), Failure> {
    let registry = Registry::all();
    let work = Workload::<u64>::new(args.items, Queries::USUAL);
    let mut rows = Vec::new();
    for entry in registry.select(&args.filters) {
        // Filters that forget, or that miss the rate by far, are not comparable.
        let comparable = entry.may_forget.is_none()
            && entry.may_exceed.is_none()
            && entry.own_rate.is_none_or(|own| own <= args.rate)
            && !VARIANTS.iter().any(|variant| entry.name.contains(variant));
        if args.items <= entry.most && comparable {
            let row = measure(entry, &work, args.rate, args.rounds, 1024);
            eprintln!("{}: {:.2} bits", row.filter, row.bits_per_key);
            rows.push(row);
        }
    }
    let machine = Machine::new(args.date);
    let title = format!(
        "{} u64 keys at an error rate of {}, absent keys looked up",
        short(args.items),
        args.rate
    );
    report::line(&picture(&title, &machine.summary(), &single(&rows), &batched(&rows)))
}

fn single(rows: &[Row]) -> Vec<Point> {
    points(rows, |row| row.absent)
}

fn batched(rows: &[Row]) -> Vec<Point> {
    points(rows, |row| row.batch_absent)
}

fn points(rows: &[Row], nanos: impl Fn(&Row) -> Option<f64>) -> Vec<Point> {
    let point = |row: &Row| {
        let ours = row.filter.strip_prefix("umbel ");
        let name = ours.unwrap_or(row.filter).to_owned();
        let (ours, bits) = (ours.is_some(), row.bits_per_key);
        nanos(row).map(|nanos| Point { name, ours, bits, nanos })
    };
    rows.iter().filter_map(point).collect()
}

/// The points that no other point beats in both bits and nanoseconds, ordered by bits.
fn frontier(points: &[Point]) -> Vec<&Point> {
    let mut sorted: Vec<&Point> = points.iter().collect();
    sorted.sort_by(|one, other| {
        (one.bits, one.nanos).partial_cmp(&(other.bits, other.nanos)).unwrap()
    });
    let mut best = f64::INFINITY;
    sorted.retain(|point| {
        let better = point.nanos < best;
        best = best.min(point.nanos);
        better
    });
    sorted
}

/// The size of one panel, and the space around it.
const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 60.0;
/// Above and below a panel.
const GAP: f64 = 70.0;

/// Both scales are logarithmic.
#[derive(Clone, Copy, Debug)]
struct Scale {
    from: f64,
    to: f64,
    length: f64,
}

impl Scale {
    /// A scale that contains all values.
    fn of(values: impl Iterator<Item = f64>, length: f64) -> Self {
        let (least, most) = values.fold((f64::INFINITY, 0.0_f64), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        Self { from: least / 1.15, to: most * 1.15, length }
    }

    fn place(&self, value: f64) -> f64 {
        self.length * (value / self.from).ln() / (self.to / self.from).ln()
    }

    /// Round numbers within the scale.
    fn ticks(&self) -> impl Iterator<Item = f64> {
        let Self { from, to, .. } = *self;
        let all = (-2..6)
            .flat_map(|power| [1.0, 1.5, 2.0, 3.0, 5.0, 7.0].map(|n| n * 10_f64.powi(power)));
        all.filter(move |tick| (from..to).contains(tick))
    }
}

/// The whole chart.
fn picture(title: &str, machine: &str, single: &[Point], batched: &[Point]) -> String {
    let all = || single.iter().chain(batched);
    let bits = Scale::of(all().map(|point| point.bits), WIDTH);
    let (width, height) = (WIDTH + LEFT + 40.0, 2.0 * (HEIGHT + GAP) + TOP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n\
         <text x=\"{LEFT}\" y=\"22\" font-size=\"15\">{}</text>\n\
         <text x=\"{LEFT}\" y=\"40\" fill=\"#666\">{}</text>\n",
        escaped(title),
        escaped(machine)
    );
    panel(&mut svg, TOP, "one by one", &bits, single);
    panel(&mut svg, TOP + HEIGHT + GAP, "in batches of 1,024", &bits, batched);
    svg + "</svg>"
}

/// One way to look keys up.
fn panel(svg: &mut String, top: f64, title: &str, bits: &Scale, points: &[Point]) {
    let nanos = Scale::of(points.iter().map(|point| point.nanos), HEIGHT);
    let x = |value: f64| LEFT + bits.place(value);
    let y = |value: f64| top + HEIGHT - nanos.place(value);
    let mut put = |text: String| writeln!(svg, "{text}").expect("a string takes all");
    put(format!(
        "<rect x=\"{LEFT}\" y=\"{top}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" \
         stroke=\"#999\"/>"
    ));
    let below = top + HEIGHT + 16.0;
    for tick in bits.ticks() {
        let x = x(tick);
        put(format!(
            "<path d=\"M{x:.1} {top}v{HEIGHT}\" stroke=\"#eee\"/>\
             <text x=\"{x:.1}\" y=\"{below}\" text-anchor=\"middle\">{tick}</text>"
        ));
    }
    for tick in nanos.ticks() {
        let y = y(tick);
        put(format!(
            "<path d=\"M{LEFT} {y:.1}h{WIDTH}\" stroke=\"#eee\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{tick}</text>",
            LEFT - 6.0,
            y + 4.0
        ));
    }
    put(format!(
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">bits a key</text>\
         <text x=\"{LEFT}\" y=\"{:.1}\">nanoseconds a key, {title}</text>",
        LEFT + WIDTH,
        below + 16.0,
        top - 6.0
    ));
    let line: String = frontier(points)
        .iter()
        .enumerate()
        .map(|(number, point)| {
            let (x, y) = (x(point.bits), y(point.nanos));
            if number == 0 { format!("M{x:.1} {y:.1}") } else { format!("H{x:.1}V{y:.1}") }
        })
        .collect();
    put(format!("<path d=\"{line}\" fill=\"none\" stroke=\"#b36\" stroke-width=\"1.5\"/>"));
    for point in points {
        let (x, y) = (x(point.bits), y(point.nanos));
        let (colour, weight) = if point.ours { ("#b36", "bold") } else { ("#888", "normal") };
        put(format!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\" font-weight=\"{weight}\">{}</text>",
            x + 6.0,
            y + 4.0,
            escaped(&point.name)
        ));
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(name: &str, bits: f64, nanos: f64) -> Point {
        Point { name: name.into(), ours: true, bits, nanos }
    }

    #[test]
    fn only_what_nothing_beats_is_on_the_frontier() {
        let points = [
            point("fast", 10.0, 1.0),
            point("small", 7.0, 9.0),
            point("beaten by small", 7.0, 12.0),
            point("beaten by both", 11.0, 10.0),
            point("between", 8.0, 5.0),
        ];
        let names: Vec<&str> = frontier(&points).iter().map(|point| point.name.as_str()).collect();
        assert_eq!(names, ["small", "between", "fast"]);
    }

    #[test]
    fn everything_is_inside_of_the_picture() {
        let points = [point("a & b", 7.0, 0.5), point("c < d", 40.0, 200.0)];
        let svg = picture("title", "machine", &points, &points[..1]);
        assert!(svg.contains("a &amp; b") && svg.contains("c &lt; d") && svg.ends_with("</svg>"));
        let scale = Scale::of([7.0, 40.0].into_iter(), WIDTH);
        assert!(scale.place(7.0) > 0.0 && scale.place(40.0) < WIDTH);
        assert!(scale.ticks().count() >= 4);
    }
}
