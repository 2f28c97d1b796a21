//! Which family implements which trait. The table is checked by the compiler, in both directions: a trait
//! that is missing, or one that should not be there, is a compile error.

use std::fmt::Debug;
use umbel::atomic::AtomicArrayBloomFilter;
use umbel::blocked::{ArrayBlockedBloomFilter, AtomicArrayBlockedBloomFilter};
use umbel::counting::ArrayCountingBloomFilter;
use umbel::cuckoo::ArrayCuckooFilter;
use umbel::multi::{Everything, Multi};
use umbel::stable::ArrayStableBloomFilter;
use umbel::{
    AnyFilter, ArrayBloomFilter, AtomicBlockedBloomFilter, AtomicBloomFilter,
    AtomicSplitBlockBloomFilter, BinaryFuse4Filter, BinaryFuseFilter, BlockedBloomFilter,
    BlockedCountingBloomFilter, BloomFilter, Contains, CountingBloomFilter, CuckooFilter, Edge,
    Insert, MultiBloomFilter, Portable, QuotientFilter, Remove, RibbonFilter, RibbonMap, Saved,
    ScalableBloomFilter, SplitBlockBloomFilter, StableBloomFilter, Union, WindowBloomFilter,
    XorFilter,
};

/// Compiles if the type implements the trait, or (`no`) if it does not.
macro_rules! cell {
    (yes, $type:ty, $($bound:tt)+) => {
        const _: fn() = || {
            fn implements<T: $($bound)+>() {}
            implements::<$type>();
        };
    };
    (no, $type:ty, $($bound:tt)+) => {
        const _: fn() = || {
            // Two candidates for `_` if the type implements the trait, and then it cannot be inferred.
            trait Lacks<Any> {
                fn lacks() {}
            }
            impl<T> Lacks<()> for T {}
            struct Implements;
            impl<T: $($bound)+> Lacks<Implements> for T {}
            let _ = <$type as Lacks<_>>::lacks;
        };
    };
}

#[cfg(feature = "serde")]
macro_rules! serde_cell {
    ($cell:ident, $type:ty) => {
        cell!($cell, $type, serde::Serialize);
        cell!($cell, $type, serde::de::DeserializeOwned);
    };
}
#[cfg(not(feature = "serde"))]
macro_rules! serde_cell {
    ($($ignored:tt)*) => {};
}

#[cfg(feature = "mmap")]
macro_rules! map_cell {
    ($cell:ident, $type:ty, $bound:ident) => {
        cell!($cell, $type, umbel::format::$bound);
    };
}
#[cfg(not(feature = "mmap"))]
macro_rules! map_cell {
    ($($ignored:tt)*) => {};
}

macro_rules! table {
    ($($type:ty => $filter:ident $edge:ident $insert:ident $remove:ident $union:ident $saved:ident
        $serde:ident $clone:ident $eq:ident $extend:ident $map:ident $map_mut:ident;)*) => {$(
        cell!(yes, $type, Debug);
        cell!(yes, $type, Send);
        cell!(yes, $type, Sync);
        cell!(yes, $type, Unpin);
        cell!($filter, $type, Contains);
        cell!($edge, $type, Edge);
        cell!($insert, $type, Insert);
        cell!($remove, $type, Remove);
        cell!($union, $type, Union);
        cell!($saved, $type, Saved);
        serde_cell!($serde, $type);
        cell!($clone, $type, Clone);
        cell!($eq, $type, PartialEq);
        cell!($extend, $type, Extend<u64>);
        cell!($extend, $type, for<'a> Extend<&'a u64>);
        map_cell!($map, $type, Mappable);
        map_cell!($map_mut, $type, MappableMut);
    )*};
}

// Many threads extend an atomic filter, so `&filter` implements `Extend`, and `snapshot` copies one. Filters
// that may be full have no `Extend`, which cannot report that. The exception is the scalable filter, which is
// full only when there is no memory. A cuckoo filter is merged, because a union must not fail for lack of room.
// Static filters are built from all keys at once. The operations of an `AnyFilter` are known only at run time.
#[rustfmt::skip]
table! {
    //                                              filt edge ins  rem  uni  save serd clon eq   ext  map  mut
    BloomFilter<u64>                             => yes  yes  yes  no   yes  yes  yes  yes  yes  yes  yes  yes;
    BloomFilter<u64, umbel::Keyed>               => yes  yes  yes  no   yes  yes  yes  yes  yes  yes  yes  yes;
    ArrayBloomFilter<u64, 16>                    => yes  yes  yes  no   yes  yes  yes  yes  yes  yes  no   no;
    AtomicBloomFilter<u64>                       => yes  yes  yes  no   yes  yes  yes  no   yes  no   no   yes;
    AtomicArrayBloomFilter<u64, 16>              => yes  yes  yes  no   yes  yes  yes  no   yes  no   no   no;
    BlockedBloomFilter<u64>                      => yes  yes  yes  no   yes  yes  yes  yes  yes  yes  yes  yes;
    ArrayBlockedBloomFilter<u64, 16>             => yes  yes  yes  no   yes  yes  yes  yes  yes  yes  no   no;
    AtomicBlockedBloomFilter<u64>                => yes  yes  yes  no   yes  yes  yes  no   yes  no   no   yes;
    AtomicArrayBlockedBloomFilter<u64, 16>       => yes  yes  yes  no   yes  yes  yes  no   yes  no   no   no;
    SplitBlockBloomFilter<u64>                   => yes  yes  yes  no   yes  yes  yes  yes  yes  yes  yes  yes;
    SplitBlockBloomFilter<u64, Portable>         => yes  yes  yes  no   yes  yes  yes  yes  yes  yes  yes  yes;
    AtomicSplitBlockBloomFilter<u64>             => yes  yes  yes  no   yes  yes  yes  no   yes  no   no   yes;
    CountingBloomFilter<u64>                     => yes  yes  yes  yes  yes  yes  yes  yes  yes  yes  no   no;
    ArrayCountingBloomFilter<u64, 16>            => yes  yes  yes  yes  yes  yes  yes  yes  yes  yes  no   no;
    BlockedCountingBloomFilter<u64>              => yes  yes  yes  yes  yes  yes  yes  yes  yes  yes  no   no;
    ScalableBloomFilter<u64>                     => yes  yes  yes  no   no   yes  yes  yes  yes  yes  no   no;
    StableBloomFilter<u64>                       => yes  yes  yes  no   no   yes  yes  yes  yes  yes  no   no;
    ArrayStableBloomFilter<u64, 16>              => yes  yes  yes  no   no   yes  yes  yes  yes  yes  no   no;
    WindowBloomFilter<u64>                       => yes  yes  yes  no   no   yes  yes  yes  yes  yes  no   no;
    CuckooFilter<u64>                            => yes  yes  yes  yes  no   yes  yes  yes  yes  no   no   no;
    ArrayCuckooFilter<u64, 16>                   => yes  yes  yes  yes  no   yes  yes  yes  yes  no   no   no;
    QuotientFilter<u64>                          => yes  yes  yes  yes  yes  yes  yes  yes  yes  no   no   no;
    XorFilter<u64>                               => yes  yes  no   no   no   yes  yes  yes  yes  no   yes  no;
    BinaryFuseFilter<u64>                        => yes  yes  no   no   no   yes  yes  yes  yes  no   yes  no;
    BinaryFuse4Filter<u64>                       => yes  yes  no   no   no   yes  yes  yes  yes  no   yes  no;
    RibbonFilter<u64>                            => yes  yes  no   no   no   yes  yes  yes  yes  no   yes  no;
    RibbonMap<u64, u8>                           => no   no   no   no   no   yes  yes  yes  yes  no   yes  no;
    MultiBloomFilter<BloomFilter<u64>, 3>        => no   no   no   no   no   yes  yes  yes  yes  no   no   no;
    Multi<(BloomFilter<u64>, CuckooFilter<str>)> => no   no   no   no   no   yes  yes  yes  yes  no   no   no;
    Everything                                   => yes  no   yes  yes  yes  no   no   yes  yes  no   no   no;
    AnyFilter                                    => yes  yes  no   no   no   yes  yes  yes  yes  no   no   no;
}

// Through a shared reference.
cell!(yes, &'static AtomicBloomFilter<u64>, Extend<u64>);
cell!(yes, &'static AtomicBlockedBloomFilter<u64>, Extend<u64>);
cell!(yes, &'static AtomicSplitBlockBloomFilter<u64>, Extend<u64>);

/// A filter in a file only offers operations that keep the file valid: none clears a bit.
#[cfg(feature = "mmap")]
mod in_files {
    use super::*;
    use umbel::format::{Mapped, MappedMut};

    macro_rules! mapped {
        ($($type:ty => $edge:ident $insert:ident $extend:ident;)*) => {$(
            cell!(yes, $type, Debug);
            cell!(yes, $type, Send);
            cell!(yes, $type, Sync);
            cell!(no, $type, Clone);
            cell!(no, $type, Remove);
            cell!($insert, $type, Union);
            cell!(yes, $type, Contains);
            cell!($edge, $type, Edge);
            cell!($insert, $type, Insert);
            cell!($extend, $type, Extend<u64>);
        )*};
    }
    mapped! {
        //                                            edge ins ext
        Mapped<BloomFilter<u64>>                   => yes  no  no;
        Mapped<XorFilter<u64>>                     => yes  no  no;
        Mapped<RibbonFilter<u64>>                  => yes  no  no;
        MappedMut<BloomFilter<u64>>                => yes  yes yes;
        MappedMut<BlockedBloomFilter<u64>>         => yes  yes yes;
        MappedMut<SplitBlockBloomFilter<u64>>      => yes  yes yes;
        MappedMut<AtomicBloomFilter<u64>>          => yes  yes no;
        MappedMut<AtomicBlockedBloomFilter<u64>>   => yes  yes no;
    }
    cell!(yes, &'static MappedMut<AtomicBloomFilter<u64>>, Extend<u64>);
}

/// A blocked counting filter can be a dimension, with its own type of keys.
#[test]
fn a_blocked_counting_filter_is_a_dimension_of_a_multi() {
    let ports = BlockedCountingBloomFilter::<u16>::new(100, 1e-6);
    let users = BlockedCountingBloomFilter::<str>::new(100, 1e-6);
    let mut seen = Multi::with_joint((users, ports), BlockedCountingBloomFilter::new(100, 1e-6));
    let _: &BlockedCountingBloomFilter<u64> = seen.joint();
    assert_eq!(seen.insert(("ada", &22)), Ok(true));
    assert_eq!(seen.insert(("bob", &80)), Ok(true));
    assert!(seen.contains(("ada", &22)) && !seen.contains(("ada", &80)));
    assert!(seen.matches((Some("ada"), None)) && !seen.matches((Some("eve"), None)));
    let again = Multi::from_bytes(&seen.to_bytes()).unwrap();
    assert!(again == seen);
    assert!(seen.remove(("ada", &22)) && !seen.matches((Some("ada"), None)));
    assert!(seen.contains(("bob", &80)));
}
