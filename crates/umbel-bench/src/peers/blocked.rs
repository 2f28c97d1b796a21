//! Split-block Bloom filters: eight probes inside one block of 256 bits.

use crate::{contender::Contender, keys::Key, registry::Registry};
use foldhash::fast::RandomState;
use parquet::bloom_filter::Sbbf;
use std::hash::BuildHasher;

/// Adds the blocked Bloom filters.
pub(super) fn register(registry: &mut Registry) {
    registry.add::<FoldedSbbf, FoldedSbbf>("blocked", "sbbf-rs-safe + foldhash");
    // Its sizes are powers of two, up to 128 MiB.
    registry.add::<Sbbf, Sbbf>("blocked", "parquet Sbbf (xxh64)").at_most(50_000_000);
}

/// sbbf-rs-safe takes hashes, and a size in whole bits per key.
struct FoldedSbbf {
    filter: sbbf_rs_safe::Filter,
    hasher: RandomState,
}

impl<K: Key> Contender<K> for FoldedSbbf {
    const CLEARS: bool = true;

    fn empty(items: usize, rate: f64) -> Self {
        let bits = (1..64).find(|bits| split_block_rate(*bits) <= rate).unwrap_or(64);
        let filter = sbbf_rs_safe::Filter::new(bits as usize, items);
        Self { filter, hasher: RandomState::default() }
    }

    #[inline]
    fn insert(&mut self, key: &K) {
        self.filter.insert_hash(self.hasher.hash_one(key));
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        self.filter.contains_hash(self.hasher.hash_one(key))
    }

    fn clear(&mut self) {
        self.filter.reset();
    }
}

/// The rate of a split-block filter at `bits` bits per key: a block holds a Poisson number of keys, each of
/// which sets one bit in every lane of 32.
fn split_block_rate(bits: u32) -> f64 {
    let mean = 256.0 / f64::from(bits);
    let mut weight = (-mean).exp();
    let mut rate = 0.0;
    for keys in 0..1000 {
        rate += weight * (1.0 - (31.0f64 / 32.0).powi(keys)).powi(8);
        weight *= mean / f64::from(keys + 1);
    }
    rate
}

impl<K: Key> Contender<K> for Sbbf {
    fn empty(items: usize, rate: f64) -> Self {
        Self::new_with_ndv_fpp(items as u64, rate).expect("a valid rate")
    }

    #[inline]
    fn insert(&mut self, key: &K) {
        Self::insert(self, key.bytes().as_ref());
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        self.check(key.bytes().as_ref())
    }
}
