//! The [`Guard`]: the functions that clients call.
//!
//! ```text
//!     get  --->  filter: absent ------------------------------------------>  none: proof
//!                filter: maybe, or cannot tell  --->  data set  --------->  what it says
//!     put  --->  filter.add  --->  journal  --->  data set commits  ------->  done
//!     delete  ------------------>  data set commits  --->  filter.remove  ->  done
//! ```
//!
//! The correctness of the guard rests on these two orders. A key is in the filter before it can be read. It
//! leaves the filter only after the data set has confirmed its delete. A failure in between leaves too many
//! keys in the filter, never too few.

use crate::absences::Absences;
use crate::answer::{Answer, State, Suspicion};
use crate::data_set::{DataSet, Outcome, Put, Stamp};
use crate::doubts::Doubts;
use crate::epoch::{End, Ended, Epoch};
use crate::error::{GuardError, StartError, Unusable};
use crate::event::Event;
use crate::flight::Flights;
use crate::keep::{self, Keep};
use crate::kind::{Kind, Measure};
use crate::options::{Builder, Options};
use crate::stats::{Counters, Share, Stats};
use crate::within::within;
use crate::write::Write;
use arc_swap::ArcSwap;
use std::collections::HashSet;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::Instant;

/// A data set behind a filter. Clones share the same guard.
///
/// ```
/// use umbel_guard::{Answer, Guard, Local};
/// # #[cfg(feature = "redb")] {
/// use umbel_guard::set::Redb;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let place = tempfile::tempdir()?;
/// # let path = place.path().join("users.redb");
/// let users = Redb::create(&path, "users")?;
/// let guard = Guard::builder(users, Local::blocked(0.001)).start().await?;
/// guard.active().await?;
///
/// guard.put(b"ada", b"1815").await?;
/// assert_eq!(guard.get(b"ada").await?.as_deref(), Some(&b"1815"[..]));
/// assert_eq!(guard.contains(b"ada").await, Answer::Maybe);
/// assert_eq!(guard.get(b"nobody").await?, None); // the file was not asked
/// assert!(guard.stats().saved >= 1);
/// # Ok(())
/// # }
/// # main().unwrap();
/// # }
/// ```
pub struct Guard<D: DataSet, K: Kind> {
    pub(crate) inner: Arc<Inner<D, K>>,
}

impl<D: DataSet, K: Kind> Clone for Guard<D, K> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<D: DataSet, K: Kind> std::fmt::Debug for Guard<D, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// The result of a look-up: the value of a key, or `None`.
pub type Got<E> = Result<Option<Vec<u8>>, GuardError<E>>;

pub(crate) struct Inner<D: DataSet, K: Kind> {
    pub(crate) set: D,
    pub(crate) kind: K,
    pub(crate) options: Options,
    pub(crate) epoch: ArcSwap<Epoch<K::Generation>>,
    /// Held while the epoch is replaced.
    changing: Mutex<()>,
    pub(crate) ended: Ended,
    /// Held while a filter is built or saved.
    pub(crate) building: tokio::sync::Mutex<()>,
    pub(crate) keep: Option<Arc<Keep>>,
    pub(crate) flights: Flights<Got<D::Error>>,
    pub(crate) absences: Option<Absences>,
    pub(crate) doubts: Doubts,
    pub(crate) counters: Counters,
    pub(crate) passing: Semaphore,
    /// Writes to one key run one after another if keys can be removed, because a filter holds few copies of a
    /// key.
    pub(crate) stripes: Box<[tokio::sync::Mutex<()>]>,
    /// The state, and why it is final, for callers that wait for a state.
    pub(crate) state: watch::Sender<(State, Option<End>)>,
    /// Wakes the background task.
    pub(crate) attention: Arc<Notify>,
    pub(crate) ghosts: AtomicU64,
    pub(crate) generation: AtomicU64,
    pub(crate) tending: Mutex<Tending>,
    /// Numbers the writes of a guard without a folder.
    pub(crate) marks: AtomicU64,
    /// The incarnation in the stamp of every write, which the data set must have. 0 if writes are not stamped,
    /// because the data set stores no stamp or the filter is shared.
    pub(crate) incarnation: AtomicU64,
    /// The last incarnation that the guard asked the data set to store. The data set may have stored it even if
    /// its answer was lost.
    pub(crate) offered: AtomicU64,
    /// The largest mark of a confirmed write.
    pub(crate) confirmed: AtomicU64,
    /// Earlier incarnations of the data set: that of the previous guard, and earlier ones of this guard. A data
    /// set that has one of them again was restored from a backup.
    pub(crate) past: Mutex<HashSet<u64>>,
    /// Held during a look at the data set.
    pub(crate) watching: tokio::sync::Mutex<()>,
    /// Keeps other guards from changing the files, if this guard only reads them.
    _lock: Option<keep::Lock>,
    pub(crate) started: Instant,
    /// When the last successful look at the data set began, in nanoseconds after the start.
    pub(crate) looked: AtomicU64,
}

/// The state of the background task between two rounds.
#[derive(Debug, Default)]
pub(crate) struct Tending {
    /// The identity of the data set at the last look.
    pub(crate) identity: Vec<u8>,
    /// [`foreign_writes`](DataSet::foreign_writes) at the last look.
    pub(crate) foreign: Option<u64>,
    /// Whether all keys were compared with the filter since the last foreign write.
    pub(crate) swept: bool,
    /// Another program has written to the data set since the filter was built, and keys can be removed from the
    /// filter.
    pub(crate) shares_entries: bool,
    /// When all keys may be compared with the filter again.
    pub(crate) sweep_after: Option<Instant>,
    /// When the last audit ran.
    pub(crate) audited: Option<Instant>,
    /// The last key that was audited.
    pub(crate) place: Option<Vec<u8>>,
    pub(crate) measure: Option<Measure>,
    /// The value of `puts` at the last measurement of the filter.
    pub(crate) measured_at: u64,
    /// False positives and absences when the filter was put to use.
    pub(crate) baseline: (u64, u64),
    /// When the filter was put to use.
    pub(crate) since: Option<Instant>,
    /// The caller or the guard wants another filter.
    pub(crate) wanted: bool,
    /// When to try again, and how long to wait after that attempt.
    pub(crate) retry: Option<(Instant, Duration)>,
}

const STRIPES: usize = 256;
impl<D: DataSet, K: Kind> Guard<D, K> {
    /// Sets up a guard for a data set, with filters of the given kind.
    #[must_use]
    pub fn builder(set: D, kind: K) -> Builder<D, K> {
        Builder::new(set, kind)
    }

    pub(crate) async fn start(
        set: D,
        kind: K,
        options: Options,
    ) -> Result<Self, StartError<D::Error>> {
        if K::SHARED && options.absences.is_some() {
            return Err(StartError::RemembersShared);
        }
        let started = Instant::now();
        let mut epoch = Epoch::empty();
        let foreign = set.foreign_writes().await.map_err(StartError::DataSet)?;
        let identity = set.identity().await.map_err(StartError::DataSet)?;
        let stamp = set.stamp().await.map_err(StartError::DataSet)?;
        let (mut keep, mut lock, mut stamped) = (None, None, false);
        let incarnation = keep::incarnation();
        let restored = match &options.folder {
            Some(folder) if options.read_only => {
                let (restored, held) = keep::look(folder, &identity, &kind, stamp)?;
                lock = held;
                restored
            }
            Some(folder) => {
                let kept = Keep::open(folder, options.durability, &identity)?;
                let restored = kept.restore(&kind, stamp, incarnation);
                keep = Some(Arc::new(kept));
                restored
            }
            None => Err(Unusable::Missing),
        };
        if !options.read_only {
            // After the journal is written, so that a guard that is killed in between can use its files again.
            stamped = set.begin(incarnation).await.map_err(StartError::DataSet)?;
        }
        // From here on other guards cannot write. A guard that has written since the stamp was read has raised
        // the mark.
        let again = set.stamp().await.map_err(StartError::DataSet)?;
        let mark = |stamp: Option<Stamp>| stamp.map_or(0, |stamp| stamp.mark);
        let quiet = if options.read_only { again == stamp } else { mark(again) == mark(stamp) };
        if let Some(keep) = &keep {
            keep.raise(mark(again));
        }

        match restored {
            Ok(filter) if quiet && (stamped || options.read_only) => {
                epoch.state = State::Active;
                epoch.current = Some(Arc::new(filter));
                options.tell(|| Event::Restored);
            }
            unusable => {
                let unusable = unusable.err().unwrap_or(Unusable::Incarnation);
                if matches!(unusable, Unusable::Missing) {
                    options.tell(|| Event::Building);
                } else {
                    tracing::warn!(%unusable, "the saved filter is not used");
                    options.tell(|| Event::Unusable { why: unusable.to_string() });
                }
                if let Some(keep) = &keep {
                    // The files may be readable at the next start, and would lack the writes of this run.
                    keep.distrust().map_err(StartError::Io)?;
                }
            }
        }
        // Guards that share a filter write concurrently, so none of them may shut out the others.
        let incarnation = match (K::SHARED, options.read_only) {
            (true, _) => 0,
            (_, true) => again.map_or(0, |stamp| stamp.incarnation),
            _ if stamped => incarnation,
            _ => 0,
        };
        let stripes = if kind.removes() { STRIPES } else { 0 };
        let (active, removes) = (epoch.state == State::Active, kind.removes());
        let inner = Arc::new(Inner {
            set,
            kind,
            flights: Flights::new(),
            absences: options.absences.map(|(keys, age)| Absences::new(keys, age)),
            doubts: Doubts::new(options.doubts, options.doubt_age),
            counters: Counters::default(),
            passing: Semaphore::new(options.pass_through),
            stripes: (0..stripes).map(|_| tokio::sync::Mutex::new(())).collect(),
            state: watch::Sender::new((epoch.state, None)),
            epoch: ArcSwap::from_pointee(epoch),
            changing: Mutex::new(()),
            ended: Ended::default(),
            building: tokio::sync::Mutex::new(()),
            keep,
            attention: Arc::default(),
            ghosts: AtomicU64::new(0),
            generation: AtomicU64::new(u64::from(active)),
            tending: Mutex::new(Tending {
                since: active.then(Instant::now),
                identity,
                foreign,
                // Another program may have written while no guard ran.
                swept: !active,
                shares_entries: active && removes,
                ..Tending::default()
            }),
            marks: AtomicU64::new(mark(again)),
            incarnation: AtomicU64::new(incarnation),
            offered: AtomicU64::new(0),
            confirmed: AtomicU64::new(mark(again)),
            past: Mutex::new(stamp.map(|stamp| stamp.incarnation).into_iter().collect()),
            watching: tokio::sync::Mutex::new(()),
            _lock: lock,
            started,
            looked: AtomicU64::new(0),
            options,
        });
        let guard = Self { inner };
        if guard.inner.options.background {
            guard.tend_in_background();
        }
        Ok(guard)
    }

    /// The guarded data set.
    #[must_use]
    pub fn data_set(&self) -> &D {
        &self.inner.set
    }

    /// Whether a key is in the data set, as far as the filter can tell. This never queries the data set.
    pub async fn contains(&self, key: &[u8]) -> Answer {
        self.inner.ask(&self.inner.set.canonical(key)).await
    }

    /// The value of a key. `None` means that the key is not in the data set: the filter has proven it, or the
    /// data set answered so.
    ///
    /// # Errors
    ///
    /// [`GuardError`] if the data set had to be queried and did not answer. The key may or may not exist then.
    pub async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, GuardError<D::Error>> {
        self.get_answered(key).await.1
    }

    /// Returns the answer of [`contains`](Self::contains) and the result of [`get`](Self::get), counted as one
    /// look-up.
    pub async fn get_answered(&self, key: &[u8]) -> (Answer, Got<D::Error>) {
        let inner = &*self.inner;
        let key = inner.set.canonical(key);
        let answer = inner.ask(&key).await;
        if answer == Answer::Absent {
            return (answer, Ok(None));
        }
        (answer, inner.get(&key, answer).await)
    }

    /// Stores a value, and replaces the old one if there is one.
    ///
    /// # Errors
    ///
    /// [`GuardError`] if the write failed in the data set, or in a filter that other guards rely on. After
    /// [`GuardError::DataSet`] and [`GuardError::TimedOut`] the write may have happened, or may still happen.
    /// The guard stays correct in both cases.
    pub async fn put(&self, key: &[u8], value: &[u8]) -> Result<(), GuardError<D::Error>> {
        let inner = &*self.inner;
        inner.takes_writes()?;
        let key = inner.set.canonical(key);
        let _alone = inner.stripe(&key).await;
        // The epoch is held until the write ends, so that a rebuild that begins in the meantime waits for it.
        let (epoch, digests, fresh) = inner.add_in_time(&key).await?;
        let mark = inner.record(digests).await.map_err(GuardError::Journal)?;
        let mut write = Write::begin(inner, &key);
        let put = inner.put_in_set(&key, value, mark);
        match within(inner.options.set_timeout, pin!(put)).await {
            Some(Ok(put)) => {
                write.done();
                inner.confirmed.fetch_max(mark, Relaxed);
                inner.counters.puts.one();
                match put {
                    // The row had no entry, so it was written without the guard. Its entry is the one just
                    // added.
                    Put::Replaced if fresh => inner.miss(),
                    Put::Replaced => inner.release_replaced(&epoch, &key).await,
                    Put::Either if inner.kind.removes() => _ = inner.ghosts.fetch_add(1, Relaxed),
                    Put::New | Put::Either => {}
                }
                Ok(())
            }
            Some(Err(error)) => {
                if inner.set.outcome(&error) != Outcome::Unknown {
                    write.refused();
                    inner.release(&epoch, &key).await;
                }
                drop(write);
                Err(inner.failed(error).await)
            }
            None => Err(inner.timed_out()),
        }
    }

    /// Deletes a key. Returns `true` if the key existed.
    ///
    /// # Errors
    ///
    /// [`GuardError`] if the delete did not happen, or its outcome is unknown.
    pub async fn delete(&self, key: &[u8]) -> Result<bool, GuardError<D::Error>> {
        let inner = &*self.inner;
        inner.takes_writes()?;
        let key = inner.set.canonical(key);
        let epoch = inner.epoch.load_full();
        epoch.takes_writes()?;
        let _alone = inner.stripe(&key).await;
        // The data set is always asked, even for a key that the filter reports absent: `false` must be certain.
        let mark = inner.delete_mark().map_err(GuardError::Journal)?;
        let deleted = inner.delete(&key, mark).await;
        inner.flights.forget(&key);
        match deleted {
            Some(Ok(true)) => {
                inner.confirmed.fetch_max(mark, Relaxed);
                inner.counters.deletes.one();
                if inner.missed(&epoch, &key).await {
                    inner.miss();
                } else if inner.kind.removes() {
                    if let Some(keep) = &inner.keep {
                        keep.deleted(mark);
                    }
                    inner.release(&epoch, &key).await;
                } else {
                    inner.ghosts.fetch_add(1, Relaxed);
                }
                Ok(true)
            }
            Some(Ok(false)) => Ok(false),
            // The delete may have happened, so the key stays in the filter.
            Some(Err(error)) => {
                inner.counters.failed_writes.one();
                Err(inner.failed(error).await)
            }
            None => {
                inner.counters.failed_writes.one();
                Err(inner.timed_out())
            }
        }
    }

    /// The current state.
    #[must_use]
    pub fn state(&self) -> State {
        self.inner.epoch.load().state
    }

    /// Waits until the filter answers.
    ///
    /// # Errors
    ///
    /// [`GuardError::Closed`], [`GuardError::Superseded`] or [`GuardError::Untended`] if it never will.
    pub async fn active(&self) -> Result<(), GuardError<D::Error>> {
        let mut state = self.inner.state.subscribe();
        let settled = state.wait_for(|(state, end)| *state == State::Active || end.is_some());
        match settled.await.map_err(|_| GuardError::Closed)?.1 {
            Some(end) => Err(end.error()),
            None => Ok(()),
        }
    }

    /// Ends the trust in the filter. All look-ups go through to the data set until another filter is built.
    pub fn distrust(&self) {
        self.inner.suspect(Suspicion::Told);
    }

    /// Measures the filter now, for [`Stats::filter`]. This reads the whole filter.
    pub async fn measure(&self) -> Option<Measure> {
        self.inner.measure().await
    }

    /// Counters and the current state.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let (inner, counters) = (&*self.inner, &self.inner.counters);
        let epoch = inner.epoch.load_full();
        let tending = inner.tending();
        let (absent, false_positives) = (counters.absent.get(), counters.false_positives.get());
        let (maybe, unknown) = (counters.maybe.get(), counters.unknown.get());
        let measured = inner.measured(&tending);
        Stats {
            state: epoch.state,
            rebuilding: epoch.next.is_some(),
            generation: inner.generation.load(Relaxed),
            queries: absent + maybe + unknown,
            saved: absent + counters.remembered.get(),
            maybe,
            unknown,
            false_positives,
            remembered: counters.remembered.get(),
            joined: counters.joined.get(),
            refused: counters.refused.get(),
            asked: counters.asked.get(),
            puts: counters.puts.get(),
            deletes: counters.deletes.get(),
            failed_writes: counters.failed_writes.get(),
            timed_out: counters.timed_out.get(),
            doubts: inner.doubts.len() as u64,
            ghosts: inner.ghosts.load(Relaxed),
            measured,
            target: inner.kind.target(),
            filter: tending.measure,
            audited: counters.audited.get(),
            audit_misses: counters.audit_misses.get(),
            rebuilds: counters.rebuilds.get(),
            failed_rebuilds: counters.failed_rebuilds.get(),
            checkpoints: counters.checkpoints.get(),
            trips: counters.trips.get(),
            kept: inner.keep.as_ref().is_some_and(|keep| keep.journaled().is_some()),
            unwatched: inner.unwatched(),
            uptime: inner.started.elapsed(),
        }
    }
}

impl<D: DataSet, K: Kind> Inner<D, K> {
    pub(crate) fn tending(&self) -> std::sync::MutexGuard<'_, Tending> {
        self.tending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn past(&self) -> std::sync::MutexGuard<'_, HashSet<u64>> {
        self.past.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The measured false positive rate of this filter.
    pub(crate) fn measured(&self, tending: &Tending) -> Share {
        // A rebuild may set the baseline after these counters were read.
        let hits = self.counters.false_positives.get().saturating_sub(tending.baseline.0);
        let absent = self.counters.absent.get().saturating_sub(tending.baseline.1);
        Share::of(hits, hits + absent)
    }

    pub(crate) fn timed_out(&self) -> GuardError<D::Error> {
        self.counters.timed_out.one();
        GuardError::TimedOut { after: self.options.set_timeout }
    }

    /// Replaces this epoch, and returns the old one.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(&mut Epoch<K::Generation>),
    ) -> Arc<Epoch<K::Generation>> {
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut epoch = (**self.epoch.load()).clone();
        let before = (epoch.state, epoch.end);
        change(&mut epoch);
        let now = (epoch.state, epoch.end);
        let old = self.epoch.swap(Arc::new(epoch));
        if now != before {
            tracing::info!(before = %before.0, state = %now.0, "the state of the guard has changed");
            self.state.send_replace(now);
        }
        old
    }

    /// Runs `look` on the epoch while it cannot be replaced.
    pub(crate) fn still<R>(&self, look: impl FnOnce(&Epoch<K::Generation>) -> R) -> R {
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        look(&self.epoch.load())
    }

    /// Ends the trust in the filter, in memory and in its file.
    pub(crate) fn suspect(&self, why: Suspicion) {
        self.suspect_since(why, None);
    }

    /// As [`suspect`](Self::suspect), because of an error of the data set.
    pub(crate) fn suspect_since(&self, why: Suspicion, error: Option<&D::Error>) {
        tracing::warn!(%why, "the filter is not trusted any more");
        self.counters.trips.one();
        let before = self.change(|epoch| {
            if epoch.state == State::Active || epoch.state == State::Suspect {
                epoch.state = if epoch.next.is_some() { State::Rebuilding } else { State::Suspect };
            }
            epoch.suspicion = Some(why);
            epoch.closing = None;
            if !K::SHARED || why == Suspicion::Gone {
                epoch.current = None;
            }
            if let (Some(next), true) = (&epoch.next, why.is_of_content()) {
                // Keys that were written without the guard may be missing in the next filter too.
                next.broken.store(true, Relaxed);
            }
        });
        if let Some(keep) = &self.keep
            // A runtime that shuts down drops the background task first. The saved files are still good.
            && why != Suspicion::Untended
            && let Err(error) = keep.distrust()
        {
            tracing::error!(%error, "the saved filter could not be removed");
        }
        if let Some(absences) = &self.absences {
            absences.clear();
        }
        if before.state == State::Active || before.suspicion != Some(why) {
            let error = error.map(ToString::to_string);
            self.options.tell(|| Event::Lost { why, error });
        }
        drop(before);
        self.tending().wanted = true;
        self.attention.notify_one();
    }

    /// Whether this guard accepts writes.
    fn takes_writes(&self) -> Result<(), GuardError<D::Error>> {
        if self.options.read_only || !self.kind.takes() {
            return Err(GuardError::ReadOnly);
        }
        Ok(())
    }

    /// Ends the guard: from now on no filter answers, and none is built.
    pub(crate) fn end(&self, end: End) {
        self.change(|epoch| _ = epoch.end.get_or_insert(end));
        self.suspect(match end {
            End::Closed => Suspicion::Told,
            End::Superseded => Suspicion::Superseded,
            End::Untended => Suspicion::Untended,
        });
    }

    /// Called when a key of the data set is not in the filter.
    pub(crate) fn miss(&self) {
        self.counters.audit_misses.one();
        self.suspect(Suspicion::Missed);
    }
}
