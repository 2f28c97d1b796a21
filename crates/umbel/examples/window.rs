//! Checks that there is no false negative inside the window: `cargo run --release --example window
//! [OPERATIONS]`. The default is 1e8 operations, insertions and look-ups, with a window of a million at 1 %.

use umbel::WindowBloomFilter;
use umbel_laws::{Subject, keeps_the_window};

struct Filter(WindowBloomFilter<u64>);

impl Subject for Filter {
    fn make(window: u64, rate: f64, _: u64) -> Self {
        Self(WindowBloomFilter::new(window, rate))
    }
    fn insert(&mut self, key: u64) -> bool {
        self.0.insert(&key)
    }
    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }
    fn rate_now(&self) -> f64 {
        self.0.expected_rate()
    }
}

fn main() {
    let operations = std::env::args().nth(1).unwrap_or("1e8".into());
    let operations = operations.parse::<f64>().expect("a number of operations") as u64;
    keeps_the_window::<Filter>(1_000_000, 0.01, operations);
    println!("{operations} operations, no key of the last 1000000 lost");
}
