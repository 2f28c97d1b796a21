//! How a filter is opened, and what can go wrong.

use super::family::Family;
use super::file;
use crate::error::InvalidBytes;
use crate::storage::Allocate;
use std::path::Path;
use std::{fmt, io};

/// The most bytes of a filter that are read unless another number is given: 64 GiB.
const LIMIT: u64 = 64 << 30;

/// How a filter is opened: with which hasher, up to which size.
///
/// ```no_run
/// use umbel::format::Opening;
/// use umbel::{BloomFilter, Keyed};
///
/// let secret = [7; 16]; // from where you keep it
/// let seen: BloomFilter<str, Keyed> =
///     Opening::new().hasher(Keyed::new(secret)).limit(1 << 30).load("seen.umbel")?;
/// # Ok::<(), umbel::format::OpenError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Opening<H> {
    pub(super) hasher: Option<H>,
    pub(super) limit: u64,
    pub(super) unfinished: bool,
}

impl<H> Opening<H> {
    /// With the hasher that the filter tells, up to 64 GiB.
    #[must_use]
    pub const fn new() -> Self {
        Self { hasher: None, limit: LIMIT, unfinished: false }
    }

    /// The same with another hasher in the place of the one that was given, if one was.
    pub(crate) fn try_map<J, E>(
        self,
        other: impl FnOnce(H) -> Result<J, E>,
    ) -> Result<Opening<J>, E> {
        let Self { hasher, limit, unfinished } = self;
        Ok(Opening { hasher: hasher.map(other).transpose()?, limit, unfinished })
    }

    /// With this hasher, which must be the one the filter was made with.
    #[must_use]
    pub fn hasher(mut self, hasher: H) -> Self {
        self.hasher = Some(hasher);
        self
    }

    /// Up to this many bytes.
    #[must_use]
    pub fn limit(mut self, bytes: u64) -> Self {
        self.limit = bytes;
        self
    }

    /// Filters too whose file somebody was changing in place, and has not finished.
    ///
    /// Such a filter has every key that was inserted before the last flush, and maybe some that came
    /// later. What else may have happened to its words is not noticed: they have no checksums that
    /// could tell.
    #[must_use]
    pub fn unfinished(mut self) -> Self {
        self.unfinished = true;
        self
    }

    /// The filter at `path`, copied into memory.
    ///
    /// # Errors
    ///
    /// See [`OpenError`].
    pub fn load<F>(self, path: impl AsRef<Path>) -> Result<F, OpenError>
    where
        F: Family<Hasher = H>,
        F::Storage: Allocate,
    {
        file::load(path.as_ref(), self)
    }

    /// The filter that comes next from a reader. What follows it is not read.
    ///
    /// # Errors
    ///
    /// See [`OpenError`].
    pub fn read<F>(self, mut reader: impl io::Read) -> Result<F, OpenError>
    where
        F: Family<Hasher = H>,
        F::Storage: Allocate,
    {
        file::read(&mut reader, self)
    }
}

impl<H> Default for Opening<H> {
    fn default() -> Self {
        Self::new()
    }
}

/// A filter could not be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// Reading failed.
    Io(io::Error),
    /// There is something else than a file: a directory, a device, a pipe.
    NotAFile,
    /// The filter has more bytes than may be read.
    TooLarge {
        /// How many it has.
        bytes: u64,
        /// How many it may have.
        limit: u64,
    },
    /// What was read is not a filter of the wanted kind.
    Invalid(InvalidBytes),
}

impl From<InvalidBytes> for OpenError {
    fn from(error: InvalidBytes) -> Self {
        Self::Invalid(error)
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::NotAFile => f.write_str("this is not a file"),
            Self::TooLarge { bytes, limit } => {
                write!(f, "the filter has {bytes} bytes, more than the limit of {limit}")
            }
            Self::Invalid(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Invalid(error) => Some(error),
            _ => None,
        }
    }
}
