//! The command line.

use crate::number::{count, rate};
use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::Serialize;
use std::fmt;

/// Measures umbel's filters and their peers in one run, with the same keys.
///
/// Without a verb: `table`.
#[derive(Debug, Parser)]
#[command(name = "umbel-bench", args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
    #[command(flatten)]
    pub(crate) table: TableArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Every filter at every size: space, rate and nanoseconds per key.
    Table(TableArgs),
    /// Two filters in interleaved rounds: ratios ours / peer.
    Versus(VersusArgs),
    /// Two filters, filled or looked into by several threads in interleaved rounds.
    Threads(ThreadsArgs),
    /// How fast threads can read random cache lines: what no look-up can be faster than.
    Floor(FloorArgs),
    /// A picture of all filters, bits against nanoseconds, as SVG.
    Frontier(FrontierArgs),
    /// The bars we set ourselves, and whether they are met.
    Bars(BarsArgs),
    /// Records of several attributes in stable filters, and the bar for them.
    Multi(MultiArgs),
    /// How often filters for sets that do not change are wrong, against what they say.
    Rates(RatesArgs),
    /// What only our quotient filter does: merging against inserting again, copies of one key.
    Quotient(QuotientArgs),
    /// Filters in files: loading against reading, and mapping.
    Files(FilesArgs),
    /// The names of all filters.
    List,
}

#[derive(Args, Debug)]
pub(crate) struct TableArgs {
    /// How many keys, such as 1e5,1e6
    #[arg(long, value_delimiter = ',', value_parser = count, default_value = "1e6")]
    pub(crate) items: Vec<u64>,
    /// False-positive rates to ask for
    #[arg(long, value_delimiter = ',', value_parser = rate, default_value = "0.01")]
    pub(crate) rates: Vec<f64>,
    /// Only filters whose name or family contains one of these
    #[arg(long, value_delimiter = ',')]
    pub(crate) filters: Vec<String>,
    /// Kinds of keys
    #[arg(long, value_delimiter = ',', default_value = "u64")]
    pub(crate) keys: Vec<KeyKind>,
    /// Rounds of each measurement; the median counts
    #[arg(long, value_parser = at_least::<1>, default_value = "5")]
    pub(crate) rounds: usize,
    /// Keys of a batch
    #[arg(long, value_parser = at_least::<1>, default_value = "1024")]
    pub(crate) batch: usize,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Args, Debug)]
pub(crate) struct VersusArgs {
    /// Our filter, by its name or a part of it that fits no other
    pub(crate) ours: String,
    /// The peer, likewise
    pub(crate) peer: String,
    /// How many keys, such as 1e6
    #[arg(long, value_parser = count, default_value = "1e6")]
    pub(crate) items: u64,
    /// The false-positive rate to ask for
    #[arg(long, value_parser = rate, default_value = "0.01")]
    pub(crate) rate: f64,
    /// The kind of keys
    #[arg(long, default_value = "u64")]
    pub(crate) keys: KeyKind,
    /// Interleaved rounds, at least 9
    #[arg(long, value_parser = at_least::<9>, default_value = "11")]
    pub(crate) rounds: usize,
    /// Keys of a batch
    #[arg(long, value_parser = at_least::<1>, default_value = "1024")]
    pub(crate) batch: usize,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ThreadsArgs {
    /// Our filter, by its name or a part of it [default: umbel atomic bloom; with --look-up, umbel
    /// blocked]
    pub(crate) ours: Option<String>,
    /// The peer, likewise [default: fastbloom Atomic + foldhash; with --look-up, the floor]
    pub(crate) peer: Option<String>,
    /// Look keys up in batches, in filters that are full, instead of inserting them
    #[arg(long)]
    pub(crate) look_up: bool,
    /// Build filters for sets that do not change, instead of inserting keys
    #[arg(long, conflicts_with = "look_up")]
    pub(crate) build: bool,
    /// How many keys, split evenly
    #[arg(long, value_parser = count, default_value = "1e7")]
    pub(crate) items: u64,
    /// The false-positive rate to ask for
    #[arg(long, value_parser = rate, default_value = "0.01")]
    pub(crate) rate: f64,
    /// Interleaved rounds, at least 9
    #[arg(long, value_parser = at_least::<9>, default_value = "11")]
    pub(crate) rounds: usize,
    /// How many threads work at once
    #[arg(long, value_parser = at_least::<1>, default_value = "2")]
    pub(crate) threads: usize,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Args, Debug)]
pub(crate) struct FloorArgs {
    /// How large the memory is [default: as a blocked filter for 1e8 keys at 0.01]
    #[arg(long, value_parser = count)]
    pub(crate) bytes: Option<u64>,
    /// How many threads read at once
    #[arg(long, value_parser = at_least::<1>, default_value = "2")]
    pub(crate) threads: usize,
    /// Rounds; the median counts
    #[arg(long, value_parser = at_least::<1>, default_value = "11")]
    pub(crate) rounds: usize,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Args, Debug)]
pub(crate) struct FrontierArgs {
    /// How many keys
    #[arg(long, value_parser = count, default_value = "1e6")]
    pub(crate) items: u64,
    /// The false-positive rate to ask for
    #[arg(long, value_parser = rate, default_value = "0.01")]
    pub(crate) rate: f64,
    /// Only filters whose name or family contains one of these
    #[arg(long, value_delimiter = ',')]
    pub(crate) filters: Vec<String>,
    /// Rounds of each measurement; the median counts
    #[arg(long, value_parser = at_least::<1>, default_value = "5")]
    pub(crate) rounds: usize,
    /// The date to put into the picture, instead of today's
    #[arg(long)]
    pub(crate) date: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct BarsArgs {
    /// Only bars whose name contains all of these
    #[arg(long, value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Interleaved rounds, at least 9
    #[arg(long, value_parser = at_least::<9>, default_value = "11")]
    pub(crate) rounds: usize,
    /// Exit with 1 when a bar is missed
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Args, Debug)]
pub(crate) struct MultiArgs {
    /// The bar alone, and not the table
    #[arg(long)]
    pub(crate) bar: bool,
    /// Interleaved rounds, at least 9
    #[arg(long, value_parser = at_least::<9>, default_value = "11")]
    pub(crate) rounds: usize,
    /// Exit with 1 when the bar is missed
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Args, Debug)]
pub(crate) struct RatesArgs {
    /// How many keys, such as 1e6,1e7
    #[arg(long, value_delimiter = ',', value_parser = count, default_value = "1,10,100,1e3,1e4,1e5,1e6,1e7")]
    pub(crate) items: Vec<u64>,
    /// The bits of a key
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=32), default_value = "8")]
    pub(crate) bits: Vec<u32>,
    /// How many absent keys are looked up
    #[arg(long, value_parser = at_least::<1>, default_value = "2e7")]
    pub(crate) queries: usize,
    /// Exit with 1 when a rate is not as expected
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Args, Debug)]
pub(crate) struct QuotientArgs {
    /// How many keys, half of them in each filter
    #[arg(long, value_parser = count, default_value = "1e7")]
    pub(crate) items: u64,
    /// Rounds; the median counts
    #[arg(long, value_parser = at_least::<1>, default_value = "9")]
    pub(crate) rounds: usize,
    /// How many threads merge
    #[arg(long, value_parser = at_least::<1>, default_value = "2")]
    pub(crate) threads: usize,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Args, Debug)]
pub(crate) struct FilesArgs {
    /// How many bytes of words
    #[arg(long, value_parser = count, default_value = "1073741824")]
    pub(crate) bytes: u64,
    /// Rounds; the median counts
    #[arg(long, value_parser = at_least::<1>, default_value = "5")]
    pub(crate) rounds: usize,
    /// Exit with 1 if a bar is missed
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Args, Debug)]
pub(crate) struct OutputArgs {
    /// One JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// The date to put into the report, instead of today's
    #[arg(long)]
    pub(crate) date: Option<String>,
}

/// The kinds of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum KeyKind {
    /// Integers of eight bytes
    U64,
    /// Arrays of 32 bytes
    #[value(name = "bytes32")]
    Bytes32,
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::U64 => "u64",
            Self::Bytes32 => "bytes32",
        })
    }
}

fn at_least<const LEAST: usize>(text: &str) -> Result<usize, String> {
    let number = usize::try_from(count(text)?).map_err(|error| error.to_string())?;
    if number < LEAST { Err(format!("{number} is less than {LEAST}")) } else { Ok(number) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn without_a_verb_the_options_are_those_of_the_table() {
        let cli = Cli::parse_from(["umbel-bench", "--items", "1e5,1_000", "--keys", "bytes32"]);
        assert!(cli.verb.is_none());
        assert_eq!(cli.table.items, [100_000, 1_000]);
        assert_eq!(cli.table.keys, [KeyKind::Bytes32]);
    }

    #[test]
    fn fewer_than_nine_interleaved_rounds_are_refused() {
        let few = ["umbel-bench", "versus", "a", "b", "--rounds", "8"];
        assert!(Cli::try_parse_from(few).is_err());
    }
}
