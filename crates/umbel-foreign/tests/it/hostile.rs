//! Damaged bytes: truncated, flipped, or random. Every reader returns a filter or an error, and a filter that
//! it accepts can be queried and written without a panic.

use crate::cases;
use crate::recognised::all;
use crate::samples::bytes;
use proptest::prelude::*;

#[path = "readers.rs"]
mod readers;

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn cut_off_and_flipped_samples_are_refused_or_work(
        sample in 0..64_usize,
        keep in 0.0..=1.0_f64,
        flips in prop::collection::vec((0.0..1.0_f64, 0..8_u32), 0..4),
        early in any::<bool>(),
    ) {
        let samples = all();
        let (name, _) = samples[sample % samples.len()];
        let mut bytes = bytes(name);
        bytes.truncate((bytes.len() as f64 * keep) as usize);
        // Most checks concern the beginning or the end.
        let reach = if early { bytes.len().min(80) } else { bytes.len() };
        for (place, bit) in flips {
            if reach > 0 {
                bytes[(reach as f64 * place) as usize] ^= 1 << bit;
            }
        }
        readers::every(&bytes);
    }

    #[test]
    fn any_bytes_are_refused_or_work(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        readers::every(&bytes);
    }

    #[test]
    fn any_fields_with_as_many_bytes_as_they_announce_work(
        head in prop::collection::vec(any::<u8>(), 8),
        words in 1..40_u8,
        probes in 1..70_u8,
        fill in any::<u8>(),
    ) {
        // The headers of the simple formats, with correct lengths.
        let body = vec![fill; usize::from(words) * 8];
        readers::every(&[&[1, probes, 0, 0, 0, words], &body[..]].concat());
        readers::every(&[&[0, 0, 0, probes, 0, 0, 0, words], &body[..]].concat());
        readers::every(&[&[0, 0, 0, 1, 0, 0, 0, probes, 0, 0, 0, words], &body[..]].concat());
        let seeded = [&[0, 0, 0, 2, 0, 0, 0, probes], &head[..4], &[0, 0, 0, words], &body];
        readers::every(&seeded.concat());
        let sketch = [&[4, 1, 21, 0, probes, 0, 0, 0], &head[..], &[words, 0, 0, 0, 0, 0, 0, 0]];
        readers::every(&[&sketch.concat()[..], &[255; 8], &body].concat());
        readers::every(&[&head[..], &[words, 0, 0, 0], &vec![fill; usize::from(words) * 3]].concat());
        readers::every(&[&vec![fill; usize::from(words) * 64][..], &[255, 0, probes % 32, 0, 0]].concat());
        readers::every(&[&body[..], &body, &[254, probes, words, 0, 0]].concat());
    }
}

proptest! {
    #![proptest_config(cases(60))]

    /// Filters of any size and number of probes, built here.
    #[test]
    fn what_is_inserted_is_found_after_writing_and_reading(
        bits in 1..5_000_u64,
        probes in 1..40_u32,
        seed in any::<i32>(),
        keys in prop::collection::vec("[a-zß-ö]{0,40}", 0..60),
    ) {
        use umbel_foreign::*;
        macro_rules! round_trip {
            ($filter:expr, $write:expr, $read:expr) => {{
                let mut filter = $filter;
                filter.extend(&keys);
                let bytes = $write(&filter);
                let read = $read(&bytes);
                prop_assert!(keys.iter().all(|key| read.contains(key.as_str())));
                prop_assert!(read == filter && $write(&read) == bytes);
            }};
        }
        round_trip!(
            spark::with::<str>(spark::Version::V2, 100, bits, seed).unwrap(),
            spark::write,
            |bytes: &Vec<u8>| spark::read::<str>(bytes).unwrap()
        );
        round_trip!(
            bits_and_blooms::with::<str>(bits, probes).unwrap(),
            bits_and_blooms::write,
            |bytes: &Vec<u8>| bits_and_blooms::read::<str>(bytes).unwrap()
        );
        for kind in [hadoop::HashType::Murmur, hadoop::HashType::Jenkins] {
            round_trip!(
                hadoop::with::<str>(bits as u32, probes, kind).unwrap(),
                hadoop::write,
                |bytes: &Vec<u8>| hadoop::read::<str>(bytes).unwrap()
            );
        }
        for format in [cassandra::Format::Old, cassandra::Format::New] {
            round_trip!(
                cassandra::with::<str>(bits, probes).unwrap(),
                |filter| cassandra::write(filter, format),
                |bytes: &Vec<u8>| cassandra::read::<str>(bytes, format).unwrap()
            );
        }
        round_trip!(
            datasketches::with::<str>(bits, probes, seed as u64).unwrap().filter,
            |filter: &datasketches::BloomFilter<str>| bits_of(filter.words()),
            |bytes: &Vec<u8>| {
                let mut read = datasketches::with::<str>(bits, probes, seed as u64).unwrap().filter;
                read.union_with_words(0, &words_of(bytes));
                read
            }
        );
        round_trip!(
            rocksdb::with::<str>(bits, probes.min(30)).unwrap(),
            |filter: &rocksdb::BloomFilter<str>| bits_of(filter.words()),
            |bytes: &Vec<u8>| {
                let mut read = rocksdb::with::<str>(bits, probes.min(30)).unwrap();
                read.union_with_words(0, &words_of(bytes));
                read
            }
        );
        round_trip!(
            guava::with::<str, _>(bits, 0.01, guava::UnencodedChars, guava::Strategy::Mitz32).unwrap(),
            guava::write,
            |bytes: &Vec<u8>| guava::read_with::<str, _>(bytes, guava::UnencodedChars).unwrap()
        );
    }
}

fn bits_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn words_of(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}
