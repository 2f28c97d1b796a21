//! The hash of Parquet's filters: XXH64 of a value in Parquet's PLAIN encoding.

use crate::error::InvalidBytes;
use crate::format::{Mark, Stored, hashes};
use crate::hash::{Digest, Digester, Kind};
use twox_hash::XxHash64;

/// The hasher of Parquet: XXH64, with seed 0, of the bytes of [`PlainEncoded`].
///
/// The hash is part of the format, so there is no seed, and no protection against an attacker who
/// chooses keys.
///
/// ```
/// use umbel::hash::{Digester, Xxh64};
/// use umbel::split::Plain;
///
/// assert_eq!(Plain.digest("").bits(), 17_241_709_254_077_376_921);
/// assert_eq!(Plain.digest("abc"), Xxh64::default().digest("abc"));
/// assert_ne!(Plain.digest(&1_i32), Xxh64::default().digest(&1_i32)); // four bytes, and eight
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plain;

/// A key with a form in Parquet's PLAIN encoding.
///
/// | type | type in Parquet | form |
/// |---|---|---|
/// | `[u8]`, `Vec<u8>`, `str`, `String` | BYTE_ARRAY | the bytes, without their length |
/// | `[u8; N]` | FIXED_LEN_BYTE_ARRAY, INT96 | the bytes |
/// | `i8`, `i16`, `i32` | INT32 | the value, sign-extended to 4 bytes, little-endian |
/// | `u8`, `u16`, `u32` | INT32 | the value, zero-extended to 4 bytes, little-endian |
/// | `i64`, `u64` | INT64 | 8 bytes, little-endian |
/// | `f32`, `f64` | FLOAT, DOUBLE | the 4 or 8 bytes of the number, little-endian |
/// | `&K` | that of `K` | that of `K` |
///
/// Numbers are compared by their bytes: 0.0 and -0.0 are two keys, and so are NaNs with different
/// bits. `bool` has no form, because Parquet has no filters for it, nor do integers without a
/// Parquet type. The form of a [`Key`](crate::Key) differs: there, all integers of up to 64 bits
/// have one form.
///
/// ```compile_fail
/// umbel::SplitBlockBloomFilter::<bool>::new(2, 0.01).insert(&true);
/// ```
pub trait PlainEncoded {
    /// The form that all keys of this type have.
    const KIND: Kind;

    /// Calls `hash` with the bytes of this key.
    fn with_plain<R>(&self, hash: impl FnOnce(&[u8]) -> R) -> R;
}

impl PlainEncoded for [u8] {
    const KIND: Kind = Kind::Bytes;

    #[inline]
    fn with_plain<R>(&self, hash: impl FnOnce(&[u8]) -> R) -> R {
        hash(self)
    }
}

impl<const N: usize> PlainEncoded for [u8; N] {
    const KIND: Kind = Kind::Bytes;

    #[inline]
    fn with_plain<R>(&self, hash: impl FnOnce(&[u8]) -> R) -> R {
        hash(self)
    }
}

impl PlainEncoded for str {
    const KIND: Kind = Kind::Bytes;

    #[inline]
    fn with_plain<R>(&self, hash: impl FnOnce(&[u8]) -> R) -> R {
        hash(self.as_bytes())
    }
}

#[cfg(feature = "alloc")]
impl PlainEncoded for alloc::vec::Vec<u8> {
    const KIND: Kind = Kind::Bytes;

    #[inline]
    fn with_plain<R>(&self, hash: impl FnOnce(&[u8]) -> R) -> R {
        hash(self)
    }
}

#[cfg(feature = "alloc")]
impl PlainEncoded for alloc::string::String {
    const KIND: Kind = Kind::Bytes;

    #[inline]
    fn with_plain<R>(&self, hash: impl FnOnce(&[u8]) -> R) -> R {
        hash(self.as_bytes())
    }
}

impl<K: PlainEncoded + ?Sized> PlainEncoded for &K {
    const KIND: Kind = K::KIND;

    #[inline]
    fn with_plain<R>(&self, hash: impl FnOnce(&[u8]) -> R) -> R {
        (**self).with_plain(hash)
    }
}

macro_rules! numbers {
    ($($number:ty as $encoded:ty),*) => {$(
        impl PlainEncoded for $number {
            const KIND: Kind =
                if size_of::<$encoded>() == 4 { Kind::Plain4 } else { Kind::Plain8 };

            #[inline]
            fn with_plain<R>(&self, hash: impl FnOnce(&[u8]) -> R) -> R {
                hash(&<$encoded>::from(*self).to_le_bytes())
            }
        }
    )*};
}

numbers!(i8 as i32, i16 as i32, i32 as i32, i64 as i64, f32 as f32);
numbers!(u8 as u32, u16 as u32, u32 as u32, u64 as u64, f64 as f64);

impl<T: PlainEncoded + ?Sized> Digester<T> for Plain {
    #[inline]
    fn digest(&self, key: &T) -> Digest {
        Digest::new(key.with_plain(|bytes| XxHash64::oneshot(0, bytes)))
    }

    fn check(&self) -> u64 {
        0
    }
}

impl<T: PlainEncoded + ?Sized> Stored<T> for Plain {
    fn mark(&self) -> Mark {
        Mark::public(hashes::PLAIN, T::KIND, 0)
    }

    fn restore(mark: &Mark) -> Result<Self, InvalidBytes> {
        mark.expect(hashes::PLAIN, T::KIND)?;
        if mark.check == 0 { Ok(Self) } else { Err(InvalidBytes::Inconsistent) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn plain<K: PlainEncoded + ?Sized>(key: &K) -> Vec<u8> {
        key.with_plain(<[u8]>::to_vec)
    }

    #[test]
    fn small_integers_are_extended_to_four_bytes_as_their_sign_says() {
        assert_eq!(plain(&-2_i8), [254, 255, 255, 255]);
        assert_eq!(plain(&-2_i16), plain(&-2_i32));
        assert_eq!(plain(&254_u8), [254, 0, 0, 0]);
        assert_eq!(plain(&u16::MAX), [255, 255, 0, 0]);
        assert_eq!(plain(&0x1234_5678_u32), [0x78, 0x56, 0x34, 0x12]);
        assert_eq!(plain(&i32::MIN), [0, 0, 0, 128]);
    }

    #[test]
    fn long_integers_are_eight_bytes() {
        assert_eq!(plain(&1_i64), [1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(plain(&-1_i64), plain(&u64::MAX));
    }

    #[test]
    fn fractions_are_their_bits_and_nothing_else() {
        assert_eq!(plain(&1.0_f32), [0, 0, 0x80, 0x3f]);
        assert_eq!(plain(&1.0_f64), [0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
        assert_ne!(Plain.digest(&0.0_f64), Plain.digest(&-0.0_f64));
        let nan = |bits: u64| Plain.digest(&f64::from_bits(0x7ff8_0000_0000_0000 | bits));
        assert_ne!(nan(0), nan(1));
    }

    #[test]
    fn owned_borrowed_and_fixed_bytes_have_one_form() {
        let text = "naïve";
        assert_eq!(plain(text), text.as_bytes());
        assert_eq!(plain(&text), plain(text));
        assert_eq!(plain(b"abc"), plain(&b"abc"[..]));
        #[cfg(feature = "alloc")]
        {
            assert_eq!(plain(&alloc::string::String::from(text)), plain(text));
            assert_eq!(plain(&alloc::vec![1_u8, 2]), [1, 2]);
        }
    }

    #[test]
    fn only_its_own_mark_brings_it_back() {
        let restore = <Plain as Stored<str>>::restore;
        assert_eq!(restore(&Stored::<str>::mark(&Plain)), Ok(Plain));
        let other = Mark::public(hashes::PLAIN, Kind::Bytes, 1);
        assert_eq!(restore(&other), Err(InvalidBytes::Inconsistent));
        let numbers = InvalidBytes::Keys { expected: 3, got: 5 };
        assert_eq!(restore(&Stored::<f64>::mark(&Plain)), Err(numbers));
    }
}
