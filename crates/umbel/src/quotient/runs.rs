//! Walks over all runs of a table: to read them in order, to sort them, and to check that they
//! match the marks.

use super::table::{RunTable, SATURATED, SLOTS};
use crate::parts::select::Broadword;
use alloc::vec::Vec;
use core::iter::FusedIterator;
use core::ops::Range;

/// A walk over the runs of a table. The table may change in between, as long as no run moves.
#[derive(Clone, Debug)]
struct Runs {
    block: usize,
    /// The quotients of this block whose runs have not been visited.
    left: u64,
    /// The slot behind the last run.
    free: usize,
    /// The quotient at which to stop.
    end: usize,
}

impl Runs {
    /// The runs of these quotients, the first of which begins a block.
    fn new(table: &RunTable, quotients: Range<usize>) -> Self {
        let block = quotients.start / SLOTS;
        if quotients.is_empty() {
            return Self { block, left: 0, free: 0, end: 0 };
        }
        let free = quotients.start + table.offset(Broadword, block);
        Self { block, left: table.marks(block)[0], free, end: quotients.end }
    }

    /// The next quotient that has a run, and its slots.
    #[inline(always)]
    fn next(&mut self, table: &RunTable) -> Option<(usize, Range<usize>)> {
        while self.left == 0 {
            self.block += 1;
            if self.block * SLOTS >= self.end {
                return None;
            }
            self.left = table.marks(self.block)[0];
        }
        let quotient = self.block * SLOTS + self.left.trailing_zeros() as usize;
        self.left &= self.left - 1;
        let start = self.free.max(quotient);
        let mut block = start / SLOTS;
        let mut ends = table.marks(block)[1] & u64::MAX << (start % SLOTS);
        while ends == 0 {
            block += 1;
            ends = table.marks(block)[1];
        }
        self.free = block * SLOTS + ends.trailing_zeros() as usize + 1;
        Some((quotient, start..self.free))
    }
}

/// The prefixes of the digests in a filter, in ascending order: one prefix for each insertion of a
/// key. Comes from [`prefixes`](super::RawQuotient::prefixes).
#[derive(Clone, Debug)]
pub struct Prefixes<'a> {
    table: &'a RunTable,
    runs: Runs,
    /// The prefixes of the last run. Those from `next` on have not been returned.
    sorted: Vec<u64>,
    next: usize,
}

impl<'a> Prefixes<'a> {
    /// The prefixes of these quotients, the first of which begins a block.
    pub(super) fn new(table: &'a RunTable, quotients: Range<usize>) -> Self {
        Self { table, runs: Runs::new(table, quotients), sorted: Vec::new(), next: 0 }
    }
}

impl Iterator for Prefixes<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        if let Some(prefix) = self.sorted.get(self.next) {
            self.next += 1;
            return Some(*prefix);
        }
        let (quotient, slots) = self.runs.next(self.table)?;
        let first = (quotient as u64) << self.table.width();
        if slots.len() == 1 {
            return Some(first | self.table.remainder(slots.start));
        }
        self.sorted.clear();
        self.sorted.extend(slots.map(|slot| first | self.table.remainder(slot)));
        self.sorted.sort_unstable();
        self.next = 1;
        self.sorted.first().copied()
    }
}

impl FusedIterator for Prefixes<'_> {}

impl RunTable {
    /// Sorts every run, so that the same keys give the same words in any order of insertion.
    pub(super) fn sort(&mut self) {
        let mut runs = Runs::new(self, 0..self.quotients());
        let mut remainders = Vec::new();
        while let Some((_, slots)) = runs.next(self) {
            if slots.len() > 1 {
                remainders.clear();
                remainders.extend(slots.clone().map(|slot| self.remainder(slot)));
                remainders.sort_unstable();
                for (slot, remainder) in slots.zip(&remainders) {
                    self.set_remainder(slot, *remainder);
                }
            }
        }
    }

    /// Whether every run is sorted. The table must have passed [`check`](Self::check).
    pub(super) fn is_sorted(&self) -> bool {
        let mut runs = Runs::new(self, 0..self.quotients());
        while let Some((_, slots)) = runs.next(self) {
            if !slots.map(|slot| self.remainder(slot)).is_sorted() {
                return false;
            }
        }
        true
    }

    /// The number of keys in the words, or `None` if the words are inconsistent: a run without an
    /// end or an end without a run, a quotient out of range, a wrong offset, a set bit that is
    /// unused, or a table that is too full.
    pub(super) fn check(&self) -> Option<u64> {
        let (mut len, mut free, mut runs, mut ends) = (0, 0, 0, 0);
        for block in 0..=self.last() / SLOTS {
            let first = block * SLOTS;
            if self.stored_offset(block) != SATURATED.min(usize::saturating_sub(free, first)) {
                return None;
            }
            let [mut left, ends_here] = self.marks(block);
            runs += left.count_ones();
            ends += ends_here.count_ones();
            while left != 0 {
                let quotient = first + left.trailing_zeros() as usize;
                left &= left - 1;
                let run = self.checked_run(free, quotient)?;
                len += run.len() as u64;
                free = run.end;
            }
        }
        let (marks, offsets, remainders) = self.parts();
        let stray = offsets[marks.len() / 2..].iter().any(|byte| *byte != 0);
        let padding = remainders[remainders.len() - 8..].iter().any(|byte| *byte != 0);
        let free_is_zero = (free..=self.last()).all(|slot| self.remainder(slot) == 0);
        let sound = runs == ends && !stray && !padding && free_is_zero && len <= self.capacity();
        sound.then_some(len)
    }

    /// The run of a quotient if all slots before `free` are taken. Slots between `free` and the run
    /// must be unused.
    fn checked_run(&self, free: usize, quotient: usize) -> Option<Range<usize>> {
        let start = free.max(quotient);
        if quotient >= self.quotients() || start >= self.last() {
            return None;
        }
        let mut block = free / SLOTS;
        let mut ends = self.marks(block)[1] & u64::MAX << (free % SLOTS);
        while ends == 0 {
            block += 1;
            if block > self.last() / SLOTS {
                return None;
            }
            ends = self.marks(block)[1];
        }
        let end = block * SLOTS + ends.trailing_zeros() as usize;
        let unused = (free..start).all(|slot| self.remainder(slot) == 0);
        (end >= start && end < self.last() && unused).then_some(start..end + 1)
    }
}
