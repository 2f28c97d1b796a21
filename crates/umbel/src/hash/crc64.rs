//! CRC-64/XZ, a checksum, for systems that share its values.

use super::{Digest, Digester, Key};
use crc::{CRC_64_XZ, Crc, Table};

/// Sixteen bytes per step, with 32 KiB of tables.
static XZ: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_XZ);

/// CRC-64/XZ, a checksum that is **not good for filters**.
///
/// Gives the same digests as `.xz` files and Go's `crc64.ECMA`. Use it only to read a filter that
/// another program built with it.
///
/// A CRC is linear: for keys of one length, `crc(a ^ b ^ c)` is `crc(a) ^ crc(b) ^ crc(c)`. Related
/// keys therefore have related digests, and a filter of such keys exceeds its false positive rate.
/// To use a CRC that was computed elsewhere, pass it to [`Digest::mixed`].
///
/// ```
/// use umbel::hash::{Crc64, Digester};
///
/// assert_eq!(Crc64.digest("123456789").bits(), 0x995d_c9bb_df19_39fa);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crc64;

impl<T: Key + ?Sized> Digester<T> for Crc64 {
    #[inline]
    fn digest(&self, key: &T) -> Digest {
        Digest(key.with_bytes(|bytes| XZ.checksum(bytes)))
    }

    fn check(&self) -> u64 {
        XZ.checksum(b"umbel crc64")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::murmur3::vectors;

    fn crc(bytes: &[u8]) -> u64 {
        Crc64.digest(bytes).bits()
    }

    /// The definition, bit by bit: polynomial 0x42f0e1eba9ea3693, reflected, all ones in and out.
    fn bit_by_bit(bytes: &[u8]) -> u64 {
        !bytes.iter().fold(u64::MAX, |crc, &byte| {
            (0..8).fold(crc ^ u64::from(byte), |crc, _| {
                (crc >> 1) ^ ((crc & 1) * 0x42f0_e1eb_a9ea_3693_u64.reverse_bits())
            })
        })
    }

    /// "CRC-64/XZ" in the catalogue of G. Cook, and M. Adler's `crc64.c`.
    #[test]
    fn the_published_checksums_come_out() {
        assert_eq!(crc(b""), 0);
        assert_eq!(crc(b"123456789"), 0x995d_c9bb_df19_39fa);
        let test = b"This is a test of the emergency broadcast system.";
        assert_eq!(crc(test), 0x27db_187f_c15b_bc72);
    }

    #[test]
    fn all_lengths_follow_the_definition() {
        assert_eq!(vectors::fold(crc), vectors::fold(bit_by_bit));
        assert_eq!(vectors::fold(crc), 0x5e9d_91d8_8710_4b2b);
    }

    #[test]
    fn integers_are_their_eight_bytes() {
        let bytes = [1_u8, 2, 3, 4, 5, 6, 7, 0x88];
        assert_eq!(Crc64.digest(&u64::from_le_bytes(bytes)).bits(), crc(&bytes));
    }

    #[test]
    fn related_keys_have_related_digests() {
        let (a, b, c) = (3_u64, 1 << 40, 0x8877_6655);
        let digest = |key: u64| Crc64.digest(&key).bits();
        assert_eq!(digest(a ^ b ^ c), digest(a) ^ digest(b) ^ digest(c));
    }
}
