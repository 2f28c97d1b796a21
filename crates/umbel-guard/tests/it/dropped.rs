//! Futures that are dropped in the middle, at every await of a rebuild, a checkpoint or a close.

use crate::faulty::{Fault, Faulty, SECRET};
use std::future::poll_fn;
use std::path::Path;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use umbel_guard::{Answer, Family, Guard, Local, StartError, State};

type Guarded = Guard<Faulty, Local>;

async fn start(set: &Faulty, folder: &Path) -> Guarded {
    try_start(set, folder).await.unwrap()
}

async fn try_start(set: &Faulty, folder: &Path) -> Result<Guarded, StartError<Fault>> {
    let kind = Local::new(Family::Cuckoo, 1e-6).secret(SECRET);
    let builder = Guard::builder(set.clone(), kind).without_background().scan(10, 1.0);
    builder.folder(folder).start().await
}

/// The folder of a dropped guard stays in use until its thread has finished a save.
async fn start_after_a_save(set: &Faulty, folder: &Path) -> Guarded {
    loop {
        match try_start(set, folder).await {
            Err(StartError::Locked) => tokio::time::sleep(Duration::from_millis(1)).await,
            started => return started.unwrap(),
        }
    }
}

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// Polls a future until it has waited `waits` times, and drops it then. Returns its result, if it finished
/// before.
async fn after<T>(waits: u32, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut polled = 0;
    poll_fn(|context| {
        if polled == waits {
            return Poll::Ready(None);
        }
        polled += 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

/// Drops the future of `run` at each of its awaits. Then keys are put, deleted and found, also by the next
/// guard.
async fn dropped<T>(run: impl AsyncFn(&Guarded) -> T) {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("f");
    let set = Faulty::default();
    (0..50).for_each(|number| set.bypass(&key(number)));
    for waits in 0.. {
        let guard = start(&set, &folder).await;
        if guard.state() != State::Active {
            guard.rebuild().await.unwrap();
        }
        let ended = after(waits, run(&guard)).await.is_some();
        guard.tend().await;
        // Refused if a close was dropped.
        let new = key(1_000 + waits);
        if guard.put(&new, b"").await.is_ok() {
            assert_ne!(guard.contains(&new).await, Answer::Absent, "{waits}");
        }
        // Killed, possibly while a thread is still saving.
        drop(guard);
        let guard = start_after_a_save(&set, &folder).await;
        for key in set.keys() {
            assert_ne!(guard.contains(&key).await, Answer::Absent, "{waits}: {key:?}");
        }
        // The table stays small, so that later rebuilds do not wait more often.
        set.bypass_delete(&new);
        if ended {
            assert!(waits > 1);
            return;
        }
    }
}

#[tokio::test]
async fn a_rebuild_can_be_dropped_at_any_time() {
    dropped(async |guard| guard.rebuild().await).await;
}

#[tokio::test]
async fn a_checkpoint_can_be_dropped_at_any_time() {
    dropped(async |guard| guard.checkpoint().await).await;
}

#[tokio::test]
async fn a_close_can_be_dropped_at_any_time() {
    dropped(async |guard| guard.close().await).await;
}

#[tokio::test]
async fn a_guard_whose_rebuild_is_dropped_goes_on_writing() {
    let place = tempfile::tempdir().unwrap();
    let set = Faulty::default();
    (0..50).for_each(|number| set.bypass(&key(number)));
    let guard = start(&set, &place.path().join("f")).await;
    guard.rebuild().await.unwrap();
    for waits in 0.. {
        let ended = after(waits, guard.rebuild()).await.is_some();
        // The data set may have another incarnation of this guard now.
        guard.put(&key(1_000 + waits), b"").await.unwrap();
        guard.tend().await;
        assert_eq!(guard.state(), State::Active, "{waits}");
        guard.put(&key(2_000 + waits), b"").await.unwrap();
        if ended {
            return;
        }
    }
}

#[tokio::test]
async fn a_dropped_rebuild_does_not_forget_signs_of_foreign_writes() {
    let set = Faulty::default();
    let kind = Local::new(Family::Blocked, 1e-6).secret(SECRET);
    let guard = Guard::builder(set.clone(), kind).without_background().scan(10, 1.0);
    let guard = guard.audit(0, Duration::from_secs(1)).start().await.unwrap();
    set.show_foreign_writes();
    guard.rebuild().await.unwrap();
    guard.tend().await;
    for waits in 0.. {
        set.bypass(&key(waits));
        set.show_foreign_writes();
        if after(waits, guard.rebuild()).await.is_some() {
            return;
        }
        // The next comparison of all keys waits four times as long as the last one took.
        for _ in 0..1_000 {
            guard.tend().await;
            if guard.contains(&key(waits)).await != Answer::Absent {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_ne!(guard.contains(&key(waits)).await, Answer::Absent, "{waits}");
    }
}

#[tokio::test]
async fn a_guard_that_is_closing_answers_no_more() {
    let place = tempfile::tempdir().unwrap();
    let set = Faulty::default();
    let guard = start(&set, &place.path().join("f")).await;
    guard.rebuild().await.unwrap();
    assert_eq!(guard.contains(b"absent").await, Answer::Absent);
    assert!(after(1, guard.close()).await.is_none(), "it waits for the disk");
    assert!(matches!(guard.contains(b"absent").await, Answer::Unknown(_)));
    guard.close().await.unwrap();
    drop(guard);
    assert_eq!(start(&set, &place.path().join("f")).await.state(), State::Active);
}
