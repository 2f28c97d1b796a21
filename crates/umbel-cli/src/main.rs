//! `umbel`: de-duplicate streams, build block lists, check against them, plan.

mod amount;
mod asked;
mod bench;
mod build;
mod change;
mod check;
mod cli;
mod dedup;
mod exact;
#[cfg(feature = "guard")]
mod guard;
mod info;
mod input;
mod key;
mod making;
mod merge;
mod output;
mod plan;
mod pointer;
mod progress;
mod reading;
#[cfg(feature = "redis")]
mod remote;
mod secret;

use anyhow::{Context, Result};
use change::What;
use clap::{CommandFactory, Parser};
use cli::{Cli, Verb};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(code) => code,
        Err(error) if output::is_closed(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::note(&output::told(&error));
            ExitCode::from(2)
        }
    }
}

fn run(cli: Cli) -> Result<ExitCode> {
    if !closes_by_itself(&cli.verb) {
        output::clean_up_when_interrupted()?;
    }
    match cli.verb {
        Verb::Dedup(args) => dedup::run(args)?,
        Verb::Build(args) => build::run(args)?,
        Verb::Add(args) => change::run(args, What::Add)?,
        Verb::Remove(args) => change::run(args, What::Remove)?,
        Verb::Check(args) => return Ok(code(check::run(args)?)),
        Verb::Merge(args) => merge::run(args)?,
        Verb::Info(args) => return Ok(if info::run(args)? { 0 } else { 2 }.into()),
        Verb::Verify(args) => return Ok(info::verify(args)?.into()),
        Verb::Plan(args) => plan::run(args)?,
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
