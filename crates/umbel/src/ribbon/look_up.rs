//! Look-ups: find the layer of a key and combine its rows.
//!
//! There are two paths. The short one is for the usual case: a key of eight bits or fewer in the
//! first layer. The other one handles all cases.

use super::parity::{Columns, GROUP, Parities, Question, RowWindow};
use super::row::{Equation, mask, next_hash};
use super::shape::{BUCKETS_PER_WORD, BucketPlace, Grid, LastLayer, Shape, Tier, threshold};
use crate::hash::Digest;
use crate::parts::prefetch::{prefetch, prefetch_far};

/// The exclusive or of the rows of a key, and the fingerprint that a filter expects, in its lowest
/// bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum {
    pub(super) bits: u32,
    wanted: u32,
}

impl Sum {
    #[inline(always)]
    const fn new(bits: u32, equation: Equation) -> Self {
        Self { bits, wanted: equation.fingerprint(u32::MAX) }
    }

    /// Whether the sum equals the fingerprint, as it does for the keys of a filter.
    #[inline(always)]
    pub(super) const fn is_fingerprint(self, mask: u32) -> bool {
        self.bits == self.wanted & mask
    }
}

/// Whether the rows of a digest give its fingerprint.
#[inline(always)]
pub(super) fn is_fingerprint(shape: &Shape, words: &[u64], digest: Digest) -> bool {
    shape.way.ask(First(digest.bits(), IsFingerprint), shape, words)
}

/// The exclusive or of the rows of a digest, or `None` if its layer has no keys.
#[inline(always)]
pub(super) fn sum(shape: &Shape, words: &[u64], digest: Digest) -> Option<Sum> {
    shape.way.ask(First(digest.bits(), Itself), shape, words)
}

/// What a caller makes of a sum.
trait Use: Copy {
    type Answer;

    fn of(self, sum: Option<Sum>, shape: &Shape) -> Self::Answer;
}

#[derive(Clone, Copy)]
struct IsFingerprint;

impl Use for IsFingerprint {
    type Answer = bool;

    #[inline(always)]
    fn of(self, sum: Option<Sum>, shape: &Shape) -> bool {
        sum.is_some_and(|sum| sum.is_fingerprint(mask(shape.bits)))
    }
}

#[derive(Clone, Copy)]
struct Itself;

impl Use for Itself {
    type Answer = Option<Sum>;

    #[inline(always)]
    fn of(self, sum: Option<Sum>, _: &Shape) -> Option<Sum> {
        sum
    }
}

/// The sum of a digest, most likely in the first layer. Less likely cases are calls in tail
/// position, so that no registers have to be saved for them.
struct First<U>(u64, U);

impl<U: Use> Question for First<U> {
    type Answer = U::Answer;

    #[inline(always)]
    fn answer(self, parities: impl Parities, shape: &Shape, words: &[u64]) -> U::Answer {
        let Self(digest, with) = self;
        if shape.is_usual() {
            let [first, ..] = &shape.tiers;
            let place = first.place(digest);
            if first.bumps(words, place) {
                return shape.way.ask(Below(next_hash(digest), with), shape, words);
            }
            let spot = first.spot(shape.bits, place, digest);
            if let Some(sum) = spot.sum_of_group(parities, words, shape.bits) {
                return with.of(Some(sum), shape);
            }
        }
        shape.way.ask(AnyLayer(digest, with), shape, words)
    }
}

/// The sum of a digest, in any layer.
struct AnyLayer<U>(u64, U);

impl<U: Use> Question for AnyLayer<U> {
    type Answer = U::Answer;

    #[inline(always)]
    fn answer(self, parities: impl Parities, shape: &Shape, words: &[u64]) -> U::Answer {
        let hash = shape.first_hash(self.0);
        self.1.of(sum_from(0, parities, shape, words, hash), shape)
    }
}

/// The sum of a key that was bumped from the first layer, by its hash in the second.
struct Below<U>(u64, U);

impl<U: Use> Question for Below<U> {
    type Answer = U::Answer;

    #[inline(always)]
    fn answer(self, parities: impl Parities, shape: &Shape, words: &[u64]) -> U::Answer {
        self.1.of(sum_from(1, parities, shape, words, self.0), shape)
    }
}

/// The sum of a key in this layer or one below it, by its hash there.
#[inline(always)]
fn sum_from(
    layer: usize,
    parities: impl Parities,
    shape: &Shape,
    words: &[u64],
    mut hash: u64,
) -> Option<Sum> {
    for tier in shape.tiers().iter().skip(layer) {
        let place = tier.place(hash);
        if !tier.bumps(words, place) {
            return Some(tier.sum(parities, words, shape.bits, place, hash));
        }
        hash = next_hash(hash);
    }
    shape.plain.sum(parities, words, shape.bits, hash)
}

/// The rows of a key: the first word of the block in which they begin, the position in the block,
/// and the coefficients.
#[derive(Clone, Copy, Debug)]
struct Spot {
    word: usize,
    window: RowWindow,
    equation: Equation,
}

impl Spot {
    /// The exclusive or of the rows, or `None` if the words end too soon after them.
    #[inline(always)]
    fn sum(&self, parities: impl Parities, words: &[u64], bits: u32) -> Option<Sum> {
        let width = bits as usize;
        let mut sum = 0;
        for column in (0..width).step_by(GROUP) {
            // A group may reach into the next block, whose columns are masked.
            let begin = self.word.checked_add(column)?;
            let two = words.get(begin..begin.checked_add(width + GROUP)?)?;
            let (lower, upper): (&Columns, &Columns) = (two.first_chunk()?, two.last_chunk()?);
            sum |= parities.of(self.window, lower, upper) << column;
        }
        Some(Sum::new(sum & mask(bits), self.equation))
    }

    /// As [`sum`](Self::sum), for up to eight columns.
    #[inline(always)]
    fn sum_of_group(&self, parities: impl Parities, words: &[u64], bits: u32) -> Option<Sum> {
        let near: &[u64; 2 * GROUP] = words.get(self.word..)?.first_chunk()?;
        let (lower, upper) = (near.first_chunk()?, near.get(bits as usize..)?.first_chunk()?);
        Some(Sum::new(parities.of(self.window, lower, upper) & mask(bits), self.equation))
    }
}

impl Tier {
    /// Whether keys at this place were bumped to a lower layer.
    #[inline(always)]
    fn bumps(&self, words: &[u64], place: BucketPlace) -> bool {
        let bucket = place.bucket();
        let word = words[self.thresholds + (bucket / BUCKETS_PER_WORD) as usize];
        place.is_bumped_by(threshold(word, bucket))
    }

    #[inline(always)]
    fn spot(&self, bits: u32, place: BucketPlace, hash: u64) -> Spot {
        let equation = Equation::of(hash);
        self.grid.spot(bits, place.row(), equation.coefficients | 1, equation)
    }

    #[inline(always)]
    fn sum(
        &self,
        parities: impl Parities,
        words: &[u64],
        bits: u32,
        place: BucketPlace,
        hash: u64,
    ) -> Sum {
        self.grid.sum(parities, words, bits, place.row(), self.spot(bits, place, hash))
    }
}

impl LastLayer {
    #[inline(always)]
    fn sum(&self, parities: impl Parities, words: &[u64], bits: u32, hash: u64) -> Option<Sum> {
        if self.starts == 0 {
            return None;
        }
        let hash = self.hash(hash);
        let (row, equation) = (self.row(hash), Equation::of(hash));
        let spot = self.grid.spot(bits, row, self.coefficients(equation), equation);
        Some(self.grid.sum(parities, words, bits, row, spot))
    }
}

impl Grid {
    /// The first word of the block of a row.
    #[inline(always)]
    const fn word(&self, bits: u32, row: u64) -> usize {
        self.base + (row / 64) as usize * bits as usize
    }

    /// The position of rows that begin with this one.
    #[inline(always)]
    fn spot(&self, bits: u32, row: u64, coefficients: u64, equation: Equation) -> Spot {
        let word = self.word(bits, row);
        Spot { word, window: RowWindow::new(coefficients, (row % 64) as u32), equation }
    }

    /// The exclusive or of the rows that begin with this one.
    #[inline(always)]
    fn sum(&self, parities: impl Parities, words: &[u64], bits: u32, row: u64, spot: Spot) -> Sum {
        let block = (row / 64) as usize;
        if block + 1 < self.blocks
            && let Some(sum) = spot.sum(parities, words, bits)
        {
            return sum;
        }
        Sum::new(self.sum_at_the_end(words, bits, block, spot.window), spot.equation)
    }

    /// As [`sum`](Self::sum), column by column.
    fn sum_at_the_end(&self, words: &[u64], bits: u32, block: usize, window: RowWindow) -> u32 {
        (0..bits).fold(0, |sum, column| {
            let lower = self.column(words, bits, block, column);
            let upper = self.column(words, bits, block + 1, column);
            sum | window.parity(lower, upper) << column
        })
    }

    /// A column of a block. Rows that do not exist are 0.
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

/// How many keys of a batch are in flight at a time.
const AHEAD: usize = 32;

/// The words of a cache line.
const LINE: usize = 8;

/// Words of filters larger than this are prefetched into the second-level cache: 4 MiB.
const FAR_WORDS: usize = 1 << 19;

/// The exclusive or of the rows of each key, in the order of the keys; `None` where the layer of a
/// key has no keys.
///
/// # Panics
///
/// If the answers and the keys differ in number.
#[inline(always)]
pub(super) fn batch<K, A>(
    (shape, words): (&Shape, &[u64]),
    keys: &[K],
    digest: impl Fn(&K) -> Digest,
    answers: &mut [A],
    answer: impl Fn(Option<Sum>) -> A,
) {
    assert_eq!(keys.len(), answers.len(), "one answer for each key");
    shape.way.ask(RowBatch { keys, digest, answers, answer }, shape, words);
}

struct RowBatch<'a, K, D, A, F> {
    keys: &'a [K],
    digest: D,
    answers: &'a mut [A],
    answer: F,
}

impl<K, D, A, F> Question for RowBatch<'_, K, D, A, F>
where
    D: Fn(&K) -> Digest,
    F: Fn(Option<Sum>) -> A,
{
    type Answer = ();

    #[inline(always)]
    fn answer(self, parities: impl Parities, shape: &Shape, words: &[u64]) {
        let far = words.len() > FAR_WORDS;
        match (shape.depth > 0, shape.bits as usize <= GROUP) {
            (true, true) if far => self.go::<true, true>(parities, shape, words),
            (true, true) => self.go::<false, true>(parities, shape, words),
            (true, false) if far => self.go::<true, false>(parities, shape, words),
            (true, false) => self.go::<false, false>(parities, shape, words),
            (false, _) => self.one_by_one(shape, words),
        }
    }
}

impl<K, D, A, F> RowBatch<'_, K, D, A, F>
where
    D: Fn(&K) -> Digest,
    F: Fn(Option<Sum>) -> A,
{
    fn one_by_one(self, shape: &Shape, words: &[u64]) {
        for (slot, key) in self.answers.iter_mut().zip(self.keys) {
            *slot = (self.answer)(sum(shape, words, (self.digest)(key)));
        }
    }

    /// Group by group: compute the positions of the rows of all keys and prefetch them, then
    /// combine them.
    #[inline(always)]
    fn go<const FAR: bool, const NARROW: bool>(
        self,
        parities: impl Parities,
        shape: &Shape,
        words: &[u64],
    ) {
        let Self { keys, digest, answers, answer } = self;
        let [first, ..] = &shape.tiers;
        let mut seats = [Seat::default(); AHEAD];
        let mut bumped = [0_u8; AHEAD];
        for (keys, answers) in keys.chunks(AHEAD).zip(answers.chunks_mut(AHEAD)) {
            let mut count = 0;
            for (number, (seat, key)) in seats.iter_mut().zip(keys).enumerate() {
                let hash = shape.first_hash(digest(key).bits());
                let place = first.place(hash);
                *seat = first.seat(shape.bits, place, hash);
                seat.fetch::<FAR>(words, shape.bits as usize);
                // One in 13 is bumped: too many to predict, and too few for a separate path.
                bumped[count % AHEAD] = number as u8;
                count += usize::from(first.bumps(words, place));
            }
            for &number in &bumped[..count] {
                let seat = &mut seats[usize::from(number)];
                *seat = Seat::below(shape, words, next_hash(seat.hash));
                seat.fetch::<FAR>(words, shape.bits as usize);
            }
            for ((slot, key), seat) in answers.iter_mut().zip(keys).zip(&seats) {
                let spot = seat.spot();
                let near = if NARROW {
                    spot.sum_of_group(parities, words, shape.bits)
                } else {
                    spot.sum(parities, words, shape.bits)
                };
                // In the last layer, or close to the end of the words.
                let Some(sum) = near else {
                    *slot = answer(sum_alone(shape, words, digest(key)));
                    continue;
                };
                *slot = answer(Some(sum));
            }
        }
    }
}

/// As [`sum`], inside a batch.
#[cold]
fn sum_alone(shape: &Shape, words: &[u64], digest: Digest) -> Option<Sum> {
    sum(shape, words, digest)
}

/// The position of the rows of a key in a layer that bumps, and its hash there.
#[derive(Clone, Copy, Debug, Default)]
struct Seat {
    hash: u64,
    /// The first word of a block, and the row in it at which they begin.
    word: usize,
    row: u32,
}

impl Tier {
    #[inline(always)]
    fn seat(&self, bits: u32, place: BucketPlace, hash: u64) -> Seat {
        Seat { hash, word: self.grid.word(bits, place.row()), row: (place.row() % 64) as u32 }
    }
}

impl Seat {
    /// The position of a key in the second layer or below. There are no words for keys in the last
    /// layer.
    #[inline(always)]
    fn below(shape: &Shape, words: &[u64], mut hash: u64) -> Self {
        for tier in shape.tiers().iter().skip(1) {
            let place = tier.place(hash);
            if !tier.bumps(words, place) {
                return tier.seat(shape.bits, place, hash);
            }
            hash = next_hash(hash);
        }
        Self { hash, word: usize::MAX, row: 0 }
    }

    #[inline(always)]
    const fn spot(&self) -> Spot {
        let equation = Equation::of(self.hash);
        let window = RowWindow::new(equation.coefficients | 1, self.row);
        Spot { word: self.word, window, equation }
    }

    /// Starts to load two blocks of `width` columns.
    #[inline(always)]
    fn fetch<const FAR: bool>(&self, words: &[u64], width: usize) {
        let fetch = if FAR { prefetch_far::<u64> } else { prefetch::<u64> };
        fetch(words, self.word);
        fetch(words, self.word.wrapping_add(2 * width - 1));
        // The lines between the first and the last, if there are any.
        if width == 8 {
            return;
        }
        for word in (LINE..2 * width - 1).step_by(LINE) {
            fetch(words, self.word.wrapping_add(word));
        }
    }
}
