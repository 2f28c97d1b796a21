//! Where the words of a filter live: memory it owns, or an array that needs no allocator; for one
//! thread to change, or for many.
//!
//! | | one thread changes it | many threads do |
//! |---|---|---|
//! | in memory of its own | [`Heap`] | [`SharedHeap`] |
//! | in an array | [`Array`] | [`SharedArray`] |
//!
//! A filter is written once and works on all of them. The traits are sealed: filters rely on a
//! storage giving the same words every time.

use crate::error::InvalidShape;
use crate::parts::bits::{AtomicU64, Word};

#[cfg(feature = "alloc")]
use crate::parts::alloc_zeroed::alloc_zeroed_words;
#[cfg(feature = "alloc")]
use alloc::boxed::Box;

mod sealed {
    pub trait Sealed {}
}
use sealed::Sealed;

/// Words that can be read.
pub trait Storage: Sealed {
    /// `u64`, or its atomic twin.
    type Word: Word;

    /// All of them.
    fn words(&self) -> &[Self::Word];
}

/// Words that whoever has the filter for itself can change.
pub trait StorageMut: Storage {
    /// All of them.
    fn words_mut(&mut self) -> &mut [Self::Word];
}

/// Storage that can be made for a number of words.
pub trait Allocate: StorageMut + Sized {
    /// Storage for `words` words, all zero.
    ///
    /// # Errors
    ///
    /// [`InvalidShape::OutOfMemory`] if there is no room for that many.
    fn zeroed(words: u64) -> Result<Self, InvalidShape>;
}

/// Storage that can be made for any number of words.
pub trait AnySize: Allocate {}

/// Words that one thread at a time may change.
#[derive(Clone, Debug)]
pub struct Own<B>(pub(crate) B);

/// Words that many threads may change at once.
#[derive(Debug)]
pub struct Shared<B>(pub(crate) B);

/// Words in memory of their own.
#[cfg(feature = "alloc")]
pub type Heap = Own<Box<[u64]>>;

/// Words in memory of their own that many threads may change.
#[cfg(feature = "alloc")]
pub type SharedHeap = Shared<Box<[AtomicU64]>>;

/// Words in an array.
pub type Array<const WORDS: usize> = Own<[u64; WORDS]>;

/// Words in an array that many threads may change.
pub type SharedArray<const WORDS: usize> = Shared<[AtomicU64; WORDS]>;

impl<B> Sealed for Own<B> {}

impl<B: AsRef<[u64]>> Storage for Own<B> {
    type Word = u64;

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
        let memory = usize::try_from(words).ok().and_then(alloc_zeroed_words);
        memory.map(Self).ok_or_else(|| out_of_memory(words))
    }
}

#[cfg(feature = "alloc")]
impl AnySize for Heap {}

#[cfg(all(feature = "alloc", not(loom)))]
impl Allocate for SharedHeap {
    fn zeroed(words: u64) -> Result<Self, InvalidShape> {
        let memory = usize::try_from(words).ok().and_then(alloc_zeroed_words);
        memory.map(Self).ok_or_else(|| out_of_memory(words))
    }
}

/// Under loom a word is a model of one, not eight bytes.
#[cfg(all(feature = "alloc", loom))]
impl Allocate for SharedHeap {
    fn zeroed(words: u64) -> Result<Self, InvalidShape> {
        Ok(Self((0..words).map(|_| AtomicU64::new(0)).collect()))
    }
}

#[cfg(feature = "alloc")]
impl AnySize for SharedHeap {}

impl<const WORDS: usize> Allocate for Array<WORDS> {
    fn zeroed(words: u64) -> Result<Self, InvalidShape> {
        if words == WORDS as u64 { Ok(Self([0; WORDS])) } else { Err(out_of_memory(words)) }
    }
}

#[cfg(not(loom))]
impl<const WORDS: usize> Allocate for SharedArray<WORDS> {
    fn zeroed(words: u64) -> Result<Self, InvalidShape> {
        if words == WORDS as u64 {
            Ok(Self([const { AtomicU64::new(0) }; WORDS]))
        } else {
            Err(out_of_memory(words))
        }
    }
}
