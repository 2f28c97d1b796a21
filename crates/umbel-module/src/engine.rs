//! The interface to Redis or Valkey. It is an island of `unsafe`: all calls from and to the engine are here.
//!
//! ```text
//!     RedisModule_OnLoad -> api: functions by name, optional ones probed
//!                           alloc: all memory from the engine from here on
//!                           datatype, rdb: values, files      command, context, key: calls
//!                           config: settings              panic: ends where it happened
//! ```
//!
//! The code above it is safe. A [`Context`], [`Arguments`] and [`Key`]s live as long as the call that passed
//! them, values are borrowed from keys, and a panic ends at the callback in which it happened.

#![allow(unsafe_code, reason = "the engine is written in C")]
#![allow(clippy::module_name_repetitions, reason = "names of the engine")]

#[cfg(panic = "abort")]
compile_error!(
    "umbel-module needs panic = \"unwind\": a panic in a command is an error reply, and with \"abort\" it would end the server"
);

mod alloc;
mod api;
mod arguments;
mod command;
mod config;
mod context;
mod datatype;
mod key;
mod load;
mod panic;
mod rdb;

pub(crate) use arguments::{Described, Kind};
pub(crate) use command::{Access, Command};
pub(crate) use context::{Argument, Arguments, Context, Fault, Outcome};
pub(crate) use datatype::{Slot, Stored};
pub(crate) use key::Key;
pub(crate) use rdb::{Digester, Loader, Mover, Rewriter, Saver};
