//! Which part of a record is its key.

use crate::pointer::value_at;
use anyhow::{Result, anyhow, bail};
use std::borrow::Cow;

/// Where in a record its key is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    /// All of it.
    Whole,
    /// A field, counted from 1, or from the end by a negative number; between these bytes, or between
    /// blanks.
    Field(i64, Option<Vec<u8>>),
    /// A column of CSV, with this between columns.
    Csv(usize, u8),
    /// A value in JSON: RFC 6901.
    Json(String),
}

/// Finds keys in records.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    pub(crate) part: Part,
    /// Whether upper and lower case are one.
    pub(crate) ignore_case: bool,
    /// The byte that ends a record, and whether a carriage return before it does, too.
    pub(crate) end: u8,
    pub(crate) crlf: bool,
}

impl Keys {
    /// The record without its end.
    pub(crate) fn content<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        let content = record.strip_suffix(&[self.end]).unwrap_or(record);
        if self.crlf { content.strip_suffix(b"\r").unwrap_or(content) } else { content }
    }

    /// The key of a record.
    pub(crate) fn of<'a>(&self, record: &'a [u8]) -> Result<Cow<'a, [u8]>> {
        let content = self.content(record);
        let key = match &self.part {
            Part::Whole => Cow::Borrowed(content),
            Part::Field(number, None) => {
                let fields =
                    || content.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
                field(fields, *number)?.into()
            }
            Part::Field(number, Some(between)) => {
                field(|| split(content, between), *number)?.into()
            }
            Part::Csv(column, between) => csv_field(content, *column, *between)?,
            Part::Json(pointer) => json_value(content, pointer)?.into(),
        };
        Ok(if self.ignore_case { folded(&key, true).into_owned().into() } else { key })
    }

    /// Whether the key is the record as it is.
    pub(crate) fn is_whole(&self) -> bool {
        self.part == Part::Whole && !self.ignore_case
    }
}

/// One of the fields, which are counted and not kept: there may be as many as bytes.
fn field<'a, I: Iterator<Item = &'a [u8]>>(
    fields: impl Fn() -> I,
    number: i64,
) -> Result<&'a [u8]> {
    let count = || fields().count() as i64;
    let at = if number > 0 { number - 1 } else { count() + number };
    let field = usize::try_from(at).ok().and_then(|at| fields().nth(at));
    field.ok_or_else(|| anyhow!("there is no field {number}: it has {}", count()))
}

fn split<'a>(content: &'a [u8], between: &[u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = Some(content);
    std::iter::from_fn(move || {
        let bytes = rest?;
        match memchr::memmem::find(bytes, between) {
            Some(at) => {
                rest = Some(&bytes[at + between.len()..]);
                Some(&bytes[..at])
            }
            None => rest.take(),
        }
    })
}

/// The fields of a record of CSV, without quotes.
pub(crate) fn csv_fields(content: &[u8], between: u8) -> impl Iterator<Item = Cow<'_, [u8]>> {
    let mut rest = Some(content.strip_suffix(b"\r").unwrap_or(content));
    std::iter::from_fn(move || {
        let start = rest?;
        let (field, after) = match start.strip_prefix(b"\"") {
            Some(quoted) => unquoted(quoted),
            None => (Cow::Borrowed(&b""[..]), start),
        };
        let end = memchr::memchr(between, after);
        let tail = &after[..end.unwrap_or(after.len())];
        rest = end.map(|end| &after[end + 1..]);
        // What stands behind the closing quote belongs to the field, as everywhere.
        Some(match (field.is_empty() && !start.starts_with(b"\""), tail.is_empty()) {
            (true, _) => Cow::Borrowed(tail),
            (false, true) => field,
            (false, false) => [&field, tail].concat().into(),
        })
    })
}

/// What is between quotes, and what is behind them; two quotes are one.
fn unquoted(mut rest: &[u8]) -> (Cow<'_, [u8]>, &[u8]) {
    let mut field = Cow::Borrowed(&b""[..]);
    loop {
        let (part, after, again) = match memchr::memchr(b'"', rest) {
            Some(at) if rest.get(at + 1) == Some(&b'"') => (&rest[..=at], &rest[at + 2..], true),
            Some(at) => (&rest[..at], &rest[at + 1..], false),
            None => (rest, &rest[rest.len()..], false),
        };
        if field.is_empty() {
            field = Cow::Borrowed(part);
        } else {
            field.to_mut().extend_from_slice(part);
        }
        if !again {
            return (field, after);
        }
        rest = after;
    }
}

fn csv_field(content: &[u8], column: usize, between: u8) -> Result<Cow<'_, [u8]>> {
    let none = || {
        let count = csv_fields(content, between).count();
        anyhow!("there is no column {}: it has {count}", column.saturating_add(1))
    };
    csv_fields(content, between).nth(column).ok_or_else(none)
}

/// A string as its characters, anything else as compact JSON.
fn json_value(content: &[u8], pointer: &str) -> Result<Vec<u8>> {
    let value = value_at(content, pointer);
    match value.map_err(|column| anyhow!("not JSON, at column {column}"))? {
        Some(serde_json::Value::String(text)) => Ok(text.into_bytes()),
        Some(value) => Ok(serde_json::to_vec(&value)?),
        None => bail!("there is nothing at {pointer:?}"),
    }
}

/// The key, or to ignore case the same in lower case: of all letters if it is UTF-8, else of those of
/// ASCII.
pub(crate) fn folded(key: &[u8], ignore_case: bool) -> Cow<'_, [u8]> {
    match std::str::from_utf8(key) {
        _ if !ignore_case => key.into(),
        Ok(text) => text.to_lowercase().into_bytes().into(),
        Err(_) => key.to_ascii_lowercase().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(part: Part) -> Keys {
        Keys { part, ignore_case: false, end: b'\n', crlf: false }
    }

    fn key(part: Part, record: &[u8]) -> Option<Vec<u8>> {
        keys(part).of(record).ok().map(Cow::into_owned)
    }

    #[test]
    fn ends_are_no_part_of_a_key() {
        let mut keys = keys(Part::Whole);
        assert_eq!(keys.of(b"a\r\n").unwrap(), &b"a\r"[..]);
        keys.crlf = true;
        assert_eq!(keys.of(b"a\r\n").unwrap(), &b"a"[..]);
        assert_eq!(keys.of(b"a").unwrap(), &b"a"[..]);
        assert_eq!(keys.of(b"\n").unwrap(), &b""[..]);
    }

    #[test]
    fn fields_are_counted_from_both_ends() {
        let comma = || Some(b",".to_vec());
        for (number, expected) in [(1, "a"), (3, ""), (4, "d"), (-1, "d"), (-4, "a")] {
            let got = key(Part::Field(number, comma()), b"a,b,,d\n");
            assert_eq!(got.as_deref(), Some(expected.as_bytes()), "{number}");
        }
        assert_eq!(key(Part::Field(5, comma()), b"a,b,,d"), None);
        assert_eq!(key(Part::Field(-5, comma()), b"a,b,,d"), None);
        assert_eq!(key(Part::Field(2, None), b"  a \t b  c\n").unwrap(), b"b");
        assert_eq!(key(Part::Field(2, Some(b"::".to_vec())), b"a::b:c\n").unwrap(), b"b:c");
    }

    #[test]
    fn columns_of_csv_lose_their_quotes() {
        let record = b"1,\"two, \"\"too\"\"\",,\"\",\"x\"y,5\" z\r\n";
        let expected: [&[u8]; 6] = [b"1", b"two, \"too\"", b"", b"", b"xy", b"5\" z"];
        for (column, expected) in expected.iter().enumerate() {
            assert_eq!(
                key(Part::Csv(column, b','), record).as_deref(),
                Some(*expected),
                "{column}"
            );
        }
        assert_eq!(key(Part::Csv(6, b','), record), None);
        for (record, between, expected) in [
            (&b""[..], b',', &[&b""[..]][..]),
            (b"1,5;\"a;b\"", b';', &[b"1,5", b"a;b"]),
            (b"\"open, end", b',', &[b"open, end"]),
        ] {
            assert!(csv_fields(record, between).eq(expected.iter().copied()), "{expected:?}");
        }
    }

    #[test]
    fn values_of_json_are_found_by_pointers() {
        let record = br#"{"a": {"b": [1, "x"]}, "c/d": null, "n": 1.50}"#;
        let json = |pointer: &str| key(Part::Json(pointer.into()), record);
        assert_eq!(json("/a/b/1").unwrap(), b"x");
        assert_eq!(json("/a/b/0").unwrap(), b"1");
        assert_eq!(json("/a").unwrap(), br#"{"b":[1,"x"]}"#);
        assert_eq!(json("/c~1d").unwrap(), b"null");
        assert_eq!(json("/none"), None);
        assert_eq!(key(Part::Json("/a".into()), b"{\"a\": "), None);
    }

    #[test]
    fn letters_are_one_in_both_cases() {
        let keys = Keys { ignore_case: true, ..keys(Part::Whole) };
        assert_eq!(keys.of("ÄÖ x\n".as_bytes()).unwrap(), "äö x".as_bytes());
        assert_eq!(keys.of(b"\xffABC\n").unwrap(), &b"\xffabc"[..]);
    }
}
