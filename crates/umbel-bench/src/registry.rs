//! Every contender, by name.

use crate::{
    contender::{Contender, Lane, Track},
    keys::Key,
    ours, peers,
};
use std::fmt;

/// A fresh lane for a contender at a rate.
type NewLane<K> = fn(f64) -> Box<dyn Lane<K>>;

/// One contender: its name, its limits, and a lane for each kind of key.
pub(crate) struct Entry {
    /// The family it competes in.
    pub(crate) family: &'static str,
    /// Its name, hasher included.
    pub(crate) name: &'static str,
    /// The fixed rate of filters with fixed fingerprints; it ignores the requested rate.
    pub(crate) own_rate: Option<f64>,
    /// The largest number of keys: slow filters and those that need much memory stop here.
    pub(crate) most: u64,
    /// Why present keys may be reported absent.
    pub(crate) may_forget: Option<&'static str>,
    /// Why the measured rate may be far above the target.
    pub(crate) may_exceed: Option<&'static str>,
    u64: NewLane<u64>,
    bytes32: NewLane<[u8; 32]>,
}

impl Entry {
    /// The target rate of this contender when `rate` is requested.
    pub(crate) fn target(&self, rate: f64) -> f64 {
        self.own_rate.unwrap_or(rate)
    }

    /// Sets a fixed rate.
    pub(crate) fn own_rate(&mut self, rate: f64) -> &mut Self {
        self.own_rate = Some(rate);
        self
    }

    /// Limits the number of keys.
    pub(crate) fn at_most(&mut self, items: u64) -> &mut Self {
        self.most = items;
        self
    }

    /// Marks the filter as forgetful, for this reason.
    pub(crate) fn may_forget(&mut self, reason: &'static str) -> &mut Self {
        self.may_forget = Some(reason);
        self
    }

    /// Permits the filter to exceed its target rate by far, for this reason.
    pub(crate) fn may_exceed(&mut self, reason: &'static str) -> &mut Self {
        self.may_exceed = Some(reason);
        self
    }
}

/// A kind of key for which every entry has a lane.
pub(crate) trait Kind: Key {
    /// The name of the kind in reports.
    const NAME: &'static str;

    /// A lane for `entry` at `rate`.
    fn lane(entry: &Entry, rate: f64) -> Box<dyn Lane<Self>>;
}

impl Kind for u64 {
    const NAME: &'static str = "u64";

    fn lane(entry: &Entry, rate: f64) -> Box<dyn Lane<Self>> {
        (entry.u64)(entry.target(rate))
    }
}

impl Kind for [u8; 32] {
    const NAME: &'static str = "bytes32";

    fn lane(entry: &Entry, rate: f64) -> Box<dyn Lane<Self>> {
        (entry.bytes32)(entry.target(rate))
    }
}

/// All contenders, in the order of the report.
pub(crate) struct Registry(Vec<Entry>);

impl Registry {
    /// Ours, then every peer.
    pub(crate) fn all() -> Self {
        let mut registry = Self(Vec::new());
        ours::register(&mut registry);
        peers::register(&mut registry);
        registry
    }

    /// Adds a filter, given as its type for `u64` keys and its type for 32-byte keys.
    pub(crate) fn add<A, B>(&mut self, family: &'static str, name: &'static str) -> &mut Entry
    where
        A: Contender<u64>,
        B: Contender<[u8; 32]>,
    {
        self.0.push(Entry {
            family,
            name,
            own_rate: None,
            most: u64::MAX,
            may_forget: None,
            may_exceed: None,
            u64: |rate| Box::new(Track::<A>::new(rate)),
            bytes32: |rate| Box::new(Track::<B>::new(rate)),
        });
        self.0.last_mut().expect("just pushed")
    }

    /// The entries whose name or family contains one of `patterns`; all when there are none.
    pub(crate) fn select(&self, patterns: &[String]) -> Vec<&Entry> {
        let wanted = |entry: &&Entry| {
            patterns.is_empty()
                || patterns.iter().any(|p| has(entry.name, p) || has(entry.family, p))
        };
        self.0.iter().filter(wanted).collect()
    }

    /// The entry called `name`, or else the only one whose name contains it.
    pub(crate) fn find(&self, name: &str) -> Result<&Entry, NoSuchContender> {
        pick(&self.0, |entry| entry.name, name)
    }
}

/// The item whose name is `wanted`, or else the only one whose name contains it.
pub(crate) fn pick<'a, T>(
    items: &'a [T],
    name: impl Fn(&T) -> &'static str,
    wanted: &str,
) -> Result<&'a T, NoSuchContender> {
    if let Some(item) = items.iter().find(|item| name(item).eq_ignore_ascii_case(wanted)) {
        return Ok(item);
    }
    let close: Vec<&T> = items.iter().filter(|item| has(name(item), wanted)).collect();
    match close[..] {
        [item] => Ok(item),
        [] => {
            Err(NoSuchContender { wanted: wanted.into(), known: items.iter().map(name).collect() })
        }
        _ => Err(NoSuchContender {
            wanted: wanted.into(),
            known: close.into_iter().map(name).collect(),
        }),
    }
}

fn has(name: &str, part: &str) -> bool {
    name.to_ascii_lowercase().contains(&part.to_ascii_lowercase())
}

/// A name that matches no contender, or several.
#[derive(Debug)]
pub(crate) struct NoSuchContender {
    wanted: String,
    known: Vec<&'static str>,
}

impl fmt::Display for NoSuchContender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not the name of one contender; choose from:", self.wanted)?;
        self.known.iter().try_for_each(|name| write!(f, "\n  {name}"))
    }
}

impl std::error::Error for NoSuchContender {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{Queries, Workload};

    const ITEMS: u64 = 2_000;
    const QUERIES: Queries = Queries { least: 20_000, most: 20_000 };

    fn keeps_its_word<K: Kind>(entry: &Entry, work: &Workload<K>) {
        let name = format!("{} with {} keys", entry.name, K::NAME);
        let rate = 0.01;
        let mut lane = K::lane(entry, rate);
        lane.build(&work.keys);

        let found = lane.look_up(&work.present).hits;
        let batch = lane.look_up_batch(&work.present, 1000).hits;
        assert_eq!(batch, found, "{name}: batch and loop disagree about present keys");
        if entry.may_forget.is_none() {
            assert_eq!(found, work.present.len(), "{name}: a key is missing");
        }

        let hits = lane.look_up(&work.absent).hits;
        let batch = lane.look_up_batch(&work.absent, 1000).hits;
        assert_eq!(batch, hits, "{name}: batch and loop disagree about absent keys");
        if entry.may_exceed.is_none() {
            // Peers hash with random seeds. A Poisson variable exceeds five times its mean plus sixteen less
            // than once in 1e20 runs, for any mean.
            let expected = entry.target(rate) * work.absent.len() as f64;
            assert!(
                (hits as f64) < 5.0 * expected + 16.0,
                "{name}: {hits} hits, expected {expected}"
            );
        }

        if lane.can().clears && entry.may_forget.is_none() {
            for pass in [lane.refill(&work.keys), lane.refill_batch(&work.keys, 1000)] {
                assert_eq!(pass.hits, work.keys.len());
                let found = lane.look_up(&work.present).hits;
                assert_eq!(found, work.present.len(), "{name}: a key is missing after clear");
            }
        }
        if lane.can().removes {
            let removed = lane.remove(&work.present[..work.distinct]).hits;
            assert_eq!(removed, work.distinct, "{name}: a key could not be removed");
        }
    }

    #[test]
    fn every_contender_finds_its_keys_and_keeps_near_its_rate() {
        let words = Workload::new(ITEMS, QUERIES);
        let bytes = Workload::new(ITEMS, QUERIES);
        for entry in &Registry::all().0 {
            keeps_its_word::<u64>(entry, &words);
            keeps_its_word::<[u8; 32]>(entry, &bytes);
        }
    }

    #[test]
    fn names_are_unique_and_found_by_a_part_that_fits_one() {
        let registry = Registry::all();
        for entry in &registry.0 {
            assert_eq!(registry.find(entry.name).unwrap().name, entry.name);
            let same = registry.0.iter().filter(|other| other.name == entry.name).count();
            assert_eq!(same, 1, "{}", entry.name);
        }
        assert_eq!(registry.find("BinaryFuse16").unwrap().name, "xorf BinaryFuse16");
        assert!(registry.find("no such filter").is_err());
        let error = registry.find("fastbloom").err().expect("fits several").to_string();
        assert!(error.contains("fastbloom + foldhash"), "{error}");
    }
}
