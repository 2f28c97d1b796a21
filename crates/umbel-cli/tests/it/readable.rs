//! Databases that cannot be written are checked all the same.

use crate::guard::{REDB, SQLITE, redb, sqlite};
use crate::place::Place;
use crate::postgres;
use crate::unchanged::{picture, settled};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

/// The user that may do nothing in particular.
const NOBODY: u32 = 65_534;

/// Commands of a user whom permissions bind, in a folder of that user.
struct User {
    place: Place,
    is_root: bool,
}

fn all(path: &Path, change: &dyn Fn(&Path)) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            all(&entry.unwrap().path(), change);
        }
    }
    change(path);
}

impl User {
    fn of(place: Place) -> Self {
        let is_root = place.path(".").metadata().unwrap().uid() == 0;
        if is_root {
            // In the folder, because the one that it was built in may be closed to that user.
            fs::copy(env!("CARGO_BIN_EXE_umbel"), place.path("umbel")).unwrap();
            all(&place.path(""), &|path| {
                std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            });
        }
        Self { place, is_root }
    }

    /// The exit status, and what was printed.
    fn umbel(&self, args: &str) -> (Option<i32>, String, String) {
        let mut command = self.place.process();
        if self.is_root {
            command = Command::new("setpriv");
            let user = NOBODY.to_string();
            command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]);
            command.arg(self.place.path("umbel")).current_dir(self.place.path(""));
        }
        let output = command.args(args.split(' ')).output().expect("it runs");
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    fn attach(&self, table: &str) {
        let (code, _, err) = self.umbel(&format!("-q guard attach {table}"));
        assert_eq!((code, &*err), (Some(0), ""));
    }

    /// Nobody can write to the database or beside it, until the end.
    fn closed(&self, file: &str, then: impl FnOnce()) {
        let set =
            |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        set(&self.place.path(file), 0o444);
        set(&self.place.path(""), 0o555);
        then();
        set(&self.place.path(""), 0o755);
    }
}

#[test]
fn files_that_cannot_be_written_are_checked() {
    for (place, table, file) in [(sqlite(), SQLITE, "app.db"), (redb(), REDB, "users.redb")] {
        place.write("log", "ada\nnobody\n");
        let user = User::of(place);
        user.attach(table);
        let before = picture(&user.place);
        user.closed(file, || {
            let (code, out, err) =
                user.umbel("guard check -o users.guard --item ada --item nobody");
            assert_eq!((code, &*out, &*err), (Some(0), "ada\n", ""), "{table}");
            let (code, out, err) = user.umbel("guard check -o users.guard --ask --item ada");
            assert_eq!((code, &*out, &*err), (Some(0), "ada\n", ""), "{table}");
            let (code, out, err) = user.umbel("guard stats -o users.guard");
            assert!(code == Some(0) && out.contains("can be used ("), "{table}: {out}{err}");
            let (code, out, err) = user.umbel("guard replay -o users.guard --report json log");
            assert!(code == Some(0) && out.contains("\"saved\":1"), "{table}: {out}{err}");
            // Nothing can be attached.
            let (code, _, err) = user.umbel("guard attach -o users.guard");
            assert!(code == Some(2) && err.contains(file), "{table}: {err}");
        });
        assert!(picture(&user.place) == before, "{table}");
    }
}

/// The log may have rows that are not in the file.
#[test]
fn a_sqlite_file_with_a_log_that_cannot_be_read_is_an_error() {
    let place = sqlite();
    let connection = rusqlite::Connection::open(place.path("app.db")).unwrap();
    connection.pragma_update(None, "journal_mode", "wal").unwrap();
    connection.execute_batch("INSERT INTO users VALUES ('zoe', 'z@x')").unwrap();
    // As the file is after a crash, without its index.
    for name in ["app.db", "app.db-wal"] {
        fs::copy(place.path(name), place.path(&name.replace("app", "copy"))).unwrap();
    }
    drop(connection);
    let user = User::of(place);
    let before = settled(picture(&user.place));
    user.closed("copy.db", || {
        let table = SQLITE.replace("app.db", "copy.db");
        let (code, out, err) = user.umbel(&format!("guard check {table} --item zoe"));
        assert_eq!((code, &*out), (Some(2), ""), "{err}");
        assert!(err.contains("copy.db: the file has a write-ahead log ("), "{err}");
    });
    assert!(settled(picture(&user.place)) == before);
}

#[test]
fn postgresql_is_checked_by_a_role_that_can_only_read() {
    let Some(server) = postgres::postgres() else { return };
    server.sql(
        "CREATE TABLE users (name text PRIMARY KEY, mail text);
         INSERT INTO users VALUES ('ada', 'a@x');
         CREATE ROLE reader LOGIN; GRANT SELECT ON users TO reader;
         ALTER ROLE reader SET default_transaction_read_only = on;
         REVOKE CREATE ON SCHEMA public FROM PUBLIC",
    );
    let place = Place::new();
    let url = server.postgres_url();
    let table = "--table users --key-column name --value-column mail -o users.guard -p 1e-9";
    let ran = place.umbel(&format!("-q guard attach --postgres {url} {table}"));
    assert_eq!((ran.code, &*ran.err), (Some(0), ""));
    place.write("log", "ada\nnobody\n");
    let reader = url.replace("postgres@", "reader@");
    let built = "umbel: there is no saved filter that can be used: one is built for this run; guard attach saves one\n";
    let read = |usable: bool| {
        let before = picture(&place);
        let at = format!("-o users.guard --postgres {reader}");
        let said = if usable { "" } else { built };
        place.umbel(&format!("guard check {at} --item ada --item nobody")).gives(0, "ada\n", said);
        let ran = place.umbel(&format!("guard replay {at} --report json log"));
        assert_eq!((ran.code, &*ran.err), (Some(0), said));
        let ran = place.umbel(&format!("guard stats {at}"));
        assert_eq!(ran.code, Some(if usable { 0 } else { 1 }), "{}{}", ran.out, ran.err);
        assert!(picture(&place) == before);
    };
    // The stamp cannot be read, or only a part of it: the filter could be older than the data.
    read(false);
    server.sql("GRANT SELECT ON umbel_guard TO reader");
    read(false);
    server.sql("GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO reader");
    read(true);
    server.sql("ALTER DATABASE postgres SET default_transaction_read_only = on");
    read(true);
}
