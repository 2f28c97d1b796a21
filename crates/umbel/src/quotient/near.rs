//! A view of one block from one of its quotients: where a run is, and where there is room.
//!
//! Usually everything that a key needs is in the block of its quotient, which is two words and a
//! number. Results that depend on other blocks are `None`, and the table computes them.

use super::shape::BLOCK;
use crate::parts::select::Select;
use core::ops::Range;

/// A quotient and the marks of its block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Near {
    /// The first slot of the block.
    pub(super) first: usize,
    /// The place of the quotient. All other numbers are counted from it.
    pub(super) place: u32,
    pub(super) runs: u64,
    pub(super) ends: u64,
    pub(super) offset: u32,
}

impl Near {
    #[inline(always)]
    pub(super) fn exists(&self) -> bool {
        self.runs >> self.place & 1 == 1
    }

    /// The run of a quotient that has one: its first slot and its length. `None` if it is not in
    /// this block.
    #[inline(always)]
    pub(super) fn existing_run(&self, select: impl Select) -> Option<(u32, u32)> {
        let rank = (self.runs << (63 - self.place)).count_ones();
        let ends = self.ends & u64::MAX << (self.offset % 64);
        let end = select.nth_set(ends, (rank - 1) % 64);
        if self.offset >= BLOCK as u32 || end == 0 {
            return None;
        }
        let before = 64 - (ends & (end - 1)).leading_zeros();
        let start = before.max(self.offset).max(self.place);
        Some((start, end.trailing_zeros() + 1 - start))
    }

    /// The run of the quotient, or the place where it would be. `None` if it is not in this block.
    #[inline(always)]
    pub(super) fn run(&self, select: impl Select) -> Option<Range<u32>> {
        if self.offset >= BLOCK as u32 {
            return None;
        }
        // The runs of this block up to this quotient. Whether there are any, and whether the
        // quotient has one, is random: branches would often be mispredicted.
        let rank = (self.runs << (63 - self.place)).count_ones();
        let ends = self.ends & u64::MAX << self.offset;
        let end = select.nth_set(ends, rank.wrapping_sub(1) % 64);
        if (rank != 0) & (end == 0) {
            return None;
        }
        let any = u32::from(rank != 0).wrapping_neg();
        let behind = self.offset & !any | (end.trailing_zeros() + 1) & any;
        let behind = behind.max(self.place);
        let before = 64 - (ends & end.wrapping_sub(1)).leading_zeros();
        let start = before.max(self.offset).max(self.place);
        let exists = u32::from(self.exists()).wrapping_neg();
        Some(start & exists | behind & !exists..behind)
    }

    /// Whether the slot of the quotient is free.
    #[inline(always)]
    pub(super) fn is_free(&self) -> bool {
        self.is_reached_by(0)
    }

    /// Whether a quotient that has a run has a single remainder, in its own slot.
    #[inline(always)]
    pub(super) fn is_alone(&self) -> bool {
        self.is_reached_by(1) & (self.ends >> self.place & 1 == 1)
    }

    /// Whether exactly `runs` runs of this block, and none of an earlier one, begin at the
    /// quotient or before it and end at its slot or behind it.
    #[inline(always)]
    fn is_reached_by(&self, runs: u32) -> bool {
        let begun = (self.runs << (63 - self.place)).count_ones();
        let ends = self.ends & u64::MAX << (self.offset % 64);
        let ended = (ends & !(u64::MAX << self.place)).count_ones();
        (begun == ended + runs) & (self.offset <= self.place)
    }

    /// The number of runs that begin behind `counted` and at or before `to`.
    #[inline(always)]
    fn begun(&self, counted: u32, to: u32) -> u64 {
        self.runs >> 1 >> counted << 1 << counted & u64::MAX >> (63 - to)
    }

    /// The place behind the last of these runs, if all earlier ones have ended before `place`.
    /// `None` if it is in another block.
    #[inline(always)]
    fn behind(&self, select: impl Select, begun: u64, place: u32) -> Option<u32> {
        let end = select.nth_set(self.ends & u64::MAX << place, begun.count_ones() - 1);
        (end << 1 != 0).then(|| end.trailing_zeros() + 1)
    }

    /// The first free place from this one on. `None` if it is not in this block.
    #[inline(always)]
    pub(super) fn free(&self, select: impl Select, mut place: u32) -> Option<u32> {
        let mut counted = self.place;
        loop {
            let begun = self.begun(counted, place);
            if begun == 0 {
                return Some(place);
            }
            counted = place;
            place = self.behind(select, begun, place)?;
        }
    }

    /// The first place from this one on that is free or has a remainder in its preferred slot.
    /// `None` if that cannot be determined in this block.
    #[inline(always)]
    pub(super) fn settled(&self, select: impl Select, mut place: u32) -> Option<u32> {
        let mut counted = self.place;
        loop {
            let begun = self.begun(counted, place - 1);
            if begun == 0 {
                return Some(place);
            }
            counted = place - 1;
            place = self.behind(select, begun, place)?;
        }
    }
}
