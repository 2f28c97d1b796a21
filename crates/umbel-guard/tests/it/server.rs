//! A PostgreSQL server in a temporary folder and on a free port, stopped when the handle is dropped.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    process: Child,
    pub(crate) port: u16,
    place: Option<TempDir>,
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.process.try_wait(), Ok(Some(_))) {
            return;
        }
        // Stopped with a signal first, so that it ends its children and removes its shared memory.
        let pid = self.process.id().to_string();
        let _ = Command::new("kill").args(["-INT", &pid]).status();
        for _ in 0..100 {
            if matches!(self.process.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits until the server answers. Returns `false` if it ended, because another process has taken the port.
fn wait_for(server: &mut Server, ready: impl Fn(u16) -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(60);
    while !ready(server.port) {
        if server.process.try_wait().unwrap().is_some() {
            return false;
        }
        assert!(Instant::now() < end, "the server does not come up");
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("an address").port()
}

/// The folder of PostgreSQL's programs.
fn postgres_programs() -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .filter(|bin| bin.join("initdb").is_file())
        .collect();
    found.sort();
    found.pop()
}

/// PostgreSQL does not run as root.
fn unprivileged(program: &Path) -> Command {
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n");
    if !is_root {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "postgres", "--regid", "postgres", "--clear-groups"]).arg(program);
    command
}

/// The folder of PostgreSQL's programs; `None` if tests with servers are to be skipped.
fn allowed_programs() -> Option<PathBuf> {
    if std::env::var_os("UMBEL_WITHOUT_SERVERS").is_some() {
        eprintln!("skipped: UMBEL_WITHOUT_SERVERS is set");
        return None;
    }
    let hint = "./check installs it, and UMBEL_WITHOUT_SERVERS=1 skips its tests";
    Some(postgres_programs().unwrap_or_else(|| panic!("no PostgreSQL here: {hint}")))
}

/// A PostgreSQL server; `None` if tests with servers are to be skipped.
pub(crate) fn postgres() -> Option<Server> {
    let programs = allowed_programs()?;
    start_postgres(&programs, TempDir::new().expect("a folder"), &[])
}

/// As `postgres`, with encrypted connections. Also returns the certificate of the authority.
pub(crate) fn postgres_with_tls() -> Option<(Server, PathBuf)> {
    let programs = allowed_programs()?;
    let place = TempDir::new().expect("a folder");
    let [authority, certificate, key] =
        ["authority.pem", "server.pem", "server.key"].map(|name| place.path().join(name));
    let sign = |arguments: &str| {
        let new = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2";
        let mut openssl = Command::new("openssl");
        openssl.args(new.split(' ')).args(arguments.split(' ')).current_dir(place.path());
        let made = openssl.output().expect("openssl runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    };
    sign("-subj /CN=authority -keyout authority.key -out authority.pem");
    sign(
        "-subj /CN=server -keyout server.key -out server.pem -CA authority.pem -CAkey authority.key \
         -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=DNS:localhost",
    );
    let _ = Command::new("chown").arg("postgres:postgres").arg(&key).status();
    let options = [
        "ssl=on".to_owned(),
        format!("ssl_cert_file={}", certificate.display()),
        format!("ssl_key_file={}", key.display()),
    ];
    Some((start_postgres(&programs, place, &options)?, authority))
}

fn start_postgres(programs: &Path, place: TempDir, options: &[String]) -> Option<Server> {
    let _ = Command::new("chown").arg("postgres:postgres").arg(place.path()).status();
    let data = place.path().join("data");
    let made = unprivileged(&programs.join("initdb"))
        .args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync", "-D"])
        .arg(&data)
        .current_dir("/")
        .output()
        .expect("initdb runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Some(run_postgres(programs, place, options))
}

/// Starts a server on an existing data folder.
fn run_postgres(programs: &Path, place: TempDir, options: &[String]) -> Server {
    let mut place = Some(place);
    for _ in 0..5 {
        let data = place.as_ref().expect("the folder").path().join("data");
        let port = free_port();
        let process = unprivileged(&programs.join("postgres"))
            .arg("-D")
            .arg(&data)
            .args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1"])
            .args([
                "-c",
                "fsync=off",
                "-c",
                "shared_buffers=64MB",
                "-c",
                "unix_socket_directories=",
            ])
            .args(options.iter().flat_map(|option| ["-c", option]))
            .current_dir("/")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("postgres starts");
        let mut server = Server { process, port, place: place.take() };
        let ready = programs.join("pg_isready");
        let up = wait_for(&mut server, |port| {
            let mut ask = Command::new(&ready);
            ask.args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()]);
            ask.status().is_ok_and(|status| status.success())
        });
        if up {
            return server;
        }
        place = server.place.take();
    }
    panic!("postgres does not start");
}

impl Server {
    /// Runs statements, as another program without the guard does, and returns their output.
    pub(crate) fn sql(&self, statements: &str) -> String {
        let psql = postgres_programs().expect("it was there").join("psql");
        let quiet = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"];
        let mut psql = Command::new(psql);
        psql.args(quiet).args([&self.postgres_url(), "-c", statements]);
        let ran = psql.output().expect("psql runs");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8_lossy(&ran.stdout).trim().to_owned()
    }

    /// A standby of this server that has caught up.
    pub(crate) fn standby(&self) -> Self {
        let (programs, place) = (postgres_programs().expect("it was there"), TempDir::new());
        let place = place.expect("a folder");
        let _ = Command::new("chown").arg("postgres:postgres").arg(place.path()).status();
        let copied = unprivileged(&programs.join("pg_basebackup"))
            .args([
                "-R",
                "-X",
                "stream",
                "-c",
                "fast",
                "--no-sync",
                "-d",
                &self.postgres_url(),
                "-D",
            ])
            .arg(place.path().join("data"))
            .current_dir("/")
            .output()
            .expect("pg_basebackup runs");
        assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
        let standby = run_postgres(&programs, place, &[]);
        assert_eq!(standby.sql("SELECT pg_is_in_recovery()"), "t");
        standby.follow(self);
        standby
    }

    /// Waits until this standby has everything that the other server has.
    pub(crate) fn follow(&self, primary: &Self) {
        let place = primary.sql("SELECT pg_current_wal_lsn()");
        let end = Instant::now() + Duration::from_secs(60);
        while self.sql(&format!("SELECT pg_last_wal_replay_lsn() >= '{place}'")) != "t" {
            assert!(Instant::now() < end, "the standby does not follow");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Makes a standby a primary.
    pub(crate) fn promote(&self) {
        assert_eq!(self.sql("SELECT pg_promote(true, 60)"), "t");
    }

    /// Ends the server at once, as a power failure does.
    pub(crate) fn kill(&mut self) {
        let pid = self.process.id().to_string();
        let _ = Command::new("kill").args(["-QUIT", &pid]).status();
        self.process.wait().expect("it ends");
    }

    pub(crate) fn postgres_url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }
}
