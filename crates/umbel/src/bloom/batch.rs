//! Many keys: ask for all their words before the first one is needed.
//!
//! A look-up of an absent key ends after two positions on average, so fetching all of them would
//! be waste, and a present key needs them all. A batch therefore goes in two rounds, the first
//! positions of all keys, then the rest for those that are left; and while nearly all keys turn out
//! to be present, in one.

use super::Shape;
use super::probe::{FIRST, contains, insert, rest_set};
use crate::kernels::Kernels;
use crate::parts::bits::{SetBit, Word, fetch, peek};

/// How many keys wait for memory at a time: more than a core can have lines under way.
pub(crate) const LANES: usize = 32;

/// As [`contains`] for each key.
#[inline]
pub(crate) fn contains_batch<W: Word, K: Kernels, A>(
    words: &[W],
    shape: &Shape,
    kernels: &K,
    keys: &[A],
    digest: impl Fn(&A) -> K::Digest,
    found: &mut [bool],
) {
    assert_eq!(keys.len(), found.len(), "one answer for each key");
    let Some(first) = keys.first() else { return };
    let mut digests = [digest(first); LANES];
    let mut mostly_present = false;
    for (keys, found) in keys.chunks(LANES).zip(found.chunks_mut(LANES)) {
        for (slot, key) in digests.iter_mut().zip(keys) {
            *slot = digest(key);
        }
        let digests = &digests[..keys.len()];
        if mostly_present || shape.probes() < FIRST {
            in_one_round(words, shape, kernels, digests, found);
        } else {
            in_two_rounds(words, shape, kernels, digests, found);
        }
        let present: usize = found.iter().map(|&found| usize::from(found)).sum();
        mostly_present = present * 3 > LANES * 2;
    }
}

/// Fetches all positions, then tests them.
#[inline(always)]
fn in_one_round<W: Word, K: Kernels>(
    words: &[W],
    shape: &Shape,
    kernels: &K,
    digests: &[K::Digest],
    found: &mut [bool],
) {
    for &digest in digests {
        let mut walk = kernels.start(digest);
        for _ in 0..shape.probes() {
            fetch(words, kernels.step(&mut walk, shape.bits()));
        }
    }
    for (&digest, found) in digests.iter().zip(found) {
        *found = contains(words, shape, kernels, digest);
    }
}

/// Fetches and tests the first positions, then the rest of the keys that are left.
#[inline(always)]
fn in_two_rounds<W: Word, K: Kernels>(
    words: &[W],
    shape: &Shape,
    kernels: &K,
    digests: &[K::Digest],
    found: &mut [bool],
) {
    let (bits, rest) = (shape.bits(), shape.probes() - FIRST);
    let mut positions = [[0; FIRST as usize]; LANES];
    let mut walks = [kernels.start(digests[0]); LANES];
    for ((&digest, positions), walk) in digests.iter().zip(&mut positions).zip(&mut walks) {
        *walk = kernels.start(digest);
        for position in positions {
            *position = kernels.step(walk, bits);
            fetch(words, *position);
        }
    }
    // The lanes of keys that are left, packed to the front without a branch.
    let (mut left, mut len) = ([0_u8; LANES], 0);
    for (lane, (positions, found)) in positions.iter().zip(found.iter_mut()).enumerate() {
        let all = positions.iter().fold(1, |all, &position| all & peek(words, position)) & 1;
        *found = all == 1;
        left[len % LANES] = lane as u8;
        len += all as usize;
    }
    let left = &left[..len];
    for &lane in left {
        let mut walk = walks[usize::from(lane) % LANES];
        for _ in 0..rest {
            fetch(words, kernels.step(&mut walk, bits));
        }
    }
    for &lane in left {
        let walk = &mut walks[usize::from(lane) % LANES];
        found[usize::from(lane)] = rest_set(words, bits, kernels, walk, rest);
    }
}

/// As [`insert`] for each key, in their order.
#[inline]
pub(crate) fn insert_batch<W: SetBit, K: Kernels, A>(
    words: &mut W,
    shape: &Shape,
    kernels: &K,
    keys: &[A],
    digest: impl Fn(&A) -> K::Digest,
    fresh: &mut [bool],
) {
    /// Every position is fetched, so fewer keys fill the queue of the memory system.
    const LANES: usize = 16;
    assert_eq!(keys.len(), fresh.len(), "one answer for each key");
    let Some(first) = keys.first() else { return };
    let mut digests = [digest(first); LANES];
    for (keys, fresh) in keys.chunks(LANES).zip(fresh.chunks_mut(LANES)) {
        for (slot, key) in digests.iter_mut().zip(keys) {
            *slot = digest(key);
            let mut walk = kernels.start(*slot);
            for _ in 0..shape.probes() {
                words.fetch(kernels.step(&mut walk, shape.bits()));
            }
        }
        for (&digest, fresh) in digests.iter().zip(fresh) {
            *fresh = insert(words, shape, kernels, digest);
        }
    }
}
