//! Copying a filter to the server and back, bit for bit.

use super::header::{BYTES, Header};
use super::script::FILL;
use super::{Options, Shard, SharedBloom};
use crate::answer::{Error, Reason};
use crate::connect::{Server, command};
use redis::Value;
use umbel::BlockedBloomFilter;
use umbel::format::Stored;

/// The number of bytes that are sent or read at a time: half a millisecond of a server's time.
const PIECE: usize = 256 << 10;
/// The number of bytes in a word.
const WORD: usize = 8;

impl<T: ?Sized, H: Stored<T> + Clone> SharedBloom<T, H> {
    /// Copies a filter to the server, bit for bit, under a name that is not taken. No client can insert into it
    /// or query it before the copy is finished. It is complete then: the upload counts as the statement of the
    /// caller that no key is missing.
    ///
    /// # Errors
    ///
    /// [`Error::Exists`] if a filter with this name exists or is being created.
    /// [`Found::delete`](super::Found::delete) removes it.
    pub async fn upload(
        server: &Server,
        name: &str,
        filter: &BlockedBloomFilter<T, H>,
        options: &Options,
    ) -> Result<Self, Error> {
        let hasher = filter.hasher().clone();
        let plan = Header::claim(server, name, *filter.shape(), &hasher, options).await?;
        let uploaded = async {
            let shared =
                Self::make(server, name, plan, hasher, options, Some(filter.words())).await?;
            shared.complete().await?;
            Ok(shared)
        };
        plan.or_delete(server, name, uploaded.await).await
    }

    /// A copy of the filter in memory, bit for bit. It has at least the keys that were inserted before this
    /// call.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if a shard cannot be read or the filter is incomplete, [`Error::Shape`] if there is
    /// not enough memory.
    pub async fn download(&self) -> Result<BlockedBloomFilter<T, H>, Error> {
        let mut filter = BlockedBloomFilter::with(self.plan.shape, self.hasher.clone())?;
        for shard in &self.shards {
            let (mut at, end) = (BYTES as u64, shard.bytes());
            while at < end {
                let piece = shard.fetch(&self.server, at, end.min(at + PIECE as u64)).await?;
                let words: Vec<u64> = piece
                    .as_chunks::<WORD>()
                    .0
                    .iter()
                    .map(|word| u64::from_le_bytes(*word))
                    .collect();
                let bytes = shard.lines.start * 64 + (at - BYTES as u64);
                filter.union_with_words((bytes / WORD as u64) as usize, &words);
                at += piece.len() as u64;
            }
        }
        Ok(filter)
    }

    /// An estimate of the number of different keys in the filter, from the bits in the first 256 KiB of every
    /// shard: all lines of a blocked filter are equally full. `u64::MAX` if all of these bits are set.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if a shard cannot be read or the filter is incomplete.
    pub async fn estimated_len(&self) -> Result<u64, Error> {
        let (mut set, mut seen) = (0_u64, 0_u64);
        for shard in &self.shards {
            let end = shard.bytes().min((BYTES + PIECE) as u64);
            let piece = shard.fetch(&self.server, BYTES as u64, end).await?;
            set += piece.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>();
            seen += piece.len() as u64 * 8;
        }
        let shape = &self.plan.shape;
        if set == seen {
            return Ok(u64::MAX);
        }
        let all = u128::from(set) * u128::from(shape.bits()) / u128::from(seen.max(1));
        Ok(shape.estimate_items(all as u64))
    }
}

impl Shard {
    /// Writes the shard's part of these words, piece by piece.
    pub(super) async fn fill(&self, server: &Server, words: &[u64]) -> Result<(), Error> {
        let lines = self.lines.start as usize * 8..self.lines.end as usize * 8;
        let mut at = BYTES;
        for words in words[lines].chunks(PIECE / WORD) {
            let piece: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let mut call = self.call(&FILL);
            call.arg(at).arg(&piece[..]);
            let reply = FILL.run(server, &self.key, call).await?;
            at += piece.len();
            self.is_growing(&reply, at as u64 == self.bytes())?;
        }
        Ok(())
    }

    /// Some bytes of the shard, if the header proves them.
    async fn fetch(&self, server: &Server, from: u64, to: u64) -> Result<Vec<u8>, Reason> {
        let mut piece = command("GETRANGE");
        piece.arg(&self.key).arg(from).arg(to - 1);
        match self.ask_with_header(server, piece).await? {
            // A copy of an incomplete filter would answer "absent" in memory.
            (pulse, _) if !pulse.complete => Err(Reason::Incomplete),
            (_, Value::BulkString(bytes)) if bytes.len() as u64 == to - from => Ok(bytes),
            _ => Err(Reason::Shrunken),
        }
    }
}
