//! Outputs that are also an input, or another output: the run would destroy what it reads or what it has written.

use crate::input::{STDIN, is_standard};
use crate::output::{is_open_already, is_redirected_to, would_replace};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// A file that a run writes, by the option that names it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output<'a> {
    option: &'static str,
    path: &'a Path,
}

impl<'a> Output<'a> {
    /// The file of an option; `None` if the option is not given or names standard output.
    pub(crate) fn of(option: &'static str, path: Option<&'a PathBuf>) -> Option<Self> {
        let path = path.filter(|path| !is_standard(path))?;
        Some(Self { option, path })
    }
}

/// Refuses outputs that are one file with an input or with another output, however they are named. `inputs` are all files that are
/// read; no file and `-` are standard input, which may be redirected from a file.
pub(crate) fn are_apart<'a>(
    outputs: impl IntoIterator<Item = Option<Output<'a>>>,
    inputs: &[PathBuf],
    advice: &str,
) -> Result<()> {
    let outputs: Vec<Output<'_>> = outputs.into_iter().flatten().collect();
    for (number, output) in outputs.iter().enumerate() {
        let Output { option, path } = output;
        let name = path.display();
        if let Some(other) = outputs[..number].iter().find(|one| would_replace(path, one.path)) {
            bail!(
                "{} {} and {option} {name} name one file: give each option a file of its own",
                other.option,
                other.path.display()
            );
        }
        let is_stdin = |input: &Path| is_standard(input) && would_replace(path, Path::new(INPUT));
        if (inputs.is_empty() && is_stdin(Path::new("-"))) || inputs.iter().any(|one| is_stdin(one))
        {
            bail!("{option} {name} and {STDIN} are one file, which would be lost: {advice}");
        }
        if let Some(input) = inputs.iter().find(|input| would_replace(path, input)) {
            bail!(
                "{option} {name} and the input {} are one file, which would be lost: {advice}",
                input.display()
            );
        }
    }
    Ok(())
}

/// Refuses a standard output that was redirected to a file which the run reads or writes by its name: the run would read what it
/// prints, or lose it. For runs that print.
pub(crate) fn stdout_is_apart<'a>(
    outputs: impl IntoIterator<Item = Option<Output<'a>>>,
    inputs: &[PathBuf],
) -> Result<()> {
    let stdin = Path::new(INPUT);
    let reads_stdin = inputs.is_empty() || inputs.iter().any(|input| is_standard(input));
    let outputs = outputs.into_iter().flatten();
    // Another name of standard output is not another output.
    let mut named = outputs.filter(|output| !is_open_already(output.path));
    let file = if let Some(Output { option, path }) = named.find(|one| is_redirected_to(one.path)) {
        format!("{option} {}", path.display())
    } else if let Some(input) = inputs.iter().find(|input| is_redirected_to(input)) {
        format!("the input {}", input.display())
    } else if reads_stdin && is_redirected_to(stdin) {
        STDIN.to_owned()
    } else {
        return Ok(());
    };
    bail!(
        "{file} and standard output are one file, which would be lost: redirect standard output to another file"
    )
}

/// The file that standard input is redirected from.
const INPUT: &str = "/dev/stdin";
