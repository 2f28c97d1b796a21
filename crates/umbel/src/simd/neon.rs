//! Advanced SIMD on aarch64, where every processor has it.

use super::portable::Scalar;
use super::{Block, Calls, Isa, Job, Lanes, Line, Places, SPLIT_SALTS, half, line_number};
use core::arch::aarch64::*;

/// Whether the processor has the instructions that [`on_neon`] needs.
pub(super) fn has_neon() -> bool {
    #[cfg(feature = "std")]
    return std::arch::is_aarch64_feature_detected!("neon");
    #[cfg(not(feature = "std"))]
    return cfg!(target_feature = "neon");
}

/// The token of a processor with Advanced SIMD.
#[derive(Clone, Copy, Debug)]
pub(super) struct Neon(());

#[target_feature(enable = "neon")]
pub(super) fn on_neon(job: impl Job) {
    job.run(Neon(()));
}

/// The functions for keys in two lines or in one on a processor with Advanced SIMD.
pub(super) fn calls(two: bool) -> Calls {
    if two {
        Calls { has: has_key_twice, set: set_key_twice }
    } else {
        Calls { has: has_key, set: set_key }
    }
}

#[target_feature(enable = "neon")]
fn has_key(lines: &[Line<u64>], digest: u64, places: &Places) -> bool {
    line_has(&lines[line_number(digest, 0, lines.len())], half(digest, 0), &places.lanes[0])
}

#[target_feature(enable = "neon")]
fn has_key_twice(lines: &[Line<u64>], digest: u64, places: &Places) -> bool {
    has_key(lines, digest, places)
        & line_has(&lines[line_number(digest, 1, lines.len())], half(digest, 1), &places.lanes[1])
}

#[target_feature(enable = "neon")]
fn set_key(lines: &mut [Line<u64>], digest: u64, places: &Places) -> bool {
    let number = line_number(digest, 0, lines.len());
    line_set(&mut lines[number], half(digest, 0), &places.lanes[0])
}

#[target_feature(enable = "neon")]
fn set_key_twice(lines: &mut [Line<u64>], digest: u64, places: &Places) -> bool {
    let number = line_number(digest, 1, lines.len());
    set_key(lines, digest, places) | line_set(&mut lines[number], half(digest, 1), &places.lanes[1])
}

#[target_feature(enable = "neon")]
pub(super) fn block_has_neon(block: &Block<u64>, x: u32) -> bool {
    block_has(block, x)
}

/// Eight words of 32 bits.
#[inline]
#[target_feature(enable = "neon")]
#[allow(unsafe_code, reason = "loads through pointers")]
fn load_words(words: &[u32; 8]) -> [uint32x4_t; 2] {
    // SAFETY: eight words are two vectors of four.
    unsafe { [vld1q_u32(words.as_ptr()), vld1q_u32(words.as_ptr().add(4))] }
}

/// The lowest byte of each of eight words.
#[inline]
#[target_feature(enable = "neon")]
fn bytes_of([low, high]: [uint32x4_t; 2]) -> uint8x8_t {
    vmovn_u16(vcombine_u16(vmovn_u32(low), vmovn_u32(high)))
}

/// Selects each lane's byte from the line by one look-up in a table of 64 bytes, and tests its bit
/// there.
#[inline]
#[target_feature(enable = "neon")]
#[allow(unsafe_code, reason = "loads through pointers")]
fn line_has(line: &Line<u64>, x: u32, lanes: &Lanes) -> bool {
    let bytes = line.as_ptr().cast::<u8>();
    // SAFETY: a line is four vectors of 16 bytes, and these loads need no alignment.
    let table = unsafe {
        uint8x16x4_t(
            vld1q_u8(bytes),
            vld1q_u8(bytes.add(16)),
            vld1q_u8(bytes.add(32)),
            vld1q_u8(bytes.add(48)),
        )
    };
    let [low, high] = load_words(&lanes.salts);
    let x = vdupq_n_u32(x);
    let places =
        bytes_of([vshrq_n_u32::<24>(vmulq_u32(x, low)), vshrq_n_u32::<24>(vmulq_u32(x, high))]);
    let second_half = vcreate_u8(0x2020_2020_0000_0000);
    let picked = vqtbl4_u8(table, vorr_u8(vshr_n_u8::<3>(places), second_half));
    let on = bytes_of(load_words(&lanes.on));
    let bits = vshl_u8(on, vreinterpret_s8_u8(vand_u8(places, vdup_n_u8(7))));
    vget_lane_u64::<0>(vreinterpret_u64_u8(vbic_u8(bits, picked))) == 0
}

/// Tests with vectors; new bits are set one by one.
#[inline]
#[target_feature(enable = "neon")]
fn line_set(line: &mut Line<u64>, x: u32, lanes: &Lanes) -> bool {
    let found = line_has(line, x, lanes);
    if !found {
        Scalar.line_set(line, x, lanes);
    }
    !found
}

/// The bit of each word of a block.
#[inline]
#[target_feature(enable = "neon")]
fn block_bits(x: u32) -> [uint32x4_t; 2] {
    load_words(&SPLIT_SALTS).map(|salts| {
        let bit = vshrq_n_u32::<27>(vmulq_u32(vdupq_n_u32(x), salts));
        vshlq_u32(vdupq_n_u32(1), vreinterpretq_s32_u32(bit))
    })
}

#[inline]
#[target_feature(enable = "neon")]
#[allow(unsafe_code, reason = "loads through pointers")]
fn load_block(block: &Block<u64>) -> [uint32x4_t; 2] {
    let words = block.as_ptr().cast::<u32>();
    // SAFETY: a block is two vectors of four words of 32 bits, and is aligned for those.
    unsafe { [vld1q_u32(words), vld1q_u32(words.add(4))] }
}

#[inline]
#[target_feature(enable = "neon")]
fn block_has(block: &Block<u64>, x: u32) -> bool {
    let ([low, high], bits) = (load_block(block), block_bits(x));
    vmaxvq_u32(vorrq_u32(vbicq_u32(bits[0], low), vbicq_u32(bits[1], high))) == 0
}

#[inline]
#[target_feature(enable = "neon")]
#[allow(unsafe_code, reason = "stores through pointers")]
fn block_set(block: &mut Block<u64>, x: u32) -> bool {
    let found = block_has(block, x);
    let ([low, high], bits) = (load_block(block), block_bits(x));
    let words = block.as_mut_ptr().cast::<u32>();
    // SAFETY: a block is two vectors of four words of 32 bits, and is aligned for those.
    unsafe {
        vst1q_u32(words, vorrq_u32(low, bits[0]));
        vst1q_u32(words.add(4), vorrq_u32(high, bits[1]));
    }
    !found
}

#[allow(unsafe_code, reason = "the token is proof that the processor has the instructions")]
impl Isa for Neon {
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
