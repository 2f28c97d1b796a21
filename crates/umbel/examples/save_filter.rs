//! Saves a filter of the first `KEYS` numbers at a path. The exit code is 0 if it was saved, and 1 if that
//! failed. A test kills this program and injects failures into its system calls.
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
    // A system call without effect, which marks the start of the save.
    let _ = std::fs::symlink_metadata("/begin");
    match filter.save(path) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
