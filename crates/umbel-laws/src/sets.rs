//! Laws about insertions, removals and unions.

use crate::rate::sigmas;
use crate::{Pattern, Removes, Subject, Unites};

/// An inserted key is found: small filters are checked after every insertion, large ones at the end. `insert`
/// returns `true` only for a key that was not found before. Not vacuous: the false positive rate is at most the
/// promised one, or the one that this filter reports, within seven sigma, and below 1.
pub fn no_false_negatives<S: Subject>(items: u64, rate: f64) {
    for pattern in Pattern::ALL {
        let mut filter = S::make(items, rate, items);
        for index in 0..items {
            let key = pattern.key(index);
            let found = filter.contains(key);
            let fresh = filter.insert(key);
            assert_eq!(fresh, !found, "{pattern:?}: insertion {index} of {items}");
            assert!(filter.contains(key), "{pattern:?}: key {index} of {items} lost at once");
            if items <= 100 {
                all_found(&filter, pattern, 0..index + 1);
            }
        }
        all_found(&filter, pattern, 0..items);
        let absent = 2_000;
        let found = (items..items + absent).filter(|&i| filter.contains(pattern.key(i))).count();
        // Some filters report the rate of all filters with this number of keys, and this one may be fuller by
        // chance.
        let told = filter.rate_now().max(rate) * S::DEPENDENCE;
        let (found, mean) = (found as u64, told * absent as f64);
        assert!(
            found < absent && (found as f64 <= mean || sigmas(found, absent, mean) <= 7.0),
            "{pattern:?}: {found} absent keys found of {absent}, and {mean} should be: {items}, {rate}"
        );
    }
}

/// Removing a key undoes one insertion: after a set of keys was inserted and removed, the filter equals one
/// that never had them, and gives the same answer for every key. Removing a key that is certainly absent is
/// refused and changes nothing. A key that was inserted twice is present until it is removed twice.
pub fn remove_undoes_insert<S: Removes>(items: u64, rate: f64) {
    let strangers = items..items + 1_000;
    for pattern in Pattern::ALL {
        let make = || S::make(items, rate, 7);
        let (mut filter, mut never) = (make(), make());
        let stays = |index: &u64| index % 2 == 1;
        for index in 0..items {
            filter.insert(pattern.key(index));
            if stays(&index) {
                never.insert(pattern.key(index));
            }
        }
        for index in (0..items).filter(|index| !stays(index)) {
            assert!(filter.remove(pattern.key(index)), "{pattern:?}: key {index} was there");
            all_found(&filter, pattern, index + 1..items.min(index + 50));
        }
        is_as_if(&filter, &never, pattern, 0..strangers.end);
        all_found(&filter, pattern, (0..items).filter(stays));
        let mut refused = 0;
        for index in strangers.clone() {
            let key = pattern.key(index);
            if !filter.contains(key) {
                assert!(!filter.remove(key), "{pattern:?}: key {index} was never there");
                refused += 1;
            }
        }
        assert!(refused > 0, "{pattern:?}: every stranger is found");
        is_as_if(&filter, &never, pattern, 0..strangers.end);
        let twice = pattern.key(0);
        filter.insert(twice);
        filter.insert(twice);
        assert!(filter.remove(twice), "{pattern:?}: it was there twice");
        all_found(&filter, pattern, 0..1);
        assert!(filter.remove(twice), "{pattern:?}: it was there once more");
        is_as_if(&filter, &never, pattern, 0..strangers.end);
        for index in (0..items).filter(stays) {
            assert!(filter.remove(pattern.key(index)), "{pattern:?}: key {index} was there");
        }
        is_as_if(&filter, &make(), pattern, 0..strangers.end);
    }
}

/// Checks that both give the same answers.
fn is_as_if<S: Removes>(filter: &S, other: &S, pattern: Pattern, indices: std::ops::Range<u64>) {
    for index in indices {
        let key = pattern.key(index);
        let (got, expected) = (filter.contains(key), other.contains(key));
        assert_eq!(
            got, expected,
            "{pattern:?}: key {index}, not as if others had never been there"
        );
    }
    assert!(filter.holds_as_much(other), "{pattern:?}: something was left behind");
}

/// A union finds what either side found, and equals the filter of all keys inserted one by one. A union with
/// itself or with an empty filter changes nothing. The order does not matter.
pub fn union_contains_both<S: Unites>(items: u64, rate: f64) {
    for pattern in Pattern::ALL {
        let (mut left, mut right, mut both) =
            (S::make(items, rate, 3), S::make(items, rate, 3), S::make(items, rate, 3));
        for index in 0..items {
            let key = pattern.key(index);
            both.insert(key);
            if index % 3 != 0 {
                left.insert(key);
            }
            if index % 3 != 1 {
                right.insert(key);
            }
        }
        let mut union = S::make(items, rate, 3);
        for side in [&left, &left, &right, &S::make(items, rate, 3)] {
            union.unite(side).expect("filters of one shape and seed fit");
        }
        all_found(&union, pattern, 0..items);
        assert!(union.same(&both), "{pattern:?}: a union of parts is not the whole");
        right.unite(&left).expect("filters of one shape and seed fit");
        assert!(right.same(&union), "{pattern:?}: the order of a union matters");
    }
}

/// Filters with another capacity, rate or seed are refused, and a refusal changes nothing.
pub fn refuses_incompatible<S: Unites>(items: u64, rate: f64) {
    let make = |capacity, rate, seed| {
        let mut filter = S::make(capacity, rate, seed);
        for key in 0..items / 2 {
            filter.insert(key);
        }
        filter
    };
    let untouched = make(items, rate, 1);
    for (what, other) in [
        ("capacity", make(items * 2 + 100, rate, 1)),
        ("rate", make(items, rate / 16.0, 1)),
        ("seed", make(items, rate, 2)),
    ] {
        let mut filter = make(items, rate, 1);
        let error = filter.unite(&other).expect_err(what);
        assert!(!error.is_empty(), "the error of another {what} says something");
        assert!(filter.same(&untouched), "a refused {what} changed the filter");
        assert!(!filter.same(&other), "filters of another {what} are the same");
    }
}

fn all_found<S: Subject>(filter: &S, pattern: Pattern, indices: impl Iterator<Item = u64>) {
    for index in indices {
        assert!(filter.contains(pattern.key(index)), "{pattern:?}: key {index} is lost");
    }
}
