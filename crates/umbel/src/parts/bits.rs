//! Bits in a slice of words, plain or shared between threads.

use super::prefetch::prefetch;

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::AtomicU64;
#[cfg(loom)]
pub(crate) use loom::sync::atomic::AtomicU64;

#[cfg(not(loom))]
use core::sync::atomic::Ordering::Relaxed;
#[cfg(loom)]
use loom::sync::atomic::Ordering::Relaxed;

/// 64 bits that can be read.
pub(crate) trait Word {
    /// The bits now.
    fn load(&self) -> u64;
}

impl Word for u64 {
    #[inline(always)]
    fn load(&self) -> u64 {
        *self
    }
}

impl Word for AtomicU64 {
    #[inline(always)]
    fn load(&self) -> u64 {
        AtomicU64::load(self, Relaxed)
    }
}

/// The word that holds a bit.
#[inline(always)]
const fn word_of(bit: u64) -> usize {
    (bit >> 6) as usize
}

/// A bit as the lowest of the result, with others above it: for `&`-ing several without branches.
#[inline(always)]
pub(crate) fn peek<W: Word>(words: &[W], bit: u64) -> u64 {
    words[word_of(bit)].load() >> (bit & 63)
}

/// Starts to load the word of a bit.
#[inline(always)]
pub(crate) fn fetch<W>(words: &[W], bit: u64) {
    prefetch(words, word_of(bit));
}

/// Words in which bits can be set.
pub(crate) trait SetBit {
    /// Sets a bit; 1 in the lowest bit of the result if it was set before.
    fn set(&mut self, bit: u64) -> u64;

    /// Starts to load the word of a bit.
    fn fetch(&self, bit: u64);
}

impl SetBit for &mut [u64] {
    #[inline(always)]
    fn set(&mut self, bit: u64) -> u64 {
        let word = &mut self[word_of(bit)];
        let before = *word;
        *word = before | 1 << (bit & 63);
        before >> (bit & 63)
    }

    #[inline(always)]
    fn fetch(&self, bit: u64) {
        fetch(self, bit);
    }
}

/// Other threads may be setting bits too.
impl SetBit for &[AtomicU64] {
    /// A bit that is already there costs a read, not a write that takes the line away from the
    /// other cores.
    #[inline(always)]
    fn set(&mut self, bit: u64) -> u64 {
        let (word, mask) = (&self[word_of(bit)], 1 << (bit & 63));
        let mut before = word.load(Relaxed);
        if before & mask == 0 {
            before = word.fetch_or(mask, Relaxed);
        }
        before >> (bit & 63)
    }

    #[inline(always)]
    fn fetch(&self, bit: u64) {
        fetch(self, bit);
    }
}

/// How many bits are set.
pub(crate) fn count<W: Word>(words: &[W]) -> u64 {
    words.iter().map(|word| u64::from(word.load().count_ones())).sum()
}
