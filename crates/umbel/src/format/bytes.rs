//! Filters as bytes in memory.

use super::blocks::{self, BLOCK, Sums};
use super::family::{ANY_FAMILY, Family, Stored};
use super::header::{self, Header};
use crate::error::InvalidBytes;
use crate::parts::bits::Word;
use crate::storage::{Allocate, StorageMut};

#[cfg(feature = "alloc")]
use super::blocks::Cutter;
#[cfg(feature = "alloc")]
use alloc::vec::Vec;
#[cfg(feature = "alloc")]
use core::convert::Infallible;

/// Whether the secret of a hasher is written with its filter.
#[cfg(feature = "alloc")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secret {
    /// The bytes contain the secret: the filter opens without a hasher from the caller.
    Kept,
    /// The bytes do not contain the secret: the caller brings the hasher to open the filter.
    Left,
}

/// Creates the header of a filter from the length of its words and the checksums of its blocks.
#[cfg(feature = "alloc")]
pub(super) fn header_of<F: Family>(
    filter: &F,
    secret: Secret,
    payload: u64,
    table: &[u8],
) -> Header {
    let header = filter.header();
    let kept = if secret == Secret::Kept { header.secret } else { None };
    Header { secret: kept, payload, root: blocks::root(table), ..header }
}

/// Passes on the words of a filter in blocks. Returns their length and their checksums.
#[cfg(feature = "alloc")]
pub(super) fn for_blocks<F: Family, E>(
    filter: &F,
    each: &mut impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(u64, Vec<u8>), E> {
    let (mut length, mut table) = (0, Vec::new());
    let mut each = |number, block: &[u8]| {
        length += block.len() as u64;
        table.extend_from_slice(&blocks::checksum(number, block).to_le_bytes());
        each(block)
    };
    let mut cutter = Cutter::new();
    filter.for_words(&mut |words| cutter.push(words, &mut each))?;
    cutter.finish(&mut each)?;
    Ok((length, table))
}

/// Reads the words once, so that the bytes are consistent even if other threads are changing the
/// filter.
#[cfg(feature = "alloc")]
pub(super) fn to_bytes<F: Family>(filter: &F, secret: Secret) -> Vec<u8> {
    let mut bytes = Vec::from([0; header::LEN]);
    let Ok((length, table)) = for_blocks(filter, &mut |block| {
        bytes.extend_from_slice(block);
        Ok::<(), Infallible>(())
    });
    bytes.extend_from_slice(&table);
    bytes[..header::LEN].copy_from_slice(&header_of(filter, secret, length, &table).encode());
    bytes
}

/// The shape in this header and the length of the whole filter, if the header is one of this
/// family. These are all checks that need no memory for the filter.
pub(crate) fn planned<F: Family>(header: &Header) -> Result<(F::Plan, u64), InvalidBytes> {
    if ![header.family, ANY_FAMILY].contains(&F::FAMILY) {
        return Err(InvalidBytes::Family { expected: F::FAMILY, got: header.family });
    }
    let plan = F::plan(header)?;
    if F::words(&plan).checked_mul(8) != Some(header.payload) {
        return Err(InvalidBytes::Inconsistent);
    }
    let table = blocks::count(header.payload) * 8;
    let length = header.payload.checked_add(table + header::LEN as u64);
    Ok((plan, length.ok_or(InvalidBytes::Inconsistent)?))
}

/// The hasher to use: the one from the caller, if the filter was made with it, or the one in the
/// header.
pub(super) fn hasher<F: Family>(
    header: &Header,
    brought: Option<F::Hasher>,
) -> Result<F::Hasher, InvalidBytes> {
    let mark = header.mark();
    let Some(hasher) = brought else {
        return F::Hasher::restore(&mark);
    };
    let expected = hasher.mark();
    if mark.hash != expected.hash {
        return Err(InvalidBytes::Hash { expected: expected.hash, got: mark.hash });
    }
    if mark.keys != expected.keys {
        return Err(InvalidBytes::Keys { expected: expected.keys, got: mark.keys });
    }
    if mark.check == expected.check { Ok(hasher) } else { Err(InvalidBytes::Hasher) }
}

/// Reads a filter from bytes, after all checks.
pub(super) fn from_bytes<F: Family>(
    bytes: &[u8],
    brought: Option<F::Hasher>,
    unfinished: bool,
) -> Result<F, InvalidBytes>
where
    F::Storage: Allocate,
{
    let header = Header::of(bytes)?;
    let (rest, got) = (&bytes[header::LEN..], bytes.len() as u64);
    let (plan, expected) = planned::<F>(&header)?;
    if expected != got {
        return Err(InvalidBytes::Length { expected, got });
    }
    let hasher = hasher::<F>(&header, brought)?;
    // The total length is right, so the words end inside.
    let (payload, table) = rest.split_at(header.payload as usize);
    let sums = Sums { header: &header, table, unfinished };
    sums.verify_table()?;
    for (number, block) in payload.chunks(BLOCK).enumerate() {
        sums.verify(number as u64, block)?;
    }
    let mut words = payload.as_chunks().0;
    let filter = F::assemble(plan, &header, hasher, &mut |count| {
        let (now, later) = usize::try_from(count)
            .ok()
            .and_then(|count| words.split_at_checked(count))
            .ok_or(InvalidBytes::Inconsistent)?;
        let mut storage = F::Storage::zeroed(count)?;
        for (word, bytes) in storage.words_mut().iter_mut().zip(now) {
            word.store(u64::from_le_bytes(*bytes));
        }
        words = later;
        Ok::<_, InvalidBytes>(storage)
    })?;
    if !words.is_empty() {
        return Err(InvalidBytes::Inconsistent);
    }
    agree(&filter, &header)?;
    filter.audit()?;
    Ok(filter)
}

/// Checks that the filter would write this header: derived fields are right, and unused header
/// fields are zero.
pub(super) fn agree<F: Family>(filter: &F, header: &Header) -> Result<(), InvalidBytes> {
    let own = filter.header();
    let Header { payload, root, open, .. } = *header;
    let same = match own.secret {
        None => Header { payload, root, open, ..own } == *header,
        // A caller that brings the secret may use another number for it, and need not keep it in
        // the file.
        Some(secret) => {
            let Header { key_id, secret: kept, .. } = *header;
            let said = Header { payload, root, open, key_id, secret: kept, ..own };
            said == *header && kept.is_none_or(|kept| kept == secret)
        }
    };
    if same { Ok(()) } else { Err(InvalidBytes::Inconsistent) }
}
