//! Measures error rates, with more keys than a test has time for.
//!
//! ```text
//! cargo run --release --example rates -- sizes      every size and rate the tests promise
//! cargo run --release --example rates -- blocked    the same, of the blocked filter
//! cargo run --release --example rates -- kernels    native positions against double hashing
//! cargo run --release --example rates -- hashers    the named hashes, on keys that trip weak ones
//! ```
//!
//! Every figure is the measured rate over the rate asked for, with one sigma of sampling.

#[path = "own_kernels/double.rs"]
mod double;
#[path = "own_kernels/independent.rs"]
mod independent;
#[path = "../tests/it/subjects.rs"]
#[allow(dead_code, reason = "written for the tests, which use all of it")]
mod subjects;

use double::DoubleHashing;
use independent::{Independent, ManyHashes};
use std::hash::BuildHasherDefault;
use subjects::{Blocked, Identity, Plain};
use umbel::hash::{City64, Farm64, Murmur3, Xxh3, Xxh64};
use umbel::{Keyed, Std};
use umbel_laws::{Pattern, RateReport, Subject, Trial};

const RATES: [f64; 4] = [0.1, 0.01, 0.001, 1.0 / 65_536.0];

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("sizes") => sizes::<Plain>(),
        Some("blocked") => sizes::<Blocked>(),
        Some("kernels") => kernels(),
        Some("hashers") => hashers(),
        _ => {
            eprintln!("usage: rates sizes|blocked|kernels|hashers");
            std::process::exit(2);
        }
    }
}

fn sizes<S: Subject>() {
    for pattern in Pattern::ALL {
        println!(
            "{pattern:?}\n{:>10} {:>18} {:>18} {:>18} {:>18}",
            "keys", "10 %", "1 %", "0.1 %", "2^-16"
        );
        for items in [1, 2, 5, 10, 100, 1_000, 10_000, 1_000_000] {
            print!("{items:>10}");
            for rate in RATES {
                let queries = f64::min(20_000.0 / rate, 2e7) as u64;
                print_cell(measure::<S>(items, rate, pattern, queries));
            }
            println!();
        }
    }
}

fn kernels() {
    println!("{:>22} {:>18} {:>18} {:>18}", "keys", "1 %", "0.1 %", "2^-16");
    for items in [10, 100, 10_000] {
        kernels_row::<Plain>("digits", items);
        kernels_row::<Plain<Murmur3, DoubleHashing>>("double hashing", items);
        kernels_row::<Plain<ManyHashes, Independent>>("independent", items);
    }
}

fn kernels_row<S: Subject>(name: &str, items: u64) {
    print!("{name:>15} {items:>6}");
    for rate in &RATES[1..] {
        let queries = f64::min(5_000.0 / rate, 3e6) as u64;
        print_cell(measure::<S>(items, *rate, Pattern::Random, queries));
    }
    println!();
}

fn hashers() {
    print!("{:>12}", "1,000 at 1 %");
    Pattern::ALL.iter().for_each(|pattern| print!(" {:>18}", format!("{pattern:?}")));
    println!();
    hashers_row::<Plain>("Portable");
    hashers_row::<Plain<Keyed>>("Keyed");
    hashers_row::<Plain<Murmur3>>("Murmur3");
    hashers_row::<Plain<Xxh64>>("Xxh64");
    hashers_row::<Plain<Xxh3>>("Xxh3");
    hashers_row::<Plain<City64>>("City64");
    hashers_row::<Plain<Farm64>>("Farm64");
    hashers_row::<Plain<Std<BuildHasherDefault<Identity>>>>("Std identity");
    #[cfg(feature = "crc64")]
    hashers_row::<Plain<umbel::hash::Crc64>>("Crc64");
}

fn hashers_row<S: Subject>(name: &str) {
    print!("{name:>12}");
    for pattern in Pattern::ALL {
        print_cell(measure::<S>(1_000, 0.01, pattern, 500_000));
    }
    println!();
}

fn measure<S: Subject>(items: u64, rate: f64, pattern: Pattern, queries: u64) -> RateReport {
    Trial { items, rate, pattern, seeds: 30, queries }.measure::<S>()
}

fn print_cell(report: RateReport) {
    let RateReport { ratio, sigma, worst_sigmas, .. } = report;
    print!(" {:>18}", format!("{ratio:.3}±{sigma:.3} {worst_sigmas:.1}s"));
}
