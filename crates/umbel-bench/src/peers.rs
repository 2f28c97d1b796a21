//! The peers, one file per family. A peer with a configurable hasher gets foldhash, the fastest one that a user
//! can choose; its name says so.

mod blocked;
mod bloom;
mod counting;
mod cuckoo;
mod quotient;
mod scalable;
mod stable;
mod statics;

pub(crate) use bloom::FoldedAtomicFastbloom;

use crate::registry::Registry;
use foldhash::fast::{FixedState, FoldHasher};
use std::hash::{BuildHasher, Hasher};

/// Adds every peer.
pub(crate) fn register(registry: &mut Registry) {
    bloom::register(registry);
    blocked::register(registry);
    counting::register(registry);
    scalable::register(registry);
    stable::register(registry);
    quotient::register(registry);
    cuckoo::register(registry);
    statics::register(registry);
}

/// foldhash with a fixed seed, for peers that create or copy their hasher themselves.
#[derive(Clone)]
struct Folded(FoldHasher<'static>);

impl Default for Folded {
    #[inline]
    fn default() -> Self {
        Self(FixedState::default().build_hasher())
    }
}

impl Hasher for Folded {
    #[inline]
    fn finish(&self) -> u64 {
        self.0.finish()
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0.write_u64(word);
    }

    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.0.write_usize(word);
    }
}
