//! The blocked filter against its definition, and hostile input.

use crate::forge::{KERNELS, LENGTH, field, seal};
use crate::hostile::assert_even_spread;
use crate::model::{answer_beyond_the_cache, compare_array, follow, own_and_borrow, share, step};
use proptest::collection::vec;
use proptest::prelude::*;
use umbel::Saved;
use umbel::blocked::{self, ArrayBlockedBloomFilter, AtomicArrayBlockedBloomFilter, Lines, Shape};
use umbel::bloom::Bloom;
use umbel::hash::{Digest, Digester};
use umbel::storage::LineArray;
use umbel::{AtomicBlockedBloomFilter, BlockedBloomFilter, BloomFilter, Keyed, Portable};
use umbel::{Incompatible, InvalidBytes, InvalidShape, SplitBlockBloomFilter};
use umbel_laws::split_mix;

/// Positions computed from the definition in `docs/hashing.md`, kernels 2 and 3.
pub(crate) fn positions(shape: &Shape, digest: Digest) -> Vec<u64> {
    positions_in_level(shape, digest.bits(), digest.bits())
}

/// The same where a second number, derived from the digest, selects the lines.
pub(crate) fn positions_in_level(shape: &Shape, lines: u64, digest: u64) -> Vec<u64> {
    let (more, fewer) = (shape.probes_per_line().div_ceil(2), shape.probes_per_line() / 2);
    let first = (0, lines, digest % (1 << 32), [more, fewer]);
    let second = (8, lines.wrapping_mul(0xb504_f333_f9de_6485), digest >> 32, [fewer, more]);
    let mut positions = Vec::new();
    for (salts, fraction, x, probes) in
        [first, second].into_iter().take(shape.lines_per_key() as usize)
    {
        let line = ((u128::from(fraction) * u128::from(shape.lines())) >> 64) as u64;
        for half in 0..2 {
            for lane in 0..u64::from(probes[half as usize]) {
                // The sixteen salts are those of SplitMix64.
                let salt = split_mix(salts + 4 * half + lane) >> 32 | 1;
                let place = (x * salt % (1 << 32)) >> 24;
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
    #![proptest_config(crate::cases(400))]

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
        // One shape that the compiler planned, and one given at run time.
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

fn with<H>(shape: Result<Shape, InvalidShape>, hasher: H) -> BlockedBloomFilter<u64, H> {
    BlockedBloomFilter::with(shape.unwrap(), hasher).unwrap()
}

/// The law compares the rate with the set bits; this test compares it with the plan. Filters differ by chance,
/// so their spread is the sigma.
#[test]
fn absent_keys_are_found_at_the_rate_of_the_plan() {
    const FILTERS: u64 = 40;
    const QUERIES: u64 = 250_000;
    for (lines, per_key, probes, items) in
        [(1, 1, 3, 100), (19, 1, 6, 1_000), (194, 1, 6, 10_000), (286, 2, 5, 10_000)]
    {
        let shape = Shape::with(items, lines, per_key, probes);
        let rates: Vec<f64> = (0..FILTERS)
            .map(|number| {
                let mut filter = with(shape, Portable::default());
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
        let (expected, sigma) = (shape.unwrap().expected_rate(items), (variance / filters).sqrt());
        assert!((mean - expected).abs() <= 5.0 * sigma, "{shape:?}: {mean} {expected} {sigma}");
    }
}

#[test]
fn no_capacity_is_an_empty_filter_that_works() {
    let mut filter = BlockedBloomFilter::<u64>::new(0, 0.01);
    assert_eq!((filter.shape().probes(), filter.bytes()), (1, 64));
    assert!(!filter.contains(&1) && filter.is_empty());
    assert_eq!((filter.expected_rate(), filter.estimated_len()), (0.0, 0));
    assert!(filter.insert(&1) && filter.contains(&1));
}

#[test]
fn one_key_takes_few_lines_and_is_found() {
    for rate in [0.5, 1e-3, 1e-6, 1e-9, 1e-12, 1e-15] {
        let mut filter = BlockedBloomFilter::<u64>::new(1, rate);
        assert!(filter.shape().probes() <= 16, "{rate}: {filter:?}");
        assert!(filter.insert(&42) && filter.contains(&42) && !filter.insert(&42));
        assert_eq!(filter.estimated_len(), 1, "{rate}");
    }
}

#[test]
fn rates_that_are_none_are_refused_everywhere() {
    for rate in [0.0, -0.0, 1.0, -1.0, 2.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let plain = BlockedBloomFilter::<u64>::try_new(10, rate).unwrap_err();
        let shared = AtomicBlockedBloomFilter::<u64>::try_new(10, rate).unwrap_err();
        let hasher = Portable::default();
        let array = ArrayBlockedBloomFilter::<u64, 8>::try_with_hasher(10, rate, hasher);
        for error in [plain, shared, array.unwrap_err()] {
            assert!(matches!(error, InvalidShape::RateOutOfRange { .. }), "{error}");
        }
    }
    for rate in [5e-324, 1e-80] {
        let error = BlockedBloomFilter::<u64>::try_new(10, rate).unwrap_err();
        assert!(matches!(error, InvalidShape::RateTooSmall { min, .. } if min == 1e-15));
    }
}

#[test]
fn astronomic_capacities_are_refused_before_memory_is_touched() {
    for capacity in [u64::MAX, u64::MAX / 64, 1 << 58, 1 << 50] {
        for rate in [0.5, 0.01, 1e-9] {
            let error = BlockedBloomFilter::<u64>::try_new(capacity, rate).unwrap_err();
            assert!(
                matches!(error, InvalidShape::TooLarge { .. } | InvalidShape::RateTooSmall { .. }),
                "{capacity} {rate}: {error}"
            );
        }
    }
}

#[test]
fn what_cannot_be_allocated_is_an_error_and_not_an_abort() {
    // 16 TiB: a valid shape that exceeds the memory of the machine.
    let (shape, hasher) = (Shape::with(1, 1 << 38, 2, 4).unwrap(), Portable::default());
    let error = InvalidShape::OutOfMemory { bytes: 1 << 44 };
    assert_eq!(BlockedBloomFilter::<u64>::with(shape, hasher).map(|_| ()), Err(error));
    assert_eq!(AtomicBlockedBloomFilter::<u64>::with(shape, hasher).map(|_| ()), Err(error));
}

#[test]
fn arrays_that_are_too_small_say_how_large_they_must_be() {
    let (array, min) = (Portable::default(), 8 * blocked::words_for(1_000, 0.01) as u64);
    let error = ArrayBlockedBloomFilter::<u64, 16>::try_with_hasher(1_000, 0.01, array);
    assert_eq!(error.map(|_| ()), Err(InvalidShape::TooSmall { bytes: 128, min }));
    // An array that is larger than necessary has the best shape of its size.
    let array = ArrayBlockedBloomFilter::<u64, 16>::new(10, 0.01);
    assert_eq!(array.shape(), &Shape::for_memory(10, 128).unwrap());
    let bytes = BlockedBloomFilter::<u64>::new(1_000, 0.01).to_bytes();
    let error = ArrayBlockedBloomFilter::<u64, 16>::from_bytes(&bytes).map(|_| ());
    assert_eq!(error, Err(InvalidBytes::Shape(InvalidShape::OutOfMemory { bytes: min })));
}

#[test]
fn filters_over_2_to_the_32_bits_use_all_of_them() {
    // 2^33 bits are 1 GiB of zeros, whose pages the kernel never provides.
    for (per_key, probes) in [(1, 8), (2, 5)] {
        let shape = Shape::with(1_000, (1 << 24) + 1, per_key, probes).unwrap();
        let mut filter = with(Ok(shape), Portable::default());
        let mut places = Vec::new();
        for key in 0..1_000 {
            assert!(filter.insert(&key));
            places.extend(positions(&shape, filter.hasher().digest(&key)));
        }
        assert!((0..1_000).all(|key| filter.contains(&key)));
        assert!((1_000..20_000).all(|key| !filter.contains(&key)));
        for &place in &places {
            assert_eq!(filter.words()[(place / 64) as usize] >> (place % 64) & 1, 1);
        }
    }
}

#[test]
fn lines_and_places_are_spread_evenly_over_filters_of_any_size() {
    for lines in [64, 1_000, (1 << 23) - 1, (1 << 23) + 1, (1 << 32) + 1, 1 << 39] {
        let shape = Shape::with(1, lines, 2, 8).unwrap();
        let keys: Vec<Vec<u64>> =
            (0..20_000).map(|key| positions(&shape, Portable::default().digest(&key))).collect();
        for probe in 0..16 {
            let of_keys: Vec<u64> = keys.iter().map(|positions| positions[probe]).collect();
            assert_even_spread(&of_keys.iter().map(|p| p / 512).collect::<Vec<_>>(), lines);
            assert_even_spread(&of_keys.iter().map(|p| p % 256).collect::<Vec<_>>(), 256);
        }
    }
}

#[test]
fn digests_that_a_weak_step_would_love_are_found_and_find_nothing_else() {
    let odd = [0, 1, 2, 1 << 32, 1 << 63, u64::MAX, u64::MAX << 32, 0x8000_0000_8000_0000];
    for (per_key, probes) in [(1, 8), (2, 4), (2, 8)] {
        for digest in odd.map(Digest::new) {
            let mut filter = with(Shape::with(1, 1 << 12, per_key, probes), Portable::default());
            assert!(filter.insert_digest(digest) && filter.contains_digest(digest));
            assert!(!filter.insert_digest(digest));
            // One bit at least in each half of each line, which may be one line.
            assert!((2..=16).contains(&filter.count_ones()), "{digest:?}: {filter:?}");
            assert!((0..10_000).all(|key| !filter.contains(&key)), "{digest:?}");
        }
    }
}

/// Keys chosen by an attacker against a public hash: all of their lines are in the first tenth of the filter.
#[test]
fn chosen_keys_flood_the_lines_of_a_public_hash_and_not_those_of_a_secret_one() {
    for (per_key, probes, lines, rate) in [(1, 6, 40, 0.01), (2, 5, 60, 0.001)] {
        let shape = Shape::with(2_000, lines, per_key, probes);
        let mut public = with(shape, Portable::default());
        let mut secret = with(shape, Keyed::new([9; 16]));
        let tenth = lines * 512 / 10;
        let chosen: Vec<u64> = (0..)
            .filter(|key| {
                let digest = public.hasher().digest(key);
                positions(&shape.unwrap(), digest).iter().all(|position| *position < tenth)
            })
            .take(4_000)
            .collect();
        let (inserted, absent) = chosen.split_at(2_000);
        public.extend(inserted);
        secret.extend(inserted);
        let found = |found: &dyn Fn(&u64) -> bool| {
            absent.iter().filter(|key| found(key)).count() as f64 / absent.len() as f64
        };
        // Ten times the planned keys per line: all bits there are set, and other lines are empty.
        assert!(found(&|key| public.contains(key)) > 0.9, "{public:?}");
        assert!(public.count_ones() <= tenth && secret.count_ones() > 3 * tenth);
        // The rate of a filter of this number of lines differs from the plan by 3 %, one sigma, by chance.
        assert!(secret.expected_rate() < 1.15 * rate, "{secret:?}");
        let most = 1.15 * rate + 5.0 * (1.15 * rate / absent.len() as f64).sqrt();
        assert!(found(&|key| secret.contains(key)) < most, "{secret:?}");
    }
}

#[test]
fn estimates_follow_what_was_inserted() {
    for items in [1_u64, 10, 1_000, 100_000] {
        for rate in [0.1, 0.01, 0.001] {
            let mut filter = BlockedBloomFilter::<u64>::new(items, rate);
            filter.extend((0..items).map(split_mix));
            let (estimate, sigma) = (filter.estimated_len() as f64, (items as f64).sqrt());
            assert!((estimate - items as f64).abs() <= 5.0 * sigma, "{items}: {estimate}");
        }
    }
}

#[test]
fn only_filters_whose_bits_mean_the_same_can_be_united() {
    let filter =
        |lines, per_key, probes| with(Shape::with(1, lines, per_key, probes), Portable::default());
    let mut one = filter(8, 1, 6);
    one.insert(&1);
    let untouched = one.clone();
    for (other, error) in [
        (filter(9, 1, 6), Incompatible::Bits { expected: 4_096, got: 4_608 }),
        (filter(8, 1, 5), Incompatible::Probes { expected: 6, got: 5 }),
        (filter(8, 2, 3), Incompatible::Kernels),
    ] {
        assert_eq!(one.union_with(&other), Err(error));
        assert_eq!(one.intersect_with(&other), Err(error));
        let (shared, other) = (AtomicBlockedBloomFilter::from(one.clone()), other.into());
        assert_eq!(shared.union_with(&other), Err(error));
        assert!(one == untouched && shared.snapshot() == untouched && shared != other);
    }
    let seeded = with(Shape::with(1, 8, 1, 6), Portable::seeded(1));
    assert_eq!(one.union_with(&seeded), Err(Incompatible::Hasher));
}

#[test]
fn headers_that_lie_are_refused_with_checksums_in_order() {
    let forged = |(per_key, probes), changes: &[(usize, u64, usize)]| {
        let shape = Shape::with(5, 3, per_key, probes);
        let mut bytes = with(shape, Portable::default()).to_bytes();
        for &(at, value, width) in changes {
            bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
        }
        seal(&mut bytes);
        let filter = BlockedBloomFilter::<u64>::from_bytes(&bytes);
        // An accepted filter has the values of its fields.
        filter.map(|filter| {
            assert!(filter.to_bytes() == bytes);
            (filter.shape().lines_per_key(), filter.shape().probes_per_line())
        })
    };
    let partial =
        |what, got, of| Err(InvalidBytes::Shape(InvalidShape::NotAMultiple { what, got, of }));
    let too_many = |got| {
        let what = "probes";
        Err(InvalidBytes::Shape(InvalidShape::OutOfRange { what, got, min: 1, max: 8 }))
    };
    assert_eq!(forged((1, 5), &[]), Ok((1, 5)));
    assert_eq!(forged((2, 5), &[]), Ok((2, 5)));
    // Kernels of another family; 2 for 3 and 3 for 2, which may be valid for another filter.
    for kernels in [0, 1, 4, 5, 0xffff] {
        let error = Err(InvalidBytes::Kernels { got: kernels });
        assert_eq!(forged((1, 6), &[(KERNELS, u64::from(kernels), 2)]), error);
    }
    assert_eq!(forged((1, 5), &[(KERNELS, 3, 2)]), partial("probes", 5, 2));
    assert_eq!(forged((1, 6), &[(KERNELS, 3, 2)]), Ok((2, 3)));
    assert_eq!(forged((2, 5), &[(KERNELS, 2, 2)]), too_many(10));
    // Probes.
    assert_eq!(forged((1, 6), &[(field(2), 0, 8)]), too_many(0));
    assert_eq!(forged((1, 6), &[(field(2), 9, 8)]), too_many(9));
    assert_eq!(forged((2, 6), &[(field(2), 0, 8)]), too_many(0));
    assert_eq!(forged((2, 6), &[(field(2), 17, 8)]), partial("probes", 17, 2));
    assert_eq!(forged((2, 6), &[(field(2), 18, 8)]), too_many(9));
    assert_eq!(forged((2, 6), &[(field(2), 1 << 32 | 12, 8)]), Err(InvalidBytes::Inconsistent));
    // Bits, with and without the matching length.
    for bits in [0_u64, 1, 511, 1_535, 1_537, 1_024, 2_048, 1 << 40, 1 << 48, 1 << 62, u64::MAX] {
        for length in [192, bits / 64 * 8, bits.div_ceil(64) * 8] {
            let forged = forged((2, 6), &[(field(1), bits, 8), (LENGTH, length, 8)]);
            assert!(forged.is_err(), "{bits} {length}: {forged:?}");
            if bits % 512 != 0 {
                assert_eq!(forged, partial("bits", bits, 512));
            }
        }
    }
}

#[test]
fn filters_of_another_family_are_refused() {
    let classic = BloomFilter::<u64>::new(100, 0.01).to_bytes();
    let blocked = BlockedBloomFilter::<u64>::new(100, 0.01).to_bytes();
    let split = SplitBlockBloomFilter::<u64, Portable>::new(100, 0.01).to_bytes();
    let family = |expected, got| Err(InvalidBytes::Family { expected, got });
    let read = |bytes: &[u8]| BlockedBloomFilter::<u64>::from_bytes(bytes).map(|_| ());
    assert_eq!(read(&classic), family(2, 1));
    assert_eq!(read(&split), family(2, 3));
    assert_eq!(BloomFilter::<u64>::from_bytes(&blocked).map(|_| ()), family(1, 2));
    let read_split = SplitBlockBloomFilter::<u64, Portable>::from_bytes;
    assert_eq!(read_split(&blocked).map(|_| ()), family(3, 2));
    // With the family forged, the kernels still show it.
    for (mut bytes, kernels) in [(classic, 1), (split, 4)] {
        bytes[10] = 2;
        seal(&mut bytes);
        assert_eq!(read(&bytes), Err(InvalidBytes::Kernels { got: kernels }));
    }
    let keyed =
        BlockedBloomFilter::<u64, Keyed>::from_bytes_with_hasher(&blocked, Keyed::new([0; 16]));
    assert_eq!(keyed.map(|_| ()), Err(InvalidBytes::Hash { expected: 2, got: 1 }));
}

#[test]
fn batches_of_unequal_length_panic_and_change_nothing() {
    for rate in [0.1, 1e-4] {
        let mut filter = BlockedBloomFilter::<u64>::new(1_000, rate);
        for (keys, answers) in [(3, 2), (2, 3), (0, 1), (100, 99)] {
            let keys: Vec<u64> = (0..keys).collect();
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                filter.insert_batch(&keys, &mut vec![false; answers]);
            }));
            assert!(result.is_err() && filter.is_empty());
        }
    }
}

#[test]
fn debug_is_one_line() {
    let mut filter = with(Shape::with(1_000, 20, 2, 3), Portable::default());
    filter.extend(0..1_000_u64);
    let line = format!("{filter:?}");
    let start = "BlockedBloomFilter { capacity: 1000, bits: 10240, probes: 6, hasher: ";
    assert!(line.starts_with(start), "{line}");
    assert!(line.len() < 150 && !line.contains('\n'), "{line}");
}
