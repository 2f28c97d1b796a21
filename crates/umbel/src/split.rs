//! The split-block Bloom filter of Parquet: a key has one bit in each eighth of one block of 32
//! bytes.
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
//! Choose it to read the filters in Parquet files and to write filters for Parquet readers:
//! [`to_parquet`](crate::Filter::to_parquet) and [`from_parquet`](crate::Filter::from_parquet) are
//! exact to the byte. Prefer [`blocked`](crate::blocked) when no other program reads the filter: it
//! is smaller at every false positive rate.
//!
//! # How large
//!
//! The specification allows any number of blocks, but many readers accept only powers of two, so
//! [`Shape::for_rate`] uses one. [`Shape::for_rate_tight`] uses the smallest number of blocks. If
//! the number of keys is unknown, plan for many and call
//! [`fold_to_rate`](crate::Filter::fold_to_rate) at the end.
//!
//! # Where it breaks
//!
//! Like the classic filter, it accepts more keys beyond its capacity at a rising false positive
//! rate, and keys cannot be removed. Eight probes are too few below 0.1 %: 41 bits per key at one
//! in 100,000. The hash has no seed, so an attacker can choose keys that all fall into one block. A
//! filter that is not for Parquet may use [`Keyed`](crate::Keyed) for its `H`. There are at most
//! 2^26 - 1 blocks, just under 2 GiB. A column's type matters: 1 as `i32` and 1 as `i64` are two
//! keys ([`PlainEncoded`]).
//!
//! # Reference
//!
//! `BloomFilter.md` of apache/parquet-format, section "Technical Approach". For the false positive
//! rate, which is computed exactly here: Putze, Sanders and Singler 2007, "Cache-, hash- and
//! space-efficient Bloom filters", section 4.
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

/// A split-block Bloom filter in owned memory. The [module](crate::split) describes it and says
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

/// A split-block Bloom filter in owned memory that many threads may fill through `&self`.
///
/// The guarantees and limits of [`atomic`](crate::atomic) apply to this filter too.
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

/// Constructors with the hash of Parquet.
impl<T: ?Sized, S: AnySize> Filter<T, Plain, RawBloom<S, Blocks>> {
    /// A filter for `capacity` keys at a false positive rate of at most `err_rate`. The number of
    /// blocks is a power of two.
    ///
    /// # Panics
    ///
    /// Where [`try_new`](Self::try_new) returns an error: if `err_rate` is not above 0 and below 1,
    /// or the filter cannot be allocated.
    #[must_use]
    pub fn new(capacity: u64, err_rate: f64) -> Self {
        Self::with_hasher(capacity, err_rate, Plain)
    }

    /// A filter for `capacity` keys at a false positive rate of at most `err_rate`. The number of
    /// blocks is a power of two.
    ///
    /// # Errors
    ///
    /// [`InvalidShape`] if `err_rate` is not above 0 and below 1 or too small, or if the filter
    /// cannot be represented or allocated.
    pub fn try_new(capacity: u64, err_rate: f64) -> Result<Self, InvalidShape> {
        Self::with(Shape::for_rate(capacity, err_rate)?, Plain)
    }
}
