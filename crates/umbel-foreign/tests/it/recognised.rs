//! Every sample is recognised as its own system, and other bytes are not recognised.

use crate::samples::{bytes, text};
use umbel_foreign::fastfilter::{FuseLayout, Width, XorLayout};
use umbel_foreign::recognise::{NeedsKeys, System, recognise};
use umbel_foreign::{Invalid, guava, hadoop, milvus, rdb, rocksdb};

/// The samples with their systems.
pub(crate) fn all() -> Vec<(&'static str, System)> {
    vec![
        ("guava-mitz64-string-utf8.bin", System::Guava),
        ("guava-mitz32-bytes.bin", System::Guava),
        ("spark-V1-seed0-string.bin", System::SparkV1),
        ("spark-V2-seed0-long.bin", System::SparkV2),
        ("go-bits-and-blooms-v3.bin", System::BitsAndBlooms),
        ("go-bits-and-blooms-v3-u64be-m7001-k5.json", System::BitsAndBloomsJson),
        ("go-dcso.bin", System::Dcso),
        ("datasketches-java-string.bin", System::DataSketches),
        ("hadoop-bloom-jenkins.bin", System::Hadoop),
        ("hudi-simple.base64", System::Hudi),
        ("cassandra-newformat.bin", System::Cassandra),
        ("pybloomfiltermmap3.bin", System::PyBloomFilter),
        ("pyarrow-string.parquet", System::Parquet),
        ("duckdb-string.parquet", System::Parquet),
        ("rocksdb-ribbonfilter_10.sst", System::RocksDbTable),
        ("rocksdb-bloomfilter_10.filterblock", System::RocksDbBlock),
        ("rocksdb-ribbonfilter_10.filterblock", System::RocksDbBlock),
        ("redisbloom/redisbloom-2.6.28.rdb", System::Rdb),
        ("redisbloom/redisbloom-2.6.28-sketches.rdb", System::Rdb),
        ("redisbloom/redisbloom-8.8.0.rdb", System::Rdb),
        ("go-xorfilter-fuse8-u64.bin", System::BinaryFuse(FuseLayout::Go, Width::Bits8)),
        ("go-xorfilter-fuse16-xxh64.bin", System::BinaryFuse(FuseLayout::Go, Width::Bits16)),
        ("go-xorfilter-xor8-u64.bin", System::Xor(XorLayout::Go)),
        ("fastfilter-java-xor8.bin", System::Xor(XorLayout::Java)),
    ]
}

#[test]
fn samples_are_recognised_with_their_numbers() {
    for (name, system) in all() {
        let found = recognise(&bytes(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(found.system, system, "{name}");
        for facts in &found.filters {
            assert!(facts.set > 0 && facts.set < facts.bits, "{name}: {facts:?}");
            assert!(facts.keys > 0 && facts.rate < 0.1, "{name}: {facts:?}");
        }
    }
    let guava = recognise(&bytes("guava-mitz64-string-utf8.bin")).unwrap();
    assert!(guava.filters[0].keys.abs_diff(1_000) < 30, "{:?}", guava.filters);
    let rdb = recognise(&bytes("redisbloom/redisbloom-2.6.28.rdb")).unwrap();
    assert!(rdb.filters.iter().any(|facts| facts.name == "bf:grown") && rdb.filters.len() > 6);
    let parquet = recognise(&bytes("pyarrow-string.parquet")).unwrap();
    assert_eq!(parquet.filters[0].name, "k, row group 0");
}

#[test]
fn what_was_written_here_is_recognised() {
    let mut dynamic = hadoop::Dynamic::<str>::with(800, 5, hadoop::HashType::Murmur, 10).unwrap();
    (0..25).for_each(|key: u32| dynamic.insert(&key.to_string()).unwrap());
    let found = recognise(&dynamic.write()).unwrap();
    assert_eq!((found.system, found.filters.len()), (System::HadoopDynamic, 3));
    let found = recognise(umbel_foreign::hudi::write_dynamic(&dynamic).as_bytes()).unwrap();
    assert_eq!((found.system, found.filters.len()), (System::HudiDynamic, 3));
    let envelope = milvus::Envelope::<str>::new(100, 0.01).unwrap();
    assert_eq!(recognise(&envelope.write()).unwrap().system, System::Milvus);
    let entry = &rdb::read(&bytes("redisbloom/redisbloom-2.6.28-sketches.rdb")).unwrap()[0];
    let dump = rdb::write_dump(&entry.value, 9);
    assert_eq!(recognise(&dump).unwrap().system, System::RedisDump);
    let mut filter = umbel::BloomFilter::<str>::new(10, 0.1);
    filter.insert("umbel");
    assert_eq!(recognise(&umbel::Saved::to_bytes(&filter)).unwrap().system, System::Umbel);
}

#[test]
fn texts_tables_and_nothing_are_not_recognised() {
    let nothing = [
        vec![],
        vec![0],
        b"{\"m\": 1}".to_vec(),
        b"key,value\n1,2\n".to_vec(),
        bytes("keys-1000.txt"),
    ];
    let zeros = (0..64).map(|length| vec![0; length]);
    for bytes in nothing.into_iter().chain(zeros) {
        assert_eq!(recognise(&bytes), Err(Invalid::Unknown), "{bytes:?}");
    }
    let answers = text("guava-mitz64-long.answers");
    assert_eq!(recognise(answers.as_bytes()), Err(Invalid::Unknown));
}

#[test]
fn a_signature_with_something_wrong_behind_it_says_what() {
    let mut file = bytes("pybloomfiltermmap3.bin");
    file.pop();
    assert!(matches!(recognise(&file), Err(Invalid::Length { .. })));
    let sst = bytes("rocksdb-ribbonfilter_10.sst");
    let Err(error) = rocksdb::find(&sst[..sst.len() - 1]) else { panic!("cut off") };
    assert_eq!(error, Invalid::Magic { system: "RocksDB" });
}

#[test]
fn filters_become_those_of_others_only_where_their_bits_are_the_same() {
    let to = System::BinaryFuse(FuseLayout::C, Width::Bits8);
    assert!(System::BinaryFuse(FuseLayout::Go, Width::Bits8).becomes(to).is_ok());
    assert!(System::Hudi.becomes(System::Hadoop).is_ok());
    let error = System::Guava.becomes(System::SparkV2).unwrap_err();
    assert_eq!(error, NeedsKeys { from: System::Guava, to: System::SparkV2 });
    assert_eq!(
        error.to_string(),
        "a filter of Guava BloomFilter cannot become one of Spark BloomFilter version 2 without its keys: build it from them"
    );
}

#[test]
fn a_filter_without_probes_is_refused() {
    let error = guava::read::<str>(&[1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap_err();
    assert_eq!(error.to_string(), "expected 1 to 4,096 probes, got 0");
}
