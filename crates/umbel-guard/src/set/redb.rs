//! A table of bytes in a redb file.
//!
//! Look-ups run where they are called: in a file that is in memory they take microseconds. Writes wait for the disk,
//! and go to threads that may. The guard's marks are in a table of their own, `umbel-guard`.

use crate::data_set::{DataSet, Page, Put, Stamp};
use redb::{Database, Durability, Error, ReadOnlyTable, ReadableDatabase, ReadableTable};
use redb::{ReadableTableMetadata, TableDefinition, WriteTransaction};
use std::ops::Bound::{Excluded, Unbounded};
use std::path::Path;
use std::sync::Arc;

/// A data set in a redb file: a table from bytes to bytes.
#[derive(Clone, Debug)]
pub struct Redb {
    database: Arc<Database>,
    table: Arc<str>,
    durability: Durability,
}

/// A scan of a [`Redb`], which sees one moment.
pub struct RedbScan {
    table: ReadOnlyTable<&'static [u8], &'static [u8]>,
    after: Option<Vec<u8>>,
}

impl std::fmt::Debug for RedbScan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedbScan").field("after", &self.after).finish_non_exhaustive()
    }
}

/// Where the guard keeps its marks, by the names of tables, and the number of the file.
const MARKS: TableDefinition<'static, &str, u64> = TableDefinition::new("umbel-guard");
const FILE: &str = "file";

impl Redb {
    /// The table `table` of the file at `path`. Both are made if they are not there.
    ///
    /// # Errors
    ///
    /// If the file is none of redb's, is open elsewhere, or its table has other types.
    pub fn create(path: impl AsRef<Path>, table: &str) -> Result<Self, Error> {
        Self::new(Arc::new(Database::create(path)?), table)
    }

    /// The same, for a file and a table that are there.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create), and if one of them is not there.
    pub fn open(path: impl AsRef<Path>, table: &str) -> Result<Self, Error> {
        let database = Database::open(path)?;
        let definition = TableDefinition::<&[u8], &[u8]>::new(table);
        drop(database.begin_read()?.open_table(definition)?);
        Self::new(Arc::new(database), table)
    }

    /// A table of a database that is open already, made if it is not there.
    ///
    /// # Errors
    ///
    /// If the table has other types, or cannot be made.
    pub fn new(database: Arc<Database>, table: &str) -> Result<Self, Error> {
        let set = Self { database, table: table.into(), durability: Durability::Immediate };
        let transaction = set.database.begin_write()?;
        drop(transaction.open_table(set.definition())?);
        {
            let mut marks = transaction.open_table(MARKS)?;
            if marks.get(FILE)?.is_none() {
                let number = u128::from_le_bytes(*umbel::Keyed::random().secret());
                marks.insert(FILE, number as u64)?;
            }
        }
        transaction.commit()?;
        Ok(set)
    }

    /// Writes are on the disk only when a later one of another kind is: see [`Durability::None`].
    #[must_use]
    pub fn without_sync(mut self) -> Self {
        self.durability = Durability::None;
        self
    }

    /// The database.
    #[must_use]
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    fn definition(&self) -> TableDefinition<'_, &'static [u8], &'static [u8]> {
        TableDefinition::new(&self.table)
    }

    fn name_of_mark(&self) -> String {
        format!("mark:{}", self.table)
    }

    /// Runs a transaction on a thread that may wait.
    async fn write<T: Send + 'static>(
        &self,
        write: impl FnOnce(&Self, &WriteTransaction) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let set = self.clone();
        let writing = move || {
            let mut transaction = set.database.begin_write()?;
            transaction.set_durability(set.durability).map_err(Error::from)?;
            let result = write(&set, &transaction)?;
            transaction.commit()?;
            Ok(result)
        };
        let written = tokio::task::spawn_blocking(writing).await;
        written.unwrap_or_else(|error| Err(Error::Io(std::io::Error::other(error))))
    }

    fn raise_mark(&self, transaction: &WriteTransaction, mark: u64) -> Result<(), Error> {
        let mut marks = transaction.open_table(MARKS)?;
        let name = self.name_of_mark();
        let before = marks.get(&*name)?.map_or(0, |mark| mark.value());
        if mark > before {
            marks.insert(&*name, mark)?;
        }
        Ok(())
    }

    async fn insert(&self, key: &[u8], value: &[u8], mark: Option<u64>) -> Result<Put, Error> {
        let (key, value) = (key.to_vec(), value.to_vec());
        self.write(move |set, transaction| {
            let mut table = transaction.open_table(set.definition())?;
            let new = table.insert(&*key, &*value)?.is_none();
            if let Some(mark) = mark {
                set.raise_mark(transaction, mark)?;
            }
            Ok(if new { Put::New } else { Put::Replaced })
        })
        .await
    }

    async fn remove(&self, key: &[u8], mark: Option<u64>) -> Result<bool, Error> {
        let key = key.to_vec();
        self.write(move |set, transaction| {
            let mut table = transaction.open_table(set.definition())?;
            let removed = table.remove(&*key)?.is_some();
            if let Some(mark) = mark {
                set.raise_mark(transaction, mark)?;
            }
            Ok(removed)
        })
        .await
    }
}

impl DataSet for Redb {
    type Error = Error;
    type Scan = RedbScan;

    async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let table = self.database.begin_read()?.open_table(self.definition())?;
        Ok(table.get(key)?.map(|value| value.value().to_vec()))
    }

    async fn put(&self, key: &[u8], value: &[u8]) -> Result<Put, Error> {
        self.insert(key, value, None).await
    }

    async fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        self.remove(key, None).await
    }

    async fn scan(&self, after: Option<&[u8]>) -> Result<RedbScan, Error> {
        let table = self.database.begin_read()?.open_table(self.definition())?;
        Ok(RedbScan { table, after: after.map(<[u8]>::to_vec) })
    }

    async fn page(&self, scan: &mut RedbScan, limit: usize) -> Result<Page, Error> {
        let mut page = Page::new();
        let from = scan.after.as_deref().map_or(Unbounded, Excluded);
        let mut rows = scan.table.range::<&[u8]>((from, Unbounded))?;
        while page.len() < limit {
            match rows.next() {
                Some(row) => page.push(row?.0.value()),
                None => return Ok(page.last()),
            }
        }
        scan.after = page.keys().next_back().map(<[u8]>::to_vec);
        Ok(page)
    }

    async fn count(&self, scan: &mut RedbScan) -> Result<u64, Error> {
        Ok(scan.table.len()?)
    }

    async fn identity(&self) -> Result<Vec<u8>, Error> {
        let marks = self.database.begin_read()?.open_table(MARKS)?;
        let file = marks.get(FILE)?.map_or(0, |number| number.value());
        Ok(format!("redb {file} {}", self.table).into_bytes())
    }

    async fn put_marked(&self, key: &[u8], value: &[u8], stamp: Stamp) -> Result<Put, Error> {
        self.insert(key, value, Some(stamp.mark)).await
    }

    async fn delete_marked(&self, key: &[u8], stamp: Stamp) -> Result<bool, Error> {
        self.remove(key, Some(stamp.mark)).await
    }

    async fn begin(&self, incarnation: u64) -> Result<bool, Error> {
        self.write(move |set, transaction| {
            let mut marks = transaction.open_table(MARKS)?;
            marks.insert(&*format!("incarnation:{}", set.table), incarnation)?;
            Ok(true)
        })
        .await
    }

    async fn stamp(&self) -> Result<Option<Stamp>, Error> {
        let marks = self.database.begin_read()?.open_table(MARKS)?;
        let mark = marks.get(&*self.name_of_mark())?.map_or(0, |mark| mark.value());
        let name = format!("incarnation:{}", self.table);
        let incarnation = marks.get(&*name)?.map_or(0, |number| number.value());
        Ok(Some(Stamp { incarnation, mark }))
    }
}
