//! Murmur hashes that differ from the published ones, or that the main crate does not use.

/// The multiplier of MurmurHash64A, which is also the seed of RedisBloom's first hash.
pub(crate) const M64: u64 = 0xc6a4_a793_5bd1_e995;

/// MurmurHash64A (Austin Appleby, in the public domain).
#[inline]
pub(crate) fn murmur64a(key: &[u8], seed: u64) -> u64 {
    let mut hash = seed ^ (key.len() as u64).wrapping_mul(M64);
    let (words, tail) = key.as_chunks::<8>();
    for word in words {
        let mut mixed = u64::from_le_bytes(*word).wrapping_mul(M64);
        mixed ^= mixed >> 47;
        hash = (hash ^ mixed.wrapping_mul(M64)).wrapping_mul(M64);
    }
    if !tail.is_empty() {
        hash = (hash ^ little_endian(tail) as u64).wrapping_mul(M64);
    }
    hash ^= hash >> 47;
    hash = hash.wrapping_mul(M64);
    hash ^ hash >> 47
}

const M32: u32 = 0x5bd1_e995;

/// Hashes the whole words with MurmurHash2, 32 bits, and returns the remaining bytes.
#[inline]
fn murmur2_words(key: &[u8], seed: u32) -> (u32, &[u8]) {
    let mut hash = seed ^ key.len() as u32;
    let (words, tail) = key.as_chunks::<4>();
    for word in words {
        let mut mixed = u32::from_le_bytes(*word).wrapping_mul(M32);
        mixed ^= mixed >> 24;
        hash = hash.wrapping_mul(M32) ^ mixed.wrapping_mul(M32);
    }
    (hash, tail)
}

const fn murmur2_end(mut hash: u32) -> u32 {
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M32);
    hash ^ hash >> 15
}

/// MurmurHash2, 32 bits.
#[inline]
pub(crate) fn murmur2(key: &[u8], seed: u32) -> u32 {
    let (mut hash, tail) = murmur2_words(key, seed);
    if !tail.is_empty() {
        hash = (hash ^ little_endian(tail) as u32).wrapping_mul(M32);
    }
    murmur2_end(hash)
}

/// Hadoop's MurmurHash2 reads the last one to three bytes from the end, the last byte lowest, and as signed.
#[inline]
pub(crate) fn hadoop_murmur(key: &[u8], seed: u32) -> u32 {
    let (mut hash, tail) = murmur2_words(key, seed);
    if !tail.is_empty() {
        for (place, byte) in tail.iter().rev().enumerate() {
            hash ^= ((*byte as i8 as i32) << (8 * place)) as u32;
        }
        hash = hash.wrapping_mul(M32);
    }
    murmur2_end(hash)
}

/// Spark's MurmurHash3, 32 bits: each of the last one to three bytes is mixed as a separate signed word.
#[inline]
pub(crate) fn spark_murmur3(key: &[u8], seed: u32) -> u32 {
    let mix = |hash: u32, word: u32| {
        let word = word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
        (hash ^ word).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
    };
    let (words, tail) = key.as_chunks::<4>();
    let hash = words.iter().fold(seed, |hash, word| mix(hash, u32::from_le_bytes(*word)));
    let hash = tail.iter().fold(hash, |hash, byte| mix(hash, *byte as i8 as i32 as u32));
    let mut hash = hash ^ key.len() as u32;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

const fn first(word: u64) -> u64 {
    word.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

const fn second(word: u64) -> u64 {
    word.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

/// A block of MurmurHash3 x64-128.
#[inline(always)]
const fn murmur3_block((h1, h2): (u64, u64), block: &[u8; 16]) -> (u64, u64) {
    let block = u128::from_le_bytes(*block);
    let h1 = (h1 ^ first(block as u64)).rotate_left(27).wrapping_add(h2);
    let h1 = h1.wrapping_mul(5).wrapping_add(0x52dc_e729);
    let h2 = (h2 ^ second((block >> 64) as u64)).rotate_left(31).wrapping_add(h1);
    (h1, h2.wrapping_mul(5).wrapping_add(0x3849_5ab5))
}

/// The end of MurmurHash3 x64-128: the tail, and the length.
#[inline(always)]
const fn murmur3_end((h1, h2): (u64, u64), tail: u128, len: usize) -> (u64, u64) {
    const fn fmix(h: u64) -> u64 {
        let h = (h ^ h >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        let h = (h ^ h >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        h ^ h >> 33
    }
    let (h1, h2) =
        (h1 ^ first(tail as u64) ^ len as u64, h2 ^ second((tail >> 64) as u64) ^ len as u64);
    let h1 = h1.wrapping_add(h2);
    let (h1, h2) = (fmix(h1), fmix(h2.wrapping_add(h1)));
    let h1 = h1.wrapping_add(h2);
    (h1, h2.wrapping_add(h1))
}

/// Cassandra's MurmurHash3 x64-128, seed 0: the last one to fifteen bytes are read as signed.
#[inline]
pub(crate) fn cassandra_murmur3(key: &[u8]) -> (u64, u64) {
    let (blocks, tail) = key.as_chunks::<16>();
    let hash = blocks.iter().fold((0, 0), murmur3_block);
    let mut last = [0_u64; 2];
    for (place, byte) in tail.iter().enumerate() {
        last[place / 8] ^= (i64::from(*byte as i8) << (8 * (place % 8))) as u64;
    }
    murmur3_end(hash, u128::from(last[0]) | u128::from(last[1]) << 64, key.len())
}

/// MurmurHash3 x64-128, seed 0, of a key, and of the key with one more byte: both halves of each. The blocks
/// are hashed only once.
#[inline]
pub(crate) fn murmur3_twice(key: &[u8], more: u8) -> [u64; 4] {
    let (blocks, tail) = key.as_chunks::<16>();
    let hash = blocks.iter().fold((0, 0), murmur3_block);
    let last = little_endian(tail);
    let (h0, h1) = murmur3_end(hash, last, key.len());
    let last = last | u128::from(more) << (8 * tail.len());
    let (h2, h3) = if tail.len() == 15 {
        murmur3_end(murmur3_block(hash, &last.to_le_bytes()), 0, key.len() + 1)
    } else {
        murmur3_end(hash, last, key.len() + 1)
    };
    [h0, h1, h2, h3]
}

/// Up to fifteen bytes as a number, in overlapping reads: copying so few bytes costs more than hashing them.
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
    tail.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use umbel::hash::Murmur3;

    #[test]
    fn published_vectors_are_met() {
        assert_eq!(murmur64a(b"hello", M64), 0x5ba5_b8a5_9803_e699);
        assert_eq!(murmur64a(b"foo", M64), 0x822b_4f99_b121_f10d);
        // SMHasher's test: hashes of 0, 01, 012, ... with seeds 256 - i, and the hash of them all.
        let bytes: Vec<u8> = (0..=255).collect();
        let hashes: Vec<u8> = (0..256)
            .flat_map(|len: usize| murmur2(&bytes[..len], 256 - len as u32).to_le_bytes())
            .collect();
        assert_eq!(murmur2(&hashes, 0), 0x2786_4c1e);
    }

    #[test]
    fn variants_equal_the_published_hash_where_there_is_no_tail_or_no_sign() {
        for len in 0..64 {
            let small: Vec<u8> = (0..len).map(|byte: u8| byte.wrapping_mul(31) % 128).collect();
            let large: Vec<u8> = (0..len).map(|byte: u8| byte.wrapping_mul(31) | 0x80).collect();
            assert_eq!(cassandra_murmur3(&small), Murmur3::default().hash128(&small), "{len}");
            let (h0, h1) = Murmur3::default().hash128(&large);
            let (h2, h3) = Murmur3::default().hash128(&[&large[..], &[1]].concat());
            assert_eq!(murmur3_twice(&large, 1), [h0, h1, h2, h3], "{len}");
            let same = cassandra_murmur3(&large) == Murmur3::default().hash128(&large);
            assert_eq!(same, len % 16 == 0, "{len}");
            assert_eq!(hadoop_murmur(&small, 7) == murmur2(&small, 7), len % 4 < 2, "{len}");
        }
    }
}
