//! AVX2 on x86-64, and AVX-512 for setting bits.

use super::{Block, Calls, Isa, Job, Lanes, Line, Places, SPLIT_SALTS, half, line_number};
use core::arch::x86_64::*;

/// Whether the processor has the instructions that [`on_avx2`] needs.
pub(super) fn has_avx2() -> bool {
    #[cfg(feature = "std")]
    return std::arch::is_x86_feature_detected!("avx2")
        && std::arch::is_x86_feature_detected!("bmi1")
        && std::arch::is_x86_feature_detected!("bmi2")
        && std::arch::is_x86_feature_detected!("popcnt");
    #[cfg(not(feature = "std"))]
    return cfg!(all(
        target_feature = "avx2",
        target_feature = "bmi1",
        target_feature = "bmi2",
        target_feature = "popcnt"
    ));
}

/// Whether the processor has the further instructions that [`set_key_wide`] needs.
pub(super) fn has_avx512() -> bool {
    #[cfg(feature = "std")]
    return std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512vl");
    #[cfg(not(feature = "std"))]
    return cfg!(all(target_feature = "avx512f", target_feature = "avx512vl"));
}

/// The token of a processor with AVX2.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(());

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) fn on_avx2(job: impl Job) {
    job.run(Avx2(()));
}

/// As [`on_avx2`], without vectors.
#[cfg(feature = "alloc")]
#[target_feature(enable = "bmi1,bmi2,popcnt")]
pub(super) fn on_bits(job: impl Job) {
    job.run(super::Scalar);
}

/// The line of a key with this number. A number is always valid if there are any lines.
#[inline(always)]
#[allow(unsafe_code, reason = "a line that is there by its arithmetic")]
fn line_of(lines: &[Line<u64>], line: usize, digest: u64) -> &Line<u64> {
    let number = line_number(digest, line, lines.len());
    debug_assert!(number < lines.len());
    // SAFETY: the upper half of a product with a number below 2^64 is below the other factor, here
    // the number of lines; the caller has made sure that there are any.
    unsafe { lines.get_unchecked(number) }
}

/// As [`line_of`], mutably.
#[inline(always)]
#[allow(unsafe_code, reason = "a line that is there by its arithmetic")]
fn line_of_mut(lines: &mut [Line<u64>], line: usize, digest: u64) -> &mut Line<u64> {
    let number = line_number(digest, line, lines.len());
    debug_assert!(number < lines.len());
    // SAFETY: as in `line_of`.
    unsafe { lines.get_unchecked_mut(number) }
}

/// The functions for keys in two lines or in one on a processor with AVX2. If it has AVX-512 too,
/// insertions use that.
pub(super) fn calls(two: bool, wide: bool) -> Calls {
    match (two, wide) {
        (false, false) => Calls { has: has_key, set: set_key },
        (false, true) => Calls { has: has_key, set: set_key_wide },
        (true, false) => Calls { has: has_key_twice, set: set_key_twice },
        (true, true) => Calls { has: has_key_twice, set: set_key_twice_wide },
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
fn has_key(lines: &[Line<u64>], digest: u64, places: &Places) -> bool {
    line_has(line_of(lines, 0, digest), half(digest, 0), &places.lanes[0])
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
fn has_key_twice(lines: &[Line<u64>], digest: u64, places: &Places) -> bool {
    line_has(line_of(lines, 0, digest), half(digest, 0), &places.lanes[0])
        & line_has(line_of(lines, 1, digest), half(digest, 1), &places.lanes[1])
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
fn set_key(lines: &mut [Line<u64>], digest: u64, places: &Places) -> bool {
    line_set(line_of_mut(lines, 0, digest), half(digest, 0), &places.lanes[0])
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
fn set_key_twice(lines: &mut [Line<u64>], digest: u64, places: &Places) -> bool {
    line_set(line_of_mut(lines, 0, digest), half(digest, 0), &places.lanes[0])
        | line_set(line_of_mut(lines, 1, digest), half(digest, 1), &places.lanes[1])
}

#[target_feature(enable = "avx2,bmi1,bmi2,avx512f,avx512vl")]
fn set_key_wide(lines: &mut [Line<u64>], digest: u64, places: &Places) -> bool {
    line_set_wide(line_of_mut(lines, 0, digest), half(digest, 0), &places.lanes[0])
}

#[target_feature(enable = "avx2,bmi1,bmi2,avx512f,avx512vl")]
fn set_key_twice_wide(lines: &mut [Line<u64>], digest: u64, places: &Places) -> bool {
    line_set_wide(line_of_mut(lines, 0, digest), half(digest, 0), &places.lanes[0])
        | line_set_wide(line_of_mut(lines, 1, digest), half(digest, 1), &places.lanes[1])
}

#[target_feature(enable = "avx2")]
pub(super) fn block_has_avx2(block: &Block<u64>, x: u32) -> bool {
    block_has(block, x)
}

/// The halves of a line.
#[inline]
#[target_feature(enable = "avx2")]
#[allow(unsafe_code, reason = "loads through pointers")]
fn load_line(line: &Line<u64>) -> (__m256i, __m256i) {
    let halves = line.as_ptr().cast::<__m256i>();
    // SAFETY: a line is two vectors of 32 bytes, and loads of this kind need no alignment.
    unsafe { (_mm256_loadu_si256(halves), _mm256_loadu_si256(halves.add(1))) }
}

#[inline]
#[target_feature(enable = "avx2")]
#[allow(unsafe_code, reason = "loads through pointers")]
fn load_words(words: &[u32; 8]) -> __m256i {
    // SAFETY: eight words are a vector of 32 bytes, and loads of this kind need no alignment.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
#[allow(unsafe_code, reason = "loads through pointers")]
fn load_block(block: &Block<u64>) -> __m256i {
    // SAFETY: a block is a vector of 32 bytes, and loads of this kind need no alignment.
    unsafe { _mm256_loadu_si256(block.as_ptr().cast()) }
}

/// Eight products of `x`, one per lane.
#[inline]
#[target_feature(enable = "avx2")]
fn products(x: u32, salts: &[u32; 8]) -> __m256i {
    _mm256_mullo_epi32(_mm256_set1_epi32(x as i32), load_words(salts))
}

/// Selects each lane's word from its half of the line, and tests its bit there.
#[inline]
#[target_feature(enable = "avx2")]
fn line_has(line: &Line<u64>, x: u32, lanes: &Lanes) -> bool {
    let (first, second) = load_line(line);
    let products = products(x, &lanes.salts);
    let word = _mm256_srli_epi32::<29>(products);
    let first = _mm256_permutevar8x32_epi32(first, word);
    let second = _mm256_permutevar8x32_epi32(second, word);
    let words = _mm256_blend_epi32::<0b1111_0000>(first, second);
    let bit = _mm256_and_si256(_mm256_srli_epi32::<24>(products), load_words(&lanes.in_word));
    let bits = _mm256_sllv_epi32(load_words(&lanes.on), bit);
    _mm256_testc_si256(words, bits) == 1
}

/// The position of each lane in its half; out of range if a lane does not probe.
#[inline]
#[target_feature(enable = "avx2")]
fn places(x: u32, lanes: &Lanes) -> __m256i {
    let places = _mm256_srli_epi32::<24>(products(x, &lanes.salts));
    _mm256_or_si256(places, load_words(&lanes.off))
}

/// Builds the bits to set and combines them. Setting them one by one would be slower: the processor
/// speculates that two of them are in different words, is wrong every other time, and has to
/// restart.
///
/// A position is a number below 256 inside its half. Shifting 1 by it minus 0, 32, 64, ... gives
/// its bit in the right word and zero in the others, since shifts out of range give zero. Each step
/// handles one probe of each half: `even` has the first quarters of both halves, `odd` the second.
#[inline]
#[target_feature(enable = "avx2")]
#[allow(unsafe_code, reason = "stores through pointers")]
fn line_set(line: &mut Line<u64>, x: u32, lanes: &Lanes) -> bool {
    let places = places(x, lanes);
    let one = _mm256_set1_epi32(1);
    let starts = _mm256_setr_epi32(0, 32, 64, 96, 0, 32, 64, 96);
    let (mut even, mut odd) = (_mm256_setzero_si256(), _mm256_setzero_si256());
    macro_rules! step {
        ($lane:literal) => {
            let place = _mm256_shuffle_epi32::<{ $lane * 0b01_01_01_01 }>(places);
            let shift = _mm256_sub_epi32(place, starts);
            even = _mm256_or_si256(even, _mm256_sllv_epi32(one, shift));
            let shift = _mm256_sub_epi32(shift, _mm256_set1_epi32(128));
            odd = _mm256_or_si256(odd, _mm256_sllv_epi32(one, shift));
        };
    }
    step!(0);
    if lanes.steps > 1 {
        step!(1);
    }
    if lanes.steps > 2 {
        step!(2);
    }
    if lanes.steps > 3 {
        step!(3);
    }
    let first = _mm256_permute2x128_si256::<0x20>(even, odd);
    let second = _mm256_permute2x128_si256::<0x31>(even, odd);
    let before = load_line(line);
    let halves = line.as_mut_ptr().cast::<__m256i>();
    // SAFETY: a line is two vectors of 32 bytes, and stores of this kind need no alignment.
    unsafe {
        _mm256_storeu_si256(halves, _mm256_or_si256(before.0, first));
        _mm256_storeu_si256(halves.add(1), _mm256_or_si256(before.1, second));
    }
    _mm256_testc_si256(before.0, first) & _mm256_testc_si256(before.1, second) == 0
}

/// The truth table of "or" for three.
const OR: i32 = 0b1111_1110;

/// As [`line_set`], with all words of both halves in one vector, so that a line outside the cache
/// causes a single wait. In a batch, where lines have been prefetched, it is slower.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512vl")]
#[allow(unsafe_code, reason = "loads and stores through pointers")]
fn line_set_wide(line: &mut Line<u64>, x: u32, lanes: &Lanes) -> bool {
    // The positions of the first half four times over two quarters, then those of the second.
    let places = _mm512_castsi256_si512(places(x, lanes));
    let places = _mm512_shuffle_i32x4::<0b01_01_00_00>(places, places);
    let starts =
        _mm512_setr_epi32(0, 32, 64, 96, 128, 160, 192, 224, 0, 32, 64, 96, 128, 160, 192, 224);
    macro_rules! bits_of {
        ($lane:literal) => {{
            let place = _mm512_shuffle_epi32::<{ $lane * 0b01_01_01_01 }>(places);
            _mm512_sllv_epi32(_mm512_set1_epi32(1), _mm512_sub_epi32(place, starts))
        }};
    }
    let mut bits = _mm512_ternarylogic_epi32::<OR>(bits_of!(0), bits_of!(1), bits_of!(2));
    if lanes.steps > 3 {
        bits = _mm512_or_si512(bits, bits_of!(3));
    }
    let words = line.as_mut_ptr().cast::<__m512i>();
    // SAFETY: a line is a vector of 64 bytes, and loads of this kind need no alignment.
    let before = unsafe { _mm512_loadu_si512(words) };
    // SAFETY: as for the load.
    unsafe { _mm512_storeu_si512(words, _mm512_or_si512(before, bits)) };
    _mm512_cmpneq_epi32_mask(_mm512_and_si512(before, bits), bits) != 0
}

#[inline]
#[target_feature(enable = "avx2")]
fn block_bits(x: u32) -> __m256i {
    let bit = _mm256_srli_epi32::<27>(products(x, &SPLIT_SALTS));
    _mm256_sllv_epi32(_mm256_set1_epi32(1), bit)
}

#[inline]
#[target_feature(enable = "avx2")]
fn block_has(block: &Block<u64>, x: u32) -> bool {
    _mm256_testc_si256(load_block(block), block_bits(x)) == 1
}

#[inline]
#[target_feature(enable = "avx2")]
#[allow(unsafe_code, reason = "stores through pointers")]
fn block_set(block: &mut Block<u64>, x: u32) -> bool {
    let (before, bits) = (load_block(block), block_bits(x));
    // SAFETY: a block is a vector of 32 bytes, and stores of this kind need no alignment.
    unsafe { _mm256_storeu_si256(block.as_mut_ptr().cast(), _mm256_or_si256(before, bits)) };
    _mm256_testc_si256(before, bits) == 0
}

#[allow(unsafe_code, reason = "the token is proof that the processor has the instructions")]
impl Isa for Avx2 {
    /// Compilers hoist the parts that do not depend on the line out of loops over lines.
    type Pattern = (u32, &'static Lanes);

    #[inline(always)]
    fn pattern(self, x: u32, lanes: &'static Lanes) -> Self::Pattern {
        (x, lanes)
    }

    #[inline(always)]
    fn line_has_pattern(self, line: &Line<u64>, &(x, lanes): &Self::Pattern) -> bool {
        self.plain_line_has(line, x, lanes)
    }

    #[inline(always)]
    fn plain_line_has(self, line: &Line<u64>, x: u32, lanes: &Lanes) -> bool {
        // SAFETY: a token exists only if the processor has the instructions.
        unsafe { line_has(line, x, lanes) }
    }

    #[inline(always)]
    fn plain_block_has(self, block: &Block<u64>, x: u32) -> bool {
        // SAFETY: a token exists only if the processor has the instructions.
        unsafe { block_has(block, x) }
    }

    #[inline(always)]
    fn line_set(self, line: &mut Line<u64>, x: u32, lanes: &Lanes) -> bool {
        // SAFETY: a token exists only if the processor has the instructions.
        unsafe { line_set(line, x, lanes) }
    }

    #[inline(always)]
    fn block_set(self, block: &mut Block<u64>, x: u32) -> bool {
        // SAFETY: a token exists only if the processor has the instructions.
        unsafe { block_set(block, x) }
    }
}
