//! Batches of keys that each touch one or two places in memory: the place of a later key is
//! prefetched while an earlier key is processed.
//!
//! ```text
//!     key i + 32   digest it, fetch its lines  --.
//!       ...                                      |  ring of 32, or 64
//!     key i        test its lines, or set bits <-'
//! ```
//!
//! The ring holds only digests: computing the lines of a key a second time is cheaper than storing
//! them. Filters that fit into the cache use the same code, which makes look-ups there 4 % slower.

use crate::hash::Digest;
use crate::parts::prefetch::{prefetch, prefetch_far};
use crate::simd::{Choice, Isa, Job, Scalar, dispatch};

/// How many keys are in flight, and the cache level of their lines: more than a core can fetch at
/// the same time into its first-level cache, or, from distant memory, into its second-level cache,
/// which takes more.
pub(crate) const NEAR: usize = 32;
pub(crate) const FAR: usize = 64;

/// Memory of more than this many bytes counts as distant.
pub(crate) const FAR_BYTES: usize = 4 << 20;

/// An operation on one key. The methods must be `#[inline(always)]`, so that they are compiled for
/// the path of the loop.
pub(crate) trait Touch {
    /// The memory of all lines, in bytes.
    fn bytes(&self) -> usize;

    /// Prefetches the lines of a key, [`NEAR`] or [`FAR`] keys in advance.
    fn fetch<const AHEAD: usize>(&self, digest: Digest);

    /// Runs the operation.
    fn answer<I: Isa>(&mut self, isa: I, digest: Digest) -> bool;
}

/// Prefetches the line of `slice[index]`, `AHEAD` keys in advance.
#[inline(always)]
pub(crate) fn fetch<W, const AHEAD: usize>(slice: &[W], index: usize) {
    if AHEAD == FAR { prefetch_far(slice, index) } else { prefetch(slice, index) }
}

/// Answers for one key, after prefetching all its lines.
#[inline(always)]
pub(crate) fn fetch_and_answer(mut touch: impl Touch, digest: Digest) -> bool {
    touch.fetch::<NEAR>(digest);
    touch.answer(Scalar, digest)
}

/// Answers for one key, with the whole operation compiled for a path: for keys with many lines.
#[cfg(feature = "alloc")]
#[inline(always)]
pub(crate) fn one(choice: Choice, touch: impl Touch, digest: Digest) -> bool {
    let mut answer = false;
    dispatch(choice, OneKey { touch, digest, answer: &mut answer });
    answer
}

#[cfg(feature = "alloc")]
struct OneKey<'a, T> {
    touch: T,
    digest: Digest,
    answer: &'a mut bool,
}

#[cfg(feature = "alloc")]
impl<T: Touch> Job for OneKey<'_, T> {
    #[inline(always)]
    fn run<I: Isa>(mut self, isa: I) {
        *self.answer = self.touch.answer(isa, self.digest);
    }
}

/// Prefetches for and answers every key in order: `answers[i]` is for `keys[i]`.
#[inline(always)]
pub(crate) fn batch<A, T: Touch>(
    choice: Choice,
    touch: T,
    keys: &[A],
    digest: impl Fn(&A) -> Digest,
    answers: &mut [bool],
) {
    assert_eq!(keys.len(), answers.len(), "one answer for each key");
    dispatch(choice, Batch { touch, keys, digest, answers });
}

struct Batch<'a, T, A, F> {
    touch: T,
    keys: &'a [A],
    digest: F,
    answers: &'a mut [bool],
}

impl<T: Touch, A, F: Fn(&A) -> Digest> Job for Batch<'_, T, A, F> {
    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        if self.touch.bytes() > FAR_BYTES {
            self.go::<I, FAR>(isa)
        } else {
            self.go::<I, NEAR>(isa)
        }
    }
}

impl<T: Touch, A, F: Fn(&A) -> Digest> Batch<'_, T, A, F> {
    #[inline(always)]
    fn go<I: Isa, const AHEAD: usize>(self, isa: I) {
        let Self { mut touch, keys, digest, answers } = self;
        let mut ring = [Digest::new(0); AHEAD];
        for (slot, key) in ring.iter_mut().zip(keys) {
            *slot = digest(key);
            touch.fetch::<AHEAD>(*slot);
        }
        let (chunks, rest) = keys.get(AHEAD..).unwrap_or_default().as_chunks::<AHEAD>();
        let (answer_chunks, answers) = answers.split_at_mut(chunks.len() * AHEAD);
        for (keys, answers) in chunks.iter().zip(answer_chunks.as_chunks_mut::<AHEAD>().0) {
            for number in 0..AHEAD {
                answers[number] = touch.answer(isa, ring[number]);
                ring[number] = digest(&keys[number]);
                touch.fetch::<AHEAD>(ring[number]);
            }
        }
        let mut rest = rest.iter();
        for (number, answer) in answers.iter_mut().enumerate() {
            let slot = &mut ring[number % AHEAD];
            *answer = touch.answer(isa, *slot);
            if let Some(key) = rest.next() {
                *slot = digest(key);
                touch.fetch::<AHEAD>(*slot);
            }
        }
    }
}

/// Prefetches for and answers every digest, in any order, and ignores the answers.
#[inline(always)]
pub(crate) fn extend<T: Touch>(choice: Choice, touch: T, digests: impl Iterator<Item = Digest>) {
    dispatch(choice, Extension { touch, digests });
}

struct Extension<T, D> {
    touch: T,
    digests: D,
}

impl<T: Touch, D: Iterator<Item = Digest>> Job for Extension<T, D> {
    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        if self.touch.bytes() > FAR_BYTES {
            self.go::<I, FAR>(isa)
        } else {
            self.go::<I, NEAR>(isa)
        }
    }
}

impl<T: Touch, D: Iterator<Item = Digest>> Extension<T, D> {
    #[inline(always)]
    fn go<I: Isa, const AHEAD: usize>(self, isa: I) {
        let Self { mut touch, digests } = self;
        let mut digests = digests.fuse();
        let (mut ring, mut len) = ([Digest::new(0); AHEAD], 0);
        for (slot, digest) in ring.iter_mut().zip(&mut digests) {
            *slot = digest;
            touch.fetch::<AHEAD>(digest);
            len += 1;
        }
        while let Some(digest) = digests.next() {
            // The ring is full here.
            touch.answer(isa, digest);
            for (slot, digest) in ring.iter_mut().zip(&mut digests) {
                touch.answer(isa, *slot);
                *slot = digest;
                touch.fetch::<AHEAD>(digest);
            }
        }
        for &digest in &ring[..len] {
            touch.answer(isa, digest);
        }
    }
}
