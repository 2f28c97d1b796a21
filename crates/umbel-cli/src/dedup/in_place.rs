//! Files that are de-duplicated themselves.
//!
//! A file is replaced when all of it was read, before the next one is read. Every line that a file loses is in a file that was replaced before,
//! or earlier in the same file, so no line is lost wherever a run ends.

use super::seen::Seen;
use super::stream::{Stream, Totals, Wanted};
use crate::cli::Dedup;
use crate::input::{LONGEST, is_packed, is_standard};
use crate::output::{Lines, are_one, replace_file};
use crate::progress::Progress;
use crate::reading::read;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// Refuses what cannot be replaced, before any file is.
pub(super) fn check(files: &[PathBuf]) -> Result<()> {
    for (number, path) in files.iter().enumerate() {
        let name = || path.display().to_string();
        if is_standard(path) {
            bail!("--in-place replaces files, and - is standard input: leave - or --in-place out");
        }
        let there = path.metadata().with_context(name)?;
        if there.is_dir() {
            bail!("{}: is a directory", name());
        }
        if !there.is_file() {
            bail!("{}: expected a file that can be replaced, got a device or a pipe", name());
        }
        // The second time, all of its lines would be repeated.
        if let Some(other) = files[..number].iter().find(|other| are_one(other, path)) {
            bail!("{} and {} are one file: name it once", other.display(), name());
        }
        let mut first = Vec::new();
        let file = File::open(path).with_context(name)?;
        file.take(LONGEST as u64).read_to_end(&mut first).with_context(name)?;
        if is_packed(&first) {
            bail!("{}: is packed, and --in-place would write it unpacked: use -o", name());
        }
    }
    Ok(())
}

/// De-duplicates all files.
pub(super) fn run(args: &Dedup, seen: &mut Seen) -> Result<Totals> {
    let mut totals = Totals::default();
    for path in &args.files {
        let name = || path.display().to_string();
        totals = replace_file(path, false, |file| {
            let mut output = Lines::new(file, name(), args.records.end());
            let mut stream = Stream::new(seen, Wanted::First, &mut output, None, totals);
            read(vec![path.clone()], &args.records, &Progress::new(true), &mut stream)?;
            Ok(stream.totals)
        })?;
    }
    Ok(totals)
}
