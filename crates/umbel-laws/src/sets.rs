//! Laws about keys that go in, come out and meet others.

use crate::{Pattern, Removes, Subject, Unites};

/// What was inserted is found: after every single insertion for small filters, at the end for large
/// ones; and `insert` says `true` only for what was not found before. Not vacuous: nearly all
/// absent keys are still not found.
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
        let most = 2.0 * rate * absent as f64 + 10.0 * (rate * absent as f64).sqrt() + 5.0;
        assert!(rate > 0.4 || (found as f64) < most, "{pattern:?}: {found} absent keys found");
    }
}

/// Removing takes back one insertion: a filter that has taken in and given back a set of keys finds
/// the other keys as before, and removing what is certainly not there is refused.
pub fn remove_undoes_insert<S: Removes>(items: u64, rate: f64) {
    for pattern in Pattern::ALL {
        let mut filter = S::make(items, rate, 7);
        let half = items / 2;
        for index in 0..items {
            filter.insert(pattern.key(index));
        }
        for index in half..items {
            assert!(filter.remove(pattern.key(index)), "{pattern:?}: key {index} was there");
            all_found(&filter, pattern, index + 1..items.min(index + 50));
        }
        all_found(&filter, pattern, 0..half);
        let gone = (half..items).filter(|&index| !filter.contains(pattern.key(index))).count();
        let least = (items - half) as f64 * (1.0 - 2.0 * rate) - 5.0 * (items as f64).sqrt();
        assert!(gone as f64 >= least, "{pattern:?}: only {gone} of {} are gone", items - half);
        for index in items..items + 100 {
            let key = pattern.key(index);
            if !filter.contains(key) {
                assert!(!filter.remove(key), "{pattern:?}: key {index} was never there");
            }
        }
        all_found(&filter, pattern, 0..half);
    }
}

/// A union finds what either side found and is the filter of all keys inserted one by one; united
/// with itself or with an empty one, a filter stays as it is; the order does not matter.
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

/// Filters of another capacity, another rate or another seed are refused, and the refusal changes
/// nothing.
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

fn all_found<S: Subject>(filter: &S, pattern: Pattern, indices: std::ops::Range<u64>) {
    for index in indices {
        assert!(filter.contains(pattern.key(index)), "{pattern:?}: key {index} is lost");
    }
}
