//! Rows that are written without the guard: no guarantee, but the guard notices them, and never loses a key
//! that was put.

use crate::faulty::{Break, Fate, Faulty, SECRET};
use crate::kinds::Exact;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use tokio::sync::Semaphore;
use umbel_guard::{Answer, Family, Guard, GuardError, Local, Reason, StartError, State, Suspicion};

const REMOVES: [Family; 3] = [Family::Counting, Family::Cuckoo, Family::Quotient];

async fn built(set: &Faulty, family: Family) -> Guard<Faulty, Local> {
    let builder =
        Guard::builder(set.clone(), Local::new(family, 1e-6).secret(SECRET)).scan(10, 1.0);
    let guard = builder.rest(Duration::ZERO).without_background().start().await.unwrap();
    guard.rebuild().await.unwrap();
    guard
}

#[tokio::test]
async fn a_row_written_without_the_guard_and_replaced_through_it_is_never_absent() {
    for family in REMOVES {
        let set = Faulty::default();
        let guard = built(&set, family).await;
        set.bypass(b"k");
        guard.put(b"k", b"again").await.unwrap();
        assert_ne!(guard.contains(b"k").await, Answer::Absent, "{family:?}");
        assert_eq!(guard.stats().audit_misses, 1, "it is a proven miss");
        guard.rebuild().await.unwrap();
        assert_eq!(guard.contains(b"k").await, Answer::Maybe);
        // From here on every row has one entry again.
        guard.put(b"k", b"once more").await.unwrap();
        assert_eq!((guard.contains(b"k").await, guard.state()), (Answer::Maybe, State::Active));
        assert!(guard.delete(b"k").await.unwrap());
        assert_eq!(guard.contains(b"k").await, Answer::Absent, "{family:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_row_written_without_the_guard_after_the_snapshot_of_a_rebuild_is_never_absent() {
    for family in REMOVES {
        for first in [true, false] {
            let set = Faulty::default();
            (0..100_u32).for_each(|number| set.bypass(&number.to_le_bytes()));
            let builder =
                Guard::builder(set.clone(), Local::new(family, 1e-6).secret(SECRET)).scan(10, 1.0);
            let guard = builder.without_background().start().await.unwrap();
            if !first {
                guard.rebuild().await.unwrap();
                guard.distrust();
            }
            let scans = set.0.scans.load(SeqCst);
            let rebuilding = tokio::spawn({
                let guard = guard.clone();
                async move { guard.rebuild().await }
            });
            // The first scan counts, the second one reads.
            while set.0.scans.load(SeqCst) < scans + 2 {
                tokio::task::yield_now().await;
            }
            set.bypass(b"k");
            for value in [&b"1"[..], b"2", b"3"] {
                guard.put(b"k", value).await.unwrap();
            }
            assert!(!rebuilding.is_finished());
            rebuilding.await.unwrap().unwrap();
            assert_eq!(guard.state(), State::Active);
            assert_eq!(guard.contains(b"k").await, Answer::Maybe, "{family:?}, first: {first}");
        }
    }
}

#[tokio::test]
async fn a_sign_of_foreign_writes_leads_to_a_look_at_all_keys() {
    for family in Family::CHANGING {
        let set = Faulty::default();
        (0..1_000_u32).for_each(|number| set.bypass(&number.to_le_bytes()));
        // However long `rest` lets a correct filter stay in use.
        let builder = Guard::builder(set.clone(), Local::new(family, 1e-6).secret(SECRET));
        let builder = builder.scan(10, 1.0).rest(Duration::from_secs(3600));
        let guard = builder.without_background().start().await.unwrap();
        guard.rebuild().await.unwrap();
        guard.tend().await;
        assert_eq!(guard.stats().rebuilds, 1, "nothing has happened");
        set.bypass(b"\xff, behind a thousand others");
        set.show_foreign_writes();
        guard.tend().await;
        let answer = guard.contains(b"\xff, behind a thousand others").await;
        assert_ne!(answer, Answer::Absent, "{family:?}");
        guard.tend().await;
        assert_eq!((guard.state(), guard.stats().rebuilds), (State::Active, 2), "{family:?}");
        assert_eq!(guard.contains(b"never").await, Answer::Absent, "{family:?}");
        guard.tend().await;
        assert_eq!(guard.stats().rebuilds, 2, "once is enough");
    }
}

#[tokio::test(start_paused = true)]
async fn a_guard_notices_foreign_writes_within_seconds_by_itself() {
    let set = Faulty::default();
    (0..10_000_u32).for_each(|number| set.bypass(&number.to_be_bytes()));
    let builder = Guard::builder(set.clone(), Local::blocked(1e-6).secret(SECRET));
    // An audit would find the key only after a quarter of an hour.
    let guard = builder.audit(16, Duration::from_secs(900)).start().await.unwrap();
    guard.active().await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    set.bypass(b"\xff\xff\xff\xff\xff");
    set.show_foreign_writes();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_ne!(guard.contains(b"\xff\xff\xff\xff\xff").await, Answer::Absent);
}

#[tokio::test]
async fn rows_deleted_without_the_guard_cost_nothing_but_false_positives() {
    for family in REMOVES {
        let set = Faulty::default();
        let guard = built(&set, family).await;
        for key in [b"a", b"b", b"c"] {
            guard.put(key, b"").await.unwrap();
        }
        set.bypass_delete(b"a");
        assert!(!guard.delete(b"a").await.unwrap());
        guard.put(b"a", b"again").await.unwrap();
        guard.put(b"a", b"and again").await.unwrap();
        for key in [b"a", b"b", b"c"] {
            assert_eq!(guard.contains(key).await, Answer::Maybe, "{family:?}");
        }
    }
}

#[tokio::test]
async fn a_key_that_reaches_neither_filter_ends_the_trust() {
    let (set, kind) = (Faulty::default(), Exact::<false>::default());
    (0..100_u32).for_each(|number| set.bypass(&number.to_le_bytes()));
    let builder = Guard::builder(set.clone(), kind.clone()).scan(10, 1.0).without_background();
    let builder = builder.filter_timeout(Duration::from_secs(3600));
    let guard = builder.start().await.unwrap();
    guard.rebuild().await.unwrap();
    let gate = Arc::new(Semaphore::new(0));
    *kind.second.lock().unwrap() = Some(gate.clone());
    let scans = set.0.scans.load(SeqCst);
    let rebuilding = tokio::spawn({
        let guard = guard.clone();
        async move { guard.rebuild().await }
    });
    while set.0.scans.load(SeqCst) < scans + 2 {
        tokio::task::yield_now().await;
    }
    // The key is in the first filter, and waits to be added to the second, which takes over in the meantime.
    let putting = tokio::spawn({
        let guard = guard.clone();
        async move { guard.put(b"k", b"").await }
    });
    rebuilding.await.unwrap().unwrap();
    assert_eq!(guard.stats().generation, 2);
    gate.add_permits(1);
    putting.await.unwrap().unwrap();
    assert!(set.has(b"k"));
    assert_ne!(guard.contains(b"k").await, Answer::Absent);
    assert_eq!(guard.state(), State::Suspect);
}

#[tokio::test]
async fn a_guard_whose_background_task_ends_says_absent_no_more() {
    let set = Faulty::default();
    let guard =
        Guard::builder(set.clone(), Local::blocked(1e-6).secret(SECRET)).start().await.unwrap();
    guard.active().await.unwrap();
    assert_eq!(guard.contains(b"x").await, Answer::Absent);
    set.0.panics.store(true, SeqCst);
    while guard.state() == State::Active {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let unknown = Answer::Unknown(Reason::Suspect(Suspicion::Untended));
    assert_eq!(guard.contains(b"x").await, unknown);
    assert!(matches!(guard.active().await, Err(GuardError::Untended)));
    // Writes need no filter.
    guard.put(b"k", b"").await.unwrap();
    assert!(guard.get(b"k").await.unwrap().is_some());
}

#[test]
fn a_guard_that_outlives_its_runtime_says_absent_no_more() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    let guard = first.block_on(async {
        let builder = Guard::builder(Faulty::default(), Local::blocked(1e-6).secret(SECRET));
        let guard = builder.start().await.unwrap();
        guard.active().await.unwrap();
        assert_eq!(guard.contains(b"x").await, Answer::Absent);
        guard
    });
    drop(first);
    runtime().block_on(async {
        assert!(matches!(guard.contains(b"x").await, Answer::Unknown(_)));
        assert!(matches!(guard.active().await, Err(GuardError::Untended)));
    });
}

#[tokio::test]
async fn refused_writes_leave_no_doubts_and_no_entries() {
    for family in Family::CHANGING {
        let set = Faulty::default();
        let builder = Guard::builder(set.clone(), Local::new(family, 1e-6).secret(SECRET))
            .doubts(10, Duration::MAX);
        let builder = builder.capacity(1.0, 1_000).without_background();
        let guard = builder.start().await.unwrap();
        guard.rebuild().await.unwrap();
        for number in 0..100_u32 {
            set.doom(Fate::Refused);
            let put = guard.put(&number.to_le_bytes(), b"").await;
            assert!(matches!(put, Err(GuardError::DataSet(_))), "{family:?}");
        }
        let stats = guard.stats();
        assert_eq!((stats.doubts, stats.failed_writes), (0, 100), "{family:?}");
        assert_eq!((guard.state(), guard.contains(b"x").await), (State::Active, Answer::Absent));
        guard.rebuild().await.unwrap();
        if REMOVES.contains(&family) {
            set.doom(Fate::Refused);
            assert!(guard.put(b"refused", b"").await.is_err());
            assert_eq!(guard.contains(b"refused").await, Answer::Absent, "{family:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn closing_does_not_wait_for_a_rebuild() {
    let set = Faulty::default();
    (0..100_u32).for_each(|number| set.bypass(&number.to_le_bytes()));
    let builder = Guard::builder(set.clone(), Local::blocked(0.01).secret(SECRET)).scan(10, 1.0);
    let builder = builder.set_timeout(Duration::from_secs(3600)).without_background();
    let guard = builder.start().await.unwrap();
    set.break_scan(Break::Fails(usize::MAX));
    set.break_scan(Break::Hangs(5));
    let rebuilding = tokio::spawn({
        let guard = guard.clone();
        async move { guard.rebuild().await }
    });
    while !guard.stats().rebuilding {
        tokio::task::yield_now().await;
    }
    let waiting = tokio::spawn({
        let guard = guard.clone();
        async move { guard.active().await }
    });
    let closed = tokio::time::timeout(Duration::from_secs(60), guard.close()).await;
    closed.expect("the page never comes").unwrap();
    assert!(matches!(rebuilding.await.unwrap(), Err(umbel_guard::RebuildError::Closed)));
    assert!(matches!(waiting.await.unwrap(), Err(GuardError::Closed)));
    assert!(matches!(guard.active().await, Err(GuardError::Closed)));
}

type Fleet = Guard<Faulty, Exact<true>>;

async fn member(set: &Faulty, kind: &Exact<true>) -> Fleet {
    let builder = Guard::builder(set.clone(), kind.clone()).without_background();
    let guard = builder.start().await.unwrap();
    guard.rebuild().await.unwrap();
    guard
}

#[tokio::test]
async fn absences_cannot_be_remembered_with_a_shared_filter() {
    let builder = Guard::builder(Faulty::default(), Exact::<true>::default());
    let started = builder.remember_absences(10, Duration::from_secs(5)).start().await;
    assert!(matches!(started, Err(StartError::RemembersShared)));
}

#[tokio::test]
async fn look_ups_are_not_shared_where_other_guards_write() {
    let (set, kind) = (Faulty::default(), Exact::<true>::default());
    let [one, two] = [member(&set, &kind).await, member(&set, &kind).await];
    // The key is in the shared filter, and not in the set.
    one.put(b"k", b"1").await.unwrap();
    one.delete(b"k").await.unwrap();
    let gate = set.answer_gate(0);
    let gets = set.gets();
    let early = tokio::spawn({
        let two = two.clone();
        async move { two.get(b"k").await }
    });
    while set.gets() == gets {
        tokio::task::yield_now().await;
    }
    one.put(b"k", b"2").await.unwrap();
    // The first look-up has read the set and waits for its answer. A look-up that begins now must see the row.
    let late = tokio::spawn({
        let two = two.clone();
        async move { two.get(b"k").await }
    });
    while set.gets() < gets + 2 && !late.is_finished() {
        tokio::task::yield_now().await;
    }
    gate.add_permits(2);
    assert_eq!(early.await.unwrap().unwrap(), None);
    assert_eq!(late.await.unwrap().unwrap().as_deref(), Some(&b"2"[..]));
}

#[tokio::test(start_paused = true)]
async fn a_fleet_waits_for_statements_of_a_guard_that_was_killed() {
    let (set, kind) = (Faulty::default(), Exact::<true>::default());
    set.0.lingering.store(30, SeqCst);
    let one = member(&set, &kind).await;
    let two = member(&set, &kind).await;
    // Long after both guards have started.
    tokio::time::advance(Duration::from_secs(100)).await;
    set.doom(Fate::Hangs(Duration::from_secs(20)));
    let killed = tokio::time::timeout(Duration::from_millis(1), one.put(b"k", b"")).await;
    assert!(killed.is_err() && !set.has(b"k"));
    drop(one);
    // The filter, which had the key, is lost. The other guard scans, and the statement commits after that.
    kind.lose();
    two.distrust();
    two.rebuild().await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(set.has(b"k"));
    assert_ne!(two.contains(b"k").await, Answer::Absent);
}
