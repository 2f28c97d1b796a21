//! A table of SQLite.

use crate::data_set::{DataSet, Outcome, Page, Put, Stamp};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, ToSql, Transaction};
use rusqlite::{TransactionBehavior, ffi, params};
use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A data set in a table of SQLite.
///
/// One connection writes, some read, all on threads that may block. The file is put into WAL mode, so that a scan and
/// a writer do not wait for each other.
///
/// **What is created in the file:** the table `umbel_guard`, with the number of the file and, for every guarded table and
/// key column, the [`Stamp`] of its guard. [`Sqlite::read_only`] creates nothing and leaves the journal mode as it is.
///
/// **What is required:** a table, not a view or a virtual table. Its key column is the `INTEGER PRIMARY KEY`, or has a
/// primary key or a unique index of its own that compares with the collation `BINARY` and is neither partial nor on an expression.
/// With only a `NOCASE` or `RTRIM` index, different keys would overwrite each other, so such a column is refused;
/// [`SqliteError::NotUnique`] has the statement to run. A column that is declared `COLLATE NOCASE` and has a `BINARY` index
/// beside its own is accepted: every statement of this module compares bytes.
///
/// **Keys:** a text column has text where the key is UTF-8, and blobs otherwise. A column that is declared `BLOB` or has no type
/// has blobs. An integer column has integers, written in decimal. Rows whose key is NULL, or of a type that the column
/// should not have, cannot be asked for; scans and counts skip NULL. After every write the key is read back in the
/// same transaction. If a trigger or a conflict clause has changed or dropped it, the write is rolled back and
/// fails with [`SqliteError::KeyChanged`] or [`SqliteError::NotStored`].
///
/// **Other writers:** commits of other connections show within a second, by `PRAGMA data_version`. *Not* noticed that way are
/// rows that a trigger of the guarded table writes into the same table under other keys.
#[derive(Clone, Debug)]
pub struct Sqlite {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    /// The file that was opened, whatever is at its path by now.
    file: FileId,
    /// Closed before the one that writes, which then moves the log into the file.
    readers: Mutex<Vec<Connection>>,
    /// The one that writes, if there may be writes. It also watches for the commits of others, so it is never replaced.
    main: Mutex<Connection>,
    writes: bool,
    column: Column,
    /// Names in `umbel_guard`.
    mark: String,
    incarnation: String,
    sql: Sql,
}

/// What the column of keys has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    Text,
    Blobs,
    Integers,
}

/// The column of keys, with the names that the schema has.
#[derive(Debug)]
struct Column {
    table: String,
    name: String,
    declared: String,
    keys: Keys,
}

#[derive(Debug)]
struct Sql {
    get: String,
    insert: String,
    update: String,
    delete: String,
    /// The key of the row that was inserted last.
    inserted: String,
    first: String,
    page: String,
    count: String,
}

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
                "another file was put in the place of {}; restart the guard",
                path.display()
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

/// A name as SQL takes it, whatever it is made of.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// What tells a file from others on this machine.
type FileId = Option<(u64, u64)>;

fn file_id(path: &Path) -> FileId {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let found = std::fs::metadata(path).ok()?;
        Some((found.dev(), found.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

/// How long a writer waits for another one.
const BUSY: Duration = Duration::from_secs(5);

impl Sqlite {
    /// The table `table` of the file at `path`, by the columns of keys and values. The file and the table are
    /// created if they do not exist.
    ///
    /// # Errors
    ///
    /// [`SqliteError`] if there is no such column, or it is not [fit for keys](Self).
    pub fn create(
        path: impl AsRef<Path>,
        table: &str,
        key: &str,
        value: &str,
    ) -> Result<Self, SqliteError> {
        let [name, key_name, value_name] = [table, key, value].map(quoted);
        let sql = format!(
            "CREATE TABLE IF NOT EXISTS {name} ({key_name} BLOB PRIMARY KEY, {value_name} BLOB)"
        );
        Connection::open(path.as_ref())?.execute_batch(&sql)?;
        Self::open(path, table, key, value)
    }

    /// The same, for a file and a table that exist. The file is put into WAL mode.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create), and if one of them does not exist.
    pub fn open(
        path: impl AsRef<Path>,
        table: &str,
        key: &str,
        value: &str,
    ) -> Result<Self, SqliteError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
        let writer = Connection::open_with_flags(path.as_ref(), flags)?;
        writer.busy_timeout(BUSY)?;
        // Before anything is changed.
        let column = key_column(&writer, table, key)?;
        let value = value_column(&writer, &column.table, value)?;
        writer.pragma_update(None, "journal_mode", "wal")?;
        // A commit is on the disk when it returns, also in WAL mode.
        writer.pragma_update(None, "synchronous", "full")?;
        writer.execute_batch(&format!("BEGIN IMMEDIATE; {OWN_TABLE} COMMIT;"))?;
        Self::with(path.as_ref(), writer, true, column, &value)
    }

    /// The same, for reading only: the file is not changed, nor is its journal mode.
    ///
    /// If the file is in WAL mode already, SQLite itself may create the files `-wal` and `-shm` beside it.
    ///
    /// The identity and the stamp are those that [`open`](Self::open) sees. If no guard was ever started on the
    /// file, there is no stamp, and the identity is the path. Writes fail with [`SqliteError::ReadOnly`].
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn read_only(
        path: impl AsRef<Path>,
        table: &str,
        key: &str,
        value: &str,
    ) -> Result<Self, SqliteError> {
        let reader = Connection::open_with_flags(path.as_ref(), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        reader.busy_timeout(BUSY)?;
        let column = key_column(&reader, table, key)?;
        let value = value_column(&reader, &column.table, value)?;
        Self::with(path.as_ref(), reader, false, column, &value)
    }

    fn with(
        path: &Path,
        main: Connection,
        writes: bool,
        column: Column,
        value: &str,
    ) -> Result<Self, SqliteError> {
        let [name, key, value] = [&column.table, &column.name, value].map(quoted);
        // Whatever collation the column has, keys are compared as bytes.
        let binary = format!("{key} COLLATE BINARY");
        let sql = Sql {
            get: format!("SELECT {value} FROM {name} WHERE {binary} = ?1"),
            insert: format!("INSERT INTO {name} ({key}, {value}) VALUES (?1, ?2)"),
            update: format!("UPDATE {name} SET {value} = ?2 WHERE {binary} = ?1"),
            delete: format!("DELETE FROM {name} WHERE {binary} = ?1"),
            inserted: format!("SELECT {key} FROM {name} WHERE rowid = last_insert_rowid()"),
            first: format!(
                "SELECT {key} FROM {name} WHERE {key} NOTNULL ORDER BY {binary} LIMIT ?1"
            ),
            page: format!(
                "SELECT {key} FROM {name} WHERE {binary} > ?2 ORDER BY {binary} LIMIT ?1"
            ),
            count: format!("SELECT count({key}) FROM {name}"),
        };
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let path = path.canonicalize().unwrap_or(path);
        let shared = Shared {
            file: file_id(&path),
            path,
            main: Mutex::new(main),
            writes,
            readers: Mutex::default(),
            mark: format!("mark {name} {key}"),
            incarnation: format!("incarnation {name} {key}"),
            column,
            sql,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Runs something on a thread that may block.
    async fn run<T: Send + 'static>(
        &self,
        run: impl FnOnce(&Shared) -> Result<T, SqliteError> + Send + 'static,
    ) -> Result<T, SqliteError> {
        let shared = self.shared.clone();
        let ran = tokio::task::spawn_blocking(move || run(&shared)).await;
        ran.unwrap_or(Err(SqliteError::Abandoned))
    }

    async fn insert(
        &self,
        key: &[u8],
        value: &[u8],
        stamp: Option<Stamp>,
    ) -> Result<Put, SqliteError> {
        let (key, value) = (key.to_vec(), value.to_vec());
        self.run(move |shared| {
            let Some(bound) = shared.column.keys.bound(&key) else {
                return Err(SqliteError::Unfit { declared: shared.column.declared.clone() });
            };
            shared.write(stamp, |transaction| {
                let mut get = transaction.prepare_cached(&shared.sql.get)?;
                let there = get.exists(params![bound])?;
                // The transaction is the only one that writes, so this stays true.
                let sql = if there { &shared.sql.update } else { &shared.sql.insert };
                if transaction.prepare_cached(sql)?.execute(params![bound, value])? == 0 {
                    return Err(SqliteError::NotStored);
                }
                if !get.exists(params![bound])? {
                    let found = shared.inserted(transaction).filter(|_| !there);
                    return Err(SqliteError::KeyChanged { expected: key.clone(), found });
                }
                Ok(if there { Put::Replaced } else { Put::New })
            })
        })
        .await
    }

    async fn remove(&self, key: &[u8], stamp: Option<Stamp>) -> Result<bool, SqliteError> {
        let key = key.to_vec();
        self.run(move |shared| {
            let Some(bound) = shared.column.keys.bound(&key) else { return Ok(false) };
            shared.write(stamp, |transaction| {
                let mut delete = transaction.prepare_cached(&shared.sql.delete)?;
                let deleted = delete.execute(params![bound])? > 0;
                if transaction.prepare_cached(&shared.sql.get)?.exists(params![bound])? {
                    return Err(SqliteError::NotDeleted);
                }
                Ok(deleted)
            })
        })
        .await
    }
}

/// The table of the guard, and the number of the file.
const OWN_TABLE: &str =
    "CREATE TABLE IF NOT EXISTS umbel_guard (name TEXT PRIMARY KEY, number INTEGER NOT NULL);
     INSERT INTO umbel_guard VALUES ('file', random()) ON CONFLICT (name) DO NOTHING;";

/// The column of values, by the name that the schema has.
fn value_column(connection: &Connection, table: &str, column: &str) -> Result<String, SqliteError> {
    Ok(written_column(connection, table, column)?.0)
}

/// The name and the declared type of a column that can be written.
fn written_column(
    connection: &Connection,
    table: &str,
    column: &str,
) -> Result<(String, String), SqliteError> {
    let sql =
        "SELECT name, type, hidden FROM pragma_table_xinfo(?1) WHERE name = ?2 COLLATE NOCASE";
    let found = connection.query_row(sql, params![table, column], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)?))
    });
    match found.optional()? {
        Some((name, declared, 0)) => Ok((name, declared)),
        Some((column, ..)) => Err(SqliteError::Generated { column }),
        None => Err(SqliteError::Missing { what: format!("column {column} of {table}") }),
    }
}

/// The column of keys, if it is fit for keys.
fn key_column(connection: &Connection, table: &str, column: &str) -> Result<Column, SqliteError> {
    let sql = "SELECT name, type, wr FROM pragma_table_list
         WHERE schema = 'main' AND name = ?1 COLLATE NOCASE";
    let found = connection.query_row(sql, params![table], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get(2)?))
    });
    let (table, kind, without_rowid) =
        found.optional()?.ok_or_else(|| SqliteError::Missing { what: format!("table {table}") })?;
    if kind != "table" {
        return Err(SqliteError::NotATable { name: table, found: kind });
    }
    let own = table.to_ascii_lowercase();
    if own == "umbel_guard" || own.starts_with("sqlite_") {
        return Err(SqliteError::NotATable { name: table, found: "table for internal use".into() });
    }
    let (name, declared) = written_column(connection, &table, column)?;
    let keys = keys_of(&declared)?;
    if keys == Keys::Text {
        let found: String = connection.pragma_query_value(None, "encoding", |row| row.get(0))?;
        // Text that is no valid UTF-16 changes on its way out and in, so that pages could skip keys.
        if found != "UTF-8" {
            return Err(SqliteError::Encoding { found });
        }
    }
    if !is_unique(connection, &table, &name, without_rowid)? {
        let index = quoted(&format!("{table}_{name}_key"));
        let [on, by] = [&table, &name].map(|name| quoted(name));
        let fix = format!("CREATE UNIQUE INDEX {index} ON {on} ({by} COLLATE BINARY);");
        return Err(SqliteError::NotUnique { table, column: name, fix });
    }
    Ok(Column { table, name, declared, keys })
}

/// Whether different rows always have different keys, byte by byte.
fn is_unique(
    connection: &Connection,
    table: &str,
    column: &str,
    without_rowid: bool,
) -> Result<bool, SqliteError> {
    let sql = "SELECT EXISTS (
           SELECT 1 FROM pragma_index_list(?1) list WHERE list.\"unique\" AND NOT list.partial
           AND 1 = (SELECT count(*) FROM pragma_index_xinfo(list.name) WHERE key)
           AND EXISTS (SELECT 1 FROM pragma_index_xinfo(list.name)
                       WHERE key AND cid >= 0 AND name = ?2 AND coll = 'BINARY' COLLATE NOCASE))";
    if connection.query_row(sql, params![table, column], |row| row.get(0))? {
        return Ok(true);
    }
    // The primary key of a table with row numbers has no index only if it is the row number.
    let sql =
        "SELECT (SELECT group_concat(name, char(0)) FROM pragma_table_info(?1) WHERE pk > 0) = ?2
           AND NOT EXISTS (SELECT 1 FROM pragma_index_list(?1) WHERE origin = 'pk')";
    let alone: Option<bool> =
        connection.query_row(sql, params![table, column], |row| row.get(0))?;
    Ok(!without_rowid && alone == Some(true))
}

/// How SQLite compares keys of a column, by the rules of its affinities.
fn keys_of(declared: &str) -> Result<Keys, SqliteError> {
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
    /// The key as SQLite knows it; `None` if it can be no key of the column.
    fn bound(self, key: &[u8]) -> Option<Key<'_>> {
        match self {
            Self::Text => Some(match std::str::from_utf8(key) {
                // SQLite ends text at a zero.
                Ok(text) if !text.contains('\0') => Key::Text(Cow::Borrowed(key)),
                _ => Key::Blob(Cow::Borrowed(key)),
            }),
            Self::Blobs => Some(Key::Blob(Cow::Borrowed(key))),
            Self::Integers => integer(key).map(Key::Integer),
        }
    }
}

fn integer(key: &[u8]) -> Option<i64> {
    std::str::from_utf8(key).ok()?.parse().ok()
}

/// A key as SQLite has it. Text of others need not be UTF-8.
#[derive(Clone, Debug)]
enum Key<'a> {
    Text(Cow<'a, [u8]>),
    Blob(Cow<'a, [u8]>),
    Integer(i64),
    Real(f64),
}

impl Key<'_> {
    fn into_owned(self) -> Key<'static> {
        match self {
            Self::Text(bytes) => Key::Text(Cow::Owned(bytes.into_owned())),
            Self::Blob(bytes) => Key::Blob(Cow::Owned(bytes.into_owned())),
            Self::Integer(number) => Key::Integer(number),
            Self::Real(number) => Key::Real(number),
        }
    }

    /// The key in a row, unless it is none.
    fn of(value: ValueRef<'_>) -> Option<Key<'_>> {
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

impl Shared {
    /// Runs something with a connection for reading.
    fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, SqliteError>,
    ) -> Result<T, SqliteError> {
        let idle = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.reader()?,
        };
        let result = read(&connection);
        if result.is_ok() {
            self.readers.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
        result
    }

    fn reader(&self) -> Result<Connection, SqliteError> {
        let reader = Connection::open_with_flags(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        reader.busy_timeout(BUSY)?;
        self.still_there()?;
        Ok(reader)
    }

    /// Fails if another file is at the path: what is written to the open one would be lost with it.
    fn still_there(&self) -> Result<(), SqliteError> {
        if file_id(&self.path) == self.file {
            Ok(())
        } else {
            Err(SqliteError::Moved { path: self.path.clone() })
        }
    }

    /// Runs a transaction that writes, after a look at the stamp. If anything but the commit fails, it is rolled back.
    fn write<T>(
        &self,
        stamp: Option<Stamp>,
        write: impl FnOnce(&Transaction<'_>) -> Result<T, SqliteError>,
    ) -> Result<T, SqliteError> {
        if !self.writes {
            return Err(SqliteError::ReadOnly);
        }
        let mut connection = self.main.lock().unwrap_or_else(PoisonError::into_inner);
        self.still_there()?;
        if !connection.is_autocommit() {
            // The rollback of an earlier transaction has failed.
            connection.execute_batch("ROLLBACK")?;
        }
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if let Some(stamp) = stamp {
            self.stamped(&transaction, stamp)?;
        }
        let result = write(&transaction)?;
        transaction.commit().map_err(SqliteError::Commit)?;
        Ok(result)
    }

    /// Fails unless the guard with this stamp is the one that was started last, and raises the mark.
    fn stamped(&self, transaction: &Transaction<'_>, stamp: Stamp) -> Result<(), SqliteError> {
        let found = number(transaction, &self.incarnation)?.unwrap_or(0).cast_unsigned();
        let expected = stamp.incarnation;
        if found != expected {
            return Err(SqliteError::Superseded { expected, found });
        }
        let sql = "INSERT INTO umbel_guard VALUES (?1, ?2)
             ON CONFLICT (name) DO UPDATE SET number = max(number, excluded.number)";
        transaction.prepare_cached(sql)?.execute(params![self.mark, stamp.mark.cast_signed()])?;
        Ok(())
    }

    /// The key of the row that was inserted last, for an error message. Tables without row numbers do not tell.
    fn inserted(&self, transaction: &Transaction<'_>) -> Option<Vec<u8>> {
        let read = |row: &rusqlite::Row<'_>| {
            Ok(match Key::of(row.get_ref(0)?) {
                Some(Key::Text(bytes) | Key::Blob(bytes)) => Some(bytes.into_owned()),
                Some(Key::Integer(number)) => Some(number.to_string().into_bytes()),
                Some(Key::Real(number)) => Some(number.to_string().into_bytes()),
                None => None,
            })
        };
        transaction.query_row(&self.sql.inserted, [], read).ok().flatten()
    }
}

/// A number that the guard keeps in the file; `None` also if its table is missing.
fn number(connection: &Connection, name: &str) -> Result<Option<i64>, SqliteError> {
    let table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'umbel_guard'";
    if !connection.prepare_cached(table)?.exists([])? {
        return Ok(None);
    }
    let sql = "SELECT number FROM umbel_guard WHERE name = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_row(params![name], |row| row.get(0)).optional()?)
}

/// A scan of a [`Sqlite`], which sees one moment.
#[derive(Debug)]
pub struct SqliteScan {
    /// In a transaction.
    connection: Arc<Mutex<Connection>>,
    after: Option<Key<'static>>,
}

fn page_of(
    connection: &Connection,
    sql: &Sql,
    after: &mut Option<Key<'static>>,
    limit: usize,
) -> Result<Page, SqliteError> {
    let mut statement =
        connection.prepare_cached(if after.is_some() { &sql.page } else { &sql.first })?;
    let limit = i64::try_from(limit.max(1)).unwrap_or(i64::MAX);
    let mut rows = match &*after {
        Some(after) => statement.query(params![limit, after])?,
        None => statement.query(params![limit])?,
    };
    let (mut page, mut seen, mut last) = (Page::new(), 0, None);
    while let Some(row) = rows.next()? {
        let key = Key::of(row.get_ref(0)?);
        match &key {
            Some(Key::Text(bytes) | Key::Blob(bytes)) => page.push(bytes),
            Some(Key::Integer(number)) => page.push(number.to_string().as_bytes()),
            // Not a key that can be asked for, but counted.
            Some(Key::Real(_)) | None => page.push(b""),
        }
        seen += 1;
        if seen == limit {
            last = key.map(Key::into_owned);
        }
    }
    drop(rows);
    *after = last;
    Ok(if seen < limit { page.last() } else { page })
}

impl DataSet for Sqlite {
    type Error = SqliteError;
    type Scan = SqliteScan;

    async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, SqliteError> {
        let key = key.to_vec();
        self.run(move |shared| {
            let Some(key) = shared.column.keys.bound(&key) else { return Ok(None) };
            shared.read(|connection| {
                let mut statement = connection.prepare_cached(&shared.sql.get)?;
                let value = statement.query_row(params![key], |row| {
                    Ok(match row.get_ref(0)? {
                        ValueRef::Null => Vec::new(),
                        ValueRef::Integer(number) => number.to_string().into_bytes(),
                        ValueRef::Real(number) => number.to_string().into_bytes(),
                        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.to_vec(),
                    })
                });
                Ok(value.optional()?)
            })
        })
        .await
    }

    async fn put(&self, key: &[u8], value: &[u8]) -> Result<Put, SqliteError> {
        self.insert(key, value, None).await
    }

    async fn delete(&self, key: &[u8]) -> Result<bool, SqliteError> {
        self.remove(key, None).await
    }

    async fn scan(&self, after: Option<&[u8]>) -> Result<SqliteScan, SqliteError> {
        let after = after.map(<[u8]>::to_vec);
        self.run(move |shared| {
            let connection = shared.reader()?;
            connection.execute_batch("BEGIN")?;
            // A transaction sees the moment of its first query.
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
            let after = after.and_then(|key| Some(shared.column.keys.bound(&key)?.into_owned()));
            Ok(SqliteScan { connection: Arc::new(Mutex::new(connection)), after })
        })
        .await
    }

    async fn page(&self, scan: &mut SqliteScan, limit: usize) -> Result<Page, SqliteError> {
        let (connection, mut after) = (scan.connection.clone(), scan.after.take());
        let (page, after) = self
            .run(move |shared| {
                let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
                let page = page_of(&connection, &shared.sql, &mut after, limit)?;
                Ok((page, after))
            })
            .await?;
        scan.after = after;
        Ok(page)
    }

    async fn count(&self, scan: &mut SqliteScan) -> Result<u64, SqliteError> {
        let connection = scan.connection.clone();
        self.run(move |shared| {
            let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            let count: i64 = connection.query_row(&shared.sql.count, [], |row| row.get(0))?;
            Ok(count.unsigned_abs())
        })
        .await
    }

    /// Integers in decimal, without zeros or signs that say nothing.
    fn canonical<'k>(&self, key: &'k [u8]) -> Cow<'k, [u8]> {
        match (self.shared.column.keys, integer(key)) {
            (Keys::Integers, Some(number)) => Cow::Owned(number.to_string().into_bytes()),
            _ => Cow::Borrowed(key),
        }
    }

    /// The number of the file, the table, and the key column with its type. A copy of the file has the same identity; the
    /// stamp shows which of the two is which.
    async fn identity(&self) -> Result<Vec<u8>, SqliteError> {
        self.run(|shared| {
            let file = match shared.read(|connection| number(connection, "file"))? {
                Some(number) => format!("{:016x}", number.cast_unsigned()),
                None => format!("at {:?}", shared.path),
            };
            let Column { table, name, declared, .. } = &shared.column;
            Ok(format!("sqlite 2 {file} {table:?} {name:?} {declared:?}").into_bytes())
        })
        .await
    }

    async fn put_marked(&self, key: &[u8], value: &[u8], stamp: Stamp) -> Result<Put, SqliteError> {
        self.insert(key, value, Some(stamp)).await
    }

    async fn delete_marked(&self, key: &[u8], stamp: Stamp) -> Result<bool, SqliteError> {
        self.remove(key, Some(stamp)).await
    }

    async fn begin(&self, incarnation: u64) -> Result<bool, SqliteError> {
        self.run(move |shared| {
            if !shared.writes {
                return Ok(false);
            }
            shared.write(None, |transaction| {
                // It may have been dropped since the file was opened.
                transaction.execute_batch(OWN_TABLE)?;
                let sql = "INSERT INTO umbel_guard VALUES (?1, ?2)
                     ON CONFLICT (name) DO UPDATE SET number = excluded.number";
                transaction.execute(sql, params![shared.incarnation, incarnation.cast_signed()])?;
                Ok(true)
            })
        })
        .await
    }

    async fn stamp(&self) -> Result<Option<Stamp>, SqliteError> {
        self.run(|shared| {
            shared.read(|connection| {
                // Both numbers of one moment.
                let view = connection.unchecked_transaction()?;
                if number(&view, "file")?.is_none() {
                    return Ok(None);
                }
                let incarnation = number(&view, &shared.incarnation)?.unwrap_or(0).cast_unsigned();
                let mark = number(&view, &shared.mark)?.unwrap_or(0).cast_unsigned();
                Ok(Some(Stamp { incarnation, mark }))
            })
        })
        .await
    }

    /// What fails before the commit is rolled back. A commit that violates a deferred constraint is refused; any other that
    /// fails may have reached the disk.
    fn outcome(&self, error: &SqliteError) -> Outcome {
        match error {
            SqliteError::Superseded { .. } => Outcome::Superseded,
            SqliteError::Commit(rusqlite::Error::SqliteFailure(error, _))
                if error.code == ErrorCode::ConstraintViolation =>
            {
                Outcome::NotDone
            }
            SqliteError::Commit(_) | SqliteError::Abandoned => Outcome::Unknown,
            _ => Outcome::NotDone,
        }
    }

    /// `PRAGMA data_version` of the connection that writes: it changes when any other connection has committed, in this
    /// process or another, and not by the writes of this value.
    async fn foreign_writes(&self) -> Result<Option<u64>, SqliteError> {
        self.run(|shared| {
            let connection = shared.main.lock().unwrap_or_else(PoisonError::into_inner);
            let sql = "PRAGMA data_version";
            let version: i64 = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
            Ok(Some(version.cast_unsigned()))
        })
        .await
    }
}
