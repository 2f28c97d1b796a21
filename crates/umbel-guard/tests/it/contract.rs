//! The contract of every data set, checked for each that is available, alone and behind a guard.

use crate::faulty::SECRET;
use crate::server;
use crate::servers::{Engine, Node};
use std::collections::BTreeSet;
use umbel_guard::set::{Postgres, PostgresError, Redb, Redis, Sqlite, SqliteError};
use umbel_guard::{Answer, Claim, DataSet, Guard, Local, Outcome, Put, Stamp};

pub(crate) async fn all_keys<D: DataSet>(set: &D, limit: usize) -> Vec<Vec<u8>> {
    let mut scan = set.scan(None).await.unwrap();
    let mut keys = Vec::new();
    loop {
        let page = set.page(&mut scan, limit).await.unwrap();
        keys.extend(page.keys().map(<[u8]>::to_vec));
        if page.is_last() {
            return keys;
        }
        assert!(!page.is_empty(), "neither keys nor an end");
    }
}

/// The four operations, and the scan. `key` makes keys that the set accepts.
async fn obeys<D: DataSet>(set: D, key: impl Fn(u32) -> Vec<u8>) {
    let expected: BTreeSet<Vec<u8>> = (0..100).map(&key).collect();
    assert_eq!(expected.len(), 100, "the keys of the test differ");
    for number in 0..100 {
        assert_eq!(set.get(&key(number)).await.unwrap(), None);
        let put = set.put(&key(number), format!("{number}").as_bytes()).await.unwrap();
        assert_eq!(put, Put::New, "{number}");
    }
    assert_eq!(set.put(&key(7), b"70").await.unwrap(), Put::Replaced);
    assert_eq!(set.get(&key(7)).await.unwrap().as_deref(), Some(&b"70"[..]));
    assert_eq!(set.get(&key(200)).await.unwrap(), None);
    for limit in [1, 3, 50, 100, 1_000] {
        let keys = all_keys(&set, limit).await;
        assert_eq!(keys.iter().cloned().collect::<BTreeSet<_>>(), expected, "{limit}");
    }
    let mut scan = set.scan(None).await.unwrap();
    assert_eq!(set.count(&mut scan).await.unwrap(), 100);
    // Where a scan sees one moment, it does not return keys that are written during it.
    let first = set.page(&mut scan, 10).await.unwrap();
    assert_eq!(set.put(&key(100), b"new").await.unwrap(), Put::New);
    assert!(set.delete(&key(99)).await.unwrap());
    let mut seen: BTreeSet<Vec<u8>> = first.keys().map(<[u8]>::to_vec).collect();
    let mut last = first.is_last();
    while !last {
        let page = set.page(&mut scan, 10).await.unwrap();
        seen.extend(page.keys().map(<[u8]>::to_vec));
        last = page.is_last();
    }
    if D::SNAPSHOT {
        assert_eq!(seen, expected);
    } else {
        assert!((0..99).all(|number| seen.contains(&key(number))));
    }
    assert!(!set.delete(&key(99)).await.unwrap());
    assert!(!set.delete(&key(200)).await.unwrap());
    assert_eq!(set.get(&key(99)).await.unwrap(), None);
    // From the middle on: every returned key exists.
    let mut scan = set.scan(Some(&key(50))).await.unwrap();
    let page = set.page(&mut scan, 20).await.unwrap();
    assert!(!page.is_empty());
    for some in page.keys() {
        assert!(set.get(some).await.unwrap().is_some());
    }
    assert_eq!(set.identity().await.unwrap(), set.identity().await.unwrap());
    if set.begin(1).await.unwrap() {
        let before = set.stamp().await.unwrap().unwrap().mark;
        let at = |mark| Stamp { incarnation: 1, mark: before + mark };
        set.put_marked(&key(101), b"x", at(10).into()).await.unwrap();
        set.put_marked(&key(102), b"x", at(3).into()).await.unwrap();
        assert_eq!(set.stamp().await.unwrap(), Some(at(10)));
        set.delete_marked(&key(101), at(11).into()).await.unwrap();
        assert_eq!(set.stamp().await.unwrap(), Some(at(11)));
        // An older copy, which lacks a confirmed write, must refuse writes.
        let claim = |least| Claim { least: before + least, ..at(12).into() };
        let put = set.put_marked(&key(103), b"x", claim(12)).await.unwrap_err();
        let delete = set.delete_marked(&key(102), claim(12)).await.unwrap_err();
        assert_eq!([&put, &delete].map(|error| set.outcome(error)), [Outcome::Superseded; 2]);
        assert_eq!(set.get(&key(103)).await.unwrap(), None);
        assert_eq!(set.stamp().await.unwrap(), Some(at(11)));
        assert!(set.delete_marked(&key(102), claim(11)).await.unwrap());
        assert_eq!(set.stamp().await.unwrap(), Some(at(12)));
    }
    guarded(set, key).await;
}

/// The same set behind guards of several kinds.
async fn guarded<D: DataSet>(set: D, key: impl Fn(u32) -> Vec<u8>) {
    let guard = Guard::builder(set, Local::cuckoo(0.001).secret(SECRET))
        .without_background()
        .start()
        .await
        .unwrap();
    assert!(matches!(guard.contains(&key(1)).await, Answer::Unknown(_)));
    let keys = guard.rebuild().await.unwrap();
    assert!(keys >= 100, "{keys}");
    for number in (0..99).chain([100]) {
        assert_eq!(guard.contains(&key(number)).await, Answer::Maybe, "{number}");
    }
    let absent = (1_000..3_000_u32).map(&key);
    let mut saved = 0;
    for key in absent {
        saved += u32::from(guard.contains(&key).await == Answer::Absent);
    }
    // The secret is fixed. At a rate of 0.001, two of 2,000 are expected to be false positives.
    assert!(saved >= 1_991, "{saved}");
    guard.put(&key(300), b"three hundred").await.unwrap();
    assert_eq!(guard.get(&key(300)).await.unwrap().as_deref(), Some(&b"three hundred"[..]));
    assert!(guard.delete(&key(300)).await.unwrap());
    assert_eq!(guard.contains(&key(300)).await, Answer::Absent);
    assert_eq!(guard.audit(1_000).await.unwrap(), 0);
}

fn name(number: u32) -> Vec<u8> {
    format!("user:{number:05}").into_bytes()
}

#[tokio::test]
async fn redb_obeys() {
    let place = tempfile::tempdir().unwrap();
    let set = Redb::create(place.path().join("a.redb"), "users").unwrap().without_sync();
    obeys(set.clone(), name).await;
    let other = Redb::new(set.database().unwrap().clone(), "others").unwrap();
    assert_ne!(other.identity().await.unwrap(), set.identity().await.unwrap());
    obeys(other.without_sync(), |number| number.to_be_bytes().to_vec()).await;
}

#[tokio::test]
async fn sqlite_obeys_with_keys_of_every_kind() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("a.db");
    obeys(Sqlite::create(&path, "blobs", "k", "v").unwrap(), |n| n.to_le_bytes().to_vec()).await;
    let connection = rusqlite::Connection::open(&path).unwrap();
    let make = "CREATE TABLE \"odd \"\"name\" (\"the key\" TEXT PRIMARY KEY, v TEXT);
        CREATE TABLE numbers (id INTEGER PRIMARY KEY, v); CREATE TABLE reals (k REAL, v);";
    connection.execute_batch(make).unwrap();
    obeys(Sqlite::open(&path, "odd \"name", "the key", "v").unwrap(), name).await;
    let numbers = Sqlite::open(&path, "numbers", "id", "v").unwrap();
    obeys(numbers.clone(), |number| number.to_string().into_bytes()).await;
    // The same number in several spellings.
    assert!(numbers.get(b"7").await.unwrap().is_some());
    assert_eq!(&*numbers.canonical(b"+007"), b"7");
    assert_eq!(numbers.get(b"seven").await.unwrap(), None);
    let refused = Sqlite::open(&path, "reals", "k", "v");
    assert!(matches!(refused, Err(SqliteError::KeyType { .. })), "{refused:?}");
    assert!(matches!(Sqlite::open(&path, "blobs", "x", "v"), Err(SqliteError::Missing { .. })));
    let reader = Sqlite::read_only(&path, "numbers", "id", "v").unwrap();
    assert!(reader.get(b"7").await.unwrap().is_some());
    assert!(matches!(reader.put(b"7", b"").await, Err(SqliteError::ReadOnly)));
    assert!(Sqlite::read_only(place.path().join("none"), "t", "k", "v").is_err());
}

const SOON: std::time::Duration = std::time::Duration::from_millis(900);

#[tokio::test(flavor = "multi_thread")]
async fn postgres_obeys_with_keys_of_every_kind() {
    let Some(server) = server::postgres() else { return };
    let url = server.postgres_url();
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let make = "CREATE TABLE texts (k text PRIMARY KEY, v text);
        CREATE SCHEMA \"my schema\"; CREATE TABLE \"my schema\".\"odd \"\"name\" (\"the key\" bytea PRIMARY KEY, v bytea);
        CREATE TABLE numbers (id integer PRIMARY KEY, v jsonb);
        CREATE TABLE ids (id uuid PRIMARY KEY, v text); CREATE TABLE times (k timestamptz, v text);
        CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
        CREATE TABLE loosely (k text COLLATE loose PRIMARY KEY, v text);";
    client.batch_execute(make).await.unwrap();
    obeys(Postgres::connect(&url, "texts", "k", "v").await.unwrap().statement_timeout(SOON), name)
        .await;
    let odd = Postgres::connect(&url, "my schema.odd \"name", "the key", "v").await.unwrap();
    obeys(odd.statement_timeout(SOON), |number| number.to_le_bytes().to_vec()).await;
    // The values of this table are JSON, and a number is valid JSON.
    let numbers = Postgres::connect(&url, "numbers", "id", "v").await.unwrap();
    assert_eq!(numbers.put(b"5", b"{\"a\": 1}").await.unwrap(), Put::New);
    assert_eq!(numbers.get(b"5").await.unwrap().as_deref(), Some(&b"{\"a\": 1}"[..]));
    assert_eq!(&*numbers.canonical(b" 05 "), b"5");
    assert_eq!(numbers.get(b"99999999999").await.unwrap(), None);
    assert!(numbers.put(b"6", b"no json").await.is_err());
    let ids = Postgres::connect(&url, "ids", "id", "v").await.unwrap();
    obeys(ids.statement_timeout(SOON), |number| {
        format!("{number:08x}-0000-4000-8000-000000000000").into_bytes()
    })
    .await;
    for (table, key) in [("times", "k"), ("loosely", "k")] {
        let refused = Postgres::connect(&url, table, key, "v").await;
        assert!(matches!(refused, Err(PostgresError::KeyType { .. })), "{table}: {refused:?}");
    }
    let missing = Postgres::connect(&url, "texts; DROP TABLE texts", "k", "v").await;
    assert!(matches!(missing, Err(PostgresError::Missing { .. })), "{missing:?}");
    // A connection that the server closes is opened again.
    let set = Postgres::connect(&url, "texts", "k", "v").await.unwrap();
    assert!(set.get(b"user:00001").await.unwrap().is_some());
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()
        AND backend_type = 'client backend'";
    client.batch_execute(end).await.unwrap();
    let mut there = false;
    for _ in 0..50 {
        there |= matches!(set.get(b"user:00001").await, Ok(Some(_)));
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(there);
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_obeys_as_a_hash_and_by_a_prefix() {
    for engine in [Engine::Redis, Engine::Valkey] {
        let Some(server) = Node::start(engine, &[]) else { continue };
        let url = server.url();
        obeys(Redis::hash(&url, "users").await.unwrap(), name).await;
        let set = Redis::prefix(&url, "a*[b]:").await.unwrap();
        obeys(set, |number| number.to_le_bytes().to_vec()).await;
    }
}
