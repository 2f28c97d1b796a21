//! The scalable Bloom filter: when it is full it gets another level, larger and more rarely wrong.
//!
//! ```text
//!     level 0   c keys, rate p (1 - r)            [====]
//!     level 1   s c keys, rate p (1 - r) r        [========]
//!     level 2   s^2 c keys, rate p (1 - r) r^2    [=====...........]  <-- fresh keys
//!                                                      the rates of all add up to p
//! ```
//!
//! | bits per key | touches per look-up | remove | union | grow | can building fail |
//! |---|---|---|---|---|---|
//! | 16.9 at 1 % when grown 64-fold and full, twice that after a new level | 1 or 2 lines a level, fetched together | no | no | yes | an insert may be [`Full`] |
//!
//! Choose it when nobody knows how many keys will come. Prefer [`blocked`](crate::blocked) when
//! somebody does, or can say what the most is: 9.9 bits a key, and several times faster.
//!
//! # Where it breaks
//!
//! A look-up of an absent key asks every level, and levels come with the logarithm of the number of
//! keys: start with the smallest number that would not surprise you, not with 1. For sets that may
//! grow a thousandfold, [`Shape::with_growth`]`(4.0)` halves the levels. A new level is allocated at
//! once. When there can be no other level, because there is no memory, because digests of 64 bits
//! do not allow its rate, or because there are [`MAX_LEVELS`], inserting a fresh key is [`Full`],
//! and changes nothing: the rate asked for is kept until then and after.
//!
//! Whoever knows the seed can choose keys that fall into few lines: see [`Keyed`](crate::Keyed).
//!
//! # Reference
//!
//! Almeida, Baquero, Preguiça and Hutchison 2007, "Scalable Bloom filters", section 3 (the compound
//! rate) and section 4 (the choice of growth and tightening). The first level has the rate
//! p (1 − r) here, without which the compound rate would be p / (1 − r).
//!
//! ```
//! use umbel::ScalableBloomFilter;
//!
//! let mut seen = ScalableBloomFilter::<u64>::new(1_000, 0.01); // capacity to start with, error rate
//! for key in 0..64_000 {
//!     seen.insert(&key)?; // Ok(true): certainly new
//! }
//! assert!((0..64_000).all(|key| seen.contains(&key)));
//! assert_eq!(seen.levels().len(), 7);
//! assert!(seen.expected_rate() < 0.01);
//! let wrong = (64_000..164_000).filter(|key| seen.contains(key)).count();
//! assert!(wrong < 1_000, "{wrong} of 100,000");
//! # Ok::<(), umbel::Full>(())
//! ```

mod bytes;
mod level;
mod shape;

pub use level::Level;
pub use shape::{MAX_LEVELS, Shape};

use crate::blocked::Lines;
use crate::error::{BatchFull, Full, InvalidShape};
use crate::filter::{Edge, Filter, Insert};
use crate::hash::{Digest, Digester, Portable};
use crate::layout::ring::{batch, one};
use alloc::vec::Vec;
use core::borrow::Borrow;
use core::fmt;
use core::marker::PhantomData;
use level::LookUp;

/// A Bloom filter of keys `T`, hashed by `H`, that grows. The [module](crate::scalable) tells what it
/// is and when to choose it.
pub struct ScalableBloomFilter<T: ?Sized, H = Portable> {
    shape: Shape,
    hasher: H,
    /// On which path batches go.
    layout: Lines,
    /// Never empty; the newest, which is the largest, is the last.
    levels: Vec<Level>,
    keys: PhantomData<fn(&T)>,
}

/// With the default hasher.
impl<T: ?Sized> ScalableBloomFilter<T> {
    /// A filter that starts with room for `capacity` keys, and keeps an error rate of at most
    /// `err_rate` however many come.
    ///
    /// # Panics
    ///
    /// Where [`try_new`](Self::try_new) gives an error: if `err_rate` is not above 0 and below 1,
    /// or there is no memory for so large a filter.
    #[must_use]
    pub fn new(capacity: u64, err_rate: f64) -> Self {
        Self::with_hasher(capacity, err_rate, Portable::default())
    }

    /// A filter that starts with room for `capacity` keys, and keeps an error rate of at most
    /// `err_rate` however many come.
    ///
    /// # Errors
    ///
    /// [`InvalidShape`] if `err_rate` is not above 0 and below 1 or too small, or if so large a
    /// filter cannot be represented or allocated.
    pub fn try_new(capacity: u64, err_rate: f64) -> Result<Self, InvalidShape> {
        Self::with(Shape::for_rate(capacity, err_rate)?, Portable::default())
    }
}

/// With another hasher or shape.
impl<T: ?Sized, H> ScalableBloomFilter<T, H> {
    /// As `new`, with this hasher.
    ///
    /// # Panics
    ///
    /// Where there is no such shape, or [`with`](Self::with) gives an error.
    #[must_use]
    pub fn with_hasher(capacity: u64, err_rate: f64, hasher: H) -> Self {
        Shape::for_rate(capacity, err_rate)
            .and_then(|shape| Self::with(shape, hasher))
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// A filter of this shape, with this hasher. It has its first level.
    ///
    /// # Errors
    ///
    /// [`InvalidShape::OutOfMemory`] if there is no memory for that.
    pub fn with(shape: Shape, hasher: H) -> Result<Self, InvalidShape> {
        let mut filter = Self::without_levels(shape, hasher);
        filter.grow()?;
        Ok(filter)
    }

    /// To be given its levels.
    fn without_levels(shape: Shape, hasher: H) -> Self {
        Self { shape, hasher, layout: Lines::default(), levels: Vec::new(), keys: PhantomData }
    }

    /// Adds a level, or changes nothing.
    #[cold]
    fn grow(&mut self) -> Result<(), InvalidShape> {
        let level = Level::new(&self.shape, self.levels.len() as u32)?;
        if self.levels.try_reserve(1).is_err() {
            let bytes = size_of::<Level>() * (self.levels.len() + 1);
            return Err(InvalidShape::OutOfMemory { bytes: bytes as u64 });
        }
        self.levels.push(level);
        Ok(())
    }
}

/// For reading.
impl<T: ?Sized, H> ScalableBloomFilter<T, H> {
    /// Whether the key may have been inserted. `false` is proof that it was not; `true` is wrong
    /// for a share of absent keys that [`expected_rate`](Self::expected_rate) tells.
    #[must_use]
    #[inline]
    pub fn contains<Q>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: ?Sized,
        H: Digester<Q>,
    {
        self.contains_digest(self.hasher.digest(key))
    }

    /// As [`contains`](Self::contains), for a key that was digested elsewhere.
    #[must_use]
    #[inline]
    pub fn contains_digest(&self, digest: Digest) -> bool {
        one(self.layout.choice(), LookUp { levels: &self.levels }, digest)
    }

    /// As [`contains`](Self::contains), for many keys: `found[i]` is the answer for `keys[i]`.
    /// Faster than one by one, since all levels and all keys of a batch wait for memory at the same
    /// time.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[inline]
    pub fn contains_batch<A>(&self, keys: &[A], found: &mut [bool])
    where
        A: Borrow<T>,
        H: Digester<T>,
    {
        let digest = |key: &A| self.hasher.digest(key.borrow());
        batch(self.layout.choice(), LookUp { levels: &self.levels }, keys, digest, found);
    }

    /// As [`contains_batch`](Self::contains_batch), for keys that were digested elsewhere.
    #[inline]
    pub fn contains_digests(&self, digests: &[Digest], found: &mut [bool]) {
        let look_up = LookUp { levels: &self.levels };
        batch(self.layout.choice(), look_up, digests, |digest| *digest, found);
    }

    /// The plan it grows by.
    #[must_use]
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// What turns keys into digests.
    #[must_use]
    pub const fn hasher(&self) -> &H {
        &self.hasher
    }

    /// Its levels, the oldest and smallest first. All but the last are full.
    #[must_use]
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// The memory of the words of all levels, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.levels.iter().map(Level::bytes).sum()
    }

    /// Whether nothing was ever inserted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fresh() == 0
    }

    /// How many insertions were fresh: exactly how often `insert` answered `true`. That is the number
    /// of different keys, but for those that were mistaken for others when they came.
    #[must_use]
    pub fn fresh(&self) -> u64 {
        self.levels.iter().map(Level::fresh).sum()
    }

    /// How many different keys have been inserted, judged by how many were fresh and by the rate at
    /// which others were mistaken for those in older levels. Reads the whole filter.
    #[must_use]
    pub fn estimated_len(&self) -> u64 {
        let (mut absent, mut len) = (1.0, 0.0);
        for level in &self.levels {
            len += level.fresh() as f64 / absent;
            absent *= 1.0 - level.expected_rate();
        }
        // As near as rounding comes without the standard library; saturates.
        (len + 0.5) as u64
    }

    /// The error rate now, judged by the bits that are set in all levels. Reads the whole filter.
    #[must_use]
    pub fn expected_rate(&self) -> f64 {
        let compound = |rate, level: &Level| {
            let next = level.expected_rate();
            rate + next - rate * next
        };
        self.levels.iter().fold(0.0, compound)
    }

    /// The error rate that its levels are planned to have together when all are full: below that of
    /// the [`shape`](Self::shape), which another level will not exceed either.
    #[must_use]
    pub fn planned_rate(&self) -> f64 {
        self.shape.compound_rate(self.levels.len() as u32)
    }
}

/// For changing.
impl<T: ?Sized, H> ScalableBloomFilter<T, H> {
    /// Inserts a key. `Ok(true)` is proof that it is new; `Ok(false)` says that
    /// [`contains`](Self::contains) would have answered `true` already.
    ///
    /// # Errors
    ///
    /// [`Full`] if the key is new, the newest level is full, and there can be no other: there is no
    /// memory for it, or [`Shape::level`] tells why. The filter is then unchanged, and a key that it
    /// has is still `Ok(false)`.
    #[inline]
    pub fn insert<Q>(&mut self, key: &Q) -> Result<bool, Full>
    where
        T: Borrow<Q>,
        Q: ?Sized,
        H: Digester<Q>,
    {
        self.insert_digest(self.hasher.digest(key))
    }

    /// As [`insert`](Self::insert), for a key that was digested elsewhere.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    #[inline]
    pub fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        let choice = self.layout.choice();
        match self.levels.split_last_mut() {
            Some((newest, older)) if newest.room() > 0 => {
                Ok(one(choice, level::Insert { older, newest }, digest))
            }
            _ => self.insert_into_new_level(digest),
        }
    }

    /// As [`insert_digest`](Self::insert_digest), where all levels are full.
    #[cold]
    fn insert_into_new_level(&mut self, digest: Digest) -> Result<bool, Full> {
        if self.contains_digest(digest) {
            return Ok(false);
        }
        self.grow().map_err(|_| Full)?;
        self.insert_digest(digest)
    }

    /// As [`insert`](Self::insert), for many keys in their order: `fresh[i]` is the answer for
    /// `keys[i]`.
    ///
    /// # Errors
    ///
    /// [`BatchFull`] if there is no room for one of them. The keys before it are inserted; it and those
    /// after it are not, and their answers are `false`.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[inline]
    pub fn insert_batch<A>(&mut self, keys: &[A], fresh: &mut [bool]) -> Result<(), BatchFull>
    where
        A: Borrow<T>,
        H: Digester<T>,
    {
        self.insert_each(keys, |hasher, key| hasher.digest(key.borrow()), fresh)
    }

    /// As [`insert_batch`](Self::insert_batch), for keys that were digested elsewhere.
    ///
    /// # Errors
    ///
    /// As [`insert_batch`](Self::insert_batch).
    #[inline]
    pub fn insert_digests(
        &mut self,
        digests: &[Digest],
        fresh: &mut [bool],
    ) -> Result<(), BatchFull> {
        self.insert_each(digests, |_, digest| *digest, fresh)
    }

    #[inline]
    fn insert_each<A>(
        &mut self,
        mut keys: &[A],
        digest: impl Fn(&H, &A) -> Digest,
        mut fresh: &mut [bool],
    ) -> Result<(), BatchFull> {
        assert_eq!(keys.len(), fresh.len(), "one answer for each key");
        fresh.fill(false);
        let all = keys.len();
        while let Some(first) = keys.first() {
            let full = BatchFull { inserted: all - keys.len() };
            let Self { hasher, layout, levels, .. } = self;
            let Some((newest, older)) = levels.split_last_mut() else { return Err(full) };
            let room = usize::try_from(newest.room()).unwrap_or(usize::MAX);
            // As many keys as are sure to find room, or one that needs a new level.
            let (now, later) = keys.split_at(room.clamp(1, keys.len()));
            let (answers, answers_later) = fresh.split_at_mut(now.len());
            if room == 0 {
                let first = digest(hasher, first);
                answers[0] = self.insert_into_new_level(first).map_err(|Full| full)?;
            } else {
                let insert = level::Insert { older, newest };
                batch(layout.choice(), insert, now, |key| digest(hasher, key), answers);
            }
            (keys, fresh) = (later, answers_later);
        }
        Ok(())
    }

    /// Inserts all keys; whether they were new is not told.
    ///
    /// # Errors
    ///
    /// [`BatchFull`] if there is no room for one of them. The keys before it are inserted, and no others.
    pub fn try_extend<A, I>(&mut self, keys: I) -> Result<(), BatchFull>
    where
        A: Borrow<T>,
        I: IntoIterator<Item = A>,
        H: Digester<T>,
    {
        /// How many are worth going through at once.
        const BATCH: usize = 256;
        let mut keys = keys.into_iter();
        let (mut digests, mut fresh) = ([Digest::new(0); BATCH], [false; BATCH]);
        let mut done = 0;
        loop {
            let mut len = 0;
            for (slot, key) in digests.iter_mut().zip(&mut keys) {
                *slot = self.hasher.digest(key.borrow());
                len += 1;
            }
            self.insert_digests(&digests[..len], &mut fresh[..len])
                .map_err(|full| BatchFull { inserted: done + full.inserted })?;
            if len < BATCH {
                return Ok(());
            }
            done += len;
        }
    }

    /// Forgets all keys, and gives the memory of all levels but the first back.
    pub fn clear(&mut self) {
        self.levels.truncate(1);
        self.levels.iter_mut().for_each(Level::clear);
    }
}

impl<T: ?Sized, H> Filter for ScalableBloomFilter<T, H> {
    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.contains_digest(digest)
    }
}

impl<T: ?Sized, H> Insert for ScalableBloomFilter<T, H> {
    /// [`Full`] if there can be no other level.
    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        self.insert_digest(digest)
    }

    #[inline]
    fn insert_digests(&mut self, digests: &[Digest], fresh: &mut [bool]) -> Result<(), BatchFull> {
        self.insert_digests(digests, fresh)
    }
}

/// Keys are inserted in batches; whether they were new is not told. Panics where
/// [`try_extend`](ScalableBloomFilter::try_extend) gives an error: if there is no room.
impl<A, T, H> Extend<A> for ScalableBloomFilter<T, H>
where
    A: Borrow<T>,
    T: ?Sized,
    H: Digester<T>,
{
    fn extend<I: IntoIterator<Item = A>>(&mut self, keys: I) {
        self.try_extend(keys).unwrap_or_else(|error| panic!("{error}"));
    }
}

impl<T: ?Sized, H: Clone> Clone for ScalableBloomFilter<T, H> {
    fn clone(&self) -> Self {
        let Self { shape, layout, .. } = *self;
        let (hasher, levels) = (self.hasher.clone(), self.levels.clone());
        Self { shape, hasher, layout, levels, keys: PhantomData }
    }
}

/// Equal filters give equal answers, now and after the same insertions: same shape, same bits, same
/// hasher.
impl<T: ?Sized, H: Digester<T>> PartialEq for ScalableBloomFilter<T, H> {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape
            && self.hasher.check() == other.hasher.check()
            && self.levels.len() == other.levels.len()
            && self.levels.iter().zip(&other.levels).all(|(one, two)| one.same(two))
    }
}

impl<T: ?Sized, H: fmt::Debug> fmt::Debug for ScalableBloomFilter<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScalableBloomFilter")
            .field("shape", &self.shape)
            .field("levels", &self.levels)
            .field("hasher", &self.hasher)
            .finish()
    }
}

impl<T: ?Sized, H: Digester<T>> Edge for ScalableBloomFilter<T, H> {
    type Key = T;

    #[inline]
    fn digest(&self, key: &T) -> Digest {
        self.hasher.digest(key)
    }
}
