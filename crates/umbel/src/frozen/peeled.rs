//! Filters that are solved by peeling: [`xor`](crate::xor) and [`fuse`](crate::fuse).
//!
//! ```text
//!     digest * m  =  [ shard | hash in the shard                    | ..... ]
//!                        |     |-> three or four places, fingerprint
//!                        v
//!     words          [ shard 0 | shard 1 | shard 2 | shard 3 ]   all of one size
//! ```
//!
//! A large set is cut into shards of about a million keys, by the topmost bits of the hash. Solving
//! then needs the memory of a few shards only, and threads can work on one shard each. The bits do
//! not depend on the number of threads. They do not depend on the order of keys either, because
//! only sums of hashes are used.

use super::batch::{Steps, batch};
use super::hashes::Hashes;
use super::peel::{COUNT, EntryPlaces, MAX_PLACES, Peeler, fingerprint};
use super::{
    Arrangement, BuildError, MAX_ATTEMPTS, MAX_BITS, Stage, StoredArrangement, Work, bits_for_rate,
    check_fingerprint, longest,
};
use crate::error::{InvalidBytes, InvalidShape};
use crate::format::Header;
use crate::hash::Digest;
use crate::parts::entries::{Byte, EntryWidth, PackedEntry, words_for};
use crate::parts::gather::{self, Gathered};
use crate::sizing::{self, getters, shape};
use crate::storage::{Allocate, Heap, StorageMut};
use core::fmt;
use core::marker::PhantomData;

/// The places of the entries of a key in a shard. Sealed.
#[doc(hidden)]
pub trait Map: Copy + fmt::Debug + PartialEq + Send + Sync + 'static {
    /// The name of the filter for everyday use.
    const NAME: &'static str;

    /// The number of the family in a header, and the number of its places function.
    #[doc(hidden)]
    const FAMILY: u16;
    #[doc(hidden)]
    const KERNELS: u16;

    /// Shards have fewer keys than this; if there are several, at least half of it.
    const SHARD: u64;

    /// For this many keys, or a few more.
    #[doc(hidden)]
    fn for_keys(keys: u64) -> Self;

    /// The number of entries.
    fn entries(&self) -> u64;

    /// The fields of a header: the length of a segment, or 0, and the length of a third or of all
    /// segments that can be the first.
    #[doc(hidden)]
    fn fields(&self) -> [u64; 2];

    /// The map that these fields of a header describe.
    #[doc(hidden)]
    fn restore(segment: u64, length: u64) -> Option<Self>;

    /// Runs an operation with the places of keys.
    #[doc(hidden)]
    fn with<J: EntryJob>(&self, job: J) -> J::Output;
}

/// An operation with the places of keys, generic over how they are computed.
#[doc(hidden)]
pub trait EntryJob {
    /// The result.
    type Output;

    /// Runs the operation. Must be `#[inline(always)]`.
    #[doc(hidden)]
    #[allow(private_bounds, reason = "only this crate has jobs")]
    fn run<const ARITY: usize>(self, places: impl EntryPlaces<ARITY>) -> Self::Output;
}

/// The shape of a filter that is solved by peeling, whose entries are found by a `Map`.
///
/// ```
/// use umbel::fuse::Shape;
///
/// let shape = Shape::for_rate(1_000_000, 0.01)?;
/// assert_eq!(shape.fingerprint_bits(), 7); // 2^-7 is below 1 %
/// assert!(shape.bits_per_key() < 7.95);
/// # Ok::<(), umbel::InvalidShape>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape<M> {
    items: u64,
    bits: u32,
    /// The number of topmost bits of a hash that select the shard.
    shard_bits: u32,
    /// The number of entries of a shard: whole words of them, if there are several shards.
    entries: u64,
    map: M,
    entry: EntryForm,
    attempts: u32,
    multiplier: u64,
}

/// An upper bound on the shard bits of any filter.
const MAX_SHARD_BITS: u32 = 40;

/// How entries are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryForm {
    /// There are no entries.
    None,
    /// Each as a byte.
    Byte,
    /// Each in its bits, without gaps.
    PackedEntry,
}

impl<M: Map> Shape<M> {
    /// For `items` different keys at this error rate.
    ///
    /// # Errors
    ///
    /// If the rate is not valid, is below 2<sup>−32</sup>, or the filter would be too large.
    pub fn for_rate(items: u64, rate: f64) -> Result<Self, InvalidShape> {
        Self::for_bits(items, bits_for_rate(rate)?)
    }

    /// The filter with the longest fingerprints for `items` different keys in at most `bytes` bytes.
    ///
    /// # Errors
    ///
    /// If there is not enough memory for fingerprints of one bit.
    pub fn for_memory(items: u64, bytes: u64) -> Result<Self, InvalidShape> {
        longest(bytes, |bits| Self::for_bits(items, bits))
    }

    /// For `items` different keys with fingerprints of `bits` bits.
    ///
    /// # Errors
    ///
    /// If `bits` is not from 1 to [`MAX_BITS`], or the filter would be too large.
    pub fn for_bits(items: u64, bits: u32) -> Result<Self, InvalidShape> {
        check_fingerprint(bits)?;
        Self::with_slack(items, bits, 0)
    }

    /// With more entries, for a set that fewer could not solve.
    fn with_slack(items: u64, bits: u32, slack: u64) -> Result<Self, InvalidShape> {
        let shard_bits = shard_bits(items, M::SHARD);
        let keys = capacity(items, shard_bits);
        Self::with_map(items, bits, shard_bits, M::for_keys(keys + keys / 32 * slack + slack))
    }

    /// With this map of entries in each shard.
    fn with_map(items: u64, bits: u32, shard_bits: u32, map: M) -> Result<Self, InvalidShape> {
        const MAX: u64 = sizing::MAX_BITS;
        // A shard then has whole words for any width of entries.
        let unit = if shard_bits == 0 { 1 } else { 64 };
        let entries = map.entries().next_multiple_of(unit);
        debug_assert!(entries <= MAX_PLACES);
        let entry = match bits {
            _ if items == 0 => EntryForm::None,
            8 => EntryForm::Byte,
            _ => EntryForm::PackedEntry,
        };
        let needed = entries.saturating_mul(u64::from(bits)).saturating_mul(1 << shard_bits);
        if needed > MAX - 128 {
            return Err(InvalidShape::TooLarge { bits: needed, max: MAX });
        }
        Ok(Self { items, bits, shard_bits, entries, map, entry, attempts: 1, multiplier: 1 })
    }

    /// The same shape, for the hashes of this attempt.
    fn mixed(self, seed: u64, attempt: u32) -> Self {
        // Well mixed, so that the multipliers of two attempts are unrelated; and odd.
        let seed = Digest::mixed(seed).bits() ^ u64::from(attempt);
        Self { attempts: attempt + 1, multiplier: Digest::mixed(seed).bits() | 1, ..self }
    }

    getters! {
        /// The number of different keys.
        items: u64;
    }

    /// The bits of a fingerprint, and of an entry, r: the rate is 2<sup>−r</sup>.
    #[must_use]
    pub const fn fingerprint_bits(&self) -> u32 {
        self.bits
    }

    /// The number of bits of all entries.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        if self.items == 0 { 0 } else { (self.entries << self.shard_bits) * self.bits as u64 }
    }

    /// How many shards there are: a power of two.
    #[must_use]
    pub const fn shards(&self) -> u64 {
        1 << self.shard_bits
    }

    /// The map from a hash to entries in a shard.
    #[must_use]
    pub const fn map(&self) -> &M {
        &self.map
    }

    /// The number of 64-bit words.
    #[must_use]
    pub const fn words(&self) -> u64 {
        if self.items == 0 { 0 } else { words_for(self.entries << self.shard_bits, self.bits) }
    }

    getters! {
        /// How many constructions were needed; 1 in a shape without a filter.
        attempts: u32;
    }

    /// The error rate of a filter of `items` keys, planned or not: the share of absent keys whose
    /// fingerprints agree by chance, or whose hash equals that of a key of their shard in the 59
    /// bits that are used.
    #[must_use]
    pub const fn expected_rate(&self, items: u64) -> f64 {
        if items == 0 {
            return 0.0;
        }
        let equal = (items >> self.shard_bits) as f64 / (1_u64 << COUNT.leading_zeros()) as f64;
        1.0 / (1_u64 << self.bits) as f64 + equal
    }

    /// The first entry of a key's shard, and the key's hash in it.
    #[inline(always)]
    fn locate(&self, digest: Digest) -> (u64, u64) {
        let hash = digest.bits().wrapping_mul(self.multiplier);
        // This saves small filters some instructions of about fifty.
        if self.shard_bits == 0 {
            return (0, hash & !COUNT);
        }
        let hash = hash.rotate_left(self.shard_bits);
        let shard = hash & ((1 << self.shard_bits) - 1);
        (shard * self.entries, hash & !COUNT)
    }

    /// The number of topmost bits by which hashes are sorted, so that the places of a part fit into
    /// the cache.
    fn part_bits(&self) -> u32 {
        let few = (self.items >> 14).max(1).ilog2();
        few.clamp(self.shard_bits, self.shard_bits.max(12))
    }

    fn parts(&self, shard: u64) -> core::ops::Range<usize> {
        let bits = self.part_bits() - self.shard_bits;
        (shard << bits) as usize..((shard + 1) << bits) as usize
    }
}

shape!(impl[M: Map] Shape<M>, M::NAME);

/// How many bits select the shard if each has fewer than `most` keys.
fn shard_bits(items: u64, most: u64) -> u32 {
    let mut bits = 0;
    while items >> bits >= most {
        bits += 1;
    }
    bits
}

/// The number of keys a shard has room for: three standard deviations above the mean.
fn capacity(items: u64, shard_bits: u32) -> u64 {
    let mean = items.div_ceil(1 << shard_bits);
    if shard_bits == 0 { mean } else { mean + 3 * (mean.isqrt() + 1) }
}

/// How many shards may be solved at the same time within the memory of the build.
fn most_at_once(shards: u64) -> u64 {
    (shards * 3 / 4).max(1)
}

/// The arrangement of a filter that is solved by peeling.
#[derive(Debug)]
pub struct Peeled<M>(PhantomData<M>);

impl<M: Map> Arrangement for Peeled<M> {
    type Shape = Shape<M>;

    const NAME: &'static str = M::NAME;

    fn fingerprint_bits(shape: &Shape<M>) -> u32 {
        shape.bits
    }

    fn peak_bytes(items: u64, bits: u32) -> u64 {
        let Ok(shape) = Shape::<M>::for_bits(items, bits) else {
            return u64::MAX;
        };
        let parts = (2_u64 << shape.part_bits()) * 4;
        let chunks = items.div_ceil(gather::CHUNK as u64);
        let digests = items.saturating_mul(8).saturating_add(chunks.saturating_mul(parts + 128));
        let keys = capacity(items, shape.shard_bits);
        let peeler = Peeler::bytes(keys, shape.entries);
        let all = if shape.shard_bits == 0 {
            // The digests are freed before the filter is allocated.
            digests.max(shape.bytes()).saturating_add(peeler)
        } else {
            let peelers = peeler.saturating_mul(most_at_once(shape.shards()));
            digests.saturating_add(shape.bytes()).saturating_add(peelers)
        };
        // Or while keys are read, hashes are sorted, or duplicates are removed.
        all.max(digests.saturating_mul(2)).max(gather::bytes(items)).saturating_add(64)
    }

    fn build(
        digests: Gathered,
        bits: u32,
        work: &Work<'_>,
    ) -> Result<(Self::Shape, Heap), BuildError> {
        let mut hashes = Hashes::of(digests);
        let (mut unique, mut slack) = (false, 0);
        for attempt in 0..MAX_ATTEMPTS {
            let shape = Shape::with_slack(hashes.len(), bits, slack / 4)?;
            let shape = shape.mixed(work.seed, attempt);
            hashes.mix(shape.multiplier, shape.part_bits(), work.parallel)?;
            if let Some(words) = solve(&shape, &mut hashes, work)? {
                return Ok((shape, words));
            }
            // Equal hashes are never alone. If there are none, the attempt failed by chance; after
            // several such failures, entries are added.
            if unique {
                slack += 1;
            } else {
                hashes.remove_equal()?;
                unique = true;
            }
        }
        Err(BuildError::Attempts { attempts: MAX_ATTEMPTS })
    }

    #[inline(always)]
    fn contains(shape: &Self::Shape, words: &[u64], digest: Digest) -> bool {
        let Shape { ref map, bits, .. } = *shape;
        match shape.entry {
            EntryForm::Byte => map.with(OneLookUp { shape, words, digest, width: Byte }),
            EntryForm::PackedEntry => {
                map.with(OneLookUp { shape, words, digest, width: PackedEntry { bits } })
            }
            EntryForm::None => false,
        }
    }

    fn contains_batch<K>(
        shape: &Self::Shape,
        words: &[u64],
        keys: &[K],
        digest: impl Fn(&K) -> Digest,
        found: &mut [bool],
    ) {
        let Shape { ref map, bits, .. } = *shape;
        match shape.entry {
            EntryForm::Byte => {
                map.with(ManyLookUps { shape, words, keys, digest, found, width: Byte })
            }
            EntryForm::PackedEntry => {
                map.with(ManyLookUps {
                    shape,
                    words,
                    keys,
                    digest,
                    found,
                    width: PackedEntry { bits },
                });
            }
            EntryForm::None => {
                assert_eq!(keys.len(), found.len(), "one answer for each key");
                found.fill(false);
            }
        }
    }
}

impl<M: Map> StoredArrangement for Peeled<M> {
    const FAMILY: u16 = M::FAMILY;
    const KERNELS: u16 = M::KERNELS;

    fn fields(shape: &Shape<M>) -> impl AsRef<[u64]> {
        let &Shape { items, bits, shard_bits, attempts, multiplier, map, .. } = shape;
        let [segment, length] = map.fields();
        [items, bits.into(), shard_bits.into(), attempts.into(), multiplier, segment, length]
    }

    fn restore(header: &Header) -> Result<Shape<M>, InvalidBytes> {
        let [items, bits, shard_bits, attempts, multiplier, segment, length] = header.fields()?;
        let map = M::restore(segment, length).filter(|map| map.entries() <= MAX_PLACES);
        let (Some(map), Ok(bits @ 1..=MAX_BITS)) = (map, u32::try_from(bits)) else {
            return Err(InvalidBytes::Inconsistent);
        };
        let (Ok(shard_bits @ 0..=MAX_SHARD_BITS), Ok(attempts @ 1..=MAX_ATTEMPTS)) =
            (u32::try_from(shard_bits), u32::try_from(attempts))
        else {
            return Err(InvalidBytes::Inconsistent);
        };
        if multiplier.is_multiple_of(2) {
            return Err(InvalidBytes::Inconsistent);
        }
        let shape = Shape::with_map(items, bits, shard_bits, map)?;
        // Solving needs at least one entry per key.
        if items > shape.entries << shard_bits {
            return Err(InvalidBytes::Inconsistent);
        }
        Ok(Shape { attempts, multiplier, ..shape })
    }
}

/// A look-up of one key.
struct OneLookUp<'a, M, W> {
    shape: &'a Shape<M>,
    words: &'a [u64],
    digest: Digest,
    width: W,
}

impl<M: Map, W: EntryWidth> EntryJob for OneLookUp<'_, M, W> {
    type Output = bool;

    #[inline(always)]
    fn run<const ARITY: usize>(self, places: impl EntryPlaces<ARITY>) -> bool {
        let Self { shape, words, digest, width } = self;
        Look { shape, words, places, width }.has(digest)
    }
}

/// Look-ups of many keys.
struct ManyLookUps<'a, M, W, K, F> {
    shape: &'a Shape<M>,
    words: &'a [u64],
    keys: &'a [K],
    digest: F,
    found: &'a mut [bool],
    width: W,
}

impl<M: Map, W: EntryWidth, K, F: Fn(&K) -> Digest> EntryJob for ManyLookUps<'_, M, W, K, F> {
    type Output = ();

    #[inline(always)]
    fn run<const ARITY: usize>(self, places: impl EntryPlaces<ARITY>) {
        let Self { shape, words, keys, digest, found, width } = self;
        let look = Look { shape, words, places, width };
        batch(look, keys, digest, found);
    }
}

/// Everything a look-up needs.
struct Look<'a, const ARITY: usize, M, P, W> {
    shape: &'a Shape<M>,
    words: &'a [u64],
    places: P,
    width: W,
}

/// The places of the entries of a key, and its fingerprint.
#[derive(Clone, Copy)]
struct EntrySeat<const ARITY: usize> {
    places: [usize; ARITY],
    fingerprint: u64,
}

impl<const ARITY: usize> Default for EntrySeat<ARITY> {
    fn default() -> Self {
        Self { places: [0; ARITY], fingerprint: 0 }
    }
}

impl<const ARITY: usize, M: Map, P: EntryPlaces<ARITY>, W: EntryWidth> Look<'_, ARITY, M, P, W> {
    #[inline(always)]
    fn has(&self, digest: Digest) -> bool {
        self.answer(self.seat(digest))
    }
}

impl<const ARITY: usize, M, P, W> Steps<ARITY> for Look<'_, ARITY, M, P, W>
where
    M: Map,
    P: EntryPlaces<ARITY>,
    W: EntryWidth,
{
    type Seat = EntrySeat<ARITY>;

    #[inline(always)]
    fn words(&self) -> &[u64] {
        self.words
    }

    #[inline(always)]
    fn seat(&self, digest: Digest) -> EntrySeat<ARITY> {
        let (start, hash) = self.shape.locate(digest);
        EntrySeat { places: self.places.of(start, hash), fingerprint: fingerprint(hash) }
    }

    #[inline(always)]
    fn words_of(&self, seat: &EntrySeat<ARITY>) -> [usize; ARITY] {
        seat.places.map(|place| self.width.word(place))
    }

    #[inline(always)]
    fn answer(&self, seat: EntrySeat<ARITY>) -> bool {
        let mut left = seat.fingerprint;
        for place in seat.places {
            left ^= self.width.get(self.words, place);
        }
        left & self.width.mask() == 0
    }
}

/// The words of the filter, or `None` if the hashes of this attempt cannot be solved.
fn solve<M: Map>(
    shape: &Shape<M>,
    hashes: &mut Hashes,
    work: &Work<'_>,
) -> Result<Option<Heap>, BuildError> {
    let keys = capacity(shape.items, shape.shard_bits);
    if (0..shape.shards()).any(|shard| hashes.len_of(shape.parts(shard)) > keys) {
        return Ok(None);
    }
    work.tell(Stage::Solving, 0, Some(shape.items));
    if shape.items == 0 {
        return Ok(Some(Heap::zeroed(0)?));
    }
    if shape.shard_bits == 0 {
        let mut peeler = Peeler::new(keys, shape.entries)?;
        let Some(keys) = peel(shape, hashes, 0, &mut peeler) else {
            return Ok(None);
        };
        // The peeler has a copy of the hashes.
        hashes.clear();
        let mut words = Heap::zeroed(shape.words())?;
        assign(shape, &peeler, keys, words.words_mut());
        work.tell(Stage::Solving, keys, Some(shape.items));
        return Ok(Some(words));
    }
    let mut words = Heap::zeroed(shape.words())?;
    let solved = solve_shards(shape, hashes, words.words_mut(), work)?;
    Ok(solved.then_some(words))
}

/// Peels a shard. Returns the number of its keys, if it can be peeled.
fn peel<M: Map>(shape: &Shape<M>, hashes: &Hashes, shard: u64, peeler: &mut Peeler) -> Option<u64> {
    let parts = shape.parts(shard);
    let keys = hashes.len_of(parts.clone());
    let runs = hashes.runs(parts);
    let skip = shape.shard_bits;
    shape.map.with(Peel { peeler, runs, skip, keys }).then_some(keys)
}

struct Peel<'a, R> {
    peeler: &'a mut Peeler,
    runs: R,
    skip: u32,
    keys: u64,
}

impl<'a, R: Iterator<Item = &'a [u64]>> EntryJob for Peel<'_, R> {
    type Output = bool;

    #[inline(always)]
    fn run<const ARITY: usize>(self, places: impl EntryPlaces<ARITY>) -> bool {
        self.peeler.peel(places, self.runs, self.skip, self.keys)
    }
}

/// Writes the entries of a shard that has been peeled.
fn assign<M: Map>(shape: &Shape<M>, peeler: &Peeler, keys: u64, words: &mut [u64]) {
    match shape.bits {
        8 => shape.map.with(Assign { peeler, keys, width: Byte, words }),
        bits => shape.map.with(Assign { peeler, keys, width: PackedEntry { bits }, words }),
    }
}

struct Assign<'a, W> {
    peeler: &'a Peeler,
    keys: u64,
    width: W,
    words: &'a mut [u64],
}

impl<W: EntryWidth> EntryJob for Assign<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<const ARITY: usize>(self, places: impl EntryPlaces<ARITY>) {
        self.peeler.assign(places, self.keys, self.width, self.words);
    }
}

/// Solves every shard. Returns whether all could be solved.
fn solve_shards<M: Map>(
    shape: &Shape<M>,
    hashes: &Hashes,
    words: &mut [u64],
    work: &Work<'_>,
) -> Result<bool, BuildError> {
    let mut done = 0;
    let told = |keys: u64| {
        done += keys;
        work.tell(Stage::Solving, done, Some(shape.items));
    };
    // If there is a word after the last entry, it is never written.
    let words_of_a_shard = shape.entries as usize / 64 * shape.bits as usize;
    let shards = (0..shape.shards()).zip(words.chunks_mut(words_of_a_shard));
    #[cfg(feature = "rayon")]
    if work.parallel {
        return crew::solve(shape, hashes, shards, told);
    }
    in_turn(shape, hashes, shards, told)
}

/// Solves one shard after another in the same memory. Returns whether all could be solved.
fn in_turn<'a, M: Map>(
    shape: &Shape<M>,
    hashes: &Hashes,
    shards: impl Iterator<Item = (u64, &'a mut [u64])>,
    mut told: impl FnMut(u64),
) -> Result<bool, BuildError> {
    let mut peeler = Peeler::new(capacity(shape.items, shape.shard_bits), shape.entries)?;
    for (shard, words) in shards {
        let Some(keys) = peel(shape, hashes, shard, &mut peeler) else {
            return Ok(false);
        };
        assign(shape, &peeler, keys, words);
        told(keys);
    }
    Ok(true)
}

/// Solves shards on several threads. A thread takes the next shard when it has solved one.
#[cfg(feature = "rayon")]
mod crew {
    use super::{BuildError, Hashes, Map, Shape, in_turn, most_at_once};
    use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use rayon::prelude::*;
    use std::sync::{Mutex, PoisonError};

    /// As [`in_turn`], with the threads of the current pool.
    pub(super) fn solve<'a, M: Map>(
        shape: &Shape<M>,
        hashes: &Hashes,
        shards: impl Iterator<Item = (u64, &'a mut [u64])> + Send,
        told: impl FnMut(u64) + Send,
    ) -> Result<bool, BuildError> {
        let (shards, told) = (Mutex::new(shards), Mutex::new(told));
        let solvable = AtomicBool::new(true);
        let at_once = most_at_once(shape.shards()).min(rayon::current_num_threads() as u64);
        (0..at_once as usize).into_par_iter().with_max_len(1).try_for_each(|_| {
            let next = || {
                let mut shards = shards.lock().unwrap_or_else(PoisonError::into_inner);
                shards.next().filter(|_| solvable.load(Relaxed))
            };
            let told = |keys| told.lock().unwrap_or_else(PoisonError::into_inner)(keys);
            if !in_turn(shape, hashes, core::iter::from_fn(next), told)? {
                solvable.store(false, Relaxed);
            }
            Ok::<(), BuildError>(())
        })?;
        Ok(solvable.into_inner())
    }
}
