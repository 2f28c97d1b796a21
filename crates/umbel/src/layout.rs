//! Layouts: how a family of Bloom filters assigns bits in words to a key.
//!
//! | layout | the bits of a key are | filter |
//! |---|---|---|
//! | any [`Kernels`](crate::kernels::Kernels) | anywhere | [`bloom`](crate::bloom) |
//! | [`Lines`](crate::blocked::Lines) | in one cache line or two | [`blocked`](crate::blocked) |
//! | [`Blocks`](crate::split::Blocks) | one in each eighth of a block | [`split`](crate::split) |
//!
//! The operations of a filter are written once, for [`Bloom`](crate::bloom::Bloom) with any layout.
//! The traits are sealed, like storage. For custom positions, implement
//! [`Kernels`](crate::kernels::Kernels).

pub(crate) mod cells;
pub(crate) mod ring;

use crate::error::{Incompatible, InvalidShape};
use crate::parts::bits::{SetBit, Word};
use crate::sizing::Shape;

/// How a family assigns bits in words to a key.
///
/// Every method takes the shape of the filter and all its words.
#[doc(hidden)]
pub trait Layout: 'static {
    /// The digest type.
    type Digest: Copy;
    /// The shape of such a filter.
    type Shape: Probing;

    /// Prepares for a filter of this shape, if one can be created.
    ///
    /// # Errors
    ///
    /// If the shape is invalid.
    fn admit(&mut self, shape: &Self::Shape) -> Result<(), InvalidShape>;

    /// A value that distinguishes layouts: if two values are equal, keys have the same bits.
    fn tag(&self) -> u64;

    /// Whether all bits of a digest are set.
    fn contains<W: Word>(&self, shape: &Self::Shape, words: &[W], digest: Self::Digest) -> bool;

    /// As [`contains`](Self::contains), for each key.
    fn contains_batch<W: Word, A>(
        &self,
        shape: &Self::Shape,
        words: &[W],
        keys: &[A],
        digest: impl Fn(&A) -> Self::Digest,
        found: &mut [bool],
    );

    /// Sets all bits of a digest. Returns whether one of them was not set before.
    fn insert<V: SetBit>(&self, shape: &Self::Shape, words: V, digest: Self::Digest) -> bool;

    /// As [`insert`](Self::insert), for each key in order.
    fn insert_batch<V: SetBit, A>(
        &self,
        shape: &Self::Shape,
        words: V,
        keys: &[A],
        digest: impl Fn(&A) -> Self::Digest,
        fresh: &mut [bool],
    );

    /// As [`insert`](Self::insert), for each digest, without a result.
    fn extend<V: SetBit>(
        &self,
        shape: &Self::Shape,
        words: V,
        digests: impl Iterator<Item = Self::Digest>,
    );

    /// The error rate of a filter with these words.
    fn rate<W: Word>(&self, shape: &Self::Shape, words: &[W]) -> f64;
}

/// A shape whose keys have several bits or cells.
#[doc(hidden)]
pub trait Probing: Shape {
    /// The total number of bits or cells.
    fn places(&self) -> u64;

    /// The bits of a cell; 1 for filters with bits.
    fn cell_bits(&self) -> u32 {
        1
    }

    /// The largest number in a cell.
    fn cell_max(&self) -> u64 {
        (1 << self.cell_bits()) - 1
    }

    /// The number of bits or cells of a key.
    fn probes(&self) -> u32;

    /// An estimate of how many different keys were inserted if `set` bits are set, or cells not
    /// zero.
    fn estimate_items(&self, set: u64) -> u64;

    /// The number of lines in which a key has bits, in families where it can vary.
    fn lines_per_key(&self) -> u32 {
        1
    }

    /// Checks that the bits of two filters have the same meaning.
    ///
    /// # Errors
    ///
    /// The error says what differs.
    fn compatible(&self, other: &Self) -> Result<(), Incompatible> {
        let (expected, got) = (self.cell_bits(), other.cell_bits());
        if self.places() != other.places() {
            Err(Incompatible::Bits { expected: self.bits(), got: other.bits() })
        } else if self.probes() != other.probes() {
            Err(Incompatible::Probes { expected: self.probes(), got: other.probes() })
        } else if expected != got {
            Err(Incompatible::Cells { expected, got })
        } else if self.lines_per_key() != other.lines_per_key() {
            Err(Incompatible::Kernels)
        } else {
            Ok(())
        }
    }
}

/// Implements [`Probing`] with the methods of a shape.
macro_rules! probing {
    ($shape:ty) => {
        $crate::layout::probing!($shape, places: bits);
    };
    ($shape:ty, places: $places:ident $(, $more:item)*) => {
        impl $crate::layout::Probing for $shape {
            fn places(&self) -> u64 {
                self.$places()
            }

            fn probes(&self) -> u32 {
                self.probes()
            }

            fn estimate_items(&self, set: u64) -> u64 {
                self.estimate_items(set)
            }

            $($more)*
        }
    };
}
pub(crate) use probing;

/// Makes the function that computes the number of words of an array, also at compile time.
macro_rules! words_for {
    ($(#[$doc:meta])* $shape:ty) => {
        $(#[$doc])*
        ///
        /// # Panics
        ///
        /// If there is no such [`Shape`]. In a `const` context, this fails to compile.
        #[must_use]
        pub const fn words_for(items: u64, rate: f64) -> usize {
            match <$shape>::for_rate(items, rate) {
                Ok(shape) if shape.words() <= usize::MAX as u64 => shape.words() as usize,
                Ok(_) => panic!("so many words do not fit into this machine's memory"),
                Err($crate::InvalidShape::RateOutOfRange { .. }) => {
                    panic!("the rate must be above 0 and below 1")
                }
                Err($crate::InvalidShape::RateTooSmall { .. }) => {
                    panic!("the rate is too small for so many items")
                }
                Err(_) => panic!("there is no filter so large"),
            }
        }
    };
}
pub(crate) use words_for;

/// Makes the constructors of a shape for an array of `WORDS` words.
macro_rules! for_arrays {
    ($shape:ty, $words:ident => $whole:expr, $message:literal) => {
        impl $shape {
            /// The shape of exactly `WORDS` words: that of [`for_rate`](Self::for_rate) if it has
            /// this number of words, otherwise the best one.
            pub(crate) const fn for_words<const $words: usize>(
                items: u64,
                rate: f64,
            ) -> Result<Self, $crate::InvalidShape> {
                const { assert!($whole, $message) }
                let bytes = $words as u64 * 8;
                match Self::for_rate(items, rate) {
                    Ok(shape) if shape.bytes() == bytes => Ok(shape),
                    Ok(shape) if shape.bytes() < bytes => Self::for_memory(items, bytes),
                    Ok(shape) => Err($crate::InvalidShape::TooSmall { bytes, min: shape.bytes() }),
                    Err(error) => Err(error),
                }
            }

            /// As [`for_words`](Self::for_words).
            ///
            /// # Panics
            ///
            /// If `for_words` returns an error.
            pub(crate) const fn for_array<const WORDS: usize>(items: u64, rate: f64) -> Self {
                match Self::for_words::<WORDS>(items, rate) {
                    Ok(shape) => shape,
                    Err(_) => {
                        panic!("the rate must be above 0 and below 1, and the words enough for it")
                    }
                }
            }
        }
    };
}
pub(crate) use for_arrays;

/// A layout whose filters can be saved.
#[doc(hidden)]
pub trait StoredLayout: Layout + Default {
    /// The number of the family in a header.
    const FAMILY: u16;

    /// The number, in a header, of the function from a digest to bits.
    fn kernels(shape: &Self::Shape) -> u16;

    /// The shape that a header describes, or `None` if filters of this family have no such kernels.
    ///
    /// # Errors
    ///
    /// If the shape is invalid.
    fn restore(
        kernels: u16,
        items: u64,
        bits: u64,
        probes: u32,
    ) -> Option<Result<Self::Shape, InvalidShape>>;

    /// Whether a bit is set that no key can set.
    fn has_stray_bits<W: Word>(shape: &Self::Shape, words: &[W]) -> bool;
}
