//! The arguments of `umbel dedup`.

use super::{Form, HashChoice, Records, Size};
use crate::amount::{self, Span};
use clap::Args;
use std::path::PathBuf;

/// What options that print at the end of the input cannot go with. A group would have the conflict once, and clap would name all
/// members of the group in its message, also those that were not given.
const NOT_AT_THE_END: [&str; 8] =
    ["state", "window", "capacity", "rate", "hash", "overfull", "duplicates", "repeats"];

#[derive(Args, Debug)]
#[command(after_help = "\
Without -n, -p, --hash and --window the run is exact: it keeps 128 bits of every key, 20 to 43 bytes each, and drops no line by \
mistake. When it has taken half of the memory that the system can give (--memory SIZE sets another limit), it goes over to \
a filter and says from which line on. A filter takes 4 bytes for each key. Its false positive rate is the share of new lines that it \
takes for repeated ones and does not print: one in a million, or as -p says. If at least one line was \
probably lost, standard error says how many.

A filter that gets more different lines than it is planned for loses more and more of them. The run says so once, and ends with \
status 2 when the false positive rate is ten times the planned one. --overfull goes on.

-u, -c and --keep-last print at the end of the input, because only then the answer is known. They are exact, they keep the printed records in \
memory within the limit of --memory, and they end with status 2 and print nothing if that is not enough. A stream cannot print the \
count of a line before its end, nor take a line back that comes again. -d prints a line when it comes for the second time.

What goes together: -c with -u, not with --keep-last; -d and --repeats each alone. -D goes with plain runs, --state and --window, and \
not with -d, -u, -c, --keep-last, --repeats or --in-place. --total goes with all but --in-place. --state does not go with -d, since a \
state does not say which lines were printed as repeated, nor with --in-place, since lines that an earlier run has seen would be \
removed from their only copy: use -o. --memory is the limit for the whole \
run, or with -n, -p or --window for the filter.

Exit status: 0, or 2 if something went wrong. If the reader of standard output closes it early, as head does, the status is 0, \
the state and the file of duplicates stay as they were, and standard error says so: no line is lost, and the next run prints \
these lines again. With a state on a server it is 2, since lines that were not printed are marked as seen there.

-o, -D, --state and --in-place replace a file by a new one when it is whole. Symbolic links are followed, but other hard links to the old \
file still have the old content.

Examples:
  umbel dedup access.log.gz > once.log          each line once, in its order
  umbel dedup --csv email a.csv b.csv           each address once; one header
  umbel dedup --state seen.umbel today.log      what no run before has seen
  umbel dedup -n 1e9 -p 1e-4 huge.log           a billion different lines in 3 GB
  umbel dedup --in-place mon.log tue.log        the files themselves, each line in the first of them
  umbel dedup -c log | sort -rn | head          the most frequent lines
  umbel dedup --state 'redis://host:6379/0?key=seen&create' -n 1e7 log   what no machine has seen
  tail -f log | umbel dedup --window 10m -n 1e6 what was not there in the last ten minutes")]
pub(crate) struct Dedup {
    /// Where lines come from; standard input for none and for -. Packed input is unpacked (gzip, zstd, xz, bzip2, lz4)
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Never go over to a filter: end with status 2 if there is no memory, or if --memory is not enough
    #[arg(long, conflicts_with_all = ["capacity", "rate", "window", "overfull"])]
    pub(crate) exact: bool,
    /// Forget lines after this many others, and at the latest after a quarter more (below 500 lines: after twice as many); or after this long: 500ms, 30s, 10m (minutes), 2h, 1d
    #[arg(long, value_name = "SPAN", value_parser = amount::span)]
    pub(crate) window: Option<Span>,
    /// Go on where the last run with this file stopped, and save it for the next one; or with a filter on a server
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// How the keys of a filter are hashed [default: keyed, or as the state is]
    #[arg(long, value_enum, conflicts_with = "exact")]
    pub(crate) hash: Option<HashChoice>,
    /// Go on although the filter has ten times the planned false positive rate
    #[arg(long)]
    pub(crate) overfull: bool,
    /// Print one copy of each line that comes more than once, when it comes for the second time
    #[arg(short = 'd', long, conflicts_with_all = ["unique", "keep_last", "duplicates", "window", "repeats"])]
    pub(crate) repeated: bool,
    /// Print the lines that come exactly once, at the end of the input
    #[arg(short = 'u', long, conflicts_with = "keep_last", conflicts_with_all = NOT_AT_THE_END)]
    pub(crate) unique: bool,
    /// Print each line with the number of times that it comes, at the end of the input
    #[arg(short = 'c', long, conflicts_with = "keep_last", conflicts_with_all = NOT_AT_THE_END)]
    pub(crate) count: bool,
    /// Print the last record of each key instead of the first, at the end of the input
    #[arg(long, conflicts_with_all = NOT_AT_THE_END)]
    pub(crate) keep_last: bool,
    /// Print every line that was seen before, each time it comes again
    #[arg(long)]
    pub(crate) repeats: bool,
    /// Write every line that was seen before to this file; - for standard output
    #[arg(short = 'D', long, value_name = "FILE", conflicts_with = "repeats")]
    pub(crate) duplicates: Option<PathBuf>,
    /// Print how many lines there would be, and not the lines
    #[arg(long)]
    pub(crate) total: bool,
    /// Write to this file instead of standard output; it is there whole at the end, or not at all; - for standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// De-duplicate the files themselves: each line stays in the first file that has it
    #[arg(long, requires = "files", conflicts_with_all = ["skip_bad", "output", "duplicates", "repeated", "unique",
        "count", "keep_last", "repeats", "total", "window", "capacity", "rate", "hash", "overfull"])]
    pub(crate) in_place: bool,
    /// Tell on standard error what was done, in one line or as JSON
    #[arg(short = 'v', long, visible_alias = "verbose", value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    pub(crate) stats: Option<Form>,
    /// As --stats, as text or JSON
    #[arg(long, value_name = "FORM", conflicts_with = "stats")]
    pub(crate) report: Option<Form>,
    /// Replace the files of -o and -D if they are there
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) size: Size,
    #[command(flatten)]
    pub(crate) records: Records,
}

impl Dedup {
    /// Whether the options describe a filter. `--memory` alone is a limit.
    pub(crate) fn asks_for_filter(&self) -> bool {
        let Size { capacity, rate, .. } = self.size;
        capacity.is_some() || rate.is_some() || self.window.is_some() || self.hash.is_some()
    }

    /// Whether lines are printed at the end of the input.
    pub(crate) fn prints_at_the_end(&self) -> bool {
        self.unique || self.count || self.keep_last
    }

    /// How the run is told, if that was asked for.
    pub(crate) fn form(&self) -> Option<Form> {
        self.stats.or(self.report)
    }
}
