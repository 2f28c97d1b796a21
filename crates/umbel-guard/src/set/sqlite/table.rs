//! The requirements for a table and its columns, checked before they are guarded.

use super::error::SqliteError;
use super::key::{Keys, keys_of};
use crate::set::identifier::quoted;
use rusqlite::{Connection, OptionalExtension, params};

/// The key column, with its name as the schema has it.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) table: String,
    pub(super) name: String,
    pub(super) declared: String,
    pub(super) keys: Keys,
}

/// The value column, with its name as the schema has it, and the storage type of values.
pub(super) fn value_column(
    connection: &Connection,
    table: &str,
    column: &str,
) -> Result<(String, Keys), SqliteError> {
    let (name, declared) = written_column(connection, table, column)?;
    // A numeric column converts text to numbers, but not blobs.
    let blobs = declared.is_empty() || declared.to_uppercase().contains("BLOB");
    Ok((name, if blobs { Keys::Blobs } else { Keys::Text }))
}

/// The name and the declared type of a column that can be written.
fn written_column(
    connection: &Connection,
    table: &str,
    column: &str,
) -> Result<(String, String), SqliteError> {
    let sql =
        "SELECT name, type, hidden FROM pragma_table_xinfo(?1) WHERE name = ?2 COLLATE NOCASE";
    let found = connection.query_row(sql, params![table, column], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)?))
    });
    match found.optional()? {
        Some((name, declared, 0)) => Ok((name, declared)),
        Some((column, ..)) => Err(SqliteError::Generated { column }),
        None => {
            let columns = columns(connection, table)?;
            Err(SqliteError::Missing {
                what: format!("column {column} of {table}; its columns are {columns}"),
            })
        }
    }
}

/// The names of all columns that a caller can see, for an error message.
fn columns(connection: &Connection, table: &str) -> Result<String, SqliteError> {
    let sql = "SELECT name FROM pragma_table_xinfo(?1) WHERE hidden <> 1 ORDER BY cid";
    let mut statement = connection.prepare(sql)?;
    let names = statement.query_map(params![table], |row| row.get::<_, String>(0))?;
    Ok(names.collect::<Result<Vec<_>, _>>()?.join(", "))
}

/// The key column, if it meets the requirements for keys.
pub(super) fn key_column(
    connection: &Connection,
    table: &str,
    column: &str,
) -> Result<Column, SqliteError> {
    let sql = "SELECT name, type, wr FROM pragma_table_list
         WHERE schema = 'main' AND name = ?1 COLLATE NOCASE";
    let found = connection.query_row(sql, params![table], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get(2)?))
    });
    let (table, kind, without_rowid) =
        found.optional()?.ok_or_else(|| SqliteError::Missing { what: format!("table {table}") })?;
    if kind != "table" {
        return Err(SqliteError::NotATable { name: table, found: kind });
    }
    let own = table.to_ascii_lowercase();
    if own == "umbel_guard" || own.starts_with("sqlite_") {
        return Err(SqliteError::NotATable { name: table, found: "table for internal use".into() });
    }
    let (name, declared) = written_column(connection, &table, column)?;
    let keys = keys_of(&declared)?;
    if keys == Keys::Text {
        let found: String = connection.pragma_query_value(None, "encoding", |row| row.get(0))?;
        // Text that is not valid UTF-16 changes when it is read and written, so pages could skip keys.
        if found != "UTF-8" {
            return Err(SqliteError::Encoding { found });
        }
    }
    if !is_unique(connection, &table, &name, without_rowid)? {
        let index = quoted(&format!("{table}_{name}_key"));
        let [on, by] = [&table, &name].map(|name| quoted(name));
        let fix = format!("CREATE UNIQUE INDEX {index} ON {on} ({by} COLLATE BINARY);");
        return Err(SqliteError::NotUnique { table, column: name, fix });
    }
    Ok(Column { table, name, declared, keys })
}

/// Whether different rows always have different keys, byte by byte.
fn is_unique(
    connection: &Connection,
    table: &str,
    column: &str,
    without_rowid: bool,
) -> Result<bool, SqliteError> {
    let sql = "SELECT EXISTS (
           SELECT 1 FROM pragma_index_list(?1) list WHERE list.\"unique\" AND NOT list.partial
           AND 1 = (SELECT count(*) FROM pragma_index_xinfo(list.name) WHERE key)
           AND EXISTS (SELECT 1 FROM pragma_index_xinfo(list.name)
                       WHERE key AND cid >= 0 AND name = ?2 AND coll = 'BINARY' COLLATE NOCASE))";
    if connection.query_row(sql, params![table, column], |row| row.get(0))? {
        return Ok(true);
    }
    // The primary key of a rowid table lacks an index only if it is the rowid itself.
    let sql =
        "SELECT (SELECT group_concat(name, char(0)) FROM pragma_table_info(?1) WHERE pk > 0) = ?2
           AND NOT EXISTS (SELECT 1 FROM pragma_index_list(?1) WHERE origin = 'pk')";
    let alone: Option<bool> =
        connection.query_row(sql, params![table, column], |row| row.get(0))?;
    Ok(!without_rowid && alone == Some(true))
}
