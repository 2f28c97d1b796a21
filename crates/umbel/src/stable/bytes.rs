//! A stable Bloom filter as bytes, and back: it goes on as if it had never been away.

use super::{Shape, Stable};
use crate::error::InvalidBytes;
use crate::format::{Family, Header, Stored};
use crate::storage::Own;
use core::marker::PhantomData;

/// The number of the family in a header.
const FAMILY: u16 = 6;

/// The number of the kernels in a header: digits.
const KERNELS: u16 = 1;

impl<T: ?Sized, H: Stored<T>, B: AsRef<[u64]>> Family for Stable<T, H, Own<B>> {
    type Keys = T;
    type Hasher = H;
    type Storage = Own<B>;
    type Plan = Shape;

    const FAMILY: u16 = FAMILY;

    fn header(&self) -> Header {
        let shape = &self.shape;
        let (width, probes) = (shape.width().into(), shape.probes().into());
        let fields = [shape.cells(), width, probes, shape.decrements()];
        Header::new(FAMILY, KERNELS, self.hasher.mark(), self.insertions, &fields)
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
        hasher: H,
        take: &mut impl FnMut(u64) -> Result<Own<B>, E>,
    ) -> Result<Self, E> {
        let storage = take(shape.words())?;
        Ok(Self { shape, insertions: header.insertions, hasher, storage, keys: PhantomData })
    }

    fn audit(&self) -> Result<(), InvalidBytes> {
        let used = self.shape.cells() * u64::from(self.shape.width()) % 64;
        let stray = used != 0 && self.words().last().is_some_and(|last| last >> used != 0);
        if stray { Err(InvalidBytes::Inconsistent) } else { Ok(()) }
    }
}

#[cfg(feature = "serde")]
crate::format::through_serde!([T: ?Sized, H, S] Stable<T, H, S>);
