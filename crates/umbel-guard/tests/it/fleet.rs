//! Guards that share one filter through Redis: what one of them puts no other one takes for absent, also when the filter is
//! evicted, flushed or replaced.

use crate::faulty::{Faulty, Random};
use crate::server;
use redis::Client;
use redis::aio::MultiplexedConnection;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use umbel::Keyed;
use umbel_guard::kind::Shared;
use umbel_guard::{Answer, Guard, GuardError, State};

type Guarded = Guard<Faulty, Shared>;

async fn kind(url: &str) -> Shared {
    let kind = Shared::connect(url, "users", 0.001, Keyed::new([7; 16])).await.unwrap();
    kind.grace(Duration::from_millis(600))
}

async fn guard(url: &str, set: &Faulty) -> Guarded {
    let start =
        Guard::builder(set.clone(), kind(url).await).set_timeout(Duration::from_millis(250));
    let start =
        start.filter_timeout(Duration::from_millis(250)).audit(50, Duration::from_millis(100));
    start.capacity(1.5, 5_000).start().await.unwrap()
}

async fn side(url: &str) -> MultiplexedConnection {
    Client::open(url).unwrap().get_multiplexed_async_connection().await.unwrap()
}

async fn send(connection: &mut MultiplexedConnection, words: &[&str]) {
    let mut command = redis::cmd(words[0]);
    words[1..].iter().for_each(|word| _ = command.arg(word));
    let _: redis::Value = command.query_async(connection).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_guard_puts_all_know() {
    let Some(server) = server::redis() else { return };
    let (url, set) = (server.redis_url(), Faulty::default());
    (0..100_u32).for_each(|key| set.bypass(&key.to_le_bytes()));
    let one = guard(&url, &set).await;
    one.active().await.unwrap();
    let scans = set.0.scans.load(SeqCst);
    // The second one finds a filter that is complete. It counts, and it audits; it does not scan for it.
    let two = guard(&url, &set).await;
    two.active().await.unwrap();
    for key in 0..100_u32 {
        assert_eq!(two.contains(&key.to_le_bytes()).await, Answer::Maybe);
    }
    assert_eq!(two.contains(b"never").await, Answer::Absent);
    one.put(b"new", b"v").await.unwrap();
    assert_eq!(two.contains(b"new").await, Answer::Maybe);
    assert_eq!(two.get(b"new").await.unwrap().as_deref(), Some(&b"v"[..]));
    assert!(scans > 0);
    // Gone, as an eviction takes it: nobody says absent, and soon there is another one.
    send(&mut side(&url).await, &["DEL", "users"]).await;
    let lost = two.contains(b"never").await;
    assert!(matches!(lost, Answer::Unknown(_)), "{lost:?}");
    two.active().await.unwrap();
    while one.contains(b"never").await != Answer::Absent {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for guard in [&one, &two] {
        assert_eq!(guard.contains(b"new").await, Answer::Maybe);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_shared_filter_reads_go_through_and_writes_wait() {
    let Some(server) = server::redis() else { return };
    let (url, set) = (server.redis_url(), Faulty::default());
    set.bypass(b"k");
    let guard = guard(&url, &set).await;
    guard.active().await.unwrap();
    drop(server);
    assert!(matches!(guard.contains(b"k").await, Answer::Unknown(_)));
    assert!(guard.get(b"k").await.unwrap().is_some());
    assert_eq!(guard.get(b"none").await.unwrap(), None);
    // Another guard may still reach it, and would take the key for absent.
    let put = guard.put(b"new", b"v").await;
    assert!(matches!(put, Err(GuardError::Filter(_))), "{put:?}");
    assert!(!set.has(b"new"));
}

async fn work(
    guard: Guarded,
    set: Faulty,
    worker: u64,
    stop: Arc<AtomicBool>,
    told: Arc<[AtomicU64; 3]>,
) {
    let mut random = Random(worker);
    while !stop.load(SeqCst) {
        let key = format!("{worker} {}", random.below(100)).into_bytes();
        if random.one_in(3) {
            if guard.put(&key, b"v").await.is_ok() {
                told[0].fetch_add(1, SeqCst);
            }
        } else if random.one_in(4) {
            let _ = guard.delete(&key).await;
        } else {
            // Also of keys that another guard writes.
            let other = format!("{} {}", random.below(4), random.below(120)).into_bytes();
            let before = set.has(&other);
            let answer = guard.contains(&other).await;
            // Deleted and put again in between is no matter: it was put before it was asked for.
            if before && set.has(&other) {
                let really =
                    answer != Answer::Absent || deleted_meanwhile(&guard, &set, &other).await;
                assert!(really, "{} is there", String::from_utf8_lossy(&other));
            }
            told[1].fetch_add(u64::from(answer == Answer::Absent), SeqCst);
        }
        told[2].fetch_add(1, SeqCst);
    }
}

/// A key that others delete and put again may have been absent for a moment; asked for once more, it is not.
async fn deleted_meanwhile(guard: &Guarded, set: &Faulty, key: &[u8]) -> bool {
    guard.contains(key).await != Answer::Absent || !set.has(key)
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_readable_is_absent_while_the_filter_is_lost_again_and_again() {
    let Some(server) = server::redis() else { return };
    let (url, set) = (server.redis_url(), Faulty::default());
    let (one, two) = (guard(&url, &set).await, guard(&url, &set).await);
    let stop = Arc::new(AtomicBool::new(false));
    let told: Arc<[AtomicU64; 3]> = Arc::default();
    let workers: Vec<_> = [&one, &two, &one, &two]
        .into_iter()
        .zip(0..)
        .map(|(guard, worker)| work(guard.clone(), set.clone(), worker, stop.clone(), told.clone()))
        .map(tokio::spawn)
        .collect();
    let mut connection = side(&url).await;
    let losses: [&[&str]; 6] = [
        &["DEL", "users"],
        &["FLUSHALL"],
        &["SET", "users", "something else"],
        &["SETRANGE", "users", "0", "XXXX"],
        &["RENAME", "users", "others"],
        &["PEXPIRE", "users", "1"],
    ];
    for loss in losses {
        for guard in [&one, &two] {
            let active = tokio::time::timeout(Duration::from_secs(30), guard.active()).await;
            active.expect("it comes back").unwrap();
        }
        tokio::time::sleep(Duration::from_millis(150)).await;
        let mut command = redis::cmd(loss[0]);
        loss[1..].iter().for_each(|word| _ = command.arg(word));
        let _: Result<redis::Value, _> = command.query_async(&mut connection).await;
        if loss[0].starts_with("SET") {
            // What belongs to somebody else is not taken away: that is for people to decide.
            while one.state() == State::Active || two.state() == State::Active {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            assert!(one.get(b"anything").await.is_ok());
            send(&mut connection, &["DEL", "users"]).await;
        }
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    stop.store(true, SeqCst);
    for worker in workers {
        worker.await.unwrap();
    }
    let [puts, absent, all] = [0, 1, 2].map(|number| told[number].load(SeqCst));
    assert!(puts > 50 && absent > 50 && all > 500, "{puts} puts, {absent} absent of {all}");
    assert!(one.stats().trips + two.stats().trips >= 4);
    assert!(one.state() != State::Empty);
}
