//! `umbel add` and `umbel remove`: a filter is read, changed, and put back whole.

use crate::amount::show_count;
use crate::cli::Change;
use crate::output::replace_file;
use crate::progress::Progress;
use crate::reading::{Batch, Reader, read};
use anyhow::{Context, Result};
use std::path::Path;
use umbel::any::AnyFilter;
use umbel::format::Header;
use umbel::hash::{Digest, Digester};

/// What is done with keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Add,
    Remove,
}

pub(crate) fn run(args: Change, what: What) -> Result<()> {
    let path = &args.filter;
    let has_secret = Header::read(path).with_context(|| path.display().to_string())?.has_secret();
    replace_file(path, has_secret, |file| {
        let mut filter = load(path)?;
        match what {
            What::Add => _ = filter.as_insert().with_context(|| path.display().to_string())?,
            What::Remove => _ = filter.as_remove().with_context(|| path.display().to_string())?,
        }
        let mut changer = Changer { filter, what, digests: Vec::new(), changed: 0 };
        let records = read(args.files.clone(), &args.records, &Progress::new(true), &mut changer)?;
        changer.filter.to_writer(file, has_secret).with_context(|| path.display().to_string())?;
        let (changed, rest) = (changer.changed, records - changer.changed);
        match what {
            What::Add => eprintln!(
                "umbel: {} keys added, {} were there already or seemed so",
                show_count(changed),
                show_count(rest)
            ),
            What::Remove => eprintln!(
                "umbel: {} keys removed, {} were not there",
                show_count(changed),
                show_count(rest)
            ),
        }
        Ok(())
    })
}

/// The filter in a file.
pub(crate) fn load(path: &Path) -> Result<AnyFilter> {
    AnyFilter::load(path).with_context(|| path.display().to_string())
}

struct Changer {
    filter: AnyFilter,
    what: What,
    digests: Vec<Digest>,
    changed: u64,
}

impl Reader for Changer {
    fn header(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn batch(&mut self, batch: &Batch<'_>) -> Result<bool> {
        self.digests.clear();
        let hasher = *self.filter.hasher();
        batch.for_keys(|key| self.digests.push(hasher.digest(key)))?;
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

    fn pause(&mut self) -> Result<()> {
        Ok(())
    }
}
