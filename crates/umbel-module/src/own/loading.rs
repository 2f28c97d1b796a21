//! A filter whose chunks are being loaded, one after the other.

use crate::error::Invalid;

/// The received part of a stream. It allocates memory for the received bytes, not for the announced ones.
#[derive(Debug)]
pub struct Loading {
    total: u64,
    bytes: Vec<u8>,
}

impl Loading {
    /// A stream with this total length, of which nothing was received yet.
    #[must_use]
    pub const fn new(total: u64) -> Self {
        Self { total, bytes: Vec::new() }
    }

    /// The total length of the stream.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// The received bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Receives the next chunk, whose number is one more than the bytes up to its end. Returns `true` for the
    /// last chunk.
    ///
    /// # Errors
    ///
    /// [`Invalid::Offset`] if it is not the next chunk, [`Invalid::Chunk`] if it is too long. The state is then
    /// unchanged.
    pub fn take(&mut self, number: u64, chunk: &[u8]) -> Result<bool, Invalid> {
        let end = self.bytes.len() as u64 + chunk.len() as u64;
        if number.checked_sub(1) != Some(end) || chunk.is_empty() {
            return Err(Invalid::Offset);
        }
        if end > self.total {
            return Err(Invalid::Chunk);
        }
        self.bytes.try_reserve(chunk.len()).map_err(|_| Invalid::NoMemory)?;
        self.bytes.extend_from_slice(chunk);
        Ok(end == self.total)
    }

    /// Discards the last chunk, which was invalid.
    pub(crate) fn untake(&mut self, chunk: usize) {
        self.bytes.truncate(self.bytes.len().saturating_sub(chunk));
    }

    /// A stream of which these bytes were received. They must be fewer than the total.
    pub(crate) fn of(total: u64, bytes: Vec<u8>) -> Result<Self, Invalid> {
        if bytes.len() as u64 >= total { Err(Invalid::Length) } else { Ok(Self { total, bytes }) }
    }

    pub(crate) fn try_clone(&self) -> Option<Self> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(self.bytes.len()).ok()?;
        bytes.extend_from_slice(&self.bytes);
        Some(Self { total: self.total, bytes })
    }
}
