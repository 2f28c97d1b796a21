//! A hash of Redis or Valkey, or all string keys with a prefix.

mod error;
mod place;
mod scan;
mod stamp;

pub use error::RedisError;
pub use scan::RedisScan;

use crate::data_set::{Claim, DataSet, Outcome, Page, Put, Stamp};
use error::{Result, is_denied};
use place::{Place, RESERVED, tag};
use redis::aio::{ConnectionLike, ConnectionManager};
use redis::{AsyncConnectionConfig, Client, ErrorKind, FromRedisValue, Value, cmd};
use scan::{PATIENCE, Scanning, is_same};
use stamp::Stamps;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A data set in Redis or Valkey.
///
/// Redis has no snapshots. A scan sees every key that exists from its beginning to its end, and perhaps others.
/// That is enough, because a key that is written during the scan is also added to the filter. Keys that expire
/// or are evicted are false positives from then on.
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
/// **Scans** use a separate connection, which is not opened again when it breaks. Every page also asks for the
/// run id of the server. After a restart the cursor of a scan is meaningless, so the scan fails with
/// [`RedisError::Restarted`].
///
/// **Durability:** a server that restarts has another [identity](DataSet::identity). So a saved filter is not
/// used, whatever the server has lost. **Other writers** are not noticed, except by the audit.
#[derive(Clone, Debug)]
pub struct Redis {
    client: Client,
    connection: Manager,
    place: Place,
    /// The key of the stamp.
    stamp: Arc<[u8]>,
    stamps: Arc<Stamps>,
}

/// A connection that reconnects when it breaks.
#[derive(Clone)]
struct Manager(ConnectionManager);

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConnectionManager")
    }
}

/// The value of a line of INFO.
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

impl Redis {
    /// The fields of the hash `name`.
    ///
    /// # Errors
    ///
    /// [`RedisError`] if the server cannot be reached or is a replica.
    pub async fn hash(url: &str, name: &str) -> Result<Self> {
        Self::with(url, Place::Hash(name.as_bytes().to_vec())).await
    }

    /// All strings whose key begins with `prefix`. The keys of the data set do not include the prefix.
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

    /// The server's key for a key of the set. Fails if that key belongs to the guard.
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

    /// The run id of the server behind a connection.
    async fn run_id(connection: &mut impl ConnectionLike) -> Result<String> {
        Ok(line(&info(connection, "server").await?, "run_id").to_owned())
    }
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
        // Look-ups and writes use this connection.
        is_same(&run, &Self::run_id(&mut self.connection()).await?)?;
        Ok(RedisScan(Scanning::All { connection, run, cursor: 0 }))
    }

    async fn page(&self, scan: &mut RedisScan, limit: usize) -> Result<Page> {
        let Scanning::All { connection, run, cursor } = &mut scan.0 else {
            return self.some(limit).await;
        };
        let mut page = Page::new();
        // A page of the server may be empty although more follow.
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

    /// The server carries out a command as soon as it receives it.
    fn lingering(&self) -> Duration {
        Duration::from_millis(500)
    }

    /// The replication history of the server, which changes with a restart or a failover, the number of the
    /// database, and the hash or the prefix. If the stamp was lost, by eviction or FLUSHALL, the identity
    /// changes as well.
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

    async fn put_marked(&self, key: &[u8], value: &[u8], claim: Claim) -> Result<Put> {
        let new = self.stamped(self.place.put(), Some(claim), key, value).await?;
        Ok(if new { Put::New } else { Put::Replaced })
    }

    async fn delete_marked(&self, key: &[u8], claim: Claim) -> Result<bool> {
        match self.stamped(self.place.delete(), Some(claim), key, b"").await {
            Err(RedisError::Reserved { .. }) => Ok(false),
            deleted => deleted,
        }
    }

    /// Returns `false` if the user may not run scripts or write the key of the stamp, unless another guard has
    /// left a stamp there.
    async fn begin(&self, incarnation: u64) -> Result<bool> {
        let mut connection = self.connection();
        is_primary(&info(&mut connection, "replication").await?)?;
        if let Place::Hash(name) = &self.place
            && tag(name).is_none()
            && Self::in_cluster(&mut connection).await?
        {
            // No key is certain to be in the same slot.
            return Ok(false);
        }
        let mut begin = cmd("HSET");
        begin.arg(&*self.stamp).arg("incarnation").arg(format!("{incarnation:020}"));
        // A write with a claim that never holds shows whether scripts may run.
        let tried = match self.stamped(self.place.put(), None, b"", b"").await {
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
                // A guard that trusts its files by the stamp would not notice writes without a stamp.
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

    /// The server itself returns these codes, for a command that it did not carry out. Any other error may come
    /// from a proxy, which does not know what the server did.
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
