//! The Bloom filters of a Parquet file, found through its footer.
//!
//! ```text
//!     ... | header, blocks | ... | footer: Thrift's compact protocol | length of the footer, 4 bytes | "PAR1"
//!         ^                          row groups: columns: offset and length of the filter
//!         '---------------------------------------------------'
//! ```
//!
//! Filters are those of [`umbel::split`]; the type of a column decides the type of its keys
//! ([`PlainEncoded`](umbel::split::PlainEncoded) has the table).
//!
//! ```no_run
//! use umbel_foreign::parquet;
//!
//! let file = std::fs::read("data.parquet")?;
//! for column in parquet::columns(&file)? {
//!     if column.path == ["url"] && column.filter.is_some() {
//!         let filter = parquet::read::<str>(&file, &column)?;
//!         println!("row group {}: {}", column.row_group, filter.contains("https://example.org/"));
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::error::Invalid;
use crate::read::Reader;
use std::ops::Range;
use umbel::SplitBlockBloomFilter;

/// The first and the last bytes of a file.
pub(crate) const MAGIC: &[u8; 4] = b"PAR1";

/// A column of a row group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The number of the row group.
    pub row_group: usize,
    /// The names from the root of the schema to the column.
    pub path: Vec<String>,
    /// The physical type.
    pub kind: Kind,
    /// The number of values, including nulls.
    pub values: u64,
    /// The position of its filter in the file, if it has one.
    pub filter: Option<Range<u64>>,
}

/// A physical type of Parquet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names are Parquet's")]
pub enum Kind {
    Boolean,
    Int32,
    Int64,
    Int96,
    Float,
    Double,
    ByteArray,
    FixedLenByteArray,
}

impl Kind {
    fn of(number: i64) -> Result<Self, Invalid> {
        Ok(match number {
            0 => Self::Boolean,
            1 => Self::Int32,
            2 => Self::Int64,
            3 => Self::Int96,
            4 => Self::Float,
            5 => Self::Double,
            6 => Self::ByteArray,
            7 => Self::FixedLenByteArray,
            other => return Err(Invalid::Field { name: "type", got: other as u64 }),
        })
    }
}

/// The columns of all row groups, in their order.
///
/// # Errors
///
/// [`Invalid`] describes what is wrong with the file.
pub fn columns(file: &[u8]) -> Result<Vec<Column>, Invalid> {
    let wrong = Invalid::Magic { system: "Parquet" };
    let inner = file.strip_prefix(MAGIC).and_then(|file| file.strip_suffix(MAGIC)).ok_or(wrong)?;
    let Some((inner, length)) = inner.split_last_chunk::<4>() else { return Err(wrong) };
    let (length, got) = (u64::from(u32::from_le_bytes(*length)), inner.len() as u64);
    let Some(start) = got.checked_sub(length) else {
        return Err(Invalid::Length { expected: length + 12, got: file.len() as u64 });
    };
    let mut thrift = Thrift { reader: Reader::new(&inner[start as usize..]) };
    let (mut columns, mut row_group) = (Vec::new(), 0);
    // FileMetaData: 4 row groups. RowGroup: 1 columns.
    thrift.each_field(DEPTH, |thrift, id, kind| match (id, kind) {
        (4, LIST) => thrift.each_of(STRUCT, |thrift| {
            thrift.each_field(DEPTH, |thrift, id, kind| match (id, kind) {
                (1, LIST) => thrift.each_of(STRUCT, |thrift| {
                    columns.push(column(thrift, row_group, file)?);
                    Ok(())
                }),
                _ => thrift.skip_field(kind, DEPTH),
            })?;
            row_group += 1;
            Ok(())
        }),
        _ => thrift.skip_field(kind, DEPTH),
    })?;
    Ok(columns)
}

/// ColumnChunk: 3 the metadata of the column: 1 type, 3 path, 5 values, 14 and 15 offset and length of the filter.
fn column(thrift: &mut Thrift<'_>, row_group: usize, file: &[u8]) -> Result<Column, Invalid> {
    let mut column =
        Column { row_group, path: Vec::new(), kind: Kind::Boolean, values: 0, filter: None };
    let (mut offset, mut length) = (None, None);
    thrift.each_field(DEPTH, |thrift, id, kind| match (id, kind) {
        (3, STRUCT) => thrift.each_field(DEPTH, |thrift, id, kind| {
            match (id, kind) {
                (1, I32) => column.kind = Kind::of(thrift.number()?)?,
                (3, LIST) => thrift.each_of(BINARY, |thrift| {
                    let name = thrift.binary()?;
                    column.path.push(String::from_utf8_lossy(name).into_owned());
                    Ok(())
                })?,
                (5, I64) => column.values = thrift.unsigned("num_values")?,
                (14, I64) => offset = Some(thrift.unsigned("bloom_filter_offset")?),
                (15, I32) => length = Some(thrift.unsigned("bloom_filter_length")?),
                _ => thrift.skip_field(kind, DEPTH)?,
            }
            Ok(())
        }),
        _ => thrift.skip_field(kind, DEPTH),
    })?;
    if let Some(offset) = offset {
        let rest = usize::try_from(offset).ok().and_then(|offset| file.get(offset..));
        let rest = rest.ok_or(Invalid::Field { name: "bloom_filter_offset", got: offset })?;
        let length = match length {
            Some(length) => length,
            None => announced(rest)?,
        };
        if length > rest.len() as u64 {
            return Err(Invalid::Field { name: "bloom_filter_length", got: length });
        }
        column.filter = Some(offset..offset + length);
    }
    Ok(column)
}

/// The length of a filter, from its header: old writers store it nowhere else.
fn announced(filter: &[u8]) -> Result<u64, Invalid> {
    let (mut thrift, mut blocks) = (Thrift { reader: Reader::new(filter) }, 0);
    thrift.each_field(DEPTH, |thrift, id, kind| match (id, kind) {
        (1, I32) => {
            blocks = thrift.unsigned("numBytes")?;
            Ok(())
        }
        _ => thrift.skip_field(kind, DEPTH),
    })?;
    Ok(thrift.reader.at() as u64 + blocks)
}

/// Reads the filter of a column of this file. `T` must match the type of the column: with another type, present
/// keys are reported absent.
///
/// # Errors
///
/// [`Invalid`] describes what is wrong with it; [`Invalid::Unknown`] if the column has no filter.
pub fn read<T: ?Sized>(file: &[u8], column: &Column) -> Result<SplitBlockBloomFilter<T>, Invalid> {
    Ok(SplitBlockBloomFilter::from_parquet(bytes(file, column)?)?)
}

/// The bytes of the filter of a column: its header and its blocks.
///
/// # Errors
///
/// [`Invalid::Unknown`] if the column has no filter; [`Invalid::Length`] if it is a column of another, longer
/// file.
pub fn bytes<'a>(file: &'a [u8], column: &Column) -> Result<&'a [u8], Invalid> {
    let Range { start, end } = column.filter.clone().ok_or(Invalid::Unknown)?;
    let cut_off = Invalid::Length { expected: end, got: file.len() as u64 };
    if end > file.len() as u64 { Err(cut_off) } else { Ok(&file[start as usize..end as usize]) }
}

/// The maximum depth of structures. Those of Parquet are much less deep.
const DEPTH: u32 = 32;

/// The types of Thrift's compact protocol.
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// Reads Thrift's compact protocol. Every skipped value in a list has at least one byte, so the work is bounded
/// by the number of bytes.
struct Thrift<'a> {
    reader: Reader<'a>,
}

impl<'a> Thrift<'a> {
    fn varint(&mut self) -> Result<u64, Invalid> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.reader.u8()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Invalid::Encoding { expected: "a number of Thrift's" })
    }

    /// A zigzag number: the sign is its lowest bit.
    fn number(&mut self) -> Result<i64, Invalid> {
        let folded = self.varint()?;
        Ok((folded >> 1) as i64 ^ -((folded & 1) as i64))
    }

    fn unsigned(&mut self, name: &'static str) -> Result<u64, Invalid> {
        let number = self.number()?;
        number.try_into().map_err(|_| Invalid::Field { name, got: number as u64 })
    }

    fn binary(&mut self) -> Result<&'a [u8], Invalid> {
        let length = self.varint()?;
        self.reader.take(length)
    }

    /// Calls `each` with the number and the type of every field of a structure. `each` has to read or skip the
    /// field.
    fn each_field(
        &mut self,
        depth: u32,
        mut each: impl FnMut(&mut Self, i64, u8) -> Result<(), Invalid>,
    ) -> Result<(), Invalid> {
        if depth == 0 {
            return Err(Invalid::Encoding { expected: "Thrift that is not so deep" });
        }
        let mut id = 0;
        loop {
            let head = self.reader.u8()?;
            if head == 0 {
                return Ok(());
            }
            id = match head >> 4 {
                0 => self.number()?,
                above => id + i64::from(above),
            };
            if i16::try_from(id).is_err() {
                return Err(Invalid::Encoding { expected: "a field of Thrift's" });
            }
            each(self, id, head & 15)?;
        }
    }

    /// The type and the number of the elements of a list.
    fn list(&mut self) -> Result<(u8, u64), Invalid> {
        let head = self.reader.u8()?;
        let length = if head >> 4 == 15 { self.varint()? } else { (head >> 4).into() };
        Ok((head & 15, length))
    }

    /// Calls `each` for every element of a list, which must have this type.
    fn each_of(
        &mut self,
        kind: u8,
        mut each: impl FnMut(&mut Self) -> Result<(), Invalid>,
    ) -> Result<(), Invalid> {
        let (got, length) = self.list()?;
        if got != kind && length > 0 {
            return Err(Invalid::Encoding { expected: "another list of Thrift's" });
        }
        for _ in 0..length {
            each(self)?;
        }
        Ok(())
    }

    /// Skips a field. A boolean field has no bytes.
    fn skip_field(&mut self, kind: u8, depth: u32) -> Result<(), Invalid> {
        if matches!(kind, 1 | 2) { Ok(()) } else { self.skip(kind, depth) }
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Result<(), Invalid> {
        let deeper = depth.saturating_sub(1);
        if deeper == 0 {
            return Err(Invalid::Encoding { expected: "Thrift that is not so deep" });
        }
        match kind {
            1..=3 => self.reader.take(1).map(drop),
            4..=6 => self.varint().map(drop),
            7 => self.reader.take(8).map(drop),
            BINARY => self.binary().map(drop),
            LIST | 10 => {
                let (kind, length) = self.list()?;
                (0..length).try_for_each(|_| self.skip(kind, deeper))
            }
            11 => {
                let length = self.varint()?;
                let kinds = if length == 0 { 0 } else { self.reader.u8()? };
                (0..length).try_for_each(|_| {
                    self.skip(kinds >> 4, deeper)?;
                    self.skip(kinds & 15, deeper)
                })
            }
            STRUCT => self.each_field(deeper, |thrift, _, kind| thrift.skip_field(kind, deeper)),
            13 => self.reader.take(16).map(drop),
            other => Err(Invalid::Field { name: "type of Thrift's", got: other.into() }),
        }
    }
}
