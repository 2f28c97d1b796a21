//! Records that have no key: the first one ends the run, or `--skip-bad` counts them and goes on.

use crate::amount::show_things;
use crate::output::{told, warn};
use anyhow::{Context, Error, Result, bail};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

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
    Never,
    Counted,
}

/// The file that skipped records are written to.
#[derive(Debug)]
struct List {
    name: String,
    file: BufWriter<File>,
    /// What comes before the first record.
    header: Vec<u8>,
    end: &'static [u8],
    open: bool,
}

impl Skipped {
    /// A bad record is an error.
    pub(crate) fn never() -> Self {
        Self { policy: Policy::Never, count: 0, first: None, list: None }
    }

    /// Bad records are counted.
    pub(crate) fn counted() -> Self {
        Self { policy: Policy::Counted, ..Self::never() }
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
        let list = List { name, file, header: Vec::new(), end, open: false };
        Ok(Self { list: Some(list), ..Self::counted() })
    }

    #[cfg(test)]
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
        if self.policy == Policy::Never {
            return Err(error);
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

    /// Says how many records were skipped, also if the run failed.
    pub(crate) fn tell(self) -> Result<()> {
        if let Some(first) = self.first {
            let records = show_things(self.count, "bad record");
            let verb = if self.count == 1 { "was" } else { "were" };
            warn(&format!("{records} {verb} skipped; the first: {first}"));
        }
        match self.list {
            Some(mut list) => list.file.flush().with_context(|| list.name),
            None => Ok(()),
        }
    }
}

impl List {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if let Some(last) = bytes.last() {
            self.open = Some(last) != self.end.last();
        }
        self.file.write_all(bytes).with_context(|| self.name.clone())
    }
}
