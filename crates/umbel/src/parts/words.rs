//! Owned words that begin on a cache line.
//!
//! An aligned allocation would not get untouched zero pages: the allocator writes the zeros itself.
//! So this module allocates a few more words and skips the first ones. Only speed depends on the
//! alignment. An island of `unsafe`: the range of the words is checked once and not at every
//! look-up.

use super::alloc_zeroed::{Zeroable, alloc_zeroed_words};
use super::bits::{AtomicU64, Word};
use alloc::boxed::Box;

/// The words of a cache line.
pub(crate) const LINE: usize = 8;

/// Owned words. If they fill a cache line or more, they begin on a cache line.
#[derive(Debug)]
pub struct Words<W> {
    memory: Box<[W]>,
    start: usize,
    len: usize,
}

impl<W: Word + Zeroable> Words<W> {
    /// `len` words, all zero, or `None` if the allocator has no memory for them.
    pub(crate) fn zeroed(len: usize) -> Option<Self> {
        if len < LINE {
            return Some(Self { memory: alloc_zeroed_words(len)?, start: 0, len });
        }
        let memory: Box<[W]> = alloc_zeroed_words(len.checked_add(LINE - 1)?)?;
        let start = memory.as_ptr().align_offset(LINE * 8);
        Some(Self { memory, start: if start < LINE { start } else { 0 }, len })
    }

    /// Words with these bits, or `None` if the allocator has no memory for them.
    pub(crate) fn try_copy_of<V: Word>(words: &[V]) -> Option<Self> {
        let mut copy = Self::zeroed(words.len())?;
        for (word, bits) in copy.as_mut().iter_mut().zip(words) {
            word.store(bits.load());
        }
        Some(copy)
    }

    /// Words with these bits.
    pub(crate) fn copy_of<V: Word>(words: &[V]) -> Self {
        Self::try_copy_of(words)
            .unwrap_or_else(|| panic!("the allocator has no {} words to give", words.len()))
    }
}

impl Words<u64> {
    /// The same bits for many threads, in the same memory.
    pub(crate) fn share(self) -> Words<AtomicU64> {
        let memory = self.memory.into_iter().map(AtomicU64::new).collect();
        Words { memory, start: self.start, len: self.len }
    }
}

impl<W> AsRef<[W]> for Words<W> {
    #[inline(always)]
    #[allow(unsafe_code, reason = "a check at every look-up of what never changes")]
    fn as_ref(&self) -> &[W] {
        debug_assert!(self.start + self.len <= self.memory.len());
        // SAFETY: the constructor put `len` words from `start` on into the memory, and nothing
        // changes either number or replaces the memory.
        unsafe { self.memory.get_unchecked(self.start..self.start + self.len) }
    }
}

impl<W> AsMut<[W]> for Words<W> {
    #[inline(always)]
    #[allow(unsafe_code, reason = "a check at every look-up of what never changes")]
    fn as_mut(&mut self) -> &mut [W] {
        debug_assert!(self.start + self.len <= self.memory.len());
        // SAFETY: as in `as_ref`.
        unsafe { self.memory.get_unchecked_mut(self.start..self.start + self.len) }
    }
}

impl Clone for Words<u64> {
    fn clone(&self) -> Self {
        Self::copy_of(self.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_words_begin_on_a_cache_line_and_are_zero() {
        for len in [8, 9, 64, 1_000, 1 << 20] {
            let words = Words::<u64>::zeroed(len).unwrap();
            assert_eq!((words.as_ref().as_ptr() as usize % 64, words.as_ref().len()), (0, len));
            assert!(words.as_ref().iter().all(|word| *word == 0));
            let clone = words.clone();
            assert_eq!(clone.as_ref().as_ptr() as usize % 64, 0);
        }
        for len in 0..8 {
            assert_eq!(Words::<u64>::zeroed(len).unwrap().as_ref().len(), len);
        }
    }

    #[test]
    fn copies_and_shared_words_have_the_same_bits() {
        for len in [0, 1, 7, 8, 100] {
            let mut words = Words::<u64>::zeroed(len).unwrap();
            for (number, word) in words.as_mut().iter_mut().enumerate() {
                *word = number as u64 + 1;
            }
            let shared = words.clone().share();
            assert_eq!(
                shared.as_ref().iter().map(Word::load).collect::<std::vec::Vec<_>>(),
                words.as_ref()
            );
            assert_eq!(Words::<u64>::copy_of(shared.as_ref()).as_ref(), words.as_ref());
        }
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert!(Words::<u64>::zeroed(usize::MAX).is_none());
        assert!(Words::<u64>::zeroed(usize::MAX - 7).is_none());
    }
}
