//! A set of digests that grows by one segment at a time, and says when there is no room for another.
//!
//! ```text
//!     directory, by the first bits of a digest      segments of 4,096 digests each
//!     00 01 10 11                                   00..  [ d . d d . ]
//!      |  |   \ /                                   01..  [ . d . . d ]
//!      0  1    2                                    1...  [ d d . d . ]
//! ```
//!
//! A table that doubles needs its old and its new memory at the same time. Here a segment that is three quarters full splits in two,
//! and the directory doubles only when a segment has all of its bits (extendible hashing: Fagin and others, 1979). So memory
//! grows in steps of 64 KiB, and every segment has the same size, which leaves no holes in the heap.

use umbel::internal::prefetch_far;

/// Cache lines of a segment, and how many of its digests may be taken.
const LINES: usize = 1024;
const FULL: usize = LINES * 4 / 4 * 3;
/// The memory of a segment, and what the allocator adds to it.
const SEGMENT: u64 = LINES as u64 * 64 + 64;

/// Digests whose lines are asked for together, as many as a word has bits. To ask for one line at each insertion is slower.
const AHEAD: usize = 64;

/// Digests of one cache line. Zero is no digest.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u128; 4]);

/// Why a digest could not be inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// The limit does not allow another segment.
    Limit,
    /// The allocator refused.
    Memory,
}

struct Segment {
    lines: Box<[Line; LINES]>,
    used: usize,
    /// How many first bits all of its digests have in common.
    depth: u32,
}

/// The set.
pub(crate) struct Table {
    directory: Vec<u32>,
    /// The directory has an entry for each value of so many first bits.
    depth: u32,
    segments: Vec<Segment>,
    /// The lines of the last segment that was split, for the next one: an allocator may not find a use for a hole of its size.
    spare: Option<Box<[Line; LINES]>>,
    len: u64,
    limit: u64,
}

impl Table {
    /// An empty set that takes at most `limit` bytes. It takes none yet.
    pub(crate) const fn new(limit: u64) -> Self {
        Self { directory: Vec::new(), depth: 0, segments: Vec::new(), spare: None, len: 0, limit }
    }

    pub(crate) const fn len(&self) -> u64 {
        self.len
    }

    /// The memory it takes.
    pub(crate) fn bytes(&self) -> u64 {
        let segments = self.segments.len() as u64 + u64::from(self.spare.is_some());
        segments * SEGMENT + 4 * self.directory.capacity() as u64
    }

    /// All digests, in any order.
    pub(crate) fn digests(&self) -> impl Iterator<Item = u128> {
        let lines = self.segments.iter().flat_map(|segment| segment.lines.iter());
        lines.flat_map(|line| line.0).filter(|slot| *slot != 0)
    }

    /// Inserts digests and tells which of them were not there, up to the first one that there is no room for.
    pub(crate) fn insert_each(
        &mut self,
        digests: &[u128],
        fresh: &mut [bool],
    ) -> Result<(), (usize, NoRoom)> {
        // While some are inserted, the lines of the next ones are on their way.
        self.ask_for(&digests[..digests.len().min(AHEAD)]);
        let next = digests.chunks(AHEAD).skip(1).chain([&[][..]]);
        let mut done = 0;
        for ((some, next), fresh) in digests.chunks(AHEAD).zip(next).zip(fresh.chunks_mut(AHEAD)) {
            self.ask_for(next);
            self.touch(some);
            for (digest, fresh) in some.iter().zip(fresh) {
                *fresh = self.insert(*digest).map_err(|no_room| (done, no_room))?;
                done += 1;
            }
        }
        Ok(())
    }

    /// Asks for the line of each digest.
    fn ask_for(&self, digests: &[u128]) {
        if self.segments.is_empty() {
            return;
        }
        for digest in digests {
            let segment = &self.segments[self.directory[self.entry(*digest)] as usize];
            prefetch_far(&segment.lines[..], line(*digest));
        }
    }

    /// Reads the line of each digest, and the next one of those that are full, so that all of them wait for memory at the same time,
    /// and not one after the other.
    fn touch(&self, digests: &[u128]) {
        if self.segments.is_empty() {
            return;
        }
        let mut full = 0_u64;
        for (number, digest) in digests.iter().take(AHEAD).enumerate() {
            full |= u64::from(self.line(*digest, 0).0[3] != 0) << number;
        }
        let mut sum = 0;
        while full != 0 {
            sum ^= self.line(digests[full.trailing_zeros() as usize], 1).0[0] as u64;
            full &= full - 1;
        }
        std::hint::black_box(sum);
    }

    /// The line of a digest, or one behind it.
    #[inline(always)]
    fn line(&self, digest: u128, behind: usize) -> &Line {
        let segment = &self.segments[self.directory[self.entry(digest)] as usize];
        &segment.lines[(line(digest) + behind) % LINES]
    }

    /// Whether a digest was not there. It is inserted unless there is no room for it, and then nothing has changed.
    #[inline]
    pub(crate) fn insert(&mut self, digest: u128) -> Result<bool, NoRoom> {
        // 0 marks a free slot. That 0 and 1 are one and the same is as rare as any two keys being.
        let digest = digest.max(1);
        loop {
            if let Some(number) = self.directory.get(self.entry(digest)) {
                let segment = &mut self.segments[*number as usize];
                let Some((at, slot)) = segment.free_for(digest) else { return Ok(false) };
                if segment.used < FULL {
                    segment.lines[at].0[slot] = digest;
                    segment.used += 1;
                    self.len += 1;
                    return Ok(true);
                }
            }
            self.make_room(digest)?;
        }
    }

    /// Begins the first segment, or splits the one that a digest belongs to.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, digest: u128) -> Result<(), NoRoom> {
        match self.directory.get(self.entry(digest)) {
            None => self.begin(),
            Some(number) => self.split(*number as usize),
        }
    }

    /// The entry of the directory for a digest. Two shifts, because one by 64 is none.
    #[inline(always)]
    fn entry(&self, digest: u128) -> usize {
        ((digest >> 64) as u64 >> 1 >> (63 - self.depth)) as usize
    }

    fn begin(&mut self) -> Result<(), NoRoom> {
        self.directory.try_reserve_exact(1).map_err(|_| NoRoom::Memory)?;
        let segment = self.another(0, 1)?;
        self.segments.push(segment);
        self.directory.push(0);
        Ok(())
    }

    /// An empty segment, and room for it in the list, if there is room for so many.
    fn another(&mut self, depth: u32, segments: u64) -> Result<Segment, NoRoom> {
        if self.bytes() + segments * SEGMENT > self.limit {
            return Err(NoRoom::Limit);
        }
        self.segments.try_reserve(1).map_err(|_| NoRoom::Memory)?;
        Ok(Segment { lines: empty()?, used: 0, depth })
    }

    /// Moves the digests of a full segment whose next bit is 1 to a new one.
    fn split(&mut self, number: usize) -> Result<(), NoRoom> {
        let depth = self.segments[number].depth + 1;
        if depth > self.depth {
            self.double()?;
        }
        // The first split makes the spare one, too.
        let segments = if self.spare.is_some() { 1 } else { 2 };
        let mut moved = self.another(depth, segments)?;
        let mut kept = match self.spare.take() {
            Some(mut lines) => {
                lines.fill(Line([0; 4]));
                lines
            }
            None => empty()?,
        };
        let segment = &mut self.segments[number];
        std::mem::swap(&mut segment.lines, &mut kept);
        (segment.used, segment.depth) = (0, depth);
        let mut some = 0;
        for digest in kept.iter().flat_map(|line| line.0).filter(|digest| *digest != 0) {
            some = digest;
            let half = if digest << (depth - 1) >> 127 == 0 { &mut *segment } else { &mut moved };
            half.put(digest);
        }
        // The entries of a segment are side by side; the second half of them leads to the new one.
        let share = 1 << (self.depth - depth);
        let first = self.entry(some) / (2 * share) * (2 * share);
        self.directory[first + share..first + 2 * share].fill(self.segments.len() as u32);
        self.segments.push(moved);
        self.spare = Some(kept);
        Ok(())
    }

    fn double(&mut self) -> Result<(), NoRoom> {
        let before = self.directory.len();
        if self.bytes() + 8 * before as u64 > self.limit {
            return Err(NoRoom::Limit);
        }
        self.directory.try_reserve_exact(before).map_err(|_| NoRoom::Memory)?;
        self.directory.resize(2 * before, 0);
        for entry in (0..before).rev() {
            let number = self.directory[entry];
            self.directory[2 * entry..2 * entry + 2].fill(number);
        }
        self.depth += 1;
        Ok(())
    }
}

impl Segment {
    /// The free slot where a digest would be, unless it is there: in its line, or in the next one that has a free slot.
    #[inline(always)]
    fn free_for(&self, digest: u128) -> Option<(usize, usize)> {
        let mut at = line(digest);
        loop {
            for slot in 0..4 {
                match self.lines[at].0[slot] {
                    0 => return Some((at, slot)),
                    found if found == digest => return None,
                    _ => {}
                }
            }
            at = (at + 1) % LINES;
        }
    }

    /// Inserts a digest that is not there.
    fn put(&mut self, digest: u128) {
        if let Some((at, slot)) = self.free_for(digest) {
            self.lines[at].0[slot] = digest;
            self.used += 1;
        }
    }
}

/// The line of a digest in its segment.
#[inline(always)]
const fn line(digest: u128) -> usize {
    digest as usize % LINES
}

fn empty() -> Result<Box<[Line; LINES]>, NoRoom> {
    let mut lines = Vec::new();
    lines.try_reserve_exact(LINES).map_err(|_| NoRoom::Memory)?;
    lines.resize(LINES, Line([0; 4]));
    lines.into_boxed_slice().try_into().map_err(|_| NoRoom::Memory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Numbers that look random: SplitMix64, twice.
    fn digest(number: u64) -> u128 {
        let half = |number: u64| {
            let number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            number ^ (number >> 31)
        };
        u128::from(half(2 * number + 1)) << 64 | u128::from(half(2 * number + 2))
    }

    #[test]
    fn it_holds_what_a_set_holds() {
        let (mut table, mut set) = (Table::new(u64::MAX), HashSet::new());
        // A third of them came before.
        let before = |number| if number % 3 == 2 { number / 2 } else { number };
        let digests: Vec<u128> = (0..60_000).map(|number| digest(before(number))).collect();
        let mut rest = &digests[..];
        for length in (0..3_000).cycle().step_by(97) {
            let some;
            (some, rest) = rest.split_at(rest.len().min(length));
            let mut fresh = vec![false; some.len()];
            assert_eq!(table.insert_each(some, &mut fresh), Ok(()));
            let expected: Vec<bool> = some.iter().map(|digest| set.insert(*digest)).collect();
            assert_eq!(fresh, expected);
            if rest.is_empty() {
                break;
            }
        }
        assert_eq!(table.len(), set.len() as u64);
        assert_eq!(table.digests().collect::<HashSet<_>>(), set);
        assert!(table.segments.iter().all(|segment| segment.used <= FULL));
    }

    #[test]
    fn digests_that_begin_alike_are_told_apart() {
        let mut table = Table::new(u64::MAX);
        for number in 0..20_000_u128 {
            // The first 8 bits are the same, and the directory needs them all.
            let digest = 0xab << 120 | (number << 105) | number;
            assert_eq!((table.insert(digest), table.insert(digest)), (Ok(true), Ok(false)));
        }
        assert_eq!(table.len(), 20_000);
    }

    #[test]
    fn a_limit_is_kept_and_leaves_what_is_there() {
        let limit = 10 * SEGMENT;
        let mut table = Table::new(limit);
        let mut number = 0;
        while table.insert(digest(number)) == Ok(true) {
            assert!(table.bytes() <= limit);
            number += 1;
        }
        assert_eq!(table.insert(digest(number)), Err(NoRoom::Limit));
        let (some, mut fresh) = ([digest(0), digest(number), digest(1)], [true; 3]);
        assert_eq!(table.insert_each(&some, &mut fresh), Err((1, NoRoom::Limit)));
        assert_eq!(fresh, [false, true, true]);
        // At least the eight segments that are there together with a directory and a segment to be split.
        assert!(number > 8 * FULL as u64 / 2, "{number}");
        assert_eq!(table.len(), number);
        assert!((0..number).all(|number| table.insert(digest(number)) == Ok(false)));
        assert_eq!(Table::new(SEGMENT - 1).insert(1), Err(NoRoom::Limit));
    }

    #[test]
    fn the_first_split_is_within_the_limit_too() {
        // A directory of one entry takes four bytes.
        for limit in (4..5 * SEGMENT).step_by(4_000) {
            let mut table = Table::new(limit);
            let mut number = 0;
            while table.insert(digest(number)) == Ok(true) {
                number += 1;
            }
            assert!(table.bytes() <= limit, "{} of {limit}", table.bytes());
            assert_eq!(number > 0, limit > SEGMENT, "{limit}");
        }
    }

    #[test]
    fn zero_is_a_digest() {
        let mut table = Table::new(u64::MAX);
        assert_eq!((table.insert(0), table.insert(0)), (Ok(true), Ok(false)));
        assert_eq!(table.digests().count(), 1);
    }
}
