//! Any bytes are a filter of another system or an error, for every reader of `umbel-foreign`. A filter that is
//! accepted works and returns its bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/umbel-foreign/tests/it/readers.rs"]
mod readers;

fuzz_target!(|data: &[u8]| readers::every(data));
