//! The table `umbel_guard` of a file: its number, and the stamps of guards.

use super::Shared;
use super::error::SqliteError;
use crate::data_set::{Claim, Stamp};
use rusqlite::{Connection, OptionalExtension, Transaction, params};

/// The table of the guard, with the number of the file.
pub(super) const OWN_TABLE: &str =
    "CREATE TABLE IF NOT EXISTS umbel_guard (name TEXT PRIMARY KEY, number INTEGER NOT NULL);
     INSERT INTO umbel_guard VALUES ('file', random()) ON CONFLICT (name) DO NOTHING;";

/// A number that the guard stores in the file; `None` if the number or the table is missing.
pub(super) fn number(connection: &Connection, name: &str) -> Result<Option<i64>, SqliteError> {
    let table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'umbel_guard'";
    if !connection.prepare_cached(table)?.exists([])? {
        return Ok(None);
    }
    let sql = "SELECT number FROM umbel_guard WHERE name = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_row(params![name], |row| row.get(0)).optional()?)
}

impl Shared {
    /// Fails unless the claim holds, and raises the mark.
    pub(super) fn stamped(
        &self,
        transaction: &Transaction<'_>,
        claim: Claim,
    ) -> Result<(), SqliteError> {
        let found = number(transaction, &self.incarnation)?.unwrap_or(0).cast_unsigned();
        let expected = claim.incarnation;
        if found != expected {
            return Err(SqliteError::Superseded { expected, found });
        }
        if claim.least > 0 {
            let found = number(transaction, &self.mark)?.unwrap_or(0).cast_unsigned();
            if found < claim.least {
                return Err(SqliteError::Restored { confirmed: claim.least, found });
            }
        }
        let sql = "INSERT INTO umbel_guard VALUES (?1, ?2)
             ON CONFLICT (name) DO UPDATE SET number = max(number, excluded.number)";
        transaction.prepare_cached(sql)?.execute(params![self.mark, claim.mark.cast_signed()])?;
        Ok(())
    }

    /// A guard begins. Returns `false` if the set stores no stamp.
    pub(super) fn begin(&self, incarnation: u64) -> Result<bool, SqliteError> {
        if !self.writes {
            return Ok(false);
        }
        if self.unstamped {
            let found = self.read(|connection| number(connection, &self.incarnation))?;
            return match found {
                Some(1.. | ..=-1) => Err(SqliteError::Stamped),
                Some(0) | None => Ok(false),
            };
        }
        self.write(None, |transaction| {
            // The table may have been dropped since the file was opened.
            transaction.execute_batch(OWN_TABLE)?;
            let sql = "INSERT INTO umbel_guard VALUES (?1, ?2)
                 ON CONFLICT (name) DO UPDATE SET number = excluded.number";
            transaction.execute(sql, params![self.incarnation, incarnation.cast_signed()])?;
            Ok(true)
        })
    }

    pub(super) fn stamp(&self) -> Result<Option<Stamp>, SqliteError> {
        self.read(|connection| {
            // One transaction, so that both numbers are of one moment.
            let view = connection.unchecked_transaction()?;
            if number(&view, "file")?.is_none() {
                return Ok(None);
            }
            let incarnation = number(&view, &self.incarnation)?.unwrap_or(0).cast_unsigned();
            let mark = number(&view, &self.mark)?.unwrap_or(0).cast_unsigned();
            Ok(Some(Stamp { incarnation, mark }))
        })
    }
}
