//! Any filter: opened without knowing its family, its hash or the type of its keys.
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
//! Keys are given as bytes or as text: [`AnyHasher`] says which bytes stand for a number or a tuple. A key of
//! the wrong length is an error, [`InvalidKey`]. What the family of a filter cannot do is an error too,
//! [`Unsupported`].
//!
//! What only one family has is found by a `match` over the [core](crate::raw::Any). A filter of known type
//! becomes an [`AnyFilter`] by `into`.
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

/// A filter of any family, hash and type of keys, which are known only at run time. See the
/// [module](self).
///
/// It is opened by [`load`](Self::load), [`from_bytes`](Self::from_bytes) or
/// [`from_reader`](Self::from_reader). Files cannot be mapped without knowing their family.
pub type AnyFilter = Filter<[u8], AnyHasher, Any>;

/// The secret, for keys of the kind in the header.
fn hasher_for(header: &Header, keyed: Keyed) -> Result<AnyHasher, InvalidBytes> {
    let number = header.mark().keys;
    let keys =
        Kind::of_number(number).ok_or(InvalidBytes::Unknown { field: "keys", got: number })?;
    Ok(AnyHasher::keyed(keys, keyed))
}

/// Opening and saving, without importing [`Saved`].
impl AnyFilter {
    /// The filter with these bytes.
    ///
    /// # Errors
    ///
    /// [`InvalidBytes`] if they are not those of a filter; [`InvalidBytes::Secret`] if its hasher has a
    /// secret.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidBytes> {
        Saved::from_bytes(bytes)
    }

    /// As [`from_bytes`](Self::from_bytes), of a filter that was made with this secret.
    ///
    /// # Errors
    ///
    /// [`InvalidBytes`] if they are not those of such a filter.
    pub fn from_bytes_with_secret(bytes: &[u8], secret: Keyed) -> Result<Self, InvalidBytes> {
        let hasher = hasher_for(&Header::of(bytes)?, secret)?;
        Saved::from_bytes_with_hasher(bytes, hasher)
    }

    /// The filter as bytes, the same as those of its family.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        Saved::to_bytes(self)
    }

    /// The filter at `path`, copied into memory.
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

    /// The filter that comes next from a reader. What follows it is not read.
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

    /// Writes the filter, a block at a time. `secret` says whether the secret of its hasher is written
    /// with it, if it has one.
    ///
    /// # Errors
    ///
    /// What the writer says.
    #[cfg(feature = "std")]
    pub fn to_writer(&self, writer: impl io::Write, secret: Secret) -> io::Result<()> {
        match secret {
            Secret::Kept => Saved::to_writer_with_secret(self, writer),
            Secret::Left => Saved::to_writer(self, writer),
        }
    }

    /// Saves the filter at `path`: afterwards the whole filter is there, or what was there before.
    ///
    /// # Errors
    ///
    /// As [`Saved::save`].
    #[cfg(feature = "std")]
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        Saved::save(self, path)
    }

    /// As [`save`](Self::save), with the secret of the hasher in the file.
    ///
    /// # Errors
    ///
    /// As [`Saved::save_with_secret`].
    #[cfg(feature = "std")]
    pub fn save_with_secret(&self, path: impl AsRef<Path>) -> io::Result<()> {
        Saved::save_with_secret(self, path)
    }
}

/// Asking, where bytes may be no key.
impl AnyFilter {
    /// The digest of a key.
    ///
    /// # Errors
    ///
    /// [`InvalidKey`] if keys of this filter have another number of bytes.
    pub fn digest(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<Digest, InvalidKey> {
        let key = key.as_ref();
        self.hasher.check_key(key)?;
        Ok(self.hasher.digest(key))
    }

    /// The digests of many keys, if all of them are keys.
    fn digests<A: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = A>,
    ) -> Result<Vec<Digest>, InvalidKey> {
        keys.into_iter().map(|key| self.digest(&key)).collect()
    }

    /// Whether the key may be in the filter. `false` is proof that it is not. `true` is wrong for the
    /// share of absent keys that [`expected_rate`](Self::expected_rate) tells.
    ///
    /// # Errors
    ///
    /// [`InvalidKey`] if keys of this filter have another number of bytes.
    pub fn contains(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<bool, InvalidKey> {
        Ok(self.raw.contains_digest(self.digest(key)?))
    }

    /// As [`contains`](Self::contains), for many keys: `found[i]` is the answer for `keys[i]`. Faster
    /// than one by one where the filter is larger than the cache.
    ///
    /// # Errors
    ///
    /// [`InvalidKey`] if one of them is no key. `found` is then unchanged.
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

    /// As [`contains_batch`](Self::contains_batch), with the answers in a vector.
    ///
    /// # Errors
    ///
    /// [`InvalidKey`] if one of them is no key.
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

/// Changing, where bytes may be no key and the family may not be able to.
impl AnyFilter {
    /// Inserts a key. `Ok(true)` is proof that it is new.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if this is no key, the family takes no keys, or there is no room. Nothing is
    /// changed then.
    pub fn insert(&mut self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<bool, ChangeError> {
        self.raw.insert_digest(self.digest(key)?)
    }

    /// As [`insert`](Self::insert), for many keys in their order: `fresh[i]` is the answer for
    /// `keys[i]`. Faster than one by one where the filter is larger than the cache.
    ///
    /// # Errors
    ///
    /// [`ChangeError::Key`] if one of them is no key, [`ChangeError::Unsupported`] if the family takes no
    /// keys. Nothing is changed then.
    /// [`ChangeError::BatchFull`] if there is no room for one of them. The keys before it are inserted; it
    /// and those after it are not, and their answers are `false`.
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

    /// Takes back one insertion of a key. `Ok(false)` is proof that it is not in the filter, and then
    /// nothing is changed. Remove only what was inserted.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if this is no key, or the family cannot remove. Nothing is changed then.
    pub fn remove(&mut self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<bool, ChangeError> {
        Ok(self.raw.remove_digest(self.digest(key)?)?)
    }

    /// As [`remove`](Self::remove), for many keys in their order: `removed[i]` is the answer for
    /// `keys[i]`. Faster than one by one where the filter is larger than the cache.
    ///
    /// # Errors
    ///
    /// As [`remove`](Self::remove), if one of them is no key too.
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

    /// Whether [`merge_with`](Self::merge_with) can merge the two: their family can, and they have the
    /// same shape and hasher. There may still be no room for the keys of both.
    #[must_use]
    pub fn is_compatible(&self, other: &Self) -> bool {
        self.same_hasher(other).is_ok() && self.raw.is_compatible(&other.raw)
    }

    /// Makes this the filter of all keys that are in either of the two. In families that count, each key
    /// is then as often in it as in both together.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if the family cannot, the two differ, or there is no room. Nothing is changed
    /// then.
    pub fn merge_with(&mut self, other: &Self) -> Result<(), ChangeError> {
        let hashers = self.same_hasher(other);
        self.raw.merge(&other.raw, hashers)
    }

    /// Keeps only the bits that both filters have. Keys that were inserted into both are still found; of
    /// the others no more are found than either filter found before.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if the family cannot, or the two differ. Nothing is changed then.
    pub fn intersect_with(&mut self, other: &Self) -> Result<(), ChangeError> {
        let hashers = self.same_hasher(other);
        self.raw.intersect(&other.raw, hashers)
    }
}
