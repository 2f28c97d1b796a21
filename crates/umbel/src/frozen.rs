//! Filters for static sets: built once from all keys, then only queried.
//!
//! ```text
//!     keys --digest--> gathered --solve--> bits --check--> filter
//!                                  ^  |
//!                                  `--'  the digests mixed in another way, if there is no solution
//! ```
//!
//! A key has a fingerprint of r bits, where 2<sup>−r</sup> is at most the false positive rate. The
//! fingerprint is the exclusive or of entries in a few places, and the digest determines the
//! places. Building solves this system of equations for all keys, so all keys must be known. The
//! families differ in the places:
//!
//! | family | places | bits for each of the r |
//! |---|---|---|
//! | [`xor`](crate::xor) | three, anywhere | 1.23 |
//! | [`fuse`](crate::fuse) | three or four, in segments side by side | 1.13, 1.08 |
//! | [`ribbon`](crate::ribbon) | about half of 64 bits side by side | 1.003 |
//!
//! The operations of these filters are written once, for any arrangement.
//!
//! Each key is digested once, when it is read. Equal keys, and keys with equal digests, count once.
//! If the system has no solution, the digests are mixed differently and the construction is
//! repeated, at most a hundred times.
//!
//! # Memory
//!
//! Building from a million keys or more takes at most 165 bits per key at rates down to
//! 2<sup>−8</sup>, including the filter. [`peak_bytes`](crate::Filter::peak_bytes) returns the
//! maximum in bytes for any number of keys. [`Build::memory_limit`] sets a limit, beyond which
//! building fails.

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

/// The places of the fingerprint of a key, and the algorithm that solves for them. Sealed, like
/// storage.
#[doc(hidden)]
pub trait Arrangement: 'static {
    /// The shape of such a filter: everything a look-up needs except the words.
    type Shape: sizing::Shape;

    /// The name of the filter for everyday use.
    const NAME: &'static str;

    /// The bits of a fingerprint, r: the rate is 2<sup>−r</sup>.
    fn fingerprint_bits(shape: &Self::Shape) -> u32;

    /// The maximum number of bytes that are needed to build a filter of `items` keys with `bits`
    /// bits each: the digests, the work space and the filter. `u64::MAX` if the number does not
    /// fit.
    fn peak_bytes(items: u64, bits: u32) -> u64;

    /// Builds the filter of these digests, some of which may be equal.
    ///
    /// # Errors
    ///
    /// [`BuildError::Shape`] if the filter would be too large, there is no memory, or digests
    /// cannot give so small a rate for this number of keys. [`BuildError::Attempts`] if there is no
    /// solution.
    fn build(
        digests: Gathered,
        bits: u32,
        work: &Work<'_>,
    ) -> Result<(Self::Shape, Heap), BuildError>;

    /// Whether the entries of a digest give its fingerprint.
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

/// The core of a filter for a static set, with its words in `S`, in an arrangement `A`.
pub struct RawFrozen<A: Arrangement, S = Heap> {
    shape: A::Shape,
    pub(crate) storage: S,
}

/// A filter of keys `T`, hashed by `H`, for a static set, in an arrangement `A`. Use it as
/// [`XorFilter`](crate::XorFilter), [`BinaryFuseFilter`](crate::BinaryFuseFilter) or
/// [`RibbonFilter`](crate::RibbonFilter).
pub type Frozen<T, H, A, S = Heap> = Filter<T, H, RawFrozen<A, S>>;

/// Building with the default hasher.
impl<T: ?Sized, A: Arrangement> Filter<T, Portable, RawFrozen<A>> {
    /// Builds the filter of these keys. It answers `true` for all of them, and for other keys with
    /// a probability of at most `err_rate`.
    ///
    /// # Errors
    ///
    /// [`BuildError::Shape`] if `err_rate` is not above 0 and below 1, too small, or there is no
    /// memory. The other variants do not occur here.
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
    /// As `build`, with the options of a [`Build`].
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

    /// As [`build_with`](Self::build_with), from a source of keys that may fail. The first error
    /// ends the build.
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

    /// As [`build_with`](Self::build_with), from digests that were computed elsewhere. They must be
    /// those that the hasher gives.
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

    /// The maximum number of bytes that are needed to build a filter of `items` keys at this rate,
    /// including the filter. [`Build::checked`] adds 8 bytes per key.
    ///
    /// # Errors
    ///
    /// If the rate is not valid, or below 2<sup>−32</sup>.
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

/// How many keys are read between two progress reports.
const REPORT: usize = 1 << 16;

/// Collects all digests, with additional data if there is any, if building from them stays within
/// the memory limit. `peak` computes the memory that is needed. Keys beyond the limit are still
/// counted, so that the error can state the memory that would be needed.
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

    /// The rate is 2<sup>−r</sup> for fingerprints of r bits, or 0 if the filter is empty.
    fn rate(&self) -> f64 {
        self.shape.expected_rate(self.shape.items())
    }
}

for_core_and_filter! { impl[A: Arrangement, S: Storage<Word = u64>] RawFrozen<A, S> {
    /// The number of keys that the filter was built from, equal keys counted once.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.shape.items()
    }

    /// Whether the filter was built from no keys. It then answers `false` for every key.
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
    /// The same filter, borrowing the words.
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

/// Equal if all bits are equal.
impl<A: Arrangement, S: Storage<Word = u64>> PartialEq for RawFrozen<A, S> {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape && self.storage.words() == other.storage.words()
    }
}

impl<A: Arrangement, S: Storage<Word = u64>> Eq for RawFrozen<A, S> {}
