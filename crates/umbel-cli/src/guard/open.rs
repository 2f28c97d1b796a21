//! Opening what is guarded, for verbs that may write to it and for others.

use super::Task;
use super::attached::VARIABLE;
use anyhow::{Context, Result, anyhow};
use std::error::Error;
use std::path::Path;
use umbel_guard::set::{Postgres, PostgresError, Redb, Sqlite, SqliteError};

/// How a data set is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// Nothing is written.
    Reading,
    /// A guard writes, and keeps its stamp in the data set.
    Writing,
    /// A guard writes, and creates nothing.
    WritingUnstamped,
}

pub(super) fn redb(path: &Path, task: &Task<'_>, opening: Opening) -> Result<Redb> {
    let table = &task.attached.table;
    let opened = match opening {
        Opening::Reading => Redb::read_only(path, table),
        Opening::Writing => Redb::open(path, table),
        Opening::WritingUnstamped => Redb::open_without_stamp(path, table),
    };
    opened.with_context(|| path.display().to_string())
}

pub(super) fn sqlite(path: &Path, task: &Task<'_>, opening: Opening) -> Result<Sqlite> {
    let (table, (key, value)) = (&task.attached.table, columns(task));
    let opened = match opening {
        Opening::Reading => Sqlite::read_only(path, table, key, value),
        Opening::Writing => Sqlite::open(path, table, key, value),
        Opening::WritingUnstamped => Sqlite::open_without_stamp(path, table, key, value),
    };
    opened.map_err(|error| match &error {
        SqliteError::Missing { what } if what.starts_with("column ") => {
            anyhow!("{}: {error}; {NAME_COLUMNS}", path.display())
        }
        _ => anyhow::Error::new(error).context(path.display().to_string()),
    })
}

/// What to do about a column that is not there.
const NAME_COLUMNS: &str = "name the columns with --key-column and --value-column";

/// The address may have a password in it, and is not told.
pub(super) async fn postgres(url: &str, task: &Task<'_>, opening: Opening) -> Result<Postgres> {
    let (table, (key, value)) = (&task.attached.table, columns(task));
    let set = match Postgres::connect(url, table, key, value).await {
        Err(error @ PostgresError::Connect(_)) if task.lacks_password => {
            let mut cause = error.source();
            while let Some(next) = cause.and_then(Error::source) {
                cause = Some(next);
            }
            let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
            return Err(anyhow!(
                "PostgreSQL: {error}{cause}; {} keeps no password: give the URL with its password again, in {VARIABLE} or with --postgres",
                task.name()
            ));
        }
        Err(error @ PostgresError::Missing { .. }) if error.to_string().contains(" column ") => {
            return Err(anyhow!("PostgreSQL: {error}; {NAME_COLUMNS}"));
        }
        set => set.context("PostgreSQL")?,
    };
    // What is only read is left to the guard.
    Ok(if opening == Opening::WritingUnstamped { set.without_stamp() } else { set })
}

fn columns<'a>(task: &'a Task<'_>) -> (&'a str, &'a str) {
    task.attached.columns.as_ref().map_or(("", ""), |(key, value)| (key, value))
}
