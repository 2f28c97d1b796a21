//! Guarantees that a single condition in the source keeps. Each test fails without that condition.

use crate::faulty::{Break, Fate, Faulty, SECRET};
use crate::kinds::Exact;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use umbel_guard::{
    Answer, Builder, Family, Guard, GuardError, Local, RebuildError, StartError, State, Trouble,
};

type Guarded = Guard<Faulty, Local>;
type Rebuilding = JoinHandle<Result<u64, RebuildError<crate::faulty::Fault>>>;

const REMOVES: [Family; 3] = [Family::Counting, Family::Cuckoo, Family::Quotient];

/// A guard without an audit, so that it detects faults in other ways.
fn unaudited(set: &Faulty, family: Family) -> Builder<Faulty, Local> {
    let kind = Local::new(family, 1e-6).secret(SECRET);
    let builder = Guard::builder(set.clone(), kind).without_background();
    builder.audit(0, Duration::from_secs(1)).scan(10, 1.0)
}

async fn kept(set: &Faulty, family: Family, folder: &Path) -> Guarded {
    unaudited(set, family).folder(folder).start().await.unwrap()
}

fn filled(keys: u32) -> Faulty {
    let set = Faulty::default();
    (0..keys).for_each(|number| set.bypass(&number.to_be_bytes()));
    set
}

/// Begins a rebuild, and returns when it reads pages.
async fn reading(guard: &Guarded) -> Rebuilding {
    let scans = guard.data_set().0.scans.load(SeqCst);
    let rebuilding = tokio::spawn({
        let guard = guard.clone();
        async move { guard.rebuild().await }
    });
    // The first scan counts, the second one reads.
    while guard.data_set().0.scans.load(SeqCst) < scans + 2 {
        tokio::task::yield_now().await;
    }
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert!(!rebuilding.is_finished());
    rebuilding
}

fn files(folder: &Path, ending: &str) -> Vec<std::path::PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|end| end == ending)).collect()
}

#[tokio::test]
async fn closing_waits_for_writes_that_began_before_it() {
    let set = Faulty::default();
    let guard = unaudited(&set, Family::Blocked).start().await.unwrap();
    guard.rebuild().await.unwrap();
    let gate = set.write_gate(0);
    let putting = tokio::spawn({
        let guard = guard.clone();
        async move { guard.put(b"k", b"").await }
    });
    while guard.contains(b"k").await == Answer::Absent {
        tokio::task::yield_now().await;
    }
    let closing = tokio::spawn({
        let guard = guard.clone();
        async move { guard.close().await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!closing.is_finished());
    gate.add_permits(1);
    putting.await.unwrap().unwrap();
    closing.await.unwrap().unwrap();
    assert!(set.has(b"k"));
}

#[tokio::test(start_paused = true)]
async fn a_comparison_of_all_keys_that_failed_is_made_up_for() {
    for rebuilds in [false, true] {
        let set = filled(100);
        let guard = unaudited(&set, Family::Blocked).start().await.unwrap();
        guard.rebuild().await.unwrap();
        set.bypass(b"\xff written without the guard");
        set.show_foreign_writes();
        set.break_scan(Break::Fails(0));
        guard.tend().await;
        assert_eq!(guard.contains(b"\xff written without the guard").await, Answer::Absent);
        if rebuilds {
            // A rebuild would have seen the row, but it fails too.
            set.break_scan(Break::Fails(usize::MAX));
            set.break_scan(Break::Fails(5));
            assert!(guard.rebuild().await.is_err());
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        guard.tend().await;
        let answer = guard.contains(b"\xff written without the guard").await;
        assert_ne!(answer, Answer::Absent, "failed rebuild: {rebuilds}");
    }
}

#[tokio::test(start_paused = true)]
async fn foreign_writes_lead_to_another_filter_in_families_that_remove_keys() {
    for family in REMOVES {
        for fails in [false, true] {
            let set = filled(100);
            let builder = unaudited(&set, family).rest(Duration::from_secs(60));
            let guard = builder.start().await.unwrap();
            guard.rebuild().await.unwrap();
            tokio::time::sleep(Duration::from_secs(61)).await;
            // The written row shares the entry of another one, so no key is missing.
            set.show_foreign_writes();
            if fails {
                // The comparison reads all keys. The rebuild counts, and then fails.
                set.break_scan(Break::Fails(usize::MAX));
                set.break_scan(Break::Fails(usize::MAX));
                set.break_scan(Break::Fails(5));
            }
            guard.tend().await;
            assert_eq!(guard.stats().rebuilds, if fails { 1 } else { 2 }, "{family:?}");
            tokio::time::sleep(Duration::from_secs(1)).await;
            guard.tend().await;
            assert_eq!(guard.stats().rebuilds, 2, "{family:?}, failed: {fails}");
        }
    }
}

#[tokio::test]
async fn a_key_deleted_during_a_rebuild_is_in_neither_filter_of_families_that_remove_keys() {
    for family in REMOVES {
        let set = filled(1_000);
        let guard = unaudited(&set, family).start().await.unwrap();
        guard.rebuild().await.unwrap();
        let rebuilding = reading(&guard).await;
        assert!(guard.delete(&999_u32.to_be_bytes()).await.unwrap());
        assert_eq!(guard.contains(&999_u32.to_be_bytes()).await, Answer::Absent);
        assert!(!rebuilding.is_finished());
        rebuilding.await.unwrap().unwrap();
        assert_eq!(guard.contains(&999_u32.to_be_bytes()).await, Answer::Absent, "{family:?}");
    }
}

#[tokio::test]
async fn a_row_replaced_during_a_rebuild_keeps_one_entry_that_the_scan_may_lack() {
    for family in REMOVES {
        let set = filled(2_000);
        let guard = unaudited(&set, family).start().await.unwrap();
        let rebuilding = reading(&guard).await;
        set.bypass(b"written without the guard");
        for value in [&b"1"[..], b"2", b"3"] {
            guard.put(b"written without the guard", value).await.unwrap();
        }
        assert!(!rebuilding.is_finished());
        rebuilding.await.unwrap().unwrap();
        let answer = guard.contains(b"written without the guard").await;
        assert_eq!(answer, Answer::Maybe, "{family:?}");
    }
}

#[tokio::test]
async fn a_data_set_that_is_replaced_during_a_rebuild_gets_no_filter_of_the_old_one() {
    for failover in [true, false] {
        let set = filled(1_000);
        let mut other = Faulty::default();
        other.bypass(b"only in the other set");
        // A copy with the stamp of an earlier guard.
        let earlier = unaudited(&other, Family::Blocked).start().await.unwrap();
        drop(earlier);
        let guard = unaudited(&set, Family::Blocked).start().await.unwrap();
        let rebuilding = reading(&guard).await;
        if failover {
            // The standby already had the stamp of this guard, so only its identity differs.
            let stamped = set.backup();
            other = Faulty::default();
            other.restore(stamped);
            other.bypass(b"only in the other set");
            set.fail_over(other.backup());
        } else {
            set.restore(other.backup());
        }
        let built = rebuilding.await.unwrap();
        assert!(matches!(built, Err(RebuildError::Overtaken)), "failover: {failover}, {built:?}");
        assert_ne!(guard.contains(b"only in the other set").await, Answer::Absent);
    }
}

#[tokio::test]
async fn a_guard_survives_backups_of_all_its_incarnations() {
    let set = filled(10);
    let guard = unaudited(&set, Family::Blocked).start().await.unwrap();
    guard.rebuild().await.unwrap();
    let before_the_rebuild = set.backup();
    guard.rebuild().await.unwrap();
    let after_the_rebuild = set.backup();
    for backup in [before_the_rebuild.clone(), after_the_rebuild, before_the_rebuild] {
        set.restore(backup);
        let rebuilds = guard.stats().rebuilds;
        guard.tend().await;
        assert_eq!(guard.stats().rebuilds, rebuilds + 1);
        assert_eq!(guard.state(), State::Active, "it is not taken for the set of another guard");
    }
    guard.put(b"k", b"").await.unwrap();
    assert_eq!(guard.contains(b"k").await, Answer::Maybe);
}

#[tokio::test]
async fn an_older_copy_is_noticed_by_its_mark_alone_and_once() {
    let place = tempfile::tempdir().unwrap();
    for family in Family::CHANGING {
        for deletes in [true, false] {
            for folder in [true, false] {
                let set = filled(10);
                let folder = folder.then(|| place.path().join(format!("{family:?} {deletes}")));
                let builder = unaudited(&set, family);
                let builder = match &folder {
                    Some(folder) => builder.folder(folder),
                    None => builder,
                };
                let guard = builder.start().await.unwrap();
                guard.rebuild().await.unwrap();
                guard.put(b"k", b"").await.unwrap();
                let backup = set.backup();
                if deletes {
                    guard.delete(b"k").await.unwrap();
                } else {
                    guard.put(b"lost", b"").await.unwrap();
                }
                set.restore(backup);
                let what = format!("{family:?}, deletes: {deletes}, folder: {folder:?}");
                guard.tend().await;
                assert_eq!(guard.contains(b"k").await, Answer::Maybe, "{what}");
                assert_eq!((guard.stats().rebuilds, guard.stats().trips), (2, 1), "{what}");
                guard.tend().await;
                assert_eq!((guard.stats().rebuilds, guard.stats().trips), (2, 1), "{what}");
            }
        }
    }
}

#[tokio::test]
async fn another_identity_ends_the_trust_without_an_audit() {
    let set = filled(10);
    let guard = unaudited(&set, Family::Blocked).start().await.unwrap();
    guard.rebuild().await.unwrap();
    let standby = Faulty::default();
    standby.restore(set.backup());
    standby.bypass(b"only on the standby");
    set.fail_over(standby.backup());
    // The filter cannot be built at once, and the old one is not used in the meantime.
    set.break_scan(Break::Fails(usize::MAX));
    set.break_scan(Break::Fails(0));
    guard.tend().await;
    assert_ne!(guard.contains(b"only on the standby").await, Answer::Absent);
    assert_eq!(guard.stats().trips, 1);
}

#[tokio::test(start_paused = true)]
async fn a_first_scan_waits_for_statements_of_the_guard_before() {
    let set = Faulty::default();
    set.0.stampless.store(true, SeqCst);
    set.0.lingering.store(30, SeqCst);
    let first = unaudited(&set, Family::Blocked).start().await.unwrap();
    set.doom(Fate::Hangs(Duration::from_secs(20)));
    let killed = tokio::time::timeout(Duration::from_millis(1), first.put(b"k", b"")).await;
    assert!(killed.is_err() && !set.has(b"k"));
    drop(first);
    let second = unaudited(&set, Family::Blocked).start().await.unwrap();
    second.rebuild().await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(set.has(b"k"));
    assert_ne!(second.contains(b"k").await, Answer::Absent);
}

#[tokio::test(start_paused = true)]
async fn a_delete_leaves_the_entry_of_a_key_that_may_still_be_written() {
    for family in REMOVES {
        let set = Faulty::default();
        // With a stamp, the set would refuse writes from before the rebuild.
        set.0.stampless.store(true, SeqCst);
        let guard = unaudited(&set, family).start().await.unwrap();
        for seconds in [60, 120] {
            set.doom(Fate::Late(Duration::from_secs(seconds)));
            assert!(guard.put(b"k", b"").await.is_err());
        }
        // One entry for both writes.
        guard.rebuild().await.unwrap();
        tokio::time::sleep(Duration::from_secs(90)).await;
        assert!(guard.delete(b"k").await.unwrap());
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(set.has(b"k"));
        assert_eq!(guard.contains(b"k").await, Answer::Maybe, "{family:?}");
    }
}

#[tokio::test]
async fn a_filter_that_lost_keys_while_it_was_built_is_not_used() {
    let (set, kind) = (filled(100), Exact::<false>::default());
    kind.forgets.store(true, SeqCst);
    let builder = Guard::builder(set.clone(), kind.clone()).without_background();
    let guard = builder.start().await.unwrap();
    assert!(matches!(guard.rebuild().await, Err(RebuildError::Lost { keys: 1 })));
    assert_eq!(guard.state(), State::Empty);
    kind.forgets.store(false, SeqCst);
    assert_eq!(guard.rebuild().await.unwrap(), 100);
}

#[tokio::test]
async fn a_filter_that_a_write_did_not_reach_is_not_used() {
    let (set, kind) = (filled(1_000), Exact::<false>::default());
    let builder = Guard::builder(set.clone(), kind.clone()).scan(10, 1.0).without_background();
    let guard = builder.start().await.unwrap();
    guard.rebuild().await.unwrap();
    // One addition to the second filter fails.
    *kind.second.lock().unwrap() = Some(Arc::new(Semaphore::new(1)));
    let scans = set.0.scans.load(SeqCst);
    let rebuilding = tokio::spawn({
        let guard = guard.clone();
        async move { guard.rebuild().await }
    });
    while set.0.scans.load(SeqCst) < scans + 2 {
        tokio::task::yield_now().await;
    }
    guard.put(b"k", b"").await.unwrap();
    assert!(matches!(rebuilding.await.unwrap(), Err(RebuildError::Overtaken)));
    assert_eq!((guard.state(), guard.contains(b"k").await), (State::Active, Answer::Maybe));
}

#[tokio::test]
async fn a_put_that_is_dropped_before_it_writes_does_not_spoil_a_rebuild() {
    let (set, kind) = (filled(1_000), Exact::<false>::default());
    let builder = Guard::builder(set.clone(), kind.clone()).scan(10, 1.0).without_background();
    let guard = builder.filter_timeout(Duration::from_secs(3600)).start().await.unwrap();
    guard.rebuild().await.unwrap();
    *kind.second.lock().unwrap() = Some(Arc::new(Semaphore::new(0)));
    let scans = set.0.scans.load(SeqCst);
    let rebuilding = tokio::spawn({
        let guard = guard.clone();
        async move { guard.rebuild().await }
    });
    while set.0.scans.load(SeqCst) < scans + 2 {
        tokio::task::yield_now().await;
    }
    // The put waits for the addition to the second filter, and is dropped there.
    let putting = tokio::spawn({
        let guard = guard.clone();
        async move { guard.put(b"k", b"").await }
    });
    tokio::task::yield_now().await;
    putting.abort();
    assert!(putting.await.is_err());
    rebuilding.await.unwrap().unwrap();
    assert_eq!(set.value(b"k"), None);
}

#[tokio::test]
async fn a_miss_during_a_rebuild_spoils_it_and_its_files() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("f");
    let set = filled(1_000);
    let guard = kept(&set, Family::Blocked, &folder).await;
    guard.rebuild().await.unwrap();
    let rebuilding = reading(&guard).await;
    // After the snapshot, and before all other keys, where the audit begins.
    set.bypass(b"");
    assert_eq!(guard.audit(10).await.unwrap(), 1);
    assert!(!rebuilding.is_finished());
    assert!(matches!(rebuilding.await.unwrap(), Err(RebuildError::Overtaken)));
    assert_ne!(guard.contains(b"").await, Answer::Absent);
    assert!(files(&folder, "umbel").is_empty() && files(&folder, "journal").is_empty());
    drop(guard);
    let guard = kept(&set, Family::Blocked, &folder).await;
    assert_eq!(guard.state(), State::Empty);
    assert_ne!(guard.contains(b"").await, Answer::Absent);
}

#[tokio::test]
async fn a_filter_that_cannot_be_saved_leaves_no_older_one() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("f");
    let set = filled(10);
    let guard = kept(&set, Family::Blocked, &folder).await;
    guard.rebuild().await.unwrap();
    assert!(guard.stats().kept);
    // A directory is at the path of the next journal.
    fs::create_dir(folder.join("2.journal")).unwrap();
    guard.rebuild().await.unwrap();
    assert!(!guard.stats().kept);
    assert!(!folder.join("1.umbel").exists());
}

#[tokio::test(start_paused = true)]
async fn a_member_of_a_fleet_without_a_filter_writes_nothing() {
    let (set, kind) = (Faulty::default(), Exact::<true>::default());
    let one = Guard::builder(set.clone(), kind.clone()).without_background();
    let one = one.start().await.unwrap();
    one.rebuild().await.unwrap();
    // The second guard has not found the filter yet.
    let two = Guard::builder(set.clone(), kind.clone()).without_background();
    let two = two.set_timeout(Duration::from_secs(1)).start().await.unwrap();
    let put = two.put(b"k", b"").await;
    assert!(matches!(put, Err(GuardError::Filter(Trouble::Gone))), "{put:?}");
    assert!(!set.has(b"k"));
}

#[tokio::test]
async fn a_write_during_which_a_rebuild_ends_is_carried_out() {
    for deletes in [false, true] {
        let set = filled(1_000);
        let guard = unaudited(&set, Family::Blocked).start().await.unwrap();
        let rebuilding = reading(&guard).await;
        // The write has the old incarnation, and is refused after the rebuild has stored another one.
        let gate = set.write_gate(0);
        let writing = tokio::spawn({
            let guard = guard.clone();
            async move {
                match deletes {
                    true => guard.delete(&5_u32.to_be_bytes()).await.map(drop),
                    false => guard.put(b"k", b"").await,
                }
            }
        });
        rebuilding.await.unwrap().unwrap();
        assert!(!writing.is_finished());
        gate.add_permits(2);
        writing.await.unwrap().unwrap();
        assert_eq!((set.has(b"k"), set.has(&5_u32.to_be_bytes())), (!deletes, !deletes));
    }
}

#[tokio::test(start_paused = true)]
async fn absences_are_forgotten_by_writes_and_not_remembered_in_doubt() {
    let set = Faulty::default();
    let builder = unaudited(&set, Family::Blocked);
    let builder = builder.remember_absences(10_000, Duration::from_secs(3600));
    let guard = builder.start().await.unwrap();
    guard.rebuild().await.unwrap();
    // In the filter, and not in the set: a remembered absence.
    guard.put(b"k", b"1").await.unwrap();
    guard.delete(b"k").await.unwrap();
    for _ in 0..2 {
        assert_eq!(guard.get(b"k").await.unwrap(), None);
    }
    assert_eq!(guard.stats().remembered, 1);
    guard.put(b"k", b"2").await.unwrap();
    assert_eq!(guard.get(b"k").await.unwrap().as_deref(), Some(&b"2"[..]));
    // A write with an unknown outcome, which happens later.
    set.doom(Fate::Late(Duration::from_secs(60)));
    assert!(guard.put(b"late", b"3").await.is_err());
    assert_eq!(guard.get(b"late").await.unwrap(), None);
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(guard.get(b"late").await.unwrap().as_deref(), Some(&b"3"[..]));
}

#[tokio::test]
async fn absences_are_forgotten_when_the_trust_ends() {
    let set = Faulty::default();
    let builder = unaudited(&set, Family::Blocked);
    let builder = builder.remember_absences(10_000, Duration::from_secs(3600));
    let guard = builder.start().await.unwrap();
    guard.rebuild().await.unwrap();
    guard.put(b"k", b"1").await.unwrap();
    guard.delete(b"k").await.unwrap();
    assert_eq!(guard.get(b"k").await.unwrap(), None);
    set.bypass(b"k");
    guard.distrust();
    guard.rebuild().await.unwrap();
    assert!(guard.get(b"k").await.unwrap().is_some());
}

#[tokio::test]
async fn a_look_up_after_a_delete_does_not_share_an_earlier_answer() {
    let set = Faulty::default();
    let guard = unaudited(&set, Family::Blocked).start().await.unwrap();
    guard.put(b"k", b"v").await.unwrap();
    let gate = set.answer_gate(0);
    let look_up = || {
        let guard = guard.clone();
        tokio::spawn(async move { guard.get(b"k").await })
    };
    let early = look_up();
    while set.gets() == 0 {
        tokio::task::yield_now().await;
    }
    for _ in 0..5 {
        tokio::task::yield_now().await;
    }
    assert!(guard.delete(b"k").await.unwrap());
    let late = look_up();
    for _ in 0..5 {
        tokio::task::yield_now().await;
    }
    gate.add_permits(2);
    assert_eq!(early.await.unwrap().unwrap().as_deref(), Some(&b"v"[..]));
    assert_eq!(late.await.unwrap().unwrap(), None);
}

#[tokio::test]
async fn a_look_up_of_a_key_in_doubt_is_not_shared() {
    let set = Faulty::default();
    let guard = unaudited(&set, Family::Blocked).start().await.unwrap();
    set.doom(Fate::RolledBack);
    assert!(guard.put(b"k", b"v").await.is_err());
    let gate = set.answer_gate(0);
    let look_up = || {
        let guard = guard.clone();
        tokio::spawn(async move { guard.get(b"k").await })
    };
    let early = look_up();
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    // The write happens after the first look-up has read the set, and the guard is not notified.
    set.bypass(b"k");
    let late = look_up();
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    gate.add_permits(2);
    assert_eq!(early.await.unwrap().unwrap(), None);
    assert!(late.await.unwrap().unwrap().is_some());
}

#[tokio::test]
async fn marks_continue_behind_writes_that_only_the_journal_has() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("f");
    let set = Faulty::default();
    let guard = kept(&set, Family::Blocked, &folder).await;
    guard.rebuild().await.unwrap();
    set.doom(Fate::RolledBack);
    assert!(guard.put(b"rolled back", b"").await.is_err());
    drop(guard);
    let guard = kept(&set, Family::Blocked, &folder).await;
    assert_eq!(guard.state(), State::Active);
    guard.put(b"k", b"").await.unwrap();
    drop(guard);
    // The record of the last write is lost, as in a power failure.
    let journal = &files(&folder, "journal")[0];
    let bytes = fs::read(journal).unwrap();
    fs::write(journal, &bytes[..bytes.len() - 16]).unwrap();
    let guard = kept(&set, Family::Blocked, &folder).await;
    assert_eq!(guard.state(), State::Empty);
    assert_ne!(guard.contains(b"k").await, Answer::Absent);
}

#[tokio::test]
async fn a_set_without_a_delete_that_the_saved_filter_has_is_noticed() {
    let place = tempfile::tempdir().unwrap();
    for family in REMOVES {
        let folder = place.path().join(format!("{family:?}"));
        let set = Faulty::default();
        let guard = kept(&set, family, &folder).await;
        guard.rebuild().await.unwrap();
        guard.put(b"k", b"").await.unwrap();
        let backup = set.backup();
        guard.delete(b"k").await.unwrap();
        guard.checkpoint().await.unwrap();
        drop(guard);
        // The same incarnation, and the journal reaches the mark.
        set.restore(backup);
        let guard = kept(&set, family, &folder).await;
        assert_eq!(guard.state(), State::Empty, "{family:?}");
        assert_ne!(guard.contains(b"k").await, Answer::Absent, "{family:?}");
    }
}

#[tokio::test]
async fn a_journal_that_ends_within_a_record_is_continued() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("f");
    let set = Faulty::default();
    let guard = kept(&set, Family::Blocked, &folder).await;
    guard.rebuild().await.unwrap();
    drop(guard);
    for key in [b"1", b"2"] {
        // The state that a process leaves when it is killed during a write.
        let journal = &files(&folder, "journal")[0];
        let mut bytes = fs::read(journal).unwrap();
        bytes.extend([7; 5]);
        fs::write(journal, bytes).unwrap();
        let guard = kept(&set, Family::Blocked, &folder).await;
        assert_eq!(guard.state(), State::Active);
        guard.put(key, b"").await.unwrap();
    }
    let guard = kept(&set, Family::Blocked, &folder).await;
    assert_eq!(guard.state(), State::Active);
    assert_eq!(guard.contains(b"1").await, Answer::Maybe);
    assert_eq!(guard.contains(b"3").await, Answer::Absent);
}

#[tokio::test]
async fn a_copy_with_the_same_stamp_and_another_identity_gets_a_filter_of_its_own() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("f");
    let set = Faulty::default();
    let guard = kept(&set, Family::Blocked, &folder).await;
    guard.rebuild().await.unwrap();
    guard.close().await.unwrap();
    drop(guard);
    // `CREATE DATABASE shop2 TEMPLATE shop` copies the stamp as well.
    set.fail_over(set.backup());
    set.bypass(b"only in the copy");
    let guard = kept(&set, Family::Blocked, &folder).await;
    assert_eq!(guard.state(), State::Empty);
    assert_ne!(guard.contains(b"only in the copy").await, Answer::Absent);
}

#[tokio::test]
async fn files_are_not_used_where_no_stamp_can_be_read_or_stored() {
    let place = tempfile::tempdir().unwrap();
    for read_only in [true, false] {
        let folder = place.path().join(format!("{read_only}"));
        let set = Faulty::default();
        drop(kept(&set, Family::Blocked, &folder).await);
        let guard = kept(&set, Family::Blocked, &folder).await;
        guard.rebuild().await.unwrap();
        drop(guard);
        let again = async || {
            let builder = unaudited(&set, Family::Blocked).folder(&folder);
            let builder = if read_only { builder.read_only() } else { builder };
            builder.start().await.unwrap()
        };
        // A guard that may read the stamp but not store one writes without it.
        set.0.refuses_begin.store(true, SeqCst);
        assert_eq!(again().await.state() == State::Active, read_only);
        set.0.stampless.store(true, SeqCst);
        assert_eq!(again().await.state(), State::Empty, "read only: {read_only}");
    }
}

#[tokio::test]
async fn a_guard_that_ended_between_its_journal_and_the_set_can_use_its_files_again() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("f");
    let set = Faulty::default();
    let guard = kept(&set, Family::Blocked, &folder).await;
    guard.rebuild().await.unwrap();
    guard.put(b"k", b"").await.unwrap();
    drop(guard);
    // Twice in a row: the journal has two incarnations that the set does not have.
    for _ in 0..2 {
        set.0.fails_begin.store(true, SeqCst);
        let started = unaudited(&set, Family::Blocked).folder(&folder).start().await;
        assert!(matches!(started, Err(StartError::DataSet(_))));
    }
    let guard = kept(&set, Family::Blocked, &folder).await;
    assert_eq!((guard.state(), guard.contains(b"k").await), (State::Active, Answer::Maybe));
}

#[tokio::test]
async fn a_write_of_another_guard_during_the_start_is_noticed() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("f");
    let set = Faulty::default();
    let guard = kept(&set, Family::Blocked, &folder).await;
    guard.rebuild().await.unwrap();
    drop(guard);
    *set.0.written_before_begin.lock().unwrap() = Some(b"of the other guard".to_vec());
    let guard = kept(&set, Family::Blocked, &folder).await;
    assert!(set.has(b"of the other guard"));
    assert_eq!(guard.state(), State::Empty);
    assert_ne!(guard.contains(b"of the other guard").await, Answer::Absent);
}

#[tokio::test]
async fn a_journal_beside_a_filter_with_another_secret_is_not_used() {
    let place = tempfile::tempdir().unwrap();
    let set = Faulty::default();
    let start = async |name: &str| {
        let builder = Guard::builder(set.clone(), Local::blocked(1e-6)).without_background();
        builder.folder(place.path().join(name)).start().await.unwrap()
    };
    for name in ["f", "g"] {
        let guard = start(name).await;
        guard.rebuild().await.unwrap();
        guard.put(b"k", b"").await.unwrap();
    }
    let [f, g] = ["f", "g"].map(|name| files(&place.path().join(name), "umbel")[0].clone());
    fs::copy(f, g).unwrap();
    let guard = start("g").await;
    assert_eq!(guard.state(), State::Empty);
    assert_ne!(guard.contains(b"k").await, Answer::Absent);
}

#[cfg(unix)]
#[tokio::test]
async fn a_folder_of_another_user_is_not_used_and_readers_require_a_private_one() {
    use std::os::unix::fs::{PermissionsExt, chown};
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("f");
    let set = Faulty::default();
    drop(kept(&set, Family::Blocked, &folder).await);
    let start = async |reads| {
        let builder = unaudited(&set, Family::Blocked).folder(&folder);
        let builder = if reads { builder.read_only() } else { builder };
        builder.start().await
    };
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o770)).unwrap();
    assert!(matches!(start(true).await, Err(StartError::Writable { .. })));
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    assert!(start(true).await.is_ok());
    // Only root can give a folder away.
    if chown(&folder, Some(12_345), None).is_ok() {
        for reads in [false, true] {
            let started = start(reads).await;
            assert!(matches!(started, Err(StartError::Owner { owner: 12_345, .. })), "{reads}");
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn pipes_in_the_folder_hold_up_no_guard() {
    for name in ["lock", "1.journal", "1.umbel"] {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("f");
        let set = filled(20);
        let guard = kept(&set, Family::Blocked, &folder).await;
        guard.rebuild().await.unwrap();
        guard.close().await.unwrap();
        drop(guard);
        let names: Vec<_> =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        let wanted = Path::new(name).extension();
        let name = names.iter().find(|found| Path::new(found).extension() == wanted).unwrap();
        let path = folder.join(name);
        fs::remove_file(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        for reads in [true, false] {
            let builder = unaudited(&set, Family::Blocked).folder(&folder);
            let builder = if reads { builder.read_only() } else { builder };
            // If the link is in place of the lock, starting fails. Otherwise it fails too, or the guard uses no
            // saved filter.
            if let Ok(guard) = builder.start().await {
                let is_lock = name == "lock";
                assert!(is_lock || guard.state() != State::Active, "{name:?}");
            }
        }
    }
}
