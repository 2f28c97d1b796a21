//! The stable Bloom filter: for streams without end. It forgets old keys, and its rate never rises.
//!
//! ```text
//!               random place
//!                    v     P cells                       1. count P neighbours down
//!     ... 0 3 0 7 0 [2 0 5 0 0 7 1 0] 0 4 0 0 7 ...      2. set the K cells of the key to Max
//!           |             |                   |
//!           `-- "umbel" --^-------------------'          absent as soon as one is 0
//! ```
//!
//! | bits per key | touches per look-up | remove | union | grow | can building fail |
//! |---|---|---|---|---|---|
//! | 69 at 1 %, for each of the last keys, of which 90 % are found or more | about 3 absent, K present: 5 at 1 % | ages | no | no | no |
//!
//! Choose it for endless streams where to forget some key too early is harmless, and memory is what it
//! is: it turns any number of bytes and any rate into a filter that works for ever. Prefer
//! [`window`](crate::window) when nothing may be lost inside a window of time or insertions, and
//! [`scalable`](crate::scalable) when nothing may be lost at all.
//!
//! # The stable point
//!
//! An insertion empties cells and fills cells. While the filter is empty there is little to count
//! down, so it fills; when as many cells become zero as stop being zero, it stays as it is, for ever:
//! the *stable point*, [`Shape::stable_point`]. The share of full cells comes closer to it
//! exponentially, from below: [`Shape::settles_after`] tells how fast, and the error rate is never
//! above [`Shape::stable_rate`]. For 4-bit cells at 1 %, the share is within 1 % of it after as many
//! insertions as a seventh of the cells: a filter that keeps a million keys settles in 2.4 million.
//!
//! Formulas of papers and peers are for K different cells, P cells that are counted down independently,
//! and the mean filter. What is here is computed for what is done here: K independent cells, P
//! neighbours from a random place on, which is one stretch of memory instead of P, and the mean over
//! filters. A test holds it against filters at five sigma.
//!
//! # Where it breaks
//!
//! **Old keys are forgotten.** A key is lost as soon as one of its cells was counted down Max times
//! and not filled again by itself or others. How likely that is depends on the number of insertions
//! since, and [`Shape::found_after`] tells it; for `new(1_000_000, 0.01)`:
//!
//! | insertions since | 100,000 | 500,000 | 1,000,000 | 1,500,000 | 2,000,000 | 4,000,000 |
//! |---|---|---|---|---|---|---|
//! | found | 1.000000 | 0.9998 | 0.90 | 0.32 | 0.046 | 0.0098 |
//!
//! Wide cells forget at one time, as a window does; narrow ones sooner and later: cells of 1 bit lose
//! some keys at once. In the same memory at 1 %, 4 bits keep nine of ten keys longest, and 2 bits half
//! of them.
//!
//! A key that is inserted again is as good as new, and so are others that share its cells. What is
//! inserted is not only fresh keys: a stream of which all keys are old is forgotten just as fast.
//! `false` of [`contains`](Stable::contains) is proof that the key is not there, and none that it never
//! was. Two filters cannot be united, and nothing can be removed.
//!
//! # Reference
//!
//! Deng and Rafiei 2006, "Approximately detecting duplicates for streaming data using stable Bloom
//! filters", section 3 for the filter and the stable point, section 4 for its parameters.
//!
//! ```
//! use umbel::StableBloomFilter;
//!
//! let mut seen = StableBloomFilter::<u64>::new(1_000, 0.01); // keys to remember, error rate
//! assert!(seen.insert(&7)); // true: certainly not known, or not any more
//! assert!(!seen.insert(&7) && seen.contains(&7));
//! seen.extend(1_000..1_000_000_u64);
//! assert!(!seen.contains(&7)); // long ago
//! let recent = (999_500..1_000_000).filter(|key| seen.contains(key)).count();
//! assert!(recent > 490);
//! assert!(seen.shape().stable_rate() <= 0.01);
//! ```

mod bytes;
mod rate;
mod shape;
mod table;

pub use shape::{MAX_WIDTH, Shape, words_for};

use crate::error::{BatchFull, Full, InvalidShape};
use crate::filter::{Edge, Filter, Insert};
use crate::hash::{Digest, Digester, Portable};
use crate::parts::cells::Cells;
use crate::parts::math::powi;
use crate::storage::{Allocate, Array, Own, Storage, StorageMut};
use core::borrow::Borrow;
use core::fmt;
use core::marker::PhantomData;
use table::{Inserter, Table};

#[cfg(feature = "alloc")]
use crate::storage::Heap;

/// A stable Bloom filter of keys `T`, hashed by `H`, with words in `S`.
///
/// Everyday names are [`StableBloomFilter`], in memory of its own, and [`ArrayStableBloomFilter`], in
/// an array.
pub struct Stable<T: ?Sized, H, S> {
    shape: Shape,
    /// How many keys were inserted, which decides what is counted down next.
    insertions: u64,
    hasher: H,
    storage: S,
    keys: PhantomData<fn(&T)>,
}

/// A stable Bloom filter in memory of its own. The [module](mod@crate::stable) tells what it is and when to
/// choose it, [`Stable`] has its methods.
#[cfg(feature = "alloc")]
pub type StableBloomFilter<T, H = Portable> = Stable<T, H, Heap>;

/// A stable Bloom filter in an array, without an allocator. The array has exactly the words of its
/// shape; [`stable!`](crate::stable!) makes one.
///
/// ```
/// use umbel::stable::{ArrayStableBloomFilter, Shape, words_for};
///
/// const WORDS: usize = words_for(730, 3); // cells, bits of a cell
/// let shape = Shape::for_rate(730, 3, 0.03)?;
/// let mut filter = ArrayStableBloomFilter::<str, WORDS>::of(shape);
/// assert!(filter.insert("once") && !filter.insert("once"));
/// # Ok::<(), umbel::InvalidShape>(())
/// ```
pub type ArrayStableBloomFilter<T, const WORDS: usize, H = Portable> = Stable<T, H, Array<WORDS>>;

/// A stable Bloom filter in an array, planned by the compiler:
/// `stable![730 cells; 3 bits; rate 0.03]`, or with the type of its keys in front.
///
/// ```
/// use umbel::stable;
/// use umbel::stable::ArrayStableBloomFilter;
///
/// let mut seen = stable![str; 730 cells; 3 bits; rate 0.03];
/// assert!(seen.insert("once") && seen.contains("once"));
///
/// // Where the type is known, or written down, it need not be repeated.
/// static EMPTY: ArrayStableBloomFilter<u64, { stable::words_for(730, 3) }> =
///     stable![730 cells; 3 bits; rate 0.03];
/// assert!(!EMPTY.contains(&7) && EMPTY.shape().stable_rate() <= 0.03);
/// ```
///
/// A rate that is none, cells of no or too many bits, or too few of them are refused by the compiler:
///
/// ```compile_fail,E0080
/// let seen = umbel::stable![str; 730 cells; 3 bits; rate 1.5];
/// ```
///
/// ```compile_fail,E0080
/// let seen = umbel::stable![str; 730 cells; 9 bits; rate 0.03];
/// ```
///
/// ```compile_fail,E0080
/// let seen = umbel::stable![str; 30 cells; 8 bits; rate 0.03];
/// ```
#[macro_export]
macro_rules! stable {
    ($cells:tt cells; $bits:tt bits; rate $rate:expr) => {
        $crate::stable![_; $cells cells; $bits bits; rate $rate]
    };
    ($key:ty; $cells:tt cells; $bits:tt bits; rate $rate:expr) => {{
        const SHAPE: $crate::stable::Shape =
            match $crate::stable::Shape::for_rate($cells, $bits, $rate) {
                Ok(shape) => shape,
                Err(_) => panic!("there is no such filter: see `Shape::for_rate`"),
            };
        const WORDS: usize = $crate::stable::words_for($cells, $bits);
        $crate::stable::ArrayStableBloomFilter::<$key, WORDS>::of(SHAPE)
    }};
}

impl<T: ?Sized, S: Allocate> Stable<T, Portable, S> {
    /// A filter that finds at least nine of ten keys which were inserted `capacity` insertions ago, and
    /// nearly all later ones, with an error rate of at most `err_rate` for ever.
    ///
    /// [`with`](Self::with) takes other plans: [`Shape::for_budget`] by memory, [`Shape::for_rate`] by
    /// cells.
    ///
    /// # Panics
    ///
    /// Where [`try_new`](Self::try_new) gives an error: if `err_rate` is not above 0 and below 1,
    /// or there is no memory for so large a filter.
    #[must_use]
    pub fn new(capacity: u64, err_rate: f64) -> Self {
        Self::with_hasher(capacity, err_rate, Portable::default())
    }

    /// As [`new`](Self::new).
    ///
    /// # Errors
    ///
    /// [`InvalidShape`] if `err_rate` is not above 0 and below 1 or too small, or if so large a
    /// filter cannot be represented or allocated.
    pub fn try_new(capacity: u64, err_rate: f64) -> Result<Self, InvalidShape> {
        Self::with(Shape::for_capacity(capacity, err_rate)?, Portable::default())
    }
}

/// With another hasher or shape.
impl<T: ?Sized, H, S: Allocate> Stable<T, H, S> {
    /// As `new`, with this hasher.
    ///
    /// # Panics
    ///
    /// As `new`: where there is no such shape, or [`with`](Self::with) gives an error.
    #[must_use]
    pub fn with_hasher(capacity: u64, err_rate: f64, hasher: H) -> Self {
        Shape::for_capacity(capacity, err_rate)
            .and_then(|shape| Self::with(shape, hasher))
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// A filter of this shape, with this hasher.
    ///
    /// # Errors
    ///
    /// [`InvalidShape`] if there is no memory for it, or an array is not of its size.
    pub fn with(shape: Shape, hasher: H) -> Result<Self, InvalidShape> {
        let storage = S::zeroed(shape.words())?;
        Ok(Self { shape, insertions: 0, hasher, storage, keys: PhantomData })
    }
}

/// In an array.
impl<T: ?Sized, const WORDS: usize> ArrayStableBloomFilter<T, WORDS> {
    /// A filter of this shape. In a constant or a `static`, a mistake is an error of the compiler's.
    ///
    /// # Panics
    ///
    /// If the shape does not have `WORDS` words: [`words_for`] tells how many it has.
    #[must_use]
    pub const fn of(shape: Shape) -> Self {
        assert!(shape.words() == WORDS as u64, "the array must have the words of the shape");
        let (hasher, storage) = (Portable::seeded(0), Own([0; WORDS]));
        Self { shape, insertions: 0, hasher, storage, keys: PhantomData }
    }
}

#[inline(always)]
fn table<V>(shape: &Shape, words: V) -> Table<V> {
    let cells = Cells::new(words, shape.width());
    Table { cells, len: shape.cells(), probes: shape.probes() }
}

/// For reading.
impl<T: ?Sized, H, B: AsRef<[u64]>> Stable<T, H, Own<B>> {
    #[inline(always)]
    fn table(&self) -> Table<&[u64]> {
        table(&self.shape, self.storage.words())
    }

    /// Whether the key may have been inserted not long ago. `false` is proof that it was never, or was
    /// forgotten; `true` is wrong for a share of other keys that [`expected_rate`](Self::expected_rate)
    /// tells. A key is found at least until the next one is inserted.
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
        self.table().contains(digest)
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
        self.table().contains_batch(keys, |key| self.hasher.digest(key.borrow()), found);
    }

    /// As [`contains_batch`](Self::contains_batch), for keys that were digested elsewhere.
    #[inline]
    pub fn contains_digests(&self, digests: &[Digest], found: &mut [bool]) {
        self.table().contains_batch(digests, |digest| *digest, found);
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

    /// How many keys were inserted since it was made or cleared, the same ones again included. It
    /// begins anew after 2^64.
    #[must_use]
    pub const fn insertions(&self) -> u64 {
        self.insertions
    }

    /// The memory of the words, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.shape.bytes()
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
        self.table().cells.count_nonzero(self.shape.cells())
    }

    /// Whether no key would be found. Reads until it finds a cell that is not zero.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words().iter().all(|word| *word == 0)
    }

    /// The error rate now, judged by the cells that are not zero. Reads the whole filter.
    #[must_use]
    pub fn expected_rate(&self) -> f64 {
        powi(self.count_nonzero() as f64 / self.shape.cells() as f64, self.shape.probes())
    }
}

/// For changing.
impl<T: ?Sized, H, B: AsRef<[u64]> + AsMut<[u64]>> Stable<T, H, Own<B>> {
    #[inline(always)]
    fn inserter(&mut self) -> (&H, Inserter<'_, &mut [u64]>) {
        let Self { shape, insertions, hasher, storage, .. } = self;
        let table = table(shape, storage.words_mut());
        (hasher, Inserter { table, decrements: shape.decrements(), insertions })
    }

    /// Inserts a key, and lets others age. `true` is proof that it was never inserted, or forgotten;
    /// `false` says that [`contains`](Self::contains) would have answered `true` already.
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
        self.inserter().1.insert(digest)
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
        let (hasher, inserter) = self.inserter();
        inserter.insert_batch(keys, |key| hasher.digest(key.borrow()), fresh);
    }

    /// As [`insert_batch`](Self::insert_batch), for keys that were digested elsewhere.
    #[inline]
    pub fn insert_digests(&mut self, digests: &[Digest], fresh: &mut [bool]) {
        let (_, inserter) = self.inserter();
        inserter.insert_batch(digests, |digest| *digest, fresh);
    }

    /// Forgets all keys, and becomes as it was when it was made.
    pub fn clear(&mut self) {
        self.storage.words_mut().fill(0);
        self.insertions = 0;
    }
}

impl<T: ?Sized, H, B: AsRef<[u64]>> Filter for Stable<T, H, Own<B>> {
    /// `false` is also the answer for digests that were inserted and forgotten.
    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.contains_digest(digest)
    }
}

impl<T: ?Sized, H: Digester<T>, B: AsRef<[u64]>> Edge for Stable<T, H, Own<B>> {
    type Key = T;

    #[inline]
    fn digest(&self, key: &T) -> Digest {
        self.hasher.digest(key)
    }
}

impl<T: ?Sized, H, B: AsRef<[u64]> + AsMut<[u64]>> Insert for Stable<T, H, Own<B>> {
    /// Never [`Full`]. `Ok(true)` is proof that the digest was never inserted, or forgotten.
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

/// Keys are inserted in batches, in their order; whether they were known is not told.
impl<A, T, H, B> Extend<A> for Stable<T, H, Own<B>>
where
    A: Borrow<T>,
    T: ?Sized,
    H: Digester<T>,
    B: AsRef<[u64]> + AsMut<[u64]>,
{
    fn extend<I: IntoIterator<Item = A>>(&mut self, keys: I) {
        const BATCH: usize = 512;
        let (mut digests, mut fresh) = ([Digest::new(0); BATCH], [false; BATCH]);
        let mut keys = keys.into_iter().fuse();
        loop {
            let mut len = 0;
            for (slot, key) in digests.iter_mut().zip(&mut keys) {
                *slot = self.hasher.digest(key.borrow());
                len += 1;
            }
            self.insert_digests(&digests[..len], &mut fresh[..len]);
            if len < BATCH {
                return;
            }
        }
    }
}

impl<T: ?Sized, H: Clone, S: Clone> Clone for Stable<T, H, S> {
    fn clone(&self) -> Self {
        Self {
            shape: self.shape,
            insertions: self.insertions,
            hasher: self.hasher.clone(),
            storage: self.storage.clone(),
            keys: PhantomData,
        }
    }
}

/// Equal filters give equal answers, for ever: same cells, same hasher, same insertions.
impl<T: ?Sized, H: Digester<T>, B: AsRef<[u64]>> PartialEq for Stable<T, H, Own<B>> {
    fn eq(&self, other: &Self) -> bool {
        (self.shape, self.insertions) == (other.shape, other.insertions)
            && self.hasher.check() == other.hasher.check()
            && self.words() == other.words()
    }
}

impl<T: ?Sized, H: fmt::Debug, B: AsRef<[u64]>> fmt::Debug for Stable<T, H, Own<B>> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shape, fill) = (&self.shape, self.count_nonzero() as f64);
        f.debug_struct("StableBloomFilter")
            .field("cells", &shape.cells())
            .field("bits_per_cell", &shape.width())
            .field("probes", &shape.probes())
            .field("decrements", &shape.decrements())
            .field("insertions", &self.insertions)
            .field("fill", &format_args!("{:.4}", fill / shape.cells() as f64))
            .field("hasher", &self.hasher)
            .finish()
    }
}
