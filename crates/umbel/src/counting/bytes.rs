//! A counting Bloom filter as bytes, and back.

use super::{CellLayout, CellPlan, Counting, Width};
use crate::error::InvalidBytes;
use crate::format::{Family, Header, NOT_COUNTED, Stored};
use crate::layout::Plan;
use crate::storage::Own;
use core::marker::PhantomData;

/// The number of the family in a header.
const FAMILY: u16 = 4;

impl<T: ?Sized, H: Stored<T>, B: AsRef<[u64]>, L: CellLayout> Family for Counting<T, H, Own<B>, L> {
    type Keys = T;
    type Hasher = H;
    type Storage = Own<B>;
    type Plan = L::Shape;

    const FAMILY: u16 = FAMILY;

    fn header(&self) -> Header {
        let (shape, width) = (&self.shape, self.shape.width().bits());
        let fields = [shape.items(), shape.bits(), shape.probes().into(), width.into()];
        Header::new(FAMILY, L::KERNELS.into(), self.hasher.mark(), NOT_COUNTED, &fields)
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
        hasher: H,
        take: &mut impl FnMut(u64) -> Result<Own<B>, E>,
    ) -> Result<Self, E> {
        let storage = take(shape.words())?;
        Ok(Self { shape, hasher, layout: L::default(), storage, keys: PhantomData })
    }

    fn audit(&self) -> Result<(), InvalidBytes> {
        let used = self.shape.bits() * u64::from(self.shape.width().bits()) % 64;
        let stray = used != 0 && self.words().last().is_some_and(|last| last >> used != 0);
        if stray { Err(InvalidBytes::Inconsistent) } else { Ok(()) }
    }
}

#[cfg(feature = "serde")]
crate::format::through_serde!([T: ?Sized, H, S, L: CellLayout] Counting<T, H, S, L>);
