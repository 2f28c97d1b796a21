//! `github.com/bits-and-blooms/bloom/v3` of Go: the bytes of `WriteTo`, and the JSON of `MarshalJSON`.
//!
//! ```text
//!     m          8 bytes big-endian: bits
//!     k          8 bytes: probes
//!     length     8 bytes: bits again, then words of 8 bytes
//!     hash       MurmurHash3_x64_128, seed 0, of the key, and of the key and a byte 1: h0, h1, h2, h3
//!     positions  h[i % 2] + i h[2 + (i + i % 2) % 4 / 2], in 64 bits that wrap round, modulo m
//!     JSON       {"m":bits,"k":probes,"b":"length and words in base64url"}
//! ```
//!
//! Keys are bytes. Programs that add numbers encode them first, most of them big-endian (`binary.BigEndian.PutUint32` in
//! the README): such keys are `[u8]` here.

use crate::bits::{self, Order};
use crate::error::Invalid;
use crate::murmur::murmur3_twice;
use crate::read::Reader;
use crate::unseeded;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use std::f64::consts::LN_2;
use umbel::bloom::Shape;
use umbel::kernels::Kernels;

/// A filter of bits-and-blooms.
pub type BloomFilter<T> = crate::BloomFilter<T, Hash, Positions>;

/// The hash: MurmurHash3 of a key, and of the key followed by a byte 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hash;

impl Hash {
    #[inline]
    fn of(bytes: &[u8]) -> Four {
        let [base, other_base, stride, other_stride] = murmur3_twice(bytes, 1);
        Four { base, stride, other_base, other_stride, number: 0 }
    }
}

digests! { Hash => Four, check unseeded;
    [u8]: |_hash, key| Hash::of(key);
    str: |_hash, key| Hash::of(key.as_bytes());
}

/// Four hashes of a key: the two for the next position, the two for the position after it, and the number of
/// the next position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Four {
    base: u64,
    stride: u64,
    other_base: u64,
    other_stride: u64,
    number: u64,
}

/// The kernels: four hashes, mixed in turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Positions;

impl Kernels for Positions {
    type Digest = Four;

    #[inline]
    fn step(&self, key: &mut Four, bits: u64) -> u64 {
        let position = key.base.wrapping_add(key.number.wrapping_mul(key.stride)) % bits;
        // The bases alternate with every position, the strides with every second one: 0 and 2, 1 and 3, 0 and
        // 3, 1 and 2.
        std::mem::swap(&mut key.base, &mut key.other_base);
        if key.number.is_multiple_of(2) {
            std::mem::swap(&mut key.stride, &mut key.other_stride);
        }
        key.number += 1;
        position
    }
}

/// An empty filter with the sizes of `NewWithEstimates(capacity, err_rate)`.
///
/// # Errors
///
/// [`Invalid::Shape`] if `err_rate` is not above 0 and below 1, or there would be no bits or too many.
pub fn new<T: ?Sized>(capacity: u64, err_rate: f64) -> Result<BloomFilter<T>, Invalid> {
    let rate = umbel::sizing::Rate::new(err_rate)?.get();
    let bits = (-(capacity as f64) * rate.ln() / (LN_2 * LN_2)).ceil();
    let probes = (LN_2 * bits / capacity as f64).ceil();
    with(bits as u64, probes as u32)
}

/// An empty filter with the sizes of `New(bits, probes)`, both at least 1.
///
/// # Errors
///
/// [`Invalid::Shape`] if there would be too many bits or probes.
pub fn with<T: ?Sized>(bits: u64, probes: u32) -> Result<BloomFilter<T>, Invalid> {
    let shape = Shape::foreign(0, bits.max(1), probes.max(1))?;
    bits::filter(shape, Hash, Positions, &[], Order::BigWords)
}

fn shape(bits: u64, probes: u64) -> Result<Shape, Invalid> {
    let probes = probes.try_into().map_err(|_| Invalid::Field { name: "k", got: probes })?;
    Ok(Shape::foreign(0, bits, probes)?)
}

/// Reads the length and the words.
fn read_bitset<T: ?Sized>(mut reader: Reader<'_>, shape: Shape) -> Result<BloomFilter<T>, Invalid> {
    let length = reader.u64_be()?;
    if length != shape.bits() {
        return Err(Invalid::Field { name: "length", got: length });
    }
    let payload = reader.take_last(shape.words() * 8)?;
    bits::filter(shape, Hash, Positions, payload, Order::BigWords)
}

fn write_bitset<T: ?Sized>(bytes: &mut Vec<u8>, filter: &BloomFilter<T>) {
    bytes.extend(filter.shape().bits().to_be_bytes());
    bits::write(bytes, filter.words(), filter.bytes(), Order::BigWords);
}

/// Reads the filter from these bytes.
///
/// # Errors
///
/// [`Invalid`] describes what is wrong with them.
pub fn read<T: ?Sized>(bytes: &[u8]) -> Result<BloomFilter<T>, Invalid> {
    let mut reader = Reader::new(bytes);
    let (bits, probes) = (reader.u64_be()?, reader.u64_be()?);
    read_bitset(reader, shape(bits, probes)?)
}

/// The bytes that `WriteTo` writes.
#[must_use]
pub fn write<T: ?Sized>(filter: &BloomFilter<T>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(24 + filter.bytes() as usize);
    bytes.extend(filter.shape().bits().to_be_bytes());
    bytes.extend(u64::from(filter.shape().probes()).to_be_bytes());
    write_bitset(&mut bytes, filter);
    bytes
}

/// The filter with this JSON.
///
/// # Errors
///
/// [`Invalid`] describes what is wrong with it.
pub fn read_json<T: ?Sized>(json: &str) -> Result<BloomFilter<T>, Invalid> {
    let fields: serde_json::Value = serde_json::from_str(json)
        .map_err(|_| Invalid::Encoding { expected: "JSON with the fields m, k and b" })?;
    let number = |name| {
        let number = fields.get(name).and_then(serde_json::Value::as_u64);
        number.ok_or(Invalid::Encoding { expected: "JSON with whole numbers m and k" })
    };
    let text = fields.get("b").and_then(serde_json::Value::as_str);
    let bitset = text.and_then(|text| URL_SAFE.decode(text).ok());
    let bitset =
        bitset.ok_or(Invalid::Encoding { expected: "bits in base64url as the field b" })?;
    read_bitset(Reader::new(&bitset), shape(number("m")?, number("k")?)?)
}

/// The JSON that `MarshalJSON` writes.
#[must_use]
pub fn write_json<T: ?Sized>(filter: &BloomFilter<T>) -> String {
    let mut bitset = Vec::with_capacity(8 + filter.bytes() as usize);
    write_bitset(&mut bitset, filter);
    let (bits, probes) = (filter.shape().bits(), filter.shape().probes());
    format!("{{\"m\":{bits},\"k\":{probes},\"b\":\"{}\"}}", URL_SAFE.encode(bitset))
}
