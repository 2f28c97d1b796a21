//! Creating, opening and completing: an empty filter answers "absent" only after a caller has marked it as
//! complete.

use crate::servers::{Engine, Node};
use crate::shared::{created, in_shards};
use redis::Value;
use umbel::blocked::Shape;
use umbel::{BlockedBloomFilter, Portable};
use umbel_redis::{Answer, Error, Found, Limits, Opening, Options, Reason, Server, SharedBloom};

type Filter = SharedBloom<u64>;

const KNOWN: [Answer; 2] = [Answer::Maybe, Answer::Absent];
const INCOMPLETE: [Answer; 2] = [Answer::Unknown(Reason::Incomplete); 2];
const ENGINES: [Engine; 2] = [Engine::Redis, Engine::Valkey];

fn shape() -> Shape {
    Shape::for_rate(10_000, 0.001).unwrap()
}

async fn create(server: &Server, options: &Options) -> Result<Filter, Error> {
    Filter::create(server, "f", shape(), Portable::default(), options).await
}

async fn open(server: &Server) -> Result<Filter, Error> {
    Filter::open(server, "f", Portable::default(), &Options::default()).await
}

async fn either(server: &Server, options: &Options) -> Result<(Filter, Opening), Error> {
    Filter::open_or_create(server, "f", shape(), Portable::default(), options).await
}

/// The answers for an inserted key and for another key.
async fn asked(filter: &Filter) -> [Answer; 2] {
    [filter.contains(&1).await, filter.contains(&1_000_001).await]
}

fn unknown(reason: Reason) -> Error {
    Error::Unknown(reason)
}

/// All bytes of a key.
fn bytes(node: &Node, key: &str) -> Vec<u8> {
    redis::from_redis_value(node.call(&["GETRANGE", key, "0", "-1"])).unwrap()
}

#[tokio::test]
async fn open_fails_if_the_filter_is_missing_and_create_fails_if_it_exists() {
    for engine in ENGINES {
        let Some(node) = Node::start(engine, &[]) else { continue };
        let server = node.server().await;
        for options in [in_shards(1), in_shards(3)] {
            node.call(&["FLUSHALL"]);
            assert_eq!(open(&server).await.err(), Some(unknown(Reason::Missing)));
            assert_eq!(node.call(&["DBSIZE"]), Value::Int(0));
            let filter = create(&server, &options).await.unwrap();
            filter.insert(&1).await.unwrap();
            // Also in another number of shards.
            for options in [in_shards(1), in_shards(3), in_shards(4)] {
                assert_eq!(create(&server, &options).await.err(), Some(Error::Exists));
            }
            filter.complete().await.unwrap();
            assert_eq!(asked(&open(&server).await.unwrap()).await, KNOWN);
        }
    }
}

/// The reproduced case: evicted, the process restarted, and every key was absent.
#[tokio::test]
async fn a_filter_that_was_created_after_a_loss_is_unknown_until_it_is_complete() {
    for engine in ENGINES {
        let Some(node) = Node::start(engine, &[]) else { continue };
        let server = node.server().await;
        for options in [in_shards(1), in_shards(3)] {
            node.call(&["FLUSHALL"]);
            let (first, opening) = either(&server, &options).await.unwrap();
            assert_eq!(opening, Opening::Created);
            first.insert(&1).await.unwrap();
            first.complete().await.unwrap();
            let (again, opening) = either(&server, &options).await.unwrap();
            assert_eq!((opening, asked(&again).await), (Opening::Opened, KNOWN));
            node.call(&["FLUSHALL"]);
            let (new, opening) = either(&server, &options).await.unwrap();
            assert_eq!((opening, new.is_complete().await), (Opening::Created, Ok(false)));
            // The same holds for a client that starts while it is being filled, and after its creator has
            // ended.
            new.insert(&2).await.unwrap();
            drop(new);
            let (second, opening) = either(&server, &options).await.unwrap();
            assert_eq!((opening, asked(&second).await), (Opening::Opened, INCOMPLETE));
            assert_eq!(second.check().await, Err(Reason::Incomplete));
            assert_eq!(second.insert(&1).await, Ok(Answer::Unknown(Reason::Incomplete)));
            // A copy of it would answer "absent" without a server.
            assert_eq!(second.download().await.err(), Some(unknown(Reason::Incomplete)));
            // The client that fills it can verify what has arrived.
            let digests = [1, 2, 1_000_001_u64].map(|key| {
                let hasher = Portable::default();
                umbel::hash::Digester::digest(&hasher, &key)
            });
            assert_eq!(second.missing_digests(&digests).await, Ok(1));
            second.complete().await.unwrap();
            assert_eq!(asked(&open(&server).await.unwrap()).await, KNOWN);
            // The handle of the lost filter does not answer for the new one.
            assert_eq!(first.contains(&1).await, Answer::Unknown(Reason::Replaced));
            assert_eq!(first.complete().await, Err(unknown(Reason::Replaced)));
        }
    }
}

#[tokio::test]
async fn a_server_that_was_restarted_while_a_filter_was_filled_does_not_complete_it() {
    let Some(mut node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    let filter = create(&server, &in_shards(2)).await.unwrap();
    node.save();
    filter.insert(&1).await.unwrap();
    node.kill();
    node.restart();
    assert_eq!(filter.complete().await, Err(unknown(Reason::History)));
    assert_eq!(filter.insert(&1).await, Err(unknown(Reason::History)));
    filter.adopt().await.unwrap();
    assert_eq!(filter.is_complete().await, Ok(false));
    filter.insert(&1).await.unwrap();
    filter.complete().await.unwrap();
    assert_eq!(asked(&open(&server).await.unwrap()).await, KNOWN);
}

/// A shard is evicted. Neither opening nor creating makes it exist again as an empty one.
#[tokio::test]
async fn a_lost_shard_is_never_brought_back_empty() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    let options = in_shards(4);
    for (lost, complete) in [(2, true), (2, false), (3, true)] {
        node.call(&["FLUSHALL"]);
        let filter = create(&server, &options).await.unwrap();
        let keys: Vec<u64> = (0..500).collect();
        filter.insert_batch(&keys).await.unwrap();
        if complete {
            filter.complete().await.unwrap();
        }
        let name = filter.keys().nth(lost).unwrap().to_owned();
        node.call(&["DEL", &name]);
        assert_eq!(create(&server, &options).await.err(), Some(Error::Exists));
        let (again, opening) = either(&server, &options).await.unwrap();
        assert_eq!(opening, Opening::Opened);
        assert_eq!(node.call(&["EXISTS", &name]), Value::Int(0));
        for filter in [&filter, &again] {
            assert_eq!(filter.complete().await, Err(unknown(Reason::Missing)));
            assert_eq!(filter.adopt().await, Err(unknown(Reason::Missing)));
            assert_eq!(filter.insert_batch(&keys).await, Err(unknown(Reason::Missing)));
            let answers = filter.contains_batch(&keys).await;
            assert!(answers.iter().all(|answer| !answer.is_absent()));
        }
        assert_eq!(node.call(&["EXISTS", &name]), Value::Int(0));
    }
}

/// The first shard is evicted, so the filter is missing, and the other shards still exist.
#[tokio::test]
async fn shards_that_an_earlier_filter_has_left_are_not_used() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    let options = in_shards(4);
    let old = create(&server, &options).await.unwrap();
    let keys: Vec<u64> = (0..500).collect();
    old.insert_batch(&keys).await.unwrap();
    old.complete().await.unwrap();
    node.call(&["DEL", old.keys().next().unwrap()]);
    assert_eq!(open(&server).await.err(), Some(unknown(Reason::Missing)));
    let new = create(&server, &options).await.unwrap();
    assert!(new.contains_batch(&keys).await.iter().all(|answer| answer.is_unknown()));
    assert!(old.contains_batch(&keys).await.iter().all(|answer| answer.is_unknown()));
    new.complete().await.unwrap();
    assert_eq!(new.contains_batch(&keys).await, vec![Answer::Absent; 500]);
    assert_eq!(old.complete().await, Err(unknown(Reason::Replaced)));
    // A key of another program is not removed.
    let precious = new.keys().nth(2).unwrap().to_owned();
    Found::find(&server, "f").await.unwrap().delete(&server).await.unwrap();
    node.call(&["SET", &precious, "precious"]);
    assert_eq!(create(&server, &options).await.err(), Some(unknown(Reason::Foreign)));
    let names: Vec<String> = redis::from_redis_value(node.call(&["KEYS", "*"])).unwrap();
    assert_eq!(names, [precious]);
}

#[tokio::test]
async fn a_creation_that_was_interrupted_is_waited_for_and_can_be_deleted() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    let filter = create(&server, &in_shards(2)).await.unwrap();
    let first = filter.keys().next().unwrap().to_owned();
    node.call_bytes(&[b"SETRANGE", first.as_bytes(), b"116", &[1, 0, 0, 0]]);
    assert_eq!(open(&server).await.err(), Some(unknown(Reason::Building)));
    assert_eq!(create(&server, &in_shards(2)).await.err(), Some(Error::Exists));
    assert_eq!(filter.insert_batch(&[1_u64, 2, 3, 4]).await, Err(unknown(Reason::Building)));
    assert_eq!(filter.complete().await, Err(unknown(Reason::Building)));
    // Shorter limits, so that the test does not wait long.
    let limits = Limits { connect: Limits::default().connect, ..server.limits() };
    let hasty = server.with_limits(Limits { retries: 0, ..limits });
    let waited = either(&hasty, &in_shards(2)).await;
    assert_eq!(waited.err(), Some(unknown(Reason::Building)));
    let found = Found::find(&server, "f").await.unwrap();
    assert!(!found.is_ready());
    found.delete(&server).await.unwrap();
    assert_eq!(node.call(&["DBSIZE"]), Value::Int(0));
    create(&server, &in_shards(2)).await.unwrap();
}

/// An insert away from home is refused before it writes, and no server acknowledges it.
#[tokio::test]
async fn an_insert_away_from_home_is_an_error_and_writes_nothing() {
    for engine in ENGINES {
        let Some(node) = Node::start(engine, &[]) else { continue };
        let server = node.server().await;
        let filter: Filter =
            created(&server, "f", shape(), Portable::default(), &in_shards(1)).await.unwrap();
        filter.insert(&1).await.unwrap();
        let home = bytes(&node, "f")[96..116].to_vec();
        // As if the shard had been moved here from another server.
        node.call_bytes(&[b"SETRANGE", b"f", b"96", &[7; 20]]);
        let before = bytes(&node, "f");
        let (late, news) = (open(&server).await.unwrap(), [5_u64, 6, 7]);
        for filter in [&filter, &late] {
            assert_eq!(filter.insert(&2).await, Err(unknown(Reason::History)), "{engine:?}");
            let refused = filter.insert_batch(&news).await;
            assert_eq!(refused, Err(unknown(Reason::History)), "{engine:?}");
            assert_eq!(filter.complete().await, Err(unknown(Reason::History)), "{engine:?}");
        }
        assert!(bytes(&node, "f") == before, "{engine:?}");
        // The slot moves back, and the acknowledged keys are present.
        node.call_bytes(&[b"SETRANGE", b"f", b"96", &home]);
        assert_eq!(asked(&filter).await, KNOWN, "{engine:?}");
        assert_eq!(late.insert(&2).await, Ok(Answer::Absent), "{engine:?}");
        // Inserts into an older copy of the filter are refused too.
        node.call(&["COPY", "f", "copy"]);
        filter.insert(&3).await.unwrap();
        node.call(&["COPY", "copy", "f", "REPLACE"]);
        let before = bytes(&node, "f");
        assert_eq!(filter.insert(&4).await, Err(unknown(Reason::Older)), "{engine:?}");
        assert!(bytes(&node, "f") == before, "{engine:?}");
    }
}

#[tokio::test]
async fn a_filter_that_has_taken_the_place_of_another_is_not_deleted_for_it() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    for options in [in_shards(1), in_shards(3)] {
        node.call(&["FLUSHALL"]);
        create(&server, &options).await.unwrap();
        let old = Found::find(&server, "f").await.unwrap();
        node.call(&["FLUSHALL"]);
        let new = create(&server, &options).await.unwrap();
        new.insert(&1).await.unwrap();
        new.complete().await.unwrap();
        old.delete(&server).await.unwrap();
        assert_eq!(asked(&new).await, KNOWN);
        Found::find(&server, "f").await.unwrap().delete(&server).await.unwrap();
        assert_eq!(node.call(&["DBSIZE"]), Value::Int(0));
    }
}

#[tokio::test]
async fn an_uploaded_filter_is_complete() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    let mut local = BlockedBloomFilter::<u64>::with(shape(), Portable::default()).unwrap();
    local.insert(&1);
    for options in [in_shards(1), in_shards(3)] {
        node.call(&["FLUSHALL"]);
        let shared = SharedBloom::upload(&server, "f", &local, &options).await.unwrap();
        assert_eq!((shared.is_complete().await, asked(&shared).await), (Ok(true), KNOWN));
        assert_eq!(asked(&open(&server).await.unwrap()).await, KNOWN);
    }
}

#[tokio::test]
async fn an_insert_that_is_refused_for_its_header_writes_nothing() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    let old = create(&server, &in_shards(1)).await.unwrap();
    Found::find(&server, "f").await.unwrap().delete(&server).await.unwrap();
    // The same plan, so only the identity differs.
    let new = create(&server, &in_shards(1)).await.unwrap();
    let before = bytes(&node, "f");
    assert_eq!(old.insert(&1).await.err(), Some(unknown(Reason::Replaced)));
    assert_eq!(bytes(&node, "f"), before);
    // Being created again, according to its state.
    node.call_bytes(&[b"SETRANGE", b"f", b"116", &[1, 0, 0, 0]]);
    let before = bytes(&node, "f");
    assert_eq!(new.insert(&1).await.err(), Some(unknown(Reason::Building)));
    assert_eq!(bytes(&node, "f"), before);
}

#[tokio::test]
async fn adopting_a_filter_that_is_at_home_leaves_it_complete() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    let filter = create(&server, &in_shards(3)).await.unwrap();
    filter.insert(&1).await.unwrap();
    filter.complete().await.unwrap();
    filter.adopt().await.unwrap();
    assert_eq!(asked(&filter).await, KNOWN);
}

#[tokio::test]
async fn a_filter_that_lost_a_shard_is_not_completed_in_the_others() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    let filter = create(&server, &in_shards(3)).await.unwrap();
    filter.insert(&1).await.unwrap();
    let keys: Vec<String> = redis::from_redis_value(node.call(&["KEYS", "f:*"])).unwrap();
    assert_eq!(keys.len(), 3);
    node.call(&["DEL", &keys[1]]);
    assert_eq!(filter.complete().await, Err(unknown(Reason::Missing)));
    for key in [&keys[0], &keys[2]] {
        assert_eq!(bytes(&node, key)[116..120], [3, 0, 0, 0], "incomplete");
    }
}
