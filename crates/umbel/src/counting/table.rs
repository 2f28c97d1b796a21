//! Operations on the cells of one key, and batches with prefetched words.

use crate::hash::Digest;
use crate::kernels::{Digits, Kernels};
use crate::layout::cells::{CellTable, FIRST};

/// Filters of up to this many bytes fit into the core's private cache, where prefetching only costs
/// time.
const CACHED: usize = 2 << 20;

/// Words of filters larger than this are prefetched into the second-level cache, which allows more
/// outstanding requests.
const FAR: usize = 32 << 20;

impl<V: AsRef<[u64]>> CellTable<V> {
    /// The smallest number in any cell of the digest.
    #[inline(always)]
    pub(super) fn min(&self, digest: Digest) -> u64 {
        let (mut walk, mut min) = (Digits.start(digest), self.cells.max());
        for _ in 0..self.probes {
            let cell = self.step(&mut walk);
            min = min.min(self.cells.get(cell));
        }
        min
    }

    /// Prefetches the words of the first `probes` cells of a digest.
    #[inline(always)]
    fn fetch(&self, digest: Digest, probes: u32, far: bool) {
        self.for_cells(digest, probes, |cell| {
            if far {
                self.cells.fetch::<true>(cell);
            } else {
                self.cells.fetch::<false>(cell);
            }
        });
    }

    /// As [`contains`](Self::contains), for each key. While one group is looked up, the words of
    /// the next group are fetched: all of them while most keys are found, otherwise only the first
    /// ones.
    #[inline(always)]
    pub(super) fn contains_batch<A>(
        &self,
        keys: &[A],
        digest: impl Fn(&A) -> Digest,
        found: &mut [bool],
    ) {
        const GROUP: usize = 32;
        assert_eq!(keys.len(), found.len(), "one answer for each key");
        if self.cells.bytes() <= CACHED {
            for (key, found) in keys.iter().zip(found) {
                *found = self.contains(digest(key));
            }
            return;
        }
        let (far, mut probes) = (self.cells.bytes() > FAR, self.probes.min(FIRST));
        let (mut this, mut next) = ([Digest::new(0); GROUP], [Digest::new(0); GROUP]);
        let mut groups = keys.chunks(GROUP);
        for (slot, key) in next.iter_mut().zip(groups.next().unwrap_or_default()) {
            *slot = digest(key);
            self.fetch(*slot, probes, far);
        }
        for found in found.chunks_mut(GROUP) {
            core::mem::swap(&mut this, &mut next);
            let mut keys = groups.next().unwrap_or_default().iter();
            let mut present = 0;
            for (lane, found) in found.iter_mut().enumerate() {
                if let Some(key) = keys.next() {
                    next[lane] = digest(key);
                    self.fetch(next[lane], probes, far);
                }
                *found = self.contains(this[lane]);
                present += usize::from(*found);
            }
            probes = if present * 2 > GROUP { self.probes } else { self.probes.min(FIRST) };
        }
    }
}

impl<V: AsRef<[u64]> + AsMut<[u64]>> CellTable<V> {
    /// Adds one to every cell of the digest. Returns whether one of them was zero. A cell that the
    /// digest has twice gets two.
    #[inline(always)]
    pub(super) fn insert(&mut self, digest: Digest) -> bool {
        let (mut walk, mut fresh) = (Digits.start(digest), false);
        for _ in 0..self.probes {
            let cell = self.step(&mut walk);
            fresh |= self.cells.increment(cell) == 0;
        }
        fresh
    }

    /// Subtracts what [`insert`](Self::insert) added, unless a cell is zero, or a cell that the
    /// digest has twice is one. Returns whether it did.
    ///
    /// Keys to be removed are usually present. Subtracting first, and adding again if a cell was
    /// zero, is faster than testing all cells first.
    #[inline(always)]
    pub(super) fn remove(&mut self, digest: Digest) -> bool {
        let (mut walk, mut there, mut taken) = (Digits.start(digest), true, 0_u64);
        for probe in 0..self.probes {
            let cell = self.step(&mut walk);
            let (before, counted) = self.cells.decrement_sticky(cell);
            there &= before != 0;
            taken |= u64::from(counted) << probe;
        }
        if !there {
            self.give_back(digest, taken);
        }
        there
    }

    /// Adds one to the cells of the digest whose bits are set in `taken`.
    #[cold]
    fn give_back(&mut self, digest: Digest, mut taken: u64) {
        let mut walk = Digits.start(digest);
        while taken != 0 {
            let cell = self.step(&mut walk);
            if taken & 1 == 1 {
                self.cells.increment(cell);
            }
            taken >>= 1;
        }
    }

    /// Calls `change` with every digest in order: `answers[i]` is for digest number `i`.
    #[inline(always)]
    pub(super) fn change_each(
        self,
        digests: impl ExactSizeIterator<Item = Digest>,
        answers: &mut [bool],
        change: impl Fn(&mut Self, Digest) -> bool,
    ) {
        assert_eq!(digests.len(), answers.len(), "one answer for each key");
        let mut answers = answers.iter_mut();
        self.fetch_ahead(digests, |table, digest| {
            let answer = change(table, digest);
            if let Some(slot) = answers.next() {
                *slot = answer;
            }
        });
    }

    /// Calls `each` with every digest in order, some digests after prefetching its words.
    #[inline(always)]
    pub(super) fn fetch_ahead(
        mut self,
        mut digests: impl Iterator<Item = Digest>,
        mut each: impl FnMut(&mut Self, Digest),
    ) {
        const AHEAD: usize = 16;
        let bytes = self.cells.bytes();
        if bytes <= CACHED {
            digests.for_each(|digest| each(&mut self, digest));
            return;
        }
        let (probes, far) = (self.probes, bytes > FAR);
        let (mut ring, mut len) = ([Digest::new(0); AHEAD], 0);
        for (slot, digest) in ring.iter_mut().zip(&mut digests) {
            self.fetch(digest, probes, far);
            *slot = digest;
            len += 1;
        }
        let mut first = 0;
        for digest in digests {
            each(&mut self, ring[first]);
            self.fetch(digest, probes, far);
            ring[first] = digest;
            first = (first + 1) % AHEAD;
        }
        for place in 0..len {
            each(&mut self, ring[(first + place) % AHEAD]);
        }
    }
}
