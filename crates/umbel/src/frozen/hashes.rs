//! The hashes of all keys during a build: in chunks, each sorted by the part of the filter that its
//! keys belong to.
//!
//! ```text
//!     chunk 0   [ part 0 | part 1 | part 2 | ... ]     a part of a filter is worked on by going
//!     chunk 1   [ part 0 | part 1 | part 2 | ... ]     through its runs, one in each chunk
//! ```
//!
//! A hash is a digest times an odd number, modulo 2<sup>64</sup>. The multiplication is reversible.
//! Hashes by another odd number are therefore computed from these, and the digests need not be
//! kept.

use super::BuildError;
use crate::error::InvalidShape;
use crate::parts::gather::Gathered;
use alloc::vec::Vec;

/// The hashes of all keys.
#[derive(Debug)]
pub(crate) struct Hashes {
    chunks: Vec<Chunk>,
    /// The multiplier of the digests.
    multiplier: u64,
}

#[derive(Debug)]
struct Chunk {
    hashes: Vec<u64>,
    /// The start of each part, and the end of the last one.
    starts: Vec<u32>,
}

impl Hashes {
    /// The digests unchanged, which are hashes with multiplier 1.
    pub(crate) fn of(digests: Gathered) -> Self {
        let chunk = |mut hashes: Vec<u64>| {
            hashes.shrink_to_fit();
            Chunk { hashes, starts: Vec::new() }
        };
        Self { chunks: digests.into_chunks().map(chunk).collect(), multiplier: 1 }
    }

    /// The number of hashes.
    pub(crate) fn len(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.hashes.len() as u64).sum()
    }

    /// Frees the memory.
    pub(crate) fn clear(&mut self) {
        self.chunks = Vec::new();
    }

    /// Changes the multiplier to this odd number, and sorts each chunk by the topmost `part_bits`
    /// bits.
    pub(crate) fn mix(
        &mut self,
        multiplier: u64,
        part_bits: u32,
        parallel: bool,
    ) -> Result<(), BuildError> {
        let factor = multiplier.wrapping_mul(inverse(self.multiplier));
        self.multiplier = multiplier;
        let sort = |spare: &mut Vec<u64>, chunk: &mut Chunk| chunk.mix(factor, part_bits, spare);
        #[cfg(feature = "rayon")]
        if parallel {
            use rayon::prelude::*;
            return self.chunks.par_iter_mut().try_for_each_init(Vec::new, sort);
        }
        let _ = parallel;
        let mut spare = Vec::new();
        self.chunks.iter_mut().try_for_each(|chunk| sort(&mut spare, chunk))
    }

    /// The hashes of some parts, run by run.
    pub(crate) fn runs(&self, parts: core::ops::Range<usize>) -> impl Iterator<Item = &[u64]> {
        parts.flat_map(|part| self.chunks.iter().map(move |chunk| chunk.run(part..part + 1)))
    }

    /// The number of hashes in some parts.
    pub(crate) fn len_of(&self, parts: core::ops::Range<usize>) -> u64 {
        self.chunks.iter().map(|chunk| chunk.run(parts.clone()).len() as u64).sum()
    }

    /// Removes duplicate hashes.
    pub(crate) fn remove_equal(&mut self) -> Result<(), BuildError> {
        let parts = self.chunks.first().map_or(0, |chunk| chunk.starts.len() - 1);
        // The position, in each chunk, of the next hash that is kept.
        let mut ends = Vec::new();
        reserve(&mut ends, self.chunks.len())?;
        ends.resize(self.chunks.len(), 0);
        let mut part = Vec::new();
        for number in 0..parts {
            part.clear();
            reserve(&mut part, self.len_of(number..number + 1) as usize)?;
            self.runs(number..number + 1).for_each(|run| part.extend_from_slice(run));
            part.sort_unstable();
            part.dedup();
            let mut left = &part[..];
            for (chunk, end) in self.chunks.iter_mut().zip(&mut ends) {
                let fit = chunk.run(number..number + 1).len().min(left.len());
                let (here, later) = left.split_at(fit);
                chunk.hashes[*end..*end + fit].copy_from_slice(here);
                *end += fit;
                left = later;
            }
        }
        for (chunk, end) in self.chunks.iter_mut().zip(ends) {
            chunk.hashes.truncate(end);
            chunk.starts.clear();
        }
        Ok(())
    }
}

impl Chunk {
    #[inline]
    fn run(&self, parts: core::ops::Range<usize>) -> &[u64] {
        &self.hashes[self.starts[parts.start] as usize..self.starts[parts.end] as usize]
    }

    fn mix(&mut self, factor: u64, part_bits: u32, spare: &mut Vec<u64>) -> Result<(), BuildError> {
        let parts = 1_usize << part_bits;
        let part_of = |hash: u64| (hash >> 1 >> (63 - part_bits)) as usize;
        self.starts.clear();
        reserve(&mut self.starts, parts + 1)?;
        self.starts.resize(parts + 1, 0);
        if parts == 1 {
            self.hashes.iter_mut().for_each(|hash| *hash = hash.wrapping_mul(factor));
            self.starts[1] = self.hashes.len() as u32;
            return Ok(());
        }
        // Counted one position further up, so that the sums are starts.
        for hash in &mut self.hashes {
            *hash = hash.wrapping_mul(factor);
            self.starts[part_of(*hash) + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut self.starts {
            sum += *start;
            *start = sum;
        }
        spare.clear();
        reserve(spare, self.hashes.len())?;
        spare.resize(self.hashes.len(), 0);
        // Its capacity may be that of a longer previous chunk.
        spare.shrink_to_fit();
        for &hash in &self.hashes {
            let next = &mut self.starts[part_of(hash)];
            spare[*next as usize] = hash;
            *next += 1;
        }
        // Every start is now the start of the next part.
        self.starts.copy_within(..parts, 1);
        self.starts[0] = 0;
        core::mem::swap(&mut self.hashes, spare);
        Ok(())
    }
}

/// Reserves space for `more` elements, or fails.
pub(crate) fn reserve<T>(vec: &mut Vec<T>, more: usize) -> Result<(), InvalidShape> {
    let bytes = (more as u64).saturating_mul(size_of::<T>() as u64);
    vec.try_reserve_exact(more).map_err(|_| InvalidShape::OutOfMemory { bytes })
}

/// The inverse of an odd number, modulo 2^64.
const fn inverse(odd: u64) -> u64 {
    // Newton's iteration doubles the correct bits; an odd number is its own inverse in three.
    let (mut inverse, mut right) = (odd, 3);
    while right < 64 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
        right *= 2;
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn hashes(digests: impl IntoIterator<Item = u64>) -> Hashes {
        let mut gathered = Gathered::default();
        digests.into_iter().for_each(|digest| gathered.push(digest).unwrap());
        Hashes::of(gathered)
    }

    fn mixed(number: u64) -> u64 {
        crate::Digest::mixed(number).bits()
    }

    #[test]
    fn an_inverse_undoes_its_number() {
        for odd in [1, 3, 5, u64::MAX, 0x9e37_79b9_7f4a_7c15, 1 << 63 | 1] {
            assert_eq!(inverse(odd).wrapping_mul(odd), 1);
        }
    }

    #[test]
    fn runs_have_every_hash_in_the_part_it_belongs_to() {
        const MULTIPLIERS: [u64; 2] = [0xd134_2543_de82_ef95, 0x9e37_79b9_7f4a_7c15];
        let mut hashes = hashes((0..300_000).map(mixed));
        for (multiplier, part_bits) in [(MULTIPLIERS[0], 4), (MULTIPLIERS[1], 7), (1, 0)] {
            hashes.mix(multiplier, part_bits, false).unwrap();
            let mut all = BTreeSet::new();
            for part in 0..1 << part_bits {
                for hash in hashes.runs(part..part + 1).flatten() {
                    assert_eq!((hash >> 1 >> (63 - part_bits)) as usize, part);
                    all.insert(*hash);
                }
            }
            let expected = (0..300_000).map(|number| mixed(number).wrapping_mul(multiplier));
            assert!(all == expected.collect());
            assert_eq!(hashes.len_of(0..1 << part_bits), 300_000);
        }
    }

    #[test]
    fn equal_hashes_stay_once() {
        for copies in [1, 2, 5, 1_000] {
            let mut hashes = hashes((0..200_000).map(|number| mixed(number / copies)));
            hashes.mix(3, 5, false).unwrap();
            hashes.remove_equal().unwrap();
            assert_eq!(hashes.len(), 200_000 / copies);
            hashes.mix(1, 3, false).unwrap();
            let left: BTreeSet<u64> = hashes.runs(0..8).flatten().copied().collect();
            assert!(left == (0..200_000 / copies).map(mixed).collect());
        }
    }
}
