//! The xor filter: the fingerprint of a key is the exclusive or of three entries, one in each
//! third.
//!
//! ```text
//!     key --> [ . . a . . . | . . . . b . | . c . . . . ]
//!                   |               |         |
//!                   `------ xor ----+---------'   = fingerprint of the key, or it is not in the set
//! ```
//!
//! | bits per key | touches per look-up | remove | union | grow | can building fail |
//! |---|---|---|---|---|---|
//! | 1.23 log2(1/rate), rounded up: 8.6 at 1 % | 3 | no | no | no | after 100 attempts, which does not happen |
//!
//! Choose it to share filters with code that follows the published algorithm: it is the simplest of
//! its kind. Prefer [`fuse`](crate::fuse) for the same in less space and time, `RibbonFilter` for
//! the least space, and [`blocked`](crate::blocked) when keys are inserted one by one.
//!
//! # Where it breaks
//!
//! All keys must be known before building, and building needs 21 bytes per key temporarily: see
//! [`frozen`]. Digests must be well mixed. If thousands of digests are nearly equal, building fails
//! with [`BuildError::Attempts`](crate::frozen::BuildError::Attempts). Below some hundred keys more
//! entries are needed: 1.3 per key for 100 keys, 1.5 for ten.
//!
//! # Reference
//!
//! Graf and Lemire 2020, "Xor filters: faster and smaller than Bloom and cuckoo filters", section 3
//! (construction). Here the thirds have 1.23 entries per key, without the 32 extra entries of the
//! paper; a failed construction is repeated. Sets of a million keys or more are cut into shards.
//!
//! ```
//! use umbel::XorFilter;
//!
//! let known = XorFilter::<u64>::build(0..10_000, 0.01)?; // keys, error rate
//! assert!((0..10_000).all(|key| known.contains(&key)));
//! let wrong = (10_000..110_000).filter(|key| known.contains(key)).count();
//! assert!(wrong < 1_000, "{wrong} of 100,000");
//! # Ok::<(), umbel::frozen::BuildError>(())
//! ```

use crate::edge::Filter;
use crate::frozen::peel::{EntryPlaces, stirred};
use crate::frozen::{self, EntryJob, Map, Peeled, RawFrozen};
use crate::hash::Portable;
use crate::storage::Heap;

/// A filter of keys `T` for a static set, hashed by `H`, with its words in `S`.
///
/// ```
/// use umbel::XorFilter;
///
/// let known = XorFilter::<str>::build(["a", "b"], 0.01)?; // keys, false positive rate
/// assert!(known.contains("a") && known.contains("b")); // any other key: false, but for one in a hundred
/// # Ok::<(), umbel::frozen::BuildError>(())
/// ```
pub type XorFilter<T, H = Portable, S = Heap> = Filter<T, H, RawFrozen<Peeled<Thirds>, S>>;

/// The shape of a [`XorFilter`].
pub type Shape = frozen::Shape<Thirds>;

/// Entries in three parts of equal length, below 2<sup>32</sup>. A key has one entry in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thirds {
    len: u64,
}

impl Thirds {
    /// For this many keys: 1.23 entries per key, which is 0.7 % above the minimum for large sets,
    /// and a few more because small sets vary. At least half of the constructions then succeed.
    pub(crate) const fn for_keys(keys: u64) -> Self {
        let len = (123 * keys + 30 * keys.isqrt()) / 300 + 1;
        // Two keys in one place cannot be peeled.
        Self { len: if keys == 2 { 2 } else { len } }
    }

    /// The number of entries.
    #[must_use]
    pub const fn entries(&self) -> u64 {
        3 * self.len
    }
}

impl EntryPlaces<3> for Thirds {
    #[inline(always)]
    fn of(&self, start: u64, hash: u64) -> [usize; 3] {
        let Self { len } = *self;
        // 32 bits each, multiplied by a length of 32 bits.
        let third = |bits: u64| ((bits & 0xffff_ffff) * len) >> 32;
        let [first, second] = [third(hash >> 32), third(hash >> 11)];
        let third = third(stirred(hash) >> 32);
        [start + first, start + len + second, start + 2 * len + third].map(|place| place as usize)
    }
}

impl Map for Thirds {
    const NAME: &'static str = "XorFilter";
    const FAMILY: u16 = 10;
    const KERNELS: u16 = 11;
    const SHARD: u64 = 1_000_000;

    fn for_keys(keys: u64) -> Self {
        Self::for_keys(keys)
    }

    fn entries(&self) -> u64 {
        self.entries()
    }

    fn fields(&self) -> [u64; 2] {
        [0, self.len]
    }

    fn restore(segment: u64, length: u64) -> Option<Self> {
        (segment == 0 && (1..1 << 32).contains(&length)).then_some(Self { len: length })
    }

    #[inline(always)]
    fn with<J: EntryJob>(&self, job: J) -> J::Output {
        job.run(*self)
    }
}
