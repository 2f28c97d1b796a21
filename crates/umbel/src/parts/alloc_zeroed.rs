//! Fallible allocation of zeroed memory in large pages. An island of `unsafe`: `vec![0; n]` gets
//! untouched pages from the kernel but aborts if there is no memory. `try_reserve` can fail but
//! then has to write every word. Filters need both properties.

use alloc::boxed::Box;

#[cfg(not(loom))]
use alloc::alloc::{Layout, alloc_zeroed};
#[cfg(not(loom))]
use core::sync::atomic::AtomicU64;

/// A word for which all bits zero is a valid value.
///
/// # Safety
///
/// The type must be valid when every byte of it is zero, and must not be a zero-sized type.
#[allow(unsafe_code, reason = "says which types may be made of zero bytes")]
pub unsafe trait Zeroable {}

// SAFETY: 0_u64 is eight zero bytes.
#[allow(unsafe_code, reason = "says which types may be made of zero bytes")]
unsafe impl Zeroable for u64 {}
// SAFETY: [0_u8; 8] is eight zero bytes.
#[allow(unsafe_code, reason = "says which types may be made of zero bytes")]
unsafe impl Zeroable for [u8; 8] {}
#[cfg(not(loom))]
// SAFETY: `AtomicU64` has the same size and bit validity as `u64`, by its documentation.
#[allow(unsafe_code, reason = "says which types may be made of zero bytes")]
unsafe impl Zeroable for AtomicU64 {}

/// Under loom a word is a model and not eight bytes, so it is never made of zero bytes.
#[cfg(loom)]
#[allow(unsafe_code, reason = "says which types may be made of zero bytes")]
// SAFETY: no such word is made of zero bytes under loom.
unsafe impl Zeroable for loom::sync::atomic::AtomicU64 {}

/// As below, word by word.
#[cfg(loom)]
pub(crate) fn alloc_zeroed_words<W: Zeroable + super::bits::Word>(len: usize) -> Option<Box<[W]>> {
    Some((0..len).map(|_| W::new(0)).collect())
}

/// `len` zeroed words, or `None` if the allocator has no memory for them.
#[cfg(not(loom))]
#[allow(unsafe_code, reason = "a zeroed allocation that may fail has no safe name")]
pub(crate) fn alloc_zeroed_words<W: Zeroable>(len: usize) -> Option<Box<[W]>> {
    if len == 0 {
        return Some(Box::new([]));
    }
    let layout = Layout::array::<W>(len).ok()?;
    // SAFETY: the layout is not of size zero, since `len` is not and `W` is not zero-sized.
    let memory = unsafe { alloc_zeroed(layout) }.cast::<W>();
    if memory.is_null() {
        return None;
    }
    huge_pages::advise(memory.cast(), layout.size());
    // SAFETY: the memory comes from the global allocator with the layout of `[W; len]`, this
    // function is its only owner, and zero bytes are valid values of `W`.
    Some(unsafe { Box::from_raw(core::ptr::slice_from_raw_parts_mut(memory, len)) })
}

/// Requests pages of 2 MiB instead of 4 KiB, if the kernel has them: a filter of 12 MB then needs
/// six TLB entries instead of three thousand. At ten million keys that makes batches up to a tenth
/// faster (`docs/measurements.md`).
#[cfg(all(target_os = "linux", feature = "std", not(miri), not(loom)))]
mod huge_pages {
    const PAGE: usize = 2 << 20;

    /// Requests huge pages for `size` bytes that have not been touched yet. A kernel without huge
    /// pages, or one that is configured not to use them, ignores the request.
    #[allow(unsafe_code, reason = "the advice has no safe name")]
    pub(super) fn advise(memory: *mut u8, size: usize) {
        if size < 2 * PAGE {
            return;
        }
        let start = (memory as usize).next_multiple_of(PAGE);
        let end = (memory as usize + size) / PAGE * PAGE;
        // SAFETY: the range lies inside memory that was just allocated, begins and ends on page
        // boundaries, and the advice changes neither its contents nor what may be done with it.
        unsafe {
            libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE);
        }
    }
}

#[cfg(not(any(loom, all(target_os = "linux", feature = "std", not(miri)))))]
mod huge_pages {
    pub(super) fn advise(_: *mut u8, _: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The safe equivalent.
    fn words_by_hand(len: usize) -> Option<Box<[u64]>> {
        let mut words = alloc::vec::Vec::new();
        words.try_reserve_exact(len).ok()?;
        words.resize(len, 0);
        Some(words.into_boxed_slice())
    }

    #[test]
    fn zeroed_words_equal_words_made_by_hand() {
        for len in [0, 1, 7, 1000] {
            assert_eq!(alloc_zeroed_words::<u64>(len), words_by_hand(len));
            let shared = alloc_zeroed_words::<AtomicU64>(len).unwrap();
            assert!(
                shared.iter().all(|word| word.load(core::sync::atomic::Ordering::Relaxed) == 0)
            );
        }
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert!(alloc_zeroed_words::<u64>(usize::MAX).is_none());
        assert!(alloc_zeroed_words::<u64>(isize::MAX as usize / 8).is_none());
        assert!(words_by_hand(isize::MAX as usize / 8).is_none());
    }
}
