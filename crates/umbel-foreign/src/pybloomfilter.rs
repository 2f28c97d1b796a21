//! Python's `pybloomfiltermmap3`: a file that is mapped into memory. All numbers are in the byte order of the
//! machine that created the file, which is little-endian in practice.
//!
//! ```text
//!     magic      9 bytes: "MBITARRAY"
//!     bits       8 bytes
//!     header     4 bytes: how many bytes of header follow
//!                capacity, 8 bytes; rate, a double; probes, 4 bytes; 256 seeds of 4 bytes; and more, for Python only
//!     zeros      up to a multiple of 256 bytes
//!     bits       as many bytes as they take, the first bit of a byte its lowest
//!     hash       the halves of MurmurHash3_x64_128 with seed 0, 1, 2, ..., XORed
//!     positions  each modulo bits
//! ```
//!
//! | in Python | keys here |
//! |---|---|
//! | `str`, `bytes` | `str`, `[u8]` |
//! | `int` | `i64` |
//!
//! Other objects, including integers, use Python's `hash`: the number modulo 2^61 - 1, with its sign, and -2
//! for -1. So -1 and -2 are the same key.

use crate::bits::{self, Order};
use crate::error::Invalid;
use crate::hashes::{Hashes, Modulo};
use crate::read::Reader;
use umbel::bloom::Shape;
use umbel::hash::{Digester, Murmur3, Xxh64};

/// A filter of pybloomfiltermmap3.
pub type BloomFilter<T> = crate::BloomFilter<T, Hash, Positions>;

/// The maximum number of probes. Python accepts up to 256, and computes a full hash for each.
pub const MAX_PROBES: usize = 64;

/// The kernels.
pub type Positions = Modulo<MAX_PROBES>;

/// The hash: XXH64 with a seed for each probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hash {
    seeds: [u32; MAX_PROBES],
    probes: usize,
}

impl Hash {
    /// The seeds, one for each probe.
    #[must_use]
    pub fn seeds(&self) -> &[u32] {
        &self.seeds[..self.probes]
    }

    #[inline]
    fn of(&self, bytes: &[u8]) -> Hashes<MAX_PROBES> {
        Hashes::of(self.seeds().iter().map(|seed| {
            let (h1, h2) = Murmur3::seeded(*seed).hash128(bytes);
            h1 ^ h2
        }))
    }
}

digests! { Hash => Hashes<MAX_PROBES>, check Hash::check;
    [u8]: |hash, key| hash.of(key);
    str: |hash, key| hash.of(key.as_bytes());
    i64: |hash, key| hash.of(&python_hash(*key).to_le_bytes());
}

impl Hash {
    fn check(&self) -> u64 {
        let seeds: Vec<u8> = self.seeds().iter().flat_map(|seed| seed.to_le_bytes()).collect();
        Xxh64::default().digest(&seeds[..]).bits()
    }
}

/// Python's hash of an integer.
const fn python_hash(key: i64) -> i64 {
    const PRIME: u64 = (1 << 61) - 1;
    let hash = (key.unsigned_abs() % PRIME) as i64 * key.signum();
    if hash == -1 { -2 } else { hash }
}

/// A file: a filter, with its header.
#[derive(Debug)]
pub struct File<T: ?Sized> {
    /// The filter. Its capacity is that of the Python filter.
    pub filter: BloomFilter<T>,
    /// The planned rate.
    pub rate: f64,
    /// Everything before the bits.
    preamble: Vec<u8>,
}

pub(crate) const MAGIC: &[u8; 9] = b"MBITARRAY";
/// The bytes of the header: a structure of C on a machine of 64 bits.
const HEADER: usize = 1_200;
/// The positions of the version and of the flag for counted keys in the header: after the seeds and a pointer.
const VERSION: usize = 21 + 1_056;
const COUNTED: usize = VERSION + 1;
/// The bytes before the bits.
const PREAMBLE: usize = (9 + 8 + 4 + HEADER).next_multiple_of(256);

/// An empty filter with `bits` bits and these seeds. The Python library uses `ceil(capacity * abs(ln(rate)) /
/// (probes * ln(2)**2)) * probes` bits, and at least 128.
///
/// # Errors
///
/// [`Invalid::Shape`] if there are no bits or seeds, or too many.
pub fn with<T: ?Sized>(
    capacity: u64,
    rate: f64,
    bits: u64,
    seeds: &[u32],
) -> Result<File<T>, Invalid> {
    let mut preamble = Vec::with_capacity(PREAMBLE);
    preamble.extend(MAGIC);
    preamble.extend(bits.to_le_bytes());
    preamble.extend((HEADER as u32).to_le_bytes());
    preamble.extend(capacity.to_le_bytes());
    preamble.extend(rate.to_le_bytes());
    preamble.extend((seeds.len() as u32).to_le_bytes());
    preamble.extend(seeds.iter().flat_map(|seed| seed.to_le_bytes()));
    preamble.resize(PREAMBLE, 0);
    preamble[VERSION] = 1;
    preamble[COUNTED] = 1;
    let shape = Shape::foreign(capacity, bits, seeds.len() as u32)?;
    file(shape, rate, seeds.iter().copied(), preamble, &[])
}

fn file<T: ?Sized>(
    shape: Shape,
    rate: f64,
    seeds: impl Iterator<Item = u32>,
    preamble: Vec<u8>,
    payload: &[u8],
) -> Result<File<T>, Invalid> {
    let mut hash = Hash { seeds: [0; MAX_PROBES], probes: 0 };
    for (slot, seed) in hash.seeds.iter_mut().zip(seeds) {
        *slot = seed;
        hash.probes += 1;
    }
    let filter = bits::filter(shape, hash, Modulo, payload, Order::Lowest)?;
    Ok(File { filter, rate, preamble })
}

/// The file with these bytes.
///
/// # Errors
///
/// [`Invalid`] describes what is wrong with them.
pub fn read<T: ?Sized>(bytes: &[u8]) -> Result<File<T>, Invalid> {
    let mut reader = Reader::new(bytes);
    if reader.take(9)? != MAGIC {
        return Err(Invalid::Magic { system: "pybloomfiltermmap3" });
    }
    let (bits, header) = (reader.u64_le()?, reader.u32_le()?);
    if header != HEADER as u32 {
        return Err(Invalid::Field { name: "header_len", got: header.into() });
    }
    let (capacity, rate, probes) = (reader.u64_le()?, reader.f64_le()?, reader.u32_le()?);
    let shape = Shape::foreign(capacity, bits, probes)?;
    let seeds = reader.take(256 * 4)?.as_chunks::<4>().0;
    reader.take((PREAMBLE - reader.at()) as u64)?;
    let payload = reader.take_last(bits.div_ceil(8))?;
    let seeds = seeds.iter().take(probes as usize).map(|seed| u32::from_le_bytes(*seed));
    file(shape, rate, seeds, bytes[..PREAMBLE].to_vec(), payload)
}

/// The bytes of the file.
#[must_use]
pub fn write<T: ?Sized>(file: &File<T>) -> Vec<u8> {
    let mut bytes = file.preamble.clone();
    let payload = file.filter.shape().bits().div_ceil(8);
    bits::write(&mut bytes, file.filter.words(), payload, Order::Lowest);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from Python 3.
    #[test]
    fn integers_hash_as_in_python() {
        for (key, hash) in [
            (0, 0),
            (1, 1),
            (-1, -2),
            (-2, -2),
            ((1 << 61) - 1, 0),
            (1 << 61, 1),
            (-(1 << 61), -2),
            (i64::MAX, 3),
            (i64::MIN, -4),
        ] {
            assert_eq!(python_hash(key), hash, "{key}");
        }
    }
}
