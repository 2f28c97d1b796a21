//! From keys to digests: a key is hashed once, here, and never again below.
//!
//! ```text
//!     key  --form-->  bytes or integer  --hasher-->  Digest (64 bits)  -->  every filter
//! ```
//!
//! | hasher | keys | same on every platform, may be saved | against chosen keys |
//! |---|---|---|---|
//! | [`Portable`] (default) | [`Key`] | yes, for ever: `docs/hashing.md` | no |
//! | [`Keyed`] | [`Key`] | yes, with the secret | yes |
//! | [`Std`] | any `T: Hash` | no: memory only | as its `BuildHasher` |
//! | [`Murmur3`], [`Xxh64`], [`Xxh3`], [`City64`], [`Farm64`], `Crc64` | [`Key`] | yes | no |
//!
//! A filter that must mean the same tomorrow, on another machine or in another language takes
//! [`Portable`]. One whose keys a stranger may choose takes [`Keyed`]: with a public hash, whoever
//! knows the seed can build keys that fill the filter or slip through it. A seed is not a secret.
//!
//! The named hashes are there to share digests with other systems. Murmur3, xxHash, City and Farm
//! are as good for a filter as the default; CRC-64 (feature `crc64`) is linear and is not:
//! `docs/hashing.md` has the measured rates.

/// Makes the hasher with a seed.
macro_rules! seeded {
    ($hasher:ident, $seed:ty) => {
        impl $hasher {
            /// The hasher with this seed.
            #[must_use]
            pub const fn seeded(seed: $seed) -> Self {
                Self { seed }
            }

            /// The seed.
            #[must_use]
            pub const fn seed(&self) -> $seed {
                self.seed
            }
        }
    };
}
use seeded;

mod city;
#[cfg(feature = "crc64")]
mod crc64;
mod farm;
mod key;
mod key_of;
mod keyed;
mod murmur3;
mod parts;
mod portable;
mod standard;
mod xxh;

pub use city::City64;
#[cfg(feature = "crc64")]
pub use crc64::Crc64;
pub use farm::Farm64;
pub use key::{Form, Key, Kind};
pub use key_of::KeyOf;
pub use keyed::Keyed;
pub use murmur3::Murmur3;
pub use portable::Portable;
pub use standard::{New, Std};
pub use xxh::{Xxh3, Xxh64};

/// What a filter remembers a key by: 64 well-mixed bits.
///
/// Two keys with the same digest are the same key to every filter, which happens to one pair in
/// 2<sup>64</sup>; a rate below `items / 2^64` can therefore not be promised, and is refused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Digest(u64);

impl Digest {
    /// A digest that was computed elsewhere, taken as it is.
    ///
    /// Filters rely on every one of its bits being well mixed: a counter, a pointer or a CRC is
    /// not. Send those through [`Digest::mixed`].
    #[must_use]
    pub const fn new(bits: u64) -> Self {
        Self(bits)
    }

    /// A digest from 64 bits that may be distributed in any way at all.
    ///
    /// Different inputs give different digests: it is what [`Portable`] does with integers, a
    /// bijection.
    #[must_use]
    #[inline]
    pub const fn mixed(bits: u64) -> Self {
        const { Portable::seeded(0) }.digest_word(bits)
    }

    /// The digest of a whole record, from those of its attributes in their order: `docs/hashing.md`
    /// has the definition.
    ///
    /// Records that differ in one digest never share it; others, such as those whose attributes
    /// have changed places, do so by the chance that any two keys have.
    ///
    /// ```
    /// use umbel::Digest;
    ///
    /// let [a, b] = [Digest::mixed(1), Digest::mixed(2)];
    /// assert_ne!(Digest::joint(&[a, b]), Digest::joint(&[b, a]));
    /// ```
    #[must_use]
    #[inline]
    pub const fn joint(digests: &[Self]) -> Self {
        let mut joint = Self(0);
        let mut at = 0;
        while at < digests.len() {
            joint = joint.join(digests[at]);
            at += 1;
        }
        joint
    }

    /// The joint digest with one attribute more.
    #[inline]
    pub(crate) const fn join(self, next: Self) -> Self {
        Self::mixed(self.0 ^ next.0)
    }

    /// The 64 bits.
    #[must_use]
    #[inline]
    pub const fn bits(self) -> u64 {
        self.0
    }
}

impl core::fmt::Debug for Digest {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Digest({:016x})", self.0)
    }
}

/// Turns keys of type `T` into digests: the `H` of every filter.
///
/// `D` is [`Digest`] for every filter but a classic Bloom filter with foreign
/// [`Kernels`](crate::kernels::Kernels), which may ask for more bits of a key.
///
/// An owned key and its borrowed form must have the same digest, as with [`core::hash::Hash`] and
/// [`Borrow`](core::borrow::Borrow).
pub trait Digester<T: ?Sized, D = Digest> {
    /// The digest of a key: the same for equal keys, however often it is asked.
    fn digest(&self, key: &T) -> D;

    /// A value that tells hashers apart: if two of them have the same one, they give the same
    /// digests. It reveals nothing of a secret. Unions compare it.
    fn check(&self) -> u64;
}

/// A borrowed hasher is a hasher.
impl<T: ?Sized, D, H: Digester<T, D> + ?Sized> Digester<T, D> for &H {
    #[inline]
    fn digest(&self, key: &T) -> D {
        (**self).digest(key)
    }

    fn check(&self) -> u64 {
        (**self).check()
    }
}
