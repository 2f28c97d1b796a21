//! `umbel guard`: a filter in front of a table, asked on the command line.

use crate::place::Place;
use crate::postgres;

pub(crate) const SQLITE: &str =
    "--sqlite app.db --table users --key-column name --value-column mail -o users.guard";
pub(crate) const REDB: &str = "--redb users.redb --table users -o users.guard";

/// A table of three users in SQLite.
pub(crate) fn sqlite() -> Place {
    let place = Place::new();
    let connection = rusqlite::Connection::open(place.path("app.db")).unwrap();
    let rows = "CREATE TABLE users (name TEXT PRIMARY KEY, mail TEXT);
        INSERT INTO users VALUES ('ada', 'a@x'), ('grace', 'g@x'), ('alan', 'n@x');";
    connection.execute_batch(rows).unwrap();
    place
}

pub(crate) fn redb() -> Place {
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
    // The guard's secret is random; at this rate it finds key 501 by mistake once in 1e20 runs.
    let items = format!(
        "--postgres {url} --table public.items --key-column id --value-column name -p 1e-6 -o items.guard"
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
    let mut attach = place.process();
    attach.args(["guard", "attach"]).args(items.split(' '));
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
        let mut check = place.process();
        check.args(["guard", "check", "--item", "ada", "--ask"]);
        check.args("--table users --key-column name --value-column mail -o users.guard".split(' '));
        check.env("UMBEL_POSTGRES", url).env("SSL_CERT_FILE", authority);
        check.env_remove("SSL_CERT_DIR");
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
    let mut attach = place.process();
    attach.args(["guard", "attach"]).args(SQLITE.split(' '));
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
    // Stats only reads. To attach the table again is what brings the filter up to date.
    assert_eq!(place.umbel(&format!("guard attach {SQLITE}")).code, Some(0));
    assert_eq!(place.umbel(&stats).code, Some(0));
    place.umbel_with(&format!("guard check {SQLITE}"), "zoe\n").gives(0, "zoe\n", "");
}

#[test]
fn a_log_is_replayed() {
    let place = redb();
    let log: String = (0..1_000).map(|number| format!("GET user{number}\nGET ada\n")).collect();
    let ran = place.umbel_with(&format!("guard replay {REDB} --report json -k 2"), &log);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let told: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&told["look_ups"], &told["absent"]), (&2_000.into(), &1_000.into()));
    // A filter for ten thousand keys with two in it is wrong for one key in 1e13.
    assert_eq!(told["saved"], 1_000);
    assert_eq!(told["others"].as_array().unwrap().len(), 4);
    let ran = place.umbel_with(&format!("guard replay {REDB} -k 2"), &log);
    assert!(ran.out.contains("look-ups          2,000\n"), "{}", ran.out);
    assert!(ran.out.contains("of absent keys    1,000 (50.0%)\n"), "{}", ran.out);
}

#[test]
fn a_record_of_a_log_may_not_be_too_long() {
    let place = sqlite();
    place.umbel(&format!("guard attach {SQLITE}"));
    place.write("log", format!("ada\n{}\n", "x".repeat(2_000)));
    for (verb, out) in [("check", "ada\n"), ("replay", "")] {
        place.umbel(&format!("guard {verb} {SQLITE} --max-record 1k log")).gives(
            2,
            out,
            "umbel: log: line 2 is longer than 1.0 KiB; --max-record SIZE allows longer ones\n",
        );
    }
}

#[test]
fn what_is_not_there_is_not_made() {
    let place = sqlite();
    let before = place.names();
    let attach = |target: &str| place.umbel(&format!("guard attach {target} -o g"));
    attach("--sqlite app.db --table nope").refuses("nope");
    attach("--sqlite none.db --table users").refuses("none.db: ");
    attach("--redb none.redb --table users").refuses("none.redb: ");
    attach("--redb app.db --table users").refuses("app.db: ");
    attach("--postgres postgres://127.0.0.1:1/x?connect_timeout=1 --table t")
        .refuses("PostgreSQL: ");
    attach("--table users").refuses("what is to be guarded?");
    attach("--sqlite a --redb b --table users").refuses("cannot be used with");
    assert_eq!(place.names(), before);
}
