//! Sets that do not change: filters that are built at once from all their keys, and then only asked.
//!
//! ```text
//!     keys --digest--> gathered --solve--> bits --check--> filter
//!                                  ^  |
//!                                  `--'  the digests mixed in another way, if there is no solution
//! ```
//!
//! A key has r bits here, with 2<sup>−r</sup> at most the rate. They are the exclusive or of bits
//! that stand in a few places, and the places are found from the digest. Building is solving
//! that system of equations for all keys, which is why all of them must be there. The families differ
//! in where the places are:
//!
//! | family | places | bits for each of the r |
//! |---|---|---|
//! | [`xor`](crate::xor) | three, anywhere | 1.23 |
//! | [`fuse`](crate::fuse) | three or four, in segments side by side | 1.13, 1.08 |
//! | [`ribbon`](crate::ribbon) | about half of 64 bits side by side | 1.003 |
//!
//! What such a filter can do is written once, for any arrangement.
//!
//! Keys are digested once, as they are read. Equal keys, and keys with equal digests, count once. If
//! there is no solution the digests are mixed in another way, at most a hundred times.
//!
//! # Memory
//!
//! Building from a million keys or more takes at most 165 bits a key at rates down to
//! 2<sup>−8</sup>, the filter included. [`peak_bytes`](crate::Filter::peak_bytes) tells how many bytes it may be for any
//! number of keys, and [`Build::memory_limit`] refuses more.

mod batch;
mod build;
mod bytes;
mod hashes;
pub(crate) mod peel;
mod peeled;

pub use build::{Build, BuildError, MAX_BITS, Progress, Stage, Work};
pub(crate) use build::{MAX_ATTEMPTS, bits_for_rate, check_fingerprint, longest};
pub use bytes::StoredArrangement;
pub use peeled::{EntryJob, Map, Peeled, Shape};

use crate::edge::{Filter, for_core_and_filter};
use crate::error::InvalidShape;
use crate::hash::{Digest, Digester, KeyOf, Portable};
use crate::parts::gather::Gathered;
use crate::raw::{Probe, describe};
use crate::sizing::{self, Shape as _};
use crate::storage::{Heap, Own, Storage};

/// Where the bits of a key are, and how they are found for a whole set. Sealed, as storage is.
#[doc(hidden)]
pub trait Arrangement: 'static {
    /// The plan of such a filter: all that must be known to ask it, but for its words.
    type Shape: sizing::Shape;

    /// The everyday name of the filter.
    const NAME: &'static str;

    /// The bits of a fingerprint: the rate is 2 to minus that many.
    fn fingerprint_bits(shape: &Self::Shape) -> u32;

    /// How many bytes of memory it takes at most to build a filter of `items` keys with `bits` bits
    /// each: the digests, the work space and the filter. `u64::MAX` where it is more.
    fn peak_bytes(items: u64, bits: u32) -> u64;

    /// The filter of these digests, some of which may be equal.
    ///
    /// # Errors
    ///
    /// [`BuildError::Shape`] if the filter would be too large, there is no memory, or digests cannot
    /// give so small a rate for so many keys; [`BuildError::Attempts`] if there is no solution.
    fn build(
        digests: Gathered,
        bits: u32,
        work: &Work<'_>,
    ) -> Result<(Self::Shape, Heap), BuildError>;

    /// Whether the bits of a digest are what they should be.
    fn contains(shape: &Self::Shape, words: &[u64], digest: Digest) -> bool;

    /// As [`contains`](Self::contains) for each key.
    fn contains_batch<K>(
        shape: &Self::Shape,
        words: &[u64],
        keys: &[K],
        digest: impl Fn(&K) -> Digest,
        found: &mut [bool],
    );
}

/// The core of a filter for a set that does not change: its words are in `S`, in an arrangement `A`.
pub struct RawFrozen<A: Arrangement, S = Heap> {
    shape: A::Shape,
    pub(crate) storage: S,
}

/// A filter of keys `T`, hashed by `H`, for a set that does not change, in an arrangement `A`. Use it as
/// [`XorFilter`](crate::XorFilter), [`BinaryFuseFilter`](crate::BinaryFuseFilter) or
/// [`RibbonFilter`](crate::RibbonFilter).
pub type Frozen<T, H, A, S = Heap> = Filter<T, H, RawFrozen<A, S>>;

/// Building, with the default hasher.
impl<T: ?Sized, A: Arrangement> Filter<T, Portable, RawFrozen<A>> {
    /// The filter of these keys. It answers `true` for all of them, and for other keys with a
    /// probability of at most `err_rate`.
    ///
    /// # Errors
    ///
    /// [`BuildError::Shape`] if `err_rate` is not above 0 and below 1, too small, or there is no
    /// memory; the others do not happen here.
    pub fn build<K>(keys: impl IntoIterator<Item = K>, err_rate: f64) -> Result<Self, BuildError>
    where
        K: KeyOf<T>,
        Portable: Digester<K::Key>,
    {
        Self::build_with(Build::new(err_rate), keys)
    }
}

/// Building.
impl<T: ?Sized, H, A: Arrangement> Filter<T, H, RawFrozen<A>> {
    /// As `build`, in this way.
    ///
    /// # Errors
    ///
    /// See [`BuildError`].
    pub fn build_with<K>(
        how: Build<'_, H>,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Self, BuildError>
    where
        K: KeyOf<T>,
        H: Digester<K::Key>,
    {
        Self::try_build_with(how, keys.into_iter().map(Ok))
    }

    /// As [`build_with`](Self::build_with), from keys that may fail to come. The first error ends it.
    ///
    /// # Errors
    ///
    /// See [`BuildError`].
    pub fn try_build_with<K, E>(
        how: Build<'_, H>,
        keys: impl IntoIterator<Item = Result<K, E>>,
    ) -> Result<Self, BuildError<E>>
    where
        K: KeyOf<T>,
        H: Digester<K::Key>,
    {
        let hasher = &how.hasher;
        let digest = |key: K| hasher.digest(key.key()).bits();
        let raw = RawFrozen::of_digests(&how, keys.into_iter().map(|key| key.map(digest)))?;
        Ok(Self::from_raw(raw, how.hasher))
    }

    /// As [`build_with`](Self::build_with), from keys that were digested elsewhere, by what gives the
    /// same digests as the hasher.
    ///
    /// # Errors
    ///
    /// See [`BuildError`].
    pub fn build_from_digests(
        how: Build<'_, H>,
        digests: impl IntoIterator<Item = Digest>,
    ) -> Result<Self, BuildError> {
        let digests = digests.into_iter().map(|digest| Ok(digest.bits()));
        let raw = RawFrozen::of_digests(&how, digests)?;
        Ok(Self::from_raw(raw, how.hasher))
    }

    /// How many bytes of memory it takes at most to build a filter of `items` keys at this rate, the
    /// filter included; [`Build::checked`] adds 8 a key.
    ///
    /// # Errors
    ///
    /// If the rate is not one, or below 2<sup>−32</sup>.
    pub fn peak_bytes(items: u64, err_rate: f64) -> Result<u64, InvalidShape> {
        Ok(A::peak_bytes(items, build::bits_for_rate(err_rate)?))
    }
}

impl<A: Arrangement> RawFrozen<A> {
    fn of_digests<H, E>(
        how: &Build<'_, H>,
        digests: impl Iterator<Item = Result<u64, E>>,
    ) -> Result<Self, BuildError<E>> {
        let bits = how.bits()?;
        let gathered = gather(how, |items| A::peak_bytes(items, bits), digests)?;
        let kept = how.checked.then(|| gathered.clone());
        let (shape, storage) = A::build(gathered, bits, &how.work).map_err(BuildError::widen)?;
        let core = Self { shape, storage };
        if let Some(digests) = kept {
            core.check(digests, &how.work).map_err(BuildError::widen)?;
        }
        Ok(core)
    }

    fn check(&self, digests: Gathered, work: &Work<'_>) -> Result<(), BuildError> {
        let total = digests.len() as u64;
        let (mut done, mut lost) = (0, 0);
        let mut found = alloc::vec::Vec::new();
        for chunk in digests.into_chunks() {
            found.resize(chunk.len(), false);
            self.probe_each(&chunk, |bits| Digest::new(*bits), &mut found);
            lost += found.iter().filter(|found| !**found).count() as u64;
            done += chunk.len() as u64;
            work.tell(Stage::Checking, done, Some(total));
        }
        if lost == 0 { Ok(()) } else { Err(BuildError::Lost { keys: lost }) }
    }
}

/// How many keys are read between two reports.
const REPORT: usize = 1 << 16;

/// All digests, or digests and more, if building from them stays within its limit; `peak` tells what it
/// takes. The keys that are too many are counted still, to tell what would have been needed.
pub(crate) fn gather<N: Default, H, E>(
    how: &Build<'_, H>,
    peak: impl Fn(u64) -> u64,
    digests: impl Iterator<Item = Result<N, E>>,
) -> Result<Gathered<N>, BuildError<E>> {
    let kept = if how.checked { size_of::<N>() as u64 } else { 0 };
    let peak = |items: u64| peak(items).saturating_add(items.saturating_mul(kept));
    let total = digests.size_hint().1.map(|most| most as u64);
    let mut gathered = Gathered::default();
    let mut digests = digests.enumerate();
    for (number, digest) in &mut digests {
        if number % REPORT == 0 {
            how.work.tell(Stage::Reading, number as u64, total);
            if peak(number as u64 + 1) > how.memory {
                drop(gathered);
                let items = number as u64 + 1 + digests.count() as u64;
                return Err(BuildError::Memory { needed: peak(items), limit: how.memory });
            }
        }
        let digest = digest.map_err(BuildError::Source)?;
        gathered.push(digest).map_err(|_| InvalidShape::OutOfMemory {
            bytes: (gathered.len() as u64 + 1).saturating_mul(size_of::<N>() as u64),
        })?;
    }
    let items = gathered.len() as u64;
    how.work.tell(Stage::Reading, items, Some(items));
    if peak(items) > how.memory {
        return Err(BuildError::Memory { needed: peak(items), limit: how.memory });
    }
    Ok(gathered)
}

describe! {
    impl[A: Arrangement, S] RawFrozen<A, S>: A::Shape, Digest, A::NAME, |this| this.shape.words() * 8;
    len: this.shape.items(),
    fingerprint_bits: A::fingerprint_bits(&this.shape),
    bytes: this.bytes(),
}

impl<A: Arrangement, S: Storage<Word = u64>> Probe for RawFrozen<A, S> {
    #[inline(always)]
    fn probe(&self, digest: Digest) -> bool {
        A::contains(&self.shape, self.storage.words(), digest)
    }

    #[inline]
    fn probe_each<K>(&self, keys: &[K], digest: impl Fn(&K) -> Digest, found: &mut [bool]) {
        A::contains_batch(&self.shape, self.storage.words(), keys, digest, found);
    }

    /// 2 to minus the bits of a fingerprint, or 0 if it is empty.
    fn rate(&self) -> f64 {
        self.shape.expected_rate(self.shape.items())
    }
}

for_core_and_filter! { impl[A: Arrangement, S: Storage<Word = u64>] RawFrozen<A, S> {
    /// How many keys it was built from, equal ones counted once.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.shape.items()
    }

    /// Whether it was built from no key. It answers `false` for every key then.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The words.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        self.storage.words()
    }
} }

impl<T: ?Sized, H, A: Arrangement, S: Storage<Word = u64>> Filter<T, H, RawFrozen<A, S>> {
    /// The same filter, whose words stay where they are.
    #[must_use]
    pub fn borrowed(&self) -> Filter<T, &H, RawFrozen<A, Own<&[u64]>>> {
        let raw = RawFrozen { shape: self.raw.shape, storage: Own(self.raw.storage.words()) };
        Filter::from_raw(raw, &self.hasher)
    }
}

impl<A: Arrangement, S: Clone> Clone for RawFrozen<A, S> {
    fn clone(&self) -> Self {
        Self { shape: self.shape, storage: self.storage.clone() }
    }
}

/// Same bits.
impl<A: Arrangement, S: Storage<Word = u64>> PartialEq for RawFrozen<A, S> {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape && self.storage.words() == other.storage.words()
    }
}

impl<A: Arrangement, S: Storage<Word = u64>> Eq for RawFrozen<A, S> {}
