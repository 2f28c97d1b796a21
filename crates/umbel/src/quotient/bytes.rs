//! Saves and opens a quotient filter.

use super::{RawQuotient, Shape};
use crate::error::InvalidBytes;
use crate::format::{Header, Mark, StoredCore};
use crate::raw::Make;
use crate::storage::{Heap, Storage};

/// The number of the family in a header.
const FAMILY: u16 = 9;

/// The number of the kernels in a header: the quotient is the digest as a fraction.
const KERNELS: u16 = 10;

/// How many words are passed on at a time.
const RUN: usize = 1024;

/// Equal filters of one size have equal bytes.
impl StoredCore for RawQuotient {
    type Storage = Heap;
    type Plan = Shape;

    const FAMILY: u16 = FAMILY;

    fn header(&self, mark: Mark) -> Header {
        let shape = &self.shape;
        let fields = [shape.items(), shape.quotients(), shape.remainder_bits().into()];
        Header::new(FAMILY, KERNELS, mark, self.len(), &fields)
    }

    fn for_words<E>(&self, each: &mut impl FnMut(&[u64]) -> Result<(), E>) -> Result<(), E> {
        let mut sorted = self.table.clone();
        sorted.sort();
        let (marks, offsets, remainders) = sorted.parts();
        each(marks)?;
        // Both consist of whole words.
        for bytes in [offsets, remainders].into_iter().flat_map(|part| part.chunks(RUN * 8)) {
            let (bytes, mut words) = (bytes.as_chunks().0, [0; RUN]);
            for (word, bytes) in words.iter_mut().zip(bytes) {
                *word = u64::from_le_bytes(*bytes);
            }
            each(&words[..bytes.len()])?;
        }
        Ok(())
    }

    fn plan(header: &Header) -> Result<Shape, InvalidBytes> {
        let [items, quotients, remainder] = header.fields()?;
        header.expect_kernels(KERNELS)?;
        let remainder = u32::try_from(remainder).map_err(|_| InvalidBytes::Inconsistent)?;
        Ok(Shape::with(items, quotients, remainder)?)
    }

    fn words(shape: &Shape) -> u64 {
        shape.words()
    }

    fn assemble<E: From<InvalidBytes>>(
        shape: Shape,
        header: &Header,
        take: &mut impl FnMut(u64) -> Result<Heap, E>,
    ) -> Result<Self, E> {
        let mut filter = Self::make(shape).map_err(InvalidBytes::from)?;
        let (marks, offsets, remainders) = filter.table.parts_mut();
        for marks in marks.chunks_mut(RUN) {
            marks.copy_from_slice(take(marks.len() as u64)?.words());
        }
        for bytes in [offsets, remainders].into_iter().flat_map(|part| part.chunks_mut(RUN * 8)) {
            let bytes = bytes.as_chunks_mut().0;
            let words = take(bytes.len() as u64)?;
            for (bytes, word) in bytes.iter_mut().zip(words.words()) {
                *bytes = word.to_le_bytes();
            }
        }
        filter.table.set_len(header.insertions);
        Ok(filter)
    }

    fn audit(&self) -> Result<(), InvalidBytes> {
        if self.table.check() == Some(self.len()) && self.table.is_sorted() {
            Ok(())
        } else {
            Err(InvalidBytes::Inconsistent)
        }
    }
}
