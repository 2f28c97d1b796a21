//! The law-book, on a filter behind a network.

use crate::servers::{Engine, Node, PATIENT};
use crate::shared::created;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex};
use umbel::Portable;
use umbel::blocked::Shape;
use umbel_laws::{Pattern, Subject, Trial, no_false_negatives, rate_within};
use umbel_redis::{Answer, Blocking, Options, Server, SharedBloom};

/// One server for all filters of this module. It ends with the last of its tests.
static NODE: LazyLock<Mutex<Option<Node>>> =
    LazyLock::new(|| Mutex::new(Node::start(Engine::Redis, &[])));

/// A shared filter behind the interface of the laws.
struct Remote(Blocking<SharedBloom<u64>>);

impl Subject for Remote {
    fn make(capacity: u64, err_rate: f64, seed: u64) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let (name, shards) = (format!("law {number}"), Some(1 + (number % 3) as u32));
        let url = NODE.lock().unwrap().as_ref().unwrap().url();
        let shape = Shape::for_rate(capacity, err_rate).unwrap();
        let shards = shards.filter(|shards| u64::from(*shards) <= shape.lines());
        let filter = Blocking::open(async {
            let server = Server::replicated(&[&url], PATIENT).await?;
            let options = Options { shards, ..Options::default() };
            created(&server, &name, shape, Portable::seeded(seed), &options).await
        });
        Self(filter.unwrap())
    }

    fn insert(&mut self, key: u64) -> bool {
        self.0.insert(&key).unwrap().is_absent()
    }

    fn contains(&self, key: u64) -> bool {
        match self.0.contains(&key) {
            Answer::Maybe => true,
            Answer::Absent => false,
            Answer::Unknown(reason) => panic!("{reason}"),
        }
    }

    fn rate_now(&self) -> f64 {
        self.0.wait(self.0.filter().download()).unwrap().expected_rate()
    }
}

#[test]
fn a_filter_behind_a_network_obeys_the_law() {
    if NODE.lock().unwrap().is_none() {
        return;
    }
    for (items, rate) in [(0, 0.01), (1, 0.01), (40, 0.001), (300, 0.01)] {
        no_false_negatives::<Remote>(items, rate);
    }
    let pattern = Pattern::Sequential;
    rate_within::<Remote>(Trial { items: 1_000, rate: 0.01, pattern, seeds: 1, queries: 10_000 });
    // Ends the server, because a static is never dropped.
    NODE.lock().unwrap().take();
}
