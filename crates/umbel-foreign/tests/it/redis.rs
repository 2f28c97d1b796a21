//! RedisBloom: chunks of `BF.SCANDUMP`, payloads of `DUMP` and whole files, of the real module.

use crate::samples::{absent, bytes, keys, text};
use serde_json::Value;
use umbel_foreign::rdb::{self, Value as Filter};
use umbel_foreign::redisbloom::Chain;

fn hex(text: &Value) -> Vec<u8> {
    let digits = text.as_str().unwrap().as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// Every Bloom filter of the samples of these versions: its key, and its description in the JSON.
fn each(mut check: impl FnMut(&str, &str, &Value)) {
    for version in ["2.6.28", "8.8.0"] {
        let json = text(&format!("redisbloom/redisbloom-{version}.json"));
        let json: Value = serde_json::from_str(&json).unwrap();
        let all = json.as_object().unwrap().iter().filter(|(key, _)| key.starts_with("bf:"));
        let mut count = 0;
        for (key, told) in all {
            check(version, key, told);
            count += 1;
        }
        assert_eq!(count, 6);
    }
}

/// Checks that the filter answers as the real module did.
fn answers_as(key: &str, told: &Value, contains: impl Fn(&[u8]) -> bool) {
    for (name, keys) in [("present", keys()), ("absent", absent())] {
        let answers = told[name].as_str().unwrap();
        assert_eq!(answers.len(), keys.len());
        for (asked, answer) in keys.iter().zip(answers.bytes()) {
            assert_eq!(contains(asked.as_bytes()), answer == b'1', "{key}: {asked}");
        }
    }
}

#[test]
fn chunks_are_read_asked_and_written() {
    each(|version, key, told| {
        let chunks: Vec<(u64, Vec<u8>)> = told["chunks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|chunk| (chunk[0].as_u64().unwrap(), hex(&chunk[1])))
            .collect();
        let chunks: Vec<_> = chunks.into_iter().filter(|(iterator, _)| *iterator != 0).collect();
        let chain = Chain::<[u8]>::read(chunks.iter().map(|(_, chunk)| &chunk[..])).unwrap();
        answers_as(key, told, |asked| chain.contains(asked));
        assert_eq!(chain.write(), chunks, "{version} {key}");
    });
}

#[test]
fn dumps_are_read_asked_and_written() {
    each(|version, key, told| {
        let dump = hex(&told["dump"]);
        let filter = rdb::read_dump(&dump).unwrap();
        answers_as(key, told, |asked| filter.contains(asked));
        let [low, high] = [dump[dump.len() - 10], dump[dump.len() - 9]];
        let written = rdb::write_dump(&filter, u16::from_le_bytes([low, high]));
        assert_eq!(written, dump, "{version} {key}");
    });
}

#[test]
fn filters_of_a_file_are_found_among_everything_else() {
    for version in ["2.6.28", "8.8.0"] {
        let entries = rdb::read(&bytes(&format!("redisbloom/redisbloom-{version}.rdb"))).unwrap();
        assert_eq!(entries.len(), 6, "{version}");
        each(|other, key, told| {
            if other == version {
                let entry = entries.iter().find(|entry| entry.key == key.as_bytes()).unwrap();
                assert!(matches!(entry.value, Filter::RedisBloom(_)) && entry.database == 0);
                answers_as(key, told, |asked| entry.value.contains(asked));
            }
        });
    }
    let beside = rdb::read(&bytes("redisbloom/redisbloom-2.6.28-sketches.rdb")).unwrap();
    assert_eq!(beside.len(), 1);
    assert!(beside[0].value.contains(b"key-0") && !beside[0].value.contains(b"key-1"));
}

#[test]
fn a_flipped_bit_is_noticed() {
    let mut file = bytes("redisbloom/redisbloom-2.6.28-sketches.rdb");
    let at = file.len() - 20;
    file[at] ^= 4;
    assert!(rdb::read(&file).is_err());
}

#[test]
fn a_chain_takes_keys() {
    each(|_, key, told| {
        let Filter::RedisBloom(mut chain) = rdb::read_dump(&hex(&told["dump"])).unwrap() else {
            panic!("{key}");
        };
        let size = chain.size();
        let fresh = (0..100).filter(|n: &u32| chain.insert(format!("new-{n}").as_bytes())).count();
        assert_eq!(chain.size(), size + fresh as u64);
        assert!((0..100).all(|n: u32| chain.contains(format!("new-{n}").as_bytes())));
        let written: Vec<_> = chain.write();
        let again = Chain::<[u8]>::read(written.iter().map(|(_, chunk)| &chunk[..])).unwrap();
        assert_eq!(again.write(), written);
    });
}
