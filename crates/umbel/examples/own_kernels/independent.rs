//! Kernels made of independent keyed hashes: one hash function for each position, as in the textbook. They are
//! slower than the native ones and no better, and this example measures that.

use umbel::bloom::Shape;
use umbel::error::InvalidShape;
use umbel::hash::{Digester, Key, Keyed};
use umbel::kernels::Kernels;

/// The number of hash functions, which is the maximum number of probes.
pub(crate) const HASHES: usize = 32;

/// A secret for each position.
#[derive(Clone, Debug)]
pub(crate) struct ManyHashes([Keyed; HASHES]);

impl ManyHashes {
    /// Hashes whose secrets are derived from one number.
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(std::array::from_fn(|position| {
            let secret = u128::from(seed) << 64 | position as u128;
            Keyed::new(secret.to_le_bytes())
        }))
    }
}

impl<T: Key + ?Sized> Digester<T, Hashes> for ManyHashes {
    fn digest(&self, key: &T) -> Hashes {
        Hashes { each: std::array::from_fn(|at| self.0[at].digest(key).bits()), next: 0 }
    }

    fn check(&self) -> u64 {
        self.0.iter().fold(0, |check, hash| check ^ Digester::<T>::check(hash))
    }
}

/// The hashes of a key, and the index of the one for the next position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hashes {
    each: [u64; HASHES],
    next: usize,
}

/// Each hash, scaled to the number of bits, is a position.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Independent;

impl Kernels for Independent {
    type Digest = Hashes;

    fn step(&self, Hashes { each, next }: &mut Hashes, bits: u64) -> u64 {
        let hash = each[*next];
        *next += 1;
        ((u128::from(hash) * u128::from(bits)) >> 64) as u64
    }

    fn accept(&self, shape: &Shape) -> Result<(), InvalidShape> {
        let (probes, max) = (shape.probes(), HASHES as u32);
        if probes <= max {
            return Ok(());
        }
        let (got, max) = (probes.into(), max.into());
        Err(InvalidShape::OutOfRange { what: "probes", got, min: 1, max })
    }
}
