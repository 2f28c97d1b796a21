//! Kernels: what maps a digest to the positions a classic Bloom filter sets and tests.
//!
//! ```text
//!     digest  --step-->  position 1
//!       |     --step-->  position 2      each below `bits`
//!       v     --step-->  ...
//! ```
//!
//! The native kernels are [`Digits`]. Those of other systems, with which their filters are read and written,
//! are in the crate `umbel-foreign`.
//!
//! The rate of a Bloom filter is only as good as its positions are independent of each other.
//! Measured share of absent keys found, over the share that k independent keyed hashes give in a
//! filter of the same shape (`cargo run --release --example rates -- kernels`; one sigma is 0.005,
//! and 4 % in the last two columns):
//!
//! | kernels | 10 keys, 0.1 % | 100 keys, 1 % | 100 keys, 0.1 % | 100 keys, 2^-16 | 10,000 keys, 2^-16 |
//! |---|---|---|---|---|---|
//! | [`Digits`] (default) | 0.99 | 1.00 | 1.01 | 1.04 | 0.99 |
//! | double hashing (`examples/own_kernels/double.rs`) | 3.8 | 1.07 | 1.52 | 25 | 1.31 |
//!
//! Bring your own by implementing [`Kernels`], and [`Digester`](crate::hash::Digester) for the
//! digest they start from: `examples/own_kernels` does it with k independent keyed hashes.
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

/// The most probes that a filter of this library makes for a key. Filters of other systems may make more:
/// [`Shape::foreign`].
pub const MAX_PROBES: u32 = 64;

/// Maps a digest to positions.
///
/// A digest is what a hasher made of a key, and, from step to step, where its positions have got to.
pub trait Kernels: 'static {
    /// What they need to know of a key. [`Digest`] for native kernels; whatever the
    /// [`Digester`](crate::hash::Digester) gives for others.
    type Digest: Copy;

    /// The next position of a digest, below `bits`. The digest moves on.
    ///
    /// A position at or above `bits` breaks the rate, and one past the last word panics.
    fn step(&self, digest: &mut Self::Digest, bits: u64) -> u64;

    /// Prepares a digest for its first step. Most kernels take it as it is.
    #[inline(always)]
    fn start(&self, digest: Self::Digest) -> Self::Digest {
        digest
    }

    /// Whether filters of this shape can be made with these kernels. Most take any.
    ///
    /// # Errors
    ///
    /// What is wrong with the shape.
    fn accept(&self, shape: &Shape) -> Result<(), InvalidShape> {
        let _ = shape;
        Ok(())
    }

    /// A value that tells kernels of one type apart: if two have the same one, they give the same positions.
    /// Kernels without parameters need none.
    fn check(&self) -> u64 {
        0
    }

    /// The positions of a digest, without end: a filter takes as many as it makes probes.
    fn positions(&self, digest: Self::Digest, bits: u64) -> impl Iterator<Item = u64> {
        let mut digest = self.start(digest);
        core::iter::repeat_with(move || self.step(&mut digest, bits))
    }
}

/// The native kernels: the digest, read as a fraction of the table, written in base `bits`.
///
/// With x = digest / 2^64, the first position is the whole part of x · bits, the next one that of
/// the fraction left over times bits, and so on: one multiplication a probe and nothing else. The
/// positions are exactly uniform and independent until the 64 bits are used up, and since `bits`
/// is odd, multiplication by it never loses a bit afterwards either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digits;

impl Kernels for Digits {
    type Digest = Digest;

    /// The lowest bit is set, so that no digest is 0, whose digits would all be the same.
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
