//! Any history of a cuckoo filter agrees with an exact multiset: a key that was inserted and not removed is
//! found and counted, a refused operation changes nothing, and the words stay valid. The array has the same
//! words.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use std::collections::HashMap;
use umbel::cuckoo::{ArrayCuckooFilter, Shape, words_for};
use umbel::{CuckooFilter, Full, Incompatible, Portable, Saved};

const CAPACITY: u64 = 60;
const RATE: f64 = 0.01;
const WORDS: usize = words_for(CAPACITY, RATE);

#[derive(Arbitrary, Debug)]
enum Step {
    Insert(u8),
    InsertBatch(Vec<u8>),
    Remove(u8),
    RemoveBatch(Vec<u8>),
    Merge(Vec<u8>),
    Reload,
    Clear,
}

#[derive(Arbitrary, Debug)]
struct Input {
    buckets: u8,
    fingerprint_bits: u8,
    history: Vec<Step>,
}

fuzz_target!(|input: Input| {
    let bits = 4 + u32::from(input.fingerprint_bits % 29);
    let shape = Shape::with(0, 1 + u64::from(input.buckets % 40), bits).unwrap();
    follow(CuckooFilter::with(shape, Portable::default()).unwrap(), &input.history);
    twins(&input.history);
});

/// A filter and the count of each key. Keys are removed only as often as they are present.
fn follow(mut filter: CuckooFilter<u8>, history: &[Step]) {
    let (shape, mut keys) = (*filter.shape(), HashMap::<u8, u64>::new());
    let mut len = 0;
    for step in history {
        match step {
            Step::Insert(key) => {
                let (before, found) = (filter.words().to_vec(), filter.contains(key));
                match filter.insert(key) {
                    Ok(fresh) => {
                        assert_eq!(fresh, !found);
                        *keys.entry(*key).or_default() += 1;
                        len += 1;
                    }
                    Err(Full) => assert_eq!(filter.words(), before),
                }
            }
            Step::InsertBatch(batch) => {
                let done = filter.insert_batch(batch, &mut vec![false; batch.len()]);
                let inserted = done.map_or_else(|full| full.inserted, |()| batch.len());
                batch[..inserted].iter().for_each(|key| *keys.entry(*key).or_default() += 1);
                len += inserted as u64;
            }
            Step::Remove(key) => {
                if let Some(times) = keys.get_mut(key).filter(|times| **times > 0) {
                    assert!(filter.remove(key));
                    *times -= 1;
                    len -= 1;
                }
            }
            Step::RemoveBatch(batch) => {
                let mut there = |key: &&u8| {
                    let times = keys.get_mut(*key).filter(|times| **times > 0);
                    times.map(|times| *times -= 1).is_some()
                };
                let batch: Vec<u8> = batch.iter().filter(&mut there).copied().collect();
                let mut removed = vec![false; batch.len()];
                filter.remove_batch(&batch, &mut removed);
                assert!(removed.iter().all(|removed| *removed));
                len -= batch.len() as u64;
            }
            Step::Merge(others) => {
                let mut other = CuckooFilter::with(shape, Portable::default()).unwrap();
                if other.insert_batch(others, &mut vec![false; others.len()]).is_ok() {
                    let before = filter.clone();
                    match filter.merge_with(&other) {
                        Ok(()) => others.iter().for_each(|key| *keys.entry(*key).or_default() += 1),
                        Err(error) => {
                            assert!(matches!(error, Incompatible::Room { .. }) && filter == before);
                        },
                    }
                }
                len = filter.len();
            }
            Step::Reload => filter = CuckooFilter::from_bytes(&filter.to_bytes()).unwrap(),
            Step::Clear => {
                filter.clear();
                keys.clear();
                len = 0;
            }
        }
        filter.validate().unwrap();
        assert_eq!((filter.len(), keys.values().sum::<u64>()), (len, len));
        assert!(keys.iter().all(|(key, times)| filter.estimated_count(key) >= *times));
        assert!(keys.iter().all(|(key, times)| *times == 0 || filter.contains(key)));
    }
    for (key, times) in keys {
        assert!((0..times).all(|_| filter.remove(&key)), "a key is lost");
    }
    assert!(filter.is_empty() && filter.words().iter().all(|word| *word == 0));
}

/// The heap and the array.
fn twins(history: &[Step]) {
    let mut heap = CuckooFilter::<u8>::new(CAPACITY, RATE);
    let mut array = ArrayCuckooFilter::<u8, WORDS>::new(CAPACITY, RATE);
    for step in history {
        match step {
            Step::Insert(key) => assert_eq!(heap.insert(key), array.insert(key)),
            Step::Remove(key) => assert_eq!(heap.remove(key), array.remove(key)),
            _ => {}
        }
        assert_eq!(heap.words(), array.words());
    }
}
