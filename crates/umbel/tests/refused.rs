//! Refusals by the allocator. A separate binary, because its allocator has a limit.

#![cfg(feature = "alloc")]

use cap::Cap;
use std::alloc::System;
use umbel::{BlockedBloomFilter, BloomFilter, CuckooFilter, InvalidShape, WindowBloomFilter};

#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

#[test]
fn a_copy_that_is_refused_is_an_error() {
    let keys = 0..100_000_u64;
    let mut classic = BloomFilter::<u64>::new(100_000, 0.01);
    let mut blocked = BlockedBloomFilter::<u64>::new(100_000, 0.001);
    let mut window = WindowBloomFilter::<u64>::new(50_000, 0.01);
    let mut cuckoo = CuckooFilter::<u64>::new(100_000, 0.01);
    for key in keys.clone() {
        classic.insert(&key);
        blocked.insert(&key);
        window.insert(&key);
        cuckoo.insert(&key).unwrap();
    }
    assert_eq!(classic.try_clone().unwrap(), classic);
    assert_eq!(blocked.try_clone().unwrap(), blocked);
    assert_eq!(cuckoo.try_clone().unwrap(), cuckoo);
    // The copy continues exactly as the filter does: its hand has the same position.
    let mut copy = window.try_clone().unwrap();
    for key in keys.end..keys.end + 1_000 {
        assert_eq!(copy.insert(&key), window.insert(&key));
    }
    assert!((0..keys.end).all(|key| copy.contains(&key) == window.contains(&key)));
    drop(copy);
    // Enough for the test runner, and less than any of the copies.
    HEAP.set_limit(HEAP.allocated() + 50_000).unwrap();
    let refused = [
        classic.try_clone().err(),
        blocked.try_clone().err(),
        window.try_clone().err(),
        cuckoo.try_clone().err(),
    ];
    HEAP.set_limit(usize::MAX).unwrap();
    let bytes = [classic.bytes(), blocked.bytes(), window.bytes(), cuckoo.bytes()];
    let expected = bytes.map(|bytes| Some(InvalidShape::OutOfMemory { bytes }));
    assert_eq!(refused, expected);
}
