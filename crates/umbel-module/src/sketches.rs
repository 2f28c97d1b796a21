//! RedisBloom's count-min, top-k and t-digest keys, which the module keeps but does not serve.
//!
//! A data set with such keys can be taken over, and taken back. The module reads their values from RDB files,
//! payloads and replication, keeps them as the bytes of an RDB file, and writes them back byte for byte. It
//! does not interpret them, except for the order of their fields, which it needs to read them from the engine.
//!
//! | type | name, version 0 | fields |
//! |---|---|---|
//! | count-min | `CMSk-TYPE` | width, depth, count; cells |
//! | top-k | `TopK-TYPE` | k, width, depth, decay; cells, heap, k items |
//! | t-digest | `TDIS-TYPE` | compression, minimum, maximum; capacity, n, unmerged, compressions; two weights, n means, n weights |

use crate::engine::{Digester, Fault, Loader, Mover, Rewriter, Saver, Slot, Stored};
use crate::error::Invalid;
use core::ffi::{CStr, c_int};
use core::marker::PhantomData;

/// The reply to a command of these types.
pub(crate) const NOT_SERVED: Fault = Fault::Text(
    c"ERR not served: this module keeps count-min, top-k and t-digest keys as RedisBloom wrote them, and only RedisBloom can read or change them",
);

/// The log message for such a command in an AOF file.
pub(crate) const NOT_REPLAYED: &CStr =
    c"the AOF file has commands of count-min, top-k or t-digest keys, which this module cannot perform. \
      Let a server with RedisBloom run BGREWRITEAOF, which writes those keys as values, and use that file";

/// All commands of these types in RedisBloom.
pub(crate) const COMMANDS: [&CStr; 27] = [
    c"cms.initbydim",
    c"cms.initbyprob",
    c"cms.incrby",
    c"cms.query",
    c"cms.merge",
    c"cms.info",
    c"topk.reserve",
    c"topk.add",
    c"topk.incrby",
    c"topk.query",
    c"topk.count",
    c"topk.list",
    c"topk.info",
    c"tdigest.create",
    c"tdigest.add",
    c"tdigest.reset",
    c"tdigest.merge",
    c"tdigest.min",
    c"tdigest.max",
    c"tdigest.quantile",
    c"tdigest.cdf",
    c"tdigest.rank",
    c"tdigest.revrank",
    c"tdigest.byrank",
    c"tdigest.byrevrank",
    c"tdigest.trimmed_mean",
    c"tdigest.info",
];

/// A kind of sketch: its name, and the order of its fields.
pub(crate) trait Kind: Sized + 'static {
    /// Nine letters, the permanent name in files.
    const NAME: &'static CStr;

    /// The storage for its handle.
    fn slot() -> &'static Slot;

    /// Copies all fields.
    fn copy(fields: &mut Fields<'_>) -> Result<(), Invalid>;
}

/// A value of this kind, as bytes of an RDB file.
#[derive(Debug)]
pub(crate) struct Sketch<K> {
    encoded: Box<[u8]>,
    kind: PhantomData<K>,
}

#[derive(Debug)]
pub(crate) struct CountMin;
#[derive(Debug)]
pub(crate) struct TopK;
#[derive(Debug)]
pub(crate) struct TDigest;

impl Kind for CountMin {
    const NAME: &'static CStr = c"CMSk-TYPE";

    fn slot() -> &'static Slot {
        static SLOT: Slot = Slot::new();
        &SLOT
    }

    fn copy(fields: &mut Fields<'_>) -> Result<(), Invalid> {
        for _ in 0..3 {
            fields.unsigned()?;
        }
        fields.bytes()
    }
}

impl Kind for TopK {
    const NAME: &'static CStr = c"TopK-TYPE";

    fn slot() -> &'static Slot {
        static SLOT: Slot = Slot::new();
        &SLOT
    }

    fn copy(fields: &mut Fields<'_>) -> Result<(), Invalid> {
        let items = fields.unsigned()?;
        fields.unsigned()?;
        fields.unsigned()?;
        fields.double()?;
        fields.bytes()?;
        fields.bytes()?;
        // If the number is too large, the copy ends at the end of the bytes.
        (0..items).try_for_each(|_| fields.bytes())
    }
}

impl Kind for TDigest {
    const NAME: &'static CStr = c"TDIS-TYPE";

    fn slot() -> &'static Slot {
        static SLOT: Slot = Slot::new();
        &SLOT
    }

    fn copy(fields: &mut Fields<'_>) -> Result<(), Invalid> {
        for _ in 0..3 {
            fields.double()?;
        }
        fields.unsigned()?;
        let nodes = fields.unsigned()?;
        fields.unsigned()?;
        fields.unsigned()?;
        for _ in 0..2 {
            fields.double()?;
        }
        // The means, then the weights.
        (0..nodes).try_for_each(|_| fields.double())?;
        (0..nodes).try_for_each(|_| fields.double())
    }
}

/// The type code before a field in an RDB file.
mod opcode {
    pub(super) const END: u8 = 0;
    pub(super) const UNSIGNED: u8 = 2;
    pub(super) const DOUBLE: u8 = 4;
    pub(super) const BYTES: u8 = 5;
}

/// Fields that are copied from a file.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    from: &'a mut Loader,
    encoded: Vec<u8>,
}

impl Fields<'_> {
    fn push(&mut self, bytes: &[u8]) -> Result<(), Invalid> {
        self.encoded.try_reserve(bytes.len()).map_err(|_| Invalid::NoMemory)?;
        self.encoded.extend_from_slice(bytes);
        Ok(())
    }

    fn unsigned(&mut self) -> Result<u64, Invalid> {
        let value = self.from.unsigned()?;
        self.push(&[opcode::UNSIGNED])?;
        let (bytes, len) = length(value);
        self.push(&bytes[..len])?;
        Ok(value)
    }

    fn double(&mut self) -> Result<(), Invalid> {
        let value = self.from.double()?;
        self.push(&[opcode::DOUBLE])?;
        self.push(&value.to_le_bytes())
    }

    fn bytes(&mut self) -> Result<(), Invalid> {
        let value = self.from.bytes()?;
        self.push(&[opcode::BYTES])?;
        let (bytes, len) = length(value.len() as u64);
        self.push(&bytes[..len])?;
        self.push(&value)
    }
}

/// A number in the RDB encoding: one, two, five or nine bytes.
fn length(value: u64) -> ([u8; 9], usize) {
    let mut bytes = [0; 9];
    let len = match value {
        0..0x40 => {
            bytes[0] = value as u8;
            1
        }
        0x40..0x4000 => {
            bytes[..2].copy_from_slice(&(value as u16 | 0x4000).to_be_bytes());
            2
        }
        0x4000..=0xffff_ffff => {
            bytes[0] = 0x80;
            bytes[1..5].copy_from_slice(&(value as u32).to_be_bytes());
            5
        }
        _ => {
            bytes[0] = 0x81;
            bytes[1..].copy_from_slice(&value.to_be_bytes());
            9
        }
    };
    (bytes, len)
}

/// The number that [`length`] wrote, and the rest of the bytes.
fn take_length(bytes: &[u8]) -> Option<(u64, &[u8])> {
    match bytes {
        [small @ 0..0x40, rest @ ..] => Some((u64::from(*small), rest)),
        [high @ 0x40..0x80, low, rest @ ..] => {
            Some((u64::from(u16::from_be_bytes([high & 0x3f, *low])), rest))
        }
        [0x80, rest @ ..] => {
            rest.split_first_chunk().map(|(word, rest)| (u32::from_be_bytes(*word).into(), rest))
        }
        [0x81, rest @ ..] => {
            rest.split_first_chunk().map(|(word, rest)| (u64::from_be_bytes(*word), rest))
        }
        _ => None,
    }
}

/// A field.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Field<'a> {
    Unsigned(u64),
    Double(f64),
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    /// The field at the start of these bytes, and the rest.
    fn take(encoded: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (code, rest) = encoded.split_first()?;
        match *code {
            opcode::UNSIGNED => {
                take_length(rest).map(|(value, rest)| (Self::Unsigned(value), rest))
            }
            opcode::DOUBLE => {
                let (bytes, rest) = rest.split_first_chunk()?;
                Some((Self::Double(f64::from_le_bytes(*bytes)), rest))
            }
            opcode::BYTES => {
                let (len, rest) = take_length(rest)?;
                let (bytes, rest) = rest.split_at_checked(usize::try_from(len).ok()?)?;
                Some((Self::Bytes(bytes), rest))
            }
            _ => None,
        }
    }
}

impl<K: Kind> Sketch<K> {
    /// The payload that `DUMP` would return, so that `RESTORE` creates the value again, here or in a server
    /// with RedisBloom.
    fn payload(&self) -> Option<Vec<u8>> {
        /// The first byte: a value of a module, with opcodes.
        const MODULE: u8 = 7;
        /// Every engine that can load this module reads this version of RDB files.
        const RDB_VERSION: u16 = 9;
        let mut payload = Vec::new();
        payload.try_reserve_exact(self.encoded.len() + 21).ok()?;
        payload.extend([MODULE, 0x81]);
        payload.extend(id(K::NAME).to_be_bytes());
        payload.extend_from_slice(&self.encoded);
        payload.push(opcode::END);
        payload.extend(RDB_VERSION.to_le_bytes());
        let checksum = crc64(&payload);
        payload.extend(checksum.to_le_bytes());
        Some(payload)
    }
}

/// The number of a type of version 0: its name in six bits per letter, and ten bits for the version.
fn id(name: &CStr) -> u64 {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let letter = |byte: &u8| LETTERS.iter().position(|letter| letter == byte).unwrap_or(0) as u64;
    name.to_bytes().iter().fold(0, |id, byte| id << 6 | letter(byte)) << 10
}

/// The checksum of payloads: CRC-64 of Jones, reflected, from zero.
fn crc64(bytes: &[u8]) -> u64 {
    const TABLE: [u64; 256] = {
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let (mut crc, mut bit) = (byte as u64, 0);
            while bit < 8 {
                crc = (crc >> 1) ^ (0x95ac_9329_ac4b_c9b5 * (crc & 1));
                bit += 1;
            }
            table[byte] = crc;
            byte += 1;
        }
        table
    };
    bytes.iter().fold(0, |crc, byte| TABLE[usize::from(crc as u8 ^ byte)] ^ (crc >> 8))
}

impl<K: Kind> Stored for Sketch<K> {
    const NAME: &'static CStr = K::NAME;
    const VERSION: c_int = 0;

    fn slot() -> &'static Slot {
        K::slot()
    }

    fn load(from: &mut Loader, version: c_int) -> Result<Self, Invalid> {
        if version != Self::VERSION {
            return Err(Invalid::Field("version"));
        }
        let mut fields = Fields { from, encoded: Vec::new() };
        K::copy(&mut fields)?;
        Ok(Self { encoded: fields.encoded.into_boxed_slice(), kind: PhantomData })
    }

    fn save(&self, to: &mut Saver) {
        let mut rest = &self.encoded[..];
        while let Some((field, next)) = Field::take(rest) {
            match field {
                Field::Unsigned(value) => to.unsigned(value),
                Field::Double(value) => to.double(value),
                Field::Bytes(bytes) => to.bytes(bytes),
            }
            rest = next;
        }
        assert!(rest.is_empty(), "only whole fields are kept");
    }

    /// As RedisBloom does it, so that its servers can read the file too.
    fn rewrite(&self, to: &mut Rewriter) {
        let payload = self.payload().expect("there is memory for a copy of the value");
        to.chunk(c"RESTORE", 0, &payload);
    }

    fn digest(&self, to: &mut Digester) {
        to.bytes(&self.encoded);
        to.end();
    }

    fn effort(&self) -> usize {
        1
    }

    fn try_clone(&self) -> Option<Self> {
        let encoded = crate::memory::copied(&self.encoded)?;
        Some(Self { encoded, kind: PhantomData })
    }

    fn defrag(&mut self, mover: &mut Mover) {
        mover.bytes(&mut self.encoded);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_are_written() {
        for value in [0, 1, 63, 64, 16_383, 16_384, u64::from(u32::MAX), 1 << 32, u64::MAX] {
            let (mut bytes, len) = length(value);
            bytes[len..].fill(7);
            assert_eq!(take_length(&bytes), Some((value, &bytes[len..])), "{value}");
            assert_eq!(take_length(&bytes[..len - 1]), None, "{value}");
        }
    }

    #[test]
    fn fields_that_are_cut_off_are_no_fields() {
        let encoded = [opcode::BYTES, 3, b'a', b'b', b'c'];
        assert_eq!(Field::take(&encoded), Some((Field::Bytes(b"abc"), &[][..])));
        assert!((0..5).all(|len| Field::take(&encoded[..len]).is_none()));
        assert_eq!(Field::take(&[opcode::DOUBLE, 0, 0]), None);
        assert_eq!(Field::take(&[9, 1]), None);
    }

    #[test]
    fn names_and_checksums_are_those_of_the_engines() {
        // The first bytes of payloads that RedisBloom wrote; the checksum is from the self-test of Redis.
        assert_eq!(id(c"CMSk-TYPE"), 0x08c4_a4f9_360f_1000);
        assert_eq!(id(c"TopK-TYPE"), 0x4e8a_4af9_360f_1000);
        assert_eq!(id(c"TDIS-TYPE"), 0x4c32_12f9_360f_1000);
        assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    }
}
