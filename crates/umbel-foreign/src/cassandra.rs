//! Apache Cassandra's Bloom filters: the file `Filter.db` of an SSTable. Numbers are big-endian.
//!
//! ```text
//!     hashCount  4 bytes: probes
//!     words      4 bytes: how many times 8 bytes follow; bits = 64 times that
//!     bits       the first bit of a byte its lowest; in the old format, words of 8 bytes, big-endian
//!     hash       Cassandra's MurmurHash3_x64_128, seed 0: h1, h2
//!     positions  |h2 % bits|, |(h2 + h1) % bits|, |(h2 + 2 h1) % bits|, ... of numbers with a sign
//! ```
//!
//! The hash differs from the published one: it reads the last one to fifteen bytes of a key as signed. Keys are
//! the bytes of a partition key.
//!
//! The bytes do not say which of the two formats they have: the version in the name of the SSTable does. The
//! old format is that of versions before 4.0 (`na`). Filters from before 3.0 (`la`) began at h1 with the stride
//! h2. They are not supported.

use crate::bits::{self, Order};
use crate::error::Invalid;
use crate::murmur::cassandra_murmur3;
use crate::read::Reader;
use crate::unseeded;
use umbel::InvalidShape;
use umbel::bloom::Shape;
use umbel::kernels::Kernels;

/// A filter of Cassandra.
pub type BloomFilter<T> = crate::BloomFilter<T, Hash, Positions>;

/// The hash: Cassandra's MurmurHash3, with the second half first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hash;

impl Hash {
    #[inline]
    fn of(bytes: &[u8]) -> (u64, u64) {
        let (h1, h2) = cassandra_murmur3(bytes);
        (h2, h1)
    }
}

digests! { Hash => (u64, u64), check unseeded;
    [u8]: |_hash, key| Hash::of(key);
    str: |_hash, key| Hash::of(key.as_bytes());
}

/// The kernels: double hashing of signed numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Positions;

impl Kernels for Positions {
    type Digest = (u64, u64);

    #[inline]
    fn step(&self, (at, stride): &mut (u64, u64), bits: u64) -> u64 {
        // |x % bits| and |x| % bits are equal, because the remainder has the sign of x.
        let position = (*at as i64).unsigned_abs() % bits;
        *at = at.wrapping_add(*stride);
        position
    }

    /// The limits of the fields.
    fn accept(&self, shape: &Shape) -> Result<(), InvalidShape> {
        bits::whole_words(shape.bits(), i32::MAX as u64 * 64)
    }
}

/// The layout of the bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Words, big-endian: before version 4.0.
    Old,
    /// Bytes.
    #[default]
    New,
}

impl Format {
    const fn order(self) -> Order {
        match self {
            Self::Old => Order::BigWords,
            Self::New => Order::Lowest,
        }
    }
}

/// An empty filter with `bits` bits, rounded up to words, and `probes` probes.
///
/// # Errors
///
/// [`Invalid::Shape`] if there are no bits or probes, or too many.
pub fn with<T: ?Sized>(bits: u64, probes: u32) -> Result<BloomFilter<T>, Invalid> {
    let shape = Shape::foreign(0, bits.next_multiple_of(64), probes)?;
    bits::filter(shape, Hash, Positions, &[], Order::Lowest)
}

/// Reads the filter from these bytes, in this format.
///
/// # Errors
///
/// [`Invalid`] describes what is wrong with them.
pub fn read<T: ?Sized>(bytes: &[u8], format: Format) -> Result<BloomFilter<T>, Invalid> {
    let mut reader = Reader::new(bytes);
    let (probes, words) = (reader.u32_be()?, u64::from(reader.u32_be()?));
    let payload = reader.take_last(words * 8)?;
    let shape = Shape::foreign(0, words * 64, probes)?;
    bits::filter(shape, Hash, Positions, payload, format.order())
}

/// The bytes of a filter, in this format.
#[must_use]
pub fn write<T: ?Sized>(filter: &BloomFilter<T>, format: Format) -> Vec<u8> {
    let words = filter.words();
    let mut bytes = Vec::with_capacity(8 + words.len() * 8);
    bytes.extend(filter.shape().probes().to_be_bytes());
    bytes.extend((words.len() as u32).to_be_bytes());
    bits::write(&mut bytes, words, filter.bytes(), format.order());
    bytes
}
