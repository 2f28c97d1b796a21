//! The cuckoo filter: a short fingerprint of every key, in one of two buckets.
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
//! Choose it when keys leave again: it takes a quarter of the memory of a
//! [counting](crate::counting) filter, and two cache misses whatever the rate. Prefer
//! [`blocked`](crate::blocked) when nothing ever leaves, [`counting`](crate::counting) when keys come more
//! than eight times or must never be refused, and [`scalable`](crate::scalable) when nobody knows how many
//! keys will come.
//!
//! # Where it breaks
//!
//! It has as many slots as it has: past its capacity an insert may give up with [`Full`], in practice at
//! 0.97 of all slots, after looking at no more than some 4,000 buckets. The filter is then exactly as it
//! was: every key that was accepted is found, and the one that was refused has left nothing behind.
//!
//! Two buckets have eight slots, so the ninth insert of one key is [`Full`] too, and so may be the ninth
//! of keys that a stranger has chosen to have the same two buckets: [`Keyed`](crate::Keyed) is for those.
//!
//! Removing a key that was never inserted, but is found, takes away the fingerprint of another key, which
//! is then lost: remove only what is known to be there. As long as no key is removed more often than it
//! was inserted, no key is ever lost, whatever else shares its fingerprint: every insert stores a copy of
//! its own. [`insert_unique`](crate::Filter::insert_unique) does not, and must not be mixed with
//! [`remove`](crate::Filter::remove).
//!
//! It cannot grow: a larger table would need bits of the digests that fingerprints do not have. Filters
//! of one shape and hasher can be [merged](crate::Filter::merge_with), as far as there is room.
//!
//! # Reference
//!
//! Fan, Andersen, Kaminsky and Mitzenmacher 2014, "Cuckoo filter: practically better than Bloom", section
//! 3: fingerprints that find their other bucket. There, buckets are a power of two and the other one is
//! an exclusive or; to subtract from a sum works for any number (Lang et al. 2019, "Performance-optimal
//! filtering", section 5). The search for an empty slot is breadth first, as in Li, Andersen, Kaminsky and
//! Freedman 2014, "Algorithmic improvements for fast concurrent cuckoo hashing", section 4.3.
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
/// Everyday names are [`CuckooFilter`], in memory of its own, and [`ArrayCuckooFilter`], in an array.
pub type Cuckoo<T, H, S> = Filter<T, H, RawCuckoo<S>>;

/// A cuckoo filter in memory of its own. The [module](crate::cuckoo) tells what it is and when to choose
/// it.
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

/// A cuckoo filter in an array, without an allocator. The array has exactly the words of its shape.
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

    /// All fingerprints as places in a table.
    fn places(&self) -> impl Iterator<Item = Place> {
        let table = self.table();
        self.fingerprints()
            .map(move |(bucket, fingerprint)| table.place_in(bucket, fingerprint.into()))
    }

    /// All fingerprints, each with the bucket it is in.
    ///
    /// They are what [`merge_with`](Self::merge_with) carries over, and all that a filter knows of its
    /// keys: enough to tell the other bucket in a table of as many buckets, and too little to find the
    /// place in one of more or fewer, so that a filter cannot grow by them.
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

    /// If no key is there twice.
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
    /// How often the fingerprint of a digest is there, at most 8: never less often than it was inserted
    /// and not removed.
    #[must_use]
    pub fn estimated_count_digest(&self, digest: Digest) -> u64 {
        let table = self.table();
        table.count(table.place(digest))
    }

    /// How many keys are in the filter, counting each as often as it was inserted and not removed.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no key in the filter.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many keys it was planned for. It takes more, until it is [`Full`]: [`Shape::room`] tells
    /// how many for sure.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.shape.items()
    }

    /// The share of slots that are taken.
    #[must_use]
    pub fn load(&self) -> f64 {
        self.shape.load(self.len)
    }

    /// The words: bit `i` of the slots is bit `i % 64` of word `i / 64`, and with fingerprints of `b`
    /// bits, slot `s` of bucket `n` begins at bit `(4 n + s) · b`. An empty slot is 0.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        self.storage.words()
    }

    /// Whether the words are those of a filter with so many keys.
    ///
    /// # Errors
    ///
    /// [`InvalidBytes::Inconsistent`] if not: then bytes or this library are broken.
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
    /// Puts the fingerprints of the other core into this one.
    ///
    /// # Errors
    ///
    /// [`Incompatible`] if they differ in buckets or fingerprint bits, or if there is no room for all
    /// ([`Incompatible::Room`]). All answers are as they were then; fingerprints may have moved to their
    /// other bucket.
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

/// Counting.
impl<T: ?Sized, H, B: AsRef<[u64]>> Filter<T, H, RawCuckoo<Own<B>>> {
    /// How many times the key is in the filter: inserted and not removed, at most 8. Never too low;
    /// too high if other keys have the same fingerprint in the same buckets, as an absent key is found.
    #[must_use]
    #[inline]
    pub fn estimated_count(&self, key: &T) -> u64
    where
        H: Digester<T>,
    {
        self.estimated_count_digest(self.hasher.digest(key))
    }

    /// All fingerprints, each with the bucket it is in: see [`RawCuckoo::fingerprints`].
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

/// For changing.
impl<T: ?Sized, H, B: AsRef<[u64]> + AsMut<[u64]>> Filter<T, H, RawCuckoo<Own<B>>> {
    /// Inserts a key unless it is found. `Ok(true)`: it was certainly not there, and is now; `Ok(false)`:
    /// it, or another one that looks the same, was there, and nothing was changed.
    ///
    /// For sets of keys that come often and never leave. Where keys are removed, use
    /// [`insert`](Self::insert): of two keys that look the same, this stores one fingerprint, and to
    /// remove one of them would lose the other.
    ///
    /// # Errors
    ///
    /// [`Full`] if there is no room for it. The filter is exactly as it was.
    #[inline]
    pub fn insert_unique(&mut self, key: &T) -> Result<bool, Full>
    where
        H: Digester<T>,
    {
        self.raw.insert_unique_digest(self.hasher.digest(key))
    }

    /// As [`insert_unique`](Self::insert_unique), for a key that was digested elsewhere.
    ///
    /// # Errors
    ///
    /// As [`insert_unique`](Self::insert_unique).
    #[inline]
    pub fn insert_unique_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        self.raw.insert_unique_digest(digest)
    }

    /// Puts the fingerprints of the other filter into this one: the same as if all keys had been inserted
    /// here, as often as they were inserted in either.
    ///
    /// # Errors
    ///
    /// [`Incompatible`] if they differ in buckets, fingerprint bits or hasher, or if there is no room for all
    /// ([`Incompatible::Room`]). All answers are as they were then; fingerprints may have moved to their
    /// other bucket.
    pub fn merge_with(&mut self, other: &Self) -> Result<(), Incompatible>
    where
        H: Digester<T>,
    {
        self.compatible_with(other)?;
        self.raw.merge_with(&other.raw)
    }
}

/// Equal cores give equal answers, now and after the same inserts and removals: same buckets, and the same
/// fingerprints in one bucket or the other. Which of the two that is depends on what else was inserted, and
/// when.
impl<B: AsRef<[u64]>> PartialEq for RawCuckoo<Own<B>> {
    fn eq(&self, other: &Self) -> bool {
        let (mine, yours) = (self.table(), other.table());
        self.shape.compatible(&other.shape).is_ok()
            && self.len == other.len
            && self.places().all(|place| mine.count(place) == yours.count(place))
    }
}

impl<B: AsRef<[u64]>> Eq for RawCuckoo<Own<B>> {}
