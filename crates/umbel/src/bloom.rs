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
//! items planned. [`expected_rate`](crate::Filter::expected_rate) tells the rate now. Keys cannot be removed. Whoever knows
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

pub(crate) use shape::words_for_cells;
pub use shape::{Shape, words_for};

use crate::edge::{Filter, for_core_and_filter};
use crate::error::{Incompatible, InvalidShape};
use crate::filter::{Compatible, Union};
use crate::hash::{Digest, Digester, Portable};
use crate::kernels::{Digits, Kernels};
use crate::layout::{Layout, Probing};
use crate::parts::bits::{self, Word};
use crate::raw::{Clear, Endless, Make, Probe, describe};
use crate::sizing::Shape as _;
use crate::storage::{Allocate, AnySize, Array, Own, Storage, StorageMut};
use core::marker::PhantomData;

#[cfg(feature = "alloc")]
use crate::{raw::TryClone, storage::Heap};

/// The core of a Bloom filter: words in `S`, in which a digest has the bits that `L` gives it.
///
/// One type for the classic filter and those of [`blocked`](crate::blocked) and
/// [`split`](crate::split), in memory of their own, in an array, in a file, and for many threads: same
/// code, same bits.
#[derive(Clone)]
pub struct RawBloom<S, L: Layout = Digits> {
    pub(crate) shape: L::Shape,
    pub(crate) layout: L,
    pub(crate) storage: S,
}

/// A Bloom filter of keys `T`, hashed by `H`, with any storage `S` and any layout `L`.
///
/// Everyday names are [`BloomFilter`], in memory of its own, [`ArrayBloomFilter`], in an array, and
/// [`AtomicBloomFilter`](crate::AtomicBloomFilter), for many threads.
pub type Bloom<T, H, S, L = Digits> = Filter<T, H, RawBloom<S, L>>;

/// A classic Bloom filter in memory of its own. The [module](crate::bloom) tells what it is and when to
/// choose it.
///
/// ```
/// use umbel::BloomFilter;
///
/// let mut seen = BloomFilter::new(1_000, 0.01); // capacity, false positive rate
/// assert!(seen.insert("a")); // true: certainly new
/// assert!(seen.contains("a") && !seen.contains("b"));
/// ```
#[cfg(feature = "alloc")]
pub type BloomFilter<T, H = Portable> = Filter<T, H, RawBloom<Heap>>;

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
pub type ArrayBloomFilter<T, const WORDS: usize, H = Portable> =
    Filter<T, H, RawBloom<Array<WORDS>>>;

/// In an array.
impl<T: ?Sized, const WORDS: usize> ArrayBloomFilter<T, WORDS> {
    /// A filter for `capacity` keys at a false positive rate of at most `err_rate`. In a `const` or
    /// `static`, invalid arguments fail to compile.
    ///
    /// # Panics
    ///
    /// If `err_rate` is not above 0 and below 1, or `WORDS` words are not enough for it:
    /// [`words_for`] tells how many are.
    #[must_use]
    pub const fn new(capacity: u64, err_rate: f64) -> Self {
        let shape = Shape::for_array::<WORDS>(capacity, err_rate);
        let raw = RawBloom { shape, layout: Digits, storage: Own([0; WORDS]) };
        Self { raw, hasher: Portable::seeded(0), keys: PhantomData }
    }
}

/// In an array, with another hasher.
impl<T: ?Sized, const WORDS: usize, H> ArrayBloomFilter<T, WORDS, H> {
    /// A filter for `capacity` keys at a false positive rate of at most `err_rate`, with this hasher.
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
impl<T: ?Sized, H, S: Allocate, K: Kernels> Filter<T, H, RawBloom<S, K>> {
    /// A filter of this shape, with this hasher and these kernels.
    ///
    /// # Errors
    ///
    /// [`InvalidShape`] if there is no memory for it, or the kernels do not accept the shape.
    pub fn with_kernels(shape: Shape, hasher: H, kernels: K) -> Result<Self, InvalidShape> {
        RawBloom::of_layout(shape, kernels).map(|raw| Self::from_raw(raw, hasher))
    }
}

impl<S: Allocate, L: Layout> RawBloom<S, L> {
    /// The one place where filters are made.
    pub(crate) fn of_layout(shape: L::Shape, layout: L) -> Result<Self, InvalidShape> {
        let storage = S::zeroed(shape.words())?;
        Self::of_parts(shape, layout, storage)
    }
}

impl<S, L: Layout> RawBloom<S, L> {
    /// A filter whose words are there already, as many as the shape says.
    pub(crate) fn of_parts(
        shape: L::Shape,
        mut layout: L,
        storage: S,
    ) -> Result<Self, InvalidShape> {
        layout.admit(&shape)?;
        Ok(Self { shape, layout, storage })
    }
}

impl<S, K: Kernels> RawBloom<S, K> {
    /// What maps a digest to positions.
    #[must_use]
    pub const fn kernels(&self) -> &K {
        &self.layout
    }
}

describe! {
    impl[S: Storage, L: Layout] RawBloom<S, L>: L::Shape, L::Digest, L::Shape::NAME, |this| this.shape.words() * 8;
    capacity: this.shape.items(),
    bits: this.shape.bits(),
    probes: this.shape.probes(),
}

impl<S: Storage, L: Layout> Probe for RawBloom<S, L> {
    #[inline]
    fn probe(&self, digest: L::Digest) -> bool {
        self.layout.contains(&self.shape, self.storage.words(), digest)
    }

    #[inline]
    fn probe_each<A>(&self, keys: &[A], digest: impl Fn(&A) -> L::Digest, found: &mut [bool]) {
        self.layout.contains_batch(&self.shape, self.storage.words(), keys, digest, found);
    }

    fn rate(&self) -> f64 {
        self.layout.rate(&self.shape, self.storage.words())
    }
}

impl<S: AnySize, L: Layout + Default> Make for RawBloom<S, L> {
    fn plan(capacity: u64, err_rate: f64) -> Result<L::Shape, InvalidShape> {
        L::Shape::for_rate(capacity, err_rate)
    }

    fn make(shape: L::Shape) -> Result<Self, InvalidShape> {
        Self::of_layout(shape, L::default())
    }
}

#[cfg(feature = "alloc")]
impl<L: Layout + Clone> TryClone for RawBloom<Heap, L> {
    fn try_clone(&self) -> Result<Self, InvalidShape> {
        Ok(Self { storage: self.storage.try_clone()?, layout: self.layout.clone(), ..*self })
    }
}

/// For one thread to change.
impl<B: AsRef<[u64]> + AsMut<[u64]>, L: Layout> Endless for RawBloom<Own<B>, L> {
    #[inline]
    fn put(&mut self, digest: L::Digest) -> bool {
        self.layout.insert(&self.shape, self.storage.words_mut(), digest)
    }

    #[inline]
    fn put_each<A>(&mut self, keys: &[A], digest: impl Fn(&A) -> L::Digest, fresh: &mut [bool]) {
        self.layout.insert_batch(&self.shape, self.storage.words_mut(), keys, digest, fresh);
    }

    #[inline]
    fn put_all(&mut self, digests: impl Iterator<Item = L::Digest>) {
        self.layout.extend(&self.shape, self.storage.words_mut(), digests);
    }
}

/// Not in a file, where keys would be lost that are on the disk already.
impl<S: Allocate, L: Layout> Clear for RawBloom<S, L> {
    fn clear(&mut self) {
        for word in self.storage.words_mut() {
            word.store(0);
        }
    }
}

for_core_and_filter! { impl[S: Storage, L: Layout] RawBloom<S, L> {
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
} }

/// Wherever their words are.
impl<S, R, L: Layout> Compatible<RawBloom<R, L>> for RawBloom<S, L> {
    fn compatible(&self, other: &RawBloom<R, L>) -> Result<(), Incompatible> {
        self.shape.compatible(&other.shape)?;
        if self.layout.tag() == other.layout.tag() { Ok(()) } else { Err(Incompatible::Kernels) }
    }
}

for_core_and_filter! { impl[B: AsRef<[u64]>, L: Layout] RawBloom<Own<B>, L> {
    /// The words: bit `i` of the filter is bit `i % 64` of word `i / 64`.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        self.storage.words()
    }
} }

for_core_and_filter! { impl[B: AsRef<[u64]> + AsMut<[u64]>, L: Layout] RawBloom<Own<B>, L> {
    /// Sets every bit that is set in `words`, which are those of a filter of the same shape and hasher
    /// from word `first` on. When all of them have come, piece by piece, whatever that filter finds is
    /// found here.
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
} }

/// For one thread to change.
impl<B: AsRef<[u64]> + AsMut<[u64]>, L: Layout> RawBloom<Own<B>, L> {
    fn unite<S: Storage>(&mut self, other: &RawBloom<S, L>) {
        for (word, other) in self.storage.words_mut().iter_mut().zip(other.storage.words()) {
            *word |= other.load();
        }
    }
}

impl<B, L> Union for RawBloom<Own<B>, L>
where
    B: AsRef<[u64]> + AsMut<[u64]>,
    L: Layout<Digest = Digest>,
{
    fn fits(&self, other: &Self) -> Result<(), Incompatible> {
        self.compatible(other)
    }

    fn union_with(&mut self, other: &Self) -> Result<(), Incompatible> {
        self.compatible(other)?;
        self.unite(other);
        Ok(())
    }
}

/// Uniting.
impl<T, H, B, L> Filter<T, H, RawBloom<Own<B>, L>>
where
    T: ?Sized,
    B: AsRef<[u64]> + AsMut<[u64]>,
    L: Layout,
{
    /// Makes this the filter of all keys that were inserted into either of the two: the same bits
    /// as if they had all been inserted here. The other one may be in memory, in an array or in a file.
    ///
    /// # Errors
    ///
    /// [`Incompatible`] if they differ in bits, probes, kernels or hasher. Nothing is changed then.
    pub fn union_with<S: Storage>(
        &mut self,
        other: &Filter<T, H, RawBloom<S, L>>,
    ) -> Result<(), Incompatible>
    where
        H: Digester<T, L::Digest>,
    {
        self.compatible_with(other)?;
        self.raw.unite(&other.raw);
        Ok(())
    }
}

impl<S: Allocate, L: Layout> RawBloom<S, L> {
    /// Keeps only the bits that both cores have.
    ///
    /// # Errors
    ///
    /// [`Incompatible`] if they differ in bits, probes or kernels. Nothing is changed then.
    pub fn intersect_with(&mut self, other: &Self) -> Result<(), Incompatible> {
        self.compatible(other)?;
        for (word, other) in self.storage.words_mut().iter_mut().zip(other.storage.words()) {
            word.store(word.load() & other.load());
        }
        Ok(())
    }
}

/// For whoever has the filter for itself.
impl<T: ?Sized, H, S: Allocate, L: Layout> Filter<T, H, RawBloom<S, L>> {
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
        self.compatible_with(other)?;
        self.raw.intersect_with(&other.raw)
    }
}

/// Same bits. Of filters that other threads are filling, it compares what it comes across.
impl<S: Storage, L: Layout> PartialEq for RawBloom<S, L> {
    fn eq(&self, other: &Self) -> bool {
        let (words, others) = (self.storage.words().iter(), other.storage.words().iter());
        self.compatible(other).is_ok() && words.map(Word::load).eq(others.map(Word::load))
    }
}

/// Not of filters that other threads may be filling.
impl<B: AsRef<[u64]>, L: Layout> Eq for RawBloom<Own<B>, L> {}
