//! Static filters, built from all keys at once.

use crate::{contender::Contender, keys::Key, registry::Registry};
use dsi_progress_logger::no_logging;
use foldhash::fast::RandomState;
use std::{
    borrow::{Borrow, Cow},
    fmt::Debug,
    hash::BuildHasher,
};
use sux::{
    bits::BitFieldVec,
    dict::VFilter,
    func::VBuilder,
    traits::{TryIntoUnaligned, Unaligned},
    utils::ToSig,
};
use xorf::{BinaryFuse8, BinaryFuse16, Filter, Xor8};

/// Adds the static filters. Xor8 needs 144 bytes per key while it is built.
pub(super) fn register(registry: &mut Registry) {
    let (one_byte, two_bytes) = (1.0 / 256.0, 1.0 / 65536.0);
    registry
        .add::<Words<Xor8>, Words<Xor8>>("static", "xorf Xor8")
        .own_rate(one_byte)
        .at_most(50_000_000);
    registry
        .add::<Words<BinaryFuse8>, Words<BinaryFuse8>>("static", "xorf BinaryFuse8")
        .own_rate(one_byte);
    registry
        .add::<Words<BinaryFuse16>, Words<BinaryFuse16>>("static", "xorf BinaryFuse16")
        .own_rate(two_bytes);
    registry.add::<Bytes<u64>, Bytes<[u8; 32]>>("static", "sux VFilter u8").own_rate(one_byte);
    registry.add::<Bits<u64>, Bits<[u8; 32]>>("static", "sux VFilter bits");
}

/// Keys as words, the input of xorf: integers unchanged, or the foldhash of longer keys.
trait Word: Key {
    fn word(&self, hasher: &RandomState) -> u64;
    fn words<'a>(keys: &'a [Self], hasher: &RandomState) -> Cow<'a, [u64]>;
}

impl Word for u64 {
    #[inline]
    fn word(&self, _hasher: &RandomState) -> u64 {
        *self
    }

    fn words<'a>(keys: &'a [Self], _hasher: &RandomState) -> Cow<'a, [u64]> {
        Cow::Borrowed(keys)
    }
}

impl Word for [u8; 32] {
    #[inline]
    fn word(&self, hasher: &RandomState) -> u64 {
        hasher.hash_one(self)
    }

    fn words<'a>(keys: &'a [Self], hasher: &RandomState) -> Cow<'a, [u64]> {
        keys.iter().map(|key| key.word(hasher)).collect()
    }
}

/// A filter of xorf over words.
struct Words<F> {
    filter: F,
    hasher: RandomState,
}

impl<K, F> Contender<K> for Words<F>
where
    K: Word,
    F: Filter<u64> + for<'a> TryFrom<&'a [u64]> + 'static,
{
    fn build(keys: &[K], _rate: f64) -> Self {
        let hasher = RandomState::default();
        let words = K::words(keys, &hasher);
        let Ok(filter) = F::try_from(&words) else { panic!("distinct keys can be built") };
        Self { filter, hasher }
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        self.filter.contains(&key.word(&self.hasher))
    }
}

/// Keys in the form that sux takes.
trait Signed: Key + Borrow<Self::As> {
    type As: ToSig<[u64; 2]> + Debug + Sync + ?Sized;
}

impl Signed for u64 {
    type As = u64;
}

impl Signed for [u8; 32] {
    type As = [u8];
}

/// Eight bits per key, one byte each.
struct Bytes<K: Signed>(VFilter<K::As, Box<[u8]>>);

impl<K: Signed> Contender<K> for Bytes<K> {
    fn build(keys: &[K], _rate: f64) -> Self {
        let builder = VBuilder::default().max_num_threads(1);
        let filter = VFilter::<K::As, Box<[u8]>>::try_par_new_with_builder;
        Self(filter(keys, builder, no_logging![]).expect("distinct keys can be built"))
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        self.0.contains(key.borrow())
    }
}

/// The bits per key that the rate requires, packed.
struct Bits<K: Signed>(VFilter<K::As, Unaligned<Packed>>);

type Packed = BitFieldVec<Box<[usize]>>;

impl<K: Signed> Contender<K> for Bits<K> {
    fn build(keys: &[K], rate: f64) -> Self {
        let bits = (1.0 / rate).log2().ceil() as usize;
        let builder = VBuilder::default().max_num_threads(1);
        let filter = VFilter::<K::As, Packed>::try_par_new_with_builder;
        let filter =
            filter(keys, bits, builder, no_logging![]).expect("distinct keys can be built");
        Self(filter.try_into_unaligned().expect("few enough bits"))
    }

    #[inline]
    fn contains(&self, key: &K) -> bool {
        self.0.contains(key.borrow())
    }
}
