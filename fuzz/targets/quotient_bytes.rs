//! Any bytes are a valid quotient filter or an error, with and without checksums in order. A filter that
//! is accepted works, contradicts itself nowhere and gives its bytes back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use umbel::hash::{Digester, Xxh3};
use umbel::{Digest, QuotientFilter};

fuzz_target!(|data: &[u8]| {
    check(data);
    // The fuzzer does not guess checksums, so write them for it; and a shape, so announce one.
    if data.len() >= 72 {
        check(&sealed(data.to_vec()));
        let quotients = u64::from(data[32]) + 1;
        let bits = u64::from(data[40] % 31) + 2;
        let blocks = (quotients + (quotients * 95 / 100 + 1).min(256)).div_ceil(64);
        let length = 8 * (2 * blocks + blocks.div_ceil(8) + blocks * bits + 1);
        let mut bytes = data.to_vec();
        bytes.resize(64 + length as usize + 8, 0);
        for (at, field) in [(24, 0), (32, quotients), (40, bits), (48, length)] {
            bytes[at..at + 8].copy_from_slice(&field.to_le_bytes());
        }
        check(&sealed(bytes));
    }
});

/// The same bytes as a quotient filter with the portable hash, with checksums in order.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes[..16].copy_from_slice(b"umbel\0\r\n\0\0\x09\0\x01\0\x09\0");
    let checksum = xxh3(0x756d_6265_6c20_6864, &bytes[..56]);
    bytes[56..64].copy_from_slice(&checksum.to_le_bytes());
    let end = bytes.len() - 8;
    let payload = xxh3(checksum, &bytes[64..end]);
    bytes[end..].copy_from_slice(&payload.to_le_bytes());
    bytes
}

fn xxh3(seed: u64, bytes: &[u8]) -> u64 {
    let digest: Digest = Xxh3::seeded(seed).digest(bytes);
    digest.bits()
}

fn check(bytes: &[u8]) {
    let Ok(mut filter) = QuotientFilter::<u64>::from_bytes(bytes) else { return };
    filter.validate().unwrap();
    assert_eq!(filter.to_bytes(), bytes);
    let (prefixes, shape): (Vec<u64>, _) = (filter.prefixes().collect(), *filter.shape());
    assert!(prefixes.len() as u64 == filter.len() && prefixes.is_sorted());
    for key in 0..8 {
        let before = filter.count(&key);
        if filter.insert(&key).is_ok() {
            assert_eq!(filter.count(&key), before + 1);
            filter.validate().unwrap();
            assert!(filter.remove(&key));
        }
        assert_eq!(filter.count(&key), before);
    }
    filter.validate().unwrap();
    assert!(*filter.shape() != shape || filter.to_bytes() == bytes);
    if filter.grow().is_ok() {
        filter.validate().unwrap();
        assert!(filter.prefixes().eq(prefixes));
    }
}
