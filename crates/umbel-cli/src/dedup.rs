//! `umbel dedup`: prints each record the first time it is seen.

mod gather; // what is known at the end of the input only
mod in_place; // files that are de-duplicated themselves
mod known; // a set of all keys, or a filter of them
mod limit; // how much memory there is
mod plan; // the filter that was asked for
mod report; // what a run says of itself
mod risk; // what a filter has probably lost
mod seen; // which records came before; from a set to a filter
mod state; // what the next run begins with
mod stream; // records that are printed as they come

use crate::cli::Dedup;
use crate::input::{is_standard, look_for};
use crate::key::JsonAs;
use crate::output::{
    Existing, Lines, Stdout, is_closed, may_write, replace_file, warn, write_file,
};
use crate::outputs::{Output, are_apart, stdout_is_apart};
use crate::progress::Progress;
use crate::reading::read;
use anyhow::{Result, bail};
pub(crate) use state::is_marked;

use gather::Gather;
use report::Run;
use seen::Seen;
use std::time::Instant;
use stream::{Nowhere, Sink, Stream, Totals, Wanted};

pub(crate) fn run(mut args: Dedup) -> Result<()> {
    args.records.json_as.get_or_insert(JsonAs::Typed);
    args.records.all = args.in_place;
    check(&args)?;
    let start = Instant::now();
    let done = if args.prints_at_the_end() { gathered(&args) } else { with_state(&args) };
    match done {
        Ok(run) => run.tell(&args, start.elapsed().as_secs_f64()),
        Err(error) => {
            if is_closed(&error) {
                tell_unsaved(&args)?;
            }
            return Err(error);
        }
    }
    Ok(())
}

/// Refuses what cannot be written, and notices files that are missing, before anything is read.
fn check(args: &Dedup) -> Result<()> {
    if args.state.as_deref().is_some_and(is_standard) {
        bail!(
            "--state takes the name of a file, because the state is read and then replaced; - is none"
        );
    }
    if args.state.is_some() && args.in_place {
        bail!(
            "--in-place would remove lines from their only copy that an earlier run with this --state has seen, in this file too: \
             leave one of them out, or write the lines that no earlier run has seen to another file with -o"
        );
    }
    if args.state.is_some() && args.repeated {
        bail!(
            "-d with --state would print a line again in every later run: a state says which lines came, and not which of them \
             were printed as repeated. Leave one of them out; --repeats with --state prints every line that came before"
        );
    }
    if let Some(form) = args.files.first()
        && args.stats.is_some()
        && ["json", "text"].iter().any(|name| form.as_os_str() == *name)
        && !form.exists()
    {
        bail!(
            "--stats takes its form after an equals sign: expected --stats={0} or --report {0}, and there is no file {0}",
            form.display()
        );
    }
    look_for(&args.files)?;
    let lines = Output::of("-o", args.output.as_ref());
    let in_place = "name another file, or use --in-place to de-duplicate the input file itself";
    are_apart([lines], &args.files, in_place)?;
    let outputs = [
        lines,
        Output::of("-D", args.duplicates.as_ref()),
        Output::of("--bad", args.records.bad.as_ref()),
        Output::of("--state", args.state.as_ref()),
    ];
    are_apart(outputs, &args.files, "name another file")?;
    let lines_are_printed = is_stdout(args) && !args.in_place;
    if lines_are_printed || args.duplicates.as_deref().is_some_and(is_standard) {
        stdout_is_apart(outputs, &args.files)?;
    }
    if args.duplicates.as_deref().is_some_and(is_standard) && is_stdout(args) {
        bail!(
            "-D - and the lines would both go to standard output; give one of them a file, with -D or -o"
        );
    }
    for path in args.duplicates.iter().chain(&args.output).filter(|path| !is_standard(path)) {
        may_write(path, args.force)?;
    }
    if args.in_place { in_place::check(&args.files) } else { Ok(()) }
}

/// Whether lines go to standard output.
fn is_stdout(args: &Dedup) -> bool {
    args.output.as_deref().is_none_or(is_standard)
}

/// The reader of standard output has closed it, which is no error. But nobody knows which lines it has read, so files are left
/// as they were, and that is said.
fn tell_unsaved(args: &Dedup) -> Result<()> {
    const CLOSED: &str = "standard output was closed before the end";
    if let Some(state) = &args.state {
        #[cfg(feature = "redis")]
        if crate::remote::is_remote(state) {
            // Lines are inserted there before they are printed, and no run will print these.
            let address = crate::remote::Address::of(state)?;
            bail!("{address}: {CLOSED}, and lines that were not printed are marked as seen there");
        }
        let again = "and the next run prints these lines again";
        warn(&format!("{CLOSED}: {} is not saved, {again}", state.display()));
    }
    for path in args.duplicates.iter().chain(&args.output).filter(|path| !is_standard(path)) {
        warn(&format!("{CLOSED}: {} is not written", path.display()));
    }
    Ok(())
}

/// With `-d`, two sets share the memory.
const fn sets(args: &Dedup) -> u64 {
    if args.repeated { 2 } else { 1 }
}

fn with_state(args: &Dedup) -> Result<Run> {
    let Some(state) = &args.state else {
        return looked_up(args, &mut Seen::new(args, sets(args))?);
    };
    #[cfg(feature = "redis")]
    if crate::remote::is_remote(state) {
        return looked_up(args, &mut Seen::on_server(state, args)?);
    }
    // Nobody else may go on from the same state meanwhile, and if this fails it stays what it was.
    replace_file(state, true, |file| {
        let mut seen = Seen::of_state(state, args, sets(args))?;
        let run = looked_up(args, &mut seen)?;
        seen.save(state, file)?;
        Ok(run)
    })
}

/// Looks up all records as they come.
fn looked_up(args: &Dedup, seen: &mut Seen) -> Result<Run> {
    if args.in_place {
        let totals = in_place::run(args, seen)?;
        return Ok(Run::of(totals, seen, None));
    }
    let mut again = if args.repeated { Some(seen.empty_like(args)?) } else { None };
    let totals = with_duplicates(args, |duplicates| {
        with_output(args, |output| {
            let wanted = match &mut again {
                Some(again) => Wanted::Second(again),
                None if args.repeats => Wanted::Repeats,
                None => Wanted::First,
            };
            let mut nowhere = Nowhere;
            let lines: &mut dyn Sink = if args.total { &mut nowhere } else { &mut *output };
            let totals = Totals::default();
            let mut stream = Stream::new(seen, wanted, lines, duplicates, totals);
            let counts =
                read(args.files.clone(), &args.records, &Progress::new(true), &mut stream)?;
            let totals = Totals { skipped: counts.skipped, ..stream.totals };
            print_total(args, &totals, output)?;
            Ok(totals)
        })
    })?;
    Ok(Run::of(totals, seen, again.as_mut()))
}

/// Reads all records before the first one is printed.
fn gathered(args: &Dedup) -> Result<Run> {
    with_output(args, |output| {
        let mut gather = Gather::new(args);
        let counts = read(args.files.clone(), &args.records, &Progress::new(true), &mut gather)?;
        gather.totals.skipped = counts.skipped;
        gather.print(args, output)?;
        print_total(args, &gather.totals, output)?;
        Ok(Run::exact(gather.totals, gather.memory()))
    })
}

fn print_total(args: &Dedup, totals: &Totals, output: &mut dyn Sink) -> Result<()> {
    if args.total {
        output.write(format!("{}\n", totals.printed).as_bytes())?;
    }
    Ok(())
}

/// Writes to standard output, or to a file that is there whole at the end.
fn with_output<R>(args: &Dedup, write: impl FnOnce(&mut dyn Sink) -> Result<R>) -> Result<R> {
    match args.output.as_deref().filter(|path| !is_standard(path)) {
        None => to_stdout(args, write),
        Some(path) => write_file(path, false, Existing::of(args.force), |file| {
            write(&mut Lines::new(file, path.display().to_string(), args.records.end()))
        }),
    }
}

/// The same for the records that were seen before, if they are wanted.
fn with_duplicates<R>(
    args: &Dedup,
    write: impl FnOnce(Option<&mut dyn Sink>) -> Result<R>,
) -> Result<R> {
    match args.duplicates.as_deref() {
        None => write(None),
        Some(path) if is_standard(path) => to_stdout(args, |output| write(Some(output))),
        Some(path) => write_file(path, false, Existing::of(args.force), |file| {
            let mut lines = Lines::new(file, path.display().to_string(), args.records.end());
            write(Some(&mut lines))
        }),
    }
}

fn to_stdout<R>(args: &Dedup, write: impl FnOnce(&mut dyn Sink) -> Result<R>) -> Result<R> {
    let mut output = Stdout::stdout(args.records.end());
    let written = write(&mut output)?;
    // Before anybody says that these lines were seen.
    output.flush()?;
    Ok(written)
}
