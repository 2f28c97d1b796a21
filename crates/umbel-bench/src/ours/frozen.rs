//! Our filters for sets that do not change.

use crate::{contender::Contender, keys::Key, registry::Registry};
use umbel::{
    BinaryFuse4Filter, BinaryFuseFilter, Portable, RibbonFilter, XorFilter,
    frozen::{Arrangement, Frozen},
};

/// Adds them.
pub(super) fn register(registry: &mut Registry) {
    registry.add::<XorFilter<u64>, XorFilter<[u8; 32]>>("static", "umbel xor");
    registry.add::<BinaryFuseFilter<u64>, BinaryFuseFilter<[u8; 32]>>("static", "umbel fuse");
    registry.add::<BinaryFuse4Filter<u64>, BinaryFuse4Filter<[u8; 32]>>("static", "umbel fuse, 4");
    registry.add::<RibbonFilter<u64>, RibbonFilter<[u8; 32]>>("static", "umbel ribbon");
}

/// Filters of every arrangement.
impl<K, A> Contender<K> for Frozen<K, Portable, A>
where
    K: Key + umbel::Key,
    A: Arrangement,
{
    const BATCHES: bool = true;

    fn build(keys: &[K], rate: f64) -> Self {
        Self::build(keys, rate).expect("well-mixed keys can be built")
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        Self::contains(self, key)
    }

    fn contains_batch(&self, keys: &[K], found: &mut [bool]) {
        Self::contains_batch(self, keys, found);
    }
}
