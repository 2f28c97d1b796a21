//! Filters of other projects: the same bits as their own programs set.

use crate::servers::{Engine, Node, follow, in_step, pair};
use crate::shared::created;
use redis::Value;
use umbel_redis::{
    Answer, Blocking, Error, GoZeroBloom, Opening, Options, Policy, Reason, RedissonBloom, Server,
};

/// go-zero's two scripts, in our words.
const GO_SET: &str = "for _, at in ipairs(ARGV) do redis.call('setbit', KEYS[1], at, 1) end";
const GO_TEST: &str = "for _, at in ipairs(ARGV) do if redis.call('getbit', KEYS[1], at) == 0 then return false end end return true";

/// The commands of go-zero's `Add` and `Exists`.
fn go(node: &Node, script: &str, name: &str, bits: u64, key: &[u8]) -> Value {
    let positions = GoZeroBloom::positions(bits, key).map(|position| position.to_string());
    let mut arguments = vec!["EVAL", script, "1", name];
    arguments.extend(positions.iter().map(String::as_str));
    node.call(&arguments)
}

#[tokio::test]
async fn go_and_rust_share_a_key() {
    for engine in [Engine::Redis, Engine::Valkey] {
        let Some(node) = Node::start(engine, &[]) else { continue };
        let server = node.server().await;
        let bits = 20_000;
        // A key that go-zero has not created yet is unknown.
        let open = GoZeroBloom::open(&server, "seen", bits, Policy::Warn).await;
        assert_eq!(open.err(), Some(Error::Unknown(Reason::Missing)));
        go(&node, GO_SET, "seen", bits, b"from go");
        let rust = GoZeroBloom::open(&server, "seen", bits, Policy::Warn).await.unwrap();
        assert!(!rust.is_sealed());
        assert_eq!(rust.contains(b"from go").await, Answer::Maybe);
        assert_eq!(rust.contains(b"from rust").await, Answer::Absent);
        assert_eq!(rust.insert(b"from rust").await, Ok(Answer::Absent));
        assert_eq!(go(&node, GO_TEST, "seen", bits, b"from rust"), Value::Int(1));
        assert_eq!(go(&node, GO_TEST, "seen", bits, b"from nowhere"), Value::Nil);
        // The same bits, one at a time and in batches, sealed or not.
        let keys: Vec<Vec<u8>> = (0..500).map(|key| format!("user:{key}").into_bytes()).collect();
        let sealed = GoZeroBloom::create(&server, "sealed", bits, Policy::Warn).await.unwrap();
        assert!(sealed.is_sealed());
        sealed.complete().await.unwrap();
        for filter in [&rust, &sealed] {
            filter.insert_batch(&keys).await.unwrap();
            assert_eq!(filter.contains_batch(&keys).await, vec![Answer::Maybe; 500]);
        }
        for key in [&b"from go"[..], b"from rust"] {
            go(&node, GO_SET, "sealed", bits, key);
            go(&node, GO_SET, "all", bits, key);
        }
        for key in &keys {
            go(&node, GO_SET, "all", bits, key);
        }
        let bytes = |name: &str| -> Vec<u8> {
            redis::from_redis_value(node.call(&["GETRANGE", name, "0", "2499"])).unwrap()
        };
        let all = bytes("all");
        assert!(bytes("seen") == all && bytes("sealed")[..all.len()] == all);
    }
}

/// Creates a key, and marks an empty one as complete.
async fn sealed(server: &Server, key: &str, bits: u64) -> GoZeroBloom {
    let filter = GoZeroBloom::create(server, key, bits, Policy::Warn).await.unwrap();
    filter.complete().await.unwrap();
    filter
}

/// All bytes of a key, or nothing.
fn bytes(node: &Node, key: &str) -> Vec<u8> {
    redis::from_redis_value(node.call(&["GETRANGE", key, "0", "-1"])).unwrap()
}

const KNOWN: [Answer; 2] = [Answer::Maybe, Answer::Absent];
const INCOMPLETE: Answer = Answer::Unknown(Reason::Incomplete);

#[tokio::test]
async fn a_sealed_key_is_recognised() {
    for engine in [Engine::Redis, Engine::Valkey] {
        let Some(mut node) = Node::start(engine, &[]) else { continue };
        let server = node.server().await;
        let bits = 1_000;
        let long = "x".repeat(500);
        for (what, reason) in [
            (&["DEL", "go"][..], Reason::Missing),
            (&["RENAME", "go", "away"], Reason::Missing),
            (&["SET", "go", "short"], Reason::Shrunken),
            (&["SET", "go", &long], Reason::Replaced),
            (&["SETBIT", "go", "3000", "1"], Reason::Foreign),
        ] {
            node.call(&["FLUSHALL"]);
            let filter = sealed(&server, "go", bits).await;
            filter.insert(b"a").await.unwrap();
            assert_eq!(filter.contains_batch(&[&b"a"[..], b"c"]).await, KNOWN);
            node.call(what);
            let left = bytes(&node, "go");
            assert_eq!(filter.contains(b"a").await, Answer::Unknown(reason), "{what:?}");
            // A refused insert has written nothing.
            assert_eq!(filter.insert(b"a").await, Err(Error::Unknown(reason)), "{what:?}");
            assert_eq!(filter.complete().await, Err(Error::Unknown(reason)), "{what:?}");
            assert_eq!(filter.adopt().await, Err(Error::Unknown(reason)), "{what:?}");
            assert_eq!(bytes(&node, "go"), left, "{what:?}");
            // A Go program continues to write.
            for key in 0..100_u8 {
                go(&node, GO_SET, "go", bits, &[key]);
            }
            assert!(filter.contains(b"a").await.is_unknown(), "{what:?}");
            // A key that is created again here is a different one.
            node.call(&["DEL", "go"]);
            let other = sealed(&server, "go", bits).await;
            assert_eq!(filter.contains(b"a").await, Answer::Unknown(Reason::Replaced));
            assert_eq!(other.contains(b"a").await, Answer::Absent);
            other.insert(b"a").await.unwrap();
        }
        node.save();
        node.kill();
        node.restart();
        let late = GoZeroBloom::open(&server, "go", bits, Policy::Warn).await.unwrap();
        assert_eq!(late.contains(b"a").await, Answer::Unknown(Reason::History));
        assert_eq!(late.insert(b"b").await, Err(Error::Unknown(Reason::History)));
        late.adopt().await.unwrap();
        assert_eq!(late.contains(b"a").await, INCOMPLETE);
        assert_eq!(late.insert(b"b").await, Ok(INCOMPLETE));
        late.complete().await.unwrap();
        assert_eq!(late.contains_batch(&[&b"a"[..], b"c"]).await, KNOWN);
        assert_eq!(late.contains(b"b").await, Answer::Maybe);
    }
}

/// Created with 20,000 bits, and opened with every number that the review has tried.
#[tokio::test]
async fn a_sealed_key_refuses_another_number_of_bits() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    let filter = sealed(&server, "go", 20_000).await;
    filter.insert(b"a").await.unwrap();
    let before = bytes(&node, "go");
    for bits in [19_999, 19_993, 20_001, 20_352, 20_448, 30_000, 100_000, 1_000, 8] {
        let opened = GoZeroBloom::open(&server, "go", bits, Policy::Warn).await;
        let error = Error::Bits { expected: bits, found: 20_000 };
        assert_eq!(opened.err(), Some(error.clone()));
        assert!(error.to_string().contains("20000"));
        let either = GoZeroBloom::open_or_create(&server, "go", bits, Policy::Warn).await;
        assert_eq!(either.err(), Some(error));
        let created = GoZeroBloom::create(&server, "go", bits, Policy::Warn).await;
        assert_eq!(created.err(), Some(Error::Exists));
        assert_eq!(bytes(&node, "go"), before);
    }
    let same = GoZeroBloom::open(&server, "go", 20_000, Policy::Warn).await.unwrap();
    assert_eq!(same.contains_batch(&[&b"a"[..], b"c"]).await, KNOWN);
    // A Go program with a larger number of bits has made the key longer.
    node.call(&["SETBIT", "go", "29999", "1"]);
    assert_eq!(same.contains(b"a").await, Answer::Unknown(Reason::Foreign));
    assert!(GoZeroBloom::open(&server, "go", 20_000, Policy::Warn).await.is_err());
    // Without a seal, a key that is too long for the number of bits is refused.
    go(&node, GO_SET, "plain", 20_000, b"a");
    node.call(&["SETBIT", "plain", "19999", "1"]);
    let short = GoZeroBloom::open(&server, "plain", 19_992, Policy::Warn).await;
    assert!(matches!(short, Err(Error::Mismatch { .. })));
}

/// A and B have the key open when it is deleted, and A's insert notices that. Neither accepts the rest as
/// complete.
#[tokio::test]
async fn an_insert_that_notices_a_loss_does_not_erase_its_evidence() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    let bits = 20_000;
    go(&node, GO_SET, "go", bits, b"kept");
    let open = async || GoZeroBloom::open(&server, "go", bits, Policy::Warn).await;
    let (a, b) = (open().await.unwrap(), open().await.unwrap());
    a.insert(b"acknowledged").await.unwrap();
    node.call(&["DEL", "go"]);
    assert_eq!(a.insert(b"new").await, Err(Error::Unknown(Reason::Missing)));
    assert_eq!(node.call(&["EXISTS", "go"]), Value::Int(0));
    assert_eq!(b.contains(b"acknowledged").await, Answer::Unknown(Reason::Missing));
    assert_eq!(open().await.err(), Some(Error::Unknown(Reason::Missing)));
    // A client that has seen the loss remembers it, even after a Go program has created the key again.
    for key in 0..200_u8 {
        go(&node, GO_SET, "go", bits, &[key]);
    }
    for client in [&a, &b] {
        assert_eq!(client.contains(b"acknowledged").await, Answer::Unknown(Reason::Missing));
        assert_eq!(client.insert(b"new").await, Err(Error::Unknown(Reason::Missing)));
    }
}

#[tokio::test]
async fn a_key_that_was_created_after_a_loss_is_unknown_until_it_is_complete() {
    let Some(mut node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    let bits = 20_000;
    let either = async || GoZeroBloom::open_or_create(&server, "go", bits, Policy::Warn).await;
    let (first, opening) = either().await.unwrap();
    assert_eq!(opening, Opening::Created);
    first.insert(b"a").await.unwrap();
    first.complete().await.unwrap();
    let (again, opening) = either().await.unwrap();
    assert_eq!((opening, again.is_complete().await), (Opening::Opened, Ok(true)));
    assert_eq!(again.contains_batch(&[&b"a"[..], b"c"]).await, KNOWN);
    // Evicted, and the process that had it open is restarted.
    node.call(&["DEL", "go"]);
    let (new, opening) = either().await.unwrap();
    assert_eq!((opening, new.is_complete().await), (Opening::Created, Ok(false)));
    let other = GoZeroBloom::open(&server, "go", bits, Policy::Warn).await.unwrap();
    for client in [&new, &other] {
        assert_eq!(client.contains_batch(&[&b"a"[..], b"c"]).await, [INCOMPLETE; 2]);
    }
    // The server is restarted before the key is filled.
    new.insert(b"a").await.unwrap();
    node.save();
    node.kill();
    node.restart();
    assert_eq!(new.complete().await, Err(Error::Unknown(Reason::History)));
    let (late, opening) = either().await.unwrap();
    assert_eq!(opening, Opening::Opened);
    assert_eq!(late.contains(b"a").await, Answer::Unknown(Reason::History));
    late.adopt().await.unwrap();
    late.insert(b"a").await.unwrap();
    late.complete().await.unwrap();
    assert_eq!(other.contains_batch(&[&b"a"[..], b"c"]).await, KNOWN);
    // Nothing of the interrupted creation remains.
    let names: Vec<String> = redis::from_redis_value(node.call(&["KEYS", "*"])).unwrap();
    assert_eq!(names, ["go"]);
}

#[tokio::test]
async fn a_large_key_is_created_in_steps_and_appears_at_once() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    // Three steps of 4 MiB.
    let bits = 80_000_003;
    let clients = (0..3).map(|_| {
        let server = server.clone();
        tokio::spawn(async move { GoZeroBloom::create(&server, "go", bits, Policy::Warn).await })
    });
    let clients: Vec<_> = clients.collect();
    let mut made = 0;
    for client in clients {
        match client.await.unwrap() {
            Ok(_) => made += 1,
            Err(error) => assert_eq!(error, Error::Exists),
        }
    }
    assert_eq!(made, 1);
    assert_eq!(node.call(&["STRLEN", "go"]), Value::Int(10_000_001 + 56));
    assert_eq!(node.call(&["PTTL", "go"]), Value::Int(-1));
    let names: Vec<String> = redis::from_redis_value(node.call(&["KEYS", "*"])).unwrap();
    assert_eq!(names, ["go"]);
}

#[tokio::test]
async fn a_key_without_a_seal_is_unknown_when_it_is_gone_or_shorter_or_elsewhere() {
    let Some([primary, replica]) = pair(Engine::Redis) else { return };
    let (one, two) = (primary.url(), replica.url());
    let server = Server::replicated(&[&one, &two], crate::servers::PATIENT).await.unwrap();
    let bits = 10_000;
    for key in 0..20_u8 {
        go(&primary, GO_SET, "go", bits, &[key]);
    }
    let filter = GoZeroBloom::open(&server, "go", bits, Policy::Warn).await.unwrap();
    let known = async || assert_eq!(filter.contains_batch(&[&[7][..], &[77]]).await, KNOWN);
    known().await;
    let losses: [(&[&[&str]], Reason); 3] = [
        (&[], Reason::Missing),
        (&[&["SETBIT", "go", "3", "1"]], Reason::Shrunken),
        (&[&["RPUSH", "go", "a"]], Reason::Foreign),
    ];
    for (what, reason) in losses {
        primary.call(&["RENAME", "go", "away"]);
        for what in what {
            primary.call(what);
        }
        assert_eq!(filter.contains(&[7]).await, Answer::Unknown(reason));
        assert_eq!(filter.insert(&[8]).await, Err(Error::Unknown(reason)));
        // A filter that was lost once is not trusted again by itself.
        primary.call(&["DEL", "go"]);
        primary.call(&["RENAME", "away", "go"]);
        assert_eq!(filter.contains(&[7]).await, Answer::Unknown(reason));
        filter.adopt().await.unwrap();
        known().await;
    }
    in_step(&primary, &replica);
    replica.call(&["REPLICAOF", "NO", "ONE"]);
    follow(&primary, &replica);
    assert!(filter.contains(&[7]).await.is_unknown());
    let before = bytes(&replica, "go");
    assert_eq!(filter.insert(&[99]).await, Err(Error::Unknown(Reason::History)));
    assert_eq!(bytes(&replica, "go"), before);
    filter.adopt().await.unwrap();
    // Sealed, it is unknown until the caller marks it as complete, and then known to all clients.
    let sealed = filter.seal().await.unwrap();
    assert!(sealed.is_sealed());
    assert_eq!(sealed.contains(&[7]).await, INCOMPLETE);
    sealed.complete().await.unwrap();
    assert_eq!(sealed.contains_batch(&[&[7][..], &[77]]).await, KNOWN);
    let other = GoZeroBloom::open(&server, "go", bits, Policy::Warn).await.unwrap();
    assert!(other.is_sealed());
    assert_eq!(other.contains_batch(&[&[7][..], &[77]]).await, KNOWN);
}

#[tokio::test]
async fn a_key_that_lost_its_bits_is_not_sealed() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    let bits = 10_000;
    let open = async || {
        for key in 0..20_u8 {
            go(&node, GO_SET, "go", bits, &[key]);
        }
        GoZeroBloom::open(&server, "go", bits, Policy::Warn).await.unwrap()
    };
    for (what, reason) in [
        (&["DEL", "go"][..], Reason::Missing),
        (&["SET", "go", "ab"], Reason::Shrunken),
        (&["SETBIT", "go", "20000", "1"], Reason::Foreign),
    ] {
        let filter = open().await;
        node.call(what);
        let left = bytes(&node, "go");
        assert_eq!(filter.seal().await.err(), Some(Error::Unknown(reason)), "{what:?}");
        assert_eq!(bytes(&node, "go"), left);
        node.call(&["DEL", "go"]);
    }
    // Sealed by another client in between, with the same number of bits or another.
    let (one, two) = (open().await, open().await);
    one.seal().await.unwrap();
    assert_eq!(two.seal().await.err(), Some(Error::Unknown(Reason::Foreign)));
    node.call(&["DEL", "go"]);
    let one = open().await;
    let two = GoZeroBloom::open(&server, "go", 2 * bits, Policy::Warn).await.unwrap();
    one.seal().await.unwrap();
    let sealed = bytes(&node, "go");
    assert_eq!(two.seal().await.err(), Some(Error::Unknown(Reason::Foreign)));
    assert_eq!(bytes(&node, "go"), sealed);
}

#[tokio::test]
async fn a_key_is_not_sealed_on_another_history() {
    let Some(mut node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    for key in 0..20_u8 {
        go(&node, GO_SET, "go", 10_000, &[key]);
    }
    let filter = GoZeroBloom::open(&server, "go", 10_000, Policy::Warn).await.unwrap();
    node.save();
    node.kill();
    node.restart();
    let left = bytes(&node, "go");
    assert_eq!(filter.seal().await.err(), Some(Error::Unknown(Reason::History)));
    assert_eq!(bytes(&node, "go"), left);
}

#[tokio::test]
async fn java_and_rust_share_a_filter() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    let missing = RedissonBloom::open(&server, "seen", Policy::Warn).await;
    assert_eq!(missing.err(), Some(Error::Unknown(Reason::Missing)));
    let filter =
        RedissonBloom::create(&server, "seen", 1_000_000, 0.01, Policy::Warn).await.unwrap();
    assert_eq!((filter.size(), filter.hash_iterations()), (9_585_058, 7));
    let config: Vec<String> = redis::from_redis_value(node.call(&[
        "HMGET",
        "{seen}:config",
        "size",
        "hashIterations",
        "expectedInsertions",
        "falseProbability",
    ]))
    .unwrap();
    assert_eq!(config, ["9585058", "7", "1000000", "0.01"]);
    // Empty, and no caller has marked it as complete.
    assert_eq!(filter.contains(b"hello").await, INCOMPLETE);
    filter.complete().await.unwrap();
    assert_eq!(filter.contains(b"hello").await, Answer::Absent);
    assert_eq!(filter.insert(b"hello").await, Ok(Answer::Absent));
    for position in [1904273, 5703746, 1001831, 4801304, 99389, 3898862, 8782005] {
        assert_eq!(node.call(&["GETBIT", "seen", &position.to_string()]), Value::Int(1));
    }
    assert_eq!(node.call(&["BITCOUNT", "seen"]), Value::Int(7));
    let keys: Vec<Vec<u8>> = (0..1_000).map(|key| format!("user:{key}").into_bytes()).collect();
    filter.insert_batch(&keys).await.unwrap();
    assert_eq!(filter.contains_batch(&keys).await, vec![Answer::Maybe; 1_000]);
    assert_eq!(filter.contains(b"absent").await, Answer::Absent);
    let again = RedissonBloom::create(&server, "seen", 1_000_000, 0.01, Policy::Warn).await;
    assert_eq!(again.err(), Some(Error::Exists));
    let other = RedissonBloom::open_or_create(&server, "seen", 1_000, 0.01, Policy::Warn).await;
    assert!(matches!(other, Err(Error::Mismatch { .. })));
    // The bits are missing for a while. Their return is recognised by the mark in the config and their length.
    node.call(&["RENAME", "seen", "away"]);
    assert_eq!(filter.contains(b"hello").await, Answer::Unknown(Reason::Missing));
    assert_eq!(filter.insert(b"hello").await, Err(Error::Unknown(Reason::Missing)));
    assert_eq!(node.call(&["EXISTS", "seen"]), Value::Int(0));
    node.call(&["RENAME", "away", "seen"]);
    assert_eq!(filter.contains(b"absent").await, Answer::Absent);
    let before = bytes(&node, "seen");
    node.call(&["HSET", "{seen}:config", "size", "9585059"]);
    assert_eq!(filter.contains(b"absent").await, Answer::Unknown(Reason::Replaced));
    assert_eq!(filter.insert(b"absent").await, Err(Error::Unknown(Reason::Replaced)));
    node.call(&["DEL", "{seen}:config"]);
    assert_eq!(filter.contains(b"absent").await, Answer::Unknown(Reason::Missing));
    assert_eq!(filter.insert(b"absent").await, Err(Error::Unknown(Reason::Missing)));
    assert!(bytes(&node, "seen") == before);
    // An insert does not write a config for bits without one.
    let again = RedissonBloom::create(&server, "seen", 1_000_000, 0.01, Policy::Warn).await;
    assert_eq!(again.err(), Some(Error::Exists));
    for (size, times) in
        [("0", "7"), ("4294967295", "7"), ("100", "0"), ("100", "99999999"), ("x", "7")]
    {
        node.call(&["HSET", "{bad}:config", "size", size, "hashIterations", times]);
        let bad = RedissonBloom::open(&server, "bad", Policy::Warn).await;
        assert_eq!(bad.err(), Some(Error::Unknown(Reason::Foreign)), "{size} {times}");
    }
}

/// The result of Redisson's `tryInit`, and of its `add`.
fn java_init(node: &Node, name: &str, size: u64, times: u64) {
    let (size, times, config) = (size.to_string(), times.to_string(), format!("{{{name}}}:config"));
    node.call(&["HSET", &config, "size", &size, "hashIterations", &times]);
}

fn java_add(node: &Node, name: &str, size: u64, times: u64, key: &[u8]) {
    for position in RedissonBloom::positions(size, times, key) {
        node.call(&["SETBIT", name, &position.to_string(), "1"]);
    }
}

/// The config remains and the bits are evicted: the first insert of a new client must not make all lost keys
/// absent.
#[tokio::test]
async fn an_insert_does_not_begin_lost_bits_of_a_redisson_filter_anew() {
    for engine in [Engine::Redis, Engine::Valkey] {
        let Some(node) = Node::start(engine, &[]) else { continue };
        let server = node.server().await;
        let open = async || RedissonBloom::open(&server, "java", Policy::Warn).await;
        let missing = || Error::Unknown(Reason::Missing);
        // One that Java created, and one that was created here.
        java_init(&node, "java", 9_585, 7);
        java_add(&node, "java", 9_585, 7, b"a");
        for _ in 0..2 {
            let old = open().await.unwrap();
            old.insert(b"b").await.unwrap();
            assert_eq!(old.contains_batch(&[&b"a"[..], b"c"]).await, KNOWN, "{engine:?}");
            node.call(&["DEL", "java"]);
            assert_eq!(open().await.err(), Some(missing()), "{engine:?}");
            assert_eq!(old.insert(b"d").await, Err(missing()), "{engine:?}");
            let either = RedissonBloom::open_or_create(&server, "java", 1_000, 0.01, Policy::Warn);
            assert_eq!(either.await.err(), Some(missing()), "{engine:?}");
            assert_eq!(node.call(&["EXISTS", "java"]), Value::Int(0), "{engine:?}");
            // Java continues, and the bits are shorter than before: a client that has seen the longer ones
            // notices it.
            java_add(&node, "java", 9_585, 7, b"d");
            assert!(old.contains(b"a").await.is_unknown(), "{engine:?}");
            // The next round uses a filter that was created here.
            node.call(&["FLUSHALL"]);
            let new =
                RedissonBloom::create(&server, "java", 1_000, 0.01, Policy::Warn).await.unwrap();
            assert_eq!(new.insert(b"a").await, Ok(INCOMPLETE));
            new.complete().await.unwrap();
        }
        // New clients also notice that a filter that was created here is shorter.
        node.call(&["DEL", "java"]);
        java_add(&node, "java", 9_585, 7, b"d");
        let late = open().await.unwrap();
        assert_eq!(late.contains(b"a").await, Answer::Unknown(Reason::Shrunken), "{engine:?}");
        assert_eq!(late.insert(b"e").await, Err(Error::Unknown(Reason::Shrunken)), "{engine:?}");
    }
}

#[tokio::test]
async fn the_caller_says_whether_missing_bits_of_a_redisson_filter_were_never_there() {
    let Some(mut node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    let none = RedissonBloom::create_bits(&server, "java", Policy::Warn).await;
    assert_eq!(none.err(), Some(Error::Unknown(Reason::Missing)));
    java_init(&node, "java", 9_585, 7);
    let filter = RedissonBloom::create_bits(&server, "java", Policy::Warn).await.unwrap();
    let again = RedissonBloom::create_bits(&server, "java", Policy::Warn).await;
    assert_eq!(again.err(), Some(Error::Exists));
    assert_eq!(filter.contains(b"a").await, INCOMPLETE);
    java_add(&node, "java", 9_585, 7, b"a");
    filter.complete().await.unwrap();
    assert_eq!(filter.contains_batch(&[&b"a"[..], b"c"]).await, KNOWN);
    // It stores its home.
    node.save();
    node.kill();
    node.restart();
    let late = RedissonBloom::open(&server, "java", Policy::Warn).await.unwrap();
    assert_eq!(late.contains(b"a").await, Answer::Unknown(Reason::History));
    assert_eq!(late.insert(b"b").await, Err(Error::Unknown(Reason::History)));
    assert_eq!(late.complete().await, Err(Error::Unknown(Reason::History)));
    late.adopt().await.unwrap();
    assert_eq!(late.contains(b"a").await, INCOMPLETE);
    late.complete().await.unwrap();
    assert_eq!(late.contains_batch(&[&b"a"[..], b"c"]).await, KNOWN);
    assert_eq!(filter.contains_batch(&[&b"a"[..], b"c"]).await, KNOWN);
}

/// Rates that Redisson takes: 0 and 1e-300.
#[tokio::test]
async fn a_redisson_filter_may_have_any_rate_that_redisson_takes() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    for (name, rate, shape, text) in
        [("zero", 0.0, (154_945, 1_074), "0.0"), ("tiny", 1e-300, (143_775, 997), "1.0E-300")]
    {
        let filter = RedissonBloom::create(&server, name, 100, rate, Policy::Warn).await.unwrap();
        assert_eq!((filter.size(), filter.hash_iterations()), shape);
        let config = format!("{{{name}}}:config");
        let got: String =
            redis::from_redis_value(node.call(&["HGET", &config, "falseProbability"])).unwrap();
        assert_eq!(got, text);
        filter.complete().await.unwrap();
        let keys: Vec<[u8; 1]> = (0..100).map(|key| [key]).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        filter.insert_batch(&keys).await.unwrap();
        assert_eq!(filter.contains_batch(&keys).await, vec![Answer::Maybe; 100]);
        assert_eq!(filter.contains(b"absent").await, Answer::Absent);
    }
}

/// Filters that the original programs wrote, and their answers.
#[tokio::test]
async fn filters_of_go_zero_and_redisson_answer_as_the_real_programs_do() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    let keys: Vec<Vec<u8>> = (0..1_000).map(|key| format!("key-{key}").into_bytes()).collect();
    let others: Vec<Vec<u8>> = (0..2_000).map(|key| format!("absent-{key}").into_bytes()).collect();
    let expected = |text: &str| -> Vec<Answer> {
        let answer = |digit| if digit == '1' { Answer::Maybe } else { Answer::Absent };
        text.trim_end().chars().map(answer).collect()
    };
    node.call_bytes(&[b"SET", b"gold", include_bytes!("../golden/gozero-bits10007.bin")]);
    let go = GoZeroBloom::open(&server, "gold", 10_007, Policy::Warn).await.unwrap();
    assert_eq!(go.contains_batch(&keys).await, vec![Answer::Maybe; 1_000]);
    let answers = expected(include_str!("../golden/gozero-bits10007.answers"));
    assert_eq!(go.contains_batch(&others).await, answers);

    node.call_bytes(&[b"SET", b"goldr", include_bytes!("../golden/redisson-string.bin")]);
    let config = include_str!("../golden/redisson-string.config");
    let fields = config.trim().trim_matches(['{', '}']).split(", ");
    let fields: Vec<&str> = fields.flat_map(|field| field.split('=')).collect();
    node.call(&[&["HSET", "{goldr}:config"], &fields[..]].concat());
    let java = RedissonBloom::open(&server, "goldr", Policy::Warn).await.unwrap();
    assert_eq!(java.contains_batch(&keys).await, vec![Answer::Maybe; 1_000]);
    let answers = expected(include_str!("../golden/redisson-string.answers"));
    assert_eq!(java.contains_batch(&others).await, answers);
    // This crate sets the same bits.
    let ours = RedissonBloom::create(&server, "ours", 1_000, 0.02, Policy::Warn).await.unwrap();
    ours.insert_batch(&keys).await.unwrap();
    assert!(bytes(&node, "ours") == bytes(&node, "goldr"));
}

#[test]
fn programs_that_wait_get_the_same_answers() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let url = node.url();
    let shape = umbel::blocked::Shape::for_rate(1_000, 0.01).unwrap();
    let filter = Blocking::open(async {
        let server = Server::connect(&url).await?;
        created::<str, umbel::Portable>(
            &server,
            "f",
            shape,
            Default::default(),
            &Options::default(),
        )
        .await
    });
    let filter = filter.unwrap();
    assert_eq!(filter.insert("a"), Ok(Answer::Absent));
    assert_eq!((filter.contains("a"), filter.contains("b")), (Answer::Maybe, Answer::Absent));
    assert_eq!(filter.insert_batch(&["b", "c"]), Ok(vec![Answer::Absent; 2]));
    assert_eq!(filter.contains_batch(&["a", "b", "c", "d"])[2..], [Answer::Maybe, Answer::Absent]);
    assert!(filter.wait(filter.filter().download()).unwrap().contains("c"));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(filter.contains("a"), Answer::Maybe));
        }
    });
    let nobody = Blocking::open(async { Server::connect("redis://127.0.0.1:1/").await });
    assert_eq!(nobody.err(), Some(Error::Unknown(Reason::Disconnected)));
    assert!(matches!(Blocking::open(Server::connect("not a URL")), Err(Error::Address(_))));
}

#[tokio::test]
async fn an_insert_into_a_filter_with_another_state_or_identity_writes_nothing() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    let unknown = |reason| Some(Error::Unknown(reason));
    let go_zero = sealed(&server, "go", 20_000).await;
    // The state is the last four bytes of 2,500 and 56.
    node.call_bytes(&[b"SETRANGE", b"go", b"2552", &[9, 0, 0, 0]]);
    let before = bytes(&node, "go");
    assert_eq!(go_zero.insert(b"k").await.err(), unknown(Reason::Replaced));
    assert_eq!(bytes(&node, "go"), before);
    let make = || RedissonBloom::create(&server, "java", 1_000, 0.01, Policy::Warn);
    let old = make().await.unwrap();
    node.call(&["DEL", "java", "{java}:config"]);
    // The same parameters, so only the identity differs.
    let new = make().await.unwrap();
    let before = bytes(&node, "java");
    assert_eq!(old.insert(b"k").await.err(), unknown(Reason::Replaced));
    assert_eq!(bytes(&node, "java"), before);
    let mark = node.call(&["HGET", "{java}:config", "umbel"]);
    let mark: String = redis::from_redis_value(mark).unwrap();
    let creating = mark.replace(":incomplete", ":creating");
    node.call(&["HSET", "{java}:config", "umbel", &creating]);
    assert_eq!(new.insert(b"k").await.err(), unknown(Reason::Building));
    assert_eq!(bytes(&node, "java"), before);
}

#[tokio::test]
async fn adopting_a_key_that_is_at_home_leaves_it_complete() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    let go_zero = sealed(&server, "go", 20_000).await;
    go_zero.complete().await.unwrap();
    go_zero.adopt().await.unwrap();
    assert_eq!(go_zero.is_complete().await, Ok(true));
    let java = RedissonBloom::create(&server, "java", 1_000, 0.01, Policy::Warn).await.unwrap();
    java.complete().await.unwrap();
    java.adopt().await.unwrap();
    assert_eq!(java.is_complete().await, Ok(true));
}
