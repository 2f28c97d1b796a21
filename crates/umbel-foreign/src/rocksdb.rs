//! RocksDB's full filter blocks, and their position in an SST.
//!
//! ```text
//!     block      bits or segments, then 5 bytes: 255, 0, probes, 0, 0 for a Bloom filter;
//!                254, seed, blocks in 3 bytes for a Ribbon filter
//!     hash       a preview of XXH3, frozen in RocksDB, of a key without its sequence number
//!     Bloom      the lower half of the hash, scaled to the lines of 64 bytes, is the line; the upper half gives nine bits of
//!                a position in it for each probe, and is multiplied by 0x9e3779b9 after it
//!     Ribbon     128 coefficients from the hash, against columns of bits in segments of 128 slots
//!     SST        the last bytes tell where the metaindex is; its entry `fullfilter.*` tells where the block is
//! ```
//!
//! Blocks are found in SSTs of the versions 2 to 7 of the block-based format. Partitioned filters are refused.

use crate::bits::{self, Order};
use crate::error::Invalid;
use crate::read::Reader;
use crate::{unseeded, xxph3};
use std::ops::Range;
use umbel::InvalidShape;
use umbel::bloom::Shape;
use umbel::kernels::Kernels;

/// A Bloom filter of RocksDB's (`FastLocalBloom`).
pub type BloomFilter<T> = crate::BloomFilter<T, Hash, Positions>;

/// The hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hash;

impl Hash {
    #[inline]
    fn of(bytes: &[u8]) -> (u32, u32) {
        let hash = xxph3::hash(bytes);
        (hash as u32, (hash >> 32) as u32)
    }
}

digests! { Hash => (u32, u32), check unseeded;
    [u8]: |_hash, key| Hash::of(key);
    str: |_hash, key| Hash::of(key.as_bytes());
}

/// The kernels: all positions are in one line of 512 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Positions;

impl Kernels for Positions {
    type Digest = (u32, u32);

    #[inline]
    fn step(&self, (line, bit): &mut (u32, u32), bits: u64) -> u64 {
        let line = (u64::from(*line) * (bits / 512)) >> 32;
        let position = line * 512 + u64::from(*bit >> 23);
        *bit = bit.wrapping_mul(0x9e37_79b9);
        position
    }

    /// The shape must have whole lines, and no more probes than five bits can store.
    fn accept(&self, shape: &Shape) -> Result<(), InvalidShape> {
        let (bits, probes) = (shape.bits(), shape.probes());
        InvalidShape::check_range("probes", probes.into(), 1, 30)?;
        match bits {
            bits if !bits.is_multiple_of(512) => {
                Err(InvalidShape::NotAMultiple { what: "bits", got: bits, of: 512 })
            }
            bits if bits >> 35 != 0 => Err(InvalidShape::TooLarge { bits, max: 1 << 35 }),
            _ => Ok(()),
        }
    }
}

/// An empty Bloom filter of `lines` lines of 64 bytes.
///
/// # Errors
///
/// [`Invalid::Shape`] if there are no lines or probes, or too many.
pub fn with<T: ?Sized>(lines: u64, probes: u32) -> Result<BloomFilter<T>, Invalid> {
    let shape = Shape::foreign(0, lines.saturating_mul(512), probes)?;
    bits::filter(shape, Hash, Positions, &[], Order::Lowest)
}

/// A Ribbon filter of RocksDB (`Standard128Ribbon`): a static set, so no keys can be inserted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ribbon {
    ordinal: u8,
    blocks: u32,
    segments: Vec<u8>,
}

/// The bits of a segment.
const SEGMENT: u64 = 128;

impl Ribbon {
    /// Whether a key may be in the set.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        let mut seed = u64::from(self.ordinal).wrapping_mul(0xc782_19a2_3eea_dd03);
        seed ^= (seed & 0xf0f0_f0f0_f0f0_f0f0) >> 4;
        let hash = xxph3::hash(key) ^ u64::from(seed as u32);
        let hash = hash.wrapping_mul(0x6193_d459_236a_3a0d);
        let (blocks, segments) = (u64::from(self.blocks), self.segments.as_chunks::<16>().0);
        let starts = blocks * SEGMENT - (SEGMENT - 1);
        let start = ((u128::from(hash) * u128::from(starts)) >> 64) as u64;
        // The first blocks have one column fewer than the others.
        let count = segments.len() as u64;
        let (most, mut few) = (count.div_ceil(blocks), 0);
        let upper = if most > 32 { 32 } else { most };
        if most == upper {
            few = most * blocks - count;
        }
        let block = start / SEGMENT;
        let from = (block * upper - block.min(few)) as usize;
        let columns = (upper - u64::from(block < few)) as usize;
        let expanded = hash.wrapping_mul(0xc28f_8282_2b65_0bed);
        let low = expanded ^ 0xc367_844a_6e52_731d;
        let row = (u128::from(expanded) << 64 | u128::from(low)) | 1;
        let (result, bit) = (expanded.swap_bytes() as u32, (start % SEGMENT) as u32);
        let segment = |number: usize| u128::from_le_bytes(segments[number]);
        (0..columns).all(|column| {
            let mut bits = segment(from + column) & row << bit;
            if bit > 0 {
                bits ^= segment(from + columns + column) & row >> (128 - bit);
            }
            bits.count_ones() & 1 == result >> column & 1
        })
    }
}

/// A full filter block.
#[derive(Debug)]
#[non_exhaustive]
pub enum Block {
    /// `FastLocalBloom`.
    Bloom(BloomFilter<[u8]>),
    /// `Standard128Ribbon`.
    Ribbon(Ribbon),
}

impl Block {
    /// Whether a key may be in the set.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        match self {
            Self::Bloom(filter) => filter.contains(key),
            Self::Ribbon(filter) => filter.contains(key),
        }
    }
}

/// Reads the filter from these bytes, without the 5 bytes that follow every block of an SST.
///
/// # Errors
///
/// [`Invalid`] describes what is wrong with them.
pub fn read(bytes: &[u8]) -> Result<Block, Invalid> {
    let Some((payload, trailer)) = bytes.split_last_chunk::<5>() else {
        return Err(Invalid::Length { expected: 6, got: bytes.len() as u64 });
    };
    match *trailer {
        [255, 0, probes, 0, 0] if probes >> 5 == 0 => {
            let shape = Shape::foreign(0, payload.len() as u64 * 8, probes.into())?;
            let filter = bits::filter(shape, Hash, Positions, payload, Order::Lowest)?;
            Ok(Block::Bloom(filter))
        }
        [254, ordinal, low, middle, high] => {
            let blocks = u32::from_le_bytes([low, middle, high, 0]);
            if blocks < 2 {
                return Err(Invalid::Field { name: "num_blocks", got: blocks.into() });
            }
            if !payload.len().is_multiple_of(16) {
                let expected = payload.len().next_multiple_of(16) as u64 + 5;
                return Err(Invalid::Length { expected, got: bytes.len() as u64 });
            }
            Ok(Block::Ribbon(Ribbon { ordinal, blocks, segments: payload.to_vec() }))
        }
        [marker, ..] => Err(Invalid::Field { name: "filter marker", got: marker.into() }),
    }
}

/// The bytes of a filter.
#[must_use]
pub fn write(block: &Block) -> Vec<u8> {
    let mut bytes = Vec::new();
    match block {
        Block::Bloom(filter) => {
            let payload = filter.shape().bits() / 8;
            bits::write(&mut bytes, filter.words(), payload, Order::Lowest);
            bytes.extend([255, 0, filter.shape().probes() as u8, 0, 0]);
        }
        Block::Ribbon(Ribbon { ordinal, blocks, segments }) => {
            bytes.extend(segments);
            bytes.extend([254, *ordinal]);
            bytes.extend(&blocks.to_le_bytes()[..3]);
        }
    }
    bytes
}

/// The last bytes of an SST.
pub(crate) const MAGIC: [u8; 8] = 0x88e2_41b7_85f4_cff7_u64.to_le_bytes();

/// The bytes behind every block: its compression, and a checksum.
const TRAILER: u64 = 5;

/// The position of the full filter block in an SST, without the bytes behind it. `None` if the SST has no
/// filter.
///
/// # Errors
///
/// [`Invalid`] describes what is wrong with the SST; [`Invalid::Field`] `partitionedfilter` if its filter is
/// partitioned.
pub fn find(sst: &[u8]) -> Result<Option<Range<usize>>, Invalid> {
    const FOOTER: usize = 53;
    let Some(footer) = sst.last_chunk::<FOOTER>().filter(|footer| footer.ends_with(&MAGIC)) else {
        return Err(Invalid::Magic { system: "RocksDB" });
    };
    let mut reader = Reader::new(&footer[1..]);
    let version = u32::from_le_bytes([footer[41], footer[42], footer[43], footer[44]]);
    let metaindex = match version {
        2..=5 => handle(&mut reader, sst)?,
        6 | 7 => {
            let (magic, _, _, size) =
                (reader.u32_le()?, reader.u32_le()?, reader.u32_le()?, reader.u32_le()?);
            if magic != 0x007a_003e {
                return Err(Invalid::Field { name: "extended magic", got: magic.into() });
            }
            // It is the last block.
            let end = ((sst.len() - FOOTER) as u64).checked_sub(TRAILER);
            let start = end.and_then(|end| end.checked_sub(size.into()));
            let field = Invalid::Field { name: "metaindex size", got: size.into() };
            start.ok_or(field)? as usize..end.ok_or(field)? as usize
        }
        _ => return Err(Invalid::Field { name: "format_version", got: version.into() }),
    };
    if sst[metaindex.end] != 0 {
        return Err(Invalid::Encoding { expected: "a metaindex that is not compressed" });
    }
    let block = &sst[metaindex];
    let Some((entries, restarts)) = block.split_last_chunk::<4>() else {
        return Err(Invalid::Length { expected: 4, got: block.len() as u64 });
    };
    let restarts = u64::from(u32::from_le_bytes(*restarts)) * 4;
    let Some(end) = (entries.len() as u64).checked_sub(restarts) else {
        return Err(Invalid::Field { name: "num_restarts", got: restarts / 4 });
    };
    let (mut reader, mut key) = (Reader::new(&entries[..end as usize]), Vec::new());
    while !reader.rest().is_empty() {
        let (shared, own, length) =
            (varint(&mut reader)?, varint(&mut reader)?, varint(&mut reader)?);
        if shared > key.len() as u64 {
            return Err(Invalid::Field { name: "shared", got: shared });
        }
        key.truncate(shared as usize);
        key.extend(reader.take(own)?);
        let value = reader.take(length)?;
        if key.starts_with(b"fullfilter.") {
            return handle(&mut Reader::new(value), sst).map(Some);
        }
        if key.starts_with(b"partitionedfilter.") {
            return Err(Invalid::Field { name: "partitionedfilter", got: 1 });
        }
    }
    Ok(None)
}

/// The position of a block, from its handle. Checks that the bytes behind it exist too.
fn handle(reader: &mut Reader<'_>, sst: &[u8]) -> Result<Range<usize>, Invalid> {
    let (offset, size) = (varint(reader)?, varint(reader)?);
    let end =
        offset.checked_add(size).filter(|end| end.saturating_add(TRAILER) <= sst.len() as u64);
    let end = end.ok_or(Invalid::Field { name: "block handle", got: offset })?;
    Ok(offset as usize..end as usize)
}

fn varint(reader: &mut Reader<'_>) -> Result<u64, Invalid> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = reader.u8()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Invalid::Encoding { expected: "a number of at most ten bytes" })
}
