//! Filters through serde.

use umbel::{ArrayBloomFilter, BloomFilter, words_for};

#[test]
fn a_filter_comes_back_through_serde() {
    let mut filter = BloomFilter::<str>::new(100, 0.01);
    filter.extend(["one", "two", "three"]);
    let json = serde_json::to_string(&filter).unwrap();
    let again: BloomFilter<str> = serde_json::from_str(&json).unwrap();
    assert!(again == filter && again.contains("two"));
    const WORDS: usize = words_for(100, 0.01);
    let array: ArrayBloomFilter<str, WORDS> = serde_json::from_str(&json).unwrap();
    assert_eq!(array.words(), filter.words());
}

#[test]
fn what_is_not_a_filter_is_refused_by_serde() {
    let json = serde_json::to_string(&BloomFilter::<str>::new(100, 0.01)).unwrap();
    for wrong in ["null", "[]", "[1, 2, 3]", "{}", "\"text\"", &json.replacen("117", "118", 1)] {
        assert!(serde_json::from_str::<BloomFilter<str>>(wrong).is_err(), "{wrong:.30}");
    }
}
