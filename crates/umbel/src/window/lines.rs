//! What is done with the lines of a key: a group, one line of each epoch, side by side in memory.
//!
//! A key has the same bits in every epoch, so they are worked out once, and a look-up goes through
//! lines that the processor fetches by itself once it was asked for the first.

use super::hand::Hand;
use super::shape::EPOCHS;
use crate::hash::Digest;
use crate::layout::ring::{Touch, fetch};
use crate::simd::{Isa, Lanes, Line, half, line_number};

/// The group of a key.
#[inline(always)]
fn group_of(hand: &Hand, digest: Digest) -> usize {
    line_number(digest.bits(), 0, hand.groups())
}

/// The lines of a group.
#[inline(always)]
fn group<'a>(lines: &'a [Line<u64>], hand: &Hand, number: usize) -> &'a [Line<u64>] {
    &lines[number * hand.epochs()..][..hand.epochs()]
}

/// Whether a line of the group has all bits of a key. The number of epochs that nearly all filters
/// have is known to the compiler, which saves a third of the time.
#[inline(always)]
fn group_has<I: Isa>(
    isa: I,
    lines: &[Line<u64>],
    hand: &Hand,
    digest: Digest,
    lanes: &Lanes,
) -> bool {
    let number = group_of(hand, digest);
    if hand.epochs() == EPOCHS {
        any_has(isa, &lines.as_chunks::<EPOCHS>().0[number], digest, lanes)
    } else {
        any_has(isa, group(lines, hand, number), digest, lanes)
    }
}

/// Whether one of these lines has all bits of a key. Looks at all of them: where a key is found is a
/// branch that nobody can predict.
#[inline(always)]
fn any_has<'a, I: Isa>(
    isa: I,
    lines: impl IntoIterator<Item = &'a Line<u64>>,
    digest: Digest,
    lanes: &Lanes,
) -> bool {
    let x = half(digest.bits(), 0);
    lines.into_iter().fold(false, |found, line| found | isa.line_has(line, x, lanes))
}

/// Starts to load the lines of a key.
#[inline(always)]
fn fetch_group<const AHEAD: usize>(lines: &[Line<u64>], hand: &Hand, digest: Digest) {
    let first = group_of(hand, digest) * hand.epochs();
    if hand.epochs() == EPOCHS {
        (first..first + EPOCHS).for_each(|line| fetch::<_, AHEAD>(lines, line));
    } else {
        (first..first + hand.epochs()).for_each(|line| fetch::<_, AHEAD>(lines, line));
    }
}

/// Looks keys up.
pub(super) struct EpochsLookUp<'a> {
    pub(super) lines: &'a [Line<u64>],
    pub(super) hand: &'a Hand,
    pub(super) lanes: &'static Lanes,
}

impl Touch for EpochsLookUp<'_> {
    #[inline(always)]
    fn bytes(&self) -> usize {
        size_of_val(self.lines)
    }

    #[inline(always)]
    fn fetch<const AHEAD: usize>(&self, digest: Digest) {
        fetch_group::<AHEAD>(self.lines, self.hand, digest);
    }

    #[inline(always)]
    fn answer<I: Isa>(&mut self, isa: I, digest: Digest) -> bool {
        group_has(isa, self.lines, self.hand, digest, self.lanes)
    }
}

/// Looks keys up as if the hand had passed so many groups more.
pub(super) struct EpochsLookUpAhead<'a> {
    pub(super) now: EpochsLookUp<'a>,
    pub(super) passed: u128,
}

impl Touch for EpochsLookUpAhead<'_> {
    #[inline(always)]
    fn bytes(&self) -> usize {
        self.now.bytes()
    }

    #[inline(always)]
    fn fetch<const AHEAD: usize>(&self, digest: Digest) {
        self.now.fetch::<AHEAD>(digest);
    }

    #[inline(always)]
    fn answer<I: Isa>(&mut self, isa: I, digest: Digest) -> bool {
        let EpochsLookUp { lines, hand, lanes } = self.now;
        let number = group_of(hand, digest);
        let gone = usize::try_from(hand.times(number, self.passed)).unwrap_or(usize::MAX);
        // The oldest lines are those after the one that is being filled.
        let (newer, older) = group(lines, hand, number).split_at(hand.filled(number) + 1);
        any_has(isa, older.iter().chain(newer).skip(gone), digest, lanes)
    }
}

/// Inserts keys; with `ANSWER`, tells whether they were not found before.
pub(super) struct EpochsInsert<'a, const ANSWER: bool> {
    pub(super) lines: &'a mut [Line<u64>],
    pub(super) hand: &'a mut Hand,
    pub(super) lanes: &'static Lanes,
    /// Whether insertions move the hand.
    pub(super) steps: bool,
}

impl<const ANSWER: bool> Touch for EpochsInsert<'_, ANSWER> {
    #[inline(always)]
    fn bytes(&self) -> usize {
        size_of_val(self.lines)
    }

    #[inline(always)]
    fn fetch<const AHEAD: usize>(&self, digest: Digest) {
        if ANSWER {
            return fetch_group::<AHEAD>(self.lines, self.hand, digest);
        }
        let number = group_of(self.hand, digest);
        let filled = number * self.hand.epochs() + self.hand.filled(number);
        fetch::<_, AHEAD>(self.lines, filled);
    }

    #[inline(always)]
    fn answer<I: Isa>(&mut self, isa: I, digest: Digest) -> bool {
        let fresh = ANSWER && !group_has(isa, self.lines, self.hand, digest, self.lanes);
        let number = group_of(self.hand, digest);
        let filled = number * self.hand.epochs() + self.hand.filled(number);
        isa.line_set(&mut self.lines[filled], half(digest.bits(), 0), self.lanes);
        if self.steps {
            // After the key is in, so that it has the whole window before it.
            self.hand.step(|line| self.lines[line] = [0; 8]);
        }
        fresh
    }
}
