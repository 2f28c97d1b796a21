//! Saves and opens a scalable Bloom filter. An opened filter continues exactly like the saved one.
//!
//! ```text
//!     header | fresh, lines, lines a key, probes a line | words
//!              of each level                              of each level
//! ```

use super::{Level, MAX_LEVELS, RawScalable, Shape};
use crate::blocked;
use crate::error::InvalidBytes;
use crate::format::{Header, Mark, StoredCore};
use crate::storage::{Heap, Storage};

/// The number of the family in a header, and the number of its kernels: lines of several levels.
const FAMILY: u16 = 5;
const KERNELS: u16 = 6;

/// The number of words that describe a level, which precede the words of all levels.
const LEVEL: usize = 4;

/// The contents of a header: the shape, the number of levels, and the number of words including the
/// descriptions.
#[derive(Debug)]
pub struct Said {
    shape: Shape,
    levels: u32,
    words: u64,
}

/// The shape of level `number`, and the number of its keys.
fn plan_of(
    said: &[u64; LEVEL],
    shape: &Shape,
    number: u32,
    last: bool,
) -> Result<(blocked::Shape, u64), InvalidBytes> {
    let [fresh, lines, lines_per_key, probes] = *said;
    let small = |number: u64| u32::try_from(number).map_err(|_| InvalidBytes::Inconsistent);
    let items = shape.level_items(number)?;
    let plan = blocked::Shape::with(items, lines, small(lines_per_key)?, small(probes)?)?;
    let capacity = shape.level_capacity(number);
    // All levels except the newest are full, and a new level has at least one key.
    let counts =
        if last { fresh <= capacity && (number == 0 || fresh > 0) } else { fresh == capacity };
    if !counts || plan.expected_rate(items) > shape.level_rate(number) {
        return Err(InvalidBytes::Inconsistent);
    }
    Ok((plan, fresh))
}

impl StoredCore for RawScalable {
    type Storage = Heap;
    type Plan = Said;

    const FAMILY: u16 = FAMILY;

    fn header(&self, mark: Mark) -> Header {
        let shape = &self.shape;
        let [rate, growth, tightening] =
            [shape.rate(), shape.growth(), shape.tightening()].map(f64::to_bits);
        let (levels, words) = (self.levels.len() as u64, self.bytes() / 8);
        let fields = [shape.items(), rate, growth, tightening, levels, words];
        Header::new(FAMILY, KERNELS, mark, self.fresh(), &fields)
    }

    fn for_words<E>(&self, each: &mut impl FnMut(&[u64]) -> Result<(), E>) -> Result<(), E> {
        for level in &self.levels {
            let plan = level.shape();
            let [lines, probes] = [plan.lines_per_key(), plan.probes_per_line()].map(u64::from);
            each(&[level.fresh(), plan.lines(), lines, probes])?;
        }
        self.levels.iter().try_for_each(|level| each(level.words()))
    }

    fn plan(header: &Header) -> Result<Said, InvalidBytes> {
        let [capacity, rate, growth, tightening, levels, words] = header.fields()?;
        header.expect_kernels(KERNELS)?;
        let levels = u32::try_from(levels).ok().filter(|count| (1..=MAX_LEVELS).contains(count));
        let levels = levels.ok_or(super::shape::too_many_levels())?;
        let [rate, growth, tightening] = [rate, growth, tightening].map(f64::from_bits);
        let shape = Shape::with(capacity, rate, growth, tightening)?;
        let words = words.checked_add(u64::from(levels) * LEVEL as u64);
        Ok(Said { shape, levels, words: words.ok_or(InvalidBytes::Inconsistent)? })
    }

    fn words(said: &Said) -> u64 {
        said.words
    }

    fn assemble<E: From<InvalidBytes>>(
        Said { shape, levels, .. }: Said,
        _: &Header,
        take: &mut impl FnMut(u64) -> Result<Heap, E>,
    ) -> Result<Self, E> {
        let mut filter = Self::without_levels(shape);
        let said = take(u64::from(levels) * LEVEL as u64)?;
        for (number, said) in (0..).zip(said.words().as_chunks().0) {
            let (plan, fresh) = plan_of(said, &shape, number, number + 1 == levels)?;
            let level = Level::of_parts(&shape, number, plan, fresh, take(plan.words())?);
            filter.levels.push(level.map_err(InvalidBytes::from)?);
        }
        Ok(filter)
    }
}
