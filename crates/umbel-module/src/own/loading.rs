//! A filter whose chunks are coming, one after the other.

use crate::error::Invalid;

/// What has come of a stream so far. It takes memory for what has come, not for what was announced.
#[derive(Debug)]
pub struct Loading {
    total: u64,
    bytes: Vec<u8>,
}

impl Loading {
    /// A stream of so many bytes, of which none has come.
    #[must_use]
    pub const fn new(total: u64) -> Self {
        Self { total, bytes: Vec::new() }
    }

    /// How many bytes will have come in the end.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// What has come.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Takes the next chunk, whose number is one more than the bytes up to its end. `true` if it was the last.
    ///
    /// # Errors
    ///
    /// [`Invalid::Offset`] if it is not the next one, [`Invalid::Chunk`] if it is too long. Nothing has changed then.
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

    /// Forgets the last chunk, which turned out to be no good.
    pub(crate) fn untake(&mut self, chunk: usize) {
        self.bytes.truncate(self.bytes.len().saturating_sub(chunk));
    }

    /// With these bytes, fewer than there will be.
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
