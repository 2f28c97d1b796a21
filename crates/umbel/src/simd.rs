//! Eight probes at once: the same bits and the same answers by every path a processor has.
//!
//! | path | where | how a line is tested |
//! |---|---|---|
//! | [`Path::Portable`] | everywhere | probe by probe, in safe code: the definition of all others |
//! | [`Path::Avx2`] | x86-64 | all probes in one vector |
//! | [`Path::Avx512`] | x86-64 | the same with fewer instructions |
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
    /// AVX2 with the vector-length extensions of AVX-512.
    Avx512,
    /// Advanced SIMD of aarch64.
    Neon,
}

impl Path {
    /// All paths, the best ones last.
    pub const ALL: [Self; 4] = [Self::Portable, Self::Avx2, Self::Avx512, Self::Neon];

    /// Whether this processor can take it.
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
            #[cfg_attr(miri, allow(unreachable_patterns, reason = "depends on the target"))]
            _ => false,
        }
    }

    const fn number(self) -> u8 {
        match self {
            Self::Portable => 1,
            Self::Avx2 => 2,
            Self::Avx512 => 3,
            Self::Neon => 4,
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
        3 => Path::Avx512,
        4 => Path::Neon,
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

/// One of these calls, by the path of this process.
macro_rules! by_path {
    (
        $avx2:ident, $avx512:ident, $neon:ident, $arguments:tt,
        else $portable:expr
    ) => {
        match path() {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            // SAFETY: `path` gives only paths that are available.
            Path::Avx2 => unsafe { x86::$avx2 $arguments },
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            // SAFETY: `path` gives only paths that are available.
            Path::Avx512 => unsafe { x86::$avx512 $arguments },
            #[cfg(all(target_arch = "aarch64", target_endian = "little", not(miri)))]
            // SAFETY: `path` gives only paths that are available.
            Path::Neon => unsafe { neon::$neon $arguments },
            _ => $portable,
        }
    };
}

/// Does a job on the path of this process.
#[inline(always)]
#[allow(unsafe_code, reason = "here it is known that the processor has the instructions")]
pub(crate) fn dispatch(job: impl Job) {
    by_path!(on_avx2, on_avx512, on_neon, (job), else job.run(Portable));
}

/// [`Isa::line_has`] on the path of this process.
#[inline(always)]
#[allow(unsafe_code, reason = "here it is known that the processor has the instructions")]
pub(crate) fn line_has<W: Word>(line: &Line<W>, x: u32, lanes: &Lanes) -> bool {
    let portable = || Portable.line_has(line, x, lanes);
    let Some(line) = W::plain(line) else { return portable() };
    by_path!(
        line_has_avx2, line_has_avx512, line_has_neon, (line, x, lanes),
        else portable()
    )
}

/// [`Isa::line_has`] for both of two lines, on the path of this process.
#[inline(always)]
#[allow(unsafe_code, reason = "here it is known that the processor has the instructions")]
pub(crate) fn lines_have<W: Word>(
    first: &Line<W>,
    second: &Line<W>,
    digest: u64,
    lanes: [&Lanes; 2],
) -> bool {
    let portable = || {
        Portable.line_has(first, digest as u32, lanes[0])
            && Portable.line_has(second, (digest >> 32) as u32, lanes[1])
    };
    let (Some(first), Some(second)) = (W::plain(first), W::plain(second)) else {
        return portable();
    };
    by_path!(
        lines_have_avx2, lines_have_avx512, lines_have_neon, (first, second, digest, lanes),
        else portable()
    )
}

/// [`Isa::block_has`] on the path of this process.
#[inline(always)]
#[allow(unsafe_code, reason = "here it is known that the processor has the instructions")]
pub(crate) fn block_has<W: Word>(block: &Block<W>, x: u32) -> bool {
    let portable = || Portable.block_has(block, x);
    let Some(block) = W::plain(block) else { return portable() };
    by_path!(block_has_avx2, block_has_avx2, block_has_neon, (block, x), else portable())
}
