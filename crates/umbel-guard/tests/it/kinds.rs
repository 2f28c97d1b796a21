//! A filter in memory that fails and waits on command; several guards can share it.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;
use umbel::format::OpenError;
use umbel::hash::Digester;
use umbel::{Digest, Portable};
use umbel_guard::{Generation, Kind, Measure, Trouble};

/// Creates exact filters: a digest is in one if it was added.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exact<const SHARED: bool> {
    /// The filter that guards share.
    shared: Arc<Mutex<Option<ExactGeneration>>>,
    made: Arc<AtomicU64>,
    /// Additions to every filter but the first wait for this semaphore, and then fail.
    pub(crate) second: Arc<Mutex<Option<Arc<Semaphore>>>>,
    /// A filter loses the first key of every batch.
    pub(crate) forgets: Arc<AtomicBool>,
}

#[derive(Clone, Debug)]
pub(crate) struct ExactGeneration {
    number: u64,
    digests: Arc<Mutex<HashSet<Digest>>>,
    fails: Arc<Mutex<Option<Arc<Semaphore>>>>,
    forgets: Arc<AtomicBool>,
}

impl<const SHARED: bool> Exact<SHARED> {
    /// Removes the shared filter.
    pub(crate) fn lose(&self) {
        *self.shared.lock().unwrap() = None;
    }
}

impl<const SHARED: bool> Kind for Exact<SHARED> {
    type Generation = ExactGeneration;

    const SHARED: bool = SHARED;

    fn target(&self) -> f64 {
        0.01
    }

    async fn begin(&self, _: u64) -> Result<ExactGeneration, Trouble> {
        let mut shared = self.shared.lock().unwrap();
        if let (true, Some(shared)) = (SHARED, &*shared) {
            return Ok(shared.clone());
        }
        let (number, digests) = (self.made.fetch_add(1, SeqCst) + 1, Arc::default());
        let (fails, forgets) = (self.second.clone(), self.forgets.clone());
        let filter = ExactGeneration { number, digests, fails, forgets };
        *shared = Some(filter.clone());
        Ok(filter)
    }

    fn grace(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn load(&self, _: &Path) -> Result<ExactGeneration, OpenError> {
        Err(std::io::Error::from(std::io::ErrorKind::Unsupported).into())
    }
}

impl Generation for ExactGeneration {
    fn digest(&self, key: &[u8]) -> Digest {
        Portable::seeded(self.number).digest(key)
    }

    fn check(&self) -> u64 {
        self.number
    }

    async fn contains(&self, digest: Digest) -> Result<bool, Trouble> {
        Ok(self.digests.lock().unwrap().contains(&digest))
    }

    async fn add(&self, digest: Digest) -> Result<(), Trouble> {
        let gate = self.fails.lock().unwrap().clone().filter(|_| self.number > 1);
        if let Some(gate) = gate {
            gate.acquire().await.unwrap().forget();
            return Err(Trouble::Full);
        }
        self.digests.lock().unwrap().insert(digest);
        Ok(())
    }

    async fn add_all(&self, digests: &[Digest]) -> Result<(), Trouble> {
        let lost = usize::from(self.forgets.load(SeqCst));
        self.digests.lock().unwrap().extend(&digests[lost.min(digests.len())..]);
        Ok(())
    }

    fn measure(&self) -> Measure {
        let items = self.digests.lock().unwrap().len() as u64;
        Measure { bytes: 0, capacity: 1 << 20, items, fill: 0.0, rate: 0.0 }
    }
}
