//! Lines that come again in one run, where keys can be removed.
//!
//! A filter that removes keys counts them: of two keys that look the same it keeps two copies, so that to remove one does not lose the
//! other. It cannot tell a key that comes again from another one that looks the same. So the lines of a run are told apart here, by 128
//! bits each: equal lines of one run count once, and no line is ever left out because another one looks like it.

use crate::amount::show_count;
use crate::exact::Exact;
use crate::reading::Batch;
use anyhow::{Result, bail};
use umbel::any::AnyHasher;
use umbel::hash::{Digest, Digester};

/// Leaves out lines that the run has met before, if the filter removes keys.
pub(crate) struct Copies {
    met: Option<Exact>,
    keys: Vec<(u128, Digest)>,
    /// How many lines were left out.
    pub(crate) repeated: u64,
}

impl Copies {
    /// For a filter that removes keys.
    pub(crate) fn once() -> Self {
        Self {
            met: Some(Exact::new(crate::secret::fresh(), u64::MAX)),
            keys: Vec::new(),
            repeated: 0,
        }
    }

    /// For a filter in which a key is or is not, however often it comes.
    pub(crate) fn any() -> Self {
        Self { met: None, keys: Vec::new(), repeated: 0 }
    }

    /// The digests of the keys that count, behind those that are there.
    pub(crate) fn add_digests(
        &mut self,
        batch: &Batch<'_>,
        hasher: &AnyHasher,
        digests: &mut Vec<Digest>,
    ) -> Result<()> {
        let Some(met) = &mut self.met else {
            batch.add_digests(hasher, digests);
            return Ok(());
        };
        self.keys.clear();
        let hashing = met.hashing();
        batch.for_keys(|key| self.keys.push((hashing.digest(key), hasher.digest(key))));
        let before = digests.len();
        for (key, digest) in &self.keys {
            match met.insert(*key) {
                Ok(true) => digests.push(*digest),
                Ok(false) => {}
                Err(_) => bail!(
                    "the system does not have the memory to tell {} lines apart, which a filter with removal needs: give fewer lines in one run",
                    show_count(met.len())
                ),
            }
        }
        self.repeated += (batch.len() - (digests.len() - before)) as u64;
        Ok(())
    }
}
