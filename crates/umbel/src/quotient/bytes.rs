//! A quotient filter as bytes, and back.

use super::{QuotientFilter, Shape};
use crate::error::{InvalidBytes, InvalidShape};
use crate::format::{self, Restored, Stored};
use alloc::vec::Vec;

/// The number of the family in a header.
const FAMILY: u16 = 9;

/// The number of the kernels in a header: the digest as a fraction of the quotients.
const KERNELS: u16 = 10;

/// The shape that a header tells.
fn restore(
    kernels: u16,
    items: u64,
    quotients: u64,
    remainder: u32,
) -> Option<Result<Shape, InvalidShape>> {
    (kernels == KERNELS).then(|| Shape::with(items, quotients, remainder))
}

impl<T: ?Sized, H: Stored> QuotientFilter<T, H> {
    /// The filter as bytes, with checksums. Equal filters of one size have equal bytes. The secret of a
    /// [`Keyed`](crate::Keyed) filter is not among them.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let header = format::header_of(FAMILY, KERNELS, &self.shape, &self.hasher);
        let length = format::HEADER + self.shape.bytes() as usize + format::TRAILER;
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(&header);
        let mut sorted = self.table.clone();
        sorted.sort();
        let (marks, offsets, remainders) = sorted.parts();
        bytes.extend(marks.iter().flat_map(|word| word.to_le_bytes()));
        bytes.extend_from_slice(offsets);
        bytes.extend_from_slice(remainders);
        let checksum = format::payload_checksum(&header, &bytes[format::HEADER..]);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes
    }

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
        // As many bytes as the table has: the length was compared with the shape.
        let (marks, offsets, remainders) = filter.table.parts_mut();
        let (first, rest) = parsed.payload.split_at(marks.len() * 8);
        for (word, chunk) in marks.iter_mut().zip(first.as_chunks().0) {
            *word = u64::from_le_bytes(*chunk);
        }
        let (second, third) = rest.split_at(offsets.len());
        offsets.copy_from_slice(second);
        remainders.copy_from_slice(third);
        let len = filter.table.check().ok_or(InvalidBytes::Inconsistent)?;
        if !filter.table.is_sorted() {
            return Err(InvalidBytes::Inconsistent);
        }
        filter.table.set_len(len);
        Ok(filter)
    }
}

impl<T: ?Sized, H: Restored> QuotientFilter<T, H> {
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
    use super::{QuotientFilter, Restored, Stored};
    use crate::format::through_serde;
    use serde::de::{Deserialize, Deserializer};
    use serde::ser::{Serialize, Serializer};

    /// As the bytes of [`to_bytes`](QuotientFilter::to_bytes).
    impl<T: ?Sized, H: Stored> Serialize for QuotientFilter<T, H> {
        fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
            serializer.serialize_bytes(&self.to_bytes())
        }
    }

    /// Through [`from_bytes`](QuotientFilter::from_bytes), with all its checks.
    impl<'de, T: ?Sized, H: Restored> Deserialize<'de> for QuotientFilter<T, H> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            through_serde::deserialize(deserializer, Self::from_bytes)
        }
    }
}
