//! Accepted bytes, opened as their family, and used in every way.

use crate::forge::{FLAGS, SECRET, seal};
use umbel::any::{AnyFilter, AnyHasher};
use umbel::format::Saved;
use umbel::hash::{Digest, Kind};
use umbel::{InvalidBytes, RibbonMap, raw};

/// A filter of any family, or a map.
#[derive(Debug, PartialEq)]
pub(crate) enum Opened {
    Filter(Box<AnyFilter>),
    Map(Box<RibbonMap<[u8], u8, AnyHasher>>),
}

impl Opened {
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidBytes> {
        match AnyFilter::from_bytes(bytes) {
            Err(InvalidBytes::Unknown { field: "family", got: 14 }) => {
                RibbonMap::from_bytes(bytes).map(|map| Self::Map(map.into()))
            }
            filter => filter.map(|filter| Self::Filter(filter.into())),
        }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Filter(filter) => filter.to_bytes(),
            Self::Map(map) => map.to_bytes(),
        }
    }
}

/// Accepted bytes are those of a filter that supports every operation.
pub(crate) fn use_up(bytes: &[u8], mut opened: Opened) {
    // The mark of a writer is not saved, and a secret is saved only on request.
    let mut closed = bytes.to_vec();
    let secret = closed[FLAGS] & 1 != 0;
    closed[FLAGS] = 0;
    closed[SECRET..SECRET + 16].fill(0);
    seal(&mut closed);
    assert!(opened.to_bytes() == closed, "what was accepted is not what is written: {opened:?}");
    assert!(!format!("{opened:?}").is_empty());
    match &mut opened {
        Opened::Filter(filter) => work(filter),
        Opened::Map(map) => {
            let values = (0..64_u64).map(|key| map.get(&key.to_le_bytes()[..]));
            assert!(values.max().map(u32::from) < Some(1 << map.bits()));
        }
    }
    if !secret {
        let again = Opened::from_bytes(&opened.to_bytes());
        assert!(again.unwrap() == opened, "it does not open again: {opened:?}");
    }
}

fn work(filter: &mut AnyFilter) {
    let rate = filter.expected_rate();
    assert!((0.0..=1.0).contains(&rate), "{rate}: {filter:?}");
    assert!(filter.bytes().is_multiple_of(8));
    let width = match filter.hasher().keys() {
        Kind::Wide => 16,
        Kind::Plain4 => 4,
        _ => 8,
    };
    // Another level may be as large as the shape allows.
    let room = match filter.raw() {
        raw::Any::Scalable(scalable) => {
            scalable.levels().last().is_some_and(|level| level.fresh() + 8 < level.capacity())
        }
        _ => true,
    };
    for number in 0..8 {
        let key = &Digest::mixed(number).bits().to_le_bytes().repeat(2)[..width];
        let found = filter.contains(key).unwrap();
        if room && let Ok(fresh) = filter.insert(key) {
            assert_eq!(fresh, !found, "{filter:?}");
            assert!(filter.contains(key).unwrap(), "{filter:?}");
            if let Ok(removed) = filter.remove(key) {
                assert!(removed, "{filter:?}");
            }
        }
    }
    let digests: Vec<Digest> = (0..20).map(Digest::mixed).collect();
    let mut found = [false; 20];
    filter.contains_digests(&digests, &mut found);
    let other = filter.clone();
    let _ = filter.merge_with(&other);
    // Counting filters may have more keys than they have room for, and are then unchanged.
    for (digest, found) in digests.iter().zip(found) {
        assert!(!found || umbel::Contains::contains_digest(filter, *digest));
    }
}
