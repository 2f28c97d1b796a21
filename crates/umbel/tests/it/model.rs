//! A filter against sets of positions computed the slow way.

use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;
use umbel::bloom::Shape;
use umbel::hash::{Digest, Digester};
use umbel::{ArrayBloomFilter, AtomicBloomFilter, BloomFilter, Keyed, Portable};
use umbel_laws::split_mix;

/// What happens to a filter.
#[derive(Clone, Debug)]
enum Step {
    Insert(u64),
    InsertBatch(Vec<u64>),
    Extend(Vec<u64>),
    UnionWith(Vec<u64>),
    IntersectWith(Vec<u64>),
    Reload,
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    // Few different keys, so that they meet again.
    let keys = || vec(0_u64..500, 0..100);
    prop_oneof![
        8 => (0_u64..500).prop_map(Step::Insert),
        3 => keys().prop_map(Step::InsertBatch),
        3 => keys().prop_map(Step::Extend),
        2 => keys().prop_map(Step::UnionWith),
        1 => keys().prop_map(Step::IntersectWith),
        1 => Just(Step::Reload),
        1 => Just(Step::Clear),
    ]
}

/// The set of positions, straight from the definition in `docs/hashing.md`.
struct Model {
    shape: Shape,
    set: BTreeSet<u64>,
}

impl Model {
    fn positions(&self, key: u64) -> Vec<u64> {
        let mut fraction = u128::from(Portable::default().digest(&key).bits() | 1);
        let bits = u128::from(self.shape.bits());
        (0..self.shape.probes())
            .map(|_| {
                let scaled = fraction * bits;
                fraction = scaled & u128::from(u64::MAX);
                (scaled >> 64) as u64
            })
            .collect()
    }

    fn contains(&self, key: u64) -> bool {
        self.positions(key).iter().all(|position| self.set.contains(position))
    }

    fn insert(&mut self, key: u64) -> bool {
        let fresh = !self.contains(key);
        self.set.extend(self.positions(key));
        fresh
    }

    fn of(shape: Shape, keys: &[u64]) -> Self {
        let mut model = Self { shape, set: BTreeSet::new() };
        for &key in keys {
            model.insert(key);
        }
        model
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_history_leaves_exactly_the_bits_of_the_model(
        items in 1_u64..300,
        rate in prop_oneof![Just(0.3), Just(0.05), Just(0.001), Just(1e-9)],
        history in vec(step(), 0..40),
    ) {
        let shape = Shape::for_rate(items, rate).unwrap();
        let make = || BloomFilter::<u64>::with(shape, Portable::default()).unwrap();
        let (mut filter, mut model) = (make(), Model::of(shape, &[]));
        for step in history {
            match step {
                Step::Insert(key) => {
                    prop_assert_eq!(filter.contains(&key), model.contains(key));
                    prop_assert_eq!(filter.insert(&key), model.insert(key));
                }
                Step::InsertBatch(keys) => {
                    let mut fresh = vec![false; keys.len()];
                    filter.insert_batch(&keys, &mut fresh);
                    let expected: Vec<bool> = keys.iter().map(|&key| model.insert(key)).collect();
                    prop_assert_eq!(fresh, expected);
                }
                Step::Extend(keys) => {
                    filter.extend(&keys);
                    model.set.append(&mut Model::of(shape, &keys).set);
                }
                Step::UnionWith(keys) => {
                    let mut other = make();
                    other.extend(&keys);
                    filter.union_with(&other).unwrap();
                    model.set.append(&mut Model::of(shape, &keys).set);
                }
                Step::IntersectWith(keys) => {
                    let mut other = make();
                    other.extend(&keys);
                    filter.intersect_with(&other).unwrap();
                    let other = Model::of(shape, &keys).set;
                    model.set.retain(|position| other.contains(position));
                }
                Step::Reload => filter = BloomFilter::from_bytes(&filter.to_bytes()).unwrap(),
                Step::Clear => {
                    filter.clear();
                    model.set.clear();
                }
            }
        }
        let bits: BTreeSet<u64> = (0..shape.words() * 64)
            .filter(|&bit| filter.words()[bit as usize / 64] >> (bit % 64) & 1 == 1)
            .collect();
        prop_assert_eq!(&bits, &model.set);
        prop_assert_eq!(filter.count_ones(), model.set.len() as u64);
        prop_assert_eq!(filter.is_empty(), model.set.is_empty());
        let keys: Vec<u64> = (0..600).collect();
        let mut found = vec![false; keys.len()];
        filter.contains_batch(&keys, &mut found);
        for (key, found) in keys.into_iter().zip(found) {
            prop_assert_eq!(found, model.contains(key));
            prop_assert_eq!(found, filter.contains(&key));
        }
    }

    #[test]
    fn batches_of_any_mixture_answer_as_single_calls_do(
        probes in 1_u32..=64,
        words in 1_u64..200,
        inserted in 0_usize..2_000,
        keys in vec(0_u64..4_000, 0..300),
    ) {
        let shape = Shape::with(1, words * 64 - 1, probes).unwrap();
        let mut plain = BloomFilter::<u64>::with(shape, Portable::default()).unwrap();
        let shared = AtomicBloomFilter::<u64>::with(shape, Portable::default()).unwrap();
        for key in 0..inserted as u64 {
            prop_assert_eq!(plain.insert(&key), shared.insert(&key));
        }
        let expected: Vec<bool> = keys.iter().map(|key| plain.contains(key)).collect();
        let mut found = vec![true; keys.len()];
        plain.contains_batch(&keys, &mut found);
        prop_assert_eq!(&found, &expected);
        shared.contains_batch(&keys, &mut found);
        prop_assert_eq!(&found, &expected);
        let digests: Vec<Digest> = keys.iter().map(|key| plain.hasher().digest(key)).collect();
        plain.contains_digests(&digests, &mut found);
        prop_assert_eq!(&found, &expected);
        shared.contains_digests(&digests, &mut found);
        prop_assert_eq!(&found, &expected);
        let mut fresh = [vec![false; keys.len()], vec![false; keys.len()]];
        plain.insert_digests(&digests, &mut fresh[0]);
        shared.insert_digests(&digests, &mut fresh[1]);
        prop_assert_eq!(&fresh[0], &fresh[1]);
        prop_assert!(shared.snapshot() == plain);
    }

    #[test]
    fn an_array_has_the_bits_of_a_filter_in_memory(keys in vec(any::<u64>(), 0..200)) {
        const WORDS: usize = umbel::words_for(100, 0.01);
        let mut heap = BloomFilter::<u64>::new(100, 0.01);
        let mut array = ArrayBloomFilter::<u64, WORDS>::new(100, 0.01);
        for key in &keys {
            prop_assert_eq!(heap.insert(key), array.insert(key));
        }
        prop_assert_eq!(heap.shape(), array.shape());
        prop_assert_eq!(heap.words(), array.words());
        prop_assert_eq!(heap.to_bytes(), array.to_bytes());
    }

    #[test]
    fn owned_and_borrowed_keys_are_one_key(text in ".*", bytes in vec(any::<u8>(), 0..300)) {
        for hasher in [Keyed::new([7; 16]), Keyed::new([8; 16])] {
            let mut filter = BloomFilter::<String, Keyed>::with_hasher(10, 0.01, hasher);
            filter.insert(text.as_str());
            prop_assert!(filter.contains(&text));
        }
        let mut filter = BloomFilter::<Vec<u8>>::new(10, 0.01);
        filter.insert(&bytes);
        prop_assert!(filter.contains(&bytes[..]));
        let mut filter = BloomFilter::<str>::new(10, 0.01);
        filter.extend([text.clone()]);
        filter.extend([text.as_str()]);
        prop_assert!(filter.contains(text.as_str()));
    }
}

/// Filters of more than 2 MiB answer batches by another road than small ones.
#[test]
fn large_filters_answer_batches_as_single_calls_do() {
    let words = (3 << 20) / 8;
    for probes in [1, 2, 3, 4, 7, 11, 12, 64] {
        let shape = Shape::with(1, words * 64 - 1, probes).unwrap();
        let mut plain = BloomFilter::<u64>::with(shape, Portable::default()).unwrap();
        let shared = AtomicBloomFilter::<u64>::with(shape, Portable::default()).unwrap();
        // About half of the bits, so that absent keys are left at every position.
        let inserted = words * 44 / u64::from(probes);
        let keys: Vec<u64> = (0..inserted).collect();
        let mut fresh = [vec![false; keys.len()], vec![false; keys.len()]];
        plain.insert_batch(&keys, &mut fresh[0]);
        shared.insert_batch(&keys, &mut fresh[1]);
        let mut one_by_one = BloomFilter::<u64>::with(shape, Portable::default()).unwrap();
        let expected: Vec<bool> = keys.iter().map(|key| one_by_one.insert(key)).collect();
        assert!(fresh[0] == expected && fresh[1] == expected, "{probes} probes");
        assert!(plain == one_by_one && shared.snapshot() == one_by_one);
        let mut extended = BloomFilter::<u64>::with(shape, Portable::default()).unwrap();
        extended.extend(&keys);
        assert!(extended == plain);
        // Stretches of present keys, of absent ones and of both, of every length up to four groups.
        for len in (0..=130).chain([1_000, 5_000]) {
            for pattern in 0..4 {
                let key = |i: u64| match pattern {
                    0 => split_mix(i) % inserted,
                    1 => inserted + i,
                    2 => split_mix(i) % (2 * inserted),
                    _ if (i / 100).is_multiple_of(2) => i,
                    _ => inserted + i,
                };
                let keys: Vec<u64> = (0..len).map(key).collect();
                let expected: Vec<bool> = keys.iter().map(|key| plain.contains(key)).collect();
                let mut found = vec![pattern == 1; keys.len()];
                plain.contains_batch(&keys, &mut found);
                assert!(found == expected, "{probes} probes, {len} keys, pattern {pattern}");
                shared.contains_batch(&keys, &mut found);
                assert!(found == expected, "shared: {probes} probes, {len} keys");
            }
        }
    }
}
