//! The peak memory of reading. A separate test program, because the counter includes all allocations of the
//! process.

use cap::Cap;
use std::alloc::System;

#[path = "it/readers.rs"]
mod readers;
#[path = "it/samples.rs"]
#[allow(dead_code, reason = "the other tests use all of it")]
mod samples;

#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

/// The peak memory during this work, beyond the memory at its start.
fn peak(work: impl FnOnce()) -> usize {
    let before = HEAP.allocated();
    work();
    HEAP.max_allocated().saturating_sub(before)
}

#[test]
fn lengths_are_tested_before_memory_is_taken() {
    // Each of these announces gigabytes.
    let huge: [&[u8]; 7] = [
        &[1, 6, 0x7f, 0xff, 0xff, 0xff],
        &[0, 0, 0, 6, 0x7f, 0xff, 0xff, 0xff],
        &[0, 0, 0, 1, 0, 0, 0, 6, 0x7f, 0xff, 0xff, 0xff],
        &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 6, 1, 0x7f, 0xff, 0xff, 0xff],
        &[0, 0, 0, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0xff, 0, 0, 0, 0],
        &[3, 1, 21, 4, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0],
        &[4, 1, 21, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0],
    ];
    for bytes in huge {
        let most = peak(|| readers::every(bytes));
        assert!(most < 1 << 20, "{most} bytes for {bytes:?}");
    }
    let samples = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden")).unwrap();
    let mut samples: Vec<_> = samples.map(|entry| entry.unwrap().path()).collect();
    // From the least memory to the most, because the peak of the process never decreases.
    samples.retain(|path| path.is_file());
    samples.sort_by_key(|path| std::fs::metadata(path).unwrap().len());
    for path in samples {
        let bytes = std::fs::read(&path).unwrap();
        let most = peak(|| drop(umbel_foreign::recognise::recognise(&bytes)));
        assert!(most <= 16 * bytes.len() + (64 << 10), "{}: {most}", path.display());
    }
}
