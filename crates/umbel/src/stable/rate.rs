//! The probabilities of a cell: how full a stable filter is, how much that varies, and which keys
//! it still finds.
//!
//! An insertion decrements a given cell with probability *a* = P/m, since the P cells begin at a
//! random place. It then sets the cell with probability *s* = 1 - (1 - 1/m)^K. The two are
//! independent, so one cell is a Markov chain, and its probabilities are exact below. The textbook
//! value s = K/m is for K cells that are all different. Two cells form a chain too, which gives the
//! variance of the number of nonzero cells.

use crate::parts::math::{exp, exp_m1, ln, ln_1p, ln_1p_wide};

/// The largest number of a cell of eight bits.
const MAX: usize = 255;

/// One cell, and the effect of an insertion on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    cells: f64,
    probes: u32,
    decrements: f64,
    max: usize,
    /// The logarithm of the probability 1 - s that an insertion does not set it.
    ln_kept: f64,
}

impl Cell {
    /// A cell of at least two, of which at least one and at most all are decremented.
    pub(super) const fn new(cells: u64, bits: u32, probes: u32, decrements: u64) -> Self {
        let ln_kept = probes as f64 * ln_1p_wide(-1.0 / cells as f64);
        let (cells, decrements) = (cells as f64, decrements as f64);
        Self { cells, probes, decrements, max: (1 << bits) - 1, ln_kept }
    }

    /// a: the probability that it is decremented.
    const fn aged(&self) -> f64 {
        self.decrements / self.cells
    }

    /// s: the probability that it is set.
    const fn renewed(&self) -> f64 {
        -exp_m1(self.ln_kept)
    }

    /// The probability that it is decremented or set.
    const fn touched(&self) -> f64 {
        let (a, s) = (self.aged(), self.renewed());
        a + s - a * s
    }

    /// The probability that it is not zero in a stable filter: 1 - (1 / (1 + s / ((1 - s) a)))^Max.
    pub(super) const fn stable(&self) -> f64 {
        let odds = exp_m1(-self.ln_kept) / self.aged();
        let ln_ratio = if odds < 0.4 { ln_1p(odds) } else { ln(1.0 + odds) };
        -exp_m1(-(self.max as f64) * ln_ratio)
    }

    /// The number of cells to decrement so that cells are nonzero with probability `full`.
    pub(super) const fn decrements_for(&self, full: f64) -> f64 {
        let odds = exp_m1(-ln_1p_wide(-full) / self.max as f64);
        exp_m1(-self.ln_kept) / odds * self.cells
    }

    /// The probabilities that it is not zero, `insertions` insertions after it was zero, and after
    /// it was set.
    pub(super) const fn after(&self, insertions: u64) -> (f64, f64) {
        let (a, s) = (self.aged(), self.renewed());
        if a >= 1.0 {
            // Every insertion decrements every cell.
            return if insertions < self.max as u64 {
                (-exp_m1(insertions as f64 * self.ln_kept), 1.0)
            } else {
                (self.stable(), self.stable())
            };
        }
        // With A = (1 - s) a and C = (1 - s)(1 - a), the cell is not set in j insertions and is
        // decremented i times in them with probability w(i, j) = binomial(j, i) A^i C^(j - i). The
        // sums W(i) of these over j below `insertions` follow from each other, since w(i, j + 1) =
        // C w(i, j) + A w(i - 1, j): (1 - C) W(i) = A W(i - 1) - w(i, insertions).
        let n = insertions as f64;
        let (ln_unaged, one_less_c) = (ln_1p_wide(-a), self.touched());
        let mut ln_w = n * (self.ln_kept + ln_unaged);
        let mut sum = -exp_m1(ln_w) / one_less_c;
        let (mut sums, mut tail) = (sum, exp(ln_w));
        let mut i = 1;
        while i < self.max {
            let mut w = 0.0;
            if n >= i as f64 {
                ln_w += ln((n - i as f64 + 1.0) / i as f64) + ln(a) - ln_unaged;
                w = exp(ln_w);
            }
            sum = (exp(self.ln_kept) * a * sum - w) / one_less_c;
            sums += sum;
            tail += w;
            i += 1;
        }
        let renewed = s * sums;
        (renewed, if renewed + tail < 1.0 { renewed + tail } else { 1.0 })
    }

    /// The rate of a filter whose share of nonzero cells has the mean `full` and the given
    /// variance: the mean of its K-th power under the beta distribution with that mean and
    /// variance.
    ///
    /// `spread` is the variance of the number of nonzero cells, divided by that of independent
    /// cells.
    pub(super) const fn rate(&self, full: f64, spread: f64) -> f64 {
        let correlation = spread / self.cells;
        let theta = correlation / (1.0 - correlation);
        let (mut rate, mut probe) = (1.0, 0);
        while probe < self.probes {
            rate *= (full + probe as f64 * theta) / (1.0 + probe as f64 * theta);
            probe += 1;
        }
        rate
    }

    /// The rate of a stable filter whose share of nonzero cells has this variance.
    pub(super) const fn stable_rate(&self, spread: f64) -> f64 {
        self.rate(self.stable(), spread)
    }

    /// The variance of the number of nonzero cells of a stable filter, divided by that of
    /// independent cells. Cells are not independent: every insertion sets about the same number of
    /// cells, and decrements adjacent cells together.
    pub(super) const fn spread(&self) -> f64 {
        let (m, p) = (self.cells, self.decrements);
        let full = self.stable();
        let alone = full * (1.0 - full);
        let pairs = self.probes as f64 * (self.probes - 1) as f64 / 2.0;
        if pairs * (1.0 - full) < 1e-5 * full * m {
            // The rate does not depend on it.
            return 1.0;
        }
        // Two cells at a distance below `near`, on either side, share fewer of the P cells the
        // farther apart they are; all others share the minimum.
        let near = if 2.0 * p < m + 1.0 { p - 1.0 } else { m - p };
        let few = if 2.0 * p > m { 2.0 * p - m } else { 0.0 };
        let mut sum = (m - 1.0 - 2.0 * near) * self.covariance(few / m);
        // Gauss-Legendre quadrature with three points, for the sum over all distances from 1 to
        // `near`.
        const POINTS: [(f64, f64); 3] = [
            (0.112_701_665_379_258_3, 5.0 / 18.0),
            (0.5, 8.0 / 18.0),
            (0.887_298_334_620_741_7, 5.0 / 18.0),
        ];
        let mut point = 0;
        while point < POINTS.len() && near >= 1.0 {
            let (at, weight) = POINTS[point];
            let distance = 0.5 + near * at;
            sum += 2.0 * near * weight * self.covariance((p - distance) / m);
            point += 1;
        }
        let spread = 1.0 + sum / alone;
        if spread > 0.0 { spread } else { 0.0 }
    }

    /// The probability that two cells are both zero in a stable filter minus that for independent
    /// cells, if they are decremented together with probability `both`.
    const fn covariance(&self, both: f64) -> f64 {
        let (a, s, max) = (self.aged(), self.renewed(), self.max);
        let ln_kept_both = self.probes as f64 * ln_1p_wide(-2.0 / self.cells);
        let kept_both = exp(ln_kept_both);
        let only_one_kept = exp(self.ln_kept) - kept_both;
        let neither_kept = s - only_one_kept;
        let (one, none) = (a - both, 1.0 - 2.0 * a + both);
        let alone = self.numbers();
        // `above` and `row` have the probabilities of pairs: the first cell was decremented `u`
        // times, or `u - 1` times, since it was set, the second `v` times. Counts stop at the
        // largest number.
        let mut above = [0.0; MAX + 1];
        let mut u = 0;
        while u <= max {
            let mut row = [0.0; MAX + 1];
            let mut v = 0;
            while v <= max {
                let (mut comes, mut stays) = (0.0, none);
                if u > 0 {
                    comes += one * above[v];
                }
                if v > 0 {
                    comes += one * row[v - 1];
                }
                if u > 0 && v > 0 {
                    comes += both * above[v - 1];
                }
                if u == max {
                    stays += one;
                    if v > 0 {
                        comes += both * row[v - 1];
                    }
                }
                if v == max {
                    stays += one;
                    if u > 0 {
                        comes += both * above[v];
                    }
                }
                if u == max && v == max {
                    stays += both;
                }
                comes *= kept_both;
                if u == 0 {
                    comes += only_one_kept * self.counted(&alone, v);
                }
                if v == 0 {
                    comes += only_one_kept * self.counted(&alone, u);
                }
                if u == 0 && v == 0 {
                    comes += neither_kept;
                }
                row[v] = comes / (1.0 - kept_both * stays);
                v += 1;
            }
            above = row;
            u += 1;
        }
        above[max] - alone[max] * alone[max]
    }

    /// The probabilities that a cell of a stable filter was decremented 0, 1, ... times since it
    /// was set. The last one is the probability that it is zero.
    const fn numbers(&self) -> [f64; MAX + 1] {
        let (a, s, touched) = (self.aged(), self.renewed(), self.touched());
        let mut numbers = [0.0; MAX + 1];
        numbers[0] = s / touched;
        let mut number = 1;
        while number < self.max {
            numbers[number] = numbers[number - 1] * (exp(self.ln_kept) * a / touched);
            number += 1;
        }
        numbers[self.max] = 1.0 - self.stable();
        numbers
    }

    /// The same probability after the decrements of an insertion and before its sets.
    const fn counted(&self, numbers: &[f64; MAX + 1], number: usize) -> f64 {
        let a = self.aged();
        let comes = if number > 0 { a * numbers[number - 1] } else { 0.0 };
        let stays = if number == self.max { 1.0 } else { 1.0 - a };
        comes + stays * numbers[number]
    }
}
