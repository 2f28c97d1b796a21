//! Scans, page by page in the order of the keys.

use super::Sql;
use super::error::SqliteError;
use super::key::Key;
use crate::data_set::Page;
use rusqlite::{Connection, params};
use std::sync::{Arc, Mutex};

/// A scan of a [`Sqlite`](super::Sqlite), which sees one moment.
#[derive(Debug)]
pub struct SqliteScan {
    /// In a transaction.
    pub(super) connection: Arc<Mutex<Connection>>,
    pub(super) after: Option<Key<'static>>,
}

pub(super) fn page_of(
    connection: &Connection,
    sql: &Sql,
    after: &mut Option<Key<'static>>,
    limit: usize,
) -> Result<Page, SqliteError> {
    let mut statement =
        connection.prepare_cached(if after.is_some() { &sql.page } else { &sql.first })?;
    let limit = i64::try_from(limit.max(1)).unwrap_or(i64::MAX);
    let mut rows = match &*after {
        Some(after) => statement.query(params![limit, after])?,
        None => statement.query(params![limit])?,
    };
    let (mut page, mut seen, mut last) = (Page::new(), 0, None);
    while let Some(row) = rows.next()? {
        let key = Key::of(row.get_ref(0)?);
        match &key {
            Some(Key::Text(bytes) | Key::Blob(bytes)) => page.push(bytes),
            Some(Key::Integer(number)) => page.push(number.to_string().as_bytes()),
            // Not a valid key, but counted.
            Some(Key::Real(_)) | None => page.push(b""),
        }
        seen += 1;
        if seen == limit {
            last = key.map(Key::into_owned);
        }
    }
    drop(rows);
    *after = last;
    Ok(if seen < limit { page.last() } else { page })
}
