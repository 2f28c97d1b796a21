//! Prefetches cache lines. An island of `unsafe`: the instructions are hints, which cannot fault.

/// Prefetches the cache line of `slice[index]`. Does nothing if there is no such instruction or no
/// such element. The safe equivalent does nothing, because no answer depends on it.
#[inline(always)]
#[allow(unsafe_code, reason = "the prefetch hint has no safe name")]
pub(crate) fn prefetch<W>(slice: &[W], index: usize) {
    let address = slice.as_ptr().wrapping_add(index);
    #[cfg(all(target_arch = "x86_64", target_feature = "sse", not(miri)))]
    // SAFETY: a prefetch is a hint that never faults, whatever the address; SSE is on.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: `prfm` is a hint that never faults, whatever the address; it changes no register.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, readonly, preserves_flags));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = address;
}

/// As `prefetch`, into the second-level cache only. It allows far more outstanding requests than
/// the first-level cache, so this is for distant memory: from 120 MB on, lines arrive twice as fast
/// on Zen 4.
#[inline(always)]
#[allow(unsafe_code, reason = "the prefetch hint has no safe name")]
pub fn prefetch_far<W>(slice: &[W], index: usize) {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse", not(miri)))]
    // SAFETY: a prefetch is a hint that never faults, whatever the address; SSE is on.
    unsafe {
        let address = slice.as_ptr().wrapping_add(index);
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T1 }>(address.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse", not(miri))))]
    prefetch(slice, index);
}

/// As [`prefetch`], for a line that will be written. The core takes ownership of the line now,
/// which saves a second request when it is written.
#[inline(always)]
#[allow(unsafe_code, reason = "the prefetch hint has no safe name")]
pub(crate) fn prefetch_to_write<W>(slice: &[W], index: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: `prefetchw` is a hint that never faults, whatever the address, and a no-op on x86-64
    // processors that do not know it; it changes no register.
    unsafe {
        core::arch::asm!(
            "prefetchw byte ptr [{}]",
            in(reg) slice.as_ptr().wrapping_add(index),
            options(nostack, readonly, preserves_flags)
        );
    }
    #[cfg(any(miri, not(target_arch = "x86_64")))]
    prefetch(slice, index);
}
