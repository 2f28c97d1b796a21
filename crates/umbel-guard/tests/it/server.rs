//! PostgreSQL in a folder and on a port of its own, gone when the handle is dropped.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A server under way.
#[derive(Debug)]
pub(crate) struct Server {
    process: Child,
    pub(crate) port: u16,
    _place: TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        // Asked first, so that it takes its own children and shared memory away.
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

fn wait_for(server: &mut Server, ready: impl Fn(u16) -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !ready(server.port) {
        assert!(server.process.try_wait().unwrap().is_none(), "the server ended at once");
        assert!(Instant::now() < end, "the server does not come up");
        std::thread::sleep(Duration::from_millis(20));
    }
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

/// A PostgreSQL server; `None` if there is none and that is allowed.
pub(crate) fn postgres() -> Option<Server> {
    let Some(programs) = postgres_programs() else {
        let hint = "./check installs it, and UMBEL_WITHOUT_SERVERS=1 skips its tests";
        assert!(std::env::var_os("UMBEL_WITHOUT_SERVERS").is_some(), "no PostgreSQL here: {hint}");
        eprintln!("skipped: there is no PostgreSQL here");
        return None;
    };
    start_postgres(&programs, TempDir::new().expect("a folder"), &[])
}

/// The same with encrypted connections; and the certificate of the authority that says who it is.
pub(crate) fn postgres_with_tls() -> Option<(Server, PathBuf)> {
    let programs = postgres_programs()?;
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
    let port = free_port();
    let process = unprivileged(&programs.join("postgres"))
        .arg("-D")
        .arg(&data)
        .args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1"])
        .args(["-c", "fsync=off", "-c", "shared_buffers=64MB", "-c", "unix_socket_directories="])
        .args(options.iter().flat_map(|option| ["-c", option]))
        .current_dir("/")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("postgres starts");
    let mut server = Server { process, port, _place: place };
    let ready = programs.join("pg_isready");
    wait_for(&mut server, |port| {
        let mut ask = Command::new(&ready);
        ask.args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()]);
        ask.status().is_ok_and(|status| status.success())
    });
    Some(server)
}

impl Server {
    /// Runs statements, as somebody does who knows nothing of the guard.
    pub(crate) fn sql(&self, statements: &str) {
        let psql = postgres_programs().expect("it was there").join("psql");
        let ran = Command::new(psql).args(["-q", &self.postgres_url(), "-c", statements]).output();
        let ran = ran.expect("psql runs");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }

    pub(crate) fn postgres_url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }
}
