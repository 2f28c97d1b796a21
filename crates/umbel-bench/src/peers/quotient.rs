//! Quotient filters. Only `insert_duplicated` makes a later remove safe.

use crate::{contender::Contender, keys::Key, registry::Registry};
use foldhash::fast::RandomState;

/// Adds the quotient filters.
pub(super) fn register(registry: &mut Registry) {
    registry.add::<qfilter::Filter, qfilter::Filter>("quotient", "qfilter (xxh3)");
    registry.add::<FoldedQfilter, FoldedQfilter>("quotient", "qfilter + foldhash");
}

type FoldedQfilter = qfilter::Filter<Box<[u8]>, RandomState>;

impl<K: Key> Contender<K> for qfilter::Filter {
    const CLEARS: bool = true;
    const REMOVES: bool = true;

    fn empty(items: usize, rate: f64) -> Self {
        Self::new(items as u64, rate).expect("a valid size and rate")
    }

    #[inline]
    fn insert(&mut self, key: &K) {
        self.insert_duplicated(key).expect("room for every key");
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        Self::contains(self, key)
    }

    fn clear(&mut self) {
        Self::clear(self);
    }

    #[inline]
    fn remove(&mut self, key: &K) -> bool {
        Self::remove(self, key)
    }
}

impl<K: Key> Contender<K> for FoldedQfilter {
    const CLEARS: bool = true;
    const REMOVES: bool = true;

    fn empty(items: usize, rate: f64) -> Self {
        Self::new_with_hasher(items as u64, rate, RandomState::default())
            .expect("a valid size and rate")
    }

    #[inline]
    fn insert(&mut self, key: &K) {
        self.insert_duplicated(key).expect("room for every key");
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        Self::contains(self, key)
    }

    fn clear(&mut self) {
        Self::clear(self);
    }

    #[inline]
    fn remove(&mut self, key: &K) -> bool {
        Self::remove(self, key)
    }
}
