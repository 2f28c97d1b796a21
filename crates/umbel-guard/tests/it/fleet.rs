//! Guards that share one filter through Redis or Valkey. A key that one guard puts is never absent for another.
//! This holds when the filter is evicted, flushed, replaced or stale, and when its server is killed, stopped,
//! or replaced by its replica.

use crate::faulty::{Faulty, Random};
use crate::servers::{Engine, Node, PATIENT, follow, in_step};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use umbel::Keyed;
use umbel_guard::kind::Shared;
use umbel_guard::{Answer, Guard, GuardError, RebuildError, State};
use umbel_redis::Server;

type Guarded = Guard<Faulty, Shared>;

const SECRET: [u8; 16] = [7; 16];

fn nodes() -> impl Iterator<Item = Node> {
    [Engine::Redis, Engine::Valkey].into_iter().filter_map(|engine| Node::start(engine, &[]))
}

async fn guard_by(server: Server, set: &Faulty) -> Guarded {
    let kind = Shared::new(server, "users", 0.001, Keyed::new(SECRET));
    let start = Guard::builder(set.clone(), kind.grace(Duration::from_millis(600)));
    let start = start.set_timeout(Duration::from_millis(250));
    let start = start.filter_timeout(Duration::from_millis(250));
    start.audit(50, Duration::from_millis(100)).capacity(1.5, 5_000).start().await.unwrap()
}

async fn guard(node: &Node, set: &Faulty) -> Guarded {
    guard_by(node.server().await, set).await
}

/// Waits until it answers.
async fn active(guard: &Guarded) {
    let active = tokio::time::timeout(Duration::from_secs(120), guard.active()).await;
    active.expect("it comes back").unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_guard_puts_all_know() {
    for node in nodes() {
        let set = Faulty::default();
        (0..100_u32).for_each(|key| set.bypass(&key.to_le_bytes()));
        let one = guard(&node, &set).await;
        active(&one).await;
        // The second one finds a filter that is complete.
        let two = guard(&node, &set).await;
        active(&two).await;
        for key in 0..100_u32 {
            assert_eq!(two.contains(&key.to_le_bytes()).await, Answer::Maybe);
        }
        assert_eq!(two.contains(b"never").await, Answer::Absent);
        one.put(b"new", b"v").await.unwrap();
        assert_eq!(two.contains(b"new").await, Answer::Maybe);
        assert_eq!(two.get(b"new").await.unwrap().as_deref(), Some(&b"v"[..]));
        // Evicted: all guards stop answering `Absent`, and soon another filter exists.
        node.call(&["DEL", "users"]);
        let lost = two.contains(b"never").await;
        assert!(matches!(lost, Answer::Unknown(_)), "{lost:?}");
        active(&two).await;
        while one.contains(b"never").await != Answer::Absent {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for guard in [&one, &two] {
            assert_eq!(guard.contains(b"new").await, Answer::Maybe);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_filter_that_lacks_a_key_is_built_again_although_it_is_complete() {
    for node in nodes() {
        let set = Faulty::default();
        let one = guard(&node, &set).await;
        active(&one).await;
        set.bypass(b"written without a guard");
        // The audit finds the missing key. A filter that was only opened again would lack it for ever.
        let found = async {
            while one.contains(b"written without a guard").await != Answer::Maybe {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), found).await.expect("it is built again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_that_was_built_again_is_another_one_for_all_and_writes_wait_for_it() {
    for node in nodes() {
        let set = Faulty::default();
        let (one, two) = (guard(&node, &set).await, guard(&node, &set).await);
        active(&one).await;
        active(&two).await;
        // A deleted key: only a rebuild can remove it from the filter.
        one.put(b"ghost", b"v").await.unwrap();
        assert!(two.delete(b"ghost").await.unwrap());
        assert_eq!(one.contains(b"ghost").await, Answer::Maybe);
        let writes = async {
            for number in 0..200_u32 {
                two.put(&number.to_le_bytes(), b"v").await.unwrap();
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let rebuild = async {
            // The guard may already be rebuilding by itself.
            while let Err(error) = one.rebuild().await {
                assert!(matches!(error, RebuildError::UnderWay), "{error}");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::join!(rebuild, writes);
        for guard in [&one, &two] {
            active(guard).await;
            for number in 0..200_u32 {
                assert_eq!(guard.contains(&number.to_le_bytes()).await, Answer::Maybe);
            }
            assert_eq!(guard.contains(b"ghost").await, Answer::Absent);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_with_another_secret_is_not_taken_away() {
    for node in nodes() {
        let set = Faulty::default();
        let one = guard(&node, &set).await;
        active(&one).await;
        let other = Shared::new(node.server().await, "users", 0.001, Keyed::new([8; 16]));
        let start = Guard::builder(set.clone(), other).without_background();
        let stranger = start.start().await.unwrap();
        let refused = stranger.rebuild().await.unwrap_err();
        assert!(refused.to_string().contains("another"), "{refused}");
        assert_eq!(one.contains(b"never").await, Answer::Absent);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_shared_filter_reads_go_through_and_writes_wait() {
    for node in nodes() {
        let set = Faulty::default();
        set.bypass(b"k");
        let guard = guard(&node, &set).await;
        active(&guard).await;
        drop(node);
        assert!(matches!(guard.contains(b"k").await, Answer::Unknown(_)));
        assert!(guard.get(b"k").await.unwrap().is_some());
        assert_eq!(guard.get(b"none").await.unwrap(), None);
        // Another guard may still reach the filter, and would report the key absent.
        let put = guard.put(b"new", b"v").await;
        assert!(matches!(put, Err(GuardError::Filter(_))), "{put:?}");
        assert!(!set.has(b"new"));
    }
}

/// Results of the workers, to show that the test exercised the filter.
#[derive(Debug, Default)]
struct Told {
    puts: AtomicU64,
    absent: AtomicU64,
    all: AtomicU64,
}

async fn work(guard: Guarded, set: Faulty, worker: u64, stop: Arc<AtomicBool>, told: Arc<Told>) {
    let mut random = Random(worker);
    while !stop.load(SeqCst) {
        let key = format!("{worker} {}", random.below(100)).into_bytes();
        if random.one_in(3) {
            let put = guard.put(&key, b"v").await.is_ok();
            told.puts.fetch_add(u64::from(put), SeqCst);
        } else if random.one_in(4) {
            let _ = guard.delete(&key).await;
        } else {
            // Also keys that another guard writes.
            let other = format!("{} {}", random.below(4), random.below(120)).into_bytes();
            let before = set.has(&other);
            let answer = guard.contains(&other).await;
            // The key may have been deleted and put again in between, because it was put before the look-up
            // began.
            if before && set.has(&other) {
                let really =
                    answer != Answer::Absent || deleted_meanwhile(&guard, &set, &other).await;
                assert!(really, "{} is there", String::from_utf8_lossy(&other));
            }
            told.absent.fetch_add(u64::from(answer == Answer::Absent), SeqCst);
        }
        told.all.fetch_add(1, SeqCst);
    }
}

/// A key that other workers delete and put again may have been absent for a moment. A second look-up does not
/// report it absent.
async fn deleted_meanwhile(guard: &Guarded, set: &Faulty, key: &[u8]) -> bool {
    guard.contains(key).await != Answer::Absent || !set.has(key)
}

/// Waits until the condition holds.
async fn until(so: impl Fn() -> bool) {
    for _ in 0..12_000 {
        if so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it is never so");
}

/// Two guards and four workers, for repeated faults.
struct Fleet {
    guards: [Guarded; 2],
    workers: Vec<tokio::task::JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    told: Arc<Told>,
}

impl Fleet {
    fn start(guards: [Guarded; 2], set: &Faulty) -> Self {
        let (stop, told) = (Arc::new(AtomicBool::new(false)), Arc::new(Told::default()));
        let workers = (0..4)
            .map(|worker| {
                let guard = guards[worker as usize % 2].clone();
                work(guard, set.clone(), worker, stop.clone(), told.clone())
            })
            .map(tokio::spawn)
            .collect();
        Self { guards, workers, stop, told }
    }

    /// Waits until both guards answer, and a little longer.
    async fn recovered(&self) {
        for guard in &self.guards {
            active(guard).await;
        }
        tokio::time::sleep(Duration::from_millis(150)).await;
    }

    /// How often the trust has ended, in both guards together.
    fn trips(&self) -> u64 {
        self.guards.iter().map(|guard| guard.stats().trips).sum()
    }

    /// Waits until a guard has noticed the loss.
    async fn noticed(&self, before: u64) {
        until(|| self.trips() > before).await;
    }

    /// Results of the workers: puts, absent keys, and all operations.
    fn told(&self) -> [u64; 3] {
        let Told { puts, absent, all } = &*self.told;
        [puts, absent, all].map(|number| number.load(SeqCst))
    }

    /// Ends the workers; returns how often the trust ended.
    async fn end(self) -> u64 {
        self.recovered().await;
        until(|| self.told().into_iter().zip([50, 50, 500]).all(|(got, least)| got > least)).await;
        self.stop.store(true, SeqCst);
        for worker in self.workers {
            worker.await.unwrap();
        }
        self.guards.iter().map(|guard| guard.stats().trips).sum()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_readable_is_absent_while_the_filter_is_lost_again_and_again() {
    for mut node in nodes() {
        let set = Faulty::default();
        let guards = [guard(&node, &set).await, guard(&node, &set).await];
        let fleet = Fleet::start(guards, &set);
        let losses: [&[&str]; 6] = [
            &["DEL", "users"],
            &["FLUSHALL"],
            &["SET", "users", "something else"],
            &["SETRANGE", "users", "0", "XXXX"],
            &["RENAME", "users", "others"],
            &["PEXPIRE", "users", "1"],
        ];
        for loss in losses {
            fleet.recovered().await;
            let before = fleet.trips();
            node.call(loss);
            fleet.noticed(before).await;
            if loss[0].starts_with("SET") {
                // A guard does not delete a key of another application: an operator has to decide that.
                let [one, two] = &fleet.guards;
                while one.state() == State::Active || two.state() == State::Active {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                assert!(one.get(b"anything").await.is_ok());
                node.call(&["DEL", "users"]);
            }
        }
        // Evicted for want of memory.
        fleet.recovered().await;
        let before = fleet.trips();
        node.call(&["CONFIG", "SET", "maxmemory-policy", "allkeys-random"]);
        node.call(&["CONFIG", "SET", "maxmemory", "1"]);
        until(|| node.call(&["EXISTS", "users"]) == redis::Value::Int(0)).await;
        node.call(&["CONFIG", "SET", "maxmemory", "0"]);
        fleet.noticed(before).await;
        node.call(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
        // Stopped for longer than any time-out.
        fleet.recovered().await;
        node.signal("STOP");
        tokio::time::sleep(Duration::from_millis(700)).await;
        node.signal("CONT");
        // Killed, and restarted without data.
        fleet.recovered().await;
        let before = fleet.trips();
        node.kill();
        node.restart();
        fleet.noticed(before).await;
        let trips = fleet.end().await;
        assert!(trips >= 8, "{trips}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_readable_is_absent_after_a_replica_that_lags_has_taken_over() {
    for engine in [Engine::Redis, Engine::Valkey] {
        let nodes = [Node::start(engine, &[]), Node::start(engine, &[])];
        let [Some(mut primary), Some(replica)] = nodes else { continue };
        follow(&replica, &primary);
        let urls = [primary.url(), replica.url()];
        let urls = urls.each_ref().map(String::as_str);
        let server = async || Server::replicated(&urls, PATIENT).await.unwrap();
        let set = Faulty::default();
        let fleet = Fleet::start(
            [guard_by(server().await, &set).await, guard_by(server().await, &set).await],
            &set,
        );
        fleet.recovered().await;
        in_step(&primary, &replica);
        // From here on the replica receives nothing, so its filter lacks the keys that are put now.
        replica.call(&["REPLICAOF", "NO", "ONE"]);
        replica.call(&["REPLICAOF", "127.0.0.1", "1"]);
        fleet.guards[0].put(b"late", b"v").await.unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
        primary.kill();
        replica.call(&["REPLICAOF", "NO", "ONE"]);
        for guard in &fleet.guards {
            assert_ne!(guard.contains(b"late").await, Answer::Absent);
        }
        // A guard that starts now finds the old filter, marked as complete.
        let late = guard_by(server().await, &set).await;
        assert_ne!(late.contains(b"late").await, Answer::Absent);
        active(&late).await;
        assert_eq!(late.contains(b"late").await, Answer::Maybe);
        assert!(fleet.end().await >= 2);
    }
}
