//! Filters on a server, wherever a file could be.
//!
//! Without `redis-server` on the path these tests fail, unless `UMBEL_WITHOUT_SERVERS` is set: `check`
//! installs it.

use crate::place::Place;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A server that ends with the test.
pub(crate) struct Node {
    child: Child,
    port: u16,
    folder: TempDir,
}

/// What to do if a server does not start.
const HINT: &str =
    "there is no redis-server: ./check installs it, and UMBEL_WITHOUT_SERVERS=1 skips its tests";

/// Whether tests that need a server are to be skipped.
fn are_skipped() -> bool {
    let skipped = std::env::var_os("UMBEL_WITHOUT_SERVERS").is_some();
    if skipped {
        eprintln!("skipped: UMBEL_WITHOUT_SERVERS is set");
    }
    skipped
}

impl Node {
    pub(crate) fn start() -> Option<Self> {
        if are_skipped() {
            return None;
        }
        for _ in 0..5 {
            let folder = TempDir::new().unwrap();
            let free = TcpListener::bind(("127.0.0.1", 0)).unwrap();
            let port = free.local_addr().unwrap().port();
            drop(free);
            let child = Self::process(port, &folder).spawn().expect(HINT);
            let mut node = Self { child, port, folder };
            if node.is_up() {
                return Some(node);
            }
            // Another program had the port by then.
        }
        panic!("redis-server does not start");
    }

    fn process(port: u16, folder: &TempDir) -> Command {
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--requirepass", "sesame"]).current_dir(folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// Stops the server, which saves its data, and starts it again on the same data and port.
    pub(crate) fn restart(&mut self) {
        let saved = self.call("SAVE").expect("it answers");
        assert!(saved.contains("+OK"), "{saved}");
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        // A program that makes a connection may have the port for a moment.
        for _ in 0..50 {
            self.child = Self::process(self.port, &self.folder).spawn().expect(HINT);
            if self.is_up() {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("redis-server does not start again");
    }

    fn is_up(&mut self) -> bool {
        let end = Instant::now() + Duration::from_secs(60);
        // This very process, and not another one that has got the port.
        let this = format!("process_id:{}\r\n", self.child.id());
        while Instant::now() < end && self.child.try_wait().unwrap().is_none() {
            if self.call("INFO server").is_some_and(|reply| reply.contains(&this)) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    /// Sends a command as people type it.
    fn call(&self, command: &str) -> Option<String> {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        socket.write_all(format!("AUTH sesame\r\n{command}\r\nQUIT\r\n").as_bytes()).ok()?;
        let mut reply = String::new();
        socket.read_to_string(&mut reply).ok()?;
        Some(reply)
    }

    /// The address of a filter, and how it is shown.
    pub(crate) fn filter(&self, name: &str) -> (String, String) {
        let port = self.port;
        let shown = format!("redis://127.0.0.1:{port}/0?key={name}");
        (format!("redis://:sesame@127.0.0.1:{port}/0?key={name}"), shown)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_filter_is_built_there_and_changed_and_asked() {
    let Some(node) = Node::start() else { return };
    let (place, (url, shown)) = (Place::new(), node.filter("list"));
    let built = "umbel: 2 keys, blocked, 128 bytes, false positive rate 9.8e-11\n";
    place.umbel_with(&format!("build -o {url} -n 100"), "a\nb\n").gives(0, "", built);
    place.umbel_with(&format!("check {url}"), "a\nx\nb\ny\n").gives(0, "a\nb\n", "");
    place.umbel_with(&format!("check -v -c {url}"), "a\nx\nb\ny\n").gives(0, "2\n", "");
    place.umbel_with(&format!("check -q {url} --item z"), "").gives(1, "", "");
    let added = "umbel: 1 new key added, 1 was already in it, or seemed to be; holds about 3 of 100 planned keys; false positive rate 4.3e-9\n";
    place.umbel_with(&format!("add {url}"), "b\nc\n").gives(0, "", added);
    place.umbel_with(&format!("check {url}"), "c\nd\n").prints("c\n");
    place
        .umbel_with(&format!("remove {url}"), "a\n")
        .fails(&format!("{shown}: a blocked filter cannot remove keys"));
    // The same bits as in a file.
    place.umbel_with("build -o file -n 100", "a\nb\nc\n").prints("");
    let file = place.umbel("info --json file");
    let there = place.umbel(&format!("info --json {url}"));
    let fact = |ran: &crate::place::Ran, name: &str| {
        let facts: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        facts[name].clone()
    };
    for name in ["family", "hash", "bytes", "bits", "fill", "rate_now", "keys_planned"] {
        assert_eq!(fact(&file, name), fact(&there, name), "{name}");
    }
    assert_eq!((fact(&there, "server"), fact(&there, "shards")), (shown.clone().into(), 1.into()));
    // It is not overwritten by mistake, and not by another family at all.
    place
        .umbel_with(&format!("build -o {url} -n 100"), "x\n")
        .fails(&format!("{shown}: is there already; --force replaces it"));
    place.umbel_with(&format!("build -o {url} --static"), "x\n").fails(&format!(
        "{shown}: a filter on a server is a blocked one: expected --family blocked, got ribbon"
    ));
    place.umbel_with(&format!("build --force -o {url} -n 100"), "x\n").prints("");
    place.umbel_with(&format!("check {url}"), "a\nx\n").prints("x\n");
}

#[test]
fn runs_on_many_machines_share_a_state() {
    let Some(node) = Node::start() else { return };
    let (place, (url, shown)) = (Place::new(), node.filter("seen"));
    place
        .umbel_with(&format!("dedup --state {url}&create"), "a\n")
        .fails(&format!("{shown}: does not grow: -n says how many different lines there will be"));
    place
        .umbel_with(&format!("dedup --state {url}&create -n 100000"), "a\nb\na\n")
        .gives(0, "a\nb\n", "");
    place.umbel_with(&format!("dedup --state {url} -n 100000"), "b\nc\n").prints("c\n");
    place.umbel_with(&format!("dedup --state {url}"), "c\nd\n").gives(0, "d\n", "");
    for (other, began, asked) in [
        ("-n 2000", "with -n 100,000", "-n 2,000"),
        ("-p 0.1", "with -n 100,000", "-p without -n"),
        ("--hash keyed", "with --hash portable", "--hash keyed"),
    ] {
        let begun = format!("the state was begun {began}, and this run has {asked}");
        place
            .umbel_with(&format!("dedup --state {url} {other}"), "x\n")
            .fails(&format!("{shown}: {begun}; leave that out, or begin another state"));
    }
    place
        .umbel_with(&format!("dedup --state {url} --window 5"), "x\n")
        .fails(&format!("{shown}: a filter on a server has no window"));
    // Many at once: each line is printed by one of them.
    let lines: String = (0..3_000).map(|line| format!("line {line}\n")).collect();
    let all: Vec<String> = std::thread::scope(|scope| {
        let (place, url, lines) = (&place, &url, &lines);
        let run =
            || scope.spawn(move || place.umbel_with(&format!("dedup --state {url}"), lines).out);
        [run(), run(), run()].map(|handle| handle.join().unwrap()).to_vec()
    });
    let mut printed: Vec<&str> = all.iter().flat_map(|out| out.lines()).collect();
    printed.sort_unstable();
    printed.dedup();
    assert_eq!(printed.len(), 3_000);
}

/// A state that was evicted is an error. To begin anew would print again what was printed before.
#[test]
fn dedup_begins_a_state_on_a_server_only_if_it_is_told_to() {
    let Some(node) = Node::start() else { return };
    let (place, (url, shown)) = (Place::new(), node.filter("seen"));
    let missing = format!(
        "{shown}: the filter is not there: evicted, expired, flushed or never made; add &create to the address to begin an empty filter"
    );
    place.umbel_with(&format!("dedup --state {url} -n 1000"), "a\n").fails(&missing);
    place.umbel_with(&format!("dedup --state {url}&create -n 1000"), "a\n").prints("a\n");
    place.umbel_with(&format!("dedup --state {url} -n 1000"), "a\nb\n").prints("b\n");
    place
        .umbel_with(&format!("dedup --state {url}&create -n 1000"), "a\n")
        .fails(&format!("{shown}: is there already; leave &create out to go on with it"));
    node.call("DEL seen").unwrap();
    place.umbel_with(&format!("dedup --state {url} -n 1000"), "a\n").fails(&missing);
    for command in [&format!("check {url}&create"), &format!("build -n 9 -o {url}&create")] {
        place.umbel_with(command, "a\n").fails(&format!(
            "{shown}: &create is for dedup --state, which can begin a filter; leave it out"
        ));
    }
}

#[test]
fn a_secret_stays_here() {
    let Some(node) = Node::start() else { return };
    let (place, (url, shown)) = (Place::new(), node.filter("keyed"));
    place
        .umbel_with(&format!("build --hash keyed -n 10 -o {url}"), "a\n")
        .fails(&format!("{shown}: --hash keyed needs a file for its secret, which is not kept on the server: add &secret=FILE to the address"));
    place.umbel_with(&format!("build --hash keyed -n 10 -o {url}&secret=mine"), "a\n").prints("");
    assert_eq!(place.read("mine").len(), 33);
    place.umbel_with(&format!("check {url}&secret=mine"), "a\nb\n").prints("a\n");
    place
        .umbel_with(&format!("check {url}"), "a\n")
        .fails(&format!("{shown}: its keys are hashed with a secret, which is not kept on the server: add &secret=FILE to the address"));
    place.write("other", format!("{}\n", "7".repeat(32)));
    place
        .umbel_with(&format!("check {url}&secret=other"), "a\n")
        .fails(&format!("{shown}: the filter there has another seed or secret"));
}

#[test]
fn what_is_lost_is_an_error_and_never_a_no() {
    let Some(node) = Node::start() else { return };
    let (place, (url, shown)) = (Place::new(), node.filter("list"));
    let missing =
        format!("{shown}: the filter is not there: evicted, expired, flushed or never made");
    place.umbel_with(&format!("check -v {url}"), "a\n").fails(&missing);
    place.umbel_with(&format!("build -o {url} -n 100"), "a\n").prints("");
    node.call("SET list something").unwrap();
    place
        .umbel_with(&format!("check -v {url}"), "a\n")
        .fails(&format!("{shown}: something else is stored under the filter's name"));
    node.call("FLUSHALL").unwrap();
    place.umbel_with(&format!("add {url}"), "a\n").fails(&missing);
    let wrong = url.replace("sesame", "guess");
    place
        .umbel_with(&format!("check {wrong}"), "a\n")
        .fails(&format!("{shown}: the server does not permit this to this user"));
    place
        .umbel_with(&format!("check {}", url.split('?').next().unwrap()), "a\n")
        .refuses("lacks the name");
}

#[test]
fn a_filter_there_has_the_limit_of_its_plan() {
    let Some(node) = Node::start() else { return };
    let (place, (url, shown)) = (Place::new(), node.filter("list"));
    let keys: String = (0..40_000).map(|key| format!("{key}\n")).collect();
    place.umbel_with(&format!("build -o {url} -n 1000"), "a\n").prints("");
    let ran = place.umbel_with(&format!("add {url}"), &keys);
    assert_eq!((ran.code, &*ran.out), (Some(2), ""), "{}", ran.err);
    let planned = "planned for 1,000 keys, with which its false positive rate is 0.98 %";
    assert!(ran.err.starts_with(&format!("umbel: {shown}: stopped after ")), "{}", ran.err);
    assert!(ran.err.contains(planned) && ran.err.contains("--overfull"), "{}", ran.err);
    // It stopped in time for most absent keys, and takes no more.
    let found =
        place.umbel_with(&format!("check -c {url}"), "x1\nx2\nx3\nx4\nx5\nx6\nx7\nx8\n").out;
    assert!(found.trim().parse::<u32>().is_ok(), "{found}");
    let again = place.umbel_with(&format!("add {url}"), "one more\n");
    assert_eq!(again.code, Some(2), "{}", again.err);
    assert!(again.err.starts_with(&format!("umbel: {shown}: {planned}")), "{}", again.err);
    let ran = place.umbel_with(&format!("add --overfull {url}"), &keys);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains(&format!("umbel: {shown}: {planned}")), "a warning: {}", ran.err);
    place.umbel_with(&format!("check -c {url}"), &keys).prints("40000\n");
}

/// A server that takes only encrypted connections, with the certificate in this place.
#[cfg(feature = "tls")]
fn encrypted(place: &Place) -> Option<Node> {
    if are_skipped() {
        return None;
    }
    for _ in 0..5 {
        let free = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut server = Command::new("redis-server");
        server.args(["--port", "0", "--tls-port", &port.to_string(), "--bind", "127.0.0.1"]);
        server.args(["--save", "", "--tls-cert-file", "cert.pem", "--tls-key-file", "key.pem"]);
        server.args(["--tls-ca-cert-file", "ca.pem", "--tls-auth-clients", "no"]);
        server.current_dir(place.path("")).stdout(Stdio::null());
        let child = server.spawn().expect(HINT);
        let mut node = Node { child, port, folder: TempDir::new().unwrap() };
        let end = Instant::now() + Duration::from_secs(60);
        while Instant::now() < end && node.child.try_wait().unwrap().is_none() {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some(node);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        // Another program had the port by then.
    }
    panic!("redis-server does not start");
}

/// With a certificate that only this test trusts.
#[cfg(feature = "tls")]
#[test]
fn an_encrypted_connection_is_a_connection() {
    let place = Place::new();
    let made = place.shell(
        "openssl req -x509 -newkey rsa:2048 -nodes -days 9 -subj /CN=ca -keyout ca.key -out ca.pem 2>/dev/null &&
         openssl req -newkey rsa:2048 -nodes -subj /CN=here -keyout key.pem -out csr.pem 2>/dev/null &&
         echo subjectAltName=IP:127.0.0.1 > san &&
         openssl x509 -req -in csr.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 9 -extfile san -out cert.pem 2>/dev/null",
    );
    assert_eq!(made.code, Some(0), "openssl makes certificates: {}", made.err);
    let Some(node) = encrypted(&place) else { return };
    let port = node.port;
    let url = format!("rediss://127.0.0.1:{port}/0?key=list");
    let trusting = |command: &str| {
        place.shell(&format!("export SSL_CERT_FILE=ca.pem; printf 'a\\nb\\n' | umbel {command}"))
    };
    let built = trusting(&format!("build -n 100 -o '{url}'"));
    assert_eq!(built.code, Some(0), "{}", built.err);
    trusting(&format!("check '{url}'")).prints("a\nb\n");
    // Whoever does not know the certificate is not connected.
    place
        .umbel_with(&format!("check {url}"), "a\n")
        .fails(&format!("rediss://127.0.0.1:{port}/0?key=list: no connection to the server"));
    drop(node);
}
