//! The cells of a key anywhere in a table: their positions, and the test whether all are above
//! zero.

use crate::hash::Digest;
use crate::kernels::{Digits, Kernels};
use crate::parts::cells::Cells;

/// How many cells are tested before the first branch, as in a classic filter.
pub(crate) const FIRST: u32 = 3;

/// The cells of a filter, their number, and the number of cells of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CellTable<V> {
    pub(crate) cells: Cells<V>,
    pub(crate) len: u64,
    pub(crate) probes: u32,
}

impl<V: AsRef<[u64]>> CellTable<V> {
    /// The next cell of a walk.
    #[inline(always)]
    pub(crate) fn step(&self, walk: &mut Digest) -> u64 {
        Digits.step(walk, self.len)
    }

    /// Whether all cells of the digest are above zero.
    #[inline(always)]
    pub(crate) fn contains(&self, digest: Digest) -> bool {
        let (mut walk, mut left) = (Digits.start(digest), self.probes);
        if left >= FIRST {
            let mut found = true;
            for _ in 0..FIRST {
                let cell = self.step(&mut walk);
                found &= self.cells.get(cell) != 0;
            }
            if !found {
                return false;
            }
            left -= FIRST;
        }
        for _ in 0..left {
            let cell = self.step(&mut walk);
            if self.cells.get(cell) == 0 {
                return false;
            }
        }
        true
    }

    /// Calls `fetch` with the first `probes` cells of a digest.
    #[inline(always)]
    pub(crate) fn for_cells(&self, digest: Digest, probes: u32, fetch: impl Fn(u64)) {
        let mut walk = Digits.start(digest);
        for _ in 0..probes {
            fetch(self.step(&mut walk));
        }
    }
}
