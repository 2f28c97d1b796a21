//! Batches: the words of later keys are fetched while earlier keys are tested.
//!
//! A look-up of an absent key ends after two positions on average, so fetching all its words would
//! waste bandwidth. A present key needs all of them. Keys to look up therefore pass through a
//! pipeline in groups, three groups at a time:
//!
//! ```text
//!     group n       digest the keys, fetch their first words
//!     group n - 1   test the first words; fetch the rest for the keys that are left
//!     group n - 2   test the rest
//! ```
//!
//! While nearly all keys turn out to be present, all their words are fetched at once. An insertion
//! needs all words of a key, so insertions run one by one, some keys behind the prefetches.

use super::probe::{FIRST, contains, insert_absent, rest_set, set_all, three_set};
use super::table::BitTable;
use crate::kernels::Kernels;
use crate::parts::bits::{SetBit, Word};

/// How many keys are in a group. The words of two groups are more than a core can fetch at the same
/// time.
const LANES: usize = 32;

/// Filters of up to this many bytes fit into the core's private cache, where prefetching only costs
/// time.
const CACHED: u64 = 2 << 20;

/// Words of filters larger than this are prefetched into the second-level cache, which allows more
/// outstanding requests.
const FAR: u64 = 32 << 20;

/// As [`contains`], for each key.
#[inline]
pub(crate) fn contains_batch<W: Word, K: Kernels, A>(
    table: BitTable<&[W]>,
    probes: u32,
    kernels: &K,
    keys: &[A],
    digest: impl Fn(&A) -> K::Digest,
    found: &mut [bool],
) {
    assert_eq!(keys.len(), found.len(), "one answer for each key");
    if table.bytes() <= CACHED || probes < FIRST {
        for (key, found) in keys.iter().zip(found) {
            *found = contains(table, probes, kernels, digest(key));
        }
    } else if table.bytes() <= FAR {
        Pipeline::<W, K, false> { table, probes, kernels }.run(keys, digest, found);
    } else {
        Pipeline::<W, K, true> { table, probes, kernels }.run(keys, digest, found);
    }
}

/// The state that every stage needs, and whether the table is far away.
struct Pipeline<'a, W, K, const FAR: bool> {
    table: BitTable<&'a [W]>,
    probes: u32,
    kernels: &'a K,
}

/// Keys whose words are being fetched.
#[derive(Clone, Copy)]
struct Group<D> {
    digests: [D; LANES],
    /// Whether to fetch all words of a key, or only the first ones.
    all: bool,
}

/// Keys of a group that passed the test of their first words.
#[derive(Clone, Copy)]
struct Left<D> {
    /// The lane of the key, and its digest past the first positions.
    digests: [(u8, D); LANES],
    len: usize,
}

impl<W: Word, K: Kernels, const FAR: bool> Pipeline<'_, W, K, FAR> {
    /// Answers for each key.
    #[inline(always)]
    fn run<A>(&self, keys: &[A], digest: impl Fn(&A) -> K::Digest, found: &mut [bool]) {
        let Self { table, probes, kernels } = *self;
        let mut groups = keys.chunks(LANES);
        let Some(first) = groups.next() else { return };
        let blank = digest(&first[0]);
        // Two of each, used alternately.
        let mut coming = [Group { digests: [blank; LANES], all: false }; 2];
        let mut left = [Left { digests: [(0, kernels.start(blank)); LANES], len: 0 }; 2];
        for (slot, key) in coming[0].digests.iter_mut().zip(first) {
            *slot = digest(key);
            self.fetch(*slot, false);
        }
        let mut before: &mut [bool] = &mut [];
        for (turn, found) in found.chunks_mut(LANES).enumerate() {
            let [even, odd] = &mut coming;
            let (this, next) = if turn % 2 == 0 { (even, odd) } else { (odd, even) };
            let [even, odd] = &mut left;
            let (left, left_before) = if turn % 2 == 0 { (even, odd) } else { (odd, even) };
            let mut keys = groups.next().unwrap_or_default().iter();
            left.len = 0;
            for (lane, found) in found.iter_mut().enumerate() {
                if let Some(key) = keys.next() {
                    next.digests[lane] = digest(key);
                    self.fetch(next.digests[lane], next.all);
                }
                *found = if this.all {
                    contains(table, probes, kernels, this.digests[lane])
                } else {
                    self.test(this.digests[lane], lane, left)
                };
            }
            self.fetch_rest(left);
            self.settle(left_before, before);
            let present: usize = found.iter().map(|&found| usize::from(found)).sum();
            this.all = present * 3 > LANES * 2;
            (left_before.len, before) = (0, found);
        }
        for left in &left {
            self.settle(left, before);
        }
    }

    /// Fetches the first words of a key, or all.
    #[inline(always)]
    fn fetch(&self, digest: K::Digest, all: bool) {
        let mut digest = self.kernels.start(digest);
        for _ in 0..FIRST {
            self.table.fetch::<K, FAR>(self.kernels, &mut digest);
        }
        if all {
            for _ in FIRST..self.probes {
                self.table.fetch::<K, FAR>(self.kernels, &mut digest);
            }
        }
    }

    /// Tests the first words of a key. Keys that pass are appended to the rest, without a branch.
    #[inline(always)]
    fn test(&self, digest: K::Digest, lane: usize, left: &mut Left<K::Digest>) -> bool {
        let mut digest = self.kernels.start(digest);
        let found = three_set(self.table, self.kernels, &mut digest);
        left.digests[left.len % LANES] = (lane as u8, digest);
        left.len += usize::from(found);
        found
    }

    /// Fetches the remaining words for the keys that passed.
    #[inline(always)]
    fn fetch_rest(&self, left: &Left<K::Digest>) {
        for &(_, mut digest) in &left.digests[..left.len] {
            for _ in FIRST..self.probes {
                self.table.fetch::<K, FAR>(self.kernels, &mut digest);
            }
        }
    }

    /// Answers for the keys that passed.
    #[inline(always)]
    fn settle(&self, left: &Left<K::Digest>, found: &mut [bool]) {
        let rest = self.probes - FIRST;
        for &(lane, digest) in &left.digests[..left.len] {
            found[usize::from(lane)] = rest_set(self.table, rest, self.kernels, digest);
        }
    }
}

/// As [`insert`](super::insert), for each key in order: `fresh[i]` is the answer for `keys[i]`.
#[inline]
pub(crate) fn insert_batch<V: SetBit, K: Kernels, A>(
    mut table: BitTable<V>,
    probes: u32,
    kernels: &K,
    keys: &[A],
    digest: impl Fn(&A) -> K::Digest,
    fresh: &mut [bool],
) {
    assert_eq!(keys.len(), fresh.len(), "one answer for each key");
    fetch_ahead(&mut table, probes, kernels, keys, digest, |table, number, digest| {
        fresh[number] = insert_absent(table, probes, kernels, digest);
    });
}

/// Inserts each digest, without an answer.
#[inline]
pub(crate) fn extend<V: SetBit, K: Kernels>(
    mut table: BitTable<V>,
    probes: u32,
    kernels: &K,
    mut digests: impl Iterator<Item = K::Digest>,
) {
    /// How many keys are collected for one pass.
    const BATCH: usize = 256;
    while let Some(first) = digests.next() {
        let mut batch = [first; BATCH];
        let mut len = 1;
        for (slot, digest) in batch[1..].iter_mut().zip(&mut digests) {
            *slot = digest;
            len += 1;
        }
        fetch_ahead(
            &mut table,
            probes,
            kernels,
            &batch[..len],
            |digest| *digest,
            |table, _, digest| {
                set_all(table, probes, kernels, digest);
            },
        );
    }
}

/// Calls `each` with the index and the digest of every key in order, some keys after prefetching
/// its words.
#[inline(always)]
fn fetch_ahead<V: SetBit, K: Kernels, A>(
    table: &mut BitTable<V>,
    probes: u32,
    kernels: &K,
    keys: &[A],
    digest: impl Fn(&A) -> K::Digest,
    mut each: impl FnMut(&mut BitTable<V>, usize, K::Digest),
) {
    if table.bytes() <= CACHED && !V::SHARED {
        for (number, key) in keys.iter().enumerate() {
            each(table, number, digest(key));
        }
    } else if table.bytes() <= FAR {
        let fetch =
            |table: &BitTable<V>, digest| table.fetch_to_set::<K, false>(probes, kernels, digest);
        ring(table, keys, digest, fetch, each);
    } else {
        let fetch =
            |table: &BitTable<V>, digest| table.fetch_to_set::<K, true>(probes, kernels, digest);
        ring(table, keys, digest, fetch, each);
    }
}

/// As [`fetch_ahead`], with the given prefetch.
#[inline(always)]
fn ring<V, D: Copy, A>(
    table: &mut BitTable<V>,
    keys: &[A],
    digest: impl Fn(&A) -> D,
    fetch: impl Fn(&BitTable<V>, D),
    mut each: impl FnMut(&mut BitTable<V>, usize, D),
) {
    /// The distance in keys.
    const AHEAD: usize = 16;
    let Some(first) = keys.first() else { return };
    let mut ring = [digest(first); AHEAD];
    for (slot, key) in ring.iter_mut().zip(keys) {
        *slot = digest(key);
        fetch(table, *slot);
    }
    let mut coming = keys.iter().skip(AHEAD);
    for number in 0..keys.len() {
        let slot = &mut ring[number % AHEAD];
        each(table, number, *slot);
        if let Some(key) = coming.next() {
            *slot = digest(key);
            fetch(table, *slot);
        }
    }
}
