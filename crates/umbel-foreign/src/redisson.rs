//! Redisson's `RBloomFilter`: a string of Redis, and a hash `{name}:config` beside it.
//!
//! ```text
//!     hash        h1, h2 = HighwayHash-128 of what the codec makes of a key, with a key of Redisson's own
//!     positions   h1, h1 + h2, h1 + h2 + h1, ... each without its highest bit, modulo bits
//!     bits        in Redis order: the first bit of a byte is its highest
//! ```
//!
//! The codec determines the bytes of a key: the bytes of the text for `StringCodec`, the bytes unchanged for
//! `ByteArrayCodec`, the decimal digits for `LongCodec`. The default codec, Kryo, frames every type
//! differently.

use crate::unseeded;
use highway::{HighwayHash, HighwayHasher, Key};
use std::f64::consts::LN_2;
use umbel::InvalidShape;
use umbel::kernels::Kernels;
use umbel::sizing::Rate;

/// The maximum number of bits that Redisson accepts: twice the largest `int`.
pub const MAX_BITS: u64 = 2 * (i32::MAX as u64);
/// Sufficient for any rate that a `double` can represent.
pub const MAX_PROBES: u32 = 1_100;

/// The key of HighwayHash in Redisson's `Hash.java`.
const KEY: Key = Key([
    0x9e37_79b9_7f4a_7c15,
    0xf39c_c060_5ced_c834,
    0x1082_276b_f3a2_7251,
    0xf86c_6a11_d0c1_8e95,
]);

/// The hash: both halves of HighwayHash-128.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hash;

impl Hash {
    #[inline]
    fn of(bytes: &[u8]) -> Alternating {
        let [h1, h2] = HighwayHasher::new(KEY).hash128(bytes);
        Alternating { at: h1, next: h2, after: h1 }
    }
}

digests! { Hash => Alternating, check unseeded;
    [u8]: |_hash, key| Hash::of(key);
    str: |_hash, key| Hash::of(key.as_bytes());
}

/// A hash, and the two hashes that are added to it alternately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alternating {
    at: u64,
    next: u64,
    after: u64,
}

/// The kernels: two hashes, added alternately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Positions;

impl Kernels for Positions {
    type Digest = Alternating;

    #[inline]
    fn step(&self, hash: &mut Alternating, bits: u64) -> u64 {
        let position = (hash.at & (u64::MAX >> 1)) % bits;
        hash.at = hash.at.wrapping_add(hash.next);
        std::mem::swap(&mut hash.next, &mut hash.after);
        position
    }
}

/// The number of bits and of probes that Redisson computes for `capacity` keys at this rate. Like Redisson, it
/// treats a rate of 0 as the smallest rate above 0.
///
/// # Errors
///
/// [`InvalidShape`] if the rate is not between 0 and 1, or there would be no bits or too many.
pub fn plan(capacity: u64, err_rate: f64) -> Result<(u64, u64), InvalidShape> {
    if !(0.0..=1.0).contains(&err_rate) {
        let no_bits = |_| InvalidShape::TooSmall { bytes: 0, min: 1 };
        return Err(Rate::new(err_rate).map_or_else(Into::into, no_bits));
    }
    // Java's Double.MIN_VALUE.
    let rate = if err_rate == 0.0 { f64::from_bits(1) } else { err_rate };
    let size = (-(capacity as f64) * rate.ln() / (LN_2 * LN_2)) as u64;
    if size == 0 {
        return Err(InvalidShape::TooSmall { bytes: 0, min: 1 });
    }
    if size > MAX_BITS {
        return Err(InvalidShape::TooLarge { bits: size, max: MAX_BITS });
    }
    let probes = (size as f64 / capacity as f64 * LN_2).round() as u64;
    Ok((size, probes.max(1)))
}

#[cfg(feature = "files")]
mod file {
    use super::{Hash, Positions};
    use crate::bits::{self, Order};
    use crate::error::Invalid;
    use umbel::bloom::Shape;

    /// A filter of Redisson's.
    pub type BloomFilter<T> = crate::BloomFilter<T, Hash, Positions>;

    /// Reads the filter from the bytes of its string. `size` and `hash_iterations` are in its config.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if there are more bytes than `size` bits take, no bits, or no probes.
    pub fn read<T: ?Sized>(
        bytes: &[u8],
        size: u64,
        hash_iterations: u32,
    ) -> Result<BloomFilter<T>, Invalid> {
        let shape = Shape::foreign(0, size, hash_iterations)?;
        bits::at_most(bytes, size)?;
        bits::filter(shape, Hash, Positions, bytes, Order::Highest)
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

    /// Values from a Java program with Redisson's `HighwayHash.java`.
    #[test]
    fn hashes_and_positions_are_those_of_redisson() {
        let hash = HighwayHasher::new(KEY).hash128(b"hello");
        assert_eq!(hash, [9_210_372_222_324_082_145, 8_139_643_753_120_311_257]);
        let positions = [1904273, 5703746, 1001831, 4801304, 99389, 3898862, 8782005];
        assert!(Positions.positions(Hash.digest("hello"), 9_585_058).take(7).eq(positions));
    }
}
