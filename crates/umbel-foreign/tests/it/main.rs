//! Filters and answers of the original programs, and damaged bytes.

mod blooms;

mod hostile;
mod recognised;
mod redis;
mod samples;
mod statics;

/// The number of cases of a property; the same cases in every run.
fn cases(cases: u32) -> proptest::test_runner::Config {
    use proptest::test_runner::{Config, RngSeed};
    Config { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(28), ..Config::default() }
}
