//! Filters in files and streams. They are read and checked block by block, and written so that
//! there is always a complete file.

use super::blocks::{self, BLOCK, Sums};
use super::bytes::{self, Secret};
use super::disk::{Disk, replace};
use super::family::Family;
use super::header::{self, Header};
use super::{OpenError, Opening};
use crate::error::InvalidBytes;
use crate::parts::bits::Word;
use crate::storage::Allocate;
use core::convert::Infallible;
use core::ops::Range;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::vec::Vec;

/// The maximum number of bytes of a stream that are allocated before they have been read.
const STEP: u64 = 16 << 20;

pub(super) fn write<F: Family>(
    filter: &F,
    secret: Secret,
    writer: &mut impl Write,
) -> io::Result<()> {
    if !F::STILL {
        return writer.write_all(&bytes::to_bytes(filter, secret));
    }
    // The header comes first and contains the checksums, so the words are read twice.
    let Ok((length, table)) = bytes::for_blocks(filter, &mut |_| Ok::<(), Infallible>(()));
    writer.write_all(&bytes::header_of(filter, secret, length, &table).encode())?;
    bytes::for_blocks(filter, &mut |block| writer.write_all(block))?;
    writer.write_all(&table)
}

/// The bytes of the words of a filter. Does not read them.
fn payload_of<F: Family>(filter: &F) -> u64 {
    let plan = F::plan(&filter.header());
    F::words(&plan.expect("the header of a filter tells its shape")) * 8
}

/// How many bytes [`write`] writes.
pub(super) fn len<F: Family>(filter: &F) -> u64 {
    let payload = payload_of(filter);
    header::LEN as u64 + payload + blocks::count(payload) * 8
}

/// Writes a part of the output of [`write`]. Reads only the words in that part, except for the
/// header and the checksums, for which it reads all words once.
pub(super) fn write_range<F: Family>(
    filter: &F,
    secret: Secret,
    range: &Range<u64>,
    writer: &mut impl Write,
) -> io::Result<()> {
    let payload = payload_of(filter);
    let words = header::LEN as u64..header::LEN as u64 + payload;
    let needs_table = range.start < words.start || range.end > words.end;
    let table = if needs_table {
        let Ok((_, table)) = bytes::for_blocks(filter, &mut |_| Ok::<(), Infallible>(()));
        table
    } else {
        Vec::new()
    };
    if range.start < words.start {
        let header = bytes::header_of(filter, secret, payload, &table).encode();
        writer.write_all(&header[inside(range, 0, header.len())])?;
    }
    let mut at = words.start;
    filter.for_words(&mut |run| {
        let part = inside(range, at, run.len() * 8);
        at += run.len() as u64 * 8;
        let first = part.start / 8;
        let mut block = [0; BLOCK];
        for (number, words) in run[first..part.end.div_ceil(8)].chunks(BLOCK / 8).enumerate() {
            for (bytes, word) in block.as_chunks_mut::<8>().0.iter_mut().zip(words) {
                *bytes = word.to_le_bytes();
            }
            let start = first * 8 + number * BLOCK;
            let end = part.end.min(start + words.len() * 8);
            writer.write_all(&block[part.start.max(start) - start..end - start])?;
        }
        Ok::<(), io::Error>(())
    })?;
    writer.write_all(&table[inside(range, words.end, table.len())])
}

/// The part of `len` bytes at `at` that is inside a range, relative to `at`.
fn inside(range: &Range<u64>, at: u64, len: usize) -> Range<usize> {
    let place = |end: u64| end.saturating_sub(at).min(len as u64) as usize;
    place(range.start)..place(range.end)
}

pub(super) fn save<D: Disk, F: Family>(
    disk: &D,
    filter: &F,
    secret: Secret,
    path: &Path,
) -> io::Result<()> {
    replace(disk, path, secret == Secret::Kept, |file| write(filter, secret, file))
}

impl Header {
    /// The header of the file at `path`. The rest of the file is not read.
    ///
    /// # Errors
    ///
    /// See [`OpenError`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        Ok(Self::of_reader(&mut open(path)?.0)?.0)
    }

    /// Reads a header. Returns it and its bytes.
    pub(crate) fn of_reader(
        reader: &mut impl Read,
    ) -> Result<(Self, [u8; header::LEN]), OpenError> {
        let mut bytes = Vec::new();
        fill(reader, &mut bytes, header::LEN as u64)?;
        let header = Self::of(&bytes)?;
        Ok((header, header.encode()))
    }
}

/// Reads a filter from a stream of unknown length. It never allocates more than twice the bytes
/// that were read, plus a constant.
pub(super) fn read<F: Family>(
    reader: &mut impl Read,
    how: Opening<F::Hasher>,
) -> Result<F, OpenError>
where
    F::Storage: Allocate,
{
    let (header, first) = Header::of_reader(reader)?;
    let mut bytes = Vec::from(first);
    let (_, expected) = bytes::planned::<F>(&header)?;
    within(expected, how.limit)?;
    while (bytes.len() as u64) < expected {
        let step = (expected - bytes.len() as u64).min(STEP.max(bytes.len() as u64));
        if fill(reader, &mut bytes, step)? > 0 {
            return Err(too_short(expected, bytes.len() as u64));
        }
    }
    Ok(bytes::from_bytes(&bytes, how.hasher, how.unfinished)?)
}

/// Reads `count` more bytes. Returns how many of them are missing.
fn fill(reader: &mut impl Read, bytes: &mut Vec<u8>, count: u64) -> Result<u64, OpenError> {
    let room = bytes.try_reserve_exact(count as usize);
    room.map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    let got = reader.by_ref().take(count).read_to_end(bytes)?;
    Ok(count - got as u64)
}

fn too_short(expected: u64, got: u64) -> OpenError {
    InvalidBytes::Length { expected, got }.into()
}

fn within(bytes: u64, limit: u64) -> Result<(), OpenError> {
    if bytes > limit { Err(OpenError::TooLarge { bytes, limit }) } else { Ok(()) }
}

/// Opens a regular file. Returns it and its length.
pub(super) fn open(path: &Path) -> Result<(File, u64), OpenError> {
    open_as(path, OpenOptions::new().read(true))
}

/// As [`open`], with these options.
pub(super) fn open_as(path: &Path, options: &OpenOptions) -> Result<(File, u64), OpenError> {
    // Opening a pipe without a writer would block forever.
    if !std::fs::metadata(path)?.is_file() {
        return Err(OpenError::NotAFile);
    }
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(OpenError::NotAFile);
    }
    Ok((file, metadata.len()))
}

/// The header of a file of this length and its parsed fields, if it is one of such a filter and the
/// length is right.
pub(super) fn header_of<F: Family>(
    file: &mut impl Read,
    got: u64,
    limit: u64,
) -> Result<(Header, F::Plan), OpenError> {
    let (header, _) = Header::of_reader(file)?;
    let (plan, expected) = bytes::planned::<F>(&header)?;
    if expected != got {
        return Err(InvalidBytes::Length { expected, got }.into());
    }
    within(expected, limit)?;
    Ok((header, plan))
}

/// The checksums of all blocks, which follow the words.
pub(super) fn table_of(
    file: &mut (impl Read + Seek),
    header: &Header,
) -> Result<Vec<u8>, OpenError> {
    let mut table = Vec::new();
    file.seek(SeekFrom::Start(header::LEN as u64 + header.payload))?;
    let count = blocks::count(header.payload) * 8;
    if fill(file, &mut table, count)? > 0 {
        return Err(changed());
    }
    Ok(table)
}

/// The error if the file became shorter while it was read.
fn changed() -> OpenError {
    io::Error::from(io::ErrorKind::UnexpectedEof).into()
}

pub(super) fn load<F: Family>(path: &Path, how: Opening<F::Hasher>) -> Result<F, OpenError>
where
    F::Storage: Allocate,
{
    let (mut file, length) = open(path)?;
    let (header, plan) = header_of::<F>(&mut file, length, how.limit)?;
    let hasher = bytes::hasher::<F>(&header, how.hasher)?;
    let table = table_of(&mut file, &header)?;
    let sums = Sums { header: &header, table: &table, unfinished: how.unfinished };
    sums.verify_table()?;
    file.seek(SeekFrom::Start(header::LEN as u64))?;
    let mut words =
        SavedWords { file, sums, left: header.payload, number: 0, block: Vec::new(), at: 0 };
    let filter = F::assemble(plan, &header, hasher, &mut |count| words.take::<F::Storage>(count))?;
    if words.left > 0 || words.at < words.block.len() {
        return Err(InvalidBytes::Inconsistent.into());
    }
    bytes::agree(&filter, &header)?;
    filter.audit()?;
    Ok(filter)
}

/// The words of a file, block by block. Each block is checked before it is used.
struct SavedWords<'a> {
    file: File,
    sums: Sums<'a>,
    /// The number of bytes that have not been read.
    left: u64,
    /// The number of the next block.
    number: u64,
    /// The blocks that were read.
    block: Vec<u8>,
    /// How many of those bytes were used.
    at: usize,
}

impl SavedWords<'_> {
    fn take<S: Allocate>(&mut self, count: u64) -> Result<S, OpenError> {
        let left = self.left + (self.block.len() - self.at) as u64;
        if count > left / 8 {
            return Err(InvalidBytes::Inconsistent.into());
        }
        let mut storage = S::zeroed(count).map_err(InvalidBytes::from)?;
        let mut words = storage.words_mut();
        while !words.is_empty() {
            if self.at == self.block.len() {
                self.refill()?;
            }
            let bytes = self.block[self.at..].as_chunks().0;
            let (now, later) = words.split_at_mut(bytes.len().min(words.len()));
            for (word, bytes) in now.iter_mut().zip(bytes) {
                word.store(u64::from_le_bytes(*bytes));
            }
            self.at += now.len() * 8;
            words = later;
        }
        Ok(storage)
    }

    /// Reads and checks the next blocks.
    fn refill(&mut self) -> Result<(), OpenError> {
        const BLOCKS: usize = 32;
        let bytes = self.left.min((BLOCK * BLOCKS) as u64) as usize;
        self.block.resize(bytes, 0);
        self.file.read_exact(&mut self.block)?;
        for block in self.block.chunks(BLOCK) {
            self.sums.verify(self.number, block)?;
            self.number += 1;
        }
        (self.left, self.at) = (self.left - bytes as u64, 0);
        Ok(())
    }
}
