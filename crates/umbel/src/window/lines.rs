//! Operations on the lines of a key: a group, which is one line of each epoch, adjacent in memory.
//!
//! A key has the same bits in every epoch, so they are computed once. A look-up reads adjacent
//! lines, which the hardware prefetcher loads after the first one.

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

#[inline(always)]
fn group<'a>(lines: &'a [Line<u64>], hand: &Hand, number: usize) -> &'a [Line<u64>] {
    &lines[number * hand.epochs()..][..hand.epochs()]
}

/// Whether a line of the group has all bits of a key. The most common number of epochs is a
/// compile-time constant, which saves a third of the time.
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

/// Whether one of these lines has all bits of a key. It tests all lines, because a branch on the
/// line in which a key is found would be unpredictable.
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

/// Prefetches the lines of a key.
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

/// Looks keys up as if the hand had passed this many more groups.
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
        // The oldest lines follow the one that is being filled.
        let (newer, older) = group(lines, hand, number).split_at(hand.filled(number) + 1);
        any_has(isa, older.iter().chain(newer).skip(gone), digest, lanes)
    }
}

/// Inserts keys. With `ANSWER`, reports whether they were new.
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
            // After the key was inserted, so that it stays for the whole window.
            self.hand.step(|line| self.lines[line] = [0; 8]);
        }
        fresh
    }
}
