//! Cells: small numbers packed into words, one after another without gaps.
//!
//! ```text
//!     word 0                            word 1
//!     [ cell 0 | cell 1 | ... | cell ][ 21 | cell 22 | ...      3 bits: one cell in two words
//! ```

use super::bits::fetch;

/// Cells of 1 to 8 bits. If the width divides 64, no cell is in two words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cells<V> {
    words: V,
    bits: u32,
}

impl<V> Cells<V> {
    /// # Panics
    ///
    /// Unless a cell has 1 to 8 bits.
    #[inline(always)]
    pub(crate) fn new(words: V, bits: u32) -> Self {
        assert!((1..=8).contains(&bits), "a cell has from 1 to 8 bits");
        Self { words, bits }
    }

    /// The number of bits of a cell.
    #[inline(always)]
    pub(crate) const fn width(&self) -> u32 {
        self.bits
    }

    /// The largest number in a cell: all its bits.
    #[inline(always)]
    pub(crate) const fn max(&self) -> u64 {
        (1 << self.bits) - 1
    }

    /// The position of a cell: a word, and its first bit there.
    #[inline(always)]
    const fn place(&self, cell: u64) -> (usize, u32) {
        let bit = cell * self.bits as u64;
        ((bit >> 6) as usize, (bit & 63) as u32)
    }
}

impl<V: AsRef<[u64]>> Cells<V> {
    /// The number in a cell.
    ///
    /// # Panics
    ///
    /// If the cell is past the last word.
    #[inline(always)]
    pub(crate) fn get(&self, cell: u64) -> u64 {
        let (words, (word, shift)) = (self.words.as_ref(), self.place(cell));
        let mut number = words[word] >> shift;
        if shift + self.bits > 64 {
            number |= words[word + 1] << (64 - shift);
        }
        number & self.max()
    }

    #[inline(always)]
    pub(crate) fn words(&self) -> &[u64] {
        self.words.as_ref()
    }

    /// The word in which a cell begins.
    #[inline(always)]
    pub(crate) fn word_of(&self, cell: u64) -> usize {
        self.place(cell).0
    }

    /// The memory of the words, in bytes.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> usize {
        self.words.as_ref().len() * 8
    }

    /// Prefetches the word of a cell, into the first-level or the second-level cache.
    #[inline(always)]
    pub(crate) fn fetch<const FAR: bool>(&self, cell: u64) {
        fetch::<_, FAR>(self.words.as_ref(), cell * u64::from(self.bits));
    }

    /// How many of the first `cells` cells are not zero.
    pub(crate) fn count_nonzero(&self, cells: u64) -> u64 {
        self.count(cells, |number| number != 0)
    }

    /// How many of the first `cells` cells are full.
    pub(crate) fn count_full(&self, cells: u64) -> u64 {
        self.count(cells, |number| number == self.max())
    }

    #[inline(always)]
    fn count(&self, cells: u64, is: impl Fn(u64) -> bool) -> u64 {
        (0..cells).map(|cell| u64::from(is(self.get(cell)))).sum()
    }
}

impl<V: AsRef<[u64]> + AsMut<[u64]>> Cells<V> {
    /// The words, mutably.
    #[inline(always)]
    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        self.words.as_mut()
    }

    /// Stores a number in a cell. It must fit.
    ///
    /// # Panics
    ///
    /// If the cell is past the last word.
    #[inline(always)]
    pub(crate) fn set(&mut self, cell: u64, number: u64) {
        debug_assert!(number <= self.max());
        self.change(cell, number.wrapping_sub(self.get(cell)));
    }

    /// Adds one, unless the cell is full. Returns the previous number.
    #[inline(always)]
    pub(crate) fn increment(&mut self, cell: u64) -> u64 {
        let before = self.get(cell);
        self.change(cell, u64::from(before != self.max()));
        before
    }

    /// Stores the largest number in a cell.
    ///
    /// # Panics
    ///
    /// If the cell is past the last word.
    #[inline(always)]
    pub(crate) fn fill(&mut self, cell: u64) {
        let (max, bits, (word, shift)) = (self.max(), self.bits, self.place(cell));
        let words = self.words.as_mut();
        words[word] |= max << shift;
        if shift + bits > 64 {
            words[word + 1] |= max >> (64 - shift);
        }
    }

    /// Subtracts one from each of `count` cells from `first` on, unless it is zero. It processes a
    /// word of cells at a time, at any bit offset.
    ///
    /// # Panics
    ///
    /// If the first cell is past the last word.
    #[inline(always)]
    pub(crate) fn decrement_run(&mut self, first: u64, count: u64) {
        let (bits, mut left) = (self.bits, count);
        let (ones, together) = (ONES[bits as usize], 64 / bits);
        let (mut word, mut shift) = self.place(first);
        let words = self.words.as_mut();
        let next = |words: &[u64], word: usize| words.get(word + 1).copied().unwrap_or_default();
        // The two current words are loaded and stored once: in a small filter, a load from memory
        // that was just written stalls.
        let (mut low, mut high) = (words[word], next(words, word));
        loop {
            let cells = low >> shift | high << 1 << (63 - shift);
            let mut taken = not_zero(cells, ones, bits);
            if left < u64::from(together) {
                taken &= (1 << (left as u32 * bits)) - 1;
            }
            // A cell in two words may borrow from one to the other, so changed bits are carried
            // back.
            let changed = cells ^ cells.wrapping_sub(taken);
            low ^= changed << shift;
            high ^= changed >> 1 >> (63 - shift);
            if left <= u64::from(together) {
                break;
            }
            left -= u64::from(together);
            shift += together * bits;
            if shift >= 64 {
                shift -= 64;
                words[word] = low;
                word += 1;
                (low, high) = (high, next(words, word));
            }
        }
        words[word] = low;
        if let Some(next) = words.get_mut(word + 1) {
            *next = high;
        }
    }

    /// Subtracts one, unless the cell is zero or full: a full cell may stand for any larger number.
    /// Returns the previous number, and whether one was subtracted.
    #[inline(always)]
    pub(crate) fn decrement_sticky(&mut self, cell: u64) -> (u64, bool) {
        let before = self.get(cell);
        // Zero and full are the two numbers that fall below 2 when one is added, modulo the width.
        let counted = (before + 1) & self.max() > 1;
        self.change(cell, u64::from(counted).wrapping_neg());
        (before, counted)
    }

    /// Adds a difference to a cell, modulo 2^64. The result must fit.
    #[inline(always)]
    fn change(&mut self, cell: u64, difference: u64) {
        let (bits, (word, shift)) = (self.bits, self.place(cell));
        let words = self.words.as_mut();
        if shift + bits <= 64 {
            words[word] = words[word].wrapping_add(difference << shift);
        } else {
            let both = u128::from(words[word]) | u128::from(words[word + 1]) << 64;
            let both = both.wrapping_add((difference as i64 as i128 as u128) << shift);
            (words[word], words[word + 1]) = (both as u64, (both >> 64) as u64);
        }
    }

    /// Adds the cells of `others` to the first `cells` of these, saturating.
    pub(crate) fn add_all(&mut self, others: Cells<&[u64]>, cells: u64) {
        assert_eq!(self.bits, others.bits, "cells of one width");
        if self.bits.is_power_of_two() {
            let bits = self.bits;
            for (word, other) in self.words.as_mut().iter_mut().zip(others.words) {
                *word = add_in_word(*word, *other, bits);
            }
        } else {
            for cell in 0..cells {
                self.set(cell, (self.get(cell) + others.get(cell)).min(self.max()));
            }
        }
    }
}

/// How many cells of a word are not zero.
#[inline(always)]
pub(crate) const fn nonzero_in_word(word: u64, bits: u32) -> u32 {
    not_zero(word, ONES[bits as usize], bits).count_ones()
}

/// The lowest bit of each cell of a word, for cells of every width.
const ONES: [u64; 9] = {
    let mut ones = [0; 9];
    let mut bits = 1;
    while bits <= 8 {
        let mut cell = 0;
        while cell < 64 / bits {
            ones[bits] |= 1 << (cell * bits);
            cell += 1;
        }
        bits += 1;
    }
    ones
};

/// The lowest bit of each cell that is not zero.
#[inline(always)]
const fn not_zero(cells: u64, ones: u64, bits: u32) -> u64 {
    // The lower bits of a cell plus their maximum carry into its highest bit unless they are zero.
    let highest = ones << (bits - 1);
    let others = highest - ones;
    ((((cells & others) + others) | cells) & highest) >> (bits - 1)
}

/// Adds the cells of two words, every other cell at a time, so that there is room for a carry.
#[inline(always)]
fn add_in_word(a: u64, b: u64, bits: u32) -> u64 {
    // Ones in every other cell, from the lowest: 2^64 - 1 over 2^bits + 1, 0x0f0f... of four bits.
    let even = u64::MAX / ((1 << bits) + 1);
    let add = |a: u64, b: u64| {
        let sum = a + b;
        let carries = (sum >> bits) & (even / ((1 << bits) - 1));
        (sum & even) | (carries << bits).wrapping_sub(carries)
    };
    add(a & even, b & even) | add((a >> bits) & even, (b >> bits) & even) << bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bloom::words_for_cells;
    use std::vec;
    use std::vec::Vec;

    const CELLS: usize = 1_000;

    /// The numbers of all cells, bit by bit.
    fn slowly(words: &[u64], bits: u32) -> Vec<u64> {
        let bit = |at: usize| words[at / 64] >> (at % 64) & 1;
        let bits = bits as usize;
        (0..CELLS).map(|cell| (0..bits).map(|i| bit(cell * bits + i) << i).sum()).collect()
    }

    fn random(seed: &mut u64) -> u64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *seed >> 33
    }

    #[test]
    fn cells_of_every_width_do_as_numbers_do() {
        for bits in 1..=8 {
            let max = (1_u64 << bits) - 1;
            let mut cells = Cells::new(vec![0_u64; words_for_cells(CELLS, bits)], bits);
            let mut model = vec![0_u64; CELLS];
            let mut seed = u64::from(bits);
            for step in 0..50_000 {
                // A few cells often, so that they become full.
                let few = if step % 2 == 0 { 30 } else { CELLS as u64 };
                let cell = random(&mut seed) % few;
                let number = &mut model[cell as usize];
                assert_eq!(cells.get(cell), *number);
                match random(&mut seed) % 16 {
                    0..9 => {
                        assert_eq!(cells.increment(cell), *number);
                        *number = max.min(*number + 1);
                    }
                    9..11 => {
                        let run = random(&mut seed) % (CELLS as u64 - cell + 1) % 70;
                        cells.decrement_run(cell, run);
                        for number in &mut model[cell as usize..(cell + run) as usize] {
                            *number = number.saturating_sub(1);
                        }
                    }
                    11 => {
                        cells.fill(cell);
                        *number = max;
                    }
                    12..15 => {
                        let counted = *number != 0 && *number != max;
                        assert_eq!(cells.decrement_sticky(cell), (*number, counted));
                        *number -= u64::from(counted);
                    }
                    _ => {
                        *number = random(&mut seed) & max;
                        cells.set(cell, *number);
                    }
                }
            }
            assert_eq!(slowly(&cells.words, bits), model);
            let count = |is: &dyn Fn(u64) -> bool| model.iter().filter(|n| is(**n)).count() as u64;
            assert_eq!(cells.count_nonzero(CELLS as u64), count(&|number| number != 0));
            assert_eq!(cells.count_full(CELLS as u64), count(&|number| number == max));
        }
    }

    #[test]
    fn cells_of_a_word_are_counted_at_once() {
        let mut seed = 5;
        for bits in [1, 2, 4, 8] {
            for round in 0..1_000 {
                let thin = if round % 2 == 0 { u64::MAX } else { random(&mut seed) << 31 };
                let word = (random(&mut seed) << 33 ^ random(&mut seed)) & thin;
                let cells = Cells::new([word], bits);
                let nonzero = cells.count_nonzero(u64::from(64 / bits));
                assert_eq!(u64::from(nonzero_in_word(word, bits)), nonzero);
            }
        }
    }

    #[test]
    fn sums_of_every_width_stop_at_the_largest_number() {
        for bits in 1..=8 {
            let max = (1_u64 << bits) - 1;
            let mut seed = 77 + u64::from(bits);
            let mut cells = || {
                let mut cells = Cells::new(vec![0_u64; words_for_cells(CELLS, bits)], bits);
                (0..CELLS as u64).for_each(|cell| cells.set(cell, random(&mut seed) & max));
                cells
            };
            let (mut a, b) = (cells(), cells());
            let pairs = slowly(&a.words, bits).into_iter().zip(slowly(&b.words, bits));
            let expected: Vec<u64> = pairs.map(|(a, b)| max.min(a + b)).collect();
            a.add_all(Cells::new(&b.words, bits), CELLS as u64);
            assert_eq!(slowly(&a.words, bits), expected, "{bits} bits");
        }
    }
}
