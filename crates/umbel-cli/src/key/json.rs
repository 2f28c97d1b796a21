//! The bytes of a JSON value in a key.
//!
//! A string is its characters in UTF-8. Every other value is compact JSON as it was written: `1`, `1.0` and `1e0` are three keys.
//!
//! In `dedup` (`--json-as typed`) the byte FF, which no UTF-8 holds, is before a value that is no string, so that `1` and `"1"` are
//! two keys: one of them must not make the other vanish. Elsewhere (`--json-as text`) that byte is left out, and a number is the same key as a
//! string of its digits: a filter may be built from a plain list of numbers and asked with JSON, and must not call these absent.

use super::pointer::{NotJson, value_at};
use anyhow::{Result, anyhow, bail};
use clap::ValueEnum;
use serde_json::Value;
use std::str::FromStr;

/// How values that are no strings become keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum JsonAs {
    /// Numbers, true, false, null, arrays and objects are never the key of a string
    Typed,
    /// The number 1 and the string "1" are one key, as in a list of plain text
    Text,
}

/// The byte before a value that is no string.
const NO_STRING: u8 = 0xff;

/// A pointer (RFC 6901), and the names in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pointer {
    text: String,
    names: Vec<String>,
}

impl FromStr for Pointer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !text.is_empty() && !text.starts_with('/') {
            return Err(format!(
                "expected a JSON pointer, which begins with a slash, such as /{text}; for a report as JSON, use --report json"
            ));
        }
        let unescaped = |name: &str| name.replace("~1", "/").replace("~0", "~");
        let names = text.split('/').skip(1).map(unescaped).collect();
        Ok(Self { text: text.to_owned(), names })
    }
}

/// The bytes of a value, and the byte before them.
pub(super) fn value(
    content: &[u8],
    pointer: &Pointer,
    json_as: JsonAs,
) -> Result<(Vec<u8>, Option<u8>)> {
    if content.trim_ascii().is_empty() {
        bail!("expected JSON, found an empty record");
    }
    let found = value_at(content, &pointer.names).map_err(|error| anyhow!(told(&error)))?;
    let Some(value) = found else { bail!("there is no value at {:?} in the record", pointer.text) };
    Ok(match value {
        Value::String(text) => (text.into_bytes(), None),
        other => (serde_json::to_vec(&other)?, (json_as == JsonAs::Typed).then_some(NO_STRING)),
    })
}

fn told(error: &NotJson) -> String {
    match error {
        NotJson::Utf8 { column } => {
            format!("expected JSON in UTF-8, found another byte at column {column}")
        }
        NotJson::Depth { column } => format!(
            "the JSON is nested more than 127 levels deep, at column {column}; write the record flatter or take out its key first"
        ),
        NotJson::Ended { column } => {
            format!(
                "expected JSON, found a record that ends inside a value, at column {column}; write each value on one line, as jq -c does"
            )
        }
        NotJson::Syntax { column, text } => {
            format!("expected JSON, found something else at column {column}: {text}")
        }
    }
}
