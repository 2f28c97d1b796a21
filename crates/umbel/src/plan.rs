//! Which filter for how many keys at which rate: all families side by side, before any memory exists.
//!
//! ```
//! use umbel::plan::Outline;
//!
//! let all = Outline::all(1_000_000, 0.01);
//! let smallest = all.iter().min_by_key(|outline| outline.bytes()).unwrap();
//! assert_eq!(smallest.family(), "ribbon");
//! let removing = all.iter().filter(|outline| outline.abilities().remove);
//! let smallest = removing.min_by_key(|outline| outline.bytes()).unwrap();
//! assert_eq!(smallest.family(), "quotient");
//! ```

use crate::error::InvalidShape;
use crate::{
    blocked, bloom, counting, cuckoo, fuse, quotient, ribbon, scalable, split, window, xor,
};
use alloc::vec::Vec;

/// What a family can do besides answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Whether it takes keys after it was made.
    pub insert: bool,
    /// Whether it gives them back.
    pub remove: bool,
    /// Whether it has room for more keys than it was planned for, at its rate.
    pub grow: bool,
    /// Whether two of one shape become one.
    pub merge: bool,
}

/// The outline of a filter of some family.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outline {
    /// A [`BloomFilter`](crate::BloomFilter).
    Bloom(bloom::Shape),
    /// A [`BlockedBloomFilter`](crate::BlockedBloomFilter).
    Blocked(blocked::Shape),
    /// A [`SplitBlockBloomFilter`](crate::SplitBlockBloomFilter).
    Split(split::Shape),
    /// A [`CountingBloomFilter`](crate::CountingBloomFilter).
    Counting(counting::Shape),
    /// A [`BlockedCountingBloomFilter`](crate::BlockedCountingBloomFilter).
    BlockedCounting(counting::LineShape),
    /// A [`ScalableBloomFilter`](crate::ScalableBloomFilter) that begins with room for all keys.
    Scalable(scalable::Shape),
    /// A [`WindowBloomFilter`](crate::WindowBloomFilter) of as many insertions.
    Window(window::Shape),
    /// A [`CuckooFilter`](crate::CuckooFilter).
    Cuckoo(cuckoo::Shape),
    /// A [`QuotientFilter`](crate::QuotientFilter).
    Quotient(quotient::Shape),
    /// A [`XorFilter`](crate::XorFilter).
    Xor(xor::Shape),
    /// A [`BinaryFuseFilter`](crate::BinaryFuseFilter).
    Fuse(fuse::Shape),
    /// A [`BinaryFuse4Filter`](crate::BinaryFuse4Filter).
    Fuse4(fuse::Shape4),
    /// A [`RibbonFilter`](crate::RibbonFilter).
    Ribbon(ribbon::Outline),
}

/// The names of all families that have an outline, in the order of [`Outline::all`].
pub const FAMILIES: [&str; 13] = [
    "bloom",
    "blocked",
    "split",
    "counting",
    "blocked-counting",
    "scalable",
    "window",
    "cuckoo",
    "quotient",
    "xor",
    "fuse",
    "fuse4",
    "ribbon",
];

impl Outline {
    /// All families that can do it.
    #[must_use]
    pub fn all(items: u64, rate: f64) -> Vec<Self> {
        FAMILIES.iter().filter_map(|family| Self::for_rate(family, items, rate)?.ok()).collect()
    }

    /// The outline of the family of this name, or `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`InvalidShape`] if it cannot be that large, or that rarely wrong.
    #[must_use]
    pub fn for_rate(family: &str, items: u64, rate: f64) -> Option<Result<Self, InvalidShape>> {
        Some(match family {
            "bloom" => bloom::Shape::for_rate(items, rate).map(Self::Bloom),
            "blocked" => blocked::Shape::for_rate(items, rate).map(Self::Blocked),
            "split" => split::Shape::for_rate(items, rate).map(Self::Split),
            "counting" => counting::Shape::for_rate(items, rate).map(Self::Counting),
            "blocked-counting" => {
                counting::LineShape::for_rate(items, rate).map(Self::BlockedCounting)
            }
            "scalable" => scalable::Shape::for_rate(items, rate).map(Self::Scalable),
            "window" => window::Shape::for_rate(items, rate).map(Self::Window),
            "cuckoo" => cuckoo::Shape::for_rate(items, rate).map(Self::Cuckoo),
            "quotient" => quotient::Shape::for_rate(items, rate).map(Self::Quotient),
            "xor" => xor::Shape::for_rate(items, rate).map(Self::Xor),
            "fuse" => fuse::Shape::for_rate(items, rate).map(Self::Fuse),
            "fuse4" => fuse::Shape4::for_rate(items, rate).map(Self::Fuse4),
            "ribbon" => ribbon::Outline::for_rate(items, rate).map(Self::Ribbon),
            _ => return None,
        })
    }

    /// The name of the family.
    #[must_use]
    pub const fn family(&self) -> &'static str {
        match self {
            Self::Bloom(_) => "bloom",
            Self::Blocked(_) => "blocked",
            Self::Split(_) => "split",
            Self::Counting(_) => "counting",
            Self::BlockedCounting(_) => "blocked-counting",
            Self::Scalable(_) => "scalable",
            Self::Window(_) => "window",
            Self::Cuckoo(_) => "cuckoo",
            Self::Quotient(_) => "quotient",
            Self::Xor(_) => "xor",
            Self::Fuse(_) => "fuse",
            Self::Fuse4(_) => "fuse4",
            Self::Ribbon(_) => "ribbon",
        }
    }

    /// The memory of its words, in bytes; of a ribbon filter what to expect, since that depends on the keys.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Bloom(shape) => shape.bytes(),
            Self::Blocked(shape) => shape.bytes(),
            Self::Split(shape) => shape.bytes(),
            Self::Counting(shape) => shape.bytes(),
            Self::BlockedCounting(shape) => shape.bytes(),
            Self::Scalable(shape) => shape.level(0).map_or(u64::MAX, |level| level.bytes()),
            Self::Window(shape) => shape.bytes(),
            Self::Cuckoo(shape) => shape.bytes(),
            Self::Quotient(shape) => shape.bytes(),
            Self::Xor(shape) => shape.bytes(),
            Self::Fuse(shape) => shape.bytes(),
            Self::Fuse4(shape) => shape.bytes(),
            Self::Ribbon(outline) => outline.bytes(),
        }
    }

    /// How many cache lines the look-up of a key that is there touches, at most, in a filter that is larger
    /// than the cache; of a scalable filter in one level.
    #[must_use]
    pub fn lines(&self) -> u32 {
        match self {
            Self::Bloom(shape) => shape.probes(),
            Self::Blocked(shape) => shape.lines_per_key(),
            Self::Split(_) | Self::BlockedCounting(_) => 1,
            Self::Counting(shape) => shape.probes(),
            Self::Scalable(shape) => shape.level(0).map_or(1, |level| level.lines_per_key()),
            Self::Window(shape) => shape.epochs(),
            Self::Cuckoo(_) => 2,
            // Marks, and remainders.
            Self::Quotient(_) => 2,
            Self::Xor(_) | Self::Fuse(_) => 3,
            Self::Fuse4(_) => 4,
            // A threshold, and two blocks of rows, which are neighbours.
            Self::Ribbon(_) => 3,
        }
    }

    /// What it can do.
    #[must_use]
    pub const fn abilities(&self) -> Abilities {
        let none = Abilities { insert: false, remove: false, grow: false, merge: false };
        let insert = Abilities { insert: true, ..none };
        match self {
            Self::Bloom(_) | Self::Blocked(_) | Self::Split(_) => {
                Abilities { merge: true, ..insert }
            }
            Self::Counting(_) | Self::BlockedCounting(_) | Self::Cuckoo(_) => {
                Abilities { remove: true, merge: true, ..insert }
            }
            Self::Quotient(_) => Abilities { insert: true, remove: true, grow: true, merge: true },
            Self::Scalable(_) => Abilities { grow: true, ..insert },
            Self::Window(_) => insert,
            Self::Xor(_) | Self::Fuse(_) | Self::Fuse4(_) | Self::Ribbon(_) => none,
        }
    }

    /// The error rate with this many different keys, or `None` where they do not fit.
    #[must_use]
    pub fn expected_rate(&self, items: u64) -> Option<f64> {
        match self {
            Self::Bloom(shape) => Some(shape.expected_rate(items)),
            Self::Blocked(shape) => Some(shape.expected_rate(items)),
            Self::Split(shape) => Some(shape.expected_rate(items)),
            Self::Counting(shape) => Some(shape.expected_rate(items)),
            Self::BlockedCounting(shape) => Some(shape.expected_rate(items)),
            Self::Scalable(shape) => Some(scalable_rate(shape, items)),
            Self::Window(shape) => Some(shape.expected_rate()),
            Self::Cuckoo(shape) => (items <= shape.room()).then(|| shape.expected_rate(items)),
            Self::Quotient(shape) => {
                (items <= shape.capacity()).then(|| shape.expected_rate(items))
            }
            Self::Xor(shape) => (items <= shape.items()).then(|| shape.expected_rate()),
            Self::Fuse(shape) => (items <= shape.items()).then(|| shape.expected_rate()),
            Self::Fuse4(shape) => (items <= shape.items()).then(|| shape.expected_rate()),
            Self::Ribbon(outline) => (items <= outline.items()).then(|| outline.expected_rate()),
        }
    }
}

/// All levels full, but the last.
fn scalable_rate(shape: &scalable::Shape, items: u64) -> f64 {
    let (mut left, mut pass) = (items, 1.0);
    for number in 0..scalable::MAX_LEVELS {
        let Ok(level) = shape.level(number) else { break };
        let here = left.min(shape.level_capacity(number));
        pass *= 1.0 - level.expected_rate(here);
        left -= here;
        if left == 0 {
            break;
        }
    }
    1.0 - pass
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_keeps_the_rate_it_was_planned_for() {
        for (items, rate) in [(1, 0.5), (100, 0.01), (1_000_000, 1e-3), (100_000_000, 1e-6)] {
            for outline in Outline::all(items, rate) {
                let (family, expected) = (outline.family(), outline.expected_rate(items).unwrap());
                // A window is planned for what comes, not for what is there.
                assert!(expected <= rate * 1.000_001, "{family}: {expected} of {rate}");
                assert!(outline.bytes() > 0 && outline.lines() > 0);
                assert_eq!(Outline::for_rate(family, items, rate).unwrap(), Ok(outline));
            }
        }
        assert_eq!(Outline::all(1_000_000, 0.01).len(), FAMILIES.len());
        assert!(Outline::for_rate("bloomier", 1, 0.1).is_none());
        assert!(Outline::all(10, 2.0).is_empty());
    }

    #[test]
    fn what_is_full_says_so_and_what_is_overfull_is_wrong_more_often() {
        for outline in Outline::all(10_000, 0.01) {
            let (at, twice) = (outline.expected_rate(10_000), outline.expected_rate(40_000));
            match outline.family() {
                "cuckoo" | "quotient" | "xor" | "fuse" | "fuse4" | "ribbon" => {
                    assert!(twice.is_none(), "{outline:?}");
                }
                "scalable" => assert!(twice.unwrap() <= 0.01),
                "window" => assert_eq!(at, twice),
                _ => assert!(twice.unwrap() > 3.0 * at.unwrap(), "{outline:?}"),
            }
        }
    }
}
