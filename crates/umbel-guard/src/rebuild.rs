//! Rebuilding the filter online, while reads and writes continue.
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
//! A key that can be read after a rebuild falls under one of three cases. It was committed before the snapshot,
//! so the scan has it. Or its write began after step 1, so it was added to both filters. Or its write began
//! before step 1 and has an unknown outcome, so step 2 has added the key. A rebuild that fails or is given up
//! leaves the old filter in use.

use crate::answer::{State, Suspicion};
use crate::data_set::DataSet;
use crate::epoch::{End, Epoch, Next};
use crate::error::{GuardError, RebuildError, Trouble};
use crate::event::Event;
use crate::guard::{Guard, Inner};
use crate::keep::{self, Keep, Pair};
use crate::kind::{Generation, Kind};
use crate::within::within;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::time::Instant;
use tracing::Instrument;
use umbel::Digest;

/// The time limit for counting all keys, as a multiple of that of a look-up. Counting may read a whole table.
const COUNT: u32 = 240;

type Result<T, D> = std::result::Result<T, RebuildError<<D as DataSet>::Error>>;

impl<D: DataSet, K: Kind> Guard<D, K> {
    /// Builds another filter and puts it to use. Returns the number of keys it was built from. The future can
    /// be dropped at any time; the old filter then stays in use.
    ///
    /// # Errors
    ///
    /// [`RebuildError`]. The previous filter, if any, stays in use.
    pub async fn rebuild(&self) -> std::result::Result<u64, RebuildError<D::Error>> {
        self.inner.rebuild().instrument(tracing::info_span!("rebuild")).await
    }

    /// Saves the filter now, and starts a new journal. Returns `false` if there is no filter to save, or no
    /// folder.
    ///
    /// # Errors
    ///
    /// An error of the file system. The files saved before stay usable.
    pub async fn checkpoint(&self) -> std::io::Result<bool> {
        let _one = self.inner.building.lock().await;
        self.inner.checkpoint().instrument(tracing::info_span!("checkpoint")).await
    }

    /// Waits for all writes to end and saves the filter, so that the next start needs no journal. A rebuild in
    /// progress is given up. From now on reads go through to the data set, and writes are refused.
    ///
    /// # Errors
    ///
    /// An error of the file system. The next start is then slower.
    pub async fn close(&self) -> std::result::Result<(), GuardError<D::Error>> {
        let inner = &self.inner;
        // A rebuild sees this and gives up. The data set is no longer watched, so the filter no longer answers.
        drop(inner.change(|epoch| {
            if let Some(filter) = epoch.trusted().cloned() {
                epoch.closing = Some(filter);
            }
            (epoch.state, epoch.suspicion) = (State::Suspect, Some(Suspicion::Told));
            epoch.current = None;
            epoch.end = Some(End::Closed);
            inner.ended.add(epoch.turn());
        }));
        let _one = inner.building.lock().await;
        inner.ended.grace().await;
        let saved = inner.checkpoint().await;
        inner.change(|epoch| epoch.closing = None);
        if saved.map_err(GuardError::Journal)?
            && let Some(keep) = &inner.keep
        {
            keep.sync_journal().map_err(GuardError::Journal)?;
        }
        Ok(())
    }
}

/// Unregisters the next filter on drop, unless it was put to use.
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
    }
}

/// Signs of foreign writes that are being handled. If this is dropped before they are handled, they count
/// again.
pub(crate) struct Signs<'a, D: DataSet, K: Kind> {
    inner: &'a Inner<D, K>,
    swept: bool,
    shares_entries: bool,
}

impl<'a, D: DataSet, K: Kind> Signs<'a, D, K> {
    /// The signs that a comparison of all keys handles.
    pub(crate) fn for_sweep(inner: &'a Inner<D, K>) -> Self {
        let swept = std::mem::replace(&mut inner.tending().swept, true);
        Self { inner, swept, shares_entries: false }
    }

    /// All signs: the scan of a rebuild sees every foreign write up to now.
    fn for_rebuild(inner: &'a Inner<D, K>) -> Self {
        let shares_entries = std::mem::take(&mut inner.tending().shares_entries);
        Self { shares_entries, ..Self::for_sweep(inner) }
    }

    pub(crate) fn done(mut self) {
        (self.swept, self.shares_entries) = (true, false);
    }
}

impl<D: DataSet, K: Kind> Drop for Signs<'_, D, K> {
    fn drop(&mut self) {
        let mut tending = self.inner.tending();
        tending.swept &= self.swept;
        tending.shares_entries |= self.shares_entries;
    }
}

impl<D: DataSet, K: Kind> Inner<D, K> {
    pub(crate) async fn rebuild(&self) -> Result<u64, D> {
        let Ok(_one) = self.building.try_lock() else { return Err(RebuildError::UnderWay) };
        let mut state = self.state.subscribe();
        // A block, so that the borrows of `wait_for` end before the build is dropped.
        let ended = async {
            let state = state.wait_for(|(_, end)| end.is_some()).await;
            state.ok().and_then(|state| state.1)
        };
        let signs = Signs::for_rebuild(self);
        let built = tokio::select! {
            biased;
            ended = ended => Err(match ended {
                Some(End::Superseded) => RebuildError::Superseded,
                _ => RebuildError::Closed,
            }),
            built = self.build() => built,
        };
        if built.is_ok() {
            signs.done();
        }
        built
    }

    /// Runs all steps. The future is dropped when the guard ends.
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
        // Keys that were deleted before the scan have a mark up to this one.
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
        drop(tending);
        let (took, keys) = (started.elapsed(), keys.len() as u64);
        tracing::info!(keys, ?took, "the filter is in use");
        self.options.tell(|| Event::Ready { keys, took });
        Ok(keys)
    }

    /// Stores a new incarnation of this guard in the data set, if the data set is still the same. Older copies
    /// of the data set then have a different one.
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
            // Another guard was started, or this is an older copy. The next look at the data set finds out
            // which.
            return Err(RebuildError::Overtaken);
        }
        let incarnation = keep::incarnation();
        if let Some(keep) = &self.keep {
            keep.renew(incarnation);
        }
        self.past().insert(old);
        self.offered.store(incarnation, Relaxed);
        let stamped = self.timed(self.set.begin(incarnation)).await?;
        self.incarnation.store(if stamped { incarnation } else { 0 }, Relaxed);
        Ok(())
    }

    /// Deletes a shared filter if it is sound but another one is wanted, or if it lacks a key. If the trust
    /// ended for any other reason, another guard may have repaired the filter.
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

    /// Steps 1 and 2, except for the writes with an unknown outcome.
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
        // Registered before the first await, so that dropping the future always unregisters it.
        let registered = Registered { inner: self, next, used: false };
        self.ended.grace().await;
        registered
    }

    /// Calls the data set with a time limit for scans and pages, which is longer than that of a look-up.
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

    /// Steps 2 to 4. Returns the digests of all keys.
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
        if D::SNAPSHOT && self.kind.removes() {
            drop(self.change(|epoch| epoch.scanned = true));
        }
        let mut expected = self.timed_for(COUNT, self.set.count(&mut scan)).await?;
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
                // An empty page that is not the last one: the scan would never end.
                return Err(RebuildError::Incomplete { expected, got: digests.len() as u64 });
            }
            self.rest(begun.elapsed()).await;
        }
        let mut got = digests.len() as u64;
        if !D::SNAPSHOT {
            // Keys are added and deleted during the scan. In a fleet other guards write too, and add their keys
            // to the filter themselves.
            expected = expected.min(self.timed_for(COUNT, self.set.count(&mut scan)).await?);
            got += next.mirrored.load(Relaxed);
        }
        if got < expected {
            return Err(RebuildError::Incomplete { expected, got });
        }
        Ok(digests)
    }

    /// Sleeps after each page while another filter answers, to leave the data set time for clients.
    pub(crate) async fn rest(&self, worked: Duration) {
        let pace = self.options.pace;
        if pace < 1.0 && self.epoch.load().state == State::Active {
            tokio::time::sleep(worked.mul_f64(1.0 / pace - 1.0)).await;
        } else {
            tokio::task::yield_now().await;
        }
    }

    /// Step 5: checks that every scanned key is in the filter.
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

    /// Saves a filter that is not in use yet. Returns `None` if that failed, or if there is no folder.
    async fn save_next(&self, next: &Next<K::Generation>, floor: Option<u64>) -> Option<Pair> {
        let keep = self.keep.as_ref().filter(|_| !K::SHARED)?;
        match save(keep, true, next.filter.clone(), floor).await {
            Ok(pair) => Some(pair),
            Err(error) => {
                tracing::error!(%error, "the filter could not be saved");
                self.options.tell(|| Event::NotSaved { error: error.to_string() });
                None
            }
        }
    }

    /// Step 6: puts the next filter to use, unless a write has failed to reach it.
    fn put_to_use(&self, next: &Arc<Next<K::Generation>>, saved: Option<Pair>) -> Result<(), D> {
        let mut broken = false;
        self.change(|epoch| {
            // Read here, where the trust cannot end in between.
            broken =
                next.broken.load(Relaxed) || self.doubts.keys().is_none() || epoch.end.is_some();
            if broken {
                return;
            }
            // The files are replaced first: writes in progress know both filters, later writes know only the
            // new one.
            if let Some(keep) = &self.keep {
                let taken = match &saved {
                    Some(pair) => keep.take_over(pair),
                    None => keep.distrust(),
                };
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

    /// Saves the filter in use. The caller holds `building`.
    pub(crate) async fn checkpoint(&self) -> std::io::Result<bool> {
        let Some(keep) = self.keep.as_ref().filter(|_| !K::SHARED) else { return Ok(false) };
        let Some(filter) = self.epoch.load().trusted().cloned() else { return Ok(false) };
        let pair = save(keep, false, filter.clone(), None).await?;
        // If the trust ended in the meantime, the file must not be created again.
        let taken = self.still(|epoch| {
            let same = epoch.trusted().is_some_and(|trusted| Arc::ptr_eq(trusted, &filter));
            if same { keep.take_over(&pair).map(|()| true) } else { Ok(false) }
        })?;
        if taken {
            self.counters.checkpoints.one();
        }
        Ok(taken)
    }
}

/// Begins a journal and saves a filter: the current one, or another.
async fn save<G: Generation>(
    keep: &Arc<Keep>,
    other: bool,
    filter: Arc<G>,
    floor: Option<u64>,
) -> std::io::Result<Pair> {
    // A save whose future was dropped continues, and uses the folder until it ends.
    let turn = keep.saving_turn().await;
    let pair = keep.prepare(other);
    let (keep, number) = (keep.clone(), pair.number());
    let saving = tokio::task::spawn_blocking(move || {
        let saved = keep.save(number, &*filter, floor);
        // The folder is released before the next save begins, so that `close` leaves it unlocked.
        drop((filter, keep));
        drop(turn);
        saved
    });
    saving.await.map_err(std::io::Error::other)??;
    Ok(pair)
}
