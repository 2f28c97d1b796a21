//! `github.com/DCSO/bloom` of Go, version 1, as `Write` writes it. All numbers are little-endian. The whole file may be
//! compressed with gzip.
//!
//! ```text
//!     flags      8 bytes: the version 1 in the lowest, the others 0
//!     n, p       8 bytes each: the capacity, and the rate as a double
//!     k, m       8 bytes each: probes and bits
//!     N          8 bytes: keys that set a bit when they were added
//!     words      m bits in words of 8 bytes, then data of the user's to the end
//!     hash       FNV-1 of 64 bits, modulo 2^64 - 59: h
//!     positions  h = h g in 64 bits, modulo 2^64 - 59, before each; h modulo m
//! ```
//!
//! Its hash is weak: at rates below 1e-4 there are more false positives than planned. Read these filters, but
//! do not choose this format for new ones.

use crate::bits::{self, Order};
use crate::error::Invalid;
use crate::read::Reader;
use crate::unseeded;
use flate2::read::MultiGzDecoder;
use std::f64::consts::LN_2;
use std::io::Read;
use umbel::bloom::Shape;
use umbel::kernels::Kernels;

/// A filter of DCSO.
pub type BloomFilter<T> = crate::BloomFilter<T, Hash, Positions>;

/// The largest prime below 2^64, and the generator.
const PRIME: u64 = 18_446_744_073_709_551_557;
const GENERATOR: u64 = 18_446_744_073_709_550_147;

/// The hash: FNV-1 of 64 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hash;

impl Hash {
    #[inline]
    fn of(bytes: &[u8]) -> u64 {
        let fnv = |hash: u64, byte: &u8| hash.wrapping_mul(0x100_0000_01b3) ^ u64::from(*byte);
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, fnv) % PRIME
    }
}

digests! { Hash => u64, check unseeded;
    [u8]: |_hash, key| Hash::of(key);
    str: |_hash, key| Hash::of(key.as_bytes());
}

/// The kernels: powers of a generator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Positions;

impl Kernels for Positions {
    type Digest = u64;

    #[inline]
    fn step(&self, hash: &mut u64, bits: u64) -> u64 {
        *hash = hash.wrapping_mul(GENERATOR) % PRIME;
        *hash % bits
    }
}

/// A file of DCSO: a filter, with the other content of the file.
#[derive(Debug)]
pub struct File<T: ?Sized> {
    /// The filter. Its capacity is the field `n`.
    pub filter: BloomFilter<T>,
    /// The field `p`: the planned rate.
    pub rate: f64,
    /// The field `N`: the number of keys that set a bit when they were added. [`insert`](Self::insert)
    /// increases it.
    pub inserted: u64,
    /// The data that the user has attached.
    pub data: Vec<u8>,
}

impl<T: ?Sized> File<T> {
    /// Inserts a key, and counts it if it is new.
    pub fn insert(&mut self, key: &T) -> bool
    where
        Hash: umbel::hash::Digester<T, u64>,
    {
        let fresh = self.filter.insert(key);
        self.inserted += u64::from(fresh);
        fresh
    }
}

/// An empty filter with the sizes of `Initialize(capacity, err_rate)`.
///
/// # Errors
///
/// [`Invalid::Shape`] if `err_rate` is not above 0 and below 1, or there would be no bits or too many.
pub fn new<T: ?Sized>(capacity: u64, err_rate: f64) -> Result<File<T>, Invalid> {
    let rate = umbel::sizing::Rate::new(err_rate)?.get();
    // Go rounds up while the number is negative, and removes the sign afterwards, so this rounds down.
    let bits = (capacity as f64 * rate.ln() / (LN_2 * LN_2)).ceil().abs();
    let probes = (LN_2 * bits / capacity as f64).ceil();
    let shape = Shape::foreign(capacity, bits as u64, probes as u32)?;
    let filter = bits::filter(shape, Hash, Positions, &[], Order::Lowest)?;
    Ok(File { filter, rate, inserted: 0, data: Vec::new() })
}

/// The bytes before the words.
const HEADER: u64 = 48;

/// The first bytes of a compressed file.
pub(crate) const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The maximum size of the data behind the filter in a compressed file.
const MAX_PACKED_DATA: u64 = 64 << 20;

/// Reads the file from these bytes, compressed or not. A compressed one may have at most 64 MiB of data.
///
/// # Errors
///
/// [`Invalid`] describes what is wrong with them.
pub fn read<T: ?Sized>(bytes: &[u8]) -> Result<File<T>, Invalid> {
    if !bytes.starts_with(&GZIP) {
        return read_plain(bytes);
    }
    let mut plain = Vec::new();
    let mut packed = MultiGzDecoder::new(bytes).take(HEADER);
    let gzip = |_| Invalid::Encoding { expected: "a stream of gzip" };
    packed.read_to_end(&mut plain).map_err(gzip)?;
    let (shape, ..) = header(&mut Reader::new(&plain))?;
    // Deflate compresses at most 1,032 bytes into one.
    let (expected, most) = (HEADER + shape.bytes(), (bytes.len() as u64).saturating_mul(1_032));
    if expected > most {
        return Err(Invalid::Length { expected, got: most });
    }
    packed.set_limit(shape.bytes() + MAX_PACKED_DATA + 1);
    packed.read_to_end(&mut plain).map_err(gzip)?;
    let (expected, got) = (expected + MAX_PACKED_DATA, plain.len() as u64);
    if got > expected {
        return Err(Invalid::Length { expected, got });
    }
    read_plain(&plain)
}

/// The fields: the shape, the rate, and the number of insertions.
fn header(reader: &mut Reader<'_>) -> Result<(Shape, f64, u64), Invalid> {
    let flags = reader.u64_le()?;
    if flags != 1 {
        return Err(Invalid::Field { name: "flags", got: flags });
    }
    let (capacity, rate) = (reader.u64_le()?, reader.f64_le()?);
    let (probes, bits, inserted) = (reader.u64_le()?, reader.u64_le()?, reader.u64_le()?);
    if !(rate > 0.0 && rate < 1.0) {
        return Err(Invalid::Fraction { name: "p", got: rate });
    }
    let probes = probes.try_into().map_err(|_| Invalid::Field { name: "k", got: probes })?;
    Ok((Shape::foreign(capacity, bits, probes)?, rate, inserted))
}

fn read_plain<T: ?Sized>(bytes: &[u8]) -> Result<File<T>, Invalid> {
    let mut reader = Reader::new(bytes);
    let (shape, rate, inserted) = header(&mut reader)?;
    let payload = reader.take(shape.bytes())?;
    let filter = bits::filter(shape, Hash, Positions, payload, Order::Lowest)?;
    Ok(File { filter, rate, inserted, data: reader.rest().to_vec() })
}

/// The bytes that `Write` writes, without compression.
#[must_use]
pub fn write<T: ?Sized>(file: &File<T>) -> Vec<u8> {
    let (filter, shape) = (&file.filter, file.filter.shape());
    let mut bytes = Vec::with_capacity(HEADER as usize + filter.bytes() as usize + file.data.len());
    let fields = [1, shape.items(), file.rate.to_bits(), shape.probes().into(), shape.bits()];
    bytes.extend(fields.iter().chain([&file.inserted]).flat_map(|field| field.to_le_bytes()));
    bits::write(&mut bytes, filter.words(), filter.bytes(), Order::Lowest);
    bytes.extend(&file.data);
    bytes
}
