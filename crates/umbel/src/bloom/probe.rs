//! One key: test its positions, or set them. Plain and shared words take the same road.

use super::table::BitTable;
use crate::kernels::Kernels;
use crate::parts::bits::{SetBit, Word};

/// How many positions are tested before the first branch. Half of the bits are set in a full
/// filter, so a branch after each one would be mispredicted every other time; after three, seven of
/// eight absent keys go the same way.
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

/// Whether the next three positions are all set, without a branch between them.
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

/// Whether the next `probes` positions are all set, up to the first that is not: four by four, then
/// what is left over. How many there are is the same for all keys, so those branches are predicted.
#[inline(always)]
pub(super) fn rest_set<W: Word, K: Kernels>(
    table: BitTable<&[W]>,
    mut probes: u32,
    kernels: &K,
    mut digest: K::Digest,
) -> bool {
    // The first four stand outside the loop: it costs present keys 8 % where they are all there is.
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

/// As [`rest_set`], for a number that the compiler knows.
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

/// Sets all `probes` positions of the digest; whether one of them was not set before. A caller who
/// does not use the answer does not pay for it.
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

/// As [`insert`], for a caller who does use the answer, and has asked for the words before. Looking
/// first and then writing, if at all, is a third faster than looking at every word on the way.
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

/// Sets all `probes` positions of the digest; whether one of them was not set before.
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
