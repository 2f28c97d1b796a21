//! The table and the sequences that keep the stamp of a guard, and the parts of statements that check and raise it.

use super::connection::Open;
use super::error::{PostgresError, Result};
use super::sql::{Sql, literal};
use super::{CONNECTIONS, Postgres};
use crate::set::identifier::quoted;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Statement};

/// What stamped writes need.
#[derive(Debug)]
pub(super) struct Stamping {
    /// Changes when a guard begins.
    version: u64,
    /// The parts of a statement that check and raise the stamp, by connection.
    parts: Vec<String>,
}

/// The prepared statements of a connection that write with a stamp.
#[derive(Debug)]
pub(super) struct Stamped {
    version: u64,
    pub(super) put: Statement,
    pub(super) delete: Statement,
}

/// How much longer a starting guard waits for statements of the previous guard.
const PATIENCE: Duration = Duration::from_secs(30);

impl Postgres {
    /// The stamped statements, which can be prepared once a guard has begun.
    pub(super) async fn stamped(&self, open: &Open) -> Result<Arc<Stamped>> {
        let stamping = self.stamping.load_full().ok_or(PostgresError::Superseded)?;
        if let Some(stamped) = open.stamped.load_full()
            && stamped.version == stamping.version
        {
            return Ok(stamped);
        }
        Box::pin(async {
            let (part, types) = (&stamping.parts[open.slot], self.types());
            let preparing = async {
                let put = format!("{part}{}", self.sql.put.stamped);
                let put = open.client.prepare_typed(&put, &types).await?;
                let delete = format!("{part}{}", self.sql.delete.stamped);
                let types = [types[0].clone(), Type::INT8, Type::INT8, Type::INT8, Type::INT8];
                let delete = open.client.prepare_typed(&delete, &types).await?;
                Ok(Arc::new(Stamped { version: stamping.version, put, delete }))
            };
            let stamped = preparing.await.map_err(PostgresError::Connect)?;
            open.stamped.store(Some(stamped.clone()));
            Ok(stamped)
        })
        .await
    }

    /// Creates the table and the sequences for the stamp if they are missing, and stores the incarnation.
    pub(super) async fn begin_on(
        &self,
        client: &mut Client,
        incarnation: u64,
    ) -> std::result::Result<Stamping, tokio_postgres::Error> {
        let wait = (self.lingering + PATIENCE).as_millis();
        client.batch_execute(&format!("SET statement_timeout = {wait}")).await?;
        let Sql { table, stamps, schema, column, .. } = &self.sql;
        let find =
            "SELECT c.oid, a.attnum, to_regclass($3) IS NULL OR EXISTS (SELECT FROM pg_class o
                 WHERE o.oid = to_regclass($3) AND pg_get_userbyid(o.relowner) = current_user)
             FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
             WHERE c.oid = to_regclass($1) AND a.attname = $2::text AND NOT a.attisdropped";
        let find = client.prepare_typed(find, &[Type::TEXT, Type::TEXT, Type::TEXT]).await?;
        let row = client.query_one(&find, &[table, column, stamps]).await?;
        let (relation, number): (u32, i16) = (row.try_get(0)?, row.try_get(1)?);
        let owned =
            if row.try_get(2)? { format!("OWNED BY {stamps}.incarnation") } else { String::new() };
        let sequences: Vec<String> = (0..=CONNECTIONS)
            .map(|slot| format!("{schema}.{}", quoted(&sequence(relation, number, slot))))
            .collect();
        let transaction = client.transaction().await?;
        // Two guards that start at the same time take turns.
        let lock = format!(
            "SELECT pg_advisory_xact_lock(hashtext('umbel_guard'), {}::int4)",
            relation.cast_signed()
        );
        transaction.batch_execute(&lock).await?;
        let missing = "SELECT to_regclass(name) IS NULL FROM unnest($1::text[]) name";
        let mut names = sequences.clone();
        names.push(stamps.clone());
        let rows = transaction.query(missing, &[&names]).await?;
        let mut lacks = false;
        for row in &rows {
            lacks |= row.try_get::<_, bool>(0)?;
        }
        if lacks {
            // All guarded tables of a schema share this table. `IF NOT EXISTS` does not wait for another
            // session that is creating it.
            let mut create = format!(
                "SELECT pg_advisory_xact_lock(hashtext('umbel_guard'), 0);
                 CREATE TABLE IF NOT EXISTS {stamps} (relation oid, key_column text, slot int4, incarnation int8 NOT NULL,
                   PRIMARY KEY (relation, key_column, slot));"
            );
            for sequence in &sequences {
                create += &format!(
                    "CREATE SEQUENCE IF NOT EXISTS {sequence} MINVALUE 0 START 0 {owned};"
                );
            }
            transaction.batch_execute(&create).await?;
        }
        // Waits for statements of the previous guard: they hold the locks of their rows.
        let [column_text, table_text] = [column, table].map(|name| literal(name));
        let rows = format!("relation = {table_text}::regclass AND key_column = {column_text}");
        let mut begin = format!(
            "SELECT FROM {stamps} WHERE {rows} ORDER BY slot FOR UPDATE;
             INSERT INTO {stamps} SELECT {table_text}::regclass, {column_text}, slot, {number}
               FROM generate_series(0, {CONNECTIONS}) slot ON CONFLICT (relation, key_column, slot) DO NOTHING;
             UPDATE {stamps} SET incarnation = {number} WHERE {rows};
             SELECT set_config('synchronous_commit', 'local', true)
               WHERE current_setting('synchronous_commit') = 'off';",
            number = incarnation.cast_signed(),
        );
        for sequence in &sequences {
            begin += &format!(
                "SELECT setval({}::regclass, (SELECT last_value FROM {sequence}));",
                literal(sequence)
            );
        }
        transaction.batch_execute(&begin).await?;
        transaction.commit().await?;
        // The row of the connection is locked first, and only if it has the incarnation. A guard that begins at
        // the same time waits for this statement, or this statement finds the incarnation of that guard. While
        // the row is locked, no other statement sets the sequence, so the mark never decreases. The marks of
        // all connections are read only if the claim has one to compare.
        let marks: Vec<_> =
            sequences.iter().map(|name| format!("(SELECT last_value FROM {name})")).collect();
        let marks = marks.join(", ");
        let parts = sequences.iter().enumerate().map(|(slot, sequence)| {
            format!(
                "WITH held AS MATERIALIZED (
                   SELECT FROM {stamps} WHERE {rows} AND slot = {slot} AND incarnation = $3::int8
                     AND CASE WHEN $5::int8 = 0 THEN true ELSE greatest({marks}) >= $5::int8 END FOR NO KEY UPDATE),
                 stamped AS MATERIALIZED (
                   SELECT setval({}::regclass, greatest($4::int8, (SELECT last_value FROM {sequence}))) FROM held),",
                literal(sequence)
            )
        });
        Ok(Stamping { version: unused_number(), parts: parts.collect() })
    }

    /// Whether a guard has left a stamp for this table, as far as this user can see.
    pub(super) async fn has_stamp(&self, client: &Client) -> Result<bool> {
        let Sql { table, stamps, column, .. } = &self.sql;
        let sql = "SELECT to_regclass($1) IS NOT NULL,
                          coalesce(has_table_privilege(to_regclass($1)::oid, 'SELECT'), false)";
        let statement = client.prepare_typed(sql, &[Type::TEXT]).await?;
        let row = client.query_one(&statement, &[stamps]).await?;
        let (there, readable): (bool, bool) = (row.try_get(0)?, row.try_get(1)?);
        if !(there && readable) {
            return Ok(there);
        }
        let sql = format!(
            "SELECT EXISTS (SELECT FROM {stamps} WHERE relation = to_regclass($1)::oid AND key_column = $2::text)"
        );
        let statement = client.prepare_typed(&sql, &[Type::TEXT, Type::TEXT]).await?;
        Ok(client.query_one(&statement, &[table, column]).await?.try_get(0)?)
    }

    /// Whether this user may write to the guarded table, and the table of stamps exists.
    pub(super) async fn could_write_unseen(&self, client: &Client) -> Result<bool> {
        let sql = "SELECT to_regclass($2) IS NOT NULL AND (has_table_privilege(to_regclass($1)::oid, 'INSERT')
             OR has_any_column_privilege(to_regclass($1)::oid, 'INSERT'))";
        let statement = client.prepare_typed(sql, &[Type::TEXT, Type::TEXT]).await?;
        let row = client.query_one(&statement, &[&self.sql.table, &self.sql.stamps]).await?;
        Ok(row.try_get(0)?)
    }
}

/// A number that was not used before.
fn unused_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Relaxed) + 1
}

/// The name of the sequence with the marks of a connection.
fn sequence(relation: u32, column: i16, slot: usize) -> String {
    format!("umbel_guard_{relation}_{column}_{slot}")
}
