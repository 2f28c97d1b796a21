//! Saves a filter of the first so many numbers at a path, and says what happened by its exit code: 0 if
//! it is saved, 1 if that failed. A test kills it and lets its system calls fail.
//!
//! `cargo run --release --example save_filter PATH KEYS`

use std::process::ExitCode;
use umbel::{BlockedBloomFilter, Saved};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let path = arguments.next().expect("a path");
    let keys = arguments.next().and_then(|keys| keys.to_str()?.parse().ok());
    let mut filter = BlockedBloomFilter::<u64>::new(20_000, 0.01);
    filter.extend(0..keys.expect("a number of keys"));
    // A call that does nothing: what follows it is the saving.
    let _ = std::fs::symlink_metadata("/begin");
    match filter.save(path) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
