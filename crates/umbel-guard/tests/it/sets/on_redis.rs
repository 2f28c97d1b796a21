use super::{active, guard, not_done, stamps_decide};
use crate::contract::all_keys;
use crate::servers::{Engine, Node, follow};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};
use umbel_guard::set::{Redis, RedisError};
use umbel_guard::{Answer, DataSet, GuardError, Outcome, Put, Stamp, State};

const ENGINES: [Engine; 2] = [Engine::Redis, Engine::Valkey];

/// Repeats a call until the connection is open again.
async fn again<T>(mut ask: impl AsyncFnMut() -> Result<T, RedisError>) -> T {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => assert!(Instant::now() < end, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guard_that_began_last_writes_to_redis() {
    for engine in ENGINES {
        let Some(server) = Node::start(engine, &[]) else { continue };
        let url = server.url();
        let (one, two) =
            (Redis::hash(&url, "users").await.unwrap(), Redis::hash(&url, "users").await.unwrap());
        assert_eq!(one.stamp().await.unwrap(), None);
        stamps_decide(&one, &two).await;
        for prefix in ["users:", "", "u"] {
            let one = Redis::prefix(&url, prefix).await.unwrap();
            stamps_decide(&one, &Redis::prefix(&url, prefix).await.unwrap()).await;
            // The server drops its cached scripts.
            server.call(&["SCRIPT", "FLUSH"]);
            stamps_decide(&one, &one).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stamp_is_not_a_key_of_the_set() {
    for engine in ENGINES {
        let Some(server) = Node::start(engine, &[]) else { continue };
        let url = server.url();
        for prefix in ["", "umbel-", "umbel-guard:"] {
            server.call(&["FLUSHALL"]);
            let guard = active(Redis::prefix(&url, prefix).await.unwrap()).await;
            // Of other sets, and of this one.
            Redis::hash(&url, "other").await.unwrap().begin(1).await.unwrap();
            let set = guard.data_set();
            guard.put(b"a", b"").await.unwrap();
            assert_eq!(all_keys(set, 10).await, [b"a"]);
            let mut scan = set.scan(None).await.unwrap();
            assert_eq!(set.count(&mut scan).await.unwrap(), 1);
            let mut scan = set.scan(Some(b"a")).await.unwrap();
            let some = set.page(&mut scan, 100).await.unwrap();
            assert!(!some.is_empty() && some.keys().all(|key| key == b"a"));
            let own = &"umbel-guard:stamp:x"[prefix.len()..];
            let refused = not_done(set, set.put(own.as_bytes(), b"").await);
            assert!(matches!(refused, RedisError::Reserved { .. }), "{refused}");
            not_done(set, set.put_marked(own.as_bytes(), b"", Stamp::default().into()).await);
            assert_eq!(set.get(own.as_bytes()).await.unwrap(), None);
            assert!(!set.delete(own.as_bytes()).await.unwrap());
        }
        for refused in [
            Redis::prefix(&url, "umbel-guard:stamp:x").await,
            Redis::hash(&url, "umbel-guard:stamp:{other}:hash:other").await,
        ] {
            assert!(matches!(refused, Err(RedisError::Reserved { .. })), "{refused:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_database_of_a_redis_server_is_another_set() {
    let Some(server) = Node::start(Engine::Redis, &[]) else { return };
    let place = tempfile::tempdir().unwrap();
    let url = server.url();
    let one = guard(Redis::hash(&url, "users").await.unwrap(), place.path()).await;
    one.rebuild().await.unwrap();
    one.put(b"a", b"").await.unwrap();
    one.close().await.unwrap();
    drop(one);
    {
        let again = guard(Redis::hash(&url, "users").await.unwrap(), place.path()).await;
        assert_eq!(again.state(), State::Active, "an ordinary restart");
        again.close().await.unwrap();
    }
    let next = url.strip_suffix('0').unwrap().to_owned() + "1";
    let set = Redis::hash(&next, "users").await.unwrap();
    set.put(b"b", b"").await.unwrap();
    let other = guard(set, place.path()).await;
    assert_ne!(other.contains(b"b").await, Answer::Absent);
    assert_eq!(other.state(), State::Empty);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guard_begins_again_when_its_stamp_is_flushed() {
    let Some(server) = Node::start(Engine::Redis, &[]) else { return };
    let guard = active(Redis::hash(&server.url(), "users").await.unwrap()).await;
    guard.put(b"a", b"").await.unwrap();
    let before = guard.data_set().identity().await.unwrap();
    server.call(&["FLUSHALL"]);
    let refused = guard.put(b"b", b"").await;
    assert!(matches!(refused, Err(GuardError::DataSet(_))), "{refused:?}");
    guard.put(b"b", b"").await.unwrap();
    let after = guard.data_set().identity().await.unwrap();
    assert_ne!(after, before);
    guard.tend().await;
    assert_eq!(guard.data_set().identity().await.unwrap(), after);
    assert_eq!(guard.state(), State::Active);
    assert_eq!(guard.contains(b"b").await, Answer::Maybe);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_does_not_survive_a_restart_of_the_server() {
    for engine in ENGINES {
        let more = ["--appendonly", "yes", "--appendfsync", "always"];
        let Some(mut server) = Node::start(engine, &more) else { continue };
        let url = server.url();
        for prefix in [false, true] {
            let set = match prefix {
                true => Redis::prefix(&url, "u:").await.unwrap(),
                false => Redis::hash(&url, "users").await.unwrap(),
            };
            let value =
                b"a value that is too long for a small hash, which gives all fields at once";
            for key in 0..1_000_u32 {
                // On a busy disk a synced write can take longer than the client waits.
                again(async || set.put(&key.to_be_bytes(), value).await).await;
            }
            let mut scan = set.scan(None).await.unwrap();
            assert!(!set.page(&mut scan, 10).await.unwrap().is_last());
            server.kill();
            server.restart();
            // A look-up opens the connection for look-ups again.
            again(async || set.get(b"0").await).await;
            assert!(set.page(&mut scan, 10).await.is_err());
            assert!(set.count(&mut scan).await.is_err());
            assert_eq!(all_keys(&set, 100).await.len(), 1_000);
        }
    }
}

/// A proxy that hides a restart of the server from its clients, one request at a time.
fn proxy(server: u16) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let relay = move |mut client: TcpStream| {
        let connect = || {
            let upstream = TcpStream::connect(("127.0.0.1", server))?;
            upstream.set_read_timeout(Some(Duration::from_millis(100)))?;
            std::io::Result::Ok(upstream)
        };
        let (mut upstream, mut bytes) = (connect().unwrap(), vec![0; 1 << 16]);
        while let Ok(length @ 1..) = client.read(&mut bytes) {
            let mut reply = Vec::new();
            while reply.is_empty() {
                let mut part = vec![0; 1 << 16];
                let mut broken = upstream.write_all(&bytes[..length]).is_err();
                while !broken {
                    match upstream.read(&mut part) {
                        Ok(0) => broken = true,
                        Ok(length) => reply.extend_from_slice(&part[..length]),
                        Err(_) => break,
                    }
                }
                if reply.is_empty() {
                    match connect() {
                        Ok(fresh) => upstream = fresh,
                        Err(_) => std::thread::sleep(Duration::from_millis(20)),
                    }
                }
            }
            if client.write_all(&reply).is_err() {
                return;
            }
        }
    };
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            std::thread::spawn(move || relay(client));
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_behind_a_proxy_is_an_error_of_the_scan() {
    let more = ["--appendonly", "yes", "--appendfsync", "always"];
    let Some(mut server) = Node::start(Engine::Redis, &more) else { return };
    let direct = Redis::prefix(&server.url(), "u:").await.unwrap();
    for key in 0..100_u32 {
        direct.put(&key.to_be_bytes(), b"").await.unwrap();
    }
    let url = format!("redis://127.0.0.1:{}/0", proxy(server.port));
    let set = Redis::prefix(&url, "u:").await.unwrap();
    let mut scan = set.scan(None).await.unwrap();
    assert!(!set.page(&mut scan, 10).await.unwrap().is_last());
    server.kill();
    server.restart();
    let refused = set.page(&mut scan, 10).await;
    assert!(matches!(refused, Err(RedisError::Restarted { .. })), "{refused:?}");
    let refused = set.count(&mut scan).await;
    assert!(matches!(refused, Err(RedisError::Restarted { .. })), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_and_prefixes_on_cluster_nodes_are_refused() {
    for engine in ENGINES {
        let (Some(primary), Some(server)) = (Node::start(engine, &[]), Node::start(engine, &[]))
        else {
            continue;
        };
        let set = Redis::hash(&server.url(), "users").await.unwrap();
        set.begin(1).await.unwrap();
        let before = set.identity().await.unwrap();
        follow(&server, &primary);
        for refused in [
            Redis::hash(&server.url(), "users").await,
            Redis::prefix(&server.url(), "users:").await,
        ] {
            assert!(matches!(refused, Err(RedisError::Replica)), "{refused:?}");
        }
        // A server that has become a replica is another set, and is not scanned.
        assert_ne!(again(async || set.identity().await).await, before);
        assert!(matches!(set.scan(None).await, Err(RedisError::Replica)));
        assert!(matches!(set.begin(2).await, Err(RedisError::Replica)));
        not_done(&set, set.put(b"a", b"").await);
        let stamp = Stamp { incarnation: 1, mark: 1 };
        assert!(set.put_marked(b"a", b"", stamp.into()).await.is_err());

        let cluster = ["--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"];
        let bus = crate::servers::free_port().to_string();
        let cluster = [&cluster[..], &["--cluster-port", &bus]].concat();
        let Some(node) = Node::start(engine, &cluster) else { continue };
        node.call(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
        node.until_cluster("cluster_state", "ok");
        let refused = Redis::prefix(&node.url(), "users:").await;
        assert!(matches!(refused, Err(RedisError::Cluster)), "{refused:?}");
        for name in ["users", "a{b}c", "{x"] {
            let set = Redis::hash(&node.url(), name).await.unwrap();
            stamps_decide(&set, &set).await;
        }
        // No other key is certain to be in the same slot.
        assert!(!Redis::hash(&node.url(), "a}b").await.unwrap().begin(1).await.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_redis_leave_no_doubt() {
    for engine in ENGINES {
        let Some(server) = Node::start(engine, &[]) else { continue };
        let url = server.url();
        let guard = active(Redis::hash(&url, "users").await.unwrap()).await;
        let set = guard.data_set();
        let stamp = set.stamp().await.unwrap().unwrap();
        server.call(&["SET", "users", "a string"]);
        not_done(set, set.put(b"a", b"").await);
        not_done(set, set.delete(b"a").await);
        let refused = not_done(set, set.put_marked(b"a", b"", stamp.into()).await);
        assert!(matches!(refused, RedisError::WrongType { .. }), "{refused}");
        not_done(set, set.delete_marked(b"a", stamp.into()).await);
        server.call(&["DEL", "users"]);
        server.call(&["CONFIG", "SET", "maxmemory", "1"]);
        let refused = not_done(set, set.put(b"a", b"").await);
        assert!(refused.to_string().contains("OOM"), "{refused}");
        not_done(
            set,
            set.put_marked(b"a", b"", Stamp { mark: stamp.mark + 1, ..stamp }.into()).await,
        );
        assert!(guard.put(b"a", b"").await.is_err());
        server.call(&["CONFIG", "SET", "maxmemory", "0"]);
        server.call(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
        not_done(set, set.put(b"a", b"").await);
        assert!(guard.put(b"a", b"").await.is_err());
        server.call(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
        assert_eq!(guard.stats().doubts, 0);
        guard.put(b"a", b"").await.unwrap();
        // A key of another type under a prefix is not destroyed.
        let set = Redis::prefix(&url, "p:").await.unwrap();
        set.begin(1).await.unwrap();
        let stamp = Stamp { incarnation: 1, mark: 1 };
        server.call(&["RPUSH", "p:list", "x"]);
        not_done(&set, set.put(b"list", b"").await);
        not_done(&set, set.delete(b"list").await);
        not_done(&set, set.put_marked(b"list", b"", stamp.into()).await);
        not_done(&set, set.delete_marked(b"list", stamp.into()).await);
        assert_eq!(server.info("keyspace", "db0").split(',').next(), Some("keys=4"));
        assert_eq!(set.put_marked(b"new", b"", stamp.into()).await.unwrap(), Put::New);
        assert_eq!(set.put_marked(b"new", b"1", stamp.into()).await.unwrap(), Put::Replaced);
        assert_eq!(set.put(b"new", b"2").await.unwrap(), Put::Replaced);
        assert_eq!(set.get(b"new").await.unwrap().as_deref(), Some(&b"2"[..]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_user_who_may_not_store_a_stamp_writes_only_where_there_is_none() {
    let Some(mut server) = Node::start(Engine::Redis, &[]) else { return };
    server.call(&["ACL", "SETUSER", "plain", "on", "nopass", "~users", "+@all", "-@scripting"]);
    let url = server.url().replace("redis://", "redis://plain:x@");
    let set = Redis::hash(&url, "users").await.unwrap();
    assert!(!set.begin(1).await.unwrap());
    assert_eq!(set.stamp().await.unwrap(), None);
    set.put(b"a", b"").await.unwrap();
    let guard = active(Redis::hash(&server.url(), "users").await.unwrap()).await;
    server.call(&["ACL", "SETUSER", "plain", "%R~umbel-guard:*"]);
    assert!(set.begin(2).await.is_err(), "its writes would not show to the other guard");
    assert!(set.stamp().await.unwrap().is_some());
    guard.put(b"b", b"").await.unwrap();
    server.call(&["ACL", "SETUSER", "plain", "-@all", "+info"]);
    not_done(&set, set.put(b"c", b"").await);
    // The outcome is unknown if the connection is lost.
    server.kill();
    let lost = guard.data_set().put(b"c", b"").await.unwrap_err();
    assert_eq!(guard.data_set().outcome(&lost), Outcome::Unknown, "{lost}");
}

#[tokio::test(flavor = "multi_thread")]
async fn places_databases_and_histories_of_redis_are_different_sets() {
    let Some(mut server) = Node::start(Engine::Redis, &[]) else { return };
    let url = server.url();
    let next = url.strip_suffix('0').unwrap().to_owned() + "1";
    let sets = [
        Redis::hash(&url, "users").await.unwrap(),
        Redis::hash(&url, "others").await.unwrap(),
        Redis::prefix(&url, "users").await.unwrap(),
        Redis::hash(&next, "users").await.unwrap(),
    ];
    let mut seen = Vec::new();
    for set in &sets {
        let identity = set.identity().await.unwrap();
        assert_eq!(set.identity().await.unwrap(), identity);
        assert!(!seen.contains(&identity), "{}", String::from_utf8_lossy(&identity));
        seen.push(identity);
    }
    server.kill();
    server.restart();
    assert_ne!(again(async || sets[0].identity().await).await, seen[0], "another history");
}
