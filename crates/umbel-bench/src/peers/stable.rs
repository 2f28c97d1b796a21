//! Stable Bloom filters, for endless streams: they forget old keys to stay at their rate. Each gets ten cells
//! of two bits per key.

use crate::{contender::Contender, keys::Key, registry::Registry};
use bloom_filters::{BloomFilter, DefaultBuildHashKernels};
use foldhash::fast::RandomState;
use stable_bloom_filter::{Filter, stable::StableBloomFilter};

/// Adds the stable filters.
pub(super) fn register(registry: &mut Registry) {
    let forgets = "a stable Bloom filter forgets old keys by design";
    registry
        .add::<Kernels, Kernels>("stable", "bloom-filters stable + foldhash")
        .at_most(20_000_000)
        .may_forget(forgets);
    registry
        .add::<StableBloomFilter, StableBloomFilter>("stable", "stable-bloom-filter (FNV)")
        .at_most(20_000_000)
        .may_forget(forgets);
}

const CELLS: usize = 10;
const CELL_BITS: u8 = 2;

type Kernels = bloom_filters::StableBloomFilter<DefaultBuildHashKernels<RandomState>>;

impl<K: Key> Contender<K> for Kernels {
    const CLEARS: bool = true;

    fn empty(items: usize, rate: f64) -> Self {
        let kernels = DefaultBuildHashKernels::new(1, RandomState::default());
        Self::new(CELLS * items, CELL_BITS, rate, kernels)
    }

    #[inline]
    fn insert(&mut self, key: &K) {
        BloomFilter::insert(self, key);
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        BloomFilter::contains(self, key)
    }

    fn clear(&mut self) {
        self.reset();
    }
}

impl<K: Key> Contender<K> for StableBloomFilter {
    const CLEARS: bool = true;

    fn empty(items: usize, rate: f64) -> Self {
        Self::new(CELLS * items, CELL_BITS, rate)
    }

    #[inline]
    fn insert(&mut self, key: &K) {
        self.add(key.bytes().as_ref());
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        self.test(key.bytes().as_ref())
    }

    fn clear(&mut self) {
        self.reset();
    }
}
