//! Files of Redis and Valkey (RDB), and payloads of `DUMP`: the Bloom filters of their modules, without a server.
//!
//! ```text
//!     file       "REDIS" or "VALKEY", the version; then fields and keys, each begun by a byte that says what it is
//!     module     7, a number that stands for name and version, values that say their type, 0
//!     DUMP       a value as in a file, the version in 2 bytes, CRC-64 of Jones, 8 bytes
//! ```
//!
//! All other content of a file is skipped by its lengths. If a later version adds a type of value, its length
//! is unknown, so a file with such a value is refused.

use crate::error::Invalid;
use crate::read::Reader;
use crate::redisbloom::{self, Fields};
use crate::valkey_bloom;
use std::borrow::Cow;

/// A Bloom filter of a module.
#[derive(Debug)]
#[non_exhaustive]
pub enum Value {
    /// Of RedisBloom.
    RedisBloom(redisbloom::Chain<[u8]>),
    /// Of valkey-bloom.
    ValkeyBloom(valkey_bloom::Chain<[u8]>),
}

impl Value {
    /// Whether the filter contains the key.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        match self {
            Self::RedisBloom(chain) => chain.contains(key),
            Self::ValkeyBloom(chain) => chain.contains(key),
        }
    }
}

/// A key of a file whose value is a Bloom filter.
#[derive(Debug)]
pub struct Entry {
    /// The number of its database.
    pub database: u64,
    /// Its name.
    pub key: Vec<u8>,
    /// Its value.
    pub value: Value,
}

/// The numbers of the modules' types: nine characters of six bits, and ten bits of version.
const REDIS_BLOOM: u64 = module_id(b"MBbloom--", 4);
const VALKEY_BLOOM: u64 = module_id(b"bloomfltr", 1);

const fn module_id(name: &[u8; 9], version: u64) -> u64 {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let (mut id, mut at) = (0, 0);
    while at < 9 {
        let mut letter = 0;
        while LETTERS[letter] != name[at] {
            letter += 1;
        }
        id = id << 6 | letter as u64;
        at += 1;
    }
    id << 10 | version
}

/// The type of a module value.
const MODULE: u8 = 7;

/// The opcodes of the fields that a module writes.
const END: u64 = 0;
const SIGNED: u64 = 1;
const UNSIGNED: u64 = 2;
const FLOAT: u64 = 3;
const DOUBLE: u64 = 4;
const STRING: u64 = 5;

/// The Bloom filters of a file, in its order.
///
/// The checksum at the end is verified, unless the file was written without one.
///
/// # Errors
///
/// [`Invalid`] describes what is wrong with the file.
pub fn read(bytes: &[u8]) -> Result<Vec<Entry>, Invalid> {
    let mut file = Rdb { reader: Reader::new(bytes), valkey: bytes.starts_with(VALKEY) };
    if !file.valkey && !bytes.starts_with(REDIS) {
        return Err(Invalid::Magic { system: "Redis or Valkey" });
    }
    file.reader.take(9)?;
    let (mut entries, mut database) = (Vec::new(), 0);
    loop {
        match file.reader.u8()? {
            255 => break,
            254 => database = file.length()?,
            253 => file.skip(4)?,
            252 => file.skip(8)?,
            251 => file.lengths(2)?,
            250 => file.strings(2)?,
            249 => file.skip(1)?,
            248 => file.lengths(1)?,
            247 => {
                file.lengths(3)?;
                file.skip_module()?;
            }
            245 => file.strings(1)?,
            244 => file.lengths(3)?,
            kind => {
                let key = file.string()?.into_owned();
                if let Some(value) = file.value(kind)? {
                    entries.push(Entry { database, key, value });
                }
            }
        }
    }
    let end = file.reader.at();
    // Before version 5 there was no checksum, and 0 means that none was computed.
    if !file.reader.rest().is_empty() {
        let got = file.reader.u64_le()?;
        file.reader.end()?;
        let expected = crc64(&bytes[..end]);
        if got != 0 && got != expected {
            return Err(Invalid::Checksum { expected, got });
        }
    }
    Ok(entries)
}

/// The first bytes of files.
pub(crate) const REDIS: &[u8] = b"REDIS0";
pub(crate) const VALKEY: &[u8] = b"VALKEY0";

/// Reads the Bloom filter from a reply of `DUMP`.
///
/// # Errors
///
/// [`Invalid`] describes what is wrong with the payload; [`Invalid::Unknown`] if the value has another type.
pub fn read_dump(bytes: &[u8]) -> Result<Value, Invalid> {
    let Some((payload, checksum)) = bytes.split_last_chunk::<8>() else {
        return Err(Invalid::Length { expected: 10, got: bytes.len() as u64 });
    };
    let (expected, got) = (crc64(payload), u64::from_le_bytes(*checksum));
    if got != 0 && got != expected {
        return Err(Invalid::Checksum { expected, got });
    }
    let mut file = Rdb { reader: Reader::new(payload), valkey: false };
    let kind = file.reader.u8()?;
    if kind != MODULE {
        return Err(Invalid::Unknown);
    }
    let value = file.value(kind)?.ok_or(Invalid::Unknown)?;
    file.reader.take_last(2)?;
    Ok(value)
}

/// A payload for `RESTORE`, with this version of RDB. Servers accept their own and earlier versions (9 is that
/// of Redis 6, 11 that of Redis 7.2 and Valkey 8). Strings are not compressed.
#[must_use]
pub fn write_dump(value: &Value, version: u16) -> Vec<u8> {
    let mut bytes = vec![MODULE];
    match value {
        Value::RedisBloom(chain) => {
            write_length(&mut bytes, REDIS_BLOOM);
            let count = chain.links().len() as u64;
            for number in [chain.size(), count, chain.options().into(), chain.growth().into()] {
                write_unsigned(&mut bytes, number);
            }
            for (link, fields) in chain.links() {
                write_unsigned(&mut bytes, fields.entries);
                write_double(&mut bytes, fields.error);
                write_unsigned(&mut bytes, link.shape().probes().into());
                write_double(&mut bytes, fields.bits_per_entry);
                write_unsigned(&mut bytes, link.shape().bits());
                write_unsigned(&mut bytes, fields.n2.into());
                write_string(&mut bytes, &redisbloom::payload(link));
                write_unsigned(&mut bytes, fields.size);
            }
        }
        Value::ValkeyBloom(chain) => {
            write_length(&mut bytes, VALKEY_BLOOM);
            write_unsigned(&mut bytes, chain.links.len() as u64);
            write_unsigned(&mut bytes, chain.growth);
            write_double(&mut bytes, chain.rate);
            write_double(&mut bytes, chain.tightening);
            write_unsigned(&mut bytes, chain.random_seed);
            for link in &chain.links {
                write_string(&mut bytes, &valkey_bloom::string(link));
                write_unsigned(&mut bytes, link.shape().items());
            }
            write_unsigned(&mut bytes, chain.in_last);
        }
    }
    write_length(&mut bytes, END);
    bytes.extend(version.to_le_bytes());
    let checksum = crc64(&bytes);
    bytes.extend(checksum.to_le_bytes());
    bytes
}

fn write_length(bytes: &mut Vec<u8>, length: u64) {
    match length {
        0..0x40 => bytes.push(length as u8),
        0x40..0x4000 => bytes.extend((length as u16 | 0x4000).to_be_bytes()),
        0x4000..=0xffff_ffff => {
            bytes.push(0x80);
            bytes.extend((length as u32).to_be_bytes());
        }
        _ => {
            bytes.push(0x81);
            bytes.extend(length.to_be_bytes());
        }
    }
}

fn write_unsigned(bytes: &mut Vec<u8>, number: u64) {
    write_length(bytes, UNSIGNED);
    write_length(bytes, number);
}

fn write_double(bytes: &mut Vec<u8>, number: f64) {
    write_length(bytes, DOUBLE);
    bytes.extend(number.to_le_bytes());
}

fn write_string(bytes: &mut Vec<u8>, string: &[u8]) {
    write_length(bytes, STRING);
    write_length(bytes, string.len() as u64);
    bytes.extend(string);
}

/// CRC-64 of Jones, as Redis computes it.
fn crc64(bytes: &[u8]) -> u64 {
    const TABLE: [u64; 256] = {
        let (mut table, mut byte) = ([0; 256], 0);
        while byte < 256 {
            let (mut crc, mut bit) = (byte as u64, 0);
            while bit < 8 {
                crc = crc >> 1 ^ if crc & 1 == 1 { 0x95ac_9329_ac4b_c9b5 } else { 0 };
                bit += 1;
            }
            table[byte] = crc;
            byte += 1;
        }
        table
    };
    bytes.iter().fold(0, |crc, byte| TABLE[(crc as u8 ^ byte) as usize] ^ crc >> 8)
}

/// A file, and the position in it. Every element of a collection has at least one byte, so the work is bounded
/// by the number of bytes, whatever lengths they claim.
struct Rdb<'a> {
    reader: Reader<'a>,
    valkey: bool,
}

/// A length, or the number of an encoding in its place.
enum Length {
    Plain(u64),
    Encoded(u8),
}

impl<'a> Rdb<'a> {
    fn any_length(&mut self) -> Result<Length, Invalid> {
        let first = self.reader.u8()?;
        Ok(Length::Plain(match first >> 6 {
            0 => first.into(),
            1 => u64::from(first & 0x3f) << 8 | u64::from(self.reader.u8()?),
            2 if first == 0x80 => self.reader.u32_be()?.into(),
            2 if first == 0x81 => self.reader.u64_be()?,
            3 => return Ok(Length::Encoded(first & 0x3f)),
            _ => return Err(Invalid::Field { name: "length", got: first.into() }),
        }))
    }

    fn length(&mut self) -> Result<u64, Invalid> {
        match self.any_length()? {
            Length::Plain(length) => Ok(length),
            Length::Encoded(got) => Err(Invalid::Field { name: "length", got: got.into() }),
        }
    }

    fn lengths(&mut self, count: u64) -> Result<(), Invalid> {
        (0..count).try_for_each(|_| self.length().map(drop))
    }

    fn skip(&mut self, bytes: u64) -> Result<(), Invalid> {
        self.reader.take(bytes).map(drop)
    }

    /// A string, decompressed. Numbers in the place of strings are written as text.
    fn string(&mut self) -> Result<Cow<'a, [u8]>, Invalid> {
        Ok(match self.any_length()? {
            Length::Plain(length) => self.reader.take(length)?.into(),
            Length::Encoded(0) => (self.reader.u8()? as i8).to_string().into_bytes().into(),
            Length::Encoded(1) => (self.reader.u16_le()? as i16).to_string().into_bytes().into(),
            Length::Encoded(2) => (self.reader.u32_le()? as i32).to_string().into_bytes().into(),
            Length::Encoded(3) => {
                let (packed, length) = (self.length()?, self.length()?);
                unpack(self.reader.take(packed)?, length)?.into()
            }
            Length::Encoded(got) => {
                return Err(Invalid::Field { name: "string encoding", got: got.into() });
            }
        })
    }

    /// Skips strings.
    fn strings(&mut self, count: u64) -> Result<(), Invalid> {
        for _ in 0..count {
            match self.any_length()? {
                Length::Plain(length) => self.skip(length)?,
                Length::Encoded(kind @ 0..=2) => self.skip(1 << kind)?,
                Length::Encoded(3) => {
                    let packed = self.length()?;
                    self.lengths(1)?;
                    self.skip(packed)?;
                }
                Length::Encoded(got) => {
                    return Err(Invalid::Field { name: "string encoding", got: got.into() });
                }
            }
        }
        Ok(())
    }

    /// Calls `each` once per element of a length.
    fn each(
        &mut self,
        mut each: impl FnMut(&mut Self) -> Result<(), Invalid>,
    ) -> Result<(), Invalid> {
        let count = self.length()?;
        for _ in 0..count {
            each(self)?;
        }
        Ok(())
    }

    /// The value of a key, if it is a Bloom filter. All other values are skipped.
    fn value(&mut self, kind: u8) -> Result<Option<Value>, Invalid> {
        match kind {
            // Strings, and collections in one string.
            0 | 9..=13 | 16 | 17 | 20 | 23 => self.strings(1)?,
            // Lists and sets.
            1 | 2 | 14 => self.each(|file| file.strings(1))?,
            3 => self.each(|file| {
                file.strings(1)?;
                match file.reader.u8()? {
                    253..=255 => Ok(()),
                    length => file.skip(length.into()),
                }
            })?,
            4 => self.each(|file| file.strings(2))?,
            5 => self.each(|file| {
                file.strings(1)?;
                file.skip(8)
            })?,
            MODULE => return self.module(),
            15 | 19 | 21 => self.stream(kind)?,
            18 => self.each(|file| {
                file.lengths(1)?;
                file.strings(1)
            })?,
            // Hashes whose fields expire.
            22 if self.valkey => self.each(|file| {
                file.strings(2)?;
                file.skip(8)
            })?,
            22 | 24 => {
                self.skip(if kind == 24 { 8 } else { 0 })?;
                self.each(|file| {
                    file.lengths(1)?;
                    file.strings(2)
                })?;
            }
            25 => {
                self.skip(8)?;
                self.strings(1)?;
            }
            other => return Err(Invalid::Field { name: "type of a value", got: other.into() }),
        }
        Ok(None)
    }

    fn stream(&mut self, kind: u8) -> Result<(), Invalid> {
        self.each(|file| file.strings(2))?;
        self.lengths(if kind >= 19 { 8 } else { 3 })?;
        self.each(|file| {
            file.strings(1)?;
            file.lengths(if kind >= 19 { 3 } else { 2 })?;
            file.each(|file| {
                file.skip(24)?;
                file.lengths(1)
            })?;
            file.each(|file| {
                file.strings(1)?;
                file.skip(if kind >= 21 { 16 } else { 8 })?;
                file.each(|file| file.skip(16))
            })
        })
    }

    fn module(&mut self) -> Result<Option<Value>, Invalid> {
        let value = match self.length()? {
            REDIS_BLOOM => Value::RedisBloom(self.redis_bloom()?),
            VALKEY_BLOOM => Value::ValkeyBloom(self.valkey_bloom()?),
            _ => {
                self.skip_module()?;
                return Ok(None);
            }
        };
        self.expect(END)?;
        Ok(Some(value))
    }

    /// Skips a module value.
    fn skip_module(&mut self) -> Result<(), Invalid> {
        loop {
            match self.length()? {
                END => return Ok(()),
                SIGNED | UNSIGNED => self.lengths(1)?,
                FLOAT => self.skip(4)?,
                DOUBLE => self.skip(8)?,
                STRING => self.strings(1)?,
                got => return Err(Invalid::Field { name: "type of a module's value", got }),
            }
        }
    }

    fn expect(&mut self, kind: u64) -> Result<(), Invalid> {
        let got = self.length()?;
        if got == kind {
            Ok(())
        } else {
            Err(Invalid::Field { name: "type of a module's value", got })
        }
    }

    fn unsigned(&mut self) -> Result<u64, Invalid> {
        self.expect(UNSIGNED)?;
        self.length()
    }

    fn small(&mut self, name: &'static str) -> Result<u32, Invalid> {
        let got = self.unsigned()?;
        got.try_into().map_err(|_| Invalid::Field { name, got })
    }

    fn double(&mut self) -> Result<f64, Invalid> {
        self.expect(DOUBLE)?;
        self.reader.f64_le()
    }

    fn payload(&mut self) -> Result<Cow<'a, [u8]>, Invalid> {
        self.expect(STRING)?;
        self.string()
    }

    fn redis_bloom(&mut self) -> Result<redisbloom::Chain<[u8]>, Invalid> {
        let (size, count) = (self.unsigned()?, self.unsigned()?);
        let (options, growth) = (self.small("options")?, self.small("growth")?);
        let hash = redisbloom::hash_of(options)?;
        let mut links = Vec::new();
        for _ in 0..count {
            let (entries, error) = (self.unsigned()?, self.double()?);
            let (probes, bits_per_entry) = (self.unsigned()?, self.double()?);
            let (bits, n2) = (self.unsigned()?, self.unsigned()?);
            let payload = self.payload()?;
            let size = self.unsigned()?;
            let n2 = n2.try_into().map_err(|_| Invalid::Field { name: "n2", got: n2 })?;
            let fields = Fields { size, error, bits_per_entry, entries, n2 };
            links.push((redisbloom::link(hash, fields, bits, probes, &payload)?, fields));
        }
        redisbloom::Chain::of(links, size, options, growth)
    }

    fn valkey_bloom(&mut self) -> Result<valkey_bloom::Chain<[u8]>, Invalid> {
        let (count, growth) = (self.unsigned()?, self.unsigned()?);
        let (rate, tightening, random_seed) = (self.double()?, self.double()?, self.unsigned()?);
        let mut links = Vec::new();
        for _ in 0..count {
            let string = self.payload()?;
            links.push(valkey_bloom::link(&string, self.unsigned()?)?);
        }
        if links.is_empty() {
            return Err(Invalid::Field { name: "number of filters", got: 0 });
        }
        let in_last = self.unsigned()?;
        Ok(valkey_bloom::Chain { links, growth, rate, tightening, random_seed, in_last })
    }
}

/// Decompresses a string that was compressed by LZF (Marc Lehmann) to `length` bytes.
fn unpack(packed: &[u8], length: u64) -> Result<Vec<u8>, Invalid> {
    const WRONG: Invalid = Invalid::Encoding { expected: "a string packed by LZF" };
    // Three bytes decompress to 264 at most.
    if length > packed.len() as u64 * 88 {
        return Err(WRONG);
    }
    let mut plain: Vec<u8> = Vec::with_capacity(length as usize);
    let mut reader = Reader::new(packed);
    while !reader.rest().is_empty() {
        let control = reader.u8()?;
        if control < 32 {
            plain.extend(reader.take(u64::from(control) + 1)?);
        } else {
            let mut copied = usize::from(control >> 5) + 2;
            if copied == 9 {
                copied += usize::from(reader.u8()?);
            }
            let back = usize::from(control & 31) << 8 | usize::from(reader.u8()?);
            let from = plain.len().checked_sub(back + 1).ok_or(WRONG)?;
            for at in from..from + copied {
                plain.push(plain[at]);
            }
        }
        if plain.len() as u64 > length {
            return Err(WRONG);
        }
    }
    if plain.len() as u64 == length { Ok(plain) } else { Err(WRONG) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use umbel::bloom::Shape;

    /// Values from `crc64.c` of Redis.
    #[test]
    fn the_checksum_is_that_of_redis() {
        assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    }

    #[test]
    fn packed_strings_are_unpacked_and_never_beyond_their_length() {
        // "ab", then eight bytes from two back.
        let packed = [1, b'a', b'b', 6 << 5, 1];
        assert_eq!(unpack(&packed, 10).unwrap(), b"ababababab");
        for length in [9, 11, u64::MAX] {
            assert!(unpack(&packed, length).is_err());
        }
        assert!(unpack(&[32, 5], 3).is_err());
    }

    #[test]
    fn filters_of_valkey_come_back_from_a_dump() {
        let shape = Shape::foreign(100, 1_024, 7).unwrap();
        let hash = valkey_bloom::Hash::seeded(*b"0123456789abcdefghijklmnopqrstuv");
        let mut link: valkey_bloom::BloomFilter<[u8]> = crate::bits::filter(
            shape,
            hash,
            valkey_bloom::Positions,
            &[],
            crate::bits::Order::Lowest,
        )
        .unwrap();
        link.insert(b"umbel");
        let chain = valkey_bloom::Chain {
            links: vec![link],
            growth: 2,
            rate: 0.01,
            tightening: 0.5,
            random_seed: 1,
            in_last: 1,
        };
        let dump = write_dump(&Value::ValkeyBloom(chain), 11);
        let read = read_dump(&dump).unwrap();
        assert!(read.contains(b"umbel") && !read.contains(b"umbrella"));
        assert_eq!(write_dump(&read, 11), dump);
    }
}
