//! Kernels with a separate hash for each position, taken modulo the number of bits.

use umbel::bloom::Shape;
use umbel::error::InvalidShape;
use umbel::kernels::Kernels;

/// Up to `MAX` hashes of a key, and the index of the one for the next position.
#[derive(Clone, Copy, Debug)]
pub struct Hashes<const MAX: usize> {
    each: [u64; MAX],
    next: usize,
}

impl<const MAX: usize> Hashes<MAX> {
    /// Collects up to `MAX` of these hashes.
    #[inline]
    pub(crate) fn of(hashes: impl Iterator<Item = u64>) -> Self {
        let mut each = [0; MAX];
        for (slot, hash) in each.iter_mut().zip(hashes) {
            *slot = hash;
        }
        Self { each, next: 0 }
    }
}

/// Position i is hash i modulo the number of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modulo<const MAX: usize>;

impl<const MAX: usize> Kernels for Modulo<MAX> {
    type Digest = Hashes<MAX>;

    #[inline]
    fn step(&self, Hashes { each, next }: &mut Hashes<MAX>, bits: u64) -> u64 {
        let position = each[*next] % bits;
        *next += 1;
        position
    }

    fn accept(&self, shape: &Shape) -> Result<(), InvalidShape> {
        InvalidShape::check_range("probes", shape.probes().into(), 1, MAX as u64)
    }
}
