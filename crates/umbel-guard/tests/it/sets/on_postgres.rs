use super::{active, guard, not_done, stamps_decide};
use crate::contract::all_keys;
use crate::faulty::SECRET;
use crate::server::{self, Server};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use umbel_guard::set::{Postgres, PostgresError};
use umbel_guard::{Answer, DataSet, Guard, Local, Outcome, Put, Stamp, State};

/// A guard that starts waits as long as a statement may take.
const SOON: Duration = Duration::from_millis(900);

async fn open(server: &Server, table: &str, key: &str) -> Postgres {
    let set = Postgres::connect(&server.postgres_url(), table, key, "v").await.unwrap();
    set.statement_timeout(SOON)
}

/// Waits for an effect of another process.
async fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < end, "{what} does not happen");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guard_that_began_last_writes_to_postgres() {
    let Some(server) = server::postgres() else { return };
    server.sql("CREATE SCHEMA \"a'b\\c\"; CREATE TABLE \"a'b\\c\".\"t \"\"x\" (\"k'\" text PRIMARY KEY, v text)");
    let (one, two) =
        (open(&server, "a'b\\c.t \"x", "k'").await, open(&server, "a'b\\c.t \"x", "k'").await);
    assert_eq!(one.stamp().await.unwrap(), None);
    stamps_decide(&one, &two).await;
    // Every connection has a row and a sequence; the mark is the largest.
    one.begin(21).await.unwrap();
    let before = one.stamp().await.unwrap().unwrap().mark;
    for mark in (1..=20).rev() {
        let stamp = Stamp { incarnation: 21, mark: before + mark };
        one.put_marked(b"a", b"", stamp.into()).await.unwrap();
        assert_eq!(two.stamp().await.unwrap(), Some(Stamp { mark: before + 20, ..stamp }));
    }
    // The table of the stamps is removed with everything that belongs to it.
    server.sql("DROP TABLE \"a'b\\c\".umbel_guard");
    assert_eq!(server.sql("SELECT count(*) FROM pg_class WHERE relname LIKE 'umbel%'"), "0");
    not_done(
        &one,
        one.put_marked(b"b", b"", Stamp { incarnation: 21, mark: before + 21 }.into()).await,
    );
    assert!(one.begin(22).await.unwrap());
    one.put_marked(b"b", b"", Stamp { incarnation: 22, mark: 1 }.into()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guard_that_begins_waits_for_statements_of_the_one_before_it() {
    let Some(server) = server::postgres() else { return };
    server.sql("CREATE TABLE t (k text PRIMARY KEY, v text)");
    let url = server.postgres_url();
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let patient = Postgres::connect(&url, "t", "k", "v").await.unwrap();
    let one = Arc::new(patient.statement_timeout(Duration::from_secs(60)));
    let two = Postgres::connect(&url, "t", "k", "v").await.unwrap();
    let two = Arc::new(two.statement_timeout(Duration::from_secs(60)));
    assert!(one.begin(1).await.unwrap());
    one.put_marked(b"a", b"1", Stamp { incarnation: 1, mark: 1 }.into()).await.unwrap();
    // Another transaction holds the row, so the write of the first guard waits.
    client.batch_execute("BEGIN; SELECT FROM t FOR UPDATE").await.unwrap();
    let waiting = |lock: &str| {
        let all =
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE";
        server.sql(&format!("{all} '%{lock}%' AND pid <> pg_backend_pid()")) != "0"
    };
    let set = one.clone();
    let stamp = Stamp { incarnation: 1, mark: 2 };
    let put = tokio::spawn(async move { set.put_marked(b"a", b"2", stamp.into()).await });
    until("the write", || waiting("WITH held AS")).await;
    let set = two.clone();
    let begin = tokio::spawn(async move { set.begin(2).await });
    until("the start of the other guard", || waiting("FOR UPDATE;")).await;
    assert!(!put.is_finished() && !begin.is_finished());
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(put.await.unwrap().unwrap(), Put::Replaced);
    assert!(begin.await.unwrap().unwrap());
    assert_eq!(two.stamp().await.unwrap(), Some(Stamp { incarnation: 2, mark: 2 }));
    let late =
        one.put_marked(b"b", b"", Stamp { incarnation: 1, mark: 3 }.into()).await.unwrap_err();
    assert_eq!(one.outcome(&late), Outcome::Superseded);
    assert_eq!(two.get(b"b").await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_key_column_or_database_is_another_set() {
    let Some(server) = server::postgres() else { return };
    let place = tempfile::tempdir().unwrap();
    server.sql(
        "CREATE TABLE t (name text PRIMARY KEY, mail text UNIQUE NOT NULL, v text);
         INSERT INTO t VALUES ('ada', 'a@x', '')",
    );
    let folder = place.path().join("guard");
    let by_name = guard(open(&server, "t", "name").await, &folder).await;
    by_name.rebuild().await.unwrap();
    by_name.close().await.unwrap();
    let identity = by_name.data_set().identity().await.unwrap();
    drop(by_name);
    {
        let again = guard(open(&server, "public.t", "name").await, &folder).await;
        assert_eq!(again.data_set().identity().await.unwrap(), identity);
        assert_eq!(again.state(), State::Active, "an ordinary restart");
        again.close().await.unwrap();
    }
    let by_mail = guard(open(&server, "t", "mail").await, &folder).await;
    assert_ne!(by_mail.contains(b"a@x").await, Answer::Absent);
    assert_eq!(by_mail.state(), State::Empty);
    drop(by_mail);
    // A copy of the database has the same OIDs.
    let (copy, copied) = (place.path().join("copy"), server.postgres_url() + "2");
    let one = guard(open(&server, "t", "name").await, &copy).await;
    one.rebuild().await.unwrap();
    one.close().await.unwrap();
    drop(one);
    // By a connection to another database, once those to this one have ended.
    until("the end of all connections", || {
        server.sql("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")
            == "1"
    })
    .await;
    let template = format!("postgres://postgres@127.0.0.1:{}/template1", server.port);
    let (client, connection) =
        tokio_postgres::connect(&template, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("CREATE DATABASE postgres2 TEMPLATE postgres").await.unwrap();
    let (other, connection) =
        tokio_postgres::connect(&copied, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    other.batch_execute("INSERT INTO t VALUES ('bob', 'b@x', '')").await.unwrap();
    let set = Postgres::connect(&copied, "t", "name", "v").await.unwrap().statement_timeout(SOON);
    let two = guard(set, &copy).await;
    assert_ne!(two.contains(b"bob").await, Answer::Absent);
    assert_eq!(two.state(), State::Empty);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_takes_the_place_of_another_is_another_set() {
    let Some(server) = server::postgres() else { return };
    server.sql(
        "CREATE TABLE t (k text PRIMARY KEY, v text);
         CREATE TABLE fresh (k text PRIMARY KEY, v text); INSERT INTO fresh VALUES ('new', '')",
    );
    let guard = active(open(&server, "t", "k").await).await;
    guard.put(b"a", b"").await.unwrap();
    let set = guard.data_set();
    let (identity, stamp) = (set.identity().await.unwrap(), set.stamp().await.unwrap().unwrap());
    server.sql("BEGIN; ALTER TABLE t RENAME TO old; ALTER TABLE fresh RENAME TO t; COMMIT");
    assert_ne!(set.identity().await.unwrap(), identity);
    let next = Stamp { mark: stamp.mark + 1, ..stamp };
    let refused = set.put_marked(b"b", b"", next.into()).await.unwrap_err();
    assert_eq!(set.outcome(&refused), Outcome::Superseded, "{refused}");
    guard.tend().await;
    assert_eq!(guard.contains(b"new").await, Answer::Maybe);
    guard.put(b"b", b"").await.unwrap();
    assert_eq!(set.get(b"b").await.unwrap().as_deref(), Some(&b""[..]));
}

/// A view changes whenever the table behind it does, and no write to the view shows that.
#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_takes_the_place_of_the_table_is_never_trusted() {
    let Some(server) = server::postgres() else { return };
    server.sql("CREATE TABLE t (k text PRIMARY KEY, v text)");
    let guard = active(open(&server, "t", "k").await).await;
    server.sql(
        "BEGIN; ALTER TABLE t RENAME TO old; CREATE VIEW t AS SELECT * FROM old WHERE k <> 'b'; COMMIT",
    );
    let set = guard.data_set();
    let refused = set.identity().await.unwrap_err();
    assert!(matches!(refused, PostgresError::Missing { .. }), "{refused}");
    assert_eq!(set.outcome(&refused), Outcome::Superseded);
    guard.tend().await;
    server.sql("INSERT INTO old VALUES ('a', '')");
    guard.tend().await;
    assert_ne!(guard.contains(b"a").await, Answer::Absent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_postgres_changes_is_not_written() {
    let Some(server) = server::postgres() else { return };
    server.sql(
        "CREATE TABLE short (k varchar(3) PRIMARY KEY, v text);
         CREATE FUNCTION low() RETURNS trigger LANGUAGE plpgsql AS
           $$ BEGIN NEW.k := lower(NEW.k); RETURN NEW; END $$;
         CREATE FUNCTION up() RETURNS trigger LANGUAGE plpgsql AS
           $$ BEGIN IF NEW.v = 'up' THEN NEW.k := upper(NEW.k); END IF; RETURN NEW; END $$;
         CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
         CREATE TABLE lowered (k text PRIMARY KEY, v text);
         CREATE TRIGGER low BEFORE INSERT ON lowered FOR EACH ROW EXECUTE FUNCTION low();
         CREATE TRIGGER up BEFORE UPDATE ON lowered FOR EACH ROW EXECUTE FUNCTION up();
         CREATE TABLE dropped (k text PRIMARY KEY, v text);
         CREATE TRIGGER nothing BEFORE INSERT ON dropped FOR EACH ROW EXECUTE FUNCTION nothing();
         CREATE TABLE bytes (k bytea PRIMARY KEY, v text);
         CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS
           $$ BEGIN NEW.k := substr(NEW.k, 1, 2); RETURN NEW; END $$;
         CREATE TRIGGER cut BEFORE INSERT ON bytes FOR EACH ROW EXECUTE FUNCTION cut();",
    );
    let changed = |error: PostgresError| match error {
        PostgresError::KeyChanged { expected, found } => (expected, found.unwrap()),
        other => panic!("{other}"),
    };
    let guard = active(open(&server, "short", "k").await).await;
    let set = guard.data_set();
    let refused = not_done(set, set.put(b"abc  ", b"").await);
    assert!(refused.to_string().contains("\"abc  \"") && refused.to_string().contains("\"abc\""));
    assert_eq!(changed(refused), (b"abc  ".to_vec(), b"abc".to_vec()));
    assert!(guard.put(b"abc  ", b"").await.is_err());
    assert_eq!(set.get(b"abc").await.unwrap(), None, "it was rolled back");
    assert!(matches!(not_done(set, set.put(b"abcd", b"").await), PostgresError::Postgres(_)));
    guard.put(b"abc", b"").await.unwrap();
    assert_eq!(guard.contains(b"abc").await, Answer::Maybe);
    assert_eq!(guard.stats().doubts, 0);

    let guard = active(open(&server, "lowered", "k").await).await;
    let set = guard.data_set();
    assert_eq!(
        changed(not_done(set, set.put(b"ADA", b"").await)),
        (b"ADA".to_vec(), b"ada".to_vec())
    );
    guard.put(b"ada", b"1").await.unwrap();
    assert_eq!(
        changed(not_done(set, set.put(b"ada", b"up").await)),
        (b"ada".to_vec(), b"ADA".to_vec())
    );
    assert_eq!(set.get(b"ada").await.unwrap().as_deref(), Some(&b"1"[..]));
    // The row `ada` exists, and the trigger changes the key to it.
    assert!(matches!(not_done(set, set.put(b"ADA", b"").await), PostgresError::Contended));
    assert_eq!(guard.contains(b"ada").await, Answer::Maybe);
    assert_eq!(all_keys(set, 10).await, [b"ada"]);

    let set = open(&server, "dropped", "k").await;
    assert!(matches!(not_done(&set, set.put(b"a", b"").await), PostgresError::Contended));
    let set = open(&server, "bytes", "k").await;
    let refused = not_done(&set, set.put(b"\xff\0a", b"").await);
    assert_eq!(changed(refused), (b"\xff\0a".to_vec(), b"\xff\0".to_vec()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_a_trigger_changes_after_the_write_is_rolled_back() {
    let Some(server) = server::postgres() else { return };
    server.sql(
        "CREATE TABLE t (k text PRIMARY KEY, v text);
         CREATE FUNCTION low() RETURNS trigger LANGUAGE plpgsql AS
           $$ BEGIN UPDATE t SET k = lower(k) WHERE k = NEW.k; RETURN NULL; END $$;
         CREATE FUNCTION back() RETURNS trigger LANGUAGE plpgsql AS
           $$ BEGIN INSERT INTO t VALUES (OLD.k, OLD.v); RETURN NULL; END $$;
         CREATE CONSTRAINT TRIGGER low AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED
           FOR EACH ROW EXECUTE FUNCTION low();",
    );
    let guard = active(open(&server, "t", "k").await).await;
    let set = guard.data_set();
    for _ in 0..2 {
        let refused = not_done(set, set.put(b"ADA", b"").await);
        assert!(matches!(refused, PostgresError::KeyChanged { .. }), "{refused}");
    }
    assert!(guard.put(b"ADA", b"").await.is_err());
    assert_eq!(set.get(b"ada").await.unwrap(), None);
    guard.put(b"ada", b"1").await.unwrap();
    guard.put(b"ada", b"2").await.unwrap();
    assert_eq!(set.get(b"ada").await.unwrap().as_deref(), Some(&b"2"[..]));
    // A trigger that is created later is noticed with the next look at the identity.
    server.sql("CREATE TRIGGER back AFTER DELETE ON t FOR EACH ROW EXECUTE FUNCTION back()");
    guard.tend().await;
    assert!(matches!(not_done(set, set.delete(b"ada").await), PostgresError::NotDeleted));
    assert!(guard.delete(b"ada").await.is_err());
    assert_eq!(guard.contains(b"ada").await, Answer::Maybe);
    server.sql("DROP TRIGGER back ON t");
    assert!(guard.delete(b"ada").await.unwrap());
    assert_eq!(guard.contains(b"ada").await, Answer::Absent);
    // Stamps are checked there too.
    let stamp = set.stamp().await.unwrap().unwrap();
    assert!(set.begin(stamp.incarnation ^ 1).await.unwrap());
    let late = set.put_marked(b"b", b"", stamp.into()).await.unwrap_err();
    assert_eq!(set.outcome(&late), Outcome::Superseded);
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_tables_that_are_unfit_are_refused_with_what_to_change() {
    let Some(server) = server::postgres() else { return };
    server.sql(
        "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
         CREATE TABLE base (id int PRIMARY KEY, k text UNIQUE, v text, g text GENERATED ALWAYS AS (upper(k)) STORED UNIQUE);
         CREATE VIEW seen AS SELECT k, v FROM base;
         CREATE TABLE ruled (k text PRIMARY KEY, v text);
         CREATE RULE no AS ON INSERT TO ruled WHERE NEW.k = 'x' DO INSTEAD NOTHING;
         CREATE TABLE parent (k text PRIMARY KEY, v text); CREATE TABLE child () INHERITS (parent);
         CREATE TABLE secret (k text PRIMARY KEY, v text); ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
         CREATE ROLE plain LOGIN; GRANT ALL ON secret, base TO plain;
         CREATE TABLE fixed (k char(3) PRIMARY KEY, v text);
         CREATE DOMAIN word AS text; CREATE TABLE words (k word PRIMARY KEY, v text);
         CREATE TABLE loosely (k text COLLATE loose PRIMARY KEY, v text);
         CREATE TABLE late (k text UNIQUE DEFERRABLE NOT NULL, v text);
         CREATE TABLE partly (k text NOT NULL, v text, other text UNIQUE); CREATE UNIQUE INDEX ON partly (k) WHERE v <> '';
         CREATE UNIQUE INDEX ON partly (lower(k)); CREATE UNIQUE INDEX ON partly (k, v); CREATE INDEX ON partly (k);
         CREATE UNIQUE INDEX ON partly (k COLLATE loose);
         CREATE TABLE parts (k text PRIMARY KEY, v text) PARTITION BY HASH (k);
         CREATE TABLE parts0 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
         CREATE TABLE parts1 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);",
    );
    let url = server.postgres_url();
    let refused = async |table: &str, key: &str, value: &str| {
        Postgres::connect(&url, table, key, value).await.unwrap_err()
    };
    for table in ["seen", "ruled", "parent"] {
        let error = refused(table, "k", "v").await;
        assert!(matches!(error, PostgresError::NotATable { .. }), "{table}: {error}");
    }
    let plain = url.replace("postgres@", "plain@");
    let error = Postgres::connect(&plain, "secret", "k", "v").await.unwrap_err();
    assert!(error.to_string().contains("BYPASSRLS"), "{error}");
    Postgres::connect(&url, "secret", "k", "v").await.unwrap();
    for (table, key) in [("fixed", "k"), ("words", "k"), ("loosely", "k")] {
        let error = refused(table, key, "v").await;
        assert!(matches!(error, PostgresError::KeyType { .. }), "{table}: {error}");
    }
    assert!(matches!(refused("base", "g", "v").await, PostgresError::Generated { .. }));
    assert!(matches!(refused("base", "id", "g").await, PostgresError::Generated { .. }));
    assert!(matches!(refused("base", "x", "v").await, PostgresError::Missing { .. }));
    assert!(matches!(refused("none", "k", "v").await, PostgresError::Missing { .. }));
    // The error names the fix.
    let error = refused("base", "k", "v").await;
    let PostgresError::Nullable { fix, .. } = &error else { panic!("{error}") };
    assert!(error.to_string().contains(fix));
    server.sql(fix);
    Postgres::connect(&url, "base", "k", "v").await.unwrap();
    for table in ["late", "partly"] {
        let error = refused(table, "k", "v").await;
        let PostgresError::NotUnique { fix, .. } = &error else { panic!("{table}: {error}") };
        server.sql("DROP INDEX IF EXISTS partly_k_idx3");
        server.sql(fix);
        Postgres::connect(&url, table, "k", "v").await.unwrap();
    }
    let set = open(&server, "parts", "k").await;
    stamps_decide(&set, &set).await;
    for key in 0..10 {
        assert_eq!(set.put(key.to_string().as_bytes(), b"").await.unwrap(), Put::New);
        assert_eq!(set.put(key.to_string().as_bytes(), b"x").await.unwrap(), Put::Replaced);
    }
    assert_eq!(all_keys(&set, 3).await.len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_postgres_leave_no_doubt() {
    let Some(server) = server::postgres() else { return };
    server.sql(
        "CREATE TABLE t (k int PRIMARY KEY, v text UNIQUE CHECK (v <> 'bad'));
         CREATE TABLE json (k text PRIMARY KEY, v jsonb NOT NULL);
         CREATE TABLE must (k text PRIMARY KEY, v text, w text NOT NULL);",
    );
    let guard = active(open(&server, "t", "k").await).await;
    let set = guard.data_set();
    assert_eq!(set.put(b"1", b"x").await.unwrap(), Put::New);
    let refused = not_done(set, set.put(b"2", b"x").await);
    let PostgresError::Conflict { constraint } = &refused else { panic!("{refused}") };
    assert_eq!(constraint, "t_v_key");
    assert_eq!(set.get(b"2").await.unwrap(), None);
    assert_eq!(set.put(b"2", b"y").await.unwrap(), Put::New);
    assert!(matches!(not_done(set, set.put(b"2", b"x").await), PostgresError::Conflict { .. }));
    assert!(matches!(not_done(set, set.put(b"seven", b"").await), PostgresError::Unfit));
    assert!(matches!(not_done(set, set.put(b"3", b"\xff").await), PostgresError::Unfit));
    assert!(matches!(not_done(set, set.put(b"3", b"bad").await), PostgresError::Postgres(_)));
    for (key, value) in [("2", "x"), ("seven", ""), ("3", "bad"), ("99999999999", "")] {
        assert!(guard.put(key.as_bytes(), value.as_bytes()).await.is_err());
    }
    assert_eq!(guard.stats().doubts, 0);
    assert_eq!(set.get(b"2").await.unwrap().as_deref(), Some(&b"y"[..]));
    let set = open(&server, "json", "k").await;
    not_done(&set, set.put(b"a", b"no json").await);
    let set = open(&server, "must", "k").await;
    not_done(&set, set.put(b"a", b"").await);
    server.sql("ALTER TABLE must ALTER w SET DEFAULT ''");
    set.put(b"a", b"").await.unwrap();
    // A statement that the time-out of the server has ended was rolled back.
    let (client, connection) =
        tokio_postgres::connect(&server.postgres_url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("BEGIN; SELECT FROM must FOR UPDATE").await.unwrap();
    not_done(&set, set.put(b"a", b"late").await);
    // The outcome is unknown if the connection is lost.
    let set = Arc::new(Postgres::connect(&server.postgres_url(), "must", "k", "v").await.unwrap());
    let writer = set.clone();
    let put = tokio::spawn(async move { writer.put(b"a", b"late").await });
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    until("the write", || server.sql(end) != "0").await;
    let lost = put.await.unwrap().unwrap_err();
    assert_eq!(set.outcome(&lost), Outcome::Unknown, "{lost}");
    client.batch_execute("ROLLBACK").await.unwrap();
    server.sql("DROP TABLE must");
    not_done(&*set, set.put(b"a", b"").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_may_not_store_a_stamp_writes_only_where_there_is_none() {
    let Some(server) = server::postgres() else { return };
    server.sql(
        "CREATE TABLE t (k text PRIMARY KEY, v text); CREATE ROLE writer LOGIN; CREATE ROLE reader LOGIN;
         GRANT SELECT, INSERT, UPDATE, DELETE ON t TO writer; GRANT SELECT ON t TO reader;
         CREATE ROLE quiet LOGIN; ALTER ROLE quiet SET default_transaction_read_only = on; GRANT ALL ON t TO quiet;",
    );
    let url = server.postgres_url();
    let as_user = async |user: &str| {
        let url = url.replace("postgres@", &format!("{user}@"));
        Postgres::connect(&url, "t", "k", "v").await.unwrap().statement_timeout(SOON)
    };
    let writer = as_user("writer").await;
    assert!(!writer.begin(1).await.unwrap());
    assert_eq!(writer.stamp().await.unwrap(), None);
    writer.put(b"a", b"").await.unwrap();
    let owner = as_user("postgres").await;
    assert!(owner.begin(2).await.unwrap());
    // From here on the guard of the owner would not notice its writes.
    let denied = writer.begin(3).await.unwrap_err();
    assert!(matches!(denied, PostgresError::StampDenied { .. }), "{denied}");
    assert_eq!(writer.stamp().await.unwrap(), None);
    assert!(!as_user("reader").await.begin(3).await.unwrap());
    assert!(!as_user("quiet").await.begin(3).await.unwrap());
    let reader = as_user("reader").await;
    let refused = not_done(&reader, reader.put(b"b", b"").await);
    assert!(matches!(refused, PostgresError::Postgres(_)), "{refused}");
    assert_eq!(owner.stamp().await.unwrap(), Some(Stamp { incarnation: 2, mark: 0 }));
    server.sql("GRANT ALL ON ALL TABLES IN SCHEMA public TO writer; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO writer");
    assert!(writer.begin(4).await.unwrap());
    writer.put_marked(b"b", b"", Stamp { incarnation: 4, mark: 1 }.into()).await.unwrap();
    assert_eq!(owner.stamp().await.unwrap(), Some(Stamp { incarnation: 4, mark: 1 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn standbys_are_refused_and_a_promoted_one_is_another_set() {
    let Some(mut primary) = server::postgres() else { return };
    primary.sql("CREATE TABLE t (k text PRIMARY KEY, v text); INSERT INTO t VALUES ('a', '')");
    let standby = primary.standby();
    let alone = Postgres::connect(&standby.postgres_url(), "t", "k", "v").await;
    assert!(matches!(alone, Err(PostgresError::Standby)), "{alone:?}");
    let both = format!(
        "host=127.0.0.1,127.0.0.1 port={},{} user=postgres dbname=postgres connect_timeout=5",
        standby.port, primary.port
    );
    let twice = both.replace(&primary.port.to_string(), &standby.port.to_string());
    let neither = Postgres::connect(&twice, "t", "k", "v").await;
    assert!(matches!(neither, Err(PostgresError::Standby)), "{neither:?}");
    // The primary is chosen, at any position in the list.
    let set = Postgres::connect(&both, "t", "k", "v").await.unwrap().statement_timeout(SOON);
    let builder = Guard::builder(set, Local::cuckoo(0.001).secret(SECRET)).without_background();
    let guard = builder.start().await.unwrap();
    guard.rebuild().await.unwrap();
    guard.put(b"b", b"").await.unwrap();
    let set = guard.data_set();
    let before = set.identity().await.unwrap();
    standby.follow(&primary);
    // The delete does not reach the standby, so the key exists again after the failover.
    standby.sql("ALTER SYSTEM SET primary_conninfo = ''");
    standby.sql("SELECT pg_reload_conf()");
    until("the end of replication", || {
        standby.sql("SELECT count(*) FROM pg_stat_wal_receiver") == "0"
    })
    .await;
    assert!(guard.delete(b"a").await.unwrap());
    assert_eq!(guard.contains(b"a").await, Answer::Absent);
    primary.kill();
    standby.promote();
    let end = Instant::now() + Duration::from_secs(60);
    let after = loop {
        match set.identity().await {
            Ok(identity) => break identity,
            Err(error) => assert!(Instant::now() < end, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_ne!(after, before);
    guard.tend().await;
    assert_ne!(guard.contains(b"a").await, Answer::Absent);
    assert_eq!(guard.stats().trips, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_others_write_to_postgres_show_and_own_ones_do_not() {
    let Some(server) = server::postgres() else { return };
    server.sql(
        "CREATE TABLE t (k text PRIMARY KEY, v text) PARTITION BY HASH (k);
         CREATE TABLE t0 PARTITION OF t FOR VALUES WITH (MODULUS 1, REMAINDER 0)",
    );
    let set = open(&server, "t", "k").await;
    // The statistics of ended sessions are complete.
    let first = set.foreign_writes().await.unwrap();
    assert!(first.is_some());
    let own = async |from: u32| {
        for number in from..from + 100 {
            set.put(number.to_string().as_bytes(), b"").await.unwrap();
            set.put(number.to_string().as_bytes(), b"1").await.unwrap();
            set.delete(number.to_string().as_bytes()).await.unwrap();
        }
    };
    own(0).await;
    // Until the server has counted all own rows, and then once more.
    let total = "SELECT sum(n_tup_ins + n_tup_upd) FROM pg_stat_user_tables WHERE relname = 't0'";
    let end = Instant::now() + Duration::from_secs(60);
    while server.sql(total) != "200" {
        assert_eq!(set.foreign_writes().await.unwrap(), first);
        assert!(Instant::now() < end, "the server does not count");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(set.foreign_writes().await.unwrap(), first);
    server.sql("INSERT INTO t VALUES ('foreign', '')");
    let end = Instant::now() + Duration::from_secs(60);
    while set.foreign_writes().await.unwrap() == first {
        assert!(Instant::now() < end, "the foreign row does not show");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let second = set.foreign_writes().await.unwrap();
    own(1_000).await;
    assert_eq!(set.foreign_writes().await.unwrap(), second);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_come_with_a_partition_show() {
    let Some(server) = server::postgres() else { return };
    server.sql("CREATE TABLE t (k text PRIMARY KEY, v text) PARTITION BY LIST (k)");
    server.sql("CREATE TABLE t0 (k text NOT NULL, v text); INSERT INTO t0 VALUES ('a', '')");
    let set = open(&server, "t", "k").await;
    let counted = "SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 't0'";
    until("counting", || server.sql(counted) == "1").await;
    // As after a crash of the server.
    server.sql("SELECT pg_stat_reset_single_table_counters('t0'::regclass)");
    let first = set.foreign_writes().await.unwrap();
    assert_eq!(set.foreign_writes().await.unwrap(), first);
    server.sql("ALTER TABLE t ATTACH PARTITION t0 FOR VALUES IN ('a')");
    let second = set.foreign_writes().await.unwrap();
    assert_ne!(second, first);
    assert_eq!(set.foreign_writes().await.unwrap(), second);
}

#[tokio::test(flavor = "multi_thread")]
async fn guards_of_several_tables_may_be_the_first_of_a_schema_at_the_same_time() {
    let Some(server) = server::postgres() else { return };
    for round in 0..5 {
        let table = |number: u32| format!("s{round}.t{number}");
        server.sql(&format!("CREATE SCHEMA s{round}"));
        for number in 0..6 {
            server.sql(&format!("CREATE TABLE {} (k text PRIMARY KEY, v text)", table(number)));
        }
        let mut sets = Vec::new();
        for number in 0..6 {
            sets.push(open(&server, &table(number), "k").await);
        }
        let begun = sets.into_iter().map(|set| tokio::spawn(async move { set.begin(7).await }));
        for begun in begun.collect::<Vec<_>>() {
            assert!(begun.await.unwrap().unwrap());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn statistics_that_begin_anew_are_a_sign_of_foreign_writes() {
    let Some(server) = server::postgres() else { return };
    server.sql("CREATE TABLE t (k text PRIMARY KEY, v text)");
    let set = open(&server, "t", "k").await;
    let mut last = set.foreign_writes().await.unwrap();
    assert_eq!(set.foreign_writes().await.unwrap(), last);
    // The counters are 0 before and after, whatever is written in between.
    server.sql("INSERT INTO t VALUES ('a', '')");
    server.sql("SELECT pg_stat_reset()");
    let next = set.foreign_writes().await.unwrap();
    assert_ne!(next, last);
    last = next;
    assert_eq!(set.foreign_writes().await.unwrap(), last);
    // A server whose process is killed recovers, and forgets its statistics.
    server.sql("INSERT INTO t VALUES ('b', '')");
    let backend = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() LIMIT 1";
    let backend = server.sql(backend);
    assert!(Command::new("kill").args(["-KILL", &backend]).status().unwrap().success());
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        match set.foreign_writes().await {
            Ok(now) if now != last => break,
            // Until the server has noticed, and while it recovers.
            _ => assert!(Instant::now() < end, "the crash does not show"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_a_trigger_drops_do_not_hide_rows_of_others() {
    let Some(server) = server::postgres() else { return };
    server.sql(
        "CREATE TABLE t (k text PRIMARY KEY, v text);
         CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS
           $$ BEGIN IF NEW.k = 'dropped' THEN RETURN NULL; END IF; RETURN NEW; END $$;
         CREATE TRIGGER nothing BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION nothing()",
    );
    let set = open(&server, "t", "k").await;
    let first = set.foreign_writes().await.unwrap();
    assert!(set.put(b"dropped", b"").await.is_err());
    server.sql("INSERT INTO t VALUES ('foreign', '')");
    let end = Instant::now() + Duration::from_secs(60);
    while set.foreign_writes().await.unwrap() == first {
        assert!(Instant::now() < end, "the foreign row does not show");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_postgres_refuses_do_not_hide_rows_of_others() {
    let Some(server) = server::postgres() else { return };
    server.sql("CREATE TABLE t (k text PRIMARY KEY CHECK (k <> 'bad'), v jsonb NOT NULL)");
    let set = open(&server, "t", "k").await;
    let first = set.foreign_writes().await.unwrap();
    assert!(first.is_some());
    for _ in 0..20 {
        not_done(&set, set.put(b"bad", b"1").await);
        not_done(&set, set.put(b"a", b"no json").await);
    }
    server.sql("INSERT INTO t VALUES ('foreign', '1')");
    let end = Instant::now() + Duration::from_secs(60);
    while set.foreign_writes().await.unwrap() == first {
        assert!(Instant::now() < end, "the foreign row does not show");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_of_postgres_that_change_are_other_sets_and_half_a_stamp_is_none() {
    let Some(server) = server::postgres() else { return };
    server.sql("CREATE TABLE t (k text PRIMARY KEY, x text UNIQUE NOT NULL, v text)");
    let set = open(&server, "t", "k").await;
    let before = set.identity().await.unwrap();
    server.sql("ALTER TABLE t ALTER COLUMN k TYPE varchar(9)");
    let typed = set.identity().await.unwrap();
    assert_ne!(typed, before);
    // Another column with the same type gets the name.
    server.sql(
        "ALTER TABLE t ALTER COLUMN x TYPE varchar(9); ALTER TABLE t RENAME COLUMN k TO y;
         ALTER TABLE t RENAME COLUMN x TO k",
    );
    assert_ne!(set.identity().await.unwrap(), typed);
    set.begin(5).await.unwrap();
    assert_eq!(set.stamp().await.unwrap().unwrap().incarnation, 5);
    server.sql("UPDATE umbel_guard SET incarnation = 4 WHERE slot = 0");
    assert_eq!(set.stamp().await.unwrap().unwrap().incarnation, 0);
}
