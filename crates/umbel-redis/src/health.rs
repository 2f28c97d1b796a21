//! Whether the configuration of a server may lose filters.
//!
//! A lost filter answers [`Unknown`](crate::Answer::Unknown), so none of these hazards makes an answer wrong.
//! But the filter becomes useless at the worst time: under memory pressure the server evicts the largest keys
//! first, and then all queries that the filter kept away arrive at once. So the configuration is checked when a
//! filter is opened.

use crate::answer::Reason;
use crate::connect::{Server, bytes_of, command};
use crate::history::field;
use redis::{Pipeline, Value};
use std::fmt;

/// What to do about a [`Hazard`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Report it in the `hazards` of the filter.
    #[default]
    Warn,
    /// Refuse to open the filter.
    Refuse,
}

/// How a filter may be lost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hazard {
    /// The server evicts keys when memory runs out, and may evict this one.
    Evictable {
        /// The server's `maxmemory-policy`.
        policy: String,
    },
    /// The key has a time to live.
    Expires {
        /// The remaining time, in milliseconds.
        milliseconds: u64,
    },
    /// The server does not report its configuration.
    Unchecked,
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Evictable { policy } => write!(
                f,
                "the server evicts keys like this one when memory runs out ({policy}); \
                 noeviction, or volatile-* without a time to live, keeps it"
            ),
            Self::Expires { milliseconds } => {
                write!(f, "the key expires in {milliseconds} ms; PERSIST keeps it")
            }
            Self::Unchecked => f.write_str("the server does not tell whether it evicts keys"),
        }
    }
}

impl std::error::Error for Hazard {}

/// The hazards of an existing key.
pub(crate) async fn hazards(server: &Server, key: &str) -> Result<Vec<Hazard>, Reason> {
    let mut pipeline = Pipeline::with_capacity(2);
    let mut lifetime = command("PTTL");
    lifetime.arg(key);
    let mut memory = command("INFO");
    memory.arg("memory");
    pipeline.add_command(lifetime).add_command(memory);
    let replies = server.ask(key, pipeline).await?;
    let [lifetime, memory] = &replies[..] else { return Err(Reason::Garbage) };
    Ok(judge(lifetime, memory))
}

fn judge(lifetime: &Value, memory: &Value) -> Vec<Hazard> {
    let mut hazards = Vec::new();
    let expires = match lifetime {
        Value::Int(left) => u64::try_from(*left).ok(),
        _ => {
            hazards.push(Hazard::Unchecked);
            None
        }
    };
    if let Some(milliseconds) = expires {
        hazards.push(Hazard::Expires { milliseconds });
    }
    let memory = bytes_of(memory).ok().and_then(|bytes| std::str::from_utf8(bytes).ok());
    let policy = memory.and_then(|text| field(text, "maxmemory_policy"));
    match policy {
        Some("noeviction") => {}
        Some(policy) if policy.starts_with("volatile") && expires.is_none() => {}
        Some(policy) => hazards.push(Hazard::Evictable { policy: policy.to_owned() }),
        None if hazards.contains(&Hazard::Unchecked) => {}
        None => hazards.push(Hazard::Unchecked),
    }
    hazards
}

/// Warns or refuses.
pub(crate) fn apply(policy: Policy, hazards: Vec<Hazard>) -> Result<Vec<Hazard>, Hazard> {
    match (policy, hazards.first()) {
        (Policy::Refuse, Some(hazard)) => Err(hazard.clone()),
        _ => Ok(hazards),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(lifetime: i64, policy: &str) -> Vec<Hazard> {
        let memory = format!("maxmemory:0\r\nmaxmemory_policy:{policy}\r\n");
        judge(&Value::Int(lifetime), &Value::BulkString(memory.into()))
    }

    #[test]
    fn keys_that_stay_are_no_hazard() {
        assert_eq!(judged(-1, "noeviction"), []);
        assert_eq!(judged(-1, "volatile-lru"), []);
    }

    #[test]
    fn eviction_and_expiry_are() {
        let evictable = |policy: &str| Hazard::Evictable { policy: policy.to_owned() };
        assert_eq!(judged(-1, "allkeys-lru"), [evictable("allkeys-lru")]);
        assert_eq!(judged(9, "noeviction"), [Hazard::Expires { milliseconds: 9 }]);
        let both = [Hazard::Expires { milliseconds: 9 }, evictable("volatile-ttl")];
        assert_eq!(judged(9, "volatile-ttl"), both);
        assert_eq!(judge(&Value::Nil, &Value::Nil), [Hazard::Unchecked]);
        assert_eq!(apply(Policy::Refuse, both.to_vec()), Err(both[0].clone()));
        assert_eq!(apply(Policy::Warn, both.to_vec()), Ok(both.to_vec()));
    }
}
