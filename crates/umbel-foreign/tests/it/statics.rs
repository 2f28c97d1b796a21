//! Static filters, and filters inside larger files, that real programs wrote.

use crate::samples::{absent, absent_longs, answers_as, bytes, keys, longs};
use umbel::SplitBlockBloomFilter;
use umbel::hash::{Digester, Xxh64};
use umbel_foreign::fastfilter::{BinaryFuse, FuseLayout, Width, Xor8, XorLayout};
use umbel_foreign::{parquet, rocksdb};

fn numbers(longs: Vec<i64>) -> Vec<u64> {
    longs.into_iter().map(|long| long as u64).collect()
}

/// XXH64 of the texts, which the programs inserted.
fn hashes(texts: Vec<String>) -> Vec<u64> {
    texts.into_iter().map(|text| Xxh64::default().digest(text.as_str()).bits()).collect()
}

#[test]
fn binary_fuse_filters_are_read_asked_and_written() {
    for (bits, width) in [(8, Width::Bits8), (16, Width::Bits16)] {
        for (kind, keys, absent) in [
            ("u64", numbers(longs()), numbers(absent_longs())),
            ("xxh64", hashes(keys()), hashes(absent())),
        ] {
            let name = format!("go-xorfilter-fuse{bits}-{kind}");
            let golden = bytes(&format!("{name}.bin"));
            let filter = BinaryFuse::read(&golden, FuseLayout::Go, width).unwrap();
            answers_as(&name, &keys, &absent, |key| filter.contains(*key));
            assert_eq!(filter.write(), golden);
            // The same fields in the layouts of C and xorf.
            let c = [&golden[..8], &[232, 3, 0, 0], &golden[8..12], &golden[16..]].concat();
            let xorf = [&golden[..16], &golden[20..24], &golden[28..]].concat();
            for (bytes, layout) in [(c, FuseLayout::C), (xorf, FuseLayout::Xorf)] {
                let read = BinaryFuse::read(&bytes, layout, width).unwrap();
                answers_as(&name, &keys, &absent, |key| read.contains(*key));
                assert_eq!(read.write(), bytes);
                assert_eq!(filter.clone().in_layout(layout, 1_000).write(), bytes);
            }
        }
    }
}

#[test]
fn xor_filters_are_read_asked_and_written() {
    for (kind, keys, absent) in [
        ("u64", numbers(longs()), numbers(absent_longs())),
        ("xxh64", hashes(keys()), hashes(absent())),
    ] {
        let name = format!("go-xorfilter-xor8-{kind}");
        let golden = bytes(&format!("{name}.bin"));
        let filter = Xor8::read(&golden, XorLayout::Go).unwrap();
        answers_as(&name, &keys, &absent, |key| filter.contains(*key));
        assert_eq!(filter.write(), golden);
        let c = [&golden[..12], &[0; 4], &golden[12..]].concat();
        let filter = Xor8::read(&c, XorLayout::C).unwrap();
        answers_as(&name, &keys, &absent, |key| filter.contains(*key));
        assert_eq!(filter.write(), c);
        assert_eq!(filter.clone().in_layout(XorLayout::Go).unwrap().write(), golden);
        let error = filter.in_layout(XorLayout::Java).unwrap_err();
        assert!(error.to_string().contains("without its keys"), "{error}");
    }
    let golden = bytes("fastfilter-java-xor8.bin");
    let filter = Xor8::read(&golden, XorLayout::Java).unwrap();
    let (keys, absent) = (numbers(longs()), numbers(absent_longs()));
    answers_as("fastfilter-java-xor8", &keys, &absent, |key| filter.contains(*key));
    assert_eq!(filter.write(), golden);
}

#[test]
fn filters_of_parquet_files_are_listed_cut_out_and_asked() {
    for name in ["pyarrow-string", "duckdb-string"] {
        let file = bytes(&format!("{name}.parquet"));
        let columns = parquet::columns(&file).unwrap();
        assert_eq!(columns.len(), 1);
        let column = &columns[0];
        assert_eq!((column.row_group, &column.path[..]), (0, &["k".to_owned()][..]));
        assert_eq!((column.kind, column.values), (parquet::Kind::ByteArray, 1_000));
        let golden = bytes(&format!("{name}.parquet-filter"));
        assert_eq!(parquet::bytes(&file, column).unwrap(), golden);
        let filter = parquet::read::<str>(&file, column).unwrap();
        answers_as(name, &keys(), &absent(), |key| filter.contains(key.as_str()));
        assert_eq!(filter.to_parquet(), golden);
    }
}

#[test]
fn blocks_without_a_header_are_those_of_a_new_filter() {
    let golden = bytes("parquet-mr-blocks-only-string.bin");
    let shape = umbel::split::Shape::with(1_000, golden.len() as u64 / 32).unwrap();
    let mut filter = SplitBlockBloomFilter::<str>::with(shape, umbel::split::Plain).unwrap();
    filter.extend(keys());
    let words: Vec<u8> = filter.words().iter().flat_map(|word| word.to_le_bytes()).collect();
    assert_eq!(words, golden);
    answers_as("parquet-mr-blocks-only-string", &keys(), &absent(), |key| {
        filter.contains(key.as_str())
    });
}

#[test]
fn filter_blocks_of_rocksdb_are_read_asked_and_written() {
    let keys: Vec<String> = (0..10_000).map(|number| format!("key-{number}")).collect();
    let absent: Vec<String> = (0..2_000).map(|number| format!("key-5-{number}")).collect();
    for name in ["rocksdb-bloomfilter_10", "rocksdb-ribbonfilter_10"] {
        let golden = bytes(&format!("{name}.filterblock"));
        let block = rocksdb::read(&golden).unwrap();
        answers_as(name, &keys, &absent, |key| block.contains(key.as_bytes()));
        assert_eq!(rocksdb::write(&block), golden);
        if let rocksdb::Block::Bloom(filter) = &block {
            let (lines, probes) = (filter.shape().bits() / 512, filter.shape().probes());
            let mut built = rocksdb::with::<[u8]>(lines, probes).unwrap();
            built.extend(keys.iter().map(|key| key.clone().into_bytes()));
            assert!(built == *filter);
        }
    }
}

#[test]
fn the_filter_block_of_an_sst_is_found() {
    let sst = bytes("rocksdb-ribbonfilter_10.sst");
    let found = rocksdb::find(&sst).unwrap().unwrap();
    assert_eq!(sst[found], bytes("rocksdb-ribbonfilter_10.filterblock"));
}

/// RocksDB hashes long keys differently from short ones. These lengths are at the boundaries.
#[test]
fn keys_of_every_length_have_one_hash_and_no_panic() {
    let mut filter = rocksdb::with::<[u8]>(64, 6).unwrap();
    let text: Vec<u8> = (0..3_000_u32).map(|byte| (byte * 31 / 8) as u8).collect();
    for length in (0..300).chain([511, 512, 1_023, 1_024, 1_025, 1_088, 2_048, 2_999]) {
        filter.insert(&text[..length]);
        assert!(filter.contains(&text[..length]));
    }
}
