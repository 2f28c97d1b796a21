//! Filters in the memory of this process, of any type.

use super::{Generation, Kind, Measure};
use crate::error::Trouble;
use std::future::{Future, ready};
use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use umbel::any::ChangeError;
use umbel::format::{OpenError, Opening, Saved};
use umbel::frozen::Build;
use umbel::hash::Digester;
use umbel::raw::Any;
use umbel::{AtomicBlockedBloomFilter, AtomicBloomFilter, CountingBloomFilter, CuckooFilter};
use umbel::{BinaryFuse4Filter, BinaryFuseFilter, RibbonFilter, XorFilter};
use umbel::{
    Digest, Filter, InvalidBytes, InvalidShape, Keyed, QuotientFilter, ScalableBloomFilter,
};
use umbel::{blocked, bloom, counting, cuckoo, quotient, scalable};

/// Creates filters in memory. Keys come from outside, so they are hashed with a secret. By default every
/// generation gets a new secret, which is stored in its file, readable only by the owner. A secret that the
/// caller supplies is not stored.
#[derive(Clone, Copy, Debug)]
pub struct Local {
    family: Family,
    rate: f64,
    secret: Option<Keyed>,
}

/// The filter types that a guard can use in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Family {
    /// Blocked Bloom filter, lock-free.
    Blocked,
    /// Classic Bloom filter, lock-free.
    Classic,
    /// Scalable Bloom filter, which grows with the keys.
    Scalable,
    /// Counting Bloom filter.
    Counting,
    /// Cuckoo filter.
    Cuckoo,
    /// Quotient filter.
    Quotient,
    /// Xor filter, for a static set.
    Xor,
    /// Binary fuse filter, for a static set.
    Fuse,
    /// Binary fuse filter with four entries per key.
    Fuse4,
    /// Ribbon filter, for a static set.
    Ribbon,
}

impl Family {
    /// The types that accept keys while they are in use.
    pub const CHANGING: [Self; 6] = [
        Self::Blocked,
        Self::Classic,
        Self::Scalable,
        Self::Counting,
        Self::Cuckoo,
        Self::Quotient,
    ];
    /// The types for static sets.
    pub const FIXED: [Self; 4] = [Self::Xor, Self::Fuse, Self::Fuse4, Self::Ribbon];

    /// Whether the filter is built once, from all keys.
    const fn is_fixed(self) -> bool {
        matches!(self, Self::Xor | Self::Fuse | Self::Fuse4 | Self::Ribbon)
    }

    /// The name of the type in files.
    const fn name(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Classic => "bloom",
            Self::Scalable => "scalable",
            Self::Counting => "counting",
            Self::Cuckoo => "cuckoo",
            Self::Quotient => "quotient",
            Self::Xor => "xor",
            Self::Fuse => "fuse",
            Self::Fuse4 => "fuse4",
            Self::Ribbon => "ribbon",
        }
    }
}

impl Local {
    /// Filters of this type with this target false positive rate.
    #[must_use]
    pub const fn new(family: Family, rate: f64) -> Self {
        Self { family, rate, secret: None }
    }

    /// Blocked Bloom filter, for a set that grows. It is the fastest, and readers and writers never wait for
    /// each other.
    #[must_use]
    pub const fn blocked(rate: f64) -> Self {
        Self::new(Family::Blocked, rate)
    }

    /// Classic Bloom filter, for a set that grows. It is a little smaller and slower than
    /// [`blocked`](Self::blocked).
    #[must_use]
    pub const fn classic(rate: f64) -> Self {
        Self::new(Family::Classic, rate)
    }

    /// Scalable Bloom filter, for a set that grows and is too large to be scanned often.
    #[must_use]
    pub const fn scalable(rate: f64) -> Self {
        Self::new(Family::Scalable, rate)
    }

    /// Counting Bloom filter, for keys that are deleted. A cell that saturates is never decremented again.
    #[must_use]
    pub const fn counting(rate: f64) -> Self {
        Self::new(Family::Counting, rate)
    }

    /// Cuckoo filter, for keys that are deleted, in little space.
    #[must_use]
    pub const fn cuckoo(rate: f64) -> Self {
        Self::new(Family::Cuckoo, rate)
    }

    /// Quotient filter, for keys that are deleted, and the same key many times.
    #[must_use]
    pub const fn quotient(rate: f64) -> Self {
        Self::new(Family::Quotient, rate)
    }

    /// Ribbon filter, for a static set, in the least space.
    #[must_use]
    pub const fn ribbon(rate: f64) -> Self {
        Self::new(Family::Ribbon, rate)
    }

    /// Binary fuse filter, for a static set, with fast look-ups.
    #[must_use]
    pub const fn fuse(rate: f64) -> Self {
        Self::new(Family::Fuse, rate)
    }

    /// Xor filter, for a static set.
    #[must_use]
    pub const fn xor(rate: f64) -> Self {
        Self::new(Family::Xor, rate)
    }

    /// Uses this secret instead of a new one for each generation. It is not stored in the files.
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
                Body::locked(ScalableBloomFilter::with(shape, hasher)?)
            }
            Family::Counting => {
                let shape = counting::Shape::for_rate(items, rate)?;
                Body::locked(CountingBloomFilter::with(shape, hasher)?)
            }
            Family::Cuckoo => {
                let shape = cuckoo::Shape::for_rate(items, rate)?;
                Body::locked(CuckooFilter::with(shape, hasher)?)
            }
            Family::Quotient => {
                let shape = quotient::Shape::for_rate(items, rate)?;
                Body::locked(QuotientFilter::with(shape, hasher)?)
            }
            Family::Xor | Family::Fuse | Family::Fuse4 | Family::Ribbon => {
                Body::Locked(RwLock::new(Locked::Gathering(Vec::new())))
            }
        })
    }

    /// Builds the static filter from all collected digests.
    fn build(&self, hasher: Keyed, digests: Vec<Digest>) -> Result<Locked, Trouble> {
        let how = Build::with_hasher(self.rate, hasher);
        let built = match self.family {
            Family::Xor => XorFilter::build_from_digests(how, digests).map(any),
            Family::Fuse => BinaryFuseFilter::build_from_digests(how, digests).map(any),
            Family::Fuse4 => BinaryFuse4Filter::build_from_digests(how, digests).map(any),
            _ => RibbonFilter::build_from_digests(how, digests).map(any),
        };
        built.map(Locked::Filter).map_err(|error| Trouble::Build(Arc::new(error)))
    }

    fn load_body(&self, path: &Path) -> Result<Body, OpenError> {
        let mut how = Opening::new();
        if let Some(secret) = self.secret {
            how = how.hasher(secret);
        }
        Ok(match self.family {
            Family::Blocked => Body::Blocked(how.load(path)?),
            Family::Classic => Body::Classic(how.load(path)?),
            _ => {
                let filter: AnyKeyed = how.load(path)?;
                if filter.raw().family() != self.family.name() {
                    return Err(InvalidBytes::Inconsistent.into());
                }
                Body::Locked(RwLock::new(Locked::Filter(filter)))
            }
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

/// Atomic filters are read and changed without a lock. All others are behind a lock.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each filter, and a box would be a cache miss for each key"
)]
enum Body {
    Blocked(AtomicBlockedBloomFilter<[u8], Keyed>),
    Classic(AtomicBloomFilter<[u8], Keyed>),
    Locked(RwLock<Locked>),
}

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each filter, and a box would be a cache miss for each key"
)]
enum Locked {
    /// The digests of a static set, until its filter is built.
    Gathering(Vec<Digest>),
    Filter(AnyKeyed),
}

type AnyKeyed = Filter<[u8], Keyed, Any>;

fn any<C: Into<Any>>(filter: Filter<[u8], Keyed, C>) -> AnyKeyed {
    let hasher = *filter.hasher();
    Filter::from_raw(filter.into_raw().into(), hasher)
}

/// A poisoned lock is ignored: insertions are all or nothing, so a panic leaves the filter as it was.
fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

impl Locked {
    #[inline]
    fn contains(&self, digest: Digest) -> Result<bool, Trouble> {
        match self {
            Self::Gathering(_) => Err(Trouble::Unavailable("it is not built yet".into())),
            Self::Filter(filter) => Ok(filter.raw().contains_digest(digest)),
        }
    }

    fn add(&mut self, digests: &[Digest]) -> Result<(), Trouble> {
        match self {
            Self::Gathering(gathered) => {
                gathered.try_reserve(digests.len()).map_err(|_| Trouble::Full)?;
                gathered.extend_from_slice(digests);
            }
            Self::Filter(filter) => {
                for digest in digests {
                    let added = filter.raw_mut().insert_digest(*digest);
                    added.map_err(|error| match error {
                        ChangeError::Unsupported(_) => Trouble::ReadOnly,
                        _ => Trouble::Full,
                    })?;
                }
            }
        }
        Ok(())
    }

    fn measure(&self) -> Measure {
        let Self::Filter(filter) = self else {
            return Measure { bytes: 0, capacity: 0, items: 0, fill: 0.0, rate: 1.0 };
        };
        let core = filter.raw();
        let items = core.estimated_len().unwrap_or(0);
        let (capacity, fill) = match core {
            Any::Scalable(core) => {
                let levels = 0..core.levels().len() as u32;
                let capacity = levels.map(|level| core.shape().level_capacity(level)).sum();
                (capacity, core.fresh() as f64 / capacity as f64)
            }
            Any::Counting(core) => {
                let cells = core.shape().cells();
                (core.shape().items(), core.count_nonzero() as f64 / cells as f64)
            }
            Any::Cuckoo(core) => (core.shape().room(), core.load()),
            Any::Quotient(core) => (core.capacity(), core.load()),
            _ => (items, 1.0),
        };
        Measure { bytes: core.bytes(), capacity, items, fill, rate: core.expected_rate() }
    }
}

impl Body {
    fn locked<C: Into<Any>>(filter: Filter<[u8], Keyed, C>) -> Self {
        Self::Locked(RwLock::new(Locked::Filter(any(filter))))
    }

    fn hasher(&self) -> Option<Keyed> {
        match self {
            Self::Blocked(filter) => Some(*filter.hasher()),
            Self::Classic(filter) => Some(*filter.hasher()),
            Self::Locked(lock) => match &*read(lock) {
                Locked::Gathering(_) => None,
                Locked::Filter(filter) => Some(*filter.hasher()),
            },
        }
    }

    #[inline]
    fn contains(&self, digest: Digest) -> Result<bool, Trouble> {
        match self {
            Self::Blocked(filter) => Ok(filter.contains_digest(digest)),
            Self::Classic(filter) => Ok(filter.contains_digest(digest)),
            Self::Locked(lock) => read(lock).contains(digest),
        }
    }

    fn add_all(&self, digests: &[Digest]) -> Result<(), Trouble> {
        match self {
            Self::Blocked(filter) => {
                filter.insert_digests(digests, &mut vec![false; digests.len()]);
            }
            Self::Classic(filter) => {
                filter.insert_digests(digests, &mut vec![false; digests.len()]);
            }
            Self::Locked(lock) => {
                // The lock is taken for 64 digests at a time, so that readers of a filter in use do not wait
                // long.
                for some in digests.chunks(64) {
                    write(lock).add(some)?;
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn add(&self, digest: Digest) -> Result<(), Trouble> {
        match self {
            Self::Blocked(filter) => _ = filter.insert_digest(digest),
            Self::Classic(filter) => _ = filter.insert_digest(digest),
            Self::Locked(lock) => write(lock).add(&[digest])?,
        }
        Ok(())
    }

    fn remove(&self, digest: Digest) {
        if let Self::Locked(lock) = self
            && let Locked::Filter(filter) = &mut *write(lock)
        {
            // A type without deletion keeps the key.
            _ = filter.raw_mut().remove_digest(digest);
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
                Self::Locked(lock) => match &*read(lock) {
                    Locked::Filter(filter) => filter.raw().contains_digests(some, found),
                    gathering => _ = gathering.contains(some[0])?,
                },
            }
            missing += found.iter().filter(|found| !**found).count() as u64;
        }
        Ok(missing)
    }

    fn measure(&self) -> Measure {
        /// Atomic filters have no type in common, so a macro measures them.
        macro_rules! measured {
            ($filter:expr) => {{
                let shape = $filter.shape();
                Measure {
                    bytes: $filter.bytes(),
                    capacity: shape.items(),
                    items: $filter.estimated_len(),
                    fill: $filter.count_ones() as f64 / shape.bits() as f64,
                    rate: $filter.expected_rate(),
                }
            }};
        }
        match self {
            Self::Blocked(filter) => measured!(filter),
            Self::Classic(filter) => measured!(filter),
            Self::Locked(lock) => read(lock).measure(),
        }
    }

    fn save(&self, path: &Path, with_secret: bool) -> io::Result<()> {
        fn saved(filter: &impl Saved, path: &Path, with_secret: bool) -> io::Result<()> {
            if with_secret { filter.save_with_secret(path) } else { filter.save(path) }
        }
        match self {
            Self::Blocked(filter) => saved(&filter.snapshot(), path, with_secret),
            Self::Classic(filter) => saved(&filter.snapshot(), path, with_secret),
            Self::Locked(lock) => {
                let locked = read(lock);
                let Locked::Filter(filter) = &*locked else {
                    return Err(io::ErrorKind::Unsupported.into());
                };
                if matches!(
                    filter.raw(),
                    Any::Xor(_) | Any::Fuse(_) | Any::Fuse4(_) | Any::Ribbon(_)
                ) {
                    return saved(filter, path, with_secret);
                }
                // Saves a copy, so that writers wait for a memory copy and not for the disk.
                let copy = filter.clone();
                drop(locked);
                saved(&copy, path, with_secret)
            }
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
        let Body::Locked(lock) = &self.body else { return Ok(()) };
        let digests = match &mut *write(lock) {
            Locked::Gathering(digests) => std::mem::take(digests),
            Locked::Filter(_) => return Ok(()),
        };
        let (kind, hasher) = (self.kind, self.hasher);
        let built = tokio::task::spawn_blocking(move || kind.build(hasher, digests)).await;
        let built = built.map_err(|_| Trouble::Unavailable("building it was given up".into()))?;
        *write(lock) = built?;
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
    async fn a_file_of_another_family_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("f.umbel");
        let all = || Family::CHANGING.into_iter().chain(Family::FIXED);
        for family in all() {
            let filter = Local::new(family, 0.01).begin(100).await.unwrap();
            filter.seal().await.unwrap();
            filter.save(&path).unwrap();
            for other in all() {
                assert_eq!(
                    Local::new(other, 0.01).load(&path).is_ok(),
                    family == other,
                    "{other:?}"
                );
            }
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
