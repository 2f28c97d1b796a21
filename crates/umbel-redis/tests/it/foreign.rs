//! Other people's filters: the same bits as their own programs set.

use crate::servers::{Engine, Node, follow, in_step, pair};
use redis::Value;
use umbel_redis::{
    Answer, Blocking, Error, GoZeroBloom, Options, Policy, Reason, RedissonBloom, RemoteFilter,
    Server, SharedBloom,
};

/// go-zero's two scripts, in our words.
const GO_SET: &str = "for _, at in ipairs(ARGV) do redis.call('setbit', KEYS[1], at, 1) end";
const GO_TEST: &str = "for _, at in ipairs(ARGV) do if redis.call('getbit', KEYS[1], at) == 0 then return false end end return true";

/// What go-zero's `Add` and `Exists` send.
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
        // Whatever go-zero has not made yet is unknown.
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

#[tokio::test]
async fn a_sealed_key_is_known_again() {
    let Some(mut node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    let bits = 1_000;
    for what in [&["DEL", "go"][..], &["RENAME", "go", "away"], &["SET", "go", "short"]] {
        node.call(&["FLUSHALL"]);
        let filter = GoZeroBloom::create(&server, "go", bits, Policy::Warn).await.unwrap();
        filter.insert(b"a").await.unwrap();
        assert_eq!(
            filter.contains_batch(&[&b"a"[..], b"c"]).await,
            [Answer::Maybe, Answer::Absent]
        );
        node.call(what);
        assert_eq!(filter.contains(b"a").await, Answer::Unknown(Reason::Missing), "{what:?}");
        assert_eq!(filter.insert(b"a").await, Err(Error::Unknown(Reason::Missing)), "{what:?}");
        // A Go program goes on as if nothing had happened.
        for key in 0..100_u8 {
            go(&node, GO_SET, "go", bits, &[key]);
        }
        assert_eq!(filter.contains(b"a").await, Answer::Unknown(Reason::Missing), "{what:?}");
        // Made anew here, it is another one.
        node.call(&["DEL", "go"]);
        let other = GoZeroBloom::create(&server, "go", bits, Policy::Warn).await.unwrap();
        assert_eq!(filter.contains(b"a").await, Answer::Unknown(Reason::Replaced));
        assert_eq!(other.contains(b"a").await, Answer::Absent);
        other.insert(b"a").await.unwrap();
    }
    node.call(&["SAVE"]);
    node.kill();
    node.restart();
    let late = GoZeroBloom::open(&server, "go", bits, Policy::Warn).await.unwrap();
    assert_eq!(late.contains(b"a").await, Answer::Unknown(Reason::History));
    late.adopt().await.unwrap();
    assert_eq!(late.contains_batch(&[&b"a"[..], b"c"]).await, [Answer::Maybe, Answer::Absent]);
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
    assert_eq!(filter.contains_batch(&[&[7][..], &[77]]).await, [Answer::Maybe, Answer::Absent]);
    primary.call(&["RENAME", "go", "away"]);
    assert_eq!(filter.contains(&[7]).await, Answer::Unknown(Reason::Missing));
    primary.call(&["SETBIT", "go", "3", "1"]);
    assert_eq!(filter.contains(&[7]).await, Answer::Unknown(Reason::Shrunken));
    primary.call(&["DEL", "go"]);
    primary.call(&["RPUSH", "go", "a"]);
    assert_eq!(filter.contains(&[7]).await, Answer::Unknown(Reason::Foreign));
    primary.call(&["DEL", "go"]);
    primary.call(&["RENAME", "away", "go"]);
    assert_eq!(filter.contains(&[7]).await, Answer::Maybe);
    // Whoever inserts into a key that is gone begins it anew, and knows from then on that it was gone.
    primary.call(&["RENAME", "go", "away"]);
    assert_eq!(filter.insert(&[8]).await, Err(Error::Unknown(Reason::Missing)));
    for key in 50..200_u8 {
        go(&primary, GO_SET, "go", bits, &[key]);
    }
    assert_eq!(filter.contains(&[7]).await, Answer::Unknown(Reason::Missing));
    primary.call(&["RENAME", "away", "go"]);
    filter.adopt().await.unwrap();
    assert_eq!(filter.contains(&[7]).await, Answer::Maybe);
    in_step(&primary, &replica);
    replica.call(&["REPLICAOF", "NO", "ONE"]);
    follow(&primary, &replica);
    assert!(filter.contains(&[7]).await.is_unknown());
    // Sealed, it is known from then on, to all.
    filter.adopt().await.unwrap();
    let sealed = filter.seal().await.unwrap();
    assert_eq!(sealed.contains_batch(&[&[7][..], &[77]]).await, [Answer::Maybe, Answer::Absent]);
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
    // Nothing was inserted, or it was lost: who knows.
    assert_eq!(filter.contains(b"hello").await, Answer::Unknown(Reason::Missing));
    assert_eq!(filter.insert(b"hello").await, Ok(Answer::Absent));
    for position in [1904273, 5703746, 1001831, 4801304, 99389, 3898862, 8782005] {
        assert_eq!(node.call(&["GETBIT", "seen", &position.to_string()]), Value::Int(1));
    }
    assert_eq!(node.call(&["BITCOUNT", "seen"]), Value::Int(7));
    let keys: Vec<Vec<u8>> = (0..1_000).map(|key| format!("user:{key}").into_bytes()).collect();
    filter.insert_batch(&keys).await.unwrap();
    assert_eq!(filter.contains_batch(&keys).await, vec![Answer::Maybe; 1_000]);
    assert_eq!(filter.contains(b"absent").await, Answer::Absent);
    let other = RedissonBloom::create(&server, "seen", 1_000, 0.01, Policy::Warn).await;
    assert!(matches!(other, Err(Error::Mismatch { .. })));
    // The bits are lost and the config is kept, as happens to those who expire one of the two.
    node.call(&["RENAME", "seen", "away"]);
    assert_eq!(filter.contains(b"hello").await, Answer::Unknown(Reason::Missing));
    assert_eq!(filter.insert(b"hello").await, Err(Error::Unknown(Reason::Missing)));
    node.call(&["RENAME", "away", "seen"]);
    filter.adopt().await.unwrap();
    assert_eq!(filter.contains(b"absent").await, Answer::Absent);
    node.call(&["HSET", "{seen}:config", "size", "9585059"]);
    assert_eq!(filter.contains(b"absent").await, Answer::Unknown(Reason::Replaced));
    node.call(&["DEL", "{seen}:config"]);
    assert_eq!(filter.contains(b"absent").await, Answer::Unknown(Reason::Missing));
    assert_eq!(filter.insert(b"absent").await, Err(Error::Unknown(Reason::Missing)));
    for (size, times) in
        [("0", "7"), ("4294967295", "7"), ("100", "0"), ("100", "99999999"), ("x", "7")]
    {
        node.call(&["HSET", "{bad}:config", "size", size, "hashIterations", times]);
        let bad = RedissonBloom::open(&server, "bad", Policy::Warn).await;
        assert_eq!(bad.err(), Some(Error::Unknown(Reason::Foreign)), "{size} {times}");
    }
}

#[test]
fn programs_that_wait_get_the_same_answers() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let url = node.url();
    let shape = umbel::blocked::Shape::for_rate(1_000, 0.01).unwrap();
    let filter = Blocking::open(async {
        let server = Server::connect(&url).await?;
        SharedBloom::<str>::create(&server, "f", shape, Default::default(), &Options::default())
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
