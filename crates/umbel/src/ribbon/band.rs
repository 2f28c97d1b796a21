//! A band of equations: Gaussian elimination, one equation at a time, where every equation combines
//! some of 64 adjacent rows.
//!
//! ```text
//!     row 4    1.1..1        an equation begins with the row where it stands
//!     row 5    ......        free
//!     row 6    11.1..
//!
//!     1.11.. at row 4:  add row 4's  ->  ...1.1 = 1.1 at row 7: free, it stays there
//! ```
//!
//! An equation that reduces to zero is a duplicate, or it contradicts the others. Equations are
//! written to free rows and never changed, so the latest ones can be removed again.

use crate::parts::alloc_zeroed::alloc_zeroed_words;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

/// The right-hand side of an equation, in as many bytes as it needs.
pub(super) trait Total: Copy + Default + PartialEq + core::ops::BitXorAssign + Send {
    fn new(bits: u32) -> Self;

    fn bits(self) -> u32;
}

impl Total for u8 {
    #[inline(always)]
    fn new(bits: u32) -> Self {
        bits as Self
    }

    #[inline(always)]
    fn bits(self) -> u32 {
        self.into()
    }
}

impl Total for u16 {
    #[inline(always)]
    fn new(bits: u32) -> Self {
        bits as Self
    }

    #[inline(always)]
    fn bits(self) -> u32 {
        self.into()
    }
}

impl Total for u32 {
    #[inline(always)]
    fn new(bits: u32) -> Self {
        bits
    }

    #[inline(always)]
    fn bits(self) -> u32 {
        self
    }
}

pub(super) const fn total_bytes(bits: u32) -> u64 {
    match bits {
        ..=8 => 1,
        9..=16 => 2,
        _ => 4,
    }
}

/// The rows, and the equations that begin in them.
#[derive(Debug)]
pub(super) struct Band<T> {
    /// Bit i is for the i-th row from here. 0 if no equation begins here.
    pub(super) coefficients: Box<[u64]>,
    pub(super) totals: Box<[T]>,
}

/// All rows of a band, mutably. Both slices have the same length, and keeping them together saves a
/// second bounds check.
#[derive(Debug)]
pub(super) struct Rows<'a, T> {
    pub(super) coefficients: &'a mut [u64],
    pub(super) totals: &'a mut [T],
}

/// An equation during elimination.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moving<T> {
    pub(super) row: usize,
    /// The lowest bit is set, unless all are zero.
    pub(super) coefficients: u64,
    pub(super) total: T,
}

impl<T: Total> Moving<T> {
    /// The equation from this row on, with any coefficients.
    #[inline(always)]
    pub(super) fn new(row: usize, coefficients: u64, total: T) -> Self {
        let skipped = coefficients.trailing_zeros() & 63;
        Self { row: row + skipped as usize, coefficients: coefficients >> skipped, total }
    }

    #[inline(always)]
    pub(super) fn apart(self) -> (usize, u64, T) {
        (self.row, self.coefficients, self.total)
    }
}

/// The remainder of an equation after the equation of its row was added.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leftover {
    pub(super) coefficients: u64,
    /// How many rows further it begins: 0 if the row was free, 64 if no coefficients are left.
    pub(super) zeros: u32,
}

impl Leftover {
    /// Whether there are coefficients left, which begin in a later row.
    #[inline(always)]
    pub(super) const fn goes_on(self) -> bool {
        self.zeros.wrapping_sub(1) < 63
    }

    /// Whether the row was free.
    #[inline(always)]
    pub(super) const fn was_free(self) -> bool {
        self.zeros == 0
    }
}

/// The equation contradicts the equations so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contradiction;

impl<T: Total> Band<T> {
    /// A band of this many free rows, or `None` if there is no memory for it.
    pub(super) fn free(rows: usize) -> Option<Self> {
        let mut totals = Vec::new();
        totals.try_reserve_exact(rows).ok()?;
        totals.resize(rows, T::default());
        Some(Self { coefficients: alloc_zeroed_words(rows)?, totals: totals.into() })
    }

    /// Frees these rows.
    pub(super) fn clear(&mut self, rows: Range<usize>) {
        self.coefficients[rows.clone()].fill(0);
        self.totals[rows].fill(T::default());
    }

    /// All rows, mutably.
    #[inline(always)]
    pub(super) fn rows(&mut self) -> Rows<'_, T> {
        let coefficients = &mut self.coefficients[..];
        let totals = &mut self.totals[..coefficients.len()];
        Rows { coefficients, totals }
    }
}

impl<T: Total> Rows<'_, T> {
    /// Reborrows the rows.
    #[inline(always)]
    pub(super) fn lent(&mut self) -> Rows<'_, T> {
        Rows { coefficients: self.coefficients, totals: self.totals }
    }

    pub(super) fn free(&mut self, row: usize) {
        self.coefficients[row] = 0;
        self.totals[row] = T::default();
    }

    /// Adds the equation of a row to these coefficients, which begin in that row.
    #[inline(always)]
    pub(super) fn step(&self, row: usize, coefficients: u64) -> Leftover {
        let left = coefficients ^ self.coefficients[row];
        let zeros = left.trailing_zeros();
        Leftover { coefficients: left.wrapping_shr(zeros), zeros }
    }

    /// Writes an equation to its row, which must be free.
    #[inline(always)]
    pub(super) fn put(&mut self, moving: Moving<T>) {
        self.coefficients[moving.row] = moving.coefficients;
        self.totals[moving.row] = moving.total;
    }

    /// Inserts one equation, unless it contradicts the others.
    #[inline(always)]
    pub(super) fn insert(mut self, mut moving: Moving<T>) -> Result<(), Contradiction> {
        if moving.coefficients == 0 {
            return if moving.total == T::default() { Ok(()) } else { Err(Contradiction) };
        }
        loop {
            let left = self.step(moving.row, moving.coefficients);
            if !left.goes_on() {
                if left.was_free() {
                    self.put(moving);
                } else if moving.total != self.totals[moving.row] {
                    return Err(Contradiction);
                }
                return Ok(());
            }
            moving.total ^= self.totals[moving.row];
            moving.row += left.zeros as usize;
            moving.coefficients = left.coefficients;
        }
    }
}
