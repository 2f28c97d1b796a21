//! What `umbel guard serve` prints on standard error: a line for every event.
//!
//! Lines are printed by a thread of their own, because a standard error that is not read must not hold up the guard. Lines that find
//! no room are left out.

use crate::output::{note, warn};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use umbel_guard::Event;

/// Lines that wait.
const LINES: usize = 1024;
/// How long the end of the process waits for them.
const PATIENCE: Duration = Duration::from_secs(1);

enum Line {
    Note(String),
    Warning(String),
    Last,
}

/// Clones print to the same thread.
#[derive(Clone)]
pub(super) struct Log {
    lines: SyncSender<Line>,
    ended: Arc<Mutex<Receiver<()>>>,
}

impl Log {
    pub(super) fn start() -> Self {
        let (lines, waiting) = sync_channel(LINES);
        let (end, ended) = channel();
        std::thread::spawn(move || {
            for line in waiting {
                match line {
                    Line::Note(text) => note(&text),
                    Line::Warning(text) => warn(&text),
                    Line::Last => break,
                }
            }
            let _ = end.send(());
        });
        Self { lines, ended: Arc::new(Mutex::new(ended)) }
    }

    /// Information, which `-q` silences.
    pub(super) fn note(&self, text: impl Into<String>) {
        let _ = self.lines.try_send(Line::Note(text.into()));
    }

    /// What `-q` does not silence.
    pub(super) fn warn(&self, text: impl Into<String>) {
        let _ = self.lines.try_send(Line::Warning(text.into()));
    }

    pub(super) fn event(&self, event: &Event) {
        match event.is_warning() {
            true => self.warn(event.to_string()),
            false => self.note(event.to_string()),
        }
    }

    /// Returns when all lines are printed, or nothing reads them.
    pub(super) fn end(&self) {
        if self.lines.try_send(Line::Last).is_ok() {
            let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = ended.recv_timeout(PATIENCE);
        }
    }
}
