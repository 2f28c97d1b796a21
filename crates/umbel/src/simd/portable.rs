//! The path of every processor: safe code, and the definition of what the others do.

use super::{Block, Isa, Job, Lanes, Line, Path, SPLIT_SALTS, dispatch, path};
use crate::parts::bits::Word;

/// The token of the portable path. Everybody may have one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Portable;

impl Lanes {
    /// Calls `each` with the word and the mask of every probe of `x` in the first half of a line.
    #[inline(always)]
    pub(crate) fn for_each_in_first(&self, x: u32, each: impl FnMut(usize, u64)) {
        let [a, b, c, d, ..] = self.salts;
        deal(self.first, x, [a, b, c, d], each);
    }

    /// Calls `each` with the word and the mask of every probe of `x` in the second half of a line.
    #[inline(always)]
    pub(crate) fn for_each_in_second(&self, x: u32, mut each: impl FnMut(usize, u64)) {
        let [.., a, b, c, d] = self.salts;
        deal(self.second, x, [a, b, c, d], |word, mask| each(4 + word, mask));
    }
}

/// Calls `each` for the first `probes` salts, at most four. How many there are is the same for all
/// keys of a filter, so this branch is predicted, and what follows is a straight line.
#[inline(always)]
fn deal(probes: u32, x: u32, salts: [u32; 4], mut each: impl FnMut(usize, u64)) {
    let mut probe = |salt: u32| {
        // Words of 32 bits are halves of words: (bit, word) as eight bits becomes (word, bit).
        let place = ((x.wrapping_mul(salt) >> 24) as u8).rotate_left(5);
        each(usize::from(place >> 6), 1 << (place & 63));
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

impl Isa for Portable {
    #[inline(always)]
    fn line_has<W: Word>(self, line: &Line<W>, x: u32, lanes: &Lanes) -> bool {
        // Of absent keys, most are found out in the first half, by the first branch.
        let mut missing = 0;
        lanes.for_each_in_first(x, |word, mask| missing |= !line[word].load() & mask);
        if missing != 0 {
            return false;
        }
        lanes.for_each_in_second(x, |word, mask| missing |= !line[word].load() & mask);
        missing == 0
    }

    #[inline(always)]
    fn line_set(self, line: &mut Line<u64>, x: u32, lanes: &Lanes) -> bool {
        // Not word by word as they come: two probes in one word, which happens every other time,
        // would make the second wait for the first.
        let mut bits = [0; 8];
        let mut add = |word: usize, mask: u64| {
            for (number, bits) in bits.iter_mut().enumerate() {
                *bits |= if number == word { mask } else { 0 };
            }
        };
        lanes.for_each_in_first(x, &mut add);
        lanes.for_each_in_second(x, add);
        let mut missing = 0;
        for (word, bits) in line.iter_mut().zip(bits) {
            missing |= !*word & bits;
            *word |= bits;
        }
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

// What a process does that has no better path, or has not looked for one yet.

#[inline(never)]
pub(super) fn on_any(job: impl Job) {
    if path() == Path::Portable { job.run(Portable) } else { dispatch(job) }
}

#[inline(always)]
pub(super) fn one_line_has<W: Word>(lines: &[Line<W>], digest: u64, lanes: &Lanes) -> bool {
    let number = ((u128::from(digest) * lines.len() as u128) >> 64) as usize;
    Portable.line_has(&lines[number], digest as u32, lanes)
}

#[inline(never)]
pub(super) fn one_plain_line_has(lines: &[Line<u64>], digest: u64, lanes: &Lanes) -> bool {
    path();
    one_line_has(lines, digest, lanes)
}

#[inline(always)]
pub(super) fn two_lines_have<W: Word>(
    lines: [&Line<W>; 2],
    digest: u64,
    lanes: [&Lanes; 2],
) -> bool {
    Portable.line_has(lines[0], digest as u32, lanes[0])
        && Portable.line_has(lines[1], (digest >> 32) as u32, lanes[1])
}

#[inline(never)]
pub(super) fn two_plain_lines_have(
    first: &Line<u64>,
    second: &Line<u64>,
    digest: u64,
    lanes: [&Lanes; 2],
) -> bool {
    path();
    two_lines_have([first, second], digest, lanes)
}

#[inline(never)]
pub(super) fn line_set(line: &mut Line<u64>, x: u32, lanes: &Lanes) -> bool {
    path();
    Portable.line_set(line, x, lanes)
}

#[inline(never)]
pub(super) fn block_has(block: &Block<u64>, x: u32) -> bool {
    path();
    Portable.block_has(block, x)
}
