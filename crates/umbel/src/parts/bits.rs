//! Bits in a slice of words, plain or shared between threads. An island of `unsafe`: bits that are
//! known to be there can be reached without a check, and every such way has a twin with one.

use super::prefetch::{prefetch, prefetch_far, prefetch_to_write};

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::AtomicU64;
#[cfg(loom)]
pub(crate) use loom::sync::atomic::AtomicU64;

#[cfg(not(loom))]
use core::sync::atomic::Ordering::Relaxed;
#[cfg(loom)]
use loom::sync::atomic::Ordering::Relaxed;

/// 64 bits.
#[doc(hidden)]
pub trait Word: Sized {
    /// A word of these bits.
    fn new(bits: u64) -> Self;

    /// The words as they are, if nobody else can be changing them.
    fn plain<const N: usize>(words: &[[Self; N]]) -> Option<&[[u64; N]]>;

    /// The bits now.
    fn load(&self) -> u64;

    /// Other bits in their place.
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

/// A bit as the lowest of the result, with others above it: for `&`-ing several without branches.
#[inline(always)]
pub(crate) fn peek<W: Word>(words: &[W], bit: u64) -> u64 {
    words[word_of(bit)].load() >> (bit & 63)
}

/// As [`peek`], without asking whether there is such a bit.
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
    /// What they are words of.
    type Word: Word;

    /// Whether others may be setting bits at the same time. Then only setting a bit can tell whether
    /// it was set before, and it waits until its word is there.
    const SHARED: bool;

    /// The words.
    fn words(&self) -> &[Self::Word];

    /// The words to change as they are, if nobody else can be changing them.
    fn plain_mut(&mut self) -> Option<&mut [u64]>;

    /// Sets the bits of `mask` in a word; which of them were set before.
    fn set_in(&mut self, word: usize, mask: u64) -> u64;

    /// As [`set_in`](Self::set_in), without asking whether there is such a word.
    ///
    /// # Safety
    ///
    /// `word` must be below the number of words.
    #[allow(unsafe_code, reason = "the caller has proved what the check would test")]
    unsafe fn set_in_unchecked(&mut self, word: usize, mask: u64) -> u64;

    /// Sets a bit; whether it was set before.
    #[inline(always)]
    fn set(&mut self, bit: u64) -> bool {
        self.set_in(word_of(bit), 1 << (bit & 63)) != 0
    }

    /// As [`set`](Self::set), without asking whether there is such a bit.
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

    /// Starts to load the word of a bit that will be set, from near or from far.
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
        // SAFETY: the caller gives the number of one of the words.
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

/// Other threads may be setting bits too.
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
        // SAFETY: the caller gives the number of one of the words.
        add_shared(unsafe { self.get_unchecked(word) }, mask)
    }

    #[inline(always)]
    fn fetch<const FAR: bool>(&self, bit: u64) {
        prefetch_to_write(self, word_of(bit));
    }
}

/// In this form the compiler has one locked instruction for a single bit.
#[inline(always)]
fn add_shared(word: &AtomicU64, mask: u64) -> u64 {
    word.fetch_or(mask, Relaxed) & mask
}

/// Starts to load the word of a bit, from near or from far.
#[inline(always)]
pub(crate) fn fetch<W, const FAR: bool>(words: &[W], bit: u64) {
    if FAR { prefetch_far(words, word_of(bit)) } else { prefetch(words, word_of(bit)) }
}

/// How many bits are set.
pub(crate) fn count<W: Word>(words: &[W]) -> u64 {
    words.iter().map(|word| u64::from(word.load().count_ones())).sum()
}
