//! A stable Bloom filter as bytes, and back: it goes on as if it had never been away.

use super::{MAX_WIDTH, Shape, Stable};
use crate::error::{InvalidBytes, InvalidShape};
use crate::format::{self, Restored, Stored};
use crate::storage::{Allocate, Own};

#[cfg(feature = "alloc")]
use alloc::vec::Vec;

/// The number of the family in a header.
const FAMILY: u16 = 6;

/// The lower half of the kernels' number in a header: digits. The upper half is the width.
const KERNELS: u16 = 1;

/// The shape that a header tells, whose items are the decrements, and the words after it: those of
/// the cells, and one for the insertions.
fn restore(
    kernels: u16,
    decrements: u64,
    cells: u64,
    probes: u32,
) -> Option<Result<(Shape, u64), InvalidShape>> {
    let width = (1..=MAX_WIDTH).find(|&width| self::kernels(width) == kernels)?;
    let shape = Shape::with(cells, width, probes, decrements);
    Some(shape.map(|shape| (shape, shape.words() + 1)))
}

fn kernels(width: u32) -> u16 {
    (width as u16) << 8 | KERNELS
}

#[cfg(feature = "alloc")]
impl<T: ?Sized, H: Stored, B: AsRef<[u64]>> Stable<T, H, Own<B>> {
    /// The filter as bytes, with checksums. What it will do next is among them; the secret of a
    /// [`Keyed`](crate::Keyed) filter is not.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let (shape, words) = (&self.shape, self.words());
        let length = (shape.words() + 1) * 8;
        let numbers = [shape.decrements(), shape.cells(), shape.probes().into(), length];
        let header = format::header_with(FAMILY, kernels(shape.width()), &self.hasher, numbers);
        let mut bytes = Vec::with_capacity(format::HEADER + words.len() * 8 + 8 + format::TRAILER);
        bytes.extend_from_slice(&header);
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes.extend_from_slice(&self.insertions.to_le_bytes());
        let checksum = format::payload_checksum(&header, &bytes[format::HEADER..]);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes
    }
}

impl<T: ?Sized, H: Stored, B: AsRef<[u64]> + AsMut<[u64]>> Stable<T, H, Own<B>>
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
        let parsed = format::parse_with::<Shape, H>(bytes, FAMILY, restore)?;
        if parsed.mark != hasher.mark() {
            return Err(InvalidBytes::Hasher);
        }
        let mut filter = Self::with(parsed.shape, hasher)?;
        let words = filter.storage.0.as_mut();
        let (chunks, _) = parsed.payload.as_chunks();
        let mut numbers = chunks.iter().map(|chunk| u64::from_le_bytes(*chunk));
        for (word, number) in words.iter_mut().zip(&mut numbers) {
            *word = number;
        }
        let used = parsed.shape.cells() * u64::from(parsed.shape.width()) % 64;
        if used != 0 && words.last().is_some_and(|last| last >> used != 0) {
            return Err(InvalidBytes::Inconsistent);
        }
        filter.insertions = numbers.next().ok_or(InvalidBytes::Inconsistent)?;
        Ok(filter)
    }
}

impl<T: ?Sized, H: Restored, B: AsRef<[u64]> + AsMut<[u64]>> Stable<T, H, Own<B>>
where
    Own<B>: Allocate,
{
    /// The filter that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    ///
    /// [`InvalidBytes`] if these are not the bytes of such a filter.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidBytes> {
        let mark = format::parse_with::<Shape, H>(bytes, FAMILY, restore)?.mark;
        let hasher = H::restore(mark).ok_or(InvalidBytes::Hasher)?;
        Self::from_bytes_with_hasher(bytes, hasher)
    }
}

#[cfg(feature = "serde")]
mod serde {
    use super::{Allocate, Own, Restored, Stable, Stored};
    use crate::format::through_serde;
    use serde::de::{Deserialize, Deserializer};
    use serde::ser::{Serialize, Serializer};

    /// As the bytes of [`to_bytes`](Stable::to_bytes).
    impl<T: ?Sized, H: Stored, B: AsRef<[u64]>> Serialize for Stable<T, H, Own<B>> {
        fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
            serializer.serialize_bytes(&self.to_bytes())
        }
    }

    /// Through [`from_bytes`](Stable::from_bytes), with all its checks.
    impl<'de, T: ?Sized, H: Restored, B: AsRef<[u64]> + AsMut<[u64]>> Deserialize<'de>
        for Stable<T, H, Own<B>>
    where
        Own<B>: Allocate,
    {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            through_serde::deserialize(deserializer, Self::from_bytes)
        }
    }
}
