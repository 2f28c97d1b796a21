//! The `umbel` command as people run it: what it prints, what it says, how it ends.

#[cfg(feature = "redis")]
mod adopt; // filters on a server that was restarted
#[cfg(all(feature = "guard", unix))]
mod attached; // what a folder is attached to
mod bench; // speed and rates on one's own keys
mod build; // filters from keys, and adding and removing them
mod check; // which lines may be in a filter
mod cookbook; // every command of docs/cookbook.md, as written
mod copies; // equal lines, where keys can be removed
mod dedup; // each line once
mod end; // what dedup prints at the end of its input
#[cfg(feature = "guard")]
mod guard; // a filter in front of a table
mod help; // help, completions, manual pages
mod hostile; // bad bytes, full disks, closed pipes, signals
mod in_place; // files that are de-duplicated themselves
mod info; // what a file holds, and whether it is whole
mod keys; // which part of a record is its key
mod limit; // more keys than a filter was planned for
mod long; // records that are long, or have no end
mod lost; // what a filter loses, and what dedup says of it
mod meanwhile; // files that another program makes or changes while a run goes on
mod memory; // dedup goes over to a filter within its limit
mod merge; // one filter of several
mod options;
mod outputs; // options that have no effect, numbers, reports
mod packed; // packed inputs: what is read, what is refused, and what is cut off
mod parts; // keys of several fields, and the types of JSON
mod place; // a directory of its own, and what a run gave
mod plan; // all families side by side
#[cfg(feature = "guard")]
#[path = "../../../umbel-guard/tests/it/server.rs"]
#[allow(dead_code, reason = "the tests of umbel-guard need more of it")]
mod postgres; // a server, started here and gone with the test
#[cfg(unix)]
mod progress; // what a terminal shows meanwhile
mod python; // CSV and JSON as Python reads them
#[cfg(all(feature = "guard", unix))]
mod readable; // databases that cannot be written
mod records; // quotes that are not closed, records that are skipped, and - for a file
#[cfg(all(feature = "guard", unix))]
mod serve; // the same over HTTP: who may ask, and for how long
#[cfg(all(feature = "guard", unix))]
mod served; // what a server reports, and how it answers writes that are refused
#[cfg(feature = "redis")]
mod server; // filters on a server, instead of files
#[cfg(unix)]
mod signals; // how a command ends that is interrupted
mod state; // runs that go on where the last one stopped
#[cfg(unix)]
mod streams; // standard output that is closed, filters on standard input
#[cfg(feature = "guard")]
mod unchanged; // verbs of the guard that only read
