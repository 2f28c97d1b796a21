//! The requirements for a table and its columns, checked before they are guarded.

use super::error::{PostgresError, Result};
use super::key::Keys;
use crate::set::identifier::quoted;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

/// A table that can be guarded.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) oid: u32,
    pub(super) schema: String,
    /// With the schema.
    pub(super) name: String,
}

impl Table {
    pub(super) async fn find(client: &Client, name: &str) -> Result<Self> {
        let sql = "SELECT c.oid, n.nspname::text, c.relname::text, c.relkind::text, c.relpersistence::text,
               c.relhasrules, c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid),
               row_security_active(c.oid)
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)";
        let statement = client.prepare_typed(sql, &[Type::TEXT]).await?;
        let row = client.query_opt(&statement, &[&name]).await?;
        let row = row.ok_or_else(|| PostgresError::Missing { what: format!("table {name}") })?;
        let (schema, relation): (String, String) = (row.try_get(1)?, row.try_get(2)?);
        let (kind, persistence): (String, String) = (row.try_get(3)?, row.try_get(4)?);
        let (rules, inherited, secured) = (row.try_get(5)?, row.try_get(6)?, row.try_get(7)?);
        let refuse = |found, fix| {
            let name = format!("{schema}.{relation}");
            Err(PostgresError::NotATable { name, found, fix })
        };
        match &*kind {
            "r" | "p" => {}
            "v" | "m" => return refuse("a view", "guard the table behind it"),
            "f" => return refuse("a foreign table", "guard the table on its own server"),
            _ => return refuse("another kind of relation", "name a table"),
        }
        if persistence == "t" {
            return refuse(
                "a temporary table, which other connections cannot see",
                "create it for all",
            );
        }
        if rules {
            return refuse("a table with rewrite rules", "use triggers in the place of rules");
        }
        if inherited {
            return refuse(
                "a table that others inherit from, whose keys are not unique together",
                "use partitions in the place of inheritance",
            );
        }
        if secured {
            return refuse(
                "a table with row security, which hides rows from this user",
                "connect as the owner of the table or as a user with BYPASSRLS",
            );
        }
        if relation == "umbel_guard" {
            return refuse("the guard's own table", "name another one");
        }
        let name = format!("{}.{}", quoted(&schema), quoted(&relation));
        Ok(Self { oid: row.try_get(0)?, schema: quoted(&schema), name })
    }
}

/// A column that can be written.
#[derive(Debug)]
pub(super) struct Column {
    name: String,
    number: i16,
    /// The name of its type.
    pub(super) declared: String,
    not_null: bool,
    /// Whether equal text always has equal bytes under the collation.
    deterministic: bool,
}

impl Column {
    pub(super) async fn find(client: &Client, table: &Table, name: &str) -> Result<Self> {
        let sql = "SELECT a.attnum, format_type(a.atttypid, NULL), a.attnotnull, a.attgenerated::text <> '',
               coalesce(c.collisdeterministic, true)
             FROM pg_attribute a LEFT JOIN pg_collation c ON c.oid = a.attcollation
             WHERE a.attrelid = $1 AND a.attname = $2::text AND a.attnum > 0 AND NOT a.attisdropped";
        let statement = client.prepare_typed(sql, &[Type::OID, Type::TEXT]).await?;
        let row = client.query_opt(&statement, &[&table.oid, &name]).await?;
        let Some(row) = row else {
            let sql = "SELECT coalesce(string_agg(attname::text, ', ' ORDER BY attnum), '') FROM pg_attribute
                 WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped";
            let statement = client.prepare_typed(sql, &[Type::OID]).await?;
            let columns: String = client.query_one(&statement, &[&table.oid]).await?.try_get(0)?;
            let what = format!("column {name} of {}; its columns are {columns}", table.name);
            return Err(PostgresError::Missing { what });
        };
        if row.try_get(3)? {
            return Err(PostgresError::Generated { column: name.to_owned() });
        }
        Ok(Self {
            name: name.to_owned(),
            number: row.try_get(0)?,
            declared: row.try_get(1)?,
            not_null: row.try_get(2)?,
            deterministic: row.try_get(4)?,
        })
    }

    /// The type of its keys, if the column meets the requirements for keys.
    pub(super) async fn keys(&self, client: &Client, table: &Table) -> Result<Keys> {
        let keys = match &*self.declared {
            "text" | "character varying" if self.deterministic => Keys::Text,
            "bytea" => Keys::Bytes,
            "smallint" => Keys::Integers(2),
            "integer" => Keys::Integers(4),
            "bigint" => Keys::Integers(8),
            "uuid" => Keys::Uuids,
            declared if self.deterministic => {
                return Err(PostgresError::KeyType { name: declared.to_owned() });
            }
            declared => {
                let name = format!("{declared} with a collation that is not deterministic");
                return Err(PostgresError::KeyType { name });
            }
        };
        let (column, name) = (self.name.clone(), quoted(&self.name));
        if !self.not_null {
            let fix = format!("ALTER TABLE {} ALTER COLUMN {name} SET NOT NULL;", table.name);
            return Err(PostgresError::Nullable { column, fix });
        }
        let sql = "SELECT EXISTS (SELECT FROM pg_index i JOIN pg_opclass o ON o.oid = i.indclass[0]
               LEFT JOIN pg_collation c ON c.oid = i.indcollation[0]
             WHERE i.indrelid = $1 AND i.indisunique AND i.indisvalid AND i.indisready AND i.indislive
               AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indnkeyatts = 1
               AND i.indkey[0] = $2 AND o.opcnamespace = 'pg_catalog'::regnamespace
               AND coalesce(c.collisdeterministic, true))";
        let statement = client.prepare_typed(sql, &[Type::OID, Type::INT2]).await?;
        let row = client.query_one(&statement, &[&table.oid, &self.number]).await?;
        if !row.try_get::<_, bool>(0)? {
            let fix = format!("CREATE UNIQUE INDEX ON {} ({name});", table.name);
            return Err(PostgresError::NotUnique { column, fix });
        }
        Ok(keys)
    }
}
