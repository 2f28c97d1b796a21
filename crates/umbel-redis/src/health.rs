//! Whether a server is set up so that it may lose filters.
//!
//! Whatever is lost is [`Unknown`](crate::Answer::Unknown), so none of this makes an answer wrong. It makes
//! filters useless, at the worst of times: under memory pressure the largest keys go first, and everything
//! that the filter kept away arrives at once. So it is looked at when a filter is opened.

use crate::answer::Reason;
use crate::connect::{Server, bytes_of, command};
use crate::history::field;
use redis::{Pipeline, Value};
use std::fmt;

/// What is done about a [`Hazard`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// It is noted; see the `hazards` of a filter.
    #[default]
    Warn,
    /// The filter is not opened.
    Refuse,
}

/// How a filter may be lost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hazard {
    /// When memory runs out the server takes keys away, and this one is among them.
    Evictable {
        /// The server's `maxmemory-policy`.
        policy: String,
    },
    /// The key has a time to live.
    Expires {
        /// What is left of it, in milliseconds.
        milliseconds: u64,
    },
    /// The server does not tell.
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

/// The hazards of a key that is there.
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
