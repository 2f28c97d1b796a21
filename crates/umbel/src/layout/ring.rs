//! Many keys, each with one place in memory or two: ask for the place of one key while working on
//! another.
//!
//! ```text
//!     key i + 32   digest it, fetch its lines  --.
//!       ...                                      |  ring of 32, or 64
//!     key i        test its lines, or set bits <-'
//! ```
//!
//! The ring holds digests and nothing else: to find the lines of a key a second time is cheaper than
//! to keep them. Filters that are in the cache go the same way, which costs look-ups there 4 %.

use crate::hash::Digest;
use crate::parts::prefetch::{prefetch, prefetch_far};
use crate::simd::{Choice, Isa, Job, Scalar, dispatch};

/// How many keys are under way, and where their lines go: more than a core can be waiting for in its
/// first cache, or, from memory that is far away, in its second one, which takes more.
pub(crate) const NEAR: usize = 32;
pub(crate) const FAR: usize = 64;

/// Memory of more than this many bytes is far away.
pub(crate) const FAR_BYTES: usize = 4 << 20;

/// What is done with one key. The methods must be `#[inline(always)]`, so that they are compiled for
/// the path of the loop.
pub(crate) trait Touch {
    /// The memory in which all lines are, in bytes.
    fn bytes(&self) -> usize;

    /// Starts to load the lines of a key, [`NEAR`] or [`FAR`] keys before they are needed.
    fn fetch<const AHEAD: usize>(&self, digest: Digest);

    /// Does the work.
    fn answer<I: Isa>(&mut self, isa: I, digest: Digest) -> bool;
}

/// Starts to load the line of `slice[index]` so many keys before it is needed.
#[inline(always)]
pub(crate) fn fetch<W, const AHEAD: usize>(slice: &[W], index: usize) {
    if AHEAD == FAR { prefetch_far(slice, index) } else { prefetch(slice, index) }
}

/// Answers for one key, for which it pays to ask for all its lines first.
#[inline(always)]
pub(crate) fn fetch_and_answer(mut touch: impl Touch, digest: Digest) -> bool {
    touch.fetch::<NEAR>(digest);
    touch.answer(Scalar, digest)
}

/// Answers for one key, compiled for a path as a whole: for keys with many lines.
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

/// Fetches for and answers every key, in their order: `answers[i]` is for `keys[i]`.
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

/// Fetches for and answers every digest, in any order; what the answers are is not told.
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
            // Whoever comes here has a full ring.
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
