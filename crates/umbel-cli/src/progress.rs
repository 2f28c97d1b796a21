//! How far it is, on standard error, if somebody looks there.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal, Read};
use std::time::Duration;

/// A line on the terminal, or nothing.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Shown only if standard error is a terminal, and standard output is not: two writers on one
    /// screen disturb each other.
    pub(crate) fn new(wanted: bool) -> Self {
        let shown = wanted && io::stderr().is_terminal() && !io::stdout().is_terminal();
        let target =
            if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        Self(ProgressBar::with_draw_target(None, target))
    }

    /// Begins. How many bytes there will be, if that is known.
    pub(crate) fn expect(&self, bytes: Option<u64>) {
        let style = match bytes {
            Some(_) => "{msg} {bytes} of {total_bytes}, {binary_bytes_per_sec}, {eta} left",
            None => "{msg} {bytes}, {binary_bytes_per_sec}, {elapsed}",
        };
        if let Some(bytes) = bytes {
            self.0.set_length(bytes);
        }
        if let Ok(style) = ProgressStyle::with_template(style) {
            self.0.set_style(style);
        }
        if !self.0.is_hidden() {
            self.0.enable_steady_tick(Duration::from_millis(200));
        }
    }

    /// The same reader, whose bytes are counted.
    pub(crate) fn counted(&self, reader: impl Read + 'static) -> impl Read + 'static {
        self.0.wrap_read(reader)
    }

    /// How many records there were so far.
    pub(crate) fn records(&self, number: u64) {
        if !self.0.is_hidden() {
            self.0.set_message(format!("{} records,", crate::amount::show_count(number)));
        }
    }

    /// Takes the line away.
    pub(crate) fn done(&self) {
        self.0.finish_and_clear();
    }
}

/// Also when something went wrong: what is said of it has the line to itself.
impl Drop for Progress {
    fn drop(&mut self) {
        self.done();
    }
}
