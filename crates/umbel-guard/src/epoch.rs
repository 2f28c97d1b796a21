//! What everybody who comes now works with: the state, the filter, and the one that is being built.
//!
//! An epoch never changes; another one takes its place. Whoever works with one holds it, and with it its era: all epochs
//! between two rebuilds have the same. So the guard can wait until nobody is left who began before a rebuild: that is
//! its grace period.

use crate::answer::{Reason, State, Suspicion};
use crate::error::{GuardError, Trouble};
use crate::kind::Generation;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use umbel::Digest;

#[derive(Debug)]
pub(crate) struct Epoch<G> {
    pub(crate) state: State,
    pub(crate) suspicion: Option<Suspicion>,
    /// What answers, or would if it were trusted.
    pub(crate) current: Option<Arc<G>>,
    /// What is being built.
    pub(crate) next: Option<Arc<Next<G>>>,
    /// Whether the scan for `next` has its snapshot, so that whatever is deleted from now on is known there.
    pub(crate) scanned: bool,
    /// Why no more filters are built, if that is so.
    pub(crate) end: Option<End>,
    /// The filter that answered until the guard was closed, while it is being saved.
    pub(crate) closing: Option<Arc<G>>,
    /// What those have in common who need not wait for each other.
    pub(crate) era: Arc<Era>,
}

/// Why a guard builds no more filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// [`Guard::close`](crate::Guard::close) was called.
    Closed,
    /// Another guard was started in front of the data set.
    Superseded,
    /// The background task has ended.
    Untended,
}

impl End {
    /// What calls that need a filter return.
    pub(crate) fn error<E>(self) -> GuardError<E> {
        match self {
            Self::Closed => GuardError::Closed,
            Self::Superseded => GuardError::Superseded,
            Self::Untended => GuardError::Untended,
        }
    }

    /// Whether writes are refused. Without a background task they are safe: they need no filter.
    pub(crate) fn refuses_writes(self) -> bool {
        self != Self::Untended
    }
}

/// Epochs that follow each other without a grace period.
#[derive(Debug, Default)]
pub(crate) struct Era;

impl<G> Epoch<G> {
    pub(crate) fn empty() -> Self {
        Self {
            state: State::Empty,
            suspicion: None,
            current: None,
            next: None,
            scanned: false,
            end: None,
            closing: None,
            era: Arc::default(),
        }
    }

    /// The filter that may be saved: the one that answers, or answered until the guard was closed.
    pub(crate) fn trusted(&self) -> Option<&Arc<G>> {
        match self.state {
            State::Active => self.current.as_ref(),
            _ => self.closing.as_ref(),
        }
    }

    /// Begins another era; the one before it is for [`Ended`].
    pub(crate) fn turn(&mut self) -> Arc<Era> {
        std::mem::take(&mut self.era)
    }

    /// Whether writes are accepted.
    pub(crate) fn takes_writes<E>(&self) -> Result<(), GuardError<E>> {
        match self.end {
            Some(end) if end.refuses_writes() => Err(end.error()),
            _ => Ok(()),
        }
    }

    /// Why it does not answer, if it does not.
    pub(crate) fn reason(&self) -> Reason {
        self.suspicion.map_or(Reason::Building, Reason::Suspect)
    }
}

impl<G> Clone for Epoch<G> {
    fn clone(&self) -> Self {
        let (current, next) = (self.current.clone(), self.next.clone());
        Self { current, next, closing: self.closing.clone(), era: self.era.clone(), ..*self }
    }
}

/// A filter that is being built while writes go on.
#[derive(Debug)]
pub(crate) struct Next<G> {
    pub(crate) filter: Arc<G>,
    /// A key that was written could not be added: it must not be used.
    pub(crate) broken: AtomicBool,
    /// How many keys writes have added.
    pub(crate) mirrored: AtomicU64,
    /// How many keys are in it that have left the data set.
    pub(crate) ghosts: AtomicU64,
    /// What must be removed when the scan is done; `None` once that has happened.
    deferred: Mutex<Option<Vec<Digest>>>,
    /// Keys that were replaced while it was built, and kept the entry of one write.
    kept: Mutex<HashSet<Digest>>,
}

/// The most removals that wait; what is not removed is a ghost.
const DEFERRED: usize = 1 << 20;

impl<G: Generation> Next<G> {
    pub(crate) fn new(filter: G) -> Self {
        Self {
            filter: Arc::new(filter),
            broken: AtomicBool::new(false),
            mirrored: AtomicU64::new(0),
            ghosts: AtomicU64::new(0),
            deferred: Mutex::new(Some(Vec::new())),
            kept: Mutex::default(),
        }
    }

    /// Adds the key of a write. If that fails, the write must not happen, or the filter must not be used.
    pub(crate) async fn mirror(&self, digest: Digest) -> Result<(), Trouble> {
        self.mirrored.fetch_add(1, Relaxed);
        self.filter.add(digest).await
    }

    /// Whether an earlier write has left an entry for this key, which replaced a row; if not, this one must.
    pub(crate) fn has_kept_one(&self, digest: Digest) -> bool {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < DEFERRED { !kept.insert(digest) } else { kept.contains(&digest) }
    }

    /// Removes what the snapshot or a write has added, or will have when the scan is done. Whether it
    /// is removed.
    pub(crate) async fn remove(&self, digest: Digest) -> bool {
        {
            let mut deferred = self.deferred.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(digests) = &mut *deferred {
                let room = digests.len() < DEFERRED;
                if room {
                    digests.push(digest);
                }
                return room;
            }
        }
        self.filter.remove(digest).await;
        true
    }

    /// The scan is done: removes what waited, and lets others remove.
    pub(crate) async fn settle(&self) {
        loop {
            let digests = {
                let mut deferred = self.deferred.lock().unwrap_or_else(PoisonError::into_inner);
                match &mut *deferred {
                    Some(digests) if !digests.is_empty() => std::mem::take(digests),
                    _ => {
                        *deferred = None;
                        return;
                    }
                }
            };
            for digest in digests {
                self.filter.remove(digest).await;
            }
        }
    }
}

/// Eras that are over, each until nobody is left who began in it. A rebuild that is given up while it waits leaves
/// them to the next one.
#[derive(Debug, Default)]
pub(crate) struct Ended(Mutex<Vec<Arc<Era>>>);

impl Ended {
    pub(crate) fn add(&self, era: Arc<Era>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(era);
    }

    fn is_over(&self) -> bool {
        let mut eras = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // `get_mut` and not the count: it sees all that the others did before they let go.
        eras.retain_mut(|era| Arc::get_mut(era).is_none());
        eras.is_empty()
    }

    /// Returns when nobody holds an epoch of an era that is over.
    pub(crate) async fn grace(&self) {
        while !self.is_over() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
