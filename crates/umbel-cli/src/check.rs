//! `umbel check`: prints the records that may be in a filter.

use crate::asked::Asked;
use crate::change::of_parts;
use crate::cli::{Check, Records};
use crate::input::is_standard;
use crate::key::{Part, folded};
use crate::output::Found;
use crate::outputs::{Output, are_apart, stdout_is_apart};
use crate::progress::Progress;
use crate::reading::{Batch, Reader, read};
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::ops::Range;
use umbel::hash::{Digest, Digester};

/// Whether a record was found, or with `-v` one that is not there.
pub(crate) fn run(mut args: Check, quiet: bool) -> Result<bool> {
    let reads_stdin = args.item.is_empty()
        && (args.files.is_empty() || args.files.iter().any(|path| is_standard(path)));
    if is_standard(&args.filter) && reads_stdin {
        bail!(
            "standard input cannot be the filter and the records at once: name a file for one of them"
        );
    }
    args.records.each = args.each;
    // A wrong option is noticed before the filter is read.
    args.records.keys()?;
    crate::input::look_for(&args.files)?;
    let inputs: Vec<_> = args.files.iter().chain([&args.filter]).cloned().collect();
    are_apart([Output::of("--bad", args.records.bad.as_ref())], &inputs, "name another file")?;
    if !quiet {
        let stdin = reads_stdin.then(|| "-".into());
        let inputs: Vec<_> = inputs.iter().cloned().chain(stdin).collect();
        let filter = Output::of("the filter", Some(&args.filter));
        stdout_is_apart([filter, Output::of("--bad", args.records.bad.as_ref())], &inputs)?;
    }
    let shown = Shown::of(&args, quiet);
    let filter = Asked::open(&args.filter)?;
    of_parts(filter.hasher(), &args.records).with_context(|| args.filter.display().to_string())?;
    let mut checker = Checker {
        filter,
        output: Found::new(shown.end(&args)),
        wanted: !args.invert_match,
        shown,
        names: args.with_filename,
        numbers: args.line_number,
        end: args.records.end(),
        digests: Vec::new(),
        found: Vec::new(),
        answers: Vec::new(),
        line: Vec::new(),
        here: 0,
        count: 0,
    };
    if args.item.is_empty() {
        let progress = Progress::new(!quiet);
        read(args.files, &args.records, &progress, &mut checker)?;
    } else {
        checker.items(&args.item, &args.records)?;
    }
    if checker.shown == Shown::Count && !checker.names {
        checker.output.write(format!("{}\n", checker.count).as_bytes())?;
    }
    checker.output.flush()?;
    Ok(checker.count > 0)
}

/// What is printed of the records that are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Records,
    Keys,
    Files,
    Count,
    Nothing,
}

impl Shown {
    /// What a line that is printed ends with. Names and counts are lines of text, whatever records are.
    fn end(self, args: &Check) -> &'static [u8] {
        match self {
            Self::Records | Self::Keys => args.records.end(),
            Self::Files | Self::Count | Self::Nothing => b"\n",
        }
    }

    fn of(args: &Check, quiet: bool) -> Self {
        match (quiet, args.count, args.files_with_matches, args.only_matching) {
            (true, ..) => Self::Nothing,
            (_, true, ..) => Self::Count,
            (_, _, true, _) => Self::Files,
            (.., true) => Self::Keys,
            _ => Self::Records,
        }
    }
}

struct Checker {
    filter: Asked,
    output: Found,
    /// The answer that is printed.
    wanted: bool,
    shown: Shown,
    /// Whether the name of the file, and the number of the line, stand before each line.
    names: bool,
    numbers: bool,
    end: &'static [u8],
    digests: Vec<Digest>,
    /// The answers for keys, and for records.
    found: Vec<bool>,
    answers: Vec<bool>,
    /// A line that is being put together.
    line: Vec<u8>,
    /// How many records were found in this input, and in all.
    here: u64,
    count: u64,
}

impl Checker {
    /// Asks for keys that were given as arguments: as they are, or as records.
    fn items(&mut self, items: &[OsString], how: &Records) -> Result<()> {
        let keys = how.item_keys()?;
        for item in items {
            let bytes = item.as_encoded_bytes();
            let key = if keys.part == Part::Whole {
                folded(bytes, how.ignore_case)
            } else {
                let (mut key, mut ends) = (Vec::new(), Vec::new());
                how.fits_item(&keys, bytes)
                    .and_then(|()| keys.add(bytes, &mut key, &mut ends))
                    .with_context(|| format!("--item {:?}", item.to_string_lossy()))?;
                key.into()
            };
            let mut found = [false];
            self.filter.contains(&[self.filter.hasher().digest(&key)], &mut found)?;
            if found == [self.wanted] {
                self.count += 1;
                if self.shown == Shown::Records {
                    self.output.write(&[item.as_encoded_bytes(), how.end()].concat())?;
                }
            }
        }
        Ok(())
    }

    /// Whether records are printed as they stand in the input.
    fn is_plain(&self) -> bool {
        self.shown == Shown::Records && !self.names && !self.numbers
    }

    /// Prints one record, or what is its key, behind the name of its file and its number. `found` has the answers for its keys.
    fn print(
        &mut self,
        batch: &Batch<'_>,
        record: usize,
        number: u64,
        found: Range<usize>,
    ) -> Result<()> {
        let mut prefix = String::new();
        if self.names {
            prefix += shown_name(batch.name());
            prefix.push(':');
        }
        if self.numbers {
            prefix += &format!("{number}:");
        }
        self.line.clear();
        let Self { line, end, wanted, .. } = self;
        if self.shown == Shown::Records {
            line.extend_from_slice(prefix.as_bytes());
            line.extend_from_slice(batch.record(record));
            return self.output.write(line);
        }
        // Each field that is a key has a line of its own; the parts of one key share one.
        let (keys, mut next) = (batch.keys(), found.start);
        let mut first = true;
        keys.texts(batch.record(record), |part| {
            if keys.is_each() {
                next += 1;
                if self.found[next - 1] != *wanted {
                    return;
                }
            }
            if keys.is_each() || std::mem::take(&mut first) {
                line.extend_from_slice(prefix.as_bytes());
            } else {
                line.extend_from_slice(keys.between());
            }
            line.extend_from_slice(part);
            if keys.is_each() {
                line.extend_from_slice(end);
            }
        })?;
        if !keys.is_each() {
            line.extend_from_slice(end);
        }
        // A line without fields has no keys.
        if line.is_empty() {
            return Ok(());
        }
        self.output.write(line)
    }

    /// One answer for each record: with several keys, whether one of them was found.
    fn answer(&mut self, counts: &[usize]) {
        if counts.is_empty() {
            std::mem::swap(&mut self.answers, &mut self.found);
            return;
        }
        self.answers.clear();
        let mut rest = &self.found[..];
        for count in counts {
            let some;
            (some, rest) = rest.split_at(*count);
            self.answers.push(some.contains(&true));
        }
    }
}

impl Reader for Checker {
    fn header(&mut self, record: &[u8]) -> Result<()> {
        if self.is_plain() {
            self.output.write(record)?;
        }
        Ok(())
    }

    fn batch(&mut self, batch: &Batch<'_>) -> Result<bool> {
        batch.digests(self.filter.hasher(), &mut self.digests);
        self.found.clear();
        self.found.resize(self.digests.len(), false);
        self.filter.contains(&self.digests, &mut self.found)?;
        self.answer(batch.counts());
        let answers = std::mem::take(&mut self.answers);
        let found = answers.iter().filter(|found| **found).count();
        let count = if self.wanted { found } else { answers.len() - found } as u64;
        self.here += count;
        self.count += count;
        if self.is_plain() {
            let mut from = 0;
            for run in answers.chunk_by(|one, next| one == next) {
                let records = from..from + run.len();
                from = records.end;
                if run[0] == self.wanted {
                    self.output.write(batch.run(records))?;
                }
            }
        } else if matches!(self.shown, Shown::Records | Shown::Keys) {
            let mut key = 0;
            for (record, line) in batch.lines().enumerate() {
                let keys = key..key + batch.counts().get(record).copied().unwrap_or(1);
                key = keys.end;
                if answers[record] == self.wanted {
                    self.print(batch, record, line, keys)?;
                }
            }
        }
        self.answers = answers;
        let enough = self.shown == Shown::Nothing || !self.output.is_open();
        Ok(!(enough && self.count > 0))
    }

    fn wants_rest(&self) -> bool {
        self.shown != Shown::Files || self.here == 0
    }

    fn input_done(&mut self, name: &str) -> Result<()> {
        let here = std::mem::take(&mut self.here);
        match self.shown {
            Shown::Files if here > 0 => {
                self.output.write(format!("{}\n", shown_name(name)).as_bytes())
            }
            Shown::Count if self.names => {
                self.output.write(format!("{}:{here}\n", shown_name(name)).as_bytes())
            }
            _ => Ok(()),
        }
    }

    fn pause(&mut self) -> Result<()> {
        self.output.flush()
    }
}

/// As `grep` calls standard input.
fn shown_name(name: &str) -> &str {
    if name == crate::input::STDIN { "(standard input)" } else { name }
}
