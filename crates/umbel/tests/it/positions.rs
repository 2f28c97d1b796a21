//! The positions of a digest, written from the definition in `docs/hashing.md` (kernels 1), without the library's kernels.

use umbel::hash::Digest;

/// The first `probes` positions of a digest among `bits`.
pub(crate) fn positions(bits: u64, probes: u32, digest: Digest) -> Vec<u64> {
    let mut fraction = u128::from(digest.bits() | 1);
    (0..probes)
        .map(|_| {
            let scaled = fraction * u128::from(bits);
            fraction = scaled & u128::from(u64::MAX);
            (scaled >> 64) as u64
        })
        .collect()
}
