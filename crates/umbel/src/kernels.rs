//! Kernels: functions from a digest to the positions that a classic Bloom filter sets and tests.
//!
//! ```text
//!     digest  --step-->  position 1
//!       |     --step-->  position 2      each below `bits`
//!       v     --step-->  ...
//! ```
//!
//! The native kernels are [`Digits`]. The kernels of other systems, which read and write their
//! filters, are in the crate `umbel-foreign`.
//!
//! The false positive rate of a Bloom filter is as computed only if its positions are independent
//! of each other. The table has the measured share of absent keys that are found, divided by the
//! share that k independent keyed hashes give in a filter of the same shape (`cargo run --release
//! --example rates -- kernels`; one sigma is 0.005, and 4 % in the last two columns):
//!
//! | kernels | 10 keys, 0.1 % | 100 keys, 1 % | 100 keys, 0.1 % | 100 keys, 2^-16 | 10,000 keys, 2^-16 |
//! |---|---|---|---|---|---|
//! | [`Digits`] (default) | 0.99 | 1.00 | 1.01 | 1.04 | 0.99 |
//! | double hashing (`examples/own_kernels/double.rs`) | 3.8 | 1.07 | 1.52 | 25 | 1.31 |
//!
//! To use your own kernels, implement [`Kernels`], and [`Digester`](crate::hash::Digester) for the
//! digest that they start from. `examples/own_kernels` does it with k independent keyed hashes.
//!
//! ```
//! use umbel::kernels::Kernels;
//!
//! /// Position i is a + i b.
//! struct Double;
//!
//! impl Kernels for Double {
//!     type Digest = (u64, u64);
//!
//!     fn step(&self, (a, b): &mut (u64, u64), bits: u64) -> u64 {
//!         let position = *a % bits;
//!         *a = a.wrapping_add(*b);
//!         position
//!     }
//! }
//!
//! assert!(Double.positions((7, 5), 10).take(3).eq([7, 2, 7]));
//! ```

use crate::bloom::Shape;
use crate::error::InvalidShape;
use crate::hash::Digest;

/// The maximum number of probes per key in a filter of this library. Filters of other systems may
/// have more: [`Shape::foreign`].
pub const MAX_PROBES: u32 = 64;

/// Maps a digest to positions.
///
/// A digest is the result of a hasher for a key. Between steps, it also holds the state of the walk
/// over its positions.
pub trait Kernels: 'static {
    /// The digest type. [`Digest`] for native kernels; any type that a
    /// [`Digester`](crate::hash::Digester) produces for others.
    type Digest: Copy;

    /// The next position of a digest, below `bits`. Advances the digest.
    ///
    /// A position at or above `bits` makes the false positive rate wrong, and a position past the
    /// last word panics.
    fn step(&self, digest: &mut Self::Digest, bits: u64) -> u64;

    /// Prepares a digest for its first step. Most kernels leave it unchanged.
    #[inline(always)]
    fn start(&self, digest: Self::Digest) -> Self::Digest {
        digest
    }

    /// Checks that these kernels work with a shape. Most accept any shape.
    ///
    /// # Errors
    ///
    /// If the shape is not accepted.
    fn accept(&self, shape: &Shape) -> Result<(), InvalidShape> {
        let _ = shape;
        Ok(())
    }

    /// A value that distinguishes kernels of one type: if two values are equal, the kernels give
    /// the same positions. Kernels without parameters need not override it.
    fn check(&self) -> u64 {
        0
    }

    /// The infinite sequence of positions of a digest. A filter uses the first ones, one for each
    /// probe.
    fn positions(&self, digest: Self::Digest, bits: u64) -> impl Iterator<Item = u64> {
        let mut digest = self.start(digest);
        core::iter::repeat_with(move || self.step(&mut digest, bits))
    }
}

/// The native kernels: the digest as a fraction, written as digits in base `bits`.
///
/// With x = digest / 2^64, the first position is the integer part of x · bits, the next one that of
/// the remaining fraction times bits, and so on: one multiplication per probe. The positions are
/// exactly uniform and independent until the 64 bits are used up. Since `bits` is odd,
/// multiplication by it never loses a bit afterwards either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digits;

impl Kernels for Digits {
    type Digest = Digest;

    /// The lowest bit is set, so that no digest is 0, whose digits would all be equal.
    #[inline(always)]
    fn start(&self, digest: Digest) -> Digest {
        Digest::new(digest.bits() | 1)
    }

    #[inline(always)]
    fn step(&self, digest: &mut Digest, bits: u64) -> u64 {
        let product = u128::from(digest.bits()) * u128::from(bits);
        *digest = Digest::new(product as u64);
        (product >> 64) as u64
    }

    fn accept(&self, shape: &Shape) -> Result<(), InvalidShape> {
        let (bits, probes) = (shape.bits(), shape.probes());
        if bits % 2 == 0 {
            return Err(InvalidShape::EvenBits { bits });
        }
        InvalidShape::check_range("probes", probes.into(), 1, MAX_PROBES.into())
    }
}
