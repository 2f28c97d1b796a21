use super::{active, failback_is_noticed, guard, not_done, stamps_decide};
use crate::contract::all_keys;
use crate::faulty::SECRET;
use rusqlite::Connection;
use std::fs;
use std::path::{Path, PathBuf};
use umbel_guard::set::{Sqlite, SqliteError};
use umbel_guard::{Answer, DataSet, Guard, Local, Outcome, Put, Stamp, State};

/// A file with a schema.
struct File {
    place: tempfile::TempDir,
}

impl File {
    fn with(schema: &str) -> Self {
        let file = Self { place: tempfile::tempdir().unwrap() };
        file.sql(schema);
        file
    }

    fn path(&self) -> PathBuf {
        self.place.path().join("a.db")
    }

    /// Runs statements, as another program without the guard does.
    fn sql(&self, statements: &str) {
        Connection::open(self.path()).unwrap().execute_batch(statements).unwrap();
    }

    fn open(&self, key: &str) -> Result<Sqlite, SqliteError> {
        Sqlite::open(self.path(), "t", key, "v")
    }

    fn tables(&self) -> i64 {
        let connection = Connection::open(self.path()).unwrap();
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap()
    }
}

#[tokio::test]
async fn the_guard_that_began_last_writes_to_sqlite() {
    let file = File::with("CREATE TABLE t (k TEXT PRIMARY KEY, other TEXT UNIQUE, v)");
    stamps_decide(&file.open("k").unwrap(), &file.open("k").unwrap()).await;
    // Each key column has its own.
    let other = file.open("other").unwrap();
    assert_eq!(other.stamp().await.unwrap(), Some(Stamp::default()));
    stamps_decide(&other, &other).await;
}

#[tokio::test]
async fn a_copy_of_a_sqlite_file_that_is_put_back_is_noticed() {
    let place = tempfile::tempdir().unwrap();
    let open = |path: &Path| Sqlite::create(path, "t", "k", "v").unwrap();
    // The last connection that is closed leaves no log beside the file.
    failback_is_noticed(place.path(), open, |from, to| _ = fs::copy(from, to).unwrap()).await;
}

#[tokio::test]
async fn another_key_column_is_another_set() {
    let file = File::with(
        "CREATE TABLE t (name TEXT PRIMARY KEY, mail TEXT UNIQUE, v);
         INSERT INTO t VALUES ('ada', 'a@x', '')",
    );
    let folder = file.place.path().join("guard");
    let by_name = guard(file.open("name").unwrap(), &folder).await;
    by_name.rebuild().await.unwrap();
    by_name.close().await.unwrap();
    drop(by_name);
    let by_mail = guard(file.open("mail").unwrap(), &folder).await;
    assert_ne!(by_mail.contains(b"a@x").await, Answer::Absent);
    assert_eq!(by_mail.state(), State::Empty);
    // The column has one identity in every spelling.
    let spelled = file.open("MAIL").unwrap();
    assert_eq!(spelled.identity().await.unwrap(), by_mail.data_set().identity().await.unwrap());
}

#[tokio::test]
async fn another_key_type_is_another_set() {
    let file = File::with("CREATE TABLE t (k TEXT PRIMARY KEY, v)");
    let text = file.open("k").unwrap().identity().await.unwrap();
    file.sql("DROP TABLE t; CREATE TABLE t (k BLOB PRIMARY KEY, v)");
    assert_ne!(file.open("k").unwrap().identity().await.unwrap(), text);
}

#[tokio::test]
async fn a_sqlite_file_that_is_open_for_reading_is_the_same_set_and_is_not_changed() {
    let file = File::with("CREATE TABLE t (k TEXT PRIMARY KEY, v); INSERT INTO t VALUES ('a', '')");
    let fresh = fs::read(file.path()).unwrap();
    let reader = Sqlite::read_only(file.path(), "t", "k", "v").unwrap();
    assert_eq!(reader.stamp().await.unwrap(), None);
    let name = String::from_utf8(reader.identity().await.unwrap()).unwrap();
    assert!(name.contains("a.db"), "{name}");
    assert_eq!(all_keys(&reader, 10).await, [b"a"]);
    drop(reader);
    // No table, and no other journal mode.
    assert_eq!(fs::read(file.path()).unwrap(), fresh);

    let folder = file.place.path().join("guard");
    let (identity, stamp) = {
        let one = guard(file.open("k").unwrap(), &folder).await;
        one.rebuild().await.unwrap();
        one.put(b"b", b"").await.unwrap();
        one.close().await.unwrap();
        let set = one.data_set();
        (set.identity().await.unwrap(), set.stamp().await.unwrap())
    };
    let before = fs::read(file.path()).unwrap();
    let reader = || Sqlite::read_only(file.path(), "T", "K", "v").unwrap();
    assert_eq!(reader().identity().await.unwrap(), identity);
    assert_eq!(reader().stamp().await.unwrap(), stamp);
    assert!(stamp.is_some_and(|stamp| stamp.incarnation != 0 && stamp.mark == 1));
    assert!(!reader().begin(9).await.unwrap());
    assert!(matches!(not_done(&reader(), reader().put(b"c", b"").await), SqliteError::ReadOnly));
    assert!(matches!(not_done(&reader(), reader().delete(b"a").await), SqliteError::ReadOnly));
    let looking =
        Guard::builder(reader(), Local::cuckoo(0.001).secret(SECRET)).folder(&folder).read_only();
    let looking = looking.without_background().start().await.unwrap();
    assert_eq!(looking.state(), State::Active);
    assert_eq!(looking.contains(b"b").await, Answer::Maybe);
    assert_eq!(looking.contains(b"c").await, Answer::Absent);
    drop(looking);
    assert_eq!(fs::read(file.path()).unwrap(), before);
}

#[tokio::test]
async fn a_key_that_a_trigger_changes_is_not_written() {
    for without in ["", "WITHOUT ROWID"] {
        let file = File::with(&format!(
            "CREATE TABLE t (k TEXT PRIMARY KEY, v) {without};
             CREATE TRIGGER low AFTER INSERT ON t BEGIN UPDATE t SET k = lower(k) WHERE k = NEW.k; END;
             CREATE TRIGGER up AFTER UPDATE OF v ON t WHEN CAST(NEW.v AS TEXT) = 'up'
             BEGIN UPDATE t SET k = upper(k) WHERE k = NEW.k; END"
        ));
        let guard = active(file.open("k").unwrap()).await;
        let set = guard.data_set();
        let refused = not_done(set, set.put(b"ADA", b"1").await);
        let SqliteError::KeyChanged { expected, found } = &refused else { panic!("{refused}") };
        assert_eq!(expected, b"ADA");
        assert_eq!(found.as_deref(), without.is_empty().then_some(&b"ada"[..]));
        assert!(guard.put(b"ADA", b"1").await.is_err());
        assert_eq!(set.get(b"ada").await.unwrap(), None, "it was rolled back");
        // The trigger does not change this key.
        guard.put(b"ada", b"1").await.unwrap();
        let refused = not_done(set, set.put(b"ada", b"up").await);
        assert!(matches!(refused, SqliteError::KeyChanged { .. }), "{refused}");
        assert_eq!(set.get(b"ada").await.unwrap().as_deref(), Some(&b"1"[..]));
        assert_eq!(guard.contains(b"ada").await, Answer::Maybe);
    }
}

#[tokio::test]
async fn a_write_that_the_table_drops_is_an_error() {
    let file = File::with(
        "CREATE TABLE t (k TEXT PRIMARY KEY, v UNIQUE ON CONFLICT IGNORE);
         INSERT INTO t VALUES ('a', CAST('x' AS BLOB)), ('b', CAST('y' AS BLOB))",
    );
    let set = file.open("k").unwrap();
    assert!(matches!(not_done(&set, set.put(b"c", b"x").await), SqliteError::NotStored));
    assert!(matches!(not_done(&set, set.put(b"b", b"x").await), SqliteError::NotStored));
    assert_eq!(set.get(b"b").await.unwrap().as_deref(), Some(&b"y"[..]));
}

#[tokio::test]
async fn a_deleted_row_that_a_trigger_puts_back_is_not_deleted() {
    let file = File::with(
        "CREATE TABLE t (k TEXT PRIMARY KEY, v);
         CREATE TRIGGER back AFTER DELETE ON t BEGIN INSERT INTO t VALUES (OLD.k, OLD.v); END;
         INSERT INTO t VALUES ('a', '')",
    );
    let guard = active(file.open("k").unwrap()).await;
    let set = guard.data_set();
    assert!(matches!(not_done(set, set.delete(b"a").await), SqliteError::NotDeleted));
    assert!(guard.delete(b"a").await.is_err());
    assert_eq!(guard.contains(b"a").await, Answer::Maybe);
    assert!(!set.delete(b"b").await.unwrap());
}

#[tokio::test]
async fn key_columns_that_are_not_unique_by_bytes_are_refused_with_the_statement_to_run() {
    for columns in [
        "k TEXT, v",
        "k TEXT COLLATE NOCASE, v",
        "k TEXT PRIMARY KEY COLLATE NOCASE, v",
        "k TEXT COLLATE RTRIM UNIQUE, v",
        "k TEXT, v, PRIMARY KEY (k, v)",
        "k INTEGER, v INTEGER PRIMARY KEY",
        "k TEXT, other TEXT UNIQUE, v",
    ] {
        let file = File::with(&format!(
            "CREATE TABLE t ({columns}); CREATE UNIQUE INDEX partial ON t (k) WHERE v > 0;
             CREATE UNIQUE INDEX computed ON t (lower(k)); CREATE INDEX plain ON t (k);"
        ));
        let tables = file.tables();
        let refused = file.open("k").unwrap_err();
        let SqliteError::NotUnique { fix, .. } = &refused else { panic!("{columns}: {refused}") };
        assert!(refused.to_string().contains(fix) && fix.starts_with("CREATE UNIQUE INDEX"));
        assert_eq!(file.tables(), tables, "nothing was changed");
        assert!(Sqlite::read_only(file.path(), "t", "k", "v").is_err());
        // The error names the fix.
        file.sql("DROP INDEX computed; DROP INDEX partial;");
        file.sql(fix);
        file.open("k").unwrap();
    }
}

#[tokio::test]
async fn only_tables_and_written_columns_are_accepted() {
    let file = File::with(
        "CREATE TABLE base (id INTEGER PRIMARY KEY, k TEXT UNIQUE, r REAL UNIQUE, w TEXT AS (upper(k)) STORED UNIQUE);
         CREATE VIEW seen AS SELECT k, id AS v FROM base;
         CREATE VIRTUAL TABLE words USING fts5(k, v);",
    );
    let open = |table: &str, key: &str, value: &str| {
        Sqlite::open(file.path(), table, key, value).unwrap_err()
    };
    assert!(matches!(open("seen", "k", "v"), SqliteError::NotATable { .. }));
    assert!(matches!(open("words", "k", "v"), SqliteError::NotATable { .. }));
    assert!(matches!(open("base", "w", "id"), SqliteError::Generated { .. }));
    assert!(matches!(open("base", "k", "w"), SqliteError::Generated { .. }));
    assert!(matches!(open("base", "r", "id"), SqliteError::KeyType { .. }));
    assert!(matches!(open("base", "x", "id"), SqliteError::Missing { .. }));
    assert!(matches!(open("none", "k", "id"), SqliteError::Missing { .. }));
    Sqlite::open(file.path(), "base", "k", "id").unwrap();
    assert!(matches!(open("UMBEL_guard", "name", "number"), SqliteError::NotATable { .. }));
    let wide = File::with("PRAGMA encoding = 'UTF-16le'; CREATE TABLE t (k TEXT PRIMARY KEY, v)");
    assert!(matches!(wide.open("k"), Err(SqliteError::Encoding { .. })));
}

#[tokio::test]
async fn a_column_that_ignores_case_is_used_byte_by_byte_if_it_has_a_binary_index() {
    let file = File::with("CREATE TABLE t (k TEXT COLLATE NOCASE, v)");
    assert!(matches!(file.open("k"), Err(SqliteError::NotUnique { .. })));
    file.sql("CREATE UNIQUE INDEX by_bytes ON t (k COLLATE BINARY)");
    let guard = active(file.open("k").unwrap()).await;
    let set = guard.data_set();
    for (number, key) in ["ada", "Ada", "ADA", "bob", "BOB"].iter().enumerate() {
        assert_eq!(set.put(key.as_bytes(), number.to_string().as_bytes()).await.unwrap(), Put::New);
    }
    assert_eq!(set.put(b"ADA", b"new").await.unwrap(), Put::Replaced);
    assert_eq!(set.get(b"ada").await.unwrap().as_deref(), Some(&b"0"[..]));
    assert_eq!(set.get(b"ADA").await.unwrap().as_deref(), Some(&b"new"[..]));
    assert_eq!(set.get(b"aDA").await.unwrap(), None);
    // No page skips a key that differs from the last one of the page before in case only.
    for limit in 1..7 {
        assert_eq!(all_keys(set, limit).await, [&b"ADA"[..], b"Ada", b"BOB", b"ada", b"bob"]);
    }
    let mut scan = set.scan(None).await.unwrap();
    assert_eq!(set.count(&mut scan).await.unwrap(), 5);
    assert!(set.delete(b"ada").await.unwrap());
    assert!(!set.delete(b"aDa").await.unwrap());
    assert_eq!(guard.rebuild().await.unwrap(), 4);
    assert_eq!(guard.contains(b"Ada").await, Answer::Maybe);
    // A second index that ignores case refuses what would overwrite another key.
    file.sql("DELETE FROM t; CREATE UNIQUE INDEX loose ON t (k)");
    set.put(b"ada", b"").await.unwrap();
    assert!(matches!(not_done(set, set.put(b"ADA", b"").await), SqliteError::Conflict { .. }));
    assert_eq!(set.get(b"ADA").await.unwrap(), None);
}

#[tokio::test]
async fn rows_without_a_key_are_not_scanned() {
    let file = File::with(
        "CREATE TABLE t (k TEXT PRIMARY KEY, v);
         INSERT INTO t VALUES (NULL, 1), (NULL, 2), ('a', 3), ('', 4)",
    );
    let guard = active(file.open("k").unwrap()).await;
    assert_eq!(all_keys(guard.data_set(), 1).await, [&b""[..], b"a"]);
    let mut scan = guard.data_set().scan(None).await.unwrap();
    assert_eq!(guard.data_set().count(&mut scan).await.unwrap(), 2);
    assert_eq!(guard.contains(b"").await, Answer::Maybe);
}

#[tokio::test]
async fn a_value_that_another_row_has_in_a_unique_column_is_an_error() {
    let file = File::with("CREATE TABLE t (k TEXT PRIMARY KEY, v UNIQUE)");
    let guard = active(file.open("k").unwrap()).await;
    let set = guard.data_set();
    assert_eq!(set.put(b"a", b"x").await.unwrap(), Put::New);
    let refused = not_done(set, set.put(b"b", b"x").await);
    let SqliteError::Conflict { constraint } = &refused else { panic!("{refused}") };
    assert!(constraint.contains("t.v"), "{constraint}");
    assert!(guard.put(b"b", b"x").await.is_err());
    assert_eq!(guard.stats().doubts, 0);
    assert_eq!(set.get(b"b").await.unwrap(), None);
    guard.put(b"b", b"y").await.unwrap();
    assert!(matches!(not_done(set, set.put(b"b", b"x").await), SqliteError::Conflict { .. }));
    assert_eq!(set.get(b"b").await.unwrap().as_deref(), Some(&b"y"[..]));
    assert_eq!(guard.contains(b"b").await, Answer::Maybe);
}

#[tokio::test]
async fn refusals_of_sqlite_leave_no_doubt() {
    let file = File::with(
        "CREATE TABLE other (id INTEGER PRIMARY KEY);
         CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT NOT NULL,
                         other INTEGER REFERENCES other DEFERRABLE INITIALLY DEFERRED DEFAULT 0);
         INSERT INTO other VALUES (0)",
    );
    let guard = active(file.open("k").unwrap()).await;
    let set = guard.data_set();
    assert!(matches!(not_done(set, set.put(b"seven", b"").await), SqliteError::Unfit { .. }));
    file.sql(
        "CREATE TRIGGER bad BEFORE INSERT ON t WHEN NEW.k = 1 BEGIN SELECT RAISE(ABORT, 'no'); END",
    );
    assert!(matches!(not_done(set, set.put(b"1", b"").await), SqliteError::Sqlite(_)));
    // A constraint that is checked by the commit.
    file.sql("PRAGMA foreign_keys = off; DELETE FROM other");
    assert!(matches!(not_done(set, set.put(b"2", b"").await), SqliteError::Commit(_)));
    assert_eq!(set.get(b"2").await.unwrap(), None);
    for key in ["seven", "1", "2"] {
        assert!(guard.put(key.as_bytes(), b"").await.is_err());
    }
    assert_eq!(guard.stats().doubts, 0);
    file.sql("INSERT INTO other VALUES (0)");
    guard.put(b"2", b"").await.unwrap();
    // A dropped table.
    file.sql("DROP TABLE t");
    assert!(matches!(not_done(set, set.put(b"3", b"").await), SqliteError::Sqlite(_)));
}

#[tokio::test]
async fn commits_of_other_connections_show_and_own_ones_do_not() {
    let file = File::with("CREATE TABLE t (k TEXT PRIMARY KEY, v)");
    for set in [file.open("k").unwrap(), Sqlite::read_only(file.path(), "t", "k", "v").unwrap()] {
        let first = set.foreign_writes().await.unwrap();
        assert!(first.is_some());
        if set.begin(1).await.unwrap() {
            set.put(b"own", b"").await.unwrap();
            set.put_marked(b"own", b"", Stamp { incarnation: 1, mark: 1 }.into()).await.unwrap();
            set.delete(b"own").await.unwrap();
        }
        all_keys(&set, 10).await;
        assert_eq!(set.foreign_writes().await.unwrap(), first);
        file.sql("INSERT OR REPLACE INTO t VALUES ('foreign', '')");
        let second = set.foreign_writes().await.unwrap();
        assert_ne!(second, first);
        assert_eq!(set.foreign_writes().await.unwrap(), second);
    }
}

#[tokio::test]
async fn a_foreign_row_is_found_in_one_round() {
    let file = File::with("CREATE TABLE t (k TEXT PRIMARY KEY, v)");
    let builder = Guard::builder(file.open("k").unwrap(), Local::blocked(0.001).secret(SECRET));
    let guard = builder.audit(0, std::time::Duration::from_secs(3600)).without_background();
    let guard = guard.start().await.unwrap();
    guard.rebuild().await.unwrap();
    guard.tend().await;
    file.sql("INSERT INTO t VALUES ('foreign', '')");
    guard.tend().await;
    assert_ne!(guard.contains(b"foreign").await, Answer::Absent);
    assert_eq!(guard.stats().audit_misses, 1);
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_is_replaced_while_it_is_open_takes_no_writes() {
    let file = File::with("CREATE TABLE t (k TEXT PRIMARY KEY, v)");
    let set = file.open("k").unwrap();
    set.put(b"a", b"").await.unwrap();
    let other = file.place.path().join("other.db");
    drop(Sqlite::create(&other, "t", "k", "v").unwrap());
    fs::rename(&other, file.path()).unwrap();
    let error = set.put(b"b", b"").await.unwrap_err();
    assert!(matches!(error, SqliteError::Moved { .. }), "{error}");
    assert_eq!(set.outcome(&error), Outcome::Superseded);
    assert!(matches!(set.scan(None).await, Err(SqliteError::Moved { .. })));
    assert!(matches!(set.get(b"a").await, Err(SqliteError::Moved { .. })));
}

#[cfg(unix)]
#[tokio::test]
async fn a_guard_whose_file_is_replaced_answers_absent_no_more() {
    let file = File::with("CREATE TABLE t (k TEXT PRIMARY KEY, v)");
    let guard = guard(file.open("k").unwrap(), &file.place.path().join("guard")).await;
    guard.rebuild().await.unwrap();
    assert_eq!(guard.contains(b"only in the other file").await, Answer::Absent);
    let other = file.place.path().join("other.db");
    let set = Sqlite::create(&other, "t", "k", "v").unwrap();
    set.put(b"only in the other file", b"").await.unwrap();
    drop(set);
    fs::rename(&other, file.path()).unwrap();
    guard.tend().await;
    assert_ne!(guard.contains(b"only in the other file").await, Answer::Absent);
    guard.tend().await;
    assert_ne!(guard.contains(b"only in the other file").await, Answer::Absent);
    assert!(guard.get(b"only in the other file").await.is_err(), "the open file is another one");
}

#[cfg(unix)]
#[tokio::test]
async fn a_log_that_is_deleted_while_it_is_open_takes_no_writes() {
    let file = File::with("CREATE TABLE t (k TEXT PRIMARY KEY, v)");
    let set = file.open("k").unwrap();
    assert!(set.begin(1).await.unwrap());
    set.put(b"a", b"").await.unwrap();
    fs::remove_file(file.place.path().join("a.db-wal")).unwrap();
    // Other programs would never see this row, and it would be lost with the process.
    let error = set.put(b"b", b"").await.unwrap_err();
    assert!(matches!(error, SqliteError::Moved { .. }), "{error}");
}

#[tokio::test]
async fn tables_and_columns_that_change_names_are_other_sets() {
    let schema = "CREATE TABLE t (k TEXT PRIMARY KEY, v TEXT UNIQUE); CREATE TABLE o (k TEXT PRIMARY KEY, v TEXT UNIQUE)";
    let identity = async |file: &File| file.open("k").unwrap().identity().await.unwrap();
    let file = File::with(schema);
    let before = identity(&file).await;
    assert_eq!(identity(&file).await, before);
    file.sql("ALTER TABLE t RENAME TO x; ALTER TABLE o RENAME TO t");
    assert_ne!(identity(&file).await, before);
    let file = File::with(schema);
    let before = identity(&file).await;
    file.sql(
        "ALTER TABLE t RENAME COLUMN k TO x; ALTER TABLE t RENAME COLUMN v TO k; ALTER TABLE t RENAME COLUMN x TO v",
    );
    assert_ne!(identity(&file).await, before);
}

/// A view changes whenever the table behind it does, and no write to the view shows that.
#[tokio::test]
async fn a_view_that_takes_the_place_of_the_table_is_never_trusted() {
    let file = File::with("CREATE TABLE t (k TEXT PRIMARY KEY, v)");
    let guard = active(file.open("k").unwrap()).await;
    file.sql(
        "ALTER TABLE t RENAME TO old; CREATE VIEW t AS SELECT * FROM old WHERE EXISTS (SELECT 1 FROM old WHERE k = 'b')",
    );
    let set = guard.data_set();
    let refused = set.identity().await.unwrap_err();
    assert!(matches!(refused, SqliteError::Missing { .. }), "{refused}");
    assert_eq!(set.outcome(&refused), Outcome::Superseded);
    guard.tend().await;
    file.sql("INSERT INTO old VALUES ('b', '')");
    guard.tend().await;
    assert_ne!(guard.contains(b"b").await, Answer::Absent);
}

#[tokio::test]
async fn values_have_the_type_of_their_column() {
    for (declared, value, stored) in [
        ("TEXT", &b"x"[..], "text"),
        ("VARCHAR(9)", b"x", "text"),
        ("TEXT", b"\xff", "blob"),
        ("INTEGER", b"12", "integer"),
        ("REAL", b"1.5", "real"),
        ("BLOB", b"x", "blob"),
        ("", b"x", "blob"),
    ] {
        let file = File::with(&format!("CREATE TABLE t (k TEXT PRIMARY KEY, v {declared})"));
        let set = file.open("k").unwrap();
        set.put(b"a", value).await.unwrap();
        set.put(b"a", value).await.unwrap();
        assert_eq!(set.get(b"a").await.unwrap().as_deref(), Some(value), "{declared}");
        let connection = Connection::open(file.path()).unwrap();
        let kind: String =
            connection.query_row("SELECT typeof(v) FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!(kind, stored, "{declared}");
    }
}

#[tokio::test]
async fn a_scan_of_sqlite_sees_the_moment_at_which_it_began() {
    let file = File::with(
        "CREATE TABLE t (k TEXT PRIMARY KEY, v); INSERT INTO t VALUES ('a', ''), ('b', '')",
    );
    let set = file.open("k").unwrap();
    let mut scan = set.scan(None).await.unwrap();
    assert!(set.delete(b"a").await.unwrap());
    set.put(b"c", b"").await.unwrap();
    assert_eq!(set.count(&mut scan).await.unwrap(), 2);
    let page = set.page(&mut scan, 10).await.unwrap();
    assert_eq!(page.keys().collect::<Vec<_>>(), [b"a", b"b"]);
}

#[tokio::test]
async fn a_commit_of_sqlite_that_failed_may_have_happened() {
    let file = File::with("CREATE TABLE t (k TEXT PRIMARY KEY, v)");
    let set = file.open("k").unwrap();
    let failed = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(10), None);
    assert_eq!(set.outcome(&SqliteError::Commit(failed)), Outcome::Unknown);
    assert_eq!(set.outcome(&SqliteError::Abandoned), Outcome::Unknown);
}
