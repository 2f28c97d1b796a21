//! The command line: verbs, and what they are told.

use crate::amount::{self, Span};
use crate::input::Cut;
use crate::key::{Keys, Part};
use anyhow::{Result, bail};
use clap::builder::styling::{AnsiColor, Styles};
use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Have I seen this key? In a few bits per key.
///
/// A filter answers "no" for certain and "yes" probably: how rarely a yes is wrong is its rate.
#[derive(Debug, Parser)]
#[command(name = "umbel", version = VERSION, styles = STYLES, max_term_width = 100)]
#[command(args_override_self = true, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (file format 1)");

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Print each line the first time it is seen
    Dedup(Dedup),
    /// Build a filter from keys
    Build(Build),
    /// Insert keys into a filter
    Add(Change),
    /// Remove keys from a filter that can forget them
    Remove(Change),
    /// Print the lines that may be in a filter
    Check(Check),
    /// Unite filters
    Merge(Merge),
    /// Tell what a file holds
    Info(Info),
    /// Check every checksum of files
    Verify(Verify),
    /// Compare all families for a number of keys and a rate
    Plan(Plan),
    /// Measure a family on your own keys: speed, and the rate with its confidence
    Bench(Bench),
    /// Stand before a data set: look-ups of absent keys never reach it
    #[cfg(feature = "guard")]
    #[command(subcommand)]
    Guard(crate::guard::cli::Verb),
    /// Print a script that completes arguments in a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write the pages of all verbs
    Man {
        /// The directory to write them to, such as ~/.local/share/man/man1
        directory: Option<PathBuf>,
    },
}

/// How records and keys are found.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Records and keys")]
pub(crate) struct Records {
    /// Records end with a zero byte instead of a newline
    #[arg(short = 'z', long = "null", aliases = ["null-data", "zero-terminated"])]
    pub(crate) null: bool,
    /// A carriage return before the newline is no part of the key
    #[arg(long, conflicts_with = "null")]
    pub(crate) crlf: bool,
    /// The key is this field, counted from 1, or from the end: -1 is the last
    #[arg(short = 'k', long = "key", value_name = "FIELD", allow_negative_numbers = true)]
    pub(crate) field: Option<i64>,
    /// What stands between fields [default: blanks], or columns [default: a comma]; \t is a tab
    #[arg(short = 't', long, value_name = "DELIM", alias = "field-separator")]
    pub(crate) delimiter: Option<String>,
    /// The key is this column of CSV: its name, or its number from 1 on
    #[arg(long, value_name = "COLUMN", conflicts_with_all = ["field", "json", "null"])]
    pub(crate) csv: Option<String>,
    /// The first record of CSV is no header
    #[arg(long, requires = "csv")]
    pub(crate) no_header: bool,
    /// The key is this value of a JSON record, by a pointer such as /user/id
    #[arg(long, value_name = "POINTER", conflicts_with = "field")]
    pub(crate) json: Option<String>,
    /// Upper and lower case are one
    #[arg(short = 'i', long)]
    pub(crate) ignore_case: bool,
    /// The longest record, without its end: a longer one is an error before it takes memory
    #[arg(long, value_name = "SIZE", value_parser = amount::bytes, default_value = "64MiB")]
    pub(crate) max_record: u64,
}

impl Records {
    pub(crate) fn cut(&self) -> Cut {
        match (&self.csv, self.null) {
            (Some(_), _) => Cut::Csv(self.between_columns()),
            (None, true) => Cut::At(0),
            (None, false) => Cut::At(b'\n'),
        }
    }

    /// What a record without an end gets when another one follows.
    pub(crate) fn end(&self) -> &'static [u8] {
        match (self.null, self.crlf) {
            (true, _) => b"\0",
            (false, true) => b"\r\n",
            (false, false) => b"\n",
        }
    }

    /// The delimiter of CSV; [`keys`](Self::keys) refuses those that are longer.
    fn between_columns(&self) -> u8 {
        self.delimiter.as_deref().map_or(b',', |text| unescaped(text)[0])
    }

    /// Whether the first record of every input is a header.
    pub(crate) fn has_header(&self) -> bool {
        self.csv.is_some() && !self.no_header
    }

    /// How keys are found; a column of CSV by its number here, and by its name once there is a header.
    pub(crate) fn keys(&self) -> Result<Keys> {
        let delimiter = self.delimiter.as_deref().map(unescaped);
        match &delimiter {
            Some(bytes) if bytes.is_empty() => bail!("a delimiter has at least one character"),
            Some(_) if self.field.is_none() && self.csv.is_none() => {
                bail!("a delimiter is for fields or columns: -k 2, or --csv name");
            }
            Some(bytes)
                if self.csv.is_some() && (bytes.len() > 1 || b"\"\n".contains(&bytes[0])) =>
            {
                bail!("between columns is one byte, and no quote");
            }
            _ => {}
        }
        let part = if let Some(number) = self.field {
            if number == 0 {
                bail!("fields are counted from 1, or from -1 backwards");
            }
            Part::Field(number, delimiter)
        } else if let Some(pointer) = &self.json {
            if !pointer.is_empty() && !pointer.starts_with('/') {
                bail!("a pointer begins with a slash: /{pointer}");
            }
            Part::Json(pointer.clone())
        } else if let Some(column) = &self.csv {
            let number = match column.parse() {
                Ok(0) => bail!("columns are counted from 1"),
                Ok(number) => number - 1_usize,
                Err(_) if self.no_header => bail!("without a header, a column is a number"),
                // Until the header is there.
                Err(_) => usize::MAX,
            };
            Part::Csv(number, self.between_columns())
        } else {
            Part::Whole
        };
        let end = if self.null { 0 } else { b'\n' };
        Ok(Keys { part, ignore_case: self.ignore_case, end, crlf: self.crlf })
    }
}

/// A delimiter as it is written in shells: \t is a tab.
fn unescaped(text: &str) -> Vec<u8> {
    text.replace("\\t", "\t").replace("\\0", "\0").into_bytes()
}

/// How many keys, how often wrong, in how much memory.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Size")]
pub(crate) struct Size {
    /// How many different keys there will be, such as 1e6 or 10M
    #[arg(short = 'n', long, value_name = "N", value_parser = amount::count)]
    pub(crate) capacity: Option<u64>,
    /// How often a yes may be wrong, such as 0.01, 1% or 1/1000
    #[arg(short = 'p', long, value_name = "RATE", value_parser = amount::rate)]
    pub(crate) rate: Option<f64>,
    /// How much memory the filter may take, such as 512M or 1GiB
    #[arg(long, value_name = "SIZE", value_parser = amount::bytes)]
    pub(crate) memory: Option<u64>,
}

impl Size {
    /// Whether anything of it was asked for.
    pub(crate) fn is_given(&self) -> bool {
        self.capacity.is_some() || self.rate.is_some() || self.memory.is_some()
    }
}

/// The rate of a filter unless another one is asked for.
pub(crate) const RATE: f64 = 0.01;

/// How keys are hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HashChoice {
    /// The same on every machine, for ever
    Portable,
    /// With a random secret, which is kept in the file: nobody can choose keys that collide
    Keyed,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Without -n and --memory the filter grows as it must. A wrong yes is a new line that is not printed: that happens to one \
in a million, or as -p says. Standard error tells how many lines that may have been, and --exact drops none.
Exit status: 0, or 2 if something went wrong. If the reader of standard output closes it early, as head does, the status is 0, \
the state and the file of duplicates stay as they were, and standard error says so: no line is lost, and the next run prints \
these lines again. With a state on a server it is 2, since lines that were not printed are marked as seen there.

Examples:
  umbel dedup access.log.gz > once.log          each line once, in its order
  umbel dedup --csv email a.csv b.csv           each address once; one header
  umbel dedup --state seen.umbel today.log      what no run before has seen
  umbel dedup --state 'redis://host:6379/0?key=seen&create' -n 1e7 log   what no machine has seen
  tail -f log | umbel dedup --window 10m -n 1e6 what was not there in the last ten minutes")]
pub(crate) struct Dedup {
    /// Where lines come from; standard input for none and for -. Gzip and zstd are unpacked
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Keep 128 bits of every key instead of a filter: 20 to 40 bytes each, and no line is dropped by mistake
    #[arg(long, conflicts_with_all = ["capacity", "rate", "memory", "window"])]
    pub(crate) exact: bool,
    /// Forget lines after this many others, or this long, such as 10m
    #[arg(long, value_name = "SPAN", value_parser = amount::span)]
    pub(crate) window: Option<Span>,
    /// Go on where the last run with this file stopped, and save it for the next one; or with a filter on a server
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// How keys are hashed [default: keyed, or as the state is]
    #[arg(long, value_enum, conflicts_with = "exact")]
    pub(crate) hash: Option<HashChoice>,
    /// Print the lines that were seen before instead
    #[arg(short = 'd', long)]
    pub(crate) repeated: bool,
    /// Write the lines that were seen before to this file
    #[arg(short = 'D', long, value_name = "FILE", conflicts_with = "repeated")]
    pub(crate) duplicates: Option<PathBuf>,
    /// Print how many lines there would be, and not the lines
    #[arg(short = 'c', long)]
    pub(crate) count: bool,
    /// Tell on standard error what was done, as text or as JSON
    #[arg(long, value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    pub(crate) stats: Option<Form>,
    /// Replace the file of duplicates if it is there
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) size: Size,
    #[command(flatten)]
    pub(crate) records: Records,
}

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For people
    Text,
    /// For programs
    Json,
}

/// The families that a filter can be built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FamilyChoice {
    /// Classic Bloom filter
    Bloom,
    /// Blocked Bloom filter: fast
    Blocked,
    /// Split-block Bloom filter, as in Parquet
    Split,
    /// Counting Bloom filter: keys can be removed
    Counting,
    /// Counting Bloom filter in cache lines
    BlockedCounting,
    /// Grows with the keys
    Scalable,
    /// Keys can be removed, small
    Cuckoo,
    /// Keys can be removed, and filters of any size merged
    Quotient,
    /// Does not change; simple
    Xor,
    /// Does not change; fast
    Fuse,
    /// Does not change; a little smaller than fuse
    Fuse4,
    /// Does not change; the smallest
    Ribbon,
}

#[derive(Args, Debug)]
#[command(after_help = "\
The rate is 1 %, or what -p says, or with --memory alone what fits. Without -n, keys are counted before the filter is \
made: that takes eight bytes for each. Every key is asked for before \
the file is written.

Examples:
  umbel build -o block.umbel -p 0.1% domains.txt    a list that can grow
  umbel build -o pwned.umbel --static hashes.gz     a list that does not, in the least space
  umbel build -o shown.umbel --deletable -n 1e6 /dev/null   an empty filter, to add to and remove from")]
#[command(group = ArgGroup::new("kind").args(["immutable", "deletable", "family"]))]
pub(crate) struct Build {
    /// Where keys come from; standard input for none and for -. Gzip and zstd are unpacked
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The file to write; - for standard output; redis://host:port/0?key=name for a filter on a server
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// A set that does not change: the smallest filter
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
    /// The seed of the portable hash
    #[arg(long, value_name = "NUMBER", default_value = "0")]
    pub(crate) seed: u64,
    /// Threads that build a static filter [default: all cores]
    #[arg(short = 'j', long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Replace the file if it is there
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) size: Size,
    #[command(flatten)]
    pub(crate) records: Records,
}

#[derive(Args, Debug)]
#[command(after_help = "\
If something goes wrong the filter stays as it was; one on a server, redis://host:port/0?key=name, is changed as keys come. Remove only keys that were added: removing another one may remove \
a key that looks like it.

Examples:
  umbel add block.umbel more-domains.txt
  echo user7:item42 | umbel remove shown.umbel")]
pub(crate) struct Change {
    /// The filter, which is replaced as a whole when all keys are in
    pub(crate) filter: PathBuf,
    /// Where keys come from; standard input for none and for -
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) records: Records,
}

#[derive(Args, Debug)]
#[command(after_help = "\
A line that is not printed is certainly not in the filter; one that is may be there by mistake, as rarely as `umbel info` says.
Exit status: 0 if there was such a line, 1 if there was none, 2 if something went wrong; also if standard output is closed early.

Examples:
  umbel check block.umbel -k 2 access.log       the lines whose second field is on the list
  umbel check -v known.umbel new.txt            the lines that are certainly not
  umbel check -q block.umbel --item evil.example && echo blocked")]
pub(crate) struct Check {
    /// The filter: a file, or redis://host:port/0?key=name
    pub(crate) filter: PathBuf,
    /// Where lines come from; standard input for none and for -
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Print the lines that are certainly not in it
    #[arg(short = 'v', long)]
    pub(crate) invert_match: bool,
    /// Print how many lines there are, and not the lines
    #[arg(short = 'c', long)]
    pub(crate) count: bool,
    /// Print nothing; stop at the first line there is
    #[arg(short = 'q', long, conflicts_with = "count")]
    pub(crate) quiet: bool,
    /// Ask for this key instead of reading lines; may be repeated
    #[arg(long, value_name = "KEY", conflicts_with = "files")]
    pub(crate) item: Vec<OsString>,
    #[command(flatten)]
    pub(crate) records: Records,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Filters unite if they have one family, one size and one hash: build each with the -n and -p of all together.

Example:
  umbel merge -o all.umbel shard-*.umbel")]
pub(crate) struct Merge {
    /// The filters
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
}

#[derive(Args, Debug)]
#[command(after_help = "\
Exit status: 0, or 2 if a file cannot be read or is damaged.

Example:
  umbel info --json block.umbel | jq .rate_now")]
pub(crate) struct Info {
    /// The files, or redis://host:port/0?key=name
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// One JSON object a file
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Exit status: 0 if all files are whole filters, 1 if one is damaged or none, 2 if one cannot be read.

Example:
  umbel verify -q block.umbel && cp block.umbel /srv/")]
pub(crate) struct Verify {
    /// The files
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Print nothing
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
`lines` are the cache lines that a look-up touches. With --memory and without -p, every family is shown at the least rate that fits.

Examples:
  umbel plan -n 10M -p 0.1%
  umbel plan -n 1e9 --memory 1GiB --svg rates.svg")]
pub(crate) struct Plan {
    /// Draw the rates at other loads into this file
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Replace the file if it is there
    #[arg(long)]
    pub(crate) force: bool,
    /// One JSON document instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) size: Size,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Exit status: 0 if every rate is as planned, 1 if one is off by more than five standard deviations, 2 if something went wrong.

Example:
  umbel bench --family blocked,ribbon -p 1/256 domains.txt")]
pub(crate) struct Bench {
    /// Where keys come from; standard input for none and for -
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Families to measure [default: all]
    #[arg(long, value_enum, value_name = "FAMILY", value_delimiter = ',')]
    pub(crate) family: Vec<FamilyChoice>,
    /// How often a yes may be wrong
    #[arg(short = 'p', long, value_name = "RATE", value_parser = amount::rate, default_value = "0.01")]
    pub(crate) rate: f64,
    /// How keys are hashed
    #[arg(long, value_enum, default_value = "portable")]
    pub(crate) hash: HashChoice,
    /// How results are written
    #[arg(long, value_enum, value_name = "FORM", default_value = "text")]
    pub(crate) report: Form,
    #[command(flatten)]
    pub(crate) records: Records,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn arguments_contradict_nobody() {
        Cli::command().debug_assert();
    }
}
