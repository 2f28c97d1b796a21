//! Which filter for how many keys at which rate: all families side by side, before any memory exists.
//!
//! ```
//! use umbel::plan::AnyShape;
//!
//! let all = AnyShape::all(1_000_000, 0.01);
//! let smallest = all.iter().min_by_key(|shape| shape.bytes()).unwrap();
//! assert_eq!(smallest.family(), "ribbon");
//! let removing = all.iter().filter(|shape| shape.abilities().remove);
//! let smallest = removing.min_by_key(|shape| shape.bytes()).unwrap();
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

/// A shape for each family, and what can be done with it without knowing which one it is.
macro_rules! any_shape {
    ($($(#[$doc:meta])* $variant:ident($shape:ty) = $name:literal;)*) => {
        /// The shape of a filter whose family is known only at run time.
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum AnyShape {
            $($(#[$doc])* $variant($shape),)*
        }

        /// The names of all families here, in the order of [`AnyShape::all`].
        pub const FAMILIES: [&str; [$($name),*].len()] = [$($name),*];

        impl AnyShape {
            /// The shape of the family of this name, or `None` if there is none.
            ///
            /// # Errors
            ///
            /// [`InvalidShape`] if it cannot be that large, or that rarely wrong.
            #[must_use]
            pub fn for_rate(
                family: &str,
                items: u64,
                rate: f64,
            ) -> Option<Result<Self, InvalidShape>> {
                Some(match family {
                    $($name => <$shape>::for_rate(items, rate).map(Self::$variant),)*
                    _ => return None,
                })
            }

            /// The shape with the smallest rate in at most `bytes` bytes, of the family of this name, or
            /// `None` if there is none.
            ///
            /// # Errors
            ///
            /// [`InvalidShape`] if there is no room for the items, or too much.
            #[must_use]
            pub fn for_memory(
                family: &str,
                items: u64,
                bytes: u64,
            ) -> Option<Result<Self, InvalidShape>> {
                Some(match family {
                    $($name => <$shape>::for_memory(items, bytes).map(Self::$variant),)*
                    _ => return None,
                })
            }

            /// The name of the family.
            #[must_use]
            pub const fn family(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)*
                }
            }

            /// The number of items planned for.
            #[must_use]
            pub const fn items(&self) -> u64 {
                match self {
                    $(Self::$variant(shape) => shape.items(),)*
                }
            }

            /// The memory of its words, in bytes; of a ribbon filter what to expect, since that depends
            /// on the keys.
            #[must_use]
            pub const fn bytes(&self) -> u64 {
                match self {
                    $(Self::$variant(shape) => shape.bytes(),)*
                }
            }

            /// The memory of the words in bits, for each of the items planned for; of no items, 0.
            #[must_use]
            pub const fn bits_per_key(&self) -> f64 {
                match self {
                    $(Self::$variant(shape) => shape.bits_per_key(),)*
                }
            }

            const fn rate(&self, items: u64) -> f64 {
                match self {
                    $(Self::$variant(shape) => shape.expected_rate(items),)*
                }
            }
        }
    };
}

any_shape! {
    /// A [`BloomFilter`](crate::BloomFilter).
    Bloom(bloom::Shape) = "bloom";
    /// A [`BlockedBloomFilter`](crate::BlockedBloomFilter).
    Blocked(blocked::Shape) = "blocked";
    /// A [`SplitBlockBloomFilter`](crate::SplitBlockBloomFilter).
    Split(split::Shape) = "split";
    /// A [`CountingBloomFilter`](crate::CountingBloomFilter).
    Counting(counting::Shape) = "counting";
    /// A [`BlockedCountingBloomFilter`](crate::BlockedCountingBloomFilter).
    BlockedCounting(counting::LineShape) = "blocked-counting";
    /// A [`ScalableBloomFilter`](crate::ScalableBloomFilter) that begins with room for all keys.
    Scalable(scalable::Shape) = "scalable";
    /// A [`WindowBloomFilter`](crate::WindowBloomFilter) of as many insertions.
    Window(window::Shape) = "window";
    /// A [`CuckooFilter`](crate::CuckooFilter).
    Cuckoo(cuckoo::Shape) = "cuckoo";
    /// A [`QuotientFilter`](crate::QuotientFilter).
    Quotient(quotient::Shape) = "quotient";
    /// A [`XorFilter`](crate::XorFilter).
    Xor(xor::Shape) = "xor";
    /// A [`BinaryFuseFilter`](crate::BinaryFuseFilter).
    Fuse(fuse::Shape) = "fuse";
    /// A [`BinaryFuse4Filter`](crate::BinaryFuse4Filter).
    Fuse4(fuse::Shape4) = "fuse4";
    /// A [`RibbonFilter`](crate::RibbonFilter).
    Ribbon(ribbon::Shape) = "ribbon";
}

impl AnyShape {
    /// The shapes of all families that can do it.
    #[must_use]
    pub fn all(items: u64, rate: f64) -> Vec<Self> {
        FAMILIES.iter().filter_map(|family| Self::for_rate(family, items, rate)?.ok()).collect()
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
    pub const fn expected_rate(&self, items: u64) -> Option<f64> {
        let room = match self {
            Self::Cuckoo(shape) => shape.room(),
            Self::Quotient(shape) => shape.capacity(),
            Self::Xor(_) | Self::Fuse(_) | Self::Fuse4(_) | Self::Ribbon(_) => self.items(),
            _ => u64::MAX,
        };
        if items <= room { Some(self.rate(items)) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_keeps_the_rate_it_was_planned_for() {
        for (items, rate) in [(1, 0.5), (100, 0.01), (1_000_000, 1e-3), (100_000_000, 1e-6)] {
            for shape in AnyShape::all(items, rate) {
                let (family, expected) = (shape.family(), shape.expected_rate(items).unwrap());
                // A window is planned for what comes, not for what is there.
                assert!(expected <= rate * 1.000_001, "{family}: {expected} of {rate}");
                assert!(shape.bytes() > 0 && shape.lines() > 0);
                assert_eq!(AnyShape::for_rate(family, items, rate).unwrap(), Ok(shape));
            }
        }
        assert_eq!(AnyShape::all(1_000_000, 0.01).len(), FAMILIES.len());
        assert!(AnyShape::for_rate("bloomier", 1, 0.1).is_none());
        assert!(AnyShape::all(10, 2.0).is_empty());
    }

    #[test]
    fn what_is_full_says_so_and_what_is_overfull_is_wrong_more_often() {
        for shape in AnyShape::all(10_000, 0.01) {
            let (at, twice) = (shape.expected_rate(10_000), shape.expected_rate(40_000));
            match shape.family() {
                "cuckoo" | "quotient" | "xor" | "fuse" | "fuse4" | "ribbon" => {
                    assert!(twice.is_none(), "{shape:?}");
                }
                "scalable" => assert!(twice.unwrap() <= 0.01),
                "window" => assert_eq!(at, twice),
                _ => assert!(twice.unwrap() > 3.0 * at.unwrap(), "{shape:?}"),
            }
        }
    }
}
