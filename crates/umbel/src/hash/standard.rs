//! Any `T: Hash` through any `BuildHasher`, for filters that stay in memory.

use super::{Digest, Digester};
use core::hash::{BuildHasher, Hash};

/// Hashes any `T: Hash` with any [`BuildHasher`]; the result is mixed once more.
///
/// The mixing makes up for hashers whose bits are weak, such as the identity or Fx. It cannot make
/// up for collisions: a hasher that gives two keys the same 64 bits makes them one key.
///
/// [`Hash`] writes different bytes on different platforms and in different versions of Rust, so
/// such a filter means something only inside the process that made it. It cannot be saved.
///
/// ```
/// use std::hash::RandomState;
/// use umbel::{BloomFilter, Std};
///
/// let hasher = Std::new(RandomState::new());
/// let mut seen = BloomFilter::<(u32, &str), _>::with_hasher(1_000, 0.01, hasher);
/// assert!(seen.insert(&(7, "a tuple")));
/// assert!(!seen.insert(&(7, "a tuple")));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Std<S> {
    build: S,
}

impl<S> Std<S> {
    /// Takes its hashers from `build`.
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

    /// The hash of two constants: hashers with the same state agree on it, and two that do not are
    /// told apart unless they hash nothing.
    fn check(&self) -> u64 {
        let word = Digest::mixed(self.build.hash_one(0x756d_6265_6c5f_6f6e_u64));
        word.bits() ^ self.build.hash_one("umbel std")
    }
}
