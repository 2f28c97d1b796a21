//! The command line: the verbs, and what several of them have in common. The arguments of a verb are in a file of its name.

#[cfg(feature = "redis")]
mod adopt;
mod bench;
mod build;
mod change;
mod check;
mod dedup;
mod info;
mod merge;
mod plan;
mod records;
mod size;

#[cfg(feature = "redis")]
pub(crate) use adopt::Adopt;
pub(crate) use bench::Bench;
pub(crate) use build::Build;
pub(crate) use change::{Add, Change, Remove};
pub(crate) use check::Check;
pub(crate) use dedup::Dedup;
pub(crate) use info::{Info, Verify};
pub(crate) use merge::Merge;
pub(crate) use plan::Plan;
pub(crate) use records::Records;
pub(crate) use size::{RATE, Size};

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Approximate-membership filters: have I seen this key? In a few bits per key.
///
/// A filter never misses a key that is in it. It takes an absent key for one that is in it at its false positive rate.
#[derive(Debug, Parser)]
#[command(name = "umbel", version = VERSION, styles = STYLES, max_term_width = 100)]
#[command(args_override_self = true, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
    /// Print only results, warnings and errors; `check` and `verify` print no results, and answer by their exit status
    #[arg(short = 'q', long, global = true)]
    pub(crate) quiet: bool,
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
    Add(Add),
    /// Remove keys from a filter whose family can
    Remove(Remove),
    /// Let a filter on a server answer again after the server was restarted
    #[cfg(feature = "redis")]
    Adopt(Adopt),
    /// Print the lines that may be in a filter
    Check(Check),
    /// Merge filters into one
    Merge(Merge),
    /// Print what is known of a filter
    Info(Info),
    /// Check every checksum of files
    Verify(Verify),
    /// Compare all families for a number of keys and a rate
    Plan(Plan),
    /// Measure a family on your own keys: speed, and the rate with its confidence
    Bench(Bench),
    /// Stand before a data set: few look-ups of absent keys reach it, as the false positive rate says
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

/// How keys are hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HashChoice {
    /// The same on every machine, for ever
    Portable,
    /// With a random secret, which is kept in the file: nobody can choose keys that collide
    Keyed,
}

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For people
    Text,
    /// For programs
    Json,
}

/// How results are written, by verbs that read no records: in those that do, `--json` is where the key is in a record.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Report {
    /// How results are reported: text for people, or JSON for programs
    #[arg(long, value_enum, value_name = "FORM", default_value = "text")]
    report: Form,
    /// The same as --report json
    #[arg(long, conflicts_with = "report")]
    json: bool,
}

impl Report {
    pub(crate) fn form(self) -> Form {
        if self.json { Form::Json } else { self.report }
    }
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
    /// Keys can be removed, and filters that were built with the same -n and -p merged
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    use clap::{Arg, Command, CommandFactory};

    #[test]
    fn arguments_do_not_contradict_each_other() {
        Cli::command().debug_assert();
    }
    /// All verbs, with those of `guard`.
    fn verbs(command: &Command) -> Vec<Command> {
        match command.has_subcommands() {
            true => command.get_subcommands().flat_map(verbs).collect(),
            false => vec![command.clone()],
        }
    }

    fn parse(verb: &Command, args: &[&[String]]) -> Result<(), clap::Error> {
        let all = [&["umbel".to_owned()][..], &args.concat()].concat();
        verb.clone().try_get_matches_from(all).map(drop)
    }

    /// An option with a value that it takes, or a file behind the arguments before it.
    fn written(verb: &Command, arg: &Arg) -> Vec<String> {
        let Some(option) = arg.get_long().map(|long| format!("--{long}")) else {
            return vec!["a".into(); arg.get_index().expect("it has a place")];
        };
        let values = ["1", "0.5", "1s", "/a", "a", "127.0.0.1:1", "600"].map(str::to_owned);
        let possible = arg.get_possible_values();
        let values = possible.iter().map(|value| value.get_name().to_owned()).chain(values);
        let with_value = values.map(|value| vec![option.clone(), value]);
        [vec![option.clone()]]
            .into_iter()
            .chain(with_value)
            .find(|written| {
                let kind = parse(verb, &[written]).err().map(|error| error.kind());
                matches!(kind, None | Some(ErrorKind::MissingRequiredArgument))
            })
            .unwrap_or_else(|| panic!("{}: no value for {arg}", verb.get_name()))
    }

    #[test]
    fn a_conflict_names_the_two_options_that_were_given_and_no_others() {
        let mut root = Cli::command();
        root.build();
        let mut conflicts = 0;
        for verb in verbs(&root) {
            let is_option = |arg: &&Arg| !["help", "version"].contains(&arg.get_id().as_str());
            let args = verb.get_arguments().filter(is_option);
            let args: Vec<_> = args.map(|arg| (arg.to_string(), written(&verb, arg))).collect();
            for (first, one) in &args {
                for (second, other) in args.iter().filter(|(second, _)| second != first) {
                    let Err(error) = parse(&verb, &[one, other]) else { continue };
                    if error.kind() != ErrorKind::ArgumentConflict {
                        continue;
                    }
                    let named = [ContextKind::InvalidArg, ContextKind::PriorArg];
                    let given = [first, second].map(|text| ContextValue::String(text.clone()));
                    let told = named.map(|kind| error.get(kind));
                    assert_eq!(told, given.each_ref().map(Some), "{one:?} {other:?}: {error}");
                    conflicts += 1;
                }
            }
        }
        // Each is found in both orders.
        assert!(conflicts > 100 && conflicts % 2 == 0, "{conflicts}");
    }
}
