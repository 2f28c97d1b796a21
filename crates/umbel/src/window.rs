//! The window filter: what came lately is found, and what is older leaves by itself.
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
//! Choose it when only what came lately counts: duplicates among the last million events, requests of
//! the last minute. Prefer [`blocked`](crate::blocked) when nothing is ever forgotten: 9.9 bits a
//! key; [`counting`](crate::counting) when it is known which keys leave.
//!
//! # What is kept, exactly
//!
//! A window of W insertions and n epochs has turns of E = W / (n − 1) insertions, rounded up. Every
//! insertion counts, also of a key that is there already, which is then as new as any. A key is found
//! if it is among the last W insertions, always. If it is not among the last n · E, it is found no
//! more often than a key that never came: that is [`Shape::longest`], a quarter more than the window
//! for five epochs. In between it depends on the group of the key.
//!
//! A window of time T has turns of T / (n − 1), rounded up to nanoseconds. A key is found at any time
//! up to T after it was inserted, and no longer than n turns. The time is passed in, as what has gone
//! by since any moment one likes; the first time that a filter is told starts its clock. A time before
//! the latest one counts as that, so a clock that is set back loses nothing, and makes keys stay
//! longer. A clock that is set forward makes them leave: use one that does neither.
//!
//! # What it costs to forget
//!
//! The hand clears lines where it passes, and nothing else is ever cleared. In a window of insertions
//! that is one line every 38 insertions at 1 %, and at most the number of groups over E, rounded up, in
//! a single one. In a window of time, [`advance`](WindowBloomFilter::advance) clears what the hand
//! passes in the time that went by: that time's share of n turns, of all memory, and at most all of it
//! once. Who advances regularly never waits.
//!
//! # Where it breaks
//!
//! A window of time is planned for a number of insertions that come evenly. If more come, or all of
//! them in one turn, no key is lost; but the rate is above the planned one until they have left:
//! [`expected_rate`](WindowBloomFilter::expected_rate) tells. Plan for (n − 1) times what comes in the
//! busiest turn.
//!
//! A key has one line an epoch and at most eight bits there. Below 0.1 % that takes more and more
//! space: 37.6 bits at 10^-4, 83 at 10^-6.
//!
//! Whoever knows the seed can choose keys that fall into few lines: see [`Keyed`](crate::Keyed).
//!
//! # Reference
//!
//! "Guarded Epoch Bloom Filters", arXiv 2606.19210, for a ring of filters with one more than the
//! window needs. That all epochs share the places of a key and turn over group by group, so that
//! nothing is ever cleared at once, is ours: `ARCHITECTURE.md`.
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

pub use shape::{MAX_EPOCHS, Shape, Window};

use crate::error::{BatchFull, Full, InvalidShape};
use crate::filter::{Edge, Filter, Insert};
use crate::hash::{Digest, Digester, Portable};
use crate::layout::Plan;
use crate::layout::ring::batch;
use crate::parts::bits::count;
use crate::simd::{Choice, Lanes, Line, Places};
use crate::storage::{Allocate, Heap, Storage, StorageMut};
use core::borrow::Borrow;
use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;
use hand::Hand;
use lines::{LookUp, LookUpAhead, one};

/// A Bloom filter of the last keys `T`, hashed by `H`. The [module](crate::window) tells what it is
/// and when to choose it.
pub struct WindowBloomFilter<T: ?Sized, H = Portable> {
    shape: Shape,
    hasher: H,
    storage: Heap,
    /// On which path it goes.
    choice: Choice,
    /// Where the probes of a key are in each of its lines.
    lanes: &'static Lanes,
    hand: Hand,
    insertions: u64,
    /// The latest time that it was told, in nanoseconds.
    now: Option<u64>,
    keys: PhantomData<fn(&T)>,
}

/// With the default hasher.
impl<T: ?Sized> WindowBloomFilter<T> {
    /// A filter of the last `window` insertions, at an error rate of at most `err_rate`.
    ///
    /// # Panics
    ///
    /// Where [`try_new`](Self::try_new) gives an error: if `err_rate` is not above 0 and below 1,
    /// or there is no memory for so large a filter.
    #[must_use]
    pub fn new(window: u64, err_rate: f64) -> Self {
        Self::with_hasher(window, err_rate, Portable::default())
    }

    /// A filter of the last `window` insertions, at an error rate of at most `err_rate`.
    ///
    /// # Errors
    ///
    /// [`InvalidShape`] if `err_rate` is not above 0 and below 1 or too small, or if so large a
    /// filter cannot be represented or allocated.
    pub fn try_new(window: u64, err_rate: f64) -> Result<Self, InvalidShape> {
        Self::with(Shape::for_rate(window, err_rate)?, Portable::default())
    }

    /// A filter of the last `window` of time, at an error rate of at most `err_rate` while at most
    /// `capacity` insertions come in any window, evenly.
    ///
    /// # Panics
    ///
    /// Where there is no such shape ([`Shape::for_time`]), or [`with`](Self::with) gives an error.
    #[must_use]
    pub fn for_time(window: Duration, capacity: u64, err_rate: f64) -> Self {
        Shape::for_time(window, capacity, err_rate)
            .and_then(|shape| Self::with(shape, Portable::default()))
            .unwrap_or_else(|error| panic!("{error}"))
    }
}

/// With another hasher or shape.
impl<T: ?Sized, H> WindowBloomFilter<T, H> {
    /// As `new`, with this hasher.
    ///
    /// # Panics
    ///
    /// Where there is no such shape, or [`with`](Self::with) gives an error.
    #[must_use]
    pub fn with_hasher(window: u64, err_rate: f64, hasher: H) -> Self {
        Shape::for_rate(window, err_rate)
            .and_then(|shape| Self::with(shape, hasher))
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// A filter of this shape, with this hasher.
    ///
    /// # Errors
    ///
    /// [`InvalidShape::OutOfMemory`] if there is no memory for it.
    pub fn with(shape: Shape, hasher: H) -> Result<Self, InvalidShape> {
        Ok(Self::of_parts(shape, hasher, Heap::zeroed(shape.words())?))
    }

    /// With these words, at the start of its window.
    fn of_parts(shape: Shape, hasher: H, storage: Heap) -> Self {
        Self {
            shape,
            hasher,
            storage,
            choice: Choice::now(),
            lanes: &Places::of(false, shape.probes()).lanes[0],
            hand: Hand::new(shape.epochs(), shape.groups(), shape.span()),
            insertions: 0,
            now: None,
            keys: PhantomData,
        }
    }
}

/// For reading.
impl<T: ?Sized, H> WindowBloomFilter<T, H> {
    #[inline(always)]
    fn look_up(&self) -> LookUp<'_> {
        LookUp { lines: self.lines(), hand: &self.hand, lanes: self.lanes }
    }

    #[inline(always)]
    fn lines(&self) -> &[Line<u64>] {
        self.storage.words().as_chunks().0
    }

    /// Whether the key may have been inserted lately. `false` is proof that it was not, within the
    /// window; `true` is wrong for a share of absent keys that
    /// [`expected_rate`](Self::expected_rate) tells, and may be said of a key for as long as
    /// [`Shape::longest`].
    ///
    /// A window of time ends at the latest time that the filter was told.
    #[must_use]
    #[inline]
    pub fn contains<Q>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: ?Sized,
        H: Digester<Q>,
    {
        self.contains_digest(self.hasher.digest(key))
    }

    /// As [`contains`](Self::contains), for a key that was digested elsewhere.
    #[must_use]
    #[inline]
    pub fn contains_digest(&self, digest: Digest) -> bool {
        one(self.choice, self.look_up(), digest)
    }

    /// As [`contains`](Self::contains) after [`advance`](Self::advance)`(now)`, without changing
    /// anything.
    #[must_use]
    pub fn contains_at<Q>(&self, key: &Q, now: Duration) -> bool
    where
        T: Borrow<Q>,
        Q: ?Sized,
        H: Digester<Q>,
    {
        self.contains_digest_at(self.hasher.digest(key), now)
    }

    /// As [`contains_at`](Self::contains_at), for a key that was digested elsewhere.
    #[must_use]
    pub fn contains_digest_at(&self, digest: Digest, now: Duration) -> bool {
        let (passed, _) = self.hand.ahead(self.since(nanos(now)));
        one(self.choice, LookUpAhead { now: self.look_up(), passed }, digest)
    }

    /// As [`contains`](Self::contains), for many keys: `found[i]` is the answer for `keys[i]`.
    /// Faster than one by one, since all keys of a batch wait for memory at the same time.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[inline]
    pub fn contains_batch<A>(&self, keys: &[A], found: &mut [bool])
    where
        A: Borrow<T>,
        H: Digester<T>,
    {
        let digest = |key: &A| self.hasher.digest(key.borrow());
        batch(self.choice, self.look_up(), keys, digest, found);
    }

    /// As [`contains_batch`](Self::contains_batch), for keys that were digested elsewhere.
    #[inline]
    pub fn contains_digests(&self, digests: &[Digest], found: &mut [bool]) {
        batch(self.choice, self.look_up(), digests, |digest| *digest, found);
    }

    /// The plan it was made by.
    #[must_use]
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// What turns keys into digests.
    #[must_use]
    pub const fn hasher(&self) -> &H {
        &self.hasher
    }

    /// The memory of the words, in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.shape.bytes()
    }

    /// The words: with n epochs, line e of group g is words 8 (n g + e) to 8 (n g + e) + 7.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        self.storage.words()
    }

    /// How many insertions there were since it was made or cleared. Of a window of insertions, the
    /// smaller one of this and the window are in it.
    #[must_use]
    pub const fn insertions(&self) -> u64 {
        self.insertions
    }

    /// The latest time that it was told, if it was told any.
    #[must_use]
    pub fn now(&self) -> Option<Duration> {
        self.now.map(Duration::from_nanos)
    }

    /// Whether there is no key in the filter. Reads until it finds a bit that is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words().iter().all(|word| *word == 0)
    }

    /// About how many keys are in the filter, in the window or about to leave, judged by the bits that
    /// are set. A key that came in several turns counts as often. Reads the whole filter.
    #[must_use]
    pub fn estimated_len(&self) -> u64 {
        let epochs = self.hand.epochs();
        // Lines by age, since only those of one age are equally full.
        let mut set = [0; MAX_EPOCHS as usize];
        for (number, group) in self.lines().chunks_exact(epochs).enumerate() {
            let filled = self.hand.filled(number);
            for (epoch, line) in group.iter().enumerate() {
                set[(filled + epochs - epoch) % epochs] += count(line);
            }
        }
        let estimate = |set: &u64| self.shape.epoch().estimate_items(*set);
        set[..epochs].iter().map(estimate).fold(0, u64::saturating_add)
    }

    /// The error rate now, judged by the bits that are set. Reads the whole filter.
    #[must_use]
    pub fn expected_rate(&self) -> f64 {
        let (mut sum, epoch) = (0.0, self.shape.epoch());
        for group in self.lines().chunks_exact(self.hand.epochs()) {
            let compound = |rate, line: &Line<u64>| {
                let (first, second) = line.split_at(4);
                let fill = |half| count(half) as f64 / 256.0;
                let next = epoch.rate_of_line(0, fill(first), fill(second));
                rate + next - rate * next
            };
            sum += group.iter().fold(0.0, compound);
        }
        sum / self.hand.groups() as f64
    }

    /// How far the hand goes until then.
    fn since(&self, now: u64) -> u64 {
        match (self.shape.window(), self.now) {
            (Window::Time(_), Some(before)) => now.saturating_sub(before),
            _ => 0,
        }
    }
}

/// A time in nanoseconds. It stands still after 584 years.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// For changing.
impl<T: ?Sized, H> WindowBloomFilter<T, H> {
    /// Inserts a key, as the newest, whether it is there already or not. `true` is proof that it was
    /// not inserted within the window; `false` says that [`contains`](Self::contains) would have
    /// answered `true` already.
    ///
    /// In a window of time it is inserted at the latest time that the filter was told.
    #[inline]
    pub fn insert<Q>(&mut self, key: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: ?Sized,
        H: Digester<Q>,
    {
        self.insert_digest(self.hasher.digest(key))
    }

    /// As [`insert`](Self::insert), for a key that was digested elsewhere.
    #[inline]
    pub fn insert_digest(&mut self, digest: Digest) -> bool {
        self.insertions = self.insertions.saturating_add(1);
        let Self { shape, storage, lanes, hand, .. } = self;
        one(self.choice, inserting::<true>(shape, storage, lanes, hand), digest)
    }

    /// [`advance`](Self::advance)s to `now`, and inserts a key then.
    #[inline]
    pub fn insert_at<Q>(&mut self, key: &Q, now: Duration) -> bool
    where
        T: Borrow<Q>,
        Q: ?Sized,
        H: Digester<Q>,
    {
        self.insert_digest_at(self.hasher.digest(key), now)
    }

    /// As [`insert_at`](Self::insert_at), for a key that was digested elsewhere.
    #[inline]
    pub fn insert_digest_at(&mut self, digest: Digest, now: Duration) -> bool {
        self.advance(now);
        self.insert_digest(digest)
    }

    /// Tells the filter the time, as what has gone by since any moment that is the same for all calls.
    /// Keys that are older than [`Shape::longest`] then leave, and none that is in the window.
    ///
    /// The first time starts the clock, and nothing leaves. A time before the latest one changes
    /// nothing. Neither does any time where the window is one of insertions, except that
    /// [`now`](Self::now) tells it.
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

    /// As [`insert`](Self::insert), for many keys in their order: `fresh[i]` is the answer for
    /// `keys[i]`. Faster than one by one, since all keys of a batch wait for memory at the same time.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[inline]
    pub fn insert_batch<A>(&mut self, keys: &[A], fresh: &mut [bool])
    where
        A: Borrow<T>,
        H: Digester<T>,
    {
        self.insert_each(keys, |hasher, key| hasher.digest(key.borrow()), fresh);
    }

    /// As [`insert_batch`](Self::insert_batch), for keys that were digested elsewhere.
    #[inline]
    pub fn insert_digests(&mut self, digests: &[Digest], fresh: &mut [bool]) {
        self.insert_each(digests, |_, digest| *digest, fresh);
    }

    #[inline]
    fn insert_each<A>(
        &mut self,
        keys: &[A],
        digest: impl Fn(&H, &A) -> Digest,
        fresh: &mut [bool],
    ) {
        self.insertions = self.insertions.saturating_add(keys.len() as u64);
        let Self { shape, hasher, storage, choice, lanes, hand, .. } = self;
        let insert = inserting::<true>(shape, storage, lanes, hand);
        batch(*choice, insert, keys, |key| digest(hasher, key), fresh);
    }

    /// Forgets all keys. What time it is stays known.
    pub fn clear(&mut self) {
        self.storage.words_mut().fill(0);
        self.insertions = 0;
    }
}

#[inline(always)]
fn inserting<'a, const ANSWER: bool>(
    shape: &Shape,
    storage: &'a mut Heap,
    lanes: &'static Lanes,
    hand: &'a mut Hand,
) -> lines::Insert<'a, ANSWER> {
    let lines = storage.words_mut().as_chunks_mut().0;
    let steps = matches!(shape.window(), Window::Insertions(_));
    lines::Insert { lines, hand, lanes, steps }
}

impl<T: ?Sized, H> Filter for WindowBloomFilter<T, H> {
    /// `false` is proof that the digest was not inserted within the window.
    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.contains_digest(digest)
    }
}

impl<T: ?Sized, H: Digester<T>> Edge for WindowBloomFilter<T, H> {
    type Key = T;

    #[inline]
    fn digest(&self, key: &T) -> Digest {
        self.hasher.digest(key)
    }
}

impl<T: ?Sized, H> Insert for WindowBloomFilter<T, H> {
    /// Never [`Full`]. `Ok(true)` is proof that the digest was not inserted within the window.
    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        Ok(self.insert_digest(digest))
    }

    /// Never [`BatchFull`].
    #[inline]
    fn insert_digests(&mut self, digests: &[Digest], fresh: &mut [bool]) -> Result<(), BatchFull> {
        self.insert_digests(digests, fresh);
        Ok(())
    }
}

/// Keys are inserted in their order and in batches. Whether they were new is not told, so nothing is
/// looked up.
impl<A, T, H> Extend<A> for WindowBloomFilter<T, H>
where
    A: Borrow<T>,
    T: ?Sized,
    H: Digester<T>,
{
    fn extend<I: IntoIterator<Item = A>>(&mut self, keys: I) {
        /// How many are worth going through at once.
        const BATCH: usize = 256;
        let Self { shape, hasher, storage, choice, lanes, hand, .. } = self;
        let mut digests = keys.into_iter().map(|key| hasher.digest(key.borrow())).fuse();
        let (mut next, mut unused) = ([Digest::new(0); BATCH], [false; BATCH]);
        loop {
            let mut len = 0;
            for (slot, digest) in next.iter_mut().zip(&mut digests) {
                *slot = digest;
                len += 1;
            }
            self.insertions = self.insertions.saturating_add(len as u64);
            let insert = inserting::<false>(shape, storage, lanes, hand);
            batch(*choice, insert, &next[..len], |digest| *digest, &mut unused[..len]);
            if len < BATCH {
                break;
            }
        }
    }
}

impl<T: ?Sized, H: Clone> Clone for WindowBloomFilter<T, H> {
    fn clone(&self) -> Self {
        let Self { shape, choice, lanes, hand, insertions, now, .. } = *self;
        let (hasher, storage) = (self.hasher.clone(), self.storage.clone());
        Self { shape, hasher, storage, choice, lanes, hand, insertions, now, keys: PhantomData }
    }
}

/// Equal filters give equal answers, now and after the same insertions at the same times.
impl<T: ?Sized, H: Digester<T>> PartialEq for WindowBloomFilter<T, H> {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape
            && self.hasher.check() == other.hasher.check()
            && (self.hand, self.now) == (other.hand, other.now)
            && self.words() == other.words()
    }
}

impl<T: ?Sized, H: fmt::Debug> fmt::Debug for WindowBloomFilter<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(Shape::NAME)
            .field("window", &self.shape.window())
            .field("capacity", &self.shape.items())
            .field("epochs", &self.shape.epochs())
            .field("bits", &self.shape.bits())
            .field("probes", &self.shape.probes())
            .field("insertions", &self.insertions)
            .field("now", &self.now())
            .field("hasher", &self.hasher)
            .finish()
    }
}
