//! The rates of all families at other loads, in text: one row per family, one block per load.

use super::at;
use crate::amount::show_rate;
use std::fmt::Write as _;
use umbel::plan::AnyShape;

/// The blocks, from the lowest rates to the highest.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Blocks per planned load.
const STEPS: u32 = 16;
/// Rates below this look alike.
const FLOOR: f64 = 1e-9;
/// The width of the names.
const NAMES: usize = 17;

/// The chart, with its axis and what the blocks mean.
pub(super) fn drawn(items: u64, outlines: &[AnyShape]) -> String {
    let loads: Vec<f64> =
        (STEPS / 2..=4 * STEPS).map(|step| f64::from(step) / f64::from(STEPS)).collect();
    let rates = |outline: &AnyShape| -> Vec<Option<f64>> {
        loads.iter().map(|load| outline.expected_rate(at(items, *load))).collect()
    };
    let all: Vec<_> = outlines.iter().map(|outline| (outline.family(), rates(outline))).collect();
    let known = all.iter().flat_map(|(_, rates)| rates).flatten();
    let least = known.filter(|rate| **rate > 0.0).fold(0.1_f64, |least, rate| least.min(*rate));
    // Powers of ten, so that the legend has round numbers.
    let decades = -least.max(FLOOR).log10().floor();
    let mut out = format!(
        "\nfalse positive rate, by the keys in the filter as multiples of the plan\n{:NAMES$}",
        ""
    );
    let mut axis = vec![' '; loads.len() + 1];
    for (step, mark) in [(8, "0.5x"), (16, "1x"), (32, "2x"), (48, "3x"), (64, "4x")] {
        let from = (step - 8_usize).min(axis.len() - mark.len());
        for (place, letter) in axis[from..].iter_mut().zip(mark.chars()) {
            *place = letter;
        }
    }
    let _ = writeln!(out, "{}", axis.into_iter().collect::<String>().trim_end());
    for (family, rates) in &all {
        let row: String =
            rates.iter().map(|rate| rate.map_or(' ', |rate| block(rate, decades))).collect();
        let _ = writeln!(out, "{family:<NAMES$}{}", row.trim_end());
    }
    let _ = write!(out, "\n{:<NAMES$}", "blocks from");
    for (level, block) in BLOCKS.iter().enumerate() {
        let rate = 10_f64.powf(-decades * (1.0 - level as f64 / BLOCKS.len() as f64));
        let rate = if level == 0 { "0".to_owned() } else { show_rate(rate) };
        let _ = write!(out, "{}{block} {rate}", if level == 0 { "" } else { "  " });
    }
    out + "; no block: full\n"
}

/// The block of a rate.
fn block(rate: f64, decades: f64) -> char {
    let share = 1.0 + rate.log10() / decades;
    // A rate at the border of two blocks belongs to the upper one, however it was rounded.
    let level = (share * BLOCKS.len() as f64 + 1e-9).floor();
    BLOCKS[level.clamp(0.0, BLOCKS.len() as f64 - 1.0) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_rise_with_the_rate() {
        assert_eq!(
            [0.0, 1e-9, 1e-4, 1e-3, 1e-2, 0.1, 0.5, 1.0].map(|rate| block(rate, 4.0)),
            ['▁', '▁', '▁', '▃', '▅', '▇', '█', '█']
        );
    }

    #[test]
    fn rows_are_as_long_as_the_loads_that_fit() {
        let outlines = AnyShape::all(1_000_000, 0.01);
        let chart = drawn(1_000_000, &outlines);
        let row = |name: &str| {
            let line = chart.lines().find(|line| line.starts_with(name)).expect("a row");
            line.chars().count() - NAMES
        };
        assert_eq!((row("bloom "), row("scalable ")), (57, 57), "{chart}");
        // From half of the keys to all.
        assert_eq!(row("ribbon "), 9, "{chart}");
        assert!(chart.lines().all(|line| line.chars().count() < 110), "{chart}");
    }
}
