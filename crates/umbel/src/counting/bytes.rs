//! A counting Bloom filter as bytes, and back.

use super::{Counting, Shape, Width};
use crate::bloom;
use crate::error::InvalidBytes;
use crate::format::{Family, Header, Mark, NOT_COUNTED, Stored};
use crate::hash::Kind;
use crate::storage::Own;
use core::marker::PhantomData;

/// The number of the kernels in a header: digits.
const KERNELS: u16 = 1;

/// The shape that a header tells.
fn shape_of(header: &Header) -> Result<Shape, InvalidBytes> {
    let [items, cells, probes, width] = header.fields()?;
    if header.kernels != KERNELS {
        return Err(InvalidBytes::Kernels { got: header.kernels });
    }
    let all = [Width::Two, Width::Four, Width::Eight];
    let width = all.into_iter().find(|known| u64::from(known.bits()) == width);
    let (Some(width), Ok(probes)) = (width, u32::try_from(probes)) else {
        return Err(InvalidBytes::Inconsistent);
    };
    Ok(Shape::of(bloom::Shape::with(items, cells, probes)?, width)?)
}

impl<T: ?Sized, H: Stored<T>, B: AsRef<[u64]>> Family for Counting<T, H, Own<B>> {
    type Hasher = H;
    type Storage = Own<B>;

    const FAMILY: u16 = 4;
    const HASH: (u16, Kind) = (H::ID, H::KEYS);

    fn header(&self) -> Header {
        let (shape, width) = (&self.shape, self.shape.width().bits());
        let fields = [shape.items(), shape.cells(), shape.probes().into(), width.into()];
        Header::new::<Self>(KERNELS, self.hasher.mark(), NOT_COUNTED, &fields)
    }

    fn for_words<E>(&self, each: &mut impl FnMut(&[u64]) -> Result<(), E>) -> Result<(), E> {
        each(self.words())
    }

    fn words(header: &Header) -> Result<u64, InvalidBytes> {
        Ok(shape_of(header)?.words())
    }

    fn hasher_of(mark: Mark) -> Option<H> {
        H::restore(mark)
    }

    fn mark_of(hasher: &H) -> Mark {
        hasher.mark()
    }

    fn assemble<E: From<InvalidBytes>>(
        header: &Header,
        hasher: H,
        take: &mut impl FnMut(u64) -> Result<Own<B>, E>,
    ) -> Result<Self, E> {
        let shape = shape_of(header)?;
        let storage = take(shape.words())?;
        Ok(Self { shape, hasher, storage, keys: PhantomData })
    }

    fn audit(&self) -> Result<(), InvalidBytes> {
        let used = self.shape.cells() * u64::from(self.shape.width().bits()) % 64;
        let stray = used != 0 && self.words().last().is_some_and(|last| last >> used != 0);
        if stray { Err(InvalidBytes::Inconsistent) } else { Ok(()) }
    }
}

#[cfg(feature = "serde")]
crate::format::through_serde!([T: ?Sized, H, S] Counting<T, H, S>);
