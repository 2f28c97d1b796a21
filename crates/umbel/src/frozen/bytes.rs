//! Saves and opens a filter for a static set.

use super::{Arrangement, RawFrozen};
use crate::error::InvalidBytes;
use crate::format::{Header, Mark, StoredCore};
use crate::sizing::Shape;
use crate::storage::Storage;

/// An arrangement whose filters can be saved. Sealed, like every arrangement.
#[doc(hidden)]
pub trait StoredArrangement: Arrangement {
    /// The number of the family in a header.
    const FAMILY: u16;

    /// The number, in a header, of the function from a digest to places.
    const KERNELS: u16;

    /// The fields of a shape in a header. Trailing fields may be 0.
    #[doc(hidden)]
    fn fields(shape: &Self::Shape) -> impl AsRef<[u64]>;

    /// The shape that the header describes.
    #[doc(hidden)]
    fn restore(header: &Header) -> Result<Self::Shape, InvalidBytes>;
}

impl<A: StoredArrangement, S: Storage<Word = u64>> StoredCore for RawFrozen<A, S> {
    type Storage = S;
    type Plan = A::Shape;

    const FAMILY: u16 = A::FAMILY;

    fn header(&self, mark: Mark) -> Header {
        let (items, fields) = (self.shape.items(), A::fields(&self.shape));
        Header::new(A::FAMILY, A::KERNELS, mark, items, fields.as_ref())
    }

    fn for_words<E>(&self, each: &mut impl FnMut(&[u64]) -> Result<(), E>) -> Result<(), E> {
        each(self.storage.words())
    }

    fn plan(header: &Header) -> Result<A::Shape, InvalidBytes> {
        header.expect_kernels(A::KERNELS)?;
        A::restore(header)
    }

    fn words(shape: &A::Shape) -> u64 {
        shape.words()
    }

    fn assemble<E: From<InvalidBytes>>(
        shape: A::Shape,
        _: &Header,
        take: &mut impl FnMut(u64) -> Result<S, E>,
    ) -> Result<Self, E> {
        let storage = take(shape.words())?;
        Ok(Self { shape, storage })
    }
}
