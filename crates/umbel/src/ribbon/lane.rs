//! A shard of a layer on its way into the band: the equations of its buckets, one after the other, and
//! who is bumped.
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
    /// The bucket whose equations would reach over the cut, so that all of them are bumped.
    pub(super) sealed: Option<u64>,
    pub(super) words: &'a mut [u64],
    pub(super) thresholds: &'a mut [u64],
    pub(super) outcome: &'a mut Outcome<E>,
}

/// What became of the entries of a shard.
#[derive(Debug)]
pub(super) struct Outcome<E> {
    /// With the hashes of the next layer.
    pub(super) bumped: Vec<E>,
    /// How many were there already.
    pub(super) copies: u64,
    /// So many were bumped that the hashes are not well mixed, or keys have several values.
    pub(super) crowded: bool,
}

impl<E> Default for Outcome<E> {
    fn default() -> Self {
        Self { bumped: Vec::new(), copies: 0, crowded: false }
    }
}

/// No class.
const NONE: u8 = u8::MAX;

/// A shard, and how far it is.
#[derive(Debug)]
pub(super) struct Lane<'a, E> {
    pub(super) shard: Shard<'a, E>,
    /// Where its rows begin in the band.
    pub(super) base: usize,
    mask: u32,
    parts: core::ops::Range<usize>,
    /// The entries of a part, the first `len` of them.
    sorted: Vec<E>,
    len: usize,
    next: usize,
    /// The bucket that is being filled, whether it is closed, and the class.
    bucket: u64,
    closed: bool,
    class: u8,
    class_begin: usize,
    class_copies: u64,
    /// The rows that the class has taken.
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

    /// The rows of the shard in the band, with those that its last equations reach into.
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

    /// Takes the last equation back to insert it later.
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

    /// Sends entries to the next layer, copies that stand side by side once.
    fn bump(&mut self, entries: core::ops::Range<usize>) {
        let outcome = &mut *self.shard.outcome;
        for entry in &self.sorted[entries] {
            let entry = entry.with_hash(next_hash(entry.hash()));
            if outcome.bumped.last() == Some(&entry) {
                outcome.copies += 1;
            } else if outcome.bumped.len() == outcome.bumped.capacity() {
                // There is no use in going on.
                outcome.crowded = true;
                (self.parts, self.len, self.next) = (0..0, 0, 0);
                return;
            } else {
                outcome.bumped.push(entry);
            }
        }
    }

    /// Ends the way of an equation, in a row that is free or where nothing is left of it; the next one, if
    /// there is one.
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

    /// Whether the entry that came last is one of those before it at the same place.
    fn is_copy(&self, source: &Parts<E>) -> bool {
        let [before @ .., entry] = &self.sorted[self.class_begin..self.next] else { return false };
        let place = |entry: &E| source.tier().place(entry.hash());
        let same = before.iter().rev().take_while(|other| place(other) == place(entry));
        same.into_iter().any(|other| other == entry)
    }

    /// Closes the bucket for the class of the last equation and those after it.
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

    /// Solves the band for the shard, all of whose equations are in it.
    #[inline(always)]
    pub(super) fn finish<T: Total>(&mut self, band: &Band<T>, bits: u32) {
        self.shard.outcome.copies += self.class_copies;
        band.solve(self.rows(), bits, self.shard.words);
    }
}
