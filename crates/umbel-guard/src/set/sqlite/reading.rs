//! Read-only connections, also to a file beside which SQLite may not create files.
//!
//! A file in WAL mode is read through an index, `-shm`, which SQLite creates if it does not exist. Where SQLite
//! cannot create it, on a read-only file system or in a folder of another user, it refuses to open the file. If
//! there is no log, all rows are in the file itself, and SQLite can read it as immutable (`immutable`), without
//! locks. That is correct only while the file does not change. So its size and modification time are compared
//! before and after every statement.

use super::error::SqliteError;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// How read-only connections are opened.
#[derive(Debug)]
pub(super) enum Reading {
    /// With locks, concurrently with writers.
    Shared,
    /// Without locks, while the file has these properties.
    Unchanging(Facts),
}

/// Properties that change when the file changes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Facts {
    length: u64,
    changed: Option<SystemTime>,
    log: u64,
}

impl Facts {
    fn of(path: &Path) -> Option<Self> {
        let file = std::fs::metadata(path).ok()?;
        let log = std::fs::metadata(log_of(path)).map_or(0, |log| log.len());
        Some(Self { length: file.len(), changed: file.modified().ok(), log })
    }
}

/// The path of the write-ahead log of a file.
pub(super) fn log_of(path: &Path) -> PathBuf {
    let mut path = path.to_owned().into_os_string();
    path.push("-wal");
    path.into()
}

impl Reading {
    /// Opens the first connection to a file, and decides how later ones are opened.
    pub(super) fn begin(path: &Path) -> Result<(Self, Connection), SqliteError> {
        let connection = Self::Shared.open(path)?;
        // SQLite reads the file only at the first query.
        let read = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
        match read {
            Err(rusqlite::Error::SqliteFailure(error, _))
                if matches!(error.code, ErrorCode::CannotOpen | ErrorCode::ReadOnly) =>
            {
                let facts = Facts::of(path).filter(|facts| facts.log == 0);
                let facts = facts.ok_or_else(|| SqliteError::Log { path: path.to_owned() })?;
                let reading = Self::Unchanging(facts);
                let connection = reading.open(path)?;
                Ok((reading, connection))
            }
            Err(error) => Err(error.into()),
            Ok(()) => Ok((Self::Shared, connection)),
        }
    }

    pub(super) fn open(&self, path: &Path) -> Result<Connection, SqliteError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let connection = match self {
            Self::Shared => Connection::open_with_flags(path, flags)?,
            Self::Unchanging(_) => {
                let uri = format!(
                    "file:{}?immutable=1",
                    escaped(
                        &std::path::absolute(path)
                            .map_err(|_| SqliteError::Moved { path: path.to_owned() })?
                    )
                );
                Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)?
            }
        };
        connection.busy_timeout(super::BUSY)?;
        Ok(connection)
    }

    /// Fails if the file has changed although nothing locks it.
    pub(super) fn check(&self, path: &Path) -> Result<(), SqliteError> {
        match self {
            Self::Unchanging(facts) if Facts::of(path).as_ref() != Some(facts) => {
                Err(SqliteError::Changed { path: path.to_owned() })
            }
            _ => Ok(()),
        }
    }
}

/// A path with percent-encoding: all bytes except letters, digits and a few signs, as `%41`.
fn escaped(path: &Path) -> String {
    let mut text = String::new();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                text.push(char::from(*byte));
            }
            _ => _ = write!(text, "%{byte:02X}"),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_read_without_locks_is_refused_when_it_changes() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a b?#%.db");
        let writer = Connection::open(&path).unwrap();
        writer.execute_batch("CREATE TABLE t (k); INSERT INTO t VALUES (1)").unwrap();
        let reading = Reading::Unchanging(Facts::of(&path).unwrap());
        let rows = |connection: &Connection| -> i64 {
            connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
        };
        assert_eq!(rows(&reading.open(&path).unwrap()), 1);
        reading.check(&path).unwrap();
        // Larger than a page, so that the file grows.
        writer.execute_batch("INSERT INTO t VALUES (zeroblob(10000))").unwrap();
        assert!(matches!(reading.check(&path), Err(SqliteError::Changed { .. })));
        // A log that appears has rows that are not in the file.
        let reading = Reading::Unchanging(Facts::of(&path).unwrap());
        reading.check(&path).unwrap();
        std::fs::write(log_of(&path), "log").unwrap();
        assert!(matches!(reading.check(&path), Err(SqliteError::Changed { .. })));
        std::fs::remove_file(log_of(&path)).unwrap();
        // A file beside which SQLite can create files is read with locks.
        assert!(matches!(Reading::begin(&path), Ok((Reading::Shared, _))));
    }
}
