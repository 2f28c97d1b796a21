//! Eight parities at once: the heart of a look-up.
//!
//! ```text
//!     column 0   ..1.11.|.1..1...     and with the coefficients, which begin inside the lower word
//!     column 1   .11...1|..11....     and may end inside the upper one;
//!       ...                           then fold each column until one bit is left
//! ```
//!
//! An island of `unsafe`, for the instructions that every x86-64 processor has; column by column is the
//! safe twin.

/// The columns of a block of 64 rows that are taken at a time.
pub(super) const GROUP: usize = 8;

/// The coefficients of a key in the block where its rows begin and in the one after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    lower: u64,
    upper: u64,
}

impl Window {
    /// The coefficients from this row of the block on, below 64.
    #[inline(always)]
    pub(super) const fn new(coefficients: u64, row: u32) -> Self {
        Self { lower: coefficients << row, upper: (coefficients >> 1) >> (63 - row) }
    }

    /// What is left of a column.
    #[inline(always)]
    const fn of(self, lower: u64, upper: u64) -> u64 {
        (lower & self.lower) ^ (upper & self.upper)
    }

    /// The parity of one column.
    #[inline(always)]
    pub(super) const fn parity(self, lower: u64, upper: u64) -> u32 {
        self.of(lower, upper).count_ones() & 1
    }

    /// The parities of eight columns, the first one lowest.
    #[inline(always)]
    #[allow(unsafe_code, reason = "instructions that every processor of this kind has")]
    pub(super) fn parities(self, lower: &[u64; GROUP], upper: &[u64; GROUP]) -> u32 {
        #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
        // SAFETY: the program was compiled for processors with SSE2.
        return unsafe { sse2::parities(self, lower, upper) };
        #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
        self.parities_by_hand(lower, upper)
    }

    #[cfg(any(test, not(all(target_arch = "x86_64", target_feature = "sse2"))))]
    #[inline(always)]
    fn parities_by_hand(self, lower: &[u64; GROUP], upper: &[u64; GROUP]) -> u32 {
        (0..GROUP).fold(0, |all, column| all | self.parity(lower[column], upper[column]) << column)
    }
}

/// What every x86-64 processor has.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod sse2 {
    use super::{GROUP, Window};
    use core::arch::x86_64::*;

    #[inline]
    #[target_feature(enable = "sse,sse2")]
    pub(super) fn parities(window: Window, lower: &[u64; GROUP], upper: &[u64; GROUP]) -> u32 {
        let lower_mask = _mm_set1_epi64x(window.lower as i64);
        let upper_mask = _mm_set1_epi64x(window.upper as i64);
        let (lower, upper) = (load(lower), load(upper));
        let two = |number: usize| {
            let lower = _mm_and_si128(lower[number], lower_mask);
            _mm_xor_si128(lower, _mm_and_si128(upper[number], upper_mask))
        };
        let (first, second) = (halve(two(0), two(1)), halve(two(2), two(3)));
        // From here on the parity of a column gathers in the highest bit of its lane.
        let upper_half = |x| _mm_srai_epi32::<16>(_mm_xor_si128(x, _mm_slli_epi32::<16>(x)));
        let x = _mm_packs_epi32(upper_half(first), upper_half(second));
        let x = _mm_xor_si128(x, _mm_slli_epi16::<8>(x));
        let x = _mm_xor_si128(x, _mm_slli_epi16::<4>(x));
        let x = _mm_xor_si128(x, _mm_slli_epi16::<2>(x));
        let x = _mm_xor_si128(x, _mm_slli_epi16::<1>(x));
        _mm_movemask_epi8(_mm_packs_epi16(x, _mm_setzero_si128())) as u32
    }

    /// The columns, two by two.
    #[inline]
    #[target_feature(enable = "sse,sse2")]
    #[allow(unsafe_code, reason = "loads through pointers")]
    fn load(block: &[u64; GROUP]) -> [__m128i; GROUP / 2] {
        let two = block.as_ptr().cast::<__m128i>();
        // SAFETY: eight words are four vectors of 16 bytes, and loads of this kind need no alignment.
        unsafe {
            [
                _mm_loadu_si128(two),
                _mm_loadu_si128(two.add(1)),
                _mm_loadu_si128(two.add(2)),
                _mm_loadu_si128(two.add(3)),
            ]
        }
    }

    /// Four columns of 64 bits folded to 32.
    #[inline]
    #[target_feature(enable = "sse,sse2")]
    fn halve(a: __m128i, b: __m128i) -> __m128i {
        let (a, b) = (_mm_castsi128_ps(a), _mm_castsi128_ps(b));
        let even = _mm_shuffle_ps::<0b10_00_10_00>(a, b);
        let odd = _mm_shuffle_ps::<0b11_01_11_01>(a, b);
        _mm_castps_si128(_mm_xor_ps(even, odd))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Digest;

    #[test]
    fn eight_at_once_are_eight_one_by_one() {
        let mut state = 0;
        let mut random = || {
            state += 1;
            Digest::mixed(state).bits()
        };
        for round in 0..2_000 {
            let window = Window::new(random(), round % 64);
            let lower: [u64; GROUP] = core::array::from_fn(|_| random());
            let upper: [u64; GROUP] = core::array::from_fn(|_| random());
            let expected = window.parities_by_hand(&lower, &upper);
            assert_eq!(window.parities(&lower, &upper), expected);
        }
    }

    #[test]
    fn coefficients_go_on_in_the_next_block_where_they_left_off() {
        for row in 0..64 {
            let window = Window::new(u64::MAX, row);
            let all = u128::from(window.upper) << 64 | u128::from(window.lower);
            assert_eq!(all, u128::from(u64::MAX) << row);
            assert_eq!((window.parity(1 << row, 0), window.parity(0, 1 << 63)), (1, 0));
        }
    }
}
