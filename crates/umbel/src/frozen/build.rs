//! Options, progress and errors of building a filter.

use crate::error::InvalidShape;
use crate::hash::Portable;
use crate::sizing::{Rate, Shape, check_memory, ok};
use core::convert::Infallible;
use core::fmt;

/// The largest number of bits per key in a filter for a static set: no rate below 2<sup>−32</sup>
/// is possible.
pub const MAX_BITS: u32 = 32;

/// How many constructions are tried, each with the same digests mixed differently.
pub(crate) const MAX_ATTEMPTS: u32 = 100;

/// How to build a filter for a static set: the false positive rate, the hasher, and limits.
///
/// ```
/// use umbel::BinaryFuseFilter;
/// use umbel::frozen::Build;
///
/// let how = Build::new(0.001).memory_limit(1 << 30).checked();
/// let blocked = BinaryFuseFilter::<str>::build_with(how, ["a.example", "b.example"])?;
/// assert!(blocked.contains("a.example"));
/// # Ok::<(), umbel::frozen::BuildError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Build<'a, H = Portable> {
    pub(crate) err_rate: f64,
    pub(crate) hasher: H,
    pub(crate) checked: bool,
    pub(crate) memory: u64,
    pub(crate) work: Work<'a>,
}

/// The options that the construction itself needs.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Work<'a> {
    /// The seed of the first construction.
    pub(crate) seed: u64,
    /// Whether several threads may be used.
    pub(crate) parallel: bool,
    progress: Option<&'a (dyn Fn(Progress) + Sync)>,
}

impl fmt::Debug for Work<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work")
            .field("seed", &self.seed)
            .field("parallel", &self.parallel)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

impl Work<'_> {
    /// Calls the progress callback, if there is one.
    pub(crate) fn tell(&self, stage: Stage, done: u64, total: Option<u64>) {
        if let Some(progress) = self.progress {
            progress(Progress { stage, done, total });
        }
    }
}

/// The progress of a construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The current stage.
    pub stage: Stage,
    /// The number of keys that this stage has processed.
    pub done: u64,
    /// The total number of keys, if it is known.
    pub total: Option<u64>,
}

/// The stages of a construction in order. A construction that is repeated goes back to
/// [`Solving`](Self::Solving).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Stage {
    /// Keys are read and digested.
    Reading,
    /// The system of equations of all keys is solved.
    Solving,
    /// Every key is looked up.
    Checking,
}

impl Build<'_> {
    /// With the default hasher, at this error rate.
    #[must_use]
    pub const fn new(err_rate: f64) -> Self {
        Self::with_hasher(err_rate, Portable::seeded(0))
    }
}

impl<'a, H> Build<'a, H> {
    /// With this hasher, at this error rate.
    #[must_use]
    pub const fn with_hasher(err_rate: f64, hasher: H) -> Self {
        let work = Work { seed: 0, parallel: false, progress: None };
        Self { err_rate, hasher, checked: false, memory: u64::MAX, work }
    }

    /// The seed of the first construction. It need be neither secret nor random: equal keys and
    /// equal seeds give equal filters.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.work.seed = seed;
        self
    }

    /// Looks up every key after the filter is built. Building then takes 64 more bits per key.
    #[must_use]
    pub fn checked(mut self) -> Self {
        self.checked = true;
        self
    }

    /// The maximum number of bytes that building may take, including the filter. If it is not
    /// enough, [`BuildError::Memory`] says how many would be.
    #[must_use]
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// Builds on all threads of the current rayon pool. The filter is the same, bit for bit, for
    /// any number of threads.
    #[cfg(feature = "rayon")]
    #[must_use]
    pub fn parallel(mut self) -> Self {
        self.work.parallel = true;
        self
    }

    /// Calls `progress`, some hundred times in a long construction and from any thread.
    #[must_use]
    pub fn progress(mut self, progress: &'a (dyn Fn(Progress) + Sync)) -> Self {
        self.work.progress = Some(progress);
        self
    }

    /// The number of bits per key that the rate needs.
    ///
    /// # Errors
    ///
    /// If the rate is not valid, or below 2<sup>−32</sup>.
    pub(crate) fn bits(&self) -> Result<u32, InvalidShape> {
        bits_for_rate(self.err_rate)
    }
}

impl<H: fmt::Debug> fmt::Debug for Build<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Build")
            .field("err_rate", &self.err_rate)
            .field("hasher", &self.hasher)
            .field("checked", &self.checked)
            .field("memory_limit", &self.memory)
            .field("work", &self.work)
            .finish()
    }
}

/// The fewest bits r for which 2<sup>−r</sup> is at most the rate.
pub(crate) const fn bits_for_rate(rate: f64) -> Result<u32, InvalidShape> {
    let rate = ok!(Rate::new(rate)).get();
    let (mut bits, mut reached) = (1, 0.5);
    while reached > rate {
        bits += 1;
        reached /= 2.0;
        if bits > MAX_BITS {
            return Err(InvalidShape::RateTooSmall { rate, min: reached * 2.0 });
        }
    }
    Ok(bits)
}

/// Whether fingerprints can have this many bits.
pub(crate) fn check_fingerprint(bits: u32) -> Result<(), InvalidShape> {
    let rate_of = |bits: u32| 1.0 / (1_u64 << bits.min(63)) as f64;
    match bits {
        0 => Err(InvalidShape::RateOutOfRange { rate: 1.0 }),
        1..=MAX_BITS => Ok(()),
        _ => Err(InvalidShape::RateTooSmall { rate: rate_of(bits), min: rate_of(MAX_BITS) }),
    }
}

/// The shape with the longest fingerprints that takes at most `bytes` bytes.
pub(crate) fn longest<S: Shape>(
    bytes: u64,
    plan: impl Fn(u32) -> Result<S, InvalidShape>,
) -> Result<S, InvalidShape> {
    check_memory(bytes, 0)?;
    let mut best = plan(1)?;
    let min = best.words() * 8;
    if min > bytes {
        return Err(InvalidShape::TooSmall { bytes, min });
    }
    for bits in 2..=MAX_BITS {
        match plan(bits) {
            Ok(shape) if shape.words() * 8 <= bytes => best = shape,
            _ => break,
        }
    }
    Ok(best)
}

/// Building failed, and there is no filter.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum BuildError<E = Infallible> {
    /// The shape is invalid.
    Shape(InvalidShape),
    /// The source of the keys failed.
    Source(E),
    /// Building takes more memory than the limit.
    Memory {
        /// The number of bytes it would take.
        needed: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// There was no solution in any attempt. This does not happen with well-mixed digests: the
    /// hasher gives nearly the same digest to many keys.
    Attempts {
        /// The number of attempts.
        attempts: u32,
    },
    /// The filter that was built does not find all keys. It is dropped. The cause is a faulty
    /// processor, faulty memory, or a bug in this library.
    Lost {
        /// How many keys it does not find.
        keys: u64,
    },
}

impl BuildError {
    /// The same error, for a source of keys that can fail.
    pub(crate) fn widen<E>(self) -> BuildError<E> {
        match self {
            Self::Shape(shape) => BuildError::Shape(shape),
            Self::Source(never) => match never {},
            Self::Memory { needed, limit } => BuildError::Memory { needed, limit },
            Self::Attempts { attempts } => BuildError::Attempts { attempts },
            Self::Lost { keys } => BuildError::Lost { keys },
        }
    }
}

impl<E> From<InvalidShape> for BuildError<E> {
    fn from(shape: InvalidShape) -> Self {
        Self::Shape(shape)
    }
}

impl<E: fmt::Display> fmt::Display for BuildError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape(shape) => shape.fmt(f),
            Self::Source(source) => write!(f, "the keys could not be read: {source}"),
            Self::Memory { needed, limit } => {
                write!(f, "building takes {needed} bytes of memory and may take {limit}")
            }
            Self::Attempts { attempts } => write!(
                f,
                "{attempts} constructions failed: the digests of the keys are not well mixed"
            ),
            Self::Lost { keys } => write!(f, "{keys} keys are not found in the filter"),
        }
    }
}

impl<E: core::error::Error + 'static> core::error::Error for BuildError<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Shape(shape) => Some(shape),
            Self::Source(source) => Some(source),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_the_fewest_bits_that_meet_the_rate() {
        for (rate, bits) in [
            (0.9, 1),
            (0.5, 1),
            (0.499, 2),
            (0.01, 7),
            (1.0 / 256.0, 8),
            (0.001, 10),
            (2.4e-10, 32),
        ] {
            assert_eq!(bits_for_rate(rate), Ok(bits), "{rate}");
        }
        assert_eq!(bits_for_rate(1.0 / (1_u64 << 32) as f64), Ok(32));
    }

    #[test]
    fn rates_that_take_more_than_32_bits_are_refused() {
        let min = 1.0 / (1_u64 << 32) as f64;
        let rate = min * 0.999;
        assert_eq!(bits_for_rate(rate), Err(InvalidShape::RateTooSmall { rate, min }));
        assert!(bits_for_rate(0.0).is_err() && bits_for_rate(1.0).is_err());
        assert!(bits_for_rate(f64::NAN).is_err());
    }
}
