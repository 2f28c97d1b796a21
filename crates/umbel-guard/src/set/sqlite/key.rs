//! Conversion of keys between bytes and SQLite values.

use super::error::SqliteError;
use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};
use std::borrow::Cow;

/// The type of the key column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    Text,
    Blobs,
    Integers,
}

/// How SQLite compares keys of a column, by the rules of its affinities.
pub(super) fn keys_of(declared: &str) -> Result<Keys, SqliteError> {
    let upper = declared.to_uppercase();
    let has = |part: &str| upper.contains(part);
    if has("INT") {
        Ok(Keys::Integers)
    } else if has("CHAR") || has("CLOB") || has("TEXT") {
        Ok(Keys::Text)
    } else if has("BLOB") || upper.is_empty() {
        Ok(Keys::Blobs)
    } else {
        Err(SqliteError::KeyType { declared: declared.to_owned() })
    }
}

impl Keys {
    /// The key as an SQLite value; `None` if the column cannot have this key.
    pub(super) fn bound(self, key: &[u8]) -> Option<Key<'_>> {
        match self {
            Self::Text => Some(match std::str::from_utf8(key) {
                // SQLite ends text at a zero byte.
                Ok(text) if !text.contains('\0') => Key::Text(Cow::Borrowed(key)),
                _ => Key::Blob(Cow::Borrowed(key)),
            }),
            Self::Blobs => Some(Key::Blob(Cow::Borrowed(key))),
            Self::Integers => integer(key).map(Key::Integer),
        }
    }
}

pub(super) fn integer(key: &[u8]) -> Option<i64> {
    std::str::from_utf8(key).ok()?.parse().ok()
}

/// A key as an SQLite value. Text that other programs wrote may not be UTF-8.
#[derive(Clone, Debug)]
pub(super) enum Key<'a> {
    Text(Cow<'a, [u8]>),
    Blob(Cow<'a, [u8]>),
    Integer(i64),
    Real(f64),
}

impl Key<'_> {
    pub(super) fn into_owned(self) -> Key<'static> {
        match self {
            Self::Text(bytes) => Key::Text(Cow::Owned(bytes.into_owned())),
            Self::Blob(bytes) => Key::Blob(Cow::Owned(bytes.into_owned())),
            Self::Integer(number) => Key::Integer(number),
            Self::Real(number) => Key::Real(number),
        }
    }

    /// The key in a row; `None` for a value that cannot be a key.
    pub(super) fn of(value: ValueRef<'_>) -> Option<Key<'_>> {
        match value {
            ValueRef::Text(bytes) => Some(Key::Text(Cow::Borrowed(bytes))),
            ValueRef::Blob(bytes) => Some(Key::Blob(Cow::Borrowed(bytes))),
            ValueRef::Integer(number) => Some(Key::Integer(number)),
            ValueRef::Real(number) => Some(Key::Real(number)),
            ValueRef::Null => None,
        }
    }
}

impl ToSql for Key<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Text(bytes) => ValueRef::Text(bytes),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
        }))
    }
}
