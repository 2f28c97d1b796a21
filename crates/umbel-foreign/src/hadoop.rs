//! `org.apache.hadoop.util.bloom.BloomFilter` and `DynamicBloomFilter`, as `write` writes them. All numbers are big-endian.
//!
//! ```text
//!     version    4 bytes: -1. The oldest files lack it and the hash type: they begin with nbHash, and are of Jenkins
//!     nbHash     4 bytes: probes
//!     hash type  1 byte: 0 Jenkins' lookup3, 1 Hadoop's MurmurHash2
//!     vectorSize 4 bytes: bits, then as many in bytes, the first bit of a byte its lowest
//!     hash       h1 = hash of the key from 0 on, h2 = hash of the key from h1 on, ...
//!     positions  |h1 % bits|, |h2 % bits|, ... of numbers with a sign
//!     dynamic    the same fields, then nr, currentNbRecord and the number of rows, 4 bytes each; then every row as a
//!                filter of its own
//! ```
//!
//! The MurmurHash2 differs from the published one: it reads the last one to three bytes from the end, and as
//! signed.

use crate::bits::{self, Order};
use crate::error::Invalid;
use crate::hashes::{Hashes, Modulo};
use crate::murmur::hadoop_murmur;
use crate::read::Reader;
use umbel::bloom::Shape;

/// A filter of Hadoop.
pub type BloomFilter<T> = crate::BloomFilter<T, Hash, Positions>;

/// The maximum number of probes. Hadoop accepts any number, and computes a full hash for each.
pub const MAX_PROBES: usize = 64;

/// The kernels.
pub type Positions = Modulo<MAX_PROBES>;

/// The hash of a filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HashType {
    /// Bob Jenkins' lookup3, in files without a hash type.
    Unversioned,
    /// Bob Jenkins' lookup3.
    Jenkins,
    /// Hadoop's own MurmurHash2.
    #[default]
    Murmur,
}

/// The hash: each is seeded with the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hash {
    kind: HashType,
    probes: u32,
}

impl Hash {
    /// The kind of the hash.
    #[must_use]
    pub const fn kind(&self) -> HashType {
        self.kind
    }

    #[inline]
    fn of(self, bytes: &[u8]) -> Hashes<MAX_PROBES> {
        let mut hash = 0;
        Hashes::of((0..self.probes).map(|_| {
            hash = match self.kind {
                HashType::Murmur => hadoop_murmur(bytes, hash),
                HashType::Jenkins | HashType::Unversioned => jenkins(bytes, hash),
            };
            // |h % bits| and |h| % bits are equal, because the remainder has the sign of h.
            (hash as i32).unsigned_abs().into()
        }))
    }
}

digests! { Hash => Hashes<MAX_PROBES>, check Hash::check;
    [u8]: |hash, key| hash.of(key);
    str: |hash, key| hash.of(key.as_bytes());
}

impl Hash {
    fn check(&self) -> u64 {
        u64::from(self.kind == HashType::Murmur)
    }
}

/// lookup3, `hashlittle` (Bob Jenkins, 2006, in the public domain).
fn jenkins(key: &[u8], seed: u32) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(key.len() as u32).wrapping_add(seed);
    let [mut a, mut b, mut c] = [start; 3];
    let mut rest = key;
    let add = |block: &[u8], a: &mut u32, b: &mut u32, c: &mut u32| {
        let mut whole = [0; 12];
        whole[..block.len()].copy_from_slice(block);
        for (word, bytes) in [a, b, c].into_iter().zip(whole.as_chunks::<4>().0) {
            *word = word.wrapping_add(u32::from_le_bytes(*bytes));
        }
    };
    while rest.len() > 12 {
        let (block, more) = rest.split_at(12);
        add(block, &mut a, &mut b, &mut c);
        for turns in [[4, 6, 8], [16, 19, 4]] {
            a = a.wrapping_sub(c) ^ c.rotate_left(turns[0]);
            c = c.wrapping_add(b);
            b = b.wrapping_sub(a) ^ a.rotate_left(turns[1]);
            a = a.wrapping_add(c);
            c = c.wrapping_sub(b) ^ b.rotate_left(turns[2]);
            b = b.wrapping_add(a);
        }
        rest = more;
    }
    if rest.is_empty() {
        return c;
    }
    add(rest, &mut a, &mut b, &mut c);
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

/// An empty filter, as `new BloomFilter(bits, probes, hash type)` creates it.
///
/// # Errors
///
/// [`Invalid::Shape`] if there are no bits or probes, or too many.
pub fn with<T: ?Sized>(bits: u32, probes: u32, kind: HashType) -> Result<BloomFilter<T>, Invalid> {
    Fields { kind, probes, bits }.filter(&[])
}

/// The fields before the bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fields {
    kind: HashType,
    probes: u32,
    bits: u32,
}

impl Fields {
    fn of<T: ?Sized>(filter: &BloomFilter<T>) -> Self {
        let Hash { kind, probes } = *filter.hasher();
        Self { kind, probes, bits: filter.shape().bits() as u32 }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let first = reader.u32_be()?;
        let (kind, probes) = match first as i32 {
            -1 => {
                let probes = reader.u32_be()?;
                match reader.u8()? {
                    0 => (HashType::Jenkins, probes),
                    1 => (HashType::Murmur, probes),
                    other => return Err(Invalid::Field { name: "hashType", got: other.into() }),
                }
            }
            1.. => (HashType::Unversioned, first),
            _ => return Err(Invalid::Field { name: "version", got: first.into() }),
        };
        let bits = reader.u32_be()?;
        if bits == 0 || bits > i32::MAX as u32 {
            return Err(Invalid::Field { name: "vectorSize", got: bits.into() });
        }
        Ok(Self { kind, probes, bits })
    }

    fn write(self, bytes: &mut Vec<u8>) {
        if self.kind != HashType::Unversioned {
            bytes.extend((-1_i32).to_be_bytes());
        }
        bytes.extend(self.probes.to_be_bytes());
        match self.kind {
            HashType::Unversioned => {}
            HashType::Jenkins => bytes.push(0),
            HashType::Murmur => bytes.push(1),
        }
        bytes.extend(self.bits.to_be_bytes());
    }

    fn payload(self) -> u64 {
        u64::from(self.bits).div_ceil(8)
    }

    fn filter<T: ?Sized>(self, payload: &[u8]) -> Result<BloomFilter<T>, Invalid> {
        let shape = Shape::foreign(0, self.bits.into(), self.probes)?;
        let hash = Hash { kind: self.kind, probes: self.probes };
        bits::filter(shape, hash, Modulo, payload, Order::Lowest)
    }
}

fn read_one<T: ?Sized>(reader: &mut Reader<'_>) -> Result<BloomFilter<T>, Invalid> {
    let fields = Fields::read(reader)?;
    fields.filter(reader.take(fields.payload())?)
}

fn write_one<T: ?Sized>(bytes: &mut Vec<u8>, filter: &BloomFilter<T>) {
    let fields = Fields::of(filter);
    fields.write(bytes);
    bits::write(bytes, filter.words(), fields.payload(), Order::Lowest);
}

/// Reads the filter from these bytes.
///
/// # Errors
///
/// [`Invalid`] describes what is wrong with them.
pub fn read<T: ?Sized>(bytes: &[u8]) -> Result<BloomFilter<T>, Invalid> {
    let mut reader = Reader::new(bytes);
    let filter = read_one(&mut reader)?;
    reader.end()?;
    Ok(filter)
}

/// The bytes that `write` writes.
#[must_use]
pub fn write<T: ?Sized>(filter: &BloomFilter<T>) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_one(&mut bytes, filter);
    bytes
}

/// A dynamic filter: rows of the same size, of which the last one accepts keys until it is full.
#[derive(Debug)]
pub struct Dynamic<T: ?Sized> {
    /// The rows. A key is present if one of them contains it.
    rows: Vec<BloomFilter<T>>,
    fields: Fields,
    per_row: u32,
    in_last: u32,
}

impl<T: ?Sized> Dynamic<T> {
    /// An empty filter, as `new DynamicBloomFilter(bits, probes, hash type, keys per row)` creates it.
    ///
    /// # Errors
    ///
    /// [`Invalid::Shape`] if there are no bits or probes, or too many.
    pub fn with(bits: u32, probes: u32, kind: HashType, per_row: u32) -> Result<Self, Invalid> {
        let fields = Fields { kind, probes, bits };
        Ok(Self { rows: vec![fields.filter(&[])?], fields, per_row, in_last: 0 })
    }

    /// The rows.
    #[must_use]
    pub fn rows(&self) -> &[BloomFilter<T>] {
        &self.rows
    }

    /// The maximum number of keys per row.
    #[must_use]
    pub const fn keys_per_row(&self) -> u32 {
        self.per_row
    }

    /// Whether one of the rows contains the key.
    #[must_use]
    pub fn contains(&self, key: &T) -> bool
    where
        Hash: umbel::hash::Digester<T, Hashes<MAX_PROBES>>,
    {
        self.rows.iter().any(|row| row.contains(key))
    }

    /// Adds a key to the last row, or to a new one if the last row is full. As in Hadoop, this does not check
    /// whether a row already contains the key.
    ///
    /// # Errors
    ///
    /// [`Invalid::Shape`] if there is not enough memory for a new row.
    pub fn insert(&mut self, key: &T) -> Result<(), Invalid>
    where
        Hash: umbel::hash::Digester<T, Hashes<MAX_PROBES>>,
    {
        if self.in_last as i32 >= self.per_row as i32 || self.rows.is_empty() {
            self.rows.push(self.fields.filter(&[])?);
            self.in_last = 0;
        }
        if let Some(last) = self.rows.last_mut() {
            last.insert(key);
        }
        self.in_last += 1;
        Ok(())
    }

    /// Reads the filter from these bytes.
    ///
    /// # Errors
    ///
    /// [`Invalid`] describes what is wrong with them.
    pub fn read(bytes: &[u8]) -> Result<Self, Invalid> {
        let mut reader = Reader::new(bytes);
        let fields = Fields::read(&mut reader)?;
        let (per_row, in_last, count) = (reader.u32_be()?, reader.u32_be()?, reader.u32_be()?);
        // Every row has bytes, so the number of bytes limits the number of rows.
        let mut rows = Vec::new();
        for _ in 0..count {
            let row: BloomFilter<T> = read_one(&mut reader)?;
            if Fields::of(&row) != fields {
                return Err(Invalid::Field { name: "vectorSize", got: row.shape().bits() });
            }
            rows.push(row);
        }
        reader.end()?;
        Ok(Self { rows, fields, per_row, in_last })
    }

    /// The bytes that `write` writes.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.fields.write(&mut bytes);
        for number in [self.per_row, self.in_last, self.rows.len() as u32] {
            bytes.extend(number.to_be_bytes());
        }
        for row in &self.rows {
            write_one(&mut bytes, row);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from the driver in Bob Jenkins' lookup3.c.
    #[test]
    fn lookup3_gives_the_published_hashes() {
        let key = b"Four score and seven years ago";
        assert_eq!(jenkins(key, 0), 0x1777_0551);
        assert_eq!(jenkins(key, 1), 0xcd62_8161);
        assert_eq!(jenkins(b"", 0), 0xdead_beef);
        assert_eq!(jenkins(b"", 0xdead_beef), 0xbd5b_7dde);
    }
}
