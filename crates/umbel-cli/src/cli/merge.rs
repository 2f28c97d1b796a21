//! The arguments of `umbel merge`.

use super::Report;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(after_help = "\
Filters can be merged if they have one family, one size and one hash: build each with the -n and -p of all together. Static and \
scalable filters cannot be merged: build one filter from all keys. If the filters \
together hold so many keys that the false positive rate is more than ten times the planned one, nothing is written, unless \
--overfull is given.

Example:
  umbel merge -o all.umbel shard-*.umbel")]
pub(crate) struct Merge {
    /// The filters; - for one on standard input
    #[arg(required = true, value_name = "FILTER")]
    pub(crate) filters: Vec<PathBuf>,
    /// The file to write; - for standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Only keys that are in all of them, where the family allows
    #[arg(long)]
    pub(crate) intersect: bool,
    /// Replace the file if it is there
    #[arg(long)]
    pub(crate) force: bool,
    /// Merge all keys, however far the false positive rate rises above the planned one; cuckoo, quotient and scalable filters keep their rate
    #[arg(long)]
    pub(crate) overfull: bool,
    #[command(flatten)]
    pub(crate) report: Report,
}
