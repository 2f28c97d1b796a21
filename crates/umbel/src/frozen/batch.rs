//! Batch look-ups: compute the places of several keys and prefetch their entries, then combine
//! them.
//!
//! Computing the places takes most of the time, so they are kept until the entries have arrived. A
//! ring of single keys, as in [`layout`](crate::layout), would compute them twice, which is slower
//! for three or four places.

use crate::hash::Digest;
use crate::parts::prefetch::{prefetch, prefetch_far};
use crate::simd::{Choice, Isa, Job, dispatch};

/// How many keys are in flight at a time.
const AHEAD: usize = 64;

/// Words of filters larger than this are prefetched into the second-level cache: 4 MiB.
const FAR_WORDS: usize = 1 << 19;

/// The operation on one key. The methods must be `#[inline(always)]`, so that they are compiled for
/// the instruction path of the loop.
pub(super) trait Steps<const ARITY: usize> {
    /// The places of the entries of a key, and what the second step needs besides the entries.
    type Seat: Copy + Default;

    /// All words.
    fn words(&self) -> &[u64];

    /// The first step, which reads no word.
    fn seat(&self, digest: Digest) -> Self::Seat;

    /// The indices of the words in which the entries begin.
    fn words_of(&self, seat: &Self::Seat) -> [usize; ARITY];

    /// The second step, which reads the entries.
    fn answer(&self, seat: Self::Seat) -> bool;
}

/// Answers for every key: `found[i]` is for `keys[i]`.
///
/// # Panics
///
/// If `found` and `keys` differ in length.
#[inline(always)]
pub(super) fn batch<const ARITY: usize, K>(
    steps: impl Steps<ARITY>,
    keys: &[K],
    digest: impl Fn(&K) -> Digest,
    found: &mut [bool],
) {
    assert_eq!(keys.len(), found.len(), "one answer for each key");
    dispatch(Choice::now(), EntryBatch { steps, keys, digest, found });
}

struct EntryBatch<'a, const ARITY: usize, S, K, D> {
    steps: S,
    keys: &'a [K],
    digest: D,
    found: &'a mut [bool],
}

impl<const ARITY: usize, S, K, D> Job for EntryBatch<'_, ARITY, S, K, D>
where
    S: Steps<ARITY>,
    D: Fn(&K) -> Digest,
{
    #[inline(always)]
    fn run<I: Isa>(self, _: I) {
        if self.steps.words().len() > FAR_WORDS { self.go::<true>() } else { self.go::<false>() }
    }
}

impl<const ARITY: usize, S: Steps<ARITY>, K, D: Fn(&K) -> Digest> EntryBatch<'_, ARITY, S, K, D> {
    #[inline(always)]
    fn go<const FAR: bool>(self) {
        let Self { steps, keys, digest, found } = self;
        let fetch = if FAR { prefetch_far::<u64> } else { prefetch::<u64> };
        let mut seats = [S::Seat::default(); AHEAD];
        for (keys, found) in keys.chunks(AHEAD).zip(found.chunks_mut(AHEAD)) {
            for (seat, key) in seats.iter_mut().zip(keys) {
                *seat = steps.seat(digest(key));
                for word in steps.words_of(seat) {
                    fetch(steps.words(), word);
                }
            }
            for (found, seat) in found.iter_mut().zip(&seats) {
                *found = steps.answer(*seat);
            }
        }
    }
}
