//! From a hash to an equation: where its rows begin, which of them it combines, and what their
//! exclusive or must be.
//!
//! ```text
//!     hash  x rows       >> 64  -->  start:         a fraction of the rows
//!     hash  x an odd number     -->  coefficients:  the lower 64 bits of the product
//!                               -->  fingerprint:   the lowest of the upper ones
//! ```
//!
//! Hashes in ascending order have starts in ascending order, so no other sorting is needed.

use crate::hash::Digest;
use crate::parts::alloc_zeroed::alloc_zeroed_words;
use alloc::vec::Vec;
use core::convert::Infallible;

/// Spreads a hash over 128 bits: RocksDB, `util/ribbon_impl.h`, `GetCoeffRow`.
const SPREAD: u64 = 0xc28f_8282_2b65_0bed;

/// Computes the hash of the next layer: 2^64 divided by the golden ratio, odd.
const NEXT: u64 = 0x9e37_79b9_7f4a_7c15;

/// The upper half of a product. It is below either factor, unless that factor is 0.
#[inline(always)]
pub(super) const fn fraction_of(whole: u64, hash: u64) -> u64 {
    ((hash as u128 * whole as u128) >> 64) as u64
}

/// The hash of a key in the layer below. A bijection.
#[inline(always)]
pub(super) const fn next_hash(hash: u64) -> u64 {
    hash.rotate_left(32).wrapping_mul(NEXT)
}

/// Another hash of the same key. A bijection.
#[inline(always)]
pub(super) const fn remixed(hash: u64, seed: u64) -> u64 {
    Digest::mixed(hash ^ seed).bits()
}

/// One bit for each of the lowest `bits`, at most 32.
#[inline(always)]
pub(super) const fn mask(bits: u32) -> u32 {
    ((1_u64 << bits) - 1) as u32
}

/// Which rows a key combines, counted from its start, and the fingerprint that a filter expects.
#[derive(Clone, Copy, Debug)]
pub(super) struct Equation {
    pub(super) coefficients: u64,
    upper: u64,
}

impl Equation {
    #[inline(always)]
    pub(super) const fn of(hash: u64) -> Self {
        let product = hash as u128 * SPREAD as u128;
        Self { coefficients: product as u64, upper: (product >> 64) as u64 }
    }

    #[inline(always)]
    pub(super) const fn fingerprint(self, mask: u32) -> u32 {
        self.upper as u32 & mask
    }
}

/// An entry that a layer is built from: the hash of a key in that layer, and possibly a value.
///
/// In ascending order, entries with equal hashes are adjacent.
pub(super) trait Gatherable: Copy + Default + Ord + Send + Sync + 'static {
    /// Two entries of one key that contradict each other.
    type Conflict;

    fn hash(self) -> u64;

    /// The same entry with another hash.
    fn with_hash(self, hash: u64) -> Self;

    /// The right-hand side of this equation.
    fn result(self, equation: Equation, mask: u32) -> u32;

    /// The conflict between two different entries of one hash, if there is one.
    fn conflict(self, other: Self) -> Option<Self::Conflict>;

    /// An allocation for this many entries of any kind, or `None` if there is no memory for them.
    fn room(len: usize) -> Option<Vec<Self>> {
        let mut room = Vec::new();
        room.try_reserve_exact(len).ok()?;
        room.resize(len, Self::default());
        Some(room)
    }
}

/// A key of a filter: its fingerprint is computed from its hash.
impl Gatherable for u64 {
    type Conflict = Infallible;

    #[inline(always)]
    fn hash(self) -> u64 {
        self
    }

    #[inline(always)]
    fn with_hash(self, hash: u64) -> Self {
        hash
    }

    #[inline(always)]
    fn result(self, equation: Equation, mask: u32) -> u32 {
        equation.fingerprint(mask)
    }

    fn conflict(self, _: Self) -> Option<Infallible> {
        None
    }

    fn room(len: usize) -> Option<Vec<Self>> {
        alloc_zeroed_words(len).map(Vec::from)
    }
}

/// One key has two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TwoValues(pub(super) [u32; 2]);

/// A key of a map, and its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pair {
    pub(super) hash: u64,
    pub(super) value: u32,
}

impl Gatherable for Pair {
    type Conflict = TwoValues;

    #[inline(always)]
    fn hash(self) -> u64 {
        self.hash
    }

    #[inline(always)]
    fn with_hash(self, hash: u64) -> Self {
        Self { hash, ..self }
    }

    #[inline(always)]
    fn result(self, _: Equation, mask: u32) -> u32 {
        self.value & mask
    }

    fn conflict(self, other: Self) -> Option<TwoValues> {
        let two = self.hash == other.hash && self.value != other.value;
        two.then_some(TwoValues([self.value, other.value]))
    }
}
