//! Records in batches, with their keys: what all verbs that read records do alike.

use crate::cli::Records;
use crate::input::{Cut, How, Input, Place, Run, TooLong, look_for};
use crate::key::{Keys, Part, columns};
use crate::output::shown;
use crate::progress::Progress;
use crate::skipped::Skipped;
use anyhow::{Context, Error, Result, bail};
use std::ops::Range;
use std::path::PathBuf;
use umbel::any::AnyHasher;
use umbel::hash::{Digest, Digester};

/// Records that are handed over together, at most.
const BATCH: usize = 2048;
/// The most names of columns that a message lists.
const NAMES: usize = 50;

/// Some records that follow each other in `bytes`, and their keys. All of them have a key.
pub(crate) struct Batch<'a> {
    bytes: &'a [u8],
    records: &'a [Range<usize>],
    keys: &'a Keys,
    found: &'a Found,
    cut: Cut,
    name: &'a str,
    /// The number of the first record in its input, and the line that it starts on.
    first: u64,
    line: u64,
}

/// The keys of a batch, one behind the other; nothing if they are the records.
#[derive(Default)]
struct Found {
    keys: Vec<u8>,
    ends: Vec<usize>,
    /// Where keys stand in the bytes of the batch, if all of them stand there as they are.
    inside: Vec<Range<usize>>,
    /// How many keys each record has, if not one.
    counts: Vec<usize>,
}

impl Found {
    fn clear(&mut self) {
        self.keys.clear();
        self.ends.clear();
        self.inside.clear();
        self.counts.clear();
    }
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

    /// The name of the input.
    pub(crate) fn name(&self) -> &'a str {
        self.name
    }

    /// How keys are found.
    pub(crate) fn keys(&self) -> &'a Keys {
        self.keys
    }

    /// The line that each record starts on, or its number if records are no lines.
    pub(crate) fn lines(&self) -> impl Iterator<Item = u64> + '_ {
        let (mut number, mut line) = (self.first, self.line);
        self.records.iter().map(move |range| {
            let here = if self.cut.is_csv() { line } else { number };
            number += 1;
            if self.cut.is_csv() {
                line += lines(&self.bytes[range.clone()]);
            }
            here
        })
    }

    /// How many keys each record has; nothing if each has one.
    pub(crate) fn counts(&self) -> &'a [usize] {
        &self.found.counts
    }

    /// Calls `each` with all keys in their order.
    pub(crate) fn for_keys(&self, mut each: impl FnMut(&[u8])) {
        if self.keys.is_whole() {
            for range in self.records {
                each(self.keys.content(&self.bytes[range.clone()]));
            }
            return;
        }
        for range in &self.found.inside {
            each(&self.bytes[range.clone()]);
        }
        let mut start = 0;
        for end in &self.found.ends {
            each(&self.found.keys[start..*end]);
            start = *end;
        }
    }

    /// The digests of all keys in their order.
    pub(crate) fn digests(&self, hasher: &AnyHasher, digests: &mut Vec<Digest>) {
        digests.clear();
        self.add_digests(hasher, digests);
    }

    /// The same, behind those that are there.
    pub(crate) fn add_digests(&self, hasher: &AnyHasher, digests: &mut Vec<Digest>) {
        self.for_keys(|key| digests.push(hasher.digest(key)));
    }
}

fn lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// What is done with records.
pub(crate) trait Reader {
    /// The header of CSV, once.
    fn header(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    /// Some records. Whether there should be more.
    fn batch(&mut self, batch: &Batch<'_>) -> Result<bool>;

    /// Whether the rest of this input is needed, asked after each batch.
    fn wants_rest(&self) -> bool {
        true
    }

    /// An input is finished, or the rest of it is not needed.
    fn input_done(&mut self, _name: &str) -> Result<()> {
        Ok(())
    }

    /// All that has come so far was handed over: a program that waits for results should have them.
    fn pause(&mut self) -> Result<()> {
        Ok(())
    }
}

/// How many records a run has read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    /// Those that have a key.
    pub(crate) records: u64,
    /// Those that were left out.
    pub(crate) skipped: u64,
}

/// Reads all records of all inputs. With `--skip-bad` those without a key are counted and left out, and else the first one
/// ends the run after the records before it were handed over.
pub(crate) fn read(
    files: Vec<PathBuf>,
    how: &Records,
    progress: &Progress,
    reader: &mut impl Reader,
) -> Result<Counts> {
    // Wrong options and missing files are noticed before there is a file of bad records.
    let keys = how.keys()?;
    look_for(&files)?;
    let mut skipped = how.skipped()?;
    let total = read_all(files, how, keys, progress, reader, &mut skipped);
    progress.done();
    let count = skipped.count();
    // What was skipped is said also if the run fails, and the failure is said after it.
    let told = skipped.tell(total.is_err());
    let counts = Counts { records: total?, skipped: count };
    told?;
    Ok(counts)
}

fn read_all(
    files: Vec<PathBuf>,
    how: &Records,
    mut keys: Keys,
    progress: &Progress,
    reader: &mut impl Reader,
    skipped: &mut Skipped,
) -> Result<u64> {
    let (cut, limits) = (how.cut(), how.limits());
    let input_how = How { cut, limits, has_header: how.has_header() };
    let mut input = Input::new(files, input_how, progress);
    let mut header = None::<Vec<u8>>;
    let (max, found) = (limits.record, Found::default());
    let mut batches = Batches { cut, max, ranges: Vec::new(), found, total: 0 };
    while let Some(mut run) = input.next_run(skipped)? {
        if run.bytes.is_empty() {
            reader.input_done(run.name)?;
            continue;
        }
        let (mut start, mut ends) = (0, run.ends);
        if how.has_header() && run.record == 1 {
            let record = &run.bytes[..ends[0]];
            if let Some(error) = batches.too_long(&run, record, 1, 0) {
                return Err(error);
            }
            match &header {
                None => {
                    find_columns(how, &mut keys, record).with_context(|| run.name.to_owned())?;
                    reader.header(record)?;
                    skipped.header(record);
                    header = Some(record.to_vec());
                }
                Some(header) => same_header(&keys, header, record, run.name)?,
            }
            (start, ends) = (ends[0], &ends[1..]);
            run.record += 1;
        }
        match batches.hand_over(&run, start, ends, &keys, reader, skipped)? {
            More::All => {}
            More::Nothing => return Ok(batches.total),
            More::NextInput => {
                reader.input_done(run.name)?;
                input.next_input();
            }
        }
        reader.pause()?;
        progress.records(batches.total);
    }
    Ok(batches.total)
}

/// What a reader still needs.
enum More {
    All,
    NextInput,
    Nothing,
}

/// Cuts runs into batches.
struct Batches {
    cut: Cut,
    max: u64,
    ranges: Vec<Range<usize>>,
    found: Found,
    total: u64,
}

impl Batches {
    /// Hands over the records from `start` on.
    fn hand_over(
        &mut self,
        run: &Run<'_>,
        start: usize,
        mut ends: &[usize],
        keys: &Keys,
        reader: &mut impl Reader,
        skipped: &mut Skipped,
    ) -> Result<More> {
        let (mut at, mut first, mut line) = (start, run.record, run.line);
        if self.cut.is_csv() {
            line += lines(&run.bytes[..start]);
        }
        while at < run.bytes.len() {
            self.next_ranges(run.bytes, &mut at, &mut ends);
            let mut from = 0;
            while from < self.ranges.len() {
                let (good, error) = self.good(run, from, first, line, keys);
                let records = &self.ranges[from..from + good];
                if good > 0 {
                    let (bytes, found, cut, name) = (run.bytes, &self.found, self.cut, run.name);
                    let batch = Batch { bytes, records, keys, found, cut, name, first, line };
                    let more = reader.batch(&batch)?;
                    self.total += good as u64;
                    if !more {
                        return Ok(More::Nothing);
                    }
                    if !reader.wants_rest() {
                        return Ok(More::NextInput);
                    }
                }
                let mut done = good;
                if let Some(error) = error {
                    skipped.refuse(error)?;
                    skipped.write(&run.bytes[self.ranges[from + good].clone()])?;
                    done += 1;
                }
                if self.cut.is_csv() {
                    let start = self.ranges[from].start;
                    line += lines(&run.bytes[start..self.ranges[from + done - 1].end]);
                }
                first += done as u64;
                from += done;
            }
        }
        Ok(More::All)
    }

    /// The next records from `at` on; those of CSV end at `ends`.
    fn next_ranges(&mut self, bytes: &[u8], at: &mut usize, ends: &mut &[usize]) {
        self.ranges.clear();
        if let Cut::At(end) = self.cut {
            let start = *at;
            for found in memchr::memchr_iter(end, &bytes[start..]).take(BATCH) {
                self.ranges.push(*at..start + found + 1);
                *at = start + found + 1;
            }
            // The last one may have no end.
            if self.ranges.is_empty() {
                self.ranges.push(start..bytes.len());
                *at = bytes.len();
            }
            return;
        }
        let (some, rest) = ends.split_at(ends.len().min(BATCH));
        for end in some {
            self.ranges.push(*at..*end);
            *at = *end;
        }
        *ends = rest;
    }

    /// The error about a record that is longer than records may be.
    fn too_long(&self, run: &Run<'_>, record: &[u8], number: u64, start: usize) -> Option<Error> {
        is_longer(record, self.cut, self.max).then(|| {
            let line = run.line + lines(&run.bytes[..start]);
            let place = Place { name: run.name.to_owned(), cut: self.cut, record: number, line };
            TooLong { place, max: self.max }.into()
        })
    }

    /// How many records from this one on have a key before one has none, and what is wrong with that one. Finds their keys.
    fn good(
        &mut self,
        run: &Run<'_>,
        from: usize,
        first: u64,
        line: u64,
        keys: &Keys,
    ) -> (usize, Option<Error>) {
        self.found.clear();
        if keys.is_whole() {
            // Nothing but its length can be wrong.
            let long =
                |range: &Range<usize>| is_longer(&run.bytes[range.clone()], self.cut, self.max);
            let Some(number) = self.ranges[from..].iter().position(long) else {
                return (self.ranges.len() - from, None);
            };
            let range = &self.ranges[from + number];
            let line = line + lines(&run.bytes[self.ranges[from].start..range.start]);
            let place = Place {
                name: run.name.to_owned(),
                cut: self.cut,
                record: first + number as u64,
                line,
            };
            return (number, Some(TooLong { place, max: self.max }.into()));
        }
        let field = keys.single_field();
        for (number, range) in self.ranges[from..].iter().enumerate() {
            let record = &run.bytes[range.clone()];
            let place = || Place {
                name: run.name.to_owned(),
                cut: self.cut,
                record: first + number as u64,
                line: line + lines(&run.bytes[self.ranges[from].start..range.start]),
            };
            if is_longer(record, self.cut, self.max) {
                return (number, Some(TooLong { place: place(), max: self.max }.into()));
            }
            if let Some(field) = &field {
                match field.find(keys.content(record)) {
                    // It is a part of the record, whose start is known.
                    Ok(key) => {
                        let start = range.start + (key.as_ptr().addr() - record.as_ptr().addr());
                        self.found.inside.push(start..start + key.len());
                    }
                    Err(error) => return (number, Some(error.context(place().to_string()))),
                }
                continue;
            }
            let before = self.found.ends.len();
            if let Err(error) = keys.add(record, &mut self.found.keys, &mut self.found.ends) {
                return (number, Some(error.context(place().to_string())));
            }
            if keys.is_each() {
                self.found.counts.push(self.found.ends.len() - before);
            }
        }
        (self.ranges.len() - from, None)
    }
}

/// Whether a record has more bytes than it may, without its end.
fn is_longer(record: &[u8], cut: Cut, max: u64) -> bool {
    record.len() as u64 > max
        && record.strip_suffix(&[cut.end()]).unwrap_or(record).len() as u64 > max
}

/// An error if the files have other columns.
fn same_header(keys: &Keys, first: &[u8], header: &[u8], name: &str) -> Result<()> {
    if !columns_of(keys, first).eq(columns_of(keys, header)) {
        bail!(
            "{name}: expected the columns of the first file, {}; found {}",
            names(keys, first),
            names(keys, header)
        );
    }
    Ok(())
}

/// The names of the columns.
fn columns_of<'a>(
    keys: &Keys,
    header: &'a [u8],
) -> impl Iterator<Item = std::borrow::Cow<'a, [u8]>> + use<'a> {
    let between = if let Part::Csv(_, between) = keys.part { between } else { b',' };
    columns(keys.content(header), between)
}

/// The same for messages.
fn names(keys: &Keys, header: &[u8]) -> String {
    let names: Vec<String> =
        columns_of(keys, header).take(NAMES).map(|column| shown(&column)).collect();
    let more = columns_of(keys, header).count() - names.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.join(", ") + &more
}

/// The numbers of the columns, now that there is a header. A name with commas is the name of one column, if there is such a column, and
/// else the names of several.
fn find_columns(how: &Records, keys: &mut Keys, header: &[u8]) -> Result<()> {
    let Part::Csv(_, between) = keys.part else { return Ok(()) };
    let mut numbers = Vec::new();
    for wanted in &how.csv {
        let position =
            |name: &str| columns_of(keys, header).position(|column| *column == *name.as_bytes());
        if let Some(number) = how.column_number(wanted)?.or_else(|| position(wanted)) {
            numbers.push(number);
            continue;
        }
        for name in wanted.split(',') {
            match how.column_number(name)?.or_else(|| position(name)) {
                Some(number) => numbers.push(number),
                None => bail!(
                    "there is no column named {name:?}; the columns are {}",
                    names(keys, header)
                ),
            }
        }
    }
    keys.part = Part::Csv(numbers, between);
    Ok(())
}
