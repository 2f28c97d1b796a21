//! Our quotient filter: with its own plan, at the load of its peer, and growing.

use crate::{contender::Contender, keys::Key, registry::Registry};
use umbel::{Portable, QuotientFilter, quotient::Shape};

/// Adds the quotient filters.
pub(super) fn register(registry: &mut Registry) {
    registry.add::<QuotientFilter<u64>, QuotientFilter<[u8; 32]>>("quotient", "umbel quotient");
    registry.add::<Sparse<u64>, Sparse<[u8; 32]>>("quotient", "umbel quotient, peer's load");
    registry.add::<Growing<u64>, Growing<[u8; 32]>>("scalable", "umbel quotient, 64x");
}

/// With the number of slots that qfilter uses: the next power of two above the keys and a twentieth.
struct Sparse<K>(QuotientFilter<K>);

impl<K> Sparse<K> {
    fn empty(items: usize, rate: f64) -> Self {
        let slots = (items as u64 * 20 / 19 + 1).next_power_of_two();
        let bits = (1..).find(|bits| 2f64.powi(-bits) <= rate).expect("a rate above 0") as u32;
        let shape = Shape::with(items as u64, slots, bits.max(2));
        let filter = shape.and_then(|shape| QuotientFilter::with(shape, Portable::default()));
        Self(filter.expect("a valid size and rate"))
    }
}

/// It starts with room for a 64th of the keys.
struct Growing<K>(QuotientFilter<K>);

impl<K> Growing<K> {
    fn empty(items: usize, rate: f64) -> Self {
        let shape = Shape::for_rate_growing(items as u64, rate, 6);
        let filter = shape.and_then(|shape| QuotientFilter::with(shape, Portable::default()));
        Self(filter.expect("a valid size and rate"))
    }
}

macro_rules! contender {
    ($filter:ident, $clears:literal, $this:ident => $inner:expr, $empty:expr) => {
        impl<K: Key + umbel::Key> Contender<K> for $filter<K> {
            const CLEARS: bool = $clears;
            const BATCHES: bool = true;
            const BATCHES_INSERTS: bool = $clears;
            const REMOVES: bool = true;
            const REFILLS: bool = $clears;

            fn empty(items: usize, rate: f64) -> Self {
                $empty(items, rate)
            }

            #[inline]
            fn insert(&mut self, key: &K) {
                let $this = self;
                $inner.insert(key).expect("room for every key");
            }

            #[inline]
            fn contains(&self, key: &K) -> bool {
                let $this = self;
                $inner.contains(key)
            }

            fn contains_batch(&self, keys: &[K], found: &mut [bool]) {
                let $this = self;
                $inner.contains_batch(keys, found);
            }

            fn insert_batch(&mut self, keys: &[K], fresh: &mut [bool]) {
                let $this = self;
                $inner.insert_batch(keys, fresh).expect("room for every key");
            }

            fn clear(&mut self) {
                let $this = self;
                $inner.clear();
            }

            #[inline]
            fn remove(&mut self, key: &K) -> bool {
                let $this = self;
                $inner.remove(key)
            }
        }
    };
}
contender!(QuotientFilter, true, this => this, |items, rate| Self::new(items as u64, rate));
contender!(Sparse, true, this => this.0, Self::empty);
contender!(Growing, false, this => this.0, Self::empty);
