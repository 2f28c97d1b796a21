//! The path of every processor: safe code, and the definition of what the others do.

use super::{Block, Isa, Lanes, Line, SPLIT_SALTS};
use crate::parts::bits::Word;

/// The token of the portable path. Everybody may have one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Portable;

impl Lanes {
    /// Calls `each` with the word and the mask of every probe of `x`.
    #[inline(always)]
    pub(crate) fn for_each(&self, x: u32, mut each: impl FnMut(usize, u64)) {
        let mut probe = |half: usize, salt: u32| {
            let y = x.wrapping_mul(salt);
            // Words of 32 bits in pairs: an odd one is the upper half of its word.
            let word = (y >> 24 & 7) as usize;
            each(half + word / 2, 1 << (y >> 27 | y >> 24 << 5 & 32));
        };
        for &salt in &self.salts[..self.first as usize & 7] {
            probe(0, salt);
        }
        for &salt in &self.salts[4..4 + (self.second as usize & 7).min(4)] {
            probe(4, salt);
        }
    }
}

/// Calls `each` with the word and the mask of both probes of `x` in each word of a block.
#[inline(always)]
pub(crate) fn for_each_of_block(x: u32, mut each: impl FnMut(usize, u64)) {
    let bit = |salt: u32| 1_u64 << (x.wrapping_mul(salt) >> 27);
    for word in 0..4 {
        each(word, bit(SPLIT_SALTS[2 * word]) | bit(SPLIT_SALTS[2 * word + 1]) << 32);
    }
}

impl Isa for Portable {
    #[inline(always)]
    fn line_has<W: Word>(self, line: &Line<W>, x: u32, lanes: &Lanes) -> bool {
        let mut missing = 0;
        lanes.for_each(x, |word, mask| missing |= !line[word].load() & mask);
        missing == 0
    }

    #[inline(always)]
    fn line_set(self, line: &mut Line<u64>, x: u32, lanes: &Lanes) -> bool {
        let mut missing = 0;
        lanes.for_each(x, |word, mask| {
            missing |= !line[word] & mask;
            line[word] |= mask;
        });
        missing != 0
    }

    #[inline(always)]
    fn block_has<W: Word>(self, block: &Block<W>, x: u32) -> bool {
        let mut missing = 0;
        for_each_of_block(x, |word, mask| missing |= !block[word].load() & mask);
        missing == 0
    }

    #[inline(always)]
    fn block_set(self, block: &mut Block<u64>, x: u32) -> bool {
        let mut missing = 0;
        for_each_of_block(x, |word, mask| {
            missing |= !block[word] & mask;
            block[word] |= mask;
        });
        missing != 0
    }
}
