//! Dumps of a cuckoo filter. `CF.SCANDUMP` returns them and `CF.LOADCHUNK` accepts them.
//!
//! ```text
//! header  u64 items, u64 buckets, u64 deletes, u64 tables,
//!         u16 bucket size, u16 max iterations, u16 expansion      38 bytes
//! chunk   up to 16 MiB of one table; its number is one more than the bytes up to its end
//! ```

use super::{Cuckoo, CuckooFields, Settings, Slots, Table, lengths};
use crate::chunks;
use crate::error::Invalid;

/// The bytes of a header.
pub const HEADER: usize = 38;

impl Cuckoo {
    /// The header of the dump.
    #[must_use]
    pub fn header(&self) -> [u8; HEADER] {
        let CuckooFields { items, buckets, deletes, tables, settings } = self.fields();
        let mut header = [0; HEADER];
        let (words, rest) = header.split_at_mut(32);
        for (place, word) in
            words.as_chunks_mut().0.iter_mut().zip([items, buckets, deletes, tables])
        {
            *place = word.to_le_bytes();
        }
        let shorts = [settings.bucket_size, settings.max_iterations, settings.expansion];
        for (place, short) in rest.as_chunks_mut().0.iter_mut().zip(shorts) {
            *place = short.to_le_bytes();
        }
        header
    }

    /// The filter of this header, empty. The chunks contain the fingerprints.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if this is not a header, or there is not enough memory for what it announces.
    pub fn of_header(header: &[u8]) -> Result<Self, Invalid> {
        Self::of(fields(header)?, |_, len| Slots::empty(len))
    }

    /// The bytes of the tables that a header announces.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if this is not a header.
    pub fn bytes_of_header(header: &[u8]) -> Result<u64, Invalid> {
        let lengths = lengths(&fields(header)?)?;
        Ok(lengths.into_iter().fold(0, |bytes, len| bytes.saturating_add(len as u64)))
    }

    /// The chunk after this number, with its own number. `None` at the end, or if there is no such position.
    ///
    /// As with RedisBloom, a number inside a table that fits into one chunk returns the whole table.
    #[must_use]
    pub fn chunk(&self, after: u64) -> Option<(u64, &[u8])> {
        let mut start = 0;
        for slots in self.tables.iter().map(Table::slots) {
            let end = start + slots.len() as u64;
            if (start..end).contains(&after.checked_sub(1)?) && slots.len() <= chunks::MAX_CHUNK {
                return Some((after.checked_add(slots.len() as u64)?, slots));
            }
            start = end;
        }
        chunks::after(self.tables.iter().map(Table::slots), after)
    }

    /// The number in the last table that RedisBloom uses in place of one that is past the end by less than that
    /// table.
    #[must_use]
    pub fn past_the_end(&self, number: u64) -> Option<u64> {
        let all = self.tables.iter().map(|table| table.slots().len() as u64).sum::<u64>();
        let last = self.tables.last().map_or(0, |table| table.slots().len() as u64);
        (number > all + 1 && number - all <= last + 1).then(|| number - last)
    }

    /// Stores a chunk at the position that its number gives.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if there is no table at this position, or the chunk is longer than the rest of it. The
    /// filter is then unchanged.
    pub fn load_chunk(&mut self, number: u64, chunk: &[u8]) -> Result<(), Invalid> {
        let lengths = self.tables.iter().map(|table| table.slots().len());
        let (table, start) = chunks::place(lengths, number, chunk.len())?;
        self.tables[table].load(start, chunk);
        Ok(())
    }
}

/// The fields in a header, unchecked.
fn fields(header: &[u8]) -> Result<CuckooFields, Invalid> {
    let header: &[u8; HEADER] = header.try_into().map_err(|_| Invalid::Length)?;
    let (words, shorts) = header.split_at(32);
    let word = |at: usize| u64::from_le_bytes(words.as_chunks().0[at]);
    let short = |at: usize| u16::from_le_bytes(shorts.as_chunks().0[at]);
    let settings =
        Settings { bucket_size: short(0), max_iterations: short(1), expansion: short(2) };
    Ok(CuckooFields {
        items: word(0),
        buckets: word(1),
        deletes: word(2),
        tables: word(3),
        settings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter() -> Cuckoo {
        let mut filter =
            Cuckoo::new(200, Settings { expansion: 2, ..Settings::default() }).unwrap();
        for key in 0..2_000_u32 {
            filter.add(filter.place(&key.to_le_bytes()), 32).unwrap();
        }
        filter
    }

    #[test]
    fn a_dump_moves_a_filter() {
        let filter = filter();
        let mut copy = Cuckoo::of_header(&filter.header()).unwrap();
        let mut number = 1;
        while let Some((next, chunk)) = filter.chunk(number) {
            copy.load_chunk(next, chunk).unwrap();
            number = next;
        }
        assert_eq!(copy.header(), filter.header());
        for (one, other) in copy.tables().iter().zip(filter.tables()) {
            assert_eq!((one.slots(), one.items()), (other.slots(), other.items()));
        }
        assert_eq!(
            (filter.chunk(0), filter.chunk(number), filter.chunk(u64::MAX)),
            (None, None, None)
        );
    }

    #[test]
    fn a_filter_whose_header_denies_its_items_is_not_empty() {
        let filter = filter();
        let mut header = filter.header();
        header[..8].fill(0);
        let mut copy = Cuckoo::of_header(&header).unwrap();
        assert!(copy.is_empty());
        let (number, chunk) = filter.chunk(1).unwrap();
        copy.load_chunk(number, chunk).unwrap();
        assert!(!copy.is_empty() && copy.fields().items == 0);
    }

    #[test]
    fn the_header_has_the_bytes_that_are_written_down() {
        let header = Cuckoo::new(1_024, Settings::default()).unwrap().header();
        let words = [0_u64, 512, 0, 1].map(u64::to_le_bytes).concat();
        let shorts = [2_u16, 20, 1].map(u16::to_le_bytes).concat();
        assert_eq!(header[..], [words, shorts].concat());
        for len in (0..HEADER).chain([HEADER + 1]) {
            assert_eq!(Cuckoo::of_header(&[1; 64][..len]).map(|_| ()), Err(Invalid::Length));
        }
    }

    #[test]
    fn a_number_past_the_end_stands_for_one_in_the_last_table() {
        let mut filter = filter();
        let all = filter.tables().iter().map(|table| table.slots().len() as u64).sum::<u64>();
        let last = filter.tables().last().unwrap().slots().len() as u64;
        assert_eq!(filter.past_the_end(all + 1), None);
        assert_eq!(filter.past_the_end(all + 5), Some(all - last + 5));
        assert_eq!(filter.past_the_end(all + last + 1), Some(all + 1));
        assert_eq!(filter.past_the_end(all + last + 2), None);
        assert_eq!(filter.past_the_end(u64::MAX), None);
        let number = filter.past_the_end(all + 5).unwrap();
        filter.load_chunk(number, &[1, 2, 3, 4]).unwrap();
        assert_eq!(filter.tables().last().unwrap().slots()[..4], [1, 2, 3, 4]);
    }

    #[test]
    fn chunks_for_places_that_are_not_there_change_nothing() {
        let mut filter = filter();
        let before: Vec<_> = filter.tables().iter().map(|table| table.slots().to_vec()).collect();
        let end = 1 + before.iter().map(|slots| slots.len() as u64).sum::<u64>();
        for (number, len) in [(0, 1), (1, 1), (end + 1, 1), (u64::MAX, 1), (5, 5)] {
            assert_eq!(filter.load_chunk(number, &vec![9; len]), Err(Invalid::Offset));
        }
        assert_eq!(filter.load_chunk(end + 1, &[9; 2]), Err(Invalid::Chunk));
        assert!(before.iter().zip(filter.tables()).all(|(slots, table)| slots == table.slots()));
    }
}
