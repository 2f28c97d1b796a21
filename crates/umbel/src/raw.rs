//! Filters without keys: the cores below every [`Filter`], which work with digests only.
//!
//! ```text
//!     key --hasher--> digest --> core      a Filter: the edge and one core
//!                     digest --> core      an engine: hash once, ask many cores
//!                           `--> core
//! ```
//!
//! A database or a join often has the hashes of its keys already. It needs neither the key type nor
//! a hasher, so a core has neither. [`Filter::raw`] borrows the core of a filter,
//! [`Filter::into_raw`] returns it by value, and [`Filter::from_raw`] adds key type and hasher
//! again.
//!
//! Cores are used through the traits in [`filter`](crate::filter).
//!
//! ```
//! use umbel::hash::Digester;
//! use umbel::{BlockedBloomFilter, BloomFilter, Contains, Portable};
//!
//! let mut left = BloomFilter::<str>::new(1_000, 0.01);
//! let mut right = BlockedBloomFilter::<str>::new(1_000, 0.01);
//! left.insert("a");
//! right.insert("b");
//! // The key is hashed once, for any number of filters.
//! let digest = Portable::default().digest("b");
//! let cores: [&dyn Contains; 2] = [left.raw(), right.raw()];
//! assert_eq!(cores.map(|core| core.contains_digest(digest)), [false, true]);
//! ```

pub use crate::bloom::RawBloom as Bloom;
pub use crate::counting::RawCounting as Counting;
pub use crate::cuckoo::RawCuckoo as Cuckoo;
pub use crate::stable::RawStable as Stable;
#[cfg(feature = "alloc")]
pub use crate::{
    any::raw::Any, frozen::RawFrozen as Frozen, quotient::RawQuotient as Quotient,
    ribbon::RawRibbonMap as RibbonMap, scalable::RawScalable as Scalable,
    window::RawWindow as Window,
};

use crate::error::{BatchFull, Full, InvalidShape};
use crate::filter::{Contains, Insert, Remove};
use crate::hash::Digest;
use core::fmt;

#[cfg(doc)]
use crate::Filter;

/// What [`Filter`] requires of every core. The methods are only for this library.
#[doc(hidden)]
pub trait Core {
    /// The digest type. [`Digest`] for all cores without foreign kernels.
    type Digest: Copy;

    /// The name of the filter for everyday use.
    const NAME: &'static str;

    /// The memory of its words, in bytes.
    fn bytes(&self) -> u64;

    /// Writes the `Debug` fields, without reading the words.
    fn describe(&self, f: &mut fmt::DebugStruct<'_, '_>);
}

/// A core that has a shape.
#[doc(hidden)]
pub trait Shaped: Core {
    /// The shape type.
    type Shape: fmt::Debug;

    fn shape(&self) -> &Self::Shape;
}

/// A core with look-ups by digest.
#[doc(hidden)]
pub trait Probe: Core {
    fn probe(&self, digest: Self::Digest) -> bool;

    /// As `probe`, for each key: `found[i]` is the answer for `keys[i]`.
    fn probe_each<A>(&self, keys: &[A], digest: impl Fn(&A) -> Self::Digest, found: &mut [bool]);

    /// The current false positive rate.
    fn rate(&self) -> f64;
}

/// A core that is never full.
#[doc(hidden)]
pub trait Endless: Probe {
    /// Inserts a digest. Returns whether it is new.
    fn put(&mut self, digest: Self::Digest) -> bool;

    /// As `put`, for each key in order.
    fn put_each<A>(&mut self, keys: &[A], digest: impl Fn(&A) -> Self::Digest, fresh: &mut [bool]);

    /// As `put`, for each digest, without a result.
    fn put_all(&mut self, digests: impl Iterator<Item = Self::Digest>);
}

/// A core that is created for a number of keys and a rate.
#[doc(hidden)]
pub trait Make: Shaped + Sized {
    fn plan(capacity: u64, err_rate: f64) -> Result<Self::Shape, InvalidShape>;

    fn make(shape: Self::Shape) -> Result<Self, InvalidShape>;
}

/// A core whose copy may not fit into the remaining memory.
#[doc(hidden)]
pub trait TryClone: Sized {
    fn try_clone(&self) -> Result<Self, InvalidShape>;
}

/// A core that can be cleared.
#[doc(hidden)]
pub trait Clear: Core {
    fn clear(&mut self);
}

/// A core with batch removal.
#[doc(hidden)]
pub trait RemoveEach: Remove {
    /// Removes each key in order: `removed[i]` is the answer for `keys[i]`.
    fn remove_each<A>(&mut self, keys: &[A], digest: impl Fn(&A) -> Digest, removed: &mut [bool]);
}

/// Implements `Core`, `Shaped` and `Debug` for a core, which must have its shape in a field
/// `shape`.
macro_rules! describe {
    (impl[$($generics:tt)*] $core:ty: $shape:ty, $digest:ty, $name:expr, |$this:ident| $bytes:expr;
        $($field:ident: $value:expr,)*
    ) => {
        impl<$($generics)*> $crate::raw::Core for $core {
            type Digest = $digest;

            const NAME: &'static str = $name;

            fn bytes(&self) -> u64 {
                let $this = self;
                $bytes
            }

            fn describe(&self, f: &mut core::fmt::DebugStruct<'_, '_>) {
                let $this = self;
                $(f.field(stringify!($field), &$value);)*
            }
        }

        impl<$($generics)*> $crate::raw::Shaped for $core {
            type Shape = $shape;

            fn shape(&self) -> &$shape {
                &self.shape
            }
        }

        impl<$($generics)*> $core {
            /// The shape that the filter was built with.
            #[must_use]
            pub fn shape(&self) -> &$shape {
                &self.shape
            }

            /// The memory of the words, in bytes.
            #[must_use]
            pub fn bytes(&self) -> u64 {
                $crate::raw::Core::bytes(self)
            }
        }

        impl<$($generics)*> core::fmt::Debug for $core {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let mut lines = f.debug_struct(<Self as $crate::raw::Core>::NAME);
                $crate::raw::Core::describe(self, &mut lines);
                lines.finish_non_exhaustive()
            }
        }
    };
}
pub(crate) use describe;

/// Calls `each` with the digests of an iterator, in order and `BATCH` at a time, and with a slice
/// for the answers.
pub(crate) fn in_batches<const BATCH: usize>(
    digests: impl Iterator<Item = Digest>,
    mut each: impl FnMut(&[Digest], &mut [bool]),
) {
    let Ok(()) = try_in_batches::<BATCH, core::convert::Infallible>(digests, |digests, answers| {
        each(digests, answers);
        Ok(())
    });
}

/// As [`in_batches`], until the first error.
pub(crate) fn try_in_batches<const BATCH: usize, E>(
    digests: impl Iterator<Item = Digest>,
    mut each: impl FnMut(&[Digest], &mut [bool]) -> Result<(), E>,
) -> Result<(), E> {
    let mut digests = digests.fuse();
    let (mut batch, mut answers) = ([Digest::new(0); BATCH], [false; BATCH]);
    loop {
        let mut len = 0;
        for (slot, digest) in batch.iter_mut().zip(&mut digests) {
            *slot = digest;
            len += 1;
        }
        each(&batch[..len], &mut answers[..len])?;
        if len < BATCH {
            return Ok(());
        }
    }
}

impl<C: Probe<Digest = Digest>> Contains for C {
    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.probe(digest)
    }

    #[inline]
    fn contains_digests(&self, digests: &[Digest], found: &mut [bool]) {
        self.probe_each(digests, |digest| *digest, found);
    }
}

impl<C: Endless<Digest = Digest>> Insert for C {
    /// Never [`Full`].
    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        Ok(self.put(digest))
    }

    /// Never [`BatchFull`].
    #[inline]
    fn insert_digests(&mut self, digests: &[Digest], fresh: &mut [bool]) -> Result<(), BatchFull> {
        self.put_each(digests, |digest| *digest, fresh);
        Ok(())
    }
}
