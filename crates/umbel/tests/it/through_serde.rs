//! Filters through serde.

use umbel::StableBloomFilter;
use umbel::blocked::{self, ArrayBlockedBloomFilter, Lines};
use umbel::bloom::Bloom;
use umbel::hash::{Digest, Portable};
use umbel::kernels::Digits;
use umbel::layout::StoredLayout;
use umbel::storage::Heap;
use umbel::{ArrayBloomFilter, QuotientFilter, WindowBloomFilter, words_for};
use umbel::{BlockedCountingBloomFilter, CountingBloomFilter, ScalableBloomFilter};

/// A filter, and its JSON form after a round trip.
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
fn a_window_filter_comes_back_through_serde_and_goes_on() {
    let mut filter = WindowBloomFilter::<u64>::new(100, 0.01);
    filter.extend(0..333_u64);
    let json = serde_json::to_string(&filter).unwrap();
    let mut again: WindowBloomFilter<u64> = serde_json::from_str(&json).unwrap();
    assert!(again == filter && again.insertions() == 333);
    again.extend(333..400_u64);
    filter.extend(333..400_u64);
    assert!(again == filter);
    let others = there_and_back::<Digits>().1;
    for wrong in ["null", "[]", "{}", &json.replacen("117", "118", 1), &others] {
        assert!(serde_json::from_str::<WindowBloomFilter<u64>>(wrong).is_err(), "{wrong:.30}");
    }
}

/// A filter of the words `one`, `two` and `three` that survives a round trip through JSON, and cannot be read
/// as another type.
macro_rules! comes_back {
    ($name:ident, $filter:ident) => {
        #[test]
        fn $name() {
            let mut filter = $filter::<str>::new(100, 0.01);
            filter.extend(["one", "two", "three"]);
            let json = serde_json::to_string(&filter).unwrap();
            let again: $filter<str> = serde_json::from_str(&json).unwrap();
            assert!(again == filter && again.contains("two") && !again.contains("four"));
            let (others, damaged) = (there_and_back::<Digits>().1, json.replacen("117", "118", 1));
            for wrong in ["null", "[]", "[1, 2, 3]", "{}", "\"text\"", &damaged, &others] {
                assert!(serde_json::from_str::<$filter<str>>(wrong).is_err(), "{wrong:.30}");
            }
        }
    };
}

comes_back!(a_counting_filter_comes_back_through_serde, CountingBloomFilter);
comes_back!(a_blocked_counting_filter_comes_back_through_serde, BlockedCountingBloomFilter);
comes_back!(a_scalable_filter_comes_back_through_serde, ScalableBloomFilter);
comes_back!(a_stable_filter_comes_back_through_serde, StableBloomFilter);

#[test]
fn a_quotient_filter_comes_back_through_serde() {
    let mut filter = QuotientFilter::<str>::new(100, 0.01);
    ["one", "two", "two"].into_iter().for_each(|key| _ = filter.insert(key).unwrap());
    let json = serde_json::to_string(&filter).unwrap();
    let again: QuotientFilter<str> = serde_json::from_str(&json).unwrap();
    assert!(again == filter && again.estimated_count("two") == 2);
    let damaged = json.replacen("117", "118", 1);
    for wrong in ["null", "[]", "{}", &damaged, &there_and_back::<Digits>().1] {
        assert!(serde_json::from_str::<QuotientFilter<str>>(wrong).is_err(), "{wrong:.30}");
    }
}
