//! The order of steps: the filter first, then the data set. A key leaves the filter only with proof.

use crate::faulty::{Fate, Faulty, SECRET};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use umbel_guard::{Answer, Family, Guard, GuardError, Local, Reason, State};

async fn active(set: &Faulty, kind: Local) -> Guard<Faulty, Local> {
    let builder = Guard::builder(set.clone(), kind).without_background();
    let guard = builder.set_timeout(Duration::from_secs(1)).start().await.unwrap();
    guard.rebuild().await.unwrap();
    guard
}

#[tokio::test]
async fn a_key_is_in_the_filter_before_it_can_be_read() {
    for family in Family::CHANGING {
        let set = Faulty::default();
        let guard = active(&set, Local::new(family, 1e-6).secret(SECRET)).await;
        assert_eq!(guard.contains(b"k").await, Answer::Absent, "{family:?}");
        let gate = set.write_gate(0);
        let putting = tokio::spawn({
            let guard = guard.clone();
            async move { guard.put(b"k", b"v").await }
        });
        while guard.contains(b"k").await == Answer::Absent {
            tokio::task::yield_now().await;
        }
        assert!(!set.has(b"k"), "{family:?}: in the filter, and not yet in the set");
        gate.add_permits(1);
        putting.await.unwrap().unwrap();
        assert_eq!(guard.get(b"k").await.unwrap().as_deref(), Some(&b"v"[..]));
    }
}

#[tokio::test]
async fn a_key_leaves_the_filter_after_it_has_left_the_set_and_only_with_proof() {
    for family in Family::CHANGING {
        let removes = matches!(family, Family::Counting | Family::Cuckoo | Family::Quotient);
        let set = Faulty::default();
        let guard = active(&set, Local::new(family, 1e-6).secret(SECRET)).await;
        guard.put(b"k", b"v").await.unwrap();
        // The outcome of this delete is unknown to the guard, but it happened.
        set.doom(Fate::Lost);
        assert!(matches!(guard.delete(b"k").await, Err(GuardError::DataSet(_))));
        assert!(!set.has(b"k"));
        assert_eq!(guard.contains(b"k").await, Answer::Maybe, "{family:?}");
        // A delete of a key that does not exist removes nothing either.
        assert!(!guard.delete(b"k").await.unwrap());
        assert_eq!(guard.contains(b"k").await, Answer::Maybe, "{family:?}");
        guard.put(b"other", b"v").await.unwrap();
        let gate = set.write_gate(0);
        let deleting = tokio::spawn({
            let guard = guard.clone();
            async move { guard.delete(b"other").await }
        });
        for _ in 0..10 {
            tokio::task::yield_now().await;
            assert_eq!(guard.contains(b"other").await, Answer::Maybe, "{family:?}");
        }
        gate.add_permits(1);
        assert!(deleting.await.unwrap().unwrap());
        let gone = if removes { Answer::Absent } else { Answer::Maybe };
        assert_eq!(guard.contains(b"other").await, gone, "{family:?}");
    }
}

#[tokio::test]
async fn overwriting_a_key_a_thousand_times_and_deleting_it_once_removes_it() {
    for family in [Family::Counting, Family::Cuckoo, Family::Quotient] {
        let set = Faulty::default();
        let guard = active(&set, Local::new(family, 1e-6).secret(SECRET)).await;
        for round in 0..1_000 {
            guard.put(b"hot", format!("{round}").as_bytes()).await.unwrap();
        }
        assert_eq!(guard.state(), State::Active, "{family:?}");
        assert_eq!(guard.contains(b"hot").await, Answer::Maybe);
        assert!(guard.delete(b"hot").await.unwrap());
        // The cells of a counting filter may have saturated on the way; two copies at a time do not saturate
        // them.
        assert_eq!(guard.contains(b"hot").await, Answer::Absent, "{family:?}");
        assert_eq!(guard.stats().ghosts, 0, "{family:?}");
    }
}

#[tokio::test]
async fn a_rolled_back_write_is_a_false_positive_and_nothing_else() {
    let set = Faulty::default();
    let guard = active(&set, Local::cuckoo(1e-6).secret(SECRET)).await;
    set.doom(Fate::RolledBack);
    assert!(guard.put(b"k", b"v").await.is_err());
    assert_eq!(guard.contains(b"k").await, Answer::Maybe);
    assert_eq!(guard.get(b"k").await.unwrap(), None);
    let stats = guard.stats();
    assert_eq!((stats.false_positives, stats.failed_writes, stats.ghosts), (1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_write_that_takes_too_long_is_known_to_every_filter_that_comes() {
    for family in [Family::Blocked, Family::Cuckoo, Family::Ribbon] {
        let set = Faulty::default();
        // With a stamp, the set would refuse a write from before the rebuild.
        set.0.stampless.store(true, SeqCst);
        set.bypass(b"a");
        if family == Family::Ribbon {
            let guard = active(&set, Local::new(family, 0.01).secret(SECRET)).await;
            assert!(matches!(guard.put(b"k", b"v").await, Err(GuardError::ReadOnly)));
            assert!(matches!(guard.delete(b"a").await, Err(GuardError::ReadOnly)));
            continue;
        }
        let guard = active(&set, Local::new(family, 1e-6).secret(SECRET)).await;
        set.doom(Fate::Hangs(Duration::from_secs(60)));
        let put = guard.put(b"late", b"v").await;
        assert!(matches!(put, Err(GuardError::TimedOut { .. })), "{put:?}");
        assert!(!set.has(b"late"));
        // This scan does not see the write.
        guard.rebuild().await.unwrap();
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert!(set.has(b"late"), "it has come at last");
        assert_eq!(guard.contains(b"late").await, Answer::Maybe, "{family:?}");
        assert_eq!(guard.stats().doubts, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_caller_went_away_is_known_too() {
    let set = Faulty::default();
    // With a stamp, the set would refuse a write from before the rebuild.
    set.0.stampless.store(true, SeqCst);
    let guard = active(&set, Local::blocked(1e-6).secret(SECRET)).await;
    set.doom(Fate::Hangs(Duration::from_secs(60)));
    let put = tokio::time::timeout(Duration::from_millis(10), guard.put(b"late", b"v"));
    assert!(put.await.is_err());
    guard.rebuild().await.unwrap();
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert!(set.has(b"late"));
    assert_eq!(guard.contains(b"late").await, Answer::Maybe);
}

#[tokio::test(start_paused = true)]
async fn more_doubts_than_can_be_remembered_end_the_trust() {
    let set = Faulty::default();
    let builder =
        Guard::builder(set.clone(), Local::blocked(0.01).secret(SECRET)).without_background();
    let guard = builder.doubts(3, Duration::from_secs(100)).start().await.unwrap();
    guard.rebuild().await.unwrap();
    for number in 0..4 {
        assert_eq!(guard.state(), State::Active);
        set.doom(Fate::RolledBack);
        assert!(guard.put(format!("{number}").as_bytes(), b"").await.is_err());
    }
    assert_eq!(guard.state(), State::Suspect);
    assert!(guard.rebuild().await.is_err());
    assert_eq!(guard.state(), State::Suspect);
    tokio::time::sleep(Duration::from_secs(101)).await;
    guard.rebuild().await.unwrap();
    assert_eq!(guard.state(), State::Active);
}

#[tokio::test]
async fn a_full_filter_ends_the_trust_before_the_write_goes_on() {
    let set = Faulty::default();
    let builder =
        Guard::builder(set.clone(), Local::cuckoo(0.01).secret(SECRET)).without_background();
    let guard = builder.capacity(1.0, 100).start().await.unwrap();
    guard.rebuild().await.unwrap();
    let mut number = 0_u32;
    while guard.state() == State::Active {
        guard.put(&number.to_le_bytes(), b"").await.unwrap();
        number += 1;
        assert!(number < 10_000, "a filter for a hundred keys is full before that");
    }
    assert!(number >= 100, "{number}");
    let last = (number - 1).to_le_bytes();
    assert!(set.has(&last));
    assert!(matches!(guard.contains(&last).await, Answer::Unknown(Reason::Suspect(_))));
    assert_eq!(guard.rebuild().await.unwrap(), u64::from(number));
    for key in 0..number {
        assert_eq!(guard.contains(&key.to_le_bytes()).await, Answer::Maybe);
    }
}

#[tokio::test]
async fn a_set_that_does_not_change_is_guarded_by_the_smallest_filters() {
    let set = Faulty::default();
    (0..1_000_u32).for_each(|key| set.bypass(&key.to_le_bytes()));
    for kind in [
        Local::ribbon(0.01).secret(SECRET),
        Local::fuse(0.01).secret(SECRET),
        Local::xor(0.01).secret(SECRET),
    ] {
        let guard = active(&set, kind).await;
        for key in 0..1_000_u32 {
            assert_eq!(guard.contains(&key.to_le_bytes()).await, Answer::Maybe);
        }
        let mut absent = 0;
        for key in 1_000..11_000_u32 {
            absent += u32::from(guard.contains(&key.to_le_bytes()).await == Answer::Absent);
        }
        // At most 1 % of 10,000 are false positives, and five sigma of 10 more.
        assert!(absent >= 9_850, "{absent}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_write_is_refused_after_a_rebuild_where_the_set_keeps_a_stamp() {
    let set = Faulty::default();
    let guard = active(&set, Local::blocked(1e-6).secret(SECRET)).await;
    set.doom(Fate::Late(Duration::from_secs(60)));
    assert!(guard.put(b"late", b"").await.is_err());
    guard.rebuild().await.unwrap();
    guard.put(b"after it", b"").await.unwrap();
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(!set.has(b"late") && set.has(b"after it"));
    assert_eq!(guard.contains(b"late").await, Answer::Maybe, "nothing was certain then");
}
