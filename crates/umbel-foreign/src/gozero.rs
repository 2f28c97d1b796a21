//! go-zero's `core/bloom`: a string of Redis.
//!
//! ```text
//!     positions   MurmurHash3_x64_128(key ‖ byte i), first half, modulo bits      i = 0 to 13
//!     bits        in Redis order: the first bit of a byte is its highest
//! ```
//!
//! The string does not describe itself, not even its number of bits: readers must know it.

use crate::hashes::{Hashes, Modulo};
use crate::unseeded;
use umbel::hash::Murmur3;

/// The probes of every key.
pub const PROBES: u32 = 14;

/// The hash: MurmurHash3 of the key and a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hash;

/// The kernels.
pub type Positions = Modulo<14>;

impl Hash {
    #[inline]
    fn of(bytes: &[u8]) -> Hashes<14> {
        let mut data = Vec::with_capacity(bytes.len() + 1);
        data.extend_from_slice(bytes);
        data.push(0);
        Hashes::of((0..PROBES as u8).map(|number| {
            data[bytes.len()] = number;
            Murmur3::default().hash128(&data).0
        }))
    }
}

digests! { Hash => Hashes<14>, check unseeded;
    [u8]: |_hash, key| Hash::of(key);
    str: |_hash, key| Hash::of(key.as_bytes());
}

#[cfg(feature = "files")]
mod file {
    use super::{Hash, PROBES, Positions};
    use crate::bits::{self, Order};
    use crate::error::Invalid;
    use crate::hashes::Modulo;
    use umbel::bloom::Shape;

    /// A filter of go-zero's.
    pub type BloomFilter<T> = crate::BloomFilter<T, Hash, Positions>;

    /// Reads the filter from the bytes of its string, with `bits` bits. Redis stores no zeros behind the last
    /// set bit, so there may be fewer bytes.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if there are more bytes than `bits` bits take, or no bits.
    pub fn read<T: ?Sized>(bytes: &[u8], bits: u64) -> Result<BloomFilter<T>, Invalid> {
        let shape = Shape::foreign(0, bits, PROBES)?;
        bits::at_most(bytes, bits)?;
        bits::filter(shape, Hash, Modulo, bytes, Order::Highest)
    }

    /// The string, up to its last set bit.
    #[must_use]
    pub fn write<T: ?Sized>(filter: &BloomFilter<T>) -> Vec<u8> {
        bits::trimmed(filter.words(), filter.shape().bits(), Order::Highest)
    }
}

#[cfg(feature = "files")]
pub use file::{BloomFilter, read, write};

#[cfg(test)]
mod tests {
    use super::*;
    use umbel::hash::Digester;
    use umbel::kernels::Kernels;

    #[test]
    fn positions_are_those_of_go_zero() {
        let positions = Modulo::<14>.positions(Hash.digest("hello"), 20_000_000);
        assert!(positions.take(3).eq([7_974_195, 15_487_778, 3_939_938]));
    }
}
