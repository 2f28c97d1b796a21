//! Numbers of 2 to 32 bits, one after another, in words: looked for several at a time, and moved up or
//! down to make room for one more or one less.

use super::prefetch::{prefetch, prefetch_far};
use super::words::Words;
use core::ops::Range;

/// Numbers of one width. Those that were never set are zero.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    /// One more than the numbers need, so that 64 bits from any number on are there.
    words: Words<u64>,
    width: u32,
    /// How many numbers a word has room for.
    lanes: u32,
    /// The lowest bit of each lane of a word.
    ones: u64,
}

/// How many words `len` numbers of this width take.
pub(crate) const fn words_for(len: u64, width: u32) -> u64 {
    (len * width as u64).div_ceil(64) + 1
}

impl Packed {
    /// Numbers of `width` bits, from 2 to 32, in words that [`words_for`] has counted.
    pub(crate) fn new(words: Words<u64>, width: u32) -> Self {
        debug_assert!((2..=32).contains(&width));
        let lanes = 64 / width;
        let ones = (0..lanes).fold(0, |ones, lane| ones | 1 << (lane * width));
        Self { words, width, lanes, ones }
    }

    /// The width of a number in bits.
    #[inline(always)]
    pub(crate) fn width(&self) -> u32 {
        self.width
    }

    pub(crate) fn words(&self) -> &[u64] {
        self.words.as_ref()
    }

    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        self.words.as_mut()
    }

    #[inline(always)]
    fn mask(&self) -> u64 {
        !(u64::MAX << self.width)
    }

    #[inline(always)]
    fn bit(&self, at: usize) -> (usize, u32) {
        let bit = at * self.width as usize;
        (bit / 64, (bit % 64) as u32)
    }

    /// Starts to load a number.
    #[inline(always)]
    pub(crate) fn fetch(&self, at: usize) {
        prefetch(self.words(), self.bit(at).0);
    }

    /// As [`fetch`](Self::fetch), from memory that is far away.
    #[inline(always)]
    pub(crate) fn fetch_far(&self, at: usize) {
        prefetch_far(self.words(), self.bit(at).0);
    }

    /// 64 bits of numbers, this one first.
    #[inline(always)]
    fn window(&self, at: usize) -> u64 {
        let (word, place) = self.bit(at);
        let words = &self.words()[word..word + 2];
        words[0] >> place | words[1] << 1 << (63 - place)
    }

    #[inline(always)]
    pub(crate) fn get(&self, at: usize) -> u64 {
        self.window(at) & self.mask()
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, at: usize, number: u64) {
        let ((word, place), mask) = (self.bit(at), self.mask());
        let words = &mut self.words.as_mut()[word..word + 2];
        words[0] = words[0] & !(mask << place) | number << place;
        // Shifted out altogether unless the number goes on in the next word.
        let (mask, number) = (mask >> 1 >> (63 - place), number >> 1 >> (63 - place));
        words[1] = words[1] & !mask | number;
    }

    /// The top bits of those of the first `len` numbers, at most a word of them, that are equal to
    /// `number`. No others, which a shorter test for zero would not promise.
    #[inline(always)]
    fn equal(&self, at: usize, len: u32, number: u64) -> u64 {
        let tops = self.ones << (self.width - 1);
        let rest = tops - self.ones;
        let differ = self.window(at) ^ number * self.ones;
        let zero = !((differ & rest) + rest | differ) & tops;
        zero & u64::MAX >> (64 - len * self.width)
    }

    /// The first of these places that has `number`.
    #[inline(always)]
    pub(crate) fn find(&self, places: Range<usize>, number: u64) -> Option<usize> {
        let mut at = places.start;
        while at < places.end {
            let len = (places.end - at).min(self.lanes as usize);
            let equal = self.equal(at, len as u32, number);
            if equal != 0 {
                return Some(at + (equal.trailing_zeros() / self.width) as usize);
            }
            at += len;
        }
        None
    }

    /// Whether one of these places has `number`.
    #[inline(always)]
    pub(crate) fn has(&self, places: Range<usize>, number: u64) -> bool {
        // As a rule all of them are in one window.
        let len = places.end - places.start;
        if len <= self.lanes as usize {
            return self.equal(places.start, len as u32, number) != 0;
        }
        self.find(places, number).is_some()
    }

    /// How many of these places have `number`.
    #[inline(always)]
    pub(crate) fn count(&self, places: Range<usize>, number: u64) -> u64 {
        let (mut at, mut count) = (places.start, 0);
        while at < places.end {
            let len = (places.end - at).min(self.lanes as usize);
            count += u64::from(self.equal(at, len as u32, number).count_ones());
            at += len;
        }
        count
    }

    /// Moves the numbers of `from..to` one place up, over that of `to`, and puts `number` at `from`.
    #[inline(always)]
    pub(crate) fn open(&mut self, from: usize, to: usize, number: u64) {
        if from == to {
            return self.set(from, number);
        }
        let width = self.width;
        let (first, place) = self.bit(from);
        let (last, above) = self.end(to + 1);
        let words = &mut self.words.as_mut()[first..=last];
        let count = words.len();
        let low = words[0] & !(u64::MAX << place);
        let high = words[count - 1] & above;
        words[0] ^= low;
        for at in (1..count).rev() {
            words[at] = words[at] << width | words[at - 1] >> (64 - width);
        }
        words[0] = words[0] << width | low;
        words[count - 1] = words[count - 1] & !above | high;
        // Zeros came in where the number goes.
        words[0] |= number << place;
        if count > 1 {
            words[1] |= number >> 1 >> (63 - place);
        }
    }

    /// Moves the numbers of `from + 1..to` one place down, over that of `from`; the last place becomes
    /// zero.
    #[inline(always)]
    pub(crate) fn close(&mut self, from: usize, to: usize) {
        if from + 1 == to {
            return self.set(from, 0);
        }
        let width = self.width;
        let (first, place) = self.bit(from);
        let (last, above) = self.end(to);
        let words = &mut self.words.as_mut()[first..=last];
        let count = words.len();
        let below = !(u64::MAX << place);
        let low = words[0] & below;
        let high = words[count - 1] & above;
        words[count - 1] ^= high;
        for at in 1..count {
            words[at - 1] = words[at - 1] >> width | words[at] << (64 - width);
        }
        words[count - 1] >>= width;
        words[0] = words[0] & !below | low;
        words[count - 1] |= high;
    }

    /// The last word of the numbers before `to`, of which there is one, and its bits behind them.
    #[inline(always)]
    fn end(&self, to: usize) -> (usize, u64) {
        let last = to * self.width as usize - 1;
        (last / 64, u64::MAX << (last % 64) << 1)
    }
}

/// Puts a number of `width` bits into words where there is a zero.
#[inline(always)]
pub(crate) fn put(words: &mut [u64], width: u32, at: usize, number: u64) {
    let bit = at * width as usize;
    let (word, place) = (bit / 64, bit % 64);
    words[word] |= number << place;
    if place + width as usize > 64 {
        words[word + 1] |= number >> (64 - place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn made(width: u32, numbers: &[u64]) -> Packed {
        let words = Words::zeroed(words_for(numbers.len() as u64, width) as usize).unwrap();
        let mut packed = Packed::new(words, width);
        for (at, number) in numbers.iter().enumerate() {
            put(packed.words_mut(), width, at, *number);
        }
        packed
    }

    fn numbers(width: u32, len: u64) -> Vec<u64> {
        let mix = |at: u64| (at + 7).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 29;
        (0..len).map(|at| mix(at) & !(u64::MAX << width)).collect()
    }

    fn same(packed: &Packed, expected: &[u64]) -> bool {
        (0..expected.len()).all(|at| packed.get(at) == expected[at])
    }

    #[test]
    fn every_number_is_where_it_was_put() {
        for width in 2..=32 {
            let mut expected = numbers(width, 150);
            let mut packed = made(width, &expected);
            assert!(same(&packed, &expected));
            for at in 0..expected.len() {
                expected[at] = !expected[at] & packed.mask();
                packed.set(at, expected[at]);
                assert!(same(&packed, &expected), "width {width}, place {at}");
            }
            assert_eq!(packed.words()[packed.words().len() - 1], 0);
        }
    }

    #[test]
    fn opening_and_closing_moves_a_range_and_nothing_else() {
        for width in 2..=32 {
            let before = numbers(width, 130);
            for from in (0..130).step_by(3) {
                for to in [from, from + 1, from + 2, from + 9, from + 40, 129] {
                    if !(from..130).contains(&to) {
                        continue;
                    }
                    let (mut packed, mut expected) = (made(width, &before), before.clone());
                    let number = packed.mask() - 1;
                    packed.open(from, to, number);
                    expected.remove(to);
                    expected.insert(from, number);
                    assert!(same(&packed, &expected), "width {width}, {from} to {to}");
                    packed.close(from, to + 1);
                    expected.remove(from);
                    expected.insert(to, 0);
                    assert!(same(&packed, &expected), "width {width}, {from} to {to}");
                }
            }
        }
    }

    #[test]
    fn a_number_is_found_where_it_is_and_counted() {
        for width in 2..=32 {
            let numbers: Vec<u64> = numbers(width, 90).into_iter().map(|n| n % 5 % (1 << width)).collect();
            let packed = made(width, &numbers);
            for from in 0..90 {
                for to in from + 1..=90.min(from + 40) {
                    let here = &numbers[from..to];
                    for number in 0..4 {
                        let found = here.iter().position(|n| *n == number).map(|at| from + at);
                        assert_eq!(packed.find(from..to, number), found);
                        assert_eq!(packed.has(from..to, number), found.is_some());
                        let count = here.iter().filter(|n| **n == number).count();
                        assert_eq!(packed.count(from..to, number), count as u64);
                    }
                }
            }
        }
    }
}
