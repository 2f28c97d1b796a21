//! The samples of `tests/golden`, described in its README.

use std::path::PathBuf;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// The bytes of a sample.
pub(crate) fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The text of a sample.
pub(crate) fn text(name: &str) -> String {
    String::from_utf8(bytes(name)).unwrap()
}

/// The keys that are present: key-0 to key-999.
pub(crate) fn keys() -> Vec<String> {
    text("keys-1000.txt").lines().map(String::from).collect()
}

/// The absent keys that were queried.
pub(crate) fn absent() -> Vec<String> {
    text("absent-2000.txt").lines().map(String::from).collect()
}

/// The numbers that are present.
pub(crate) fn longs() -> Vec<i64> {
    (0..1_000).map(|i| if i % 2 == 0 { i } else { -i }).collect()
}

/// The numbers that are absent.
pub(crate) fn absent_longs() -> Vec<i64> {
    (0..2_000).map(|i| if i % 2 == 0 { 1_000_000 + i } else { -(1_000_000 + i) }).collect()
}

/// The answers of the real program for the absent keys.
pub(crate) fn answers(name: &str) -> Vec<bool> {
    let answers = text(&format!("{name}.answers"));
    let answers: Vec<bool> = answers.trim().bytes().map(|answer| answer == b'1').collect();
    assert_eq!(answers.len(), 2_000);
    answers
}

/// Checks that all keys are present, and that the false positives are those of the real program.
pub(crate) fn answers_as<K>(name: &str, keys: &[K], absent: &[K], contains: impl Fn(&K) -> bool) {
    for (number, key) in keys.iter().enumerate() {
        assert!(contains(key), "{name}: key {number} is missing");
    }
    for (number, (key, answer)) in absent.iter().zip(answers(name)).enumerate() {
        assert_eq!(contains(key), answer, "{name}: absent key {number}");
    }
}
