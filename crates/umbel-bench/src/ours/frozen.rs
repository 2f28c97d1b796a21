//! Our static filters.

use crate::{contender::Contender, keys::Key, registry::Registry};
use umbel::{
    BinaryFuse4Filter, BinaryFuseFilter, Portable, RibbonFilter, XorFilter,
    frozen::{Arrangement, Frozen, Peeled},
    fuse::Fused,
    ribbon::Ribbon,
};

/// Adds them.
pub(super) fn register(registry: &mut Registry) {
    registry.add::<XorFilter<u64>, XorFilter<[u8; 32]>>("static", "umbel xor");
    registry.add::<BinaryFuseFilter<u64>, BinaryFuseFilter<[u8; 32]>>("static", "umbel fuse");
    registry.add::<BinaryFuse4Filter<u64>, BinaryFuse4Filter<[u8; 32]>>("static", "umbel fuse, 4");
    registry.add::<RibbonFilter<u64>, RibbonFilter<[u8; 32]>>("static", "umbel ribbon");
    repeated::<Peeled<Fused<3>>>(
        registry,
        ["umbel fuse, 1 % twice", "umbel fuse, one key a million times"],
    );
    repeated::<Ribbon>(
        registry,
        ["umbel ribbon, 1 % twice", "umbel ribbon, one key a million times"],
    );
}

/// Adds filters of this arrangement for sets with repeated keys.
fn repeated<A: Arrangement>(registry: &mut Registry, [twice, often]: [&'static str; 2]) {
    registry.add::<Twice<u64, A>, Twice<[u8; 32], A>>("static", twice);
    registry.add::<Often<u64, A>, Often<[u8; 32], A>>("static", often);
}

/// The filter of a set in which every hundredth key occurs twice.
struct Twice<K: 'static, A: Arrangement>(Frozen<K, Portable, A>);

/// The filter of a set in which one key occurs as often as all others together.
struct Often<K: 'static, A: Arrangement>(Frozen<K, Portable, A>);

impl<K: Key + umbel::Key, A: Arrangement> Contender<K> for Twice<K, A> {
    fn build(keys: &[K], rate: f64) -> Self {
        let all = keys.iter().chain(&keys[..keys.len() / 100]);
        Self(Frozen::build(all, rate).expect("equal keys count once"))
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        self.0.contains(key)
    }
}

impl<K: Key + umbel::Key, A: Arrangement> Contender<K> for Often<K, A> {
    fn build(keys: &[K], rate: f64) -> Self {
        let all = keys.iter().chain(std::iter::repeat_n(&keys[0], keys.len()));
        Self(Frozen::build(all, rate).expect("equal keys count once"))
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
