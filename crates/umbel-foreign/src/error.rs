//! Why bytes are not a filter of another system.

use core::fmt;
use umbel::split::ParquetError;
use umbel::{InvalidBytes, InvalidShape};

/// These bytes are not a filter of the wanted system.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Invalid {
    /// There are fewer or more bytes than the fields announce.
    Length {
        /// How many there should be, or how many there should be at least.
        expected: u64,
        /// How many there are.
        got: u64,
    },
    /// They do not begin, or end, as a filter of this system does.
    Magic {
        /// The system.
        system: &'static str,
    },
    /// A field has a value that it cannot have.
    Field {
        /// Its name in the sources of the system.
        name: &'static str,
        /// What it says.
        got: u64,
    },
    /// A field has a fraction that it cannot have.
    Fraction {
        /// Its name in the sources of the system.
        name: &'static str,
        /// What it says.
        got: f64,
    },
    /// A text or a compressed stream cannot be decoded.
    Encoding {
        /// What it should be.
        expected: &'static str,
    },
    /// A checksum does not belong to the bytes.
    Checksum {
        /// What is computed.
        expected: u64,
        /// What is written.
        got: u64,
    },
    /// No system is known whose filters begin like this.
    Unknown,
    /// The filter cannot be made.
    Shape(InvalidShape),
    /// The filter is one of this library's own formats, and is wrong.
    Bytes(InvalidBytes),
    /// The filter is that of a Parquet file, and is wrong.
    Parquet(ParquetError),
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Length { expected, got } if got < expected => {
                write!(f, "expected {expected} bytes, found {got}: the filter is cut off")
            }
            Self::Length { expected, got } => {
                write!(f, "expected {expected} bytes, found {got}: more bytes follow the filter")
            }
            Self::Magic { system } => write!(f, "these bytes are not a filter of {system}"),
            Self::Field { name, got } => write!(f, "the field {name} cannot be {got}"),
            Self::Fraction { name, got } => write!(f, "the field {name} cannot be {got}"),
            Self::Encoding { expected } => {
                write!(f, "expected {expected}, and it cannot be decoded")
            }
            Self::Checksum { expected, got } => {
                write!(
                    f,
                    "the checksum is {got:016x}, expected {expected:016x}: the bytes were changed"
                )
            }
            Self::Unknown => {
                f.write_str("these bytes are not a filter of any system that is known here")
            }
            Self::Shape(shape) => shape.fmt(f),
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Parquet(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for Invalid {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Shape(shape) => Some(shape),
            Self::Bytes(bytes) => Some(bytes),
            Self::Parquet(error) => Some(error),
            _ => None,
        }
    }
}

impl From<InvalidBytes> for Invalid {
    fn from(bytes: InvalidBytes) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<ParquetError> for Invalid {
    fn from(error: ParquetError) -> Self {
        Self::Parquet(error)
    }
}

impl From<InvalidShape> for Invalid {
    fn from(shape: InvalidShape) -> Self {
        Self::Shape(shape)
    }
}
