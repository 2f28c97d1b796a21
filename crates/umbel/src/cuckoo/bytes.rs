//! A cuckoo filter as bytes, and back.

use super::{Cuckoo, Shape};
use crate::error::{InvalidBytes, InvalidShape};
use crate::format::{self, Restored, Stored};
use crate::parts::buckets::SLOTS;
use crate::storage::{Allocate, Own};

#[cfg(feature = "alloc")]
use alloc::vec::Vec;

/// The number of the family in a header.
const FAMILY: u16 = 8;

/// The lower half of the kernels' number in a header: one of two buckets. The upper half is the number of
/// bits of a fingerprint.
const KERNELS: u16 = 9;

/// The shape that a header tells.
fn restore(
    kernels: u16,
    items: u64,
    bits: u64,
    probes: u32,
) -> Option<Result<Shape, InvalidShape>> {
    let width = u32::from(kernels >> 8);
    let bucket = SLOTS * u64::from(width.max(1));
    let whole = kernels & 0xff == KERNELS && probes == 2 && bits.is_multiple_of(bucket);
    whole.then(|| Shape::with(items, bits / bucket, width))
}

#[cfg(feature = "alloc")]
impl<T: ?Sized, H: Stored, B: AsRef<[u64]>> Cuckoo<T, H, Own<B>> {
    /// The filter as bytes, with checksums. The secret of a [`Keyed`](crate::Keyed) filter is not
    /// among them.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let kernels = (self.shape.fingerprint_bits() as u16) << 8 | KERNELS;
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

impl<T: ?Sized, H: Stored, B: AsRef<[u64]> + AsMut<[u64]>> Cuckoo<T, H, Own<B>>
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
        let (chunks, _) = parsed.payload.as_chunks();
        for (word, chunk) in filter.storage.0.as_mut().iter_mut().zip(chunks) {
            *word = u64::from_le_bytes(*chunk);
        }
        filter.len = filter.table().taken();
        filter.validate()?;
        Ok(filter)
    }
}

impl<T: ?Sized, H: Restored, B: AsRef<[u64]> + AsMut<[u64]>> Cuckoo<T, H, Own<B>>
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

#[cfg(feature = "serde")]
mod serde {
    use super::{Allocate, Cuckoo, Own, Restored, Stored};
    use crate::format::through_serde;
    use serde::de::{Deserialize, Deserializer};
    use serde::ser::{Serialize, Serializer};

    /// As the bytes of [`to_bytes`](Cuckoo::to_bytes).
    impl<T: ?Sized, H: Stored, B: AsRef<[u64]>> Serialize for Cuckoo<T, H, Own<B>> {
        fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
            serializer.serialize_bytes(&self.to_bytes())
        }
    }

    /// Through [`from_bytes`](Cuckoo::from_bytes), with all its checks.
    impl<'de, T: ?Sized, H, B> Deserialize<'de> for Cuckoo<T, H, Own<B>>
    where
        H: Restored,
        B: AsRef<[u64]> + AsMut<[u64]>,
        Own<B>: Allocate,
    {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            through_serde::deserialize(deserializer, Self::from_bytes)
        }
    }
}
