//! `BF.*` and `CF.*` inside Redis and Valkey, compatible with existing RedisBloom data.
//!
//! ```text
//! cargo build --release -p umbel-module
//! redis-server --loadmodule target/release/libumbel_module.so
//! ```
//!
//! One library for Redis from 6.2 on and for Valkey, tested in Redis 6.2, 7.0 and 8.0, Valkey 8.1 and 9.1. Its
//! Bloom and cuckoo filters are bit-identical to RedisBloom's: clients, RDB and AOF files, replicas and dumps
//! work in both directions. Features beyond RedisBloom use separate types. `docs/module.md` describes the
//! commands, the settings and the formats.
//!
//! # Reading order
//!
//! 1. [`murmur`], [`bloom`], [`cuckoo`]: RedisBloom's filters, without an engine.
//! 2. [`membership`] and [`own`]: the interface of a filter, and filters beyond RedisBloom's, made of `umbel`'s
//!    types.
//! 3. `command`: the table of commands, and their implementation. `settings`: the configuration.
//! 4. `stored`: the types of values and their encodings. `sketches`: RedisBloom values that the module keeps
//!    but does not serve. [`memory`]: the memory of a value.
//! 5. `engine`: the interface to the engine, an island of `unsafe`.
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
