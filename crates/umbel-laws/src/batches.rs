//! The law of batches: one meaning of "full" for all families.

use crate::{Pattern, Subject};

/// A subject that takes many keys at once.
pub trait Batches: Subject {
    /// Whether it refuses keys at some point.
    const FILLS: bool;

    /// Inserts one key, and tells as [`Subject::insert`] does; `None` if there is no room.
    fn insert_one(&mut self, key: u64) -> Option<bool>;

    /// Inserts keys in their order; `fresh[i]` is the answer for `keys[i]`.
    ///
    /// # Errors
    ///
    /// How many were inserted, if there is no room for the one after those.
    fn insert_batch(&mut self, keys: &[u64], fresh: &mut [bool]) -> Result<(), usize>;

    /// Whether the two give the same answers, now and after the same changes.
    fn equals(&self, other: &Self) -> bool;
}

/// Inserting a batch is inserting its keys one by one and stopping at the first that is refused: the
/// same filter, the same answers, `false` for all keys from the refused one on, and the error says how many
/// were inserted. Not vacuous: a subject that [fills](Batches::FILLS) is filled until it refuses, and then
/// taken further.
pub fn a_batch_stops_at_the_first_key_without_room<S: Batches>(items: u64, rate: f64) {
    for pattern in Pattern::ALL {
        for len in [1, 2, 7, 64, 1_000] {
            let (mut batches, mut single) = (S::make(items, rate, 11), S::make(items, rate, 11));
            // A sixth of the keys come a second time, so that some of a refused batch are there already.
            let key = |number: u64| match number % 6 {
                5 => pattern.key(number / 2),
                _ => pattern.key(number),
            };
            let (mut number, mut refused) = (0, 0);
            while number < 4 * items + 200 {
                let keys: Vec<u64> = (number..number + len).map(key).collect();
                number += len;
                // Whatever stood there before the call says nothing.
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
