//! The arguments of `umbel add` and `umbel remove`.

use super::{Form, Records};
use clap::Args;
use std::path::PathBuf;

/// What both take.
#[derive(Args, Debug)]
pub(crate) struct Change {
    /// The filter, which is replaced as a whole when all keys are read; - for standard input, and the changed one goes to standard output
    pub(crate) filter: PathBuf,
    /// The files with the keys; standard input for none and for -
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// How the result is reported: text on standard error, or a JSON object on standard output
    #[arg(long, value_enum, value_name = "FORM", default_value = "text")]
    pub(crate) report: Form,
    #[command(flatten)]
    pub(crate) records: Records,
}

#[derive(Args, Debug)]
#[command(after_help = "\
If something goes wrong the filter stays as it was. A filter on a server, redis://host:port/0?key=name, is changed as keys come.
The file is replaced by a new one: symbolic links are followed, but other hard links to the old file still have the old filter.
More keys than planned are added with a warning, up to ten times the planned false positive rate. How many keys a filter held before is \
judged by its bits, so up to 5 % more (1.5 % from 10,000 keys on) may have no warning. Past that the command ends with \
status 2 and the filter stays as it was, unless --overfull is given.
In a filter that can remove keys, adding a key twice in one run adds it once; in two runs (or by build and add), twice: \
remove it as often.
The options that say what a key is (-k, -t, --csv, --json, --json-as, -i, -z, --crlf) are not in the file: give those that make the same \
keys as those of build did, otherwise `check` reports the keys that were added as absent.

Example:
  umbel add block.umbel more-domains.txt")]
pub(crate) struct Add {
    #[command(flatten)]
    pub(crate) change: Change,
    /// Add all keys, however far the false positive rate rises above the planned one; cuckoo, quotient and scalable filters keep their rate
    #[arg(long)]
    pub(crate) overfull: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
If something goes wrong the filter stays as it was. The file is replaced by a new one: symbolic links are followed, but other hard links \
to the old file still have the old filter. Remove only keys that were added: removing another one may remove \
a key that looks like it.
Adding a key twice in one run adds it once; in two runs (or by build and add), twice: remove it as often. How many keys are still found after they were removed is reported.
The options that say what a key is (-k, -t, --csv, --json, --json-as, -i, -z, --crlf) are not in the file: give those that make the same \
keys as those of build did, otherwise a key that is in the filter is not found.

Example:
  echo user7:item42 | umbel remove shown.umbel")]
pub(crate) struct Remove {
    #[command(flatten)]
    pub(crate) change: Change,
}
