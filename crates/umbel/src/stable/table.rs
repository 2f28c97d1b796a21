//! One key: look at its cells, or count others down and fill its own; and many keys, whose words are
//! asked for first.

use crate::hash::Digest;
use crate::kernels::{Digits, Kernels};
use crate::layout::ring::{self, Touch};
use crate::parts::cells::Cells;
use crate::simd::{Choice, Isa};

/// How many cells are looked at before the first branch, as in a classic filter.
const FIRST: u32 = 3;

/// Filters of up to this many bytes are in a core's own cache, where fetching ahead only costs.
const CACHED: usize = 1 << 20;

/// The cells of a filter, how many there are, and how many a key has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table<V> {
    pub(super) cells: Cells<V>,
    pub(super) len: u64,
    pub(super) probes: u32,
}

impl<V: AsRef<[u64]>> Table<V> {
    /// The next cell of a walk.
    #[inline(always)]
    fn step(&self, walk: &mut Digest) -> u64 {
        Digits.step(walk, self.len)
    }

    /// Whether no cell of the digest is zero.
    #[inline(always)]
    pub(super) fn contains(&self, digest: Digest) -> bool {
        // A width that the compiler knows makes constants of all shifts and masks.
        match self.cells.width() {
            2 => self.contains_of_width(2, digest),
            3 => self.contains_of_width(3, digest),
            4 => self.contains_of_width(4, digest),
            width => self.contains_of_width(width, digest),
        }
    }

    #[inline(always)]
    fn contains_of_width(&self, width: u32, digest: Digest) -> bool {
        let cells = Cells::new(self.cells.words(), width);
        let (mut walk, mut left) = (Digits.start(digest), self.probes);
        if left >= FIRST {
            let mut found = true;
            for _ in 0..FIRST {
                let cell = self.step(&mut walk);
                found &= cells.get(cell) != 0;
            }
            if !found {
                return false;
            }
            left -= FIRST;
        }
        for _ in 0..left {
            let cell = self.step(&mut walk);
            if cells.get(cell) == 0 {
                return false;
            }
        }
        true
    }

    /// As [`contains`](Self::contains) for each key.
    #[inline(always)]
    pub(super) fn contains_batch<A>(
        self,
        keys: &[A],
        digest: impl Fn(&A) -> Digest,
        found: &mut [bool],
    ) {
        assert_eq!(keys.len(), found.len(), "one answer for each key");
        if self.cells.bytes() <= CACHED {
            for (key, found) in keys.iter().zip(found) {
                *found = self.contains(digest(key));
            }
        } else {
            ring::batch(Choice::OPEN, LookUp(self), keys, digest, found);
        }
    }

    /// Starts to load the words of the first `probes` cells of a digest.
    #[inline(always)]
    fn fetch<const AHEAD: usize>(&self, digest: Digest, probes: u32) {
        let mut walk = Digits.start(digest);
        for _ in 0..probes {
            let cell = self.step(&mut walk);
            self.fetch_cell::<AHEAD>(cell);
        }
    }

    #[inline(always)]
    fn fetch_cell<const AHEAD: usize>(&self, cell: u64) {
        ring::fetch::<_, AHEAD>(self.cells.words(), self.cells.word_of(cell));
    }
}

/// Looks keys up.
struct LookUp<V>(Table<V>);

impl<V: AsRef<[u64]>> Touch for LookUp<V> {
    #[inline(always)]
    fn bytes(&self) -> usize {
        self.0.cells.bytes()
    }

    #[inline(always)]
    fn fetch<const AHEAD: usize>(&self, digest: Digest) {
        self.0.fetch::<AHEAD>(digest, self.0.probes.min(FIRST));
    }

    #[inline(always)]
    fn answer<I: Isa>(&mut self, _: I, digest: Digest) -> bool {
        self.0.contains(digest)
    }
}

/// Inserts keys.
#[derive(Debug)]
pub(super) struct Inserter<'a, V> {
    pub(super) table: Table<V>,
    pub(super) decrements: u64,
    /// How many keys were inserted before.
    pub(super) insertions: &'a mut u64,
}

impl<V: AsRef<[u64]> + AsMut<[u64]>> Inserter<'_, V> {
    /// Counts cells down, then fills those of the digest; whether one of them was zero before.
    #[inline(always)]
    pub(super) fn insert(&mut self, digest: Digest) -> bool {
        // A width that the compiler knows makes constants of all shifts and masks.
        match self.table.cells.width() {
            2 => self.insert_of_width(2, digest),
            3 => self.insert_of_width(3, digest),
            4 => self.insert_of_width(4, digest),
            width => self.insert_of_width(width, digest),
        }
    }

    #[inline(always)]
    fn insert_of_width(&mut self, width: u32, digest: Digest) -> bool {
        let Table { ref mut cells, len, probes } = self.table;
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

    /// As [`insert`](Self::insert) for each key, in their order.
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
        self.table.fetch::<AHEAD>(digest, self.table.probes);
        // The key is inserted when `AHEAD` keys before it were, of which one just was.
        let insertion = self.insertions.wrapping_add(AHEAD as u64 - 1);
        self.table.fetch_cell::<AHEAD>(first_aged(insertion, self.table.len));
    }

    #[inline(always)]
    fn answer<I: Isa>(&mut self, _: I, digest: Digest) -> bool {
        self.insert(digest)
    }
}

/// The first of the cells that an insertion counts down: the number of the insertion, mixed, as a
/// fraction of all cells. The mixer is SplitMix64's (Steele, Lea and Flood 2014), and no hasher's, so
/// that not even keys which count insertions themselves are where the counting down is.
#[inline(always)]
const fn first_aged(insertion: u64, cells: u64) -> u64 {
    let z = insertion.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x7374_6162_6c65_2121);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (((z ^ (z >> 31)) as u128 * cells as u128) >> 64) as u64
}
