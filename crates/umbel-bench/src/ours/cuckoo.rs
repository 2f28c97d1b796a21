//! Our cuckoo filter.

use crate::{contender::Contender, keys::Key, registry::Registry};
use umbel::CuckooFilter;

/// Adds it.
pub(super) fn register(registry: &mut Registry) {
    registry.add::<CuckooFilter<u64>, CuckooFilter<[u8; 32]>>("cuckoo", "umbel cuckoo");
}

impl<K: Key + umbel::Key> Contender<K> for CuckooFilter<K> {
    const CLEARS: bool = true;
    const BATCHES: bool = true;
    const BATCHES_INSERTS: bool = true;
    const REMOVES: bool = true;

    fn empty(items: usize, rate: f64) -> Self {
        Self::new(items as u64, rate)
    }

    #[inline]
    fn insert(&mut self, key: &K) {
        Self::insert(self, key).expect("room for every key");
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        Self::contains(self, key)
    }

    fn contains_batch(&self, keys: &[K], found: &mut [bool]) {
        Self::contains_batch(self, keys, found);
    }

    fn insert_batch(&mut self, keys: &[K], fresh: &mut [bool]) {
        Self::insert_batch(self, keys, fresh).expect("room for every key");
    }

    fn clear(&mut self) {
        Self::clear(self);
    }

    #[inline]
    fn remove(&mut self, key: &K) -> bool {
        Self::remove(self, key)
    }
}
