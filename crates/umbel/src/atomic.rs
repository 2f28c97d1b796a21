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
//! thread fills it: an insert costs about twice as much here.
//!
//! # Where it breaks
//!
//! No key is ever lost, and once the threads are joined the bits are those of the same keys inserted
//! one after another. While they run, a key counts as inserted when `insert` has returned *and* the
//! asking thread knows that (through a lock, a channel, a join): bits are set one by one, in no
//! order that other threads could rely on. For the same reason two threads that insert one new key
//! at once may both be told `true`: at least one of them is, but the answer is no claim ticket.
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

use crate::bloom::{
    Shape, Table, contains, contains_batch, digest_in_batches, insert, insert_batch,
};
use crate::error::{Incompatible, InvalidShape};
use crate::filter::Filter;
use crate::hash::{Digest, Digester, Portable};
use crate::kernels::{Digits, Kernels};
use crate::parts::bits;
use crate::storage::{Allocate, SharedStorage};
use core::borrow::Borrow;
use core::fmt;
use core::marker::PhantomData;

#[cfg(feature = "alloc")]
use crate::bloom::BloomFilter;
#[cfg(feature = "alloc")]
use crate::storage::{Heap, SharedHeap};

#[cfg(not(loom))]
use core::sync::atomic::Ordering::Relaxed;
#[cfg(loom)]
use loom::sync::atomic::Ordering::Relaxed;

/// A classic Bloom filter of keys `T`, hashed by `H`, with shared words in `S` and positions from
/// `K`. Everyday names are [`AtomicBloomFilter`] and [`AtomicArrayBloomFilter`].
pub struct AtomicBloom<T: ?Sized, H, S, K = Digits> {
    shape: Shape,
    hasher: H,
    kernels: K,
    storage: S,
    keys: PhantomData<fn(&T)>,
}

/// A classic Bloom filter in memory of its own that many threads may fill. The
/// [module](crate::atomic) tells what it promises, [`AtomicBloom`] has its methods.
#[cfg(feature = "alloc")]
pub type AtomicBloomFilter<T, H = Portable> = AtomicBloom<T, H, SharedHeap>;

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
    AtomicBloom<T, H, [bits::AtomicU64; WORDS]>;

#[cfg(feature = "alloc")]
impl<T: ?Sized> AtomicBloomFilter<T> {
    /// A filter for `capacity` keys at an error rate of at most `err_rate`.
    ///
    /// # Panics
    ///
    /// Where [`try_new`](Self::try_new) gives an error.
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

#[cfg(feature = "alloc")]
impl<T: ?Sized, H> AtomicBloomFilter<T, H> {
    /// A filter for `capacity` keys at an error rate of at most `err_rate`, with this hasher.
    ///
    /// # Panics
    ///
    /// As `new`: where [`with`](Self::with) or [`Shape::for_rate`] give an error.
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
    /// [`InvalidShape`] if there is no memory for it, or its number of bits is even.
    pub fn with(shape: Shape, hasher: H) -> Result<Self, InvalidShape> {
        Self::with_kernels(shape, hasher, Digits)
    }
}

#[cfg(not(loom))]
impl<T: ?Sized, const WORDS: usize> AtomicArrayBloomFilter<T, WORDS> {
    /// A filter for `capacity` keys at an error rate of at most `err_rate`. In a constant or a
    /// `static`, a mistake is an error of the compiler's.
    ///
    /// # Panics
    ///
    /// If `err_rate` is not above 0 and below 1, or `WORDS` words are not enough for it:
    /// [`words_for`](crate::words_for) tells how many are.
    #[must_use]
    pub const fn new(capacity: u64, err_rate: f64) -> Self {
        match Shape::for_words::<WORDS>(capacity, err_rate) {
            Ok(shape) => Self {
                shape,
                hasher: Portable::seeded(0),
                kernels: Digits,
                storage: [const { bits::AtomicU64::new(0) }; WORDS],
                keys: PhantomData,
            },
            Err(_) => panic!("the rate must be above 0 and below 1, and the words enough for it"),
        }
    }
}

impl<T: ?Sized, H, S: SharedStorage + Allocate, K: Kernels> AtomicBloom<T, H, S, K> {
    /// A filter of this shape, with this hasher and these kernels.
    ///
    /// # Errors
    ///
    /// [`InvalidShape`] if there is no memory for it, or the kernels do not accept the shape.
    pub fn with_kernels(shape: Shape, hasher: H, kernels: K) -> Result<Self, InvalidShape> {
        kernels.accept(&shape)?;
        let storage = S::zeroed(shape.words())?;
        Ok(Self { shape, hasher, kernels, storage, keys: PhantomData })
    }
}

impl<T: ?Sized, H, S: SharedStorage, K: Kernels> AtomicBloom<T, H, S, K> {
    /// Whether the key may have been inserted. `false` is proof that no insertion of it has
    /// happened before; `true` is wrong for a share of absent keys that
    /// [`expected_rate`](Self::expected_rate) tells.
    #[must_use]
    #[inline]
    pub fn contains<Q>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: ?Sized,
        H: Digester<Q, K::Digest>,
    {
        self.contains_digest(self.hasher.digest(key))
    }

    /// As [`contains`](Self::contains), for a key that was digested elsewhere.
    #[must_use]
    #[inline]
    pub fn contains_digest(&self, digest: K::Digest) -> bool {
        contains(self.table(), self.shape.probes(), &self.kernels, digest)
    }

    /// As [`contains`](Self::contains), for many keys: `found[i]` is the answer for `keys[i]`.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[inline]
    pub fn contains_batch<A>(&self, keys: &[A], found: &mut [bool])
    where
        A: Borrow<T>,
        H: Digester<T, K::Digest>,
    {
        let digest = |key: &A| self.hasher.digest(key.borrow());
        let probes = self.shape.probes();
        contains_batch(self.table(), probes, &self.kernels, keys, digest, found);
    }

    /// As [`contains_batch`](Self::contains_batch), for keys that were digested elsewhere.
    #[inline]
    pub fn contains_digests(&self, digests: &[K::Digest], found: &mut [bool]) {
        let probes = self.shape.probes();
        contains_batch(self.table(), probes, &self.kernels, digests, |digest| *digest, found);
    }

    /// Inserts a key. `true` says that it is new, and is said at least once, but maybe to several
    /// threads that insert it at the same time; `false` says that [`contains`](Self::contains) would
    /// have answered `true` already.
    #[inline]
    pub fn insert<Q>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: ?Sized,
        H: Digester<Q, K::Digest>,
    {
        self.insert_digest(self.hasher.digest(key))
    }

    /// As [`insert`](Self::insert), for a key that was digested elsewhere.
    #[inline]
    pub fn insert_digest(&self, digest: K::Digest) -> bool {
        let table = &mut Table::to_change(self.storage.shared(), self.shape.bits());
        insert(table, self.shape.probes(), &self.kernels, digest)
    }

    /// As [`insert`](Self::insert), for many keys in their order: `fresh[i]` is the answer for
    /// `keys[i]`.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[inline]
    pub fn insert_batch<A>(&self, keys: &[A], fresh: &mut [bool])
    where
        A: Borrow<T>,
        H: Digester<T, K::Digest>,
    {
        let digest = |key: &A| self.hasher.digest(key.borrow());
        let table = Table::to_change(self.storage.shared(), self.shape.bits());
        insert_batch(table, self.shape.probes(), &self.kernels, keys, digest, fresh);
    }

    /// As [`insert_batch`](Self::insert_batch), for keys that were digested elsewhere.
    #[inline]
    pub fn insert_digests(&self, digests: &[K::Digest], fresh: &mut [bool]) {
        let table = Table::to_change(self.storage.shared(), self.shape.bits());
        let probes = self.shape.probes();
        insert_batch(table, probes, &self.kernels, digests, |digest| *digest, fresh);
    }

    /// Makes this the filter of all keys that were inserted into either of the two.
    ///
    /// # Errors
    ///
    /// [`Incompatible`] if they differ in bits, probes, kernels or hasher. Nothing is changed then.
    pub fn union_with(&self, other: &Self) -> Result<(), Incompatible>
    where
        H: Digester<T, K::Digest>,
    {
        self.compatible(other)?;
        for (word, other) in self.storage.shared().iter().zip(other.storage.shared()) {
            word.fetch_or(other.load(Relaxed), Relaxed);
        }
        Ok(())
    }

    /// Forgets all keys. Needs the filter for itself: a key inserted meanwhile would be half lost.
    pub fn clear(&mut self) {
        for word in self.storage.shared() {
            word.store(0, Relaxed);
        }
    }

    #[inline(always)]
    fn table(&self) -> Table<&[bits::AtomicU64]> {
        Table::new(self.storage.shared(), self.shape.bits())
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
    pub const fn bytes(&self) -> u64 {
        self.shape.bytes()
    }

    /// How many bits are set. Reads the whole filter.
    #[must_use]
    pub fn count_ones(&self) -> u64 {
        bits::count(self.storage.shared())
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
        self.shape.rate_at(self.count_ones())
    }

    /// Whether two filters can be combined.
    fn compatible(&self, other: &Self) -> Result<(), Incompatible>
    where
        H: Digester<T, K::Digest>,
    {
        let hashers = (self.hasher.check(), other.hasher.check());
        self.shape.compatible(&other.shape, hashers, (self.kernels.check(), other.kernels.check()))
    }
}

#[cfg(feature = "alloc")]
impl<T: ?Sized, H: Clone> AtomicBloomFilter<T, H> {
    /// A plain filter with the bits that are set now. It holds every key whose insertion happened
    /// before.
    #[must_use]
    pub fn snapshot(&self) -> BloomFilter<T, H> {
        let mut words = self.storage.shared().iter().map(|word| word.load(Relaxed));
        let storage = Heap::from_words(&mut words);
        BloomFilter::from_storage(self.shape, self.hasher.clone(), storage)
    }
}

/// The same keys, ready for many threads.
#[cfg(feature = "alloc")]
impl<T: ?Sized, H> From<BloomFilter<T, H>> for AtomicBloomFilter<T, H> {
    fn from(plain: BloomFilter<T, H>) -> Self {
        let (shape, hasher, storage) = plain.into_storage();
        let storage = SharedHeap::from(storage);
        Self { shape, hasher, kernels: Digits, storage, keys: PhantomData }
    }
}

/// Keys are inserted in batches; whether they were new is not told. Many threads may do this at
/// once, each with a `&` of its own.
impl<A, T, H, S, K> Extend<A> for &AtomicBloom<T, H, S, K>
where
    A: Borrow<T>,
    T: ?Sized,
    H: Digester<T, K::Digest>,
    S: SharedStorage,
    K: Kernels,
{
    fn extend<I: IntoIterator<Item = A>>(&mut self, keys: I) {
        digest_in_batches(&self.hasher, keys, |digests, fresh| self.insert_digests(digests, fresh));
    }
}

impl<T: ?Sized, H, S: SharedStorage, K: Kernels<Digest = Digest>> Filter
    for AtomicBloom<T, H, S, K>
{
    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.contains_digest(digest)
    }
}

/// Equal filters give equal answers: same bits, same hasher. Of filters that are being filled, it
/// compares what it comes across.
impl<T, H, S, K> PartialEq for AtomicBloom<T, H, S, K>
where
    T: ?Sized,
    H: Digester<T, K::Digest>,
    S: SharedStorage,
    K: Kernels,
{
    fn eq(&self, other: &Self) -> bool {
        let (left, right) = (self.storage.shared().iter(), other.storage.shared().iter());
        self.compatible(other).is_ok()
            && left.zip(right).all(|(left, right)| left.load(Relaxed) == right.load(Relaxed))
    }
}

impl<T: ?Sized, H: fmt::Debug, S: SharedStorage, K: Kernels> fmt::Debug
    for AtomicBloom<T, H, S, K>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shape.describe(f, "AtomicBloomFilter", self.count_ones(), &self.hasher)
    }
}
