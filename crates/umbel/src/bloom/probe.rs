//! One key: test its positions, or set them. Plain and shared words take the same road.

use super::Shape;
use crate::kernels::Kernels;
use crate::parts::bits::{SetBit, Word, peek};

/// How many positions are tested before the first branch. Half of the bits are set in a full
/// filter, so a branch after each one would be mispredicted every other time; after three, seven of
/// eight absent keys go the same way.
pub(super) const FIRST: u32 = 3;

/// Whether all positions of the digest are set.
#[inline(always)]
pub(crate) fn contains<W: Word, K: Kernels>(
    words: &[W],
    shape: &Shape,
    kernels: &K,
    digest: K::Digest,
) -> bool {
    let (bits, mut probes) = (shape.bits(), shape.probes());
    let mut walk = kernels.start(digest);
    if probes >= FIRST {
        if !first_set(words, bits, kernels, &mut walk) {
            return false;
        }
        probes -= FIRST;
    }
    rest_set(words, bits, kernels, &mut walk, probes)
}

/// Whether the first positions are all set, without a branch between them.
#[inline(always)]
fn first_set<W: Word, K: Kernels>(words: &[W], bits: u64, kernels: &K, walk: &mut K::Walk) -> bool {
    let mut all = 1;
    for _ in 0..FIRST {
        all &= peek(words, kernels.step(walk, bits));
    }
    all & 1 == 1
}

/// Whether the next `probes` positions are all set, up to the first that is not.
#[inline(always)]
pub(super) fn rest_set<W: Word, K: Kernels>(
    words: &[W],
    bits: u64,
    kernels: &K,
    walk: &mut K::Walk,
    probes: u32,
) -> bool {
    for _ in 0..probes {
        if peek(words, kernels.step(walk, bits)) & 1 == 0 {
            return false;
        }
    }
    true
}

/// Sets all positions of the digest; whether one of them was not set before.
#[inline(always)]
pub(crate) fn insert<W: SetBit, K: Kernels>(
    words: &mut W,
    shape: &Shape,
    kernels: &K,
    digest: K::Digest,
) -> bool {
    let mut walk = kernels.start(digest);
    let mut all = 1;
    for _ in 0..shape.probes() {
        all &= words.set(kernels.step(&mut walk, shape.bits()));
    }
    all & 1 == 0
}
