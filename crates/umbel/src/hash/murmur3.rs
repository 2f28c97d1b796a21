//! MurmurHash3 x64-128, the hash of Guava's Bloom filters and of many others.

use super::{Digest, Digester, Key};

/// The two multipliers of a block: A. Appleby, `MurmurHash3_x64_128`, 2011.
const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// MurmurHash3 x64-128. A digest is its first half.
///
/// Gives the same digests as Guava's `murmur3_128`, Go's `spaolacci/murmur3` and all ports of the
/// x64 variant. The x86 variant is another hash, and so is Cassandra's, which reads the last bytes
/// of a key as signed.
///
/// Good for filters, but not against chosen keys: there are keys that collide under every seed.
///
/// ```
/// use umbel::hash::{Digest, Digester, Murmur3};
///
/// let hasher = Murmur3::default();
/// let digest: Digest = hasher.digest("hell");
/// assert_eq!(digest.bits(), 0x6299_4269_3e10_f867);
/// assert_eq!(hasher.hash128(b"hell"), (0x6299_4269_3e10_f867, 0x92db_0b82_baeb_5347));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Murmur3 {
    seed: u32,
}

impl Murmur3 {
    /// The hasher with this seed, which starts both halves of the state, zero-extended.
    #[must_use]
    pub const fn seeded(seed: u32) -> Self {
        Self { seed }
    }

    /// The seed.
    #[must_use]
    pub const fn seed(&self) -> u32 {
        self.seed
    }

    /// Both halves of the hash of these bytes, the first one first.
    #[must_use]
    #[inline]
    pub fn hash128(&self, bytes: &[u8]) -> (u64, u64) {
        let mut h1 = u64::from(self.seed);
        let mut h2 = h1;
        let (blocks, tail) = bytes.as_chunks::<16>();
        for block in blocks {
            let (k1, k2) = spread(u128::from_le_bytes(*block));
            h1 = (h1 ^ k1).rotate_left(27).wrapping_add(h2);
            h1 = h1.wrapping_mul(5).wrapping_add(0x52dc_e729);
            h2 = (h2 ^ k2).rotate_left(31).wrapping_add(h1);
            h2 = h2.wrapping_mul(5).wrapping_add(0x3849_5ab5);
        }
        // Zeros spread to zeros, so a padded tail gives the same result as a short one.
        let (k1, k2) = spread(little_endian(tail));
        let len = bytes.len() as u64;
        let (h1, h2) = add_across(h1 ^ k1 ^ len, h2 ^ k2 ^ len);
        add_across(finalize(h1), finalize(h2))
    }
}

/// The two words of a block, each spread over all its bits.
#[inline(always)]
fn spread(block: u128) -> (u64, u64) {
    let (k1, k2) = (block as u64, (block >> 64) as u64);
    (
        k1.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2),
        k2.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1),
    )
}

/// Up to fifteen bytes as a number, in overlapping reads: copying so few bytes would cost more than
/// hashing them.
#[inline(always)]
fn little_endian(tail: &[u8]) -> u128 {
    let len = tail.len();
    if let (Some(first), Some(last)) = (tail.first_chunk::<8>(), tail.last_chunk::<8>()) {
        let last = u128::from(u64::from_le_bytes(*last));
        return u128::from(u64::from_le_bytes(*first)) | last << (8 * (len - 8));
    }
    if let (Some(first), Some(last)) = (tail.first_chunk::<4>(), tail.last_chunk::<4>()) {
        let last = u64::from(u32::from_le_bytes(*last));
        return (u64::from(u32::from_le_bytes(*first)) | last << (8 * (len - 4))).into();
    }
    tail.iter().rev().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

#[inline(always)]
fn add_across(h1: u64, h2: u64) -> (u64, u64) {
    let h1 = h1.wrapping_add(h2);
    (h1, h2.wrapping_add(h1))
}

/// Murmur3's bijection of a word, with the constants of Appleby's `fmix64`.
#[inline(always)]
fn finalize(h: u64) -> u64 {
    let h = (h ^ (h >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let h = (h ^ (h >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ (h >> 33)
}

impl<T: Key + ?Sized> Digester<T> for Murmur3 {
    #[inline]
    fn digest(&self, key: &T) -> Digest {
        Digest(key.with_bytes(|bytes| self.hash128(bytes)).0)
    }

    fn check(&self) -> u64 {
        self.hash128(b"umbel murmur3").0
    }
}

/// Both halves, for filters whose probes need more than 64 bits.
impl<T: Key + ?Sized> Digester<T, (u64, u64)> for Murmur3 {
    #[inline]
    fn digest(&self, key: &T) -> (u64, u64) {
        key.with_bytes(|bytes| self.hash128(bytes))
    }

    fn check(&self) -> u64 {
        self.hash128(b"umbel murmur3").0
    }
}

/// Test helpers that compare a hash with its reference implementation.
#[cfg(test)]
pub(super) mod vectors {
    use core::array::from_fn;

    /// SMHasher's verification value: the keys `[]`, `[0]`, `[0, 1]` to `[0, .., 254]` are hashed
    /// with the seeds 256 down to 1, and all the hashes once more, as one key, with seed 0.
    pub(crate) fn smhasher<const N: usize>(hash: impl Fn(&[u8], u32) -> [u8; N]) -> u32 {
        let key: [u8; 256] = from_fn(|i| i as u8);
        let mut hashes = [0; 256 * 16];
        for len in 0..256 {
            hashes[len * N..][..N].copy_from_slice(&hash(&key[..len], 256 - len as u32));
        }
        let all = hash(&hashes[..256 * N], 0);
        u32::from_le_bytes([all[0], all[1], all[2], all[3]])
    }

    /// One value for the hashes of all lengths to 300 of a text in which all 256 bytes occur.
    pub(crate) fn fold(hash: impl Fn(&[u8]) -> u64) -> u64 {
        let text: [u8; 300] = from_fn(|i| (151 * i + 89) as u8);
        (0..=300).fold(0, |fold: u64, len| fold.wrapping_mul(31).wrapping_add(hash(&text[..len])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest<T: Key + ?Sized>(key: &T) -> Digest {
        Murmur3::default().digest(key)
    }

    /// "Murmur3F" in `main.cpp` of aappleby/smhasher.
    #[test]
    fn smhasher_verifies_it() {
        let value = vectors::smhasher(|bytes, seed| {
            let (h1, h2) = Murmur3::seeded(seed).hash128(bytes);
            (u128::from(h1) | u128::from(h2) << 64).to_le_bytes()
        });
        assert_eq!(value, 0x6384_ba69);
    }

    /// `Murmur3Hash128Test` of google/guava.
    #[test]
    fn guava_agrees() {
        for (seed, key, h1, h2) in [
            (0, "hell", 0x6299_4269_3e10_f867, 0x92db_0b82_baeb_5347),
            (1, "hello", 0xa78d_dff5_adae_8d10, 0x1289_00ef_2090_0135),
            (2, "hello ", 0x8a48_6b23_f422_e826, 0xf962_a2c5_8947_765f),
            (3, "hello w", 0x2ea5_9f46_6f6b_ed8c, 0xc610_990a_cc42_8a17),
            (4, "hello wo", 0x79f6_305a_386c_572c, 0x4630_5aed_3483_b94e),
            (5, "hello wor", 0xc221_9d21_3ec1_f1b5, 0xa1d8_e2e0_a527_85bd),
        ] {
            assert_eq!(Murmur3::seeded(seed).hash128(key.as_bytes()), (h1, h2), "{key}");
        }
        let fox = b"The quick brown fox jumps over the lazy dog";
        let halves = (0xe34b_bc7b_bc07_1b6c, 0x7a43_3ca9_c49a_9347);
        assert_eq!(Murmur3::default().hash128(fox), halves);
    }

    /// The folds of mmh3 5.3 for Python, which wraps the original, and of the crate fastmurmur3.
    #[test]
    fn all_lengths_keep_their_digests() {
        let low = Murmur3::default();
        assert_eq!(vectors::fold(|bytes| low.hash128(bytes).0), 0x9bc8_8f8e_8e71_23e4);
        assert_eq!(vectors::fold(|bytes| low.hash128(bytes).1), 0x2303_d438_4740_cb47);
        let high = Murmur3::seeded(u32::MAX);
        assert_eq!(vectors::fold(|bytes| high.hash128(bytes).0), 0xd0aa_91b8_0c76_f523);
        assert_eq!(vectors::fold(|bytes| high.hash128(bytes).1), 0xf8c9_fb37_803b_65b7);
    }

    #[test]
    fn integers_are_their_eight_bytes() {
        assert_eq!(digest(&0x0807_0605_0403_0201_u64), digest(&[1_u8, 2, 3, 4, 5, 6, 7, 8]));
        assert_eq!(digest(&-1_i16), digest(&[0xff_u8; 8]));
        let halves: (u64, u64) = Murmur3::default().digest(&7_u8);
        assert_eq!(Digest(halves.0), digest(&7_u8));
    }

    /// J.-P. Aumasson, D. J. Bernstein, M. Boßlet, 2012: a difference in the top bit survives
    /// addition and multiplication, so the next word can take it away whatever the seed was.
    #[test]
    fn some_keys_collide_under_every_seed() {
        let inverse = |c: u64| {
            (0..6).fold(1_u64, |x, _| x.wrapping_mul(2_u64.wrapping_sub(c.wrapping_mul(x))))
        };
        let (d1, d2) = (inverse(C1), inverse(C2));
        let first = |k: u64| k.wrapping_mul(d2).rotate_right(31).wrapping_mul(d1);
        let second = |k: u64| k.wrapping_mul(d1).rotate_right(33).wrapping_mul(d2);
        let mut twin = [0; 32];
        for (word, k) in [first(1 << 36), second(1 << 32), first(1 << 63)].iter().enumerate() {
            twin[word * 8..][..8].copy_from_slice(&k.to_le_bytes());
        }
        assert_ne!(twin, [0; 32]);
        for seed in [0, 1, 0x9747_b28c, u32::MAX] {
            let hasher = Murmur3::seeded(seed);
            assert_eq!(hasher.hash128(&twin), hasher.hash128(&[0; 32]));
        }
    }

    #[test]
    fn the_check_tells_seeds_apart() {
        let check = |hasher: Murmur3| Digester::<str>::check(&hasher);
        assert_eq!(check(Murmur3::seeded(0)), check(Murmur3::default()));
        assert_ne!(check(Murmur3::seeded(0)), check(Murmur3::seeded(1)));
    }
}
