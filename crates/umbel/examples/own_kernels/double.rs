//! Plain double hashing: position i is `a + i · b` modulo `bits` (Kirsch and Mitzenmacher 2006, section 3).
//!
//! For comparison and for study, not for use: all positions follow from one pair (a, b), so the rate has a floor
//! near items / bits², which small filters with small rates run into.

use umbel::kernels::Kernels;

/// Two hashes, scaled to the number of bits: where the positions begin, and how far they are apart.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DoubleHashing;

impl Kernels for DoubleHashing {
    type Digest = (u64, u64);

    fn step(&self, (a, b): &mut (u64, u64), bits: u64) -> u64 {
        let position = ((u128::from(*a) * u128::from(bits)) >> 64) as u64;
        *a = a.wrapping_add(*b);
        position
    }
}
