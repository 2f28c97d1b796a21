//! The filter block of SlateDB's SSTs, without compression and checksum.
//!
//! ```text
//!     probes     2 bytes, big-endian
//!     bits       bytes to the end, the first bit of a byte its lowest; bits = 8 times as many
//!     hash       SipHash-1-3 with a key of zeros: its lower half h, its upper half d
//!     positions  enhanced double hashing: before position i, d = d + i; then h, and h = h + d; all modulo bits
//! ```

use crate::bits::{self, Order};
use crate::error::Invalid;
use crate::read::Reader;
use crate::unseeded;
use siphasher::sip::SipHasher13;
use umbel::InvalidShape;
use umbel::bloom::Shape;
use umbel::kernels::Kernels;

/// A filter of SlateDB.
pub type BloomFilter<T> = crate::BloomFilter<T, Hash, Positions>;

/// The hash: SipHash-1-3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hash;

impl Hash {
    #[inline]
    fn of(bytes: &[u8]) -> Enhanced {
        Enhanced::of(SipHasher13::new().hash(bytes))
    }
}

digests! { Hash => Enhanced, check unseeded;
    [u8]: |_hash, key| Hash::of(key);
    str: |_hash, key| Hash::of(key.as_bytes());
}

/// The position, the stride, and the number of positions so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enhanced {
    at: u64,
    stride: u64,
    number: u64,
}

impl Enhanced {
    const fn of(hash: u64) -> Self {
        Self { at: hash & 0xffff_ffff, stride: hash >> 32, number: 0 }
    }
}

/// The kernels: enhanced double hashing (Dillinger and Manolios 2004).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Positions;

impl Kernels for Positions {
    type Digest = Enhanced;

    #[inline]
    fn step(&self, key: &mut Enhanced, bits: u64) -> u64 {
        let position = key.at % bits;
        key.stride = (key.stride + key.number) % bits;
        key.at = (position + key.stride) % bits;
        key.number += 1;
        position
    }

    /// SlateDB stores the number of bits in 32 bits.
    fn accept(&self, shape: &Shape) -> Result<(), InvalidShape> {
        let (bits, max) = (shape.bits(), u32::MAX.into());
        if bits <= max { Ok(()) } else { Err(InvalidShape::TooLarge { bits, max }) }
    }
}

/// An empty filter for `keys` keys.
///
/// # Errors
///
/// [`Invalid::Shape`] if there would be no bits or probes, or too many.
pub fn new<T: ?Sized>(keys: u32, bits_per_key: u32) -> Result<BloomFilter<T>, Invalid> {
    let bits = (u64::from(keys) * u64::from(bits_per_key)).next_multiple_of(8);
    let probes = (bits_per_key as f32 * 0.69) as u32;
    let shape = Shape::foreign(keys.into(), bits, probes)?;
    bits::filter(shape, Hash, Positions, &[], Order::Lowest)
}

/// Reads the filter from these bytes.
///
/// # Errors
///
/// [`Invalid`] describes what is wrong with them.
pub fn read<T: ?Sized>(bytes: &[u8]) -> Result<BloomFilter<T>, Invalid> {
    let mut reader = Reader::new(bytes);
    let probes = reader.u16_be()?;
    let shape = Shape::foreign(0, reader.rest().len() as u64 * 8, probes.into())?;
    bits::filter(shape, Hash, Positions, reader.rest(), Order::Lowest)
}

/// The bytes of a filter.
#[must_use]
pub fn write<T: ?Sized>(filter: &BloomFilter<T>) -> Vec<u8> {
    let mut bytes = (filter.shape().probes() as u16).to_be_bytes().to_vec();
    bits::write(&mut bytes, filter.words(), filter.shape().bits() / 8, Order::Lowest);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from the tests of SlateDB.
    #[test]
    fn positions_are_those_of_slatedb() {
        let key = Enhanced::of(0xdf77_ef56_dead_beef);
        let expected = [928_559, 107_781, 287_004, 466_229, 645_457, 824_689, 3_926];
        assert!(Positions.positions(key, 1_000_000).take(7).eq(expected));
    }

    #[test]
    fn what_was_inserted_is_found_after_writing_and_reading() {
        let mut filter = new::<str>(100, 10).unwrap();
        filter.insert("umbel");
        let read = read::<str>(&write(&filter)).unwrap();
        assert!(read == filter && read.contains("umbel") && !read.contains("umbrella"));
        assert_eq!((read.shape().probes(), read.shape().bits()), (6, 1_000));
    }
}
