//! Where records come from: files and standard input, packed or not, cut into records.

use crate::amount::show_bytes;
use crate::progress::Progress;
use anyhow::{Context, Result, bail};
use flate2::read::MultiGzDecoder;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// How bytes are cut into records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Behind this byte.
    At(u8),
    /// Behind the end of a line that is in no quoted field, with this between fields.
    Csv(u8),
}

impl Cut {
    /// How many of the bytes are whole records.
    fn whole(self, bytes: &[u8]) -> usize {
        match self {
            Self::At(end) => memchr::memrchr(end, bytes).map_or(0, |at| at + 1),
            Self::Csv(between) => {
                let (mut whole, mut rest) = (0, bytes);
                while let Some(length) = first_csv(rest, between) {
                    whole += length;
                    rest = &rest[length..];
                }
                whole
            }
        }
    }

    /// The first of some whole records and a last one that may lack its end, and the others.
    pub(crate) fn first(self, bytes: &[u8]) -> (&[u8], &[u8]) {
        let length = match self {
            Self::At(end) => memchr::memchr(end, bytes).map(|at| at + 1),
            Self::Csv(between) => first_csv(bytes, between),
        };
        bytes.split_at(length.unwrap_or(bytes.len()))
    }
}

/// The length of the first record, if its end is there. A field is quoted if it begins with a quote.
fn first_csv(bytes: &[u8], between: u8) -> Option<usize> {
    let mut at = 0;
    loop {
        // At the start of a field.
        if bytes.get(at) == Some(&b'"') {
            at += 1;
            loop {
                at += memchr::memchr(b'"', &bytes[at..])? + 1;
                if bytes.get(at) != Some(&b'"') {
                    break;
                }
                at += 1;
            }
        }
        at += memchr::memchr2(between, b'\n', &bytes[at..])? + 1;
        if bytes[at - 1] == b'\n' {
            return Some(at);
        }
    }
}

/// A record is longer than records may be.
#[derive(Debug)]
pub(crate) struct TooLong {
    pub(crate) name: String,
    pub(crate) cut: Cut,
    /// Its number, and the line that it starts on, if records are lines.
    pub(crate) record: u64,
    pub(crate) line: u64,
    pub(crate) max: u64,
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONGER: &str = "--max-record SIZE allows longer ones";
        let Self { name, record, line, .. } = self;
        let max = show_bytes(self.max);
        match self.cut {
            Cut::At(b'\n') => write!(f, "{name}: line {record} is longer than {max}; {LONGER}"),
            Cut::At(_) => write!(f, "{name}: record {record} is longer than {max}; {LONGER}"),
            Cut::Csv(_) => write!(
                f,
                "{name}: record {record}, which starts on line {line}, is longer than {max}: is a quote never closed? {LONGER}"
            ),
        }
    }
}

impl std::error::Error for TooLong {}

/// Bytes that are read at a time, and the least room for them.
const READ: usize = 1 << 20;

/// The records of all inputs, one after the other.
pub(crate) struct Input<'a> {
    paths: std::vec::IntoIter<PathBuf>,
    cut: Cut,
    /// The most bytes of a record, without its end.
    max: u64,
    progress: &'a Progress,
    source: Option<Source>,
    buffer: Vec<u8>,
    /// The part of the buffer that is filled, and the part of that which was handed out.
    filled: usize,
    used: usize,
}

/// An input that is being read.
struct Source {
    name: String,
    reader: Box<dyn Read>,
    /// The numbers of the record and of the line that come next, from 1 on.
    record: u64,
    line: u64,
}

/// Some records, where they are from, the number of the first and the line that it starts on.
pub(crate) struct Run<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) name: &'a str,
    pub(crate) record: u64,
    pub(crate) line: u64,
}

impl<'a> Input<'a> {
    /// Standard input if there are no paths.
    pub(crate) fn new(mut paths: Vec<PathBuf>, cut: Cut, max: u64, progress: &'a Progress) -> Self {
        if paths.is_empty() {
            paths.push("-".into());
        }
        progress.expect(total(&paths));
        let paths = paths.into_iter();
        Self { paths, cut, max, progress, source: None, buffer: Vec::new(), filled: 0, used: 0 }
    }

    /// The next records, all whole but for the last one of an input, which may have no end.
    pub(crate) fn next_run(&mut self) -> Result<Option<Run<'_>>> {
        let length = loop {
            let Some(source) = &mut self.source else {
                let Some(path) = self.paths.next() else { return Ok(None) };
                self.source = Some(Source::open(&path, self.progress)?);
                continue;
            };
            // What is left of a record, or nothing, goes to the front.
            self.buffer.copy_within(self.used..self.filled, 0);
            (self.filled, self.used) = (self.filled - self.used, 0);
            match source.fill(&mut self.buffer, &mut self.filled, self.cut, self.max)? {
                0 if self.filled > 0 => break self.filled,
                0 => self.source = None,
                whole => break whole,
            }
        };
        self.used = length;
        let bytes = &self.buffer[..length];
        let source = self.source.as_mut().expect("it gave the bytes");
        let (record, line) = (source.record, source.line);
        let mut rest = bytes;
        if let Cut::At(end) = self.cut {
            let open = u64::from(bytes.last() != Some(&end));
            source.record += memchr::memchr_iter(end, bytes).count() as u64 + open;
        } else {
            source.line += memchr::memchr_iter(b'\n', bytes).count() as u64;
            while !rest.is_empty() {
                (source.record, rest) = (source.record + 1, self.cut.first(rest).1);
            }
        }
        Ok(Some(Run { bytes, name: &source.name, record, line }))
    }
}

impl Source {
    fn open(path: &Path, progress: &Progress) -> Result<Self> {
        if path == Path::new("-") {
            let name = "standard input".to_owned();
            let reader = unpacked(progress.counted(io::stdin().lock()), &name)?;
            return Ok(Self { name, reader, record: 1, line: 1 });
        }
        let name = path.display().to_string();
        let file = File::open(path).with_context(|| name.clone())?;
        if file.metadata().with_context(|| name.clone())?.is_dir() {
            bail!("{name}: is a directory");
        }
        Ok(Self { reader: unpacked(progress.counted(file), &name)?, name, record: 1, line: 1 })
    }

    /// Reads until there is a whole record, and how long all of these are; 0 at the end.
    fn fill(
        &mut self,
        buffer: &mut Vec<u8>,
        filled: &mut usize,
        cut: Cut,
        max: u64,
    ) -> Result<usize> {
        let mut look_at = 0;
        let most = usize::try_from(max).unwrap_or(usize::MAX);
        loop {
            if buffer.len() < *filled + READ {
                // A record that is longer than everything so far makes twice the room, but never much more than it may take.
                let twice = buffer.len().saturating_mul(2).min(most.saturating_add(2 * READ));
                let room = (*filled + READ).max(twice).max(2 * READ);
                let more = room - buffer.len();
                if buffer.try_reserve_exact(more).is_err() {
                    bail!(
                        "{}: record {} has more than {filled} bytes, for which there is no memory",
                        self.name,
                        self.record
                    );
                }
                buffer.resize(room, 0);
            }
            let read = match self.reader.read(&mut buffer[*filled..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read
                    .map_err(wide)
                    .with_context(|| format!("{}: record {}", self.name, self.record))?,
            };
            if read == 0 {
                return Ok(0);
            }
            // Only what is new can have an end, but for CSV, where quotes before it count. A quote that
            // is never closed makes one record of all the rest, so that is looked at ever more rarely.
            let quoted = matches!(cut, Cut::Csv(_));
            let before = if quoted { 0 } else { *filled };
            *filled += read;
            if quoted && *filled < look_at && *filled <= most {
                continue;
            }
            let whole = cut.whole(&buffer[before..*filled]);
            if whole > 0 {
                return Ok(before + whole);
            }
            if *filled > most {
                let (name, record, line) = (self.name.clone(), self.record, self.line);
                return Err(TooLong { name, cut, record, line, max }.into());
            }
            if *filled > READ {
                look_at = *filled + *filled / 2;
            }
        }
    }
}

/// What a packed stream contains, by its first bytes.
fn unpacked(mut reader: impl Read + 'static, name: &str) -> Result<Box<dyn Read>> {
    let (mut first, mut length) = ([0; 4], 0);
    // Whoever writes line by line may not have written more, so no byte is waited for without need.
    let could_be = |first: &[u8]| GZIP.starts_with(first) || ZSTD.starts_with(first);
    while length < first.len() && could_be(&first[..length]) {
        match reader.read(&mut first[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error).with_context(|| name.to_owned()),
        }
    }
    let whole = io::Cursor::new(first).take(length as u64).chain(reader);
    Ok(if first.starts_with(&GZIP) {
        Box::new(MultiGzDecoder::new(io::BufReader::new(whole)))
    } else if first == ZSTD {
        let mut decoder = zstd::Decoder::new(whole).with_context(|| name.to_owned())?;
        decoder.window_log_max(WINDOW).with_context(|| name.to_owned())?;
        Box::new(decoder)
    } else {
        Box::new(whole)
    })
}

/// The largest window of a zstd stream, as a power of two: 128 MiB, the most that `zstd -d` takes without being told. It is what
/// unpacking may take of memory; for gzip that is 32 KiB.
const WINDOW: u32 = 27;

/// What zstd says of a larger window, in words that help.
fn wide(error: io::Error) -> io::Error {
    if error.to_string() == "Frame requires too much memory for decoding" {
        let help = "unpack it first, with zstd -dc --long=31";
        return io::Error::other(format!(
            "needs a window of more than {} MiB to be unpacked: {help}",
            1 << (WINDOW - 20)
        ));
    }
    error
}

/// How packed streams begin: RFC 1952 with the only method there is, RFC 8878.
const GZIP: [u8; 3] = [0x1f, 0x8b, 8];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

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

    fn records(cut: Cut, mut bytes: &[u8]) -> Vec<&[u8]> {
        let mut all = Vec::new();
        while !bytes.is_empty() {
            let (first, rest) = cut.first(bytes);
            all.push(first);
            bytes = rest;
        }
        all
    }

    #[test]
    fn lines_end_behind_their_end() {
        assert_eq!(records(Cut::At(b'\n'), b"a\n\nb"), [&b"a\n"[..], b"\n", b"b"]);
        assert_eq!(records(Cut::At(0), b"a\nb\0c"), [&b"a\nb\0"[..], b"c"]);
        assert_eq!(Cut::At(b'\n').whole(b"a\nb\nc"), 4);
        assert_eq!(Cut::At(b'\n').whole(b"abc"), 0);
    }

    #[test]
    fn quoted_lines_go_on() {
        let table = b"a,\"b\nc\",d\n\"x\"\"\ny\",\" \"\nlast,5\" pipe";
        let expected: [&[u8]; 3] = [b"a,\"b\nc\",d\n", b"\"x\"\"\ny\",\" \"\n", b"last,5\" pipe"];
        assert_eq!(records(Cut::Csv(b','), table), expected);
        // However much of it is there yet, records end where they end.
        for length in 0..table.len() {
            let ends = [0, 10, 22];
            let expected = ends.into_iter().rfind(|end| *end <= length).unwrap();
            assert_eq!(Cut::Csv(b',').whole(&table[..length]), expected, "{length}");
        }
    }

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

    #[test]
    fn records_are_the_same_however_bytes_arrive() {
        let progress = Progress::new(false);
        for seed in 0..300 {
            let mut state = seed;
            let length = random(&mut state) % 200;
            let letter = |_| b"ab,,\"\"\n\n\r\0"[random(&mut state) % 10];
            let text: Vec<u8> = (0..length).map(letter).collect();
            for cut in [Cut::At(b'\n'), Cut::At(0), Cut::Csv(b',')] {
                let reader = unpacked(Pieces(text.clone(), seed), "pieces").unwrap();
                let name = "pieces".to_owned();
                let source = Some(Source { name, reader, record: 1, line: 1 });
                let paths = Vec::new().into_iter();
                let progress = &progress;
                let (buffer, max) = (Vec::new(), 200);
                let mut input =
                    Input { paths, cut, max, progress, source, buffer, filled: 0, used: 0 };
                let mut got: Vec<Vec<u8>> = Vec::new();
                while let Some(run) = input.next_run().unwrap() {
                    assert_eq!(run.record, got.len() as u64 + 1, "{text:?}");
                    if cut != Cut::At(0) {
                        let before = got.concat();
                        let lines = before.iter().filter(|byte| **byte == b'\n').count() as u64;
                        let line = if cut == Cut::At(b'\n') { run.record } else { run.line };
                        assert_eq!(line, lines + 1, "{text:?}");
                    }
                    got.extend(records(cut, run.bytes).into_iter().map(<[u8]>::to_vec));
                }
                assert_eq!(got, records(cut, &text), "{cut:?}");
            }
        }
    }
}
