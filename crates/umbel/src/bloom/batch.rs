//! Many keys: ask for their words before the first one is needed.
//!
//! A look-up of an absent key ends after two positions on average, so fetching all its words would
//! be waste, and a present key needs them all. Keys therefore go through in groups, three groups at
//! a time:
//!
//! ```text
//!     group n       digest the keys, fetch their first words
//!     group n - 1   test the first words; fetch the rest for the keys that are left
//!     group n - 2   test the rest
//! ```
//!
//! While nearly all keys turn out to be present, all their words are fetched at once.

use super::probe::{FIRST, contains, insert, insert_fetched, rest_set, three_set};
use super::table::Table;
use crate::hash::Digester;
use crate::kernels::Kernels;
use crate::parts::bits::{SetBit, Word};
use core::borrow::Borrow;

/// How many keys are in a group: the words of two groups are more than a core can have under way.
const LANES: usize = 32;

/// Filters of up to this many bytes are in a core's own cache, where fetching ahead only costs.
const CACHED: u64 = 2 << 20;

/// As [`contains`] for each key.
#[inline]
pub(crate) fn contains_batch<W: Word, K: Kernels, A>(
    table: Table<&[W]>,
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
        return;
    }
    let mut groups = keys.chunks(LANES);
    let Some(first) = groups.next() else { return };
    let pipeline = Pipeline { table, probes, kernels };
    let blank = digest(&first[0]);
    let mut coming = [Group { digests: [blank; LANES], len: 0, all: false }; 2];
    let mut left = [Left { walks: [(0, kernels.start(blank)); LANES], len: 0 }; 2];
    pipeline.fetch(&mut coming[0], first, &digest);
    let mut before: &mut [bool] = &mut [];
    for (turn, found) in found.chunks_mut(LANES).enumerate() {
        let (this, next) = (turn % 2, (turn + 1) % 2);
        pipeline.fetch(&mut coming[next], groups.next().unwrap_or_default(), &digest);
        pipeline.test(&coming[this], &mut left[this], found);
        pipeline.settle(&left[next], before);
        let present: usize = found.iter().map(|&found| usize::from(found)).sum();
        coming[this].all = present * 3 > LANES * 2;
        (left[next].len, before) = (0, found);
    }
    for left in &left {
        pipeline.settle(left, before);
    }
}

/// Keys whose words are on their way.
#[derive(Clone, Copy)]
struct Group<D> {
    digests: [D; LANES],
    len: usize,
    /// Whether to fetch all their words, or only the first.
    all: bool,
}

/// Keys of a group whose first words did not tell.
#[derive(Clone, Copy)]
struct Left<X> {
    /// The lane of the key, and its walk past the first positions.
    walks: [(u8, X); LANES],
    len: usize,
}

/// What every stage needs to know.
struct Pipeline<'a, W, K> {
    table: Table<&'a [W]>,
    probes: u32,
    kernels: &'a K,
}

impl<W: Word, K: Kernels> Pipeline<'_, W, K> {
    /// Digests up to [`LANES`] keys and fetches their words.
    #[inline(always)]
    fn fetch<A>(
        &self,
        group: &mut Group<K::Digest>,
        keys: &[A],
        digest: &impl Fn(&A) -> K::Digest,
    ) {
        group.len = keys.len();
        for (slot, key) in group.digests.iter_mut().zip(keys) {
            *slot = digest(key);
            let mut walk = self.kernels.start(*slot);
            for _ in 0..FIRST {
                self.table.fetch(self.kernels, &mut walk);
            }
            if group.all {
                for _ in FIRST..self.probes {
                    self.table.fetch(self.kernels, &mut walk);
                }
            }
        }
    }

    /// Answers `false` for the keys whose words say so, and `true` for those that are left.
    #[inline(always)]
    fn test(&self, group: &Group<K::Digest>, left: &mut Left<K::Walk>, found: &mut [bool]) {
        let Self { table, probes, kernels } = *self;
        left.len = 0;
        if group.all {
            for (&digest, found) in group.digests.iter().zip(found) {
                *found = contains(table, probes, kernels, digest);
            }
            return;
        }
        // Keys that are left are packed to the front without a branch.
        for (lane, (&digest, found)) in group.digests.iter().zip(found).enumerate() {
            let mut walk = kernels.start(digest);
            *found = three_set(table, kernels, &mut walk);
            left.walks[left.len % LANES] = (lane as u8, walk);
            left.len += usize::from(*found);
        }
        for &(_, mut walk) in &left.walks[..left.len] {
            for _ in FIRST..probes {
                table.fetch(kernels, &mut walk);
            }
        }
    }

    /// Answers for those that were left.
    #[inline(always)]
    fn settle(&self, left: &Left<K::Walk>, found: &mut [bool]) {
        let rest = self.probes - FIRST;
        for &(lane, walk) in &left.walks[..left.len] {
            found[usize::from(lane)] = rest_set(self.table, rest, self.kernels, walk);
        }
    }
}

/// As [`insert`] for each key, in their order; `told` takes the number of the key and the answer.
#[inline]
pub(crate) fn insert_batch<V: SetBit, K: Kernels, A>(
    mut table: Table<V>,
    probes: u32,
    kernels: &K,
    keys: &[A],
    digest: impl Fn(&A) -> K::Digest,
    mut told: impl FnMut(usize, bool),
) {
    /// Every word is fetched, so fewer keys fill the queue of the memory system.
    const LANES: usize = 16;
    if table.bytes() <= CACHED {
        for (number, key) in keys.iter().enumerate() {
            told(number, insert(&mut table, probes, kernels, digest(key)));
        }
        return;
    }
    let Some(first) = keys.first() else { return };
    let mut digests = [digest(first); LANES];
    for (group, keys) in keys.chunks(LANES).enumerate() {
        for (slot, key) in digests.iter_mut().zip(keys) {
            *slot = digest(key);
            table.fetch_to_set(probes, kernels, *slot);
        }
        for (lane, &digest) in digests[..keys.len()].iter().enumerate() {
            told(group * LANES + lane, insert_fetched(&mut table, probes, kernels, digest));
        }
    }
}

/// Digests keys as they come and hands the digests on in batches.
pub(crate) fn digest_in_batches<T, A, H, D>(
    hasher: &H,
    keys: impl IntoIterator<Item = A>,
    mut take: impl FnMut(&[D]),
) where
    T: ?Sized,
    A: Borrow<T>,
    H: Digester<T, D>,
    D: Copy,
{
    let mut keys = keys.into_iter();
    while let Some(first) = keys.next() {
        let mut digests = [hasher.digest(first.borrow()); LANES];
        let mut len = 1;
        for (slot, key) in digests[1..].iter_mut().zip(&mut keys) {
            *slot = hasher.digest(key.borrow());
            len += 1;
        }
        take(&digests[..len]);
    }
}
