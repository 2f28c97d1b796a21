//! The table: runs of remainders in the order of their quotients, and the marks that locate them.
//!
//! Slots come in blocks of 64. A block has a bit for every quotient (does it have a run?) and one
//! for every slot (is it the last of a run?). It also has its *offset*: how many of its slots the
//! runs of earlier quotients take. The n-th run of a block is therefore the one that ends at the
//! n-th end of a run from the offset on. Counting bits finds a run without a walk.
//!
//! An island of `unsafe`: the arithmetic that computes a quotient guarantees that it is below the
//! number of quotients, and a look-up in one block does not check that again.

use super::batch::{FarRunInsert, FarRunInsertUnique, FarRunLookUp, FarRunRemove, One};
use super::near::Near;
use super::shape::{BLOCK, Shape};
use crate::error::{Full, InvalidShape};
use crate::hash::Digest;
use crate::parts::packed::{self, Bytes, Packed};
use crate::parts::prefetch::{prefetch, prefetch_far};
use crate::parts::select::Select;
use crate::parts::words::Words;
use core::ops::Range;

pub(super) const SLOTS: usize = BLOCK as usize;

/// The largest value that is stored for an offset. It also stands for all larger offsets, which are
/// recomputed from the last block with a smaller one.
pub(super) const SATURATED: usize = 255;

/// The maximum number of copies of one key. A run of copies moves with every insertion before it,
/// and slows down all keys behind it, so the number is limited.
pub const MAX_COPIES: u64 = 64;

/// The runs of a filter.
#[derive(Clone, Debug)]
pub(super) struct RunTable {
    /// For each block, a word that marks the quotients with a run, then a word that marks the slots
    /// where a run ends.
    marks: Words<u64>,
    /// The offset of each block, a byte each.
    offsets: Bytes,
    remainders: Packed,
    quotients: u64,
    /// The number of taken slots.
    len: u64,
    capacity: u64,
    /// The last slot, which stays free.
    last: usize,
}

/// A run, or the place where it would be if there is none.
#[derive(Clone, Debug)]
struct Run {
    slots: Range<usize>,
    exists: bool,
}

/// The part of a key that the table stores.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) quotient: usize,
    pub(super) remainder: u64,
}

impl RunTable {
    /// A table without keys.
    pub(super) fn new(shape: &Shape) -> Result<Self, InvalidShape> {
        let [marks, offsets, remainders] = shape.parts();
        let refused = InvalidShape::OutOfMemory { bytes: shape.bytes() };
        let zeroed = |words: u64| packed::zeroed(words).ok_or(refused);
        let marks = usize::try_from(marks).ok().and_then(Words::zeroed);
        Ok(Self {
            marks: marks.ok_or(refused)?,
            offsets: zeroed(offsets)?,
            remainders: Packed::new(zeroed(remainders)?, shape.remainder_bits()),
            quotients: shape.quotients(),
            len: 0,
            capacity: shape.capacity(),
            last: (shape.blocks() * BLOCK - 1) as usize,
        })
    }

    /// The number of taken slots.
    #[inline(always)]
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Sets the number of taken slots after the words were written from outside.
    pub(super) fn set_len(&mut self, len: u64) {
        self.len = len;
    }

    /// Marks, offsets, remainders.
    pub(super) fn parts(&self) -> (&[u64], &[u8], &[u8]) {
        (self.marks.as_ref(), self.offsets.as_flattened(), self.remainders.bytes())
    }

    /// As [`parts`](Self::parts), mutably.
    pub(super) fn parts_mut(&mut self) -> (&mut [u64], &mut [u8], &mut [u8]) {
        let Self { marks, offsets, remainders, .. } = self;
        (marks.as_mut(), offsets.as_flattened_mut(), remainders.bytes_mut())
    }

    /// The memory of all parts, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let (marks, offsets, remainders) = self.parts();
        marks.len() * 8 + offsets.len() + remainders.len()
    }

    pub(super) fn clear(&mut self) {
        let (marks, offsets, remainders) = self.parts_mut();
        marks.fill(0);
        offsets.fill(0);
        remainders.fill(0);
        self.len = 0;
    }

    pub(super) fn quotients(&self) -> usize {
        self.quotients as usize
    }

    /// The maximum number of keys.
    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The bits of a remainder.
    pub(super) fn width(&self) -> u32 {
        self.remainders.width()
    }

    /// The last slot, which stays free.
    pub(super) fn last(&self) -> usize {
        self.last
    }

    #[inline(always)]
    pub(super) fn remainder(&self, slot: usize) -> u64 {
        self.remainders.get(slot)
    }

    pub(super) fn set_remainder(&mut self, slot: usize, remainder: u64) {
        self.remainders.set(slot, remainder);
    }

    /// Multiplies the digest, as a fraction of all digests, by the number of quotients: the integer
    /// part is the quotient, and the first bits of the fractional part are the remainder. With
    /// twice the quotients, one of those bits moves to the integer part.
    #[inline(always)]
    pub(super) fn entry(&self, digest: Digest) -> Entry {
        let product = u128::from(digest.bits()) * u128::from(self.quotients);
        let remainder = product as u64 >> (64 - self.remainders.width());
        Entry { quotient: (product >> 64) as usize, remainder }
    }

    /// The quotients of a block that have runs, and the slots where one ends.
    #[inline(always)]
    pub(super) fn marks(&self, block: usize) -> [u64; 2] {
        self.marks.as_ref().as_chunks().0[block]
    }

    #[inline(always)]
    fn marks_mut(&mut self, block: usize) -> &mut [u64; 2] {
        &mut self.marks.as_mut().as_chunks_mut().0[block]
    }

    #[inline(always)]
    pub(super) fn stored_offset(&self, block: usize) -> usize {
        usize::from(self.offsets.as_flattened()[block])
    }

    #[inline(always)]
    fn store_offset(&mut self, block: usize, offset: usize) {
        self.offsets.as_flattened_mut()[block] = offset.min(SATURATED) as u8;
    }

    /// How many slots from the start of a block the runs of earlier quotients take.
    #[inline(always)]
    pub(super) fn offset(&self, select: impl Select, block: usize) -> usize {
        let stored = self.stored_offset(block);
        if stored < SATURATED { stored } else { self.counted_offset(select, block) }
    }

    /// As [`offset`](Self::offset), computed from the last block with a stored offset.
    #[inline(always)]
    fn counted_offset(&self, select: impl Select, block: usize) -> usize {
        // The first block has offset 0.
        let mut known = block;
        while self.stored_offset(known) == SATURATED {
            known -= 1;
        }
        let mut offset = self.stored_offset(known);
        // A loop, since a closure would not be compiled with the instructions of the selected path.
        for passed in known..block {
            offset = self.next_offset(select, passed, offset);
        }
        offset
    }

    /// The offset of the next block, from that of this one.
    #[inline(always)]
    fn next_offset(&self, select: impl Select, block: usize, offset: usize) -> usize {
        let runs = self.marks(block)[0].count_ones();
        let first = block * SLOTS + offset;
        let end = if runs == 0 { first } else { self.nth_end(select, first, runs - 1) + 1 };
        end.saturating_sub((block + 1) * SLOTS)
    }

    /// The slot of the n-th end of a run, from 0, at this slot or behind it. It must exist.
    #[inline(always)]
    fn nth_end(&self, select: impl Select, from: usize, mut n: u32) -> usize {
        let mut block = from / SLOTS;
        let mut ends = self.marks(block)[1] & u64::MAX << (from % SLOTS);
        loop {
            let here = ends.count_ones();
            if n < here {
                return block * SLOTS + select.nth_set(ends, n).trailing_zeros() as usize;
            }
            n -= here;
            block += 1;
            ends = self.marks(block)[1];
        }
    }

    /// How many of these quotients have runs.
    #[inline(always)]
    fn count_runs(&self, from: usize, to: usize) -> u32 {
        if from >= to {
            return 0;
        }
        let (first, last) = (from / SLOTS, (to - 1) / SLOTS);
        let (low, high) = (u64::MAX << (from % SLOTS), u64::MAX >> (63 - (to - 1) % SLOTS));
        if first == last {
            return (self.marks(first)[0] & low & high).count_ones();
        }
        let mut runs = (self.marks(first)[0] & low).count_ones();
        for block in first + 1..last {
            runs += self.marks(block)[0].count_ones();
        }
        runs + (self.marks(last)[0] & high).count_ones()
    }

    /// The run of a quotient, in any block.
    #[inline(always)]
    fn run(&self, select: impl Select, quotient: usize) -> Run {
        let (block, place) = (quotient / SLOTS, quotient % SLOTS);
        let runs = self.marks(block)[0];
        let exists = runs >> place & 1 == 1;
        let mut start = block * SLOTS + self.offset(select, block);
        // The runs of this block before this quotient.
        let before = (runs & !(u64::MAX << place)).count_ones();
        if before > 0 {
            start = self.nth_end(select, start, before - 1) + 1;
        }
        let start = start.max(quotient);
        let end = if exists { self.nth_end(select, start, 0) + 1 } else { start };
        Run { slots: start..end, exists }
    }

    /// The block of a quotient.
    #[inline(always)]
    fn near(&self, quotient: usize) -> Near {
        let block = quotient / SLOTS;
        let [runs, ends] = self.marks(block);
        let offset = self.stored_offset(block) as u32;
        Near { first: block * SLOTS, place: (quotient % SLOTS) as u32, runs, ends, offset }
    }

    /// As [`near`](Self::near).
    ///
    /// # Safety
    ///
    /// The quotient must be one of this table's.
    #[inline(always)]
    #[allow(unsafe_code, reason = "a check at every look-up of what arithmetic tells")]
    unsafe fn near_unchecked(&self, quotient: usize) -> Near {
        let block = quotient / SLOTS;
        let (marks, offsets) = (self.marks.as_ref().as_chunks().0, self.offsets.as_flattened());
        debug_assert!(block < marks.len() && block < offsets.len());
        // SAFETY: `new` allocated marks and offsets for the blocks of all quotients, and their
        // number never changes.
        let ([runs, ends], offset) =
            unsafe { (*marks.get_unchecked(block), *offsets.get_unchecked(block)) };
        let place = (quotient % SLOTS) as u32;
        Near { first: block * SLOTS, place, runs, ends, offset: u32::from(offset) }
    }

    /// Whether a key is stored.
    #[inline(always)]
    #[allow(unsafe_code, reason = "a check at every look-up of what arithmetic tells")]
    pub(super) fn contains(&self, select: impl Select, digest: Digest) -> bool {
        let key = self.entry(digest);
        // Prefetched before the marks, which give the exact slot, have arrived.
        self.remainders.fetch(key.quotient);
        // SAFETY: the upper half of a product of the number of quotients with a number below 2^64 is
        // below that number.
        let near = unsafe { self.near_unchecked(key.quotient) };
        if !near.exists() {
            return false;
        }
        match near.existing_run(select) {
            Some((start, len)) if len <= self.remainders.lanes() => {
                let slot = near.first + start as usize;
                // SAFETY: a run in one block begins at one of its slots, and all slots of the block
                // of a quotient exist.
                unsafe { self.remainders.has_unchecked(slot, len, key.remainder) }
            }
            _ => select.apart(One(FarRunLookUp(self), digest)),
        }
    }

    /// As [`contains`](Self::contains), for a run in any blocks.
    #[inline(always)]
    pub(super) fn far_contains(&self, select: impl Select, digest: Digest) -> bool {
        let key = self.entry(digest);
        let run = self.run(select, key.quotient);
        self.remainders.find(run.slots, key.remainder).is_some()
    }

    /// How many copies of a key are stored.
    #[inline(always)]
    pub(super) fn count(&self, select: impl Select, digest: Digest) -> u64 {
        let key = self.entry(digest);
        let run = self.run(select, key.quotient);
        if run.exists { self.remainders.count(run.slots, key.remainder) } else { 0 }
    }

    /// Prefetches what a key needs, some keys in advance.
    #[inline(always)]
    pub(super) fn fetch<const FAR: bool>(&self, digest: Digest) {
        let Entry { quotient, .. } = self.entry(digest);
        if FAR {
            prefetch_far(self.marks.as_ref(), quotient / SLOTS * 2);
            self.remainders.fetch_far(quotient);
        } else {
            prefetch(self.marks.as_ref(), quotient / SLOTS * 2);
            self.remainders.fetch(quotient);
        }
    }

    /// Inserts a key. Returns whether it is new. If `UNIQUE`, a key that is found is not inserted.
    #[inline(always)]
    pub(super) fn insert<const UNIQUE: bool>(
        &mut self,
        select: impl Select,
        digest: Digest,
    ) -> Result<bool, Full> {
        let key = self.entry(digest);
        self.remainders.fetch(key.quotient);
        let near = self.near(key.quotient);
        if near.is_free() && key.quotient < self.last && self.len < self.capacity {
            self.insert_alone(&near, key);
            return Ok(true);
        }
        let Some((run, free)) = self.room(select, &near) else {
            if UNIQUE {
                return select.apart(One(FarRunInsertUnique(self), digest));
            }
            return select.apart(One(FarRunInsert(self), digest));
        };
        let (exists, at) = (near.exists(), run.end);
        let first = near.first + run.start as usize;
        let found = exists && self.remainders.has(first, run.end - run.start, key.remainder);
        if UNIQUE && found {
            return Ok(false);
        }
        let slot = near.first + at as usize;
        self.remainders.open(slot, near.first + free as usize, key.remainder);
        let moved = u64::MAX << at & !(u64::MAX << free);
        let ends = near.ends & !moved | (near.ends & moved) << 1 | 1 << at;
        // If there is a run already, it is extended.
        let ends = ends & !(u64::from(exists) << at >> 1);
        *self.marks_mut(near.first / SLOTS) = [near.runs | 1 << near.place, ends];
        self.len += 1;
        Ok(!found)
    }

    /// Puts a remainder into the slot of its quotient, which is free. Most insertions take this
    /// path, and it is short enough that the cache lines of the next keys are fetched at the same
    /// time.
    #[inline(always)]
    fn insert_alone(&mut self, near: &Near, key: Entry) {
        self.remainders.put(key.quotient, key.remainder);
        let bit = 1 << near.place;
        *self.marks_mut(near.first / SLOTS) = [near.runs | bit, near.ends | bit];
        self.len += 1;
    }

    /// The run of a quotient, or the place where it would be, and the first free place behind it,
    /// if all of that is in one block and the run in one window.
    #[inline(always)]
    fn room(&self, select: impl Select, near: &Near) -> Option<(Range<u32>, u32)> {
        let run = near.run(select)?;
        if run.end >= BLOCK as u32 || run.end - run.start > self.remainders.lanes() {
            return None;
        }
        let free = near.free(select, run.end)?;
        let fits = near.first + (free as usize) < self.last && self.len < self.capacity;
        fits.then_some((run, free))
    }

    /// As [`insert`](Self::insert), for all cases.
    #[inline(always)]
    pub(super) fn far_insert<const UNIQUE: bool>(
        &mut self,
        select: impl Select,
        digest: Digest,
    ) -> Result<bool, Full> {
        let key = self.entry(digest);
        let run = self.run(select, key.quotient);
        let found = run.exists && self.remainders.find(run.slots.clone(), key.remainder).is_some();
        if UNIQUE && found {
            return Ok(false);
        }
        if self.len >= self.capacity || self.is_many(&run, key) {
            return Err(Full);
        }
        self.put(select, run, key)?;
        Ok(!found)
    }

    /// Whether a key has reached the maximum number of copies.
    #[inline(always)]
    fn is_many(&self, run: &Run, key: Entry) -> bool {
        let len = run.slots.len() as u64;
        len >= MAX_COPIES && self.remainders.count(run.slots.clone(), key.remainder) >= MAX_COPIES
    }

    /// Inserts a key even if the table or the number of copies is at its limit.
    pub(super) fn force(&mut self, select: impl Select, key: Entry) -> Result<(), Full> {
        let run = self.run(select, key.quotient);
        self.put(select, run, key)
    }

    /// Appends a remainder to its run, and moves the following remainders one slot up.
    #[inline(always)]
    fn put(&mut self, select: impl Select, run: Run, key: Entry) -> Result<(), Full> {
        let at = run.slots.end;
        let free = self.first_free(select, key.quotient, at).ok_or(Full)?;
        self.remainders.open(at, free, key.remainder);
        self.open_ends(at, free);
        let block = key.quotient / SLOTS;
        if run.exists {
            // Extend the run.
            self.marks_mut((at - 1) / SLOTS)[1] &= !(1 << ((at - 1) % SLOTS));
        } else {
            self.marks_mut(block)[0] |= 1 << (key.quotient % SLOTS);
        }
        for behind in block + 1..=free / SLOTS {
            let offset = self.stored_offset(behind);
            self.store_offset(behind, offset + 1);
        }
        self.len += 1;
        Ok(())
    }

    /// The first free slot from `at` on, where the runs of all quotients up to `quotient` have
    /// ended. `None` if it is the last slot.
    #[inline(always)]
    fn first_free(&self, select: impl Select, quotient: usize, at: usize) -> Option<usize> {
        let (mut counted, mut slot) = (quotient, at);
        while slot < self.last {
            // The number of runs that have begun by this slot and not ended before it.
            let pending = self.count_runs(counted + 1, slot + 1);
            if pending == 0 {
                return Some(slot);
            }
            counted = slot;
            slot = self.nth_end(select, slot, pending - 1) + 1;
        }
        None
    }

    /// Moves the ends in `from..to` one slot up, and marks an end at `from`.
    #[inline(always)]
    fn open_ends(&mut self, from: usize, to: usize) {
        let (first, last) = (from / SLOTS, to / SLOTS);
        for block in (first..=last).rev() {
            let low = if block == first { from % SLOTS } else { 0 };
            let high = if block == last { to % SLOTS } else { SLOTS - 1 };
            let carry = if block == first { 1 } else { self.marks(block - 1)[1] >> 63 };
            let moved = u64::MAX << low & u64::MAX >> (63 - high);
            let ends = &mut self.marks_mut(block)[1];
            *ends = *ends & !moved | (*ends & moved) << 1 & moved | carry << low;
        }
    }

    /// Removes one copy of a key. Returns whether there was one.
    #[inline(always)]
    pub(super) fn remove(&mut self, select: impl Select, digest: Digest) -> bool {
        let key = self.entry(digest);
        self.remainders.fetch(key.quotient);
        let near = self.near(key.quotient);
        if !near.exists() {
            return false;
        }
        if near.is_alone() {
            return self.remove_alone(&near, key);
        }
        let Some((start, len, stop)) = self.gap(select, &near) else {
            return select.apart(One(FarRunRemove(self), digest));
        };
        let first = near.first + start as usize;
        let gap = start + len - 1;
        let last = near.first + gap as usize;
        // The last remainder of the run takes its place, and the slots behind the run move down.
        if !self.remainders.replace(first, len, key.remainder, self.remainders.get(last)) {
            return false;
        }
        self.remainders.close(last, near.first + stop as usize);
        let alone = u64::from(len == 1);
        let moved = u64::MAX << gap & u64::MAX >> (64 - stop);
        let ends = near.ends & !moved | (near.ends & moved & !(1 << gap)) >> 1;
        // If the run is not empty, it ends one slot earlier.
        let ends = ends | (1 - alone) << gap >> 1;
        *self.marks_mut(near.first / SLOTS) = [near.runs & !(alone << near.place), ends];
        self.len -= 1;
        true
    }

    /// Removes a remainder if it is the only one of its quotient and in its own slot. Returns
    /// whether it was. No remainder has to move: the next one is in its preferred slot.
    #[inline(always)]
    fn remove_alone(&mut self, near: &Near, key: Entry) -> bool {
        if self.remainders.get(key.quotient) != key.remainder {
            return false;
        }
        self.remainders.set(key.quotient, 0);
        let bit = 1 << near.place;
        *self.marks_mut(near.first / SLOTS) = [near.runs & !bit, near.ends & !bit];
        self.len -= 1;
        true
    }

    /// The run of a quotient that has one, and the first settled place behind it, if all of that is
    /// in one block and the run in one window.
    #[inline(always)]
    fn gap(&self, select: impl Select, near: &Near) -> Option<(u32, u32, u32)> {
        let (start, len) = near.existing_run(select)?;
        if len > self.remainders.lanes() || start + len >= BLOCK as u32 {
            return None;
        }
        Some((start, len, near.settled(select, start + len)?))
    }

    /// As [`remove`](Self::remove), for a run in any blocks.
    #[inline(always)]
    pub(super) fn far_remove(&mut self, select: impl Select, digest: Digest) -> bool {
        let key = self.entry(digest);
        let (block, place) = (key.quotient / SLOTS, key.quotient % SLOTS);
        let run = self.run(select, key.quotient);
        let Some(at) = self.remainders.find(run.slots.clone(), key.remainder) else {
            return false;
        };
        // The last remainder of the run takes its place, and the slots behind the run move down.
        let gap = run.slots.end - 1;
        self.remainders.set(at, self.remainders.get(gap));
        let stop = self.first_settled(select, key.quotient, run.slots.end);
        self.remainders.close(gap, stop);
        self.close_ends(gap, stop);
        if run.slots.len() == 1 {
            self.marks_mut(block)[0] &= !(1 << place);
        } else {
            self.marks_mut((gap - 1) / SLOTS)[1] |= 1 << ((gap - 1) % SLOTS);
        }
        self.lower_offsets(select, block, (stop - 1) / SLOTS);
        self.len -= 1;
        true
    }

    /// The first slot from `at` on, where the runs of all quotients up to `quotient` have ended,
    /// that is free or has a remainder in its preferred slot.
    #[inline(always)]
    fn first_settled(&self, select: impl Select, quotient: usize, at: usize) -> usize {
        let (mut counted, mut slot) = (quotient, at);
        loop {
            let pending = self.count_runs(counted + 1, slot);
            if pending == 0 {
                return slot;
            }
            counted = slot - 1;
            slot = self.nth_end(select, slot, pending - 1) + 1;
        }
    }

    /// Moves the ends in `from + 1..to` one slot down, which overwrites the end at `from`.
    #[inline(always)]
    fn close_ends(&mut self, from: usize, to: usize) {
        let (first, last) = (from / SLOTS, (to - 1) / SLOTS);
        for block in first..=last {
            let low = if block == first { from % SLOTS } else { 0 };
            let high = if block == last { (to - 1) % SLOTS } else { SLOTS - 1 };
            let carry = if block == last { 0 } else { self.marks(block + 1)[1] & 1 };
            let moved = u64::MAX << low & u64::MAX >> (63 - high);
            let ends = &mut self.marks_mut(block)[1];
            *ends = *ends & !moved | (*ends & moved) >> 1 & moved | carry << high;
        }
    }

    /// Subtracts one from the offset of each block behind `block`, up to `last`.
    #[inline(always)]
    fn lower_offsets(&mut self, select: impl Select, block: usize, last: usize) {
        if block == last {
            return;
        }
        let mut offset = self.offset(select, block);
        for behind in block + 1..=last {
            // A saturated offset minus one is unknown until it is computed. The result is carried
            // on; otherwise every block would compute it from the first one again.
            let stored = self.stored_offset(behind);
            offset = if stored < SATURATED {
                stored - 1
            } else {
                self.next_offset(select, behind - 1, offset)
            };
            self.store_offset(behind, offset);
        }
    }
}
