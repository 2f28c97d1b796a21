//! A Bloom filter as bytes, and back.

use super::Bloom;
use crate::error::InvalidBytes;
use crate::format::{self, Restored, Stored};
use crate::layout::StoredLayout;
use crate::parts::bits::Word;
use crate::storage::Allocate;

#[cfg(feature = "alloc")]
use crate::storage::Storage;
#[cfg(feature = "alloc")]
use alloc::vec::Vec;

#[cfg(feature = "alloc")]
impl<T: ?Sized, H: Stored, S: Storage, L: StoredLayout> Bloom<T, H, S, L> {
    /// The filter as bytes, with checksums. The secret of a [`Keyed`](crate::Keyed) filter is not
    /// among them.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let header = format::header::<L, H>(&self.shape, &self.hasher);
        let words = self.storage.words();
        let mut bytes = Vec::with_capacity(format::HEADER + words.len() * 8 + format::TRAILER);
        bytes.extend_from_slice(&header);
        bytes.extend(words.iter().flat_map(|word| word.load().to_le_bytes()));
        let checksum = format::payload_checksum(&header, &bytes[format::HEADER..]);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes
    }
}

impl<T: ?Sized, H: Stored, S: Allocate, L: StoredLayout> Bloom<T, H, S, L> {
    /// The filter that [`to_bytes`](Self::to_bytes) wrote, with the hasher it was made with.
    ///
    /// # Errors
    ///
    /// [`InvalidBytes`] if these are not the bytes of such a filter, or
    /// [`InvalidBytes::Hasher`] if it was made with another seed or secret: it would answer `false`
    /// for every key it holds.
    pub fn from_bytes_with_hasher(bytes: &[u8], hasher: H) -> Result<Self, InvalidBytes> {
        let parsed = format::parse::<L, H>(bytes)?;
        if parsed.mark != hasher.mark() {
            return Err(InvalidBytes::Hasher);
        }
        let mut filter = Self::of_layout(parsed.shape, hasher, L::default())?;
        let words = filter.storage.words_mut();
        let (chunks, _) = parsed.payload.as_chunks();
        for (word, chunk) in words.iter_mut().zip(chunks) {
            word.store(u64::from_le_bytes(*chunk));
        }
        if L::has_stray_bits(&parsed.shape, words) {
            return Err(InvalidBytes::Inconsistent);
        }
        Ok(filter)
    }
}

impl<T: ?Sized, H: Restored, S: Allocate, L: StoredLayout> Bloom<T, H, S, L> {
    /// The filter that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    ///
    /// [`InvalidBytes`] if these are not the bytes of such a filter.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidBytes> {
        let mark = format::parse::<L, H>(bytes)?.mark;
        let hasher = H::restore(mark).ok_or(InvalidBytes::Hasher)?;
        Self::from_bytes_with_hasher(bytes, hasher)
    }
}

#[cfg(feature = "serde")]
mod serde {
    use super::{Bloom, Restored, Storage, Stored, StoredLayout};
    use crate::format::through_serde;
    use crate::storage::Allocate;
    use serde::de::{Deserialize, Deserializer};
    use serde::ser::{Serialize, Serializer};

    /// As the bytes of [`to_bytes`](Bloom::to_bytes).
    impl<T: ?Sized, H: Stored, S: Storage, L: StoredLayout> Serialize for Bloom<T, H, S, L> {
        fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
            serializer.serialize_bytes(&self.to_bytes())
        }
    }

    /// Through [`from_bytes`](Bloom::from_bytes), with all its checks.
    impl<'de, T: ?Sized, H, S, L> Deserialize<'de> for Bloom<T, H, S, L>
    where
        H: Restored,
        S: Allocate,
        L: StoredLayout,
    {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            through_serde::deserialize(deserializer, Self::from_bytes)
        }
    }
}
