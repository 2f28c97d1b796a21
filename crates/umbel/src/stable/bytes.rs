//! Saves and opens a stable Bloom filter. An opened filter continues exactly like the saved one.

use super::{RawStable, Shape};
use crate::error::InvalidBytes;
use crate::format::{Header, Mark, StoredCore};
use crate::storage::Own;

/// The number of the family in a header.
const FAMILY: u16 = 6;

/// The number of the kernels in a header: digits.
const KERNELS: u16 = 1;

impl<B: AsRef<[u64]>> StoredCore for RawStable<Own<B>> {
    type Storage = Own<B>;
    type Plan = Shape;

    const FAMILY: u16 = FAMILY;

    fn header(&self, mark: Mark) -> Header {
        let shape = &self.shape;
        let (width, probes) = (shape.width().into(), shape.probes().into());
        let fields = [shape.cells(), width, probes, shape.decrements()];
        Header::new(FAMILY, KERNELS, mark, self.insertions, &fields)
    }

    fn for_words<E>(&self, each: &mut impl FnMut(&[u64]) -> Result<(), E>) -> Result<(), E> {
        each(self.words())
    }

    fn plan(header: &Header) -> Result<Shape, InvalidBytes> {
        let [cells, width, probes, decrements] = header.fields()?;
        header.expect_kernels(KERNELS)?;
        let (Ok(width), Ok(probes)) = (width.try_into(), probes.try_into()) else {
            return Err(InvalidBytes::Inconsistent);
        };
        Ok(Shape::with(cells, width, probes, decrements)?)
    }

    fn words(shape: &Shape) -> u64 {
        shape.words()
    }

    fn assemble<E: From<InvalidBytes>>(
        shape: Shape,
        header: &Header,
        take: &mut impl FnMut(u64) -> Result<Own<B>, E>,
    ) -> Result<Self, E> {
        let storage = take(shape.words())?;
        Ok(Self { shape, insertions: header.insertions, storage })
    }

    fn audit(&self) -> Result<(), InvalidBytes> {
        let used = self.shape.bits() % 64;
        let stray = used != 0 && self.words().last().is_some_and(|last| last >> used != 0);
        if stray { Err(InvalidBytes::Inconsistent) } else { Ok(()) }
    }
}
