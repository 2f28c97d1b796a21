//! The error for bytes that are not a filter of the expected system.

use core::fmt;
use umbel::split::ParquetError;
use umbel::{InvalidBytes, InvalidShape};

/// The bytes are not a filter of the expected system.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Invalid {
    /// The number of bytes differs from what the fields announce.
    Length {
        /// The expected number, or a minimum.
        expected: u64,
        /// The number that was found.
        got: u64,
    },
    /// The bytes do not have the signature of this system.
    Magic {
        /// The system.
        system: &'static str,
    },
    /// A field has an invalid value.
    Field {
        /// Its name in the sources of the system.
        name: &'static str,
        /// The value that was found.
        got: u64,
    },
    /// A field has an invalid fraction.
    Fraction {
        /// Its name in the sources of the system.
        name: &'static str,
        /// The value that was found.
        got: f64,
    },
    /// A text or a compressed stream cannot be decoded.
    Encoding {
        /// The expected encoding.
        expected: &'static str,
    },
    /// The checksum does not match the bytes.
    Checksum {
        /// The computed checksum.
        expected: u64,
        /// The stored checksum.
        got: u64,
    },
    /// The bytes match no supported format.
    Unknown,
    /// The filter cannot be created with these parameters.
    Shape(InvalidShape),
    /// The bytes are of one of this library's own formats, and are invalid.
    Bytes(InvalidBytes),
    /// The bytes are a Parquet filter, and are invalid.
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
