//! `umbel add` and `umbel remove`: a filter is read, changed, and put back whole.

use crate::amount::{show_count, show_rate, show_things};
use crate::cli::Change;
use crate::output::{note, replace_file};
use crate::progress::Progress;
use crate::reading::{Batch, Reader, read};
use anyhow::{Context, Result, bail};
use std::path::Path;
use umbel::any::AnyFilter;
use umbel::format::Header;
use umbel::hash::{Digest, Kind};

/// What is done with keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Add,
    Remove,
}

pub(crate) fn run(args: Change, what: What) -> Result<()> {
    #[cfg(feature = "redis")]
    if crate::remote::is_remote(&args.filter) {
        return run_on_server(&args, what);
    }
    let path = &args.filter;
    let name = || path.display().to_string();
    let has_secret = Header::read(path).with_context(name)?.has_secret();
    let said = replace_file(path, has_secret, |file| {
        let mut filter = load_for_lines(path)?;
        match what {
            What::Add => _ = filter.as_insert().with_context(name)?,
            What::Remove => _ = filter.as_remove().with_context(name)?,
        }
        let mut changer = Changer { filter, what, digests: Vec::new(), changed: 0 };
        let records = read(args.files.clone(), &args.records, &Progress::new(true), &mut changer)?;
        changer.filter.to_writer(file, has_secret).with_context(name)?;
        let (changed, rest) = (changer.changed, show_count(records - changer.changed));
        let done = match what {
            What::Add => {
                let new = show_things(changed, "new key");
                format!("{new} added, {rest} that were or seemed to be there")
            }
            What::Remove => format!("{} removed, {rest} not there", show_things(changed, "key")),
        };
        Ok(format!("{done}; wrong for {} now", show_rate(changer.filter.expected_rate())))
    })?;
    note(&said);
    Ok(())
}

/// A filter on a server is changed as keys come, while others ask it.
#[cfg(feature = "redis")]
fn run_on_server(args: &Change, what: What) -> Result<()> {
    let address = crate::remote::Address::of(&args.filter)?;
    if what == What::Remove {
        bail!("{address}: a blocked filter cannot remove keys");
    }
    let filter = crate::remote::Remote::open(&address)?;
    let mut adder = Adder { filter, digests: Vec::new(), fresh: Vec::new(), added: 0 };
    let records = read(args.files.clone(), &args.records, &Progress::new(true), &mut adder)?;
    let new = show_things(adder.added, "new key");
    let rest = show_count(records - adder.added);
    note(&format!("{new} added, {rest} that were or seemed to be there"));
    Ok(())
}

#[cfg(feature = "redis")]
struct Adder {
    filter: crate::remote::Remote,
    digests: Vec<Digest>,
    fresh: Vec<bool>,
    added: u64,
}

#[cfg(feature = "redis")]
impl Reader for Adder {
    fn batch(&mut self, batch: &Batch<'_>) -> Result<bool> {
        batch.digests(self.filter.hasher(), &mut self.digests)?;
        self.fresh.clear();
        self.fresh.resize(self.digests.len(), false);
        self.filter.insert(&self.digests, &mut self.fresh)?;
        self.added += self.fresh.iter().filter(|fresh| **fresh).count() as u64;
        Ok(true)
    }
}

/// The filter in a file.
pub(crate) fn load(path: &Path) -> Result<AnyFilter> {
    AnyFilter::load(path).with_context(|| path.display().to_string())
}

/// The same, if its keys are bytes, as records are: nobody should be told that a number is absent
/// because its digits are.
pub(crate) fn load_for_lines(path: &Path) -> Result<AnyFilter> {
    let filter = load(path)?;
    if filter.hasher().keys() != Kind::Bytes {
        let what = "its keys are numbers, for the program that made it, and lines are none";
        bail!("{}: {what}", path.display());
    }
    Ok(filter)
}

struct Changer {
    filter: AnyFilter,
    what: What,
    digests: Vec<Digest>,
    changed: u64,
}

impl Reader for Changer {
    fn batch(&mut self, batch: &Batch<'_>) -> Result<bool> {
        batch.digests(self.filter.hasher(), &mut self.digests)?;
        let mut fresh = vec![false; self.digests.len()];
        match self.what {
            What::Add => {
                let full = "no room is left: build a larger filter";
                self.filter.insert_digests(&self.digests, &mut fresh).context(full)?;
            }
            What::Remove => {
                let filter = self.filter.as_remove()?;
                for (digest, done) in self.digests.iter().zip(&mut fresh) {
                    *done = filter.remove_digest(*digest);
                }
            }
        }
        self.changed += fresh.iter().filter(|done| **done).count() as u64;
        Ok(true)
    }
}
