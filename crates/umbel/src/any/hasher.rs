//! A hasher whose type is known only at run time.

use crate::error::{InvalidBytes, InvalidKey};
use crate::format::{Mark, Stored, hashes};
use crate::hash::{City64, Digest, Digester, Farm64, Keyed, Kind, Murmur3, Portable, Xxh3, Xxh64};
use crate::split::Plain;

#[cfg(feature = "crc64")]
use crate::hash::Crc64;

/// Any hasher of this library, with the kind of its keys, which it takes as bytes. Strings are
/// unchanged. Integers of up to 64 bits are eight bytes and those of 128 bits sixteen,
/// little-endian. Numbers for Parquet have Parquet's encoding. Tuples and options have the encoding
/// of their parts in `docs/hashing.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnyHasher {
    keys: Kind,
    hash: Hash,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hash {
    Portable(Portable),
    Keyed(Keyed),
    Murmur3(Murmur3),
    Xxh64(Xxh64),
    Xxh3(Xxh3),
    City64(City64),
    Farm64(Farm64),
    #[cfg(feature = "crc64")]
    Crc64(Crc64),
    Plain(Plain),
}

/// Runs code for the actual hasher.
macro_rules! each {
    ($hash:expr, $hasher:pat => $do:expr) => {
        match $hash {
            Hash::Portable($hasher) => $do,
            Hash::Keyed($hasher) => $do,
            Hash::Murmur3($hasher) => $do,
            Hash::Xxh64($hasher) => $do,
            Hash::Xxh3($hasher) => $do,
            Hash::City64($hasher) => $do,
            Hash::Farm64($hasher) => $do,
            #[cfg(feature = "crc64")]
            Hash::Crc64($hasher) => $do,
            Hash::Plain($hasher) => $do,
        }
    };
}

impl AnyHasher {
    /// This secret, for keys of this kind.
    pub(super) const fn keyed(keys: Kind, keyed: Keyed) -> Self {
        Self { keys, hash: Hash::Keyed(keyed) }
    }

    /// The kind of the keys.
    #[must_use]
    pub const fn keys(&self) -> Kind {
        self.keys
    }

    /// The name of the hash, as `docs/format.md` has it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self.hash {
            Hash::Portable(_) => "portable",
            Hash::Keyed(_) => "keyed",
            Hash::Murmur3(_) => "murmur3",
            Hash::Xxh64(_) => "xxh64",
            Hash::Xxh3(_) => "xxh3",
            Hash::City64(_) => "city64",
            Hash::Farm64(_) => "farm64",
            #[cfg(feature = "crc64")]
            Hash::Crc64(_) => "crc64",
            Hash::Plain(_) => "plain",
        }
    }

    /// The same hash for keys of several fields, which the caller passes as [`Kind::Fields`] says. They have the digests that
    /// [`Kind::Bytes`] have; the kind keeps keys of one part from being looked up among them.
    #[must_use]
    pub const fn of_fields(mut self) -> Self {
        self.keys = Kind::Fields;
        self
    }

    /// Checks that a key has the right length for its kind.
    ///
    /// # Errors
    ///
    /// [`InvalidKey`] if it does not.
    pub const fn check_key(&self, key: &[u8]) -> Result<(), InvalidKey> {
        let expected = match self.keys {
            Kind::Bytes | Kind::Parts | Kind::Fields => return Ok(()),
            Kind::Words | Kind::Plain8 => 8,
            Kind::Wide => 16,
            Kind::Plain4 => 4,
        };
        if key.len() == expected { Ok(()) } else { Err(InvalidKey { expected, got: key.len() }) }
    }
}

/// For keys that are byte strings.
impl From<Keyed> for AnyHasher {
    fn from(keyed: Keyed) -> Self {
        Self::keyed(Kind::Bytes, keyed)
    }
}

/// For keys that are byte strings.
impl From<Portable> for AnyHasher {
    fn from(portable: Portable) -> Self {
        Self { keys: Kind::Bytes, hash: Hash::Portable(portable) }
    }
}

/// Bytes of the wrong length get a digest with which no key was inserted.
impl Digester<[u8]> for AnyHasher {
    fn digest(&self, key: &[u8]) -> Digest {
        if self.keys == Kind::Words
            && let Hash::Portable(portable) = &self.hash
            && let Ok(word) = key.try_into()
        {
            return portable.digest(&u64::from_le_bytes(word));
        }
        // All other hashes take bytes.
        each!(&self.hash, hasher => hasher.digest(key))
    }

    fn check(&self) -> u64 {
        let check = each!(&self.hash, hasher => Digester::<[u8]>::check(hasher));
        Digest::mixed(
            check ^ u64::from(Stored::mark(self).hash) << 16 ^ u64::from(self.keys.number()),
        )
        .bits()
    }
}

impl Stored<[u8]> for AnyHasher {
    fn mark(&self) -> Mark {
        let mark = each!(&self.hash, hasher => Stored::<[u8]>::mark(hasher));
        Mark { keys: self.keys.number(), ..mark }
    }

    fn restore(mark: &Mark) -> Result<Self, InvalidBytes> {
        let keys = Kind::of_number(mark.keys);
        let keys = keys.ok_or(InvalidBytes::Unknown { field: "keys", got: mark.keys })?;
        let bytes = &Mark { keys: Kind::Bytes.number(), ..*mark };
        let hash = match mark.hash {
            hashes::PORTABLE => Stored::<[u8]>::restore(bytes).map(Hash::Portable),
            hashes::KEYED => Stored::<[u8]>::restore(bytes).map(Hash::Keyed),
            hashes::MURMUR3 => Stored::<[u8]>::restore(bytes).map(Hash::Murmur3),
            hashes::XXH64 => Stored::<[u8]>::restore(bytes).map(Hash::Xxh64),
            hashes::XXH3 => Stored::<[u8]>::restore(bytes).map(Hash::Xxh3),
            hashes::CITY64 => Stored::<[u8]>::restore(bytes).map(Hash::City64),
            hashes::FARM64 => Stored::<[u8]>::restore(bytes).map(Hash::Farm64),
            #[cfg(feature = "crc64")]
            hashes::CRC64 => Stored::<[u8]>::restore(bytes).map(Hash::Crc64),
            hashes::PLAIN => Stored::<[u8]>::restore(bytes).map(Hash::Plain),
            got => Err(InvalidBytes::Unknown { field: "hash", got }),
        }?;
        let plain = matches!(hash, Hash::Plain(_));
        let fits = match keys {
            Kind::Bytes => true,
            Kind::Words | Kind::Wide | Kind::Parts | Kind::Fields => !plain,
            Kind::Plain4 | Kind::Plain8 => plain,
        };
        if fits { Ok(Self { keys, hash }) } else { Err(InvalidBytes::Inconsistent) }
    }
}
