//! Errors below the commands.

use core::fmt;

/// The bytes of an RDB file, a `RESTORE` or a `LOADCHUNK` are not a valid filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Invalid {
    /// A field has an invalid value, or does not fit the others.
    Field(&'static str),
    /// The number of bytes differs from what the fields announce.
    Length,
    /// The position of a chunk is outside the filter.
    Offset,
    /// A chunk is longer than the rest of its link.
    Chunk,
    /// There is not enough memory for the filter.
    NoMemory,
    /// Reading failed: the engine has no more bytes.
    Read,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, "{name} has a value that it cannot have"),
            Self::Length => f.write_str("the fields speak of another number of bytes"),
            Self::Offset => f.write_str("this place is outside of the filter"),
            Self::Chunk => f.write_str("the chunk is longer than the rest of its link"),
            Self::NoMemory => f.write_str("there is no memory for so large a filter"),
            Self::Read => f.write_str("the bytes end too early"),
        }
    }
}

impl std::error::Error for Invalid {}

/// A key was not added. The filter is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// The filter is full and may not grow.
    Full,
    /// The filter has reached its maximum number of expansions.
    MaxExpansions,
    /// There is not enough memory to grow.
    NoMemory,
    /// The batch has reached the limit of work per batch.
    Work,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "the filter is full and does not grow",
            Self::MaxExpansions => "the filter has grown as often as it may",
            Self::NoMemory => "there is no memory to grow into",
            Self::Work => "the batch has been as much work as a batch may be",
        })
    }
}

impl std::error::Error for Refused {}
