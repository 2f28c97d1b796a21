//! Xor and binary fuse filters of the FastFilter libraries, in C, Go, Java and Rust (`xorf`). They contain a
//! static set of 64-bit numbers, so no keys can be inserted.
//!
//! ```text
//!     hash        h = murmur64(key + seed), which is the finalizer of MurmurHash3
//!     fingerprint the lowest bits of h ^ (h >> 32); in Java those of h
//!     found       if the fingerprints of three slots XORed are that of the key
//!     xor         slot i = 32 bits of h, rotated by 21 i, scaled to the blocks, in block i
//!     fuse        slot 0 = h scaled to the segments but two; slots 1 and 2 in the segments behind it, each XORed with bits of
//!                 h from 18 and from 0 on
//! ```
//!
//! | fields | little-endian, then the fingerprints |
//! |---|---|
//! | [`FuseLayout::C`] | seed 8; number of keys, segment length, segments, their length, length of all, 4 bytes each |
//! | [`FuseLayout::Go`] | seed 8; segment length, mask, segments, their length, length of all, 4 bytes each |
//! | [`FuseLayout::Xorf`] | seed 8; segment length, mask, length of the segments, 4 bytes each (`dma_copy_descriptor_to`) |
//! | [`XorLayout::C`], [`XorLayout::Go`] | seed 8; block length, 8 or 4 bytes |
//! | [`XorLayout::Java`] | big-endian: keys 4, seed 8 |
//!
//! None of these libraries defines how texts become numbers: programs hash them first.
//! [`Xxh64`](umbel::hash::Xxh64) and the other hashes of [`umbel::hash`] return digests that are such numbers.

use crate::error::Invalid;
use crate::read::Reader;
use crate::recognise::{NeedsKeys, System};
use umbel::Contains;
use umbel::hash::Digest;

/// The finalizer of MurmurHash3.
const fn murmur64(key: u64, seed: u64) -> u64 {
    let h = key.wrapping_add(seed);
    let h = (h ^ h >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let h = (h ^ h >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ h >> 33
}

/// The bits of a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// 8 bits: a rate of 0.39 %.
    Bits8,
    /// 16 bits: a rate of 0.0015 %.
    Bits16,
    /// 32 bits: a rate of one in 4 billion.
    Bits32,
}

impl Width {
    const fn bytes(self) -> u64 {
        match self {
            Self::Bits8 => 1,
            Self::Bits16 => 2,
            Self::Bits32 => 4,
        }
    }

    const fn mask(self) -> u32 {
        u32::MAX >> (32 - 8 * self.bytes())
    }
}

/// The library that wrote a binary fuse filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FuseLayout {
    /// `binary_fuse8_serialize` of C, on a little-endian machine. It stores the number of keys.
    C,
    /// `Save` of `github.com/FastFilter/xorfilter`.
    Go,
    /// The descriptor of Rust's `xorf`, and the fingerprints behind it.
    Xorf,
}

/// A binary fuse filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinaryFuse {
    layout: FuseLayout,
    width: Width,
    seed: u64,
    keys: u32,
    segment: u32,
    /// The number of slots that may be the first slot of a key.
    starts: u32,
    fingerprints: Vec<u8>,
}

impl BinaryFuse {
    /// Reads the filter from these bytes, which do not store the width of its fingerprints.
    ///
    /// # Errors
    ///
    /// [`Invalid`] describes what is wrong with them.
    pub fn read(bytes: &[u8], layout: FuseLayout, width: Width) -> Result<Self, Invalid> {
        let mut reader = Reader::new(bytes);
        let seed = reader.u64_le()?;
        let keys = if layout == FuseLayout::C { reader.u32_le()? } else { 0 };
        let segment = reader.u32_le()?;
        if !segment.is_power_of_two() || segment > 1 << 18 {
            return Err(Invalid::Field { name: "SegmentLength", got: segment.into() });
        }
        if layout != FuseLayout::C {
            expect("SegmentLengthMask", reader.u32_le()?, (segment - 1).into())?;
        }
        let segments = if layout == FuseLayout::Xorf { None } else { Some(reader.u32_le()?) };
        let starts = reader.u32_le()?;
        if !starts.is_multiple_of(segment) || starts == 0 {
            return Err(Invalid::Field { name: "SegmentCountLength", got: starts.into() });
        }
        let slots = u64::from(starts) + 2 * u64::from(segment);
        if let Some(segments) = segments {
            expect("SegmentCount", segments, (starts / segment).into())?;
            expect("ArrayLength", reader.u32_le()?, slots)?;
        }
        let fingerprints = reader.take_last(slots * width.bytes())?.to_vec();
        Ok(Self { layout, width, seed, keys, segment, starts, fingerprints })
    }

    /// The bytes of the filter.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let Self { layout, seed, keys, segment, starts, .. } = *self;
        let (segments, slots) = (starts / segment, starts + 2 * segment);
        let mut bytes = seed.to_le_bytes().to_vec();
        let fields: &[u32] = match layout {
            FuseLayout::C => &[keys, segment, segments, starts, slots],
            FuseLayout::Go => &[segment, segment - 1, segments, starts, slots],
            FuseLayout::Xorf => &[segment, segment - 1, starts],
        };
        bytes.extend(fields.iter().flat_map(|field| field.to_le_bytes()));
        bytes.extend(&self.fingerprints);
        bytes
    }

    /// Converts the filter for another library: all three use the same slots for a key. C also stores the
    /// number of keys, which the other layouts lack.
    #[must_use]
    pub fn in_layout(self, layout: FuseLayout, keys: u32) -> Self {
        Self { layout, keys: if layout == FuseLayout::C { keys } else { 0 }, ..self }
    }

    /// Whether a key may be in the set.
    #[must_use]
    #[inline]
    pub fn contains(&self, key: u64) -> bool {
        let hash = murmur64(key, self.seed);
        let mask = self.segment - 1;
        let first = ((u128::from(hash) * u128::from(self.starts)) >> 64) as u32;
        let second = (first + self.segment) ^ (hash >> 18) as u32 & mask;
        let third = (first + 2 * self.segment) ^ hash as u32 & mask;
        let found = self.at(first) ^ self.at(second) ^ self.at(third);
        (found ^ (hash ^ hash >> 32) as u32) & self.width.mask() == 0
    }

    #[inline(always)]
    fn at(&self, slot: u32) -> u32 {
        let (at, fingerprints) = (slot as usize, &self.fingerprints);
        match self.width {
            Width::Bits8 => fingerprints[at].into(),
            Width::Bits16 => u16::from_le_bytes(fingerprints.as_chunks().0[at]).into(),
            Width::Bits32 => u32::from_le_bytes(fingerprints.as_chunks().0[at]),
        }
    }
}

fn expect(name: &'static str, got: u32, expected: u64) -> Result<(), Invalid> {
    let got = u64::from(got);
    if got == expected { Ok(()) } else { Err(Invalid::Field { name, got }) }
}

/// The library that wrote an xor filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum XorLayout {
    /// `xor8_serialize` of C, on a little-endian machine.
    C,
    /// The fields of Go's `Xor8`, one after the other.
    Go,
    /// `getData` of Java's `Xor8`.
    Java,
}

/// An xor filter with fingerprints of 8 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xor8 {
    layout: XorLayout,
    seed: u64,
    keys: u32,
    block: u32,
    fingerprints: Vec<u8>,
}

impl Xor8 {
    /// Reads the filter from these bytes.
    ///
    /// # Errors
    ///
    /// [`Invalid`] describes what is wrong with them.
    pub fn read(bytes: &[u8], layout: XorLayout) -> Result<Self, Invalid> {
        let mut reader = Reader::new(bytes);
        let (keys, seed, block) = match layout {
            XorLayout::C => (0, reader.u64_le()?, reader.u64_le()?),
            XorLayout::Go => (0, reader.u64_le()?, reader.u32_le()?.into()),
            XorLayout::Java => {
                let keys = reader.u32_be()?;
                if keys == 0 {
                    return Err(Invalid::Field { name: "size", got: 0 });
                }
                (keys, reader.u64_be()?, (3 + u64::from(keys) * 123 / 100) / 3)
            }
        };
        let Some(block) = u32::try_from(block).ok().filter(|block| *block > 0) else {
            return Err(Invalid::Field { name: "blockLength", got: block });
        };
        // In Java there may be slots that no key uses.
        let slots = match layout {
            XorLayout::Java => 3 + u64::from(keys) * 123 / 100,
            _ => u64::from(block) * 3,
        };
        let fingerprints = reader.take_last(slots)?.to_vec();
        Ok(Self { layout, seed, keys, block, fingerprints })
    }

    /// The bytes of the filter.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(16 + self.fingerprints.len());
        match self.layout {
            XorLayout::C => {
                bytes.extend(self.seed.to_le_bytes());
                bytes.extend(u64::from(self.block).to_le_bytes());
            }
            XorLayout::Go => {
                bytes.extend(self.seed.to_le_bytes());
                bytes.extend(self.block.to_le_bytes());
            }
            XorLayout::Java => {
                bytes.extend(self.keys.to_be_bytes());
                bytes.extend(self.seed.to_be_bytes());
            }
        }
        bytes.extend(&self.fingerprints);
        bytes
    }

    /// Converts the filter for another library.
    ///
    /// # Errors
    ///
    /// [`NeedsKeys`] between Java and the others, whose fingerprints are different bits of the hash.
    pub fn in_layout(self, layout: XorLayout) -> Result<Self, NeedsKeys> {
        System::Xor(self.layout).becomes(System::Xor(layout))?;
        Ok(Self { layout, ..self })
    }

    /// Whether a key may be in the set.
    #[must_use]
    #[inline]
    pub fn contains(&self, key: u64) -> bool {
        let hash = murmur64(key, self.seed);
        let slot = |turn: u32| {
            let bits = hash.rotate_left(21 * turn) as u32;
            let place = (u64::from(bits) * u64::from(self.block)) >> 32;
            self.fingerprints[(place + u64::from(turn) * u64::from(self.block)) as usize]
        };
        let fingerprint = match self.layout {
            XorLayout::Java => hash,
            _ => hash ^ hash >> 32,
        };
        slot(0) ^ slot(1) ^ slot(2) == fingerprint as u8
    }
}

/// A digest is a key.
impl Contains for BinaryFuse {
    fn contains_digest(&self, digest: Digest) -> bool {
        self.contains(digest.bits())
    }
}

/// A digest is a key.
impl Contains for Xor8 {
    fn contains_digest(&self, digest: Digest) -> bool {
        self.contains(digest.bits())
    }
}
