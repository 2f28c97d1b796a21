//! The operations of a filter that can be saved.

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
    /// The filter as bytes, with checksums. They do not contain the secret of a
    /// [`Keyed`](crate::Keyed) filter.
    #[cfg(feature = "alloc")]
    #[must_use]
    fn to_bytes(&self) -> Vec<u8> {
        bytes::to_bytes(self, Secret::Left)
    }

    /// Opens a filter from the bytes of [`to_bytes`](Self::to_bytes).
    ///
    /// # Errors
    ///
    /// [`InvalidBytes`] if these are not the bytes of such a filter, or if its hasher has a secret:
    /// use [`from_bytes_with_hasher`](Self::from_bytes_with_hasher) then.
    fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidBytes>
    where
        Self::Storage: Allocate,
    {
        bytes::from_bytes(bytes, None, false)
    }

    /// Opens a filter from the bytes of [`to_bytes`](Self::to_bytes), with the hasher that it was
    /// made with.
    ///
    /// # Errors
    ///
    /// [`InvalidBytes`] if these are not the bytes of such a filter. [`InvalidBytes::Hasher`] if it
    /// was made with another seed or secret: it would then answer `false` for keys that it
    /// contains.
    fn from_bytes_with_hasher(bytes: &[u8], hasher: Self::Hasher) -> Result<Self, InvalidBytes>
    where
        Self::Storage: Allocate,
    {
        bytes::from_bytes(bytes, Some(hasher), false)
    }

    /// Writes the bytes of [`to_bytes`](Self::to_bytes), a block at a time.
    ///
    /// # Errors
    ///
    /// Any error of the writer.
    #[cfg(feature = "std")]
    fn to_writer(&self, mut writer: impl io::Write) -> io::Result<()> {
        file::write(self, Secret::Left, &mut writer)
    }

    /// As [`to_writer`](Self::to_writer), including the secret of the hasher.
    ///
    /// # Errors
    ///
    /// Any error of the writer.
    #[cfg(feature = "std")]
    fn to_writer_with_secret(&self, mut writer: impl io::Write) -> io::Result<()> {
        file::write(self, Secret::Kept, &mut writer)
    }

    /// How many bytes [`to_writer_with_secret`](Self::to_writer_with_secret) writes. Takes constant
    /// time.
    #[cfg(feature = "std")]
    #[doc(hidden)]
    fn saved_len(&self) -> u64 {
        file::len(self)
    }

    /// Writes a range of the bytes of [`to_writer_with_secret`](Self::to_writer_with_secret), to
    /// transfer a filter in chunks. It takes time for the range. For the first 192 bytes and for
    /// the checksums at the end, it also reads all words once. The filter must not be changed
    /// between the chunks.
    ///
    /// # Errors
    ///
    /// Any error of the writer.
    #[cfg(feature = "std")]
    #[doc(hidden)]
    fn write_range_with_secret(
        &self,
        range: Range<u64>,
        mut writer: impl io::Write,
    ) -> io::Result<()> {
        file::write_range(self, Secret::Kept, &range, &mut writer)
    }

    /// Opens the filter that [`to_writer`](Self::to_writer) wrote. Reads exactly the bytes of the
    /// filter.
    ///
    /// # Errors
    ///
    /// Any error of the reader, [`OpenError::TooLarge`] above the default limit of
    /// [`Opening`](super::Opening), or an error that these are not the bytes of such a filter.
    #[cfg(feature = "std")]
    fn from_reader(reader: impl io::Read) -> Result<Self, OpenError>
    where
        Self::Storage: Allocate,
    {
        super::Opening::new().read(reader)
    }

    /// Saves the filter at `path`, atomically: after a crash, the file is either the complete new
    /// one or the old one.
    ///
    /// # Errors
    ///
    /// Any error of the file system. The old file is then unchanged, and there is no other file.
    /// [`io::ErrorKind::ResourceBusy`] if another writer is saving there.
    #[cfg(feature = "std")]
    fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        file::save(&System, self, Secret::Left, path.as_ref())
    }

    /// As [`save`](Self::save), including the secret of the hasher. Only the owner of the file may
    /// read it. It opens without a hasher from the caller.
    ///
    /// # Errors
    ///
    /// As [`save`](Self::save).
    #[cfg(feature = "std")]
    fn save_with_secret(&self, path: impl AsRef<Path>) -> io::Result<()> {
        file::save(&System, self, Secret::Kept, path.as_ref())
    }

    /// Opens the filter that [`save`](Self::save) wrote to `path`, copied into memory.
    ///
    /// # Errors
    ///
    /// Any error of the file system, [`OpenError::NotAFile`], [`OpenError::TooLarge`] above the
    /// default limit of [`Opening`](super::Opening), or an error that this is not the file of such
    /// a filter.
    #[cfg(feature = "std")]
    fn load(path: impl AsRef<Path>) -> Result<Self, OpenError>
    where
        Self::Storage: Allocate,
    {
        super::Opening::new().load(path)
    }

    /// Opens the filter that [`save`](Self::save) wrote to `path`. It answers from the file: see
    /// [`Opening::map`](super::Opening::map).
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load). The words are not checked.
    ///
    /// # Safety
    ///
    /// No process may change the file in place or truncate it while it is mapped.
    #[cfg(feature = "mmap")]
    #[allow(unsafe_code, reason = "the caller must promise something")]
    unsafe fn map(path: impl AsRef<Path>) -> Result<super::Mapped<Self>, OpenError>
    where
        Self: super::Mappable,
    {
        // SAFETY: the caller promises the same.
        unsafe { super::Opening::new().map::<Self>(path) }
    }

    /// Opens the filter that [`save`](Self::save) wrote to `path`, to change it there: see
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
