//! Blocked Bloom filters that grow by the rule of [`Chain`](crate::bloom::Chain). Their links consist of cache
//! lines.

use super::{BATCH, digests, hasher};
use crate::bloom::{Growth, MAX_LINKS, MAX_RATE, Unlike};
use crate::error::{Invalid, Refused};
use crate::membership::{About, Measure, Membership, stride};
use umbel::any::AnyHasher;
use umbel::blocked::Shape;
use umbel::hash::Digester;
use umbel::{BlockedBloomFilter, Digest, InvalidShape, Keyed};

/// One line per key if that takes at most a tenth more space than two, because a client that chooses this
/// layout wants speed.
fn shape(capacity: u64, rate: f64) -> Result<Shape, InvalidShape> {
    let smallest = Shape::for_rate(capacity, rate)?;
    let one = Shape::for_rate_in_lines(capacity, rate, 1);
    Ok(one.ok().filter(|one| one.bytes() <= smallest.bytes() / 10 * 11).unwrap_or(smallest))
}

/// One level, and the number of keys that were added to it.
#[derive(Debug)]
pub(crate) struct Level {
    pub(crate) filter: BlockedBloomFilter<[u8], AnyHasher>,
    pub(crate) size: u64,
    pub(crate) rate: f64,
}

impl Level {
    fn new(capacity: u64, rate: f64, hasher: AnyHasher) -> Result<Self, Invalid> {
        let shape = shape(capacity, rate).map_err(|_| Invalid::Field("capacity"))?;
        let filter = BlockedBloomFilter::with(shape, hasher).map_err(|_| Invalid::NoMemory)?;
        Ok(Self { filter, size: 0, rate })
    }

    fn capacity(&self) -> u64 {
        self.filter.shape().items()
    }

    /// The estimated number of keys in the union, from its bits, if this level has room for them.
    fn united_size(&self, other: &Self) -> Option<u64> {
        let shape = self.filter.shape();
        if shape != other.filter.shape() {
            return None;
        }
        let words = self.filter.words().iter().zip(other.filter.words());
        let ones = words.map(|(one, other)| u64::from((one | other).count_ones())).sum();
        let items = shape.estimate_items(ones);
        // As for links of a chain: four standard deviations of the estimate.
        let most = self.capacity() + self.capacity().isqrt();
        let (larger, sum) = (self.size.max(other.size), self.size.saturating_add(other.size));
        (items <= most).then(|| items.clamp(larger, sum))
    }

    fn try_clone(&self) -> Option<Self> {
        Some(Self { filter: self.filter.try_clone().ok()?, ..*self })
    }
}

/// A filter that sets the bits of a key in one or two cache lines. It grows by adding levels.
#[derive(Debug)]
pub struct Blocked {
    levels: Vec<Level>,
    growth: Growth,
}

impl Blocked {
    /// An empty filter. If it grows, its first level has half of the rate, so that all levels together keep the
    /// rate.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if the shape is invalid, or there is not enough memory.
    pub fn new(
        capacity: u64,
        err_rate: f64,
        growth: Growth,
        secret: Option<Keyed>,
    ) -> Result<Self, Invalid> {
        let rate = if err_rate > MAX_RATE && err_rate < 1.0 { MAX_RATE } else { err_rate };
        let rate = if growth == Growth::None { rate } else { rate / 2.0 };
        Self::of(vec![Level::new(capacity, rate, hasher(secret))?], growth)
    }

    /// The only validator.
    ///
    /// # Errors
    ///
    /// [`Invalid::Field`] if there are no levels or too many, or their hashes differ.
    pub(crate) fn of(levels: Vec<Level>, growth: Growth) -> Result<Self, Invalid> {
        let Some(first) = levels.first().filter(|_| levels.len() <= MAX_LINKS) else {
            return Err(Invalid::Field("number of levels"));
        };
        let hasher = first.filter.hasher();
        if hasher.keys() != umbel::hash::Kind::Bytes {
            return Err(Invalid::Field("kind of keys"));
        }
        if levels.iter().any(|level| level.filter.hasher() != hasher) {
            return Err(Invalid::Field("hash"));
        }
        if !levels.iter().all(|level| level.rate > 0.0 && level.rate < 1.0 && level.capacity() > 0)
        {
            return Err(Invalid::Field("error rate"));
        }
        Ok(Self { levels, growth })
    }

    pub(crate) fn levels(&self) -> &[Level] {
        &self.levels
    }

    pub(crate) const fn growth(&self) -> Growth {
        self.growth
    }

    pub(crate) fn hasher(&self) -> AnyHasher {
        *self.levels[0].filter.hasher()
    }

    /// The number of bytes of its bits.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.levels.iter().map(|level| level.filter.bytes()).sum()
    }

    fn contains(&self, digests: &[Digest], found: &mut [bool]) {
        let Some((last, older)) = self.levels.split_last() else { return };
        last.filter.contains_digests(digests, found);
        let mut also = [false; BATCH];
        for level in older.iter().rev() {
            if found.iter().all(|found| *found) {
                return;
            }
            let also = &mut also[..digests.len()];
            level.filter.contains_digests(digests, also);
            found.iter_mut().zip(also).for_each(|(found, also)| *found |= *also);
        }
    }

    fn add(&mut self, digest: Digest) -> Result<(), Refused> {
        self.make_room()?;
        if let Some(last) = self.levels.last_mut() {
            last.filter.insert_digest(digest);
            last.size = last.size.saturating_add(1);
        }
        Ok(())
    }

    fn make_room(&mut self) -> Result<(), Refused> {
        let Some(last) = self.levels.last() else { return Err(Refused::Full) };
        if last.size < last.capacity() {
            return Ok(());
        }
        let Growth::By(growth) = self.growth else { return Err(Refused::Full) };
        if self.levels.len() >= MAX_LINKS {
            return Err(Refused::MaxExpansions);
        }
        let capacity = last.capacity().saturating_mul(u64::from(growth));
        // The smallest rate for which a blocked filter can be planned.
        let rate = (last.rate / 2.0).max(1e-12);
        self.levels.try_reserve(1).map_err(|_| Refused::NoMemory)?;
        let level = Level::new(capacity, rate, self.hasher()).map_err(|_| Refused::NoMemory)?;
        self.levels.push(level);
        Ok(())
    }

    /// Checks that both filters use the same hash.
    ///
    /// # Errors
    ///
    /// [`Unlike`] if they do not.
    pub fn fits(&self, other: &Self) -> Result<(), Unlike> {
        if self.hasher() == other.hasher() { Ok(()) } else { Err(Unlike) }
    }

    /// Adds all keys of a filter that [`fits`](Self::fits).
    ///
    /// # Errors
    ///
    /// As [`Chain::merge`](crate::bloom::Chain::merge). The filter is then unchanged.
    pub fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        let mut fresh = Vec::new();
        let mut united: Vec<(usize, &Level, u64)> = Vec::new();
        for level in other.levels.iter().filter(|level| level.size > 0) {
            let like = self.levels.iter().enumerate().find_map(|(at, mine)| {
                let free = united.iter().all(|(taken, ..)| *taken != at);
                free.then(|| mine.united_size(level))?.map(|size| (at, size))
            });
            match like {
                Some((at, size)) => united.push((at, level, size)),
                None => fresh.push(level.try_clone().ok_or(Refused::NoMemory)?),
            }
        }
        if !fresh.is_empty() && self.growth == Growth::None {
            return Err(Refused::Full);
        }
        if self.levels.len() + fresh.len() > MAX_LINKS {
            return Err(Refused::MaxExpansions);
        }
        for (at, level, size) in united {
            let mine = &mut self.levels[at];
            if mine.filter.union_with(&level.filter).is_err() {
                return Err(Refused::Full);
            }
            mine.size = size;
        }
        self.levels.splice(0..0, fresh);
        Ok(())
    }

    /// A copy, or `None` if there is not enough memory.
    #[must_use]
    pub fn try_clone(&self) -> Option<Self> {
        let levels = self.levels.iter().map(Level::try_clone).collect::<Option<Vec<_>>>()?;
        Some(Self { levels, growth: self.growth })
    }
}

impl Membership for Blocked {
    fn find(&self, keys: &[&[u8]], found: &mut [bool]) {
        assert_eq!(keys.len(), found.len(), "an answer for every key");
        let hasher = self.hasher();
        if let ([key], [found]) = (keys, &mut *found) {
            let digest = hasher.digest(key);
            *found = self.levels.iter().rev().any(|level| level.filter.contains_digest(digest));
            return;
        }
        for (keys, found) in keys.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
            self.contains(&digests(&hasher, keys)[..keys.len()], found);
        }
    }

    fn put(&mut self, keys: &[&[u8]], fresh: &mut [bool]) -> Result<(), (usize, Refused)> {
        assert_eq!(keys.len(), fresh.len(), "an answer for every key");
        let hasher = self.hasher();
        for (number, (keys, fresh)) in keys.chunks(BATCH).zip(fresh.chunks_mut(BATCH)).enumerate() {
            let digests = digests(&hasher, keys);
            self.contains(&digests[..keys.len()], fresh);
            // Adding keys of this group changes only these levels.
            let first = self.levels.len() - 1;
            for (done, (digest, fresh)) in digests.iter().zip(fresh).enumerate() {
                let changed = &self.levels[first..];
                *fresh =
                    !*fresh && !changed.iter().any(|level| level.filter.contains_digest(*digest));
                if *fresh {
                    self.add(*digest).map_err(|refused| (number * BATCH + done, refused))?;
                }
            }
        }
        Ok(())
    }

    fn about(&self) -> About {
        About {
            capacity: self.levels.iter().map(Level::capacity).fold(0, u64::saturating_add),
            bytes: self.bytes(),
            filters: self.levels.len() as u64,
            items: self.levels.iter().map(|level| level.size).fold(0, u64::saturating_add),
            expansion: match self.growth {
                Growth::By(growth) => Some(growth),
                Growth::None => None,
            },
            layout: "blocked",
        }
    }

    fn measure(&self) -> Measure {
        let (mut ones, mut bits, mut items, mut no) = (0, 0, 0.0, 1.0);
        let stride = stride(self.bytes());
        for Level { filter, .. } in &self.levels {
            let (set, rate) = filter.raw().sampled(stride);
            (ones, bits) = (ones + set, bits + filter.shape().bits());
            items += filter.shape().estimate_items(set) as f64;
            no *= 1.0 - rate;
        }
        Measure { fill: ones as f64 / bits as f64, items, rate: 1.0 - no }
    }
}
