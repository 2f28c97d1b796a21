//! Filters of a family that is chosen when the program runs.

use crate::amount::{show_bytes, show_rate};
use crate::cli::{FamilyChoice, HashChoice};
use anyhow::{Error, anyhow};
use umbel::any::{AnyFilter, AnyHasher};
use umbel::format::Secret;
use umbel::frozen::{self, BuildError};
use umbel::hash::Digest;
use umbel::plan::AnyShape;
use umbel::raw::Any;
use umbel::{BinaryFuse4Filter, BinaryFuseFilter, RibbonFilter, XorFilter};
use umbel::{BlockedBloomFilter, BloomFilter, InvalidShape, Portable, SplitBlockBloomFilter};
use umbel::{BlockedCountingBloomFilter, CountingBloomFilter, CuckooFilter, QuotientFilter};
use umbel::{ScalableBloomFilter, blocked, bloom, counting, cuckoo, quotient, scalable, split};

impl FamilyChoice {
    /// Whether its filters are for sets that do not change.
    pub(crate) fn is_static(self) -> bool {
        matches!(self, Self::Xor | Self::Fuse | Self::Fuse4 | Self::Ribbon)
    }

    /// Whether keys can be removed from its filters.
    pub(crate) fn can_remove(self) -> bool {
        matches!(self, Self::Counting | Self::BlockedCounting | Self::Cuckoo | Self::Quotient)
    }

    /// Its name, as files and plans have it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bloom => "bloom",
            Self::Blocked => "blocked",
            Self::Split => "split",
            Self::Counting => "counting",
            Self::BlockedCounting => "blocked-counting",
            Self::Scalable => "scalable",
            Self::Cuckoo => "cuckoo",
            Self::Quotient => "quotient",
            Self::Xor => "xor",
            Self::Fuse => "fuse",
            Self::Fuse4 => "fuse4",
            Self::Ribbon => "ribbon",
        }
    }

    /// What a filter of this family is like.
    pub(crate) fn outline(self, items: u64, rate: f64) -> Result<AnyShape, InvalidShape> {
        AnyShape::for_rate(self.name(), items, rate).expect("every family has an outline")
    }

    /// An empty filter of a family that takes keys.
    pub(crate) fn empty(
        self,
        items: u64,
        rate: f64,
        hasher: AnyHasher,
    ) -> Result<AnyFilter, InvalidShape> {
        Ok(match self {
            Self::Bloom => {
                let shape = bloom::Shape::for_rate(items, rate)?;
                BloomFilter::with(shape, hasher)?.into()
            }
            Self::Blocked => {
                let shape = blocked::Shape::for_rate(items, rate)?;
                BlockedBloomFilter::with(shape, hasher)?.into()
            }
            Self::Split => {
                let shape = split::Shape::for_rate(items, rate)?;
                SplitBlockBloomFilter::with(shape, hasher)?.into()
            }
            Self::Counting => {
                let shape = counting::Shape::for_rate(items, rate)?;
                CountingBloomFilter::with(shape, hasher)?.into()
            }
            Self::BlockedCounting => {
                let shape = counting::LineShape::for_rate(items, rate)?;
                BlockedCountingBloomFilter::with(shape, hasher)?.into()
            }
            Self::Scalable => {
                let shape = scalable::Shape::for_rate(items, rate)?;
                ScalableBloomFilter::with(shape, hasher)?.into()
            }
            Self::Cuckoo => {
                let shape = cuckoo::Shape::for_rate(items, rate)?;
                CuckooFilter::with(shape, hasher)?.into()
            }
            Self::Quotient => {
                let shape = quotient::Shape::for_rate(items, rate)?;
                QuotientFilter::with(shape, hasher)?.into()
            }
            Self::Xor | Self::Fuse | Self::Fuse4 | Self::Ribbon => {
                unreachable!("a filter for a set that does not change is built from it")
            }
        })
    }

    /// The filter of a set that does not change, checked for every key.
    pub(crate) fn of_set(
        self,
        how: frozen::Build<'_, AnyHasher>,
        digests: impl Iterator<Item = Digest>,
    ) -> Result<AnyFilter, BuildError> {
        Ok(match self {
            Self::Xor => XorFilter::build_from_digests(how, digests)?.into(),
            Self::Fuse => BinaryFuseFilter::build_from_digests(how, digests)?.into(),
            Self::Fuse4 => BinaryFuse4Filter::build_from_digests(how, digests)?.into(),
            _ => RibbonFilter::build_from_digests(how, digests)?.into(),
        })
    }
}

/// The outline of a filter that takes keys and was planned for a number of them.
pub(crate) fn outline_of(filter: &AnyFilter) -> Option<AnyShape> {
    Some(match filter.raw() {
        Any::Bloom(filter) => AnyShape::Bloom(*filter.shape()),
        Any::Blocked(filter) => AnyShape::Blocked(*filter.shape()),
        Any::Split(filter) => AnyShape::Split(*filter.shape()),
        Any::Counting(filter) => AnyShape::Counting(*filter.shape()),
        Any::BlockedCounting(filter) => AnyShape::BlockedCounting(*filter.shape()),
        Any::Cuckoo(filter) => AnyShape::Cuckoo(*filter.shape()),
        Any::Quotient(filter) => AnyShape::Quotient(*filter.shape()),
        _ => return None,
    })
}

/// The least rate at which a filter of a family takes no more memory, and its outline; in steps of a
/// sixteenth of a bit a key, down to 32 bits.
pub(crate) fn least_rate(family: &str, items: u64, memory: u64) -> Option<(f64, AnyShape)> {
    // So many steps fit, and more than so many do not.
    let (mut fits, mut most, mut best) = (0_u32, 32 * 16, None);
    while fits < most {
        let steps = (fits + most).div_ceil(2);
        let rate = 0.5_f64.powf(f64::from(steps) / 16.0);
        match AnyShape::for_rate(family, items, rate)? {
            Ok(outline) if outline.bytes() <= memory => {
                (fits, best) = (steps, Some((rate, outline)))
            }
            _ => most = steps - 1,
        }
    }
    best
}

/// Why there is no filter for so many things at this rate, in words of the command line.
pub(crate) fn told(error: InvalidShape, things: &str, rate: f64) -> Error {
    let rate = show_rate(rate);
    match error {
        InvalidShape::RateTooSmall { min, .. } if min < 1.0 => anyhow!(
            "{things} at a false positive rate of {rate} are not possible, because digests have 64 bits: \
             use a -p of at least {}, or a smaller -n",
            show_rate(min)
        ),
        InvalidShape::RateTooSmall { .. } => anyhow!(
            "{things} are not possible at any false positive rate, because digests have 64 bits: use a smaller -n"
        ),
        InvalidShape::TooLarge { max, .. } => anyhow!(
            "{things} at a false positive rate of {rate} take more than the {} that a filter may have: \
             use a smaller -n or a larger -p",
            show_bytes(max / 8)
        ),
        InvalidShape::OutOfMemory { bytes } => anyhow!(
            "{things} at a false positive rate of {rate} take {}, and the system does not have so much memory to give: \
             use a smaller -n or a larger -p",
            show_bytes(bytes)
        ),
        InvalidShape::TooSmall { bytes, min } => anyhow!(
            "--memory {} is too little: a filter takes at least {}",
            show_bytes(bytes),
            show_bytes(min)
        ),
        error => error.into(),
    }
}

impl HashChoice {
    /// Its name in files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Keyed => "keyed",
        }
    }

    /// Whether a file has its secret.
    pub(crate) fn secret(self) -> Secret {
        match self {
            Self::Portable => Secret::Left,
            Self::Keyed => Secret::Kept,
        }
    }

    /// A hasher of this kind.
    pub(crate) fn hasher(self, seed: u64) -> AnyHasher {
        match self {
            Self::Portable => Portable::seeded(seed).into(),
            Self::Keyed => crate::secret::fresh().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    /// One name for one family: as an option, in files, in plans and in reports.
    #[test]
    fn a_family_has_one_name() {
        let mut names = Vec::new();
        for family in FamilyChoice::value_variants() {
            let option = family.to_possible_value().expect("no family is hidden");
            let filter = if family.is_static() {
                let how = frozen::Build::with_hasher(0.01, HashChoice::Portable.hasher(0));
                family.of_set(how, [1_u64, 2].into_iter().map(Digest::mixed)).unwrap()
            } else {
                family.empty(9, 0.01, HashChoice::Portable.hasher(0)).unwrap()
            };
            assert_eq!((option.get_name(), filter.family()), (family.name(), family.name()));
            names.push(family.name());
        }
        // A window is planned, and made by `dedup` alone.
        let planned = umbel::plan::FAMILIES.into_iter().filter(|name| *name != "window");
        assert_eq!(names, planned.collect::<Vec<_>>());
    }
}
