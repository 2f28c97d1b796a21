//! `umbel`: de-duplicate streams, build block lists, check against them, plan.

mod amount;
mod cli;
mod dedup;
mod input;
mod key;
mod output;
mod progress;
mod reading;

use anyhow::Result;
use clap::{CommandFactory, Parser};
use cli::{Cli, Verb};
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(code) => code,
        // Whoever reads has seen enough, as `head` does.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("umbel: {}", output::shown(format!("{error:#}").as_bytes()));
            ExitCode::from(2)
        }
    }
}

fn run(cli: Cli) -> Result<ExitCode> {
    output::clean_up_when_interrupted()?;
    match cli.verb {
        Verb::Dedup(args) => dedup::run(args)?,
        Verb::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "umbel", &mut io::stdout());
        }
        Verb::Man => clap_mangen::Man::new(Cli::command()).render(&mut io::stdout())?,
        _ => todo!(),
    }
    io::stdout().flush()?;
    Ok(ExitCode::SUCCESS)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == ErrorKind::BrokenPipe)
    };
    error.chain().any(is)
}
