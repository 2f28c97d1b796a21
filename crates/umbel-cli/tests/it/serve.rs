//! `umbel guard serve`: which requests are answered, and how long clients may take.

use crate::guard::{REDB, redb};
use crate::place::Place;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStderr, Stdio};
use std::time::Duration;

/// `umbel guard serve`, until it is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    said: BufReader<ChildStderr>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(place: &Place, args: &str) -> Server {
    serve_at(place, &format!("--listen 127.0.0.1:0 {args}"))
}

fn serve_at(place: &Place, args: &str) -> Server {
    Server::start(place, &format!("guard serve {REDB} {args}"))
}

/// A connection, over TCP or over a socket.
trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

impl Server {
    /// Runs a command that serves.
    pub(crate) fn start(place: &Place, command: &str) -> Self {
        let mut process = place.process();
        process.args(command.split_whitespace());
        let mut child = process.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().trim_start_matches("http://").trim_end_matches('/').to_owned();
        let said = BufReader::new(child.stderr.take().unwrap());
        Self { child, address, said }
    }

    /// Reads what it says up to a line with this text, and gives the lines before it and this one.
    pub(crate) fn says(&mut self, text: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            assert!(self.said.read_line(&mut line).unwrap() > 0, "{text}: {lines:?}");
            lines.push(line.trim_end().to_owned());
            if line.contains(text) {
                return lines;
            }
        }
    }

    /// A connection that waits a minute for an answer.
    fn connect(&self) -> Box<dyn Stream> {
        let minute = Some(Duration::from_secs(60));
        if let Some(path) = self.address.strip_prefix("unix:") {
            let stream = UnixStream::connect(path).unwrap();
            stream.set_read_timeout(minute).unwrap();
            return Box::new(stream);
        }
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(minute).unwrap();
        Box::new(stream)
    }

    /// Sends some bytes; what comes back.
    fn send(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        // A server that refuses may close before all was sent.
        let _ = stream.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        self.ask_with(method, path, "", body)
    }

    /// The same with more headers.
    fn ask_with(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        let said = self.send(&format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        ));
        let status = said.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        (status, said.to_lowercase())
    }

    pub(crate) fn active(&self) {
        for _ in 0..3_000 {
            if self.ask("GET", "/state", "").1.ends_with("active\n") {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("it does not become active");
    }
}

#[test]
fn keys_are_got_put_and_deleted_over_http() {
    let place = redb();
    let server = serve(&place, "");
    server.active();
    let (status, said) = server.ask("GET", "/keys/ada", "");
    assert_eq!(status, 200);
    assert!(said.contains("umbel-answer: maybe") && said.ends_with("\r\n\r\nthere"), "{said}");
    let (status, said) = server.ask("GET", "/keys/nobody", "");
    assert!(status == 404 && said.contains("umbel-answer: absent"), "{said}");
    assert_eq!(server.ask("PUT", "/keys/a%2Fb/c%00", "value").0, 204);
    assert!(server.ask("GET", "/keys/a/b%2Fc%00", "").1.ends_with("value"));
    assert_eq!(server.ask("DELETE", "/keys/a/b/c%00", "").0, 204);
    assert_eq!(server.ask("DELETE", "/keys/a/b/c%00", "").0, 404);
    assert_eq!(server.ask("GET", "/keys/%zz", "").0, 400);
    // Not the key `ada`: what is behind the question mark must not get lost.
    for method in ["GET", "PUT", "DELETE"] {
        let (status, said) = server.ask(method, "/keys/ada?x", "");
        assert!(status == 400 && said.contains("%3f"), "{said}");
    }
    assert_eq!(server.ask("PUT", "/keys/ada%3Fx", "value").0, 204);
    assert_eq!(server.ask("GET", &format!("/keys/{}", "k".repeat(5_000)), "").0, 400);
    assert_eq!(server.ask("GET", "/nothing", "").0, 404);
    assert_eq!(server.ask("POST", "/keys/ada", "x").0, 405);
    let (status, metrics) = server.ask("GET", "/metrics", "");
    assert_eq!(status, 200);
    assert!(metrics.contains("\numbel_guard_state 2\n"), "{metrics}");
    assert!(metrics.contains("\numbel_guard_puts_total 2\n"), "{metrics}");
    // ada, nobody and one that was put: a request is one question.
    assert!(metrics.contains("\numbel_guard_queries_total 3\n"), "{metrics}");
    assert!(metrics.contains("\numbel_guard_saved_total 1\n"), "{metrics}");
}

#[test]
fn a_server_that_cannot_listen_leaves_everything_as_it_was() {
    let place = redb();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let names = place.names();
    let address = taken.local_addr().unwrap();
    place.umbel(&format!("guard serve {REDB} --listen {address}")).refuses(&address.to_string());
    assert_eq!(place.names(), names, "no guard was started, which would have made its folder");
}

#[test]
fn what_does_not_come_from_here_is_refused() {
    let place = redb();
    let server = serve(&place, "--max-value 1k --host guard.example");
    let address = &server.address;
    let port = address.rsplit(':').next().unwrap();
    let status = |headers: &str| {
        let said =
            server.send(&format!("GET /state HTTP/1.1\r\n{headers}Connection: close\r\n\r\n"));
        said.split(' ').nth(1).map(str::to_owned).unwrap_or_default()
    };
    assert_eq!(status(&format!("Host: localhost:{port}\r\n")), "200");
    assert_eq!(status("Host: Guard.example\r\n"), "200");
    // A name that was only pointed here, as DNS rebinding does it.
    assert_eq!(status("Host: evil.example\r\n"), "421");
    assert_eq!(status(""), "421");
    assert_eq!(status(&format!("Host: {address}\r\nOrigin: http://evil.example\r\n")), "403");
    assert_eq!(status(&format!("Host: {address}\r\nOrigin: null\r\n")), "403");
    assert_eq!(status(&format!("Host: {address}\r\nOrigin: http://{address}\r\n")), "200");
    for site in ["cross-site", "same-site"] {
        assert_eq!(status(&format!("Host: {address}\r\nSec-Fetch-Site: {site}\r\n")), "403");
    }
    assert_eq!(status(&format!("Host: {address}\r\nSec-Fetch-Site: none\r\n")), "200");
    // A second name, in a second header or in the target.
    let two = status(&format!("Host: {address}\r\nHost: evil.example\r\n"));
    assert!(["400", "421"].contains(&&*two), "{two}");
    let target = format!(
        "GET http://evil.example/state HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    );
    assert!(server.send(&target).contains(" 421 "));
    // Large values are refused, whatever is said of their length.
    assert_eq!(server.ask("PUT", "/keys/big", &"x".repeat(2_000)).0, 413);
    let chunked = format!(
        "PUT /keys/big HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n",
        format!("400\r\n{}\r\n", "x".repeat(1_024)).repeat(3)
    );
    assert!(server.send(&chunked).contains(" 413 "));
    assert_eq!(server.ask("GET", "/keys/big", "").0, 404);
    assert!(server.send("\0\0\0 garbage\r\n\r\n").contains(" 400 "));
}

#[test]
fn a_server_that_is_killed_is_back_with_all_it_was_told() {
    let place = redb();
    let server = serve(&place, "");
    server.active();
    for number in 0..20 {
        assert_eq!(server.ask("PUT", &format!("/keys/k{number}"), "v").0, 204);
    }
    drop(server);
    let server = serve(&place, "");
    assert!(server.ask("GET", "/state", "").1.ends_with("active\n"), "the saved filter is used");
    for number in 0..20 {
        assert_eq!(server.ask("GET", &format!("/keys/k{number}"), "").0, 200, "{number}");
    }
    assert_eq!(server.ask("GET", "/keys/k20", "").0, 404);
    // One guard for one folder.
    let second = place.umbel(&format!("guard stats {REDB}"));
    assert_eq!(second.code, Some(2), "{}", second.err);
}

const TOKEN: &str = "correct-horse-battery-staple";

/// A file with a token, and its permissions.
fn token(place: &Place, token: &str, mode: u32) {
    place.write("token", token);
    let permissions = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(place.path("token"), permissions).unwrap();
}

#[test]
fn every_request_needs_the_token() {
    let place = redb();
    token(&place, &format!("{TOKEN}\n"), 0o600);
    let server = serve(&place, "--token-file token");
    let with = format!("Authorization: Bearer {TOKEN}\r\n");
    let wrong = [
        String::new(),
        "Authorization: Bearer\r\n".into(),
        format!("Authorization: Basic {TOKEN}\r\n"),
        format!("Authorization: Bearer {TOKEN}x\r\n"),
        format!("Authorization: Bearer {}\r\n", &TOKEN[1..]),
        format!("Authorization: {TOKEN}\r\n"),
        with.repeat(2),
        format!("X-Token: {TOKEN}\r\n"),
    ];
    for (method, path) in [
        ("GET", "/keys/ada"),
        ("HEAD", "/keys/ada"),
        ("PUT", "/keys/new"),
        ("DELETE", "/keys/ada"),
        ("GET", "/metrics"),
        ("GET", "/state"),
        ("GET", "/nothing"),
        ("POST", "/keys/ada"),
        ("OPTIONS", "/keys/ada"),
        ("GET", &format!("/state?token={TOKEN}")),
    ] {
        for headers in &wrong {
            let (status, said) = server.ask_with(method, path, headers, "");
            assert_eq!(status, 401, "{method} {path} {headers}: {said}");
            assert!(said.contains("\r\nwww-authenticate: bearer\r\n"), "{said}");
            assert!(!said.contains(TOKEN), "{said}");
        }
    }
    assert_eq!(server.ask_with("GET", "/keys/ada", &with, "").0, 200, "nothing was deleted");
    assert_eq!(server.ask_with("GET", "/keys/new", &with, "").0, 404, "nothing was put");
    assert_eq!(server.ask_with("PUT", "/keys/new", &with, "v").0, 204);
    assert_eq!(server.ask_with("GET", "/metrics", &with, "").0, 200);
    assert_eq!(server.ask_with("GET", "/state", &with.replace("Bearer", "bearer"), "").0, 200);
    assert_eq!(server.ask_with("GET", "/nothing", &with, "").0, 404);
    // Neither where other users see arguments, nor in what is said.
    let arguments = std::fs::read(format!("/proc/{}/cmdline", server.child.id())).unwrap();
    assert!(!String::from_utf8_lossy(&arguments).contains(TOKEN));
    let said = server.end("TERM").1;
    assert!(!said.contains(TOKEN), "{said}");
}

#[test]
fn a_token_that_others_could_know_is_refused() {
    let place = redb();
    let before = place.names();
    let refused = |why: &str| {
        let ran =
            place.umbel(&format!("guard serve {REDB} --listen 127.0.0.1:0 --token-file token"));
        ran.refuses(why);
        assert!(!ran.err.contains("staple"), "{}", ran.err);
    };
    refused("token: No such file or directory (os error 2)");
    for mode in [0o640, 0o604, 0o644, 0o620, 0o660] {
        token(&place, TOKEN, mode);
        refused(&format!(
            "token: has mode {mode:o}, so that other users may use the token: chmod 600 token"
        ));
    }
    for (text, why) in [
        ("staple\n", "token: a token has 16 to 4096 characters, this one has 6"),
        ("", "this one has 0"),
        ("correct horse battery staple", "one line of visible ASCII characters"),
        (&"staple ".repeat(1_000), "this one has more"),
    ] {
        token(&place, text, 0o600);
        refused(why);
    }
    std::fs::remove_file(place.path("token")).unwrap();
    std::fs::create_dir(place.path("token")).unwrap();
    refused("token: a token is read from a regular file, and this is none");
    std::fs::remove_dir(place.path("token")).unwrap();
    assert_eq!(place.names(), before, "no folder was made");
}

#[test]
fn a_public_address_needs_a_token_or_a_word() {
    let place = redb();
    token(&place, TOKEN, 0o600);
    let refused = |args: &str, why: &str| {
        place.umbel(&format!("guard serve {REDB} --listen {args}")).refuses(why);
    };
    for address in ["0.0.0.0:0", "[::]:0"] {
        refused(address, "other machines can reach this address; --public allows it");
        refused(&format!("{address} --token-file token"), "--public allows it");
        refused(
            &format!("{address} --public"),
            "ask for a token with --token-file FILE, or allow it with --insecure",
        );
    }
    refused("0.0.0.0:0 --insecure", "--public");
    refused("0.0.0.0:0 --public --insecure --token-file token", "cannot be used with");
    // On an address of this machine only, nobody else is let in by these.
    for args in ["--public --token-file token", "--public --insecure"] {
        let server = serve(&place, args);
        let header = format!("Authorization: Bearer {TOKEN}\r\n");
        assert_eq!(server.ask_with("GET", "/state", &header, "").0, 200, "{args}");
    }
}

#[test]
fn a_read_only_server_changes_nothing() {
    let place = redb();
    let server = serve(&place, "--read-only");
    for (method, path) in
        [("PUT", "/keys/ada"), ("PUT", "/keys/new"), ("DELETE", "/keys/ada"), ("POST", "/keys/ada")]
    {
        let (status, said) = server.ask(method, path, "v");
        assert_eq!(status, 405, "{method}: {said}");
        assert!(said.contains("\r\nallow: get, head\r\n"), "{said}");
        assert!(
            said.ends_with("this server is read-only (--read-only): nothing was changed\n"),
            "{said}"
        );
    }
    assert!(server.ask("GET", "/keys/ada", "").1.ends_with("there"));
    assert_eq!(server.ask("HEAD", "/keys/ada", "").0, 200);
    assert_eq!(server.ask("GET", "/keys/new", "").0, 404);
    assert_eq!(server.ask("GET", "/metrics", "").0, 200);
}

#[test]
fn a_socket_is_for_its_owner() {
    let place = redb();
    // Whatever new files may be.
    let path = place.path("guard.sock");
    let at = format!("--socket {}", path.display());
    let mode = || path.symlink_metadata().unwrap().permissions().mode() & 0o777;
    let server = serve_at(&place, &at);
    assert_eq!(server.address, format!("unix:{}", path.display()));
    assert_eq!(mode(), 0o600);
    server.active();
    assert!(server.ask("GET", "/keys/ada", "").1.ends_with("there"));
    assert_eq!(server.ask("PUT", "/keys/new", "v").0, 204);
    // No browser reaches a socket, so a request may name any host.
    assert!(server.send("GET /state HTTP/1.0\r\n\r\n").ends_with("active\n"));
    // One that was killed leaves its socket behind, and the next one replaces it.
    drop(server);
    assert!(path.exists());
    let server = serve_at(&place, &format!("{at} --socket-mode 660"));
    assert_eq!(mode(), 0o660);
    assert_eq!(server.ask("GET", "/keys/new", "").0, 200);
    assert_eq!(server.end("TERM").0, Some(0));
    assert!(!path.exists(), "a server that is closed takes its socket away");
    // What is there and is no dead socket stays.
    place.write("guard.sock", "mine");
    place.umbel(&format!("guard serve {REDB} {at}")).fails(&format!(
        "{}: is there already and is no socket; choose another --socket",
        path.display()
    ));
    assert_eq!(place.read("guard.sock"), b"mine");
    std::fs::remove_file(&path).unwrap();
    let _other = std::os::unix::net::UnixListener::bind(&path).unwrap();
    place
        .umbel(&format!("guard serve {REDB} {at}"))
        .fails(&format!("{}: another process listens on this socket", path.display()));
    assert!(path.exists());
    let hidden: Vec<String> =
        place.names().into_iter().filter(|name| name.starts_with('.')).collect();
    assert!(hidden.is_empty(), "{hidden:?}");
    for (args, why) in [
        ("--socket-mode 900", "not permissions such as 600 or 660"),
        ("--listen 127.0.0.1:0", "cannot be used with"),
        ("--public", "cannot be used with"),
    ] {
        place.umbel(&format!("guard serve {REDB} {at} {args}")).refuses(why);
    }
}

#[test]
fn a_server_goes_on_if_its_output_is_not_read() {
    let place = redb();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let path = place.path("guard.sock");
    let mut command = place.process();
    command.args(format!("guard serve {REDB} --socket {}", path.display()).split_whitespace());
    let mut child = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(child.stderr.take().unwrap());
    let server = Server { child, address: format!("unix:{}", path.display()), said };
    for _ in 0..3_000 {
        if path.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    server.active();
}

#[test]
fn slow_clients_do_not_keep_others_out() {
    let place = redb();
    // Larger than what the kernel keeps for a connection.
    big_value(&place, 64 << 20);
    let head = |server: &Server, start: &str, headers: &str| {
        format!("{start} HTTP/1.1\r\nHost: {}\r\n{headers}\r\n", server.address)
    };
    let server = serve(&place, "--max-connections 2 --timeout 1s");
    let ways: [(&str, String); 7] = [
        ("says nothing", String::new()),
        ("sends half a head", "GET /state HTTP/1.1\r\nHost: x".into()),
        ("is idle after its first request", head(&server, "GET /state", "")),
        ("does not read its answer", head(&server, "GET /keys/big", "")),
        ("does not read the last of many", head(&server, "GET /keys/big", "").repeat(3)),
        ("sends no value", head(&server, "PUT /keys/x", "Content-Length: 5\r\n")),
        (
            "sends no body that is not wanted",
            head(&server, "POST /keys/x", "Content-Length: 5\r\n"),
        ),
    ];
    for (way, request) in ways {
        let slow: Vec<_> = (0..2)
            .map(|_| {
                let mut stream = server.connect();
                stream.write_all(request.as_bytes()).unwrap();
                stream
            })
            .collect();
        // There is no place until one of them is given up. On a machine that is very busy, this client may be too slow itself.
        let answered = (0..3).any(|_| server.ask("GET", "/state", "").0 == 200);
        assert!(answered, "a client that {way} keeps others out");
        drop(slow);
    }
    for (args, why) in [
        ("--timeout 0s", "not a time such as 500ms, 30s or 10m"),
        ("--timeout 5", "not a time such as 500ms, 30s or 10m"),
        ("--max-connections 0", "at least 1"),
    ] {
        place.umbel(&format!("guard serve {REDB} {args}")).refuses(why);
    }
}

/// A client that reads all the time gets all of a large value, however short the time-out is.
#[test]
fn a_large_value_is_read_to_its_end() {
    let place = redb();
    big_value(&place, 64 << 20);
    let server = serve(&place, "--timeout 10s");
    let said = server.send(&format!(
        "GET /keys/big HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        server.address
    ));
    let (_, value) = said.split_once("\r\n\r\n").unwrap();
    assert_eq!(value.len(), 64 << 20);
}

fn big_value(place: &Place, bytes: usize) {
    let database = redb::Database::open(place.path("users.redb")).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let table = redb::TableDefinition::<&[u8], &[u8]>::new("users");
        let mut table = transaction.open_table(table).unwrap();
        table.insert(&b"big"[..], &vec![b'x'; bytes][..]).unwrap();
    }
    transaction.commit().unwrap();
}

impl Server {
    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = std::process::Command::new("kill").args([&format!("-{name}"), &pid]).status();
        assert!(sent.unwrap().success());
    }

    /// Asks it to end; how it ended, and all it said.
    pub(crate) fn end(mut self, signal: &str) -> (Option<i32>, String) {
        self.signal(signal);
        let mut said = String::new();
        self.said.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

#[test]
fn a_signal_closes_the_server_and_saves_the_filter() {
    let place = redb();
    for signal in ["INT", "TERM"] {
        let server = serve(&place, "");
        server.active();
        let (code, said) = server.end(signal);
        assert_eq!(code, Some(0));
        assert!(
            said.ends_with("umbel: closing; a second signal ends the process at once\n"),
            "{said}"
        );
        assert!(place.umbel(&format!("guard stats {REDB}")).out.contains("can be used"));
    }
}

/// Saving is made to take a minute and a half.
#[test]
fn a_second_signal_ends_the_process_at_once() {
    let place = redb();
    if !place.has_strace() {
        return;
    }
    for signals in [["TERM", "TERM"], ["INT", "TERM"]] {
        let mut server = serve(&place, "");
        server.active();
        assert_eq!(server.ask("PUT", &format!("/keys/{}", signals[0]), "v").0, 204);
        let pid = server.child.id();
        let mut strace = std::process::Command::new("strace");
        let slowly = "inject=fsync,fdatasync,rename:delay_enter=90000000";
        strace.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync,rename"]);
        strace.args(["-e", slowly, "-p", &pid.to_string()]).stderr(Stdio::null());
        let mut strace = strace.spawn().unwrap();
        let traced = || {
            let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
            tasks.flatten().all(|task| {
                let status =
                    std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
                !status.contains("\nTracerPid:\t0\n")
            })
        };
        while !traced() {
            if strace.try_wait().unwrap().is_some() {
                eprintln!("SKIPPED: strace may not attach to processes here");
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        server.signal(signals[0]);
        let mut line = String::new();
        // After what was reported before.
        while line != "umbel: closing; a second signal ends the process at once\n" {
            line.clear();
            assert!(server.said.read_line(&mut line).unwrap() > 0);
        }
        server.signal(signals[1]);
        let mut line = String::new();
        server.said.read_line(&mut line).unwrap();
        let ended = "ended before the filter was saved; the next start reads the journal";
        assert_eq!(line, format!("umbel: {ended}\n"));
        // The process is at its end, and strace holds what is left of it.
        strace.kill().unwrap();
        strace.wait().unwrap();
        assert_eq!(server.child.wait().unwrap().code(), Some(130));
    }
    // Nothing is lost.
    let server = serve(&place, "");
    for key in ["TERM", "INT"] {
        assert_eq!(server.ask("GET", &format!("/keys/{key}"), "").0, 200);
    }
}
