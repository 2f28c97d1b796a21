//! The scalable filter: its levels against blocked filters, its rate at every size, its limits.

use crate::blocked::positions_in_level;
use crate::forge::{self, INSERTIONS, KERNELS, LENGTH, WORDS, field};
use crate::subjects::{Grown, GrownFromOne};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::HashSet;
use umbel::Saved;
use umbel::hash::Digester;
use umbel::scalable::{MAX_LEVELS, Shape};
use umbel::{
    BatchFull, Full, Insert, InvalidBytes, InvalidShape, Keyed, Portable, ScalableBloomFilter,
};
use umbel::{BlockedBloomFilter, blocked};
use umbel_laws::{Pattern, Trial, split_mix};

/// A model of the levels, bit by bit: a key goes into the newest level if no level contains it.
struct Model {
    shape: Shape,
    levels: Vec<(blocked::Shape, Vec<u64>)>,
    fresh: Vec<u64>,
    keys: HashSet<u64>,
}

impl Model {
    fn new(shape: Shape) -> Self {
        let mut model = Self { shape, levels: vec![], fresh: vec![], keys: HashSet::new() };
        model.grow();
        model
    }

    fn grow(&mut self) {
        let shape = self.shape.level(self.levels.len() as u32).unwrap();
        self.levels.push((shape, vec![0; shape.words() as usize]));
        self.fresh.push(0);
    }

    /// The bits of a key in a level, by `docs/hashing.md`.
    fn positions(&self, key: u64, level: usize) -> Vec<u64> {
        let digest = Portable::default().digest(&key).bits();
        let lines = digest.wrapping_mul(split_mix(level as u64) | 1);
        positions_in_level(&self.levels[level].0, lines, digest)
    }

    fn contains(&self, key: u64) -> bool {
        let has = |level: usize| {
            let words = &self.levels[level].1;
            let set = |bit: u64| words[(bit / 64) as usize] >> (bit % 64) & 1 == 1;
            self.positions(key, level).into_iter().all(set)
        };
        (0..self.levels.len()).any(has)
    }

    fn insert(&mut self, key: u64) -> bool {
        self.keys.insert(key);
        if self.contains(key) {
            return false;
        }
        let newest = self.levels.len() - 1;
        if self.fresh[newest] == self.shape.level_capacity(newest as u32) {
            self.grow();
        }
        let newest = self.levels.len() - 1;
        self.fresh[newest] += 1;
        for bit in self.positions(key, newest) {
            self.levels[newest].1[(bit / 64) as usize] |= 1 << (bit % 64);
        }
        true
    }

    fn check(&self, filter: &ScalableBloomFilter<u64>) -> Result<(), TestCaseError> {
        prop_assert_eq!(filter.levels().len(), self.levels.len());
        for (number, level) in filter.levels().iter().enumerate() {
            prop_assert_eq!(level.words(), &self.levels[number].1, "level {}", number);
            prop_assert_eq!(level.fresh(), self.fresh[number]);
        }
        prop_assert_eq!(filter.fresh(), self.fresh.iter().sum::<u64>());
        prop_assert!(self.keys.iter().all(|key| filter.contains(key)), "a key is lost");
        let asked: Vec<u64> = (0..1_500).collect();
        let mut found = vec![false; asked.len()];
        filter.contains_batch(&asked, &mut found);
        for (&key, &found) in asked.iter().zip(&found) {
            prop_assert_eq!(found, self.contains(key));
            prop_assert_eq!(found, filter.contains(&key));
        }
        Ok(())
    }
}

/// An operation on a filter.
#[derive(Clone, Debug)]
enum Step {
    Insert(u64),
    InsertBatch(Vec<u64>),
    Extend(Vec<u64>),
    Reload,
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    let keys = || vec(0_u64..1_500, 0..400);
    prop_oneof![
        8 => (0_u64..1_500).prop_map(Step::Insert),
        4 => keys().prop_map(Step::InsertBatch),
        4 => keys().prop_map(Step::Extend),
        2 => Just(Step::Reload),
        1 => Just(Step::Clear),
    ]
}

proptest! {
    #![proptest_config(crate::cases(200))]

    #[test]
    fn any_history_leaves_the_levels_of_the_model(
        capacity in 0_u64..100,
        rate in prop_oneof![Just(0.5), Just(0.05), Just(0.001), Just(1e-6)],
        growth in prop_oneof![Just(1.1), Just(2.0), Just(4.0)],
        history in vec(step(), 0..20),
    ) {
        let shape = Shape::for_rate(capacity, rate).unwrap().with_growth(growth).unwrap();
        let mut filter = ScalableBloomFilter::<u64>::with(shape, Portable::default()).unwrap();
        let mut model = Model::new(shape);
        for step in history {
            match step {
                Step::Insert(key) => prop_assert_eq!(filter.insert(&key), Ok(model.insert(key))),
                Step::InsertBatch(keys) => {
                    let mut fresh = vec![true; keys.len()];
                    prop_assert_eq!(filter.insert_batch(&keys, &mut fresh), Ok(()));
                    for (key, fresh) in keys.into_iter().zip(fresh) {
                        prop_assert_eq!(fresh, model.insert(key));
                    }
                }
                Step::Extend(keys) => {
                    filter.extend(&keys);
                    keys.into_iter().for_each(|key| { model.insert(key); });
                }
                Step::Reload => {
                    let bytes = filter.to_bytes();
                    let reloaded = ScalableBloomFilter::from_bytes(&bytes).unwrap();
                    prop_assert!(reloaded == filter && reloaded.to_bytes() == bytes);
                    filter = reloaded;
                }
                Step::Clear => {
                    filter.clear();
                    model = Model::new(shape);
                    let new = ScalableBloomFilter::with(shape, Portable::default()).unwrap();
                    prop_assert!(filter == new);
                }
            }
        }
        model.check(&filter)?;
        model.check(&filter.clone())?;
        prop_assert!(filter == filter.clone());
    }
}

/// The rate is computed from the fill, so there is no sampling noise. Whenever all levels are full, the mean of
/// many filters is the planned rate for that number of levels within five sigma, and below the requested rate.
/// Not vacuous: it is not far below either.
#[test]
fn the_compound_rate_is_the_planned_one_whenever_all_levels_are_full() {
    const FILTERS: u64 = 100;
    for (capacity, rate) in [(0, 0.01), (0, 0.5), (100, 0.1), (1_000, 0.5), (300, 0.001)] {
        let (mut filters, mut key): (Vec<_>, u64) = (
            (0..FILTERS)
                .map(|seed| {
                    ScalableBloomFilter::<u64>::with_hasher(capacity, rate, Portable::seeded(seed))
                })
                .collect(),
            0,
        );
        let shape = *filters[0].shape();
        for levels in 1..=7 {
            let full = (0..levels).map(|level| shape.level_capacity(level)).sum();
            let (mut sum, mut squares) = (0.0, 0.0);
            for filter in &mut filters {
                while filter.fresh() < full {
                    filter.insert(&split_mix(key)).unwrap();
                    key += 1;
                }
                assert_eq!(filter.levels().len(), levels as usize);
                let now = filter.expected_rate();
                (sum, squares) = (sum + now, squares + now * now);
            }
            let mean = sum / FILTERS as f64;
            let variance = squares / FILTERS as f64 - mean * mean;
            let sigma = (variance / FILTERS as f64).sqrt();
            let planned = shape.compound_rate(levels);
            assert!(mean - 5.0 * sigma <= planned, "{shape:?}, {levels}: {mean} > {planned}");
            assert!(planned <= rate && mean > 0.7 * planned, "{shape:?}, {levels}: {mean}");
        }
    }
}

/// No tolerance: the law allows 2 % for filters with an exact size, and these have none.
#[test]
fn grown_64_fold_it_is_wrong_no_more_often_than_asked_for() {
    for items in [1, 10, 64, 100, 640, 6_400, 64_000, 1_000_000] {
        for rate in [0.1, 0.01, 0.001] {
            for pattern in [Pattern::Sequential, Pattern::Random, Pattern::FloatLike] {
                let trial = Trial { items, rate, pattern, seeds: 3, queries: 200_000 };
                for report in [trial.measure::<Grown>(), trial.measure::<GrownFromOne>()] {
                    let most = 1.0 + 5.0 * report.sigma;
                    assert!(report.ratio <= most, "{trial:?} {report:?}");
                    assert!(report.predicted <= 1.0, "{trial:?} {report:?}");
                }
            }
        }
    }
}

/// Fills a filter until it is full; returns the number of new keys.
fn fill(filter: &mut ScalableBloomFilter<u64>) -> u64 {
    let mut key = 0;
    while filter.insert(&key).is_ok() {
        key += 1;
    }
    let (before, fresh) = (filter.clone(), filter.fresh());
    // A full filter is unchanged, and answers as before.
    assert_eq!(filter.insert(&key), Err(Full));
    assert_eq!(Insert::insert_digest(filter, Portable::default().digest(&key)), Err(Full));
    assert_eq!(filter.try_extend([key, key + 1]), Err(BatchFull { inserted: 0 }));
    let known = (0..1_000).map(|number| number % key);
    assert_eq!(filter.try_extend(known.chain([key])), Err(BatchFull { inserted: 1_000 }));
    assert!(*filter == before && filter.fresh() == fresh);
    for present in 0..key {
        assert!(filter.contains(&present));
        assert_eq!(filter.insert(&present), Ok(false));
    }
    let (mut fresh_here, keys) = ([true; 3], [0, key, 1]);
    assert_eq!(filter.insert_batch(&keys, &mut fresh_here), Err(BatchFull { inserted: 1 }));
    assert_eq!(fresh_here, [false; 3]);
    assert!(*filter == before);
    fresh
}

#[test]
fn at_64_levels_it_is_full_and_keeps_its_rate() {
    let shape = Shape::for_rate(0, 0.01).unwrap().with_growth(1.001).unwrap();
    let mut filter = ScalableBloomFilter::with(shape, Portable::default()).unwrap();
    let fresh = fill(&mut filter);
    assert_eq!(filter.levels().len(), MAX_LEVELS as usize);
    assert_eq!(fresh, (0..MAX_LEVELS).map(|level| shape.level_capacity(level)).sum::<u64>());
    let error = shape.level(MAX_LEVELS).unwrap_err();
    assert_eq!(error.to_string(), "expected 1 to 64 levels, got 65");
    let absent = 1_000_000;
    let found = (1 << 32..(1 << 32) + absent).filter(|key| filter.contains(key)).count() as f64;
    let most = 0.01 * absent as f64;
    assert!(found <= most + 5.0 * most.sqrt(), "{found} of {absent} found");
}

#[test]
fn where_a_level_would_need_too_small_a_rate_it_is_full() {
    let shape = Shape::for_rate(50, 1e-6).unwrap().with_tightening(1e-4).unwrap();
    let mut filter = ScalableBloomFilter::with(shape, Portable::default()).unwrap();
    fill(&mut filter);
    let error = shape.level(filter.levels().len() as u32).unwrap_err();
    assert!(matches!(error, InvalidShape::RateTooSmall { .. }), "{error}");
    assert!(filter.levels().len() > 1);
}

#[test]
fn a_level_that_cannot_be_allocated_is_an_error_that_loses_nothing() {
    // A second level of some 14 TiB: a valid shape that exceeds the memory of the machine.
    let shape = Shape::for_rate(1_000, 0.1).unwrap().with_growth(1.2e10).unwrap();
    assert!(shape.level(1).unwrap().bytes() > 8 << 40, "{:?}", shape.level(1));
    let mut filter = ScalableBloomFilter::with(shape, Portable::default()).unwrap();
    assert_eq!(fill(&mut filter), 1_000);
    // A level that cannot even be planned fails too.
    let shape = shape.with_growth(1e300).unwrap();
    let mut filter = ScalableBloomFilter::with(shape, Portable::default()).unwrap();
    assert_eq!(fill(&mut filter), 1_000);
    assert!(std::panic::catch_unwind(move || filter.extend([u64::MAX])).is_err());
}

#[test]
fn hostile_parameters_are_refused_and_no_capacity_is_a_line() {
    for rate in [0.0, -0.0, 1.0, -1.0, 2.0, f64::NAN, f64::INFINITY] {
        let error = ScalableBloomFilter::<u64>::try_new(10, rate).unwrap_err();
        assert!(matches!(error, InvalidShape::RateOutOfRange { .. }), "{error}");
    }
    for rate in [5e-324, 1e-80, 1e-15] {
        // The first level for the last rate would need a rate below the minimum of any filter.
        let error = ScalableBloomFilter::<u64>::try_new(10, rate).unwrap_err();
        assert!(matches!(error, InvalidShape::RateTooSmall { .. }), "{error}");
    }
    for capacity in [u64::MAX, u64::MAX / 64, 1 << 58] {
        let error = ScalableBloomFilter::<u64>::try_new(capacity, 0.01).unwrap_err();
        assert!(
            matches!(error, InvalidShape::TooLarge { .. } | InvalidShape::RateTooSmall { .. }),
            "{error}"
        );
    }
    let mut filter = ScalableBloomFilter::<u64>::new(0, 0.01);
    assert_eq!((filter.bytes(), filter.fresh(), filter.estimated_len()), (64, 0, 0));
    assert!(filter.is_empty() && filter.expected_rate() == 0.0 && !filter.contains(&1));
    assert!(filter.levels()[0].capacity() > 10);
    assert_eq!((filter.insert(&1), filter.insert(&1)), (Ok(true), Ok(false)));
    assert!(filter != ScalableBloomFilter::new(0, 0.01));
    assert!(filter != ScalableBloomFilter::with_hasher(0, 0.01, Portable::seeded(1)));
}

#[test]
fn it_knows_how_many_keys_it_has_and_how_often_it_is_wrong() {
    for rate in [0.3, 0.01] {
        let mut filter = ScalableBloomFilter::<str>::new(100, rate);
        let keys = 20_000_u64;
        filter.extend((0..keys).map(|key| key.to_string()));
        assert!(filter.fresh() < keys && filter.fresh() as f64 > keys as f64 * (1.0 - rate));
        // Keys that are false positives of older levels are estimated from the fill: at most `rate` of all
        // keys, within five sigma. Keys that are false positives of the level that they would have gone into
        // are not counted.
        let (keys, own) = (keys as f64, filter.shape().level_rate(0));
        let (estimate, noise) = (filter.estimated_len() as f64, 5.0 * (keys * rate).sqrt());
        assert!(estimate <= keys + noise, "{rate}: {estimate}");
        assert!(estimate >= keys * (1.0 - own) - noise, "{rate}: {estimate}");
        assert!(filter.expected_rate() <= filter.planned_rate() && filter.planned_rate() < rate);
        assert_eq!(filter.bytes(), filter.levels().iter().map(|level| level.bytes()).sum::<u64>());
        let text = format!("{filter:?}");
        assert!(text.contains("ScalableBloomFilter") && text.contains("fresh"), "{text}");
    }
}

/// Wrong fields of the header and of the plan of levels, with correct checksums.
#[test]
fn forged_bytes_are_refused_before_memory_is_touched() {
    let mut filter = ScalableBloomFilter::<u64>::new(100, 0.01);
    filter.extend(0..500_u64);
    let good = filter.to_bytes();
    assert_eq!((good[10], good[KERNELS], good[field(4)]), (5, 6, 3));
    let forged = |at: usize, number: u64| {
        ScalableBloomFilter::<u64>::from_bytes(&forge::with(&good, at, &number.to_le_bytes()))
    };
    assert!(forged(field(4), 3).is_ok());
    let huge = [0, 1, 2, 4, 63, 64, 65, 1 << 32, 1 << 40, 1 << 48, u64::MAX];
    let wild = || huge.into_iter().chain([f64::NAN.to_bits(), (-0.5_f64).to_bits()]);
    let same = |at: usize, number: u64| good[at..at + 8] == number.to_le_bytes();
    // The fields: rate, growth, tightening, levels, words.
    for at in [1, 2, 3, 4, 5, 6].map(field).into_iter().chain([LENGTH]) {
        for number in wild() {
            assert_eq!(forged(at, number).is_ok(), same(at, number), "{at} {number}");
        }
    }
    // New keys, lines, lines per key and probes of two levels.
    for level in [0, 2] {
        let (at, plan) = (WORDS + 32 * level, filter.levels()[level].shape());
        let keeps = |per_key: u64, probes: u64| {
            let other =
                blocked::Shape::with(plan.items(), plan.lines(), per_key as u32, probes as u32);
            let rate = filter.shape().level_rate(level as u32);
            other.is_ok_and(|other| other.expected_rate(plan.items()) <= rate)
        };
        for number in wild() {
            // The newest level may have any number of keys up to its capacity, if the header counts them too.
            let newest = level == 2 && (1..=400).contains(&number);
            assert_eq!(forged(at, number).is_ok(), same(at, number));
            let all = (filter.fresh() - filter.levels()[level].fresh()).wrapping_add(number);
            let counted = forge::with(&good, INSERTIONS, &all.to_le_bytes());
            let counted = forge::with(&counted, at, &number.to_le_bytes());
            let counted = ScalableBloomFilter::<u64>::from_bytes(&counted);
            assert_eq!(counted.is_ok(), same(at, number) || newest);
            assert_eq!(forged(at + 8, number).is_ok(), same(at + 8, number));
            // Other lines per key and probes are another plan, which may keep the rate too.
            let small = number < 9;
            let per_key = small && keeps(number, plan.probes_per_line().into());
            assert_eq!(forged(at + 16, number).is_ok(), per_key, "{number}");
            let probes = small && keeps(plan.lines_per_key().into(), number);
            assert_eq!(forged(at + 24, number).is_ok(), probes, "{number}");
        }
    }
    // Another capacity has other levels, unless it is rounded to the same one.
    assert!([0, 1, 99, 101, 1 << 40, u64::MAX].iter().all(|n| forged(field(0), *n).is_err()));
    assert!(matches!(forged(field(4), 65), Err(InvalidBytes::Shape(_))));
    assert!(matches!(forged(field(5), 1 << 40), Err(InvalidBytes::Inconsistent)));
    let others = BlockedBloomFilter::<u64>::new(100, 0.01).to_bytes();
    let error = ScalableBloomFilter::<u64>::from_bytes(&others).unwrap_err();
    assert_eq!(error, InvalidBytes::Family { expected: 5, got: 2 });
}

#[test]
fn a_secret_opens_the_filter_that_was_made_with_it() {
    let keyed = |secret| Keyed::new([secret; 16]);
    let mut filter = ScalableBloomFilter::<str, Keyed>::with_hasher(10, 0.01, keyed(1));
    filter.extend(["one", "two"]);
    let bytes = filter.to_bytes();
    let load = |secret| ScalableBloomFilter::from_bytes_with_hasher(&bytes, keyed(secret));
    assert!(load(1).unwrap() == filter);
    assert_eq!(load(2).unwrap_err(), InvalidBytes::Hasher);
}

#[test]
fn filters_of_any_number_of_keys_are_planned_or_refused() {
    for (shift, top) in (0..57).flat_map(|shift| [0x80, 0x93, 0xf2, 0xff].map(|top| (shift, top))) {
        for rate in [0.5, 0.05, 1e-6] {
            let capacity: u64 = top << shift;
            match Shape::for_rate(capacity, rate) {
                Ok(shape) => assert!(shape.level(0).unwrap().items() >= capacity),
                Err(error) => assert!(
                    shift > 30
                        && matches!(
                            error,
                            InvalidShape::TooLarge { .. } | InvalidShape::RateTooSmall { .. }
                        ),
                    "{capacity}: {error}"
                ),
            }
        }
    }
}
