//! Our own filters. A new family implements [`Contender`] here and is added to [`register`].

use crate::{contender::Contender, keys::Key, registry::Registry, threads::Shared};
use umbel::{AtomicBloomFilter, BloomFilter};

/// Adds our filters.
pub(crate) fn register(registry: &mut Registry) {
    registry.add::<BloomFilter<u64>, BloomFilter<[u8; 32]>>("bloom", "umbel bloom");
    registry
        .add::<AtomicBloomFilter<u64>, AtomicBloomFilter<[u8; 32]>>("bloom", "umbel atomic bloom");
}

impl<K: Key + umbel::Key> Contender<K> for BloomFilter<K> {
    const CLEARS: bool = true;
    const BATCHES: bool = true;
    const BATCHES_INSERTS: bool = true;

    fn empty(items: usize, rate: f64) -> Self {
        Self::new(items as u64, rate)
    }

    #[inline]
    fn insert(&mut self, key: &K) {
        Self::insert(self, key);
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        Self::contains(self, key)
    }

    fn contains_batch(&self, keys: &[K], found: &mut [bool]) {
        Self::contains_batch(self, keys, found);
    }

    fn insert_batch(&mut self, keys: &[K], fresh: &mut [bool]) {
        Self::insert_batch(self, keys, fresh);
    }

    fn clear(&mut self) {
        Self::clear(self);
    }
}

impl<K: Key + umbel::Key> Contender<K> for AtomicBloomFilter<K> {
    const CLEARS: bool = true;

    fn empty(items: usize, rate: f64) -> Self {
        Self::new(items as u64, rate)
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

impl Shared for AtomicBloomFilter<u64> {
    fn empty(items: usize, rate: f64) -> Self {
        Self::new(items as u64, rate)
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
