//! Where results go: standard output, and files that are there whole or not at all.

use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use umbel::format::disk::{Disk, System, replace};

/// Bytes that are written at a time.
const WRITE: usize = 256 << 10;

/// Standard output, written in large pieces.
pub(crate) fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(WRITE, io::stdout().lock())
}

/// Files that are being written: whoever is interrupted takes them away.
static PARTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Takes half-written files away when the program is interrupted, and ends it as a signal does.
pub(crate) fn clean_up_when_interrupted() -> Result<()> {
    ctrlc::set_handler(|| {
        // Nobody writes another one until the end.
        if let Ok(parts) = PARTS.lock() {
            for part in parts.iter() {
                let _ = std::fs::remove_file(part);
            }
            std::process::exit(130);
        }
        std::process::exit(130);
    })
    .context("signals")
}

/// The file system, and what is half-written there.
struct Noted;

impl Noted {
    fn forget(path: &Path) {
        if let Ok(mut parts) = PARTS.lock() {
            parts.retain(|part| part != path);
        }
    }
}

impl Disk for Noted {
    type File = File;

    fn create(&self, path: &Path, private: bool) -> io::Result<File> {
        let file = System.create(path, private)?;
        if let Ok(mut parts) = PARTS.lock() {
            parts.push(path.to_owned());
        }
        Ok(file)
    }

    fn sync(&self, file: &mut File) -> io::Result<()> {
        System.sync(file)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        System.rename(from, to)?;
        Self::forget(from);
        Ok(())
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        System.sync_directory(directory)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Self::forget(path);
        System.remove(path)
    }
}

/// Writes a file that is there whole when this returns well, and else is what it was. While `write` runs,
/// nobody else can do the same with this file.
pub(crate) fn replace_file<R>(
    path: &Path,
    private: bool,
    write: impl FnOnce(&mut BufWriter<&mut File>) -> Result<R>,
) -> Result<R> {
    let mut result = None;
    let replaced = replace(&Noted, path, private, |file| {
        let mut writer = BufWriter::with_capacity(WRITE, file);
        let written = write(&mut writer).and_then(|value| {
            writer.flush().with_context(|| path.display().to_string())?;
            Ok(value)
        });
        // What is still in the buffer of a file that is given up goes nowhere.
        let _ = writer.into_parts();
        let whole = written.is_ok();
        result = Some(written);
        if whole { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
    });
    match (result, replaced) {
        (Some(Err(error)), _) => Err(error),
        (Some(Ok(value)), Ok(())) => Ok(value),
        (_, Err(error)) if error.kind() == io::ErrorKind::ResourceBusy => {
            bail!("{}: somebody else is writing it", path.display())
        }
        (_, Err(error)) => Err(error).with_context(|| path.display().to_string()),
        (None, Ok(())) => unreachable!("the file was written by the function"),
    }
}

/// Whether a new file may be written here.
pub(crate) fn may_write(path: &Path, force: bool) -> Result<()> {
    if !force && path.symlink_metadata().is_ok() {
        bail!("{}: is there already; --force replaces it", path.display());
    }
    Ok(())
}

/// Writes a filter: a new file, or standard output for `-`, unless that is a terminal.
pub(crate) fn write_filter(
    path: &Path,
    force: bool,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    if path == Path::new("-") {
        if io::stdout().is_terminal() {
            bail!("a filter is not for a terminal: -o FILE, or redirect standard output");
        }
        let mut output = stdout();
        write(&mut output)?;
        return Ok(output.flush()?);
    }
    may_write(path, force)?;
    replace_file(path, false, |file| write(file).with_context(|| path.display().to_string()))
}

/// Text for a terminal or a log: control characters are shown, not obeyed.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars().flat_map(|letter| Shown(letter).letters()).collect()
}

struct Shown(char);

impl Shown {
    fn letters(self) -> Vec<char> {
        if self.0.is_control() { self.0.escape_default().collect() } else { vec![self.0] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown() {
        assert_eq!(shown(b"a\x1b[31mb\r\n\xff"), "a\\u{1b}[31mb\\r\\n\u{fffd}");
        assert_eq!(shown("grün".as_bytes()), "grün");
    }
}
