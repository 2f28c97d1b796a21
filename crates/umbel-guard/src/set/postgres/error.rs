//! Errors, and the text of the server about a failed statement.

use super::key::Param;
use super::sql::CHANGED;
use std::fmt;
use tokio_postgres::error::SqlState;

/// The error of a PostgreSQL data set.
#[derive(Debug)]
#[non_exhaustive]
pub enum PostgresError {
    /// An error of the server or of the connection.
    Postgres(tokio_postgres::Error),
    /// The connection failed, so no statement was sent.
    Connect(tokio_postgres::Error),
    /// TLS could not be set up, so no encrypted connection is possible.
    #[cfg(feature = "tls")]
    Tls(rustls::Error),
    /// The table or the column does not exist.
    Missing {
        /// The missing table or column.
        what: String,
    },
    /// The relation cannot be guarded.
    NotATable {
        /// Its name.
        name: String,
        /// Its kind.
        found: &'static str,
        /// What to do.
        fix: &'static str,
    },
    /// The column is generated, so it cannot be written.
    Generated {
        /// Its name.
        column: String,
    },
    /// Keys of this column cannot be compared as bytes.
    KeyType {
        /// Its type.
        name: String,
    },
    /// The key column may be NULL.
    Nullable {
        /// The column.
        column: String,
        /// The statement that changes it.
        fix: String,
    },
    /// The column has no unique index that compares keys byte by byte.
    NotUnique {
        /// The column.
        column: String,
        /// The statement that changes it.
        fix: String,
    },
    /// The server is a standby, which may lag behind its primary.
    Standby,
    /// A scan reached another server, timeline, database or table than look-ups and writes.
    Moved {
        /// The identity of the server that look-ups go to.
        expected: String,
        /// The identity of the server that the scan reached.
        found: String,
    },
    /// The table `umbel_guard` has the stamp of another guard, and this user may write to the guarded table, but
    /// not to `umbel_guard`.
    StampDenied {
        /// What the server says.
        error: tokio_postgres::Error,
        /// The table of the stamps.
        table: String,
    },
    /// The set was opened with [`without_stamp`](super::Postgres::without_stamp), and a guard has left its stamp in the table `umbel_guard`,
    /// or this user cannot see whether one has.
    Stamped {
        /// The table of the stamps.
        table: String,
    },
    /// The URL is invalid, or its password could not be found in it.
    Url,
    /// The bytes are not valid for the type of the column.
    Unfit,
    /// Another unique column already has this value. Nothing was written.
    Conflict {
        /// The constraint.
        constraint: String,
    },
    /// The stored key differs from the given key, so the write was rolled back.
    KeyChanged {
        /// The key that was given.
        expected: Vec<u8>,
        /// The key that was stored, if it was found.
        found: Option<Vec<u8>>,
    },
    /// A trigger inserted the deleted row again, so the delete was rolled back.
    NotDeleted,
    /// The row was not stored after the maximum number of attempts, because other sessions inserted and deleted
    /// it.
    Contended,
    /// Another guard was started in front of this table, or the table was replaced by an older copy. Nothing was written.
    Superseded,
}

impl fmt::Display for PostgresError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Postgres(error) => said(error, f),
            Self::Connect(error) => {
                f.write_str("no connection to the server: ")?;
                said(error, f)
            }
            #[cfg(feature = "tls")]
            Self::Tls(error) => error.fmt(f),
            Self::Missing { what } => write!(f, "there is no {what}"),
            Self::NotATable { name, found, fix } => {
                write!(f, "expected {name} to be an ordinary table, found {found}; {fix}")
            }
            Self::Generated { column } => write!(
                f,
                "expected a column that can be written, found that {column} is generated; name another column"
            ),
            Self::KeyType { name } => write!(
                f,
                "expected keys of text or varchar with a deterministic collation, bytea, integers or uuid, found {name}; \
                 name another column"
            ),
            Self::Nullable { column, fix } => {
                write!(f, "expected a key column without NULL, found that {column} allows it; run: {fix}")
            }
            Self::NotUnique { column, fix } => write!(
                f,
                "expected a primary key or unique index on {column} alone, that is valid, immediate, for all rows and \
                 with a deterministic collation, found none; run: {fix}"
            ),
            Self::Standby => f.write_str(
                "expected a primary server, found a standby; connect to the primary, or name all hosts in the URL",
            ),
            Self::Moved { expected, found } => write!(
                f,
                "the scan reached another server or table than look-ups do: expected {expected}, found {found}; \
                 name one primary in the URL"
            ),
            Self::StampDenied { error, table } => {
                write!(f, "another guard has left its stamp in {table}, and this user may not replace it: ")?;
                said(error, f)?;
                write!(f, "; grant SELECT, INSERT and UPDATE on {table} and its sequences")
            }
            Self::Stamped { table } => write!(
                f,
                "expected no stamp for a guard without one, found that a guard may have left its stamp in {table}; \
                 start the guard with its stamp, or stop all guards and run: DROP TABLE {table}"
            ),
            Self::Url => f.write_str(
                "expected a URL such as postgres://user@host/database, or settings such as host=/run/postgresql user=ada",
            ),
            Self::Unfit => f.write_str("the column cannot have these bytes"),
            Self::Conflict { constraint } => write!(
                f,
                "another row has the same value in a unique column (constraint {constraint}); nothing was written"
            ),
            Self::KeyChanged { expected, found } => {
                let expected = String::from_utf8_lossy(expected);
                write!(f, "the table changed the key, so the write was rolled back: expected {expected:?}, ")?;
                match found {
                    Some(found) => write!(f, "found {:?}", String::from_utf8_lossy(found))?,
                    None => f.write_str("found no such row")?,
                }
                f.write_str("; write the key as the table stores it, or remove the trigger or length limit")
            }
            Self::NotDeleted => f.write_str(
                "a trigger put the row back, so the delete was rolled back; remove the trigger",
            ),
            Self::Contended => f.write_str(
                "the row was not stored: a trigger drops or renames it, or others insert and delete the key all the time",
            ),
            Self::Superseded => {
                f.write_str(
                    "another guard was started in front of this table (stop one of the two), or an older copy was restored",
                )
            }
        }
    }
}

/// Formats the error of the server or of the connection.
fn said(error: &tokio_postgres::Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match error.as_db_error() {
        Some(error) => fmt::Display::fmt(error, f),
        None => fmt::Display::fmt(error, f),
    }
}

impl std::error::Error for PostgresError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Postgres(error) | Self::Connect(error) | Self::StampDenied { error, .. } => {
                Some(error)
            }
            #[cfg(feature = "tls")]
            Self::Tls(error) => Some(error),
            _ => None,
        }
    }
}

impl From<tokio_postgres::Error> for PostgresError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

pub(super) type Result<T> = std::result::Result<T, PostgresError>;

/// The error of a put that the server refused.
pub(super) fn refused(error: tokio_postgres::Error, key: &Param<'_>) -> PostgresError {
    let Some(told) = error.as_db_error() else { return PostgresError::Postgres(error) };
    if let Some((_, found)) = told.message().split_once(CHANGED) {
        let digits: Vec<u8> = found.bytes().take_while(u8::is_ascii_hexdigit).collect();
        let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0) as u8;
        let found =
            digits.chunks(2).map(|two| two.iter().fold(0, |byte, two| byte << 4 | digit(*two)));
        let expected = key.bytes().to_vec();
        return PostgresError::KeyChanged { expected, found: Some(found.collect()) };
    }
    if told.code() == &SqlState::UNIQUE_VIOLATION {
        // The statement handles a conflict on the key, so this conflict is on another column.
        let constraint = told.constraint().unwrap_or("unknown").to_owned();
        return PostgresError::Conflict { constraint };
    }
    PostgresError::Postgres(error)
}
