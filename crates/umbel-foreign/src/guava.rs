//! Guava's `BloomFilter`, as `writeTo` writes it.
//!
//! ```text
//!     strategy   1 byte: 0 MURMUR128_MITZ_32, 1 MURMUR128_MITZ_64, which `create` takes
//!     probes     1 byte, 1 to 255
//!     words      4 bytes big-endian: how many words follow, of 8 bytes big-endian; bits = 64 times that
//!     hash       MurmurHash3_x64_128, seed 0, of what the funnel makes of a key: h1, h2
//!     positions  MITZ_64: h1, h1 + h2, h1 + 2 h2, ... each without its highest bit, modulo bits
//!                MITZ_32: a + b, a + 2 b, ... in 32 bits with a sign, a negative one inverted, modulo bits;
//!                         a and b are the lower and the upper half of h1
//! ```
//!
//! | funnel | keys | hasher |
//! |---|---|---|
//! | `stringFunnel(UTF_8)`, `byteArrayFunnel()` | `str`, `[u8]` | [`Funnel`] |
//! | `integerFunnel()`, `longFunnel()` | `i32`, `i64` | [`Funnel`] |
//! | `unencodedCharsFunnel()` | `str`, `[u16]` | [`UnencodedChars`] |
//!
//! The bytes do not say which funnel the keys used. With another funnel, present keys are reported absent.

use crate::bits::{self, Order};
use crate::error::Invalid;
use crate::read::Reader;
use crate::unseeded;
use std::f64::consts::LN_2;
use umbel::InvalidShape;
use umbel::bloom::Shape;
use umbel::hash::Murmur3;
use umbel::kernels::Kernels;

/// A filter of Guava.
pub type BloomFilter<T, H = Funnel> = crate::BloomFilter<T, H, Strategy>;

/// The number of probes is stored in a byte.
const MAX_PROBES: u32 = 255;
/// A Java array has at most 2^31 - 1 words.
const MAX_BITS: u64 = i32::MAX as u64 * 64;

/// The hash of the funnels of strings in UTF-8, of bytes and of numbers, which are little-endian.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Funnel;

digests! { Funnel => (u64, u64), check unseeded;
    [u8]: |_funnel, key| Murmur3::default().hash128(key);
    str: |_funnel, key| Murmur3::default().hash128(key.as_bytes());
    i32: |_funnel, key| Murmur3::default().hash128(&key.to_le_bytes());
    i64: |_funnel, key| Murmur3::default().hash128(&key.to_le_bytes());
}

/// The hash of the funnel of characters: UTF-16, little-endian.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnencodedChars;

impl UnencodedChars {
    fn of(units: impl Iterator<Item = u16>) -> (u64, u64) {
        Murmur3::default().hash128(&units.flat_map(u16::to_le_bytes).collect::<Vec<u8>>())
    }
}

digests! { UnencodedChars => (u64, u64), check unseeded;
    str: |_funnel, key| UnencodedChars::of(key.encode_utf16());
    [u16]: |_funnel, key| UnencodedChars::of(key.iter().copied());
}

/// The kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// `MURMUR128_MITZ_32`, of Guava before 13.
    Mitz32,
    /// `MURMUR128_MITZ_64`.
    #[default]
    Mitz64,
}

impl Kernels for Strategy {
    type Digest = (u64, u64);

    #[inline]
    fn start(&self, (h1, h2): (u64, u64)) -> (u64, u64) {
        match self {
            Self::Mitz32 => (h1 & u64::from(u32::MAX), h1 >> 32),
            Self::Mitz64 => (h1, h2),
        }
    }

    #[inline]
    fn step(&self, (at, stride): &mut (u64, u64), bits: u64) -> u64 {
        match self {
            Self::Mitz32 => {
                let next = (*at as i32).wrapping_add(*stride as i32);
                *at = next as u32 as u64;
                (if next < 0 { !next } else { next }) as u64 % bits
            }
            Self::Mitz64 => {
                let position = (*at & (u64::MAX >> 1)) % bits;
                *at = at.wrapping_add(*stride);
                position
            }
        }
    }

    /// The limits of the fields.
    fn accept(&self, shape: &Shape) -> Result<(), InvalidShape> {
        let (bits, probes) = (shape.bits(), shape.probes());
        InvalidShape::check_range("probes", probes.into(), 1, MAX_PROBES.into())?;
        bits::whole_words(bits, MAX_BITS)
    }

    fn check(&self) -> u64 {
        *self as u64
    }
}

/// An empty filter with the sizes of `BloomFilter.create(funnel, capacity, err_rate)`.
///
/// # Errors
///
/// [`Invalid::Shape`] if `err_rate` is not above 0 and below 1, or there would be too many bits.
pub fn new<T: ?Sized>(capacity: u64, err_rate: f64) -> Result<BloomFilter<T>, Invalid> {
    with(capacity, err_rate, Funnel, Strategy::default())
}

/// As [`new`], with another funnel or strategy.
///
/// # Errors
///
/// As [`new`].
pub fn with<T: ?Sized, H>(
    capacity: u64,
    err_rate: f64,
    funnel: H,
    strategy: Strategy,
) -> Result<BloomFilter<T, H>, Invalid> {
    let rate = umbel::sizing::Rate::new(err_rate)?.get();
    // Guava plans a filter for no keys like one for a single key.
    let items = capacity.max(1) as f64;
    let bits = (-items * rate.ln() / (LN_2 * LN_2)) as u64;
    let probes = (-rate.ln() / LN_2).round().max(1.0) as u32;
    let bits = bits.max(1).next_multiple_of(64);
    let shape = Shape::foreign(capacity, bits, probes)?;
    bits::filter(shape, funnel, strategy, &[], Order::BigWords)
}

/// Reads the filter from these bytes, with keys that used the funnels of [`Funnel`].
///
/// # Errors
///
/// [`Invalid`] describes what is wrong with them.
pub fn read<T: ?Sized>(bytes: &[u8]) -> Result<BloomFilter<T>, Invalid> {
    read_with(bytes, Funnel)
}

/// As [`read`], with keys that used this funnel.
///
/// # Errors
///
/// [`Invalid`] describes what is wrong with them.
pub fn read_with<T: ?Sized, H>(bytes: &[u8], funnel: H) -> Result<BloomFilter<T, H>, Invalid> {
    let mut reader = Reader::new(bytes);
    let strategy = match reader.u8()? {
        0 => Strategy::Mitz32,
        1 => Strategy::Mitz64,
        other => return Err(Invalid::Field { name: "strategy", got: other.into() }),
    };
    let probes = reader.u8()?;
    let words = u64::from(reader.u32_be()?);
    let payload = reader.take_last(words * 8)?;
    let shape = Shape::foreign(0, words * 64, probes.into())?;
    bits::filter(shape, funnel, strategy, payload, Order::BigWords)
}

/// The bytes that `writeTo` writes.
#[must_use]
pub fn write<T: ?Sized, H>(filter: &BloomFilter<T, H>) -> Vec<u8> {
    let words = filter.words();
    let mut bytes = Vec::with_capacity(6 + words.len() * 8);
    bytes.push(*filter.raw().kernels() as u8);
    bytes.push(filter.shape().probes() as u8);
    bytes.extend((words.len() as u32).to_be_bytes());
    bits::write(&mut bytes, words, words.len() as u64 * 8, Order::BigWords);
    bytes
}
