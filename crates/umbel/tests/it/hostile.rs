//! Hostile parameters and keys, case by case.

use crate::forge::{FLAGS, KERNELS, LENGTH, WORDS, field, with, words_of};
use crate::independent::Independent;
use umbel::Saved;
use umbel::bloom::Shape;
use umbel::hash::{Digest, Digester, Portable};
use umbel::kernels::{Digits, Kernels};
use umbel::{ArrayBloomFilter, AtomicBloomFilter, BloomFilter, InvalidShape, Keyed, words_for};
use umbel_laws::split_mix;

#[test]
fn no_capacity_is_an_empty_filter_that_works() {
    let mut filter = BloomFilter::<u64>::new(0, 0.01);
    assert_eq!((filter.shape().probes(), filter.bytes()), (1, 8));
    assert!(!filter.contains(&1) && filter.is_empty());
    assert_eq!((filter.expected_rate(), filter.estimated_len()), (0.0, 0));
    assert!(filter.insert(&1) && filter.contains(&1));
}

#[test]
fn one_key_takes_few_probes_and_is_found() {
    for rate in [0.5, 1e-3, 1e-6, 1e-12, 1e-15] {
        let mut filter = BloomFilter::<u64>::new(1, rate);
        assert!(filter.shape().probes() <= 20, "{rate}: {filter:?}");
        assert!(filter.insert(&42) && filter.contains(&42));
    }
}

#[test]
fn rates_that_are_none_are_refused_everywhere() {
    for rate in [0.0, -0.0, 1.0, -1.0, 2.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let plain = BloomFilter::<u64>::try_new(10, rate).unwrap_err();
        let shared = AtomicBloomFilter::<u64>::try_new(10, rate).unwrap_err();
        for error in [plain, shared, Shape::for_budget(100, rate).unwrap_err()] {
            assert!(matches!(error, InvalidShape::RateOutOfRange { .. }), "{error}");
        }
        let array = ArrayBloomFilter::<u64, 8>::try_with_hasher(10, rate, Portable::default());
        assert!(array.is_err());
    }
    for rate in [5e-324, 1e-80] {
        let error = BloomFilter::<u64>::try_new(10, rate).unwrap_err();
        assert!(matches!(error, InvalidShape::RateTooSmall { min, .. } if min == 1e-15));
    }
}

#[test]
fn astronomic_capacities_are_refused_before_memory_is_touched() {
    for capacity in [u64::MAX, u64::MAX / 64, 1 << 58, 1 << 50] {
        for rate in [0.5, 0.01, 1e-9] {
            let error = BloomFilter::<u64>::try_new(capacity, rate).unwrap_err();
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
    let shape = Shape::with(1, (1 << 47) - 1, 7).unwrap();
    let error = BloomFilter::<u64>::with(shape, Portable::default()).map(|_| ()).unwrap_err();
    assert_eq!(error, InvalidShape::OutOfMemory { bytes: 1 << 44 });
    let error = AtomicBloomFilter::<u64>::with(shape, Portable::default()).map(|_| ()).unwrap_err();
    assert_eq!(error, InvalidShape::OutOfMemory { bytes: 1 << 44 });
}

#[test]
fn arrays_that_are_too_small_say_how_large_they_must_be() {
    let error = ArrayBloomFilter::<u64, 5>::try_with_hasher(1_000, 0.01, Portable::default());
    let min = 8 * words_for(1_000, 0.01) as u64;
    assert_eq!(error.map(|_| ()), Err(InvalidShape::TooSmall { bytes: 40, min }));
}

#[test]
fn native_kernels_refuse_an_even_number_of_bits_and_others_do_not() {
    let shape = Shape::with(10, 640, 7).unwrap();
    let error = BloomFilter::<u64>::with(shape, Portable::default()).map(|_| ()).unwrap_err();
    assert_eq!(error, InvalidShape::EvenBits { bits: 640 });
    assert!(Independent.accept(&shape).is_ok());
}

#[test]
fn filters_over_2_to_the_32_bits_use_all_of_them() {
    // 2^33 bits are 1 GiB of zeros, whose pages the kernel never provides.
    let shape = Shape::with(1_000, (1 << 33) + 1, 7).unwrap();
    let mut filter = BloomFilter::<u64>::with(shape, Portable::default()).unwrap();
    let mut positions = Vec::new();
    for key in 0..1_000 {
        assert!(filter.insert(&key));
        positions.extend(positions_of(&Digits, Portable::default().digest(&key), &shape));
    }
    assert!((0..1_000).all(|key| filter.contains(&key)));
    assert!((1_000..20_000).all(|key| !filter.contains(&key)));
    for &position in &positions {
        assert_eq!(filter.words()[(position / 64) as usize] >> (position % 64) & 1, 1);
    }
    assert_even_spread(&positions, shape.bits());
}

#[test]
fn positions_are_spread_evenly_over_filters_of_any_size() {
    for bits in [63, 65, (1_u64 << 32) - 1, (1 << 32) + 1, (1 << 35) + 1, (1 << 47) - 1] {
        let shape = Shape::with(1, bits, 16).unwrap();
        let digests = (0..20_000).map(|key| Portable::default().digest(&key));
        let positions: Vec<u64> =
            digests.flat_map(|digest| positions_of(&Digits, digest, &shape)).collect();
        assert_even_spread(&positions, bits);
    }
}

/// The chi-squared statistic of sixteen equal parts is below the point that a fair spread exceeds
/// once in a million (44.3 for 15 degrees of freedom).
pub(crate) fn assert_even_spread(positions: &[u64], bits: u64) {
    let mut parts = [0_u64; 16];
    for &position in positions {
        assert!(position < bits);
        parts[(u128::from(position) * 16 / u128::from(bits)) as usize] += 1;
    }
    // Parts of a small table differ in size, so each has its own expectation.
    let chi_squared: f64 = (0..16_u128)
        .map(|part| {
            let start = (part * u128::from(bits)).div_ceil(16);
            let end = ((part + 1) * u128::from(bits)).div_ceil(16);
            let expected = (end - start) as f64 / bits as f64 * positions.len() as f64;
            (parts[part as usize] as f64 - expected).powi(2) / expected
        })
        .sum();
    assert!(chi_squared < 44.3, "{bits} bits: {chi_squared} {parts:?}");
}

#[test]
fn digests_that_a_weak_step_would_love_still_have_many_positions() {
    let shape = Shape::with(1, (1 << 20) - 1, 16).unwrap();
    for digest in [0, 1, 2, 1 << 32, 1 << 63, u64::MAX, u64::MAX << 32, 0x8000_0000_8000_0000] {
        let mut positions = positions_of(&Digits, Digest::new(digest), &shape);
        positions.sort_unstable();
        positions.dedup();
        assert!(positions.len() >= 12, "{digest:x}: {positions:?}");
    }
}

#[test]
fn odd_keys_are_keys() {
    let long = vec![0_u8; 1 << 30];
    let keys: [&[u8]; 7] =
        [b"", b"\0", b"\0\0", &[0; 8], &[0; 240], &long, &long[..long.len() - 1]];
    let mut filter = BloomFilter::<[u8]>::new(100, 1e-9);
    for key in keys {
        assert!(!filter.contains(key));
        assert!(filter.insert(key), "a key of {} zero bytes is new", key.len());
    }
    assert!(keys.iter().all(|key| filter.contains(*key)));
}

/// Keys chosen by an attacker against a public hash so that each sets only bits that were not set before.
fn pollution(filter: &BloomFilter<u64>) -> Vec<u64> {
    let mut taken = vec![false; filter.shape().bits() as usize];
    (0..)
        .filter(|key| {
            let digest = filter.hasher().digest(key);
            let mut positions = positions_of(&Digits, digest, filter.shape());
            positions.sort_unstable();
            let twice = positions.windows(2).any(|pair| pair[0] == pair[1]);
            let fresh = !twice && positions.iter().all(|&position| !taken[position as usize]);
            if fresh {
                positions.iter().for_each(|&position| taken[position as usize] = true);
            }
            fresh
        })
        .take(filter.shape().items() as usize)
        .collect()
}

#[test]
fn chosen_keys_spoil_a_public_hash_and_not_a_secret_one() {
    let mut public = BloomFilter::<u64>::new(2_000, 0.01);
    let mut secret = BloomFilter::<u64, Keyed>::with_hasher(2_000, 0.01, Keyed::new([9; 16]));
    let chosen = pollution(&public);
    public.extend(&chosen);
    secret.extend(&chosen);
    // Every key sets all its bits: fill ln 2 instead of 1/2, and 0.69^7 is 7.7 % instead of 1 %.
    let (bits, probes) = (public.shape().bits() as f64, public.shape().probes());
    assert_eq!(public.count_ones(), 2_000 * u64::from(probes));
    let fill = f64::from(2_000 * probes) / bits;
    assert!((public.expected_rate() / fill.powi(probes as i32) - 1.0).abs() < 1e-9, "{public:?}");
    assert!(fill.powi(probes as i32) > 0.07, "{public:?}");
    // The fill is that of random keys: with c balls for each of m bins, the variance of the number of non-empty
    // bins is m q (1 - q (1 + c)), where q = exp(-c) is the share of empty bins.
    let q = (-fill).exp();
    let sigma = (bits * q * (1.0 - q * (1.0 + fill))).sqrt();
    let off = (secret.count_ones() as f64 - bits * (1.0 - q)) / sigma;
    assert!(off.abs() <= 5.0, "{secret:?}: {off} sigma");
}

#[test]
fn only_hashers_that_agree_can_be_united() {
    let mut one = BloomFilter::<u64, Keyed>::with_hasher(10, 0.01, Keyed::new([1; 16]));
    let other = BloomFilter::<u64, Keyed>::with_hasher(10, 0.01, Keyed::new([2; 16]));
    assert!(one.union_with(&other).is_err() && one != other);
    assert!(one.intersect_with(&other).is_err());
    let random = std::hash::RandomState::new;
    let std = |state| BloomFilter::<u64, _>::with_hasher(10, 0.01, umbel::Std::new(state));
    assert!(std(random()).union_with(&std(random())).is_err());
    let state = random();
    assert!(std(state.clone()).union_with(&std(state)).is_ok());
}

#[test]
fn a_secret_is_never_printed_or_saved_and_a_wrong_one_is_refused() {
    let keyed = Keyed::new(*b"0123456789abcdef");
    let filter = BloomFilter::<u64, Keyed>::with_hasher(10, 0.01, keyed);
    assert!(!format!("{filter:?}").contains("0123") && !format!("{keyed:?}").contains("48"));
    let bytes = filter.to_bytes();
    assert!(!bytes.windows(8).any(|window| b"0123456789abcdef".windows(8).any(|s| s == window)));
    let open = |secret| BloomFilter::<u64, Keyed>::from_bytes_with_hasher(&bytes, secret);
    assert!(open(keyed).unwrap() == filter);
    assert_eq!(open(Keyed::new([0; 16])).map(|_| ()), Err(umbel::InvalidBytes::Hasher));
}

#[test]
fn random_secrets_differ() {
    assert_ne!(Keyed::random().secret(), Keyed::random().secret());
}

#[test]
fn filters_of_another_hash_or_kind_are_refused() {
    let bytes = BloomFilter::<u64>::new(10, 0.01).to_bytes();
    let keyed = BloomFilter::<u64, Keyed>::from_bytes_with_hasher(&bytes, Keyed::new([0; 16]));
    assert!(matches!(keyed, Err(umbel::InvalidBytes::Hash { expected: 2, got: 1 })));
    let array = ArrayBloomFilter::<u64, 3>::from_bytes(&bytes);
    assert!(matches!(array, Err(umbel::InvalidBytes::Shape(_))));
}

#[test]
fn stray_bits_and_lengths_that_lie_are_refused_with_checksums_in_order() {
    let filter = BloomFilter::<u64>::new(100, 0.01);
    let good = filter.to_bytes();
    let forged =
        |at, value: &[u8]| BloomFilter::<u64>::from_bytes(&with(&good, at, value)).map(|_| ());
    assert_eq!(forged(0, b"umbel"), Ok(()));
    // The last bit of the last word is not a position of any key.
    assert!(forged(WORDS + words_of(&good) - 1, &[0x80]).is_err());
    let (items, bits, probes, unused) = (field(0), field(1), field(2), field(3));
    for at in [items, bits, probes, LENGTH, unused, field(12)] {
        for value in [0_u64, 1, 64, 1 << 40, 1 << 48, u64::MAX] {
            let result = forged(at, &value.to_le_bytes());
            let same = good[at..at + 8] == value.to_le_bytes();
            // No other field depends on the planned items or on the number of probes.
            let right = at == items || at == probes && (1..=64).contains(&value);
            assert_eq!(result.is_ok(), same || right, "{at} {value}: {result:?}");
        }
    }
    for number in [0_u64, 65] {
        assert!(forged(probes, &number.to_le_bytes()).is_err());
    }
    for id in [8, 10, 12, KERNELS, 16, FLAGS, 20] {
        assert!(forged(id, &[9, 9]).is_err());
    }
}

#[test]
fn estimates_follow_what_was_inserted() {
    for items in [1_u64, 10, 1_000, 100_000] {
        let mut filter = BloomFilter::<u64>::new(items, 0.01);
        filter.extend((0..items).map(split_mix));
        let (estimate, sigma) = (filter.estimated_len() as f64, (items as f64).sqrt());
        assert!((estimate - items as f64).abs() <= 5.0 * sigma, "{items}: {estimate}");
    }
}

#[test]
fn batches_of_unequal_length_panic_and_change_nothing() {
    let mut filter = BloomFilter::<u64>::new(10, 0.01);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        filter.insert_batch(&[1_u64, 2, 3], &mut [false; 2]);
    }));
    assert!(result.is_err() && filter.is_empty());
}

#[test]
fn debug_is_one_line() {
    let mut filter = BloomFilter::<u64>::new(1_000, 0.01);
    filter.extend(0..1_000_u64);
    let line = format!("{filter:?}");
    assert!(line.starts_with("BloomFilter { capacity: 1000, bits: 9599, probes: 7, hasher: "));
    assert!(line.len() < 150 && !line.contains('\n'), "{line}");
}

fn positions_of<K: Kernels>(kernels: &K, digest: K::Digest, shape: &Shape) -> Vec<u64> {
    kernels.positions(digest, shape.bits()).take(shape.probes() as usize).collect()
}
