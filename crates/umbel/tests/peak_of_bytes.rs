//! Opening bytes takes at most twice their length and a little more, whatever they announce. A separate binary,
//! because the counter includes every allocation.

#![cfg(feature = "std")]

use cap::Cap;
use std::alloc::System;
use umbel::any::AnyFilter;
use umbel::format::{Opening, Saved};
use umbel::hash::Portable;
use umbel::{InvalidBytes, RibbonMap};
use umbel_laws::split_mix;

#[allow(dead_code, reason = "other tests use more of it")]
#[path = "../examples/golden/filters.rs"]
mod filters;
#[allow(dead_code, reason = "other tests use more of it")]
#[path = "it/forge.rs"]
mod forge;

use filters::{Hashed, Numbered, Sort, Visitor};
use forge::{LENGTH, field, seal};

#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

struct Samples(Vec<Vec<u8>>);

impl Visitor<u64, Portable> for Samples {
    fn visit<S: Sort<u64, Portable>>(&mut self, (): &()) {
        self.0.push(S::of(0..2_000, Portable::hasher(), u64::numbered).to_bytes());
    }
}

/// Opens bytes in every way; returns the peak memory of this process beyond its current memory.
fn peak(bytes: &[u8], path: &std::path::Path) -> usize {
    let before = HEAP.allocated();
    let generous = Opening::new().limit(u64::MAX);
    let unknown = InvalidBytes::Unknown { field: "family", got: 14 };
    if AnyFilter::from_bytes(bytes).map(|_| ()) == Err(unknown) {
        let _ = RibbonMap::<u64, u8>::from_bytes(bytes);
    }
    let _ = AnyFilter::from_reader_as(bytes, generous);
    std::fs::write(path, bytes).unwrap();
    let _ = AnyFilter::load_as(path, generous);
    // The memory before can exceed the memory now, if a thread has ended.
    HEAP.max_allocated().saturating_sub(before)
}

#[test]
fn whatever_bytes_announce_they_take_little_memory() {
    let mut samples = Samples(Vec::new());
    filters::visit_families::<u64, Portable, ()>(&mut samples, &());
    let path = std::env::temp_dir().join(format!("umbel-peak-{}", std::process::id()));
    let longest = samples.0.iter().map(Vec::len).max().unwrap();
    let values = [1 << 20, 1 << 26, 1 << 30, 1 << 35, 1 << 40, (1 << 47) - 1, 1 << 62, u64::MAX];
    let (mut seed, mut tried) = (0, 0);
    for good in &samples.0 {
        for number in 0..13 {
            for value in values {
                let mut bytes = good.clone();
                let mut put = |at: usize, value: u64| {
                    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
                };
                put(field(number), value);
                // With the actual length, or a plausible one.
                seed += 1;
                if seed % 2 == 0 {
                    put(LENGTH, (value / 8).saturating_add(split_mix(seed) % 3 * 8));
                }
                seal(&mut bytes);
                let peak = peak(&bytes, &path);
                assert!(peak <= 2 * longest + (16 << 20), "{peak} bytes for {}", bytes.len());
                tried += 1;
            }
        }
    }
    std::fs::remove_file(path).unwrap();
    assert_eq!(tried, 16 * 13 * 8);
    // A stream that announces a terabyte and never ends: at most 16 MiB more than was received.
    let bits = (1_u64 << 43) - 1;
    let mut header = samples.0[0][..192].to_vec();
    header[field(1)..field(2)].copy_from_slice(&bits.to_le_bytes());
    header[LENGTH..LENGTH + 8].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    seal(&mut header);
    let limit = 1 << 26;
    let stream = std::io::Read::chain(&header[..], std::io::Read::take(std::io::repeat(0), limit));
    let before = HEAP.allocated();
    let result = AnyFilter::from_reader_as(stream, Opening::new().limit(u64::MAX));
    assert!(matches!(
        result,
        Err(umbel::format::OpenError::Invalid(InvalidBytes::Length { got, .. })) if got == limit + 192
    ));
    let peak = (HEAP.max_allocated() - before) as u64;
    assert!(peak <= 2 * limit + (16 << 20), "{peak}");
}
