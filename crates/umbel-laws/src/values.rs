//! Laws about maps from keys to small values.

use crate::Pattern;

/// A map that returns a value for every key, and the right one for the keys that it was built from.
pub trait Answers: Sized {
    /// Builds the map of these pairs, with values of `bits` bits. Different seeds hash differently.
    fn make(pairs: &[(u64, u32)], bits: u32, seed: u64) -> Self;

    /// The value of the key with this number.
    fn get(&self, key: u64) -> u32;
}

/// An arbitrary value of `bits` bits for each key.
fn value(index: u64, bits: u32) -> u32 {
    (crate::split_mix(index ^ 0x7a1e) >> 32) as u32 & u32::MAX >> (32 - bits)
}

fn map<M: Answers>(items: u64, bits: u32, pattern: Pattern, seed: u64) -> M {
    let pairs = (0..items).map(|index| (pattern.key(index), value(index, bits)));
    M::make(&pairs.collect::<Vec<_>>(), bits, seed)
}

/// Every key that the map was built from gets its value.
pub fn every_key_gets_its_value<M: Answers>(items: u64, bits: u32) {
    for pattern in Pattern::ALL {
        let map = map::<M>(items, bits, pattern, items);
        for index in 0..items {
            let (got, expected) = (map.get(pattern.key(index)), value(index, bits));
            assert_eq!(got, expected, "{pattern:?}: key {index} of {items}");
        }
    }
}

/// Any other key gets each value with the same probability, within five sigma, so the answer reveals nothing.
/// Only for values of a few bits, so that each occurs often enough.
pub fn a_stranger_gets_each_value_at_chance<M: Answers>(items: u64, bits: u32) {
    assert!(bits <= 4, "{bits} bits are too many to count");
    for pattern in Pattern::ALL {
        let maps = (2_000 / items).max(1);
        let strangers = 64_000 / maps;
        let mut counts = vec![0_u64; 1 << bits];
        for seed in 0..maps {
            let map = map::<M>(items, bits, pattern, seed);
            for index in items..items + strangers {
                counts[map.get(pattern.key(index)) as usize] += 1;
            }
        }
        let (trials, chance) = ((maps * strangers) as f64, 1.0 / counts.len() as f64);
        let (mean, sigma) = (trials * chance, (trials * chance * (1.0 - chance)).sqrt());
        for (value, &count) in counts.iter().enumerate() {
            let off = (count as f64 - mean) / sigma;
            assert!(off.abs() <= 5.0, "{pattern:?}: {value} came {count} times, {off} sigma");
        }
    }
}
