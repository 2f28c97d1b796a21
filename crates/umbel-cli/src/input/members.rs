//! Packed streams of one format that follow each other, as `cat` and log rotation make them.

use super::packed::Format;
#[cfg(feature = "unpack")]
use super::packed::skip_frame;
use anyhow::{Context, Result};
use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, BufReader, Read};

/// The bytes of all streams, unpacked.
pub(super) struct Members {
    format: Format,
    /// None behind the last stream.
    decoder: Option<Decoder>,
}

/// The stream that is being unpacked.
enum Decoder {
    Gzip(Box<GzDecoder<Source>>),
    /// This one goes on to the next frame by itself, and over skippable ones.
    Zstd(Box<zstd::Decoder<'static, Source>>),
    #[cfg(feature = "unpack")]
    Xz(Box<lzma_rust2::XzReader<Source>>),
    #[cfg(feature = "unpack")]
    Bzip2(bzip2::bufread::BzDecoder<Source>),
    #[cfg(feature = "unpack")]
    Lz4(Box<lz4_flex::frame::FrameDecoder<Source>>),
}

/// The most memory that unpacking may take: zstd's largest window is a power of two, and is 128 MiB if `zstd -d` is not told otherwise.
/// A dictionary of xz takes as much; gzip needs 32 KiB, bzip2 4 MB and lz4 8 MiB.
const WINDOW: u32 = 27;

impl Members {
    /// The streams of this format, of which the first begins with the first byte.
    pub(super) fn open(format: Format, reader: Box<dyn Read>, name: &str) -> Result<Box<dyn Read>> {
        let decoder = Decoder::new(format, Source::new(reader));
        let decoder = Some(decoder.with_context(|| name.to_owned())?);
        Ok(Box::new(Self { format, decoder }))
    }

    /// What is wrong, in words that help.
    fn told(&self, error: io::Error) -> io::Error {
        let Some(source) = self.decoder.as_ref().map(Decoder::source) else { return error };
        if source.failed || error.kind() == io::ErrorKind::Interrupted {
            return error;
        }
        let (name, text) = (self.format.name(), error.to_string());
        let told = if text.contains("too much memory") || error.kind() == io::ErrorKind::OutOfMemory
        {
            let most = 1 << (WINDOW - 20);
            let command = match self.format {
                Format::Zstd => "zstd -dc --long=31",
                _ => "xz -dc",
            };
            format!(
                "the {name} data needs a window of more than {most} MiB to be unpacked: unpack it first, with {command}"
            )
        } else if error.get_ref().is_some_and(|inner| inner.is::<Other>()) {
            format!(
                "expected more {name} data or the end of the file after a whole {name} stream, found other bytes; remove them, or unpack the file first, with {name} -dc"
            )
        } else if source.ended || error.kind() == io::ErrorKind::UnexpectedEof {
            cut_off(name)
        } else {
            format!(
                "the {name} data is damaged ({text}); get the file again, or recover what is left, with {name} -dc"
            )
        };
        io::Error::new(io::ErrorKind::InvalidData, told)
    }

    fn read_some(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(decoder) = &mut self.decoder else { return Ok(0) };
            let read = decoder.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            if decoder.takes_any_end() && decoder.source().ended {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if !decoder.has_next()? {
                self.decoder = None;
            } else if let Some(decoder) = self.decoder.take() {
                self.decoder = Some(Decoder::new(self.format, decoder.into_source())?);
            }
        }
    }
}

fn cut_off(name: &str) -> String {
    format!(
        "the {name} data is cut off: expected more of it, found the end of the file; get the whole file, or recover what is there, with {name} -dc"
    )
}

/// Bytes that belong to no stream follow one.
#[derive(Debug)]
struct Other;

impl std::fmt::Display for Other {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("other bytes")
    }
}

impl std::error::Error for Other {}

fn other() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, Other)
}

impl Read for Members {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.read_some(buffer);
        read.map_err(|error| self.told(error))
    }
}

impl Decoder {
    fn new(format: Format, source: Source) -> io::Result<Self> {
        Ok(match format {
            Format::Gzip => Self::Gzip(GzDecoder::new(source).into()),
            Format::Zstd => {
                let mut decoder = zstd::Decoder::with_buffer(source)?;
                decoder.window_log_max(WINDOW)?;
                Self::Zstd(decoder.into())
            }
            #[cfg(feature = "unpack")]
            Format::Xz => {
                // In KiB, and with a little for the decoder itself.
                let most = (1 << (WINDOW - 10)) + 1024;
                Self::Xz(lzma_rust2::XzReader::new_mem_limit(source, false, most).into())
            }
            #[cfg(feature = "unpack")]
            Format::Bzip2 => Self::Bzip2(bzip2::bufread::BzDecoder::new(source)),
            #[cfg(feature = "unpack")]
            Format::Lz4 => Self::Lz4(lz4_flex::frame::FrameDecoder::new(source).into()),
        })
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Gzip(decoder) => decoder.read(buffer),
            Self::Zstd(decoder) => decoder.read(buffer),
            #[cfg(feature = "unpack")]
            Self::Xz(decoder) => decoder.read(buffer),
            #[cfg(feature = "unpack")]
            Self::Bzip2(decoder) => decoder.read(buffer),
            #[cfg(feature = "unpack")]
            Self::Lz4(decoder) => decoder.read(buffer),
        }
    }

    fn source(&self) -> &Source {
        match self {
            Self::Gzip(decoder) => decoder.get_ref(),
            Self::Zstd(decoder) => decoder.get_ref(),
            #[cfg(feature = "unpack")]
            Self::Xz(decoder) => decoder.inner(),
            #[cfg(feature = "unpack")]
            Self::Bzip2(decoder) => decoder.get_ref(),
            #[cfg(feature = "unpack")]
            Self::Lz4(decoder) => decoder.get_ref(),
        }
    }

    fn source_mut(&mut self) -> &mut Source {
        match self {
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Zstd(decoder) => decoder.get_mut(),
            #[cfg(feature = "unpack")]
            Self::Xz(decoder) => decoder.inner_mut(),
            #[cfg(feature = "unpack")]
            Self::Bzip2(decoder) => decoder.get_mut(),
            #[cfg(feature = "unpack")]
            Self::Lz4(decoder) => decoder.get_mut(),
        }
    }

    fn into_source(self) -> Source {
        match self {
            Self::Gzip(decoder) => decoder.into_inner(),
            Self::Zstd(decoder) => decoder.finish(),
            #[cfg(feature = "unpack")]
            Self::Xz(decoder) => decoder.into_inner(),
            #[cfg(feature = "unpack")]
            Self::Bzip2(decoder) => decoder.into_inner(),
            #[cfg(feature = "unpack")]
            Self::Lz4(decoder) => decoder.into_inner(),
        }
    }

    /// Whether it takes the end of the input for the end of a stream, even if the mark of the end is missing.
    fn takes_any_end(&self) -> bool {
        #[cfg(feature = "unpack")]
        return matches!(self, Self::Lz4(_));
        #[cfg(not(feature = "unpack"))]
        false
    }

    /// Whether another stream follows the one that has ended. Reads what may stand between them.
    fn has_next(&mut self) -> io::Result<bool> {
        match self {
            Self::Zstd(_) => Ok(false),
            Self::Gzip(_) => self.source_mut().starts_gzip(),
            #[cfg(feature = "unpack")]
            Self::Xz(_) => self.source_mut().starts_xz(),
            #[cfg(feature = "unpack")]
            Self::Bzip2(_) => self.source_mut().starts(b"BZh"),
            #[cfg(feature = "unpack")]
            Self::Lz4(_) => self.source_mut().starts_lz4(),
        }
    }
}

/// Packed bytes, and how reading them went.
struct Source {
    reader: BufReader<Box<dyn Read>>,
    /// Bytes that were read to see what follows, and are read again.
    again: io::Cursor<Vec<u8>>,
    /// Whether the end was met, or an error.
    ended: bool,
    failed: bool,
}

/// Packed bytes that are read at a time.
const READ: usize = 64 << 10;

impl Source {
    fn new(reader: Box<dyn Read>) -> Self {
        let reader = BufReader::with_capacity(READ, reader);
        Self { reader, again: io::Cursor::default(), ended: false, failed: false }
    }

    /// The next bytes, or fewer at the end.
    fn next<const N: usize>(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(N);
        self.take(N as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Whether these bytes come next, which are then read again; nothing comes at the end.
    #[cfg(feature = "unpack")]
    fn starts<const N: usize>(&mut self, magic: &[u8; N]) -> io::Result<bool> {
        let next = self.next::<N>()?;
        if next.is_empty() {
            return Ok(false);
        }
        self.begins(next, magic)
    }

    /// The same, of bytes that were read.
    fn begins(&mut self, next: Vec<u8>, magic: &[u8]) -> io::Result<bool> {
        if next == magic {
            self.again = io::Cursor::new(next);
            return Ok(true);
        }
        // Half of a beginning is a stream that is cut off.
        Err(if magic.starts_with(&next) { io::ErrorKind::UnexpectedEof.into() } else { other() })
    }

    /// Zeros may follow the last member, as tapes and some writers of blocks pad them.
    fn starts_gzip(&mut self) -> io::Result<bool> {
        let next = self.next::<3>()?;
        if next.first() != Some(&0) {
            return if next.is_empty() { Ok(false) } else { self.begins(next, b"\x1f\x8b\x08") };
        }
        if next.iter().any(|byte| *byte != 0) || self.zeros()?.1 {
            return Err(other());
        }
        Ok(false)
    }

    /// How many zeros come next, and whether something else follows them.
    fn zeros(&mut self) -> io::Result<(u64, bool)> {
        let mut zeros = 0;
        loop {
            let bytes = self.fill_buf()?;
            let found = bytes.iter().position(|byte| *byte != 0);
            let (length, more) = (found.unwrap_or(bytes.len()), !bytes.is_empty());
            self.consume(length);
            zeros += length as u64;
            if found.is_some() || !more {
                return Ok((zeros, more));
            }
        }
    }

    /// Between streams of xz there may be zeros, four at a time.
    #[cfg(feature = "unpack")]
    fn starts_xz(&mut self) -> io::Result<bool> {
        let (zeros, more) = self.zeros()?;
        if zeros % 4 != 0 {
            return Err(other());
        }
        if more { self.starts(b"\xfd7zXZ\0") } else { Ok(false) }
    }

    /// Between frames of lz4 there may be skippable ones.
    #[cfg(feature = "unpack")]
    fn starts_lz4(&mut self) -> io::Result<bool> {
        loop {
            let next = self.next::<4>()?;
            match next[..] {
                [] => return Ok(false),
                [0x50..=0x5f, 0x2a, 0x4d, 0x18] => {
                    if !skip_frame(&mut *self)? {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                _ => return self.begins(next, b"\x04\x22\x4d\x18"),
            }
        }
    }
}

impl BufRead for Source {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if (self.again.position() as usize) < self.again.get_ref().len() {
            return self.again.fill_buf();
        }
        match self.reader.fill_buf() {
            Ok(bytes) => {
                self.ended = bytes.is_empty();
                Ok(bytes)
            }
            Err(error) => {
                self.failed = error.kind() != io::ErrorKind::Interrupted;
                Err(error)
            }
        }
    }

    fn consume(&mut self, length: usize) {
        if (self.again.position() as usize) < self.again.get_ref().len() {
            self.again.consume(length);
        } else {
            self.reader.consume(length);
        }
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?;
        let length = bytes.len().min(buffer.len());
        buffer[..length].copy_from_slice(&bytes[..length]);
        self.consume(length);
        Ok(length)
    }
}

#[cfg(all(test, feature = "unpack"))]
mod tests {
    use super::super::packed::unpacked;
    use super::*;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        writer.write_all(bytes).unwrap();
        writer.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        let mut writer = zstd::Encoder::new(Vec::new(), 1).unwrap();
        writer.include_checksum(true).unwrap();
        writer.write_all(bytes).unwrap();
        writer.finish().unwrap()
    }

    fn xz(bytes: &[u8]) -> Vec<u8> {
        let options = lzma_rust2::XzOptions::with_preset(1);
        let mut writer = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
        writer.write_all(bytes).unwrap();
        writer.finish().unwrap()
    }

    fn bzip2(bytes: &[u8]) -> Vec<u8> {
        let mut writer = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        writer.write_all(bytes).unwrap();
        writer.finish().unwrap()
    }

    fn lz4(bytes: &[u8]) -> Vec<u8> {
        let info = lz4_flex::frame::FrameInfo::new()
            .block_size(lz4_flex::frame::BlockSize::Max64KB)
            .content_checksum(true);
        let mut writer = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
        writer.write_all(bytes).unwrap();
        writer.finish().unwrap()
    }

    type Pack = fn(&[u8]) -> Vec<u8>;
    const FORMATS: [(&str, Pack); 5] =
        [("gzip", gzip), ("zstd", zstd), ("xz", xz), ("bzip2", bzip2), ("lz4", lz4)];

    /// Gives few bytes at a time.
    struct Slow(io::Cursor<Vec<u8>>);

    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let few = buffer.len().min(3);
            self.0.read(&mut buffer[..few])
        }
    }

    fn read(bytes: &[u8]) -> Result<Vec<u8>, String> {
        let all = |reader: Result<Box<dyn Read>>| {
            let mut got = Vec::new();
            let read = reader.map_err(|error| format!("{error:#}"))?.read_to_end(&mut got);
            read.map(|_| got).map_err(|error| error.to_string())
        };
        let got = all(unpacked(io::Cursor::new(bytes.to_vec()), "here"));
        let slowly = all(unpacked(Slow(io::Cursor::new(bytes.to_vec())), "here"));
        assert_eq!(got, slowly);
        got
    }

    /// Bytes that take several blocks, and do not become much less.
    fn some(length: u32) -> Vec<u8> {
        (0..length).map(|number| (number.wrapping_mul(0x9e37_79b1) >> 27) as u8 + b'a').collect()
    }

    #[test]
    fn streams_that_follow_each_other_are_read() {
        for (name, pack) in FORMATS {
            let (one, two) = (some(150_000), some(1000));
            let both = [&one[..], &two].concat();
            assert_eq!(read(&pack(&one)), Ok(one.clone()), "{name}");
            let packed = [pack(&one), pack(b""), pack(&two)].concat();
            assert_eq!(read(&packed), Ok(both), "{name}");
            assert_eq!(read(&pack(b"")), Ok(vec![]), "{name}");
        }
    }

    #[test]
    fn a_stream_that_is_cut_off_is_an_error_wherever_the_cut_is() {
        for (name, pack) in FORMATS {
            let (first, second) = (pack(&some(700)), pack(&some(300)));
            let both = [&first[..], &second].concat();
            // Fewer bytes than tell the format are text.
            for length in 10..both.len() {
                let got = read(&both[..length]);
                if length == first.len() {
                    assert_eq!(got, Ok(some(700)));
                    continue;
                }
                let error = got.expect_err(&format!("{name}: {length} of {}", both.len()));
                assert_eq!(error, cut_off(name), "{length} of {}", both.len());
            }
        }
    }

    #[test]
    fn a_frame_of_lz4_without_the_mark_of_its_end_is_cut_off() {
        let whole = lz4(&some(200_000));
        // The mark and the checksum; lz4_flex alone takes this for a whole frame.
        assert_eq!(read(&whole[..whole.len() - 8]), Err(cut_off("lz4")));
    }

    #[test]
    fn other_bytes_behind_the_last_stream_are_an_error() {
        for (name, pack) in FORMATS {
            for tail in [&b"a"[..], b"text\n", b"\0\0\0\0\0\0\0x", b"\x1f\x8c\x08\0"] {
                let got = read(&[&pack(&some(300)), tail].concat());
                let error = got.expect_err(name);
                assert!(error.contains(name), "{name} {tail:?}: {error}");
                assert_ne!(error, cut_off(name), "{tail:?}");
            }
        }
    }

    #[test]
    fn zeros_may_follow_where_the_format_pads_with_them() {
        for zeros in [1, 3, 4, 511, 100_000] {
            let padded = |pack: Pack| read(&[pack(&some(300)), vec![0; zeros]].concat());
            assert_eq!(padded(gzip), Ok(some(300)), "{zeros}");
            assert_eq!(padded(xz).is_ok(), zeros % 4 == 0, "{zeros}");
            for pack in [zstd, bzip2, lz4] {
                assert!(padded(pack).is_err(), "{zeros}");
            }
        }
        let between = [xz(&some(300)), vec![0; 8], xz(&some(10))].concat();
        assert_eq!(read(&between), Ok([some(300), some(10)].concat()));
        assert!(read(&[gzip(&some(300)), vec![0; 8], gzip(&some(10))].concat()).is_err());
    }

    #[test]
    fn a_byte_that_was_changed_is_an_error() {
        for (name, pack) in FORMATS {
            let whole = pack(&some(500));
            for at in [whole.len() / 2, whole.len() * 3 / 4] {
                let mut damaged = whole.clone();
                damaged[at] ^= 0x15;
                let error = read(&damaged).expect_err(name);
                assert!(error.contains(name), "{name} {at}: {error}");
            }
        }
    }

    #[test]
    fn skippable_frames_come_before_zstd_and_lz4() {
        let skippable = |number: u8, length: u32| {
            let mut frame = vec![0x50 + number, 0x2a, 0x4d, 0x18];
            frame.extend(length.to_le_bytes());
            frame.resize(frame.len() + length as usize, b'x');
            frame
        };
        for pack in [zstd, lz4] {
            for number in [0, 15] {
                // As pzstd writes it: the size of the next frame in a skippable one before each.
                let frame = pack(&some(300));
                let bytes = [&skippable(number, 4)[..], &frame].concat();
                assert_eq!(read(&bytes), Ok(some(300)));
                let bytes = [&bytes[..], &bytes, &skippable(number, 100_000)].concat();
                assert_eq!(read(&bytes), Ok([some(300), some(300)].concat()));
                assert!(read(&bytes[..bytes.len() - 1]).is_err());
                let first = [&skippable(1, 0)[..], &skippable(number, 100_000), &frame].concat();
                assert_eq!(read(&first), Ok(some(300)));
                // Cut off in the frame that is skipped, or behind it.
                for length in 4..40 {
                    assert!(read(&skippable(number, 50)[..length]).is_err(), "{length}");
                }
                assert_eq!(read(&skippable(number, 50)), Ok(vec![]));
                assert!(read(&[&skippable(number, 5)[..], b"text\n"].concat()).is_err());
                assert!(read(&[&skippable(number, 5)[..], &gzip(b"a\n")].concat()).is_err());
            }
        }
    }
}
