//! Numbers of 2 to 32 bits, packed into words. Several are searched at a time, and ranges move up
//! or down by one place for insertions and removals. An island of `unsafe`: one look-up whose
//! caller guarantees that the numbers exist.

#[cfg(not(loom))]
use super::alloc_zeroed::alloc_zeroed_words;
use super::prefetch::{prefetch, prefetch_far};
use alloc::boxed::Box;
use core::ops::Range;

/// Owned bytes, in words.
pub(crate) type Bytes = Box<[[u8; 8]]>;

/// `words` words of bytes, all zero, or `None` if the allocator has no memory for them.
#[cfg(not(loom))]
pub(crate) fn zeroed(words: u64) -> Option<Bytes> {
    usize::try_from(words).ok().and_then(alloc_zeroed_words)
}

/// As above; under loom only loom's own words are made of zeros.
#[cfg(loom)]
pub(crate) fn zeroed(words: u64) -> Option<Bytes> {
    Some((0..words).map(|_| [0; 8]).collect())
}

/// Numbers of one width. Numbers that were never set are zero.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    /// One word more than the numbers need, so that 64 bits from any number on exist. The words are
    /// little-endian: a number may be loaded from any byte.
    bytes: Bytes,
    width: u32,
    /// The number of numbers in a window.
    lanes: u32,
    /// The lowest bit of each lane of a window.
    ones: u64,
}

/// The minimum number of bits of numbers in a window: 64 from the byte of the first one on.
const WINDOW: u32 = 57;

/// The number of words for `len` numbers of this width.
pub(crate) const fn words_for(len: u64, width: u32) -> u64 {
    (len * width as u64).div_ceil(64) + 1
}

impl Packed {
    /// Numbers of `width` bits, from 2 to 32, in words whose number [`words_for`] has computed.
    pub(crate) fn new(bytes: Bytes, width: u32) -> Self {
        debug_assert!((2..=32).contains(&width));
        let lanes = WINDOW / width;
        let ones = (0..lanes).fold(0, |ones, lane| ones | 1 << (lane * width));
        Self { bytes, width, lanes, ones }
    }

    /// The width of a number in bits.
    #[inline(always)]
    pub(crate) fn width(&self) -> u32 {
        self.width
    }

    /// How many numbers can be compared together.
    #[inline(always)]
    pub(crate) fn lanes(&self) -> u32 {
        self.lanes
    }

    /// The numbers as little-endian words.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.as_flattened()
    }

    /// As [`bytes`](Self::bytes), mutably.
    #[inline(always)]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes.as_flattened_mut()
    }

    #[inline(always)]
    fn mask(&self) -> u64 {
        !(u64::MAX << self.width)
    }

    /// The byte in which a number begins, and its first bit there.
    #[inline(always)]
    fn bit(&self, at: usize) -> (usize, u32) {
        let bit = at * self.width as usize;
        (bit / 8, (bit % 8) as u32)
    }

    /// Prefetches a number.
    #[inline(always)]
    pub(crate) fn fetch(&self, at: usize) {
        prefetch(self.bytes(), self.bit(at).0);
    }

    /// As [`fetch`](Self::fetch), from distant memory.
    #[inline(always)]
    pub(crate) fn fetch_far(&self, at: usize) {
        prefetch_far(self.bytes(), self.bit(at).0);
    }

    /// At least [`WINDOW`] bits of numbers, from this one on.
    #[inline(always)]
    fn window(&self, at: usize) -> u64 {
        let (byte, place) = self.bit(at);
        load(self.bytes(), byte) >> place
    }

    /// Sets the numbers of `from..to` to those of a window. The range has at least one number and
    /// at most those of a window.
    #[inline(always)]
    fn set_window(&mut self, from: usize, to: usize, window: u64) {
        let (byte, place) = self.bit(from);
        let mask = u64::MAX >> (64 - (to - from) as u32 * self.width);
        let bytes = self.bytes_mut();
        let word = load(bytes, byte) & !(mask << place) | (window & mask) << place;
        store(bytes, byte, word);
    }

    #[inline(always)]
    pub(crate) fn get(&self, at: usize) -> u64 {
        self.window(at) & self.mask()
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, at: usize, number: u64) {
        self.set_window(at, at + 1, number);
    }

    /// The top bits of those of the first `len` numbers of a window that are equal to `number`, and
    /// no others. A shorter test for zero would not guarantee that.
    #[inline(always)]
    fn equal(&self, window: u64, len: u32, number: u64) -> u64 {
        let tops = self.ones << (self.width - 1);
        let rest = tops - self.ones;
        let differ = window ^ (number * self.ones);
        let zero = !(((differ & rest) + rest) | differ) & tops;
        zero & u64::MAX >> (64 - len * self.width)
    }

    /// Whether one of `len` places has `number`. `len` is at least one and at most
    /// [`lanes`](Self::lanes).
    #[inline(always)]
    pub(crate) fn has(&self, at: usize, len: u32, number: u64) -> bool {
        self.equal(self.window(at), len, number) != 0
    }

    /// As [`has`](Self::has).
    ///
    /// # Safety
    ///
    /// `at` must be the place of a number.
    #[inline(always)]
    #[allow(unsafe_code, reason = "a check at every look-up of what the caller knows")]
    pub(crate) unsafe fn has_unchecked(&self, at: usize, len: u32, number: u64) -> bool {
        let (byte, place) = self.bit(at);
        let mut word = [0; 8];
        debug_assert!(byte + 8 <= self.bytes().len());
        // SAFETY: there is a word behind the numbers, so eight bytes from any number on exist.
        word.copy_from_slice(unsafe { self.bytes().get_unchecked(byte..byte + 8) });
        self.equal(u64::from_le_bytes(word) >> place, len, number) != 0
    }

    /// Replaces `number` in the first of `len` places that has it. `len` is at least one and at
    /// most [`lanes`](Self::lanes). Returns whether there was one.
    #[inline(always)]
    pub(crate) fn replace(&mut self, at: usize, len: u32, number: u64, by: u64) -> bool {
        let equal = self.equal(self.window(at), len, number);
        if equal == 0 {
            return false;
        }
        // A division by the width would take longer than everything else.
        let bit = at * self.width as usize + equal.trailing_zeros() as usize + 1;
        let (bit, mask) = (bit - self.width as usize, self.mask());
        let (byte, place) = (bit / 8, bit % 8);
        let bytes = self.bytes_mut();
        let word = load(bytes, byte) & !(mask << place) | by << place;
        store(bytes, byte, word);
        true
    }

    /// The first of these places that has `number`.
    #[inline(always)]
    pub(crate) fn find(&self, places: Range<usize>, number: u64) -> Option<usize> {
        let mut at = places.start;
        while at < places.end {
            let len = (places.end - at).min(self.lanes as usize);
            let equal = self.equal(self.window(at), len as u32, number);
            if equal != 0 {
                return Some(at + (equal.trailing_zeros() / self.width) as usize);
            }
            at += len;
        }
        None
    }

    /// How many of these places have `number`.
    #[inline(always)]
    pub(crate) fn count(&self, places: Range<usize>, number: u64) -> u64 {
        let (mut at, mut count) = (places.start, 0);
        while at < places.end {
            let len = (places.end - at).min(self.lanes as usize);
            count += u64::from(self.equal(self.window(at), len as u32, number).count_ones());
            at += len;
        }
        count
    }

    /// Stores a number in a place that is zero.
    #[inline(always)]
    pub(crate) fn put(&mut self, at: usize, number: u64) {
        let width = self.width;
        put(self.bytes_mut(), width, at, number);
    }

    /// Moves the numbers of `from..to` one place up, which overwrites the number at `to`, and
    /// stores `number` at `from`.
    #[inline(always)]
    pub(crate) fn open(&mut self, from: usize, to: usize, number: u64) {
        if to - from < self.lanes as usize {
            let window = self.window(from) << self.width | number;
            return self.set_window(from, to + 1, window);
        }
        let width = self.width;
        let (words, place, above) = self.words_of(from, to + 1);
        let last = words.len() - 1;
        let low = get(words, 0) & !(u64::MAX << place);
        let high = get(words, last) & above;
        words[0] = (get(words, 0) ^ low).to_le_bytes();
        for at in (1..=last).rev() {
            let word = get(words, at) << width | get(words, at - 1) >> (64 - width);
            words[at] = word.to_le_bytes();
        }
        // After the shift there are zeros in the place of the number.
        words[0] = (get(words, 0) << width | low | number << place).to_le_bytes();
        if last > 0 {
            words[1] = (get(words, 1) | number >> 1 >> (63 - place)).to_le_bytes();
        }
        words[last] = (get(words, last) & !above | high).to_le_bytes();
    }

    /// Moves the numbers of `from + 1..to` one place down, which overwrites the number at `from`.
    /// The last place becomes zero.
    #[inline(always)]
    pub(crate) fn close(&mut self, from: usize, to: usize) {
        let width = self.width;
        if to - from <= self.lanes as usize {
            let kept = u64::MAX >> (64 - (to - from) as u32 * width);
            return self.set_window(from, to, (self.window(from) & kept) >> width);
        }
        let (words, place, above) = self.words_of(from, to);
        let last = words.len() - 1;
        let below = !(u64::MAX << place);
        let low = get(words, 0) & below;
        let high = get(words, last) & above;
        words[last] = (get(words, last) ^ high).to_le_bytes();
        for at in 1..=last {
            let word = get(words, at - 1) >> width | get(words, at) << (64 - width);
            words[at - 1] = word.to_le_bytes();
        }
        words[last] = (get(words, last) >> width).to_le_bytes();
        words[0] = (get(words, 0) & !below | low).to_le_bytes();
        words[last] = (get(words, last) | high).to_le_bytes();
    }

    /// The words of the numbers in `from..to`, which is not empty, the bit of the first word where
    /// they begin, and the bits of the last word behind them.
    #[inline(always)]
    fn words_of(&mut self, from: usize, to: usize) -> (&mut [[u8; 8]], u32, u64) {
        let (first, last) = (from * self.width as usize, to * self.width as usize - 1);
        let above = u64::MAX << (last % 64) << 1;
        (&mut self.bytes[first / 64..=last / 64], (first % 64) as u32, above)
    }
}

#[inline(always)]
fn get(words: &[[u8; 8]], at: usize) -> u64 {
    u64::from_le_bytes(words[at])
}

/// The word that begins at this byte.
#[inline(always)]
fn load(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

#[inline(always)]
fn store(bytes: &mut [u8], at: usize, word: u64) {
    bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

/// Stores a number of `width` bits in bytes that are zero.
#[inline(always)]
pub(crate) fn put(bytes: &mut [u8], width: u32, at: usize, number: u64) {
    let bit = at * width as usize;
    let (byte, number) = (bit / 8, number << (bit % 8));
    if byte + 8 <= bytes.len() {
        return store(bytes, byte, load(bytes, byte) | number);
    }
    for (byte, part) in bytes[byte..].iter_mut().zip(number.to_le_bytes()) {
        *byte |= part;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn made(width: u32, numbers: &[u64]) -> Packed {
        let bytes = zeroed(words_for(numbers.len() as u64, width)).unwrap();
        let mut packed = Packed::new(bytes, width);
        for (at, number) in numbers.iter().enumerate() {
            // All words except the padding: the last numbers are at the end.
            let bytes = &mut packed.bytes_mut()[..(numbers.len() * width as usize).div_ceil(8)];
            put(bytes, width, at, *number);
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
            assert_eq!(packed.bytes.last(), Some(&[0; 8]));
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
    #[allow(unsafe_code, reason = "the unchecked twin")]
    fn a_number_is_found_where_it_is_and_counted() {
        for width in 2..=32 {
            let few = |number: u64| number % 5 % (1 << width);
            let numbers: Vec<u64> = numbers(width, 90).into_iter().map(few).collect();
            let packed = made(width, &numbers);
            for from in 0..90 {
                for to in from + 1..=90.min(from + 40) {
                    let here = &numbers[from..to];
                    for number in 0..4 {
                        let found = here.iter().position(|n| *n == number).map(|at| from + at);
                        assert_eq!(packed.find(from..to, number), found);
                        let len = (to - from) as u32;
                        if len <= packed.lanes() {
                            assert_eq!(packed.has(from, len, number), found.is_some());
                            // SAFETY: there are 90 numbers.
                            let unchecked = unsafe { packed.has_unchecked(from, len, number) };
                            assert_eq!(unchecked, found.is_some());
                            let (mut packed, mut numbers) = (packed.clone(), numbers.clone());
                            if let Some(at) = found {
                                numbers[at] = number ^ 1;
                            }
                            let replaced = packed.replace(from, len, number, number ^ 1);
                            assert_eq!(replaced, found.is_some());
                            assert!(same(&packed, &numbers));
                        }
                        let count = here.iter().filter(|n| **n == number).count();
                        assert_eq!(packed.count(from..to, number), count as u64);
                    }
                }
            }
        }
    }
}
