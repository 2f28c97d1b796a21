//! Finds room for a key whose two buckets are full: the shortest chain of fingerprints that can
//! each move to their other bucket, the last of them into an empty slot.
//!
//! ```text
//!     nodes     0          1             the two buckets of the key
//!              / | | \    / | | \
//!             2  3 4  5  6  7 8  9       the other buckets of the four fingerprints in 0, and in 1
//!            /|||\
//!          10 ..
//! ```
//!
//! Nothing is moved before the whole chain is known, so an unsuccessful search changes nothing. A
//! small tree may contain a bucket several times, but a chain does not: everything that is
//! reachable from the later of two equal nodes is reachable from the earlier one, which is searched
//! first. So no move of a chain disturbs another.
//!
//! A large tree contains every bucket once, which makes a difference with short fingerprints. If
//! there are only 15 different ones, two in a bucket are often the same. Three moves that are
//! repeated in the same order then lead back to where they began, because a move is the difference
//! from a sum.

use super::table::{BucketTable, GOLDEN, Place};
use crate::error::Full;
use crate::parts::buckets::{Row, Slots};

/// The number of nodes of the trees that are tried first and are fastest: a check for duplicate
/// nodes would cost more than it saves.
const FEW: usize = 42;
const FEW_CELLS: usize = 0;

/// The number of nodes of the large trees. With their children, 4,096 buckets are searched before
/// the filter reports that it is full; more would not raise the load factor by much.
const MANY: usize = 1024;
const MANY_CELLS: usize = 2048;

/// The origin of a root.
const NOWHERE: u16 = u16::MAX;

/// The buckets that fingerprints can move to. With cells, each bucket is stored once.
struct Tree<const NODES: usize, const CELLS: usize> {
    len: usize,
    buckets: [u64; NODES],
    /// The slot of the fingerprint that would move to the bucket: slot `s` of node `n` is `4 n +
    /// s`.
    origins: [u16; NODES],
    /// A hash table of all nodes. A cell is the number of a node plus one; 0 is an empty cell.
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

    /// Adds a bucket, unless the tree is full or is known to contain it.
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
            return Err(Full); // they could only swap places
        }
        let found = self.step(&slots, place, rows)
            || self.search::<R, FEW, FEW_CELLS>(&slots, place)
            || self.search::<R, MANY, MANY_CELLS>(&slots, place);
        if found { Ok(()) } else { Err(Full) }
    }

    /// Looks for a fingerprint in the two buckets that can move at once, which succeeds in four of
    /// five searches.
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

    /// Moves fingerprints along the chain: each freed slot takes the fingerprint of the parent
    /// node, up to the root, which takes the new one.
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
