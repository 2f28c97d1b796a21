//! Where the bits of a key are, and what is done with them: one key, and many.

use super::shape::Shape;
use crate::bloom::BATCH;
use crate::error::InvalidShape;
use crate::hash::Digest;
use crate::layout::ring::{Touch, one_by_one, ring};
use crate::layout::{Layout, StoredLayout};
use crate::parts::bits::{SetBit, Word};
use crate::parts::prefetch::{prefetch, prefetch_to_write};
use crate::simd::{self, Isa, Job, LANES, Lanes, Line};

/// The layout of a blocked Bloom filter: the bits of a key in one cache line or in two.
///
/// With L lines, a key with digest d is in line d · L / 2^64, and in line d · odd · L / 2^64 where
/// it has two. Where in a line is decided by the lower half of d for the first and by the upper
/// half for the second: `docs/hashing.md`, kernels 2 and 3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines;

/// Makes the second line of a key: 2^64 divided by the square root of 2, odd.
const SECOND: u64 = 0xb504_f333_f9de_6485;

/// Filters of up to this many bytes are in a core's own cache, where fetching ahead only costs.
const CACHED: usize = 512 << 10;

/// The lines of a key, by number: below `count`, since a fraction of it. `N` is how many lines a key
/// has, 1 or 2.
#[inline(always)]
fn numbers<const N: usize>(digest: Digest, count: usize) -> [usize; N] {
    core::array::from_fn(|line| {
        let fraction = if line == 0 { digest.bits() } else { digest.bits().wrapping_mul(SECOND) };
        ((u128::from(fraction) * count as u128) >> 64) as usize
    })
}

/// What places the bits of a key in one of its lines.
#[inline(always)]
const fn half(digest: Digest, line: usize) -> u32 {
    if line == 0 { digest.bits() as u32 } else { (digest.bits() >> 32) as u32 }
}

/// The lanes of a key's first and second line.
#[inline(always)]
fn lanes(shape: &Shape) -> [&'static Lanes; 2] {
    let probes = shape.probes_per_line() as usize;
    [&LANES[0][probes], &LANES[1][probes]]
}

/// Looks keys up in `N` lines each.
struct LookUp<'a, I, W, const N: usize> {
    isa: I,
    lines: &'a [Line<W>],
    lanes: [&'static Lanes; 2],
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
            found &= self.isa.line_has(&self.lines[number], half(digest, line), self.lanes[line]);
        }
        found
    }
}

/// Inserts keys into `N` lines each, which nobody else can be changing.
struct Insert<'a, I, const N: usize> {
    isa: I,
    lines: &'a mut [Line<u64>],
    lanes: [&'static Lanes; 2],
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
            let (x, lanes) = (half(digest, line), self.lanes[line]);
            fresh |= self.isa.line_set(&mut self.lines[number], x, lanes);
        }
        fresh
    }
}

/// Inserts keys into `N` lines each, which other threads may be changing.
struct InsertShared<V, const N: usize> {
    words: V,
    lanes: [&'static Lanes; 2],
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
            let (x, lanes) = (half(digest, line), self.lanes[line]);
            let mut set = |word: usize, mask: u64| {
                let word = number * 8 + word;
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
    lanes: [&'static Lanes; 2],
    keys: &'a [A],
    digest: F,
    found: &'a mut [bool],
}

impl<W: Word, A, F: Fn(&A) -> Digest, const N: usize> Job for LookUps<'_, W, A, F, N> {
    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { lines, lanes, keys, digest, found } = self;
        let look_up = LookUp::<I, W, N> { isa, lines, lanes };
        if size_of_val(lines) <= CACHED {
            one_by_one(look_up, keys, digest, found);
        } else {
            ring(look_up, keys, digest, found);
        }
    }
}

/// A batch of inserts into lines that nobody else can be changing.
struct Inserts<'a, A, F, const N: usize> {
    lines: &'a mut [Line<u64>],
    lanes: [&'static Lanes; 2],
    keys: &'a [A],
    digest: F,
    fresh: &'a mut [bool],
}

impl<A, F: Fn(&A) -> Digest, const N: usize> Job for Inserts<'_, A, F, N> {
    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { lines, lanes, keys, digest, fresh } = self;
        if size_of_val(lines) <= CACHED {
            one_by_one(Insert::<I, N> { isa, lines, lanes }, keys, digest, fresh);
        } else {
            ring(Insert::<I, N> { isa, lines, lanes }, keys, digest, fresh);
        }
    }
}

#[inline(always)]
fn contains<W: Word, const N: usize>(shape: &Shape, words: &[W], digest: Digest) -> bool {
    let ((lines, _), lanes) = (words.as_chunks(), lanes(shape));
    if N == 1 {
        simd::one_line_has(lines, digest.bits(), lanes[0])
    } else {
        let [first, second] = numbers::<2>(digest, lines.len());
        simd::two_lines_have([&lines[first], &lines[second]], digest.bits(), lanes)
    }
}

#[inline(always)]
fn contains_batch<W: Word, A, const N: usize>(
    shape: &Shape,
    words: &[W],
    keys: &[A],
    digest: impl Fn(&A) -> Digest,
    found: &mut [bool],
) {
    let ((lines, _), lanes) = (words.as_chunks(), lanes(shape));
    simd::dispatch(LookUps::<_, _, _, N> { lines, lanes, keys, digest, found });
}

#[inline(always)]
fn insert<V: SetBit, const N: usize>(shape: &Shape, mut words: V, digest: Digest) -> bool {
    let lanes = lanes(shape);
    if let Some(plain) = words.plain_mut() {
        let (lines, _) = plain.as_chunks_mut();
        let mut fresh = false;
        for (line, number) in numbers::<N>(digest, lines.len()).into_iter().enumerate() {
            fresh |= simd::line_set(&mut lines[number], half(digest, line), lanes[line]);
        }
        return fresh;
    }
    let mut shared = InsertShared::<V, N> { words, lanes };
    shared.fetch(digest);
    shared.answer(digest)
}

#[inline(always)]
fn insert_batch<V: SetBit, A, const N: usize>(
    shape: &Shape,
    mut words: V,
    keys: &[A],
    digest: impl Fn(&A) -> Digest,
    fresh: &mut [bool],
) {
    let lanes = lanes(shape);
    if let Some(plain) = words.plain_mut() {
        let (lines, _) = plain.as_chunks_mut();
        simd::dispatch(Inserts::<_, _, N> { lines, lanes, keys, digest, fresh });
    } else {
        ring(InsertShared::<V, N> { words, lanes }, keys, digest, fresh);
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
            contains::<W, 1>(shape, words, digest)
        } else {
            contains::<W, 2>(shape, words, digest)
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
            contains_batch::<W, A, 1>(shape, words, keys, digest, found);
        } else {
            contains_batch::<W, A, 2>(shape, words, keys, digest, found);
        }
    }

    #[inline(always)]
    fn insert<V: SetBit>(&self, shape: &Shape, words: V, digest: Digest) -> bool {
        if shape.lines_per_key() == 1 {
            insert::<V, 1>(shape, words, digest)
        } else {
            insert::<V, 2>(shape, words, digest)
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
            insert_batch::<V, A, 1>(shape, words, keys, digest, fresh);
        } else {
            insert_batch::<V, A, 2>(shape, words, keys, digest, fresh);
        }
    }

    #[inline]
    fn extend_batch<V: SetBit>(&self, shape: &Shape, words: V, digests: &[Digest]) {
        let mut fresh = [false; BATCH];
        self.insert_batch(shape, words, digests, |digest| *digest, &mut fresh[..digests.len()]);
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
