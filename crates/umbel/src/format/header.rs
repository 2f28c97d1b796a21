//! The first 192 bytes: everything that is needed to use the filter, except its words.

use super::family::{Mark, NOT_COUNTED};
use crate::error::InvalidBytes;
use twox_hash::XxHash3_64;

/// The first bytes of every filter.
const MAGIC: [u8; 8] = *b"umbel\0\r\n";
/// The version that is written, and the only one that can be read.
const VERSION: u16 = 1;
/// The seed of the checksum of the header, so that zeros never verify.
const SEED: u64 = 0x756d_6265_6c20_6864;

/// The length of a header. A multiple of 64, so that words that follow it can be used in place.
pub(crate) const LEN: usize = 192;
/// How many numbers a family may store about a filter.
pub(crate) const FIELDS: usize = 13;

/// Flag: the secret of the hasher is in the header.
const SECRET: u16 = 1 << 0;
/// Flag: a process is changing the words in place, or did not finish.
const OPEN: u16 = 1 << 1;

/// The contents of the header of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub(crate) family: u16,
    pub(crate) hash: u16,
    /// The function from a digest to places.
    pub(crate) kernels: u16,
    /// The kind of the keys.
    pub(crate) keys: u16,
    /// Whether the words are being changed in place.
    pub(crate) open: bool,
    /// The seed of the hasher, or a check value.
    pub(crate) mark: u64,
    /// The owner's number of the secret.
    pub(crate) key_id: u64,
    pub(crate) secret: Option<[u8; 16]>,
    /// The number of insertions, if the family counts them.
    pub(crate) insertions: u64,
    /// The length of the words in bytes.
    pub(crate) payload: u64,
    /// The checksum of the checksums of all blocks.
    pub(crate) root: u64,
    /// The fields of the family.
    pub(crate) fields: [u64; FIELDS],
}

impl Header {
    /// The header of a filter of this family, before the fields of the words are set.
    pub(crate) fn new(
        family: u16,
        kernels: u16,
        mark: Mark,
        insertions: u64,
        first: &[u64],
    ) -> Self {
        let mut fields = [0; FIELDS];
        fields[..first.len()].copy_from_slice(first);
        Self {
            family,
            hash: mark.hash,
            kernels,
            keys: mark.keys,
            open: false,
            mark: mark.check,
            key_id: mark.key_id,
            secret: mark.secret,
            insertions,
            payload: 0,
            root: 0,
            fields,
        }
    }

    /// The first fields, if the others are 0.
    pub(crate) fn fields<const N: usize>(&self) -> Result<[u64; N], InvalidBytes> {
        match self.fields.split_first_chunk() {
            Some((first, rest)) if rest.iter().all(|field| *field == 0) => Ok(*first),
            _ => Err(InvalidBytes::Inconsistent),
        }
    }

    /// Checks the number of the kernels.
    pub(crate) const fn expect_kernels(&self, kernels: u16) -> Result<(), InvalidBytes> {
        let got = self.kernels;
        if got == kernels { Ok(()) } else { Err(InvalidBytes::Kernels { got }) }
    }

    /// The number of bytes of a header.
    pub const BYTES: usize = LEN;

    /// Parses the header at the start of these bytes. The rest is ignored.
    ///
    /// # Errors
    ///
    /// [`InvalidBytes`] if they do not begin with a header.
    pub fn of(bytes: &[u8]) -> Result<Self, InvalidBytes> {
        let Some(first) = bytes.first_chunk() else {
            return Err(InvalidBytes::Length { expected: LEN as u64, got: bytes.len() as u64 });
        };
        Self::parse(first)
    }

    /// The number of the family.
    #[must_use]
    pub const fn family(&self) -> u16 {
        self.family
    }

    /// The number of the kernels.
    #[must_use]
    pub const fn kernels(&self) -> u16 {
        self.kernels
    }

    /// The number of insertions, if the family counts them.
    #[must_use]
    pub const fn insertions(&self) -> Option<u64> {
        if self.insertions == NOT_COUNTED { None } else { Some(self.insertions) }
    }

    /// Whether the header contains the secret of the hasher.
    #[must_use]
    pub const fn has_secret(&self) -> bool {
        self.secret.is_some()
    }

    /// The owner's number of the secret; 0 if it has none.
    #[must_use]
    pub const fn secret_number(&self) -> u64 {
        self.key_id
    }

    /// Whether a process is changing the words in place, or did not finish.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.open
    }

    /// The description of the hasher.
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            hash: self.hash,
            keys: self.keys,
            check: self.mark,
            key_id: self.key_id,
            secret: self.secret,
        }
    }

    /// The bytes.
    #[cfg(feature = "alloc")]
    pub(crate) fn encode(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        let mut rest = &mut bytes[..];
        let mut put = |field: &[u8]| {
            let (head, tail) = core::mem::take(&mut rest).split_at_mut(field.len());
            head.copy_from_slice(field);
            rest = tail;
        };
        let secret = if self.secret.is_some() { SECRET } else { 0 };
        let open = if self.open { OPEN } else { 0 };
        put(&MAGIC);
        for field in [VERSION, self.family, self.hash, self.kernels, self.keys, secret | open] {
            put(&field.to_le_bytes());
        }
        put(&[0; 4]);
        put(&self.mark.to_le_bytes());
        put(&self.key_id.to_le_bytes());
        put(&self.secret.unwrap_or_default());
        for field in [self.insertions, self.payload, self.root] {
            put(&field.to_le_bytes());
        }
        for field in self.fields {
            put(&field.to_le_bytes());
        }
        let checksum = checksum(&bytes);
        bytes[LEN - 8..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Parses a header, if this version can have written it.
    pub(crate) fn parse(bytes: &[u8; LEN]) -> Result<Self, InvalidBytes> {
        let mut rest = &bytes[..];
        if take::<8>(&mut rest) != MAGIC {
            return Err(InvalidBytes::Magic);
        }
        let version = short(&mut rest);
        if version != VERSION {
            return Err(InvalidBytes::Version { expected: VERSION, got: version });
        }
        if bytes[LEN - 8..] != checksum(bytes).to_le_bytes() {
            return Err(InvalidBytes::Header);
        }
        let (family, hash, kernels) = (short(&mut rest), short(&mut rest), short(&mut rest));
        let (keys, flags) = (short(&mut rest), short(&mut rest));
        if flags & !(SECRET | OPEN) != 0 {
            return Err(InvalidBytes::Flags { got: flags });
        }
        if take::<4>(&mut rest) != [0; 4] {
            return Err(InvalidBytes::Inconsistent);
        }
        let (mark, key_id) = (long(&mut rest), long(&mut rest));
        let secret = take::<16>(&mut rest);
        if flags & SECRET == 0 && secret != [0; 16] {
            return Err(InvalidBytes::Inconsistent);
        }
        Ok(Self {
            family,
            hash,
            kernels,
            keys,
            open: flags & OPEN != 0,
            mark,
            key_id,
            secret: (flags & SECRET != 0).then_some(secret),
            insertions: long(&mut rest),
            payload: long(&mut rest),
            root: long(&mut rest),
            fields: core::array::from_fn(|_| long(&mut rest)),
        })
    }
}

fn checksum(header: &[u8; LEN]) -> u64 {
    XxHash3_64::oneshot_with_seed(SEED, &header[..LEN - 8])
}

/// The next bytes. The caller guarantees that there are enough: it has a whole header.
fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let (head, tail) = rest.split_at(N);
    *rest = tail;
    let mut bytes = [0; N];
    bytes.copy_from_slice(head);
    bytes
}

fn short(rest: &mut &[u8]) -> u16 {
    u16::from_le_bytes(take(rest))
}

fn long(rest: &mut &[u8]) -> u64 {
    u64::from_le_bytes(take(rest))
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;

    fn sample() -> Header {
        Header {
            family: 1,
            hash: 2,
            kernels: 3,
            keys: 1,
            open: false,
            mark: 5,
            key_id: 6,
            secret: None,
            insertions: 7,
            payload: 8,
            root: 9,
            fields: core::array::from_fn(|number| 10 + number as u64),
        }
    }

    #[test]
    fn a_header_comes_back_as_it_was() {
        for header in [
            sample(),
            Header { secret: Some([7; 16]), ..sample() },
            Header { secret: Some([0; 16]), open: true, ..sample() },
        ] {
            assert_eq!(Header::parse(&header.encode()), Ok(header));
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let bytes = sample().encode();
        for bit in 0..LEN * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::parse(&damaged).is_err(), "bit {bit}");
        }
        assert_eq!(Header::parse(&[0; LEN]), Err(InvalidBytes::Magic));
    }

    #[test]
    fn what_nobody_can_have_written_is_refused_with_a_right_checksum_too() {
        let sealed = |change: fn(&mut [u8; LEN])| {
            let mut bytes = sample().encode();
            change(&mut bytes);
            let checksum = checksum(&bytes);
            bytes[LEN - 8..].copy_from_slice(&checksum.to_le_bytes());
            Header::parse(&bytes)
        };
        assert_eq!(sealed(|bytes| bytes[18] = 4), Err(InvalidBytes::Flags { got: 4 }));
        assert_eq!(sealed(|bytes| bytes[20] = 1), Err(InvalidBytes::Inconsistent));
        assert_eq!(sealed(|bytes| bytes[45] = 1), Err(InvalidBytes::Inconsistent));
        let version = InvalidBytes::Version { expected: VERSION, got: 2 };
        assert_eq!(sealed(|bytes| bytes[8] = 2), Err(version));
    }
}
