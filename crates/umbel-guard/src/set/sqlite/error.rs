//! What can go wrong.

use rusqlite::ffi;
use std::fmt;
use std::path::PathBuf;

/// Why SQLite did not answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum SqliteError {
    /// SQLite failed before it was asked to commit: nothing was written.
    Sqlite(rusqlite::Error),
    /// SQLite failed to commit: the write may be in the file, unless a constraint was violated.
    Commit(rusqlite::Error),
    /// There is no such table or column.
    Missing {
        /// Which one.
        what: String,
    },
    /// It is not an ordinary table.
    NotATable {
        /// Its name.
        name: String,
        /// What it is.
        found: String,
    },
    /// The column is computed from others, so nothing can be put there.
    Generated {
        /// Its name.
        column: String,
    },
    /// The column has keys that cannot be compared as bytes.
    KeyType {
        /// Its type.
        declared: String,
    },
    /// Nothing makes the keys of the column unique, byte by byte.
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
        /// What `PRAGMA encoding` says.
        found: String,
    },
    /// These bytes cannot be a key of the column.
    Unfit {
        /// The type of the column.
        declared: String,
    },
    /// Another unique column has this value already. Nothing was written.
    Conflict {
        /// What SQLite says about it.
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
    /// A trigger has put the row back that was deleted, so the delete was rolled back.
    NotDeleted,
    /// The set was opened for reading only.
    ReadOnly,
    /// Another file was put in the place of the one that is open.
    Moved {
        /// Where.
        path: PathBuf,
    },
    /// Another guard was started in front of this table. Nothing was written.
    Superseded {
        /// The incarnation of the guard that wanted to write.
        expected: u64,
        /// The incarnation of the guard that was started last.
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
            Self::Superseded { expected, found } => write!(
                f,
                "another guard was started in front of this table: expected incarnation {expected:016x}, \
                 found {found:016x}; stop one of the two"
            ),
            Self::Abandoned => f.write_str(
                "the thread that ran the statement has ended; a write may be in the file or not",
            ),
        }
    }
}

impl std::error::Error for SqliteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Sqlite(error) | Self::Commit(error) => Some(error),
            _ => None,
        }
    }
}

impl From<rusqlite::Error> for SqliteError {
    fn from(error: rusqlite::Error) -> Self {
        // Whether the key exists is known before anything is written, so these are conflicts of another column.
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
