//! Many concurrent look-ups: single-flight per key, remembered absences, and a limit.

use crate::faulty::{Fate, Faulty, SECRET};
use std::time::Duration;
use umbel_guard::{Answer, Builder, Guard, GuardError, Local};

fn builder(set: &Faulty) -> Builder<Faulty, Local> {
    let builder =
        Guard::builder(set.clone(), Local::blocked(1e-6).secret(SECRET)).without_background();
    builder.set_timeout(Duration::from_secs(1))
}

#[tokio::test]
async fn ten_thousand_who_ask_for_one_key_are_one_question() {
    let set = Faulty::default();
    set.bypass(b"k");
    let guard = builder(&set).start().await.unwrap();
    guard.rebuild().await.unwrap();
    let gate = set.gate(0);
    let asking: Vec<_> = (0..10_000)
        .map(|_| {
            let guard = guard.clone();
            tokio::spawn(async move { guard.get(b"k").await })
        })
        .collect();
    while guard.stats().joined < 9_999 {
        tokio::task::yield_now().await;
    }
    gate.add_permits(1);
    for asked in asking {
        assert_eq!(asked.await.unwrap().unwrap().as_deref(), Some(&b"bypassed"[..]));
    }
    assert_eq!(set.gets(), 1);
    set.open_gates();
    let guard = builder(&set).without_single_flight().start().await.unwrap();
    tokio::join!(guard.get(b"k"), guard.get(b"k")).0.unwrap();
    assert_eq!(set.gets(), 3);
}

#[tokio::test]
async fn who_asks_after_a_write_sees_it() {
    let set = Faulty::default();
    let guard = builder(&set).start().await.unwrap();
    let gate = set.gate(0);
    // A query from before the write, answered after it.
    let old = tokio::spawn({
        let guard = guard.clone();
        async move { guard.get(b"k").await }
    });
    while set.gets() == 0 {
        tokio::task::yield_now().await;
    }
    guard.put(b"k", b"v").await.unwrap();
    let new = tokio::spawn({
        let guard = guard.clone();
        async move { guard.get(b"k").await }
    });
    while set.gets() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(guard.stats().joined, 0, "it did not wait for the old answer");
    gate.add_permits(2);
    old.await.unwrap().unwrap();
    assert_eq!(new.await.unwrap().unwrap().as_deref(), Some(&b"v"[..]));
}

#[tokio::test]
async fn a_failure_is_everybodys() {
    let set = Faulty::default();
    set.0.failing.store(1, std::sync::atomic::Ordering::SeqCst);
    let guard = builder(&set).start().await.unwrap();
    let gate = set.gate(0);
    let open = async {
        tokio::task::yield_now().await;
        gate.add_permits(2);
    };
    let (one, two, ()) = tokio::join!(guard.get(b"k"), guard.get(b"k"), open);
    assert!(matches!((&one, &two), (Err(GuardError::DataSet(_)), Err(GuardError::DataSet(_)))));
    assert_eq!(set.gets(), 1);
    assert_eq!(one.unwrap_err().to_string(), "the data set: down");
}

#[tokio::test(start_paused = true)]
async fn only_so_many_go_through_while_there_is_no_filter() {
    let set = Faulty::default();
    let guard = builder(&set).pass_through(3).start().await.unwrap();
    let _gate = set.gate(0);
    let asking: Vec<_> = (0..8_u8)
        .map(|number| {
            let guard = guard.clone();
            tokio::spawn(async move { guard.get(&[number]).await })
        })
        .collect();
    let mut ends = [0, 0];
    for asked in asking {
        match asked.await.unwrap() {
            Err(GuardError::Busy { limit: 3 }) => ends[0] += 1,
            Err(GuardError::TimedOut { .. }) => ends[1] += 1,
            other => panic!("{other:?}"),
        }
    }
    // Three wait for the data set in vain, and five for a permit; three of those may get one in time.
    assert_eq!(ends.iter().sum::<u32>(), 8);
    assert!(ends[0] >= 2 && ends[1] >= 3, "{ends:?}");
    assert_eq!(guard.stats().refused, u64::from(ends[0]));
}

#[tokio::test(start_paused = true)]
async fn a_false_positive_is_asked_for_once() {
    let set = Faulty::default();
    let guard = builder(&set).remember_absences(100, Duration::from_secs(5)).start().await.unwrap();
    guard.rebuild().await.unwrap();
    set.doom(Fate::RolledBack);
    assert!(guard.put(b"seed", b"").await.is_err());
    // The key is in the filter and not in the set. Its write may still happen, so its shard remembers nothing.
    // Other shards do.
    for number in 0..200_u32 {
        guard.put(&number.to_le_bytes(), b"").await.unwrap();
        guard.delete(&number.to_le_bytes()).await.unwrap();
    }
    let before = set.gets();
    for _ in 0..10 {
        for number in 0..50_u32 {
            assert_eq!(guard.contains(&number.to_le_bytes()).await, Answer::Maybe);
            assert_eq!(guard.get(&number.to_le_bytes()).await.unwrap(), None);
        }
    }
    let asked = set.gets() - before;
    // One of 64 shards remembers nothing, and a shard has room for two: far from 500.
    assert!((50..250).contains(&asked), "{asked}");
    assert!(guard.stats().remembered >= 250);
    // A write is visible at once.
    guard.put(&7_u32.to_le_bytes(), b"v").await.unwrap();
    assert!(guard.get(&7_u32.to_le_bytes()).await.unwrap().is_some());
    tokio::time::advance(Duration::from_secs(5)).await;
    let before = set.gets();
    guard.get(&8_u32.to_le_bytes()).await.unwrap();
    assert_eq!(set.gets(), before + 1, "it was long ago");
}
