//! Keys of several parts: tuples, options and addresses of either kind.
//!
//! Every part starts with a byte for its kind, and with its length if the kind does not determine
//! it. A reader therefore knows where each part ends, whatever follows. Two keys of different
//! shapes or values never have the same bytes.

use super::key::{Form, Key, Kind};
use core::net::IpAddr;

#[cfg(feature = "alloc")]
use alloc::vec::Vec;
#[cfg(feature = "alloc")]
use core::net::SocketAddr;

/// The first byte of a part.
const WORD: u8 = 1;
const WIDE: u8 = 2;
#[cfg(feature = "alloc")]
const BYTES: u8 = 3;
#[cfg(feature = "alloc")]
const TUPLE: u8 = 4;
#[cfg(feature = "alloc")]
const NONE: u8 = 5;
#[cfg(feature = "alloc")]
const SOME: u8 = 6;

/// Collects bytes, without the allocator while they are few.
#[cfg(feature = "alloc")]
struct KeyParts {
    few: [u8; 128],
    len: usize,
    many: Vec<u8>,
}

#[cfg(feature = "alloc")]
impl KeyParts {
    const fn new() -> Self {
        Self { few: [0; 128], len: 0, many: Vec::new() }
    }

    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        if self.many.is_empty()
            && let Some(room) = self.few[self.len..].get_mut(..bytes.len())
        {
            room.copy_from_slice(bytes);
            self.len += bytes.len();
            return;
        }
        if self.many.is_empty() {
            self.many.extend_from_slice(&self.few[..self.len]);
        }
        self.many.extend_from_slice(bytes);
    }

    #[inline]
    fn part<K: Key + ?Sized>(&mut self, key: &K) {
        key.with_form(|form| match form {
            Form::Word(word) => {
                self.push(&[WORD]);
                self.push(&word.to_le_bytes());
            }
            Form::Wide(bytes) => {
                self.push(&[WIDE]);
                self.push(&bytes);
            }
            Form::Bytes(bytes) => {
                self.push(&[BYTES]);
                self.push(&(bytes.len() as u64).to_le_bytes());
                self.push(bytes);
            }
            Form::Parts(parts) => self.push(parts),
        });
    }

    #[inline]
    fn hashed<R>(&self, hash: impl FnOnce(Form<'_>) -> R) -> R {
        hash(Form::Parts(if self.many.is_empty() { &self.few[..self.len] } else { &self.many }))
    }
}

#[cfg(feature = "alloc")]
impl<K: Key> Key for Option<K> {
    const KIND: Kind = Kind::Parts;

    #[inline]
    fn with_form<R>(&self, hash: impl FnOnce(Form<'_>) -> R) -> R {
        let Some(key) = self else { return hash(Form::Parts(&[NONE])) };
        let mut parts = KeyParts::new();
        parts.push(&[SOME]);
        parts.part(key);
        parts.hashed(hash)
    }
}

/// An address of version 4 is a word, one of version 6 a wide integer.
impl Key for IpAddr {
    const KIND: Kind = Kind::Parts;

    #[inline]
    fn with_form<R>(&self, hash: impl FnOnce(Form<'_>) -> R) -> R {
        let (mut parts, len) = ([0; 17], if self.is_ipv4() { 9 } else { 17 });
        match self {
            Self::V4(address) => {
                parts[0] = WORD;
                parts[1..9].copy_from_slice(&u64::from(address.to_bits()).to_le_bytes());
            }
            Self::V6(address) => {
                parts[0] = WIDE;
                parts[1..].copy_from_slice(&address.to_bits().to_le_bytes());
            }
        }
        hash(Form::Parts(&parts[..len]))
    }
}

/// A tuple of address and port. For version 6, a tuple of address, port, flow information and
/// scope.
#[cfg(feature = "alloc")]
impl Key for SocketAddr {
    const KIND: Kind = Kind::Parts;

    #[inline]
    fn with_form<R>(&self, hash: impl FnOnce(Form<'_>) -> R) -> R {
        match self {
            Self::V4(v4) => (*v4.ip(), v4.port()).with_form(hash),
            Self::V6(v6) => (*v6.ip(), v6.port(), v6.flowinfo(), v6.scope_id()).with_form(hash),
        }
    }
}

#[cfg(feature = "alloc")]
macro_rules! tuples {
    ($($len:literal: $($key:ident $at:tt)*;)*) => {$(
        impl<$($key: Key),*> Key for ($($key,)*) {
            const KIND: Kind = Kind::Parts;

            #[inline]
            fn with_form<R>(&self, hash: impl FnOnce(Form<'_>) -> R) -> R {
                let mut parts = KeyParts::new();
                parts.push(&[TUPLE, $len]);
                $(parts.part(&self.$at);)*
                parts.hashed(hash)
            }
        }
    )*};
}

#[cfg(feature = "alloc")]
tuples! {
    2: A 0 B 1;
    3: A 0 B 1 C 2;
    4: A 0 B 1 C 2 D 3;
    5: A 0 B 1 C 2 D 3 E 4;
    6: A 0 B 1 C 2 D 3 E 4 F 5;
    7: A 0 B 1 C 2 D 3 E 4 F 5 G 6;
    8: A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7;
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::string::String;
    use std::vec;

    fn bytes<K: Key + ?Sized>(key: &K) -> Vec<u8> {
        key.with_form(|form| form.with_bytes(<[u8]>::to_vec))
    }

    #[test]
    fn parts_tell_their_kind_and_length() {
        assert_eq!(
            bytes(&(1_u32, "ab")),
            [&[4, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 3, 2, 0, 0, 0, 0, 0, 0, 0][..], b"ab"].concat()
        );
        assert_eq!(bytes(&None::<u8>), [5]);
        assert_eq!(bytes(&Some(7_u8)), [6, 1, 7, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(&IpAddr::from([192, 0, 2, 1])), [1, 1, 2, 0, 192, 0, 0, 0, 0]);
        assert_eq!(bytes(&IpAddr::from([0_u16, 0, 0, 0, 0, 0, 0, 1]))[..2], [2, 1]);
    }

    #[test]
    fn owned_and_borrowed_parts_have_one_form() {
        assert_eq!(bytes(&(7_u64, String::from("x"))), bytes(&(7_i8, "x")));
        assert_eq!(bytes(&(b"x", vec![1_u8])), bytes(&("x", &[1_u8][..])));
    }

    #[test]
    fn long_parts_are_whole() {
        for len in [100, 108, 109, 110, 127, 128, 129, 1_000] {
            let text = "x".repeat(len);
            let all = bytes(&(text.as_str(), 1_u8));
            assert_eq!(all.len(), 2 + 9 + len + 9, "{len}");
            assert_eq!(all[11..11 + len], *text.as_bytes());
        }
    }

    #[test]
    fn keys_of_different_shapes_or_values_never_have_the_same_bytes() {
        let v4 = SocketAddr::from(([192, 0, 2, 1], 80));
        let v6 = SocketAddr::from(([0, 0, 0, 0, 0, 0xffff, 0xc000, 0x0201], 80));
        let all = [
            bytes(&("ab", "c")),
            bytes(&("a", "bc")),
            bytes(&("", "abc")),
            bytes(&("abc", "")),
            bytes(&("a", "b", "c")),
            bytes(&(("a", "b"), "c")),
            bytes(&("a", ("b", "c"))),
            bytes(&(0_u64, 1_u64)),
            bytes(&(1_u64, 0_u64)),
            bytes(&(0_u128, 1_u64)),
            bytes(&(0_u64, 1_u128)),
            bytes(&(0_u64, [0_u8; 8])),
            bytes(&(0_u64, None::<u64>)),
            bytes(&(0_u64, Some(0_u64))),
            bytes(&(Some(0_u64), 0_u64)),
            bytes(&Some(None::<u64>)),
            bytes(&None::<Option<u64>>),
            bytes(&Some(Some(0_u64))),
            bytes(&Some(0_u64)),
            bytes(&v4),
            bytes(&v6),
            bytes(&v4.ip()),
            bytes(&v6.ip()),
            bytes(&(v4.ip(), v6.ip())),
            bytes(&(v6.ip(), v4.ip())),
        ];
        let mut seen = HashMap::new();
        for (number, key) in all.into_iter().enumerate() {
            if let Some(other) = seen.insert(key, number) {
                panic!("keys {other} and {number} have the same bytes");
            }
        }
    }
}
