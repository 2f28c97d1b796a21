//! What the real programs wrote and answered, and what happens to bytes that they did not write.

mod blooms;

mod hostile;
mod recognised;
mod redis;
mod samples;
mod statics;

/// So many cases of a property, the same in every run.
fn cases(cases: u32) -> proptest::test_runner::Config {
    use proptest::test_runner::{Config, RngSeed};
    Config { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(28), ..Config::default() }
}
