//! RedisBloom's scaling Bloom filter, to the bit: a chain of links, each larger and stricter.
//!
//! ```text
//!     oldest                                      newest
//!     [ 100 keys at p/2 ] -> [ 200 at p/4 ] -> [ 400 at p/8 ]     a key goes into the newest,
//!        asked last             then              asked first     unless one of them has it
//! ```
//!
//! | bits per key | touches per look-up | remove | union | grow | can adding fail |
//! |---|---|---|---|---|---|
//! | 11.0 at 1 % in one link | about 4 absent, 8 present, in each link | no | yes, link by link | yes | memory, or told not to grow |
//!
//! This is the format of a RedisBloom server in memory, in files and in dumps. Choose it for data that has to
//! move between servers. Prefer `BLOCKED` for speed in large filters, and `KEYED` where untrusted clients
//! choose the keys.
//!
//! # Where it breaks
//!
//! Every link is read on a look-up: fourteen of them after growing from 100 to a million keys, at 46 bits per
//! key. The first link is planned for half of the requested rate. The hash has no secret.
//!
//! ```
//! use umbel_module::bloom::{Chain, Growth};
//!
//! let mut seen = Chain::new(100, 0.01, Growth::By(2))?;
//! let hash = seen.hash(b"a");
//! assert_eq!(seen.add(hash), Ok(true)); // true: certainly new
//! assert!(seen.contains(seen.hash(b"a")));
//! assert!(!seen.contains(seen.hash(b"b")));
//! # Ok::<(), umbel_module::error::Invalid>(())
//! ```

mod batch;
mod dump;
mod link;
mod merge;
mod modulus;

pub use dump::{HEADER, LINK_HEADER};
pub use link::{Link, LinkFields, LinkPlan, MAX_BITS, Pair};
pub use merge::Unlike;

use crate::error::{Invalid, Refused};
use crate::murmur::{M64, murmur2, murmur64a};
use umbel::hash::Digester;
use umbel::{Digest, Keyed};

/// The ratio of the error rates of consecutive links.
const TIGHTENING: f64 = 0.5;

/// No rate of a stored filter is looser than this.
pub const MAX_RATE: f64 = 0.25;

/// The maximum number of links. A chain that doubles exceeds any memory long before.
pub const MAX_LINKS: usize = 4_096;

/// The fastest growth that a client can request. RedisBloom 2.6 had no limit, so stored chains may grow faster.
pub const MAX_GROWTH: u32 = 32_768;

/// The growth that RedisBloom stores for a filter that does not grow, unless the client gave another one.
const IDLE_GROWTH: u32 = 2;

/// Bits of the option word, by their numbers in files.
mod option {
    /// Sizes are not rounded up to powers of two.
    pub(super) const NO_ROUND: u32 = 1;
    /// Hashes have 64 bits.
    pub(super) const FORCE_64: u32 = 4;
    /// The filter does not grow.
    pub(super) const NO_SCALING: u32 = 8;
    /// All known bits.
    pub(super) const ALL: u32 = 15;
}

/// The behaviour of a full chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// It adds a link with this multiple of the capacity.
    By(u32),
    /// It accepts no more keys.
    None,
}

/// The hash from a key to its two hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hashing {
    /// MurmurHash64A twice: RedisBloom's.
    Murmur64,
    /// MurmurHash2 twice: RedisBloom's, in old filters.
    Murmur32,
    /// SipHash with a secret: ours, for keys that an attacker may choose.
    Keyed(Keyed),
}

impl Hashing {
    /// The two hashes of a key.
    #[inline]
    #[must_use]
    pub fn pair(&self, key: &[u8]) -> Pair {
        match self {
            Self::Murmur64 => {
                let a = murmur64a(key, M64);
                Pair { a, b: murmur64a(key, a) }
            }
            Self::Murmur32 => {
                let a = murmur2(key, 0x9747_b28c);
                Pair { a: u64::from(a), b: u64::from(murmur2(key, a)) }
            }
            Self::Keyed(keyed) => {
                let a = keyed.digest(key).bits();
                // Odd, so that the positions of a key are never all the same.
                Pair { a, b: Digest::mixed(a).bits() | 1 }
            }
        }
    }
}

/// A chain of Bloom filters, with its growth.
#[derive(Debug)]
pub struct Chain {
    links: Vec<Link>,
    size: u64,
    options: u32,
    growth: u32,
    hashing: Hashing,
}

/// The stored fields of a chain, without its links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainFields {
    /// The number of keys in all links.
    pub size: u64,
    /// The option word.
    pub options: u32,
    /// The ratio of the capacity of a new link to that of the last one.
    pub growth: u32,
}

impl Chain {
    /// An empty chain. Without growth it has the requested rate. With growth the first link has half of it, so
    /// that all links together keep the requested rate.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if the capacity is 0 or too large, the rate is not above 0 and below 1, or there is not
    /// enough memory.
    pub fn new(capacity: u64, err_rate: f64, growth: Growth) -> Result<Self, Invalid> {
        Self::hashed(capacity, err_rate, growth, Hashing::Murmur64)
    }

    /// As [`new`](Self::new), with another hash.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn hashed(
        capacity: u64,
        err_rate: f64,
        growth: Growth,
        hashing: Hashing,
    ) -> Result<Self, Invalid> {
        // NaN is kept, and refused below.
        let rate = if err_rate > MAX_RATE && err_rate < 1.0 { MAX_RATE } else { err_rate };
        let (growth, scales) = match (growth, hashing) {
            (Growth::By(growth), _) => (growth, true),
            // The fields that keyed chains have always stored.
            (Growth::None, Hashing::Keyed(_)) => (0, false),
            (Growth::None, _) => (IDLE_GROWTH, false),
        };
        LinkPlan::for_rate(capacity, rate)?;
        Self::recorded(capacity, rate, growth, scales, hashing)
    }

    /// A chain as RedisBloom makes it from these numbers. The rate may be looser than [`MAX_RATE`], as old
    /// versions allowed, and the growth is stored even if the chain does not scale.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn recorded(
        capacity: u64,
        err_rate: f64,
        growth: u32,
        scales: bool,
        hashing: Hashing,
    ) -> Result<Self, Invalid> {
        let (rate, scaling) =
            if scales { (err_rate * TIGHTENING, 0) } else { (err_rate, option::NO_SCALING) };
        let link = LinkPlan::wrapping(capacity, rate)?.empty()?;
        let options = option::FORCE_64 | option::NO_ROUND | scaling;
        Self::of(ChainFields { size: 0, options, growth }, vec![link], hashing)
    }

    /// The only validator of chains. Links have been validated before.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if a field has an invalid value, or does not fit the links.
    pub fn of(fields: ChainFields, links: Vec<Link>, hashing: Hashing) -> Result<Self, Invalid> {
        let ChainFields { size, options, growth } = fields;
        Self::check(fields, links.len())?;
        let sizes = links.iter().try_fold(0_u64, |sum, link| sum.checked_add(link.size()));
        if sizes != Some(size) {
            return Err(Invalid::Field("size"));
        }
        let hashing = match hashing {
            Hashing::Keyed(_) => hashing,
            _ if options & option::FORCE_64 != 0 => Hashing::Murmur64,
            _ => Hashing::Murmur32,
        };
        Ok(Self { links, size, options, growth, hashing })
    }

    /// Checks the fields before any link is read.
    ///
    /// # Errors
    ///
    /// [`Invalid::Field`] if there are no links or too many, or unknown options.
    pub fn check(fields: ChainFields, links: usize) -> Result<(), Invalid> {
        if links == 0 || links > MAX_LINKS {
            return Err(Invalid::Field("number of links"));
        }
        if fields.options & !option::ALL != 0 {
            return Err(Invalid::Field("options"));
        }
        Ok(())
    }

    /// The fields in their stored form.
    #[must_use]
    pub const fn fields(&self) -> ChainFields {
        ChainFields { size: self.size, options: self.options, growth: self.growth }
    }

    /// The links, the oldest first.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    pub(crate) fn links_mut(&mut self) -> &mut Vec<Link> {
        &mut self.links
    }

    /// How keys are hashed.
    #[must_use]
    pub const fn hashing(&self) -> &Hashing {
        &self.hashing
    }

    /// The behaviour when it is full.
    #[must_use]
    pub const fn growth(&self) -> Growth {
        if self.options & option::NO_SCALING != 0 || self.growth == 0 {
            Growth::None
        } else {
            Growth::By(self.growth)
        }
    }

    /// The number of keys that were added.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The planned capacity of all links together.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.links.iter().map(Link::entries).fold(0, u64::saturating_add)
    }

    /// The size in `BF.INFO`: the bits, and RedisBloom's own records of them.
    #[must_use]
    pub fn reported_bytes(&self) -> u64 {
        const CHAIN: u64 = 32;
        const LINK: u64 = 64;
        self.links.iter().map(|link| link.plan().bytes() + LINK).sum::<u64>() + CHAIN
    }

    /// The two hashes of a key.
    #[inline]
    #[must_use]
    pub fn hash(&self, key: &[u8]) -> Pair {
        self.hashing.pair(key)
    }

    /// Whether the key may have been added. `false` is guaranteed: the key was not added.
    #[must_use]
    pub fn contains(&self, pair: Pair) -> bool {
        self.links.iter().rev().any(|link| link.contains(pair))
    }

    /// Adds a key unless it is present. Returns `true` if the key is certainly new.
    ///
    /// # Errors
    ///
    /// [`Refused`] if the chain is full and does not grow, or cannot. The chain is then unchanged.
    pub fn add(&mut self, pair: Pair) -> Result<bool, Refused> {
        self.fetch_to_add(&[pair]);
        if self.contains(pair) { Ok(false) } else { self.put(pair).map(|()| true) }
    }

    /// Prefetches the positions of these keys in the newest link.
    #[inline]
    fn fetch_to_add(&self, pairs: &[Pair]) {
        if let Some(last) = self.links.last().filter(|link| link.bytes().len() > batch::NEAR) {
            pairs.iter().for_each(|pair| last.fetch_all(*pair));
        }
    }

    /// Adds a key that is not present.
    fn put(&mut self, pair: Pair) -> Result<(), Refused> {
        self.make_room()?;
        if let Some(link) = self.links.last_mut() {
            link.set(pair);
            link.set_size(link.size().saturating_add(1));
            self.size = self.size.saturating_add(1);
        }
        Ok(())
    }

    /// Grows if the newest link is full.
    fn make_room(&mut self) -> Result<(), Refused> {
        let Some(last) = self.links.last() else { return Err(Refused::Full) };
        if last.size() < last.entries() {
            return Ok(());
        }
        let Growth::By(growth) = self.growth() else { return Err(Refused::Full) };
        if self.links.len() >= MAX_LINKS {
            return Err(Refused::MaxExpansions);
        }
        let entries = last.entries().saturating_mul(u64::from(growth));
        let rate = (last.error() * TIGHTENING).max(f64::MIN_POSITIVE);
        let plan = LinkPlan::for_rate(entries, rate).map_err(|_| Refused::NoMemory)?;
        self.links.try_reserve(1).map_err(|_| Refused::NoMemory)?;
        self.links.push(plan.empty().map_err(|_| Refused::NoMemory)?);
        Ok(())
    }

    /// A copy, or `None` if there is not enough memory.
    #[must_use]
    pub fn try_clone(&self) -> Option<Self> {
        let mut links = Vec::new();
        links.try_reserve_exact(self.links.len()).ok()?;
        for link in &self.links {
            links.push(link.try_clone()?);
        }
        Some(Self { links, ..*self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(count: u32) -> impl Iterator<Item = Vec<u8>> {
        (0..count).map(|key| format!("key:{key}").into_bytes())
    }

    fn filled(count: u32, growth: Growth) -> Chain {
        let mut chain = Chain::new(100, 0.01, growth).unwrap();
        for key in keys(count) {
            let pair = chain.hash(&key);
            chain.add(pair).unwrap();
        }
        chain
    }

    #[test]
    fn positions_are_those_of_redisbloom() {
        let chain = Chain::new(100, 0.01, Growth::By(2)).unwrap();
        let positions =
            |key: &[u8]| chain.links()[0].positions(chain.hash(key)).collect::<Vec<_>>();
        // FORMATS.md: a real dump with the one item `cfq`, and two that were computed.
        let mut cfq = positions(b"cfq");
        cfq.sort_unstable();
        assert_eq!(cfq, [376, 457, 666, 747, 828, 909, 990, 1071]);
        assert_eq!(positions(b"foo"), [269, 847, 145, 723, 21, 599, 25, 475]);
        assert_eq!(positions(b"hello"), [537, 957, 97, 517, 809, 77, 497, 789]);
    }

    #[test]
    fn a_chain_grown_to_a_million_has_the_size_of_redisbloom() {
        let mut chain = Chain::new(100, 0.01, Growth::By(2)).unwrap();
        let pairs: Vec<_> = keys(1_000_000).map(|key| chain.hash(&key)).collect();
        let mut fresh = vec![false; pairs.len()];
        chain.add_batch(&pairs, &mut fresh).unwrap();
        assert_eq!(chain.links().len(), 14);
        // REDIS.md: MEMORY USAGE 5,804,952, of which 24 to 40 are the key.
        let rest = 5_804_952 - chain.reported_bytes();
        assert!((24..=40).contains(&rest), "{rest}");
        assert!(pairs.iter().all(|pair| chain.contains(*pair)));
    }

    #[test]
    fn a_full_chain_that_does_not_grow_refuses_and_keeps_what_it_has() {
        let mut chain = Chain::new(100, 0.01, Growth::None).unwrap();
        let pairs: Vec<_> = keys(200).map(|key| chain.hash(&key)).collect();
        let mut fresh = vec![false; pairs.len()];
        let (done, refused) = chain.add_batch(&pairs, &mut fresh).unwrap_err();
        assert_eq!(refused, Refused::Full);
        assert!(done >= 100 && chain.size() == 100);
        assert!(pairs[..done].iter().all(|pair| chain.contains(*pair)));
        assert_eq!(chain.add(pairs[0]), Ok(false));
        assert_eq!(chain.add(pairs[done]), Err(Refused::Full));
    }

    #[test]
    fn rates_above_a_quarter_are_a_quarter() {
        let loose = Chain::new(100, 0.9, Growth::None).unwrap();
        assert_eq!(loose.links()[0].error(), MAX_RATE);
        assert!(Chain::new(100, f64::NAN, Growth::None).is_err());
        assert!(Chain::new(100, 1.0, Growth::None).is_err());
        assert!(Chain::new(0, 0.1, Growth::None).is_err());
        assert!(Chain::new(1 << 62, 0.1, Growth::None).is_err());
    }

    #[test]
    fn chains_of_old_versions_are_made_as_they_made_them() {
        let made = |capacity, rate, scales| {
            Chain::recorded(capacity, rate, 7, scales, Hashing::Murmur64).unwrap()
        };
        let loose = made(3, 0.5, true);
        assert_eq!((loose.links()[0].error(), loose.fields().growth), (0.25, 7));
        assert_eq!(made(3, 0.999_999, false).links()[0].error(), 0.999_999);
        assert_eq!(made(3, 1e-300, true).links()[0].error(), 5e-301);
        // RedisBloom 2.6.28 replies with this error when the number of bits does not fit into 64 bits.
        let wrapped = made(1 << 62, 0.01, false);
        let link = &wrapped.links()[0];
        assert_eq!((link.entries(), link.bits(), link.hashes()), (1 << 62, 64, 7));
        let fixed = made(100, 0.01, false);
        assert_eq!((fixed.growth(), fixed.fields().growth), (Growth::None, 7));
        assert_eq!(Chain::new(100, 0.01, Growth::None).unwrap().fields().growth, 2);
    }

    #[test]
    fn the_rate_is_kept_while_growing() {
        let chain = filled(20_000, Growth::By(2));
        let strangers = 200_000;
        let found = (0..strangers)
            .filter(|key| chain.contains(chain.hash(format!("stranger:{key}").as_bytes())))
            .count();
        // The links have half of the rate, a quarter, an eighth: below 1 % together, and five sigma on top.
        let promised = strangers as f64 * 0.01;
        assert!((found as f64) < promised + 5.0 * promised.sqrt(), "{found}");
    }

    #[test]
    fn keyed_chains_differ_by_their_secret() {
        let make = |secret| {
            Chain::hashed(1_000, 0.01, Growth::None, Hashing::Keyed(Keyed::new([secret; 16])))
                .unwrap()
        };
        let (mut one, other) = (make(1), make(2));
        assert_ne!(one.hash(b"a"), other.hash(b"a"));
        for key in keys(1_000) {
            let pair = one.hash(&key);
            one.add(pair).unwrap();
        }
        assert!(keys(1_000).all(|key| one.contains(one.hash(&key))));
        let strangers = 100_000;
        let found =
            (0..strangers).filter(|key: &u32| one.contains(one.hash(&key.to_le_bytes()))).count();
        let promised = f64::from(strangers) * 0.01;
        assert!((found as f64) < promised + 5.0 * promised.sqrt(), "{found}");
    }

    #[test]
    fn chains_that_cannot_be_are_refused() {
        let link = || LinkPlan::for_rate(10, 0.1).unwrap().empty().unwrap();
        let fields = ChainFields { size: 0, options: 5, growth: 2 };
        let of = |fields, links| Chain::of(fields, links, Hashing::Murmur64).map(|_| ());
        assert_eq!(of(fields, vec![link()]), Ok(()));
        assert_eq!(of(fields, vec![]), Err(Invalid::Field("number of links")));
        let wrong = ChainFields { options: 16, ..fields };
        assert_eq!(of(wrong, vec![link()]), Err(Invalid::Field("options")));
        let fastest = ChainFields { growth: u32::MAX, ..fields };
        assert_eq!(of(fastest, vec![link()]), Ok(()), "RedisBloom 2.6 has no limit");
        let wrong = ChainFields { size: 1, ..fields };
        assert_eq!(of(wrong, vec![link()]), Err(Invalid::Field("size")));
    }
}
