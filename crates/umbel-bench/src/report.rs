//! Aligned text and JSON on standard output.

use crate::{Failure, stats::Quartiles};
use serde::Serialize;
use std::io::{Write, stdout};

/// Writes one line.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    Ok(writeln!(stdout(), "{}", text.trim_end())?)
}

/// Writes `document` as JSON.
pub(crate) fn json(document: &impl Serialize) -> Result<(), Failure> {
    line(&serde_json::to_string_pretty(document)?)
}

/// A measured rate, with three significant digits.
pub(crate) fn rate(rate: f64) -> String {
    if rate == 0.0 || rate >= 0.0001 { format!("{rate:.5}") } else { format!("{rate:.1e}") }
}

/// The quartiles around a median.
pub(crate) fn quartiles(ratio: &Quartiles) -> String {
    format!("{:.3}-{:.3}", ratio.low, ratio.high)
}

/// Columns of fixed width: some on the left flush left, the others flush right. Rows can be
/// written as they are measured.
#[derive(Debug)]
pub(crate) struct Columns {
    names: Vec<&'static str>,
    widths: Vec<usize>,
    left: usize,
}

impl Columns {
    /// Columns as wide as their names.
    pub(crate) fn new(names: &[&'static str]) -> Self {
        let widths = names.iter().map(|name| name.len()).collect();
        Self { names: names.to_vec(), widths, left: 0 }
    }

    /// The first `left` columns are text.
    pub(crate) fn left(self, left: usize) -> Self {
        Self { left, ..self }
    }

    /// Sets minimum widths of the first columns.
    pub(crate) fn widths(mut self, widths: &[usize]) -> Self {
        for (width, least) in self.widths.iter_mut().zip(widths) {
            *width = (*width).max(*least);
        }
        self
    }

    /// The line of names.
    pub(crate) fn header(&self) -> String {
        self.row(&self.names)
    }

    /// One line of cells.
    pub(crate) fn row(&self, cells: &[impl AsRef<str>]) -> String {
        let mut line = String::new();
        for (place, (cell, width)) in cells.iter().zip(&self.widths).enumerate() {
            let cell = cell.as_ref();
            let gap = if place == 0 { "" } else { "  " };
            line += gap;
            line += &if place < self.left {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            };
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_flush_left_and_numbers_flush_right() {
        let columns = Columns::new(&["name", "ns"]).left(1).widths(&[6, 5]);
        assert_eq!(columns.header(), "name       ns");
        assert_eq!(columns.row(&["a", "1.25"]), "a        1.25");
    }

    #[test]
    fn small_rates_keep_their_digits() {
        assert_eq!(rate(0.01012), "0.01012");
        assert_eq!(rate(0.0000153), "1.5e-5");
        assert_eq!(rate(0.0), "0.00000");
    }
}
