//! The window filter: recent keys are found, and older keys expire by themselves.
//!
//! ```text
//!     group        0       1       2       3            a key has a group, and the same bits
//!     epoch 0    [....]  [....]  [====]  [====]         in a line of every epoch
//!     epoch 1    [=   ]  [=   ]  [oooo]  [....]
//!     epoch 2    [....]  [....]  [....]  [....]         = being filled   . kept
//!                                  ^                    o the oldest, cleared next
//!                                hand: once round a turn
//! ```
//!
//! | bits per key | touches per look-up | remove | union | grow | can building fail |
//! |---|---|---|---|---|---|
//! | 16.7 at 1 %, 25.3 at 0.1 %, of the window | 5 lines, side by side | by age | no | no | no |
//!
//! A window of time takes 58 bits at 1 % and 89 at 0.1 %, unless its insertions are known to be
//! spread evenly ([`Shape::for_even_time`]).
//!
//! Choose it when only recent keys count: duplicates among the last million events, requests of the
//! last minute. Prefer [`blocked`](crate::blocked) when no key is ever forgotten: 9.9 bits per key.
//! Prefer [`counting`](crate::counting) when the program knows which keys to remove.
//!
//! # What is kept, exactly
//!
//! A window of W insertions and n epochs has turns of E = W / (n − 1) insertions, rounded up. Every
//! insertion counts, also of a key that is already stored, which is then as new as any. A key is
//! always found if it is among the last W insertions. If it is not among the last n · E, it is
//! found no more often than a key that was never inserted. That number is [`Shape::longest`], a
//! quarter more than the window for five epochs. In between it depends on the group of the key.
//!
//! A window of time T has turns of T / (n − 1), rounded up to nanoseconds. A key is always found up
//! to T after it was inserted, and never longer than n turns. The caller passes the time as a
//! duration since any fixed moment, and the first call starts the clock of the filter. A time
//! before the latest one counts as the latest one. So a clock that is set back loses no key, but
//! keys stay longer. A clock that is set forward expires keys: use a monotonic clock.
//!
//! # What it costs to forget
//!
//! The hand clears the lines that it passes, and nothing else is ever cleared. In a window of
//! insertions that is one line every 38 insertions at 1 %, and at most the number of groups over E,
//! rounded up, in a single one. In a window of time, [`advance`](crate::Filter::advance) clears
//! what the hand passes in the elapsed time: of all memory the share that the elapsed time is of n
//! turns, and at most all of it once. A program that advances regularly never waits.
//!
//! # Where it breaks
//!
//! A window of time is planned for the maximum number of insertions in any window, in bursts or
//! evenly. A burst fills a single epoch, so every epoch has room for all of them. If there are more
//! insertions, no key is lost, but the false positive rate is above the planned one until they have
//! expired: [`expected_rate`](crate::Filter::expected_rate) returns the current rate. Filters that
//! were saved by earlier versions, and those of [`Shape::for_even_time`], are planned for
//! insertions that are spread evenly: [`Shape::burst_rate`] is their rate in a burst.
//!
//! A key has one line per epoch and at most eight bits there. Below 0.1 % that takes more and more
//! space: 37.6 bits at 10^-4, 83 at 10^-6.
//!
//! An attacker who knows the seed can choose keys that fall into few lines: see
//! [`Keyed`](crate::Keyed).
//!
//! # Reference
//!
//! "Guarded Epoch Bloom Filters", arXiv 2606.19210, for a ring of filters with one more than the
//! window needs. Our addition: all epochs share the positions of a key and turn over group by
//! group, so that there is never a large amount to clear at once. See `docs/decisions.md`, "Window
//! filters".
//!
//! ```
//! use core::time::Duration;
//! use umbel::WindowBloomFilter;
//!
//! let mut seen = WindowBloomFilter::<u64>::new(1_000, 0.01); // the last 1,000, error rate
//! for key in 0..10_000 {
//!     seen.insert(&key); // true: certainly not among the last 1,000
//! }
//! assert!((9_000..10_000).all(|key| seen.contains(&key)));
//! assert!((0..8_000).filter(|key| seen.contains(key)).count() < 160);
//!
//! // The last minute, with at most 1,000 insertions in it.
//! let minute = Duration::from_secs(60);
//! let mut seen = WindowBloomFilter::<str>::for_time(minute, 1_000, 0.01);
//! let start = Duration::from_secs(1_000_000);
//! assert!(seen.insert_at("request", start));
//! assert!(seen.contains_at("request", start + minute));
//! assert!(!seen.contains_at("request", start + 2 * minute));
//! ```

mod bytes;
mod hand;
mod lines;
mod shape;

#[doc(hidden)]
pub use bytes::State;
pub use shape::{MAX_EPOCHS, Shape, Window};

use crate::edge::{Filter, for_core_and_filter};
use crate::error::InvalidShape;
use crate::hash::{Digest, Digester, Portable};
use crate::layout::ring::{batch, one};
use crate::parts::bits::count;
use crate::raw::{self, Clear, Endless, Make, Probe, TryClone, describe};
use crate::simd::{Choice, Lanes, Line, Places};
use crate::sizing::Shape as _;
use crate::storage::{Allocate, Heap, Storage, StorageMut};
use core::time::Duration;
use hand::Hand;
use lines::{EpochsLookUp, EpochsLookUpAhead};

/// The core of a window filter.
#[derive(Clone)]
pub struct RawWindow {
    shape: Shape,
    storage: Heap,
    /// The instruction path of the filter.
    choice: Choice,
    /// The positions of the probes of a key in each of its lines.
    lanes: &'static Lanes,
    hand: Hand,
    insertions: u64,
    /// The latest time that a caller passed, in nanoseconds.
    now: Option<u64>,
}

/// A Bloom filter of the last keys `T`, hashed by `H`. The [module](crate::window) describes it and
/// says when to choose it.
///
/// [`new`](crate::Filter::new) creates a filter of the last `capacity` insertions,
/// [`for_time`](crate::Filter::for_time) one of a window of time. `false` from
/// [`contains`](crate::Filter::contains) proves that the key was not inserted within the window. A
/// window of time ends at the latest time that a caller passed.
///
/// ```
/// use umbel::WindowBloomFilter;
///
/// let mut seen = WindowBloomFilter::new(1_000, 0.01); // the last 1,000, false positive rate
/// assert!(seen.insert("a")); // true: certainly not among the last 1,000
/// assert!(seen.contains("a") && !seen.contains("b"));
/// ```
pub type WindowBloomFilter<T, H = Portable> = Filter<T, H, RawWindow>;

/// Constructors for a window of time.
impl<T: ?Sized> WindowBloomFilter<T> {
    /// A filter of the last `window` of time, at a false positive rate of at most `err_rate` while
    /// there are at most `capacity` insertions in any window, in bursts or evenly.
    ///
    /// # Panics
    ///
    /// If there is no such shape ([`Shape::for_time`]), or [`with`](Self::with) returns an error.
    #[must_use]
    pub fn for_time(window: Duration, capacity: u64, err_rate: f64) -> Self {
        Shape::for_time(window, capacity, err_rate)
            .and_then(|shape| Self::with(shape, Portable::default()))
            .unwrap_or_else(|error| panic!("{error}"))
    }
}

describe! {
    impl[] RawWindow: Shape, Digest, Shape::NAME, |this| this.shape.bytes();
    window: this.shape.window(),
    capacity: this.shape.items(),
    epochs: this.shape.epochs(),
    bits: this.shape.bits(),
    probes: this.shape.probes(),
    insertions: this.insertions,
    now: this.now(),
}

impl Make for RawWindow {
    fn plan(window: u64, err_rate: f64) -> Result<Shape, InvalidShape> {
        Shape::for_rate(window, err_rate)
    }

    fn make(shape: Shape) -> Result<Self, InvalidShape> {
        Ok(Self::of_parts(shape, Heap::zeroed(shape.words())?))
    }
}

impl TryClone for RawWindow {
    fn try_clone(&self) -> Result<Self, InvalidShape> {
        Ok(Self { storage: self.storage.try_clone()?, ..*self })
    }
}

impl RawWindow {
    /// A core with these words, at the start of its window.
    fn of_parts(shape: Shape, storage: Heap) -> Self {
        Self {
            shape,
            storage,
            choice: Choice::now(),
            lanes: &Places::of(false, shape.probes()).lanes[0],
            hand: Hand::new(shape.epochs(), shape.groups(), shape.span()),
            insertions: 0,
            now: None,
        }
    }

    #[inline(always)]
    fn look_up(&self) -> EpochsLookUp<'_> {
        EpochsLookUp { lines: self.lines(), hand: &self.hand, lanes: self.lanes }
    }

    #[inline(always)]
    fn lines(&self) -> &[Line<u64>] {
        self.storage.words().as_chunks().0
    }

    /// The distance that the hand moves until then.
    fn since(&self, now: u64) -> u64 {
        match (self.shape.window(), self.now) {
            (Window::Time(_), Some(before)) => now.saturating_sub(before),
            _ => 0,
        }
    }
}

/// A time in nanoseconds. It saturates after 584 years.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Probe for RawWindow {
    #[inline]
    fn probe(&self, digest: Digest) -> bool {
        one(self.choice, self.look_up(), digest)
    }

    #[inline]
    fn probe_each<A>(&self, keys: &[A], digest: impl Fn(&A) -> Digest, found: &mut [bool]) {
        batch(self.choice, self.look_up(), keys, digest, found);
    }

    fn rate(&self) -> f64 {
        self.sampled(1).2
    }
}

impl RawWindow {
    /// Estimates the number of set bits, the number of keys and the false positive rate from a
    /// sample of one in `stride` groups of lines. Keys are distributed evenly over groups.
    #[doc(hidden)]
    pub fn sampled(&self, stride: usize) -> (u64, u64, f64) {
        let (mut rates, epoch, epochs) = (0.0, self.shape.epoch(), self.hand.epochs());
        // Lines by age, since only lines of one age are equally full.
        let (mut set, mut groups) = ([0; MAX_EPOCHS as usize], 0.0);
        for (number, group) in self.lines().chunks_exact(epochs).enumerate().step_by(stride.max(1))
        {
            let filled = self.hand.filled(number);
            for (epoch, line) in group.iter().enumerate() {
                set[(filled + epochs - epoch) % epochs] += count(line);
            }
            let compound = |rate, line: &Line<u64>| {
                let (first, second) = line.split_at(4);
                let fill = |half| count(half) as f64 / 256.0;
                let next = epoch.rate_of_line(0, fill(first), fill(second));
                rate + next - rate * next
            };
            rates += group.iter().fold(0.0, compound);
            groups += 1.0;
        }
        let share = self.hand.groups() as f64 / groups;
        let whole = set.map(|set| (set as f64 * share + 0.5) as u64);
        let items = whole[..epochs].iter().map(|set| epoch.estimate_items(*set));
        (whole.iter().sum(), items.fold(0, u64::saturating_add), rates / groups)
    }
}

/// Every insertion counts, also of a key that is already stored, which is then as new as any. In a
/// window of time, keys are inserted at the latest time that a caller passed.
impl Endless for RawWindow {
    #[inline]
    fn put(&mut self, digest: Digest) -> bool {
        self.insertions = self.insertions.saturating_add(1);
        let Self { shape, storage, lanes, hand, .. } = self;
        one(self.choice, inserting::<true>(shape, storage, lanes, hand), digest)
    }

    #[inline]
    fn put_each<A>(&mut self, keys: &[A], digest: impl Fn(&A) -> Digest, fresh: &mut [bool]) {
        self.put_in_batch::<true, _>(keys, digest, fresh);
    }

    /// The result does not include which keys are new, so there is no look-up.
    fn put_all(&mut self, digests: impl Iterator<Item = Digest>) {
        raw::in_batches::<256>(digests, |digests, unused| {
            self.put_in_batch::<false, _>(digests, |digest| *digest, unused);
        });
    }
}

impl RawWindow {
    #[inline]
    fn put_in_batch<const ANSWER: bool, A>(
        &mut self,
        keys: &[A],
        digest: impl Fn(&A) -> Digest,
        fresh: &mut [bool],
    ) {
        self.insertions = self.insertions.saturating_add(keys.len() as u64);
        let Self { shape, storage, choice, lanes, hand, .. } = self;
        batch(*choice, inserting::<ANSWER>(shape, storage, lanes, hand), keys, digest, fresh);
    }
}

#[inline(always)]
fn inserting<'a, const ANSWER: bool>(
    shape: &Shape,
    storage: &'a mut Heap,
    lanes: &'static Lanes,
    hand: &'a mut Hand,
) -> lines::EpochsInsert<'a, ANSWER> {
    let lines = storage.words_mut().as_chunks_mut().0;
    let steps = matches!(shape.window(), Window::Insertions(_));
    lines::EpochsInsert { lines, hand, lanes, steps }
}

/// Clearing keeps the current time.
impl Clear for RawWindow {
    fn clear(&mut self) {
        self.storage.words_mut().fill(0);
        self.insertions = 0;
    }
}

for_core_and_filter! { impl[] RawWindow {
    /// As [`contains_at`](crate::Filter::contains_at), for a digest that was computed elsewhere.
    #[must_use]
    pub fn contains_digest_at(&self, digest: Digest, now: Duration) -> bool {
        let (passed, _) = self.hand.ahead(self.since(nanos(now)));
        one(self.choice, EpochsLookUpAhead { now: self.look_up(), passed }, digest)
    }

    /// As [`insert_at`](crate::Filter::insert_at), for a digest that was computed elsewhere.
    pub fn insert_digest_at(&mut self, digest: Digest, now: Duration) -> bool {
        self.advance(now);
        self.put(digest)
    }

    /// Sets the current time, as a duration since a moment that is the same for all calls. Keys
    /// that are older than [`Shape::longest`] then expire. No key inside the window expires.
    ///
    /// The first call starts the clock and expires no key. A time before the latest one changes
    /// nothing. In a window of insertions, the time only changes the result of [`now`](Self::now).
    pub fn advance(&mut self, now: Duration) {
        let now = nanos(now);
        let steps = self.since(now);
        self.now = self.now.max(Some(now));
        let lines = self.storage.words_mut().as_chunks_mut().0;
        let clear = |line: usize| lines[line] = [0; 8];
        if steps > 0 && self.hand.go(steps, clear) {
            self.storage.words_mut().fill(0);
        }
    }

    /// The words: with n epochs, line e of group g is words 8 (n g + e) to 8 (n g + e) + 7.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        self.storage.words()
    }

    /// The number of insertions since the filter was created or cleared. A window of insertions
    /// contains the smaller of this number and its size.
    #[must_use]
    pub fn insertions(&self) -> u64 {
        self.insertions
    }

    /// The latest time that a caller passed, if any.
    #[must_use]
    pub fn now(&self) -> Option<Duration> {
        self.now.map(Duration::from_nanos)
    }

    /// Whether the filter contains no key. Reads words until it finds a set bit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words().iter().all(|word| *word == 0)
    }

    /// An estimate of how many keys are in the filter, in the window or about to expire, from the
    /// set bits. A key that was inserted in several turns counts once for each. Reads the whole
    /// filter.
    #[must_use]
    pub fn estimated_len(&self) -> u64 {
        self.sampled(1).1
    }
} }

/// Operations at a given time.
impl<T: ?Sized, H: Digester<T>> WindowBloomFilter<T, H> {
    /// As [`contains`](Self::contains) after [`advance`](Self::advance)`(now)`, without changing
    /// the filter.
    #[must_use]
    pub fn contains_at(&self, key: &T, now: Duration) -> bool {
        self.raw.contains_digest_at(self.hasher.digest(key), now)
    }

    /// [`advance`](Self::advance)s to `now`, then inserts a key.
    #[inline]
    pub fn insert_at(&mut self, key: &T, now: Duration) -> bool {
        self.raw.insert_digest_at(self.hasher.digest(key), now)
    }
}

/// Equal cores give equal answers, now and after the same insertions at the same times.
impl PartialEq for RawWindow {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape
            && (self.hand, self.now) == (other.hand, other.now)
            && self.words() == other.words()
    }
}

impl Eq for RawWindow {}
