//! Fields of a record of CSV (RFC 4180). Records that get here are well-formed: the scanner of the input has refused others.

use crate::input::MARK;
use anyhow::{Result, bail};
use std::borrow::Cow;

/// A field by its number from 0, without quotes.
pub(super) fn field(content: &[u8], column: usize, between: u8) -> Result<Cow<'_, [u8]>> {
    let Some(raw) = raw_fields(content, between).nth(column) else {
        let count = raw_fields(content, between).count();
        let plural = if count == 1 { "" } else { "s" };
        let number = column.saturating_add(1);
        bail!("there is no column {number} (the record has {count} column{plural})");
    };
    Ok(unquoted(raw))
}

/// All fields, without quotes.
fn fields(content: &[u8], between: u8) -> impl Iterator<Item = Cow<'_, [u8]>> {
    raw_fields(content, between).map(unquoted)
}

/// The names of columns.
pub(crate) fn columns(header: &[u8], between: u8) -> impl Iterator<Item = Cow<'_, [u8]>> {
    fields(header, between)
}

/// Whether each field that begins with a quote ends with the one that closes it. Records of an input are known to.
pub(crate) fn is_well_formed(content: &[u8], between: u8) -> bool {
    raw_fields(content, between).all(|raw| {
        let quotes = memchr::memchr_iter(b'"', raw).count();
        raw.first() != Some(&b'"') || quotes.is_multiple_of(2) && closed(raw) == raw.len()
    })
}

/// The fields as they stand there. A mark of UTF-8, as spreadsheets write it, is no part of the first.
fn raw_fields(content: &[u8], between: u8) -> impl Iterator<Item = &[u8]> {
    let content = content.strip_prefix(MARK).unwrap_or(content);
    let mut rest = Some(content.strip_suffix(b"\r").unwrap_or(content));
    std::iter::from_fn(move || {
        let start = rest?;
        let quoted = if start.first() == Some(&b'"') { closed(start) } else { 0 };
        let end = memchr::memchr(between, &start[quoted..]).map(|at| quoted + at);
        rest = end.map(|end| &start[end + 1..]);
        Some(&start[..end.unwrap_or(start.len())])
    })
}

/// Where a quoted field ends, behind its closing quote.
fn closed(field: &[u8]) -> usize {
    let mut at = 1;
    while let Some(found) = memchr::memchr(b'"', &field[at..]) {
        at += found + 1;
        if field.get(at) != Some(&b'"') {
            return at;
        }
        at += 1;
    }
    field.len()
}

/// The field without its quotes; two quotes inside are one.
fn unquoted(raw: &[u8]) -> Cow<'_, [u8]> {
    let Some(inner) = raw.strip_prefix(b"\"") else { return raw.into() };
    let inner = inner.strip_suffix(b"\"").unwrap_or(inner);
    let Some(first) = memchr::memchr(b'"', inner) else { return inner.into() };
    let (mut field, mut rest) = (inner[..first].to_vec(), &inner[first..]);
    while let Some(at) = memchr::memchr(b'"', rest) {
        field.extend_from_slice(&rest[..=at]);
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    field.extend_from_slice(rest);
    field.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_between_delimiters_outside_of_quotes() {
        for (record, between, expected) in [
            (&b""[..], b',', &[&b""[..]][..]),
            (b"1,5;\"a;b\"", b';', &[b"1,5", b"a;b"]),
            (b"\"\"\"\",\"a\"\"\",\"\"\"b\",\"\"\"\"\"\"", b',', &[b"\"", b"a\"", b"\"b", b"\"\""]),
            (b",\"\"\r", b',', &[b"", b""]),
        ] {
            assert!(fields(record, between).eq(expected.iter().copied()), "{expected:?}");
        }
        for (record, well) in
            [("a,\"b,c\"", true), ("\"a\"\"\"", true), ("5\" x,b", true), ("", true)]
                .into_iter()
                .chain([("\"a", false), ("\"", false), ("\"\"\"", false), ("a,\"b\"c", false)])
        {
            assert_eq!(is_well_formed(record.as_bytes(), b','), well, "{record}");
        }
        assert!(columns("\u{feff}\"a,b\",c".as_bytes(), b',').eq([&b"a,b"[..], b"c"]));
    }
}
