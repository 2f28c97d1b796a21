//! The classic Bloom filter: k bits a key, spread over the whole table.
//!
//! ```text
//!     "umbel"  ---.---------.------------------.
//!                 v         v                  v
//!     ... 0 0 0 1 1 0 1 0 0 1 0 0 1 0 0 0 1 0 1 0 0 ...      absent as soon as one is 0
//! ```
//!
//! | bits per key | touches per look-up | remove | union | grow | can building fail |
//! |---|---|---|---|---|---|
//! | 1.44 log2(1/rate): 9.6 at 1 % | about 3 absent, log2(1/rate) present | no | yes | no | no |
//!
//! Choose it when a set only grows, when filters are united, or when its plain bits are shared with
//! others. Prefer [`atomic`](crate::atomic) when many threads fill it.
//!
//! # Where it breaks
//!
//! Past its capacity it goes on without a word, at a rising rate: 1 % becomes 16 % at twice the
//! items planned. [`Bloom::expected_rate`] tells the rate now. Keys cannot be removed. Whoever knows
//! the seed can choose keys that make it 7.7 % at capacity already: see [`Keyed`](crate::Keyed).
//!
//! # Reference
//!
//! Bloom 1970, "Space/time trade-offs in hash coding with allowable errors", method 2. For the
//! exact rate: Bose et al. 2008, "On the false-positive rate of Bloom filters", section 2.
//!
//! ```
//! use umbel::BloomFilter;
//!
//! let mut seen = BloomFilter::<str>::new(1_000_000, 0.001); // capacity, error rate
//! assert!(seen.insert("https://example.org/")); // true: certainly new
//! assert!(!seen.insert("https://example.org/"));
//! assert!(seen.contains("https://example.org/"));
//! assert!(!seen.contains("https://example.org/other")); // false is proof
//! ```

mod batch;
mod bytes;
mod layout;
mod probe;
mod shape;
mod table;

pub use shape::{Shape, words_for, words_for_cells};

use crate::error::{BatchFull, Full, Incompatible, InvalidShape};
use crate::filter::{Edge, Filter, Insert, Union};
use crate::hash::{Digest, Digester, Portable};
use crate::kernels::{Digits, Kernels};
use crate::layout::{Layout, Plan};
use crate::parts::bits::{self, Word};
use crate::storage::{Allocate, AnySize, Array, Own, Storage, StorageMut};
use core::borrow::Borrow;
use core::fmt;
use core::marker::PhantomData;

#[cfg(feature = "alloc")]
use crate::storage::Heap;

/// A Bloom filter of keys `T`, hashed by `H`, with words in `S`, in which a key has the bits that
/// `L` gives it.
///
/// Everyday names are [`BloomFilter`], in memory of its own, [`ArrayBloomFilter`], in an array, and
/// [`AtomicBloomFilter`](crate::AtomicBloomFilter), for many threads: same code, same bits. Other
/// layouts make the filters of [`blocked`](crate::blocked) and [`split`](crate::split).
pub struct Bloom<T: ?Sized, H, S, L: Layout = Digits> {
    pub(crate) shape: L::Shape,
    pub(crate) hasher: H,
    pub(crate) layout: L,
    pub(crate) storage: S,
    pub(crate) keys: PhantomData<fn(&T)>,
}

/// A classic Bloom filter in memory of its own. The [module](crate::bloom) tells what it is and
/// when to choose it, [`Bloom`] has its methods.
#[cfg(feature = "alloc")]
pub type BloomFilter<T, H = Portable> = Bloom<T, H, Heap>;

/// A classic Bloom filter in an array: on the stack, in a `static`, without an allocator.
///
/// ```
/// use std::sync::Mutex;
/// use umbel::{ArrayBloomFilter, words_for};
///
/// const WORDS: usize = words_for(1_000, 0.01);
/// static SEEN: Mutex<ArrayBloomFilter<u64, WORDS>> = Mutex::new(ArrayBloomFilter::new(1_000, 0.01));
///
/// let mut seen = SEEN.lock().unwrap();
/// assert!(seen.insert(&7));
/// assert!(seen.contains(&7) && !seen.contains(&8));
/// ```
///
/// An array of no words is refused by the compiler:
///
/// ```compile_fail
/// let filter = umbel::ArrayBloomFilter::<u64, 0>::new(1, 0.01);
/// ```
pub type ArrayBloomFilter<T, const WORDS: usize, H = Portable> = Bloom<T, H, Array<WORDS>>;

/// In memory of its own.
impl<T: ?Sized, S: AnySize, L: Layout + Default> Bloom<T, Portable, S, L> {
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
        Self::with(L::Shape::for_rate(capacity, err_rate)?, Portable::default())
    }
}

/// In memory of its own, with another hasher or shape.
impl<T: ?Sized, H, S: AnySize, L: Layout + Default> Bloom<T, H, S, L> {
    /// A filter for `capacity` keys at an error rate of at most `err_rate`, with this hasher.
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
    /// [`InvalidShape`] if there is no memory for it, or the layout does not take the shape: an even
    /// number of bits in a classic filter.
    pub fn with(shape: L::Shape, hasher: H) -> Result<Self, InvalidShape> {
        Self::of_layout(shape, hasher, L::default())
    }
}

/// In an array.
impl<T: ?Sized, const WORDS: usize> ArrayBloomFilter<T, WORDS> {
    /// A filter for `capacity` keys at an error rate of at most `err_rate`. In a constant or a
    /// `static`, a mistake is an error of the compiler's.
    ///
    /// # Panics
    ///
    /// If `err_rate` is not above 0 and below 1, or `WORDS` words are not enough for it:
    /// [`words_for`] tells how many are.
    #[must_use]
    pub const fn new(capacity: u64, err_rate: f64) -> Self {
        let (hasher, storage) = (Portable::seeded(0), Own([0; WORDS]));
        let shape = Shape::for_array::<WORDS>(capacity, err_rate);
        Self { shape, hasher, layout: Digits, storage, keys: PhantomData }
    }
}

/// In an array, with another hasher.
impl<T: ?Sized, const WORDS: usize, H> ArrayBloomFilter<T, WORDS, H> {
    /// A filter for `capacity` keys at an error rate of at most `err_rate`, with this hasher.
    ///
    /// # Errors
    ///
    /// [`InvalidShape`] if `err_rate` is not above 0 and below 1 or too small, or `WORDS` words are
    /// not enough for it.
    pub fn try_with_hasher(capacity: u64, err_rate: f64, hasher: H) -> Result<Self, InvalidShape> {
        Self::with_kernels(Shape::for_words::<WORDS>(capacity, err_rate)?, hasher, Digits)
    }
}

/// In any storage, with any kernels.
impl<T: ?Sized, H, S: Allocate, K: Kernels> Bloom<T, H, S, K> {
    /// A filter of this shape, with this hasher and these kernels.
    ///
    /// # Errors
    ///
    /// [`InvalidShape`] if there is no memory for it, or the kernels do not accept the shape.
    pub fn with_kernels(shape: Shape, hasher: H, kernels: K) -> Result<Self, InvalidShape> {
        Self::of_layout(shape, hasher, kernels)
    }
}

impl<T: ?Sized, H, S: Allocate, L: Layout> Bloom<T, H, S, L> {
    /// The one place where filters are made.
    pub(crate) fn of_layout(
        shape: L::Shape,
        hasher: H,
        mut layout: L,
    ) -> Result<Self, InvalidShape> {
        layout.admit(&shape)?;
        let storage = S::zeroed(shape.words())?;
        Ok(Self { shape, hasher, layout, storage, keys: PhantomData })
    }
}

impl<T: ?Sized, H, S, L: Layout + Default> Bloom<T, H, S, L> {
    /// A filter whose words are there already, as many as the shape says.
    pub(crate) fn of_parts(shape: L::Shape, hasher: H, storage: S) -> Result<Self, InvalidShape> {
        let mut layout = L::default();
        layout.admit(&shape)?;
        Ok(Self { shape, hasher, layout, storage, keys: PhantomData })
    }
}

/// For reading.
impl<T: ?Sized, H, S: Storage, L: Layout> Bloom<T, H, S, L> {
    /// Whether the key may have been inserted. `false` is proof that it was not; `true` is wrong
    /// for a share of absent keys that [`expected_rate`](Self::expected_rate) tells.
    #[must_use]
    #[inline]
    pub fn contains<Q>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: ?Sized,
        H: Digester<Q, L::Digest>,
    {
        self.contains_digest(self.hasher.digest(key))
    }

    /// As [`contains`](Self::contains), for a key that was digested elsewhere.
    #[must_use]
    #[inline]
    pub fn contains_digest(&self, digest: L::Digest) -> bool {
        self.layout.contains(&self.shape, self.storage.words(), digest)
    }

    /// As [`contains`](Self::contains), for many keys: `found[i]` is the answer for `keys[i]`.
    ///
    /// Faster than one by one where the filter is larger than the cache, since all keys of a batch
    /// wait for memory at the same time.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[inline]
    pub fn contains_batch<A>(&self, keys: &[A], found: &mut [bool])
    where
        A: Borrow<T>,
        H: Digester<T, L::Digest>,
    {
        let digest = |key: &A| self.hasher.digest(key.borrow());
        self.layout.contains_batch(&self.shape, self.storage.words(), keys, digest, found);
    }

    /// As [`contains_batch`](Self::contains_batch), for keys that were digested elsewhere.
    #[inline]
    pub fn contains_digests(&self, digests: &[L::Digest], found: &mut [bool]) {
        let words = self.storage.words();
        self.layout.contains_batch(&self.shape, words, digests, |digest| *digest, found);
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

    /// How many bits are set. Reads the whole filter.
    #[must_use]
    pub fn count_ones(&self) -> u64 {
        bits::count(self.storage.words())
    }

    /// Whether nothing was ever inserted. Reads until it finds a set bit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.storage.words().iter().all(|word| word.load() == 0)
    }

    /// How many different keys have been inserted, judged by the bits that are set; `u64::MAX` when
    /// all are. Reads the whole filter.
    #[must_use]
    pub fn estimated_len(&self) -> u64 {
        self.shape.estimate_items(self.count_ones())
    }

    /// The error rate now, judged by the bits that are set. Reads the whole filter.
    #[must_use]
    pub fn expected_rate(&self) -> f64 {
        self.layout.rate(&self.shape, self.storage.words())
    }

    /// Whether two filters can be combined.
    pub(crate) fn compatible<R>(&self, other: &Bloom<T, H, R, L>) -> Result<(), Incompatible>
    where
        H: Digester<T, L::Digest>,
    {
        self.shape.compatible(&other.shape)?;
        if self.layout.tag() != other.layout.tag() {
            return Err(Incompatible::Kernels);
        }
        if self.hasher.check() != other.hasher.check() {
            return Err(Incompatible::Hasher);
        }
        Ok(())
    }
}

/// For one thread to change.
impl<T: ?Sized, H, B: AsRef<[u64]> + AsMut<[u64]>, L: Layout> Bloom<T, H, Own<B>, L> {
    /// Inserts a key. `true` is proof that it is new; `false` says that
    /// [`contains`](Self::contains) would have answered `true` already.
    #[inline]
    pub fn insert<Q>(&mut self, key: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: ?Sized,
        H: Digester<Q, L::Digest>,
    {
        self.insert_digest(self.hasher.digest(key))
    }

    /// As [`insert`](Self::insert), for a key that was digested elsewhere.
    #[inline]
    pub fn insert_digest(&mut self, digest: L::Digest) -> bool {
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
        H: Digester<T, L::Digest>,
    {
        let digest = |key: &A| self.hasher.digest(key.borrow());
        self.layout.insert_batch(&self.shape, self.storage.words_mut(), keys, digest, fresh);
    }

    /// As [`insert_batch`](Self::insert_batch), for keys that were digested elsewhere.
    #[inline]
    pub fn insert_digests(&mut self, digests: &[L::Digest], fresh: &mut [bool]) {
        let words = self.storage.words_mut();
        self.layout.insert_batch(&self.shape, words, digests, |digest| *digest, fresh);
    }

    /// Makes this the filter of all keys that were inserted into either of the two: the same bits
    /// as if they had all been inserted here.
    ///
    /// # Errors
    ///
    /// [`Incompatible`] if they differ in bits, probes, kernels or hasher. Nothing is changed then.
    pub fn union_with(&mut self, other: &Self) -> Result<(), Incompatible>
    where
        H: Digester<T, L::Digest>,
    {
        self.compatible(other)?;
        for (word, other) in self.storage.words_mut().iter_mut().zip(other.storage.words()) {
            *word |= other;
        }
        Ok(())
    }

    /// The words: bit `i` of the filter is bit `i % 64` of word `i / 64`.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        self.storage.words()
    }

    /// Sets every bit that `words` have, which are those of a filter of the same shape and hasher from
    /// word `first` on. When all of them have come, piece by piece, whatever that filter finds is found
    /// here.
    ///
    /// ```
    /// use umbel::BlockedBloomFilter;
    ///
    /// let mut here = BlockedBloomFilter::<str>::new(1_000, 0.01);
    /// let mut there = BlockedBloomFilter::<str>::new(1_000, 0.01);
    /// there.insert("umbel");
    /// for (piece, words) in there.words().chunks(64).enumerate() {
    ///     here.union_with_words(piece * 64, words);
    /// }
    /// assert!(here.contains("umbel") && here.words() == there.words());
    /// ```
    ///
    /// # Panics
    ///
    /// If there are not as many words from `first` on.
    pub fn union_with_words(&mut self, first: usize, words: &[u64]) {
        let here = &mut self.storage.words_mut()[first..][..words.len()];
        for (word, other) in here.iter_mut().zip(words) {
            *word |= other;
        }
    }
}

/// For whoever has the filter for itself.
impl<T: ?Sized, H, S: StorageMut, L: Layout> Bloom<T, H, S, L> {
    /// Keeps only the bits that both filters have. Keys that were inserted into both are still
    /// found; of the others no more are found than either filter found before. It is not the filter
    /// of the keys in both, which would have fewer bits still, so its
    /// [`estimated_len`](Self::estimated_len) is too high.
    ///
    /// # Errors
    ///
    /// [`Incompatible`] if they differ in bits, probes, kernels or hasher. Nothing is changed then.
    pub fn intersect_with(&mut self, other: &Self) -> Result<(), Incompatible>
    where
        H: Digester<T, L::Digest>,
    {
        self.compatible(other)?;
        for (word, other) in self.storage.words_mut().iter_mut().zip(other.storage.words()) {
            word.store(word.load() & other.load());
        }
        Ok(())
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        for word in self.storage.words_mut() {
            word.store(0);
        }
    }
}

impl<T: ?Sized, H, S: Storage, L: Layout<Digest = Digest>> Filter for Bloom<T, H, S, L> {
    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.contains_digest(digest)
    }
}

impl<T, H, S, L> Edge for Bloom<T, H, S, L>
where
    T: ?Sized,
    H: Digester<T>,
    S: Storage,
    L: Layout<Digest = Digest>,
{
    type Key = T;

    #[inline]
    fn digest(&self, key: &T) -> Digest {
        self.hasher.digest(key)
    }
}

impl<T, H, B, L> Insert for Bloom<T, H, Own<B>, L>
where
    T: ?Sized,
    B: AsRef<[u64]> + AsMut<[u64]>,
    L: Layout<Digest = Digest>,
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

impl<T, H, B, L> Union for Bloom<T, H, Own<B>, L>
where
    T: ?Sized,
    H: Digester<T>,
    B: AsRef<[u64]> + AsMut<[u64]>,
    L: Layout<Digest = Digest>,
{
    fn fits(&self, other: &Self) -> Result<(), Incompatible> {
        self.compatible(other)
    }

    fn union_with(&mut self, other: &Self) -> Result<(), Incompatible> {
        self.union_with(other)
    }
}

/// Keys are inserted in batches; whether they were new is not told.
impl<A, T, H, B, L> Extend<A> for Bloom<T, H, Own<B>, L>
where
    A: Borrow<T>,
    T: ?Sized,
    H: Digester<T, L::Digest>,
    B: AsRef<[u64]> + AsMut<[u64]>,
    L: Layout,
{
    fn extend<I: IntoIterator<Item = A>>(&mut self, keys: I) {
        let Self { shape, hasher, layout, storage, .. } = self;
        let digests = keys.into_iter().map(|key| hasher.digest(key.borrow()));
        layout.extend(shape, storage.words_mut(), digests);
    }
}

impl<T: ?Sized, H: Clone, S: Clone, L: Layout + Clone> Clone for Bloom<T, H, S, L> {
    fn clone(&self) -> Self {
        Self {
            shape: self.shape,
            hasher: self.hasher.clone(),
            layout: self.layout.clone(),
            storage: self.storage.clone(),
            keys: PhantomData,
        }
    }
}

/// Equal filters give equal answers: same bits, same hasher. Two sets of keys may have one filter. Of
/// filters that other threads are filling, it compares what it comes across.
impl<T, H, S, L> PartialEq for Bloom<T, H, S, L>
where
    T: ?Sized,
    H: Digester<T, L::Digest>,
    S: Storage,
    L: Layout,
{
    fn eq(&self, other: &Self) -> bool {
        let (words, others) = (self.storage.words().iter(), other.storage.words().iter());
        self.compatible(other).is_ok() && words.map(Word::load).eq(others.map(Word::load))
    }
}

impl<T: ?Sized, H: fmt::Debug, S: Storage, L: Layout> fmt::Debug for Bloom<T, H, S, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shape, set) = (&self.shape, self.count_ones());
        f.debug_struct(L::Shape::NAME)
            .field("capacity", &shape.items())
            .field("bits", &shape.bits())
            .field("probes", &shape.probes())
            .field("fill", &format_args!("{:.4}", set as f64 / shape.bits() as f64))
            .field("hasher", &self.hasher)
            .finish()
    }
}
