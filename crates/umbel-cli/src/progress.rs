//! The progress of long work: one line on standard error, if that is a terminal.

use crate::amount::{show_bytes, show_count, show_things};
use crate::output::is_quiet;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::cell::RefCell;
use std::fmt;
use std::io::{self, IsTerminal, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Work that takes no longer than this shows no progress.
const DELAY: Duration = Duration::from_secs(1);
/// How often the line is drawn.
const TICK: Duration = Duration::from_millis(200);

/// A line on the terminal for work that takes longer than a second, or nothing.
pub(crate) struct Progress {
    shown: bool,
    step: RefCell<Option<Step>>,
}

/// A part of the work that is under way.
struct Step {
    bar: ProgressBar,
    records: Arc<AtomicU64>,
    /// Dropped to stop the timer, which shows the line when the delay is over.
    timer: Option<(Sender<()>, JoinHandle<()>)>,
}

/// What the line says.
#[derive(Clone, Copy)]
enum What {
    /// Records that are read, and their bytes, before they are unpacked.
    Reading,
    /// Anything else, with how much of it is done if that is known.
    Work(&'static str),
}

impl Progress {
    /// For a verb that prints while it works: nothing is shown if standard output is a terminal too, since two writers on one screen
    /// disturb each other.
    pub(crate) fn new(wanted: bool) -> Self {
        Self::shown(wanted && !io::stdout().is_terminal())
    }

    /// For work during which nothing is printed.
    pub(crate) fn alone() -> Self {
        Self::shown(true)
    }

    fn shown(wanted: bool) -> Self {
        let shown = wanted && io::stderr().is_terminal() && !is_quiet();
        Self { shown, step: RefCell::new(None) }
    }

    /// Begins to read records. How many bytes there will be, if that is known.
    pub(crate) fn expect(&self, bytes: Option<u64>) {
        self.begin(What::Reading, bytes, String::new());
    }

    /// Begins something else: how many keys it is done with, if [`advance`](Self::advance) will tell.
    pub(crate) fn work(&self, verb: &'static str, keys: Option<u64>, on: &str) {
        self.begin(What::Work(verb), keys, on.to_owned());
    }

    fn begin(&self, what: What, length: Option<u64>, on: String) {
        self.done();
        if !self.shown {
            return;
        }
        let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::hidden());
        let records = Arc::new(AtomicU64::new(0));
        let read = Arc::clone(&records);
        let line = move |state: &ProgressState, out: &mut dyn fmt::Write| {
            let (done, length, seconds) = (state.pos(), state.len(), state.elapsed().as_secs_f64());
            let records = read.load(Ordering::Relaxed);
            // What cannot be written is not shown.
            let _ = match what {
                What::Reading => reading(out, records, done, length, seconds),
                What::Work(verb) => work(out, verb, &on, done, length, seconds),
            };
        };
        if let Ok(style) = ProgressStyle::with_template("{line}") {
            bar.set_style(style.with_key("line", line));
        }
        let (stop, stopped) = channel::<()>();
        let late = bar.clone();
        let timer = std::thread::spawn(move || {
            if stopped.recv_timeout(DELAY) == Err(RecvTimeoutError::Timeout) {
                late.set_draw_target(ProgressDrawTarget::stderr());
                late.enable_steady_tick(TICK);
            }
        });
        *self.step.borrow_mut() = Some(Step { bar, records, timer: Some((stop, timer)) });
    }

    /// The same reader, whose bytes are counted.
    pub(crate) fn counted(&self, reader: impl Read + 'static) -> impl Read + 'static {
        let step = self.step.borrow();
        let bar = step.as_ref().map_or_else(ProgressBar::hidden, |step| step.bar.clone());
        bar.wrap_read(reader)
    }

    /// How many records there were so far.
    pub(crate) fn records(&self, number: u64) {
        if let Some(step) = &*self.step.borrow() {
            step.records.store(number, Ordering::Relaxed);
        }
    }

    /// So many keys more are done with.
    pub(crate) fn advance(&self, keys: u64) {
        if let Some(step) = &*self.step.borrow() {
            step.bar.inc(keys);
        }
    }

    /// Takes the line away.
    pub(crate) fn done(&self) {
        let Some(mut step) = self.step.borrow_mut().take() else { return };
        if let Some((stop, timer)) = step.timer.take() {
            drop(stop);
            let _ = timer.join();
        }
        step.bar.finish_and_clear();
    }
}

/// Also when something went wrong: what is said of it has the line to itself.
impl Drop for Progress {
    fn drop(&mut self) {
        self.done();
    }
}

fn reading(
    out: &mut dyn fmt::Write,
    records: u64,
    done: u64,
    length: Option<u64>,
    seconds: f64,
) -> fmt::Result {
    if done == 0 {
        return out.write_str("waiting for input");
    }
    write!(out, "{}, {}", show_things(records, "record"), show_bytes(done))?;
    if let Some(length) = length {
        write!(out, " of {}", show_bytes(length.max(done)))?;
    }
    write!(out, ", {}/s", show_bytes((done as f64 / seconds.max(0.001)) as u64))?;
    tell_left(out, done, length, seconds)
}

fn work(
    out: &mut dyn fmt::Write,
    verb: &str,
    on: &str,
    done: u64,
    length: Option<u64>,
    seconds: f64,
) -> fmt::Result {
    write!(out, "{verb} {on}")?;
    match length {
        Some(length) => write!(out, ", {} of {} keys", show_count(done), show_count(length))?,
        None => write!(out, ", {seconds:.0} s")?,
    }
    tell_left(out, done, length, seconds)
}

fn tell_left(
    out: &mut dyn fmt::Write,
    done: u64,
    length: Option<u64>,
    seconds: f64,
) -> fmt::Result {
    match length.and_then(|length| left(done, length, seconds)) {
        Some(left) => write!(out, ", {left}"),
        None => Ok(()),
    }
}

/// How long the rest takes, once there is something to judge it by: two seconds, and two hundredths of the work.
fn left(done: u64, length: u64, seconds: f64) -> Option<String> {
    if seconds < 2.0 || done >= length || done.saturating_mul(50) < length {
        return None;
    }
    let left = seconds * (length - done) as f64 / done as f64;
    Some(match left {
        left if left < 90.0 => format!("{left:.0} s left"),
        left if left < 5_400.0 => format!("{:.0} min left", left / 60.0),
        left => format!("{:.1} h left", left / 3_600.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_estimated_only_when_there_is_something_to_judge_it_by() {
        // At the start: no time has passed, and nearly nothing is done.
        assert_eq!(left(1, 1_000_000, 0.1), None);
        assert_eq!(left(0, 1_000_000, 10.0), None);
        assert_eq!(left(10_000, 1_000_000, 10.0), None);
        assert_eq!(left(500_000, 1_000_000, 1.0), None);
        assert_eq!(left(500_000, 1_000_000, 10.0).as_deref(), Some("10 s left"));
        assert_eq!(left(20_000, 1_000_000, 10.0).as_deref(), Some("8 min left"));
        assert_eq!(left(20_000, 1_000_000, 200.0).as_deref(), Some("2.7 h left"));
        // More came than was expected, as from a file that grows.
        assert_eq!(left(1_100_000, 1_000_000, 10.0), None);
    }

    #[test]
    fn every_frame_makes_sense() {
        let frame = |records, done, length, seconds| {
            let mut out = String::new();
            reading(&mut out, records, done, length, seconds).unwrap();
            out
        };
        assert_eq!(frame(0, 0, None, 1.0), "waiting for input");
        assert_eq!(frame(0, 0, Some(10), 1.0), "waiting for input");
        assert_eq!(frame(2_000, 1 << 20, None, 1.0), "2,000 records, 1.0 MiB, 1.0 MiB/s");
        assert_eq!(
            frame(2_000, 1 << 20, Some(4 << 20), 4.0),
            "2,000 records, 1.0 MiB of 4.0 MiB, 256.0 KiB/s, 12 s left"
        );
        let mut out = String::new();
        work(&mut out, "inserting into", "f", 5, Some(1_000), 1.0).unwrap();
        assert_eq!(out, "inserting into f, 5 of 1,000 keys");
    }
}
