//! Dumps of a chain: a header, then its bits in chunks. `BF.SCANDUMP` returns them and `BF.LOADCHUNK` accepts
//! them.
//!
//! ```text
//! header  u64 size, u32 links, u32 options, u32 growth                              20 bytes
//! link    u64 bytes, u64 bits, u64 size, f64 error, f64 bits per entry,
//!         u32 hashes, u64 entries, u8 n2                                            53 bytes
//! chunk   up to 16 MiB of one link; its number is one more than the bytes up to its end
//! ```

use super::{Chain, ChainFields, Hashing, Link, LinkFields, LinkPlan};
use crate::chunks;
use crate::error::Invalid;
use crate::memory;

/// The bytes of a header before its links.
pub const HEADER: usize = 20;

/// The bytes of a link in a header.
pub const LINK_HEADER: usize = 53;

/// Reads numbers from the front of a slice.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Invalid> {
        let (front, rest) = self.0.split_first_chunk::<N>().ok_or(Invalid::Length)?;
        self.0 = rest;
        Ok(*front)
    }

    fn u32(&mut self) -> Result<u32, Invalid> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Invalid> {
        self.take().map(u64::from_le_bytes)
    }

    fn f64(&mut self) -> Result<f64, Invalid> {
        self.take().map(f64::from_le_bytes)
    }
}

impl Chain {
    /// The header of the dump.
    #[must_use]
    pub fn header(&self) -> Vec<u8> {
        let ChainFields { size, options, growth } = self.fields();
        let mut header = Vec::with_capacity(HEADER + self.links.len() * LINK_HEADER);
        header.extend(size.to_le_bytes());
        header.extend((self.links.len() as u32).to_le_bytes());
        header.extend(options.to_le_bytes());
        header.extend(growth.to_le_bytes());
        for link in &self.links {
            let fields = link.plan().fields();
            header.extend(link.plan().bytes().to_le_bytes());
            header.extend(fields.bits.to_le_bytes());
            header.extend(fields.size.to_le_bytes());
            header.extend(fields.error.to_le_bytes());
            header.extend(fields.bits_per_entry.to_le_bytes());
            header.extend((fields.hashes as u32).to_le_bytes());
            header.extend(fields.entries.to_le_bytes());
            header.push(fields.n2 as u8);
        }
        header
    }

    /// The number of bytes of bits in the chain of this header.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if this is not a header.
    pub fn bytes_of_header(header: &[u8]) -> Result<u64, Invalid> {
        let (_, plans) = plans(header)?;
        Ok(plans.iter().map(LinkPlan::bytes).fold(0, u64::saturating_add))
    }

    /// The chain of this header, with no bit set. The chunks set them.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if this is not a header, or there is not enough memory for what it announces.
    pub fn of_header(header: &[u8], hashing: Hashing) -> Result<Self, Invalid> {
        let (fields, plans) = plans(header)?;
        // All links are checked before the first one allocates memory.
        let sum = plans.iter().map(LinkPlan::bytes).fold(0, u64::saturating_add);
        if !memory::can_take(sum) {
            return Err(Invalid::NoMemory);
        }
        let links = plans.into_iter().map(LinkPlan::empty).collect::<Result<Vec<_>, _>>()?;
        Self::of(fields, links, hashing)
    }

    /// The chunk after this number, with its own number. `None` at the end, or if there is no such position.
    #[must_use]
    pub fn chunk(&self, after: u64) -> Option<(u64, &[u8])> {
        chunks::after(self.links.iter().map(Link::bytes), after)
    }

    /// Stores a chunk at the position that its number gives.
    ///
    /// # Errors
    ///
    /// [`Invalid::Offset`] if there is no link at this position, [`Invalid::Chunk`] if the chunk is longer than
    /// the rest of the link. The chain is then unchanged.
    pub fn load_chunk(&mut self, number: u64, chunk: &[u8]) -> Result<(), Invalid> {
        let lengths = self.links.iter().map(|link| link.bytes().len());
        let (link, start) = chunks::place(lengths, number, chunk.len())?;
        self.links[link].bytes_mut()[start..start + chunk.len()].copy_from_slice(chunk);
        Ok(())
    }
}

/// The fields of the chain and of each of its links, from a header.
fn plans(header: &[u8]) -> Result<(ChainFields, Vec<LinkPlan>), Invalid> {
    let mut reader = Reader(header);
    let size = reader.u64()?;
    let count = reader.u32()? as usize;
    let fields = ChainFields { size, options: reader.u32()?, growth: reader.u32()? };
    Chain::check(fields, count)?;
    if reader.0.len() != count * LINK_HEADER {
        return Err(Invalid::Length);
    }
    let plans = (0..count).map(|_| plan(&mut reader)).collect::<Result<_, _>>()?;
    Ok((fields, plans))
}

fn plan(reader: &mut Reader<'_>) -> Result<LinkPlan, Invalid> {
    let (bytes, bits, size) = (reader.u64()?, reader.u64()?, reader.u64()?);
    let (error, bits_per_entry) = (reader.f64()?, reader.f64()?);
    let (hashes, entries) = (u64::from(reader.u32()?), reader.u64()?);
    let n2 = u64::from(reader.take::<1>()?[0]);
    let plan = LinkPlan::of(LinkFields { entries, error, hashes, bits_per_entry, bits, n2, size })?;
    if bytes == plan.bytes() { Ok(plan) } else { Err(Invalid::Field("bytes")) }
}

#[cfg(test)]
mod tests {
    use super::super::Growth;
    use super::*;

    fn chain() -> Chain {
        let mut chain = Chain::new(20, 0.01, Growth::By(2)).unwrap();
        for key in 0..500_u32 {
            let pair = chain.hash(&key.to_le_bytes());
            chain.add(pair).unwrap();
        }
        chain
    }

    fn same(one: &Chain, other: &Chain) -> bool {
        one.header() == other.header()
            && one.links().iter().zip(other.links()).all(|(a, b)| a.bytes() == b.bytes())
    }

    #[test]
    fn a_dump_moves_a_chain() {
        let chain = chain();
        let mut copy = Chain::of_header(&chain.header(), Hashing::Murmur64).unwrap();
        assert!(!same(&chain, &copy));
        let (mut number, mut chunks) = (1, 0);
        while let Some((next, chunk)) = chain.chunk(number) {
            copy.load_chunk(next, chunk).unwrap();
            (number, chunks) = (next, chunks + 1);
        }
        assert_eq!(chunks, chain.links().len());
        assert!(same(&chain, &copy));
        assert_eq!(chain.chunk(number), None);
        assert_eq!((chain.chunk(0), chain.chunk(u64::MAX)), (None, None));
    }

    #[test]
    fn the_header_has_the_bytes_that_are_written_down() {
        let header = Chain::new(100, 0.01, Growth::By(2)).unwrap().header();
        let mut expected = Vec::new();
        expected.extend([0; 8]);
        expected.extend([1, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0]);
        expected.extend(144_u64.to_le_bytes());
        expected.extend(1152_u64.to_le_bytes());
        expected.extend([0; 8]);
        expected.extend(0.005_f64.to_le_bytes());
        expected.extend((-(0.005_f64.ln()) / 0.480453013918201).to_le_bytes());
        expected.extend(8_u32.to_le_bytes());
        expected.extend(100_u64.to_le_bytes());
        expected.push(0);
        assert_eq!(header, expected);
    }

    #[test]
    fn filters_of_old_hash_with_32_bits_into_a_power_of_two() {
        let mut header = Chain::new(100, 0.01, Growth::By(2)).unwrap().header();
        header[12] = 0; // options: neither 64 bits nor sizes that are not rounded
        header[HEADER..HEADER + 8].copy_from_slice(&128_u64.to_le_bytes());
        header[HEADER + 8..HEADER + 16].copy_from_slice(&1024_u64.to_le_bytes());
        header[HEADER + 52] = 10;
        let mut chain = Chain::of_header(&header, Hashing::Murmur64).unwrap();
        assert_eq!(chain.hashing(), &Hashing::Murmur32);
        let pair = chain.hash(b"key");
        assert!(pair.a <= u64::from(u32::MAX) && pair.b <= u64::from(u32::MAX));
        assert_eq!((chain.add(pair), chain.contains(pair)), (Ok(true), true));
        let positions = (0..8).map(|i| (pair.a + i * pair.b) & 1023);
        for position in positions {
            assert_eq!(chain.links()[0].bytes()[position as usize / 8] >> (position % 8) & 1, 1);
        }
        assert_eq!(chain.header()[HEADER..HEADER + 16], header[HEADER..HEADER + 16]);
    }

    #[test]
    fn headers_that_are_cut_or_too_long_are_refused() {
        let header = chain().header();
        for len in 0..header.len() {
            assert!(Chain::of_header(&header[..len], Hashing::Murmur64).is_err(), "{len}");
        }
        let longer = [&header[..], &[0]].concat();
        assert_eq!(Chain::of_header(&longer, Hashing::Murmur64).unwrap_err(), Invalid::Length);
        let mut bytes = header.clone();
        bytes[HEADER] ^= 1;
        assert_eq!(
            Chain::of_header(&bytes, Hashing::Murmur64).unwrap_err(),
            Invalid::Field("bytes")
        );
    }

    #[test]
    fn chunks_for_places_that_are_not_there_change_nothing() {
        let mut chain = chain();
        let before = chain.try_clone().unwrap();
        let end = 1 + chain.links().iter().map(|link| link.bytes().len() as u64).sum::<u64>();
        let first = chain.links()[0].bytes().len();
        for (number, len) in [(0, 1), (1, 1), (end + 1, 1), (u64::MAX, 1), (5, 5), (u64::MAX, 100)]
        {
            assert_eq!(
                chain.load_chunk(number, &vec![255; len]),
                Err(Invalid::Offset),
                "{number} {len}"
            );
        }
        let over = chain.load_chunk(first as u64 + 2, &vec![255; first + 1]);
        assert_eq!(over, Err(Invalid::Chunk));
        assert_eq!(chain.load_chunk(end + 1, &[255; 2]), Err(Invalid::Chunk));
        assert!(same(&chain, &before));
    }
}
