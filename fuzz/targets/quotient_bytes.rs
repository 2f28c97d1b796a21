//! Any bytes are a valid quotient filter or an error, with and without correct checksums. A filter that is
//! accepted works, is consistent and returns its bytes.
#![no_main]

#[allow(dead_code, reason = "tests use more of it")]
#[path = "../../crates/umbel/tests/it/forge.rs"]
mod forge;

use forge::{INSERTIONS, KERNELS, LENGTH, WORDS, field, seal};
use libfuzzer_sys::fuzz_target;
use umbel::{QuotientFilter, Saved};

fuzz_target!(|data: &[u8]| {
    check(data);
    // The fuzzer does not guess checksums and a shape, so this writes them.
    if let Some(([quotients, bits, keys, items], words)) = data.split_first_chunk() {
        let (quotients, bits) = (u64::from(*quotients) + 1, u64::from(*bits % 31) + 2);
        let blocks = (quotients + (quotients * 95 / 100 + 1).min(256)).div_ceil(64);
        let length = 8 * (2 * blocks + blocks.div_ceil(8) + blocks * bits + 1);
        let mut bytes = vec![0; WORDS + length as usize + 8];
        bytes[..10].copy_from_slice(b"umbel\0\r\n\x01\0");
        (bytes[10], bytes[12], bytes[KERNELS], bytes[16]) = (9, 1, 10, 1);
        let fields =
            [(0, u64::from(*items)), (1, quotients), (2, bits)].map(|(n, f)| (field(n), f));
        let others = [(INSERTIONS, u64::from(*keys)), (LENGTH, length)];
        for (at, value) in fields.into_iter().chain(others) {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        for (byte, value) in bytes[WORDS..WORDS + length as usize].iter_mut().zip(words) {
            *byte = *value;
        }
        seal(&mut bytes);
        check(&bytes);
    }
});

fn check(bytes: &[u8]) {
    let Ok(mut filter) = QuotientFilter::<u64>::from_bytes(bytes) else { return };
    filter.validate().unwrap();
    assert_eq!(filter.to_bytes(), bytes);
    let (prefixes, shape): (Vec<u64>, _) = (filter.prefixes().collect(), *filter.shape());
    assert!(prefixes.len() as u64 == filter.len() && prefixes.is_sorted());
    for key in 0..8 {
        let before = filter.estimated_count(&key);
        if filter.insert(&key).is_ok() {
            assert_eq!(filter.estimated_count(&key), before + 1);
            filter.validate().unwrap();
            assert!(filter.remove(&key));
        }
        assert_eq!(filter.estimated_count(&key), before);
    }
    filter.validate().unwrap();
    assert!(*filter.shape() != shape || filter.to_bytes() == bytes);
    if filter.grow().is_ok() {
        filter.validate().unwrap();
        assert!(filter.prefixes().eq(prefixes));
    }
}
