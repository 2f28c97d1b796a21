//! Finds the n-th set bit of a word.

/// A way to find the n-th set bit. A value of the type proves that the processor has the
/// instructions.
pub(crate) trait Select: Copy {
    /// Only the set bit of `word` that has `n` set bits below it; 0 if there is none. `n` is below
    /// 64.
    fn nth_set(self, word: u64, n: u32) -> u64;

    /// Runs a rare operation in a separate function, so that it takes no registers from the common
    /// path.
    fn apart<R: Ranked>(self, work: R) -> R::Answer;
}

/// An operation that counts bits, written once for all ways to do it.
pub(crate) trait Ranked {
    /// The result.
    type Answer;

    /// Runs the operation. Must be `#[inline(always)]`, so that all of it is compiled with the
    /// selected instructions.
    fn run<S: Select>(self, select: S) -> Self::Answer;
}

/// With additions and multiplications, on every processor: Vigna 2008, "Broadword implementation of
/// rank/select queries", section 4.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Broadword;

impl Select for Broadword {
    #[inline(always)]
    fn nth_set(self, word: u64, n: u32) -> u64 {
        const ONES: u64 = u64::MAX / 255;
        const TOPS: u64 = ONES << 7;
        let pairs = word - (word >> 1 & (u64::MAX / 3));
        let fours = (pairs & (u64::MAX / 5)) + (pairs >> 2 & (u64::MAX / 5));
        let bytes = (fours + (fours >> 4)) & (u64::MAX / 17);
        // The number of bits that are set in each byte and below it. None is above 64, so the top
        // bit of a byte is free to mark the bytes whose number is at most n.
        let sums = bytes.wrapping_mul(ONES);
        let below = ((((u64::from(n) * ONES) | TOPS) - sums) & TOPS) >> 7;
        let place = below.wrapping_mul(ONES) >> 56 << 3;
        if place == 64 {
            return 0;
        }
        let mut left = u64::from(n) - (sums << 8 >> place & 255);
        let mut byte = word >> place & 255;
        while left > 0 {
            byte &= byte - 1;
            left -= 1;
        }
        (byte & byte.wrapping_neg()) << place
    }

    #[inline(never)]
    fn apart<R: Ranked>(self, work: R) -> R::Answer {
        work.run(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bit by bit.
    fn nth_set_by_hand(word: u64, n: u32) -> u64 {
        let places = (0..64).filter(|place| word >> place & 1 == 1);
        places.map(|place| 1 << place).nth(n as usize).unwrap_or(0)
    }

    #[test]
    fn the_nth_set_bit_is_where_counting_finds_it() {
        let mut word = 0x9e37_79b9_7f4a_7c15_u64;
        for round in 0..2_000 {
            word = word.wrapping_mul(0xd129_0af2_5f1a_5b4d).rotate_left(23) ^ round;
            for word in [word, word & word >> 7 & word << 9, word | word >> 3, !0, 0, 1, 1 << 63] {
                for n in 0..64 {
                    let expected = nth_set_by_hand(word, n);
                    assert_eq!(Broadword.nth_set(word, n), expected, "{n} of {word:x}");
                    crate::simd::on_each_select(SameBit { word, n, expected });
                }
            }
        }
    }

    #[derive(Clone, Copy)]
    struct SameBit {
        word: u64,
        n: u32,
        expected: u64,
    }

    impl Ranked for SameBit {
        type Answer = ();

        fn run<S: Select>(self, select: S) {
            assert_eq!(select.nth_set(self.word, self.n), self.expected);
        }
    }
}
