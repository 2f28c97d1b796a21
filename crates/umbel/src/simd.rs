//! Eight probes at once: every instruction path gives the same bits and the same answers.
//!
//! | path | where | how a line is tested |
//! |---|---|---|
//! | [`Path::Portable`] | everywhere | probe by probe, in safe code: the definition of all others |
//! | [`Path::Avx2`] | x86-64 | all probes in one vector |
//! | [`Path::Avx512`] | x86-64 | as AVX2; a single insert sets the bits of a line at once |
//! | [`Path::Neon`] | aarch64 | all probes by one table look-up over the line |
//!
//! A filter selects its path when it is created: the best one that the processor supports.
//! [`force`] selects another one for filters that are created later, for tests and measurements;
//! the bits and the answers do not depend on it. Without `std` there is no detection at run time,
//! and the path is the best one that the program was compiled for. Words that other threads may be
//! changing are always read one by one.
//!
//! An island of `unsafe`: vector instructions must not run on a processor without them. The token
//! of a path exists only after the processor has reported its instructions. The safe equivalent is
//! the portable path; `tests/it/paths.rs` compares them all.

mod lanes;
#[cfg(all(target_arch = "aarch64", target_endian = "little", not(miri)))]
mod neon;
#[cfg(feature = "alloc")]
mod pdep;
mod portable;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86;

pub(crate) use lanes::{Lanes, MAX_LANES, Places, SPLIT_SALTS, split};
#[cfg(all(test, feature = "alloc"))]
pub(crate) use pdep::on_each_select;
#[cfg(feature = "alloc")]
pub(crate) use pdep::{Ranks, ranked};
pub(crate) use portable::{Scalar, for_each_of_block};

use crate::parts::bits::Word;
use core::fmt;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// A cache line.
pub(crate) type Line<W> = [W; 8];
/// A block of a split-block filter: half a line.
pub(crate) type Block<W> = [W; 4];

/// The instructions with which lines are tested and changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Path {
    /// Probe by probe, on every processor.
    Portable,
    /// AVX2, BMI2 and POPCNT of x86-64.
    Avx2,
    /// As AVX2, with AVX-512 where it is faster: in single insertions.
    Avx512,
    /// Advanced SIMD of aarch64.
    Neon,
}

impl Path {
    /// All paths. The best path that a processor supports is the last of those it supports.
    pub const ALL: [Self; 4] = [Self::Portable, Self::Avx2, Self::Avx512, Self::Neon];

    /// Whether this processor and this build support the path.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Self::Avx2 => x86::has_avx2(),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Self::Avx512 => x86::has_avx2() && x86::has_avx512(),
            #[cfg(all(target_arch = "aarch64", target_endian = "little", not(miri)))]
            Self::Neon => neon::has_neon(),
            #[allow(unreachable_patterns, reason = "depends on the target")]
            _ => false,
        }
    }

    fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|path| *path as u8 == number)
    }
}

/// The path that was forced, as a number, or [`FREE`].
static FORCED: AtomicU8 = AtomicU8::new(FREE);
const FREE: u8 = u8::MAX;

/// The path of a filter that is created now.
#[must_use]
pub fn path() -> Path {
    Path::from_number(FORCED.load(Relaxed)).unwrap_or_else(|| {
        Path::ALL.into_iter().rfind(|path| path.is_available()).unwrap_or(Path::Portable)
    })
}

/// Sets the path of all filters of this process that are created from now on. `None` restores the
/// automatic choice.
///
/// # Errors
///
/// [`Unavailable`] if this processor does not support the path. Nothing is changed then.
#[doc(hidden)]
pub fn force(path: Option<Path>) -> Result<(), Unavailable> {
    match path {
        None => FORCED.store(FREE, Relaxed),
        Some(path) if path.is_available() => FORCED.store(path as u8, Relaxed),
        Some(path) => return Err(Unavailable { path }),
    }
    Ok(())
}

/// The path of one filter. An unavailable path cannot be selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    path: Path,
    /// Not selected yet: for filters that are created at compile time, which cannot query the
    /// processor.
    open: bool,
}

impl Choice {
    /// The choice of a filter that is created at compile time: query every time.
    pub(crate) const OPEN: Self = Self { path: Path::Portable, open: true };

    /// The choice of a filter that is created now.
    pub(crate) fn now() -> Self {
        Self { path: path(), open: false }
    }

    /// Whether the path has vectors.
    #[inline(always)]
    fn vectors(self) -> bool {
        self.path != Path::Portable
    }

    /// The choice now, if it was open and there is a better path than the portable one.
    fn made(self) -> Option<Self> {
        let now = if self.open { Self::now() } else { self };
        now.vectors().then_some(now)
    }
}

/// This processor does not support the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unavailable {
    path: Path,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this processor, or this build, has no path {:?}", self.path)
    }
}

impl core::error::Error for Unavailable {}

/// The operations of a path on the lines and blocks of one key. A value of the type proves that the
/// processor has the instructions.
///
/// Words that other threads may be changing are read one by one on every path.
pub(crate) trait Isa: Copy {
    /// The test pattern of a line, computed once for the lines of several filters.
    type Pattern: Copy;

    /// The pattern of `x`.
    #[cfg_attr(not(feature = "alloc"), allow(dead_code, reason = "for filters of several levels"))]
    fn pattern(self, x: u32, lanes: &'static Lanes) -> Self::Pattern;

    /// Whether all probes of the pattern are set in a line.
    #[cfg_attr(not(feature = "alloc"), allow(dead_code, reason = "for filters of several levels"))]
    fn line_has_pattern(self, line: &Line<u64>, pattern: &Self::Pattern) -> bool;

    /// As [`line_has`](Self::line_has), for words that no other thread can be changing.
    fn plain_line_has(self, line: &Line<u64>, x: u32, lanes: &Lanes) -> bool;

    /// As [`block_has`](Self::block_has), for words that no other thread can be changing.
    fn plain_block_has(self, block: &Block<u64>, x: u32) -> bool;

    /// Sets all probes of `x` in a line. Returns whether one of them was not set before.
    fn line_set(self, line: &mut Line<u64>, x: u32, lanes: &Lanes) -> bool;

    /// Sets all eight probes of `x` in a block. Returns whether one of them was not set before.
    fn block_set(self, block: &mut Block<u64>, x: u32) -> bool;

    /// Whether all probes of `x` are set in a line.
    #[inline(always)]
    fn line_has<W: Word>(self, line: &Line<W>, x: u32, lanes: &Lanes) -> bool {
        match plain(line) {
            Some(line) => self.plain_line_has(line, x, lanes),
            None => portable::line_has(line, x, lanes),
        }
    }

    /// Whether all eight probes of `x` are set in a block.
    #[inline(always)]
    fn block_has<W: Word>(self, block: &Block<W>, x: u32) -> bool {
        match plain(block) {
            Some(block) => self.plain_block_has(block, x),
            None => portable::block_has(block, x),
        }
    }
}

/// An operation on many keys, written once for all paths.
pub(crate) trait Job {
    /// Runs the operation. Must be `#[inline(always)]`, so that all of it is compiled for the path.
    fn run<I: Isa>(self, isa: I);
}

/// Calls one of these functions, by the path of a filter. All except the best paths of a processor
/// are out of line, so that they take no registers from it.
macro_rules! by_path {
    (
        $choice:ident, $avx2:ident, $neon:ident, $portable:ident, ($($argument:expr),*)
    ) => {{
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if $choice.vectors() {
            // SAFETY: an unavailable path is never selected.
            return unsafe { x86::$avx2($($argument),*) };
        }
        #[cfg(all(target_arch = "aarch64", target_endian = "little", not(miri)))]
        if $choice.vectors() {
            // SAFETY: an unavailable path is never selected.
            return unsafe { neon::$neon($($argument),*) };
        }
        portable::$portable($($argument,)* $choice)
    }};
}

/// Runs a job on the path of a filter.
#[inline(always)]
#[allow(unsafe_code, reason = "here it is known that the processor has the instructions")]
pub(crate) fn dispatch(choice: Choice, job: impl Job) {
    by_path!(choice, on_avx2, on_neon, on_any, (job))
}

/// Runs a job with the scalar instructions of a path, and without its vectors. For jobs in which
/// each step depends on the previous one, where auto-vectorization is slower.
#[cfg(feature = "alloc")]
#[inline(always)]
#[allow(unsafe_code, reason = "here it is known that the processor has the instructions")]
pub(crate) fn dispatch_words(choice: Choice, job: impl Job) {
    by_path!(choice, on_bits, on_neon, on_any, (job))
}

/// The functions that look up one key and insert one, for the path of a filter and its number of
/// lines, so that a call has no branches on them.
#[derive(Clone, Copy)]
#[allow(unsafe_code, reason = "functions that need what only some processors have")]
pub(crate) struct Calls {
    has: unsafe fn(&[Line<u64>], u64, &Places) -> bool,
    set: unsafe fn(&mut [Line<u64>], u64, &Places) -> bool,
}

impl Calls {
    /// For filters that are created at compile time: they query the processor every time.
    pub(crate) const OPEN: Self = Self { has: portable::has_key_open, set: portable::set_key_open };

    /// For keys in two lines, or in one.
    pub(crate) fn now(two: bool) -> Self {
        let portable = Self { has: portable::has_key, set: portable::set_key };
        match path() {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Path::Avx2 => x86::calls(two, false),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Path::Avx512 => x86::calls(two, true),
            #[cfg(all(target_arch = "aarch64", target_endian = "little", not(miri)))]
            Path::Neon => neon::calls(two),
            _ => portable,
        }
    }

    /// Whether all probes of a key are set in its line or lines.
    ///
    /// # Panics
    ///
    /// If there are no lines.
    #[inline(always)]
    #[allow(unsafe_code, reason = "functions that need what only some processors have")]
    pub(crate) fn has<W: Word>(&self, lines: &[Line<W>], digest: u64, places: &Places) -> bool {
        assert!(!lines.is_empty());
        match W::plain(lines) {
            // SAFETY: there are lines, and functions of an unavailable path are never selected.
            Some(lines) => unsafe { (self.has)(lines, digest, places) },
            None => has_key(Scalar, lines, digest, places),
        }
    }

    /// Sets all probes of a key in its line or lines. Returns whether one of them was not set
    /// before.
    ///
    /// # Panics
    ///
    /// If there are no lines.
    #[inline(always)]
    #[allow(unsafe_code, reason = "functions that need what only some processors have")]
    pub(crate) fn set(&self, lines: &mut [Line<u64>], digest: u64, places: &Places) -> bool {
        assert!(!lines.is_empty());
        // SAFETY: there are lines, and functions of an unavailable path are never selected.
        unsafe { (self.set)(lines, digest, places) }
    }
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Calls")
    }
}

/// [`Isa::block_has`] on the path of a filter.
#[inline(always)]
#[allow(unsafe_code, reason = "here it is known that the processor has the instructions")]
pub(crate) fn block_has<W: Word>(choice: Choice, block: &Block<W>, x: u32) -> bool {
    let Some(block) = plain(block) else { return portable::block_has(block, x) };
    by_path!(choice, block_has_avx2, block_has_neon, plain_block_has, (block, x))
}

/// Derives the second line of a key: 2^64 divided by the square root of 2, odd.
const SECOND: u64 = 0xb504_f333_f9de_6485;

/// The number of a key's first (0) or second (1) line: below `count`, because it is a fraction of
/// it.
#[inline(always)]
pub(crate) const fn line_number(digest: u64, line: usize, count: usize) -> usize {
    line_number_of(digest, line, count as u64) as usize
}

/// As [`line_number`], also for more lines than fit into the memory of this machine.
#[inline(always)]
pub(crate) const fn line_number_of(digest: u64, line: usize, count: u64) -> u64 {
    let fraction = if line == 0 { digest } else { digest.wrapping_mul(SECOND) };
    ((fraction as u128 * count as u128) >> 64) as u64
}

/// The value that determines the bits of a key in its first (0) or second (1) line.
#[inline(always)]
pub(crate) const fn half(digest: u64, line: usize) -> u32 {
    if line == 0 { digest as u32 } else { (digest >> 32) as u32 }
}

/// As [`Calls::has`], on any path.
#[inline(always)]
fn has_key<W: Word>(isa: impl Isa, lines: &[Line<W>], digest: u64, places: &Places) -> bool {
    let has = |line: usize| {
        let number = line_number(digest, line, lines.len());
        isa.line_has(&lines[number], half(digest, line), &places.lanes[line])
    };
    // Both lines are fetched before the first one is tested.
    if places.two { has(0) & has(1) } else { has(0) }
}

/// As [`Calls::set`], on any path.
#[inline(always)]
fn set_key(isa: impl Isa, lines: &mut [Line<u64>], digest: u64, places: &Places) -> bool {
    let mut set = |line: usize| {
        let number = line_number(digest, line, lines.len());
        isa.line_set(&mut lines[number], half(digest, line), &places.lanes[line])
    };
    if places.two { set(0) | set(1) } else { set(0) }
}

/// The words as plain words, if no other thread can be changing them.
#[inline(always)]
fn plain<W: Word, const N: usize>(words: &[W; N]) -> Option<&[u64; N]> {
    W::plain(core::slice::from_ref(words)).map(|words| &words[0])
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;
    use crate::Saved;
    use crate::{AtomicBlockedBloomFilter, BlockedBloomFilter, SplitBlockBloomFilter};
    use std::format;

    /// The only test of this binary that forces a path.
    #[test]
    fn a_filter_keeps_the_path_that_it_was_made_on() {
        for path in Path::ALL.into_iter().filter(|path| path.is_available()) {
            force(Some(path)).unwrap();
            let filter = BlockedBloomFilter::<u64>::new(10, 0.01);
            let split = SplitBlockBloomFilter::<u64>::new(10, 0.01);
            let made = format!("path: {path:?}");
            for other in Path::ALL.into_iter().filter(|path| path.is_available()) {
                force(Some(other)).unwrap();
                let shared = AtomicBlockedBloomFilter::from(filter.clone());
                assert!(format!("{:?}", filter.raw.layout).contains(&made));
                assert!(format!("{:?}", split.raw.layout).contains(&made));
                assert!(format!("{:?}", filter.clone().raw.layout).contains(&made));
                assert!(format!("{:?}", shared.snapshot().raw.layout).contains(&made));
                // A filter that is read again selects its path again.
                let read = BlockedBloomFilter::<u64>::from_bytes(&filter.to_bytes()).unwrap();
                assert!(format!("{:?}", read.raw.layout).contains(&format!("{other:?}")));
            }
        }
        force(None).unwrap();
        assert_eq!(Choice::now(), Choice { path: path(), open: false });
        // An open choice is made when it is needed, and then it is the best path.
        let best = Some(Choice::now()).filter(|_| path() != Path::Portable);
        assert_eq!(Choice::OPEN.made(), best);
        let portable = Choice { path: Path::Portable, open: false };
        assert_eq!(portable.made(), None);
    }

    #[test]
    fn lines_are_numbered_from_0_to_one_below_their_number() {
        for count in [1, 2, 3, 1_000, 1 << 30] {
            for (digest, number) in [(0, 0), (u64::MAX, count - 1), (1 << 63, count / 2)] {
                assert_eq!(line_number(digest, 0, count), number);
                assert!(line_number(digest, 1, count) < count);
            }
        }
        assert_eq!((half(0x1234_5678_9abc_def0, 0), half(1 << 63, 1)), (0x9abc_def0, 1 << 31));
    }
}
