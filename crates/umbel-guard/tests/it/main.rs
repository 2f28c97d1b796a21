//! The guard in front of real and of failing data sets: its answers, its queries, and what it survives.

mod chaos; // an exact model, faults of every kind, a million operations
mod contract; // what every data set must do, for each that is there
mod dropped;
mod faulty; // a data set in memory that fails on command
mod fleet; // guards that share a filter, which is lost repeatedly
mod floods; // concurrent look-ups of one key, remembered absences, limits
mod foreign; // rows that are written without the guard
mod killed; // a guarded process that is killed between any two steps
mod kinds; // a filter in memory that fails and waits on command
mod life; // states, rebuilds, audits
mod lineage; // copies and backups of data sets and folders, and guards that replace each other
mod orders; // the order of steps
mod promises; // one test per condition in the source
mod restart; // what survives the process, and what is not used
#[allow(dead_code, reason = "the tests of umbel-cli need more of it")]
mod server; // PostgreSQL, started here and gone with the test
#[path = "../../../umbel-redis/tests/it/servers.rs"]
#[allow(dead_code, reason = "the tests of umbel-redis need more of it")]
mod servers;
mod sets; // what each data set refuses, verifies and remembers // Redis and Valkey, likewise
