//! What is known at the end of the input only: how often each key came, and which record of it was the last one.

use super::limit;
use super::seen::Limit;
use super::stream::{Sink, Totals};
use crate::amount::{show_bytes, show_count, show_things};
use crate::cli::Dedup;
use crate::exact::{Exact, Hashing};
use crate::reading::{Batch, Reader};
use anyhow::{Result, bail};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Bytes of records that are kept together: a small share of the memory, and at most this.
const BLOCK: u64 = 1 << 20;
/// What an entry of the map takes: a digest, a number, and a byte of the map, eight of which are used at most out of seven.
const IN_MAP: u64 = 33;

/// A hasher for what is one already.
#[derive(Default)]
struct Taken(u64);

impl Hasher for Taken {
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are of 128 bits")
    }

    fn write_u128(&mut self, number: u128) {
        self.0 = number as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A record that is kept, and how often its key came.
#[derive(Clone, Copy)]
struct Kept {
    block: u32,
    at: u32,
    length: u64,
    /// 0 if a later record of the same key has taken its place.
    count: u64,
}

/// All records that may be printed.
pub(super) struct Gather {
    hashing: Hashing,
    map: HashMap<u128, u32, BuildHasherDefault<Taken>>,
    kept: Vec<Kept>,
    blocks: Vec<Vec<u8>>,
    /// The bytes of all blocks, and those of records that are not kept any more.
    bytes: u64,
    gone: u64,
    last: bool,
    /// The length of a block, unless a record is longer.
    block: usize,
    limit: u64,
    memory: u64,
    header: Vec<u8>,
    keys: Vec<u128>,
    pub(super) totals: Totals,
}

impl Gather {
    pub(super) fn new(args: &Dedup) -> Self {
        let limit = Limit::of(args, 1);
        let block = (limit.memory() / 32).clamp(1 << 10, BLOCK) as usize;
        Self {
            hashing: Exact::new(crate::secret::fresh(), 0).hashing(),
            map: HashMap::default(),
            kept: Vec::new(),
            blocks: Vec::new(),
            bytes: 0,
            gone: 0,
            last: args.keep_last,
            block,
            limit: limit::for_keys(limit.memory()),
            memory: limit.memory(),
            header: Vec::new(),
            keys: Vec::new(),
            totals: Totals::default(),
        }
    }

    /// The memory that it takes.
    pub(super) fn memory(&self) -> u64 {
        // Four bytes for each while records are moved together.
        let kept = self.kept.capacity() * (size_of::<Kept>() + 4);
        self.bytes + kept as u64 + slots(self.map.capacity()) * IN_MAP
    }

    /// Makes sure that there is room for another record of this length, and for what has to be there while lists grow.
    fn reserve(&mut self, length: usize) -> Result<()> {
        let mut more = 0;
        // Where a record begins in its block is a number of 32 bits.
        let grows = self.blocks.last().is_none_or(|block| {
            block.capacity() - block.len() < length || u32::try_from(block.len()).is_err()
        });
        if grows {
            more += self.block.max(length) as u64;
        }
        let next = self.kept.capacity().max(128) * 2;
        let longer = self.kept.len() == self.kept.capacity();
        if longer {
            more += (next * size_of::<Kept>()) as u64;
        }
        let larger = self.map.len() == self.map.capacity();
        if larger {
            more += slots(next) * IN_MAP;
        }
        if self.memory() + more > self.limit {
            bail!(self.full("all of the memory limit"));
        }
        let mut reserved = true;
        if longer {
            reserved &= self.kept.try_reserve_exact(next - self.kept.len()).is_ok();
        }
        if larger {
            reserved &= self.map.try_reserve(next / 8 * 7 - self.map.len()).is_ok();
        }
        if grows {
            let mut block = Vec::new();
            reserved &= block.try_reserve_exact(self.block.max(length)).is_ok();
            self.bytes += block.capacity() as u64;
            reserved &= self.blocks.try_reserve(1).is_ok();
            self.blocks.push(block);
        }
        if !reserved || self.kept.len() >= u32::MAX as usize {
            bail!(self.full("all memory that the system has to give, below the limit"));
        }
        Ok(())
    }

    fn full(&self, what: &str) -> String {
        format!(
            "record {}: {} and their keys have taken {what} of {}, and these lines are printed at the end of the input only; \
             use a larger --memory",
            show_count(self.totals.records + 1),
            show_things(self.map.len() as u64, "different line"),
            show_bytes(self.memory)
        )
    }

    fn keep(&mut self, record: &[u8], count: u64) -> Result<u32> {
        self.reserve(record.len())?;
        let Some(block) = self.blocks.last_mut() else { bail!("there is a block") };
        let at = block.len() as u32;
        block.extend_from_slice(record);
        let (block, length) = (self.blocks.len() as u32 - 1, record.len() as u64);
        self.kept.push(Kept { block, at, length, count });
        Ok(self.kept.len() as u32 - 1)
    }

    fn bytes_of(&self, kept: &Kept) -> &[u8] {
        &self.blocks[kept.block as usize][kept.at as usize..][..kept.length as usize]
    }

    fn add(&mut self, key: u128, record: &[u8]) -> Result<()> {
        match self.map.get(&key).copied() {
            None => {
                let number = self.keep(record, 1)?;
                self.totals.new += 1;
                self.map.insert(key, number);
            }
            Some(number) if self.last => {
                let before = &mut self.kept[number as usize];
                let count = std::mem::take(&mut before.count) + 1;
                self.gone += before.length + size_of::<Kept>() as u64;
                self.totals.repeated_bytes += before.length;
                let number = self.keep(record, count)?;
                self.map.insert(key, number);
                if self.gone > self.memory() / 2 && self.gone > 2 * self.block as u64 {
                    self.compact();
                }
            }
            Some(number) => {
                self.kept[number as usize].count += 1;
                self.totals.repeated_bytes += record.len() as u64;
            }
        }
        Ok(())
    }

    /// Moves the records that are kept together, block by block: they are in the order of the blocks.
    fn compact(&mut self) {
        let (mut to_block, mut to_at) = (0, 0);
        let mut numbers = vec![0_u32; self.kept.len()];
        let mut left = 0;
        for (number, moved_to) in numbers.iter_mut().enumerate() {
            let kept = self.kept[number];
            if kept.count == 0 {
                continue;
            }
            let length = kept.length as usize;
            while self.blocks[to_block].len() < to_at + length && to_block < kept.block as usize {
                self.blocks[to_block].truncate(to_at);
                (to_block, to_at) = (to_block + 1, 0);
            }
            let from = kept.at as usize;
            if to_block == kept.block as usize {
                self.blocks[to_block].copy_within(from..from + length, to_at);
            } else {
                let (before, after) = self.blocks.split_at_mut(kept.block as usize);
                before[to_block][to_at..to_at + length]
                    .copy_from_slice(&after[0][from..from + length]);
            }
            self.kept[left] = Kept { block: to_block as u32, at: to_at as u32, ..kept };
            *moved_to = left as u32;
            to_at += length;
            left += 1;
        }
        self.kept.truncate(left);
        self.blocks.truncate(to_block + 1);
        self.blocks[to_block].truncate(to_at);
        self.bytes = self.blocks.iter().map(|block| block.capacity() as u64).sum();
        self.map.values_mut().for_each(|number| *number = numbers[*number as usize]);
        self.gone = 0;
    }

    /// Prints what is wanted, in the order of the records.
    pub(super) fn print(&mut self, args: &Dedup, output: &mut dyn Sink) -> Result<()> {
        if !args.total && !self.header.is_empty() {
            output.write(&self.header)?;
        }
        let mut line = Vec::new();
        for kept in &self.kept {
            let wanted = match (args.unique, args.repeated) {
                (true, _) => kept.count == 1,
                (_, true) => kept.count > 1,
                _ => kept.count > 0,
            };
            if !wanted {
                continue;
            }
            self.totals.printed += 1;
            if args.total {
                continue;
            }
            let record = self.bytes_of(kept);
            if args.count {
                // As uniq prints it.
                line.clear();
                line.extend_from_slice(format!("{:7} ", kept.count).as_bytes());
                line.extend_from_slice(record);
                output.write(&line)?;
            } else {
                output.write(record)?;
            }
        }
        Ok(())
    }
}

impl Reader for Gather {
    fn header(&mut self, record: &[u8]) -> Result<()> {
        self.header = record.to_vec();
        Ok(())
    }

    fn batch(&mut self, batch: &Batch<'_>) -> Result<bool> {
        let mut keys = std::mem::take(&mut self.keys);
        keys.clear();
        let hashing = self.hashing;
        batch.for_keys(|key| keys.push(hashing.digest(key)));
        for (number, key) in keys.iter().enumerate() {
            let record = batch.record(number);
            self.add(*key, record)?;
            self.totals.records += 1;
            self.totals.bytes += record.len() as u64;
        }
        self.keys = keys;
        Ok(true)
    }
}

/// How many slots a map has that takes so many entries.
fn slots(capacity: usize) -> u64 {
    (capacity as u64 * 8 / 7).next_power_of_two()
}
