//! Advanced SIMD on aarch64.
