//! Signals that end the command: half-written files are removed, and the exit status is 128 and the number of the signal.

use crate::output::remove_parts;
use anyhow::{Context, Result};

/// Removes half-written files when a signal ends the command. SIGINT ends it with status 130, SIGTERM with 143, SIGHUP with 129. A
/// signal that is ignored when the command starts, as SIGHUP is under `nohup`, stays ignored.
#[cfg(unix)]
pub(crate) fn clean_up() -> Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    crate::start::ignore_file_size_signal();
    let heeded = [SIGHUP, SIGINT, SIGTERM].into_iter();
    let heeded = heeded.filter(|signal| !crate::start::is_ignored(*signal));
    let mut signals = Signals::new(heeded).context("the signal handlers")?;
    let wait = move || {
        if let Some(signal) = signals.forever().next() {
            remove_parts();
            std::process::exit(128 + signal);
        }
    };
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(wait)
        .context("the signal handlers")?;
    Ok(())
}

/// Removes half-written files when Ctrl-C ends the command, with status 130.
#[cfg(not(unix))]
pub(crate) fn clean_up() -> Result<()> {
    let end = || {
        remove_parts();
        std::process::exit(130);
    };
    ctrlc::set_handler(end).context("the handler of Ctrl-C")
}
