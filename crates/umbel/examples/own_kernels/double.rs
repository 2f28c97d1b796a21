//! Plain double hashing: position i is `a + i · b` modulo `bits` (Kirsch and Mitzenmacher 2006, section 3).
//!
//! For comparison and study, not for use: all positions follow from one pair (a, b), so the false positive rate
//! has a floor near items / bits². Small filters with low rates reach it.

use umbel::kernels::Kernels;

/// The first position, and the stride.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DoubleHashing;

impl Kernels for DoubleHashing {
    type Digest = (u64, u64);

    fn step(&self, (a, b): &mut (u64, u64), bits: u64) -> u64 {
        let (position, stride) = (*a % bits, *b % bits);
        (*a, *b) = (position + stride, stride);
        position
    }
}
