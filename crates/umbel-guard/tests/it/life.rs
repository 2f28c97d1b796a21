//! The states of a guard: becoming active, losing the trust, recovering.

use crate::faulty::{Break, Faulty, SECRET};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use umbel_guard::{
    Answer, DataSet, Guard, GuardError, Local, Reason, RebuildError, State, Suspicion,
};

fn key(number: u32) -> [u8; 4] {
    number.to_le_bytes()
}

fn filled(keys: u32) -> Faulty {
    let set = Faulty::default();
    (0..keys).for_each(|number| set.bypass(&key(number)));
    set
}

async fn quiet(set: &Faulty, kind: Local) -> Guard<Faulty, Local> {
    let builder = Guard::builder(set.clone(), kind).without_background().scan(10, 1.0);
    builder.set_timeout(Duration::from_secs(1)).start().await.unwrap()
}

#[tokio::test]
async fn only_an_active_guard_says_absent() {
    let set = filled(100);
    let guard = quiet(&set, Local::blocked(1e-6).secret(SECRET)).await;
    assert_eq!(guard.state(), State::Empty);
    assert_eq!(guard.contains(b"x").await, Answer::Unknown(Reason::Building));
    // Every look-up that the filter cannot answer reaches the data set.
    assert_eq!(guard.get(b"x").await.unwrap(), None);
    assert!(guard.get(&key(5)).await.unwrap().is_some());
    assert_eq!(set.gets(), 2);
    assert_eq!(guard.rebuild().await.unwrap(), 100);
    assert_eq!((guard.state(), guard.contains(b"x").await), (State::Active, Answer::Absent));
    assert_eq!(guard.get(b"x").await.unwrap(), None);
    assert_eq!(set.gets(), 2, "an absent key did not reach it");
    guard.distrust();
    assert_eq!(guard.state(), State::Suspect);
    let unknown = Answer::Unknown(Reason::Suspect(Suspicion::Told));
    assert_eq!(guard.contains(b"x").await, unknown);
    assert_eq!(guard.get(b"x").await.unwrap(), None);
    assert_eq!(set.gets(), 3);
    guard.rebuild().await.unwrap();
    assert_eq!(guard.state(), State::Active);
    let stats = guard.stats();
    assert_eq!((stats.rebuilds, stats.generation, stats.trips), (2, 2, 1));
    assert_eq!((stats.saved, stats.unknown, stats.asked), (2, 5, 3));
}

#[tokio::test(start_paused = true)]
async fn a_scan_that_is_not_proven_complete_is_no_filter() {
    let set = filled(100);
    let guard = quiet(&set, Local::blocked(0.01).secret(SECRET)).await;
    // The first scan of a rebuild only counts; the second one reads.
    let scan = |fate| {
        set.break_scan(Break::Fails(usize::MAX));
        set.break_scan(fate);
    };
    for at in [0, 3, 9] {
        scan(Break::Fails(at));
        assert!(matches!(guard.rebuild().await, Err(RebuildError::DataSet(_))), "{at}");
        assert_eq!(guard.state(), State::Empty);
        scan(Break::Lies(at));
        let lied = guard.rebuild().await;
        let got = 10 * at as u64;
        assert!(
            matches!(lied, Err(RebuildError::Incomplete { expected: 100, got: g }) if g == got),
            "{at}: {lied:?}"
        );
        scan(Break::Dries(at));
        assert!(matches!(guard.rebuild().await, Err(RebuildError::Incomplete { .. })), "{at}");
        scan(Break::Hangs(at));
        assert!(matches!(guard.rebuild().await, Err(RebuildError::TimedOut { .. })), "{at}");
        // Dropped in the middle.
        scan(Break::Hangs(at));
        let dropped = tokio::time::timeout(Duration::from_millis(100), guard.rebuild());
        assert!(dropped.await.is_err());
        assert!(matches!(guard.contains(b"x").await, Answer::Unknown(_)), "{at}");
        assert_eq!(guard.state(), State::Empty);
        assert!(!guard.stats().rebuilding);
    }
    assert_eq!(guard.stats().failed_rebuilds, 15);
    assert_eq!(guard.rebuild().await.unwrap(), 100);
}

#[tokio::test(start_paused = true)]
async fn a_failed_rebuild_leaves_the_old_filter_in_use() {
    let set = filled(100);
    let guard = quiet(&set, Local::blocked(1e-6).secret(SECRET)).await;
    guard.rebuild().await.unwrap();
    set.break_scan(Break::Fails(usize::MAX));
    set.break_scan(Break::Fails(5));
    assert!(guard.rebuild().await.is_err());
    assert_eq!((guard.state(), guard.stats().generation), (State::Active, 1));
    guard.put(b"later", b"").await.unwrap();
    assert_eq!(guard.contains(b"later").await, Answer::Maybe);
    assert_eq!(guard.contains(b"never").await, Answer::Absent);
}

#[tokio::test]
async fn writes_during_a_rebuild_are_in_both_filters() {
    for kind in [
        Local::blocked(1e-6).secret(SECRET),
        Local::cuckoo(1e-6).secret(SECRET),
        Local::scalable(1e-6).secret(SECRET),
    ] {
        let set = filled(2_000);
        let guard = quiet(&set, kind).await;
        guard.rebuild().await.unwrap();
        let rebuilding = tokio::spawn({
            let guard = guard.clone();
            async move { guard.rebuild().await }
        });
        let mut round = 0_u32;
        while !rebuilding.is_finished() {
            let (new, old) = (10_000 + round, round % 2_000);
            guard.put(&key(new), b"").await.unwrap();
            guard.put(&key(old), b"again").await.unwrap();
            assert!(guard.delete(&key(old)).await.unwrap());
            assert_eq!(guard.contains(&key(new)).await, Answer::Maybe);
            round += 1;
        }
        rebuilding.await.unwrap().unwrap();
        assert!(round > 10, "some writes went on meanwhile");
        let keys: Vec<Vec<u8>> = set.keys();
        for key in keys {
            assert_eq!(guard.contains(&key).await, Answer::Maybe);
        }
        assert_eq!(guard.state(), State::Active);
    }
}

#[tokio::test]
async fn a_rebuild_waits_for_writes_that_began_before_it() {
    let set = filled(10);
    let guard = quiet(&set, Local::blocked(1e-6).secret(SECRET)).await;
    guard.rebuild().await.unwrap();
    let gate = set.write_gate(0);
    let putting = tokio::spawn({
        let guard = guard.clone();
        async move { guard.put(b"slow", b"").await }
    });
    while guard.contains(b"slow").await == Answer::Absent {
        tokio::task::yield_now().await;
    }
    let rebuilding = tokio::spawn({
        let guard = guard.clone();
        async move { guard.rebuild().await }
    });
    let scans = set.0.scans.load(SeqCst);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!rebuilding.is_finished() && guard.stats().rebuilding);
    // The rebuild has counted, and has not begun to read.
    assert!(set.0.scans.load(SeqCst) <= scans + 1);
    gate.add_permits(1);
    putting.await.unwrap().unwrap();
    assert_eq!(rebuilding.await.unwrap().unwrap(), 11);
    assert_eq!(guard.contains(b"slow").await, Answer::Maybe);
    assert!(matches!(
        tokio::join!(guard.rebuild(), guard.rebuild()),
        (Ok(11), Err(RebuildError::UnderWay))
    ));
}

#[tokio::test]
async fn an_audit_finds_what_was_written_past_the_guard() {
    for kind in [Local::blocked(1e-6).secret(SECRET), Local::quotient(1e-6).secret(SECRET)] {
        let set = filled(1_000);
        let guard = quiet(&set, kind).await;
        guard.rebuild().await.unwrap();
        for _ in 0..3 {
            assert_eq!(guard.audit(400).await.unwrap(), 0);
        }
        set.bypass(b"\xff past the guard");
        let mut missed = 0;
        for _ in 0..4 {
            missed += guard.audit(400).await.unwrap();
        }
        assert_eq!((missed, guard.state()), (1, State::Suspect));
        assert_eq!(guard.stats().audit_misses, 1);
        let unknown = Answer::Unknown(Reason::Suspect(Suspicion::Missed));
        assert_eq!(guard.contains(b"\xff past the guard").await, unknown);
        guard.tend().await;
        assert_eq!(guard.contains(b"\xff past the guard").await, Answer::Maybe);
        // A delete of a row that the filter lacks ends the trust too.
        set.bypass(b"\xff another");
        assert!(guard.delete(b"\xff another").await.unwrap());
        assert_eq!((guard.state(), guard.stats().audit_misses), (State::Suspect, 2));
    }
}

#[tokio::test(start_paused = true)]
async fn it_builds_again_when_the_rate_drifts() {
    let set = filled(100);
    let builder =
        Guard::builder(set.clone(), Local::blocked(0.01).secret(SECRET)).without_background();
    let guard = builder.capacity(1.0, 1_000).start().await.unwrap();
    guard.tend().await;
    assert_eq!((guard.state(), guard.stats().rebuilds), (State::Active, 1));
    for number in 0..3_000 {
        guard.put(&key(number), b"").await.unwrap();
    }
    guard.tend().await;
    let filter = guard.stats().filter.unwrap();
    assert!(filter.rate > 0.0125, "{filter:?}");
    assert_eq!(guard.stats().rebuilds, 1, "it has a rest first");
    tokio::time::advance(Duration::from_secs(61)).await;
    guard.tend().await;
    let stats = guard.stats();
    assert_eq!((stats.rebuilds, guard.state()), (2, State::Active));
    let filter = stats.filter.unwrap();
    assert!(filter.rate <= 0.0125 && filter.capacity >= 3_000, "{filter:?}");
}

#[tokio::test(start_paused = true)]
async fn it_builds_again_when_deletes_have_left_ghosts() {
    let set = filled(2_000);
    // With one secret in five thousand, a filter of 2,000 keys is so full by chance that it is rebuilt at once.
    let kind = Local::blocked(1e-6).secret(SECRET);
    let builder = Guard::builder(set.clone(), kind).without_background();
    let guard = builder.capacity(1.0, 1_000).rest(Duration::ZERO).start().await.unwrap();
    guard.tend().await;
    for number in 0..400 {
        guard.delete(&key(number)).await.unwrap();
    }
    guard.tend().await;
    assert_eq!((guard.stats().rebuilds, guard.stats().ghosts), (1, 400));
    for number in 400..600 {
        guard.delete(&key(number)).await.unwrap();
    }
    assert_eq!(guard.contains(&key(0)).await, Answer::Maybe, "a ghost");
    guard.tend().await;
    assert_eq!((guard.stats().rebuilds, guard.stats().ghosts), (2, 0));
    assert_eq!(guard.contains(&key(0)).await, Answer::Absent);
}

#[tokio::test(start_paused = true)]
async fn it_builds_again_when_more_is_wrong_than_expected() {
    let set = filled(100);
    // Every rebuild draws another secret.
    let builder = Guard::builder(set.clone(), Local::blocked(0.01)).without_background();
    let builder = builder.capacity(1.0, 100).rest(Duration::ZERO);
    let guard = builder.start().await.unwrap();
    guard.tend().await;
    // A client repeatedly looks up false positives.
    let mut found = Vec::new();
    for number in 1_000..100_000 {
        if guard.contains(&key(number)).await == Answer::Maybe {
            found.push(number);
        }
        if found.len() == 6 {
            break;
        }
    }
    for _ in 0..20_000 {
        guard.get(&key(found[0])).await.unwrap();
    }
    let measured = guard.stats().measured;
    assert!(measured.low > 0.0125, "{measured:?}");
    guard.tend().await;
    let stats = guard.stats();
    assert_eq!((stats.rebuilds, stats.measured.trials), (2, 0));
    // All six keys are false positives again once in 1e12 runs.
    let mut still = 0;
    for number in found {
        still += u32::from(guard.contains(&key(number)).await == Answer::Maybe);
    }
    assert!(still < 6);
}

#[tokio::test(start_paused = true)]
async fn it_tends_itself_and_tries_again_after_ever_longer_waits() {
    let set = filled(100);
    set.0.failing.store(1, SeqCst);
    (0..8).for_each(|_| set.break_scan(Break::Fails(0)));
    let guard =
        Guard::builder(set.clone(), Local::blocked(0.01).secret(SECRET)).start().await.unwrap();
    // Only time passes.
    guard.active().await.unwrap();
    let stats = guard.stats();
    assert!(stats.failed_rebuilds > 0 && stats.rebuilds == 1, "{stats:?}");
    set.bypass(b"\xff");
    set.0.failing.store(0, SeqCst);
    while guard.contains(b"\xff").await == Answer::Absent {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    guard.active().await.unwrap();
    assert_eq!(guard.contains(b"\xff").await, Answer::Maybe);
    // A year passes, and only the last look at the data set expires.
    tokio::time::advance(Duration::from_secs(365 * 24 * 3600)).await;
    assert_eq!(guard.contains(b"nothing").await, Answer::Unknown(Reason::Unwatched));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(guard.contains(b"nothing").await, Answer::Absent);
    let text = guard.stats().to_prometheus();
    assert!(text.contains("\numbel_guard_audit_misses_total 1\n"), "{text}");
    assert!(text.contains("\numbel_guard_state 2\n"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_cannot_reach_its_data_set_soon_says_absent_no_more() {
    let set = filled(100);
    let builder = Guard::builder(set.clone(), Local::blocked(1e-6).secret(SECRET));
    let builder = builder.remember_absences(10, Duration::from_secs(3600));
    let guard = builder.trust_for(Duration::from_secs(10)).start().await.unwrap();
    guard.active().await.unwrap();
    // Deleted, and still in the filter: the guard remembers its absence.
    guard.delete(&key(1)).await.unwrap();
    assert_eq!(guard.get(&key(1)).await.unwrap(), None);
    let gets = set.gets();
    assert_eq!(guard.get(&key(1)).await.unwrap(), None);
    assert_eq!(set.gets(), gets);
    assert_eq!(guard.contains(b"x").await, Answer::Absent);
    set.0.unreachable.store(true, SeqCst);
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_eq!(guard.contains(b"x").await, Answer::Absent);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(guard.contains(b"x").await, Answer::Unknown(Reason::Unwatched));
    assert_eq!(guard.get(&key(1)).await.unwrap(), None);
    assert_eq!(set.gets(), gets + 1, "a remembered absence is as old as the last look");
    assert!(guard.stats().unwatched > Duration::from_secs(10));
    set.0.unreachable.store(false, SeqCst);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(guard.contains(b"x").await, Answer::Absent);
    assert_eq!(guard.stats().rebuilds, 1, "the filter is the one it was");
}

#[tokio::test(start_paused = true)]
async fn the_data_set_is_watched_while_a_scan_hangs() {
    let set = filled(100);
    let guard =
        Guard::builder(set.clone(), Local::blocked(1e-6).secret(SECRET)).start().await.unwrap();
    guard.active().await.unwrap();
    set.break_scan(Break::Hangs(0));
    set.0.foreign.fetch_add(1, SeqCst);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(guard.contains(b"x").await, Answer::Absent, "it was looked at all the time");
    set.begin(1).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let superseded = Answer::Unknown(Reason::Suspect(Suspicion::Superseded));
    assert_eq!(guard.contains(b"x").await, superseded);
}

#[tokio::test]
async fn a_closed_guard_takes_no_writes() {
    let guard = quiet(&filled(3), Local::blocked(0.01).secret(SECRET)).await;
    guard.rebuild().await.unwrap();
    guard.close().await.unwrap();
    assert!(matches!(guard.put(b"k", b"").await, Err(GuardError::Closed)));
    assert!(matches!(guard.delete(b"k").await, Err(GuardError::Closed)));
    assert!(matches!(guard.rebuild().await, Err(RebuildError::Closed)));
    assert!(guard.get(&key(1)).await.unwrap().is_some());
    assert!(matches!(guard.contains(b"x").await, Answer::Unknown(_)));
}
