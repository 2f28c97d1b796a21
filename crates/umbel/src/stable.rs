//! The stable Bloom filter: for unbounded streams. It forgets old keys, and its false positive rate
//! never rises.
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
//! Choose it for unbounded streams where forgetting a key too early is harmless and memory is
//! fixed: any number of bytes and any false positive rate give a filter that works indefinitely.
//! Prefer [`window`](crate::window) when no key may be lost inside a window of time or insertions,
//! and [`scalable`](crate::scalable) when no key may be lost at all.
//!
//! # The stable point
//!
//! An insertion decrements some cells and sets others. While the filter is nearly empty there is
//! little to decrement, so it fills. When equally many cells become zero as become nonzero, the
//! share of nonzero cells stays constant: the *stable point*, [`Shape::stable_point`]. The share
//! approaches it exponentially, from below: [`Shape::settles_after`] returns how fast. The error
//! rate is never above [`Shape::stable_rate`]. For 4-bit cells at 1 %, the share is within 1 % of
//! the stable point after a number of insertions equal to a seventh of the number of cells: a
//! filter that keeps a million keys settles in 2.4 million.
//!
//! The formulas in the paper and in other libraries assume K different cells, P cells that are
//! decremented independently, and an average filter. The formulas here match this implementation: K
//! independent cells, P adjacent cells from a random place on, which touch one stretch of memory
//! instead of P, and the mean over filters. A test compares them with real filters at five sigma.
//!
//! # Where it breaks
//!
//! **Old keys are forgotten.** A key is lost as soon as one of its cells was decremented Max times
//! and not set again by this key or others. The probability depends on the number of insertions
//! since: [`Shape::found_after`] computes it. For `new(1_000_000, 0.01)`:
//!
//! | insertions since | 100,000 | 500,000 | 1,000,000 | 1,500,000 | 2,000,000 | 4,000,000 |
//! |---|---|---|---|---|---|---|
//! | found | 1.000000 | 0.9998 | 0.90 | 0.32 | 0.046 | 0.0098 |
//!
//! Wide cells forget all keys at about the same age, like a window. Narrow cells forget some keys
//! earlier and some later: cells of 1 bit lose some keys immediately. In the same memory at 1 %, 4
//! bits keep nine of ten keys longest, and 2 bits half of them.
//!
//! Inserting a key again renews it, and also other keys that share its cells. Every insertion ages
//! other keys, even if its key is already stored: a stream of known keys makes the filter forget
//! just as fast. `false` from [`contains`](crate::Filter::contains) proves that the key is not
//! stored now, but not that it was never inserted. Two filters cannot be united, and no key can be
//! removed.
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

use crate::edge::{Filter, for_core_and_filter};
use crate::error::InvalidShape;
use crate::hash::{Digest, Portable};
use crate::layout::cells::CellTable;
use crate::parts::cells::Cells;
use crate::parts::math::powi;
use crate::raw::{self, Clear, Endless, Make, Probe, describe};
use crate::storage::{Allocate, Array, Own, Storage, StorageMut};
use core::marker::PhantomData;
use table::{Asker, Inserter};

#[cfg(feature = "alloc")]
use crate::storage::Heap;

/// The core of a stable Bloom filter, with words in `S`.
#[derive(Clone)]
pub struct RawStable<S> {
    shape: Shape,
    /// The number of insertions, which determines the cells that are decremented next.
    insertions: u64,
    storage: S,
}

/// A stable Bloom filter of keys `T`, hashed by `H`, with any storage `S`.
///
/// The names for everyday use are [`StableBloomFilter`], in owned memory, and
/// [`ArrayStableBloomFilter`], in an array.
pub type Stable<T, H, S> = Filter<T, H, RawStable<S>>;

/// A stable Bloom filter in owned memory. The [module](crate::stable) describes it and says when to
/// choose it.
///
/// [`new`](crate::Filter::new) creates a filter that finds at least nine of ten keys that were
/// inserted `capacity` insertions ago, and nearly all later ones. Its false positive rate never
/// exceeds `err_rate`. [`with`](crate::Filter::with) takes other shapes: [`Shape::for_budget`] by
/// memory, [`Shape::for_cells`] by cells.
///
/// ```
/// use umbel::StableBloomFilter;
///
/// let mut seen = StableBloomFilter::new(1_000, 0.01); // keys to remember, false positive rate
/// assert!(seen.insert("a")); // true: certainly not known, or not any more
/// assert!(seen.contains("a") && !seen.contains("b"));
/// ```
#[cfg(feature = "alloc")]
pub type StableBloomFilter<T, H = Portable> = Filter<T, H, RawStable<Heap>>;

/// A stable Bloom filter in an array, without an allocator. The array has exactly the number of
/// words of its shape.
///
/// ```
/// use umbel::stable::{ArrayStableBloomFilter, words_for};
///
/// const WORDS: usize = words_for(730, 3); // cells, bits of a cell
/// static EMPTY: ArrayStableBloomFilter<str, WORDS> =
///     ArrayStableBloomFilter::for_cells(730, 3, 0.03); // and false positive rate
/// let mut seen = EMPTY.clone();
/// assert!(seen.insert("once") && !seen.insert("once") && !EMPTY.contains("once"));
/// assert!(seen.shape().stable_rate() <= 0.03);
/// ```
///
/// In a `const` context, an invalid rate, an invalid cell width, or too few cells fail to compile:
///
/// ```compile_fail,E0080
/// use umbel::stable::{ArrayStableBloomFilter, words_for};
/// const EMPTY: ArrayStableBloomFilter<str, { words_for(730, 3) }> =
///     ArrayStableBloomFilter::for_cells(730, 3, 1.5);
/// # let _ = EMPTY;
/// ```
///
/// ```compile_fail,E0080
/// use umbel::stable::{ArrayStableBloomFilter, words_for};
/// const EMPTY: ArrayStableBloomFilter<str, { words_for(30, 8) }> =
///     ArrayStableBloomFilter::for_cells(30, 8, 0.03);
/// # let _ = EMPTY;
/// ```
pub type ArrayStableBloomFilter<T, const WORDS: usize, H = Portable> =
    Filter<T, H, RawStable<Array<WORDS>>>;

/// Constructors for filters in an array.
impl<T: ?Sized, const WORDS: usize> ArrayStableBloomFilter<T, WORDS> {
    /// A filter of `cells` cells, or one more, of `width` bits with a stable rate of at most
    /// `rate`: that of [`Shape::for_cells`]. In a `const` or `static`, invalid arguments fail to
    /// compile.
    ///
    /// # Panics
    ///
    /// If there is no such shape, or `WORDS` is not its number of words: [`words_for`] computes
    /// that number.
    #[must_use]
    pub const fn for_cells(cells: u64, width: u32, rate: f64) -> Self {
        match Shape::for_cells(cells, width, rate) {
            Ok(shape) => Self::of(shape),
            Err(_) => panic!("there is no such filter: see `Shape::for_cells`"),
        }
    }

    /// A filter of this shape. In a `const` or `static`, invalid arguments fail to compile.
    ///
    /// # Panics
    ///
    /// If `WORDS` is not the number of words of the shape: [`words_for`] computes that number.
    #[must_use]
    pub const fn of(shape: Shape) -> Self {
        assert!(shape.words() == WORDS as u64, "the array must have the words of the shape");
        let raw = RawStable { shape, insertions: 0, storage: Own([0; WORDS]) };
        Self { raw, hasher: Portable::seeded(0), keys: PhantomData }
    }
}

#[inline(always)]
fn table<V>(shape: &Shape, words: V) -> CellTable<V> {
    let cells = Cells::new(words, shape.width());
    CellTable { cells, len: shape.cells(), probes: shape.probes() }
}

impl<B: AsRef<[u64]>> RawStable<Own<B>> {
    #[inline(always)]
    fn asker(&self) -> Asker<&[u64]> {
        Asker(table(&self.shape, self.storage.words()))
    }
}

impl<B: AsRef<[u64]> + AsMut<[u64]>> RawStable<Own<B>> {
    #[inline(always)]
    fn inserter(&mut self) -> Inserter<'_, &mut [u64]> {
        let Self { shape, insertions, storage } = self;
        let table = table(shape, storage.words_mut());
        Inserter { table, decrements: shape.decrements(), insertions }
    }
}

describe! {
    impl[S] RawStable<S>: Shape, Digest, "StableBloomFilter", |this| this.shape.bytes();
    cells: this.shape.cells(),
    bits_per_cell: this.shape.width(),
    probes: this.shape.probes(),
    decrements: this.shape.decrements(),
    insertions: this.insertions,
}

impl<S: Allocate> Make for RawStable<S> {
    fn plan(capacity: u64, err_rate: f64) -> Result<Shape, InvalidShape> {
        Shape::for_rate(capacity, err_rate)
    }

    fn make(shape: Shape) -> Result<Self, InvalidShape> {
        let storage = S::zeroed(shape.words())?;
        Ok(Self { shape, insertions: 0, storage })
    }
}

/// A key is found at least until the next insertion.
impl<B: AsRef<[u64]>> Probe for RawStable<Own<B>> {
    #[inline]
    fn probe(&self, digest: Digest) -> bool {
        self.asker().contains(digest)
    }

    #[inline]
    fn probe_each<A>(&self, keys: &[A], digest: impl Fn(&A) -> Digest, found: &mut [bool]) {
        self.asker().contains_batch(keys, digest, found);
    }

    fn rate(&self) -> f64 {
        powi(self.count_nonzero() as f64 / self.shape.cells() as f64, self.shape.probes())
    }
}

/// An insertion ages other keys.
impl<B: AsRef<[u64]> + AsMut<[u64]>> Endless for RawStable<Own<B>> {
    #[inline]
    fn put(&mut self, digest: Digest) -> bool {
        self.inserter().insert(digest)
    }

    #[inline]
    fn put_each<A>(&mut self, keys: &[A], digest: impl Fn(&A) -> Digest, fresh: &mut [bool]) {
        self.inserter().insert_batch(keys, digest, fresh);
    }

    #[inline]
    fn put_all(&mut self, digests: impl Iterator<Item = Digest>) {
        raw::in_batches::<512>(digests, |digests, fresh| {
            self.put_each(digests, |digest| *digest, fresh);
        });
    }
}

/// Resets the filter to its initial state.
impl<B: AsRef<[u64]> + AsMut<[u64]>> Clear for RawStable<Own<B>> {
    fn clear(&mut self) {
        self.storage.words_mut().fill(0);
        self.insertions = 0;
    }
}

for_core_and_filter! { impl[B: AsRef<[u64]>] RawStable<Own<B>> {
    /// The number of insertions since the filter was created or cleared, including those of stored
    /// keys. Wraps around after 2^64.
    #[must_use]
    pub fn insertions(&self) -> u64 {
        self.insertions
    }

    /// The words: bit `i` of the cells is bit `i % 64` of word `i / 64`. With cells of `b` bits,
    /// cell `c` begins at bit `c · b`.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        self.storage.words()
    }

    /// How many cells are not zero. Reads the whole filter.
    #[must_use]
    pub fn count_nonzero(&self) -> u64 {
        self.asker().0.cells.count_nonzero(self.shape.cells())
    }

    /// Whether no key is stored. Reads cells until it finds one that is not zero.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words().iter().all(|word| *word == 0)
    }
} }

/// Equal if their cells and their numbers of insertions are equal. Equal filters stay equal under
/// the same insertions.
impl<B: AsRef<[u64]>> PartialEq for RawStable<Own<B>> {
    fn eq(&self, other: &Self) -> bool {
        (self.shape, self.insertions) == (other.shape, other.insertions)
            && self.words() == other.words()
    }
}

impl<B: AsRef<[u64]>> Eq for RawStable<Own<B>> {}
