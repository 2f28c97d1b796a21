//! The cuckoo filter: it stores a short fingerprint of every key, in one of two buckets.
//!
//! ```text
//!     bucket i                     bucket j: i + j is what a1 alone tells, modulo the number of buckets
//!     [ 3f | a1 | c0 | 77 ]        [ 09 | 5b |    |    ]
//!            |                                 ^
//!            `---- pushed out, moves to -------'   its other bucket; no key is needed for that
//! ```
//!
//! | bits per key | touches per look-up | remove | union | grow | can building fail |
//! |---|---|---|---|---|---|
//! | (log2(1/rate) + 3) / 0.945, rounded up to whole bits: 10.6 at 1 %, 13.8 at 0.1 % | 2 buckets, at once | yes | as a sum, if there is room | no | an insert may be [`Full`] |
//!
//! Choose it when keys are removed again: it takes a quarter of the memory of a
//! [counting](crate::counting) filter, and two cache misses at any false positive rate. Prefer
//! [`blocked`](crate::blocked) when no key is ever removed, [`counting`](crate::counting) when a
//! key is inserted more than eight times or an insertion must never be refused, and
//! [`scalable`](crate::scalable) when the number of keys is unknown.
//!
//! # Where it breaks
//!
//! The number of slots is fixed. Beyond its capacity an insertion may fail with [`Full`], in
//! practice at a load factor of 0.97, after a search of at most some 4,000 buckets. A failed
//! insertion leaves the filter unchanged: every accepted key is found, and nothing of the refused
//! key is stored.
//!
//! Two buckets have eight slots, so the ninth insertion of one key is [`Full`] too. The same
//! happens to the ninth of several keys that an attacker has chosen to share both buckets: use
//! [`Keyed`](crate::Keyed) against that.
//!
//! Removing a false positive removes the fingerprint of another key, which is then lost: remove
//! only keys that were inserted. If no key is removed more often than it was inserted, no key is
//! ever lost, even if others share its fingerprint, because every insertion stores its own copy.
//! [`insert_unique`](crate::Filter::insert_unique) does not store a copy, and must not be combined
//! with [`remove`](crate::Filter::remove).
//!
//! It cannot grow: a larger table would need bits of the digests that the fingerprints do not
//! contain. Filters of one shape and hasher can be [merged](crate::Filter::merge_with) if there is
//! room.
//!
//! # Reference
//!
//! Fan, Andersen, Kaminsky and Mitzenmacher 2014, "Cuckoo filter: practically better than Bloom",
//! section 3: the other bucket of a fingerprint can be computed from it. In the paper the number of
//! buckets is a power of two and the other bucket is an exclusive or. Subtracting from a sum works
//! for any number of buckets (Lang et al. 2019, "Performance-optimal filtering", section 5). The
//! search for an empty slot is breadth first, as in Li, Andersen, Kaminsky and Freedman 2014,
//! "Algorithmic improvements for fast concurrent cuckoo hashing", section 4.3.
//!
//! ```
//! use umbel::CuckooFilter;
//!
//! let mut open = CuckooFilter::<str>::new(10_000, 0.01); // capacity, error rate
//! assert!(open.insert("session 1")?); // true: certainly new
//! assert!(!open.insert("session 1")?); // false: perhaps not new, and there twice
//! assert_eq!((open.estimated_count("session 1"), open.len()), (2, 2));
//! assert!(open.remove("session 1") && open.contains("session 1"));
//! assert!(open.remove("session 1") && !open.contains("session 1"));
//! assert!(!open.remove("session 1")); // false: certainly not there
//! # Ok::<(), umbel::Full>(())
//! ```

mod batch;
mod bytes;
mod room;
mod search;
mod shape;
mod table;

pub use shape::{MAX_FINGERPRINT_BITS, MIN_FINGERPRINT_BITS, Shape, words_for};

use crate::edge::{Filter, for_core_and_filter, insert_or_full};
use crate::error::{BatchFull, Full, Incompatible, InvalidBytes, InvalidShape};
use crate::filter::{Compatible, Insert, Remove};
use crate::hash::{Digest, Digester, Portable};
use crate::parts::buckets::SLOTS;
use crate::raw::{Clear, Make, Probe, RemoveEach, describe};
use crate::sizing::Shape as _;
use crate::storage::{Allocate, Array, Own, Storage, StorageMut};
use table::{BucketTable, Place};

#[cfg(feature = "alloc")]
use crate::{raw::TryClone, storage::Heap};

/// The core of a cuckoo filter, with words in `S`.
#[derive(Clone)]
pub struct RawCuckoo<S> {
    shape: Shape,
    storage: S,
    /// How many slots are taken.
    len: u64,
}

/// A cuckoo filter of keys `T`, hashed by `H`, with any storage `S`.
///
/// The names for everyday use are [`CuckooFilter`], in owned memory, and [`ArrayCuckooFilter`], in
/// an array.
pub type Cuckoo<T, H, S> = Filter<T, H, RawCuckoo<S>>;

/// A cuckoo filter in owned memory. The [module](crate::cuckoo) describes it and says when to
/// choose it.
///
/// ```
/// use umbel::CuckooFilter;
///
/// let mut open = CuckooFilter::new(1_000, 0.01); // capacity, false positive rate
/// assert!(open.insert("a")?); // true: certainly not there yet; Full is an error
/// assert!(open.remove("a") && !open.contains("a"));
/// # Ok::<(), umbel::Full>(())
/// ```
#[cfg(feature = "alloc")]
pub type CuckooFilter<T, H = Portable> = Filter<T, H, RawCuckoo<Heap>>;

/// A cuckoo filter in an array, without an allocator. The array has exactly the number of words of
/// its shape.
///
/// ```
/// use umbel::cuckoo::{ArrayCuckooFilter, words_for};
///
/// const WORDS: usize = words_for(100, 0.01);
/// let mut filter = ArrayCuckooFilter::<u64, WORDS>::new(100, 0.01);
/// assert!(filter.insert(&7)? && filter.remove(&7) && !filter.contains(&7));
/// # Ok::<(), umbel::Full>(())
/// ```
pub type ArrayCuckooFilter<T, const WORDS: usize, H = Portable> =
    Filter<T, H, RawCuckoo<Array<WORDS>>>;

describe! {
    impl[S] RawCuckoo<S>: Shape, Digest, Shape::NAME, |this| this.shape.bytes();
    capacity: this.shape.items(),
    buckets: this.shape.buckets(),
    fingerprint_bits: this.shape.fingerprint_bits(),
    len: this.len,
}

impl<S: Allocate> Make for RawCuckoo<S> {
    fn plan(capacity: u64, err_rate: f64) -> Result<Shape, InvalidShape> {
        Shape::for_rate(capacity, err_rate)
    }

    fn make(shape: Shape) -> Result<Self, InvalidShape> {
        let storage = S::zeroed(shape.words())?;
        Ok(Self { shape, storage, len: 0 })
    }
}

#[cfg(feature = "alloc")]
impl TryClone for RawCuckoo<Heap> {
    fn try_clone(&self) -> Result<Self, InvalidShape> {
        Ok(Self { storage: self.storage.try_clone()?, ..*self })
    }
}

impl<B: AsRef<[u64]>> RawCuckoo<Own<B>> {
    #[inline(always)]
    fn table(&self) -> BucketTable<&[u64]> {
        BucketTable::new(&self.shape, self.storage.words())
    }

    /// The places of all fingerprints.
    fn places(&self) -> impl Iterator<Item = Place> {
        let table = self.table();
        self.fingerprints()
            .map(move |(bucket, fingerprint)| table.place_in(bucket, fingerprint.into()))
    }

    /// All fingerprints, each with its bucket.
    ///
    /// These are what [`merge_with`](Self::merge_with) copies, and everything that a filter stores
    /// about its keys. They determine the other bucket in a table with the same number of buckets.
    /// They do not determine a bucket in a table of another size, which is why a filter cannot
    /// grow.
    ///
    /// ```
    /// use umbel::CuckooFilter;
    ///
    /// let mut filter = CuckooFilter::<u64>::new(100, 0.01);
    /// (0..50).try_for_each(|key| filter.insert(&key).map(drop))?;
    /// assert_eq!(filter.fingerprints().count(), 50);
    /// assert!(filter.fingerprints().all(|(bucket, _)| bucket < filter.shape().buckets()));
    /// # Ok::<(), umbel::Full>(())
    /// ```
    pub fn fingerprints(&self) -> impl Iterator<Item = (u64, u32)> {
        let table = self.table();
        (0..self.shape.buckets())
            .flat_map(|bucket| (0..SLOTS as u32).map(move |slot| (bucket, slot)))
            .map(move |(bucket, slot)| (bucket, table.get(bucket, slot) as u32))
            .filter(|(_, fingerprint)| *fingerprint != 0)
    }
}

impl<B: AsRef<[u64]>> Probe for RawCuckoo<Own<B>> {
    #[inline]
    fn probe(&self, digest: Digest) -> bool {
        let table = self.table();
        table.holds(table.place(digest))
    }

    #[inline]
    fn probe_each<A>(&self, keys: &[A], digest: impl Fn(&A) -> Digest, found: &mut [bool]) {
        self.table().for_each(batch::BucketLookUp, keys, digest, found);
    }

    /// If all keys are different.
    fn rate(&self) -> f64 {
        self.shape.expected_rate(self.len)
    }
}

impl<B: AsRef<[u64]> + AsMut<[u64]>> RawCuckoo<Own<B>> {
    #[inline(always)]
    fn table_mut(&mut self) -> BucketTable<&mut [u64]> {
        BucketTable::new(&self.shape, self.storage.words_mut())
    }

    /// Inserts a digest unless it is found.
    ///
    /// # Errors
    ///
    /// [`Full`] if there is no room for it. Nothing is changed then.
    #[inline]
    pub fn insert_unique_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        if self.probe(digest) { Ok(false) } else { self.insert_digest(digest) }
    }

    #[inline(always)]
    fn insert_each<A>(
        &mut self,
        keys: &[A],
        digest: impl Fn(&A) -> Digest,
        fresh: &mut [bool],
    ) -> Result<(), BatchFull> {
        let mut work = batch::BucketInsert::default();
        self.table_mut().for_each(&mut work, keys, digest, fresh);
        let batch::BucketInsert { inserted, full } = work;
        self.len += inserted as u64;
        if full { Err(BatchFull { inserted }) } else { Ok(()) }
    }
}

impl<B: AsRef<[u64]> + AsMut<[u64]>> Insert for RawCuckoo<Own<B>> {
    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        let mut table = self.table_mut();
        let fresh = table.insert(table.place(digest))?;
        self.len += 1;
        Ok(fresh)
    }

    #[inline]
    fn insert_digests(&mut self, digests: &[Digest], fresh: &mut [bool]) -> Result<(), BatchFull> {
        self.insert_each(digests, |digest| *digest, fresh)
    }
}

impl<B: AsRef<[u64]> + AsMut<[u64]>> Remove for RawCuckoo<Own<B>> {
    #[inline]
    fn remove_digest(&mut self, digest: Digest) -> bool {
        let mut table = self.table_mut();
        let removed = table.remove(table.place(digest));
        self.len -= u64::from(removed);
        removed
    }
}

impl<B: AsRef<[u64]> + AsMut<[u64]>> RemoveEach for RawCuckoo<Own<B>> {
    fn remove_each<A>(&mut self, keys: &[A], digest: impl Fn(&A) -> Digest, removed: &mut [bool]) {
        self.table_mut().for_each(batch::BucketRemove, keys, digest, removed);
        self.len -= removed.iter().filter(|removed| **removed).count() as u64;
    }
}

impl<B: AsRef<[u64]> + AsMut<[u64]>> Clear for RawCuckoo<Own<B>> {
    fn clear(&mut self) {
        self.storage.words_mut().fill(0);
        self.len = 0;
    }
}

for_core_and_filter! { impl[B: AsRef<[u64]>] RawCuckoo<Own<B>> {
    /// How many copies of the fingerprint of a digest are stored, at most 8. Never less than the
    /// number of its insertions minus its removals.
    #[must_use]
    pub fn estimated_count_digest(&self, digest: Digest) -> u64 {
        let table = self.table();
        table.count(table.place(digest))
    }

    /// How many keys are in the filter: the number of insertions minus the number of removals.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the filter contains no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The planned number of keys. The filter accepts more until it is [`Full`]: [`Shape::room`]
    /// returns the guaranteed number.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.shape.items()
    }

    /// The load factor: the share of slots that are taken.
    #[must_use]
    pub fn load(&self) -> f64 {
        self.shape.load(self.len)
    }

    /// The words: bit `i` of the slots is bit `i % 64` of word `i / 64`. With fingerprints of `b`
    /// bits, slot `s` of bucket `n` begins at bit `(4 n + s) · b`. An empty slot is 0.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        self.storage.words()
    }

    /// Checks that the words are consistent and contain `len` keys.
    ///
    /// # Errors
    ///
    /// [`InvalidBytes::Inconsistent`] if they are not. The bytes are then damaged, or this library
    /// has a bug.
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvalidBytes> {
        let table = self.table();
        let words = self.words().len() as u64 == self.shape.words();
        if words && !table.has_stray_bits() && table.taken() == self.len {
            Ok(())
        } else {
            Err(InvalidBytes::Inconsistent)
        }
    }
} }

impl<S> Compatible for RawCuckoo<S> {
    fn compatible(&self, other: &Self) -> Result<(), Incompatible> {
        self.shape.compatible(&other.shape)
    }
}

impl<B: AsRef<[u64]> + AsMut<[u64]>> RawCuckoo<Own<B>> {
    /// Copies the fingerprints of the other core into this one.
    ///
    /// # Errors
    ///
    /// [`Incompatible`] if they differ in buckets or fingerprint bits, or if there is no room for
    /// all fingerprints ([`Incompatible::Room`]). All answers are then as before; fingerprints may
    /// have moved to their other bucket.
    pub fn merge_with(&mut self, other: &Self) -> Result<(), Incompatible> {
        self.compatible(other)?;
        let no_room = Incompatible::Room { keys: self.len + other.len, most: self.shape.slots() };
        if self.len + other.len > self.shape.slots() {
            return Err(no_room);
        }
        let mut table = self.table_mut();
        for (done, place) in other.places().enumerate() {
            if table.insert(place).is_err() {
                other.places().take(done).for_each(|place| _ = table.remove(place));
                return Err(no_room);
            }
        }
        self.len += other.len;
        Ok(())
    }
}

/// Counts.
impl<T: ?Sized, H, B: AsRef<[u64]>> Filter<T, H, RawCuckoo<Own<B>>> {
    /// How many times the key is in the filter: its insertions minus its removals, at most 8. Never
    /// too low. It is too high if other keys have the same fingerprint in the same buckets, which
    /// is as likely as a false positive.
    #[must_use]
    #[inline]
    pub fn estimated_count(&self, key: &T) -> u64
    where
        H: Digester<T>,
    {
        self.estimated_count_digest(self.hasher.digest(key))
    }

    /// All fingerprints, each with its bucket: see [`RawCuckoo::fingerprints`].
    pub fn fingerprints(&self) -> impl Iterator<Item = (u64, u32)> {
        self.raw.fingerprints()
    }
}

insert_or_full! { impl[B: AsRef<[u64]> + AsMut<[u64]>] RawCuckoo<Own<B>>;
    new = "Inserts a key, once more if it is there already. `Ok(true)` is proof that it was not; `Ok(false)` says \
        that [`contains`](Self::contains) would have answered `true` already.";
    full = "[`Full`](crate::Full) if there is no room for it, or it is there eight times. The filter is exactly \
        as it was."
}

/// Changes.
impl<T: ?Sized, H, B: AsRef<[u64]> + AsMut<[u64]>> Filter<T, H, RawCuckoo<Own<B>>> {
    /// Inserts a key unless it is found. `Ok(true)`: the key was absent and is now stored.
    /// `Ok(false)`: the key, or another key with the same fingerprint, was found, and nothing was
    /// changed.
    ///
    /// For sets of keys that are inserted repeatedly and never removed. If keys are removed, use
    /// [`insert`](Self::insert): this function stores one fingerprint for two keys that share it,
    /// so removing one of them would lose the other.
    ///
    /// # Errors
    ///
    /// [`Full`] if there is no room for it. The filter is then unchanged.
    #[inline]
    pub fn insert_unique(&mut self, key: &T) -> Result<bool, Full>
    where
        H: Digester<T>,
    {
        self.raw.insert_unique_digest(self.hasher.digest(key))
    }

    /// As [`insert_unique`](Self::insert_unique), for a digest that was computed elsewhere.
    ///
    /// # Errors
    ///
    /// As [`insert_unique`](Self::insert_unique).
    #[inline]
    pub fn insert_unique_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        self.raw.insert_unique_digest(digest)
    }

    /// Copies the fingerprints of the other filter into this one. The result is the same as if all
    /// insertions into either filter had been made here.
    ///
    /// # Errors
    ///
    /// [`Incompatible`] if they differ in buckets, fingerprint bits or hasher, or if there is no
    /// room for all fingerprints ([`Incompatible::Room`]). All answers are then as before;
    /// fingerprints may have moved to their other bucket.
    pub fn merge_with(&mut self, other: &Self) -> Result<(), Incompatible>
    where
        H: Digester<T>,
    {
        self.compatible_with(other)?;
        self.raw.merge_with(&other.raw)
    }
}

/// Equal cores give equal answers, now and after the same insertions and removals. They have the
/// same buckets, and the same fingerprints in one of their two buckets. Which of the two depends on
/// the other insertions and their order.
impl<B: AsRef<[u64]>> PartialEq for RawCuckoo<Own<B>> {
    fn eq(&self, other: &Self) -> bool {
        let (mine, yours) = (self.table(), other.table());
        self.shape.compatible(&other.shape).is_ok()
            && self.len == other.len
            && self.places().all(|place| mine.count(place) == yours.count(place))
    }
}

impl<B: AsRef<[u64]>> Eq for RawCuckoo<Own<B>> {}
