//! Any `T: Hash` with any `BuildHasher`, for filters that stay in memory.

use super::{Digest, Digester};
use crate::edge::Filter;
use crate::raw::Make;
use core::hash::{BuildHasher, Hash};

/// Hashes any `T: Hash` with any [`BuildHasher`], and mixes the result once more.
///
/// The mixing makes weak hashers usable, such as the identity or Fx. It cannot undo collisions: if
/// a hasher gives two keys the same 64 bits, the filter treats them as one key.
///
/// [`Hash`] writes different bytes on different platforms and in different versions of Rust, so
/// such a filter is valid only inside the process that created it. It cannot be saved.
///
/// ```
/// use umbel::{BloomFilter, New, Std};
///
/// #[derive(Hash)]
/// struct Login<'a> {
///     user: &'a str,
///     port: u16,
/// }
///
/// let mut seen = BloomFilter::<Login, Std>::new(1_000, 0.01);
/// assert!(seen.insert(&Login { user: "ada", port: 22 }));
/// assert!(!seen.insert(&Login { user: "ada", port: 22 }));
/// ```
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Std<S = std::hash::RandomState> {
    build: S,
}

/// Hashes any `T: Hash` with any [`BuildHasher`], and mixes the result once more.
#[cfg(not(feature = "std"))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Std<S> {
    build: S,
}

impl<S> Std<S> {
    /// Creates its hashers with `build`.
    #[must_use]
    pub const fn new(build: S) -> Self {
        Self { build }
    }
}

impl<T: Hash + ?Sized, S: BuildHasher> Digester<T> for Std<S> {
    #[inline]
    fn digest(&self, key: &T) -> Digest {
        Digest::mixed(self.build.hash_one(key))
    }

    /// The hash of two constants. Hashers with equal state agree on it. Two hashers with different
    /// states differ in it, unless they ignore their input.
    fn check(&self) -> u64 {
        let word = Digest::mixed(self.build.hash_one(0x756d_6265_6c5f_6f6e_u64));
        word.bits() ^ self.build.hash_one("umbel std")
    }
}

/// Provides `new` for filters that are hashed by [`Std`].
///
/// With the default hasher, `new` is an inherent method, so that the compiler can infer the hasher.
/// A second inherent `new` would make the call ambiguous.
#[doc(hidden)]
pub trait New: Sized {
    /// A filter for `capacity` keys at a false positive rate of at most `err_rate`, with a new hasher.
    ///
    /// # Panics
    ///
    /// If `err_rate` is not above 0 and below 1, or there is no memory for so large a filter.
    #[must_use]
    fn new(capacity: u64, err_rate: f64) -> Self;
}

impl<T: ?Sized, S: Default, C: Make> New for Filter<T, Std<S>, C> {
    fn new(capacity: u64, err_rate: f64) -> Self {
        Self::with_hasher(capacity, err_rate, Std::default())
    }
}
