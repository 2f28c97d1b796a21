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
    // The guard's secret is random; at this rate it finds a wrong key once in 1e18 runs.
    let ran = place.umbel(&format!("guard attach {SQLITE} -p 1e-9"));
    assert_eq!((ran.code, &*ran.out), (Some(0), ""));
    let said = "umbel: 3 keys, 70.0 KiB, room for 10,000 keys; false positive rate now ";
    assert!(ran.err.starts_with(said), "{}", ran.err);
    place.umbel(&format!("-q guard attach {SQLITE} -p 1e-9")).gives(0, "", "");
    let check = format!("guard check {SQLITE}");
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
    assert_eq!((ran.code, &*ran.out), (Some(0), ""));
    assert!(ran.err.starts_with("umbel: 500 keys, "), "{}", ran.err);
    // One number, however it is written; and what is no number is not there.
    let check = format!("guard check {items}");
    place.umbel_with(&check, "7\n0007\n501\nseven\n").gives(0, "7\n0007\n", "");
    assert_eq!(place.umbel(&format!("guard stats {items}")).code, Some(0));
    server.sql("INSERT INTO items VALUES (501, 'new')");
    let ran = place.umbel(&format!("guard stats {items}"));
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(ran.out.contains("missed            1\n"), "{}", ran.out);
    // The last key is in a half of them.
    let ran = place.umbel(&format!("guard stats {items} --audit 10"));
    assert_eq!((ran.code, &*ran.err), (Some(1), ""), "{}", ran.out);
    assert!(ran.out.contains("audited           10\nmissed            1\n"), "{}", ran.out);
    // In a variable, where no list of processes shows it.
    let items = items.replace(&format!("--postgres {url} "), "");
    let mut attach = place.process();
    attach.args(["guard", "attach"]).args(items.split(' '));
    let attached = attach.env("UMBEL_POSTGRES", &url).output().unwrap();
    assert!(attached.stderr.starts_with(b"umbel: 501 keys, "), "{attached:?}");
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

/// A table with the keys key0001 and so on.
fn numbered(keys: u32) -> Place {
    let place = Place::new();
    let connection = rusqlite::Connection::open(place.path("app.db")).unwrap();
    connection.execute_batch("CREATE TABLE users (name TEXT PRIMARY KEY, mail TEXT)").unwrap();
    let rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
        INSERT INTO users SELECT printf('key%04d', i), 'x' FROM n";
    connection.execute(rows, [keys]).unwrap();
    place
}

#[test]
fn stats_audits_as_many_keys_as_it_is_asked_to_and_counts_all_that_are_missing() {
    let place = numbered(5_000);
    // At this rate none of the missing keys is in the filter by mistake.
    let ran = place.umbel(&format!("guard attach {SQLITE} -p 1e-9"));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let stats = |audit: &str| {
        let ran = place.umbel(&format!("guard stats -o users.guard --report json {audit}"));
        let told: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        let number = |name: &str| told[name].as_u64().unwrap();
        let verdict = told["filter"].as_str().unwrap().to_owned();
        (ran.code, number("audited"), number("missed"), verdict)
    };
    let said = |text: &str| text.to_owned();
    let (some, all) = (
        "lacks none of 1,500 of 5,000 rows looked up",
        "can be used (5,000 of 5,000 rows looked up)",
    );
    assert_eq!(stats("--audit 1500"), (Some(0), 1_500, 0, said(some)));
    assert_eq!(stats("--audit 2M"), (Some(0), 5_000, 0, said(all)));
    assert_eq!(stats(""), (Some(0), 5_000, 0, said(all)));
    let none = "lacks none of 0 of 5,000 rows looked up";
    assert_eq!(stats("--audit 0"), (Some(0), 0, 0, said(none)));
    // Seven rows past the guard: one at the beginning, six at the end.
    let connection = rusqlite::Connection::open(place.path("app.db")).unwrap();
    let rows = "INSERT INTO users VALUES ('a', ''), ('z1', ''), ('z2', ''), ('z3', ''), ('z4', ''), ('z5', ''), ('z6', '')";
    connection.execute_batch(rows).unwrap();
    let bad = |lacks: &str| {
        format!(
            "must be built again with `umbel guard attach -o users.guard`: it lacks {lacks} of 5,007 rows looked up)"
        )
    };
    assert_eq!(stats("--audit 1500"), (Some(1), 1_500, 1, bad("1 row (1,500")));
    assert_eq!(stats("--audit 2M"), (Some(1), 5_007, 7, bad("7 rows (5,007")));
    let ran = place.umbel("guard stats -o users.guard --audit 2M");
    assert_eq!(ran.code, Some(1));
    assert!(!ran.out.contains("can be used"), "{}", ran.out);
    assert!(ran.out.contains("audited           5,007\nmissed            7\n"), "{}", ran.out);
}

/// A table whose key counts up, with the keys 1 to `keys`, attached.
fn counted(keys: u32) -> Place {
    let place = Place::new();
    let connection = rusqlite::Connection::open(place.path("app.db")).unwrap();
    let table = "CREATE TABLE users (id INTEGER PRIMARY KEY AUTOINCREMENT, mail TEXT)";
    connection.execute_batch(table).unwrap();
    append(&place, keys);
    // At this rate none of the keys that are added later is in the filter by mistake.
    let columns = "--key-column id --value-column mail";
    let attach =
        format!("guard attach --sqlite app.db --table users {columns} -p 1e-9 -o users.guard");
    assert_eq!(place.umbel(&attach).code, Some(0));
    place
}

/// Another program adds rows behind the last one.
fn append(place: &Place, rows: u32) {
    let connection = rusqlite::Connection::open(place.path("app.db")).unwrap();
    let insert = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
        INSERT INTO users (mail) SELECT 'x' FROM n";
    connection.execute(insert, [rows]).unwrap();
}

#[test]
fn stats_notices_rows_that_another_program_added_at_the_end_of_the_table() {
    let place = counted(30_000);
    let ran = place.umbel("guard stats -o users.guard");
    assert_eq!((ran.code, &*ran.err), (Some(0), ""), "{}", ran.out);
    assert!(ran.out.contains("can be used (30,000 of 30,000 rows looked up)\n"), "{}", ran.out);
    append(&place, 1_000);
    let again = "filter            must be built again with `umbel guard attach -o users.guard`: ";
    let ran = place.umbel("guard stats -o users.guard");
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    let all = format!("{again}it lacks 1,000 rows (31,000 of 31,000 rows looked up)\n");
    assert!(ran.out.contains(&all), "{}", ran.out);
    // An audit that does not reach them: the number of rows shows that they are there.
    let ran = place.umbel("guard stats -o users.guard --audit 1");
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    let counts = format!(
        "{again}the table has 31,000 rows, the filter was built from 30,000 keys (1 of 31,000 rows looked up)\n"
    );
    assert!(ran.out.contains(&counts), "{}", ran.out);
    assert!(
        ran.out.contains("keys              31,000\nkeys built        30,000\n"),
        "{}",
        ran.out
    );
    assert!(!ran.out.contains("can be used"), "{}", ran.out);
}

#[test]
fn stats_without_the_number_of_keys_never_says_that_a_part_is_all() {
    let place = numbered(3_000);
    assert_eq!(place.umbel(&format!("guard attach {SQLITE} -p 1e-9")).code, Some(0));
    let connection = rusqlite::Connection::open(place.path("app.db")).unwrap();
    connection.execute_batch("INSERT INTO users VALUES ('z', '')").unwrap();
    std::fs::write(place.path("users.guard/built.json"), "{").unwrap();
    let ran = place.umbel("guard stats -o users.guard --audit 1k");
    assert_eq!(ran.code, Some(0), "{}", ran.out);
    assert!(!ran.out.contains("can be used") && !ran.out.contains("keys built"), "{}", ran.out);
    assert!(ran.out.contains("lacks none of 1,000 of 3,001 rows looked up\n"), "{}", ran.out);
    assert_eq!(place.umbel("guard stats -o users.guard").code, Some(1));
}

#[test]
fn an_audit_of_some_integers_looks_up_the_first_and_the_last() {
    let place = counted(30_000);
    std::fs::write(place.path("users.guard/built.json"), "{").unwrap();
    let lacks = |missed: &str| {
        let ran = place.umbel("guard stats -o users.guard --audit 10k");
        assert_eq!(ran.code, Some(i32::from(missed != "0")), "{}", ran.out);
        let told = format!("audited           10,000\nmissed            {missed}\n");
        assert!(ran.out.contains(&told), "{}", ran.out);
    };
    lacks("0");
    append(&place, 1_000);
    lacks("1,000");
    let connection = rusqlite::Connection::open(place.path("app.db")).unwrap();
    connection.execute_batch("INSERT INTO users VALUES (-5, 'x')").unwrap();
    lacks("1,001");
    // All below zero.
    connection
        .execute_batch("DELETE FROM users WHERE id < 0; UPDATE users SET id = id - 40000")
        .unwrap();
    lacks("10,000");
}

#[test]
fn stats_has_one_name_for_json_and_an_alias() {
    let place = sqlite();
    place.umbel(&format!("guard attach {SQLITE}"));
    let of = |args: &str| place.umbel(&format!("guard stats -o users.guard {args}"));
    let (json, alias, text) = (of("--report json"), of("--json"), of("--report text"));
    assert_eq!((json.code, &json), (Some(0), &alias));
    serde_json::from_str::<serde_json::Value>(&json.out).unwrap();
    assert_eq!(text, of(""));
    assert_ne!(text, json);
    of("--report json --json").refuses("cannot be used with");
    of("--report xml").refuses("possible values: text, json");
}

#[test]
fn replay_says_that_the_saved_filter_lacks_keys_and_counts_exactly() {
    let place = sqlite();
    place.umbel(&format!("guard attach {SQLITE} -p 1e-9"));
    let connection = rusqlite::Connection::open(place.path("app.db")).unwrap();
    connection.execute_batch("INSERT INTO users VALUES ('zoe', 'z@x')").unwrap();
    let ran = place.umbel_with("guard replay -o users.guard --report json", "zoe\nnobody\n");
    let said = "umbel: the saved filter lacks keys that other programs wrote: another one is built for this run; guard attach saves one\n";
    assert_eq!((ran.code, &*ran.err), (Some(0), said));
    let told: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&told["look_ups"], &told["absent"]), (&2.into(), &1.into()));
}

const LACKS: &str = "umbel: the saved filter lacks keys that other programs wrote: another one is built for this run; guard attach saves one\n";

#[test]
fn check_reports_a_row_that_another_program_added() {
    for (place, key) in [(counted(1_000), "1001"), (counted(120_000), "120001")] {
        for ask in ["", "--ask"] {
            let check = format!("guard check -o users.guard {ask} --item");
            place.umbel(&format!("{check} {key}")).gives(1, "", "");
            place.umbel(&format!("{check} 7")).gives(0, "7\n", "");
        }
        append(&place, 1);
        for ask in ["", "--ask"] {
            let check = format!("guard check -o users.guard {ask} --item");
            place.umbel(&format!("{check} {key}")).gives(0, &format!("{key}\n"), LACKS);
            place.umbel(&format!("-q {check} {key}")).gives(0, &format!("{key}\n"), "");
            place.umbel(&format!("{check} 99999999")).gives(1, "", LACKS);
        }
    }
}

#[test]
fn check_reports_a_row_that_replaced_another_one() {
    let place = counted(1_000);
    let connection = rusqlite::Connection::open(place.path("app.db")).unwrap();
    connection.execute_batch("UPDATE users SET id = 5000 WHERE id = 1000").unwrap();
    for ask in ["", "--ask"] {
        place
            .umbel(&format!("guard check -o users.guard {ask} --item 5000"))
            .gives(0, "5000\n", LACKS);
    }
}

#[test]
fn check_does_not_trust_the_number_of_rows_after_another_guard_has_run() {
    let place = counted(120_000);
    append(&place, 1);
    let built = place.path("users.guard/built.json");
    let text = std::fs::read_to_string(&built).unwrap().replace("120000", "120001");
    std::fs::write(&built, text).unwrap();
    // The test would see it: this is what the number is for.
    place.umbel("guard check -o users.guard --item 120001").gives(1, "", "");
    let text =
        std::fs::read_to_string(&built).unwrap().replace("incarnation\":\"", "incarnation\":\"f");
    std::fs::write(&built, text).unwrap();
    place.umbel("guard check -o users.guard --item 120001").gives(0, "120001\n", LACKS);
}

#[test]
fn a_log_is_replayed() {
    let place = redb();
    let log: String = (0..1_000).map(|number| format!("GET user{number}\nGET ada\n")).collect();
    let replay = format!("guard replay {REDB} --report json -k 2 --skip-bad");
    let ran = place.umbel_with(&replay, format!("{log}GET\n"));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let told: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&told["look_ups"], &told["absent"]), (&2_000.into(), &1_000.into()));
    assert_eq!(told["skipped"], 1);
    // A filter for ten thousand keys with two in it is wrong for one key in 1e13.
    assert_eq!(told["saved"], 1_000);
    assert_eq!(told["others"].as_array().unwrap().len(), 4);
    let ran = place.umbel_with(&format!("guard replay {REDB} -k 2"), &log);
    assert!(ran.out.contains("look-ups          2,000\n"), "{}", ran.out);
    assert!(ran.out.contains("of absent keys    1,000 (50.0 %)\n"), "{}", ran.out);
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
            "umbel: log: line 2 is longer than 1.0 KiB; allow longer ones with --max-record SIZE, or skip such records with --skip-bad\n",
        );
    }
}

#[test]
fn what_is_not_there_is_not_made() {
    let place = sqlite();
    let before = place.names();
    let attach = |target: &str| place.umbel(&format!("guard attach {target} -o g"));
    attach("--sqlite app.db --table nope").refuses("nope");
    // What SQLite says is said once.
    let none = place.umbel("guard attach --sqlite none.db --table users -o g");
    none.refuses("none.db: unable to open database file: ");
    assert_eq!(none.err.matches("unable to open").count(), 1, "{}", none.err);
    let columns =
        "; its columns are name, mail; name the columns with --key-column and --value-column\n";
    for (args, column) in [("", "key"), ("--key-column name", "value"), ("--key-column x", "x")] {
        let ran = attach(&format!("--sqlite app.db --table users {args}"));
        ran.refuses(&format!("app.db: there is no column {column} of users{columns}"));
    }
    attach("--redb none.redb --table users").refuses("none.redb: ");
    attach("--redb app.db --table users").refuses("app.db: ");
    attach("--postgres postgres://127.0.0.1:1/x?connect_timeout=1 --table t")
        .refuses("PostgreSQL: ");
    attach("--table users").refuses(
        "g: is attached to nothing; name the data set with --redb, --sqlite or --postgres",
    );
    attach("--sqlite a --redb b --table users").refuses("cannot be used with");
    assert_eq!(place.names(), before);
}

#[test]
fn a_folder_that_serves_says_where_to_ask_its_guard() {
    let place = sqlite();
    place.umbel(&format!("guard attach {SQLITE}"));
    let server =
        crate::serve::Server::start(&place, "guard serve --listen 127.0.0.1:0 -o users.guard");
    server.active();
    for verb in ["stats", "check --item ada"] {
        place.umbel(&format!("guard {verb} -o users.guard")).fails(
            "users.guard: another guard uses this folder: while `umbel guard serve` runs, ask its /state and /metrics; or stop it, or \
             choose another folder",
        );
    }
    assert_eq!(server.end("TERM").0, Some(0));
}
