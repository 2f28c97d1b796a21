//! The Bloom filters of valkey-bloom, as they are in an RDB file.
//!
//! ```text
//!     chain      filters, growth, rate, tightening, whether the seed is random
//!     filter     a string: version 1, 1 byte; bytes of bits, 8 bytes; probes, 4 bytes; seed, 32 bytes; all
//!                little-endian; then the bits, the first of a byte its lowest; capacity; the last one also its keys
//!     hash       SipHash-1-3 of the length of a key in 8 bytes and the key, with each half of the seed: a, b
//!     positions  a, b, then a + i b in 64 bits that wrap round, modulo 2^64 - 59, for i = 2, 3, ...; all modulo bits
//! ```
//!
//! Written from the sources of valkey-bloom and of the crate `bloomfilter`. There is no sample of a real server
//! yet.

use crate::bits::{self, Order};
use crate::error::Invalid;
use crate::read::Reader;
use siphasher::sip::SipHasher13;
use std::hash::Hasher;
use umbel::bloom::Shape;
use umbel::hash::Digester;
use umbel::kernels::Kernels;

/// One filter of a chain.
pub type BloomFilter<T> = crate::BloomFilter<T, Hash, Positions>;

/// The hash: two SipHash-1-3 hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hash {
    seed: [u8; 32],
}

impl Hash {
    /// The hash with this seed.
    #[must_use]
    pub const fn seeded(seed: [u8; 32]) -> Self {
        Self { seed }
    }

    #[inline]
    fn of(&self, bytes: &[u8]) -> Pair {
        let (halves, _) = self.seed.as_chunks::<16>();
        let hash = |key: &[u8; 16]| {
            let mut hasher = SipHasher13::new_with_key(key);
            hasher.write(&(bytes.len() as u64).to_le_bytes());
            hasher.write(bytes);
            hasher.finish()
        };
        Pair { a: hash(&halves[0]), b: hash(&halves[1]), number: 0 }
    }

    fn check(&self) -> u64 {
        SipHasher13::new().hash(&self.seed)
    }
}

digests! { Hash => Pair, check Hash::check;
    [u8]: |hash, key| hash.of(key);
    str: |hash, key| hash.of(key.as_bytes());
}

/// Two hashes, and the number of the next position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    a: u64,
    b: u64,
    number: u64,
}

/// The kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Positions;

impl Kernels for Positions {
    type Digest = Pair;

    #[inline]
    fn step(&self, pair: &mut Pair, bits: u64) -> u64 {
        let Pair { a, b, number } = *pair;
        pair.number += 1;
        match number {
            0 => a % bits,
            1 => b % bits,
            _ => a.wrapping_add(number.wrapping_mul(b)) % (u64::MAX - 58) % bits,
        }
    }
}

/// A chain of filters.
#[derive(Debug)]
pub struct Chain<T: ?Sized> {
    pub(crate) links: Vec<BloomFilter<T>>,
    pub(crate) growth: u64,
    pub(crate) rate: f64,
    pub(crate) tightening: f64,
    pub(crate) random_seed: u64,
    pub(crate) in_last: u64,
}

impl<T: ?Sized> Chain<T> {
    /// The filters, from the oldest to the newest. Their capacities are those of the chain.
    #[must_use]
    pub fn links(&self) -> &[BloomFilter<T>] {
        &self.links
    }

    /// The planned rate of the first filter, and the ratio by which each rate is tighter than the one before.
    #[must_use]
    pub const fn rates(&self) -> (f64, f64) {
        (self.rate, self.tightening)
    }

    /// The number of keys in the newest filter.
    #[must_use]
    pub const fn in_last(&self) -> u64 {
        self.in_last
    }

    /// Whether one of the filters contains the key.
    #[must_use]
    pub fn contains(&self, key: &T) -> bool
    where
        Hash: Digester<T, Pair>,
    {
        self.links.iter().rev().any(|link| link.contains(key))
    }
}

/// The bytes before the bits.
const HEADER: u64 = 45;

/// The filter in a string of the RDB file.
pub(crate) fn link<T: ?Sized>(string: &[u8], capacity: u64) -> Result<BloomFilter<T>, Invalid> {
    let mut reader = Reader::new(string);
    let version = reader.u8()?;
    if version != 1 {
        return Err(Invalid::Field { name: "version", got: version.into() });
    }
    let (bytes, probes) = (reader.u64_le()?, reader.u32_le()?);
    let mut seed = [0; 32];
    seed.copy_from_slice(reader.take(32)?);
    let payload = reader.take_last(bytes)?;
    let shape = Shape::foreign(capacity, payload.len() as u64 * 8, probes)?;
    bits::filter(shape, Hash { seed }, Positions, payload, Order::Lowest)
}

/// The string of a filter.
pub(crate) fn string<T: ?Sized>(link: &BloomFilter<T>) -> Vec<u8> {
    let (bytes, probes) = (link.shape().bits() / 8, link.shape().probes());
    let mut string = Vec::with_capacity((HEADER + bytes) as usize);
    string.push(1);
    string.extend(bytes.to_le_bytes());
    string.extend(probes.to_le_bytes());
    string.extend(link.hasher().seed);
    bits::write(&mut string, link.words(), bytes, Order::Lowest);
    string
}
