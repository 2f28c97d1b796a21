//! A map from keys to small values. It returns a value for every key, including keys that it does
//! not contain.

use super::layers::{self, Fault, peak_bytes};
use super::look_up::{self, Sum};
use super::row::{Pair, TwoValues};
use super::shape::Shape;
use crate::edge::{Filter, for_core_and_filter};
use crate::frozen::{self, Build, BuildError, MAX_BITS, Stage, Work};
use crate::hash::{Digest, Digester, KeyOf, Portable};
use crate::parts::gather::Gathered;
use crate::raw::describe;
use crate::storage::{Heap, Own, Storage};
use core::convert::Infallible;
use core::fmt;
use core::marker::PhantomData;

mod sealed {
    #[expect(unnameable_types, reason = "sealed: only this module implements it")]
    pub trait Sealed {}
}
use sealed::Sealed;

/// A value of a [`RibbonMap`]: `bool`, `u8`, `u16` or `u32`. Sealed, since the map relies on the
/// two conversions being inverse to each other.
#[doc(hidden)]
pub trait Value: Sealed + Copy + 'static {
    /// The maximum number of bits of a value.
    const BITS: u32;

    /// The value as a number.
    fn to_bits(self) -> u32;

    /// The value with this number, if there is one.
    fn from_bits(bits: u32) -> Self;
}

impl Sealed for bool {}

impl Value for bool {
    const BITS: u32 = 1;

    #[inline(always)]
    fn to_bits(self) -> u32 {
        self.into()
    }

    #[inline(always)]
    fn from_bits(bits: u32) -> Self {
        bits & 1 == 1
    }
}

macro_rules! integers {
    ($($integer:ty)*) => {$(
        impl Sealed for $integer {}

        impl Value for $integer {
            const BITS: u32 = Self::BITS;

            #[inline(always)]
            fn to_bits(self) -> u32 {
                self.into()
            }

            #[inline(always)]
            fn from_bits(bits: u32) -> Self {
                bits as Self
            }
        }
    )*};
}

integers! { u8 u16 u32 }

/// The number of bits of the values of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueWidth {
    /// The number of bits that the largest value needs.
    Fewest,
    /// Exactly this many, at least 1 and at most those of the type.
    Bits(u32),
}

/// A map from keys `T` to small values `V` for a static set of keys.
///
/// It returns the right value for the keys that it was built from. For any other key it returns an
/// arbitrary value, all with equal probability, because the map does not store the keys. It takes
/// the bits of a value per key, and 0.3 % more. The [module](crate::ribbon) describes the
/// construction: a filter is the map from keys to their fingerprints.
///
/// ```
/// use umbel::RibbonMap;
///
/// let shards = [("alice", 3), ("bob", 0), ("carol", 1)];
/// let map = RibbonMap::<str, u8>::build(shards)?;
/// assert_eq!((map.get("alice"), map.get("bob"), map.bits()), (3, 0, 2));
/// assert!(map.get("mallory") < 4); // an arbitrary value
/// # Ok::<(), umbel::ribbon::MapError>(())
/// ```
pub type RibbonMap<T, V, H = Portable, S = Heap> = Filter<T, H, RawRibbonMap<V, S>>;

/// The core of a map from keys to values `V`, with words in `S`.
pub struct RawRibbonMap<V, S = Heap> {
    pub(super) shape: Shape,
    pub(crate) storage: S,
    pub(super) values: PhantomData<fn() -> V>,
}

/// Building failed, and there is no map.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum MapError<E = Infallible> {
    /// An error that can occur for a filter too.
    Build(BuildError<E>),
    /// A key has two values, or two keys have the same digest.
    Conflict {
        /// Two of the values.
        values: [u32; 2],
    },
    /// The type of the values does not have this many bits.
    BitsOutOfRange {
        /// The requested number of bits.
        bits: u32,
        /// The maximum for this type.
        max: u32,
    },
    /// A value does not fit into the requested number of bits.
    ValueTooLarge {
        /// The value.
        value: u32,
        /// The requested number of bits.
        bits: u32,
    },
}

impl<E> From<BuildError<E>> for MapError<E> {
    fn from(error: BuildError<E>) -> Self {
        Self::Build(error)
    }
}

impl<E: fmt::Display> fmt::Display for MapError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Build(error) => error.fmt(f),
            Self::Conflict { values: [one, other] } => {
                write!(f, "one key has the value {one} and the value {other}")
            }
            Self::BitsOutOfRange { bits, max } => {
                write!(f, "values of {bits} bits are not of 1 to {max}")
            }
            Self::ValueTooLarge { value, bits } => {
                write!(f, "the value {value} has more than {bits} bits")
            }
        }
    }
}

impl<E: core::error::Error + 'static> core::error::Error for MapError<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Build(error) => Some(error),
            _ => None,
        }
    }
}

/// Options for maps, which have no rate.
impl Build<'_> {
    /// The options of a [`RibbonMap`], with the default hasher.
    #[must_use]
    pub const fn for_values() -> Self {
        Self::for_values_hashed_by(Portable::seeded(0))
    }
}

impl<H> Build<'_, H> {
    /// The options of a [`RibbonMap`], with this hasher.
    #[must_use]
    pub const fn for_values_hashed_by(hasher: H) -> Self {
        Self::with_hasher(0.5, hasher)
    }
}

/// Building with the default hasher.
impl<T: ?Sized, V: Value> RibbonMap<T, V> {
    /// Builds the map of these pairs, with the fewest bits. A pair may occur several times.
    ///
    /// # Errors
    ///
    /// [`MapError::Conflict`] if a key has two values. [`BuildError::Shape`] if there is no memory.
    pub fn build<K>(pairs: impl IntoIterator<Item = (K, V)>) -> Result<Self, MapError>
    where
        K: KeyOf<T>,
        Portable: Digester<K::Key>,
    {
        Self::build_with(Build::for_values(), ValueWidth::Fewest, pairs)
    }
}

/// Building.
impl<T: ?Sized, V: Value, H> RibbonMap<T, V, H> {
    /// As `build`, with the options of a [`Build`]. The rate in the options is ignored.
    ///
    /// # Errors
    ///
    /// See [`MapError`].
    pub fn build_with<K>(
        how: Build<'_, H>,
        width: ValueWidth,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, MapError>
    where
        K: KeyOf<T>,
        H: Digester<K::Key>,
    {
        Self::try_build_with(how, width, pairs.into_iter().map(Ok))
    }

    /// As [`build_with`](Self::build_with), from a source of pairs that may fail. The first error
    /// ends the build.
    ///
    /// # Errors
    ///
    /// See [`MapError`].
    pub fn try_build_with<K, E>(
        how: Build<'_, H>,
        width: ValueWidth,
        pairs: impl IntoIterator<Item = Result<(K, V), E>>,
    ) -> Result<Self, MapError<E>>
    where
        K: KeyOf<T>,
        H: Digester<K::Key>,
    {
        let most = match width {
            ValueWidth::Fewest => V::BITS,
            ValueWidth::Bits(bits) if (1..=V::BITS).contains(&bits) => bits,
            ValueWidth::Bits(bits) => return Err(MapError::BitsOutOfRange { bits, max: V::BITS }),
        };
        let hasher = &how.hasher;
        let pairs = pairs.into_iter().map(|pair| {
            let (key, value) = pair.map_err(BuildError::Source)?;
            let (hash, value) = (hasher.digest(key.key()).bits(), value.to_bits());
            if u64::from(value) >> most != 0 {
                return Err(MapError::ValueTooLarge { value, bits: most });
            }
            Ok(Pair { hash, value })
        });
        let peak = |items| peak_bytes::<Pair>(items, most);
        let gathered = frozen::gather(&how, peak, pairs).map_err(flatten)?;
        let bits = if width == ValueWidth::Fewest { fewest_bits(&gathered) } else { most };
        let raw = RawRibbonMap::of_gathered(&how, bits, gathered)?;
        Ok(Self::from_raw(raw, how.hasher))
    }
}

impl<V: Value> RawRibbonMap<V> {
    fn of_gathered<H, E>(
        how: &Build<'_, H>,
        bits: u32,
        pairs: Gathered<Pair>,
    ) -> Result<Self, MapError<E>> {
        let kept = how.checked.then(|| pairs.clone());
        let pieces = pairs.into_chunks().map(super::shrunk).collect();
        let built = layers::build(pieces, bits, &how.work);
        let (shape, storage) = built.map_err(|fault| match fault {
            Fault::Build(error) => MapError::Build(error.widen()),
            Fault::Conflict(TwoValues(values)) => MapError::Conflict { values },
        })?;
        let map = Self { shape, storage, values: PhantomData };
        if let Some(pairs) = kept {
            map.check(pairs, &how.work)?;
        }
        Ok(map)
    }

    fn check<E>(&self, pairs: Gathered<Pair>, work: &Work<'_>) -> Result<(), BuildError<E>> {
        let total = pairs.len() as u64;
        let (mut done, mut lost) = (0, 0);
        for chunk in pairs.into_chunks() {
            let wrong = |pair: &&Pair| self.bits_of(Digest::new(pair.hash)) != pair.value;
            lost += chunk.iter().filter(wrong).count() as u64;
            done += chunk.len() as u64;
            work.tell(Stage::Checking, done, Some(total));
        }
        if lost == 0 { Ok(()) } else { Err(BuildError::Lost { keys: lost }) }
    }
}

impl<V: Value, S: Storage<Word = u64>> RawRibbonMap<V, S> {
    fn bits_of(&self, digest: Digest) -> u32 {
        value_of(look_up::sum(&self.shape, self.storage.words(), digest))
    }
}

/// The number that a key maps to, or 0 if its layer has no keys.
#[inline(always)]
fn value_of(sum: Option<Sum>) -> u32 {
    sum.map_or(0, |sum| sum.bits)
}

/// An error of the pairs, or of collecting them.
fn flatten<E>(error: BuildError<MapError<E>>) -> MapError<E> {
    match error {
        BuildError::Source(error) => error,
        BuildError::Shape(shape) => BuildError::Shape(shape).into(),
        BuildError::Memory { needed, limit } => BuildError::Memory { needed, limit }.into(),
        BuildError::Attempts { attempts } => BuildError::Attempts { attempts }.into(),
        BuildError::Lost { keys } => BuildError::Lost { keys }.into(),
    }
}

/// The number of bits of the largest value, at least one.
fn fewest_bits(pairs: &Gathered<Pair>) -> u32 {
    let all = pairs.chunks().flatten().fold(1, |all, pair| all | pair.value);
    u32::BITS - all.leading_zeros()
}

/// Look-ups.
impl<T: ?Sized, V: Value, H, S: Storage<Word = u64>> RibbonMap<T, V, H, S> {
    /// The value of the key, if the map was built with one for it. For any other key, an arbitrary
    /// value, all with equal probability.
    #[must_use]
    #[inline]
    pub fn get(&self, key: &T) -> V
    where
        H: Digester<T>,
    {
        self.get_digest(self.hasher.digest(key))
    }

    /// As [`get`](Self::get), for many keys: `values[i]` is the value of `keys[i]`.
    ///
    /// A batch is faster than single look-ups if the map is larger than the cache.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[inline]
    pub fn get_batch<K>(&self, keys: &[K], values: &mut [V])
    where
        K: KeyOf<T>,
        H: Digester<K::Key>,
    {
        self.raw.get_each(keys, |key| self.hasher.digest(key.key()), values);
    }

    /// The same map, borrowing the words.
    #[must_use]
    pub fn borrowed(&self) -> RibbonMap<T, V, &H, Own<&[u64]>> {
        let RawRibbonMap { shape, storage, values } = &self.raw;
        let storage = Own(storage.words());
        Filter::from_raw(RawRibbonMap { shape: *shape, storage, values: *values }, &self.hasher)
    }
}

impl<V: Value, S: Storage<Word = u64>> RawRibbonMap<V, S> {
    #[inline]
    fn get_each<K>(&self, keys: &[K], digest: impl Fn(&K) -> Digest, values: &mut [V]) {
        let value = |sum| V::from_bits(value_of(sum));
        look_up::batch((&self.shape, self.storage.words()), keys, digest, values, value);
    }
}

for_core_and_filter! { impl[V: Value, S: Storage<Word = u64>] RawRibbonMap<V, S> {
    /// As [`get`](crate::Filter::get), for a digest that was computed elsewhere.
    #[must_use]
    pub fn get_digest(&self, digest: Digest) -> V {
        V::from_bits(self.bits_of(digest))
    }

    /// As [`get_batch`](crate::Filter::get_batch), for digests that were computed elsewhere.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    pub fn get_digests(&self, digests: &[Digest], values: &mut [V]) {
        self.get_each(digests, |digest| *digest, values);
    }

    /// The number of keys with a value, equal keys counted once.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.shape.items()
    }

    /// Whether the map was built from no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bits a value has.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.shape.fingerprint_bits()
    }

    /// The words.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        self.storage.words()
    }
} }

describe! {
    impl[V, S] RawRibbonMap<V, S>: Shape, Digest, "RibbonMap", |this| this.shape.words() * 8;
    len: this.shape.items(),
    bits: this.shape.fingerprint_bits(),
    bytes: this.bytes(),
}

/// The maximum number of bytes that are needed to build a map of `items` pairs, with values of
/// `bits` bits, including the map. [`Build::checked`] adds 16 bytes per pair.
#[must_use]
pub fn map_peak_bytes(items: u64, bits: u32) -> u64 {
    peak_bytes::<Pair>(items, bits.clamp(1, MAX_BITS))
}

impl<V, S: Clone> Clone for RawRibbonMap<V, S> {
    fn clone(&self) -> Self {
        Self { shape: self.shape, storage: self.storage.clone(), values: PhantomData }
    }
}

/// Equal if all bits are equal.
impl<V, S: Storage<Word = u64>> PartialEq for RawRibbonMap<V, S> {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape && self.storage.words() == other.storage.words()
    }
}

impl<V, S: Storage<Word = u64>> Eq for RawRibbonMap<V, S> {}
