//! Ready-made data sets, each behind a feature of the same name.
//!
//! | | where | scans see | stamps | keys | foreign writes show |
//! |---|---|---|---|---|---|
//! | `Redb` | a table of bytes in a redb file | one moment | yes | bytes | there are none |
//! | `Sqlite` | any table with a unique key column | one moment | yes | text, blobs, integers | within a second |
//! | `Postgres` | any table with a unique key column | one moment | yes, if the user may create a table | text, `bytea`, integers, `uuid` | within seconds |
//! | `Redis` | a hash, or all keys with a prefix | the keys that exist during the whole scan | yes, if the user may run scripts | bytes | no |
//!
//! [`Stamp`](crate::Stamp) describes the purpose of stamps.

#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod identifier;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "postgres")]
pub use postgres::{Postgres, PostgresError, PostgresScan};
#[cfg(feature = "redb")]
pub use redb::{Redb, RedbError, RedbScan};
#[cfg(feature = "redis")]
pub use redis::{Redis, RedisError, RedisScan};
#[cfg(feature = "sqlite")]
pub use sqlite::{Sqlite, SqliteError, SqliteScan};
