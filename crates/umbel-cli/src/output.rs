//! Where results go: standard output, and files that are there whole or not at all.

use crate::start::stdout_was_closed;
use anyhow::{Context, Result, bail};
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use umbel::any::AnyFilter;
use umbel::format::Secret;
use umbel::format::disk::{Disk, System, replace};

/// Bytes that are written at a time.
const WRITE: usize = 256 << 10;

/// The name of standard output in messages.
const STDOUT: &str = "standard output";

/// Whether `-q` was given.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Silences [`note`] and the progress display, as `-q` asks.
pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether `-q` was given.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Writes information to standard error: what was built, how many keys were added. `-q` silences it.
pub(crate) fn note(text: &str) {
    if !is_quiet() {
        warn(text);
    }
}

/// Writes a warning or an error to standard error. `-q` does not silence it, because it says what was lost or what went wrong.
/// Control characters are escaped, and passwords in addresses are left out. A closed standard error is not an error.
pub(crate) fn warn(text: &str) {
    let _ = writeln!(io::stderr(), "umbel: {}", without_passwords(&shown(text.as_bytes())));
}

/// The text without the user and the password of every address in it, such as `redis://user:password@host/`.
fn without_passwords(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let end =
            after.find(|letter: char| matches!(letter, '/' | '?' | '#') || letter.is_whitespace());
        let host = &after[..end.unwrap_or(after.len())];
        rest = &after[host.rfind('@').map_or(0, |at| at + 1)..];
    }
    out + rest
}

/// An error and its causes. Some errors say what their cause says, which is said once.
pub(crate) fn told(error: &anyhow::Error) -> String {
    let mut causes: Vec<String> = Vec::new();
    for cause in error.chain().map(ToString::to_string) {
        if !causes.last().is_some_and(|last| last.ends_with(&cause)) {
            causes.push(cause);
        }
    }
    causes.join(": ")
}

/// The reader of standard output has closed it, as `head` does when it has enough.
///
/// Only [`Out`] makes this error. A pipe that breaks elsewhere (an input, a file, a server) is an error like others.
#[derive(Debug)]
struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("closed by its reader")
    }
}

impl std::error::Error for Closed {}

/// Whether an error says that standard output was closed by its reader.
pub(crate) fn is_closed(error: &anyhow::Error) -> bool {
    let inner = |cause: &&(dyn std::error::Error + 'static)| {
        let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        inner.is_some_and(|inner| inner.is::<Closed>())
    };
    error.chain().any(|cause| inner(&cause))
}

/// Standard output, whose broken pipe is [`Closed`]. If it was closed before the command began, writing is an error.
#[derive(Debug)]
pub(crate) struct Out(Option<StdoutLock<'static>>);

impl Out {
    fn lock() -> Self {
        Self((!stdout_was_closed()).then(|| io::stdout().lock()))
    }

    fn open(&mut self) -> io::Result<&mut StdoutLock<'static>> {
        self.0.as_mut().ok_or_else(never_open)
    }
}

fn never_open() -> io::Error {
    io::Error::other(
        "is closed: redirect it to a file, or to /dev/null if the output is not needed",
    )
}

fn told_apart<T>(done: io::Result<T>) -> io::Result<T> {
    done.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => io::Error::new(io::ErrorKind::BrokenPipe, Closed),
        _ => error,
    })
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        told_apart(self.open()?.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        told_apart(self.0.as_mut().map_or(Ok(()), |out| out.flush()))
    }
}

/// Prints a text. That the reader has closed standard output is no error.
pub(crate) fn print(text: impl AsRef<[u8]>) -> Result<()> {
    let mut output = Out::lock();
    let printed = output.write_all(text.as_ref()).and_then(|()| output.flush());
    unless_closed(printed.context(STDOUT)).map(drop)
}

/// Whether standard output is still open. Other errors are errors.
fn unless_closed(written: Result<()>) -> Result<bool> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if is_closed(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Records that follow each other. The last one of an input may have no end: it gets one if
/// another record follows, and else stays as it is.
pub(crate) struct Lines<W> {
    writer: W,
    name: String,
    end: &'static [u8],
    open: bool,
}

impl<W: Write> Lines<W> {
    pub(crate) fn new(writer: W, name: String, end: &'static [u8]) -> Self {
        Self { writer, name, end, open: false }
    }

    /// Writes some whole records.
    pub(crate) fn write(&mut self, records: &[u8]) -> Result<()> {
        let end = if self.open { self.end } else { b"" };
        self.open = records.last() != self.end.last();
        let written = self.writer.write_all(end).and_then(|()| self.writer.write_all(records));
        written.with_context(|| self.name.clone())
    }

    /// Returns when all records have left.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.writer.flush().with_context(|| self.name.clone())
    }
}

/// Standard output, written in large pieces.
pub(crate) type Stdout = Lines<BufWriter<Out>>;

impl Stdout {
    pub(crate) fn stdout(end: &'static [u8]) -> Self {
        Self::new(BufWriter::with_capacity(WRITE, Out::lock()), STDOUT.into(), end)
    }
}

/// The lines of a command whose exit status is an answer. If the reader closes standard output, no more lines are
/// printed, and the command goes on until it has its answer.
pub(crate) struct Found {
    lines: Stdout,
    open: bool,
}

impl Found {
    pub(crate) fn new(end: &'static [u8]) -> Self {
        Self { lines: Stdout::stdout(end), open: true }
    }

    /// Whether lines are still read.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Writes some whole records.
    pub(crate) fn write(&mut self, records: &[u8]) -> Result<()> {
        self.open = self.open && unless_closed(self.lines.write(records))?;
        Ok(())
    }

    /// Returns when all records have left.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.open = self.open && unless_closed(self.lines.flush())?;
        Ok(())
    }
}

/// Files that are being written: a signal that ends the command removes them.
static PARTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes half-written files. The process must end then: from now on no file can be begun or finished.
pub(crate) fn remove_parts() {
    let parts = parts();
    for part in parts.iter() {
        let _ = std::fs::remove_file(part);
    }
    std::mem::forget(parts);
}

fn parts() -> MutexGuard<'static, Vec<PathBuf>> {
    PARTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a file may take the place of when it is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    Replaced,
    /// A file that another program has made since the run began stays.
    Kept,
}

impl Existing {
    /// As `--force` is given or not.
    pub(crate) fn of(force: bool) -> Self {
        if force { Self::Replaced } else { Self::Kept }
    }
}

/// What must be at a path when a file is put there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Anything,
    Nothing { can_force: bool },
    This(Version),
}

impl Expected {
    /// What is there now.
    fn as_now(path: &Path) -> Self {
        Version::of(path).map_or(Self::Nothing { can_force: false }, Self::This)
    }
}

/// What changes when a program writes to a file or replaces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    length: u64,
    modified: Option<std::time::SystemTime>,
    #[cfg(unix)]
    identity: (u64, u64),
}

impl Version {
    /// Of what is at a path, if there is something.
    fn of(path: &Path) -> Option<Self> {
        let there = path.symlink_metadata().ok()?;
        Some(Self {
            length: there.len(),
            modified: there.modified().ok(),
            #[cfg(unix)]
            identity: identity(&there),
        })
    }
}

/// Which file it is, by any of its names.
#[cfg(unix)]
fn identity(there: &std::fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (there.dev(), there.ino())
}

/// The file system, what is half-written there, and what a whole file may replace.
struct Noted(Expected);

impl Noted {
    /// Gives a file its name, unless what is there is not what it may replace.
    fn put(&self, from: &Path, to: &Path) -> io::Result<()> {
        match self.0 {
            Expected::Anything => {}
            Expected::Nothing { can_force } => return put_new(from, to, can_force),
            Expected::This(version) if Version::of(to) == Some(version) => {}
            Expected::This(_) => {
                return Err(io::Error::other(
                    "another program has changed it while this run went on, and it stays as that program left it: run the command again",
                ));
            }
        }
        System.rename(from, to)
    }
}

/// Gives a file a name that no file has. To rename it would replace one.
fn put_new(from: &Path, to: &Path, can_force: bool) -> io::Result<()> {
    match std::fs::hard_link(from, to) {
        Ok(()) => System.remove(from),
        // Some file systems have no links. There only other programs than umbel, which has locked the file, can be in between.
        Err(_) if to.symlink_metadata().is_err() => System.rename(from, to),
        Err(_) => {
            let advice = if can_force { "; --force replaces it" } else { "" };
            Err(io::Error::other(format!(
                "has appeared while this run went on, and stays as it is{advice}"
            )))
        }
    }
}

impl Disk for Noted {
    type File = File;

    fn create(&self, path: &Path, private: bool) -> io::Result<File> {
        let mut parts = parts();
        let file = System.create(path, private)?;
        parts.push(path.to_owned());
        Ok(file)
    }

    fn sync(&self, file: &mut File) -> io::Result<()> {
        System.sync(file)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut parts = parts();
        self.put(from, to)?;
        parts.retain(|part| part != from);
        Ok(())
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        System.sync_directory(directory)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut parts = parts();
        parts.retain(|part| part != path);
        System.remove(path)
    }

    fn close(&self, file: File) {
        System.close(file);
    }
}

/// Whether two paths are one file, and not only equal ones.
pub(crate) fn are_one(one: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    {
        matches!((one.metadata(), other.metadata()), (Ok(one), Ok(other)) if identity(&one) == identity(&other))
    }
    #[cfg(not(unix))]
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Whether writing to `output` replaces what is at the other path: both are one file, or will be the same new file. Devices, pipes and
/// open files are written to and not replaced.
pub(crate) fn would_replace(output: &Path, other: &Path) -> bool {
    match resolved(output) {
        Ok((to, false)) if !is_special(output) => {
            are_one(output, other) || resolved(other).is_ok_and(|(other, _)| other == to)
        }
        _ => false,
    }
}

/// Where a path leads when all links are followed, also if there is no file yet; and whether that is in `/dev` or `/proc`, where names
/// stand for devices and for files that are open already. Those are written to and never replaced.
fn resolved(path: &Path) -> Result<(PathBuf, bool)> {
    let mut to = path.to_owned();
    for _ in 0..LINKS {
        let Some(name) = to.file_name() else { return Ok((to, false)) };
        let directory = to.parent().filter(|parent| !parent.as_os_str().is_empty());
        let Ok(directory) = directory.unwrap_or(Path::new(".")).canonicalize() else {
            // Whoever writes there says what is wrong with it.
            return Ok((to, false));
        };
        let full = directory.join(name);
        let is_memory = full.starts_with("/dev/shm");
        if full.starts_with("/proc") || (full.starts_with("/dev") && !is_memory) {
            return Ok((full, true));
        }
        match std::fs::read_link(&full) {
            Ok(next) => to = directory.join(next),
            Err(_) => return Ok((full, false)),
        }
    }
    bail!("{}: has more than {LINKS} symbolic links behind each other", path.display())
}

/// As many as Linux follows.
const LINKS: u32 = 40;

/// Gives a new file the owner, the group and the mode of the old one. Only root can give files away. A group that cannot be kept loses its
/// rights, since another group would get them.
fn keep_owner_and_mode(file: &File, old: &std::fs::Metadata, private: bool) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
        let new = file.metadata()?;
        let mut mode = old.mode() & 0o777;
        // A group may be meant to share a secret, but not everyone.
        if private && mode & 0o007 != 0 {
            mode = 0o600;
        }
        if new.uid() != old.uid() {
            let _ = fchown(file, Some(old.uid()), None);
        }
        if new.gid() != old.gid() && fchown(file, None, Some(old.gid())).is_err() {
            mode &= !0o070;
        }
        file.set_permissions(std::fs::Permissions::from_mode(mode))
    }
    #[cfg(not(unix))]
    {
        let _ = private;
        file.set_permissions(old.permissions())
    }
}

/// Writes a file that is there whole when this returns well, and else is what it was. While `write` runs, no other process can do the
/// same with this file, and if another program changes the file meanwhile, that is an error. Links are followed. The file keeps its owner and its mode, but one
/// that is `private` is never readable by everyone, and a new one only by its owner.
pub(crate) fn replace_file<R>(
    path: &Path,
    private: bool,
    write: impl FnOnce(&mut BufWriter<&mut File>) -> Result<R>,
) -> Result<R> {
    not_a_directory(path)?;
    let (to, is_stream) = resolved(path)?;
    if is_stream {
        bail!(
            "{}: expected a file that can be replaced, got a device or an open file",
            path.display()
        );
    }
    replace_at(path, &to, private, true, Expected::as_now(&to), write)
}

/// Replaces the file `to`, which messages call `path`.
fn replace_at<R>(
    path: &Path,
    to: &Path,
    private: bool,
    keeps_mode: bool,
    expected: Expected,
    write: impl FnOnce(&mut BufWriter<&mut File>) -> Result<R>,
) -> Result<R> {
    let mut result = None;
    let replaced = replace(&Noted(expected), to, private, |file| {
        if let Ok(old) = to.symlink_metadata()
            && old.is_file()
            && keeps_mode
        {
            keep_owner_and_mode(file, &old, private)?;
        }
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
            bail!("{}: is being written by another process; wait until it ends", path.display())
        }
        (_, Err(error)) => Err(error).with_context(|| path.display().to_string()),
        (None, Ok(())) => unreachable!("the file was written by the function"),
    }
}

/// Whether there is something that is written to and not replaced: a device or a pipe.
fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|there| !there.is_file() && !there.is_dir())
}

/// Writes a new file as [`replace_file`] does, or into a device, a pipe or an open file that is there. A file that others could read and
/// that gets a secret now is for its owner only.
pub(crate) fn write_file<R>(
    path: &Path,
    private: bool,
    existing: Existing,
    write: impl FnOnce(&mut BufWriter<&mut File>) -> Result<R>,
) -> Result<R> {
    not_a_directory(path)?;
    let (to, is_stream) = resolved(path)?;
    if !is_stream && !is_special(path) {
        let expected = match existing {
            Existing::Replaced => Expected::Anything,
            Existing::Kept => Expected::Nothing { can_force: true },
        };
        return replace_at(path, &to, private, !private, expected, write);
    }
    let name = || path.display().to_string();
    let mut file = opened(path).with_context(name)?;
    let mut writer = BufWriter::with_capacity(WRITE, &mut file);
    let written = write(&mut writer)?;
    writer.flush().with_context(name)?;
    Ok(written)
}

/// Opens what is written to and not replaced. Standard output under another name is standard output: opened a second time, a file would
/// be written from its start.
fn opened(path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    {
        if stdout_was_closed() && is_standard_output(path) {
            return Err(never_open());
        }
        if goes_to_stdout(path) {
            use std::os::fd::AsFd;
            return io::stdout().as_fd().try_clone_to_owned().map(File::from);
        }
    }
    File::options().append(path.is_file()).write(true).open(path)
}

/// Whether standard output was redirected to this file.
#[cfg(unix)]
fn goes_to_stdout(path: &Path) -> bool {
    use std::os::fd::AsFd;
    let stdout = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    let open = stdout.and_then(|stdout| stdout.metadata());
    matches!(
        (path.metadata(), open),
        (Ok(there), Ok(open)) if there.is_file() && identity(&open) == identity(&there)
    )
}

/// Whether standard output was redirected to the file with this name.
pub(crate) fn is_redirected_to(path: &Path) -> bool {
    #[cfg(unix)]
    return !stdout_was_closed() && goes_to_stdout(path);
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}

/// Whether a path is a name of standard output.
pub(crate) fn is_standard_output(path: &Path) -> bool {
    const NAMES: [&str; 3] = ["-", "/dev/stdout", "/dev/fd/1"];
    NAMES.iter().any(|name| path == Path::new(name))
        || resolved(path).is_ok_and(|(to, _)| to.starts_with("/proc") && to.ends_with("fd/1"))
}

/// Whether a path leads to a device or to a file that is open already, by its name in `/dev` or `/proc`.
pub(crate) fn is_open_already(path: &Path) -> bool {
    resolved(path).is_ok_and(|(_, is_stream)| is_stream)
}

fn not_a_directory(path: &Path) -> Result<()> {
    if path.is_dir() {
        bail!("{}: is a directory", path.display());
    }
    Ok(())
}

/// Whether a new file may be written here.
pub(crate) fn may_write(path: &Path, force: bool) -> Result<()> {
    not_a_directory(path)?;
    if !force && path.symlink_metadata().is_ok() && !is_special(path) && !resolved(path)?.1 {
        bail!("{}: is there already; --force replaces it", path.display());
    }
    Ok(())
}

/// Whether a filter may be written here: not over a file, and not to a terminal.
pub(crate) fn may_write_filter(path: &Path, force: bool) -> Result<()> {
    if path != Path::new("-") {
        return may_write(path, force);
    }
    if io::stdout().is_terminal() {
        bail!(
            "standard output is a terminal, and a filter is binary: write it with -o FILE, or redirect standard output"
        );
    }
    Ok(())
}

/// Writes a filter: a new file, or standard output for `-`. One with its secret is for its owner only.
pub(crate) fn write_filter(
    path: &Path,
    filter: &AnyFilter,
    secret: Secret,
    existing: Existing,
) -> Result<()> {
    if path == Path::new("-") {
        let mut output = BufWriter::with_capacity(WRITE, Out::lock());
        let written = filter.to_writer(&mut output, secret);
        return written.and_then(|()| output.flush()).context(STDOUT);
    }
    write_file(path, secret == Secret::Kept, existing, |file| {
        filter.to_writer(file, secret).with_context(|| path.display().to_string())
    })
}

/// Text for a terminal or a log: control characters are shown, not obeyed.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() { out.extend(letter.escape_default()) } else { out.push(letter) }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_record_may_have_no_end() {
        let mut lines = Lines::new(Vec::new(), "here".into(), b"\r\n");
        for records in ["a\nb", "c\n", "d", "e"] {
            lines.write(records.as_bytes()).unwrap();
        }
        assert_eq!(lines.writer, b"a\nb\r\nc\nd\r\ne");
    }

    #[test]
    fn messages_have_no_passwords() {
        for (said, told) in [
            ("redis://:secret@host:1/0?key=b: refused", "redis://host:1/0?key=b: refused"),
            ("a redis://u:p@h and rediss://u:p%40@[::1]/0", "a redis://h and rediss://[::1]/0"),
            ("redis://host/0?key=a@b", "redis://host/0?key=a@b"),
            ("mail@example.org: no file", "mail@example.org: no file"),
        ] {
            assert_eq!(without_passwords(said), told);
        }
    }

    #[test]
    fn only_standard_output_is_closed_by_its_reader() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        let elsewhere = anyhow::Error::new(broken()).context("redis://127.0.0.1:6379/0?key=list");
        assert!(!is_closed(&elsewhere));
        assert!(!is_closed(&io::Error::other(broken()).into()));
        let here = told_apart::<()>(Err(broken())).context(STDOUT).unwrap_err();
        assert!(is_closed(&here) && is_closed(&here.context("more")));
        assert_eq!(
            told_apart::<()>(Err(io::ErrorKind::StorageFull.into())).unwrap_err().kind(),
            io::ErrorKind::StorageFull
        );
    }

    #[test]
    fn control_characters_are_shown() {
        assert_eq!(shown(b"a\x1b[31mb\r\n\xff"), "a\\u{1b}[31mb\\r\\n\u{fffd}");
        assert_eq!(shown("grün".as_bytes()), "grün");
    }
}
