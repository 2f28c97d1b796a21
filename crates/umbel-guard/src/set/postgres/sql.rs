//! The statements for look-ups, writes and scans.

use super::key::{Keys, Values};
use super::table::Table;
use crate::set::identifier::quoted;

/// The statements for one table, and the names in them.
#[derive(Debug)]
pub(super) struct Sql {
    pub(super) get: String,
    pub(super) put: Writing,
    pub(super) delete: Writing,
    pub(super) cursor: String,
    pub(super) after: String,
    pub(super) count: String,
    /// The guarded table, with its schema, and the table of stamps.
    pub(super) table: String,
    pub(super) stamps: String,
    pub(super) schema: String,
    /// The key column, not quoted.
    pub(super) column: String,
}

/// A statement that writes, in two versions: with and without a stamp.
#[derive(Debug)]
pub(super) struct Writing {
    pub(super) plain: String,
    /// The part that follows the check and the update of the stamp.
    pub(super) stamped: String,
}

/// The name of the cursor of a scan.
pub(super) const CURSOR: &str = "umbel_guard_scan";
/// The text before the key, in hexadecimal digits, in the error that a statement raises when the stored key
/// differs.
pub(super) const CHANGED: &str = "umbel_guard stored key ";

/// Text as a string literal of SQL.
pub(super) fn literal(text: &str) -> String {
    let escaped = text.replace('\'', "''").replace('\\', "\\\\");
    format!("E'{escaped}'")
}

pub(super) fn sql(table: &Table, key_name: &str, value: &str, keys: Keys, values: &Values) -> Sql {
    let (schema, table) = (&table.schema, &table.name);
    let (key, value) = (&quoted(key_name), &quoted(value));
    // The key in the form for comparisons, and in the form for writes.
    let (asked, written) = match keys {
        Keys::Text => ("$1::text", format!("{key}::text")),
        Keys::Bytes => ("$1::bytea", key.to_owned()),
        Keys::Integers(2) => ("$1::text::int2", format!("{key}::text")),
        Keys::Integers(4) => ("$1::text::int4", format!("{key}::text")),
        Keys::Integers(_) => ("$1::text::int8", format!("{key}::text")),
        Keys::Uuids => ("$1::text::uuid", format!("{key}::text")),
    };
    let (given, read) = match values {
        Values::Bytes => ("$2::bytea".to_owned(), value.to_owned()),
        Values::Written(name) => (format!("$2::text::{name}"), format!("{value}::text")),
    };
    // SQL has no statement that fails if rows are not as expected. A cast of text that is not a number does
    // fail. It runs after the row was stored and before the statement ends, so the statement is rolled back,
    // and the error has the text.
    let (differs, bytes) = match keys {
        Keys::Bytes => (format!("{key} IS DISTINCT FROM $1::bytea"), key.to_owned()),
        _ => (
            format!("{written} COLLATE \"C\" IS DISTINCT FROM $1::text COLLATE \"C\""),
            format!("convert_to({written}, 'UTF8')"),
        ),
    };
    let check = format!(
        "CASE WHEN {differs} THEN ('{CHANGED}' || encode({bytes}, 'hex'))::int4 ELSE 1 END AS rows"
    );
    let insert = |from: &str| {
        format!(
            "inserted AS (INSERT INTO {table} ({key}, {value}) {from} ON CONFLICT ({key}) DO NOTHING RETURNING {check})"
        )
    };
    let update = |only: &str| {
        format!(
            "updated AS (UPDATE {table} SET {value} = {given} WHERE {key} = {asked} {only}
               AND NOT EXISTS (SELECT FROM inserted) RETURNING {check})"
        )
    };
    let delete = |only: &str| {
        format!("deleted AS (DELETE FROM {table} WHERE {key} = {asked} {only} RETURNING 1 AS rows)")
    };
    let only = "AND EXISTS (SELECT FROM stamped)";
    let (all, stamped) = ("SELECT 1::int8", "SELECT (SELECT count(*) FROM stamped)");
    let put = "(SELECT count(rows) FROM inserted), (SELECT count(rows) FROM updated)";
    let gone = "0::int8, (SELECT count(rows) FROM deleted)";
    Sql {
        get: format!("SELECT {read} FROM {table} WHERE {key} = {asked} LIMIT 1"),
        put: Writing {
            plain: format!(
                "WITH {}, {} {all}, {put}",
                insert(&format!("VALUES ({asked}, {given})")),
                update("")
            ),
            stamped: format!(
                "{}, {} {stamped}, {put}",
                insert(&format!("SELECT {asked}, {given} FROM stamped")),
                update(only)
            ),
        },
        delete: Writing {
            plain: format!("WITH {} {all}, {gone}", delete("")),
            stamped: format!("{} {stamped}, {gone} WHERE $2::int8 IS NOT NULL", delete(only)),
        },
        cursor: format!("DECLARE {CURSOR} NO SCROLL CURSOR FOR SELECT {written} FROM {table}"),
        after: format!("SELECT {written} FROM {table} WHERE {key} > {asked} ORDER BY {key} LIMIT "),
        count: format!("SELECT count(*) FROM {table}"),
        table: table.clone(),
        stamps: format!("{schema}.umbel_guard"),
        schema: schema.clone(),
        column: key_name.to_owned(),
    }
}
