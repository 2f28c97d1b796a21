//! Every reader, for tests and for the fuzzer. A filter that a reader accepts is queried, written, and read
//! again.

use std::hint::black_box;
use umbel_foreign::fastfilter::{BinaryFuse, FuseLayout, Width, Xor8, XorLayout};
use umbel_foreign::*;

/// Passes these bytes to every reader.
pub(crate) fn every(bytes: &[u8]) {
    let key = &b"umbel"[..];
    if let Ok(filter) = guava::read::<[u8]>(bytes) {
        let _ = filter.contains(key);
        assert_eq!(guava::write(&filter), bytes);
    }
    if let Ok(filter) = spark::read::<[u8]>(bytes) {
        let _ = filter.contains(key);
        assert_eq!(spark::write(&filter), bytes);
    }
    if let Ok(filter) = bits_and_blooms::read::<[u8]>(bytes) {
        let _ = filter.contains(key);
        assert_eq!(bits_and_blooms::write(&filter), bytes);
        let json = bits_and_blooms::write_json(&filter);
        assert!(bits_and_blooms::read_json::<[u8]>(&json).unwrap() == filter);
    }
    if let Ok(file) = dcso::read::<[u8]>(bytes) {
        let _ = file.filter.contains(key);
        let written = dcso::write(&file);
        assert!(written == bytes || bytes[0] == 0x1f);
    }
    if let Ok(sketch) = datasketches::read::<[u8]>(bytes, 1 << 16) {
        let _ = sketch.filter.contains(key);
        let again = datasketches::write(&sketch);
        assert!(datasketches::read::<[u8]>(&again, 1 << 16).unwrap().filter == sketch.filter);
    }
    if let Ok(filter) = hadoop::read::<[u8]>(bytes) {
        let _ = filter.contains(key);
        assert_eq!(hadoop::write(&filter), bytes);
    }
    if let Ok(filter) = hadoop::Dynamic::<[u8]>::read(bytes) {
        let _ = filter.contains(key);
        assert_eq!(filter.write(), bytes);
    }
    for format in [cassandra::Format::Old, cassandra::Format::New] {
        if let Ok(filter) = cassandra::read::<[u8]>(bytes, format) {
            let _ = filter.contains(key);
            assert_eq!(cassandra::write(&filter, format), bytes);
        }
    }
    if let Ok(file) = pybloomfilter::read::<[u8]>(bytes) {
        let _ = file.filter.contains(key);
        assert_eq!(pybloomfilter::write(&file), bytes);
    }
    if let Ok(filter) = rbloom::read::<[u8], _>(bytes, rbloom::Sha256) {
        let _ = filter.contains(key);
        assert_eq!(rbloom::write(&filter), bytes);
    }
    if let Ok(filter) = slatedb::read::<[u8]>(bytes) {
        let _ = filter.contains(key);
        assert_eq!(slatedb::write(&filter), bytes);
    }
    if let Ok(envelope) = milvus::Envelope::<[u8]>::read(bytes) {
        let _ = envelope.contains("umbel");
        assert_eq!(envelope.write(), bytes);
    }
    if let Ok(filter) = gozero::read::<[u8]>(bytes, 1_000) {
        let _ = filter.contains(key);
        assert!(gozero::write(&filter).len() <= bytes.len());
    }
    if let Ok(filter) = redisson::read::<[u8]>(bytes, 1_000, 7) {
        let _ = filter.contains(key);
        assert!(redisson::write(&filter).len() <= bytes.len());
    }
    let (first, second) = bytes.split_at(bytes.len().min(73));
    if let Ok(chain) = redisbloom::Chain::<[u8]>::read([first, second]) {
        let _ = chain.contains(key);
        assert_eq!(chain.write()[0].1, first);
    }
    if let Ok(value) = rdb::read_dump(bytes) {
        let _ = value.contains(key);
        let again = rdb::read_dump(&rdb::write_dump(&value, 9)).unwrap();
        assert_eq!(rdb::write_dump(&again, 9), rdb::write_dump(&value, 9));
    }
    if let Ok(entries) = rdb::read(bytes) {
        entries.iter().for_each(|entry| {
            black_box(entry.value.contains(key));
        });
    }
    for layout in [FuseLayout::C, FuseLayout::Go, FuseLayout::Xorf] {
        for width in [Width::Bits8, Width::Bits16, Width::Bits32] {
            if let Ok(filter) = BinaryFuse::read(bytes, layout, width) {
                (0..99).for_each(|key| {
                    black_box(filter.contains(key));
                });
                assert_eq!(filter.write(), bytes);
            }
        }
    }
    for layout in [XorLayout::C, XorLayout::Go, XorLayout::Java] {
        if let Ok(filter) = Xor8::read(bytes, layout) {
            (0..99).for_each(|key| {
                black_box(filter.contains(key));
            });
            assert_eq!(filter.write(), bytes);
        }
    }
    if let Ok(columns) = parquet::columns(bytes) {
        for column in columns.iter().filter(|column| column.filter.is_some()) {
            if let Ok(filter) = parquet::read::<[u8]>(bytes, column) {
                let _ = filter.contains(key);
            }
        }
    }
    if let Ok(block) = rocksdb::read(bytes) {
        (0..99_u8).for_each(|key| {
            black_box(block.contains(&[key; 7]));
        });
        assert_eq!(rocksdb::write(&block), bytes);
    }
    let _ = rocksdb::find(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = (hudi::read(text), hudi::read_dynamic(text));
        let _ = bits_and_blooms::read_json::<[u8]>(text);
    }
    let _ = recognise::recognise(bytes);
}
