//! Saves and opens a cuckoo filter.

use super::{RawCuckoo, Shape};
use crate::error::InvalidBytes;
use crate::format::{Header, Mark, StoredCore};
use crate::storage::Own;

/// The number of the family in a header.
const FAMILY: u16 = 8;

/// The number of the kernels in a header: fingerprints in one of two buckets.
const KERNELS: u16 = 9;

impl<B: AsRef<[u64]>> StoredCore for RawCuckoo<Own<B>> {
    type Storage = Own<B>;
    type Plan = Shape;

    const FAMILY: u16 = FAMILY;

    fn header(&self, mark: Mark) -> Header {
        let shape = &self.shape;
        let fields = [shape.items(), shape.buckets(), shape.fingerprint_bits().into()];
        Header::new(FAMILY, KERNELS, mark, self.len, &fields)
    }

    fn for_words<E>(&self, each: &mut impl FnMut(&[u64]) -> Result<(), E>) -> Result<(), E> {
        each(self.words())
    }

    fn plan(header: &Header) -> Result<Shape, InvalidBytes> {
        let [items, buckets, width] = header.fields()?;
        header.expect_kernels(KERNELS)?;
        let width = u32::try_from(width).map_err(|_| InvalidBytes::Inconsistent)?;
        Ok(Shape::with(items, buckets, width)?)
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
        Ok(Self { shape, storage, len: header.insertions })
    }

    fn audit(&self) -> Result<(), InvalidBytes> {
        self.validate()
    }
}
