//! The multi-dimensional filter: for records with several attributes, one filter for each
//! attribute.
//!
//! ```text
//!     record  ( "ada",     "192.0.2.1",     4711 )  --joint digest--.
//!                 |             |             |                     v
//!             [ users ]   [ addresses ]   [ ports ]            [ joint ]
//!              maybe    and   maybe    and  maybe      and       maybe   (if you want)
//! ```
//!
//! | bits per record | touches per look-up | remove | union | grow | can building fail |
//! |---|---|---|---|---|---|
//! | the sum over the dimensions | one look-up a dimension, until one is absent | as its filters | as its filters | as its filters | as its filters |
//!
//! Choose it when records are looked up by some of their attributes: `None` stands for any value.
//! Prefer one filter of whole records when every look-up has all attributes. The joint filter here
//! is such a filter.
//!
//! The array form is [`MultiBloomFilter<F, N>`](MultiBloomFilter), N dimensions of one type. The
//! tuple form is `Multi<(A, B, ...)>`, up to eight dimensions of any families and key types. Both
//! are [`Multi`], with the same methods.
//!
//! # Where it breaks
//!
//! **It answers for each attribute, not for the record.** A record is found if each of its
//! attributes was inserted, even if they were never in one record. This is not a hash collision,
//! but the limit of N separate filters. A [joint filter](Multi::with_joint) over whole records
//! removes such false positives, except at its own rate. It does not help queries with a `None`.
//!
//! A record with one new attribute is found at the false positive rate of that dimension, and a
//! record with only new attributes at the product of the rates. On the other hand, the probability
//! that *some* new attribute of a record is found is almost the sum of the rates: 0.087 for three
//! at 0.03 each.
//!
//! A dimension stores attributes, so plan each for its number of *different* attributes. A family
//! that supports removal stores an attribute again for every record, so common attributes fill it
//! up. Removing a record that was never inserted, but whose attributes were, removes those
//! attributes; a joint filter detects most such records. In dimensions that forget, each forgets
//! independently: a record is no longer found as soon as one of its attributes is forgotten.
//!
//! # Origin
//!
//! One filter per attribute is folklore. The number of dimensions as a compile-time constant,
//! iteration over them and code that is generic over it follow a report on a multi-dimensional
//! Bloom filter in Rust. That report measures 0.093 for three dimensions together at 0.03 each.
//!
//! ```
//! use umbel::multi::Multi;
//! use umbel::{BlockedBloomFilter, BloomFilter};
//!
//! let users = BloomFilter::<str>::new(1_000, 1e-6);
//! let ports = BlockedBloomFilter::<u16>::new(1_000, 1e-6);
//! let mut seen = Multi::of((users, ports));
//! assert_eq!(seen.insert(("ada", &22)), Ok(true)); // at least one attribute is certainly new
//! assert_eq!(seen.insert(("bob", &80)), Ok(true));
//! assert!(seen.matches((Some("ada"), None)));
//! assert!(!seen.matches((Some("eve"), None))); // false is proof
//! assert!(seen.contains(("ada", &80))); // each was seen, though never together
//!
//! let users = BloomFilter::<str>::new(1_000, 1e-6);
//! let ports = BloomFilter::<u16>::new(1_000, 1e-6);
//! let mut seen = Multi::with_joint((users, ports), BloomFilter::<u64>::new(1_000, 1e-6));
//! seen.insert(("ada", &22))?;
//! seen.insert(("bob", &80))?;
//! assert!(seen.contains(("ada", &22)));
//! assert!(!seen.contains(("ada", &80))); // the joint filter knows
//! assert!(seen.matches((Some("ada"), None)) && seen.matches((None, Some(&80))));
//! # Ok::<(), umbel::Full>(())
//! ```

#[cfg(feature = "alloc")]
mod bytes;
mod dimensions;
mod everything;

#[cfg(feature = "alloc")]
pub use bytes::{SavedEach, SavedJoint};
pub use dimensions::{Dimensions, EdgeEach, InsertEach, RemoveFromEach, UnionEach};
pub use everything::Everything;

use crate::error::{Full, Incompatible};
use crate::filter::{Contains, Insert, Remove, Union};
use crate::hash::Digest;

/// A filter of records, one filter for each of their attributes. `D` is an array or a tuple of
/// filters. `J` is a filter of whole records, or [`Everything`] if there is none.
///
/// The [module](crate::multi) describes it and says when to choose it.
#[derive(Clone, Debug, PartialEq)]
pub struct Multi<D, J = Everything> {
    dimensions: D,
    joint: J,
}

/// A filter of records of `N` attributes of one type, one filter `F` for each. The
/// [module](crate::multi) describes it and says when to choose it. [`Multi`] has its methods.
///
/// ```
/// use umbel::{ArrayBloomFilter, MultiBloomFilter, words_for};
///
/// type Axis = ArrayBloomFilter<i32, { words_for(100, 1e-6) }>; // no allocator needed
///
/// let mut points = MultiBloomFilter::<Axis, 3>::of([const { Axis::new(100, 1e-6) }; 3]);
/// assert_eq!(points.insert([&1, &2, &3]), Ok(true));
/// assert!(points.contains([&1, &2, &3]) && !points.contains([&3, &2, &1]));
/// assert!(points.matches([None, Some(&2), None]));
/// assert!(points.dimensions()[1].contains(&2)); // the same question to one dimension
/// for axis in &mut points {
///     axis.clear();
/// }
/// assert!(points.iter().all(Axis::is_empty));
/// ```
///
/// Zero dimensions do not compile:
///
/// ```compile_fail,E0080
/// let points = umbel::MultiBloomFilter::of([umbel::BloomFilter::<i32>::new(100, 0.01); 0]);
/// ```
pub type MultiBloomFilter<F, const N: usize, J = Everything> = Multi<[F; N], J>;

impl<D: Dimensions> Multi<D> {
    /// A filter of records with these dimensions and no joint filter.
    #[must_use]
    pub const fn of(dimensions: D) -> Self {
        Self::with_joint(dimensions, Everything)
    }
}

impl<D: Dimensions, J> Multi<D, J> {
    /// A filter of records with these dimensions and a joint filter for queries about whole
    /// records.
    ///
    /// Plan the joint filter for the number of different records. It stores their [joint
    /// digests](Digest::joint), so its key type has no meaning and its hasher is never used.
    #[must_use]
    pub const fn with_joint(dimensions: D, joint: J) -> Self {
        const { assert!(D::LEN > 0, "a record has at least one attribute") };
        Self { dimensions, joint }
    }
}

/// Access to the filters.
impl<D, J> Multi<D, J> {
    /// The filter of each dimension, for look-ups in a single dimension.
    #[must_use]
    pub const fn dimensions(&self) -> &D {
        &self.dimensions
    }

    /// The filter of each dimension, mutably. Keys that are inserted here belong to no record. Keys
    /// that are removed or cleared here are lost to all records that have them.
    #[must_use]
    pub const fn dimensions_mut(&mut self) -> &mut D {
        &mut self.dimensions
    }

    /// The filter of whole records.
    #[must_use]
    pub const fn joint(&self) -> &J {
        &self.joint
    }

    /// The filter of whole records, mutably.
    #[must_use]
    pub const fn joint_mut(&mut self) -> &mut J {
        &mut self.joint
    }

    /// The filters of the dimensions, and the filter of whole records.
    #[must_use]
    pub fn into_parts(self) -> (D, J) {
        (self.dimensions, self.joint)
    }
}

/// Look-ups.
impl<D: Dimensions, J: Contains> Multi<D, J> {
    /// The digests of a record, one for each dimension, by the hashers of the dimensions.
    #[must_use]
    #[inline]
    pub fn digests<'k>(&self, record: D::Record<'k>) -> D::Each<Digest>
    where
        D: EdgeEach + 'k,
    {
        self.dimensions.digest_each(record)
    }

    /// Whether the record may have been inserted. `false` proves that it was not: one of its
    /// attributes was never inserted, or the joint filter does not contain the record. `true` means
    /// that each attribute may have been inserted, and, if there is a joint filter, that they may
    /// have been inserted together.
    #[must_use]
    #[inline]
    pub fn contains<'k>(&self, record: D::Record<'k>) -> bool
    where
        D: EdgeEach + 'k,
    {
        self.contains_digests(&self.digests(record))
    }

    /// As [`contains`](Self::contains), for digests that were computed elsewhere.
    #[must_use]
    #[inline]
    pub fn contains_digests(&self, digests: &D::Each<Digest>) -> bool {
        let digests = digests.as_ref();
        self.joint.contains_digest(Digest::joint(digests))
            && self.dimensions.find_each(|at| Some(digests[at]))
    }

    /// Whether a record with these attributes may have been inserted, where `None` stands for any
    /// value. `false` proves that there was none. A query without `None` is the same as
    /// [`contains`](Self::contains). A query with only `None` always returns `true`.
    #[must_use]
    #[inline]
    pub fn matches<'k>(&self, query: D::Query<'k>) -> bool
    where
        D: EdgeEach + 'k,
    {
        self.matches_digests(&self.dimensions.digest_some(query))
    }

    /// As [`matches`](Self::matches), for digests that were computed elsewhere.
    #[must_use]
    #[inline]
    pub fn matches_digests(&self, digests: &D::Each<Option<Digest>>) -> bool {
        let digests = digests.as_ref();
        let whole = digests
            .iter()
            .try_fold(Digest::joint(&[]), |joint, digest| digest.map(|digest| joint.join(digest)));
        whole.is_none_or(|joint| self.joint.contains_digest(joint))
            && self.dimensions.find_each(|at| digests[at])
    }
}

/// Insertion.
impl<D: InsertEach, J: Insert> Multi<D, J> {
    /// Inserts a record. `Ok(true)` proves that it is new: an attribute is new, or the joint filter
    /// did not contain the record. `Ok(false)` means that [`contains`](Self::contains) already
    /// returned `true`.
    ///
    /// # Errors
    ///
    /// [`Full`] if a filter has no room. No record that was inserted before is lost. The dimensions
    /// before the full one keep the attributes of this record, so queries with only these
    /// attributes may find it. The joint filter comes last, so it does not contain the record.
    /// Inserting the record again, once there is room, is safe.
    #[inline]
    pub fn insert<'k>(&mut self, record: D::Record<'k>) -> Result<bool, Full>
    where
        D: EdgeEach + 'k,
    {
        self.insert_digests(&self.digests(record))
    }

    /// As [`insert`](Self::insert), for digests that were computed elsewhere.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    #[inline]
    pub fn insert_digests(&mut self, digests: &D::Each<Digest>) -> Result<bool, Full> {
        let fresh = self.dimensions.insert_each(digests)?;
        Ok(self.joint.insert_digest(Digest::joint(digests.as_ref()))? | fresh)
    }
}

/// Removal.
impl<D: RemoveFromEach, J: Remove> Multi<D, J> {
    /// Removes one insertion of a record. Returns `false` and changes nothing if the record cannot
    /// have been inserted.
    ///
    /// Remove only records that were inserted. Removing a false positive removes attributes of
    /// other records. Without a joint filter, every record whose attributes were each inserted is
    /// such a false positive.
    #[inline]
    pub fn remove<'k>(&mut self, record: D::Record<'k>) -> bool
    where
        D: EdgeEach + 'k,
    {
        self.remove_digests(&self.digests(record))
    }

    /// As [`remove`](Self::remove), for digests that were computed elsewhere.
    #[inline]
    pub fn remove_digests(&mut self, digests: &D::Each<Digest>) -> bool {
        let joint = Digest::joint(digests.as_ref());
        self.contains_digests(digests)
            && self.dimensions.remove_each(digests) & self.joint.remove_digest(joint)
    }
}

/// Union.
impl<D: UnionEach, J: Union> Multi<D, J> {
    /// Makes this the filter of all records that were inserted into either of the two.
    ///
    /// # Errors
    ///
    /// [`Incompatible`] if the filters of one dimension, or the joint filters, are not compatible.
    /// Nothing is changed then. A compatible [quotient filter](crate::quotient) may still have no
    /// room or no memory for both ([`Incompatible::Room`], [`Incompatible::OutOfMemory`]). The
    /// dimensions before it are then united already. No key is lost, but do not unite the same two
    /// filters again.
    pub fn union_with(&mut self, other: &Self) -> Result<(), Incompatible> {
        self.joint.fits(&other.joint)?;
        self.dimensions.unite_each(&other.dimensions)?;
        self.joint.union_with(&other.joint)
    }
}

/// Methods if all dimensions have one type.
impl<F, const N: usize, J> MultiBloomFilter<F, N, J> {
    /// The filters of the dimensions in order.
    pub fn iter(&self) -> core::slice::Iter<'_, F> {
        self.dimensions.iter()
    }

    /// The filters of the dimensions in order, mutably: see
    /// [`dimensions_mut`](Self::dimensions_mut).
    pub fn iter_mut(&mut self) -> core::slice::IterMut<'_, F> {
        self.dimensions.iter_mut()
    }
}

/// The filters of the dimensions in order. A joint filter is dropped;
/// [`into_parts`](Multi::into_parts) keeps it.
impl<F, const N: usize, J> IntoIterator for MultiBloomFilter<F, N, J> {
    type Item = F;
    type IntoIter = core::array::IntoIter<F, N>;

    fn into_iter(self) -> Self::IntoIter {
        self.dimensions.into_iter()
    }
}

impl<'a, F, const N: usize, J> IntoIterator for &'a MultiBloomFilter<F, N, J> {
    type Item = &'a F;
    type IntoIter = core::slice::Iter<'a, F>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, F, const N: usize, J> IntoIterator for &'a mut MultiBloomFilter<F, N, J> {
    type Item = &'a mut F;
    type IntoIter = core::slice::IterMut<'a, F>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}
