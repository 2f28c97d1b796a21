//! Bands the equations of one shard of a layer, bucket by bucket, and decides which keys are
//! bumped.
//!
//! ```text
//!     bucket      class 0          1     2      the first equation that contradicts others closes its
//!     in order    + + + + + + + +  + + x . .    bucket: its whole class is taken back and bumped, and
//!                                  <----->      so is the rest
//! ```

use super::band::{Band, Moving, Rows, Total};
use super::parts::Parts;
use super::row::{Equation, Gatherable, next_hash};
use super::shape::{BUCKET, BUCKETS_PER_WORD, BucketPlace};
use alloc::vec::Vec;

/// A shard: whole buckets, from one cut to the next.
#[derive(Debug)]
pub(super) struct Shard<'a, E> {
    pub(super) buckets: core::ops::Range<u64>,
    /// The bucket whose equations would reach over the cut. All its keys are bumped.
    pub(super) sealed: Option<u64>,
    pub(super) words: &'a mut [u64],
    pub(super) thresholds: &'a mut [u64],
    pub(super) outcome: &'a mut Outcome<E>,
}

/// The result of banding a shard.
#[derive(Debug)]
pub(super) struct Outcome<E> {
    /// The bumped entries, with their hashes in the next layer.
    pub(super) bumped: Vec<E>,
    /// The number of duplicates.
    pub(super) copies: u64,
    /// So many keys were bumped that the hashes cannot be well mixed, or that keys must have
    /// several values.
    pub(super) crowded: bool,
}

impl<E> Default for Outcome<E> {
    fn default() -> Self {
        Self { bumped: Vec::new(), copies: 0, crowded: false }
    }
}

/// No class.
const NONE: u8 = u8::MAX;

/// A shard and the state of its banding.
#[derive(Debug)]
pub(super) struct Lane<'a, E> {
    pub(super) shard: Shard<'a, E>,
    /// The first row of the shard in the band.
    pub(super) base: usize,
    mask: u32,
    parts: core::ops::Range<usize>,
    /// The entries of a part, which are the first `len`.
    sorted: Vec<E>,
    len: usize,
    next: usize,
    /// The current bucket, whether it is closed, and the current class.
    bucket: u64,
    closed: bool,
    class: u8,
    class_begin: usize,
    class_copies: u64,
    /// The rows that the current class occupies.
    taken: Vec<u32>,
}

impl<'a, E: Gatherable> Lane<'a, E> {
    pub(super) fn new(shard: Shard<'a, E>, base: usize, mask: u32, source: &Parts<E>) -> Self {
        let buckets = source.buckets();
        let (begin, end) = (shard.buckets.start / buckets, shard.buckets.end.div_ceil(buckets));
        let mut lane = Self {
            shard,
            base,
            mask,
            parts: begin as usize..end as usize,
            sorted: Vec::new(),
            len: 0,
            next: 0,
            bucket: u64::MAX,
            closed: false,
            class: NONE,
            class_begin: 0,
            class_copies: 0,
            taken: Vec::with_capacity(BUCKET as usize),
        };
        if let Some(sealed) = lane.shard.sealed {
            lane.set_threshold(sealed, 0);
        }
        lane
    }

    /// The rows of the shard in the band, including those that its last equations reach into.
    pub(super) fn rows(&self) -> core::ops::Range<usize> {
        let buckets = (self.shard.buckets.end - self.shard.buckets.start) as usize;
        let spill = if self.shard.sealed.is_none() { 64 } else { 0 };
        self.base..self.base + buckets * BUCKET as usize + spill
    }

    fn set_threshold(&mut self, bucket: u64, threshold: u8) {
        let bucket = bucket - self.shard.buckets.start;
        let word = &mut self.shard.thresholds[(bucket / BUCKETS_PER_WORD) as usize];
        let shift = bucket % BUCKETS_PER_WORD * 2;
        *word = *word & !(3 << shift) | u64::from(threshold) << shift;
    }

    /// The next equation to be inserted.
    #[inline(always)]
    pub(super) fn advance<T: Total>(
        &mut self,
        source: &Parts<E>,
        counts: &mut Vec<u32>,
    ) -> Option<Moving<T>> {
        loop {
            while let Some(&entry) = self.sorted[..self.len].get(self.next) {
                let place = source.tier().place(entry.hash());
                if place.bucket() != self.bucket {
                    self.enter(place.bucket());
                }
                self.next += 1;
                if self.closed {
                    self.bump(self.next - 1..self.next);
                    continue;
                }
                if place.class() != self.class {
                    self.enter_class(place.class());
                }
                return Some(self.equation(entry, place));
            }
            let part = self.parts.next()?;
            self.len = source.sort(part, &mut self.sorted, counts);
            self.next = 0;
        }
    }

    /// Goes back by one equation, to insert it later.
    pub(super) fn go_back(&mut self) {
        self.next -= 1;
    }

    fn enter(&mut self, bucket: u64) {
        self.bucket = bucket;
        self.closed = self.shard.sealed == Some(bucket);
        self.class = NONE;
    }

    #[inline(always)]
    fn enter_class(&mut self, class: u8) {
        self.class = class;
        self.class_begin = self.next - 1;
        self.shard.outcome.copies += self.class_copies;
        self.class_copies = 0;
        self.taken.clear();
    }

    #[inline(always)]
    fn equation<T: Total>(&self, entry: E, place: BucketPlace) -> Moving<T> {
        let equation = Equation::of(entry.hash());
        let row = (place.row() - self.shard.buckets.start * BUCKET) as usize;
        Moving {
            row: self.base + row,
            coefficients: equation.coefficients | 1,
            total: T::new(entry.result(equation, self.mask)),
        }
    }

    /// Bumps entries to the next layer. Adjacent duplicates are bumped once.
    fn bump(&mut self, entries: core::ops::Range<usize>) {
        let outcome = &mut *self.shard.outcome;
        for entry in &self.sorted[entries] {
            let entry = entry.with_hash(next_hash(entry.hash()));
            if outcome.bumped.last() == Some(&entry) {
                outcome.copies += 1;
            } else if outcome.bumped.len() == outcome.bumped.capacity() {
                // The shard has failed already.
                outcome.crowded = true;
                (self.parts, self.len, self.next) = (0..0, 0, 0);
                return;
            } else {
                outcome.bumped.push(entry);
            }
        }
    }

    /// Finishes an equation, which has found a free row or has no coefficients left. Starts the
    /// next one, if there is one.
    #[inline(never)]
    pub(super) fn settle<T: Total>(
        &mut self,
        is_free: bool,
        moving: Moving<T>,
        mut band: Rows<'_, T>,
        source: &Parts<E>,
        counts: &mut Vec<u32>,
    ) -> Option<Moving<T>> {
        if is_free {
            band.put(moving);
            self.taken.push(moving.row as u32);
        } else if moving.total != band.totals[moving.row] {
            self.close(&mut band);
        } else if self.is_copy(source) {
            self.class_copies += 1;
        }
        self.advance(source, counts)
    }

    /// Whether the current entry is a duplicate of an earlier one at the same place.
    fn is_copy(&self, source: &Parts<E>) -> bool {
        let [before @ .., entry] = &self.sorted[self.class_begin..self.next] else { return false };
        let place = |entry: &E| source.tier().place(entry.hash());
        let same = before.iter().rev().take_while(|other| place(other) == place(entry));
        same.into_iter().any(|other| other == entry)
    }

    /// Closes the bucket for the class of the last equation and all later classes.
    #[cold]
    fn close<T: Total>(&mut self, band: &mut Rows<'_, T>) {
        self.closed = true;
        self.class_copies = 0;
        self.set_threshold(self.bucket, self.class);
        for &row in &self.taken {
            band.free(row as usize);
        }
        self.bump(self.class_begin..self.next);
    }

    /// Solves the band of the shard after all its equations were inserted.
    #[inline(always)]
    pub(super) fn finish<T: Total>(&mut self, band: &Band<T>, bits: u32) {
        self.shard.outcome.copies += self.class_copies;
        band.solve(self.rows(), bits, self.shard.words);
    }
}
