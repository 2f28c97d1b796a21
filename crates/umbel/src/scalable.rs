//! The scalable Bloom filter: when it is full it gets another level, which is larger and has a
//! lower false positive rate.
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
//! Choose it when the number of keys is unknown. Prefer [`blocked`](crate::blocked) if the number
//! or an upper bound is known: 9.9 bits per key, and several times faster.
//!
//! # Where it breaks
//!
//! A look-up of an absent key searches every level, and the number of levels grows with the
//! logarithm of the number of keys. So start with the smallest number of keys that you expect, not
//! with 1. For sets that may grow a thousandfold, [`Shape::with_growth`]`(4.0)` halves the number
//! of levels. A new level is allocated at once. A new level may be impossible: there is no memory,
//! digests of 64 bits do not allow its rate, or there are [`MAX_LEVELS`] levels. Inserting a new
//! key then fails with [`Full`] and changes nothing, and the filter keeps its false positive rate.
//!
//! An attacker who knows the seed can choose keys that fall into few lines: see
//! [`Keyed`](crate::Keyed).
//!
//! # Reference
//!
//! Almeida, Baquero, Preguiça and Hutchison 2007, "Scalable Bloom filters", section 3 (the compound
//! rate) and section 4 (the choice of growth and tightening). Here the first level has the rate p
//! (1 − r), so that the compound rate is p; with the rate p it would be p / (1 − r).
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

#[doc(hidden)]
pub use bytes::Said;
pub use level::Level;
pub use shape::{MAX_LEVELS, Shape};

use crate::blocked::Lines;
use crate::edge::{Filter, for_core_and_filter, insert_or_full};
use crate::error::{BatchFull, Full, InvalidShape};
use crate::filter::Insert;
use crate::hash::{Digest, Digester, KeyOf, Portable};
use crate::layout::ring::{batch, one};
use crate::raw::{self, Clear, Make, Probe, describe};
use alloc::vec::Vec;
use level::LevelsLookUp;

/// The core of a scalable Bloom filter.
#[derive(Clone)]
pub struct RawScalable {
    shape: Shape,
    /// The instruction path of batches.
    layout: Lines,
    /// Never empty. The newest level, which is the largest, is the last.
    levels: Vec<Level>,
}

/// A Bloom filter of keys `T`, hashed by `H`, that grows. The [module](crate::scalable) describes
/// it and says when to choose it.
///
/// [`new`](crate::Filter::new) creates a filter that starts with room for `capacity` keys, and
/// keeps a false positive rate of at most `err_rate` for any number of keys.
///
/// ```
/// use umbel::ScalableBloomFilter;
///
/// let mut seen = ScalableBloomFilter::new(1_000, 0.01); // capacity to start with, false positive rate
/// assert!(seen.insert("a")?); // true: certainly new; Full is an error
/// assert!(seen.contains("a") && !seen.contains("b"));
/// let collected: ScalableBloomFilter<u64> = (0..100).collect();
/// assert!(collected.contains(&99));
/// # Ok::<(), umbel::Full>(())
/// ```
pub type ScalableBloomFilter<T, H = Portable> = Filter<T, H, RawScalable>;

describe! {
    impl[] RawScalable: Shape, Digest, "ScalableBloomFilter", |this| this.levels.iter().map(Level::bytes).sum();
    shape: this.shape,
    levels: this.levels,
}

/// Creates the filter with its first level.
impl Make for RawScalable {
    fn plan(capacity: u64, err_rate: f64) -> Result<Shape, InvalidShape> {
        Shape::for_rate(capacity, err_rate)
    }

    fn make(shape: Shape) -> Result<Self, InvalidShape> {
        let mut filter = Self::without_levels(shape);
        filter.grow()?;
        Ok(filter)
    }
}

impl RawScalable {
    /// Without levels, which the caller adds.
    fn without_levels(shape: Shape) -> Self {
        Self { shape, layout: Lines::default(), levels: Vec::new() }
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

    /// Inserts a digest when all levels are full.
    #[cold]
    fn insert_into_new_level(&mut self, digest: Digest) -> Result<bool, Full> {
        if self.probe(digest) {
            return Ok(false);
        }
        self.grow().map_err(|_| Full)?;
        self.insert_digest(digest)
    }

    #[inline]
    fn insert_each<A>(
        &mut self,
        mut keys: &[A],
        digest: impl Fn(&A) -> Digest,
        mut fresh: &mut [bool],
    ) -> Result<(), BatchFull> {
        assert_eq!(keys.len(), fresh.len(), "one answer for each key");
        fresh.fill(false);
        let all = keys.len();
        while let Some(first) = keys.first() {
            let full = BatchFull { inserted: all - keys.len() };
            let Self { layout, levels, .. } = self;
            let Some((newest, older)) = levels.split_last_mut() else { return Err(full) };
            let room = usize::try_from(newest.room()).unwrap_or(usize::MAX);
            // The number of keys that certainly have room, or one key that needs a new level.
            let (now, later) = keys.split_at(room.clamp(1, keys.len()));
            let (answers, answers_later) = fresh.split_at_mut(now.len());
            if room == 0 {
                answers[0] = self.insert_into_new_level(digest(first)).map_err(|Full| full)?;
            } else {
                batch(
                    layout.choice(),
                    level::LevelsInsert { older, newest },
                    now,
                    &digest,
                    answers,
                );
            }
            (keys, fresh) = (later, answers_later);
        }
        Ok(())
    }
}

impl Probe for RawScalable {
    #[inline]
    fn probe(&self, digest: Digest) -> bool {
        one(self.layout.choice(), LevelsLookUp { levels: &self.levels }, digest)
    }

    #[inline]
    fn probe_each<A>(&self, keys: &[A], digest: impl Fn(&A) -> Digest, found: &mut [bool]) {
        batch(self.layout.choice(), LevelsLookUp { levels: &self.levels }, keys, digest, found);
    }

    fn rate(&self) -> f64 {
        let compound = |rate, level: &Level| {
            let next = level.expected_rate();
            rate + next - rate * next
        };
        self.levels.iter().fold(0.0, compound)
    }
}

impl Insert for RawScalable {
    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        let choice = self.layout.choice();
        match self.levels.split_last_mut() {
            Some((newest, older)) if newest.room() > 0 => {
                Ok(one(choice, level::LevelsInsert { older, newest }, digest))
            }
            _ => self.insert_into_new_level(digest),
        }
    }

    #[inline]
    fn insert_digests(&mut self, digests: &[Digest], fresh: &mut [bool]) -> Result<(), BatchFull> {
        self.insert_each(digests, |digest| *digest, fresh)
    }
}

/// Frees the memory of all levels except the first.
impl Clear for RawScalable {
    fn clear(&mut self) {
        self.levels.truncate(1);
        self.levels.iter_mut().for_each(Level::clear);
    }
}

for_core_and_filter! { impl[] RawScalable {
    /// The levels, the oldest and smallest first. All except the last are full.
    #[must_use]
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Whether no key was ever inserted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fresh() == 0
    }

    /// The number of insertions that returned `true`. It is the number of different keys, minus
    /// those that were false positives when they were inserted.
    #[must_use]
    pub fn fresh(&self) -> u64 {
        self.levels.iter().map(Level::fresh).sum()
    }

    /// An estimate of how many different keys were inserted, from the number of new keys and the
    /// false positive rates of the older levels. Reads the whole filter.
    #[must_use]
    pub fn estimated_len(&self) -> u64 {
        let (mut absent, mut len) = (1.0, 0.0);
        for level in &self.levels {
            len += level.fresh() as f64 / absent;
            absent *= 1.0 - level.expected_rate();
        }
        // Rounds without the standard library; saturates.
        (len + 0.5) as u64
    }

    /// The compound false positive rate of the levels when all are full. It is below the rate of
    /// the shape, and stays below it after further levels are added.
    #[must_use]
    pub fn planned_rate(&self) -> f64 {
        self.shape.compound_rate(self.levels.len() as u32)
    }
} }

insert_or_full! { impl[] RawScalable;
    new = "Inserts a key. `Ok(true)` is proof that it is new; `Ok(false)` says that [`contains`](Self::contains) \
        would have answered `true` already.";
    full = "[`Full`](crate::Full) if the key is new, the newest level is full, and there can be no other: there \
        is no memory for it, or [`Shape::level`] tells why. The filter is then unchanged, and a key that it has \
        is still `Ok(false)`."
}

impl<T: ?Sized, H> ScalableBloomFilter<T, H> {
    /// Inserts all keys. It does not report which of them were new.
    ///
    /// # Errors
    ///
    /// [`BatchFull`] if there is no room for one of them. The keys before it are inserted, and no
    /// others.
    pub fn try_extend<A>(&mut self, keys: impl IntoIterator<Item = A>) -> Result<(), BatchFull>
    where
        A: KeyOf<T>,
        H: Digester<A::Key>,
    {
        let Self { raw, hasher, .. } = self;
        let digests = keys.into_iter().map(|key| hasher.digest(key.key()));
        let mut done = 0;
        raw::try_in_batches::<256, _>(digests, |digests, fresh| {
            raw.insert_digests(digests, fresh)
                .map_err(|full| BatchFull { inserted: done + full.inserted })?;
            done += digests.len();
            Ok(())
        })
    }
}

/// Inserts the keys in batches. It does not report which of them were new. Panics if there is no
/// room, where [`try_extend`](ScalableBloomFilter::try_extend) returns an error.
impl<A, T, H> Extend<A> for ScalableBloomFilter<T, H>
where
    A: KeyOf<T>,
    T: ?Sized,
    H: Digester<A::Key>,
{
    fn extend<I: IntoIterator<Item = A>>(&mut self, keys: I) {
        self.try_extend(keys).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// The initial capacity and the false positive rate of a collected filter.
const COLLECTED: (u64, f64) = (1_024, 0.01);

/// A filter with a false positive rate of 1 %. It starts with room for the number of keys that the
/// iterator announces, and at least 1,024. Panics if there is no room.
impl<A, T, H> FromIterator<A> for ScalableBloomFilter<T, H>
where
    A: KeyOf<T>,
    T: ?Sized,
    H: Digester<A::Key> + Default,
{
    fn from_iter<I: IntoIterator<Item = A>>(keys: I) -> Self {
        let (keys, (least, rate)) = (keys.into_iter(), COLLECTED);
        let capacity = least.max(keys.size_hint().0 as u64);
        let mut filter = Self::with_hasher(capacity, rate, H::default());
        filter.extend(keys);
        filter
    }
}

/// Equal cores give equal answers, now and after the same insertions: their shapes and bits are
/// equal.
impl PartialEq for RawScalable {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape
            && self.levels.len() == other.levels.len()
            && self.levels.iter().zip(&other.levels).all(|(one, two)| one.same(two))
    }
}

impl Eq for RawScalable {}
