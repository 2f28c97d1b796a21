//! The stable filter against plain numbers that age, cell by cell, and hostile input.

use crate::aging::Model;
use crate::forge::field;
use proptest::collection::vec;
use proptest::prelude::*;
use umbel::Saved;
use umbel::hash::Digest;
use umbel::stable::{ArrayStableBloomFilter, MAX_WIDTH, Shape, words_for};
use umbel::{
    Contains, Edge, Insert, InvalidBytes, InvalidShape, Keyed, Portable, StableBloomFilter,
};
use umbel_laws::split_mix;

fn made(shape: Shape) -> StableBloomFilter<u64> {
    StableBloomFilter::with(shape, Portable::default()).unwrap()
}

/// An operation on a filter.
#[derive(Clone, Debug)]
enum Step {
    Insert(u64),
    InsertBatch(Vec<u64>),
    Extend(Vec<u64>),
    Contains(Vec<u64>),
    ThroughBytes,
    Clear,
}

/// Few keys, so that they are repeated.
fn key() -> impl Strategy<Value = u64> {
    prop_oneof![0_u64..20, any::<u64>()]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => key().prop_map(Step::Insert),
        3 => vec(key(), 0..60).prop_map(Step::InsertBatch),
        3 => vec(key(), 0..60).prop_map(Step::Extend),
        3 => vec(key(), 0..40).prop_map(Step::Contains),
        2 => Just(Step::ThroughBytes),
        1 => Just(Step::Clear),
    ]
}

/// Every width, from three cells up, and from one decrement to all cells.
fn shape() -> impl Strategy<Value = Shape> {
    (0_u64..200, 1..=MAX_WIDTH, 1_u32..7, any::<prop::sample::Index>()).prop_map(
        |(half, width, probes, decrements)| {
            let cells = 2 * half + 1;
            let decrements = decrements.index(cells as usize) as u64 + 1;
            Shape::with(cells, width, probes, decrements).unwrap()
        },
    )
}

fn follow(shape: Shape, history: Vec<Step>) {
    let (mut filter, mut model) = (made(shape), Model::new(shape));
    for step in history {
        match step {
            Step::Insert(key) => assert_eq!(filter.insert(&key), model.insert(key)),
            Step::InsertBatch(keys) => {
                let mut fresh = vec![false; keys.len()];
                filter.insert_batch(&keys, &mut fresh);
                let expected: Vec<bool> = keys.iter().map(|&key| model.insert(key)).collect();
                assert_eq!(fresh, expected);
            }
            Step::Extend(keys) => {
                keys.iter().for_each(|&key| _ = model.insert(key));
                filter.extend(keys);
            }
            Step::Contains(keys) => {
                let mut found = vec![false; keys.len()];
                filter.contains_batch(&keys, &mut found);
                let expected: Vec<bool> = keys.iter().map(|&key| model.contains(key)).collect();
                assert_eq!(found, expected);
                assert!(keys.iter().zip(found).all(|(key, found)| filter.contains(key) == found));
            }
            Step::ThroughBytes => {
                filter = StableBloomFilter::from_bytes(&filter.to_bytes()).unwrap();
            }
            Step::Clear => {
                filter.clear();
                model = Model::new(shape);
                assert!(filter.is_empty() && filter == made(shape));
            }
        }
        assert_eq!(filter.words(), model.words(), "{shape:?}");
        assert_eq!(filter.insertions(), model.insertions);
        let full = model.cells.iter().filter(|number| **number != 0).count();
        assert_eq!(filter.count_nonzero(), full as u64);
        let rate = (full as f64 / shape.cells() as f64).powi(shape.probes() as i32);
        assert!((filter.expected_rate() - rate).abs() < 1e-12);
    }
}

proptest! {
    #![proptest_config(crate::cases(300))]

    #[test]
    fn any_history_is_that_of_the_model(shape in shape(), history in vec(step(), 0..30)) {
        follow(shape, history);
    }

    /// A filter that is saved in the middle of a stream and loaded again, in an array or on the heap, continues
    /// exactly as one that stayed in memory.
    #[test]
    fn a_filter_that_was_away_goes_on_as_if_it_had_stayed(
        before in vec(any::<u64>(), 0..400),
        after in vec(any::<u64>(), 0..400),
    ) {
        const SHAPE: Shape = match Shape::for_cells(730, 3, 0.03) {
            Ok(shape) => shape,
            Err(_) => panic!("a valid shape"),
        };
        let mut stayed = made(SHAPE);
        stayed.extend(&before);
        let bytes = stayed.to_bytes();
        let mut heap = StableBloomFilter::<u64>::from_bytes(&bytes).unwrap();
        type Array = ArrayStableBloomFilter<u64, { words_for(730, 3) }>;
        let mut array = Array::from_bytes(&bytes).unwrap();
        for key in &after {
            let fresh = stayed.insert(key);
            prop_assert_eq!((heap.insert(key), array.insert(key)), (fresh, fresh));
        }
        prop_assert!(heap == stayed);
        prop_assert_eq!(heap.to_bytes(), stayed.to_bytes());
        prop_assert_eq!(array.to_bytes(), stayed.to_bytes());
        for key in before.iter().chain(&after) {
            prop_assert_eq!(heap.contains(key), stayed.contains(key));
        }
    }
}

fn out_of_range(what: &'static str, got: u64, max: u64) -> InvalidShape {
    InvalidShape::OutOfRange { what, got, min: 1, max }
}

#[test]
fn batches_of_a_filter_larger_than_the_cache_do_as_single_calls() {
    for (cells, width) in [(6_000_001, 2), (1_500_001, 7), (10_000_001, 4)] {
        let shape = Shape::for_cells(cells, width, 0.01).unwrap();
        let keys: Vec<u64> = (0..5_000).map(|i| split_mix(i) % 3_000).collect();
        let (mut one_by_one, mut batches, mut extended) = (made(shape), made(shape), made(shape));
        let expected: Vec<bool> = keys.iter().map(|key| one_by_one.insert(key)).collect();
        let mut fresh = vec![false; keys.len()];
        for (keys, fresh) in keys.chunks(777).zip(fresh.chunks_mut(777)) {
            batches.insert_batch(keys, fresh);
        }
        extended.extend(&keys);
        assert_eq!(fresh, expected);
        assert!(batches == one_by_one && extended == one_by_one);
        let asked: Vec<u64> = (0..6_000).collect();
        let digests: Vec<Digest> = asked.iter().map(|key| one_by_one.digest(key)).collect();
        let (mut found, mut digested) = (vec![false; 6_000], vec![false; 6_000]);
        batches.contains_batch(&asked, &mut found);
        batches.contains_digests(&digests, &mut digested);
        let expected: Vec<bool> = asked.iter().map(|key| one_by_one.contains(key)).collect();
        assert!(found == expected && digested == expected && expected.contains(&true));
    }
}

/// The table of the module, for every width, at five sigma: each gap of a stream is one trial.
#[test]
fn keys_are_forgotten_as_often_as_the_shape_tells() {
    for (width, rate) in [(1, 0.03), (2, 0.03), (3, 0.01), (4, 0.1)] {
        let shape = Shape::for_cells(20_000, width, rate).unwrap();
        let mut filter = made(shape);
        let mut stream = (0_u64..).map(split_mix);
        filter.extend(stream.by_ref().take(shape.settles_after(1e-4) as usize));
        for probability in [0.99, 0.9, 0.5, 0.1] {
            let gap = shape.remembers(probability);
            // Far enough apart that they use different cells at different times.
            let (trials, mut found) = (4_000, 0);
            let mut waiting = std::collections::VecDeque::new();
            for _ in 0..trials + gap {
                if waiting.len() as u64 > gap {
                    found += u64::from(filter.contains(&waiting.pop_front().unwrap()));
                }
                let key = stream.next().unwrap();
                filter.insert(&key);
                waiting.push_back(key);
            }
            let expected = shape.found_after(gap);
            let trials = (trials - 1) as f64;
            // Keys of one stream age together, which adds about as much variance as chance alone.
            let sigma = (2.0 * expected * (1.0 - expected) * trials).sqrt();
            let off = (found as f64 - expected * trials) / sigma;
            assert!(off.abs() < 5.0, "{shape:?} after {gap}: {found} of {trials}, {off:.1} sigma");
        }
    }
}

#[test]
fn a_stream_without_end_leaves_the_rate_where_it_is() {
    let mut filter = StableBloomFilter::<u64>::new(1_000, 0.01);
    let shape = *filter.shape();
    assert!(shape.expected_rate(0) == 0.0 && shape.expected_rate(u64::MAX) <= 0.01);
    let mut last = 0.0;
    for insertions in [1, 10, 100, 1_000, 10_000, 100_000] {
        let rate = shape.expected_rate(insertions);
        assert!(rate >= last && rate <= shape.stable_rate() * (1.0 + 1e-9));
        last = rate;
    }
    // At a hundred moments, each far enough from the last one to be independent.
    const APART: u64 = 20_000;
    assert!(shape.settles_after(1e-4) <= APART);
    let rates: Vec<f64> = (0..100)
        .map(|moment| {
            filter.extend(moment * APART..(moment + 1) * APART);
            filter.expected_rate() / shape.stable_rate()
        })
        .collect();
    let mean = rates.iter().sum::<f64>() / 100.0;
    let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / 99.0;
    let off = (mean - 1.0) / (variance / 100.0).sqrt();
    assert!(off.abs() <= 5.0, "{mean} of the stable rate, {off} sigma");
}

#[test]
fn a_key_that_comes_again_and_again_is_never_forgotten() {
    let mut filter = StableBloomFilter::<u64>::new(100, 0.01);
    filter.insert(&0);
    for round in 1..10_000_u64 {
        filter.extend(round * 20..round * 20 + 20);
        assert!(!filter.insert(&0), "lost within {round} rounds");
    }
}

#[test]
fn hostile_parameters_are_refused_before_memory_is_touched() {
    for rate in [0.0, -0.0, 1.0, -1.0, f64::NAN, f64::INFINITY] {
        for error in [
            StableBloomFilter::<u64>::try_new(10, rate).unwrap_err(),
            Shape::for_cells(100, 2, rate).unwrap_err(),
            Shape::for_budget(100, rate).unwrap_err(),
        ] {
            assert!(matches!(error, InvalidShape::RateOutOfRange { .. }), "{error}");
        }
    }
    for width in [0, 9, 64, u32::MAX] {
        let refused = Err(out_of_range("bits of a cell", width.into(), 8));
        assert_eq!(Shape::for_cells(100, width, 0.1), refused);
        assert_eq!(Shape::with(101, width, 3, 7), refused);
    }
    for cells in [u64::MAX, u64::MAX - 1, 1 << 48, (1 << 47) + 1] {
        assert!(matches!(Shape::for_cells(cells, 2, 0.1), Err(InvalidShape::TooLarge { .. })));
        assert!(matches!(Shape::with(cells | 1, 2, 3, 7), Err(InvalidShape::TooLarge { .. })));
    }
    for capacity in [u64::MAX, 1 << 60, 1 << 45] {
        let error = StableBloomFilter::<u64>::try_new(capacity, 0.01).unwrap_err();
        assert!(matches!(error, InvalidShape::TooLarge { .. }), "{error}");
    }
    assert_eq!(Shape::with(100, 2, 3, 7), Err(InvalidShape::EvenBits { bits: 100 }));
    for probes in [0, 65] {
        let refused = out_of_range("probes", probes.into(), 64);
        assert_eq!(Shape::with(101, 2, probes, 7), Err(refused));
    }
    for decrements in [0, 102, u64::MAX] {
        let refused = out_of_range("decrements", decrements, 101);
        assert_eq!(Shape::with(101, 2, 3, decrements), Err(refused));
    }
    // Cells so wide that decrementing all of them every time is not enough.
    for (cells, width) in [(0, 1), (1, 1), (3, 8), (101, 8), (501, 8)] {
        let error = Shape::for_cells(cells, width, 0.01).unwrap_err();
        assert!(matches!(error, InvalidShape::OutOfRange { what: "decrements", .. }), "{error}");
    }
    assert_eq!(Shape::for_budget(7, 0.1), Err(InvalidShape::TooSmall { bytes: 7, min: 8 }));
    type Short = ArrayStableBloomFilter<u64, 3>;
    let shape = Shape::for_cells(100, 2, 0.1).unwrap();
    let short = Short::with(shape, Portable::default()).unwrap_err();
    assert_eq!(short, InvalidShape::OutOfMemory { bytes: 32 });
}

/// With one cell every key is found, and three cells are enough for one key.
#[test]
fn the_smallest_filters_work() {
    let mut one = made(Shape::with(1, 3, 2, 1).unwrap());
    assert!(one.insert(&7) && one.contains(&8));
    assert_eq!((one.shape().stable_rate(), one.shape().stable_point()), (1.0, 0.0));
    assert_eq!((one.shape().expected_rate(1), one.shape().found_after(9)), (1.0, 1.0));
    assert_eq!((one.shape().remembers(0.5), one.shape().settles_after(0.1)), (u64::MAX, 1));
    let mut all = made(Shape::with(3, 1, 1, 3).unwrap());
    for key in 0..100 {
        all.insert(&key);
        assert!(all.contains(&key) && all.count_nonzero() == 1);
    }
    let mut none = StableBloomFilter::<str>::new(0, 0.3);
    assert!(none.insert("one") && none.contains("one"));
}

#[test]
fn bytes_keep_everything_and_refuse_what_contradicts_itself() {
    let shape = Shape::for_cells(730, 3, 0.03).unwrap();
    let keyed = Keyed::new([7; 16]);
    let mut filter = StableBloomFilter::<u64, _>::with(shape, keyed).unwrap();
    filter.extend(0..1_000_u64);
    let bytes = filter.to_bytes();
    let again = StableBloomFilter::from_bytes_with_hasher(&bytes, keyed).unwrap();
    assert!(again == filter && again.insertions() == 1_000);
    let other = StableBloomFilter::<u64, _>::from_bytes_with_hasher(&bytes, Keyed::new([8; 16]));
    assert_eq!(other.unwrap_err(), InvalidBytes::Hasher);

    let bytes = made(shape).to_bytes();
    assert_eq!(bytes.len() as u64, 192 + shape.bytes() + 8);
    // Family 6, digits, 731 cells of 3 bits, 4 probes, 51 decrements: docs/format.md.
    assert_eq!(bytes[10..16], [6, 0, 1, 0, 1, 0]);
    let fields: Vec<u64> = bytes[field(0)..field(4)]
        .as_chunks()
        .0
        .iter()
        .map(|field| u64::from_le_bytes(*field))
        .collect();
    assert_eq!(fields, [731, 3, 4, 51]);
    type Short = ArrayStableBloomFilter<u64, 34>;
    assert!(matches!(Short::from_bytes(&bytes), Err(InvalidBytes::Shape(_))));
    let counting = umbel::CountingBloomFilter::<u64>::new(10, 0.1).to_bytes();
    let family = StableBloomFilter::<u64>::from_bytes(&counting).unwrap_err();
    assert_eq!(family, InvalidBytes::Family { expected: 6, got: 4 });
}

#[test]
fn arrays_are_made_by_the_compiler_and_do_as_the_heap() {
    const CELLS: u64 = 1_000;
    static EMPTY: ArrayStableBloomFilter<u64, { words_for(CELLS, 2) }> =
        ArrayStableBloomFilter::for_cells(CELLS, 2, 0.1);
    let mut array = EMPTY.clone();
    let mut heap = made(*EMPTY.shape());
    for key in 0..3_000 {
        assert_eq!(array.insert(&key), heap.insert(&key));
    }
    assert_eq!(array.words(), heap.words());
    let named = ArrayStableBloomFilter::<str, { words_for(730, 3) }>::for_cells(730, 3, 0.03);
    assert_eq!(named.shape(), &Shape::for_cells(730, 3, 0.03).unwrap());
    let wide = ArrayStableBloomFilter::<u64, { words_for(4_000, 8) }>::for_cells(4_000, 8, 0.03);
    assert_eq!(wide.shape(), &Shape::for_cells(4_000, 8, 0.03).unwrap());
    // The words, the insertions, the shape and the seed.
    assert!(size_of_val(&named) <= 35 * 8 + 8 + 24 + 16);
}

#[test]
fn code_that_knows_only_traits_can_let_keys_age() {
    fn come<F: Insert + Edge<Key = u64>>(filter: &mut F, key: u64) -> [bool; 3] {
        let digest = filter.digest(&key);
        let fresh = filter.insert_digest(digest).unwrap();
        [fresh, Contains::contains_digest(filter, digest), filter.insert_digest(digest).unwrap()]
    }
    let mut filter = StableBloomFilter::<u64>::new(100, 0.01);
    assert_eq!(come(&mut filter, 7), [true, true, false]);
    let (clone, text) = (filter.clone(), format!("{filter:?}"));
    assert!(clone == filter && text.contains("insertions: 2") && text.contains("probes: 5"));
}
