//! Records that are printed, or not, as they come.

use super::seen::Seen;
use crate::output::Lines;
use crate::reading::{Batch, Reader};
use anyhow::Result;
use std::io::Write;

/// Where records go.
pub(super) trait Sink {
    fn write(&mut self, records: &[u8]) -> Result<()>;
    fn flush(&mut self) -> Result<()>;
}

impl<W: Write> Sink for Lines<W> {
    fn write(&mut self, records: &[u8]) -> Result<()> {
        self.write(records)
    }

    fn flush(&mut self) -> Result<()> {
        self.flush()
    }
}

/// No output at all.
pub(super) struct Nowhere;

impl Sink for Nowhere {
    fn write(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Which records are printed.
pub(super) enum Wanted<'a> {
    /// The first of each key.
    First,
    /// All but the first.
    Repeats,
    /// The second of each key, as this tells.
    Second(&'a mut Seen),
}

/// What went through.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) records: u64,
    /// Those without a key, which are no records here.
    pub(super) skipped: u64,
    pub(super) new: u64,
    pub(super) printed: u64,
    pub(super) bytes: u64,
    pub(super) repeated_bytes: u64,
}

/// Records on their way from the input to the output.
pub(super) struct Stream<'s, 'o, 'd> {
    seen: &'s mut Seen,
    wanted: Wanted<'s>,
    output: &'o mut dyn Sink,
    /// Where the records go that were seen before.
    duplicates: Option<&'d mut dyn Sink>,
    pub(super) totals: Totals,
    keys: Vec<u128>,
    fresh: Vec<bool>,
}

impl<'s, 'o, 'd> Stream<'s, 'o, 'd> {
    pub(super) const fn new(
        seen: &'s mut Seen,
        wanted: Wanted<'s>,
        output: &'o mut dyn Sink,
        duplicates: Option<&'d mut dyn Sink>,
        totals: Totals,
    ) -> Self {
        Self { seen, wanted, output, duplicates, totals, keys: Vec::new(), fresh: Vec::new() }
    }

    /// Records that are all new, or all repeated.
    fn run(&mut self, batch: &Batch<'_>, from: usize, to: usize) -> Result<()> {
        let (is_new, count) = (self.fresh[from], (to - from) as u64);
        let bytes = batch.run(from..to);
        self.totals.records += count;
        self.totals.bytes += bytes.len() as u64;
        if is_new {
            self.totals.new += count;
        } else {
            self.totals.repeated_bytes += bytes.len() as u64;
        }
        match (&mut self.wanted, is_new) {
            (Wanted::First, true) | (Wanted::Repeats, false) => {
                self.totals.printed += count;
                self.output.write(bytes)
            }
            (Wanted::First, false) => {
                self.duplicates.as_mut().map_or(Ok(()), |duplicates| duplicates.write(bytes))
            }
            (Wanted::Repeats | Wanted::Second(_), true) => Ok(()),
            (Wanted::Second(again), false) => {
                let mut second = vec![false; to - from];
                let first = self.totals.records - count + 1;
                let known = again.insert(&self.keys[from..to], first, &mut second)?;
                for (number, _) in second[..known].iter().enumerate().filter(|(_, new)| **new) {
                    self.totals.printed += 1;
                    self.output.write(batch.record(from + number))?;
                }
                again.stopped().map_or(Ok(()), Err)
            }
        }
    }
}

impl Reader for Stream<'_, '_, '_> {
    fn header(&mut self, record: &[u8]) -> Result<()> {
        self.output.write(record)?;
        self.duplicates.as_mut().map_or(Ok(()), |duplicates| duplicates.write(record))
    }

    fn batch(&mut self, batch: &Batch<'_>) -> Result<bool> {
        self.fresh.clear();
        self.fresh.resize(batch.len(), false);
        self.seen.digest(batch, &mut self.keys);
        let first = self.totals.records + 1;
        let known = self.seen.insert(&self.keys, first, &mut self.fresh)?;
        self.fresh.truncate(known);
        let mut from = 0;
        while from < known {
            let same = self.fresh[from..].iter().take_while(|fresh| **fresh == self.fresh[from]);
            let to = from + same.count();
            self.run(batch, from, to)?;
            from = to;
        }
        // What came before is as good as ever.
        match self.seen.stopped() {
            None => Ok(true),
            Some(error) => {
                self.output.flush()?;
                Err(error)
            }
        }
    }

    fn pause(&mut self) -> Result<()> {
        self.output.flush()
    }
}
