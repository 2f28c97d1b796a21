//! A table of PostgreSQL.
//!
//! Look-ups and writes go over a few connections, each of which carries many at once, and which are made anew when
//! they break. A scan has a connection of its own, with a cursor in a transaction that sees one moment.
//!
//! Keys are text, `bytea`, integers or `uuid`; other types have more than one way to write a value, or compare text
//! in ways of their own.
//!
//! With the feature `tls` and `sslmode=require` in the URL connections are encrypted, to a server that has proven its name by a
//! certificate of an authority that this machine trusts (or `SSL_CERT_FILE` names). Without that they are not.

use crate::data_set::{DataSet, Page, Put};
use arc_swap::ArcSwapOption;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, NoTls, Row, Statement};

/// A data set in a table of PostgreSQL.
#[derive(Debug)]
pub struct Postgres {
    config: Config,
    slots: Vec<Slot>,
    next: AtomicUsize,
    keys: Keys,
    values: Values,
    sql: Sql,
    lingering: Duration,
}

/// Why PostgreSQL did not answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum PostgresError {
    /// What the server or the connection says.
    Postgres(tokio_postgres::Error),
    /// There can be no encrypted connections.
    #[cfg(feature = "tls")]
    Tls(rustls::Error),
    /// There is no such table or column.
    Missing {
        /// Which one.
        what: String,
    },
    /// The column has keys that cannot be compared as bytes.
    KeyType {
        /// Its type.
        name: String,
    },
    /// These bytes can be no key, or no value, of the column.
    Unfit,
    /// Others insert and delete the key all the time.
    Contended,
}

impl fmt::Display for PostgresError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Postgres(error) => match error.as_db_error() {
                Some(error) => error.fmt(f),
                None => error.fmt(f),
            },
            #[cfg(feature = "tls")]
            Self::Tls(error) => error.fmt(f),
            Self::Missing { what } => write!(f, "there is no {what}"),
            Self::KeyType { name } => write!(
                f,
                "keys are text or varchar with a deterministic collation, bytea, integers or uuid, and not {name}"
            ),
            Self::Unfit => f.write_str("the column cannot have these bytes"),
            Self::Contended => f.write_str("others insert and delete this key all the time"),
        }
    }
}

impl std::error::Error for PostgresError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Postgres(error) => Some(error),
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
    insert: String,
    update: String,
    delete: String,
    cursor: String,
    after: String,
    count: String,
    table: String,
}

/// A connection, and what it was told already.
#[derive(Debug)]
struct Open {
    client: Client,
    get: Statement,
    insert: Statement,
    update: Statement,
    delete: Statement,
}

#[derive(Debug, Default)]
struct Slot {
    open: ArcSwapOption<Open>,
    opening: tokio::sync::Mutex<()>,
}

/// Connections for look-ups and writes.
const CONNECTIONS: usize = 4;
/// How often a row is put that others delete meanwhile.
const TRIES: usize = 16;
/// The name of a cursor.
const CURSOR: &str = "umbel_guard_scan";
/// How long a statement may take, also when whoever sent it is gone.
const LINGERING: Duration = Duration::from_secs(5);

/// A name as SQL takes it, whatever it is made of.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A connection, which lives as long as its client.
async fn connect(config: &Config) -> Result<Client> {
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
    /// [`PostgresError`] if the server cannot be reached, there is no such column, or its keys cannot be compared
    /// as bytes.
    pub async fn connect(url: &str, table: &str, key: &str, value: &str) -> Result<Self> {
        let config: Config = url.parse()?;
        let client = connect(&config).await?;
        let name = match table.split_once('.') {
            Some((schema, table)) => format!("{}.{}", quoted(schema), quoted(table)),
            None => quoted(table),
        };
        let (key_type, deterministic) = column(&client, &name, key).await?;
        let keys = match &*key_type {
            "text" | "character varying" if deterministic => Keys::Text,
            "bytea" => Keys::Bytes,
            "smallint" => Keys::Integers(2),
            "integer" => Keys::Integers(4),
            "bigint" => Keys::Integers(8),
            "uuid" => Keys::Uuids,
            _ => return Err(PostgresError::KeyType { name: key_type }),
        };
        let (value_type, _) = column(&client, &name, value).await?;
        let values =
            if value_type == "bytea" { Values::Bytes } else { Values::Written(value_type) };
        let sql = sql(&name, &quoted(key), &quoted(value), keys, &values);
        let slots = (0..CONNECTIONS).map(|_| Slot::default()).collect();
        Ok(Self {
            config,
            slots,
            next: AtomicUsize::new(0),
            keys,
            values,
            sql,
            lingering: LINGERING,
        })
    }

    /// The longest time that a statement may take; 5 seconds unless it is said here. A guard that is started waits
    /// so long before its first scan, since the one before it may have left a statement behind.
    #[must_use]
    pub fn statement_timeout(mut self, time: Duration) -> Self {
        self.lingering = time.max(Duration::from_millis(1));
        self
    }

    async fn open(&self) -> Result<Open> {
        let client = connect(&self.config).await?;
        let limit = format!("SET statement_timeout = {}", self.lingering.as_millis());
        client.batch_execute(&limit).await?;
        let key = if self.keys == Keys::Bytes { Type::BYTEA } else { Type::TEXT };
        let value = if self.values == Values::Bytes { Type::BYTEA } else { Type::TEXT };
        let one = [key.clone()];
        let both = [key, value];
        Ok(Open {
            get: client.prepare_typed(&self.sql.get, &one).await?,
            insert: client.prepare_typed(&self.sql.insert, &both).await?,
            update: client.prepare_typed(&self.sql.update, &both).await?,
            delete: client.prepare_typed(&self.sql.delete, &one).await?,
            client,
        })
    }

    /// A connection, in turns.
    async fn any(&self) -> Result<Arc<Open>> {
        let slot = &self.slots[self.next.fetch_add(1, Relaxed) % self.slots.len()];
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
            let open = Arc::new(self.open().await?);
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
}

/// Text that the server can have.
fn text(bytes: &[u8]) -> Option<Cow<'_, str>> {
    let text = std::str::from_utf8(bytes).ok()?;
    (!text.contains('\0')).then_some(Cow::Borrowed(text))
}

/// The type of a column, and whether equal text has equal bytes in it.
async fn column(client: &Client, table: &str, column: &str) -> Result<(String, bool)> {
    let sql = "SELECT format_type(a.atttypid, NULL), coalesce(c.collisdeterministic, true)
         FROM pg_attribute a LEFT JOIN pg_collation c ON c.oid = a.attcollation
         WHERE a.attrelid = to_regclass($1) AND a.attname = $2::text AND a.attnum > 0 AND NOT a.attisdropped";
    let statement = client.prepare_typed(sql, &[Type::TEXT, Type::TEXT]).await?;
    let row = client.query_opt(&statement, &[&table, &column]).await?;
    let row =
        row.ok_or_else(|| PostgresError::Missing { what: format!("column {column} of {table}") })?;
    Ok((row.try_get(0)?, row.try_get(1)?))
}

fn sql(table: &str, key: &str, value: &str, keys: Keys, values: &Values) -> Sql {
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
    Sql {
        get: format!("SELECT {read} FROM {table} WHERE {key} = {asked} LIMIT 1"),
        insert: format!(
            "INSERT INTO {table} ({key}, {value}) VALUES ({asked}, {given}) ON CONFLICT DO NOTHING"
        ),
        update: format!("UPDATE {table} SET {value} = {given} WHERE {key} = {asked}"),
        delete: format!("DELETE FROM {table} WHERE {key} = {asked}"),
        cursor: format!(
            "DECLARE {CURSOR} NO SCROLL CURSOR FOR SELECT {written} FROM {table} WHERE {key} IS NOT NULL"
        ),
        after: format!("SELECT {written} FROM {table} WHERE {key} > {asked} ORDER BY {key} LIMIT "),
        count: format!("SELECT count({key}) FROM {table}"),
        table: table.to_owned(),
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
        let key = self.keys.param(key).ok_or(PostgresError::Unfit)?;
        let value = self.value_param(value)?;
        let (params, open) = ([key.get(), value.get()], self.any().await?);
        for _ in 0..TRIES {
            if open.client.execute(&open.insert, &params).await? > 0 {
                return Ok(Put::New);
            }
            if open.client.execute(&open.update, &params).await? > 0 {
                return Ok(Put::Replaced);
            }
        }
        Err(PostgresError::Contended)
    }

    async fn delete(&self, key: &[u8]) -> Result<bool> {
        let Some(key) = self.keys.param(key) else { return Ok(false) };
        let open = self.any().await?;
        Ok(open.client.execute(&open.delete, &[key.get()]).await? > 0)
    }

    async fn scan(&self, after: Option<&[u8]>) -> Result<PostgresScan> {
        if let Some(key) = after {
            return Ok(PostgresScan(Scanning::After(key.to_vec())));
        }
        let client = connect(&self.config).await?;
        // A transaction sees the moment of its first statement: the cursor.
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        client.batch_execute(&format!("{begin}; {}", self.sql.cursor)).await?;
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

    /// The cluster, its timeline, which changes when it is restored, and the table.
    async fn identity(&self) -> Result<Vec<u8>> {
        let open = self.any().await?;
        let sql = "SELECT concat_ws(' ', s.system_identifier, c.timeline_id, to_regclass($1)::oid)
             FROM pg_control_system() s, pg_control_checkpoint() c";
        let statement = open.client.prepare_typed(sql, &[Type::TEXT]).await?;
        let name: String =
            open.client.query_one(&statement, &[&self.sql.table]).await?.try_get(0)?;
        Ok(format!("postgres {name} {}", self.sql.table).into_bytes())
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
