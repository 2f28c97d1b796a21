//! A counting Bloom filter as bytes, and back.

use super::{Counting, Shape, Width};
use crate::bloom;
use crate::error::{InvalidBytes, InvalidShape};
use crate::format::{self, Restored, Stored};
use crate::storage::{Allocate, Own};

#[cfg(feature = "alloc")]
use alloc::vec::Vec;

/// The number of the family in a header.
const FAMILY: u16 = 4;

/// The lower half of the kernels' number in a header: digits. The upper half is the width.
const KERNELS: u16 = 1;

/// The shape that a header tells.
fn restore(
    kernels: u16,
    items: u64,
    cells: u64,
    probes: u32,
) -> Option<Result<Shape, InvalidShape>> {
    let all = [Width::Two, Width::Four, Width::Eight];
    let width = all.into_iter().find(|&width| self::kernels(width) == kernels)?;
    let positions = bloom::Shape::with(items, cells, probes);
    Some(positions.and_then(|positions| Shape::of(positions, width)))
}

fn kernels(width: Width) -> u16 {
    (width.bits() as u16) << 8 | KERNELS
}

#[cfg(feature = "alloc")]
impl<T: ?Sized, H: Stored, B: AsRef<[u64]>> Counting<T, H, Own<B>> {
    /// The filter as bytes, with checksums. The secret of a [`Keyed`](crate::Keyed) filter is not
    /// among them.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let kernels = kernels(self.shape.width());
        let header = format::header_of(FAMILY, kernels, &self.shape, &self.hasher);
        let words = self.words();
        let mut bytes = Vec::with_capacity(format::HEADER + words.len() * 8 + format::TRAILER);
        bytes.extend_from_slice(&header);
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        let checksum = format::payload_checksum(&header, &bytes[format::HEADER..]);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes
    }
}

impl<T: ?Sized, H: Stored, B: AsRef<[u64]> + AsMut<[u64]>> Counting<T, H, Own<B>>
where
    Own<B>: Allocate,
{
    /// The filter that [`to_bytes`](Self::to_bytes) wrote, with the hasher it was made with.
    ///
    /// # Errors
    ///
    /// [`InvalidBytes`] if these are not the bytes of such a filter, or
    /// [`InvalidBytes::Hasher`] if it was made with another seed or secret: it would answer `false`
    /// for every key it holds.
    pub fn from_bytes_with_hasher(bytes: &[u8], hasher: H) -> Result<Self, InvalidBytes> {
        let parsed = format::parse_as::<Shape, H>(bytes, FAMILY, restore)?;
        if parsed.mark != hasher.mark() {
            return Err(InvalidBytes::Hasher);
        }
        let mut filter = Self::with(parsed.shape, hasher)?;
        let words = filter.storage.0.as_mut();
        let (chunks, _) = parsed.payload.as_chunks();
        for (word, chunk) in words.iter_mut().zip(chunks) {
            *word = u64::from_le_bytes(*chunk);
        }
        let used = parsed.shape.cells() * u64::from(parsed.shape.width().bits()) % 64;
        if used != 0 && words.last().is_some_and(|last| last >> used != 0) {
            return Err(InvalidBytes::Inconsistent);
        }
        Ok(filter)
    }
}

impl<T: ?Sized, H: Restored, B: AsRef<[u64]> + AsMut<[u64]>> Counting<T, H, Own<B>>
where
    Own<B>: Allocate,
{
    /// The filter that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    ///
    /// [`InvalidBytes`] if these are not the bytes of such a filter.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidBytes> {
        let mark = format::parse_as::<Shape, H>(bytes, FAMILY, restore)?.mark;
        let hasher = H::restore(mark).ok_or(InvalidBytes::Hasher)?;
        Self::from_bytes_with_hasher(bytes, hasher)
    }
}
