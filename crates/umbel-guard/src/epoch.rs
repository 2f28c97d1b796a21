//! The snapshot that every call works with: the state, the filter, and the filter that is being built.
//!
//! An epoch is immutable; a change replaces it. A call holds the epoch it works with, and with it an era, which
//! all epochs between two rebuilds share. So a rebuild can wait until all calls that began before it have
//! ended. That wait is its grace period.

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
    /// The filter that answers, or would answer if it were trusted.
    pub(crate) current: Option<Arc<G>>,
    /// The filter that is being built.
    pub(crate) next: Option<Arc<Next<G>>>,
    /// Whether the scan for `next` has its snapshot. A delete after that moment removes a key that `next` has.
    pub(crate) scanned: bool,
    /// Why the guard builds no more filters; `None` while it does.
    pub(crate) end: Option<End>,
    /// The filter that answered until the guard was closed. It is kept while it is being saved.
    pub(crate) closing: Option<Arc<G>>,
    /// Shared by all epochs that need no grace period between them.
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
    /// The error for calls that need a filter.
    pub(crate) fn error<E>(self) -> GuardError<E> {
        match self {
            Self::Closed => GuardError::Closed,
            Self::Superseded => GuardError::Superseded,
            Self::Untended => GuardError::Untended,
        }
    }

    /// Whether the guard refuses writes. Without a background task writes stay safe, because they need no
    /// filter.
    pub(crate) fn refuses_writes(self) -> bool {
        self != Self::Untended
    }
}

/// Shared by epochs that follow each other without a grace period.
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

    /// Begins a new era, and returns the old one for [`Ended`].
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

    /// Why the filter does not answer, if it does not.
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

/// A filter that is built while writes continue.
#[derive(Debug)]
pub(crate) struct Next<G> {
    pub(crate) filter: Arc<G>,
    /// A written key could not be added, so this filter must not be used.
    pub(crate) broken: AtomicBool,
    /// The number of keys that writes have added.
    pub(crate) mirrored: AtomicU64,
    /// The number of keys in the filter that were deleted from the data set.
    pub(crate) ghosts: AtomicU64,
    /// Removals that wait for the end of the scan; `None` once they are done.
    deferred: Mutex<Option<Vec<Digest>>>,
    /// Keys that were replaced during the build. The filter keeps one write's entry for each.
    kept: Mutex<HashSet<Digest>>,
}

/// The maximum number of waiting removals. A key that is not removed is a ghost.
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

    /// Whether an earlier write that replaced this row has left an entry for its key. If not, this write must
    /// leave one.
    pub(crate) fn has_kept_one(&self, digest: Digest) -> bool {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < DEFERRED { !kept.insert(digest) } else { kept.contains(&digest) }
    }

    /// Removes an entry that the snapshot or a write has added, or will have added when the scan is done.
    /// Returns whether the entry is removed.
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

    /// The scan is done: applies the waiting removals, and lets later removals happen at once.
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

/// Past eras that calls may still hold. A rebuild that is given up during its wait leaves them to the next one.
#[derive(Debug, Default)]
pub(crate) struct Ended(Mutex<Vec<Arc<Era>>>);

impl Ended {
    pub(crate) fn add(&self, era: Arc<Era>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(era);
    }

    fn is_over(&self) -> bool {
        let mut eras = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // `get_mut`, not the reference count: it synchronizes with the drops of other holders.
        eras.retain_mut(|era| Arc::get_mut(era).is_none());
        eras.is_empty()
    }

    /// Returns when no call holds an epoch of a past era.
    pub(crate) async fn grace(&self) {
        while !self.is_over() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
