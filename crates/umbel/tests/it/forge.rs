//! The bytes of a filter with some values changed and checksums recomputed. The offsets are in
//! `docs/format.md`.

use twox_hash::XxHash3_64;

pub(crate) const KERNELS: usize = 14;
pub(crate) const FLAGS: usize = 18;
pub(crate) const SECRET: usize = 40;
pub(crate) const INSERTIONS: usize = 56;
pub(crate) const LENGTH: usize = 64;
pub(crate) const WORDS: usize = 192;

/// The offset of a field of the family.
pub(crate) const fn field(number: usize) -> usize {
    80 + 8 * number
}

/// The bytes with `value` at an offset.
pub(crate) fn with(bytes: &[u8], at: usize, value: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + value.len()].copy_from_slice(value);
    seal(&mut bytes);
    bytes
}

/// The number of bytes that are words, if these are the bytes of a filter.
pub(crate) fn words_of(bytes: &[u8]) -> usize {
    let rest = bytes.len() - WORDS;
    rest - rest.div_ceil(8_192 + 8) * 8
}

/// Recomputes the checksums of a filter.
pub(crate) fn seal(bytes: &mut [u8]) {
    let xxh3 = |seed: u64, bytes: &[u8]| XxHash3_64::oneshot_with_seed(seed, bytes);
    let blocks = 0x756d_6265_6c20_626c_u64;
    let words = words_of(bytes);
    let (header, rest) = bytes.split_at_mut(WORDS);
    let (payload, table) = rest.split_at_mut(words);
    for ((number, block), sum) in (1..).zip(payload.chunks(8_192)).zip(table.chunks_mut(8)) {
        sum.copy_from_slice(&xxh3(blocks + number, block).to_le_bytes());
    }
    header[72..80].copy_from_slice(&xxh3(blocks, table).to_le_bytes());
    let checksum = xxh3(0x756d_6265_6c20_6864, &header[..184]);
    header[184..].copy_from_slice(&checksum.to_le_bytes());
}

#[test]
fn what_is_sealed_without_a_change_is_what_it_was() {
    use umbel::Saved;
    for items in [1, 10_000, 20_000] {
        let bytes = umbel::BloomFilter::<u64>::new(items, 0.01).to_bytes();
        let mut sealed = bytes.clone();
        seal(&mut sealed);
        assert!(sealed == bytes, "{items}");
    }
}
