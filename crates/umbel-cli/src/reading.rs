//! Records in batches, with their keys: what all verbs that read records do alike.

use crate::cli::Records;
use crate::input::{Cut, Input, Run, TooLong};
use crate::key::{Keys, Part, csv_fields};
use crate::output::shown;
use crate::progress::Progress;
use anyhow::{Context, Result, bail};
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use umbel::any::AnyHasher;
use umbel::hash::{Digest, Digester};

/// Records that are handed over together, at most.
const BATCH: usize = 2048;
/// The most names of columns that a message lists.
const NAMES: usize = 50;

/// Some records that follow each other in `bytes`, and their keys.
pub(crate) struct Batch<'a> {
    bytes: &'a [u8],
    records: &'a [Range<usize>],
    keys: &'a Keys,
    name: &'a str,
    /// The number of the first record in its input.
    first: u64,
}

impl<'a> Batch<'a> {
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// The record with its end.
    pub(crate) fn record(&self, number: usize) -> &'a [u8] {
        &self.bytes[self.records[number].clone()]
    }

    /// The bytes from the first record of a range to its last.
    pub(crate) fn run(&self, numbers: Range<usize>) -> &'a [u8] {
        &self.bytes[self.records[numbers.start].start..self.records[numbers.end - 1].end]
    }

    /// Calls `each` with all keys in their order.
    pub(crate) fn for_keys(&self, mut each: impl FnMut(&[u8])) -> Result<()> {
        if self.keys.is_whole() {
            for range in self.records {
                each(self.keys.content(&self.bytes[range.clone()]));
            }
            return Ok(());
        }
        for number in 0..self.len() {
            let key = self.keys.of(self.record(number));
            let key = key.with_context(|| NoKey { number, place: self.place(number) })?;
            each(&key);
        }
        Ok(())
    }

    /// The digests of all keys in their order.
    pub(crate) fn digests(&self, hasher: &AnyHasher, digests: &mut Vec<Digest>) -> Result<()> {
        digests.clear();
        self.add_digests(hasher, digests)
    }

    /// The same, behind those that are there.
    pub(crate) fn add_digests(&self, hasher: &AnyHasher, digests: &mut Vec<Digest>) -> Result<()> {
        self.for_keys(|key| digests.push(hasher.digest(key)))
    }

    /// Where a record is from, for messages.
    fn place(&self, number: usize) -> String {
        format!("{}: record {}", self.name, self.first + number as u64)
    }
}

/// A record of a batch has no key. Readers find that out before they do anything with the others.
#[derive(Debug)]
struct NoKey {
    number: usize,
    place: String,
}

impl fmt::Display for NoKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)
    }
}

/// What is done with records.
pub(crate) trait Reader {
    /// The header of CSV, once.
    fn header(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    /// Some records. Whether there should be more.
    fn batch(&mut self, batch: &Batch<'_>) -> Result<bool>;

    /// All that has come so far was handed over: whoever waits for results should have them.
    fn pause(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Reads all records of all inputs; how many there were.
pub(crate) fn read(
    files: Vec<PathBuf>,
    how: &Records,
    progress: &Progress,
    reader: &mut impl Reader,
) -> Result<u64> {
    let mut keys = how.keys()?;
    let cut = how.cut();
    let max = how.max_record;
    let mut input = Input::new(files, cut, max, progress);
    let (mut header, mut ranges, mut total) = (None::<Vec<u8>>, Vec::new(), 0);
    while let Some(run) = input.next_run()? {
        let (mut rest, mut first) = (run.bytes, run.record);
        if how.has_header() && first == 1 {
            let record;
            (record, rest) = cut.first(rest);
            if is_longer(record, cut, max) {
                return Err(too_long(&run, cut, max, first, 0));
            }
            first += 1;
            match &header {
                None => {
                    find_column(how, &mut keys, record).with_context(|| run.name.to_owned())?;
                    reader.header(record)?;
                    header = Some(record.to_vec());
                }
                Some(header) if !columns(&keys, header).eq(columns(&keys, record)) => {
                    bail!("{}: has another header than the first file", run.name)
                }
                Some(_) => {}
            }
        }
        let mut at = 0;
        while at < rest.len() {
            ranges.clear();
            cut_batch(cut, rest, &mut at, &mut ranges);
            // Records before one that is too long are as good as ever.
            let long = ranges.iter().position(|range| is_longer(&rest[range.clone()], cut, max));
            let long = long.map(|number| {
                let start = run.bytes.len() - rest.len() + ranges[number].start;
                ranges.truncate(number);
                too_long(&run, cut, max, first + number as u64, start)
            });
            if ranges.is_empty()
                && let Some(long) = long
            {
                return Err(long);
            }
            let records = &ranges[..];
            let batch = Batch { bytes: rest, records, keys: &keys, name: run.name, first };
            let more = match reader.batch(&batch) {
                Ok(more) => more,
                Err(error) => {
                    // What stands before a record without a key is as good as ever.
                    if let Some(NoKey { number: good @ 1.., .. }) = error.downcast_ref() {
                        reader.batch(&Batch { records: &ranges[..*good], ..batch })?;
                    }
                    return Err(error);
                }
            };
            (first, total) = (first + ranges.len() as u64, total + ranges.len() as u64);
            if !more {
                return Ok(total);
            }
            if let Some(long) = long {
                return Err(long);
            }
        }
        reader.pause()?;
        progress.records(total);
    }
    progress.done();
    Ok(total)
}

/// The next records from `at` on.
fn cut_batch(cut: Cut, bytes: &[u8], at: &mut usize, ranges: &mut Vec<Range<usize>>) {
    if let Cut::At(end) = cut {
        for found in memchr::memchr_iter(end, &bytes[*at..]).take(BATCH) {
            let start = ranges.last().map_or(*at, |last: &Range<usize>| last.end);
            ranges.push(start..*at + found + 1);
        }
        if let Some(last) = ranges.last() {
            *at = last.end;
            return;
        }
    }
    while *at < bytes.len() && ranges.len() < BATCH {
        let length = cut.first(&bytes[*at..]).0.len();
        ranges.push(*at..*at + length);
        *at += length;
    }
}

/// Whether a record has more bytes than it may, without its end.
fn is_longer(record: &[u8], cut: Cut, max: u64) -> bool {
    let end = match cut {
        Cut::At(end) => end,
        Cut::Csv(_) => b'\n',
    };
    record.strip_suffix(&[end]).unwrap_or(record).len() as u64 > max
}

/// The error about the record that starts here in a run.
fn too_long(run: &Run<'_>, cut: Cut, max: u64, record: u64, start: usize) -> anyhow::Error {
    let lines = memchr::memchr_iter(b'\n', &run.bytes[..start]).count() as u64;
    TooLong { name: run.name.to_owned(), cut, record, line: run.line + lines, max }.into()
}

/// The names of columns. A mark of UTF-8, as spreadsheets write it, is no part of the first.
fn columns<'a>(keys: &Keys, header: &'a [u8]) -> impl Iterator<Item = Cow<'a, [u8]>> + use<'a> {
    let content = keys.content(header);
    let between = if let Part::Csv(_, between) = keys.part { between } else { b',' };
    csv_fields(content.strip_prefix("\u{feff}".as_bytes()).unwrap_or(content), between)
}

/// The number of the column, now that there is a header.
fn find_column(how: &Records, keys: &mut Keys, header: &[u8]) -> Result<()> {
    let (Some(name), Part::Csv(usize::MAX, between)) = (&how.csv, &keys.part) else {
        return Ok(());
    };
    let number = columns(keys, header).position(|column| *column == *name.as_bytes());
    match number {
        Some(number) => keys.part = Part::Csv(number, *between),
        None => {
            let names: Vec<String> =
                columns(keys, header).take(NAMES).map(|column| shown(&column)).collect();
            let more = columns(keys, header).count() - names.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            bail!("there is no column {name:?}; there are {}{more}", names.join(", "))
        }
    }
    Ok(())
}
