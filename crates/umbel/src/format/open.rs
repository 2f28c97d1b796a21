//! Options for opening a filter, and the errors.

use super::family::Family;
use super::file;
use crate::error::InvalidBytes;
use crate::storage::Allocate;
use std::path::Path;
use std::{fmt, io};

/// The default maximum number of bytes of a filter: 64 GiB.
const LIMIT: u64 = 64 << 30;

/// How to open a filter: the hasher, and the maximum size.
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
    /// With the hasher in the header, up to 64 GiB.
    #[must_use]
    pub const fn new() -> Self {
        Self { hasher: None, limit: LIMIT, unfinished: false }
    }

    /// The same options with another hasher, if there is one.
    pub(crate) fn try_map<J, E>(
        self,
        other: impl FnOnce(H) -> Result<J, E>,
    ) -> Result<Opening<J>, E> {
        let Self { hasher, limit, unfinished } = self;
        Ok(Opening { hasher: hasher.map(other).transpose()?, limit, unfinished })
    }

    /// With this hasher, which must be the one that the filter was made with.
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

    /// Also accepts a filter whose file a process was changing in place without finishing.
    ///
    /// Such a filter has every key that was inserted before the last flush, and possibly some later
    /// keys. Other damage to its words is not detected, because their checksums are out of date.
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

    /// Reads one filter. The rest of the input is not read.
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

/// Opening a filter failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// Reading failed.
    Io(io::Error),
    /// The path is not a regular file, but a directory, a device or a pipe.
    NotAFile,
    /// The filter has more bytes than the limit.
    TooLarge {
        /// The number of bytes it has.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The bytes are not a filter of the expected type.
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
