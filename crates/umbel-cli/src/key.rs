//! Which part of a record is its key, and what bytes it has.
//!
//! A key of one part is the bytes of that part. A key of several parts is the netstring of each part, one after the other: the length
//! in decimal digits, a colon, the bytes, a comma. `ann` and `film7` are `3:ann,5:film7,`, so no two different lists of parts have the
//! same bytes. docs/format.md says this for other languages.

mod csv;
mod field;
mod json;
mod pointer;

pub(crate) use csv::{columns, is_well_formed};
pub(crate) use field::{Field, SingleField, Span};
pub(crate) use json::{JsonAs, Pointer};

use anyhow::Result;
use std::borrow::Cow;
use std::io::Write;

/// Where in a record its key is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    /// All of it.
    Whole,
    /// Some fields; between these bytes, or between blanks.
    Fields(Vec<Field>, Option<Vec<u8>>),
    /// Every field is a key of its own.
    Each(Option<Vec<u8>>),
    /// Some columns of CSV by their numbers from 0, with this between columns.
    Csv(Vec<usize>, u8),
    /// Some values in JSON.
    Json(Vec<Pointer>, JsonAs),
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

/// Takes the parts of a key in their order. The second is the byte that stands before a part of JSON that is no text.
type Take<'a> = dyn FnMut(Cow<'_, [u8]>, Option<u8>) + 'a;

impl Keys {
    /// The record without its end.
    pub(crate) fn content<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        let content = record.strip_suffix(&[self.end]).unwrap_or(record);
        if self.crlf { content.strip_suffix(b"\r").unwrap_or(content) } else { content }
    }

    /// Whether the key is the record as it is.
    pub(crate) fn is_whole(&self) -> bool {
        self.part == Part::Whole && !self.ignore_case
    }

    /// Whether a record has a key for each of its fields.
    pub(crate) fn is_each(&self) -> bool {
        matches!(self.part, Part::Each(_))
    }

    /// The field that is the key as it stands in the record, if the key is one field.
    pub(crate) fn single_field(&self) -> Option<SingleField<'_>> {
        match &self.part {
            Part::Fields(wanted, between) if !self.ignore_case => match wanted[..] {
                [field] if field.is_single() => Some(SingleField::new(field, between.as_deref())),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether a key has one part, whatever the record is.
    pub(crate) fn is_single(&self) -> bool {
        match &self.part {
            Part::Whole | Part::Each(_) => true,
            Part::Fields(fields, _) => matches!(fields[..], [field] if field.is_single()),
            Part::Csv(columns, _) => columns.len() == 1,
            Part::Json(pointers, _) => pointers.len() == 1,
        }
    }

    /// Adds the key of a record to `keys`, and where it ends to `ends`: one end, or one for each field.
    pub(crate) fn add(
        &self,
        record: &[u8],
        keys: &mut Vec<u8>,
        ends: &mut Vec<usize>,
    ) -> Result<()> {
        let start = keys.len();
        let single = self.is_single();
        let fold = self.ignore_case;
        let each = self.is_each();
        let added = self.parts(record, &mut |part, mark| {
            let part = if fold { folded(&part, true).into_owned().into() } else { part };
            if !single {
                let length = part.len() + usize::from(mark.is_some());
                write!(keys, "{length}:").expect("memory takes all bytes");
            }
            keys.extend(mark);
            keys.extend_from_slice(&part);
            if !single {
                keys.push(b',');
            }
            if each {
                ends.push(keys.len());
            }
        });
        if added.is_err() {
            keys.truncate(start);
        } else if !each {
            ends.push(keys.len());
        }
        added
    }

    /// The parts of the key as they stand in the record, for people.
    pub(crate) fn texts(&self, record: &[u8], mut each: impl FnMut(&[u8])) -> Result<()> {
        self.parts(record, &mut |part, _| each(&part))
    }

    /// What stands between the parts when they are printed.
    pub(crate) fn between(&self) -> &[u8] {
        match &self.part {
            Part::Fields(_, Some(between)) => between,
            _ => b"\t",
        }
    }

    fn parts(&self, record: &[u8], take: &mut Take<'_>) -> Result<()> {
        let content = self.content(record);
        match &self.part {
            Part::Whole => take(content.into(), None),
            Part::Fields(wanted, between) => {
                field::find(content, wanted, between.as_deref(), &mut |part| {
                    take(part.into(), None)
                })?;
            }
            Part::Each(between) => {
                field::each(content, between.as_deref(), &mut |part| take(part.into(), None));
            }
            Part::Csv(wanted, between) => {
                for column in wanted {
                    take(csv::field(content, *column, *between)?, None);
                }
            }
            Part::Json(pointers, json_as) => {
                for pointer in pointers {
                    let (part, mark) = json::value(content, pointer, *json_as)?;
                    take(part.into(), mark);
                }
            }
        }
        Ok(())
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

    fn key_of(keys: &Keys, record: &[u8]) -> Option<Vec<u8>> {
        let (mut key, mut ends) = (Vec::new(), Vec::new());
        keys.add(record, &mut key, &mut ends).ok()?;
        assert_eq!(ends, [key.len()]);
        Some(key)
    }

    fn key(part: Part, record: &[u8]) -> Option<Vec<u8>> {
        key_of(&keys(part), record)
    }

    #[test]
    fn ends_are_no_part_of_a_key() {
        let mut keys = keys(Part::Whole);
        assert_eq!(keys.content(b"a\r\n"), b"a\r");
        keys.crlf = true;
        assert_eq!(keys.content(b"a\r\n"), b"a");
        assert_eq!(keys.content(b"a"), b"a");
        assert_eq!(keys.content(b"\n"), b"");
    }

    fn fields(list: &str, between: Option<&str>) -> Part {
        let spans: Span = list.parse().unwrap();
        Part::Fields(spans.0, between.map(|between| between.as_bytes().to_vec()))
    }

    #[test]
    fn fields_are_counted_from_both_ends() {
        for (list, expected) in [
            ("1", Some("a")),
            ("3", Some("")),
            ("4", Some("d")),
            ("-1", Some("d")),
            ("-4", Some("a")),
            ("5", None),
            ("-5", None),
            ("1,4", Some("1:a,1:d,")),
            ("4,1", Some("1:d,1:a,")),
            ("1,1", Some("1:a,1:a,")),
            ("2-4", Some("1:b,0:,1:d,")),
            ("3-", Some("0:,1:d,")),
            ("4-", Some("1:d,")),
            ("-2--1", Some("0:,1:d,")),
            ("2-5", None),
            ("5-", None),
        ] {
            let got = key(fields(list, Some(",")), b"a,b,,d\n");
            assert_eq!(got.as_deref(), expected.map(str::as_bytes), "{list}");
        }
        assert_eq!(key(fields("2", None), b"  a \t b  c\n").unwrap(), b"b");
        assert_eq!(key(fields("2", Some("::")), b"a::b:c\n").unwrap(), b"b:c");
    }

    #[test]
    fn different_parts_have_different_keys() {
        let lines = ["1:a,:b", "1,1:a:,b", "::", ":a:", "a::", "a:b:", ":a:b", "a:1:b,", ",:,:,"];
        for list in ["1,2", "1-2", "1-", "2,1", "1,2,3"] {
            let all: Vec<(Vec<Vec<u8>>, Vec<u8>)> = lines
                .iter()
                .filter_map(|line| {
                    let keys = keys(fields(list, Some(":")));
                    let mut parts = Vec::new();
                    keys.texts(line.as_bytes(), |part| parts.push(part.to_vec())).ok()?;
                    Some((parts, key_of(&keys, line.as_bytes())?))
                })
                .collect();
            assert!(all.len() > 5);
            for one in &all {
                for other in &all {
                    assert_eq!(one.0 == other.0, one.1 == other.1, "{one:?} {other:?}");
                }
            }
        }
    }

    #[test]
    fn columns_of_csv_lose_their_quotes() {
        let record = b"1,\"two, \"\"too\"\"\",,\"\",x\"y,5\" z\r\n";
        let expected: [&[u8]; 6] = [b"1", b"two, \"too\"", b"", b"", b"x\"y", b"5\" z"];
        for (column, expected) in expected.iter().enumerate() {
            let got = key(Part::Csv(vec![column], b','), record);
            assert_eq!(got.as_deref(), Some(*expected), "{column}");
        }
        assert_eq!(key(Part::Csv(vec![6], b','), record), None);
        assert_eq!(key(Part::Csv(vec![0, 6], b','), record), None);
        assert_eq!(key(Part::Csv(vec![1, 0], b','), record).unwrap(), b"10:two, \"too\",1:1,");
    }

    #[test]
    fn values_of_json_are_found_by_pointers() {
        let record =
            "{\"a\": {\"b\": [1, \"x\"]}, \"c/d\": null, \"n\": 1.50, \"s\": \"1\"}".as_bytes();
        let json = |pointers: &[&str], json_as: JsonAs| {
            let pointers = pointers.iter().map(|text| text.parse().unwrap()).collect();
            key(Part::Json(pointers, json_as), record)
        };
        for (pointer, text, typed) in [
            ("/a/b/1", "x", &b"x"[..]),
            ("/a/b/0", "1", b"\xff1"),
            ("/a", "{\"b\":[1,\"x\"]}", b"\xff{\"b\":[1,\"x\"]}"),
            ("/c~1d", "null", b"\xffnull"),
            ("/n", "1.50", b"\xff1.50"),
            ("/s", "1", b"1"),
        ] {
            assert_eq!(json(&[pointer], JsonAs::Text).unwrap(), text.as_bytes(), "{pointer}");
            assert_eq!(json(&[pointer], JsonAs::Typed).unwrap(), typed, "{pointer}");
        }
        assert_eq!(json(&["/none"], JsonAs::Typed), None);
        assert_eq!(json(&["/s", "/a/b/0"], JsonAs::Typed).unwrap(), b"1:1,2:\xff1,");
        assert_eq!(json(&["/s", "/a/b/0"], JsonAs::Text).unwrap(), b"1:1,1:1,");
    }

    #[test]
    fn letters_are_one_in_both_cases() {
        let keys = Keys { ignore_case: true, ..keys(Part::Whole) };
        assert_eq!(key_of(&keys, "ÄÖ x\n".as_bytes()).unwrap(), "äö x".as_bytes());
        assert_eq!(key_of(&keys, b"\xffABC\n").unwrap(), b"\xffabc");
        // Lengths are those of the folded parts.
        let keys = Keys { part: fields("1,2", None), ..keys };
        assert_eq!(key_of(&keys, "İ A\n".as_bytes()).unwrap(), "3:i\u{307},1:a,".as_bytes());
    }
}
