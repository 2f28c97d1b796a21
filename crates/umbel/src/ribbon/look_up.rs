//! Looking keys up: find the layer, add up the rows.
//!
//! One way is for the usual case, is short, and becomes part of its caller: a key of eight bits or fewer in
//! the first layer. The other one is for everything.

use super::parity::{GROUP, Window};
use super::row::{Equation, mask, next_hash};
use super::shape::{BUCKETS_PER_WORD, Grid, Place, Plain, Shape, Tier, threshold};
use crate::hash::Digest;
use crate::parts::prefetch::{prefetch, prefetch_far};
use crate::simd::{Choice, Isa, Job, dispatch};

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
    if shape.is_usual() {
        let ([first, ..], hash) = (&shape.tiers, digest.bits());
        let place = first.place(hash);
        if !first.bumps(words, place)
            && let Some(sum) = first.spot(shape.bits, place, hash).sum_of_group(words, shape.bits)
        {
            return Some(sum);
        }
    }
    sum_anyway(shape, words, digest)
}

/// As [`sum`], for every case.
#[inline(never)]
fn sum_anyway(shape: &Shape, words: &[u64], digest: Digest) -> Option<Sum> {
    let mut hash = shape.first_hash(digest.bits());
    for tier in shape.tiers() {
        let place = tier.place(hash);
        if !tier.bumps(words, place) {
            return Some(tier.sum(words, shape.bits, place, hash));
        }
        hash = next_hash(hash);
    }
    shape.plain.sum(words, shape.bits, hash)
}

/// The rows of a key: the first word of the block in which they begin, where in it they do, and which they
/// are.
#[derive(Clone, Copy, Debug)]
struct Spot {
    word: usize,
    window: Window,
    equation: Equation,
}

impl Spot {
    /// What the rows add up to in up to eight columns, or `None` if the words end too soon after them.
    #[inline(always)]
    fn sum_of_group(&self, words: &[u64], bits: u32) -> Option<Sum> {
        let near: &[u64; 2 * GROUP] = words.get(self.word..)?.first_chunk()?;
        let (lower, upper) = (near.first_chunk()?, near.get(bits as usize..)?.first_chunk()?);
        let bits = self.window.parities(lower, upper) & mask(bits);
        Some(Sum { bits, equation: self.equation })
    }
}

impl Tier {
    /// Whether keys at this place are in a layer below.
    #[inline(always)]
    fn bumps(&self, words: &[u64], place: Place) -> bool {
        let bucket = place.bucket();
        let word = words[self.thresholds + (bucket / BUCKETS_PER_WORD) as usize];
        place.is_bumped_by(threshold(word, bucket))
    }

    /// The first word of the block in which the rows of a key begin.
    #[inline(always)]
    fn word(&self, bits: u32, place: Place) -> usize {
        self.grid.base + (place.row() / 64) as usize * bits as usize
    }

    #[inline(always)]
    fn spot(&self, bits: u32, place: Place, hash: u64) -> Spot {
        let equation = Equation::of(hash);
        let window = Window::new(equation.coefficients | 1, (place.row() % 64) as u32);
        Spot { word: self.word(bits, place), window, equation }
    }

    fn sum(&self, words: &[u64], bits: u32, place: Place, hash: u64) -> Sum {
        let Spot { window, equation, .. } = self.spot(bits, place, hash);
        Sum { bits: self.grid.sum(words, bits, place.row(), window), equation }
    }
}

impl Plain {
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
    fn sum_in_blocks(&self, words: &[u64], bits: u32, block: usize, window: Window) -> Option<u32> {
        let width = bits as usize;
        let first = self.base + block * width;
        let mut sum = 0;
        for column in (0..width).step_by(GROUP) {
            // A group may reach into the next block, the columns of which are masked.
            let two = words.get(first + column..first + column + width + GROUP)?;
            sum |= window.parities(two.first_chunk()?, two.last_chunk()?) << column;
        }
        Some(sum & mask(bits))
    }

    /// As [`sum`](Self::sum), column by column.
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
}

/// How many keys of a batch are under way at a time.
const AHEAD: usize = 32;

/// Filters of more words than this are fetched into the second cache of the core: 4 MiB.
const FAR_WORDS: usize = 1 << 19;

/// What the rows of each key add up to, in the order of the keys; `None` where nobody is.
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
    dispatch(Choice::now(), Batch { shape, words, keys, digest, answers, answer });
}

struct Batch<'a, K, D, A, F> {
    shape: &'a Shape,
    words: &'a [u64],
    keys: &'a [K],
    digest: D,
    answers: &'a mut [A],
    answer: F,
}

impl<K, D, A, F> Job for Batch<'_, K, D, A, F>
where
    D: Fn(&K) -> Digest,
    F: Fn(Option<Sum>) -> A,
{
    #[inline(always)]
    fn run<I: Isa>(self, _: I) {
        let far = self.words.len() > FAR_WORDS;
        match (self.shape.depth > 0, self.shape.bits as usize <= GROUP) {
            (true, true) if far => self.go::<true, true>(),
            (true, true) => self.go::<false, true>(),
            (true, false) if far => self.go::<true, false>(),
            (true, false) => self.go::<false, false>(),
            (false, _) => self.one_by_one(),
        }
    }
}

impl<K, D, A, F> Batch<'_, K, D, A, F>
where
    D: Fn(&K) -> Digest,
    F: Fn(Option<Sum>) -> A,
{
    fn one_by_one(self) {
        for (slot, key) in self.answers.iter_mut().zip(self.keys) {
            *slot = (self.answer)(sum_anyway(self.shape, self.words, (self.digest)(key)));
        }
    }

    /// Group by group: find out where the rows of all keys are, and ask for them; then add them up.
    #[inline(always)]
    fn go<const FAR: bool, const NARROW: bool>(self) {
        let Self { shape, words, keys, digest, answers, answer } = self;
        let mut located = [(0, 0_usize); AHEAD];
        for (keys, answers) in keys.chunks(AHEAD).zip(answers.chunks_mut(AHEAD)) {
            for (located, key) in located.iter_mut().zip(keys) {
                *located = locate::<FAR>(shape, words, shape.first_hash(digest(key).bits()));
            }
            for (slot, &(hash, layer)) in answers.iter_mut().zip(&located) {
                *slot = answer(sum_in_layer::<NARROW>(shape, words, hash, layer));
            }
        }
    }
}

/// The layer where the rows of a key are, which start to be loaded, and its hash there.
#[inline(always)]
fn locate<const FAR: bool>(shape: &Shape, words: &[u64], mut hash: u64) -> (u64, usize) {
    let mut layer = 0;
    for tier in shape.tiers() {
        let place = tier.place(hash);
        if !tier.bumps(words, place) {
            fetch::<FAR>(words, tier.word(shape.bits, place), shape.bits as usize);
            break;
        }
        hash = next_hash(hash);
        layer += 1;
    }
    (hash, layer)
}

/// As [`sum_anyway`], for a key whose layer is known.
#[inline(always)]
fn sum_in_layer<const NARROW: bool>(
    shape: &Shape,
    words: &[u64],
    hash: u64,
    layer: usize,
) -> Option<Sum> {
    let Some(tier) = shape.tiers().get(layer) else {
        return shape.plain.sum(words, shape.bits, hash);
    };
    let place = tier.place(hash);
    if NARROW && let Some(sum) = tier.spot(shape.bits, place, hash).sum_of_group(words, shape.bits)
    {
        return Some(sum);
    }
    Some(tier.sum(words, shape.bits, place, hash))
}

/// Starts to load two blocks of `width` columns.
#[inline(always)]
fn fetch<const FAR: bool>(words: &[u64], first: usize, width: usize) {
    let fetch = if FAR { prefetch_far::<u64> } else { prefetch::<u64> };
    for word in (0..2 * width).step_by(8) {
        fetch(words, first + word);
    }
    if !width.is_multiple_of(4) {
        fetch(words, first + 2 * width - 1);
    }
}
