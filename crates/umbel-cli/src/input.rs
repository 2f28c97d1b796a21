//! Where records come from: files and standard input, packed or not, cut into records.

mod cut;
mod members;
mod packed;

pub(crate) use cut::{Cut, Limits, MARK, Place, TooLong};
pub(crate) use packed::{LONGEST, is_packed};

use crate::amount::show_count;
use crate::progress::Progress;
use crate::skipped::Skipped;
use anyhow::{Context, Result, bail};
use cut::{BadQuote, Flaw, Scanner};
use packed::{is_tar, unpacked};
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

/// Bytes that are read at a time, and the least room for them.
const READ: usize = 1 << 20;

/// How messages call standard input.
pub(crate) const STDIN: &str = "standard input";

/// Whether a file is named by `-`, which means standard input or output.
pub(crate) fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

/// How records are cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    pub(crate) cut: Cut,
    pub(crate) limits: Limits,
    /// Whether the first record of every input is a header.
    pub(crate) has_header: bool,
}

/// The records of all inputs, one after the other.
pub(crate) struct Input<'a> {
    paths: std::vec::IntoIter<PathBuf>,
    how: How,
    progress: &'a Progress,
    source: Option<Source>,
    room: Room,
    /// How many bytes were handed out.
    used: usize,
    /// The name of the input that has ended.
    name: String,
}

/// Bytes that were read.
#[derive(Default)]
struct Room {
    buffer: Vec<u8>,
    /// How many bytes are there.
    filled: usize,
    /// The ends of the records of CSV.
    ends: Vec<usize>,
}

/// What is done with the bytes that are there.
enum Step {
    /// So many are whole records, or the last one.
    Whole(usize),
    /// So many are left out.
    Drop(usize),
    /// There must be more.
    More,
}

/// An input that is being read.
struct Source {
    name: String,
    reader: Box<dyn Read>,
    /// The numbers of the record and of the line that come next, from 1 on.
    record: u64,
    line: u64,
    scanner: Scanner,
    dropping: Dropping,
    /// Whether the mark of UTF-8 was looked for, and whether a record was found.
    marked: bool,
    begun: bool,
}

/// What is left out before the next record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dropping {
    Nothing,
    /// The bytes up to the first end from here on.
    ToEnd(usize),
    /// The rest of a record of CSV, whose quoted fields may hold ends of lines.
    ToRecordEnd,
}

/// Some records, where they are from, the number of the first and the line that it starts on. No bytes are the end of an input.
pub(crate) struct Run<'a> {
    pub(crate) bytes: &'a [u8],
    /// Where the records of CSV end; other ends are found by their byte.
    pub(crate) ends: &'a [usize],
    pub(crate) name: &'a str,
    pub(crate) record: u64,
    pub(crate) line: u64,
}

/// Refuses a standard input that was closed before the command began: it would be an empty input.
pub(crate) fn refuse_closed_stdin() -> Result<()> {
    if crate::start::stdin_was_closed() {
        bail!(
            "{STDIN}: is closed: name a file, or redirect it from /dev/null if there is no input"
        );
    }
    Ok(())
}

/// Notices what is missing before anything is done. A pipe is not opened, since its writer may come later.
pub(crate) fn look_for(paths: &[PathBuf]) -> Result<()> {
    for path in paths.iter().filter(|path| !is_standard(path)) {
        let name = || path.display().to_string();
        not_on_a_server(path)?;
        let metadata = std::fs::metadata(path).with_context(name)?;
        if metadata.is_dir() {
            bail!("{}: is a directory; name the files in it", path.display());
        }
        if metadata.is_file() {
            File::open(path).with_context(name)?;
        }
    }
    Ok(())
}

/// Refuses the address of a filter on a server where only a file will do.
pub(crate) fn not_on_a_server(path: &Path) -> Result<()> {
    #[cfg(feature = "redis")]
    if crate::remote::is_remote(path) {
        let address = crate::remote::Address::of(path)?;
        // As for a file that is not there: `verify` does not take it for a damaged one.
        let told = io::Error::other("expected a file, got a filter on a server");
        return Err(told).with_context(|| address.to_string());
    }
    let _ = path;
    Ok(())
}

impl<'a> Input<'a> {
    /// Standard input if there are no paths. The caller has [looked for](look_for) the files.
    pub(crate) fn new(mut paths: Vec<PathBuf>, how: How, progress: &'a Progress) -> Self {
        if paths.is_empty() {
            paths.push("-".into());
        }
        // What is typed has the line of the terminal to itself.
        if !io::stdin().is_terminal() || !paths.iter().any(|path| path == Path::new("-")) {
            progress.expect(total(&paths));
        }
        let paths = paths.into_iter();
        Self {
            paths,
            how,
            progress,
            source: None,
            room: Room::default(),
            used: 0,
            name: String::new(),
        }
    }

    /// The next records, all whole but for the last one of an input, which may have no end.
    pub(crate) fn next_run(&mut self, skipped: &mut Skipped) -> Result<Option<Run<'_>>> {
        let length = loop {
            let Some(source) = &mut self.source else {
                let Some(path) = self.paths.next() else { return Ok(None) };
                self.source = Some(Source::open(&path, self.how, self.progress)?);
                continue;
            };
            // What is left of a record, or nothing, goes to the front.
            let room = &mut self.room;
            room.buffer.copy_within(self.used..room.filled, 0);
            if self.how.cut.is_csv() {
                source.scanner.shift(self.used);
            }
            (room.filled, self.used) = (room.filled - self.used, 0);
            room.ends.clear();
            match source.fill(room, self.how, skipped)? {
                0 => {
                    let Source { name, record, line, .. } =
                        self.source.take().expect("it has ended");
                    self.name = name;
                    return Ok(Some(Run { bytes: &[], ends: &[], name: &self.name, record, line }));
                }
                whole => break whole,
            }
        };
        self.used = length;
        let bytes = &self.room.buffer[..length];
        let source = self.source.as_mut().expect("it gave the bytes");
        let (record, line) = (source.record, source.line);
        if let Cut::At(end) = self.how.cut {
            let open = u64::from(bytes.last() != Some(&end));
            source.record += memchr::memchr_iter(end, bytes).count() as u64 + open;
            source.line = source.record;
        } else {
            source.line += lines(bytes);
            source.record += self.room.ends.len() as u64;
        }
        Ok(Some(Run { bytes, ends: &self.room.ends, name: &source.name, record, line }))
    }

    /// Leaves out what is left of the input.
    pub(crate) fn next_input(&mut self) {
        self.source = None;
        (self.room.filled, self.used) = (0, 0);
    }
}

fn lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

impl Source {
    fn open(path: &Path, how: How, progress: &Progress) -> Result<Self> {
        if is_standard(path) {
            refuse_closed_stdin()?;
            let reader = unpacked(progress.counted(io::stdin().lock()), STDIN)?;
            return Ok(Self::new(STDIN.to_owned(), reader, how));
        }
        let name = path.display().to_string();
        let file = File::open(path).with_context(|| name.clone())?;
        let reader = unpacked(progress.counted(file), &name)?;
        Ok(Self::new(name, reader, how))
    }

    fn new(name: String, reader: Box<dyn Read>, how: How) -> Self {
        let between = if let Cut::Csv(between) = how.cut { between } else { b',' };
        Self {
            name,
            reader,
            record: 1,
            line: 1,
            scanner: Scanner::new(between, how.limits.field),
            dropping: Dropping::Nothing,
            marked: false,
            begun: false,
        }
    }

    fn place(&self, cut: Cut) -> Place {
        Place { name: self.name.clone(), cut, record: self.record, line: self.line }
    }

    /// Reads until there is a whole record, and how long all of these are; 0 at the end.
    fn fill(&mut self, room: &mut Room, how: How, skipped: &mut Skipped) -> Result<usize> {
        // What is left of the last run has no end byte.
        let (mut looked, mut ended) = (room.filled, false);
        loop {
            match self.step(room, looked, ended, how, skipped)? {
                Step::Whole(length) => {
                    if !std::mem::replace(&mut self.begun, true)
                        && is_tar(&room.buffer[..room.filled])
                    {
                        bail!(
                            "{}: is a tar archive, whose file names are no records; unpack it first, with tar -xOf FILE | umbel ...",
                            self.name
                        );
                    }
                    return Ok(length);
                }
                Step::Drop(length) => {
                    skipped.write(&room.buffer[..length])?;
                    self.line += lines(&room.buffer[..length]);
                    room.buffer.copy_within(length..room.filled, 0);
                    room.filled -= length;
                    looked = 0;
                }
                Step::More if ended => return Ok(0),
                Step::More => {
                    looked = room.filled;
                    ended = self.read(room, how.limits.record)? == 0;
                }
            }
        }
    }

    /// What comes next, of the bytes that are there.
    fn step(
        &mut self,
        room: &mut Room,
        looked: usize,
        ended: bool,
        how: How,
        skipped: &mut Skipped,
    ) -> Result<Step> {
        let Room { buffer, filled, ends, .. } = room;
        let bytes = &buffer[..*filled];
        match self.dropping {
            Dropping::ToEnd(from) => {
                let end = memchr::memchr(how.cut.end(), &bytes[from..]).map(|at| from + at + 1);
                return Ok(self.dropped(end, bytes.len()));
            }
            Dropping::ToRecordEnd => {
                ends.clear();
                let scanned = self.scanner.scan(bytes, ends);
                let end = ends.first().copied();
                ends.clear();
                if let (None, Err(flaw)) = (end, scanned) {
                    self.dropping = Dropping::ToEnd(flaw.at(bytes.len()));
                    return Ok(Step::Drop(0));
                }
                self.scanner.forget();
                return Ok(self.dropped(end, bytes.len()));
            }
            Dropping::Nothing => {}
        }
        let flaw = match how.cut {
            Cut::At(end) => {
                if let Some(at) = memchr::memrchr(end, &bytes[looked..]) {
                    return Ok(Step::Whole(looked + at + 1));
                }
                None
            }
            Cut::Csv(_) => {
                if !self.marked {
                    if !ended && bytes.len() < MARK.len() && MARK.starts_with(bytes) {
                        return Ok(Step::More);
                    }
                    // A quote behind the mark of UTF-8 begins a quoted field.
                    self.scanner.restart(if bytes.starts_with(MARK) { MARK.len() } else { 0 });
                    self.marked = true;
                }
                let mut scanned = self.scanner.scan(bytes, ends);
                if let Some(whole) = ends.last() {
                    return Ok(Step::Whole(*whole));
                }
                if ended {
                    scanned = scanned.and_then(|()| self.scanner.finish());
                }
                scanned.err()
            }
        };
        let dropping = if let Some(flaw) = flaw {
            self.refuse(self.bad_quote(flaw, bytes, how), how, skipped)?;
            Dropping::ToEnd(flaw.quote())
        } else if u64::try_from(bytes.len()).is_ok_and(|length| length > how.limits.record)
            && !ended
        {
            let place = self.place(how.cut);
            self.refuse(TooLong { place, max: how.limits.record }.into(), how, skipped)?;
            if how.cut.is_csv() { Dropping::ToRecordEnd } else { Dropping::ToEnd(0) }
        } else if ended && !bytes.is_empty() {
            ends.extend(how.cut.is_csv().then_some(bytes.len()));
            return Ok(Step::Whole(bytes.len()));
        } else {
            return Ok(Step::More);
        };
        self.dropping = dropping;
        if dropping == Dropping::ToRecordEnd {
            self.scanner.forget();
            return Ok(Step::Drop(bytes.len()));
        }
        Ok(Step::Drop(0))
    }

    /// Up to the end, if it is there, and else all bytes.
    fn dropped(&mut self, end: Option<usize>, all: usize) -> Step {
        match end {
            Some(end) => {
                self.dropping = Dropping::Nothing;
                self.scanner.restart(0);
                self.record += 1;
                Step::Drop(end)
            }
            None if all == 0 => Step::More,
            None => {
                if let Dropping::ToEnd(from) = &mut self.dropping {
                    *from = 0;
                }
                Step::Drop(all)
            }
        }
    }

    /// Skips the record, or ends the run with the error. Without its header an input cannot be read.
    fn refuse(&self, error: anyhow::Error, how: How, skipped: &mut Skipped) -> Result<()> {
        if how.has_header && self.record == 1 { Err(error) } else { skipped.refuse(error) }
    }

    fn bad_quote(&self, flaw: Flaw, bytes: &[u8], how: How) -> anyhow::Error {
        let between = if let Cut::Csv(between) = how.cut { between } else { b',' };
        let line = |at: usize| self.line + lines(&bytes[..at]);
        BadQuote {
            name: self.name.clone(),
            flaw,
            line: line(flaw.quote()),
            until: line(flaw.at(bytes.len())),
            between,
            max: how.limits.field,
        }
        .into()
    }

    /// Reads some more bytes.
    fn read(&mut self, room: &mut Room, max: u64) -> Result<usize> {
        let Room { buffer, filled, .. } = room;
        if buffer.len() < *filled + READ {
            // A record that is longer than everything so far makes twice the room, but never much more than it may take.
            let most = usize::try_from(max).unwrap_or(usize::MAX);
            let twice = buffer.len().saturating_mul(2).min(most.saturating_add(2 * READ));
            let length = (*filled + READ).max(twice).max(2 * READ);
            let more = length - buffer.len();
            if buffer.try_reserve_exact(more).is_err() {
                bail!(
                    "{}: record {} has more than {filled} bytes, for which there is no memory; --max-record SIZE refuses such records",
                    self.name,
                    self.record
                );
            }
            buffer.resize(length, 0);
        }
        loop {
            match self.reader.read(&mut buffer[*filled..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let (name, before) = (&self.name, self.record - 1);
                    return Err(error).with_context(|| match before {
                        0 => name.clone(),
                        before => format!("{name}: after record {}", show_count(before)),
                    });
                }
                Ok(read) => {
                    *filled += read;
                    return Ok(read);
                }
            }
        }
    }
}

/// The bytes of all files, if there are only files.
fn total(paths: &[PathBuf]) -> Option<u64> {
    let size = |path: &PathBuf| {
        let metadata = std::fs::metadata(path).ok()?;
        metadata.is_file().then_some(metadata.len())
    };
    paths.iter().map(size).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives bytes in pieces of other lengths every time.
    struct Pieces(Vec<u8>, u64);

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = (random(&mut self.1) % 16 + 1).min(self.0.len()).min(buffer.len());
            let rest = self.0.split_off(length);
            buffer[..length].copy_from_slice(&self.0);
            self.0 = rest;
            Ok(length)
        }
    }

    /// A number of 31 bits: the constants are Knuth's, for MMIX.
    fn random(state: &mut u64) -> usize {
        *state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) as usize
    }

    /// The records of an input, the lines of those of CSV, and the error at its end.
    type All = (Vec<Vec<u8>>, Option<String>);

    fn all(reader: impl Read + 'static, how: How, skipped: &mut Skipped) -> All {
        let progress = Progress::new(false);
        let reader = unpacked(reader, "here").unwrap();
        let mut input = Input {
            paths: Vec::new().into_iter(),
            how,
            progress: &progress,
            source: Some(Source::new("here".to_owned(), reader, how)),
            // Growing it takes most of the time of a test that is not optimised.
            room: Room { buffer: vec![0; 2 * READ], ..Room::default() },
            used: 0,
            name: String::new(),
        };
        let mut all: Vec<Vec<u8>> = Vec::new();
        let (mut line, end) = (1, how.cut.end());
        loop {
            match input.next_run(skipped) {
                Ok(Some(run)) => {
                    if skipped.count() == 0 {
                        assert_eq!(run.record, all.len() as u64 + 1);
                        let is_end = run.bytes.is_empty();
                        assert!(is_end || how.cut == Cut::At(0) || run.line == line);
                    }
                    line += lines(run.bytes);
                    if how.cut.is_csv() {
                        let mut start = 0;
                        for end in run.ends {
                            all.push(run.bytes[start..*end].to_vec());
                            start = *end;
                        }
                        assert_eq!(start, run.bytes.len());
                    } else {
                        let records = run.bytes.split_inclusive(|byte| *byte == end);
                        all.extend(records.map(<[u8]>::to_vec));
                    }
                }
                Ok(None) => return (all, None),
                Err(error) => return (all, Some(format!("{error:#}"))),
            }
        }
    }

    fn how(cut: Cut) -> How {
        How { cut, limits: Limits { record: 200, field: 40 }, has_header: false }
    }

    #[test]
    fn records_are_the_same_however_bytes_arrive() {
        for seed in 0..300 {
            let mut state = seed;
            let length = random(&mut state) % 200;
            let letter = |_| b"ab,,\"\"\n\n\r\0"[random(&mut state) % 10];
            let text: Vec<u8> = (0..length).map(letter).collect();
            for cut in [Cut::At(b'\n'), Cut::At(0), Cut::Csv(b',')] {
                let skips: [fn() -> Skipped; 2] = [|| Skipped::never(true), Skipped::counted];
                for skip in skips {
                    let (mut one, mut other) = (skip(), skip());
                    let expected = all(io::Cursor::new(text.clone()), how(cut), &mut one);
                    let got = all(Pieces(text.clone(), seed), how(cut), &mut other);
                    assert_eq!(got, expected, "{text:?}");
                    assert_eq!(one.count(), other.count(), "{text:?}");
                    // Nothing is lost without a word.
                    if one.count() == 0 && expected.1.is_none() {
                        assert_eq!(got.0.concat(), text);
                    }
                }
            }
        }
    }

    #[test]
    fn a_quote_that_is_never_closed_costs_its_line() {
        for (text, records, skipped) in [
            ("a,1\nb,\"2\nc,3\nd,4\n", vec!["a,1\n", "c,3\n", "d,4\n"], 1),
            ("a,1\nb,\"2\nc,\"3\"\nd,4\n", vec!["a,1\n", "c,\"3\"\n", "d,4\n"], 1),
            ("a,\"1\n2\",\"3\n4\n5", vec!["4\n", "5"], 1),
            ("\"", vec![], 1),
            ("\"\n\"\n\"\na", vec!["\"\n\"\n", "a"], 1),
        ] {
            let mut skip = Skipped::counted();
            let (got, error) = all(text.as_bytes(), how(Cut::Csv(b',')), &mut skip);
            assert_eq!((got.concat(), error), (records.concat().into_bytes(), None), "{text}");
            assert_eq!((got.len(), skip.count()), (records.len(), skipped), "{text}");
        }
    }

    #[test]
    fn a_record_that_is_too_long_is_skipped_to_its_end() {
        let long = "x".repeat(5_000_000);
        let quoted = ["\"", &"y\n".repeat(10), "\","].concat().repeat(200_000);
        for (cut, end, record) in [
            (Cut::At(b'\n'), "\n", &long),
            (Cut::At(0), "\0", &long),
            (Cut::Csv(b','), "\n", &long),
            (Cut::Csv(b','), "\n", &quoted),
        ] {
            let text = ["a", end, record, end, "b", end, record].concat();
            let mut skip = Skipped::counted();
            let (got, error) = all(io::Cursor::new(text.into_bytes()), how(cut), &mut skip);
            assert_eq!((got.concat(), error), (["a", end, "b", end].concat().into_bytes(), None));
            assert_eq!(skip.count(), 2, "{cut:?}");
        }
    }
}
