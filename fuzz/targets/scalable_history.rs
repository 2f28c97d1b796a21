//! Any history of a scalable filter agrees with an exact set: a key in the set is found, `insert` and batches
//! agree with single look-ups, levels fill one after the other, and the planned rate is kept.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use std::collections::HashSet;
use umbel::scalable::Shape;
use umbel::{Portable, Saved, ScalableBloomFilter};

#[derive(Arbitrary, Debug)]
enum Step {
    Insert(u16),
    Batch(Vec<u16>),
    /// A range of consecutive keys.
    Range(u16, u8),
    Reload,
    Clear,
}

#[derive(Arbitrary, Debug)]
struct Input {
    capacity: u8,
    growth: u8,
    tightening: u8,
    steps: Vec<Step>,
}

fuzz_target!(|input: Input| {
    let growth = 1.25 + f64::from(input.growth) / 64.0;
    let tightening = (1.0 + f64::from(input.tightening)) / 300.0;
    let shape = Shape::for_rate(input.capacity.into(), 0.05)
        .and_then(|shape| shape.with_growth(growth))
        .and_then(|shape| shape.with_tightening(tightening));
    let Ok(shape) = shape else { return };
    let empty = || ScalableBloomFilter::<u16>::with(shape, Portable::default()).unwrap();
    let (mut filter, mut keys, mut fresh) = (empty(), HashSet::new(), 0);
    for step in input.steps {
        match step {
            Step::Insert(key) => fresh += insert(&mut filter, &mut keys, key),
            Step::Range(first, count) => {
                for number in 0..u16::from(count) {
                    fresh += insert(&mut filter, &mut keys, first.wrapping_add(number));
                }
            }
            Step::Batch(batch) => {
                let (mut twin, mut new) = (filter.clone(), vec![false; batch.len()]);
                let done = filter.insert_batch(&batch, &mut new);
                let inserted = done.map_or_else(|full| full.inserted, |()| batch.len());
                for (key, new) in batch.iter().zip(new).take(inserted) {
                    assert_eq!(twin.insert(key), Ok(new));
                    fresh += u64::from(new);
                }
                assert!(batch.get(inserted).is_none_or(|key| twin.insert(key).is_err()));
                assert!(twin == filter);
                keys.extend(&batch[..inserted]);
            }
            Step::Reload => {
                let bytes = filter.to_bytes();
                filter = ScalableBloomFilter::from_bytes(&bytes).unwrap();
                assert_eq!(filter.to_bytes(), bytes);
            }
            Step::Clear => {
                filter.clear();
                keys.clear();
                fresh = 0;
            }
        }
        assert_eq!(filter.fresh(), fresh);
        let (last, full) = filter.levels().split_last().unwrap();
        assert!(full.iter().all(|level| level.fresh() == level.capacity()));
        assert!(last.fresh() <= last.capacity() && filter.planned_rate() <= shape.rate());
    }
    assert!(keys.iter().all(|key| filter.contains(key)));
});

/// Inserts a key; returns 1 if it is new. A key that a full filter refuses is not in the set.
fn insert(filter: &mut ScalableBloomFilter<u16>, keys: &mut HashSet<u16>, key: u16) -> u64 {
    let found = filter.contains(&key);
    match filter.insert(&key) {
        Ok(fresh) => {
            assert_eq!(fresh, !found);
            assert!(found || !keys.contains(&key));
            keys.insert(key);
            fresh.into()
        }
        Err(umbel::Full) => 0,
    }
}
