//! The storage of the words of a filter: owned memory, or an array, which needs no allocator; for
//! changes by one thread, or by many.
//!
//! | | one thread changes it | many threads do |
//! |---|---|---|
//! | in owned memory | [`Heap`] | [`SharedHeap`] |
//! | in an array | [`Array`], [`LineArray`] | [`SharedArray`], [`SharedLineArray`] |
//!
//! A filter is written once and works with all of them. The traits are sealed: filters rely on a
//! storage that returns the same words every time.

use crate::error::InvalidShape;
use crate::parts::bits::{AtomicU64, Word};

#[cfg(feature = "alloc")]
pub use crate::parts::words::Words;

mod sealed {
    #[expect(unnameable_types, reason = "sealed: only this module implements it")]
    pub trait Sealed {}
}
use sealed::Sealed;

/// Words that can be read.
#[doc(hidden)]
pub trait Storage: Sealed {
    /// `u64`, or `AtomicU64`.
    type Word: Word;

    /// Whether the words cannot change while they are being read.
    const STILL: bool;

    /// All words.
    fn words(&self) -> &[Self::Word];
}

/// Passes on the bits of words, run by run. Words that may be changing are read once.
pub(crate) fn for_runs<W: Word, E>(
    words: &[W],
    each: &mut impl FnMut(&[u64]) -> Result<(), E>,
) -> Result<(), E> {
    if let Some(words) = W::plain(words.as_chunks::<1>().0) {
        return each(words.as_flattened());
    }
    let mut run = [0; 256];
    for words in words.chunks(run.len()) {
        for (bits, word) in run.iter_mut().zip(words) {
            *bits = word.load();
        }
        each(&run[..words.len()])?;
    }
    Ok(())
}

/// Words that can be changed with exclusive access.
#[doc(hidden)]
pub trait StorageMut: Storage {
    /// All words.
    fn words_mut(&mut self) -> &mut [Self::Word];
}

/// Storage that can be created for a number of words.
#[doc(hidden)]
pub trait Allocate: StorageMut + Sized {
    /// Storage for `words` words, all zero.
    ///
    /// # Errors
    ///
    /// [`InvalidShape::OutOfMemory`] if there is no memory for them.
    fn zeroed(words: u64) -> Result<Self, InvalidShape>;
}

/// Storage that can be created for any number of words.
#[doc(hidden)]
pub trait AnySize: Allocate {}

/// Words that one thread at a time may change.
#[derive(Clone, Debug)]
pub struct Own<B>(pub(crate) B);

/// Words that many threads may change at the same time.
#[derive(Debug)]
pub struct Shared<B>(pub(crate) B);

/// Words in owned memory, which begins on a cache line.
#[cfg(feature = "alloc")]
pub type Heap = Own<Words<u64>>;

/// Words in owned memory that many threads may change. It begins on a cache line.
#[cfg(feature = "alloc")]
pub type SharedHeap = Shared<Words<AtomicU64>>;

/// Words in an array.
pub type Array<const WORDS: usize> = Own<[u64; WORDS]>;

/// Words in an array that many threads may change.
pub type SharedArray<const WORDS: usize> = Shared<[AtomicU64; WORDS]>;

/// Words in an array that begins on a cache line.
pub type LineArray<const WORDS: usize> = Own<Aligned<[u64; WORDS]>>;

/// Words in an array that begins on a cache line, which many threads may change.
pub type SharedLineArray<const WORDS: usize> = Shared<Aligned<[AtomicU64; WORDS]>>;

/// A value that begins on a cache line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Aligned<B>(pub(crate) B);

impl<W, const WORDS: usize> AsRef<[W]> for Aligned<[W; WORDS]> {
    #[inline(always)]
    fn as_ref(&self) -> &[W] {
        &self.0
    }
}

impl<W, const WORDS: usize> AsMut<[W]> for Aligned<[W; WORDS]> {
    #[inline(always)]
    fn as_mut(&mut self) -> &mut [W] {
        &mut self.0
    }
}

impl<B> Sealed for Own<B> {}

impl<B: AsRef<[u64]>> Storage for Own<B> {
    type Word = u64;

    const STILL: bool = true;

    #[inline(always)]
    fn words(&self) -> &[u64] {
        self.0.as_ref()
    }
}

impl<B: AsRef<[u64]> + AsMut<[u64]>> StorageMut for Own<B> {
    #[inline(always)]
    fn words_mut(&mut self) -> &mut [u64] {
        self.0.as_mut()
    }
}

impl<B> Sealed for Shared<B> {}

impl<B: AsRef<[AtomicU64]>> Storage for Shared<B> {
    type Word = AtomicU64;

    const STILL: bool = false;

    #[inline(always)]
    fn words(&self) -> &[AtomicU64] {
        self.0.as_ref()
    }
}

impl<B: AsRef<[AtomicU64]> + AsMut<[AtomicU64]>> StorageMut for Shared<B> {
    #[inline(always)]
    fn words_mut(&mut self) -> &mut [AtomicU64] {
        self.0.as_mut()
    }
}

fn out_of_memory(words: u64) -> InvalidShape {
    InvalidShape::OutOfMemory { bytes: words.saturating_mul(8) }
}

#[cfg(feature = "alloc")]
impl Allocate for Heap {
    fn zeroed(words: u64) -> Result<Self, InvalidShape> {
        let memory = usize::try_from(words).ok().and_then(Words::zeroed);
        memory.map(Self).ok_or_else(|| out_of_memory(words))
    }
}

#[cfg(feature = "alloc")]
impl AnySize for Heap {}

#[cfg(feature = "alloc")]
impl Heap {
    /// A copy of the words, if the allocator has memory for it.
    pub(crate) fn try_clone(&self) -> Result<Self, InvalidShape> {
        let words = self.words();
        Words::try_copy_of(words).map(Self).ok_or_else(|| out_of_memory(words.len() as u64))
    }
}

#[cfg(feature = "alloc")]
impl Allocate for SharedHeap {
    fn zeroed(words: u64) -> Result<Self, InvalidShape> {
        let memory = usize::try_from(words).ok().and_then(Words::zeroed);
        memory.map(Self).ok_or_else(|| out_of_memory(words))
    }
}

#[cfg(feature = "alloc")]
impl AnySize for SharedHeap {}

/// `storage`, if it has the requested number of words.
fn of_exactly<S: Storage>(words: u64, storage: S) -> Result<S, InvalidShape> {
    if words == storage.words().len() as u64 { Ok(storage) } else { Err(out_of_memory(words)) }
}

impl<const WORDS: usize> Allocate for Array<WORDS> {
    fn zeroed(words: u64) -> Result<Self, InvalidShape> {
        of_exactly(words, Self([0; WORDS]))
    }
}

impl<const WORDS: usize> Allocate for LineArray<WORDS> {
    fn zeroed(words: u64) -> Result<Self, InvalidShape> {
        of_exactly(words, Self(Aligned([0; WORDS])))
    }
}

#[cfg(not(loom))]
impl<const WORDS: usize> Allocate for SharedArray<WORDS> {
    fn zeroed(words: u64) -> Result<Self, InvalidShape> {
        of_exactly(words, Self([const { AtomicU64::new(0) }; WORDS]))
    }
}

#[cfg(not(loom))]
impl<const WORDS: usize> Allocate for SharedLineArray<WORDS> {
    fn zeroed(words: u64) -> Result<Self, InvalidShape> {
        of_exactly(words, Self(Aligned([const { AtomicU64::new(0) }; WORDS])))
    }
}
