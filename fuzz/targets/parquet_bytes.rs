//! Any bytes are a Parquet filter or an error, with and without a header with the right length. A filter that
//! is accepted works and writes a canonical file, which reads back equal.
#![no_main]

use libfuzzer_sys::fuzz_target;
use umbel::SplitBlockBloomFilter;

fuzz_target!(|data: &[u8]| {
    check(data);
    // The fuzzer does not guess the length, so this writes it into the first field. The rest is arbitrary.
    let blocks = data.len() / 32;
    if let (1..64, Some((rest, payload))) =
        (blocks, data.split_at_checked(data.len() - blocks * 32))
    {
        let doubled = blocks * 64;
        let announced = [0x15, doubled as u8 | 0x80, (doubled >> 7) as u8];
        check(&[&announced, rest, payload].concat());
    }
});

fn check(bytes: &[u8]) {
    let Ok(mut filter) = SplitBlockBloomFilter::<[u8]>::from_parquet(bytes) else { return };
    let written = filter.to_parquet();
    let blocks = filter.bytes() as usize;
    assert!(written.len() <= bytes.len());
    assert_eq!(written[written.len() - blocks..], bytes[bytes.len() - blocks..]);
    let again = SplitBlockBloomFilter::<[u8]>::from_parquet(&written).unwrap();
    assert!(again == filter && again.to_parquet() == written);
    let (rate, items) = (filter.expected_rate(), filter.estimated_len());
    assert!((0.0..=1.0).contains(&rate) && (items > 0 || filter.count_ones() < 8));
    assert_eq!(filter.fold().is_ok(), blocks % 64 == 0);
    filter.insert(&b"key"[..]);
    assert!(filter.contains(&b"key"[..]) && !format!("{filter:?}").is_empty());
}
