//! The quotient filter against a multiset of prefixes, and hostile input.

use crate::forge::{self, INSERTIONS, KERNELS, LENGTH, WORDS, field};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashSet};
use umbel::Saved;
use umbel::hash::{Digest, Digester};
use umbel::quotient::{MAX_COPIES, Shape};
use umbel::{
    BatchFull, Contains, Edge, Full, Incompatible, Insert, InvalidBytes, InvalidShape, Keyed,
    Portable, QuotientFilter, Remove, Union, simd,
};
use umbel_laws::split_mix;

type Quotient = QuotientFilter<u64>;

fn made(shape: Shape) -> Quotient {
    QuotientFilter::with(shape, Portable::default()).unwrap()
}

fn of(items: u64, quotients: u64, remainder: u32) -> Quotient {
    made(Shape::with(items, quotients, remainder).unwrap())
}

/// The smallest digest with this quotient and remainder.
fn digest(shape: &Shape, quotient: u64, remainder: u64) -> Digest {
    let prefix = u128::from(quotient << shape.remainder_bits() | remainder);
    Digest::new((prefix << 64).div_ceil(u128::from(shape.prefixes())) as u64)
}

/// The information in a filter: how often each prefix is present.
#[derive(Clone, Debug, Default)]
struct Model {
    prefixes: BTreeMap<u64, u64>,
    len: u64,
}

impl Model {
    fn count(&self, prefix: u64) -> u64 {
        self.prefixes.get(&prefix).copied().unwrap_or_default()
    }

    fn insert(&mut self, prefix: u64) -> bool {
        let count = self.prefixes.entry(prefix).or_default();
        *count += 1;
        self.len += 1;
        *count == 1
    }

    fn remove(&mut self, prefix: u64) -> bool {
        let Some(count) = self.prefixes.get_mut(&prefix) else { return false };
        *count -= 1;
        self.len -= 1;
        if *count == 0 {
            self.prefixes.remove(&prefix);
        }
        true
    }

    /// Inserts into both, if there is room.
    fn insert_both(&mut self, filter: &mut Quotient, digest: Digest) {
        let prefix = filter.prefix(digest);
        let before = self.count(prefix);
        match filter.insert_digest(digest) {
            Ok(fresh) => assert_eq!(fresh, self.insert(prefix)),
            Err(Full) => assert!(before >= MAX_COPIES || self.len >= filter.capacity()),
        }
    }

    fn check(&self, filter: &Quotient) {
        filter.validate().unwrap();
        assert_eq!((filter.len(), filter.is_empty()), (self.len, self.len == 0));
        let copies = self.prefixes.iter().flat_map(|(p, n)| (0..*n).map(move |_| *p));
        assert!(filter.prefixes().eq(copies));
    }
}

/// An operation on a filter. Keys are a quotient and a remainder, both modulo their range in the shape.
#[derive(Clone, Debug)]
enum Step {
    Insert(u64, u64),
    InsertUnique(u64, u64),
    InsertBatch(Vec<u64>),
    Remove(u64, u64),
    RemoveBatch(Vec<u64>),
    Merge(Vec<u64>, usize),
    Grow,
    Shrink,
    Reload,
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    let keys = || vec(0_u64..60, 0..60);
    // Most keys have one of a few quotients, so that runs are long.
    let place = || prop_oneof![3 => 0_u64..4, 2 => 60_u64..70, 3 => any::<u64>()];
    let key = move || (place(), 0_u64..3);
    prop_oneof![
        24 => key().prop_map(|(q, r)| Step::Insert(q, r)),
        4 => key().prop_map(|(q, r)| Step::InsertUnique(q, r)),
        2 => keys().prop_map(Step::InsertBatch),
        20 => key().prop_map(|(q, r)| Step::Remove(q, r)),
        2 => keys().prop_map(Step::RemoveBatch),
        1 => (keys(), 1_usize..4).prop_map(|(keys, threads)| Step::Merge(keys, threads)),
        1 => Just(Step::Grow),
        1 => Just(Step::Shrink),
        1 => Just(Step::Reload),
        1 => Just(Step::Clear),
    ]
}

fn follow(mut filter: Quotient, history: Vec<Step>) {
    let mut model = Model::default();
    let (shape, empty) = (*filter.shape(), filter.clone());
    // Prefixes stay the same when the filter grows, so keys may be made by the first shape.
    let digest = |quotient: u64, remainder: u64| {
        digest(&shape, quotient % shape.quotients(), remainder % (1 << shape.remainder_bits()))
    };
    for step in history {
        match step {
            Step::Insert(q, r) => model.insert_both(&mut filter, digest(q, r)),
            Step::InsertUnique(q, r) => {
                let prefix = filter.prefix(digest(q, r));
                match filter.insert_unique_digest(digest(q, r)) {
                    Ok(true) => assert!(model.insert(prefix)),
                    Ok(false) => assert!(model.count(prefix) > 0),
                    Err(Full) => {
                        assert!(model.count(prefix) == 0 && model.len >= filter.capacity());
                    }
                }
            }
            Step::InsertBatch(keys) => {
                let mut fresh = vec![true; keys.len()];
                let done = filter.insert_batch(&keys, &mut fresh);
                let mut full = Ok(());
                for (inserted, (key, fresh)) in keys.iter().zip(fresh).enumerate() {
                    let prefix = filter.prefix(filter.digest(key));
                    let many = model.count(prefix) >= MAX_COPIES;
                    if model.len >= filter.capacity() || many {
                        full = full.and(Err(BatchFull { inserted }));
                    }
                    assert_eq!(fresh, full.is_ok() && model.insert(prefix));
                }
                assert_eq!(done, full);
            }
            Step::Remove(q, r) => {
                let prefix = filter.prefix(digest(q, r));
                assert_eq!(filter.remove_digest(digest(q, r)), model.remove(prefix));
            }
            Step::RemoveBatch(keys) => {
                let mut removed = vec![true; keys.len()];
                filter.remove_batch(&keys, &mut removed);
                for (key, removed) in keys.iter().zip(removed) {
                    assert_eq!(removed, model.remove(filter.prefix(filter.digest(key))));
                }
            }
            Step::Merge(keys, threads) => {
                let (mut other, mut others) = (empty.clone(), Model::default());
                keys.iter().for_each(|k| others.insert_both(&mut other, filter.digest(k)));
                match filter.merge_with_threads(&other, threads) {
                    Ok(()) => {
                        for (prefix, count) in others.prefixes {
                            (0..count).for_each(|_| _ = model.insert(prefix));
                        }
                    }
                    Err(error) => assert!(matches!(error, Incompatible::Room { .. })),
                }
            }
            Step::Grow => {
                let before = *filter.shape();
                if filter.grow().is_ok() {
                    assert_eq!(filter.shape().quotients(), before.quotients() * 2);
                } else {
                    assert_eq!((before.possible_doublings(), *filter.shape()), (0, before));
                }
            }
            Step::Shrink => filter.shrink_to_fit(),
            Step::Reload => {
                let reloaded = Quotient::from_bytes(&filter.to_bytes()).unwrap();
                assert!(reloaded == filter);
                filter = reloaded;
            }
            Step::Clear => {
                filter.clear();
                model = Model::default();
            }
        }
        model.check(&filter);
    }
    agree(&filter, &model);
}

/// All kinds of look-ups give the answers of the model.
fn agree(filter: &Quotient, model: &Model) {
    let keys: Vec<u64> = (0..100).collect();
    let mut found = vec![false; keys.len()];
    filter.contains_batch(&keys, &mut found);
    for (key, found) in keys.iter().zip(found) {
        let count = model.count(filter.prefix(filter.digest(key)));
        assert_eq!(
            (filter.estimated_count(key), filter.contains(key), found),
            (count, count > 0, count > 0)
        );
    }
    for prefix in 0..filter.shape().prefixes().min(2_000) {
        let bits = filter.shape().remainder_bits();
        let digest = digest(filter.shape(), prefix >> bits, prefix & ((1 << bits) - 1));
        assert_eq!(filter.prefix(digest), prefix);
        assert_eq!(filter.estimated_count_digest(digest), model.count(prefix));
        assert_eq!(filter.contains_digest(digest), model.count(prefix) > 0);
    }
}

proptest! {
    #![proptest_config(crate::cases(256))]

    #[test]
    fn any_history_is_that_of_the_model(
        quotients in 1_u64..700,
        remainder in 2_u32..=32,
        portable in any::<bool>(),
        history in vec(step(), 0..200),
    ) {
        let filter = on_path(portable, || of(1, quotients, remainder));
        follow(filter, history);
    }

    #[test]
    fn any_history_of_a_filter_that_grows_is_that_of_the_model(
        quotients in 1_u64..60,
        remainder in 7_u32..=32,
        history in vec(step(), 0..200),
    ) {
        follow(of(quotients * 16, quotients, remainder), history);
    }
}

/// A filter that counts bits on the portable path, or on the best one.
fn on_path(portable: bool, make: impl FnOnce() -> Quotient) -> Quotient {
    // Other tests of this binary force paths too, and the answers must not depend on that.
    simd::force(portable.then_some(simd::Path::Portable)).unwrap();
    let filter = make();
    simd::force(None).unwrap();
    filter
}

/// Every sequence of operations up to a depth, on keys that collide at block boundaries and at the end of the
/// table. The tables are empty, or full except for a few slots.
#[test]
fn every_short_history_is_that_of_the_model() {
    for (quotients, remainder) in [(64, 2), (65, 3), (100, 5), (128, 7), (300, 12), (1_024, 32)] {
        for filled in [0, quotients / 2, quotients * 9 / 10] {
            for portable in [false, true] {
                let mut filter = on_path(portable, || of(1, quotients, remainder));
                let mut model = Model::default();
                let shape = *filter.shape();
                for number in 0..filled {
                    let random = split_mix(number);
                    let remainder = random >> 32 & ((1 << remainder) - 1);
                    model.insert_both(&mut filter, digest(&shape, random % quotients, remainder));
                }
                let places = [0, 1, quotients.min(63), quotients - 1];
                let keys: Vec<Digest> = places
                    .into_iter()
                    .flat_map(|place| [digest(&shape, place, 1), digest(&shape, place, 2)])
                    .collect();
                descend(&filter, &model, &keys, 3);
            }
        }
    }
}

fn descend(filter: &Quotient, model: &Model, keys: &[Digest], depth: u32) {
    model.check(filter);
    if depth == 0 {
        return;
    }
    for key in keys {
        let (mut filter_then, mut model_then) = (filter.clone(), model.clone());
        model_then.insert_both(&mut filter_then, *key);
        descend(&filter_then, &model_then, keys, depth - 1);
        let (mut filter_then, mut model_then) = (filter.clone(), model.clone());
        let removed = filter_then.remove_digest(*key);
        assert_eq!(removed, model_then.remove(filter.prefix(*key)));
        if removed {
            descend(&filter_then, &model_then, keys, depth - 1);
        }
    }
}

/// A run that is longer than the largest offset that can be stored, and the blocks behind it. The run is
/// inserted and removed key by key, in several orders, at the start, in the middle and at the end.
#[test]
fn offsets_past_their_largest_number_are_counted() {
    for (quotients, at) in [(1_024, 0), (1_024, 63), (1_000, 500), (1_024, 600)] {
        for portable in [false, true] {
            let mut filter = on_path(portable, || of(1, quotients, 10));
            let shape = *filter.shape();
            let mut model = Model::default();
            let run: Vec<Digest> = (0..450).map(|r| digest(&shape, at, r)).collect();
            // Keys behind the run, and in it.
            let near: Vec<Digest> = (0..100).map(|i| digest(&shape, at + i * 5 % 257, 7)).collect();
            for (number, key) in run.iter().enumerate() {
                model.insert_both(&mut filter, *key);
                if number % 4 == 0 {
                    model.insert_both(&mut filter, near[number / 4 % near.len()]);
                }
                if number % 29 == 0 {
                    model.check(&filter);
                }
            }
            model.check(&filter);
            assert!(run.iter().chain(&near).all(|key| filter.contains_digest(*key)));
            let mut grown = filter.clone();
            grown.grow().unwrap();
            model.check(&grown);
            let order = |number: usize| number * 77 % run.len();
            for number in 0..run.len() {
                let key = run[order(number)];
                assert!(filter.remove_digest(key) && model.remove(filter.prefix(key)));
                if number % 13 == 0 {
                    model.check(&filter);
                }
                if number % 3 == 0 {
                    let key = near[number / 3 % near.len()];
                    assert_eq!(filter.remove_digest(key), model.remove(filter.prefix(key)));
                }
            }
            model.check(&filter);
        }
    }
}

/// No key is lost or partially inserted, and the load is the promised one.
#[test]
fn a_filter_fills_to_its_load_and_then_refuses_without_a_trace() {
    for seed in 0..1_000_u64 {
        let items = [1, 10, 100, 300, 1_000, 2_000][seed as usize % 6];
        let rate = [0.1, 0.01, 0.001][seed as usize % 3];
        let shape = Shape::for_rate(items, rate).unwrap();
        let mut filter = QuotientFilter::<u64>::with(shape, Portable::seeded(seed)).unwrap();
        let mut keys = 0_u64;
        while filter.insert(&keys).is_ok() {
            keys += 1;
        }
        assert_eq!((filter.len(), keys), (shape.capacity(), shape.capacity()));
        assert!(keys >= items && filter.load() <= 0.95);
        filter.validate().unwrap();
        let before = filter.clone();
        for key in keys..keys + 20 {
            assert_eq!(filter.insert(&key), Err(Full));
            let found = filter.contains(&key);
            assert_eq!(filter.insert_unique(&key).is_ok(), found);
        }
        assert!(filter == before);
        assert!((0..keys).all(|key| filter.contains(&key)), "seed {seed}");
        assert!((0..keys).all(|key| filter.remove(&key)), "seed {seed}");
        assert!(filter.is_empty());
        filter.validate().unwrap();
    }
}

/// Keys whose quotients are all at the end of the table are refused before the last slot.
#[test]
fn a_crowd_at_the_end_is_refused_and_loses_nothing() {
    let mut filter = of(1, 10_000, 20);
    let (shape, mut model) = (*filter.shape(), Model::default());
    let keys: Vec<Digest> = (0..2_000).map(|r| digest(&shape, 9_999 - r % 3, r)).collect();
    let refused = keys.iter().position(|key| {
        let prefix = filter.prefix(*key);
        let done = filter.insert_digest(*key).is_ok();
        if done {
            model.insert(prefix);
        }
        !done
    });
    assert!(refused.is_some_and(|at| (256..400).contains(&at)), "{refused:?}");
    model.check(&filter);
    assert!(keys[..refused.unwrap()].iter().all(|key| filter.contains_digest(*key)));
    // Half the number of quotients leaves less room behind the cluster.
    let mut shrunk = filter.clone();
    shrunk.shrink_to_fit();
    model.check(&shrunk);
    let mut other = of(1, 10_000, 20);
    (0..250).for_each(|r| _ = other.insert_digest(digest(&shape, 9_999, 1_000 + r)).unwrap());
    let before = filter.clone();
    match filter.merge_with(&other) {
        Ok(()) => assert_eq!(filter.len(), before.len() + 250),
        Err(error) => assert!(matches!(error, Incompatible::Room { .. }) && filter == before),
    }
    filter.validate().unwrap();
}

#[test]
fn copies_of_a_key_come_to_an_end_and_harm_nobody() {
    let mut filter = Quotient::new(200_000, 0.01);
    for key in 0..150_000_u64 {
        filter.insert(&key).unwrap();
    }
    let before = filter.estimated_count(&7);
    let mut inserted = 0;
    for _ in 0..100_000 {
        inserted += u64::from(filter.insert(&7).is_ok());
    }
    assert_eq!((filter.estimated_count(&7), inserted), (MAX_COPIES, MAX_COPIES - before));
    assert!((0..150_000_u64).all(|key| filter.contains(&key)));
    assert!((0..inserted).all(|_| filter.remove(&7)));
    assert_eq!(filter.estimated_count(&7), before);
    filter.validate().unwrap();
    // Copies do not make a filter grow.
    let mut growing = made(Shape::for_rate_growing(1_000, 0.01, 6).unwrap());
    let quotients = growing.shape().quotients();
    (0..200).for_each(|_| _ = growing.insert(&7));
    assert!(growing.shape().quotients() <= quotients * 8 && growing.len() == MAX_COPIES);
}

#[test]
fn growing_keeps_every_key_and_the_rate() {
    for rate in [0.1, 0.01, 0.001] {
        let items = 64_000_u64;
        let shape = Shape::for_rate_growing(items, rate, 6).unwrap();
        assert_eq!(shape.doublings(), 6);
        let mut filter = made(shape);
        let first = filter.bytes();
        for key in 0..items {
            filter.insert(&key).unwrap();
        }
        assert_eq!(filter.shape().doublings(), 0);
        assert!((0..items).all(|key| filter.contains(&key)) && filter.bytes() > 25 * first);
        let queries = 400_000;
        let found = (items..items + queries).filter(|key| filter.contains(key)).count() as f64;
        let expected = filter.expected_rate() * queries as f64;
        assert!((found - expected).abs() < 5.0 * expected.sqrt(), "{found} for {expected}");
        assert!(filter.expected_rate() <= rate);
        let planned = filter.shape().expected_rate(items);
        // Distinct prefixes of random keys: a variance far below the number itself.
        let sigma = (planned * filter.shape().prefixes() as f64).sqrt();
        let off = (filter.expected_rate() - planned) * filter.shape().prefixes() as f64;
        assert!(off.abs() < 5.0 * sigma);
        // A filter that was this large from the start is different.
        let mut direct = made(*filter.shape());
        for key in 0..items {
            direct.insert(&key).unwrap();
        }
        assert!(direct == filter);
        assert_eq!(direct.to_bytes(), filter.to_bytes());
        // Half of the keys are removed, and the filter shrinks and grows again.
        assert!((0..items / 2).all(|key| filter.remove(&key)));
        let large = filter.bytes();
        filter.shrink_to_fit();
        assert!(filter.bytes() < large * 3 / 5, "{} of {large}", filter.bytes());
        assert!((items / 2..items).all(|key| filter.contains(&key)));
        filter.validate().unwrap();
        for key in 0..items / 2 {
            filter.insert(&key).unwrap();
        }
        assert!(direct == filter);
    }
}

#[test]
fn merged_filters_hold_what_both_held() {
    let items = 30_000_u64;
    let shape = Shape::for_rate_growing(items * 2, 0.01, 2).unwrap();
    for threads in [1, 2, 3, 8, 100] {
        let (mut left, mut right, mut both) = (made(shape), made(shape), made(shape));
        for key in 0..items {
            left.insert(&key).unwrap();
            both.insert(&key).unwrap();
        }
        for key in items / 2..items * 3 / 4 {
            right.insert(&key).unwrap();
            both.insert(&key).unwrap();
        }
        assert_ne!(left.shape(), right.shape(), "one of them has grown more");
        let mut other_way = right.clone();
        other_way.merge_with_threads(&left, threads).unwrap();
        left.merge_with_threads(&right, threads).unwrap();
        left.validate().unwrap();
        assert!(left == both && other_way == both);
        let mut united = right.clone();
        united.union_with(&right).unwrap();
        assert_eq!((united.len(), united.estimated_count(&(items / 2))), (right.len() * 2, 2));
        assert!((0..items / 2).all(|key| left.remove(&key)));
        assert!((items / 2..items).all(|key| left.contains(&key)));
        left.shrink_to_fit();
        assert!((items / 2..items).all(|key| left.contains(&key)));
        assert!((items / 2..items * 3 / 4).all(|key| left.estimated_count(&key) >= 2));
        left.validate().unwrap();
    }
}

/// Full tables, split between threads inside runs.
#[test]
fn merging_full_filters_by_threads_equals_merging_by_one() {
    for (quotients, remainder) in [(512, 9), (1_536, 9), (4_096, 5), (10_000, 13), (10_240, 32)] {
        let (mut left, mut right) = (of(1, quotients, remainder), of(1, quotients, remainder));
        let half = left.capacity() / 2;
        for key in 0..half {
            left.insert(&key).unwrap();
            right.insert(&(half + key)).unwrap();
        }
        let mut one = left.clone();
        one.merge_with(&right).unwrap();
        assert_eq!((one.shape(), one.len()), (left.shape(), 2 * half));
        for threads in [2, 5, 20] {
            let mut many = left.clone();
            many.merge_with_threads(&right, threads).unwrap();
            many.validate().unwrap();
            assert!(many == one);
            assert_eq!(many.to_bytes(), one.to_bytes());
        }
    }
}

#[test]
fn half_of_a_million_keys_leave_and_no_other_is_lost() {
    let items = 1_000_000_u64;
    let mut filter = Quotient::new(items, 0.01);
    let mut fresh = vec![false; items as usize];
    let keys: Vec<u64> = (0..items).map(split_mix).collect();
    filter.insert_batch(&keys, &mut fresh).unwrap();
    let (gone, kept) = keys.split_at(keys.len() / 2);
    assert!(gone.iter().all(|key| filter.remove(key)));
    assert!(kept.iter().all(|key| filter.contains(key)));
    filter.validate().unwrap();
    filter.grow().unwrap();
    assert!(kept.iter().all(|key| filter.contains(key)));
    let mut other = Quotient::new(items, 0.01);
    other.insert_batch(gone, &mut fresh[..gone.len()]).unwrap();
    other.merge_with_threads(&filter, 2).unwrap();
    assert!(keys.iter().all(|key| other.contains(key)));
    assert!(kept.iter().all(|key| other.remove(key)) && gone.iter().all(|key| other.contains(key)));
    assert_eq!(other.len(), gone.len() as u64);
    other.validate().unwrap();
}

#[test]
fn batches_of_a_filter_larger_than_the_cache_do_as_single_calls() {
    for capacity in [1_500_000, 9_000_000] {
        let mut filter = Quotient::new(capacity, 0.01);
        let mut single = filter.clone();
        for len in [0, 1, 15, 31, 32, 33, 64, 1_000, 50_000] {
            let keys: Vec<u64> = (0..len).map(|i| split_mix(i % 40_000)).collect();
            let mut answers = vec![false; keys.len()];
            filter.insert_batch(&keys, &mut answers).unwrap();
            assert!(keys.iter().zip(&answers).all(|(key, fresh)| single.insert(key) == Ok(*fresh)));
            let asked: Vec<u64> = (0..len).map(|i| split_mix(i * 2)).collect();
            filter.contains_batch(&asked, &mut answers);
            assert!(asked.iter().zip(&answers).all(|(key, found)| single.contains(key) == *found));
            let digests: Vec<Digest> = asked.iter().map(|k| filter.hasher().digest(k)).collect();
            let mut by_digest = vec![false; digests.len()];
            filter.contains_digests(&digests, &mut by_digest);
            assert_eq!(by_digest, answers);
            filter.remove_batch(&asked, &mut answers);
            assert!(asked.iter().zip(&answers).all(|(key, gone)| single.remove(key) == *gone));
        }
        assert!(filter == single);
    }
}

#[test]
fn a_batch_stops_at_the_first_key_without_room() {
    let mut filter = Quotient::new(100, 0.01);
    let keys: Vec<u64> = (0..200).collect();
    let mut fresh = vec![true; keys.len()];
    let len = filter.capacity() as usize;
    assert_eq!(filter.insert_batch(&keys, &mut fresh), Err(BatchFull { inserted: len }));
    assert_eq!(filter.len() as usize, len);
    // One key was new for each present prefix.
    let prefixes: HashSet<u64> = filter.prefixes().collect();
    assert_eq!(fresh[..len].iter().filter(|fresh| **fresh).count(), prefixes.len());
    assert!(fresh[len..].iter().all(|fresh| !fresh));
    assert!(keys[..len].iter().all(|key| filter.contains(key)));
}

#[test]
fn filters_that_do_not_fit_are_refused_and_left_alone() {
    let mut filter = of(100, 107, 7);
    filter.insert(&1).unwrap();
    let before = filter.clone();
    let refused = |filter: &mut Quotient, other: Quotient| filter.merge_with(&other).unwrap_err();
    let error = refused(&mut filter, of(100, 108, 7));
    assert_eq!(error, Incompatible::Prefixes { expected: 107 << 7, got: 108 << 7 });
    assert!(error.to_string().contains("13,696"));
    assert!(matches!(refused(&mut filter, of(100, 107, 8)), Incompatible::Prefixes { .. }));
    let seeded = QuotientFilter::with(*filter.shape(), Portable::seeded(9)).unwrap();
    assert_eq!(refused(&mut filter, seeded), Incompatible::Hasher);
    assert!(filter == before);
    // Two full filters whose remainders have no bit to spare.
    let (mut left, mut right) = (of(1, 100, 2), of(1, 100, 2));
    for key in 0..90 {
        left.insert(&key).unwrap();
        right.insert(&key).unwrap();
    }
    let before = left.clone();
    assert_eq!(left.fits(&right), Ok(()));
    assert_eq!(left.union_with(&right), Err(Incompatible::Room { keys: 180, most: 95 }));
    assert!(left == before);
    assert_eq!(
        left.grow(),
        Err(InvalidShape::OutOfRange { what: "bits of a remainder", got: 1, min: 2, max: 32 })
    );
    assert!(left == before);
}

#[test]
fn hostile_parameters_are_refused() {
    for rate in [0.0, -0.0, 1.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = Quotient::try_new(10, rate).unwrap_err();
        assert!(matches!(error, InvalidShape::RateOutOfRange { .. }));
    }
    for capacity in [u64::MAX, 1 << 58, 1 << 46] {
        assert!(Quotient::try_new(capacity, 0.01).is_err());
    }
    assert!(matches!(Quotient::try_new(10, 1e-15), Err(InvalidShape::RateTooSmall { .. })));
    // A valid shape that exceeds the memory of the machine.
    let huge = Shape::with(1, 1 << 44, 8).unwrap();
    let error = QuotientFilter::<u64>::with(huge, Portable::default()).unwrap_err();
    assert_eq!(error, InvalidShape::OutOfMemory { bytes: huge.bytes() });
    // A filter planned for no keys is valid.
    let mut none = Quotient::new(0, 0.01);
    assert!(none.insert(&1).is_ok() && none.contains(&1) && none.remove(&1));
}

/// The traits say the same as the methods.
#[test]
fn traits_do_as_methods_do() {
    let mut filter = Quotient::new(100, 0.01);
    let digest = Edge::digest(&filter, &5);
    assert_eq!(Insert::insert_digest(&mut filter, digest), Ok(true));
    assert!(Contains::contains_digest(&filter, digest));
    assert!(Remove::remove_digest(&mut filter, digest) && !filter.contains(&5));
    assert!(!Remove::remove_digest(&mut filter, digest));
    let text = format!("{filter:?}");
    assert!(text.contains("QuotientFilter") && text.contains("remainder_bits: 7"), "{text}");
}

/// The number of different keys is estimated within five sigma.
#[test]
fn different_keys_are_told_from_copies() {
    let mut filter = of(1, 3_000, 2);
    for key in 0..1_400_u64 {
        filter.insert(&(key / 2)).unwrap();
    }
    // 700 keys and 12,000 prefixes: 700^2 / 24,000 pairs share one, by Poisson's law, and a prefix more or
    // less is 1.06 keys more or less.
    let sigma = (700.0_f64.powi(2) / 24_000.0).sqrt() * 1.06;
    let estimated = filter.estimated_different();
    assert!((estimated as f64 - 700.0).abs() <= 5.0 * sigma, "{estimated}");
}

/// For every changed bit of the words, the result is an error or a consistent filter with these bytes.
#[test]
fn any_words_are_a_valid_filter_or_an_error() {
    for (quotients, remainder, keys) in [(100, 2, 80), (130, 5, 0), (300, 7, 280), (500, 13, 200)] {
        let mut filter = of(1, quotients, remainder);
        (0..keys).for_each(|key| _ = filter.insert(&key).unwrap());
        let bytes = filter.to_bytes();
        let (mut refused, mut accepted) = (0, 0);
        for bit in WORDS * 8..(WORDS + forge::words_of(&bytes)) * 8 {
            let damaged = forge::with(&bytes, bit / 8, &[bytes[bit / 8] ^ 1 << (bit % 8)]);
            match Quotient::from_bytes(&damaged) {
                Err(error) => {
                    assert_eq!(error, InvalidBytes::Inconsistent);
                    refused += 1;
                }
                Ok(mut other) => {
                    other.validate().unwrap();
                    assert_eq!(other.to_bytes(), damaged);
                    assert!(other != filter, "other words are another filter");
                    other.insert(&1_000).unwrap();
                    assert!(other.remove(&1_000));
                    other.validate().unwrap();
                    accepted += 1;
                }
            }
        }
        assert!(refused > accepted, "most bits matter: {refused}, {accepted}");
    }
}

#[test]
fn headers_that_contradict_themselves_are_refused() {
    let filter = of(90, 100, 7);
    let bytes = filter.to_bytes();
    let with = |at: usize, number: u64| {
        Quotient::from_bytes(&forge::with(&bytes, at, &number.to_le_bytes())).unwrap_err()
    };
    for quotients in [0, 1, 1_000, 1 << 40, u64::MAX] {
        with(field(1), quotients);
    }
    for remainder in [0, 1, 6, 8, 33, 1 << 40] {
        with(field(2), remainder);
    }
    assert!(matches!(with(field(0), 1 << 40), InvalidBytes::Shape(_)));
    assert_eq!(with(LENGTH, 8), InvalidBytes::Inconsistent);
    assert_eq!(with(INSERTIONS, 1), InvalidBytes::Inconsistent);
    let kernels = Quotient::from_bytes(&forge::with(&bytes, KERNELS, &[1]));
    assert_eq!(kernels.unwrap_err(), InvalidBytes::Kernels { got: 1 });
}

#[test]
fn a_secret_is_not_saved_and_must_be_brought() {
    let secret = Keyed::new([1; 16]);
    let mut filter = QuotientFilter::<str, Keyed>::with_hasher(100, 0.01, secret);
    filter.insert("key").unwrap();
    let bytes = filter.to_bytes();
    let again = QuotientFilter::<str, Keyed>::from_bytes_with_hasher(&bytes, secret).unwrap();
    assert!(again.contains("key") && again == filter);
    let error = QuotientFilter::<str, Keyed>::from_bytes_with_hasher(&bytes, Keyed::new([3; 16]));
    assert_eq!(error.unwrap_err(), InvalidBytes::Hasher);
}
