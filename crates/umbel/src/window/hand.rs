//! The hand: it determines which line of each group is being filled, and which is cleared next.
//!
//! ```text
//!     group        0   1   2   3   4   5
//!     epoch 0      .   .   .   #   #   #       # being filled
//!     epoch 1      #   #   #   x   .   .       x cleared next, when the hand moves on
//!     epoch 2      .   .   .   .   .   .       . full, or empty at first
//!                              ^
//!                            hand
//! ```
//!
//! The hand goes round once per turn. When it passes a group, the oldest line of the group is
//! cleared and becomes the one that is filled. So every group begins an epoch exactly once per
//! turn, each at a different moment, and each step clears only the lines that the hand passes.

use core::hint::select_unpredictable;

/// The position of the hand. It has no access to the words; it returns which lines to clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hand {
    /// The number of lines of a group, at least two.
    epochs: usize,
    /// The number of groups, at least one and below 2^40.
    groups: usize,
    /// How many steps, insertions or nanoseconds, take it round once: at least one, below 2^63.
    span: u64,
    /// The group that it passes next.
    pub(super) group: usize,
    /// The epoch that is being filled in the groups before `group`.
    pub(super) epoch: usize,
    /// The distance that it has moved towards the next group. That group is at distance `span`, and
    /// a step moves it by `groups`.
    pub(super) way: u64,
}

impl Hand {
    /// The hand at its start: all groups fill epoch 0.
    pub(super) const fn new(epochs: u32, groups: u64, span: u64) -> Self {
        let (epochs, groups) = (epochs as usize, groups as usize);
        Self { epochs, groups, span, group: 0, epoch: 1, way: 0 }
    }

    /// The same hand at another position, if that position is valid.
    pub(super) fn at(self, group: u64, epoch: u64, way: u64) -> Option<Self> {
        let group = usize::try_from(group).ok().filter(|&group| group < self.groups)?;
        let epoch = usize::try_from(epoch).ok().filter(|&epoch| epoch < self.epochs)?;
        (way < self.span).then_some(Self { group, epoch, way, ..self })
    }

    /// The number of lines of a group.
    #[inline(always)]
    pub(super) const fn epochs(&self) -> usize {
        self.epochs
    }

    #[inline(always)]
    pub(super) const fn groups(&self) -> usize {
        self.groups
    }

    /// The epoch that is being filled in this group.
    #[inline(always)]
    pub(super) fn filled(&self, group: usize) -> usize {
        let before = if self.epoch == 0 { self.epochs } else { self.epoch } - 1;
        select_unpredictable(group < self.group, self.epoch, before)
    }

    /// Passes one group. Returns the line to clear.
    #[inline(always)]
    fn pass(&mut self) -> usize {
        let line = self.group * self.epochs + self.epoch;
        self.group += 1;
        if self.group == self.groups {
            self.group = 0;
            self.epoch = if self.epoch + 1 == self.epochs { 0 } else { self.epoch + 1 };
        }
        line
    }

    /// Moves by one step. Calls `clear` with the lines to clear.
    #[inline(always)]
    pub(super) fn step(&mut self, mut clear: impl FnMut(usize)) {
        self.way += self.groups as u64;
        while self.way >= self.span {
            self.way -= self.span;
            clear(self.pass());
        }
    }

    /// How many groups it would pass in `steps` steps, and its distance then.
    pub(super) const fn ahead(&self, steps: u64) -> (u128, u64) {
        let way = self.way as u128 + steps as u128 * self.groups as u128;
        (way / self.span as u128, (way % self.span as u128) as u64)
    }

    /// Moves by many steps at once. Calls `clear` with the lines to clear, at most once for each
    /// line, or returns `true` if all lines must be cleared.
    #[must_use]
    pub(super) fn go(&mut self, steps: u64, mut clear: impl FnMut(usize)) -> bool {
        let (passed, way) = self.ahead(steps);
        self.way = way;
        let all = passed >= self.epochs as u128 * self.groups as u128;
        if all {
            let group = self.group as u128 + passed;
            let epoch = self.epoch as u128 + group / self.groups as u128;
            self.group = (group % self.groups as u128) as usize;
            self.epoch = (epoch % self.epochs as u128) as usize;
        } else {
            (0..passed).for_each(|_| clear(self.pass()));
        }
        all
    }

    /// How often it would pass this group while passing `passed` groups.
    pub(super) const fn times(&self, group: usize, passed: u128) -> u128 {
        let until =
            if group < self.group { self.groups - self.group + group } else { group - self.group };
        if passed > until as u128 {
            1 + (passed - 1 - until as u128) / self.groups as u128
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn each_group_begins_an_epoch_once_a_turn_and_clears_the_oldest() {
        for (epochs, groups, span) in [(2, 1, 1), (2, 1, 7), (3, 5, 2), (5, 4, 9), (4, 10, 10)] {
            let mut hand = Hand::new(epochs, groups, span);
            let (epochs, groups) = (hand.epochs(), hand.groups());
            // The step at which each line was last cleared.
            let mut cleared = std::vec![None; epochs * groups];
            for step in 1..=span * epochs as u64 * 3 {
                let before = hand;
                hand.step(|line| {
                    let (group, epoch) = (line / epochs, line % epochs);
                    assert_eq!((before.filled(group) + 1) % epochs, epoch);
                    if let Some(last) = cleared[line].replace(step) {
                        assert_eq!(step - last, span * epochs as u64, "line {line}");
                    }
                });
                for group in 0..groups {
                    let newest = (0..epochs).max_by_key(|epoch| {
                        (cleared[group * epochs + epoch], usize::from(*epoch == 0))
                    });
                    assert_eq!(newest, Some(hand.filled(group)), "group {group}");
                }
                if step.is_multiple_of(span) {
                    assert_eq!((hand.group, hand.way), (0, 0));
                }
            }
            assert!(cleared.iter().all(Option::is_some));
        }
    }

    #[test]
    fn going_is_stepping() {
        for (epochs, groups, span) in [(2, 1, 1), (2, 3, 7), (3, 5, 2), (5, 4, 9)] {
            let mut start = Hand::new(epochs, groups, span);
            for _ in 0..40 {
                start.step(|_| ());
                for steps in 0..span * (u64::from(epochs) + 2) {
                    let (mut stepped, mut lines) = (start, Vec::new());
                    (0..steps).for_each(|_| stepped.step(|line| lines.push(line)));
                    let (mut gone, mut cleared) = (start, Vec::new());
                    let all = gone.go(steps, |line| cleared.push(line));
                    assert_eq!(gone, stepped);
                    assert_eq!(all, lines.len() as u64 >= u64::from(epochs) * groups);
                    assert!(all || cleared == lines);
                    let (passed, way) = start.ahead(steps);
                    assert_eq!((passed, way), (lines.len() as u128, gone.way));
                    for group in 0..start.groups() {
                        let times = lines.iter().filter(|line| *line / start.epochs() == group);
                        assert_eq!(start.times(group, passed), times.count() as u128);
                    }
                }
            }
        }
        // There is no overflow.
        let mut slow = Hand::new(64, 3, (1 << 63) - 1);
        let mut passed = 0;
        assert!(!slow.go(u64::MAX, |_| passed += 1));
        assert_eq!((passed, slow.way), (6, 3));
    }

    #[test]
    fn a_hand_is_nowhere_but_at_a_group() {
        let hand = Hand::new(3, 5, 7);
        assert_eq!(hand.at(4, 2, 6), Some(Hand { group: 4, epoch: 2, way: 6, ..hand }));
        for (group, epoch, way) in [(5, 0, 0), (0, 3, 0), (0, 0, 7), (u64::MAX, 0, 0)] {
            assert_eq!(hand.at(group, epoch, way), None);
        }
    }
}
