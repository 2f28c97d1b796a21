//! Records that have no key: the first one ends the run, or `--skip-bad` counts them and goes on.

use crate::amount::show_things;
use crate::output::{told, warn};
use anyhow::{Context, Error, Result, anyhow, bail};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// What was skipped so far.
#[derive(Debug)]
pub(crate) struct Skipped {
    policy: Policy,
    count: u64,
    /// What was wrong with the first one.
    first: Option<String>,
    list: Option<List>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    /// The first bad record ends the run; whether the verb could skip it.
    Never {
        can_skip: bool,
    },
    Counted,
}

/// The file that skipped records are written to.
#[derive(Debug)]
struct List {
    name: String,
    file: BufWriter<File>,
    /// Where the file is, if it was made for the list: a device is not taken away.
    made: Option<PathBuf>,
    /// Whether nothing was written yet, and whether something could not be.
    empty: bool,
    failed: bool,
    /// What comes before the first record.
    header: Vec<u8>,
    end: &'static [u8],
    open: bool,
}

impl Skipped {
    /// A bad record is an error, which names `--skip-bad` if the verb has it.
    pub(crate) fn never(can_skip: bool) -> Self {
        Self { policy: Policy::Never { can_skip }, count: 0, first: None, list: None }
    }

    /// Bad records are counted.
    pub(crate) fn counted() -> Self {
        Self { policy: Policy::Counted, ..Self::never(true) }
    }

    /// Bad records are written to a new file, too, and end like this.
    pub(crate) fn listed(path: &Path, end: &'static [u8]) -> Result<Self> {
        let name = path.display().to_string();
        if crate::input::is_standard(path) {
            bail!("--bad -: standard output is for results; name a file, or /dev/stderr");
        }
        let is_there = path.symlink_metadata().is_ok();
        if is_there && path.metadata().is_ok_and(|there| there.is_file()) {
            bail!("--bad {name}: the file is there already; remove it, or name another one");
        }
        let file = File::options().append(true).create_new(!is_there).open(path);
        let file = BufWriter::new(file.with_context(|| format!("--bad {name}"))?);
        let made = (!is_there).then(|| path.to_owned());
        let header = Vec::new();
        let list = List { name, file, made, empty: true, failed: false, header, end, open: false };
        Ok(Self { list: Some(list), ..Self::counted() })
    }

    /// How many records were skipped.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The header that the list begins with, if it gets records.
    pub(crate) fn header(&mut self, header: &[u8]) {
        if let Some(list) = &mut self.list {
            list.header = header.to_vec();
        }
    }

    /// Counts a bad record, or gives the error back. The record is written by [`write`](Self::write), in as many parts as it comes in.
    pub(crate) fn refuse(&mut self, error: Error) -> Result<()> {
        if let Policy::Never { can_skip } = self.policy {
            return Err(if can_skip { advised(&error) } else { error });
        }
        self.count += 1;
        self.first.get_or_insert_with(|| told(&error));
        if let Some(list) = &mut self.list {
            let header = std::mem::take(&mut list.header);
            list.write(&header)?;
            if list.open {
                list.write(list.end)?;
            }
        }
        Ok(())
    }

    /// Writes bytes of the bad record to the list.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.list.as_mut().map_or(Ok(()), |list| list.write(bytes))
    }

    /// Says how many records were skipped, also if the run failed. Then a list is not left behind that is empty, and none that could
    /// not be written.
    pub(crate) fn tell(self, has_failed: bool) -> Result<()> {
        if let Some(first) = self.first {
            let records = show_things(self.count, "bad record");
            let verb = if self.count == 1 { "was" } else { "were" };
            warn(&format!("{records} {verb} skipped; the first: {first}"));
        }
        match self.list {
            Some(list) => list.finish(has_failed),
            None => Ok(()),
        }
    }
}

/// The error, and at the end of what can be done about it, that such records can be skipped.
fn advised(error: &Error) -> Error {
    let has_advice = error.root_cause().to_string().contains("; ");
    let or = if has_advice { ", or" } else { ";" };
    anyhow!("{}{or} skip such records with --skip-bad", told(error))
}

impl List {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if let Some(last) = bytes.last() {
            self.open = Some(last) != self.end.last();
        }
        self.empty &= bytes.is_empty();
        let written = self.file.write_all(bytes);
        self.failed |= written.is_err();
        written.with_context(|| self.name.clone())
    }

    fn finish(mut self, has_failed: bool) -> Result<()> {
        let written = self.file.flush();
        if (self.failed || written.is_err() || (has_failed && self.empty))
            && let Some(path) = &self.made
        {
            let _ = std::fs::remove_file(path);
        }
        // What is still in the buffer goes nowhere.
        let _ = self.file.into_parts();
        written.with_context(|| self.name)
    }
}
