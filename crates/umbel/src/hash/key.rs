//! The byte form of a key, specified once per type.

use core::net::{Ipv4Addr, Ipv6Addr};
use core::num::NonZero;

#[cfg(feature = "alloc")]
use alloc::{boxed::Box, string::String, vec::Vec};

/// A key with a specified byte form: the same on every platform and in every version.
///
/// | type | form |
/// |---|---|
/// | `[u8]`, `Vec<u8>`, `[u8; N]`, `Uuid` (feature `uuid`) | the bytes, without length or terminator |
/// | `str`, `String` | the bytes of its UTF-8 |
/// | `u8` to `u64`, `usize` | the value, zero-extended to 64 bits |
/// | `i8` to `i64`, `isize` | the value, sign-extended to 64 bits |
/// | `bool`, `char`, `Ipv4Addr` | 0 or 1; the scalar value; the address as a `u32`; as 64-bit integers |
/// | `u128`, `i128`, `Ipv6Addr` | 16 bytes, little-endian two's complement |
/// | `NonZero<N>` | the form of `N` |
/// | `&K`, `Box<K>` | the form of `K` |
/// | tuples of 2 to 8 keys, `Option<K>`, `IpAddr`, `SocketAddr` | its parts, each with its kind and length |
///
/// Parts are marked so that no two keys of different shapes have the same bytes: `("ab", "c")` and
/// `("a", "bc")` are two keys, and so are `None` and `Some(0)`. `docs/hashing.md` has the
/// definition.
///
/// Floats are not keys, since 0.0 and -0.0 are equal and NaN is not equal to itself: use
/// `to_bits()`. For your own types, implement this trait with a tuple of their fields:
///
/// ```
/// use umbel::BloomFilter;
/// use umbel::hash::{Form, Key, Kind};
///
/// struct Login {
///     user: String,
///     port: u16,
/// }
///
/// impl Key for Login {
///     const KIND: Kind = <(&str, u16) as Key>::KIND;
///
///     fn with_form<R>(&self, hash: impl FnOnce(Form<'_>) -> R) -> R {
///         (self.user.as_str(), self.port).with_form(hash)
///     }
/// }
///
/// let mut seen = BloomFilter::new(1_000, 0.01);
/// let ada = Login { user: "ada".into(), port: 22 };
/// assert!(seen.insert(&ada) && seen.contains(&ada));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no specified form as a key of a filter",
    label = "not a `Key`",
    note = "for a float, insert its `to_bits()`",
    note = "for a type of your own, implement `umbel::Key`, or take the hasher `Std`, which hashes anything with `Hash` for filters that stay in memory"
)]
pub trait Key {
    /// The form that all keys of this type have.
    const KIND: Kind;

    /// Calls `hash` with the form of this key.
    fn with_form<R>(&self, hash: impl FnOnce(Form<'_>) -> R) -> R;

    /// The word of a key that consists of one word. Separate from `with_form`, so that the code for
    /// byte strings is not compiled into the code for words, which would then be too large to
    /// inline.
    #[doc(hidden)]
    #[inline(always)]
    fn word(&self) -> Option<u64> {
        if !matches!(Self::KIND, Kind::Words) {
            return None;
        }
        self.with_form(|form| match form {
            Form::Word(word) => Some(word),
            _ => None,
        })
    }

    /// Calls `hash` with the bytes of the form of this key.
    #[doc(hidden)]
    #[inline]
    fn with_bytes<R>(&self, hash: impl FnOnce(&[u8]) -> R) -> R {
        self.with_form(|form| form.with_bytes(hash))
    }
}

/// The form of a [`Key`] that a hasher gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form<'a> {
    /// An integer of at most 64 bits. Byte hashes see its eight bytes, little-endian.
    Word(u64),
    /// An integer of 128 bits, as little-endian bytes.
    Wide([u8; 16]),
    /// A string of bytes.
    Bytes(&'a [u8]),
    /// Several keys in one, as bytes in which every part starts with its kind and length.
    Parts(&'a [u8]),
}

/// The [`Form`] of all keys of a filter. A saved filter stores it and cannot be opened with keys of
/// another kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// [`Form::Word`].
    Words,
    /// [`Form::Wide`].
    Wide,
    /// [`Form::Bytes`].
    Bytes,
    /// Numbers of four bytes, in Parquet's PLAIN encoding.
    Plain4,
    /// Numbers of eight bytes, in Parquet's PLAIN encoding.
    Plain8,
    /// [`Form::Parts`].
    Parts,
    /// Bytes that the command `umbel` made of several fields of a record: the netstring of each field.
    Fields,
}

impl Kind {
    /// The number of the kind in a header. It is never reused for another kind.
    pub(crate) const fn number(self) -> u16 {
        match self {
            Self::Words => 1,
            Self::Wide => 2,
            Self::Bytes => 3,
            Self::Plain4 => 4,
            Self::Plain8 => 5,
            Self::Parts => 6,
            Self::Fields => 7,
        }
    }

    /// The kind with this number.
    #[cfg(feature = "alloc")]
    pub(crate) fn of_number(number: u16) -> Option<Self> {
        let integers = [Self::Words, Self::Wide, Self::Plain4, Self::Plain8];
        let strings = [Self::Bytes, Self::Parts, Self::Fields];
        integers.into_iter().chain(strings).find(|kind| kind.number() == number)
    }
}

impl Form<'_> {
    /// Calls `hash` with the bytes of this form.
    #[inline]
    pub fn with_bytes<R>(&self, hash: impl FnOnce(&[u8]) -> R) -> R {
        // A single call, so that a large hash is inlined once or not at all.
        let word;
        hash(match self {
            Form::Word(value) => {
                word = value.to_le_bytes();
                &word
            }
            Form::Wide(bytes) => bytes,
            Form::Bytes(bytes) | Form::Parts(bytes) => bytes,
        })
    }
}

/// Implements [`Key`] for types that each have one form.
macro_rules! forms {
    ($([$($generics:tt)*] $key:ty: $kind:ident($self:ident => $form:expr);)*) => {$(
        impl<$($generics)*> Key for $key {
            const KIND: Kind = Kind::$kind;

            #[inline]
            fn with_form<R>(&$self, hash: impl FnOnce(Form<'_>) -> R) -> R {
                hash($form)
            }

            #[inline]
            fn with_bytes<R>(&$self, hash: impl FnOnce(&[u8]) -> R) -> R {
                $form.with_bytes(hash)
            }
        }
    )*};
}

forms! {
    [] [u8]: Bytes(self => Form::Bytes(self));
    [const N: usize] [u8; N]: Bytes(self => Form::Bytes(self));
    [] str: Bytes(self => Form::Bytes(self.as_bytes()));
    [] u8: Words(self => Form::Word((*self).into()));
    [] u16: Words(self => Form::Word((*self).into()));
    [] u32: Words(self => Form::Word((*self).into()));
    [] u64: Words(self => Form::Word(*self));
    [] usize: Words(self => Form::Word(*self as u64));
    [] i8: Words(self => Form::Word(i64::from(*self) as u64));
    [] i16: Words(self => Form::Word(i64::from(*self) as u64));
    [] i32: Words(self => Form::Word(i64::from(*self) as u64));
    [] i64: Words(self => Form::Word(*self as u64));
    [] isize: Words(self => Form::Word(*self as i64 as u64));
    [] bool: Words(self => Form::Word((*self).into()));
    [] char: Words(self => Form::Word((*self).into()));
    [] Ipv4Addr: Words(self => Form::Word(self.to_bits().into()));
    [] u128: Wide(self => Form::Wide(self.to_le_bytes()));
    [] i128: Wide(self => Form::Wide(self.to_le_bytes()));
    [] Ipv6Addr: Wide(self => Form::Wide(self.to_bits().to_le_bytes()));
}

#[cfg(feature = "alloc")]
forms! {
    [] Vec<u8>: Bytes(self => Form::Bytes(self));
    [] String: Bytes(self => Form::Bytes(self.as_bytes()));
}

#[cfg(feature = "uuid")]
forms! {
    [] uuid::Uuid: Bytes(self => Form::Bytes(self.as_bytes()));
}

/// Implements [`Key`] for types that have the form of another type.
macro_rules! same_form {
    ($([$($generics:tt)*] $key:ty as $other:ty: $self:ident => $value:expr;)*) => {$(
        impl<$($generics)*> Key for $key {
            const KIND: Kind = <$other>::KIND;

            #[inline]
            fn with_form<R>(&$self, hash: impl FnOnce(Form<'_>) -> R) -> R {
                Key::with_form($value, hash)
            }

            #[inline]
            fn with_bytes<R>(&$self, hash: impl FnOnce(&[u8]) -> R) -> R {
                Key::with_bytes($value, hash)
            }
        }
    )*};
}

same_form! {
    [K: Key + ?Sized] &K as K: self => *self;
    [] NonZero<u8> as u8: self => &self.get();
    [] NonZero<u16> as u16: self => &self.get();
    [] NonZero<u32> as u32: self => &self.get();
    [] NonZero<u64> as u64: self => &self.get();
    [] NonZero<u128> as u128: self => &self.get();
    [] NonZero<usize> as usize: self => &self.get();
    [] NonZero<i8> as i8: self => &self.get();
    [] NonZero<i16> as i16: self => &self.get();
    [] NonZero<i32> as i32: self => &self.get();
    [] NonZero<i64> as i64: self => &self.get();
    [] NonZero<i128> as i128: self => &self.get();
    [] NonZero<isize> as isize: self => &self.get();
}

#[cfg(feature = "alloc")]
same_form! {
    [K: Key + ?Sized] Box<K> as K: self => &**self;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether two keys have one form.
    fn same<A: Key + ?Sized, B: Key + ?Sized>(one: &A, other: &B) -> bool {
        one.with_form(|one| other.with_form(|other| one == other))
    }

    fn is_word<K: Key>(key: K, word: u64) -> bool {
        key.with_form(|form| form == Form::Word(word))
    }

    #[test]
    fn integers_are_extended_to_64_bits() {
        assert!(is_word(200_u8, 200) && is_word(-1_i8, u64::MAX));
        assert!(
            is_word(-2_i64, u64::MAX - 1) && is_word(7_usize, 7) && is_word(-1_isize, u64::MAX)
        );
        assert!(is_word('é', 0xe9) && is_word(true, 1));
        assert_eq!(1_u32.with_form(|form| form.with_bytes(<[u8]>::len)), 8);
        assert!(is_word(NonZero::new(-3_i16).unwrap(), (-3_i64) as u64));
    }

    #[test]
    fn owned_and_borrowed_keys_have_one_form() {
        assert!(same("naïve", "naïve".as_bytes()) && same(&[1_u8, 2, 3], &[1_u8, 2, 3][..]));
        assert!(same(&"x", "x"));
        #[cfg(feature = "alloc")]
        {
            assert!(same(&String::from("naïve"), "naïve") && same(&Vec::from([1, 2]), &[1_u8, 2]));
            assert!(same(&Box::<str>::from("naïve"), "naïve"));
        }
    }

    #[test]
    fn wide_integers_are_sixteen_little_endian_bytes() {
        let one = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert!(1_u128.with_form(|form| form == Form::Wide(one)));
        assert!((-1_i128).with_form(|form| form == Form::Wide([255; 16])));
    }

    #[test]
    fn addresses_are_the_numbers_that_they_stand_for() {
        assert!(is_word(Ipv4Addr::new(192, 0, 2, 1), 0xc000_0201));
        assert!(same(&Ipv6Addr::LOCALHOST, &1_u128));
    }
}
