//! A band of equations: Gaussian elimination, one equation at a time, in which every equation takes
//! some of 64 neighbouring rows.
//!
//! ```text
//!     row 4    1.1..1        an equation begins with the row where it stands
//!     row 5    ......        free
//!     row 6    11.1..
//!
//!     1.11.. at row 4:  add row 4's  ->  ...1.1 = 1.1 at row 7: free, it stays there
//! ```
//!
//! An equation that adds up to nothing was there already, or it contradicts the others. Equations are
//! written to rows that were free and never changed, so the last ones can be taken back.

use crate::parts::alloc_zeroed::alloc_zeroed_words;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

/// What the rows of an equation add up to, in as many bytes as it needs.
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

/// The bytes that so many bits take.
pub(super) const fn total_bytes(bits: u32) -> u64 {
    match bits {
        ..=8 => 1,
        9..=16 => 2,
        _ => 4,
    }
}

/// Rows, and the equations that begin there.
#[derive(Debug)]
pub(super) struct Band<T> {
    /// Bit i is for the i-th row from here; 0 where no equation begins.
    pub(super) coefficients: Box<[u64]>,
    pub(super) totals: Box<[T]>,
}

/// All rows of a band, to be changed. Both slices have the same length, which a compiler that has them at
/// hand need not check twice.
#[derive(Debug)]
pub(super) struct Rows<'a, T> {
    pub(super) coefficients: &'a mut [u64],
    pub(super) totals: &'a mut [T],
}

/// An equation on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moving<T> {
    pub(super) row: usize,
    /// The lowest one is set, unless there are none.
    pub(super) coefficients: u64,
    pub(super) total: T,
}

impl<T: Total> Moving<T> {
    /// From this row on, with any coefficients.
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

/// What is left of an equation when that of its row was added.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leftover {
    pub(super) coefficients: u64,
    /// How many rows further they begin: 0 if the row was free, 64 if there are none.
    pub(super) zeros: u32,
}

impl Leftover {
    /// Whether there is something that begins further on.
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

/// The equations so far say otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contradiction;

impl<T: Total> Band<T> {
    /// So many rows without an equation, or `None` if there is no memory for them.
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

    /// All rows.
    #[inline(always)]
    pub(super) fn rows(&mut self) -> Rows<'_, T> {
        let coefficients = &mut self.coefficients[..];
        let totals = &mut self.totals[..coefficients.len()];
        Rows { coefficients, totals }
    }
}

impl<T: Total> Rows<'_, T> {
    /// The same for a while.
    #[inline(always)]
    pub(super) fn lent(&mut self) -> Rows<'_, T> {
        Rows { coefficients: self.coefficients, totals: self.totals }
    }

    /// Frees a row.
    pub(super) fn free(&mut self, row: usize) {
        self.coefficients[row] = 0;
        self.totals[row] = T::default();
    }

    /// Adds the equation of a row to these coefficients, which begin with it.
    #[inline(always)]
    pub(super) fn step(&self, row: usize, coefficients: u64) -> Leftover {
        let left = coefficients ^ self.coefficients[row];
        let zeros = left.trailing_zeros();
        Leftover { coefficients: left.wrapping_shr(zeros), zeros }
    }

    /// Writes an equation to its row, which is free.
    #[inline(always)]
    pub(super) fn put(&mut self, moving: Moving<T>) {
        self.coefficients[moving.row] = moving.coefficients;
        self.totals[moving.row] = moving.total;
    }

    /// Takes in one equation, or tells that it cannot.
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
