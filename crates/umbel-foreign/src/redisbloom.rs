//! RedisBloom's Bloom filters: the chunks of `BF.SCANDUMP`. Payloads of `DUMP` and files are read by [`rdb`](crate::rdb).
//!
//! ```text
//!     chain      8 bytes: keys; 4 bytes each: filters, options, growth
//!     filter     53 bytes for each: bytes, bits, keys, 8 bytes each; rate and bits per key as doubles; probes, 4 bytes;
//!                capacity, 8 bytes; the logarithm of the bits, 1 byte, if they are a power of two; all little-endian
//!     hash       MurmurHash64A with a seed, and with the first hash as seed: a, b
//!                without the option for 64 bits, MurmurHash2 of 32 bits
//!     positions  a, a + b, a + 2 b, ... in 64 bits that wrap round, modulo bits
//!     bits       the first bit of a byte its lowest
//! ```
//!
//! A filter that grows is a chain of filters. A key is present if one of them contains it. A new key is added
//! to the last one.

use crate::bits::{self, Order};
use crate::error::Invalid;
use crate::murmur::{M64, murmur2, murmur64a};
use crate::read::Reader;
use umbel::bloom::Shape;
use umbel::kernels::Kernels;

/// One filter of a chain.
pub type BloomFilter<T> = crate::BloomFilter<T, Hash, Positions>;

/// The hash: two Murmur hashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hash {
    /// MurmurHash2 of 32 bits, in filters from before 2019.
    Old,
    /// MurmurHash64A.
    #[default]
    Wide,
}

impl Hash {
    #[inline]
    fn of(self, bytes: &[u8]) -> (u64, u64) {
        match self {
            Self::Old => {
                let a = murmur2(bytes, 0x9747_b28c);
                (a.into(), murmur2(bytes, a).into())
            }
            Self::Wide => {
                let a = murmur64a(bytes, M64);
                (a, murmur64a(bytes, a))
            }
        }
    }
}

digests! { Hash => (u64, u64), check Hash::check;
    [u8]: |hash, key| hash.of(key);
    str: |hash, key| hash.of(key.as_bytes());
}

impl Hash {
    fn check(&self) -> u64 {
        *self as u64
    }
}

/// The kernels: double hashing in 64 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Positions;

impl Kernels for Positions {
    type Digest = (u64, u64);

    #[inline]
    fn step(&self, (at, stride): &mut (u64, u64), bits: u64) -> u64 {
        let position = *at % bits;
        *at = at.wrapping_add(*stride);
        position
    }
}

/// RedisBloom's fields of one filter, without its bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fields {
    /// The number of keys that were added.
    pub size: u64,
    /// The planned rate.
    pub error: f64,
    /// The number of bits for each key of its capacity.
    pub bits_per_entry: f64,
    /// The planned number of keys.
    pub entries: u64,
    /// The base-2 logarithm of the number of bits, if it was rounded up to a power of two; otherwise 0.
    pub n2: u8,
}

/// ln(2), with RedisBloom's number of digits.
#[allow(clippy::approx_constant, reason = "the last digit is missing there too")]
const LN2: f64 = 0.693_147_180_559_945;

/// The option for 64-bit hashes, and all known options: bits not rounded up, 64-bit hashes, no growth, raw.
const FORCE64: u32 = 4;
const ALL_OPTIONS: u32 = 15;

impl Fields {
    /// Checks that the fields match each other, the bits and the probes.
    fn check(&self, bits: u64, probes: u64) -> Result<(), Invalid> {
        if self.entries == 0 {
            return Err(Invalid::Field { name: "entries", got: 0 });
        }
        if !(self.error > 0.0 && self.error < 1.0) {
            return Err(Invalid::Fraction { name: "error", got: self.error });
        }
        let per_entry = self.bits_per_entry;
        if !(per_entry > 0.0 && per_entry <= 1_600.0) {
            return Err(Invalid::Fraction { name: "bpe", got: per_entry });
        }
        if probes as f64 != (LN2 * per_entry).ceil() {
            return Err(Invalid::Field { name: "hashes", got: probes });
        }
        if !bits.is_multiple_of(8) {
            return Err(Invalid::Field { name: "bits", got: bits });
        }
        if self.n2 != 0 && (self.n2 >= 64 || bits != 1 << self.n2) {
            return Err(Invalid::Field { name: "n2", got: self.n2.into() });
        }
        Ok(())
    }
}

/// A chain of filters.
#[derive(Debug)]
pub struct Chain<T: ?Sized> {
    links: Vec<(BloomFilter<T>, Fields)>,
    size: u64,
    options: u32,
    growth: u32,
}

impl<T: ?Sized> Chain<T> {
    /// The filters, from the oldest to the newest, with their fields.
    #[must_use]
    pub fn links(&self) -> &[(BloomFilter<T>, Fields)] {
        &self.links
    }

    /// The number of added keys that were new.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// RedisBloom's options, as bits.
    #[must_use]
    pub const fn options(&self) -> u32 {
        self.options
    }

    /// The ratio of the capacity of a new filter to that of the one before.
    #[must_use]
    pub const fn growth(&self) -> u32 {
        self.growth
    }

    /// Whether one of the filters contains the key.
    #[must_use]
    pub fn contains(&self, key: &T) -> bool
    where
        Hash: umbel::hash::Digester<T, (u64, u64)>,
    {
        let Some((first, _)) = self.links.first() else { return false };
        let digest = umbel::hash::Digester::digest(first.hasher(), key);
        self.links.iter().rev().any(|(link, _)| link.contains_digest(digest))
    }

    /// Adds a key to the last filter, if none contains it; returns whether it was added. The chain does not
    /// grow here: past its capacity the last filter accepts keys at a rising false positive rate.
    pub fn insert(&mut self, key: &T) -> bool
    where
        Hash: umbel::hash::Digester<T, (u64, u64)>,
    {
        if self.contains(key) {
            return false;
        }
        let Some((last, fields)) = self.links.last_mut() else { return false };
        last.insert(key);
        fields.size += 1;
        self.size += 1;
        true
    }

    /// The chain with these links.
    pub(crate) fn of(
        links: Vec<(BloomFilter<T>, Fields)>,
        size: u64,
        options: u32,
        growth: u32,
    ) -> Result<Self, Invalid> {
        if links.is_empty() {
            return Err(Invalid::Field { name: "nfilters", got: 0 });
        }
        let sum = links.iter().try_fold(0_u64, |sum, (_, link)| sum.checked_add(link.size));
        if sum != Some(size) {
            return Err(Invalid::Field { name: "size", got: size });
        }
        Ok(Self { links, size, options, growth })
    }

    /// Reads the chain from these chunks: the replies to the calls of `BF.SCANDUMP`, in their order, without
    /// the iterators.
    ///
    /// # Errors
    ///
    /// [`Invalid`] describes what is wrong with them.
    pub fn read<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Result<Self, Invalid> {
        let mut chunks = chunks.into_iter();
        let mut reader = Reader::new(chunks.next().unwrap_or_default());
        let (size, count) = (reader.u64_le()?, reader.u32_le()?);
        let (options, growth) = (reader.u32_le()?, reader.u32_le()?);
        let hash = hash_of(options)?;
        let mut left: &[u8] = &[];
        let mut links = Vec::new();
        for _ in 0..count {
            let (bytes, bits, size) = (reader.u64_le()?, reader.u64_le()?, reader.u64_le()?);
            let (error, bits_per_entry) = (reader.f64_le()?, reader.f64_le()?);
            let (probes, entries, n2) = (reader.u32_le()?, reader.u64_le()?, reader.u8()?);
            if bytes.checked_mul(8) != Some(bits) {
                return Err(Invalid::Field { name: "bytes", got: bytes });
            }
            let fields = Fields { size, error, bits_per_entry, entries, n2 };
            let payload = gather(bytes, &mut left, &mut chunks)?;
            links.push((link(hash, fields, bits, probes.into(), &payload)?, fields));
        }
        reader.end()?;
        let more = left.len() + chunks.map(<[u8]>::len).sum::<usize>();
        if more > 0 {
            return Err(Invalid::Length { expected: 0, got: more as u64 });
        }
        Self::of(links, size, options, growth)
    }

    /// The chunks of `BF.SCANDUMP`, each with the iterator that `BF.LOADCHUNK` needs.
    #[must_use]
    pub fn write(&self) -> Vec<(u64, Vec<u8>)> {
        const CHUNK: usize = 16 << 20;
        let mut header = self.size.to_le_bytes().to_vec();
        for number in [self.links.len() as u32, self.options, self.growth] {
            header.extend(number.to_le_bytes());
        }
        for (link, fields) in &self.links {
            let bits = link.shape().bits();
            header.extend([bits / 8, bits, fields.size].iter().flat_map(|n| n.to_le_bytes()));
            header.extend(fields.error.to_le_bytes());
            header.extend(fields.bits_per_entry.to_le_bytes());
            header.extend(link.shape().probes().to_le_bytes());
            header.extend(fields.entries.to_le_bytes());
            header.push(fields.n2);
        }
        let (mut chunks, mut iterator) = (vec![(1, header)], 1);
        for (link, _) in &self.links {
            for chunk in payload(link).chunks(CHUNK) {
                iterator += chunk.len() as u64;
                chunks.push((iterator, chunk.to_vec()));
            }
        }
        chunks
    }
}

/// The hash that these options select.
pub(crate) fn hash_of(options: u32) -> Result<Hash, Invalid> {
    if options & !ALL_OPTIONS != 0 {
        return Err(Invalid::Field { name: "options", got: options.into() });
    }
    Ok(if options & FORCE64 == 0 { Hash::Old } else { Hash::Wide })
}

/// The filter with these fields and bits.
pub(crate) fn link<T: ?Sized>(
    hash: Hash,
    fields: Fields,
    bits: u64,
    probes: u64,
    payload: &[u8],
) -> Result<BloomFilter<T>, Invalid> {
    fields.check(bits, probes)?;
    let shape = Shape::foreign(fields.entries, bits, probes as u32)?;
    if payload.len() as u64 != bits / 8 {
        return Err(Invalid::Length { expected: bits / 8, got: payload.len() as u64 });
    }
    bits::filter(shape, hash, Positions, payload, Order::Lowest)
}

/// The bits of a filter, as bytes.
pub(crate) fn payload<T: ?Sized>(link: &BloomFilter<T>) -> Vec<u8> {
    let mut bytes = Vec::new();
    bits::write(&mut bytes, link.words(), link.shape().bits() / 8, Order::Lowest);
    bytes
}

/// The next `length` bytes, from the rest of a chunk and the following chunks.
fn gather<'a>(
    bytes: u64,
    left: &mut &'a [u8],
    chunks: &mut impl Iterator<Item = &'a [u8]>,
) -> Result<Vec<u8>, Invalid> {
    let mut gathered = Vec::new();
    while (gathered.len() as u64) < bytes {
        if left.is_empty() {
            let Some(next) = chunks.next() else {
                return Err(Invalid::Length { expected: bytes, got: gathered.len() as u64 });
            };
            *left = next;
        }
        let taken = left.len().min((bytes - gathered.len() as u64) as usize);
        gathered.extend(&left[..taken]);
        *left = &left[taken..];
    }
    Ok(gathered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use umbel::hash::Digester;

    /// RedisBloom issue 317: the set bits of a filter of one key.
    #[test]
    fn positions_are_those_of_redisbloom() {
        let mut positions: Vec<u64> =
            Positions.positions(Hash::Wide.digest("cfq"), 1_152).take(8).collect();
        positions.sort_unstable();
        assert_eq!(positions, [376, 457, 666, 747, 828, 909, 990, 1_071]);
    }
}
