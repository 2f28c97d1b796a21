//! Room for a key whose two buckets are full: the shortest chain of fingerprints that can each move on
//! to their other bucket, the last of them into an empty slot.
//!
//! ```text
//!     nodes     0          1             the two buckets of the key
//!              / | | \    / | | \
//!             2  3 4  5  6  7 8  9       the other buckets of the four fingerprints in 0, and in 1
//!            /|||\                       node n is the parent of 4n + 2 to 4n + 5
//!           10 ..
//! ```
//!
//! Nothing is moved before the whole chain is known, so that a search without success has changed
//! nothing. The tree may have a bucket several times, but the chain has not: what the later one of two
//! leads to, the earlier one does, and it is looked at first. So no move of a chain disturbs another.

use super::table::{Place, Table};
use crate::error::Full;
use crate::parts::buckets::{Row, Slots, word_of_bucket};
use crate::parts::prefetch::prefetch;

/// The nodes of most searches, which take the least memory: down to the third row of the tree.
const FEW: usize = 42;

/// The nodes of the others. With their children 4,098 buckets are looked at before the filter is said to
/// be full; more would not make it much fuller.
const MANY: usize = 1024;

impl Table<&mut [u64]> {
    /// Puts the fingerprint into one of its buckets, both of which are full.
    #[inline(never)]
    pub(super) fn make_room<R: Row>(mut self, place: Place) -> Result<(), Full> {
        let slots = self.slots::<R>();
        let wanted = slots.everywhere(place.fingerprint);
        let rows = self.rows(&slots, place.buckets);
        if rows.iter().all(|row| slots.empty(*row ^ wanted) == slots.all()) {
            return Err(Full); // they could only change places with each other
        }
        self.fetch_others(&slots, place.buckets, rows);
        if self.search::<R, FEW>(&slots, place) || self.search::<R, MANY>(&slots, place) {
            Ok(())
        } else {
            Err(Full)
        }
    }

    /// Starts to load the buckets that a search looks at first.
    fn fetch_others<R: Row>(&self, slots: &Slots<R>, buckets: [u64; 2], rows: [R; 2]) {
        for (bucket, row) in buckets.into_iter().zip(rows) {
            for slot in 0..4 {
                let other = self.other(bucket, slots.number(row, slot));
                prefetch(self.words, word_of_bucket(other, self.width));
            }
        }
    }

    /// Looks for an empty slot in the children of the first `NODES` nodes.
    fn search<R: Row, const NODES: usize>(&mut self, slots: &Slots<R>, place: Place) -> bool {
        let mut nodes = [0; NODES];
        nodes[..2].copy_from_slice(&place.buckets);
        for node in 0..NODES {
            let row = self.row(slots, nodes[node]);
            for slot in 0..4 {
                let fingerprint = slots.number(row, slot);
                let other = self.other(nodes[node], fingerprint);
                let free = slots.empty(self.row(slots, other));
                if free != R::of(0) {
                    self.flip(slots, other, free, fingerprint);
                    self.move_up(slots, &nodes, (node, slot), place.fingerprint);
                    return true;
                }
                if let Some(child) = nodes.get_mut(4 * node + 2 + slot as usize) {
                    *child = other;
                }
            }
        }
        false
    }

    /// Fills a slot whose fingerprint has moved on with that of the parent, and so on, up to the root,
    /// where the new one goes.
    fn move_up<R: Row>(
        &mut self,
        slots: &Slots<R>,
        nodes: &[u64],
        (mut node, mut slot): (usize, u32),
        fingerprint: u64,
    ) {
        loop {
            let parent = node.checked_sub(2).map(|below| (below / 4, (below % 4) as u32));
            let number = |words: &[u64], (node, slot): (usize, u32)| {
                slots.number(slots.row(words, nodes[node]), slot)
            };
            let words = &mut *self.words;
            let old = number(words, (node, slot));
            let new = parent.map_or(fingerprint, |parent| number(words, parent));
            slots.replace(words, nodes[node], slot, old, new);
            let Some(next) = parent else { return };
            (node, slot) = next;
        }
    }
}
