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
//! its own. [`insert_unique`](Cuckoo::insert_unique) does not, and must not be mixed with
//! [`remove`](Cuckoo::remove).
//!
//! It cannot grow: a larger table would need bits of the digests that fingerprints do not have. Filters
//! of one shape and hasher can be [merged](Cuckoo::merge_with), as far as there is room.
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
//! assert_eq!((open.count("session 1"), open.len()), (2, 2));
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

use crate::error::{BatchFull, Full, Incompatible, InvalidBytes, InvalidShape, Unmergeable};
use crate::filter::{Edge, Filter, Insert, Remove};
use crate::hash::{Digest, Digester, Portable};
use crate::layout::Plan;
use crate::parts::buckets::SLOTS;
use crate::storage::{Allocate, Array, Own, Storage, StorageMut};
use core::borrow::Borrow;
use core::fmt;
use core::marker::PhantomData;
use table::{Place, Table};

#[cfg(feature = "alloc")]
use crate::storage::Heap;

/// A cuckoo filter of keys `T`, hashed by `H`, with words in `S`.
///
/// Everyday names are [`CuckooFilter`], in memory of its own, and [`ArrayCuckooFilter`], in an array.
pub struct Cuckoo<T: ?Sized, H, S> {
    shape: Shape,
    hasher: H,
    storage: S,
    /// How many slots are taken.
    len: u64,
    keys: PhantomData<fn(&T)>,
}

/// A cuckoo filter in memory of its own. The [module](crate::cuckoo) tells what it is and when to choose
/// it, [`Cuckoo`] has its methods.
#[cfg(feature = "alloc")]
pub type CuckooFilter<T, H = Portable> = Cuckoo<T, H, Heap>;

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
pub type ArrayCuckooFilter<T, const WORDS: usize, H = Portable> = Cuckoo<T, H, Array<WORDS>>;

impl<T: ?Sized, S: Allocate> Cuckoo<T, Portable, S> {
    /// A filter for `capacity` keys at an error rate of at most `err_rate`.
    ///
    /// # Panics
    ///
    /// Where [`try_new`](Self::try_new) gives an error: if `err_rate` is not above 0 and below 1, or
    /// there is no memory for so large a filter.
    #[must_use]
    pub fn new(capacity: u64, err_rate: f64) -> Self {
        Self::with_hasher(capacity, err_rate, Portable::default())
    }

    /// A filter for `capacity` keys at an error rate of at most `err_rate`.
    ///
    /// # Errors
    ///
    /// [`InvalidShape`] if `err_rate` is not above 0 and below 1 or too small, or if so large a filter
    /// cannot be represented or allocated.
    pub fn try_new(capacity: u64, err_rate: f64) -> Result<Self, InvalidShape> {
        Self::with(Shape::for_rate(capacity, err_rate)?, Portable::default())
    }
}

/// With another hasher or shape.
impl<T: ?Sized, H, S: Allocate> Cuckoo<T, H, S> {
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

    /// A filter of this shape, with this hasher.
    ///
    /// # Errors
    ///
    /// [`InvalidShape`] if there is no memory for it.
    pub fn with(shape: Shape, hasher: H) -> Result<Self, InvalidShape> {
        let storage = S::zeroed(shape.words())?;
        Ok(Self { shape, hasher, storage, len: 0, keys: PhantomData })
    }
}

/// For reading.
impl<T: ?Sized, H, B: AsRef<[u64]>> Cuckoo<T, H, Own<B>> {
    #[inline(always)]
    fn table(&self) -> Table<&[u64]> {
        Table::new(&self.shape, self.storage.words())
    }

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
        let table = self.table();
        table.holds(table.place(digest))
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
        let digest = |key: &A| self.hasher.digest(key.borrow());
        self.table().for_each(batch::LookUp, keys, digest, found);
    }

    /// As [`contains_batch`](Self::contains_batch), for keys that were digested elsewhere.
    #[inline]
    pub fn contains_digests(&self, digests: &[Digest], found: &mut [bool]) {
        let digest = |digest: &Digest| *digest;
        self.table().for_each(batch::LookUp, digests, digest, found);
    }

    /// How many times the key is in the filter: inserted and not removed, at most 8. Never too low;
    /// too high if other keys have the same fingerprint in the same buckets, as an absent key is found.
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
        let table = self.table();
        table.count(table.place(digest))
    }

    /// How many keys are in the filter, counting each as often as it was inserted and not removed.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no key in the filter.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many keys it was planned for. It takes more, until it is [`Full`]: [`Shape::room`] tells
    /// how many for sure.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.shape.items()
    }

    /// The share of slots that are taken.
    #[must_use]
    pub const fn load(&self) -> f64 {
        self.shape.load(self.len)
    }

    /// The error rate now, if no key is there twice.
    #[must_use]
    pub const fn expected_rate(&self) -> f64 {
        self.shape.expected_rate(self.len)
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
    pub fn bytes(&self) -> u64 {
        self.shape.bytes()
    }

    /// The words: bit `i` of the slots is bit `i % 64` of word `i / 64`, and with fingerprints of `b`
    /// bits, slot `s` of bucket `n` begins at bit `(4 n + s) · b`. An empty slot is 0.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        self.storage.words()
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

    /// The same as places in a table.
    fn places(&self) -> impl Iterator<Item = Place> {
        let table = self.table();
        self.fingerprints()
            .map(move |(bucket, fingerprint)| table.place_in(bucket, fingerprint.into()))
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

    fn compatible(&self, other: &Self) -> Result<(), Incompatible>
    where
        H: Digester<T>,
    {
        self.shape.compatible(&other.shape)?;
        if self.hasher.check() != other.hasher.check() {
            return Err(Incompatible::Hasher);
        }
        Ok(())
    }
}

/// For changing.
impl<T: ?Sized, H, B: AsRef<[u64]> + AsMut<[u64]>> Cuckoo<T, H, Own<B>> {
    #[inline(always)]
    fn table_mut(&mut self) -> Table<&mut [u64]> {
        Table::new(&self.shape, self.storage.words_mut())
    }

    /// Inserts a key, once more if it is there already. `Ok(true)` is proof that it was not; `Ok(false)`
    /// says that [`contains`](Self::contains) would have answered `true` already.
    ///
    /// # Errors
    ///
    /// [`Full`] if there is no room for it, or it is there eight times. The filter is exactly as it was.
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
        let mut table = self.table_mut();
        let fresh = table.insert(table.place(digest))?;
        self.len += 1;
        Ok(fresh)
    }

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
    pub fn insert_unique<Q>(&mut self, key: &Q) -> Result<bool, Full>
    where
        T: Borrow<Q>,
        Q: ?Sized,
        H: Digester<Q>,
    {
        let digest = self.hasher.digest(key);
        if self.contains_digest(digest) { Ok(false) } else { self.insert_digest(digest) }
    }

    /// As [`insert`](Self::insert), for many keys in their order: `fresh[i]` is the answer for `keys[i]`.
    /// Faster than one by one where the filter is larger than the cache.
    ///
    /// # Errors
    ///
    /// [`BatchFull`] if there is no room for one of them. The keys before it are inserted; it and those
    /// after it are not, and their answers are `false`.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
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
    pub fn insert_digests(
        &mut self,
        digests: &[Digest],
        fresh: &mut [bool],
    ) -> Result<(), BatchFull> {
        self.insert_each(digests, |_, digest| *digest, fresh)
    }

    #[inline(always)]
    fn insert_each<A>(
        &mut self,
        keys: &[A],
        digest: impl Fn(&H, &A) -> Digest,
        fresh: &mut [bool],
    ) -> Result<(), BatchFull> {
        let Self { shape, hasher, storage, .. } = self;
        let mut work = batch::Insert::default();
        let table = Table::new(shape, storage.words_mut());
        table.for_each(&mut work, keys, |key| digest(hasher, key), fresh);
        let batch::Insert { inserted, full } = work;
        self.len += inserted as u64;
        if full { Err(BatchFull { inserted }) } else { Ok(()) }
    }

    /// Removes a key, once if it is there several times. `false` is proof that it is not there, and
    /// then nothing is changed.
    ///
    /// To remove a key that was not inserted, but is found, removes another key in its place, which is
    /// then lost.
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
        let mut table = self.table_mut();
        let removed = table.remove(table.place(digest));
        self.len -= u64::from(removed);
        removed
    }

    /// As [`remove`](Self::remove), for many keys in their order: `removed[i]` is the answer for
    /// `keys[i]`. Faster than one by one where the filter is larger than the cache.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    pub fn remove_batch<A>(&mut self, keys: &[A], removed: &mut [bool])
    where
        A: Borrow<T>,
        H: Digester<T>,
    {
        let Self { shape, hasher, storage, len, .. } = self;
        let digest = |key: &A| hasher.digest(key.borrow());
        Table::new(shape, storage.words_mut()).for_each(batch::Remove, keys, digest, removed);
        *len -= removed.iter().filter(|removed| **removed).count() as u64;
    }

    /// Puts the fingerprints of the other filter into this one: the same as if all keys had been inserted
    /// here, as often as they were inserted in either.
    ///
    /// # Errors
    ///
    /// [`Unmergeable::Incompatible`] if they differ in buckets, fingerprint bits or hasher,
    /// [`Unmergeable::Full`] if there is no room for all. All answers are as they were then; fingerprints
    /// may have moved to their other bucket.
    pub fn merge_with(&mut self, other: &Self) -> Result<(), Unmergeable>
    where
        H: Digester<T>,
    {
        self.compatible(other)?;
        if self.len + other.len > self.shape.slots() {
            return Err(Unmergeable::Full);
        }
        let mut table = self.table_mut();
        for (done, place) in other.places().enumerate() {
            if table.insert(place).is_err() {
                other.places().take(done).for_each(|place| _ = table.remove(place));
                return Err(Unmergeable::Full);
            }
        }
        self.len += other.len;
        Ok(())
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        self.storage.words_mut().fill(0);
        self.len = 0;
    }
}

impl<T: ?Sized, H, B: AsRef<[u64]>> Filter for Cuckoo<T, H, Own<B>> {
    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.contains_digest(digest)
    }
}

impl<T: ?Sized, H: Digester<T>, B: AsRef<[u64]>> Edge for Cuckoo<T, H, Own<B>> {
    type Key = T;

    #[inline]
    fn digest(&self, key: &T) -> Digest {
        self.hasher.digest(key)
    }
}

impl<T: ?Sized, H, B: AsRef<[u64]> + AsMut<[u64]>> Insert for Cuckoo<T, H, Own<B>> {
    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        self.insert_digest(digest)
    }

    #[inline]
    fn insert_digests(&mut self, digests: &[Digest], fresh: &mut [bool]) -> Result<(), BatchFull> {
        self.insert_digests(digests, fresh)
    }
}

impl<T: ?Sized, H, B: AsRef<[u64]> + AsMut<[u64]>> Remove for Cuckoo<T, H, Own<B>> {
    #[inline]
    fn remove_digest(&mut self, digest: Digest) -> bool {
        self.remove_digest(digest)
    }
}

impl<T: ?Sized, H: Clone, S: Clone> Clone for Cuckoo<T, H, S> {
    fn clone(&self) -> Self {
        Self {
            shape: self.shape,
            hasher: self.hasher.clone(),
            storage: self.storage.clone(),
            len: self.len,
            keys: PhantomData,
        }
    }
}

/// Equal filters give equal answers, now and after the same inserts and removals: same buckets and hasher,
/// and the same fingerprints in one bucket or the other. Which of the two that is depends on what else was
/// inserted, and when.
impl<T: ?Sized, H: Digester<T>, B: AsRef<[u64]>> PartialEq for Cuckoo<T, H, Own<B>> {
    fn eq(&self, other: &Self) -> bool {
        let (mine, yours) = (self.table(), other.table());
        self.compatible(other).is_ok()
            && self.len == other.len
            && self.places().all(|place| mine.count(place) == yours.count(place))
    }
}

impl<T: ?Sized, H: fmt::Debug, B: AsRef<[u64]>> fmt::Debug for Cuckoo<T, H, Own<B>> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(Shape::NAME)
            .field("capacity", &self.capacity())
            .field("buckets", &self.shape.buckets())
            .field("fingerprint_bits", &self.shape.fingerprint_bits())
            .field("len", &self.len)
            .field("load", &format_args!("{:.4}", self.load()))
            .field("hasher", &self.hasher)
            .finish()
    }
}
