//! One filter for each family, hash and type of keys: the content of the golden files, and the start of tests
//! of bytes.

use std::borrow::Borrow;
use std::fmt::Debug;
use std::ops::Range;
use std::time::Duration;
use umbel::format::{Saved, Stored};
use umbel::frozen::Build;
use umbel::hash::{City64, Digester, Farm64, KeyOf, Murmur3, Portable, Xxh3, Xxh64};
use umbel::ribbon::ValueWidth;
use umbel::split::Plain;
use umbel::storage::Heap;
use umbel::{
    BinaryFuse4Filter, BinaryFuseFilter, BlockedBloomFilter, BlockedCountingBloomFilter,
    BloomFilter, CountingBloomFilter, CuckooFilter, Keyed, QuotientFilter, RibbonFilter, RibbonMap,
    ScalableBloomFilter, SplitBlockBloomFilter, StableBloomFilter, WindowBloomFilter, XorFilter,
};

/// The false positive rate. It is high, so that small filters have false positives.
pub(crate) const RATE: f64 = 0.05;

/// Types of keys that are numbered.
pub(crate) trait Numbered: 'static {
    /// The name of the type in a file name.
    const KEYS: &'static str;
    /// An owned key.
    type Owned: Borrow<Self> + KeyOf<Self, Key = Self>;

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
                // Numbers that use all bits.
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

    /// Zero to eight bytes.
    fn numbered(number: u64) -> Vec<u8> {
        let bytes = number.to_be_bytes();
        bytes[number.leading_zeros() as usize / 8..].to_vec()
    }

    fn to_bytes(&self) -> Vec<u8> {
        self.to_vec()
    }
}

/// A hasher of the golden files, with its name.
pub(crate) trait Hashed: Copy + Debug + 'static {
    /// Its name in a file name.
    const HASH: &'static str;

    /// The hasher.
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
    Farm64 = "farm64", Farm64;
    Plain = "plain", Plain;
}
#[cfg(feature = "crc64")]
hashers!(umbel::hash::Crc64 = "crc64", umbel::hash::Crc64;);

/// A family of filters.
pub(crate) trait Sort<T: ?Sized + Numbered, H>: 'static {
    /// Its name in a file name.
    const NAME: &'static str;
    /// The number of keys in a small filter.
    const KEYS: u64 = 100;
    /// The type of its filters.
    type Filter: Saved<Hasher = H, Storage = Heap> + Clone + PartialEq + Debug;

    /// A filter of the keys with these numbers, without room for more.
    fn of(numbers: Range<u64>, hasher: H, key: fn(u64) -> T::Owned) -> Self::Filter;

    /// Whether the filter contains the key with this number.
    fn has(filter: &Self::Filter, number: u64, key: fn(u64) -> T::Owned) -> bool;
}

/// Declares families: how a filter is created from a hasher and numbers, and how a key is looked up.
macro_rules! sorts {
    ($($(#[$doc:meta])* $sort:ident($($filter:tt)*) = $name:literal,
        $(keys = $keys:literal,)? |$numbers:ident, $hasher:ident, $of:ident| $make:expr, |$one:ident, $number:ident, $key:ident| $has:expr;)*) => {$(
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

            fn of($numbers: Range<u64>, $hasher: H, $of: fn(u64) -> T::Owned) -> Self::Filter {
                $make
            }

            fn has($one: &Self::Filter, $number: u64, key: fn(u64) -> T::Owned) -> bool {
                let $key = key($number);
                $has
            }
        }
    )*};
}

/// The number of numbers.
const fn count(numbers: &Range<u64>) -> u64 {
    numbers.end - numbers.start
}

/// A filter with the keys of these numbers inserted.
macro_rules! filled {
    ($filter:ident, $numbers:ident, $hasher:ident, $of:ident) => {{
        let mut filter = $filter::with_hasher(count(&$numbers), RATE, $hasher);
        $numbers.for_each(|number| _ = filter.insert($of(number).borrow()));
        filter
    }};
}

/// A filter built from the keys of these numbers.
macro_rules! built {
    ($filter:ident, $rate:expr, $numbers:ident, $hasher:ident, $of:ident) => {
        $filter::build_with(Build::with_hasher($rate, $hasher), $numbers.map($of)).unwrap()
    };
}

sorts! {
    /// Classic Bloom filters.
    Bloom(BloomFilter<T, H>) = "bloom",
        |numbers, hasher, of| filled!(BloomFilter, numbers, hasher, of),
        |filter, _number, key| filter.contains(key.borrow());
    /// Blocked Bloom filters.
    Blocked(BlockedBloomFilter<T, H>) = "blocked",
        |numbers, hasher, of| filled!(BlockedBloomFilter, numbers, hasher, of),
        |filter, _number, key| filter.contains(key.borrow());
    /// Split-block Bloom filters.
    Split(SplitBlockBloomFilter<T, H>) = "split",
        |numbers, hasher, of| filled!(SplitBlockBloomFilter, numbers, hasher, of),
        |filter, _number, key| filter.contains(key.borrow());
    /// Counting Bloom filters.
    Counting(CountingBloomFilter<T, H>) = "counting",
        |numbers, hasher, of| filled!(CountingBloomFilter, numbers, hasher, of),
        |filter, _number, key| filter.contains(key.borrow());
    /// Blocked counting Bloom filters.
    BlockedCounting(BlockedCountingBloomFilter<T, H>) = "blocked-counting",
        |numbers, hasher, of| filled!(BlockedCountingBloomFilter, numbers, hasher, of),
        |filter, _number, key| filter.contains(key.borrow());
    /// Scalable Bloom filters of several levels.
    Scalable(ScalableBloomFilter<T, H>) = "scalable",
        keys = 200,
        |numbers, hasher, of| {
            let mut filter = ScalableBloomFilter::with_hasher(count(&numbers) / 8, RATE, hasher);
            for number in numbers {
                filter.insert(of(number).borrow()).unwrap();
            }
            filter
        },
        |filter, _number, key| filter.contains(key.borrow());
    /// Stable Bloom filters, which forget.
    Stable(StableBloomFilter<T, H>) = "stable",
        |numbers, hasher, of| filled!(StableBloomFilter, numbers, hasher, of),
        |filter, _number, key| filter.contains(key.borrow());
    /// Filters for a window of insertions.
    Window(WindowBloomFilter<T, H>) = "window",
        |numbers, hasher, of| filled!(WindowBloomFilter, numbers, hasher, of),
        |filter, _number, key| filter.contains(key.borrow());
    /// Filters for a window of time.
    WindowOfTime(WindowBloomFilter<T, H>) = "window-of-time",
        |numbers, hasher, of| {
            let (second, start) = (Duration::from_secs(1), numbers.start);
            let window = second * count(&numbers) as u32;
            let shape = umbel::window::Shape::for_even_time(window, count(&numbers), RATE).unwrap();
            let mut filter = WindowBloomFilter::with(shape, hasher).unwrap();
            for number in numbers {
                let now = second * (number - start) as u32;
                filter.insert_at(of(number).borrow(), now);
            }
            filter
        },
        |filter, _number, key| filter.contains(key.borrow());
    /// Cuckoo filters.
    Cuckoo(CuckooFilter<T, H>) = "cuckoo",
        |numbers, hasher, of| filled!(CuckooFilter, numbers, hasher, of),
        |filter, _number, key| filter.contains(key.borrow());
    /// Quotient filters.
    Quotient(QuotientFilter<T, H>) = "quotient",
        |numbers, hasher, of| filled!(QuotientFilter, numbers, hasher, of),
        |filter, _number, key| filter.contains(key.borrow());
    /// Xor filters.
    Xor(XorFilter<T, H>) = "xor",
        |numbers, hasher, of| built!(XorFilter, RATE, numbers, hasher, of),
        |filter, _number, key| filter.contains(key.borrow());
    /// Binary fuse filters of three entries per key, in thirds.
    Fuse(BinaryFuseFilter<T, H>) = "fuse",
        |numbers, hasher, of| built!(BinaryFuseFilter, RATE, numbers, hasher, of),
        |filter, _number, key| filter.contains(key.borrow());
    /// Binary fuse filters of four entries per key, so small that three are used.
    Fuse4(BinaryFuse4Filter<T, H>) = "fuse4",
        |numbers, hasher, of| built!(BinaryFuse4Filter, RATE, numbers, hasher, of),
        |filter, _number, key| filter.contains(key.borrow());
    /// Binary fuse filters of one bit, with enough keys for segments.
    FuseSegments(BinaryFuseFilter<T, H>) = "fuse-segments",
        keys = 30_000,
        |numbers, hasher, of| built!(BinaryFuseFilter, 0.5, numbers, hasher, of),
        |filter, _number, key| filter.contains(key.borrow());
    /// The same with four entries per key.
    Fuse4Segments(BinaryFuse4Filter<T, H>) = "fuse4-segments",
        keys = 10_000,
        |numbers, hasher, of| built!(BinaryFuse4Filter, 0.5, numbers, hasher, of),
        |filter, _number, key| filter.contains(key.borrow());
    /// Ribbon filters.
    Ribbon(RibbonFilter<T, H>) = "ribbon",
        |numbers, hasher, of| built!(RibbonFilter, RATE, numbers, hasher, of),
        |filter, _number, key| filter.contains(key.borrow());
    /// Ribbon filters of two bits, with enough keys for layers that bump some.
    RibbonLayers(RibbonFilter<T, H>) = "ribbon-layers",
        keys = 8_000,
        |numbers, hasher, of| built!(RibbonFilter, 0.25, numbers, hasher, of),
        |filter, _number, key| filter.contains(key.borrow());
    /// Maps. A map contains a key if it returns its value: the lowest three bits of its number.
    Map(RibbonMap<T, u8, H>) = "map",
        |numbers, hasher, of| {
            let pairs = numbers.map(|number| (of(number), number as u8 & 7));
            let how = Build::for_values_hashed_by(hasher);
            RibbonMap::build_with(how, ValueWidth::Bits(3), pairs).unwrap()
        },
        |map, number, key| map.get(key.borrow()) == number as u8 & 7;
}

/// An operation on every family, for keys of one type and one hasher.
pub(crate) trait Visitor<T: ?Sized + Numbered, H, A = ()> {
    /// Runs the operation on this family.
    fn visit<S: Sort<T, H>>(&mut self, with: &A);
}

/// All families with keys of this type and this hasher.
pub(crate) fn visit_families<T, H, A>(visitor: &mut impl Visitor<T, H, A>, with: &A)
where
    T: ?Sized + Numbered,
    H: Digester<T> + Stored<T> + Clone + Debug,
{
    visitor.visit::<Bloom>(with);
    visitor.visit::<Blocked>(with);
    visitor.visit::<Split>(with);
    visitor.visit::<Counting>(with);
    visitor.visit::<BlockedCounting>(with);
    visitor.visit::<Scalable>(with);
    visitor.visit::<Stable>(with);
    visitor.visit::<Window>(with);
    visitor.visit::<WindowOfTime>(with);
    visitor.visit::<Cuckoo>(with);
    visitor.visit::<Quotient>(with);
    visitor.visit::<Xor>(with);
    visitor.visit::<Fuse>(with);
    visitor.visit::<Fuse4>(with);
    visitor.visit::<Ribbon>(with);
    visitor.visit::<Map>(with);
}
