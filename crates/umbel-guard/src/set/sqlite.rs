//! A table of SQLite.
//!
//! One connection writes, some read, all on threads that may wait. The file is put into WAL mode, so that a scan
//! and those who write do not wait for each other. The guard's marks are in a table of their own, `umbel_guard`.
//!
//! Keys of a column of text are text where they are UTF-8, and blobs else; a column without a type or of blobs has
//! blobs; one of integers has integers, in decimal. Text is compared byte by byte, whatever collation the column has.

use crate::data_set::{DataSet, Page, Put, Stamp};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, OptionalExtension, ToSql, Transaction};
use rusqlite::{TransactionBehavior, params};
use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A data set in a table of SQLite.
#[derive(Clone, Debug)]
pub struct Sqlite {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    writer: Mutex<Option<Connection>>,
    readers: Mutex<Vec<Connection>>,
    keys: Keys,
    marks: bool,
    table: String,
    sql: Sql,
}

/// What the column of keys has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    Text,
    Blobs,
    Integers,
}

#[derive(Debug)]
struct Sql {
    get: String,
    put: String,
    delete: String,
    first: String,
    page: String,
    count: String,
}

/// Why SQLite did not answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum SqliteError {
    /// What SQLite says.
    Sqlite(rusqlite::Error),
    /// There is no such table or column.
    Missing {
        /// Which one.
        what: String,
    },
    /// The column has keys that cannot be compared as bytes.
    KeyType {
        /// Its type.
        declared: String,
    },
    /// The set was opened for reading only.
    ReadOnly,
    /// A thread was given up.
    Abandoned,
}

impl fmt::Display for SqliteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(error) => error.fmt(f),
            Self::Missing { what } => write!(f, "there is no {what}"),
            Self::KeyType { declared } => {
                write!(f, "keys are text, blobs or integers, and not {declared}")
            }
            Self::ReadOnly => f.write_str("the file was opened for reading only"),
            Self::Abandoned => f.write_str("the query was given up"),
        }
    }
}

impl std::error::Error for SqliteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Sqlite(error) => Some(error),
            _ => None,
        }
    }
}

impl From<rusqlite::Error> for SqliteError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// A name as SQL takes it, whatever it is made of.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// How long who writes waits for somebody else who does.
const BUSY: Duration = Duration::from_secs(5);

impl Sqlite {
    /// The table `table` of the file at `path`, by the columns of keys and values. The file and the table are
    /// made if they are not there.
    ///
    /// # Errors
    ///
    /// [`SqliteError`] if there is no such column, or its keys cannot be compared as bytes.
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

    /// The same, for a file and a table that are there. The file is put into WAL mode.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create), and if one of them is not there.
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
        keys_of(&writer, table, key)?;
        writer.pragma_update(None, "journal_mode", "wal")?;
        writer.execute_batch(
            "CREATE TABLE IF NOT EXISTS umbel_guard (name TEXT PRIMARY KEY, number INTEGER NOT NULL);
             INSERT OR IGNORE INTO umbel_guard VALUES ('file', random());",
        )?;
        Self::with(path.as_ref(), writer, true, table, key, value)
    }

    /// The same, to read and nothing else: nothing is changed in the file.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and if there is no such table.
    pub fn read_only(
        path: impl AsRef<Path>,
        table: &str,
        key: &str,
        value: &str,
    ) -> Result<Self, SqliteError> {
        let reader = Connection::open_with_flags(path.as_ref(), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        Self::with(path.as_ref(), reader, false, table, key, value)
    }

    fn with(
        path: &Path,
        connection: Connection,
        writes: bool,
        table: &str,
        key: &str,
        value: &str,
    ) -> Result<Self, SqliteError> {
        let keys = keys_of(&connection, table, key)?;
        column_of(&connection, table, value)?;
        let [name, key, value] = [table, key, value].map(quoted);
        let sql = Sql {
            get: format!("SELECT {value} FROM {name} WHERE {key} = ?1 COLLATE BINARY"),
            put: format!(
                "INSERT INTO {name} ({key}, {value}) VALUES (?1, ?2)
                 ON CONFLICT DO UPDATE SET {value} = excluded.{value}"
            ),
            delete: format!("DELETE FROM {name} WHERE {key} = ?1 COLLATE BINARY"),
            first: format!("SELECT {key} FROM {name} WHERE {key} NOTNULL ORDER BY {key} LIMIT ?1"),
            page: format!("SELECT {key} FROM {name} WHERE {key} > ?2 ORDER BY {key} LIMIT ?1"),
            count: format!("SELECT count(DISTINCT {key}) FROM {name}"),
        };
        let (writer, readers) =
            if writes { (Some(connection), vec![]) } else { (None, vec![connection]) };
        let shared = Shared {
            path: path.to_owned(),
            writer: Mutex::new(writer),
            readers: Mutex::new(readers),
            keys,
            marks: writes,
            table: table.to_owned(),
            sql,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Does something on a thread that may wait.
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
        mark: Option<u64>,
    ) -> Result<Put, SqliteError> {
        let (key, value) = (key.to_vec(), value.to_vec());
        self.run(move |shared| {
            shared.write(mark, |transaction| {
                let Some(key) = shared.keys.bound(&key) else {
                    return Err(SqliteError::KeyType { declared: "anything else".into() });
                };
                let mut get = transaction.prepare_cached(&shared.sql.get)?;
                let there = get.exists(params![key])?;
                transaction.prepare_cached(&shared.sql.put)?.execute(params![key, value])?;
                Ok(if there { Put::Replaced } else { Put::New })
            })
        })
        .await
    }

    async fn remove(&self, key: &[u8], mark: Option<u64>) -> Result<bool, SqliteError> {
        let key = key.to_vec();
        self.run(move |shared| {
            let Some(key) = shared.keys.bound(&key) else { return Ok(false) };
            shared.write(mark, |transaction| {
                let rows = transaction.prepare_cached(&shared.sql.delete)?.execute(params![key])?;
                Ok(rows > 0)
            })
        })
        .await
    }
}

/// The declared type of a column.
fn column_of(connection: &Connection, table: &str, column: &str) -> Result<String, SqliteError> {
    let sql = "SELECT type FROM pragma_table_info(?1) WHERE name = ?2 COLLATE NOCASE";
    let declared =
        connection.query_row(sql, params![table, column], |row| row.get(0)).optional()?;
    declared.ok_or_else(|| SqliteError::Missing { what: format!("column {column} of {table}") })
}

/// How SQLite compares keys of a column, by the rules of its affinities.
fn keys_of(connection: &Connection, table: &str, column: &str) -> Result<Keys, SqliteError> {
    let declared = column_of(connection, table, column)?;
    let upper = declared.to_uppercase();
    let has = |part: &str| upper.contains(part);
    if has("INT") {
        Ok(Keys::Integers)
    } else if has("CHAR") || has("CLOB") || has("TEXT") {
        Ok(Keys::Text)
    } else if has("BLOB") || upper.is_empty() {
        Ok(Keys::Blobs)
    } else {
        Err(SqliteError::KeyType { declared })
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
            Self::Integers => number(key).map(Key::Integer),
        }
    }
}

fn number(key: &[u8]) -> Option<i64> {
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
    /// Does something with a connection for reading.
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
        Ok(reader)
    }

    fn write<T>(
        &self,
        mark: Option<u64>,
        write: impl FnOnce(&Transaction<'_>) -> Result<T, SqliteError>,
    ) -> Result<T, SqliteError> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let connection = writer.as_mut().ok_or(SqliteError::ReadOnly)?;
        let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = begun?;
        let result = write(&transaction)?;
        if let Some(mark) = mark {
            let sql = "INSERT INTO umbel_guard VALUES (?1, ?2)
                 ON CONFLICT DO UPDATE SET number = max(number, excluded.number)";
            let name = format!("mark:{}", self.table);
            transaction.prepare_cached(sql)?.execute(params![name, mark.cast_signed()])?;
        }
        transaction.commit()?;
        Ok(result)
    }

    fn number(&self, name: &str) -> Result<i64, SqliteError> {
        self.read(|connection| {
            let sql = "SELECT number FROM umbel_guard WHERE name = ?1";
            let number = connection.query_row(sql, params![name], |row| row.get(0)).optional()?;
            Ok(number.unwrap_or(0))
        })
    }
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
            // No key that anybody can ask for; counted all the same.
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
            let Some(key) = shared.keys.bound(&key) else { return Ok(None) };
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
            let after = after.and_then(|key| Some(shared.keys.bound(&key)?.into_owned()));
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
        match (self.shared.keys, number(key)) {
            (Keys::Integers, Some(number)) => Cow::Owned(number.to_string().into_bytes()),
            _ => Cow::Borrowed(key),
        }
    }

    async fn identity(&self) -> Result<Vec<u8>, SqliteError> {
        self.run(|shared| {
            let file = if shared.marks { shared.number("file")? } else { 0 };
            Ok(format!("sqlite {file} {}", shared.table).into_bytes())
        })
        .await
    }

    async fn put_marked(&self, key: &[u8], value: &[u8], stamp: Stamp) -> Result<Put, SqliteError> {
        self.insert(key, value, Some(stamp.mark)).await
    }

    async fn delete_marked(&self, key: &[u8], stamp: Stamp) -> Result<bool, SqliteError> {
        self.remove(key, Some(stamp.mark)).await
    }

    async fn begin(&self, incarnation: u64) -> Result<bool, SqliteError> {
        self.run(move |shared| {
            if !shared.marks {
                return Ok(false);
            }
            shared.write(None, |transaction| {
                let sql = "INSERT INTO umbel_guard VALUES (?1, ?2)
                     ON CONFLICT DO UPDATE SET number = excluded.number";
                let name = format!("incarnation:{}", shared.table);
                transaction.execute(sql, params![name, incarnation.cast_signed()])?;
                Ok(true)
            })
        })
        .await
    }

    async fn stamp(&self) -> Result<Option<Stamp>, SqliteError> {
        if !self.shared.marks {
            return Ok(None);
        }
        self.run(move |shared| {
            let mark = shared.number(&format!("mark:{}", shared.table))?.unsigned_abs();
            let incarnation = shared.number(&format!("incarnation:{}", shared.table))?;
            Ok(Some(Stamp { incarnation: incarnation.cast_unsigned(), mark }))
        })
        .await
    }
}
