//! The two hashes of RedisBloom's stored filters: MurmurHash64A, and MurmurHash2 for old filters.
//!
//! Both are Austin Appleby's, in the public domain. Do not use them for new formats: they are public and have
//! no secret, so an attacker can choose keys that collide. `BF.RESERVE ... KEYED` prevents that.

/// The multiplier of both 64-bit steps, which is also the seed of RedisBloom's first hash.
pub const M64: u64 = 0xc6a4_a793_5bd1_e995;
const R64: u32 = 47;

/// MurmurHash64A of `key`.
///
/// ```
/// use umbel_module::murmur::{M64, murmur64a};
///
/// assert_eq!(murmur64a(b"foo", M64), 0x822b_4f99_b121_f10d);
/// ```
#[must_use]
#[inline]
pub fn murmur64a(key: &[u8], seed: u64) -> u64 {
    let mut hash = seed ^ (key.len() as u64).wrapping_mul(M64);
    let (words, tail) = key.as_chunks::<8>();
    for word in words {
        let mut mixed = u64::from_le_bytes(*word).wrapping_mul(M64);
        mixed ^= mixed >> R64;
        hash = (hash ^ mixed.wrapping_mul(M64)).wrapping_mul(M64);
    }
    if !tail.is_empty() {
        hash = (hash ^ little_endian(tail)).wrapping_mul(M64);
    }
    hash ^= hash >> R64;
    hash = hash.wrapping_mul(M64);
    hash ^ hash >> R64
}

/// Up to seven bytes as a number, in overlapping reads instead of a loop.
#[inline(always)]
fn little_endian(tail: &[u8]) -> u64 {
    if let (Some(first), Some(last)) = (tail.first_chunk::<4>(), tail.last_chunk::<4>()) {
        let shift = (tail.len() - 4) * 8;
        return u64::from(u32::from_le_bytes(*first))
            | u64::from(u32::from_le_bytes(*last)) << shift;
    }
    match *tail {
        [a] => u64::from(a),
        [a, b] => u64::from(a) | u64::from(b) << 8,
        [a, b, c] => u64::from(a) | u64::from(b) << 8 | u64::from(c) << 16,
        _ => 0,
    }
}

/// MurmurHash2, 32 bits, of `key`.
#[must_use]
pub fn murmur2(key: &[u8], seed: u32) -> u32 {
    const M: u32 = 0x5bd1_e995;
    // The original also takes lengths modulo 2^32.
    let mut hash = seed ^ key.len() as u32;
    let (words, tail) = key.as_chunks::<4>();
    for word in words {
        let mut mixed = u32::from_le_bytes(*word).wrapping_mul(M);
        mixed ^= mixed >> 24;
        hash = hash.wrapping_mul(M) ^ mixed.wrapping_mul(M);
    }
    if !tail.is_empty() {
        hash = (hash ^ little_endian(tail) as u32).wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ hash >> 15
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tail byte by byte, as in the definition of the hash.
    fn slow_tail(tail: &[u8]) -> u64 {
        tail.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
    }

    #[test]
    fn tails_of_every_length_are_read_right() {
        for len in 0..8 {
            let tail: Vec<u8> = (0..len).map(|byte| 0xf1 ^ (byte * 29)).collect();
            assert_eq!(little_endian(&tail), slow_tail(&tail), "{len} bytes");
        }
    }

    #[test]
    fn hashes_of_the_published_vectors() {
        // FORMATS.md, computed with RedisBloom's own.
        assert_eq!(murmur64a(b"hello", M64), 0x5ba5_b8a5_9803_e699);
        assert_eq!(murmur64a(b"foo", M64), 0x822b_4f99_b121_f10d);
        assert_ne!(murmur64a(b"", 1), murmur64a(b"", 2));
    }

    #[test]
    fn murmur2_equals_its_smhasher_verification_code() {
        // SMHasher's test: hashes of 0, 01, 012, ... with seeds 256 - i, and the hash of them all.
        let bytes: Vec<u8> = (0..=255).collect();
        let hashes: Vec<u8> = (0..256)
            .flat_map(|len: usize| murmur2(&bytes[..len], 256 - len as u32).to_le_bytes())
            .collect();
        assert_eq!(murmur2(&hashes, 0), 0x27864c1e);
        let hashes: Vec<u8> = (0..256)
            .flat_map(|len: usize| murmur64a(&bytes[..len], 256 - len as u64).to_le_bytes())
            .collect();
        assert_eq!(murmur64a(&hashes, 0) as u32, 0x1f0d3804);
    }
}
