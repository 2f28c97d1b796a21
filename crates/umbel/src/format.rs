//! Filters as bytes: every field and checksum in one place, one way in.
//!
//! `docs/format.md` has the layout. Bytes are a draft until version 1 of the format: until then
//! they are for one version of this library, and another one refuses them.

use crate::error::{InvalidBytes, InvalidShape};
use crate::hash::{City64, Digester, Farm64, Keyed, Murmur3, Portable, Xxh3, Xxh64};
use crate::layout::{Plan, StoredLayout};
use twox_hash::XxHash3_64;

/// The first bytes of every filter.
const MAGIC: [u8; 8] = *b"umbel\0\r\n";
/// The draft.
const VERSION: u16 = 0;
/// Seeds the checksum of the header, so that zeros never verify.
const HEADER_SEED: u64 = 0x756d_6265_6c20_6864;

/// The length of the header.
pub(crate) const HEADER: usize = 64;
/// The length of the checksum after the words.
pub(crate) const TRAILER: usize = 8;

/// A hasher whose digests are the same for ever, so that a filter made with it may be saved.
pub trait Stored {
    /// Its number in a header. Numbers are never given to another hash.
    const ID: u16;

    /// What tells it from others with the same number: the seed; for a secret, a check value.
    fn mark(&self) -> u64;
}

/// A [`Stored`] hasher that can be made anew from what a header says.
pub trait Restored: Stored + Sized {
    /// The hasher with this mark, if there is one.
    fn restore(mark: u64) -> Option<Self>;
}

impl Stored for Portable {
    const ID: u16 = 1;

    fn mark(&self) -> u64 {
        self.seed()
    }
}

impl Restored for Portable {
    fn restore(mark: u64) -> Option<Self> {
        Some(Self::seeded(mark))
    }
}

/// Only the check value is saved: whoever opens the filter brings the secret.
impl Stored for Keyed {
    const ID: u16 = 2;

    fn mark(&self) -> u64 {
        Digester::<str>::check(self)
    }
}

macro_rules! stored_by_check {
    ($($hasher:ty = $id:literal),*) => {$(
        impl Stored for $hasher {
            const ID: u16 = $id;

            fn mark(&self) -> u64 {
                Digester::<str>::check(self)
            }
        }
    )*};
}
stored_by_check!(Murmur3 = 3, Xxh64 = 4, Xxh3 = 5, City64 = 6, Farm64 = 7);
#[cfg(feature = "crc64")]
stored_by_check!(crate::hash::Crc64 = 8);
// 9 is `split::Plain`.

/// The header of a filter of some layout.
#[cfg(feature = "alloc")]
pub(crate) fn header<L: StoredLayout, H: Stored>(shape: &L::Shape, hasher: &H) -> [u8; HEADER] {
    header_of(L::FAMILY, L::kernels(shape), shape, hasher)
}

/// The header of a filter of this family, with these kernels.
#[cfg(feature = "alloc")]
pub(crate) fn header_of<P: Plan, H: Stored>(
    family: u16,
    kernels: u16,
    shape: &P,
    hasher: &H,
) -> [u8; HEADER] {
    let probes = u64::from(shape.probes());
    header_with(family, kernels, hasher, [shape.items(), shape.bits(), probes, shape.words() * 8])
}

/// The header with these four numbers: items, bits, probes, and the length of what follows it, or what
/// a family has in their place.
#[cfg(feature = "alloc")]
pub(crate) fn header_with<H: Stored>(
    family: u16,
    kernels: u16,
    hasher: &H,
    numbers: [u64; 4],
) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    let mut rest = &mut bytes[..];
    let mut put = |field: &[u8]| {
        let (head, tail) = core::mem::take(&mut rest).split_at_mut(field.len());
        head.copy_from_slice(field);
        rest = tail;
    };
    put(&MAGIC);
    put(&VERSION.to_le_bytes());
    put(&family.to_le_bytes());
    put(&H::ID.to_le_bytes());
    put(&kernels.to_le_bytes());
    put(&hasher.mark().to_le_bytes());
    numbers.iter().for_each(|number| put(&number.to_le_bytes()));
    let checksum = header_checksum(&bytes);
    bytes[HEADER - 8..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The checksum that follows the words: it depends on the header too, so that words of another
/// filter never verify.
pub(crate) fn payload_checksum(header: &[u8; HEADER], payload: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(header_checksum(header), payload)
}

fn header_checksum(header: &[u8; HEADER]) -> u64 {
    XxHash3_64::oneshot_with_seed(HEADER_SEED, &header[..HEADER - 8])
}

/// Filters through serde: as their bytes, and back with all checks.
#[cfg(feature = "serde")]
pub(crate) mod through_serde {
    use crate::error::InvalidBytes;
    use alloc::vec::Vec;
    use core::fmt;
    use serde::de::{Deserializer, Error, SeqAccess, Visitor};

    /// What `read` makes of bytes, or of a sequence of them.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>, F>(
        deserializer: D,
        read: fn(&[u8]) -> Result<F, InvalidBytes>,
    ) -> Result<F, D::Error> {
        deserializer.deserialize_bytes(Bytes(read))
    }

    struct Bytes<F>(fn(&[u8]) -> Result<F, InvalidBytes>);

    impl<'de, F> Visitor<'de> for Bytes<F> {
        type Value = F;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the bytes of a filter")
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<F, E> {
            (self.0)(bytes).map_err(E::custom)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<F, A::Error> {
            let mut bytes = Vec::new();
            while let Some(byte) = seq.next_element()? {
                bytes.push(byte);
            }
            (self.0)(&bytes).map_err(A::Error::custom)
        }
    }
}

/// A header and a payload that belong together.
#[derive(Debug)]
pub(crate) struct Parsed<'a, S> {
    pub(crate) shape: S,
    pub(crate) mark: u64,
    pub(crate) payload: &'a [u8],
}

/// As [`parse_as`], for a layout.
pub(crate) fn parse<L: StoredLayout, H: Stored>(
    bytes: &[u8],
) -> Result<Parsed<'_, L::Shape>, InvalidBytes> {
    parse_as::<L::Shape, H>(bytes, L::FAMILY, L::restore)
}

/// As [`parse_with`], for a shape that tells its words.
pub(crate) fn parse_as<P: Plan, H: Stored>(
    bytes: &[u8],
    family: u16,
    restore: impl FnOnce(u16, u64, u64, u32) -> Option<Result<P, InvalidShape>>,
) -> Result<Parsed<'_, P>, InvalidBytes> {
    parse_with::<P, H>(bytes, family, |kernels, items, bits, probes| {
        let shape = restore(kernels, items, bits, probes)?;
        Some(shape.map(|shape| (shape, shape.words())))
    })
}

/// As [`open`], with what makes a shape, and the number of words that follow, of kernels, items, bits
/// and probes. Checks everything that can be checked without making a filter: nothing is allocated, and
/// every size is compared with the bytes that are there.
pub(crate) fn parse_with<S, H: Stored>(
    bytes: &[u8],
    family: u16,
    restore: impl FnOnce(u16, u64, u64, u32) -> Option<Result<(S, u64), InvalidShape>>,
) -> Result<Parsed<'_, S>, InvalidBytes> {
    let opened = open::<H>(bytes, family)?;
    let [items, bits, probes, length] = opened.numbers;
    let probes = u32::try_from(probes).map_err(|_| InvalidBytes::Inconsistent)?;
    let Some(shape) = restore(opened.kernels, items, bits, probes) else {
        return Err(InvalidBytes::Kernels { got: opened.kernels });
    };
    let (shape, words) = shape?;
    if words * 8 != length {
        return Err(InvalidBytes::Inconsistent);
    }
    Ok(Parsed { shape, mark: opened.mark, payload: opened.payload()? })
}

/// What a header says, before anybody believes it.
#[derive(Debug)]
pub(crate) struct Opened<'a> {
    header: &'a [u8; HEADER],
    /// All that follows the header, but for the checksum.
    rest: &'a [u8],
    trailer: &'a [u8; TRAILER],
    pub(crate) kernels: u16,
    pub(crate) mark: u64,
    /// Items, bits, probes, and the length of the payload.
    pub(crate) numbers: [u64; 4],
}

impl<'a> Opened<'a> {
    /// The payload, if it is as long as the header says, and has its checksum.
    pub(crate) fn payload(&self) -> Result<&'a [u8], InvalidBytes> {
        let (length, got) = (self.numbers[3], self.rest.len() as u64);
        let around = (HEADER + TRAILER) as u64;
        if length != got {
            let expected = length.saturating_add(around);
            return Err(InvalidBytes::Length { expected, got: got + around });
        }
        if u64::from_le_bytes(*self.trailer) != payload_checksum(self.header, self.rest) {
            return Err(InvalidBytes::Payload);
        }
        Ok(self.rest)
    }
}

/// The one way in: bytes that begin as a filter of this family and this hash does.
pub(crate) fn open<H: Stored>(bytes: &[u8], family: u16) -> Result<Opened<'_>, InvalidBytes> {
    let total = bytes.len() as u64;
    let too_short = InvalidBytes::Length { expected: (HEADER + TRAILER) as u64, got: total };
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() else {
        return Err(too_short);
    };
    let Some((rest, trailer)) = rest.split_last_chunk::<TRAILER>() else {
        return Err(too_short);
    };
    if header[..8] != MAGIC {
        return Err(InvalidBytes::Magic);
    }
    let short = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    let long = |at: usize| {
        let mut field = [0; 8];
        field.copy_from_slice(&header[at..at + 8]);
        u64::from_le_bytes(field)
    };
    if short(8) != VERSION {
        return Err(InvalidBytes::Version { expected: VERSION, got: short(8) });
    }
    if long(56) != header_checksum(header) {
        return Err(InvalidBytes::Header);
    }
    if short(10) != family {
        return Err(InvalidBytes::Family { expected: family, got: short(10) });
    }
    if short(12) != H::ID {
        return Err(InvalidBytes::Hash { expected: H::ID, got: short(12) });
    }
    let numbers = [24, 32, 40, 48].map(long);
    Ok(Opened { header, rest, trailer, kernels: short(14), mark: long(16), numbers })
}
