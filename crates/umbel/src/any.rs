//! Any filter: opened without knowing its family, its hash or the type of its keys.
//!
//! ```
//! use umbel::any::AnyFilter;
//! use umbel::{RibbonFilter, Saved};
//!
//! let bytes = RibbonFilter::<str>::build(["alice", "bob"], 1e-6)?.to_bytes();
//! // elsewhere, by somebody who was only given the bytes
//! let filter = AnyFilter::from_bytes(&bytes)?;
//! assert_eq!((filter.family(), filter.hasher().name()), ("ribbon", "portable"));
//! assert!(filter.contains("alice")? && !filter.contains("mallory")?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Keys are bytes here, or text: see [`AnyHasher`]. What a family cannot do is an error, [`Unsupported`].

mod hasher;

pub use hasher::AnyHasher;

use crate::blocked::BlockedBloomFilter;
use crate::bloom::BloomFilter;
use crate::counting::{BlockedCountingBloomFilter, CountingBloomFilter};
use crate::cuckoo::CuckooFilter;
use crate::error::{BatchFull, Full, Incompatible, InvalidBytes, InvalidKey};
use crate::filter::{Contains, Insert, Remove};
use crate::format::{Family, Header, Saved};
use crate::fuse::{BinaryFuse4Filter, BinaryFuseFilter};
use crate::hash::{Digest, Digester, Keyed, Kind};
use crate::quotient::QuotientFilter;
use crate::ribbon::RibbonFilter;
use crate::scalable::ScalableBloomFilter;
use crate::split::SplitBlockBloomFilter;
use crate::stable::StableBloomFilter;
use crate::window::WindowBloomFilter;
use crate::xor::XorFilter;
use alloc::vec::Vec;
use core::fmt;

#[cfg(feature = "std")]
use crate::format::{OpenError, Opening, Secret};
#[cfg(feature = "std")]
use std::{io, path::Path};

/// What a family cannot do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The name of the family.
    pub family: &'static str,
    /// What was asked of it.
    pub what: &'static str,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a {} filter cannot {}", self.family, self.what)
    }
}

impl core::error::Error for Unsupported {}

/// Why a filter was not changed, or not as much as it should have been.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ChangeError {
    /// Its family cannot.
    Unsupported(Unsupported),
    /// The key is no key of its kind.
    Key(InvalidKey),
    /// There is no room.
    Full,
    /// There is no room for a key of a batch. The keys before it were inserted.
    BatchFull(BatchFull),
    /// The two filters are not of one family.
    Family {
        /// The one to be changed.
        expected: &'static str,
        /// The other one.
        got: &'static str,
    },
    /// The two filters differ in more than what was inserted.
    Incompatible(Incompatible),
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported(error) => error.fmt(f),
            Self::Key(error) => error.fmt(f),
            Self::Full => Full.fmt(f),
            // A batch is an affair of the program, which reads the number; the message is for its user.
            Self::BatchFull(_) => Full.fmt(f),
            Self::Family { expected, got } => {
                write!(f, "the one filter is of family {expected}, the other of family {got}")
            }
            Self::Incompatible(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ChangeError {}

macro_rules! from {
    ($($error:ident => $variant:ident),*) => {$(
        impl From<$error> for ChangeError {
            fn from(error: $error) -> Self {
                Self::$variant(error)
            }
        }
    )*};
}

from!(Unsupported => Unsupported, InvalidKey => Key, BatchFull => BatchFull, Incompatible => Incompatible);

impl From<Full> for ChangeError {
    fn from(Full: Full) -> Self {
        Self::Full
    }
}

/// Declares the families: each with its name and, where two share a number, the kernels of the first.
macro_rules! families {
    ($($(#[$doc:meta])* $variant:ident($filter:ident) = $name:literal $(if $kernels:literal)?;)*) => {
        /// A filter of any family. See the [module](self).
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum AnyFilter {
            $($(#[$doc])* $variant($filter<[u8], AnyHasher>),)*
        }

        impl AnyFilter {
            /// The name of the family, as `docs/format.md` has it.
            #[must_use]
            pub const fn family(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)*
                }
            }
        }

        /// Opens what the header says in the way of each family.
        fn dispatch<O: Open>(header: &Header, open: O) -> Result<AnyFilter, O::Error> {
            $(if header.family() == <$filter<[u8], AnyHasher> as Family>::FAMILY
                $(&& header.kernels() == $kernels)?
            {
                return open.open().map(AnyFilter::$variant);
            })*
            Err(InvalidBytes::Unknown { field: "family", got: header.family() }.into())
        }

        /// Does something with whatever filter it is.
        macro_rules! each {
            ($any:expr, $one:pat => $do:expr) => {
                match $any {
                    $(AnyFilter::$variant($one) => $do,)*
                }
            };
        }
    };
}

families! {
    /// A classic Bloom filter.
    Bloom(BloomFilter) = "bloom";
    /// A blocked Bloom filter.
    Blocked(BlockedBloomFilter) = "blocked";
    /// A split-block Bloom filter.
    Split(SplitBlockBloomFilter) = "split";
    /// A counting Bloom filter.
    Counting(CountingBloomFilter) = "counting" if 1;
    /// A blocked counting Bloom filter.
    BlockedCounting(BlockedCountingBloomFilter) = "blocked-counting";
    /// A scalable Bloom filter.
    Scalable(ScalableBloomFilter) = "scalable";
    /// A stable Bloom filter.
    Stable(StableBloomFilter) = "stable";
    /// A window Bloom filter.
    Window(WindowBloomFilter) = "window";
    /// A cuckoo filter.
    Cuckoo(CuckooFilter) = "cuckoo";
    /// A quotient filter.
    Quotient(QuotientFilter) = "quotient";
    /// A xor filter.
    Xor(XorFilter) = "xor";
    /// A binary fuse filter with three entries a key.
    Fuse(BinaryFuseFilter) = "fuse";
    /// A binary fuse filter with four entries a key.
    Fuse4(BinaryFuse4Filter) = "fuse4";
    /// A ribbon filter.
    Ribbon(RibbonFilter) = "ribbon";
}

/// A way to open a filter, whose family is known by now.
trait Open {
    type Error: From<InvalidBytes>;

    fn open<F>(self) -> Result<F, Self::Error>
    where
        F: Family<Hasher = AnyHasher, Storage: crate::storage::Allocate>;
}

/// Bytes, and a hasher if one was brought.
struct FromBytes<'a>(&'a [u8], Option<AnyHasher>);

impl Open for FromBytes<'_> {
    type Error = InvalidBytes;

    fn open<F>(self) -> Result<F, InvalidBytes>
    where
        F: Family<Hasher = AnyHasher, Storage: crate::storage::Allocate>,
    {
        match self.1 {
            Some(hasher) => F::from_bytes_with_hasher(self.0, hasher),
            None => F::from_bytes(self.0),
        }
    }
}

#[cfg(feature = "std")]
struct FromFile<'a>(&'a Path, Opening<AnyHasher>);

#[cfg(feature = "std")]
impl Open for FromFile<'_> {
    type Error = OpenError;

    fn open<F>(self) -> Result<F, OpenError>
    where
        F: Family<Hasher = AnyHasher, Storage: crate::storage::Allocate>,
    {
        self.1.load(self.0)
    }
}

#[cfg(feature = "std")]
struct FromReader<R>(R, Opening<AnyHasher>);

#[cfg(feature = "std")]
impl<R: io::Read> Open for FromReader<R> {
    type Error = OpenError;

    fn open<F>(self) -> Result<F, OpenError>
    where
        F: Family<Hasher = AnyHasher, Storage: crate::storage::Allocate>,
    {
        self.1.read(self.0)
    }
}

/// The secret for the keys that a header speaks of.
fn hasher_for(header: &Header, keyed: Keyed) -> Result<AnyHasher, InvalidBytes> {
    let number = header.mark().keys;
    let keys =
        Kind::of_number(number).ok_or(InvalidBytes::Unknown { field: "keys", got: number })?;
    Ok(AnyHasher::keyed(keys, keyed))
}

/// Opening and saving.
impl AnyFilter {
    /// The filter with these bytes.
    ///
    /// # Errors
    ///
    /// [`InvalidBytes`] if they are not those of a filter; [`InvalidBytes::Secret`] if its hasher has a
    /// secret.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidBytes> {
        dispatch(&Header::of(bytes)?, FromBytes(bytes, None))
    }

    /// As [`from_bytes`](Self::from_bytes), of a filter that was made with this secret.
    ///
    /// # Errors
    ///
    /// [`InvalidBytes`] if they are not those of such a filter.
    pub fn from_bytes_with_secret(bytes: &[u8], secret: Keyed) -> Result<Self, InvalidBytes> {
        let header = Header::of(bytes)?;
        let hasher = hasher_for(&header, secret)?;
        dispatch(&header, FromBytes(bytes, Some(hasher)))
    }

    /// The filter as bytes, as the family writes them.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        each!(self, filter => filter.to_bytes())
    }

    /// The filter at `path`, copied into memory.
    ///
    /// # Errors
    ///
    /// See [`OpenError`].
    #[cfg(feature = "std")]
    pub fn load(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::load_as(path, Opening::new())
    }

    /// As [`load`](Self::load), with a secret or another limit.
    ///
    /// # Errors
    ///
    /// See [`OpenError`].
    #[cfg(feature = "std")]
    pub fn load_as(path: impl AsRef<Path>, how: Opening<Keyed>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let header = Header::read(path)?;
        let how = how.try_map(|keyed| hasher_for(&header, keyed))?;
        dispatch(&header, FromFile(path, how))
    }

    /// The filter that comes next from a reader. What follows it is not read.
    ///
    /// # Errors
    ///
    /// See [`OpenError`].
    #[cfg(feature = "std")]
    pub fn from_reader(reader: impl io::Read) -> Result<Self, OpenError> {
        Self::from_reader_as(reader, Opening::new())
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
        dispatch(&header, FromReader(io::Read::chain(&first[..], reader), how))
    }

    /// Writes the filter, a block at a time; with the secret of its hasher, if it has one, or without.
    ///
    /// # Errors
    ///
    /// What the writer says.
    #[cfg(feature = "std")]
    pub fn to_writer(&self, writer: impl io::Write, secret: impl Into<Secret>) -> io::Result<()> {
        match secret.into() {
            Secret::Kept => each!(self, filter => filter.to_writer_with_secret(writer)),
            Secret::Left => each!(self, filter => filter.to_writer(writer)),
        }
    }

    /// Saves the filter at `path`: afterwards the whole filter is there, or what was there before.
    ///
    /// # Errors
    ///
    /// As [`Saved::save`].
    #[cfg(feature = "std")]
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        each!(self, filter => filter.save(path))
    }

    /// As [`save`](Self::save), with the secret of the hasher in the file.
    ///
    /// # Errors
    ///
    /// As [`Saved::save_with_secret`].
    #[cfg(feature = "std")]
    pub fn save_with_secret(&self, path: impl AsRef<Path>) -> io::Result<()> {
        each!(self, filter => filter.save_with_secret(path))
    }
}

/// Asking.
impl AnyFilter {
    /// What turns keys into digests.
    #[must_use]
    pub const fn hasher(&self) -> &AnyHasher {
        each!(self, filter => filter.hasher())
    }

    /// The digest of a key.
    ///
    /// # Errors
    ///
    /// [`InvalidKey`] if keys of this filter have another number of bytes.
    pub fn digest(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<Digest, InvalidKey> {
        let key = key.as_ref();
        self.hasher().check_key(key)?;
        Ok(self.hasher().digest(key))
    }

    /// Whether the key may be in the filter. `false` is proof that it is not; `true` is wrong for a
    /// share of absent keys that [`expected_rate`](Self::expected_rate) tells.
    ///
    /// # Errors
    ///
    /// [`InvalidKey`] if keys of this filter have another number of bytes.
    pub fn contains(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<bool, InvalidKey> {
        Ok(self.contains_digest(self.digest(key)?))
    }

    /// As [`contains`](Self::contains), for keys that were digested: `found[i]` is the answer for
    /// `digests[i]`.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    pub fn contains_digests(&self, digests: &[Digest], found: &mut [bool]) {
        each!(self, filter => filter.contains_digests(digests, found));
    }

    /// The share of absent keys it answers `true` for now. May read the whole filter.
    #[must_use]
    pub fn expected_rate(&self) -> f64 {
        each!(self, filter => filter.expected_rate())
    }

    /// The memory of the words, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        each!(self, filter => filter.bytes())
    }
}

impl Contains for AnyFilter {
    fn contains_digest(&self, digest: Digest) -> bool {
        each!(self, filter => filter.contains_digest(digest))
    }
}

/// Changing.
impl AnyFilter {
    const fn unsupported<T>(&self, what: &'static str) -> Result<T, Unsupported> {
        Err(Unsupported { family: self.family(), what })
    }

    /// The filter as one that takes keys, if it is one.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] if it is for a set that does not change.
    pub fn as_insert(&mut self) -> Result<&mut dyn Insert, Unsupported> {
        Ok(match self {
            Self::Bloom(filter) => filter,
            Self::Blocked(filter) => filter,
            Self::Split(filter) => filter,
            Self::Counting(filter) => filter,
            Self::BlockedCounting(filter) => filter,
            Self::Scalable(filter) => filter,
            Self::Stable(filter) => filter,
            Self::Window(filter) => filter,
            Self::Cuckoo(filter) => filter,
            Self::Quotient(filter) => filter,
            Self::Xor(_) | Self::Fuse(_) | Self::Fuse4(_) | Self::Ribbon(_) => {
                return self.unsupported("take keys once it is built");
            }
        })
    }

    /// The filter as one that gives keys back, if it is one.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] if it is none.
    pub fn as_remove(&mut self) -> Result<&mut dyn Remove, Unsupported> {
        Ok(match self {
            Self::Counting(filter) => filter,
            Self::BlockedCounting(filter) => filter,
            Self::Cuckoo(filter) => filter,
            Self::Quotient(filter) => filter,
            _ => return self.unsupported("remove keys"),
        })
    }

    /// Inserts a key. `true` is proof that it is new.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if the family takes no keys, there is no room, or this is no key. Nothing is
    /// changed then.
    pub fn insert(&mut self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<bool, ChangeError> {
        let digest = self.digest(key)?;
        Ok(self.as_insert()?.insert_digest(digest)?)
    }

    /// As [`insert`](Self::insert), for many keys that were digested, in their order: `fresh[i]` is the
    /// answer for `digests[i]`.
    ///
    /// # Errors
    ///
    /// [`ChangeError::Unsupported`] if the family takes no keys, [`ChangeError::BatchFull`] if there is no
    /// room for one of them. The keys before it are inserted; it and those after it are not, and their
    /// answers are `false`.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    pub fn insert_digests(
        &mut self,
        digests: &[Digest],
        fresh: &mut [bool],
    ) -> Result<(), ChangeError> {
        Ok(self.as_insert()?.insert_digests(digests, fresh)?)
    }

    /// Takes back one insertion of a key. `false` if it cannot have been inserted, and then nothing is
    /// changed. Remove only what was inserted.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if the family cannot, or this is no key.
    pub fn remove(&mut self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<bool, ChangeError> {
        let digest = self.digest(key)?;
        Ok(self.as_remove()?.remove_digest(digest))
    }

    /// Makes this the filter of all keys that are in either of the two: those of a family that counts
    /// are as often in it as in both.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if the family cannot, the two differ, or there is no room. Nothing is changed
    /// then.
    pub fn merge_with(&mut self, other: &Self) -> Result<(), ChangeError> {
        match (self, other) {
            (Self::Bloom(one), Self::Bloom(other)) => one.union_with(other)?,
            (Self::Blocked(one), Self::Blocked(other)) => one.union_with(other)?,
            (Self::Split(one), Self::Split(other)) => one.union_with(other)?,
            (Self::Counting(one), Self::Counting(other)) => one.merge_with(other)?,
            (Self::BlockedCounting(one), Self::BlockedCounting(other)) => one.merge_with(other)?,
            (Self::Cuckoo(one), Self::Cuckoo(other)) => one.merge_with(other)?,
            (Self::Quotient(one), Self::Quotient(other)) => one.merge_with(other)?,
            (one, other) if one.family() != other.family() => {
                let (expected, got) = (one.family(), other.family());
                return Err(ChangeError::Family { expected, got });
            }
            (one, _) => one.unsupported("be merged")?,
        }
        Ok(())
    }

    /// Makes this a filter of the keys that are in both, and of no more others than are in either.
    ///
    /// # Errors
    ///
    /// As [`merge_with`](Self::merge_with).
    pub fn intersect_with(&mut self, other: &Self) -> Result<(), ChangeError> {
        match (self, other) {
            (Self::Bloom(one), Self::Bloom(other)) => one.intersect_with(other)?,
            (Self::Blocked(one), Self::Blocked(other)) => one.intersect_with(other)?,
            (Self::Split(one), Self::Split(other)) => one.intersect_with(other)?,
            (one, other) if one.family() != other.family() => {
                let (expected, got) = (one.family(), other.family());
                return Err(ChangeError::Family { expected, got });
            }
            (one, _) => one.unsupported("be intersected")?,
        }
        Ok(())
    }
}
