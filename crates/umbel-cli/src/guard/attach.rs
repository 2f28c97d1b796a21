//! `umbel guard attach`: builds the filter of a table, and keeps it.

use super::Task;
use super::attached::{Attached, Purpose};
use super::built;
use crate::amount::{show_bytes, show_rate, show_things};
use crate::output::note;
use anyhow::{Context, Result, bail};
use umbel_guard::DataSet;

pub(super) async fn run<D: DataSet>(set: D, task: &Task<'_>, purpose: Purpose) -> Result<bool> {
    let guard = task.opened(set).await?;
    claim(task, purpose)?;
    let keys = guard.rebuild().await.context("the filter")?;
    let stats = guard.stats();
    task.attached.write(task.folder)?;
    built::write(task.folder, guard.data_set(), keys).await?;
    guard.close().await.context("the filter")?;
    if let Some(filter) = stats.filter {
        note(&format!(
            "{}, {}, room for {}; false positive rate now {}",
            show_things(keys, "key"),
            show_bytes(filter.bytes),
            show_things(filter.capacity, "key"),
            show_rate(filter.rate)
        ));
    }
    Ok(true)
}

/// Refuses a folder that another process attached between the look at its options and the lock of the folder.
pub(super) fn claim(task: &Task<'_>, purpose: Purpose) -> Result<()> {
    if purpose == Purpose::Replace {
        return Ok(());
    }
    let same = |other: &Attached| other.is_same_table(&task.attached);
    if Attached::read(task.folder)?.is_some_and(|other| !same(&other)) {
        bail!(
            "{}: another process attached this folder meanwhile; run the command again",
            task.name()
        );
    }
    Ok(())
}
