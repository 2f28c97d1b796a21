//! `BF.*` and `CF.*` inside Redis and Valkey, on data people already have.
//!
//! ```text
//! cargo build --release -p umbel-module
//! redis-server --loadmodule target/release/libumbel_module.so
//! ```
//!
//! One library for Redis from 6.2 on and for Valkey, tested in Redis 6.2, 7.0 and 8.0, Valkey 8.1 and 9.1. Its Bloom and cuckoo filters are
//! RedisBloom's to the bit: clients, RDB and AOF files, replicas and dumps move over and back. What goes beyond that has
//! types of its own. `docs/module.md` has the commands, the settings and the bytes.
//!
//! # Reading order
//!
//! 1. [`murmur`], [`bloom`], [`cuckoo`]: RedisBloom's filters, without an engine.
//! 2. [`membership`] and [`own`]: what a filter is asked, and filters beyond RedisBloom's, made of `umbel`'s families.
//! 3. `command`: the table of commands, and what they do. `settings`: what can be configured.
//! 4. `stored`: the types of values and their encodings. `sketches`: values of RedisBloom that are kept for it. [`memory`]: what a value takes.
//! 5. `engine`: everything that crosses to the engine, the island of `unsafe`.
//!
//! ```
//! use umbel_module::bloom::{Chain, Growth};
//! use umbel_module::membership::Membership;
//!
//! let mut seen = Chain::new(1_000, 0.01, Growth::By(2))?;
//! let mut fresh = [false; 2];
//! assert_eq!(seen.put(&[b"a", b"b"], &mut fresh), Ok(()));
//! assert_eq!(fresh, [true, true]);
//! let mut found = [false; 2];
//! seen.find(&[b"a", b"c"], &mut found);
//! assert_eq!(found, [true, false]);
//! # Ok::<(), umbel_module::error::Invalid>(())
//! ```

#![deny(unsafe_code)]

pub mod bloom;
mod chunks;
mod command;
pub mod cuckoo;
mod engine;
pub mod error;
pub mod membership;
pub mod memory;
pub mod murmur;
pub mod own;
mod prefetch;
mod settings;
mod sketches;
mod stored;
