//! Moving fingerprints of the newest table into older ones, until it is empty and can go.
//!
//! That is as much work as there are slots, so it is done in steps: each write to the filter takes one, so that
//! no command is held up for long, and a replica, which sees the same writes, takes the same ones. At any time
//! between them the filter is whole.

use super::Cuckoo;
use super::table::Place;

/// Slots that one step looks at, at most: a fraction of a millisecond.
const STEP: usize = 1 << 14;

/// Slots that a command that asks for it looks at, at most: some ten milliseconds.
const LONG_STEP: usize = 1 << 20;

/// Where the work has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sweep {
    /// The table that is being emptied.
    table: usize,
    /// Its next slot.
    slot: usize,
    /// Whether to go on with older tables when this one cannot be emptied.
    on: bool,
}

impl Cuckoo {
    /// Begins to put tables together if more than a tenth of the keys were removed.
    pub(super) fn sweep_if_worth_it(&mut self) {
        let many = self.deletes > self.items / 10;
        if many && self.tables.len() > 1 && self.sweep.is_none() {
            self.start_sweep(false);
        }
    }

    fn start_sweep(&mut self, on: bool) {
        self.deletes = 0;
        self.sweep = Some(Sweep { table: self.tables.len() - 1, slot: 0, on });
    }

    /// Puts tables together, as far as one command may; the writes that follow do the rest. `true` if there is none.
    pub fn compact(&mut self) -> bool {
        match &mut self.sweep {
            Some(sweep) => sweep.on = true,
            None => self.start_sweep(true),
        }
        self.sweep_on(LONG_STEP);
        self.sweep.is_none()
    }

    /// A step, if the work is under way.
    pub(super) fn step(&mut self) {
        if self.sweep.is_some() {
            self.sweep_on(STEP);
        }
    }

    /// Looks at so many slots at most.
    fn sweep_on(&mut self, mut slots: usize) {
        while let Some(sweep) = self.sweep {
            let at = sweep.table.min(self.tables.len());
            let (older, newer) = self.tables.split_at_mut(at);
            let Some(table) = newer.first_mut().filter(|_| !older.is_empty()) else {
                self.sweep = None;
                return;
            };
            let end = table.slots().len().min(sweep.slot + slots);
            for slot in sweep.slot..end {
                let Some((fingerprint, bucket)) = table.lift(slot) else { continue };
                let place = Place::found(fingerprint, bucket);
                if !older.iter_mut().any(|table| table.put(place)) {
                    table.lower(slot, fingerprint);
                }
            }
            slots -= end - sweep.slot;
            if end < table.slots().len() {
                self.sweep = Some(Sweep { slot: end, ..sweep });
                return;
            }
            let emptied = table.items() == 0 && newer.len() == 1;
            if emptied {
                self.tables.pop();
            }
            let next = Sweep { table: sweep.table - 1, slot: 0, on: sweep.on };
            self.sweep = (emptied || sweep.on).then_some(next).filter(|next| next.table > 0);
            if slots == 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Settings;
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
            while !filter.compact() {}
            assert!(
                (15_000..20_000_u32).all(|key| filter.contains(filter.place(&key.to_le_bytes())))
            );
            assert!(filter.tables().len() < tables, "{expansion}");
            assert_eq!(filter.fields().items, 5_000);
        }
    }

    #[test]
    fn every_step_between_leaves_a_whole_filter() {
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

    #[test]
    fn a_single_table_has_nothing_to_compact() {
        let mut filter = grown(1, 500);
        assert_eq!(filter.tables().len(), 1);
        assert!(filter.compact());
        assert_eq!(filter.fields().items, 500);
    }
}
