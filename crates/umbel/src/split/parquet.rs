//! Parquet's file format of a filter: a header in Thrift's compact protocol, then the blocks.
//!
//! ```text
//!     15 80 10    1c 1c 00 00    1c 1c 00 00    1c 1c 00 00        00   | 1024 bytes
//!     |           |              |              |                  |
//!     1: numBytes 2: algorithm   3: hash        4: compression     end
//!        = 1024      {1: BLOCK}     {1: XXHASH}    {1: UNCOMPRESSED}
//! ```

use super::shape::BLOCK_BYTES;
use super::{Blocks, Plain, Shape};
use crate::bloom::RawBloom;
use crate::edge::Filter;
use crate::error::InvalidShape;
use crate::parts::bits::Word;
use crate::storage::Allocate;

#[cfg(feature = "alloc")]
use crate::storage::Storage;
#[cfg(feature = "alloc")]
use alloc::vec::Vec;
use core::fmt;

/// Structures nested deeper than this are not skipped. The known ones have two levels.
const MAX_DEPTH: u32 = 16;

/// The types of Thrift's compact protocol ("Struct encoding" in `thrift-compact-protocol.md`).
const BOOLS: core::ops::RangeInclusive<u8> = 1..=2;
const I8: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// The fields that follow the number of bytes in a header.
#[cfg(feature = "alloc")]
const CHOICES: [u8; 13] = [0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0];

/// Conversion to the format of Parquet files.
#[cfg(feature = "alloc")]
impl<T: ?Sized, S: Storage> Filter<T, Plain, RawBloom<S, Blocks>> {
    /// The filter in the format of a Parquet file: `BloomFilterHeader`, then the blocks. There is
    /// no checksum.
    ///
    /// In a file, `bloom_filter_offset`, field 14 of a column's `ColumnMetaData`, is the position
    /// of these bytes, and `bloom_filter_length`, field 15, is their number.
    ///
    /// ```
    /// use umbel::split::{Plain, Shape, SplitBlockBloomFilter};
    ///
    /// let filter = SplitBlockBloomFilter::<str>::with(Shape::with(4, 32)?, Plain)?;
    /// let bytes = filter.to_parquet();
    /// assert_eq!(bytes.len(), 16 + 1024);
    /// assert_eq!(bytes[..5], [0x15, 0x80, 0x10, 0x1c, 0x1c]);
    /// # Ok::<(), umbel::InvalidShape>(())
    /// ```
    #[must_use]
    pub fn to_parquet(&self) -> Vec<u8> {
        let bytes = self.raw.shape.bytes();
        let mut parquet = Vec::with_capacity(6 + CHOICES.len() + bytes as usize);
        parquet.push(0x10 | I32);
        // Zigzag doubles positive numbers. Then seven bits at a time.
        let mut rest = bytes * 2;
        while rest >= 0x80 {
            parquet.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        parquet.push(rest as u8);
        parquet.extend_from_slice(&CHOICES);
        parquet.extend(self.raw.storage.words().iter().flat_map(|word| word.load().to_le_bytes()));
        parquet
    }
}

/// The bytes are not the Bloom filter of a Parquet file.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ParquetError {
    /// The header is not valid Thrift at this byte: it ends too early, is nested too deep, or has a
    /// type or a number that Thrift does not have.
    Thrift {
        /// The position of the byte.
        at: u64,
    },
    /// The header lacks a field, or the field has another type.
    Field {
        /// The name of the field in Parquet's `parquet.thrift`.
        name: &'static str,
    },
    /// The header has a field twice.
    Twice,
    /// The header requires an option that this library does not support: another algorithm, another
    /// hash, or a compression.
    Choice {
        /// The name of the field in Parquet's `parquet.thrift`.
        name: &'static str,
        /// The supported value.
        expected: &'static str,
        /// The number of the value in the header.
        got: i16,
    },
    /// The header announces a number of bytes that is not a positive multiple of 32, the size of a
    /// block.
    BlockBytes {
        /// The announced number of bytes.
        got: i32,
    },
    /// The number of bytes is not the one that the header announces.
    Length {
        /// The announced number of bytes.
        expected: u64,
        /// The actual number of bytes.
        got: u64,
    },
    /// The filter cannot be created.
    Shape(InvalidShape),
}

impl fmt::Display for ParquetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Thrift { at } => {
                write!(f, "byte {at} cannot be part of the header of a Parquet filter")
            }
            Self::Field { name } => write!(f, "the header of the Parquet filter has no {name}"),
            Self::Twice => f.write_str("the header of the Parquet filter has a field twice"),
            Self::Choice { name, expected, got } => {
                write!(f, "the {name} of the Parquet filter is number {got}, and not {expected}")
            }
            Self::BlockBytes { got } => {
                write!(f, "expected a Parquet filter of whole blocks of 32 bytes, got {got} bytes")
            }
            Self::Length { expected, got } => {
                write!(
                    f,
                    "the Parquet filter has the wrong length: expected {expected} bytes, got {got}"
                )
            }
            Self::Shape(ref shape) => shape.fmt(f),
        }
    }
}

impl core::error::Error for ParquetError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        if let Self::Shape(shape) = self { Some(shape) } else { None }
    }
}

impl From<InvalidShape> for ParquetError {
    fn from(shape: InvalidShape) -> Self {
        Self::Shape(shape)
    }
}

/// Conversion from the format of Parquet files.
impl<T: ?Sized, S: Allocate> Filter<T, Plain, RawBloom<S, Blocks>> {
    /// Reads a filter from its bytes in a Parquet file, from the first to the last: a header, then
    /// the blocks.
    ///
    /// `bloom_filter_offset`, field 14 of a column's `ColumnMetaData`, is the position of the bytes
    /// in the file, and `bloom_filter_length`, field 15, is their number. Files of old writers lack
    /// the length; the header announces the length of the blocks. `T` must be the type of the
    /// column ([`PlainEncoded`](super::PlainEncoded) has the table), which the bytes do not
    /// contain. They do not contain the planned number of keys either: the capacity is 0.
    ///
    /// Fields that a later version may add are skipped. Any number of blocks is accepted.
    ///
    /// # Errors
    ///
    /// [`ParquetError`] says what is wrong with the header, or with the number of bytes after it.
    /// Memory is allocated only after all checks. There is no checksum: a flipped bit in a block is
    /// not detected.
    ///
    /// ```
    /// use umbel::SplitBlockBloomFilter;
    ///
    /// let mut filter = SplitBlockBloomFilter::<str>::new(100, 0.01);
    /// filter.insert("umbel");
    /// let bytes = filter.to_parquet();
    /// let again = SplitBlockBloomFilter::<str>::from_parquet(&bytes)?;
    /// assert!(again == filter && again.contains("umbel"));
    /// assert!(SplitBlockBloomFilter::<str>::from_parquet(&bytes[1..]).is_err());
    /// # Ok::<(), umbel::split::ParquetError>(())
    /// ```
    pub fn from_parquet(bytes: &[u8]) -> Result<Self, ParquetError> {
        let mut reader = Reader { bytes, at: 0 };
        let announced = reader.header()?;
        let payload = &bytes[reader.at..];
        if announced <= 0 || !(announced as u64).is_multiple_of(BLOCK_BYTES) {
            return Err(ParquetError::BlockBytes { got: announced });
        }
        let expected = reader.at as u64 + announced as u64;
        if expected != bytes.len() as u64 {
            return Err(ParquetError::Length { expected, got: bytes.len() as u64 });
        }
        let shape = Shape::with(0, announced as u64 / BLOCK_BYTES)?;
        let mut raw = RawBloom::<S, _>::of_layout(shape, Blocks::default())?;
        for (word, chunk) in raw.storage.words_mut().iter_mut().zip(payload.as_chunks().0) {
            word.store(u64::from_le_bytes(*chunk));
        }
        Ok(Self::from_raw(raw, Plain))
    }
}

/// Reads Thrift's compact protocol. `at` is never past the end of the bytes.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    /// Reads a header. Returns the announced number of bytes.
    fn header(&mut self) -> Result<i32, ParquetError> {
        let (mut announced, mut chosen, mut last) = (None, [false; 3], 0);
        let choices = [("algorithm", "BLOCK"), ("hash", "XXHASH"), ("compression", "UNCOMPRESSED")];
        while let Some((id, kind)) = self.field(&mut last)? {
            match (id, kind) {
                (1, I32) => {
                    if announced.replace(self.number()?).is_some() {
                        return Err(ParquetError::Twice);
                    }
                }
                (2..=4, STRUCT) => {
                    let number = id as usize - 2;
                    let (name, expected) = choices[number];
                    self.choice(name, expected)?;
                    if core::mem::replace(&mut chosen[number], true) {
                        return Err(ParquetError::Twice);
                    }
                }
                _ => self.skip_field(kind, MAX_DEPTH)?,
            }
        }
        for ((name, _), chosen) in choices.iter().zip(chosen) {
            if !chosen {
                return Err(ParquetError::Field { name });
            }
        }
        announced.ok_or(ParquetError::Field { name: "numBytes" })
    }

    /// Reads a union, in which the first field must be set, to a structure.
    fn choice(&mut self, name: &'static str, expected: &'static str) -> Result<(), ParquetError> {
        let (mut chosen, mut last) = (false, 0);
        while let Some((got, kind)) = self.field(&mut last)? {
            if (got, kind) != (1, STRUCT) {
                return Err(ParquetError::Choice { name, expected, got });
            }
            self.skip(kind, MAX_DEPTH)?;
            chosen = true;
        }
        if chosen { Ok(()) } else { Err(ParquetError::Field { name }) }
    }

    /// The head of the next field of a structure: its number and its type. `None` at the end.
    fn field(&mut self, last: &mut i16) -> Result<Option<(i16, u8)>, ParquetError> {
        let head = self.byte()?;
        if head == 0 {
            return Ok(None);
        }
        // The difference from the previous number, or 0 followed by the number.
        let id = match i16::from(head >> 4) {
            0 => i16::try_from(self.number()?).ok(),
            above => last.checked_add(above),
        };
        *last = id.ok_or(self.here())?;
        Ok(Some((*last, head & 0x0f)))
    }

    /// Skips a field. A boolean has no bytes besides its type.
    fn skip_field(&mut self, kind: u8, depth: u32) -> Result<(), ParquetError> {
        if BOOLS.contains(&kind) { Ok(()) } else { self.skip(kind, depth) }
    }

    /// Skips a value of any type, which has at least one byte. So the work is bounded by the number
    /// of actual bytes, whatever lengths they claim.
    fn skip(&mut self, kind: u8, depth: u32) -> Result<(), ParquetError> {
        let depth = depth.checked_sub(1).ok_or(self.here())?;
        match kind {
            I8 => self.skip_bytes(1),
            I16 | I32 | I64 => self.varint(10).map(drop),
            DOUBLE => self.skip_bytes(8),
            UUID => self.skip_bytes(16),
            BINARY => {
                let length = self.varint(5)?;
                self.skip_bytes(length)
            }
            LIST | SET => {
                let head = self.byte()?;
                let length = if head >> 4 == 15 { self.varint(5)? } else { u64::from(head >> 4) };
                for _ in 0..length {
                    self.skip(head & 0x0f, depth)?;
                }
                Ok(())
            }
            MAP => {
                let length = self.varint(5)?;
                let kinds = if length == 0 { 0 } else { self.byte()? };
                for _ in 0..length {
                    self.skip(kinds >> 4, depth)?;
                    self.skip(kinds & 0x0f, depth)?;
                }
                Ok(())
            }
            STRUCT => {
                let mut last = 0;
                while let Some((_, kind)) = self.field(&mut last)? {
                    self.skip_field(kind, depth)?;
                }
                Ok(())
            }
            _ if BOOLS.contains(&kind) => self.skip_bytes(1),
            _ => Err(self.here()),
        }
    }

    fn skip_bytes(&mut self, count: u64) -> Result<(), ParquetError> {
        let left = self.bytes.len() - self.at;
        if count > left as u64 {
            self.at = self.bytes.len();
            return Err(self.here());
        }
        self.at += count as usize;
        Ok(())
    }

    fn byte(&mut self) -> Result<u8, ParquetError> {
        let byte = *self.bytes.get(self.at).ok_or(self.here())?;
        self.at += 1;
        Ok(byte)
    }

    /// A number of at most 32 bits with a sign, which is its lowest bit.
    fn number(&mut self) -> Result<i32, ParquetError> {
        let folded = u32::try_from(self.varint(5)?).map_err(|_| self.here())?;
        Ok((folded >> 1) as i32 ^ -((folded & 1) as i32))
    }

    /// A number in at most `most` bytes, seven bits in each, the lowest first.
    fn varint(&mut self, most: u32) -> Result<u64, ParquetError> {
        let mut value = 0;
        for number in 0..most {
            let byte = self.byte()?;
            // The tenth byte has room for one bit; values that long are never used.
            value |= u64::from(byte & 0x7f) << (7 * number);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.here())
    }

    /// The error for the current position.
    fn here(&self) -> ParquetError {
        ParquetError::Thrift { at: self.at as u64 }
    }
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;
    use crate::split::SplitBlockBloomFilter;

    type Filter = SplitBlockBloomFilter<str>;

    /// A header with this in the place of the fields after the number of bytes, then one empty
    /// block.
    fn read(header: &[u8]) -> Result<Filter, ParquetError> {
        Filter::from_parquet(&[header, &[0; 32]].concat())
    }

    const BLOCK: [u8; 4] = [0x1c, 0x1c, 0, 0];

    #[test]
    fn headers_are_the_documented_bytes() {
        for (blocks, header) in [
            (1, "15 40 1c 1c 00 00 1c 1c 00 00 1c 1c 00 00 00"),
            (32, "15 80 10 1c 1c 00 00 1c 1c 00 00 1c 1c 00 00 00"),
        ] {
            let filter = Filter::with(Shape::with(0, blocks).unwrap(), Plain).unwrap();
            let bytes = filter.to_parquet();
            let header: Vec<u8> =
                header.split(' ').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
            assert_eq!(bytes[..header.len()], header);
            assert_eq!(bytes.len() as u64, header.len() as u64 + blocks * 32);
            assert!(Filter::from_parquet(&bytes).unwrap() == filter);
        }
    }

    #[test]
    fn fields_in_any_order_and_with_long_numbers_are_read() {
        // 4, 3, 2 and 1, each with its full number, doubled.
        let long = [0x0c, 8, 0x1c, 0, 0, 0x0c, 6, 0x0c, 2, 0, 0, 0x0c, 4, 0x1c, 0, 0, 5, 2, 64, 0];
        assert!(read(&long).is_ok());
        // The maximum length of a number of 32 bits.
        let wide = [&[0x15, 0xc0, 0x80, 0x80, 0x80, 0][..], &CHOICES].concat();
        assert!(read(&wide).is_ok());
    }

    #[test]
    fn what_a_later_version_adds_is_skipped() {
        let fields: [&[u8]; 14] = [
            &[0x11],                                                        // true
            &[0x12],                                                        // false
            &[0x13, 9],                                                     // one byte
            &[0x14, 0xff, 1],                                               // 16 bits
            &[0x15, 0xff, 0xff, 0xff, 0xff, 0x0f],                          // 32 bits
            &[0x16, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1],        // 64 bits
            &[0x17, 1, 2, 3, 4, 5, 6, 7, 8],                                // a fraction
            &[0x18, 3, 0, 0, 0],                                            // three bytes
            &[0x19, 0x31, 1, 2, 1], // a list of three booleans
            &[0x1a, 0xf3, 15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], // a set of 15 bytes
            &[0x1b, 0],             // an empty map
            &[0x1b, 2, 0x58, 1, 0, 2, 1, 7], // a map of two numbers to bytes
            &[0x1c, 0x11, 0x1c, 0x15, 2, 0, 0], // a structure in a structure
            &[0x1d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], // sixteen bytes
        ];
        for field in fields {
            // After the last field, and in the middle of a choice.
            let behind = [&[0x15, 64], &CHOICES[..12], field, &[0]].concat();
            assert!(read(&behind).is_ok(), "{field:?}");
            let inside = [&[0x15, 64, 0x1c, 0x1c], field, &[0, 0], &BLOCK, &BLOCK, &[0]].concat();
            assert!(read(&inside).is_ok(), "{field:?}");
            for len in 1..field.len() {
                let cut = [&[0x15, 64], &CHOICES[..12], &field[..len]].concat();
                let error = Filter::from_parquet(&cut).unwrap_err();
                assert_eq!(error, ParquetError::Thrift { at: cut.len() as u64 }, "{field:?}");
            }
        }
    }

    #[test]
    fn other_choices_are_named() {
        let names = [("algorithm", "BLOCK"), ("hash", "XXHASH"), ("compression", "UNCOMPRESSED")];
        for (number, (name, expected)) in names.into_iter().enumerate() {
            let mut header = [&[0x15, 64], &CHOICES[..]].concat();
            header[3 + 4 * number] = 0x2c;
            let error = ParquetError::Choice { name, expected, got: 2 };
            assert_eq!(read(&header).unwrap_err(), error);
            // No field set, and no field at all.
            header[3 + 4 * number] = 0;
            header.remove(4 + 4 * number);
            header.remove(4 + 4 * number);
            assert_eq!(read(&header).unwrap_err(), ParquetError::Field { name });
            header[2 + 4 * number] = 0x18;
            assert_eq!(read(&header).unwrap_err(), ParquetError::Field { name });
        }
        let both = [&[0x15, 64, 0x1c, 0x1c, 0, 0x1c, 0, 0], &CHOICES[4..]].concat();
        let (name, expected) = names[0];
        assert_eq!(read(&both).unwrap_err(), ParquetError::Choice { name, expected, got: 2 });
        let error = read(&[&[0x2c], &CHOICES[1..]].concat()).unwrap_err();
        assert_eq!(error, ParquetError::Field { name: "numBytes" });
    }

    #[test]
    fn two_answers_to_one_question_are_refused() {
        let twice = [&[0x15, 64], &CHOICES[..12], &[0x05, 2, 64, 0]].concat();
        assert_eq!(read(&twice).unwrap_err(), ParquetError::Twice);
        let twice = [&[0x15, 64], &CHOICES[..12], &[0x0c, 4, 0x1c, 0, 0, 0]].concat();
        assert_eq!(read(&twice).unwrap_err(), ParquetError::Twice);
    }

    #[test]
    fn lengths_that_are_no_blocks_or_not_there_are_refused() {
        let announce = |varint: &[u8]| read(&[&[0x15], varint, &CHOICES].concat()).unwrap_err();
        for (varint, got) in [
            (&[0][..], 0),
            (&[63], -32),
            (&[62], 31),
            (&[66], 33),
            (&[0xff, 0xff, 0xff, 0xff, 0x0f], i32::MIN),
            (&[0xfe, 0xff, 0xff, 0xff, 0x0f], i32::MAX),
        ] {
            assert_eq!(announce(varint), ParquetError::BlockBytes { got });
        }
        // Nearly 2 GiB, of which there are 32 bytes: refused before any memory is allocated.
        let header = 1 + 5 + CHOICES.len() as u64;
        let (expected, got) = (header + (1 << 31) - 32, header + 32);
        assert_eq!(
            announce(&[0xc0, 0xff, 0xff, 0xff, 0x0f]),
            ParquetError::Length { expected, got }
        );
        // More than 32 bits, and more than five bytes.
        for varint in [&[0xff, 0xff, 0xff, 0xff, 0x1f][..], &[0xc0, 0x80, 0x80, 0x80, 0x80, 0]] {
            assert!(matches!(announce(varint), ParquetError::Thrift { .. }));
        }
        let good = Filter::new(10, 0.01).to_parquet();
        for wrong in [&good[..good.len() - 1], &[&good[..], &[0]].concat()] {
            let (expected, got) = (good.len() as u64, wrong.len() as u64);
            let error = Filter::from_parquet(wrong).unwrap_err();
            assert_eq!(error, ParquetError::Length { expected, got });
        }
    }

    #[test]
    fn depth_and_claims_without_bytes_behind_them_cost_nothing() {
        // Structures in structures, lists in lists, and so on without end.
        for (first, nest) in [(0x1c, &[0x1c][..]), (0x19, &[0x19]), (0x1b, &[1, 0x3b, 0])] {
            let bytes = [&[first], &nest.repeat(100_000)[..]].concat();
            let error = Filter::from_parquet(&bytes).unwrap_err();
            let most = 1 + nest.len() as u64 * u64::from(MAX_DEPTH);
            assert!(matches!(error, ParquetError::Thrift { at } if at <= most), "{error:?}");
        }
        // A list of 2^32 - 1 structures, a map of the same size, the same number of bytes.
        for claim in [&[0x19, 0xfc][..], &[0x1b], &[0x18]]
            .map(|kind| [kind, &[255, 255, 255, 255, 15]].concat())
        {
            let bytes = [&claim[..], &[0xcc; 3]].concat();
            assert!(matches!(Filter::from_parquet(&bytes), Err(ParquetError::Thrift { .. })));
        }
        // Numbers of fields that do not fit into 16 bits.
        for wrong in [&[0x05, 0x80, 0x80, 4][..], &[0x03, 0xfe, 0xff, 3, 0, 0x13, 0]] {
            assert!(matches!(Filter::from_parquet(wrong), Err(ParquetError::Thrift { .. })));
        }
    }

    #[test]
    fn every_truncation_and_every_wrong_byte_of_a_header_is_an_error_or_a_filter() {
        let good = Filter::new(10, 0.01).to_parquet();
        for len in 0..good.len() {
            assert!(Filter::from_parquet(&good[..len]).is_err());
        }
        for at in 0..16 {
            for byte in 0..=255 {
                let mut bytes = good.clone();
                bytes[at] = byte;
                let _ = Filter::from_parquet(&bytes);
            }
        }
        assert!(Filter::from_parquet(&[]).is_err());
        assert!(Filter::from_parquet(&[0; 100]).is_err());
    }
}
