//! BF.* and CF.* inside Redis and Valkey.
#![deny(unsafe_code)]

pub mod bloom;
pub mod cuckoo;
pub mod error;
pub mod memory;
pub mod murmur;
mod prefetch;
