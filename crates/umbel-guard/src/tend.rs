//! The background work of a guard: it watches the data set, audits, measures, saves, and rebuilds the filter
//! when necessary.
//!
//! | finding | what follows |
//! |---|---|
//! | no filter is trusted | the guard builds one; after a failure it tries again, with growing waits |
//! | a key of the data set is not in the filter | the trust ends, and the guard builds a filter |
//! | the data set has [another identity](DataSet::identity) | the same |
//! | another guard has [begun](DataSet::begin) in front of the data set | the trust ends for good, and writes are refused |
//! | another program has [written](DataSet::foreign_writes) to the data set | the guard compares all keys with the filter; where keys can be removed from it, it also builds another one after the [rest](crate::Builder::rest) |
//! | the rate is 1.25 times the target, expected or measured | the guard builds a filter, while this one answers |
//! | a quarter of the keys in the filter were deleted from the data set | the same |
//! | the journal is long | the guard saves the filter |
//!
//! Two tasks run in the background. One only watches the data set, about once a second. It must not wait for
//! the other one, which may compare or read all keys. If either task ends, because it panicked or because its
//! runtime was shut down, the guard no longer answers `Absent`.

use crate::answer::State;
use crate::data_set::DataSet;
use crate::epoch::End;
use crate::error::RebuildError;
use crate::event::{Event, Renewal};
use crate::guard::{Guard, Inner};
use crate::kind::{Generation, Kind, Measure};
use crate::rebuild::Signs;
use crate::within::within;
use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::time::Instant;
use tracing::Instrument;

/// The first wait after a failed rebuild.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LAST_WAIT: Duration = Duration::from_secs(30);
/// How often the guard looks at the data set, and how long the other task sleeps at most.
const ROUND: Duration = Duration::from_secs(1);
/// After a comparison of all keys with the filter, the next one waits this many times its duration.
const SWEEP_REST: u32 = 4;

impl<D: DataSet, K: Kind> Guard<D, K> {
    pub(crate) fn tend_in_background(&self) {
        let inner = Arc::downgrade(&self.inner);
        let span = tracing::info_span!("guard");
        tokio::spawn(watch_for_ever(inner.clone()).instrument(span.clone()));
        tokio::spawn(tend_for_ever(inner).instrument(span));
    }

    /// Runs one round of background work: a look at the data set, an audit, a measurement of the rate, and a
    /// checkpoint or a rebuild if one is due. Only needed [without
    /// background](crate::Builder::without_background).
    pub async fn tend(&self) {
        self.inner.look_in_time().await;
        self.inner.tend().await;
    }

    /// Looks up some keys of the data set in the filter, and returns how many are missing. One missing key ends the trust.
    ///
    /// # Errors
    ///
    /// If the data set could not be read.
    pub async fn audit(&self, keys: usize) -> Result<u64, RebuildError<D::Error>> {
        self.inner.audit(keys).await
    }
}

async fn tend_for_ever<D: DataSet, K: Kind>(inner: Weak<Inner<D, K>>) {
    let mut task = Task::new(inner);
    while let Some(guard) = task.guard() {
        guard.tend().await;
        let (attention, wait) = (guard.attention.clone(), guard.until_retry());
        let wait = wait.min(guard.options.audit_every).min(ROUND);
        // The task must not keep the guard alive while it sleeps.
        drop(guard);
        let _ = tokio::time::timeout(wait, attention.notified()).await;
    }
}

async fn watch_for_ever<D: DataSet, K: Kind>(inner: Weak<Inner<D, K>>) {
    let mut task = Task::new(inner);
    while let Some(guard) = task.guard() {
        guard.look_in_time().await;
        drop(guard);
        tokio::time::sleep(ROUND).await;
    }
}

/// A background task. If it panics, or its runtime is shut down, the trust in the filter ends.
struct Task<D: DataSet, K: Kind> {
    inner: Weak<Inner<D, K>>,
    left: bool,
}

impl<D: DataSet, K: Kind> Task<D, K> {
    const fn new(inner: Weak<Inner<D, K>>) -> Self {
        Self { inner, left: false }
    }

    /// The guard; `None` once there is no more work for it.
    fn guard(&mut self) -> Option<Arc<Inner<D, K>>> {
        let guard = self.inner.upgrade().filter(|guard| guard.epoch.load().end.is_none());
        self.left = guard.is_none();
        guard
    }
}

impl<D: DataSet, K: Kind> Drop for Task<D, K> {
    fn drop(&mut self) {
        if !self.left
            && let Some(guard) = self.inner.upgrade()
        {
            tracing::error!("a background task has ended; the filter is used no more");
            guard.end(End::Untended);
        }
    }
}

impl<D: DataSet, K: Kind> Inner<D, K> {
    /// The time until a failed rebuild is tried again.
    fn until_retry(&self) -> Duration {
        let retry = self.tending().retry;
        retry.map_or(Duration::MAX, |(at, _)| at.saturating_duration_since(Instant::now()))
    }

    /// One round, after a look at the data set.
    async fn tend(&self) {
        if self.epoch.load().end.is_some() {
            return;
        }
        let active = self.epoch.load().state == State::Active;
        if active && !self.tending().swept {
            self.sweep().await;
        }
        if self.audit_is_due()
            && let Err(error) = self.audit(self.options.audit_keys).await
        {
            tracing::debug!(%error, "no keys to audit");
        }
        self.look().await;
        if self.is_time() {
            self.rebuild_or_wait().await;
        }
        let journaled = self.keep.as_ref().map(|keep| keep.journaled());
        let active = self.epoch.load().state == State::Active;
        let due =
            journaled.is_some_and(|adds| adds.is_none_or(|adds| adds >= self.options.checkpoint));
        if due
            && active
            && let Ok(_one) = self.building.try_lock()
            && let Err(error) = self.checkpoint().await
        {
            tracing::error!(%error, "the filter could not be saved");
            self.options.tell(|| Event::NotSaved { error: error.to_string() });
        }
    }

    /// Whether an audit is due. Without a background task, one is due in every round.
    fn audit_is_due(&self) -> bool {
        let every = self.options.audit_every;
        let mut tending = self.tending();
        let waits = tending.audited.is_some_and(|at| at.elapsed() < every);
        if self.options.audit_keys == 0 || (self.options.background && waits) {
            return false;
        }
        tending.audited = Some(Instant::now());
        true
    }

    /// Compares all keys of the data set with the filter, because another program has written to the data set.
    async fn sweep(&self) {
        let begun = Instant::now();
        if self.tending().sweep_after.is_some_and(|after| begun < after) {
            return;
        }
        let signs = Signs::for_sweep(self);
        match self.sweep_pages().await {
            Ok(keys) => {
                tracing::info!(keys, took = ?begun.elapsed(), "all keys were compared with the filter");
                signs.done();
            }
            Err(error) => {
                tracing::warn!(%error, "the keys were not compared with the filter");
                drop(signs);
            }
        }
        self.tending().sweep_after = Some(Instant::now() + begun.elapsed() * SWEEP_REST);
    }

    async fn sweep_pages(&self) -> Result<u64, RebuildError<D::Error>> {
        let mut scan = self.timed(self.set.scan(None)).await?;
        let mut keys = 0;
        // A filter that is not trusted is rebuilt anyway.
        while self.epoch.load().state == State::Active {
            let begun = Instant::now();
            let page = self.timed(self.set.page(&mut scan, self.options.page)).await?;
            for key in page.keys() {
                if self.lacks(key).await {
                    self.miss();
                    return Ok(keys);
                }
            }
            keys += page.len() as u64;
            self.counters.audited.add(page.len() as u64);
            if page.is_last() {
                break;
            }
            self.rest(begun.elapsed()).await;
        }
        Ok(keys)
    }

    pub(crate) async fn audit(&self, keys: usize) -> Result<u64, RebuildError<D::Error>> {
        let after = self.options.set_timeout;
        let place = self.tending().place.take();
        let reading = async {
            let mut scan = self.set.scan(place.as_deref()).await?;
            self.set.page(&mut scan, keys).await
        };
        let page = match within(after, pin!(reading)).await {
            Some(page) => page.map_err(RebuildError::DataSet)?,
            None => return Err(RebuildError::TimedOut { after }),
        };
        let mut missed = 0;
        for key in page.keys().take(keys) {
            self.counters.audited.one();
            if self.lacks(key).await {
                missed += 1;
                tracing::warn!("a key of the data set is not in the filter");
                self.miss();
            }
        }
        // After the last key, the audit starts again at the first.
        let last = page.keys().take(keys).next_back().filter(|_| !page.is_last());
        self.tending().place = last.map(<[u8]>::to_vec);
        Ok(missed)
    }

    /// Whether a key that was read from the data set still exists there and is not in the filter.
    async fn lacks(&self, key: &[u8]) -> bool {
        let epoch = self.epoch.load_full();
        if !self.missed(&epoch, key).await {
            return false;
        }
        if !self.kind.removes() {
            return true;
        }
        // The key may have been deleted since. No other write to it runs while the data set is queried again.
        let _alone = self.stripe(key).await;
        let there = within(self.options.set_timeout, pin!(self.set.get(key))).await;
        // Without an answer the key may exist.
        !matches!(there, Some(Ok(None))) && self.missed(&epoch, key).await
    }

    /// Measures the filter, if many keys were added since the last measurement.
    async fn look(&self) {
        let puts = self.counters.puts.get();
        {
            let mut tending = self.tending();
            let due = tending
                .measure
                // A rebuild that the caller started may have measured the filter after `puts` was read.
                .is_none_or(|measure| {
                    puts.saturating_sub(tending.measured_at) > measure.capacity / 32
                });
            if !due {
                return;
            }
            tending.measured_at = puts;
        }
        self.measure().await;
    }

    pub(crate) async fn measure(&self) -> Option<Measure> {
        let filter = self.epoch.load().current.clone()?;
        // Reads the whole filter.
        let measure = tokio::task::spawn_blocking(move || filter.measure()).await.ok()?;
        self.tending().measure = Some(measure);
        Some(measure)
    }

    /// Whether another filter should be built now.
    fn is_time(&self) -> bool {
        let (state, ghosts) = (self.epoch.load().state, self.ghosts.load(Relaxed));
        let tending = self.tending();
        if tending.retry.is_some_and(|(at, _)| Instant::now() < at) {
            return false;
        }
        if state != State::Active || tending.wanted {
            return true;
        }
        let rested = tending.since.is_none_or(|since| since.elapsed() >= self.options.rest);
        let limit = self.kind.target() * self.options.drift;
        let haunted = |measure: Measure| {
            let share = self.options.ghosts * measure.items.max(measure.capacity) as f64;
            ghosts as f64 > share.max(1.0)
        };
        let drifted = tending.measure.is_some_and(|measure| measure.rate > limit);
        let measured = self.measured(&tending).low > limit;
        // A key that was written without the guard may share the entry of another key, and is removed with it.
        let foreign = tending.shares_entries;
        let due = drifted || measured || foreign || tending.measure.is_some_and(haunted);
        if due && rested {
            tracing::info!(drifted, measured, foreign, ghosts, "it is time for another filter");
            let why = match (drifted || measured, foreign) {
                (true, _) => Renewal::Rate,
                (_, true) => Renewal::ForeignWrites,
                _ => Renewal::Deletes,
            };
            self.options.tell(|| Event::Renewing { why });
        }
        due && rested
    }

    async fn rebuild_or_wait(&self) {
        let built = self.rebuild().instrument(tracing::info_span!("rebuild")).await;
        let Err(error) = built else { return };
        if matches!(error, RebuildError::UnderWay) {
            return;
        }
        tracing::error!(%error, "the filter was not built");
        let wait = {
            let mut tending = self.tending();
            let wait = tending.retry.map_or(FIRST_WAIT, |(_, wait)| (wait * 2).min(LAST_WAIT));
            tending.retry = Some((Instant::now() + wait, wait));
            wait
        };
        // A rebuild that ended because the guard was closed is not a failure.
        if self.epoch.load().end.is_none() {
            self.options.tell(|| Event::Failed { error: error.to_string(), wait });
        }
    }
}
