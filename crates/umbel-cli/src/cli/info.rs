//! The arguments of `umbel info` and `umbel verify`.

use super::Report;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(after_help = "\
A file is a filter, or what `umbel dedup --state` keeps, with --exact too.
Exit status: 0, or 2 if a file cannot be read or is damaged.

Example:
  umbel info --json block.umbel | jq .rate_now")]
pub(crate) struct Info {
    /// The files; - for standard input; redis://host:port/0?key=name for a filter on a server
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) report: Report,
}

#[derive(Args, Debug)]
#[command(after_help = "\
A file is a filter, or what `umbel dedup --state` keeps, with --exact too.
Exit status: 0 if every file is complete and undamaged, 1 if one is damaged or is no filter, 2 if one cannot be read.

Example:
  umbel verify -q block.umbel && cp block.umbel /srv/")]
pub(crate) struct Verify {
    /// The files; - for standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) report: Report,
}
