//! `umbel guard serve`: what it reports, how it answers writes that the table refuses, and tables that go away.

use crate::guard::{REDB, SQLITE, redb, sqlite};
use crate::place::Place;
use crate::postgres;
use crate::serve::Server;
use std::time::Duration;

/// Serves a folder, or what other arguments say.
fn serve(place: &Place, args: &str) -> Server {
    let server = Server::start(place, &format!("guard serve --listen 127.0.0.1:0 {args}"));
    server.active();
    server
}

impl Server {
    /// Waits for a state, or for any but this one.
    fn becomes(&self, right: impl Fn(&str) -> bool) {
        for _ in 0..6_000 {
            let state = self.ask("GET", "/state", "").1;
            if right(state.lines().last().unwrap_or_default()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the state does not change");
    }

    fn stops_being_active(&self) {
        self.becomes(|state| state != "active");
    }

    fn status(&self, method: &str, key: &str, value: &str) -> u16 {
        self.ask(method, &format!("/keys/{key}"), value).0
    }
}

#[test]
fn events_are_one_line_each() {
    let place = sqlite();
    let mut server = serve(&place, SQLITE);
    let path = place.path("app.db");
    let started = format!(
        "umbel: started: http://{}/ for table users of SQLite file {}",
        server.address,
        path.display()
    );
    let no_filter = "umbel: there is no saved filter, building one; look-ups go to the data set until it is ready";
    let lines = server.says("filter ready");
    assert_eq!(lines[..2], [started, no_filter.to_owned()]);
    assert!(lines[2].starts_with("umbel: filter ready: 3 keys in "), "{lines:?}");
    assert_eq!(lines.len(), 3, "{lines:?}");
    let connection = rusqlite::Connection::open(path).unwrap();
    // A write that leaves the keys as they are is noticed, and the filter stays.
    connection.execute_batch("UPDATE users SET mail = 'x' WHERE name = 'ada'").unwrap();
    let foreign = "umbel: foreign write noticed: another program wrote to the data set, comparing all keys with the filter";
    assert_eq!(server.says("foreign"), [foreign]);
    // Another key is found by a comparison of all keys or by an audit, whichever comes first.
    connection.execute_batch("INSERT INTO users VALUES ('zoe', 'z@x')").unwrap();
    let mut lines = server.says("filter ready");
    lines.retain(|line| line != foreign);
    assert_eq!(
        lines[0],
        "umbel: filter lost: a key of the data set was not in the filter; look-ups go to the data set until another filter is ready"
    );
    assert!(lines[1].starts_with("umbel: filter ready: 4 keys in "), "{lines:?}");
    assert_eq!(lines.len(), 2, "{lines:?}");
    drop(connection);
    let (code, said) = server.end("TERM");
    assert_eq!(code, Some(0));
    let last = "umbel: closing; a second signal ends the process at once\n";
    assert!(said.ends_with(last) && !said.contains("lost"), "{said}");
    // The folder remembers the table, and the saved filter is used.
    let (code, said) = serve(&place, "-o users.guard").end("INT");
    assert_eq!(code, Some(0));
    assert_eq!(
        said.lines().nth(1),
        Some("umbel: filter ready: the saved filter is used"),
        "{said}"
    );
}

#[test]
fn quiet_leaves_only_warnings() {
    let place = sqlite();
    let server = serve(&place, &format!("-q {SQLITE}"));
    let connection = rusqlite::Connection::open(place.path("app.db")).unwrap();
    connection.execute_batch("INSERT INTO users VALUES ('zoe', 'z@x')").unwrap();
    server.becomes_generation(2);
    let (code, said) = server.end("TERM");
    assert_eq!(
        (code, &*said),
        (
            Some(0),
            "umbel: filter lost: a key of the data set was not in the filter; look-ups go to the data set until another filter is ready\n"
        )
    );
}

impl Server {
    /// Waits until so many filters were built, and the last one answers.
    fn becomes_generation(&self, number: u64) {
        let line = format!("\numbel_guard_generation {number}\n");
        for _ in 0..6_000 {
            let metrics = self.ask("GET", "/metrics", "").1;
            if metrics.contains(&line) && metrics.contains("\numbel_guard_state 2\n") {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("there is no other filter");
    }
}

#[test]
fn a_saved_filter_that_is_not_used_is_reported_with_the_reason() {
    let place = sqlite();
    place.umbel(&format!("guard attach {SQLITE}"));
    for entry in std::fs::read_dir(place.path("users.guard")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "journal") {
            std::fs::write(path, "damaged").unwrap();
        }
    }
    let (code, said) = serve(&place, "-q -o users.guard").end("TERM");
    assert_eq!(code, Some(0));
    assert!(said.starts_with("umbel: the saved filter is not used: the journal "), "{said}");
    assert!(
        said.ends_with("; building another one, look-ups go to the data set until it is ready\n"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn writes_that_sqlite_refuses_are_conflicts_or_unfit() {
    let place = Place::new();
    let connection = rusqlite::Connection::open(place.path("app.db")).unwrap();
    let tables = "CREATE TABLE users (name TEXT PRIMARY KEY, mail TEXT UNIQUE CHECK (mail <> 'bad'));
        CREATE TABLE orders (of TEXT REFERENCES users (name));
        INSERT INTO users VALUES ('ada', 'a@x'), ('grace', 'g@x');
        CREATE TRIGGER no_eve BEFORE INSERT ON users WHEN NEW.name = 'eve' BEGIN SELECT RAISE(ABORT, 'not eve'); END;
        CREATE TRIGGER ghost BEFORE INSERT ON users WHEN NEW.name = 'ghost' BEGIN SELECT RAISE(IGNORE); END;
        CREATE TRIGGER lower AFTER INSERT ON users WHEN NEW.name = 'UP'
          BEGIN UPDATE users SET name = 'up' WHERE name = 'UP'; END;";
    connection.execute_batch(tables).unwrap();
    drop(connection);
    let server = serve(&place, SQLITE);
    for (key, value, status) in [
        ("alan", "a@x", 409),
        ("ada", "g@x", 409),
        ("alan", "bad", 422),
        ("eve", "e@x", 422),
        ("ghost", "h@x", 409),
        ("UP", "u@x", 422),
        ("alan", "n@x", 204),
        ("alan", "other", 204),
    ] {
        let (got, said) = server.ask("PUT", &format!("/keys/{key}"), value);
        assert_eq!(got, status, "{key} {value}: {said}");
    }
    let (_, said) = server.ask("PUT", "/keys/new", "a@x");
    assert!(said.contains("nothing was written"), "{said}");
    assert_eq!(server.status("GET", "new", ""), 404);
    assert_eq!(server.end("TERM").0, Some(0));
    // An integer key.
    let connection = rusqlite::Connection::open(place.path("app.db")).unwrap();
    connection.execute_batch("CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT)").unwrap();
    drop(connection);
    let table = "--sqlite app.db --table items --key-column id --value-column name -o items.guard";
    let server = serve(&place, table);
    assert_eq!(server.status("PUT", "seven", "x"), 422);
    assert_eq!(server.status("PUT", "7", "x"), 204);
    assert_eq!(server.status("GET", "seven", ""), 404);
}

#[test]
fn writes_that_postgresql_refuses_are_conflicts_or_unfit() {
    let Some(server) = postgres::postgres() else { return };
    server.sql(
        "CREATE TABLE users (name varchar(5) PRIMARY KEY, age int UNIQUE CHECK (age > 0));
         CREATE TABLE orders (of varchar REFERENCES users (name));
         INSERT INTO users VALUES ('ada', 36), ('grace', 85); INSERT INTO orders VALUES ('ada');
         CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           IF NEW.name = 'eve' THEN RAISE 'not eve'; END IF; RETURN NEW; END $$;
         CREATE TRIGGER refuse BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION refuse()",
    );
    let place = Place::new();
    let table = "--table users --key-column name --value-column age -o users.guard";
    let serving = serve(&place, &format!("--postgres {} {table}", server.postgres_url()));
    for (key, value, status) in [
        ("alan", "36", 409),
        ("ada", "85", 409),
        ("alan", "-1", 422),
        ("alan", "old", 422),
        ("alan", "99999999999", 422),
        ("ninechars", "5", 422),
        ("eve", "5", 422),
        ("a%00b", "5", 422),
        ("alan", "41", 204),
    ] {
        let (got, said) = serving.ask("PUT", &format!("/keys/{key}"), value);
        assert_eq!(got, status, "{key} {value}: {said}");
    }
    assert_eq!(serving.status("DELETE", "ada", ""), 409, "an order refers to it");
    assert_eq!(serving.status("DELETE", "alan", ""), 204);
    assert_eq!(serving.status("GET", "ada", ""), 200);
}

#[test]
fn a_filter_that_does_not_change_takes_no_writes() {
    let place = redb();
    let server = serve(&place, &format!("{REDB} --family xor"));
    let (status, said) = server.ask("PUT", "/keys/new", "v");
    assert!(status == 405 && said.contains("\r\nallow: get, head\r\n"), "{said}");
    assert_eq!(server.status("GET", "ada", ""), 200);
}

/// Both the table that is guarded and the one with the stamps.
#[test]
fn a_server_notices_that_a_table_of_sqlite_was_dropped_and_is_back() {
    let place = sqlite();
    let server = serve(&place, SQLITE);
    let connection = rusqlite::Connection::open(place.path("app.db")).unwrap();
    connection.execute_batch("DROP TABLE users").unwrap();
    server.stops_being_active();
    assert_eq!(server.status("GET", "ada", ""), 502);
    let back = "CREATE TABLE users (name TEXT PRIMARY KEY, mail TEXT); INSERT INTO users VALUES ('zoe', 'z@x')";
    connection.execute_batch(back).unwrap();
    server.active();
    assert_eq!(server.status("GET", "zoe", ""), 200);
    assert_eq!(server.status("GET", "ada", ""), 404);
    // The guard creates its own table again.
    let generation = server.generation();
    connection.execute_batch("DROP TABLE umbel_guard").unwrap();
    server.is_renewed(generation);
    assert_eq!(server.status("PUT", "new", "v"), 204);
    let (code, said) = server.end("TERM");
    assert_eq!(code, Some(0));
    assert!(
        said.contains(
            "umbel: filter lost: the data set is not the one that the filter was built from"
        ),
        "{said}"
    );
    assert_eq!(place.umbel("guard stats -o users.guard").code, Some(0));
}

#[test]
fn a_server_notices_that_a_table_of_postgresql_was_dropped_and_is_back() {
    let Some(database) = postgres::postgres() else { return };
    let make = |name: &str| {
        database.sql(&format!(
            "CREATE TABLE users (name text PRIMARY KEY, mail text); INSERT INTO users VALUES ('{name}', 'x')"
        ))
    };
    make("ada");
    let place = Place::new();
    let table = "--table users --key-column name --value-column mail -o users.guard";
    let server = serve(&place, &format!("--postgres {} {table}", database.postgres_url()));
    database.sql("DROP TABLE users");
    server.stops_being_active();
    assert_eq!(server.status("GET", "ada", ""), 502);
    make("zoe");
    server.active();
    assert_eq!(server.status("GET", "zoe", ""), 200);
    assert_eq!(server.status("GET", "ada", ""), 404);
    assert_eq!(server.status("PUT", "new", "v"), 204);
    let generation = server.generation();
    database.sql("DROP TABLE umbel_guard");
    server.is_renewed(generation);
    assert_eq!(server.status("PUT", "newer", "v"), 204);
    let (code, said) = server.end("TERM");
    assert_eq!(code, Some(0));
    let lost = "filter lost: the data set is not the one that the filter was built from (there is no table \"public\".\"users\" with a column name)";
    assert!(said.contains(lost), "{said}");
    let ran = place.umbel("guard stats -o users.guard");
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
}

impl Server {
    fn generation(&self) -> u64 {
        let metrics = self.ask("GET", "/metrics", "").1;
        let line = metrics.lines().find_map(|line| line.strip_prefix("umbel_guard_generation "));
        line.and_then(|number| number.parse().ok()).expect("a number")
    }

    /// Waits until there is a later filter than this one, which answers.
    fn is_renewed(&self, before: u64) {
        for _ in 0..6_000 {
            if self.generation() > before && self.ask("GET", "/state", "").1.ends_with("active\n") {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("there is no other filter");
    }
}

/// Neither in the database nor in a folder.
#[test]
fn without_a_stamp_nothing_is_created() {
    let Some(database) = postgres::postgres() else { return };
    database.sql(
        "CREATE TABLE users (name text PRIMARY KEY, mail text); INSERT INTO users VALUES ('ada', 'x')",
    );
    let on_postgres = format!(
        "--postgres {} --table users --key-column name --value-column mail -o users.guard",
        database.postgres_url()
    );
    for (place, table) in [(sqlite(), SQLITE), (redb(), REDB), (Place::new(), &*on_postgres)] {
        for key in ["grace", "zoe"] {
            let server = serve(&place, &format!("--no-stamp {table}"));
            assert_eq!(server.status("GET", "ada", ""), 200, "{table}");
            assert_eq!(server.status("GET", "nobody", ""), 404, "{table}");
            assert_eq!(server.status("PUT", key, "v"), 204, "{table}");
            assert_eq!(server.status("GET", key, ""), 200, "{table}");
            let (code, said) = server.end("TERM");
            assert_eq!(code, Some(0), "{said}");
            assert!(said.contains("there is no saved filter"), "{said}");
        }
        assert!(!place.path("users.guard").exists());
        // With a stamp of an earlier guard, writes without one would not show to it.
        let ran = place.umbel(&format!("guard attach {table}"));
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let refused = place.umbel("guard serve --no-stamp -o users.guard --listen 127.0.0.1:0");
        assert_eq!(refused.code, Some(2), "{}", refused.err);
        assert!(
            refused.err.contains("expected no stamp for a guard without one, found"),
            "{}",
            refused.err
        );
        assert_eq!(place.umbel("guard stats -o users.guard").code, Some(0), "{table}");
    }
    let place = sqlite();
    drop(serve(&place, &format!("--no-stamp {SQLITE}")));
    let connection = rusqlite::Connection::open(place.path("app.db")).unwrap();
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema WHERE type = 'table'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(tables, 1);
    let place = redb();
    drop(serve(&place, &format!("--no-stamp {REDB}")));
    let file = redb::Database::open(place.path("users.redb")).unwrap();
    use redb::ReadableDatabase;
    assert_eq!(file.begin_read().unwrap().list_tables().unwrap().count(), 1);
}
