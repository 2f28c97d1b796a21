//! The four types of values in an engine: their names, and their encodings in RDB and AOF files.
//!
//! | type | name | encoding |
//! |---|---|---|
//! | [`Chain`] | `MBbloom--`, version 4 | RedisBloom's |
//! | [`Cuckoo`] | `MBbloomCF`, version 4 | RedisBloom's |
//! | [`OwnBloom`] | `umbel-bf-`, version 1 | length, then [`Streamed`] in strings of up to a MiB |
//! | [`OwnCuckoo`] | `umbel-cf-`, version 1 | the same |

use crate::bloom::{Chain, ChainFields, Hashing, LinkFields, LinkPlan};
use crate::chunks::MAX_CHUNK;
use crate::cuckoo::{Cuckoo, CuckooFields, Settings, Slots};
use crate::engine::{Digester, Loader, Mover, Rewriter, Saver, Slot, Stored};
use crate::error::Invalid;
use crate::own::stream::{MAX_STREAM, Streamed};
use crate::own::{OwnBloom, OwnCuckoo};
use core::ffi::{CStr, c_int};
use std::io::{self, BufWriter, Read, Write};

/// The oldest encoding of chains that stores the hash of keys, and the first one that stores the growth.
const FIRST_WITH_OPTIONS: c_int = 2;
const FIRST_WITH_GROWTH: c_int = 4;

/// The bytes of a value that count as one step of freeing it.
const BYTES_A_STEP: u64 = 16 << 10;

fn effort(bytes: u64) -> usize {
    (bytes / BYTES_A_STEP + 1) as usize
}

impl Stored for Chain {
    const NAME: &'static CStr = c"MBbloom--";
    const VERSION: c_int = 4;

    fn slot() -> &'static Slot {
        static SLOT: Slot = Slot::new();
        &SLOT
    }

    fn load(from: &mut Loader, version: c_int) -> Result<Self, Invalid> {
        if !(FIRST_WITH_OPTIONS..=Self::VERSION).contains(&version) {
            return Err(Invalid::Field("version"));
        }
        let (size, count) = (from.unsigned()?, from.unsigned()?);
        let options = u32::try_from(from.unsigned()?).map_err(|_| Invalid::Field("options"))?;
        let growth = if version >= FIRST_WITH_GROWTH { from.unsigned()? } else { 2 };
        let growth = u32::try_from(growth).map_err(|_| Invalid::Field("growth"))?;
        let fields = ChainFields { size, options, growth };
        let count = usize::try_from(count).map_err(|_| Invalid::Field("number of links"))?;
        Self::check(fields, count)?;
        let mut links = Vec::new();
        for _ in 0..count {
            let (entries, error, hashes) = (from.unsigned()?, from.double()?, from.unsigned()?);
            let (bits_per_entry, bits, n2) = (from.double()?, from.unsigned()?, from.unsigned()?);
            let bytes = from.bytes()?;
            let size = from.unsigned()?;
            let fields = LinkFields { entries, error, hashes, bits_per_entry, bits, n2, size };
            links.push(LinkPlan::of(fields)?.with(bytes)?);
        }
        Self::of(fields, links, Hashing::Murmur64)
    }

    fn save(&self, to: &mut Saver) {
        let ChainFields { size, options, growth } = self.fields();
        to.unsigned(size);
        to.unsigned(self.links().len() as u64);
        to.unsigned(u64::from(options));
        to.unsigned(u64::from(growth));
        for link in self.links() {
            let fields = link.plan().fields();
            to.unsigned(fields.entries);
            to.double(fields.error);
            to.unsigned(fields.hashes);
            to.double(fields.bits_per_entry);
            to.unsigned(fields.bits);
            to.unsigned(fields.n2);
            to.bytes(link.bytes());
            to.unsigned(fields.size);
        }
    }

    fn rewrite(&self, to: &mut Rewriter) {
        to.chunk(c"BF.LOADCHUNK", 1, &self.header());
        let mut number = 1;
        while let Some((next, chunk)) = self.chunk(number) {
            to.chunk(c"BF.LOADCHUNK", next, chunk);
            number = next;
        }
    }

    fn digest(&self, to: &mut Digester) {
        to.bytes(&self.header());
        self.links().iter().for_each(|link| to.bytes(link.bytes()));
        to.end();
    }

    fn effort(&self) -> usize {
        effort(self.links().iter().map(|link| link.plan().bytes()).sum()) + self.links().len()
    }

    fn try_clone(&self) -> Option<Self> {
        Self::try_clone(self)
    }

    fn defrag(&mut self, mover: &mut Mover) {
        mover.vector(self.links_mut());
        self.links_mut().iter_mut().for_each(|link| mover.bytes(link.memory_mut()));
    }
}

impl Stored for Cuckoo {
    const NAME: &'static CStr = c"MBbloomCF";
    const VERSION: c_int = 4;

    fn slot() -> &'static Slot {
        static SLOT: Slot = Slot::new();
        &SLOT
    }

    fn load(from: &mut Loader, version: c_int) -> Result<Self, Invalid> {
        if version != Self::VERSION {
            return Err(Invalid::Field("version"));
        }
        let (tables, buckets) = (from.unsigned()?, from.unsigned()?);
        let (items, deletes) = (from.unsigned()?, from.unsigned()?);
        let mut short = |name| u16::try_from(from.unsigned()?).map_err(|_| Invalid::Field(name));
        let settings = Settings {
            bucket_size: short("bucket size")?,
            max_iterations: short("max iterations")?,
            expansion: short("expansion")?,
        };
        let fields = CuckooFields { items, buckets, deletes, tables, settings };
        Self::of(fields, |_, len| {
            let buckets = from.unsigned()?;
            if buckets.checked_mul(u64::from(settings.bucket_size)) != Some(len as u64) {
                return Err(Invalid::Field("number of buckets"));
            }
            from.bytes().map(Slots::Taken)
        })
    }

    fn save(&self, to: &mut Saver) {
        let CuckooFields { items, buckets, deletes, tables, settings } = self.fields();
        let Settings { bucket_size, max_iterations, expansion } = settings;
        for word in [tables, buckets, items, deletes] {
            to.unsigned(word);
        }
        for short in [bucket_size, max_iterations, expansion] {
            to.unsigned(u64::from(short));
        }
        for table in self.tables() {
            to.unsigned(table.buckets());
            to.bytes(table.slots());
        }
    }

    fn rewrite(&self, to: &mut Rewriter) {
        to.chunk(c"CF.LOADCHUNK", 1, &self.header());
        let mut number = 1;
        while let Some((next, chunk)) = self.chunk(number) {
            to.chunk(c"CF.LOADCHUNK", next, chunk);
            number = next;
        }
    }

    fn digest(&self, to: &mut Digester) {
        to.bytes(&self.header());
        self.tables().iter().for_each(|table| to.bytes(table.slots()));
        to.end();
    }

    fn effort(&self) -> usize {
        effort(self.tables().iter().map(|table| table.slots().len() as u64).sum())
            + self.tables().len()
    }

    fn try_clone(&self) -> Option<Self> {
        Self::try_clone(self)
    }

    fn defrag(&mut self, mover: &mut Mover) {
        mover.vector(self.tables_mut());
        self.tables_mut().iter_mut().for_each(|table| mover.bytes(table.memory_mut()));
    }
}

/// One of our own types. Their common behaviour is implemented once, by their streams.
pub(crate) trait Own: Streamed + 'static {
    /// Nine letters, the permanent name in files.
    const NAME: &'static CStr;
    /// The command that loads its chunks.
    const LOAD: &'static CStr;

    /// The storage for the engine's handle of it.
    fn own_slot() -> &'static Slot;

    /// The number of bytes of its bits.
    fn own_bytes(&self) -> u64;

    /// A copy, or `None` if there is not enough memory.
    fn again(&self) -> Option<Self>;
}

impl Own for OwnBloom {
    const NAME: &'static CStr = c"umbel-bf-";
    const LOAD: &'static CStr = c"BF.LOADCHUNK";

    fn own_slot() -> &'static Slot {
        static SLOT: Slot = Slot::new();
        &SLOT
    }

    fn own_bytes(&self) -> u64 {
        self.bytes()
    }

    fn again(&self) -> Option<Self> {
        self.try_clone()
    }
}

impl Own for OwnCuckoo {
    const NAME: &'static CStr = c"umbel-cf-";
    const LOAD: &'static CStr = c"CF.LOADCHUNK";

    fn own_slot() -> &'static Slot {
        static SLOT: Slot = Slot::new();
        &SLOT
    }

    fn own_bytes(&self) -> u64 {
        self.bytes()
    }

    fn again(&self) -> Option<Self> {
        self.try_clone()
    }
}

impl<F: Own> Stored for F {
    const NAME: &'static CStr = <F as Own>::NAME;
    const VERSION: c_int = 1;

    fn slot() -> &'static Slot {
        Self::own_slot()
    }

    fn load(from: &mut Loader, version: c_int) -> Result<Self, Invalid> {
        if version != <Self as Stored>::VERSION {
            return Err(Invalid::Field("version"));
        }
        let left = from.unsigned()?;
        if left > MAX_STREAM {
            return Err(Invalid::Length);
        }
        let mut pieces = Pieces { from, left, piece: Box::new([]), at: 0 };
        let filter = Self::read(&mut pieces, left)?;
        if pieces.left > 0 || pieces.at < pieces.piece.len() {
            return Err(Invalid::Length);
        }
        Ok(filter)
    }

    fn save(&self, to: &mut Saver) {
        to.unsigned(self.stream_len());
        let mut writer = BufWriter::with_capacity(PIECE, Strings(to));
        // The engine handles errors of the file.
        let written = self.write(&mut writer).and_then(|()| writer.flush());
        written.expect("strings take everything");
    }

    fn rewrite(&self, to: &mut Rewriter) {
        to.chunk(F::LOAD, 1, &self.dump_header());
        // In one pass: finding the position of a chunk would write the filter from its start each time.
        let mut chunks = Chunks { to, command: F::LOAD, chunk: Vec::new(), number: 1 };
        let written = self.write(&mut chunks).and_then(|()| chunks.flush());
        written.expect("chunks take everything");
    }

    fn digest(&self, to: &mut Digester) {
        // In pieces of one length, independent of how the filter is written.
        let mut writer = BufWriter::with_capacity(PIECE, Digested(to));
        let _ = self.write(&mut writer).and_then(|()| writer.flush());
        drop(writer);
        to.end();
    }

    fn effort(&self) -> usize {
        effort(self.own_bytes())
    }

    fn try_clone(&self) -> Option<Self> {
        self.again()
    }

    /// The library's memory cannot be moved, so a small filter is copied. Large ones are in pages that nothing
    /// else shares.
    fn defrag(&mut self, mover: &mut Mover) {
        const SHARES_PAGES: u64 = 64 << 10;
        if self.own_bytes() <= SHARES_PAGES
            && let Some(copy) = mover.copied(|| self.again())
        {
            *self = copy;
        }
    }
}

/// The longest string of a stream in an RDB file.
const PIECE: usize = 1 << 20;

/// A stream that is read from strings.
struct Pieces<'a> {
    from: &'a mut Loader,
    /// The bytes of strings that were not read yet.
    left: u64,
    piece: Box<[u8]>,
    at: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len() && self.left > 0 && !buffer.is_empty() {
            let piece = self.from.bytes().map_err(io::Error::other)?;
            if piece.is_empty() || piece.len() as u64 > self.left {
                return Err(io::Error::other(Invalid::Length));
            }
            (self.left, self.piece, self.at) = (self.left - piece.len() as u64, piece, 0);
        }
        let read = (&self.piece[self.at..]).read(buffer)?;
        self.at += read;
        Ok(read)
    }
}

/// A stream that is written as commands.
struct Chunks<'a> {
    to: &'a mut Rewriter,
    command: &'static CStr,
    chunk: Vec<u8>,
    number: u64,
}

impl Write for Chunks<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = &bytes[..bytes.len().min(MAX_CHUNK - self.chunk.len())];
        self.chunk.extend_from_slice(taken);
        if self.chunk.len() == MAX_CHUNK {
            self.flush()?;
        }
        Ok(taken.len())
    }

    /// Writes the received bytes as a chunk, which is numbered by its end.
    fn flush(&mut self) -> io::Result<()> {
        if !self.chunk.is_empty() {
            self.number += self.chunk.len() as u64;
            self.to.chunk(self.command, self.number, &self.chunk);
            self.chunk.clear();
        }
        Ok(())
    }
}

/// Writes each piece as a string, of at most a MiB.
struct Strings<'a>(&'a mut Saver);

impl Write for Strings<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(PIECE)];
        if !piece.is_empty() {
            self.0.bytes(piece);
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Adds each piece to a digest.
struct Digested<'a>(&'a mut Digester);

impl Write for Digested<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.bytes(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
