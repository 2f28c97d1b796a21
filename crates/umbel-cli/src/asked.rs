//! A filter that is asked: one in a file, or one on a server.

use crate::change::load_for_lines;
use anyhow::Result;
use std::path::Path;
use umbel::any::{AnyFilter, AnyHasher};
use umbel::hash::Digest;

#[cfg(feature = "redis")]
use crate::remote::{Address, Remote, is_remote};

/// Where it is. The file `-` is standard input.
pub(crate) enum Asked {
    File(Box<AnyFilter>),
    #[cfg(feature = "redis")]
    Server(Box<Remote>),
}

impl Asked {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        #[cfg(feature = "redis")]
        if is_remote(path) {
            return Ok(Self::Server(Remote::open(&Address::of(path)?)?.into()));
        }
        Ok(Self::File(load_for_lines(path)?.into()))
    }

    pub(crate) fn hasher(&self) -> &AnyHasher {
        match self {
            Self::File(filter) => filter.hasher(),
            #[cfg(feature = "redis")]
            Self::Server(remote) => remote.hasher(),
        }
    }

    /// Whether each key may be in it.
    pub(crate) fn contains(&self, digests: &[Digest], found: &mut [bool]) -> Result<()> {
        match self {
            Self::File(filter) => filter.contains_digests(digests, found),
            #[cfg(feature = "redis")]
            Self::Server(remote) => remote.contains(digests, found)?,
        }
        Ok(())
    }
}
