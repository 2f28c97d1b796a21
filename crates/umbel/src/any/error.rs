//! Errors of changes to a filter of any family.

use crate::error::{BatchFull, Full, Incompatible, InvalidKey};
use core::fmt;

/// The family of a filter does not support the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The name of the family.
    pub family: &'static str,
    /// The operation.
    pub what: &'static str,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a {} filter cannot {}", self.family, self.what)
    }
}

impl core::error::Error for Unsupported {}

/// Why a filter was not changed, or only by some keys of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ChangeError {
    /// The family does not support the operation.
    Unsupported(Unsupported),
    /// The key has the wrong length for this filter.
    Key(InvalidKey),
    /// There is no room.
    Full,
    /// There is no room for a key of a batch. The keys before it were inserted.
    BatchFull(BatchFull),
    /// The two filters are of different families.
    Family {
        /// The family of the filter to be changed.
        expected: &'static str,
        /// The family of the other filter.
        got: &'static str,
    },
    /// The two filters differ in more than their contents.
    Incompatible(Incompatible),
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported(error) => error.fmt(f),
            Self::Key(error) => error.fmt(f),
            // The number of inserted keys is for the program; the message is for its user.
            Self::Full | Self::BatchFull(_) => Full.fmt(f),
            Self::Family { expected, got } => {
                write!(f, "expected two filters of one family, got a {expected} and a {got} filter")
            }
            Self::Incompatible(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ChangeError {}

macro_rules! from {
    ($($error:ident => $variant:ident),*) => {$(
        impl From<$error> for ChangeError {
            fn from(error: $error) -> Self {
                Self::$variant(error)
            }
        }
    )*};
}

from!(Unsupported => Unsupported, InvalidKey => Key, BatchFull => BatchFull, Incompatible => Incompatible);

impl From<Full> for ChangeError {
    fn from(Full: Full) -> Self {
        Self::Full
    }
}
