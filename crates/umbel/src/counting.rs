//! The counting Bloom filter: a small number for each bit, so that keys can leave again.
//!
//! ```text
//!     "umbel"  ---.---------.------------------.            insert: + 1      remove: - 1
//!                 v         v                  v
//!     ... 0 0 0 1 3 0 1 0 0 1 0 0 2 0 0 0 1 0 2 0 0 ...      absent as soon as one is 0
//!                           |
//!                           `---- inserted at most once: the smallest of them
//! ```
//!
//! | bits per key | touches per look-up | remove | union | grow | can building fail |
//! |---|---|---|---|---|---|
//! | anywhere: 5.77 log2(1/rate), 38.4 at 1 % | about 3 absent, log2(1/rate) present | yes | yes, as a sum | no | no |
//! | in a line: 43.7 at 1 %, 77.6 at 0.1 % | 1 line | yes | yes, as a sum | no | no |
//!
//! Choose it when keys leave again and also come several times, when it matters how often, or when
//! filters are added up. Prefer [`bloom`](crate::bloom), in a quarter of the memory, when nothing
//! ever leaves.
//!
//! # Anywhere or in a line
//!
//! The cells of a key are where a classic filter has its bits, anywhere ([`CountingBloomFilter`]), or
//! all in one cache line, in different words of it ([`BlockedCountingBloomFilter`]). With one
//! line to wait for, batches take half to two thirds of the time; single calls gain little as long as
//! the filter is in a cache. Crowded lines cost space: 14 % at 1 %, 35 % at 0.1 %, and below one in a
//! thousand soon more than they are worth.
//!
//! # Where it breaks
//!
//! Removing a key that was never inserted, but is found, takes something from other keys, which may
//! then be lost: remove only what is known to be there. As long as no key is removed more often than
//! it was inserted, no key is ever lost.
//!
//! A cell that has reached its largest number is *saturated*: nobody knows how much more it would
//! hold, so it is never counted down again. That keeps every key, and costs what it keeps: the keys
//! of such a cell never leave it, and the rate no longer goes down all the way when keys are removed,
//! until [`clear`](Counting::clear). At capacity it happens to one 4-bit cell in 6 · 10^14, and to one
//! in 190 at ten times the capacity; a key that is inserted 15 times does it to all cells it has. The
//! number of saturated cells is [`saturated`](Counting::saturated), and [`Width::Eight`] counts to
//! 255. Past its capacity a filter goes on at a rising rate, as a classic one does.
//!
//! # Reference
//!
//! Fan, Cao, Almeida and Broder 2000, "Summary cache", section V-C: the counters, and why four bits
//! are enough. A cell that a key has twice counts twice, when it comes and when it leaves. Lines are
//! those of Putze, Sanders and Singler 2007, "Cache-, hash- and space-efficient Bloom filters",
//! section 3; their rate is computed exactly here.
//!
//! ```
//! use umbel::CountingBloomFilter;
//!
//! let mut open = CountingBloomFilter::<str>::new(10_000, 0.01); // capacity, error rate
//! assert!(open.insert("session 1"));
//! assert!(!open.insert("session 1")); // false: perhaps not new
//! assert_eq!(open.estimated_count("session 1"), 2); // never too low
//! assert!(open.remove("session 1") && open.contains("session 1"));
//! assert!(open.remove("session 1") && !open.contains("session 1"));
//! assert!(!open.remove("session 1")); // false: certainly not there
//! ```

mod bytes;
mod layout;
mod line;
mod line_shape;
mod shape;
mod table;

pub use layout::{Anywhere, CellLayout, CellPlan};
pub use line::InLine;
pub use line_shape::LineShape;
pub use shape::{Shape, Width, words_for};

use crate::error::{BatchFull, Full, Incompatible, InvalidShape};
use crate::filter::{Edge, Filter, Insert, Remove, Union};
use crate::hash::{Digest, Digester, Portable};
use crate::layout::Plan;
use crate::parts::cells::Cells;
use crate::storage::{Allocate, Array, Own, Storage, StorageMut};
use core::borrow::Borrow;
use core::fmt;
use core::marker::PhantomData;

#[cfg(feature = "alloc")]
use crate::storage::Heap;

/// A counting Bloom filter of keys `T`, hashed by `H`, with words in `S`, laid out by `L`.
///
/// Everyday names are [`CountingBloomFilter`] and [`BlockedCountingBloomFilter`], in memory of their
/// own, and [`ArrayCountingBloomFilter`], in an array.
pub struct Counting<T: ?Sized, H, S, L: CellLayout = Anywhere> {
    shape: L::Shape,
    hasher: H,
    layout: L,
    storage: S,
    keys: PhantomData<fn(&T)>,
}

/// A counting Bloom filter in memory of its own. The [module](crate::counting) tells what it is and
/// when to choose it, [`Counting`] has its methods.
#[cfg(feature = "alloc")]
pub type CountingBloomFilter<T, H = Portable> = Counting<T, H, Heap>;

/// A blocked counting Bloom filter in memory of its own: all cells of a key in one cache line. The
/// [module](crate::counting) tells when to choose it, [`Counting`] has its methods.
#[cfg(feature = "alloc")]
pub type BlockedCountingBloomFilter<T, H = Portable> = Counting<T, H, Heap, InLine>;

/// A counting Bloom filter in an array, without an allocator. The array has exactly the words of its
/// shape.
///
/// ```
/// use umbel::counting::{ArrayCountingBloomFilter, words_for};
///
/// const WORDS: usize = words_for(100, 0.01);
/// let mut filter = ArrayCountingBloomFilter::<u64, WORDS>::new(100, 0.01);
/// assert!(filter.insert(&7) && filter.remove(&7) && !filter.contains(&7));
/// ```
pub type ArrayCountingBloomFilter<T, const WORDS: usize, H = Portable> =
    Counting<T, H, Array<WORDS>>;

impl<T: ?Sized, S: Allocate, L: CellLayout> Counting<T, Portable, S, L> {
    /// A filter of 4-bit cells for `capacity` keys at an error rate of at most `err_rate`.
    ///
    /// # Panics
    ///
    /// Where [`try_new`](Self::try_new) gives an error: if `err_rate` is not above 0 and below 1,
    /// or there is no memory for so large a filter.
    #[must_use]
    pub fn new(capacity: u64, err_rate: f64) -> Self {
        Self::with_hasher(capacity, err_rate, Portable::default())
    }

    /// A filter of 4-bit cells for `capacity` keys at an error rate of at most `err_rate`.
    ///
    /// # Errors
    ///
    /// [`InvalidShape`] if `err_rate` is not above 0 and below 1 or too small, or if so large a
    /// filter cannot be represented or allocated.
    pub fn try_new(capacity: u64, err_rate: f64) -> Result<Self, InvalidShape> {
        Self::with(L::Shape::for_rate(capacity, err_rate)?, Portable::default())
    }
}

/// With another hasher or shape.
impl<T: ?Sized, H, S: Allocate, L: CellLayout> Counting<T, H, S, L> {
    /// A filter of 4-bit cells for `capacity` keys at an error rate of at most `err_rate`, with this
    /// hasher.
    ///
    /// # Panics
    ///
    /// As `new`: where there is no such shape, or [`with`](Self::with) gives an error.
    #[must_use]
    pub fn with_hasher(capacity: u64, err_rate: f64, hasher: H) -> Self {
        L::Shape::for_rate(capacity, err_rate)
            .and_then(|shape| Self::with(shape, hasher))
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// A filter of this shape, with this hasher.
    ///
    /// # Errors
    ///
    /// [`InvalidShape`] if there is no memory for it, or the number of cells is even where they may
    /// be anywhere.
    pub fn with(shape: L::Shape, hasher: H) -> Result<Self, InvalidShape> {
        L::admit(&shape)?;
        let storage = S::zeroed(shape.words())?;
        Ok(Self { shape, hasher, layout: L::default(), storage, keys: PhantomData })
    }
}

/// For reading.
impl<T: ?Sized, H, B: AsRef<[u64]>, L: CellLayout> Counting<T, H, Own<B>, L> {
    fn cells(&self) -> Cells<&[u64]> {
        Cells::new(self.storage.words(), self.shape.width().bits())
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
        self.layout.contains(&self.shape, self.storage.words(), digest)
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
        let (words, digest) = (self.storage.words(), |key: &A| self.hasher.digest(key.borrow()));
        self.layout.contains_batch(&self.shape, words, keys, digest, found);
    }

    /// As [`contains_batch`](Self::contains_batch), for keys that were digested elsewhere.
    #[inline]
    pub fn contains_digests(&self, digests: &[Digest], found: &mut [bool]) {
        let words = self.storage.words();
        self.layout.contains_batch(&self.shape, words, digests, |digest| *digest, found);
    }

    /// How many times the key is in the filter: inserted and not removed. Never too low, except that
    /// the largest number of a cell, [`Width::max`], means that many or more; too high for keys all
    /// of whose cells others have too, which are as many as are found without being there.
    #[must_use]
    #[inline]
    pub fn estimated_count<Q>(&self, key: &Q) -> u64
    where
        T: Borrow<Q>,
        Q: ?Sized,
        H: Digester<Q>,
    {
        self.estimated_count_digest(self.hasher.digest(key))
    }

    /// As [`estimated_count`](Self::estimated_count), for a key that was digested elsewhere.
    #[must_use]
    #[inline]
    pub fn estimated_count_digest(&self, digest: Digest) -> u64 {
        self.layout.count(&self.shape, self.storage.words(), digest)
    }

    /// Whether the key may be in the filter `n` times or more. `false` is proof that it is not.
    /// Cells cannot tell numbers above [`Width::max`] from it, and then the answer is `true`.
    #[must_use]
    #[inline]
    pub fn count_at_least<Q>(&self, key: &Q, n: u64) -> bool
    where
        T: Borrow<Q>,
        Q: ?Sized,
        H: Digester<Q>,
    {
        self.estimated_count(key) >= n.min(self.shape.width().max())
    }

    /// The plan it was made by.
    #[must_use]
    pub const fn shape(&self) -> &L::Shape {
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
        self.shape.words() * 8
    }

    /// The words: bit `i` of the cells is bit `i % 64` of word `i / 64`, and with cells of `b` bits,
    /// cell `c` begins at bit `c · b`.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        self.storage.words()
    }

    /// How many cells are not zero. Reads the whole filter.
    #[must_use]
    pub fn count_nonzero(&self) -> u64 {
        self.cells().count_nonzero(self.shape.bits())
    }

    /// How many cells have reached their largest number and are not counted down any more. Reads the
    /// whole filter.
    #[must_use]
    pub fn saturated(&self) -> u64 {
        self.cells().count_full(self.shape.bits())
    }

    /// Whether there is no key in the filter. Reads until it finds a cell that is not zero.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words().iter().all(|word| *word == 0)
    }

    /// How many different keys are in the filter, judged by the cells that are not zero; `u64::MAX`
    /// when all are not. Reads the whole filter.
    #[must_use]
    pub fn estimated_len(&self) -> u64 {
        self.shape.estimate_items(self.count_nonzero())
    }

    /// The error rate now, judged by the cells that are not zero. Reads the whole filter.
    #[must_use]
    pub fn expected_rate(&self) -> f64 {
        self.layout.rate(&self.shape, self.storage.words())
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
impl<T, H, B, L> Counting<T, H, Own<B>, L>
where
    T: ?Sized,
    B: AsRef<[u64]> + AsMut<[u64]>,
    L: CellLayout,
{
    /// Inserts a key, once more if it is there already. `true` is proof that it was not; `false` says
    /// that [`contains`](Self::contains) would have answered `true` already.
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
        self.layout.insert(&self.shape, self.storage.words_mut(), digest)
    }

    /// As [`insert`](Self::insert), for many keys in their order: `fresh[i]` is the answer for
    /// `keys[i]`. Faster than one by one where the filter is larger than the cache.
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
        let Self { shape, hasher, layout, storage, .. } = self;
        let digest = |key: &A| hasher.digest(key.borrow());
        layout.insert_batch(shape, storage.words_mut(), keys, digest, fresh);
    }

    /// As [`insert_batch`](Self::insert_batch), for keys that were digested elsewhere.
    #[inline]
    pub fn insert_digests(&mut self, digests: &[Digest], fresh: &mut [bool]) {
        let words = self.storage.words_mut();
        self.layout.insert_batch(&self.shape, words, digests, |digest| *digest, fresh);
    }

    /// Removes a key, once if it is there several times. `false` is proof that it is not there, and
    /// then nothing is changed.
    ///
    /// To remove a key that was not inserted, but is found, takes other keys' numbers away, and they
    /// may be lost.
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
        self.layout.remove(&self.shape, self.storage.words_mut(), digest)
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
        let Self { shape, hasher, layout, storage, .. } = self;
        let digest = |key: &A| hasher.digest(key.borrow());
        layout.remove_batch(shape, storage.words_mut(), keys, digest, removed);
    }

    /// Adds the cells of the other filter to the cells of this one: the same as if all keys had been
    /// inserted here, as often as they were inserted in either. Cells saturate as they do then.
    ///
    /// # Errors
    ///
    /// [`Incompatible`] if they differ in cells, their width, probes or hasher. Nothing is changed
    /// then.
    pub fn merge_with(&mut self, other: &Self) -> Result<(), Incompatible>
    where
        H: Digester<T>,
    {
        self.compatible(other)?;
        let (cells, bits) = (self.shape.bits(), self.shape.width().bits());
        Cells::new(self.storage.words_mut(), bits).add_all(other.cells(), cells);
        Ok(())
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        self.storage.words_mut().fill(0);
    }
}

impl<T: ?Sized, H, B: AsRef<[u64]>, L: CellLayout> Filter for Counting<T, H, Own<B>, L> {
    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.contains_digest(digest)
    }
}

impl<T, H, B, L> Edge for Counting<T, H, Own<B>, L>
where
    T: ?Sized,
    H: Digester<T>,
    B: AsRef<[u64]>,
    L: CellLayout,
{
    type Key = T;

    #[inline]
    fn digest(&self, key: &T) -> Digest {
        self.hasher.digest(key)
    }
}

impl<T, H, B, L> Insert for Counting<T, H, Own<B>, L>
where
    T: ?Sized,
    B: AsRef<[u64]> + AsMut<[u64]>,
    L: CellLayout,
{
    /// Never [`Full`].
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

impl<T, H, B, L> Remove for Counting<T, H, Own<B>, L>
where
    T: ?Sized,
    B: AsRef<[u64]> + AsMut<[u64]>,
    L: CellLayout,
{
    #[inline]
    fn remove_digest(&mut self, digest: Digest) -> bool {
        self.remove_digest(digest)
    }
}

/// By adding: a key that was in both is in the union as often as in both together.
impl<T, H, B, L> Union for Counting<T, H, Own<B>, L>
where
    T: ?Sized,
    H: Digester<T>,
    B: AsRef<[u64]> + AsMut<[u64]>,
    L: CellLayout,
{
    fn fits(&self, other: &Self) -> Result<(), Incompatible> {
        self.compatible(other)
    }

    fn union_with(&mut self, other: &Self) -> Result<(), Incompatible> {
        self.merge_with(other)
    }
}

/// Keys are inserted in batches; whether they were new is not told.
impl<A, T, H, B, L> Extend<A> for Counting<T, H, Own<B>, L>
where
    A: Borrow<T>,
    T: ?Sized,
    H: Digester<T>,
    B: AsRef<[u64]> + AsMut<[u64]>,
    L: CellLayout,
{
    fn extend<I: IntoIterator<Item = A>>(&mut self, keys: I) {
        let Self { shape, hasher, layout, storage, .. } = self;
        let digests = keys.into_iter().map(|key| hasher.digest(key.borrow()));
        layout.extend(shape, storage.words_mut(), digests);
    }
}

impl<T: ?Sized, H: Clone, S: Clone, L: CellLayout> Clone for Counting<T, H, S, L> {
    fn clone(&self) -> Self {
        let Self { shape, layout, .. } = *self;
        let (hasher, storage) = (self.hasher.clone(), self.storage.clone());
        Self { shape, hasher, layout, storage, keys: PhantomData }
    }
}

/// Equal filters give equal answers: same cells, same hasher.
impl<T, H, B, L> PartialEq for Counting<T, H, Own<B>, L>
where
    T: ?Sized,
    H: Digester<T>,
    B: AsRef<[u64]>,
    L: CellLayout,
{
    fn eq(&self, other: &Self) -> bool {
        self.compatible(other).is_ok() && self.words() == other.words()
    }
}

impl<T, H, B, L> fmt::Debug for Counting<T, H, Own<B>, L>
where
    T: ?Sized,
    H: fmt::Debug,
    B: AsRef<[u64]>,
    L: CellLayout,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shape, fill) = (&self.shape, self.count_nonzero() as f64);
        f.debug_struct(L::Shape::NAME)
            .field("capacity", &shape.items())
            .field("cells", &shape.bits())
            .field("bits_per_cell", &shape.width().bits())
            .field("probes", &shape.probes())
            .field("fill", &format_args!("{:.4}", fill / shape.bits() as f64))
            .field("hasher", &self.hasher)
            .finish()
    }
}
