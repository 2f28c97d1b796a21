//! What `BF.*` and `CF.*` ask of a filter, whatever it is made of.

use crate::error::Refused;

/// Keys that commands handle at once, on the stack.
pub(crate) const GROUP: usize = 32;

/// What `BF.INFO` tells of a filter without looking at its bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct About {
    /// For how many keys it was made, all parts together.
    pub capacity: u64,
    /// Bytes, as `BF.INFO` has always told them: with the records around the bits.
    pub bytes: u64,
    /// How many parts it has.
    pub filters: u64,
    /// How many keys were added.
    pub items: u64,
    /// How many times the last part a new one has; `None` if there will be none.
    pub expansion: Option<u32>,
    /// What it is made of: `classic`, `keyed`, `blocked`, `window`.
    pub layout: &'static str,
}

/// What the bits of a filter tell. Of a large one a sample is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// The share of bits that are set.
    pub fill: f64,
    /// About how many keys are in it.
    pub items: f64,
    /// The share of absent keys that are found.
    pub rate: f64,
}

/// The bytes of a filter that are read to measure it, about, which takes milliseconds. In a filter that is half full the
/// share of set bits is then known to 0.00006, one standard deviation.
const SAMPLE: u64 = 8 << 20;

/// Of a filter of so many bytes, one of how many cache lines is read to measure it.
pub(crate) fn stride(bytes: u64) -> usize {
    usize::try_from(bytes / SAMPLE).unwrap_or(usize::MAX).max(1)
}

/// A filter of `BF.*`.
pub trait Membership {
    /// Whether keys may have been added: `found[i]` is the answer for `keys[i]`, and `false` is proof.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    fn find(&self, keys: &[&[u8]], found: &mut [bool]);

    /// Adds keys one after the other: `fresh[i]` says that `keys[i]` is certainly new.
    ///
    /// # Errors
    ///
    /// How many keys were dealt with, and why the next one was not.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    fn put(&mut self, keys: &[&[u8]], fresh: &mut [bool]) -> Result<(), (usize, Refused)>;

    /// What is known of it.
    fn about(&self) -> About;

    /// What its bits tell.
    fn measure(&self) -> Measure;
}
