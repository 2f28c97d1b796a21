//! The binary fuse filter: the fingerprint of a key is the exclusive or of three entries, or four,
//! in adjacent segments.
//!
//! ```text
//!     segments   [      |      |      |      |      |      |      |      ]
//!     key 1         a      b      c                 xor of a, b, c = fingerprint of key 1
//!     key 2                              a      b      c
//!                 ^                                          ^
//!                 `- few keys are at the ends: there peeling begins, and runs to the middle
//! ```
//!
//! | bits per key | touches per look-up | remove | union | grow | can building fail |
//! |---|---|---|---|---|---|
//! | 1.13 log2(1/rate), rounded up: 7.9 at 1 %, 9.0 at 1/256; with four entries 1.08: 7.5 and 8.6 | 3 or 4 | no | no | no | after 100 attempts, which does not happen |
//!
//! Choose it for large static sets when speed counts: [`BinaryFuseFilter`] has three entries per
//! key, [`BinaryFuse4Filter`] four, which is 5 % smaller and a little slower. Prefer `RibbonFilter`
//! for the least space, and always below some thousand keys. Prefer [`blocked`](crate::blocked)
//! when keys are inserted one by one.
//!
//! # Where it breaks
//!
//! All keys must be known before building, and building needs 20 bytes per key temporarily: see
//! [`frozen`]. Digests must be well mixed. If thousands of digests are nearly equal, building fails
//! with [`BuildError::Attempts`](crate::frozen::BuildError::Attempts).
//!
//! Segments save space only in large sets. If three long segments, the thirds of a
//! [`xor`](crate::xor) filter, take fewer entries, the filter uses those: up to some 17,000 keys,
//! or 5,000 with four entries. A key then takes 1.23 entries, 1.3 in a set of 100 keys, 1.5 in a
//! set of ten.
//!
//! # Reference
//!
//! Graf and Lemire 2022, "Binary fuse filters: fast and smaller than xor filters", section 3
//! (construction) and section 4 (the length of segments). Segments of three are shorter here, by
//! half a power of two on average: with the published length, building almost always fails for sets
//! of 11,300 to 16,600 keys, and for some others. Sets of three million keys or more are cut into
//! shards, which need 1.12 and 1.07 entries per key.
//!
//! ```
//! use umbel::BinaryFuseFilter;
//!
//! let known = BinaryFuseFilter::<u64>::build(0..100_000, 0.01)?; // keys, error rate
//! assert!((0..100_000).all(|key| known.contains(&key)));
//! assert!(known.shape().bits_per_key() < 8.4);
//! let wrong = (100_000..200_000).filter(|key| known.contains(key)).count();
//! assert!(wrong < 1_000, "{wrong} of 100,000");
//! # Ok::<(), umbel::frozen::BuildError>(())
//! ```

use crate::edge::Filter;
use crate::frozen::peel::{EntryPlaces, stirred};
use crate::frozen::{self, EntryJob, Map, Peeled, RawFrozen};
use crate::hash::Portable;
use crate::parts::math::{ceil, ln};
use crate::storage::Heap;
use crate::xor::Thirds;

/// A filter of keys `T` for a static set, hashed by `H`, with its words in `S`: three entries per
/// key.
///
/// ```
/// use umbel::BinaryFuseFilter;
///
/// let known = BinaryFuseFilter::<str>::build(["a", "b"], 0.01)?; // keys, false positive rate
/// assert!(known.contains("a") && known.contains("b")); // any other key: false, but for one in a hundred
/// # Ok::<(), umbel::frozen::BuildError>(())
/// ```
pub type BinaryFuseFilter<T, H = Portable, S = Heap> = Filter<T, H, RawFrozen<Peeled<Fused<3>>, S>>;

/// As [`BinaryFuseFilter`], with four entries per key: smaller, and a little slower.
///
/// ```
/// use umbel::BinaryFuse4Filter;
///
/// let known = BinaryFuse4Filter::<str>::build(["a", "b"], 0.01)?; // keys, false positive rate
/// assert!(known.contains("a") && known.contains("b")); // any other key: false, but for one in a hundred
/// # Ok::<(), umbel::frozen::BuildError>(())
/// ```
pub type BinaryFuse4Filter<T, H = Portable, S = Heap> =
    Filter<T, H, RawFrozen<Peeled<Fused<4>>, S>>;

/// The shape of a [`BinaryFuseFilter`].
pub type Shape = frozen::Shape<Fused<3>>;

/// The shape of a [`BinaryFuse4Filter`].
pub type Shape4 = frozen::Shape<Fused<4>>;

/// The longest segment, as a power of two: a hash has no further bits.
const MAX_SEGMENT_BITS: u32 = 14;

/// Segments of equal length, a power of two. A key has one entry in each of `ARITY` adjacent
/// segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments<const ARITY: usize> {
    /// The length of a segment.
    len: u64,
    /// The number of entries in all segments that can be the first one of a key.
    firsts: u64,
}

impl<const ARITY: usize> Segments<ARITY> {
    pub(crate) const fn for_keys(keys: u64) -> Self {
        let keys = if keys < 2 { 2 } else { keys } as f64;
        let log = ln(keys);
        // Section 4 of the paper, with 1.75 instead of 2.25 and 1.1215 instead of 1.125. With four
        // entries, 0.76 instead of 0.77 and 1.07 instead of 1.075. See the scan in the tests.
        let (bits, share, least) = if ARITY == 3 {
            (log / ln(3.33) + 1.75, 0.875 + 0.25 * ln(1e6) / log, 1.1215)
        } else {
            (log / ln(2.91) - 0.5, 0.76 + 0.305 * ln(6e5) / log, 1.07)
        };
        let bits = bits as u32;
        let len = 1 << if bits > MAX_SEGMENT_BITS { MAX_SEGMENT_BITS } else { bits };
        let entries = ceil(keys * if share > least { share } else { least });
        let (segments, more) = (entries.div_ceil(len), ARITY as u64 - 1);
        Self { len, firsts: if segments > more { segments - more } else { 1 } * len }
    }

    /// The number of entries.
    #[must_use]
    pub const fn entries(&self) -> u64 {
        self.firsts + (ARITY as u64 - 1) * self.len
    }
}

impl<const ARITY: usize> EntryPlaces<ARITY> for Segments<ARITY> {
    #[inline(always)]
    fn of(&self, start: u64, hash: u64) -> [usize; ARITY] {
        // The start is after whole segments.
        let first = start + ((u128::from(hash) * u128::from(self.firsts)) >> 64) as u64;
        core::array::from_fn(|number| {
            let bits = match number {
                0 => return first as usize,
                1 => hash >> 20,
                2 => hash >> 5,
                _ => stirred(hash) >> 44,
            };
            ((first + number as u64 * self.len) ^ (bits & (self.len - 1))) as usize
        })
    }
}

/// Segments, or thirds if those need fewer entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fused<const ARITY: usize> {
    /// For large sets.
    Segments(Segments<ARITY>),
    /// For small ones.
    Thirds(Thirds),
}

impl<const ARITY: usize> Map for Fused<ARITY> {
    const NAME: &'static str = if ARITY == 3 { "BinaryFuseFilter" } else { "BinaryFuse4Filter" };
    const FAMILY: u16 = if ARITY == 3 { 11 } else { 12 };
    const KERNELS: u16 = if ARITY == 3 { 12 } else { 13 };
    const SHARD: u64 = 3_000_000;

    fn for_keys(keys: u64) -> Self {
        let (segments, thirds) = (Segments::for_keys(keys), Thirds::for_keys(keys));
        if segments.entries() < thirds.entries() {
            Self::Segments(segments)
        } else {
            Self::Thirds(thirds)
        }
    }

    fn entries(&self) -> u64 {
        match self {
            Self::Segments(segments) => segments.entries(),
            Self::Thirds(thirds) => thirds.entries(),
        }
    }

    fn fields(&self) -> [u64; 2] {
        match self {
            Self::Segments(segments) => [segments.len, segments.firsts],
            Self::Thirds(thirds) => thirds.fields(),
        }
    }

    fn restore(segment: u64, length: u64) -> Option<Self> {
        if segment == 0 {
            return Thirds::restore(segment, length).map(Self::Thirds);
        }
        let power = segment.is_power_of_two() && segment <= 1 << MAX_SEGMENT_BITS;
        let whole = (1..1 << 32).contains(&length) && length.is_multiple_of(segment);
        let segments = Segments { len: segment, firsts: length };
        (power && whole).then_some(Self::Segments(segments))
    }

    #[inline(always)]
    fn with<J: EntryJob>(&self, job: J) -> J::Output {
        match self {
            Self::Segments(segments) => job.run(*segments),
            Self::Thirds(thirds) => in_thirds(*thirds, job),
        }
    }
}

/// Out of line, so that the code for large filters alone is small enough to be inlined.
#[inline(never)]
fn in_thirds<J: EntryJob>(thirds: Thirds, job: J) -> J::Output {
    job.run(thirds)
}
