//! A classic Bloom filter with custom hash functions.
//!
//! `cargo run --release --example own_kernels`

mod independent;

use independent::{HASHES, Independent, ManyHashes};
use umbel::bloom::{Bloom, Shape};
use umbel::storage::Heap;

fn main() -> Result<(), umbel::InvalidShape> {
    let shape = Shape::for_rate(10_000, 0.01)?;
    let mut seen =
        Bloom::<str, _, Heap, _>::with_kernels(shape, ManyHashes::seeded(1), Independent)?;
    for number in 0..10_000 {
        seen.insert(number.to_string().as_str());
    }
    assert!((0..10_000).all(|number: u32| seen.contains(number.to_string().as_str())));
    let absent = 10_000..110_000;
    let found = absent.filter(|number: &u32| seen.contains(number.to_string().as_str())).count();
    println!("{} of {HASHES} hashes, {found} of 100,000 absent keys found", shape.probes());
    Ok(())
}
