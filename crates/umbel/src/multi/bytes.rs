//! Saves and opens a filter of records: complete filters one after another, first those of the
//! dimensions and then the joint filter.

use super::dimensions::Dimensions;
use super::{Everything, Multi};
use crate::error::InvalidBytes;
use crate::format::{self, Family, Header, NOT_COUNTED, Saved, Stored};
use crate::storage::{Allocate, Heap, Storage};
use alloc::vec::Vec;

/// The number of the family in a header. The header of a [`Multi`] has no hash, keys or kernels.
const FAMILY: u16 = 15;

/// The words of a header.
const HEADER: u64 = format::HEADER as u64 / 8;

/// Reads words of a filter.
type Take<'a, E> = &'a mut dyn FnMut(u64) -> Result<Heap, E>;

/// Writes words of a filter.
type Give<'a, E> = &'a mut dyn FnMut(&[u64]) -> Result<(), E>;

/// Dimensions that can all be saved: arrays and tuples of such filters.
#[doc(hidden)]
pub trait SavedEach: Dimensions + Sized {
    /// Writes the bytes of each.
    #[doc(hidden)]
    fn give_each<E>(&self, give: Give<'_, E>) -> Result<(), E>;

    /// Reads the dimensions from these bytes.
    #[doc(hidden)]
    fn take_each<E: From<InvalidBytes>>(take: Take<'_, E>) -> Result<Self, E>;
}

/// A joint filter that can be saved, or none.
#[doc(hidden)]
pub trait SavedJoint: Sized {
    /// Whether there is one.
    #[doc(hidden)]
    const IS_THERE: bool;

    /// Writes its bytes.
    #[doc(hidden)]
    fn give<E>(&self, give: Give<'_, E>) -> Result<(), E>;

    /// Reads it from these bytes.
    #[doc(hidden)]
    fn take<E: From<InvalidBytes>>(take: Take<'_, E>) -> Result<Self, E>;
}

impl SavedJoint for Everything {
    const IS_THERE: bool = false;

    fn give<E>(&self, _: Give<'_, E>) -> Result<(), E> {
        Ok(())
    }

    fn take<E: From<InvalidBytes>>(_: Take<'_, E>) -> Result<Self, E> {
        Ok(Self)
    }
}

impl<F: Family<Storage: Allocate>> SavedJoint for F {
    const IS_THERE: bool = true;

    fn give<E>(&self, give: Give<'_, E>) -> Result<(), E> {
        // Headers, words and checksums are whole words.
        let words =
            |bytes: &[[u8; 8]]| bytes.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let words: Vec<u64> = words(self.to_bytes().as_chunks().0);
        give(&words)
    }

    fn take<E: From<InvalidBytes>>(take: Take<'_, E>) -> Result<Self, E> {
        let mut bytes = Vec::new();
        let mut more = |count, bytes: &mut Vec<u8>| {
            bytes.extend(take(count)?.words().iter().flat_map(|word| word.to_le_bytes()));
            Ok::<(), E>(())
        };
        more(HEADER, &mut bytes)?;
        let (_, length) = format::planned::<Self>(&Header::of(&bytes)?)?;
        more(length / 8 - HEADER, &mut bytes)?;
        Ok(Self::from_bytes(&bytes)?)
    }
}

impl<F: Family<Storage: Allocate> + crate::Contains, const N: usize> SavedEach for [F; N] {
    fn give_each<E>(&self, give: Give<'_, E>) -> Result<(), E> {
        self.iter().try_for_each(|filter| filter.give(give))
    }

    fn take_each<E: From<InvalidBytes>>(take: Take<'_, E>) -> Result<Self, E> {
        let filters: Result<Vec<F>, E> = (0..N).map(|_| F::take(take)).collect();
        filters?.try_into().map_err(|_| InvalidBytes::Inconsistent.into())
    }
}

macro_rules! tuples {
    ($($($filter:ident $at:tt)*;)*) => {$(
        impl<$($filter: Family<Storage: Allocate> + crate::Contains),*> SavedEach for ($($filter,)*) {
            fn give_each<Error>(&self, give: Give<'_, Error>) -> Result<(), Error> {
                $(self.$at.give(give)?;)*
                Ok(())
            }

            fn take_each<Error: From<InvalidBytes>>(take: Take<'_, Error>) -> Result<Self, Error> {
                Ok(($($filter::take(take)?,)*))
            }
        }
    )*};
}

tuples! {
    A 0;
    A 0 B 1;
    A 0 B 1 C 2;
    A 0 B 1 C 2 D 3;
    A 0 B 1 C 2 D 3 E 4;
    A 0 B 1 C 2 D 3 E 4 F 5;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7;
}

/// Filters with secrets cannot be opened as part of this one, which stores no secret: save them one
/// by one.
impl<D: SavedEach, J: SavedJoint> Family for Multi<D, J> {
    type Keys = ();
    type Hasher = ();
    type Storage = Heap;
    /// The number of words.
    type Plan = u64;

    const FAMILY: u16 = FAMILY;

    fn header(&self) -> Header {
        let mut words = 0;
        let Ok(()) = self.for_words(&mut |run: &[u64]| {
            words += run.len() as u64;
            Ok::<(), core::convert::Infallible>(())
        });
        let fields = [D::LEN as u64, J::IS_THERE.into(), words];
        Header::new(FAMILY, 0, ().mark(), NOT_COUNTED, &fields)
    }

    fn for_words<E>(&self, each: &mut impl FnMut(&[u64]) -> Result<(), E>) -> Result<(), E> {
        self.dimensions.give_each(each)?;
        self.joint.give(each)
    }

    fn plan(header: &Header) -> Result<u64, InvalidBytes> {
        let [dimensions, joint, words] = header.fields()?;
        let right = dimensions == D::LEN as u64 && joint == u64::from(J::IS_THERE);
        if right && header.kernels == 0 { Ok(words) } else { Err(InvalidBytes::Inconsistent) }
    }

    fn words(words: &u64) -> u64 {
        *words
    }

    fn assemble<E: From<InvalidBytes>>(
        _: u64,
        _: &Header,
        (): (),
        take: &mut impl FnMut(u64) -> Result<Heap, E>,
    ) -> Result<Self, E> {
        let dimensions = D::take_each(take)?;
        let joint = J::take(take)?;
        Ok(Self { dimensions, joint })
    }
}

#[cfg(feature = "serde")]
format::through_serde!([D, J] Multi<D, J>);
