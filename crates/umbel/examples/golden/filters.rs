//! One filter of each family, hash and kind of keys: what the golden files hold, and what tests of
//! bytes begin with.

use std::borrow::Borrow;
use std::fmt::Debug;
use std::ops::Range;
use std::time::Duration;
use umbel::format::{Saved, Stored};
use umbel::frozen::Build;
use umbel::hash::{City64, Digester, Farm64, Murmur3, Portable, Xxh3, Xxh64};
use umbel::ribbon::Width;
use umbel::split::Plain;
use umbel::storage::Heap;
use umbel::{
    BinaryFuse4Filter, BinaryFuseFilter, BlockedBloomFilter, BlockedCountingBloomFilter,
    BloomFilter, CountingBloomFilter, CuckooFilter, Keyed, QuotientFilter, RibbonFilter, RibbonMap,
    ScalableBloomFilter, SplitBlockBloomFilter, StableBloomFilter, WindowBloomFilter, XorFilter,
};

/// The share of absent keys that are found: high, so that small filters make mistakes.
pub(crate) const RATE: f64 = 0.05;

/// Keys that have numbers.
pub(crate) trait Numbered: 'static {
    /// What a file calls the kind.
    const KEYS: &'static str;
    /// A key with memory of its own.
    type Owned: Borrow<Self>;

    /// The key with this number.
    fn numbered(number: u64) -> Self::Owned;

    /// The key as a filter of any family takes it.
    fn to_bytes(&self) -> Vec<u8>;
}

macro_rules! integers {
    ($($integer:ty = $name:literal),*) => {$(
        impl Numbered for $integer {
            const KEYS: &'static str = $name;
            type Owned = Self;

            fn numbered(number: u64) -> Self {
                // All of their bits are used.
                (number as Self).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835_u128 as Self)
            }

            fn to_bytes(&self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }
        }
    )*};
}
integers!(i32 = "i32", u64 = "u64", u128 = "u128");

impl Numbered for str {
    const KEYS: &'static str = "str";
    type Owned = String;

    fn numbered(number: u64) -> String {
        format!("key {number}")
    }

    fn to_bytes(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }
}

impl Numbered for [u8] {
    const KEYS: &'static str = "bytes";
    type Owned = Vec<u8>;

    /// From no byte to eight.
    fn numbered(number: u64) -> Vec<u8> {
        let bytes = number.to_be_bytes();
        bytes[number.leading_zeros() as usize / 8..].to_vec()
    }

    fn to_bytes(&self) -> Vec<u8> {
        self.to_vec()
    }
}

/// A hasher that golden files have, and its name.
pub(crate) trait Hashed: Copy + Debug + 'static {
    /// What a file calls it.
    const HASH: &'static str;

    /// The one.
    fn hasher() -> Self;
}

macro_rules! hashers {
    ($($hasher:ty = $name:literal, $make:expr;)*) => {$(
        impl Hashed for $hasher {
            const HASH: &'static str = $name;

            fn hasher() -> Self {
                $make
            }
        }
    )*};
}
hashers! {
    Portable = "portable", Portable::seeded(3);
    Keyed = "keyed", Keyed::new(*b"sixteen letters.").with_id(77);
    Murmur3 = "murmur3", Murmur3::seeded(4);
    Xxh64 = "xxh64", Xxh64::seeded(5);
    Xxh3 = "xxh3", Xxh3::seeded(6);
    City64 = "city64", City64::default();
    Farm64 = "farm64", Farm64::default();
    Plain = "plain", Plain;
}
#[cfg(feature = "crc64")]
hashers!(umbel::hash::Crc64 = "crc64", umbel::hash::Crc64;);

/// A family of filters.
pub(crate) trait Sort<T: ?Sized + Numbered, H>: 'static {
    /// What a file calls it.
    const NAME: &'static str;
    /// How many keys a small one has.
    const KEYS: u64 = 100;
    /// Its filters.
    type Filter: Saved<Hasher = H, Storage = Heap> + Clone + PartialEq + Debug;

    /// A filter of the keys with these numbers, with room for no others.
    fn of(numbers: Range<u64>, hasher: H) -> Self::Filter;

    /// Whether the filter finds the key with this number.
    fn has(filter: &Self::Filter, number: u64) -> bool;
}

/// Declares families: how a filter is made of a hasher and of numbers, how it is asked for a key.
macro_rules! sorts {
    ($($(#[$doc:meta])* $sort:ident($($filter:tt)*) = $name:literal,
        $(keys = $keys:literal,)? |$numbers:ident, $hasher:ident| $make:expr, |$one:ident, $number:ident, $key:ident| $has:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) enum $sort {}

        impl<T, H> Sort<T, H> for $sort
        where
            T: ?Sized + Numbered,
            H: Digester<T> + Stored<T> + Clone + Debug,
        {
            const NAME: &'static str = $name;
            $(const KEYS: u64 = $keys;)?
            type Filter = $($filter)*;

            fn of($numbers: Range<u64>, $hasher: H) -> Self::Filter {
                $make
            }

            fn has($one: &Self::Filter, $number: u64) -> bool {
                let $key = T::numbered($number);
                $has
            }
        }
    )*};
}

/// How many numbers there are.
const fn count(numbers: &Range<u64>) -> u64 {
    numbers.end - numbers.start
}

/// A filter with the keys of these numbers inserted.
macro_rules! filled {
    ($filter:ident, $numbers:ident, $hasher:ident) => {{
        let mut filter = $filter::with_hasher(count(&$numbers), RATE, $hasher);
        $numbers.for_each(|number| _ = filter.insert(T::numbered(number).borrow()));
        filter
    }};
}

/// A filter that was built of the keys of these numbers.
macro_rules! built {
    ($filter:ident, $rate:expr, $numbers:ident, $hasher:ident) => {
        $filter::build_with(Build::with_hasher($rate, $hasher), $numbers.map(T::numbered)).unwrap()
    };
}

sorts! {
    /// Classic Bloom filters.
    Bloom(BloomFilter<T, H>) = "bloom",
        |numbers, hasher| filled!(BloomFilter, numbers, hasher),
        |filter, _number, key| filter.contains(key.borrow());
    /// Blocked Bloom filters.
    Blocked(BlockedBloomFilter<T, H>) = "blocked",
        |numbers, hasher| filled!(BlockedBloomFilter, numbers, hasher),
        |filter, _number, key| filter.contains(key.borrow());
    /// Split-block Bloom filters.
    Split(SplitBlockBloomFilter<T, H>) = "split",
        |numbers, hasher| filled!(SplitBlockBloomFilter, numbers, hasher),
        |filter, _number, key| filter.contains(key.borrow());
    /// Counting Bloom filters.
    Counting(CountingBloomFilter<T, H>) = "counting",
        |numbers, hasher| filled!(CountingBloomFilter, numbers, hasher),
        |filter, _number, key| filter.contains(key.borrow());
    /// Blocked counting Bloom filters.
    BlockedCounting(BlockedCountingBloomFilter<T, H>) = "blocked-counting",
        |numbers, hasher| filled!(BlockedCountingBloomFilter, numbers, hasher),
        |filter, _number, key| filter.contains(key.borrow());
    /// Scalable Bloom filters of several levels.
    Scalable(ScalableBloomFilter<T, H>) = "scalable",
        keys = 200,
        |numbers, hasher| {
            let mut filter = ScalableBloomFilter::with_hasher(count(&numbers) / 8, RATE, hasher);
            for number in numbers {
                filter.insert(T::numbered(number).borrow()).unwrap();
            }
            filter
        },
        |filter, _number, key| filter.contains(key.borrow());
    /// Stable Bloom filters, which forget.
    Stable(StableBloomFilter<T, H>) = "stable",
        |numbers, hasher| filled!(StableBloomFilter, numbers, hasher),
        |filter, _number, key| filter.contains(key.borrow());
    /// Filters for a window of insertions.
    Window(WindowBloomFilter<T, H>) = "window",
        |numbers, hasher| filled!(WindowBloomFilter, numbers, hasher),
        |filter, _number, key| filter.contains(key.borrow());
    /// Filters for a window of time.
    WindowOfTime(WindowBloomFilter<T, H>) = "window-of-time",
        |numbers, hasher| {
            let (second, start) = (Duration::from_secs(1), numbers.start);
            let window = second * count(&numbers) as u32;
            let shape = umbel::window::Shape::for_time(window, count(&numbers), RATE).unwrap();
            let mut filter = WindowBloomFilter::with(shape, hasher).unwrap();
            for number in numbers {
                let now = second * (number - start) as u32;
                filter.insert_at(T::numbered(number).borrow(), now);
            }
            filter
        },
        |filter, _number, key| filter.contains(key.borrow());
    /// Cuckoo filters.
    Cuckoo(CuckooFilter<T, H>) = "cuckoo",
        |numbers, hasher| filled!(CuckooFilter, numbers, hasher),
        |filter, _number, key| filter.contains(key.borrow());
    /// Quotient filters.
    Quotient(QuotientFilter<T, H>) = "quotient",
        |numbers, hasher| filled!(QuotientFilter, numbers, hasher),
        |filter, _number, key| filter.contains(key.borrow());
    /// Xor filters.
    Xor(XorFilter<T, H>) = "xor",
        |numbers, hasher| built!(XorFilter, RATE, numbers, hasher),
        |filter, _number, key| filter.contains(key.borrow());
    /// Binary fuse filters of three entries a key, in thirds.
    Fuse(BinaryFuseFilter<T, H>) = "fuse",
        |numbers, hasher| built!(BinaryFuseFilter, RATE, numbers, hasher),
        |filter, _number, key| filter.contains(key.borrow());
    /// Binary fuse filters of four entries a key, so small that it is three.
    Fuse4(BinaryFuse4Filter<T, H>) = "fuse4",
        |numbers, hasher| built!(BinaryFuse4Filter, RATE, numbers, hasher),
        |filter, _number, key| filter.contains(key.borrow());
    /// Binary fuse filters of so many keys, of one bit each, that there are segments.
    FuseSegments(BinaryFuseFilter<T, H>) = "fuse-segments",
        keys = 30_000,
        |numbers, hasher| built!(BinaryFuseFilter, 0.5, numbers, hasher),
        |filter, _number, key| filter.contains(key.borrow());
    /// The same of four entries a key.
    Fuse4Segments(BinaryFuse4Filter<T, H>) = "fuse4-segments",
        keys = 10_000,
        |numbers, hasher| built!(BinaryFuse4Filter, 0.5, numbers, hasher),
        |filter, _number, key| filter.contains(key.borrow());
    /// Ribbon filters.
    Ribbon(RibbonFilter<T, H>) = "ribbon",
        |numbers, hasher| built!(RibbonFilter, RATE, numbers, hasher),
        |filter, _number, key| filter.contains(key.borrow());
    /// Maps, which have a key if they know its value: the lowest three bits of its number.
    Map(RibbonMap<T, u8, H>) = "map",
        |numbers, hasher| {
            let pairs = numbers.map(|number| (T::numbered(number), number as u8 & 7));
            let how = Build::for_values_hashed_by(hasher);
            RibbonMap::build_with(how, Width::Bits(3), pairs).unwrap()
        },
        |map, number, key| map.get(key.borrow()) == number as u8 & 7;
}

/// Does something with every family.
pub(crate) trait Visitor {
    /// With this one. The files of some have their secret in them.
    fn visit<S, T, H>(&mut self, secret: bool)
    where
        S: Sort<T, H>,
        T: ?Sized + Numbered,
        H: Hashed + Digester<T> + Stored<T>;
}

/// All families with keys of this type and this hasher.
pub(crate) fn visit_families<T, H>(visitor: &mut impl Visitor, secret: bool)
where
    T: ?Sized + Numbered,
    H: Hashed + Digester<T> + Stored<T>,
{
    visitor.visit::<Bloom, T, H>(secret);
    visitor.visit::<Blocked, T, H>(secret);
    visitor.visit::<Split, T, H>(secret);
    visitor.visit::<Counting, T, H>(secret);
    visitor.visit::<BlockedCounting, T, H>(secret);
    visitor.visit::<Scalable, T, H>(secret);
    visitor.visit::<Stable, T, H>(secret);
    visitor.visit::<Window, T, H>(secret);
    visitor.visit::<WindowOfTime, T, H>(secret);
    visitor.visit::<Cuckoo, T, H>(secret);
    visitor.visit::<Quotient, T, H>(secret);
    visitor.visit::<Xor, T, H>(secret);
    visitor.visit::<Fuse, T, H>(secret);
    visitor.visit::<Fuse4, T, H>(secret);
    visitor.visit::<Ribbon, T, H>(secret);
    visitor.visit::<Map, T, H>(secret);
}
