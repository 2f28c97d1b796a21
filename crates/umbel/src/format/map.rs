//! Filters that are used where they are, in a file. An island of `unsafe`: the words of a file are
//! memory that other programs could change.
//!
//! ```text
//!     header | words ............................ | checksums        the file
//!              ^ the filter looks at these            ^ asked by `verify`
//! ```
//!
//! The way that needs no promise is [`load`](super::Saved::load), which copies.

use super::blocks::{self, BLOCK, Sums};
use super::bytes::{self, Secret};
use super::family::Family;
use super::file;
use super::header::{self, Header};
use super::{OpenError, Opening};
use crate::bloom::Bloom;
use crate::error::{BatchFull, Full, Incompatible, InvalidBytes};
use crate::filter::{Edge, Filter, Insert};
use crate::frozen::{Frozen, StoredArrangement};
use crate::hash::{Digest, Digester};
use crate::layout::StoredLayout;
use crate::parts::bits::{AtomicU64, Word};
use crate::ribbon::{RibbonMap, Value};
use crate::storage::{Heap, Own, Shared, SharedHeap, Storage, StorageMut};
use core::borrow::Borrow;
use core::convert::Infallible;
use core::fmt;
use core::ops::Deref;
use core::sync::atomic::Ordering::Relaxed;
use memmap2::{MmapOptions, MmapRaw};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// A filter whose file can be used in place: its words are looked at as they are there.
pub trait Mappable: Family {
    /// The same filter with its words in a file.
    type Mapped: Family<Hasher = Self::Hasher, Storage = Own<FileWords>>;
}

impl<T: ?Sized, H: super::Stored<T>, L: StoredLayout> Mappable for Bloom<T, H, Heap, L> {
    type Mapped = Bloom<T, H, Own<FileWords>, L>;
}

impl<T: ?Sized, H: super::Stored<T>, A: StoredArrangement> Mappable for Frozen<T, H, A, Heap> {
    type Mapped = Frozen<T, H, A, Own<FileWords>>;
}

impl<T: ?Sized, V: Value, H: super::Stored<T>> Mappable for RibbonMap<T, V, H, Heap> {
    type Mapped = RibbonMap<T, V, H, Own<FileWords>>;
}

/// A filter whose file can be changed in place: bits are only ever set, so whatever part of them is on
/// the disk when the power fails, nothing is lost that was there before.
pub trait MappableMut: Family {
    /// The same filter with its words in a file, to be changed.
    type MappedMut: Family<Hasher = Self::Hasher, Storage: Writes>;
}

impl<T: ?Sized, H: super::Stored<T>, L: StoredLayout> MappableMut for Bloom<T, H, Heap, L> {
    type MappedMut = Bloom<T, H, Own<FileWordsMut>, L>;
}

impl<T: ?Sized, H: super::Stored<T>, L: StoredLayout> MappableMut for Bloom<T, H, SharedHeap, L> {
    type MappedMut = Bloom<T, H, Shared<FileWordsMut>, L>;
}

/// Storage for words that are changed in a file. Sealed, as all storage is.
pub trait Writes: sealed::OfWords {}

mod sealed {
    pub trait OfWords {
        fn of_words(words: super::FileWordsMut) -> Self;
    }
}

impl sealed::OfWords for Own<FileWordsMut> {
    fn of_words(words: FileWordsMut) -> Self {
        Self(words)
    }
}

impl sealed::OfWords for Shared<FileWordsMut> {
    fn of_words(words: FileWordsMut) -> Self {
        Self(words)
    }
}

impl Writes for Own<FileWordsMut> {}
impl Writes for Shared<FileWordsMut> {}

/// A file that is mapped whole, and locked for as long.
#[derive(Debug)]
struct Mapping {
    memory: MmapRaw,
    _file: Locked,
}

/// A locked file. Dropping it releases the lock.
///
/// Closing the file would not be enough: a process that another thread is starting has inherited it, and keeps the lock until
/// it runs its own program.
#[derive(Debug)]
struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

impl Mapping {
    /// The bytes from `start` to `end`, which are inside.
    #[allow(unsafe_code, reason = "words of a file are memory")]
    fn bytes(&self, start: u64, end: u64) -> &[u8] {
        assert!(start <= end && end <= self.memory.len() as u64, "a part of the file");
        // SAFETY: the range is inside the mapping, which lives as long as the result. Whoever mapped the
        // file promised that nobody changes it; this library writes only through `&mut MappedMut`.
        unsafe {
            core::slice::from_raw_parts(
                self.memory.as_ptr().add(start as usize),
                (end - start) as usize,
            )
        }
    }

    /// Writes bytes outside of the words.
    #[allow(unsafe_code, reason = "words of a file are memory")]
    fn write(&self, at: u64, bytes: &[u8]) {
        let end = at + bytes.len() as u64;
        assert!(end <= self.memory.len() as u64, "a part of the file");
        // SAFETY: the range is inside the mapping, which is writable: only `MappedMut` writes. It calls
        // this through `&mut`, and nobody has a reference to bytes outside of the words then.
        unsafe {
            let to = self.memory.as_mut_ptr().add(at as usize);
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
    }
}

/// The words of a file.
pub struct FileWords {
    mapping: Arc<Mapping>,
    len: usize,
}

impl fmt::Debug for FileWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileWords").field("len", &self.len).finish()
    }
}

impl AsRef<[u64]> for FileWords {
    #[inline(always)]
    #[allow(unsafe_code, reason = "words of a file are memory")]
    fn as_ref(&self) -> &[u64] {
        // SAFETY: there are `len` words behind the header, which was checked when this was made; the
        // header is a multiple of 64 bytes behind the start of a page, so they are aligned. Any bits are
        // a word, and whoever mapped the file promised that nobody changes them.
        unsafe {
            let first = self.mapping.memory.as_ptr().add(header::LEN).cast();
            core::slice::from_raw_parts(first, self.len)
        }
    }
}

/// The words of a file, to be changed.
pub struct FileWordsMut(FileWords);

impl fmt::Debug for FileWordsMut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileWordsMut").field("len", &self.0.len).finish()
    }
}

impl FileWordsMut {
    fn first(&self) -> *mut u8 {
        self.0.mapping.memory.as_mut_ptr().wrapping_add(header::LEN)
    }
}

impl AsRef<[u64]> for FileWordsMut {
    #[inline(always)]
    fn as_ref(&self) -> &[u64] {
        self.0.as_ref()
    }
}

impl AsMut<[u64]> for FileWordsMut {
    #[inline(always)]
    #[allow(unsafe_code, reason = "words of a file are memory")]
    fn as_mut(&mut self) -> &mut [u64] {
        // SAFETY: as for `FileWords`; the mapping is writable, and there is one `FileWordsMut` of it.
        unsafe { core::slice::from_raw_parts_mut(self.first().cast(), self.0.len) }
    }
}

impl AsRef<[AtomicU64]> for FileWordsMut {
    #[inline(always)]
    #[allow(unsafe_code, reason = "words of a file are memory")]
    fn as_ref(&self) -> &[AtomicU64] {
        // SAFETY: as for `FileWords`. A storage is `Own` or `Shared` and so uses one of the two ways
        // only; atomic words may be changed through any number of references.
        unsafe { core::slice::from_raw_parts(self.first().cast(), self.0.len) }
    }
}

impl AsMut<[AtomicU64]> for FileWordsMut {
    #[inline(always)]
    #[allow(unsafe_code, reason = "words of a file are memory")]
    fn as_mut(&mut self) -> &mut [AtomicU64] {
        // SAFETY: as above, and there is one `FileWordsMut` of a mapping.
        unsafe { core::slice::from_raw_parts_mut(self.first().cast(), self.0.len) }
    }
}

/// Which lock is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

/// The header of a file, what it says, and its mapping.
fn open<F: Family>(
    path: &Path,
    access: Access,
    limit: u64,
    unfinished: bool,
) -> Result<(Header, F::Plan, Mapping), OpenError> {
    if cfg!(target_endian = "big") {
        return Err(io::Error::from(io::ErrorKind::Unsupported).into());
    }
    let mut options = OpenOptions::new();
    options.read(true).write(access == Access::Write);
    let (file, length) = file::open_as(path, &options)?;
    let locked = match access {
        Access::Read => file.try_lock_shared(),
        Access::Write => file.try_lock(),
    };
    locked.map_err(io::Error::from)?;
    let mut file = Locked(file);
    let (header, plan) = file::header_of::<F>(&mut file.0, length, limit)?;
    if header.open && !unfinished {
        return Err(InvalidBytes::Open.into());
    }
    let memory = match access {
        Access::Read => MmapOptions::new().map_raw_read_only(&file.0)?,
        Access::Write => MmapOptions::new().map_raw(&file.0)?,
    };
    if memory.len() as u64 != length {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Ok((header, plan, Mapping { memory, _file: file }))
}

/// The words of a mapping, if they are as many.
fn words_of(
    mapping: &Arc<Mapping>,
    header: &Header,
    count: u64,
) -> Result<FileWords, InvalidBytes> {
    if count != header.payload / 8 {
        return Err(InvalidBytes::Inconsistent);
    }
    Ok(FileWords { mapping: mapping.clone(), len: count as usize })
}

/// A filter in a file, which answers from there. It has all methods of the filter that only read.
pub struct Mapped<F: Mappable> {
    filter: F::Mapped,
    mapping: Arc<Mapping>,
    header: Header,
    /// Whether the table of checksums is what the header says.
    table: OnceLock<Result<(), InvalidBytes>>,
}

impl<F: Mappable> Mapped<F> {
    /// Whether everything is as it was written. Reads the whole file.
    ///
    /// # Errors
    ///
    /// What was changed since.
    pub fn verify(&self) -> Result<(), InvalidBytes> {
        (0..self.blocks()).try_for_each(|number| self.verify_block(number))?;
        self.filter.audit()
    }

    /// How many blocks of 8 KiB the words are.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        blocks::count(self.header.payload)
    }

    /// Whether one block is as it was written. The first time this reads all checksums, a thousandth of
    /// the file.
    ///
    /// # Errors
    ///
    /// [`InvalidBytes::Block`] if it was changed since, [`InvalidBytes::Table`] if the checksums were.
    ///
    /// # Panics
    ///
    /// If there is no such block.
    pub fn verify_block(&self, number: u64) -> Result<(), InvalidBytes> {
        assert!(number < self.blocks(), "there are {} blocks", self.blocks());
        let (first, end) = (header::LEN as u64, header::LEN as u64 + self.header.payload);
        let table = self.mapping.bytes(end, end + self.blocks() * 8);
        let sums = Sums { header: &self.header, table, unfinished: false };
        (*self.table.get_or_init(|| sums.verify_table()))?;
        let start = first + number * BLOCK as u64;
        let block = self.mapping.bytes(start, end.min(start + BLOCK as u64));
        sums.verify(number, block)
    }
}

impl<F: Mappable> Deref for Mapped<F> {
    type Target = F::Mapped;

    #[inline]
    fn deref(&self) -> &F::Mapped {
        &self.filter
    }
}

impl<F: Mappable<Mapped: fmt::Debug>> fmt::Debug for Mapped<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Mapped").field(&self.filter).finish()
    }
}

/// A filter in a file that is changed there. It has all methods of the filter that only read, and those
/// that only set bits.
///
/// It gives no `&mut` to the filter inside. Clearing or intersecting would lose keys that are on the disk
/// already, and a filter that was swapped with that of another file would be flushed with the checksums of
/// the wrong words:
///
/// ```compile_fail,E0596
/// # use umbel::format::MappedMut;
/// # use umbel::BloomFilter;
/// fn forget(file: &mut MappedMut<BloomFilter<u64>>) {
///     file.clear();
/// }
/// ```
///
/// ```compile_fail,E0596
/// # use umbel::format::MappedMut;
/// # use umbel::BloomFilter;
/// fn swap(one: &mut MappedMut<BloomFilter<u64>>, other: &mut MappedMut<BloomFilter<u64>>) {
///     std::mem::swap(&mut **one, &mut **other);
/// }
/// ```
///
/// From the moment it is opened until [`close`](Self::close), the header says that the file is being
/// changed. If the process ends before `close`, the file opens as long as nothing was inserted after the
/// last [`flush`](Self::flush). Otherwise it opens with [`Opening::unfinished`] only.
pub struct MappedMut<F: MappableMut> {
    filter: F::MappedMut,
    mapping: Arc<Mapping>,
    /// Whether the secret of the hasher is in the file.
    secret: Secret,
}

impl<F: MappableMut> MappedMut<F> {
    /// Returns when all that was inserted is on the disk, with its checksums.
    ///
    /// # Errors
    ///
    /// What the file system says. What is on the disk then has all that was there at the last flush
    /// that went well.
    pub fn flush(&mut self) -> io::Result<()> {
        self.seal(true)
    }

    /// As [`flush`](Self::flush), and the file says that nobody is changing it any more.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush).
    pub fn close(mut self) -> io::Result<()> {
        self.flush()?;
        self.seal(false)
    }

    /// Brings the words to the disk, then what belongs to them.
    fn seal(&mut self, open: bool) -> io::Result<()> {
        self.mapping.memory.flush()?;
        let Ok((payload, table)) =
            bytes::for_blocks(&self.filter, &mut |_| Ok::<(), Infallible>(()));
        let header = bytes::header_of(&self.filter, self.secret, payload, &table);
        self.mapping.write(header::LEN as u64 + payload, &table);
        self.mapping.write(0, &Header { open, ..header }.encode());
        self.mapping.memory.flush()
    }
}

impl<F: MappableMut> Deref for MappedMut<F> {
    type Target = F::MappedMut;

    #[inline]
    fn deref(&self) -> &F::MappedMut {
        &self.filter
    }
}

/// For one thread to change.
impl<T, H, L> MappedMut<Bloom<T, H, Heap, L>>
where
    T: ?Sized,
    H: super::Stored<T>,
    L: StoredLayout,
{
    /// As [`Bloom::insert`](Bloom#method.insert).
    #[inline]
    pub fn insert<Q>(&mut self, key: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: ?Sized,
        H: Digester<Q, L::Digest>,
    {
        self.filter.insert(key)
    }

    /// As [`insert`](Self::insert), for a key that was digested elsewhere.
    #[inline]
    pub fn insert_digest(&mut self, digest: L::Digest) -> bool {
        self.filter.insert_digest(digest)
    }

    /// As [`insert`](Self::insert), for many keys in their order: `fresh[i]` is the answer for
    /// `keys[i]`.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[inline]
    pub fn insert_batch<A>(&mut self, keys: &[A], fresh: &mut [bool])
    where
        A: Borrow<T>,
        H: Digester<T, L::Digest>,
    {
        self.filter.insert_batch(keys, fresh);
    }

    /// As [`insert_batch`](Self::insert_batch), for keys that were digested elsewhere.
    #[inline]
    pub fn insert_digests(&mut self, digests: &[L::Digest], fresh: &mut [bool]) {
        self.filter.insert_digests(digests, fresh);
    }

    /// Inserts all keys that were inserted into the other filter, which may be in memory or in a file.
    ///
    /// # Errors
    ///
    /// [`Incompatible`] if they differ in bits, probes, kernels or hasher. Nothing is changed then.
    pub fn union_with<S: Storage>(&mut self, other: &Bloom<T, H, S, L>) -> Result<(), Incompatible>
    where
        H: Digester<T, L::Digest>,
    {
        self.filter.compatible(other)?;
        for (word, other) in self.filter.storage.words_mut().iter_mut().zip(other.storage.words()) {
            *word |= other.load();
        }
        Ok(())
    }

    /// Sets every bit that `words` have, which are those of a filter of the same shape and hasher from
    /// word `first` on.
    ///
    /// # Panics
    ///
    /// If there are not as many words from `first` on.
    pub fn union_with_words(&mut self, first: usize, words: &[u64]) {
        self.filter.union_with_words(first, words);
    }
}

/// For many threads to change.
impl<T, H, L> MappedMut<Bloom<T, H, SharedHeap, L>>
where
    T: ?Sized,
    H: super::Stored<T>,
    L: StoredLayout,
{
    /// As `insert` of a filter for [many threads](crate::atomic) in memory.
    #[inline]
    pub fn insert<Q>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: ?Sized,
        H: Digester<Q, L::Digest>,
    {
        self.filter.insert(key)
    }

    /// As [`insert`](Self::insert), for a key that was digested elsewhere.
    #[inline]
    pub fn insert_digest(&self, digest: L::Digest) -> bool {
        self.filter.insert_digest(digest)
    }

    /// As [`insert`](Self::insert), for many keys in their order: `fresh[i]` is the answer for
    /// `keys[i]`.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[inline]
    pub fn insert_batch<A>(&self, keys: &[A], fresh: &mut [bool])
    where
        A: Borrow<T>,
        H: Digester<T, L::Digest>,
    {
        self.filter.insert_batch(keys, fresh);
    }

    /// As [`insert_batch`](Self::insert_batch), for keys that were digested elsewhere.
    #[inline]
    pub fn insert_digests(&self, digests: &[L::Digest], fresh: &mut [bool]) {
        self.filter.insert_digests(digests, fresh);
    }

    /// Inserts all keys that were inserted into the other filter, which may be in memory or in a file.
    ///
    /// # Errors
    ///
    /// [`Incompatible`] if they differ in bits, probes, kernels or hasher. Nothing is changed then.
    pub fn union_with<S: Storage>(&self, other: &Bloom<T, H, S, L>) -> Result<(), Incompatible>
    where
        H: Digester<T, L::Digest>,
    {
        self.filter.compatible(other)?;
        for (word, other) in self.filter.storage.words().iter().zip(other.storage.words()) {
            word.fetch_or(other.load(), Relaxed);
        }
        Ok(())
    }
}

/// Keys are inserted in batches; whether they were new is not told.
impl<A, T, H, L> Extend<A> for MappedMut<Bloom<T, H, Heap, L>>
where
    A: Borrow<T>,
    T: ?Sized,
    H: Digester<T, L::Digest> + super::Stored<T>,
    L: StoredLayout,
{
    fn extend<I: IntoIterator<Item = A>>(&mut self, keys: I) {
        self.filter.extend(keys);
    }
}

/// Keys are inserted in batches; whether they were new is not told. Many threads may do this at once,
/// each with a `&` of its own.
impl<A, T, H, L> Extend<A> for &MappedMut<Bloom<T, H, SharedHeap, L>>
where
    A: Borrow<T>,
    T: ?Sized,
    H: Digester<T, L::Digest> + super::Stored<T>,
    L: StoredLayout,
{
    fn extend<I: IntoIterator<Item = A>>(&mut self, keys: I) {
        (&self.filter).extend(keys);
    }
}

impl<F: Mappable<Mapped: Filter>> Filter for Mapped<F> {
    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.filter.contains_digest(digest)
    }
}

impl<F: Mappable<Mapped: Edge>> Edge for Mapped<F> {
    type Key = <F::Mapped as Edge>::Key;

    #[inline]
    fn digest(&self, key: &Self::Key) -> Digest {
        self.filter.digest(key)
    }
}

impl<F: MappableMut<MappedMut: Filter>> Filter for MappedMut<F> {
    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.filter.contains_digest(digest)
    }
}

impl<F: MappableMut<MappedMut: Edge>> Edge for MappedMut<F> {
    type Key = <F::MappedMut as Edge>::Key;

    #[inline]
    fn digest(&self, key: &Self::Key) -> Digest {
        self.filter.digest(key)
    }
}

impl<F: MappableMut<MappedMut: Insert>> Insert for MappedMut<F> {
    /// Never [`Full`].
    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        self.filter.insert_digest(digest)
    }

    /// Never [`BatchFull`].
    #[inline]
    fn insert_digests(&mut self, digests: &[Digest], fresh: &mut [bool]) -> Result<(), BatchFull> {
        self.filter.insert_digests(digests, fresh)
    }
}

impl<F: MappableMut<MappedMut: fmt::Debug>> fmt::Debug for MappedMut<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MappedMut").field(&self.filter).finish()
    }
}

/// Using files where they are.
impl<H> Opening<H> {
    /// The filter at `path`, which answers from the file: nothing is read but what it is asked for.
    /// [`Mapped::verify`] tells whether the file is as it was written; until then that is not known.
    ///
    /// The file is locked against those who would change it in place, as far as they take locks.
    /// Replacing it, as [`save`](super::Saved::save) does, is no change: the old file lives on until the
    /// last mapping of it is gone.
    ///
    /// # Errors
    ///
    /// See [`OpenError`]; [`io::ErrorKind::WouldBlock`] if somebody is changing it in place.
    ///
    /// # Safety
    ///
    /// Nobody may change the file in place or cut it off while it is mapped. The answers would be
    /// undefined if it is changed, and the process killed by SIGBUS if it is asked for a part that was
    /// cut off.
    #[allow(unsafe_code, reason = "the caller must promise something")]
    pub unsafe fn map<F>(self, path: impl AsRef<Path>) -> Result<Mapped<F>, OpenError>
    where
        F: Mappable<Hasher = H>,
    {
        let (header, plan, mapping) =
            open::<F::Mapped>(path.as_ref(), Access::Read, self.limit, self.unfinished)?;
        let hasher = bytes::hasher::<F::Mapped>(&header, self.hasher)?;
        let mapping = Arc::new(mapping);
        let filter = F::Mapped::assemble(plan, &header, hasher, &mut |count| {
            words_of(&mapping, &header, count).map(Own)
        })?;
        bytes::agree(&filter, &header)?;
        Ok(Mapped { filter, mapping, header, table: OnceLock::new() })
    }

    /// The filter at `path`, to be changed where it is: see [`MappedMut`].
    ///
    /// # Errors
    ///
    /// See [`OpenError`]; [`io::ErrorKind::WouldBlock`] if somebody has it mapped.
    ///
    /// # Safety
    ///
    /// As [`map`](Self::map): nobody else may change the file or cut it off while it is mapped.
    #[allow(unsafe_code, reason = "the caller must promise something")]
    pub unsafe fn map_mut<F>(self, path: impl AsRef<Path>) -> Result<MappedMut<F>, OpenError>
    where
        F: MappableMut<Hasher = H>,
    {
        let (header, plan, mapping) =
            open::<F::MappedMut>(path.as_ref(), Access::Write, self.limit, self.unfinished)?;
        let hasher = bytes::hasher::<F::MappedMut>(&header, self.hasher)?;
        let mapping = Arc::new(mapping);
        let filter = F::MappedMut::assemble(plan, &header, hasher, &mut |count| {
            let words = FileWordsMut(words_of(&mapping, &header, count)?);
            Ok::<_, InvalidBytes>(sealed::OfWords::of_words(words))
        })?;
        bytes::agree(&filter, &header)?;
        let secret = if header.secret.is_some() { Secret::Kept } else { Secret::Left };
        // Before the first bit is changed, it is on the disk that one may be.
        mapping.write(0, &Header { open: true, ..header }.encode());
        mapping.memory.flush_range(0, header::LEN)?;
        Ok(MappedMut { filter, mapping, secret })
    }
}
