//! Why a filter of any family was not changed.

use crate::error::{BatchFull, Full, Incompatible, InvalidKey};
use core::fmt;

/// The family of a filter cannot do what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The name of the family.
    pub family: &'static str,
    /// What was asked of it.
    pub what: &'static str,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a {} filter cannot {}", self.family, self.what)
    }
}

impl core::error::Error for Unsupported {}

/// Why a filter was not changed, or not by all keys of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ChangeError {
    /// The family cannot.
    Unsupported(Unsupported),
    /// The bytes are no key of this filter.
    Key(InvalidKey),
    /// There is no room.
    Full,
    /// There is no room for a key of a batch. The keys before it were inserted.
    BatchFull(BatchFull),
    /// The two filters are of different families.
    Family {
        /// The family of the filter to be changed.
        expected: &'static str,
        /// The family of the other one.
        got: &'static str,
    },
    /// The two filters differ in more than what was inserted.
    Incompatible(Incompatible),
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported(error) => error.fmt(f),
            Self::Key(error) => error.fmt(f),
            // The number of a batch is for the program, the message for its user.
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
