//! Operations on the cells of a key in one cache line, for one key and for batches.

use super::Width;
use super::layout::{CellLayout, sealed};
use super::line_shape::LineShape;
use crate::error::InvalidShape;
use crate::hash::Digest;
use crate::layout::ring::{Touch, batch, extend, fetch};
use crate::parts::cells::nonzero_in_word;
use crate::simd::{Choice, Isa, Line, line_number};

/// The layout of a blocked counting filter: all cells of a key are in one line of 512 bits, and
/// each is in a different one of its eight words.
///
/// With L lines, a key with digest d is in line d · L / 2^64. The digits of d · odd determine the
/// cells in the line: the first digit selects a word, and each further digit selects a cell, the
/// first one in that word and the others in the words that follow, cyclically. `docs/hashing.md`,
/// kernels 5.
///
/// Choosing each word independently would save 0.8 % of space. But nine of ten keys would have two
/// cells in one word, and an access to a word that may have just been changed has to wait for that
/// change.
#[derive(Clone, Copy, Debug)]
pub struct InLine {
    choice: Choice,
}

impl Default for InLine {
    /// With the best path that the processor supports: see [`simd`](crate::simd).
    fn default() -> Self {
        Self { choice: Choice::now() }
    }
}

impl sealed::Sealed for InLine {}

/// Derives the positions in a line: 2^64 divided by the square root of 3, odd.
const ODD: u64 = 0x93cd_3a2c_8198_e269;

/// Walks over the cells of a key in its line, with cells of `BITS` bits.
#[derive(Clone, Copy)]
struct LineWalk<const BITS: u32> {
    word: usize,
    digits: u64,
}

impl<const BITS: u32> LineWalk<BITS> {
    /// The largest number in a cell.
    const MAX: u64 = (1 << BITS) - 1;
    /// How many bits select a cell of a word.
    const DIGIT: u32 = 6 - BITS.ilog2();

    #[inline(always)]
    const fn start(digest: Digest) -> Self {
        let digits = digest.bits().wrapping_mul(ODD);
        Self { word: (digits >> 61) as usize, digits: digits << 3 }
    }

    /// The next cell: its word in the line, and its first bit there.
    #[inline(always)]
    const fn step(&mut self) -> (usize, u32) {
        let (word, cell) = (self.word % 8, (self.digits >> (64 - Self::DIGIT)) as u32);
        self.word += 1;
        self.digits <<= Self::DIGIT;
        (word, cell * BITS)
    }

    /// The number in the next cell.
    #[inline(always)]
    const fn read(&mut self, line: &Line<u64>) -> u64 {
        let (word, shift) = self.step();
        line[word] >> shift & Self::MAX
    }
}

/// The smallest number in any cell of the digest.
#[inline(always)]
fn count<const BITS: u32>(line: &Line<u64>, digest: Digest, probes: u32) -> u64 {
    let (mut walk, mut min) = (LineWalk::<BITS>::start(digest), LineWalk::<BITS>::MAX);
    for _ in 0..probes {
        min = min.min(walk.read(line));
    }
    min
}

/// How many cells are tested before the first branch, as in a classic filter.
const FIRST: u32 = 3;

/// Whether all cells of the digest are above zero.
#[inline(always)]
fn has<const BITS: u32>(line: &Line<u64>, digest: Digest, probes: u32) -> bool {
    let mut walk = LineWalk::<BITS>::start(digest);
    let mut next = || walk.read(line) != 0;
    if probes < FIRST {
        return next() && (probes == 1 || next());
    }
    let [a, b, c] = [next(), next(), next()];
    let mut all = a & b & c;
    if all {
        for _ in FIRST..probes {
            all &= next();
        }
    }
    all
}

/// Adds one to every cell of the digest that is not saturated. Returns whether one of them was
/// zero.
#[inline(always)]
fn add<const BITS: u32>(line: &mut Line<u64>, digest: Digest, probes: u32) -> bool {
    let (mut walk, mut fresh) = (LineWalk::<BITS>::start(digest), false);
    for _ in 0..probes {
        let (word, shift) = walk.step();
        let number = line[word] >> shift & LineWalk::<BITS>::MAX;
        fresh |= number == 0;
        line[word] += u64::from(number != LineWalk::<BITS>::MAX) << shift;
    }
    fresh
}

/// Subtracts one from every cell of the digest that is not saturated, unless one is zero. Returns
/// whether it did.
///
/// Keys to be removed are usually present. Subtracting first, and adding again if a cell was zero,
/// is faster than testing all cells first.
#[inline(always)]
fn take<const BITS: u32>(line: &mut Line<u64>, digest: Digest, probes: u32) -> bool {
    let (mut walk, mut there, mut taken) = (LineWalk::<BITS>::start(digest), true, 0_u32);
    for probe in 0..probes {
        let (word, shift) = walk.step();
        let number = line[word] >> shift & LineWalk::<BITS>::MAX;
        there &= number != 0;
        // Zero and the largest number are the two values that give less than 2 when one is added,
        // modulo the width.
        let counted = (number + 1) & LineWalk::<BITS>::MAX > 1;
        taken |= u32::from(counted) << probe;
        line[word] -= u64::from(counted) << shift;
    }
    if !there {
        give_back::<BITS>(line, digest, taken);
    }
    there
}

/// Adds one to the cells of the digest whose bits are set in `taken`.
#[cold]
fn give_back<const BITS: u32>(line: &mut Line<u64>, digest: Digest, mut taken: u32) {
    let mut walk = LineWalk::<BITS>::start(digest);
    while taken != 0 {
        let (word, shift) = walk.step();
        line[word] += u64::from(taken & 1) << shift;
        taken >>= 1;
    }
}

/// An operation on the line of a key.
trait Visit<const BITS: u32> {
    fn lines(&self) -> &[Line<u64>];
    fn visit(&mut self, number: usize, digest: Digest) -> bool;
}

struct CellLookUp<'a> {
    lines: &'a [Line<u64>],
    probes: u32,
}

impl<const BITS: u32> Visit<BITS> for CellLookUp<'_> {
    #[inline(always)]
    fn lines(&self) -> &[Line<u64>] {
        self.lines
    }

    #[inline(always)]
    fn visit(&mut self, number: usize, digest: Digest) -> bool {
        has::<BITS>(&self.lines[number], digest, self.probes)
    }
}

struct Change<'a, const REMOVE: bool> {
    lines: &'a mut [Line<u64>],
    probes: u32,
}

impl<const BITS: u32, const REMOVE: bool> Visit<BITS> for Change<'_, REMOVE> {
    #[inline(always)]
    fn lines(&self) -> &[Line<u64>] {
        self.lines
    }

    #[inline(always)]
    fn visit(&mut self, number: usize, digest: Digest) -> bool {
        let line = &mut self.lines[number];
        if REMOVE {
            take::<BITS>(line, digest, self.probes)
        } else {
            add::<BITS>(line, digest, self.probes)
        }
    }
}

/// Runs an operation on the lines of many keys.
struct Visits<V, const BITS: u32>(V);

impl<V: Visit<BITS>, const BITS: u32> Visits<V, BITS> {
    #[inline(always)]
    fn number(&self, digest: Digest) -> usize {
        line_number(digest.bits(), 0, self.0.lines().len())
    }
}

impl<V: Visit<BITS>, const BITS: u32> Touch for Visits<V, BITS> {
    #[inline(always)]
    fn bytes(&self) -> usize {
        size_of_val(self.0.lines())
    }

    #[inline(always)]
    fn fetch<const AHEAD: usize>(&self, digest: Digest) {
        fetch::<_, AHEAD>(self.0.lines(), self.number(digest));
    }

    #[inline(always)]
    fn answer<I: Isa>(&mut self, _: I, digest: Digest) -> bool {
        let number = self.number(digest);
        self.0.visit(number, digest)
    }
}

/// Selects one of three instances by the width of the cells: `BITS` is a constant in each.
macro_rules! by_width {
    ($width:expr, $bits:ident => $call:expr) => {
        match $width {
            Width::Two => {
                const $bits: u32 = 2;
                $call
            }
            Width::Four => {
                const $bits: u32 = 4;
                $call
            }
            Width::Eight => {
                const $bits: u32 = 8;
                $call
            }
        }
    };
}

/// The line of a key.
#[inline(always)]
fn line_of(words: &[u64], digest: Digest) -> &Line<u64> {
    let (lines, _) = words.as_chunks();
    &lines[line_number(digest.bits(), 0, lines.len())]
}

/// The line of a key, mutably.
#[inline(always)]
fn line_of_mut(words: &mut [u64], digest: Digest) -> &mut Line<u64> {
    let (lines, _) = words.as_chunks_mut();
    let number = line_number(digest.bits(), 0, lines.len());
    &mut lines[number]
}

impl CellLayout for InLine {
    type Shape = LineShape;

    const KERNELS: u8 = 5;

    fn admit(_: &LineShape) -> Result<(), InvalidShape> {
        Ok(())
    }

    fn restore(
        width: Width,
        items: u64,
        cells: u64,
        probes: u32,
    ) -> Result<LineShape, InvalidShape> {
        let in_line = LineShape::cells_per_line(width);
        if !cells.is_multiple_of(in_line) {
            return Err(InvalidShape::NotAMultiple { what: "cells", got: cells, of: in_line });
        }
        LineShape::with(items, cells / in_line, probes, width)
    }

    #[inline(always)]
    fn count(&self, shape: &LineShape, words: &[u64], digest: Digest) -> u64 {
        let (line, probes) = (line_of(words, digest), shape.probes());
        by_width!(shape.width(), BITS => count::<BITS>(line, digest, probes))
    }

    #[inline(always)]
    fn contains(&self, shape: &LineShape, words: &[u64], digest: Digest) -> bool {
        let (line, probes) = (line_of(words, digest), shape.probes());
        by_width!(shape.width(), BITS => has::<BITS>(line, digest, probes))
    }

    #[inline]
    fn contains_batch<A>(
        &self,
        shape: &LineShape,
        words: &[u64],
        keys: &[A],
        digest: impl Fn(&A) -> Digest,
        found: &mut [bool],
    ) {
        let visit = CellLookUp { lines: words.as_chunks().0, probes: shape.probes() };
        by_width!(shape.width(), BITS => {
            batch(self.choice, Visits::<_, BITS>(visit), keys, digest, found);
        });
    }

    #[inline(always)]
    fn insert(&self, shape: &LineShape, words: &mut [u64], digest: Digest) -> bool {
        let (line, probes) = (line_of_mut(words, digest), shape.probes());
        by_width!(shape.width(), BITS => add::<BITS>(line, digest, probes))
    }

    #[inline]
    fn insert_batch<A>(
        &self,
        shape: &LineShape,
        words: &mut [u64],
        keys: &[A],
        digest: impl Fn(&A) -> Digest,
        fresh: &mut [bool],
    ) {
        let visit = Change::<false> { lines: words.as_chunks_mut().0, probes: shape.probes() };
        by_width!(shape.width(), BITS => {
            batch(self.choice, Visits::<_, BITS>(visit), keys, digest, fresh);
        });
    }

    #[inline]
    fn extend(&self, shape: &LineShape, words: &mut [u64], digests: impl Iterator<Item = Digest>) {
        let visit = Change::<false> { lines: words.as_chunks_mut().0, probes: shape.probes() };
        by_width!(shape.width(), BITS => {
            extend(self.choice, Visits::<_, BITS>(visit), digests);
        });
    }

    #[inline(always)]
    fn remove(&self, shape: &LineShape, words: &mut [u64], digest: Digest) -> bool {
        let (line, probes) = (line_of_mut(words, digest), shape.probes());
        by_width!(shape.width(), BITS => take::<BITS>(line, digest, probes))
    }

    #[inline]
    fn remove_batch<A>(
        &self,
        shape: &LineShape,
        words: &mut [u64],
        keys: &[A],
        digest: impl Fn(&A) -> Digest,
        removed: &mut [bool],
    ) {
        let visit = Change::<true> { lines: words.as_chunks_mut().0, probes: shape.probes() };
        by_width!(shape.width(), BITS => {
            batch(self.choice, Visits::<_, BITS>(visit), keys, digest, removed);
        });
    }

    fn rate(&self, shape: &LineShape, words: &[u64]) -> f64 {
        let bits = shape.width().bits();
        let (lines, _) = words.as_chunks::<8>();
        let rate = |line: &Line<u64>| {
            shape.rate_of_line(line.map(|word| u64::from(nonzero_in_word(word, bits))))
        };
        lines.iter().map(rate).sum::<f64>() / lines.len() as f64
    }
}
