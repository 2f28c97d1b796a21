//! Our filters for sets that do not change.

use crate::{contender::Contender, keys::Key, registry::Registry};
use umbel::{
    BinaryFuse4Filter, BinaryFuseFilter, Portable, XorFilter,
    frozen::{Arrangement, Frozen},
};

/// Adds them.
pub(super) fn register(registry: &mut Registry) {
    registry.add::<XorFilter<u64>, XorFilter<[u8; 32]>>("static", "umbel xor");
    registry.add::<BinaryFuseFilter<u64>, BinaryFuseFilter<[u8; 32]>>("static", "umbel fuse");
    registry.add::<BinaryFuse4Filter<u64>, BinaryFuse4Filter<[u8; 32]>>("static", "umbel fuse, 4");
    registry.add::<Twice<u64>, Twice<[u8; 32]>>("static", "umbel fuse, 1 % twice");
    registry.add::<Often<u64>, Often<[u8; 32]>>("static", "umbel fuse, one key a million times");
}

/// The fuse filter of a set in which every hundredth key comes twice.
struct Twice<K: 'static>(BinaryFuseFilter<K>);

/// The fuse filter of a set in which one key comes as often as all others together.
struct Often<K: 'static>(BinaryFuseFilter<K>);

impl<K: Key + umbel::Key> Contender<K> for Twice<K> {
    fn build(keys: &[K], rate: f64) -> Self {
        let all = keys.iter().chain(&keys[..keys.len() / 100]);
        Self(BinaryFuseFilter::build(all, rate).expect("equal keys count once"))
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        self.0.contains(key)
    }
}

impl<K: Key + umbel::Key> Contender<K> for Often<K> {
    fn build(keys: &[K], rate: f64) -> Self {
        let all = keys.iter().chain(std::iter::repeat_n(&keys[0], keys.len()));
        Self(BinaryFuseFilter::build(all, rate).expect("equal keys count once"))
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        self.0.contains(key)
    }
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
