//! A hash of Redis or Valkey, or all keys with a prefix.
//!
//! Redis has no snapshots: a scan sees every key that is there from its beginning to its end, and maybe others. That is
//! enough, since whatever is written meanwhile goes to the filter too. Keys that expire or are evicted are false
//! positives from then on.

use crate::data_set::{DataSet, Page, Put};
use redis::aio::ConnectionManager;
use redis::{Client, RedisError, Value, cmd, pipe};
use std::time::Duration;

/// A data set in Redis or Valkey.
#[derive(Clone, Debug)]
pub struct Redis {
    connection: Manager,
    place: Place,
}

/// A connection that is made anew when it breaks.
#[derive(Clone)]
struct Manager(ConnectionManager);

impl std::fmt::Debug for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ConnectionManager")
    }
}

#[derive(Clone, Debug)]
enum Place {
    Hash(Vec<u8>),
    Prefix(Vec<u8>),
}

/// A scan of a [`Redis`].
#[derive(Debug)]
pub struct RedisScan(Scanning);

#[derive(Debug)]
enum Scanning {
    From(u64),
    /// Some keys anywhere, for the audit.
    Anywhere,
}

impl Redis {
    /// The fields of the hash `name`.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached.
    pub async fn hash(url: &str, name: &str) -> Result<Self, RedisError> {
        Self::with(url, Place::Hash(name.as_bytes().to_vec())).await
    }

    /// All strings whose key begins with `prefix`, without which it is known here.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached.
    pub async fn prefix(url: &str, prefix: &str) -> Result<Self, RedisError> {
        Self::with(url, Place::Prefix(prefix.as_bytes().to_vec())).await
    }

    async fn with(url: &str, place: Place) -> Result<Self, RedisError> {
        let client = Client::open(url)?;
        Ok(Self { connection: Manager(ConnectionManager::new(client).await?), place })
    }

    fn connection(&self) -> ConnectionManager {
        self.connection.0.clone()
    }

    /// Some keys, and where to go on; 0 at the end.
    async fn step(&self, cursor: u64, limit: usize, page: &mut Page) -> Result<u64, RedisError> {
        let mut connection = self.connection();
        match &self.place {
            Place::Hash(name) => {
                let mut ask = cmd("HSCAN");
                ask.arg(name).arg(cursor).arg("COUNT").arg(limit);
                let (next, pairs): (u64, Vec<Vec<u8>>) = ask.query_async(&mut connection).await?;
                pairs.iter().step_by(2).for_each(|key| page.push(key));
                Ok(next)
            }
            Place::Prefix(prefix) => {
                let mut ask = cmd("SCAN");
                ask.arg(cursor).arg("MATCH").arg(pattern(prefix)).arg("COUNT").arg(limit);
                let (next, keys): (u64, Vec<Vec<u8>>) = ask.query_async(&mut connection).await?;
                for key in &keys {
                    page.push(key.get(prefix.len()..).unwrap_or_default());
                }
                Ok(next)
            }
        }
    }

    /// Some keys, chosen by the server.
    async fn some(&self, limit: usize) -> Result<Page, RedisError> {
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
                    let key: Option<Vec<u8>> =
                        cmd("RANDOMKEY").query_async(&mut connection).await?;
                    match key.as_deref().map(|key| key.strip_prefix(&**prefix)) {
                        Some(Some(key)) => page.push(key),
                        Some(None) => {}
                        None => break,
                    }
                }
            }
        }
        Ok(page.last())
    }

    fn name_of(&self, key: &[u8]) -> Vec<u8> {
        match &self.place {
            Place::Hash(name) => name.clone(),
            Place::Prefix(prefix) => [prefix, key].concat(),
        }
    }
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

    async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, RedisError> {
        let mut ask = cmd(if matches!(self.place, Place::Hash(_)) { "HGET" } else { "GET" });
        ask.arg(self.name_of(key));
        if matches!(self.place, Place::Hash(_)) {
            ask.arg(key);
        }
        ask.query_async(&mut self.connection()).await
    }

    async fn put(&self, key: &[u8], value: &[u8]) -> Result<Put, RedisError> {
        let (mut connection, name) = (self.connection(), self.name_of(key));
        let new = match &self.place {
            Place::Hash(_) => {
                let mut ask = cmd("HSET");
                ask.arg(name).arg(key).arg(value);
                ask.query_async::<u64>(&mut connection).await? == 1
            }
            Place::Prefix(_) => {
                let mut both = pipe();
                both.atomic().cmd("EXISTS").arg(&name).cmd("SET").arg(&name).arg(value);
                let (there, _): (u64, Value) = both.query_async(&mut connection).await?;
                there == 0
            }
        };
        Ok(if new { Put::New } else { Put::Replaced })
    }

    async fn delete(&self, key: &[u8]) -> Result<bool, RedisError> {
        let mut ask = cmd(if matches!(self.place, Place::Hash(_)) { "HDEL" } else { "DEL" });
        ask.arg(self.name_of(key));
        if matches!(self.place, Place::Hash(_)) {
            ask.arg(key);
        }
        Ok(ask.query_async::<u64>(&mut self.connection()).await? > 0)
    }

    async fn scan(&self, after: Option<&[u8]>) -> Result<RedisScan, RedisError> {
        Ok(RedisScan(if after.is_some() { Scanning::Anywhere } else { Scanning::From(0) }))
    }

    async fn page(&self, scan: &mut RedisScan, limit: usize) -> Result<Page, RedisError> {
        let Scanning::From(cursor) = &mut scan.0 else { return self.some(limit).await };
        let mut page = Page::new();
        // The server may give none and have more.
        loop {
            *cursor = self.step(*cursor, limit, &mut page).await?;
            if *cursor == 0 {
                return Ok(page.last());
            }
            if !page.is_empty() {
                return Ok(page);
            }
        }
    }

    async fn count(&self, _: &mut RedisScan) -> Result<u64, RedisError> {
        match &self.place {
            Place::Hash(name) => {
                let mut ask = cmd("HLEN");
                ask.arg(name);
                ask.query_async(&mut self.connection()).await
            }
            Place::Prefix(_) => {
                let (mut cursor, mut count) = (0, 0);
                loop {
                    let mut page = Page::new();
                    cursor = self.step(cursor, 1_000, &mut page).await?;
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

    /// The history of the server, which is another one after a restart, and the place.
    async fn identity(&self) -> Result<Vec<u8>, RedisError> {
        let mut ask = cmd("INFO");
        ask.arg("replication");
        let info: String = ask.query_async(&mut self.connection()).await?;
        let history = info.lines().find(|line| line.starts_with("master_replid:"));
        Ok(format!("redis {} {:?}", history.unwrap_or_default(), self.place).into_bytes())
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
}
