//! Approximate-membership filters: Bloom, blocked Bloom, cuckoo, quotient, xor, binary fuse and
//! ribbon filters behind one API.
//!
//! A filter answers "have I seen this key?" in a few bits per key. A key that was inserted, and not
//! removed or forgotten since, is always found: there are no false negatives. A key that is absent
//! is reported as present at a false positive rate that you choose.
//!
//! ```
//! use umbel::BloomFilter;
//!
//! let mut seen = BloomFilter::new(1_000_000, 0.001); // capacity, false positive rate
//! assert!(seen.insert("https://example.org/")); // true: certainly new
//! assert!(seen.contains("https://example.org/"));
//! ```
//!
//! # Which filter?
//!
//! | you need | type | bits per key at 1 %, 0.1 % |
//! |---|---|---|
//! | a set of a known largest size that only grows; unions | [`BloomFilter`] | 9.6, 14.4 |
//! | the same, up to four times faster at 1 % | [`BlockedBloomFilter`] | 9.9, 14.6 |
//! | the same in an array or a `static`, without an allocator | [`ArrayBloomFilter`], [`ArrayBlockedBloomFilter`](blocked::ArrayBlockedBloomFilter) | 9.6, 14.4 and 9.9, 14.6 |
//! | the same, filled by many threads at once | [`AtomicBloomFilter`], [`AtomicBlockedBloomFilter`] | 9.6, 14.4 and 9.9, 14.6 |
//! | to remove keys, in little space | [`CuckooFilter`] | 10.6, 13.8 |
//! | to remove keys; to merge, grow and shrink without the keys | [`QuotientFilter`] | 9.7, 12.9 |
//! | to remove keys, and to count how often each was inserted | [`CountingBloomFilter`] | 38.4, 57.5 |
//! | the same, in half the time for batches | [`BlockedCountingBloomFilter`] | 43.7, 77.6 |
//! | a set whose size is unknown | [`ScalableBloomFilter`] | 16.9 at 1 %, grown 64-fold and full |
//! | the last W insertions | [`WindowBloomFilter`] | 16.7, 25.3 |
//! | the insertions of the last T seconds, even if all come at once | [`WindowBloomFilter`] with [`window::Shape::for_time`] | 58, 89 |
//! | a stream without end, where old keys may be forgotten | [`StableBloomFilter`] | 69, 108 per key of the latest keys, nine of ten of which it finds |
//! | a static set, fast look-ups | [`BinaryFuseFilter`], [`BinaryFuse4Filter`] | 7.9, 11.3 and 7.5, 10.7 |
//! | a static set, the simplest algorithm | [`XorFilter`] | 8.7, 12.4 |
//! | a static set in the least space | [`RibbonFilter`] | 7.02, 10.02 |
//! | small values for the keys of a static set | [`RibbonMap`] | the bits of a value, plus 0.3 % |
//! | Bloom filters of Parquet files | [`SplitBlockBloomFilter`] | 10.5, 16.9, or up to twice that |
//! | records that are looked up by any of their attributes | [`MultiBloomFilter`] | the sum of its filters |
//!
//! # One filter, many cores
//!
//! Every filter above is a [`Filter`] of keys `T`, hashed by `H`, around a core of its family.
//! [`Filter`] digests each key once; the core below it works with digests only.
//! [`contains`](Filter::contains), batches, equality, serde and files are therefore the same for
//! all filters, and each family adds the operations that only it supports. `docs/api.md` has the
//! table.
//!
//! # Reading order
//!
//! 1. [`Filter`]: what all filters do. [`hash`]: from a key to a [`Digest`], which types are keys,
//!    and which hasher to choose.
//! 2. [`sizing`] and [`bloom::Shape`]: how many bits a capacity and a false positive rate need.
//! 3. [`bloom`], [`atomic`], [`blocked`], [`split`], [`counting`], [`scalable`], [`window`],
//!    [`stable`]: the families of Bloom filters, each with a picture, its costs and its limits.
//!    [`cuckoo`] and [`quotient`] store a fingerprint of every digest. [`frozen`] is the common
//!    part of the filters for static sets: [`xor`], [`fuse`] and [`ribbon`]. [`multi`] combines
//!    several filters of any kind.
//! 4. [`raw`]: the cores, for engines that have digests already. [`filter`]: traits for code that is
//!    generic over families.
//! 5. [`kernels`]: how a classic Bloom filter finds its bits, and how to bring your own.
//! 6. [`storage`]: where the words live. [`simd`]: which instructions are used. [`error`]: all
//!    error types.
//! 7. [`plan`]: all families side by side. [`mod@format`]: filters as bytes and files, by the
//!    methods of [`Saved`]. [`any`]: a filter whose type is known only at run time.
//!
//! # Features
//!
//! `std` (default) brings `alloc` and randomness for [`Keyed`]. Without it the crate is `no_std`,
//! and without `alloc` it needs no allocator. `serde`, `uuid` and `crc64` add what their names say.
//! `rayon` builds filters for static sets on several threads. `mmap` uses filters in memory-mapped
//! files. A feature never changes an answer, a false positive rate or a stored byte.

#![no_std]
#![deny(unsafe_code)]
#![deny(unnameable_types)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

pub mod hash;
pub mod sizing;

#[cfg(feature = "alloc")]
pub mod any;
pub mod atomic;
pub mod blocked;
pub mod bloom;
pub mod counting;
pub mod cuckoo;
#[cfg(feature = "alloc")]
pub mod frozen;
#[cfg(feature = "alloc")]
pub mod fuse;
pub mod kernels;
pub mod multi;
#[cfg(feature = "alloc")]
pub mod plan;
#[cfg(feature = "alloc")]
pub mod quotient;
#[cfg(feature = "alloc")]
pub mod ribbon;
#[cfg(feature = "alloc")]
pub mod scalable;
pub mod split;
pub mod stable;
#[cfg(feature = "alloc")]
pub mod window;
#[cfg(feature = "alloc")]
pub mod xor;

mod edge;
pub mod error;
pub mod filter;
pub mod format;
#[doc(hidden)]
pub mod layout;
pub mod raw;
pub mod simd;
pub mod storage;

mod parts;

#[cfg(feature = "alloc")]
pub use any::AnyFilter;
pub use bloom::{ArrayBloomFilter, words_for};
pub use edge::Filter;
pub use error::{BatchFull, Full, Incompatible, InvalidBytes, InvalidShape};
pub use filter::{Contains, Edge, Insert, InsertShared, Remove, Union};
pub use format::Saved;
pub use hash::Keyed;
pub use hash::{Digest, Key, KeyOf, New, Portable, Std};
pub use multi::MultiBloomFilter;

#[cfg(feature = "alloc")]
pub use atomic::AtomicBloomFilter;
#[cfg(feature = "alloc")]
pub use blocked::{AtomicBlockedBloomFilter, BlockedBloomFilter};
#[cfg(feature = "alloc")]
pub use bloom::BloomFilter;
#[cfg(feature = "alloc")]
pub use counting::{BlockedCountingBloomFilter, CountingBloomFilter};
#[cfg(feature = "alloc")]
pub use cuckoo::CuckooFilter;
#[cfg(feature = "alloc")]
pub use fuse::{BinaryFuse4Filter, BinaryFuseFilter};
#[cfg(feature = "alloc")]
pub use quotient::QuotientFilter;
#[cfg(feature = "alloc")]
pub use ribbon::{RibbonFilter, RibbonMap};
#[cfg(feature = "alloc")]
pub use scalable::ScalableBloomFilter;
#[cfg(feature = "alloc")]
pub use split::{AtomicSplitBlockBloomFilter, SplitBlockBloomFilter};
#[cfg(feature = "alloc")]
pub use stable::StableBloomFilter;
#[cfg(feature = "alloc")]
pub use window::WindowBloomFilter;
#[cfg(feature = "alloc")]
pub use xor::XorFilter;

/// Items that appear in public signatures, or that only this workspace uses.
#[doc(hidden)]
pub mod internal {
    pub use crate::parts::bits::{SetBit, Word};
    pub use crate::parts::grouped::Grouped;
    pub use crate::parts::prefetch::prefetch_far;
    #[cfg(feature = "alloc")]
    pub use crate::{
        any::raw::Planned, parts::alloc_zeroed::Zeroable, parts::gather::Gathered, scalable::Said,
        window::State,
    };
}
