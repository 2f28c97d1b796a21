//! Filters in memory-mapped files. An island of `unsafe`: the words of a file are memory that other
//! programs could change.
//!
//! ```text
//!     header | words ............................ | checksums        the file
//!              ^ the filter looks at these            ^ asked by `verify`
//! ```
//!
//! A filter in a file is an ordinary [`Filter`] whose words are in a mapping, so it has all methods
//! that only read. A filter that is changed in its file also has the methods that set bits.
//!
//! The alternative that needs no promise is [`load`](super::Saved::load), which copies.

use super::blocks::{self, BLOCK, Sums};
use super::bytes;
use super::family::{Family, Stored, StoredCore};
use super::file;
use super::header::{self, Header};
use super::{OpenError, Opening};
use crate::bloom::RawBloom;
use crate::edge::Filter;
use crate::error::InvalidBytes;
use crate::frozen::{RawFrozen, StoredArrangement};
use crate::layout::StoredLayout;
use crate::parts::bits::AtomicU64;
use crate::ribbon::{RawRibbonMap, Value};
use crate::storage::{Heap, Own, Shared, SharedHeap, Storage};
use core::convert::Infallible;
use core::fmt;
use memmap2::{MmapOptions, MmapRaw};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::OnceLock;

/// A filter whose file can be used in place, without a conversion of its words.
#[doc(hidden)]
pub trait Mappable: Family {
    /// The same filter with its words in a file.
    type Mapped: Family<Hasher = Self::Hasher, Storage = Own<FileWords>>;
}

/// A filter whose file can be changed in place. Bits are only ever set, so a power failure never
/// loses keys that were on the disk before.
#[doc(hidden)]
pub trait MappableMut: Family {
    /// The same filter with its words in a writable file.
    type MappedMut: Family<Hasher = Self::Hasher, Storage: Writes>;

    #[doc(hidden)]
    fn file(mapped: &Self::MappedMut) -> &FileWords;
}

/// A filter `F` in a file, which answers from there. It has all methods of the filter that only
/// read, and methods that check the file: [`verify`](Filter::verify) and others.
pub type Mapped<F> = <F as Mappable>::Mapped;

/// A filter `F` in a file that is changed there. It has all methods of the filter that only read,
/// those that only set bits, and [`flush`](Filter::flush) and [`close`](Filter::close).
///
/// It cannot be cleared or intersected, which would lose keys that are already on the disk:
///
/// ```compile_fail,E0599
/// # use umbel::format::MappedMut;
/// # use umbel::BloomFilter;
/// fn forget(file: &mut MappedMut<BloomFilter<u64>>) {
///     file.clear();
/// }
/// ```
///
/// From the moment it is opened until [`close`](Filter::close), the header says that the file is
/// being changed. If the process ends before `close`, the file opens if no key was inserted after
/// the last [`flush`](Filter::flush). Otherwise it opens only with [`Opening::unfinished`].
pub type MappedMut<F> = <F as MappableMut>::MappedMut;

/// A core whose words may be in a file.
#[doc(hidden)]
pub trait MappableCore: StoredCore {
    type Mapped: StoredCore<Storage = Own<FileWords>> + InFile;
}

/// A core whose words may be changed in a file.
#[doc(hidden)]
pub trait MappableMutCore: StoredCore {
    type MappedMut: StoredCore<Storage: Writes>;

    fn file(mapped: &Self::MappedMut) -> &FileWords;
}

/// A core whose words are in a file.
#[doc(hidden)]
pub trait InFile: StoredCore {
    fn file(&self) -> &FileWords;
}

impl<T: ?Sized, H: Stored<T>, C: MappableCore> Mappable for Filter<T, H, C> {
    type Mapped = Filter<T, H, C::Mapped>;
}

impl<T: ?Sized, H: Stored<T>, C: MappableMutCore> MappableMut for Filter<T, H, C> {
    type MappedMut = Filter<T, H, C::MappedMut>;

    fn file(mapped: &Self::MappedMut) -> &FileWords {
        C::file(&mapped.raw)
    }
}

/// Cores with one run of words.
macro_rules! mappable {
    ($([$($generics:tt)*] $heap:ty => $mapped:ty;)*) => {$(
        impl<$($generics)*> MappableCore for $heap {
            type Mapped = $mapped;
        }

        impl<$($generics)*> InFile for $mapped {
            fn file(&self) -> &FileWords {
                &self.storage.0
            }
        }
    )*};
}

mappable! {
    [L: StoredLayout] RawBloom<Heap, L> => RawBloom<Own<FileWords>, L>;
    [A: StoredArrangement] RawFrozen<A, Heap> => RawFrozen<A, Own<FileWords>>;
    [V: Value] RawRibbonMap<V, Heap> => RawRibbonMap<V, Own<FileWords>>;
}

impl<L: StoredLayout> MappableMutCore for RawBloom<Heap, L> {
    type MappedMut = RawBloom<Own<FileWordsMut>, L>;

    fn file(mapped: &Self::MappedMut) -> &FileWords {
        mapped.storage.file()
    }
}

impl<L: StoredLayout> MappableMutCore for RawBloom<SharedHeap, L> {
    type MappedMut = RawBloom<Shared<FileWordsMut>, L>;

    fn file(mapped: &Self::MappedMut) -> &FileWords {
        mapped.storage.file()
    }
}

/// Storage for words that are changed in a file. Sealed, like all storage.
#[doc(hidden)]
pub trait Writes: Storage {
    fn of_words(words: FileWordsMut) -> Self;

    fn file(&self) -> &FileWords;
}

impl Writes for Own<FileWordsMut> {
    fn of_words(words: FileWordsMut) -> Self {
        Self(words)
    }

    fn file(&self) -> &FileWords {
        &self.0.0
    }
}

impl Writes for Shared<FileWordsMut> {
    fn of_words(words: FileWordsMut) -> Self {
        Self(words)
    }

    fn file(&self) -> &FileWords {
        &self.0.0
    }
}

/// A file that is mapped completely, and locked while it is mapped.
#[derive(Debug)]
struct Mapping {
    memory: MmapRaw,
    _file: Locked,
}

/// A locked file. Dropping it releases the lock.
///
/// Closing the file would not be enough: a process that another thread is starting has inherited
/// it, and keeps the lock until it executes its own program.
#[derive(Debug)]
struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

impl Mapping {
    /// The bytes from `start` to `end`, which must be inside the mapping.
    #[allow(unsafe_code, reason = "words of a file are memory")]
    fn bytes(&self, start: u64, end: u64) -> &[u8] {
        assert!(start <= end && end <= self.memory.len() as u64, "a part of the file");
        // SAFETY: the range is inside the mapping, which lives as long as the result. The caller of
        // the mapping function promised that no other process changes the file; this library writes
        // only words, and checksums through `&mut` of a filter.
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
        // SAFETY: the range is inside the mapping, which is writable: only filters of
        // `FileWordsMut` write. They call this through `&mut`, and there are no references to bytes
        // outside of the words then.
        unsafe {
            let to = self.memory.as_mut_ptr().add(at as usize);
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
    }
}

/// The words of a file.
pub struct FileWords {
    mapping: Mapping,
    header: Header,
    /// Whether the table of checksums matches the header.
    table: OnceLock<Result<(), InvalidBytes>>,
}

impl FileWords {
    /// The words of a mapping, if their number is right.
    fn new(mapping: Mapping, header: Header, count: u64) -> Result<Self, InvalidBytes> {
        if count != header.payload / 8 {
            return Err(InvalidBytes::Inconsistent);
        }
        Ok(Self { mapping, header, table: OnceLock::new() })
    }

    fn len(&self) -> usize {
        (self.header.payload / 8) as usize
    }

    fn blocks(&self) -> u64 {
        blocks::count(self.header.payload)
    }

    fn verify_block(&self, number: u64) -> Result<(), InvalidBytes> {
        assert!(number < self.blocks(), "there are {} blocks", self.blocks());
        let (first, end) = (header::LEN as u64, header::LEN as u64 + self.header.payload);
        let table = self.mapping.bytes(end, end + self.blocks() * 8);
        let sums = Sums { header: &self.header, table, unfinished: false };
        (*self.table.get_or_init(|| sums.verify_table()))?;
        let start = first + number * BLOCK as u64;
        let block = self.mapping.bytes(start, end.min(start + BLOCK as u64));
        sums.verify(number, block)
    }

    /// Sets in the header whether the words are being changed, and the checksum of their checksums.
    fn mark(&self, root: u64, open: bool) {
        self.mapping.write(0, &Header { root, open, ..self.header }.encode());
    }
}

impl fmt::Debug for FileWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileWords").field("len", &self.len()).finish()
    }
}

impl AsRef<[u64]> for FileWords {
    #[inline(always)]
    #[allow(unsafe_code, reason = "words of a file are memory")]
    fn as_ref(&self) -> &[u64] {
        // SAFETY: there are `len` words behind the header, which was checked when this was made;
        // the header is a multiple of 64 bytes behind the start of a page, so they are aligned. Any
        // bits are a word, and the caller of the mapping function promised that no other process
        // changes them.
        unsafe {
            let first = self.mapping.memory.as_ptr().add(header::LEN).cast();
            core::slice::from_raw_parts(first, self.len())
        }
    }
}

/// The words of a file, mutably.
pub struct FileWordsMut(FileWords);

impl fmt::Debug for FileWordsMut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileWordsMut").field("len", &self.0.len()).finish()
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
        unsafe { core::slice::from_raw_parts_mut(self.first().cast(), self.0.len()) }
    }
}

impl AsRef<[AtomicU64]> for FileWordsMut {
    #[inline(always)]
    #[allow(unsafe_code, reason = "words of a file are memory")]
    fn as_ref(&self) -> &[AtomicU64] {
        // SAFETY: as for `FileWords`. A storage is `Own` or `Shared` and so uses one of the two ways
        // only; atomic words may be changed through any number of references.
        unsafe { core::slice::from_raw_parts(self.first().cast(), self.0.len()) }
    }
}

impl AsMut<[AtomicU64]> for FileWordsMut {
    #[inline(always)]
    #[allow(unsafe_code, reason = "words of a file are memory")]
    fn as_mut(&mut self) -> &mut [AtomicU64] {
        // SAFETY: as above, and there is one `FileWordsMut` of a mapping.
        unsafe { core::slice::from_raw_parts_mut(self.first().cast(), self.0.len()) }
    }
}

/// The kind of lock.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

/// The header of a file, its parsed fields, and its mapping.
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

/// Integrity checks of a filter in a file.
impl<T: ?Sized, H, C: InFile> Filter<T, H, C> {
    /// Checks that the file is as it was written. Reads the whole file.
    ///
    /// # Errors
    ///
    /// The first part that was changed since.
    pub fn verify(&self) -> Result<(), InvalidBytes> {
        (0..self.blocks()).try_for_each(|number| self.verify_block(number))?;
        self.raw.audit()
    }

    /// How many blocks of 8 KiB the words have.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.raw.file().blocks()
    }

    /// Checks that one block is as it was written. The first call reads all checksums, a thousandth
    /// of the file.
    ///
    /// # Errors
    ///
    /// [`InvalidBytes::Block`] if the block was changed since. [`InvalidBytes::Table`] if the
    /// checksums were.
    ///
    /// # Panics
    ///
    /// If there is no such block.
    pub fn verify_block(&self, number: u64) -> Result<(), InvalidBytes> {
        self.raw.file().verify_block(number)
    }
}

/// Durability of changes.
impl<T: ?Sized, H: Stored<T>, S: Writes, L: StoredLayout> Filter<T, H, RawBloom<S, L>> {
    /// Returns after everything that was inserted is on the disk, with its checksums.
    ///
    /// # Errors
    ///
    /// Any error of the file system. The disk then has at least the contents of the last successful
    /// flush.
    pub fn flush(&mut self) -> io::Result<()> {
        self.seal(true)
    }

    /// As [`flush`](Self::flush). Then the header says that no process is changing the file.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush).
    pub fn close(mut self) -> io::Result<()> {
        self.flush()?;
        self.seal(false)
    }

    /// Syncs the words, then the header and the checksums.
    fn seal(&mut self, open: bool) -> io::Result<()> {
        let file = self.raw.storage.file();
        file.mapping.memory.flush()?;
        let Ok((payload, table)) = bytes::for_blocks(self, &mut |_| Ok::<(), Infallible>(()));
        file.mapping.write(header::LEN as u64 + payload, &table);
        file.mark(blocks::root(&table), open);
        file.mapping.memory.flush()
    }
}

/// Opening files in place.
impl<H> Opening<H> {
    /// The filter at `path`, which answers from the file. A look-up reads only the words that it
    /// needs. The words are not checked until [`verify`](Filter::verify) is called.
    ///
    /// The file is locked against processes that would change it in place, if they use locks.
    /// Replacing it, as [`save`](super::Saved::save) does, is not a change: the old file exists
    /// until its last mapping is dropped.
    ///
    /// # Errors
    ///
    /// See [`OpenError`]. [`io::ErrorKind::WouldBlock`] if another process is changing it in place.
    ///
    /// # Safety
    ///
    /// No process may change the file in place or truncate it while it is mapped. If it is changed,
    /// the answers are undefined. If it is truncated and a look-up reads the missing part, the
    /// process is killed by SIGBUS.
    #[allow(unsafe_code, reason = "the caller must promise something")]
    pub unsafe fn map<F>(self, path: impl AsRef<Path>) -> Result<Mapped<F>, OpenError>
    where
        F: Mappable<Hasher = H>,
    {
        let (header, plan, mapping) =
            open::<F::Mapped>(path.as_ref(), Access::Read, self.limit, self.unfinished)?;
        let hasher = bytes::hasher::<F::Mapped>(&header, self.hasher)?;
        let mut mapping = Some(mapping);
        let filter = F::Mapped::assemble(plan, &header, hasher, &mut |count| {
            let mapping = mapping.take().ok_or(InvalidBytes::Inconsistent)?;
            FileWords::new(mapping, header, count).map(Own)
        })?;
        bytes::agree(&filter, &header)?;
        Ok(filter)
    }

    /// The filter at `path`, which is changed in place: see [`MappedMut`].
    ///
    /// # Errors
    ///
    /// See [`OpenError`]. [`io::ErrorKind::WouldBlock`] if another process has it mapped.
    ///
    /// # Safety
    ///
    /// As [`map`](Self::map): no other process may change the file or truncate it while it is
    /// mapped.
    #[allow(unsafe_code, reason = "the caller must promise something")]
    pub unsafe fn map_mut<F>(self, path: impl AsRef<Path>) -> Result<MappedMut<F>, OpenError>
    where
        F: MappableMut<Hasher = H>,
    {
        let (header, plan, mapping) =
            open::<F::MappedMut>(path.as_ref(), Access::Write, self.limit, self.unfinished)?;
        let hasher = bytes::hasher::<F::MappedMut>(&header, self.hasher)?;
        let mut mapping = Some(mapping);
        let filter = F::MappedMut::assemble(plan, &header, hasher, &mut |count| {
            let mapping = mapping.take().ok_or(InvalidBytes::Inconsistent)?;
            let words = FileWords::new(mapping, header, count)?;
            Ok::<_, InvalidBytes>(Writes::of_words(FileWordsMut(words)))
        })?;
        bytes::agree(&filter, &header)?;
        // Before the first bit is changed, the header on the disk must say that the words may be
        // changing.
        let file = F::file(&filter);
        file.mark(header.root, true);
        file.mapping.memory.flush_range(0, header::LEN)?;
        Ok(filter)
    }
}
