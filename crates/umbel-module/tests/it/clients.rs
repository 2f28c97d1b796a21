//! The typed clients of `umbel-redis`, against the module.

use super::server::{Server, engines};
use std::time::Duration;
use umbel_redis::{
    Answer, Blocking, Error, Limits, ModuleBloom, ModuleCuckoo, Policy, Reason, Server as Remote,
};

/// The connection of `umbel-redis`. On a busy machine a reply may take longer than the default of 250 ms.
async fn remote(server: &Server) -> Result<Remote, Error> {
    let patient = Duration::from_secs(60);
    let limits = Limits { connect: patient, reply: patient, retries: 2 };
    Remote::replicated(&[&format!("redis://127.0.0.1:{}/", server.port)], limits).await
}

fn keys(numbers: std::ops::Range<u32>) -> Vec<Vec<u8>> {
    numbers.map(|number| format!("key {number}").into_bytes()).collect()
}

/// The number of keys that were found. Fails if an answer is unknown.
fn found(answers: &[Answer]) -> usize {
    assert!(answers.iter().all(|answer| !answer.is_unknown()), "{answers:?}");
    answers.iter().filter(|answer| !answer.is_absent()).count()
}

#[test]
fn a_bloom_filter_by_its_client() {
    for engine in engines() {
        let server = Server::start(engine);
        let filter = Blocking::open(async {
            ModuleBloom::reserve(&remote(&server).await?, "b", 1_000, 0.01, Policy::Warn).await
        })
        .unwrap();
        let fresh = filter.insert_batch(&keys(0..1_000)).unwrap();
        // The rate is at most 1 %, so more than 38 false positives occur once in two billion runs.
        assert!(found(&fresh) <= 38, "{engine:?}");
        assert_eq!(found(&filter.contains_batch(&keys(0..1_000))), 1_000, "{engine:?}");
        assert!(found(&filter.contains_batch(&keys(1_000..2_000))) <= 38, "{engine:?}");
        let items = filter.wait(filter.filter().items()).unwrap();
        assert_eq!(items, 1_000 - found(&fresh) as u64, "{engine:?}");
        server.client().ask("DEL b");
        assert_eq!(filter.contains(b"key 1"), Answer::Unknown(Reason::Missing), "{engine:?}");
        server.client().ask("SET b text");
        assert_eq!(filter.contains(b"key 1"), Answer::Unknown(Reason::Foreign), "{engine:?}");
    }
}

#[test]
fn a_cuckoo_filter_by_its_client() {
    for engine in engines() {
        let server = Server::start(engine);
        let filter = Blocking::open(async {
            ModuleCuckoo::reserve(&remote(&server).await?, "c", 2_000, Policy::Warn).await
        })
        .unwrap();
        filter.insert_batch(&keys(0..1_000)).unwrap();
        assert_eq!(found(&filter.contains_batch(&keys(0..1_000))), 1_000, "{engine:?}");
        for key in keys(0..500) {
            assert_eq!(filter.wait(filter.filter().remove(&key)), Ok(true), "{engine:?}");
        }
        assert_eq!(found(&filter.contains_batch(&keys(500..1_000))), 500, "{engine:?}");
        // Four slots of one byte: at most 4 in 255, and five sigma more.
        assert!(found(&filter.contains_batch(&keys(0..500))) <= 22, "{engine:?}");
        server.client().ask("FLUSHALL");
        assert_eq!(filter.contains(b"key 900"), Answer::Unknown(Reason::Missing), "{engine:?}");
    }
}
