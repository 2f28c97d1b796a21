//! The blocked Bloom filter: all bits of a key are in one cache line, or in two.
//!
//! ```text
//!                                  "umbel"
//!                                     |
//!     ... | line 41 | line 42 |  0 1 0 0 1 0 ... 1 0 0 1  | line 44 | ...
//!                                  ^     ^       ^     ^      one line: 3 bits in each half
//! ```
//!
//! | bits per key | touches per look-up | remove | union | grow | can building fail |
//! |---|---|---|---|---|---|
//! | 9.9 at 1 %, 14.6 at 0.1 %, 24.3 at 2^-16 | 1 or 2 lines, side by side | no | yes | no | no |
//!
//! Choose it where the classic filter would do and speed counts: a look-up waits for memory once
//! instead of three to ten times. Prefer [`bloom`](crate::bloom) for rates below one in a million,
//! where eight probes per line are too few to be economical, and when its plain bits are shared
//! with other programs. Prefer [`split`](crate::split) when the bits are shared with Parquet
//! readers.
//!
//! # One line or two
//!
//! Keys do not fall evenly into lines, and crowded lines produce more false positives than sparse
//! lines save. At 1 % that costs 3 % of space; at 0.1 %, 9 %; at 2^-16, 41 %. If a key has half of
//! its bits in each of two lines, a false positive must hit two crowded lines. The price is a
//! second cache line, which is fetched at the same time as the first. [`Shape`] uses two lines
//! where one would cost more than 3 % of space, which is the case from about 1 in 130.
//!
//! # Where it breaks
//!
//! The limits are those of the classic filter. Beyond its capacity, the false positive rate rises.
//! Keys cannot be removed. An attacker who knows the seed can choose keys that all fall into one
//! line: see [`Keyed`](crate::Keyed).
//!
//! # Reference
//!
//! Putze, Sanders and Singler 2007, "Cache-, hash- and space-efficient Bloom filters", section 3
//! (blocks), and section 4 for the rate, which is computed exactly here.
//!
//! ```
//! use umbel::BlockedBloomFilter;
//!
//! let mut seen = BlockedBloomFilter::<str>::new(1_000_000, 0.001); // capacity, error rate
//! assert!(seen.insert("https://example.org/")); // true: certainly new
//! assert!(seen.contains("https://example.org/"));
//! assert!(!seen.contains("https://example.org/other")); // false is proof
//! assert_eq!(seen.shape().lines_per_key(), 2);
//! ```

mod lines;
mod rate;
mod shape;

pub use lines::Lines;
pub use shape::{Shape, words_for};

use crate::bloom::RawBloom;
use crate::edge::Filter;
use crate::error::InvalidShape;
use crate::hash::Portable;
use crate::storage::{Aligned, LineArray, Own};
use core::marker::PhantomData;

#[cfg(feature = "alloc")]
use crate::storage::{Heap, SharedHeap};

#[cfg(not(loom))]
use crate::{
    parts::bits::AtomicU64,
    storage::{Shared, SharedLineArray},
};

/// A blocked Bloom filter in owned memory. The [module](crate::blocked) describes it and says when
/// to choose it.
///
/// ```
/// use umbel::BlockedBloomFilter;
///
/// let mut seen = BlockedBloomFilter::new(1_000, 0.01); // capacity, false positive rate
/// assert!(seen.insert("a")); // true: certainly new
/// assert!(seen.contains("a") && !seen.contains("b"));
/// ```
#[cfg(feature = "alloc")]
pub type BlockedBloomFilter<T, H = Portable> = Filter<T, H, RawBloom<Heap, Lines>>;

/// A blocked Bloom filter in owned memory that many threads may fill through `&self`.
///
/// The guarantees and limits of [`atomic`](crate::atomic) apply to this filter too.
///
/// ```
/// use umbel::AtomicBlockedBloomFilter;
///
/// let seen = AtomicBlockedBloomFilter::<u64>::new(2_000, 0.01);
/// std::thread::scope(|scope| {
///     for half in [0..1_000, 1_000..2_000] {
///         scope.spawn(|| half.for_each(|key| { seen.insert(&key); }));
///     }
/// });
/// assert!((0..2_000).all(|key| seen.contains(&key)));
/// ```
#[cfg(feature = "alloc")]
pub type AtomicBlockedBloomFilter<T, H = Portable> = Filter<T, H, RawBloom<SharedHeap, Lines>>;

/// A blocked Bloom filter in an array: on the stack, in a `static`, without an allocator.
///
/// ```
/// use umbel::blocked::{self, ArrayBlockedBloomFilter};
///
/// const WORDS: usize = blocked::words_for(1_000, 0.01);
/// let mut seen = ArrayBlockedBloomFilter::<u64, WORDS>::new(1_000, 0.01);
/// assert!(seen.insert(&7));
/// assert!(seen.contains(&7) && !seen.contains(&8));
/// ```
pub type ArrayBlockedBloomFilter<T, const WORDS: usize, H = Portable> =
    Filter<T, H, RawBloom<LineArray<WORDS>, Lines>>;

/// A blocked Bloom filter in an array that many threads may fill: a `static` without a lock.
///
/// ```
/// use umbel::blocked::{self, AtomicArrayBlockedBloomFilter};
///
/// static SEEN: AtomicArrayBlockedBloomFilter<str, { blocked::words_for(100, 0.01) }> =
///     AtomicArrayBlockedBloomFilter::new(100, 0.01);
///
/// assert!(SEEN.insert("from any thread"));
/// assert!(SEEN.contains("from any thread"));
/// ```
#[cfg(not(loom))]
pub type AtomicArrayBlockedBloomFilter<T, const WORDS: usize, H = Portable> =
    Filter<T, H, RawBloom<SharedLineArray<WORDS>, Lines>>;

/// Constructors for blocked filters in an array.
impl<T: ?Sized, const WORDS: usize> ArrayBlockedBloomFilter<T, WORDS> {
    /// A filter for `capacity` keys at a false positive rate of at most `err_rate`. In a `const` or
    /// `static`, invalid arguments fail to compile.
    ///
    /// # Panics
    ///
    /// If `err_rate` is not above 0 and below 1, or `WORDS` is too small or not a multiple of a
    /// line: [`words_for`] computes the number of words.
    #[must_use]
    pub const fn new(capacity: u64, err_rate: f64) -> Self {
        let storage = Own(Aligned([0; WORDS]));
        let shape = Shape::for_array::<WORDS>(capacity, err_rate);
        let raw = RawBloom { shape, layout: Lines::open(&shape), storage };
        Self { raw, hasher: Portable::seeded(0), keys: PhantomData }
    }
}

/// Constructors for blocked filters in an array, with another hasher.
impl<T: ?Sized, const WORDS: usize, H> ArrayBlockedBloomFilter<T, WORDS, H> {
    /// A filter for `capacity` keys at a false positive rate of at most `err_rate`, with this hasher.
    ///
    /// # Errors
    ///
    /// [`InvalidShape`] if `err_rate` is not above 0 and below 1 or too small, or `WORDS` is too
    /// small or not a multiple of a line.
    pub fn try_with_hasher(capacity: u64, err_rate: f64, hasher: H) -> Result<Self, InvalidShape> {
        let shape = Shape::for_words::<WORDS>(capacity, err_rate)?;
        RawBloom::of_layout(shape, Lines::default()).map(|raw| Self::from_raw(raw, hasher))
    }
}

/// Constructors for blocked filters in an array that many threads may fill.
#[cfg(not(loom))]
impl<T: ?Sized, const WORDS: usize> AtomicArrayBlockedBloomFilter<T, WORDS> {
    /// A filter for `capacity` keys at a false positive rate of at most `err_rate`. In a `const` or
    /// `static`, invalid arguments fail to compile.
    ///
    /// # Panics
    ///
    /// If `err_rate` is not above 0 and below 1, or `WORDS` is too small or not a multiple of a
    /// line: [`words_for`] computes the number of words.
    #[must_use]
    pub const fn new(capacity: u64, err_rate: f64) -> Self {
        let storage = Shared(Aligned([const { AtomicU64::new(0) }; WORDS]));
        let shape = Shape::for_array::<WORDS>(capacity, err_rate);
        let raw = RawBloom { shape, layout: Lines::open(&shape), storage };
        Self { raw, hasher: Portable::seeded(0), keys: PhantomData }
    }
}
