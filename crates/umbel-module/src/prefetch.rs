//! A prefetch of one byte. An island of `unsafe`: a hint, which cannot fault.

/// Prefetches the cache line of `bytes[index]`; does nothing where there is no such hint. The safe alternative
/// is to do nothing: no answer depends on it.
#[inline(always)]
#[allow(unsafe_code, reason = "the prefetch hint has no safe name")]
pub(crate) fn prefetch(bytes: &[u8], index: usize) {
    let address = bytes.as_ptr().wrapping_add(index);
    #[cfg(all(target_arch = "x86_64", target_feature = "sse", not(miri)))]
    // SAFETY: a prefetch is a hint that never faults, whatever the address; SSE is on.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(any(miri, not(all(target_arch = "x86_64", target_feature = "sse"))))]
    let _ = address;
}
