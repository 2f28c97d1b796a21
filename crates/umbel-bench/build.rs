//! Records the compiler for the machine facts of the reports.

use std::{env, process::Command};

fn main() {
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let version = Command::new(rustc)
        .arg("--version")
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .unwrap_or_default();
    let fact = |name: &str| env::var(name).unwrap_or_default();
    println!("cargo::rustc-env=UMBEL_BENCH_RUSTC={}", version.trim());
    println!("cargo::rustc-env=UMBEL_BENCH_TARGET={}", fact("TARGET"));
    println!("cargo::rustc-env=UMBEL_BENCH_FEATURES={}", fact("CARGO_CFG_TARGET_FEATURE"));
    println!("cargo::rustc-env=UMBEL_BENCH_OPT_LEVEL={}", fact("OPT_LEVEL"));
    println!("cargo::rerun-if-changed=build.rs");
}
