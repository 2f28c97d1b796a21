//! Filters as subjects of the law.

use crate::independent::ManyHashes;
use std::hash::{BuildHasherDefault, Hasher};
use umbel::bloom::{Bloom, Shape};
use umbel::format::Restored;
use umbel::hash::{City64, Digester, Farm64, Murmur3, Xxh3, Xxh64};
use umbel::kernels::{Digits, Kernels};
use umbel::split;
use umbel::storage::Heap;
use umbel::{ArrayBloomFilter, AtomicBloomFilter, BloomFilter, Keyed, Portable, Std, words_for};
use umbel::{AtomicSplitBlockBloomFilter, SplitBlockBloomFilter};
use umbel_laws::{Saves, Subject, Unites};

pub(crate) const ARRAY_ITEMS: u64 = 1_000;
pub(crate) const ARRAY_RATE: f64 = 0.01;
pub(crate) const WORDS: usize = words_for(ARRAY_ITEMS, ARRAY_RATE);

/// A filter of integers in memory of its own.
pub(crate) struct Plain<H = Portable, K: Kernels = Digits>(Bloom<u64, H, Heap, K>);

impl<H, K> Plain<H, K>
where
    H: Seeded + Digester<u64, K::Digest>,
    K: Kernels + Default,
{
    fn made(capacity: u64, err_rate: f64, seed: u64) -> Self {
        let shape = Shape::for_rate(capacity, err_rate).unwrap();
        Self(Bloom::with_kernels(shape, H::seeded(seed), K::default()).unwrap())
    }
}

/// A filter of strings with a common prefix.
pub(crate) struct Strings(BloomFilter<str>);

impl Strings {
    fn made(capacity: u64, err_rate: f64, seed: u64) -> Self {
        Self(BloomFilter::with_hasher(capacity, err_rate, Portable::seeded(seed)))
    }
}

fn address(key: u64) -> String {
    format!("https://example.org/a/rather/long/common/prefix/{key}")
}

/// A filter of integers in an array.
pub(crate) struct Array(ArrayBloomFilter<u64, WORDS>);

impl Array {
    fn made(capacity: u64, err_rate: f64, seed: u64) -> Self {
        let hasher = Portable::seeded(seed);
        Self(ArrayBloomFilter::try_with_hasher(capacity, err_rate, hasher).unwrap())
    }
}

/// A filter of integers for many threads.
pub(crate) struct Atomic(AtomicBloomFilter<u64>);

impl Atomic {
    fn made(capacity: u64, err_rate: f64, seed: u64) -> Self {
        Self(AtomicBloomFilter::with_hasher(capacity, err_rate, Portable::seeded(seed)))
    }
}

/// A split-block filter of integers.
pub(crate) struct Split<H = split::Plain>(SplitBlockBloomFilter<u64, H>);

impl<H: Seeded> Split<H> {
    fn made(capacity: u64, err_rate: f64, seed: u64) -> Self {
        Self(SplitBlockBloomFilter::with_hasher(capacity, err_rate, H::seeded(seed)))
    }
}

/// A split-block filter of integers for many threads.
pub(crate) struct AtomicSplit<H = split::Plain>(AtomicSplitBlockBloomFilter<u64, H>);

impl<H: Seeded> AtomicSplit<H> {
    fn made(capacity: u64, err_rate: f64, seed: u64) -> Self {
        Self(AtomicSplitBlockBloomFilter::with_hasher(capacity, err_rate, H::seeded(seed)))
    }
}

/// What all wrappers have in common; `$argument` is what the filter's methods take.
macro_rules! subject {
    ($subject:ty, [$($generics:tt)*], $key:ident => $argument:expr) => {
        impl<$($generics)*> Subject for $subject {
            fn make(capacity: u64, err_rate: f64, seed: u64) -> Self {
                Self::made(capacity, err_rate, seed)
            }
            fn insert(&mut self, $key: u64) -> bool {
                self.0.insert($argument)
            }
            fn contains(&self, $key: u64) -> bool {
                self.0.contains($argument)
            }
            fn rate_now(&self) -> f64 {
                self.0.expected_rate()
            }
        }
        impl<$($generics)*> Unites for $subject {
            fn unite(&mut self, other: &Self) -> Result<(), String> {
                self.0.union_with(&other.0).map_err(|error| error.to_string())
            }
            fn same(&self, other: &Self) -> bool {
                self.0 == other.0
            }
        }
    };
}

subject!(Plain<H, K>, [H: Seeded + Digester<u64, K::Digest>, K: Kernels + Default], key => &key);
subject!(Strings, [], key => address(key).as_str());
subject!(Array, [], key => &key);
subject!(Atomic, [], key => &key);
subject!(Split<H>, [H: Seeded + Digester<u64>], key => &key);
subject!(AtomicSplit<H>, [H: Seeded + Digester<u64>], key => &key);

impl Saves for Plain {
    fn save(&self) -> Vec<u8> {
        self.0.to_bytes()
    }
    fn load(bytes: &[u8]) -> Result<Self, String> {
        Bloom::from_bytes(bytes).map(Self).map_err(|error| error.to_string())
    }
}

impl Saves for Strings {
    fn save(&self) -> Vec<u8> {
        self.0.to_bytes()
    }
    fn load(bytes: &[u8]) -> Result<Self, String> {
        BloomFilter::from_bytes(bytes).map(Self).map_err(|error| error.to_string())
    }
}

impl Saves for Array {
    fn save(&self) -> Vec<u8> {
        self.0.to_bytes()
    }
    fn load(bytes: &[u8]) -> Result<Self, String> {
        ArrayBloomFilter::from_bytes(bytes).map(Self).map_err(|error| error.to_string())
    }
}

impl Saves for Atomic {
    fn save(&self) -> Vec<u8> {
        self.0.snapshot().to_bytes()
    }
    fn load(bytes: &[u8]) -> Result<Self, String> {
        BloomFilter::from_bytes(bytes)
            .map(|plain: BloomFilter<u64>| Self(plain.into()))
            .map_err(|error| error.to_string())
    }
}

impl<H: Seeded + Digester<u64> + Restored> Saves for Split<H> {
    fn save(&self) -> Vec<u8> {
        self.0.to_bytes()
    }
    fn load(bytes: &[u8]) -> Result<Self, String> {
        SplitBlockBloomFilter::from_bytes(bytes).map(Self).map_err(|error| error.to_string())
    }
}

impl<H: Seeded + Digester<u64> + Restored> Saves for AtomicSplit<H> {
    fn save(&self) -> Vec<u8> {
        self.0.to_bytes()
    }
    fn load(bytes: &[u8]) -> Result<Self, String> {
        AtomicSplitBlockBloomFilter::from_bytes(bytes).map(Self).map_err(|error| error.to_string())
    }
}

/// A hasher that can be made from a number.
pub(crate) trait Seeded {
    fn seeded(seed: u64) -> Self;
}

macro_rules! seeded {
    ($($hasher:ty = $make:expr),* $(,)?) => {$(
        impl Seeded for $hasher {
            fn seeded(seed: u64) -> Self {
                $make(seed)
            }
        }
    )*};
}

seeded! {
    Portable = Portable::seeded,
    Keyed = |seed: u64| Keyed::new(u128::from(seed).to_le_bytes()),
    Murmur3 = |seed| Murmur3::seeded(seed as u32),
    Xxh64 = Xxh64::seeded,
    Xxh3 = Xxh3::seeded,
    City64 = City64::seeded,
    Farm64 = |_| Farm64,
    Std<BuildHasherDefault<Identity>> = |_| Std::default(),
    ManyHashes = ManyHashes::seeded,
    split::Plain = |_| split::Plain,
}

#[cfg(feature = "crc64")]
seeded!(umbel::hash::Crc64 = |_| umbel::hash::Crc64);

/// The weakest hasher there is.
#[derive(Default)]
pub(crate) struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0 << 8 | u64::from(byte);
        }
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }
}
