//! The keys for all contenders: the same in every run, and never in order.
//!
//! Key number `i` is splitmix64 of the counter `i`, a bijection, so no two keys are equal. Keys that are looked
//! up but never inserted come from a separate counter range.

use std::hash::Hash;

/// A kind of key to measure with.
pub(crate) trait Key: Copy + Eq + Hash + Send + Sync + std::fmt::Debug + 'static {
    /// The bytes of the key, for a filter that takes bytes.
    type Bytes<'a>: AsRef<[u8]>;

    /// The key with this number.
    fn nth(index: u64) -> Self;

    /// The bytes of the key.
    fn bytes(&self) -> Self::Bytes<'_>;
}

impl Key for u64 {
    type Bytes<'a> = [u8; 8];

    fn nth(index: u64) -> Self {
        splitmix64(index)
    }

    #[inline]
    fn bytes(&self) -> [u8; 8] {
        self.to_le_bytes()
    }
}

impl Key for [u8; 32] {
    type Bytes<'a> = &'a [u8; 32];

    fn nth(index: u64) -> Self {
        let mut key = [0; 32];
        for (word, place) in key.chunks_exact_mut(8).zip(0..) {
            word.copy_from_slice(&splitmix64(4 * index + place).to_le_bytes());
        }
        key
    }

    #[inline]
    fn bytes(&self) -> &[u8; 32] {
        self
    }
}

/// Output number `index` of the splitmix64 generator with seed 0 (Steele, Lea, Flood 2014).
pub(crate) fn splitmix64(index: u64) -> u64 {
    let mut z = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The first number of absent keys. Present keys stay far below.
const ABSENT: u64 = 1 << 50;

/// The first number for the shuffle.
const SHUFFLE: u64 = 1 << 60;

/// The minimum and the maximum number of look-ups per pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queries {
    pub(crate) least: usize,
    pub(crate) most: usize,
}

impl Queries {
    /// At least a million, so that small filters are timed and their rates measured well. At most twenty
    /// million, so that the keys of large filters leave memory for the filters. Tests do not measure time, so
    /// they have few.
    pub(crate) const USUAL: Self =
        Self { least: if cfg!(test) { 10_000 } else { 1_000_000 }, most: 20_000_000 };

    /// At most five million: where every look-up is a cache miss, they take long enough.
    pub(crate) const FEW: Self = Self { most: 5_000_000, ..Self::USUAL };
}

/// The keys to insert, and the keys to look up.
#[derive(Debug)]
pub(crate) struct Workload<K> {
    /// Every key, once, in the order of insertion.
    pub(crate) keys: Vec<K>,
    /// Inserted keys, shuffled; the first [`distinct`](Self::distinct) of them are distinct.
    pub(crate) present: Vec<K>,
    /// Keys that are never inserted, all distinct.
    pub(crate) absent: Vec<K>,
    /// The number of entries of `present` before the first repetition.
    pub(crate) distinct: usize,
}

impl<K: Key> Workload<K> {
    /// `items` keys, and look-ups within the bounds of `queries`.
    pub(crate) fn new(items: u64, queries: Queries) -> Self {
        let keys: Vec<K> = (0..items).map(K::nth).collect();
        let stride = keys.len().div_ceil(queries.most);
        let mut chosen: Vec<K> = keys.iter().copied().step_by(stride).collect();
        let distinct = chosen.len();
        let mut draws = (SHUFFLE..).map(splitmix64);
        let wanted = distinct.max(queries.least);
        let mut present = Vec::with_capacity(wanted);
        while present.len() < wanted {
            shuffle(&mut chosen, &mut draws);
            present.extend_from_slice(&chosen[..distinct.min(wanted - present.len())]);
        }
        let absent = keys.len().clamp(queries.least, queries.most) as u64;
        let absent = (ABSENT..ABSENT + absent).map(K::nth).collect();
        Self { keys, present, absent, distinct }
    }
}

/// Fisher and Yates, driven by `draws`.
fn shuffle<T>(items: &mut [T], draws: &mut impl Iterator<Item = u64>) {
    for (last, draw) in (1..items.len()).rev().zip(draws) {
        let pick = (u128::from(draw) * (last as u128 + 1)) >> 64;
        items.swap(last, pick as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn splitmix64_gives_its_published_sequence() {
        // The first outputs of Vigna's splitmix64.c with seed 0.
        let first = [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f];
        assert_eq!([0, 1, 2].map(splitmix64), first);
    }

    fn absent_keys_are_absent<K: Key>() {
        let work = Workload::<K>::new(3_000, Queries { least: 5_000, most: 10_000 });
        let keys: HashSet<K> = work.keys.iter().copied().collect();
        assert_eq!(keys.len(), 3_000);
        assert_eq!(work.absent.len(), 5_000);
        assert!(work.absent.iter().all(|key| !keys.contains(key)));
        assert!(work.present.iter().all(|key| keys.contains(key)));
    }

    #[test]
    fn absent_keys_of_either_kind_are_absent() {
        absent_keys_are_absent::<u64>();
        absent_keys_are_absent::<[u8; 32]>();
    }

    #[test]
    fn small_sets_are_looked_up_several_times_and_large_ones_in_part() {
        let small = Workload::<u64>::new(400, Queries { least: 1_000, most: 10_000 });
        assert_eq!((small.present.len(), small.distinct), (1_000, 400));
        let once: HashSet<u64> = small.present[..400].iter().copied().collect();
        assert_eq!(once.len(), 400);

        let large = Workload::<u64>::new(9_000, Queries { least: 1_000, most: 3_000 });
        assert_eq!((large.keys.len(), large.present.len(), large.distinct), (9_000, 3_000, 3_000));
    }

    #[test]
    fn present_keys_are_not_in_the_order_of_insertion() {
        let work = Workload::<u64>::new(1_000, Queries { least: 1_000, most: 1_000 });
        let same = work.keys.iter().zip(&work.present).filter(|(a, b)| a == b).count();
        assert!(same < 20, "{same} of 1000 keys kept their place");
    }
}
