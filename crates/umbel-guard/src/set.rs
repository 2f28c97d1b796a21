//! Data sets that are ready to use, each behind a feature of its name.
//!
//! | | where | scans see | marks | keys |
//! |---|---|---|---|---|
//! | `Redb` | a table of bytes in a redb file | one moment | yes | bytes |
//! | `Sqlite` | any table and key column | one moment | yes, unless told not to | text, blobs, integers |
//! | `Postgres` | any table and key column | one moment | no | text, `bytea`, integers, `uuid` |
//! | `Redis` | a hash, or all keys with a prefix | what is there all the time | no | bytes |
//!
//! What "marks" are for is told in [`DataSet::mark`](crate::DataSet::mark).

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
pub use redis::{Redis, RedisScan};
#[cfg(feature = "sqlite")]
pub use sqlite::{Sqlite, SqliteError, SqliteScan};
