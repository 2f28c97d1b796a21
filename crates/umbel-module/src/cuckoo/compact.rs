//! Compaction: moving fingerprints of the newest table into older ones, until it is empty and can be removed.
//!
//! The command that requests a compaction does all of it, as in RedisBloom. Work that is left for later
//! commands would have to be stored with the filter. Otherwise a replica that starts from a file in the middle
//! of it would end with other tables.

use super::Cuckoo;
use super::table::Place;

impl Cuckoo {
    /// Compacts if more than a tenth of the keys were removed. Stops at the first table that cannot be emptied.
    pub(super) fn compact_if_worth_it(&mut self) {
        if self.deletes > self.items / 10 && self.tables.len() > 1 {
            self.put_together(false);
        }
    }

    /// Compacts: empties every table as far as possible, and removes the newest ones that are empty.
    pub fn compact(&mut self) {
        self.put_together(true);
    }

    /// `on`: whether to continue with older tables when one cannot be emptied.
    fn put_together(&mut self, on: bool) {
        self.deletes = 0;
        // Tables in which something may find room, the oldest first. None gains room while it is an older one.
        let mut open: Vec<usize> =
            (0..self.tables.len()).filter(|at| !self.tables[*at].is_full()).collect();
        for at in (1..self.tables.len()).rev() {
            let (older, newer) = self.tables.split_at_mut(at);
            let [table, rest @ ..] = newer else { return };
            open.pop_if(|newest| *newest == at);
            // Fingerprints after `from` that found no other place.
            let (mut from, mut stay) = (0, 0);
            while !open.is_empty()
                && table.items() > stay
                && let Some(slot) = table.next_taken(from)
                && let Some((fingerprint, bucket)) = table.lift(slot)
            {
                from = slot + 1;
                let place = Place::found(fingerprint, bucket);
                match open.iter().position(|at| older[*at].put(place)) {
                    Some(found) if older[open[found]].is_full() => _ = open.remove(found),
                    Some(_) => {}
                    None => {
                        table.lower(slot, fingerprint);
                        stay += 1;
                    }
                }
            }
            let emptied = table.items() == 0 && rest.is_empty();
            if emptied {
                self.tables.pop();
            } else if !on {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MAX_TABLES, Settings};
    use super::*;

    fn grown(expansion: u16, keys: u32) -> Cuckoo {
        let settings = Settings { expansion, ..Settings::default() };
        let mut filter = Cuckoo::new(1_024, settings).unwrap();
        for key in 0..keys {
            filter.add(filter.place(&key.to_le_bytes()), 1_000).unwrap();
        }
        filter
    }

    #[test]
    fn compacting_loses_nothing_and_frees_tables() {
        for expansion in [1, 2, 4] {
            let mut filter = grown(expansion, 20_000);
            let tables = filter.tables().len();
            assert!(tables > 1);
            for key in 0..15_000_u32 {
                assert!(filter.remove(filter.place(&key.to_le_bytes())));
            }
            filter.compact();
            assert!(
                (15_000..20_000_u32).all(|key| filter.contains(filter.place(&key.to_le_bytes())))
            );
            assert!(filter.tables().len() < tables, "{expansion}");
            assert_eq!(filter.fields().items, 5_000);
        }
    }

    /// Every older table is tried for every fingerprint, the oldest first.
    fn compacted_one_by_one(filter: &mut Cuckoo) {
        filter.deletes = 0;
        for at in (1..filter.tables.len()).rev() {
            let (older, newer) = filter.tables.split_at_mut(at);
            for slot in 0..newer[0].slots().len() {
                let Some((fingerprint, bucket)) = newer[0].lift(slot) else { continue };
                let place = Place::found(fingerprint, bucket);
                if !older.iter_mut().any(|table| table.put(place)) {
                    newer[0].lower(slot, fingerprint);
                }
            }
            if newer[0].items() == 0 && newer.len() == 1 {
                filter.tables.pop();
            }
        }
    }

    #[test]
    fn tables_without_room_are_passed_over_and_nothing_else_changes() {
        let mut full = 0;
        for (bucket_size, expansion, step) in
            [(1, 1, 2), (2, 1, 3), (2, 2, 50), (4, 1, 90), (255, 1, 5), (255, 1, 3_000)]
        {
            let settings = Settings { bucket_size, expansion, ..Settings::default() };
            let mut filter = Cuckoo::new(u64::from(bucket_size) * 2, settings).unwrap();
            for key in 0..8_000_u32 {
                filter.add(filter.place(&key.to_le_bytes()), MAX_TABLES).unwrap();
            }
            // The oldest tables stay full, and later ones get holes.
            for table in filter.tables.iter_mut().skip(3) {
                (0..table.slots().len()).step_by(step).for_each(|slot| _ = table.lift(slot));
            }
            full += filter.tables.iter().filter(|table| table.is_full()).count();
            let mut expected = filter.try_clone().unwrap();
            compacted_one_by_one(&mut expected);
            filter.compact();
            let slots = |filter: &Cuckoo| {
                filter.tables().iter().map(|table| table.slots().to_vec()).collect::<Vec<_>>()
            };
            assert!(slots(&expected) == slots(&filter), "{settings:?}");
        }
        assert!(full >= 18, "{full}");
    }

    #[test]
    fn removing_keys_puts_tables_together_and_loses_nothing() {
        let mut filter = grown(1, 60_000);
        let before = filter.tables().len();
        for key in 0..50_000_u32 {
            assert!(filter.remove(filter.place(&key.to_le_bytes())), "{key}");
            if key % 500 == 0 {
                let rest = key + 1..60_000;
                assert!(
                    rest.step_by(7).all(|key| filter.contains(filter.place(&key.to_le_bytes())))
                );
            }
        }
        assert!(filter.tables().len() < before, "removing keys puts tables together");
    }

    /// A replica that starts from a file at any time receives the same commands from then on, and must end with
    /// the same tables.
    #[test]
    fn a_filter_that_is_stored_at_any_time_goes_on_as_the_original() {
        let mut filter = grown(1, 40_000);
        for key in 0..12_000_u32 {
            filter.remove(filter.place(&key.to_le_bytes()));
            if key % 1_000 != 0 {
                continue;
            }
            let mut original = filter.try_clone().unwrap();
            let mut loaded = Cuckoo::of_header(&filter.header()).unwrap();
            let mut number = 1;
            while let Some((next, chunk)) = filter.chunk(number) {
                loaded.load_chunk(next, chunk).unwrap();
                number = next;
            }
            for key in key + 1..key + 6_000 {
                for filter in [&mut original, &mut loaded] {
                    filter.remove(filter.place(&key.to_le_bytes()));
                }
            }
            assert_eq!(original.header(), loaded.header(), "{key}");
            let slots = |filter: &Cuckoo| {
                filter.tables().iter().map(|table| table.slots().to_vec()).collect::<Vec<_>>()
            };
            assert!(slots(&original) == slots(&loaded), "{key}");
        }
    }

    #[test]
    fn a_single_table_has_nothing_to_compact() {
        let mut filter = grown(1, 500);
        assert_eq!(filter.tables().len(), 1);
        filter.compact();
        assert_eq!(filter.fields().items, 500);
    }
}
