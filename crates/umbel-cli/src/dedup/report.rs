//! What a run says of itself.

use super::seen::Seen;
use super::stream::Totals;
use crate::amount::{show_bytes, show_count, show_rate, show_things};
use crate::cli::{Dedup, Form};
use crate::output::note;
use serde_json::json;
use std::io::Write;

/// Fewer lost lines than this are not worth a word.
const SILENT: f64 = 0.5;

/// What is known of lines that were lost.
struct Loss {
    /// How many new lines counted as repeated, on average; `None` if the filter cannot tell.
    expected: Option<f64>,
    at_most: u64,
}

/// How a run went.
pub(super) struct Run {
    totals: Totals,
    loss: Loss,
    /// Of the set of repeated lines, for `-d`.
    again: Option<Loss>,
    is_exact: bool,
    over: Option<u64>,
    rate: f64,
    memory: u64,
}

impl Run {
    /// A run whose records were looked up, with `-d` in two sets.
    pub(super) fn of(totals: Totals, seen: &mut Seen, again: Option<&mut Seen>) -> Self {
        let loss = |seen: &mut Seen| {
            seen.risk.count(&seen.known);
            Loss { expected: seen.risk.lost(), at_most: seen.risk.lost_at_most() }
        };
        let more = again.as_ref().map_or(0, |again| again.known.bytes());
        let exact_too = again.as_ref().is_none_or(|again| again.is_exact());
        Self {
            totals,
            loss: loss(seen),
            again: again.map(loss),
            is_exact: seen.is_exact() && exact_too,
            over: seen.over,
            rate: seen.risk.rate(),
            memory: seen.known.bytes() + more,
        }
    }

    /// A run that kept its records to the end.
    pub(super) fn exact(totals: Totals, memory: u64) -> Self {
        let loss = Loss { expected: Some(0.0), at_most: 0 };
        Self { totals, loss, again: None, is_exact: true, over: None, rate: 0.0, memory }
    }

    /// Says what was asked for, and else only what may have been lost.
    pub(super) fn tell(&self, args: &Dedup, seconds: f64) {
        match args.form() {
            // A program reads this, so nothing else is said.
            Some(Form::Json) => _ = writeln!(std::io::stderr(), "{}", self.json(seconds)),
            Some(Form::Text) => note(&self.summary(args, seconds)),
            None => {
                if let Some(lost) = self.lost() {
                    let Totals { records, new, .. } = self.totals;
                    let new = show_things(new, "new line");
                    note(&format!("{new} of {}; {lost}", show_count(records)));
                }
            }
        }
    }

    fn json(&self, seconds: f64) -> serde_json::Value {
        let Totals { records, skipped, new, printed, bytes, repeated_bytes } = self.totals;
        let mut all = json!({
            "records": records,
            "skipped": skipped,
            "printed": printed,
            "dropped": records - printed,
            "new": new,
            "repeated": records - new,
            "bytes": bytes,
            "repeated_bytes": repeated_bytes,
            "exact": self.is_exact,
            "filter_from_record": self.over,
            "rate": self.rate,
            "expected_lost": self.loss.expected,
            "lost_at_most": self.loss.at_most,
            "memory": self.memory,
            "seconds": seconds,
        });
        if let Some(again) = &self.again {
            all["expected_repeated_lost"] = json!(again.expected);
            all["repeated_lost_at_most"] = json!(again.at_most);
        }
        all
    }

    fn summary(&self, args: &Dedup, seconds: f64) -> String {
        let Totals { records, new, printed, bytes, repeated_bytes, .. } = self.totals;
        let how = match (self.is_exact, self.over) {
            (true, _) => "exact".to_owned(),
            (false, None) => {
                format!("a filter with a false positive rate of {} now", show_rate(self.rate))
            }
            (false, Some(record)) => format!(
                "exact, and from record {} on a filter with a false positive rate of {} now",
                show_count(record),
                show_rate(self.rate)
            ),
        };
        let done = if args.total { "counted and not printed" } else { "printed" };
        let per_second = match records as f64 / seconds.max(1e-9) {
            few if few < 1e5 => show_count(few as u64),
            many => format!("{:.1} million", many / 1e6),
        };
        let lost = self.lost().unwrap_or_else(|| match self.is_exact {
            true => "no line was lost".to_owned(),
            false => "less than half a lost line is expected".to_owned(),
        });
        format!(
            "{}, {} new, {} repeated ({} of {}), {} {done}; {how}; {lost}; {} of memory, {seconds:.2} s ({per_second} lines a second)",
            show_things(records, "line"),
            show_count(new),
            show_count(records - new),
            show_bytes(repeated_bytes),
            show_bytes(bytes),
            show_count(printed),
            show_bytes(self.memory),
        )
    }

    /// What may have been lost, if that is worth a word.
    fn lost(&self) -> Option<String> {
        let told = |loss: &Loss, what: &str| match loss.expected {
            Some(expected) if expected < SILENT => None,
            Some(expected) => Some(format!(
                "about {} {what}, at most {}",
                show_things((expected.round() as u64).max(1), "new line"),
                show_count(loss.at_most)
            )),
            None if loss.at_most == 0 => None,
            None => Some(format!(
                "an unknown number of new lines {what}, at most {}",
                show_count(loss.at_most)
            )),
        };
        let first = told(&self.loss, "may have been taken for repeated ones");
        let second = self.again.as_ref().and_then(|again| {
            let text = told(again, "that came again may not have been printed")?;
            Some(text.replace("new line", "line"))
        });
        match (first, second) {
            (Some(first), Some(second)) => Some(format!("{first}; {second} (none with --exact)")),
            (first, second) => first.or(second).map(|text| format!("{text} (none with --exact)")),
        }
    }
}
