//! Any history of a counting filter agrees with an exact multiset, as long as only present keys are removed. A
//! present key is found, and its count is never too low. A key that `remove` refuses is absent, and the filter
//! is unchanged. Cells anywhere and in lines, of every width.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use std::collections::HashMap;
use umbel::counting::{Anywhere, CellLayout, Counting, InLine, LineShape, Shape, Width};
use umbel::layout::Probing;
use umbel::storage::Heap;
use umbel::{Portable, Saved, bloom};

#[derive(Arbitrary, Debug)]
enum Step {
    Insert(u8),
    Batch(Vec<u8>),
    Remove(u8),
    RemoveBatch(Vec<u8>),
    Merge(Vec<u8>),
    Reload,
    Clear,
}

fuzz_target!(|history: Vec<Step>| {
    for width in [Width::Two, Width::Four, Width::Eight] {
        let positions = bloom::Shape::with(20, 201, 5).unwrap();
        follow::<Anywhere>(Shape::of(positions, width).unwrap(), &history);
        follow::<InLine>(LineShape::with(20, 2, 5, width).unwrap(), &history);
    }
});

type Filter<L> = Counting<u8, Portable, Heap, L>;

fn follow<L: CellLayout>(shape: L::Shape, history: &[Step]) {
    let empty = || Filter::<L>::with(shape, Portable::default()).unwrap();
    let (mut filter, mut keys) = (empty(), HashMap::<u8, u64>::new());
    for step in history {
        match step {
            Step::Insert(key) => {
                let absent = !filter.contains(key);
                assert_eq!(filter.insert(key), absent);
                *keys.entry(*key).or_default() += 1;
            }
            Step::Batch(batch) => {
                let mut fresh = vec![false; batch.len()];
                filter.insert_batch(batch, &mut fresh);
                batch.iter().for_each(|key| *keys.entry(*key).or_default() += 1);
            }
            Step::Remove(key) => remove(&mut filter, &mut keys, *key),
            Step::RemoveBatch(batch) => {
                let mut there = batch.clone();
                there.retain(|key| take(&mut keys, *key));
                let mut removed = vec![false; there.len()];
                filter.remove_batch(&there, &mut removed);
                assert!(removed.into_iter().all(|removed| removed));
            }
            Step::Merge(others) => {
                let mut other = empty();
                other.extend(others);
                filter.merge_with(&other).unwrap();
                others.iter().for_each(|key| *keys.entry(*key).or_default() += 1);
            }
            Step::Reload => filter = Filter::from_bytes(&filter.to_bytes()).unwrap(),
            Step::Clear => {
                filter.clear();
                keys.clear();
            }
        }
        for (key, times) in &keys {
            let least = *times.min(&shape.cell_max());
            assert!(filter.estimated_count(key) >= least, "{key} is lost");
            assert!(filter.count_at_least(key, *times));
        }
    }
    assert!(filter.count_nonzero() <= shape.places());
}

/// Removes a key from the set; returns whether it was present.
fn take(keys: &mut HashMap<u8, u64>, key: u8) -> bool {
    let Some(times) = keys.get_mut(&key) else { return false };
    let there = *times > 0;
    *times -= u64::from(there);
    there
}

/// Removes a present key, or one that the filter reports absent.
fn remove<L: CellLayout>(filter: &mut Filter<L>, keys: &mut HashMap<u8, u64>, key: u8) {
    if take(keys, key) {
        assert!(filter.remove(&key));
    } else if !filter.contains(&key) {
        let before = filter.clone();
        assert!(!filter.remove(&key) && *filter == before);
    }
}
