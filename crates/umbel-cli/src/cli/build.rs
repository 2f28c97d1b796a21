//! The arguments of `umbel build`.

use super::{FamilyChoice, Form, HashChoice, Records, Size};
use clap::{ArgGroup, Args};
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(after_help = "\
The false positive rate is 1 %, or what -p says, or with --memory alone the lowest that fits. Without -n, keys are counted before \
the filter is made: that takes eight bytes for each. Every key is looked up before the file is written.
With -n the filter is planned for so many keys. More are inserted with a warning as soon as the false positive rate is above the planned \
one, up to ten times that; past that the \
command ends with status 2 and writes nothing, unless --overfull is given. Cuckoo and quotient filters (--deletable) keep their rate \
and end with status 2 when they are full; --overfull is not for them.
Equal lines count once, also in a filter that can remove keys (--deletable, or --family counting, blocked-counting, cuckoo, quotient). \
To tell the lines of the run apart exactly, these take 20 to 40 bytes for each different line while they are built.

Examples:
  umbel build -o block.umbel -p 0.1% domains.txt    a list that can grow
  umbel build -o pwned.umbel --static hashes.gz     a list that does not, in the least space
  umbel build -o shown.umbel --deletable -n 1e6 /dev/null   an empty filter, to add to and remove from")]
#[command(group = ArgGroup::new("kind").args(["immutable", "deletable", "family"]))]
pub(crate) struct Build {
    /// The files with the keys; standard input for none and for -. Packed input is unpacked (gzip, zstd, xz, bzip2, lz4)
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The file to write; - for standard output; redis://host:port/0?key=name for a filter on a server
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// A static set, which does not change: the smallest filter
    #[arg(long = "static")]
    pub(crate) immutable: bool,
    /// Keys can be removed later
    #[arg(long)]
    pub(crate) deletable: bool,
    /// Exactly this family
    #[arg(long, value_enum, value_name = "FAMILY")]
    pub(crate) family: Option<FamilyChoice>,
    /// How keys are hashed
    #[arg(long, value_enum, default_value = "portable")]
    pub(crate) hash: HashChoice,
    /// The seed of the portable hash [default: 0]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
    /// Threads that build a static filter [default: all cores]
    #[arg(short = 'j', long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Replace the file if it is there
    #[arg(long)]
    pub(crate) force: bool,
    /// Insert all keys, however far the false positive rate rises above the planned one
    #[arg(long)]
    pub(crate) overfull: bool,
    /// How the result is reported: text on standard error, or a JSON object on standard output
    #[arg(long, value_enum, value_name = "FORM", default_value = "text")]
    pub(crate) report: Form,
    #[command(flatten)]
    pub(crate) size: Size,
    #[command(flatten)]
    pub(crate) records: Records,
}
