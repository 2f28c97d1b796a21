//! The only type that knows keys and hashers. All cores below it work with digests.
//!
//! ```text
//!     keys      Filter<T, H, C>                  here
//!                  |   digest
//!     digests   C: raw::Bloom, raw::Cuckoo ...   a core for each family
//!                  |   positions, lines, slots
//!     words     storage
//! ```
//!
//! Operations that all cores support are written once, here. Operations that only some families
//! support, or that each family documents differently, are in the module of the family.

use crate::error::{BatchFull, Full, Incompatible, InvalidShape};
use crate::filter::{Compatible, Contains, Edge, Insert, InsertShared, Remove, Union};
use crate::hash::{Digest, Digester, KeyOf, Portable};
use crate::raw::{Clear, Core, Endless, Make, Probe, RemoveEach, Shaped, TryClone};
use core::fmt;
use core::marker::PhantomData;

#[cfg(feature = "alloc")]
use alloc::{vec, vec::Vec};

/// A filter of keys `T`, hashed by `H`, around a core `C`.
///
/// The names for everyday use are aliases with a core filled in:
/// [`BloomFilter`](crate::BloomFilter), [`CuckooFilter`](crate::CuckooFilter) and all the others.
/// `T` may be unsized: a filter of `str` takes `&str` and `&String`, one of `[u8]` takes slices,
/// arrays and vectors.
pub struct Filter<T: ?Sized, H, C> {
    pub(crate) raw: C,
    pub(crate) hasher: H,
    pub(crate) keys: PhantomData<fn(&T)>,
}

/// Constructors with the default hasher.
impl<T: ?Sized, C: Make> Filter<T, Portable, C> {
    /// A filter for `capacity` keys at a false positive rate of at most `err_rate`.
    ///
    /// For a window filter, the capacity is the number of insertions in the window. For a stable
    /// filter, it is the number of further insertions after which nine of ten keys are still found.
    /// For a scalable filter, it is the initial size.
    ///
    /// # Panics
    ///
    /// Where [`try_new`](Self::try_new) returns an error: if `err_rate` is not above 0 and below 1,
    /// or the filter cannot be allocated.
    #[must_use]
    pub fn new(capacity: u64, err_rate: f64) -> Self {
        Self::with_hasher(capacity, err_rate, Portable::default())
    }

    /// A filter for `capacity` keys at a false positive rate of at most `err_rate`, like
    /// [`new`](Self::new), but returns an error instead of panicking.
    ///
    /// # Errors
    ///
    /// [`InvalidShape`] if `err_rate` is not above 0 and below 1 or too small, or if so large a
    /// filter cannot be represented or allocated.
    pub fn try_new(capacity: u64, err_rate: f64) -> Result<Self, InvalidShape> {
        Self::with(C::plan(capacity, err_rate)?, Portable::default())
    }
}

/// Constructors with a chosen hasher or shape.
impl<T: ?Sized, H, C: Make> Filter<T, H, C> {
    /// A filter for `capacity` keys at a false positive rate of at most `err_rate`, with this hasher.
    ///
    /// # Panics
    ///
    /// As `new`: if there is no such shape, or [`with`](Self::with) returns an error.
    #[must_use]
    pub fn with_hasher(capacity: u64, err_rate: f64, hasher: H) -> Self {
        C::plan(capacity, err_rate)
            .and_then(|shape| Self::with(shape, hasher))
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// A filter of this shape, with this hasher.
    ///
    /// # Errors
    ///
    /// [`InvalidShape`] if there is no memory for it, or the family does not accept the shape.
    pub fn with(shape: C::Shape, hasher: H) -> Result<Self, InvalidShape> {
        C::make(shape).map(|raw| Self::from_raw(raw, hasher))
    }
}

/// Access to the core.
impl<T: ?Sized, H, C> Filter<T, H, C> {
    /// Creates a filter from a core. `hasher` must be the hasher that produced the digests in the
    /// core. With any other hasher, the filter reports its keys absent.
    #[must_use]
    #[inline]
    pub const fn from_raw(raw: C, hasher: H) -> Self {
        Self { raw, hasher, keys: PhantomData }
    }

    /// The core: the filter without key type and hasher. See [`raw`](crate::raw).
    #[must_use]
    #[inline]
    pub const fn raw(&self) -> &C {
        &self.raw
    }

    /// The core, mutably. Digests that are inserted into it must come from the hasher of this
    /// filter.
    #[must_use]
    pub const fn raw_mut(&mut self) -> &mut C {
        &mut self.raw
    }

    /// Consumes the filter and returns its core.
    #[must_use]
    pub fn into_raw(self) -> C {
        self.raw
    }

    /// The hasher, which turns keys into digests.
    #[must_use]
    pub const fn hasher(&self) -> &H {
        &self.hasher
    }
}

/// The shape.
impl<T: ?Sized, H, C: Shaped> Filter<T, H, C> {
    /// The shape that this filter was built with.
    #[must_use]
    pub fn shape(&self) -> &C::Shape {
        self.raw.shape()
    }
}

/// Size.
impl<T: ?Sized, H, C: Core> Filter<T, H, C> {
    /// The memory of the words, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.raw.bytes()
    }
}

/// Look-ups.
impl<T: ?Sized, H, C: Probe> Filter<T, H, C> {
    /// Whether the key may be in the filter. `false` proves that the key was not inserted, or was
    /// removed or forgotten since. `true` is a false positive for a share of absent keys;
    /// [`expected_rate`](Self::expected_rate) is that share.
    #[must_use]
    #[inline]
    pub fn contains(&self, key: &T) -> bool
    where
        H: Digester<T, C::Digest>,
    {
        self.raw.probe(self.hasher.digest(key))
    }

    /// As [`contains`](Self::contains), for a digest that was computed elsewhere.
    #[must_use]
    #[inline]
    pub fn contains_digest(&self, digest: C::Digest) -> bool {
        self.raw.probe(digest)
    }

    /// As [`contains`](Self::contains), for many keys: `found[i]` is the answer for `keys[i]`.
    ///
    /// A batch is faster than single look-ups if the filter is larger than the cache, because the
    /// memory accesses of all its keys overlap.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[inline]
    pub fn contains_batch<A>(&self, keys: &[A], found: &mut [bool])
    where
        A: KeyOf<T>,
        H: Digester<A::Key, C::Digest>,
    {
        self.raw.probe_each(keys, |key| self.hasher.digest(key.key()), found);
    }

    /// As [`contains_batch`](Self::contains_batch), for digests that were computed elsewhere.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[inline]
    pub fn contains_digests(&self, digests: &[C::Digest], found: &mut [bool]) {
        self.raw.probe_each(digests, |digest| *digest, found);
    }

    /// As [`contains_batch`](Self::contains_batch), but returns the answers in a vector.
    ///
    /// ```
    /// use umbel::BloomFilter;
    ///
    /// let mut seen = BloomFilter::<str>::new(1_000, 0.01);
    /// seen.insert("a");
    /// assert_eq!(seen.contains_many(["a", "b"]), [true, false]);
    /// ```
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn contains_many<A>(&self, keys: impl IntoIterator<Item = A>) -> Vec<bool>
    where
        A: KeyOf<T>,
        H: Digester<A::Key, C::Digest>,
    {
        let digest = |key: A| self.hasher.digest(key.key());
        let digests: Vec<C::Digest> = keys.into_iter().map(digest).collect();
        let mut found = vec![false; digests.len()];
        self.contains_digests(&digests, &mut found);
        found
    }

    /// The false positive rate now: the share of absent keys that are found. In families that count
    /// set bits or cells, this reads the whole filter.
    #[must_use]
    pub fn expected_rate(&self) -> f64 {
        self.raw.rate()
    }
}

/// Insertion into filters that are never full.
impl<T: ?Sized, H, C: Endless> Filter<T, H, C> {
    /// Inserts a key. `true` proves that the key is new, or was removed or forgotten since. `false`
    /// means that [`contains`](Self::contains) already returned `true` for it.
    ///
    /// Beyond its capacity, the filter accepts more keys at a rising false positive rate.
    #[inline]
    pub fn insert(&mut self, key: &T) -> bool
    where
        H: Digester<T, C::Digest>,
    {
        self.raw.put(self.hasher.digest(key))
    }

    /// As [`insert`](Self::insert), for a digest that was computed elsewhere.
    #[inline]
    pub fn insert_digest(&mut self, digest: C::Digest) -> bool {
        self.raw.put(digest)
    }

    /// As [`insert`](Self::insert), for many keys in order: `fresh[i]` is the answer for `keys[i]`.
    /// A batch is faster than single insertions if the filter is larger than the cache.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[inline]
    pub fn insert_batch<A>(&mut self, keys: &[A], fresh: &mut [bool])
    where
        A: KeyOf<T>,
        H: Digester<A::Key, C::Digest>,
    {
        let Self { raw, hasher, .. } = self;
        raw.put_each(keys, |key| hasher.digest(key.key()), fresh);
    }

    /// As [`insert_batch`](Self::insert_batch), for digests that were computed elsewhere.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[inline]
    pub fn insert_digests(&mut self, digests: &[C::Digest], fresh: &mut [bool]) {
        self.raw.put_each(digests, |digest| *digest, fresh);
    }
}

/// Removal.
impl<T: ?Sized, H, C: RemoveEach> Filter<T, H, C> {
    /// Removes one insertion of a key. `false` proves that the key is absent; the filter is then
    /// unchanged.
    ///
    /// Remove only keys that were inserted. Removing a false positive damages the entry of another
    /// key, which the filter may then report absent.
    #[inline]
    pub fn remove(&mut self, key: &T) -> bool
    where
        H: Digester<T>,
    {
        self.raw.remove_digest(self.hasher.digest(key))
    }

    /// As [`remove`](Self::remove), for a digest that was computed elsewhere.
    #[inline]
    pub fn remove_digest(&mut self, digest: Digest) -> bool {
        self.raw.remove_digest(digest)
    }

    /// As [`remove`](Self::remove), for many keys in order: `removed[i]` is the answer for
    /// `keys[i]`. A batch is faster than single removals if the filter is larger than the cache.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[inline]
    pub fn remove_batch<A>(&mut self, keys: &[A], removed: &mut [bool])
    where
        A: KeyOf<T>,
        H: Digester<A::Key>,
    {
        let Self { raw, hasher, .. } = self;
        raw.remove_each(keys, |key| hasher.digest(key.key()), removed);
    }

    /// As [`remove_batch`](Self::remove_batch), for digests that were computed elsewhere.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[inline]
    pub fn remove_digests(&mut self, digests: &[Digest], removed: &mut [bool]) {
        self.raw.remove_each(digests, |digest| *digest, removed);
    }
}

/// Clearing.
impl<T: ?Sized, H, C: Clear> Filter<T, H, C> {
    /// Removes all keys.
    pub fn clear(&mut self) {
        self.raw.clear();
    }
}

/// Compatibility.
impl<T: ?Sized, H, C: Core + Compatible<C>> Filter<T, H, C> {
    /// Whether the two filters can be united or merged: their shapes and hashers map keys to the
    /// same positions. The two may use different storage. If this returns `false`, a union fails
    /// with [`Incompatible`], which says what differs, and changes nothing. If it returns `true`, a
    /// merge can still fail because there is no room.
    ///
    /// ```
    /// use umbel::{BloomFilter, Portable};
    ///
    /// let one = BloomFilter::<str>::new(1_000, 0.01);
    /// assert!(one.is_compatible(&BloomFilter::new(1_000, 0.01)));
    /// assert!(!one.is_compatible(&BloomFilter::new(2_000, 0.01)));
    /// assert!(!one.is_compatible(&BloomFilter::with_hasher(1_000, 0.01, Portable::seeded(7))));
    /// ```
    #[must_use]
    pub fn is_compatible<D>(&self, other: &Filter<T, H, D>) -> bool
    where
        C: Compatible<D>,
        H: Digester<T, C::Digest>,
    {
        self.compatible_with(other).is_ok()
    }

    /// As [`is_compatible`](Self::is_compatible), with the reason as an error.
    pub(crate) fn compatible_with<D>(&self, other: &Filter<T, H, D>) -> Result<(), Incompatible>
    where
        C: Compatible<D>,
        H: Digester<T, C::Digest>,
    {
        self.raw.compatible(&other.raw)?;
        same_hasher::<T, H, C::Digest>(&self.hasher, &other.hasher)
    }
}

/// Whether two hashers give the same digests.
pub(crate) fn same_hasher<T: ?Sized, H, D>(one: &H, other: &H) -> Result<(), Incompatible>
where
    H: Digester<T, D>,
{
    if one.check() == other.check() { Ok(()) } else { Err(Incompatible::Hasher) }
}

impl<T: ?Sized, H, C: Contains> Contains for Filter<T, H, C> {
    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.raw.contains_digest(digest)
    }

    #[inline]
    fn contains_digests(&self, digests: &[Digest], found: &mut [bool]) {
        self.raw.contains_digests(digests, found);
    }
}

impl<T: ?Sized, H: Digester<T>, C: Contains> Edge for Filter<T, H, C> {
    type Key = T;

    #[inline]
    fn digest(&self, key: &T) -> Digest {
        self.hasher.digest(key)
    }
}

impl<T: ?Sized, H, C: Insert> Insert for Filter<T, H, C> {
    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        self.raw.insert_digest(digest)
    }

    #[inline]
    fn insert_digests(&mut self, digests: &[Digest], fresh: &mut [bool]) -> Result<(), BatchFull> {
        self.raw.insert_digests(digests, fresh)
    }
}

impl<T: ?Sized, H, C: InsertShared> InsertShared for Filter<T, H, C> {
    #[inline]
    fn insert_digest(&self, digest: Digest) -> bool {
        self.raw.insert_digest(digest)
    }
}

impl<T: ?Sized, H, C: Remove> Remove for Filter<T, H, C> {
    #[inline]
    fn remove_digest(&mut self, digest: Digest) -> bool {
        self.raw.remove_digest(digest)
    }
}

/// Both the hashers and the cores must be compatible.
impl<T: ?Sized, H: Digester<T>, C: Union> Union for Filter<T, H, C> {
    fn fits(&self, other: &Self) -> Result<(), Incompatible> {
        self.raw.fits(&other.raw)?;
        same_hasher::<T, H, Digest>(&self.hasher, &other.hasher)
    }

    fn union_with(&mut self, other: &Self) -> Result<(), Incompatible> {
        self.fits(other)?;
        self.raw.union_with(&other.raw)
    }
}

/// Inserts the keys in order and in batches. It does not report which of them were new.
impl<A, T, H, C> Extend<A> for Filter<T, H, C>
where
    A: KeyOf<T>,
    T: ?Sized,
    H: Digester<A::Key, C::Digest>,
    C: Endless,
{
    fn extend<I: IntoIterator<Item = A>>(&mut self, keys: I) {
        let Self { raw, hasher, .. } = self;
        raw.put_all(keys.into_iter().map(|key| hasher.digest(key.key())));
    }
}

/// Copies where memory may run out.
impl<T: ?Sized, H: Clone, C: TryClone> Filter<T, H, C> {
    /// As [`clone`](Clone::clone), but returns an error if the allocator refuses, where `clone`
    /// panics. For processes that must survive this, such as a database server with this filter in
    /// it.
    ///
    /// # Errors
    ///
    /// [`InvalidShape::OutOfMemory`] if there is no memory for the copy.
    #[doc(hidden)]
    pub fn try_clone(&self) -> Result<Self, InvalidShape> {
        Ok(Self { raw: self.raw.try_clone()?, hasher: self.hasher.clone(), keys: PhantomData })
    }
}

impl<T: ?Sized, H: Clone, C: Clone> Clone for Filter<T, H, C> {
    fn clone(&self) -> Self {
        Self { raw: self.raw.clone(), hasher: self.hasher.clone(), keys: PhantomData }
    }
}

/// Equal filters give equal answers: their cores and their hashers are equal. Two different sets of
/// keys may produce equal filters.
impl<T: ?Sized, H: Digester<T, C::Digest>, C: Core + PartialEq> PartialEq for Filter<T, H, C> {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw && self.hasher.check() == other.hasher.check()
    }
}

impl<T: ?Sized, H: Digester<T, C::Digest>, C: Core + Eq> Eq for Filter<T, H, C> {}

impl<T: ?Sized, H: fmt::Debug, C: Core> fmt::Debug for Filter<T, H, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = f.debug_struct(C::NAME);
        self.raw.describe(&mut lines);
        lines.field("hasher", &self.hasher).finish()
    }
}

/// Insertion into filters of a core that may be full. One `impl` for all such cores would collide
/// with the methods of the same names for cores that are never full. Each family also documents
/// when it is full.
macro_rules! insert_or_full {
    (impl[$($generics:tt)*] $core:ty; new = $new:literal; full = $full:literal) => {
        /// Insertion. It fails if there is no room: [`Full`](crate::Full).
        impl<T: ?Sized, H, $($generics)*> $crate::Filter<T, H, $core> {
            #[doc = $new]
            ///
            /// # Errors
            ///
            #[doc = $full]
            #[inline]
            pub fn insert(&mut self, key: &T) -> Result<bool, $crate::Full>
            where
                H: $crate::hash::Digester<T>,
            {
                $crate::Insert::insert_digest(&mut self.raw, self.hasher.digest(key))
            }

            /// As [`insert`](Self::insert), for a digest that was computed elsewhere.
            ///
            /// # Errors
            ///
            /// As [`insert`](Self::insert).
            #[inline]
            pub fn insert_digest(&mut self, digest: $crate::Digest) -> Result<bool, $crate::Full> {
                $crate::Insert::insert_digest(&mut self.raw, digest)
            }

            /// As [`insert`](Self::insert), for many keys in order: `fresh[i]` is the answer for
            /// `keys[i]`. A batch is faster than single insertions if the filter is larger than the
            /// cache.
            ///
            /// # Errors
            ///
            /// [`BatchFull`](crate::BatchFull) if there is no room for one of them. The keys before
            /// it are inserted. It and the keys after it are not inserted, and their answers are
            /// `false`.
            ///
            /// # Panics
            ///
            /// If the two slices differ in length.
            #[inline]
            pub fn insert_batch<A>(
                &mut self,
                keys: &[A],
                fresh: &mut [bool],
            ) -> Result<(), $crate::BatchFull>
            where
                A: $crate::KeyOf<T>,
                H: $crate::hash::Digester<A::Key>,
            {
                let Self { raw, hasher, .. } = self;
                raw.insert_each(keys, |key| hasher.digest(key.key()), fresh)
            }

            /// As [`insert_batch`](Self::insert_batch), for digests that were computed elsewhere.
            ///
            /// # Errors
            ///
            /// As [`insert_batch`](Self::insert_batch).
            ///
            /// # Panics
            ///
            /// If the two slices differ in length.
            #[inline]
            pub fn insert_digests(
                &mut self,
                digests: &[$crate::Digest],
                fresh: &mut [bool],
            ) -> Result<(), $crate::BatchFull> {
                self.raw.insert_each(digests, |digest| *digest, fresh)
            }
        }
    };
}
pub(crate) use insert_or_full;

/// Forwards the methods of a core to its filters, so that each method and its documentation are
/// written once.
macro_rules! for_core_and_filter {
    (impl[$($generics:tt)*] $core:ty { $($methods:tt)* }) => {
        impl<$($generics)*> $core {
            $($methods)*
        }

        impl<T: ?Sized, H, $($generics)*> $crate::Filter<T, H, $core> {
            $crate::edge::for_core_and_filter!(@ $($methods)*);
        }
    };
    (@ $(#[$meta:meta])* pub fn $name:ident(&self $(, $arg:ident: $type:ty)*) $(-> $ret:ty)?
        $body:block $($rest:tt)*
    ) => {
        $(#[$meta])*
        #[inline]
        pub fn $name(&self $(, $arg: $type)*) $(-> $ret)? {
            self.raw.$name($($arg),*)
        }
        $crate::edge::for_core_and_filter!(@ $($rest)*);
    };
    (@ $(#[$meta:meta])* pub fn $name:ident(&mut self $(, $arg:ident: $type:ty)*) $(-> $ret:ty)?
        $body:block $($rest:tt)*
    ) => {
        $(#[$meta])*
        #[inline]
        pub fn $name(&mut self $(, $arg: $type)*) $(-> $ret)? {
            self.raw.$name($($arg),*)
        }
        $crate::edge::for_core_and_filter!(@ $($rest)*);
    };
    (@) => {};
}
pub(crate) use for_core_and_filter;
