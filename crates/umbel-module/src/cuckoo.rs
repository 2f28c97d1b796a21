//! RedisBloom's cuckoo filter, to the byte: fingerprints of eight bits in tables of buckets.
//!
//! ```text
//!     hash -> fingerprint f = hash mod 255 + 1, two places: hash and hash ^ f * C
//!
//!     table 0   [ f .][ . .][ . g ]...      2^n buckets
//!     table 1   [ . .][ h .]...             2^n * expansion^1, when table 0 is full, and so on
//! ```
//!
//! | bits per key | touches per look-up | remove | union | grow | can adding fail |
//! |---|---|---|---|---|---|
//! | 8 to 17 | 2 buckets in each table | yes | no | yes | memory, or told not to grow |
//!
//! This is the format of a RedisBloom server. Choose it for data that has to move between servers. Prefer
//! `CF.RESERVE ... ERROR p` where the false positive rate matters: with eight bits and two tables it is 1.5 %,
//! and it grows with every table.
//!
//! # Where it breaks
//!
//! Removing a key that was never added may remove another one. A key can be added only until the slots of its
//! two buckets in all tables are full.
//!
//! # Why removing is safe in many tables
//!
//! The number of buckets of a table is a power of two, and no smaller than that of the table before. Two keys
//! that share fingerprint and buckets in a large table share them in every smaller one. So after a fingerprint
//! is removed from the newest table that has one, the remaining fingerprint still represents the other key.
//!
//! ```
//! use umbel_module::cuckoo::{Cuckoo, Settings};
//!
//! let mut seen = Cuckoo::new(1_000, Settings::default())?;
//! let place = seen.place(b"a");
//! seen.add(place, 32).unwrap();
//! assert!(seen.contains(seen.place(b"a")) && !seen.contains(seen.place(b"b")));
//! assert!(seen.remove(place) && !seen.contains(place));
//! # Ok::<(), umbel_module::error::Invalid>(())
//! ```

mod compact;
mod dump;
mod table;

pub use dump::HEADER;
pub use table::{Place, Slots, Table};

use crate::error::{Invalid, Refused};
use crate::murmur::murmur64a;

/// The maximum number of tables: RedisBloom counts them with 16 bits.
pub const MAX_TABLES: usize = 65_535;

/// The maximum number of bytes in all tables, and of buckets in one: see [`crate::bloom::MAX_BITS`].
const MAX_BYTES: u64 = 1 << 40;

/// The parameters of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Slots of a bucket, 1 to 255.
    pub bucket_size: u16,
    /// The maximum number of fingerprints that are moved to make room for one, from 1.
    pub max_iterations: u16,
    /// The ratio of the size of a new table to that of the last one, a power of two; 0 if there is only one
    /// table.
    pub expansion: u16,
}

impl Default for Settings {
    fn default() -> Self {
        Self { bucket_size: 2, max_iterations: 20, expansion: 1 }
    }
}

/// The stored fields of a filter, without its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CuckooFields {
    /// The number of fingerprints in all tables.
    pub items: u64,
    /// The number of buckets of the first table.
    pub buckets: u64,
    /// The number of fingerprints that were removed since the last compaction.
    pub deletes: u64,
    /// The number of tables.
    pub tables: u64,
    /// The parameters of the filter.
    pub settings: Settings,
}

/// A cuckoo filter of one table or more.
#[derive(Debug)]
pub struct Cuckoo {
    tables: Vec<Table>,
    buckets: u64,
    items: u64,
    deletes: u64,
    settings: Settings,
    /// See [`work`](Self::work). Not saved.
    work: u64,
}

/// The number of tables whose look-ups are not counted as work.
const FEW_TABLES: u64 = 32;

impl Cuckoo {
    /// An empty filter for about `capacity` keys.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if the settings are out of their ranges, the capacity is 0 or too large, or there is not
    /// enough memory.
    pub fn new(capacity: u64, settings: Settings) -> Result<Self, Invalid> {
        let buckets = (capacity / u64::from(settings.bucket_size.max(1))).max(1);
        let buckets = buckets.checked_next_power_of_two().ok_or(Invalid::Field("capacity"))?;
        let fields = CuckooFields { items: 0, buckets, deletes: 0, tables: 1, settings };
        Self::of(fields, |_, len| Slots::empty(len))
    }

    /// The only validator: the filter with these fields. `table` returns the bytes of a table by number and
    /// length.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if a field is out of its range, or `table` fails or returns the wrong number of bytes.
    pub fn of(
        fields: CuckooFields,
        mut table: impl FnMut(usize, usize) -> Result<Slots, Invalid>,
    ) -> Result<Self, Invalid> {
        let lengths = lengths(&fields)?;
        let mut tables = Vec::new();
        tables.try_reserve_exact(lengths.len()).map_err(|_| Invalid::NoMemory)?;
        for (number, len) in lengths.into_iter().enumerate() {
            let slots = table(number, len)?;
            if slots.len() != len {
                return Err(Invalid::Length);
            }
            tables.push(Table::new(slots, fields.settings.bucket_size));
        }
        let CuckooFields { items, buckets, deletes, settings, .. } = fields;
        Ok(Self { tables, buckets, items, deletes, settings, work: 0 })
    }

    /// The fields in their stored form.
    #[must_use]
    pub fn fields(&self) -> CuckooFields {
        CuckooFields {
            items: self.items,
            buckets: self.buckets,
            deletes: self.deletes,
            tables: self.tables.len() as u64,
            settings: self.settings,
        }
    }

    /// The tables, the oldest first.
    #[must_use]
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    pub(crate) fn tables_mut(&mut self) -> &mut Vec<Table> {
        &mut self.tables
    }

    /// Whether it contains no fingerprint, whatever its fields say: the fields may come from a payload.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items == 0 && self.tables.iter().all(|table| table.items() == 0)
    }

    /// The size in `CF.INFO`: the slots, and RedisBloom's own records of them.
    #[must_use]
    pub fn reported_bytes(&self) -> u64 {
        const FILTER: u64 = 40;
        const TABLE: u64 = 16;
        self.tables.iter().map(|table| table.slots().len() as u64 + TABLE).sum::<u64>() + FILTER
    }

    /// The place of a key in a table of any size.
    #[inline]
    #[must_use]
    pub fn place(&self, key: &[u8]) -> Place {
        Place::of(murmur64a(key, 0))
    }

    /// Whether the key may have been added. `false` is guaranteed: the key was not added.
    #[inline]
    #[must_use]
    pub fn contains(&self, place: Place) -> bool {
        self.tables.iter().rev().any(|table| table.contains(place))
    }

    /// An upper bound of how often the key was added: other keys may count with it.
    #[must_use]
    pub fn count(&self, place: Place) -> u64 {
        self.tables.iter().map(|table| table.count(place)).sum()
    }

    /// Adds a key, even if it is already present.
    ///
    /// # Errors
    ///
    /// [`Refused`] if there is no room and the filter does not grow, or cannot, or already has `max_tables`.
    /// The filter is then unchanged.
    pub fn add(&mut self, place: Place, max_tables: usize) -> Result<(), Refused> {
        self.count_look_up();
        let found = self.tables.iter_mut().rev().any(|table| table.put(place));
        if !found && !self.make_way(place) {
            self.grow(max_tables)?;
            if !self.tables.last_mut().is_some_and(|table| table.put(place)) {
                return Err(Refused::Full);
            }
        }
        self.items = self.items.saturating_add(1);
        Ok(())
    }

    /// Counts a look-up as work: reading four of many tables takes as long as moving a fingerprint.
    pub fn count_look_up(&mut self) {
        let many = (self.tables.len() as u64).saturating_sub(FEW_TABLES) / 4;
        self.work = self.work.saturating_add(many);
    }

    /// Moves fingerprints of the newest table until this one has a slot. If that fails, all moves are undone.
    fn make_way(&mut self, place: Place) -> bool {
        let Settings { bucket_size, max_iterations, .. } = self.settings;
        let Some(table) = self.tables.last_mut() else { return false };
        let (done, moved) = table.kick(place, max_iterations);
        // Every move searches a free slot, and large buckets take longer.
        self.work = self.work.saturating_add(moved * u64::from(bucket_size).div_ceil(64));
        done
    }

    /// The work of the keys that were added since the filter was created or read, as a number of moved
    /// fingerprints.
    #[must_use]
    pub const fn work(&self) -> u64 {
        self.work
    }

    fn grow(&mut self, max_tables: usize) -> Result<(), Refused> {
        if self.settings.expansion == 0 {
            return Err(Refused::Full);
        }
        if self.tables.len() >= max_tables {
            return Err(Refused::MaxExpansions);
        }
        let last = self.tables.last().map_or(0, |table| table.slots().len());
        let len = (last as u64).saturating_mul(u64::from(self.settings.expansion));
        if len == 0 || len > MAX_BYTES {
            return Err(Refused::NoMemory);
        }
        self.tables.try_reserve(1).map_err(|_| Refused::NoMemory)?;
        let slots = Slots::empty(len as usize).map_err(|_| Refused::NoMemory)?;
        self.tables.push(Table::new(slots, self.settings.bucket_size));
        Ok(())
    }

    /// Removes one copy of a key; `false` if there is none.
    pub fn remove(&mut self, place: Place) -> bool {
        let removed = self.tables.iter_mut().rev().any(|table| table.take(place));
        if removed {
            self.items = self.items.saturating_sub(1);
            self.deletes = self.deletes.saturating_add(1);
            self.compact_if_worth_it();
        }
        removed
    }

    /// A copy, or `None` if there is not enough memory.
    #[must_use]
    pub fn try_clone(&self) -> Option<Self> {
        let copy = Self::of(self.fields(), |number, _| {
            let slots = crate::memory::copied(self.tables[number].slots());
            slots.map(Slots::Taken).ok_or(Invalid::NoMemory)
        });
        copy.ok()
    }
}

/// Batches.
impl Cuckoo {
    /// As [`contains`](Self::contains): `found[i]` is the answer for `places[i]`.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    pub fn contains_batch(&self, places: &[Place], found: &mut [bool]) {
        assert_eq!(places.len(), found.len(), "an answer for every key");
        self.fetch(&places[..places.len().min(AHEAD)]);
        for (number, place) in places.iter().enumerate() {
            if let Some(later) = places.get(number + AHEAD) {
                self.fetch(core::slice::from_ref(later));
            }
            found[number] = self.contains(*place);
        }
    }

    /// Prefetches the buckets of these keys, in tables that are not in a near cache.
    pub fn fetch(&self, places: &[Place]) {
        for table in self.tables.iter().filter(|table| table.slots().len() > NEAR) {
            places.iter().for_each(|place| table.fetch(*place));
        }
    }
}

/// The number of keys that are prefetched ahead.
pub const AHEAD: usize = 12;

/// Tables of up to this number of bytes are in a near cache.
const NEAR: usize = 128 << 10;

/// The bytes of every table, if the fields are within their ranges.
fn lengths(fields: &CuckooFields) -> Result<Vec<usize>, Invalid> {
    let Settings { bucket_size, max_iterations, expansion } = fields.settings;
    if bucket_size == 0 || bucket_size > 255 {
        return Err(Invalid::Field("bucket size"));
    }
    if max_iterations == 0 {
        return Err(Invalid::Field("max iterations"));
    }
    if !(expansion == 0 || expansion.is_power_of_two() && expansion <= 32_768) {
        return Err(Invalid::Field("expansion"));
    }
    if !fields.buckets.is_power_of_two() {
        return Err(Invalid::Field("number of buckets"));
    }
    let single = expansion == 0 && fields.tables > 1;
    if fields.tables == 0 || fields.tables > MAX_TABLES as u64 || single {
        return Err(Invalid::Field("number of tables"));
    }
    let first = fields.buckets.checked_mul(u64::from(bucket_size));
    let mut len = first.filter(|len| *len <= MAX_BYTES).ok_or(Invalid::Field("size"))?;
    let (mut lengths, mut sum) = (Vec::new(), 0_u64);
    for _ in 0..fields.tables {
        sum = sum.saturating_add(len);
        if sum > MAX_BYTES {
            return Err(Invalid::Field("size"));
        }
        lengths.push(len as usize);
        len = len.saturating_mul(u64::from(expansion));
    }
    if !crate::memory::can_take(sum) {
        return Err(Invalid::NoMemory);
    }
    Ok(lengths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn key(number: u32) -> Vec<u8> {
        format!("key:{number}").into_bytes()
    }

    #[test]
    fn sizes_are_those_of_redisbloom() {
        let small = Cuckoo::new(1_024, Settings::default()).unwrap();
        assert_eq!((small.fields().buckets, small.reported_bytes()), (512, 1_080));
        // REDIS.md: MEMORY USAGE 2,097,256 with two tables, of which 24 to 40 are the key.
        let mut filter = Cuckoo::new(1_000_000, Settings::default()).unwrap();
        for number in 0..1_000_000 {
            filter.add(filter.place(&key(number)), 32).unwrap();
        }
        assert_eq!(filter.tables().len(), 2);
        let rest = 2_097_256 - filter.reported_bytes();
        assert!((24..=40).contains(&rest), "{rest}");
        assert!((0..1_000_000).all(|number| filter.contains(filter.place(&key(number)))));
    }

    #[test]
    fn a_key_whose_two_buckets_are_one_counts_twice() {
        let mut filter =
            Cuckoo::new(8, Settings { bucket_size: 4, ..Settings::default() }).unwrap();
        assert_eq!(filter.fields().buckets, 2);
        let mut counts = Vec::new();
        for number in 0..2 {
            let place = filter.place(&key(number));
            filter.add(place, 1).unwrap();
            counts.push(filter.count(place));
            assert!(filter.remove(place));
        }
        counts.sort_unstable();
        assert_eq!(
            counts,
            [1, 2],
            "one of these keys has an even fingerprint, the other an odd one"
        );
    }

    #[test]
    fn a_filter_follows_a_multiset() {
        for (bucket_size, expansion) in [(1, 1), (2, 1), (2, 2), (4, 4), (255, 2)] {
            let settings = Settings { bucket_size, max_iterations: 20, expansion };
            let mut filter = Cuckoo::new(64, settings).unwrap();
            let (mut model, mut state) = (HashMap::<u32, u64>::new(), 7_u64);
            for _ in 0..20_000 {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                let number = (state >> 33) as u32 % 900;
                let place = filter.place(&key(number));
                let count = model.entry(number).or_default();
                if state >> 60 < 9 {
                    filter.add(place, MAX_TABLES).unwrap();
                    *count += 1;
                } else if *count > 0 {
                    assert!(filter.remove(place));
                    *count -= 1;
                }
            }
            let items: u64 = model.values().sum();
            assert_eq!(filter.fields().items, items);
            let stored: usize = filter
                .tables()
                .iter()
                .map(|table| table.slots().iter().filter(|f| **f > 0).count())
                .sum();
            assert_eq!(stored as u64, items);
            for (number, count) in model {
                assert!(filter.count(filter.place(&key(number))) >= count, "{number}");
            }
        }
    }

    #[test]
    fn a_full_filter_that_does_not_grow_loses_nothing() {
        let settings = Settings { expansion: 0, ..Settings::default() };
        let mut filter = Cuckoo::new(256, settings).unwrap();
        let mut added = 0;
        let refused = loop {
            let before = filter.try_clone().unwrap();
            let place = filter.place(&key(added));
            if let Err(refused) = filter.add(place, 32) {
                assert_eq!(filter.tables()[0].slots(), before.tables()[0].slots());
                break refused;
            }
            added += 1;
        };
        assert_eq!(refused, Refused::Full);
        assert!(added > 128 && filter.fields().items == u64::from(added));
        assert!((0..added).all(|number| filter.contains(filter.place(&key(number)))));
        let mut bounded = Cuckoo::new(4, Settings::default()).unwrap();
        let refused = (0..100).find_map(|number| bounded.add(bounded.place(&key(number)), 3).err());
        assert_eq!((refused, bounded.tables().len()), (Some(Refused::MaxExpansions), 3));
    }

    #[test]
    fn fields_out_of_range_are_refused() {
        let good = Cuckoo::new(64, Settings::default()).unwrap().fields();
        let of = |fields| Cuckoo::of(fields, |_, len| Slots::empty(len)).map(|_| ());
        assert_eq!(of(good), Ok(()));
        let with = |change: fn(&mut CuckooFields)| {
            let mut fields = good;
            change(&mut fields);
            of(fields).unwrap_err()
        };
        assert_eq!(with(|f| f.settings.bucket_size = 0), Invalid::Field("bucket size"));
        assert_eq!(with(|f| f.settings.bucket_size = 256), Invalid::Field("bucket size"));
        assert_eq!(with(|f| f.settings.max_iterations = 0), Invalid::Field("max iterations"));
        assert_eq!(with(|f| f.settings.expansion = 3), Invalid::Field("expansion"));
        assert_eq!(with(|f| f.buckets = 0), Invalid::Field("number of buckets"));
        assert_eq!(with(|f| f.buckets = 3), Invalid::Field("number of buckets"));
        assert_eq!(with(|f| f.buckets = 1 << 63), Invalid::Field("size"));
        assert_eq!(with(|f| f.tables = 0), Invalid::Field("number of tables"));
        assert_eq!(with(|f| f.tables = u64::MAX), Invalid::Field("number of tables"));
        assert_eq!(
            with(|f| (f.tables, f.settings.expansion) = (60_000, 2)),
            Invalid::Field("size")
        );
        let short = Cuckoo::of(good, |_, len| Slots::empty(len - 1));
        assert_eq!(short.map(|_| ()), Err(Invalid::Length));
        assert!(Cuckoo::new(u64::MAX, Settings::default()).is_err());
    }

    #[test]
    fn batches_answer_as_single_calls_do() {
        let mut filter = Cuckoo::new(200_000, Settings::default()).unwrap();
        for number in 0..300_000 {
            filter.add(filter.place(&key(number)), 32).unwrap();
        }
        let places: Vec<_> = (290_000..310_000).map(|number| filter.place(&key(number))).collect();
        for len in [0, 1, AHEAD, AHEAD + 1, places.len()] {
            let mut found = vec![false; len];
            filter.contains_batch(&places[..len], &mut found);
            let single: Vec<_> =
                places[..len].iter().map(|place| filter.contains(*place)).collect();
            assert_eq!(found, single);
        }
    }
}
