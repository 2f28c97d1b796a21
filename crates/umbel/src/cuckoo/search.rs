//! Room for a key whose two buckets are full: the shortest chain of fingerprints that can each move on
//! to their other bucket, the last of them into an empty slot.
//!
//! ```text
//!     nodes     0          1             the two buckets of the key
//!              / | | \    / | | \
//!             2  3 4  5  6  7 8  9       the other buckets of the four fingerprints in 0, and in 1
//!            /|||\
//!          10 ..
//! ```
//!
//! Nothing is moved before the whole chain is known, so that a search without success has changed
//! nothing. A small tree may have a bucket several times, but the chain has not: what the later one of two
//! leads to, the earlier one does, and it is looked at first. So no move of a chain disturbs another.
//!
//! A large tree has every bucket once, which makes a difference with short fingerprints. Of 15 different
//! ones, two in a bucket are often the same; and three moves, made again in the same order, lead back to
//! where they began, whichever they are, as always when a move is the difference from a sum.

use super::table::{BucketTable, GOLDEN, Place};
use crate::error::Full;
use crate::parts::buckets::{Row, Slots};

/// The nodes of most trees, which take the least time: to look for each among those that are there already
/// would cost more than it saves.
const FEW: usize = 42;
const FEW_CELLS: usize = 0;

/// The nodes of the others. With their children 4,096 buckets are looked at before the filter is said to
/// be full; more would not make it much fuller.
const MANY: usize = 1024;
const MANY_CELLS: usize = 2048;

/// The origin of a root.
const NOWHERE: u16 = u16::MAX;

/// Buckets that fingerprints can come to; each once if there are cells.
struct Tree<const NODES: usize, const CELLS: usize> {
    len: usize,
    buckets: [u64; NODES],
    /// Where the fingerprint is that would move to the bucket: slot `s` of node `n` is `4 n + s`.
    origins: [u16; NODES],
    /// A hash table of all nodes, each one more than its number; 0 is an empty cell.
    cells: [u16; CELLS],
}

impl<const NODES: usize, const CELLS: usize> Tree<NODES, CELLS> {
    fn new(roots: [u64; 2]) -> Self {
        const { assert!((CELLS == 0 || CELLS > NODES) && 4 * NODES < NOWHERE as usize) }
        let (buckets, origins) = ([0; NODES], [NOWHERE; NODES]);
        let mut tree = Self { len: 0, buckets, origins, cells: [0; CELLS] };
        roots.into_iter().for_each(|root| tree.add(root, NOWHERE));
        tree
    }

    /// Adds a bucket, unless there are too many, or it is there and that can be told.
    #[inline(always)]
    fn add(&mut self, bucket: u64, origin: u16) {
        if self.len == NODES {
            return;
        }
        if CELLS > 0 {
            let mut cell = (bucket.wrapping_mul(GOLDEN) >> 32) as usize % CELLS;
            while self.cells[cell] != 0 {
                if self.buckets[usize::from(self.cells[cell]) - 1] == bucket {
                    return;
                }
                cell = (cell + 1) % CELLS;
            }
            self.cells[cell] = self.len as u16 + 1;
        }
        (self.buckets[self.len], self.origins[self.len]) = (bucket, origin);
        self.len += 1;
    }

    /// The bucket and the slot of a fingerprint that would move.
    fn slot(&self, origin: u16) -> (u64, u32) {
        (self.buckets[usize::from(origin / 4)], u32::from(origin % 4))
    }
}

impl BucketTable<&mut [u64]> {
    /// Puts the fingerprint into one of its buckets, both of which are full.
    #[inline(never)]
    pub(super) fn make_room<R: Row>(mut self, place: Place) -> Result<(), Full> {
        let slots = self.slots::<R>();
        let wanted = slots.everywhere(place.fingerprint);
        let rows = self.rows(&slots, place.buckets);
        if rows.iter().all(|row| slots.empty(*row ^ wanted) == slots.all()) {
            return Err(Full); // they could only change places with each other
        }
        let found = self.step(&slots, place, rows)
            || self.search::<R, FEW, FEW_CELLS>(&slots, place)
            || self.search::<R, MANY, MANY_CELLS>(&slots, place);
        if found { Ok(()) } else { Err(Full) }
    }

    /// Looks for a fingerprint in the two buckets that can move on at once, as in four of five searches.
    #[inline(always)]
    fn step<R: Row>(&mut self, slots: &Slots<R>, place: Place, rows: [R; 2]) -> bool {
        for (bucket, row) in place.buckets.into_iter().zip(rows) {
            for slot in 0..4 {
                let fingerprint = slots.number(row, slot);
                let to = self.bit(slots, self.other(bucket, fingerprint));
                let free = slots.first_empty(self.row_at(to));
                if free != R::of(0) {
                    self.flip(slots, to, free, fingerprint);
                    slots.replace(self.words, bucket, slot, fingerprint, place.fingerprint);
                    return true;
                }
            }
        }
        false
    }

    /// Looks for an empty slot in the children of the first `NODES` nodes.
    #[inline(never)]
    fn search<R: Row, const NODES: usize, const CELLS: usize>(
        &mut self,
        slots: &Slots<R>,
        place: Place,
    ) -> bool {
        let mut tree = Tree::<NODES, CELLS>::new(place.buckets);
        let mut node = 0;
        while node < tree.len {
            let bucket = tree.buckets[node];
            let row = self.row(slots, bucket);
            for slot in 0..4 {
                let fingerprint = slots.number(row, slot);
                let other = self.other(bucket, fingerprint);
                let to = self.bit(slots, other);
                let free = slots.first_empty(self.row_at(to));
                let origin = (4 * node) as u16 + slot as u16;
                if free != R::of(0) {
                    self.flip(slots, to, free, fingerprint);
                    self.move_up(slots, &tree, origin, place.fingerprint);
                    return true;
                }
                tree.add(other, origin);
            }
            node += 1;
        }
        false
    }

    /// Fills a slot whose fingerprint has moved on with that of the parent, and so on, up to the root,
    /// where the new one goes.
    fn move_up<R: Row, const NODES: usize, const CELLS: usize>(
        &mut self,
        slots: &Slots<R>,
        tree: &Tree<NODES, CELLS>,
        mut origin: u16,
        fingerprint: u64,
    ) {
        let number = |words: &[u64], (bucket, slot): (u64, u32)| {
            slots.number(slots.row(words, bucket), slot)
        };
        loop {
            let (bucket, slot) = tree.slot(origin);
            let next = tree.origins[usize::from(origin / 4)];
            let root = next == NOWHERE;
            let new = if root { fingerprint } else { number(self.words, tree.slot(next)) };
            slots.replace(self.words, bucket, slot, number(self.words, (bucket, slot)), new);
            if root {
                return;
            }
            origin = next;
        }
    }
}
