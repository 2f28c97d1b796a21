//! Tests or sets the positions of one key. Plain and shared words use the same code.

use super::table::BitTable;
use crate::kernels::Kernels;
use crate::parts::bits::{SetBit, Word};

/// How many positions are tested before the first branch. In a full filter half of the bits are
/// set, so a branch after each test would be mispredicted every other time. After three tests,
/// seven of eight absent keys take the same branch.
pub(super) const FIRST: u32 = 3;

/// Whether all `probes` positions of the digest are set.
#[inline(always)]
pub(crate) fn contains<W: Word, K: Kernels>(
    table: BitTable<&[W]>,
    probes: u32,
    kernels: &K,
    digest: K::Digest,
) -> bool {
    let mut digest = kernels.start(digest);
    if probes < FIRST {
        return rest_set(table, probes, kernels, digest);
    }
    three_set(table, kernels, &mut digest) && rest_set(table, probes - FIRST, kernels, digest)
}

/// Tests whether the next three positions are all set, without a branch between them.
#[inline(always)]
pub(super) fn three_set<W: Word, K: Kernels>(
    table: BitTable<&[W]>,
    kernels: &K,
    digest: &mut K::Digest,
) -> bool {
    let mut all = 1;
    for _ in 0..FIRST {
        all &= table.peek(kernels, digest);
    }
    all & 1 == 1
}

/// Tests whether the next `probes` positions are all set, and stops at the first that is not: four
/// by four, then the remainder. `probes` is the same for all keys, so the branches on it are
/// predicted.
#[inline(always)]
pub(super) fn rest_set<W: Word, K: Kernels>(
    table: BitTable<&[W]>,
    mut probes: u32,
    kernels: &K,
    mut digest: K::Digest,
) -> bool {
    // The first four are outside the loop: inside, they would cost present keys 8 % if there are no
    // others.
    if probes >= 4 {
        if !these_set::<W, K, 4>(table, kernels, &mut digest) {
            return false;
        }
        probes -= 4;
        if probes == 0 {
            return true;
        }
    }
    while probes >= 4 {
        if !these_set::<W, K, 4>(table, kernels, &mut digest) {
            return false;
        }
        probes -= 4;
    }
    match probes {
        0 => true,
        1 => these_set::<W, K, 1>(table, kernels, &mut digest),
        2 => these_set::<W, K, 2>(table, kernels, &mut digest),
        _ => these_set::<W, K, 3>(table, kernels, &mut digest),
    }
}

/// As [`rest_set`], for a number that is known at compile time.
#[inline(always)]
fn these_set<W: Word, K: Kernels, const PROBES: u32>(
    table: BitTable<&[W]>,
    kernels: &K,
    digest: &mut K::Digest,
) -> bool {
    for _ in 0..PROBES {
        if table.peek(kernels, digest) & 1 == 0 {
            return false;
        }
    }
    true
}

/// Sets all `probes` positions of the digest and returns whether any of them was unset. If the
/// caller ignores the result, the compiler removes its cost.
#[inline(always)]
pub(crate) fn insert<V: SetBit, K: Kernels>(
    table: &mut BitTable<V>,
    probes: u32,
    kernels: &K,
    digest: K::Digest,
) -> bool {
    if V::SHARED {
        table.fetch_to_set::<K, false>(probes, kernels, digest);
    }
    set_all(table, probes, kernels, digest)
}

/// As [`insert`], for a caller that uses the result and has prefetched the words. Testing all
/// positions first and then writing only if needed is a third faster than testing each word while
/// writing.
#[inline(always)]
pub(super) fn insert_absent<V: SetBit, K: Kernels>(
    table: &mut BitTable<V>,
    probes: u32,
    kernels: &K,
    digest: K::Digest,
) -> bool {
    if V::SHARED {
        return set_all(table, probes, kernels, digest);
    }
    let found = contains(table.reader(), probes, kernels, digest);
    if !found {
        set_all(table, probes, kernels, digest);
    }
    !found
}

/// Sets all `probes` positions of the digest and returns whether any of them was unset.
#[inline(always)]
pub(super) fn set_all<V: SetBit, K: Kernels>(
    table: &mut BitTable<V>,
    probes: u32,
    kernels: &K,
    digest: K::Digest,
) -> bool {
    let (mut digest, mut set_before) = (kernels.start(digest), 0);
    for _ in 0..probes {
        set_before += u32::from(table.set(kernels, &mut digest));
    }
    set_before < probes
}
