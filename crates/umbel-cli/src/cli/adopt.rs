//! The arguments of `umbel adopt`.

use super::Records;
use clap::{ArgGroup, Args};
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("keys").args(["files", "whole"]).required(true))]
#[command(after_help = "\
A server that was restarted, or that took over from another one, may have lost keys that it had acknowledged. So a filter on it answers \
nothing (\"the server has another history than the filter\") until it is adopted: the keys of the files are inserted, and the filter answers again \
when all of them are in. If the command fails or is interrupted, the filter answers nothing, and the command can be run again.
You promise that the filter then has every key that it should have: that the files have every key that the server may have lost, or with --whole that \
it has lost none. A key that is missing is reported absent from then on. If in doubt, give all keys, or build the filter again with `umbel build --force`.

Examples:
  umbel adopt 'redis://127.0.0.1:6379/0?key=blocked' domains.txt
  umbel adopt 'redis://127.0.0.1:6379/0?key=seen' --whole")]
pub(crate) struct Adopt {
    /// The filter, redis://host:port/0?key=name
    #[arg(value_name = "ADDRESS")]
    pub(crate) filter: PathBuf,
    /// Files with every key that the server may have lost; standard input for -
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The server has lost no key: adopt the filter as it is
    #[arg(long)]
    pub(crate) whole: bool,
    #[command(flatten)]
    pub(crate) records: Records,
}
