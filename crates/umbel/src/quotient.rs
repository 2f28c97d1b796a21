//! The quotient filter: it stores the first bits of every digest, in order.
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
//! Choose it when keys are removed again, and filters must be merged, grown or shrunk without the
//! keys: a quotient filter stores a prefix of every digest, and can return the prefixes in order.
//! Prefer [`counting`](crate::counting) when keys are inserted many times, [`bloom`](crate::bloom)
//! when no key is ever removed and unions must not grow, and [`blocked`](crate::blocked) when
//! look-ups must be as fast as possible.
//!
//! # Where it breaks
//!
//! Beyond a load factor of 0.95 an insertion fails with [`Full`], and the filter is unchanged. The
//! number of copies of one key is limited too: after [`MAX_COPIES`] insertions the next one is
//! `Full`, because copies slow down the operations on neighbouring keys.
//! [`insert_unique`](crate::Filter::insert_unique) inserts a key only if it is not found; use it
//! for sets from which no key is removed. An attacker who can choose digests can crowd them at one
//! place. That makes the filter slow there, and `Full` early if the place is at its end. Use
//! [`Keyed`](crate::Keyed) for such keys.
//!
//! Removing a false positive removes another key, which is then lost: remove only keys that were
//! inserted. If no key is removed more often than it was inserted, no key is ever lost.
//!
//! Growing does not change the false positive rate for the keys in the filter. The number of
//! doublings is limited, because each takes a bit from the remainders. With
//! [`Shape::for_rate_growing`] the filter grows by itself and keeps its rate.
//!
//! # Reference
//!
//! Bender et al. 2012, "Don't thrash: how to cache your hash on flash", section 3: quotients,
//! remainders and the operations that do not need the keys. Pandey, Bender, Johnson and Patro 2017,
//! "A general-purpose counting filter: making every bit count", section 3: runs found by counting
//! bits. This filter can have any number of quotients, since the quotient is the digest as a
//! fraction of that number, and it sorts runs only when it is saved.
//!
//! ```
//! use umbel::QuotientFilter;
//!
//! let mut open = QuotientFilter::<str>::new(10_000, 0.01); // capacity, error rate
//! assert_eq!(open.insert("session 1"), Ok(true)); // true: certainly new
//! assert_eq!(open.insert("session 1"), Ok(false)); // false: perhaps not new
//! assert_eq!(open.estimated_count("session 1"), 2); // never too low
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

use crate::edge::{Filter, for_core_and_filter, insert_or_full};
use crate::error::{BatchFull, Full, Incompatible, InvalidBytes, InvalidShape};
use crate::filter::{Compatible, Insert, Remove, Union};
use crate::hash::{Digest, Digester, Portable};
use crate::raw::{Clear, Make, Probe, RemoveEach, describe};
use crate::simd::{Ranks, ranked};
use crate::sizing::Shape as _;
use batch::{Many, One, RunLookUp};
use rebuild::{Refused, rebuilt};
use table::{Entry, RunTable};

/// The core of a quotient filter.
#[derive(Clone)]
pub struct RawQuotient {
    shape: Shape,
    table: RunTable,
    /// The instruction path for counting bits.
    ranks: Ranks,
}

/// A quotient filter of keys `T`, hashed by `H`. The [module](crate::quotient) describes it and
/// says when to choose it.
///
/// ```
/// use umbel::QuotientFilter;
///
/// let mut open = QuotientFilter::new(1_000, 0.01); // capacity, false positive rate
/// assert!(open.insert("a")?); // true: certainly not there yet; Full is an error
/// assert!(open.remove("a") && !open.contains("a"));
/// # Ok::<(), umbel::Full>(())
/// ```
pub type QuotientFilter<T, H = Portable> = Filter<T, H, RawQuotient>;

describe! {
    impl[] RawQuotient: Shape, Digest, Shape::NAME, |this| this.shape.bytes();
    planned: this.shape.items(),
    quotients: this.shape.quotients(),
    remainder_bits: this.shape.remainder_bits(),
    len: this.len(),
}

/// The filter grows by itself if its shape has [`doublings`](Shape::doublings).
impl Make for RawQuotient {
    fn plan(capacity: u64, err_rate: f64) -> Result<Shape, InvalidShape> {
        Shape::for_rate(capacity, err_rate)
    }

    fn make(shape: Shape) -> Result<Self, InvalidShape> {
        Ok(Self { shape, table: RunTable::new(&shape)?, ranks: Ranks::now() })
    }
}

impl Probe for RawQuotient {
    #[inline]
    fn probe(&self, digest: Digest) -> bool {
        ranked(self.ranks, One(RunLookUp(&self.table), digest))
    }

    #[inline]
    fn probe_each<A>(&self, keys: &[A], digest: impl Fn(&A) -> Digest, found: &mut [bool]) {
        assert_eq!(keys.len(), found.len(), "one answer for each key");
        let mut found = found.iter_mut();
        let each = |answer| found.next().map(|slot| *slot = answer).is_some();
        let digests = keys.iter().map(digest);
        ranked(self.ranks, Many { touch: RunLookUp(&self.table), digests, each });
    }

    /// The share of all prefixes that are stored. Reads the whole filter.
    fn rate(&self) -> f64 {
        self.different() as f64 / self.shape.prefixes() as f64
    }
}

for_core_and_filter! { impl[] RawQuotient {
    /// As [`estimated_count`](crate::Filter::estimated_count), for a digest that was computed
    /// elsewhere.
    #[must_use]
    pub fn estimated_count_digest(&self, digest: Digest) -> u64 {
        ranked(self.ranks, One(batch::Count(&self.table), digest))
    }

    /// The exact number of keys in the filter: the number of insertions minus the number of
    /// removals.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.table.len()
    }

    /// Whether the filter contains no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many keys the filter can hold before it is full, or grows.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.shape.capacity()
    }

    /// The load factor: the number of keys divided by the number of quotients. The filter is full
    /// at 0.95.
    #[must_use]
    pub fn load(&self) -> f64 {
        self.shape.load(self.len())
    }

    /// An estimate of how many different keys are in the filter, from the prefixes it stores. Reads
    /// the whole filter.
    #[must_use]
    pub fn estimated_different(&self) -> u64 {
        self.shape.estimate_items(self.different())
    }

    /// Everything the filter stores about its keys, in ascending order: the
    /// [`prefix`](Self::prefix) of the digest, once for each insertion of a key.
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

    /// The part of a digest that the filter stores: quotient and remainder as one number below
    /// [`Shape::prefixes`]. It is the same before and after growing. Larger digests never have
    /// smaller prefixes.
    #[must_use]
    pub fn prefix(&self, digest: Digest) -> u64 {
        let Entry { quotient, remainder } = self.table.entry(digest);
        (quotient as u64) << self.shape.remainder_bits() | remainder
    }

    /// Checks that the table is consistent. For tests, since every method keeps it consistent.
    ///
    /// # Errors
    ///
    /// [`InvalidBytes::Inconsistent`] if it is not.
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvalidBytes> {
        let sound = self.table.check() == Some(self.len());
        if sound { Ok(()) } else { Err(InvalidBytes::Inconsistent) }
    }

    /// Inserts a digest unless it is found: as [`insert_unique`](crate::Filter::insert_unique), for
    /// a digest that was computed elsewhere.
    ///
    /// # Errors
    ///
    /// As [`insert_unique`](crate::Filter::insert_unique).
    pub fn insert_unique_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        loop {
            let answer = ranked(self.ranks, One(batch::RunInsertUnique(&mut self.table), digest));
            if answer.is_ok() {
                return answer;
            }
            self.grow_as_planned()?;
        }
    }

    /// Doubles the room for keys: every remainder gives its first bit to its quotient. The answers
    /// and the false positive rate stay the same. [`possible_doublings`](Shape::possible_doublings)
    /// of the shape returns how many more doublings are possible.
    ///
    /// # Errors
    ///
    /// [`InvalidShape::OutOfRange`] if remainders would be shorter than [`MIN_REMAINDER`] bits.
    /// Other variants if the larger filter cannot be represented or allocated. The filter is then
    /// unchanged.
    pub fn grow(&mut self) -> Result<(), InvalidShape> {
        let shape = self.shape.doubled()?;
        self.take(shape, rebuilt(&shape, [&self.table, &self.table], false, 1)).map_err(|refused| {
            match refused {
                Refused::Shape(error) => error,
                // A table of twice the size pushes no more keys past its end than the table did.
                Refused::Full => {
                    InvalidShape::TooSmall { bytes: shape.bytes(), min: shape.bytes() }
                }
            }
        })
    }

    /// Halves the filter repeatedly, while there is room for its keys and remainders can get back a
    /// bit. Later it grows again by itself until there is room for the planned number of
    /// [`items`](Shape::items). It makes no change that is not possible.
    pub fn shrink_to_fit(&mut self) {
        let mut smaller = None;
        let mut shape = self.shape;
        while let Some(half) = shape.halved().filter(|half| half.capacity() >= self.len()) {
            smaller = Some(half);
            shape = half;
        }
        // If keys crowd at the end, there may be too few slots behind it. Then try half the
        // reduction.
        while let Some(shape) = smaller.filter(|shape| shape.quotients() < self.shape.quotients()) {
            let table = rebuilt(&shape, [&self.table, &self.table], false, 1);
            if self.take(shape, table).is_ok() {
                return;
            }
            smaller = shape.doubled().ok();
        }
    }
} }

impl RawQuotient {
    /// The number of different prefixes.
    fn different(&self) -> u64 {
        let mut last = None;
        self.prefixes().filter(|prefix| last.replace(*prefix) != Some(*prefix)).count() as u64
    }

    #[cold]
    fn insert_growing(&mut self, digest: Digest) -> Result<bool, Full> {
        // Copies slow down their neighbours in a table of any size.
        while self.estimated_count_digest(digest) < MAX_COPIES {
            self.grow_as_planned()?;
            let answer = ranked(self.ranks, One(batch::RunInsert(&mut self.table), digest));
            if answer.is_ok() {
                return answer;
            }
        }
        Err(Full)
    }

    /// Doubles the table if the shape plans for it. Otherwise changes nothing.
    #[cold]
    fn grow_as_planned(&mut self) -> Result<(), Full> {
        if self.shape.doublings() == 0 {
            return Err(Full);
        }
        self.grow().map_err(|_| Full)
    }

    #[inline]
    fn insert_each<A>(
        &mut self,
        keys: &[A],
        digest: impl Fn(&A) -> Digest,
        fresh: &mut [bool],
    ) -> Result<(), BatchFull> {
        assert_eq!(keys.len(), fresh.len(), "one answer for each key");
        let mut inserted = 0;
        while inserted < keys.len() {
            let Self { table, ranks, .. } = self;
            let digests = keys[inserted..].iter().map(&digest);
            let each = |answer: Result<bool, Full>| {
                let Ok(answer) = answer else { return false };
                fresh[inserted] = answer;
                inserted += 1;
                true
            };
            ranked(*ranks, Many { touch: batch::RunInsert(table), digests, each });
            if let Some(key) = keys.get(inserted) {
                fresh[inserted..].fill(false);
                let one = self.insert_digest(digest(key));
                fresh[inserted] = one.map_err(|Full| BatchFull { inserted })?;
                inserted += 1;
            }
        }
        Ok(())
    }

    fn take(&mut self, shape: Shape, table: Result<RunTable, Refused>) -> Result<(), Refused> {
        self.table = table?;
        self.shape = shape;
        Ok(())
    }

    fn merge(&mut self, other: &Self, threads: usize) -> Result<(), Incompatible> {
        self.fits(other)?;
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

impl Insert for RawQuotient {
    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        let answer = ranked(self.ranks, One(batch::RunInsert(&mut self.table), digest));
        if answer.is_err() {
            return self.insert_growing(digest);
        }
        answer
    }

    #[inline]
    fn insert_digests(&mut self, digests: &[Digest], fresh: &mut [bool]) -> Result<(), BatchFull> {
        self.insert_each(digests, |digest| *digest, fresh)
    }
}

impl Remove for RawQuotient {
    #[inline]
    fn remove_digest(&mut self, digest: Digest) -> bool {
        ranked(self.ranks, One(batch::RunRemove(&mut self.table), digest))
    }
}

impl RemoveEach for RawQuotient {
    #[inline]
    fn remove_each<A>(&mut self, keys: &[A], digest: impl Fn(&A) -> Digest, removed: &mut [bool]) {
        assert_eq!(keys.len(), removed.len(), "one answer for each key");
        let mut removed = removed.iter_mut();
        let each = |answer| removed.next().map(|slot| *slot = answer).is_some();
        let digests = keys.iter().map(digest);
        ranked(self.ranks, Many { touch: batch::RunRemove(&mut self.table), digests, each });
    }
}

/// Clearing keeps the size.
impl Clear for RawQuotient {
    fn clear(&mut self) {
        self.table.clear();
    }
}

/// Filters of one shape are compatible, even if they have grown differently.
impl Compatible for RawQuotient {
    fn compatible(&self, other: &Self) -> Result<(), Incompatible> {
        let (expected, got) = (self.shape.prefixes(), other.shape.prefixes());
        if expected == got { Ok(()) } else { Err(Incompatible::Prefixes { expected, got }) }
    }
}

/// Adds the copies: a key that was in both is stored as often as in both together.
impl Union for RawQuotient {
    fn fits(&self, other: &Self) -> Result<(), Incompatible> {
        self.compatible(other)
    }

    fn union_with(&mut self, other: &Self) -> Result<(), Incompatible> {
        self.merge(other, 1)
    }
}

insert_or_full! { impl[] RawQuotient;
    new = "Inserts a key, once more if it is there already. `Ok(true)` is proof that it was not; `Ok(false)` says \
        that [`contains`](Self::contains) would have answered `true` already.";
    full = "[`Full`](crate::Full) if there is no room and none was planned to grow into, or the key is there \
        [`MAX_COPIES`] times. The filter is then unchanged."
}

/// Changes.
impl<T: ?Sized, H: Digester<T>> QuotientFilter<T, H> {
    /// How many times the key is in the filter: its insertions minus its removals. Never too low.
    /// It is too high for keys that share their prefix with others, which are as frequent as false
    /// positives.
    #[must_use]
    #[inline]
    pub fn estimated_count(&self, key: &T) -> u64 {
        self.raw.estimated_count_digest(self.hasher.digest(key))
    }

    /// Inserts a key unless it is found. `Ok(true)` proves that it was absent and is now stored.
    /// `Ok(false)` means that it was found, and nothing was changed.
    ///
    /// A key that is a false positive is not inserted. If the key with the same prefix is then
    /// removed, both are gone. Use this only for sets from which no key is removed.
    ///
    /// # Errors
    ///
    /// [`Full`] if the key is not found, there is no room, and the shape plans no further growth.
    /// The filter is then unchanged.
    #[inline]
    pub fn insert_unique(&mut self, key: &T) -> Result<bool, Full> {
        self.raw.insert_unique_digest(self.hasher.digest(key))
    }

    /// Adds all keys of the other filter. The result is the same as if all insertions into the
    /// other filter had been made here. The filter grows if necessary, even if its shape plans no
    /// growth; the rate is then that of all keys together. The number of copies of a key is not
    /// limited by [`MAX_COPIES`].
    ///
    /// # Errors
    ///
    /// [`Incompatible`] if they differ in [`prefixes`](Shape::prefixes) or hasher, or if there is
    /// no room or no memory for both. Filters of one shape do not differ, even if they have grown
    /// differently. Nothing is changed then.
    pub fn merge_with(&mut self, other: &Self) -> Result<(), Incompatible> {
        Union::union_with(self, other)
    }

    /// As [`merge_with`](Self::merge_with), on this many threads, each for a range of quotients.
    ///
    /// # Errors
    ///
    /// As [`merge_with`](Self::merge_with).
    #[cfg(feature = "std")]
    pub fn merge_with_threads(&mut self, other: &Self, threads: usize) -> Result<(), Incompatible> {
        Union::fits(self, other)?;
        self.raw.merge(&other.raw, threads)
    }
}

/// Equal if they store the same prefixes equally often. One may have grown more than the other.
impl PartialEq for RawQuotient {
    fn eq(&self, other: &Self) -> bool {
        self.fits(other).is_ok()
            && self.len() == other.len()
            && self.prefixes().eq(other.prefixes())
    }
}

impl Eq for RawQuotient {}
