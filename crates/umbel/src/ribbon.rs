//! The ribbon filter: the fingerprint of a key is the exclusive or of some of 64 adjacent rows, and
//! almost no row is wasted.
//!
//! ```text
//!     rows      0 1 1 0 1 0 0 1 1 1 0 1 0 1 1 0 ...    r bits each
//!     key 1       + .  +  + . . +                      some of the rows from its start on add up,
//!     key 2           + .  . + . +                     bit by bit, to its fingerprint
//!     key 3             +  + . + . .                   or, in a map, to its value
//!
//!     layer 0   [ bucket | bucket | bucket | ... ]     a little too small on purpose: one key in 13 is
//!                       \        \                     bumped, by the threshold of its bucket
//!     layer 1            [ bucket | ... ]
//!     ...
//!     last              [ ]                            with some rows to spare, and no key is bumped
//! ```
//!
//! | bits per key | touches per look-up | remove | union | grow | can building fail |
//! |---|---|---|---|---|---|
//! | 1.003 log2(1/rate), rounded up: 7.02 at 1 %, 8.02 at 1/256 | 2 lines side by side, and one of thresholds, which are in the cache | no | no | no | after 100 attempts, which does not happen |
//!
//! Choose it for static sets when space counts: it is the smallest for any number of keys and any
//! false positive rate. It also [maps](RibbonMap) keys to small values. Prefer
//! [`fuse`](crate::fuse) when single look-ups must be as fast as possible, and
//! [`blocked`](crate::blocked) when keys are inserted one by one.
//!
//! # How it works
//!
//! A key is an equation. Its digest determines where its rows start, which of the 64 rows from
//! there it combines (about half of them), and what their exclusive or must be. Equations that are
//! sorted by their starts make a *band*. Gaussian elimination inside a band of 64 takes a few steps
//! on one word for each key. Back substitution then solves the rows from the last to the first.
//!
//! A ribbon that holds all its keys needs 5 % to 10 % more rows than keys. A *bumped* ribbon has
//! 7.4 % fewer rows than keys, and keys without room are bumped to the next layer. A look-up must
//! determine whether a key was bumped. Rows come in buckets of 128, each with one of four
//! thresholds, and all its keys from the threshold on are bumped. So nearly every row of a layer is
//! used, and the fifth layer at the latest is so small that its slack is negligible. Up to 3,000
//! keys there is only that last layer, with n + 1 rows for n up to 80, and then 2 % more rows than
//! keys.
//!
//! Rows are stored in blocks of 64, one word for each of the r bits. A look-up reads 2r adjacent
//! words and computes the parity of r combinations of them, eight at a time.
//!
//! # Where it breaks
//!
//! All keys must be known before building, and building needs 20 bytes per key temporarily: see
//! [`frozen`](crate::frozen). Duplicate keys cost nothing. Keys are found even if digests are not
//! well mixed: if far too many keys are bumped, all digests are mixed once more. The false positive
//! rate does require well-mixed digests.
//!
//! # Reference
//!
//! Dillinger, Hübschle-Schneider, Sanders and Walzer 2022, "Fast succinct retrieval and approximate membership
//! using ribbon", sections 2 (ribbons), 4 (bumping) and 5 (parameters; here w = 64, B = 128 and thresholds
//! of two bits). Cuts at which a whole bucket is bumped, so that threads do not meet: arXiv 2411.12365.
//!
//! ```
//! use umbel::RibbonFilter;
//!
//! let known = RibbonFilter::<u64>::build(0..100_000, 0.01)?; // keys, error rate
//! assert!((0..100_000).all(|key| known.contains(&key)));
//! assert!(known.bytes() * 8 < 705_000); // 7.05 bits per key
//! let wrong = (100_000..200_000).filter(|key| known.contains(key)).count();
//! assert!(wrong < 1_000, "{wrong} of 100,000");
//! # Ok::<(), umbel::frozen::BuildError>(())
//! ```

mod band;
mod bytes;
mod lane;
mod layers;
mod look_up;
mod map;
mod parity;
mod parts;
mod plain;
mod row;
mod shape;
mod solve;
mod tier;

pub use map::{MapError, RawRibbonMap, RibbonMap, Value, ValueWidth, map_peak_bytes};
pub use shape::Shape;

use crate::edge::Filter;
use crate::error::InvalidShape;
use crate::frozen::{Arrangement, BuildError, RawFrozen, Work};
use crate::hash::{Digest, Portable};
use crate::parts::gather::Gathered;
use crate::sizing;
use crate::storage::Heap;
use alloc::vec::Vec;
use layers::Fault;
use row::mask;

/// A ribbon filter. The [module](crate::ribbon) describes it and says when to choose it.
///
/// ```
/// use umbel::RibbonFilter;
///
/// let known = RibbonFilter::<str>::build(["a", "b"], 0.01)?; // keys, false positive rate
/// assert!(known.contains("a") && known.contains("b")); // any other key: false, but for one in a hundred
/// # Ok::<(), umbel::frozen::BuildError>(())
/// ```
pub type RibbonFilter<T, H = Portable, S = Heap> = Filter<T, H, RawFrozen<Ribbon, S>>;

/// The arrangement of a ribbon: keys combine some of 64 adjacent rows, and keys without room are
/// bumped to the next layer.
#[derive(Clone, Copy, Debug)]
pub struct Ribbon;

impl Arrangement for Ribbon {
    type Shape = Shape;

    const NAME: &'static str = "RibbonFilter";

    fn fingerprint_bits(shape: &Shape) -> u32 {
        shape.bits
    }

    fn peak_bytes(items: u64, bits: u32) -> u64 {
        layers::peak_bytes::<u64>(items, bits)
    }

    fn build(digests: Gathered, bits: u32, work: &Work<'_>) -> Result<(Shape, Heap), BuildError> {
        let (rate, min) =
            (1.0 / (1_u64 << bits) as f64, sizing::digest_collisions(digests.len() as u64));
        if rate < min {
            return Err(InvalidShape::RateTooSmall { rate, min }.into());
        }
        layers::build(digests.into_chunks().map(shrunk).collect(), bits, work).map_err(|fault| {
            match fault {
                Fault::Build(error) => error,
                Fault::Conflict(never) => match never {},
            }
        })
    }

    #[inline]
    fn contains(shape: &Shape, words: &[u64], digest: Digest) -> bool {
        look_up::is_fingerprint(shape, words, digest)
    }

    #[inline]
    fn contains_batch<K>(
        shape: &Shape,
        words: &[u64],
        keys: &[K],
        digest: impl Fn(&K) -> Digest,
        found: &mut [bool],
    ) {
        let mask = mask(shape.bits);
        look_up::batch((shape, words), keys, digest, found, |sum| {
            sum.is_some_and(|sum| sum.is_fingerprint(mask))
        });
    }
}

/// The same vector without spare capacity.
fn shrunk<E>(mut chunk: Vec<E>) -> Vec<E> {
    chunk.shrink_to_fit();
    chunk
}
