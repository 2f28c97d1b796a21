//! Compares all families for a number of keys and a false positive rate, before memory is
//! allocated.
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

/// The operations of a family besides look-ups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Whether keys can be inserted after the filter was created.
    pub insert: bool,
    /// Whether keys can be removed.
    pub remove: bool,
    /// Whether the filter accepts more keys than planned at its rate.
    pub grow: bool,
    /// Whether two filters of one shape can be merged.
    pub merge: bool,
}

/// A shape for each family, and the operations that do not depend on the family.
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
            /// The shape of the family of this name, or `None` if there is no such family.
            ///
            /// # Errors
            ///
            /// [`InvalidShape`] if the family cannot have this size or this rate.
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

            /// The shape with the smallest rate in at most `bytes` bytes, of the family of this
            /// name, or `None` if there is no such family.
            ///
            /// # Errors
            ///
            /// [`InvalidShape`] if there is no room for the items, or more memory than the maximum.
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

            /// The planned number of items.
            #[must_use]
            pub const fn items(&self) -> u64 {
                match self {
                    $(Self::$variant(shape) => shape.items(),)*
                }
            }

            /// The memory of its words, in bytes. For a ribbon filter this is an estimate, since
            /// its size depends on the keys.
            #[must_use]
            pub const fn bytes(&self) -> u64 {
                match self {
                    $(Self::$variant(shape) => shape.bytes(),)*
                }
            }

            /// The memory of the words in bits per planned item; 0 if there are none.
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
    /// A [`ScalableBloomFilter`](crate::ScalableBloomFilter) that starts with room for all keys.
    Scalable(scalable::Shape) = "scalable";
    /// A [`WindowBloomFilter`](crate::WindowBloomFilter) of this many insertions.
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
    /// The shapes of all families that are possible with these parameters.
    #[must_use]
    pub fn all(items: u64, rate: f64) -> Vec<Self> {
        FAMILIES.iter().filter_map(|family| Self::for_rate(family, items, rate)?.ok()).collect()
    }

    /// The maximum number of cache lines that the look-up of a present key reads, in a filter that
    /// is larger than the cache. For a scalable filter, the number for one level.
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
            // The marks and the remainders.
            Self::Quotient(_) => 2,
            Self::Xor(_) | Self::Fuse(_) => 3,
            Self::Fuse4(_) => 4,
            // A threshold, and two adjacent blocks of rows.
            Self::Ribbon(_) => 3,
        }
    }

    /// The operations of the family.
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

    /// The error rate with this many different keys, or `None` if they do not fit.
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
                // A window is planned for the insertions in any window, not for its current
                // contents.
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
