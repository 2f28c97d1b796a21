//! The classic Bloom filter, filled by many threads through `&self`.
//!
//! ```text
//!     thread 1  -- fetch_or -->  ... 0 1 1 0 | 0 1 0 0 ...  <-- fetch_or --  thread 2
//!                                         contains: plain loads
//! ```
//!
//! | bits per key | touches per look-up | remove | union | grow | can building fail |
//! |---|---|---|---|---|---|
//! | as [`bloom`](crate::bloom) | as `bloom` | no | yes | no | no |
//!
//! Choose it when threads share one filter while it fills. Prefer [`bloom`](crate::bloom) when one
//! thread fills it: an insertion costs two to three times as much here (`umbel-bench --filters
//! bloom`).
//!
//! # Where it breaks
//!
//! No key is ever lost, and after the threads are joined the bits are those of the same keys
//! inserted one after another. While they run, a key counts as inserted for a thread once `insert`
//! has returned *and* that thread has synchronized with the inserting one (through a lock, a
//! channel, a join). Bits are set one by one, in an order that other threads cannot rely on. For
//! the same reason, if two threads insert one new key at the same time, `insert` may return `true`
//! to both. At least one of them gets `true`, so the result does not identify a single winner.
//!
//! ```
//! use umbel::AtomicBloomFilter;
//!
//! let seen = AtomicBloomFilter::<u64>::new(2_000, 0.01);
//! std::thread::scope(|scope| {
//!     for half in [0..1_000, 1_000..2_000] {
//!         scope.spawn(|| half.for_each(|key| { seen.insert(&key); }));
//!     }
//! });
//! assert!((0..2_000).all(|key| seen.contains(&key)));
//! ```

use crate::bloom::RawBloom;
use crate::edge::Filter;
use crate::error::{BatchFull, Full, Incompatible};
use crate::filter::{Compatible, Insert, InsertShared, Union};
use crate::hash::{Digest, Digester, KeyOf, Portable};
use crate::layout::Layout;
use crate::parts::bits::{AtomicU64, Word};
use crate::storage::{Shared, Storage};

#[cfg(feature = "alloc")]
use crate::parts::words::Words;
#[cfg(feature = "alloc")]
use crate::storage::{Heap, Own, SharedHeap};

// Loom does not model atomics in constants.
#[cfg(not(loom))]
use crate::{bloom::Shape, kernels::Digits, storage::SharedArray};
#[cfg(not(loom))]
use core::{marker::PhantomData, sync::atomic::Ordering::Relaxed};
#[cfg(loom)]
use loom::sync::atomic::Ordering::Relaxed;

/// A classic Bloom filter in owned memory that many threads may fill. The [module](crate::atomic)
/// has its guarantees.
#[cfg(feature = "alloc")]
pub type AtomicBloomFilter<T, H = Portable> = Filter<T, H, RawBloom<SharedHeap>>;

/// A classic Bloom filter in an array that many threads may fill: a `static` without a lock.
///
/// ```
/// use umbel::{atomic::AtomicArrayBloomFilter, words_for};
///
/// static SEEN: AtomicArrayBloomFilter<str, { words_for(100, 0.01) }> =
///     AtomicArrayBloomFilter::new(100, 0.01);
///
/// assert!(SEEN.insert("from any thread"));
/// assert!(SEEN.contains("from any thread"));
/// ```
#[cfg(not(loom))]
pub type AtomicArrayBloomFilter<T, const WORDS: usize, H = Portable> =
    Filter<T, H, RawBloom<SharedArray<WORDS>>>;

/// Constructors for filters in an array that many threads may fill.
#[cfg(not(loom))]
impl<T: ?Sized, const WORDS: usize> AtomicArrayBloomFilter<T, WORDS> {
    /// A filter for `capacity` keys at a false positive rate of at most `err_rate`. In a `const` or
    /// `static`, invalid arguments fail to compile.
    ///
    /// # Panics
    ///
    /// If `err_rate` is not above 0 and below 1, or the filter needs more than `WORDS` words:
    /// [`words_for`](crate::words_for) computes how many it needs.
    #[must_use]
    pub const fn new(capacity: u64, err_rate: f64) -> Self {
        let storage = Shared([const { AtomicU64::new(0) }; WORDS]);
        let shape = Shape::for_array::<WORDS>(capacity, err_rate);
        let raw = RawBloom { shape, layout: Digits, storage };
        Self { raw, hasher: Portable::seeded(0), keys: PhantomData }
    }
}

/// Changes through `&self`, from many threads.
impl<T: ?Sized, H, B: AsRef<[AtomicU64]>, L: Layout> Filter<T, H, RawBloom<Shared<B>, L>> {
    /// Inserts a key. `true` means that it is new. If several threads insert a new key at the same
    /// time, at least one of them gets `true`, and possibly several. `false` means that
    /// [`contains`](Self::contains) already returned `true`.
    #[inline]
    pub fn insert(&self, key: &T) -> bool
    where
        H: Digester<T, L::Digest>,
    {
        self.insert_digest(self.hasher.digest(key))
    }

    /// As [`insert`](Self::insert), for a digest that was computed elsewhere.
    #[inline]
    pub fn insert_digest(&self, digest: L::Digest) -> bool {
        let RawBloom { shape, layout, storage } = &self.raw;
        layout.insert(shape, storage.words(), digest)
    }

    /// As [`insert`](Self::insert), for many keys in order: `fresh[i]` is the answer for `keys[i]`.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[inline]
    pub fn insert_batch<A>(&self, keys: &[A], fresh: &mut [bool])
    where
        A: KeyOf<T>,
        H: Digester<A::Key, L::Digest>,
    {
        self.raw.put_each_shared(keys, |key| self.hasher.digest(key.key()), fresh);
    }

    /// As [`insert_batch`](Self::insert_batch), for digests that were computed elsewhere.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[inline]
    pub fn insert_digests(&self, digests: &[L::Digest], fresh: &mut [bool]) {
        self.raw.put_each_shared(digests, |digest| *digest, fresh);
    }

    /// Makes this the filter of all keys that were inserted into either of the two. The other
    /// filter may be in memory, in an array or in a file.
    ///
    /// # Errors
    ///
    /// [`Incompatible`] if they differ in bits, probes, kernels or hasher. Nothing is changed then.
    pub fn union_with<S: Storage>(
        &self,
        other: &Filter<T, H, RawBloom<S, L>>,
    ) -> Result<(), Incompatible>
    where
        H: Digester<T, L::Digest>,
    {
        self.compatible_with(other)?;
        self.raw.unite_shared(&other.raw);
        Ok(())
    }

    /// A plain filter with the bits that are set now. It contains every key whose insertion
    /// happened before.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn snapshot(&self) -> Filter<T, H, RawBloom<Heap, L>>
    where
        H: Clone,
        L: Clone,
    {
        let RawBloom { shape, layout, storage } = &self.raw;
        let storage = Own(Words::copy_of(storage.words()));
        let raw = RawBloom { shape: *shape, layout: layout.clone(), storage };
        Filter::from_raw(raw, self.hasher.clone())
    }
}

impl<B: AsRef<[AtomicU64]>, L: Layout> RawBloom<Shared<B>, L> {
    #[inline]
    fn put_each_shared<A>(&self, keys: &[A], digest: impl Fn(&A) -> L::Digest, fresh: &mut [bool]) {
        self.layout.insert_batch(&self.shape, self.storage.words(), keys, digest, fresh);
    }

    fn unite_shared<S: Storage>(&self, other: &RawBloom<S, L>) {
        for (word, other) in self.storage.words().iter().zip(other.storage.words()) {
            word.fetch_or(other.load(), Relaxed);
        }
    }
}

/// The same keys, in a filter for many threads.
#[cfg(feature = "alloc")]
impl<T, H, L> From<Filter<T, H, RawBloom<Heap, L>>> for Filter<T, H, RawBloom<SharedHeap, L>>
where
    T: ?Sized,
    L: Layout,
{
    fn from(plain: Filter<T, H, RawBloom<Heap, L>>) -> Self {
        let RawBloom { shape, layout, storage } = plain.raw;
        let raw = RawBloom { shape, layout, storage: Shared(storage.0.share()) };
        Self::from_raw(raw, plain.hasher)
    }
}

/// Inserts the keys in batches. It does not report which of them were new. Several threads may do
/// this at the same time, each with its own `&` reference.
impl<A, T, H, B, L> Extend<A> for &Filter<T, H, RawBloom<Shared<B>, L>>
where
    A: KeyOf<T>,
    T: ?Sized,
    H: Digester<A::Key, L::Digest>,
    B: AsRef<[AtomicU64]>,
    L: Layout,
{
    fn extend<I: IntoIterator<Item = A>>(&mut self, keys: I) {
        let RawBloom { shape, layout, storage } = &self.raw;
        let digests = keys.into_iter().map(|key| self.hasher.digest(key.key()));
        layout.extend(shape, storage.words(), digests);
    }
}

impl<B: AsRef<[AtomicU64]>, L: Layout<Digest = Digest>> InsertShared for RawBloom<Shared<B>, L> {
    #[inline]
    fn insert_digest(&self, digest: Digest) -> bool {
        self.layout.insert(&self.shape, self.storage.words(), digest)
    }
}

impl<B: AsRef<[AtomicU64]>, L: Layout<Digest = Digest>> Insert for RawBloom<Shared<B>, L> {
    /// Never [`Full`].
    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        Ok(InsertShared::insert_digest(self, digest))
    }

    /// Never [`BatchFull`].
    #[inline]
    fn insert_digests(&mut self, digests: &[Digest], fresh: &mut [bool]) -> Result<(), BatchFull> {
        self.put_each_shared(digests, |digest| *digest, fresh);
        Ok(())
    }
}

impl<B: AsRef<[AtomicU64]>, L: Layout<Digest = Digest>> Union for RawBloom<Shared<B>, L> {
    fn fits(&self, other: &Self) -> Result<(), Incompatible> {
        self.compatible(other)
    }

    fn union_with(&mut self, other: &Self) -> Result<(), Incompatible> {
        self.compatible(other)?;
        self.unite_shared(other);
        Ok(())
    }
}
