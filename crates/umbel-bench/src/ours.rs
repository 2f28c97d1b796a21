//! Our own filters. A new family implements [`Contender`] here and is added to [`register`]. A new layout of
//! Bloom filter only needs to be added.

mod cuckoo;
mod frozen;
mod quotient;

use crate::{contender::Contender, keys::Key, registry::Registry, threads::Shared};
use umbel::{
    AtomicBlockedBloomFilter, AtomicBloomFilter, BlockedBloomFilter, BlockedCountingBloomFilter,
    BloomFilter, CountingBloomFilter, Digest, Portable, ScalableBloomFilter, SplitBlockBloomFilter,
    StableBloomFilter, WindowBloomFilter, blocked,
    bloom::Bloom,
    counting::{CellLayout, Counting},
    layout::Layout,
    stable,
    storage::{Heap, SharedHeap},
};

/// Adds our filters.
pub(crate) fn register(registry: &mut Registry) {
    registry.add::<BloomFilter<u64>, BloomFilter<[u8; 32]>>("bloom", "umbel bloom");
    registry
        .add::<AtomicBloomFilter<u64>, AtomicBloomFilter<[u8; 32]>>("bloom", "umbel atomic bloom");
    registry
        .add::<BlockedBloomFilter<u64>, BlockedBloomFilter<[u8; 32]>>("blocked", "umbel blocked");
    registry.add::<AtomicBlockedBloomFilter<u64>, AtomicBlockedBloomFilter<[u8; 32]>>(
        "blocked",
        "umbel atomic blocked",
    );
    registry.add::<InLines<u64, 1>, InLines<[u8; 32], 1>>("blocked", "umbel blocked, one line");
    registry.add::<InLines<u64, 2>, InLines<[u8; 32], 2>>("blocked", "umbel blocked, two lines");
    registry
        .add::<SplitBlockBloomFilter<u64, Portable>, SplitBlockBloomFilter<[u8; 32], Portable>>(
            "blocked",
            "umbel split-block",
        );
    registry.add::<CountingBloomFilter<u64>, CountingBloomFilter<[u8; 32]>>(
        "counting",
        "umbel counting",
    );
    registry.add::<BlockedCountingBloomFilter<u64>, BlockedCountingBloomFilter<[u8; 32]>>(
        "counting",
        "umbel blocked counting",
    );
    registry.add::<ScalableBloomFilter<u64>, ScalableBloomFilter<[u8; 32]>>(
        "scalable",
        "umbel scalable, 64x",
    );
    registry.add::<WindowBloomFilter<u64>, WindowBloomFilter<[u8; 32]>>("window", "umbel window");
    registry
        .add::<StableBloomFilter<u64>, StableBloomFilter<[u8; 32]>>("stable", "umbel stable")
        .may_forget("a stable Bloom filter forgets old keys by design");
    cuckoo::register(registry);
    quotient::register(registry);
    frozen::register(registry);
}

/// The common part of filters that accept any key, alone and in batches, and can be cleared.
macro_rules! changes_in_place {
    ($key:ty) => {
        const CLEARS: bool = true;
        const BATCHES: bool = true;
        const BATCHES_INSERTS: bool = true;

        #[inline]
        fn insert(&mut self, key: &$key) {
            Self::insert(self, key);
        }

        #[inline]
        fn contains(&self, key: &$key) -> bool {
            Self::contains(self, key)
        }

        fn contains_batch(&self, keys: &[$key], found: &mut [bool]) {
            Self::contains_batch(self, keys, found);
        }

        fn insert_batch(&mut self, keys: &[$key], fresh: &mut [bool]) {
            Self::insert_batch(self, keys, fresh);
        }

        fn extend(&mut self, keys: &[$key]) {
            Extend::extend(self, keys);
        }

        fn clear(&mut self) {
            Self::clear(self);
        }
    };
}

/// The window filter, with a window of all keys.
impl<K: Key + umbel::Key> Contender<K> for WindowBloomFilter<K> {
    fn empty(items: usize, rate: f64) -> Self {
        Self::new(items as u64, rate)
    }

    changes_in_place!(K);
}

/// Counting filters of every layout, of 4-bit cells.
impl<K: Key + umbel::Key, L: CellLayout> Contender<K> for Counting<K, Portable, Heap, L> {
    const REMOVES: bool = true;

    fn empty(items: usize, rate: f64) -> Self {
        Self::new(items as u64, rate)
    }

    changes_in_place!(K);

    #[inline]
    fn remove(&mut self, key: &K) -> bool {
        Self::remove(self, key)
    }
}

/// The stable filter, with ten cells of two bits per key, as its peers.
impl<K: Key + umbel::Key> Contender<K> for StableBloomFilter<K> {
    fn empty(items: usize, rate: f64) -> Self {
        let shape = stable::Shape::for_cells(10 * items as u64, 2, rate);
        let filter = shape.and_then(|shape| Self::with(shape, Portable::default()));
        filter.expect("a valid rate")
    }

    changes_in_place!(K);
}

/// The scalable filter: it starts with room for a 64th of the keys, as its peers do.
impl<K: Key + umbel::Key> Contender<K> for ScalableBloomFilter<K> {
    const BATCHES: bool = true;

    fn empty(items: usize, rate: f64) -> Self {
        Self::new(items.div_ceil(64) as u64, rate)
    }

    #[inline]
    fn insert(&mut self, key: &K) {
        Self::insert(self, key).expect("room for another level");
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        Self::contains(self, key)
    }

    fn contains_batch(&self, keys: &[K], found: &mut [bool]) {
        Self::contains_batch(self, keys, found);
    }
}

/// The blocked filter with a given number of lines per key, which may differ from its own choice.
struct InLines<K, const LINES: u32>(BlockedBloomFilter<K>);

impl<K: Key + umbel::Key, const LINES: u32> Contender<K> for InLines<K, LINES> {
    const CLEARS: bool = true;
    const BATCHES: bool = true;
    const BATCHES_INSERTS: bool = true;

    fn empty(items: usize, rate: f64) -> Self {
        let shape = blocked::Shape::for_rate_in_lines(items as u64, rate, LINES);
        let filter = shape.and_then(|shape| BlockedBloomFilter::with(shape, Portable::default()));
        Self(filter.expect("a valid rate"))
    }

    #[inline]
    fn insert(&mut self, key: &K) {
        self.0.insert(key);
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        self.0.contains(key)
    }

    fn contains_batch(&self, keys: &[K], found: &mut [bool]) {
        self.0.contains_batch(keys, found);
    }

    fn insert_batch(&mut self, keys: &[K], fresh: &mut [bool]) {
        self.0.insert_batch(keys, fresh);
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

/// Bloom filters of every layout.
impl<K, L> Contender<K> for Bloom<K, Portable, Heap, L>
where
    K: Key + umbel::Key,
    L: Layout<Digest = Digest> + Default,
{
    fn empty(items: usize, rate: f64) -> Self {
        Self::new(items as u64, rate)
    }

    changes_in_place!(K);
}

/// Their atomic versions, used by one thread.
impl<K, L> Contender<K> for Bloom<K, Portable, SharedHeap, L>
where
    K: Key + umbel::Key,
    L: Layout<Digest = Digest> + Default,
{
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

/// The same, used by many threads.
impl<L> Shared for Bloom<u64, Portable, SharedHeap, L>
where
    L: Layout<Digest = Digest, Shape: Sync> + Default + Sync,
{
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
