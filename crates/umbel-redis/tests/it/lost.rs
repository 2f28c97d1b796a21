//! Every way in which a server can lose a filter: lost keys are unknown, and never absent.

use crate::servers::{Engine, Node, follow, in_step, pair};
use crate::shared::{created, in_shards};
use std::time::Duration;
use umbel::Portable;
use umbel::blocked::Shape;
use umbel_redis::{Answer, Error, Limits, Options, Reason, Server, SharedBloom};

type Filter = SharedBloom<u64>;

/// The answers for an inserted key and for another key, one at a time and in a batch.
async fn asked(filter: &Filter) -> [Answer; 2] {
    let batch = filter.contains_batch(&[1_u64, 1_000_001]).await;
    let single = [filter.contains(&1).await, filter.contains(&1_000_001).await];
    assert_eq!(batch, single);
    single
}

const KNOWN: [Answer; 2] = [Answer::Maybe, Answer::Absent];

fn unknown(reason: Reason) -> [Answer; 2] {
    [Answer::Unknown(reason); 2]
}

async fn make(server: &Server, options: &Options) -> Filter {
    let shape = Shape::for_rate(10_000, 0.001).unwrap();
    let filter: Filter = created(server, "f", shape, Portable::default(), options).await.unwrap();
    let keys: Vec<u64> = (0..100).collect();
    filter.insert_batch(&keys).await.unwrap();
    assert_eq!(asked(&filter).await, KNOWN);
    filter
}

async fn refused(filter: &Filter, reason: Reason) {
    assert_eq!(filter.insert(&7).await, Err(Error::Unknown(reason)));
}

#[tokio::test]
async fn a_key_that_is_gone_or_is_something_else_is_unknown() {
    for engine in [Engine::Redis, Engine::Valkey] {
        let Some(node) = Node::start(engine, &[]) else { continue };
        let server = node.server().await;
        let gone: [(&[&str], Reason); 10] = [
            (&["FLUSHALL"], Reason::Missing),
            (&["DEL", "f"], Reason::Missing),
            (&["PEXPIRE", "f", "0"], Reason::Missing),
            (&["RENAME", "f", "g"], Reason::Missing),
            (&["SWAPDB", "0", "1"], Reason::Missing),
            (&["SET", "f", ""], Reason::Missing),
            (
                &[
                    "SET",
                    "f",
                    "something else that is longer than a header of a filter; zeros would do: 0000000000000000000000000000000000000000000000000000000000",
                ],
                Reason::Foreign,
            ),
            (&["SETBIT", "f", "3", "0"], Reason::Foreign),
            (
                &["EVAL", "redis.call('DEL', 'f') return redis.call('HSET', 'f', 'a', 'b')", "0"],
                Reason::Foreign,
            ),
            (
                &[
                    "EVAL",
                    "return redis.call('SET', 'f', redis.call('GETRANGE', 'f', 0, 200))",
                    "0",
                ],
                Reason::Shrunken,
            ),
        ];
        for (what, reason) in gone {
            node.call(&["FLUSHALL"]);
            let filter = make(&server, &Options::default()).await;
            node.call(what);
            assert_eq!(asked(&filter).await, unknown(reason), "{engine:?} {what:?}");
            // Inserting does not create a part of it again.
            refused(&filter, reason).await;
            assert_eq!(asked(&filter).await, unknown(reason), "{engine:?} {what:?}");
            assert_eq!(filter.check().await, Err(reason), "{engine:?} {what:?}");
        }
    }
}

#[tokio::test]
async fn a_filter_that_was_made_anew_is_another_one() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    let old = make(&server, &Options::default()).await;
    node.call(&["FLUSHALL"]);
    let new = make(&server, &Options::default()).await;
    assert_eq!(asked(&old).await, unknown(Reason::Replaced));
    refused(&old, Reason::Replaced).await;
    assert_eq!(asked(&new).await, KNOWN);
    // A younger and an older generation are refused as well.
    for generation in [Some(5), Some(2)] {
        node.call(&["FLUSHALL"]);
        let newer = make(&server, &Options { generation, ..Options::default() }).await;
        assert_eq!(asked(&old).await, unknown(Reason::Replaced));
        assert_eq!(asked(&newer).await, KNOWN);
    }
}

#[tokio::test]
async fn a_filter_that_was_put_back_from_a_copy_is_older() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    let filter = make(&server, &Options::default()).await;
    node.call(&["COPY", "f", "copy"]);
    filter.insert(&2_000_000).await.unwrap();
    node.call(&["COPY", "copy", "f", "REPLACE"]);
    assert_eq!(filter.contains(&2_000_000).await, Answer::Unknown(Reason::Older));
    assert_eq!(asked(&filter).await, unknown(Reason::Older));
}

#[tokio::test]
async fn one_lost_shard_of_many_is_unknown_and_the_others_are_known() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    let filter = make(&server, &in_shards(4)).await;
    let keys: Vec<u64> = (0..3_000).collect();
    filter.insert_batch(&keys).await.unwrap();
    let lost = filter.keys().nth(2).unwrap().to_owned();
    node.call(&["DEL", &lost]);
    let answers = filter.contains_batch(&keys).await;
    let missing = Answer::Unknown(Reason::Missing);
    assert!(answers.iter().all(|answer| [Answer::Maybe, missing].contains(answer)));
    // Keys have two lines: a share of 7 in 16 has one of them in that shard.
    let share = answers.iter().filter(|answer| **answer == missing).count() as f64 / 3_000.0;
    assert!((share - 7.0 / 16.0).abs() < 0.05, "{share}");
    let absent: Vec<u64> = (1_000_000..1_003_000).collect();
    let answers = filter.contains_batch(&absent).await;
    // A line that lacks a bit of the key is proof, whatever has happened to the other line.
    let known = answers.iter().filter(|answer| answer.is_absent()).count();
    assert!((2_000..3_000).contains(&known), "{known}");
    assert_eq!(filter.check().await, Err(Reason::Missing));
}

#[tokio::test]
async fn an_evicted_filter_is_unknown() {
    let Some(node) = Node::start(Engine::Redis, &["--maxmemory-policy", "allkeys-random"]) else {
        return;
    };
    let server = node.server().await;
    let filter = make(&server, &Options::default()).await;
    // Less than the server needs for itself, so it evicts all keys.
    node.call(&["CONFIG", "SET", "maxmemory", "1"]);
    let mut tries = 0;
    while node.call(&["EXISTS", "f"]) != redis::Value::Int(0) {
        tries += 1;
        assert!(tries < 3_000, "the server evicts nothing");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(asked(&filter).await, unknown(Reason::Missing));
    node.call(&["CONFIG", "SET", "maxmemory", "0"]);
    refused(&filter, Reason::Missing).await;
    let open = Filter::open(&server, "f", Portable::default(), &Options::default()).await;
    assert_eq!(open.err(), Some(Error::Unknown(Reason::Missing)));
}

#[tokio::test]
async fn a_server_that_was_restarted_has_another_history() {
    for engine in [Engine::Redis, Engine::Valkey] {
        let Some(mut node) = Node::start(engine, &[]) else { continue };
        let server = node.server().await;
        let filter = make(&server, &Options::default()).await;
        node.save();
        filter.insert(&2_000_000).await.unwrap();
        node.kill();
        assert_eq!(asked(&filter).await, unknown(Reason::Disconnected));
        refused(&filter, Reason::Disconnected).await;
        node.restart();
        // Keys that were inserted after the last save are lost, and no client reports them absent.
        assert_eq!(asked(&filter).await, unknown(Reason::History), "{engine:?}");
        assert_eq!(filter.contains(&2_000_000).await, Answer::Unknown(Reason::History));
        // Neither does a new client.
        let late =
            Filter::open(&server, "f", Portable::default(), &Options::default()).await.unwrap();
        assert_eq!(late.contains(&2_000_000).await, Answer::Unknown(Reason::History));
        // Inserts away from home are refused: it would be unknown which server has which key.
        refused(&late, Reason::History).await;
        assert_eq!(late.complete().await, Err(Error::Unknown(Reason::History)));
        late.adopt().await.unwrap();
        let incomplete = Answer::Unknown(Reason::Incomplete);
        for filter in [&filter, &late] {
            assert_eq!(asked(filter).await, unknown(Reason::Incomplete));
        }
        assert_eq!(late.insert(&2_000_000).await, Ok(incomplete));
        late.complete().await.unwrap();
        for filter in [&filter, &late] {
            assert_eq!(asked(filter).await, KNOWN);
            assert_eq!(filter.contains(&2_000_000).await, Answer::Maybe);
        }
    }
}

#[tokio::test]
async fn a_clean_reload_and_a_rewrite_lose_nothing() {
    let Some(node) = Node::start(Engine::Redis, &["--appendonly", "yes"]) else { return };
    let server = node.server().await;
    let filter = make(&server, &Options::default()).await;
    node.call(&["BGREWRITEAOF"]);
    node.call(&["DEBUG", "RELOAD"]);
    assert_eq!(asked(&filter).await, KNOWN);
}

#[tokio::test]
async fn a_replica_that_takes_over_without_the_last_keys_is_not_believed() {
    for engine in [Engine::Redis, Engine::Valkey] {
        let Some([mut primary, replica]) = pair(engine) else { continue };
        let (one, two) = (primary.url(), replica.url());
        let server = Server::replicated(&[&one, &two], crate::servers::PATIENT).await.unwrap();
        let filter = make(&server, &Options::default()).await;
        in_step(&primary, &replica);
        // The replica does not receive what is acknowledged now.
        replica.signal("STOP");
        let lost: Vec<u64> = (2_000_000..2_000_100).collect();
        filter.insert_batch(&lost).await.unwrap();
        primary.kill();
        replica.signal("CONT");
        replica.call(&["REPLICAOF", "NO", "ONE"]);
        let answers = filter.contains_batch(&lost).await;
        assert_eq!(answers, vec![Answer::Unknown(Reason::History); 100], "{engine:?}");
        let late =
            Filter::open(&server, "f", Portable::default(), &Options::default()).await.unwrap();
        assert_eq!(late.contains_batch(&lost).await, answers, "{engine:?}");
        // A caller that knows the lost keys inserts them again, and then the filter is complete.
        late.adopt().await.unwrap();
        late.insert_batch(&lost).await.unwrap();
        late.complete().await.unwrap();
        assert_eq!(filter.contains_batch(&lost).await, vec![Answer::Maybe; 100], "{engine:?}");
        assert_eq!(asked(&filter).await, KNOWN, "{engine:?}");
        assert_eq!(asked(&late).await, KNOWN, "{engine:?}");
    }
}

#[tokio::test]
async fn a_primary_that_became_a_replica_is_not_believed_on_the_same_connection() {
    let Some([primary, other]) = pair(Engine::Redis) else { return };
    let server = primary.server().await;
    let filter = make(&server, &Options::default()).await;
    in_step(&primary, &other);
    other.call(&["REPLICAOF", "NO", "ONE"]);
    filter.insert(&2_000_000).await.unwrap();
    // The history of the other server, in which that key does not exist, replaces this one.
    follow(&primary, &other);
    assert_eq!(filter.contains(&2_000_000).await, Answer::Unknown(Reason::NotPrimary));
    refused(&filter, Reason::ReadOnly).await;
    // Even after it is promoted again, with the same process and the same connection.
    primary.call(&["REPLICAOF", "NO", "ONE"]);
    assert_eq!(filter.contains(&2_000_000).await, Answer::Unknown(Reason::History));
    assert_eq!(asked(&filter).await, unknown(Reason::History));
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_waited_for_only_so_long() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    let filter = make(&server, &Options::default()).await;
    let hasty = Limits { reply: Duration::from_millis(50), ..server.limits() };
    let hasty = server.with_limits(hasty);
    // A busy machine may need some tries.
    let impatient = loop {
        let opened = Filter::open(&hasty, "f", Portable::default(), &Options::default()).await;
        match opened {
            Ok(filter) => break filter,
            Err(error) => assert_eq!(error, Error::Unknown(Reason::TimedOut)),
        }
    };
    node.signal("STOP");
    assert_eq!(impatient.contains(&1).await, Answer::Unknown(Reason::TimedOut));
    assert_eq!(impatient.insert(&1).await, Err(Error::Unknown(Reason::TimedOut)));
    node.signal("CONT");
    assert_eq!(asked(&filter).await, KNOWN);
}

#[tokio::test]
async fn a_server_that_forgot_its_scripts_or_is_busy_with_another_one() {
    let Some(node) = Node::start(Engine::Redis, &["--busy-reply-threshold", "20"]) else { return };
    let server = node.server().await;
    let filter = make(&server, &in_shards(3)).await;
    node.call(&["SCRIPT", "FLUSH"]);
    let keys: Vec<u64> = (500..2_000).collect();
    let told = filter.insert_batch(&keys).await.unwrap();
    // A repeated insert still reports most keys as new.
    assert!(told.iter().filter(|answer| answer.is_absent()).count() > 1_400);
    assert!(filter.contains_batch(&keys).await.iter().all(|answer| *answer == Answer::Maybe));
    // An endless script.
    let mut connection = node.connection();
    connection
        .send_packed_command(
            &redis::cmd("EVAL").arg("while true do end").arg(0).get_packed_command(),
        )
        .unwrap();
    // Until the script has begun and takes too long.
    while filter.contains(&1).await != Answer::Unknown(Reason::Busy) {}
    refused(&filter, Reason::Busy).await;
    node.call(&["SCRIPT", "KILL"]);
    while filter.contains(&1).await == Answer::Unknown(Reason::Busy) {}
    assert_eq!(asked(&filter).await, KNOWN);
}

#[tokio::test]
async fn a_server_without_memory_refuses_and_says_so() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    let filter = make(&server, &Options::default()).await;
    node.call(&["CONFIG", "SET", "maxmemory", "1"]);
    refused(&filter, Reason::OutOfMemory).await;
    assert_eq!(asked(&filter).await, KNOWN);
}

#[tokio::test]
async fn a_filter_that_is_being_made_is_unknown_until_it_is_ready() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    let filter = make(&server, &Options::default()).await;
    // The state of a header is four bytes at 116.
    node.call_bytes(&[b"SETRANGE", b"f", b"116", &[1, 0, 0, 0]]);
    assert_eq!(asked(&filter).await, unknown(Reason::Building));
    refused(&filter, Reason::Building).await;
    let open = Filter::open(&server, "f", Portable::default(), &Options::default()).await;
    assert_eq!(open.err(), Some(Error::Unknown(Reason::Building)));
}
