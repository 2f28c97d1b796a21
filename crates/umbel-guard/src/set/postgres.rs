//! A table of PostgreSQL.

mod connection;
mod error;
mod key;
mod sql;
mod stamp;
mod table;
mod url;
mod write;

pub use error::PostgresError;

use super::identifier::quoted;
use crate::data_set::{Claim, DataSet, Outcome, Page, Put, Refusal, Stamp};
use arc_swap::ArcSwapOption;
use connection::{Open, Slot, connect};
use error::Result;
use key::{Keys, Values, bytes_of, number, uuid};
use sql::{CURSOR, Sql, sql};
use stamp::Stamping;
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use table::{Column, Table};
use tokio_postgres::error::{Severity, SqlState};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Config, Statement};

/// A data set in a table of PostgreSQL.
///
/// Look-ups and writes use a small pool of connections. Many tasks share them, and a broken connection is
/// opened again. A scan uses a separate connection, with a cursor in a transaction that sees one moment.
///
/// **What is created in the database:** in the schema of the guarded table, the table `umbel_guard` and five
/// sequences `umbel_guard_…` per guarded table and key column, when a guard starts. They keep its [`Stamp`]: the table has
/// the incarnation, in one row per connection, and the sequences have the marks. A write locks the row of its
/// connection and sets its sequence, so concurrent writes do not wait for each other and leave no dead rows behind.
/// If the user may not create them, there is no stamp, and a filter is built at every start. `DROP TABLE umbel_guard`
/// removes all of them.
///
/// **What is required:** an ordinary or partitioned table without rules, without row security for this user and
/// without inheriting tables. The key column is `text` or `varchar` with a deterministic collation, `bytea`, an
/// integer or `uuid`. It is `NOT NULL` and not generated. It has its own primary key or unique index that is
/// valid, immediate, not partial and not on an expression. [`Postgres::connect`] refuses anything else, and its
/// error has the statement to run where there is one.
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
/// With the feature `tls` and `sslmode=require` in the URL, connections are encrypted. The server must present
/// a certificate for its name from an authority that this machine trusts (or that `SSL_CERT_FILE` names).
#[derive(Debug)]
pub struct Postgres {
    config: Config,
    slots: Vec<Slot>,
    next: AtomicUsize,
    /// The connection for writes that are verified before the commit.
    careful: tokio::sync::Mutex<Option<Open>>,
    /// Whether the table has triggers that run after a write.
    has_after_triggers: AtomicBool,
    keys: Keys,
    values: Values,
    sql: Sql,
    /// What stamped writes need, once a guard has begun.
    stamping: ArcSwapOption<Stamping>,
    /// The number of rows that this value may have written.
    own: AtomicU64,
    /// The number of connections that were replaced. A server that recovers from a crash closes all of them,
    /// and loses its statistics.
    replaced: AtomicU64,
    foreign: Mutex<Foreign>,
    lingering: Duration,
    /// Whether the set stores no stamp, although it could.
    unstamped: bool,
}

/// The state of the detection of foreign writes.
#[derive(Debug, Default)]
struct Foreign {
    /// What identifies the statistics, at the last reading: a hash of the numbers of the table and its
    /// partitions, of the start of the server, and of the last reset of its statistics. And the number of
    /// connections that were lost before.
    counted: Option<(Option<i64>, u64)>,
    /// All rows written, according to the statistics, at the first and the last reading.
    base: Option<(i64, i64)>,
    /// The largest number of rows so far that other programs have certainly written.
    most: i64,
    /// How often that number has grown.
    changes: u64,
}

/// The number of pooled connections for look-ups and writes. Each has its own row in the table of stamps, as
/// has the connection for verified writes.
const CONNECTIONS: usize = 4;
/// How long a statement may take, even if the process that sent it has ended.
const LINGERING: Duration = Duration::from_secs(5);

impl Postgres {
    /// Opens a table of the database at `url`, such as `postgres://user@localhost/shop` or
    /// `host=/run/postgresql`, with the columns of keys and values. `table` may be qualified with a schema,
    /// before a dot.
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
            replaced: AtomicU64::new(0),
            foreign: Mutex::default(),
            lingering: LINGERING,
            unstamped: false,
        };
        set.identity_of(&client).await?;
        Ok(set)
    }

    /// The longest time that a statement may take. The default is 5 seconds. A guard waits this long at its
    /// start before its first scan, because the guard before it may have left a statement running.
    #[must_use]
    pub fn statement_timeout(mut self, time: Duration) -> Self {
        self.lingering = time.max(Duration::from_millis(1));
        self
    }

    /// Creates nothing in the database. There is then no [`Stamp`], so a guard builds its filter at every
    /// start, and does not notice when another guard is started in front of the same table.
    ///
    /// If the table `umbel_guard` already has a stamp of this table, guards do not start: the guard that left
    /// the stamp would not notice writes without a stamp.
    #[must_use]
    pub fn without_stamp(mut self) -> Self {
        self.unstamped = true;
        self
    }

    /// The identity of the set, as this connection sees it. Also checks whether the table has triggers that run
    /// after a write.
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
             WHERE d.datname = current_database() AND c.oid = to_regclass($1) AND c.relkind IN ('r', 'p')
               AND a.attname = $2::text AND a.attnum > 0 AND NOT a.attisdropped";
        let statement = client.prepare_typed(sql, &[Type::TEXT, Type::TEXT]).await?;
        let row = client.query_opt(&statement, &[&self.sql.table, &self.sql.column]).await?;
        let what = || format!("table {} with a column {}", self.sql.table, self.sql.column);
        let row = row.ok_or_else(|| PostgresError::Missing { what: what() })?;
        let timeline: Option<String> = row.try_get(0)?;
        let timeline = timeline.ok_or(PostgresError::Standby)?;
        let name: String = row.try_get(1)?;
        self.has_after_triggers.store(row.try_get(2)?, Relaxed);
        Ok(format!("postgres 2 {timeline} {name} {}", self.sql.table))
    }
}

/// A scan of a [`Postgres`], which sees one moment.
#[derive(Debug)]
pub struct PostgresScan(Scanning);

#[derive(Debug)]
enum Scanning {
    /// All keys, by a cursor; and the prepared `FETCH` with its page size.
    All(Client, Option<(usize, Statement)>),
    /// The keys after this one.
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
        // A transaction sees the moment of its first statement: the cursor. The transaction is not declared
        // read-only, because a pooler may send a read-only transaction to a standby.
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

    /// Integers in decimal, without leading zeros or a redundant sign. UUIDs in lower case with hyphens.
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
                // After a failover each pooled connection may fail once.
                Err(PostgresError::Postgres(error)) if error.is_closed() && tries > 0 => tries -= 1,
                identity => return Ok(identity?.into_bytes()),
            }
        }
    }

    async fn put_marked(&self, key: &[u8], value: &[u8], claim: Claim) -> Result<Put> {
        self.insert(key, value, Some(claim)).await
    }

    async fn delete_marked(&self, key: &[u8], claim: Claim) -> Result<bool> {
        self.remove(key, Some(claim)).await
    }

    /// Also waits until all statements of the previous guard have ended. Returns `false` if this user may not
    /// create or change the table `umbel_guard`, or may only read.
    async fn begin(&self, incarnation: u64) -> Result<bool> {
        let mut client = connect(&self.config).await?;
        if self.unstamped {
            return match self.has_stamp(&client).await? {
                true => Err(PostgresError::Stamped { table: self.sql.stamps.clone() }),
                false => Ok(false),
            };
        }
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
                    // A guard that trusts its files by the stamp would not notice writes without a stamp.
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
            "SELECT min(incarnation), max(incarnation),
                    max(CASE WHEN readable THEN pg_sequence_last_value(sequence) END), bool_and(readable)
             FROM (SELECT incarnation, sequence, has_sequence_privilege(sequence::oid, 'SELECT, USAGE') AS readable
               FROM (SELECT s.incarnation, to_regclass(
                       concat($3::text, '.umbel_guard_', s.relation, '_', a.attnum, '_', s.slot)) AS sequence
                 FROM {stamps} s JOIN pg_attribute a ON a.attrelid = s.relation AND a.attname = s.key_column
                 WHERE s.relation = to_regclass($1)::oid AND s.key_column = $2::text) named) marks"
        );
        let statement =
            open.client.prepare_typed(&sql, &[Type::TEXT, Type::TEXT, Type::TEXT]).await?;
        let row = open.client.query_one(&statement, &[table, column, schema]).await?;
        if row.try_get::<_, Option<bool>>(3)? == Some(false) {
            // Without the marks, a filter that is older than the data would be accepted.
            return Ok(None);
        }
        let number = |place| {
            row.try_get::<_, Option<i64>>(place).map(|number| number.unwrap_or(0).cast_unsigned())
        };
        let (least, incarnation, mark) = (number(0)?, number(1)?, number(2)?);
        // A guard stores its incarnation in all rows at once.
        Ok(Some(Stamp { incarnation: if least == incarnation { incarnation } else { 0 }, mark }))
    }

    /// An error that the server reports for a statement means that the statement was rolled back. The
    /// exceptions are errors of the connection (class 08), shutdowns and crashes (57P01 to 57P05), 40003
    /// "completion unknown", and every error that ends the connection (FATAL, PANIC), because it may arrive
    /// while a commit waits for a standby.
    fn outcome(&self, error: &PostgresError) -> Outcome {
        match error {
            PostgresError::Superseded | PostgresError::Missing { .. } => Outcome::Superseded,
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

    fn refusal(&self, error: &PostgresError) -> Option<Refusal> {
        match error {
            PostgresError::Conflict { .. }
            | PostgresError::NotDeleted
            | PostgresError::Contended => Some(Refusal::Conflict),
            PostgresError::Unfit | PostgresError::KeyChanged { .. } => Some(Refusal::Unfit),
            PostgresError::Postgres(error) => {
                let code = error.as_db_error()?.code();
                let of_rows = [
                    SqlState::UNIQUE_VIOLATION,
                    SqlState::EXCLUSION_VIOLATION,
                    SqlState::FOREIGN_KEY_VIOLATION,
                    SqlState::RESTRICT_VIOLATION,
                ];
                // 22: a value that its type cannot have. 23: a constraint. P0001: a trigger refused it.
                let unfit = ["22", "23"].iter().any(|class| code.code().starts_with(class))
                    || code == &SqlState::RAISE_EXCEPTION;
                match of_rows.contains(code) {
                    true => Some(Refusal::Conflict),
                    false => unfit.then_some(Refusal::Unfit),
                }
            }
            _ => None,
        }
    }

    /// Computed from the statistics of the server: rows inserted and updated in the table since the first call,
    /// minus all rows that this value may have written. The result changes when that number has grown, which
    /// only other writers can cause.
    ///
    /// The result changes late. A session reports its counts at most once a second while it is busy, and up to
    /// ten seconds after its last statement, or when it ends. A write of this value that a unique index, a
    /// foreign key or a trigger refused counts as if it had happened, and hides one foreign write. Rows that
    /// `ATTACH PARTITION` adds are not counted. `None` if `track_counts` is off.
    async fn foreign_writes(&self) -> Result<Option<u64>> {
        let open = self.any().await?;
        let sql = "SELECT sum(pg_stat_get_tuples_inserted(p.oid) + pg_stat_get_tuples_updated(p.oid))::int8,
               current_setting('track_counts') = 'on',
               hashtextextended(concat_ws(' ', string_agg(p.oid::text, ' ' ORDER BY p.oid), pg_postmaster_start_time(),
                 (SELECT stats_reset FROM pg_stat_database WHERE datname = current_database())), 0)
             FROM (SELECT to_regclass($1)::oid AS oid UNION SELECT relid FROM pg_partition_tree(to_regclass($1))) p";
        let statement = open.client.prepare_typed(sql, &[Type::TEXT]).await?;
        let row = open.client.query_one(&statement, &[&self.sql.table]).await?;
        let (total, is_counting): (Option<i64>, bool) = (row.try_get(0)?, row.try_get(1)?);
        let (Some(total), true) = (total, is_counting) else { return Ok(None) };
        let counted = Some((row.try_get(2)?, self.replaced.load(Relaxed)));
        // Read after the statistics, so that every own row in the statistics is included.
        let own = i64::try_from(self.own.load(Relaxed)).unwrap_or(i64::MAX);
        let mut foreign = self.foreign.lock().unwrap_or_else(PoisonError::into_inner);
        let foreign = &mut *foreign;
        if std::mem::replace(&mut foreign.counted, counted) != counted && foreign.base.is_some() {
            // The statistics of an attached partition may not count its rows, and statistics that were reset
            // count no earlier row.
            foreign.changes += 1;
        }
        match &mut foreign.base {
            None => foreign.base = Some((total, total)),
            // The statistics were reset, so foreign writes cannot be excluded.
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
