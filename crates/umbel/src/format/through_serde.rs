//! Serde support, which uses the bytes and all their checks.

use super::Saved;
use crate::storage::Allocate;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde::ser::Serializer;

/// A filter as its bytes.
pub(crate) fn serialize<F: Saved, Z: Serializer>(filter: &F, to: Z) -> Result<Z::Ok, Z::Error> {
    to.serialize_bytes(&filter.to_bytes())
}

/// The filter with these bytes.
pub(crate) fn deserialize<'de, F, D>(from: D) -> Result<F, D::Error>
where
    F: Saved,
    F::Storage: Allocate,
    D: Deserializer<'de>,
{
    from.deserialize_bytes(Bytes(PhantomData))
}

struct Bytes<F>(PhantomData<F>);

impl<'de, F: Saved> Visitor<'de> for Bytes<F>
where
    F::Storage: Allocate,
{
    type Value = F;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a filter")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<F, E> {
        F::from_bytes(bytes).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<F, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = seq.next_element()? {
            bytes.push(byte);
        }
        F::from_bytes(&bytes).map_err(A::Error::custom)
    }
}

/// Implements serde's traits for a filter, for all parameters with which it can be saved.
macro_rules! through_serde {
    ([$($generics:tt)*] $filter:ty) => {
        impl<$($generics)*> serde::Serialize for $filter
        where
            $filter: $crate::format::Family,
        {
            fn serialize<Z: serde::Serializer>(&self, to: Z) -> Result<Z::Ok, Z::Error> {
                $crate::format::serialize(self, to)
            }
        }

        impl<'de, $($generics)*> serde::Deserialize<'de> for $filter
        where
            $filter: $crate::format::Family<Storage: $crate::storage::Allocate>,
        {
            fn deserialize<Z: serde::Deserializer<'de>>(from: Z) -> Result<Self, Z::Error> {
                $crate::format::deserialize(from)
            }
        }
    };
}
pub(crate) use through_serde;
