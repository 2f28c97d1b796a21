//! Writes: changes to the filter and the journal before the data set is asked, and after it has answered.

use crate::absences::Writing;
use crate::answer::Suspicion;
use crate::data_set::{Claim, DataSet, Outcome, Put};
use crate::epoch::{End, Epoch, Next};
use crate::error::{GuardError, Trouble};
use crate::guard::Inner;
use crate::keep::{Digests, Durability};
use crate::kind::{Generation, Kind};
use crate::within::within;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The wait between two look-ups of a shared filter that is gone.
const REMADE: Duration = Duration::from_millis(10);

impl<D: DataSet, K: Kind> Inner<D, K> {
    /// Locks the writes to this key, if keys can be removed from the filter.
    pub(crate) async fn stripe(&self, key: &[u8]) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        use umbel::hash::Digester;
        if self.stripes.is_empty() {
            return None;
        }
        let digest = umbel::Portable::seeded(2).digest(key).bits();
        Some(self.stripes[digest as usize % self.stripes.len()].lock().await)
    }

    /// Adds a key to all filters, before any other step of a write. If a shared filter is gone, this waits
    /// until it is created again. Also returns whether a trusted filter with deletion lacked the key; no other
    /// write to the key runs in that case.
    pub(crate) async fn add_in_time(
        &self,
        key: &[u8],
    ) -> Result<(Arc<Epoch<K::Generation>>, Digests, bool), GuardError<D::Error>> {
        let mut begun = None;
        loop {
            let epoch = self.epoch.load_full();
            epoch.takes_writes()?;
            match self.add(&epoch, key).await {
                Ok((digests, fresh)) => return Ok((epoch, digests, fresh)),
                Err(GuardError::Filter(Trouble::Gone))
                    if begun.get_or_insert_with(Instant::now).elapsed()
                        < self.options.set_timeout => {}
                Err(error) => return Err(error),
            }
            drop(epoch);
            sleep(REMADE).await;
        }
    }

    async fn add(
        &self,
        epoch: &Epoch<K::Generation>,
        key: &[u8],
    ) -> Result<(Digests, bool), GuardError<D::Error>> {
        let mut digests = [None, None];
        let fresh = self.kind.removes() && self.missed(epoch, key).await;
        if let Some(filter) = &epoch.current {
            let digest = filter.digest(key);
            let added = within(self.options.filter_timeout, pin!(filter.add(digest))).await;
            match added.unwrap_or(Err(Trouble::TimedOut)) {
                Ok(()) => {}
                Err(trouble) if K::SHARED => {
                    self.doubt_filter(&trouble);
                    return Err(GuardError::Filter(trouble));
                }
                // No other guard relies on this filter, and from here on this guard does not either.
                Err(_) => self.suspect(Suspicion::Full),
            }
            digests[0] = Some((filter.check(), digest));
        }
        if let Some(next) = &epoch.next {
            let digest = next.filter.digest(key);
            let added = within(self.options.filter_timeout, pin!(next.mirror(digest))).await;
            if let Err(trouble) = added.unwrap_or(Err(Trouble::TimedOut)) {
                if K::SHARED {
                    return Err(GuardError::Filter(trouble));
                }
                self.broke(next);
            }
            digests[1] = Some((next.filter.check(), digest));
        }
        if K::SHARED && digests == [None, None] {
            // Other guards may rely on a filter that this guard has not found yet.
            return Err(GuardError::Filter(Trouble::Gone));
        }
        Ok((digests, fresh))
    }

    /// Marks the next filter as unusable, because it lacks a key that is about to be written. If it is already
    /// in use, the trust ends.
    pub(crate) fn broke(&self, next: &Next<K::Generation>) {
        // The epoch cannot be replaced here; a rebuild reads the flag under the same lock.
        let used = self.still(|epoch| {
            next.broken.store(true, Relaxed);
            epoch.trusted().is_some_and(|trusted| Arc::ptr_eq(trusted, &next.filter))
        });
        if used {
            self.suspect(Suspicion::Full);
        }
    }

    /// Asks the data set to store a key, with the stamp of this guard if the set stores one.
    pub(crate) async fn put_in_set(
        &self,
        key: &[u8],
        value: &[u8],
        mark: u64,
    ) -> Result<Put, D::Error> {
        loop {
            let incarnation = self.incarnation.load(Relaxed);
            if incarnation == 0 {
                return self.set.put(key, value).await;
            }
            match self.set.put_marked(key, value, self.claim(incarnation, mark)).await {
                Err(error) if self.was_renewed(&error, incarnation).await => {}
                done => return done,
            }
        }
    }

    /// What a write claims. An older copy of the data set with the same incarnation was made after the filter
    /// was built, so a filter that only grows has all its keys. If keys are removed from the filter, the guard
    /// must not write to such a copy.
    fn claim(&self, incarnation: u64, mark: u64) -> Claim {
        let least = if self.kind.removes() { self.confirmed.load(Relaxed) } else { 0 };
        Claim { incarnation, least, mark }
    }

    /// Whether a write was refused only because a rebuild has given this guard another incarnation.
    async fn was_renewed(&self, error: &D::Error, used: u64) -> bool {
        if self.set.outcome(error) != Outcome::Superseded {
            return false;
        }
        let _settled = self.watching.lock().await;
        let offered = self.offered.load(Relaxed);
        if self.incarnation.load(Relaxed) == used && offered != 0 && offered != used {
            // A rebuild was dropped before it knew whether the data set had stored this incarnation.
            self.incarnation.store(offered, Relaxed);
        }
        self.incarnation.load(Relaxed) != used
    }

    async fn delete_in_set(&self, key: &[u8], mark: u64) -> Result<bool, D::Error> {
        loop {
            let incarnation = self.incarnation.load(Relaxed);
            if incarnation == 0 {
                return self.set.delete(key).await;
            }
            match self.set.delete_marked(key, self.claim(incarnation, mark)).await {
                Err(error) if self.was_renewed(&error, incarnation).await => {}
                done => return done,
            }
        }
    }

    /// The error for the caller of a write that the data set refused or did not carry out.
    pub(crate) async fn failed(&self, error: D::Error) -> GuardError<D::Error> {
        if self.set.outcome(&error) == Outcome::Superseded {
            // The cause may be another guard, or another server at this address, so the guard looks before it
            // reports.
            Box::pin(self.look_in_time()).await;
            if let Some(End::Superseded) = self.epoch.load().end {
                return GuardError::Superseded;
            }
        }
        self.attention.notify_one();
        GuardError::DataSet(Arc::new(error))
    }

    /// Records an added key in the journal, and returns the mark of the write.
    pub(crate) async fn record(&self, digests: Digests) -> std::io::Result<u64> {
        match &self.keep {
            None => Ok(self.marks.fetch_add(1, Relaxed) + 1),
            Some(keep) if self.options.durability == Durability::Written => keep.append(digests),
            Some(keep) => {
                let keep = keep.clone();
                let appending = tokio::task::spawn_blocking(move || keep.append(digests));
                appending.await.map_err(std::io::Error::other)?
            }
        }
    }

    /// The mark of a delete. If the data set loses the delete, a filter that was built since lacks the key, and
    /// only the mark shows that.
    pub(crate) fn delete_mark(&self) -> std::io::Result<u64> {
        match &self.keep {
            Some(keep) => keep.deleting(),
            None => Ok(self.marks.fetch_add(1, Relaxed) + 1),
        }
    }

    /// Returns `None` after a time-out.
    pub(crate) async fn delete(&self, key: &[u8], mark: u64) -> Option<Result<bool, D::Error>> {
        within(self.options.set_timeout, pin!(self.delete_in_set(key, mark))).await
    }

    /// Removes one of the two entries of a row that was replaced.
    pub(crate) async fn release_replaced(&self, epoch: &Epoch<K::Generation>, key: &[u8]) {
        if let Some(next) = &epoch.next
            && self.kind.removes()
            && !next.has_kept_one(next.filter.digest(key))
        {
            // The scan may have missed the row, if it was written without the guard. This entry is then its
            // only one.
            next.ghosts.fetch_add(1, Relaxed);
            if let Some(filter) = &epoch.current
                && !self.doubts.has(key)
            {
                filter.remove(filter.digest(key)).await;
            }
            return;
        }
        self.release(epoch, key).await;
    }

    /// Reverses one `add`: for a deleted row, or for a write to a row that already had an entry.
    pub(crate) async fn release(&self, epoch: &Epoch<K::Generation>, key: &[u8]) {
        if !self.kind.removes() {
            return;
        }
        // Writes to this key may still happen, and a filter that was built in the meantime has one entry for
        // all of them.
        if self.doubts.has(key) {
            self.ghosts.fetch_add(1, Relaxed);
            if let Some(next) = &epoch.next {
                next.ghosts.fetch_add(1, Relaxed);
            }
            return;
        }
        if let Some(filter) = &epoch.current {
            filter.remove(filter.digest(key)).await;
        }
        if let Some(next) = &epoch.next {
            // A key that was deleted before the snapshot is not in the next filter.
            let known = epoch.scanned && next.remove(next.filter.digest(key)).await;
            if !known {
                next.ghosts.fetch_add(1, Relaxed);
            }
        }
    }
}

/// A write that was sent to the data set. Unless its outcome is known, it may still happen.
pub(crate) struct Write<'a, D: DataSet, K: Kind> {
    inner: &'a Inner<D, K>,
    key: &'a [u8],
    writing: Option<Writing<'a>>,
    done: bool,
}

impl<'a, D: DataSet, K: Kind> Write<'a, D, K> {
    pub(crate) fn begin(inner: &'a Inner<D, K>, key: &'a [u8]) -> Self {
        let writing = inner.absences.as_ref().map(|absences| absences.writing(key));
        Self { inner, key, writing, done: false }
    }

    /// The write has happened: every later look-up sees it.
    pub(crate) fn done(&mut self) {
        self.done = true;
        self.inner.flights.forget(self.key);
        self.writing = None;
    }

    /// The write did not happen and will not happen.
    pub(crate) fn refused(&mut self) {
        self.inner.counters.failed_writes.one();
        self.done = true;
        self.writing = None;
    }
}

impl<D: DataSet, K: Kind> Drop for Write<'_, D, K> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        self.inner.counters.failed_writes.one();
        // Recorded first, so that a look-up that begins after the flight was forgotten sees the doubt.
        let remembered = self.inner.doubts.add(self.key);
        self.inner.flights.forget(self.key);
        if let Some(writing) = self.writing.take() {
            writing.in_doubt(self.inner.options.doubt_age);
        }
        if self.inner.kind.removes() {
            self.inner.ghosts.fetch_add(1, Relaxed);
        }
        if !remembered {
            self.inner.suspect(Suspicion::Doubts);
        }
    }
}
