//! Errors of a Redis data set.

use super::place::RESERVED;
use std::fmt;

/// The error of a Redis data set.
#[derive(Debug)]
#[non_exhaustive]
pub enum RedisError {
    /// An error of the server or of the connection.
    Redis(redis::RedisError),
    /// The server is a replica, which may lag behind its primary.
    Replica,
    /// The server is a node of a cluster, and has only some of the keys with a prefix.
    Cluster,
    /// A different server answers: it was restarted or replaced.
    Restarted {
        /// The run id before.
        expected: String,
        /// The run id now.
        found: String,
    },
    /// Keys with this name belong to the guard.
    Reserved {
        /// The name of the key.
        name: String,
    },
    /// The key on the server has another type. Nothing was written.
    WrongType {
        /// The type that it must have.
        expected: &'static str,
        /// The type that it has.
        found: String,
    },
    /// Another guard was started in front of this data set, its stamp was lost, or it was replaced by an older
    /// copy. Nothing was written.
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
                "another guard was started in front of this data set (stop one of the two), its stamp was lost, or an older \
                 copy was restored",
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

pub(super) type Result<T> = std::result::Result<T, RedisError>;

/// Whether the server refused a command because the user lacks the permission.
pub(super) fn is_denied(error: &RedisError) -> bool {
    matches!(error, RedisError::Redis(error) if error.code() == Some("NOPERM"))
}
