//! The default hasher: XXH3-64 for bytes, a bijective mixer for integers, both seeded.

use super::{Digest, Digester, Form, Key};

/// 2<sup>64</sup> divided by the golden ratio, odd: Knuth, TAOCP 3, section 6.4.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// An odd multiplier without long runs of equal bits, the second of the two in the mixer.
const SECOND: u64 = 0xd1b5_4a32_d192_ed03;

/// A bijection of 64 bits in which every output bit depends on every input bit.
///
/// Two multiplications and two shifts: half the work of Murmur3's finalizer, and the rates of all
/// the key patterns in `tests/rates.rs` stay on the prediction. Zero does not stay zero, since the
/// key 0 is the most common of all.
#[inline(always)]
pub(super) const fn mix(word: u64) -> u64 {
    let x = (word ^ SECOND).wrapping_mul(GOLDEN);
    let x = (x ^ (x >> 32)).wrapping_mul(SECOND);
    x ^ (x >> 32)
}

/// The default hasher. Specified to the bit, so that filters can be saved and shared.
///
/// Bytes and strings: XXH3-64 with the seed. Integers of up to 64 bits: a seeded bijection, so two
/// of them never share a digest. `docs/hashing.md` has the definition and test vectors.
///
/// The seed gives different filters different false positives. It is no protection against
/// somebody who chooses keys: that is what [`Keyed`](super::Keyed) is for.
///
/// ```
/// use umbel::hash::{Digester, Portable};
///
/// assert_eq!(Portable::default().digest("umbel").bits(), 0x2eac_f0a1_daff_5036);
/// assert_ne!(Portable::seeded(1).digest("umbel"), Portable::seeded(2).digest("umbel"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Portable {
    seed: u64,
    /// The seed, spread over the word: neighbouring seeds must not give neighbouring tweaks.
    tweak: u64,
}

impl Portable {
    /// The hasher with this seed.
    #[must_use]
    pub const fn seeded(seed: u64) -> Self {
        Self { seed, tweak: seed.wrapping_mul(SECOND) ^ (seed >> 32) }
    }

    /// The seed.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.seed
    }
}

impl Default for Portable {
    /// The hasher with seed 0.
    fn default() -> Self {
        Self::seeded(0)
    }
}

impl<T: Key + ?Sized> Digester<T> for Portable {
    #[inline]
    fn digest(&self, key: &T) -> Digest {
        Digest(match key.form() {
            Form::Word(word) => mix(word ^ self.tweak),
            Form::Wide(bytes) => xxh3(&bytes, self.seed),
            Form::Bytes(bytes) => xxh3(bytes, self.seed),
        })
    }

    fn check(&self) -> u64 {
        xxh3(b"umbel portable", self.seed)
    }
}

#[inline]
fn xxh3(bytes: &[u8], seed: u64) -> u64 {
    twox_hash::XxHash3_64::oneshot_with_seed(seed, bytes)
}
