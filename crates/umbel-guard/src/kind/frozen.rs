//! Filters for sets that do not change: digests are gathered, and the filter is built of all of them.

use super::Measure;
use super::local::Family;
use crate::error::Trouble;
use std::io;
use std::path::Path;
use std::sync::Arc;
use umbel::format::{OpenError, Opening};
use umbel::frozen::{Arrangement, Build, Frozen};
use umbel::{BinaryFuse4Filter, BinaryFuseFilter, Digest, Keyed, RibbonFilter, Saved, XorFilter};

/// A set that does not change, before and after its filter is built.
#[derive(Debug)]
pub(super) enum Fixed {
    Gathering(Vec<Digest>),
    Xor(XorFilter<[u8], Keyed>),
    Fuse(BinaryFuseFilter<[u8], Keyed>),
    Fuse4(BinaryFuse4Filter<[u8], Keyed>),
    Ribbon(RibbonFilter<[u8], Keyed>),
}

fn built<A: Arrangement>(
    rate: f64,
    hasher: Keyed,
    digests: Vec<Digest>,
) -> Result<Frozen<[u8], Keyed, A>, Trouble> {
    let how = Build::with_hasher(rate, hasher);
    Frozen::build_from_digests(how, digests).map_err(|error| Trouble::Build(Arc::new(error)))
}

/// Does something with whatever filter it is.
macro_rules! each {
    ($fixed:expr, $filter:pat => $do:expr, else $other:expr) => {
        match $fixed {
            Fixed::Gathering(_) => $other,
            Fixed::Xor($filter) => $do,
            Fixed::Fuse($filter) => $do,
            Fixed::Fuse4($filter) => $do,
            Fixed::Ribbon($filter) => $do,
        }
    };
}

impl Fixed {
    /// The filter of this family of all digests that were gathered.
    pub(super) fn build(
        family: Family,
        rate: f64,
        hasher: Keyed,
        digests: Vec<Digest>,
    ) -> Result<Self, Trouble> {
        Ok(match family {
            Family::Xor => Self::Xor(built(rate, hasher, digests)?),
            Family::Fuse => Self::Fuse(built(rate, hasher, digests)?),
            Family::Fuse4 => Self::Fuse4(built(rate, hasher, digests)?),
            _ => Self::Ribbon(built(rate, hasher, digests)?),
        })
    }

    pub(super) fn load(
        family: Family,
        how: Opening<Keyed>,
        path: &Path,
    ) -> Result<Self, OpenError> {
        Ok(match family {
            Family::Xor => Self::Xor(how.load(path)?),
            Family::Fuse => Self::Fuse(how.load(path)?),
            Family::Fuse4 => Self::Fuse4(how.load(path)?),
            _ => Self::Ribbon(how.load(path)?),
        })
    }

    pub(super) fn hasher(&self) -> Option<Keyed> {
        each!(self, filter => Some(*filter.hasher()), else None)
    }

    /// `None` as long as there is no filter.
    pub(super) fn contains(&self, digest: Digest) -> Option<bool> {
        each!(self, filter => Some(filter.contains_digest(digest)), else None)
    }

    pub(super) fn save(&self, path: &Path, with_secret: bool) -> io::Result<()> {
        each!(self, filter => if with_secret {
            filter.save_with_secret(path)
        } else {
            filter.save(path)
        }, else Err(io::ErrorKind::Unsupported.into()))
    }

    pub(super) fn measure(&self) -> Measure {
        each!(self, filter => Measure {
            bytes: filter.bytes(),
            capacity: filter.len(),
            items: filter.len(),
            fill: 1.0,
            rate: filter.expected_rate(),
        }, else Measure { bytes: 0, capacity: 0, items: 0, fill: 0.0, rate: 1.0 })
    }
}
