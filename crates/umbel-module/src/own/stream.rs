//! The bytes of our own filters: one stream for RDB files, `RESTORE`, dumps and AOF files, and one function
//! that reads it.
//!
//! ```text
//! 8   "umbelBF" or "umbelCF", and the version 1       all numbers little-endian
//! 1   kind: 1 keyed chain  2 blocked  3 window  4 cuckoo  9 loading
//!
//! 1   16 secret, u32 length of the header, RedisBloom's header, the bits of its links
//! 2   u32 growth (0: none), u32 levels; each: u64 size, f64 rate, a filter as in docs/format.md, with its secret
//! 3   a filter as in docs/format.md, with its secret
//! 4   u64 deletes, a filter as in docs/format.md
//! 9   u64 total, u64 length, what has come of such a stream
//! ```
//!
//! A dump begins with a chunk of 16 bytes, "umbeldmp" and the length of the stream as u64; then comes the stream.

use super::blocked::{Blocked, Level};
use super::{Loading, OwnBloom, OwnCuckoo};
use crate::bloom::{Chain, Growth, HEADER, Hashing, LINK_HEADER, MAX_GROWTH, MAX_LINKS};
use crate::chunks::MAX_CHUNK;
use crate::error::Invalid;
use core::ops::Range;
use std::io::{self, Read, Write};
use umbel::Keyed;
use umbel::any::AnyHasher;
use umbel::format::Opening;
use umbel::window::Window;
use umbel::{BlockedBloomFilter, CuckooFilter, Saved, WindowBloomFilter};

const BLOOM: [u8; 8] = *b"umbelBF\x01";
const CUCKOO: [u8; 8] = *b"umbelCF\x01";
const DUMP: [u8; 8] = *b"umbeldmp";

/// The longest stream: see [`crate::bloom::MAX_BITS`].
pub(crate) const MAX_STREAM: u64 = 1 << 40;

/// The kinds, by their numbers in streams.
mod kind {
    pub(super) const KEYED: u8 = 1;
    pub(super) const BLOCKED: u8 = 2;
    pub(super) const WINDOW: u8 = 3;
    pub(super) const CUCKOO: u8 = 4;
    pub(super) const LOADING: u8 = 9;
}

/// A part of a stream.
#[derive(Debug)]
pub enum Part<'a> {
    /// A few computed bytes.
    Few(Vec<u8>),
    /// Bytes of the filter.
    Bytes(&'a [u8]),
    /// A filter as in `docs/format.md`, with its secret.
    Blocked(&'a BlockedBloomFilter<[u8], AnyHasher>),
    /// A filter as in `docs/format.md`, with its secret.
    Window(&'a WindowBloomFilter<[u8], AnyHasher>),
    /// A filter as in `docs/format.md`, with its secret.
    Cuckoo(&'a CuckooFilter<[u8], AnyHasher>),
}

impl Part<'_> {
    fn len(&self) -> u64 {
        match self {
            Self::Few(bytes) => bytes.len() as u64,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Blocked(filter) => filter.saved_len(),
            Self::Window(filter) => filter.saved_len(),
            Self::Cuckoo(filter) => filter.saved_len(),
        }
    }

    fn write(&self, range: Range<u64>, writer: &mut impl Write) -> io::Result<()> {
        let within = range.start as usize..range.end as usize;
        match self {
            Self::Few(bytes) => writer.write_all(&bytes[within]),
            Self::Bytes(bytes) => writer.write_all(&bytes[within]),
            Self::Blocked(filter) => filter.write_range_with_secret(range, writer),
            Self::Window(filter) => filter.write_range_with_secret(range, writer),
            Self::Cuckoo(filter) => filter.write_range_with_secret(range, writer),
        }
    }
}

/// A filter that is written as a stream, and read from one.
pub trait Streamed: Sized {
    /// The parts of the stream, one after the other.
    fn parts(&self) -> Vec<Part<'_>>;

    /// Writes a range of the stream. Parts outside the range are not computed. The exception is a filter of
    /// `umbel`, which is read once for its first bytes and for its checksums, which are its last bytes.
    ///
    /// # Errors
    ///
    /// The error of the writer.
    fn write_range(&self, range: Range<u64>, writer: &mut impl Write) -> io::Result<()> {
        let mut at = 0;
        for part in self.parts() {
            let len = part.len();
            let place = |end: u64| end.saturating_sub(at).min(len);
            let within = place(range.start)..place(range.end);
            if !within.is_empty() {
                part.write(within, writer)?;
            }
            at += len;
        }
        Ok(())
    }

    /// Writes the stream.
    ///
    /// # Errors
    ///
    /// The error of the writer.
    fn write(&self, writer: &mut impl Write) -> io::Result<()> {
        self.write_range(0..u64::MAX, writer)
    }

    /// Reads the filter of a stream of at most `limit` bytes. Bytes after it are not read.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if this is not such a stream.
    fn read(reader: &mut impl Read, limit: u64) -> Result<Self, Invalid>;

    /// A filter whose chunks are being loaded.
    fn loading(loading: Loading) -> Self;

    /// The received part, if its chunks are being loaded.
    fn loading_mut(&mut self) -> Option<&mut Loading>;

    /// Reads the filter from all of these bytes.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if this is not such a stream, or it is incomplete.
    fn of(mut bytes: &[u8]) -> Result<Self, Invalid> {
        let limit = bytes.len() as u64;
        let filter = Self::read(&mut bytes, limit)?;
        if bytes.is_empty() { Ok(filter) } else { Err(Invalid::Length) }
    }

    /// The length of the stream.
    fn stream_len(&self) -> u64 {
        self.parts().iter().map(Part::len).sum()
    }

    /// The first chunk of its dump.
    fn dump_header(&self) -> [u8; 16] {
        let mut header = [0; 16];
        header[..8].copy_from_slice(&DUMP);
        header[8..].copy_from_slice(&self.stream_len().to_le_bytes());
        header
    }

    /// The chunk after this number, with its own number. `None` at the end, or if there is no such position.
    fn chunk(&self, after: u64) -> Option<(u64, Vec<u8>)> {
        let start = after.checked_sub(1)?;
        let end = self.stream_len().min(start.saturating_add(MAX_CHUNK as u64));
        let mut bytes = Vec::with_capacity(usize::try_from(end.checked_sub(start)?).ok()?);
        self.write_range(start..end, &mut bytes).ok()?;
        (!bytes.is_empty()).then_some((end + 1, bytes))
    }

    /// Receives a chunk. After the last one, this value becomes the filter.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if no chunk is expected, or not this one, or the whole stream is invalid. The state is then
    /// unchanged.
    fn load_chunk(&mut self, number: u64, chunk: &[u8]) -> Result<(), Invalid> {
        let loading = self.loading_mut().ok_or(Invalid::Offset)?;
        if loading.take(number, chunk)? {
            match Self::of(loading.bytes()) {
                Ok(filter) => *self = filter,
                Err(invalid) => {
                    loading.untake(chunk.len());
                    return Err(invalid);
                }
            }
        }
        Ok(())
    }
}

/// The announcement in the first chunk of a dump; `None` if the dump is not of our types.
pub(crate) fn announced(header: &[u8]) -> Option<Result<Loading, Invalid>> {
    let (magic, total) = header.split_first_chunk::<8>()?;
    let total = u64::from_le_bytes(total.try_into().ok()?);
    let valid = total > 0 && total <= MAX_STREAM;
    (*magic == DUMP).then(|| if valid { Ok(Loading::new(total)) } else { Err(Invalid::Length) })
}

impl Streamed for OwnBloom {
    fn parts(&self) -> Vec<Part<'_>> {
        match self {
            Self::Keyed(chain) => keyed_parts(chain),
            Self::Blocked(blocked) => blocked_parts(blocked),
            Self::Window(window) => vec![head(BLOOM, kind::WINDOW, &[]), Part::Window(window)],
            Self::Loading(loading) => loading_parts(BLOOM, loading),
        }
    }

    fn read(reader: &mut impl Read, limit: u64) -> Result<Self, Invalid> {
        match take_kind(reader, BLOOM)? {
            kind::KEYED => read_keyed(reader, limit).map(Self::Keyed),
            kind::BLOCKED => read_blocked(reader, limit).map(Self::Blocked),
            kind::WINDOW => {
                let window: WindowBloomFilter<[u8], AnyHasher> = read_filter(reader, limit)?;
                let bytes = window.hasher().keys() == umbel::hash::Kind::Bytes;
                let counts = matches!(window.shape().window(), Window::Insertions(_));
                if bytes && counts {
                    Ok(Self::Window(window))
                } else {
                    Err(Invalid::Field("window"))
                }
            }
            kind::LOADING => read_loading(reader, limit).map(Self::Loading),
            _ => Err(Invalid::Field("kind")),
        }
    }

    fn loading(loading: Loading) -> Self {
        Self::Loading(loading)
    }

    fn loading_mut(&mut self) -> Option<&mut Loading> {
        if let Self::Loading(loading) = self { Some(loading) } else { None }
    }
}

impl Streamed for OwnCuckoo {
    fn parts(&self) -> Vec<Part<'_>> {
        match self {
            Self::Filter(filter, deletes) => {
                vec![head(CUCKOO, kind::CUCKOO, &[&deletes.to_le_bytes()]), Part::Cuckoo(filter)]
            }
            Self::Loading(loading) => loading_parts(CUCKOO, loading),
        }
    }

    fn read(reader: &mut impl Read, limit: u64) -> Result<Self, Invalid> {
        match take_kind(reader, CUCKOO)? {
            kind::CUCKOO => {
                let deletes = u64::from_le_bytes(take(reader)?);
                let filter: CuckooFilter<[u8], AnyHasher> = read_filter(reader, limit)?;
                if filter.hasher().keys() != umbel::hash::Kind::Bytes {
                    return Err(Invalid::Field("kind of keys"));
                }
                Ok(Self::Filter(filter, deletes))
            }
            kind::LOADING => read_loading(reader, limit).map(Self::Loading),
            _ => Err(Invalid::Field("kind")),
        }
    }

    fn loading(loading: Loading) -> Self {
        Self::Loading(loading)
    }

    fn loading_mut(&mut self) -> Option<&mut Loading> {
        if let Self::Loading(loading) = self { Some(loading) } else { None }
    }
}

fn take<const N: usize>(reader: &mut impl Read) -> Result<[u8; N], Invalid> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes).map_err(|_| Invalid::Read)?;
    Ok(bytes)
}

fn take_kind(reader: &mut impl Read, magic: [u8; 8]) -> Result<u8, Invalid> {
    if take(reader)? != magic {
        return Err(Invalid::Field("name or version"));
    }
    Ok(take::<1>(reader)?[0])
}

/// Reads `len` bytes, and allocates memory as they arrive.
fn take_bytes(reader: &mut impl Read, len: u64, limit: u64) -> Result<Vec<u8>, Invalid> {
    if len > limit {
        return Err(Invalid::Length);
    }
    let mut bytes = Vec::new();
    reader.take(len).read_to_end(&mut bytes).map_err(|_| Invalid::Read)?;
    if bytes.len() as u64 == len { Ok(bytes) } else { Err(Invalid::Read) }
}

/// A filter as in `docs/format.md`.
fn read_filter<F>(reader: &mut impl Read, limit: u64) -> Result<F, Invalid>
where
    F: Saved + umbel::format::Family,
    F::Storage: umbel::storage::Allocate,
{
    Opening::new().limit(limit).read(reader).map_err(|_| Invalid::Field("filter"))
}

/// The beginning of a stream.
fn head(magic: [u8; 8], kind: u8, fields: &[&[u8]]) -> Part<'static> {
    Part::Few([&magic, &[kind][..], &fields.concat()].concat())
}

fn keyed_parts(chain: &Chain) -> Vec<Part<'_>> {
    let Hashing::Keyed(keyed) = chain.hashing() else {
        unreachable!("keyed chains are made and read with a secret")
    };
    let header = chain.header();
    let len = (header.len() as u32).to_le_bytes();
    let mut parts = vec![head(BLOOM, kind::KEYED, &[keyed.secret(), &len, &header])];
    parts.extend(chain.links().iter().map(|link| Part::Bytes(link.bytes())));
    parts
}

fn read_keyed(reader: &mut impl Read, limit: u64) -> Result<Chain, Invalid> {
    let hashing = Hashing::Keyed(Keyed::new(take(reader)?));
    let len = u64::from(u32::from_le_bytes(take(reader)?));
    let most = (HEADER + LINK_HEADER * MAX_LINKS) as u64;
    let header = take_bytes(reader, len, most.min(limit))?;
    let bits = Chain::bytes_of_header(&header)?;
    if bits > limit {
        return Err(Invalid::Length);
    }
    let mut chain = Chain::of_header(&header, hashing)?;
    for link in chain.links_mut() {
        reader.read_exact(link.memory_mut()).map_err(|_| Invalid::Read)?;
    }
    Ok(chain)
}

fn blocked_parts(blocked: &Blocked) -> Vec<Part<'_>> {
    let growth = match blocked.growth() {
        Growth::By(growth) => growth,
        Growth::None => 0,
    };
    let count = (blocked.levels().len() as u32).to_le_bytes();
    let mut parts = vec![head(BLOOM, kind::BLOCKED, &[&growth.to_le_bytes(), &count])];
    for level in blocked.levels() {
        parts.push(Part::Few([level.size.to_le_bytes(), level.rate.to_le_bytes()].concat()));
        parts.push(Part::Blocked(&level.filter));
    }
    parts
}

fn read_blocked(reader: &mut impl Read, limit: u64) -> Result<Blocked, Invalid> {
    let growth = u32::from_le_bytes(take(reader)?);
    let count = u32::from_le_bytes(take(reader)?) as usize;
    if growth > MAX_GROWTH || count > MAX_LINKS {
        return Err(Invalid::Field("growth"));
    }
    let mut levels = Vec::new();
    for _ in 0..count {
        let size = u64::from_le_bytes(take(reader)?);
        let rate = f64::from_le_bytes(take(reader)?);
        levels.push(Level { filter: read_filter(reader, limit)?, size, rate });
    }
    Blocked::of(levels, if growth == 0 { Growth::None } else { Growth::By(growth) })
}

fn loading_parts(magic: [u8; 8], loading: &Loading) -> Vec<Part<'_>> {
    let bytes = loading.bytes();
    let numbers = [loading.total(), bytes.len() as u64].map(u64::to_le_bytes);
    vec![head(magic, kind::LOADING, &[numbers.as_flattened()]), Part::Bytes(bytes)]
}

fn read_loading(reader: &mut impl Read, limit: u64) -> Result<Loading, Invalid> {
    let total = u64::from_le_bytes(take(reader)?);
    let len = u64::from_le_bytes(take(reader)?);
    if total > MAX_STREAM {
        return Err(Invalid::Length);
    }
    Loading::of(total, take_bytes(reader, len, limit)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::Membership;

    fn blooms() -> Vec<OwnBloom> {
        let keyed = Keyed::new([7; 16]);
        let mut blooms = vec![
            OwnBloom::keyed(50, 0.01, Growth::By(2), keyed).unwrap(),
            OwnBloom::Blocked(Blocked::new(50, 0.01, Growth::By(2), None).unwrap()),
            OwnBloom::Blocked(Blocked::new(500, 0.001, Growth::None, Some(keyed)).unwrap()),
            OwnBloom::window(300, 0.01, None).unwrap(),
            OwnBloom::window(300, 0.01, Some(keyed)).unwrap(),
        ];
        for bloom in &mut blooms {
            let keys: Vec<Vec<u8>> = (0..300_u32).map(|key| key.to_le_bytes().to_vec()).collect();
            let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            bloom.ready_mut().unwrap().put(&keys, &mut vec![false; keys.len()]).unwrap();
        }
        blooms
    }

    fn bytes(filter: &impl Streamed) -> Vec<u8> {
        let mut bytes = Vec::new();
        filter.write(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn streams_give_back_the_same_filter() {
        for bloom in blooms() {
            let before = bytes(&bloom);
            let copy = OwnBloom::of(&before).unwrap();
            assert_eq!(bytes(&copy), before);
            assert_eq!(copy.ready().unwrap().about(), bloom.ready().unwrap().about());
            for key in 0..300_u32 {
                let mut found = [false];
                copy.ready().unwrap().find(&[&key.to_le_bytes()], &mut found);
                assert!(found[0], "{key}");
            }
        }
        let mut cuckoo = OwnCuckoo::new(500, 0.001).unwrap();
        for key in 0..500_u32 {
            let digest = cuckoo.digest(&key.to_le_bytes());
            cuckoo.add(digest).unwrap();
        }
        assert!(cuckoo.remove(cuckoo.digest(&3_u32.to_le_bytes())));
        assert_eq!(bytes(&OwnCuckoo::of(&bytes(&cuckoo)).unwrap()), bytes(&cuckoo));
    }

    #[test]
    fn chunks_give_back_the_same_filter_in_order_only() {
        for bloom in blooms() {
            let stream = bytes(&bloom);
            let header = bloom.dump_header();
            let mut copy = OwnBloom::loading(announced(&header).unwrap().unwrap());
            assert!(copy.ready().is_none());
            for (number, chunk) in stream.chunks(1_000).enumerate() {
                let number = 1 + (number * 1_000 + chunk.len()) as u64;
                assert_eq!(copy.load_chunk(number + 1, chunk), Err(Invalid::Offset));
                copy.load_chunk(number, chunk).unwrap();
            }
            assert_eq!(bytes(&copy), stream);
            let (next, chunk) = bloom.chunk(1).unwrap();
            assert_eq!((next, &chunk), (1 + stream.len() as u64, &stream));
            assert_eq!((bloom.chunk(next), bloom.chunk(0)), (None, None));
            assert_eq!((bloom.chunk(next + 1), bloom.chunk(u64::MAX)), (None, None));
            assert_eq!(bloom.stream_len(), stream.len() as u64);
        }
    }

    #[test]
    fn every_range_of_a_stream_is_what_the_whole_has_there() {
        let mut cuckoo = OwnCuckoo::new(5_000, 0.001).unwrap();
        for key in 0..5_000_u32 {
            let digest = cuckoo.digest(&key.to_le_bytes());
            cuckoo.add(digest).unwrap();
        }
        // Several levels, each of several blocks.
        let mut blocked = Blocked::new(9_000, 0.001, Growth::By(2), None).unwrap();
        let keys: Vec<[u8; 4]> = (0..20_000_u32).map(u32::to_le_bytes).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        blocked.put(&keys, &mut vec![false; keys.len()]).unwrap();
        let mut blooms = blooms();
        blooms.push(OwnBloom::Blocked(blocked));
        blooms.iter().for_each(ranges);
        ranges(&cuckoo);
    }

    fn ranges(filter: &impl Streamed) {
        let stream = bytes(filter);
        let (len, mut state) = (stream.len() as u64, 7_u64);
        let mut dice = |most: u64| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) % most
        };
        for round in 0..600 {
            let start = dice(len);
            let most = if round % 2 == 0 { 40 } else { len };
            let end = len.min(start + dice(most) + 1);
            let mut part = Vec::new();
            filter.write_range(start..end, &mut part).unwrap();
            assert!(part == stream[start as usize..end as usize], "{start}..{end} of {len}");
        }
    }

    #[test]
    fn half_loaded_filters_are_streams_too() {
        let bloom = &blooms()[1];
        let (header, stream) = (bloom.dump_header(), bytes(bloom));
        let mut copy = OwnBloom::loading(announced(&header).unwrap().unwrap());
        copy.load_chunk(101, &stream[..100]).unwrap();
        let mut copy = OwnBloom::of(&bytes(&copy)).unwrap();
        copy.load_chunk(1 + stream.len() as u64, &stream[100..]).unwrap();
        assert_eq!(bytes(&copy), stream);
    }

    #[test]
    fn damaged_streams_are_refused_or_make_a_filter_that_works() {
        for bloom in blooms() {
            let stream = bytes(&bloom);
            for len in 0..stream.len().min(600) {
                assert!(OwnBloom::of(&stream[..len]).is_err(), "{len}");
            }
            for bit in 0..stream.len().min(400) * 8 {
                let mut damaged = stream.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                if let Ok(mut filter) = OwnBloom::of(&damaged)
                    && let Some(filter) = filter.ready_mut()
                {
                    filter.find(&[b"key"], &mut [false]);
                    let _ = filter.put(&[b"key"], &mut [false]);
                    let (_, _) = (filter.about(), filter.measure());
                }
            }
        }
    }
}
