//! Back substitution: from a band of equations to the bits of all rows.
//!
//! ```text
//!     row i      1..1.1..   the equation that begins here      rows above are known, so this one is
//!     row i + 1  ........   a free row: 0                       what is missing to its total
//!     row i + 2  1.11....
//! ```
//!
//! Free rows are 0, and only the equations determine which rows are free. The solution therefore
//! does not depend on the order in which they were inserted.

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
            // As many columns at a time as fit into registers.
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
    // Bit i of a column is the i-th row from the current row of the substitution.
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

#[cfg(test)]
mod tests {
    use crate::hash::Digest;
    use crate::ribbon::band::{Band, Moving};
    use std::vec;
    use std::vec::Vec;

    const ROWS: usize = 192;

    /// A complete equation: all rows, and the total above them.
    type Line = [bool; ROWS + 8];

    fn line(row: usize, coefficients: u64, total: u8) -> Line {
        core::array::from_fn(|at| match at.checked_sub(ROWS) {
            Some(bit) => total >> bit & 1 == 1,
            None => at >= row && at - row < 64 && coefficients >> (at - row) & 1 == 1,
        })
    }

    fn add(line: &mut Line, other: &Line) {
        line.iter_mut().zip(other).for_each(|(bit, other)| *bit ^= other);
    }

    /// Textbook Gaussian elimination: reduced lines, each with a first row that no other has.
    #[derive(Default)]
    struct Naive(Vec<(usize, Line)>);

    impl Naive {
        /// Inserts an equation, unless it contradicts others.
        fn insert(&mut self, mut new: Line) -> bool {
            for (first, line) in &self.0 {
                if new[*first] {
                    add(&mut new, line);
                }
            }
            let Some(first) = new[..ROWS].iter().position(|bit| *bit) else {
                return !new[ROWS..].contains(&true);
            };
            for (_, line) in &mut self.0 {
                if line[first] {
                    add(line, &new);
                }
            }
            self.0.push((first, new));
            true
        }

        /// The bits of all rows. Free rows are 0.
        fn solution(&self) -> Vec<u8> {
            let mut rows = vec![0; ROWS];
            for (first, line) in &self.0 {
                rows[*first] = (0..8).map(|bit| u8::from(line[ROWS + bit]) << bit).sum();
            }
            rows
        }
    }

    /// A row of a solution in blocks of `bits` columns.
    fn row(words: &[u64], bits: usize, row: usize) -> u8 {
        let columns = &words[row / 64 * bits..][..bits];
        (0..bits).map(|bit| ((columns[bit] >> (row % 64)) as u8 & 1) << bit).sum()
    }

    #[test]
    fn a_band_is_gaussian_elimination() {
        let mut refused = 0;
        for seed in 0..60 {
            let mut state = seed << 32;
            let mut random = move || {
                state += 1;
                Digest::mixed(state).bits()
            };
            let (bits, count) = (1 + seed as usize % 8, 40 + seed as usize * 4);
            // Some of them combine few rows, so that there are contradictions and duplicates.
            let narrow = if seed % 3 == 0 { 54 } else { 0 };
            let equations: Vec<(usize, u64, u8)> = (0..count)
                .map(|_| {
                    let total = (random() as u8) >> (8 - bits);
                    ((random() % (ROWS as u64 - 63)) as usize, random() >> narrow, total)
                })
                .collect();
            let (mut band, mut naive) = (Band::<u8>::free(ROWS).unwrap(), Naive::default());
            let mut accepted = Vec::new();
            for &(row, coefficients, total) in &equations {
                let moving = Moving::new(row, coefficients, total);
                let fits = band.rows().insert(moving).is_ok();
                assert_eq!(fits, naive.insert(line(row, coefficients, total)), "seed {seed}");
                if fits {
                    accepted.push(moving);
                }
            }
            refused += count - accepted.len();
            let mut words = vec![0; ROWS / 64 * bits];
            band.solve(0..ROWS, bits as u32, &mut words);
            let rows: Vec<u8> = (0..ROWS).map(|at| row(&words, bits, at)).collect();
            for &(start, coefficients, total) in &equations {
                let taken = (0..64).filter(|at| coefficients >> at & 1 == 1);
                let sum = taken.fold(0, |sum, at| sum ^ rows[start + at]);
                let moving = Moving::new(start, coefficients, total);
                assert_eq!(sum == total, band.rows().insert(moving).is_ok(), "seed {seed}");
            }
            assert_eq!(rows, naive.solution(), "seed {seed}");
            let mut backwards = Band::<u8>::free(ROWS).unwrap();
            accepted.iter().rev().for_each(|moving| backwards.rows().insert(*moving).unwrap());
            let mut again = vec![0; words.len()];
            backwards.solve(0..ROWS, bits as u32, &mut again);
            assert_eq!(words, again, "the order matters, seed {seed}");
        }
        assert!(refused > 100, "hardly any equation was refused: {refused}");
    }
}
