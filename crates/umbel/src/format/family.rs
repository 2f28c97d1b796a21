//! What the format has to know of a family, and of a hasher.

use super::header::Header;
use crate::error::InvalidBytes;
use crate::hash::{City64, Digester, Farm64, Key, Keyed, Kind, Murmur3, Portable, Xxh3, Xxh64};

/// A filter that has a form in bytes. What can be done with it is in [`Saved`](super::Saved).
///
/// Its hidden methods are for this library only: families have numbers, and numbers are for ever.
pub trait Family: Sized {
    /// What turns its keys into digests.
    type Hasher;
    /// Where its words are.
    type Storage;

    /// Its number in a header.
    #[doc(hidden)]
    const FAMILY: u16;

    /// The number of the hasher, and the kind of keys.
    #[doc(hidden)]
    const HASH: (u16, Kind);

    /// Whether the words stay as they are while somebody has a reference to the filter.
    #[doc(hidden)]
    const STILL: bool = true;

    /// All that there is to say but the words, their length and their checksum.
    #[doc(hidden)]
    fn header(&self) -> Header;

    /// Hands over all words in their order, run by run.
    #[doc(hidden)]
    fn for_words<E>(&self, each: &mut impl FnMut(&[u64]) -> Result<(), E>) -> Result<(), E>;

    /// How many words a filter with this header has, if there can be one.
    #[doc(hidden)]
    fn words(header: &Header) -> Result<u64, InvalidBytes>;

    /// The hasher with this mark, if that says enough.
    #[doc(hidden)]
    fn hasher_of(mark: Mark) -> Option<Self::Hasher>;

    /// What a hasher writes into a header.
    #[doc(hidden)]
    fn mark_of(hasher: &Self::Hasher) -> Mark;

    /// The filter with this header, this hasher and these words, of which it takes as many as
    /// [`words`](Self::words) says, run by run. It has been asked whether there can be one.
    #[doc(hidden)]
    fn assemble<E: From<InvalidBytes>>(
        header: &Header,
        hasher: Self::Hasher,
        take: &mut impl FnMut(u64) -> Result<Self::Storage, E>,
    ) -> Result<Self, E>;

    /// Whether these are words that such a filter can have. Reads all of them, if it must.
    #[doc(hidden)]
    fn audit(&self) -> Result<(), InvalidBytes> {
        Ok(())
    }
}

/// What a header says of insertions that nobody counts.
pub(crate) const NOT_COUNTED: u64 = u64::MAX;

/// What a header says of a hasher, besides its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// What tells it from others with the same number: the seed; for a secret, a check value.
    pub check: u64,
    /// Which secret it has, as its owner numbers them. Nothing depends on it.
    pub key_id: u64,
    /// The secret, which is written only for those who ask for it.
    pub secret: Option<[u8; 16]>,
}

impl Mark {
    /// The mark of a hasher without a secret.
    #[must_use]
    pub const fn public(check: u64) -> Self {
        Self { check, key_id: 0, secret: None }
    }
}

/// A hasher whose digests of keys `T` are the same for ever, so that a filter made with it may be
/// saved.
pub trait Stored<T: ?Sized>: Sized {
    /// Its number in a header. Numbers are never given to another hash; those from 32,768 up are for
    /// hashers of your own.
    const ID: u16;

    /// What form the keys have.
    const KEYS: Kind;

    /// What a header says of it.
    fn mark(&self) -> Mark;

    /// The hasher with this mark, if that says enough.
    fn restore(mark: Mark) -> Option<Self>;
}

impl<T: Key + ?Sized> Stored<T> for Portable {
    const ID: u16 = 1;
    const KEYS: Kind = T::KIND;

    fn mark(&self) -> Mark {
        Mark::public(self.seed())
    }

    fn restore(mark: Mark) -> Option<Self> {
        Some(Self::seeded(mark.check))
    }
}

/// Whoever opens the filter brings the secret, unless the file was asked to keep it.
impl<T: Key + ?Sized> Stored<T> for Keyed {
    const ID: u16 = 2;
    const KEYS: Kind = T::KIND;

    fn mark(&self) -> Mark {
        Mark { check: Digester::<T>::check(self), key_id: self.id(), secret: Some(*self.secret()) }
    }

    fn restore(mark: Mark) -> Option<Self> {
        let keyed = Self::new(mark.secret?).with_id(mark.key_id);
        (Digester::<T>::check(&keyed) == mark.check).then_some(keyed)
    }
}

macro_rules! stored_by_seed {
    ($($hasher:ty = $id:literal),*) => {$(
        impl<T: Key + ?Sized> Stored<T> for $hasher {
            const ID: u16 = $id;
            const KEYS: Kind = T::KIND;

            fn mark(&self) -> Mark {
                Mark::public(self.seed().into())
            }

            fn restore(mark: Mark) -> Option<Self> {
                mark.check.try_into().ok().map(Self::seeded)
            }
        }
    )*};
}
stored_by_seed!(Murmur3 = 3, Xxh64 = 4, Xxh3 = 5);

macro_rules! stored_by_check {
    ($($hasher:ty = $id:literal),*) => {$(
        /// Only the default one can be told from its mark.
        impl<T: Key + ?Sized> Stored<T> for $hasher {
            const ID: u16 = $id;
            const KEYS: Kind = T::KIND;

            fn mark(&self) -> Mark {
                Mark::public(Digester::<T>::check(self))
            }

            fn restore(mark: Mark) -> Option<Self> {
                Some(Self::default()).filter(|hasher| Stored::<T>::mark(hasher) == mark)
            }
        }
    )*};
}
stored_by_check!(City64 = 6, Farm64 = 7);
#[cfg(feature = "crc64")]
stored_by_check!(crate::hash::Crc64 = 8);
// 9 is `split::Plain`.
