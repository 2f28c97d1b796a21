//! The arguments of `umbel plan`.

use super::{Report, Size};
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(after_help = "\
Without -p and --memory, filters are planned for a false positive rate of 1 %. With --memory and without -p, every family is shown \
at the lowest rate that fits; with both, the families that fit.

Examples:
  umbel plan -n 10M -p 0.1%
  umbel plan -n 1e9 --memory 1GiB --chart")]
pub(crate) struct Plan {
    /// Draw the rates at other loads below the table, in text
    #[arg(long)]
    pub(crate) chart: bool,
    /// Draw the rates at other loads into this file
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Replace the file if it is there
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) report: Report,
    #[command(flatten)]
    pub(crate) size: Size,
}
