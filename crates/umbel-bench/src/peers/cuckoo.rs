//! Cuckoo filters, with sizes that avoid growing.

use super::Folded;
use crate::{contender::Contender, keys::Key, registry::Registry};
use autoscale_cuckoo_filter::{CuckooFilter as Autoscale, CuckooFilterBuilder};
use cuckoofilter::CuckooFilter;
use scalable_cuckoo_filter::{ScalableCuckooFilter, ScalableCuckooFilterBuilder};
use std::hash::{DefaultHasher, Hasher};

/// Adds the cuckoo filters.
pub(super) fn register(registry: &mut Registry) {
    registry
        .add::<EightBits, EightBits>("cuckoo", "cuckoofilter + foldhash")
        // Two buckets of four slots, compared with one of 255 fingerprints.
        .own_rate(8.0 / 255.0);
    registry.add::<SipHashed, SipHashed>("cuckoo", "cuckoofilter (SipHash)").own_rate(8.0 / 255.0);
    registry
        .add::<FoldedAutoscale<u64>, FoldedAutoscale<[u8; 32]>>(
            "cuckoo",
            "autoscale_cuckoo_filter + foldhash",
        )
        .at_most(20_000_000);
    registry
        .add::<OneByOne<u64>, OneByOne<[u8; 32]>>(
            "cuckoo",
            "autoscale_cuckoo_filter + foldhash, one by one",
        )
        .at_most(20_000_000);
    registry
        .add::<FoldedScalable<u64>, FoldedScalable<[u8; 32]>>(
            "cuckoo",
            "scalable_cuckoo_filter + foldhash",
        )
        .at_most(20_000_000);
}

type EightBits = CuckooFilter<Folded>;

/// With its default hasher.
type SipHashed = CuckooFilter<DefaultHasher>;

impl<K: Key, H: Hasher + Default + 'static> Contender<K> for CuckooFilter<H> {
    const REMOVES: bool = true;

    fn empty(items: usize, _rate: f64) -> Self {
        // It rounds to a power of two. Past a load of 0.96 it drops keys.
        Self::with_capacity((items as f64 / 0.955).ceil() as usize)
    }

    #[inline]
    fn insert(&mut self, key: &K) {
        self.add(key).expect("room for every key");
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        Self::contains(self, key)
    }

    #[inline]
    fn remove(&mut self, key: &K) -> bool {
        self.delete(key)
    }
}

type FoldedAutoscale<K> = Autoscale<K, Folded>;

impl<K: Key> Contender<K> for FoldedAutoscale<K> {
    const BATCHES: bool = true;
    const REMOVES: bool = true;

    fn empty(items: usize, rate: f64) -> Self {
        CuckooFilterBuilder::new()
            .initial_capacity(items)
            .false_positive_probability(rate)
            .hasher(Folded::default())
            .finish()
    }

    #[inline]
    fn insert(&mut self, key: &K) {
        self.add(key);
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        Self::contains(self, key)
    }

    fn contains_batch(&self, keys: &[K], found: &mut [bool]) {
        self.contains_batch_into(keys, found);
    }

    #[inline]
    fn remove(&mut self, key: &K) -> bool {
        Self::remove(self, key)
    }
}

/// The same without its batches, so that ours are compared with a plain loop.
struct OneByOne<K>(FoldedAutoscale<K>);

impl<K: Key> Contender<K> for OneByOne<K> {
    const REMOVES: bool = true;

    fn empty(items: usize, rate: f64) -> Self {
        Self(Contender::<K>::empty(items, rate))
    }

    #[inline]
    fn insert(&mut self, key: &K) {
        self.0.add(key);
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

type FoldedScalable<K> = ScalableCuckooFilter<K, Folded>;

impl<K: Key> Contender<K> for FoldedScalable<K> {
    const REMOVES: bool = true;

    fn empty(items: usize, rate: f64) -> Self {
        ScalableCuckooFilterBuilder::new()
            .initial_capacity(items)
            .false_positive_probability(rate)
            .hasher(Folded::default())
            .finish()
    }

    #[inline]
    fn insert(&mut self, key: &K) {
        Self::insert(self, key);
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        Self::contains(self, key)
    }

    #[inline]
    fn remove(&mut self, key: &K) -> bool {
        Self::remove(self, key)
    }
}
