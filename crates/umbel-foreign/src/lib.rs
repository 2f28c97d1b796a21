//! Filters of other systems: read them, query them, insert keys, and write them back bit for bit.
//!
//! ```
//! use umbel_foreign::guava;
//!
//! let mut filter = guava::new::<str>(1_000, 0.02)?;
//! filter.insert("umbel");
//! let bytes = guava::write(&filter); // what Guava's `writeTo` writes
//! let read = guava::read::<str>(&bytes)?;
//! assert!(read.contains("umbel") && !read.contains("umbrella"));
//! # Ok::<(), umbel_foreign::Invalid>(())
//! ```
//!
//! # One module per system
//!
//! Every format consists of a hash, a mapping from the hash to positions, and a layout of bits. So every module
//! has a hasher ([`Digester`](umbel::hash::Digester)), [`Kernels`](umbel::kernels::Kernels), and `read` and
//! `write` for the bits and the fields around them. The filter itself is an ordinary [`Filter`](umbel::Filter):
//! `contains`, `insert`, batches, unions and `expected_rate` are those of the library.
//!
//! `docs/interchange.md` has a table of all systems, and the pitfalls of each.
//!
//! # What is promised
//!
//! Reading never panics, and allocates memory only after the announced lengths were checked against the number
//! of bytes. A filter that is read and not changed is written back byte for byte. A key is a false positive
//! here if and only if it is one in the system itself.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

/// Implements `Digester` for each type of keys that a system has. `check` distinguishes hashers of one type.
macro_rules! digests {
    ($hash:ty => $digest:ty, check $check:expr; $($key:ty: |$this:ident, $name:ident| $value:expr;)*) => {$(
        impl umbel::hash::Digester<$key, $digest> for $hash {
            #[inline]
            fn digest(&self, $name: &$key) -> $digest {
                let $this = self;
                $value
            }

            fn check(&self) -> u64 {
                $check(self)
            }
        }
    )*};
}

/// The `check` of a hasher that has no parameters.
const fn unseeded<H>(_: &H) -> u64 {
    0
}

pub mod gozero;
pub mod hashes;
pub mod redisson;

#[cfg(feature = "files")]
mod bits;
#[cfg(feature = "files")]
pub mod error;
#[cfg(feature = "files")]
mod murmur;
#[cfg(feature = "files")]
mod read;
#[cfg(feature = "files")]
mod xxph3;

#[cfg(feature = "files")]
pub mod bits_and_blooms;
#[cfg(feature = "files")]
pub mod cassandra;
#[cfg(feature = "files")]
pub mod datasketches;
#[cfg(feature = "files")]
pub mod dcso;
#[cfg(feature = "files")]
pub mod fastfilter;
#[cfg(feature = "files")]
pub mod guava;
#[cfg(feature = "files")]
pub mod hadoop;
#[cfg(feature = "files")]
pub mod hudi;
#[cfg(feature = "files")]
pub mod milvus;
#[cfg(feature = "files")]
pub mod parquet;
#[cfg(feature = "files")]
pub mod pybloomfilter;
#[cfg(feature = "files")]
pub mod rbloom;
#[cfg(feature = "files")]
pub mod rdb;
#[cfg(feature = "files")]
pub mod recognise;
#[cfg(feature = "files")]
pub mod redisbloom;
#[cfg(feature = "files")]
pub mod rocksdb;
#[cfg(feature = "files")]
pub mod slatedb;
#[cfg(feature = "files")]
pub mod spark;
#[cfg(feature = "files")]
pub mod valkey_bloom;

#[cfg(feature = "files")]
pub use error::Invalid;

/// A Bloom filter of another system: keys `T`, its hash `H`, its kernels `K`.
#[cfg(feature = "files")]
pub type BloomFilter<T, H, K> = umbel::Filter<T, H, umbel::raw::Bloom<umbel::storage::Heap, K>>;
