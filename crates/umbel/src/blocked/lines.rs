//! Where the bits of a key are, and what is done with them: one key, and many.

use super::shape::Shape;
use crate::error::InvalidShape;
use crate::hash::Digest;
use crate::layout::ring::{Touch, ring, ring_without_answers};
use crate::layout::{Layout, StoredLayout};
use crate::parts::bits::{SetBit, Word};
use crate::parts::prefetch::{prefetch, prefetch_to_write};
use crate::simd::{self, Choice, Isa, Job, LANES, Lanes, Line, half, line_number};

/// The layout of a blocked Bloom filter: the bits of a key in one cache line or in two.
///
/// With L lines, a key with digest d is in line d · L / 2^64, and in line d · odd · L / 2^64 where
/// it has two. Where in a line is decided by the lower half of d for the first and by the upper
/// half for the second: `docs/hashing.md`, kernels 2 and 3.
#[derive(Clone, Copy, Debug)]
pub struct Lines {
    choice: Choice,
}

impl Lines {
    /// For filters that the compiler makes.
    pub(super) const fn open() -> Self {
        Self { choice: Choice::OPEN }
    }
}

impl Default for Lines {
    /// On the best path that the processor has: see [`simd`](crate::simd).
    fn default() -> Self {
        Self { choice: Choice::now() }
    }
}

/// The lines of a key, by number. `N` is how many lines a key has, 1 or 2.
#[inline(always)]
fn numbers<const N: usize>(digest: Digest, count: usize) -> [usize; N] {
    core::array::from_fn(|line| line_number(digest.bits(), line, count))
}

/// The lanes of a key's first and second line.
#[inline(always)]
fn lanes(shape: &Shape) -> &'static [Lanes; 2] {
    &LANES[shape.probes_per_line() as usize]
}

/// Looks keys up in `N` lines each.
struct LookUp<'a, I, W, const N: usize> {
    isa: I,
    lines: &'a [Line<W>],
    lanes: &'static [Lanes; 2],
}

impl<I: Isa, W: Word, const N: usize> Touch for LookUp<'_, I, W, N> {
    #[inline(always)]
    fn fetch(&self, digest: Digest) {
        for number in numbers::<N>(digest, self.lines.len()) {
            prefetch(self.lines, number);
        }
    }

    #[inline(always)]
    fn answer(&mut self, digest: Digest) -> bool {
        let mut found = true;
        for (line, number) in numbers::<N>(digest, self.lines.len()).into_iter().enumerate() {
            found &= self.isa.line_has(
                &self.lines[number],
                half(digest.bits(), line),
                &self.lanes[line],
            );
        }
        found
    }
}

/// Inserts keys into `N` lines each, which nobody else can be changing.
struct Insert<'a, I, const N: usize> {
    isa: I,
    lines: &'a mut [Line<u64>],
    lanes: &'static [Lanes; 2],
}

impl<I: Isa, const N: usize> Touch for Insert<'_, I, N> {
    #[inline(always)]
    fn fetch(&self, digest: Digest) {
        for number in numbers::<N>(digest, self.lines.len()) {
            prefetch(self.lines, number);
        }
    }

    #[inline(always)]
    fn answer(&mut self, digest: Digest) -> bool {
        let mut fresh = false;
        for (line, number) in numbers::<N>(digest, self.lines.len()).into_iter().enumerate() {
            let (x, lanes) = (half(digest.bits(), line), &self.lanes[line]);
            fresh |= self.isa.line_set(&mut self.lines[number], x, lanes);
        }
        fresh
    }
}

/// Inserts keys into `N` lines each, which other threads may be changing.
struct InsertShared<V, const N: usize> {
    words: V,
    lanes: &'static [Lanes; 2],
}

impl<V: SetBit, const N: usize> InsertShared<V, N> {
    #[inline(always)]
    fn numbers(&self, digest: Digest) -> [usize; N] {
        numbers(digest, self.words.words().len() / 8)
    }
}

impl<V: SetBit, const N: usize> Touch for InsertShared<V, N> {
    #[inline(always)]
    fn fetch(&self, digest: Digest) {
        for number in self.numbers(digest) {
            prefetch_to_write(self.words.words(), number * 8);
        }
    }

    /// Sets the bits that are not set already: a key that is there writes nothing.
    #[inline(always)]
    fn answer(&mut self, digest: Digest) -> bool {
        let mut fresh = false;
        for (line, number) in self.numbers(digest).into_iter().enumerate() {
            let (x, lanes) = (half(digest.bits(), line), &self.lanes[line]);
            let mut set = |word: usize, place: u32| {
                let (word, mask) = (number * 8 + word, 1_u64.wrapping_shl(place));
                if self.words.words()[word].load() & mask == 0 {
                    fresh |= self.words.set_in(word, mask) == 0;
                }
            };
            lanes.for_each_in_first(x, &mut set);
            lanes.for_each_in_second(x, set);
        }
        fresh
    }
}

/// A batch of look-ups.
struct LookUps<'a, W, A, F, const N: usize> {
    lines: &'a [Line<W>],
    lanes: &'static [Lanes; 2],
    keys: &'a [A],
    digest: F,
    found: &'a mut [bool],
}

impl<W: Word, A, F: Fn(&A) -> Digest, const N: usize> Job for LookUps<'_, W, A, F, N> {
    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { lines, lanes, keys, digest, found } = self;
        ring(LookUp::<I, W, N> { isa, lines, lanes }, keys, digest, found);
    }
}

/// A batch of inserts into lines that nobody else can be changing.
struct Inserts<'a, A, F, const N: usize> {
    lines: &'a mut [Line<u64>],
    lanes: &'static [Lanes; 2],
    keys: &'a [A],
    digest: F,
    fresh: &'a mut [bool],
}

impl<A, F: Fn(&A) -> Digest, const N: usize> Job for Inserts<'_, A, F, N> {
    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { lines, lanes, keys, digest, fresh } = self;
        ring(Insert::<I, N> { isa, lines, lanes }, keys, digest, fresh);
    }
}

/// Inserts into lines that nobody else can be changing, without answers.
struct Extension<'a, D, const N: usize> {
    lines: &'a mut [Line<u64>],
    lanes: &'static [Lanes; 2],
    digests: D,
}

impl<D: Iterator<Item = Digest>, const N: usize> Job for Extension<'_, D, N> {
    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { lines, lanes, digests } = self;
        ring_without_answers(Insert::<I, N> { isa, lines, lanes }, digests);
    }
}

#[inline(always)]
fn contains<W: Word, const N: usize>(
    choice: Choice,
    shape: &Shape,
    words: &[W],
    digest: Digest,
) -> bool {
    let ((lines, _), lanes) = (words.as_chunks(), lanes(shape));
    if N == 1 {
        simd::one_line_has(choice, lines, digest.bits(), lanes)
    } else {
        simd::two_lines_have(choice, lines, digest.bits(), lanes)
    }
}

#[inline(always)]
fn contains_batch<W: Word, A, const N: usize>(
    choice: Choice,
    shape: &Shape,
    words: &[W],
    keys: &[A],
    digest: impl Fn(&A) -> Digest,
    found: &mut [bool],
) {
    let ((lines, _), lanes) = (words.as_chunks(), lanes(shape));
    simd::dispatch(choice, LookUps::<_, _, _, N> { lines, lanes, keys, digest, found });
}

#[inline(always)]
fn insert<V: SetBit, const N: usize>(
    choice: Choice,
    shape: &Shape,
    mut words: V,
    digest: Digest,
) -> bool {
    let lanes = lanes(shape);
    if let Some(plain) = words.plain_mut() {
        let (lines, _) = plain.as_chunks_mut();
        return if N == 1 {
            simd::one_line_set(choice, lines, digest.bits(), lanes)
        } else {
            simd::two_lines_set(choice, lines, digest.bits(), lanes)
        };
    }
    let mut shared = InsertShared::<V, N> { words, lanes };
    shared.fetch(digest);
    shared.answer(digest)
}

#[inline(always)]
fn insert_batch<V: SetBit, A, const N: usize>(
    choice: Choice,
    shape: &Shape,
    mut words: V,
    keys: &[A],
    digest: impl Fn(&A) -> Digest,
    fresh: &mut [bool],
) {
    let lanes = lanes(shape);
    if let Some(plain) = words.plain_mut() {
        let (lines, _) = plain.as_chunks_mut();
        simd::dispatch(choice, Inserts::<_, _, N> { lines, lanes, keys, digest, fresh });
    } else {
        ring(InsertShared::<V, N> { words, lanes }, keys, digest, fresh);
    }
}

#[inline(always)]
fn extend<V: SetBit, const N: usize>(
    choice: Choice,
    shape: &Shape,
    mut words: V,
    digests: impl Iterator<Item = Digest>,
) {
    let lanes = lanes(shape);
    if let Some(plain) = words.plain_mut() {
        let (lines, _) = plain.as_chunks_mut();
        simd::dispatch(choice, Extension::<_, N> { lines, lanes, digests });
    } else {
        ring_without_answers(InsertShared::<V, N> { words, lanes }, digests);
    }
}

impl Layout for Lines {
    type Digest = Digest;
    type Shape = Shape;

    fn admit(&self, _: &Shape) -> Result<(), InvalidShape> {
        Ok(())
    }

    fn tag(&self) -> u64 {
        2
    }

    #[inline(always)]
    fn contains<W: Word>(&self, shape: &Shape, words: &[W], digest: Digest) -> bool {
        if shape.lines_per_key() == 1 {
            contains::<W, 1>(self.choice, shape, words, digest)
        } else {
            contains::<W, 2>(self.choice, shape, words, digest)
        }
    }

    #[inline]
    fn contains_batch<W: Word, A>(
        &self,
        shape: &Shape,
        words: &[W],
        keys: &[A],
        digest: impl Fn(&A) -> Digest,
        found: &mut [bool],
    ) {
        assert_eq!(keys.len(), found.len(), "one answer for each key");
        if shape.lines_per_key() == 1 {
            contains_batch::<W, A, 1>(self.choice, shape, words, keys, digest, found);
        } else {
            contains_batch::<W, A, 2>(self.choice, shape, words, keys, digest, found);
        }
    }

    #[inline(always)]
    fn insert<V: SetBit>(&self, shape: &Shape, words: V, digest: Digest) -> bool {
        if shape.lines_per_key() == 1 {
            insert::<V, 1>(self.choice, shape, words, digest)
        } else {
            insert::<V, 2>(self.choice, shape, words, digest)
        }
    }

    #[inline]
    fn insert_batch<V: SetBit, A>(
        &self,
        shape: &Shape,
        words: V,
        keys: &[A],
        digest: impl Fn(&A) -> Digest,
        fresh: &mut [bool],
    ) {
        assert_eq!(keys.len(), fresh.len(), "one answer for each key");
        if shape.lines_per_key() == 1 {
            insert_batch::<V, A, 1>(self.choice, shape, words, keys, digest, fresh);
        } else {
            insert_batch::<V, A, 2>(self.choice, shape, words, keys, digest, fresh);
        }
    }

    #[inline]
    fn extend<V: SetBit>(&self, shape: &Shape, words: V, digests: impl Iterator<Item = Digest>) {
        if shape.lines_per_key() == 1 {
            extend::<V, 1>(self.choice, shape, words, digests);
        } else {
            extend::<V, 2>(self.choice, shape, words, digests);
        }
    }

    fn rate<W: Word>(&self, shape: &Shape, words: &[W]) -> f64 {
        let mut rates = [0.0; 2];
        let (lines, _) = words.as_chunks::<8>();
        for line in lines {
            let (first, second) = line.split_at(4);
            let fill = |half: &[W]| crate::parts::bits::count(half) as f64 / 256.0;
            let (first, second) = (fill(first), fill(second));
            for (number, rate) in rates.iter_mut().enumerate() {
                *rate += shape.rate_of_line(number, first, second);
            }
        }
        let [first, second] = rates.map(|rate| rate / lines.len() as f64);
        if shape.lines_per_key() == 1 { first } else { first * second }
    }
}

impl StoredLayout for Lines {
    const FAMILY: u16 = 2;

    fn kernels(shape: &Shape) -> u16 {
        shape.lines_per_key() as u16 + 1
    }

    fn restore(
        kernels: u16,
        items: u64,
        bits: u64,
        probes: u32,
    ) -> Option<Result<Shape, InvalidShape>> {
        let lines_per_key = match kernels {
            2 => 1,
            3 => 2,
            _ => return None,
        };
        if bits % 512 != 0 || probes % lines_per_key != 0 {
            return Some(Err(InvalidShape::PartialLine { bits, probes }));
        }
        Some(Shape::with(items, bits / 512, lines_per_key, probes / lines_per_key))
    }

    fn has_stray_bits<W: Word>(_: &Shape, _: &[W]) -> bool {
        false
    }
}
