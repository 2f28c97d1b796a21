//! FarmHash's Fingerprint64, the only FarmHash function that is frozen.

use super::city::{self, CityState, K0, K1, K2, Word, pair, rotate, shift_mix, word};
use super::{Digest, Digester, Key};
use core::num::Wrapping;

/// FarmHash Fingerprint64, which is `farmhashna::Hash64` and has no seed.
///
/// Gives the same digests as `FARM_FINGERPRINT` of BigQuery and Spanner, `farmFingerprint64` of
/// Redshift and `farmHashFingerprint64` of Guava, all of which show them as signed numbers. The
/// `Hash64` of FarmHash is another function, which differs between processors.
///
/// Good for filters, but not against chosen keys: collisions can be computed.
///
/// ```
/// use umbel::hash::{Digester, Farm64};
///
/// // From BigQuery's manual: SELECT FARM_FINGERPRINT("1footrue").
/// assert_eq!(Farm64.digest("1footrue").bits() as i64, -1541654101129638711);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Farm64;

impl<T: Key + ?Sized> Digester<T> for Farm64 {
    #[inline]
    fn digest(&self, key: &T) -> Digest {
        Digest(key.with_bytes(farm).0)
    }

    fn check(&self) -> u64 {
        farm(b"umbel farm64").0
    }
}

fn farm(bytes: &[u8]) -> Word {
    match bytes.len() {
        0..=16 => city::up_to_16(bytes),
        17..=32 => city::up_to_32(bytes),
        33..=64 => up_to_64(bytes),
        _ => long(bytes),
    }
}

/// 33 to 64 bytes: the outer 32 similar to a shorter key, then the inner ones.
fn up_to_64(bytes: &[u8]) -> Word {
    let mul = city::factor(bytes);
    let tail = &bytes[bytes.len() - 32..];
    let (y, v) = city::ends(bytes, K2);
    let z = pair(y, v, mul);
    let a = word(bytes, 0) * K2;
    let e = word(bytes, 16) * mul;
    let f = word(bytes, 24);
    let g = (y + word(tail, 0)) * mul;
    let h = (z + word(tail, 8)) * mul;
    pair(rotate(e + f, 43) + rotate(g, 30) + h, e + rotate(f + a, 18) + g, mul)
}

/// More than 64 bytes: the blocks in order, then the last 64 bytes with a different factor.
fn long(bytes: &[u8]) -> Word {
    /// The initial value of the state.
    const SEED: Word = Wrapping(81);
    const STEP: Word = Wrapping(113);
    let zero = (Wrapping(0), Wrapping(0));
    let y = SEED * K1 + STEP;
    let z = shift_mix(y * K2 + STEP) * K2;
    let mut state = CityState { x: SEED * K2 + word(bytes, 0), y, z, v: zero, w: zero };
    for block in city::blocks(bytes) {
        state.take(block, K1, Wrapping(1));
    }
    let mul = K1 + ((state.z & Wrapping(0xff)) << 1);
    state.w.0 += (city::length(bytes) - Wrapping(1)) & Wrapping(63);
    state.v.0 += state.w.0;
    state.w.0 += state.v.0;
    state.take(&bytes[bytes.len() - 64..], mul, Wrapping(9));
    state.finish(mul, K0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::murmur3::vectors;

    fn signed(key: &str) -> i64 {
        Farm64.digest(key).bits() as i64
    }

    /// The manuals of BigQuery (`FARM_FINGERPRINT`) and Redshift (`farmFingerprint64`).
    #[test]
    fn data_warehouses_agree() {
        assert_eq!(signed("1footrue"), -1_541_654_101_129_638_711);
        assert_eq!(signed("2applefalse"), 2_794_438_866_806_483_259);
        assert_eq!(signed("3true"), -4_880_158_226_897_771_312);
        assert_eq!(signed("Amazon Redshift"), 8_085_098_817_162_212_970);
    }

    /// "FarmHash64" in `main.cpp` of rurban/smhasher, which takes a seed as CityHash does.
    #[test]
    fn smhasher_verifies_it() {
        let seeded = |bytes: &[u8], seed| city::with_seed(farm(bytes), Wrapping(u64::from(seed)));
        assert_eq!(vectors::smhasher(|b, seed| seeded(b, seed).0.to_le_bytes()), 0xebc4_a679);
    }

    /// `FarmHashFingerprint64Test` of google/guava: 4, 32 and 256 bytes, then a walk through
    /// lengths up to 3200 whose end comes from the original.
    #[test]
    fn guava_agrees() {
        let text: [u8; 256] = core::array::from_fn(|i| b"test"[i % 4]);
        let signed = |len| Farm64.digest(&text[..len]).bits() as i64;
        assert_eq!(signed(4), 8_581_389_452_482_819_506);
        assert_eq!(signed(32), -4_196_240_717_365_766_262);
        assert_eq!(signed(256), 3_500_507_768_004_279_527);

        let (mut text, mut len, mut hash) = ([0_u8; 3200], 0, 0_u64);
        for i in 0..800 {
            for power in 1..=4 {
                let prefix = if power == 4 { len } else { usize::pow(i, power) % len.max(i + 1) };
                hash ^= farm(&text[..prefix]).0;
                hash = (hash ^ (hash >> 41)).wrapping_mul(949_921_979);
                text[len] = b'a' + (hash % (1 << 20) % 26) as u8;
                len += 1;
            }
            let at = |place: usize| usize::from(text[place]);
            let (x0, x1, x2, x3) = (at(len - 1), at(len - 2), at(len - 3), at(len / 2));
            text[((x0 << 16) + (x1 << 8) + x2) % len] ^= x3 as u8;
            text[((x1 << 16) + (x2 << 8) + x3) % len] ^= i as u8;
        }
        assert_eq!(hash, 0x7a1d_67c5_0ec7_e167);
    }

    /// The fold of pyfarmhash 0.5 for Python, which wraps the original. The crate farmhash 1.1.5 is
    /// wrong for 128, 192, 256 ... bytes.
    #[test]
    fn all_lengths_keep_their_digests() {
        assert_eq!(vectors::fold(|bytes| farm(bytes).0), 0x752a_e349_d110_017d);
    }

    #[test]
    fn integers_are_their_eight_bytes() {
        let bytes = [1_u8, 2, 3, 4, 5, 6, 7, 0x88];
        assert_eq!(Farm64.digest(&u64::from_le_bytes(bytes)), Farm64.digest(&bytes));
    }

    /// O. Peters, "Breaking hash functions": both were made to hash to 1337.
    #[test]
    fn collisions_can_be_computed() {
        assert_eq!(Farm64.digest("orlp-farmhash64-?VrJ@L7ytzwheaaa").bits(), 1337);
        assert_eq!(Farm64.digest("orlp-farmhash64-p3`!SQb}fmxheaaa").bits(), 1337);
    }
}
