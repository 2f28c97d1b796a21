//! One filter for each dimension: arrays of one type, tuples of up to eight.

use crate::error::{Full, Incompatible};
use crate::filter::{Contains, Edge, Insert, Remove, Union};
use crate::hash::Digest;

/// One filter for each dimension, for code that is generic over their number and types: `[F; N]`,
/// tuples of one to eight filters, or a struct of your own.
///
/// ```
/// use umbel::multi::{Dimensions, Multi};
/// use umbel::{BlockedBloomFilter, BloomFilter, Digest};
///
/// /// In how many dimensions something with this digest was seen.
/// fn seen<D: Dimensions>(dimensions: &D, digest: Digest) -> usize {
///     let filters = dimensions.filters();
///     filters.into_iter().filter(|filter| filter.contains_digest(digest)).count()
/// }
///
/// let (users, addresses) = (BlockedBloomFilter::<u64>::new(10, 1e-6), BloomFilter::new(10, 1e-6));
/// let mut logins = Multi::of((users, addresses));
/// logins.insert((&7, "192.0.2.1"))?;
/// assert_eq!(seen(logins.dimensions(), logins.digests((&7, "192.0.2.1"))[0]), 1);
/// # Ok::<(), umbel::Full>(())
/// ```
#[doc(hidden)]
pub trait Dimensions {
    /// The number of dimensions.
    const LEN: usize;

    /// One `X` for each dimension in order: `[X; LEN]`.
    type Each<X>: AsRef<[X]> + IntoIterator<Item = X>;

    /// The filter of each dimension.
    fn filters(&self) -> Self::Each<&dyn Contains>;

    /// Whether each dimension contains the digest that `digest` returns for its number. `None`
    /// counts as contained.
    fn find_each(&self, digest: impl Fn(usize) -> Option<Digest>) -> bool;
}

/// Dimensions that all implement [`Insert`].
#[doc(hidden)]
pub trait InsertEach: Dimensions {
    /// The filter of each dimension, mutably.
    fn filters_mut(&mut self) -> Self::Each<&mut dyn Insert>;

    /// Inserts a digest into each dimension. Returns whether it was certainly new in one of them.
    ///
    /// # Errors
    ///
    /// [`Full`] from the first dimension that has no room. The dimensions before it keep their
    /// digests; those after it are not changed.
    fn insert_each(&mut self, digests: &Self::Each<Digest>) -> Result<bool, Full>;
}

/// Dimensions that all implement [`Remove`].
#[doc(hidden)]
pub trait RemoveFromEach: Dimensions {
    /// Removes one insertion of a digest from each dimension, all of which must contain theirs.
    /// Returns whether all did so.
    fn remove_each(&mut self, digests: &Self::Each<Digest>) -> bool;
}

/// Dimensions that can all be united with others of the same type.
#[doc(hidden)]
pub trait UnionEach: Dimensions {
    /// Checks that each dimension can be united with its counterpart.
    ///
    /// # Errors
    ///
    /// [`Incompatible`] from the first that cannot.
    fn fits_each(&self, other: &Self) -> Result<(), Incompatible>;

    /// Unites each dimension with its counterpart.
    ///
    /// # Errors
    ///
    /// As [`fits_each`](Self::fits_each); nothing is changed then. A quotient filter may still have
    /// no room or no memory for both: the dimensions before it are then united already.
    fn unite_each(&mut self, other: &Self) -> Result<(), Incompatible>;
}

/// Dimensions that can all hash their keys to digests.
#[doc(hidden)]
pub trait EdgeEach: Dimensions {
    /// A key for each dimension: `[&K; N]`, or a tuple of references.
    type Record<'k>
    where
        Self: 'k;

    /// A key or `None` for each dimension: `[Option<&K>; N]`, or a tuple of options.
    type Query<'k>
    where
        Self: 'k;

    /// The digests of a record.
    fn digest_each<'k>(&self, record: Self::Record<'k>) -> Self::Each<Digest>
    where
        Self: 'k;

    /// The digests of the attributes of a query.
    fn digest_some<'k>(&self, query: Self::Query<'k>) -> Self::Each<Option<Digest>>
    where
        Self: 'k;
}

impl<F: Contains, const N: usize> Dimensions for [F; N] {
    const LEN: usize = N;
    type Each<X> = [X; N];

    fn filters(&self) -> [&dyn Contains; N] {
        self.each_ref().map(|filter| filter as _)
    }

    #[inline]
    fn find_each(&self, digest: impl Fn(usize) -> Option<Digest>) -> bool {
        let mut filters = self.iter().enumerate();
        filters.all(|(at, filter)| digest(at).is_none_or(|digest| filter.contains_digest(digest)))
    }
}

impl<F: Insert, const N: usize> InsertEach for [F; N] {
    fn filters_mut(&mut self) -> [&mut dyn Insert; N] {
        self.each_mut().map(|filter| filter as _)
    }

    #[inline]
    fn insert_each(&mut self, digests: &[Digest; N]) -> Result<bool, Full> {
        let mut fresh = false;
        for (filter, digest) in self.iter_mut().zip(digests) {
            fresh |= filter.insert_digest(*digest)?;
        }
        Ok(fresh)
    }
}

impl<F: Remove, const N: usize> RemoveFromEach for [F; N] {
    #[inline]
    fn remove_each(&mut self, digests: &[Digest; N]) -> bool {
        let filters = self.iter_mut().zip(digests);
        filters.fold(true, |all, (filter, digest)| filter.remove_digest(*digest) && all)
    }
}

impl<F: Union, const N: usize> UnionEach for [F; N] {
    fn fits_each(&self, other: &Self) -> Result<(), Incompatible> {
        self.iter().zip(other).try_for_each(|(filter, other)| filter.fits(other))
    }

    fn unite_each(&mut self, other: &Self) -> Result<(), Incompatible> {
        self.fits_each(other)?;
        self.iter_mut().zip(other).try_for_each(|(filter, other)| filter.union_with(other))
    }
}

impl<F: Edge, const N: usize> EdgeEach for [F; N] {
    type Record<'k>
        = [&'k F::Key; N]
    where
        Self: 'k;
    type Query<'k>
        = [Option<&'k F::Key>; N]
    where
        Self: 'k;

    #[inline]
    fn digest_each<'k>(&self, record: [&'k F::Key; N]) -> [Digest; N]
    where
        Self: 'k,
    {
        core::array::from_fn(|at| self[at].digest(record[at]))
    }

    #[inline]
    fn digest_some<'k>(&self, query: [Option<&'k F::Key>; N]) -> [Option<Digest>; N]
    where
        Self: 'k,
    {
        core::array::from_fn(|at| query[at].map(|key| self[at].digest(key)))
    }
}

/// Implements for tuples what arrays implement, field by field.
macro_rules! tuples {
    ($($len:literal: $($filter:ident $at:tt)*;)*) => {$(
        impl<$($filter: Contains),*> Dimensions for ($($filter,)*) {
            const LEN: usize = $len;
            type Each<X> = [X; $len];

            fn filters(&self) -> [&dyn Contains; $len] {
                [$(&self.$at),*]
            }

            #[inline]
            fn find_each(&self, digest: impl Fn(usize) -> Option<Digest>) -> bool {
                $(digest($at).is_none_or(|digest| self.$at.contains_digest(digest)))&&*
            }
        }

        impl<$($filter: Insert),*> InsertEach for ($($filter,)*) {
            fn filters_mut(&mut self) -> [&mut dyn Insert; $len] {
                [$(&mut self.$at),*]
            }

            #[inline]
            fn insert_each(&mut self, digests: &[Digest; $len]) -> Result<bool, Full> {
                let mut fresh = false;
                $(fresh |= self.$at.insert_digest(digests[$at])?;)*
                Ok(fresh)
            }
        }

        impl<$($filter: Remove),*> RemoveFromEach for ($($filter,)*) {
            #[inline]
            fn remove_each(&mut self, digests: &[Digest; $len]) -> bool {
                let mut all = true;
                $(all &= self.$at.remove_digest(digests[$at]);)*
                all
            }
        }

        impl<$($filter: Union),*> UnionEach for ($($filter,)*) {
            fn fits_each(&self, other: &Self) -> Result<(), Incompatible> {
                $(self.$at.fits(&other.$at)?;)*
                Ok(())
            }

            fn unite_each(&mut self, other: &Self) -> Result<(), Incompatible> {
                self.fits_each(other)?;
                $(self.$at.union_with(&other.$at)?;)*
                Ok(())
            }
        }

        impl<$($filter: Edge),*> EdgeEach for ($($filter,)*) {
            type Record<'k>
                = ($(&'k $filter::Key,)*)
            where
                Self: 'k;
            type Query<'k>
                = ($(Option<&'k $filter::Key>,)*)
            where
                Self: 'k;

            #[inline]
            fn digest_each<'k>(&self, record: Self::Record<'k>) -> [Digest; $len]
            where
                Self: 'k,
            {
                [$(self.$at.digest(record.$at)),*]
            }

            #[inline]
            fn digest_some<'k>(&self, query: Self::Query<'k>) -> [Option<Digest>; $len]
            where
                Self: 'k,
            {
                [$(query.$at.map(|key| self.$at.digest(key))),*]
            }
        }
    )*};
}

tuples! {
    1: A 0;
    2: A 0 B 1;
    3: A 0 B 1 C 2;
    4: A 0 B 1 C 2 D 3;
    5: A 0 B 1 C 2 D 3 E 4;
    6: A 0 B 1 C 2 D 3 E 4 F 5;
    7: A 0 B 1 C 2 D 3 E 4 F 5 G 6;
    8: A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7;
}
