//! Operations on one key: test its cells, or decrement others and set its cells; and batches with
//! prefetched words.

use crate::hash::Digest;
use crate::kernels::{Digits, Kernels};
use crate::layout::cells::{CellTable, FIRST};
use crate::layout::ring::{self, Touch};
use crate::parts::cells::Cells;
use crate::simd::{Choice, Isa};

/// Filters of up to this many bytes fit into the core's private cache, where prefetching only costs
/// time.
const CACHED: usize = 1 << 20;

/// Looks keys up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asker<V>(pub(super) CellTable<V>);

impl<V: AsRef<[u64]>> Asker<V> {
    /// Whether all cells of the digest are above zero.
    #[inline(always)]
    pub(super) fn contains(&self, digest: Digest) -> bool {
        // A width that is known at compile time makes all shifts and masks constants.
        match self.0.cells.width() {
            2 => self.of_width(2).contains(digest),
            3 => self.of_width(3).contains(digest),
            4 => self.of_width(4).contains(digest),
            width => self.of_width(width).contains(digest),
        }
    }

    #[inline(always)]
    fn of_width(&self, width: u32) -> CellTable<&[u64]> {
        let CellTable { ref cells, len, probes } = self.0;
        CellTable { cells: Cells::new(cells.words(), width), len, probes }
    }

    /// As [`contains`](Self::contains), for each key.
    #[inline(always)]
    pub(super) fn contains_batch<A>(
        self,
        keys: &[A],
        digest: impl Fn(&A) -> Digest,
        found: &mut [bool],
    ) {
        assert_eq!(keys.len(), found.len(), "one answer for each key");
        if self.0.cells.bytes() <= CACHED {
            for (key, found) in keys.iter().zip(found) {
                *found = self.contains(digest(key));
            }
        } else {
            ring::batch(Choice::OPEN, self, keys, digest, found);
        }
    }
}

/// Prefetches the words of the first `probes` cells of a digest.
#[inline(always)]
fn fetch<V: AsRef<[u64]>, const AHEAD: usize>(table: &CellTable<V>, digest: Digest, probes: u32) {
    table.for_cells(digest, probes, |cell| fetch_cell::<V, AHEAD>(table, cell));
}

#[inline(always)]
fn fetch_cell<V: AsRef<[u64]>, const AHEAD: usize>(table: &CellTable<V>, cell: u64) {
    ring::fetch::<_, AHEAD>(table.cells.words(), table.cells.word_of(cell));
}

impl<V: AsRef<[u64]>> Touch for Asker<V> {
    #[inline(always)]
    fn bytes(&self) -> usize {
        self.0.cells.bytes()
    }

    #[inline(always)]
    fn fetch<const AHEAD: usize>(&self, digest: Digest) {
        fetch::<V, AHEAD>(&self.0, digest, self.0.probes.min(FIRST));
    }

    #[inline(always)]
    fn answer<I: Isa>(&mut self, _: I, digest: Digest) -> bool {
        self.contains(digest)
    }
}

/// Inserts keys.
#[derive(Debug)]
pub(super) struct Inserter<'a, V> {
    pub(super) table: CellTable<V>,
    pub(super) decrements: u64,
    /// The number of earlier insertions.
    pub(super) insertions: &'a mut u64,
}

impl<V: AsRef<[u64]> + AsMut<[u64]>> Inserter<'_, V> {
    /// Decrements cells, then sets those of the digest. Returns whether one of them was zero
    /// before.
    #[inline(always)]
    pub(super) fn insert(&mut self, digest: Digest) -> bool {
        // A width that is known at compile time makes all shifts and masks constants.
        match self.table.cells.width() {
            2 => self.insert_of_width(2, digest),
            3 => self.insert_of_width(3, digest),
            4 => self.insert_of_width(4, digest),
            width => self.insert_of_width(width, digest),
        }
    }

    #[inline(always)]
    fn insert_of_width(&mut self, width: u32, digest: Digest) -> bool {
        let CellTable { ref mut cells, len, probes } = self.table;
        let mut cells = Cells::new(cells.words_mut(), width);
        let (mut walk, mut fresh) = (Digits.start(digest), false);
        for _ in 0..probes {
            fresh |= cells.get(Digits.step(&mut walk, len)) == 0;
        }
        let first = first_aged(*self.insertions, len);
        let run = self.decrements.min(len - first);
        cells.decrement_run(first, run);
        if run < self.decrements {
            cells.decrement_run(0, self.decrements - run);
        }
        *self.insertions = self.insertions.wrapping_add(1);
        let mut walk = Digits.start(digest);
        for _ in 0..probes {
            cells.fill(Digits.step(&mut walk, len));
        }
        fresh
    }

    /// As [`insert`](Self::insert), for each key in order.
    #[inline(always)]
    pub(super) fn insert_batch<A>(
        mut self,
        keys: &[A],
        digest: impl Fn(&A) -> Digest,
        fresh: &mut [bool],
    ) {
        assert_eq!(keys.len(), fresh.len(), "one answer for each key");
        if self.table.cells.bytes() <= CACHED {
            for (key, fresh) in keys.iter().zip(fresh) {
                *fresh = self.insert(digest(key));
            }
        } else {
            ring::batch(Choice::OPEN, self, keys, digest, fresh);
        }
    }
}

impl<V: AsRef<[u64]> + AsMut<[u64]>> Touch for Inserter<'_, V> {
    #[inline(always)]
    fn bytes(&self) -> usize {
        self.table.cells.bytes()
    }

    #[inline(always)]
    fn fetch<const AHEAD: usize>(&self, digest: Digest) {
        fetch::<V, AHEAD>(&self.table, digest, self.table.probes);
        // The key is inserted after `AHEAD` keys before it, one of which was just inserted.
        let insertion = self.insertions.wrapping_add(AHEAD as u64 - 1);
        fetch_cell::<V, AHEAD>(&self.table, first_aged(insertion, self.table.len));
    }

    #[inline(always)]
    fn answer<I: Isa>(&mut self, _: I, digest: Digest) -> bool {
        self.insert(digest)
    }
}

/// The first of the cells that an insertion decrements: the number of the insertion, mixed, as a
/// fraction of all cells. The mixer is that of SplitMix64 (Steele, Lea and Flood 2014) and differs
/// from those of all hashers. So even keys that are consecutive numbers do not coincide with the
/// decremented cells.
#[inline(always)]
const fn first_aged(insertion: u64, cells: u64) -> u64 {
    let z = insertion.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x7374_6162_6c65_2121);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (((z ^ (z >> 31)) as u128 * cells as u128) >> 64) as u64
}
