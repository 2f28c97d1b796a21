//! Any bytes are a valid counting or scalable filter or an error, with and without checksums in order. A
//! filter that is accepted works and gives its bytes back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use umbel::counting::{Anywhere, CellLayout, Counting, InLine};
use umbel::hash::Xxh3;
use umbel::storage::Heap;
use umbel::{Digest, Portable, ScalableBloomFilter};

fuzz_target!(|data: &[u8]| {
    check_all(data);
    // The fuzzer does not guess checksums, so write them for it; and sizes, so announce what is there.
    if data.len() >= 72 {
        for announced in [false, true] {
            for (family, kernels) in [(4, [1, 4]), (4, [5, 4]), (4, [5, 2]), (5, [6, 0])] {
                check_all(&sealed(data, family, kernels, announced));
            }
        }
        check_all(&regrown(data));
    }
});

fn check_all(bytes: &[u8]) {
    check_counting::<Anywhere>(bytes);
    check_counting::<InLine>(bytes);
    check_scalable(bytes);
}

/// The same bytes as a filter of this family, with checksums in order; and with the sizes of what is
/// there.
fn sealed(data: &[u8], family: u8, kernels: [u8; 2], announced: bool) -> Vec<u8> {
    let mut sealed = data.to_vec();
    sealed[..10].copy_from_slice(b"umbel\0\r\n\0\0");
    sealed[10..16].copy_from_slice(&[family, 0, 1, 0, kernels[0], kernels[1]]);
    if announced {
        let length = data.len() as u64 - 72;
        let unused = u64::from(kernels[0] == 1);
        let cells = (length * 8 / u64::from(kernels[1].max(1))).saturating_sub(unused);
        sealed[32..40].copy_from_slice(&cells.to_le_bytes());
        sealed[41..48].fill(0);
        sealed[48..56].copy_from_slice(&length.to_le_bytes());
    }
    seal(&mut sealed);
    sealed
}

/// A scalable filter that was good until some bytes of what follows its header were changed.
fn regrown(data: &[u8]) -> Vec<u8> {
    let mut filter = ScalableBloomFilter::<[u8]>::new(u64::from(data[0]), 0.05);
    for key in data.chunks(2) {
        filter.insert(key).unwrap();
    }
    let mut bytes = filter.to_bytes();
    let end = bytes.len() - 8;
    for change in data[1..].chunks_exact(3).take(usize::from(data[0] % 4)) {
        let at = 24 + usize::from(u16::from_le_bytes([change[0], change[1]])) % (end - 24);
        bytes[at] = change[2];
    }
    seal(&mut bytes);
    bytes
}

fn seal(bytes: &mut [u8]) {
    let checksum = xxh3(&Xxh3::seeded(0x756d_6265_6c20_6864), &bytes[..56]);
    bytes[56..64].copy_from_slice(&checksum.to_le_bytes());
    let end = bytes.len() - 8;
    let payload = xxh3(&Xxh3::seeded(checksum), &bytes[64..end]);
    bytes[end..].copy_from_slice(&payload.to_le_bytes());
}

fn xxh3(hasher: &Xxh3, bytes: &[u8]) -> u64 {
    let digest: Digest = umbel::hash::Digester::digest(hasher, bytes);
    digest.bits()
}

fn check_counting<L: CellLayout>(bytes: &[u8]) {
    let Ok(mut filter) = Counting::<[u8], Portable, Heap, L>::from_bytes(bytes) else { return };
    assert_eq!(filter.to_bytes(), bytes);
    filter.insert(&b"key"[..]);
    assert!(filter.contains(&b"key"[..]) && filter.remove(&b"key"[..]));
    assert!((0.0..=1.0).contains(&filter.expected_rate()));
    assert!(filter == filter && !format!("{filter:?}").is_empty());
}

fn check_scalable(bytes: &[u8]) {
    let Ok(mut filter) = ScalableBloomFilter::<[u8]>::from_bytes(bytes) else { return };
    assert_eq!(filter.to_bytes(), bytes);
    assert!(filter.planned_rate() <= filter.shape().rate());
    // Another level may be as large as the shape says, which is more than a fuzzer has.
    if filter.levels().last().is_some_and(|level| level.fresh() < level.capacity()) {
        filter.insert(&b"key"[..]).unwrap();
        assert!(filter.contains(&b"key"[..]));
    }
    assert!((0.0..=1.0).contains(&filter.expected_rate()));
    assert!(filter == filter && !format!("{filter:?}").is_empty());
}
