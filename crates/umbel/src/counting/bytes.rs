//! Saves and opens a counting Bloom filter.

use super::{CellLayout, RawCounting, Width};
use crate::error::InvalidBytes;
use crate::format::{Header, Mark, NOT_COUNTED, StoredCore};
use crate::layout::Probing;
use crate::sizing::Shape;
use crate::storage::Own;

/// The number of the family in a header.
const FAMILY: u16 = 4;

impl<B: AsRef<[u64]>, L: CellLayout> StoredCore for RawCounting<Own<B>, L> {
    type Storage = Own<B>;
    type Plan = L::Shape;

    const FAMILY: u16 = FAMILY;

    fn header(&self, mark: Mark) -> Header {
        let (shape, width) = (&self.shape, self.shape.cell_bits());
        let fields = [shape.items(), shape.places(), shape.probes().into(), width.into()];
        Header::new(FAMILY, L::KERNELS.into(), mark, NOT_COUNTED, &fields)
    }

    fn for_words<E>(&self, each: &mut impl FnMut(&[u64]) -> Result<(), E>) -> Result<(), E> {
        each(self.words())
    }

    fn plan(header: &Header) -> Result<L::Shape, InvalidBytes> {
        let [items, cells, probes, width] = header.fields()?;
        header.expect_kernels(L::KERNELS.into())?;
        let all = [Width::Two, Width::Four, Width::Eight];
        let width = all.into_iter().find(|known| u64::from(known.bits()) == width);
        let (Some(width), Ok(probes)) = (width, u32::try_from(probes)) else {
            return Err(InvalidBytes::Inconsistent);
        };
        let shape = L::restore(width, items, cells, probes)?;
        L::admit(&shape)?;
        Ok(shape)
    }

    fn words(shape: &L::Shape) -> u64 {
        shape.words()
    }

    fn assemble<E: From<InvalidBytes>>(
        shape: L::Shape,
        _: &Header,
        take: &mut impl FnMut(u64) -> Result<Own<B>, E>,
    ) -> Result<Self, E> {
        let storage = take(shape.words())?;
        Ok(Self { shape, layout: L::default(), storage })
    }

    fn audit(&self) -> Result<(), InvalidBytes> {
        let used = self.shape.bits() % 64;
        let stray = used != 0 && self.words().last().is_some_and(|last| last >> used != 0);
        if stray { Err(InvalidBytes::Inconsistent) } else { Ok(()) }
    }
}
