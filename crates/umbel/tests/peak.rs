//! Building takes no more memory than documented. A separate binary, because the counter includes every
//! allocation.

#![cfg(feature = "alloc")]

use cap::Cap;
use std::alloc::System;
use umbel::frozen::{Build, Frozen, Map, Peeled};
use umbel::fuse::Fused;
use umbel::xor::Thirds;
use umbel::{Digest, Portable};

#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

/// The memory that the test runner may allocate in another thread.
const RUNNER: u64 = 4096;

/// Builds a filter, and returns the peak memory of this process beyond its current memory.
fn peak<M: Map>(items: u64, repeated: u64) -> u64 {
    let before = HEAP.allocated();
    let digests = (0..items).map(|number| Digest::mixed(number % (items - repeated)));
    let filter =
        Frozen::<u64, Portable, Peeled<M>>::build_from_digests(Build::new(0.004), digests).unwrap();
    assert_eq!(filter.len(), items - repeated);
    (HEAP.max_allocated() - before) as u64
}

fn stated<M: Map>(items: u64) -> u64 {
    Frozen::<u64, Portable, Peeled<M>>::peak_bytes(items, 0.004).unwrap()
}

#[test]
fn building_takes_no_more_memory_than_it_says() {
    // From the least memory to the most, because the peak never decreases.
    for items in [1_000, 70_000, 200_000, 700_000, 3_200_000] {
        for repeated in [0, items / 100] {
            let (peak, stated) = (peak::<Fused<3>>(items, repeated), stated::<Fused<3>>(items));
            assert!(
                peak <= stated + RUNNER,
                "{items} keys: {peak} bytes, and {stated} were stated"
            );
            // The documented memory is not far too large either.
            assert!(
                repeated != 0 || stated < peak + peak / 4 + 100_000,
                "{items} keys: {peak} of {stated}"
            );
        }
    }
    let (peak, stated) = (peak::<Thirds>(5_000_000, 0), stated::<Thirds>(5_000_000));
    assert!(peak <= stated + RUNNER, "{peak} bytes, and {stated} were stated");
}
