//! Building takes no more memory than documented. A separate binary with an allocator that counts.

#![cfg(feature = "std")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use umbel::ribbon::{ValueWidth, map_peak_bytes};
use umbel::{RibbonFilter, RibbonMap, frozen::Build};

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn add(bytes: usize) {
    let now = NOW.fetch_add(bytes, Relaxed) + bytes;
    MOST.fetch_max(now, Relaxed);
}

// SAFETY: the system's allocator does all the work; this only counts.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // The kernel moves large allocations page by page, so they never exist twice.
        NOW.fetch_sub(layout.size(), Relaxed);
        add(size);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static HEAP: Counting = Counting;

/// The peak of the bytes that `work` had allocated.
fn peak<R>(work: impl FnOnce() -> R) -> u64 {
    let before = NOW.load(Relaxed);
    MOST.store(before, Relaxed);
    drop(work());
    (MOST.load(Relaxed) - before) as u64
}

/// A single test, because there is one allocator.
#[test]
fn building_takes_no_more_than_it_says() {
    // A first build allocates everything that is allocated only once.
    drop(RibbonFilter::<u64>::build(0..10_000_u64, 0.01));
    for items in [0, 1, 100, 3_000, 3_001, 8_193, 70_000, 131_073, 140_000, 500_000, 1_000_000] {
        for bits in [1, 8, 9, 32] {
            let rate = 1.0 / (1_u64 << bits) as f64;
            let said = RibbonFilter::<u64>::peak_bytes(items, rate).unwrap();
            let took = peak(|| RibbonFilter::<u64>::build(0..items, rate).unwrap());
            assert!(took <= said, "{items} keys of {bits} bits: {took} of {said} bytes");
            assert!(
                items < 100_000 || said <= took * 2,
                "{items} keys of {bits} bits: {took}, {said}"
            );
            if bits == 8 && items >= 100_000 {
                assert!(took * 8 <= items * 165, "{items} keys: {took} bytes");
            }
        }
        let (said, width) = (map_peak_bytes(items, 8), ValueWidth::Bits(8));
        let pairs = (0..items).map(|key| (key, key as u8));
        let took =
            peak(|| RibbonMap::<u64, u8>::build_with(Build::for_values(), width, pairs).unwrap());
        assert!(took <= said, "{items} pairs: {took} of {said} bytes");
    }
    let copies = (0..400_000).map(|key| key % 7);
    let said = RibbonFilter::<u64>::peak_bytes(400_000, 0.01).unwrap();
    let took = peak(|| RibbonFilter::<u64>::build(copies, 0.01).unwrap());
    assert!(took <= said, "copies: {took} of {said} bytes");
}
