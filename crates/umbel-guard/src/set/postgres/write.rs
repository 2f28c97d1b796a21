//! Puts and deletes. Each is one statement, or a verified transaction if the table has `AFTER` triggers.

use super::connection::Open;
use super::error::{PostgresError, Result, refused};
use super::key::{Param, Values, text};
use super::{CONNECTIONS, Postgres};
use crate::data_set::{Claim, Put};
use std::sync::atomic::Ordering::Relaxed;
use tokio_postgres::types::ToSql;

/// A write to the table.
#[derive(Clone, Copy, Debug)]
enum Change<'a> {
    Put(&'a Param<'a>, &'a Param<'a>),
    Delete(&'a Param<'a>),
}

/// The effect of a write.
#[derive(Clone, Copy, Debug)]
struct Changed {
    stamped: bool,
    inserted: bool,
    /// Updated or deleted.
    found: bool,
}

/// How often a put is tried while other sessions insert and delete the same key.
const TRIES: usize = 16;

impl Postgres {
    fn value_param<'a>(&self, value: &'a [u8]) -> Result<Param<'a>> {
        match &self.values {
            Values::Bytes => Ok(Param::Bytes(value)),
            Values::Written(_) => text(value).map(Param::Text).ok_or(PostgresError::Unfit),
        }
    }

    /// Sends one statement that writes.
    async fn change(
        &self,
        open: &Open,
        change: Change<'_>,
        claim: Option<Claim>,
    ) -> Result<Changed> {
        let stamped = match claim {
            Some(_) => Some(self.stamped(open).await?),
            None => None,
        };
        let claim = claim.unwrap_or_default();
        let [incarnation, mark, least] =
            [claim.incarnation, claim.mark, claim.least].map(u64::cast_signed);
        let row = match (change, stamped) {
            (Change::Put(key, value), stamped) => {
                // Counted before it is sent, so that an own row is never taken for a foreign one.
                self.own.fetch_add(1, Relaxed);
                match stamped {
                    Some(stamped) => {
                        let params: [&(dyn ToSql + Sync); 5] =
                            [key.get(), value.get(), &incarnation, &mark, &least];
                        open.client.query_one(&stamped.put, &params).await
                    }
                    None => open.client.query_one(&open.put, &[key.get(), value.get()]).await,
                }
                .map_err(|error| {
                    if stores_nothing(&error) {
                        // The statistics do not count this row, so counting it would hide a foreign row.
                        self.own.fetch_sub(1, Relaxed);
                    }
                    refused(error, key)
                })?
            }
            (Change::Delete(key), Some(stamped)) => {
                // The parameters of the stamp have the same numbers as in a put.
                let params: [&(dyn ToSql + Sync); 5] =
                    [key.get(), &0_i64, &incarnation, &mark, &least];
                open.client.query_one(&stamped.delete, &params).await?
            }
            (Change::Delete(key), None) => {
                open.client.query_one(&open.delete, &[key.get()]).await?
            }
        };
        let some = |place| row.try_get::<_, i64>(place).map(|rows| rows > 0);
        let changed = Changed { stamped: some(0)?, inserted: some(1)?, found: some(2)? };
        if matches!(change, Change::Put(..)) && !changed.inserted && !changed.found {
            self.own.fetch_sub(1, Relaxed);
        }
        Ok(changed)
    }

    /// Writes in a transaction. It is committed if the row exists afterwards, or for a delete if the row is
    /// gone.
    async fn change_carefully(&self, change: Change<'_>, claim: Option<Claim>) -> Result<Changed> {
        let mut careful = self.careful.lock().await;
        let open = match careful.take() {
            Some(open) if !open.client.is_closed() => open,
            _ => self.open(CONNECTIONS).await?,
        };
        // Stored before use: if this task is dropped, the next one rolls back the transaction that it finds.
        let open = careful.insert(open);
        let begin = open.client.batch_execute("ROLLBACK; BEGIN").await;
        begin.map_err(PostgresError::Connect)?;
        let changing = async {
            let changed = self.change(open, change, claim).await?;
            // Runs the deferred triggers now.
            open.client.batch_execute("SET CONSTRAINTS ALL IMMEDIATE").await?;
            let (key, wanted) = match change {
                Change::Put(key, _) => (key, true),
                Change::Delete(key) => (key, false),
            };
            let there = open.client.query_opt(&open.get, &[key.get()]).await?.is_some();
            match wanted {
                true if !there && (changed.inserted || changed.found) => {
                    Err(PostgresError::KeyChanged { expected: key.bytes().to_vec(), found: None })
                }
                false if there && changed.stamped => Err(PostgresError::NotDeleted),
                _ => Ok(changed),
            }
        };
        let changed = changing.await;
        if changed.is_err() {
            // If this fails, the connection is lost, and the transaction with it.
            let _ = open.client.batch_execute("ROLLBACK").await;
            return changed;
        }
        open.client.batch_execute("COMMIT").await?;
        changed
    }

    async fn write(&self, change: Change<'_>, claim: Option<Claim>) -> Result<Changed> {
        let changed = if self.has_after_triggers.load(Relaxed) {
            Box::pin(self.change_carefully(change, claim)).await?
        } else {
            let open = self.any().await?;
            self.change(&open, change, claim).await?
        };
        if changed.stamped { Ok(changed) } else { Err(PostgresError::Superseded) }
    }

    pub(super) async fn insert(
        &self,
        key: &[u8],
        value: &[u8],
        claim: Option<Claim>,
    ) -> Result<Put> {
        let key = self.keys.param(key).ok_or(PostgresError::Unfit)?;
        let value = self.value_param(value)?;
        for _ in 0..TRIES {
            match self.write(Change::Put(&key, &value), claim).await? {
                Changed { inserted: true, .. } => return Ok(Put::New),
                Changed { found: true, .. } => return Ok(Put::Replaced),
                // Another transaction inserted or deleted the key after this statement began.
                Changed { .. } => {}
            }
        }
        Err(PostgresError::Contended)
    }

    pub(super) async fn remove(&self, key: &[u8], claim: Option<Claim>) -> Result<bool> {
        let Some(key) = self.keys.param(key) else { return Ok(false) };
        Ok(self.write(Change::Delete(&key), claim).await?.found)
    }
}

/// Whether the server refused the row before it stored it: invalid data (class 22), a NULL or a check
/// constraint. The expression of an index can raise an error of class 22 after the row is stored. The guard
/// then counts one own row too few, and compares the keys once more than it needs to.
fn stores_nothing(error: &tokio_postgres::Error) -> bool {
    let code = error.code().map_or("", |code| code.code());
    code.starts_with("22") || code == "23502" || code == "23514"
}
