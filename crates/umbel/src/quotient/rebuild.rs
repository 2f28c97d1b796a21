//! Builds a table from the keys of one or two others, in order: growing, shrinking, merging.
//!
//! Quotient and remainder together, the *prefix*, have the same meaning in tables of twice the
//! quotients. Prefixes that are read in order can therefore be written in order, slot after slot.
//! Threads work on stretches: each writes the blocks of its quotients as if no keys came before
//! them. The few keys that it would have to push past its end are inserted afterwards, one by one.

use super::runs::Prefixes;
use super::shape::Shape;
use super::table::{Entry, RunTable, SATURATED, SLOTS};
use crate::error::{Full, InvalidShape};
use crate::parts::packed::put;
use crate::parts::select::Broadword;
use alloc::vec::Vec;
use core::ops::Range;

/// Tables are cut between quotients that are multiples of this: between blocks, and not into too
/// small pieces.
const CUT: usize = 8 * SLOTS;

/// Why the table cannot be built.
#[derive(Clone, Copy, Debug)]
pub(super) enum Refused {
    /// Keys would be pushed past the last slot.
    Full,
    /// There is no memory for it, or no such shape.
    Shape(InvalidShape),
}

impl From<Full> for Refused {
    fn from(_: Full) -> Self {
        Self::Full
    }
}

impl From<InvalidShape> for Refused {
    fn from(error: InvalidShape) -> Self {
        Self::Shape(error)
    }
}

/// The blocks of some quotients of a table, filled in order.
#[derive(Debug)]
struct Stretch<'a> {
    marks: &'a mut [u64],
    offsets: &'a mut [u8],
    remainders: &'a mut [u8],
    width: u32,
    /// The first quotient and slot. All numbers below are counted from it.
    first: usize,
    /// The slot at which writing must stop.
    end: usize,
    /// The first free slot.
    free: usize,
    /// The quotient of the run that is being written.
    quotient: Option<usize>,
    /// The first block whose offset is not yet written.
    block: usize,
    /// Prefixes for which there was no slot.
    left: Vec<u64>,
    taken: u64,
}

impl Stretch<'_> {
    /// Appends a prefix. It must not be below the last one.
    #[inline(always)]
    fn push(&mut self, prefix: u64) {
        let quotient = (prefix >> self.width) as usize - self.first;
        let goes_on = self.quotient == Some(quotient);
        if !goes_on {
            self.write_offsets(quotient / SLOTS + 1);
        }
        let slot = if goes_on { self.free } else { self.free.max(quotient) };
        if slot >= self.end {
            self.left.push(prefix);
            return;
        }
        if !goes_on {
            self.end_run();
            self.quotient = Some(quotient);
            self.marks[quotient / SLOTS * 2] |= 1 << (quotient % SLOTS);
        }
        let remainder = prefix & !(u64::MAX << self.width);
        put(self.remainders, self.width, slot, remainder);
        self.free = slot + 1;
        self.taken += 1;
    }

    /// Marks the end of the current run.
    #[inline(always)]
    fn end_run(&mut self) {
        if self.quotient.is_some() {
            let last = self.free - 1;
            self.marks[last / SLOTS * 2 + 1] |= 1 << (last % SLOTS);
        }
    }

    /// Writes the offsets of the blocks below `to`, after all runs of earlier quotients were
    /// written.
    #[inline(always)]
    fn write_offsets(&mut self, to: usize) {
        while self.block < to {
            let offset = self.free.saturating_sub(self.block * SLOTS).min(SATURATED);
            self.offsets[self.block] = offset as u8;
            self.block += 1;
        }
    }

    /// Appends all prefixes of two walks, then finishes. Returns how many were written, and those
    /// without a slot.
    fn fill(mut self, mut a: Prefixes<'_>, mut b: Prefixes<'_>) -> (u64, Vec<u64>) {
        let (mut x, mut y) = (a.next(), b.next());
        loop {
            match (x, y) {
                (Some(left), Some(right)) if right < left => {
                    self.push(right);
                    y = b.next();
                }
                (Some(left), _) => {
                    self.push(left);
                    x = a.next();
                }
                (None, Some(right)) => {
                    self.push(right);
                    y = b.next();
                }
                (None, None) => break,
            }
        }
        self.end_run();
        self.write_offsets(self.marks.len() / 2);
        (self.taken, self.left)
    }
}

/// Builds a table of this shape from the keys of one or two tables with the same number of
/// prefixes, on this many threads.
pub(super) fn rebuilt(
    shape: &Shape,
    sources: [&RunTable; 2],
    merged: bool,
    threads: usize,
) -> Result<RunTable, Refused> {
    let mut table = RunTable::new(shape)?;
    let sizes = [table.quotients(), sources[0].quotients(), sources[1].quotients()];
    // The cuts of the smallest table are also cuts of the others.
    let smallest = sizes.into_iter().min().unwrap_or_default();
    let step = smallest.div_ceil(threads.max(1)).next_multiple_of(CUT).max(CUT);
    let cuts: Vec<Range<usize>> =
        (0..smallest).step_by(step).map(|cut| cut..smallest.min(cut + step)).collect();
    let of = |source: &RunTable, cut: &Range<usize>| {
        let times = source.quotients() / smallest;
        cut.start * times..cut.end * times
    };
    let stretches = stretches(&mut table, &cuts, smallest);
    let jobs = stretches.into_iter().zip(&cuts).map(|(stretch, cut)| {
        let a = Prefixes::new(sources[0], of(sources[0], cut));
        let b = Prefixes::new(sources[1], if merged { of(sources[1], cut) } else { 0..0 });
        move || stretch.fill(a, b)
    });
    let parts = run_all(jobs);
    table.set_len(parts.iter().map(|(taken, _)| taken).sum());
    let width = table.width();
    for prefix in parts.into_iter().flat_map(|(_, left)| left) {
        let quotient = (prefix >> width) as usize;
        let remainder = prefix & !(u64::MAX << width);
        table.force(Broadword, Entry { quotient, remainder })?;
    }
    Ok(table)
}

/// The blocks of an empty table, cut where the smallest table is. The last stretch includes the
/// slots behind the last quotient.
fn stretches<'a>(
    table: &'a mut RunTable,
    cuts: &[Range<usize>],
    smallest: usize,
) -> Vec<Stretch<'a>> {
    let (times, width, last) = (table.quotients() / smallest, table.width(), table.last());
    let (mut marks, mut offsets, mut remainders) = table.parts_mut();
    let mut stretches = Vec::with_capacity(cuts.len());
    for (number, cut) in cuts.iter().enumerate() {
        let first = cut.start * times;
        let is_last = number + 1 == cuts.len();
        let slots = if is_last { last + 1 - first } else { cut.end * times - first };
        let blocks = slots / SLOTS;
        stretches.push(Stretch {
            marks: take(&mut marks, 2 * blocks),
            offsets: take(&mut offsets, blocks),
            remainders: take(&mut remainders, blocks * 8 * width as usize),
            width,
            first,
            end: slots - usize::from(is_last),
            free: 0,
            quotient: None,
            block: 0,
            left: Vec::new(),
            taken: 0,
        });
    }
    stretches
}

/// Splits off the first `len` elements.
fn take<'a, W>(all: &mut &'a mut [W], len: usize) -> &'a mut [W] {
    let (first, rest) = core::mem::take(all).split_at_mut(len);
    *all = rest;
    first
}

/// Runs all jobs at once, each except the last on a new thread.
#[cfg(feature = "std")]
fn run_all<R: Send>(jobs: impl Iterator<Item = impl FnOnce() -> R + Send>) -> Vec<R> {
    let mut jobs: Vec<_> = jobs.collect();
    std::thread::scope(|scope| {
        let last = jobs.pop();
        let others: Vec<_> = jobs.into_iter().map(|job| scope.spawn(job)).collect();
        let last = last.map(|job| job());
        let join = |thread: std::thread::ScopedJoinHandle<'_, R>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        others.into_iter().map(join).collect::<Vec<R>>().into_iter().chain(last).collect()
    })
}

/// Runs all jobs one after another.
#[cfg(not(feature = "std"))]
fn run_all<R>(jobs: impl Iterator<Item = impl FnOnce() -> R>) -> Vec<R> {
    jobs.map(|job| job()).collect()
}
