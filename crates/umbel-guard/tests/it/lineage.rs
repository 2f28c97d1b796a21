//! Copies and backups of data sets and folders, and guards that replace each other: the guard notices files and
//! data that do not belong together.

use crate::faulty::{Faulty, SECRET};
use crate::kinds::Exact;
use std::fs;
use std::path::Path;
use tempfile::TempDir;
use umbel_guard::{Answer, Family, Guard, GuardError, Local, RebuildError, State};

type Guarded = Guard<Faulty, Local>;

async fn start(set: &Faulty, folder: &Path) -> Guarded {
    let builder = Guard::builder(set.clone(), Local::blocked(1e-4).secret(SECRET)).folder(folder);
    builder.without_background().start().await.unwrap()
}

/// A guard that has built its filter and put some keys.
async fn begun(set: &Faulty, folder: &Path, keys: &[&[u8]]) -> Guarded {
    let guard = start(set, folder).await;
    guard.rebuild().await.unwrap();
    for key in keys {
        guard.put(key, b"").await.unwrap();
    }
    guard
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

fn folders() -> (TempDir, [std::path::PathBuf; 2]) {
    let place = tempfile::tempdir().unwrap();
    let folders = ["f", "g"].map(|name| place.path().join(name));
    (place, folders)
}

#[tokio::test]
async fn a_copy_that_another_guard_has_written_to_is_noticed_when_it_is_put_back() {
    let (_place, [f, g]) = folders();
    let set = Faulty::default();
    let guard = begun(&set, &f, &[b"1", b"2", b"3"]).await;
    let copy = set.backup();
    for key in [b"4", b"5", b"6", b"7", b"8"] {
        guard.put(key, b"").await.unwrap();
    }
    guard.close().await.unwrap();
    drop(guard);
    // The copy serves for a while, behind a guard with another folder: mark 4, where the first folder is at 8.
    let standby = Faulty::default();
    standby.restore(copy);
    drop(begun(&standby, &g, &[b"written to the copy"]).await);
    set.restore(standby.backup());
    let guard = start(&set, &f).await;
    assert_eq!(guard.state(), State::Empty);
    assert_ne!(guard.contains(b"written to the copy").await, Answer::Absent);
    guard.rebuild().await.unwrap();
    assert_eq!(guard.contains(b"written to the copy").await, Answer::Maybe);
}

#[tokio::test]
async fn a_folder_that_was_restored_from_a_backup_is_not_trusted() {
    for close in [false, true] {
        let (_place, [f, backup]) = folders();
        let set = Faulty::default();
        let guard = begun(&set, &f, &[b"1"]).await;
        if close {
            guard.close().await.unwrap();
        }
        drop(guard);
        copy(&f, &backup);
        // The next guard writes and ends, or only starts.
        let guard = start(&set, &f).await;
        assert_eq!(guard.state(), State::Active);
        guard.put(b"2", b"").await.unwrap();
        drop(guard);
        copy(&backup, &f);
        let guard = start(&set, &f).await;
        assert_eq!(guard.state(), State::Empty, "closed: {close}");
        assert_ne!(guard.contains(b"2").await, Answer::Absent);
    }
}

#[tokio::test]
async fn a_backup_of_a_folder_in_use_is_not_trusted_after_more_writes() {
    let (_place, [f, backup]) = folders();
    let set = Faulty::default();
    let guard = begun(&set, &f, &[b"1"]).await;
    copy(&f, &backup);
    guard.put(b"2", b"").await.unwrap();
    drop(guard);
    copy(&backup, &f);
    let guard = start(&set, &f).await;
    assert_eq!(guard.state(), State::Empty);
    assert_ne!(guard.contains(b"2").await, Answer::Absent);
}

#[tokio::test]
async fn a_guard_without_a_folder_makes_older_files_unusable() {
    let (_place, [f, _]) = folders();
    let set = Faulty::default();
    let guard = begun(&set, &f, &[b"1", b"2", b"3"]).await;
    guard.close().await.unwrap();
    drop(guard);
    let bare =
        Guard::builder(set.clone(), Local::blocked(1e-4).secret(SECRET)).without_background();
    let bare = bare.start().await.unwrap();
    bare.put(b"through the second guard", b"").await.unwrap();
    drop(bare);
    let guard = start(&set, &f).await;
    assert_eq!(guard.state(), State::Empty);
    assert_ne!(guard.contains(b"through the second guard").await, Answer::Absent);
}

#[tokio::test]
async fn marks_of_a_guard_without_a_folder_continue_those_of_the_set() {
    let (_place, [f, _]) = folders();
    let set = Faulty::default();
    drop(begun(&set, &f, &[b"1", b"2", b"3"]).await);
    let before = set.backup().mark();
    let bare =
        Guard::builder(set.clone(), Local::blocked(1e-4).secret(SECRET)).without_background();
    let bare = bare.start().await.unwrap();
    bare.put(b"4", b"").await.unwrap();
    bare.delete(b"1").await.unwrap();
    assert_eq!(set.backup().mark(), before + 2);
}

#[tokio::test]
async fn guards_that_share_a_filter_make_older_files_unusable() {
    let (_place, [f, _]) = folders();
    let set = Faulty::default();
    let guard = begun(&set, &f, &[b"1"]).await;
    guard.close().await.unwrap();
    drop(guard);
    let shared = Guard::builder(set.clone(), Exact::<true>::default()).without_background();
    let shared = shared.start().await.unwrap();
    shared.rebuild().await.unwrap();
    shared.put(b"through the fleet", b"").await.unwrap();
    drop(shared);
    let guard = start(&set, &f).await;
    assert_eq!(guard.state(), State::Empty);
    assert_ne!(guard.contains(b"through the fleet").await, Answer::Absent);
}

#[tokio::test]
async fn a_guard_that_another_one_has_replaced_takes_no_writes_and_says_nothing() {
    let (_place, [f, g]) = folders();
    for family in Family::CHANGING {
        let set = Faulty::default();
        let _ = (fs::remove_dir_all(&f), fs::remove_dir_all(&g));
        let first = Guard::builder(set.clone(), Local::new(family, 1e-4).secret(SECRET)).folder(&f);
        let first = first.without_background().start().await.unwrap();
        first.rebuild().await.unwrap();
        first.put(b"1", b"").await.unwrap();
        let second = begun(&set, &g, &[]).await;
        // The first guard would write a row that the second one does not know.
        assert!(matches!(first.put(b"2", b"").await, Err(GuardError::Superseded)), "{family:?}");
        assert!(!set.has(b"2") && set.has(b"1"));
        assert!(matches!(first.delete(b"1").await, Err(GuardError::Superseded)), "{family:?}");
        assert!(matches!(first.contains(b"2").await, Answer::Unknown(_)));
        assert!(matches!(first.rebuild().await, Err(RebuildError::Superseded)));
        assert!(matches!(first.active().await, Err(GuardError::Superseded)));
        assert!(first.get(b"1").await.unwrap().is_some(), "reads go through");
        assert_eq!(first.stats().doubts, 0, "the write did not happen and will not");
        second.put(b"3", b"").await.unwrap();
        assert_eq!(second.contains(b"1").await, Answer::Maybe);
    }
}

#[tokio::test]
async fn a_guard_notices_its_successor_without_writing() {
    let (_place, [f, g]) = folders();
    let set = Faulty::default();
    let first = begun(&set, &f, &[b"1"]).await;
    let second = begun(&set, &g, &[b"2"]).await;
    first.tend().await;
    assert_ne!(first.contains(b"2").await, Answer::Absent);
    second.tend().await;
    assert_eq!(second.state(), State::Active);
}

#[tokio::test]
async fn a_standby_that_takes_over_ends_the_trust_and_gets_a_filter_and_files() {
    let (_place, [f, _]) = folders();
    for kind in [Local::cuckoo(1e-4).secret(SECRET), Local::blocked(1e-4).secret(SECRET)] {
        let _ = fs::remove_dir_all(&f);
        let set = Faulty::default();
        let builder = Guard::builder(set.clone(), kind).folder(&f).without_background();
        let guard = builder.start().await.unwrap();
        guard.rebuild().await.unwrap();
        guard.put(b"deleted, and back with the standby", b"").await.unwrap();
        let lagging = set.backup();
        guard.delete(b"deleted, and back with the standby").await.unwrap();
        guard.rebuild().await.unwrap();
        set.fail_over(lagging);
        guard.tend().await;
        assert_ne!(guard.contains(b"deleted, and back with the standby").await, Answer::Absent);
        guard.put(b"written to the standby", b"").await.unwrap();
        drop(guard);
        let builder = Guard::builder(set.clone(), kind).folder(&f).without_background();
        let guard = builder.start().await.unwrap();
        assert_eq!(guard.state(), State::Active, "the files are those of the new primary");
        assert_eq!(guard.contains(b"written to the standby").await, Answer::Maybe);
        assert_eq!(guard.contains(b"never").await, Answer::Absent);
    }
}

#[tokio::test]
async fn a_backup_that_is_restored_under_a_running_guard_is_noticed_and_gets_a_filter() {
    let (_place, [f, _]) = folders();
    for kind in [Local::cuckoo(1e-4).secret(SECRET), Local::blocked(1e-4).secret(SECRET)] {
        // A backup from before this guard was started, with and without writes since.
        for writes in [true, false] {
            let _ = fs::remove_dir_all(&f);
            let set = Faulty::default();
            set.bypass(b"only in the backup");
            drop(begun(&set, &f, &[b"1"]).await);
            let backup = set.backup();
            set.bypass_delete(b"only in the backup");
            let builder = Guard::builder(set.clone(), kind).folder(&f).without_background();
            let guard = builder.start().await.unwrap();
            guard.rebuild().await.unwrap();
            if writes {
                guard.put(b"2", b"").await.unwrap();
            }
            assert_eq!(guard.contains(b"only in the backup").await, Answer::Absent);
            set.restore(backup);
            guard.tend().await;
            assert_ne!(guard.contains(b"only in the backup").await, Answer::Absent);
            guard.put(b"3", b"").await.unwrap();
            guard.tend().await;
            assert_eq!(guard.state(), State::Active);
            assert_eq!(guard.contains(b"only in the backup").await, Answer::Maybe);
            drop(guard);
            let guard = Guard::builder(set.clone(), kind).folder(&f).without_background();
            let guard = guard.start().await.unwrap();
            assert_eq!(guard.state(), State::Active, "the files belong to the restored set");
            assert_eq!(guard.contains(b"3").await, Answer::Maybe);
        }
    }
}

#[tokio::test]
async fn a_backup_from_before_a_rebuild_is_noticed_without_any_write() {
    let (_place, [f, _]) = folders();
    for family in Family::CHANGING {
        for running in [true, false] {
            let _ = fs::remove_dir_all(&f);
            let set = Faulty::default();
            set.bypass(b"only in the backup");
            let start = async || {
                let kind = Local::new(family, 1e-6).secret(SECRET);
                let builder = Guard::builder(set.clone(), kind).folder(&f);
                builder.without_background().start().await.unwrap()
            };
            let guard = start().await;
            guard.rebuild().await.unwrap();
            let backup = set.backup();
            // Deleted without the guard, and then removed from the filter.
            set.bypass_delete(b"only in the backup");
            guard.rebuild().await.unwrap();
            assert_eq!(guard.contains(b"only in the backup").await, Answer::Absent);
            let guard = if running {
                set.restore(backup);
                guard.tend().await;
                guard
            } else {
                guard.close().await.unwrap();
                drop(guard);
                set.restore(backup);
                start().await
            };
            let answer = guard.contains(b"only in the backup").await;
            assert_ne!(answer, Answer::Absent, "{family:?}, running: {running}");
        }
    }
}

#[tokio::test]
async fn an_older_copy_of_the_same_guard_is_noticed_while_it_runs() {
    let (_place, [f, _]) = folders();
    for family in Family::CHANGING {
        let _ = fs::remove_dir_all(&f);
        let set = Faulty::default();
        let builder = Guard::builder(set.clone(), Local::new(family, 1e-6).secret(SECRET));
        let guard = builder.folder(&f).without_background().start().await.unwrap();
        guard.rebuild().await.unwrap();
        guard.put(b"old", b"").await.unwrap();
        let backup = set.backup();
        guard.delete(b"old").await.unwrap();
        set.restore(backup);
        guard.tend().await;
        assert_ne!(guard.contains(b"old").await, Answer::Absent, "{family:?}");
        guard.put(b"new", b"").await.unwrap();
        assert_eq!(guard.contains(b"new").await, Answer::Maybe, "{family:?}");
    }
}

#[tokio::test]
async fn a_write_does_not_hide_that_an_older_copy_was_restored() {
    let (_place, [f, _]) = folders();
    for family in Family::CHANGING {
        for closed in [false, true] {
            let _ = fs::remove_dir_all(&f);
            let set = Faulty::default();
            let start = async || {
                let kind = Local::new(family, 1e-6).secret(SECRET);
                let builder = Guard::builder(set.clone(), kind).folder(&f).without_background();
                builder.start().await.unwrap()
            };
            let guard = start().await;
            guard.rebuild().await.unwrap();
            guard.put(b"old", b"").await.unwrap();
            let backup = set.backup();
            guard.delete(b"old").await.unwrap();
            set.restore(backup);
            // Before the guard has looked at the data set. The put raises the mark, unless it is refused.
            let put = guard.put(b"new", b"").await;
            let deleted = guard.delete(b"neither").await;
            let guard = if closed {
                guard.close().await.unwrap();
                drop(guard);
                start().await
            } else {
                guard.tend().await;
                guard
            };
            let answer = guard.contains(b"old").await;
            assert_ne!(answer, Answer::Absent, "{family:?}, closed: {closed}");
            if put.is_ok() {
                assert_eq!(guard.get(b"new").await.unwrap().as_deref(), Some(&b""[..]));
            }
            assert!(!deleted.is_ok_and(|deleted| deleted));
            guard.rebuild().await.unwrap();
            guard.put(b"newer", b"").await.unwrap();
            assert_eq!(guard.contains(b"old").await, Answer::Maybe);
        }
    }
}

#[tokio::test]
async fn a_data_set_that_says_it_was_replaced_ends_the_trust() {
    let (_place, [f, _]) = folders();
    let set = Faulty::default();
    let guard = begun(&set, &f, &[b"1"]).await;
    assert_eq!(guard.contains(b"2").await, Answer::Absent);
    set.0.replaced.store(true, std::sync::atomic::Ordering::SeqCst);
    guard.tend().await;
    assert_ne!(guard.contains(b"2").await, Answer::Absent);
    assert!(guard.put(b"2", b"").await.is_err());
}

#[tokio::test]
async fn a_guard_that_only_reads_changes_nothing() {
    let (place, [f, g]) = folders();
    let set = Faulty::default();
    drop(begun(&set, &f, &[b"1"]).await);
    let bytes = |folder: &Path| {
        let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
        files.sort();
        files.iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect::<Vec<_>>()
    };
    let (before, stamp) = (bytes(&f), set.backup());
    let reading = async |folder: &Path| {
        let builder =
            Guard::builder(set.clone(), Local::blocked(1e-4).secret(SECRET)).folder(folder);
        builder.read_only().without_background().start().await.unwrap()
    };
    let guard = reading(&f).await;
    assert_eq!(guard.state(), State::Active);
    assert_eq!(guard.contains(b"1").await, Answer::Maybe);
    assert_eq!(guard.contains(b"2").await, Answer::Absent);
    assert!(matches!(guard.put(b"2", b"").await, Err(GuardError::ReadOnly)));
    assert!(matches!(guard.delete(b"1").await, Err(GuardError::ReadOnly)));
    guard.rebuild().await.unwrap();
    guard.tend().await;
    assert!(!guard.checkpoint().await.unwrap());
    let second = reading(&f).await;
    assert_eq!(second.state(), State::Active, "two can read");
    let writes = Guard::builder(set.clone(), Local::blocked(1e-4).secret(SECRET)).folder(&f);
    assert!(matches!(writes.start().await, Err(umbel_guard::StartError::Locked)));
    guard.close().await.unwrap();
    drop((guard, second));
    assert_eq!(bytes(&f), before);
    assert_eq!(set.backup(), stamp);
    // A missing folder is not created, and unusable files stay.
    let guard = reading(&g).await;
    assert!(guard.state() == State::Empty && !g.exists());
    guard.rebuild().await.unwrap();
    assert_eq!(guard.contains(b"1").await, Answer::Maybe);
    drop(guard);
    let other = place.path().join("other");
    copy(&f, &other);
    let journal = before.iter().find(|(path, _)| path.extension().is_some_and(|e| e == "journal"));
    let journal = other.join(journal.unwrap().0.file_name().unwrap());
    fs::write(&journal, b"damaged").unwrap();
    assert_eq!(reading(&other).await.state(), State::Empty);
    assert_eq!(fs::read(&journal).unwrap(), b"damaged");
}

#[cfg(unix)]
#[tokio::test]
async fn a_folder_is_private_and_is_not_left_by_links() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use umbel_guard::StartError;
    let (place, [f, g]) = folders();
    let set = Faulty::default();
    let inner = f.join("deep").join("folder");
    // The random secret is in the file of the filter.
    let guard = Guard::builder(set.clone(), Local::blocked(1e-4)).folder(&inner);
    let guard = guard.without_background().start().await.unwrap();
    guard.rebuild().await.unwrap();
    assert_eq!(fs::metadata(&inner).unwrap().mode() & 0o7777, 0o700);
    for entry in fs::read_dir(&inner).unwrap() {
        assert_eq!(entry.unwrap().metadata().unwrap().mode() & 0o077, 0);
    }
    drop(guard);
    let open = async |folder: &Path| {
        let builder =
            Guard::builder(set.clone(), Local::blocked(1e-4).secret(SECRET)).folder(folder);
        builder.without_background().start().await
    };
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o770)).unwrap();
    assert!(matches!(open(&inner).await, Err(StartError::Writable { mode: 0o770 })));
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(open(&inner).await.is_ok());
    // A symbolic link in place of the lock or of the next journal is not followed, and its target stays
    // unchanged.
    let victim = place.path().join("victim");
    fs::write(&victim, b"of value").unwrap();
    fs::create_dir(&g).unwrap();
    fs::set_permissions(&g, fs::Permissions::from_mode(0o700)).unwrap();
    symlink(&victim, g.join("lock")).unwrap();
    assert!(matches!(open(&g).await, Err(StartError::Io(_))));
    fs::remove_file(g.join("lock")).unwrap();
    let guard = open(&g).await.unwrap();
    symlink(&victim, g.join("1.journal")).unwrap();
    guard.rebuild().await.unwrap();
    guard.put(b"2", b"").await.unwrap();
    assert!(!guard.stats().kept, "the journal could not be made");
    assert_eq!(fs::read(&victim).unwrap(), b"of value");
}

#[tokio::test]
async fn the_lock_of_a_folder_ends_with_its_guard_while_other_threads_start_programs() {
    let (_place, [f, _]) = folders();
    let set = Faulty::default();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let stop = stop.clone();
            std::thread::spawn(move || {
                while !stop.load(std::sync::atomic::Ordering::SeqCst) {
                    // While a program is spawned, the child process briefly holds all open files.
                    std::process::Command::new("/bin/true").status().unwrap();
                }
            })
        })
        .collect();
    let mut locked = 0;
    for _ in 0..300 {
        let builder = Guard::builder(set.clone(), Local::blocked(0.1).secret(SECRET)).folder(&f);
        locked += u32::from(builder.without_background().start().await.is_err());
    }
    stop.store(true, std::sync::atomic::Ordering::SeqCst);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(locked, 0);
}
