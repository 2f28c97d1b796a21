//! Eight probes at once: the same bits and the same answers by every path a processor has.
//!
//! | path | where | how a line is tested |
//! |---|---|---|
//! | [`Path::Portable`] | everywhere | probe by probe, in safe code: the definition of all others |
//! | [`Path::Avx2`] | x86-64 | all probes in one vector |
//! | [`Path::Avx512`] | x86-64 | as AVX2; a single insert sets the bits of a line at once |
//! | [`Path::Neon`] | aarch64 | all probes by one table look-up over the line |
//!
//! A filter takes its path when it is made: the best one that the processor says it has. [`force`]
//! makes filters take another from then on, for tests and measurements: no bit and no answer depends
//! on it. Without `std` nobody asks the processor, and the path is the best one that the program
//! was compiled for. Words that other threads may be changing are always taken one by one.
//!
//! An island of `unsafe`: vector instructions must not run on a processor that lacks them. Whoever
//! has a token of an [`Isa`] other than [`Portable`], or a [`Choice`] of such a path, has asked the
//! processor. The safe twin is [`Portable`]; `tests/it/paths.rs` compares them.

mod lanes;
#[cfg(all(target_arch = "aarch64", target_endian = "little", not(miri)))]
mod neon;
mod portable;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86;

pub(crate) use lanes::{LANES, Lanes, MAX_LANES, SPLIT_SALTS, split};
pub(crate) use portable::{Portable, for_each_of_block};

use crate::parts::bits::Word;
use core::fmt;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// A cache line.
pub(crate) type Line<W> = [W; 8];
/// A block of a split-block filter: half a line.
pub(crate) type Block<W> = [W; 4];

/// How lines are tested and changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Path {
    /// Probe by probe, on every processor.
    Portable,
    /// AVX2 and BMI2 of x86-64.
    Avx2,
    /// The same, with AVX-512 where it is faster: in single inserts.
    Avx512,
    /// Advanced SIMD of aarch64.
    Neon,
}

impl Path {
    /// All paths; of those that a processor has, the best one is last.
    pub const ALL: [Self; 4] = [Self::Portable, Self::Avx2, Self::Avx512, Self::Neon];

    /// Whether this processor, and this build, can take it.
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

/// The path that a filter made now takes.
#[must_use]
pub fn path() -> Path {
    Path::from_number(FORCED.load(Relaxed)).unwrap_or_else(|| {
        Path::ALL.into_iter().rfind(|path| path.is_available()).unwrap_or(Path::Portable)
    })
}

/// Makes all filters of this process that are made from now on take this path; `None` gives the
/// choice back.
///
/// # Errors
///
/// [`Unavailable`] if this processor cannot take it. Nothing is changed then.
pub fn force(path: Option<Path>) -> Result<(), Unavailable> {
    match path {
        None => FORCED.store(FREE, Relaxed),
        Some(path) if path.is_available() => FORCED.store(path as u8, Relaxed),
        Some(path) => return Err(Unavailable { path }),
    }
    Ok(())
}

/// The path of one filter. A path that is not available cannot be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice(Option<Path>);

impl Choice {
    /// Not made yet: for filters that the compiler makes, which cannot ask the processor.
    pub(crate) const OPEN: Self = Self(None);

    /// The choice of a filter that is made now.
    pub(crate) fn now() -> Self {
        Self(Some(path()))
    }

    /// The choice now, if it was open and there is a better path than the portable one.
    fn made(self) -> Option<Self> {
        if self.0.is_some() {
            return None;
        }
        let now = Self::now();
        (now.0 != Some(Path::Portable)).then_some(now)
    }
}

/// This processor cannot take the path.
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

/// What a path does with the lines and blocks of one key. Its values are proof that the processor
/// has the instructions.
///
/// Words that other threads may be changing are always taken one by one, whatever the path.
pub(crate) trait Isa: Copy {
    /// Whether all probes of `x` are set in a line.
    fn line_has<W: Word>(self, line: &Line<W>, x: u32, lanes: &Lanes) -> bool;

    /// Sets all probes of `x` in a line; whether one of them was not set before.
    fn line_set(self, line: &mut Line<u64>, x: u32, lanes: &Lanes) -> bool;

    /// Whether all eight probes of `x` are set in a block.
    fn block_has<W: Word>(self, block: &Block<W>, x: u32) -> bool;

    /// Sets all eight probes of `x` in a block; whether one of them was not set before.
    fn block_set(self, block: &mut Block<u64>, x: u32) -> bool;
}

/// Work for many keys, written once for all paths.
pub(crate) trait Job {
    /// Does it. Must be `#[inline(always)]`, so that all of it is compiled for the path.
    fn run<I: Isa>(self, isa: I);
}

/// One of these calls, by the path of a filter. All but the best paths of a processor are out of line,
/// so that they take no registers from it.
macro_rules! by_path {
    (
        $choice:ident, $avx2:ident, $avx512:ident, $neon:ident, $portable:ident,
        ($($argument:expr),*)
    ) => {{
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        match $choice.0 {
            // SAFETY: a path that is not available is never chosen.
            Some(Path::Avx2) => return unsafe { x86::$avx2($($argument),*) },
            // SAFETY: a path that is not available is never chosen.
            Some(Path::Avx512) => return unsafe { x86::$avx512($($argument),*) },
            _ => {}
        }
        #[cfg(all(target_arch = "aarch64", target_endian = "little", not(miri)))]
        if $choice.0 == Some(Path::Neon) {
            // SAFETY: a path that is not available is never chosen.
            return unsafe { neon::$neon($($argument),*) };
        }
        portable::$portable($choice, $($argument),*)
    }};
}

/// Does a job on the path of a filter.
#[inline(always)]
#[allow(unsafe_code, reason = "here it is known that the processor has the instructions")]
pub(crate) fn dispatch(choice: Choice, job: impl Job) {
    by_path!(choice, on_avx2, on_avx2, on_neon, on_any, (job))
}

/// Whether all probes of a key in one line are set, on the path of a filter.
///
/// # Panics
///
/// If there are no lines.
#[inline(always)]
#[allow(unsafe_code, reason = "here it is known that the processor has the instructions")]
pub(crate) fn one_line_has<W: Word>(
    choice: Choice,
    lines: &[Line<W>],
    digest: u64,
    lanes: &[Lanes; 2],
) -> bool {
    assert!(!lines.is_empty());
    let Some(lines) = W::plain(lines) else { return portable::one_line_has(lines, digest, lanes) };
    by_path!(
        choice,
        one_line_has_avx2,
        one_line_has_avx2,
        one_line_has_neon,
        one_plain_line_has,
        (lines, digest, lanes)
    )
}

/// Whether all probes of a key in two lines are set, on the path of a filter.
///
/// # Panics
///
/// If there are no lines.
#[inline(always)]
#[allow(unsafe_code, reason = "here it is known that the processor has the instructions")]
pub(crate) fn two_lines_have<W: Word>(
    choice: Choice,
    lines: &[Line<W>],
    digest: u64,
    lanes: &[Lanes; 2],
) -> bool {
    assert!(!lines.is_empty());
    let Some(lines) = W::plain(lines) else {
        return portable::two_lines_have(lines, digest, lanes);
    };
    by_path!(
        choice,
        two_lines_have_avx2,
        two_lines_have_avx2,
        two_lines_have_neon,
        two_plain_lines_have,
        (lines, digest, lanes)
    )
}

/// Sets all probes of a key in one line, on the path of a filter; whether one of them was not set
/// before.
///
/// # Panics
///
/// If there are no lines.
#[inline(always)]
#[allow(unsafe_code, reason = "here it is known that the processor has the instructions")]
pub(crate) fn one_line_set(
    choice: Choice,
    lines: &mut [Line<u64>],
    digest: u64,
    lanes: &[Lanes; 2],
) -> bool {
    assert!(!lines.is_empty());
    by_path!(
        choice,
        one_line_set_avx2,
        one_line_set_avx512,
        one_line_set_neon,
        one_line_set,
        (lines, digest, lanes)
    )
}

/// Sets all probes of a key in two lines, on the path of a filter; whether one of them was not set
/// before.
///
/// # Panics
///
/// If there are no lines.
#[inline(always)]
#[allow(unsafe_code, reason = "here it is known that the processor has the instructions")]
pub(crate) fn two_lines_set(
    choice: Choice,
    lines: &mut [Line<u64>],
    digest: u64,
    lanes: &[Lanes; 2],
) -> bool {
    assert!(!lines.is_empty());
    by_path!(
        choice,
        two_lines_set_avx2,
        two_lines_set_avx512,
        two_lines_set_neon,
        two_lines_set,
        (lines, digest, lanes)
    )
}

/// [`Isa::block_has`] on the path of a filter.
#[inline(always)]
#[allow(unsafe_code, reason = "here it is known that the processor has the instructions")]
pub(crate) fn block_has<W: Word>(choice: Choice, block: &Block<W>, x: u32) -> bool {
    let Some(block) = plain(block) else { return Portable.block_has(block, x) };
    by_path!(choice, block_has_avx2, block_has_avx2, block_has_neon, block_has, (block, x))
}

/// Makes the second line of a key: 2^64 divided by the square root of 2, odd.
const SECOND: u64 = 0xb504_f333_f9de_6485;

/// The number of a key's first (0) or second (1) line: below `count`, since a fraction of it.
#[inline(always)]
pub(crate) const fn line_number(digest: u64, line: usize, count: usize) -> usize {
    let fraction = if line == 0 { digest } else { digest.wrapping_mul(SECOND) };
    ((fraction as u128 * count as u128) >> 64) as usize
}

/// What places the bits of a key in its first (0) or second (1) line.
#[inline(always)]
pub(crate) const fn half(digest: u64, line: usize) -> u32 {
    if line == 0 { digest as u32 } else { (digest >> 32) as u32 }
}

/// The words as they are, if nobody else can be changing them.
#[inline(always)]
fn plain<W: Word, const N: usize>(words: &[W; N]) -> Option<&[u64; N]> {
    W::plain(core::slice::from_ref(words)).map(|words| &words[0])
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;
    use crate::{AtomicBlockedBloomFilter, BlockedBloomFilter, SplitBlockBloomFilter};
    use std::format;

    /// The only test of this binary that forces a path.
    #[test]
    fn a_filter_keeps_the_path_that_it_was_made_on() {
        for path in Path::ALL.into_iter().filter(|path| path.is_available()) {
            force(Some(path)).unwrap();
            let filter = BlockedBloomFilter::<u64>::new(10, 0.01);
            let split = SplitBlockBloomFilter::<u64>::new(10, 0.01);
            let made = format!("{:?}", Choice(Some(path)));
            for other in Path::ALL.into_iter().filter(|path| path.is_available()) {
                force(Some(other)).unwrap();
                let shared = AtomicBlockedBloomFilter::from(filter.clone());
                assert!(format!("{:?}", filter.layout).contains(&made));
                assert!(format!("{:?}", split.layout).contains(&made));
                assert!(format!("{:?}", filter.clone().layout).contains(&made));
                assert!(format!("{:?}", shared.snapshot().layout).contains(&made));
                // What is read anew is made anew.
                let read = BlockedBloomFilter::<u64>::from_bytes(&filter.to_bytes()).unwrap();
                assert!(format!("{:?}", read.layout).contains(&format!("{other:?}")));
            }
        }
        force(None).unwrap();
        assert_eq!(Choice::now(), Choice(Some(path())));
        // A choice that is open is made when it is needed, and then it is the best one.
        let best = Some(Choice::now()).filter(|_| path() != Path::Portable);
        assert_eq!(Choice::OPEN.made(), best);
        assert_eq!(Choice::now().made(), None);
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
