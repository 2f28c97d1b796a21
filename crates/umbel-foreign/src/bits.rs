//! Layouts of bits: conversion from bytes in a system's order to words in ours, and back.
//!
//! Bit i of a filter is bit i mod 64 of word i / 64.

use crate::BloomFilter;
use crate::error::Invalid;
use umbel::InvalidShape;
use umbel::bloom::{Bloom, Shape};
use umbel::kernels::Kernels;

/// The position of bit i.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Byte i / 8, bit i mod 8; the same as words of 64 bits, little-endian.
    Lowest,
    /// Byte i / 8, bit 7 - i mod 8.
    Highest,
    /// Word i / 64, bit i mod 64, words big-endian.
    BigWords,
}

impl Order {
    fn word(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Lowest => u64::from_le_bytes(bytes),
            Self::Highest => u64::from_be_bytes(bytes).reverse_bits(),
            Self::BigWords => u64::from_be_bytes(bytes),
        }
    }

    fn bytes(self, word: u64) -> [u8; 8] {
        match self {
            Self::Lowest => word.to_le_bytes(),
            Self::Highest => word.reverse_bits().to_be_bytes(),
            Self::BigWords => word.to_be_bytes(),
        }
    }
}

/// Checks that there are no more bytes than `bits` bits take.
pub(crate) fn at_most(bytes: &[u8], bits: u64) -> Result<(), Invalid> {
    let (expected, got) = (bits.div_ceil(8), bytes.len() as u64);
    if got <= expected { Ok(()) } else { Err(Invalid::Length { expected, got }) }
}

/// Checks that `bits` is a multiple of 64, and not too large.
pub(crate) fn whole_words(bits: u64, max: u64) -> Result<(), InvalidShape> {
    match bits {
        bits if bits > max => Err(InvalidShape::TooLarge { bits, max }),
        bits if !bits.is_multiple_of(64) => {
            Err(InvalidShape::TooSmall { bytes: bits / 8, min: bits.div_ceil(64) * 8 })
        }
        _ => Ok(()),
    }
}

/// The filter with these bits. Bits behind the last one that positions can reach are kept.
///
/// Bytes that are missing at the end count as zeros. The caller decides whether bytes may be missing.
pub(crate) fn filter<T: ?Sized, H, K: Kernels>(
    shape: Shape,
    hasher: H,
    kernels: K,
    bytes: &[u8],
    order: Order,
) -> Result<BloomFilter<T, H, K>, Invalid> {
    const AT_ONCE: usize = 256;
    let mut filter = Bloom::with_kernels(shape, hasher, kernels)?;
    for (piece, bytes) in bytes.chunks(AT_ONCE * 8).enumerate() {
        let mut words = [0; AT_ONCE];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = order.word(whole);
        }
        filter.union_with_words(piece * AT_ONCE, &words[..bytes.len().div_ceil(8)]);
    }
    Ok(filter)
}

/// Writes the bits as `bytes` bytes.
pub(crate) fn write(into: &mut Vec<u8>, words: &[u64], bytes: u64, order: Order) {
    let end = into.len() + bytes as usize;
    into.reserve(bytes as usize);
    into.extend(words.iter().flat_map(|word| order.bytes(*word)));
    into.resize(end, 0);
}

/// The bits as bytes, without zeros at the end.
pub(crate) fn trimmed(words: &[u64], bits: u64, order: Order) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes, words, bits.div_ceil(8), order);
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_has_bit_nine_where_it_says() {
        let bytes = |order| {
            let mut bytes = Vec::new();
            write(&mut bytes, &[1 << 9], 8, order);
            bytes
        };
        assert_eq!(bytes(Order::Lowest), [0, 2, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(Order::Highest), [0, 0x40, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(Order::BigWords), [0, 0, 0, 0, 0, 0, 2, 0]);
        for order in [Order::Lowest, Order::Highest, Order::BigWords] {
            assert_eq!(order.word(order.bytes(0x0123_4567_89ab_cdef)), 0x0123_4567_89ab_cdef);
        }
    }
}
