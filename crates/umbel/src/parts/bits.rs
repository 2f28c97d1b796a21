//! Bits in a slice of words, plain or shared between threads. An island of `unsafe`: bits whose
//! index is known to be valid can be accessed without a check, and every such function has a
//! checked equivalent.

use super::prefetch::{prefetch, prefetch_far, prefetch_to_write};

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::AtomicU64;
#[cfg(loom)]
pub(crate) use loom::sync::atomic::AtomicU64;

#[cfg(not(loom))]
use core::sync::atomic::Ordering::Relaxed;
#[cfg(loom)]
use loom::sync::atomic::Ordering::Relaxed;

/// A word of 64 bits.
#[doc(hidden)]
pub trait Word: Sized {
    /// A word with these bits.
    fn new(bits: u64) -> Self;

    /// The words as plain words, if no other thread can be changing them.
    fn plain<const N: usize>(words: &[[Self; N]]) -> Option<&[[u64; N]]>;

    /// The current bits.
    fn load(&self) -> u64;

    /// Replaces the bits.
    fn store(&mut self, bits: u64);
}

impl Word for u64 {
    #[inline(always)]
    fn new(bits: u64) -> Self {
        bits
    }

    #[inline(always)]
    fn plain<const N: usize>(words: &[[Self; N]]) -> Option<&[[u64; N]]> {
        Some(words)
    }

    #[inline(always)]
    fn load(&self) -> u64 {
        *self
    }

    #[inline(always)]
    fn store(&mut self, bits: u64) {
        *self = bits;
    }
}

impl Word for AtomicU64 {
    #[inline(always)]
    fn new(bits: u64) -> Self {
        AtomicU64::new(bits)
    }

    #[inline(always)]
    fn plain<const N: usize>(_: &[[Self; N]]) -> Option<&[[u64; N]]> {
        None
    }

    #[inline(always)]
    fn load(&self) -> u64 {
        AtomicU64::load(self, Relaxed)
    }

    #[inline(always)]
    fn store(&mut self, bits: u64) {
        AtomicU64::store(self, bits, Relaxed);
    }
}

/// The word that holds a bit.
#[inline(always)]
const fn word_of(bit: u64) -> usize {
    (bit >> 6) as usize
}

/// A bit as the lowest of the result, with other bits above it: several can be combined with `&`
/// without branches.
#[inline(always)]
pub(crate) fn peek<W: Word>(words: &[W], bit: u64) -> u64 {
    words[word_of(bit)].load() >> (bit & 63)
}

/// As [`peek`], without a bounds check.
///
/// # Safety
///
/// `bit` must be below 64 times the number of words.
#[inline(always)]
#[allow(unsafe_code, reason = "the caller has proved what the check would test")]
pub(crate) unsafe fn peek_unchecked<W: Word>(words: &[W], bit: u64) -> u64 {
    debug_assert!(word_of(bit) < words.len());
    // SAFETY: the word of a bit below 64 times the number of words is one of them.
    let word = unsafe { words.get_unchecked(word_of(bit)) };
    word.load() >> (bit & 63)
}

/// Words in which bits can be set.
#[doc(hidden)]
pub trait SetBit {
    /// The type of the words.
    type Word: Word;

    /// Whether other threads may be setting bits at the same time. Only setting a bit can then
    /// determine whether it was set before, and it waits for its word.
    const SHARED: bool;

    /// The words.
    fn words(&self) -> &[Self::Word];

    /// The words as plain mutable words, if no other thread can be changing them.
    fn plain_mut(&mut self) -> Option<&mut [u64]>;

    /// Sets the bits of `mask` in a word. Returns which of them were set before.
    fn set_in(&mut self, word: usize, mask: u64) -> u64;

    /// As [`set_in`](Self::set_in), without a bounds check.
    ///
    /// # Safety
    ///
    /// `word` must be below the number of words.
    #[allow(unsafe_code, reason = "the caller has proved what the check would test")]
    unsafe fn set_in_unchecked(&mut self, word: usize, mask: u64) -> u64;

    /// Sets a bit. Returns whether it was set before.
    #[inline(always)]
    fn set(&mut self, bit: u64) -> bool {
        self.set_in(word_of(bit), 1 << (bit & 63)) != 0
    }

    /// As [`set`](Self::set), without a bounds check.
    ///
    /// # Safety
    ///
    /// `bit` must be below 64 times the number of words.
    #[inline(always)]
    #[allow(unsafe_code, reason = "the caller has proved what the check would test")]
    unsafe fn set_unchecked(&mut self, bit: u64) -> bool {
        debug_assert!(word_of(bit) < self.words().len());
        // SAFETY: the word of a bit below 64 times the number of words is one of them.
        unsafe { self.set_in_unchecked(word_of(bit), 1 << (bit & 63)) != 0 }
    }

    /// Prefetches the word of a bit that will be set, into the first-level or the second-level
    /// cache.
    fn fetch<const FAR: bool>(&self, bit: u64);
}

impl SetBit for &mut [u64] {
    type Word = u64;
    const SHARED: bool = false;

    #[inline(always)]
    fn words(&self) -> &[u64] {
        self
    }

    #[inline(always)]
    fn plain_mut(&mut self) -> Option<&mut [u64]> {
        Some(self)
    }

    #[inline(always)]
    fn set_in(&mut self, word: usize, mask: u64) -> u64 {
        add(&mut self[word], mask)
    }

    #[inline(always)]
    #[allow(unsafe_code, reason = "the caller has proved what the check would test")]
    unsafe fn set_in_unchecked(&mut self, word: usize, mask: u64) -> u64 {
        // SAFETY: the caller passes a valid index.
        add(unsafe { self.get_unchecked_mut(word) }, mask)
    }

    #[inline(always)]
    fn fetch<const FAR: bool>(&self, bit: u64) {
        fetch::<_, FAR>(self, bit);
    }
}

#[inline(always)]
fn add(word: &mut u64, mask: u64) -> u64 {
    let before = *word;
    *word = before | mask;
    before & mask
}

/// Other threads may be setting bits at the same time.
impl SetBit for &[AtomicU64] {
    type Word = AtomicU64;
    const SHARED: bool = true;

    #[inline(always)]
    fn words(&self) -> &[AtomicU64] {
        self
    }

    #[inline(always)]
    fn plain_mut(&mut self) -> Option<&mut [u64]> {
        None
    }

    #[inline(always)]
    fn set_in(&mut self, word: usize, mask: u64) -> u64 {
        add_shared(&self[word], mask)
    }

    #[inline(always)]
    #[allow(unsafe_code, reason = "the caller has proved what the check would test")]
    unsafe fn set_in_unchecked(&mut self, word: usize, mask: u64) -> u64 {
        // SAFETY: the caller passes a valid index.
        add_shared(unsafe { self.get_unchecked(word) }, mask)
    }

    #[inline(always)]
    fn fetch<const FAR: bool>(&self, bit: u64) {
        prefetch_to_write(self, word_of(bit));
    }
}

/// Written like this, the compiler emits one locked instruction for a single bit.
#[inline(always)]
fn add_shared(word: &AtomicU64, mask: u64) -> u64 {
    word.fetch_or(mask, Relaxed) & mask
}

/// Prefetches the word of a bit, into the first-level or the second-level cache.
#[inline(always)]
pub(crate) fn fetch<W, const FAR: bool>(words: &[W], bit: u64) {
    if FAR { prefetch_far(words, word_of(bit)) } else { prefetch(words, word_of(bit)) }
}

/// How many bits are set.
pub(crate) fn count<W: Word>(words: &[W]) -> u64 {
    words.iter().map(|word| u64::from(word.load().count_ones())).sum()
}
