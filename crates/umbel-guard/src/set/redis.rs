//! A hash of Redis or Valkey, or all string keys with a prefix.

use crate::data_set::{DataSet, Outcome, Page, Put, Stamp};
use redis::aio::{ConnectionLike, ConnectionManager, MultiplexedConnection};
use redis::{AsyncConnectionConfig, Client, ErrorKind, FromRedisValue, Value, cmd, pipe};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A data set in Redis or Valkey.
///
/// Redis has no snapshots. A scan sees every key that is there from its beginning to its end, and perhaps others. That is
/// enough, since a key that is written meanwhile goes to the filter too. Keys that expire or are evicted are false positives
/// from then on.
///
/// **What is created on the server:** one key, `umbel-guard:stamp:…`, when a guard starts. It is a hash with the [`Stamp`] of
/// the guard. Keys that begin with `umbel-guard:stamp:` are never part of a data set: scans and counts skip
/// them, look-ups do not find them, and puts are refused. If the user may not create the key or run scripts, there is
/// no stamp, and a filter is built at every start.
///
/// **What is required:** a primary server. A replica is refused ([`RedisError::Replica`]), and so is a prefix on a node of a
/// cluster ([`RedisError::Cluster`]), since a node sees only its own part of the keys. A hash is on one node, and can be
/// guarded there.
///
/// **Scans** have a connection of their own, which is not opened again when it breaks. Every page also asks for the run id of the
/// server: after a restart the cursor of a scan means nothing, so the scan fails with [`RedisError::Restarted`].
///
/// **Durability:** a server that restarts has another [identity](DataSet::identity), so a saved filter is not used, whatever
/// the server has lost. **Other writers** are not noticed, other than by the audit.
#[derive(Clone, Debug)]
pub struct Redis {
    client: Client,
    connection: Manager,
    place: Place,
    /// The key of the stamp.
    stamp: Arc<[u8]>,
    stamps: Arc<Stamps>,
}

/// What is known of the key of the stamp.
#[derive(Debug, Default)]
struct Stamps {
    /// A guard has begun, so the key is there.
    begun: AtomicBool,
    /// How often it was lost since: by eviction, or by FLUSHALL.
    losses: AtomicU64,
    /// By which the server knows the scripts for puts and deletes.
    hashes: OnceLock<[String; 2]>,
}

/// A connection that is opened again when it breaks.
#[derive(Clone)]
struct Manager(ConnectionManager);

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConnectionManager")
    }
}

#[derive(Clone, Debug)]
enum Place {
    Hash(Vec<u8>),
    Prefix(Vec<u8>),
}

/// Why Redis did not answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum RedisError {
    /// What the server or the connection says.
    Redis(redis::RedisError),
    /// The server is a replica, which may lag behind its primary.
    Replica,
    /// The server is a node of a cluster, and has only some of the keys with a prefix.
    Cluster,
    /// Another server answers than before: it was restarted, or replaced.
    Restarted {
        /// The run id that was there before.
        expected: String,
        /// The run id that is there now.
        found: String,
    },
    /// Keys with this name belong to the guard.
    Reserved {
        /// The name of the key.
        name: String,
    },
    /// The key of the server has another type. Nothing was written.
    WrongType {
        /// The type that it must have.
        expected: &'static str,
        /// The type that it has.
        found: String,
    },
    /// Another guard was started in front of this data set, or its stamp was lost. Nothing was written.
    Superseded,
}

impl fmt::Display for RedisError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Redis(error) => error.fmt(f),
            Self::Replica => {
                f.write_str("expected a primary server, found a replica; connect to its primary")
            }
            Self::Cluster => f.write_str(
                "expected a server that has all keys, found a node of a cluster; guard a hash, which is on one node",
            ),
            Self::Restarted { expected, found } => write!(
                f,
                "the server was restarted or replaced during the scan: expected run id {expected}, found {found}; scan again"
            ),
            Self::Reserved { name } => write!(
                f,
                "expected a key of the data set, got {name:?}, which begins with {RESERVED:?} and is kept for the guard; \
                 choose another name"
            ),
            Self::WrongType { expected, found } => {
                write!(f, "expected a {expected} or no key, found a {found}; nothing was written")
            }
            Self::Superseded => f.write_str(
                "another guard was started in front of this data set, or its stamp was lost; stop one of the two",
            ),
        }
    }
}

impl std::error::Error for RedisError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Redis(error) => Some(error),
            _ => None,
        }
    }
}

impl From<redis::RedisError> for RedisError {
    fn from(error: redis::RedisError) -> Self {
        Self::Redis(error)
    }
}

type Result<T> = std::result::Result<T, RedisError>;

/// A scan of a [`Redis`].
#[derive(Debug)]
pub struct RedisScan(Scanning);

enum Scanning {
    All {
        /// Not opened again when it breaks.
        connection: MultiplexedConnection,
        /// The server that the scan began on.
        run: String,
        cursor: u64,
    },
    /// Some keys anywhere, for the audit.
    Anywhere,
}

impl fmt::Debug for Scanning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All { run, cursor, .. } => f
                .debug_struct("All")
                .field("run", run)
                .field("cursor", cursor)
                .finish_non_exhaustive(),
            Self::Anywhere => f.write_str("Anywhere"),
        }
    }
}

/// How long a scan waits for a reply. The guard has a time-out of its own.
const PATIENCE: Duration = Duration::from_secs(30);
/// What keys of the guard begin with.
const RESERVED: &str = "umbel-guard:stamp:";

/// Checks the incarnation, looks at the key, raises the mark, then changes the key. The change is the last command: if the
/// script fails, the key was not changed. Numbers have twenty digits, since Lua has no integers of 64 bits. Errors are
/// returned and not raised, so that all servers reply with their codes.
const STAMPED: &str = "\
local now = redis.call('HMGET', KEYS[1], 'incarnation', 'mark') \
if now[1] ~= ARGV[1] then return 'superseded' end \
local kind = redis.call('TYPE', KEYS[2]).ok \
if kind ~= 'none' and kind ~= ARGV[3] then return kind end \
if not now[2] or now[2] < ARGV[2] then \
  local raised = redis.pcall('HSET', KEYS[1], 'mark', ARGV[2]) \
  if type(raised) == 'table' and raised.err then return raised end \
end ";

impl Place {
    /// What a put does at the end of a script. It returns 1 if the key is new.
    const fn put(&self) -> &'static str {
        match self {
            Self::Hash(_) => "return redis.pcall('HSET', KEYS[2], ARGV[4], ARGV[5])",
            Self::Prefix(_) => {
                "local done = redis.pcall('SET', KEYS[2], ARGV[5]) \
                 if done.err then return done end \
                 return kind == 'none' and 1 or 0"
            }
        }
    }

    /// What a delete does at the end of a script. It returns 1 if the key was there.
    const fn delete(&self) -> &'static str {
        match self {
            Self::Hash(_) => "return redis.pcall('HDEL', KEYS[2], ARGV[4])",
            Self::Prefix(_) => "return redis.pcall('DEL', KEYS[2])",
        }
    }

    /// What a key of the server must be.
    const fn kind(&self) -> &'static str {
        match self {
            Self::Hash(_) => "hash",
            Self::Prefix(_) => "string",
        }
    }

    /// The key of the stamp. The one of a hash is in the same slot of a cluster.
    fn stamp(&self) -> Vec<u8> {
        let (tag, kind, name) = match self {
            Self::Hash(name) => (tag(name).unwrap_or_default(), "hash", name),
            Self::Prefix(prefix) => (&[][..], "prefix", prefix),
        };
        [RESERVED.as_bytes(), b"{", tag, b"}:", kind.as_bytes(), b":", name].concat()
    }
}

/// What decides on the slot of a key, if another key can have the same.
fn tag(name: &[u8]) -> Option<&[u8]> {
    if let Some(open) = name.iter().position(|byte| *byte == b'{') {
        let inner = &name[open + 1..];
        if let Some(length @ 1..) = inner.iter().position(|byte| *byte == b'}') {
            return Some(&inner[..length]);
        }
    }
    (!name.contains(&b'}')).then_some(name)
}

/// A line of INFO.
fn line<'a>(info: &'a str, name: &str) -> &'a str {
    let value = |line: &'a str| line.strip_prefix(name)?.strip_prefix(':');
    info.lines().find_map(value).unwrap_or_default()
}

async fn info(connection: &mut impl ConnectionLike, section: &str) -> Result<String> {
    let mut ask = cmd("INFO");
    ask.arg(section);
    Ok(ask.query_async(connection).await?)
}

fn is_primary(replication: &str) -> Result<()> {
    if line(replication, "role") == "master" { Ok(()) } else { Err(RedisError::Replica) }
}

/// Whether the user may not do it.
fn is_denied(error: &RedisError) -> bool {
    matches!(error, RedisError::Redis(error) if error.code() == Some("NOPERM"))
}

impl Redis {
    /// The fields of the hash `name`.
    ///
    /// # Errors
    ///
    /// [`RedisError`] if the server cannot be reached or is a replica.
    pub async fn hash(url: &str, name: &str) -> Result<Self> {
        Self::with(url, Place::Hash(name.as_bytes().to_vec())).await
    }

    /// All strings whose key begins with `prefix`. Keys of the data set are without it.
    ///
    /// # Errors
    ///
    /// [`RedisError`] if the server cannot be reached, is a replica, or is a node of a cluster.
    pub async fn prefix(url: &str, prefix: &str) -> Result<Self> {
        Self::with(url, Place::Prefix(prefix.as_bytes().to_vec())).await
    }

    async fn with(url: &str, place: Place) -> Result<Self> {
        let (Place::Hash(name) | Place::Prefix(name)) = &place;
        if name.starts_with(RESERVED.as_bytes()) {
            return Err(RedisError::Reserved { name: String::from_utf8_lossy(name).into_owned() });
        }
        let client = Client::open(url)?;
        let mut connection = ConnectionManager::new(client.clone()).await?;
        is_primary(&info(&mut connection, "replication").await?)?;
        if matches!(place, Place::Prefix(_)) && Self::in_cluster(&mut connection).await? {
            return Err(RedisError::Cluster);
        }
        let (stamp, stamps) = (place.stamp().into(), Arc::default());
        Ok(Self { client, connection: Manager(connection), place, stamp, stamps })
    }

    async fn in_cluster(connection: &mut impl ConnectionLike) -> Result<bool> {
        Ok(line(&info(connection, "cluster").await?, "cluster_enabled") == "1")
    }

    fn connection(&self) -> ConnectionManager {
        self.connection.0.clone()
    }

    /// The key of the server for a key of the set, unless that belongs to the guard.
    fn name_of(&self, key: &[u8]) -> Result<Vec<u8>> {
        match &self.place {
            Place::Hash(name) => Ok(name.clone()),
            Place::Prefix(prefix) => {
                let name = [prefix, key].concat();
                if name.starts_with(RESERVED.as_bytes()) {
                    let name = String::from_utf8_lossy(&name).into_owned();
                    return Err(RedisError::Reserved { name });
                }
                Ok(name)
            }
        }
    }

    /// The key of the set for a key of the server, if it is one.
    fn key_of<'k>(prefix: &[u8], name: &'k [u8]) -> Option<&'k [u8]> {
        name.strip_prefix(prefix).filter(|_| !name.starts_with(RESERVED.as_bytes()))
    }

    /// Some keys, and where to go on; 0 at the end. Fails if it is not the server with this run id.
    async fn step(
        &self,
        connection: &mut MultiplexedConnection,
        run: &str,
        cursor: u64,
        limit: usize,
        page: &mut Page,
    ) -> Result<u64> {
        let mut ask = match &self.place {
            Place::Hash(name) => {
                let mut ask = cmd("HSCAN");
                ask.arg(name).arg(cursor);
                ask
            }
            Place::Prefix(prefix) => {
                let mut ask = cmd("SCAN");
                ask.arg(cursor).arg("MATCH").arg(pattern(prefix));
                ask
            }
        };
        ask.arg("COUNT").arg(limit.max(1));
        let mut identify = cmd("INFO");
        identify.arg("server");
        // As one transaction, so that one server answers both.
        let mut both = pipe();
        both.atomic().add_command(ask).add_command(identify);
        let ((next, keys), info): ((u64, Vec<Vec<u8>>), String) =
            both.query_async(connection).await?;
        is_same(run, line(&info, "run_id"))?;
        match &self.place {
            Place::Hash(_) => keys.iter().step_by(2).for_each(|key| page.push(key)),
            Place::Prefix(prefix) => {
                let keys = keys.iter().filter_map(|name| Self::key_of(prefix, name));
                keys.for_each(|key| page.push(key));
            }
        }
        Ok(next)
    }

    /// Some keys, chosen by the server.
    async fn some(&self, limit: usize) -> Result<Page> {
        let mut page = Page::new();
        let mut connection = self.connection();
        match &self.place {
            Place::Hash(name) => {
                let mut ask = cmd("HRANDFIELD");
                ask.arg(name).arg(limit);
                let keys: Vec<Vec<u8>> = ask.query_async(&mut connection).await?;
                keys.iter().for_each(|key| page.push(key));
            }
            Place::Prefix(prefix) => {
                for _ in 0..limit {
                    let name: Option<Vec<u8>> =
                        cmd("RANDOMKEY").query_async(&mut connection).await?;
                    let Some(name) = name else { break };
                    if let Some(key) = Self::key_of(prefix, &name) {
                        page.push(key);
                    }
                }
            }
        }
        Ok(page.last())
    }

    /// Sends a write without a stamp. A key of another type is not touched.
    async fn plain<T: FromRedisValue>(
        &self,
        [hash, string]: [&str; 2],
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<T> {
        let is_hash = matches!(self.place, Place::Hash(_));
        let mut ask = cmd(if is_hash { hash } else { string });
        ask.arg(self.name_of(key)?);
        if is_hash {
            ask.arg(key);
        }
        if let Some(value) = value {
            ask.arg(value);
            if !is_hash {
                ask.arg("GET");
            }
        }
        Ok(ask.query_async(&mut self.connection()).await?)
    }

    /// Runs a script that writes with a stamp, and returns what its last command did.
    async fn stamped(
        &self,
        change: &str,
        incarnation: &str,
        mark: u64,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        let (name, text) = (self.name_of(key)?, format!("{STAMPED}{change}"));
        let mut connection = self.connection();
        let mut ask = async |command: &str, script: &str| -> redis::RedisResult<Value> {
            let mut ask = cmd(command);
            ask.arg(script).arg(2).arg(&*self.stamp).arg(&name);
            ask.arg(incarnation).arg(format!("{mark:020}")).arg(self.place.kind());
            ask.arg(key).arg(value);
            ask.query_async(&mut connection).await
        };
        let number = usize::from(change == self.place.delete());
        let known = match self.stamps.hashes.get() {
            Some(hashes) => Some(ask("EVALSHA", &hashes[number]).await),
            None => None,
        };
        let unknown = |error: &redis::RedisError| error.code() == Some("NOSCRIPT");
        let reply = match known {
            Some(reply) if !reply.as_ref().is_err_and(unknown) => reply,
            // Sent whole, the server knows it from then on.
            _ => ask("EVAL", &text).await,
        };
        match reply? {
            Value::Int(done) => Ok(done > 0),
            other => match &*String::from_redis_value(other).map_err(redis::RedisError::from)? {
                "superseded" => Err(RedisError::Superseded),
                found => Err(RedisError::WrongType {
                    expected: self.place.kind(),
                    found: found.to_owned(),
                }),
            },
        }
    }

    /// Asks the server for the hashes of the scripts. Without them they are sent whole.
    async fn load_scripts(&self, connection: &mut impl ConnectionLike) {
        let mut both = pipe();
        for change in [self.place.put(), self.place.delete()] {
            both.cmd("SCRIPT").arg("LOAD").arg(format!("{STAMPED}{change}"));
        }
        if let Ok(hashes) = both.query_async(connection).await {
            self.stamps.hashes.get_or_init(|| hashes);
        }
    }

    /// The server that a connection reaches.
    async fn run_id(connection: &mut impl ConnectionLike) -> Result<String> {
        Ok(line(&info(connection, "server").await?, "run_id").to_owned())
    }
}

/// Fails if another server answers.
fn is_same(expected: &str, found: &str) -> Result<()> {
    if expected == found && !found.is_empty() {
        return Ok(());
    }
    Err(RedisError::Restarted { expected: expected.to_owned(), found: found.to_owned() })
}

/// A pattern for keys with this prefix.
fn pattern(prefix: &[u8]) -> Vec<u8> {
    let mut pattern = Vec::with_capacity(prefix.len() + 1);
    for byte in prefix {
        if b"*?[]^-\\".contains(byte) {
            pattern.push(b'\\');
        }
        pattern.push(*byte);
    }
    pattern.push(b'*');
    pattern
}

impl DataSet for Redis {
    type Error = RedisError;
    type Scan = RedisScan;

    const SNAPSHOT: bool = false;

    async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.plain(["HGET", "GET"], key, None).await {
            Err(RedisError::Reserved { .. }) => Ok(None),
            got => got,
        }
    }

    async fn put(&self, key: &[u8], value: &[u8]) -> Result<Put> {
        let reply: Value = self.plain(["HSET", "SET"], key, Some(value)).await?;
        // The number of new fields, or the old value.
        let new = matches!(reply, Value::Nil | Value::Int(1));
        Ok(if new { Put::New } else { Put::Replaced })
    }

    async fn delete(&self, key: &[u8]) -> Result<bool> {
        let reply: Result<Value> = self.plain(["HDEL", "GETDEL"], key, None).await;
        match reply {
            // The number of fields, or the old value.
            Ok(reply) => Ok(!matches!(reply, Value::Nil | Value::Int(0))),
            Err(RedisError::Reserved { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn scan(&self, after: Option<&[u8]>) -> Result<RedisScan> {
        if after.is_some() {
            return Ok(RedisScan(Scanning::Anywhere));
        }
        let patient = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE));
        let opened = self.client.get_multiplexed_async_connection_with_config(&patient).await;
        let mut connection = opened?;
        is_primary(&info(&mut connection, "replication").await?)?;
        let run = Self::run_id(&mut connection).await?;
        // Where look-ups and writes go.
        is_same(&run, &Self::run_id(&mut self.connection()).await?)?;
        Ok(RedisScan(Scanning::All { connection, run, cursor: 0 }))
    }

    async fn page(&self, scan: &mut RedisScan, limit: usize) -> Result<Page> {
        let Scanning::All { connection, run, cursor } = &mut scan.0 else {
            return self.some(limit).await;
        };
        let mut page = Page::new();
        // The server may give none and have more.
        loop {
            *cursor = self.step(connection, run, *cursor, limit, &mut page).await?;
            if *cursor == 0 {
                return Ok(page.last());
            }
            if !page.is_empty() {
                return Ok(page);
            }
        }
    }

    async fn count(&self, scan: &mut RedisScan) -> Result<u64> {
        if matches!(scan.0, Scanning::Anywhere) {
            scan.0 = Box::pin(self.scan(None)).await?.0;
        }
        let Scanning::All { connection, run, .. } = &mut scan.0 else { return Ok(0) };
        is_same(run, &Self::run_id(connection).await?)?;
        is_same(run, &Self::run_id(&mut self.connection()).await?)?;
        match &self.place {
            Place::Hash(name) => {
                let mut ask = cmd("HLEN");
                ask.arg(name);
                Ok(ask.query_async(connection).await?)
            }
            Place::Prefix(_) => {
                let (mut cursor, mut count) = (0, 0);
                loop {
                    let mut page = Page::new();
                    cursor = self.step(connection, run, cursor, 1_000, &mut page).await?;
                    count += page.len() as u64;
                    if cursor == 0 {
                        return Ok(count);
                    }
                }
            }
        }
    }

    /// What has reached the server is carried out at once.
    fn lingering(&self) -> Duration {
        Duration::from_millis(500)
    }

    /// The history of the server, which is another one after a restart or a failover, the number of the database, and the place. If
    /// the stamp was lost, by eviction or FLUSHALL, it is another set from then on.
    async fn identity(&self) -> Result<Vec<u8>> {
        let mut connection = self.connection();
        let replication = info(&mut connection, "replication").await?;
        if self.stamps.begun.load(Relaxed) {
            let mut ask = cmd("EXISTS");
            ask.arg(&*self.stamp);
            let there: u64 = ask.query_async(&mut connection).await?;
            if there == 0 && self.stamps.begun.swap(false, Relaxed) {
                self.stamps.losses.fetch_add(1, Relaxed);
            }
        }
        let database = self.client.get_connection_info().redis_settings().db();
        let [role, history] = ["role", "master_replid"].map(|name| line(&replication, name));
        let losses = self.stamps.losses.load(Relaxed);
        Ok(format!("redis 2 {role} {history} {database} {:?} {losses}", self.place).into_bytes())
    }

    async fn put_marked(&self, key: &[u8], value: &[u8], stamp: Stamp) -> Result<Put> {
        let incarnation = format!("{:020}", stamp.incarnation);
        let new = self.stamped(self.place.put(), &incarnation, stamp.mark, key, value).await?;
        Ok(if new { Put::New } else { Put::Replaced })
    }

    async fn delete_marked(&self, key: &[u8], stamp: Stamp) -> Result<bool> {
        let incarnation = format!("{:020}", stamp.incarnation);
        let deleted = self.stamped(self.place.delete(), &incarnation, stamp.mark, key, b"").await;
        match deleted {
            Err(RedisError::Reserved { .. }) => Ok(false),
            deleted => deleted,
        }
    }

    /// `false` if the user may not run scripts or write the key of the stamp, unless another guard has left one there.
    async fn begin(&self, incarnation: u64) -> Result<bool> {
        let mut connection = self.connection();
        is_primary(&info(&mut connection, "replication").await?)?;
        if let Place::Hash(name) = &self.place
            && tag(name).is_none()
            && Self::in_cluster(&mut connection).await?
        {
            // No other key is certain to be in the same slot.
            return Ok(false);
        }
        let mut begin = cmd("HSET");
        begin.arg(&*self.stamp).arg("incarnation").arg(format!("{incarnation:020}"));
        // A write with an incarnation that there never is shows whether scripts may run.
        let tried = match self.stamped(self.place.put(), "none", 0, b"", b"").await {
            Ok(_) | Err(RedisError::Superseded) => {
                begin.query_async::<()>(&mut connection).await.map_err(RedisError::from)
            }
            Err(error) => Err(error),
        };
        match tried {
            Ok(()) => {
                self.load_scripts(&mut connection).await;
                self.stamps.begun.store(true, Relaxed);
                Ok(true)
            }
            Err(error) if is_denied(&error) => {
                // Writes without a stamp would not show to a guard that trusts its files by the stamp.
                let mut ask = cmd("EXISTS");
                ask.arg(&*self.stamp);
                let there = ask.query_async::<u64>(&mut connection).await;
                if there.is_ok_and(|there| there > 0) { Err(error) } else { Ok(false) }
            }
            Err(error) => Err(error),
        }
    }

    async fn stamp(&self) -> Result<Option<Stamp>> {
        let mut ask = cmd("HMGET");
        ask.arg(&*self.stamp).arg("incarnation").arg("mark");
        let reply = ask.query_async(&mut self.connection()).await.map_err(RedisError::from);
        let (incarnation, mark): (Option<String>, Option<String>) = match reply {
            Err(error) if is_denied(&error) => return Ok(None),
            reply => reply?,
        };
        let number = |text: Option<String>| text.and_then(|text| text.parse().ok());
        let Some(incarnation) = number(incarnation) else { return Ok(None) };
        Ok(Some(Stamp { incarnation, mark: number(mark).unwrap_or(0) }))
    }

    /// These codes are the server's own, for a command that it did not carry out. Any other error may be of a proxy, which
    /// does not know what the server did.
    fn outcome(&self, error: &RedisError) -> Outcome {
        const REFUSALS: [&str; 17] = [
            "WRONGTYPE",
            "OOM",
            "READONLY",
            "NOPERM",
            "NOAUTH",
            "MISCONF",
            "NOREPLICAS",
            "LOADING",
            "MASTERDOWN",
            "MOVED",
            "ASK",
            "TRYAGAIN",
            "CROSSSLOT",
            "CLUSTERDOWN",
            "NOSCRIPT",
            "EXECABORT",
            "BUSY",
        ];
        match error {
            RedisError::Superseded => Outcome::Superseded,
            RedisError::Redis(error) => match (error.kind(), error.code()) {
                (ErrorKind::Io, _) => Outcome::Unknown,
                (_, Some(code)) if REFUSALS.contains(&code) => Outcome::NotDone,
                _ => Outcome::Unknown,
            },
            _ => Outcome::NotDone,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_no_pattern() {
        assert_eq!(pattern(b"user:"), b"user:*");
        assert_eq!(pattern(b"a*[x]?"), b"a\\*\\[x\\]\\?*");
    }

    #[test]
    fn the_stamp_of_a_hash_is_in_its_slot() {
        let stamp = |name: &[u8]| Place::Hash(name.to_vec()).stamp();
        for name in [&b"users"[..], b"a{b}c", b"{}x", b"a{b", b"{{x}}"] {
            let tag = tag(name);
            if let Some(tag) = tag {
                assert_eq!(super::tag(&stamp(name)), Some(tag), "{name:?}");
            }
        }
        assert_eq!(tag(b"a{b}c"), Some(&b"b"[..]));
        assert_eq!(tag(b"{}x"), None);
        assert_eq!(tag(b"a{b"), Some(&b"a{b"[..]));
    }
}
