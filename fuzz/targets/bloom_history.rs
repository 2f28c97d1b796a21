//! Any history of a filter agrees with an exact set: a key in the set is found, `insert` and batches agree with
//! single look-ups, and the array and the shared filter have the same bits. Classic filters, blocked ones of
//! one and of two lines per key, and split-block ones.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use std::collections::HashSet;
use umbel::blocked::{self, Lines};
use umbel::bloom::{self, Bloom};
use umbel::kernels::Digits;
use umbel::layout::StoredLayout;
use umbel::split::{self, Blocks};
use umbel::storage::{Allocate, Array, Heap, LineArray, Own, SharedHeap};
use umbel::{Digest, Portable, Saved, words_for};

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
    let shape = bloom::Shape::for_rate(CAPACITY, RATE).unwrap();
    follow::<Digits, [u64; WORDS]>(shape, &history, |bytes| {
        Bloom::<u16, Portable, Array<WORDS>>::from_bytes(bytes).unwrap()
    });
    for (lines_per_key, probes) in [(1, 6), (2, 3)] {
        let shape = blocked::Shape::with(CAPACITY, 4, lines_per_key, probes).unwrap();
        follow::<Lines, _>(shape, &history, |bytes| {
            Bloom::<u16, Portable, LineArray<32>, Lines>::from_bytes(bytes).unwrap()
        });
    }
    let shape = split::Shape::with(CAPACITY, 8).unwrap();
    follow::<Blocks, _>(shape, &history, |bytes| {
        Bloom::<u16, Portable, LineArray<32>, Blocks>::from_bytes(bytes).unwrap()
    });
});

fn follow<L, B>(
    shape: L::Shape,
    history: &[Step],
    array: impl Fn(&[u8]) -> Bloom<u16, Portable, Own<B>, L>,
) where
    L: StoredLayout<Digest = Digest> + Clone,
    B: AsRef<[u64]> + AsMut<[u64]>,
    Own<B>: Allocate,
{
    let empty = || Bloom::<u16, Portable, Heap, L>::with(shape, Portable::default()).unwrap();
    let (mut heap, mut array) = (empty(), array(&empty().to_bytes()));
    let mut shared: Bloom<u16, Portable, SharedHeap, L> = empty().into();
    let mut keys = HashSet::new();
    for step in history {
        match step {
            Step::Insert(key) => {
                let absent = !heap.contains(key);
                assert_eq!(heap.insert(key), absent);
                assert_eq!(array.insert(key), absent);
                assert_eq!(shared.insert(key), absent);
                assert!(!absent || !keys.contains(key));
                keys.insert(*key);
            }
            Step::Batch(batch) => {
                let mut fresh = [vec![false; batch.len()], vec![false; batch.len()]];
                heap.insert_batch(batch, &mut fresh[0]);
                shared.insert_batch(batch, &mut fresh[1]);
                array.extend(batch);
                assert_eq!(fresh[0], fresh[1]);
                keys.extend(batch);
            }
            Step::Union(others) => {
                let mut other = empty();
                other.extend(others);
                heap.union_with(&other).unwrap();
                shared.union_with(&other).unwrap();
                array.extend(others);
                keys.extend(others);
            }
            Step::Reload => heap = Bloom::from_bytes(&heap.to_bytes()).unwrap(),
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
}
