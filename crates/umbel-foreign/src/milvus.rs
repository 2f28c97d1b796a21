//! Milvus' MBF1: a header, then Parquet's split-block filter. All numbers are little-endian.
//!
//! ```text
//!     magic      4 bytes: "MBF1"; then version 1 and algorithm 1, 2 bytes each
//!     n, rate    8 bytes each: as declared, the rate as a double
//!     blocks     4 bytes: a power of two, up to 2^22; blocks of 32 bytes follow the header
//!     domains    1 byte: 1 if there are numbers, 2 if there are texts; then 3 bytes of zeros
//! ```
//!
//! Hash and bits are those of [`umbel::split`]: keys are `i64` and `str`. A number and a text with the same
//! eight bytes have the same bits, so a key whose domain is not among `domains` is absent: query [`Envelope`],
//! not its filter.

use crate::error::Invalid;
use crate::read::Reader;
use umbel::SplitBlockBloomFilter;
use umbel::hash::Digester;
use umbel::split::{Plain, Shape};

/// The domain of numbers.
pub const INT64: u8 = 1;
/// The domain of texts.
pub const UTF8: u8 = 2;

/// A key of Milvus: a number or a text.
pub trait Domain {
    /// [`INT64`] or [`UTF8`].
    const DOMAIN: u8;
}

impl Domain for i64 {
    const DOMAIN: u8 = INT64;
}

impl Domain for str {
    const DOMAIN: u8 = UTF8;
}

/// A filter of Milvus, with its header.
#[derive(Debug)]
pub struct Envelope<T: ?Sized> {
    filter: SplitBlockBloomFilter<T>,
    declared: u64,
    rate: f64,
    domains: u8,
}

/// The maximum number of blocks.
const MAX_BLOCKS: u32 = 1 << 22;

pub(crate) const MAGIC: &[u8; 4] = b"MBF1";

impl<T: ?Sized> Envelope<T> {
    /// An empty filter for `declared` keys at this rate.
    ///
    /// # Errors
    ///
    /// [`Invalid::Fraction`] if the rate is not from 0.0001 to 0.05.
    pub fn new(declared: u64, rate: f64) -> Result<Self, Invalid> {
        if !(0.0001..=0.05).contains(&rate) {
            return Err(Invalid::Fraction { name: "fpr", got: rate });
        }
        let bits = -8.0 * declared as f64 / (1.0 - rate.powf(0.125)).ln();
        let bits = (bits.min(2_147_483_648.0) as u64).max(256).next_power_of_two();
        let blocks = (bits / 256).min(MAX_BLOCKS.into());
        let filter = SplitBlockBloomFilter::with(Shape::with(declared, blocks)?, Plain)?;
        Ok(Self { filter, declared, rate, domains: 0 })
    }

    /// Reads the envelope from these bytes.
    ///
    /// # Errors
    ///
    /// [`Invalid`] describes what is wrong with them.
    pub fn read(bytes: &[u8]) -> Result<Self, Invalid> {
        let mut reader = Reader::new(bytes);
        if reader.take(4)? != MAGIC {
            return Err(Invalid::Magic { system: "Milvus" });
        }
        for name in ["version", "algo"] {
            let got = reader.u16_le()?;
            if got != 1 {
                return Err(Invalid::Field { name, got: got.into() });
            }
        }
        let (declared, rate, blocks) = (reader.u64_le()?, reader.f64_le()?, reader.u32_le()?);
        if !blocks.is_power_of_two() || blocks > MAX_BLOCKS {
            return Err(Invalid::Field { name: "num_blocks", got: blocks.into() });
        }
        let last = reader.u32_le()?;
        if last & !u32::from(INT64 | UTF8) != 0 {
            return Err(Invalid::Field { name: "domains", got: last.into() });
        }
        let payload = reader.take_last(u64::from(blocks) * 32)?;
        let shape = Shape::with(declared, blocks.into())?;
        let mut filter = SplitBlockBloomFilter::with(shape, Plain)?;
        for (number, word) in payload.as_chunks::<8>().0.iter().enumerate() {
            filter.union_with_words(number, &[u64::from_le_bytes(*word)]);
        }
        Ok(Self { filter, declared, rate, domains: last as u8 })
    }

    /// The bytes of the envelope.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0, 1, 0]);
        bytes.extend(self.declared.to_le_bytes());
        bytes.extend(self.rate.to_le_bytes());
        bytes.extend((self.filter.words().len() as u32 / 4).to_le_bytes());
        bytes.extend([self.domains, 0, 0, 0]);
        bytes.extend(self.filter.words().iter().flat_map(|word| word.to_le_bytes()));
        bytes
    }

    /// The filter, which ignores domains.
    #[must_use]
    pub const fn filter(&self) -> &SplitBlockBloomFilter<T> {
        &self.filter
    }

    /// The domains of its keys: [`INT64`], [`UTF8`], or both.
    #[must_use]
    pub const fn domains(&self) -> u8 {
        self.domains
    }

    /// Whether a key may be in the filter.
    #[must_use]
    pub fn contains<K: Domain + ?Sized>(&self, key: &K) -> bool
    where
        Plain: Digester<K>,
    {
        self.domains & K::DOMAIN != 0 && self.filter.contains_digest(Plain.digest(key))
    }

    /// Inserts a key; returns whether it is new.
    pub fn insert<K: Domain + ?Sized>(&mut self, key: &K) -> bool
    where
        Plain: Digester<K>,
    {
        self.domains |= K::DOMAIN;
        self.filter.insert_digest(Plain.digest(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_domain_that_is_not_there_are_absent() {
        let mut envelope = Envelope::<str>::new(1_000, 0.005).unwrap();
        envelope.insert("abcdefgh");
        let number = i64::from_le_bytes(*b"abcdefgh");
        assert!(envelope.contains("abcdefgh") && !envelope.contains(&number));
        assert!(envelope.insert(&1_i64) && envelope.contains(&number));
        let bytes = envelope.write();
        let read = Envelope::<str>::read(&bytes).unwrap();
        assert_eq!((read.write(), read.domains()), (bytes, 3));
    }
}
