//! One table of a cuckoo filter: buckets of fingerprints, with 0 in free slots.

use crate::error::Invalid;
use crate::memory;
use crate::prefetch::prefetch;

/// The multiplier from a fingerprint to the distance of its two buckets: Murmur's.
const DISTANCE: u64 = 0x5bd1_e995;

/// The fingerprint of a key, and its two hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    fingerprint: u8,
    first: u64,
    second: u64,
}

impl Place {
    /// The place of the key with this hash.
    #[inline]
    #[must_use]
    pub fn of(hash: u64) -> Self {
        let fingerprint = (hash % 255) as u8 + 1;
        Self { fingerprint, first: hash, second: other(fingerprint, hash) }
    }

    /// The place of a fingerprint that was found in this bucket of a table. The place is valid in tables with
    /// at most that number of buckets.
    pub(super) fn found(fingerprint: u8, bucket: u64) -> Self {
        Self { fingerprint, first: bucket, second: other(fingerprint, bucket) }
    }
}

/// The other hash of a key with this fingerprint.
const fn other(fingerprint: u8, hash: u64) -> u64 {
    hash ^ (fingerprint as u64).wrapping_mul(DISTANCE)
}

/// The slots of a new table. Slots that are known to be empty are not scanned, because there may be very many.
#[derive(Debug)]
pub enum Slots {
    /// All are free.
    Empty(Box<[u8]>),
    /// Some may be taken.
    Taken(Box<[u8]>),
}

impl Slots {
    /// This number of free slots.
    ///
    /// # Errors
    ///
    /// [`Invalid::NoMemory`] if there is not enough memory.
    pub fn empty(len: usize) -> Result<Self, Invalid> {
        memory::zeroed(len).map(Self::Empty).ok_or(Invalid::NoMemory)
    }

    pub(super) fn len(&self) -> usize {
        let (Self::Empty(slots) | Self::Taken(slots)) = self;
        slots.len()
    }
}

/// The first free slot of a bucket. Large buckets are mostly full here, so eight slots are compared at once.
#[inline]
fn free_slot(bucket: &[u8]) -> Option<usize> {
    const LOW: u64 = 0x0101_0101_0101_0101;
    let (words, rest) = bucket.as_chunks::<8>();
    let has_zero = |word: &[u8; 8]| {
        let word = u64::from_le_bytes(*word);
        word.wrapping_sub(LOW) & !word & (LOW << 7) != 0
    };
    let from = words.iter().position(has_zero).unwrap_or(words.len()) * 8;
    debug_assert!(rest.len() < 8);
    bucket[from..].iter().position(|slot| *slot == 0).map(|at| from + at)
}

/// The number of occupied slots.
fn taken(slots: &[u8]) -> u64 {
    slots.iter().map(|slot| u64::from(*slot != 0)).sum()
}

/// Buckets in a row.
#[derive(Debug)]
pub struct Table {
    slots: Box<[u8]>,
    bucket: usize,
    /// The number of buckets minus one. That number is a power of two.
    mask: u64,
    /// Fingerprints in it.
    items: u64,
}

impl Table {
    /// The table with these slots. The number of buckets is a power of two.
    pub(super) fn new(slots: Slots, bucket_size: u16) -> Self {
        let bucket = usize::from(bucket_size);
        let (slots, items) = match slots {
            Slots::Empty(slots) => (slots, 0),
            Slots::Taken(slots) => {
                let items = taken(&slots);
                (slots, items)
            }
        };
        Self { bucket, mask: (slots.len() / bucket) as u64 - 1, slots, items }
    }

    /// Its slots, bucket by bucket.
    #[must_use]
    pub fn slots(&self) -> &[u8] {
        &self.slots
    }

    pub(crate) fn memory_mut(&mut self) -> &mut Box<[u8]> {
        &mut self.slots
    }

    /// The number of buckets.
    #[must_use]
    pub const fn buckets(&self) -> u64 {
        self.mask + 1
    }

    /// The number of occupied slots.
    #[must_use]
    pub const fn items(&self) -> u64 {
        self.items
    }

    /// Overwrites slots from `start` on with the chunk.
    pub(super) fn load(&mut self, start: usize, chunk: &[u8]) {
        let place = &mut self.slots[start..start + chunk.len()];
        self.items = self.items - taken(place) + taken(chunk);
        place.copy_from_slice(chunk);
    }

    /// The position of the bucket of this hash.
    #[inline(always)]
    fn start(&self, hash: u64) -> usize {
        (hash & self.mask) as usize * self.bucket
    }

    #[inline(always)]
    fn bucket(&self, hash: u64) -> &[u8] {
        let start = self.start(hash);
        &self.slots[start..start + self.bucket]
    }

    #[inline(always)]
    fn bucket_mut(&mut self, hash: u64) -> &mut [u8] {
        let start = self.start(hash);
        &mut self.slots[start..start + self.bucket]
    }

    #[inline]
    pub(super) fn contains(&self, place: Place) -> bool {
        let Place { fingerprint, first, second } = place;
        if self.bucket == 2 {
            // The usual size, without a branch in the middle.
            let (one, two) = (self.bucket(first), self.bucket(second));
            let has = |bucket: &[u8]| (bucket[0] == fingerprint) | (bucket[1] == fingerprint);
            return has(one) | has(two);
        }
        self.bucket(first).contains(&fingerprint) || self.bucket(second).contains(&fingerprint)
    }

    pub(super) fn count(&self, place: Place) -> u64 {
        let Place { fingerprint, first, second } = place;
        let count =
            |bucket: &[u8]| bucket.iter().filter(|slot| **slot == fingerprint).count() as u64;
        // As in RedisBloom, a bucket counts twice if both hashes lead to it.
        count(self.bucket(first)) + count(self.bucket(second))
    }

    /// Whether no slot is free.
    #[inline]
    pub(super) const fn is_full(&self) -> bool {
        self.items == self.slots.len() as u64
    }

    /// Stores a fingerprint in a free slot of its buckets; `false` if there is none.
    #[inline]
    pub(super) fn put(&mut self, place: Place) -> bool {
        if self.is_full() {
            return false;
        }
        let done = [place.first, place.second].into_iter().any(|hash| {
            let bucket = self.bucket_mut(hash);
            free_slot(bucket).map(|slot| bucket[slot] = place.fingerprint).is_some()
        });
        self.items += u64::from(done);
        done
    }

    /// Removes a fingerprint from its buckets; `false` if it is not present.
    pub(super) fn take(&mut self, place: Place) -> bool {
        let done = [place.first, place.second].into_iter().any(|hash| {
            let slot = self.bucket_mut(hash).iter_mut().find(|slot| **slot == place.fingerprint);
            slot.map(|slot| *slot = 0).is_some()
        });
        self.items -= u64::from(done);
        done
    }

    /// Makes room by moving up to `steps` fingerprints to their other buckets, each from the next slot in turn.
    /// Returns `false` if that was not enough; all moves are then undone. Also returns the number of moves.
    pub(super) fn kick(&mut self, place: Place, steps: u16) -> (bool, u64) {
        if self.is_full() {
            // No move can end at a free slot, and all moves would be undone.
            return (false, 0);
        }
        let (mut hand, mut slot, mut bucket) = (place.fingerprint, 0, place.first & self.mask);
        for step in 0..steps {
            core::mem::swap(&mut self.bucket_mut(bucket)[slot], &mut hand);
            bucket = other(hand, bucket) & self.mask;
            if let Some(free) = free_slot(self.bucket(bucket)) {
                self.bucket_mut(bucket)[free] = hand;
                self.items += 1;
                return (true, u64::from(step));
            }
            slot = (slot + 1) % self.bucket;
        }
        for _ in 0..steps {
            slot = (slot + self.bucket - 1) % self.bucket;
            bucket = other(hand, bucket) & self.mask;
            core::mem::swap(&mut self.bucket_mut(bucket)[slot], &mut hand);
        }
        (false, u64::from(steps) * 2)
    }

    /// The next occupied slot, from this one on.
    pub(super) fn next_taken(&self, from: usize) -> Option<usize> {
        let rest = self.slots.get(from..)?;
        let words = rest.as_chunks::<8>().0;
        let free = words.iter().take_while(|word| u64::from_le_bytes(**word) == 0).count() * 8;
        rest[free..].iter().position(|slot| *slot != 0).map(|at| from + free + at)
    }

    /// Removes the fingerprint in a slot, and returns it with its bucket; `None` if the slot is free.
    pub(super) fn lift(&mut self, slot: usize) -> Option<(u8, u64)> {
        let fingerprint = core::mem::take(&mut self.slots[slot]);
        if fingerprint == 0 {
            return None;
        }
        self.items -= 1;
        Some((fingerprint, (slot / self.bucket) as u64))
    }

    /// Restores a fingerprint that was lifted.
    pub(super) fn lower(&mut self, slot: usize, fingerprint: u8) {
        self.slots[slot] = fingerprint;
        self.items += 1;
    }

    /// Prefetches the two buckets.
    #[inline(always)]
    pub(super) fn fetch(&self, place: Place) {
        prefetch(&self.slots, self.start(place.first));
        prefetch(&self.slots, self.start(place.second));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_bucket_of_the_other_bucket_is_the_first() {
        for hash in (0..1_000_u64).map(|key| key.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
            let place = Place::of(hash);
            assert!(place.fingerprint > 0);
            for mask in [0, 1, 511, (1 << 20) - 1] {
                let back = Place::found(place.fingerprint, place.second & mask);
                assert_eq!(
                    (back.second & mask, back.first & mask),
                    (place.first & mask, place.second & mask)
                );
            }
        }
    }

    #[test]
    fn free_and_taken_slots_are_found_as_one_by_one() {
        let mut state = 5_u64;
        for round in 0..20_000 {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let len = 1 + (state >> 33) as usize % 255;
            let dense = round % 2 == 0;
            let slots: Vec<u8> = (0..len as u64)
                .map(|at| {
                    let dice = (state ^ at.wrapping_mul(0x9e37_79b9_7f4a_7c15))
                        .wrapping_mul(state | 1)
                        >> 40;
                    let rare = dice.is_multiple_of(97);
                    if rare == dense { 0 } else { [1, 0x7f, 0x80, 0xff][dice as usize % 4] }
                })
                .collect();
            assert_eq!(free_slot(&slots), slots.iter().position(|slot| *slot == 0), "{slots:?}");
            let table = Table::new(Slots::Taken(slots.clone().into()), len as u16);
            let from = (state >> 20) as usize % (len + 2);
            let taken = (from..len).find(|at| slots[*at] != 0);
            assert_eq!(table.next_taken(from), taken, "{slots:?} from {from}");
        }
    }

    #[test]
    fn a_full_table_refuses_without_moving_anything() {
        let mut table = Table::new(Slots::Taken(vec![7; 64].into()), 2);
        assert_eq!(table.kick(Place::of(3), u16::MAX), (false, 0));
        assert_eq!(table.slots(), [7; 64]);
    }

    #[test]
    fn kicks_that_fail_leave_everything_where_it_was() {
        let mut table = Table::new(Slots::empty(64).unwrap(), 2);
        let (mut refused, mut state) = (0, 3_u64);
        for _ in 0..1_000 {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let place = Place::of(state ^ state >> 29);
            if table.put(place) {
                continue;
            }
            let before = table.slots.clone();
            if !table.kick(place, 20).0 {
                assert_eq!(table.slots, before);
                refused += 1;
            }
        }
        assert!(refused > 100);
        assert_eq!(table.items(), table.slots.iter().filter(|slot| **slot > 0).count() as u64);
    }
}
