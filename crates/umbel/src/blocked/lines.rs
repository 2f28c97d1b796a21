//! Where the bits of a key are, and what is done with them: one key, and many.

use super::shape::Shape;
use crate::bloom::BATCH;
use crate::error::InvalidShape;
use crate::hash::Digest;
use crate::layout::ring::{Touch, ring};
use crate::layout::{Layout, StoredLayout};
use crate::parts::bits::{SetBit, Word};
use crate::parts::prefetch::{prefetch, prefetch_to_write};
use crate::simd::{self, Isa, Job, LANES, Lanes, Line, Portable, line_has, lines_have};

/// The layout of a blocked Bloom filter: the bits of a key in one cache line or in two.
///
/// With L lines, a key with digest d is in line d · L / 2^64, and in line d · odd · L / 2^64 where
/// it has two. Where in a line is decided by the lower half of d for the first and by the upper
/// half for the second: `docs/hashing.md`, kernels 2 and 3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines;

/// Makes the second line of a key: 2^64 divided by the square root of 2, odd.
const SECOND: u64 = 0xb504_f333_f9de_6485;

/// The lines of a filter, and how keys use them. What the compiler knows of a filter: whether a key
/// is in `TWO` lines.
#[derive(Clone, Copy)]
struct Table<'a, W, const TWO: bool> {
    lines: &'a [Line<W>],
    /// How many lines there are; `lines` has as many.
    count: u64,
    lanes: [&'static Lanes; 2],
}

/// The lines of one key, by number: the second one is the first again where a key has but one.
#[derive(Clone, Copy)]
struct Places {
    digest: u64,
    first: usize,
    second: usize,
}

#[inline(always)]
fn place<const TWO: bool>(digest: Digest, count: u64) -> Places {
    let scale = |fraction: u64| ((u128::from(fraction) * u128::from(count)) >> 64) as usize;
    let digest = digest.bits();
    let first = scale(digest);
    let second = if TWO { scale(digest.wrapping_mul(SECOND)) } else { first };
    Places { digest, first, second }
}

/// The lanes of a filter of this shape.
#[inline(always)]
fn lanes(shape: &Shape) -> [&'static Lanes; 2] {
    let probes = shape.probes_per_line() as usize;
    [&LANES[0][probes], &LANES[1][probes]]
}

impl<'a, W: Word, const TWO: bool> Table<'a, W, TWO> {
    #[inline(always)]
    fn new(shape: &Shape, words: &'a [W]) -> Self {
        Self { lines: words.as_chunks().0, count: shape.lines(), lanes: lanes(shape) }
    }

    #[inline(always)]
    fn contains(&self, digest: Digest) -> bool {
        let places = place::<TWO>(digest, self.count);
        let first = &self.lines[places.first];
        if TWO {
            lines_have(first, &self.lines[places.second], places.digest, self.lanes)
        } else {
            line_has(first, places.digest as u32, self.lanes[0])
        }
    }
}

/// Looks keys up.
#[derive(Clone, Copy)]
struct LookUp<'a, I, W, const TWO: bool> {
    isa: I,
    table: Table<'a, W, TWO>,
}

impl<'a, I: Isa, W: Word, const TWO: bool> Touch for LookUp<'a, I, W, TWO> {
    type Staged = (u64, [&'a Line<W>; 2]);

    #[inline(always)]
    fn stage(&self, digest: Digest) -> Self::Staged {
        let Table { lines, count, .. } = self.table;
        let places = place::<TWO>(digest, count);
        prefetch(lines, places.first);
        if TWO {
            prefetch(lines, places.second);
        }
        (places.digest, [&lines[places.first], &lines[places.second]])
    }

    #[inline(always)]
    fn answer(&mut self, (digest, [first, second]): Self::Staged) -> bool {
        let lanes = self.table.lanes;
        let found = self.isa.line_has(first, digest as u32, lanes[0]);
        if TWO { found & self.isa.line_has(second, (digest >> 32) as u32, lanes[1]) } else { found }
    }
}

/// A batch of look-ups.
struct LookUps<'a, W, A, F, const TWO: bool> {
    table: Table<'a, W, TWO>,
    keys: &'a [A],
    digest: F,
    found: &'a mut [bool],
}

impl<W: Word, A, F: Fn(&A) -> Digest, const TWO: bool> Job for LookUps<'_, W, A, F, TWO> {
    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        ring(LookUp { isa, table: self.table }, self.keys, self.digest, self.found);
    }
}

/// Inserts keys into lines that nobody else can be changing.
struct InsertPlain<'a, I, const TWO: bool> {
    isa: I,
    lines: &'a mut [Line<u64>],
    count: u64,
    lanes: [&'static Lanes; 2],
}

impl<I: Isa, const TWO: bool> Touch for InsertPlain<'_, I, TWO> {
    type Staged = Places;

    #[inline(always)]
    fn stage(&self, digest: Digest) -> Places {
        let places = place::<TWO>(digest, self.count);
        prefetch(self.lines, places.first);
        if TWO {
            prefetch(self.lines, places.second);
        }
        places
    }

    #[inline(always)]
    fn answer(&mut self, Places { digest, first, second }: Places) -> bool {
        let [lanes, second_lanes] = self.lanes;
        let fresh = self.isa.line_set(&mut self.lines[first], digest as u32, lanes);
        if TWO {
            let x = (digest >> 32) as u32;
            fresh | self.isa.line_set(&mut self.lines[second], x, second_lanes)
        } else {
            fresh
        }
    }
}

/// Inserts keys into words that other threads may be changing.
struct InsertShared<V, const TWO: bool> {
    words: V,
    count: u64,
    lanes: [&'static Lanes; 2],
}

impl<V: SetBit, const TWO: bool> InsertShared<V, TWO> {
    /// Sets the bits that are not set already: those who meet only set bits write nothing.
    #[inline(always)]
    fn set(&mut self, line: usize, x: u32, lanes: &Lanes) -> bool {
        let mut fresh = false;
        lanes.for_each(x, |word, mask| {
            let word = line * 8 + word;
            if self.words.words()[word].load() & mask == 0 {
                fresh |= self.words.set_in(word, mask) == 0;
            }
        });
        fresh
    }
}

impl<V: SetBit, const TWO: bool> Touch for InsertShared<V, TWO> {
    type Staged = Places;

    #[inline(always)]
    fn stage(&self, digest: Digest) -> Places {
        let places = place::<TWO>(digest, self.count);
        prefetch_to_write(self.words.words(), places.first * 8);
        if TWO {
            prefetch_to_write(self.words.words(), places.second * 8);
        }
        places
    }

    #[inline(always)]
    fn answer(&mut self, Places { digest, first, second }: Places) -> bool {
        let [lanes, second_lanes] = self.lanes;
        let fresh = self.set(first, digest as u32, lanes);
        if TWO { fresh | self.set(second, (digest >> 32) as u32, second_lanes) } else { fresh }
    }
}

/// A batch of inserts into lines that nobody else can be changing.
struct Inserts<'a, A, F, const TWO: bool> {
    lines: &'a mut [Line<u64>],
    count: u64,
    lanes: [&'static Lanes; 2],
    keys: &'a [A],
    digest: F,
    fresh: &'a mut [bool],
}

impl<A, F: Fn(&A) -> Digest, const TWO: bool> Job for Inserts<'_, A, F, TWO> {
    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { lines, count, lanes, keys, digest, fresh } = self;
        ring(InsertPlain::<I, TWO> { isa, lines, count, lanes }, keys, digest, fresh);
    }
}

#[inline(always)]
fn contains_batch<W: Word, A, const TWO: bool>(
    shape: &Shape,
    words: &[W],
    keys: &[A],
    digest: impl Fn(&A) -> Digest,
    found: &mut [bool],
) {
    let table = Table::<W, TWO>::new(shape, words);
    simd::dispatch(LookUps { table, keys, digest, found });
}

#[inline(always)]
fn insert<V: SetBit, const TWO: bool>(shape: &Shape, mut words: V, digest: Digest) -> bool {
    let (count, lanes) = (shape.lines(), lanes(shape));
    let places = place::<TWO>(digest, count);
    if let Some(plain) = words.plain_mut() {
        let (lines, _) = plain.as_chunks_mut();
        return InsertPlain::<_, TWO> { isa: Portable, lines, count, lanes }.answer(places);
    }
    let mut shared = InsertShared::<V, TWO> { words, count, lanes };
    let places = shared.stage(digest);
    shared.answer(places)
}

#[inline(always)]
fn insert_batch<V: SetBit, A, const TWO: bool>(
    shape: &Shape,
    mut words: V,
    keys: &[A],
    digest: impl Fn(&A) -> Digest,
    fresh: &mut [bool],
) {
    let (count, lanes) = (shape.lines(), lanes(shape));
    if let Some(plain) = words.plain_mut() {
        let (lines, _) = plain.as_chunks_mut();
        simd::dispatch(Inserts::<_, _, TWO> { lines, count, lanes, keys, digest, fresh });
    } else {
        ring(InsertShared::<V, TWO> { words, count, lanes }, keys, digest, fresh);
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
            Table::<W, false>::new(shape, words).contains(digest)
        } else {
            Table::<W, true>::new(shape, words).contains(digest)
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
            contains_batch::<W, A, false>(shape, words, keys, digest, found);
        } else {
            contains_batch::<W, A, true>(shape, words, keys, digest, found);
        }
    }

    #[inline(always)]
    fn insert<V: SetBit>(&self, shape: &Shape, words: V, digest: Digest) -> bool {
        if shape.lines_per_key() == 1 {
            insert::<V, false>(shape, words, digest)
        } else {
            insert::<V, true>(shape, words, digest)
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
            insert_batch::<V, A, false>(shape, words, keys, digest, fresh);
        } else {
            insert_batch::<V, A, true>(shape, words, keys, digest, fresh);
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
