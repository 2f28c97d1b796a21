//! The path for all processors: safe code, and the definition of what the other paths compute.

use super::{Block, Calls, Choice, Isa, Job, Lanes, Line, Places, SPLIT_SALTS, dispatch};
use crate::parts::bits::Word;

/// The token of the portable path, which is always available.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scalar;

impl Lanes {
    /// Calls `each` with the word of every probe of `x` in the first half of a line, and the
    /// position in the word, modulo 64.
    #[inline(always)]
    pub(crate) fn for_each_in_first(&self, x: u32, each: impl FnMut(usize, u32)) {
        let [a, b, c, d, ..] = self.salts;
        deal(self.first, x, [a, b, c, d], each);
    }

    /// As [`for_each_in_first`](Self::for_each_in_first), for the second half.
    #[inline(always)]
    pub(crate) fn for_each_in_second(&self, x: u32, mut each: impl FnMut(usize, u32)) {
        let [.., a, b, c, d] = self.salts;
        deal(self.second, x, [a, b, c, d], |word, place| each(4 + word, place));
    }
}

/// Calls `each` with the word of half a line and the position in it, modulo 64, of the first
/// `probes` salts, at most four. `probes` is the same for all keys of a filter, so this branch is
/// predicted, and the code after it has no branches.
#[inline(always)]
fn deal(probes: u32, x: u32, salts: [u32; 4], mut each: impl FnMut(usize, u32)) {
    let mut probe = |salt: u32| {
        let product = x.wrapping_mul(salt);
        each((product >> 30) as usize, product >> 24);
    };
    let [a, b, c, d] = salts;
    match probes {
        0 => {}
        1 => probe(a),
        2 => {
            probe(a);
            probe(b);
        }
        3 => {
            probe(a);
            probe(b);
            probe(c);
        }
        _ => {
            probe(a);
            probe(b);
            probe(c);
            probe(d);
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

/// [`Isa::line_has`], probe by probe.
#[inline(always)]
pub(super) fn line_has<W: Word>(line: &Line<W>, x: u32, lanes: &Lanes) -> bool {
    // Most absent keys are rejected in the first half, by the first branch.
    let mut all = 1;
    lanes.for_each_in_first(x, |word, place| all &= line[word].load().wrapping_shr(place));
    if all & 1 == 0 {
        return false;
    }
    lanes.for_each_in_second(x, |word, place| all &= line[word].load().wrapping_shr(place));
    all & 1 == 1
}

/// [`Isa::block_has`], word by word.
#[inline(always)]
pub(super) fn block_has<W: Word>(block: &Block<W>, x: u32) -> bool {
    let mut missing = 0;
    for_each_of_block(x, |word, mask| missing |= !block[word].load() & mask);
    missing == 0
}

/// Row `w` is all ones in word `w` of half a line.
#[cfg_attr(not(feature = "alloc"), allow(dead_code, reason = "for filters of several levels"))]
static WORD: [[u64; 4]; 4] =
    [[u64::MAX, 0, 0, 0], [0, u64::MAX, 0, 0], [0, 0, u64::MAX, 0], [0, 0, 0, u64::MAX]];

/// Sets a bit of half a line that is kept in registers. Changing words in memory one after another,
/// in unpredictable places, would stall every time.
#[cfg_attr(not(feature = "alloc"), allow(dead_code, reason = "for filters of several levels"))]
#[inline(always)]
fn put(half: &mut [u64; 4], word: usize, place: u32) {
    let bit = 1_u64.wrapping_shl(place);
    for (mask, all) in half.iter_mut().zip(WORD[word]) {
        *mask |= all & bit;
    }
}

impl Isa for Scalar {
    /// The bits as a line, for a comparison word by word, which compilers vectorize.
    type Pattern = [[u64; 4]; 2];

    #[inline(always)]
    fn pattern(self, x: u32, lanes: &'static Lanes) -> Self::Pattern {
        let [mut first, mut second] = [[0; 4]; 2];
        lanes.for_each_in_first(x, |word, place| put(&mut first, word, place));
        lanes.for_each_in_second(x, |word, place| put(&mut second, word - 4, place));
        [first, second]
    }

    #[inline(always)]
    fn line_has_pattern(self, line: &Line<u64>, pattern: &Self::Pattern) -> bool {
        let mut missing = 0;
        for (mask, word) in pattern.as_flattened().iter().zip(line) {
            missing |= mask & !word;
        }
        missing == 0
    }

    #[inline(always)]
    fn plain_line_has(self, line: &Line<u64>, x: u32, lanes: &Lanes) -> bool {
        line_has(line, x, lanes)
    }

    #[inline(always)]
    fn plain_block_has(self, block: &Block<u64>, x: u32) -> bool {
        block_has(block, x)
    }

    #[inline(always)]
    fn line_set(self, line: &mut Line<u64>, x: u32, lanes: &Lanes) -> bool {
        let mut all = 1;
        let mut set = |word: usize, place: u32| {
            all &= line[word].wrapping_shr(place);
            line[word] |= 1_u64.wrapping_shl(place);
        };
        lanes.for_each_in_first(x, &mut set);
        lanes.for_each_in_second(x, set);
        all & 1 == 0
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

// The functions of a filter without a better path, or of one that was created at compile time and
// queries the processor.

#[inline(never)]
pub(super) fn on_any(job: impl Job, choice: Choice) {
    match choice.made() {
        Some(choice) => dispatch(choice, job),
        None => job.run(Scalar),
    }
}

pub(super) fn has_key(lines: &[Line<u64>], digest: u64, places: &Places) -> bool {
    super::has_key(Scalar, lines, digest, places)
}

pub(super) fn set_key(lines: &mut [Line<u64>], digest: u64, places: &Places) -> bool {
    super::set_key(Scalar, lines, digest, places)
}

pub(super) fn has_key_open(lines: &[Line<u64>], digest: u64, places: &Places) -> bool {
    Calls::now(places.two).has(lines, digest, places)
}

pub(super) fn set_key_open(lines: &mut [Line<u64>], digest: u64, places: &Places) -> bool {
    Calls::now(places.two).set(lines, digest, places)
}

#[inline(never)]
pub(super) fn plain_block_has(block: &Block<u64>, x: u32, choice: Choice) -> bool {
    match choice.made() {
        Some(choice) => super::block_has(choice, block, x),
        None => block_has(block, x),
    }
}
