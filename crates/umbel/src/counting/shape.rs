//! The shape of a counting Bloom filter: that of a classic filter, and the width of the cells.

use crate::bloom;
use crate::error::InvalidShape;
use crate::layout::{probing, words_for};
use crate::sizing::{check_bits, check_memory, getters, ok, shape};

/// The number of bits of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Width {
    /// Counts to 3. At capacity, one cell in 30 is saturated: for sets from which few keys are
    /// removed.
    Two,
    /// Counts to 15. At capacity, one cell in 6 · 10^14 is saturated.
    #[default]
    Four,
    /// Counts to 255: for keys that are inserted many times.
    Eight,
}

impl Width {
    /// The number of bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::Two => 2,
            Self::Four => 4,
            Self::Eight => 8,
        }
    }

    /// The largest number in a cell. It also stands for all larger numbers.
    #[must_use]
    pub const fn max(self) -> u64 {
        (1 << self.bits()) - 1
    }
}

/// The shape of a counting Bloom filter, computed before memory is allocated.
///
/// ```
/// use umbel::bloom;
/// use umbel::counting::{Shape, Width};
///
/// let shape = Shape::for_rate(1_000_000, 0.01)?;
/// let bits = bloom::Shape::for_rate(1_000_000, 0.01)?;
/// assert_eq!((shape.cells(), shape.bytes()), (bits.bits(), bits.bytes() * 4));
/// assert_eq!(shape.with_width(Width::Two)?.bytes(), bits.bytes() * 2);
/// # Ok::<(), umbel::InvalidShape>(())
/// ```
///
/// All functions work at compile time too, with the same results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    positions: bloom::Shape,
    width: Width,
}

impl Shape {
    /// The smallest filter of 4-bit cells that holds `items` items at an error rate of at most
    /// `rate`.
    ///
    /// # Errors
    ///
    /// As for a classic filter, and if the cells would have more than
    /// [`MAX_BITS`](crate::sizing::MAX_BITS).
    pub const fn for_rate(items: u64, rate: f64) -> Result<Self, InvalidShape> {
        Self::of(ok!(bloom::Shape::for_rate(items, rate)), Width::Four)
    }

    /// The best filter of 4-bit cells for `items` items in at most `bytes` bytes: the number of probes
    /// that gives the smallest rate.
    ///
    /// # Errors
    ///
    /// If there is not enough memory for one word, or more than
    /// [`MAX_BITS`](crate::sizing::MAX_BITS).
    pub const fn for_memory(items: u64, bytes: u64) -> Result<Self, InvalidShape> {
        ok!(check_memory(bytes, 8));
        let width = Width::Four;
        // All cells except the last one, which makes the number odd.
        let cells = bytes / 8 * (64 / width.bits() as u64) - 1;
        Ok(Self { positions: bloom::Shape::best_probes(items, cells), width })
    }

    /// One cell for each bit of a classic filter.
    ///
    /// # Errors
    ///
    /// If the cells would have more than [`MAX_BITS`](crate::sizing::MAX_BITS).
    pub const fn of(positions: bloom::Shape, width: Width) -> Result<Self, InvalidShape> {
        // At most 2^48 cells of 8 bits.
        ok!(check_bits(positions.bits() * width.bits() as u64));
        Ok(Self { positions, width })
    }

    /// The same shape with cells of another width.
    ///
    /// # Errors
    ///
    /// If the cells would have more than [`MAX_BITS`](crate::sizing::MAX_BITS).
    pub const fn with_width(self, width: Width) -> Result<Self, InvalidShape> {
        Self::of(self.positions, width)
    }

    /// The classic filter with a bit for each cell. It has the same rates: a cell counts as found
    /// if it is not zero, like a bit that is set.
    #[must_use]
    pub const fn positions(&self) -> &bloom::Shape {
        &self.positions
    }

    getters! {
        /// The number of bits of a cell.
        width: Width;
    }

    /// The planned number of items.
    #[must_use]
    pub const fn items(&self) -> u64 {
        self.positions.items()
    }

    /// The number of cells.
    #[must_use]
    pub const fn cells(&self) -> u64 {
        self.positions.bits()
    }

    /// The number of bits of all cells.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.cells() * self.width.bits() as u64
    }

    /// The number of cells of a key.
    #[must_use]
    pub const fn probes(&self) -> u32 {
        self.positions.probes()
    }

    /// The number of 64-bit words.
    #[must_use]
    pub const fn words(&self) -> u64 {
        self.bits().div_ceil(64)
    }

    /// The error rate while `items` different keys are in the filter, if no cell is saturated.
    #[must_use]
    pub const fn expected_rate(&self, items: u64) -> f64 {
        self.positions.expected_rate(items)
    }

    const fn estimate_items(&self, nonzero: u64) -> u64 {
        self.positions.estimate_items(nonzero)
    }
}

words_for! {
    /// The number of words for `items` items at this rate in 4-bit cells: the `WORDS` of an
    /// [`ArrayCountingBloomFilter`](super::ArrayCountingBloomFilter).
    Shape
}

shape!(Shape, "CountingBloomFilter");

probing!(
    Shape,
    places: cells,
    fn cell_bits(&self) -> u32 {
        self.width.bits()
    }
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bloom::words_for_cells;
    use crate::sizing::MAX_BITS;

    #[test]
    fn words_are_those_of_packed_cells() {
        for items in [0, 1, 10, 1_000, 12_345] {
            for width in [Width::Two, Width::Four, Width::Eight] {
                let shape = Shape::for_rate(items, 0.01).unwrap().with_width(width).unwrap();
                let words = words_for_cells(shape.cells() as usize, width.bits());
                assert_eq!(shape.words(), words as u64);
                assert_eq!(shape.cells() % 2, 1);
            }
        }
        assert_eq!(words_for(1_000, 0.01) as u64, Shape::for_rate(1_000, 0.01).unwrap().words());
    }

    #[test]
    fn more_bits_than_any_filter_may_have_are_refused() {
        let most = bloom::Shape::with(1, MAX_BITS, 7).unwrap();
        for width in [Width::Two, Width::Four, Width::Eight] {
            let bits = MAX_BITS * u64::from(width.bits());
            assert_eq!(Shape::of(most, width), Err(InvalidShape::TooLarge { bits, max: MAX_BITS }));
        }
        // A valid classic filter that would need too many cells.
        let items = MAX_BITS / 20;
        assert!(bloom::Shape::for_rate(items, 0.01).is_ok());
        assert!(matches!(Shape::for_rate(items, 0.01), Err(InvalidShape::TooLarge { .. })));
    }
}
