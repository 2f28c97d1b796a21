//! Classic Bloom filters.

use crate::{contender::Contender, keys::Key, registry::Registry, threads::Shared};
use bloomfilter::Bloom;
use fastbloom_rs::{FilterBuilder, Membership};
use foldhash::fast::RandomState;

/// Adds the classic Bloom filters.
pub(super) fn register(registry: &mut Registry) {
    registry.add::<SipFastbloom, SipFastbloom>("bloom", "fastbloom (SipHash)");
    registry.add::<FoldedFastbloom, FoldedFastbloom>("bloom", "fastbloom + foldhash");
    registry.add::<FoldedAtomicFastbloom, FoldedAtomicFastbloom>(
        "bloom",
        "fastbloom Atomic + foldhash",
    );
    registry
        .add::<Bloom<u64>, Bloom<[u8; 32]>>("bloom", "bloomfilter (SipHash)")
        .at_most(20_000_000);
    registry.add::<fastbloom_rs::BloomFilter, fastbloom_rs::BloomFilter>(
        "bloom",
        "fastbloom-rs (xxh3)",
    );
}

type SipFastbloom = fastbloom::BloomFilter;
type FoldedFastbloom = fastbloom::BloomFilter<RandomState>;
/// fastbloom's atomic filter with foldhash.
pub(crate) type FoldedAtomicFastbloom = fastbloom::AtomicBloomFilter<RandomState>;

impl<K: Key> Contender<K> for SipFastbloom {
    const CLEARS: bool = true;

    fn empty(items: usize, rate: f64) -> Self {
        Self::with_false_pos(rate).expected_items(items)
    }

    #[inline]
    fn insert(&mut self, key: &K) {
        Self::insert(self, key);
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        Self::contains(self, key)
    }

    fn clear(&mut self) {
        Self::clear(self);
    }
}

impl<K: Key> Contender<K> for FoldedFastbloom {
    const CLEARS: bool = true;

    fn empty(items: usize, rate: f64) -> Self {
        fastbloom::BloomFilter::with_false_pos(rate)
            .hasher(RandomState::default())
            .expected_items(items)
    }

    #[inline]
    fn insert(&mut self, key: &K) {
        Self::insert(self, key);
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        Self::contains(self, key)
    }

    fn clear(&mut self) {
        Self::clear(self);
    }
}

impl<K: Key> Contender<K> for FoldedAtomicFastbloom {
    const CLEARS: bool = true;

    fn empty(items: usize, rate: f64) -> Self {
        fastbloom::AtomicBloomFilter::with_false_pos(rate)
            .hasher(RandomState::default())
            .expected_items(items)
    }

    #[inline]
    fn insert(&mut self, key: &K) {
        Self::insert(self, key);
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        Self::contains(self, key)
    }

    fn clear(&mut self) {
        Self::clear(self);
    }
}

impl Shared for FoldedAtomicFastbloom {
    fn empty(items: usize, rate: f64) -> Self {
        <Self as Contender<u64>>::empty(items, rate)
    }

    #[inline]
    fn insert(&self, key: &u64) {
        Self::insert(self, key);
    }

    fn contains(&self, key: &u64) -> bool {
        Self::contains(self, key)
    }

    fn clear(&mut self) {
        Self::clear(self);
    }
}

impl<K: Key> Contender<K> for Bloom<K> {
    const CLEARS: bool = true;

    fn empty(items: usize, rate: f64) -> Self {
        Self::new_for_fp_rate(items, rate).expect("a valid size and rate")
    }

    #[inline]
    fn insert(&mut self, key: &K) {
        self.set(key);
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        self.check(key)
    }

    fn clear(&mut self) {
        Self::clear(self);
    }
}

impl<K: Key> Contender<K> for fastbloom_rs::BloomFilter {
    const CLEARS: bool = true;

    fn empty(items: usize, rate: f64) -> Self {
        FilterBuilder::new(items as u64, rate).build_bloom_filter()
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
}
