//! Xor and binary fuse filters: every size, every kind of repetition, every way to fail.

use crate::forge::{INSERTIONS, field, with};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Mutex;
use umbel::frozen::{Build, BuildError, Frozen, Map, Peeled, Progress, Shape, Stage};
use umbel::fuse::Fused;
use umbel::xor::Thirds;
use umbel::{
    BinaryFuse4Filter, BinaryFuseFilter, Digest, InvalidBytes, InvalidShape, Portable, Saved,
    XorFilter,
};
use umbel_laws::split_mix;

type Filter<M> = Frozen<u64, Portable, Peeled<M>>;

const BYTE: f64 = 1.0 / 256.0;

/// Every key is found, alone and in a batch.
fn finds_all<M: Map>(filter: &Filter<M>, keys: &[u64]) {
    let mut found = vec![false; keys.len()];
    filter.contains_batch(keys, &mut found);
    let lost = found.iter().filter(|found| !**found).count();
    assert_eq!(lost, 0, "of {} in a batch, {:?}", keys.len(), filter.shape());
    let lost = keys.iter().filter(|key| !filter.contains(*key)).count();
    assert_eq!(lost, 0, "of {}, {:?}", keys.len(), filter.shape());
}

/// The filter of these keys, in which every one of them is found.
fn exact<M: Map>(keys: &[u64], err_rate: f64) -> Filter<M> {
    let filter = Filter::<M>::build(keys, err_rate).unwrap();
    finds_all(&filter, keys);
    filter
}

fn keys(first: u64, len: u64) -> Vec<u64> {
    (first..first + len).map(split_mix).collect()
}

/// Builds the filters of the first keys, for these sizes. Returns the average number of construction attempts.
fn of_sizes<M: Map>(keys: &[u64], sizes: impl IntoIterator<Item = usize>) -> f64 {
    let (mut filters, mut attempts) = (0, 0);
    for len in sizes {
        let how = Build::new(BYTE).seed(len as u64);
        let filter = Filter::<M>::build_with(how, &keys[..len]).unwrap();
        finds_all(&filter, &keys[..len]);
        assert_eq!(filter.len(), len as u64);
        assert!(filter.shape().attempts() <= 20, "{len} keys: {:?}", filter.shape());
        filters += 1;
        attempts += filter.shape().attempts();
    }
    f64::from(attempts) / f64::from(filters)
}

/// Sizes that can rarely be built with the published segment lengths.
const BANDS: [std::ops::Range<usize>; 3] = [3_478..5_206, 11_292..16_633, 37_402..51_475];

#[test]
fn every_size_to_two_thousand_can_be_built() {
    let keys = keys(1 << 40, 2_000);
    for attempts in [
        of_sizes::<Thirds>(&keys, 0..=2_000),
        of_sizes::<Fused<3>>(&keys, 0..=2_000),
        of_sizes::<Fused<4>>(&keys, 0..=2_000),
    ] {
        assert!(attempts < 2.0, "{attempts}");
    }
}

#[test]
fn sizes_in_the_holes_of_the_paper_can_be_built() {
    let keys = keys(1 << 41, 52_000);
    for band in BANDS {
        for attempts in [
            of_sizes::<Thirds>(&keys, band.clone().step_by(band.len() / 20)),
            of_sizes::<Fused<3>>(&keys, band.clone().step_by(band.len() / 20)),
            of_sizes::<Fused<4>>(&keys, band.clone().step_by(band.len() / 20)),
        ] {
            assert!(attempts < 2.0, "{band:?}: {attempts}");
        }
    }
}

/// Half a minute: the longest of these tests.
#[test]
fn every_size_of_the_scan_can_be_built() {
    let keys = keys(1 << 42, 200_000);
    let mut sizes = vec![2_000];
    while *sizes.last().unwrap() < 199_000 {
        let last = sizes.last().unwrap();
        sizes.push(last + last / 200);
    }
    for attempts in [
        of_sizes::<Thirds>(&keys, sizes.clone()),
        of_sizes::<Fused<3>>(&keys, sizes.clone()),
        of_sizes::<Fused<4>>(&keys, sizes),
    ] {
        assert!(attempts < 1.2, "{attempts}");
    }
    for band in BANDS {
        let attempts = of_sizes::<Fused<3>>(&keys, band.clone());
        assert!(attempts < 1.5, "{attempts}");
    }
}

fn every_width<M: Map>() {
    for (bits, items) in (1..=32).zip([1, 3, 40, 1_000, 20_000].into_iter().cycle()) {
        let filter = exact::<M>(&keys(bits << 33, items), 0.5_f64.powi(bits as i32));
        assert_eq!((filter.shape().fingerprint_bits(), filter.len()), (bits as u32, items));
        let plan = Shape::<M>::for_bits(items, bits as u32).unwrap();
        assert!(filter.bytes() >= plan.bytes() && filter.bytes() <= plan.bytes() * 3 / 2 + 8);
    }
}

#[test]
fn every_width_from_1_to_32_bits_works() {
    every_width::<Thirds>();
    every_width::<Fused<3>>();
    every_width::<Fused<4>>();
}

/// The rate at five sigma, on both sides.
fn rate<M: Map>(items: u64, bits: u32, filters: u64, queries: u64) {
    let mut wrong = 0;
    for number in 0..filters {
        let first = number << 44 | u64::from(bits) << 40;
        let filter = Filter::<M>::build(keys(first, items), 0.5_f64.powi(bits as i32)).unwrap();
        let absent = first + items..first + items + queries;
        wrong += absent.filter(|key| filter.contains(&split_mix(*key))).count();
        assert!((filter.expected_rate() / 0.5_f64.powi(bits as i32) - 1.0).abs() < 1e-3);
    }
    let expected = (filters * queries) as f64 * 0.5_f64.powi(bits as i32);
    let sigmas = (wrong as f64 - expected) / expected.sqrt();
    assert!(sigmas.abs() < 5.0, "{items} keys of {bits} bits: {sigmas} sigmas");
}

#[test]
fn absent_keys_are_found_at_the_rate_of_the_bits() {
    for bits in [1, 3, 7, 8, 12] {
        for (items, filters) in [(1, 300), (2, 300), (5, 300), (100, 100), (10_000, 10)] {
            rate::<Thirds>(items, bits, filters, 1_000_000 / filters);
            rate::<Fused<3>>(items, bits, filters, 1_000_000 / filters);
            rate::<Fused<4>>(items, bits, filters, 1_000_000 / filters);
        }
    }
    for bits in [8, 16] {
        rate::<Fused<3>>(200_000, bits, 1, 10_000_000);
        rate::<Fused<4>>(200_000, bits, 1, 10_000_000);
    }
}

fn repeated<M: Map>(keys: &[u64]) {
    let different: BTreeSet<u64> = keys.iter().copied().collect();
    let filter = exact::<M>(keys, 0.01);
    assert_eq!(filter.len(), different.len() as u64);
    let plan = Shape::<M>::for_rate(filter.len(), 0.01).unwrap();
    assert!(filter.bytes() <= plan.bytes() * 3 / 2 + 8, "{:?}", filter.shape());
}

fn all_repetitions<M: Map>() {
    let all = keys(0, 100_000);
    repeated::<M>(&vec![7; 100_000]);
    repeated::<M>(&[5, 5]);
    repeated::<M>(&[all.clone(), all.clone()].concat());
    repeated::<M>(&[&all[..], &all[..50_000]].concat());
    repeated::<M>(&[&all[..], &all[..1]].concat());
    repeated::<M>(&(0..100_000).map(|number| split_mix(number / 40)).collect::<Vec<_>>());
    let mut copies = vec![all[9]; 300_000];
    copies.extend(&all);
    repeated::<M>(&copies);
}

#[test]
fn equal_keys_count_once_however_many_there_are() {
    all_repetitions::<Thirds>();
    all_repetitions::<Fused<3>>();
    all_repetitions::<Fused<4>>();
}

#[test]
fn equal_digests_count_once() {
    let digests = (0..10_000).map(|number: u64| Digest::mixed(number / 3));
    let filter =
        BinaryFuseFilter::<str>::build_from_digests(Build::new(0.01), digests.clone()).unwrap();
    assert_eq!(filter.len(), 3_334);
    let digests: Vec<Digest> = digests.collect();
    let mut found = vec![false; digests.len()];
    filter.contains_digests(&digests, &mut found);
    assert!(found.iter().all(|found| *found));
    assert!(digests.iter().all(|digest| filter.contains_digest(*digest)));
}

#[test]
fn digests_that_are_not_mixed_end_in_an_error_or_in_a_filter_of_all_of_them() {
    // Of the 64 bits of a counter, only a few differ.
    let digests = (0..2_000).map(Digest::new);
    match XorFilter::<u64>::build_from_digests(Build::new(0.01), digests.clone()) {
        Ok(filter) => assert!(digests.into_iter().all(|digest| filter.contains_digest(digest))),
        Err(error) => assert_eq!(error, BuildError::Attempts { attempts: 100 }),
    }
}

#[test]
fn an_empty_filter_finds_nothing() {
    let filter = XorFilter::<u64>::build([0_u64; 0], 0.5).unwrap();
    assert!(filter.is_empty() && filter.bytes() == 0 && filter.expected_rate() == 0.0);
    assert!((0..1_000).all(|key| !filter.contains(&key)));
    let mut found = [true; 3];
    filter.contains_batch(&[1, 2, 3], &mut found);
    assert_eq!(found, [false; 3]);
}

#[test]
fn bits_depend_on_keys_and_seed_and_on_nothing_else() {
    let all = keys(3, 50_000);
    let backwards: Vec<u64> = all.iter().rev().copied().collect();
    let build =
        |keys: &[u64], seed| Filter::<Fused<3>>::build_with(Build::new(0.01).seed(seed), keys);
    let filter = build(&all, 1).unwrap();
    assert_eq!(filter, build(&all, 1).unwrap());
    assert_eq!(filter, build(&backwards, 1).unwrap());
    assert_eq!(filter, filter.clone());
    assert_ne!(filter.words(), build(&all, 2).unwrap().words());
    let borrowed = filter.borrowed();
    assert!(all.iter().all(|key| borrowed.contains(key)));
    assert_eq!(borrowed.words().as_ptr(), filter.words().as_ptr());
}

/// In shards, and the same for any number of threads.
#[cfg(feature = "rayon")]
fn by_threads<M: Map>(items: u64) {
    let keys = keys(1 << 35, items);
    let alone = exact::<M>(&keys, BYTE);
    assert!(alone.shape().shards() > 1);
    for threads in 1..=3 {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let build = || Filter::<M>::build_with(Build::new(BYTE).parallel(), &keys).unwrap();
        assert!(pool.install(build) == alone, "{threads} threads");
    }
}

#[cfg(feature = "rayon")]
#[test]
fn threads_build_the_same_filter_however_many_they_are() {
    by_threads::<Thirds>(2_000_000);
    by_threads::<Fused<3>>(3_000_000);
}

#[test]
fn a_source_that_fails_ends_building_with_its_error() {
    let keys = (0..10_000_u64).map(|key| if key < 9_000 { Ok(key) } else { Err("broken") });
    let built = BinaryFuseFilter::<u64>::try_build_with(Build::new(0.01), keys);
    assert_eq!(built.err(), Some(BuildError::Source("broken")));
}

#[test]
fn rates_that_cannot_be_had_are_refused() {
    for rate in [0.0, 1.0, -1.0, f64::NAN] {
        let error = XorFilter::<u64>::build(0..10, rate).err();
        assert!(matches!(error, Some(BuildError::Shape(InvalidShape::RateOutOfRange { .. }))));
    }
    let error = BinaryFuseFilter::<u64>::build(0..10, 1e-10).err();
    assert!(matches!(error, Some(BuildError::Shape(InvalidShape::RateTooSmall { .. }))));
    assert!(Shape::<Thirds>::for_bits(10, 0).is_err());
    assert!(Shape::<Thirds>::for_bits(10, 33).is_err());
    let error = Shape::<Fused<3>>::for_bits(1 << 47, 8);
    assert!(matches!(error, Err(InvalidShape::TooLarge { .. })));
    assert!(Shape::<Fused<4>>::for_bits(u64::MAX, 32).is_err());
}

#[test]
fn what_takes_too_much_memory_is_refused_with_what_it_would_take() {
    let needed = BinaryFuseFilter::<u64>::peak_bytes(100_000, 0.01).unwrap();
    let build = |limit| {
        let how = Build::new(0.01).memory_limit(limit);
        BinaryFuseFilter::<u64>::build_with(how, 0..100_000).map(|filter| filter.len())
    };
    assert_eq!(build(needed), Ok(100_000));
    assert_eq!(build(needed - 1), Err(BuildError::Memory { needed, limit: needed - 1 }));
    assert_eq!(build(1_000), Err(BuildError::Memory { needed, limit: 1_000 }));
}

#[test]
fn building_takes_at_most_165_bits_a_key() {
    for items in [1_000_000, 2_000_000, 3_000_000, 10_000_000, 100_000_000, 1_000_000_000] {
        for peak in [
            XorFilter::<u64>::peak_bytes(items, BYTE),
            BinaryFuseFilter::<u64>::peak_bytes(items, BYTE),
            BinaryFuse4Filter::<u64>::peak_bytes(items, BYTE),
        ] {
            let bits = peak.unwrap() as f64 * 8.0 / items as f64;
            assert!(bits <= 165.0, "{bits} for {items} keys");
        }
    }
}

#[test]
fn plans_are_as_small_as_they_should_be() {
    let bits = |items, rate| Shape::<Fused<3>>::for_rate(items, rate).unwrap().bits_per_key();
    let bits_of_four =
        |items, rate| Shape::<Fused<4>>::for_rate(items, rate).unwrap().bits_per_key();
    assert!(bits(1_000_000, BYTE) <= 9.05 && bits(10_000_000, BYTE) <= 9.02);
    assert!(bits_of_four(1_000_000, BYTE) <= 8.63 && bits_of_four(10_000_000, BYTE) <= 8.62);
    assert!(bits(1_000_000, 0.01) <= 7.95 && bits(10_000_000, 0.01) <= 7.95);
    for (items, most) in [(10, 12.8), (100, 10.9), (1_000, 10.0), (10_000, 9.9)] {
        assert!(bits(items, BYTE) <= most && bits_of_four(items, BYTE) <= most, "{items}");
    }
}

#[test]
fn progress_goes_through_all_stages_in_their_order() {
    let seen = Mutex::new(Vec::new());
    let note = |progress: Progress| seen.lock().unwrap().push(progress);
    let how = Build::new(0.01).progress(&note).checked();
    BinaryFuseFilter::<u64>::build_with(how, 0..200_000).unwrap();
    let seen = seen.into_inner().unwrap();
    assert!(seen.is_sorted_by_key(|progress| (progress.stage, progress.done)));
    for stage in [Stage::Reading, Stage::Solving, Stage::Checking] {
        let last = seen.iter().rfind(|progress| progress.stage == stage).unwrap();
        assert_eq!((last.done, last.total), (200_000, Some(200_000)));
    }
}

#[test]
fn bytes_of_more_keys_than_entries_are_refused() {
    fn with_items<M: Map>(items: u64) -> Result<u64, InvalidBytes> {
        let bytes = exact::<M>(&keys(0, 10), BYTE).to_bytes();
        let bytes = with(&bytes, INSERTIONS, &items.to_le_bytes());
        let bytes = with(&bytes, field(0), &items.to_le_bytes());
        Filter::<M>::from_bytes(&bytes).map(|filter| filter.len())
    }
    // There is room for more, so the number cannot be proven wrong.
    assert_eq!(with_items::<Thirds>(11), Ok(11));
    assert_eq!(with_items::<Fused<4>>(11), Ok(11));
    for items in [100, 1 << 40, u64::MAX] {
        assert_eq!(with_items::<Thirds>(items), Err(InvalidBytes::Inconsistent));
        assert_eq!(with_items::<Fused<3>>(items), Err(InvalidBytes::Inconsistent));
        assert_eq!(with_items::<Fused<4>>(items), Err(InvalidBytes::Inconsistent));
    }
}

proptest! {
    #![proptest_config(crate::cases(200))]

    #[test]
    fn any_set_of_keys_is_found(
        keys in prop::collection::vec(0_u64..500, 0..600),
        bits in 1..=32,
        seed: u64,
    ) {
        let how = || Build::new(0.5_f64.powi(bits)).seed(seed).checked();
        let different = keys.iter().collect::<BTreeSet<_>>().len() as u64;
        let xor = XorFilter::<u64>::build_with(how(), &keys).unwrap();
        let fuse = BinaryFuseFilter::<u64>::build_with(how(), &keys).unwrap();
        let four = BinaryFuse4Filter::<u64>::build_with(how(), &keys).unwrap();
        prop_assert!(keys.iter().all(|key| xor.contains(key) && fuse.contains(key)));
        prop_assert!(keys.iter().all(|key| four.contains(key)));
        prop_assert_eq!([xor.len(), fuse.len(), four.len()], [different; 3]);
    }
}
