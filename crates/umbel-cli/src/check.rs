//! `umbel check`: prints the records that may be in a filter.

use crate::asked::Asked;
use crate::cli::{Check, Records};
use crate::key::folded;
use crate::output::Found;
use crate::progress::Progress;
use crate::reading::{Batch, Reader, read};
use anyhow::Result;
use std::ffi::OsString;
use umbel::hash::{Digest, Digester};

/// Whether a record was found, or with `-v` one that is not there.
pub(crate) fn run(args: Check) -> Result<bool> {
    let mut checker = Checker {
        filter: Asked::open(&args.filter)?,
        output: Found::new(args.records.end()),
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
        checker.items(&args.item, &args.records)?;
    }
    if args.count {
        checker.output.write(format!("{}\n", checker.count).as_bytes())?;
    }
    checker.output.flush()?;
    Ok(checker.count > 0)
}

struct Checker {
    filter: Asked,
    output: Found,
    /// The answer that is printed.
    wanted: bool,
    silent: bool,
    quiet: bool,
    digests: Vec<Digest>,
    found: Vec<bool>,
    count: u64,
}

impl Checker {
    /// Asks for keys that were given as they are.
    fn items(&mut self, items: &[OsString], how: &Records) -> Result<()> {
        for item in items {
            let key = folded(item.as_encoded_bytes(), how.ignore_case);
            let mut found = [false];
            self.filter.contains(&[self.filter.hasher().digest(&key)], &mut found)?;
            if found == [self.wanted] {
                self.count += 1;
                if !self.silent {
                    self.output.write(&[item.as_encoded_bytes(), how.end()].concat())?;
                }
            }
        }
        Ok(())
    }
}

impl Reader for Checker {
    fn header(&mut self, record: &[u8]) -> Result<()> {
        if !self.silent {
            self.output.write(record)?;
        }
        Ok(())
    }

    fn batch(&mut self, batch: &Batch<'_>) -> Result<bool> {
        batch.digests(self.filter.hasher(), &mut self.digests)?;
        self.found.clear();
        self.found.resize(self.digests.len(), false);
        self.filter.contains(&self.digests, &mut self.found)?;
        let mut from = 0;
        for run in self.found.chunk_by(|one, next| one == next) {
            let (found, records) = (run[0], from..from + run.len());
            from = records.end;
            if found == self.wanted {
                self.count += records.len() as u64;
                if !self.silent {
                    self.output.write(batch.run(records))?;
                }
            }
        }
        let enough = self.quiet || !self.output.is_open();
        Ok(!(enough && self.count > 0))
    }

    fn pause(&mut self) -> Result<()> {
        self.output.flush()
    }
}
