//! One small type per way to fail; each says what was wrong and what would be right.

use crate::parts::grouped::Grouped;
use core::fmt;
use core::time::Duration;

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
    /// The number of probes is not from 1 to [`MAX_PROBES`](crate::kernels::MAX_PROBES).
    ProbesOutOfRange {
        /// What was asked for.
        probes: u32,
        /// How many the kernels can give.
        max: u32,
    },
    /// The number of lines a key has bits in is neither 1 nor 2.
    LinesOutOfRange {
        /// What was asked for.
        lines: u32,
        /// How many there may be.
        max: u32,
    },
    /// The bits are not whole lines of 512, or the probes not the same in both lines of a key.
    PartialLine {
        /// How many bits there are.
        bits: u64,
        /// How many probes.
        probes: u32,
    },
    /// The bits are not whole blocks of 256, or the probes not 8.
    PartialBlock {
        /// How many bits there are.
        bits: u64,
        /// How many probes.
        probes: u32,
    },
    /// Blocks cannot be folded in pairs if one is left over.
    OddBlocks {
        /// How many there are.
        blocks: u64,
    },
    /// The number of bits must be odd for these kernels.
    EvenBits {
        /// What was asked for.
        bits: u64,
    },
    /// The remainders of a quotient filter are not from 2 to 32 bits long, or would not be with all
    /// the doublings that are planned.
    RemainderOutOfRange {
        /// How many bits they would take.
        bits: u64,
    },
    /// The growth of a scalable filter is not a finite number above 1.
    GrowthOutOfRange {
        /// What was asked for.
        growth: f64,
    },
    /// The tightening of a scalable filter is not a number above 0 and below 1.
    TighteningOutOfRange {
        /// What was asked for.
        tightening: f64,
    },
    /// A scalable filter has as many levels as it may have.
    TooManyLevels {
        /// How many that are.
        max: u32,
    },
    /// The number of epochs of a window filter is not from 2 to
    /// [`MAX_EPOCHS`](crate::window::MAX_EPOCHS).
    EpochsOutOfRange {
        /// What was asked for.
        epochs: u32,
        /// How many there may be.
        max: u32,
    },
    /// The time of a window filter is zero, or too long.
    TimeOutOfRange {
        /// What was asked for.
        time: Duration,
        /// The longest time.
        max: Duration,
    },
    /// The number of bits in a cell is not from 1 to `max`.
    WidthOutOfRange {
        /// What was asked for.
        width: u32,
        /// How many there may be.
        max: u32,
    },
    /// The cells that an insertion counts down are none, or more than there are: it takes more cells,
    /// fewer bits in each, or another rate.
    DecrementsOutOfRange {
        /// How many cells would have to be counted down.
        decrements: u64,
        /// How many cells there are.
        max: u64,
    },
    /// Fingerprints of so many bits are not possible, or not in so many buckets.
    FingerprintOutOfRange {
        /// What was asked for.
        bits: u32,
        /// The fewest.
        min: u32,
        /// The most.
        max: u32,
    },
    /// The allocator refused.
    OutOfMemory {
        /// How many bytes it was asked for.
        bytes: u64,
    },
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
            Self::ProbesOutOfRange { probes, max } => {
                write!(f, "{probes} probes are not possible, it takes from 1 to {max}")
            }
            Self::LinesOutOfRange { lines, max } => {
                write!(f, "{lines} lines a key are not possible, it takes from 1 to {max}")
            }
            Self::PartialLine { bits, probes } => {
                write!(
                    f,
                    "{} bits and {probes} probes cannot be dealt out to whole lines",
                    Grouped(bits)
                )
            }
            Self::PartialBlock { bits, probes } => {
                write!(
                    f,
                    "{} bits and {probes} probes cannot be dealt out to whole blocks",
                    Grouped(bits)
                )
            }
            Self::OddBlocks { blocks } => {
                write!(f, "{} blocks cannot be folded, it takes an even number", Grouped(blocks))
            }
            Self::EvenBits { bits } => {
                write!(
                    f,
                    "{} bits are an even number and these kernels need an odd one",
                    Grouped(bits)
                )
            }
            Self::RemainderOutOfRange { bits } => {
                write!(f, "remainders of {bits} bits are not possible, it takes from 2 to 32")
            }
            Self::GrowthOutOfRange { growth } => {
                write!(f, "the growth {growth} is not a finite number above 1")
            }
            Self::TighteningOutOfRange { tightening } => {
                write!(f, "the tightening {tightening} is not above 0 and below 1")
            }
            Self::TooManyLevels { max } => write!(f, "there can be no more than {max} levels"),
            Self::EpochsOutOfRange { epochs, max } => {
                write!(f, "{epochs} epochs are not possible, it takes from 2 to {max}")
            }
            Self::TimeOutOfRange { time, max } => {
                write!(f, "a window of {time:?} is not possible, only above zero and up to {max:?}")
            }
            Self::WidthOutOfRange { width, max } => {
                write!(f, "cells of {width} bits are not possible, it takes from 1 to {max}")
            }
            Self::DecrementsOutOfRange { decrements, max } => {
                write!(
                    f,
                    "{} cells cannot be counted down, it takes from 1 to {}",
                    Grouped(decrements),
                    Grouped(max)
                )
            }
            Self::FingerprintOutOfRange { bits, min, max } => {
                write!(f, "fingerprints of {bits} bits are not possible, it takes {min} to {max}")
            }
            Self::OutOfMemory { bytes } => {
                write!(f, "there is not enough memory: the filter needs {} bytes", Grouped(bytes))
            }
        }
    }
}

impl core::error::Error for InvalidShape {}

/// Two filters cannot be combined: their bits do not mean the same. Neither was changed.
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
    /// Together they have more keys than there can be room for.
    Room {
        /// How many keys they have.
        keys: u64,
        /// How many there can be room for; less if keys crowd at the end of the table.
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
                    "together the filters have {} keys, and there is room for {}",
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

/// Some bytes are no key: keys of a filter of numbers all have as many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidKey {
    /// How many bytes a key has.
    pub expected: usize,
    /// How many there are.
    pub got: usize,
}

impl fmt::Display for InvalidKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the keys of this filter have {} bytes, not {}", self.expected, self.got)
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

/// Two filters cannot be merged. Neither was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unmergeable {
    /// They differ in more than what was inserted.
    Incompatible(Incompatible),
    /// There is no room in the one for what is in the other.
    Full,
}

impl fmt::Display for Unmergeable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Incompatible(incompatible) => incompatible.fmt(f),
            Self::Full => Full.fmt(f),
        }
    }
}

impl core::error::Error for Unmergeable {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Incompatible(incompatible) => Some(incompatible),
            Self::Full => None,
        }
    }
}

impl From<Incompatible> for Unmergeable {
    fn from(incompatible: Incompatible) -> Self {
        Self::Incompatible(incompatible)
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
    /// There should be a header of Parquet's, and up to this byte there is: then it ends too early,
    /// is nested too deep, or has a type or a number that Thrift does not have.
    Thrift {
        /// The number of the byte.
        at: u64,
    },
    /// The header of Parquet's lacks a field, or has it with another type.
    Field {
        /// Its name in Parquet's `parquet.thrift`.
        name: &'static str,
    },
    /// The header of Parquet's asks for something that this library does not do: another algorithm,
    /// another hash, or a compression.
    Choice {
        /// The name of the field in Parquet's `parquet.thrift`.
        name: &'static str,
        /// What it should say.
        expected: &'static str,
        /// The number of what it says instead.
        got: i16,
    },
    /// The header of Parquet's announces bytes that are not one block of 32 or several.
    BlockBytes {
        /// How many it announces.
        got: i32,
    },
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
                write!(f, "format version {got} cannot be read, only version {expected}")
            }
            Self::Family { expected, got } => {
                write!(f, "this is a filter of family {got}, not of family {expected}")
            }
            Self::Hash { expected, got } => {
                write!(f, "this filter uses hash {got}, not hash {expected}")
            }
            Self::Keys { expected, got } => {
                write!(f, "this filter holds keys of kind {got}, not of kind {expected}")
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
            Self::Thrift { at } => {
                write!(f, "byte {at} cannot be part of the header of a Parquet filter")
            }
            Self::Field { name } => write!(f, "the header of the Parquet filter has no {name}"),
            Self::Choice { name, expected, got } => {
                write!(f, "the {name} of the Parquet filter is number {got}, and not {expected}")
            }
            Self::BlockBytes { got } => {
                write!(f, "the Parquet filter has {got} bytes, which are no blocks of 32")
            }
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
