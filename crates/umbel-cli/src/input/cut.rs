//! How bytes are cut into records: at an end byte, or at the ends of lines that are in no quoted field of CSV.

use crate::amount::show_bytes;
use std::fmt;

/// How bytes are cut into records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Behind this byte.
    At(u8),
    /// Behind the end of a line that is in no quoted field, with this between fields.
    Csv(u8),
}

impl Cut {
    pub(crate) fn is_csv(self) -> bool {
        matches!(self, Self::Csv(_))
    }

    /// The byte that ends a record.
    pub(crate) fn end(self) -> u8 {
        match self {
            Self::At(end) => end,
            Self::Csv(_) => b'\n',
        }
    }
}

/// The largest record and the largest quoted field, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) record: u64,
    pub(crate) field: u64,
}

/// Finds the ends of CSV records (RFC 4180), however the bytes arrive. Every byte is looked at once.
///
/// A field is quoted if its first byte is a quote. A quote inside a field that is not quoted is an ordinary byte, as in `5" pipe`. What
/// follows a closing quote must be a delimiter or the end of the line: anything else is usually the first sign of a quote that was
/// never closed some lines before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scanner {
    between: u8,
    most: usize,
    state: State,
    /// The next byte to look at.
    at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    FieldStart,
    Plain,
    /// Inside quotes, which were opened here.
    Quoted(usize),
    /// Behind a quote that closes the field, or is the first of two.
    Closed(usize),
    /// The same, and behind a carriage return.
    Returned(usize),
}

/// What is wrong with a record of CSV. Positions are those in the scanned bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// The field is longer than fields may be, or the input has ended in it.
    Unclosed { quote: usize, ended: bool },
    /// This byte follows the closing quote.
    Trailing { quote: usize, at: usize, found: u8 },
}

impl Flaw {
    /// Where it was noticed, of so many bytes.
    pub(crate) fn at(self, bytes: usize) -> usize {
        match self {
            Self::Unclosed { .. } => bytes,
            Self::Trailing { at, .. } => at,
        }
    }

    /// Where the quoted field starts.
    pub(crate) fn quote(self) -> usize {
        match self {
            Self::Unclosed { quote, .. } | Self::Trailing { quote, .. } => quote,
        }
    }
}

/// The mark of UTF-8 that spreadsheets write first. It is no part of the first field.
pub(crate) const MARK: &[u8] = "\u{feff}".as_bytes();

impl Scanner {
    pub(crate) fn new(between: u8, most_in_field: u64) -> Self {
        let most = usize::try_from(most_in_field).unwrap_or(usize::MAX);
        Self { between, most, state: State::FieldStart, at: 0 }
    }

    /// Begins a record at the first byte, with this many bytes that are no part of its first field.
    pub(crate) fn restart(&mut self, skip: usize) {
        (self.state, self.at) = (State::FieldStart, skip);
    }

    /// The first bytes are taken away: as many as whole records have.
    pub(crate) fn shift(&mut self, by: usize) {
        self.at -= by;
        if let State::Quoted(quote) | State::Closed(quote) | State::Returned(quote) =
            &mut self.state
        {
            // The quote of the last record of an input goes away with it.
            *quote = quote.saturating_sub(by);
        }
    }

    /// All bytes are taken away, in the middle of a record.
    pub(crate) fn forget(&mut self) {
        self.at = 0;
        if let State::Quoted(quote) | State::Closed(quote) | State::Returned(quote) =
            &mut self.state
        {
            *quote = 0;
        }
    }

    /// Adds the ends of all records that are whole.
    pub(crate) fn scan(&mut self, bytes: &[u8], ends: &mut Vec<usize>) -> Result<(), Flaw> {
        while self.at < bytes.len() {
            let next = bytes[self.at];
            match self.state {
                State::FieldStart if next == b'"' => {
                    self.state = State::Quoted(self.at);
                    self.at += 1;
                }
                State::FieldStart | State::Plain => {
                    let rest = &bytes[self.at..];
                    let Some(found) = memchr::memchr2(self.between, b'\n', rest) else {
                        self.at = bytes.len();
                        self.state = State::Plain;
                        break;
                    };
                    self.at += found;
                    self.end_field(bytes[self.at], ends);
                }
                State::Quoted(quote) => {
                    let found = memchr::memchr(b'"', &bytes[self.at..]);
                    self.at = found.map_or(bytes.len(), |found| self.at + found);
                    if self.at - quote - 1 > self.most {
                        return Err(Flaw::Unclosed { quote, ended: false });
                    }
                    if found.is_some() {
                        self.state = State::Closed(quote);
                        self.at += 1;
                    }
                }
                State::Closed(quote) if next == b'"' => {
                    self.state = State::Quoted(quote);
                    self.at += 1;
                }
                State::Closed(quote) if next == b'\r' && self.between != b'\r' => {
                    self.state = State::Returned(quote);
                    self.at += 1;
                }
                State::Closed(_) if next == self.between => self.end_field(next, ends),
                State::Closed(_) | State::Returned(_) if next == b'\n' => {
                    self.end_field(next, ends);
                }
                State::Closed(quote) | State::Returned(quote) => {
                    return Err(Flaw::Trailing { quote, at: self.at, found: next });
                }
            }
        }
        Ok(())
    }

    fn end_field(&mut self, end: u8, ends: &mut Vec<usize>) {
        self.at += 1;
        self.state = State::FieldStart;
        if end == b'\n' {
            ends.push(self.at);
        }
    }

    /// There are no more bytes.
    pub(crate) fn finish(&self) -> Result<(), Flaw> {
        match self.state {
            State::Quoted(quote) => Err(Flaw::Unclosed { quote, ended: true }),
            _ => Ok(()),
        }
    }
}

/// Where a record is: in messages, `name:line` as compilers write it, or its number if records are no lines.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) cut: Cut,
    /// Its number, and the line that it starts on, from 1.
    pub(crate) record: u64,
    pub(crate) line: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, record, line, .. } = self;
        match self.cut {
            Cut::At(b'\n') => write!(f, "{name}:{record}"),
            Cut::At(_) => write!(f, "{name}: record {record}"),
            Cut::Csv(_) => write!(f, "{name}:{line}"),
        }
    }
}

/// A record is longer than records may be.
#[derive(Debug)]
pub(crate) struct TooLong {
    pub(crate) place: Place,
    pub(crate) max: u64,
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { name, cut, record, line } = &self.place;
        match cut {
            Cut::At(b'\n') => write!(f, "{name}: line {record}")?,
            Cut::At(_) => write!(f, "{name}: record {record}")?,
            Cut::Csv(_) => write!(f, "{name}: record {record}, which starts on line {line},")?,
        }
        let max = show_bytes(self.max);
        write!(f, " is longer than {max}; allow longer ones with --max-record SIZE")
    }
}

impl std::error::Error for TooLong {}

/// A [`Flaw`], and the lines that it is on.
#[derive(Debug)]
pub(crate) struct BadQuote {
    pub(crate) name: String,
    pub(crate) flaw: Flaw,
    /// The lines of the opening quote, and of what is wrong.
    pub(crate) line: u64,
    pub(crate) until: u64,
    pub(crate) between: u8,
    pub(crate) max: u64,
}

impl fmt::Display for BadQuote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, line, until, .. } = self;
        write!(f, "{name}:{line}: quoted field starts here and ")?;
        match self.flaw {
            Flaw::Unclosed { ended: true, .. } => f.write_str(
                "is never closed (searched to the end of the file); add the closing quote",
            ),
            Flaw::Unclosed { ended: false, .. } => write!(
                f,
                "is not closed within {}; add the closing quote or allow longer fields with --max-field SIZE",
                show_bytes(self.max)
            ),
            Flaw::Trailing { found, .. } => write!(
                f,
                "ends on line {until}, where a {:?} or the end of the line was expected after the closing quote and {:?} was found; \
                 write a quote inside a quoted field as two quotes",
                char::from(self.between),
                char::from(found)
            ),
        }
    }
}

impl std::error::Error for BadQuote {}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ends of all records when the bytes come in two parts.
    fn ends(bytes: &[u8], first: usize) -> Result<Vec<usize>, Flaw> {
        let (mut scanner, mut ends) = (Scanner::new(b',', 100), Vec::new());
        scanner.scan(&bytes[..first], &mut ends)?;
        scanner.scan(bytes, &mut ends)?;
        scanner.finish()?;
        Ok(ends)
    }

    #[test]
    fn quoted_lines_go_on() {
        let table = b"a,\"b\nc\",d\n\"x\"\"\ny\",\" \"\r\nlast,5\" pipe\n\n,\"\"\n";
        for first in 0..=table.len() {
            assert_eq!(ends(table, first), Ok(vec![10, 23, 36, 37, 41]), "{first}");
        }
    }

    #[test]
    fn what_is_behind_a_closing_quote_ends_the_field() {
        for (table, flaw) in [
            (&b"1\n2,\"a\"b,\n"[..], Flaw::Trailing { quote: 4, at: 7, found: b'b' }),
            (b"\"a\" ,b\n", Flaw::Trailing { quote: 0, at: 3, found: b' ' }),
            (b"\"a\"\rb\n", Flaw::Trailing { quote: 0, at: 4, found: b'b' }),
            (b"1\n,\"a\"\"", Flaw::Unclosed { quote: 3, ended: true }),
        ] {
            for first in 0..=table.len() {
                assert_eq!(ends(table, first), Err(flaw), "{first}");
            }
        }
        assert_eq!(ends(b"\"a\"", 0), Ok(vec![]));
        assert_eq!(ends(b"\"a\"\r", 0), Ok(vec![]));
    }

    #[test]
    fn a_quoted_field_has_a_limit_to_the_byte() {
        let field = |length: usize| [b"\"", "x".repeat(length).as_bytes(), b"\"\n"].concat();
        for first in 0..100 {
            assert_eq!(ends(&field(100), first), Ok(vec![103]));
            let flaw = Flaw::Unclosed { quote: 0, ended: false };
            assert_eq!(ends(&field(101), first), Err(flaw));
        }
    }

    #[test]
    fn bytes_may_be_taken_away_between_records() {
        let (mut scanner, mut ends) = (Scanner::new(b',', 100), Vec::new());
        let bytes = b"a\nb,\"c\nd\"\n";
        scanner.scan(&bytes[..7], &mut ends).unwrap();
        assert_eq!(ends, [2]);
        scanner.shift(2);
        scanner.scan(&bytes[2..], &mut ends).unwrap();
        assert_eq!(ends, [2, 8]);
    }
}
