//! Python's `rbloom`, as `save` and `save_bytes` write it.
//!
//! ```text
//!     k          8 bytes, little-endian: probes
//!     bits       bytes to the end, the first bit of a byte its lowest; bits = 8 times as many
//!     hash       a function of the program's, to a number of 128 bits with a sign
//!     positions  a linear congruential generator from that number on, 64 bits of each state, modulo bits
//! ```
//!
//! The hash is not in the file. `rbloom` requires a user-defined hash, and recommends SHA-256: [`Sha256`] is
//! `int.from_bytes(sha256(key).digest()[:16], "big", signed=True)` of the bytes of a key or of a text's UTF-8.
//! For any other hash, implement [`Digester<T, u128>`](umbel::hash::Digester), with a negative number as its
//! two's complement.

use crate::bits::{self, Order};
use crate::error::Invalid;
use crate::read::Reader;
use crate::unseeded;
use sha2::Digest;
use std::f64::consts::LN_2;
use umbel::bloom::Shape;
use umbel::kernels::Kernels;

/// A filter of rbloom.
pub type BloomFilter<T, H = Sha256> = crate::BloomFilter<T, H, Positions>;

/// The hash that rbloom recommends: the first half of SHA-256, big-endian.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sha256;

impl Sha256 {
    #[inline]
    fn of(bytes: &[u8]) -> u128 {
        let mut half = [0; 16];
        half.copy_from_slice(&sha2::Sha256::digest(bytes)[..16]);
        u128::from_be_bytes(half)
    }
}

digests! { Sha256 => u128, check unseeded;
    [u8]: |_hash, key| Sha256::of(key);
    str: |_hash, key| Sha256::of(key.as_bytes());
}

/// The kernels: a linear congruential generator of 128 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Positions;

impl Kernels for Positions {
    type Digest = u128;

    #[inline]
    fn step(&self, state: &mut u128, bits: u64) -> u64 {
        *state = state.wrapping_mul(MULTIPLIER).wrapping_add(1);
        (*state >> 32) as u64 % bits
    }
}

/// The multiplier of the generator.
const MULTIPLIER: u128 = 47_026_247_687_942_121_848_144_207_491_837_418_733;

/// An empty filter with the sizes of `Bloom(capacity, err_rate, hash)`.
///
/// # Errors
///
/// [`Invalid::Shape`] if `err_rate` is not above 0 and below 1, or there would be no bits or too many.
pub fn new<T: ?Sized, H>(
    capacity: u64,
    err_rate: f64,
    hash: H,
) -> Result<BloomFilter<T, H>, Invalid> {
    let rate = umbel::sizing::Rate::new(err_rate)?.get();
    let bits = -(capacity as f64) * rate.ln() / (LN_2 * LN_2);
    let probes = (bits / capacity as f64 * LN_2) as u32;
    let shape = Shape::foreign(capacity, (bits as u64).next_multiple_of(8), probes)?;
    bits::filter(shape, hash, Positions, &[], Order::Lowest)
}

/// Reads the filter from these bytes, with keys hashed by `hash`.
///
/// # Errors
///
/// [`Invalid`] describes what is wrong with them.
pub fn read<T: ?Sized, H>(bytes: &[u8], hash: H) -> Result<BloomFilter<T, H>, Invalid> {
    let mut reader = Reader::new(bytes);
    let probes = reader.u64_le()?;
    let probes = probes.try_into().map_err(|_| Invalid::Field { name: "k", got: probes })?;
    let shape = Shape::foreign(0, reader.rest().len() as u64 * 8, probes)?;
    bits::filter(shape, hash, Positions, reader.rest(), Order::Lowest)
}

/// The bytes that `save` writes.
#[must_use]
pub fn write<T: ?Sized, H>(filter: &BloomFilter<T, H>) -> Vec<u8> {
    let mut bytes = u64::from(filter.shape().probes()).to_le_bytes().to_vec();
    bits::write(&mut bytes, filter.words(), filter.shape().bits() / 8, Order::Lowest);
    bytes
}
