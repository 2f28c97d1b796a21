//! The guard before real data sets and before ones that fail: what it says, what it asks, what it survives.

mod chaos; // an exact model, faults of every kind, a million operations
mod contract; // what every data set must do, for each that is there
mod dropped;
mod faulty; // a data set in memory that fails when it is told to
mod fleet; // guards that share a filter, which is lost again and again
mod floods; // many questions for one key, absences that are remembered, limits
mod foreign; // rows that are written without the guard
mod killed; // a guarded process that is killed between any two steps
mod kinds; // a filter in memory that fails and waits when it is told to
mod life; // states, rebuilds, audits
mod lineage; // copies and backups of data sets and folders, and guards that replace each other
mod orders; // what happens before what
mod promises; // what a single condition in the source keeps
mod restart; // what outlives the process, and what is not used
#[allow(dead_code, reason = "the tests of umbel-cli need more of it")]
mod server; // PostgreSQL, started here and gone with the test
#[path = "../../../umbel-redis/tests/it/servers.rs"]
#[allow(dead_code, reason = "the tests of umbel-redis need more of it")]
mod servers;
mod sets; // what each data set refuses, verifies and remembers // Redis and Valkey, likewise
