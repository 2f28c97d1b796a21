//! Filters against a slow model of their bits, and against each other.

use crate::positions::positions;
use proptest::collection::vec;
use proptest::prelude::*;
use umbel::Saved;
use umbel::bloom::{Bloom, Shape};
use umbel::hash::{Digest, Digester};
use umbel::kernels::Digits;
use umbel::layout::{Layout, Probing, StoredLayout};
use umbel::sizing::Shape as _;
use umbel::storage::{Heap, Own, SharedHeap};
use umbel::{ArrayBloomFilter, Keyed, Portable};
use umbel_laws::split_mix;

/// An operation on a filter.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Insert(u64),
    InsertBatch(Vec<u64>),
    Extend(Vec<u64>),
    UnionWith(Vec<u64>),
    IntersectWith(Vec<u64>),
    Reload,
    Clear,
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    // Few different keys, so that they are repeated.
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

/// The bits of a filter, by the positions that a digest has.
pub(crate) struct Model<P> {
    positions: P,
    pub(crate) words: Vec<u64>,
}

impl<P: Fn(Digest) -> Vec<u64>> Model<P> {
    pub(crate) fn new(words: u64, positions: P) -> Self {
        Self { positions, words: vec![0; words as usize] }
    }

    pub(crate) fn contains(&self, digest: Digest) -> bool {
        let mut positions = (self.positions)(digest).into_iter();
        positions.all(|position| self.words[position as usize / 64] >> (position % 64) & 1 == 1)
    }

    pub(crate) fn insert(&mut self, digest: Digest) -> bool {
        let fresh = !self.contains(digest);
        for position in (self.positions)(digest) {
            self.words[position as usize / 64] |= 1 << (position % 64);
        }
        fresh
    }
}

type Plain<T, L> = Bloom<T, Portable, Heap, L>;

fn with<S: umbel::storage::AnySize, L: Layout + Default>(
    shape: L::Shape,
) -> Bloom<u64, Portable, S, L> {
    Bloom::with(shape, Portable::default()).unwrap()
}

fn digest(key: u64) -> Digest {
    Portable::default().digest(&key)
}

/// Any history leaves exactly the bits, and gives exactly the answers, of the model.
pub(crate) fn follow<L: StoredLayout<Digest = Digest>>(
    shape: L::Shape,
    positions: impl Fn(Digest) -> Vec<u64>,
    history: Vec<Step>,
) -> Result<(), TestCaseError> {
    let empty = || Model::new(shape.words(), &positions);
    let other_with = |keys: &[u64]| {
        let (mut filter, mut model) = (with::<Heap, L>(shape), empty());
        filter.extend(keys);
        keys.iter().for_each(|key| _ = model.insert(digest(*key)));
        (filter, model)
    };
    let (mut filter, mut model) = other_with(&[]);
    for step in history {
        match step {
            Step::Insert(key) => {
                prop_assert_eq!(filter.contains(&key), model.contains(digest(key)));
                prop_assert_eq!(filter.insert(&key), model.insert(digest(key)));
            }
            Step::InsertBatch(keys) => {
                let mut fresh = vec![false; keys.len()];
                filter.insert_batch(&keys, &mut fresh);
                let expected = keys.iter().map(|key| model.insert(digest(*key)));
                prop_assert_eq!(fresh, expected.collect::<Vec<bool>>());
            }
            Step::Extend(keys) => {
                filter.extend(&keys);
                keys.iter().for_each(|key| _ = model.insert(digest(*key)));
            }
            Step::UnionWith(keys) => {
                let (other, other_model) = other_with(&keys);
                filter.union_with(&other).unwrap();
                model.words.iter_mut().zip(other_model.words).for_each(|(word, w)| *word |= w);
            }
            Step::IntersectWith(keys) => {
                let (other, other_model) = other_with(&keys);
                filter.intersect_with(&other).unwrap();
                model.words.iter_mut().zip(other_model.words).for_each(|(word, w)| *word &= w);
            }
            Step::Reload => filter = Bloom::from_bytes(&filter.to_bytes()).unwrap(),
            Step::Clear => {
                filter.clear();
                model = empty();
            }
        }
    }
    prop_assert_eq!(filter.words(), &model.words);
    let ones: u32 = model.words.iter().map(|word| word.count_ones()).sum();
    prop_assert_eq!(filter.count_ones(), u64::from(ones));
    prop_assert_eq!(filter.is_empty(), ones == 0);
    let keys: Vec<u64> = (0..600).collect();
    let mut found = vec![false; keys.len()];
    filter.contains_batch(&keys, &mut found);
    for (key, found) in keys.into_iter().zip(found) {
        prop_assert_eq!(found, model.contains(digest(key)));
        prop_assert_eq!(found, filter.contains(&key));
    }
    Ok(())
}

/// All calls of a filter for many threads have the same results as those of a filter for one thread, and
/// batches have those of single calls.
pub(crate) fn share<L: Layout<Digest = Digest> + Default + Clone>(
    shape: L::Shape,
    inserted: u64,
    keys: &[u64],
) -> Result<(), TestCaseError> {
    let (mut plain, shared) = (with::<Heap, L>(shape), with::<SharedHeap, L>(shape));
    for key in 0..inserted {
        prop_assert_eq!(plain.insert(&key), shared.insert(&key));
    }
    let expected: Vec<bool> = keys.iter().map(|key| plain.contains(key)).collect();
    prop_assert!(keys.iter().map(|key| shared.contains(key)).eq(expected.iter().copied()));
    let mut found = vec![true; keys.len()];
    plain.contains_batch(keys, &mut found);
    prop_assert_eq!(&found, &expected);
    shared.contains_batch(keys, &mut found);
    prop_assert_eq!(&found, &expected);
    let digests: Vec<Digest> = keys.iter().map(|key| digest(*key)).collect();
    plain.contains_digests(&digests, &mut found);
    prop_assert_eq!(&found, &expected);
    shared.contains_digests(&digests, &mut found);
    prop_assert_eq!(&found, &expected);
    let (mut singly, extended) = (shared.snapshot(), Bloom::from(shared.snapshot()));
    let expected: Vec<bool> = keys.iter().map(|key| singly.insert(key)).collect();
    let mut fresh = vec![false; keys.len()];
    plain.insert_digests(&digests, &mut fresh);
    prop_assert_eq!(&fresh, &expected);
    shared.insert_digests(&digests, &mut fresh);
    prop_assert_eq!(&fresh, &expected);
    (&extended).extend(keys);
    prop_assert!(shared.snapshot() == plain && singly == plain && extended == shared);
    prop_assert!(keys.iter().all(|key| !shared.insert(key)));
    shared.insert_batch(keys, &mut fresh);
    prop_assert!(!fresh.contains(&true));
    Ok(())
}

/// An array has the bits and the bytes of a filter on the heap.
pub(crate) fn compare_array<B, L>(
    mut array: Bloom<u64, Portable, Own<B>, L>,
    keys: &[u64],
) -> Result<(), TestCaseError>
where
    B: AsRef<[u64]> + AsMut<[u64]>,
    L: StoredLayout<Digest = Digest>,
{
    let mut heap = with::<Heap, L>(*array.shape());
    let (singly, rest) = keys.split_at(keys.len() / 3);
    for key in singly {
        prop_assert_eq!(heap.insert(key), array.insert(key));
    }
    let (batched, extended) = rest.split_at(rest.len() / 2);
    let mut fresh = [vec![false; batched.len()], vec![false; batched.len()]];
    heap.insert_batch(batched, &mut fresh[0]);
    array.insert_batch(batched, &mut fresh[1]);
    prop_assert_eq!(&fresh[0], &fresh[1]);
    heap.extend(extended);
    array.extend(extended);
    prop_assert_eq!(heap.words(), array.words());
    prop_assert_eq!(heap.to_bytes(), array.to_bytes());
    prop_assert!((0..500).all(|key| heap.contains(&key) == array.contains(&key)));
    Ok(())
}

/// `String` and `str`, `Vec<u8>` and `[u8]` are the same key.
pub(crate) fn own_and_borrow<L: Layout<Digest = Digest> + Default>(
    text: &String,
    bytes: &Vec<u8>,
) -> Result<(), TestCaseError> {
    for hasher in [Keyed::new([7; 16]), Keyed::new([8; 16])] {
        let mut filter = Bloom::<String, Keyed, Heap, L>::with_hasher(10, 0.01, hasher);
        filter.extend([text.as_str()]);
        prop_assert!(filter.contains(text) && filter.contains_many([text.as_str()]) == [true]);
    }
    let mut filter = Plain::<Vec<u8>, L>::new(10, 0.01);
    filter.insert(bytes);
    prop_assert!(filter.contains_many([&bytes[..]]) == [true]);
    let mut filter = Plain::<str, L>::new(10, 0.01);
    filter.extend([text.clone()]);
    filter.extend([text.as_str()]);
    prop_assert!(filter.contains(text.as_str()));
    Ok(())
}

proptest! {
    #![proptest_config(crate::cases(400))]

    #[test]
    fn any_history_leaves_exactly_the_bits_of_the_model(
        items in 1_u64..300,
        rate in prop_oneof![Just(0.3), Just(0.05), Just(0.001), Just(1e-9)],
        history in vec(step(), 0..40),
    ) {
        let shape = Shape::for_rate(items, rate).unwrap();
        let positions = |digest| positions(shape.bits(), shape.probes(), digest);
        follow::<Digits>(shape, positions, history)?;
    }

    #[test]
    fn batches_of_any_mixture_answer_as_single_calls_do(
        probes in 1_u32..=64,
        words in 1_u64..200,
        inserted in 0_u64..2_000,
        keys in vec(0_u64..4_000, 0..300),
    ) {
        let shape = Shape::with(1, words * 64 - 1, probes).unwrap();
        share::<Digits>(shape, inserted, &keys)?;
    }

    #[test]
    fn an_array_has_the_bits_of_a_filter_in_memory(keys in vec(any::<u64>(), 0..200)) {
        const WORDS: usize = umbel::words_for(100, 0.01);
        let array = ArrayBloomFilter::<u64, WORDS>::new(100, 0.01);
        prop_assert_eq!(array.shape(), &Shape::for_rate(100, 0.01).unwrap());
        compare_array(array, &keys)?;
    }

    #[test]
    fn owned_and_borrowed_keys_are_one_key(text in ".*", bytes in vec(any::<u8>(), 0..300)) {
        own_and_borrow::<Digits>(&text, &bytes)?;
    }
}

/// All kinds of batches of a filter that is larger than a core's cache, filled to about a half.
pub(crate) fn answer_beyond_the_cache<L: Layout<Digest = Digest> + Default + Clone>(
    shape: L::Shape,
) {
    let (mut plain, shared) = (with::<Heap, L>(shape), with::<SharedHeap, L>(shape));
    // About half of the bits, so that absent keys are rejected at every position.
    let inserted = shape.bits() * 11 / 16 / u64::from(shape.probes());
    let keys: Vec<u64> = (0..inserted).collect();
    let mut fresh = [vec![false; keys.len()], vec![false; keys.len()]];
    plain.insert_batch(&keys, &mut fresh[0]);
    shared.insert_batch(&keys, &mut fresh[1]);
    let mut one_by_one = with::<Heap, L>(shape);
    let expected: Vec<bool> = keys.iter().map(|key| one_by_one.insert(key)).collect();
    assert!(fresh[0] == expected && fresh[1] == expected, "{shape:?}");
    assert!(plain == one_by_one && shared.snapshot() == one_by_one);
    let mut extended = with::<Heap, L>(shape);
    extended.extend(&keys);
    assert!(extended == plain);
    // Runs of present keys, of absent ones and of both, of every length up to four groups.
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
            assert!(found == expected, "{shape:?}, {len} keys, pattern {pattern}");
            shared.contains_batch(&keys, &mut found);
            assert!(found == expected, "shared: {shape:?}, {len} keys");
        }
    }
}

/// Filters of more than 2 MiB use another code path for batches than small ones.
#[test]
fn large_filters_answer_batches_as_single_calls_do() {
    for probes in [1, 2, 3, 4, 7, 11, 12, 64] {
        answer_beyond_the_cache::<Digits>(Shape::with(1, (3 << 23) - 1, probes).unwrap());
    }
}
