//! Looking keys up: find the layer, add up the rows.

use super::parity::{GROUP, Window};
use super::row::{Equation, mask, next_hash};
use super::shape::{BUCKETS_PER_WORD, Grid, MAX_TIERS, Plain, Place, Shape, Tier, threshold};
use crate::hash::Digest;
use crate::parts::prefetch::{prefetch, prefetch_far};

/// What the rows of a key add up to, and the equation that says which they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum {
    pub(super) bits: u32,
    equation: Equation,
}

impl Sum {
    /// Whether it is what the keys of a filter have.
    #[inline(always)]
    pub(super) const fn is_fingerprint(self, mask: u32) -> bool {
        self.bits == self.equation.fingerprint(mask)
    }
}

/// What the rows of a digest add up to, or `None` if nobody is in the layer where it would be.
#[inline(always)]
pub(super) fn sum(shape: &Shape, words: &[u64], digest: Digest) -> Option<Sum> {
    let hash = shape.first_hash(digest.bits());
    let [first, ..] = &shape.tiers;
    if shape.depth == 0 {
        return shape.plain.sum(words, shape.bits, hash);
    }
    let place = first.place(hash);
    if first.bumps(words, place) {
        return sum_below(shape, words, next_hash(hash));
    }
    Some(first.sum(words, shape.bits, place, hash))
}

/// As [`sum`], for a hash of the second layer.
#[inline(never)]
fn sum_below(shape: &Shape, words: &[u64], mut hash: u64) -> Option<Sum> {
    for tier in shape.tiers().iter().skip(1) {
        let place = tier.place(hash);
        if !tier.bumps(words, place) {
            return Some(tier.sum(words, shape.bits, place, hash));
        }
        hash = next_hash(hash);
    }
    shape.plain.sum(words, shape.bits, hash)
}

impl Tier {
    /// Whether keys at this place are in a layer below.
    #[inline(always)]
    fn bumps(&self, words: &[u64], place: Place) -> bool {
        let bucket = place.bucket();
        let word = words[self.thresholds + (bucket / BUCKETS_PER_WORD) as usize];
        place.is_bumped_by(threshold(word, bucket))
    }

    #[inline(always)]
    fn sum(&self, words: &[u64], bits: u32, place: Place, hash: u64) -> Sum {
        let equation = Equation::of(hash);
        let window = Window::new(equation.coefficients | 1, (place.row() % 64) as u32);
        Sum { bits: self.grid.sum(words, bits, place.row(), window), equation }
    }
}

impl Plain {
    #[inline(never)]
    fn sum(&self, words: &[u64], bits: u32, hash: u64) -> Option<Sum> {
        if self.starts == 0 {
            return None;
        }
        let hash = self.hash(hash);
        let (row, equation) = (self.row(hash), Equation::of(hash));
        let window = Window::new(self.coefficients(equation), (row % 64) as u32);
        Some(Sum { bits: self.grid.sum(words, bits, row, window), equation })
    }
}

impl Grid {
    /// What the rows in a window add up to that begins in the block of this row.
    #[inline(always)]
    fn sum(&self, words: &[u64], bits: u32, row: u64, window: Window) -> u32 {
        let block = (row / 64) as usize;
        if block + 1 < self.blocks
            && let Some(sum) = self.sum_in_blocks(words, bits, block, window)
        {
            return sum;
        }
        self.sum_at_the_end(words, bits, block, window)
    }

    /// As [`sum`](Self::sum), in groups of columns, if none of them ends after all words.
    #[inline(always)]
    fn sum_in_blocks(
        &self,
        words: &[u64],
        bits: u32,
        block: usize,
        window: Window,
    ) -> Option<u32> {
        let width = bits as usize;
        let first = self.base + block * width;
        let mut sum = group(words, first, width, window)?;
        // Nobody waits for the others where there are none.
        if width > GROUP {
            for column in (GROUP..width).step_by(GROUP) {
                sum |= group(words, first + column, width, window)? << column;
            }
        }
        Some(sum & mask(bits))
    }

    /// As [`sum`](Self::sum), column by column.
    #[cold]
    fn sum_at_the_end(&self, words: &[u64], bits: u32, block: usize, window: Window) -> u32 {
        (0..bits).fold(0, |sum, column| {
            let lower = self.column(words, bits, block, column);
            let upper = self.column(words, bits, block + 1, column);
            sum | window.parity(lower, upper) << column
        })
    }

    /// A column of a block; rows that are not there are 0.
    fn column(&self, words: &[u64], bits: u32, block: usize, column: u32) -> u64 {
        let begin = self.base + block * bits as usize;
        if block < self.blocks {
            return words[begin + column as usize];
        }
        if block > self.blocks || self.rest == 0 {
            return 0;
        }
        let bit = (column * self.rest) as usize;
        let (word, shift) = (begin + bit / 64, bit % 64);
        let lower = words[word] >> shift;
        let crosses = shift + self.rest as usize > 64;
        let upper = if crosses { words[word + 1] << (64 - shift) } else { 0 };
        (lower | upper) & ((1 << self.rest) - 1)
    }

    /// Starts to load the columns of a row.
    #[inline(always)]
    fn fetch<const FAR: bool>(&self, words: &[u64], bits: u32, row: u64) {
        let width = bits as usize;
        let first = self.base + (row / 64) as usize * width;
        let fetch = if FAR { prefetch_far::<u64> } else { prefetch::<u64> };
        for word in (0..2 * width).step_by(8) {
            fetch(words, first + word);
        }
        if !width.is_multiple_of(4) {
            fetch(words, first + 2 * width - 1);
        }
    }
}

/// The parities of eight columns from this one on, in blocks of `width` columns. They may reach into the
/// next block.
#[inline(always)]
fn group(words: &[u64], column: usize, width: usize, window: Window) -> Option<u32> {
    let two = words.get(column..column + width + GROUP)?;
    Some(window.parities(two.first_chunk()?, two.last_chunk()?))
}

/// How many keys of a batch are under way at a time.
const AHEAD: usize = 32;

/// Filters of more words than this are fetched into the second cache of the core: 4 MiB.
const FAR_WORDS: usize = 1 << 19;

/// A key on its way: the layer where its rows are, and its hash there.
#[derive(Clone, Copy, Debug, Default)]
struct Located {
    hash: u64,
    layer: usize,
}

/// Where the rows of a key are, which start to be loaded.
#[inline(always)]
fn locate<const FAR: bool>(shape: &Shape, words: &[u64], digest: Digest) -> Located {
    let mut hash = shape.first_hash(digest.bits());
    for (layer, tier) in shape.tiers().iter().enumerate() {
        let place = tier.place(hash);
        if !tier.bumps(words, place) {
            tier.grid.fetch::<FAR>(words, shape.bits, place.row());
            return Located { hash, layer };
        }
        hash = next_hash(hash);
    }
    Located { hash, layer: MAX_TIERS }
}

/// What the rows of each key add up to, in the order of the keys; `none` where nobody is.
///
/// # Panics
///
/// If there are not as many answers as keys.
#[inline(always)]
pub(super) fn batch<K, A>(
    (shape, words): (&Shape, &[u64]),
    keys: &[K],
    digest: impl Fn(&K) -> Digest,
    answers: &mut [A],
    answer: impl Fn(Option<Sum>) -> A,
) {
    assert_eq!(keys.len(), answers.len(), "one answer for each key");
    if words.len() > FAR_WORDS {
        groups::<K, A, true>((shape, words), keys, digest, answers, answer);
    } else {
        groups::<K, A, false>((shape, words), keys, digest, answers, answer);
    }
}

#[inline(always)]
fn groups<K, A, const FAR: bool>(
    (shape, words): (&Shape, &[u64]),
    keys: &[K],
    digest: impl Fn(&K) -> Digest,
    answers: &mut [A],
    answer: impl Fn(Option<Sum>) -> A,
) {
    let mut located = [Located::default(); AHEAD];
    for (keys, answers) in keys.chunks(AHEAD).zip(answers.chunks_mut(AHEAD)) {
        for (located, key) in located.iter_mut().zip(keys) {
            *located = locate::<FAR>(shape, words, digest(key));
        }
        for (slot, located) in answers.iter_mut().zip(&located) {
            let Located { hash, layer } = *located;
            *slot = answer(match shape.tiers.get(layer) {
                Some(tier) => Some(tier.sum(words, shape.bits, tier.place(hash), hash)),
                None => shape.plain.sum(words, shape.bits, hash),
            });
        }
    }
}
