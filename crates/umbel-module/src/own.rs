//! Filters beyond RedisBloom's, in separate types, so that a client only gets them on request.
//!
//! | request | filter | type |
//! |---|---|---|
//! | `BF.RESERVE ... KEYED` | the same chain, hashed under a secret | `umbel-bf-` |
//! | `BF.RESERVE ... BLOCKED` | [`BlockedBloomFilter`](umbel::BlockedBloomFilter)s: one or two cache lines per key | `umbel-bf-` |
//! | `BF.RESERVE ... WINDOW n` | [`WindowBloomFilter`]: the last n keys | `umbel-bf-` |
//! | `CF.RESERVE ... ERROR p` | [`CuckooFilter`](umbel::CuckooFilter): fingerprints as long as p needs | `umbel-cf-` |
//!
//! In RDB files and in chunks they are a stream of bytes, which [`stream`] writes and reads.

pub(crate) mod blocked;
mod cuckoo;
mod loading;
pub mod stream;

pub use blocked::Blocked;
pub use cuckoo::OwnCuckoo;
pub use loading::Loading;

use crate::bloom::{Chain, Growth, Hashing, Unlike};
use crate::error::{Invalid, Refused};
use crate::membership::{About, Measure, Membership, stride};
use umbel::any::AnyHasher;
use umbel::hash::Digester;
use umbel::window::{Shape, Window};
use umbel::{Digest, Keyed, Portable, WindowBloomFilter};

/// A Bloom filter beyond RedisBloom's.
#[derive(Debug)]
pub enum OwnBloom {
    /// A chain hashed with a secret.
    Keyed(Chain),
    /// A blocked filter: one or two cache lines per key.
    Blocked(Blocked),
    /// A window filter: the last keys.
    Window(WindowBloomFilter<[u8], AnyHasher>),
    /// A filter whose chunks are still being loaded.
    Loading(Loading),
}

/// The hasher, with a secret if one is given.
pub(crate) fn hasher(secret: Option<Keyed>) -> AnyHasher {
    secret.map_or_else(|| AnyHasher::from(Portable::default()), AnyHasher::from)
}

/// Whether keys are hashed with a secret.
pub(crate) fn has_a_secret(hasher: &AnyHasher) -> bool {
    hasher.name() == "keyed"
}

/// The number of keys that are passed to a filter of `umbel` at once. Its batches prefetch memory themselves,
/// and fewer batches have less overhead.
pub(crate) const BATCH: usize = 128;

/// The digests of up to [`BATCH`] keys.
#[inline]
pub(crate) fn digests(hasher: &AnyHasher, keys: &[&[u8]]) -> [Digest; BATCH] {
    let mut digests = [Digest::new(0); BATCH];
    for (digest, key) in digests.iter_mut().zip(keys) {
        *digest = hasher.digest(key);
    }
    digests
}

impl OwnBloom {
    /// A chain with a secret.
    ///
    /// # Errors
    ///
    /// As [`Chain::new`].
    pub fn keyed(
        capacity: u64,
        err_rate: f64,
        growth: Growth,
        secret: Keyed,
    ) -> Result<Self, Invalid> {
        Chain::hashed(capacity, err_rate, growth, Hashing::Keyed(secret)).map(Self::Keyed)
    }

    /// A filter of the last `window` keys.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if the shape is invalid, or there is not enough memory.
    pub fn window(window: u64, err_rate: f64, secret: Option<Keyed>) -> Result<Self, Invalid> {
        let shape = Shape::for_rate(window, err_rate).map_err(|_| Invalid::Field("window"))?;
        let filter =
            WindowBloomFilter::with(shape, hasher(secret)).map_err(|_| Invalid::NoMemory)?;
        Ok(Self::Window(filter))
    }

    /// The number of bytes of its bits.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Keyed(chain) => chain.links().iter().map(|link| link.plan().bytes()).sum(),
            Self::Blocked(blocked) => blocked.bytes(),
            Self::Window(window) => window.bytes(),
            Self::Loading(loading) => loading.bytes().len() as u64,
        }
    }

    /// Whether its stream may contain a secret. While it is being loaded, only its bytes are known.
    #[must_use]
    pub fn may_have_a_secret(&self) -> bool {
        match self {
            Self::Keyed(_) | Self::Loading(_) => true,
            Self::Blocked(blocked) => has_a_secret(&blocked.hasher()),
            Self::Window(window) => has_a_secret(window.hasher()),
        }
    }

    /// The filter for look-ups, unless its chunks are still being loaded.
    #[must_use]
    pub fn ready(&self) -> Option<&dyn Membership> {
        match self {
            Self::Keyed(chain) => Some(chain),
            Self::Blocked(blocked) => Some(blocked),
            Self::Window(window) => Some(window),
            Self::Loading(_) => None,
        }
    }

    /// The filter for changes, unless its chunks are still being loaded.
    #[must_use]
    pub fn ready_mut(&mut self) -> Option<&mut dyn Membership> {
        match self {
            Self::Keyed(chain) => Some(chain),
            Self::Blocked(blocked) => Some(blocked),
            Self::Window(window) => Some(window),
            Self::Loading(_) => None,
        }
    }

    /// Checks that the keys of the other filter can be merged into this one.
    ///
    /// # Errors
    ///
    /// [`Unlike`] if they have different types or hashes, or a type that cannot be merged.
    pub fn fits(&self, other: &Self) -> Result<(), Unlike> {
        match (self, other) {
            (Self::Keyed(one), Self::Keyed(other)) => one.fits(other),
            (Self::Blocked(one), Self::Blocked(other)) => one.fits(other),
            _ => Err(Unlike),
        }
    }

    /// Adds all keys of a filter that [`fits`](Self::fits).
    ///
    /// # Errors
    ///
    /// As [`Chain::merge`].
    pub fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        match (self, other) {
            (Self::Keyed(one), Self::Keyed(other)) => one.merge(other),
            (Self::Blocked(one), Self::Blocked(other)) => one.merge(other),
            _ => Err(Refused::Full),
        }
    }

    /// A copy, or `None` if there is not enough memory.
    #[must_use]
    pub fn try_clone(&self) -> Option<Self> {
        Some(match self {
            Self::Keyed(chain) => Self::Keyed(chain.try_clone()?),
            Self::Blocked(blocked) => Self::Blocked(blocked.try_clone()?),
            Self::Window(window) => Self::Window(window.try_clone().ok()?),
            Self::Loading(loading) => Self::Loading(loading.try_clone()?),
        })
    }
}

impl Membership for WindowBloomFilter<[u8], AnyHasher> {
    fn find(&self, keys: &[&[u8]], found: &mut [bool]) {
        assert_eq!(keys.len(), found.len(), "an answer for every key");
        for (keys, found) in keys.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
            self.contains_digests(&digests(self.hasher(), keys)[..keys.len()], found);
        }
    }

    fn put(&mut self, keys: &[&[u8]], fresh: &mut [bool]) -> Result<(), (usize, Refused)> {
        assert_eq!(keys.len(), fresh.len(), "an answer for every key");
        for (keys, fresh) in keys.chunks(BATCH).zip(fresh.chunks_mut(BATCH)) {
            let digests = digests(self.hasher(), keys);
            self.insert_digests(&digests[..keys.len()], fresh);
        }
        Ok(())
    }

    fn about(&self) -> About {
        let Window::Insertions(window) = self.shape().window() else {
            unreachable!("windows of time are refused when they are made and read")
        };
        About {
            capacity: window,
            bytes: self.bytes(),
            filters: 1,
            items: self.insertions(),
            expansion: None,
            layout: "window",
        }
    }

    fn measure(&self) -> Measure {
        let (ones, items, rate) = self.raw().sampled(stride(self.bytes()));
        Measure { fill: ones as f64 / self.shape().bits() as f64, items: items as f64, rate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares a measurement by a sample of 8 MiB with one of all bits: the value in `BF.INFO` may differ by
    /// this much.
    #[test]
    fn large_filters_are_measured_by_a_sample() {
        let keys: Vec<[u8; 8]> = (0..1_000_000_u64).map(u64::to_le_bytes).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let mut fresh = vec![false; keys.len()];
        // 35 MB and 34 MB.
        let mut blocked = Blocked::new(20_000_000, 0.001, Growth::None, None).unwrap();
        let Ok(OwnBloom::Window(mut window)) = OwnBloom::window(10_000_000, 0.001, None) else {
            panic!("no such window")
        };
        assert!(stride(blocked.bytes()) >= 3 && stride(window.bytes()) >= 2);
        blocked.put(&keys, &mut fresh).unwrap();
        window.put(&keys, &mut fresh).unwrap();
        let level = &blocked.levels()[0].filter;
        let exact = [
            (
                level.count_ones(),
                level.shape().bits(),
                level.estimated_len(),
                level.expected_rate(),
            ),
            {
                let ones = window.words().iter().map(|word| u64::from(word.count_ones())).sum();
                (ones, window.shape().bits(), window.estimated_len(), window.expected_rate())
            },
        ];
        let near = |one: f64, other: f64, share: f64| (one / other - 1.0).abs() <= share;
        for ((ones, bits, items, rate), measure) in
            exact.into_iter().zip([blocked.measure(), window.measure()])
        {
            let fill = ones as f64 / bits as f64;
            assert_ne!(measure.fill, fill, "all bits were read");
            // More than 100,000 lines in which 12 bits are set, give or take 3.5: five standard deviations of the sum are 0.5 %,
            // and of the rate, which grows with a power of it, ten times that.
            assert!(near(measure.fill, fill, 0.005), "{measure:?} {fill}");
            assert!(near(measure.items, items as f64, 0.005), "{measure:?} {items}");
            assert!(near(measure.rate, rate, 0.05), "{measure:?} {rate}");
        }
    }
}
