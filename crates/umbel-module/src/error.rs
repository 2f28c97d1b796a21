//! Every way to fail below the commands.

use core::fmt;

/// Bytes that are no filter: of an RDB file, a `RESTORE` or a `LOADCHUNK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Invalid {
    /// A field has a value that it cannot have, or that does not go with the others.
    Field(&'static str),
    /// There are more or fewer bytes than the fields say.
    Length,
    /// A chunk is for a place outside of the filter.
    Offset,
    /// A chunk is longer than what is left of its link.
    Chunk,
    /// There is no memory for so large a filter.
    NoMemory,
    /// Reading failed: the engine has no more bytes to give.
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

/// A key was not added. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// The filter is full and was told not to grow.
    Full,
    /// The filter has grown as often as it may.
    MaxExpansions,
    /// There is no memory to grow into.
    NoMemory,
    /// The batch has been as much work as a batch may be.
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
