//! A counting Bloom filter as bytes, and back.

use super::{CellLayout, CellPlan, Counting, Width};
use crate::error::{InvalidBytes, InvalidShape};
use crate::format::{self, Restored, Stored};
use crate::layout::Plan;
use crate::storage::{Allocate, Own};

#[cfg(feature = "alloc")]
use alloc::vec::Vec;

/// The number of the family in a header.
const FAMILY: u16 = 4;

/// The number of the kernels in a header: the way to cells below, their width above.
fn kernels<L: CellLayout>(width: Width) -> u16 {
    (width.bits() as u16) << 8 | u16::from(L::KERNELS)
}

/// The shape that a header tells.
fn restore<L: CellLayout>(
    kernels: u16,
    items: u64,
    cells: u64,
    probes: u32,
) -> Option<Result<L::Shape, InvalidShape>> {
    let all = [Width::Two, Width::Four, Width::Eight];
    let width = all.into_iter().find(|&width| self::kernels::<L>(width) == kernels)?;
    Some(L::restore(width, items, cells, probes))
}

#[cfg(feature = "alloc")]
impl<T: ?Sized, H: Stored, B: AsRef<[u64]>, L: CellLayout> Counting<T, H, Own<B>, L> {
    /// The filter as bytes, with checksums. The secret of a [`Keyed`](crate::Keyed) filter is not
    /// among them.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let kernels = kernels::<L>(self.shape.width());
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

impl<T, H, B, L> Counting<T, H, Own<B>, L>
where
    T: ?Sized,
    H: Stored,
    B: AsRef<[u64]> + AsMut<[u64]>,
    Own<B>: Allocate,
    L: CellLayout,
{
    /// The filter that [`to_bytes`](Self::to_bytes) wrote, with the hasher it was made with.
    ///
    /// # Errors
    ///
    /// [`InvalidBytes`] if these are not the bytes of such a filter, or
    /// [`InvalidBytes::Hasher`] if it was made with another seed or secret: it would answer `false`
    /// for every key it holds.
    pub fn from_bytes_with_hasher(bytes: &[u8], hasher: H) -> Result<Self, InvalidBytes> {
        let parsed = format::parse_as::<L::Shape, H>(bytes, FAMILY, restore::<L>)?;
        if parsed.mark != hasher.mark() {
            return Err(InvalidBytes::Hasher);
        }
        let mut filter = Self::with(parsed.shape, hasher)?;
        let words = filter.storage.0.as_mut();
        let (chunks, _) = parsed.payload.as_chunks();
        for (word, chunk) in words.iter_mut().zip(chunks) {
            *word = u64::from_le_bytes(*chunk);
        }
        let used = parsed.shape.bits() * u64::from(parsed.shape.width().bits()) % 64;
        if used != 0 && words.last().is_some_and(|last| last >> used != 0) {
            return Err(InvalidBytes::Inconsistent);
        }
        Ok(filter)
    }
}

impl<T, H, B, L> Counting<T, H, Own<B>, L>
where
    T: ?Sized,
    H: Restored,
    B: AsRef<[u64]> + AsMut<[u64]>,
    Own<B>: Allocate,
    L: CellLayout,
{
    /// The filter that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    ///
    /// [`InvalidBytes`] if these are not the bytes of such a filter.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidBytes> {
        let mark = format::parse_as::<L::Shape, H>(bytes, FAMILY, restore::<L>)?.mark;
        let hasher = H::restore(mark).ok_or(InvalidBytes::Hasher)?;
        Self::from_bytes_with_hasher(bytes, hasher)
    }
}

#[cfg(feature = "serde")]
mod serde {
    use super::{Allocate, CellLayout, Counting, Own, Restored, Stored};
    use crate::format::through_serde;
    use serde::de::{Deserialize, Deserializer};
    use serde::ser::{Serialize, Serializer};

    /// As the bytes of [`to_bytes`](Counting::to_bytes).
    impl<T, H, B, L> Serialize for Counting<T, H, Own<B>, L>
    where
        T: ?Sized,
        H: Stored,
        B: AsRef<[u64]>,
        L: CellLayout,
    {
        fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
            serializer.serialize_bytes(&self.to_bytes())
        }
    }

    /// Through [`from_bytes`](Counting::from_bytes), with all its checks.
    impl<'de, T, H, B, L> Deserialize<'de> for Counting<T, H, Own<B>, L>
    where
        T: ?Sized,
        H: Restored,
        B: AsRef<[u64]> + AsMut<[u64]>,
        Own<B>: Allocate,
        L: CellLayout,
    {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            through_serde::deserialize(deserializer, Self::from_bytes)
        }
    }
}
