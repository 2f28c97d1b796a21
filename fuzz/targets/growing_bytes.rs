//! A filter that accepts keys, with some bytes changed and correct checksums, is a filter or an error. A filter
//! that is accepted works and returns its bytes.
#![no_main]

#[path = "../shared/edited.rs"]
mod edited;
#[allow(dead_code, reason = "tests use more of it")]
#[path = "../../crates/umbel/examples/golden/filters.rs"]
mod filters;
#[allow(dead_code, reason = "tests use more of it")]
#[path = "../../crates/umbel/tests/it/forge.rs"]
mod forge;
#[path = "../../crates/umbel/tests/it/opened.rs"]
mod opened;

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static SAMPLES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    edited::samples(&[
        "bloom",
        "blocked",
        "split",
        "counting",
        "blocked-counting",
        "scalable",
        "stable",
        "window",
        "window-of-time",
        "cuckoo",
        "quotient",
    ])
});

fuzz_target!(|data: &[u8]| edited::check(&SAMPLES, data));
