//! `umbel guard`: a filter before a table, asked on the command line and over HTTP.

use crate::place::Place;
use crate::postgres;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const SQLITE: &str =
    "--sqlite app.db --table users --key-column name --value-column mail -o users.guard";
const REDB: &str = "--redb users.redb --table users -o users.guard";

/// A table of three users in SQLite.
fn sqlite() -> Place {
    let place = Place::new();
    let connection = rusqlite::Connection::open(place.path("app.db")).unwrap();
    let rows = "CREATE TABLE users (name TEXT PRIMARY KEY, mail TEXT);
        INSERT INTO users VALUES ('ada', 'a@x'), ('grace', 'g@x'), ('alan', 'n@x');";
    connection.execute_batch(rows).unwrap();
    place
}

fn redb() -> Place {
    let place = Place::new();
    let database = redb::Database::create(place.path("users.redb")).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let table = redb::TableDefinition::<&[u8], &[u8]>::new("users");
        let mut table = transaction.open_table(table).unwrap();
        for name in ["ada", "grace"] {
            table.insert(name.as_bytes(), &b"there"[..]).unwrap();
        }
    }
    transaction.commit().unwrap();
    place
}

#[test]
fn a_table_is_attached_and_asked() {
    let place = sqlite();
    let ran = place.umbel(&format!("guard attach {SQLITE}"));
    assert_eq!((ran.code, &*ran.err), (Some(0), ""));
    assert!(ran.out.starts_with("3 keys, "), "{}", ran.out);
    let check = format!("guard check {SQLITE} -p 1e-6");
    // The saved filter has another rate than is asked for now, and is good all the same.
    place.umbel_with(&check, "ada\nnobody\nalan\n").gives(0, "ada\nalan\n", "");
    place.umbel(&format!("{check} --item nobody")).gives(1, "", "");
    place.umbel(&format!("{check} --ask --item grace --item nobody")).gives(0, "grace\n", "");
    place.umbel_with(&format!("{check} -k 2"), "1 ada\n2 x\n").gives(0, "1 ada\n", "");
}

#[test]
fn a_table_of_postgresql_is_attached_and_asked() {
    let Some(server) = postgres::postgres() else { return };
    server.sql(
        "CREATE TABLE items (id integer PRIMARY KEY, name text);
         INSERT INTO items SELECT n, 'item ' || n FROM generate_series(1, 500) n",
    );
    let (place, url) = (Place::new(), server.postgres_url());
    let items = format!(
        "--postgres {url} --table public.items --key-column id --value-column name -o items.guard"
    );
    let ran = place.umbel(&format!("guard attach {items}"));
    assert_eq!((ran.code, &*ran.err), (Some(0), ""));
    assert!(ran.out.starts_with("500 keys, "), "{}", ran.out);
    // One number, however it is written; and what is no number is not there.
    let check = format!("guard check {items}");
    place.umbel_with(&check, "7\n0007\n501\nseven\n").gives(0, "7\n0007\n", "");
    assert_eq!(place.umbel(&format!("guard stats {items}")).code, Some(0));
    server.sql("INSERT INTO items VALUES (501, 'new')");
    let ran = place.umbel(&format!("guard stats {items}"));
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(ran.out.contains("missed            1\n"), "{}", ran.out);
    // In a variable, where no list of processes shows it.
    let items = items.replace(&format!("--postgres {url} "), "");
    let mut attach = Command::new(env!("CARGO_BIN_EXE_umbel"));
    attach.args(["guard", "attach"]).args(items.split(' ')).current_dir(place.path("."));
    let attached = attach.env("UMBEL_POSTGRES", &url).output().unwrap();
    assert!(attached.stdout.starts_with(b"501 keys, "), "{attached:?}");
}

/// Whom a process trusts is in its variables.
#[test]
#[cfg(feature = "tls")]
fn postgresql_is_asked_over_encrypted_connections_if_the_server_is_who_it_says() {
    let Some((server, authority)) = postgres::postgres_with_tls() else { return };
    // The server takes connections of this user only if they are encrypted.
    let loaded = || server.sql("SELECT pg_conf_load_time()");
    let before = loaded();
    server.sql(
        "CREATE TABLE users (name text PRIMARY KEY, mail text); INSERT INTO users VALUES ('ada', 'a@x');
         CREATE ROLE careful LOGIN; GRANT SELECT ON users TO careful;
         DO $$ BEGIN EXECUTE format('COPY (VALUES (%L), (%L)) TO %L', 'hostnossl all careful all reject',
             'host all all 127.0.0.1/32 trust', current_setting('hba_file')); END $$;
         SELECT pg_reload_conf()",
    );
    while loaded() == before {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let check = |host: &str, mode: &str, authority: &std::path::Path| {
        let place = Place::new();
        let url = format!("postgres://careful@{host}:{}/postgres?sslmode={mode}", server.port);
        let mut check = Command::new(env!("CARGO_BIN_EXE_umbel"));
        check.args(["guard", "check", "--item", "ada", "--ask"]);
        check.args("--table users --key-column name --value-column mail -o users.guard".split(' '));
        check.env("UMBEL_POSTGRES", url).env("SSL_CERT_FILE", authority);
        check.env_remove("SSL_CERT_DIR").current_dir(place.path("."));
        check.output().unwrap().status.code()
    };
    assert_eq!(check("localhost", "require", &authority), Some(0));
    assert_eq!(check("localhost", "disable", &authority), Some(2), "the test would see it");
    assert_eq!(check("127.0.0.1", "require", &authority), Some(2), "that is not its name");
    let others = authority.with_file_name("server.pem");
    assert_eq!(check("localhost", "require", &others), Some(2), "nobody we trust knows it");
}

#[test]
fn a_variable_that_is_there_for_other_calls_is_in_nobodys_way() {
    let place = sqlite();
    let mut attach = Command::new(env!("CARGO_BIN_EXE_umbel"));
    attach.args(["guard", "attach"]).args(SQLITE.split(' ')).current_dir(place.path("."));
    let attached = attach.env("UMBEL_POSTGRES", "postgres://nowhere").status().unwrap();
    assert!(attached.success());
}

#[test]
fn how_a_table_and_its_filter_are_is_told() {
    let place = sqlite();
    let stats = format!("guard stats {SQLITE}");
    let ran = place.umbel(&stats);
    assert_eq!((ran.code, &*ran.err), (Some(1), ""));
    assert!(ran.out.contains("must be built"), "{}", ran.out);
    place.umbel(&format!("guard attach {SQLITE}"));
    let ran = place.umbel(&format!("{stats} --json"));
    assert_eq!((ran.code, &*ran.err), (Some(0), ""), "{}", ran.out);
    let facts: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (&facts["keys"], &facts["audited"], &facts["missed"]),
        (&3.into(), &3.into(), &0.into())
    );
    // Somebody writes past the guard.
    let connection = rusqlite::Connection::open(place.path("app.db")).unwrap();
    connection.execute_batch("INSERT INTO users VALUES ('zoe', 'z@x')").unwrap();
    let ran = place.umbel(&stats);
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(ran.out.contains("missed            1\n"), "{}", ran.out);
    // What was found out is not forgotten.
    place.umbel_with(&format!("guard check {SQLITE}"), "zoe\n").gives(
        0,
        "zoe\n",
        "umbel: there is no saved filter that can be used; one is built\n",
    );
}

#[test]
fn a_log_is_replayed() {
    let place = redb();
    let log: String = (0..1_000).map(|number| format!("GET user{number}\nGET ada\n")).collect();
    let ran = place.umbel_with(&format!("guard replay {REDB} --report json -k 2"), &log);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let told: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&told["look_ups"], &told["absent"]), (&2_000.into(), &1_000.into()));
    let saved = told["saved"].as_u64().unwrap();
    // A filter for ten thousand keys with two in it is wrong for hardly any.
    assert!((990..=1_000).contains(&saved), "{saved}");
    assert_eq!(told["others"].as_array().unwrap().len(), 4);
    let ran = place.umbel_with(&format!("guard replay {REDB} -k 2"), &log);
    assert!(ran.out.contains("look-ups          2,000\n"), "{}", ran.out);
    assert!(ran.out.contains("of absent keys    1,000 (50.0%)\n"), "{}", ran.out);
}

#[test]
fn what_is_not_there_is_not_made() {
    let place = sqlite();
    let before = place.names();
    let attach = |target: &str| place.umbel(&format!("guard attach {target} -o g"));
    attach("--sqlite app.db --table nope").refuses("there is no column key of nope");
    attach("--sqlite none.db --table users").refuses("none.db: ");
    attach("--redb none.redb --table users").refuses("none.redb: ");
    attach("--redb app.db --table users").refuses("app.db: ");
    attach("--postgres postgres://127.0.0.1:1/x?connect_timeout=1 --table t")
        .refuses("PostgreSQL: ");
    attach("--table users").refuses("what is to be guarded?");
    attach("--sqlite a --redb b --table users").refuses("cannot be used with");
    assert_eq!(place.names(), before);
}

/// `umbel guard serve`, until it is dropped.
struct Server {
    child: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(place: &Place, args: &str) -> Server {
    let mut command = Command::new(env!("CARGO_BIN_EXE_umbel"));
    command.args(format!("guard serve {REDB} --listen 127.0.0.1:0 {args}").split_whitespace());
    let mut child = command
        .current_dir(place.path("."))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().trim_start_matches("http://").trim_end_matches('/').to_owned();
    Server { child, address }
}

impl Server {
    /// Sends some bytes; what comes back.
    fn send(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        // A server that refuses may close before all was sent.
        let _ = stream.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let said = self.send(&format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        ));
        let status = said.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        (status, said.to_lowercase())
    }

    fn active(&self) {
        for _ in 0..500 {
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
    assert_eq!(server.ask("GET", &format!("/keys/{}", "k".repeat(5_000)), "").0, 400);
    assert_eq!(server.ask("GET", "/nothing", "").0, 404);
    assert_eq!(server.ask("POST", "/keys/ada", "x").0, 405);
    let (status, metrics) = server.ask("GET", "/metrics", "");
    assert_eq!(status, 200);
    assert!(metrics.contains("\numbel_guard_state 2\n"), "{metrics}");
    assert!(metrics.contains("\numbel_guard_puts_total 1\n"), "{metrics}");
    // ada, nobody and one that was put: a request is one question.
    assert!(metrics.contains("\numbel_guard_queries_total 3\n"), "{metrics}");
    assert!(metrics.contains("\numbel_guard_saved_total 1\n"), "{metrics}");
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
    assert_eq!(status(&format!("Host: {address}\r\nSec-Fetch-Site: cross-site\r\n")), "403");
    // Large values are refused, whatever is said of their length.
    assert_eq!(server.ask("PUT", "/keys/big", &"x".repeat(2_000)).0, 413);
    let chunked = format!(
        "PUT /keys/big HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n",
        format!("400\r\n{}\r\n", "x".repeat(1_024)).repeat(3)
    );
    assert!(server.send(&chunked).contains(" 413 "));
    assert_eq!(server.ask("GET", "/keys/big", "").0, 404);
    assert!(server.send("\0\0\0 garbage\r\n\r\n").contains(" 400 "));
    place.umbel(&format!("guard serve {REDB} --listen 0.0.0.0:0")).refuses("--public allows it");
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
