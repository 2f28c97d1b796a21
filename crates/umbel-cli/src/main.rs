//! `umbel`: de-duplicate streams, build block lists, check against them, plan.

#![deny(unsafe_code)]

#[cfg(feature = "redis")]
mod adopt;
mod amount;
mod asked;
mod bench;
mod build;
mod change;
mod check;
mod cli;
mod copies;
mod dedup;
mod exact;
#[cfg(feature = "guard")]
mod guard;
mod info;
mod input;
mod key;
mod limit;
mod making;
mod merge;
mod output;
mod outputs;
mod plan;
mod progress;
mod reading;
#[cfg(feature = "redis")]
mod remote;
mod secret;
mod signals;
mod skipped;
mod start;

use anyhow::{Context, Result};
use clap::{CommandFactory, Parser};
use cli::{Cli, Verb};
use std::io::IsTerminal;
use std::process::ExitCode;

fn main() -> ExitCode {
    let done = match Cli::try_parse() {
        Ok(cli) => run(cli),
        Err(error) => explain(&error),
    };
    match done {
        Ok(code) => code,
        Err(error) if output::is_closed(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::warn(&output::told(&error));
            ExitCode::from(2)
        }
    }
}

/// Prints the help or the version that was asked for, or what is wrong with the arguments.
fn explain(error: &clap::Error) -> Result<ExitCode> {
    if error.use_stderr() {
        // A closed standard error is no other error.
        let _ = error.print();
        return Ok(ExitCode::from(2));
    }
    // clap knows which terminals want colours, and ignores what goes wrong elsewhere.
    if std::io::stdout().is_terminal() {
        error.print().context("standard output")?;
    } else {
        output::print(error.render().to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn run(cli: Cli) -> Result<ExitCode> {
    if cli.quiet {
        output::be_quiet();
    }
    if !closes_by_itself(&cli.verb) {
        signals::clean_up()?;
    }
    match cli.verb {
        Verb::Dedup(args) => dedup::run(args)?,
        Verb::Build(args) => build::run(args)?,
        Verb::Add(args) => change::add(&args)?,
        Verb::Remove(args) => change::remove(&args)?,
        #[cfg(feature = "redis")]
        Verb::Adopt(args) => adopt::run(args)?,
        Verb::Check(args) => return Ok(code(check::run(args, cli.quiet)?)),
        Verb::Merge(args) => merge::run(&args)?,
        Verb::Info(args) => return Ok(if info::run(&args)? { 0 } else { 2 }.into()),
        Verb::Verify(args) => return Ok(info::verify(&args, cli.quiet)?.into()),
        Verb::Plan(args) => plan::run(&args)?,
        Verb::Bench(args) => return Ok(code(bench::run(args)?)),
        #[cfg(feature = "guard")]
        Verb::Guard(verb) => return Ok(code(guard::run(verb)?)),
        Verb::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "umbel", &mut script);
            output::print(&script)?;
        }
        Verb::Man { directory: None } => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            output::print(&page)?;
        }
        Verb::Man { directory: Some(directory) } => {
            let written = clap_mangen::generate_to(Cli::command(), &directory);
            written.with_context(|| directory.display().to_string())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a verb has something to do when it is interrupted, and leaves no half file.
fn closes_by_itself(verb: &Verb) -> bool {
    #[cfg(feature = "guard")]
    return matches!(verb, Verb::Guard(_));
    #[cfg(not(feature = "guard"))]
    {
        let _ = verb;
        false
    }
}

/// As `grep` ends: 0 for yes, 1 for no.
fn code(yes: bool) -> ExitCode {
    if yes { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
