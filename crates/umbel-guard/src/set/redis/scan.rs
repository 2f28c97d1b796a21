//! Scans, by the cursors of `SCAN` and `HSCAN`.

use super::error::{RedisError, Result};
use super::place::{Place, RESERVED};
use super::{Redis, line};
use crate::data_set::Page;
use redis::aio::MultiplexedConnection;
use redis::{cmd, pipe};
use std::fmt;
use std::time::Duration;

/// A scan of a [`Redis`].
#[derive(Debug)]
pub struct RedisScan(pub(super) Scanning);

pub(super) enum Scanning {
    All {
        /// Not opened again when it breaks.
        connection: MultiplexedConnection,
        /// The server that the scan began on.
        run: String,
        cursor: u64,
    },
    /// Keys that the server chooses, for the audit.
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

/// How long a scan waits for a reply. The guard has a separate time-out.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

impl Redis {
    /// A page of keys, and the next cursor, which is 0 at the end. Fails if the server has another run id.
    pub(super) async fn step(
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
        // One transaction, so that the same server answers both commands.
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
    pub(super) async fn some(&self, limit: usize) -> Result<Page> {
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

    /// The set's key for a key of the server, if it belongs to the set.
    fn key_of<'k>(prefix: &[u8], name: &'k [u8]) -> Option<&'k [u8]> {
        name.strip_prefix(prefix).filter(|_| !name.starts_with(RESERVED.as_bytes()))
    }
}

/// Fails if a different server answers.
pub(super) fn is_same(expected: &str, found: &str) -> Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_no_pattern() {
        assert_eq!(pattern(b"user:"), b"user:*");
        assert_eq!(pattern(b"a*[x]?"), b"a\\*\\[x\\]\\?*");
    }
}
