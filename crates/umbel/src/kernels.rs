//! Kernels: what maps a digest to the positions a classic Bloom filter sets and tests.
//!
//! ```text
//!     digest  --start-->  walk  --step-->  position 1
//!                           |   --step-->  position 2      each below `bits`
//!                           v   --step-->  ...
//! ```
//!
//! The rate of a Bloom filter is only as good as its positions are independent of each other.
//! Measured share of absent keys found, over the share that k independent keyed hashes give in a
//! filter of the same shape (`cargo run --release --example rates -- kernels`; one sigma is 0.005,
//! and 4 % in the last two columns):
//!
//! | kernels | 10 keys, 0.1 % | 100 keys, 1 % | 100 keys, 0.1 % | 100 keys, 2^-16 | 10,000 keys, 2^-16 |
//! |---|---|---|---|---|---|
//! | [`Digits`] (default) | 0.99 | 1.00 | 1.01 | 1.04 | 0.99 |
//! | [`DoubleHashing`] | 3.8 | 1.07 | 1.52 | 25 | 1.31 |
//!
//! Bring your own by implementing [`Kernels`], and [`Digester`](crate::hash::Digester) for the
//! digest they start from: `examples/own_kernels.rs` does it with k independent keyed hashes.

use crate::bloom::Shape;
use crate::error::InvalidShape;
use crate::hash::Digest;

/// The most probes a filter may make for a key.
pub const MAX_PROBES: u32 = 64;

/// Maps a digest to positions.
pub trait Kernels: 'static {
    /// What they need to know of a key. [`Digest`] for native kernels.
    type Digest: Copy;
    /// A walk over the positions of one key.
    type Walk: Copy;

    /// The walk over the positions of this digest.
    fn start(&self, digest: Self::Digest) -> Self::Walk;

    /// The next position of a walk, below `bits`.
    ///
    /// A position at or above `bits` breaks the rate, and one past the last word panics.
    fn step(&self, walk: &mut Self::Walk, bits: u64) -> u64;

    /// Whether filters of this shape can be made with these kernels.
    ///
    /// # Errors
    ///
    /// What is wrong with the shape.
    fn accept(&self, shape: &Shape) -> Result<(), InvalidShape>;

    /// A value that tells kernels apart: if two have the same one, they give the same positions.
    fn check(&self) -> u64;
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
    type Walk = u64;

    /// The lowest bit is set, so that no digest is 0, whose digits would all be the same.
    #[inline(always)]
    fn start(&self, digest: Digest) -> u64 {
        digest.bits() | 1
    }

    #[inline(always)]
    fn step(&self, walk: &mut u64, bits: u64) -> u64 {
        let product = u128::from(*walk) * u128::from(bits);
        *walk = product as u64;
        (product >> 64) as u64
    }

    fn accept(&self, shape: &Shape) -> Result<(), InvalidShape> {
        let bits = shape.bits();
        if bits % 2 == 1 { Ok(()) } else { Err(InvalidShape::EvenBits { bits }) }
    }

    fn check(&self) -> u64 {
        1
    }
}

/// Plain double hashing: position i is `a + i · b` modulo `bits` (Kirsch and Mitzenmacher 2006,
/// section 3).
///
/// Here for comparison and for study, not for use: all positions follow from one pair (a, b), so
/// the rate has a floor near items / bits², which small filters with small rates run into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DoubleHashing;

impl Kernels for DoubleHashing {
    type Digest = Digest;
    /// The two hashes before the first step, position and stride after it.
    type Walk = DoubleWalk;

    #[inline]
    fn start(&self, digest: Digest) -> DoubleWalk {
        DoubleWalk::Hashes(digest.bits(), Digest::mixed(digest.bits()).bits())
    }

    #[inline]
    fn step(&self, walk: &mut DoubleWalk, bits: u64) -> u64 {
        let (position, stride) = match *walk {
            DoubleWalk::Hashes(a, b) => (scale(a, bits), scale(b, bits)),
            DoubleWalk::At(position, stride) => (position, stride),
        };
        let next = position + stride;
        *walk = DoubleWalk::At(if next < bits { next } else { next - bits }, stride);
        position
    }

    fn accept(&self, _: &Shape) -> Result<(), InvalidShape> {
        Ok(())
    }

    fn check(&self) -> u64 {
        2
    }
}

/// A walk of [`DoubleHashing`].
#[derive(Clone, Copy, Debug)]
pub enum DoubleWalk {
    /// Not yet begun: the two hashes.
    Hashes(u64, u64),
    /// The next position, and the stride from there.
    At(u64, u64),
}

/// A 64-bit fraction of `bits`, rounded down.
#[inline]
const fn scale(fraction: u64, bits: u64) -> u64 {
    ((fraction as u128 * bits as u128) >> 64) as u64
}
