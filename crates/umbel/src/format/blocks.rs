//! The checksums of the words: one for each block of 8 KiB, and one of these checksums.
//!
//! The hash of a block includes its number, so blocks that are zeroed, swapped or moved never
//! verify.

use super::header::Header;
use crate::error::InvalidBytes;
use twox_hash::XxHash3_64;

/// The bytes of a block. The last block may have fewer.
pub(crate) const BLOCK: usize = 8 << 10;
/// The seed of the checksum of the table. Combined with the number of a block, the seed of that
/// block.
const SEED: u64 = 0x756d_6265_6c20_626c;

/// How many blocks this many bytes have.
pub(crate) const fn count(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK as u64)
}

pub(crate) fn checksum(number: u64, block: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(SEED.wrapping_add(number).wrapping_add(1), block)
}

/// The checksum of the table of all checksums.
pub(crate) fn root(table: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(SEED, table)
}

/// The checksums of a filter that is being opened.
pub(crate) struct Sums<'a> {
    pub(crate) header: &'a Header,
    pub(crate) table: &'a [u8],
    /// Whether to accept words of which a writer did not finish changes.
    pub(crate) unfinished: bool,
}

impl Sums<'_> {
    /// Checks the table against the header.
    pub(crate) fn verify_table(&self) -> Result<(), InvalidBytes> {
        self.judge(root(self.table) == self.header.root, InvalidBytes::Table)
    }

    /// Checks a block against the table.
    pub(crate) fn verify(&self, number: u64, block: &[u8]) -> Result<(), InvalidBytes> {
        let at = number as usize * 8;
        let expected = self.table.get(at..at + 8);
        let same = expected == Some(&checksum(number, block).to_le_bytes());
        self.judge(same, InvalidBytes::Block { number })
    }

    /// While a writer was changing the words, checksums are not expected to match.
    const fn judge(&self, same: bool, error: InvalidBytes) -> Result<(), InvalidBytes> {
        match (same, self.header.open) {
            (true, _) => Ok(()),
            (false, false) => Err(error),
            (false, true) if self.unfinished => Ok(()),
            (false, true) => Err(InvalidBytes::Open),
        }
    }
}

/// Splits words into blocks.
#[cfg(feature = "alloc")]
pub(crate) struct Cutter {
    block: [u8; BLOCK],
    len: usize,
    number: u64,
}

#[cfg(feature = "alloc")]
impl Cutter {
    pub(crate) const fn new() -> Self {
        Self { block: [0; BLOCK], len: 0, number: 0 }
    }

    /// Takes words, and passes on every full block.
    pub(crate) fn push<E>(
        &mut self,
        mut words: &[u64],
        each: &mut impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        while !words.is_empty() {
            let (now, later) = words.split_at(words.len().min((BLOCK - self.len) / 8));
            let space = self.block[self.len..].as_chunks_mut::<8>().0;
            for (bytes, word) in space.iter_mut().zip(now) {
                *bytes = word.to_le_bytes();
            }
            self.len += now.len() * 8;
            words = later;
            if self.len == BLOCK {
                self.finish(each)?;
            }
        }
        Ok(())
    }

    /// Passes on the last block, unless it is empty.
    pub(crate) fn finish<E>(
        &mut self,
        each: &mut impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.len > 0 {
            each(self.number, &self.block[..self.len])?;
            (self.len, self.number) = (0, self.number + 1);
        }
        Ok(())
    }
}
