//! Keys of a table that are looked up in its filter.

use anyhow::Result;
use umbel_guard::{Answer, DataSet, Guard, Local};

/// Keys that are read at a time.
const PAGE: usize = 2_048;

/// Keys of the table that were looked up in the filter, and those that it lacks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Audit {
    pub(super) keys: u64,
    pub(super) missed: u64,
}

/// When an audit ends before the last key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// After this many keys.
    After(u64),
    /// At the first key that the filter lacks.
    AtMiss,
}

/// Looks up this many keys of a table that has more. Of integers, which mostly count up, one half are the last ones, where rows are added.
pub(super) async fn audit_part<D: DataSet>(
    guard: &Guard<D, Local>,
    scan: &mut D::Scan,
    limit: u64,
) -> Result<Audit> {
    let set = guard.data_set();
    let are_integers = *set.canonical(b"007") == *b"7";
    let tail = if are_integers { limit / 2 } else { 0 };
    let head = audit(guard, scan, End::After(limit - tail)).await?;
    let room = i64::try_from(tail).unwrap_or(i64::MAX);
    let Some(last) = (if tail > 0 { last_integer(set).await? } else { None }) else {
        return Ok(head);
    };
    // Behind those of the first half, unless there are gaps: then some are looked up twice, or fewer than there is room for.
    let after = last.saturating_sub(room).to_string();
    let mut scan = set.scan(Some(after.as_bytes())).await?;
    let tail = audit(guard, &mut scan, End::After(tail)).await?;
    Ok(Audit { keys: head.keys + tail.keys, missed: head.missed + tail.missed })
}

/// The last key of a table of integers, by bisection: data sets have no scan from behind.
async fn last_integer<D: DataSet>(set: &D) -> Result<Option<i64>> {
    let (mut last, mut low, mut high) = (None, i64::MIN, i64::MAX);
    while low < high {
        // Rounded down, so that it is below `high`.
        let middle = (low >> 1) + (high >> 1) + (low & high & 1);
        let mut scan = set.scan(Some(middle.to_string().as_bytes())).await?;
        let page = set.page(&mut scan, 1).await?;
        let first = page.keys().next().and_then(|key| std::str::from_utf8(key).ok());
        match first.and_then(|key| key.parse().ok()) {
            Some(key) => {
                last = Some(key);
                low = key;
                if key == i64::MAX {
                    break;
                }
            }
            None if middle == low => break,
            None => high = middle,
        }
    }
    Ok(last)
}

/// Looks up keys of the table in the filter, in their order. A guard that only reads removes nothing from it, so it has all of them.
pub(super) async fn audit<D: DataSet>(
    guard: &Guard<D, Local>,
    scan: &mut D::Scan,
    end: End,
) -> Result<Audit> {
    let mut audit = Audit::default();
    loop {
        let some = match end {
            End::After(limit) if audit.keys >= limit => break,
            End::After(limit) => PAGE.min(usize::try_from(limit - audit.keys).unwrap_or(PAGE)),
            End::AtMiss if audit.missed > 0 => break,
            End::AtMiss => PAGE,
        };
        let page = guard.data_set().page(scan, some).await?;
        for key in page.keys().take(some) {
            audit.keys += 1;
            audit.missed += u64::from(guard.contains(key).await == Answer::Absent);
        }
        if page.is_last() {
            break;
        }
    }
    Ok(audit)
}
