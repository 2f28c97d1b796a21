use super::{failback_is_noticed, guard, not_done, stamps_decide};
use crate::faulty::SECRET;
use std::fs;
use umbel_guard::set::{Redb, RedbError};
use umbel_guard::{Answer, DataSet, Guard, Local, Outcome, Stamp, State};

#[tokio::test]
async fn the_guard_that_began_last_writes_to_redb() {
    let place = tempfile::tempdir().unwrap();
    let one = Redb::create(place.path().join("a.redb"), "users").unwrap();
    let two = Redb::new(one.database().unwrap().clone(), "users").unwrap().without_sync();
    stamps_decide(&one, &two).await;
    // Each table has its own.
    let other = Redb::new(one.database().unwrap().clone(), "others").unwrap();
    assert_eq!(other.stamp().await.unwrap(), Some(Stamp::default()));
    assert_ne!(other.identity().await.unwrap(), one.identity().await.unwrap());
    stamps_decide(&other, &other).await;
}

#[tokio::test]
async fn a_copy_of_a_redb_file_that_is_put_back_is_noticed() {
    let place = tempfile::tempdir().unwrap();
    let open = |path: &std::path::Path| Redb::create(path, "users").unwrap();
    failback_is_noticed(place.path(), open, |from, to| _ = fs::copy(from, to).unwrap()).await;
}

#[tokio::test]
async fn a_superseded_guard_on_redb_takes_no_writes() {
    let place = tempfile::tempdir().unwrap();
    let set = Redb::create(place.path().join("a.redb"), "users").unwrap();
    let [first, second] = ["first", "second"].map(|name| place.path().join(name));
    let one = guard(set.clone(), &first).await;
    one.put(b"a", b"").await.unwrap();
    let two = guard(set.clone(), &second).await;
    two.put(b"b", b"").await.unwrap();
    assert!(one.put(b"c", b"").await.is_err());
    assert_eq!(set.get(b"c").await.unwrap(), None);
    two.put(b"d", b"").await.unwrap();
}

#[tokio::test]
async fn a_redb_file_that_is_open_for_reading_is_the_same_set_and_is_not_changed() {
    let place = tempfile::tempdir().unwrap();
    let (path, folder) = (place.path().join("a.redb"), place.path().join("guard"));
    let (identity, stamp) = {
        let one = guard(Redb::create(&path, "users").unwrap(), &folder).await;
        one.rebuild().await.unwrap();
        one.put(b"a", b"1").await.unwrap();
        one.close().await.unwrap();
        let set = one.data_set();
        (set.identity().await.unwrap(), set.stamp().await.unwrap())
    };
    let before = fs::read(&path).unwrap();
    {
        let reader = Redb::read_only(&path, "users").unwrap();
        assert!(reader.database().is_none());
        assert_eq!(reader.identity().await.unwrap(), identity);
        assert_eq!(reader.stamp().await.unwrap(), stamp);
        assert!(stamp.is_some_and(|stamp| stamp.incarnation != 0 && stamp.mark == 1));
        assert!(!reader.begin(9).await.unwrap());
        let refused = not_done(&reader, reader.put(b"b", b"").await);
        assert!(matches!(refused, RedbError::ReadOnly));
        let refused = not_done(&reader, reader.delete(b"a").await);
        assert!(refused.to_string().contains("Redb::open"), "{refused}");
        // Several may read.
        let builder = Guard::builder(
            Redb::read_only(&path, "users").unwrap(),
            Local::cuckoo(0.001).secret(SECRET),
        );
        let looking = builder.folder(&folder).read_only().without_background();
        let looking = looking.start().await.unwrap();
        assert_eq!(looking.state(), State::Active);
        assert_eq!(looking.contains(b"a").await, Answer::Maybe);
        assert_eq!(looking.contains(b"b").await, Answer::Absent);
    }
    assert_eq!(fs::read(&path).unwrap(), before);
    assert!(Redb::read_only(&path, "others").is_err());
    assert!(Redb::read_only(place.path().join("none"), "users").is_err());
}

#[tokio::test]
async fn a_redb_file_that_no_guard_has_seen_has_no_stamp() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("a.redb");
    {
        let database = redb::Database::create(&path).unwrap();
        let writing = database.begin_write().unwrap();
        drop(writing.open_table(redb::TableDefinition::<&[u8], &[u8]>::new("users")).unwrap());
        writing.commit().unwrap();
    }
    let reader = Redb::read_only(&path, "users").unwrap();
    assert_eq!(reader.stamp().await.unwrap(), None);
    let name = String::from_utf8(reader.identity().await.unwrap()).unwrap();
    assert!(name.contains("a.redb"), "{name}");
}

#[tokio::test]
async fn a_commit_of_redb_that_failed_may_have_happened() {
    let place = tempfile::tempdir().unwrap();
    let set = Redb::create(place.path().join("a.redb"), "users").unwrap();
    let failed = redb::Error::Io(std::io::Error::other("the disk is gone"));
    assert_eq!(set.outcome(&RedbError::Commit(failed)), Outcome::Unknown);
    assert_eq!(set.outcome(&RedbError::Abandoned), Outcome::Unknown);
}
