//! What can fail in every family; each error says what was expected, what was found, and what would do.
//!
//! What can fail in one family only is in its module: [`frozen::BuildError`](crate::frozen::BuildError),
//! [`ribbon::MapError`](crate::ribbon::MapError), [`split::ParquetError`](crate::split::ParquetError).

use crate::parts::grouped::Grouped;
use core::fmt;

/// A filter of this shape cannot be made.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum InvalidShape {
    /// The error rate is not a number above 0 and below 1.
    RateOutOfRange {
        /// What was asked for.
        rate: f64,
    },
    /// Digests of 64 bits cannot give so small a rate for so many items.
    RateTooSmall {
        /// What was asked for.
        rate: f64,
        /// The smallest rate for this number of items.
        min: f64,
    },
    /// More bits would be needed than any filter may have.
    TooLarge {
        /// How many it would take; `u64::MAX` where that is not enough to tell.
        bits: u64,
        /// How many there may be.
        max: u64,
    },
    /// The memory given holds no filter of this rate, or none at all.
    TooSmall {
        /// How many bytes there are.
        bytes: u64,
        /// How many it takes at least.
        min: u64,
    },
    /// A number is not in its range. The families say which numbers they have.
    OutOfRange {
        /// What it counts, such as `probes`.
        what: &'static str,
        /// What was asked for.
        got: u64,
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// A number that need not be whole is not in its range.
    OutsideOf {
        /// What it measures, such as `growth`.
        what: &'static str,
        /// What was asked for.
        got: f64,
        /// It must be above this.
        above: f64,
        /// And below this.
        below: f64,
    },
    /// A number is not a multiple of what it must be one of.
    NotAMultiple {
        /// What it counts, such as `bits`.
        what: &'static str,
        /// What was asked for.
        got: u64,
        /// What it must be a multiple of.
        of: u64,
    },
    /// The number of bits must be odd for these kernels.
    EvenBits {
        /// What was asked for.
        bits: u64,
    },
    /// The allocator refused.
    OutOfMemory {
        /// How many bytes it was asked for.
        bytes: u64,
    },
}

impl InvalidShape {
    /// Checks that a number is in its range.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`](Self::OutOfRange) if not.
    pub const fn check_range(what: &'static str, got: u64, min: u64, max: u64) -> Result<(), Self> {
        if got < min || got > max {
            return Err(Self::OutOfRange { what, got, min, max });
        }
        Ok(())
    }

    /// An error unless a number is above one and below another.
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
            // With digests of 64 bits, so many keys have equal ones at any rate.
            Self::RateTooSmall { min, .. } if min >= 1.0 => {
                f.write_str("there are more keys than a filter can tell apart by 64 bits each")
            }
            Self::RateTooSmall { rate, min } => write!(
                f,
                "a false positive rate of {rate:e} is too small for so many keys: at least {:.1e} is possible",
                // Rounded up: what is told can be asked for.
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

/// Two filters cannot be united or merged: their bits do not mean the same, or there is no room for both.
/// Neither was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Incompatible {
    /// They have different numbers of bits.
    Bits {
        /// Of the filter to be changed.
        expected: u64,
        /// Of the other one.
        got: u64,
    },
    /// They probe a different number of times.
    Probes {
        /// Of the filter to be changed.
        expected: u32,
        /// Of the other one.
        got: u32,
    },
    /// Their cells are not of one width.
    Cells {
        /// The bits of a cell of the filter to be changed.
        expected: u32,
        /// Of the other one.
        got: u32,
    },
    /// They tell different numbers of keys apart: other quotients, or other remainders.
    Prefixes {
        /// Of the filter to be changed.
        expected: u64,
        /// Of the other one.
        got: u64,
    },
    /// There is no room for the keys of both.
    Room {
        /// How many keys they have together.
        keys: u64,
        /// How many there can be room for at the most; fewer if keys crowd in one place.
        most: u64,
    },
    /// The allocator refused the memory for both.
    OutOfMemory {
        /// How many bytes it was asked for.
        bytes: u64,
    },
    /// They hash keys differently: another seed, another secret, another hasher.
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

/// The key has the wrong length: keys of a filter of numbers all have as many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidKey {
    /// How many bytes a key has.
    pub expected: usize,
    /// How many there are.
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

/// A batch met a key that there is no room for. The keys before it are in the filter, and it and all
/// keys after it are not: the filter is what inserting them one by one, up to the first that is
/// [`Full`], would have made of it. To go on, insert the rest from `inserted` on into a filter with
/// more room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchFull {
    /// How many keys of the batch were inserted: the first ones, in their order.
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

/// These bytes are not a filter of the wanted kind.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum InvalidBytes {
    /// There are fewer or more bytes than the header announces.
    Length {
        /// How many there should be.
        expected: u64,
        /// How many there are.
        got: u64,
    },
    /// They do not begin as a filter does.
    Magic,
    /// They were written by a later version of the format.
    Version {
        /// The version this library reads.
        expected: u16,
        /// The version in the header.
        got: u16,
    },
    /// They hold another family of filter.
    Family {
        /// The id of the wanted family.
        expected: u16,
        /// The id in the header.
        got: u16,
    },
    /// They were made with another hash.
    Hash {
        /// The id of the wanted hash.
        expected: u16,
        /// The id in the header.
        got: u16,
    },
    /// They were made for keys of another [kind](crate::hash::Kind).
    Keys {
        /// The number of the wanted kind.
        expected: u16,
        /// The number in the header.
        got: u16,
    },
    /// They have a family, a hash or a kind of keys that this library does not know.
    Unknown {
        /// Which of them.
        field: &'static str,
        /// The number in the header.
        got: u16,
    },
    /// They were made with kernels that the family does not have.
    Kernels {
        /// The id in the header.
        got: u16,
    },
    /// They were made with the wanted hash under another seed or secret.
    Hasher,
    /// They were made with a hasher that the header does not tell: a secret, or a seed of its own. It
    /// must be brought.
    Secret,
    /// The header has a flag that this version does not know.
    Flags {
        /// All flags.
        got: u16,
    },
    /// Somebody was changing the words in place, and has not finished.
    Open,
    /// The header was changed after it was written.
    Header,
    /// A block of words was changed after it was written.
    Block {
        /// Its number, blocks of 8 KiB counted from 0.
        number: u64,
    },
    /// The checksums of the blocks were changed after they were written.
    Table,
    /// The header is whole, but its fields contradict each other or what a filter may be.
    Inconsistent,
    /// The filter cannot be made.
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
