//! What `dedup` keeps while it is exact: 128 bits of every key, under a secret.

mod file;
mod sip;
mod table;

pub(crate) use file::{Saved, begins, is_in};
pub(crate) use table::NoRoom;

use sip::Sip;
use siphasher::sip128::SipHasher13;
use table::Table;
use umbel::Keyed;

/// A set of keys that takes one for another once in 2^128.
pub(crate) struct Exact {
    table: Table,
    secret: Keyed,
    hashing: Hashing,
}

/// How digests are made.
#[derive(Clone, Copy)]
pub(crate) enum Hashing {
    /// As version 1 of the file has it: SipHash-1-3 with 128 bits. No filter has such digests.
    Wide(SipHasher13),
    /// SipHash-1-3 with 64 bits, and 64 more.
    Long(Sip),
}

impl Hashing {
    #[inline]
    pub(crate) fn digest(&self, key: &[u8]) -> u128 {
        match self {
            Self::Wide(sip) => sip.hash(key).as_u128(),
            Self::Long(sip) => sip.digest(key),
        }
    }
}

impl Exact {
    /// An empty set under this secret, which takes at most `limit` bytes.
    pub(crate) fn new(secret: Keyed, limit: u64) -> Self {
        let hashing = Hashing::Long(Sip::new(secret.secret()));
        Self { table: Table::new(limit), secret, hashing }
    }

    /// Another one, whose digests are the same.
    pub(crate) fn empty_like(&self, limit: u64) -> Self {
        Self { table: Table::new(limit), ..*self }
    }

    pub(crate) const fn hashing(&self) -> Hashing {
        self.hashing
    }

    /// The hasher of the filter that this set can go over to: the low halves of its digests are the digests of the filter.
    pub(crate) const fn hasher(&self) -> Option<Keyed> {
        match self.hashing {
            Hashing::Wide(_) => None,
            Hashing::Long(_) => Some(self.secret),
        }
    }

    /// Inserts digests and tells which are seen for the first time, up to the first one that there is no room for.
    pub(crate) fn insert_each(
        &mut self,
        digests: &[u128],
        fresh: &mut [bool],
    ) -> Result<(), (usize, NoRoom)> {
        self.table.insert_each(digests, fresh)
    }

    /// Whether a digest is seen for the first time.
    #[inline]
    pub(crate) fn insert(&mut self, digest: u128) -> Result<bool, NoRoom> {
        self.table.insert(digest)
    }

    pub(crate) const fn len(&self) -> u64 {
        self.table.len()
    }

    /// The memory it takes.
    pub(crate) fn bytes(&self) -> u64 {
        self.table.bytes()
    }

    pub(crate) fn digests(&self) -> impl Iterator<Item = u128> {
        self.table.digests()
    }
}
