//! What a packed stream contains. The format is told by the first bytes, never by the name of the file.
//!
//! | format                             | first bytes         | read                                          |
//! |------------------------------------|---------------------|-----------------------------------------------|
//! | gzip                               | `1f 8b 08`          | always; zeros after the last member are ignored |
//! | zstd                               | `28 b5 2f fd`       | always, also behind skippable frames          |
//! | xz, bzip2, lz4                     | see [`KNOWN`]       | with the feature `unpack`, else refused       |
//! | lzip, lzma, compress, zip, 7z, snappy, old lz4 | see [`KNOWN`] | refused, with the command that unpacks them |
//!
//! Streams of one format may follow each other in one file. A stream that ends too early is an error in every format, and so are
//! other bytes behind the last stream: keys that nobody reads would be answered with "certainly not".

use super::members::Members;
use anyhow::{Context, Result, bail};
use std::io::{self, Read};

/// A format that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Gzip,
    Zstd,
    #[cfg(feature = "unpack")]
    Xz,
    #[cfg(feature = "unpack")]
    Bzip2,
    #[cfg(feature = "unpack")]
    Lz4,
}

impl Format {
    /// Its name, which is also the command that unpacks it by `-dc`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            #[cfg(feature = "unpack")]
            Self::Xz => "xz",
            #[cfg(feature = "unpack")]
            Self::Bzip2 => "bzip2",
            #[cfg(feature = "unpack")]
            Self::Lz4 => "lz4",
        }
    }

    /// Whether frames that hold no data may stand between its frames.
    fn has_skippable(self) -> bool {
        match self {
            Self::Zstd => true,
            #[cfg(feature = "unpack")]
            Self::Lz4 => true,
            _ => false,
        }
    }
}

/// What first bytes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read(Format),
    /// The name of the format, and the command that unpacks it.
    Refused(&'static str, &'static str),
    /// A filter, which has no records.
    Filter,
    /// A frame that holds no data, of zstd or of lz4: RFC 8878, 3.1.2.
    Skippable,
}

/// A byte at this place: from the first to the second.
type Byte = (u8, u8);

const fn exactly<const N: usize>(bytes: &[u8; N]) -> [Byte; N] {
    let (mut all, mut at) = ([(0, 0); N], 0);
    while at < N {
        all[at] = (bytes[at], bytes[at]);
        at += 1;
    }
    all
}

const ANY: Byte = (0, 255);
const ZERO: Byte = (0, 0);
const FULL: Byte = (255, 255);

#[cfg(feature = "unpack")]
const XZ: Kind = Kind::Read(Format::Xz);
#[cfg(feature = "unpack")]
const BZIP2: Kind = Kind::Read(Format::Bzip2);
#[cfg(feature = "unpack")]
const LZ4: Kind = Kind::Read(Format::Lz4);
#[cfg(not(feature = "unpack"))]
const XZ: Kind = Kind::Refused("xz", "xz -dc");
#[cfg(not(feature = "unpack"))]
const BZIP2: Kind = Kind::Refused("bzip2", "bzip2 -dc");
#[cfg(not(feature = "unpack"))]
const LZ4: Kind = Kind::Refused("lz4", "lz4 -dc");

/// A stream of bzip2: the digit is the size of its blocks. Behind it the first block begins, or an empty stream ends.
const fn bzip2(behind: &[u8; 6]) -> [Byte; 10] {
    let ([b, z, h], [c, d, e, f, g, i]) = (exactly(b"BZh"), exactly(behind));
    [b, z, h, (b'1', b'9'), c, d, e, f, g, i]
}

/// How the streams of each format begin.
const KNOWN: &[(&[Byte], Kind)] = &[
    (&exactly(b"umbel\0\r\n"), Kind::Filter),
    (&exactly(b"\x1f\x8b\x08"), Kind::Read(Format::Gzip)),
    (&exactly(b"\x28\xb5\x2f\xfd"), Kind::Read(Format::Zstd)),
    (&[(0x50, 0x5f), (0x2a, 0x2a), (0x4d, 0x4d), (0x18, 0x18)], Kind::Skippable),
    (&exactly(b"\xfd7zXZ\0"), XZ),
    (&bzip2(b"\x31\x41\x59\x26\x53\x59"), BZIP2),
    (&bzip2(b"\x17\x72\x45\x38\x50\x90"), BZIP2),
    (&exactly(b"\x04\x22\x4d\x18"), LZ4),
    (&exactly(b"\x02\x21\x4c\x18"), Kind::Refused("legacy lz4", "lz4 -dc")),
    (&exactly(b"LZIP\x01"), Kind::Refused("lzip", "lzip -dc")),
    (&exactly(b"\x1f\x9d"), Kind::Refused("compress (.Z)", "gzip -dc")),
    (&exactly(b"PK\x03\x04"), Kind::Refused("zip", "unzip -p")),
    (&exactly(b"PK\x05\x06"), Kind::Refused("zip", "unzip -p")),
    (&exactly(b"PK\x07\x08"), Kind::Refused("zip", "unzip -p")),
    (&exactly(b"7z\xbc\xaf\x27\x1c"), Kind::Refused("7z", "7z x -so")),
    (&exactly(b"\xff\x06\x00\x00sNaPpY"), Kind::Refused("framed snappy", "python3 -m snappy -d")),
    // The usual properties, a dictionary of whole 64 KiB, and a length that is unknown or below 2^40.
    (
        &[(0x5d, 0x5d), ZERO, ZERO, ANY, ANY, FULL, FULL, FULL, FULL, FULL, FULL, FULL, FULL],
        Kind::Refused("lzma", "xz -dc --format=lzma"),
    ),
    (
        &[(0x5d, 0x5d), ZERO, ZERO, ANY, ANY, ANY, ANY, ANY, ANY, ANY, ZERO, ZERO, ZERO],
        Kind::Refused("lzma", "xz -dc --format=lzma"),
    ),
];

/// The longest of these beginnings.
pub(crate) const LONGEST: usize = 13;

/// The format that begins like this, or whether it could still become one.
fn kind(first: &[u8]) -> Result<Kind, bool> {
    let mut open = false;
    for (pattern, kind) in KNOWN {
        let fits = |((low, high), byte): (&Byte, &u8)| (low..=high).contains(&byte);
        if pattern.iter().zip(first).all(fits) {
            if first.len() >= pattern.len() {
                return Ok(*kind);
            }
            open = true;
        }
    }
    Err(open)
}

/// Whether a file of these first bytes is packed, in a format that is read or in one that is refused.
pub(crate) fn is_packed(first: &[u8]) -> bool {
    (1..=first.len())
        .any(|length| matches!(kind(&first[..length]), Ok(kind) if kind != Kind::Filter))
}

/// What a stream contains, unpacked if it is packed.
pub(super) fn unpacked(mut reader: impl Read + 'static, name: &str) -> Result<Box<dyn Read>> {
    let mut skipped = false;
    loop {
        let (mut first, mut length) = ([0; LONGEST], 0);
        // A program that writes line by line may not have written more, so no byte is waited for without need.
        let kind = loop {
            match kind(&first[..length]) {
                Err(true) => {}
                Err(false) => break None,
                Ok(kind) => break Some(kind),
            }
            match reader.read(&mut first[length..=length]) {
                // A text that begins so would not be ASCII.
                Ok(0) if length > 1 && !first[..length].is_ascii() => bail!(
                    "{name}: ends within the first bytes of a packed format: get the whole file"
                ),
                Ok(0) => break None,
                Ok(read) => length += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error).with_context(|| name.to_owned()),
            }
        };
        match kind {
            Some(Kind::Skippable) => {
                if !skip_frame(&mut reader).with_context(|| name.to_owned())? {
                    bail!(
                        "{name}: expected the rest of a skippable frame of zstd or lz4, found the end of the file; get the whole file"
                    );
                }
                skipped = true;
            }
            Some(Kind::Filter) if !skipped => bail!(
                "{name}: expected a file with keys or lines, found a filter, from which no keys can be read; `umbel merge` makes one filter of several"
            ),
            Some(Kind::Refused(format, command)) if !skipped => bail!(
                "{name}: is packed in the format {format}, which umbel does not read; unpack it first, such as with {command} FILE | umbel ..."
            ),
            Some(Kind::Read(format)) if !skipped || format.has_skippable() => {
                let whole = io::Cursor::new(first).take(length as u64).chain(reader);
                return Members::open(format, Box::new(whole), name);
            }
            Some(_) | None if skipped && length > 0 => bail!(
                "{name}: expected a frame of zstd or lz4 after a skippable frame, found other bytes; get the file again"
            ),
            _ => {
                return Ok(Box::new(io::Cursor::new(first).take(length as u64).chain(reader)));
            }
        }
    }
}

/// Reads the rest of a skippable frame, behind its magic number. Whether all of it was there.
pub(super) fn skip_frame(mut reader: impl Read) -> io::Result<bool> {
    let mut length = [0; 4];
    match reader.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
        read => read?,
    }
    let length = u64::from(u32::from_le_bytes(length));
    Ok(io::copy(&mut reader.take(length), &mut io::sink())? == length)
}

/// Whether the unpacked bytes begin as a tar archive does: its first block names a file and has no end of a line.
pub(super) fn is_tar(bytes: &[u8]) -> bool {
    bytes.get(257..262) == Some(b"ustar") && bytes[..100].contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_are_told_apart() {
        assert_eq!(KNOWN.iter().map(|(pattern, _)| pattern.len()).max(), Some(LONGEST));
        assert_eq!(kind(b""), Err(true));
        assert_eq!(kind(b"a"), Err(false));
        assert_eq!(kind(b"B"), Err(true));
        assert_eq!(kind(b"BZh9"), Err(true));
        assert_eq!(kind(b"BZh9\n"), Err(false));
        assert_eq!(kind(b"BZh0"), Err(false));
        assert_eq!(kind(b"umbel\n"), Err(false));
        assert_eq!(kind(b"umbel\0\r\n"), Ok(Kind::Filter));
        assert_eq!(kind(b"PK\n"), Err(false));
        assert_eq!(kind(b"\x1f\x8b\x08"), Ok(Kind::Read(Format::Gzip)));
        assert_eq!(kind(b"\x5f\x2a\x4d\x18"), Ok(Kind::Skippable));
        assert_eq!(kind(b"]\0\0\n"), Err(true));
        assert_eq!(kind(b"]\0\0\n\0a\0b\0c\0d\0"), Err(false));
    }
}
