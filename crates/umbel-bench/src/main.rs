//! umbel's filters and their peers, measured side by side. The README describes the commands.

mod args;
mod bars;
mod clock;
mod contender;
mod files;
mod floor;
mod frontier;
mod keys;
mod machine;
mod multi;
mod number;
mod ours;
mod path;
mod peers;
mod quotient;
mod rates;
mod registry;
mod report;
mod stats;
mod table;
mod threads;
mod versus;

use args::{Cli, Verb};
use cap::Cap;
use clap::Parser;
use std::{alloc::System, error::Error, io, process::ExitCode};

/// The error of a command.
type Failure = Box<dyn Error>;

/// The allocator counts, so that the memory of every filter is measured in the same way.
#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(code) => code,
        // The reader has closed the pipe, which is not an error.
        Err(failure) if is_broken_pipe(&*failure) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("umbel-bench: {failure}");
            ExitCode::from(2)
        }
    }
}

fn run(cli: Cli) -> Result<ExitCode, Failure> {
    match cli.verb.unwrap_or(Verb::Table(cli.table)) {
        Verb::Table(args) => table::run(args)?,
        Verb::Versus(args) => versus::run(args)?,
        Verb::Threads(args) => threads::run(args)?,
        Verb::Floor(args) => floor::run(args)?,
        Verb::Frontier(args) => frontier::run(args)?,
        Verb::Quotient(args) => quotient::run(args)?,
        Verb::Bars(args) => {
            let strict = args.strict;
            if !bars::run(args)? && strict {
                return Ok(ExitCode::from(1));
            }
        }
        Verb::Rates(args) => {
            let strict = args.strict;
            if !rates::run(args)? && strict {
                return Ok(ExitCode::from(1));
            }
        }
        Verb::Multi(args) => {
            let strict = args.strict;
            if !multi::run(args)? && strict {
                return Ok(ExitCode::from(1));
            }
        }
        Verb::Files(args) => {
            let strict = args.strict;
            if !files::run(args)? && strict {
                return Ok(ExitCode::from(1));
            }
        }
        Verb::List => {
            for entry in registry::Registry::all().select(&[]) {
                report::line(&format!("{:<9} {}", entry.family, entry.name))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn is_broken_pipe(failure: &(dyn Error + 'static)) -> bool {
    failure
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
