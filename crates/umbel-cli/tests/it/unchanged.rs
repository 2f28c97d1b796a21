//! `umbel guard check`, `stats` and `replay` read, and change nothing.

use crate::guard::{REDB, SQLITE, redb, sqlite};
use crate::place::{Place, Ran};
use crate::postgres;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::SystemTime;

/// Every file and folder below a test's, with its bytes and the time of its last change.
pub(crate) type Picture = BTreeMap<String, (Vec<u8>, SystemTime)>;

pub(crate) fn picture(place: &Place) -> Picture {
    fn add(folder: &Path, all: &mut Picture) {
        for entry in fs::read_dir(folder).unwrap() {
            let (path, facts) =
                entry.map(|entry| (entry.path(), entry.metadata().unwrap())).unwrap();
            let name = path.display().to_string();
            if facts.is_dir() {
                all.insert(name, (Vec::new(), SystemTime::UNIX_EPOCH));
                add(&path, all);
            } else {
                all.insert(name, (fs::read(&path).unwrap(), facts.modified().unwrap()));
            }
        }
    }
    let mut all = Picture::new();
    add(&place.path("."), &mut all);
    all
}

/// The same without what every reader of a SQLite file in WAL mode makes: the index of the log, and a log that is empty.
pub(crate) fn settled(mut picture: Picture) -> Picture {
    picture.retain(|name, (bytes, _)| {
        !(name.ends_with(".db-shm") || name.ends_with(".db-wal") && bytes.is_empty())
    });
    picture
}

/// Runs every verb that only reads, and compares everything before and after each.
fn read(place: &Place, table: &str, usable: bool) {
    let before = settled(picture(place));
    let unchanged = |verb: &str, ran: &Ran| {
        let after = settled(picture(place));
        let names = |picture: &Picture| picture.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&after), names(&before), "{verb} {table}: {}", ran.err);
        for (name, file) in &after {
            assert!(before.get(name) == Some(file), "{verb} {table}: {name} has changed");
        }
    };
    for args in ["--item ada --item nobody", "--ask --item ada --item nobody"] {
        let ran = place.umbel(&format!("guard check {table} {args}"));
        assert_eq!((ran.code, &*ran.out), (Some(0), "ada\n"), "{}", ran.err);
        let built = "umbel: there is no saved filter that can be used: one is built for this run; guard attach saves one\n";
        assert_eq!(ran.err, if usable { "" } else { built });
        unchanged("check", &ran);
    }
    let ran = place.umbel(&format!("guard stats {table}"));
    assert_eq!(ran.code, Some(if usable { 0 } else { 1 }), "{}", ran.err);
    unchanged("stats", &ran);
    let ran = place.umbel_with(&format!("guard replay {table} --report json"), "ada\nnobody\n");
    let told: serde_json::Value = serde_json::from_str(&ran.out).unwrap_or_default();
    assert_eq!((&told["look_ups"], &told["saved"]), (&2.into(), &1.into()), "{}", ran.err);
    unchanged("replay", &ran);
}

fn journal_mode(place: &Place) -> String {
    let connection = rusqlite::Connection::open(place.path("app.db")).unwrap();
    connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap()
}

/// Not even the folder of the filter is made.
#[test]
fn a_table_that_was_never_attached_is_read_and_not_changed() {
    let place = sqlite();
    assert_eq!(journal_mode(&place), "delete");
    read(&place, SQLITE, false);
    assert_eq!(journal_mode(&place), "delete");
    assert_eq!(place.names(), ["app.db"]);
    let place = redb();
    read(&place, REDB, false);
    assert_eq!(place.names(), ["users.redb"]);
}

#[test]
fn an_attached_table_and_its_filter_are_read_and_not_changed() {
    for (place, table) in [(sqlite(), SQLITE), (redb(), REDB)] {
        assert_eq!(place.umbel(&format!("guard attach {table}")).code, Some(0));
        read(&place, table, true);
        read(&place, table, true);
    }
}

#[test]
fn a_saved_filter_that_cannot_be_used_is_not_replaced() {
    for (place, table) in [(sqlite(), SQLITE), (redb(), REDB)] {
        assert_eq!(place.umbel(&format!("guard attach {table}")).code, Some(0));
        for entry in fs::read_dir(place.path("users.guard")).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with("attached.json") {
                continue;
            }
            let mut bytes = fs::read(&path).unwrap();
            if let Some(byte) = bytes.last_mut() {
                *byte ^= 1;
                fs::write(&path, bytes).unwrap();
            }
        }
        read(&place, table, false);
    }
}

#[test]
fn a_filter_that_lacks_a_key_is_not_replaced() {
    let place = sqlite();
    assert_eq!(place.umbel(&format!("guard attach {SQLITE}")).code, Some(0));
    let connection = rusqlite::Connection::open(place.path("app.db")).unwrap();
    connection.execute_batch("INSERT INTO users VALUES ('zoe', 'z@x')").unwrap();
    drop(connection);
    let before = settled(picture(&place));
    for _ in 0..2 {
        let ran = place.umbel(&format!("guard stats {SQLITE}"));
        assert_eq!(ran.code, Some(1), "{}", ran.out);
        assert!(settled(picture(&place)) == before);
    }
}

/// A guard that reads keeps no other one out that reads.
#[test]
fn a_filter_is_read_by_many_at_a_time() {
    let place = sqlite();
    assert_eq!(place.umbel(&format!("guard attach {SQLITE}")).code, Some(0));
    let mut first = place.process();
    first.args(["guard", "check"]).args(SQLITE.split(' '));
    let mut first = first.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    first.stdin.as_mut().unwrap().write_all(b"ada\n").unwrap();
    let mut line = String::new();
    BufReader::new(first.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ada\n");
    place.umbel(&format!("guard check {SQLITE} --item ada")).gives(0, "ada\n", "");
    assert_eq!(place.umbel(&format!("guard stats {SQLITE}")).code, Some(0));
    drop(first.stdin.take());
    assert!(first.wait().unwrap().success());
}

#[test]
fn postgresql_is_read_and_not_changed() {
    let Some(server) = postgres::postgres() else { return };
    server.sql(
        "CREATE TABLE users (name text PRIMARY KEY, mail text);
         INSERT INTO users VALUES ('ada', 'a@x');
         CREATE ROLE reader LOGIN; GRANT SELECT ON users TO reader",
    );
    let url = server.postgres_url();
    for url in [url.clone(), url.replace("postgres@", "reader@")] {
        let place = Place::new();
        let table = format!(
            "--postgres {url} --table users --key-column name --value-column mail -o users.guard"
        );
        read(&place, &table, false);
        assert!(place.names().is_empty(), "{:?}", place.names());
    }
    server.sql(
        "DO $$ BEGIN
           IF (SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r') <> 1
           THEN RAISE EXCEPTION 'a table was made'; END IF;
         END $$",
    );
}
