//! Small data structures that do not depend on filters.

#[cfg(feature = "alloc")]
pub(crate) mod alloc_zeroed;
pub(crate) mod bits;
pub(crate) mod buckets;
pub(crate) mod cells;
#[cfg(feature = "alloc")]
pub(crate) mod entries;
#[cfg(feature = "alloc")]
pub(crate) mod gather;
pub(crate) mod grouped;
pub(crate) mod math;
pub(crate) mod occupancy;
#[cfg(feature = "alloc")]
pub(crate) mod packed;
pub(crate) mod prefetch;
#[cfg(feature = "alloc")]
pub(crate) mod select;
#[cfg(feature = "alloc")]
pub(crate) mod words;
