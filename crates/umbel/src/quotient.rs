//! The quotient filter: the first bits of every digest, in order.
//!
//! ```text
//!     digest of "umbel" = 0.29 1011 ..., of 8 quotients:      quotient 2       remainder 1011
//!
//!     quotients     0    1    2    3    4    5    6    7
//!     has a run     .    x    x    .    .    x    .    .
//!     slots             [01] [1011 0110] [..]  [0001] [..]     in the order of their quotients,
//!     run ends           x          x           x              one slot on if there is no room
//! ```
//!
//! | bits per key | touches per look-up | remove | union | grow | can building fail |
//! |---|---|---|---|---|---|
//! | 1.06 (log2(1/rate) + 2.0): 9.7 at 1 % | 2 | yes | yes, as a sum | yes | at a load of 0.95 |
//!
//! Choose it when keys leave again, and filters must be merged, grown or shrunk without the keys: a
//! quotient filter knows a part of every digest, and can read it back in order. Prefer
//! [`counting`](crate::counting) when keys come many times, [`bloom`](crate::bloom) when nothing ever
//! leaves and unions must not grow, [`blocked`](crate::blocked) when look-ups must be as fast as can
//! be.
//!
//! # Where it breaks
//!
//! Past a load of 0.95 an insert is [`Full`], and the filter is then unchanged. There is also an end to
//! how often one key may be inserted: after [`MAX_COPIES`] times it is `Full` too, since copies are in
//! the way of their neighbours. [`insert_unique`](QuotientFilter::insert_unique) inserts a key only
//! if it is not found, and is for sets from which nothing is removed. Whoever can choose the digests
//! of keys can crowd them at one place, which makes the filter slow there, and `Full` early at its
//! end: take [`Keyed`](crate::Keyed) for such keys.
//!
//! Removing a key that was never inserted, but is found, removes another key, which is then lost:
//! remove only what is known to be there. As long as no key is removed more often than it was
//! inserted, no key is ever lost.
//!
//! Growing does not change the rate for the keys that are there, but there is an end to it: every
//! doubling takes a bit from the remainders. [`Shape::for_rate_growing`] plans for it, and then the
//! filter grows by itself and keeps its rate.
//!
//! # Reference
//!
//! Bender et al. 2012, "Don't thrash: how to cache your hash on flash", section 3: quotients, remainders
//! and what can be done without the keys. Pandey, Bender, Johnson and Patro 2017, "A general-purpose
//! counting filter: making every bit count", section 3: runs found by counting bits. Here any number of
//! quotients will do, since the digest is taken as a fraction of it, and runs are not sorted until
//! they are saved.
//!
//! ```
//! use umbel::QuotientFilter;
//!
//! let mut open = QuotientFilter::<str>::new(10_000, 0.01); // capacity, error rate
//! assert_eq!(open.insert("session 1"), Ok(true)); // true: certainly new
//! assert_eq!(open.insert("session 1"), Ok(false)); // false: perhaps not new
//! assert_eq!(open.count("session 1"), 2); // never too low
//!
//! let mut elsewhere = QuotientFilter::<str>::new(10_000, 0.01);
//! elsewhere.insert("session 2")?;
//! open.merge_with(&elsewhere).expect("the same capacity, rate and seed");
//! assert!(open.contains("session 2") && open.len() == 3);
//! assert!(open.remove("session 1") && open.remove("session 1") && !open.contains("session 1"));
//! # Ok::<(), umbel::Full>(())
//! ```

mod batch;
mod bytes;
mod near;
mod rebuild;
mod runs;
mod shape;
mod table;

pub use runs::Prefixes;
pub use shape::{MAX_REMAINDER, MIN_REMAINDER, Shape};
pub use table::MAX_COPIES;

use crate::error::{BatchFull, Full, Incompatible, InvalidBytes, InvalidShape};
use crate::filter::{Edge, Filter, Insert, Remove, Union};
use crate::hash::{Digest, Digester, Portable};
use crate::layout::Plan;
use crate::simd::{Ranks, ranked};
use batch::{LookUp, Many, One};
use core::borrow::Borrow;
use core::fmt;
use core::marker::PhantomData;
use rebuild::{Refused, rebuilt};
use table::{Entry, Table};

/// A quotient filter of keys `T`, hashed by `H`. The [module](crate::quotient) tells what it is and when
/// to choose it.
pub struct QuotientFilter<T: ?Sized, H = Portable> {
    shape: Shape,
    hasher: H,
    table: Table,
    /// How bits are counted.
    ranks: Ranks,
    keys: PhantomData<fn(&T)>,
}

/// With the default hasher.
impl<T: ?Sized> QuotientFilter<T> {
    /// A filter for `capacity` keys at an error rate of at most `err_rate`.
    ///
    /// # Panics
    ///
    /// Where [`try_new`](Self::try_new) gives an error: if `err_rate` is not above 0 and below 1,
    /// or there is no memory for so large a filter.
    #[must_use]
    pub fn new(capacity: u64, err_rate: f64) -> Self {
        Self::with_hasher(capacity, err_rate, Portable::default())
    }

    /// A filter for `capacity` keys at an error rate of at most `err_rate`.
    ///
    /// # Errors
    ///
    /// [`InvalidShape`] if `err_rate` is not above 0 and below 1 or too small, or if so large a
    /// filter cannot be represented or allocated.
    pub fn try_new(capacity: u64, err_rate: f64) -> Result<Self, InvalidShape> {
        Self::with(Shape::for_rate(capacity, err_rate)?, Portable::default())
    }
}

/// With another hasher or shape.
impl<T: ?Sized, H> QuotientFilter<T, H> {
    /// A filter for `capacity` keys at an error rate of at most `err_rate`, with this hasher.
    ///
    /// # Panics
    ///
    /// As `new`: where there is no such shape, or [`with`](Self::with) gives an error.
    #[must_use]
    pub fn with_hasher(capacity: u64, err_rate: f64, hasher: H) -> Self {
        Shape::for_rate(capacity, err_rate)
            .and_then(|shape| Self::with(shape, hasher))
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// A filter of this shape, with this hasher. It grows by itself if the shape has
    /// [`doublings`](Shape::doublings).
    ///
    /// # Errors
    ///
    /// [`InvalidShape::OutOfMemory`] if there is no memory for it.
    pub fn with(shape: Shape, hasher: H) -> Result<Self, InvalidShape> {
        let table = Table::new(&shape)?;
        Ok(Self { shape, hasher, table, ranks: Ranks::now(), keys: PhantomData })
    }
}

/// For reading.
impl<T: ?Sized, H> QuotientFilter<T, H> {
    /// Whether the key may be in the filter: inserted and not removed. `false` is proof that it is
    /// not; `true` is wrong for a share of absent keys that [`expected_rate`](Self::expected_rate)
    /// tells.
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
        ranked(self.ranks, One(LookUp(&self.table), digest))
    }

    /// As [`contains`](Self::contains), for many keys: `found[i]` is the answer for `keys[i]`.
    /// Faster than one by one where the filter is larger than the cache.
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
        let digests = keys.iter().map(|key| self.hasher.digest(key.borrow()));
        self.contains_each(digests, found);
    }

    /// As [`contains_batch`](Self::contains_batch), for keys that were digested elsewhere.
    #[inline]
    pub fn contains_digests(&self, digests: &[Digest], found: &mut [bool]) {
        self.contains_each(digests.iter().copied(), found);
    }

    #[inline(always)]
    fn contains_each(&self, digests: impl ExactSizeIterator<Item = Digest>, found: &mut [bool]) {
        assert_eq!(digests.len(), found.len(), "one answer for each key");
        let mut found = found.iter_mut();
        let each = |answer| found.next().map(|slot| *slot = answer).is_some();
        ranked(self.ranks, Many { touch: LookUp(&self.table), digests, each });
    }

    /// How many times the key is in the filter: inserted and not removed. Never too low; too high for
    /// keys whose prefix others have too, which are as many as are found without being there.
    #[must_use]
    #[inline]
    pub fn count<Q>(&self, key: &Q) -> u64
    where
        T: Borrow<Q>,
        Q: ?Sized,
        H: Digester<Q>,
    {
        self.count_digest(self.hasher.digest(key))
    }

    /// As [`count`](Self::count), for a key that was digested elsewhere.
    #[must_use]
    #[inline]
    pub fn count_digest(&self, digest: Digest) -> u64 {
        ranked(self.ranks, One(batch::Count(&self.table), digest))
    }

    /// The plan it has now: growing and shrinking change it.
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
    pub fn bytes(&self) -> u64 {
        self.shape.bytes()
    }

    /// How many keys are in the filter, exactly: one for each time that a key was inserted and not
    /// removed again.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.table.len()
    }

    /// Whether there is no key in the filter.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many keys there may be before the filter is full, or grows.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.shape.capacity()
    }

    /// The share of quotients that the keys would fill. Full at 0.95.
    #[must_use]
    pub fn load(&self) -> f64 {
        self.shape.load(self.len())
    }

    /// The error rate now: the share of all prefixes that are there. Reads the whole filter.
    #[must_use]
    pub fn expected_rate(&self) -> f64 {
        self.different() as f64 / self.shape.prefixes() as f64
    }

    /// How many different keys are in the filter, judged by the prefixes that are there. Reads the
    /// whole filter.
    #[must_use]
    pub fn estimated_different(&self) -> u64 {
        Plan::estimate_items(&self.shape, self.different())
    }

    /// How many different prefixes there are.
    fn different(&self) -> u64 {
        let mut last = None;
        self.prefixes().filter(|prefix| last.replace(*prefix) != Some(*prefix)).count() as u64
    }

    /// What the filter knows of its keys, in ascending order: for each time that a key was inserted,
    /// the [`prefix`](Self::prefix) of its digest.
    ///
    /// ```
    /// use umbel::{Digest, QuotientFilter};
    ///
    /// let mut filter = QuotientFilter::<u64>::new(100, 0.01);
    /// for key in [7, 1, 7] {
    ///     filter.insert(&key)?;
    /// }
    /// let mut expected = [7, 1, 7].map(|key| filter.prefix(Digest::mixed(key)));
    /// expected.sort();
    /// assert!(filter.prefixes().eq(expected));
    /// # Ok::<(), umbel::Full>(())
    /// ```
    #[must_use]
    pub fn prefixes(&self) -> Prefixes<'_> {
        Prefixes::new(&self.table, 0..self.table.quotients())
    }

    /// What the filter would know of a digest: quotient and remainder as one number below
    /// [`Shape::prefixes`], the same before and after growing. Larger digests have no smaller one.
    #[must_use]
    pub fn prefix(&self, digest: Digest) -> u64 {
        let Entry { quotient, remainder } = self.table.entry(digest);
        (quotient as u64) << self.shape.remainder_bits() | remainder
    }

    /// Whether the table contradicts itself nowhere: for tests, since no method leaves it so.
    ///
    /// # Errors
    ///
    /// [`InvalidBytes::Inconsistent`] if it does.
    pub fn validate(&self) -> Result<(), InvalidBytes> {
        let sound = self.table.check() == Some(self.len());
        if sound { Ok(()) } else { Err(InvalidBytes::Inconsistent) }
    }

    fn compatible(&self, other: &Self) -> Result<(), Incompatible>
    where
        H: Digester<T>,
    {
        let (expected, got) = (self.shape.prefixes(), other.shape.prefixes());
        if expected != got {
            return Err(Incompatible::Prefixes { expected, got });
        }
        if self.hasher.check() != other.hasher.check() {
            return Err(Incompatible::Hasher);
        }
        Ok(())
    }
}

/// For changing.
impl<T: ?Sized, H> QuotientFilter<T, H> {
    /// Inserts a key, once more if it is there already. `Ok(true)` is proof that it was not;
    /// `Ok(false)` says that [`contains`](Self::contains) would have answered `true` already.
    ///
    /// # Errors
    ///
    /// [`Full`] if there is no room and none was planned to grow into, or the key is there
    /// [`MAX_COPIES`] times. The filter is then unchanged.
    #[inline]
    pub fn insert<Q>(&mut self, key: &Q) -> Result<bool, Full>
    where
        T: Borrow<Q>,
        Q: ?Sized,
        H: Digester<Q>,
    {
        self.insert_digest(self.hasher.digest(key))
    }

    /// As [`insert`](Self::insert), for a key that was digested elsewhere.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    #[inline]
    pub fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        let answer = ranked(self.ranks, One(batch::Insert(&mut self.table), digest));
        if answer.is_err() {
            return self.insert_growing(digest);
        }
        answer
    }

    #[cold]
    fn insert_growing(&mut self, digest: Digest) -> Result<bool, Full> {
        // Copies are in each other's way however large the table is.
        while self.count_digest(digest) < MAX_COPIES {
            self.grow_as_planned()?;
            let answer = ranked(self.ranks, One(batch::Insert(&mut self.table), digest));
            if answer.is_ok() {
                return answer;
            }
        }
        Err(Full)
    }

    /// Inserts a key unless it is found: `Ok(true)` is proof that it was not there and is now,
    /// `Ok(false)` says that it was found, and then nothing is changed.
    ///
    /// A key that is found by mistake is not inserted, so that removing the other one, which it was
    /// mistaken for, removes both: this is for sets from which nothing is removed.
    ///
    /// # Errors
    ///
    /// [`Full`] if the key is not found and there is no room, and none was planned to grow into. The
    /// filter is then unchanged.
    #[inline]
    pub fn insert_unique<Q>(&mut self, key: &Q) -> Result<bool, Full>
    where
        T: Borrow<Q>,
        Q: ?Sized,
        H: Digester<Q>,
    {
        self.insert_unique_digest(self.hasher.digest(key))
    }

    /// As [`insert_unique`](Self::insert_unique), for a key that was digested elsewhere.
    ///
    /// # Errors
    ///
    /// As [`insert_unique`](Self::insert_unique).
    #[inline]
    pub fn insert_unique_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        loop {
            let answer = ranked(self.ranks, One(batch::InsertUnique(&mut self.table), digest));
            if answer.is_ok() {
                return answer;
            }
            self.grow_as_planned()?;
        }
    }

    /// Doubles if that was planned for, or changes nothing.
    #[cold]
    fn grow_as_planned(&mut self) -> Result<(), Full> {
        if self.shape.doublings() == 0 {
            return Err(Full);
        }
        self.grow().map_err(|_| Full)
    }

    /// As [`insert`](Self::insert), for many keys in their order: `fresh[i]` is the answer for
    /// `keys[i]`. Faster than one by one where the filter is larger than the cache.
    ///
    /// # Errors
    ///
    /// [`BatchFull`] if there is no room for one of them. The keys before it are inserted; it and those
    /// after it are not, and their answers are `false`.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[inline]
    pub fn insert_batch<A>(&mut self, keys: &[A], fresh: &mut [bool]) -> Result<(), BatchFull>
    where
        A: Borrow<T>,
        H: Digester<T>,
    {
        self.insert_each(keys, |hasher, key| hasher.digest(key.borrow()), fresh)
    }

    /// As [`insert_batch`](Self::insert_batch), for keys that were digested elsewhere.
    ///
    /// # Errors
    ///
    /// As [`insert_batch`](Self::insert_batch).
    #[inline]
    pub fn insert_digests(
        &mut self,
        digests: &[Digest],
        fresh: &mut [bool],
    ) -> Result<(), BatchFull> {
        self.insert_each(digests, |_, digest| *digest, fresh)
    }

    #[inline]
    fn insert_each<A>(
        &mut self,
        keys: &[A],
        digest: impl Fn(&H, &A) -> Digest,
        fresh: &mut [bool],
    ) -> Result<(), BatchFull> {
        assert_eq!(keys.len(), fresh.len(), "one answer for each key");
        let mut inserted = 0;
        while inserted < keys.len() {
            let Self { hasher, table, ranks, .. } = self;
            let digests = keys[inserted..].iter().map(|key| digest(hasher, key));
            let each = |answer: Result<bool, Full>| {
                let Ok(answer) = answer else { return false };
                fresh[inserted] = answer;
                inserted += 1;
                true
            };
            ranked(*ranks, Many { touch: batch::Insert(table), digests, each });
            if let Some(key) = keys.get(inserted) {
                fresh[inserted..].fill(false);
                let one = digest(&self.hasher, key);
                fresh[inserted] = self.insert_digest(one).map_err(|Full| BatchFull { inserted })?;
                inserted += 1;
            }
        }
        Ok(())
    }

    /// Removes a key, once if it is there several times. `false` is proof that it is not there, and
    /// then nothing is changed.
    ///
    /// To remove a key that was not inserted, but is found, removes another one, which is then lost.
    #[inline]
    pub fn remove<Q>(&mut self, key: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: ?Sized,
        H: Digester<Q>,
    {
        self.remove_digest(self.hasher.digest(key))
    }

    /// As [`remove`](Self::remove), for a key that was digested elsewhere.
    #[inline]
    pub fn remove_digest(&mut self, digest: Digest) -> bool {
        ranked(self.ranks, One(batch::Remove(&mut self.table), digest))
    }

    /// As [`remove`](Self::remove), for many keys in their order: `removed[i]` is the answer for
    /// `keys[i]`. Faster than one by one where the filter is larger than the cache.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[inline]
    pub fn remove_batch<A>(&mut self, keys: &[A], removed: &mut [bool])
    where
        A: Borrow<T>,
        H: Digester<T>,
    {
        assert_eq!(keys.len(), removed.len(), "one answer for each key");
        let Self { hasher, table, ranks, .. } = self;
        let digests = keys.iter().map(|key| hasher.digest(key.borrow()));
        let mut removed = removed.iter_mut();
        let each = |answer| removed.next().map(|slot| *slot = answer).is_some();
        ranked(*ranks, Many { touch: batch::Remove(table), digests, each });
    }

    /// Forgets all keys. The size stays.
    pub fn clear(&mut self) {
        self.table.clear();
    }
}

/// Other sizes, without the keys.
impl<T: ?Sized, H> QuotientFilter<T, H> {
    /// Doubles the room for keys: every remainder gives its first bit to its quotient. Which keys are
    /// found, and how often absent ones are, stays the same.
    /// [`possible_doublings`](Shape::possible_doublings) of the shape tells how many more times that is
    /// possible.
    ///
    /// # Errors
    ///
    /// [`InvalidShape::RemainderOutOfRange`] if remainders would be shorter than [`MIN_REMAINDER`]
    /// bits, others if so large a filter cannot be represented or allocated. The filter is then
    /// unchanged.
    pub fn grow(&mut self) -> Result<(), InvalidShape> {
        let shape = self.shape.doubled()?;
        self.take(shape, rebuilt(&shape, [&self.table, &self.table], false, 1)).map_err(|refused| {
            match refused {
                Refused::Shape(error) => error,
                // Twice the table pushes no more past its end than the table did.
                Refused::Full => {
                    InvalidShape::TooSmall { bytes: shape.bytes(), min: shape.bytes() }
                }
            }
        })
    }

    /// Halves the filter as long as there is room for its keys, and remainders can have the bits that
    /// they gave away, or more. It grows again by itself until there is room for all
    /// [`items`](Shape::items) it was planned for. Whatever cannot be done is not done.
    pub fn shrink_to_fit(&mut self) {
        let mut smaller = None;
        let mut shape = self.shape;
        while let Some(half) = shape.halved().filter(|half| half.capacity() >= self.len()) {
            smaller = Some(half);
            shape = half;
        }
        // Where keys crowd at the end there may be too few slots behind it; then half as small.
        while let Some(shape) = smaller.filter(|shape| shape.quotients() < self.shape.quotients()) {
            let table = rebuilt(&shape, [&self.table, &self.table], false, 1);
            if self.take(shape, table).is_ok() {
                return;
            }
            smaller = shape.doubled().ok();
        }
    }

    fn take(&mut self, shape: Shape, table: Result<Table, Refused>) -> Result<(), Refused> {
        self.table = table?;
        self.shape = shape;
        Ok(())
    }

    /// Adds all keys of the other filter: the same as if they had been inserted here, as often as they
    /// were there. The filter grows if it must, even where that was not planned; the rate is then
    /// that of all keys together. The number of copies of a key is not limited by [`MAX_COPIES`].
    ///
    /// # Errors
    ///
    /// [`Incompatible`] if they differ in [`prefixes`](Shape::prefixes) or hasher, or there is no
    /// room, or no memory, for both. Filters of one shape do not differ, however much each of them has
    /// grown since. Nothing is changed then.
    pub fn merge_with(&mut self, other: &Self) -> Result<(), Incompatible>
    where
        H: Digester<T>,
    {
        self.merge(other, 1)
    }

    /// As [`merge_with`](Self::merge_with), by so many threads, each for a range of quotients.
    ///
    /// # Errors
    ///
    /// As [`merge_with`](Self::merge_with).
    #[cfg(feature = "std")]
    pub fn merge_with_threads(&mut self, other: &Self, threads: usize) -> Result<(), Incompatible>
    where
        H: Digester<T>,
    {
        self.merge(other, threads)
    }

    fn merge(&mut self, other: &Self, threads: usize) -> Result<(), Incompatible>
    where
        H: Digester<T>,
    {
        self.compatible(other)?;
        let keys = self.len() + other.len();
        let items = self.shape.items().max(other.shape.items());
        let larger = if self.capacity() < other.capacity() { &other.shape } else { &self.shape };
        let mut shape =
            Shape::with(items, larger.quotients(), larger.remainder_bits()).unwrap_or(*larger);
        loop {
            let room = Incompatible::Room { keys, most: shape.capacity() };
            if shape.capacity() >= keys {
                match self.take(shape, rebuilt(&shape, [&self.table, &other.table], true, threads))
                {
                    Ok(()) => return Ok(()),
                    Err(Refused::Full) => {}
                    Err(Refused::Shape(_)) => {
                        return Err(Incompatible::OutOfMemory { bytes: shape.bytes() });
                    }
                }
            }
            shape = shape.doubled().map_err(|_| room)?;
        }
    }
}

impl<T: ?Sized, H> Filter for QuotientFilter<T, H> {
    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.contains_digest(digest)
    }
}

impl<T: ?Sized, H: Digester<T>> Edge for QuotientFilter<T, H> {
    type Key = T;

    #[inline]
    fn digest(&self, key: &T) -> Digest {
        self.hasher.digest(key)
    }
}

impl<T: ?Sized, H> Insert for QuotientFilter<T, H> {
    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        self.insert_digest(digest)
    }

    #[inline]
    fn insert_digests(&mut self, digests: &[Digest], fresh: &mut [bool]) -> Result<(), BatchFull> {
        self.insert_digests(digests, fresh)
    }
}

impl<T: ?Sized, H> Remove for QuotientFilter<T, H> {
    #[inline]
    fn remove_digest(&mut self, digest: Digest) -> bool {
        self.remove_digest(digest)
    }
}

/// By adding: a key that was in both is in the union as often as in both together.
impl<T: ?Sized, H: Digester<T>> Union for QuotientFilter<T, H> {
    fn fits(&self, other: &Self) -> Result<(), Incompatible> {
        self.compatible(other)
    }

    fn union_with(&mut self, other: &Self) -> Result<(), Incompatible> {
        self.merge_with(other)
    }
}

impl<T: ?Sized, H: Clone> Clone for QuotientFilter<T, H> {
    fn clone(&self) -> Self {
        Self {
            shape: self.shape,
            hasher: self.hasher.clone(),
            table: self.table.clone(),
            ranks: self.ranks,
            keys: PhantomData,
        }
    }
}

/// Equal filters give equal answers: same prefixes, as often, and same hasher. One may have grown
/// more than the other.
impl<T: ?Sized, H: Digester<T>> PartialEq for QuotientFilter<T, H> {
    fn eq(&self, other: &Self) -> bool {
        self.compatible(other).is_ok()
            && self.len() == other.len()
            && self.prefixes().eq(other.prefixes())
    }
}

impl<T: ?Sized, H: fmt::Debug> fmt::Debug for QuotientFilter<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(Shape::NAME)
            .field("planned", &self.shape.items())
            .field("quotients", &self.shape.quotients())
            .field("remainder_bits", &self.shape.remainder_bits())
            .field("len", &self.len())
            .field("load", &format_args!("{:.4}", self.load()))
            .field("hasher", &self.hasher)
            .finish()
    }
}
