//! Building takes no more memory than it says. In a binary of its own, for it counts every byte.

#![cfg(feature = "alloc")]

use cap::Cap;
use std::alloc::System;
use umbel::frozen::{Build, Frozen, Map, Peeled};
use umbel::fuse::Fused;
use umbel::xor::Thirds;
use umbel::{Digest, Portable};

#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

/// What the runner of the tests may take meanwhile, in another thread.
const RUNNER: u64 = 4096;

/// Builds a filter, and returns the most memory that this process ever had beyond what it has now.
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
    // From the least memory to the most: what is counted is the most there ever was.
    for items in [1_000, 70_000, 200_000, 700_000, 3_200_000] {
        for repeated in [0, items / 100] {
            let (peak, stated) = (peak::<Fused<3>>(items, repeated), stated::<Fused<3>>(items));
            assert!(
                peak <= stated + RUNNER,
                "{items} keys: {peak} bytes, and {stated} were stated"
            );
            // Nor does it state far too much.
            assert!(
                repeated != 0 || stated < peak + peak / 4 + 100_000,
                "{items} keys: {peak} of {stated}"
            );
        }
    }
    let (peak, stated) = (peak::<Thirds>(5_000_000, 0), stated::<Thirds>(5_000_000));
    assert!(peak <= stated + RUNNER, "{peak} bytes, and {stated} were stated");
}
