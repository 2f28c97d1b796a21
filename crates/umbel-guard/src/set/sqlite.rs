//! A table of SQLite.

mod error;
mod key;
mod reading;
mod scan;
mod stamp;
mod table;

pub use error::SqliteError;
pub use scan::SqliteScan;

use super::identifier::quoted;
use crate::data_set::{Claim, DataSet, Outcome, Page, Put, Refusal, Stamp};
use key::{Key, Keys, integer};
use reading::{Reading, log_of};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction};
use rusqlite::{TransactionBehavior, params};
use scan::page_of;
use stamp::{OWN_TABLE, number};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use table::{Column, key_column, value_column};

/// A data set in a table of SQLite.
///
/// One connection writes and several read, all on threads that may block. The file is put into WAL mode, so
/// that a scan and a writer do not wait for each other.
///
/// **What is created in the file:** the table `umbel_guard`, with the number of the file and, for every guarded table and
/// key column, the [`Stamp`] of its guard. [`Sqlite::read_only`] creates nothing and leaves the journal mode as it is.
///
/// **What is required:** a table, not a view or a virtual table. Its key column is the `INTEGER PRIMARY KEY`,
/// or has its own primary key or unique index that compares with the collation `BINARY` and is neither partial
/// nor on an expression. With only a `NOCASE` or `RTRIM` index, different keys would overwrite each other, so
/// such a column is refused. [`SqliteError::NotUnique`] has the statement to run. A column that is declared
/// `COLLATE NOCASE` and has an additional `BINARY` index is accepted, because every statement of this module
/// compares bytes.
///
/// **Keys:** a text column stores a key as text if it is UTF-8, and as a blob otherwise. A column that is
/// declared `BLOB` or has no type stores blobs. An integer column stores integers, which keys give in decimal.
/// Rows whose key is NULL, or of a type that the column should not have, cannot be looked up. Scans and counts
/// skip NULL. After every write the key is read back in the same transaction. If a trigger or a conflict clause
/// has changed or dropped it, the write is rolled back and fails with [`SqliteError::KeyChanged`] or
/// [`SqliteError::NotStored`].
///
/// **Values:** a column that is declared `BLOB` or has no type stores blobs. Any other column stores a value as
/// text if it is UTF-8, and as a blob otherwise. SQLite converts the text to a number if the column is numeric.
///
/// **Restoring a backup:** stop the guard, delete the files `-wal` and `-shm`, copy the backup over the file,
/// and start the guard. Otherwise SQLite would apply the old `-wal` to the restored file. If the file is
/// replaced while the guard runs, the guard no longer trusts its filter. Look-ups and writes then fail with
/// [`SqliteError::Moved`] until the guard is started again.
///
/// **Other writers:** the guard notices commits of other connections within a second, by `PRAGMA data_version`.
/// It does *not* notice rows that a trigger of the guarded table writes into the same table under other keys.
#[derive(Clone, Debug)]
pub struct Sqlite {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    /// The file that was opened, even if the path leads to another one now.
    file: FileId,
    /// The write-ahead log of the file, since the first write.
    log: OnceLock<FileId>,
    /// Closed before the writing connection, which then moves the log into the file.
    readers: Mutex<Vec<Connection>>,
    /// The connection that writes, if writes are allowed. It also watches for commits of other connections, so
    /// it is never replaced.
    main: Mutex<Connection>,
    writes: bool,
    /// How read-only connections are opened.
    reading: Reading,
    /// Whether there is no stamp, although one is possible.
    unstamped: bool,
    column: Column,
    /// The storage type of values: text or blobs.
    values: Keys,
    /// Names in `umbel_guard`.
    mark: String,
    incarnation: String,
    sql: Sql,
}

/// Whether a file is written to, and whether a stamp is kept in it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writes {
    None,
    Stamped,
    Unstamped,
}

/// The statements for one table.
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

/// Identifies a file on this machine.
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

/// How long a writer waits for another writer.
const BUSY: Duration = Duration::from_secs(5);
impl Sqlite {
    /// Opens the table `table` of the file at `path`, with the columns of keys and values. The file and the
    /// table are created if they do not exist.
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

    /// As [`create`](Self::create), for a file and a table that exist. The file is put into WAL mode.
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
        let opened = Self::writing(path.as_ref(), table, key, value, Writes::Stamped)?;
        let main = opened.shared.main.lock().unwrap_or_else(PoisonError::into_inner);
        main.execute_batch(&format!("BEGIN IMMEDIATE; {OWN_TABLE} COMMIT;"))?;
        drop(main);
        Ok(opened)
    }

    /// As [`open`](Self::open), but creates no table in the file. There is then no [`Stamp`], so a guard builds
    /// its filter at every start, and does not notice when another guard is started in front of the same table.
    /// The file is put into WAL mode.
    ///
    /// If the table `umbel_guard` already has a stamp of this table, guards do not start
    /// ([`SqliteError::Stamped`]): the guard that left the stamp would not notice writes without a stamp.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_without_stamp(
        path: impl AsRef<Path>,
        table: &str,
        key: &str,
        value: &str,
    ) -> Result<Self, SqliteError> {
        Self::writing(path.as_ref(), table, key, value, Writes::Unstamped)
    }

    fn writing(
        path: &Path,
        table: &str,
        key: &str,
        value: &str,
        writes: Writes,
    ) -> Result<Self, SqliteError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
        let writer = Connection::open_with_flags(path, flags)?;
        writer.busy_timeout(BUSY)?;
        // Checked before the file is changed.
        let column = key_column(&writer, table, key)?;
        let value = value_column(&writer, &column.table, value)?;
        writer.pragma_update(None, "journal_mode", "wal")?;
        // A commit is then on the disk when it returns, also in WAL mode.
        writer.pragma_update(None, "synchronous", "full")?;
        Self::with(path, (Reading::Shared, writer), writes, column, value)
    }

    /// As [`open`](Self::open), but read-only: the file and its journal mode are not changed.
    ///
    /// If the file is already in WAL mode, SQLite itself creates the files `-wal` and `-shm` beside it. If it
    /// may not create files there, the file is read without locks as long as it has no `-wal` and does not
    /// change. If it changes, calls fail with [`SqliteError::Changed`].
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
        let (reading, reader) = Reading::begin(path.as_ref())?;
        let column = key_column(&reader, table, key)?;
        let value = value_column(&reader, &column.table, value)?;
        Self::with(path.as_ref(), (reading, reader), Writes::None, column, value)
    }

    fn with(
        path: &Path,
        (reading, main): (Reading, Connection),
        writes: Writes,
        column: Column,
        (value, values): (String, Keys),
    ) -> Result<Self, SqliteError> {
        let [name, key, value] = [&column.table, &column.name, &value].map(|name| quoted(name));
        // Keys are compared as bytes, whatever the collation of the column.
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
            log: OnceLock::new(),
            path,
            main: Mutex::new(main),
            writes: writes != Writes::None,
            reading,
            unstamped: writes == Writes::Unstamped,
            readers: Mutex::default(),
            mark: format!("mark {name} {key}"),
            incarnation: format!("incarnation {name} {key}"),
            column,
            values,
            sql,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Runs a closure on a thread that may block.
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
        claim: Option<Claim>,
    ) -> Result<Put, SqliteError> {
        let (key, value) = (key.to_vec(), value.to_vec());
        self.run(move |shared| {
            let Some(bound) = shared.column.keys.bound(&key) else {
                return Err(SqliteError::Unfit { declared: shared.column.declared.clone() });
            };
            let value = shared.values.bound(&value);
            shared.write(claim, |transaction| {
                let mut get = transaction.prepare_cached(&shared.sql.get)?;
                let there = get.exists(params![bound])?;
                // No other transaction can write now, so this stays true.
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

    async fn remove(&self, key: &[u8], claim: Option<Claim>) -> Result<bool, SqliteError> {
        let key = key.to_vec();
        self.run(move |shared| {
            let Some(bound) = shared.column.keys.bound(&key) else { return Ok(false) };
            shared.write(claim, |transaction| {
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

impl Shared {
    /// Runs a closure with a read-only connection.
    fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, SqliteError>,
    ) -> Result<T, SqliteError> {
        // The connections still see the file that was opened, which may no longer be the file at the path.
        self.still_there()?;
        let idle = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.reader()?,
        };
        let result = read(&connection);
        self.reading.check(&self.path)?;
        if result.is_ok() {
            self.readers.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
        result
    }

    fn reader(&self) -> Result<Connection, SqliteError> {
        let reader = self.reading.open(&self.path)?;
        self.still_there()?;
        Ok(reader)
    }

    /// Fails if another file is at the path, or if the log was deleted. Writes to the open files would then be
    /// lost.
    fn still_there(&self) -> Result<(), SqliteError> {
        self.reading.check(&self.path)?;
        let log = self.log.get().is_none_or(|log| file_id(&log_of(&self.path)) == *log);
        if log && file_id(&self.path) == self.file {
            Ok(())
        } else {
            Err(SqliteError::Moved { path: self.path.clone() })
        }
    }

    /// Runs a transaction that writes, after checking the stamp. An error before the commit rolls it back.
    fn write<T>(
        &self,
        claim: Option<Claim>,
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
        if let Some(claim) = claim {
            self.stamped(&transaction, claim)?;
        }
        let result = write(&transaction)?;
        transaction.commit().map_err(SqliteError::Commit)?;
        // SQLite keeps one log for as long as a connection is open.
        self.log.get_or_init(|| file_id(&log_of(&self.path)));
        Ok(result)
    }

    /// The key of the last inserted row, for an error message. `None` for tables without row numbers.
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
                shared.reading.check(&shared.path)?;
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
            shared.reading.check(&shared.path)?;
            Ok(count.unsigned_abs())
        })
        .await
    }

    /// Integers in decimal, without leading zeros or a redundant sign.
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
            // A table that was renamed into the place of this one has another root page, and a column another number.
            let place = shared.read(|connection| {
                let sql = "SELECT s.rootpage, c.cid, c.type FROM sqlite_schema s, pragma_table_xinfo(?1) c
                     WHERE s.type = 'table' AND s.name = ?1 AND c.name = ?2";
                let row = connection.query_row(sql, params![table, name], |row| {
                    Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?))
                });
                Ok(row.optional()?)
            })?;
            let Some(place) = place else {
                let what = format!("table {table} with a column {name}");
                return Err(SqliteError::Missing { what });
            };
            let place = format!("{place:?}");
            Ok(format!("sqlite 3 {file} {table:?} {name:?} {declared:?} {place}").into_bytes())
        })
        .await
    }

    async fn put_marked(&self, key: &[u8], value: &[u8], claim: Claim) -> Result<Put, SqliteError> {
        self.insert(key, value, Some(claim)).await
    }

    async fn delete_marked(&self, key: &[u8], claim: Claim) -> Result<bool, SqliteError> {
        self.remove(key, Some(claim)).await
    }

    async fn begin(&self, incarnation: u64) -> Result<bool, SqliteError> {
        self.run(move |shared| shared.begin(incarnation)).await
    }

    async fn stamp(&self) -> Result<Option<Stamp>, SqliteError> {
        self.run(Shared::stamp).await
    }

    /// An error before the commit means that the transaction was rolled back. A commit that violates a deferred
    /// constraint is refused. Any other failed commit may have reached the disk.
    fn outcome(&self, error: &SqliteError) -> Outcome {
        match error {
            SqliteError::Superseded { .. }
            | SqliteError::Restored { .. }
            | SqliteError::Missing { .. }
            | SqliteError::Changed { .. }
            | SqliteError::Moved { .. } => Outcome::Superseded,
            SqliteError::Commit(rusqlite::Error::SqliteFailure(error, _))
                if error.code == ErrorCode::ConstraintViolation =>
            {
                Outcome::NotDone
            }
            SqliteError::Commit(_) | SqliteError::Abandoned => Outcome::Unknown,
            _ => Outcome::NotDone,
        }
    }

    fn refusal(&self, error: &SqliteError) -> Option<Refusal> {
        error.refusal()
    }

    /// `PRAGMA data_version` of the writing connection. It changes when any other connection has committed, in
    /// this process or another. Writes of this value do not change it.
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
