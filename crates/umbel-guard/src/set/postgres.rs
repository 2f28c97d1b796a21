//! A table of PostgreSQL.

use crate::data_set::{DataSet, Outcome, Page, Put, Stamp};
use arc_swap::ArcSwapOption;
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fmt, io};
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::error::{Severity, SqlState};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, NoTls, Row, Statement};

/// A data set in a table of PostgreSQL.
///
/// Look-ups and writes go over a few pooled connections, which are shared by many tasks and opened again when they break. A
/// scan has a connection of its own, with a cursor in a transaction that sees one moment.
///
/// **What is created in the database:** in the schema of the guarded table, the table `umbel_guard` and five
/// sequences `umbel_guard_…` per guarded table and key column, when a guard starts. They keep its [`Stamp`]: the table has
/// the incarnation, in one row per connection, and the sequences have the marks. A write locks the row of its
/// connection and sets its sequence, so concurrent writes do not wait for each other and leave no dead rows behind.
/// If the user may not create them, there is no stamp, and a filter is built at every start. `DROP TABLE umbel_guard`
/// removes all of them.
///
/// **What is required:** an ordinary or partitioned table without rules, row security for this user or inheriting tables. The key
/// column is `text` or `varchar` with a deterministic collation, `bytea`, an integer or `uuid`. It is `NOT NULL`, not generated,
/// and has a primary key or unique index of its own that is valid, immediate, not partial and not on an expression. Anything
/// else is refused by [`Postgres::connect`], with the statement to run where there is one.
///
/// **Keys as stored:** every write compares the key that was stored with the key that was given, in the same
/// statement. If `varchar(n)` or a trigger has changed it, the statement is rolled back and fails with
/// [`PostgresError::KeyChanged`]. If the table has `AFTER` triggers, the row is read back before the commit;
/// such writes take one connection and four round trips.
///
/// **Primary servers only:** a standby is refused with [`PostgresError::Standby`], because it may lag behind. With several hosts in the
/// URL the primary is chosen. The [identity](DataSet::identity) has the timeline of the server, so a promoted standby
/// is another data set.
///
/// With the feature `tls` and `sslmode=require` in the URL, connections are encrypted. The server proves its name by a
/// certificate of an authority that this machine trusts (or `SSL_CERT_FILE` names).
#[derive(Debug)]
pub struct Postgres {
    config: Config,
    slots: Vec<Slot>,
    next: AtomicUsize,
    /// For writes that are verified before they are committed.
    careful: tokio::sync::Mutex<Option<Open>>,
    /// Whether the table has triggers that run after a write.
    has_after_triggers: AtomicBool,
    keys: Keys,
    values: Values,
    sql: Sql,
    /// What writes with a stamp need, since a guard has begun.
    stamping: ArcSwapOption<Stamping>,
    /// Rows that this value may have written.
    own: AtomicU64,
    foreign: Mutex<Foreign>,
    lingering: Duration,
}

/// Why PostgreSQL did not answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum PostgresError {
    /// What the server or the connection says.
    Postgres(tokio_postgres::Error),
    /// There is no connection, so nothing was sent.
    Connect(tokio_postgres::Error),
    /// There can be no encrypted connections.
    #[cfg(feature = "tls")]
    Tls(rustls::Error),
    /// There is no such table or column.
    Missing {
        /// Which one.
        what: String,
    },
    /// It is not a table that can be guarded.
    NotATable {
        /// Its name.
        name: String,
        /// What it is.
        found: &'static str,
        /// What to do.
        fix: &'static str,
    },
    /// The column is computed from others, so nothing can be put there.
    Generated {
        /// Its name.
        column: String,
    },
    /// The column has keys that cannot be compared as bytes.
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
    /// Nothing makes the keys of the column unique, byte by byte.
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
    /// These bytes cannot be a key, or a value, of the column.
    Unfit,
    /// Another unique column has this value already. Nothing was written.
    Conflict {
        /// The constraint.
        constraint: String,
    },
    /// The key that the table stored is not the one that was given, so the write was rolled back.
    KeyChanged {
        /// The key that was given.
        expected: Vec<u8>,
        /// The key that was stored, if it was found.
        found: Option<Vec<u8>>,
    },
    /// A trigger has put the row back that was deleted, so the delete was rolled back.
    NotDeleted,
    /// The row was not stored, for as often as it was tried.
    Contended,
    /// Another guard was started in front of this table. Nothing was written.
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
                f.write_str("another guard was started in front of this table; stop one of the two")
            }
        }
    }
}

/// What the server says, or the connection.
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

type Result<T> = std::result::Result<T, PostgresError>;

/// What the column of keys has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    Text,
    Bytes,
    /// Of so many bytes.
    Integers(u8),
    Uuids,
}

/// What the column of values has.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Values {
    Bytes,
    /// Anything else, by its type, in the way it is written.
    Written(String),
}

#[derive(Debug)]
struct Sql {
    get: String,
    put: Writing,
    delete: Writing,
    cursor: String,
    after: String,
    count: String,
    /// The guarded table, with its schema, and the table of stamps.
    table: String,
    stamps: String,
    schema: String,
    /// The key column, as it is.
    column: String,
}

/// A statement that writes, with and without a stamp.
#[derive(Debug)]
struct Writing {
    plain: String,
    /// After the parts that check and raise the stamp.
    stamped: String,
}

/// What writes with a stamp need.
#[derive(Debug)]
struct Stamping {
    /// Changes when a guard begins.
    version: u64,
    /// The parts of a statement that check and raise the stamp, by connection.
    parts: Vec<String>,
}

/// A connection, and its prepared statements.
#[derive(Debug)]
struct Open {
    slot: usize,
    client: Client,
    get: Statement,
    put: Statement,
    delete: Statement,
    stamped: ArcSwapOption<Stamped>,
}

#[derive(Debug)]
struct Stamped {
    version: u64,
    put: Statement,
    delete: Statement,
}

#[derive(Debug, Default)]
struct Slot {
    open: ArcSwapOption<Open>,
    opening: tokio::sync::Mutex<()>,
}

/// What is known of rows that others wrote.
#[derive(Debug, Default)]
struct Foreign {
    /// All rows written, by the statistics, when they were read first and last.
    base: Option<(i64, i64)>,
    /// How many of them were certainly of others, at the most so far.
    most: i64,
    /// How often that has grown.
    changes: u64,
}

/// A write to the table.
#[derive(Clone, Copy, Debug)]
enum Change<'a> {
    Put(&'a Param<'a>, &'a Param<'a>),
    Delete(&'a Param<'a>),
}

/// What a write did.
#[derive(Clone, Copy, Debug)]
struct Changed {
    stamped: bool,
    inserted: bool,
    /// Updated or deleted.
    found: bool,
}

/// Connections for look-ups and writes. Each has a row of its own in the table of stamps, and the one for verified writes has
/// another.
const CONNECTIONS: usize = 4;
/// How often a row is put that others delete meanwhile.
const TRIES: usize = 16;
/// The name of a cursor.
const CURSOR: &str = "umbel_guard_scan";
/// How long a statement may take, also if the process that sent it is gone.
const LINGERING: Duration = Duration::from_secs(5);
/// How much longer a guard that starts waits for statements of the one before it.
const PATIENCE: Duration = Duration::from_secs(30);
/// In front of the key, in hexadecimal digits, in the error that a statement raises for a key that was changed.
const CHANGED: &str = "umbel_guard stored key ";

/// A name as SQL takes it, whatever it is made of.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Text as SQL takes it.
fn literal(text: &str) -> String {
    let escaped = text.replace('\'', "''").replace('\\', "\\\\");
    format!("E'{escaped}'")
}

/// A connection to a primary server.
async fn connect(config: &Config) -> Result<Client> {
    let mut config = config.clone();
    if config.get_hosts().len() > 1 || config.get_hostaddrs().len() > 1 {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    let client = connect_to_any(&config).await.map_err(|error| match error {
        PostgresError::Postgres(error) if refuses_writes(&error) => PostgresError::Standby,
        PostgresError::Postgres(error) => PostgresError::Connect(error),
        error => error,
    })?;
    let standby = client.query_one("SELECT pg_is_in_recovery()", &[]).await;
    if standby.and_then(|row| row.try_get(0)).map_err(PostgresError::Connect)? {
        return Err(PostgresError::Standby);
    }
    Ok(client)
}

/// Whether no host of the URL is a primary.
fn refuses_writes(error: &tokio_postgres::Error) -> bool {
    let source = std::error::Error::source(error);
    let io = source.and_then(|source| source.downcast_ref::<io::Error>());
    io.is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// A connection, which lives as long as its client.
async fn connect_to_any(config: &Config) -> Result<Client> {
    #[cfg(feature = "tls")]
    if config.get_ssl_mode() == tokio_postgres::config::SslMode::Require {
        let (client, connection) = config.connect(tls()?).await?;
        return Ok(carried(client, connection));
    }
    let (client, connection) = config.connect(NoTls).await?;
    Ok(carried(client, connection))
}

fn carried(
    client: Client,
    connection: impl Future<Output = std::result::Result<(), tokio_postgres::Error>> + Send + 'static,
) -> Client {
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection ended");
        }
    });
    client
}

/// Trusts whom this machine trusts.
#[cfg(feature = "tls")]
fn tls() -> Result<tokio_postgres_rustls::MakeRustlsConnect> {
    use rustls::crypto::ring::default_provider;
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let config = config.with_safe_default_protocol_versions().map_err(PostgresError::Tls)?;
    let config = config.with_root_certificates(roots).with_no_client_auth();
    Ok(tokio_postgres_rustls::MakeRustlsConnect::new(config))
}

impl Postgres {
    /// A table of the database at `url`, such as `postgres://user@localhost/shop` or `host=/run/postgresql`, by the
    /// columns of keys and values. Before a dot in `table` is its schema.
    ///
    /// # Errors
    ///
    /// [`PostgresError`] if the server cannot be reached or is a standby, if there is no such column, or if it is not
    /// [fit for keys](Self).
    pub async fn connect(url: &str, table: &str, key: &str, value: &str) -> Result<Self> {
        let config: Config = url.parse()?;
        let client = connect(&config).await?;
        let name = match table.split_once('.') {
            Some((schema, table)) => format!("{}.{}", quoted(schema), quoted(table)),
            None => quoted(table),
        };
        let table = Table::find(&client, &name).await?;
        let column = Column::find(&client, &table, key).await?;
        let keys = column.keys(&client, &table).await?;
        let values = Column::find(&client, &table, value).await?;
        let values = match &*values.declared {
            "bytea" => Values::Bytes,
            _ => Values::Written(values.declared),
        };
        let slots = (0..CONNECTIONS).map(|_| Slot::default()).collect();
        let set = Self {
            config,
            slots,
            next: AtomicUsize::new(0),
            careful: tokio::sync::Mutex::default(),
            has_after_triggers: AtomicBool::new(false),
            keys,
            sql: sql(&table, key, value, keys, &values),
            values,
            stamping: ArcSwapOption::empty(),
            own: AtomicU64::new(0),
            foreign: Mutex::default(),
            lingering: LINGERING,
        };
        set.identity_of(&client).await?;
        Ok(set)
    }

    /// The longest time that a statement may take; 5 seconds unless it is said here. A guard that is started waits
    /// so long before its first scan, since the one before it may have left a statement behind.
    #[must_use]
    pub fn statement_timeout(mut self, time: Duration) -> Self {
        self.lingering = time.max(Duration::from_millis(1));
        self
    }

    fn types(&self) -> [Type; 4] {
        let key = if self.keys == Keys::Bytes { Type::BYTEA } else { Type::TEXT };
        let value = if self.values == Values::Bytes { Type::BYTEA } else { Type::TEXT };
        [key, value, Type::INT8, Type::INT8]
    }

    async fn open(&self, slot: usize) -> Result<Open> {
        let client = connect(&self.config).await?;
        let opening = async {
            // A statement that waited for a lock looks again at what has changed meanwhile only at this level.
            let set = format!(
                "SET statement_timeout = {time}; SET idle_in_transaction_session_timeout = {time};
                 SET default_transaction_isolation = 'read committed'",
                time = self.lingering.as_millis()
            );
            client.batch_execute(&set).await?;
            let types = self.types();
            let get = client.prepare_typed(&self.sql.get, &types[..1]).await?;
            let put = client.prepare_typed(&self.sql.put.plain, &types[..2]).await?;
            Ok((get, put, client.prepare_typed(&self.sql.delete.plain, &types[..1]).await?))
        };
        let (get, put, delete) = opening.await.map_err(PostgresError::Connect)?;
        Ok(Open { slot, client, get, put, delete, stamped: ArcSwapOption::empty() })
    }

    /// A connection, in turns.
    async fn any(&self) -> Result<Arc<Open>> {
        let number = self.next.fetch_add(1, Relaxed) % self.slots.len();
        let slot = &self.slots[number];
        let usable = |open: &Arc<Open>| !open.client.is_closed();
        if let Some(open) = slot.open.load_full().filter(usable) {
            return Ok(open);
        }
        // In a box: this is rare and large, and would be a part of every query.
        Box::pin(async {
            let _one = slot.opening.lock().await;
            if let Some(open) = slot.open.load_full().filter(usable) {
                return Ok(open);
            }
            let open = Arc::new(self.open(number).await?);
            slot.open.store(Some(open.clone()));
            Ok(open)
        })
        .await
    }

    fn value_param<'a>(&self, value: &'a [u8]) -> Result<Param<'a>> {
        match &self.values {
            Values::Bytes => Ok(Param::Bytes(value)),
            Values::Written(_) => text(value).map(Param::Text).ok_or(PostgresError::Unfit),
        }
    }

    /// The statements with a stamp, which can be prepared once a guard has begun.
    async fn stamped(&self, open: &Open) -> Result<Arc<Stamped>> {
        let stamping = self.stamping.load_full().ok_or(PostgresError::Superseded)?;
        if let Some(stamped) = open.stamped.load_full()
            && stamped.version == stamping.version
        {
            return Ok(stamped);
        }
        Box::pin(async {
            let (part, types) = (&stamping.parts[open.slot], self.types());
            let preparing = async {
                let put = format!("{part}{}", self.sql.put.stamped);
                let put = open.client.prepare_typed(&put, &types).await?;
                let delete = format!("{part}{}", self.sql.delete.stamped);
                let types = [types[0].clone(), Type::INT8, Type::INT8, Type::INT8];
                let delete = open.client.prepare_typed(&delete, &types).await?;
                Ok(Arc::new(Stamped { version: stamping.version, put, delete }))
            };
            let stamped = preparing.await.map_err(PostgresError::Connect)?;
            open.stamped.store(Some(stamped.clone()));
            Ok(stamped)
        })
        .await
    }

    /// Sends one statement that writes.
    async fn change(
        &self,
        open: &Open,
        change: Change<'_>,
        stamp: Option<Stamp>,
    ) -> Result<Changed> {
        let stamped = match stamp {
            Some(_) => Some(self.stamped(open).await?),
            None => None,
        };
        let stamp = stamp.unwrap_or_default();
        let (incarnation, mark) = (stamp.incarnation.cast_signed(), stamp.mark.cast_signed());
        let row = match (change, stamped) {
            (Change::Put(key, value), stamped) => {
                // Before it is sent, so that no row of this value is ever taken for one of others.
                self.own.fetch_add(1, Relaxed);
                match stamped {
                    Some(stamped) => {
                        let params: [&(dyn ToSql + Sync); 4] =
                            [key.get(), value.get(), &incarnation, &mark];
                        open.client.query_one(&stamped.put, &params).await
                    }
                    None => open.client.query_one(&open.put, &[key.get(), value.get()]).await,
                }
                .map_err(|error| refused(error, key))?
            }
            (Change::Delete(key), Some(stamped)) => {
                // The places of the stamp are the same as in a put.
                let params: [&(dyn ToSql + Sync); 4] = [key.get(), &0_i64, &incarnation, &mark];
                open.client.query_one(&stamped.delete, &params).await?
            }
            (Change::Delete(key), None) => {
                open.client.query_one(&open.delete, &[key.get()]).await?
            }
        };
        let some = |place| row.try_get::<_, i64>(place).map(|rows| rows > 0);
        Ok(Changed { stamped: some(0)?, inserted: some(1)?, found: some(2)? })
    }

    /// Writes in a transaction that is committed if the row is there afterwards, or is gone after a delete.
    async fn change_carefully(&self, change: Change<'_>, stamp: Option<Stamp>) -> Result<Changed> {
        let mut careful = self.careful.lock().await;
        let open = match careful.take() {
            Some(open) if !open.client.is_closed() => open,
            _ => self.open(CONNECTIONS).await?,
        };
        // Put back before it is used: if this task is dropped, the next one rolls back what it finds.
        let open = careful.insert(open);
        let begin = open.client.batch_execute("ROLLBACK; BEGIN").await;
        begin.map_err(PostgresError::Connect)?;
        let changing = async {
            let changed = self.change(open, change, stamp).await?;
            // Triggers that wait for the commit run now.
            open.client.batch_execute("SET CONSTRAINTS ALL IMMEDIATE").await?;
            let (key, wanted) = match change {
                Change::Put(key, _) => (key, true),
                Change::Delete(key) => (key, false),
            };
            let there = open.client.query_opt(&open.get, &[key.get()]).await?.is_some();
            match wanted {
                true if !there && (changed.inserted || changed.found) => {
                    Err(PostgresError::KeyChanged { expected: key.bytes().to_vec(), found: None })
                }
                false if there && changed.stamped => Err(PostgresError::NotDeleted),
                _ => Ok(changed),
            }
        };
        let changed = changing.await;
        if changed.is_err() {
            // If this fails, the connection is gone, and the transaction with it.
            let _ = open.client.batch_execute("ROLLBACK").await;
            return changed;
        }
        open.client.batch_execute("COMMIT").await?;
        changed
    }

    async fn write(&self, change: Change<'_>, stamp: Option<Stamp>) -> Result<Changed> {
        let changed = if self.has_after_triggers.load(Relaxed) {
            Box::pin(self.change_carefully(change, stamp)).await?
        } else {
            let open = self.any().await?;
            self.change(&open, change, stamp).await?
        };
        if changed.stamped { Ok(changed) } else { Err(PostgresError::Superseded) }
    }

    async fn insert(&self, key: &[u8], value: &[u8], stamp: Option<Stamp>) -> Result<Put> {
        let key = self.keys.param(key).ok_or(PostgresError::Unfit)?;
        let value = self.value_param(value)?;
        for _ in 0..TRIES {
            match self.write(Change::Put(&key, &value), stamp).await? {
                Changed { inserted: true, .. } => return Ok(Put::New),
                Changed { found: true, .. } => return Ok(Put::Replaced),
                // Another transaction has inserted the key after this statement began, or deleted it.
                Changed { .. } => {}
            }
        }
        Err(PostgresError::Contended)
    }

    async fn remove(&self, key: &[u8], stamp: Option<Stamp>) -> Result<bool> {
        let Some(key) = self.keys.param(key) else { return Ok(false) };
        Ok(self.write(Change::Delete(&key), stamp).await?.found)
    }

    /// What tells the set from others, as a connection sees it. Also looks whether the table has triggers that run after a write.
    async fn identity_of(&self, client: &Client) -> Result<String> {
        // The timeline is the one of the write-ahead log that the server writes now. The control file has the one of the last
        // checkpoint, which may be older.
        let sql = "SELECT CASE WHEN pg_is_in_recovery() THEN NULL
                 ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END,
               concat_ws(' ', s.system_identifier, d.oid, quote_ident(d.datname), c.oid, a.attnum,
                         quote_ident(a.attname), a.atttypid, a.atttypmod, a.attcollation),
               EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid IN
                         (SELECT c.oid UNION SELECT relid FROM pg_partition_tree(c.oid))
                       AND NOT g.tgisinternal AND g.tgenabled <> 'D' AND g.tgtype & 66 = 0 AND g.tgtype & 28 <> 0)
             FROM pg_control_system() s, pg_database d, pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
             WHERE d.datname = current_database() AND c.oid = to_regclass($1)
               AND a.attname = $2::text AND a.attnum > 0 AND NOT a.attisdropped";
        let statement = client.prepare_typed(sql, &[Type::TEXT, Type::TEXT]).await?;
        let row = client.query_opt(&statement, &[&self.sql.table, &self.sql.column]).await?;
        let what = || format!("column {} of {}", self.sql.column, self.sql.table);
        let row = row.ok_or_else(|| PostgresError::Missing { what: what() })?;
        let timeline: Option<String> = row.try_get(0)?;
        let timeline = timeline.ok_or(PostgresError::Standby)?;
        let name: String = row.try_get(1)?;
        self.has_after_triggers.store(row.try_get(2)?, Relaxed);
        Ok(format!("postgres 2 {timeline} {name} {}", self.sql.table))
    }

    /// The table and the sequences for the stamp of a guard: they are created if they are missing, and the incarnation is
    /// stored.
    async fn begin_on(
        &self,
        client: &mut Client,
        incarnation: u64,
    ) -> std::result::Result<Stamping, tokio_postgres::Error> {
        let wait = (self.lingering + PATIENCE).as_millis();
        client.batch_execute(&format!("SET statement_timeout = {wait}")).await?;
        let Sql { table, stamps, schema, column, .. } = &self.sql;
        let find =
            "SELECT c.oid, a.attnum, to_regclass($3) IS NULL OR EXISTS (SELECT FROM pg_class o
                 WHERE o.oid = to_regclass($3) AND pg_get_userbyid(o.relowner) = current_user)
             FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
             WHERE c.oid = to_regclass($1) AND a.attname = $2::text AND NOT a.attisdropped";
        let find = client.prepare_typed(find, &[Type::TEXT, Type::TEXT, Type::TEXT]).await?;
        let row = client.query_one(&find, &[table, column, stamps]).await?;
        let (relation, number): (u32, i16) = (row.try_get(0)?, row.try_get(1)?);
        let owned =
            if row.try_get(2)? { format!("OWNED BY {stamps}.incarnation") } else { String::new() };
        let sequences: Vec<String> = (0..=CONNECTIONS)
            .map(|slot| format!("{schema}.{}", quoted(&sequence(relation, number, slot))))
            .collect();
        let transaction = client.transaction().await?;
        // Two guards that start at the same time take turns.
        let lock = format!(
            "SELECT pg_advisory_xact_lock(hashtext('umbel_guard'), {}::int4)",
            relation.cast_signed()
        );
        transaction.batch_execute(&lock).await?;
        let missing = "SELECT to_regclass(name) IS NULL FROM unnest($1::text[]) name";
        let mut names = sequences.clone();
        names.push(stamps.clone());
        let rows = transaction.query(missing, &[&names]).await?;
        let mut lacks = false;
        for row in &rows {
            lacks |= row.try_get::<_, bool>(0)?;
        }
        if lacks {
            let mut create = format!(
                "CREATE TABLE IF NOT EXISTS {stamps} (relation oid, key_column text, slot int4, incarnation int8 NOT NULL,
                   PRIMARY KEY (relation, key_column, slot));"
            );
            for sequence in &sequences {
                create += &format!(
                    "CREATE SEQUENCE IF NOT EXISTS {sequence} MINVALUE 0 START 0 {owned};"
                );
            }
            transaction.batch_execute(&create).await?;
        }
        // Waits for statements of the guard before this one: they hold the locks of their rows.
        let [column_text, table_text] = [column, table].map(|name| literal(name));
        let rows = format!("relation = {table_text}::regclass AND key_column = {column_text}");
        let mut begin = format!(
            "SELECT FROM {stamps} WHERE {rows} ORDER BY slot FOR UPDATE;
             INSERT INTO {stamps} SELECT {table_text}::regclass, {column_text}, slot, {number}
               FROM generate_series(0, {CONNECTIONS}) slot ON CONFLICT (relation, key_column, slot) DO NOTHING;
             UPDATE {stamps} SET incarnation = {number} WHERE {rows};
             SELECT set_config('synchronous_commit', 'local', true)
               WHERE current_setting('synchronous_commit') = 'off';",
            number = incarnation.cast_signed(),
        );
        for sequence in &sequences {
            begin += &format!(
                "SELECT setval({}::regclass, (SELECT last_value FROM {sequence}));",
                literal(sequence)
            );
        }
        transaction.batch_execute(&begin).await?;
        transaction.commit().await?;
        // The row of the connection is locked first, and only if it has the incarnation: a guard that begins meanwhile waits for
        // this statement, or this statement finds the incarnation of that guard. While it is locked, no other statement sets
        // the sequence, so the mark never falls.
        let parts = sequences.iter().enumerate().map(|(slot, sequence)| {
            format!(
                "WITH held AS MATERIALIZED (
                   SELECT FROM {stamps} WHERE {rows} AND slot = {slot} AND incarnation = $3::int8 FOR NO KEY UPDATE),
                 stamped AS MATERIALIZED (
                   SELECT setval({}::regclass, greatest($4::int8, (SELECT last_value FROM {sequence}))) FROM held),",
                literal(sequence)
            )
        });
        Ok(Stamping { version: unused_number(), parts: parts.collect() })
    }

    /// Whether this user may write to the guarded table, and there is a table of stamps.
    async fn could_write_unseen(&self, client: &Client) -> Result<bool> {
        let sql = "SELECT to_regclass($2) IS NOT NULL AND (has_table_privilege(to_regclass($1)::oid, 'INSERT')
             OR has_any_column_privilege(to_regclass($1)::oid, 'INSERT'))";
        let statement = client.prepare_typed(sql, &[Type::TEXT, Type::TEXT]).await?;
        let row = client.query_one(&statement, &[&self.sql.table, &self.sql.stamps]).await?;
        Ok(row.try_get(0)?)
    }
}

/// A number that was not used before.
fn unused_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Relaxed) + 1
}

/// The name of the sequence with the marks of a connection.
fn sequence(relation: u32, column: i16, slot: usize) -> String {
    format!("umbel_guard_{relation}_{column}_{slot}")
}

/// What a failed put says.
fn refused(error: tokio_postgres::Error, key: &Param<'_>) -> PostgresError {
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
        // The key is the target of conflicts, so this is one of another column.
        let constraint = told.constraint().unwrap_or("unknown").to_owned();
        return PostgresError::Conflict { constraint };
    }
    PostgresError::Postgres(error)
}

/// Text that the server can have.
fn text(bytes: &[u8]) -> Option<Cow<'_, str>> {
    let text = std::str::from_utf8(bytes).ok()?;
    (!text.contains('\0')).then_some(Cow::Borrowed(text))
}

/// A table that can be guarded.
#[derive(Debug)]
struct Table {
    oid: u32,
    schema: String,
    /// With the schema.
    name: String,
}

impl Table {
    async fn find(client: &Client, name: &str) -> Result<Self> {
        let sql = "SELECT c.oid, n.nspname::text, c.relname::text, c.relkind::text, c.relpersistence::text,
               c.relhasrules, c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid),
               row_security_active(c.oid)
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)";
        let statement = client.prepare_typed(sql, &[Type::TEXT]).await?;
        let row = client.query_opt(&statement, &[&name]).await?;
        let row = row.ok_or_else(|| PostgresError::Missing { what: format!("table {name}") })?;
        let (schema, relation): (String, String) = (row.try_get(1)?, row.try_get(2)?);
        let (kind, persistence): (String, String) = (row.try_get(3)?, row.try_get(4)?);
        let (rules, inherited, secured) = (row.try_get(5)?, row.try_get(6)?, row.try_get(7)?);
        let refuse = |found, fix| {
            let name = format!("{schema}.{relation}");
            Err(PostgresError::NotATable { name, found, fix })
        };
        match &*kind {
            "r" | "p" => {}
            "v" | "m" => return refuse("a view", "guard the table behind it"),
            "f" => return refuse("a foreign table", "guard the table on its own server"),
            _ => return refuse("another kind of relation", "name a table"),
        }
        if persistence == "t" {
            return refuse(
                "a temporary table, which other connections cannot see",
                "create it for all",
            );
        }
        if rules {
            return refuse("a table with rewrite rules", "use triggers in the place of rules");
        }
        if inherited {
            return refuse(
                "a table that others inherit from, whose keys are not unique together",
                "use partitions in the place of inheritance",
            );
        }
        if secured {
            return refuse(
                "a table with row security, which hides rows from this user",
                "connect as the owner of the table or as a user with BYPASSRLS",
            );
        }
        if relation == "umbel_guard" {
            return refuse("the guard's own table", "name another one");
        }
        let name = format!("{}.{}", quoted(&schema), quoted(&relation));
        Ok(Self { oid: row.try_get(0)?, schema: quoted(&schema), name })
    }
}

/// A column that can be written.
#[derive(Debug)]
struct Column {
    name: String,
    number: i16,
    /// The name of its type.
    declared: String,
    not_null: bool,
    /// Whether equal text has equal bytes in it.
    deterministic: bool,
}

impl Column {
    async fn find(client: &Client, table: &Table, name: &str) -> Result<Self> {
        let sql = "SELECT a.attnum, format_type(a.atttypid, NULL), a.attnotnull, a.attgenerated::text <> '',
               coalesce(c.collisdeterministic, true)
             FROM pg_attribute a LEFT JOIN pg_collation c ON c.oid = a.attcollation
             WHERE a.attrelid = $1 AND a.attname = $2::text AND a.attnum > 0 AND NOT a.attisdropped";
        let statement = client.prepare_typed(sql, &[Type::OID, Type::TEXT]).await?;
        let row = client.query_opt(&statement, &[&table.oid, &name]).await?;
        let what = || format!("column {name} of {}", table.name);
        let row = row.ok_or_else(|| PostgresError::Missing { what: what() })?;
        if row.try_get(3)? {
            return Err(PostgresError::Generated { column: name.to_owned() });
        }
        Ok(Self {
            name: name.to_owned(),
            number: row.try_get(0)?,
            declared: row.try_get(1)?,
            not_null: row.try_get(2)?,
            deterministic: row.try_get(4)?,
        })
    }

    /// What kind of keys it has, if it is fit for keys.
    async fn keys(&self, client: &Client, table: &Table) -> Result<Keys> {
        let keys = match &*self.declared {
            "text" | "character varying" if self.deterministic => Keys::Text,
            "bytea" => Keys::Bytes,
            "smallint" => Keys::Integers(2),
            "integer" => Keys::Integers(4),
            "bigint" => Keys::Integers(8),
            "uuid" => Keys::Uuids,
            declared if self.deterministic => {
                return Err(PostgresError::KeyType { name: declared.to_owned() });
            }
            declared => {
                let name = format!("{declared} with a collation that is not deterministic");
                return Err(PostgresError::KeyType { name });
            }
        };
        let (column, name) = (self.name.clone(), quoted(&self.name));
        if !self.not_null {
            let fix = format!("ALTER TABLE {} ALTER COLUMN {name} SET NOT NULL;", table.name);
            return Err(PostgresError::Nullable { column, fix });
        }
        let sql = "SELECT EXISTS (SELECT FROM pg_index i JOIN pg_opclass o ON o.oid = i.indclass[0]
               LEFT JOIN pg_collation c ON c.oid = i.indcollation[0]
             WHERE i.indrelid = $1 AND i.indisunique AND i.indisvalid AND i.indisready AND i.indislive
               AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indnkeyatts = 1
               AND i.indkey[0] = $2 AND o.opcnamespace = 'pg_catalog'::regnamespace
               AND coalesce(c.collisdeterministic, true))";
        let statement = client.prepare_typed(sql, &[Type::OID, Type::INT2]).await?;
        let row = client.query_one(&statement, &[&table.oid, &self.number]).await?;
        if !row.try_get::<_, bool>(0)? {
            let fix = format!("CREATE UNIQUE INDEX ON {} ({name});", table.name);
            return Err(PostgresError::NotUnique { column, fix });
        }
        Ok(keys)
    }
}

fn sql(table: &Table, key_name: &str, value: &str, keys: Keys, values: &Values) -> Sql {
    let (schema, table) = (&table.schema, &table.name);
    let (key, value) = (&quoted(key_name), &quoted(value));
    // As it is asked for, and as it is written.
    let (asked, written) = match keys {
        Keys::Text => ("$1::text", format!("{key}::text")),
        Keys::Bytes => ("$1::bytea", key.to_owned()),
        Keys::Integers(2) => ("$1::text::int2", format!("{key}::text")),
        Keys::Integers(4) => ("$1::text::int4", format!("{key}::text")),
        Keys::Integers(_) => ("$1::text::int8", format!("{key}::text")),
        Keys::Uuids => ("$1::text::uuid", format!("{key}::text")),
    };
    let (given, read) = match values {
        Values::Bytes => ("$2::bytea".to_owned(), value.to_owned()),
        Values::Written(name) => (format!("$2::text::{name}"), format!("{value}::text")),
    };
    // SQL has no statement that fails if rows are not as expected. A cast of text that is no number does, after the row was
    // stored and before the statement ends, so that the statement is rolled back; and the error has the text.
    let (differs, bytes) = match keys {
        Keys::Bytes => (format!("{key} IS DISTINCT FROM $1::bytea"), key.to_owned()),
        _ => (
            format!("{written} COLLATE \"C\" IS DISTINCT FROM $1::text COLLATE \"C\""),
            format!("convert_to({written}, 'UTF8')"),
        ),
    };
    let check = format!(
        "CASE WHEN {differs} THEN ('{CHANGED}' || encode({bytes}, 'hex'))::int4 ELSE 1 END AS rows"
    );
    let insert = |from: &str| {
        format!(
            "inserted AS (INSERT INTO {table} ({key}, {value}) {from} ON CONFLICT ({key}) DO NOTHING RETURNING {check})"
        )
    };
    let update = |only: &str| {
        format!(
            "updated AS (UPDATE {table} SET {value} = {given} WHERE {key} = {asked} {only}
               AND NOT EXISTS (SELECT FROM inserted) RETURNING {check})"
        )
    };
    let delete = |only: &str| {
        format!("deleted AS (DELETE FROM {table} WHERE {key} = {asked} {only} RETURNING 1 AS rows)")
    };
    let only = "AND EXISTS (SELECT FROM stamped)";
    let (all, stamped) = ("SELECT 1::int8", "SELECT (SELECT count(*) FROM stamped)");
    let put = "(SELECT count(rows) FROM inserted), (SELECT count(rows) FROM updated)";
    let gone = "0::int8, (SELECT count(rows) FROM deleted)";
    Sql {
        get: format!("SELECT {read} FROM {table} WHERE {key} = {asked} LIMIT 1"),
        put: Writing {
            plain: format!(
                "WITH {}, {} {all}, {put}",
                insert(&format!("VALUES ({asked}, {given})")),
                update("")
            ),
            stamped: format!(
                "{}, {} {stamped}, {put}",
                insert(&format!("SELECT {asked}, {given} FROM stamped")),
                update(only)
            ),
        },
        delete: Writing {
            plain: format!("WITH {} {all}, {gone}", delete("")),
            stamped: format!("{} {stamped}, {gone} WHERE $2::int8 IS NOT NULL", delete(only)),
        },
        cursor: format!("DECLARE {CURSOR} NO SCROLL CURSOR FOR SELECT {written} FROM {table}"),
        after: format!("SELECT {written} FROM {table} WHERE {key} > {asked} ORDER BY {key} LIMIT "),
        count: format!("SELECT count(*) FROM {table}"),
        table: table.clone(),
        stamps: format!("{schema}.umbel_guard"),
        schema: schema.clone(),
        column: key_name.to_owned(),
    }
}

impl Keys {
    /// The key as the server is asked for it; `None` if it can be no key of the column.
    fn param(self, key: &[u8]) -> Option<Param<'_>> {
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

fn number(key: &[u8]) -> Option<i64> {
    std::str::from_utf8(key).ok()?.trim().parse().ok()
}

/// The one way in which the server writes a UUID.
fn uuid(key: &[u8]) -> Option<String> {
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

/// A key or a value on its way to the server.
#[derive(Debug)]
enum Param<'a> {
    Text(Cow<'a, str>),
    Bytes(&'a [u8]),
}

impl Param<'_> {
    fn get(&self) -> &(dyn ToSql + Sync) {
        match self {
            Self::Text(Cow::Owned(text)) => text,
            Self::Text(Cow::Borrowed(text)) => text,
            Self::Bytes(bytes) => bytes,
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// Text or bytes that the server sent.
fn bytes_of(row: &Row) -> Result<Option<Vec<u8>>> {
    if row.columns()[0].type_() == &Type::BYTEA {
        Ok(row.try_get(0)?)
    } else {
        Ok(row.try_get::<_, Option<String>>(0)?.map(String::into_bytes))
    }
}

/// A scan of a [`Postgres`], which sees one moment.
#[derive(Debug)]
pub struct PostgresScan(Scanning);

#[derive(Debug)]
enum Scanning {
    /// All keys, by a cursor; and the statement that fetches so many.
    All(Client, Option<(usize, Statement)>),
    /// The keys behind one.
    After(Vec<u8>),
}

impl DataSet for Postgres {
    type Error = PostgresError;
    type Scan = PostgresScan;

    async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let Some(key) = self.keys.param(key) else { return Ok(None) };
        let open = self.any().await?;
        match open.client.query_opt(&open.get, &[key.get()]).await? {
            Some(row) => Ok(Some(bytes_of(&row)?.unwrap_or_default())),
            None => Ok(None),
        }
    }

    async fn put(&self, key: &[u8], value: &[u8]) -> Result<Put> {
        self.insert(key, value, None).await
    }

    async fn delete(&self, key: &[u8]) -> Result<bool> {
        self.remove(key, None).await
    }

    async fn scan(&self, after: Option<&[u8]>) -> Result<PostgresScan> {
        if let Some(key) = after {
            return Ok(PostgresScan(Scanning::After(key.to_vec())));
        }
        let client = connect(&self.config).await?;
        // A transaction sees the moment of its first statement: the cursor. A pooler may send a transaction to a standby if it
        // is said to only read, so it is not.
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE";
        client.batch_execute(&format!("{begin}; {}", self.sql.cursor)).await?;
        let found = self.identity_of(&client).await?;
        let expected = self.identity_of(&self.any().await?.client).await?;
        if found != expected {
            return Err(PostgresError::Moved { expected, found });
        }
        Ok(PostgresScan(Scanning::All(client, None)))
    }

    async fn page(&self, scan: &mut PostgresScan, limit: usize) -> Result<Page> {
        let limit = limit.max(1);
        let rows = match &mut scan.0 {
            Scanning::After(key) => {
                let Some(param) = self.keys.param(key) else { return Ok(Page::new().last()) };
                let open = self.any().await?;
                let asked = if self.keys == Keys::Bytes { Type::BYTEA } else { Type::TEXT };
                let sql = format!("{}{limit}", self.sql.after);
                let statement = open.client.prepare_typed(&sql, &[asked]).await?;
                open.client.query(&statement, &[param.get()]).await?
            }
            Scanning::All(client, fetch) => {
                let statement = match fetch {
                    Some((same, statement)) if *same == limit => statement.clone(),
                    _ => {
                        let sql = format!("FETCH {limit} FROM {CURSOR}");
                        let statement = client.prepare(&sql).await?;
                        *fetch = Some((limit, statement.clone()));
                        statement
                    }
                };
                client.query(&statement, &[]).await?
            }
        };
        let mut page = Page::new();
        for row in &rows {
            page.push(&bytes_of(row)?.unwrap_or_default());
        }
        if let (Scanning::After(key), Some(last)) = (&mut scan.0, page.keys().next_back()) {
            *key = last.to_vec();
        }
        Ok(if rows.len() < limit { page.last() } else { page })
    }

    async fn count(&self, scan: &mut PostgresScan) -> Result<u64> {
        let count: i64 = match &scan.0 {
            Scanning::All(client, _) => client.query_one(&self.sql.count, &[]).await?.try_get(0)?,
            Scanning::After(_) => {
                let open = self.any().await?;
                open.client.query_one(&self.sql.count, &[]).await?.try_get(0)?
            }
        };
        Ok(count.unsigned_abs())
    }

    /// Integers in decimal, without zeros or signs that say nothing; UUIDs in small letters with hyphens.
    fn canonical<'k>(&self, key: &'k [u8]) -> Cow<'k, [u8]> {
        let text = match self.keys {
            Keys::Text | Keys::Bytes => None,
            Keys::Integers(_) => number(key).map(|number| number.to_string()),
            Keys::Uuids => uuid(key),
        };
        text.map_or(Cow::Borrowed(key), |text| Cow::Owned(text.into_bytes()))
    }

    fn lingering(&self) -> Duration {
        self.lingering
    }

    /// The cluster and its current timeline, the database, the table, and the key column with its type.
    async fn identity(&self) -> Result<Vec<u8>> {
        let mut tries = CONNECTIONS;
        loop {
            let open = self.any().await?;
            match self.identity_of(&open.client).await {
                // After a failover each connection may be broken once.
                Err(PostgresError::Postgres(error)) if error.is_closed() && tries > 0 => tries -= 1,
                identity => return Ok(identity?.into_bytes()),
            }
        }
    }

    async fn put_marked(&self, key: &[u8], value: &[u8], stamp: Stamp) -> Result<Put> {
        self.insert(key, value, Some(stamp)).await
    }

    async fn delete_marked(&self, key: &[u8], stamp: Stamp) -> Result<bool> {
        self.remove(key, Some(stamp)).await
    }

    /// Also waits until all statements of the guard before this one have ended. `false` if this user may not create or change
    /// the table `umbel_guard`, or may only read.
    async fn begin(&self, incarnation: u64) -> Result<bool> {
        let mut client = connect(&self.config).await?;
        let error = match self.begin_on(&mut client, incarnation).await {
            Ok(stamping) => {
                self.stamping.store(Some(Arc::new(stamping)));
                return Ok(true);
            }
            Err(error) => error,
        };
        match error.code() {
            Some(code) if code == &SqlState::READ_ONLY_SQL_TRANSACTION => Ok(false),
            Some(code) if code == &SqlState::INSUFFICIENT_PRIVILEGE => {
                if self.could_write_unseen(&client).await? {
                    // Writes without a stamp would not show to a guard that trusts its files by the stamp.
                    let table = self.sql.stamps.clone();
                    return Err(PostgresError::StampDenied { error, table });
                }
                Ok(false)
            }
            _ => Err(error.into()),
        }
    }

    async fn stamp(&self) -> Result<Option<Stamp>> {
        let open = self.any().await?;
        let Sql { table, stamps, schema, column, .. } = &self.sql;
        let there = "SELECT to_regclass($1) IS NOT NULL AND has_table_privilege(to_regclass($1)::oid, 'SELECT')";
        let there = open.client.prepare_typed(there, &[Type::TEXT]).await?;
        if !open
            .client
            .query_one(&there, &[stamps])
            .await?
            .try_get::<_, Option<bool>>(0)?
            .unwrap_or(false)
        {
            return Ok(None);
        }
        let sql = format!(
            "SELECT min(s.incarnation), max(s.incarnation), max(pg_sequence_last_value(to_regclass(
                 concat($3::text, '.umbel_guard_', s.relation, '_', a.attnum, '_', s.slot))))
             FROM {stamps} s JOIN pg_attribute a ON a.attrelid = s.relation AND a.attname = s.key_column
             WHERE s.relation = to_regclass($1)::oid AND s.key_column = $2::text"
        );
        let statement =
            open.client.prepare_typed(&sql, &[Type::TEXT, Type::TEXT, Type::TEXT]).await?;
        let row = open.client.query_one(&statement, &[table, column, schema]).await?;
        let number = |place| {
            row.try_get::<_, Option<i64>>(place).map(|number| number.unwrap_or(0).cast_unsigned())
        };
        let (least, incarnation, mark) = (number(0)?, number(1)?, number(2)?);
        // One guard stores it in all rows at once.
        Ok(Some(Stamp { incarnation: if least == incarnation { incarnation } else { 0 }, mark }))
    }

    /// An error that the server reports for a statement means that the statement was rolled back. These do not say so: errors
    /// of the connection (class 08), shutdowns and crashes (57P01 to 57P05), 40003 "completion unknown", and whatever ends the
    /// connection (FATAL, PANIC), since it may arrive while a commit waits for a standby.
    fn outcome(&self, error: &PostgresError) -> Outcome {
        match error {
            PostgresError::Superseded => Outcome::Superseded,
            PostgresError::Postgres(error) => match error.as_db_error() {
                Some(told) => {
                    let code = told.code().code();
                    let doubtful =
                        code.starts_with("08") || code.starts_with("57P") || code == "40003";
                    let ended = told.parsed_severity() != Some(Severity::Error);
                    if doubtful || ended { Outcome::Unknown } else { Outcome::NotDone }
                }
                None => Outcome::Unknown,
            },
            _ => Outcome::NotDone,
        }
    }

    /// From the statistics of the server: rows inserted and updated in the table since this was called first, less all that
    /// this value may have written. It changes when that number has grown, so only if others wrote for certain.
    ///
    /// It changes late: a session reports its counts at most once a second while it is busy, and up to ten seconds after its
    /// last statement, or when it ends. Writes of this value that were refused count as if they had happened, and hide as
    /// many of others. Rows that come with `ATTACH PARTITION` are not counted. `None` if `track_counts` is off.
    async fn foreign_writes(&self) -> Result<Option<u64>> {
        let open = self.any().await?;
        let sql = "SELECT sum(pg_stat_get_tuples_inserted(p.oid) + pg_stat_get_tuples_updated(p.oid))::int8,
               current_setting('track_counts') = 'on'
             FROM (SELECT to_regclass($1)::oid AS oid UNION SELECT relid FROM pg_partition_tree(to_regclass($1))) p";
        let statement = open.client.prepare_typed(sql, &[Type::TEXT]).await?;
        let row = open.client.query_one(&statement, &[&self.sql.table]).await?;
        let (total, counted): (Option<i64>, bool) = (row.try_get(0)?, row.try_get(1)?);
        let (Some(total), true) = (total, counted) else { return Ok(None) };
        // After the statistics were read: they have no row that is not in here.
        let own = i64::try_from(self.own.load(Relaxed)).unwrap_or(i64::MAX);
        let mut foreign = self.foreign.lock().unwrap_or_else(PoisonError::into_inner);
        let foreign = &mut *foreign;
        match &mut foreign.base {
            None => foreign.base = Some((total, total)),
            // The statistics were reset, so nothing is known.
            Some((base, last)) if total < *last => {
                (*base, *last) = (total.saturating_sub(own), total);
                foreign.most = 0;
                foreign.changes += 1;
            }
            Some((base, last)) => {
                *last = total;
                let others = total - *base - own;
                if others > foreign.most {
                    foreign.most = others;
                    foreign.changes += 1;
                }
            }
        }
        Ok(Some(foreign.changes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_whatever_they_are() {
        assert_eq!(quoted("users"), "\"users\"");
        assert_eq!(quoted("a\"; DROP TABLE b; --"), "\"a\"\"; DROP TABLE b; --\"");
    }

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
