//! Sorts entries by their rows without comparisons: first into parts that fit into a cache, through
//! buffers of one cache line each, and later each part by counting.

use super::row::Gatherable;
use super::shape::{BUCKET, Tier};
use crate::frozen::Work;
use alloc::vec::Vec;

/// The minimum number of buckets of a part, and the maximum number of parts.
const LEAST_BUCKETS: u64 = 32;
const MOST_PARTS: u64 = 2048;

/// How many entries are written together.
const LINE: usize = 8;

/// Selects the sample: 2^64 divided by the square root of 2, odd.
const CHOICE: u64 = 0xb504_f333_f9de_6485;

/// The entries of a layer, in parts.
#[derive(Debug)]
pub(super) struct Parts<E> {
    tier: Tier,
    buckets_shift: u32,
    /// One slab per thread.
    slabs: Vec<Slab<E>>,
}

#[derive(Debug)]
struct Slab<E> {
    entries: Vec<E>,
    /// The start of each part, and the end of the last one.
    begins: Vec<usize>,
}

/// There is no memory for this many bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlabFull {
    pub(super) bytes: u64,
}

impl SlabFull {
    pub(super) fn of<E>(len: usize) -> Self {
        Self { bytes: len as u64 * size_of::<E>() as u64 }
    }
}

/// The number of buckets of a part: a power of two.
pub(super) const fn part_buckets(tier: &Tier) -> u64 {
    let mut buckets = LEAST_BUCKETS;
    while tier.buckets() / buckets > MOST_PARTS {
        buckets *= 2;
    }
    buckets
}

/// The maximum number of bytes that are needed to sort entries of this size into parts, besides the
/// entries before and after: for eight threads.
pub(super) const fn peak_bytes(tier: &Tier, entry: u64) -> u64 {
    let count = tier.buckets().div_ceil(part_buckets(tier));
    8 * (count + 1) * (LINE as u64 * entry + 2 * size_of::<usize>() as u64)
}

impl<E: Gatherable> Parts<E> {
    /// Sorts all entries of these pieces into parts. A piece is freed as soon as its entries are in
    /// their parts.
    pub(super) fn new(pieces: Vec<Vec<E>>, tier: Tier, work: &Work<'_>) -> Result<Self, SlabFull> {
        let buckets_shift = part_buckets(&tier).ilog2();
        let mut parts = Self { tier, buckets_shift, slabs: Vec::new() };
        let count = parts.count();
        let part = |entry: E| (tier.place(entry.hash()).bucket() >> buckets_shift) as usize;
        let slabs = each(work, split(pieces, threads(work)), |pieces| fill(pieces, count, part));
        parts.slabs = slabs.into_iter().collect::<Result<_, _>>()?;
        Ok(parts)
    }

    pub(super) const fn tier(&self) -> &Tier {
        &self.tier
    }

    /// The number of buckets of a part. The last part may have fewer.
    pub(super) const fn buckets(&self) -> u64 {
        1 << self.buckets_shift
    }

    /// The number of parts.
    pub(super) const fn count(&self) -> usize {
        self.tier.buckets().div_ceil(self.buckets()) as usize
    }

    /// The number of entries in these parts.
    pub(super) fn len(&self, parts: core::ops::Range<usize>) -> usize {
        self.slabs.iter().map(|slab| slab.begins[parts.end] - slab.begins[parts.start]).sum()
    }

    /// Sorts the entries of a part by their places into `sorted`. Returns their number.
    pub(super) fn sort(&self, part: usize, sorted: &mut Vec<E>, counts: &mut Vec<u32>) -> usize {
        let first = (part as u64 * self.buckets()) * BUCKET;
        let place = |entry: E| (self.tier.place(entry.hash()).0 - first) as usize;
        counts.clear();
        counts.resize((self.buckets() * BUCKET) as usize, 0);
        for &entry in self.part(part) {
            counts[place(entry)] += 1;
        }
        let mut len = 0;
        for count in counts.iter_mut() {
            (*count, len) = (len, len + *count);
        }
        if sorted.len() < len as usize {
            sorted.reserve_exact(len as usize - sorted.len());
            sorted.resize(len as usize, E::default());
        }
        for &entry in self.part(part) {
            let at = &mut counts[place(entry)];
            sorted[*at as usize] = entry;
            *at += 1;
        }
        len as usize
    }

    fn part(&self, part: usize) -> impl Iterator<Item = &E> {
        self.slabs
            .iter()
            .flat_map(move |slab| &slab.entries[slab.begins[part]..slab.begins[part + 1]])
    }

    /// All entries, in no particular order.
    pub(super) fn into_pieces(self) -> Vec<Vec<E>> {
        self.slabs.into_iter().map(|slab| slab.entries).collect()
    }
}

/// One slab of `count` parts.
fn fill<E: Gatherable>(
    pieces: Vec<Vec<E>>,
    count: usize,
    part: impl Fn(E) -> usize,
) -> Result<Slab<E>, SlabFull> {
    let mut begins = alloc::vec![0; count + 1];
    for &entry in pieces.iter().flatten() {
        begins[part(entry) + 1] += 1;
    }
    for part in 0..count {
        begins[part + 1] += begins[part];
    }
    let len = begins[count];
    let mut entries = E::room(len).ok_or(SlabFull::of::<E>(len))?;
    let mut lines = alloc::vec![[E::default(); LINE]; count];
    let mut next = begins.clone();
    for piece in pieces {
        for entry in piece {
            let part = part(entry);
            let (line, at) = (&mut lines[part], next[part]);
            line[at % LINE] = entry;
            next[part] = at + 1;
            if at % LINE == LINE - 1 {
                write_line(&mut entries, line, begins[part], at);
            }
        }
    }
    for part in 0..count {
        if next[part] > begins[part] && !next[part].is_multiple_of(LINE) {
            write_line(&mut entries, &lines[part], begins[part], next[part] - 1);
        }
    }
    Ok(Slab { entries, begins })
}

/// Writes the entries up to the one at `last`, of those that began at `begin`.
#[inline(always)]
fn write_line<E: Gatherable>(entries: &mut [E], line: &[E; LINE], begin: usize, last: usize) {
    let first = last / LINE * LINE;
    if first >= begin && last % LINE == LINE - 1 {
        entries[first..first + LINE].copy_from_slice(line);
    } else {
        let first = first.max(begin);
        entries[first..=last].copy_from_slice(&line[first % LINE..=last % LINE]);
    }
}

/// Splits the pieces into `groups` groups of about equally many entries.
fn split<E>(pieces: Vec<Vec<E>>, groups: usize) -> Vec<Vec<Vec<E>>> {
    let total: usize = pieces.iter().map(Vec::len).sum();
    let mut split = Vec::new();
    split.resize_with(groups, Vec::new);
    let mut before = 0;
    for piece in pieces {
        // Assigned by its middle, which is before the end of all.
        let middle = before + piece.len() / 2;
        before += piece.len();
        split[middle * groups / total.max(middle + 1)].push(piece);
    }
    split
}

/// How many threads may be used.
pub(super) fn threads(work: &Work<'_>) -> usize {
    #[cfg(feature = "rayon")]
    if work.parallel {
        return rayon::current_num_threads();
    }
    let _ = work;
    1
}

/// The results of `task` for each item, in order.
pub(super) fn each<I: Send, O: Send>(
    work: &Work<'_>,
    items: Vec<I>,
    task: impl Fn(I) -> O + Sync + Send,
) -> Vec<O> {
    #[cfg(feature = "rayon")]
    if work.parallel {
        use rayon::iter::{IntoParallelIterator, ParallelIterator};
        return items.into_par_iter().map(task).collect();
    }
    let _ = work;
    items.into_iter().map(task).collect()
}

/// The size of the sample that is searched for duplicates; it may be up to twice as large.
const SAMPLE: usize = 1 << 16;

/// Whether there are so many duplicates that it pays to sort all entries first: more than a
/// fiftieth, estimated from a sample. The sample has all entries of some hashes, so it does not
/// depend on their order.
pub(super) fn has_many_copies<E: Gatherable>(pieces: &[Vec<E>]) -> bool {
    let len: usize = pieces.iter().map(Vec::len).sum();
    let shift = (len / SAMPLE).max(1).ilog2();
    let chosen = |entry: &&E| (entry.hash().wrapping_mul(CHOICE) >> 32) >> (32 - shift) == 0;
    // If there are more than that, they are duplicates of one another in any case.
    let most = if shift == 0 { len + 1 } else { (len >> shift) / 2 * 3 };
    let mut sample: Vec<E> = Vec::with_capacity(most);
    sample.extend(pieces.iter().flatten().filter(chosen).take(most));
    if sample.len() == most {
        return true;
    }
    sample.sort_unstable();
    sample.dedup();
    sample.len() << shift < len - len / 50
}

/// All entries without duplicates, in ascending order.
pub(super) fn distinct<E: Gatherable>(pieces: Vec<Vec<E>>) -> Result<Vec<E>, SlabFull> {
    let len = pieces.iter().map(Vec::len).sum();
    let mut all = Vec::new();
    all.try_reserve_exact(len).map_err(|_| SlabFull::of::<E>(len))?;
    for piece in pieces {
        all.extend_from_slice(&piece);
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frozen::Build;
    use crate::hash::Digest;

    fn hashes(range: core::ops::Range<u64>) -> Vec<u64> {
        range.map(|number| Digest::mixed(number).bits()).collect()
    }

    #[test]
    fn parts_in_their_order_are_all_entries_in_theirs() {
        let pieces = Vec::from([hashes(0..30_000), hashes(30_000..30_001), hashes(40_000..60_000)]);
        let mut expected = pieces.concat();
        expected.sort_unstable();
        let tier = Tier::for_items(50_001);
        let parts = Parts::new(pieces, tier, &Build::new(0.5).work).unwrap();
        let (mut all, mut sorted, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        for part in 0..parts.count() {
            let len = parts.sort(part, &mut sorted, &mut counts);
            assert_eq!(len, parts.len(part..part + 1));
            assert!(sorted[..len].is_sorted_by_key(|hash| tier.place(*hash).0));
            all.extend_from_slice(&sorted[..len]);
        }
        assert!(all.is_sorted_by_key(|hash| tier.place(*hash).0));
        all.sort_unstable();
        assert_eq!(all, expected);
        let mut back = parts.into_pieces().concat();
        back.sort_unstable();
        assert_eq!(back, expected);
    }

    #[test]
    fn many_copies_are_noticed_and_few_are_not() {
        for len in [10_000, 100_000, 400_000] {
            let alone = hashes(0..len);
            let with = |copies: Vec<u64>| has_many_copies(&[alone.clone(), copies]);
            assert!(!with(Vec::new()) && !with(hashes(0..len / 100)));
            assert!(with(hashes(0..len / 20)) && with(hashes(0..len)));
            for copied in &alone[..10] {
                assert!(with(alloc::vec![*copied; len as usize / 10]), "{copied} of {len}");
            }
        }
    }

    #[test]
    fn pieces_are_split_into_groups_of_like_size() {
        let pieces: Vec<Vec<u64>> = (0..77).map(|_| alloc::vec![0; 1_000]).collect();
        for groups in 1..10 {
            let split = split(pieces.clone(), groups);
            assert_eq!(split.len(), groups);
            assert!(split.iter().all(|group| group.len().abs_diff(77 / groups) <= 1 + 77 % groups));
        }
    }
}
