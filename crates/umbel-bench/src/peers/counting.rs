//! Counting Bloom filters with four bits per counter.

use crate::{contender::Contender, keys::Key, registry::Registry};
use bloom_filters::{
    BloomFilter, CountingBloomFilter, DefaultBuildHashKernels, RemovableBloomFilter,
};
use fastbloom_rs::{Deletable, FilterBuilder, Membership};
use foldhash::fast::RandomState;

/// Adds the counting filters.
pub(super) fn register(registry: &mut Registry) {
    registry
        .add::<Kernels, Kernels>("counting", "bloom-filters counting + foldhash")
        .at_most(20_000_000);
    registry
        .add::<Counters, Counters>("counting", "fastbloom-rs counting (xxh3)")
        .at_most(20_000_000);
}

type Kernels = CountingBloomFilter<DefaultBuildHashKernels<RandomState>>;
type Counters = fastbloom_rs::CountingBloomFilter;

impl<K: Key> Contender<K> for Kernels {
    const CLEARS: bool = true;
    const REMOVES: bool = true;

    fn empty(items: usize, rate: f64) -> Self {
        Self::new(items, 4, rate, DefaultBuildHashKernels::new(1, RandomState::default()))
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

    #[inline]
    fn remove(&mut self, key: &K) -> bool {
        RemovableBloomFilter::remove(self, key);
        true
    }
}

impl<K: Key> Contender<K> for Counters {
    const CLEARS: bool = true;
    const REMOVES: bool = true;

    fn empty(items: usize, rate: f64) -> Self {
        let mut builder = FilterBuilder::new(items as u64, rate);
        builder.enable_repeat_insert(true);
        builder.build_counting_bloom_filter()
    }

    #[inline]
    fn insert(&mut self, key: &K) {
        self.add(key.bytes().as_ref());
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        Membership::contains(self, key.bytes().as_ref())
    }

    fn clear(&mut self) {
        Membership::clear(self);
    }

    #[inline]
    fn remove(&mut self, key: &K) -> bool {
        Deletable::remove(self, key.bytes().as_ref());
        true
    }
}
