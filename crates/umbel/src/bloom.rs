//! The classic Bloom filter: each key sets k bits, spread over the whole table.
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
//! other programs. Prefer [`atomic`](crate::atomic) when many threads fill it.
//!
//! # Where it breaks
//!
//! Beyond its capacity it accepts more keys without an error, at a rising false positive rate: 1 %
//! becomes 16 % at twice the planned number of items.
//! [`expected_rate`](crate::Filter::expected_rate) returns the current rate. Keys cannot be
//! removed. An attacker who knows the seed can choose keys that raise the rate to 7.7 % at
//! capacity: see [`Keyed`](crate::Keyed).
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

/// The core of a Bloom filter: words in `S`, in which `L` assigns bits to each digest.
///
/// One type for the classic filter and those of [`blocked`](crate::blocked) and
/// [`split`](crate::split), in owned memory, in an array, in a file, and for many threads: same
/// code, same bits.
#[derive(Clone)]
pub struct RawBloom<S, L: Layout = Digits> {
    pub(crate) shape: L::Shape,
    pub(crate) layout: L,
    pub(crate) storage: S,
}

/// A Bloom filter of keys `T`, hashed by `H`, with any storage `S` and any layout `L`.
///
/// The names for everyday use are [`BloomFilter`], in owned memory, [`ArrayBloomFilter`], in an
/// array, and [`AtomicBloomFilter`](crate::AtomicBloomFilter), for many threads.
pub type Bloom<T, H, S, L = Digits> = Filter<T, H, RawBloom<S, L>>;

/// A classic Bloom filter in owned memory. The [module](crate::bloom) describes it and says when to
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
/// An array of zero words does not compile:
///
/// ```compile_fail
/// let filter = umbel::ArrayBloomFilter::<u64, 0>::new(1, 0.01);
/// ```
pub type ArrayBloomFilter<T, const WORDS: usize, H = Portable> =
    Filter<T, H, RawBloom<Array<WORDS>>>;

/// Constructors for filters in an array.
impl<T: ?Sized, const WORDS: usize> ArrayBloomFilter<T, WORDS> {
    /// A filter for `capacity` keys at a false positive rate of at most `err_rate`. In a `const` or
    /// `static`, invalid arguments fail to compile.
    ///
    /// # Panics
    ///
    /// If `err_rate` is not above 0 and below 1, or the filter needs more than `WORDS` words:
    /// [`words_for`] computes how many it needs.
    #[must_use]
    pub const fn new(capacity: u64, err_rate: f64) -> Self {
        let shape = Shape::for_array::<WORDS>(capacity, err_rate);
        let raw = RawBloom { shape, layout: Digits, storage: Own([0; WORDS]) };
        Self { raw, hasher: Portable::seeded(0), keys: PhantomData }
    }
}

/// Constructors for filters in an array, with another hasher.
impl<T: ?Sized, const WORDS: usize, H> ArrayBloomFilter<T, WORDS, H> {
    /// A filter for `capacity` keys at a false positive rate of at most `err_rate`, with this hasher.
    ///
    /// # Errors
    ///
    /// [`InvalidShape`] if `err_rate` is not above 0 and below 1 or too small, or the filter needs
    /// more than `WORDS` words.
    pub fn try_with_hasher(capacity: u64, err_rate: f64, hasher: H) -> Result<Self, InvalidShape> {
        Self::with_kernels(Shape::for_words::<WORDS>(capacity, err_rate)?, hasher, Digits)
    }
}

/// Constructors for any storage and any kernels.
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
    /// Creates an empty core. All constructors call it.
    pub(crate) fn of_layout(shape: L::Shape, layout: L) -> Result<Self, InvalidShape> {
        let storage = S::zeroed(shape.words())?;
        Self::of_parts(shape, layout, storage)
    }
}

impl<S, L: Layout> RawBloom<S, L> {
    /// Creates a core from existing words. The caller checks that their number is that of the
    /// shape.
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
    /// The layout, which maps a digest to positions.
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

/// Insertion through `&mut self`.
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

/// Not for storage in a file: clearing there would lose keys that are already on disk.
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

    /// Whether no key was ever inserted. Reads words until it finds a set bit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.storage.words().iter().all(|word| word.load() == 0)
    }

    /// An estimate of how many different keys were inserted, from the number of set bits;
    /// `u64::MAX` if all bits are set. Reads the whole filter.
    #[must_use]
    pub fn estimated_len(&self) -> u64 {
        self.shape.estimate_items(self.count_ones())
    }
} }

/// Two cores may have different storage.
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
    /// Sets every bit that is set in `words`, a piece of a filter of the same shape and hasher that
    /// starts at word `first`. Once all pieces have been added, this filter finds every key that
    /// the other one finds.
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
    /// If the filter has fewer than `words.len()` words from `first` on.
    pub fn union_with_words(&mut self, first: usize, words: &[u64]) {
        let here = &mut self.storage.words_mut()[first..][..words.len()];
        for (word, other) in here.iter_mut().zip(words) {
            *word |= other;
        }
    }
} }

/// Changes through `&mut self`.
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

/// Union.
impl<T, H, B, L> Filter<T, H, RawBloom<Own<B>, L>>
where
    T: ?Sized,
    B: AsRef<[u64]> + AsMut<[u64]>,
    L: Layout,
{
    /// Makes this the filter of all keys that were inserted into either of the two: the bits are
    /// the same as if all keys had been inserted here. The other filter may be in memory, in an
    /// array or in a file.
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
    /// Keeps only the bits that are set in both cores.
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

/// Intersection, which needs exclusive access.
impl<T: ?Sized, H, S: Allocate, L: Layout> Filter<T, H, RawBloom<S, L>> {
    /// Keeps only the bits that are set in both filters. Keys that were inserted into both are
    /// still found. The false positive rate is at most that of either filter before. The result has
    /// more set bits than a filter of the common keys would have, so
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

/// Equal if all bits are equal. If other threads are filling a filter, the result depends on what
/// the comparison sees.
impl<S: Storage, L: Layout> PartialEq for RawBloom<S, L> {
    fn eq(&self, other: &Self) -> bool {
        let (words, others) = (self.storage.words().iter(), other.storage.words().iter());
        self.compatible(other).is_ok() && words.map(Word::load).eq(others.map(Word::load))
    }
}

/// Not for atomic filters, whose bits may change during a comparison.
impl<B: AsRef<[u64]>, L: Layout> Eq for RawBloom<Own<B>, L> {}
