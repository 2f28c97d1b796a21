//! Saves and opens a Bloom filter.

use super::RawBloom;
use crate::error::InvalidBytes;
use crate::format::{Header, Mark, NOT_COUNTED, StoredCore};
use crate::layout::{Probing, StoredLayout};
use crate::sizing::Shape;
use crate::storage::{Storage, for_runs};

impl<S: Storage, L: StoredLayout> StoredCore for RawBloom<S, L> {
    type Storage = S;
    type Plan = L::Shape;

    const FAMILY: u16 = L::FAMILY;
    const STILL: bool = S::STILL;

    fn header(&self, mark: Mark) -> Header {
        let shape = &self.shape;
        let fields = [shape.items(), shape.bits(), shape.probes().into()];
        Header::new(L::FAMILY, L::kernels(shape), mark, NOT_COUNTED, &fields)
    }

    fn for_words<E>(&self, each: &mut impl FnMut(&[u64]) -> Result<(), E>) -> Result<(), E> {
        for_runs(self.storage.words(), each)
    }

    fn plan(header: &Header) -> Result<L::Shape, InvalidBytes> {
        let [items, bits, probes] = header.fields()?;
        let probes = u32::try_from(probes).map_err(|_| InvalidBytes::Inconsistent)?;
        match L::restore(header.kernels, items, bits, probes) {
            Some(shape) => Ok(shape?),
            None => Err(InvalidBytes::Kernels { got: header.kernels }),
        }
    }

    fn words(shape: &L::Shape) -> u64 {
        shape.words()
    }

    fn assemble<E: From<InvalidBytes>>(
        shape: L::Shape,
        _: &Header,
        take: &mut impl FnMut(u64) -> Result<S, E>,
    ) -> Result<Self, E> {
        let storage = take(shape.words())?;
        Ok(Self::of_parts(shape, L::default(), storage).map_err(InvalidBytes::from)?)
    }

    fn audit(&self) -> Result<(), InvalidBytes> {
        let stray = L::has_stray_bits(&self.shape, self.storage.words());
        if stray { Err(InvalidBytes::Inconsistent) } else { Ok(()) }
    }
}
