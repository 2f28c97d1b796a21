//! What a guard does by itself: audits, measures, saves, and builds the next filter when it is time.
//!
//! | finding | what follows |
//! |---|---|
//! | there is no filter that is trusted | one is built; after a failure again, after ever longer waits |
//! | a key of the data set is not in the filter | the trust ends, and one is built |
//! | the rate is 1.25 times the one aimed at, expected or measured | one is built, while this one answers |
//! | a quarter of what is in the filter has left the data set | the same |
//! | the journal is long | the filter is saved |

use crate::answer::State;
use crate::data_set::DataSet;
use crate::error::RebuildError;
use crate::guard::{Guard, Inner};
use crate::kind::{Generation, Kind, Measure};
use crate::within::within;
use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::time::Instant;
use tracing::Instrument;

/// The waits after failed rebuilds.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LAST_WAIT: Duration = Duration::from_secs(30);

impl<D: DataSet, K: Kind> Guard<D, K> {
    pub(crate) fn tend_in_background(&self) {
        let inner = Arc::downgrade(&self.inner);
        tokio::spawn(tend_for_ever(inner).instrument(tracing::info_span!("guard")));
    }

    /// One round of all that a guard does by itself: an audit, a look at the rate, a checkpoint or a rebuild
    /// if it is time. Only needed [without background](crate::Builder::without_background).
    pub async fn tend(&self) {
        self.inner.tend().await;
    }

    /// Asks the filter for some keys of the data set; how many it did not have. One is enough to end the trust.
    ///
    /// # Errors
    ///
    /// If the data set did not give any.
    pub async fn audit(&self, keys: usize) -> Result<u64, RebuildError<D::Error>> {
        self.inner.audit(keys).await
    }
}

async fn tend_for_ever<D: DataSet, K: Kind>(inner: Weak<Inner<D, K>>) {
    while let Some(guard) = inner.upgrade() {
        guard.tend().await;
        let (attention, wait) = (guard.attention.clone(), guard.until_retry());
        let wait = wait.min(guard.options.audit_every);
        // Whoever sleeps must not keep the guard alive.
        drop(guard);
        let _ = tokio::time::timeout(wait, attention.notified()).await;
    }
}

impl<D: DataSet, K: Kind> Inner<D, K> {
    /// How long until a rebuild that failed is to be tried again.
    fn until_retry(&self) -> Duration {
        let retry = self.tending().retry;
        retry.map_or(Duration::MAX, |(at, _)| at.saturating_duration_since(Instant::now()))
    }

    pub(crate) async fn tend(&self) {
        if self.epoch.load().closed {
            return;
        }
        if self.options.audit_keys > 0
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
        }
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
        // From the beginning after the last.
        let last = page.keys().take(keys).next_back().filter(|_| !page.is_last());
        self.tending().place = last.map(<[u8]>::to_vec);
        Ok(missed)
    }

    /// Whether a key that was in the data set is there still and not in the filter.
    async fn lacks(&self, key: &[u8]) -> bool {
        let epoch = self.epoch.load_full();
        if !self.missed(&epoch, key).await {
            return false;
        }
        if !self.kind.removes() {
            return true;
        }
        // It may have been deleted since. Nobody writes it while we look again.
        let _alone = self.stripe(key).await;
        let there = within(self.options.set_timeout, pin!(self.set.get(key))).await;
        matches!(there, Some(Ok(Some(_)))) && self.missed(&epoch, key).await
    }

    /// Measures the filter, if much was added since.
    async fn look(&self) {
        let puts = self.counters.puts.get();
        {
            let mut tending = self.tending();
            let due = tending
                .measure
                .is_none_or(|measure| puts - tending.measured_at > measure.capacity / 32);
            if !due {
                return;
            }
            tending.measured_at = puts;
        }
        let Some(filter) = self.epoch.load().current.clone() else { return };
        // Reads the whole filter.
        let measuring = tokio::task::spawn_blocking(move || filter.measure());
        if let Ok(measure) = measuring.await {
            self.tending().measure = Some(measure);
        }
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
        let due = drifted || measured || tending.measure.is_some_and(haunted);
        if due && rested {
            tracing::info!(drifted, measured, ghosts, "it is time for another filter");
        }
        due && rested
    }

    async fn rebuild_or_wait(&self) {
        let built = self.rebuild().instrument(tracing::info_span!("rebuild")).await;
        let Err(error) = built else { return };
        tracing::error!(%error, "the filter was not built");
        let mut tending = self.tending();
        let wait = tending.retry.map_or(FIRST_WAIT, |(_, wait)| (wait * 2).min(LAST_WAIT));
        tending.retry = Some((Instant::now() + wait, wait));
    }
}
