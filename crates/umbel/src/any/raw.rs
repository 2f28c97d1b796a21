//! One core of any family.

use super::{AnyFilter, AnyHasher, ChangeError, Unsupported};
use crate::blocked::Lines;
use crate::bloom::RawBloom;
use crate::counting::{InLine, RawCounting};
use crate::cuckoo::RawCuckoo;
use crate::edge::{Filter, for_core_and_filter};
use crate::error::{Incompatible, InvalidBytes};
use crate::filter::{Compatible, Contains, Insert, Remove, Union};
use crate::format::{ANY_FAMILY, Header, Mark, StoredCore};
use crate::frozen::{Peeled, RawFrozen};
use crate::fuse::Fused;
use crate::hash::Digest;
use crate::quotient::RawQuotient;
use crate::raw::{Core, Probe, RemoveEach};
use crate::ribbon::Ribbon;
use crate::scalable::RawScalable;
use crate::split::Blocks;
use crate::stable::RawStable;
use crate::storage::Heap;
use crate::window::RawWindow;
use crate::xor::Thirds;
use core::fmt;

/// Declares the families: each with its name and, if two share a number, the kernels of the first.
macro_rules! families {
    ($($(#[$doc:meta])* $variant:ident($core:ty) = $name:literal $(if $kernels:literal)?;)*) => {
        /// The core of an [`AnyFilter`], whose family is known only at run time.
        #[derive(Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Any {
            $($(#[$doc])* $variant($core),)*
        }

        /// The parsed fields of a header, for each family.
        #[derive(Debug)]
        pub enum Planned {
            $($(#[$doc])* $variant(<$core as StoredCore>::Plan),)*
        }

        $(
            impl From<$core> for Any {
                fn from(core: $core) -> Self {
                    Self::$variant(core)
                }
            }

            impl From<Filter<[u8], AnyHasher, $core>> for AnyFilter {
                fn from(filter: Filter<[u8], AnyHasher, $core>) -> Self {
                    Self::from_raw(filter.raw.into(), filter.hasher)
                }
            }
        )*

        /// The name of the family, as `docs/format.md` has it.
        const fn family(core: &Any) -> &'static str {
            match core {
                $(Any::$variant(_) => $name,)*
            }
        }

        impl StoredCore for Any {
            type Storage = Heap;
            type Plan = Planned;

            const FAMILY: u16 = ANY_FAMILY;

            fn header(&self, mark: Mark) -> Header {
                each!(self, core => core.header(mark))
            }

            fn for_words<E>(
                &self,
                each: &mut impl FnMut(&[u64]) -> Result<(), E>,
            ) -> Result<(), E> {
                each!(self, core => core.for_words(each))
            }

            fn plan(header: &Header) -> Result<Planned, InvalidBytes> {
                $(if header.family() == <$core as StoredCore>::FAMILY $(&& header.kernels() == $kernels)? {
                    return <$core as StoredCore>::plan(header).map(Planned::$variant);
                })*
                Err(InvalidBytes::Unknown { field: "family", got: header.family() })
            }

            fn words(plan: &Planned) -> u64 {
                match plan {
                    $(Planned::$variant(plan) => <$core as StoredCore>::words(plan),)*
                }
            }

            fn assemble<E: From<InvalidBytes>>(
                plan: Planned,
                header: &Header,
                take: &mut impl FnMut(u64) -> Result<Heap, E>,
            ) -> Result<Self, E> {
                Ok(match plan {
                    $(Planned::$variant(plan) => <$core as StoredCore>::assemble(plan, header, take)?.into(),)*
                })
            }

            fn audit(&self) -> Result<(), InvalidBytes> {
                each!(self, core => core.audit())
            }
        }

        /// Runs code for the actual core.
        macro_rules! each {
            ($any:expr, $one:pat => $do:expr) => {
                match $any {
                    $(Any::$variant($one) => $do,)*
                }
            };
        }
        use each;
    };
}

families! {
    /// The core of a [`BloomFilter`](crate::BloomFilter).
    Bloom(RawBloom<Heap>) = "bloom";
    /// The core of a [`BlockedBloomFilter`](crate::BlockedBloomFilter).
    Blocked(RawBloom<Heap, Lines>) = "blocked";
    /// The core of a [`SplitBlockBloomFilter`](crate::SplitBlockBloomFilter).
    Split(RawBloom<Heap, Blocks>) = "split";
    /// The core of a [`CountingBloomFilter`](crate::CountingBloomFilter).
    Counting(RawCounting<Heap>) = "counting" if 1;
    /// The core of a [`BlockedCountingBloomFilter`](crate::BlockedCountingBloomFilter).
    BlockedCounting(RawCounting<Heap, InLine>) = "blocked-counting";
    /// The core of a [`ScalableBloomFilter`](crate::ScalableBloomFilter).
    Scalable(RawScalable) = "scalable";
    /// The core of a [`StableBloomFilter`](crate::StableBloomFilter).
    Stable(RawStable<Heap>) = "stable";
    /// The core of a [`WindowBloomFilter`](crate::WindowBloomFilter).
    Window(RawWindow) = "window";
    /// The core of a [`CuckooFilter`](crate::CuckooFilter).
    Cuckoo(RawCuckoo<Heap>) = "cuckoo";
    /// The core of a [`QuotientFilter`](crate::QuotientFilter).
    Quotient(RawQuotient) = "quotient";
    /// The core of a [`XorFilter`](crate::XorFilter).
    Xor(RawFrozen<Peeled<Thirds>>) = "xor";
    /// The core of a [`BinaryFuseFilter`](crate::BinaryFuseFilter).
    Fuse(RawFrozen<Peeled<Fused<3>>>) = "fuse";
    /// The core of a [`BinaryFuse4Filter`](crate::BinaryFuse4Filter).
    Fuse4(RawFrozen<Peeled<Fused<4>>>) = "fuse4";
    /// The core of a [`RibbonFilter`](crate::RibbonFilter).
    Ribbon(RawFrozen<Ribbon>) = "ribbon";
}

impl Core for Any {
    type Digest = Digest;

    const NAME: &'static str = "AnyFilter";

    fn bytes(&self) -> u64 {
        each!(self, core => core.bytes())
    }

    fn describe(&self, f: &mut fmt::DebugStruct<'_, '_>) {
        f.field("family", &self.family());
        each!(self, core => core.describe(f));
    }
}

impl fmt::Debug for Any {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = f.debug_struct(Self::NAME);
        self.describe(&mut lines);
        lines.finish_non_exhaustive()
    }
}

impl Contains for Any {
    fn contains_digest(&self, digest: Digest) -> bool {
        each!(self, core => core.probe(digest))
    }

    fn contains_digests(&self, digests: &[Digest], found: &mut [bool]) {
        each!(self, core => core.contains_digests(digests, found));
    }
}

for_core_and_filter! { impl[] Any {
    /// The name of the family, as `docs/format.md` has it.
    #[must_use]
    pub fn family(&self) -> &'static str {
        family(self)
    }

    /// Whether a key with this digest may be in the filter. `false` proves that it is not.
    #[must_use]
    pub fn contains_digest(&self, digest: Digest) -> bool {
        Contains::contains_digest(self, digest)
    }

    /// As [`contains_digest`](Self::contains_digest), for many digests: `found[i]` is the answer
    /// for `digests[i]`.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    pub fn contains_digests(&self, digests: &[Digest], found: &mut [bool]) {
        Contains::contains_digests(self, digests, found);
    }

    /// The false positive rate now: the share of absent keys that are found. May read the whole filter.
    #[must_use]
    pub fn expected_rate(&self) -> f64 {
        each!(self, core => core.rate())
    }

    /// How many keys are in the filter, if the family stores it: cuckoo, quotient and static
    /// filters do.
    #[must_use]
    pub fn len(&self) -> Option<u64> {
        match self {
            Self::Cuckoo(core) => Some(core.len()),
            Self::Quotient(core) => Some(core.len()),
            Self::Xor(core) => Some(core.len()),
            Self::Fuse(core) => Some(core.len()),
            Self::Fuse4(core) => Some(core.len()),
            Self::Ribbon(core) => Some(core.len()),
            _ => None,
        }
    }

    /// An estimate of how many keys are in the filter: [`len`](Self::len) if it is known, `None`
    /// for a stable filter. May read the whole filter.
    #[must_use]
    pub fn estimated_len(&self) -> Option<u64> {
        match self {
            Self::Bloom(core) => Some(core.estimated_len()),
            Self::Blocked(core) => Some(core.estimated_len()),
            Self::Split(core) => Some(core.estimated_len()),
            Self::Counting(core) => Some(core.estimated_len()),
            Self::BlockedCounting(core) => Some(core.estimated_len()),
            Self::Scalable(core) => Some(core.estimated_len()),
            Self::Window(core) => Some(core.estimated_len()),
            exact => exact.len(),
        }
    }

    /// Whether the filter contains no key. May read the whole filter.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        each!(self, core => core.is_empty())
    }

    /// The core, if its family supports insertion.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] if the family is for static sets.
    pub fn as_insert(&mut self) -> Result<&mut dyn Insert, Unsupported> {
        Ok(match self {
            Self::Bloom(core) => core,
            Self::Blocked(core) => core,
            Self::Split(core) => core,
            Self::Counting(core) => core,
            Self::BlockedCounting(core) => core,
            Self::Scalable(core) => core,
            Self::Stable(core) => core,
            Self::Window(core) => core,
            Self::Cuckoo(core) => core,
            Self::Quotient(core) => core,
            Self::Xor(_) | Self::Fuse(_) | Self::Fuse4(_) | Self::Ribbon(_) => {
                return Err(self.cannot("take keys once it is built"));
            }
        })
    }

    /// The core, if its family supports removal.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] if it does not.
    pub fn as_remove(&mut self) -> Result<&mut dyn Remove, Unsupported> {
        Ok(match self {
            Self::Counting(core) => core,
            Self::BlockedCounting(core) => core,
            Self::Cuckoo(core) => core,
            Self::Quotient(core) => core,
            _ => return Err(self.cannot("remove keys")),
        })
    }

    /// Inserts a digest. `Ok(true)` proves that it is new.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if the family does not support insertion, or there is no room. Nothing is
    /// changed then.
    pub fn insert_digest(&mut self, digest: Digest) -> Result<bool, ChangeError> {
        Ok(self.as_insert()?.insert_digest(digest)?)
    }

    /// As [`insert_digest`](Self::insert_digest), for many digests in order: `fresh[i]` is the
    /// answer for `digests[i]`.
    ///
    /// # Errors
    ///
    /// [`ChangeError::Unsupported`] if the family does not support insertion.
    /// [`ChangeError::BatchFull`] if there is no room for one of them. The keys before it are
    /// inserted. It and those after it are not inserted, and their answers are `false`.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    pub fn insert_digests(&mut self, digests: &[Digest], fresh: &mut [bool]) -> Result<(), ChangeError> {
        Ok(self.as_insert()?.insert_digests(digests, fresh)?)
    }

    /// Removes one insertion of a digest. `Ok(false)` proves that it is absent; nothing is changed
    /// then. Remove only digests that were inserted.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] if the family does not support removal.
    pub fn remove_digest(&mut self, digest: Digest) -> Result<bool, Unsupported> {
        Ok(self.as_remove()?.remove_digest(digest))
    }

    /// As [`remove_digest`](Self::remove_digest), for many digests in order: `removed[i]` is the
    /// answer for `digests[i]`.
    ///
    /// # Errors
    ///
    /// As [`remove_digest`](Self::remove_digest).
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    pub fn remove_digests(&mut self, digests: &[Digest], removed: &mut [bool]) -> Result<(), Unsupported> {
        match self {
            Self::Counting(core) => core.remove_each(digests, |digest| *digest, removed),
            Self::BlockedCounting(core) => core.remove_each(digests, |digest| *digest, removed),
            Self::Cuckoo(core) => core.remove_each(digests, |digest| *digest, removed),
            Self::Quotient(core) => core.remove_each(digests, |digest| *digest, removed),
            _ => return Err(self.cannot("remove keys")),
        }
        Ok(())
    }
} }

/// Calls the method of the family that combines two cores, if the hashers agree.
macro_rules! combine {
    ($one:expr, $other:expr, $hashers:expr, $what:literal; $($variant:ident . $method:ident,)*) => {
        match ($one, $other) {
            $((Any::$variant(one), Any::$variant(other)) => {
                $hashers?;
                Ok(one.$method(other)?)
            })*
            (one, other) => Err(one.not_both(other, $what)),
        }
    };
}

impl Any {
    /// The memory of the words, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        Core::bytes(self)
    }
}

/// Combining two cores.
impl Any {
    fn cannot(&self, what: &'static str) -> Unsupported {
        Unsupported { family: self.family(), what }
    }

    /// Why two cores cannot be combined.
    fn not_both(&self, other: &Self, what: &'static str) -> ChangeError {
        let (expected, got) = (self.family(), other.family());
        if expected == got {
            self.cannot(what).into()
        } else {
            ChangeError::Family { expected, got }
        }
    }

    /// Whether [`merge_with`](Self::merge_with) can merge the two: their family supports it, and
    /// they have the same shape. There may still be no room for the keys of both.
    #[must_use]
    pub fn is_compatible(&self, other: &Self) -> bool {
        let differs = match (self, other) {
            (Self::Bloom(one), Self::Bloom(other)) => one.fits(other),
            (Self::Blocked(one), Self::Blocked(other)) => one.fits(other),
            (Self::Split(one), Self::Split(other)) => one.fits(other),
            (Self::Counting(one), Self::Counting(other)) => one.fits(other),
            (Self::BlockedCounting(one), Self::BlockedCounting(other)) => one.fits(other),
            (Self::Cuckoo(one), Self::Cuckoo(other)) => one.compatible(other),
            (Self::Quotient(one), Self::Quotient(other)) => one.fits(other),
            _ => return false,
        };
        differs.is_ok()
    }

    /// Makes this the core of all digests that are in either of the two. In families that count,
    /// the counts of a digest are added.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if the family does not support it, the two differ, or there is no room.
    /// Nothing is changed then.
    pub fn merge_with(&mut self, other: &Self) -> Result<(), ChangeError> {
        self.merge(other, Ok(()))
    }

    /// As [`merge_with`](Self::merge_with), if the hashers agree.
    pub(super) fn merge(
        &mut self,
        other: &Self,
        hashers: Result<(), Incompatible>,
    ) -> Result<(), ChangeError> {
        combine!(self, other, hashers, "be merged";
            Bloom.union_with, Blocked.union_with, Split.union_with,
            Counting.union_with, BlockedCounting.union_with,
            Cuckoo.merge_with, Quotient.union_with,
        )
    }

    /// Keeps only the bits that are set in both cores. Digests that were inserted into both are
    /// still found. The false positive rate is at most that of either core before.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if the family does not support it, or the two differ. Nothing is changed
    /// then.
    pub fn intersect_with(&mut self, other: &Self) -> Result<(), ChangeError> {
        self.intersect(other, Ok(()))
    }

    /// As [`intersect_with`](Self::intersect_with), if the hashers agree.
    pub(super) fn intersect(
        &mut self,
        other: &Self,
        hashers: Result<(), Incompatible>,
    ) -> Result<(), ChangeError> {
        combine!(self, other, hashers, "be intersected";
            Bloom.intersect_with, Blocked.intersect_with, Split.intersect_with,
        )
    }
}
