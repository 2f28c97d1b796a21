//! The Bloom filter of Apache DataSketches, in Java, C++ and Go. All numbers are little-endian.
//!
//! ```text
//!     preamble   1 byte each: longs of the preamble (3 if empty, 4 if not), version 1, family 21, flags (4: empty)
//!     hashes     2 bytes, then 2 bytes of zeros
//!     seed       8 bytes
//!     longs      4 bytes: how many words of 8 bytes; then 4 bytes of zeros; bits = 64 times that
//!     bits set   8 bytes, or -1 if they were not counted; then the words. Both only if it is not empty
//!     hash       h0 = XXH64 with the seed, h1 = XXH64 with the seed h0
//!     positions  h0 + h1, h0 + 2 h1, ... in 64 bits that wrap round, without the lowest bit, modulo bits
//! ```
//!
//! | in Java | keys here |
//! |---|---|
//! | `update(String)`, `update(byte[])` | `str`, `[u8]` |
//! | `update(long)` | `i64` |
//!
//! DataSketches ignores an empty string on insert, and never finds one. Here it is an ordinary key.

use crate::bits::{self, Order};
use crate::error::Invalid;
use crate::read::Reader;
use std::f64::consts::LN_2;
use umbel::InvalidShape;
use umbel::bloom::Shape;
use umbel::hash::{Digester, Xxh64};
use umbel::kernels::Kernels;

/// A filter of DataSketches.
pub type BloomFilter<T> = crate::BloomFilter<T, Hash, Positions>;

/// The hash: XXH64, twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hash {
    seed: u64,
}

impl Hash {
    /// The seed.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    #[inline]
    fn of(self, bytes: &[u8]) -> (u64, u64) {
        let h0 = Xxh64::seeded(self.seed).digest(bytes).bits();
        (h0, Xxh64::seeded(h0).digest(bytes).bits())
    }
}

digests! { Hash => (u64, u64), check Hash::check;
    [u8]: |hash, key| hash.of(key);
    str: |hash, key| hash.of(key.as_bytes());
    i64: |hash, key| hash.of(&key.to_le_bytes());
}

impl Hash {
    fn check(&self) -> u64 {
        self.seed
    }
}

/// The kernels: double hashing, with the lowest bit removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Positions;

impl Kernels for Positions {
    type Digest = (u64, u64);

    #[inline]
    fn step(&self, (at, stride): &mut (u64, u64), bits: u64) -> u64 {
        *at = at.wrapping_add(*stride);
        (*at >> 1) % bits
    }

    /// The limits of the fields.
    fn accept(&self, shape: &Shape) -> Result<(), InvalidShape> {
        let (probes, max) = (shape.probes(), i16::MAX as u32);
        InvalidShape::check_range("probes", probes.into(), 1, max.into())?;
        bits::whole_words(shape.bits(), i32::MAX as u64 * 64)
    }
}

/// A sketch: a filter, and whether its set bits are counted.
#[derive(Debug)]
pub struct Sketch<T: ?Sized> {
    /// The filter.
    pub filter: BloomFilter<T>,
    /// Whether the bytes store the number of set bits. After `update` they do not; after `queryAndUpdate` they
    /// do.
    pub counted: bool,
}

/// An empty sketch with the sizes of `BloomFilterBuilder.createByAccuracy(capacity, err_rate, seed)`.
///
/// # Errors
///
/// [`Invalid::Shape`] if `err_rate` is not above 0 and below 1, or there would be no bits or too many.
pub fn new<T: ?Sized>(capacity: u64, err_rate: f64, seed: u64) -> Result<Sketch<T>, Invalid> {
    let rate = umbel::sizing::Rate::new(err_rate)?.get();
    let bits = (-(capacity as f64) * rate.ln() / (LN_2 * LN_2)).ceil();
    let probes = (bits / capacity as f64 * LN_2).ceil();
    with(bits as u64, probes as u32, seed)
}

/// An empty sketch with the sizes of `BloomFilterBuilder.createBySize(bits, probes, seed)`.
///
/// # Errors
///
/// [`Invalid::Shape`] if there are no bits or probes, or too many.
pub fn with<T: ?Sized>(bits: u64, probes: u32, seed: u64) -> Result<Sketch<T>, Invalid> {
    let shape = Shape::foreign(0, bits.next_multiple_of(64), probes)?;
    let filter = bits::filter(shape, Hash { seed }, Positions, &[], Order::Lowest)?;
    Ok(Sketch { filter, counted: false })
}

/// The flag of an empty sketch.
const EMPTY: u8 = 4;
/// The value that stands for a missing count.
const NOT_COUNTED: u64 = u64::MAX;

/// Reads the sketch from these bytes. An empty sketch announces its number of bits without containing them:
/// they are allocated if there are no more than `max_empty_bits`.
///
/// # Errors
///
/// [`Invalid`] describes what is wrong with them.
pub fn read<T: ?Sized>(bytes: &[u8], max_empty_bits: u64) -> Result<Sketch<T>, Invalid> {
    let mut reader = Reader::new(bytes);
    let (longs, version, family, flags) = (reader.u8()?, reader.u8()?, reader.u8()?, reader.u8()?);
    if (version, family) != (1, 21) {
        return Err(Invalid::Magic { system: "DataSketches" });
    }
    let empty = flags & EMPTY != 0;
    if flags & !EMPTY != 0 {
        return Err(Invalid::Field { name: "flags", got: flags.into() });
    }
    if longs != if empty { 3 } else { 4 } {
        return Err(Invalid::Field { name: "preLongs", got: longs.into() });
    }
    let probes = reader.u16_le()?;
    zero("numHashes", reader.u16_le()?.into())?;
    let seed = reader.u64_le()?;
    let words = u64::from(reader.u32_le()?);
    zero("numLongs", reader.u32_le()?.into())?;
    let shape = Shape::foreign(0, words * 64, probes.into())?;
    let (hash, kernels) = (Hash { seed }, Positions);
    if empty {
        reader.end()?;
        if shape.bits() > max_empty_bits {
            let too_large = InvalidShape::TooLarge { bits: shape.bits(), max: max_empty_bits };
            return Err(too_large.into());
        }
        let filter = bits::filter(shape, hash, kernels, &[], Order::Lowest)?;
        return Ok(Sketch { filter, counted: true });
    }
    let set = reader.u64_le()?;
    let payload = reader.take_last(words * 8)?;
    let filter: BloomFilter<T> = bits::filter(shape, hash, kernels, payload, Order::Lowest)?;
    let counted = set != NOT_COUNTED;
    if counted && set != filter.count_ones() {
        return Err(Invalid::Field { name: "numBitsSet", got: set });
    }
    Ok(Sketch { filter, counted })
}

fn zero(name: &'static str, got: u64) -> Result<(), Invalid> {
    if got == 0 { Ok(()) } else { Err(Invalid::Field { name, got }) }
}

/// The bytes that `toByteArray` writes.
#[must_use]
pub fn write<T: ?Sized>(sketch: &Sketch<T>) -> Vec<u8> {
    let filter = &sketch.filter;
    let (words, empty) = (filter.words(), filter.is_empty());
    let mut bytes = vec![if empty { 3 } else { 4 }, 1, 21, if empty { EMPTY } else { 0 }];
    bytes.extend((filter.shape().probes() as u16).to_le_bytes());
    bytes.extend([0; 2]);
    bytes.extend(filter.hasher().seed.to_le_bytes());
    bytes.extend((words.len() as u32).to_le_bytes());
    bytes.extend([0; 4]);
    if !empty {
        let set = if sketch.counted { filter.count_ones() } else { NOT_COUNTED };
        bytes.extend(set.to_le_bytes());
        bits::write(&mut bytes, words, filter.bytes(), Order::Lowest);
    }
    bytes
}
