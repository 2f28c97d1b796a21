//! Building the next filter while everybody goes on reading and writing.
//!
//! ```text
//!     1  begin the next filter: every write from here on goes to both
//!     2  wait for the writes that began before; add the keys of those whose outcome nobody knows
//!     3  scan the data set at a snapshot
//!     4  require the last page, and no fewer keys than the set has
//!     5  ask for every key that was added
//!     6  save it; put it in the place of the old one, which goes when its last reader does
//! ```
//!
//! A key that can be read afterwards was committed before the snapshot, and is in the scan; or its write began after step
//! 1, and went to both; or it began before and ended after step 2 in a way that nobody knows, and was added then.
//! Whatever fails or is given up in between leaves the old filter as it was.

use crate::answer::{State, Suspicion};
use crate::data_set::DataSet;
use crate::epoch::{End, Epoch, Next};
use crate::error::{GuardError, RebuildError, Trouble};
use crate::guard::{Guard, Inner};
use crate::keep::{self, Keep};
use crate::kind::{Generation, Kind};
use crate::within::within;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::time::Instant;
use tracing::Instrument;
use umbel::Digest;

/// How many times as long as a look-up it may take to count all keys: a table may have to be read for that.
const COUNT: u32 = 240;

type Result<T, D> = std::result::Result<T, RebuildError<<D as DataSet>::Error>>;

impl<D: DataSet, K: Kind> Guard<D, K> {
    /// Builds another filter and puts it to use; how many keys it was built from. The future can be dropped
    /// at any time, and leaves everything as it was.
    ///
    /// # Errors
    ///
    /// [`RebuildError`]; the filter there was, if there was one, is used on.
    pub async fn rebuild(&self) -> std::result::Result<u64, RebuildError<D::Error>> {
        self.inner.rebuild().instrument(tracing::info_span!("rebuild")).await
    }

    /// Saves the filter now, and begins its journal anew. `false` if there is nothing to save, or nowhere.
    ///
    /// # Errors
    ///
    /// What the file system says; what was saved before is as good as it was.
    pub async fn checkpoint(&self) -> std::io::Result<bool> {
        let _one = self.inner.building.lock().await;
        self.inner.checkpoint().instrument(tracing::info_span!("checkpoint")).await
    }

    /// Ends all writes and saves the filter, so that the next start needs no journal. A rebuild that is running is given up.
    /// Reads go through to the data set from now on, and writes are refused.
    ///
    /// # Errors
    ///
    /// An error of the file system. The next start is slower then.
    pub async fn close(&self) -> std::result::Result<(), GuardError<D::Error>> {
        let inner = &self.inner;
        // A rebuild sees this and gives up.
        drop(inner.change(|epoch| {
            epoch.end = Some(End::Closed);
            inner.ended.add(epoch.turn());
        }));
        let _one = inner.building.lock().await;
        inner.ended.grace().await;
        let saved = inner.checkpoint().await;
        inner.change(|epoch| {
            (epoch.state, epoch.suspicion) = (State::Suspect, Some(Suspicion::Told));
            epoch.current = None;
        });
        if saved.map_err(GuardError::Journal)?
            && let Some(keep) = &inner.keep
        {
            keep.sync_journal().map_err(GuardError::Journal)?;
        }
        Ok(())
    }
}

/// Takes the next filter out again, unless it was put to use.
struct Registered<'a, D: DataSet, K: Kind> {
    inner: &'a Inner<D, K>,
    next: Arc<Next<K::Generation>>,
    used: bool,
}

impl<D: DataSet, K: Kind> Drop for Registered<'_, D, K> {
    fn drop(&mut self) {
        if self.used {
            return;
        }
        self.inner.counters.failed_rebuilds.one();
        self.inner.change(|epoch| {
            (epoch.next, epoch.scanned) = (None, false);
            epoch.state = match epoch.state {
                State::Building => State::Empty,
                State::Rebuilding => State::Suspect,
                other => other,
            };
        });
        if let Some(keep) = &self.inner.keep {
            keep.give_up();
        }
    }
}

impl<D: DataSet, K: Kind> Inner<D, K> {
    pub(crate) async fn rebuild(&self) -> Result<u64, D> {
        let Ok(_one) = self.building.try_lock() else { return Err(RebuildError::UnderWay) };
        let mut state = self.state.subscribe();
        // In a block, so that what `wait_for` borrows is given back before the build is dropped.
        let ended = async {
            let state = state.wait_for(|(_, end)| end.is_some()).await;
            state.ok().and_then(|state| state.1)
        };
        // The scan sees what else was written until now.
        let swept = std::mem::replace(&mut self.tending().swept, true);
        let shares = std::mem::take(&mut self.tending().shares_entries);
        let built = tokio::select! {
            biased;
            ended = ended => Err(match ended {
                Some(End::Superseded) => RebuildError::Superseded,
                _ => RebuildError::Closed,
            }),
            built = self.build() => built,
        };
        if built.is_err() {
            let mut tending = self.tending();
            tending.swept &= swept;
            tending.shares_entries |= shares;
        }
        built
    }

    /// All steps; dropped when the guard ends.
    async fn build(&self) -> Result<u64, D> {
        let started = Instant::now();
        if K::SHARED {
            self.discard().await?;
        }
        let mut scan = self.timed(self.set.scan(None)).await?;
        let count = self.timed_for(COUNT, self.set.count(&mut scan)).await?;
        drop(scan);
        let items = (count as f64 * self.options.headroom) as u64;
        let filter = self.kind.begin(items.max(self.options.least_capacity)).await?;
        let mut registered = self.register(filter).await;
        let next = registered.next.clone();
        let keys = self.fill(&next).await?;
        // A copy of the data set from before this moment may have keys that the scan did not see.
        self.renew().await?;
        // Whatever was deleted before the scan, and is not in it, has a mark up to this one.
        let floor = self.timed(self.set.stamp()).await?.map(|stamp| stamp.mark);
        self.prove(&next, &keys).await?;
        next.settle().await;
        next.filter.activate().await?;
        let saved = self.save_next(&next, floor).await;
        let measure = next.filter.measure();
        self.put_to_use(&next, saved)?;
        registered.used = true;
        let mut tending = self.tending();
        tending.measure = Some(measure);
        tending.measured_at = self.counters.puts.get();
        tending.baseline = (self.counters.false_positives.get(), self.counters.absent.get());
        tending.since = Some(Instant::now());
        (tending.wanted, tending.retry) = (false, None);
        tracing::info!(keys = keys.len(), took = ?started.elapsed(), "the filter is in use");
        Ok(keys.len() as u64)
    }

    /// Gives the data set another incarnation of this guard, if it is still the same one: copies from before are told from
    /// it by that.
    async fn renew(&self) -> Result<(), D> {
        let _one = self.watching.lock().await;
        if self.timed(self.set.identity()).await? != self.tending().identity {
            return Err(RebuildError::Overtaken);
        }
        let old = self.incarnation.load(Relaxed);
        if old == 0 || self.options.read_only {
            return Ok(());
        }
        let stamp = self.timed(self.set.stamp()).await?;
        if stamp.is_none_or(|stamp| stamp.incarnation != old) {
            // Another guard, or an older copy: the next look at the data set finds out which.
            return Err(RebuildError::Overtaken);
        }
        let incarnation = keep::incarnation();
        if let Some(keep) = &self.keep
            && let Err(error) = keep.renew(incarnation)
        {
            tracing::warn!(%error, "the journal cannot be written; the saved filter is removed");
        }
        self.past().insert(old);
        let stamped = self.timed(self.set.begin(incarnation)).await?;
        self.incarnation.store(if stamped { incarnation } else { 0 }, Relaxed);
        Ok(())
    }

    /// Takes away what others share, if it is sound and yet another one is wanted, or if it lacks a key. Whatever else
    /// ended the trust may have been mended by another guard.
    async fn discard(&self) -> Result<(), D> {
        let epoch = self.epoch.load_full();
        let lacks = epoch.suspicion.is_some_and(Suspicion::is_of_content);
        let Some(filter) = epoch.current.clone().filter(|_| epoch.state == State::Active || lacks)
        else {
            return Ok(());
        };
        drop(epoch);
        self.kind.discard(&filter).await?;
        self.change(|epoch| {
            let same = epoch.current.as_ref().is_some_and(|current| Arc::ptr_eq(current, &filter));
            if same {
                epoch.current = None;
                if epoch.state == State::Active {
                    (epoch.state, epoch.suspicion) = (State::Suspect, Some(Suspicion::Gone));
                }
            }
        });
        Ok(())
    }

    /// Steps 1 and 2, but for the doubts.
    async fn register(&self, filter: K::Generation) -> Registered<'_, D, K> {
        let next = Arc::new(Next::new(filter));
        drop(self.change(|epoch| {
            self.ended.add(epoch.turn());
            (epoch.next, epoch.scanned) = (Some(next.clone()), false);
            epoch.state = match epoch.state {
                State::Empty | State::Building => State::Building,
                State::Suspect | State::Rebuilding => State::Rebuilding,
                State::Active => State::Active,
            };
        }));
        // Before the first wait, so that it is undone wherever this ends.
        let registered = Registered { inner: self, next, used: false };
        self.ended.grace().await;
        registered
    }

    /// A call of the data set, in time: to begin a scan, or for a page, takes longer than a look-up.
    pub(crate) async fn timed<T>(
        &self,
        call: impl Future<Output = std::result::Result<T, D::Error>>,
    ) -> Result<T, D> {
        self.timed_for(12, call).await
    }

    async fn timed_for<T>(
        &self,
        look_ups: u32,
        call: impl Future<Output = std::result::Result<T, D::Error>>,
    ) -> Result<T, D> {
        let after = self.options.set_timeout.saturating_mul(look_ups);
        match within(after, pin!(call)).await {
            Some(result) => result.map_err(RebuildError::DataSet),
            None => Err(RebuildError::TimedOut { after }),
        }
    }

    /// Steps 2 to 4: all keys there are; their digests.
    async fn fill(&self, next: &Arc<Next<K::Generation>>) -> Result<Vec<Digest>, D> {
        let filter = &*next.filter;
        let Some(doubts) = self.doubts.keys() else { return Err(RebuildError::Overtaken) };
        for key in doubts {
            filter.add(filter.digest(&key)).await?;
        }
        if filter.is_complete().await? {
            return Ok(Vec::new());
        }
        tokio::time::sleep_until(self.started + self.set.lingering()).await;
        if K::SHARED {
            // A guard that was killed may have left a statement that the data set still carries out.
            tokio::time::sleep(self.kind.grace().max(self.set.lingering())).await;
        }
        let mut scan = self.timed(self.set.scan(None)).await?;
        let mut expected = 0;
        if D::SNAPSHOT {
            if self.kind.removes() {
                drop(self.change(|epoch| epoch.scanned = true));
            }
            expected = self.timed_for(COUNT, self.set.count(&mut scan)).await?;
        }
        let mut digests: Vec<Digest> = Vec::new();
        loop {
            let begun = Instant::now();
            let page = self.timed(self.set.page(&mut scan, self.options.page)).await?;
            let first = digests.len();
            digests.try_reserve(page.len()).map_err(|_| Trouble::Full)?;
            digests.extend(page.keys().map(|key| filter.digest(key)));
            filter.add_all(&digests[first..]).await?;
            if page.is_last() {
                break;
            }
            if page.is_empty() {
                // Neither keys nor an end: this would never end.
                return Err(RebuildError::Incomplete { expected, got: digests.len() as u64 });
            }
            self.rest(begun.elapsed()).await;
        }
        let mut got = digests.len() as u64;
        if !D::SNAPSHOT {
            expected = self.timed_for(COUNT, self.set.count(&mut scan)).await?;
            got += next.mirrored.load(Relaxed);
        }
        if got < expected {
            return Err(RebuildError::Incomplete { expected, got });
        }
        Ok(digests)
    }

    /// Leaves some time to others as long as another filter answers.
    pub(crate) async fn rest(&self, worked: Duration) {
        let pace = self.options.pace;
        if pace < 1.0 && self.epoch.load().state == State::Active {
            tokio::time::sleep(worked.mul_f64(1.0 / pace - 1.0)).await;
        } else {
            tokio::task::yield_now().await;
        }
    }

    /// Step 5: every key that was scanned is in the filter.
    async fn prove(&self, next: &Next<K::Generation>, keys: &[Digest]) -> Result<(), D> {
        next.filter.seal().await?;
        let mut lost = 0;
        for some in keys.chunks(1 << 14) {
            let begun = Instant::now();
            lost += next.filter.missing(some).await?;
            self.rest(begun.elapsed()).await;
        }
        if lost > 0 { Err(RebuildError::Lost { keys: lost }) } else { Ok(()) }
    }

    /// Saves a filter that is not in use yet; whether that went well.
    async fn save_next(&self, next: &Next<K::Generation>, floor: Option<u64>) -> bool {
        let Some(keep) = self.keep.clone().filter(|_| !K::SHARED) else { return false };
        let saved = saving(keep.clone(), next.filter.clone(), floor).await;
        if let Err(error) = &saved {
            tracing::error!(%error, "the filter could not be saved");
            keep.give_up();
        }
        saved.is_ok()
    }

    /// Step 6: the next filter is the one, unless a write has failed to reach it.
    fn put_to_use(&self, next: &Arc<Next<K::Generation>>, saved: bool) -> Result<(), D> {
        let mut broken = false;
        self.change(|epoch| {
            // Read here, where nothing can end the trust in between.
            broken =
                next.broken.load(Relaxed) || self.doubts.keys().is_none() || epoch.end.is_some();
            if broken {
                return;
            }
            // First the files: those who write at this moment know both filters, those who come later do not.
            if let Some(keep) = &self.keep {
                let taken = if saved { keep.take_over() } else { keep.distrust() };
                if let Err(error) = taken {
                    tracing::error!(%error, "the saved filter could not be replaced");
                }
            }
            *epoch = Epoch {
                state: State::Active,
                current: Some(next.filter.clone()),
                end: epoch.end,
                era: epoch.era.clone(),
                ..Epoch::empty()
            };
        });
        if broken {
            return Err(RebuildError::Overtaken);
        }
        self.ghosts.store(next.ghosts.load(Relaxed), Relaxed);
        self.generation.fetch_add(1, Relaxed);
        self.counters.rebuilds.one();
        Ok(())
    }

    /// Saves the filter in use; `building` is held.
    pub(crate) async fn checkpoint(&self) -> std::io::Result<bool> {
        let Some(keep) = self.keep.clone().filter(|_| !K::SHARED) else { return Ok(false) };
        let epoch = self.epoch.load_full();
        let (State::Active, Some(filter)) = (epoch.state, &epoch.current) else { return Ok(false) };
        let filter = filter.clone();
        drop(epoch);
        let saved = saving(keep.clone(), filter.clone(), None).await;
        // If the trust ended meanwhile, the file must not come back.
        let taken = self.still(|epoch| {
            let current = epoch.current.as_ref();
            let trusted = epoch.state == State::Active
                && current.is_some_and(|current| Arc::ptr_eq(current, &filter));
            if trusted && saved.is_ok() { keep.take_over().map(|()| true) } else { Ok(false) }
        });
        match (saved, taken) {
            (Ok(()), Ok(true)) => {
                self.counters.checkpoints.one();
                Ok(true)
            }
            (saved, taken) => {
                keep.give_up();
                saved.and(taken)
            }
        }
    }
}

/// Begins a journal and saves the filter.
async fn saving<G: Generation>(
    keep: Arc<Keep>,
    filter: Arc<G>,
    floor: Option<u64>,
) -> std::io::Result<()> {
    let saving = move || {
        keep.begin(filter.check(), floor)?;
        keep.save(&*filter)
    };
    tokio::task::spawn_blocking(saving).await.map_err(std::io::Error::other)?
}
