//! The blocked filter against its definition, and what is meant to break it.

use crate::model::{answer_beyond_the_cache, compare_array, follow, own_and_borrow, share, step};
use proptest::collection::vec;
use proptest::prelude::*;
use umbel::blocked::{self, ArrayBlockedBloomFilter, AtomicArrayBlockedBloomFilter, Lines, Shape};
use umbel::bloom::Bloom;
use umbel::hash::Digest;
use umbel::storage::LineArray;
use umbel::{BlockedBloomFilter, Portable};
use umbel_laws::split_mix;

/// Positions straight from the definition in `docs/hashing.md`, kernels 2 and 3.
pub(crate) fn positions(shape: &Shape, digest: Digest) -> Vec<u64> {
    let digest = digest.bits();
    let (more, fewer) = (shape.probes_per_line().div_ceil(2), shape.probes_per_line() / 2);
    let first = (0, digest, digest % (1 << 32), [more, fewer]);
    let second = (8, digest.wrapping_mul(0xb504_f333_f9de_6485), digest >> 32, [fewer, more]);
    let mut positions = Vec::new();
    for (salts, fraction, x, probes) in
        [first, second].into_iter().take(shape.lines_per_key() as usize)
    {
        let line = (u128::from(fraction) * u128::from(shape.lines()) >> 64) as u64;
        for half in 0..2 {
            for lane in 0..u64::from(probes[half as usize]) {
                // The sixteen salts are those of SplitMix64.
                let salt = split_mix(salts + 4 * half + lane) >> 32 | 1;
                let place = x * salt % (1 << 32) >> 24;
                positions.push(line * 512 + half * 256 + place);
            }
        }
    }
    positions
}

fn shapes() -> impl Strategy<Value = Shape> {
    let lines = prop_oneof![1_u64..5, 5_u64..40, Just(64), Just(1_000)];
    (lines, 1_u32..=2, 1_u32..=8)
        .prop_map(|(lines, per_key, probes)| Shape::with(1, lines, per_key, probes).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_history_leaves_exactly_the_bits_of_the_model(
        shape in shapes(),
        history in vec(step(), 0..40),
    ) {
        follow::<Lines>(shape, |digest| positions(&shape, digest), history)?;
    }

    #[test]
    fn many_threads_share_the_bits_of_a_filter_for_one(
        shape in shapes(),
        inserted in 0_u64..2_000,
        keys in vec(0_u64..4_000, 0..300),
    ) {
        share::<Lines>(shape, inserted, &keys)?;
    }

    #[test]
    fn an_array_has_the_bits_of_a_filter_in_memory(
        keys in vec(0_u64..500, 0..200),
        per_key in 1_u32..=2,
        probes in 1_u32..=8,
    ) {
        // One that the compiler made, and one of any shape.
        const WORDS: usize = blocked::words_for(100, 0.01);
        const EMPTY: ArrayBlockedBloomFilter<u64, WORDS> = ArrayBlockedBloomFilter::new(100, 0.01);
        prop_assert_eq!(EMPTY.shape(), &Shape::for_rate(100, 0.01).unwrap());
        compare_array(EMPTY, &keys)?;
        let shape = Shape::with(1, 7, per_key, probes).unwrap();
        let heap = BlockedBloomFilter::<u64>::with(shape, Portable::default()).unwrap();
        let array: Bloom<u64, Portable, LineArray<56>, Lines> =
            Bloom::from_bytes(&heap.to_bytes()).unwrap();
        compare_array(array, &keys)?;
        // And one for many threads.
        let shared = AtomicArrayBlockedBloomFilter::<u64, WORDS>::new(100, 0.01);
        let mut heap = BlockedBloomFilter::<u64>::new(100, 0.01);
        prop_assert!(keys.iter().all(|key| heap.insert(key) == shared.insert(key)));
        prop_assert!(shared.snapshot() == heap);
        prop_assert_eq!(shared.to_bytes(), heap.to_bytes());
    }

    #[test]
    fn owned_and_borrowed_keys_are_one_key(text in ".*", bytes in vec(any::<u8>(), 0..300)) {
        own_and_borrow::<Lines>(&text, &bytes)?;
    }
}

#[test]
fn large_filters_answer_batches_as_single_calls_do() {
    for (per_key, probes) in [(1, 1), (1, 6), (2, 5), (2, 8)] {
        // 3 MiB.
        answer_beyond_the_cache::<Lines>(Shape::with(1, 3 << 14, per_key, probes).unwrap());
    }
}
