//! Copying: a filter that was built elsewhere goes to the server as it is, and comes back as it is.

use super::header::{BYTES, Header};
use super::make::history_at;
use super::script::FILL;
use super::{Options, Shard, SharedBloom};
use crate::answer::{Error, Reason};
use crate::connect::{Server, bytes_of, command};
use redis::Value;
use umbel::BlockedBloomFilter;
use umbel::format::Stored;

/// Bytes of a filter that are sent or fetched at a time: half a millisecond of a server's time.
const PIECE: usize = 256 << 10;
/// How many bytes there are in a word.
const WORD: usize = 8;

impl<T: ?Sized, H: Stored<T> + Clone> SharedBloom<T, H> {
    /// Copies a filter to the server, bit for bit, under a name that is not taken. Nobody can insert into it
    /// or ask it before it is there.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] if there is a filter already, also one that somebody is making:
    /// [`Found::delete`](super::Found::delete) takes it away.
    pub async fn upload(
        server: &Server,
        name: &str,
        filter: &BlockedBloomFilter<T, H>,
        options: &Options,
    ) -> Result<Self, Error> {
        let hasher = filter.hasher().clone();
        let plan = Header::plan(server, name, *filter.shape(), &hasher, options).await?;
        for shard in Shard::all(&plan, name) {
            shard.fill(server, filter.words()).await?;
        }
        Self::of(server, name, plan, hasher, options).await
    }

    /// A copy of the filter in memory, bit for bit, with at least the keys that were in it when this was
    /// called.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if a part of it is not known, [`Error::Shape`] if there is no memory for it.
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
}

impl Shard {
    /// Writes its part of these words, piece by piece.
    async fn fill(&self, server: &Server, words: &[u64]) -> Result<(), Error> {
        let history = history_at(server, &self.key).await?;
        let lines = self.lines.start as usize * 8..self.lines.end as usize * 8;
        let mut at = BYTES;
        for words in words[lines].chunks(PIECE / WORD) {
            let piece: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let mut call = FILL.call(&self.key);
            call.arg(&self.fixed[..]).arg(at).arg(&piece[..]).arg(self.bytes()).arg(&history.0[..]);
            let reply = FILL.run(server, &self.key, call).await?;
            let (header, ready) = Header::parse(bytes_of(&reply)?)?;
            at += piece.len();
            if header.fixed() != self.fixed || ready != (at as u64 == self.bytes()) {
                return Err(Error::Mismatch { what: "identity: there is one already" });
            }
        }
        Ok(())
    }

    /// Some of its bytes, if they are known to be its own.
    async fn fetch(&self, server: &Server, from: u64, to: u64) -> Result<Vec<u8>, Reason> {
        let mut piece = command("GETRANGE");
        piece.arg(&self.key).arg(from).arg(to - 1);
        match self.ask_with_header(server, piece).await? {
            Value::BulkString(bytes) if bytes.len() as u64 == to - from => Ok(bytes),
            _ => Err(Reason::Shrunken),
        }
    }
}
