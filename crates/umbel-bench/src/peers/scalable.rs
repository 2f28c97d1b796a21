//! Filters that grow. Each starts with room for a 64th of the keys.

use super::Folded;
use crate::{contender::Contender, keys::Key, registry::Registry};
use foldhash::fast::RandomState;
use growable_bloom_filter::GrowableBloom;
use probabilistic_collections::bloom::ScalableBloomFilter as Probabilistic;
use scalable_bloom_filter::{ScalableBloomFilter, hash::NthHash};
use std::hash::{BuildHasher, Hash, Hasher};

/// Adds the filters that grow.
pub(super) fn register(registry: &mut Registry) {
    registry
        .add::<GrowableBloom, GrowableBloom>("scalable", "growable-bloom-filter (xxh3), 64x")
        .at_most(10_000_000)
        .may_exceed("its first filter gets the whole error budget, the next ones 0.85 of it each");
    registry
        .add::<Tightening<u64>, Tightening<[u8; 32]>>(
            "scalable",
            "probabilistic-collections scalable + foldhash, 64x",
        )
        .at_most(1_000_000);
    registry
        .add::<NthScalable<u64>, NthScalable<[u8; 32]>>(
            "scalable",
            "scalable_bloom_filter + foldhash, 64x",
        )
        .at_most(1_000_000);
    registry.add::<Resizeable, Resizeable>("scalable", "qfilter resizeable + foldhash, 64x");
}

const GROWTH: usize = 64;

impl<K: Key> Contender<K> for GrowableBloom {
    fn empty(items: usize, rate: f64) -> Self {
        Self::new(rate, items.div_ceil(GROWTH))
    }

    #[inline]
    fn insert(&mut self, key: &K) {
        Self::insert(self, key);
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        Self::contains(self, key)
    }
}

/// A hasher builder that is `Copy`, which the crate requires.
#[derive(Clone, Copy)]
struct FoldedBuilder(u64);

impl BuildHasher for FoldedBuilder {
    type Hasher = Folded;

    #[inline]
    fn build_hasher(&self) -> Folded {
        let mut hasher = Folded::default();
        hasher.write_u64(self.0);
        hasher
    }
}

type Tightening<K> = Probabilistic<K, FoldedBuilder>;

impl<K: Key> Contender<K> for Tightening<K> {
    fn empty(items: usize, rate: f64) -> Self {
        // Its size is given in bits: those of a Bloom filter for a 64th of the keys.
        let bits = items as f64 / GROWTH as f64 * -rate.ln() / 2f64.ln().powi(2);
        let hashers = [FoldedBuilder(1), FoldedBuilder(2)];
        Self::with_hashers(bits.ceil() as usize, rate, 2.0, 0.5, hashers)
    }

    #[inline]
    fn insert(&mut self, key: &K) {
        Self::insert(self, key);
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        Self::contains(self, key)
    }
}

struct FoldedNth;

impl NthHash for FoldedNth {
    #[inline]
    fn nth_hash<T: Hash + ?Sized>(&self, data: &T, nth: usize) -> u64 {
        let mut hasher = Folded::default();
        nth.hash(&mut hasher);
        data.hash(&mut hasher);
        hasher.finish()
    }
}

type NthScalable<K> = ScalableBloomFilter<K, FoldedNth>;

impl<K: Key> Contender<K> for NthScalable<K> {
    fn empty(items: usize, rate: f64) -> Self {
        Self::with_hasher(items.div_ceil(GROWTH), rate, FoldedNth)
    }

    #[inline]
    fn insert(&mut self, key: &K) {
        Self::insert(self, key);
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        Self::contains(self, key)
    }
}

/// A quotient filter that is created with its maximum size.
struct Resizeable(qfilter::Filter<Box<[u8]>, RandomState>);

impl<K: Key> Contender<K> for Resizeable {
    const REMOVES: bool = true;

    fn empty(items: usize, rate: f64) -> Self {
        let first = items.div_ceil(GROWTH) as u64;
        let hasher = RandomState::default();
        let filter = qfilter::Filter::new_resizeable_with_hasher(first, items as u64, rate, hasher);
        Self(filter.expect("a valid size and rate"))
    }

    #[inline]
    fn insert(&mut self, key: &K) {
        self.0.insert_duplicated(key).expect("room for every key");
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        self.0.contains(key)
    }

    #[inline]
    fn remove(&mut self, key: &K) -> bool {
        self.0.remove(key)
    }
}
