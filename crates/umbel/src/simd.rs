//! Eight probes at once: the same bits and the same answers by every path a processor has.
//!
//! | path | where | how a line is tested |
//! |---|---|---|
//! | [`Path::Portable`] | everywhere | probe by probe, in safe code: the definition of all others |
//! | [`Path::Avx2`] | x86-64 | all probes in one vector |
//! | [`Path::Neon`] | aarch64 | all probes by one table look-up over the line |
//!
//! The path is chosen when a filter is used first, by what the processor says it can do, and kept.
//! [`force`] chooses another, for tests and measurements: no bit and no answer depends on it.
//! Without `std` nobody asks the processor, and the path is the best one that the program was
//! compiled for.
//!
//! An island of `unsafe`: vector instructions must not run on a processor that lacks them. Whoever
//! has a token of an [`Isa`] other than [`Portable`] has asked the processor. The safe twin is
//! [`Portable`]; `tests/it/paths.rs` compares them.

mod lanes;
#[cfg(all(target_arch = "aarch64", target_endian = "little", not(miri)))]
mod neon;
mod portable;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86;

pub(crate) use lanes::{LANES, Lanes, MAX_LANES, SPLIT_SALTS, split};
pub(crate) use portable::Portable;

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
    /// Advanced SIMD of aarch64.
    Neon,
}

impl Path {
    /// All paths, the best ones last.
    pub const ALL: [Self; 3] = [Self::Portable, Self::Avx2, Self::Neon];

    /// Whether this processor can take it.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Self::Avx2 => x86::has_avx2(),
            #[cfg(all(target_arch = "aarch64", target_endian = "little", not(miri)))]
            Self::Neon => neon::has_neon(),
            #[cfg_attr(miri, allow(unreachable_patterns, reason = "depends on the target"))]
            _ => false,
        }
    }

    const fn number(self) -> u8 {
        match self {
            Self::Portable => 1,
            Self::Avx2 => 2,
            Self::Neon => 3,
        }
    }
}

/// The number of the path that was chosen, 0 until then. Never that of one that is not available.
static CHOSEN: AtomicU8 = AtomicU8::new(0);

/// The path that filters take.
#[must_use]
#[inline(always)]
pub fn path() -> Path {
    match CHOSEN.load(Relaxed) {
        1 => Path::Portable,
        2 => Path::Avx2,
        3 => Path::Neon,
        _ => choose(),
    }
}

#[cold]
fn choose() -> Path {
    let best = Path::ALL.into_iter().rfind(|path| path.is_available()).unwrap_or(Path::Portable);
    CHOSEN.store(best.number(), Relaxed);
    best
}

/// Makes all filters of this process take another path; `None` gives the choice back.
///
/// # Errors
///
/// [`Unavailable`] if this processor cannot take it. Nothing is changed then.
pub fn force(path: Option<Path>) -> Result<(), Unavailable> {
    match path {
        None => CHOSEN.store(0, Relaxed),
        Some(path) if path.is_available() => CHOSEN.store(path.number(), Relaxed),
        Some(path) => return Err(Unavailable { path }),
    }
    Ok(())
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

/// Whether the path of this process is this one, without choosing one.
#[inline(always)]
#[cfg_attr(miri, allow(dead_code, reason = "no vectors under miri"))]
fn is(path: Path) -> bool {
    CHOSEN.load(Relaxed) == path.number()
}

/// One of these calls, by the path of this process. All but the best path of a processor are out of
/// line, so that they take no registers from it.
macro_rules! by_path {
    ($avx2:ident, $neon:ident, $portable:ident, $arguments:tt) => {{
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if is(Path::Avx2) {
            // SAFETY: a path that is not available is never chosen.
            return unsafe { x86::$avx2 $arguments };
        }
        #[cfg(all(target_arch = "aarch64", target_endian = "little", not(miri)))]
        if is(Path::Neon) {
            // SAFETY: a path that is not available is never chosen.
            return unsafe { neon::$neon $arguments };
        }
        portable::$portable $arguments
    }};
}

/// Does a job on the path of this process.
#[inline(always)]
#[allow(unsafe_code, reason = "here it is known that the processor has the instructions")]
pub(crate) fn dispatch(job: impl Job) {
    by_path!(on_avx2, on_neon, on_any, (job))
}

/// Whether all probes of a digest are set, for keys in one line: line number `digest * lines / 2^64`.
///
/// # Panics
///
/// If there are no lines.
#[inline(always)]
#[allow(unsafe_code, reason = "here it is known that the processor has the instructions")]
pub(crate) fn one_line_has<W: Word>(lines: &[Line<W>], digest: u64, lanes: &Lanes) -> bool {
    assert!(!lines.is_empty());
    let Some(lines) = W::plain(lines) else { return portable::one_line_has(lines, digest, lanes) };
    by_path!(one_line_has_avx2, one_line_has_neon, one_plain_line_has, (lines, digest, lanes))
}

/// [`Isa::line_has`] for both lines of a key, on the path of this process.
#[inline(always)]
#[allow(unsafe_code, reason = "here it is known that the processor has the instructions")]
pub(crate) fn two_lines_have<W: Word>(
    lines: [&Line<W>; 2],
    digest: u64,
    lanes: [&Lanes; 2],
) -> bool {
    let (Some(first), Some(second)) = (plain(lines[0]), plain(lines[1])) else {
        return portable::two_lines_have(lines, digest, lanes);
    };
    by_path!(
        two_lines_have_avx2,
        two_lines_have_neon,
        two_plain_lines_have,
        (first, second, digest, lanes)
    )
}

/// [`Isa::line_set`] on the path of this process.
#[inline(always)]
#[allow(unsafe_code, reason = "here it is known that the processor has the instructions")]
pub(crate) fn line_set(line: &mut Line<u64>, x: u32, lanes: &Lanes) -> bool {
    by_path!(line_set_avx2, line_set_neon, line_set, (line, x, lanes))
}

/// [`Isa::block_has`] on the path of this process.
#[inline(always)]
#[allow(unsafe_code, reason = "here it is known that the processor has the instructions")]
pub(crate) fn block_has<W: Word>(block: &Block<W>, x: u32) -> bool {
    let Some(block) = plain(block) else { return Portable.block_has(block, x) };
    by_path!(block_has_avx2, block_has_neon, block_has, (block, x))
}

/// The words as they are, if nobody else can be changing them.
#[inline(always)]
fn plain<W: Word, const N: usize>(words: &[W; N]) -> Option<&[u64; N]> {
    W::plain(core::slice::from_ref(words)).map(|words| &words[0])
}
