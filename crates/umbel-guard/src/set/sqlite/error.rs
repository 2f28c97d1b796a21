//! Errors of an SQLite data set.

use crate::data_set::Refusal;
use rusqlite::{ErrorCode, ffi};
use std::fmt;
use std::path::PathBuf;

/// The error of an SQLite data set.
#[derive(Debug)]
#[non_exhaustive]
pub enum SqliteError {
    /// SQLite failed before it was asked to commit: nothing was written.
    Sqlite(rusqlite::Error),
    /// SQLite failed to commit: the write may be in the file, unless a constraint was violated.
    Commit(rusqlite::Error),
    /// The table or the column does not exist.
    Missing {
        /// The missing table or column.
        what: String,
    },
    /// It is not an ordinary table.
    NotATable {
        /// Its name.
        name: String,
        /// Its kind.
        found: String,
    },
    /// The column is generated, so it cannot be written.
    Generated {
        /// Its name.
        column: String,
    },
    /// Keys of this column cannot be compared as bytes.
    KeyType {
        /// Its type.
        declared: String,
    },
    /// The column has no unique index that compares keys byte by byte.
    NotUnique {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// The statement that changes it.
        fix: String,
    },
    /// Text is stored in UTF-16.
    Encoding {
        /// The value of `PRAGMA encoding`.
        found: String,
    },
    /// The bytes are not valid for the type of the column.
    Unfit {
        /// The type of the column.
        declared: String,
    },
    /// Another unique column already has this value. Nothing was written.
    Conflict {
        /// The message of SQLite.
        constraint: String,
    },
    /// A trigger has changed the key, so the write was rolled back.
    KeyChanged {
        /// The key that was given.
        expected: Vec<u8>,
        /// The key that was stored, if it was found.
        found: Option<Vec<u8>>,
    },
    /// A trigger or a conflict clause has dropped the write.
    NotStored,
    /// A trigger inserted the deleted row again, so the delete was rolled back.
    NotDeleted,
    /// The set was opened for reading only.
    ReadOnly,
    /// Another file has replaced the open one.
    Moved {
        /// The path.
        path: PathBuf,
    },
    /// The file or its log has changed during a read without locks. SQLite may not create files beside it.
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The file has a log, and SQLite may not create the index that it needs to read the log.
    Log {
        /// The file.
        path: PathBuf,
    },
    /// The file was opened with [`Sqlite::open_without_stamp`](super::Sqlite::open_without_stamp), and a guard has left its
    /// stamp in it.
    Stamped,
    /// Another guard was started in front of this table. Nothing was written.
    Superseded {
        /// The incarnation of the guard that wanted to write.
        expected: u64,
        /// The incarnation of the guard that was started last.
        found: u64,
    },
    /// The table was replaced by an older copy of itself. Nothing was written.
    Restored {
        /// The number of a write that the table had confirmed.
        confirmed: u64,
        /// The number of the last write in the table.
        found: u64,
    },
    /// The thread that ran the statement panicked, or its runtime was shut down: a write may be in the file.
    Abandoned,
}

impl fmt::Display for SqliteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(error) => error.fmt(f),
            Self::Commit(error) => write!(f, "the commit failed: {error}"),
            Self::Missing { what } => write!(f, "there is no {what}"),
            Self::NotATable { name, found } => {
                write!(f, "expected {name} to be an ordinary table, found a {found}; guard the table behind it")
            }
            Self::Generated { column } => write!(
                f,
                "expected a column that can be written, found that {column} is generated; name another column"
            ),
            Self::KeyType { declared } => write!(
                f,
                "expected a key column of text, blobs or integers, found one of type {declared}; name another column"
            ),
            Self::NotUnique { table, column, fix } => write!(
                f,
                "expected a primary key or unique index on {column} of {table} alone, with the collation BINARY and for \
                 all rows, found none; run: {fix}"
            ),
            Self::Encoding { found } => write!(
                f,
                "expected a database with the encoding UTF-8, found {found}; copy it with `.dump` into a new file"
            ),
            Self::Unfit { declared } => {
                write!(f, "the key does not fit: expected a key of a column of type {declared}")
            }
            Self::Conflict { constraint } => write!(
                f,
                "another row has the same value in a unique column ({constraint}); nothing was written"
            ),
            Self::KeyChanged { expected, found } => {
                let expected = String::from_utf8_lossy(expected);
                write!(f, "a trigger changed the key, so the write was rolled back: expected {expected:?}, ")?;
                match found {
                    Some(found) => write!(f, "found {:?}", String::from_utf8_lossy(found))?,
                    None => f.write_str("found no such row")?,
                }
                f.write_str("; write the key as the trigger stores it, or remove the trigger")
            }
            Self::NotStored => f.write_str(
                "a trigger or an ON CONFLICT clause of the table dropped the write; nothing was written",
            ),
            Self::NotDeleted => f.write_str(
                "a trigger put the row back or kept it, so the delete was rolled back; remove the trigger",
            ),
            Self::ReadOnly => f.write_str(
                "expected a file that is open for writing, got one from `Sqlite::read_only`; use `Sqlite::open`",
            ),
            Self::Moved { path } => write!(
                f,
                "another file was put in the place of {path}; stop the guard, delete {path}-wal and {path}-shm, \
                 put the file there again, and start the guard",
                path = path.display()
            ),
            Self::Changed { path } => write!(
                f,
                "the file {} changed while it was read: SQLite cannot lock a file where it may not write; run the command again, or \
                 as a user who may write to the folder",
                path.display()
            ),
            Self::Log { path } => write!(
                f,
                "the file has a write-ahead log ({}-wal), and SQLite cannot read it in a folder where it may not write; run the \
                 command as a user who may, or close the file in the program that writes to it",
                path.display()
            ),
            Self::Stamped => f.write_str(
                "expected no stamp for a guard without one, found one of an earlier guard in the table umbel_guard; start the \
                 guard with its stamp, or stop all guards and run: DROP TABLE umbel_guard",
            ),
            Self::Superseded { expected, found } => write!(
                f,
                "another guard was started in front of this table: expected incarnation {expected:016x}, \
                 found {found:016x}; stop one of the two"
            ),
            Self::Restored { confirmed, found } => write!(
                f,
                "the table was replaced by an older copy: its last write is number {found}, and number {confirmed} was \
                 confirmed; write again when the guard has noticed"
            ),
            Self::Abandoned => f.write_str(
                "the thread that ran the statement has ended; a write may be in the file or not",
            ),
        }
    }
}

impl SqliteError {
    /// Whether the key or the value caused the error.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Conflict { .. } | Self::NotStored | Self::NotDeleted => Some(Refusal::Conflict),
            Self::Unfit { .. } | Self::KeyChanged { .. } => Some(Refusal::Unfit),
            Self::Sqlite(rusqlite::Error::SqliteFailure(error, _))
            | Self::Commit(rusqlite::Error::SqliteFailure(error, _)) => {
                match (error.code, error.extended_code) {
                    (ErrorCode::ConstraintViolation, ffi::SQLITE_CONSTRAINT_FOREIGNKEY) => {
                        Some(Refusal::Conflict)
                    }
                    (
                        ErrorCode::ConstraintViolation
                        | ErrorCode::TooBig
                        | ErrorCode::TypeMismatch,
                        _,
                    ) => Some(Refusal::Unfit),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// Without a source: the message already has the text of SQLite, and the error is in the variant.
impl std::error::Error for SqliteError {}

impl From<rusqlite::Error> for SqliteError {
    fn from(error: rusqlite::Error) -> Self {
        // The write knows whether the key exists before it writes, so these conflicts are on another column.
        match &error {
            rusqlite::Error::SqliteFailure(ffi::Error { extended_code, .. }, Some(constraint))
                if matches!(
                    *extended_code,
                    ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY
                ) =>
            {
                Self::Conflict { constraint: constraint.clone() }
            }
            _ => Self::Sqlite(error),
        }
    }
}
