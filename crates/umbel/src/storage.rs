//! Where the words of a filter live: memory it owns, or an array that needs no allocator.
//!
//! A filter is written once and works on all of them. The traits are sealed: filters rely on a
//! storage giving the same words every time.

use crate::error::InvalidShape;
use crate::parts::bits::AtomicU64;

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
    /// All of them.
    fn words(&self) -> &[u64];
}

/// Words that can be changed.
pub trait StorageMut: Storage {
    /// All of them.
    fn words_mut(&mut self) -> &mut [u64];
}

/// Storage that can be made for a number of words.
pub trait Allocate: Sized {
    /// Storage for `words` words, all zero.
    ///
    /// # Errors
    ///
    /// [`InvalidShape::OutOfMemory`] if there is no room for that many.
    fn zeroed(words: u64) -> Result<Self, InvalidShape>;
}

/// Words that many threads may change at once.
pub trait SharedStorage: Sealed {
    /// All of them.
    fn shared(&self) -> &[AtomicU64];
}

/// Words in memory of their own.
#[cfg(feature = "alloc")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heap(Box<[u64]>);

#[cfg(feature = "alloc")]
impl Sealed for Heap {}

#[cfg(feature = "alloc")]
impl Storage for Heap {
    #[inline(always)]
    fn words(&self) -> &[u64] {
        &self.0
    }
}

#[cfg(feature = "alloc")]
impl StorageMut for Heap {
    #[inline(always)]
    fn words_mut(&mut self) -> &mut [u64] {
        &mut self.0
    }
}

#[cfg(feature = "alloc")]
impl Allocate for Heap {
    fn zeroed(words: u64) -> Result<Self, InvalidShape> {
        let len = usize::try_from(words).ok();
        let memory = len.and_then(alloc_zeroed_words);
        memory.map(Self).ok_or(InvalidShape::OutOfMemory { bytes: words.saturating_mul(8) })
    }
}

#[cfg(feature = "alloc")]
impl Heap {
    /// These words, in memory of their own.
    pub(crate) fn from_words(words: &mut dyn Iterator<Item = u64>) -> Self {
        Self(words.collect())
    }
}

impl<const WORDS: usize> Sealed for [u64; WORDS] {}

impl<const WORDS: usize> Storage for [u64; WORDS] {
    #[inline(always)]
    fn words(&self) -> &[u64] {
        self
    }
}

impl<const WORDS: usize> StorageMut for [u64; WORDS] {
    #[inline(always)]
    fn words_mut(&mut self) -> &mut [u64] {
        self
    }
}

impl<const WORDS: usize> Allocate for [u64; WORDS] {
    fn zeroed(words: u64) -> Result<Self, InvalidShape> {
        if words == WORDS as u64 {
            Ok([0; WORDS])
        } else {
            Err(InvalidShape::OutOfMemory { bytes: words.saturating_mul(8) })
        }
    }
}

/// Words in memory of their own that many threads may change at once.
#[cfg(feature = "alloc")]
#[derive(Debug)]
pub struct SharedHeap(Box<[AtomicU64]>);

#[cfg(feature = "alloc")]
impl Sealed for SharedHeap {}

#[cfg(feature = "alloc")]
impl SharedStorage for SharedHeap {
    #[inline(always)]
    fn shared(&self) -> &[AtomicU64] {
        &self.0
    }
}

#[cfg(all(feature = "alloc", not(loom)))]
impl Allocate for SharedHeap {
    fn zeroed(words: u64) -> Result<Self, InvalidShape> {
        let len = usize::try_from(words).ok();
        let memory = len.and_then(alloc_zeroed_words);
        memory.map(Self).ok_or(InvalidShape::OutOfMemory { bytes: words.saturating_mul(8) })
    }
}

/// Under loom a word is a model of one, not eight bytes.
#[cfg(all(feature = "alloc", loom))]
impl Allocate for SharedHeap {
    fn zeroed(words: u64) -> Result<Self, InvalidShape> {
        Ok(Self((0..words).map(|_| AtomicU64::new(0)).collect()))
    }
}

/// The same words, shared.
#[cfg(feature = "alloc")]
impl From<Heap> for SharedHeap {
    fn from(words: Heap) -> Self {
        Self(words.0.into_iter().map(AtomicU64::new).collect())
    }
}

#[cfg(not(loom))]
impl<const WORDS: usize> Sealed for [AtomicU64; WORDS] {}

#[cfg(not(loom))]
impl<const WORDS: usize> SharedStorage for [AtomicU64; WORDS] {
    #[inline(always)]
    fn shared(&self) -> &[AtomicU64] {
        self
    }
}

#[cfg(not(loom))]
impl<const WORDS: usize> Allocate for [AtomicU64; WORDS] {
    fn zeroed(words: u64) -> Result<Self, InvalidShape> {
        if words == WORDS as u64 {
            Ok([const { AtomicU64::new(0) }; WORDS])
        } else {
            Err(InvalidShape::OutOfMemory { bytes: words.saturating_mul(8) })
        }
    }
}
