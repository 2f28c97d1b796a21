//! The `umbel` command as people run it: what it prints, what it says, how it ends.

mod bench; // speed and rates on one's own keys
mod build; // filters from keys, and adding and removing them
mod check; // which lines may be in a filter
mod cookbook; // every command of docs/cookbook.md, as written
mod dedup; // each line once
#[cfg(feature = "guard")]
mod guard; // a filter in front of a table
mod help; // help, completions, manual pages
mod hostile; // bad bytes, full disks, closed pipes, signals
mod info; // what a file holds, and whether it is whole
mod keys; // which part of a record is its key
mod long; // records that are long, or have no end
mod merge; // one filter of several
mod place; // a directory of its own, and what a run gave
mod plan; // all families side by side
#[cfg(feature = "guard")]
#[path = "../../../umbel-guard/tests/it/server.rs"]
#[allow(dead_code, reason = "the tests of umbel-guard need more of it")]
mod postgres; // a server, started here and gone with the test
#[cfg(all(feature = "guard", unix))]
mod serve; // the same over HTTP: who may ask, and for how long
#[cfg(feature = "redis")]
mod server; // filters on a server, instead of files
mod state; // runs that go on where the last one stopped
#[cfg(feature = "guard")]
mod unchanged; // verbs of the guard that only read
