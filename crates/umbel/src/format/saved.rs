//! What can be done with a filter that has a form in bytes.

use super::bytes;
#[cfg(feature = "alloc")]
use super::bytes::Secret;
use super::family::Family;
use crate::error::InvalidBytes;
use crate::storage::Allocate;

#[cfg(feature = "std")]
use super::disk::System;
#[cfg(feature = "std")]
use super::{OpenError, file};
#[cfg(feature = "alloc")]
use alloc::vec::Vec;
#[cfg(feature = "std")]
use std::io;
#[cfg(feature = "std")]
use {core::ops::Range, std::path::Path};

/// A filter that can be saved and opened again: every family, with a hasher that is [`Stored`](super::Stored).
///
/// ```
/// use umbel::{BlockedBloomFilter, Saved};
///
/// let mut seen = BlockedBloomFilter::<str>::new(1_000, 0.01);
/// seen.insert("a");
/// let bytes = seen.to_bytes();
/// assert_eq!(BlockedBloomFilter::from_bytes(&bytes)?, seen);
/// assert!(BlockedBloomFilter::<str>::from_bytes(&bytes[1..]).is_err());
/// assert!(BlockedBloomFilter::<u64>::from_bytes(&bytes).is_err()); // keys of another kind
/// # Ok::<(), umbel::InvalidBytes>(())
/// ```
pub trait Saved: Family {
    /// The filter as bytes, with checksums. The secret of a [`Keyed`](crate::Keyed) filter is not
    /// among them.
    #[cfg(feature = "alloc")]
    #[must_use]
    fn to_bytes(&self) -> Vec<u8> {
        bytes::to_bytes(self, Secret::Left)
    }

    /// The filter that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    ///
    /// [`InvalidBytes`] if these are not the bytes of such a filter, or if its hasher has a secret:
    /// then [`from_bytes_with_hasher`](Self::from_bytes_with_hasher) is the way.
    fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidBytes>
    where
        Self::Storage: Allocate,
    {
        bytes::from_bytes(bytes, None, false)
    }

    /// The filter that [`to_bytes`](Self::to_bytes) wrote, with the hasher it was made with.
    ///
    /// # Errors
    ///
    /// [`InvalidBytes`] if these are not the bytes of such a filter, or
    /// [`InvalidBytes::Hasher`] if it was made with another seed or secret: it would answer `false`
    /// for every key it holds.
    fn from_bytes_with_hasher(bytes: &[u8], hasher: Self::Hasher) -> Result<Self, InvalidBytes>
    where
        Self::Storage: Allocate,
    {
        bytes::from_bytes(bytes, Some(hasher), false)
    }

    /// Writes what [`to_bytes`](Self::to_bytes) gives, a block at a time.
    ///
    /// # Errors
    ///
    /// What the writer says.
    #[cfg(feature = "std")]
    fn to_writer(&self, mut writer: impl io::Write) -> io::Result<()> {
        file::write(self, Secret::Left, &mut writer)
    }

    /// As [`to_writer`](Self::to_writer), with the secret of the hasher among the bytes.
    ///
    /// # Errors
    ///
    /// What the writer says.
    #[cfg(feature = "std")]
    fn to_writer_with_secret(&self, mut writer: impl io::Write) -> io::Result<()> {
        file::write(self, Secret::Kept, &mut writer)
    }

    /// How many bytes [`to_writer_with_secret`](Self::to_writer_with_secret) writes. Takes the same time for every size.
    #[cfg(feature = "std")]
    #[doc(hidden)]
    fn saved_len(&self) -> u64 {
        file::len(self)
    }

    /// Writes these of the bytes that [`to_writer_with_secret`](Self::to_writer_with_secret) writes: a filter that goes over
    /// in chunks. Takes time for the chunk, and for the first 192 bytes and the checksums at the end as long as to read all
    /// words once. Nobody may be changing the filter meanwhile.
    ///
    /// # Errors
    ///
    /// What the writer says.
    #[cfg(feature = "std")]
    #[doc(hidden)]
    fn write_range_with_secret(
        &self,
        range: Range<u64>,
        mut writer: impl io::Write,
    ) -> io::Result<()> {
        file::write_range(self, Secret::Kept, &range, &mut writer)
    }

    /// The filter that [`to_writer`](Self::to_writer) wrote. Reads as many bytes as the filter has,
    /// and no more.
    ///
    /// # Errors
    ///
    /// What the reader says, [`OpenError::TooLarge`] above the default limit of
    /// [`Opening`](super::Opening), or that these are not the bytes of such a filter.
    #[cfg(feature = "std")]
    fn from_reader(reader: impl io::Read) -> Result<Self, OpenError>
    where
        Self::Storage: Allocate,
    {
        super::Opening::new().read(reader)
    }

    /// Saves the filter at `path`: afterwards the whole filter is there, or what was there before.
    ///
    /// # Errors
    ///
    /// What the file system says; what was there is there still, and nothing else is.
    /// [`io::ErrorKind::ResourceBusy`] if somebody else is saving there.
    #[cfg(feature = "std")]
    fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        file::save(&System, self, Secret::Left, path.as_ref())
    }

    /// As [`save`](Self::save), with the secret of the hasher in the file, which only its owner may
    /// read then. It opens without bringing the hasher.
    ///
    /// # Errors
    ///
    /// As [`save`](Self::save).
    #[cfg(feature = "std")]
    fn save_with_secret(&self, path: impl AsRef<Path>) -> io::Result<()> {
        file::save(&System, self, Secret::Kept, path.as_ref())
    }

    /// The filter that [`save`](Self::save) left at `path`, copied into memory.
    ///
    /// # Errors
    ///
    /// What the file system says, [`OpenError::NotAFile`], [`OpenError::TooLarge`] above the default
    /// limit of [`Opening`](super::Opening), or that this is not the file of such a filter.
    #[cfg(feature = "std")]
    fn load(path: impl AsRef<Path>) -> Result<Self, OpenError>
    where
        Self::Storage: Allocate,
    {
        super::Opening::new().load(path)
    }

    /// The filter that [`save`](Self::save) left at `path`, which answers from the file: see
    /// [`Opening::map`](super::Opening::map).
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load); what is in the words is not looked at.
    ///
    /// # Safety
    ///
    /// Nobody may change the file in place or cut it off while it is mapped.
    #[cfg(feature = "mmap")]
    #[allow(unsafe_code, reason = "the caller must promise something")]
    unsafe fn map(path: impl AsRef<Path>) -> Result<super::Mapped<Self>, OpenError>
    where
        Self: super::Mappable,
    {
        // SAFETY: the caller promises the same.
        unsafe { super::Opening::new().map::<Self>(path) }
    }

    /// The filter that [`save`](Self::save) left at `path`, to be changed there: see
    /// [`MappedMut`](super::MappedMut).
    ///
    /// # Errors
    ///
    /// As [`map`](Self::map).
    ///
    /// # Safety
    ///
    /// As [`map`](Self::map).
    #[cfg(feature = "mmap")]
    #[allow(unsafe_code, reason = "the caller must promise something")]
    unsafe fn map_mut(path: impl AsRef<Path>) -> Result<super::MappedMut<Self>, OpenError>
    where
        Self: super::MappableMut,
    {
        // SAFETY: the caller promises the same.
        unsafe { super::Opening::new().map_mut::<Self>(path) }
    }
}

impl<F: Family> Saved for F {}
