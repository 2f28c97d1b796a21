//! A table of bytes in a redb file.

use crate::data_set::{Claim, DataSet, Outcome, Page, Put, Refusal, Stamp};
use redb::{Database, Durability, Error, ReadOnlyDatabase, ReadOnlyTable, ReadTransaction};
use redb::{ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition, TableError};
use redb::{TransactionError, WriteTransaction};
use std::fmt;
use std::ops::Bound::{Excluded, Unbounded};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A data set in a redb file: a table from bytes to bytes.
///
/// Look-ups run on the calling task: in a file that is in memory they take microseconds. Writes wait for the
/// disk, and run on threads that may block.
///
/// **What is created in the file:** the table `umbel-guard`, with the number of the file and, for every guarded table,
/// the [`Stamp`] of its guard. [`Redb::read_only`] creates nothing.
///
/// **What is required:** keys and values of the guarded table are bytes (`&[u8]`). Keys are stored and compared as they
/// are given.
///
/// **Other writers:** redb locks the file, so no other process can write while it is open. Two values of this type on one
/// [`Database`] can; then the guard that was started last keeps the others from writing. Writes through the
/// [`Database`] itself are not noticed.
#[derive(Clone, Debug)]
pub struct Redb {
    file: File,
    table: Arc<str>,
    durability: Durability,
    /// Whether there is no stamp, although one is possible.
    unstamped: bool,
}

#[derive(Clone)]
enum File {
    Writable(Arc<Database>),
    /// With the path, which identifies a file that was never written by a guard.
    ReadOnly(Arc<ReadOnlyDatabase>, Arc<Path>),
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Writable(_) => f.write_str("Writable"),
            Self::ReadOnly(_, path) => f.debug_tuple("ReadOnly").field(path).finish(),
        }
    }
}

impl File {
    fn begin_read(&self) -> Result<ReadTransaction, TransactionError> {
        match self {
            Self::Writable(database) => database.begin_read(),
            Self::ReadOnly(database, _) => database.begin_read(),
        }
    }
}

/// The error of a redb data set.
#[derive(Debug)]
#[non_exhaustive]
pub enum RedbError {
    /// redb failed before it was asked to commit: nothing was written.
    Redb(Error),
    /// redb failed to commit: the write may be in the file.
    Commit(Error),
    /// The file was opened with [`Redb::read_only`].
    ReadOnly,
    /// The file was opened with [`Redb::open_without_stamp`], and a guard has left its stamp in it.
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
    /// The writing thread panicked, or its runtime was shut down: the write may be in the file.
    Abandoned,
}

impl fmt::Display for RedbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Redb(error) => error.fmt(f),
            Self::Commit(error) => write!(f, "the write may not be in the file: {error}"),
            Self::ReadOnly => f.write_str(
                "expected a file that is open for writing, got one from `Redb::read_only`; use `Redb::open`",
            ),
            Self::Stamped => f.write_str(
                "expected no stamp for a guard without one, found one of an earlier guard in the table umbel-guard; start \
                 the guard with its stamp, or delete that table",
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
                "the thread that wrote has ended; the write may be in the file or not",
            ),
        }
    }
}

impl std::error::Error for RedbError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Redb(error) | Self::Commit(error) => Some(error),
            _ => None,
        }
    }
}

impl<E: Into<Error>> From<E> for RedbError {
    fn from(error: E) -> Self {
        Self::Redb(error.into())
    }
}

/// A scan of a [`Redb`], which sees one moment.
pub struct RedbScan {
    table: ReadOnlyTable<&'static [u8], &'static [u8]>,
    after: Option<Vec<u8>>,
}

impl fmt::Debug for RedbScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedbScan").field("after", &self.after).finish_non_exhaustive()
    }
}

/// The stamps, by the names of the guarded tables, and the number of the file.
const STAMPS: TableDefinition<'static, &str, u64> = TableDefinition::new("umbel-guard");
const FILE: &str = "file";

impl Redb {
    /// The table `table` of the file at `path`. Both are created if they do not exist.
    ///
    /// # Errors
    ///
    /// If the file is not a redb file, is open elsewhere, or its table has other types.
    pub fn create(path: impl AsRef<Path>, table: &str) -> Result<Self, RedbError> {
        Self::new(Arc::new(Database::create(path)?), table)
    }

    /// Opens the table `table` of the file at `path`. Both must exist.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create), and if one of them does not exist.
    pub fn open(path: impl AsRef<Path>, table: &str) -> Result<Self, RedbError> {
        let database = Database::open(path)?;
        let definition = TableDefinition::<&[u8], &[u8]>::new(table);
        drop(database.begin_read()?.open_table(definition)?);
        Self::new(Arc::new(database), table)
    }

    /// As [`open`](Self::open), but creates nothing in the file. There is then no [`Stamp`], so a guard builds
    /// its filter at every start, and does not notice when another guard is started in front of the same table.
    ///
    /// If the file already has a stamp of the table, guards do not start ([`RedbError::Stamped`]): the guard
    /// that left the stamp would not notice writes without a stamp.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_without_stamp(path: impl AsRef<Path>, table: &str) -> Result<Self, RedbError> {
        let database = Arc::new(Database::open(path)?);
        let set = Self { unstamped: true, ..Self::of(File::Writable(database), table) };
        drop(set.file.begin_read()?.open_table(set.definition())?);
        Ok(set)
    }

    fn of(file: File, table: &str) -> Self {
        Self { file, table: table.into(), durability: Durability::Immediate, unstamped: false }
    }

    /// Opens a table of an open database. The table is created if it does not exist.
    ///
    /// # Errors
    ///
    /// If the table has other types, or cannot be created.
    pub fn new(database: Arc<Database>, table: &str) -> Result<Self, RedbError> {
        let set = Self::of(File::Writable(database.clone()), table);
        let transaction = database.begin_write()?;
        drop(transaction.open_table(set.definition())?);
        {
            let mut stamps = transaction.open_table(STAMPS)?;
            if stamps.get(FILE)?.is_none() {
                let number = u128::from_le_bytes(*umbel::Keyed::random().secret());
                stamps.insert(FILE, number as u64)?;
            }
        }
        transaction.commit()?;
        Ok(set)
    }

    /// The table `table` of the file at `path`, for reading only. Nothing is written to the file, and other processes may
    /// read it at the same time.
    ///
    /// The identity and the stamp are those that [`open`](Self::open) sees. Writes fail with
    /// [`RedbError::ReadOnly`].
    ///
    /// # Errors
    ///
    /// If the file or the table does not exist, if the file is open for writing elsewhere, or if the process that wrote it
    /// last was killed: redb must repair such a file first, which [`open`](Self::open) does.
    pub fn read_only(path: impl AsRef<Path>, table: &str) -> Result<Self, RedbError> {
        let path = path.as_ref();
        let database = Arc::new(ReadOnlyDatabase::open(path)?);
        let path: PathBuf = path.canonicalize().map_err(Error::Io)?;
        let file = File::ReadOnly(database, path.into());
        let set = Self::of(file, table);
        drop(set.file.begin_read()?.open_table(set.definition())?);
        Ok(set)
    }

    /// Makes ordinary writes reach the disk only with a later commit that is synced: see [`Durability::None`].
    /// The start of a guard is synced all the same.
    #[must_use]
    pub fn without_sync(mut self) -> Self {
        self.durability = Durability::None;
        self
    }

    /// The database; `None` after [`read_only`](Self::read_only).
    #[must_use]
    pub fn database(&self) -> Option<&Arc<Database>> {
        match &self.file {
            File::Writable(database) => Some(database),
            File::ReadOnly(..) => None,
        }
    }

    fn definition(&self) -> TableDefinition<'_, &'static [u8], &'static [u8]> {
        TableDefinition::new(&self.table)
    }

    fn name_of_mark(&self) -> String {
        format!("mark:{}", self.table)
    }

    fn name_of_incarnation(&self) -> String {
        format!("incarnation:{}", self.table)
    }

    /// Runs a transaction on a thread that may block.
    async fn write<T: Send + 'static>(
        &self,
        durability: Durability,
        write: impl FnOnce(&Self, &WriteTransaction) -> Result<T, RedbError> + Send + 'static,
    ) -> Result<T, RedbError> {
        let set = self.clone();
        let writing = move || {
            let database = set.database().ok_or(RedbError::ReadOnly)?;
            let mut transaction = database.begin_write()?;
            transaction.set_durability(durability)?;
            // Dropping the transaction rolls it back.
            let result = write(&set, &transaction)?;
            transaction.commit().map_err(|error| RedbError::Commit(error.into()))?;
            Ok(result)
        };
        tokio::task::spawn_blocking(writing).await.unwrap_or(Err(RedbError::Abandoned))
    }

    /// Fails unless the claim holds, and raises the mark.
    fn stamped(&self, transaction: &WriteTransaction, claim: Claim) -> Result<(), RedbError> {
        let mut stamps = transaction.open_table(STAMPS)?;
        let found = stamps.get(&*self.name_of_incarnation())?.map_or(0, |number| number.value());
        let expected = claim.incarnation;
        if found != expected {
            return Err(RedbError::Superseded { expected, found });
        }
        let name = self.name_of_mark();
        let before = stamps.get(&*name)?.map_or(0, |mark| mark.value());
        if before < claim.least {
            return Err(RedbError::Restored { confirmed: claim.least, found: before });
        }
        if claim.mark > before {
            stamps.insert(&*name, claim.mark)?;
        }
        Ok(())
    }

    async fn insert(
        &self,
        key: &[u8],
        value: &[u8],
        claim: Option<Claim>,
    ) -> Result<Put, RedbError> {
        let (key, value) = (key.to_vec(), value.to_vec());
        self.write(self.durability, move |set, transaction| {
            if let Some(claim) = claim {
                set.stamped(transaction, claim)?;
            }
            let mut table = transaction.open_table(set.definition())?;
            let new = table.insert(&*key, &*value)?.is_none();
            Ok(if new { Put::New } else { Put::Replaced })
        })
        .await
    }

    async fn remove(&self, key: &[u8], claim: Option<Claim>) -> Result<bool, RedbError> {
        let key = key.to_vec();
        self.write(self.durability, move |set, transaction| {
            if let Some(claim) = claim {
                set.stamped(transaction, claim)?;
            }
            let mut table = transaction.open_table(set.definition())?;
            Ok(table.remove(&*key)?.is_some())
        })
        .await
    }

    /// The table of stamps; `None` if no guard was ever started on this file.
    fn stamps(&self) -> Result<Option<ReadOnlyTable<&'static str, u64>>, RedbError> {
        match self.file.begin_read()?.open_table(STAMPS) {
            Ok(stamps) => Ok(Some(stamps)),
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl DataSet for Redb {
    type Error = RedbError;
    type Scan = RedbScan;

    async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, RedbError> {
        let table = self.file.begin_read()?.open_table(self.definition())?;
        Ok(table.get(key)?.map(|value| value.value().to_vec()))
    }

    async fn put(&self, key: &[u8], value: &[u8]) -> Result<Put, RedbError> {
        self.insert(key, value, None).await
    }

    async fn delete(&self, key: &[u8]) -> Result<bool, RedbError> {
        self.remove(key, None).await
    }

    async fn scan(&self, after: Option<&[u8]>) -> Result<RedbScan, RedbError> {
        let table = self.file.begin_read()?.open_table(self.definition())?;
        Ok(RedbScan { table, after: after.map(<[u8]>::to_vec) })
    }

    async fn page(&self, scan: &mut RedbScan, limit: usize) -> Result<Page, RedbError> {
        let mut page = Page::new();
        let from = scan.after.as_deref().map_or(Unbounded, Excluded);
        let mut rows = scan.table.range::<&[u8]>((from, Unbounded))?;
        while page.len() < limit.max(1) {
            match rows.next() {
                Some(row) => page.push(row?.0.value()),
                None => return Ok(page.last()),
            }
        }
        scan.after = page.keys().next_back().map(<[u8]>::to_vec);
        Ok(page)
    }

    async fn count(&self, scan: &mut RedbScan) -> Result<u64, RedbError> {
        Ok(scan.table.len()?)
    }

    /// The number of the file and the name of the table. A copy of the file has the same identity; the stamp shows which
    /// of the two is which.
    async fn identity(&self) -> Result<Vec<u8>, RedbError> {
        let number = match self.stamps()? {
            Some(stamps) => stamps.get(FILE)?.map(|number| number.value()),
            None => None,
        };
        let file = match (number, &self.file) {
            (Some(number), _) => format!("{number:016x}"),
            (None, File::ReadOnly(_, path)) => format!("at {path:?}"),
            (None, File::Writable(_)) => "without a number".to_owned(),
        };
        Ok(format!("redb 2 {file} {:?}", self.table).into_bytes())
    }

    async fn put_marked(&self, key: &[u8], value: &[u8], claim: Claim) -> Result<Put, RedbError> {
        self.insert(key, value, Some(claim)).await
    }

    async fn delete_marked(&self, key: &[u8], claim: Claim) -> Result<bool, RedbError> {
        self.remove(key, Some(claim)).await
    }

    async fn begin(&self, incarnation: u64) -> Result<bool, RedbError> {
        if self.database().is_none() {
            return Ok(false);
        }
        if self.unstamped {
            return match self.stamp().await? {
                Some(Stamp { incarnation: 1.., .. }) => Err(RedbError::Stamped),
                _ => Ok(false),
            };
        }
        self.write(Durability::Immediate, move |set, transaction| {
            let mut stamps = transaction.open_table(STAMPS)?;
            stamps.insert(&*set.name_of_incarnation(), incarnation)?;
            Ok(true)
        })
        .await
    }

    async fn stamp(&self) -> Result<Option<Stamp>, RedbError> {
        let Some(stamps) = self.stamps()? else { return Ok(None) };
        let number = |name: String| -> Result<u64, RedbError> {
            Ok(stamps.get(&*name)?.map_or(0, |number| number.value()))
        };
        let incarnation = number(self.name_of_incarnation())?;
        Ok(Some(Stamp { incarnation, mark: number(self.name_of_mark())? }))
    }

    fn outcome(&self, error: &RedbError) -> Outcome {
        match error {
            RedbError::Superseded { .. } | RedbError::Restored { .. } => Outcome::Superseded,
            RedbError::Redb(_) | RedbError::ReadOnly | RedbError::Stamped => Outcome::NotDone,
            RedbError::Commit(_) | RedbError::Abandoned => Outcome::Unknown,
        }
    }

    fn refusal(&self, error: &RedbError) -> Option<Refusal> {
        match error {
            RedbError::Redb(Error::ValueTooLarge(_)) => Some(Refusal::Unfit),
            _ => None,
        }
    }
}
