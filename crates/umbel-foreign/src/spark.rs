//! Apache Spark's `BloomFilter` (`spark-sketch`), as `writeTo` writes it. All numbers are big-endian.
//!
//! ```text
//!     version    4 bytes: 1 or 2, which `create` takes since Spark 4.1
//!     probes     4 bytes
//!     seed       4 bytes, in version 2 only
//!     words      4 bytes: how many words of 8 bytes follow; bits = 64 times that
//!     hash       h1 = Murmur3 of 32 bits with the seed, h2 = the same with the seed h1
//!     positions  version 1: h1 + h2, h1 + 2 h2, ... in 32 bits with a sign, a negative one inverted, modulo bits
//!                version 2: the same in 64 bits, with h1 (2^31 - 1) in the place of h1
//! ```
//!
//! The hash differs from the published MurmurHash3: each of the last one to three bytes of a key is mixed as a
//! separate signed word.
//!
//! | in Spark | keys here |
//! |---|---|
//! | `putString`, `putBinary` | `str`, `[u8]` |
//! | `putLong`, and all integer types of `put` | `i64` |

use crate::bits::{self, Order};
use crate::error::Invalid;
use crate::murmur::spark_murmur3;
use crate::read::Reader;
use std::f64::consts::LN_2;
use umbel::InvalidShape;
use umbel::bloom::Shape;
use umbel::kernels::Kernels;

/// A filter of Spark.
pub type BloomFilter<T> = crate::BloomFilter<T, Hash, Version>;

/// The hash: Spark's MurmurHash3, twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hash {
    seed: u32,
}

impl Hash {
    /// The seed, which is 0 in version 1.
    #[must_use]
    pub const fn seed(&self) -> i32 {
        self.seed as i32
    }

    #[inline]
    fn of(self, bytes: &[u8]) -> (i64, i64) {
        let h1 = spark_murmur3(bytes, self.seed);
        let h2 = spark_murmur3(bytes, h1);
        (i64::from(h1 as i32), i64::from(h2 as i32))
    }
}

digests! { Hash => (i64, i64), check Hash::check;
    [u8]: |hash, key| hash.of(key);
    str: |hash, key| hash.of(key.as_bytes());
    i64: |hash, key| hash.of(&key.to_le_bytes());
}

impl Hash {
    fn check(&self) -> u64 {
        self.seed.into()
    }
}

/// The kernels: those of version 1 or 2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// Positions in 32 bits, which are not enough for filters of hundreds of millions of bits.
    V1,
    /// Positions in 64 bits, and a seed.
    #[default]
    V2,
}

impl Kernels for Version {
    type Digest = (i64, i64);

    #[inline]
    fn start(&self, (h1, h2): (i64, i64)) -> (i64, i64) {
        match self {
            Self::V1 => (h1, h2),
            Self::V2 => (h1.wrapping_mul(i64::from(i32::MAX)), h2),
        }
    }

    #[inline]
    fn step(&self, (at, stride): &mut (i64, i64), bits: u64) -> u64 {
        match self {
            Self::V1 => {
                let next = (*at as i32).wrapping_add(*stride as i32);
                *at = next.into();
                (if next < 0 { !next } else { next }) as u64 % bits
            }
            Self::V2 => {
                *at = at.wrapping_add(*stride);
                (if *at < 0 { !*at } else { *at }) as u64 % bits
            }
        }
    }

    /// The limits of the fields.
    fn accept(&self, shape: &Shape) -> Result<(), InvalidShape> {
        bits::whole_words(shape.bits(), i32::MAX as u64 * 64)
    }

    fn check(&self) -> u64 {
        *self as u64
    }
}

/// An empty filter with the sizes of `BloomFilter.create(capacity, err_rate)`: version 2, seed 0.
///
/// # Errors
///
/// [`Invalid::Shape`] if `err_rate` is not above 0 and below 1, or there would be too many bits.
pub fn new<T: ?Sized>(capacity: u64, err_rate: f64) -> Result<BloomFilter<T>, Invalid> {
    let rate = umbel::sizing::Rate::new(err_rate)?.get();
    let bits = (-(capacity as f64) * rate.ln() / (LN_2 * LN_2)) as u64;
    with(Version::V2, capacity, bits, 0)
}

/// An empty filter with the sizes of `BloomFilter.create(version, capacity, bits, seed)`. Version 1 has no
/// seed: pass 0.
///
/// # Errors
///
/// [`Invalid::Shape`] if there are no bits or too many, [`Invalid::Field`] if the seed for version 1 is not 0.
pub fn with<T: ?Sized>(
    version: Version,
    capacity: u64,
    bits: u64,
    seed: i32,
) -> Result<BloomFilter<T>, Invalid> {
    if version == Version::V1 && seed != 0 {
        return Err(Invalid::Field { name: "seed", got: (seed as u32).into() });
    }
    let probes = (bits as f64 / capacity as f64 * LN_2).round().clamp(1.0, f64::from(u32::MAX));
    let bits = bits.max(1).next_multiple_of(64);
    let shape = Shape::foreign(capacity, bits, probes as u32)?;
    bits::filter(shape, Hash { seed: seed as u32 }, version, &[], Order::BigWords)
}

/// Reads the filter from these bytes.
///
/// # Errors
///
/// [`Invalid`] describes what is wrong with them.
pub fn read<T: ?Sized>(bytes: &[u8]) -> Result<BloomFilter<T>, Invalid> {
    let mut reader = Reader::new(bytes);
    let version = match reader.u32_be()? {
        1 => Version::V1,
        2 => Version::V2,
        other => return Err(Invalid::Field { name: "version", got: other.into() }),
    };
    let probes = reader.u32_be()?;
    let seed = if version == Version::V2 { reader.u32_be()? } else { 0 };
    let words = u64::from(reader.u32_be()?);
    let payload = reader.take_last(words * 8)?;
    let shape = Shape::foreign(0, words * 64, probes)?;
    bits::filter(shape, Hash { seed }, version, payload, Order::BigWords)
}

/// The bytes that `writeTo` writes.
#[must_use]
pub fn write<T: ?Sized>(filter: &BloomFilter<T>) -> Vec<u8> {
    let (words, version) = (filter.words(), *filter.raw().kernels());
    let mut bytes = Vec::with_capacity(16 + words.len() * 8);
    bytes.extend((version as u32 + 1).to_be_bytes());
    bytes.extend(filter.shape().probes().to_be_bytes());
    if version == Version::V2 {
        bytes.extend(filter.hasher().seed.to_be_bytes());
    }
    bytes.extend((words.len() as u32).to_be_bytes());
    bits::write(&mut bytes, words, words.len() as u64 * 8, Order::BigWords);
    bytes
}
