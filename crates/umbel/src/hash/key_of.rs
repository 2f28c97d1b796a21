//! The types that stand for a key in a batch.

#[cfg(feature = "alloc")]
use alloc::{
    borrow::Cow, borrow::ToOwned, boxed::Box, rc::Rc, string::String, sync::Arc, vec::Vec,
};

/// A value that stands for a key of type `T` in batches, `extend` and builds.
///
/// | keys `T` | what stands for one |
/// |---|---|
/// | any | `T`, `&T`, `&&T`, `Box<T>`, `Rc<T>`, `Arc<T>`, `Cow<T>` |
/// | `str` | `String`, `&String` as well |
/// | `String` | `str`, `&str`, `&&str` as well |
/// | `[u8]` | `[u8; N]`, `&[u8; N]`, `Vec<u8>`, `&Vec<u8>` as well |
/// | `Vec<u8>` | `[u8]`, `&[u8]`, `[u8; N]`, `&[u8; N]` as well |
///
/// ```
/// use umbel::BloomFilter;
///
/// let mut seen = BloomFilter::<str>::new(1_000, 0.01);
/// seen.extend(["a", "b"]);
/// seen.extend(vec![String::from("c")]);
/// assert_eq!(seen.contains_many(&[String::from("a"), String::from("c")]), [true, true]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand for a key of type `{T}`",
    note = "a filter of `T` takes `T`, `&T`, `Box<T>`, `Rc<T>`, `Arc<T>` and `Cow<T>`; one of `str` takes `String` too, one of `[u8]` takes arrays and `Vec<u8>`"
)]
pub trait KeyOf<T: ?Sized> {
    /// The type that is hashed: `T`, or a form of it with the same digest, as `str` is for
    /// `String`.
    type Key: ?Sized;

    /// The key.
    fn key(&self) -> &Self::Key;
}

impl<T: ?Sized> KeyOf<T> for T {
    type Key = T;

    #[inline(always)]
    fn key(&self) -> &T {
        self
    }
}

/// Implements `KeyOf` for pointers to a key.
macro_rules! derefs {
    ($([$($generics:tt)*] $stand:ty: $of:ty as $key:ty;)*) => {$(
        impl<$($generics)*> KeyOf<$of> for $stand {
            type Key = $key;

            #[inline(always)]
            fn key(&self) -> &$key {
                self
            }
        }
    )*};
}

derefs! {
    [T: ?Sized] &T: T as T;
    [T: ?Sized] &&T: T as T;
    [const N: usize] [u8; N]: [u8] as [u8];
}

impl<const N: usize> KeyOf<[u8]> for &[u8; N] {
    type Key = [u8];

    #[inline(always)]
    fn key(&self) -> &[u8] {
        *self
    }
}

#[cfg(feature = "alloc")]
derefs! {
    [T: ?Sized] Box<T>: T as T;
    [T: ?Sized] Rc<T>: T as T;
    [T: ?Sized] Arc<T>: T as T;
    [T: ?Sized + ToOwned] Cow<'_, T>: T as T;
    [] String: str as str;
    [] &String: str as str;
    [] str: String as str;
    [] &str: String as str;
    [] &&str: String as str;
    [] Vec<u8>: [u8] as [u8];
    [] &Vec<u8>: [u8] as [u8];
    [] [u8]: Vec<u8> as [u8];
    [] &[u8]: Vec<u8> as [u8];
    [const N: usize] [u8; N]: Vec<u8> as [u8];
}

#[cfg(feature = "alloc")]
impl<const N: usize> KeyOf<Vec<u8>> for &[u8; N] {
    type Key = [u8];

    #[inline(always)]
    fn key(&self) -> &[u8] {
        *self
    }
}
