//! XXH64 and XXH3-64 by name, for digests shared with other systems.

use super::{Digest, Digester, Key};
use twox_hash::{XxHash3_64, XxHash64};

/// XXH64, the hash of Parquet's Bloom filters.
///
/// Gives the same digests as `XXH64` of xxHash and all its ports. Integers are hashed as their
/// eight bytes. Parquet hashes some of its integers as fewer bytes: use
/// [`split::Plain`](crate::split::Plain) for those.
///
/// Good for filters, but not against chosen keys: a seed is not a secret.
///
/// ```
/// use umbel::hash::{Digester, Xxh64};
///
/// assert_eq!(Xxh64::default().digest("abc").bits(), 0x44bc_2cf5_ad77_0999);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Xxh64 {
    seed: u64,
}

super::seeded!(Xxh64, u64);

impl<T: Key + ?Sized> Digester<T> for Xxh64 {
    #[inline]
    fn digest(&self, key: &T) -> Digest {
        Digest(key.with_bytes(|bytes| XxHash64::oneshot(self.seed, bytes)))
    }

    fn check(&self) -> u64 {
        XxHash64::oneshot(self.seed, b"umbel xxh64")
    }
}

/// XXH3-64, for bytes and for integers.
///
/// Gives the same digests as `XXH3_64bits_withSeed` of xxHash 0.8 and later. Bytes and strings have
/// the digests of [`Portable`](super::Portable). Integers do not, since this hasher hashes them as
/// their eight bytes.
///
/// Good for filters, but not against chosen keys: a seed is not a secret.
///
/// ```
/// use umbel::hash::{Digester, Portable, Xxh3};
///
/// assert_eq!(Xxh3::default().digest("abc").bits(), 0x78af_5f94_892f_3950);
/// assert_eq!(Xxh3::seeded(7).digest("abc"), Portable::seeded(7).digest("abc"));
/// assert_ne!(Xxh3::seeded(7).digest(&1_u64), Portable::seeded(7).digest(&1_u64));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Xxh3 {
    seed: u64,
}

super::seeded!(Xxh3, u64);

impl<T: Key + ?Sized> Digester<T> for Xxh3 {
    #[inline]
    fn digest(&self, key: &T) -> Digest {
        Digest(key.with_bytes(|bytes| XxHash3_64::oneshot_with_seed(self.seed, bytes)))
    }

    fn check(&self) -> u64 {
        XxHash3_64::oneshot_with_seed(self.seed, b"umbel xxh3")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::murmur3::vectors;

    /// The seeds of xxHash's own tests.
    const PRIME32: u64 = 0x9e37_79b1;
    const PRIME64: u64 = 0x9e37_79b1_85eb_ca8d;

    /// The key of xxHash's own tests: the top bytes of the powers of a prime.
    fn key() -> [u8; 2367] {
        let mut power = PRIME32;
        core::array::from_fn(|_| {
            let top = (power >> 56) as u8;
            power = power.wrapping_mul(PRIME64);
            top
        })
    }

    /// "XXHash64" in `main.cpp` of rurban/smhasher, and `std/hash/xxhash.zig` of ziglang/zig.
    #[test]
    fn smhasher_verifies_both() {
        let xxh64 = |bytes: &[u8], seed| Xxh64::seeded(u64::from(seed)).digest(bytes).0;
        assert_eq!(vectors::smhasher(|b, seed| xxh64(b, seed).to_le_bytes()), 0x024b_7cf4);
        let xxh3 = |bytes: &[u8], seed| Xxh3::seeded(u64::from(seed)).digest(bytes).0;
        assert_eq!(vectors::smhasher(|b, seed| xxh3(b, seed).to_le_bytes()), 0x9a63_6405);
    }

    /// `xsum_sanity_check.c` of Cyan4973/xxHash.
    #[test]
    fn xxh64_gives_the_hashes_of_the_original() {
        for (len, seed, hash) in [
            (0, 0, 0xef46_db37_51d8_e999),
            (0, PRIME32, 0xac75_fda2_929b_17ef),
            (1, 0, 0xe934_a84a_db05_2768),
            (1, PRIME32, 0x5014_6076_43a9_b4c3),
            (4, 0, 0x9136_a0dc_a574_57ee),
            (14, 0, 0x8282_dcc4_994e_35c8),
            (14, PRIME32, 0xc3bd_6bf6_3deb_6df0),
            (222, 0, 0xb641_ae8c_b691_c174),
            (222, PRIME32, 0x20cb_8ab7_ae10_c14a),
        ] {
            assert_eq!(Xxh64::seeded(seed).digest(&key()[..len]), Digest(hash), "{len} {seed}");
        }
    }

    /// `xsum_sanity_check.c` of Cyan4973/xxHash.
    #[test]
    fn xxh3_gives_the_hashes_of_the_original() {
        for (len, seed, hash) in [
            (0, 0, 0x2d06_8005_38d3_94c2),
            (0, PRIME64, 0xa8a6_b918_b2f0_364a),
            (1, 0, 0xc44b_dff4_074e_ecdb),
            (6, PRIME64, 0x8458_9c11_6ab5_9ab9),
            (12, 0, 0xa713_daf0_dfbb_77e7),
            (24, PRIME64, 0x850e_80fc_35bd_d690),
            (48, 0, 0x397d_a259_ecba_1f11),
            (80, PRIME64, 0xc6dd_0cb6_9953_2e73),
            (195, 0, 0xcd94_217e_e362_ec3a),
            (403, PRIME64, 0x6259_f6ec_fd64_43fd),
            (512, 0, 0x617e_4959_9013_cb6b),
            (2048, PRIME64, 0x66f8_1670_669a_babc),
            (2367, 0, 0xcb37_aeb9_e5d3_61ed),
        ] {
            assert_eq!(Xxh3::seeded(seed).digest(&key()[..len]), Digest(hash), "{len} {seed}");
        }
    }

    /// The folds of the crate xxhash-rust 0.8.
    #[test]
    fn all_lengths_keep_their_digests() {
        assert_eq!(vectors::fold(|bytes| Xxh64::default().digest(bytes).0), 0x1dc8_83e5_e1be_7e70);
        assert_eq!(
            vectors::fold(|bytes| Xxh64::seeded(u64::MAX).digest(bytes).0),
            0x0e14_7ca0_7576_a4c3
        );
        assert_eq!(vectors::fold(|bytes| Xxh3::default().digest(bytes).0), 0xfb52_afba_594a_a27f);
        assert_eq!(
            vectors::fold(|bytes| Xxh3::seeded(u64::MAX).digest(bytes).0),
            0x9d6b_61e6_7b7a_ac0f
        );
    }

    #[test]
    fn integers_are_their_eight_bytes() {
        let bytes = [1_u8, 2, 3, 4, 5, 6, 7, 0x88];
        let word = u64::from_le_bytes(bytes);
        assert_eq!(Xxh64::default().digest(&word), Xxh64::default().digest(&bytes));
        assert_eq!(Xxh3::default().digest(&word), Xxh3::default().digest(&bytes));
    }

    #[test]
    fn the_check_tells_seeds_apart() {
        let xxh64 = |seed| Digester::<str>::check(&Xxh64::seeded(seed));
        assert_ne!(xxh64(0), xxh64(1));
        let xxh3 = |seed| Digester::<str>::check(&Xxh3::seeded(seed));
        assert_ne!(xxh3(0), xxh3(1));
    }
}
