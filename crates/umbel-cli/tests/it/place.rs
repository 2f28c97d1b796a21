//! A directory of its own for every test, and what a run of `umbel` gave.

use assert_cmd::Command;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// All that `build` can make.
pub(crate) const FAMILIES: [&str; 12] = [
    "bloom",
    "blocked",
    "split",
    "counting",
    "blocked-counting",
    "scalable",
    "cuckoo",
    "quotient",
    "xor",
    "fuse",
    "fuse4",
    "ribbon",
];

/// The secret of all filters that tests make: what they expect does not depend on chance.
pub(crate) const SECRET: (&str, &str) = ("UMBEL_TEST_SECRET", "6b1d0c4fe2a8937550d9f3e17a26bc84");

/// An empty directory in which commands run.
pub(crate) struct Place(TempDir);

/// What a command gave.
#[derive(Debug, PartialEq)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().expect("a temporary directory"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> &Self {
        fs::write(self.path(name), bytes).expect("a file of the test");
        self
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The names of all files, hidden ones included.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("the directory of the test");
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let mut names: Vec<String> = entries.map(|entry| name(entry.unwrap())).collect();
        names.sort();
        names
    }

    pub(crate) fn command(&self) -> Command {
        Command::from_std(self.process())
    }

    /// `umbel`, to be run beside the test.
    pub(crate) fn process(&self) -> std::process::Command {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_umbel"));
        command.current_dir(self.0.path()).env(SECRET.0, SECRET.1);
        command
    }

    /// A program that signals end, also where the tests themselves run with signals ignored, as under `nohup`: ignored signals are
    /// inherited, and `umbel` goes on ignoring them.
    #[cfg(unix)]
    pub(crate) fn interruptible(&self, program: &str) -> std::process::Command {
        let mut command = std::process::Command::new("env");
        command.args(["--default-signal=HUP,INT,TERM", program]);
        command.current_dir(self.0.path()).env(SECRET.0, SECRET.1);
        command
    }

    /// Runs `umbel` with arguments that are separated by blanks.
    pub(crate) fn umbel(&self, args: &str) -> Ran {
        self.umbel_with(args, "")
    }

    /// The same, with standard input.
    pub(crate) fn umbel_with(&self, args: &str, input: impl AsRef<[u8]>) -> Ran {
        let args: Vec<&str> = args.split_whitespace().collect();
        self.run(&args, input)
    }

    pub(crate) fn run(&self, args: &[&str], input: impl AsRef<[u8]>) -> Ran {
        let output = self.command().args(args).write_stdin(input.as_ref()).output();
        Ran::of(&output.expect("umbel runs"))
    }

    /// Runs `umbel` with a standard output that its reader has closed already.
    pub(crate) fn unread(&self, args: &str, input: impl AsRef<[u8]>) -> Ran {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        self.write(".stdin", input);
        let mut command = self.process();
        command.args(args.split_whitespace()).stdout(writer);
        command.stdin(fs::File::open(self.path(".stdin")).expect("standard input"));
        let output = command.output().expect("umbel runs");
        fs::remove_file(self.path(".stdin")).expect("a file of the test");
        Ran::of(&output)
    }

    /// Whether there is a `strace` that works: some sandboxes have none.
    #[cfg(unix)]
    pub(crate) fn has_strace(&self) -> bool {
        let works = self.shell("strace -qq -o /dev/null true").code == Some(0);
        if !works {
            eprintln!("SKIPPED: there is no strace that works");
        }
        works
    }

    /// Runs a line of bash, with `umbel` on the path.
    pub(crate) fn shell(&self, script: &str) -> Ran {
        let umbel = PathBuf::from(env!("CARGO_BIN_EXE_umbel"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut all = vec![umbel.parent().expect("it is in a directory").to_owned()];
        all.extend(std::env::split_paths(&path));
        let mut command = Command::new("bash");
        command.current_dir(self.0.path()).env("PATH", std::env::join_paths(all).unwrap());
        command.env(SECRET.0, SECRET.1);
        Ran::of(&command.args(["-c", script]).output().expect("bash runs"))
    }
}

impl Ran {
    fn of(output: &std::process::Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// It ended like this, and nothing else was said or printed.
    #[track_caller]
    pub(crate) fn gives(&self, code: i32, out: &str, err: &str) {
        let expected = Self { code: Some(code), out: out.into(), err: err.into() };
        assert_eq!(*self, expected);
    }

    /// It failed, printed nothing, and said this.
    #[track_caller]
    pub(crate) fn fails(&self, err: &str) {
        self.gives(2, "", &format!("umbel: {err}\n"));
    }

    /// It went well, and printed this.
    #[track_caller]
    pub(crate) fn prints(&self, out: &str) {
        assert_eq!((self.code, &*self.out), (Some(0), out), "{}", self.err);
    }

    /// The arguments were refused, with this in the message.
    #[track_caller]
    pub(crate) fn refuses(&self, part: &str) {
        assert_eq!((self.code, &*self.out), (Some(2), ""), "{}", self.err);
        assert!(self.err.contains(part), "{}", self.err);
    }
}
