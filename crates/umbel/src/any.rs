//! A filter whose family, hash and key type are known only at run time.
//!
//! ```text
//!     AnyFilter = Filter<[u8], AnyHasher, raw::Any>
//!                         |       |          `--- the core: one of fourteen families
//!                         |       `-------------- one of nine hashes
//!                         `---------------------- keys as bytes
//! ```
//!
//! ```
//! use umbel::{AnyFilter, RibbonFilter, Saved};
//!
//! let bytes = RibbonFilter::<str>::build(["alice", "bob"], 1e-6)?.to_bytes();
//! // In another program, which has nothing but the bytes:
//! let filter = AnyFilter::from_bytes(&bytes)?;
//! assert_eq!((filter.family(), filter.hasher().name()), ("ribbon", "portable"));
//! assert!(filter.contains("alice")? && !filter.contains("mallory")?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Keys are passed as bytes or text: [`AnyHasher`] defines the bytes of a number or a tuple. A key
//! of the wrong length is an error, [`InvalidKey`]. An operation that the family of a filter does
//! not support is an error too, [`Unsupported`].
//!
//! Operations of a single family need a `match` over the [core](crate::raw::Any). A filter of known
//! type becomes an [`AnyFilter`] with `into`.
//!
//! ```
//! use umbel::any::AnyHasher;
//! use umbel::{AnyFilter, CuckooFilter, Portable, raw};
//!
//! let hasher = AnyHasher::from(Portable::default());
//! let mut filter: AnyFilter = CuckooFilter::with_hasher(1_000, 0.01, hasher).into();
//! assert!(filter.insert("alice")? && filter.remove("alice")?);
//! let raw::Any::Cuckoo(core) = filter.raw() else { panic!("made above") };
//! assert_eq!((core.load(), core.shape().items()), (0.0, 1_000));
//! # Ok::<(), umbel::any::ChangeError>(())
//! ```

mod error;
mod hasher;
pub(crate) mod raw;

pub use error::{ChangeError, Unsupported};
pub use hasher::AnyHasher;
use raw::Any;

use crate::edge::{Filter, same_hasher};
use crate::error::{Incompatible, InvalidBytes, InvalidKey};
use crate::format::{Header, Saved};
use crate::hash::{Digest, Digester, Keyed, Kind};
use alloc::{vec, vec::Vec};

#[cfg(feature = "std")]
use crate::format::{OpenError, Opening, Secret};
#[cfg(feature = "std")]
use std::{io, path::Path};

/// A filter of any family, hash and key type, which are known only at run time. See the
/// [module](self).
///
/// [`load`](Self::load), [`from_bytes`](Self::from_bytes) and [`from_reader`](Self::from_reader)
/// open one. A file cannot be memory-mapped if its family is unknown.
pub type AnyFilter = Filter<[u8], AnyHasher, Any>;

/// The hasher with this secret, for keys of the kind in the header.
fn hasher_for(header: &Header, keyed: Keyed) -> Result<AnyHasher, InvalidBytes> {
    let number = header.mark().keys;
    let keys =
        Kind::of_number(number).ok_or(InvalidBytes::Unknown { field: "keys", got: number })?;
    Ok(AnyHasher::keyed(keys, keyed))
}

/// Opening and saving, without an import of [`Saved`].
impl AnyFilter {
    /// Opens the filter with these bytes.
    ///
    /// # Errors
    ///
    /// [`InvalidBytes`] if they are not a filter. [`InvalidBytes::Secret`] if its hasher has a
    /// secret.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidBytes> {
        Saved::from_bytes(bytes)
    }

    /// As [`from_bytes`](Self::from_bytes), for a filter that was made with this secret.
    ///
    /// # Errors
    ///
    /// [`InvalidBytes`] if they are not such a filter.
    pub fn from_bytes_with_secret(bytes: &[u8], secret: Keyed) -> Result<Self, InvalidBytes> {
        let hasher = hasher_for(&Header::of(bytes)?, secret)?;
        Saved::from_bytes_with_hasher(bytes, hasher)
    }

    /// The filter as bytes, in the format of its family.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        Saved::to_bytes(self)
    }

    /// Opens the filter at `path`, copied into memory.
    ///
    /// # Errors
    ///
    /// See [`OpenError`].
    #[cfg(feature = "std")]
    pub fn load(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Saved::load(path)
    }

    /// As [`load`](Self::load), with a secret or another limit.
    ///
    /// # Errors
    ///
    /// See [`OpenError`].
    #[cfg(feature = "std")]
    pub fn load_as(path: impl AsRef<Path>, how: Opening<Keyed>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let hasher = |keyed| Ok::<_, OpenError>(hasher_for(&Header::read(path)?, keyed)?);
        how.try_map(hasher)?.load(path)
    }

    /// Reads one filter. The rest of the input is not read.
    ///
    /// # Errors
    ///
    /// See [`OpenError`].
    #[cfg(feature = "std")]
    pub fn from_reader(reader: impl io::Read) -> Result<Self, OpenError> {
        Saved::from_reader(reader)
    }

    /// As [`from_reader`](Self::from_reader), with a secret or another limit.
    ///
    /// # Errors
    ///
    /// See [`OpenError`].
    #[cfg(feature = "std")]
    pub fn from_reader_as(
        mut reader: impl io::Read,
        how: Opening<Keyed>,
    ) -> Result<Self, OpenError> {
        let (header, first) = Header::of_reader(&mut reader)?;
        let how = how.try_map(|keyed| hasher_for(&header, keyed))?;
        how.read(io::Read::chain(&first[..], reader))
    }

    /// Writes the filter, a block at a time. `secret` says whether to include the secret of its
    /// hasher, if it has one.
    ///
    /// # Errors
    ///
    /// Any error of the writer.
    #[cfg(feature = "std")]
    pub fn to_writer(&self, writer: impl io::Write, secret: Secret) -> io::Result<()> {
        match secret {
            Secret::Kept => Saved::to_writer_with_secret(self, writer),
            Secret::Left => Saved::to_writer(self, writer),
        }
    }

    /// Saves the filter at `path`, atomically: after a crash, the file is either the complete new
    /// one or the old one.
    ///
    /// # Errors
    ///
    /// As [`Saved::save`].
    #[cfg(feature = "std")]
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        Saved::save(self, path)
    }

    /// As [`save`](Self::save), including the secret of the hasher.
    ///
    /// # Errors
    ///
    /// As [`Saved::save_with_secret`].
    #[cfg(feature = "std")]
    pub fn save_with_secret(&self, path: impl AsRef<Path>) -> io::Result<()> {
        Saved::save_with_secret(self, path)
    }
}

/// Look-ups, where the bytes may not be a valid key.
impl AnyFilter {
    /// The digest of a key.
    ///
    /// # Errors
    ///
    /// [`InvalidKey`] if the key has the wrong length for this filter.
    pub fn digest(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<Digest, InvalidKey> {
        let key = key.as_ref();
        self.hasher.check_key(key)?;
        Ok(self.hasher.digest(key))
    }

    /// The digests of many keys, if all of them are valid keys.
    fn digests<A: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = A>,
    ) -> Result<Vec<Digest>, InvalidKey> {
        keys.into_iter().map(|key| self.digest(&key)).collect()
    }

    /// Whether the key may be in the filter. `false` proves that it is not. `true` is a false
    /// positive for a share of absent keys; [`expected_rate`](Self::expected_rate) is that share.
    ///
    /// # Errors
    ///
    /// [`InvalidKey`] if the key has the wrong length for this filter.
    pub fn contains(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<bool, InvalidKey> {
        Ok(self.raw.contains_digest(self.digest(key)?))
    }

    /// As [`contains`](Self::contains), for many keys: `found[i]` is the answer for `keys[i]`. A
    /// batch is faster if the filter is larger than the cache.
    ///
    /// # Errors
    ///
    /// [`InvalidKey`] if a key has the wrong length. `found` is then unchanged.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    pub fn contains_batch<A: AsRef<[u8]>>(
        &self,
        keys: &[A],
        found: &mut [bool],
    ) -> Result<(), InvalidKey> {
        self.raw.contains_digests(&self.digests(keys)?, found);
        Ok(())
    }

    /// As [`contains_batch`](Self::contains_batch), but returns the answers in a vector.
    ///
    /// # Errors
    ///
    /// [`InvalidKey`] if a key has the wrong length.
    pub fn contains_many<A: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = A>,
    ) -> Result<Vec<bool>, InvalidKey> {
        let digests = self.digests(keys)?;
        let mut found = vec![false; digests.len()];
        self.raw.contains_digests(&digests, &mut found);
        Ok(found)
    }
}

/// Changes, where the bytes may not be a valid key and the family may not support the operation.
impl AnyFilter {
    /// Inserts a key. `Ok(true)` proves that it is new.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if the key has the wrong length, the family does not support insertion, or
    /// there is no room. Nothing is changed then.
    pub fn insert(&mut self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<bool, ChangeError> {
        self.raw.insert_digest(self.digest(key)?)
    }

    /// As [`insert`](Self::insert), for many keys in order: `fresh[i]` is the answer for `keys[i]`.
    /// A batch is faster if the filter is larger than the cache.
    ///
    /// # Errors
    ///
    /// [`ChangeError::Key`] if a key has the wrong length, [`ChangeError::Unsupported`] if the
    /// family does not support insertion. Nothing is changed then. [`ChangeError::BatchFull`] if
    /// there is no room for one of them. The keys before it are inserted. It and those after it are
    /// not inserted, and their answers are `false`.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    pub fn insert_batch<A: AsRef<[u8]>>(
        &mut self,
        keys: &[A],
        fresh: &mut [bool],
    ) -> Result<(), ChangeError> {
        let digests = self.digests(keys)?;
        self.raw.insert_digests(&digests, fresh)
    }

    /// Removes one insertion of a key. `Ok(false)` proves that it is not in the filter; nothing is
    /// changed then. Remove only keys that were inserted.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if the key has the wrong length, or the family does not support removal.
    /// Nothing is changed then.
    pub fn remove(&mut self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<bool, ChangeError> {
        Ok(self.raw.remove_digest(self.digest(key)?)?)
    }

    /// As [`remove`](Self::remove), for many keys in order: `removed[i]` is the answer for
    /// `keys[i]`. A batch is faster if the filter is larger than the cache.
    ///
    /// # Errors
    ///
    /// As [`remove`](Self::remove), also if only one of the keys has the wrong length.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    pub fn remove_batch<A: AsRef<[u8]>>(
        &mut self,
        keys: &[A],
        removed: &mut [bool],
    ) -> Result<(), ChangeError> {
        let digests = self.digests(keys)?;
        Ok(self.raw.remove_digests(&digests, removed)?)
    }
}

/// Combining two filters.
impl AnyFilter {
    fn same_hasher(&self, other: &Self) -> Result<(), Incompatible> {
        same_hasher::<[u8], AnyHasher, Digest>(&self.hasher, &other.hasher)
    }

    /// Whether [`merge_with`](Self::merge_with) can merge the two: their family supports it, and
    /// they have the same shape and hasher. There may still be no room for the keys of both.
    #[must_use]
    pub fn is_compatible(&self, other: &Self) -> bool {
        self.same_hasher(other).is_ok() && self.raw.is_compatible(&other.raw)
    }

    /// Makes this the filter of all keys that are in either of the two. In families that count, the
    /// counts of a key are added.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if the family does not support it, the two differ, or there is no room.
    /// Nothing is changed then.
    pub fn merge_with(&mut self, other: &Self) -> Result<(), ChangeError> {
        let hashers = self.same_hasher(other);
        self.raw.merge(&other.raw, hashers)
    }

    /// Keeps only the bits that are set in both filters. Keys that were inserted into both are
    /// still found. The false positive rate is at most that of either filter before.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if the family does not support it, or the two differ. Nothing is changed
    /// then.
    pub fn intersect_with(&mut self, other: &Self) -> Result<(), ChangeError> {
        let hashers = self.same_hasher(other);
        self.raw.intersect(&other.raw, hashers)
    }
}
