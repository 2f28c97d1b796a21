//! The law of batches: all families treat "full" in the same way.

use crate::{Pattern, Subject};

/// A subject that inserts many keys at once.
pub trait Batches: Subject {
    /// Whether it refuses keys when it is full.
    const FILLS: bool;

    /// Inserts one key, with the result of [`Subject::insert`]; `None` if there is no room.
    fn insert_one(&mut self, key: u64) -> Option<bool>;

    /// Inserts keys in their order; `fresh[i]` is the answer for `keys[i]`.
    ///
    /// # Errors
    ///
    /// The number of inserted keys, if there is no room for the next one.
    fn insert_batch(&mut self, keys: &[u64], fresh: &mut [bool]) -> Result<(), usize>;

    /// Whether the two give the same answers, now and after the same changes.
    fn equals(&self, other: &Self) -> bool;
}

/// Inserting a batch is equivalent to inserting its keys one by one and stopping at the first that is refused:
/// the same filter, the same answers, and `false` for all keys from the refused one on. The error has the
/// number of inserted keys. Not vacuous: a subject that [fills](Batches::FILLS) is filled until it refuses a
/// key, and then used further.
pub fn a_batch_stops_at_the_first_key_without_room<S: Batches>(items: u64, rate: f64) {
    for pattern in Pattern::ALL {
        for len in [1, 2, 7, 64, 1_000] {
            let (mut batches, mut single) = (S::make(items, rate, 11), S::make(items, rate, 11));
            // A sixth of the keys are repeated, so that a refused batch has some keys that are already present.
            let key = |number: u64| match number % 6 {
                5 => pattern.key(number / 2),
                _ => pattern.key(number),
            };
            let (mut number, mut refused) = (0, 0);
            while number < 4 * items + 200 {
                let keys: Vec<u64> = (number..number + len).map(key).collect();
                number += len;
                // The previous content of `fresh` must not matter.
                let mut fresh = vec![true; keys.len()];
                let done = batches.insert_batch(&keys, &mut fresh);
                let inserted = done.err().unwrap_or(keys.len());
                let what = || format!("{pattern:?}: batches of {len}, {inserted} of the last one");
                assert!(inserted <= keys.len(), "{}: more than there were", what());
                for (key, fresh) in keys.iter().zip(&fresh).take(inserted) {
                    let answer = single.insert_one(*key);
                    assert_eq!(answer, Some(*fresh), "{}: not as one by one", what());
                }
                if let Some(key) = keys.get(inserted) {
                    refused += 1;
                    assert_eq!(single.insert_one(*key), None, "{}: there was room", what());
                }
                assert!(!fresh[inserted..].contains(&true), "{}: refused, and fresh", what());
                assert!(batches.equals(&single), "{}: another filter", what());
            }
            assert_eq!(refused > 0, S::FILLS, "{pattern:?}: batches of {len}, {refused} refused");
        }
    }
}
