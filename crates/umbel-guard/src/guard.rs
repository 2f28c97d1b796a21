//! The guard: what clients call.
//!
//! ```text
//!     get  --->  filter: absent ------------------------------------------>  none: proof
//!                filter: maybe, or cannot tell  --->  data set  --------->  what it says
//!     put  --->  filter.add  --->  journal  --->  data set commits  ------->  done
//!     delete  ------------------>  data set commits  --->  filter.remove  ->  done
//! ```
//!
//! These two orders are all there is to being right. A key is in the filter before it can be read, and leaves the filter
//! only after a delete that is proven. Whatever fails in between leaves too much in the filter, never too little.

use crate::absences::{Absences, Writing};
use crate::answer::{Answer, Reason, State, Suspicion};
use crate::data_set::{DataSet, Put};
use crate::doubts::Doubts;
use crate::epoch::{Ended, Epoch};
use crate::error::{GuardError, StartError, Trouble, Unusable};
use crate::flight::Flights;
use crate::keep::{Digests, Durability, Keep};
use crate::kind::{Generation, Kind, Measure};
use crate::options::{Builder, Options};
use crate::stats::{Counters, Share, Stats};
use arc_swap::ArcSwap;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::{Instant, sleep};

/// A data set behind a filter. Clones are the same guard.
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

/// The value of a key, if it has one.
pub type Got<E> = Result<Option<Vec<u8>>, GuardError<E>>;

pub(crate) struct Inner<D: DataSet, K: Kind> {
    pub(crate) set: D,
    pub(crate) kind: K,
    pub(crate) options: Options,
    pub(crate) epoch: ArcSwap<Epoch<K::Generation>>,
    /// Held while one epoch takes the place of another.
    changing: Mutex<()>,
    pub(crate) ended: Ended,
    /// Held while a filter is built or saved.
    pub(crate) building: tokio::sync::Mutex<()>,
    pub(crate) keep: Option<Arc<Keep>>,
    flights: Flights<Got<D::Error>>,
    absences: Option<Absences>,
    pub(crate) doubts: Doubts,
    pub(crate) counters: Counters,
    passing: Semaphore,
    /// Where keys are removed, writes to one key come one after another: a filter holds few copies of a key.
    stripes: Box<[tokio::sync::Mutex<()>]>,
    pub(crate) state: watch::Sender<State>,
    /// Wakes who tends the guard.
    pub(crate) attention: Arc<Notify>,
    pub(crate) ghosts: AtomicU64,
    pub(crate) generation: AtomicU64,
    pub(crate) tending: Mutex<Tending>,
    marks: AtomicU64,
    pub(crate) started: Instant,
}

/// What is remembered between two rounds of tending.
#[derive(Debug, Default)]
pub(crate) struct Tending {
    /// The last key that was audited.
    pub(crate) place: Option<Vec<u8>>,
    pub(crate) measure: Option<Measure>,
    /// `puts` when the filter was measured.
    pub(crate) measured_at: u64,
    /// False positives and absences when the filter was put to use.
    pub(crate) baseline: (u64, u64),
    /// When the filter was put to use.
    pub(crate) since: Option<Instant>,
    /// Somebody wants another filter.
    pub(crate) wanted: bool,
    /// When to try again, and how long to wait after that.
    pub(crate) retry: Option<(Instant, Duration)>,
}

const STRIPES: usize = 256;
/// How soon a filter that was gone is looked for again.
const REMADE: Duration = Duration::from_millis(10);
/// How often a filter that is replaced meanwhile is asked again.
const TRIES: usize = 3;

impl<D: DataSet, K: Kind> Guard<D, K> {
    /// Sets up a guard of a data set by filters of a kind.
    #[must_use]
    pub fn builder(set: D, kind: K) -> Builder<D, K> {
        Builder::new(set, kind)
    }

    pub(crate) async fn start(
        set: D,
        kind: K,
        options: Options,
    ) -> Result<Self, StartError<D::Error>> {
        let mut epoch = Epoch::empty();
        let (mut keep, mut marks) = (None, 0);
        if let Some(folder) = &options.folder {
            let identity = set.identity().await.map_err(StartError::DataSet)?;
            let mark = set.mark().await.map_err(StartError::DataSet)?;
            let kept = Keep::open(folder, options.durability, &identity)?;
            match kept.restore(&kind, mark) {
                Ok(filter) => {
                    epoch.state = State::Active;
                    epoch.current = Some(Arc::new(filter));
                }
                Err(unusable) => {
                    if !matches!(unusable, Unusable::Missing) {
                        tracing::warn!(%unusable, "the saved filter is not used");
                    }
                    // It may be readable the next time, and lack what was written since.
                    kept.distrust().map_err(StartError::Io)?;
                }
            }
            marks = mark.unwrap_or(0);
            keep = Some(Arc::new(kept));
        }
        let stripes = if kind.removes() { STRIPES } else { 0 };
        let active = epoch.state == State::Active;
        let inner = Arc::new(Inner {
            set,
            kind,
            flights: Flights::new(),
            absences: options.absences.map(|(keys, age)| Absences::new(keys, age)),
            doubts: Doubts::new(options.doubts, options.doubt_age),
            counters: Counters::default(),
            passing: Semaphore::new(options.pass_through),
            stripes: (0..stripes).map(|_| tokio::sync::Mutex::new(())).collect(),
            state: watch::Sender::new(epoch.state),
            epoch: ArcSwap::from_pointee(epoch),
            changing: Mutex::new(()),
            ended: Ended::default(),
            building: tokio::sync::Mutex::new(()),
            keep,
            attention: Arc::default(),
            ghosts: AtomicU64::new(0),
            generation: AtomicU64::new(u64::from(active)),
            tending: Mutex::new(Tending { since: active.then(Instant::now), ..Tending::default() }),
            marks: AtomicU64::new(marks),
            started: Instant::now(),
            options,
        });
        let guard = Self { inner };
        if guard.inner.options.background {
            guard.tend_in_background();
        }
        Ok(guard)
    }

    /// What is guarded.
    #[must_use]
    pub fn data_set(&self) -> &D {
        &self.inner.set
    }

    /// Whether a key is in the data set, as far as the filter can tell. The data set is not asked.
    pub async fn contains(&self, key: &[u8]) -> Answer {
        self.inner.ask(&self.inner.set.canonical(key)).await
    }

    /// The value of a key; `None` says that it is not there, which the filter has proven or the data set said.
    ///
    /// # Errors
    ///
    /// [`GuardError`] if the data set had to be asked and did not answer. That says nothing of the key.
    pub async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, GuardError<D::Error>> {
        self.get_answered(key).await.1
    }

    /// What [`contains`](Self::contains) says, and what [`get`](Self::get) does then, as one question.
    pub async fn get_answered(&self, key: &[u8]) -> (Answer, Got<D::Error>) {
        let inner = &*self.inner;
        let key = inner.set.canonical(key);
        let answer = inner.ask(&key).await;
        if answer == Answer::Absent {
            return (answer, Ok(None));
        }
        (answer, inner.get(&key, answer).await)
    }

    /// Puts a value, in the place of the one that was there.
    ///
    /// # Errors
    ///
    /// [`GuardError`] if the data set, or a filter that others rely on, did not take it. After
    /// [`GuardError::DataSet`] and [`GuardError::TimedOut`] it may have happened all the same, or happen yet;
    /// the guard is prepared for both.
    pub async fn put(&self, key: &[u8], value: &[u8]) -> Result<(), GuardError<D::Error>> {
        let inner = &*self.inner;
        if !inner.kind.takes() {
            return Err(GuardError::ReadOnly);
        }
        let key = inner.set.canonical(key);
        let _alone = inner.stripe(&key).await;
        // Held to the end: a rebuild that begins meanwhile waits for it.
        let (epoch, digests) = inner.add_in_time(&key).await?;
        let mark = inner.record(digests).await.map_err(GuardError::Journal)?;
        let mut write = Write::begin(inner, &key);
        let put = inner.set.put_marked(&key, value, mark);
        match within(inner.options.set_timeout, pin!(put)).await {
            Some(Ok(put)) => {
                write.done();
                inner.counters.puts.one();
                match put {
                    Put::Replaced => inner.release(&epoch, &key).await,
                    Put::Either if inner.kind.removes() => _ = inner.ghosts.fetch_add(1, Relaxed),
                    Put::New | Put::Either => {}
                }
                Ok(())
            }
            Some(Err(error)) => Err(GuardError::DataSet(Arc::new(error))),
            None => Err(inner.timed_out()),
        }
    }

    /// Takes a key away. `true` says that it was there.
    ///
    /// # Errors
    ///
    /// [`GuardError`] if the data set did not do it, or nobody knows whether it did.
    pub async fn delete(&self, key: &[u8]) -> Result<bool, GuardError<D::Error>> {
        let inner = &*self.inner;
        if !inner.kind.takes() {
            return Err(GuardError::ReadOnly);
        }
        let key = inner.set.canonical(key);
        let epoch = inner.epoch.load_full();
        if epoch.closed {
            return Err(GuardError::Closed);
        }
        let _alone = inner.stripe(&key).await;
        // The data set is asked whatever the filter says: a delete that does nothing must be true.
        let mark = inner.delete_mark().map_err(GuardError::Journal)?;
        let deleted = inner.delete(&key, mark).await;
        inner.flights.forget(&key);
        match deleted {
            Some(Ok(true)) => {
                inner.counters.deletes.one();
                if inner.missed(&epoch, &key).await {
                    inner.miss();
                } else if inner.kind.removes() {
                    if let (Some(keep), Some(mark)) = (&inner.keep, mark) {
                        keep.deleted(mark);
                    }
                    inner.release(&epoch, &key).await;
                } else {
                    inner.ghosts.fetch_add(1, Relaxed);
                }
                Ok(true)
            }
            Some(Ok(false)) => Ok(false),
            // Nobody knows: the key stays in the filter.
            Some(Err(error)) => {
                inner.counters.failed_writes.one();
                Err(GuardError::DataSet(Arc::new(error)))
            }
            None => {
                inner.counters.failed_writes.one();
                Err(inner.timed_out())
            }
        }
    }

    /// The state now.
    #[must_use]
    pub fn state(&self) -> State {
        self.inner.epoch.load().state
    }

    /// Returns when the filter answers.
    ///
    /// # Errors
    ///
    /// [`GuardError::Closed`] if it never will.
    pub async fn active(&self) -> Result<(), GuardError<D::Error>> {
        let mut state = self.inner.state.subscribe();
        let active = state.wait_for(|state| *state == State::Active).await;
        active.map(drop).map_err(|_| GuardError::Closed)
    }

    /// Ends the trust in the filter: everything goes through to the data set until there is another one.
    pub fn distrust(&self) {
        self.inner.suspect(Suspicion::Told);
    }

    /// How the guard is and what it has done.
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
            uptime: inner.started.elapsed(),
        }
    }
}

impl<D: DataSet, K: Kind> Inner<D, K> {
    pub(crate) fn tending(&self) -> std::sync::MutexGuard<'_, Tending> {
        self.tending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The share of absent keys that this filter took for present.
    pub(crate) fn measured(&self, tending: &Tending) -> Share {
        let hits = self.counters.false_positives.get() - tending.baseline.0;
        Share::of(hits, hits + self.counters.absent.get() - tending.baseline.1)
    }

    fn timed_out(&self) -> GuardError<D::Error> {
        self.counters.timed_out.one();
        GuardError::TimedOut { after: self.options.set_timeout }
    }

    /// Puts another epoch in the place of this one, which is returned.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(&mut Epoch<K::Generation>),
    ) -> Arc<Epoch<K::Generation>> {
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut epoch = (**self.epoch.load()).clone();
        let before = epoch.state;
        change(&mut epoch);
        let state = epoch.state;
        let old = self.epoch.swap(Arc::new(epoch));
        if state != before {
            tracing::info!(%before, %state, "the state of the guard has changed");
            self.state.send_replace(state);
        }
        old
    }

    /// Looks at the epoch while none can take its place.
    pub(crate) fn still<R>(&self, look: impl FnOnce(&Epoch<K::Generation>) -> R) -> R {
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        look(&self.epoch.load())
    }

    /// Ends the trust in the filter, here and in its file.
    pub(crate) fn suspect(&self, why: Suspicion) {
        tracing::warn!(%why, "the filter is not trusted any more");
        self.counters.trips.one();
        self.change(|epoch| {
            if epoch.state == State::Active || epoch.state == State::Suspect {
                epoch.state = if epoch.next.is_some() { State::Rebuilding } else { State::Suspect };
            }
            epoch.suspicion = Some(why);
            if !K::SHARED || why == Suspicion::Gone {
                epoch.current = None;
            }
            if let (Some(next), true) = (&epoch.next, why.is_of_content()) {
                // What was written past the guard may be missing there too.
                next.broken.store(true, Relaxed);
            }
        });
        if let Some(keep) = &self.keep
            && let Err(error) = keep.distrust()
        {
            tracing::error!(%error, "the saved filter could not be removed");
        }
        if let Some(absences) = &self.absences {
            absences.clear();
        }
        self.tending().wanted = true;
        self.attention.notify_one();
    }

    /// A key of the data set is not in the filter.
    pub(crate) fn miss(&self) {
        self.counters.audit_misses.one();
        self.suspect(Suspicion::Missed);
    }

    /// Asks the filter.
    async fn ask(&self, key: &[u8]) -> Answer {
        let answer = self.ask_uncounted(key).await;
        match answer {
            Answer::Absent => self.counters.absent.one(),
            Answer::Maybe => self.counters.maybe.one(),
            Answer::Unknown(_) => self.counters.unknown.one(),
        }
        answer
    }

    async fn ask_uncounted(&self, key: &[u8]) -> Answer {
        for _ in 0..TRIES {
            let epoch = self.epoch.load();
            let (State::Active, Some(filter)) = (epoch.state, &epoch.current) else {
                return Answer::Unknown(epoch.reason());
            };
            let asking = filter.contains(filter.digest(key));
            match within(self.options.filter_timeout, pin!(asking)).await {
                Some(Ok(true)) => return Answer::Maybe,
                // Somebody may have ended the trust in between, and put what the filter lacks.
                Some(Ok(false)) if std::ptr::eq(&**self.epoch.load(), &**epoch) => {
                    return Answer::Absent;
                }
                Some(Ok(false)) => {}
                Some(Err(trouble)) => return Answer::Unknown(self.doubt_filter(&trouble)),
                None => {
                    self.counters.timed_out.one();
                    return Answer::Unknown(Reason::TimedOut);
                }
            }
        }
        Answer::Unknown(Reason::Changing)
    }

    /// What an answer that did not come means.
    fn doubt_filter(&self, trouble: &Trouble) -> Reason {
        if let Trouble::Gone = trouble {
            self.suspect(Suspicion::Gone);
        }
        Reason::Unavailable
    }

    /// The value of a key that the filter has not proven to be absent.
    async fn get(&self, key: &[u8], answer: Answer) -> Got<D::Error> {
        let mut noted = None;
        if let (Answer::Maybe, Some(absences)) = (answer, &self.absences) {
            match absences.knows(key) {
                Ok(()) => {
                    self.counters.remembered.one();
                    return Ok(None);
                }
                Err(note) => noted = Some((absences, note)),
            }
        }
        let value = self.fetch(key, answer).await?;
        if value.is_none() && answer == Answer::Maybe {
            self.counters.false_positives.one();
            if let Some((absences, note)) = noted {
                absences.remember(key, note);
            }
        }
        Ok(value)
    }

    /// Asks the data set, together with everybody who asks for the same key.
    async fn fetch(&self, key: &[u8], answer: Answer) -> Got<D::Error> {
        let alone = !self.options.single_flight || self.doubts.has(key);
        let question = loop {
            if alone {
                break None;
            }
            match self.flights.find(key) {
                Err(question) => break Some(question),
                Ok(flight) => {
                    self.counters.joined.one();
                    if let Some(got) = flight.wait().await {
                        return got;
                    }
                }
            }
        };
        let (mut question, mut pilot) = (question, None);
        let mut asking = pin!(self.ask_set(key, answer));
        let got = poll_fn(|context| {
            let got = asking.as_mut().poll(context);
            if let (Poll::Pending, Some(question)) = (&got, question.take()) {
                pilot = self.flights.begin(question);
            }
            got
        });
        let got = got.await;
        if let Some(pilot) = pilot {
            pilot.land(&got);
        }
        got
    }

    async fn ask_set(&self, key: &[u8], answer: Answer) -> Got<D::Error> {
        let _permit = match answer {
            Answer::Unknown(_) => {
                let permit = within(self.options.set_timeout, pin!(self.passing.acquire())).await;
                let Some(Ok(permit)) = permit else {
                    self.counters.refused.one();
                    return Err(GuardError::Busy { limit: self.options.pass_through });
                };
                Some(permit)
            }
            _ => None,
        };
        self.counters.asked.one();
        match within(self.options.set_timeout, pin!(self.set.get(key))).await {
            Some(got) => got.map_err(|error| GuardError::DataSet(Arc::new(error))),
            None => Err(self.timed_out()),
        }
    }

    /// Where keys are removed: nobody else writes this key meanwhile.
    pub(crate) async fn stripe(&self, key: &[u8]) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        use umbel::hash::Digester;
        if self.stripes.is_empty() {
            return None;
        }
        let digest = umbel::Portable::seeded(2).digest(key).bits();
        Some(self.stripes[digest as usize % self.stripes.len()].lock().await)
    }

    /// Adds a key to all filters there are, before anything else happens. One that is gone and shared has to be made
    /// anew first.
    async fn add_in_time(
        &self,
        key: &[u8],
    ) -> Result<(Arc<Epoch<K::Generation>>, Digests), GuardError<D::Error>> {
        let mut begun = None;
        loop {
            let epoch = self.epoch.load_full();
            if epoch.closed {
                return Err(GuardError::Closed);
            }
            match self.add(&epoch, key).await {
                Ok(digests) => return Ok((epoch, digests)),
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
    ) -> Result<Digests, GuardError<D::Error>> {
        let mut digests = [None, None];
        if let Some(filter) = &epoch.current {
            let digest = filter.digest(key);
            let added = within(self.options.filter_timeout, pin!(filter.add(digest))).await;
            match added.unwrap_or(Err(Trouble::TimedOut)) {
                Ok(()) => {}
                Err(trouble) if K::SHARED => {
                    self.doubt_filter(&trouble);
                    return Err(GuardError::Filter(trouble));
                }
                // Nobody else relies on it: from here on nobody does.
                Err(_) => self.suspect(Suspicion::Full),
            }
            digests[0] = Some((filter.check(), digest));
        }
        if let Some(next) = &epoch.next {
            let digest = next.filter.digest(key);
            let added = within(self.options.filter_timeout, pin!(next.mirror(digest))).await;
            if let (true, Err(trouble)) = (K::SHARED, added.unwrap_or(Err(Trouble::TimedOut))) {
                return Err(GuardError::Filter(trouble));
            }
            digests[1] = Some((next.filter.check(), digest));
        }
        if K::SHARED && digests == [None, None] {
            // Others may rely on a filter that this guard has not found yet.
            return Err(GuardError::Filter(Trouble::Gone));
        }
        Ok(digests)
    }

    /// Writes down that a key was added, and gives the mark of the write.
    async fn record(&self, digests: Digests) -> std::io::Result<u64> {
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

    /// The mark of a delete. If the data set forgets that it was done, a filter that was built since lacks the key,
    /// and only the mark tells.
    fn delete_mark(&self) -> std::io::Result<Option<u64>> {
        self.keep.as_ref().map(|keep| keep.deleting()).transpose()
    }

    /// `None` if it took too long.
    async fn delete(&self, key: &[u8], mark: Option<u64>) -> Option<Result<bool, D::Error>> {
        let time = self.options.set_timeout;
        match mark {
            Some(mark) => within(time, pin!(self.set.delete_marked(key, mark))).await,
            None => within(time, pin!(self.set.delete(key))).await,
        }
    }

    /// Takes back one `add`: of a row that is gone, or of a write to a row that had one already.
    async fn release(&self, epoch: &Epoch<K::Generation>, key: &[u8]) {
        if !self.kind.removes() {
            return;
        }
        // Writes to this key may happen yet, and a filter that was built meanwhile has one entry for all of them.
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
            // What was deleted before the snapshot is not in it.
            let known = epoch.scanned && next.remove(next.filter.digest(key)).await;
            if !known {
                next.ghosts.fetch_add(1, Relaxed);
            }
        }
    }

    /// Whether a filter that is trusted lacks this key, which the data set has or just had.
    pub(crate) async fn missed(&self, epoch: &Epoch<K::Generation>, key: &[u8]) -> bool {
        let (State::Active, Some(filter)) = (epoch.state, &epoch.current) else { return false };
        let asking = filter.contains(filter.digest(key));
        let found = within(self.options.filter_timeout, pin!(asking)).await;
        matches!(found, Some(Ok(false))) && std::ptr::eq(&**self.epoch.load(), epoch)
    }
}

/// A write that the data set was asked for. If it ends in any other way than well, nobody knows whether it
/// happened.
struct Write<'a, D: DataSet, K: Kind> {
    inner: &'a Inner<D, K>,
    key: &'a [u8],
    writing: Option<Writing<'a>>,
    done: bool,
}

impl<'a, D: DataSet, K: Kind> Write<'a, D, K> {
    fn begin(inner: &'a Inner<D, K>, key: &'a [u8]) -> Self {
        let writing = inner.absences.as_ref().map(|absences| absences.writing(key));
        Self { inner, key, writing, done: false }
    }

    /// It happened. Whoever asks from now on sees it.
    fn done(&mut self) {
        self.done = true;
        self.inner.flights.forget(self.key);
        self.writing = None;
    }
}

impl<D: DataSet, K: Kind> Drop for Write<'_, D, K> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        self.inner.counters.failed_writes.one();
        // First, so that who asks after the question under way was forgotten knows that there is a doubt.
        let remembered = self.inner.doubts.add(self.key);
        self.inner.flights.forget(self.key);
        if let Some(writing) = self.writing.take() {
            writing.for_ever();
        }
        if self.inner.kind.removes() {
            self.inner.ghosts.fetch_add(1, Relaxed);
        }
        if !remembered {
            self.inner.suspect(Suspicion::Doubts);
        }
    }
}

/// The result of a future; `None` if it takes too long. What is ready at once needs no timer. By reference: a future that
/// is an argument is there twice.
#[inline]
pub(crate) async fn within<T>(
    time: Duration,
    mut future: Pin<&mut impl Future<Output = T>>,
) -> Option<T> {
    let mut timer = pin!(None);
    let result = poll_fn(|context| {
        if let Poll::Ready(value) = future.as_mut().poll(context) {
            return Poll::Ready(Some(value));
        }
        if timer.is_none() {
            timer.set(Some(sleep(time)));
        }
        let timer = timer.as_mut().as_pin_mut();
        timer.map_or(Poll::Pending, |timer| timer.poll(context).map(|()| None))
    });
    result.await
}
