//! Any bytes are a valid filter or an error, with and without correct checksums, in an array as on the heap.
//! Classic and blocked filters.
#![no_main]

#[allow(dead_code, reason = "tests use more of it")]
#[path = "../../crates/umbel/tests/it/forge.rs"]
mod forge;

use forge::{INSERTIONS, KERNELS, LENGTH, WORDS, field, seal};
use libfuzzer_sys::fuzz_target;
use umbel::blocked::Lines;
use umbel::bloom::Bloom;
use umbel::kernels::Digits;
use umbel::layout::StoredLayout;
use umbel::storage::{Allocate, Array, Heap, LineArray, Storage};
use umbel::{Digest, Portable, Saved};

fuzz_target!(|data: &[u8]| {
    check::<Digits, Array<2>>(data);
    check::<Lines, LineArray<8>>(data);
    // The fuzzer does not guess checksums and sizes, so this writes the right ones.
    if data.len() >= 32 {
        let (numbers, words) = data.split_at(24);
        check::<Digits, Array<2>>(&sealed(numbers, words, [1, 1], 2, 1));
        check::<Lines, LineArray<8>>(&sealed(numbers, words, [2, 2 + (data[0] & 1)], 8, 0));
    }
});

/// A filter of this family with these kernels, this number of words, and correct checksums.
fn sealed(numbers: &[u8], words: &[u8], ids: [u8; 2], count: u64, unused: u64) -> Vec<u8> {
    let mut bytes = vec![0; WORDS + 8 * count as usize + 8];
    bytes[..10].copy_from_slice(b"umbel\0\r\n\x01\0");
    (bytes[10], bytes[12], bytes[KERNELS], bytes[16]) = (ids[0], 1, ids[1], 3);
    bytes[INSERTIONS..INSERTIONS + 8].fill(0xff);
    bytes[LENGTH..LENGTH + 8].copy_from_slice(&(8 * count).to_le_bytes());
    bytes[24..32].copy_from_slice(&numbers[..8]);
    bytes[field(0)..field(1)].copy_from_slice(&numbers[8..16]);
    bytes[field(1)..field(2)].copy_from_slice(&(64 * count - unused).to_le_bytes());
    bytes[field(2)] = numbers[16];
    for (byte, value) in bytes[WORDS..WORDS + 8 * count as usize].iter_mut().zip(words) {
        *byte = *value;
    }
    seal(&mut bytes);
    bytes
}

fn check<L, S>(bytes: &[u8])
where
    L: StoredLayout<Digest = Digest>,
    S: Allocate + Storage<Word = u64>,
{
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
