//! Many keys, each with one place in memory or two: ask for the place of one key while working on
//! another.
//!
//! ```text
//!     key i + 31   digest it, fetch its lines  --.
//!       ...                                      |  ring of 32
//!     key i        test its lines, or set bits <-'
//! ```

use crate::hash::Digest;

/// How many keys are under way: more lines than a core can be waiting for.
const RING: usize = 32;

/// What is done with one key. Both methods must be `#[inline(always)]`, so that they are compiled
/// for the path of the loop.
pub(crate) trait Touch {
    /// What is kept of a key while its lines are on their way.
    type Staged: Copy;

    /// Finds the lines of a key and starts to load them.
    fn stage(&self, digest: Digest) -> Self::Staged;

    /// Does the work.
    fn answer(&mut self, staged: Self::Staged) -> bool;
}

/// Stages and answers every key, in their order.
#[inline(always)]
pub(crate) fn ring<A, T: Touch>(
    mut touch: T,
    keys: &[A],
    digest: impl Fn(&A) -> Digest,
    answers: &mut [bool],
) {
    let Some(first) = keys.first() else { return };
    let mut staged = [touch.stage(digest(first)); RING];
    for (slot, key) in staged.iter_mut().zip(keys).skip(1) {
        *slot = touch.stage(digest(key));
    }
    let (chunks, rest) = keys.get(RING..).unwrap_or_default().as_chunks::<RING>();
    let (answer_chunks, answers) = answers.split_at_mut(chunks.len() * RING);
    for (keys, answers) in chunks.iter().zip(answer_chunks.as_chunks_mut::<RING>().0) {
        for ((slot, key), answer) in staged.iter_mut().zip(keys).zip(answers) {
            *answer = touch.answer(*slot);
            *slot = touch.stage(digest(key));
        }
    }
    let mut rest = rest.iter();
    for (number, answer) in answers.iter_mut().enumerate() {
        let slot = &mut staged[number % RING];
        *answer = touch.answer(*slot);
        if let Some(key) = rest.next() {
            *slot = touch.stage(digest(key));
        }
    }
}
