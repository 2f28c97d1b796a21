//! Conversion of keys and values between bytes and column types.

use super::error::Result;
use std::borrow::Cow;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

/// The type of the key column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    Text,
    Bytes,
    /// Integers of this many bytes.
    Integers(u8),
    Uuids,
}

/// The type of the value column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Values {
    Bytes,
    /// Any other type, with its name. Its values are sent and read as text.
    Written(String),
}

impl Keys {
    /// The key as a query parameter; `None` if the column cannot have this key.
    pub(super) fn param(self, key: &[u8]) -> Option<Param<'_>> {
        match self {
            Self::Text => text(key).map(Param::Text),
            Self::Bytes => Some(Param::Bytes(key)),
            Self::Integers(bytes) => {
                let number = number(key)?;
                let fits = match bytes {
                    2 => i16::try_from(number).is_ok(),
                    4 => i32::try_from(number).is_ok(),
                    _ => true,
                };
                fits.then(|| Param::Text(number.to_string().into()))
            }
            Self::Uuids => uuid(key).map(|text| Param::Text(text.into())),
        }
    }
}

pub(super) fn number(key: &[u8]) -> Option<i64> {
    std::str::from_utf8(key).ok()?.trim().parse().ok()
}

/// The canonical form in which the server writes a UUID.
pub(super) fn uuid(key: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(key).ok()?;
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
    let digits: String = inner.chars().filter(|letter| *letter != '-').collect();
    if digits.len() != 32 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let low = digits.to_ascii_lowercase();
    let parts = [&low[..8], &low[8..12], &low[12..16], &low[16..20], &low[20..]];
    Some(parts.join("-"))
}

/// Text that the server accepts.
pub(super) fn text(bytes: &[u8]) -> Option<Cow<'_, str>> {
    let text = std::str::from_utf8(bytes).ok()?;
    (!text.contains('\0')).then_some(Cow::Borrowed(text))
}

/// A key or a value as a query parameter.
#[derive(Debug)]
pub(super) enum Param<'a> {
    Text(Cow<'a, str>),
    Bytes(&'a [u8]),
}

impl Param<'_> {
    pub(super) fn get(&self) -> &(dyn ToSql + Sync) {
        match self {
            Self::Text(Cow::Owned(text)) => text,
            Self::Text(Cow::Borrowed(text)) => text,
            Self::Bytes(bytes) => bytes,
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// Text or bytes that the server sent.
pub(super) fn bytes_of(row: &Row) -> Result<Option<Vec<u8>>> {
    if row.columns()[0].type_() == &Type::BYTEA {
        Ok(row.try_get(0)?)
    } else {
        Ok(row.try_get::<_, Option<String>>(0)?.map(String::into_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_are_written_in_one_way() {
        let one = "2f1e4d6a-0b3c-4d5e-8f90-a1b2c3d4e5f6";
        for other in
            ["2F1E4D6A-0B3C-4D5E-8F90-A1B2C3D4E5F6", "{2f1e4d6a0b3c4d5e8f90a1b2c3d4e5f6}", one]
        {
            assert_eq!(uuid(other.as_bytes()).as_deref(), Some(one));
        }
        assert!(uuid(b"2f1e4d6a").is_none() && uuid(&[b'g'; 32]).is_none());
        for seven in [&b"7"[..], b"+7", b"007", b" 7 "] {
            assert_eq!(number(seven), Some(7));
        }
        assert!(number(b"7.0").is_none() && number(b"").is_none() && number(b"\xff").is_none());
        assert!(Keys::Integers(2).param(b"40000").is_none());
        assert!(Keys::Integers(4).param(b"40000").is_some());
        assert!(Keys::Text.param(b"a\0b").is_none() && Keys::Bytes.param(b"a\0b").is_some());
    }
}
