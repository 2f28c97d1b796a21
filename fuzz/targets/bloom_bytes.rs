//! Any bytes are a valid filter or an error, with and without checksums in order. A filter that is
//! accepted works and gives its bytes back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use umbel::{ArrayBloomFilter, BloomFilter, Digest};

fuzz_target!(|data: &[u8]| {
    check(data);
    // The fuzzer does not guess checksums, so write them for it.
    let mut sealed = data.to_vec();
    if sealed.len() >= 72 {
        sealed[..10].copy_from_slice(b"umbel\0\r\n\0\0");
        let header = umbel::hash::Xxh3::seeded(0x756d_6265_6c20_6864);
        let checksum = xxh3(&header, &sealed[..56]);
        sealed[56..64].copy_from_slice(&checksum.to_le_bytes());
        let end = sealed.len() - 8;
        let payload = xxh3(&umbel::hash::Xxh3::seeded(checksum), &sealed[64..end]);
        sealed[end..].copy_from_slice(&payload.to_le_bytes());
        check(&sealed);
    }
});

fn xxh3(hasher: &umbel::hash::Xxh3, bytes: &[u8]) -> u64 {
    let digest: Digest = umbel::hash::Digester::digest(hasher, bytes);
    digest.bits()
}

fn check(bytes: &[u8]) {
    let _ = ArrayBloomFilter::<[u8], 2>::from_bytes(bytes);
    if let Ok(mut filter) = BloomFilter::<[u8]>::from_bytes(bytes) {
        assert_eq!(filter.to_bytes(), bytes);
        filter.insert(&b"key"[..]);
        assert!(filter.contains(&b"key"[..]));
        let (rate, items) = (filter.expected_rate(), filter.estimated_len());
        assert!((0.0..=1.0).contains(&rate) && items > 0);
        assert!(filter.clone() == filter && !format!("{filter:?}").is_empty());
    }
}
