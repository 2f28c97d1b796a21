//! Batches: the buckets of later keys are fetched while an earlier key is processed.

use super::table::{BucketTable, Place};
use crate::hash::Digest;
use crate::layout::ring::{self, FAR, FAR_BYTES, NEAR};
use crate::simd::{Choice, Isa, Job, dispatch};

/// An operation on one key. It is a trait because a closure would not be inlined into the loop.
pub(super) trait BucketWork<V> {
    fn answer(&mut self, table: &mut BucketTable<V>, place: Place) -> bool;
}

/// Looks keys up.
pub(super) struct BucketLookUp;

impl<V: AsRef<[u64]>> BucketWork<V> for BucketLookUp {
    #[inline(always)]
    fn answer(&mut self, table: &mut BucketTable<V>, place: Place) -> bool {
        table.holds(place)
    }
}

/// Inserts keys, until the table is full.
#[derive(Default)]
pub(super) struct BucketInsert {
    pub(super) inserted: usize,
    pub(super) full: bool,
}

impl<V: AsRef<[u64]> + AsMut<[u64]>> BucketWork<V> for &mut BucketInsert {
    #[inline(always)]
    fn answer(&mut self, table: &mut BucketTable<V>, place: Place) -> bool {
        if self.full {
            return false;
        }
        let fresh = table.insert(place);
        self.full = fresh.is_err();
        self.inserted += usize::from(fresh.is_ok());
        fresh.unwrap_or_default()
    }
}

/// Removes keys.
pub(super) struct BucketRemove;

impl<V: AsRef<[u64]> + AsMut<[u64]>> BucketWork<V> for BucketRemove {
    #[inline(always)]
    fn answer(&mut self, table: &mut BucketTable<V>, place: Place) -> bool {
        table.remove(place)
    }
}

/// A batch that computes each place once and keeps it while the buckets are being fetched.
struct BucketBatch<'a, V, W, A, F> {
    table: BucketTable<V>,
    work: W,
    keys: &'a [A],
    digest: F,
    answers: &'a mut [bool],
}

impl<V: AsRef<[u64]>, W: BucketWork<V>, A, F: Fn(&A) -> Digest> Job
    for BucketBatch<'_, V, W, A, F>
{
    #[inline(always)]
    fn run<I: Isa>(self, _: I) {
        if size_of_val(self.table.words.as_ref()) > FAR_BYTES {
            self.go::<FAR>()
        } else {
            self.go::<NEAR>()
        }
    }
}

impl<V: AsRef<[u64]>, W: BucketWork<V>, A, F: Fn(&A) -> Digest> BucketBatch<'_, V, W, A, F> {
    /// Computes the place of a key and prefetches its buckets.
    #[inline(always)]
    fn stage<const AHEAD: usize>(&self, key: &A) -> Place {
        let place = self.table.place((self.digest)(key));
        for word in self.table.words_of(place) {
            ring::fetch::<_, AHEAD>(self.table.words.as_ref(), word);
        }
        place
    }

    #[inline(always)]
    fn go<const AHEAD: usize>(mut self) {
        let mut ring = [Place { fingerprint: 0, buckets: [0; 2] }; AHEAD];
        for (slot, key) in ring.iter_mut().zip(self.keys) {
            *slot = self.stage::<AHEAD>(key);
        }
        let (chunks, rest) = self.keys.get(AHEAD..).unwrap_or_default().as_chunks::<AHEAD>();
        let mut answers = core::mem::take(&mut self.answers).iter_mut();
        for keys in chunks {
            for ((slot, key), answer) in ring.iter_mut().zip(keys).zip(&mut answers) {
                *answer = self.work.answer(&mut self.table, *slot);
                *slot = self.stage::<AHEAD>(key);
            }
        }
        let mut rest = rest.iter();
        for (number, answer) in answers.enumerate() {
            let slot = &mut ring[number % AHEAD];
            *answer = self.work.answer(&mut self.table, *slot);
            if let Some(key) = rest.next() {
                *slot = self.stage::<AHEAD>(key);
            }
        }
    }
}

impl<V: AsRef<[u64]>> BucketTable<V> {
    /// Runs the operation for every key in order: `answers[i]` is for `keys[i]`.
    #[inline(always)]
    pub(super) fn for_each<A>(
        self,
        work: impl BucketWork<V>,
        keys: &[A],
        digest: impl Fn(&A) -> Digest,
        answers: &mut [bool],
    ) {
        assert_eq!(keys.len(), answers.len(), "one answer for each key");
        dispatch(Choice::OPEN, BucketBatch { table: self, work, keys, digest, answers });
    }
}
