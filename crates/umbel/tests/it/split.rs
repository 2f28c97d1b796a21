//! The split-block filter against Parquet's definition, and against bytes of other implementations.

use crate::paths::on_every_path;
use proptest::collection::vec;
use proptest::prelude::*;
use umbel::Saved;
use umbel::hash::{Digest, Digester, Portable, Xxh64};
use umbel::split::{Plain, Shape};
use umbel::{AtomicSplitBlockBloomFilter, InvalidBytes, InvalidShape, SplitBlockBloomFilter};
use umbel_laws::split_mix;

/// The eight odd numbers of `BloomFilter.md` in apache/parquet-format.
const SALT: [u32; 8] = [
    0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31,
];

/// Blocks of eight 32-bit words, written from the specification.
#[derive(Clone, Debug, PartialEq)]
struct Model(Vec<[u32; 8]>);

impl Model {
    fn new(blocks: u64) -> Self {
        Self(vec![[0; 8]; blocks as usize])
    }

    fn of(blocks: u64, keys: &[u64]) -> Self {
        let mut model = Self::new(blocks);
        for &key in keys {
            model.insert(key);
        }
        model
    }

    fn place(&self, key: u64) -> (usize, [u32; 8]) {
        let hash = Xxh64::default().digest(&key.to_le_bytes()).bits();
        let block = ((hash >> 32) * self.0.len() as u64) >> 32;
        (block as usize, SALT.map(|salt| 1 << ((hash as u32).wrapping_mul(salt) >> 27)))
    }

    fn contains(&self, key: u64) -> bool {
        let (block, mask) = self.place(key);
        (0..8).all(|word| self.0[block][word] & mask[word] != 0)
    }

    fn insert(&mut self, key: u64) -> bool {
        let fresh = !self.contains(key);
        let (block, mask) = self.place(key);
        (0..8).for_each(|word| self.0[block][word] |= mask[word]);
        fresh
    }

    fn combine(&mut self, other: &Self, with: impl Fn(u32, u32) -> u32) {
        for (block, other) in self.0.iter_mut().zip(&other.0) {
            for (word, other) in block.iter_mut().zip(other) {
                *word = with(*word, *other);
            }
        }
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.iter().flatten().flat_map(|word| word.to_le_bytes()).collect()
    }
}

fn with_blocks(blocks: u64) -> SplitBlockBloomFilter<u64> {
    SplitBlockBloomFilter::with(Shape::with(0, blocks).unwrap(), Plain).unwrap()
}

fn bytes_of<T: ?Sized>(filter: &SplitBlockBloomFilter<T>) -> Vec<u8> {
    filter.words().iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// An operation on a filter.
#[derive(Clone, Debug)]
enum Step {
    Insert(u64),
    InsertBatch(Vec<u64>),
    Extend(Vec<u64>),
    UnionWith(Vec<u64>),
    IntersectWith(Vec<u64>),
    Reload,
    ThroughParquet,
    Fold,
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    // Few different keys, so that they are repeated.
    let keys = || vec(0_u64..500, 0..100);
    prop_oneof![
        8 => (0_u64..500).prop_map(Step::Insert),
        3 => keys().prop_map(Step::InsertBatch),
        3 => keys().prop_map(Step::Extend),
        2 => keys().prop_map(Step::UnionWith),
        1 => keys().prop_map(Step::IntersectWith),
        1 => Just(Step::Reload),
        1 => Just(Step::ThroughParquet),
        1 => Just(Step::Fold),
        1 => Just(Step::Clear),
    ]
}

proptest! {
    #![proptest_config(crate::cases(400))]

    #[test]
    fn any_history_leaves_exactly_the_bits_of_the_definition(
        blocks in prop_oneof![1_u64..40, Just(64), Just(1_000)],
        history in vec(step(), 0..40),
    ) {
        let (mut filter, mut model) = (with_blocks(blocks), Model::new(blocks));
        for step in history {
            let blocks = model.0.len() as u64;
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
                    model.combine(&Model::of(blocks, &keys), |one, other| one | other);
                }
                Step::UnionWith(keys) => {
                    let mut other = with_blocks(blocks);
                    other.extend(&keys);
                    filter.union_with(&other).unwrap();
                    model.combine(&Model::of(blocks, &keys), |one, other| one | other);
                }
                Step::IntersectWith(keys) => {
                    let mut other = with_blocks(blocks);
                    other.extend(&keys);
                    filter.intersect_with(&other).unwrap();
                    model.combine(&Model::of(blocks, &keys), |one, other| one & other);
                }
                Step::Reload => {
                    filter = SplitBlockBloomFilter::from_bytes(&filter.to_bytes()).unwrap();
                }
                Step::ThroughParquet => {
                    filter = SplitBlockBloomFilter::from_parquet(&filter.to_parquet()).unwrap();
                }
                Step::Fold => {
                    let folded = filter.fold();
                    if blocks % 2 == 1 {
                        prop_assert_eq!(folded, Err(not_even(blocks)));
                    } else {
                        folded.unwrap();
                        let mut half = Model::new(blocks / 2);
                        for first in [0, 1] {
                            let every_other = model.0.iter().skip(first).step_by(2).copied();
                            half.combine(&Model(every_other.collect()), |one, other| one | other);
                        }
                        model = half;
                    }
                }
                Step::Clear => {
                    filter.clear();
                    model = Model::new(blocks);
                }
            }
        }
        prop_assert_eq!(bytes_of(&filter), model.bytes());
        let keys: Vec<u64> = (0..600).collect();
        let mut found = vec![false; keys.len()];
        filter.contains_batch(&keys, &mut found);
        for (key, found) in keys.into_iter().zip(found) {
            prop_assert_eq!(found, model.contains(key));
            prop_assert_eq!(found, filter.contains(&key));
        }
    }

    #[test]
    fn many_threads_share_the_bits_of_a_filter_for_one(
        blocks in 1_u64..200,
        inserted in vec(0_u64..4_000, 0..600),
        keys in vec(0_u64..4_000, 0..300),
    ) {
        let mut plain = with_blocks(blocks);
        let shape = *plain.shape();
        let shared = AtomicSplitBlockBloomFilter::<u64>::with(shape, Plain).unwrap();
        let (singly, batched) = inserted.split_at(inserted.len() / 2);
        for key in singly {
            prop_assert_eq!(plain.insert(key), shared.insert(key));
        }
        let mut fresh = [vec![false; batched.len()], vec![false; batched.len()]];
        plain.insert_batch(batched, &mut fresh[0]);
        shared.insert_batch(batched, &mut fresh[1]);
        prop_assert_eq!(&fresh[0], &fresh[1]);
        prop_assert!(shared.snapshot() == plain);
        prop_assert_eq!(shared.to_parquet(), plain.to_parquet());
        let expected: Vec<bool> = keys.iter().map(|key| plain.contains(key)).collect();
        let singly: Vec<bool> = keys.iter().map(|key| shared.contains(key)).collect();
        prop_assert_eq!(&singly, &expected);
        let mut found = vec![true; keys.len()];
        shared.contains_batch(&keys, &mut found);
        prop_assert_eq!(&found, &expected);
        let digests: Vec<Digest> = keys.iter().map(|key| Plain.digest(key)).collect();
        plain.contains_digests(&digests, &mut found);
        prop_assert_eq!(&found, &expected);
        (&shared).extend(&keys);
        plain.extend(&keys);
        prop_assert!(AtomicSplitBlockBloomFilter::from(plain) == shared);
    }

    #[test]
    fn folded_filters_have_the_bits_of_smaller_ones(
        odd in (0_u64..10).prop_map(|half| 2 * half + 1),
        times in 0_u32..8,
        keys in vec(any::<u64>(), 0..500),
        rate in prop_oneof![Just(0.3), Just(0.01), Just(1e-4)],
    ) {
        let mut filter = with_blocks(odd << times);
        filter.extend(&keys);
        let folds = filter.fold_to_rate(rate).unwrap();
        prop_assert!(folds == 0 || filter.expected_rate() <= rate);
        prop_assert!(keys.iter().all(|key| filter.contains(key)));
        for blocks in (folds..=times).map(|times_left| odd << (times - times_left)) {
            prop_assert_eq!(bytes_of(&filter), Model::of(blocks, &keys).bytes());
            prop_assert_eq!(filter.fold().is_ok(), blocks % 2 == 0);
        }
        prop_assert_eq!(filter.fold(), Err(not_even(odd)));
    }

    #[test]
    fn any_bytes_are_a_filter_of_parquet_or_an_error(
        head in prop_oneof![Just(vec![]), Just(vec![0x15, 0x40, 0x1c]), vec(any::<u8>(), 0..8)],
        tail in vec(prop_oneof![0_u8..32, any::<u8>()], 0..100),
    ) {
        let bytes = [head, tail].concat();
        if let Ok(filter) = SplitBlockBloomFilter::<[u8]>::from_parquet(&bytes) {
            let again = filter.to_parquet();
            prop_assert!(bytes.ends_with(&bytes_of(&filter)));
            prop_assert!(SplitBlockBloomFilter::from_parquet(&again).unwrap() == filter);
        }
    }
}

/// The law compares the rate with the set bits; this test compares it with the plan, whose number of blocks is
/// tight. Filters differ by chance, so their spread is the sigma.
fn not_even(got: u64) -> InvalidShape {
    InvalidShape::NotAMultiple { what: "blocks", got, of: 2 }
}

#[test]
fn absent_keys_are_found_at_the_rate_of_the_plan() {
    const FILTERS: u64 = 40;
    const QUERIES: u64 = 250_000;
    for (items, rate) in [(60, 0.3), (20, 0.01), (1_000, 0.1), (1_000, 0.01), (10_000, 0.001)] {
        let shape = Shape::for_rate_tight(items, rate).unwrap();
        let rates: Vec<f64> = (0..FILTERS)
            .map(|number| {
                let mut filter = SplitBlockBloomFilter::<u64>::with(shape, Plain).unwrap();
                let first = number << 32;
                filter.extend(first..first + items);
                let absent: Vec<u64> = (first + items..first + items + QUERIES).collect();
                let mut found = vec![false; absent.len()];
                filter.contains_batch(&absent, &mut found);
                found.iter().filter(|found| **found).count() as f64 / QUERIES as f64
            })
            .collect();
        let filters = FILTERS as f64;
        let mean = rates.iter().sum::<f64>() / filters;
        let variance =
            rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (filters - 1.0);
        let (expected, sigma) = (shape.expected_rate(items), (variance / filters).sqrt());
        assert!(
            (mean - expected).abs() <= 5.0 * sigma,
            "{items} {rate}: {mean} {expected} {sigma}"
        );
    }
}

#[test]
fn every_path_gives_the_same_bits_and_answers() {
    // Within the cache and beyond it, with a power of two and other numbers.
    for (blocks, inserted) in [(1, 20), (7, 200), (64, 1_000), (100_003, 300_000)] {
        let keys: Vec<u64> = (0..inserted).map(split_mix).collect();
        let asked: Vec<u64> = (0..2 * inserted).map(split_mix).collect();
        let mut model = Model::new(blocks);
        let fresh: Vec<bool> = keys.iter().map(|&key| model.insert(key)).collect();
        let found: Vec<bool> = asked.iter().map(|&key| model.contains(key)).collect();
        on_every_path(|path| {
            let (mut singly, mut batched, mut extended) =
                (with_blocks(blocks), with_blocks(blocks), with_blocks(blocks));
            assert!(keys.iter().map(|key| singly.insert(key)).eq(fresh.iter().copied()));
            let mut answers = vec![false; keys.len()];
            batched.insert_batch(&keys, &mut answers);
            assert!(answers == fresh, "{path:?} {blocks}");
            extended.extend(&keys);
            assert!(bytes_of(&singly) == model.bytes(), "{path:?} {blocks}");
            assert!(batched == singly && extended == singly, "{path:?} {blocks}");
            assert!(asked.iter().map(|key| singly.contains(key)).eq(found.iter().copied()));
            let mut answers = vec![false; asked.len()];
            singly.contains_batch(&asked, &mut answers);
            assert!(answers == found, "{path:?} {blocks}");
        });
    }
}

/// What parquet-mr wrote for a column of "a0" to "a9"; a fixture of arrow-rs.
#[test]
fn ten_keys_have_the_bytes_that_parquet_mr_wrote() {
    let written = [
        200, 1, 80, 20, 64, 68, 8, 109, 6, 37, 4, 67, 144, 80, 96, 32, 8, 132, 43, 33, 0, 5, 99,
        65, 2, 0, 224, 44, 64, 78, 96, 4,
    ];
    let mut filter =
        SplitBlockBloomFilter::<str>::with(Shape::with(10, 1).unwrap(), Plain).unwrap();
    filter.extend((0..10).map(|number| format!("a{number}")));
    assert_eq!(bytes_of(&filter), written);
    let header = [0x15, 0x40, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0];
    assert_eq!(filter.to_parquet(), [&header[..], &written].concat());
}

/// The keys of `bloom_filter.xxhash.bin` in apache/parquet-testing, which has 32 bits set in 1,024 bytes: four
/// keys that share no bit.
#[test]
fn four_keys_set_the_32_bits_that_parquet_testing_has() {
    let mut filter =
        SplitBlockBloomFilter::<str>::with(Shape::with(4, 32).unwrap(), Plain).unwrap();
    filter.extend(["hello", "parquet", "bloom", "filter"]);
    assert_eq!((filter.bytes(), filter.count_ones(), filter.estimated_len()), (1024, 32, 4));
    let bytes = filter.to_parquet();
    assert_eq!(bytes.len(), 16 + 1024);
    assert_eq!(bytes[..4], [0x15, 0x80, 0x10, 0x1c]);
}

/// A failure here means that filters saved yesterday would lose their keys: change the code back.
/// The numbers are those of `docs/hashing.md`, computed by a second implementation in another
/// language.
#[test]
fn a_filter_keeps_its_words_and_its_mistakes() {
    let mut filter = SplitBlockBloomFilter::<u64>::new(1_000, 0.01);
    filter.extend(0..1_000_u64);
    assert_eq!(filter.shape().blocks(), 64);
    let digest = Plain.digest(&bytes_of(&filter));
    assert_eq!(digest, Digest::new(0xf42d_7efd_e477_4601), "the words have changed");
    let mistakes: Vec<u64> = (1_000..).filter(|key| filter.contains(key)).take(10).collect();
    assert_eq!(mistakes, [1912, 2138, 2907, 3145, 4350, 4488, 4689, 5848, 6654, 8252]);
}

/// The example of `docs/hashing.md`.
#[test]
fn a_key_has_the_documented_bits() {
    let mut filter =
        SplitBlockBloomFilter::<str>::with(Shape::with(1, 64).unwrap(), Plain).unwrap();
    filter.insert("umbel");
    assert_eq!(Plain.digest("umbel"), Digest::new(0x4001_3a1c_7163_de6b));
    let mut words = [0_u32; 64 * 8];
    for (word, bit) in [22, 28, 29, 27, 2, 5, 29, 1].into_iter().enumerate() {
        words[16 * 8 + word] = 1 << bit;
    }
    assert!(bytes_of(&filter).into_iter().eq(words.into_iter().flat_map(u32::to_le_bytes)));
}

#[test]
fn a_column_of_another_type_finds_nothing() {
    let mut filter = SplitBlockBloomFilter::<i32>::new(10, 1e-4);
    filter.extend([1, 2, 3]);
    let bytes = filter.to_parquet();
    let small = SplitBlockBloomFilter::<u8>::from_parquet(&bytes).unwrap();
    assert!(small.contains(&1) && small.contains(&2)); // INT32 too
    let long = SplitBlockBloomFilter::<i64>::from_parquet(&bytes).unwrap();
    assert!(!long.contains(&1) && !long.contains(&2));
}

#[test]
fn filters_without_a_type_of_parquet_take_any_hasher() {
    let mut filter = SplitBlockBloomFilter::<u128, Portable>::new(100, 0.01);
    assert!(filter.insert(&u128::MAX) && filter.contains(&u128::MAX));
    let bytes = filter.to_bytes();
    assert!(SplitBlockBloomFilter::<u128, Portable>::from_bytes(&bytes).unwrap() == filter);
    let error = SplitBlockBloomFilter::<u64>::from_bytes(&bytes).map(|_| ()).unwrap_err();
    assert_eq!(error, InvalidBytes::Hash { expected: 9, got: 1 });
}

#[test]
fn hostile_capacities_and_rates_are_refused_before_memory_is_touched() {
    for capacity in [u64::MAX, 1 << 58, 1 << 40] {
        for rate in [0.5, 0.01, 1e-9] {
            assert!(SplitBlockBloomFilter::<u64>::try_new(capacity, rate).is_err());
            assert!(AtomicSplitBlockBloomFilter::<u64>::try_new(capacity, rate).is_err());
        }
    }
    for rate in [0.0, -0.0, 1.0, f64::NAN, f64::INFINITY] {
        let error = SplitBlockBloomFilter::<u64>::try_new(10, rate).map(|_| ()).unwrap_err();
        assert!(matches!(error, InvalidShape::RateOutOfRange { .. }), "{error}");
    }
}

#[test]
fn no_capacity_is_an_empty_filter_that_works() {
    let mut filter = SplitBlockBloomFilter::<u64>::new(0, 0.01);
    assert_eq!((filter.bytes(), filter.expected_rate(), filter.estimated_len()), (32, 0.0, 0));
    assert!(!filter.contains(&1) && filter.insert(&1) && filter.contains(&1));
}
