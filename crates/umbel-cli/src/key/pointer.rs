//! A value inside a JSON record, by a pointer (RFC 6901).
//!
//! Only that value is kept. A tree of the whole record takes up to 50 times its bytes, which a long record of small numbers
//! makes gigabytes.

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::fmt;

/// Why a record is no JSON. Columns are counted in bytes from 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotJson {
    Utf8 { column: usize },
    Depth { column: usize },
    Ended { column: usize },
    Syntax { column: usize, text: String },
}

impl From<serde_json::Error> for NotJson {
    fn from(error: serde_json::Error) -> Self {
        // The record is one line, so only the column says something.
        let (column, text) = (error.column(), error.to_string());
        let text = text.split(" at line ").next().unwrap_or_default();
        if text == "recursion limit exceeded" {
            return Self::Depth { column };
        }
        if error.is_eof() {
            Self::Ended { column }
        } else {
            Self::Syntax { column, text: text.into() }
        }
    }
}

/// The value that a pointer with these names leads to, if there is one. Of equal names the last one counts.
///
/// # Errors
///
/// If the record is not JSON.
pub(super) fn value_at(record: &[u8], names: &[String]) -> Result<Option<Value>, NotJson> {
    // Strings that are skipped are not looked at by the parser.
    if let Err(error) = std::str::from_utf8(record) {
        return Err(NotJson::Utf8 { column: error.valid_up_to() + 1 });
    }
    let mut parser = serde_json::Deserializer::from_slice(record);
    let found = At(names).deserialize(&mut parser)?;
    parser.end()?;
    Ok(found)
}

/// What is at these names, from here on.
struct At<'a>(&'a [String]);

impl<'de> DeserializeSeed<'de> for At<'_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        if self.0.is_empty() {
            return serde::Deserialize::deserialize(from).map(Some);
        }
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for At<'_> {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut found = None;
        while let Some(is_next) = map.next_key_seed(Is(&self.0[0]))? {
            if is_next {
                found = map.next_value_seed(At(&self.0[1..]))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Self::Value, S::Error> {
        let (name, mut found, mut at) = (&self.0[0], None, 0);
        let zeros = name.starts_with('+') || (name.starts_with('0') && name.len() > 1);
        let wanted = name.parse::<usize>().ok().filter(|_| !zeros);
        loop {
            if wanted == Some(at) {
                let Some(value) = list.next_element_seed(At(&self.0[1..]))? else { break };
                found = value;
            } else if list.next_element::<IgnoredAny>()?.is_none() {
                break;
            }
            at += 1;
        }
        Ok(found)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

/// Whether a name is this one.
struct Is<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<bool, D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for Is<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(record: &[u8], pointer: &str) -> Result<Option<Value>, NotJson> {
        let unescaped = |name: &str| name.replace("~1", "/").replace("~0", "~");
        let names: Vec<String> = pointer.split('/').skip(1).map(unescaped).collect();
        value_at(record, &names)
    }

    /// The tree of the whole record is the model.
    #[test]
    fn values_are_those_of_the_whole_tree() {
        let records = [
            r#"{"a": {"b": [1, "x", {"c": null}]}, "c/d": true, "m~n": [], "n": 1.50, "": {"": 7}}"#,
            r#"{"a": {"b": 1}, "a": {"c": 2}}"#,
            r#"{"a": {"c": 1}, "a": 5}"#,
            r#"[[0, [1, 2]], {"0": 3}, -1e400, "\u00e4", 12345678901234567890123]"#,
            "17",
            "1.5e3",
            "\"text\"",
            "null",
            "false",
            " [ ] ",
        ];
        let pointers = [
            "", "/", "/a", "/a/b", "/a/b/0", "/a/b/1", "/a/b/2/c", "/a/b/3", "/a/b/00", "/a/b/+1",
            "/a/b/-", "/a/c", "/c~1d", "/m~0n", "/m~0n/0", "/n", "/n/0", "//", "/0", "/0/1/1",
            "/1/0", "/2", "/3", "/4", "/9", "/17/x",
        ];
        for record in records {
            let tree: Value = serde_json::from_str(record).expect("JSON");
            for pointer in pointers {
                let got = at(record.as_bytes(), pointer).expect("JSON");
                assert_eq!(got.as_ref(), tree.pointer(pointer), "{record} {pointer}");
            }
        }
    }

    #[test]
    fn what_is_not_json_is_refused_wherever_it_is() {
        for broken in
            ["", "{", "{\"a\":", "{\"a\":1}x", "{\"a\":1,}", "[1,,2]", "{a:1}", "{\"b\":[1}", "nul"]
        {
            for pointer in ["", "/a", "/b", "/0"] {
                assert!(at(broken.as_bytes(), pointer).is_err(), "{broken} {pointer}");
            }
        }
        let invalid = at(b"{\"skipped\": \"\xff\"}", "/a");
        assert_eq!(invalid, Err(NotJson::Utf8 { column: 14 }));
        let deep = "[".repeat(200);
        assert!(matches!(at(deep.as_bytes(), ""), Err(NotJson::Depth { .. })));
    }
}
