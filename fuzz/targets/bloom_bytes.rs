//! Any bytes are a valid filter or an error, with and without checksums in order. A filter that is
//! accepted works and gives its bytes back. Classic and blocked filters.
#![no_main]

use libfuzzer_sys::fuzz_target;
use umbel::blocked::Lines;
use umbel::bloom::Bloom;
use umbel::kernels::Digits;
use umbel::layout::StoredLayout;
use umbel::storage::{Allocate, Array, Heap, LineArray};
use umbel::{Digest, Portable};

fuzz_target!(|data: &[u8]| {
    check::<Digits, Array<2>>(data);
    check::<Lines, LineArray<8>>(data);
    // The fuzzer does not guess checksums, so write them for it; and sizes, so announce what is there.
    if data.len() >= 72 {
        for announced in [false, true] {
            check::<Digits, Array<2>>(&sealed(data, [1, 1], announced.then_some(1)));
            let kernels = 2 + data[14] % 2;
            check::<Lines, LineArray<8>>(&sealed(data, [2, kernels], announced.then_some(0)));
        }
    }
});

/// The same bytes as a filter of this family, with checksums in order; and with these kernels and the
/// sizes of what is there, where it says how many bits of the last word are none.
fn sealed(data: &[u8], [family, kernels]: [u8; 2], unused: Option<u64>) -> Vec<u8> {
    let mut sealed = data.to_vec();
    sealed[..10].copy_from_slice(b"umbel\0\r\n\0\0");
    sealed[10..12].copy_from_slice(&[family, 0]);
    if let Some(unused) = unused {
        let length = data.len() as u64 - 72;
        sealed[12..16].copy_from_slice(&[1, 0, kernels, 0]);
        sealed[32..40].copy_from_slice(&(length * 8).saturating_sub(unused).to_le_bytes());
        sealed[41..48].fill(0);
        sealed[48..56].copy_from_slice(&length.to_le_bytes());
    }
    let header = umbel::hash::Xxh3::seeded(0x756d_6265_6c20_6864);
    let checksum = xxh3(&header, &sealed[..56]);
    sealed[56..64].copy_from_slice(&checksum.to_le_bytes());
    let end = sealed.len() - 8;
    let payload = xxh3(&umbel::hash::Xxh3::seeded(checksum), &sealed[64..end]);
    sealed[end..].copy_from_slice(&payload.to_le_bytes());
    sealed
}

fn xxh3(hasher: &umbel::hash::Xxh3, bytes: &[u8]) -> u64 {
    let digest: Digest = umbel::hash::Digester::digest(hasher, bytes);
    digest.bits()
}

fn check<L: StoredLayout<Digest = Digest>, S: Allocate>(bytes: &[u8]) {
    let array = Bloom::<[u8], Portable, S, L>::from_bytes(bytes);
    let heap = Bloom::<[u8], Portable, Heap, L>::from_bytes(bytes);
    if let Ok(array) = array {
        assert_eq!(array.to_bytes(), bytes);
        assert!(heap.is_ok());
    }
    if let Ok(mut filter) = heap {
        assert_eq!(filter.to_bytes(), bytes);
        filter.insert(&b"key"[..]);
        assert!(filter.contains(&b"key"[..]));
        let (rate, items) = (filter.expected_rate(), filter.estimated_len());
        assert!((0.0..=1.0).contains(&rate) && items > 0);
        assert!(filter == filter && !format!("{filter:?}").is_empty());
    }
}
