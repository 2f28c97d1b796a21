//! A folder remembers what it is attached to: other verbs need only the folder, and refuse anything else.

use crate::guard::{REDB, SQLITE, redb, sqlite};
use crate::place::{Place, Ran};
use crate::postgres;
use crate::unchanged::{picture, settled};
use std::fs;
use std::os::unix::fs::PermissionsExt;

const FILE: &str = "users.guard/attached.json";

/// Every verb that only reads, with these arguments.
fn readers(args: &str) -> [String; 4] {
    [
        format!("guard check {args} --item ada"),
        format!("guard check {args} --ask --item ada"),
        format!("guard stats {args}"),
        format!("guard replay {args} log"),
    ]
}

/// Runs a command that must change nothing.
fn unchanged(place: &Place, command: &str) -> Ran {
    let before = settled(picture(place));
    let ran = place.umbel(command);
    let after = settled(picture(place));
    let names: Vec<_> = after.keys().collect();
    assert_eq!(names, before.keys().collect::<Vec<_>>(), "{command}");
    for (name, file) in &after {
        assert!(before.get(name) == Some(file), "{command}: {name} has changed");
    }
    ran
}

fn attached(place: &Place, table: &str) {
    let ran = place.umbel(&format!("guard attach {table}"));
    assert_eq!((ran.code, &*ran.out), (Some(0), ""));
    place.write("log", "ada\nnobody\n");
}

#[test]
fn a_folder_is_enough_for_every_verb() {
    for (place, table, keys) in [(sqlite(), SQLITE, "3"), (redb(), REDB, "2")] {
        attached(&place, table);
        place.umbel("guard check -o users.guard --item ada --item nobody").gives(0, "ada\n", "");
        let ran = place.umbel("guard stats -o users.guard");
        assert_eq!((ran.code, &*ran.err), (Some(0), ""));
        assert!(ran.out.contains(&format!("audited           {keys}\n")), "{}", ran.out);
        let ran = place.umbel("guard replay -o users.guard --report json log");
        assert_eq!((ran.code, &*ran.err), (Some(0), ""));
        let ran = place.umbel("guard attach -o users.guard");
        assert_eq!((ran.code, &*ran.out), (Some(0), ""));
        assert!(ran.err.starts_with(&format!("umbel: {keys} keys, ")), "{}", ran.err);
        // From another folder too.
        fs::create_dir(place.path("elsewhere")).unwrap();
        place
            .shell("cd elsewhere && umbel guard check -o ../users.guard --item ada")
            .gives(0, "ada\n", "");
        // Everything may be said again.
        place.umbel(&format!("guard check {table} -p 0.01 --item ada")).gives(0, "ada\n", "");
    }
}

#[test]
fn the_file_is_private_and_has_everything_that_attach_was_told() {
    let place = sqlite();
    attached(&place, &format!("{SQLITE} --family classic -p 1/3"));
    let mode = |name: &str| place.path(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("users.guard"), mode(FILE)), (0o700, 0o600));
    let told: serde_json::Value = serde_json::from_slice(&place.read(FILE)).unwrap();
    let path = place.path("app.db").display().to_string();
    let expected = serde_json::json!({
        "umbel_guard": 1, "data_set": "sqlite", "path": path, "table": "users",
        "key_column": "name", "value_column": "mail", "family": "bloom", "rate": 1.0 / 3.0,
    });
    assert_eq!(told, expected);
    // It is that filter which is used.
    let ran = place.umbel("guard stats -o users.guard --report json");
    let told: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (&told["family"], &told["filter"]),
        (&"bloom".into(), &"can be used (3 of 3 rows looked up)".into())
    );
    assert_eq!(told["rate_wanted"].as_f64(), Some(1.0 / 3.0));
}

/// The names of families are those of `umbel build`.
#[test]
fn every_family_that_a_guard_supports_can_be_attached_by_the_name_that_build_has() {
    for family in crate::place::FAMILIES {
        let place = sqlite();
        let command = format!("guard attach {SQLITE} --family {family} -p 1e-4");
        if ["split", "blocked-counting"].contains(&family) {
            place.umbel(&command).refuses("invalid value");
            continue;
        }
        assert_eq!(place.umbel(&command).code, Some(0), "{family}");
        place.umbel("guard check -o users.guard --item ada").gives(0, "ada\n", "");
        let ran = place.umbel("guard stats -o users.guard");
        assert_eq!(ran.code, Some(0), "{family}: {}{}", ran.out, ran.err);
        assert!(ran.out.contains(&format!("family            {family}\n")), "{}", ran.out);
    }
    let help = Place::new().umbel("guard attach --help").out;
    assert!(help.contains("bloom") && !help.contains("classic"), "{help}");
}

/// Whatever differs, both values are named, and nothing is changed.
#[test]
fn options_that_do_not_agree_are_refused_and_change_nothing() {
    let place = sqlite();
    let connection = rusqlite::Connection::open(place.path("app.db")).unwrap();
    let more = "CREATE TABLE nopk (name TEXT PRIMARY KEY, mail TEXT); INSERT INTO nopk VALUES ('bob', 'b');
         CREATE TABLE loose (name TEXT, mail TEXT);";
    connection.execute_batch(more).unwrap();
    drop(connection);
    attached(&place, SQLITE);
    fs::copy(place.path("app.db"), place.path("other.db")).unwrap();
    let at = place.path("").display().to_string();
    let at = at.trim_end_matches('/');
    let next = "leave the option out, or name another folder with -o";
    let of = "users.guard: is attached to";
    let ways = [
        ("--table nopk", format!("{of} table users, and --table names nopk; {next}")),
        ("--table loose", format!("{of} table users, and --table names loose; {next}")),
        ("--table missing", format!("{of} table users, and --table names missing; {next}")),
        (
            "--sqlite other.db",
            format!(
                "{of} SQLite file {at}/app.db, and --sqlite names SQLite file {at}/other.db; {next}"
            ),
        ),
        (
            "--sqlite missing.db",
            format!(
                "{of} SQLite file {at}/app.db, and --sqlite names SQLite file {at}/missing.db; {next}"
            ),
        ),
        (
            "--redb app.db",
            format!("{of} SQLite file {at}/app.db, and --redb names redb file {at}/app.db; {next}"),
        ),
        (
            "--postgres postgres://eve:sesame@nowhere/x",
            format!(
                "{of} SQLite file {at}/app.db, and --postgres names PostgreSQL postgres://nowhere/x; {next}"
            ),
        ),
        ("--key-column mail", format!("{of} column name, and --key-column names mail; {next}")),
        ("--value-column name", format!("{of} column mail, and --value-column names name; {next}")),
        (
            "--family cuckoo",
            format!("{of} a filter of family blocked, and --family names cuckoo; {next}"),
        ),
        ("-p 0.001", format!("{of} a filter of rate 0.01, and -p names 0.001; {next}")),
    ];
    for (options, why) in &ways {
        for command in readers(&format!("-o users.guard {options}")) {
            unchanged(&place, &command).fails(why);
        }
        unchanged(&place, &format!("guard serve -o users.guard --listen 127.0.0.1:0 {options}"))
            .fails(why);
        // To attach the same table with another filter is no mistake.
        if !options.starts_with("--family") && !options.starts_with("-p ") {
            let why = why.replace(
                next,
                "name another folder with -o, or replace what it is attached to with --force",
            );
            unchanged(&place, &format!("guard attach -o users.guard {options}")).fails(&why);
        }
    }
    place.umbel("guard check -o users.guard --item ada").gives(0, "ada\n", "");
}

/// The same for a folder whose file is gone: then only the filter itself can tell that it is of another data set.
#[test]
fn a_saved_filter_of_something_else_is_not_used_and_not_changed() {
    let place = sqlite();
    let connection = rusqlite::Connection::open(place.path("app.db")).unwrap();
    let more = "CREATE TABLE nopk (name TEXT PRIMARY KEY, mail TEXT); INSERT INTO nopk VALUES ('ada', 'b')";
    connection.execute_batch(more).unwrap();
    drop(connection);
    attached(&place, SQLITE);
    fs::copy(place.path("app.db"), place.path("other.db")).unwrap();
    let connection = rusqlite::Connection::open(place.path("other.db")).unwrap();
    connection.execute_batch("DROP TABLE umbel_guard").unwrap();
    drop(connection);
    fs::remove_file(place.path(FILE)).unwrap();
    let built = "umbel: there is no saved filter that can be used: one is built for this run; guard attach saves one\n";
    for other in [
        SQLITE.replace("--table users", "--table nopk"),
        SQLITE.replace("app.db", "other.db"),
        SQLITE.replace("name", "mail").replace("value-column mail", "value-column name"),
        format!("{SQLITE} --family cuckoo"),
        format!("{SQLITE} --family xor"),
    ] {
        if other.contains("--key-column mail") {
            // That column has no unique index.
            unchanged(&place, &format!("guard check {other} --item ada")).refuses("CREATE UNIQUE");
            continue;
        }
        for command in readers(&other) {
            let ran = unchanged(&place, &command);
            if command.contains("stats") {
                assert!(
                    ran.code == Some(1)
                        && ran.out.contains("must be built with `umbel guard attach"),
                    "{ran:?}"
                );
            } else {
                assert_eq!((ran.code, &*ran.err), (Some(0), built), "{command}");
            }
        }
    }
    for missing in [
        SQLITE.replace("--table users", "--table missing"),
        SQLITE.replace("app.db", "missing.db"),
        REDB.to_owned(),
    ] {
        for command in readers(&missing) {
            unchanged(&place, &command).refuses("");
        }
    }
    // Another rate is no other filter.
    let ran = unchanged(&place, &format!("guard check {SQLITE} -p 1e-6 --item ada"));
    ran.gives(0, "ada\n", "");
}

#[test]
fn damaged_files_of_a_folder_are_not_changed() {
    let whole = sqlite();
    attached(&whole, SQLITE);
    let names: Vec<_> = fs::read_dir(whole.path("users.guard"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.len(), 5, "{names:?}");
    for name in names.iter().filter(|name| *name != "lock") {
        for damage in ["cut", "flipped", "empty", "gone"] {
            let place = sqlite();
            attached(&place, SQLITE);
            let path = place.path("users.guard").join(name);
            let mut bytes = fs::read(&path).unwrap();
            match damage {
                "cut" => bytes.truncate(bytes.len() / 2),
                "empty" => bytes.clear(),
                _ => {
                    let middle = bytes.len() / 2;
                    bytes[middle] ^= 0x80;
                }
            }
            match damage {
                "gone" => fs::remove_file(&path).unwrap(),
                _ => fs::write(&path, bytes).unwrap(),
            }
            let what = format!("{name} is {damage}");
            if name == "attached.json" {
                for command in readers("-o users.guard") {
                    let ran = unchanged(&place, &command);
                    let why = if damage == "gone" {
                        "is attached to nothing"
                    } else {
                        "umbel guard attach --force\n"
                    };
                    assert_eq!((ran.code, &*ran.out), (Some(2), ""), "{what}");
                    assert!(ran.err.contains(why), "{what}: {}", ran.err);
                }
                if damage != "gone" {
                    unchanged(&place, &format!("guard attach {SQLITE}")).refuses("attached.json");
                }
                attached(&place, &format!("{SQLITE} --force"));
                place.umbel("guard check -o users.guard --item ada").gives(0, "ada\n", "");
                continue;
            }
            for command in readers("-o users.guard") {
                let ran = unchanged(&place, &command);
                // The number of keys is one sign among others.
                let expected =
                    if command.contains("stats") && name != "built.json" { 1 } else { 0 };
                assert_eq!(ran.code, Some(expected), "{what}: {command}: {}", ran.err);
            }
        }
    }
}

#[test]
fn a_folder_is_attached_to_something_else_only_by_force() {
    let place = sqlite();
    attached(&place, SQLITE);
    let database = redb();
    fs::copy(database.path("users.redb"), place.path("users.redb")).unwrap();
    unchanged(&place, &format!("guard attach {REDB}")).refuses("is attached to SQLite file");
    attached(&place, &format!("{REDB} --force"));
    let told: serde_json::Value = serde_json::from_slice(&place.read(FILE)).unwrap();
    assert_eq!((&told["data_set"], &told["key_column"]), (&"redb".into(), &().into()));
    place.umbel("guard check -o users.guard --item alan").gives(1, "", "");
    // The same table again, with another filter.
    attached(&place, "-o users.guard --family cuckoo -p 0.1%");
    let ran = place.umbel("guard stats -o users.guard");
    assert!(ran.out.contains("family            cuckoo\n"), "{}", ran.out);
    // What is not said again stays.
    attached(&place, "-o users.guard");
    assert_eq!(place.umbel("guard stats -o users.guard").out, ran.out);
}

#[test]
fn a_folder_or_a_file_that_others_can_write_is_refused() {
    let place = sqlite();
    attached(&place, SQLITE);
    let secret = place.path("elsewhere.json");
    fs::rename(place.path(FILE), &secret).unwrap();
    std::os::unix::fs::symlink(&secret, place.path(FILE)).unwrap();
    for command in readers("-o users.guard") {
        place.umbel(&command).refuses("users.guard: ");
    }
    fs::remove_file(place.path(FILE)).unwrap();
    fs::rename(&secret, place.path(FILE)).unwrap();
    fs::set_permissions(place.path("users.guard"), fs::Permissions::from_mode(0o722)).unwrap();
    for command in readers("-o users.guard") {
        place.umbel(&command).refuses("other users can write to the folder");
    }
    fs::set_permissions(place.path("users.guard"), fs::Permissions::from_mode(0o700)).unwrap();
    place.write(FILE, vec![b' '; 70_000]);
    place.umbel("guard check -o users.guard --item ada").refuses("at most 65536 bytes");
}

#[test]
fn a_folder_that_is_attached_to_nothing_says_so() {
    let place = sqlite();
    for command in readers("-o users.guard") {
        unchanged(&place, &command).fails(
            "users.guard: is attached to nothing; name the data set with --redb, --sqlite or --postgres, or with UMBEL_POSTGRES",
        );
    }
    place
        .umbel("guard check -o users.guard --sqlite app.db --item a")
        .fails("which table? name it with --table TABLE");
}

#[test]
fn a_password_of_postgresql_is_not_kept() {
    let Some(server) = postgres::postgres() else { return };
    server.sql(
        "CREATE TABLE users (name text PRIMARY KEY, mail text); INSERT INTO users VALUES ('ada', 'a@x');
         CREATE ROLE careful LOGIN PASSWORD 'sesame'; GRANT ALL ON users TO careful; GRANT CREATE ON SCHEMA public TO careful",
    );
    // From now on this user needs its password.
    let loaded = || server.sql("SELECT pg_conf_load_time()");
    let before = loaded();
    server.sql(
        "DO $$ BEGIN EXECUTE format('COPY (VALUES (%L), (%L)) TO %L', 'host all careful all scram-sha-256',
             'host all all 127.0.0.1/32 trust', current_setting('hba_file')); END $$;
         SELECT pg_reload_conf()",
    );
    while loaded() == before {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let place = Place::new();
    let at = format!("127.0.0.1:{}/postgres", server.port);
    let url = format!("postgres://careful:sesame@{at}");
    let table = "--table users --key-column name --value-column mail -o users.guard";
    let ran = place.umbel(&format!("guard attach --postgres {url} {table}"));
    assert_eq!((ran.code, &*ran.out), (Some(0), ""));
    for entry in fs::read_dir(place.path("users.guard")).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(6).any(|bytes| bytes == b"sesame"));
    }
    let told: serde_json::Value = serde_json::from_slice(&place.read(FILE)).unwrap();
    assert_eq!(told["url"], format!("postgres://careful@{at}"));
    let check = "guard check -o users.guard --item ada";
    let ran = place.umbel(check);
    ran.refuses("password missing");
    assert!(
        ran.err.ends_with("; users.guard keeps no password: give the URL with its password again, in UMBEL_POSTGRES or with --postgres\n"),
        "{}",
        ran.err
    );
    let with = |url: &str, args: &str| {
        let output =
            place.process().args(args.split(' ')).env("UMBEL_POSTGRES", url).output().unwrap();
        let (out, err) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        Ran { code: output.status.code(), out, err }
    };
    with(&url, check).gives(0, "ada\n", "");
    place.umbel(&format!("{check} --postgres {url}")).gives(0, "ada\n", "");
    // Another user of the same database agrees; another database does not, and no message has a password.
    with(&format!("postgres://postgres@{at}"), check).gives(0, "ada\n", "");
    let other = url.replace("/postgres", "/template1");
    with(&other, check).fails(&format!(
        "users.guard: is attached to PostgreSQL postgres://{at}, and UMBEL_POSTGRES names PostgreSQL postgres://127.0.0.1:{}/template1; \
         leave the option out, or name another folder with -o",
        server.port
    ));
    // An option is stronger than the variable.
    with(&other, &format!("{check} --postgres {url}")).gives(0, "ada\n", "");
    let ran = with(&url.replace("sesame", "guess"), check);
    assert!(ran.code == Some(2) && !ran.err.contains("guess"), "{ran:?}");
}
