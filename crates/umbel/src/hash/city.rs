//! CityHash64 of version 1.1, and the functions that it shares with FarmHash.

use super::{Digest, Digester, Key};
use core::num::Wrapping;

/// CityHash64, version 1.1 and later.
///
/// Gives the same digests as `CityHash64` of google/cityhash 1.1, and with a seed as
/// `CityHash64WithSeed`. No seed and the seed 0 are two different hashes. Versions 1.0.x, one of
/// which ClickHouse still uses, give other digests.
///
/// Good for filters, but not against chosen keys: the seed is mixed in after the key, so keys that
/// collide under one seed collide under every seed.
///
/// ```
/// use umbel::hash::{City64, Digester};
///
/// assert_eq!(City64::default().digest("umbel").bits(), 0x6174_17f7_2613_9009);
/// assert_eq!(City64::seeded(7).digest("umbel").bits(), 0xba0f_dbd3_c615_23fd);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct City64 {
    seed: Option<u64>,
}

impl City64 {
    /// The hasher with this seed. The default one has none.
    #[must_use]
    pub const fn seeded(seed: u64) -> Self {
        Self { seed: Some(seed) }
    }

    #[inline]
    fn hash(&self, bytes: &[u8]) -> u64 {
        let hash = city(bytes);
        self.seed.map_or(hash, |seed| with_seed(hash, Wrapping(seed))).0
    }
}

impl<T: Key + ?Sized> Digester<T> for City64 {
    #[inline]
    fn digest(&self, key: &T) -> Digest {
        Digest(key.with_bytes(|bytes| self.hash(bytes)))
    }

    fn check(&self) -> u64 {
        self.hash(b"umbel city64")
    }
}

/// The words of both hashes: their sums and products are modulo 2<sup>64</sup>.
pub(super) type Word = Wrapping<u64>;

/// The primes of both hashes: G. Pike and J. Alakuijala, CityHash, 2011.
pub(super) const K0: Word = Wrapping(0xc3a5_c85c_97cb_3127);
pub(super) const K1: Word = Wrapping(0xb492_b66f_be98_f273);
pub(super) const K2: Word = Wrapping(0x9ae1_6a3b_2f90_404f);
/// The factor of [`pair`] where neither the length nor the state determines one.
const MUL: Word = Wrapping(0x9ddf_ea08_eb38_2d69);

fn city(bytes: &[u8]) -> Word {
    match bytes.len() {
        0..=16 => up_to_16(bytes),
        17..=32 => up_to_32(bytes),
        33..=64 => up_to_64(bytes),
        _ => long(bytes),
    }
}

/// 33 to 64 bytes: the first and the last 32, which may overlap.
fn up_to_64(bytes: &[u8]) -> Word {
    let mul = factor(bytes);
    let (head, tail) = (bytes, &bytes[bytes.len() - 32..]);
    let a = word(head, 0) * K2;
    let b = word(head, 8);
    let e = word(head, 16) * K2;
    let f = word(head, 24) * Wrapping(9);
    let (d, c, g) = (word(tail, 0), word(tail, 8), word(tail, 24));
    let h = word(tail, 16) * mul;
    let u = rotate(a + g, 43) + (rotate(b, 30) + c) * Wrapping(9);
    let v = ((a + g) ^ d) + f + Wrapping(1);
    let w = swap((u + v) * mul) + h;
    let x = rotate(e + f, 42) + c;
    let y = (swap((v + w) * mul) + g) * mul;
    let z = e + f + c;
    let a = swap((x + z) * mul + y) + b;
    shift_mix((z + a) * mul + d + h) * mul + x
}

/// More than 64 bytes: the state starts from the last 64 and then takes the blocks in turn.
fn long(bytes: &[u8]) -> Word {
    let len = length(bytes);
    let tail = &bytes[bytes.len() - 64..];
    let x = word(tail, 24);
    let y = word(tail, 48) + word(tail, 8);
    let z = pair(word(tail, 16) + len, word(tail, 40), MUL);
    let v = weak(tail, len, z);
    let w = weak(&tail[32..], y + K1, x);
    let mut state = CityState { x: x * K1 + word(bytes, 0), y, z, v, w };
    for block in blocks(bytes) {
        state.take(block, K1, Wrapping(1));
    }
    state.finish(MUL, K1)
}

/// Mixes a seed into a finished hash.
#[inline]
pub(super) fn with_seed(hash: Word, seed: Word) -> Word {
    pair(hash - K2, seed, MUL)
}

/// 0 to 16 bytes.
#[inline]
pub(super) fn up_to_16(bytes: &[u8]) -> Word {
    let (len, mul) = (bytes.len(), factor(bytes));
    match len {
        0 => K2,
        1..4 => {
            let byte = |at: usize| Wrapping(u64::from(bytes[at]));
            let y = byte(0) + (byte(len / 2) << 8);
            let z = length(bytes) + (byte(len - 1) << 2);
            shift_mix((y * K2) ^ (z * K0)) * K2
        }
        4..8 => pair(length(bytes) + (half(bytes, 0) << 3), half(bytes, len - 4), mul),
        _ => {
            let a = word(bytes, 0) + K2;
            let b = word(bytes, len - 8);
            pair(rotate(b, 37) * mul + a, (rotate(a, 25) + b) * mul, mul)
        }
    }
}

/// 17 to 32 bytes: the first and the last 16, which may overlap.
#[inline]
pub(super) fn up_to_32(bytes: &[u8]) -> Word {
    let (u, v) = ends(bytes, K1);
    pair(u, v, factor(bytes))
}

/// Two words of the first and the last 16 bytes, not yet hashed together.
#[inline(always)]
pub(super) fn ends(bytes: &[u8], first: Word) -> (Word, Word) {
    let tail = &bytes[bytes.len() - 16..];
    let a = word(bytes, 0) * first;
    let b = word(bytes, 8);
    let c = word(tail, 8) * factor(bytes);
    let d = word(tail, 0) * K2;
    (rotate(a + b, 43) + rotate(c, 30) + d, a + rotate(b + K2, 18) + c)
}

/// The 56 bytes between two blocks of a long key.
pub(super) struct CityState {
    pub(super) x: Word,
    pub(super) y: Word,
    pub(super) z: Word,
    pub(super) v: (Word, Word),
    pub(super) w: (Word, Word),
}

impl CityState {
    /// Mixes in the 64 bytes of a block.
    #[inline(always)]
    pub(super) fn take(&mut self, block: &[u8], mul: Word, weight: Word) {
        let Self { x, y, z, v, w } = self;
        *x = (rotate(*x + *y + v.0 + word(block, 8), 37) * mul) ^ (w.1 * weight);
        *y = rotate(*y + v.1 + word(block, 48), 42) * mul + v.0 * weight + word(block, 40);
        *z = rotate(*z + w.0, 33) * mul;
        *v = weak(block, v.1 * mul, *x + w.0);
        *w = weak(&block[32..], *z + w.1, *y + word(block, 16));
        core::mem::swap(x, z);
    }

    /// The hash of the state. The two factors are where the hashes differ.
    #[inline(always)]
    pub(super) fn finish(&self, mul: Word, last: Word) -> Word {
        let first = pair(self.v.0, self.w.0, mul) + shift_mix(self.y) * last + self.z;
        pair(first, pair(self.v.1, self.w.1, mul) + self.x, mul)
    }
}

/// The blocks of a long key, except its last 1 to 64 bytes.
#[inline(always)]
pub(super) fn blocks(bytes: &[u8]) -> &[[u8; 64]] {
    bytes[..bytes.len() - 1].as_chunks().0
}

/// Two words from 32 bytes and two words.
#[inline(always)]
fn weak(bytes: &[u8], a: Word, b: Word) -> (Word, Word) {
    let a = a + word(bytes, 0);
    let z = word(bytes, 24);
    let sum = a + word(bytes, 8) + word(bytes, 16);
    (sum + z, rotate(b + a + z, 21) + rotate(sum, 44) + a)
}

/// The hash of two words, in the manner of Murmur.
#[inline(always)]
pub(super) fn pair(u: Word, v: Word, mul: Word) -> Word {
    let a = shift_mix((u ^ v) * mul);
    shift_mix((v ^ a) * mul) * mul
}

#[inline(always)]
pub(super) fn shift_mix(x: Word) -> Word {
    x ^ (x >> 47)
}

#[inline(always)]
pub(super) fn rotate(x: Word, right: u32) -> Word {
    Wrapping(x.0.rotate_right(right))
}

#[inline(always)]
fn swap(x: Word) -> Word {
    Wrapping(x.0.swap_bytes())
}

#[inline(always)]
pub(super) fn length(bytes: &[u8]) -> Word {
    Wrapping(bytes.len() as u64)
}

/// The factor that makes short keys of different lengths different.
#[inline(always)]
pub(super) fn factor(bytes: &[u8]) -> Word {
    K2 + length(bytes) * Wrapping(2)
}

/// Eight bytes from `at` on.
#[inline(always)]
pub(super) fn word(bytes: &[u8], at: usize) -> Word {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    Wrapping(u64::from_le_bytes(word))
}

/// Four bytes from `at` on.
#[inline(always)]
fn half(bytes: &[u8], at: usize) -> Word {
    let mut half = [0; 4];
    half.copy_from_slice(&bytes[at..at + 4]);
    Wrapping(u64::from(u32::from_le_bytes(half)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::murmur3::vectors;

    /// "City64" and "City64noSeed" in `main.cpp` of rurban/smhasher.
    #[test]
    fn smhasher_verifies_it() {
        let seeded = |bytes: &[u8], seed| City64::seeded(u64::from(seed)).hash(bytes);
        assert_eq!(vectors::smhasher(|b, seed| seeded(b, seed).to_le_bytes()), 0x5fab_c5c5);
        let unseeded = |bytes: &[u8]| City64::default().hash(bytes);
        assert_eq!(vectors::smhasher(|b, _| unseeded(b).to_le_bytes()), 0x4c4e_54b1);
    }

    /// `city-test.cc` of google/cityhash 1.1: `len` bytes from `len * len` on of a random text,
    /// without a seed and with the seed 1234567.
    #[test]
    fn the_original_agrees() {
        let (mut a, mut b): (Word, Word) = (Wrapping(9), Wrapping(777));
        let text: [u8; 40_000] = core::array::from_fn(|i| {
            a += b;
            b += a;
            a = (a ^ (a >> 41)) * K0;
            b = (b ^ (b >> 41)) * K0 + Wrapping(i as u64);
            (b >> 37).0 as u8
        });
        for (len, unseeded, seeded) in [
            (0, 0x9ae1_6a3b_2f90_404f, 0x7510_6db8_9023_7a4a),
            (3, 0xef92_3a7a_1af7_8eab, 0x7916_3b1e_1e9a_9b18),
            (7, 0x1b5a_063f_b4c7_f9f1, 0x318d_bc24_af66_dee9),
            (16, 0x03ea_d5f2_1d34_4056, 0xfb64_2039_3cfb_05c3),
            (32, 0x0782_fa1b_08b4_75e7, 0xfb71_3895_1c61_b23b),
            (64, 0xe884_1992_2b87_176f, 0xbcf3_2f41_a7dd_bf6f),
            (65, 0x1051_91e0_ec8f_7f60, 0x5918_dbfc_ca97_1e79),
            (128, 0xb2e2_3e81_16c2_ba9f, 0x7e4d_9c00_6010_1151),
            (129, 0x8aa7_7f52_d786_8eb9, 0x4d55_bd58_7584_e6e2),
            (199, 0x94dc_6971_e3cf_071a, 0x994c_7003_b73b_2b34),
        ] {
            let key = &text[len * len..][..len];
            assert_eq!(City64::default().digest(key), Digest(unseeded), "{len}");
            assert_eq!(City64::seeded(1_234_567).digest(key), Digest(seeded), "{len}");
        }
    }

    /// The folds of cityhash 0.4 for Python, which wraps the original, and of the crate cityhasher.
    #[test]
    fn all_lengths_keep_their_digests() {
        assert_eq!(vectors::fold(|bytes| City64::default().hash(bytes)), 0x6ee0_80d7_d810_9ea4);
        assert_eq!(
            vectors::fold(|bytes| City64::seeded(u64::MAX).hash(bytes)),
            0x12b7_7d50_4c7c_6dfe
        );
    }

    #[test]
    fn integers_are_their_eight_bytes() {
        let bytes = [1_u8, 2, 3, 4, 5, 6, 7, 0x88];
        let word = u64::from_le_bytes(bytes);
        assert_eq!(City64::default().digest(&word), City64::default().digest(&bytes));
    }

    /// Two keys of O. Peters, "Breaking hash functions", made for FarmHash, which hashes 32 bytes
    /// as CityHash does.
    #[test]
    fn keys_that_collide_do_so_under_every_seed() {
        let keys = ["orlp-farmhash64-?VrJ@L7ytzwheaaa", "orlp-farmhash64-p3`!SQb}fmxheaaa"];
        assert_eq!(keys.map(|key| City64::default().digest(key)), [Digest(1337); 2]);
        for seed in [0, 1, 1_234_567, u64::MAX] {
            let [one, two] = keys.map(|key| City64::seeded(seed).digest(key));
            assert_eq!(one, two);
        }
    }

    #[test]
    fn the_check_tells_seeds_apart() {
        let check = |hasher: City64| Digester::<str>::check(&hasher);
        assert_ne!(check(City64::default()), check(City64::seeded(0)));
        assert_ne!(check(City64::seeded(0)), check(City64::seeded(1)));
    }
}
