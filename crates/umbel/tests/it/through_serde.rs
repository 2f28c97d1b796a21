//! Filters through serde.

use umbel::blocked::{self, ArrayBlockedBloomFilter, Lines};
use umbel::bloom::Bloom;
use umbel::hash::{Digest, Portable};
use umbel::kernels::Digits;
use umbel::layout::StoredLayout;
use umbel::storage::Heap;
use umbel::{ArrayBloomFilter, QuotientFilter, words_for};

/// A filter and its form in JSON, through which it came back.
fn there_and_back<L: StoredLayout<Digest = Digest>>() -> (Bloom<str, Portable, Heap, L>, String) {
    let mut filter = Bloom::<str, Portable, Heap, L>::new(100, 0.01);
    filter.extend(["one", "two", "three"]);
    let json = serde_json::to_string(&filter).unwrap();
    let again: Bloom<str, Portable, Heap, L> = serde_json::from_str(&json).unwrap();
    assert!(again == filter && again.contains("two"));
    (filter, json)
}

#[test]
fn a_filter_comes_back_through_serde() {
    let (filter, json) = there_and_back::<Digits>();
    const WORDS: usize = words_for(100, 0.01);
    let array: ArrayBloomFilter<str, WORDS> = serde_json::from_str(&json).unwrap();
    assert_eq!(array.words(), filter.words());
}

#[test]
fn a_blocked_filter_comes_back_through_serde() {
    let (filter, json) = there_and_back::<Lines>();
    const WORDS: usize = blocked::words_for(100, 0.01);
    let array: ArrayBlockedBloomFilter<str, WORDS> = serde_json::from_str(&json).unwrap();
    assert_eq!(array.words(), filter.words());
}

#[test]
fn what_is_not_a_filter_is_refused_by_serde() {
    fn refuse<L: StoredLayout<Digest = Digest>>(others: &str) {
        let (_, json) = there_and_back::<L>();
        let damaged = json.replacen("117", "118", 1);
        for wrong in ["null", "[]", "[1, 2, 3]", "{}", "\"text\"", &damaged, others] {
            let read = serde_json::from_str::<Bloom<str, Portable, Heap, L>>(wrong);
            assert!(read.is_err(), "{wrong:.30}");
        }
    }
    refuse::<Digits>(&there_and_back::<Lines>().1);
    refuse::<Lines>(&there_and_back::<Digits>().1);
}

#[test]
fn a_quotient_filter_comes_back_through_serde() {
    let mut filter = QuotientFilter::<str>::new(100, 0.01);
    ["one", "two", "two"].into_iter().for_each(|key| _ = filter.insert(key).unwrap());
    let json = serde_json::to_string(&filter).unwrap();
    let again: QuotientFilter<str> = serde_json::from_str(&json).unwrap();
    assert!(again == filter && again.count("two") == 2);
    let damaged = json.replacen("117", "118", 1);
    for wrong in ["null", "[]", "{}", &damaged, &there_and_back::<Digits>().1] {
        assert!(serde_json::from_str::<QuotientFilter<str>>(wrong).is_err(), "{wrong:.30}");
    }
}
