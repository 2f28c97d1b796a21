//! Filters in the memory of this process, of any family.

use super::frozen::Fixed;
use super::{Generation, Kind, Measure};
use crate::error::Trouble;
use std::future::{Future, ready};
use std::io;
use std::path::Path;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use umbel::format::{OpenError, Opening};
use umbel::hash::Digester;
use umbel::layout::Probing;
use umbel::{AtomicBlockedBloomFilter, AtomicBloomFilter, CountingBloomFilter, CuckooFilter};
use umbel::{Digest, Full, InvalidShape, Keyed, QuotientFilter, Saved, ScalableBloomFilter};
use umbel::{blocked, bloom, counting, cuckoo, quotient, scalable};

/// Makes filters in memory. Keys come from outside, so they are hashed with a secret: a new one for every
/// generation, kept in its file, which only the owner can read; or yours, which is kept nowhere.
#[derive(Clone, Copy, Debug)]
pub struct Local {
    family: Family,
    rate: f64,
    secret: Option<Keyed>,
}

/// The families a guard can use in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Family {
    /// Blocked Bloom filter, without locks.
    Blocked,
    /// Classic Bloom filter, without locks.
    Classic,
    /// Grows with the keys.
    Scalable,
    /// Counting Bloom filter.
    Counting,
    /// Cuckoo filter.
    Cuckoo,
    /// Quotient filter.
    Quotient,
    /// Xor filter, for a set that does not change.
    Xor,
    /// Binary fuse filter, for a set that does not change.
    Fuse,
    /// The same with four entries a key.
    Fuse4,
    /// Ribbon filter, for a set that does not change.
    Ribbon,
}

impl Family {
    /// Those that take keys while they are in use.
    pub const CHANGING: [Self; 6] = [
        Self::Blocked,
        Self::Classic,
        Self::Scalable,
        Self::Counting,
        Self::Cuckoo,
        Self::Quotient,
    ];
    /// Those for sets that do not change.
    pub const FIXED: [Self; 4] = [Self::Xor, Self::Fuse, Self::Fuse4, Self::Ribbon];

    /// Whether the filter is built once, of all keys.
    const fn is_fixed(self) -> bool {
        matches!(self, Self::Xor | Self::Fuse | Self::Fuse4 | Self::Ribbon)
    }
}

impl Local {
    /// Filters of a family that aim at this rate.
    #[must_use]
    pub const fn new(family: Family, rate: f64) -> Self {
        Self { family, rate, secret: None }
    }

    /// For a set that grows: the fastest, and readers and writers never wait for each other.
    #[must_use]
    pub const fn blocked(rate: f64) -> Self {
        Self::new(Family::Blocked, rate)
    }

    /// The same, a little smaller and slower.
    #[must_use]
    pub const fn classic(rate: f64) -> Self {
        Self::new(Family::Classic, rate)
    }

    /// For a set that grows and is too large to be scanned often.
    #[must_use]
    pub const fn scalable(rate: f64) -> Self {
        Self::new(Family::Scalable, rate)
    }

    /// For keys that leave again: cells that saturate, and then stay.
    #[must_use]
    pub const fn counting(rate: f64) -> Self {
        Self::new(Family::Counting, rate)
    }

    /// For keys that leave again, in little space.
    #[must_use]
    pub const fn cuckoo(rate: f64) -> Self {
        Self::new(Family::Cuckoo, rate)
    }

    /// For keys that leave again, and the same key many times.
    #[must_use]
    pub const fn quotient(rate: f64) -> Self {
        Self::new(Family::Quotient, rate)
    }

    /// For a set that does not change, in the least space.
    #[must_use]
    pub const fn ribbon(rate: f64) -> Self {
        Self::new(Family::Ribbon, rate)
    }

    /// For a set that does not change, asked fast.
    #[must_use]
    pub const fn fuse(rate: f64) -> Self {
        Self::new(Family::Fuse, rate)
    }

    /// For a set that does not change.
    #[must_use]
    pub const fn xor(rate: f64) -> Self {
        Self::new(Family::Xor, rate)
    }

    /// With this secret instead of a new one for each generation. It is not in the files.
    #[must_use]
    pub const fn secret(mut self, secret: Keyed) -> Self {
        self.secret = Some(secret);
        self
    }

    fn body(&self, items: u64, hasher: Keyed) -> Result<Body, InvalidShape> {
        let rate = self.rate;
        Ok(match self.family {
            Family::Blocked => {
                let shape = blocked::Shape::for_rate(items, rate)?;
                Body::Blocked(AtomicBlockedBloomFilter::with(shape, hasher)?)
            }
            Family::Classic => {
                let shape = bloom::Shape::for_rate(items, rate)?;
                Body::Classic(AtomicBloomFilter::with(shape, hasher)?)
            }
            Family::Scalable => {
                let shape = scalable::Shape::for_rate(items, rate)?;
                Body::Scalable(RwLock::new(ScalableBloomFilter::with(shape, hasher)?))
            }
            Family::Counting => {
                let shape = counting::Shape::for_rate(items, rate)?;
                Body::Counting(RwLock::new(CountingBloomFilter::with(shape, hasher)?))
            }
            Family::Cuckoo => {
                let shape = cuckoo::Shape::for_rate(items, rate)?;
                Body::Cuckoo(RwLock::new(CuckooFilter::with(shape, hasher)?))
            }
            Family::Quotient => {
                let shape = quotient::Shape::for_rate(items, rate)?;
                Body::Quotient(RwLock::new(QuotientFilter::with(shape, hasher)?))
            }
            Family::Xor | Family::Fuse | Family::Fuse4 | Family::Ribbon => {
                Body::Fixed(RwLock::new(Fixed::Gathering(Vec::new())))
            }
        })
    }

    fn load_body(&self, path: &Path) -> Result<Body, OpenError> {
        let mut how = Opening::new();
        if let Some(secret) = self.secret {
            how = how.hasher(secret);
        }
        Ok(match self.family {
            Family::Blocked => Body::Blocked(how.load(path)?),
            Family::Classic => Body::Classic(how.load(path)?),
            Family::Scalable => Body::Scalable(RwLock::new(how.load(path)?)),
            Family::Counting => Body::Counting(RwLock::new(how.load(path)?)),
            Family::Cuckoo => Body::Cuckoo(RwLock::new(how.load(path)?)),
            Family::Quotient => Body::Quotient(RwLock::new(how.load(path)?)),
            fixed => Body::Fixed(RwLock::new(Fixed::load(fixed, how, path)?)),
        })
    }
}

impl Kind for Local {
    type Generation = LocalGeneration;

    fn target(&self) -> f64 {
        self.rate
    }

    fn takes(&self) -> bool {
        !self.family.is_fixed()
    }

    fn removes(&self) -> bool {
        matches!(self.family, Family::Counting | Family::Cuckoo | Family::Quotient)
    }

    fn begin(&self, items: u64) -> impl Future<Output = Result<LocalGeneration, Trouble>> + Send {
        let hasher = self.secret.unwrap_or_else(Keyed::random);
        let body = self.body(items, hasher);
        ready(body.map(|body| LocalGeneration { body, hasher, kind: *self }).map_err(Trouble::from))
    }

    fn load(&self, path: &Path) -> Result<LocalGeneration, OpenError> {
        let body = self.load_body(path)?;
        let hasher = body.hasher().ok_or(OpenError::NotAFile)?;
        Ok(LocalGeneration { body, hasher, kind: *self })
    }
}

/// One filter in memory.
#[derive(Debug)]
pub struct LocalGeneration {
    body: Body,
    hasher: Keyed,
    kind: Local,
}

#[derive(Debug)]
enum Body {
    Blocked(AtomicBlockedBloomFilter<[u8], Keyed>),
    Classic(AtomicBloomFilter<[u8], Keyed>),
    Scalable(RwLock<ScalableBloomFilter<[u8], Keyed>>),
    Counting(RwLock<CountingBloomFilter<[u8], Keyed>>),
    Cuckoo(RwLock<CuckooFilter<[u8], Keyed>>),
    Quotient(RwLock<QuotientFilter<[u8], Keyed>>),
    Fixed(RwLock<Fixed>),
}

/// A filter whose writer panicked is as it was: insertions are all or nothing.
fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

impl Body {
    fn hasher(&self) -> Option<Keyed> {
        Some(match self {
            Self::Blocked(filter) => *filter.hasher(),
            Self::Classic(filter) => *filter.hasher(),
            Self::Scalable(filter) => *read(filter).hasher(),
            Self::Counting(filter) => *read(filter).hasher(),
            Self::Cuckoo(filter) => *read(filter).hasher(),
            Self::Quotient(filter) => *read(filter).hasher(),
            Self::Fixed(fixed) => return read(fixed).hasher(),
        })
    }

    #[inline]
    fn contains(&self, digest: Digest) -> Result<bool, Trouble> {
        Ok(match self {
            Self::Blocked(filter) => filter.contains_digest(digest),
            Self::Classic(filter) => filter.contains_digest(digest),
            Self::Scalable(filter) => read(filter).contains_digest(digest),
            Self::Counting(filter) => read(filter).contains_digest(digest),
            Self::Cuckoo(filter) => read(filter).contains_digest(digest),
            Self::Quotient(filter) => read(filter).contains_digest(digest),
            Self::Fixed(fixed) => {
                let contains = read(fixed).contains(digest);
                contains.ok_or_else(|| Trouble::Unavailable("it is not built yet".into()))?
            }
        })
    }

    fn add_all(&self, digests: &[Digest]) -> Result<(), Trouble> {
        fn each<F>(
            lock: &RwLock<F>,
            digests: &[Digest],
            add: impl Fn(&mut F, Digest) -> Result<bool, Full>,
        ) -> Result<(), Trouble> {
            // In short turns, so that readers of a filter in use do not wait long.
            for some in digests.chunks(64) {
                let mut filter = write(lock);
                for digest in some {
                    add(&mut filter, *digest).map_err(|_| Trouble::Full)?;
                }
            }
            Ok(())
        }
        match self {
            Self::Blocked(filter) => {
                filter.insert_digests(digests, &mut vec![false; digests.len()]);
                Ok(())
            }
            Self::Classic(filter) => {
                filter.insert_digests(digests, &mut vec![false; digests.len()]);
                Ok(())
            }
            Self::Scalable(filter) => each(filter, digests, ScalableBloomFilter::insert_digest),
            Self::Counting(filter) => {
                each(filter, digests, |filter, digest| Ok(filter.insert_digest(digest)))
            }
            Self::Cuckoo(filter) => each(filter, digests, CuckooFilter::insert_digest),
            Self::Quotient(filter) => each(filter, digests, QuotientFilter::insert_digest),
            Self::Fixed(fixed) => match &mut *write(fixed) {
                Fixed::Gathering(gathered) => {
                    gathered.try_reserve(digests.len()).map_err(|_| Trouble::Full)?;
                    gathered.extend_from_slice(digests);
                    Ok(())
                }
                _ => Err(Trouble::ReadOnly),
            },
        }
    }

    #[inline]
    fn add(&self, digest: Digest) -> Result<(), Trouble> {
        let added = match self {
            Self::Blocked(filter) => Ok(filter.insert_digest(digest)),
            Self::Classic(filter) => Ok(filter.insert_digest(digest)),
            Self::Scalable(filter) => write(filter).insert_digest(digest),
            Self::Counting(filter) => Ok(write(filter).insert_digest(digest)),
            Self::Cuckoo(filter) => write(filter).insert_digest(digest),
            Self::Quotient(filter) => write(filter).insert_digest(digest),
            Self::Fixed(_) => return self.add_all(&[digest]),
        };
        added.map(drop).map_err(|_| Trouble::Full)
    }

    fn remove(&self, digest: Digest) {
        match self {
            Self::Counting(filter) => _ = write(filter).remove_digest(digest),
            Self::Cuckoo(filter) => _ = write(filter).remove_digest(digest),
            Self::Quotient(filter) => _ = write(filter).remove_digest(digest),
            Self::Blocked(_) | Self::Classic(_) | Self::Scalable(_) | Self::Fixed(_) => {}
        }
    }

    fn missing(&self, digests: &[Digest]) -> Result<u64, Trouble> {
        let mut missing = 0;
        let mut found = [false; 1024];
        for some in digests.chunks(found.len()) {
            let found = &mut found[..some.len()];
            match self {
                Self::Blocked(filter) => filter.contains_digests(some, found),
                Self::Classic(filter) => filter.contains_digests(some, found),
                Self::Scalable(filter) => read(filter).contains_digests(some, found),
                Self::Counting(filter) => read(filter).contains_digests(some, found),
                Self::Cuckoo(filter) => read(filter).contains_digests(some, found),
                Self::Quotient(filter) => read(filter).contains_digests(some, found),
                Self::Fixed(_) => {
                    for (digest, found) in some.iter().zip(found.iter_mut()) {
                        *found = self.contains(*digest)?;
                    }
                }
            }
            missing += found.iter().filter(|found| !**found).count() as u64;
        }
        Ok(missing)
    }

    fn measure(&self) -> Measure {
        fn of_bits(bytes: u64, shape: &impl Probing, items: u64, ones: u64, rate: f64) -> Measure {
            let fill = ones as f64 / shape.bits() as f64;
            Measure { bytes, capacity: shape.items(), items, fill, rate }
        }
        match self {
            Self::Blocked(filter) => {
                let (items, ones) = (filter.estimated_len(), filter.count_ones());
                of_bits(filter.bytes(), filter.shape(), items, ones, filter.expected_rate())
            }
            Self::Classic(filter) => {
                let (items, ones) = (filter.estimated_len(), filter.count_ones());
                of_bits(filter.bytes(), filter.shape(), items, ones, filter.expected_rate())
            }
            Self::Scalable(filter) => {
                let filter = read(filter);
                let levels = 0..filter.levels().len() as u32;
                let capacity = levels.map(|level| filter.shape().level_capacity(level)).sum();
                Measure {
                    bytes: filter.bytes(),
                    capacity,
                    items: filter.estimated_len(),
                    fill: filter.fresh() as f64 / capacity as f64,
                    rate: filter.expected_rate(),
                }
            }
            Self::Counting(filter) => {
                let filter = read(filter);
                Measure {
                    bytes: filter.bytes(),
                    capacity: filter.shape().items(),
                    items: filter.estimated_len(),
                    fill: filter.count_nonzero() as f64 / filter.shape().cells() as f64,
                    rate: filter.expected_rate(),
                }
            }
            Self::Cuckoo(filter) => {
                let filter = read(filter);
                Measure {
                    bytes: filter.bytes(),
                    capacity: filter.shape().room(),
                    items: filter.len(),
                    fill: filter.load(),
                    rate: filter.expected_rate(),
                }
            }
            Self::Quotient(filter) => {
                let filter = read(filter);
                Measure {
                    bytes: filter.bytes(),
                    capacity: filter.capacity(),
                    items: filter.len(),
                    fill: filter.load(),
                    rate: filter.expected_rate(),
                }
            }
            Self::Fixed(fixed) => read(fixed).measure(),
        }
    }

    fn save(&self, path: &Path, with_secret: bool) -> io::Result<()> {
        fn saved(filter: &impl Saved, path: &Path, with_secret: bool) -> io::Result<()> {
            if with_secret { filter.save_with_secret(path) } else { filter.save(path) }
        }
        match self {
            Self::Blocked(filter) => saved(&filter.snapshot(), path, with_secret),
            Self::Classic(filter) => saved(&filter.snapshot(), path, with_secret),
            // Copies, so that writers wait for memory and not for a disk.
            Self::Scalable(filter) => saved(&read(filter).clone(), path, with_secret),
            Self::Counting(filter) => saved(&read(filter).clone(), path, with_secret),
            Self::Cuckoo(filter) => saved(&read(filter).clone(), path, with_secret),
            Self::Quotient(filter) => saved(&read(filter).clone(), path, with_secret),
            Self::Fixed(fixed) => read(fixed).save(path, with_secret),
        }
    }
}

impl Generation for LocalGeneration {
    #[inline]
    fn digest(&self, key: &[u8]) -> Digest {
        self.hasher.digest(key)
    }

    fn check(&self) -> u64 {
        Digester::<[u8]>::check(&self.hasher)
    }

    #[inline]
    fn contains(&self, digest: Digest) -> impl Future<Output = Result<bool, Trouble>> + Send {
        ready(self.body.contains(digest))
    }

    #[inline]
    fn add(&self, digest: Digest) -> impl Future<Output = Result<(), Trouble>> + Send {
        ready(self.body.add(digest))
    }

    fn add_all(&self, digests: &[Digest]) -> impl Future<Output = Result<(), Trouble>> + Send {
        ready(self.body.add_all(digests))
    }

    fn missing(&self, digests: &[Digest]) -> impl Future<Output = Result<u64, Trouble>> + Send {
        ready(self.body.missing(digests))
    }

    fn remove(&self, digest: Digest) -> impl Future<Output = ()> + Send {
        self.body.remove(digest);
        ready(())
    }

    async fn seal(&self) -> Result<(), Trouble> {
        let Body::Fixed(fixed) = &self.body else { return Ok(()) };
        let digests = match &mut *write(fixed) {
            Fixed::Gathering(digests) => std::mem::take(digests),
            _ => return Ok(()),
        };
        let (family, rate, hasher) = (self.kind.family, self.kind.rate, self.hasher);
        let building = move || Fixed::build(family, rate, hasher, digests);
        let built = tokio::task::spawn_blocking(building).await;
        let built = built.map_err(|_| Trouble::Unavailable("building it was given up".into()))?;
        *write(fixed) = built?;
        Ok(())
    }

    fn measure(&self) -> Measure {
        self.body.measure()
    }

    fn save(&self, path: &Path) -> io::Result<()> {
        self.body.save(path, self.kind.secret.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn now<T>(future: impl Future<Output = T>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("a filter in memory is ready when it is asked"),
        }
    }

    #[tokio::test]
    async fn every_family_holds_what_was_added_and_its_file_does_too() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("f.umbel");
        for family in Family::CHANGING.into_iter().chain(Family::FIXED) {
            let kind = Local::new(family, 0.01).secret(Keyed::new([9; 16]));
            let filter = kind.begin(2_000).await.unwrap();
            let digests: Vec<Digest> =
                (0..1_000_u32).map(|key| filter.digest(&key.to_le_bytes())).collect();
            now(filter.add_all(&digests)).unwrap();
            filter.seal().await.unwrap();
            assert_eq!(now(filter.missing(&digests)).unwrap(), 0, "{family:?}");
            let others = (1_000..11_000_u32).map(|key| filter.digest(&key.to_le_bytes()));
            let wrong = others.filter(|digest| now(filter.contains(*digest)).unwrap()).count();
            // At most 1 % of 10,000, and five sigma of 10 above that.
            assert!(wrong <= 150, "{family:?}: {wrong}");
            filter.save(&path).unwrap();
            let again = kind.load(&path).unwrap();
            assert_eq!(again.check(), filter.check());
            assert_eq!(now(again.missing(&digests)).unwrap(), 0, "{family:?}");
            let measure = again.measure();
            assert!(measure.rate <= 0.011 && measure.bytes > 800, "{family:?}: {measure:?}");
            assert!((950..1_050).contains(&measure.items), "{family:?}: {measure:?}");
            assert_eq!(now(again.add(digests[0])).is_ok(), kind.takes(), "{family:?}");
        }
    }

    #[tokio::test]
    async fn a_filter_with_a_secret_of_its_own_keeps_it_out_of_its_file() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("f.umbel");
        let kind = Local::blocked(0.01).secret(Keyed::new([3; 16]));
        kind.begin(10).await.unwrap().save(&path).unwrap();
        assert!(Local::blocked(0.01).load(&path).is_err());
        assert!(Local::blocked(0.01).secret(Keyed::new([4; 16])).load(&path).is_err());
        assert!(kind.load(&path).is_ok());
    }
}
