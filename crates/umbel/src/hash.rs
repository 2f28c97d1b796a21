//! From keys to digests. A key is hashed once, here; everything below works with the digest.
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
//! Choose [`Portable`] for a filter that is saved, or used on another machine or in another
//! language. Choose [`Keyed`] if an attacker may choose keys: with a public hash, an attacker who
//! knows the seed can build keys that fill the filter or that are false positives. A seed is not a
//! secret.
//!
//! The named hashes exist to share digests with other systems. Murmur3, xxHash, City and Farm are
//! as good for a filter as the default. CRC-64 (feature `crc64`) is linear and is not;
//! `docs/hashing.md` has the measured rates.

/// The constructor and getter of a hasher with a seed.
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

/// The 64 well-mixed bits that stand for a key in a filter.
///
/// Two keys with the same digest are the same key to every filter. This happens to one pair in
/// 2<sup>64</sup>, so a rate below `items / 2^64` cannot be promised and is refused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Digest(u64);

impl Digest {
    /// Uses a digest that was computed elsewhere, unchanged.
    ///
    /// All 64 bits must be well mixed: filters rely on every one of them. A counter, a pointer or a
    /// CRC is not well mixed; use [`Digest::mixed`] for those.
    #[must_use]
    pub const fn new(bits: u64) -> Self {
        Self(bits)
    }

    /// Makes a digest from 64 bits of any distribution.
    ///
    /// Different inputs give different digests, because the function is a bijection. [`Portable`]
    /// applies it to integers.
    #[must_use]
    #[inline]
    pub const fn mixed(bits: u64) -> Self {
        const { Portable::seeded(0) }.digest_word(bits)
    }

    /// The digest of a whole record, computed from the digests of its attributes in order.
    /// `docs/hashing.md` has the definition.
    ///
    /// Records that differ in one attribute digest never share a digest. Other records, such as
    /// those with swapped attributes, share one with the same probability as any two keys.
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

    /// The joint digest with one more attribute.
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

/// Turns keys of type `T` into digests: the type parameter `H` of every filter.
///
/// `D` is [`Digest`] for every filter except a classic Bloom filter with foreign
/// [`Kernels`](crate::kernels::Kernels), which may need more bits per key.
///
/// An owned key and its borrowed form must have the same digest, as with [`core::hash::Hash`] and
/// [`Borrow`](core::borrow::Borrow).
pub trait Digester<T: ?Sized, D = Digest> {
    /// The digest of a key. Equal keys always get equal digests.
    fn digest(&self, key: &T) -> D;

    /// A check value that identifies the hasher: two hashers with equal values give equal digests.
    /// It reveals nothing about a secret. Unions compare it.
    fn check(&self) -> u64;
}

/// References to a hasher are hashers too.
impl<T: ?Sized, D, H: Digester<T, D> + ?Sized> Digester<T, D> for &H {
    #[inline]
    fn digest(&self, key: &T) -> D {
        (**self).digest(key)
    }

    fn check(&self) -> u64 {
        (**self).check()
    }
}
