//! Many keys, each with one place in memory or two: ask for the place of one key while working on
//! another.
//!
//! ```text
//!     key i + 32   digest it, fetch its lines  --.
//!       ...                                      |  ring of 32
//!     key i        test its lines, or set bits <-'
//! ```

use crate::hash::Digest;

/// How many keys are under way: more lines than a core can be waiting for.
const RING: usize = 32;

/// What is done with one key. Both methods must be `#[inline(always)]`, so that they are compiled
/// for the path of the loop.
pub(crate) trait Touch {
    /// Starts to load the lines of a key.
    fn fetch(&self, digest: Digest);

    /// Does the work.
    fn answer(&mut self, digest: Digest) -> bool;
}

/// Fetches for and answers every key, in their order.
///
/// The ring holds digests and nothing else. To find the lines of a key a second time is cheaper than
/// to keep them.
#[inline(always)]
pub(crate) fn ring<A, T: Touch>(
    mut touch: T,
    keys: &[A],
    digest: impl Fn(&A) -> Digest,
    answers: &mut [bool],
) {
    let mut ring = [Digest::new(0); RING];
    for (slot, key) in ring.iter_mut().zip(keys) {
        *slot = digest(key);
        touch.fetch(*slot);
    }
    let (chunks, rest) = keys.get(RING..).unwrap_or_default().as_chunks::<RING>();
    let (answer_chunks, answers) = answers.split_at_mut(chunks.len() * RING);
    for (keys, answers) in chunks.iter().zip(answer_chunks.as_chunks_mut::<RING>().0) {
        for number in 0..RING {
            answers[number] = touch.answer(ring[number]);
            ring[number] = digest(&keys[number]);
            touch.fetch(ring[number]);
        }
    }
    let mut rest = rest.iter();
    for (number, answer) in answers.iter_mut().enumerate() {
        let slot = &mut ring[number % RING];
        *answer = touch.answer(*slot);
        if let Some(key) = rest.next() {
            *slot = digest(key);
            touch.fetch(*slot);
        }
    }
}

/// Fetches for and answers every digest, in any order; what the answers are is not told.
#[inline(always)]
pub(crate) fn ring_without_answers<T: Touch>(mut touch: T, digests: impl Iterator<Item = Digest>) {
    let mut digests = digests.fuse();
    let mut ring = [Digest::new(0); RING];
    let mut len = 0;
    for (slot, digest) in ring.iter_mut().zip(&mut digests) {
        *slot = digest;
        touch.fetch(digest);
        len += 1;
    }
    while len == RING {
        for (slot, digest) in ring.iter_mut().zip(&mut digests) {
            touch.answer(*slot);
            *slot = digest;
            touch.fetch(digest);
        }
        match digests.next() {
            Some(digest) => {
                touch.answer(digest);
            }
            None => break,
        }
    }
    for digest in &ring[..len] {
        touch.answer(*digest);
    }
}
