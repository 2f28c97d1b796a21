//! The positions of the bits of a key, and the operations on them, for one key and for batches.

use super::shape::Shape;
use crate::bloom::RawBloom;
use crate::error::InvalidShape;
use crate::hash::Digest;
use crate::layout::ring::{Touch, batch, extend, fetch, fetch_and_answer};
use crate::layout::{Layout, StoredLayout};
use crate::parts::bits::{SetBit, Word};
use crate::parts::prefetch::prefetch_to_write;
use crate::simd::{
    Calls, Choice, Isa, Lanes, Line, Places, Scalar, half, line_number, line_number_of,
};
use crate::storage::Storage;

/// The layout of a blocked Bloom filter: the bits of a key in one cache line or in two.
///
/// With L lines, a key with digest d has bits in line d · L / 2^64. If it has two lines, the second
/// is line d · odd · L / 2^64. The lower half of d determines the positions inside the first line,
/// the upper half those inside the second: `docs/hashing.md`, kernels 2 and 3.
#[derive(Clone, Copy, Debug)]
pub struct Lines {
    choice: Choice,
    calls: Calls,
    /// The positions of the probes inside a line.
    places: &'static Places,
}

impl Lines {
    /// For a filter that is created at compile time, with this shape.
    pub(super) const fn open(shape: &Shape) -> Self {
        Self { choice: Choice::OPEN, calls: Calls::OPEN, places: places(shape) }
    }
}

/// For filters that are built from several filters.
#[cfg(feature = "alloc")]
impl Lines {
    /// The instruction path that this layout uses.
    #[inline(always)]
    pub(crate) const fn choice(&self) -> Choice {
        self.choice
    }

    /// The positions of the probes of a key.
    #[inline(always)]
    pub(crate) const fn places(&self) -> &'static Places {
        self.places
    }
}

impl Default for Lines {
    /// With the best path that the processor supports: see [`simd`](crate::simd).
    fn default() -> Self {
        Self { choice: Choice::now(), calls: Calls::OPEN, places: Places::of(false, 0) }
    }
}

/// The words of a line.
const LINE: usize = 8;

/// The line numbers of a key. `N` is how many lines a key has, 1 or 2.
#[inline(always)]
fn numbers<const N: usize>(digest: Digest, count: usize) -> [usize; N] {
    core::array::from_fn(|line| line_number(digest.bits(), line, count))
}

/// The positions of the probes of a key.
const fn places(shape: &Shape) -> &'static Places {
    Places::of(shape.lines_per_key() == 2, shape.probes_per_line())
}

/// The bit positions of a key, for programs that keep the words elsewhere.
impl Shape {
    /// Calls `each` with the number of a line and the number of a bit in it, from 0 to 511, for
    /// every bit of a key with this digest: the definition in `docs/hashing.md`, probe by probe.
    /// The [`probes_per_line`](Self::probes_per_line) bits of one line are reported in a row. Two
    /// of them may be equal.
    ///
    /// ```
    /// use umbel::{BlockedBloomFilter, Digest, blocked::Shape};
    ///
    /// let shape = Shape::for_rate(1_000, 0.001)?;
    /// let mut filter = BlockedBloomFilter::<u64>::with(shape, Default::default())?;
    /// let digest = Digest::mixed(42);
    /// filter.insert_digest(digest);
    /// let mut bits = 0;
    /// shape.for_each_bit(digest, |line, bit| {
    ///     let word = filter.words()[line as usize * 8 + bit as usize / 64];
    ///     assert_eq!(word >> (bit % 64) & 1, 1);
    ///     bits += 1;
    /// });
    /// assert_eq!(bits, shape.probes());
    /// # Ok::<(), umbel::InvalidShape>(())
    /// ```
    pub fn for_each_bit(&self, digest: Digest, mut each: impl FnMut(u64, u32)) {
        let places = places(self);
        for line in 0..self.lines_per_key() as usize {
            let number = line_number_of(digest.bits(), line, self.lines());
            let (x, lanes) = (half(digest.bits(), line), &places.lanes[line]);
            lanes.for_each_in_first(x, |word, place| each(number, word as u32 * 64 + place % 64));
            lanes.for_each_in_second(x, |word, place| each(number, word as u32 * 64 + place % 64));
        }
    }
}

/// Looks keys up in `N` lines each.
struct LineLookUp<'a, W, const N: usize> {
    lines: &'a [Line<W>],
    places: &'static Places,
}

impl<'a, W: Word, const N: usize> LineLookUp<'a, W, N> {
    #[inline(always)]
    fn new(layout: &Lines, words: &'a [W]) -> Self {
        Self { lines: words.as_chunks().0, places: layout.places }
    }
}

impl<W: Word, const N: usize> Touch for LineLookUp<'_, W, N> {
    #[inline(always)]
    fn bytes(&self) -> usize {
        size_of_val(self.lines)
    }

    #[inline(always)]
    fn fetch<const AHEAD: usize>(&self, digest: Digest) {
        for number in numbers::<N>(digest, self.lines.len()) {
            fetch::<_, AHEAD>(self.lines, number);
        }
    }

    #[inline(always)]
    fn answer<I: Isa>(&mut self, isa: I, digest: Digest) -> bool {
        let mut found = true;
        for (line, number) in numbers::<N>(digest, self.lines.len()).into_iter().enumerate() {
            let (x, lanes) = (half(digest.bits(), line), &self.places.lanes[line]);
            found &= isa.line_has(&self.lines[number], x, lanes);
        }
        found
    }
}

/// Inserts keys into `N` lines each.
struct LineInsert<V, const N: usize> {
    words: V,
    places: &'static Places,
}

impl<V: SetBit, const N: usize> LineInsert<V, N> {
    #[inline(always)]
    fn new(layout: &Lines, words: V) -> Self {
        Self { words, places: layout.places }
    }

    /// The line numbers of a key.
    #[inline(always)]
    fn numbers(&self, digest: Digest) -> [usize; N] {
        numbers(digest, self.words.words().len() / LINE)
    }

    /// Tests first: a line that has all bits of the key is not written. Testing each bit while
    /// writing would need an unpredictable branch.
    #[inline(always)]
    fn set_shared(&mut self, number: usize, x: u32, lanes: &Lanes) -> bool {
        let (lines, _) = self.words.words().as_chunks();
        if Scalar.line_has(&lines[number], x, lanes) {
            return false;
        }
        let mut fresh = false;
        let mut set = |word: usize, place: u32| {
            let (word, mask) = (number * LINE + word, 1_u64.wrapping_shl(place));
            fresh |= self.words.set_in(word, mask) == 0;
        };
        lanes.for_each_in_first(x, &mut set);
        lanes.for_each_in_second(x, set);
        fresh
    }
}

impl<V: SetBit, const N: usize> Touch for LineInsert<V, N> {
    #[inline(always)]
    fn bytes(&self) -> usize {
        size_of_val(self.words.words())
    }

    #[inline(always)]
    fn fetch<const AHEAD: usize>(&self, digest: Digest) {
        for number in self.numbers(digest) {
            if V::SHARED {
                prefetch_to_write(self.words.words(), number * LINE);
            } else {
                fetch::<_, AHEAD>(self.words.words(), number * LINE);
            }
        }
    }

    #[inline(always)]
    fn answer<I: Isa>(&mut self, isa: I, digest: Digest) -> bool {
        let mut fresh = false;
        for (line, number) in self.numbers(digest).into_iter().enumerate() {
            let (x, lanes) = (half(digest.bits(), line), &self.places.lanes[line]);
            fresh |= match self.words.plain_mut() {
                Some(plain) => isa.line_set(&mut plain.as_chunks_mut().0[number], x, lanes),
                None => self.set_shared(number, x, lanes),
            };
        }
        fresh
    }
}

impl Layout for Lines {
    type Digest = Digest;
    type Shape = Shape;

    fn admit(&mut self, shape: &Shape) -> Result<(), InvalidShape> {
        self.places = places(shape);
        self.calls = Calls::now(self.places.two);
        Ok(())
    }

    fn tag(&self) -> u64 {
        2
    }

    #[inline(always)]
    fn contains<W: Word>(&self, _: &Shape, words: &[W], digest: Digest) -> bool {
        self.calls.has(words.as_chunks().0, digest.bits(), self.places)
    }

    #[inline]
    fn contains_batch<W: Word, A>(
        &self,
        _: &Shape,
        words: &[W],
        keys: &[A],
        digest: impl Fn(&A) -> Digest,
        found: &mut [bool],
    ) {
        if !self.places.two {
            batch(self.choice, LineLookUp::<W, 1>::new(self, words), keys, digest, found);
        } else {
            batch(self.choice, LineLookUp::<W, 2>::new(self, words), keys, digest, found);
        }
    }

    #[inline(always)]
    fn insert<V: SetBit>(&self, _: &Shape, mut words: V, digest: Digest) -> bool {
        if let Some(plain) = words.plain_mut() {
            let (lines, _) = plain.as_chunks_mut();
            return self.calls.set(lines, digest.bits(), self.places);
        }
        if !self.places.two {
            fetch_and_answer(LineInsert::<V, 1>::new(self, words), digest)
        } else {
            fetch_and_answer(LineInsert::<V, 2>::new(self, words), digest)
        }
    }

    #[inline]
    fn insert_batch<V: SetBit, A>(
        &self,
        _: &Shape,
        words: V,
        keys: &[A],
        digest: impl Fn(&A) -> Digest,
        fresh: &mut [bool],
    ) {
        if !self.places.two {
            batch(self.choice, LineInsert::<V, 1>::new(self, words), keys, digest, fresh);
        } else {
            batch(self.choice, LineInsert::<V, 2>::new(self, words), keys, digest, fresh);
        }
    }

    #[inline]
    fn extend<V: SetBit>(&self, _: &Shape, words: V, digests: impl Iterator<Item = Digest>) {
        if !self.places.two {
            extend(self.choice, LineInsert::<V, 1>::new(self, words), digests);
        } else {
            extend(self.choice, LineInsert::<V, 2>::new(self, words), digests);
        }
    }

    fn rate<W: Word>(&self, shape: &Shape, words: &[W]) -> f64 {
        rate_of(shape, words.as_chunks::<8>().0.iter())
    }
}

/// The error rate of a filter with these lines.
fn rate_of<'a, W: Word + 'a>(shape: &Shape, lines: impl Iterator<Item = &'a [W; 8]>) -> f64 {
    let (mut rates, mut count) = ([0.0; 2], 0.0);
    for line in lines {
        let (first, second) = line.split_at(4);
        let fill = |half: &[W]| crate::parts::bits::count(half) as f64 / 256.0;
        let (first, second) = (fill(first), fill(second));
        for (number, rate) in rates.iter_mut().enumerate() {
            *rate += shape.rate_of_line(number, first, second);
        }
        count += 1.0;
    }
    let [first, second] = rates.map(|rate| rate / count);
    if shape.lines_per_key() == 1 { first } else { first * second }
}

impl<S: Storage> RawBloom<S, Lines> {
    /// Estimates the number of set bits and the false positive rate from a sample of one in
    /// `stride` cache lines. Keys are distributed evenly over lines, so a sample of n lines has a
    /// relative error of about one over the square root of n.
    #[doc(hidden)]
    pub fn sampled(&self, stride: usize) -> (u64, f64) {
        let lines = self.storage.words().as_chunks::<8>().0;
        let sample = || lines.iter().step_by(stride.max(1));
        let ones: u64 = sample().map(|line| crate::parts::bits::count(line)).sum();
        let share = lines.len() as f64 / sample().len() as f64;
        ((ones as f64 * share + 0.5) as u64, rate_of(&self.shape, sample()))
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
        let parts = [("bits", bits, 512), ("probes", probes.into(), lines_per_key.into())];
        for (what, got, of) in parts {
            if !got.is_multiple_of(of) {
                return Some(Err(InvalidShape::NotAMultiple { what, got, of }));
            }
        }
        Some(Shape::with(items, bits / 512, lines_per_key, probes / lines_per_key))
    }

    fn has_stray_bits<W: Word>(_: &Shape, _: &[W]) -> bool {
        false
    }
}
