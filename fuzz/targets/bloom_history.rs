//! Any history of a filter agrees with an exact set: what is in the set is found, `insert` and
//! batches agree with single look-ups, and the array and the shared filter have the same bits.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use std::collections::HashSet;
use umbel::{ArrayBloomFilter, AtomicBloomFilter, BloomFilter, words_for};

const CAPACITY: u64 = 200;
const RATE: f64 = 0.01;
const WORDS: usize = words_for(CAPACITY, RATE);

#[derive(Arbitrary, Debug)]
enum Step {
    Insert(u16),
    Batch(Vec<u16>),
    Union(Vec<u16>),
    Reload,
    Clear,
}

fuzz_target!(|history: Vec<Step>| {
    let mut keys = HashSet::new();
    let mut heap = BloomFilter::<u16>::new(CAPACITY, RATE);
    let mut array = ArrayBloomFilter::<u16, WORDS>::new(CAPACITY, RATE);
    let mut shared = AtomicBloomFilter::<u16>::new(CAPACITY, RATE);
    for step in history {
        match step {
            Step::Insert(key) => {
                let absent = !heap.contains(&key);
                assert_eq!(heap.insert(&key), absent);
                assert_eq!(array.insert(&key), absent);
                assert_eq!(shared.insert(&key), absent);
                assert!(!absent || !keys.contains(&key));
                keys.insert(key);
            }
            Step::Batch(batch) => {
                let mut fresh = [vec![false; batch.len()], vec![false; batch.len()]];
                heap.insert_batch(&batch, &mut fresh[0]);
                shared.insert_batch(&batch, &mut fresh[1]);
                array.extend(&batch);
                assert_eq!(fresh[0], fresh[1]);
                keys.extend(batch);
            }
            Step::Union(others) => {
                let mut other = BloomFilter::<u16>::new(CAPACITY, RATE);
                other.extend(&others);
                heap.union_with(&other).unwrap();
                shared.union_with(&other.into()).unwrap();
                array.extend(&others);
                keys.extend(others);
            }
            Step::Reload => heap = BloomFilter::from_bytes(&heap.to_bytes()).unwrap(),
            Step::Clear => {
                heap.clear();
                array.clear();
                shared.clear();
                keys.clear();
            }
        }
        assert_eq!(heap.words(), array.words());
        assert!(shared.snapshot() == heap);
        assert!(keys.iter().all(|key| heap.contains(key) && shared.contains(key)));
    }
});
