//! SipHash-1-3 under a secret, for keys that an attacker may choose.

use super::{Digest, Digester, Key};
use core::fmt;
use siphasher::sip::SipHasher13;

/// Hashes with SipHash-1-3 under a 128-bit secret.
///
/// Without the secret, an attacker cannot choose keys that fill a filter faster than random keys,
/// nor keys that are certain to be false positives. Two filters agree only if they have the same
/// secret. The `Debug` output of a `Keyed` never shows it.
///
/// ```
/// use umbel::{BloomFilter, Keyed};
///
/// let mut seen = BloomFilter::<str, Keyed>::with_hasher(1_000, 0.01, Keyed::random());
/// assert!(seen.insert("chosen by a stranger"));
/// assert!(seen.contains("chosen by a stranger"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Keyed {
    secret: [u8; 16],
    id: u64,
}

impl Keyed {
    /// The hasher with this secret, which must be 16 random bytes.
    #[must_use]
    pub const fn new(secret: [u8; 16]) -> Self {
        Self { secret, id: 0 }
    }

    /// The hasher with this secret and a number that identifies it. Saved filters contain the
    /// number, so that the owner can find the secret again.
    #[must_use]
    pub const fn with_id(self, id: u64) -> Self {
        Self { id, ..self }
    }

    /// The number of the secret, 0 if it has none.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// The hasher with a new secret from the operating system.
    ///
    /// # Panics
    ///
    /// If the operating system cannot provide randomness. On the systems that Rust's standard
    /// library supports this does not happen after boot.
    #[cfg(feature = "std")]
    #[must_use]
    pub fn random() -> Self {
        let mut secret = [0; 16];
        getrandom::fill(&mut secret).expect("the operating system gives random bytes");
        Self::new(secret)
    }

    /// The secret. The caller is responsible for keeping it safe.
    #[must_use]
    pub const fn secret(&self) -> &[u8; 16] {
        &self.secret
    }

    #[inline]
    fn sip(&self) -> SipHasher13 {
        SipHasher13::new_with_key(&self.secret)
    }
}

impl<T: Key + ?Sized> Digester<T> for Keyed {
    #[inline]
    fn digest(&self, key: &T) -> Digest {
        Digest(key.with_bytes(|bytes| self.sip().hash(bytes)))
    }

    /// SipHash of a constant: it distinguishes two secrets and reveals neither.
    fn check(&self) -> u64 {
        self.sip().hash(b"umbel keyed")
    }
}

impl fmt::Debug for Keyed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keyed(secret)")
    }
}
