//! Clients insert and look up keys while servers are killed, promoted, flushed and stopped. An exact model
//! checks every answer.
//!
//! The model is the set of acknowledged keys. None of them is ever absent for any client, including new ones.
//! Keys that were never inserted are mostly absent while the servers are healthy.

use crate::servers::{Engine, Node, PATIENT, follow, in_step, pair};
use crate::shared::created;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;
use umbel::Portable;
use umbel::blocked::Shape;
use umbel_laws::split_mix;
use umbel_redis::{Answer, Error, Limits, Options, Reason, Server, SharedBloom};

pub(crate) type Filter = SharedBloom<u64>;

/// The state that all clients share.
#[derive(Default)]
pub(crate) struct Model {
    acknowledged: Mutex<Vec<u64>>,
    /// All keys that a client has begun to insert. It includes everything that a lost server has acknowledged.
    begun: Mutex<Vec<u64>>,
    next: AtomicU64,
    over: AtomicBool,
    maybe: AtomicU64,
    absent: AtomicU64,
    unknown: AtomicU64,
}

const HASTY: Limits =
    Limits { connect: Duration::from_secs(2), reply: Duration::from_millis(500), retries: 1 };

/// The servers of the filter.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) urls: Vec<String>,
    pub(crate) cluster: bool,
}

impl Place {
    async fn connect(&self, limits: Limits) -> Result<Server, Error> {
        let urls: Vec<&str> = self.urls.iter().map(String::as_str).collect();
        match self.cluster {
            true => Server::cluster(&urls, limits).await,
            false => Server::replicated(&urls, limits).await,
        }
    }

    pub(crate) async fn open(&self) -> Option<Filter> {
        let server = self.connect(HASTY).await;
        Filter::open(&server.ok()?, "f", Portable::default(), &Options::default()).await.ok()
    }
}

impl Model {
    /// Inserts and looks up keys until the test ends, sometimes with a new connection.
    pub(crate) async fn client(self: Arc<Self>, place: Place, seed: u64) {
        let (mut filter, mut turn) = (None, seed);
        while !self.over.load(SeqCst) {
            turn += 1;
            let luck = split_mix(turn.wrapping_mul(1_000_003) ^ seed);
            if filter.is_none() || luck.is_multiple_of(64) {
                filter = place.open().await;
            }
            let Some(filter) = &filter else {
                self.count(Answer::Unknown(Reason::Missing));
                tokio::time::sleep(Duration::from_millis(5)).await;
                continue;
            };
            let first = self.next.fetch_add(20, SeqCst);
            let keys: Vec<u64> = (first..first + luck % 20).collect();
            self.begun.lock().unwrap().extend(&keys);
            if filter.insert_batch(&keys).await.is_ok() {
                self.acknowledged.lock().unwrap().extend(&keys);
            }
            self.ask(filter, luck).await;
        }
    }

    /// Looks up some acknowledged keys, and some that were never inserted.
    async fn ask(&self, filter: &Filter, luck: u64) {
        let known: Vec<u64> = {
            let all = self.acknowledged.lock().unwrap();
            let recent = all.len().saturating_sub(30);
            let any =
                (0..30).filter_map(|at| all.get(split_mix(luck + at) as usize % all.len().max(1)));
            all[recent..].iter().chain(any).copied().collect()
        };
        for (key, answer) in known.iter().zip(filter.contains_batch(&known).await) {
            assert!(!answer.is_absent(), "key {key} was acknowledged");
            self.count(answer);
        }
        let strangers: Vec<u64> =
            (0..10).map(|at| (1 << 40) + split_mix(luck + at) % (1 << 39)).collect();
        for answer in filter.contains_batch(&strangers).await {
            self.count(answer);
        }
    }

    fn count(&self, answer: Answer) {
        let counter = match answer {
            Answer::Maybe => &self.maybe,
            Answer::Absent => &self.absent,
            Answer::Unknown(_) => &self.unknown,
        };
        counter.fetch_add(1, SeqCst);
    }

    /// Stops the clients. Then the servers are healthy, every acknowledged key is present, and the counters
    /// show that the test had effect.
    pub(crate) async fn end(&self, clients: Vec<JoinHandle<()>>, place: &Place) {
        self.over.store(true, SeqCst);
        for client in clients {
            client.await.unwrap();
        }
        let server = place.connect(PATIENT).await.unwrap();
        let options = Options::default();
        let filter = Filter::open(&server, "f", Portable::default(), &options).await.unwrap();
        let all = self.acknowledged.lock().unwrap().clone();
        assert_eq!(filter.contains_batch(&all).await, vec![Answer::Maybe; all.len()]);
        let counts = [&self.maybe, &self.absent, &self.unknown].map(|count| count.load(SeqCst));
        let enough = all.len() >= 400 && counts.iter().all(|count| *count >= 100);
        assert!(enough, "{} {counts:?}", all.len());
    }

    /// After a loss: inserts all acknowledged keys again, and marks the filter as complete.
    pub(crate) async fn repair(&self, place: &Place) {
        let filter = loop {
            match place.open().await {
                Some(filter) => break filter,
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        // From here on, only this server acknowledges inserts.
        tried(async || filter.adopt().await.is_ok()).await;
        let all = self.begun.lock().unwrap().clone();
        for keys in all.chunks(2_000) {
            tried(async || filter.insert_batch(keys).await.is_ok()).await;
        }
        tried(async || filter.complete().await.is_ok()).await;
    }

    /// Waits until the clients have counted this many more acknowledged keys, `Absent` answers and `Unknown`
    /// answers.
    async fn more(&self, acknowledged: usize, absent: u64, unknown: u64) {
        let now = || {
            let (absent, unknown) = (self.absent.load(SeqCst), self.unknown.load(SeqCst));
            (self.acknowledged.lock().unwrap().len(), absent, unknown)
        };
        let before = now();
        tried(async || {
            let now = now();
            now.0 >= before.0 + acknowledged
                && now.1 >= before.1 + absent
                && now.2 >= before.2 + unknown
        })
        .await;
    }

    /// Waits until clients get acknowledgements and answers again.
    pub(crate) async fn work(&self) {
        self.more(200, 100, 0).await;
    }

    /// Waits until clients have noticed a loss.
    pub(crate) async fn notice(&self) {
        self.more(0, 0, 50).await;
    }
}

/// Repeats the work until it succeeds.
async fn tried(work: impl AsyncFn() -> bool) {
    for _ in 0..6_000 {
        if work().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it is never done");
}

/// Kills, stops, promotes. Returns the new primary first.
async fn fail(model: &Model, nodes: [Node; 2], place: &Place, round: u64) -> [Node; 2] {
    let [mut primary, replica] = nodes;
    model.work().await;
    match round % 4 {
        0 => {
            // Acknowledged keys never reach the replica, which is then promoted.
            in_step(&primary, &replica);
            replica.signal("STOP");
            model.work().await;
            primary.kill();
            replica.signal("CONT");
            replica.call(&["REPLICAOF", "NO", "ONE"]);
            primary.restart();
            follow(&primary, &replica);
            model.notice().await;
            model.repair(place).await;
            [replica, primary]
        }
        1 => {
            // The server is killed and restarts with an old copy.
            primary.save();
            model.work().await;
            primary.kill();
            primary.restart();
            replica.until("replication", "master_link_status", "up");
            model.notice().await;
            model.repair(place).await;
            [primary, replica]
        }
        2 => {
            // Roles change while clients are connected.
            replica.call(&["REPLICAOF", "NO", "ONE"]);
            follow(&primary, &replica);
            model.notice().await;
            model.repair(place).await;
            [replica, primary]
        }
        _ => {
            // The server is stopped for longer than any time-out, and loses its cached scripts.
            primary.signal("STOP");
            model.more(0, 0, 1).await;
            primary.signal("CONT");
            primary.call(&["SCRIPT", "FLUSH"]);
            [primary, replica]
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_was_acknowledged_is_ever_absent() {
    for engine in [Engine::Redis, Engine::Valkey] {
        let Some(mut nodes) = pair(engine) else { continue };
        let urls: Vec<String> = nodes.iter().map(Node::url).collect();
        let server = Server::replicated(&[&urls[0]], PATIENT).await.unwrap();
        let place = Place { urls, cluster: false };
        let shape = Shape::for_rate(200_000, 0.001).unwrap();
        let options = Options { shards: Some(3), ..Options::default() };
        created::<u64, _>(&server, "f", shape, Portable::default(), &options).await.unwrap();
        let model = Arc::new(Model::default());
        let clients: Vec<_> = (0..3)
            .map(|seed| tokio::spawn(model.clone().client(place.clone(), seed * 1_000_000)))
            .collect();
        for round in 0..8 {
            nodes = fail(&model, nodes, &place, round).await;
        }
        model.work().await;
        model.end(clients, &place).await;
    }
}

/// The filter itself is lost: flushed, expired, evicted by hand, created again, during look-ups. Each filter
/// has a separate model, because a new one is a different filter.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filter_that_is_lost_and_made_anew_answers_for_itself_only() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let (server, over) = (node.server().await, Arc::new(AtomicBool::new(false)));
    let shape = Shape::for_rate(50_000, 0.01).unwrap();
    let mut clients = Vec::new();
    let counts: Arc<[AtomicU64; 3]> = Arc::default();
    for seed in 0..3_u64 {
        let (server, over, counts) = (server.clone(), over.clone(), counts.clone());
        clients.push(tokio::spawn(async move {
            let mut turn = seed << 32;
            while !over.load(SeqCst) {
                let options = Options::default();
                let hasher = Portable::default();
                let made = Filter::open_or_create(&server, "f", shape, hasher, &options).await;
                let Ok((filter, _)) = made else { continue };
                // No key was inserted into a filter that did not exist: an empty one is right here.
                if filter.complete().await.is_err() {
                    continue;
                }
                let mut mine = Vec::new();
                for _ in 0..200 {
                    turn += 1;
                    if filter.insert(&turn).await.is_ok() {
                        mine.push(turn);
                    }
                    let mut lost = false;
                    for answer in filter.contains_batch(&mine).await {
                        assert!(!answer.is_absent());
                        lost |= answer.is_unknown();
                        counts[usize::from(answer.is_unknown())].fetch_add(1, SeqCst);
                    }
                    let stranger = filter.contains(&(turn | 1 << 50)).await;
                    counts[2].fetch_add(u64::from(stranger.is_absent()), SeqCst);
                    if lost {
                        break;
                    }
                }
            }
        }));
    }
    let seen = |at: usize| counts[at].load(SeqCst);
    for round in 0..200 {
        // Until clients have found keys in the current filter, and others absent.
        let before = (seen(0), seen(2));
        tried(async || seen(0) > before.0 && seen(2) > before.1).await;
        let what: &[&str] = match round % 5 {
            0 => &["FLUSHALL"],
            1 => &["DEL", "f"],
            2 => &["PEXPIRE", "f", "1"],
            3 => &["SWAPDB", "0", "1"],
            _ => &[
                "EVAL",
                "if redis.call('EXISTS', 'f') == 1 then redis.call('RENAME', 'f', 'g') end",
                "0",
            ],
        };
        node.call(what);
    }
    over.store(true, SeqCst);
    for client in clients {
        client.await.unwrap();
    }
    let counts = [0, 1, 2].map(seen);
    assert!(counts.iter().all(|count| *count >= 20), "{counts:?}");
}
