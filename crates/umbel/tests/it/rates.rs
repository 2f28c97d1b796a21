//! The promised false positive rate for every size, rate and pattern of keys. The mean of thirty seeds (ten for
//! a million keys) is at most the requested rate, and each seed is within five sigma of the rate that its fill
//! predicts.
//!
//! `cargo run --release --example rates` measures the same with more keys and prints the results.

use crate::subjects::{Blocked, Identity, Plain, Strings};
use std::hash::BuildHasherDefault;
use umbel::Std;
use umbel::blocked::Lines;
use umbel_laws::{Pattern, Subject, Trial, rate_within};

fn every_size_and_rate<S: Subject>(pattern: Pattern) {
    for items in [1, 2, 5, 10, 100, 1_000, 10_000, 1_000_000] {
        for rate in [0.1, 0.01, 0.001, 1.0 / 65_536.0] {
            // The builds of a million keys take most of the time.
            let seeds = if items < 1_000_000 { 30 } else { 10 };
            // Enough queries for 2,000 expected false positives per run, within the time limit.
            let queries = f64::min(2_000.0 / rate, 1e6) as u64;
            rate_within::<S>(Trial { items, rate, pattern, seeds, queries });
        }
    }
}

/// The same tests for every family: one for each pattern of keys.
macro_rules! families {
    ($($family:ident: $subject:ty, $identity:ty, $strings:ty;)*) => {$(
        mod $family {
            use super::*;

            families! {@
                sequential_keys_keep_the_rate: $subject, Sequential;
                random_keys_keep_the_rate: $subject, Random;
                keys_with_a_common_prefix_keep_the_rate: $subject, CommonPrefix;
                keys_one_bit_apart_keep_the_rate: $subject, OneBitApart;
                keys_like_doubles_keep_the_rate: $subject, FloatLike;
                keys_that_differ_in_their_upper_half_keep_the_rate: $subject, UpperHalf;
                keys_of_two_equal_halves_keep_the_rate: $subject, EqualHalves;
            }

            #[test]
            fn the_identity_as_hasher_keeps_the_rate() {
                every_size_and_rate::<$identity>(Pattern::Sequential);
                let (items, rate, pattern) = (1_000, 0.01, Pattern::FloatLike);
                let doubles = Trial { items, rate, pattern, seeds: 30, queries: 200_000 };
                rate_within::<$identity>(doubles);
            }

            #[test]
            fn strings_with_a_common_prefix_keep_the_rate() {
                for (items, rate) in [(1, 0.01), (10, 0.001), (1_000, 0.1), (100_000, 0.01)] {
                    let pattern = Pattern::Sequential;
                    let trial = Trial { items, rate, pattern, seeds: 30, queries: 100_000 };
                    rate_within::<$strings>(trial);
                }
            }
        }
    )*};
    (@ $($name:ident: $subject:ty, $pattern:ident;)*) => {$(
        #[test]
        fn $name() {
            every_size_and_rate::<$subject>(Pattern::$pattern);
        }
    )*};
}

/// The weakest possible hasher.
type Weak = Std<BuildHasherDefault<Identity>>;

families! {
    classic: Plain, Plain<Weak>, Strings;
    blocked: Blocked, Blocked<Weak>, Strings<Lines>;
}
