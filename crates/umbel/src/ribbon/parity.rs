//! Eight parities at once: the inner loop of a look-up.
//!
//! ```text
//!     column 0   ..1.11.|.1..1...     and with the coefficients, which begin inside the lower word
//!     column 1   .11...1|..11....     and may end inside the upper one;
//!       ...                           then fold each column until one bit is left
//! ```
//!
//! Column by column, this takes some 60 instructions on any processor, and equally many with the
//! vectors that every x86-64 processor has. AVX2 takes half of them. AVX-512 with VPOPCNTDQ, which
//! counts the bits of eight words at once, takes six. Look-ups are compiled for each [`Way`]. While
//! some of them wait for memory, a processor executes the next ones, as far as its instruction
//! window reaches.
//!
//! An island of `unsafe`, for instructions that not every processor has. The column by column code
//! is the safe equivalent.

use super::shape::Shape;

/// The columns of a block of 64 rows that are taken at a time.
pub(super) const GROUP: usize = 8;

/// One word of each column of a group.
pub(super) type Columns = [u64; GROUP];

/// The coefficients of a key in the block where its rows begin and in the one after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowWindow {
    coefficients: u64,
    /// Below 64.
    row: u32,
}

impl RowWindow {
    /// The coefficients from this row of the block on, below 64.
    #[inline(always)]
    pub(super) const fn new(coefficients: u64, row: u32) -> Self {
        Self { coefficients, row }
    }

    /// The coefficients in the lower block.
    #[inline(always)]
    const fn lower(self) -> u64 {
        self.coefficients << self.row
    }

    /// The coefficients in the upper block.
    #[inline(always)]
    const fn upper(self) -> u64 {
        (self.coefficients >> 1) >> (63 - self.row)
    }

    /// The bits of a column that the coefficients select.
    #[inline(always)]
    const fn of(self, lower: u64, upper: u64) -> u64 {
        (lower & self.lower()) ^ (upper & self.upper())
    }

    /// The parity of one column.
    #[inline(always)]
    pub(super) const fn parity(self, lower: u64, upper: u64) -> u32 {
        self.of(lower, upper).count_ones() & 1
    }
}

/// A way to compute eight parities. A value of the type proves that the processor has the
/// instructions.
pub(super) trait Parities: Copy {
    /// The parities of eight columns, the first one lowest.
    fn of(self, window: RowWindow, lower: &Columns, upper: &Columns) -> u32;
}

/// With instructions that every processor has.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnyProcessor;

impl Parities for AnyProcessor {
    #[inline(always)]
    #[allow(unsafe_code, reason = "instructions that every processor of this kind has")]
    fn of(self, window: RowWindow, lower: &Columns, upper: &Columns) -> u32 {
        #[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
        // SAFETY: the program was compiled for processors with SSE2.
        return unsafe { x86::sse2::parities(window, lower, upper) };
        #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2", not(miri))))]
        by_hand(window, lower, upper)
    }
}

#[cfg(any(test, not(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))))]
#[inline(always)]
fn by_hand(window: RowWindow, lower: &Columns, upper: &Columns) -> u32 {
    (0..GROUP).fold(0, |all, column| all | window.parity(lower[column], upper[column]) << column)
}

/// How a filter computes parities: the fastest way of this processor, unless a path was forced.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way(Means);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Means {
    AnyProcessor,
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    Avx2Parities,
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    Counts,
}

impl Way {
    /// The way for a filter that is created now.
    pub(super) fn now() -> Self {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        match crate::simd::path() {
            crate::simd::Path::Avx512 if x86::counts::is_available() => return Self(Means::Counts),
            crate::simd::Path::Avx2 | crate::simd::Path::Avx512 => {
                return Self(Means::Avx2Parities);
            }
            _ => {}
        }
        Self(Means::AnyProcessor)
    }

    /// Answers a question with this way.
    #[inline(always)]
    #[allow(unsafe_code, reason = "here it is known that the processor has the instructions")]
    pub(super) fn ask<Q: Question>(self, question: Q, shape: &Shape, words: &[u64]) -> Q::Answer {
        match self.0 {
            Means::AnyProcessor => on_any(question, shape, words),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            // SAFETY: a way that the processor does not have is never made.
            Means::Avx2Parities => unsafe { x86::avx2::ask(question, shape, words) },
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            // SAFETY: a way that the processor does not have is never made.
            Means::Counts => unsafe { x86::counts::ask(question, shape, words) },
        }
    }
}

/// Two filters that compute in different ways can be equal.
impl PartialEq for Way {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Way {}

/// A look-up that is written once for all ways.
pub(super) trait Question {
    type Answer;

    /// The answer. Must be `#[inline(always)]`, so that all of it is compiled with the instructions
    /// of the way.
    fn answer(self, parities: impl Parities, shape: &Shape, words: &[u64]) -> Self::Answer;
}

/// Out of line if there are faster ways, so that it takes no registers from them.
#[cfg_attr(target_arch = "x86_64", inline(never))]
fn on_any<Q: Question>(question: Q, shape: &Shape, words: &[u64]) -> Q::Answer {
    question.answer(AnyProcessor, shape, words)
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86 {
    /// The instructions that every x86-64 processor has.
    #[cfg(target_feature = "sse2")]
    pub(super) mod sse2 {
        use super::super::{Columns, GROUP, RowWindow};
        use core::arch::x86_64::*;

        #[inline]
        #[target_feature(enable = "sse,sse2")]
        pub(crate) fn parities(window: RowWindow, lower: &Columns, upper: &Columns) -> u32 {
            let lower_mask = _mm_set1_epi64x(window.lower() as i64);
            let upper_mask = _mm_set1_epi64x(window.upper() as i64);
            let (lower, upper) = (load(lower), load(upper));
            let two = |number: usize| {
                let lower = _mm_and_si128(lower[number], lower_mask);
                _mm_xor_si128(lower, _mm_and_si128(upper[number], upper_mask))
            };
            let (first, second) = (halve(two(0), two(1)), halve(two(2), two(3)));
            // From here on the parity of a column is in the highest bit of its lane.
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
        fn load(columns: &Columns) -> [__m128i; GROUP / 2] {
            let two = columns.as_ptr().cast::<__m128i>();
            // SAFETY: eight words are four vectors of 16 bytes, and loads of this kind need no
            // alignment.
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

    /// Four columns per vector.
    pub(super) mod avx2 {
        use super::super::{Columns, Parities, Question, RowWindow, Shape};
        use core::arch::x86_64::*;

        #[derive(Clone, Copy, Debug)]
        pub(crate) struct Avx2Parities(());

        #[inline(never)]
        #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
        pub(crate) fn ask<Q: Question>(question: Q, shape: &Shape, words: &[u64]) -> Q::Answer {
            question.answer(Avx2Parities(()), shape, words)
        }

        #[allow(unsafe_code, reason = "the token is proof that the processor has the instructions")]
        impl Parities for Avx2Parities {
            #[inline(always)]
            fn of(self, window: RowWindow, lower: &Columns, upper: &Columns) -> u32 {
                // SAFETY: a token exists only if the processor has the instructions.
                unsafe { parities(window, lower, upper) }
            }
        }

        #[inline]
        #[target_feature(enable = "avx2")]
        fn parities(window: RowWindow, lower: &Columns, upper: &Columns) -> u32 {
            let lower_mask = _mm256_set1_epi64x(window.lower() as i64);
            let upper_mask = _mm256_set1_epi64x(window.upper() as i64);
            let (lower, upper) = (load(lower), load(upper));
            let four = |number: usize| {
                let lower = _mm256_and_si256(lower[number], lower_mask);
                let upper = _mm256_and_si256(upper[number], upper_mask);
                _mm256_castsi256_ps(_mm256_xor_si256(lower, upper))
            };
            let (first, second) = (four(0), four(1));
            // Columns 0, 1, 4, 5, 2, 3, 6, 7: folded to 32 bits, and then to the highest of them.
            let even = _mm256_shuffle_ps::<0b10_00_10_00>(first, second);
            let odd = _mm256_shuffle_ps::<0b11_01_11_01>(first, second);
            let x = _mm256_castps_si256(_mm256_xor_ps(even, odd));
            let x = _mm256_xor_si256(x, _mm256_slli_epi32::<16>(x));
            let x = _mm256_xor_si256(x, _mm256_slli_epi32::<8>(x));
            let x = _mm256_xor_si256(x, _mm256_slli_epi32::<4>(x));
            let x = _mm256_xor_si256(x, _mm256_slli_epi32::<2>(x));
            let x = _mm256_xor_si256(x, _mm256_slli_epi32::<1>(x));
            let x = _mm256_permute4x64_epi64::<0b11_01_10_00>(x);
            _mm256_movemask_ps(_mm256_castsi256_ps(x)) as u32
        }

        /// The columns, four by four.
        #[inline]
        #[target_feature(enable = "avx2")]
        #[allow(unsafe_code, reason = "loads through pointers")]
        fn load(columns: &Columns) -> [__m256i; 2] {
            let four = columns.as_ptr().cast::<__m256i>();
            // SAFETY: eight words are two vectors of 32 bytes, and loads of this kind need no
            // alignment.
            unsafe { [_mm256_loadu_si256(four), _mm256_loadu_si256(four.add(1))] }
        }
    }

    /// Eight columns per vector, with a population count.
    pub(super) mod counts {
        use super::super::{Columns, Parities, Question, RowWindow, Shape};
        use core::arch::x86_64::*;

        #[derive(Clone, Copy, Debug)]
        pub(crate) struct Counts(());

        /// Whether a processor with AVX-512 has the other instructions that this needs.
        pub(crate) fn is_available() -> bool {
            #[cfg(feature = "std")]
            return std::arch::is_x86_feature_detected!("avx512vbmi2")
                && std::arch::is_x86_feature_detected!("avx512vpopcntdq");
            #[cfg(not(feature = "std"))]
            return cfg!(all(target_feature = "avx512vbmi2", target_feature = "avx512vpopcntdq"));
        }

        #[inline(never)]
        #[target_feature(
            enable = "avx2,bmi1,bmi2,popcnt,avx512f,avx512vl,avx512vbmi2,avx512vpopcntdq"
        )]
        pub(crate) fn ask<Q: Question>(question: Q, shape: &Shape, words: &[u64]) -> Q::Answer {
            question.answer(Counts(()), shape, words)
        }

        #[allow(unsafe_code, reason = "the token is proof that the processor has the instructions")]
        impl Parities for Counts {
            #[inline(always)]
            fn of(self, window: RowWindow, lower: &Columns, upper: &Columns) -> u32 {
                // SAFETY: a token exists only if the processor has the instructions.
                unsafe { parities(window, lower, upper) }
            }
        }

        #[inline]
        #[target_feature(enable = "avx512f,avx512vbmi2,avx512vpopcntdq")]
        fn parities(window: RowWindow, lower: &Columns, upper: &Columns) -> u32 {
            let row = _mm512_set1_epi64(window.row.into());
            let coefficients = _mm512_set1_epi64(window.coefficients as i64);
            // The 64 rows of a column from `row` on.
            let x = _mm512_shrdv_epi64(load(lower), load(upper), row);
            let counts = _mm512_popcnt_epi64(_mm512_and_si512(x, coefficients));
            _mm512_test_epi64_mask(counts, _mm512_set1_epi64(1)).into()
        }

        #[inline]
        #[target_feature(enable = "avx512f")]
        #[allow(unsafe_code, reason = "loads through pointers")]
        fn load(columns: &Columns) -> __m512i {
            // SAFETY: eight words are a vector of 64 bytes, and loads of this kind need no alignment.
            unsafe { _mm512_loadu_si512(columns.as_ptr().cast()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Digest;
    use crate::ribbon::shape::{LastLayer, MAX_TIERS, Tier};
    use std::vec::Vec;

    /// The parities of some columns.
    #[derive(Clone, Copy)]
    struct Of(RowWindow, Columns, Columns);

    impl Question for Of {
        type Answer = u32;

        #[inline(always)]
        fn answer(self, parities: impl Parities, _: &Shape, _: &[u64]) -> u32 {
            let Self(window, lower, upper) = self;
            parities.of(window, &lower, &upper)
        }
    }

    /// All ways that this processor supports, on any path.
    fn ways() -> Vec<Way> {
        let mut ways = Vec::from([Way(Means::AnyProcessor)]);
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            ways.extend(crate::simd::Path::Avx2.is_available().then_some(Way(Means::Avx2Parities)));
            let counts = crate::simd::Path::Avx512.is_available() && x86::counts::is_available();
            ways.extend(counts.then_some(Way(Means::Counts)));
        }
        ways
    }

    #[test]
    fn eight_at_once_are_eight_one_by_one() {
        let (tiers, plain, way) = ([Tier::default(); MAX_TIERS], LastLayer::default(), Way::now());
        let (items, bits, rounds, seed, words, depth) = (0, 8, 0, 0, 0, 0);
        let shape =
            Shape { items, bits, rounds, seed, words, depth, usual: false, tiers, plain, way };
        let mut state = 0;
        let mut random = || {
            state += 1;
            Digest::mixed(state).bits()
        };
        for round in 0..2_000 {
            let window = RowWindow::new(random(), round % 64);
            let lower: Columns = core::array::from_fn(|_| random());
            let upper: Columns = core::array::from_fn(|_| random());
            for way in ways() {
                let parities = way.ask(Of(window, lower, upper), &shape, &[]);
                assert_eq!(parities, by_hand(window, &lower, &upper), "{way:?}");
            }
        }
    }

    #[test]
    fn coefficients_go_on_in_the_next_block_where_they_left_off() {
        for row in 0..64 {
            let window = RowWindow::new(u64::MAX, row);
            let all = u128::from(window.upper()) << 64 | u128::from(window.lower());
            assert_eq!(all, u128::from(u64::MAX) << row);
            assert_eq!((window.parity(1 << row, 0), window.parity(0, 1 << 63)), (1, 0));
        }
    }
}
