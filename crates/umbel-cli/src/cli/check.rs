//! The arguments of `umbel check`.

use super::Records;
use clap::{ArgAction, Args};
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
#[command(after_help = "\
A line that is not printed is certainly not in the filter; one that is may be there by mistake, as rarely as `umbel info` says.
The options that say what a key is (-k, -t, --csv, --json, --json-as, -i, -z, --crlf) are not in the file: give those that make the same \
keys as those of build did, otherwise a key that is in the filter is reported as absent.
Exit status: 0 if there was such a line, 1 if there was none, 2 if something went wrong; also if standard output is closed early.

Examples:
  umbel check block.umbel -k 2 access.log       the lines whose second field is on the list
  umbel check -v known.umbel new.txt            the lines that are certainly not
  umbel check -n -H block.umbel --each *.log    the lines with any field on the list, and where they are
  umbel check -q block.umbel --item evil.example && echo blocked")]
pub(crate) struct Check {
    /// The filter: a file, - for standard input, or redis://host:port/0?key=name
    pub(crate) filter: PathBuf,
    /// Where lines come from; standard input for none and for -
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Print the lines that are certainly not in it
    #[arg(short = 'v', long)]
    pub(crate) invert_match: bool,
    /// Print how many lines there are, and not the lines; for each file with -H
    #[arg(short = 'c', long, conflicts_with_all = ["line_number", "only_matching", "files_with_matches"])]
    pub(crate) count: bool,
    /// Print the number of each line before it, counted from 1 in each file
    #[arg(short = 'n', long)]
    pub(crate) line_number: bool,
    /// Print the name of the file before each line
    #[arg(short = 'H', long, overrides_with = "no_filename")]
    pub(crate) with_filename: bool,
    /// Print no names of files, which is the default, also of several files
    #[arg(short = 'h', long, overrides_with = "with_filename")]
    pub(crate) no_filename: bool,
    /// Print only the names of the files with such a line
    #[arg(short = 'l', long, conflicts_with_all = ["line_number", "only_matching"])]
    pub(crate) files_with_matches: bool,
    /// Print only the key of each line; its fields, columns or values are separated by -t, or by tabs
    #[arg(short = 'o', long)]
    pub(crate) only_matching: bool,
    /// Every field of a line is a key: look for lines with any field in the filter; -t says what stands between fields
    #[arg(long, conflicts_with_all = ["field", "csv", "json"])]
    pub(crate) each: bool,
    /// Ask for this key instead of reading lines; may be repeated. With -k or --json it is a record that has the key, with --csv the values
    /// of the columns: --csv customer,sku --item ann,A
    #[arg(
        long,
        value_name = "KEY",
        conflicts_with_all = ["files", "line_number", "with_filename", "files_with_matches", "only_matching", "each"]
    )]
    pub(crate) item: Vec<OsString>,
    /// Print help (-h is for names of files here, as in grep)
    #[arg(long, action = ArgAction::Help)]
    pub(crate) help: Option<bool>,
    #[command(flatten)]
    pub(crate) records: Records,
}
