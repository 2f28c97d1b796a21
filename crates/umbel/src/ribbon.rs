//! The ribbon filter.

mod band;
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


pub use map::{MapError, RibbonMap, Value, Width, map_peak_bytes};
pub use shape::Shape;

use crate::error::InvalidShape;
use crate::frozen::{Arrangement, BuildError, Frozen, Work};
use crate::hash::{Digest, Portable};
use crate::parts::gather::Gathered;
use crate::sizing;
use crate::storage::Heap;
use alloc::vec::Vec;
use layers::Fault;
use row::mask;

/// A ribbon filter. The [module](crate::ribbon) tells what it is and when to choose it, [`Frozen`] has
/// its methods.
pub type RibbonFilter<T, H = Portable, S = Heap> = Frozen<T, H, Ribbon, S>;

/// Keys take some of 64 rows side by side; those that find no room are bumped to the next layer.
#[derive(Clone, Copy, Debug)]
pub struct Ribbon;

impl Arrangement for Ribbon {
    type Shape = Shape;

    const NAME: &'static str = "RibbonFilter";

    fn peak_bytes(items: u64, bits: u32) -> u64 {
        shape::peak_bytes::<u64>(items, bits)
    }

    fn build(
        digests: Gathered,
        bits: u32,
        work: &Work<'_>,
    ) -> Result<(Shape, Heap), BuildError> {
        let (rate, min) = (
            1.0 / (1_u64 << bits) as f64,
            sizing::digest_collisions(digests.len() as u64),
        );
        if rate < min {
            return Err(InvalidShape::RateTooSmall { rate, min }.into());
        }
        layers::build(digests.into_chunks().map(shrunk).collect(), bits, work).map_err(|fault| match fault {
            Fault::Build(error) => error,
            Fault::Conflict(never) => match never {},
        })
    }

    #[inline]
    fn contains(shape: &Shape, words: &[u64], digest: Digest) -> bool {
        look_up::sum(shape, words, digest).is_some_and(|sum| sum.is_fingerprint(mask(shape.bits)))
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

/// The same without room for more.
fn shrunk<E>(mut chunk: Vec<E>) -> Vec<E> {
    chunk.shrink_to_fit();
    chunk
}
