//! `umbel guard attach`: builds the filter of a table, and keeps it.

use super::cli::Attach;
use crate::amount::{show_bytes, show_count, show_rate};
use crate::output::print;
use anyhow::{Context, Result};
use umbel_guard::DataSet;

pub(super) async fn run<D: DataSet>(set: D, args: &Attach) -> Result<bool> {
    let guard = args.filter.opened(set).await?;
    let keys = guard.rebuild().await.context("the filter")?;
    let stats = guard.stats();
    guard.close().await.context("the filter")?;
    if let Some(filter) = stats.filter {
        print(format!(
            "{} keys, {}, rate {}\n",
            show_count(keys),
            show_bytes(filter.bytes),
            show_rate(filter.rate)
        ))?;
    }
    Ok(true)
}
