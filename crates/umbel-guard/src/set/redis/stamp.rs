//! Scripts that write with the stamp of a guard.

use super::Redis;
use super::error::{RedisError, Result};
use super::place::Place;
use crate::data_set::Claim;
use redis::aio::ConnectionLike;
use redis::{FromRedisValue, Value, cmd, pipe};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// The state of the key of the stamp.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    /// A guard has begun, so the key exists.
    pub(super) begun: AtomicBool,
    /// How often the key was lost since, by eviction or by FLUSHALL.
    pub(super) losses: AtomicU64,
    /// The hashes by which the server knows the scripts for puts and deletes.
    hashes: OnceLock<[String; 2]>,
}

/// Checks the claim, checks the type of the key, raises the mark, then changes the key. The change is the last
/// command, so if the script fails, the key was not changed. Numbers have twenty digits, because Lua has no
/// 64-bit integers. Errors are returned and not raised, so that all servers reply with their codes.
const STAMPED: &str = "\
local now = redis.call('HMGET', KEYS[1], 'incarnation', 'mark') \
if now[1] ~= ARGV[1] or (now[2] or '') < ARGV[6] then return 'superseded' end \
local kind = redis.call('TYPE', KEYS[2]).ok \
if kind ~= 'none' and kind ~= ARGV[3] then return kind end \
if not now[2] or now[2] < ARGV[2] then \
  local raised = redis.pcall('HSET', KEYS[1], 'mark', ARGV[2]) \
  if type(raised) == 'table' and raised.err then return raised end \
end ";

impl Place {
    /// The end of the script for a put. It returns 1 if the key is new.
    pub(super) const fn put(&self) -> &'static str {
        match self {
            Self::Hash(_) => "return redis.pcall('HSET', KEYS[2], ARGV[4], ARGV[5])",
            Self::Prefix(_) => {
                "local done = redis.pcall('SET', KEYS[2], ARGV[5]) \
                 if done.err then return done end \
                 return kind == 'none' and 1 or 0"
            }
        }
    }

    /// The end of the script for a delete. It returns 1 if the key existed.
    pub(super) const fn delete(&self) -> &'static str {
        match self {
            Self::Hash(_) => "return redis.pcall('HDEL', KEYS[2], ARGV[4])",
            Self::Prefix(_) => "return redis.pcall('DEL', KEYS[2])",
        }
    }
}

impl Redis {
    /// Runs a stamped script, and returns the result of its last command. `None` is a claim that never holds.
    pub(super) async fn stamped(
        &self,
        change: &str,
        claim: Option<Claim>,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        let number = |number: u64| format!("{number:020}");
        let incarnation = claim.map_or("none".to_owned(), |claim| number(claim.incarnation));
        let Claim { mark, least, .. } = claim.unwrap_or_default();
        // The empty text compares below every mark.
        let least = if least == 0 { String::new() } else { number(least) };
        let (name, text) = (self.name_of(key)?, format!("{STAMPED}{change}"));
        let mut connection = self.connection();
        let mut ask = async |command: &str, script: &str| -> redis::RedisResult<Value> {
            let mut ask = cmd(command);
            ask.arg(script).arg(2).arg(&*self.stamp).arg(&name);
            ask.arg(&*incarnation).arg(number(mark)).arg(self.place.kind());
            ask.arg(key).arg(value).arg(&*least);
            ask.query_async(&mut connection).await
        };
        let place = usize::from(change == self.place.delete());
        let known = match self.stamps.hashes.get() {
            Some(hashes) => Some(ask("EVALSHA", &hashes[place]).await),
            None => None,
        };
        let unknown = |error: &redis::RedisError| error.code() == Some("NOSCRIPT");
        let reply = match known {
            Some(reply) if !reply.as_ref().is_err_and(unknown) => reply,
            // `EVAL` sends the whole script, and the server caches it.
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

    /// Loads the scripts into the server to get their hashes. Without the hashes the scripts are sent whole.
    pub(super) async fn load_scripts(&self, connection: &mut impl ConnectionLike) {
        let mut both = pipe();
        for change in [self.place.put(), self.place.delete()] {
            both.cmd("SCRIPT").arg("LOAD").arg(format!("{STAMPED}{change}"));
        }
        if let Ok(hashes) = both.query_async(connection).await {
            self.stamps.hashes.get_or_init(|| hashes);
        }
    }
}
