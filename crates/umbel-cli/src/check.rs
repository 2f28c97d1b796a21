//! `umbel check`: prints the records that may be in a filter.

use crate::change::load;
use crate::cli::Check;
use crate::output;
use crate::progress::Progress;
use crate::reading::{Batch, Reader, read};
use anyhow::Result;
use std::io::{BufWriter, StdoutLock, Write};
use umbel::any::AnyFilter;
use umbel::hash::{Digest, Digester};

/// Whether a record was found, or with `-v` one that is not there.
pub(crate) fn run(args: Check) -> Result<bool> {
    let mut checker = Checker {
        filter: load(&args.filter)?,
        output: output::stdout(),
        wanted: !args.invert_match,
        silent: args.count || args.quiet,
        quiet: args.quiet,
        digests: Vec::new(),
        found: Vec::new(),
        count: 0,
    };
    if args.item.is_empty() {
        let progress = Progress::new(!args.quiet);
        read(args.files, &args.records, &progress, &mut checker)?;
    } else {
        checker.items(&args.item)?;
    }
    if args.count {
        writeln!(checker.output, "{}", checker.count)?;
    }
    checker.output.flush()?;
    Ok(checker.count > 0)
}

struct Checker {
    filter: AnyFilter,
    output: BufWriter<StdoutLock<'static>>,
    /// The answer that is printed.
    wanted: bool,
    silent: bool,
    quiet: bool,
    digests: Vec<Digest>,
    found: Vec<bool>,
    count: u64,
}

impl Checker {
    fn items(&mut self, items: &[String]) -> Result<()> {
        for item in items {
            if self.filter.contains(item.as_bytes())? == self.wanted {
                self.count += 1;
                if !self.silent {
                    writeln!(self.output, "{item}")?;
                }
            }
        }
        Ok(())
    }
}

impl Reader for Checker {
    fn header(&mut self, record: &[u8]) -> Result<()> {
        if !self.silent {
            self.output.write_all(record)?;
        }
        Ok(())
    }

    fn batch(&mut self, batch: &Batch<'_>) -> Result<bool> {
        self.digests.clear();
        let hasher = *self.filter.hasher();
        batch.for_keys(|key| self.digests.push(hasher.digest(key)))?;
        self.found.clear();
        self.found.resize(self.digests.len(), false);
        self.filter.contains_digests(&self.digests, &mut self.found);
        let mut from = 0;
        for run in self.found.chunk_by(|one, next| one == next) {
            let (found, records) = (run[0], from..from + run.len());
            from = records.end;
            if found == self.wanted {
                self.count += records.len() as u64;
                if !self.silent {
                    self.output.write_all(batch.run(records))?;
                }
            }
        }
        Ok(!(self.quiet && self.count > 0))
    }

    fn pause(&mut self) -> Result<()> {
        Ok(self.output.flush()?)
    }
}
