//! Watching the data set: whether it is still the one that the filter was built from, and whether this guard
//! alone writes to it.
//!
//! A separate background task looks at the data set about once a second, whatever else the guard is doing. The
//! guard records the time at which each successful look *began*: up to then the filter was valid. The filter
//! proves absences only while that time is no further back than [`trust_for`](crate::Builder::trust_for). A
//! guard that cannot reach its data set does not know whether another guard has taken its place and writes
//! there.

use crate::answer::{State, Suspicion};
use crate::data_set::{DataSet, Outcome};
use crate::epoch::End;
use crate::event::Event;
use crate::guard::Inner;
use crate::keep;
use crate::kind::Kind;
use crate::within::within;
use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::time::Instant;

impl<D: DataSet, K: Kind> Inner<D, K> {
    /// The time since the last successful look at the data set began.
    pub(crate) fn unwatched(&self) -> Duration {
        let looked = Duration::from_nanos(self.looked.load(Relaxed));
        self.started.elapsed().saturating_sub(looked)
    }

    /// Whether that time is short enough for the filter to prove absences. Without a background task the caller
    /// decides how often the guard looks at the data set.
    pub(crate) fn is_watched(&self) -> bool {
        !self.options.background || self.unwatched() <= self.options.trust_for
    }

    /// Checks whether the data set is still the same, and whether this guard alone writes to it.
    pub(crate) async fn look_in_time(&self) {
        let after = self.options.set_timeout;
        let looked = {
            let _one = self.watching.lock().await;
            if self.epoch.load().end.is_some() {
                return;
            }
            let began = Instant::now();
            within(after, pin!(self.look_at_set())).await.map(|looked| looked.map(|()| began))
        };
        match looked {
            Some(Ok(began)) => {
                let began = u64::try_from((began - self.started).as_nanos()).unwrap_or(u64::MAX);
                self.looked.fetch_max(began, Relaxed);
            }
            Some(Err(error)) if self.set.outcome(&error) == Outcome::Superseded => {
                tracing::error!(%error, "this is no longer the data set that was opened");
                if self.epoch.load().suspicion != Some(Suspicion::Moved) {
                    self.suspect_since(Suspicion::Moved, Some(&error));
                }
            }
            Some(Err(error)) => tracing::debug!(%error, "the data set was not looked at"),
            None => tracing::debug!(?after, "the data set was not looked at in time"),
        }
    }

    async fn look_at_set(&self) -> Result<(), D::Error> {
        let identity = self.set.identity().await?;
        if identity != self.tending().identity {
            self.suspect(Suspicion::Moved);
            self.begin_again(&identity).await?;
            let mut tending = self.tending();
            // Earlier failures concern the old data set.
            (tending.identity, tending.retry) = (identity, None);
        }
        let (mut incarnation, confirmed) =
            (self.incarnation.load(Relaxed), self.confirmed.load(Relaxed));
        let stamp = if incarnation == 0 { None } else { self.set.stamp().await? };
        if let Some(stamp) = stamp
            && stamp.incarnation == self.offered.load(Relaxed)
        {
            // The data set has stored the incarnation that was offered last, although its answer was lost.
            incarnation = stamp.incarnation;
            self.incarnation.store(incarnation, Relaxed);
        }
        if incarnation != 0 && stamp.is_none() {
            // The table of stamps was dropped. Without it nothing shows whether another guard writes.
            if self.epoch.load().suspicion != Some(Suspicion::Moved) {
                self.suspect(Suspicion::Moved);
            }
            let identity = self.tending().identity.clone();
            self.begin_again(&identity).await?;
        }
        let mut written = false;
        if let Some(stamp) = stamp
            && (stamp.incarnation != incarnation || stamp.mark < confirmed)
        {
            // Marks never decrease from one guard to the next, so a lower mark means an older copy.
            let restored = stamp.mark < confirmed || self.past().contains(&stamp.incarnation);
            if restored && !self.options.read_only {
                self.suspect(Suspicion::Moved);
                let identity = self.tending().identity.clone();
                self.begin_again(&identity).await?;
            } else {
                tracing::error!("another guard was started in front of this data set");
                self.end(End::Superseded);
            }
        } else if let Some(stamp) = stamp.filter(|_| self.options.read_only) {
            // The guard that writes here has another filter.
            written = self.confirmed.fetch_max(stamp.mark, Relaxed) < stamp.mark;
        }
        // The other guards of a fleet write too, and add their keys to the shared filter.
        let foreign = if K::SHARED { None } else { self.set.foreign_writes().await? };
        let news = {
            let mut tending = self.tending();
            let changed = written
                || foreign.is_some() && tending.foreign.is_some() && foreign != tending.foreign;
            tending.foreign = foreign.or(tending.foreign);
            let news = changed && tending.swept;
            tending.swept &= !changed;
            tending.shares_entries |= changed && self.kind.removes();
            news
        };
        if news && self.epoch.load().state == State::Active {
            self.options.tell(|| Event::ForeignWrite);
        }
        Ok(())
    }

    /// Binds this guard to another data set, or to another version of this one.
    async fn begin_again(&self, identity: &[u8]) -> Result<(), D::Error> {
        let incarnation = keep::incarnation();
        if let Some(keep) = &self.keep
            && let Err(error) = keep.move_to(identity, incarnation)
        {
            tracing::error!(%error, "the saved filter could not be removed");
        }
        if self.options.read_only {
            let stamp = self.set.stamp().await?;
            self.incarnation.store(stamp.map_or(0, |stamp| stamp.incarnation), Relaxed);
        } else {
            self.past().insert(self.incarnation.load(Relaxed));
            self.offered.store(incarnation, Relaxed);
            let stamped = self.set.begin(incarnation).await? && !K::SHARED;
            // An older copy has a lower mark. New marks are higher than both.
            let mark = self.set.stamp().await?.map_or(0, |stamp| stamp.mark);
            self.confirmed.store(mark, Relaxed);
            self.marks.fetch_max(mark, Relaxed);
            if let Some(keep) = &self.keep {
                keep.raise(mark);
            }
            self.incarnation.store(if stamped { incarnation } else { 0 }, Relaxed);
        }
        Ok(())
    }
}
