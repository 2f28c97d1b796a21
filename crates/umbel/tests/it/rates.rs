//! The promised rate for every size, rate and pattern of keys: the mean of thirty seeds at most 1.02
//! times the rate asked for, each seed within five sigma of what its fill predicts.
//!
//! `cargo run --release --example rates` measures the same with more keys and prints what it finds.

use crate::subjects::{Identity, Plain, Strings};
use std::hash::BuildHasherDefault;
use umbel::Std;
use umbel_laws::{Pattern, Subject, Trial, rate_within};

fn every_size_and_rate<S: Subject>(pattern: Pattern) {
    for items in [1, 2, 5, 10, 100, 1_000, 10_000, 1_000_000] {
        for rate in [0.1, 0.01, 0.001, 1.0 / 65_536.0] {
            // Enough to expect 2,000 absent keys to be found in a run, within what time allows.
            let queries = f64::min(2_000.0 / rate, 1e6) as u64;
            rate_within::<S>(Trial { items, rate, pattern, seeds: 30, queries });
        }
    }
}

#[test]
fn sequential_keys_keep_the_rate() {
    every_size_and_rate::<Plain>(Pattern::Sequential);
}

#[test]
fn random_keys_keep_the_rate() {
    every_size_and_rate::<Plain>(Pattern::Random);
}

#[test]
fn keys_with_a_common_prefix_keep_the_rate() {
    every_size_and_rate::<Plain>(Pattern::CommonPrefix);
}

#[test]
fn keys_one_bit_apart_keep_the_rate() {
    every_size_and_rate::<Plain>(Pattern::OneBitApart);
}

#[test]
fn keys_like_doubles_keep_the_rate() {
    every_size_and_rate::<Plain>(Pattern::FloatLike);
}

#[test]
fn keys_that_differ_in_their_upper_half_keep_the_rate() {
    every_size_and_rate::<Plain>(Pattern::UpperHalf);
}

#[test]
fn keys_of_two_equal_halves_keep_the_rate() {
    every_size_and_rate::<Plain>(Pattern::EqualHalves);
}

#[test]
fn the_identity_as_hasher_keeps_the_rate() {
    every_size_and_rate::<Plain<Std<BuildHasherDefault<Identity>>>>(Pattern::Sequential);
    let doubles = Trial {
        items: 1_000,
        rate: 0.01,
        pattern: Pattern::FloatLike,
        seeds: 30,
        queries: 200_000,
    };
    rate_within::<Plain<Std<BuildHasherDefault<Identity>>>>(doubles);
}

#[test]
fn strings_with_a_common_prefix_keep_the_rate() {
    for (items, rate) in [(1, 0.01), (10, 0.001), (1_000, 0.1), (100_000, 0.01)] {
        let pattern = Pattern::Sequential;
        rate_within::<Strings>(Trial { items, rate, pattern, seeds: 30, queries: 100_000 });
    }
}
