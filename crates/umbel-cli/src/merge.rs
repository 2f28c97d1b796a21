//! `umbel merge`: one filter of several.

use crate::amount::{show_bytes, show_rate};
use crate::change::load;
use crate::cli::Merge;
use crate::output::{may_write_filter, note, write_filter};
use anyhow::{Context, Result};
use umbel::format::Header;

pub(crate) fn run(args: Merge) -> Result<()> {
    may_write_filter(&args.output, args.force)?;
    let mut paths = args.filters.iter();
    let first = paths.next().context("a filter at least")?;
    let mut all = load(first)?;
    for path in paths {
        let other = load(path)?;
        let merged =
            if args.intersect { all.intersect_with(&other) } else { all.merge_with(&other) };
        merged.with_context(|| format!("{} and {}", first.display(), path.display()))?;
    }
    let header = Header::read(first).with_context(|| first.display().to_string())?;
    write_filter(&args.output, &all, header.has_secret())?;
    note(&format!(
        "{} of {} filters in {}, wrong for {}",
        all.family(),
        args.filters.len(),
        show_bytes(all.bytes()),
        show_rate(all.expected_rate())
    ));
    Ok(())
}
