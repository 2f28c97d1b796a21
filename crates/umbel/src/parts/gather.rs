//! Numbers from a source of unknown length, in chunks. They are never copied when more arrive, and
//! are freed chunk by chunk when they are taken out again.

use alloc::vec::Vec;

/// The numbers of a chunk: 1 MiB of words.
pub(crate) const CHUNK: usize = 1 << 17;

/// Numbers in the order of their arrival.
#[derive(Clone, Debug, Default)]
pub struct Gathered<N = u64> {
    /// All chunks except the last are full.
    chunks: Vec<Vec<N>>,
}

/// The maximum number of bytes for this many numbers.
pub(crate) const fn bytes(numbers: u64) -> u64 {
    let room = if numbers < CHUNK as u64 {
        let power = numbers.next_power_of_two();
        if power > 64 { power } else { 64 }
    } else {
        numbers.div_ceil(CHUNK as u64).saturating_mul(CHUNK as u64)
    };
    room.saturating_mul(8)
}

/// The allocator has no memory for another chunk.
#[derive(Debug)]
pub(crate) struct NoRoom;

impl<N> Gathered<N> {
    /// Appends a number. On failure, nothing changes.
    #[inline]
    pub(crate) fn push(&mut self, number: N) -> Result<(), NoRoom> {
        if let Some(chunk) = self.chunks.last_mut()
            && chunk.len() < chunk.capacity()
        {
            chunk.push(number);
            return Ok(());
        }
        self.push_chunk(number)
    }

    #[cold]
    fn push_chunk(&mut self, number: N) -> Result<(), NoRoom> {
        // The first chunk grows, so that few numbers take little memory.
        let grown = match &mut self.chunks[..] {
            [only] if only.len() < CHUNK => Some(only),
            _ => None,
        };
        if let Some(only) = grown {
            only.try_reserve_exact(only.len().min(CHUNK - only.len())).map_err(|_| NoRoom)?;
            only.push(number);
            return Ok(());
        }
        let first = self.chunks.is_empty();
        let mut chunk = Vec::new();
        chunk.try_reserve_exact(if first { 64 } else { CHUNK }).map_err(|_| NoRoom)?;
        self.chunks.try_reserve(1).map_err(|_| NoRoom)?;
        chunk.push(number);
        self.chunks.push(chunk);
        Ok(())
    }

    /// The number of numbers.
    pub(crate) fn len(&self) -> usize {
        match self.chunks.split_last() {
            Some((last, full)) => full.len() * CHUNK + last.len(),
            None => 0,
        }
    }

    /// All numbers, a chunk at a time.
    pub(crate) fn chunks(&self) -> impl ExactSizeIterator<Item = &[N]> {
        self.chunks.iter().map(Vec::as_slice)
    }

    /// All numbers, a chunk at a time. The memory of a chunk is freed when the caller drops it.
    pub(crate) fn into_chunks(self) -> impl ExactSizeIterator<Item = Vec<N>> {
        self.chunks.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_in_comes_out_in_order() {
        for len in [0, 1, 63, 64, 65, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5] {
            let mut gathered = Gathered::default();
            for number in 0..len as u64 {
                gathered.push(number).unwrap();
            }
            assert_eq!(gathered.len(), len);
            assert!(gathered.chunks().flatten().copied().eq(0..len as u64));
            assert!(gathered.clone().into_chunks().flatten().eq(0..len as u64));
            let held: usize = gathered.chunks.iter().map(Vec::capacity).sum();
            assert!(held as u64 * 8 <= bytes(len as u64), "{held} for {len}");
            assert!(held <= len.max(32) * 2 && held < len + CHUNK + 64, "{held} for {len}");
        }
    }
}
