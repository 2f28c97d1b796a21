//! The byte form of a key, specified once per type.

/// A key with a specified form: the same bytes on every platform, in every version, for ever.
///
/// | type | form |
/// |---|---|
/// | `[u8]`, `Vec<u8>`, `[u8; N]` | the bytes, without length or terminator |
/// | `str`, `String` | the bytes of its UTF-8 |
/// | `u8` to `u64`, `usize` | the value, zero-extended to 64 bits |
/// | `i8` to `i64`, `isize` | the value, sign-extended to 64 bits |
/// | `bool`, `char` | 0 or 1; the scalar value; as 64-bit integers |
/// | `u128`, `i128` | 16 bytes, little-endian two's complement |
/// | `&K` | the form of `K` |
///
/// There is none for tuples and structs, on purpose: `("ab", "c")` and `("a", "bc")` are the same
/// bytes until somebody decides where one ends. Build the bytes yourself, or use
/// [`Std`](super::Std) for a filter that lives in memory only.
pub trait Key {
    /// Which form all keys of this type have.
    const KIND: Kind;

    /// The form of this key.
    fn form(&self) -> Form<'_>;
}

/// What a [`Key`] hands to a hasher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form<'a> {
    /// An integer of at most 64 bits. Hashes of bytes see its eight bytes, little-endian.
    Word(u64),
    /// An integer of 128 bits, as little-endian bytes.
    Wide([u8; 16]),
    /// A string of bytes.
    Bytes(&'a [u8]),
}

/// Which [`Form`] keys have. A saved filter says so, and is not opened with keys of another kind.
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
}

impl Kind {
    /// Its number in a header, which is never given to another one.
    pub(crate) const fn number(self) -> u16 {
        match self {
            Self::Words => 1,
            Self::Wide => 2,
            Self::Bytes => 3,
            Self::Plain4 => 4,
            Self::Plain8 => 5,
        }
    }

    /// The one with this number.
    #[cfg(feature = "alloc")]
    pub(crate) fn of_number(number: u16) -> Option<Self> {
        let all = [Self::Words, Self::Wide, Self::Bytes, Self::Plain4, Self::Plain8];
        all.into_iter().find(|kind| kind.number() == number)
    }
}

impl Form<'_> {
    /// Calls `hash` with the bytes of this form.
    #[inline]
    pub fn with_bytes<R>(&self, hash: impl FnOnce(&[u8]) -> R) -> R {
        // One call, so that a large hash is inlined once or not at all.
        let word;
        hash(match self {
            Form::Word(value) => {
                word = value.to_le_bytes();
                &word
            }
            Form::Wide(bytes) => bytes,
            Form::Bytes(bytes) => bytes,
        })
    }
}

impl Key for [u8] {
    const KIND: Kind = Kind::Bytes;

    #[inline]
    fn form(&self) -> Form<'_> {
        Form::Bytes(self)
    }
}

impl<const N: usize> Key for [u8; N] {
    const KIND: Kind = Kind::Bytes;

    #[inline]
    fn form(&self) -> Form<'_> {
        Form::Bytes(self)
    }
}

impl Key for str {
    const KIND: Kind = Kind::Bytes;

    #[inline]
    fn form(&self) -> Form<'_> {
        Form::Bytes(self.as_bytes())
    }
}

#[cfg(feature = "alloc")]
impl Key for alloc::vec::Vec<u8> {
    const KIND: Kind = Kind::Bytes;

    #[inline]
    fn form(&self) -> Form<'_> {
        Form::Bytes(self)
    }
}

#[cfg(feature = "alloc")]
impl Key for alloc::string::String {
    const KIND: Kind = Kind::Bytes;

    #[inline]
    fn form(&self) -> Form<'_> {
        Form::Bytes(self.as_bytes())
    }
}

impl<K: Key + ?Sized> Key for &K {
    const KIND: Kind = K::KIND;

    #[inline]
    fn form(&self) -> Form<'_> {
        (**self).form()
    }
}

macro_rules! words {
    ($($integer:ty as $wide:ty),*) => {$(
        impl Key for $integer {
            const KIND: Kind = Kind::Words;

            #[inline]
            fn form(&self) -> Form<'_> {
                Form::Word(*self as $wide as u64)
            }
        }
    )*};
}

words!(u8 as u64, u16 as u64, u32 as u64, u64 as u64, usize as u64, bool as u64, char as u64);
words!(i8 as i64, i16 as i64, i32 as i64, i64 as i64, isize as i64);

impl Key for u128 {
    const KIND: Kind = Kind::Wide;

    #[inline]
    fn form(&self) -> Form<'_> {
        Form::Wide(self.to_le_bytes())
    }
}

impl Key for i128 {
    const KIND: Kind = Kind::Wide;

    #[inline]
    fn form(&self) -> Form<'_> {
        Form::Wide(self.to_le_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_extended_to_64_bits() {
        assert_eq!(200_u8.form(), Form::Word(200));
        assert_eq!((-1_i8).form(), Form::Word(u64::MAX));
        assert_eq!((-2_i64).form(), Form::Word(u64::MAX - 1));
        assert_eq!(7_usize.form(), 7_u64.form());
        assert_eq!('é'.form(), Form::Word(0xe9));
        assert_eq!(true.form(), Form::Word(1));
        assert_eq!(1_u32.form().with_bytes(<[u8]>::len), 8);
    }

    #[test]
    fn owned_and_borrowed_keys_have_one_form() {
        assert_eq!("naïve".form(), "naïve".as_bytes().form());
        assert_eq!([1_u8, 2, 3].form(), [1_u8, 2, 3][..].form());
        assert_eq!((&"x").form(), "x".form());
        #[cfg(feature = "alloc")]
        {
            assert_eq!(alloc::string::String::from("naïve").form(), "naïve".form());
            assert_eq!(alloc::vec![1_u8, 2].form(), [1_u8, 2].form());
        }
    }

    #[test]
    fn wide_integers_are_sixteen_little_endian_bytes() {
        let one = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(1_u128.form(), Form::Wide(one));
        assert_eq!((-1_i128).form(), Form::Wide([255; 16]));
    }
}
