//! The cuckoo filter against a multiset of places, and hostile input.

use crate::forge::{self, INSERTIONS, KERNELS, WORDS, field};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::HashMap;
use umbel::Saved;
use umbel::cuckoo::{ArrayCuckooFilter, Shape, words_for};
use umbel::hash::{Digest, Digester};
use umbel::{
    BatchFull, Contains, CuckooFilter, Edge, Full, Incompatible, Insert, InvalidBytes,
    InvalidShape, Keyed, Portable, Remove,
};
use umbel_laws::split_mix;

fn shape(buckets: u64, fingerprint_bits: u32) -> Shape {
    Shape::with(0, buckets, fingerprint_bits).unwrap()
}

fn made(shape: Shape) -> CuckooFilter<u64> {
    seeded(shape, 0)
}

fn seeded(shape: Shape, seed: u64) -> CuckooFilter<u64> {
    CuckooFilter::with(shape, Portable::seeded(seed)).unwrap()
}

/// A fingerprint, and the smaller and the larger one of its buckets.
type Place = (u64, u64, u64);

/// The content of a filter: how often each place is occupied, by the definition in `docs/hashing.md`.
#[derive(Clone)]
struct Model {
    shape: Shape,
    places: HashMap<Place, u64>,
    keys: HashMap<u64, u64>,
}

impl Model {
    fn new(shape: Shape) -> Self {
        Self { shape, places: HashMap::new(), keys: HashMap::new() }
    }

    fn other(&self, bucket: u64, fingerprint: u64) -> u64 {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let buckets = u128::from(self.shape.buckets());
        let mixed = fingerprint.wrapping_mul(GOLDEN);
        let sum = u128::from((mixed ^ (mixed >> 32)) | 1) % (1 << buckets.ilog2());
        ((sum + buckets - u128::from(bucket)) % buckets) as u64
    }

    fn place_in(&self, bucket: u64, fingerprint: u64) -> Place {
        let other = self.other(bucket, fingerprint);
        assert_eq!(self.other(other, fingerprint), bucket, "there and back");
        (fingerprint, bucket.min(other), bucket.max(other))
    }

    fn place(&self, key: u64) -> Place {
        let whole = u128::from(Portable::default().digest(&key).bits());
        let product = whole * u128::from(self.shape.buckets());
        let fingerprints = (1 << self.shape.fingerprint_bits()) - 1_u128;
        let rest = (product % (1 << 64)) >> 32;
        let fingerprint = 1 + ((rest * fingerprints) >> 32);
        self.place_in((product >> 64) as u64, fingerprint as u64)
    }

    fn count(&self, key: u64) -> u64 {
        self.places.get(&self.place(key)).copied().unwrap_or_default()
    }

    /// The maximum number of copies of a key.
    fn most(&self, key: u64) -> u64 {
        let (_, first, second) = self.place(key);
        if first == second { 4 } else { 8 }
    }

    fn insert(&mut self, key: u64) -> bool {
        *self.keys.entry(key).or_default() += 1;
        let count = self.places.entry(self.place(key)).or_default();
        *count += 1;
        *count == 1
    }

    fn remove(&mut self, key: u64) -> bool {
        let place = self.place(key);
        let there = self.count(key) > 0;
        if there {
            *self.places.get_mut(&place).unwrap() -= 1;
            self.keys.entry(key).and_modify(|times| *times = times.saturating_sub(1));
        }
        there
    }

    /// Checks that the filter has exactly this content.
    fn is(&self, filter: &CuckooFilter<u64>) {
        filter.validate().unwrap();
        let mut left = self.places.clone();
        for (bucket, fingerprint) in filter.fingerprints() {
            let place = self.place_in(bucket, fingerprint.into());
            let count = left.get_mut(&place).expect("a fingerprint from nowhere");
            *count = count.checked_sub(1).expect("a fingerprint too many");
        }
        assert!(left.values().all(|count| *count == 0), "a fingerprint is lost: {left:?}");
        let len = self.places.values().sum::<u64>();
        assert_eq!((filter.len(), filter.is_empty()), (len, len == 0));
    }
}

/// An operation on a filter.
#[derive(Clone, Debug)]
enum Step {
    Insert(u64),
    InsertUnique(u64),
    InsertBatch(Vec<u64>),
    Remove(u64),
    RemoveBatch(Vec<u64>),
    Merge(Vec<u64>),
    Reload,
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    let keys = || vec(0_u64..90, 0..40);
    prop_oneof![
        24 => (0_u64..90).prop_map(Step::Insert),
        4 => (0_u64..90).prop_map(Step::InsertUnique),
        6 => keys().prop_map(Step::InsertBatch),
        16 => (0_u64..90).prop_map(Step::Remove),
        3 => keys().prop_map(Step::RemoveBatch),
        3 => keys().prop_map(Step::Merge),
        1 => Just(Step::Reload),
        1 => Just(Step::Clear),
    ]
}

/// Inserts all of the keys into a copy of the model, if no place exceeds its limit. A filter may refuse in more
/// cases, but in no other way.
fn with_all(model: &Model, keys: &[u64]) -> Option<Model> {
    let mut model = model.clone();
    keys.iter().for_each(|key| _ = model.insert(*key));
    keys.iter().all(|key| model.count(*key) <= model.most(*key)).then_some(model)
}

/// Any history leaves exactly the fingerprints, and gives exactly the answers, of the model. A refused
/// operation changes nothing.
fn follow(shape: Shape, history: Vec<Step>) {
    let (mut filter, mut model) = (made(shape), Model::new(shape));
    for step in history {
        match step {
            Step::Insert(key) => {
                let before = filter.words().to_vec();
                match filter.insert(&key) {
                    Ok(fresh) => assert_eq!(fresh, model.insert(key)),
                    Err(Full) => assert_eq!(filter.words(), before, "refused, and not unchanged"),
                }
                assert!(model.count(key) <= model.most(key));
            }
            Step::InsertUnique(key) => {
                let before = filter.words().to_vec();
                let found = model.count(key) > 0;
                match filter.insert_unique(&key) {
                    Ok(fresh) => assert!(fresh != found && (found || model.insert(key))),
                    Err(Full) => assert!(!found),
                }
                assert!(model.count(key) > 0 || filter.words() == before);
            }
            Step::InsertBatch(keys) => {
                let mut fresh = vec![false; keys.len()];
                let done = filter.insert_batch(&keys, &mut fresh);
                let inserted = done.map_or_else(|full| full.inserted, |()| keys.len());
                let (keys, refused) = keys.split_at(inserted);
                assert_eq!(done.is_ok(), refused.is_empty());
                assert!(with_all(&model, keys).is_some());
                assert!(keys.iter().zip(fresh).all(|(key, fresh)| model.insert(*key) == fresh));
            }
            // This may be an absent key with the same fingerprint, so the model removes it too.
            Step::Remove(key) => assert_eq!(filter.remove(&key), model.remove(key)),
            Step::RemoveBatch(keys) => {
                let mut removed = vec![false; keys.len()];
                filter.remove_batch(&keys, &mut removed);
                assert!(keys.iter().zip(removed).all(|(key, gone)| model.remove(*key) == gone));
            }
            Step::Merge(keys) => {
                let mut other = made(shape);
                if other.insert_batch(&keys, &mut vec![false; keys.len()]).is_ok() {
                    match filter.merge_with(&other) {
                        Ok(()) => model = with_all(&model, &keys).expect("more than there is room"),
                        Err(error) => assert!(matches!(error, Incompatible::Room { .. })),
                    }
                }
            }
            Step::Reload => {
                let reloaded = CuckooFilter::from_bytes(&filter.to_bytes()).unwrap();
                assert!(reloaded == filter && reloaded.words() == filter.words());
                filter = reloaded;
            }
            Step::Clear => {
                filter.clear();
                model = Model::new(shape);
            }
        }
        model.is(&filter);
    }
    let keys: Vec<u64> = (0..400).collect();
    let mut found = vec![false; keys.len()];
    filter.contains_batch(&keys, &mut found);
    for (key, found) in keys.into_iter().zip(found) {
        let count = model.count(key);
        assert_eq!((filter.contains(&key), found), (count > 0, count > 0));
        assert_eq!(filter.estimated_count(&key), count);
    }
}

proptest! {
    #![proptest_config(crate::cases(256))]

    #[test]
    fn any_history_is_that_of_the_model(
        buckets in 1_u64..40,
        fingerprint_bits in 4_u32..33,
        history in vec(step(), 0..120),
    ) {
        follow(shape(buckets, fingerprint_bits), history);
    }
}

/// Inserts keys until the first is refused; returns the number of inserted keys. No key is lost and no partial
/// insert remains.
fn fill(filter: &mut CuckooFilter<u64>) -> u64 {
    let first = split_mix(filter.hasher().seed() ^ filter.shape().buckets() << 32);
    let keys = || (0..).map(|number| first.wrapping_add(number));
    let mut len = 0;
    for key in keys() {
        let before = (filter.len() + 8 > filter.shape().room()).then(|| filter.words().to_vec());
        if filter.insert(&key).is_err() {
            assert!(before.is_none_or(|words| words == filter.words()), "not as it was");
            break;
        }
        len += 1;
    }
    filter.validate().unwrap();
    assert_eq!(filter.len(), len);
    assert!(keys().take(len as usize).all(|key| filter.contains(&key)), "a key is lost");
    len
}

/// The promise of a shape, for a thousand seeds each: with a chance of one in three million for each of
/// them, less than one in a hundred for all.
fn fingerprint_out_of_range(bits: u32, max: u64) -> InvalidShape {
    let (what, got) = ("bits of a fingerprint", u64::from(bits));
    InvalidShape::OutOfRange { what, got, min: 4, max }
}

#[test]
fn filters_take_as_many_keys_as_their_shape_promises() {
    for fingerprint_bits in [4, 5, 7, 10, 13, 17] {
        for buckets in [1, 2, 3, 4, 5, 6, 8, 11, 16, 24, 32, 48, 64] {
            let shape = shape(buckets, fingerprint_bits);
            for seed in 0..1_000 {
                let len = fill(&mut seeded(shape, seed));
                let room = shape.room();
                assert!(len >= room, "{len} of {room} keys in {shape:?}, seed {seed}");
                assert!(buckets > 2 || len == shape.slots());
            }
        }
    }
}

#[test]
fn filters_of_some_thousand_slots_take_what_they_promise() {
    for (buckets, fingerprint_bits, seeds) in [(256, 10, 1_000), (1_000, 8, 200), (2_501, 12, 80)] {
        let shape = shape(buckets, fingerprint_bits);
        for seed in 0..seeds {
            let len = fill(&mut seeded(shape, seed));
            assert!(len >= shape.room(), "{len} keys in {shape:?}, seed {seed}");
        }
    }
}

#[test]
fn large_filters_are_full_at_a_load_of_96_percent_or_more() {
    // With 4 bits too, unless nine keys have the same fingerprint and buckets, as in one table in 1,300 of the
    // first size.
    for fingerprint_bits in [4, 5, 8, 10, 13, 20] {
        for (buckets, seeds) in [(25_000, 3), (40_001, 1)] {
            let shape = shape(buckets, fingerprint_bits);
            for seed in 0..seeds {
                let load = shape.load(fill(&mut seeded(shape, seed)));
                assert!(load >= 0.96, "{load} in {shape:?}, seed {seed}");
            }
        }
    }
}

/// At capacity, keys are inserted and removed ten times over: none is refused, and none is lost.
#[test]
fn a_filter_at_capacity_goes_on_for_ever() {
    for (items, rate) in [(30, 0.01), (500, 0.2), (1_000, 0.01), (20_000, 0.001)] {
        let mut filter = CuckooFilter::<u64>::new(items, rate);
        assert!(filter.shape().room() >= items);
        let mut keys: Vec<u64> = (0..items).map(split_mix).collect();
        keys.iter().for_each(|key| _ = filter.insert(key).unwrap());
        for round in items..11 * items {
            let leaving = &mut keys[(split_mix(!round) % items) as usize];
            assert!(filter.remove(leaving));
            *leaving = split_mix(round);
            filter.insert(leaving).unwrap();
        }
        filter.validate().unwrap();
        assert!(keys.iter().all(|key| filter.contains(key)));
        assert_eq!(filter.len(), items);
    }
}

#[test]
fn half_a_million_removals_lose_none_of_the_other_keys() {
    const KEYS: u64 = 1_000_000;
    let mut filter = CuckooFilter::<u64>::new(KEYS, 0.01);
    let keys: Vec<u64> = (0..KEYS).map(split_mix).collect();
    filter.insert_batch(&keys, &mut vec![false; keys.len()]).unwrap();
    let (leave, stay) = keys.split_at(keys.len() / 2);
    let (one_by_one, at_once) = leave.split_at(leave.len() / 2);
    assert!(one_by_one.iter().all(|key| filter.remove(key)));
    let mut removed = vec![false; at_once.len()];
    filter.remove_batch(at_once, &mut removed);
    assert!(removed.iter().all(|removed| *removed));
    assert!(stay.iter().all(|key| filter.contains(key)));
    filter.validate().unwrap();
    let mut half = CuckooFilter::<u64>::new(KEYS, 0.01);
    stay.iter().for_each(|key| _ = half.insert(key).unwrap());
    assert!(filter == half, "what was removed is gone without a trace");
    assert_eq!((filter.len(), filter.load()), (KEYS / 2, half.load()));
    // No key is lost in a merge into a filter that was emptied either.
    let mut merged = CuckooFilter::<u64>::new(KEYS, 0.01);
    leave.iter().for_each(|key| _ = merged.insert(key).unwrap());
    merged.merge_with(&half).unwrap();
    assert!(leave.iter().all(|key| merged.remove(key)));
    assert!(stay.iter().all(|key| merged.contains(key)));
    assert!(merged == half);
}

#[test]
fn a_key_is_there_eight_times_and_not_nine() {
    for (buckets, fingerprint_bits) in [(2, 4), (50, 10), (1_000, 32)] {
        let mut filter = made(shape(buckets, fingerprint_bits));
        let others: Vec<u64> = if buckets == 2 { vec![] } else { (1..100).collect() };
        others.iter().for_each(|key| _ = filter.insert(key).unwrap());
        for times in 0..8 {
            assert_eq!(filter.estimated_count(&0), times);
            assert_eq!(filter.insert(&0), Ok(times == 0));
        }
        let before = filter.words().to_vec();
        for _ in 0..100 {
            assert_eq!(filter.insert(&0), Err(Full));
        }
        assert_eq!((filter.words(), filter.estimated_count(&0)), (&before[..], 8));
        assert!(others.iter().all(|key| filter.contains(key)));
        assert!((0..8).all(|_| filter.remove(&0)) && !filter.remove(&0));
        assert!(others.iter().all(|key| filter.remove(key)) && filter.is_empty());
    }
}

/// Two keys with the same place, in a small filter.
fn look_alikes(filter: &CuckooFilter<u64>) -> [u64; 2] {
    let model = Model::new(*filter.shape());
    let mut seen = HashMap::new();
    (0..).find_map(|key| seen.insert(model.place(key), key).map(|other| [other, key])).unwrap()
}

#[test]
fn what_is_inserted_once_for_two_keys_is_gone_when_one_leaves() {
    let mut filter = CuckooFilter::<u64>::new(1_000, 0.01);
    let [a, b] = look_alikes(&filter);
    assert_eq!((filter.insert(&a), filter.insert(&b)), (Ok(true), Ok(false)));
    assert!(filter.remove(&a) && filter.contains(&b), "every insert has a copy of its own");
    filter.clear();
    assert_eq!((filter.insert_unique(&a), filter.insert_unique(&b)), (Ok(true), Ok(false)));
    assert_eq!(filter.len(), 1);
    assert!(filter.remove(&a) && !filter.contains(&b), "as the documentation warns");
    // Removing an absent key removes another one.
    filter.insert(&a).unwrap();
    assert!(filter.remove(&b) && !filter.contains(&a));
    assert!(!filter.remove(&b) && filter.is_empty());
}

#[test]
fn removing_what_is_not_found_changes_nothing() {
    let mut filter = CuckooFilter::<u64>::new(1_000, 0.01);
    (0..1_000).for_each(|key| _ = filter.insert(&key).unwrap());
    let before = filter.words().to_vec();
    let absent: Vec<u64> = (1_000..5_000).filter(|key| !filter.contains(key)).collect();
    assert!(absent.len() > 3_900 && absent.iter().all(|key| !filter.remove(key)));
    assert_eq!((filter.words(), filter.len()), (&before[..], 1_000));
}

#[test]
fn batches_of_a_filter_larger_than_the_cache_do_as_single_calls() {
    for capacity in [600_000, 8_000_000] {
        let mut filter = CuckooFilter::<u64>::new(capacity, 0.01);
        let mut single = filter.clone();
        for len in [0, 1, 15, 16, 31, 32, 33, 63, 64, 65, 1_000] {
            let keys: Vec<u64> = (0..len).map(|number| split_mix(number % 900)).collect();
            let mut answers = vec![false; keys.len()];
            filter.insert_batch(&keys, &mut answers).unwrap();
            assert!(keys.iter().zip(&answers).all(|(key, fresh)| single.insert(key) == Ok(*fresh)));
            assert_eq!(filter.words(), single.words());
            let asked: Vec<u64> = (0..len).map(|number| split_mix(number * 2)).collect();
            filter.contains_batch(&asked, &mut answers);
            assert!(asked.iter().zip(&answers).all(|(key, found)| single.contains(key) == *found));
            let digests: Vec<Digest> = asked.iter().map(|k| filter.hasher().digest(k)).collect();
            let mut by_digest = vec![false; digests.len()];
            filter.contains_digests(&digests, &mut by_digest);
            assert_eq!(by_digest, answers);
            let leaving: Vec<u64> = keys.iter().chain(&asked).copied().collect();
            let mut answers = vec![false; leaving.len()];
            filter.remove_batch(&leaving, &mut answers);
            assert!(leaving.iter().zip(&answers).all(|(key, gone)| single.remove(key) == *gone));
            assert_eq!((filter.words(), filter.len()), (single.words(), single.len()));
        }
    }
}

#[test]
fn a_batch_that_does_not_fit_inserts_the_keys_before_the_first_without_room() {
    let mut filter = CuckooFilter::<u64>::new(2_000, 0.01);
    let keys: Vec<u64> = (0..1_900).map(split_mix).collect();
    filter.insert_batch(&keys, &mut vec![false; keys.len()]).unwrap();
    let more: Vec<u64> = (1_900..4_000).map(split_mix).collect();
    let mut fresh = vec![true; more.len()];
    let BatchFull { inserted } = filter.insert_batch(&more, &mut fresh).unwrap_err();
    assert!(inserted > 100 && filter.len() == 1_900 + inserted as u64);
    assert!(!fresh[inserted..].contains(&true));
    filter.validate().unwrap();
    // After removing them the previous keys are left.
    assert!(more[..inserted].iter().all(|key| filter.remove(key)));
    assert!(keys.iter().all(|key| filter.remove(key)) && filter.is_empty());
    assert!(filter.words().iter().all(|word| *word == 0));
}

#[test]
fn a_merged_filter_holds_both_sides() {
    let shape = Shape::for_rate(3_000, 0.001).unwrap();
    let (mut left, mut right, mut both) = (made(shape), made(shape), made(shape));
    for key in 0..2_000 {
        left.insert(&key).unwrap();
        both.insert(&key).unwrap();
    }
    for key in 1_500..2_500 {
        right.insert(&key).unwrap();
        both.insert(&key).unwrap();
    }
    let alone = left.clone();
    left.merge_with(&right).unwrap();
    assert!(left == both && left != alone && left.len() == 3_000);
    assert!((1_500..2_000).all(|key| left.estimated_count(&key) >= 2));
    left.validate().unwrap();
    // There is no room for the same number of keys again.
    let before = left.clone();
    for other in [&before, &alone] {
        let error = left.merge_with(other).unwrap_err();
        assert!(matches!(error, Incompatible::Room { .. }), "{error}");
        assert!(left == before);
        left.validate().unwrap();
    }
    assert!((1_500..2_500).all(|key| left.remove(&key)));
    assert!(left == alone);
}

#[test]
fn filters_that_do_not_fit_are_refused_and_left_alone() {
    let mut filter = made(shape(12, 10));
    filter.insert(&1).unwrap();
    let before = filter.clone();
    let mut refused = |shape, hasher| {
        let other = CuckooFilter::with(shape, hasher).unwrap();
        assert!(filter != other);
        filter.merge_with(&other).unwrap_err()
    };
    let plain = Portable::default();
    // The same number of bits, in other buckets.
    let error = refused(shape(10, 12), plain);
    assert_eq!(error, Incompatible::Cells { expected: 10, got: 12 });
    let error = refused(shape(14, 10), plain);
    assert_eq!(error, Incompatible::Bits { expected: 480, got: 560 });
    assert_eq!(refused(shape(12, 10), Portable::seeded(9)), Incompatible::Hasher);
    assert!(filter == before);
}

#[test]
fn equal_filters_may_have_their_fingerprints_in_other_buckets() {
    let shape = shape(50, 12);
    let (mut up, mut down) = (made(shape), made(shape));
    (0..180).for_each(|key| _ = up.insert(&key).unwrap());
    (0..180).rev().for_each(|key| _ = down.insert(&key).unwrap());
    assert!(up == down && up.words() != down.words());
    assert!(up.remove(&7) && up != down);
    up.insert(&999).unwrap();
    assert!(up != down && up.len() == down.len());
}

/// The rate of every width, of even and odd numbers of buckets, at several loads.
#[test]
fn absent_keys_are_found_at_the_expected_rate() {
    for (buckets, fingerprint_bits) in
        [(1, 4), (3, 4), (2, 5), (7, 6), (64, 6), (1_001, 8), (500, 11)]
    {
        let shape = shape(buckets, fingerprint_bits);
        for items in [1, shape.room() / 3, shape.room()] {
            let filters = (20_000 / items).clamp(20, 2_000);
            let asked = 4_000_000 / filters;
            let (mut found, mut distinct) = (0, 0);
            for seed in 0..filters {
                let mut filter = seeded(shape, seed);
                (0..items).for_each(|key| distinct += u64::from(filter.insert(&key).unwrap()));
                found += (items..items + asked).filter(|key| filter.contains(key)).count();
            }
            let queries = (asked * filters) as f64;
            let rate = shape.expected_rate(items);
            // Chance in the queries, and in the number of keys with the same place.
            let alike = rate * (items * filters - distinct) as f64 / (items * filters) as f64;
            let keys = (items * filters) as f64;
            // With an odd number of buckets m, one key in m has half the chance of a collision.
            let m = buckets as f64;
            let half = rate / items as f64 * m / (2.0 * m - 1.0);
            let halves = (buckets % 2) as f64 * half * half / m * items as f64 / filters as f64;
            let by_keys = rate * (alike + rate / keys) / keys + halves;
            let sigma = (rate * (1.0 - rate) / queries + by_keys).sqrt();
            let got = found as f64 / queries;
            assert!(
                (got - rate).abs() < 5.0 * sigma,
                "{got}, expected {rate}: {items} in {shape:?}"
            );
        }
    }
}

#[test]
fn large_filters_take_10_6_bits_a_key_at_1_percent_and_13_8_at_0_1_percent() {
    let mut items = 100_000_u64;
    while items < 20_000_000_000 {
        for (rate, most) in [(0.01, 10.6), (0.001, 13.8)] {
            let shape = Shape::for_rate(items, rate).unwrap();
            let bits = shape.bytes() as f64 * 8.0 / items as f64;
            assert!(bits <= most, "{bits} bits a key for {items} at {rate}");
            assert!(shape.expected_rate(items) <= rate && shape.room() >= items);
        }
        items += items / 7 + 1;
    }
}

#[test]
fn shapes_keep_their_rate_and_have_room_for_their_items() {
    for items in (0..200).chain([1_000, 54_321, 1_000_000, 10_000_000_000]) {
        for rate in [0.9, 0.5, 0.1, 0.06, 0.01, 1e-4, 1e-7] {
            let shape = Shape::for_rate(items, rate).unwrap();
            assert_eq!(shape.items(), items);
            assert!(shape.expected_rate(items) <= rate, "{shape:?} at {rate}");
            assert!(shape.room() >= items, "{shape:?}");
            assert!(shape.buckets() == 1 || shape.buckets().is_multiple_of(2));
            // With the same memory, the rate is no worse.
            let same = Shape::for_memory(items, shape.bytes()).unwrap();
            assert!(same.bytes() <= shape.bytes() && same.room() >= items);
            assert!(same.expected_rate(items) <= shape.expected_rate(items), "{same:?} {shape:?}");
        }
    }
    assert_eq!(Shape::for_rate(1_000, 5e-10).unwrap().fingerprint_bits(), 32);
}

/// Fingerprints are longer than the rate requires where that takes less memory: short ones cannot fill a large
/// table, because nine keys have the same place too often.
#[test]
fn no_other_width_takes_less() {
    for items in (9..400).step_by(13).chain([1_000, 30_000, 1_000_000, 100_000_000]) {
        for rate in [0.9, 0.4, 0.2, 0.06, 0.01, 1e-5] {
            let chosen = Shape::for_rate(items, rate).unwrap();
            // Two buckets fewer would be the same number of bits.
            for width in 4..=32 {
                let buckets = (chosen.bits() - 1) / (8 * width) * 2;
                let Ok(other) = Shape::with(items, buckets, width as u32) else { continue };
                let better = other.room() >= items && other.expected_rate(items) <= rate;
                assert!(!better, "{other:?} is smaller than {chosen:?} at {rate}");
            }
        }
    }
    assert!(Shape::for_rate(1_000_000, 0.4).unwrap().fingerprint_bits() > 4);
    assert_eq!(Shape::with(0, 250_000, 4).unwrap().room(), 293_331);
}

#[test]
fn hostile_parameters_are_refused() {
    type Cuckoo = CuckooFilter<u64>;
    for rate in [0.0, -0.0, 1.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = Cuckoo::try_new(10, rate).unwrap_err();
        assert!(matches!(error, InvalidShape::RateOutOfRange { .. }));
    }
    for (capacity, rate) in [(10, 4e-10), (10, 1e-80), (100_000_000_000, 1e-9)] {
        let error = Cuckoo::try_new(capacity, rate).unwrap_err();
        let InvalidShape::RateTooSmall { min, .. } = error else { panic!("{error}") };
        assert!(min > rate && min < 1e-6, "{error}");
    }
    for capacity in [u64::MAX, 1 << 58, 1 << 46, 1 << 45] {
        let error = Cuckoo::try_new(capacity, 0.01).unwrap_err();
        assert!(matches!(error, InvalidShape::TooLarge { .. }), "{error}");
        assert!(Shape::for_memory(capacity, 1 << 20).is_err());
    }
    for bits in [0, 1, 3, 33, u32::MAX] {
        let error = fingerprint_out_of_range(bits, 32);
        assert_eq!(Shape::with(10, 10, bits), Err(error));
        let message = error.to_string();
        assert!(message.starts_with("expected 4 to 32 bits of a fingerprint, got "), "{message}");
    }
    let error = fingerprint_out_of_range(32, 24);
    assert_eq!(Shape::with(10, 1 << 36, 32), Err(error));
    assert_eq!(Shape::with(10, 0, 10), Err(InvalidShape::TooSmall { bytes: 0, min: 16 }));
    assert!(matches!(Shape::with(10, u64::MAX, 10), Err(InvalidShape::TooLarge { .. })));
    assert!(matches!(Shape::for_memory(1, u64::MAX), Err(InvalidShape::TooLarge { .. })));
    for bytes in [0, 8, 15, 100] {
        let error = Shape::for_memory(1_000, bytes).unwrap_err();
        let InvalidShape::TooSmall { min, .. } = error else { panic!("{error}") };
        assert!(
            Shape::for_memory(1_000, min).is_ok() && Shape::for_memory(1_000, min - 8).is_err()
        );
    }
    // A valid shape that exceeds the memory of the machine.
    let huge = shape(1 << 42, 16);
    let error = Cuckoo::with(huge, Portable::default()).unwrap_err();
    assert_eq!(error, InvalidShape::OutOfMemory { bytes: huge.bytes() });
    let mut none = Cuckoo::new(0, 0.01);
    assert!(!none.contains(&1) && !none.remove(&1) && none.expected_rate() == 0.0);
    assert!(none.insert(&1).unwrap() && none.remove(&1) && none.is_empty());
}

/// All of eight keys have the same digest, and no other key is affected.
#[test]
fn keys_that_a_stranger_chose_fill_their_buckets_and_no_others() {
    let mut filter = CuckooFilter::<u64>::new(1_000, 0.01);
    (0..900).for_each(|key| _ = filter.insert(&key).unwrap());
    let before = filter.len();
    let digest = Digest::mixed(7);
    let taken = (0..1_000).filter(|_| filter.insert_digest(digest).is_ok()).count() as u64;
    assert!(taken <= 8 && filter.len() == before + taken);
    assert!((0..900).all(|key| filter.contains(&key)));
    filter.validate().unwrap();
}

#[test]
fn bytes_keep_the_width_and_refuse_another() {
    for (buckets, fingerprint_bits) in [(1, 4), (3, 5), (16, 16), (5, 17), (9, 32)] {
        let mut filter = made(shape(buckets, fingerprint_bits));
        (0..4).for_each(|key| _ = filter.insert(&key).unwrap());
        let bytes = filter.to_bytes();
        let loaded = CuckooFilter::<u64>::from_bytes(&bytes).unwrap();
        assert!(loaded == filter && loaded.shape() == filter.shape() && loaded.len() == 4);
        assert_eq!((bytes[10], bytes[KERNELS], bytes[field(2)]), (8, 9, fingerprint_bits as u8));
        let other = umbel::CountingBloomFilter::<u64>::from_bytes(&bytes).unwrap_err();
        assert_eq!(other, InvalidBytes::Family { expected: 4, got: 8 });
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(CuckooFilter::<u64>::from_bytes(&damaged).is_err());
        }
    }
    let keyed = CuckooFilter::<str, Keyed>::with_hasher(10, 0.01, Keyed::new([1; 16]));
    let bytes = keyed.to_bytes();
    let load = |secret| {
        CuckooFilter::<str, Keyed>::from_bytes_with_hasher(&bytes, Keyed::new([secret; 16]))
    };
    assert!(load(1).unwrap() == keyed);
    assert_eq!(load(2).unwrap_err(), InvalidBytes::Hasher);
}

/// Bytes with correct checksums and invalid fields.
#[test]
fn bytes_that_contradict_themselves_are_refused() {
    let bytes = made(shape(10, 5)).to_bytes();
    let read = |bytes: &[u8]| CuckooFilter::<u64>::from_bytes(bytes).map(|filter| filter.len());
    let with = |at: usize, field: &[u8]| read(&forge::with(&bytes, at, field));
    assert_eq!(with(field(2), &[5]), Ok(0));
    assert_eq!(with(KERNELS, &[4, 5]), Err(InvalidBytes::Kernels { got: 0x504 }));
    for bits in [0, 1, 2] {
        let error = fingerprint_out_of_range(bits, 32);
        assert_eq!(with(field(2), &[bits as u8]), Err(InvalidBytes::Shape(error)));
    }
    assert_eq!(with(field(3), &[1]), Err(InvalidBytes::Inconsistent)); // the table has no such fingerprint
    assert_eq!(with(field(1), &[20]), Err(InvalidBytes::Inconsistent)); // a different number of words
    assert_eq!(with(WORDS + 25, &[0]), Ok(0));
    assert_eq!(with(WORDS + 24, &[0xff]), Err(InvalidBytes::Inconsistent)); // a different number of keys
    let two = forge::with(&bytes, WORDS + 24, &[0xff]);
    assert_eq!(read(&forge::with(&two, INSERTIONS, &[2])), Ok(2));
    assert_eq!(with(WORDS + 25, &[1]), Err(InvalidBytes::Inconsistent)); // past the last slot
    assert_eq!(with(WORDS + 39, &[0x80]), Err(InvalidBytes::Inconsistent)); // in the last word
}

#[test]
fn an_array_has_the_slots_of_the_heap() {
    const WORDS: usize = words_for(100, 0.01);
    let mut array = ArrayCuckooFilter::<u64, WORDS>::new(100, 0.01);
    let mut heap = CuckooFilter::<u64>::new(100, 0.01);
    for key in 0..100 {
        assert_eq!(array.insert(&key), heap.insert(&key));
    }
    assert!((0..20).all(|key| array.remove(&key) && heap.remove(&key)));
    assert_eq!((array.words(), array.len()), (heap.words(), heap.len()));
    let again = ArrayCuckooFilter::<u64, WORDS>::from_bytes(&heap.to_bytes()).unwrap();
    assert!(again == array);
    assert!(ArrayCuckooFilter::<u64, 3>::try_new(100, 0.01).is_err());
}

#[test]
fn code_that_knows_only_traits_can_remove() {
    fn come_and_go<F: Insert + Remove + Edge<Key = str>>(filter: &mut F, key: &str) -> [bool; 4] {
        let digest = filter.digest(key);
        let fresh = filter.insert_digest(digest).unwrap();
        [fresh, filter.contains_digest(digest), filter.remove_digest(digest), {
            Contains::contains_digest(filter, digest)
        }]
    }
    let mut filter = CuckooFilter::<str>::new(10, 0.01);
    assert_eq!(come_and_go(&mut filter, "key"), [true, true, true, false]);
    let text = format!("{filter:?}");
    assert!(text.contains("CuckooFilter") && text.contains("len: 0"), "{text}");
}

/// The compiler checks that threads can share a filter for look-ups.
const fn shared_by_threads<T: Send + Sync>() {}
const _: () = shared_by_threads::<CuckooFilter<std::rc::Rc<str>, Keyed>>();
const _: () = shared_by_threads::<ArrayCuckooFilter<[u8], 3>>();

#[test]
fn many_threads_read_one_filter() {
    let mut filter = CuckooFilter::<u64>::new(20_000, 0.01);
    (0..20_000).for_each(|key| _ = filter.insert(&key).unwrap());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert!((0..20_000).all(|key| filter.contains(&key))));
        }
    });
}

/// Computed by a second implementation in another language, written from `docs/hashing.md`. The words are those
/// of filters that needed no search, because only those are fixed.
#[test]
fn a_filter_keeps_its_words_and_its_mistakes() {
    for (buckets, fingerprint_bits, expected, mistakes) in [
        (300, 10, 0x1c54_d369_ba94_b1d9, &[1379, 1762, 2561, 3178][..]),
        (301, 7, 0x2f61_a0a2_5bb7_f7bd, &[324, 335, 336, 395]),
        (200, 20, 0x2e8b_6d13_6e4c_87f7, &[14_311]),
    ] {
        let mut filter = made(shape(buckets, fingerprint_bits));
        (0..300).for_each(|key| _ = filter.insert(&key).unwrap());
        let fold = filter.words().iter().fold(0_u64, |fold, word| fold.rotate_left(7) ^ word);
        assert_eq!(fold, expected, "the words have changed: {fold:#018x}");
        let found = (300..).filter(|key| filter.contains(key)).take(mistakes.len());
        assert!(found.eq(mistakes.iter().copied()));
    }
}

/// The table of `docs/hashing.md`, computed by the same second implementation.
#[test]
fn a_key_has_the_documented_places() {
    let document = include_str!("../../../../docs/hashing.md");
    let (_, table) = document.split_once("| m | f | fingerprint | first | second |\n").unwrap();
    let mut rows = 0;
    for row in table.lines().skip(1).take_while(|line| line.starts_with('|')) {
        let numbers: Vec<u64> =
            row.trim_matches('|').split('|').map(|cell| cell.trim().parse().unwrap()).collect();
        let [buckets, bits, fingerprint, first, second] = numbers[..] else { panic!("{row}") };
        let mut filter = made(shape(buckets, bits as u32));
        (0..8).for_each(|_| _ = filter.insert(&42).unwrap());
        let mut expected = [first, second].map(|bucket| vec![(bucket, fingerprint as u32); 4]);
        expected.sort();
        assert!(filter.fingerprints().eq(expected.concat()), "{row}");
        rows += 1;
    }
    assert_eq!(rows, 3);
}

#[cfg(feature = "serde")]
#[test]
fn a_filter_comes_back_through_serde() {
    let mut filter = CuckooFilter::<str>::new(100, 0.01);
    ["one", "two", "three"].iter().for_each(|key| _ = filter.insert(*key).unwrap());
    let json = serde_json::to_string(&filter).unwrap();
    let again: CuckooFilter<str> = serde_json::from_str(&json).unwrap();
    assert!(again == filter && again.contains("two") && again.len() == 3);
    let damaged = json.replacen("117", "118", 1);
    for wrong in ["null", "[]", "[1, 2, 3]", "{}", "\"text\"", &damaged] {
        assert!(serde_json::from_str::<CuckooFilter<str>>(wrong).is_err(), "{wrong:.30}");
    }
}
