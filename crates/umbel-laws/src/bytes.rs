//! Laws about the bytes of filters.

use crate::keys::split_mix;
use crate::{Saves, Subject};

/// A filter that is saved and loaded is the same filter. It continues as the original does, and gives the same
/// bytes.
pub fn round_trips<S: Saves>(items: u64, rate: f64) {
    for filled in [0, 1, items / 2, items] {
        let filter = filled_with::<S>(items, rate, filled);
        let bytes = filter.save();
        let mut again = S::load(&bytes).expect("a filter loads what it saved");
        assert!(again.same(&filter), "another filter came back ({filled} of {items} keys)");
        assert_eq!(again.save(), bytes, "the same filter has other bytes now");
        assert!((0..filled).all(|key| again.contains(key)), "keys were lost on the way");
        let mut stayed = filter;
        for key in items..items + 10 {
            assert_eq!(again.insert(key), stayed.insert(key));
        }
        assert!(again.same(&stayed), "the filter that came back goes on differently");
    }
}

/// No bytes cause a panic or give a filter that panics, and damage is refused: every truncation, every single
/// flipped bit, added bytes, zeroed, swapped or replaced ranges, and noise.
pub fn survives_any_bytes<S: Saves>(items: u64, rate: f64) {
    let bytes = filled_with::<S>(items, rate, items).save();
    let refused = |damaged: &[u8], what: &str| {
        if damaged != bytes {
            let error = S::load(damaged).err().unwrap_or_else(|| panic!("accepted: {what}"));
            assert!(!error.is_empty(), "an error that says nothing: {what}");
        }
    };
    for len in 0..bytes.len() {
        refused(&bytes[..len], "a truncation");
    }
    for extra in [1, 7, 8, 64] {
        refused(&[&bytes[..], &vec![0; extra]].concat(), "bytes behind the end");
    }
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        refused(&damaged, "a flipped bit");
    }
    for chunk in (0..bytes.len()).step_by(8) {
        let mut damaged = bytes.clone();
        let end = (chunk + 8).min(bytes.len());
        damaged[chunk..end].fill(0);
        refused(&damaged, "a zeroed word");
        damaged[chunk..end].fill(0xff);
        refused(&damaged, "a word of ones");
        if let Some(other) = (chunk + 16 <= bytes.len()).then_some(chunk + 8) {
            let mut damaged = bytes.clone();
            let (left, right) = damaged.split_at_mut(other);
            left[chunk..].swap_with_slice(&mut right[..8]);
            refused(&damaged, "two words swapped");
        }
    }
    for round in 0..2_000 {
        let len = (split_mix(round) % 300) as usize;
        let mut noise: Vec<u8> =
            (0..len as u64).map(|i| split_mix(round ^ i << 32) as u8).collect();
        refused(&noise, "noise");
        // Noise with a valid beginning gets further.
        let begin = (split_mix(round + 1) as usize) % bytes.len().min(len + 1);
        noise[..begin].copy_from_slice(&bytes[..begin]);
        refused(&noise, "a filter that turns into noise");
    }
}

fn filled_with<S: Subject>(items: u64, rate: f64, keys: u64) -> S {
    let mut filter = S::make(items, rate, 5);
    for key in 0..keys {
        filter.insert(key);
    }
    filter
}
