//! The settings of a guard.

use crate::data_set::DataSet;
use crate::error::StartError;
use crate::event::{Event, Observer};
use crate::guard::Guard;
use crate::keep::Durability;
use crate::kind::Kind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// All settings; [`Builder`] describes them.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) folder: Option<PathBuf>,
    pub(crate) durability: Durability,
    pub(crate) headroom: f64,
    pub(crate) least_capacity: u64,
    pub(crate) page: usize,
    pub(crate) pace: f64,
    pub(crate) set_timeout: Duration,
    pub(crate) filter_timeout: Duration,
    pub(crate) pass_through: usize,
    pub(crate) single_flight: bool,
    pub(crate) absences: Option<(usize, Duration)>,
    pub(crate) audit_keys: usize,
    pub(crate) audit_every: Duration,
    pub(crate) drift: f64,
    pub(crate) ghosts: f64,
    pub(crate) rest: Duration,
    pub(crate) checkpoint: u64,
    pub(crate) doubts: usize,
    pub(crate) doubt_age: Duration,
    pub(crate) trust_for: Duration,
    pub(crate) background: bool,
    pub(crate) read_only: bool,
    pub(crate) observer: Option<Observer>,
}

impl Options {
    pub(crate) fn tell(&self, event: impl FnOnce() -> Event) {
        if let Some(observer) = &self.observer {
            (observer.0)(&event());
        }
    }
}

/// Sets up a guard. [`Guard::builder`] creates it.
///
/// ```no_run
/// use std::time::Duration;
/// use umbel_guard::{Guard, Local};
/// # #[cfg(feature = "redb")]
/// # async fn start() -> Result<(), Box<dyn std::error::Error>> {
/// use umbel_guard::set::Redb;
///
/// let users = Redb::create("users.redb", "users")?;
/// let guard = Guard::builder(users, Local::blocked(0.01))
///     .folder("users.guard") // restarts are fast
///     .remember_absences(10_000, Duration::from_secs(5))
///     .start()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Builder<D, K> {
    set: D,
    kind: K,
    options: Options,
}

impl<D: DataSet, K: Kind> Builder<D, K> {
    pub(crate) fn new(set: D, kind: K) -> Self {
        let options = Options {
            folder: None,
            durability: Durability::default(),
            headroom: 1.5,
            least_capacity: 10_000,
            page: 2_048,
            pace: 0.5,
            set_timeout: Duration::from_secs(5),
            filter_timeout: Duration::from_millis(if K::SHARED { 50 } else { 5 }),
            pass_through: 64,
            single_flight: true,
            absences: None,
            audit_keys: 16,
            audit_every: Duration::from_secs(1),
            drift: 1.25,
            ghosts: 0.25,
            rest: Duration::from_secs(60),
            checkpoint: 1 << 18,
            doubts: 1 << 16,
            doubt_age: Duration::from_secs(3600),
            trust_for: Duration::from_secs(10),
            background: true,
            read_only: false,
            observer: None,
        };
        Self { set, kind, options }
    }

    /// Keeps the filter in this folder, which is created if it does not exist. One guard at a time can use a
    /// folder. Without a folder, every start scans the data set.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.options.folder = Some(folder.into());
        self
    }

    /// How durable a journal record must be before the data set is asked to write.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.options.durability = durability;
        self
    }

    /// Plans filters for `headroom` times the current number of keys, and for at least `at_least` keys. The default
    /// is 1.5, and 10,000.
    #[must_use]
    pub fn capacity(mut self, headroom: f64, at_least: u64) -> Self {
        self.options.headroom = headroom.max(1.0);
        self.options.least_capacity = at_least;
        self
    }

    /// The number of keys per page while a filter is built, and the share of the time that a build may use
    /// while another filter answers. The default is 2,048, and a half.
    #[must_use]
    pub fn scan(mut self, page: usize, pace: f64) -> Self {
        self.options.page = page.max(1);
        self.options.pace = pace.clamp(0.01, 1.0);
        self
    }

    /// How long a call of the data set may take. The default is 5 seconds.
    #[must_use]
    pub fn set_timeout(mut self, time: Duration) -> Self {
        self.options.set_timeout = time;
        self
    }

    /// How long the filter may take. The default is 5 ms in memory, 50 ms if it is shared.
    #[must_use]
    pub fn filter_timeout(mut self, time: Duration) -> Self {
        self.options.filter_timeout = time;
        self
    }

    /// The maximum number of concurrent queries to the data set while no filter answers. The default is 64.
    #[must_use]
    pub fn pass_through(mut self, queries: usize) -> Self {
        self.options.pass_through = queries.clamp(1, 1 << 20);
        self
    }

    /// Turns off single-flight: every look-up queries the data set, even if another look-up of the same key is
    /// in progress. With a shared filter this is always so, because another guard may write the key while the
    /// first look-up waits.
    #[must_use]
    pub fn without_single_flight(mut self) -> Self {
        self.options.single_flight = false;
        self
    }

    /// Remembers up to `keys` false positives, each for `age`, so that repeated look-ups do not reach the data
    /// set. This cannot be combined with a shared filter, because other guards may write such a key:
    /// [`StartError::RemembersShared`].
    #[must_use]
    pub fn remember_absences(mut self, keys: usize, age: Duration) -> Self {
        self.options.absences = (keys > 0).then_some((keys, age));
        self
    }

    /// Audits the filter: looks up `keys` keys of the data set in it every `every`. The default is 16 every
    /// second. A missing key ends the trust. With 0 keys there is no audit.
    #[must_use]
    pub fn audit(mut self, keys: usize, every: Duration) -> Self {
        self.options.audit_keys = keys;
        self.options.audit_every = every.max(Duration::from_millis(1));
        self
    }

    /// Rebuilds the filter when its false positive rate is `rate` times the target, or when a share `deleted`
    /// of its keys was deleted from the data set. The default is 1.25, and a quarter.
    #[must_use]
    pub fn rebuild_when(mut self, drift: f64, ghosts: f64) -> Self {
        self.options.drift = drift.max(1.0);
        self.options.ghosts = ghosts.max(0.01);
        self
    }

    /// The minimum time between two rebuilds of a sound filter. The default is a minute.
    #[must_use]
    pub fn rest(mut self, time: Duration) -> Self {
        self.options.rest = time;
        self
    }

    /// Saves the filter whenever its journal has this number of records. The default is 262,144, which are 4
    /// MiB.
    #[must_use]
    pub fn checkpoint_every(mut self, records: u64) -> Self {
        self.options.checkpoint = records.max(1);
        self
    }

    /// The maximum number of writes with an unknown outcome that the guard remembers, and for how long. Every
    /// filter that is built in that time gets their keys. The time must be longer than the data set can take to
    /// carry out a write that it has received. The default is 65,536, for an hour.
    #[must_use]
    pub fn doubts(mut self, writes: usize, age: Duration) -> Self {
        self.options.doubts = writes;
        self.options.doubt_age = age;
        self
    }

    /// How long the filter still proves absences when the data set cannot be reached. After that the answer is
    /// [`Reason::Unwatched`](crate::Reason::Unwatched), until the data set answers again. The default is 10
    /// seconds.
    ///
    /// A guard that is cut off from its data set does not notice that another guard has taken its place and
    /// writes there. Keys that the other guard writes may be reported absent for this long. With
    /// [`Duration::MAX`] there is no limit.
    #[must_use]
    pub fn trust_for(mut self, time: Duration) -> Self {
        self.options.trust_for = time;
        self
    }

    /// Starts no background task. The caller must call [`Guard::tend`] and [`Guard::rebuild`].
    #[must_use]
    pub fn without_background(mut self) -> Self {
        self.options.background = false;
        self
    }

    /// Makes the guard read-only: it changes neither the data set nor the folder, and does not create the
    /// folder. Writes through it fail with [`GuardError::ReadOnly`](crate::GuardError::ReadOnly). Filters are
    /// built in memory and are not saved. While this guard lives, no other guard can be started with the same
    /// folder.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.options.read_only = true;
        self
    }

    /// Calls this function with every [`Event`]. It runs on the task that detected the event, possibly the task
    /// of a client, so it must not block.
    #[must_use]
    pub fn observe(mut self, observer: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.options.observer = Some(Observer(Arc::new(observer)));
        self
    }

    /// Starts the guard. If a saved filter can be used, the guard is active at once. Otherwise it builds a
    /// filter in the background, and all look-ups go through to the data set until then.
    ///
    /// # Errors
    ///
    /// [`StartError`] if the folder cannot be used, or the data set does not return its identity and its stamp.
    pub async fn start(self) -> Result<Guard<D, K>, StartError<D::Error>> {
        Guard::start(self.set, self.kind, self.options).await
    }
}
