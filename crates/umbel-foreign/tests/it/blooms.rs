//! Bloom filters that real programs wrote. All keys are present, every absent key gets the same answer as in
//! the original program, and the bytes written here, after reading and from the keys, are the original ones.

use crate::samples::{absent, absent_longs, answers_as, bytes, keys, longs, text};
use umbel_foreign::*;

#[test]
fn guava_filters_of_texts_are_read_asked_and_written() {
    type Of<H> = guava::BloomFilter<str, H>;
    fn check<H: umbel::hash::Digester<str, (u64, u64)> + Copy>(
        name: &str,
        funnel: H,
        strategy: guava::Strategy,
    ) {
        let golden = bytes(&format!("{name}.bin"));
        let filter: Of<H> = guava::read_with(&golden, funnel).unwrap();
        assert_eq!(*filter.raw().kernels(), strategy);
        answers_as(name, &keys(), &absent(), |key| filter.contains(key));
        assert_eq!(guava::write(&filter), golden, "{name}");
        let mut built: Of<H> = guava::with(1_000, 0.02, funnel, strategy).unwrap();
        built.extend(keys());
        assert_eq!(guava::write(&built), golden, "{name}");
    }
    use guava::Strategy::{Mitz32, Mitz64};
    check("guava-mitz64-string-utf8", guava::Funnel, Mitz64);
    check("guava-mitz64-unencoded-chars", guava::UnencodedChars, Mitz64);
    check("guava-mitz32-string-utf8", guava::Funnel, Mitz32);
    check("guava-mitz32-unencoded-chars", guava::UnencodedChars, Mitz32);
    check("guava-mitz32-bytes", guava::Funnel, Mitz32);
}

#[test]
fn guava_filters_of_numbers_are_read_asked_and_written() {
    let golden = bytes("guava-mitz64-long.bin");
    let filter = guava::read::<i64>(&golden).unwrap();
    answers_as("guava-mitz64-long", &longs(), &absent_longs(), |key| filter.contains(key));
    let mut built = guava::new::<i64>(1_000, 0.02).unwrap();
    built.extend(longs());
    assert_eq!(guava::write(&built), golden);

    let golden = bytes("guava-mitz64-int.bin");
    let filter = guava::read::<i32>(&golden).unwrap();
    let ints = |longs: Vec<i64>| longs.into_iter().map(|long| long as i32).collect::<Vec<_>>();
    let (keys, absent) = (ints(longs()), ints(absent_longs()));
    answers_as("guava-mitz64-int", &keys, &absent, |key| filter.contains(key));
    let mut built = guava::new::<i32>(1_000, 0.02).unwrap();
    built.extend(keys);
    assert_eq!(guava::write(&built), golden);
}

/// `BloomFilterTest` of Guava: the false positives among the odd numbers of a filter of the even ones below 2,000,000.
#[test]
fn guava_filters_of_a_million_keys_have_the_false_positives_of_its_own_tests() {
    fn check<H: umbel::hash::Digester<str, (u64, u64)>>(
        funnel: H,
        strategy: guava::Strategy,
        expected: usize,
        first: [u32; 4],
    ) {
        let mut filter = guava::with::<str, H>(1_000_000, 0.03, funnel, strategy).unwrap();
        assert_eq!((filter.shape().bits(), filter.shape().probes()), (7_298_496, 5));
        filter.extend((0..2_000_000).step_by(2).map(|even: u32| even.to_string()));
        let found = (1..2_000_000).step_by(2).filter(|odd: &u32| filter.contains(&odd.to_string()));
        let found: Vec<u32> = found.collect();
        assert_eq!((found.len(), &found[..4]), (expected, &first[..]));
    }
    use guava::Strategy::{Mitz32, Mitz64};
    check(guava::UnencodedChars, Mitz32, 29_824, [49, 51, 59, 163]);
    check(guava::UnencodedChars, Mitz64, 30_104, [15, 25, 287, 319]);
    check(guava::Funnel, Mitz64, 29_763, [89, 129, 471, 723]);
}

#[test]
fn spark_filters_are_read_asked_and_written() {
    use spark::Version::{V1, V2};
    for (name, version) in [("spark-V1-seed0", V1), ("spark-V2-seed0", V2)] {
        let text = format!("{name}-string");
        let golden = bytes(&format!("{text}.bin"));
        let filter = spark::read::<str>(&golden).unwrap();
        answers_as(&text, &keys(), &absent(), |key| filter.contains(key));
        assert_eq!(spark::write(&filter), golden);
        let mut built = spark::with::<str>(version, 1_000, 8_192, 0).unwrap();
        built.extend(keys());
        assert_eq!(spark::write(&built), golden);

        let long = format!("{name}-long");
        let golden = bytes(&format!("{long}.bin"));
        let filter = spark::read::<i64>(&golden).unwrap();
        answers_as(&long, &longs(), &absent_longs(), |key| filter.contains(key));
        let mut built = spark::with::<i64>(version, 1_000, 8_192, 0).unwrap();
        built.extend(longs());
        assert_eq!(spark::write(&built), golden);
    }
}

#[test]
fn spark_filters_may_have_a_seed_and_be_made_for_a_rate() {
    let name = "spark-V2-seed12345-string";
    let golden = bytes(&format!("{name}.bin"));
    let filter = spark::read::<str>(&golden).unwrap();
    assert_eq!(filter.hasher().seed(), 12_345);
    answers_as(name, &keys(), &absent(), |key| filter.contains(key));
    let mut built = spark::with::<str>(spark::Version::V2, 1_000, 8_192, 12_345).unwrap();
    built.extend(keys());
    assert_eq!(spark::write(&built), golden);
    let mut built = spark::new::<str>(1_000, 0.02).unwrap();
    built.extend(keys());
    assert_eq!(spark::write(&built), bytes("spark-default-create.bin"));
}

#[test]
fn bits_and_blooms_filters_are_read_asked_and_written() {
    let golden = bytes("go-bits-and-blooms-v3.bin");
    let filter = bits_and_blooms::read::<str>(&golden).unwrap();
    answers_as("go-bits-and-blooms-v3", &keys(), &absent(), |key| filter.contains(key));
    assert_eq!(bits_and_blooms::write(&filter), golden);
    let mut built = bits_and_blooms::new::<str>(1_000, 0.02).unwrap();
    built.extend(keys());
    assert_eq!(bits_and_blooms::write(&built), golden);

    let name = "go-bits-and-blooms-v3-u64be-m7001-k5";
    let big_endian = |longs: Vec<i64>| longs.into_iter().map(i64::to_be_bytes).collect::<Vec<_>>();
    let (keys, absent) = (big_endian(longs()), big_endian(absent_longs()));
    let (golden, json) = (bytes(&format!("{name}.bin")), text(&format!("{name}.json")));
    let filter = bits_and_blooms::read::<[u8]>(&golden).unwrap();
    answers_as(name, &keys, &absent, |key| filter.contains(key));
    let read = bits_and_blooms::read_json::<[u8]>(&json).unwrap();
    assert!(read == filter);
    let mut built = bits_and_blooms::with::<[u8]>(7_001, 5).unwrap();
    built.extend(keys);
    assert_eq!(bits_and_blooms::write(&built), golden);
    assert_eq!(bits_and_blooms::write_json(&built), json.trim_end());
}

#[test]
fn dcso_files_are_read_asked_and_written_with_their_data() {
    let golden = bytes("go-dcso.bin");
    let file = dcso::read::<str>(&golden).unwrap();
    assert_eq!((file.rate, file.inserted, &file.data[..]), (0.02, 997, &b"metadata"[..]));
    assert_eq!(file.filter.shape().items(), 1_000);
    answers_as("go-dcso", &keys(), &absent(), |key| file.filter.contains(key));
    assert_eq!(dcso::write(&file), golden);
    let mut built = dcso::new::<str>(1_000, 0.02).unwrap();
    for key in keys() {
        built.insert(&key);
    }
    built.data = b"metadata".to_vec();
    assert_eq!(dcso::write(&built), golden);
}

#[test]
fn dcso_files_may_be_compressed() {
    use std::io::Write;
    let golden = bytes("go-dcso.bin");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(&golden).unwrap();
    let packed = packed.finish().unwrap();
    assert_eq!(dcso::write(&dcso::read::<str>(&packed).unwrap()), golden);
    assert!(dcso::read::<str>(&packed[..packed.len() - 9]).is_err());
}

#[test]
fn datasketches_filters_are_read_asked_and_written() {
    let golden = bytes("datasketches-java-string.bin");
    let sketch = datasketches::read::<str>(&golden, 0).unwrap();
    answers_as("datasketches-java-string", &keys(), &absent(), |key| sketch.filter.contains(key));
    assert!(!sketch.counted && sketch.filter.hasher().seed() == 9_001);
    assert_eq!(datasketches::write(&sketch), golden);
    let mut built = datasketches::new::<str>(1_000, 0.02, 9_001).unwrap();
    built.filter.extend(keys());
    assert_eq!(datasketches::write(&built), golden);
}

#[test]
fn datasketches_filters_of_numbers_may_be_counted_or_empty() {
    let golden = bytes("datasketches-java-long.bin");
    let sketch = datasketches::read::<i64>(&golden, 0).unwrap();
    let name = "datasketches-java-long";
    answers_as(name, &longs(), &absent_longs(), |key| sketch.filter.contains(key));
    let mut built = datasketches::with::<i64>(8_192, 6, 9_001).unwrap();
    assert_eq!(datasketches::write(&built), bytes("datasketches-java-empty.bin"));
    built.filter.extend(longs());
    assert_eq!(datasketches::write(&built), golden);
    built.counted = true;
    let counted = bytes("datasketches-java-counted.bin");
    assert_eq!(datasketches::write(&built), counted);
    assert!(datasketches::read::<i64>(&counted, 0).unwrap().counted);
}

#[test]
fn datasketches_filters_may_be_empty_or_counted() {
    let mut sketch = datasketches::with::<i64>(1_000, 5, 7).unwrap();
    let empty = datasketches::write(&sketch);
    assert_eq!(empty.len(), 24);
    assert_eq!(datasketches::read::<i64>(&empty, 1_024).unwrap().filter, sketch.filter);
    assert!(datasketches::read::<i64>(&empty, 1_023).is_err());
    sketch.filter.insert(&7);
    sketch.counted = true;
    let mut counted = datasketches::write(&sketch);
    assert_eq!(counted[24], sketch.filter.count_ones() as u8);
    assert!(datasketches::read::<i64>(&counted, 0).unwrap().counted);
    counted[24] += 1;
    let error = Invalid::Field { name: "numBitsSet", got: counted[24].into() };
    assert_eq!(datasketches::read::<i64>(&counted, 0).unwrap_err(), error);
}

#[test]
fn hadoop_filters_are_read_asked_and_written() {
    let golden = bytes("hadoop-bloom-jenkins.bin");
    let filter = hadoop::read::<str>(&golden).unwrap();
    answers_as("hadoop-bloom-jenkins", &keys(), &absent(), |key| filter.contains(key));
    assert_eq!(hadoop::write(&filter), golden);
    let mut built = hadoop::with::<str>(8_192, 6, hadoop::HashType::Jenkins).unwrap();
    built.extend(keys());
    assert_eq!(hadoop::write(&built), golden);
    // The oldest files begin with the number of hashes.
    let old = [&golden[4..8], &golden[9..]].concat();
    let filter = hadoop::read::<str>(&old).unwrap();
    answers_as("hadoop-bloom-jenkins", &keys(), &absent(), |key| filter.contains(key));
    assert_eq!(hadoop::write(&filter), old);
}

#[test]
fn hudi_filters_are_read_asked_and_written() {
    let golden = text("hudi-simple.base64");
    let filter = hudi::read(&golden).unwrap();
    assert_eq!(filter.hasher().kind(), hadoop::HashType::Murmur);
    answers_as("hudi-simple", &keys(), &absent(), |key| filter.contains(key));
    assert_eq!(hudi::write(&filter), golden.trim_end());
    let (bits, probes) = (filter.shape().bits() as u32, filter.shape().probes());
    let mut built = hadoop::with::<str>(bits, probes, hadoop::HashType::Murmur).unwrap();
    built.extend(keys());
    assert_eq!(hudi::write(&built), golden.trim_end());
}

#[test]
fn dynamic_filters_grow_by_rows_and_come_back() {
    let mut filter = hadoop::Dynamic::<str>::with(2_000, 5, hadoop::HashType::Murmur, 300).unwrap();
    for key in keys() {
        filter.insert(&key).unwrap();
    }
    assert_eq!(filter.rows().len(), 4);
    assert!(keys().iter().all(|key| filter.contains(key)));
    assert!(absent().iter().filter(|key| filter.contains(key)).count() < 600);
    let text = hudi::write_dynamic(&filter);
    let read = hudi::read_dynamic(&text).unwrap();
    assert!(keys().iter().all(|key| read.contains(key)));
    assert_eq!(hudi::write_dynamic(&read), text);
}

#[test]
fn cassandra_filters_are_read_asked_and_written() {
    use cassandra::Format::{New, Old};
    let golden = bytes("cassandra-newformat.bin");
    let filter = cassandra::read::<str>(&golden, New).unwrap();
    answers_as("cassandra-newformat", &keys(), &absent(), |key| filter.contains(key));
    assert_eq!(cassandra::write(&filter, New), golden);
    let (bits, probes) = (filter.shape().bits(), filter.shape().probes());
    let mut built = cassandra::with::<str>(bits, probes).unwrap();
    built.extend(keys());
    assert_eq!(cassandra::write(&built, New), golden);
    let old = cassandra::write(&filter, Old);
    assert!(old != golden && cassandra::read::<str>(&old, Old).unwrap() == filter);
}

#[test]
fn pybloomfilter_files_are_read_asked_and_written() {
    let golden = bytes("pybloomfiltermmap3.bin");
    let file = pybloomfilter::read::<str>(&golden).unwrap();
    assert_eq!((file.filter.shape().items(), file.rate), (1_000, 0.02));
    assert_eq!(file.filter.hasher().seeds(), [11, 22, 33, 44, 55, 66]);
    answers_as("pybloomfiltermmap3", &keys(), &absent(), |key| file.filter.contains(key));
    assert_eq!(pybloomfilter::write(&file), golden);
    let seeds = [11, 22, 33, 44, 55, 66];
    let mut built = pybloomfilter::with::<str>(1_000, 0.02, 8_152, &seeds).unwrap();
    built.filter.extend(keys());
    assert_eq!(pybloomfilter::write(&built), golden);
}

#[test]
fn pybloomfilter_files_of_numbers_go_by_the_hash_of_python() {
    let golden = bytes("pybloomfiltermmap3-int.bin");
    let file = pybloomfilter::read::<i64>(&golden).unwrap();
    let name = "pybloomfiltermmap3-int";
    answers_as(name, &longs(), &absent_longs(), |key| file.filter.contains(key));
    let seeds = [11, 22, 33, 44, 55, 66];
    let mut built = pybloomfilter::with::<i64>(1_000, 0.02, 8_152, &seeds).unwrap();
    built.filter.extend(longs());
    assert_eq!(pybloomfilter::write(&built), golden);
}

#[test]
fn rbloom_filters_are_read_asked_and_written() {
    let golden = bytes("rbloom-sha256.bin");
    let filter = rbloom::read::<str, _>(&golden, rbloom::Sha256).unwrap();
    answers_as("rbloom-sha256", &keys(), &absent(), |key| filter.contains(key));
    assert_eq!(rbloom::write(&filter), golden);
    let mut built = rbloom::new::<str, _>(1_000, 0.02, rbloom::Sha256).unwrap();
    built.extend(keys());
    assert_eq!(rbloom::write(&built), golden);
}

#[test]
fn filters_in_redis_are_read_asked_and_written() {
    let golden = bytes("gozero-bits10007.bin");
    let filter = gozero::read::<str>(&golden, 10_007).unwrap();
    answers_as("gozero-bits10007", &keys(), &absent(), |key| filter.contains(key));
    assert_eq!(gozero::write(&filter), golden);

    let golden = bytes("redisson-string.bin");
    let filter = redisson::read::<str>(&golden, 8_142, 6).unwrap();
    assert_eq!(redisson::plan(1_000, 0.02), Ok((8_142, 6)));
    answers_as("redisson-string", &keys(), &absent(), |key| filter.contains(key));
    assert_eq!(redisson::write(&filter), golden);
    assert!(redisson::read::<str>(&golden, 8_100, 6).is_err());
}
