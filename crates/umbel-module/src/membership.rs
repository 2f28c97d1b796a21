//! The interface of `BF.*` to a filter of any type.

use crate::error::Refused;

/// The number of keys that commands process at once, on the stack.
pub(crate) const GROUP: usize = 32;

/// The part of `BF.INFO` that does not require reading the bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct About {
    /// The planned number of keys, of all parts together.
    pub capacity: u64,
    /// The size in bytes as `BF.INFO` reports it, including the records around the bits.
    pub bytes: u64,
    /// The number of parts.
    pub filters: u64,
    /// The number of keys that were added.
    pub items: u64,
    /// The ratio of the size of a new part to that of the last one; `None` if it does not grow.
    pub expansion: Option<u32>,
    /// The type of the filter: `classic`, `keyed`, `blocked`, `window`.
    pub layout: &'static str,
}

/// Measurements of the bits. Of a large filter a sample is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// The share of bits that are set.
    pub fill: f64,
    /// The estimated number of keys.
    pub items: f64,
    /// The false positive rate.
    pub rate: f64,
}

/// The approximate number of bytes that a measurement reads, which takes milliseconds. In a half-full filter
/// the share of set bits is then known to 0.00006, one standard deviation.
const SAMPLE: u64 = 8 << 20;

/// The stride of the cache lines that a measurement reads in a filter of this size.
pub(crate) fn stride(bytes: u64) -> usize {
    usize::try_from(bytes / SAMPLE).unwrap_or(usize::MAX).max(1)
}

/// A filter of `BF.*`.
pub trait Membership {
    /// Looks up keys: `found[i]` says whether `keys[i]` may have been added. `false` is guaranteed.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    fn find(&self, keys: &[&[u8]], found: &mut [bool]);

    /// Adds keys one after the other: `fresh[i]` says that `keys[i]` is certainly new.
    ///
    /// # Errors
    ///
    /// The number of processed keys, and why the next key was refused.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    fn put(&mut self, keys: &[&[u8]], fresh: &mut [bool]) -> Result<(), (usize, Refused)>;

    /// Information that does not require reading the bits.
    fn about(&self) -> About;

    /// Measures the bits.
    fn measure(&self) -> Measure;
}
