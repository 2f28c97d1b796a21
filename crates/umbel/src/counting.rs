//! The counting Bloom filter: a small counter in the place of each bit, so that keys can be removed
//! again.
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
//! Choose it when keys are removed and also inserted several times, when their counts matter, or
//! when filters are added up. Prefer [`bloom`](crate::bloom), in a quarter of the memory, when no
//! key is ever removed.
//!
//! # Anywhere or in a line
//!
//! The cells of a key are either at the positions of a classic filter, anywhere
//! ([`CountingBloomFilter`]), or all in one cache line, in different words of it
//! ([`BlockedCountingBloomFilter`]). With a single cache line to wait for, batches take half to two
//! thirds of the time. Single calls gain little while the filter fits into a cache. Crowded lines
//! cost space: 14 % at 1 %, 35 % at 0.1 %, and below one in a thousand soon more than they are
//! worth.
//!
//! # Where it breaks
//!
//! Removing a false positive decrements cells of other keys, which may then be lost: remove only
//! keys that were inserted. If no key is removed more often than it was inserted, no key is ever
//! lost.
//!
//! A cell that has reached its largest number is *saturated*. Its true count is unknown, so it is
//! never decremented again. No key is lost, but keys in such cells cannot be fully removed, and the
//! false positive rate does not fall all the way when keys are removed, until
//! [`clear`](crate::Filter::clear). At capacity this happens to one 4-bit cell in 6 · 10^14, and to
//! one in 190 at ten times the capacity. A key that is inserted 15 times saturates all its cells.
//! [`saturated`](RawCounting::saturated) returns the number of saturated cells, and
//! [`Width::Eight`] counts to 255. Beyond its capacity a filter accepts more keys at a rising rate,
//! like a classic filter.
//!
//! # Reference
//!
//! Fan, Cao, Almeida and Broder 2000, "Summary cache", section V-C: the counters, and why four bits
//! are enough. A cell that a key has twice counts twice, on insertion and on removal. Lines are
//! those of Putze, Sanders and Singler 2007, "Cache-, hash- and space-efficient Bloom filters",
//! section 3. Their rate is computed exactly here.
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

pub use layout::{Anywhere, CellLayout};
pub use line::InLine;
pub use line_shape::LineShape;
pub use shape::{Shape, Width, words_for};

use crate::edge::{Filter, for_core_and_filter};
use crate::error::{Incompatible, InvalidShape};
use crate::filter::{Compatible, Remove, Union};
use crate::hash::{Digest, Digester, Portable};
use crate::layout::Probing;
use crate::parts::cells::Cells;
use crate::raw::{Clear, Endless, Make, Probe, RemoveEach, describe};
use crate::sizing::Shape as _;
use crate::storage::{Allocate, Array, Own, Storage, StorageMut};

#[cfg(feature = "alloc")]
use crate::storage::Heap;

/// The core of a counting Bloom filter: words in `S`, in which `L` assigns cells to each digest.
#[derive(Clone)]
pub struct RawCounting<S, L: CellLayout = Anywhere> {
    shape: L::Shape,
    layout: L,
    storage: S,
}

/// A counting Bloom filter of keys `T`, hashed by `H`, with any storage `S` and any layout `L`.
///
/// The names for everyday use are [`CountingBloomFilter`] and [`BlockedCountingBloomFilter`], in
/// owned memory, and [`ArrayCountingBloomFilter`], in an array.
pub type Counting<T, H, S, L = Anywhere> = Filter<T, H, RawCounting<S, L>>;

/// A counting Bloom filter in owned memory. The [module](crate::counting) describes it and says
/// when to choose it.
///
/// ```
/// use umbel::CountingBloomFilter;
///
/// let mut open = CountingBloomFilter::new(1_000, 0.01); // capacity, false positive rate
/// assert!(open.insert("a")); // true: certainly not there yet
/// assert!(open.remove("a") && !open.contains("a"));
/// ```
#[cfg(feature = "alloc")]
pub type CountingBloomFilter<T, H = Portable> = Filter<T, H, RawCounting<Heap>>;

/// A blocked counting Bloom filter in owned memory: all cells of a key are in one cache line. The
/// [module](crate::counting) says when to choose it.
///
/// ```
/// use umbel::BlockedCountingBloomFilter;
///
/// let mut open = BlockedCountingBloomFilter::new(1_000, 0.01); // capacity, false positive rate
/// assert!(open.insert("a")); // true: certainly not there yet
/// assert!(open.remove("a") && !open.contains("a"));
/// ```
#[cfg(feature = "alloc")]
pub type BlockedCountingBloomFilter<T, H = Portable> = Filter<T, H, RawCounting<Heap, InLine>>;

/// A counting Bloom filter in an array, without an allocator. The array has exactly the number of
/// words of its shape.
///
/// ```
/// use umbel::counting::{ArrayCountingBloomFilter, words_for};
///
/// const WORDS: usize = words_for(100, 0.01);
/// let mut filter = ArrayCountingBloomFilter::<u64, WORDS>::new(100, 0.01);
/// assert!(filter.insert(&7) && filter.remove(&7) && !filter.contains(&7));
/// ```
pub type ArrayCountingBloomFilter<T, const WORDS: usize, H = Portable> =
    Filter<T, H, RawCounting<Array<WORDS>>>;

describe! {
    impl[S, L: CellLayout] RawCounting<S, L>: L::Shape, Digest, L::Shape::NAME, |this| this.shape.words() * 8;
    capacity: this.shape.items(),
    cells: this.shape.places(),
    bits_per_cell: this.shape.cell_bits(),
    probes: this.shape.probes(),
}

impl<S: Allocate, L: CellLayout> Make for RawCounting<S, L> {
    fn plan(capacity: u64, err_rate: f64) -> Result<L::Shape, InvalidShape> {
        L::Shape::for_rate(capacity, err_rate)
    }

    fn make(shape: L::Shape) -> Result<Self, InvalidShape> {
        L::admit(&shape)?;
        let storage = S::zeroed(shape.words())?;
        Ok(Self { shape, layout: L::default(), storage })
    }
}

impl<B: AsRef<[u64]>, L: CellLayout> Probe for RawCounting<Own<B>, L> {
    #[inline]
    fn probe(&self, digest: Digest) -> bool {
        self.layout.contains(&self.shape, self.storage.words(), digest)
    }

    #[inline]
    fn probe_each<A>(&self, keys: &[A], digest: impl Fn(&A) -> Digest, found: &mut [bool]) {
        self.layout.contains_batch(&self.shape, self.storage.words(), keys, digest, found);
    }

    fn rate(&self) -> f64 {
        self.layout.rate(&self.shape, self.storage.words())
    }
}

impl<B: AsRef<[u64]> + AsMut<[u64]>, L: CellLayout> Endless for RawCounting<Own<B>, L> {
    #[inline]
    fn put(&mut self, digest: Digest) -> bool {
        self.layout.insert(&self.shape, self.storage.words_mut(), digest)
    }

    #[inline]
    fn put_each<A>(&mut self, keys: &[A], digest: impl Fn(&A) -> Digest, fresh: &mut [bool]) {
        self.layout.insert_batch(&self.shape, self.storage.words_mut(), keys, digest, fresh);
    }

    #[inline]
    fn put_all(&mut self, digests: impl Iterator<Item = Digest>) {
        self.layout.extend(&self.shape, self.storage.words_mut(), digests);
    }
}

impl<B: AsRef<[u64]> + AsMut<[u64]>, L: CellLayout> Remove for RawCounting<Own<B>, L> {
    #[inline]
    fn remove_digest(&mut self, digest: Digest) -> bool {
        self.layout.remove(&self.shape, self.storage.words_mut(), digest)
    }
}

impl<B: AsRef<[u64]> + AsMut<[u64]>, L: CellLayout> RemoveEach for RawCounting<Own<B>, L> {
    #[inline]
    fn remove_each<A>(&mut self, keys: &[A], digest: impl Fn(&A) -> Digest, removed: &mut [bool]) {
        self.layout.remove_batch(&self.shape, self.storage.words_mut(), keys, digest, removed);
    }
}

impl<B: AsRef<[u64]> + AsMut<[u64]>, L: CellLayout> Clear for RawCounting<Own<B>, L> {
    fn clear(&mut self) {
        self.storage.words_mut().fill(0);
    }
}

for_core_and_filter! { impl[B: AsRef<[u64]>, L: CellLayout] RawCounting<Own<B>, L> {
    /// As [`estimated_count`](crate::Filter::estimated_count), for a digest that was computed
    /// elsewhere.
    #[must_use]
    pub fn estimated_count_digest(&self, digest: Digest) -> u64 {
        self.layout.count(&self.shape, self.storage.words(), digest)
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
        self.cells().count_nonzero(self.shape.places())
    }

    /// How many cells are saturated: they have reached their largest number and are never
    /// decremented. Reads the whole filter.
    #[must_use]
    pub fn saturated(&self) -> u64 {
        self.cells().count_full(self.shape.places())
    }

    /// Whether the filter contains no key. Reads cells until it finds one that is not zero.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words().iter().all(|word| *word == 0)
    }

    /// An estimate of how many different keys are in the filter, from the cells that are not zero;
    /// `u64::MAX` if no cell is zero. Reads the whole filter.
    #[must_use]
    pub fn estimated_len(&self) -> u64 {
        self.shape.estimate_items(self.count_nonzero())
    }
} }

impl<B: AsRef<[u64]>, L: CellLayout> RawCounting<Own<B>, L> {
    fn cells(&self) -> Cells<&[u64]> {
        Cells::new(self.storage.words(), self.shape.cell_bits())
    }
}

/// Counts.
impl<T: ?Sized, H, B: AsRef<[u64]>, L: CellLayout> Filter<T, H, RawCounting<Own<B>, L>> {
    /// How many times the key is in the filter: its insertions minus its removals. Never too low,
    /// except that the largest number of a cell, [`Width::max`], means that many or more. It is too
    /// high for keys that share all their cells with others, which are as frequent as false
    /// positives.
    #[must_use]
    #[inline]
    pub fn estimated_count(&self, key: &T) -> u64
    where
        H: Digester<T>,
    {
        self.estimated_count_digest(self.hasher.digest(key))
    }

    /// Whether the key may be in the filter at least `n` times. `false` proves that it is not. For
    /// `n` above [`Width::max`], which cells cannot represent, the answer is that for
    /// [`Width::max`].
    #[must_use]
    #[inline]
    pub fn count_at_least(&self, key: &T, n: u64) -> bool
    where
        H: Digester<T>,
    {
        self.estimated_count(key) >= n.min(self.raw.shape.cell_max())
    }
}

impl<S, L: CellLayout> Compatible for RawCounting<S, L> {
    fn compatible(&self, other: &Self) -> Result<(), Incompatible> {
        self.shape.compatible(&other.shape)
    }
}

/// Adds the counts: a key that was in both counts as often as in both together.
impl<B: AsRef<[u64]> + AsMut<[u64]>, L: CellLayout> Union for RawCounting<Own<B>, L> {
    fn fits(&self, other: &Self) -> Result<(), Incompatible> {
        self.compatible(other)
    }

    fn union_with(&mut self, other: &Self) -> Result<(), Incompatible> {
        self.fits(other)?;
        let (cells, bits) = (self.shape.places(), self.shape.cell_bits());
        Cells::new(self.storage.words_mut(), bits).add_all(other.cells(), cells);
        Ok(())
    }
}

/// Merging.
impl<T, H, B, L> Filter<T, H, RawCounting<Own<B>, L>>
where
    T: ?Sized,
    B: AsRef<[u64]> + AsMut<[u64]>,
    L: CellLayout,
{
    /// Adds the cells of the other filter to the cells of this one. The result is the same as if
    /// all insertions into either filter had been made here, including saturation.
    ///
    /// # Errors
    ///
    /// [`Incompatible`] if they differ in cells, their width, probes or hasher. Nothing is changed
    /// then.
    pub fn merge_with(&mut self, other: &Self) -> Result<(), Incompatible>
    where
        H: Digester<T>,
    {
        Union::union_with(self, other)
    }
}

/// Equal if all cells are equal.
impl<B: AsRef<[u64]>, L: CellLayout> PartialEq for RawCounting<Own<B>, L> {
    fn eq(&self, other: &Self) -> bool {
        self.shape.compatible(&other.shape).is_ok() && self.words() == other.words()
    }
}

impl<B: AsRef<[u64]>, L: CellLayout> Eq for RawCounting<Own<B>, L> {}
