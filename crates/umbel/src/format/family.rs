//! The properties of a family and of a hasher that the format needs.

use super::header::Header;
use crate::edge::Filter;
use crate::error::InvalidBytes;
use crate::hash::{City64, Digester, Farm64, Key, Keyed, Kind, Murmur3, Portable, Xxh3, Xxh64};

/// A filter that can be saved. Its operations are in [`Saved`](super::Saved).
///
/// The hidden methods are only for this library: families have numbers, which never change.
#[doc(hidden)]
pub trait Family: Sized {
    /// The key type.
    type Keys: ?Sized;
    /// The hasher.
    type Hasher: Stored<Self::Keys>;
    /// The storage of the words.
    type Storage;

    /// The parsed fields of a header.
    #[doc(hidden)]
    type Plan;

    /// Its number in a header.
    #[doc(hidden)]
    const FAMILY: u16;

    /// Whether the words cannot change while there is a shared reference to the filter.
    #[doc(hidden)]
    const STILL: bool = true;

    /// Everything in the header except the words, their length and their checksum.
    #[doc(hidden)]
    fn header(&self) -> Header;

    /// Passes on all words in order, run by run.
    #[doc(hidden)]
    fn for_words<E>(&self, each: &mut impl FnMut(&[u64]) -> Result<(), E>) -> Result<(), E>;

    /// Parses a header, if such a filter is possible.
    #[doc(hidden)]
    fn plan(header: &Header) -> Result<Self::Plan, InvalidBytes>;

    /// How many words such a filter has.
    #[doc(hidden)]
    fn words(plan: &Self::Plan) -> u64;

    /// Creates the filter with this header, this hasher and these words. It reads
    /// [`words`](Self::words) of them, run by run.
    #[doc(hidden)]
    fn assemble<E: From<InvalidBytes>>(
        plan: Self::Plan,
        header: &Header,
        hasher: Self::Hasher,
        take: &mut impl FnMut(u64) -> Result<Self::Storage, E>,
    ) -> Result<Self, E>;

    /// Checks that such a filter can have these words. May read all of them.
    #[doc(hidden)]
    fn audit(&self) -> Result<(), InvalidBytes> {
        Ok(())
    }
}

/// A core that can be saved: a [`Family`] without the hasher.
#[doc(hidden)]
pub trait StoredCore: Sized {
    type Storage;
    type Plan;

    const FAMILY: u16;
    const STILL: bool = true;

    fn header(&self, mark: Mark) -> Header;

    fn for_words<E>(&self, each: &mut impl FnMut(&[u64]) -> Result<(), E>) -> Result<(), E>;

    fn plan(header: &Header) -> Result<Self::Plan, InvalidBytes>;

    fn words(plan: &Self::Plan) -> u64;

    fn assemble<E: From<InvalidBytes>>(
        plan: Self::Plan,
        header: &Header,
        take: &mut impl FnMut(u64) -> Result<Self::Storage, E>,
    ) -> Result<Self, E>;

    fn audit(&self) -> Result<(), InvalidBytes> {
        Ok(())
    }
}

impl<T: ?Sized, H: Stored<T>, C: StoredCore> Family for Filter<T, H, C> {
    type Keys = T;
    type Hasher = H;
    type Storage = C::Storage;
    type Plan = C::Plan;

    const FAMILY: u16 = C::FAMILY;
    const STILL: bool = C::STILL;

    fn header(&self) -> Header {
        self.raw.header(self.hasher.mark())
    }

    fn for_words<E>(&self, each: &mut impl FnMut(&[u64]) -> Result<(), E>) -> Result<(), E> {
        self.raw.for_words(each)
    }

    fn plan(header: &Header) -> Result<C::Plan, InvalidBytes> {
        C::plan(header)
    }

    fn words(plan: &C::Plan) -> u64 {
        C::words(plan)
    }

    fn assemble<E: From<InvalidBytes>>(
        plan: C::Plan,
        header: &Header,
        hasher: H,
        take: &mut impl FnMut(u64) -> Result<C::Storage, E>,
    ) -> Result<Self, E> {
        C::assemble(plan, header, take).map(|raw| Self::from_raw(raw, hasher))
    }

    fn audit(&self) -> Result<(), InvalidBytes> {
        self.raw.audit()
    }
}

#[cfg(feature = "serde")]
super::through_serde!([T: ?Sized, H, C] Filter<T, H, C>);

/// Replaces the number of a family where any family is accepted. No family has this number.
pub(crate) const ANY_FAMILY: u16 = 0;

/// The header's number of insertions if the family does not count them.
pub(crate) const NOT_COUNTED: u64 = u64::MAX;

/// The description of a hasher in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The number of the hash.
    pub hash: u16,
    /// The number of the [kind](Kind) of its keys.
    pub keys: u16,
    /// Distinguishes hashers with the same hash number: the seed, or for a secret, a check value.
    pub check: u64,
    /// The owner's number of the secret. It has no other effect.
    pub key_id: u64,
    /// The secret. It is written only on request.
    pub secret: Option<[u8; 16]>,
}

impl Mark {
    /// The mark of a hasher without a secret.
    #[must_use]
    pub const fn public(hash: u16, keys: Kind, check: u64) -> Self {
        Self { hash, keys: keys.number(), check, key_id: 0, secret: None }
    }

    /// Checks that this is the mark of the given hash and of keys of the given kind.
    ///
    /// # Errors
    ///
    /// [`InvalidBytes::Hash`] or [`InvalidBytes::Keys`] if it is not.
    pub const fn expect(&self, hash: u16, keys: Kind) -> Result<(), InvalidBytes> {
        let (expected, got) = (keys.number(), self.keys);
        if self.hash != hash {
            Err(InvalidBytes::Hash { expected: hash, got: self.hash })
        } else if expected != got {
            Err(InvalidBytes::Keys { expected, got })
        } else {
            Ok(())
        }
    }
}

/// A hasher whose digests of keys `T` never change, so that a filter made with it can be saved.
///
/// Each hasher has a number, which is never reused. Numbers from 32,768 up are for hashers of your
/// own.
///
/// ```
/// use umbel::format::{Mark, Saved, Stored};
/// use umbel::hash::{Digest, Digester, Kind};
/// use umbel::{BloomFilter, InvalidBytes};
///
/// /// Keys that are digests already.
/// struct Digested;
///
/// impl Digester<u64> for Digested {
///     fn digest(&self, key: &u64) -> Digest {
///         Digest::new(*key)
///     }
///     fn check(&self) -> u64 {
///         0
///     }
/// }
///
/// impl Stored<u64> for Digested {
///     fn mark(&self) -> Mark {
///         Mark::public(40_000, Kind::Words, 0)
///     }
///     fn restore(mark: &Mark) -> Result<Self, InvalidBytes> {
///         mark.expect(40_000, Kind::Words)?;
///         Ok(Self)
///     }
/// }
///
/// let mut seen = BloomFilter::<u64, _>::with_hasher(100, 0.01, Digested);
/// seen.insert(&0x8765_4321_0fed_cba9);
/// let again = BloomFilter::<u64, Digested>::from_bytes(&seen.to_bytes())?;
/// assert!(again.contains(&0x8765_4321_0fed_cba9));
/// assert!(BloomFilter::<u64>::from_bytes(&seen.to_bytes()).is_err());
/// # Ok::<(), InvalidBytes>(())
/// ```
pub trait Stored<T: ?Sized>: Sized {
    /// Its description in a header.
    fn mark(&self) -> Mark;

    /// The hasher with this mark.
    ///
    /// # Errors
    ///
    /// The errors of [`Mark::expect`], or [`InvalidBytes::Secret`] if the mark is not enough to
    /// create the hasher.
    fn restore(mark: &Mark) -> Result<Self, InvalidBytes>;
}

/// The numbers of the hashers of this library.
pub(crate) mod hashes {
    pub(crate) const PORTABLE: u16 = 1;
    pub(crate) const KEYED: u16 = 2;
    pub(crate) const MURMUR3: u16 = 3;
    pub(crate) const XXH64: u16 = 4;
    pub(crate) const XXH3: u16 = 5;
    pub(crate) const CITY64: u16 = 6;
    pub(crate) const FARM64: u16 = 7;
    #[cfg(feature = "crc64")]
    pub(crate) const CRC64: u16 = 8;
    pub(crate) const PLAIN: u16 = 9;
}

/// Filters that are made of other filters have no hasher.
impl Stored<()> for () {
    fn mark(&self) -> Mark {
        Mark { hash: 0, keys: 0, check: 0, key_id: 0, secret: None }
    }

    fn restore(mark: &Mark) -> Result<Self, InvalidBytes> {
        if *mark == ().mark() { Ok(()) } else { Err(InvalidBytes::Inconsistent) }
    }
}

/// The caller brings the secret to open the filter, unless the file contains it.
impl<T: Key + ?Sized> Stored<T> for Keyed {
    fn mark(&self) -> Mark {
        let check = Digester::<T>::check(self);
        let mark = Mark::public(hashes::KEYED, T::KIND, check);
        Mark { key_id: self.id(), secret: Some(*self.secret()), ..mark }
    }

    fn restore(mark: &Mark) -> Result<Self, InvalidBytes> {
        mark.expect(hashes::KEYED, T::KIND)?;
        let secret = mark.secret.ok_or(InvalidBytes::Secret)?;
        let keyed = Self::new(secret).with_id(mark.key_id);
        if Digester::<T>::check(&keyed) == mark.check {
            Ok(keyed)
        } else {
            Err(InvalidBytes::Inconsistent)
        }
    }
}

macro_rules! stored_by_seed {
    ($($hasher:ty = $id:expr),*) => {$(
        impl<T: Key + ?Sized> Stored<T> for $hasher {
            fn mark(&self) -> Mark {
                Mark::public($id, T::KIND, self.seed().into())
            }

            fn restore(mark: &Mark) -> Result<Self, InvalidBytes> {
                mark.expect($id, T::KIND)?;
                let seed = mark.check.try_into();
                seed.map(Self::seeded).map_err(|_| InvalidBytes::Inconsistent)
            }
        }
    )*};
}
stored_by_seed!(Portable = hashes::PORTABLE, Murmur3 = hashes::MURMUR3);
stored_by_seed!(Xxh64 = hashes::XXH64, Xxh3 = hashes::XXH3);

macro_rules! stored_by_check {
    ($($hasher:ty = $id:expr),*) => {$(
        /// Only the default hasher can be recreated from its mark.
        impl<T: Key + ?Sized> Stored<T> for $hasher {
            fn mark(&self) -> Mark {
                Mark::public($id, T::KIND, Digester::<T>::check(self))
            }

            fn restore(mark: &Mark) -> Result<Self, InvalidBytes> {
                mark.expect($id, T::KIND)?;
                let hasher = Self::default();
                if Stored::<T>::mark(&hasher) == *mark {
                    Ok(hasher)
                } else {
                    Err(InvalidBytes::Secret)
                }
            }
        }
    )*};
}
stored_by_check!(City64 = hashes::CITY64, Farm64 = hashes::FARM64);
#[cfg(feature = "crc64")]
stored_by_check!(crate::hash::Crc64 = hashes::CRC64);
