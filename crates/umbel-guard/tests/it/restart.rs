//! What survives the process: a saved filter with its journal is used at once, and anything else is rebuilt.

use crate::faulty::{Fate, Faulty, SECRET};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use umbel_guard::set::{Redb, Sqlite};
use umbel_guard::{Answer, DataSet, Family, Guard, Local, StartError, State};

fn key(number: u32) -> [u8; 4] {
    number.to_le_bytes()
}

struct Home {
    place: TempDir,
}

impl Home {
    fn new() -> Self {
        Self { place: tempfile::tempdir().unwrap() }
    }

    fn folder(&self) -> PathBuf {
        self.place.path().join("guard")
    }

    fn redb(&self) -> Redb {
        Redb::create(self.place.path().join("data.redb"), "users").unwrap().without_sync()
    }

    async fn guard<D: DataSet>(&self, set: D, kind: Local) -> Guard<D, Local> {
        let builder = Guard::builder(set, kind).folder(self.folder());
        builder.without_background().start().await.unwrap()
    }

    /// The files of the guard with this ending.
    fn files(&self, ending: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder()).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|end| end == ending)).collect()
    }

    fn file(&self, ending: &str) -> PathBuf {
        let files = self.files(ending);
        assert_eq!(files.len(), 1, "{files:?}");
        files[0].clone()
    }
}

async fn holds<D: DataSet>(guard: &Guard<D, Local>, keys: std::ops::Range<u32>) {
    for number in keys {
        assert_eq!(guard.contains(&key(number)).await, Answer::Maybe, "{number}");
    }
}

#[tokio::test]
async fn every_family_that_changes_is_back_at_once_after_a_crash() {
    for family in Family::CHANGING {
        let (home, kind) = (Home::new(), Local::new(family, 1e-4).secret(SECRET));
        let guard = home.guard(home.redb(), kind).await;
        for number in 0..50 {
            guard.put(&key(number), b"").await.unwrap();
        }
        guard.rebuild().await.unwrap();
        for number in 50..80 {
            guard.put(&key(number), b"").await.unwrap();
        }
        guard.checkpoint().await.unwrap();
        for number in 80..100 {
            guard.put(&key(number), b"").await.unwrap();
        }
        guard.delete(&key(0)).await.unwrap();
        // Dropped without `close`, as in a crash.
        drop(guard);
        let guard = home.guard(home.redb(), kind).await;
        assert_eq!(guard.state(), State::Active, "{family:?}");
        holds(&guard, 1..100).await;
        assert_eq!(guard.contains(b"never").await, Answer::Absent, "{family:?}");
        assert_eq!(guard.stats().rebuilds, 0);
        // The guard works as before.
        guard.put(b"more", b"").await.unwrap();
        guard.close().await.unwrap();
        drop(guard);
        let guard = home.guard(home.redb(), kind).await;
        assert_eq!(guard.state(), State::Active, "{family:?}");
        assert_eq!(guard.contains(b"more").await, Answer::Maybe, "{family:?}");
        holds(&guard, 1..100).await;
    }
}

#[tokio::test]
async fn filters_of_sets_that_do_not_change_are_back_too() {
    for kind in [
        Local::ribbon(0.01).secret(SECRET),
        Local::fuse(0.01).secret(SECRET),
        Local::xor(0.01).secret(SECRET),
    ] {
        let home = Home::new();
        let set = home.redb();
        for number in 0..100 {
            set.put(&key(number), b"").await.unwrap();
        }
        let guard = home.guard(set, kind).await;
        guard.rebuild().await.unwrap();
        drop(guard);
        let guard = home.guard(home.redb(), kind).await;
        assert_eq!(guard.state(), State::Active);
        holds(&guard, 0..100).await;
    }
}

#[tokio::test]
async fn sqlite_has_marks_as_well() {
    let home = Home::new();
    let path = home.place.path().join("data.db");
    let open = || Sqlite::create(&path, "t", "k", "v").unwrap();
    let guard = home.guard(open(), Local::cuckoo(0.001).secret(SECRET)).await;
    guard.rebuild().await.unwrap();
    guard.put(b"a", b"").await.unwrap();
    let journal = fs::read(home.file("journal")).unwrap();
    guard.put(b"b", b"").await.unwrap();
    drop(guard);
    let guard = home.guard(open(), Local::cuckoo(0.001).secret(SECRET)).await;
    assert_eq!(guard.state(), State::Active);
    assert_eq!(guard.contains(b"b").await, Answer::Maybe);
    drop(guard);
    // An older copy of the journal, as from a backup.
    fs::write(home.file("journal"), journal).unwrap();
    assert_eq!(home.guard(open(), Local::cuckoo(0.001).secret(SECRET)).await.state(), State::Empty);
}

/// A kind of damage to a filter and its journal.
type Damage = fn(&Path, &Path);

/// A guard with a saved filter and a journal.
async fn saved(home: &Home) {
    let guard = home.guard(home.redb(), Local::blocked(1e-4).secret(SECRET)).await;
    guard.rebuild().await.unwrap();
    for number in 0..100 {
        guard.put(&key(number), b"").await.unwrap();
    }
}

/// Whatever the damage, the guard rebuilds, and does not answer `Absent` until then.
async fn is_not_used(home: &Home, what: &str) {
    let guard = home.guard(home.redb(), Local::blocked(1e-4).secret(SECRET)).await;
    assert_eq!(guard.state(), State::Empty, "{what}");
    assert!(matches!(guard.contains(&key(5)).await, Answer::Unknown(_)), "{what}");
    assert_eq!((home.files("umbel").len(), home.files("journal").len()), (0, 0), "{what}");
    guard.rebuild().await.unwrap();
    holds(&guard, 0..100).await;
}

#[tokio::test]
async fn files_that_are_missing_damaged_or_old_are_not_used() {
    let cases: [(&str, Damage); 8] = [
        ("no filter", |filter, _| fs::remove_file(filter).unwrap()),
        ("no journal", |_, journal| fs::remove_file(journal).unwrap()),
        ("an empty filter", |filter, _| fs::write(filter, b"").unwrap()),
        ("an empty journal", |_, journal| fs::write(journal, b"").unwrap()),
        ("a flipped bit in the filter", |filter, _| {
            let mut bytes = fs::read(filter).unwrap();
            bytes[1_000] ^= 1;
            fs::write(filter, bytes).unwrap();
        }),
        ("a flipped bit in the journal", |_, journal| {
            let mut bytes = fs::read(journal).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(journal, bytes).unwrap();
        }),
        // The data set has marks that these files lack.
        ("the last record gone", |_, journal| {
            let bytes = fs::read(journal).unwrap();
            fs::write(journal, &bytes[..bytes.len() - 16]).unwrap();
        }),
        ("only the header left", |_, journal| {
            let bytes = fs::read(journal).unwrap();
            fs::write(journal, &bytes[..128]).unwrap();
        }),
    ];
    for (what, damage) in cases {
        let home = Home::new();
        saved(&home).await;
        damage(&home.file("umbel"), &home.file("journal"));
        is_not_used(&home, what).await;
    }
}

#[tokio::test]
async fn files_of_another_set_are_not_used() {
    let (home, other) = (Home::new(), Home::new());
    saved(&home).await;
    saved(&other).await;
    // The files of one guard beside the data of the other.
    fs::remove_dir_all(home.folder()).unwrap();
    fs::rename(other.folder(), home.folder()).unwrap();
    is_not_used(&home, "another set").await;
}

#[tokio::test]
async fn a_set_that_was_restored_from_a_backup_is_noticed_where_keys_can_come_back() {
    for kind in [Local::cuckoo(1e-4).secret(SECRET), Local::blocked(1e-4).secret(SECRET)] {
        let home = Home::new();
        let data = home.place.path().join("data.redb");
        let open = || Redb::create(&data, "users").unwrap();
        let guard = home.guard(open(), kind).await;
        guard.rebuild().await.unwrap();
        guard.put(b"k", b"").await.unwrap();
        drop(guard);
        fs::copy(&data, home.place.path().join("backup")).unwrap();
        let guard = home.guard(open(), kind).await;
        assert_eq!(guard.state(), State::Active);
        assert!(guard.delete(b"k").await.unwrap());
        if !matches!(guard.contains(b"k").await, Answer::Absent) {
            // This type forgets deleted keys when it is rebuilt.
            guard.rebuild().await.unwrap();
        }
        assert_eq!(guard.contains(b"k").await, Answer::Absent);
        drop(guard);
        fs::copy(home.place.path().join("backup"), &data).unwrap();
        let guard = home.guard(open(), kind).await;
        assert!(guard.data_set().get(b"k").await.unwrap().is_some(), "it is there again");
        assert_ne!(guard.contains(b"k").await, Answer::Absent);
        assert_eq!(guard.state(), State::Empty);
    }
}

#[tokio::test]
async fn a_folder_has_one_guard() {
    let home = Home::new();
    let set = home.redb();
    let guard = home.guard(set.clone(), Local::blocked(0.01).secret(SECRET)).await;
    let second =
        Guard::builder(set.clone(), Local::blocked(0.01).secret(SECRET)).folder(home.folder());
    assert!(matches!(second.start().await, Err(StartError::Locked)));
    drop(guard);
    home.guard(set, Local::blocked(0.01).secret(SECRET)).await;
    let file = home.place.path().join("data.redb");
    let on_a_file =
        Guard::builder(Faulty::default(), Local::blocked(0.01).secret(SECRET)).folder(file);
    assert!(matches!(on_a_file.start().await, Err(StartError::Io(_))));
}

#[tokio::test]
async fn what_is_not_trusted_is_not_kept() {
    let (home, set) = (Home::new(), Faulty::default());
    let guard = home.guard(set.clone(), Local::blocked(1e-4).secret(SECRET)).await;
    guard.rebuild().await.unwrap();
    assert!(guard.stats().kept);
    guard.distrust();
    assert!(!guard.stats().kept);
    assert!(home.files("umbel").is_empty());
    guard.put(b"k", b"").await.unwrap();
    drop(guard);
    let guard = home.guard(set.clone(), Local::blocked(1e-4).secret(SECRET)).await;
    assert_eq!(guard.state(), State::Empty);
    guard.rebuild().await.unwrap();
    assert_eq!(guard.contains(b"k").await, Answer::Maybe);
}

#[tokio::test]
async fn without_a_place_for_its_journal_a_guard_goes_on_and_leaves_no_old_filter() {
    let (home, set) = (Home::new(), Faulty::default());
    let guard = home.guard(set.clone(), Local::blocked(1e-4).secret(SECRET)).await;
    guard.rebuild().await.unwrap();
    // A checkpoint that fails changes nothing: a directory is at its path.
    for number in 2..10 {
        fs::create_dir(home.folder().join(format!("{number}.journal"))).unwrap();
    }
    guard.put(b"k", b"").await.unwrap();
    assert!(guard.checkpoint().await.is_err());
    assert!(guard.stats().kept);
    for number in 2..10 {
        fs::remove_dir(home.folder().join(format!("{number}.journal"))).unwrap();
    }
    drop(guard);
    let guard = home.guard(set.clone(), Local::blocked(1e-4).secret(SECRET)).await;
    assert_eq!((guard.state(), guard.contains(b"k").await), (State::Active, Answer::Maybe));
}

#[tokio::test]
async fn the_journal_is_cut_when_it_is_long() {
    let (home, set) = (Home::new(), Faulty::default());
    let builder =
        Guard::builder(set.clone(), Local::blocked(1e-4).secret(SECRET)).folder(home.folder());
    let guard = builder.checkpoint_every(100).without_background().start().await.unwrap();
    guard.rebuild().await.unwrap();
    for number in 0..250 {
        guard.put(&key(number), b"").await.unwrap();
        if number % 10 == 0 {
            set.doom(Fate::RolledBack);
            assert!(guard.put(b"rolled back", b"").await.is_err());
        }
        guard.tend().await;
        let length = fs::metadata(home.file("journal")).unwrap().len();
        assert!(length <= 128 + 16 * 102, "{length}");
    }
    assert!((2..=3).contains(&guard.stats().checkpoints), "{:?}", guard.stats());
    drop(guard);
    let guard = home.guard(set, Local::blocked(1e-4).secret(SECRET)).await;
    assert_eq!(guard.state(), State::Active);
    holds(&guard, 0..250).await;
}
