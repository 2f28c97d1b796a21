//! Filters of static sets, and filters inside of larger files, that real programs wrote.

use crate::samples::{absent, absent_longs, answers_as, bytes, keys, longs};
use umbel::SplitBlockBloomFilter;
use umbel::hash::{Digester, Xxh64};
use umbel_foreign::fastfilter::{BinaryFuse, FuseLayout, Width, Xor8, XorLayout};
use umbel_foreign::parquet;

fn numbers(longs: Vec<i64>) -> Vec<u64> {
    longs.into_iter().map(|long| long as u64).collect()
}

/// XXH64 of the texts, which is what the programs inserted.
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
            // The same fields as C and xorf have them.
            let c = [&golden[..8], &[232, 3, 0, 0], &golden[8..12], &golden[16..]].concat();
            let xorf = [&golden[..16], &golden[20..24], &golden[28..]].concat();
            for (bytes, layout) in [(c, FuseLayout::C), (xorf, FuseLayout::Xorf)] {
                let filter = BinaryFuse::read(&bytes, layout, width).unwrap();
                answers_as(&name, &keys, &absent, |key| filter.contains(*key));
                assert_eq!(filter.write(), bytes);
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
