//! `umbel merge`: one filter of several.

use crate::amount::{show_bytes, show_rate, show_things};
use crate::change::{not_over_a_state, open, secret_in};
use crate::cli::{Form, Merge};
use crate::input::{is_standard, look_for};
use crate::limit::{Fill, Limit, Overfull};
use crate::output::{
    Existing, is_standard_output, may_write_filter, note, print, warn, write_filter,
};
use crate::outputs::{Output, are_apart, stdout_is_apart};
use crate::progress::Progress;
use anyhow::{Context, Result, anyhow, bail};
use serde_json::json;
use umbel::any::{AnyFilter, ChangeError};
use umbel::error::Incompatible;
use umbel::raw::Any;

pub(crate) fn run(args: &Merge) -> Result<()> {
    let form = args.report.form();
    if form == Form::Json && is_standard_output(&args.output) {
        bail!(
            "--report json writes to standard output, and so does -o {}: write the filter to a file",
            args.output.display()
        );
    }
    if args.intersect && args.overfull {
        bail!(
            "--overfull has no effect with --intersect, which never makes a filter fuller: leave it out"
        );
    }
    look_for(&args.filters)?;
    // A union has all keys of the filter that it replaces. An intersection has lost some of them.
    if args.intersect {
        are_apart([Output::of("-o", Some(&args.output))], &args.filters, "name another file")?;
    }
    if is_standard_output(&args.output) || form == Form::Json {
        stdout_is_apart([Output::of("-o", Some(&args.output))], &args.filters)?;
    }
    may_write_filter(&args.output, args.force)?;
    not_over_a_state(&args.output)?;
    if args.filters.iter().filter(|path| is_standard(path)).count() > 1 {
        bail!("standard input holds one filter: name - once, and files for the others");
    }
    let mut paths = args.filters.iter();
    let first = paths.next().context("expected at least one filter")?;
    let progress = Progress::alone();
    progress.work("reading", None, &first.display().to_string());
    let (header, mut all) = open(first)?;
    let overfull =
        Overfull::of_filter(args.overfull, &all).with_context(|| first.display().to_string())?;
    for path in paths {
        progress.work("merging", None, &path.display().to_string());
        let (_, other) = open(path)?;
        let merged =
            if args.intersect { all.intersect_with(&other) } else { all.merge_with(&other) };
        merged.map_err(|error| {
            let (first, second) = (first.display(), path.display());
            anyhow!("{first} and {second}: {error}{}", remedy(&error, &all, args.intersect))
        })?;
    }
    let fill = Fill::of(&all);
    if !args.intersect && args.filters.len() > 1 {
        let limit = Limit::of(&all, overfull);
        if let Some(warning) = limit.check(0, u64::MAX, fill).context("all filters together")? {
            warn(&format!("{}: {warning}", args.output.display()));
        }
    }
    write_filter(&args.output, &all, secret_in(&header), Existing::of(args.force))?;
    progress.done();
    if form == Form::Json {
        return print(format!(
            "{}\n",
            json!({
                "filters": args.filters.len(),
                "family": all.family(),
                "bytes": all.bytes(),
                "keys_estimated": fill.held,
                "rate_now": fill.rate,
            })
        ));
    }
    note(&format!(
        "{}, {} keys, {}, {}, false positive rate {}",
        show_things(args.filters.len() as u64, "filter"),
        fill.shown(),
        all.family(),
        show_bytes(all.bytes()),
        show_rate(fill.rate)
    ));
    Ok(())
}

/// What makes filters that can be merged.
fn remedy(error: &ChangeError, filter: &AnyFilter, intersect: bool) -> String {
    let name = filter.family();
    match error {
        ChangeError::Unsupported(_) if intersect => {
            "; only bloom, blocked and split filters can".to_owned()
        }
        ChangeError::Unsupported(_) => match filter.raw() {
            Any::Ribbon(_) => "; build one filter from all keys: umbel build --static -o all a.gz b.txt".into(),
            Any::Xor(_) | Any::Fuse(_) | Any::Fuse4(_) => {
                format!("; build one filter from all keys: umbel build --family {name} -o all a.gz b.txt")
            }
            _ => format!("; build one filter from all keys, or both with another family than {name} and the same -n and -p"),
        },
        ChangeError::Family { .. } => "; build both with the same --family, -n and -p".into(),
        ChangeError::Incompatible(Incompatible::Hasher) => {
            "; build both with --hash portable and the same --seed, or add keys to copies of one empty filter".into()
        }
        ChangeError::Full | ChangeError::Incompatible(Incompatible::Room { .. }) => {
            "; build both with the same larger -n, which has room for all keys together".into()
        }
        ChangeError::Incompatible(Incompatible::OutOfMemory { .. }) => String::new(),
        _ => "; build both with the same -n and -p".into(),
    }
}
