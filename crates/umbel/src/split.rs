//! The split-block Bloom filter of Parquet: a bit of a key in each eighth of one block of 32 bytes.
//!
//! ```text
//!                                "umbel"
//!                                   |
//!     ... | block 6 |  0100 0001 0010 1000 0100 0010 0001 1000  | block 8 | ...
//!                       ^      ^   ^  ^     ^     ^     ^ ^     one bit in each eighth
//! ```
//!
//! | bits per key | touches per look-up | remove | union | grow | can building fail |
//! |---|---|---|---|---|---|
//! | 10.5 at 1 %, 16.9 at 0.1 %, or more: a power of two | 1 | no | yes | it folds | no |
//!
//! Choose it to read what Parquet files have and to write what their readers take:
//! [`to_parquet`](crate::Filter::to_parquet) and [`from_parquet`](crate::Filter::from_parquet) are exact to the
//! byte. Prefer [`blocked`](crate::blocked) when nobody else reads the filter: it is smaller at
//! every rate.
//!
//! # How large
//!
//! The specification allows any number of blocks, but many readers take only powers of two, so
//! [`Shape::for_rate`] gives one. [`Shape::for_rate_tight`] takes the smallest number there is.
//! Whoever does not know how many keys will come plans for many and calls
//! [`fold_to_rate`](crate::Filter::fold_to_rate) at the end.
//!
//! # Where it breaks
//!
//! As the classic filter: past its capacity it goes on at a rising rate, and keys cannot be
//! removed. Eight probes are too few below 0.1 %: 41 bits a key at one in 100,000. The hash has no
//! seed, so anybody can choose keys that all fall into one block; a filter that is no Parquet
//! filter may take [`Keyed`](crate::Keyed) for its `H`. There are at most 2^26 - 1 blocks, just
//! under 2 GiB. A column's type matters: 1 as `i32` and 1 as `i64` are two keys ([`PlainEncoded`]).
//!
//! # Reference
//!
//! `BloomFilter.md` of apache/parquet-format, section "Technical Approach". For the rate, which is
//! computed exactly here: Putze, Sanders and Singler 2007, "Cache-, hash- and space-efficient Bloom
//! filters", section 4.
//!
//! ```
//! use umbel::SplitBlockBloomFilter;
//!
//! let mut column = SplitBlockBloomFilter::<str>::new(10_000, 0.01); // capacity, error rate
//! assert!(column.insert("https://example.org/")); // true: certainly new
//! let bytes = column.to_parquet();
//! assert_eq!(bytes.len(), 17 + 16_384); // a header, and a power of two
//!
//! let column = SplitBlockBloomFilter::<str>::from_parquet(&bytes)?;
//! assert!(column.contains("https://example.org/"));
//! assert!(!column.contains("https://example.org/other")); // false is proof
//! # Ok::<(), umbel::split::ParquetError>(())
//! ```

mod blocks;
#[cfg(feature = "alloc")]
mod fold;
mod parquet;
mod plain;
mod shape;

pub use blocks::Blocks;
pub use parquet::ParquetError;
pub use plain::{Plain, PlainEncoded};
pub use shape::Shape;

use crate::bloom::RawBloom;
use crate::edge::Filter;
use crate::error::InvalidShape;
use crate::storage::AnySize;

#[cfg(feature = "alloc")]
use crate::storage::{Heap, SharedHeap};

/// A split-block Bloom filter in memory of its own. The [module](crate::split) tells what it is and
/// when to choose it.
///
/// ```
/// use umbel::SplitBlockBloomFilter;
///
/// let mut column = SplitBlockBloomFilter::<i32>::new(1_000, 0.01); // capacity, false positive rate
/// assert!(column.insert(&7)); // true: certainly new
/// assert!(column.contains(&7) && !column.contains(&8));
/// ```
#[cfg(feature = "alloc")]
pub type SplitBlockBloomFilter<T, H = Plain> = Filter<T, H, RawBloom<Heap, Blocks>>;

/// A split-block Bloom filter in memory of its own that many threads may fill through `&self`.
///
/// What [`atomic`](crate::atomic) says of the classic filter holds for this one.
///
/// ```
/// use umbel::AtomicSplitBlockBloomFilter;
///
/// let seen = AtomicSplitBlockBloomFilter::<i64>::new(2_000, 0.01);
/// std::thread::scope(|scope| {
///     for half in [0..1_000, 1_000..2_000] {
///         scope.spawn(|| half.for_each(|key| { seen.insert(&key); }));
///     }
/// });
/// assert!((0..2_000).all(|key| seen.contains(&key)));
/// ```
#[cfg(feature = "alloc")]
pub type AtomicSplitBlockBloomFilter<T, H = Plain> = Filter<T, H, RawBloom<SharedHeap, Blocks>>;

/// Split-block, with the hash of Parquet.
impl<T: ?Sized, S: AnySize> Filter<T, Plain, RawBloom<S, Blocks>> {
    /// A filter for `capacity` keys at a false positive rate of at most `err_rate`, with a power of two of
    /// blocks.
    ///
    /// # Panics
    ///
    /// Where [`try_new`](Self::try_new) gives an error: if `err_rate` is not above 0 and below 1,
    /// or there is no memory for so large a filter.
    #[must_use]
    pub fn new(capacity: u64, err_rate: f64) -> Self {
        Self::with_hasher(capacity, err_rate, Plain)
    }

    /// A filter for `capacity` keys at a false positive rate of at most `err_rate`, with a power of two of
    /// blocks.
    ///
    /// # Errors
    ///
    /// [`InvalidShape`] if `err_rate` is not above 0 and below 1 or too small, or if so large a
    /// filter cannot be represented or allocated.
    pub fn try_new(capacity: u64, err_rate: f64) -> Result<Self, InvalidShape> {
        Self::with(Shape::for_rate(capacity, err_rate)?, Plain)
    }
}
