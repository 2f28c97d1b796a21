//! Back substitution: from a band of equations to the bits of all rows.
//!
//! ```text
//!     row i      1..1.1..   the equation that begins here      rows above are known, so this one is
//!     row i + 1  ........   a free row: 0                       what is missing to its total
//!     row i + 2  1.11....
//! ```
//!
//! Free rows are 0, and which rows are free depends on the equations only: the solution does not depend
//! on the order in which they were inserted.

use super::band::{Band, Total};
use super::parity::GROUP;

impl<T: Total> Band<T> {
    /// Writes the columns of all rows in `rows`, a number of blocks of 64, in words of blocks of
    /// `bits` columns.
    #[inline(always)]
    pub(super) fn solve(&self, rows: core::ops::Range<usize>, bits: u32, words: &mut [u64]) {
        let (coefficients, totals) = (&self.coefficients[rows.clone()], &self.totals[rows]);
        let bits = bits as usize;
        for column in (0..bits).step_by(GROUP) {
            // As many columns at a time as there are registers for.
            match (bits - column).min(GROUP) {
                1 => columns::<T, 1>(coefficients, totals, bits, column, words),
                2 => columns::<T, 2>(coefficients, totals, bits, column, words),
                3 => columns::<T, 3>(coefficients, totals, bits, column, words),
                4 => columns::<T, 4>(coefficients, totals, bits, column, words),
                5 => columns::<T, 5>(coefficients, totals, bits, column, words),
                6 => columns::<T, 6>(coefficients, totals, bits, column, words),
                7 => columns::<T, 7>(coefficients, totals, bits, column, words),
                _ => columns::<T, GROUP>(coefficients, totals, bits, column, words),
            }
        }
    }
}

/// The `N` columns from `column` on.
#[inline(always)]
fn columns<T: Total, const N: usize>(
    coefficients: &[u64],
    totals: &[T],
    bits: usize,
    column: usize,
    words: &mut [u64],
) {
    let blocks = coefficients.as_chunks::<64>().0.iter().zip(totals.as_chunks::<64>().0);
    // Bit i of a column is the i-th row from where the substitution is.
    let mut state = [0_u64; N];
    for ((coefficients, totals), words) in blocks.zip(words.chunks_exact_mut(bits)).rev() {
        for (row, total) in coefficients.iter().zip(totals).rev() {
            let total = total.bits() >> column;
            for (number, state) in state.iter_mut().enumerate() {
                let known = *state << 1;
                let missing = (known & row).count_ones() ^ (total >> number);
                *state = known | u64::from(missing & 1);
            }
        }
        words[column..column + N].copy_from_slice(&state);
    }
}
