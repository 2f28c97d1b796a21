//! The errors that every family has in common. Each message says what was expected, what was found,
//! and what to do next.
//!
//! Errors of a single family are in its module: [`frozen::BuildError`](crate::frozen::BuildError),
//! [`ribbon::MapError`](crate::ribbon::MapError),
//! [`split::ParquetError`](crate::split::ParquetError).

use crate::parts::grouped::Grouped;
use core::fmt;

/// The shape of a filter is invalid or too large.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum InvalidShape {
    /// The error rate is not a number above 0 and below 1.
    RateOutOfRange {
        /// The requested rate.
        rate: f64,
    },
    /// Digests of 64 bits cannot give such a small rate for this number of items.
    RateTooSmall {
        /// The requested rate.
        rate: f64,
        /// The smallest rate for this number of items.
        min: f64,
    },
    /// The filter would need more bits than the maximum.
    TooLarge {
        /// The number of bits it would need; `u64::MAX` if it is larger or unknown.
        bits: u64,
        /// The maximum.
        max: u64,
    },
    /// The given memory is too small for a filter of this rate, or for any filter.
    TooSmall {
        /// The given number of bytes.
        bytes: u64,
        /// The minimum number of bytes.
        min: u64,
    },
    /// An integer parameter is out of its range. The families document their parameters.
    OutOfRange {
        /// The name of the parameter, such as `probes`.
        what: &'static str,
        /// The requested value.
        got: u64,
        /// The minimum.
        min: u64,
        /// The maximum.
        max: u64,
    },
    /// A real-valued parameter is out of its range.
    OutsideOf {
        /// The name of the parameter, such as `growth`.
        what: &'static str,
        /// The requested value.
        got: f64,
        /// The value must be above this.
        above: f64,
        /// The value must be below this.
        below: f64,
    },
    /// A parameter is not a multiple of the required number.
    NotAMultiple {
        /// The name of the parameter, such as `bits`.
        what: &'static str,
        /// The requested value.
        got: u64,
        /// The number that it must be a multiple of.
        of: u64,
    },
    /// The number of bits must be odd for these kernels.
    EvenBits {
        /// The requested number of bits.
        bits: u64,
    },
    /// The allocator refused.
    OutOfMemory {
        /// The number of bytes of the allocation.
        bytes: u64,
    },
}

impl InvalidShape {
    /// Checks that a number is in its range.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`](Self::OutOfRange) if it is not.
    pub const fn check_range(what: &'static str, got: u64, min: u64, max: u64) -> Result<(), Self> {
        if got < min || got > max {
            return Err(Self::OutOfRange { what, got, min, max });
        }
        Ok(())
    }

    /// An error unless a number is above one bound and below another.
    #[cfg(feature = "alloc")]
    pub(crate) const fn check_between(
        what: &'static str,
        got: f64,
        above: f64,
        below: f64,
    ) -> Result<(), Self> {
        if got > above && got < below {
            return Ok(());
        }
        Err(Self::OutsideOf { what, got, above, below })
    }
}

impl fmt::Display for InvalidShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::RateOutOfRange { rate } => {
                write!(f, "expected a false positive rate above 0 and below 1, got {rate}")
            }
            // With this many keys, digests of 64 bits collide too often for any rate.
            Self::RateTooSmall { min, .. } if min >= 1.0 => {
                f.write_str("there are more keys than a filter can tell apart by 64 bits each")
            }
            Self::RateTooSmall { rate, min } => write!(
                f,
                "a false positive rate of {rate:e} is too small for so many keys: at least {:.1e} is possible",
                // Rounded up, so that the rate in the message is accepted.
                min * 1.05
            ),
            Self::TooLarge { bits, max } => {
                write!(
                    f,
                    "{} bits are too many, at most {} are possible",
                    Grouped(bits),
                    Grouped(max)
                )
            }
            Self::TooSmall { bytes, min } => {
                write!(
                    f,
                    "{} bytes are too few, at least {} are needed",
                    Grouped(bytes),
                    Grouped(min)
                )
            }
            Self::OutOfRange { what, got, min, max } if min == max => {
                write!(f, "expected {min} {what}, got {got}")
            }
            Self::OutOfRange { what, got, min, max } => {
                write!(
                    f,
                    "expected {} to {} {what}, got {}",
                    Grouped(min),
                    Grouped(max),
                    Grouped(got)
                )
            }
            Self::OutsideOf { what, got, above, below } if below == f64::INFINITY => {
                write!(f, "expected a finite {what} above {above}, got {got}")
            }
            Self::OutsideOf { what, got, above, below } => {
                write!(f, "expected a {what} above {above} and below {below}, got {got}")
            }
            Self::NotAMultiple { what, got, of } => {
                write!(f, "expected a multiple of {of} {what}, got {}", Grouped(got))
            }
            Self::EvenBits { bits } => {
                write!(f, "expected an odd number of bits, got {}", Grouped(bits))
            }
            Self::OutOfMemory { bytes } => {
                write!(f, "there is not enough memory: the filter needs {} bytes", Grouped(bytes))
            }
        }
    }
}

impl core::error::Error for InvalidShape {}

/// Two filters cannot be united or merged: they are not compatible, or there is no room for both.
/// Neither was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Incompatible {
    /// They have different numbers of bits.
    Bits {
        /// The bits of the filter to be changed.
        expected: u64,
        /// The bits of the other filter.
        got: u64,
    },
    /// They have different numbers of probes.
    Probes {
        /// The probes of the filter to be changed.
        expected: u32,
        /// The probes of the other filter.
        got: u32,
    },
    /// Their cells have different widths.
    Cells {
        /// The bits of a cell of the filter to be changed.
        expected: u32,
        /// The bits of a cell of the other filter.
        got: u32,
    },
    /// They have different numbers of prefixes, because quotients or remainders differ.
    Prefixes {
        /// The prefixes of the filter to be changed.
        expected: u64,
        /// The prefixes of the other filter.
        got: u64,
    },
    /// There is no room for the keys of both.
    Room {
        /// The number of keys of both together.
        keys: u64,
        /// The maximum number of keys; it is lower if keys crowd in one place.
        most: u64,
    },
    /// The allocator refused the memory for both.
    OutOfMemory {
        /// The number of bytes of the allocation.
        bytes: u64,
    },
    /// They hash keys differently: the seed, the secret or the hasher differs.
    Hasher,
    /// They map digests to positions differently.
    Kernels,
}

impl fmt::Display for Incompatible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Bits { expected, got } => {
                write!(
                    f,
                    "one filter has {} bits and the other {}",
                    Grouped(expected),
                    Grouped(got)
                )
            }
            Self::Probes { expected, got } => {
                write!(f, "one filter probes {expected} times and the other {got} times")
            }
            Self::Cells { expected, got } => {
                write!(f, "one filter has cells of {expected} bits and the other of {got}")
            }
            Self::Prefixes { expected, got } => {
                write!(
                    f,
                    "one filter tells {} keys apart and the other {}",
                    Grouped(expected),
                    Grouped(got)
                )
            }
            Self::Room { keys, most } => {
                write!(
                    f,
                    "no room for the {} keys of both where there is room for at most {}: merge into a larger filter",
                    Grouped(keys),
                    Grouped(most)
                )
            }
            Self::OutOfMemory { bytes } => {
                write!(
                    f,
                    "there is not enough memory: the filter of both needs {} bytes",
                    Grouped(bytes)
                )
            }
            Self::Hasher => f.write_str("the filters hash keys with different seeds or secrets"),
            Self::Kernels => f.write_str("the filters map digests to positions differently"),
        }
    }
}

impl core::error::Error for Incompatible {}

/// The key has the wrong length for this filter's key type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidKey {
    /// The number of bytes of every key of this filter.
    pub expected: usize,
    /// The number of bytes of the given key.
    pub got: usize,
}

impl fmt::Display for InvalidKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { expected, got } = self;
        write!(
            f,
            "the key has the wrong length for this filter: expected {expected} bytes, got {got}"
        )
    }
}

impl core::error::Error for InvalidKey {}

/// There is no room for the key. The filter is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the filter is full")
    }
}

impl core::error::Error for Full {}

/// A batch contains a key for which there is no room. The keys before it are in the filter; it and
/// all keys after it are not. The filter is the same as if the keys had been inserted one by one,
/// up to the first that is [`Full`]. To continue, insert the keys from `inserted` on into a filter
/// with more room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchFull {
    /// How many keys of the batch were inserted: the first ones in order.
    pub inserted: usize,
}

impl fmt::Display for BatchFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{Full}: of this batch, it took the first {} keys and no others",
            Grouped(self.inserted as u64)
        )
    }
}

impl core::error::Error for BatchFull {}

impl From<BatchFull> for Full {
    fn from(_: BatchFull) -> Self {
        Self
    }
}

/// The bytes are not a filter of the expected type.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum InvalidBytes {
    /// The number of bytes is not the one that the header announces.
    Length {
        /// The announced number of bytes.
        expected: u64,
        /// The actual number of bytes.
        got: u64,
    },
    /// The first bytes are not those of a filter.
    Magic,
    /// They were written by a later version of the format.
    Version {
        /// The version this library reads.
        expected: u16,
        /// The version in the header.
        got: u16,
    },
    /// They contain a filter of another family.
    Family {
        /// The id of the expected family.
        expected: u16,
        /// The id in the header.
        got: u16,
    },
    /// They were made with another hash.
    Hash {
        /// The id of the expected hash.
        expected: u16,
        /// The id in the header.
        got: u16,
    },
    /// They were made for keys of another [kind](crate::hash::Kind).
    Keys {
        /// The number of the expected kind.
        expected: u16,
        /// The number in the header.
        got: u16,
    },
    /// The header has a family, a hash or a kind of keys that this library does not know.
    Unknown {
        /// The field.
        field: &'static str,
        /// The number in the header.
        got: u16,
    },
    /// They were made with kernels that the family does not have.
    Kernels {
        /// The id in the header.
        got: u16,
    },
    /// They were made with the expected hash, but another seed or secret.
    Hasher,
    /// They were made with a hasher that the header does not fully describe: it has a secret, or a
    /// custom seed. The caller must provide the hasher.
    Secret,
    /// The header has a flag that this version does not know.
    Flags {
        /// All flags.
        got: u16,
    },
    /// A process was changing the words in place, and has not finished.
    Open,
    /// The header was changed after it was written.
    Header,
    /// A block of words was changed after it was written.
    Block {
        /// The number of the block. Blocks of 8 KiB are counted from 0.
        number: u64,
    },
    /// The checksums of the blocks were changed after they were written.
    Table,
    /// The checksum of the header is right, but its fields contradict each other or the limits of a
    /// filter.
    Inconsistent,
    /// The filter cannot be created.
    Shape(InvalidShape),
}

impl fmt::Display for InvalidBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Length { expected, got } => {
                write!(
                    f,
                    "the filter has the wrong length: expected {} bytes, got {}",
                    Grouped(expected),
                    Grouped(got)
                )
            }
            Self::Magic => f.write_str("these bytes do not begin as a filter does"),
            Self::Version { expected, got } => {
                write!(
                    f,
                    "expected format version {expected}, got {got}: a newer version of umbel may read it"
                )
            }
            Self::Family { expected, got } => {
                write!(f, "expected a filter of family {expected}, got one of family {got}")
            }
            Self::Hash { expected, got } => {
                write!(f, "expected a filter with hash {expected}, got one with hash {got}")
            }
            Self::Keys { expected, got } => {
                write!(f, "expected a filter of keys of kind {expected}, got one of kind {got}")
            }
            Self::Kernels { got } => {
                write!(f, "this filter uses kernels {got}, which its family does not have")
            }
            Self::Hasher => f.write_str("this filter was made with another seed or secret"),
            Self::Header => f.write_str("the header is damaged: its checksum does not match"),
            Self::Unknown { field, got } => {
                write!(f, "this filter has {field} number {got}, which this version does not know")
            }
            Self::Secret => f.write_str("this filter opens only with the hasher it was made with"),
            Self::Flags { got } => {
                write!(
                    f,
                    "this filter has flags {got:#x}, some of which this version does not know"
                )
            }
            Self::Open => {
                f.write_str("a program was changing this filter in place and has not finished")
            }
            Self::Block { number } => {
                write!(f, "block {number} is damaged: its checksum does not match")
            }
            Self::Table => f.write_str("the checksums of the blocks are damaged"),
            Self::Inconsistent => f.write_str("the fields of the header contradict each other"),
            Self::Shape(ref shape) => shape.fmt(f),
        }
    }
}

impl core::error::Error for InvalidBytes {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Shape(shape) => Some(shape),
            _ => None,
        }
    }
}

impl From<InvalidShape> for InvalidBytes {
    fn from(shape: InvalidShape) -> Self {
        Self::Shape(shape)
    }
}
