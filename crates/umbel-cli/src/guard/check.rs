//! `umbel guard check`: prints the keys that may be in the table.

use super::Task;
use super::built;
use super::cli::Check;
use crate::key::folded;
use crate::output::Found;
use crate::progress::Progress;
use crate::reading::{Batch, Reader, read};
use anyhow::{Context, Result};
use tokio::runtime::Handle;
use tokio::task::block_in_place;
use umbel_guard::{Answer, DataSet, Guard, Local};

/// Whether there was such a key.
pub(super) async fn run<D: DataSet>(set: D, task: &Task<'_>, args: &Check) -> Result<bool> {
    let guard = task.guard(set).await?;
    if may_lack_rows(&guard, task).await? {
        task.complete(&guard).await?;
    }
    let output = Found::new(args.records.end());
    let mut checker = Checker { guard, ask: args.ask, output, found: false };
    if args.item.is_empty() {
        let progress = Progress::new(true);
        block_in_place(|| read(args.files.clone(), &args.records, &progress, &mut checker))?;
    } else {
        for item in &args.item {
            let key = folded(item.as_encoded_bytes(), args.records.ignore_case);
            if checker.is_there(&key).await? {
                checker.found = true;
                checker.output.write(&[item.as_encoded_bytes(), args.records.end()].concat())?;
            }
        }
    }
    checker.output.flush()?;
    checker.guard.close().await.context("the filter")?;
    Ok(checker.found)
}

/// All keys of a table of this size are compared with the filter, even if the number of rows is right: another program may have
/// deleted a row and inserted another one.
const SMALL: u64 = 100_000;

/// Whether the saved filter may lack rows, as far as the number of rows shows.
async fn may_lack_rows<D: DataSet>(guard: &Guard<D, Local>, task: &Task<'_>) -> Result<bool> {
    if guard.stats().rebuilds > 0 {
        // It was built for this run.
        return Ok(false);
    }
    let set = guard.data_set();
    let mut scan = set.scan(None).await?;
    let rows = set.count(&mut scan).await?;
    drop(scan);
    Ok(rows <= SMALL || built::read(task.folder, set).await? != Some(rows))
}

struct Checker<D: DataSet> {
    guard: Guard<D, Local>,
    ask: bool,
    output: Found,
    found: bool,
}

impl<D: DataSet> Checker<D> {
    async fn is_there(&self, key: &[u8]) -> Result<bool> {
        if self.ask {
            return Ok(self.guard.get(key).await?.is_some());
        }
        Ok(self.guard.contains(key).await != Answer::Absent)
    }
}

impl<D: DataSet> Reader for Checker<D> {
    fn header(&mut self, record: &[u8]) -> Result<()> {
        self.output.write(record)
    }

    fn batch(&mut self, batch: &Batch<'_>) -> Result<bool> {
        let mut keys = Vec::new();
        batch.for_keys(|key| keys.push(key.to_vec()));
        for (number, key) in keys.iter().enumerate() {
            if Handle::current().block_on(self.is_there(key))? {
                self.found = true;
                self.output.write(batch.record(number))?;
            }
        }
        Ok(self.output.is_open() || !self.found)
    }

    fn pause(&mut self) -> Result<()> {
        self.output.flush()
    }
}
